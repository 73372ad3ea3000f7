//! Calls that have ended, before they are rows.

use crate::names::FunctionNames;
use crate::rows::Calls;
use crate::table::Projection;
use arrow_array::{RecordBatch, StringArray};
use hartrace_analyze::{FunctionId, How, Moment};
use std::sync::Arc;

/// Calls that become rows at a time: they fit into the smallest cache of a core.
const TOGETHER: usize = 128;

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) function: FunctionId,
    pub(super) caller: Option<FunctionId>,
    pub(super) thread: u32,
    pub(super) context: Option<u64>,
    pub(super) depth: u32,
    /// 0 if the call was not seen.
    pub(super) site: u64,
    pub(super) begin: Moment,
    pub(super) end: Moment,
    /// Instructions and time.
    pub(super) cost: Option<(u64, u64)>,
    pub(super) how: How,
    pub(super) whole: bool,
}

/// The rows of calls. Calls end one by one, which is written down in one place; then column after
/// column takes its values of many calls.
pub(crate) struct CallRows {
    ended: Vec<Ended>,
    rows: Calls,
}

impl CallRows {
    pub(super) fn new(projection: Projection) -> CallRows {
        CallRows {
            ended: Vec::with_capacity(TOGETHER),
            rows: Calls::new(projection),
        }
    }

    /// A call has ended. Whether there are enough rows for a batch.
    #[inline]
    pub(super) fn push(&mut self, call: Ended, names: &FunctionNames) -> bool {
        self.ended.push(call);
        if self.ended.len() >= TOGETHER {
            self.settle(names);
        }
        self.rows.end_row()
    }

    /// The rows since the last time, if there are any.
    pub(crate) fn take(
        &mut self,
        names: &FunctionNames,
        functions: &Arc<StringArray>,
    ) -> Option<RecordBatch> {
        self.settle(names);
        self.rows.take(functions)
    }

    /// Gives the columns the values of all calls.
    #[inline(never)]
    fn settle(&mut self, names: &FunctionNames) {
        let (rows, all) = (&mut self.rows, &self.ended);
        let key = |function| names.key(function);
        rows.thread.extend(all.iter().map(|c| c.thread));
        rows.context.extend(all.iter().map(|c| c.context));
        rows.function.extend(all.iter().map(|c| key(c.function)));
        rows.caller
            .extend(all.iter().map(|c| c.caller.and_then(key)));
        rows.site
            .extend(all.iter().map(|c| (c.site != 0).then_some(c.site)));
        rows.depth.extend(all.iter().map(|c| c.depth));
        rows.begin.extend(all.iter().map(|c| c.begin.insn));
        rows.end.extend(all.iter().map(|c| c.end.insn));
        rows.begin_time.extend(all.iter().map(|c| c.begin.time));
        rows.end_time.extend(all.iter().map(|c| c.end.time));
        rows.instructions
            .extend(all.iter().map(|c| c.cost.map(|cost| cost.0)));
        rows.cycles.extend(all.iter().map(Ended::cycles));
        rows.ended.extend(all.iter().map(|c| Some(c.how as u8)));
        rows.whole.extend(all.iter().map(|c| c.whole));
        self.ended.clear();
    }
}

impl Ended {
    /// The time that it took, where times are known.
    fn cycles(&self) -> Option<u64> {
        let timed = self.begin.time.and(self.end.time);
        self.cost.and_then(|cost| timed.map(|_| cost.1))
    }
}
