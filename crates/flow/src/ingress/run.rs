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

    /// Gives the branches, oldest first: their addresses, and whether they were
    /// taken. The function may end it early, with `false`.
    #[inline]
    pub fn branches_are(&self, mut each: impl FnMut(u64, bool) -> bool) -> bool {
        let own = self.itype.is_branch();
        let (first, last) = (self.first as usize, self.last as usize);
        let start = |insn: &Placed| self.last_addr.wrapping_sub(insn.offset.into());
        let start = self.code.get(last).map_or(0, start);
        let at = |offset: u16| start.wrapping_add(offset.into());
        let before = (last + 1).saturating_sub(usize::from(own));
        let good = match self.branches - u8::from(own) {
            0 => true,
            // The instruction before knows where it is.
            1 => {
                let insn = self.code.get(before.wrapping_sub(1));
                insn.is_some_and(|insn| each(at(insn.branch), false))
            }
            _ => {
                let insns = self.code.get(first..before).unwrap_or_default();
                let mut branches = insns.iter().filter(|insn| insn.is_branch());
                branches.all(|insn| each(at(insn.offset), false))
            }
        };
        good && (!own || each(self.last_addr, self.is_taken()))
    }

    /// Whether the last instruction is a branch that was taken.
    #[must_use]
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.itype == Itype::Taken
    }
}
