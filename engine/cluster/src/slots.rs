//! How much work each executor has.
//!
//! Ballista counts the free slots of an executor down when it gives it a task, and up when the
//! task reports its end. If an executor is lost, stages that need its rows are taken back, and with
//! them the tasks that other executors run for these stages; such a task is not known any more when
//! it reports, and its slot would be taken for ever. An executor with one slot would then never get
//! a task again, and the query would wait without end. So the slots are compared with the tasks
//! that really run before any are given away. New jobs are met here, too, so this is where their
//! graphs are wrapped.

use crate::graph::RowsOnce;
use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use ballista_scheduler::state::task_manager::JobInfoCache;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use tokio::sync::{Mutex, RwLock};

type Jobs = HashMap<JobId, JobInfoCache>;

/// The executors of a cluster, with slots that are not lost, and jobs whose rows come once.
pub(crate) struct Slots {
    executors: Arc<dyn ClusterState>,
    counts: Mutex<HashMap<String, Count>>,
    /// The graphs that are wrapped.
    jobs: Mutex<HashMap<JobId, Weak<RwLock<ExecutionGraphBox>>>>,
}

/// The slots of an executor.
#[derive(Clone, Copy)]
struct Count {
    all: u32,
    /// As `executors` counts them.
    free: u32,
}

impl Slots {
    pub(crate) fn new(executors: Arc<dyn ClusterState>) -> Slots {
        Slots {
            executors,
            counts: Mutex::default(),
            jobs: Mutex::default(),
        }
    }

    /// Wraps the graphs of new jobs: none of their tasks has been given away yet.
    async fn wrap(&self, active: &Jobs) {
        let mut jobs = self.jobs.lock().await;
        jobs.retain(|_, graph| graph.strong_count() > 0);
        for (id, job) in active {
            if !jobs.contains_key(id) {
                jobs.insert(id.clone(), Arc::downgrade(&job.execution_graph));
                let mut graph = job.execution_graph.write().await;
                let once = RowsOnce::new(graph.cloned());
                *graph = Box::new(once);
            }
        }
    }
}

/// Slots that tasks of these jobs occupy, by executor.
async fn occupied(jobs: &Jobs) -> HashMap<String, u32> {
    let mut occupied = HashMap::new();
    for job in jobs.values() {
        let graph = job.execution_graph.read().await;
        for task in graph.running_tasks() {
            let slots = graph.task_vcores(task.stage_id, task.task_id);
            *occupied.entry(task.executor_id).or_insert(0) += slots.unwrap_or(0);
        }
    }
    occupied
}

/// Slots that are free although they are not counted so.
fn found(
    counts: &mut HashMap<String, Count>,
    occupied: &HashMap<String, u32>,
) -> Vec<ExecutorSlot> {
    let mut found = Vec::new();
    for (executor, count) in counts {
        let taken = occupied.get(executor).copied().unwrap_or(0);
        let free = count.all.saturating_sub(taken);
        if free > count.free {
            found.push((executor.clone(), free - count.free));
            count.free = free;
        }
    }
    found
}

/// What is given back, as far as an executor has so many slots.
fn given_back(counts: &mut HashMap<String, Count>, slots: Vec<ExecutorSlot>) -> Vec<ExecutorSlot> {
    let mut given = Vec::new();
    for (executor, slots) in slots {
        if let Some(count) = counts.get_mut(&executor) {
            let slots = slots.min(count.all.saturating_sub(count.free));
            count.free += slots;
            given.push((executor, slots));
        }
    }
    given
}

#[async_trait]
impl ClusterState for Slots {
    async fn init(&self) -> Result<()> {
        self.executors.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<Jobs>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        self.wrap(&active_jobs).await;
        let mut counts = self.counts.lock().await;
        let found = found(&mut counts, &occupied(&active_jobs).await);
        self.executors.unbind_tasks(found).await?;
        let bound = self
            .executors
            .bind_schedulable_tasks(distribution, active_jobs, executors)
            .await?;
        for (executor, task) in &bound {
            if let Some(count) = counts.get_mut(executor) {
                count.free = count.free.saturating_sub(task.vcores_consumed);
            }
        }
        Ok(bound)
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> Result<()> {
        let mut counts = self.counts.lock().await;
        let given = given_back(&mut counts, executor_slots);
        self.executors.unbind_tasks(given).await
    }

    async fn register_executor(
        &self,
        metadata: ExecutorMetadata,
        spec: ExecutorData,
    ) -> Result<()> {
        let count = Count {
            all: spec.total_vcores,
            free: spec.available_vcores,
        };
        let mut counts = self.counts.lock().await;
        let id = spec.executor_id.clone();
        self.executors.register_executor(metadata, spec).await?;
        counts.insert(id, count);
        Ok(())
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.executors.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> Result<ExecutorMetadata> {
        self.executors.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.executors.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.executors.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, executor_id: &str) -> Result<()> {
        self.counts.lock().await.remove(executor_id);
        self.executors.remove_executor(executor_id).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.executors.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.executors.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.executors.cluster_state_events().await
    }
}
