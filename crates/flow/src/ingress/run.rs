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
            Role::Branch => match self.is_elsewhere(piece, last) {
                true => Itype::Taken,
                false => Itype::NotTaken,
            },
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
        let first = self.code.get(run.piece.first as usize);
        first.copied().unwrap_or_default()
    }

    /// Address of the next run.
    #[must_use]
    #[inline]
    pub fn next_addr(&self) -> Option<u64> {
        self.pieces.as_slice().first().map(|piece| piece.pc)
    }

    /// Passes runs that end with nothing above `most`, as long as they are accepted.
    /// Returns how many were passed, and the last one. Ends before a jump after which
    /// there is no run.
    ///
    /// For sinks that only count most runs: less is looked at than for a run of
    /// [`next`](Iterator::next), and those that its [`CountRuns`] takes go
    /// through a loop of their own, so that what changes stays in registers.
    #[inline(always)]
    pub fn pass(
        &mut self,
        most: Role,
        sink: &mut impl PassRuns,
    ) -> Option<(usize, IngressRun<'a>)> {
        // Jumps may be shown as branches, which a run does not count.
        let most = match self.config.all_jumps {
            true => most.min(Role::Branch),
            false => most,
        };
        let counted = most.min(Role::Direct);
        let pieces = self.pieces.as_slice();
        let (code, mask) = (self.code, self.mask);
        let mut rest = pieces.iter();
        loop {
            if let Some(mut counts) = sink.counts() {
                while let Some(piece) = rest.as_slice().first()
                    && let Some(last) = last_of(code, piece)
                    && last.role <= counted
                    && counts.add(last, is_taken(piece, last, mask))
                {
                    rest.next();
                }
                sink.set_counts(counts);
            }
            let Some((piece, others)) = rest.as_slice().split_first() else {
                break;
            };
            let Some(last) = last_of(code, piece).filter(|last| last.role <= most) else {
                break;
            };
            let run = Passing { piece, last, code };
            let accepted = if last.role == Role::Indirect {
                let jump = self.jump_at(pieces, run, others);
                jump.is_some_and(|(itype, target)| sink.jump(run, itype, target))
            } else {
                sink.count(run, is_taken(piece, last, mask))
            };
            if !accepted {
                break;
            }
            rest = others.iter();
        }
        let passed = pieces.len() - rest.len();
        let (done, rest) = pieces.split_at_checked(passed)?;
        let piece = done.last()?;
        let last = last_of(code, piece)?;
        (self.before, self.pieces) = (last.role, rest.iter());
        let itype = match last.role {
            Role::Branch => return Some((passed, self.branch(piece, last))),
            Role::Plain | Role::Constant => Itype::None,
            Role::Direct | Role::Indirect => self.itype(piece, last),
        };
        Some((passed, IngressRun { piece, last, itype }))
    }

    /// The indirect jump at the end of a piece: its `itype` and where it goes. `None` if
    /// that is not known yet, or the jump may be sequentially inferable.
    #[inline(always)]
    fn jump_at(
        &self,
        pieces: &[Straight],
        run: Passing<'_>,
        others: &[Straight],
    ) -> Option<(Itype, u64)> {
        let Passing { piece, last, .. } = run;
        let target = others.first()?.pc;
        if last.before == Role::Constant && self.role_before(pieces, piece)? == Role::Constant {
            return None;
        }
        let itype = self
            .kinds
            .itype(last.bits, self.is_elsewhere(piece, last))?;
        Some((itype, target))
    }

    /// What the instruction before the last one of a piece does, which `before` does not
    /// say for the first one: it may be that of the piece before.
    #[cold]
    fn role_before(&self, pieces: &[Straight], piece: &Straight) -> Option<Role> {
        if piece.count > 1 {
            return Some(Role::Constant);
        }
        let index = pieces
            .iter()
            .position(|other| core::ptr::eq(other, piece))?;
        match index.checked_sub(1) {
            Some(before) => last_of(self.code, pieces.get(before)?).map(|insn| insn.role),
            None => Some(self.before),
        }
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
            if last.role != Role::Branch || last.branches > most {
                break;
            }
            let mut other = None;
            if last.branches > 1 {
                // The instruction before knows where the last branch was.
                let index = (piece.first as usize + usize::from(piece.count)).wrapping_sub(2);
                let before = self.code.get(index);
                let offset = before.map_or(0, |before| before.branch);
                other = Some(piece.pc.wrapping_add(offset.into()));
            }
            if !accepts(self.branch(piece, last), other) {
                break;
            }
            passed += 1;
        }
        let (done, rest) = pieces.split_at_checked(passed)?;
        let piece = done.last()?;
        let last = last_of(self.code, piece)?;
        (self.before, self.pieces) = (Role::Branch, rest.iter());
        Some((passed, self.branch(piece, last)))
    }

    /// A run that ends with a branch.
    #[inline(always)]
    fn branch(&self, piece: &'a Straight, last: &'a Placed) -> IngressRun<'a> {
        let itype = match self.is_elsewhere(piece, last) {
            true => Itype::Taken,
            false => Itype::NotTaken,
        };
        IngressRun { piece, last, itype }
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
        let first = run.piece.first as usize;
        let whole = || self.code.get(first..first + usize::from(run.piece.count));
        let insns = self.part.or_else(whole).unwrap_or_default();
        let offset = insns.last().map_or(0, |last| last.offset);
        (run.last_addr().wrapping_sub(offset.into()), insns)
    }

    /// Whether the hart went elsewhere than to the next instruction in memory.
    #[inline(always)]
    fn is_elsewhere(&self, piece: &Straight, last: &Placed) -> bool {
        is_elsewhere(piece, last, self.mask)
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
    fn itype(&mut self, piece: &Straight, last: &Placed) -> Itype {
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

/// Accepts runs one by one ([`IngressRuns::pass`]), or changes nothing and says
/// `false`. Worth `#[inline(always)]`.
pub trait PassRuns {
    /// What changes with most runs.
    type Counts: CountRuns;

    /// A copy of it, which takes the next runs; `None` if something else must see the
    /// next one.
    fn counts(&self) -> Option<Self::Counts>;

    /// Takes it back.
    fn set_counts(&mut self, counts: Self::Counts);

    /// A run that the counts did not take, and that ends with anything but an indirect
    /// jump; whether that is a branch that was taken.
    fn count(&mut self, run: Passing<'_>, taken: bool) -> bool;

    /// A run that ends with an indirect jump to this address.
    fn jump(&mut self, run: Passing<'_>, itype: Itype, target: u64) -> bool;
}

/// Counts runs and their branches; small enough for registers.
pub trait CountRuns {
    /// Adds a run with this last instruction, which may be a branch that was taken, or
    /// changes nothing and says `false`.
    fn add(&mut self, last: &Placed, taken: bool) -> bool;
}

/// A run that is about to be passed.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    piece: &'a Straight,
    last: &'a Placed,
    code: &'a [Placed],
}

impl Passing<'_> {
    /// Address of the first instruction.
    #[must_use]
    #[inline(always)]
    pub const fn addr(&self) -> u64 {
        self.piece.pc
    }

    /// The last instruction.
    #[must_use]
    #[inline(always)]
    pub const fn last(&self) -> &Placed {
        self.last
    }

    /// Time when the last instruction retired.
    #[must_use]
    #[inline(always)]
    pub const fn time(&self) -> u64 {
        time_after(self.piece, self.last)
    }

    /// Halfwords retired.
    #[must_use]
    #[inline(always)]
    pub const fn halfwords(&self) -> u64 {
        self.last.halfwords()
    }

    /// Number of branches.
    #[must_use]
    #[inline(always)]
    pub const fn branches(&self) -> u8 {
        self.last.branches
    }

    /// Whether it is one instruction only.
    #[must_use]
    #[inline(always)]
    pub const fn is_single(&self) -> bool {
        self.piece.count == 1
    }

    /// Whether the last instruction is a branch.
    #[must_use]
    #[inline(always)]
    pub fn ends_with_branch(&self) -> bool {
        self.last.is_branch()
    }

    /// Whether the first instruction is a branch.
    #[must_use]
    #[inline(always)]
    pub fn begins_with_branch(&self) -> bool {
        let first = self.code.get(self.piece.first as usize);
        first.is_some_and(Placed::is_branch)
    }
}

/// Time when a piece with this last instruction has retired.
#[inline(always)]
const fn time_after(piece: &Straight, last: &Placed) -> u64 {
    let cost = last.cost as u64 + piece.extra as u64;
    piece.time.wrapping_add(cost)
}

/// Whether the hart went elsewhere than to the next instruction in memory.
#[inline(always)]
fn is_elsewhere(piece: &Straight, last: &Placed, mask: u64) -> bool {
    let end = piece.pc.wrapping_add(last.end.into());
    (piece.next ^ end) & mask != 0
}

/// Whether a piece ends with a branch that was taken.
#[inline(always)]
fn is_taken(piece: &Straight, last: &Placed, mask: u64) -> bool {
    is_elsewhere(piece, last, mask) & (last.role == Role::Branch)
}

/// The last instruction of a piece.
#[inline(always)]
fn last_of<'a>(code: &'a [Placed], piece: &Straight) -> Option<&'a Placed> {
    code.get((piece.first as usize + usize::from(piece.count)).wrapping_sub(1))
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

impl IngressRun<'_> {
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
        self.last.branches
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
