//! The plan that decodes traces.

use crate::limits::Limits;
use crate::pool::Pool;
use crate::provider::external;
use crate::work::{Extent, Work};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use hartrace_tables::{Completer, Error, Projection, Table, Take, Wanted};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Batches that wait for the query.
const WAITING: usize = 4;

/// A trace whose index is smaller than this is not worth keeping one for.
const INDEXED: u64 = 1 << 17;

/// Decodes traces, a partition at a time on a thread of its own.
#[derive(Debug)]
pub struct TraceExec {
    table: Table,
    projection: Projection,
    schema: SchemaRef,
    works: Vec<Vec<Work>>,
    extent: Extent,
    limits: Limits,
    pool: Arc<Pool>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TraceExec {
    /// A plan for the works of each partition. It has the wanted columns of a table, and the
    /// schema with those of the trace and the hart that are wanted, too.
    #[must_use]
    pub fn new(
        (table, projection): (Table, Projection),
        schema: SchemaRef,
        works: Vec<Vec<Work>>,
        extent: Extent,
        limits: Limits,
    ) -> TraceExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(works.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        TraceExec {
            table,
            projection,
            schema,
            works,
            extent,
            limits,
            pool: Arc::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// With traces that are open already.
    pub(crate) fn with_pool(mut self, pool: Arc<Pool>) -> TraceExec {
        self.pool = pool;
        self
    }

    /// The works of each partition.
    #[must_use]
    pub fn works(&self) -> &[Vec<Work>] {
        &self.works
    }

    /// The table.
    pub(crate) const fn table(&self) -> Table {
        self.table
    }

    /// How much of the traces is decoded.
    pub(crate) const fn extent(&self) -> Extent {
        self.extent
    }

    /// What the filters say.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Decodes works on a thread of its own.
    pub(crate) fn start(&self, partition: usize, works: Vec<Work>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), WAITING);
        let counter =
            |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let task = Task {
            works,
            pool: Arc::clone(&self.pool),
            wanted: Wanted::only(self.table, self.projection),
            limits: self.limits.clone(),
            schema,
            out: builder.tx(),
            rows: MetricBuilder::new(&self.metrics).output_rows(partition),
            bytes: counter("bytes_decoded"),
            instructions: counter("instructions_decoded"),
        };
        builder.spawn_blocking(move || {
            task.run();
            Ok(())
        });
        builder.build()
    }

    /// What a line of EXPLAIN says, with so many partitions.
    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>, partitions: usize) -> fmt::Result {
        let Extent {
            stretches,
            all_stretches,
            bytes,
            all_bytes,
            whole,
        } = self.extent;
        let table = self.table;
        write!(f, "TraceExec: table={table}, partitions={partitions}")?;
        if whole > 0 {
            write!(f, ", whole_traces={whole}")?;
        }
        if all_stretches > 0 {
            write!(f, ", stretches={stretches} of {all_stretches}")?;
            write!(f, ", bytes={bytes} of {all_bytes}")?;
        }
        let fields = self.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        write!(f, ", columns=[{}]", names.join(", "))
    }
}

impl DisplayAs for TraceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, self.works.len())
    }
}

impl ExecutionPlan for TraceExec {
    fn name(&self) -> &'static str {
        "TraceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let works = self.works.get(partition).cloned().unwrap_or_default();
        Ok(self.start(partition, works))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Decodes the works of a partition.
struct Task {
    works: Vec<Work>,
    pool: Arc<Pool>,
    wanted: Wanted,
    limits: Limits,
    schema: SchemaRef,
    out: Sender<Result<RecordBatch>>,
    rows: Count,
    bytes: Count,
    instructions: Count,
}

impl Task {
    fn run(&self) {
        for work in &self.works {
            let done = match work {
                Work::Whole(source) => self.whole(source),
                Work::Part(span) => self.part(span),
            };
            match done {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(error) => {
                    // A query that has gone away wants no error either.
                    let _ = self.out.blocking_send(Err(external(error)));
                    return;
                }
            }
        }
    }

    fn whole(&self, source: &hartrace_tables::TraceSource) -> Result<ControlFlow<()>, Error> {
        let opened = self.pool.open(source)?;
        let mut send = Sending::new(self, &source.name);
        let mut before = 0;
        let read = opened.read(&self.wanted, &mut send, &mut |done| {
            self.bytes
                .add(usize::try_from(done.saturating_sub(before)).unwrap_or(0));
            before = done;
        })?;
        let ended = send.ended;
        self.count(read.decoded.instructions);
        if let Some(index) = read.index
            && index.stretches.len() > 1
            && opened.replay.size() >= INDEXED
        {
            opened.keep_index(&index, self.wanted.has_time());
        }
        Ok(ended)
    }

    fn part(&self, span: &hartrace_tables::Span) -> Result<ControlFlow<()>, Error> {
        let opened = self.pool.open(&span.source)?;
        let mut send = Sending::new(self, &span.source.name);
        let place = (span.from.as_ref(), span.until);
        let decoded = opened.read_part(place, &self.wanted, &mut send)?;
        let ended = send.ended;
        let from = span.from.as_ref().map_or(0, |stop| stop.checkpoint.offset);
        let until = span.until.unwrap_or(opened.replay.size());
        self.bytes
            .add(usize::try_from(until.saturating_sub(from)).unwrap_or(0));
        self.count(decoded.instructions);
        Ok(ended)
    }

    fn count(&self, instructions: u64) {
        self.instructions
            .add(usize::try_from(instructions).unwrap_or(0));
    }
}

/// Gives batches to the query, with the columns of the trace and the hart.
struct Sending<'t> {
    task: &'t Task,
    completer: Completer,
    ended: ControlFlow<()>,
}

impl<'t> Sending<'t> {
    fn new(task: &'t Task, trace: &str) -> Sending<'t> {
        Sending {
            task,
            completer: Completer::new(Arc::clone(&task.schema), trace),
            ended: ControlFlow::Continue(()),
        }
    }
}

impl Take for Sending<'_> {
    fn batch(&mut self, _: Table, hart: u32, batch: RecordBatch) -> ControlFlow<()> {
        if !self.task.limits.allows_hart(hart) {
            return ControlFlow::Continue(());
        }
        let batch = self.completer.complete(hart, &batch);
        self.task
            .rows
            .add(batch.as_ref().map_or(0, RecordBatch::num_rows));
        if self
            .task
            .out
            .blocking_send(batch.map_err(Into::into))
            .is_err()
        {
            self.ended = ControlFlow::Break(());
        }
        self.ended
    }

    /// A query that has gone away is noticed where there are no rows, too.
    fn sync(&mut self) -> ControlFlow<(), bool> {
        if self.task.out.is_closed() {
            self.ended = ControlFlow::Break(());
        }
        self.ended?;
        ControlFlow::Continue(false)
    }
}
