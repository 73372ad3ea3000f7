//! A recorder that runs alongside a hart and takes snapshots.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hartrace_flow::{
    Effects, HartId, Insn, Mode, Observer, Signal, Step, StepTransfers, Transfer, TransferSink,
    Trap, Wants,
};
use hartrace_isa::{Flow, Isa, Itype};

use crate::control::Control;
use crate::engine::Ctr;
use crate::snapshot::Snapshot;

/// How often snapshots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// After so many instructions of a hart.
    Instructions(u64),
    /// After this many cycles of a hart. If only some steps have a time, at the
    /// first one with a later time.
    Cycles(u64),
}

/// What steps report besides control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The privilege modes. Otherwise transfers are recorded as if all of them
    /// were enabled.
    pub modes: bool,
    /// The time of each step in cycles. Otherwise no cycles are counted.
    pub cycles: bool,
}

/// Takes snapshots.
pub trait SnapshotSink {
    /// One snapshot; they come in order.
    fn snapshot(&mut self, snapshot: &Snapshot);
}

impl<F: FnMut(&Snapshot)> SnapshotSink for F {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        self(snapshot);
    }
}

/// Records the transfers of each hart as its own records would, and takes
/// snapshots: every so often, and one at the end.
///
/// A snapshot stands between two instructions: the transfers up to there are
/// in it, and its pc is that of the instruction that follows. Where steps are
/// missing the records start anew, so that no two of them seem to follow each
/// other that do not. Untraced time between the first and the last instruction
/// of a semihosting call is the debugger's: nothing is missing there, and its
/// `ebreak` is no exception.
///
/// ```
/// use hartrace_ctr::{Config, Control, Ctr, Every, Sampler, Known};
/// use hartrace_flow::{Effects, HartId, Insn, Observer, Step};
/// use hartrace_isa::Isa;
///
/// let mut ctr = Ctr::new(Config::default())?;
/// ctr.set_control(Control::MODES, 0);
/// let mut pcs = Vec::new();
/// let told = Known { modes: true, cycles: false };
/// let take = |s: &hartrace_ctr::Snapshot| pcs.push((s.pc, s.records().count()));
/// let mut sampler = Sampler::new(ctr, Isa::RV64GC, Some(Every::Instructions(2)), told, take);
/// // c.nop; c.j 0x1000
/// for (pc, bits, next) in [(0x1000, 0x0001, 0x1002), (0x1002, 0xbffd, 0x1000), (0x1000, 0x0001, 0x1002)] {
///     let insn = Insn { pc, bits, next, ..Insn::default() };
///     sampler.step(HartId(0), &Step::Insn(insn), &Effects::default());
/// }
/// sampler.finish();
/// drop(sampler);
/// assert_eq!(pcs, [(Some(0x1000), 1), (Some(0x1002), 1)]);
/// # Ok::<(), hartrace_ctr::ConfigError>(())
/// ```
pub struct Sampler<'s> {
    transfers: StepTransfers<Recorders>,
    isa: Isa,
    every: Option<Every>,
    sink: Box<dyn SnapshotSink + 's>,
    snapshot: Snapshot,
}

#[derive(Debug)]
struct Recorders {
    /// What each hart starts with.
    fresh: Ctr,
    told: Known,
    harts: Vec<(HartId, Recorder)>,
    /// The one whose turn it is.
    current: usize,
    /// There was a trap, or a return from one.
    trapped: bool,
}

#[derive(Debug)]
struct Recorder {
    ctr: Ctr,
    insns: u64,
    /// In cycles, if they are known.
    time: u64,
    /// When the next snapshot is due, in the unit of [`Every`].
    due: Option<u64>,
    /// Where the hart goes, and in which mode, as far as that is known.
    next: Option<u64>,
    mode: Option<Mode>,
    /// The last instruction.
    bits: u32,
    /// The mode before a halt.
    awake: Mode,
    /// Untraced time began after the first instruction of a semihosting call.
    called: bool,
    /// Something has run since the records started.
    ran: bool,
    /// How often recording restarted after instructions had run.
    restarts: u64,
}

/// `slli x0,x0,0x1f` and `srai x0,x0,7`, around the `ebreak` of a semihosting
/// call. All three are uncompressed.
const CALL_ENTRY: u32 = 0x01f0_1013;
const CALL_EXIT: u32 = 0x4070_5013;

impl Recorders {
    #[inline]
    fn of(&mut self, hart: HartId) -> Option<&mut Recorder> {
        if self.harts.get(self.current).is_none_or(|h| h.0 != hart) {
            self.enter(hart);
        }
        self.harts.get_mut(self.current).map(|(_, one)| one)
    }

    #[cold]
    fn enter(&mut self, hart: HartId) {
        let found = self.harts.iter().position(|(id, _)| *id == hart);
        self.current = found.unwrap_or_else(|| {
            let one = Recorder {
                ctr: self.fresh.clone(),
                insns: 0,
                time: 0,
                due: None,
                next: None,
                mode: None,
                bits: 0,
                awake: Mode::M,
                called: false,
                ran: false,
                restarts: 0,
            };
            self.harts.push((hart, one));
            self.harts.len() - 1
        });
    }
}

impl Recorders {
    /// Lets the records of a hart start anew if steps are missing before
    /// this one.
    #[inline]
    fn break_off(&mut self, hart: HartId, step: &Step) {
        let Some(one) = self.of(hart) else { return };
        let called = core::mem::take(&mut one.called);
        match step {
            Step::Insn(_) | Step::Trap(_) if !called => {}
            Step::Insn(insn) if one.is_end_of_call(insn) => {}
            Step::Signal(Signal::Untraced) if one.bits == CALL_ENTRY => one.called = true,
            Step::Insn(_)
            | Step::Trap(_)
            | Step::Signal(Signal::Lost | Signal::Untraced | Signal::Reset) => self.restart(hart),
            Step::Signal(_) => one.called = called,
        }
    }

    #[cold]
    fn restart(&mut self, hart: HartId) {
        let fresh = self.fresh.clone();
        let Some(one) = self.of(hart) else { return };
        one.ctr = fresh;
        (one.next, one.mode, one.bits) = (None, None, 0);
        one.restarts += u64::from(one.ran);
        one.ran = false;
    }
}

impl TransferSink for Recorders {
    #[inline]
    fn transfer(&mut self, hart: HartId, transfer: &Transfer) {
        let told = self.told;
        let all = self.fresh.control().has(Control::MODES);
        let changes = transfer.kind.is_trap() || transfer.kind == Itype::TrapReturn;
        self.trapped |= changes;
        let Some(one) = self.of(hart) else { return };
        // Its target is unknown, and whether it is recorded depends on the target.
        if told.modes && !all && changes && transfer.to.is_none() {
            return;
        }
        one.ctr.record(&Transfer {
            time: transfer.time.filter(|_| told.cycles),
            from: transfer.from.filter(|_| told.modes),
            to: transfer.to.filter(|_| told.modes),
            ..*transfer
        });
    }
}

impl<'s> Sampler<'s> {
    /// Every hart starts with these records, which are enabled, and gives its
    /// snapshots to the sink. The instruction set is that of the code.
    pub fn new(
        ctr: Ctr,
        isa: Isa,
        every: Option<Every>,
        told: Known,
        sink: impl SnapshotSink + 's,
    ) -> Sampler<'s> {
        let mut fresh = ctr;
        if !told.modes {
            let control = fresh.control().with(Control::MODES);
            fresh.set_control(control, 0);
        }
        let types = fresh.config().version.types();
        let recorders = Recorders {
            fresh,
            told,
            harts: Vec::new(),
            current: 0,
            trapped: false,
        };
        Sampler {
            transfers: StepTransfers::new(isa, recorders).with_types(types),
            isa,
            every,
            sink: Box::new(sink),
            snapshot: Snapshot::default(),
        }
    }

    /// How often recording restarted, because steps were missing after others
    /// or a hart was reset.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        let harts = &self.transfers.inner().harts;
        harts.iter().map(|(_, one)| one.restarts).sum()
    }

    /// Whether there was a trap, or a return from one.
    #[must_use]
    pub fn has_traps(&self) -> bool {
        self.transfers.inner().trapped
    }

    /// Whether any step had a time.
    #[must_use]
    pub fn has_time(&self) -> bool {
        let harts = &self.transfers.inner().harts;
        harts.iter().any(|(_, one)| one.time != 0)
    }

    /// Whether a trap is the `ebreak` of a semihosting call that continues after
    /// it. That is no exception; a log without its halt seems to show one.
    #[cold]
    fn is_call(&mut self, hart: HartId, trap: &Trap) -> bool {
        let Some(one) = self.transfers.sink().of(hart) else {
            return false;
        };
        let (Some(epc), Some(handler)) = (trap.epc, trap.handler) else {
            return false;
        };
        one.bits == CALL_ENTRY && one.next == Some(epc) && handler == epc.wrapping_add(4)
    }

    /// Takes a snapshot if one is due before this instruction.
    #[inline]
    fn look(&mut self, hart: HartId, insn: &Insn) {
        let recorders = self.transfers.sink();
        let told = recorders.told;
        let Some(one) = recorders.of(hart) else {
            return;
        };
        let (now, first, step) = match self.every {
            None => return,
            Some(Every::Instructions(step)) => (one.insns, 0, step),
            Some(Every::Cycles(step)) if told.cycles => (one.time, insn.time, step),
            // The time at which the instruction starts.
            Some(Every::Cycles(step)) => (insn.time, insn.time, step),
        };
        let step = step.max(1);
        // Multiples of the step; time need not start at 0.
        let start = if one.insns == 0 { first } else { now };
        let by_time = matches!(self.every, Some(Every::Cycles(_)));
        if by_time && !told.cycles && start == 0 {
            // None is known yet.
            return;
        }
        let next = (start / step).saturating_add(1).saturating_mul(step);
        let due = *one.due.get_or_insert(next);
        if now < due {
            return;
        }
        let missed = (now - due) / step;
        one.due = Some(due.saturating_add((missed + 1).saturating_mul(step)));
        let mode = Some(insn.mode).filter(|_| told.modes);
        one.snapshot(hart, Some(insn.pc), mode, told, &mut self.snapshot);
        self.sink.snapshot(&self.snapshot);
    }
}

impl Recorder {
    /// Whether this is the last instruction of the semihosting call whose first
    /// came last. The `ebreak` between them has four bytes.
    fn is_end_of_call(&self, insn: &Insn) -> bool {
        let ebreak = self.next.unwrap_or(0);
        insn.bits == CALL_EXIT && insn.pc == ebreak.wrapping_add(4)
    }

    fn snapshot(
        &self,
        hart: HartId,
        pc: Option<u64>,
        mode: Option<Mode>,
        told: Known,
        to: &mut Snapshot,
    ) {
        self.ctr.snapshot_into(to);
        to.hart = hart;
        to.pc = pc;
        to.mode = mode;
        to.instructions = Some(self.insns);
        to.cycles = told.cycles.then_some(self.time);
    }
}

impl Observer for Sampler<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if let Step::Trap(trap) = step
            && self.is_call(hart, &trap.trap)
        {
            return;
        }
        // Gives the transfer of the step before, and keeps that of this one.
        self.transfers.step(hart, step, effects);
        let recorders = self.transfers.sink();
        let told = recorders.told;
        recorders.break_off(hart, step);
        if let Step::Insn(insn) = step {
            self.look(hart, insn);
        }
        let Some(one) = self.transfers.sink().of(hart) else {
            return;
        };
        match step {
            Step::Insn(insn) => {
                one.insns += 1;
                one.time = insn.time;
                one.next = Some(insn.next);
                one.mode = Some(insn.mode);
                one.bits = insn.bits;
                one.ran = true;
            }
            Step::Trap(trap) => {
                one.ran = true;
                one.bits = 0;
                one.time = trap.time;
                one.next = trap.trap.handler;
                one.mode = None;
            }
            // A debugger's time, or that of sleep, is not the program's.
            Step::Signal(Signal::Halted | Signal::PowerDown) => {
                if one.ctr.mode() != Mode::D {
                    one.awake = one.ctr.mode();
                }
                one.ctr
                    .enter(Mode::D, Some(one.time).filter(|_| told.cycles));
            }
            Step::Signal(Signal::Resumed | Signal::PowerUp) => {
                one.ctr.enter(one.awake, None);
            }
            Step::Signal(_) => {}
        }
    }

    fn finish(&mut self) {
        self.transfers.finish();
        let recorders = self.transfers.sink();
        let told = recorders.told;
        for (hart, one) in recorders.harts.iter().filter(|(_, one)| one.insns > 0) {
            // What follows a trap return is unknown.
            let stays = Flow::of_retired(one.bits, self.isa) != Flow::TrapReturn;
            let mode = one.mode.filter(|_| told.modes && stays);
            one.snapshot(*hart, one.next, mode, told, &mut self.snapshot);
            self.sink.snapshot(&self.snapshot);
        }
    }
}

#[cfg(test)]
mod tests;
