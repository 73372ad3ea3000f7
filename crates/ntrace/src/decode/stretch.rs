//! One stretch of execution: its halfwords, its branches and how it ended
//! (11.1).

use hartrace_flow::{Cause, Consumer, Event, Evidence, Exit, Image, SpaceId, Stop};
use hartrace_flow::{Trap, Walk};

use super::end::{End, Trouble};
use super::source::Source;
use super::{Ctx, Settings};
use crate::{Fault, StackKind, TrapTypes};

impl Source {
    /// Walks one stretch. What was counted before and what was walked before
    /// (ResourceFull) is settled here.
    #[inline]
    pub(super) fn stretch<E: Evidence, C: Consumer>(
        &mut self,
        icnt: u64,
        evidence: &mut E,
        end: End,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let mut left = self.settle(icnt)?;
        let stop = self
            .track
            .walk
            .advance(cx.blocks, evidence, &mut left, cx.out);
        match (stop, end) {
            // The most frequent way to end comes first.
            (Stop::Target(_), End::Jump(to))
                if left == u64::from(self.track.walk.to_decision(cx.blocks))
                    && evidence.left() == 0 =>
            {
                self.track.walk.target(cx.blocks, to, cx.out);
                Ok(())
            }
            _ => self.end_otherwise((stop, left, evidence.left()), end, cx),
        }
    }

    /// Walks a stretch that ends with a taken branch, all others not taken.
    #[inline]
    pub(super) fn direct_stretch<C: Consumer>(
        &mut self,
        icnt: u64,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let mut left = self.settle(icnt)?;
        let mut last = LastTaken { met: false };
        let stop = self
            .track
            .walk
            .advance(cx.blocks, &mut last, &mut left, cx.out);
        if stop == Stop::Arrived && last.met {
            return Ok(());
        }
        self.end_otherwise((stop, left, 0), End::Branch, cx)
    }

    /// Halfwords to walk: what was counted, less what was walked before.
    #[inline]
    fn settle(&mut self, icnt: u64) -> Result<u64, Trouble> {
        let counted = core::mem::take(&mut self.owed).saturating_add(icnt);
        let ahead = core::mem::take(&mut self.ahead);
        counted
            .checked_sub(ahead)
            .ok_or((Fault::CountTooSmall, icnt))
    }

    /// All the other ways to end.
    #[cold]
    fn end_otherwise<C: Consumer>(
        &mut self,
        (stop, left, outcomes): (Stop, u64, u64),
        end: End,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let walk = &mut self.track.walk;
        match stop {
            Stop::Arrived => {}
            Stop::Branch => last_branch(walk, left, end, cx)?,
            Stop::Target(exit) => {
                let last = left == u64::from(walk.to_decision(cx.blocks));
                if !last {
                    return Err((Fault::UnreportedJump, walk.decision(cx.blocks)));
                }
                last_jump(walk, exit, left, end, cx)?;
            }
            Stop::Trap => {
                let pc = walk.pc(cx.blocks);
                let image = cx.blocks.image();
                let fits = image.fetch(walk.space(), pc);
                let fits = fits.is_some_and(|f| u64::from(f.len / 2) == left);
                // An ecall that the encoder counts as retired ends a stretch;
                // where the trace stops, its trap is not reported.
                if !fits || !(is_trap(cx.settings, end) || end == End::Open) {
                    return Err((Fault::UnreportedTrap, pc));
                }
                // The reference takes it for a call.
                let ring = cx.settings.config.stack_kind == StackKind::ReferenceRing;
                if let Some(stack) = walk.stack().filter(|_| ring) {
                    stack.push(pc.wrapping_add(left * 2));
                }
            }
            Stop::Missing => return Err((Fault::NoCode, walk.pc(cx.blocks))),
            Stop::HalfInstruction => return Err((Fault::HalfInstruction, walk.pc(cx.blocks))),
            Stop::Contradiction => return Err((Fault::JumpNotTaken, walk.decision(cx.blocks))),
            Stop::Endless => return Err((Fault::EndlessLoop, walk.pc(cx.blocks))),
        }
        if outcomes > 0 {
            return Err((Fault::LeftoverHistory, outcomes));
        }
        self.go_on(stop, end, cx)
    }

    /// The count is used up: goes where the message says.
    fn go_on<C: Consumer>(
        &mut self,
        stop: Stop,
        end: End,
        cx: &mut Ctx<'_, '_, C>,
    ) -> Result<(), Trouble> {
        let pc = self.track.walk.pc(cx.blocks);
        let jumped = matches!(stop, Stop::Target(_));
        match end {
            End::Branch => Err((Fault::NotABranch, pc)),
            End::Jump(_) if jumped => Ok(()),
            // Whether a jump to a constant is reported is up to the encoder.
            End::Jump(to) if cx.settings.config.sequential_jump && pc == to => Ok(()),
            End::Jump(to) if is_trap(cx.settings, end) => {
                self.trap(pc, to, Cause::Unknown, cx);
                Ok(())
            }
            End::Jump(to) if self.ends_in_custom(cx.blocks.image(), pc) => {
                self.track.walk.restart(cx.blocks, to);
                Ok(())
            }
            End::Jump(_) => Err((Fault::NotAJump, pc)),
            End::Trap(cause, to) => {
                self.trap(pc, to, cause, cx);
                Ok(())
            }
            End::Here { to, .. } if pc == to => Ok(()),
            End::Here { to, .. } if is_trap(cx.settings, end) => {
                self.trap(pc, to, Cause::Unknown, cx);
                Ok(())
            }
            // The full address follows anyhow.
            End::Here { .. } if self.ends_in_custom(cx.blocks.image(), pc) => Ok(()),
            End::Here { .. } => Err((Fault::WrongAddress, pc)),
            End::Open => Ok(()),
        }
    }

    /// Whether the last instruction of the stretch is a custom one, which
    /// encoders report as an indirect jump when it changes the flow (10.1). One
    /// from before the stretch was reported already.
    fn ends_in_custom(&self, image: &Image, pc: u64) -> bool {
        let walked = self.track.unconfirmed() > 0;
        let Some(last) = self.track.walk.last().filter(|_| walked) else {
            return false;
        };
        image.fetch(self.track.walk.space(), last).is_some_and(|f| {
            let behind = last.wrapping_add(u64::from(f.len));
            f.isa.xlen().wrap(behind) == pc && f.is_unknown()
        })
    }

    fn trap<C: Consumer>(&mut self, epc: u64, to: u64, cause: Cause, cx: &mut Ctx<'_, '_, C>) {
        let trap = Trap {
            epc: Some(epc),
            handler: Some(to),
            cause,
            tval: None,
            pending: None,
        };
        self.track.event(&Event::Trap(trap), cx.out);
        self.track.walk.restart(cx.blocks, to);
    }
}

/// Whether the stretch may have ended in a trap.
fn is_trap(settings: &Settings, end: End) -> bool {
    match end {
        End::Trap(..) => true,
        End::Jump(_) | End::Here { .. } => settings.config.trap_types == TrapTypes::None,
        _ => false,
    }
}

/// A branch without an outcome. It can only be the last instruction of
/// a stretch without history (BTM), and then the end of the stretch gives it.
fn last_branch<C: Consumer>(
    walk: &mut Walk,
    left: u64,
    end: End,
    cx: &mut Ctx<'_, '_, C>,
) -> Result<(), Trouble> {
    let at = walk.decision(cx.blocks);
    if left != u64::from(walk.to_decision(cx.blocks)) {
        return Err((Fault::MissingHistory, at));
    }
    let taken = match end {
        // Has an answer to every branch.
        End::Branch => return Err((Fault::NotABranch, at)),
        End::Here { to, taken } => taken || behind(cx.blocks.image(), walk.space(), at) != Some(to),
        // Had it been taken, a message would have said so.
        End::Trap(..) | End::Open => false,
        End::Jump(_) => return Err((Fault::NotAJump, at)),
    };
    // A direct jump that counts as a branch has one way to go, which may lead
    // to the address after it.
    let jumps = matches!(end, End::Here { .. });
    if walk.branch(cx.blocks, taken, cx.out) || jumps && walk.branch(cx.blocks, true, cx.out) {
        Ok(())
    } else {
        Err((Fault::JumpNotTaken, at))
    }
}

/// A jump through a register as the last instruction of a stretch that is not
/// reported as one.
fn last_jump<C: Consumer>(
    walk: &mut Walk,
    exit: Exit,
    left: u64,
    end: End,
    cx: &mut Ctx<'_, '_, C>,
) -> Result<(), Trouble> {
    let at = walk.decision(cx.blocks);
    match end {
        End::Jump(to) | End::Here { to, .. } => {
            walk.target(cx.blocks, to, cx.out);
            Ok(())
        }
        End::Branch => Err((Fault::NotABranch, at)),
        End::Trap(..) => {
            // Only a return that went without a message can stand here.
            let to = walk
                .stack()
                .filter(|s| s.answers(exit))
                .and_then(|s| s.top());
            let Some(to) = to else {
                return Err((Fault::UnreportedJump, at));
            };
            walk.target(cx.blocks, to, cx.out);
            Ok(())
        }
        End::Open => {
            // The target would have come with the next message.
            let len = cx
                .blocks
                .image()
                .fetch(walk.space(), at)
                .map_or(0, |f| f.len);
            let mut before = left - u64::from(len) / 2;
            walk.advance(cx.blocks, &mut NoBranches, &mut before, cx.out);
            walk.retire(cx.blocks, cx.out);
            Ok(())
        }
    }
}

/// No branch on the way was taken, the one that ends the count was.
struct LastTaken {
    met: bool,
}

impl Evidence for LastTaken {
    #[inline]
    fn branch(&mut self, _at: u64, last: bool) -> Option<bool> {
        self.met = last;
        Some(last)
    }

    fn left(&self) -> u64 {
        0
    }
}

/// On the last straight way to a jump there are no branches.
struct NoBranches;

impl Evidence for NoBranches {
    fn branch(&mut self, _at: u64, _last: bool) -> Option<bool> {
        None
    }

    fn left(&self) -> u64 {
        0
    }
}

/// The address after the instruction at an address.
fn behind(image: &Image, space: SpaceId, at: u64) -> Option<u64> {
    let f = image.fetch(space, at)?;
    Some(f.isa.xlen().wrap(at.wrapping_add(u64::from(f.len))))
}
