//! A plan on its way to another process.

use crate::codec::Sessions;
use crate::exec::TraceExec;
use crate::limits::Limits;
use crate::provider::external;
use crate::work::{Extent, Work};
use datafusion::arrow::array::{
    Array as _, AsArray as _, BinaryBuilder, RecordBatch, StringBuilder, UInt32Builder,
    UInt64Builder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt as _;
use hartrace_flow::Checkpoint;
use hartrace_print::diagnostic::{Code, Diagnostic, Severity};
use hartrace_tables::{Error, Given, Projection, Span, Stop, Table, TraceSource};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What is the same for all works of a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The session of the client; files stay open for the time of one.
    session: String,
    table: Table,
    columns: Vec<String>,
    extent: Extent,
    limits: Limits,
    /// What was given for traces; works refer to them by number.
    given: Vec<Given>,
}

/// A [`TraceExec`] whose works are the rows of a table in memory.
///
/// A scheduler gives each task some partitions of a plan. It knows how to take them out of a
/// table in memory, but not how to take them out of a plan of ours.
#[derive(Debug)]
pub(crate) struct SentExec {
    header: Header,
    trace: Arc<TraceExec>,
    works: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

/// Makes every scan of traces in a plan one that can be sent.
pub(crate) fn to_send(
    plan: Arc<dyn ExecutionPlan>,
    session: &str,
) -> Result<Arc<dyn ExecutionPlan>> {
    let sent = |node: Arc<dyn ExecutionPlan>| match node.downcast_ref::<TraceExec>() {
        Some(trace) => Ok(Transformed::yes(SentExec::of(trace, session)? as _)),
        None => Ok(Transformed::no(node)),
    };
    plan.transform_up(sent).data()
}

impl SentExec {
    fn of(trace: &TraceExec, session: &str) -> Result<Arc<SentExec>> {
        let mut given: Vec<Given> = Vec::new();
        let mut partitions = Vec::new();
        for works in trace.works() {
            partitions.push(match works.is_empty() {
                true => Vec::new(),
                false => vec![to_batch(works, &mut given)?],
            });
        }
        let source = MemorySourceConfig::try_new(&partitions, work_schema(), None)?;
        let names = trace.schema();
        let names = names.fields().iter().map(|field| field.name().clone());
        let header = Header {
            session: session.to_owned(),
            table: trace.table(),
            columns: names.collect(),
            extent: trace.extent(),
            limits: trace.limits().clone(),
            given,
        };
        let works = DataSourceExec::from_data_source(source);
        SentExec::new(header, works, &Sessions::default()).map(Arc::new)
    }

    /// A plan that was received.
    pub(crate) fn new(
        header: Header,
        works: Arc<dyn ExecutionPlan>,
        sessions: &Sessions,
    ) -> Result<SentExec> {
        let table = header.table;
        let full = table.full_schema();
        let mut columns = Vec::new();
        for name in &header.columns {
            columns.push(full.index_of(name)?);
        }
        let own = header.columns.iter().filter_map(|name| table.column(name));
        let own = own.fold(Projection::NONE, Projection::with);
        let schema = Arc::new(full.project(&columns)?);
        let (extent, limits) = (header.extent, header.limits.clone());
        let trace = TraceExec::new(
            (table, own),
            Arc::clone(&schema),
            Vec::new(),
            extent,
            limits,
        );
        let trace = trace.with_pool(sessions.pool(&header.session));
        Ok(SentExec::with(header, Arc::new(trace), works))
    }

    fn with(header: Header, trace: Arc<TraceExec>, works: Arc<dyn ExecutionPlan>) -> SentExec {
        let partitions = works.properties().output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(trace.schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        SentExec {
            header,
            trace,
            works,
            properties: Arc::new(properties),
        }
    }

    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    fn partitions(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }

    /// The works of a partition.
    fn works_of(&self, partition: usize) -> Result<Vec<Work>> {
        let memory = self.works.downcast_ref::<DataSourceExec>();
        let memory = memory.and_then(|exec| {
            let source: &dyn Any = exec.data_source().as_ref();
            source.downcast_ref::<MemorySourceConfig>()
        });
        let batches = memory.and_then(|memory| memory.partitions().get(partition));
        let mut works = Vec::new();
        for batch in batches.ok_or_else(damaged)? {
            let from = Received::new(batch, &self.header.given).ok_or_else(damaged)?;
            for row in 0..batch.num_rows() {
                works.push(from.work(row).ok_or_else(damaged)?);
            }
        }
        Ok(works)
    }
}

impl DisplayAs for SentExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.trace.describe(f, self.partitions())
    }
}

impl ExecutionPlan for SentExec {
    fn name(&self) -> &'static str {
        "TraceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.works]
    }

    /// The partitions are those of the works.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let works = children.into_iter().next().ok_or_else(damaged)?;
        let (header, trace) = (self.header.clone(), Arc::clone(&self.trace));
        Ok(Arc::new(SentExec::with(header, trace, works)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.trace.start(partition, self.works_of(partition)?);
        let rows = rows.map(|batch| batch.map_err(carry));
        let schema = self.trace.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.trace.metrics()
    }
}

/// The columns of works: where a trace is, its name, what was given for it, and for a part of
/// it where it starts and ends.
fn work_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("name", DataType::Utf8, false),
        Field::new("given", DataType::UInt32, false),
        Field::new("part", DataType::UInt32, false),
        Field::new("offset", DataType::UInt64, true),
        Field::new("position", DataType::UInt64, true),
        Field::new("state", DataType::Binary, true),
        Field::new("until", DataType::UInt64, true),
    ]))
}

fn to_batch(works: &[Work], given: &mut Vec<Given>) -> Result<RecordBatch> {
    let (mut paths, mut names) = (StringBuilder::new(), StringBuilder::new());
    let (mut givens, mut parts) = (UInt32Builder::new(), UInt32Builder::new());
    let (mut offsets, mut positions) = (UInt64Builder::new(), UInt64Builder::new());
    let (mut states, mut untils) = (BinaryBuilder::new(), UInt64Builder::new());
    for work in works {
        let (source, from, until) = match work {
            Work::Whole(source) => (source, None, None),
            Work::Part(span) => (&span.source, span.from.as_ref(), span.until),
        };
        let path = source.path.to_str().ok_or_else(|| {
            let path = source.path.display();
            let message = format!("the name of the trace `{path}` is not UTF-8 text");
            external(Diagnostic::new(Code::CannotOpen, message).into())
        })?;
        paths.append_value(path);
        names.append_value(&source.name);
        let known = given.iter().position(|known| *known == source.given);
        let at = known.unwrap_or_else(|| {
            given.push(source.given.clone());
            given.len() - 1
        });
        givens.append_value(u32::try_from(at).unwrap_or(u32::MAX));
        parts.append_value(matches!(work, Work::Part(_)).into());
        offsets.append_option(from.map(|stop| stop.checkpoint.offset));
        positions.append_option(from.map(|stop| stop.checkpoint.position));
        states.append_option(from.map(|stop| &stop.state));
        untils.append_option(until);
    }
    Ok(RecordBatch::try_new(
        work_schema(),
        vec![
            Arc::new(paths.finish()),
            Arc::new(names.finish()),
            Arc::new(givens.finish()),
            Arc::new(parts.finish()),
            Arc::new(offsets.finish()),
            Arc::new(positions.finish()),
            Arc::new(states.finish()),
            Arc::new(untils.finish()),
        ],
    )?)
}

/// Works that were received.
struct Received<'b> {
    batch: &'b RecordBatch,
    given: &'b [Given],
}

impl<'b> Received<'b> {
    /// `None` for a batch with other columns.
    fn new(batch: &'b RecordBatch, given: &'b [Given]) -> Option<Received<'b>> {
        let (has, wanted) = (batch.schema(), work_schema());
        let types = |schema: &Schema| -> Vec<DataType> {
            let fields = schema.fields().iter();
            fields.map(|field| field.data_type().clone()).collect()
        };
        (types(&has) == types(&wanted)).then_some(Received { batch, given })
    }

    fn number(&self, column: usize, row: usize) -> Option<u64> {
        let column = self.batch.column(column).as_primitive_opt::<UInt64Type>()?;
        (!column.is_null(row)).then(|| column.value(row))
    }

    fn text(&self, column: usize, row: usize) -> Option<&str> {
        let column = self.batch.column(column).as_string_opt::<i32>()?;
        (!column.is_null(row)).then(|| column.value(row))
    }

    fn small(&self, column: usize, row: usize) -> Option<u32> {
        let column = self.batch.column(column).as_primitive_opt::<UInt32Type>()?;
        (!column.is_null(row)).then(|| column.value(row))
    }

    fn work(&self, row: usize) -> Option<Work> {
        let given = usize::try_from(self.small(2, row)?).ok()?;
        let source = TraceSource {
            path: self.text(0, row)?.into(),
            name: self.text(1, row)?.to_owned(),
            given: self.given.get(given)?.clone(),
        };
        if self.small(3, row)? == 0 {
            return Some(Work::Whole(source));
        }
        let state = self.batch.column(6).as_binary_opt::<i32>()?;
        let from = match (self.number(4, row), self.number(5, row)) {
            (Some(offset), Some(position)) if !state.is_null(row) => Some(Stop {
                checkpoint: Checkpoint { offset, position },
                state: state.value(row).to_vec(),
            }),
            _ => None,
        };
        Some(Work::Part(Span {
            source,
            from,
            until: self.number(7, row),
        }))
    }
}

pub(crate) fn damaged() -> DataFusionError {
    let message = "a plan that was received is damaged";
    carry(external(Diagnostic::new(Code::WrongPlan, message).into()))
}

/// The begin and the end of one of our messages in those of other programs.
const MARKS: (char, char) = ('⟦', '⟧');

/// The end of a line in a message: other programs write escape sequences for real ones.
const LINE: char = '¶';

/// An error in a form that survives in the texts into which a scheduler and its executors turn
/// errors.
pub(crate) fn carry(error: DataFusionError) -> DataFusionError {
    let DataFusionError::External(inner) = error else {
        return error;
    };
    match inner.downcast::<Error>() {
        Ok(ours) => {
            let text = ours.0.plain(Severity::Error);
            let text: String = text.chars().map(carried_char).collect();
            let (code, (open, close)) = (ours.0.code.text(), MARKS);
            DataFusionError::Execution(format!("{open}{code} {text}{close}"))
        }
        Err(inner) => DataFusionError::External(inner),
    }
}

const fn carried_char(char: char) -> char {
    match char {
        '\n' => LINE,
        '"' => '\'',
        '\\' => '/',
        char => char,
    }
}

/// An error that comes from another process.
#[derive(Debug)]
pub struct Carried {
    /// Its code.
    pub code: Code,
    /// The whole message.
    pub text: String,
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Carried {}

/// The error that was carried, if a text has one.
pub(crate) fn carried(text: &str) -> Option<Carried> {
    let (_, rest) = text.split_once(MARKS.0)?;
    let (inner, _) = rest.split_once(MARKS.1)?;
    let (code, text) = inner.split_once(' ')?;
    let code = Code::ALL.iter().find(|known| known.text() == code)?;
    Some(Carried {
        code: *code,
        text: text.replace(LINE, "\n"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test ends where anything fails
mod tests;
