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
    /// Decoded code, with the instructions of the run one after the other.
    pub code: &'a [Placed],
    /// Index of the last one in `code`.
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
        let last = self.last as usize;
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
                let end = self.code.get(last).map_or(0, Placed::end);
                let first = u32::from(end).saturating_sub(self.halfwords * 2);
                let insns = self.code.get(..before).unwrap_or_default();
                // Offsets are from the start of a piece: one that is greater belongs to
                // the piece before.
                let mut from = before;
                for insn in insns.iter().rev() {
                    if u32::from(insn.offset) < first || insn.offset >= end {
                        break;
                    }
                    from -= 1;
                    if u32::from(insn.offset) == first {
                        break;
                    }
                }
                let insns = insns.get(from..).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use hartrace_isa::{Flow, Isa};
    use hartrace_testkit::asm::{A0, A1, NOP, beq};

    /// Two pieces one after the other, offsets from the start of each.
    fn pieces() -> Vec<Placed> {
        let branch = beq(A0, A1, 8);
        let mut code = Vec::new();
        for piece in [
            &[branch, NOP, branch][..],
            &[NOP, branch, branch, NOP, branch, NOP],
        ] {
            let mut before = Placed::default();
            for &bits in piece {
                before = Placed::after(&before, bits, Flow::of(bits, Isa::RV64GC), 0);
                code.push(before);
            }
        }
        code
    }

    /// Every run of every piece gives the branches that it has.
    #[test]
    fn the_branches_of_every_run() {
        let code = pieces();
        for (piece, start) in [(0..3, 0x100u64), (3..9, 0x200)] {
            for first in piece.clone() {
                for last in first..piece.end {
                    let insns = &code[first..=last];
                    let end = &insns[insns.len() - 1];
                    let own = end.is_branch();
                    let run = IngressRun {
                        last_addr: start + u64::from(end.offset),
                        time: 0,
                        halfwords: u32::from(end.end() - insns[0].offset) / 2,
                        branch_halfwords: 0,
                        branches: insns.iter().filter(|i| i.is_branch()).count() as u8,
                        len: end.len,
                        itype: if own { Itype::Taken } else { Itype::None },
                        mode: Mode::M,
                        context: Context::default(),
                        code: &code,
                        last: last as u32,
                    };
                    let branches = insns.iter().filter(|i| i.is_branch());
                    let expected: Vec<_> = branches
                        .map(|i| (start + u64::from(i.offset), own && i.offset == end.offset))
                        .collect();
                    let mut found = Vec::new();
                    assert!(run.branches_are(|address, taken| {
                        found.push((address, taken));
                        true
                    }));
                    assert_eq!(found, expected, "{first}..={last}");
                    let stops = run.branches_are(|_, _| false);
                    assert_eq!(stops, expected.is_empty());
                }
            }
        }
    }
}
