//! Several blocks put together, for sinks that need not see each.

use hartrace_isa::Itype;

use crate::{Context, Mode, Placed};

/// What a port would show as blocks of one instruction each: instructions that
/// lie one after the other in memory, without a trap, a pulse or a change of mode
/// or context. Only the last one may be a jump, a direct one, or a branch that is
/// taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressRun<'a> {
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
    /// Decoded code, of which instructions `first` to `last` are those of the run.
    pub code: &'a [Placed],
    /// See `code`.
    pub first: u32,
    /// See `code`.
    pub last: u32,
}

impl IngressRun<'_> {
    /// The address after the last instruction; may pass the highest address.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.last_addr.wrapping_add(self.len as u64)
    }

    /// The branches, oldest first: their addresses, and whether they were taken.
    #[inline]
    pub fn outcomes(&self) -> impl Iterator<Item = (u64, bool)> {
        let (first, last) = (self.first as usize, self.last as usize);
        // One branch at the end is the usual case, and nothing has to be searched.
        let only = self.branches == 1 && self.itype.is_branch();
        let insns = match self.branches {
            0 => &[],
            _ if only => self.code.get(last..=last).unwrap_or_default(),
            _ => self.code.get(first..=last).unwrap_or_default(),
        };
        let offset = insns.last().map_or(0, |last| u64::from(last.offset));
        let start = self.last_addr.wrapping_sub(offset);
        let taken = self.is_taken().then_some(self.last_addr);
        insns
            .iter()
            .filter(|insn| insn.is_branch())
            .map(move |insn| {
                let address = start.wrapping_add(insn.offset.into());
                (address, taken == Some(address))
            })
    }

    /// Whether the last instruction is a branch that was taken.
    #[must_use]
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.itype == Itype::Taken
    }
}
