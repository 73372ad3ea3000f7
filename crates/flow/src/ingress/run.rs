//! Several blocks put together, for sinks that need not see each.

use core::slice;

use hartrace_isa::Itype;

use super::PortConfig;
use super::kinds::Kinds;
use crate::{Context, Mode, Placed, Role, Straight};

/// Runs of one hart that follow each other, up to one that a port must show as
/// single blocks.
#[derive(Debug)]
pub struct IngressRuns<'a> {
    /// Mode of all instructions.
    pub mode: Mode,
    /// Context of all instructions.
    pub context: Context,
    pub(super) code: &'a [Placed],
    pub(super) pieces: slice::Iter<'a, Straight>,
    /// The instructions, where there is only a part of a piece.
    pub(super) part: Option<&'a [Placed]>,
    /// The bits of an address.
    pub(super) mask: u64,
    /// Of the instruction before the next run, where it is known.
    pub(super) before: Role,
    pub(super) kinds: &'a mut Kinds,
    pub(super) config: &'a PortConfig,
}

impl<'a> Iterator for IngressRuns<'a> {
    type Item = IngressRun<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<IngressRun<'a>> {
        let piece = self.pieces.next()?;
        let last = last_of(self.code, piece)?;
        let itype = match last.role {
            Role::Branch => {
                debug_assert_eq!(piece.taken != 0, self.is_taken(piece, last));
                self.before = Role::Branch;
                return Some(IngressRun::of_branch(piece, last));
            }
            Role::Plain | Role::Constant => Itype::None,
            Role::Direct | Role::Indirect => match self.jump(piece, last) {
                Some(itype) => itype,
                None => {
                    // None of those after it either.
                    self.pieces = [].iter();
                    return None;
                }
            },
        };
        self.before = last.role;
        Some(IngressRun { piece, last, itype })
    }
}

impl<'a> IngressRuns<'a> {
    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.as_slice().is_empty()
    }

    /// The first instruction of a run.
    #[must_use]
    #[inline]
    pub fn first(&self, run: &IngressRun<'_>) -> Placed {
        let first = self.code.get(run.piece.first());
        first.copied().unwrap_or_default()
    }

    /// Time when the first of several instructions of a run retired.
    #[must_use]
    #[inline]
    pub fn first_time(&self, run: &IngressRun<'_>) -> u64 {
        let cost = self.first(run).cost;
        run.piece.time.wrapping_add(cost.into())
    }

    /// Time when a branch of a run retired: the one with this number, counted from 1.
    #[must_use]
    #[inline(never)]
    pub fn branch_time(&self, run: &IngressRun<'_>, number: u8) -> u64 {
        let (_, insns) = self.insns(run);
        let index = usize::from(number).wrapping_sub(1);
        let branch = insns.iter().filter(|insn| insn.is_branch()).nth(index);
        let last = insns.last().map(|insn| insn.offset);
        match branch.filter(|branch| Some(branch.offset) != last) {
            Some(branch) => run.piece.time.wrapping_add(branch.cost.into()),
            None => run.time(),
        }
    }

    /// Address of the next run.
    #[must_use]
    #[inline]
    pub fn next_addr(&self) -> Option<u64> {
        self.pieces.as_slice().first().map(|piece| piece.pc)
    }

    /// Passes runs that end with a branch and have at most one more, as long as the
    /// function accepts them, given the address of that one. Returns how many were
    /// passed, and the last.
    #[inline(always)]
    pub fn pass_branches(
        &mut self,
        mut accepts: impl FnMut(IngressRun<'a>, Option<u64>) -> bool,
    ) -> Option<(usize, IngressRun<'a>)> {
        let most = if self.part.is_some() { 1 } else { 2 };
        let pieces = self.pieces.as_slice();
        let mut passed = 0;
        for piece in pieces {
            let Some(last) = last_of(self.code, piece) else {
                break;
            };
            if last.role != Role::Branch || last.branches() > most {
                break;
            }
            let mut other = None;
            if last.branches() > 1 {
                // The instruction before knows where the last branch was.
                let before = self.code.get((piece.last as usize).wrapping_sub(1));
                let offset = before.map_or(0, |before| before.branch);
                other = Some(piece.pc.wrapping_add(offset.into()));
            }
            if !accepts(IngressRun::of_branch(piece, last), other) {
                break;
            }
            passed += 1;
        }
        let (done, rest) = pieces.split_at_checked(passed)?;
        let piece = done.last()?;
        let last = last_of(self.code, piece)?;
        (self.before, self.pieces) = (Role::Branch, rest.iter());
        Some((passed, IngressRun::of_branch(piece, last)))
    }

    /// Gives the addresses of the branches before the last instruction of a run,
    /// newest first. None of them was taken.
    #[inline]
    pub fn inner_branches(&self, run: &IngressRun<'_>, mut each: impl FnMut(u64)) {
        let (start, insns) = self.insns(run);
        let own = run.itype.is_branch();
        let mut left = run.branches() - u8::from(own);
        let mut index = insns.len().wrapping_sub(1 + usize::from(own));
        while left > 0
            && let Some(insn) = insns.get(index)
        {
            index = index.wrapping_sub(insn.since_branch.into());
            if insn.is_branch() {
                each(start.wrapping_add(insn.offset.into()));
                index = index.wrapping_sub(1);
                left -= 1;
            }
        }
    }

    /// The same, oldest first; slower.
    pub fn inner_branches_in_order(&self, run: &IngressRun<'_>, mut each: impl FnMut(u64)) {
        let (start, insns) = self.insns(run);
        let insns = match insns.split_last() {
            Some((_, insns)) if run.itype.is_branch() => insns,
            _ => insns,
        };
        for insn in insns.iter().filter(|insn| insn.is_branch()) {
            each(start.wrapping_add(insn.offset.into()));
        }
    }

    /// The instructions of a run, and the address that their offsets count from:
    /// they may be part of a longer piece.
    #[inline]
    fn insns(&self, run: &IngressRun<'_>) -> (u64, &'a [Placed]) {
        let piece = run.piece;
        let whole = || self.code.get(piece.first()..piece.last as usize + 1);
        let insns = self.part.or_else(whole).unwrap_or_default();
        let offset = insns.last().map_or(0, |last| last.offset);
        (run.last_addr().wrapping_sub(offset.into()), insns)
    }

    /// Whether the hart went elsewhere than to the next instruction in memory.
    #[inline(always)]
    pub(super) fn is_elsewhere(&self, piece: &Straight, last: &Placed) -> bool {
        let end = piece.pc.wrapping_add(last.end.into());
        (piece.next ^ end) & self.mask != 0
    }

    /// What [`Straight::taken`] must say.
    pub(super) fn is_taken(&self, piece: &Straight, last: &Placed) -> bool {
        last.role == Role::Branch && self.is_elsewhere(piece, last)
    }

    /// `itype` of a jump that a run may end with.
    #[inline(always)]
    fn jump(&mut self, piece: &Straight, last: &Placed) -> Option<Itype> {
        let itype = self.itype(piece, last);
        // A port may show it as a branch, which the run does not count.
        let branch = itype.is_branch();
        if branch || last.role == Role::Indirect && self.is_sequential(piece, last) {
            return None;
        }
        Some(itype)
    }

    /// `itype` of a jump at the end of a piece.
    #[inline(always)]
    pub(super) fn itype(&mut self, piece: &Straight, last: &Placed) -> Itype {
        let elsewhere = self.is_elsewhere(piece, last);
        match self.kinds.itype(last.bits, elsewhere) {
            Some(itype) => itype,
            None => self.new_kind(last.bits, elsewhere),
        }
    }

    #[cold]
    fn new_kind(&mut self, bits: u32, elsewhere: bool) -> Itype {
        self.kinds.of(bits, self.config).itype(elsewhere)
    }

    /// Whether the jump at the end of a piece may be sequentially inferable.
    #[inline(always)]
    fn is_sequential(&self, piece: &Straight, last: &Placed) -> bool {
        let before = match piece.count {
            1 => self.before,
            _ => last.before,
        };
        before == Role::Constant
    }
}

/// Time when a piece with this last instruction has retired.
#[inline(always)]
pub(super) const fn time_after(piece: &Straight, last: &Placed) -> u64 {
    let cost = last.cost as u64 + piece.extra as u64;
    piece.time.wrapping_add(cost)
}

/// The last instruction of a piece.
#[inline(always)]
pub(super) fn last_of<'a>(code: &'a [Placed], piece: &Straight) -> Option<&'a Placed> {
    code.get(piece.last as usize)
}

/// What a port would show as blocks of one instruction each: instructions that
/// lie one after the other in memory, without a trap, a pulse or a change of mode
/// or context. Only the last one may be a jump, one that is not sequentially
/// inferable, or a branch that is taken.
///
/// Most sinks need little of most runs, so everything is computed when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressRun<'a> {
    /// The instructions.
    pub(super) piece: &'a Straight,
    /// The last one.
    pub(super) last: &'a Placed,
    /// `itype` of the last instruction.
    pub(super) itype: Itype,
}

impl<'a> IngressRun<'a> {
    /// One that ends with a branch.
    #[inline(always)]
    pub(super) fn of_branch(piece: &'a Straight, last: &'a Placed) -> IngressRun<'a> {
        let itype = match piece.taken {
            0 => Itype::NotTaken,
            _ => Itype::Taken,
        };
        IngressRun { piece, last, itype }
    }

    /// Address of the first instruction.
    #[must_use]
    #[inline]
    pub const fn addr(&self) -> u64 {
        self.piece.pc
    }

    /// Address of the last instruction.
    #[must_use]
    #[inline]
    pub const fn last_addr(&self) -> u64 {
        self.piece.pc.wrapping_add(self.last.offset as u64)
    }

    /// The address after the last instruction; may pass the highest address.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.piece.pc.wrapping_add(self.last.end as u64)
    }

    /// Time when the last instruction retired.
    #[must_use]
    #[inline]
    pub const fn time(&self) -> u64 {
        time_after(self.piece, self.last)
    }

    /// Halfwords retired.
    #[must_use]
    #[inline]
    pub const fn halfwords(&self) -> u64 {
        (self.last.end / 2) as u64
    }

    /// Halfwords up to and including the last branch.
    #[must_use]
    #[inline]
    pub const fn branch_halfwords(&self) -> u64 {
        (self.last.branch_end / 2) as u64
    }

    /// Whether it is one instruction only.
    #[must_use]
    #[inline]
    pub const fn is_single(&self) -> bool {
        self.piece.count == 1
    }

    /// Number of branches.
    #[must_use]
    #[inline]
    pub const fn branches(&self) -> u8 {
        self.last.branches()
    }

    /// `itype` of the last instruction.
    #[must_use]
    #[inline]
    pub const fn itype(&self) -> Itype {
        self.itype
    }

    /// Whether the last instruction has an `itype` other than that of a branch.
    #[must_use]
    #[inline]
    pub fn jumps(&self) -> bool {
        !self.itype.is_branch() && self.itype != Itype::None
    }

    /// Whether the last instruction is a branch that was taken.
    #[must_use]
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.itype == Itype::Taken
    }
}
