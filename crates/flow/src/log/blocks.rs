//! Steps out of ingress blocks, with the instructions from the image.

use hartrace_isa::Itype;

use super::site::{Exits, Site, Sites};
use super::{LineError, LineErrorKind, LineErrorKind as Kind, untold};
use crate::{
    Cause, Effects, HartId, Image, Ingress, Insn, Observer, Signal, SpaceId, Step, Trap, TrapStep,
};

/// Turns ingress blocks into steps. The image supplies the instructions; mode,
/// context, time and the sideband come from the blocks.
///
/// A block with `itype` 1 or 2 ends in a trap. Its `epc` is `iaddr` when
/// nothing retired (as E-Trace 2.0 has it), else the address behind the block;
/// an ecall or ebreak at its end, which some ports count as retired, is the
/// instruction that trapped. The next block is the handler, so the last
/// instruction and the trap come out one block late.
///
/// Triggers stand before the first instruction of their cycle; `halted` and
/// `reset` become signals where they change.
///
/// A block is reported and [lost](Signal::Lost) when the image has no code for
/// it, when its instructions do not fill it, or when `itype` is not what its
/// last instruction can be under any of the tables. A block to which the one
/// before cannot lead is reported and given, with a loss before it.
#[derive(Clone, Debug)]
pub struct BlockSteps<'a> {
    sites: Sites<'a>,
    hart: HartId,
    /// Last instruction of the block before.
    last: Option<(Site, Insn)>,
    trap: Option<TrapStep>,
    halted: bool,
    reset: bool,
    effects: Effects,
}

impl<'a> BlockSteps<'a> {
    /// BlockSteps of a hart whose code is in this space.
    #[must_use]
    pub fn new(image: &'a Image, space: SpaceId, hart: HartId) -> BlockSteps<'a> {
        BlockSteps {
            sites: Sites::new(image, space),
            hart,
            last: None,
            trap: None,
            halted: false,
            reset: false,
            effects: untold(),
        }
    }

    /// The next block; `line` is where it stands, for errors.
    pub fn block<O: Observer>(
        &mut self,
        line: u64,
        block: &Ingress,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        if block.block == 0 {
            self.sideband(block, out);
        }
        let nothing = block.iretire == 0;
        if nothing && block.itype != Itype::Exception && block.itype != Itype::Interrupt {
            if block.itype != Itype::None {
                self.refuse(line, Kind::Itype(block.iaddr), out, damaged);
            } else if block.block == 0 {
                self.triggers(block, out);
            }
            return;
        }
        if let Some(kind) = self.arrive(block, out) {
            self.refuse(line, kind, out, damaged);
        }
        if block.block == 0 {
            self.triggers(block, out);
        }
        if let Err(kind) = self.expand(block, out) {
            return self.refuse(line, kind, out, damaged);
        }
        if block.itype.is_trap() {
            self.hold(block, out);
        }
    }

    /// BlockSteps are missing here.
    pub fn lost<O: Observer>(&mut self, out: &mut O) {
        self.flush(out);
        self.signal(Signal::Lost, out);
    }

    /// No more blocks: gives the last step and ends the observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O) {
        self.flush(out);
        out.finish();
    }

    #[cold]
    fn refuse<O: Observer>(
        &mut self,
        line: u64,
        kind: LineErrorKind,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        damaged(LineError::whole(line, &[], kind));
        self.lost(out);
    }

    /// The block starts where the one before went. Gives the fault if that
    /// cannot be.
    fn arrive<O: Observer>(&mut self, block: &Ingress, out: &mut O) -> Option<LineErrorKind> {
        let at = block.iaddr;
        if let Some(mut trap) = self.trap.take() {
            trap.trap.handler = at;
            out.step(self.hart, &Step::Trap(trap), &self.effects);
            return None;
        }
        let (site, mut insn) = self.last?;
        if site.allows(at) {
            self.last = None;
            insn.next = at;
            out.step(self.hart, &Step::Insn(insn), &self.effects);
            return None;
        }
        // The draft leaves `iaddr` open when nothing retired.
        (block.iretire > 0).then_some(Kind::Discontinuity(at))
    }

    /// The instructions of the block, all or none. The last one waits for the
    /// next block.
    fn expand<O: Observer>(&mut self, block: &Ingress, out: &mut O) -> Result<(), LineErrorKind> {
        if block.iretire == 0 {
            return Ok(());
        }
        let last = self.check(block)?;
        let mut pc = block.iaddr;
        while pc != last.pc {
            let site = self.sites.get(pc).ok_or(Kind::MissingCode(pc))?;
            let step = Step::Insn(insn(&site, block));
            out.step(self.hart, &step, &self.effects);
            pc = site.natural;
        }
        self.last = Some((last, insn(&last, block)));
        Ok(())
    }

    /// The last instruction of the block, if the image's code fits it.
    fn check(&mut self, block: &Ingress) -> Result<Site, LineErrorKind> {
        let mut pc = block.iaddr;
        let mut left = u64::from(block.iretire) * 2;
        loop {
            let site = self.sites.get(pc).ok_or(Kind::MissingCode(pc))?;
            let len = u64::from(site.len);
            left = left
                .checked_sub(len)
                .ok_or(Kind::BlockBounds(block.iaddr))?;
            if left == 0 {
                return if block.last_size() != len {
                    Err(Kind::BlockBounds(block.iaddr))
                } else if site.may_be(block.itype) {
                    Ok(site.decided(block.itype))
                } else {
                    Err(Kind::Itype(pc))
                };
            }
            // Whatever may jump ends its block.
            if !site.is_sequential() {
                return Err(Kind::Itype(pc));
            }
            pc = site.natural;
        }
    }

    /// The block ended in a trap.
    fn hold<O: Observer>(&mut self, block: &Ingress, out: &mut O) {
        let code = Some(block.cause);
        let cause = match block.itype {
            Itype::Interrupt => Cause::Interrupt(code),
            _ => Cause::Exception(code),
        };
        let (epc, bits) = match self.last.take() {
            Some((site, _)) if site.exits == Exits::Trap => (site.pc, Some(site.bits)),
            Some((site, insn)) => {
                out.step(self.hart, &Step::Insn(insn), &self.effects);
                (site.natural, None)
            }
            None => {
                let code = self.sites.get(block.iaddr).map(|s| s.bits);
                let fetched =
                    !matches!(block.cause, 1 | 12 | 20) && matches!(cause, Cause::Exception(_));
                (block.iaddr, code.filter(|_| fetched))
            }
        };
        self.trap = Some(TrapStep {
            trap: Trap {
                epc,
                handler: 0,
                cause,
                tval: Some(block.tval),
            },
            bits,
            mode: block.mode,
            context: block.context,
            time: block.time,
        });
    }

    fn sideband<O: Observer>(&mut self, block: &Ingress, out: &mut O) {
        if block.reset != self.reset {
            self.reset = block.reset;
            if block.reset {
                self.flush(out);
                self.signal(Signal::Reset, out);
            }
        }
        if block.halted != self.halted {
            self.halted = block.halted;
            self.flush(out);
            let signal = if block.halted {
                Signal::Halted
            } else {
                Signal::Resumed
            };
            self.signal(signal, out);
        }
    }

    fn triggers<O: Observer>(&mut self, block: &Ingress, out: &mut O) {
        for (set, signal) in [
            (block.trigger.on, Signal::TraceOn),
            (block.trigger.off, Signal::TraceOff),
            (block.trigger.notify, Signal::Notify),
        ] {
            if set {
                self.signal(signal, out);
            }
        }
    }

    fn signal<O: Observer>(&self, signal: Signal, out: &mut O) {
        out.step(self.hart, &Step::Signal(signal), &self.effects);
    }

    /// Gives the last instruction although no block shows where it went.
    fn flush<O: Observer>(&mut self, out: &mut O) {
        self.trap = None;
        if let Some((site, insn)) = self.last.take()
            && site.exits != Exits::Trap
        {
            out.step(self.hart, &Step::Insn(insn), &self.effects);
        }
    }
}

/// An instruction of the block, with its natural successor.
fn insn(site: &Site, block: &Ingress) -> Insn {
    Insn {
        pc: site.pc,
        next: site.natural,
        time: block.time,
        context: block.context,
        bits: site.bits,
        mode: block.mode,
    }
}
