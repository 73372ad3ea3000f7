//! What samples of control transfers tell: the reports of profilers.
//!
//! A [`Sample`] is a moment and the transfers before it, as Control Transfer
//! Records and the branch records of other machines keep them. Most reports
//! count over many samples; [`Table`] explains one.

mod autofdo;
mod blocks;
mod branches;
mod brstack;
mod folded;
mod table;

pub use autofdo::AutoFdo;
pub use blocks::{Block, Blocks};
pub use branches::{Branches, Edge};
pub use brstack::{BrStack, Fields, mmap_events};
pub use folded::Folded;
pub use table::Table;

use hartrace_flow::Transfer;
use hartrace_isa::Itype;

/// A moment, and how the hart came there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The next instruction, where known.
    pub pc: Option<u64>,
    /// The transfers before it, the newest first.
    pub transfers: &'a [Transfer],
    /// Older ones may have been overwritten. Of calls that have not returned
    /// these are the outermost.
    pub cut: bool,
}

impl Sample<'_> {
    /// Where the hart is, or else where it went last.
    fn place(&self) -> Option<u64> {
        let went = || self.transfers.first().map(|t| t.target);
        self.pc.or_else(went).filter(|pc| *pc != 0)
    }

    /// The transfers that went elsewhere, the newest first.
    fn taken(&self) -> impl Iterator<Item = &Transfer> {
        self.transfers.iter().filter(|t| t.kind != Itype::NotTaken)
    }
}

/// The type of a transfer in words.
pub(crate) const fn kind_name(kind: Itype) -> &'static str {
    match kind {
        Itype::None | Itype::Reserved => "unknown",
        Itype::Exception => "exception",
        Itype::Interrupt => "interrupt",
        Itype::TrapReturn => "trap return",
        Itype::NotTaken => "not taken",
        Itype::Taken => "taken",
        Itype::Uninferable => "uninferable",
        Itype::IndirectCall => "indirect call",
        Itype::DirectCall => "direct call",
        Itype::IndirectJump => "indirect jump",
        Itype::DirectJump => "direct jump",
        Itype::Swap => "swap",
        Itype::Return => "return",
        Itype::OtherIndirect => "other indirect",
        Itype::OtherDirect => "other direct",
    }
}

/// `12.3 %` of a whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
pub(crate) fn testing(source: u64, target: u64, kind: Itype) -> Transfer {
    Transfer {
        source,
        target,
        kind,
        ..Transfer::default()
    }
}
