//! Loads of the split interface that are in progress.

use alloc::collections::VecDeque;

use super::DataIngress;

/// Split loads of one hart.
#[derive(Debug, Default)]
pub(super) struct Loads {
    /// Responses to come, and after which instruction.
    pub(super) responses: VecDeque<(u64, DataIngress)>,
    /// Instructions so far.
    pub(super) insns: u64,
    /// The id of the next load.
    pub(super) next: u16,
}
