//! What all tasks of a stage need is computed once.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::error::Result;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};
use std::sync::Arc;

/// A join without equal columns collects its left side in each task: on a cluster that is once
/// for each partition of its right side. If traces or files are read for it, a stage of its own
/// reads them, and the tasks read its rows.
///
/// Ballista does the same for other joins.
#[derive(Debug)]
pub(crate) struct CollectOnce;

impl PhysicalOptimizerRule for CollectOnce {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let collects = node.is::<NestedLoopJoinExec>() || node.is::<CrossJoinExec>();
            let (left, right) = match node.children().as_slice() {
                [left, right] if collects => (Arc::clone(left), Arc::clone(right)),
                _ => return Ok(Transformed::no(node)),
            };
            if right.output_partitioning().partition_count() < 2 || !scans(&left) {
                return Ok(Transformed::no(node));
            }
            let left = Arc::new(CoalescePartitionsExec::new(left));
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            let join = node.replace_children(vec![left, right], options)?;
            Ok(Transformed::yes(join))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "collect_once"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the stage of a plan reads traces or files itself, not only rows of other stages.
fn scans(plan: &Arc<dyn ExecutionPlan>) -> bool {
    // Ballista leaves out other repartitions.
    let is_hashed = |plan: &RepartitionExec| matches!(plan.partitioning(), Partitioning::Hash(..));
    let is_stage = plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan
            .downcast_ref::<RepartitionExec>()
            .is_some_and(is_hashed);
    let children = plan.children();
    !is_stage && (children.is_empty() || children.into_iter().any(scans))
}
