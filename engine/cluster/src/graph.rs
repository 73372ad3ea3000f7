//! The stages of a job, each row of which is read once.
//!
//! If an executor is lost, Ballista takes back the stages that read rows of it, and all tasks of
//! such a stage run again. The stages that read *its* rows, though, keep the places of what its
//! first attempt has already written on executors that are still there, and so would read these
//! rows twice. The places of the answer itself are kept in the same way. And as the tasks of each
//! attempt are counted from zero, a task of the new attempt may write the file that a reader was
//! told of by the old one.
//!
//! [`RowsOnce`] wraps the graph of a job. Each task of a stage gets a number that no attempt of the
//! stage had before. So a place holds rows that count if, and only if, the stage that it belongs to
//! still has a successful task of that number. The others are removed before a stage runs, and
//! from the answer before a client is told of it.

use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::failed_task::FailedReason;
use ballista_core::serde::protobuf::job_status;
use ballista_core::serde::protobuf::{FailedTask, JobStatus, TaskKilled, TaskStatus, task_status};
use ballista_core::serde::scheduler::{ExecutorMetadata, PartitionLocation};
use ballista_scheduler::scheduler_server::event::QueryStageSchedulerEvent;
use ballista_scheduler::state::execution_graph::{
    ExecutionGraph, ExecutionGraphBox, RunningTaskInfo,
};
use ballista_scheduler::state::execution_stage::{
    ExecutionStage, RunningStage, StageOutput, TaskInfo, UnresolvedStage,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The graph of a job.
#[derive(Debug)]
pub(crate) struct RowsOnce {
    graph: ExecutionGraphBox,
    stages: HashMap<usize, Stage>,
}

/// What is remembered of a stage.
#[derive(Clone, Debug)]
struct Stage {
    /// As it was planned, before any rows were there to read.
    plan: Option<Arc<dyn ExecutionPlan>>,
    /// Tasks of all attempts.
    tasks: usize,
}

/// Numbers of the successful tasks of a stage.
fn successful(stage: &ExecutionStage) -> HashSet<usize> {
    let tasks = stage.task_infos().unwrap_or_default().iter().enumerate();
    let successful = tasks.filter(|(_, task)| {
        let status = &task.task_status;
        matches!(status, task_status::Status::Successful(_))
    });
    successful.map(|(number, _)| number).collect()
}

/// How often a stage began again.
const fn attempts(stage: &ExecutionStage) -> usize {
    match stage {
        ExecutionStage::UnResolved(stage) => stage.stage_attempt_num,
        ExecutionStage::Resolved(stage) => stage.stage_attempt_num,
        ExecutionStage::Running(stage) => stage.stage_attempt_num,
        ExecutionStage::Successful(stage) => stage.stage_attempt_num,
        ExecutionStage::Failed(stage) => stage.stage_attempt_num,
    }
}

/// What a stage reads, without the places that do not count; nothing if all do.
fn pruned(
    inputs: &HashMap<usize, StageOutput>,
    stages: &HashMap<usize, ExecutionStage>,
) -> Option<HashMap<usize, StageOutput>> {
    // There may be very many places: they are copied only if there is something to remove.
    let mut stale = Vec::new();
    for (id, output) in inputs {
        // A stage that never began again has written everything once.
        let Some(stage) = stages.get(id).filter(|stage| attempts(stage) > 0) else {
            continue;
        };
        let counts = successful(stage);
        let mut places = output.partition_locations.values().flatten();
        if places.any(|place| !counts.contains(&place.map_partition_id)) {
            stale.push((*id, counts));
        }
    }
    if stale.is_empty() {
        return None;
    }
    let mut pruned = inputs.clone();
    for (id, counts) in stale {
        let output = pruned.get_mut(&id);
        for places in output
            .into_iter()
            .flat_map(|it| it.partition_locations.values_mut())
        {
            places.retain(|place| counts.contains(&place.map_partition_id));
        }
    }
    Some(pruned)
}

/// The number of a task that an earlier attempt had.
fn used(number: usize) -> TaskInfo {
    let failed = FailedTask {
        error: "its stage was taken back".to_owned(),
        retryable: true,
        count_to_failures: false,
        failed_reason: Some(FailedReason::TaskKilled(TaskKilled {})),
    };
    TaskInfo {
        task_id: number,
        scheduled_time: 0,
        launch_time: 0,
        start_exec_time: 0,
        end_exec_time: 0,
        finish_time: 0,
        task_status: task_status::Status::Failed(failed),
        global_input_partition_ids: Vec::new(),
        vcores_consumed: 0,
    }
}

impl RowsOnce {
    /// Wraps the graph of a job none of whose tasks has been given to an executor yet.
    pub(crate) fn new(graph: ExecutionGraphBox) -> RowsOnce {
        let stage = |stage: &ExecutionStage| Stage {
            plan: match stage {
                ExecutionStage::UnResolved(stage) => Some(stage.plan.clone()),
                // It reads no rows of other stages.
                _ => None,
            },
            tasks: 0,
        };
        let stages = graph.stages().iter();
        let stages = stages.map(|(id, it)| (*id, stage(it))).collect();
        RowsOnce { graph, stages }
    }

    /// Remembers how many tasks the stages have had, before a stage can be taken back.
    fn count_tasks(&mut self) {
        for (id, stage) in self.graph.stages() {
            let tasks = stage.task_infos().unwrap_or_default().len();
            if let Some(stage) = self.stages.get_mut(id) {
                stage.tasks = stage.tasks.max(tasks);
            }
        }
    }

    /// Prepares a stage for its first task.
    fn prepare(&mut self, black_list: &[usize]) -> Result<()> {
        let Some(stage) = self.graph.fetch_running_stage(black_list) else {
            return Ok(());
        };
        if !stage.task_infos.is_empty() {
            return Ok(());
        }
        let id = stage.stage_id;
        let stages = self.graph.stages();
        let inputs = match stages.get(&id) {
            Some(ExecutionStage::Running(stage)) => pruned(&stage.inputs, stages),
            _ => None,
        };
        let options = self.graph.session_config();
        let known = self.stages.get(&id);
        let Some(stage) = self.graph.fetch_running_stage(black_list) else {
            return Ok(());
        };
        // The plan is made again, and not only its places changed: it may depend on how many rows
        // there are.
        if let (Some(inputs), Some(plan)) = (inputs, known.and_then(|it| it.plan.clone())) {
            let again = UnresolvedStage::new_with_inputs(
                id,
                stage.stage_attempt_num,
                plan,
                stage.output_links.clone(),
                inputs,
                HashSet::new(),
                stage.session_config.clone(),
            );
            *stage = again.to_resolved(options.options())?.to_running();
        }
        stage.task_infos = (0..known.map_or(0, |it| it.tasks)).map(used).collect();
        Ok(())
    }

    /// Numbers of the tasks whose rows are the answer.
    fn tasks_of_the_answer(&self) -> HashSet<usize> {
        let mut stages = self.graph.stages().values();
        let last = stages.find(|stage| stage.output_links().is_empty());
        last.map(successful).unwrap_or_default()
    }

    /// Removes places that do not count from the answer of a job that is finished.
    fn prune_answer(&mut self) {
        if !self.graph.is_successful() {
            return;
        }
        let counts = self.tasks_of_the_answer();
        let mut status = self.graph.status().clone();
        if let Some(job_status::Status::Successful(job)) = &mut status.status {
            job.partition_location
                .retain(|place| counts.contains(&(place.map_partition_id as usize)));
            self.graph.update_status(status);
        }
    }
}

impl ExecutionGraph for RowsOnce {
    fn update_task_status(
        &mut self,
        executor: &ExecutorMetadata,
        task_statuses: Vec<TaskStatus>,
        max_task_failures: usize,
        max_stage_failures: usize,
    ) -> Result<Vec<QueryStageSchedulerEvent>> {
        self.count_tasks();
        let events = self.graph.update_task_status(
            executor,
            task_statuses,
            max_task_failures,
            max_stage_failures,
        )?;
        self.prune_answer();
        Ok(events)
    }

    fn reset_stages_on_lost_executor(
        &mut self,
        executor_id: &str,
    ) -> Result<(HashSet<usize>, Vec<RunningTaskInfo>)> {
        self.count_tasks();
        self.graph.reset_stages_on_lost_executor(executor_id)
    }

    fn rollback_running_stage(
        &mut self,
        stage_id: usize,
        failure_reasons: HashSet<String>,
    ) -> Result<Vec<RunningTaskInfo>> {
        self.count_tasks();
        self.graph.rollback_running_stage(stage_id, failure_reasons)
    }

    fn fetch_running_stage(&mut self, black_list: &[usize]) -> Option<&mut RunningStage> {
        if let Err(error) = self.prepare(black_list) {
            self.fail_job(error.to_string());
            return None;
        }
        self.graph.fetch_running_stage(black_list)
    }

    fn output_locations(&self) -> Vec<PartitionLocation> {
        let counts = self.tasks_of_the_answer();
        let mut places = self.graph.output_locations();
        places.retain(|place| counts.contains(&place.map_partition_id));
        places
    }

    fn succeed_job(&mut self) -> Result<()> {
        self.graph.succeed_job()?;
        self.prune_answer();
        Ok(())
    }

    fn cloned(&self) -> ExecutionGraphBox {
        Box::new(RowsOnce {
            graph: self.graph.cloned(),
            stages: self.stages.clone(),
        })
    }

    fn job_id(&self) -> &JobId {
        self.graph.job_id()
    }

    fn job_name(&self) -> &str {
        self.graph.job_name()
    }

    fn session_id(&self) -> &str {
        self.graph.session_id()
    }

    fn scheduler_id(&self) -> Option<&str> {
        self.graph.scheduler_id()
    }

    fn session_config(&self) -> Arc<SessionConfig> {
        self.graph.session_config()
    }

    fn status(&self) -> &JobStatus {
        self.graph.status()
    }

    fn logical_plan(&self) -> Option<&str> {
        self.graph.logical_plan()
    }

    fn physical_plan(&self) -> Arc<dyn ExecutionPlan> {
        self.graph.physical_plan()
    }

    fn start_time(&self) -> u64 {
        self.graph.start_time()
    }

    fn end_time(&self) -> u64 {
        self.graph.end_time()
    }

    fn completed_stages(&self) -> usize {
        self.graph.completed_stages()
    }

    fn is_successful(&self) -> bool {
        self.graph.is_successful()
    }

    fn revive(&mut self) -> bool {
        self.graph.revive()
    }

    fn running_stages(&self) -> Vec<usize> {
        self.graph.running_stages()
    }

    fn running_tasks(&self) -> Vec<RunningTaskInfo> {
        self.graph.running_tasks()
    }

    fn available_tasks(&self) -> usize {
        self.graph.available_tasks()
    }

    fn update_status(&mut self, status: JobStatus) {
        self.graph.update_status(status);
    }

    fn resolve_stage(&mut self, stage_id: usize) -> Result<bool> {
        self.graph.resolve_stage(stage_id)
    }

    fn succeed_stage(&mut self, stage_id: usize) -> bool {
        self.graph.succeed_stage(stage_id)
    }

    fn fail_stage(&mut self, stage_id: usize, err_msg: String) -> bool {
        self.graph.fail_stage(stage_id, err_msg)
    }

    fn rollback_resolved_stage(&mut self, stage_id: usize) -> Result<bool> {
        self.graph.rollback_resolved_stage(stage_id)
    }

    fn rerun_successful_stage(&mut self, stage_id: usize) -> bool {
        self.graph.rerun_successful_stage(stage_id)
    }

    fn fail_job(&mut self, error: String) {
        self.graph.fail_job(error);
    }

    fn stages(&self) -> &HashMap<usize, ExecutionStage> {
        self.graph.stages()
    }

    fn stage_count(&self) -> usize {
        self.graph.stage_count()
    }
}
