//! Queries that a cluster runs: the plan is made here, and sent to a scheduler.

use crate::codec::PlanCodec;
use crate::exec::TraceExec;
use crate::once::CollectOnce;
use crate::provider::external;
use crate::store;
use crate::wire;
use ballista_core::client::BallistaClient;
use ballista_core::config::BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE;
use ballista_core::extension::{SessionConfigExt as _, SessionConfigHelperExt as _};
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, ExecutorMetadata, GetJobMetricsParams,
    GetJobMetricsResult, GetJobStatusParams, OperatorMetricsSet, PartitionLocation,
    execute_query_params::Query, execute_query_result, job_status,
};
use ballista_core::utils::default_session_builder;
use ballista_core::version;
use datafusion::arrow::array::StringArray;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::AsExecutionPlan as _;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt as _;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::Error;
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Sender;
use tonic::transport::{Channel, Endpoint};

/// The largest message between processes: a plan for very many traces, or a batch of rows.
pub const MESSAGE: u32 = 256 << 20;

/// How long a scheduler may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the state of a query is looked at: first often, and then less and less.
const POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// How often it is looked whether there are executors.
const LOOK: Duration = Duration::from_secs(1);

/// How long a query waits for the first executor.
const LONELY: Duration = Duration::from_secs(15);

/// Bytes of an answer that are kept until it is complete. A larger one is passed on as it comes.
const KEPT: usize = 256 << 20;

/// How often a query is run again because an executor with a part of the answer is lost.
const ATTEMPTS: usize = 3;

/// A cluster that runs queries.
#[derive(Clone, Debug)]
pub struct Cluster {
    address: String,
    /// Its name and its port.
    place: (String, u16),
    channel: Channel,
    codec: Arc<PlanCodec>,
    /// The query that runs.
    running: Arc<Mutex<Option<String>>>,
}

impl Cluster {
    /// Connects to the scheduler at `HOST:PORT`, perhaps with `http://` before it.
    ///
    /// # Errors
    ///
    /// A scheduler that does not answer.
    pub async fn connect(address: &str) -> Result<Cluster, Error> {
        let place = place(address).ok_or_else(|| {
            let message = format!("`{address}` is not the address of a scheduler");
            Diagnostic::new(Code::NoScheduler, message).help("write HOST:PORT")
        })?;
        let endpoint = Endpoint::from_shared(format!("http://{}:{}", place.0, place.1));
        let endpoint = endpoint.map_err(|error| absent(address, &error))?;
        let endpoint = endpoint
            .connect_timeout(PATIENCE)
            .timeout(PATIENCE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PATIENCE)
            .keep_alive_timeout(PATIENCE);
        let channel = endpoint.connect().await;
        Ok(Cluster {
            channel: channel.map_err(|error| absent(address, &error))?,
            address: address.to_owned(),
            place,
            codec: Arc::new(PlanCodec::new()),
            running: Arc::default(),
        })
    }

    /// Ends the query that runs, if there is one.
    pub async fn cancel(&self) {
        let running = self.running.lock().ok().and_then(|mut job| job.take());
        if let Some(job_id) = running {
            // A scheduler that does not answer has nothing to cancel.
            let _ = self
                .scheduler()
                .cancel_job(CancelJobParams { job_id })
                .await;
        }
    }

    /// The state of a session whose queries a cluster runs, each in so many partitions.
    pub(crate) fn state(partitions: usize) -> Result<SessionState> {
        let state = session_state(
            SessionConfig::new_with_ballista()
                .with_target_partitions(partitions.max(1))
                // Names are dictionaries, which a join of sorted rows does not compare.
                .set_bool("datafusion.optimizer.prefer_hash_join", true)
                .set_usize(BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE, MESSAGE as usize),
        )?;
        let builder = SessionStateBuilder::new_from_existing(state);
        let builder = builder.with_physical_optimizer_rule(Arc::new(CollectOnce));
        Ok(builder.build())
    }

    /// Runs a plan that reads traces or files; `None` for one that does not, such as that of
    /// `SHOW TABLES`.
    pub(crate) async fn run(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &SessionConfig,
        session: &str,
    ) -> Result<Option<SendableRecordBatchStream>> {
        if plan.is::<DataSinkExec>() {
            let message = "a cluster does not write files";
            let help = "write the rows with -o FILE";
            let diagnostic = Diagnostic::new(Code::BadQuery, message).help(help);
            return Err(external(diagnostic.into()));
        }
        if !reads_files(plan) {
            return Ok(None);
        }
        let (run, analyzed) = match plan.downcast_ref::<AnalyzeExec>() {
            Some(analyze) => (analyze.input(), true),
            None => (plan, false),
        };
        let query = self.query(run, config, session)?;
        let mut builder = RecordBatchReceiverStreamBuilder::new(plan.schema(), 2);
        let (out, cluster) = (builder.tx(), self.clone());
        if analyzed {
            let schema = plan.schema();
            builder.spawn(async move {
                let text = cluster.analyze(query).await?;
                let columns: [Arc<StringArray>; 2] = [
                    Arc::new(StringArray::from(vec!["Plan with Metrics"])),
                    Arc::new(StringArray::from(vec![text])),
                ];
                let columns = columns.into_iter().map(|column| column as _);
                let batch = RecordBatch::try_new(schema, columns.collect())?;
                // A reader that has gone away wants nothing more.
                let _ = out.send(Ok(batch)).await;
                Ok(())
            });
        } else {
            builder.spawn(async move { cluster.answer(query, &out).await });
        }
        Ok(Some(builder.build()))
    }

    fn query(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &SessionConfig,
        session: &str,
    ) -> Result<ExecuteQueryParams> {
        let plan = wire::to_send(Arc::clone(plan), session)?;
        let mut bytes = Vec::new();
        let node = PhysicalPlanNode::try_from_physical_plan(plan, self.codec.as_ref())?;
        node.try_encode(&mut bytes)?;
        Ok(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(bytes)),
            settings: config.to_key_value_pairs(),
            session_id: session.to_owned(),
            operation_id: session.to_owned(),
        })
    }

    fn scheduler(&self) -> SchedulerGrpcClient<Channel> {
        SchedulerGrpcClient::new(self.channel.clone())
            .max_encoding_message_size(MESSAGE as usize)
            .max_decoding_message_size(MESSAGE as usize)
    }

    /// Passes on the answer of a query. If a part of it is lost with its executor, the query is
    /// run again; of an answer that is too large to be kept, parts that were passed on are then
    /// left out.
    async fn answer(
        &self,
        query: ExecuteQueryParams,
        out: &Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let (mut done, mut attempt) = (0, 1);
        let mut kept = Kept::default();
        loop {
            let job = self.submit(query.clone()).await?;
            let parts = self.finish(&job).await?;
            let all = parts.len();
            for part in parts.iter().skip(done) {
                match self.read(part, &mut kept, out).await {
                    Ok(true) => done += 1,
                    // The reader has gone away.
                    Ok(false) => return Ok(()),
                    Err(Lost::Nothing(_)) if attempt < ATTEMPTS => break,
                    Err(Lost::Nothing(error) | Lost::Rows(error)) => return Err(lost(&error)),
                }
            }
            if done >= all {
                kept.pass(out).await;
                return Ok(());
            }
            if kept.is_whole() {
                done = 0;
            }
            kept.forget();
            attempt += 1;
        }
    }

    async fn analyze(&self, query: ExecuteQueryParams) -> Result<String> {
        let job = self.submit(query).await?;
        self.finish(&job).await?;
        let request = GetJobMetricsParams {
            job_id: job.clone(),
        };
        let metrics = self.scheduler().get_job_metrics(request).await;
        let metrics = metrics.map_err(|status| self.refused(&status))?;
        stages(metrics.into_inner())
    }

    async fn submit(&self, query: ExecuteQueryParams) -> Result<String> {
        let mut request = tonic::Request::new(query);
        version::insert_version_header(request.metadata_mut());
        let answer = self.scheduler().execute_query(request).await;
        let answer = answer.map_err(|status| self.refused(&status))?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(success)) => {
                if let Ok(mut running) = self.running.lock() {
                    *running = Some(success.job_id.clone());
                }
                Ok(success.job_id)
            }
            Some(execute_query_result::Result::Failure(failure)) => {
                Err(remote(&format!("{failure:?}")))
            }
            None => Err(remote("the scheduler gave no answer")),
        }
    }

    /// Waits for the end of a job: where the parts of its answer are.
    async fn finish(&self, job: &str) -> Result<Vec<PartitionLocation>> {
        let (mut looked, mut idle) = (Instant::now(), None);
        let mut pause = POLL.0;
        loop {
            let request = GetJobStatusParams {
                job_id: job.to_owned(),
            };
            let status = self.scheduler().get_job_status(request).await;
            let status = status.map_err(|status| self.refused(&status))?.into_inner();
            match status.status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(job)) => return Ok(job.partition_location),
                Some(job_status::Status::Failed(failed)) => return Err(remote(&failed.error)),
                _ => tokio::time::sleep(pause).await,
            }
            pause = POLL.1.min(pause + pause / 4);
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                idle = match self.has_executors().await {
                    true => None,
                    false => idle.or(Some(looked)),
                };
                if idle.is_some_and(|since| since.elapsed() > LONELY) {
                    self.cancel().await;
                    let message = format!("the scheduler at `{}` has no executors", self.address);
                    let diagnostic = Diagnostic::new(Code::NoScheduler, message)
                        .help("start some with `hartrace executor`");
                    return Err(external(diagnostic.into()));
                }
            }
        }
    }

    /// Whether the scheduler has executors. A query waits for the first one.
    async fn has_executors(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect((self.place.0.as_str(), self.place.1)).await?;
            let host = &self.place.0;
            let request = format!("GET /readyz HTTP/1.0\r\nHost: {host}\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        // A scheduler that does not answer is noticed elsewhere.
        let answer = tokio::time::timeout(PATIENCE, ask).await;
        !matches!(answer, Ok(Ok(answer)) if answer.ends_with(b" 503"))
    }

    /// The rows of a part of an answer. They come through the scheduler, so that a client has to
    /// reach no executor.
    async fn fetch(&self, part: &PartitionLocation) -> Result<SendableRecordBatchStream, String> {
        let (Some(ExecutorMetadata { id, host, port, .. }), Some(place)) =
            (&part.executor_meta, &part.partition_id)
        else {
            return Err("the scheduler does not say where the answer is".to_owned());
        };
        let port = u16::try_from(*port).unwrap_or(0);
        let (name, at) = (self.place.0.as_str(), self.place.1);
        let size = MESSAGE as usize;
        let client = BallistaClient::try_new(name, at, size, false, None, 1, 0, 0, 0);
        let mut client = client.await.map_err(|error| error.to_string())?;
        let (place, layout) = (place.clone().into(), part.layout());
        client
            .fetch_partition_proxied(id, &place, part.file_id, layout, host, port, true)
            .await
            .map_err(|error| error.to_string())
    }

    /// Reads a part of an answer; false if nothing more is wanted.
    async fn read(
        &self,
        part: &PartitionLocation,
        kept: &mut Kept,
        out: &Sender<Result<RecordBatch>>,
    ) -> Result<bool, Lost> {
        let mut rows = self.fetch(part).await.map_err(Lost::Nothing)?;
        let mut passed = false;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(|error| match passed {
                true => Lost::Rows(error.strip_backtrace()),
                false => Lost::Nothing(error.strip_backtrace()),
            })?;
            kept.add(batch);
            if kept.bytes > KEPT {
                passed = true;
                if !kept.pass(out).await {
                    return Ok(false);
                }
            }
        }
        // What is kept is of one part from now on.
        Ok(kept.is_whole() || kept.pass(out).await)
    }

    /// Why the scheduler did not do something.
    fn refused(&self, status: &tonic::Status) -> DataFusionError {
        match status.code() {
            tonic::Code::Unavailable | tonic::Code::DeadlineExceeded | tonic::Code::Cancelled => {
                external(absent(&self.address, status).into())
            }
            _ => remote(status.message()),
        }
    }
}

/// The state of a session of Ballista that opens object stores.
///
/// # Errors
///
/// Settings that contradict each other.
pub fn session_state(config: SessionConfig) -> Result<SessionState> {
    let state = default_session_builder(config)?;
    let builder = SessionStateBuilder::new_from_existing(state);
    Ok(builder.with_runtime_env(store::runtime()).build())
}

/// The name and the port of `HOST:PORT`, perhaps with `http://` before it.
#[must_use]
pub fn place(address: &str) -> Option<(String, u16)> {
    let place = address.trim_end_matches('/');
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    let (host, port) = place.rsplit_once(':')?;
    let port = port.parse().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// Whether a plan reads traces or files. Other plans need no cluster.
fn reads_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut reads = false;
    let looked = plan.apply(|node| {
        reads = node.is::<TraceExec>() || is_file_scan(node);
        Ok(match reads {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    reads && looked.is_ok()
}

fn is_file_scan(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<DataSourceExec>().is_some_and(|exec| {
        let source: &dyn Any = exec.data_source().as_ref();
        source.is::<FileScanConfig>()
    })
}

/// A part of an answer that could not be read.
enum Lost {
    /// Nothing of it was passed on.
    Nothing(String),
    /// Some rows of it were passed on.
    Rows(String),
}

/// Rows that are not passed on yet.
#[derive(Default)]
struct Kept {
    batches: Vec<RecordBatch>,
    bytes: usize,
    /// Some were passed on.
    flows: bool,
}

impl Kept {
    fn add(&mut self, batch: RecordBatch) {
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
    }

    /// Nothing of the answer was passed on.
    fn is_whole(&self) -> bool {
        !self.flows
    }

    fn forget(&mut self) {
        self.batches.clear();
        self.bytes = 0;
    }

    /// Passes them on; false if nothing more is wanted.
    async fn pass(&mut self, out: &Sender<Result<RecordBatch>>) -> bool {
        self.flows = true;
        self.bytes = 0;
        for batch in self.batches.drain(..) {
            if out.send(Ok(batch)).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// What each stage of a query did.
fn stages(metrics: GetJobMetricsResult) -> Result<String> {
    let mut lines = Vec::new();
    for stage in metrics.stages {
        let (number, partitions) = (stage.stage_id, stage.partitions);
        lines.push(format!("Stage {number}, partitions={partitions}"));
        for operator in stage.operators {
            let metrics = OperatorMetricsSet {
                metrics: operator.metrics,
            };
            let metrics: MetricsSet = metrics
                .try_into()
                .map_err(|error| remote(&format!("{error:?}")))?;
            let metrics = metrics.aggregate_by_name().sorted_for_display();
            let indent = "  ".repeat(operator.depth as usize + 1);
            let (what, metrics) = (operator.operator_desc, metrics.timestamps_removed());
            lines.push(format!("{indent}{what}, metrics=[{metrics}]"));
        }
    }
    Ok(lines.join("\n"))
}

/// An error that a scheduler reports, perhaps with one of ours in it.
fn remote(text: &str) -> DataFusionError {
    match wire::carried(text) {
        Some(carried) => DataFusionError::External(Box::new(carried)),
        None => {
            let message = format!("the cluster could not run the query: {text}");
            external(Diagnostic::new(Code::BadQuery, message).into())
        }
    }
}

fn absent(address: &str, error: &dyn std::error::Error) -> Diagnostic {
    // The first error only says that there is one.
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    let message = format!("cannot reach the scheduler at `{address}`: {inner}");
    Diagnostic::new(Code::NoScheduler, message)
        .help("start it with `hartrace scheduler`, or leave out --scheduler")
}

fn lost(error: &str) -> DataFusionError {
    let message = format!("an executor was lost with a part of the answer: {error}");
    let diagnostic = Diagnostic::new(Code::NoScheduler, message).help("run the query again");
    external(diagnostic.into())
}
