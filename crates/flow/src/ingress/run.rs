//! Several blocks put together, for sinks that need not see each.

use hartrace_isa::Itype;

use crate::{Context, Mode};

/// What a port would show as blocks of one instruction each: instructions that
/// lie one after the other in memory, without a trap, a pulse or a change of mode
/// or context. Only the last one may be a jump, a direct one, or a branch that is
/// taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressRun {
    /// Address of the last instruction.
    pub last_addr: u64,
    /// Time when the last instruction retired.
    pub time: u64,
    /// Halfwords retired.
    pub halfwords: u32,
    /// Halfwords up to and including the last branch.
    pub branch_halfwords: u32,
    /// Branches.
    pub branches: u8,
    /// Length of the last instruction in bytes.
    pub len: u8,
    /// `itype` of the last instruction.
    pub itype: Itype,
    /// Mode of all instructions.
    pub mode: Mode,
    /// Context of all instructions.
    pub context: Context,
}

impl IngressRun {
    /// The address after the last instruction; may pass the highest address.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.last_addr.wrapping_add(self.len as u64)
    }

    /// Whether the last instruction is a branch that was taken.
    #[must_use]
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.itype == Itype::Taken
    }
}
