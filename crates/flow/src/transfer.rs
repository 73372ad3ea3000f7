//! Control transfers: what Control Transfer Records keep and profilers read.

use core::ops::ControlFlow;

use hartrace_isa::{Flow, Isa, Itype, ItypeTable};

use crate::{Cause, Consumer, Effects, Event, Exit, HartId, Mode, Observer, Run, Step, Wants};

/// One control transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The instruction that jumped, or the trap's `epc`.
    pub source: u64,
    /// Where it went; for a branch that was not taken the instruction behind.
    pub target: u64,
    /// Its type, with the codes that CTR shares with the ingress port.
    pub kind: Itype,
    /// Privilege mode before, where known.
    pub from: Option<Mode>,
    /// Privilege mode after, where known.
    pub to: Option<Mode>,
    /// Time of the transfer in the source's unit, where known.
    pub time: Option<u64>,
    /// A predictor got it wrong; sources without one say `false`.
    pub mispredicted: bool,
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

/// Transfers from the steps of one hart. Branches that were not taken are
/// among them. The mode after a transfer is that of the next step, so each
/// transfer comes out one step late.
#[derive(Debug)]
pub struct StepTransfers<S> {
    isa: Isa,
    sink: S,
    pending: Option<(HartId, Transfer)>,
}

impl<S: TransferSink> StepTransfers<S> {
    /// The instruction set is that of the code the steps run.
    pub fn new(isa: Isa, sink: S) -> Self {
        StepTransfers {
            isa,
            sink,
            pending: None,
        }
    }

    /// The sink, with everything in it.
    pub fn into_sink(mut self) -> S {
        self.flush(None);
        self.sink
    }

    fn flush(&mut self, to: Option<Mode>) {
        if let Some((hart, mut transfer)) = self.pending.take() {
            transfer.to = to;
            self.sink.transfer(hart, &transfer);
        }
    }
}

impl<S: TransferSink> Observer for StepTransfers<S> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        match step {
            Step::Insn(insn) => {
                self.flush(Some(insn.mode));
                let flow = Flow::of(insn.bits, self.isa);
                if flow.is_sequential() || flow == Flow::Trap {
                    return;
                }
                let taken = insn.next != self.isa.xlen().wrap(insn.end());
                let kind = flow.itype4(taken, ItypeTable::NTrace10);
                let transfer = Transfer {
                    source: insn.pc,
                    target: insn.next,
                    kind,
                    from: Some(insn.mode),
                    to: None,
                    time: Some(insn.time),
                    mispredicted: false,
                };
                self.pending = Some((hart, transfer));
            }
            Step::Trap(t) => {
                self.flush(Some(t.mode));
                let transfer = Transfer {
                    source: t.trap.epc,
                    target: t.trap.handler,
                    kind: trap_kind(t.trap.cause),
                    from: Some(t.mode),
                    to: None,
                    time: Some(t.time),
                    mispredicted: false,
                };
                self.pending = Some((hart, transfer));
            }
            Step::Signal(_) => {}
        }
    }

    fn finish(&mut self) {
        self.flush(None);
    }
}

/// A trap of unknown cause counts as an exception: CTR has no third type.
const fn trap_kind(cause: Cause) -> Itype {
    match cause {
        Cause::Interrupt(_) => Itype::Interrupt,
        Cause::Exception(_) | Cause::Unknown => Itype::Exception,
    }
}

/// Transfers from decoded events.
#[derive(Debug)]
pub struct EventTransfers<S> {
    sink: S,
    mode: Option<Mode>,
    time: Option<u64>,
}

impl<S: TransferSink> EventTransfers<S> {
    /// Gives every transfer to the sink.
    pub fn new(sink: S) -> Self {
        EventTransfers {
            sink,
            mode: None,
            time: None,
        }
    }

    /// The sink, with everything in it.
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn run(&mut self, hart: HartId, run: &Run) {
        let Some(kind) = exit_kind(run.exit) else {
            return;
        };
        // A trap return leaves the mode to the next report of it.
        let to = self.mode.filter(|_| run.exit != Exit::TrapReturn);
        let transfer = Transfer {
            source: run.source(),
            target: run.next,
            kind,
            from: self.mode,
            to,
            time: self.time.take(),
            mispredicted: false,
        };
        self.mode = to;
        self.sink.transfer(hart, &transfer);
    }
}

impl<S: TransferSink> Consumer for EventTransfers<S> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(hart, run),
            Event::Trap(trap) => {
                let transfer = Transfer {
                    source: trap.epc,
                    target: trap.handler,
                    kind: trap_kind(trap.cause),
                    from: self.mode.take(),
                    to: None,
                    time: self.time.take(),
                    mispredicted: false,
                };
                self.sink.transfer(hart, &transfer);
            }
            Event::Context(ownership) => self.mode = ownership.mode.or(self.mode),
            Event::Time(time) => self.time = Some(*time),
            Event::Gap(_) => {
                self.mode = None;
                self.time = None;
            }
            Event::Access(_) | Event::Mark(_) => {}
        }
        ControlFlow::Continue(())
    }
}

/// The type of the transfer that ends a run; `None` when it was merely cut.
const fn exit_kind(exit: Exit) -> Option<Itype> {
    Some(match exit {
        Exit::Stop => return None,
        Exit::NotTaken => Itype::NotTaken,
        Exit::Taken => Itype::Taken,
        Exit::DirectJump => Itype::DirectJump,
        Exit::DirectCall => Itype::DirectCall,
        Exit::OtherDirect => Itype::OtherDirect,
        Exit::IndirectJump => Itype::IndirectJump,
        Exit::IndirectCall => Itype::IndirectCall,
        Exit::OtherIndirect => Itype::OtherIndirect,
        Exit::Return => Itype::Return,
        Exit::Swap => Itype::Swap,
        Exit::TrapReturn => Itype::TrapReturn,
    })
}
