//! A table over traces.

use crate::exec::TraceExec;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::work::Plan;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use hartrace_tables::{Error, Projection, Table, TraceSource, Wanted};
use std::sync::Arc;

/// A trace that is smaller is decoded as a whole.
const SMALL: u64 = 1 << 17;

/// A table over any number of traces, which are decoded while a query runs.
#[derive(Debug)]
pub struct TraceTable {
    table: Table,
    sources: Vec<TraceSource>,
    schema: SchemaRef,
    pool: Arc<Pool>,
}

/// An error of ours as one of a query.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl TraceTable {
    pub(crate) fn new(table: Table, sources: Vec<TraceSource>, pool: Arc<Pool>) -> TraceTable {
        TraceTable {
            table,
            sources,
            schema: table.full_schema(),
            pool,
        }
    }

    /// Which columns of the table a projection of the full schema has.
    fn own(&self, projection: &[usize]) -> Projection {
        let first = self.schema.fields().len() - self.table.columns().len();
        let own = projection.iter().filter_map(|at| at.checked_sub(first));
        own.fold(Projection::NONE, Projection::with)
    }

    /// What is decoded: everything, but for stretches without wanted rows.
    fn plan(&self, projection: Projection, limits: &Limits, partitions: usize) -> Result<Plan> {
        let mut plan = Plan::default();
        let wanted = self.sources.iter();
        let wanted: Vec<&TraceSource> = wanted.filter(|s| limits.allows_trace(&s.name)).collect();
        let timed = Wanted::only(self.table, projection).has_time();
        for source in &wanted {
            if !Pool::has_room(wanted.len()) || !self.table.is_of_flow() {
                plan.add_whole(source, 1);
                continue;
            }
            let opened = self.pool.open(source).map_err(external)?;
            let size = opened.replay.size();
            let index = match size >= SMALL && opened.can_start_anywhere() {
                true => opened.known_index(timed),
                false => None,
            };
            match index {
                Some(index) => {
                    let most = match self.table.can_join(projection) {
                        true => size.div_ceil(2 * partitions as u64).max(SMALL),
                        false => 0,
                    };
                    plan.add(source, (self.table, &index), limits, most);
                }
                None => plan.add_whole(source, size),
            }
        }
        Ok(plan)
    }
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters only leave out stretches: the rows of the others are filtered as usual.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match Limits::has(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let columns = projection.unwrap_or(&all);
        let limits = Limits::new(filters);
        let partitions = state.config().target_partitions().max(1);
        let own = self.own(columns);
        let plan = self.plan(own, &limits, partitions)?;
        let extent = plan.extent;
        let works = plan.divide(partitions);
        let schema = Arc::new(self.schema.project(columns)?);
        let exec = TraceExec::new((self.table, own), schema, works, extent, limits);
        Ok(Arc::new(exec.with_pool(Arc::clone(&self.pool))))
    }
}
