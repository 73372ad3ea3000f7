//! Runs that a sink only counts, many at once.

use super::run::{IngressRun, IngressRuns, last_of, time_after};
use crate::{Amount, Placed, Role, Straight};
use hartrace_isa::Itype;

/// Takes runs one after the other ([`IngressRuns::pass`]).
///
/// Most of them are added to a [`Tally`], which the sink does not see. It is given back
/// before each run that the sink has to look at.
pub trait PassRuns {
    /// Outcomes of branches as the sink needs them.
    type Outcomes: PushOutcomes;

    /// An empty tally, full as soon as the sink has to look at a run.
    fn tally(&self) -> Tally<Self::Outcomes>;

    /// Takes what was counted with [`PassRuns::tally`].
    fn take(&mut self, tally: Tally<Self::Outcomes>);

    /// Accepts a run that did not fit into the tally, and that ends with anything but an
    /// indirect jump; or does nothing and says `false`.
    fn count(&mut self, run: Passing<'_>) -> bool;

    /// The same for a run that ends with an indirect jump to this address, where the
    /// [next](Passing::next) one is. Worth `#[inline(always)]`.
    fn jump(&mut self, run: Passing<'_>, itype: Itype, target: u64) -> bool;
}

/// Outcomes of branches in a register.
pub trait PushOutcomes: Copy {
    /// So many branches more, fewer than 64; only the last may be taken: 1, otherwise 0.
    fn push(&mut self, branches: u8, taken: u8);
}

/// Runs counted together: halfwords, branches and the outcomes of these. Small enough for
/// registers.
#[derive(Clone, Copy, Debug)]
pub struct Tally<O> {
    sum: Amount,
    empty: Amount,
    outcomes: O,
}

impl<O: PushOutcomes> Tally<O> {
    /// An empty one after these outcomes. It is full as soon as there are so many
    /// halfwords or branches, at most 127 of these, or somewhat earlier.
    #[must_use]
    #[inline(always)]
    pub const fn below(halfwords: u64, branches: u8, outcomes: O) -> Tally<O> {
        let empty = Amount::below(halfwords, branches);
        Tally {
            sum: empty,
            empty,
            outcomes,
        }
    }

    /// Adds a run with this last instruction, which may be a branch that was taken, or
    /// changes nothing and says `false`.
    #[inline(always)]
    fn add(&mut self, last: &Placed, taken: u8) -> bool {
        let sum = self.sum.plus(last.amount);
        let fits = !sum.is_full();
        if fits {
            self.sum = sum;
            self.outcomes.push(last.branches(), taken);
        }
        fits
    }

    /// The halfwords and branches counted.
    #[must_use]
    #[inline(always)]
    pub const fn counted(&self) -> Amount {
        self.sum.since(self.empty)
    }

    /// The outcomes.
    #[must_use]
    #[inline(always)]
    pub const fn outcomes(&self) -> O {
        self.outcomes
    }
}

impl<'a> IngressRuns<'a> {
    /// Passes runs that end with nothing above `most`, as long as they are accepted.
    /// Returns how many were passed, and the last one. Ends before a jump after which
    /// there is no run.
    ///
    /// For sinks that only count most runs: less is looked at than for a run of
    /// [`next`](Iterator::next), and those that the tally takes go through a loop of
    /// their own, so that what changes stays in registers.
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
        let code = self.code;
        let mut rest = pieces.iter();
        loop {
            let mut tally = sink.tally();
            while let Some(piece) = rest.as_slice().first()
                && let Some(last) = last_of(code, piece)
                && last.role <= counted
                && tally.add(last, piece.taken)
            {
                debug_assert_eq!(piece.taken != 0, self.is_taken(piece, last));
                rest.next();
            }
            sink.take(tally);
            let Some(run) = Passing::first_of(rest.as_slice(), code) else {
                break;
            };
            let accepted = if run.last.role <= counted {
                sink.count(run)
            } else if run.last.role <= most {
                let before = || role_before(pieces.len() - rest.len(), pieces, code);
                let itype = self.jump_at(run, || before().unwrap_or(self.before));
                match (itype, run.after.first()) {
                    (Some(itype), Some(next)) => sink.jump(run, itype, next.pc),
                    _ => false,
                }
            } else {
                false
            };
            if !accepted {
                break;
            }
            rest.next();
        }
        let passed = pieces.len() - rest.len();
        let (done, rest) = pieces.split_at_checked(passed)?;
        let piece = done.last()?;
        let last = last_of(code, piece)?;
        (self.before, self.pieces) = (last.role, rest.iter());
        let itype = match last.role {
            Role::Branch => return Some((passed, IngressRun::of_branch(piece, last))),
            Role::Plain | Role::Constant => Itype::None,
            Role::Direct | Role::Indirect => self.itype(piece, last),
        };
        Some((passed, IngressRun { piece, last, itype }))
    }

    /// `itype` of the indirect jump at the end of a run. `None` if that is not known yet,
    /// or the jump may be sequentially inferable. `before` says what the instruction
    /// before the run does.
    #[inline(always)]
    fn jump_at(&self, run: Passing<'_>, before: impl FnOnce() -> Role) -> Option<Itype> {
        let Passing { piece, last, .. } = run;
        // The first instruction of decoded code does not know what was before it.
        if last.before == Role::Constant && (piece.count > 1 || before() == Role::Constant) {
            return None;
        }
        let elsewhere = self.is_elsewhere(piece, last);
        self.kinds.itype(last.bits, elsewhere)
    }
}

/// What the last instruction before the piece with this index does, if there is one.
#[cold]
fn role_before(index: usize, pieces: &[Straight], code: &[Placed]) -> Option<Role> {
    let before = pieces.get(index.checked_sub(1)?)?;
    last_of(code, before).map(|insn| insn.role)
}

/// A run that is about to be passed.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    piece: &'a Straight,
    last: &'a Placed,
    after: &'a [Straight],
    code: &'a [Placed],
}

impl<'a> Passing<'a> {
    #[inline(always)]
    fn first_of(pieces: &'a [Straight], code: &'a [Placed]) -> Option<Passing<'a>> {
        let (piece, after) = pieces.split_first()?;
        let last = last_of(code, piece)?;
        Some(Passing {
            piece,
            last,
            after,
            code,
        })
    }

    /// The run after it, if that is known.
    #[must_use]
    #[inline(always)]
    pub fn next(&self) -> Option<Passing<'a>> {
        Passing::first_of(self.after, self.code)
    }

    /// What the last instruction does.
    #[must_use]
    #[inline(always)]
    pub const fn role(&self) -> Role {
        self.last.role
    }

    /// Address of the first instruction.
    #[must_use]
    #[inline(always)]
    pub const fn addr(&self) -> u64 {
        self.piece.pc
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
        self.last.branches()
    }

    /// 1 if the last instruction is a branch that was taken, otherwise 0.
    #[must_use]
    #[inline(always)]
    pub const fn taken(&self) -> u8 {
        self.piece.taken
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
    pub const fn begins_with_branch(&self) -> bool {
        self.last.from_branch
    }
}
