//! Turns ingress blocks into steps, with the instructions from the image.

use alloc::vec::Vec;

use hartrace_isa::{Isa, Itype};

use super::site::{Exits, Site, Sites};
use super::{LineError, LineErrorKind, LineErrorKind as Kind, unreported};
use hartrace_flow::{
    Access, Cause, DataIngress, Effects, HartId, Image, Ingress, Insn, Observer, Signal, SpaceId,
    Step, Touch, Trap, TrapStep, Trigger,
};

/// Turns ingress blocks into steps. The image supplies the instructions; mode,
/// context, time and the sideband come from the blocks.
///
/// A block with `itype` 1 or 2 ends in a trap. Its `epc` is the address after
/// the block; an ecall or ebreak at its end, which some ports count as
/// retired, is the instruction that trapped. When nothing retired, `epc` is
/// where the block before went. Only where that is not known, after an
/// uninferable jump or another trap, `iaddr` is believed: for `itype` 1 as
/// E-Trace 2.0 has it (0 only where a jump to 0 faults), for `itype` 2, where
/// no text defines it, when the image has code there. A trap that leaves
/// `epc` open is reported and lost.
///
/// The next block is the handler, so the last instruction and the trap come
/// out one block late. When the hart halts before the handler, the first block
/// after it resumed is taken for that. A trap whose handler no block shows is
/// left out, or has the handler 0 where signals follow it.
///
/// Trace-on and external triggers stand before the first instruction of their
/// block, notify and trace-off before the last, and all of them before the
/// trap if nothing retired; those of an idle cycle before what comes next.
/// `halted`, `reset` and `power_down` become signals where they change, and
/// `lost` and `untraced` a [loss](Signal::Lost) or [pause](Signal::Untraced)
/// before their block.
///
/// A block is reported and [lost](Signal::Lost) when the image has no code for
/// it, when its instructions do not fill it, or when `itype` is not what its
/// last instruction can be under any of the tables. A block to which the one
/// before cannot lead is reported and given, with a loss before it.
#[derive(Clone, Debug)]
pub struct BlockSteps<'a> {
    sites: Sites<'a>,
    hart: HartId,
    /// Last instruction of the block before. It waits, or a trap does, never
    /// both.
    last: Option<(Site, Insn)>,
    trap: Option<TrapStep>,
    /// Signals after the step that waits.
    behind: Vec<Signal>,
    halted: bool,
    reset: bool,
    power_down: bool,
    effects: Effects,
    /// Data accesses of the next block, and those of the instruction that waits.
    shown: Vec<Access>,
    own: Vec<Access>,
    /// The same of further harts.
    others: Vec<BlockSteps<'a>>,
}

/// More harts than this are a fault in a table.
const MAX_HARTS: usize = 64;

/// Signals that may wait; with more, the step before them waits no longer.
const MAX_BEHIND: usize = 64;

impl<'a> BlockSteps<'a> {
    /// BlockSteps of a hart whose code is in this space.
    #[must_use]
    pub fn new(image: &'a Image, space: SpaceId, hart: HartId) -> BlockSteps<'a> {
        BlockSteps {
            sites: Sites::new(image, space),
            hart,
            last: None,
            trap: None,
            behind: Vec::new(),
            halted: false,
            reset: false,
            power_down: false,
            effects: unreported(),
            shown: Vec::new(),
            own: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Those of a hart: these, or others that begin now. `None` if there are too many.
    pub(super) fn of(&mut self, hart: HartId) -> Option<&mut BlockSteps<'a>> {
        if self.hart == hart {
            return Some(self);
        }
        let known = self.others.iter().position(|other| other.hart == hart);
        let at = known.unwrap_or(self.others.len());
        if at == self.others.len() && at < MAX_HARTS {
            let (image, space) = (self.sites.image, self.sites.space);
            self.others.push(BlockSteps::new(image, space, hart));
        }
        self.others.get_mut(at)
    }

    /// Blocks of any hart are missing here.
    pub(super) fn lose_all<O: Observer>(&mut self, out: &mut O) {
        self.lost(out);
        for other in &mut self.others {
            other.lost(out);
        }
    }

    /// The data accesses of the blocks that follow, in the order of their
    /// instructions. An instruction with several may be shown several times (E-Trace
    /// 4.3).
    pub fn show(&mut self, data: &[DataIngress]) {
        self.shown.clear();
        self.shown
            .extend(data.iter().filter_map(DataIngress::access));
    }

    /// How many accesses an instruction makes at most.
    fn touches(&self, bits: u32) -> usize {
        let isa = self.sites.image.isa().unwrap_or(Isa::RV64GC);
        match Touch::of(bits, isa) {
            Touch::Vector { .. } => usize::MAX,
            touch => touch.count().into(),
        }
    }

    /// The accesses of an instruction, taken off those that were shown.
    #[cold]
    fn take(&mut self, bits: u32) -> Vec<Access> {
        let count = match self.touches(bits) {
            // It is shown again for each of the others.
            usize::MAX => 1,
            count => count,
        };
        let count = count.min(self.shown.len());
        self.shown.drain(..count).collect()
    }

    /// Whether a block starts with the instruction that waits, shown again for
    /// another access.
    fn repeats(&self, block: &Ingress) -> bool {
        !self.own.is_empty()
            && self.last.as_ref().is_some_and(|(site, _)| {
                site.pc == block.iaddr && self.own.len() < self.touches(site.bits)
            })
    }

    /// The rest of a block that repeats the instruction that waits; `None` if that is
    /// all of it.
    #[cold]
    fn repeated(&mut self, block: &Ingress) -> Option<Ingress> {
        let (site, _) = *self.last.as_ref()?;
        let count = (self.touches(site.bits) - self.own.len()).min(self.shown.len());
        self.own.extend(self.shown.drain(..count.min(1)));
        let rest = block.iretire.saturating_sub(u32::from(site.len) / 2);
        (rest > 0).then_some(Ingress {
            iaddr: site.natural,
            iretire: rest,
            ..*block
        })
    }

    /// Gives an instruction with its accesses.
    #[inline]
    fn give<O: Observer>(&mut self, insn: Insn, own: Vec<Access>, out: &mut O) {
        if own.is_empty() {
            return out.step(self.hart, &Step::Insn(insn), &self.effects);
        }
        let mut effects = self.effects;
        for access in own {
            match access.kind.is_csr() {
                true => effects.csr_access = Some(access),
                false => effects.incomplete |= effects.accesses.push(access).is_err(),
            }
        }
        out.step(self.hart, &Step::Insn(insn), &effects);
    }

    /// The next block; `line` is where it stands, for errors.
    pub fn block<O: Observer>(
        &mut self,
        line: u64,
        block: &Ingress,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        if block.lost {
            self.lost(out);
        }
        if block.untraced {
            self.flush(out);
            self.signal(Signal::Untraced, out);
        }
        let levels = (block.halted, block.reset, block.power_down);
        if levels != (self.halted, self.reset, self.power_down) {
            self.levels(block, out);
        }
        if block.iretire == 0 {
            return self.nothing(line, block, out, damaged);
        }
        if self.repeats(block) {
            if let Some(rest) = self.repeated(block) {
                self.block(line, &rest, out, damaged);
            }
            return;
        }
        if let Some(kind) = self.arrive(block, out) {
            self.refuse(line, kind, out, damaged);
        }
        let marked = block.external != 0 || block.trigger != Trigger::default();
        if marked {
            self.before_first(block, out);
        }
        let last = match self.expand(block, out) {
            Ok(last) => last,
            Err(kind) => {
                self.before_last(block, out);
                return self.refuse(line, kind, out, damaged);
            }
        };
        if marked {
            self.before_last(block, out);
        }
        // NexRv gives what traps an itype like any other's.
        if block.itype.is_trap() || last.exits == Exits::Trap {
            self.trap_behind(&last, block, out);
        } else {
            self.last = Some((last, insn(&last, block)));
            if !self.shown.is_empty() {
                self.own = self.take(last.bits);
            }
        }
    }

    /// The block of one instruction in halfwords, of which a single-retirement
    /// port has only the rounded number: as many as the image has.
    #[cold]
    pub(super) fn sized(&mut self, block: &Ingress) -> Ingress {
        let site = self.sites.get(block.iaddr);
        let fits = site.filter(|s| block.iretire > 0 && s.rounded() == block.last_size());
        Ingress {
            iretire: fits.map_or(block.iretire, |s| u32::from(s.len) / 2),
            ..*block
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
        for other in &mut self.others {
            other.flush(out);
        }
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

    /// A block in which nothing retired: idle, or a trap.
    fn nothing<O: Observer>(
        &mut self,
        line: u64,
        block: &Ingress,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let mut fault = None;
        if block.itype.is_trap() {
            if let Some(epc) = self.origin(block) {
                self.go_to(epc, out);
                self.before_first(block, out);
                self.before_last(block, out);
                self.hold(epc, None, block);
                return;
            }
            fault = Some(Kind::Epc);
        } else if block.itype != Itype::None {
            fault = Some(Kind::Itype(block.iaddr));
        }
        self.before_first(block, out);
        self.before_last(block, out);
        if let Some(kind) = fault {
            self.refuse(line, kind, out, damaged);
        }
    }

    /// Where the hart was when it trapped with nothing retired in the block.
    fn origin(&mut self, block: &Ingress) -> Option<u64> {
        if let Some(known) = self.last.as_ref().and_then(|(site, _)| site.successor()) {
            return Some(known);
        }
        let at = block.iaddr;
        let told = if block.itype == Itype::Interrupt {
            at != 0 && self.sites.get(at).is_some()
        } else {
            // A jump to 0 may well be what faulted.
            at != 0 || (is_fetch_fault(block) && block.tval == 0)
        };
        (told && at & 1 == 0).then_some(at)
    }

    /// The block starts where the one before went. Gives the fault if that
    /// cannot be.
    #[inline]
    fn arrive<O: Observer>(&mut self, block: &Ingress, out: &mut O) -> Option<LineErrorKind> {
        if let Some((site, _)) = &self.last
            && !site.allows(block.iaddr)
        {
            return Some(Kind::Discontinuity(block.iaddr));
        }
        if self.trap.is_some() && block.halted && self.behind.contains(&Signal::Halted) {
            // Code of a debugger is not a handler.
            self.flush(out);
        } else {
            self.go_to(block.iaddr, out);
        }
        None
    }

    /// Gives what waits: it went to `next`.
    #[inline]
    fn go_to<O: Observer>(&mut self, next: u64, out: &mut O) {
        if let Some((_, mut insn)) = self.last.take() {
            insn.next = next;
            let own = core::mem::take(&mut self.own);
            self.give(insn, own, out);
        } else if let Some(mut trap) = self.trap.take() {
            trap.trap.handler = Some(next);
            out.step(self.hart, &Step::Trap(trap), &self.effects);
        }
        if !self.behind.is_empty() {
            self.catch_up(out);
        }
    }

    /// Gives the signals that waited.
    #[cold]
    fn catch_up<O: Observer>(&mut self, out: &mut O) {
        for signal in self.behind.drain(..) {
            out.step(self.hart, &Step::Signal(signal), &self.effects);
        }
    }

    /// Gives the instructions of the block but for the last, or none. The last
    /// one is returned.
    fn expand<O: Observer>(&mut self, block: &Ingress, out: &mut O) -> Result<Site, LineErrorKind> {
        let last = self.check(block)?;
        let mut pc = block.iaddr;
        while pc != last.pc {
            let site = self.sites.get(pc).ok_or(Kind::MissingCode(pc))?;
            let own = match self.shown.is_empty() {
                true => Vec::new(),
                false => self.take(site.bits),
            };
            self.give(insn(&site, block), own, out);
            pc = site.natural;
        }
        Ok(last)
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
                return if block.last_size() != site.rounded() {
                    Err(Kind::BlockBounds(block.iaddr))
                } else if !site.may_be(block.itype, block.sijump) {
                    Err(Kind::Itype(pc))
                } else if block.itype.is_trap() && !site.has_epc() {
                    Err(Kind::Epc)
                } else {
                    Ok(site.decided(block.itype))
                };
            }
            // Whatever may jump ends its block.
            if !site.is_sequential() {
                return Err(Kind::Itype(pc));
            }
            pc = site.natural;
        }
    }

    /// The block ended in a trap after its last instruction, or at it.
    fn trap_behind<O: Observer>(&mut self, last: &Site, block: &Ingress, out: &mut O) {
        if last.exits == Exits::Trap {
            return self.hold(last.pc, Some(last.bits), block);
        }
        let step = Step::Insn(insn(last, block));
        out.step(self.hart, &step, &self.effects);
        self.hold(last.natural, None, block);
    }

    /// The trap of a block waits for its handler. `bits` of the instruction at
    /// `epc` if it counted as retired.
    fn hold(&mut self, epc: u64, bits: Option<u32>, block: &Ingress) {
        let code = Some(block.cause);
        let cause = match block.itype {
            Itype::Interrupt => Cause::Interrupt(code),
            _ => Cause::Exception(code),
        };
        let fetched = block.itype != Itype::Interrupt && !is_fetch_fault(block);
        let fetch = || self.sites.get(epc).filter(|_| fetched).map(|s| s.bits);
        let bits = bits.or_else(fetch);
        self.trap = Some(TrapStep {
            trap: Trap {
                epc: Some(epc),
                handler: None,
                cause,
                tval: Some(block.tval),
                pending: block.pending,
            },
            bits,
            mode: block.mode,
            context: block.context,
            time: block.time,
        });
    }

    #[cold]
    fn levels<O: Observer>(&mut self, block: &Ingress, out: &mut O) {
        if block.reset != self.reset {
            self.reset = block.reset;
            if block.reset {
                self.flush(out);
                self.signal(Signal::Reset, out);
                // What it ends needs no signal of its own.
                self.halted &= block.halted;
                self.power_down &= block.power_down;
            }
        }
        if block.halted != self.halted {
            self.halted = block.halted;
            let signals = [Signal::Resumed, Signal::Halted];
            self.level(block.halted, signals, out);
        }
        if block.power_down != self.power_down {
            self.power_down = block.power_down;
            let signals = [Signal::PowerUp, Signal::PowerDown];
            self.level(block.power_down, signals, out);
        }
    }

    /// A level fell, or rose.
    fn level<O: Observer>(&mut self, risen: bool, [fell, rose]: [Signal; 2], out: &mut O) {
        // A trap waits on for its handler.
        if self.trap.is_none() {
            self.flush(out);
        }
        self.signal(if risen { rose } else { fell }, out);
    }

    /// Pulses that concern the first instruction.
    fn before_first<O: Observer>(&mut self, block: &Ingress, out: &mut O) {
        if block.trigger.on {
            self.signal(Signal::TraceOn, out);
        }
        for input in (0..8).filter(|n| block.external >> n & 1 != 0) {
            self.signal(Signal::External(input), out);
        }
    }

    /// Pulses that concern the last instruction.
    fn before_last<O: Observer>(&mut self, block: &Ingress, out: &mut O) {
        if block.trigger.notify {
            self.signal(Signal::Notify, out);
        }
        if block.trigger.off {
            self.signal(Signal::TraceOff, out);
        }
    }

    /// Emits a signal, after the pending step.
    fn signal<O: Observer>(&mut self, signal: Signal, out: &mut O) {
        if self.behind.len() >= MAX_BEHIND {
            self.flush(out);
        }
        if self.last.is_some() || self.trap.is_some() {
            self.behind.push(signal);
        } else {
            out.step(self.hart, &Step::Signal(signal), &self.effects);
        }
    }

    /// Gives what waits although no block shows where it went.
    fn flush<O: Observer>(&mut self, out: &mut O) {
        if let Some(trap) = self.trap.take() {
            out.step(self.hart, &Step::Trap(trap), &self.effects);
        }
        if let Some((_, insn)) = self.last.take() {
            let own = core::mem::take(&mut self.own);
            self.give(insn, own, out);
        }
        self.catch_up(out);
    }
}

/// An exception of a fetch: there is no instruction.
fn is_fetch_fault(block: &Ingress) -> bool {
    block.itype == Itype::Exception && matches!(block.cause, 1 | 12 | 20)
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

#[cfg(test)]
mod tests;
