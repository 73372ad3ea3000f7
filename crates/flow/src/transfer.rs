//! Control transfers, as recorded by Control Transfer Records and read by
//! profilers.

use hartrace_isa::{Flow, Isa, Itype, ItypeTable};

use crate::per_hart::PerHart;
use crate::{Cause, Effects, HartId, Mode, Observer, Signal, Step, Wants};

/// One control transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The instruction that jumped, or the trap's `epc`; 0 for a trap whose
    /// `epc` is not known.
    pub source: u64,
    /// Where it went; for a branch that was not taken the next instruction,
    /// and 0 for a trap whose handler is not known.
    pub target: u64,
    /// Its type, with the codes that CTR shares with the ingress port.
    pub kind: Itype,
    /// Privilege mode before, where known.
    pub from: Option<Mode>,
    /// Privilege mode after, where known.
    pub to: Option<Mode>,
    /// Why, for a trap.
    pub cause: Option<Cause>,
    /// Time of the transfer in the source's unit, where known.
    pub time: Option<u64>,
    /// Cycles since the transfer before it, where the source counts them.
    pub cycles: Option<u64>,
    /// A predictor got it wrong; sources without one say `false`.
    pub mispredicted: bool,
}

/// A transfer of which nothing is known.
impl Default for Transfer {
    fn default() -> Transfer {
        Transfer {
            source: 0,
            target: 0,
            kind: Itype::None,
            from: None,
            to: None,
            cause: None,
            time: None,
            cycles: None,
            mispredicted: false,
        }
    }
}

impl Transfer {
    /// Whether an address of 0 in a record of a transfer of this type stands for
    /// one that was not recorded, because its mode is not, or is not known. Only
    /// traps and returns from them change the mode: elsewhere 0 is an address like
    /// any other, and so it is for an exception if all modes are recorded.
    #[must_use]
    pub const fn hides_address(kind: Itype, all_modes: bool) -> bool {
        match kind {
            Itype::Exception => !all_modes,
            Itype::Interrupt | Itype::TrapReturn | Itype::None | Itype::Reserved => true,
            _ => false,
        }
    }
}

/// Takes transfers.
pub trait TransferSink {
    /// One transfer of one hart, in order.
    fn transfer(&mut self, hart: HartId, transfer: &Transfer);
}

impl<F: FnMut(HartId, &Transfer)> TransferSink for F {
    fn transfer(&mut self, hart: HartId, transfer: &Transfer) {
        self(hart, transfer);
    }
}

/// Transfers from steps. Branches that were not taken are among them. The mode
/// after a transfer is that of the hart's next step, so each transfer comes out
/// one step late.
///
/// A step does not say whether a branch was taken, only where it went: a taken
/// branch to the instruction after it counts as not taken.
#[derive(Debug)]
pub struct StepTransfers<S> {
    isa: Isa,
    table: ItypeTable,
    sink: S,
    pending: PerHart<Option<Transfer>>,
}

impl<S: TransferSink> StepTransfers<S> {
    /// The instruction set is that of the code the steps run.
    pub fn new(isa: Isa, sink: S) -> Self {
        StepTransfers {
            isa,
            table: ItypeTable::NTrace10,
            sink,
            pending: PerHart::default(),
        }
    }

    /// Types by another table than that of N-Trace 1.0, which is also that of
    /// CTR 1.0.
    #[must_use]
    pub fn with_types(self, table: ItypeTable) -> Self {
        StepTransfers { table, ..self }
    }

    /// The sink, for what it gathered so far.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The sink, to look at.
    pub const fn inner(&self) -> &S {
        &self.sink
    }

    /// The sink, with everything in it.
    pub fn into_sink(mut self) -> S {
        self.finish();
        self.sink
    }

    /// The next step, in this mode if it is one.
    fn flush(&mut self, hart: HartId, to: Option<Mode>) {
        if let Some(mut transfer) = self.pending.of(hart).take() {
            transfer.to = to.or(transfer.to);
            self.sink.transfer(hart, &transfer);
        }
    }
}

impl<S: TransferSink> Observer for StepTransfers<S> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        match step {
            Step::Insn(insn) => {
                self.flush(hart, Some(insn.mode));
                let flow = Flow::of_retired(insn.bits, self.isa);
                if flow.is_sequential() || flow == Flow::Trap {
                    return;
                }
                let taken = insn.next != self.isa.xlen().wrap(insn.end());
                let kind = flow.itype4(insn.bits, taken, self.table);
                let transfer = Transfer {
                    source: insn.pc,
                    target: insn.next,
                    kind,
                    from: Some(insn.mode),
                    to: effects.mode,
                    cause: None,
                    time: Some(insn.time),
                    cycles: None,
                    mispredicted: false,
                };
                *self.pending.of(hart) = Some(transfer);
            }
            Step::Trap(t) => {
                self.flush(hart, Some(t.mode));
                let transfer = Transfer {
                    source: t.trap.epc.unwrap_or(0),
                    target: t.trap.handler.unwrap_or(0),
                    kind: trap_kind(t.trap.cause),
                    from: Some(t.mode),
                    to: effects.mode,
                    cause: Some(t.trap.cause),
                    time: Some(t.time),
                    cycles: None,
                    mispredicted: false,
                };
                *self.pending.of(hart) = Some(transfer);
            }
            // What the hart does after these says nothing about before.
            Step::Signal(
                Signal::Halted
                | Signal::Resumed
                | Signal::Reset
                | Signal::PowerDown
                | Signal::PowerUp
                | Signal::Lost
                | Signal::Untraced,
            ) => {
                self.flush(hart, None);
            }
            Step::Signal(_) => {}
        }
    }

    fn finish(&mut self) {
        for (hart, pending) in self.pending.iter_mut() {
            if let Some(transfer) = pending.take() {
                self.sink.transfer(hart, &transfer);
            }
        }
    }
}

/// A trap of unknown cause counts as an exception: CTR has no third type.
const fn trap_kind(cause: Cause) -> Itype {
    match cause {
        Cause::Interrupt(_) => Itype::Interrupt,
        Cause::Exception(_) | Cause::Unknown => Itype::Exception,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{Context, Insn, Trap, TrapStep};

    const HART: HartId = HartId(0);

    fn insn(pc: u64, bits: u32, next: u64, mode: Mode) -> Step {
        Step::Insn(Insn {
            pc,
            bits,
            next,
            mode,
            ..Insn::default()
        })
    }

    fn trap(epc: u64, handler: u64, cause: Cause) -> Trap {
        Trap {
            epc: Some(epc),
            handler: Some(handler),
            cause,
            tval: None,
            pending: None,
        }
    }

    fn of_steps(steps: &[Step]) -> Vec<Transfer> {
        let mut found = Vec::new();
        let sink = |_: HartId, t: &Transfer| found.push(*t);
        let mut transfers = StepTransfers::new(Isa::RV64GC, sink);
        for step in steps {
            transfers.step(HART, step, &Effects::default());
        }
        transfers.finish();
        found
    }

    /// The transfer types of CTR: every code, and nothing for other
    /// instructions.
    #[test]
    fn every_type_has_its_code() {
        let m = Mode::M;
        let steps = [
            insn(0, 0x13, 4, m),            // nop
            insn(4, 0x0000_0463, 8, m),     // beq, not taken
            insn(8, 0x0000_0463, 16, m),    // beq, taken
            insn(16, 0x0080_00ef, 24, m),   // jal ra
            insn(24, 0x0080_006f, 32, m),   // jal x0
            insn(32, 0x0080_03ef, 40, m),   // jal t2
            insn(40, 0x0003_00e7, 100, m),  // jalr ra, t1
            insn(100, 0x0003_0067, 200, m), // jalr x0, t1
            insn(200, 0x0003_03e7, 300, m), // jalr t2, t1
            insn(300, 0x8082, 400, m),      // ret
            insn(400, 0x0002_80e7, 500, m), // jalr ra, t0
            insn(500, 0x3020_0073, 600, m), // mret
            insn(600, 0x13, 604, Mode::U),
        ];
        let kinds: Vec<u8> = of_steps(&steps).iter().map(|t| t.kind.code()).collect();
        assert_eq!(kinds, [4, 5, 9, 11, 15, 8, 10, 14, 13, 12, 3]);
        assert_eq!(
            of_steps(&steps).last().map(|t| (t.from, t.to)),
            Some((Some(m), Some(Mode::U)))
        );
    }

    #[test]
    fn traps_go_from_epc_to_handler() {
        let taken = Step::Trap(TrapStep {
            trap: trap(4, 0x800, Cause::Interrupt(Some(7))),
            bits: None,
            mode: Mode::U,
            context: Context(0),
            time: 9,
        });
        let found = of_steps(&[
            insn(0, 0x13, 4, Mode::U),
            taken,
            insn(0x800, 0x13, 0x804, Mode::M),
        ]);
        let expected = Transfer {
            source: 4,
            target: 0x800,
            kind: Itype::Interrupt,
            from: Some(Mode::U),
            to: Some(Mode::M),
            cause: Some(Cause::Interrupt(Some(7))),
            time: Some(9),
            cycles: None,
            mispredicted: false,
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn harts_do_not_mix_and_signals_part() {
        let mut found = Vec::new();
        let sink = |hart: HartId, t: &Transfer| found.push((hart.0, t.from, t.to));
        let mut transfers = StepTransfers::new(Isa::RV64GC, sink);
        let mret = insn(0, 0x3020_0073, 8, Mode::M);
        let none = &Effects::default();
        transfers.step(HartId(0), &mret, none);
        transfers.step(HartId(1), &insn(0, 0x13, 4, Mode::S), none);
        transfers.step(HartId(0), &insn(8, 0x13, 12, Mode::U), none);
        transfers.step(HartId(0), &mret, none);
        transfers.step(HartId(0), &Step::Signal(Signal::Reset), none);
        transfers.step(HartId(0), &insn(0, 0x13, 4, Mode::M), none);
        let m = Some(Mode::M);
        assert_eq!(found, [(0, m, Some(Mode::U)), (0, m, None)]);
    }
}
