//! Turns steps into events, so that what reads traces reads logs and harts too.

use hartrace_isa::{Flow, Isa};

use crate::per_hart::PerHart;
use crate::{
    Consumer, Context, Effects, Event, Exit, Gap, HartId, Insn, Mark, Mode, Observer, Ownership,
    Reason, Run, Signal, Step, Straights, TrapStep, Wants,
};

/// Why there is a gap in a log: HT0106.
const LOST: Reason = Reason {
    code: "HT0106",
    text: "lines are missing or cannot be read",
    value: 0,
};

/// Instructions in one run at most. A trace divides straight code at pages; a log
/// does not have to, but runs are kept short enough to be cached.
const MAX_INSNS: u32 = 1 << 10;

/// An [`Observer`] that gives a [`Consumer`] the events that a trace of the steps
/// reports: the opposite of [`Replay`](crate::Replay).
///
/// A run ends with the same instructions as in a trace. An [`Event::Time`] comes
/// before a run whose first step has another time than the run before it, and only
/// if the source has times at all. Effects are left out. Where steps are missing
/// there is a [`Gap`] with the code HT0106.
///
/// A step does not say whether a branch was taken, only where it went: a taken
/// branch to the instruction after it counts as not taken.
///
/// ```
/// use hartrace_flow::{Consumer, Effects, Event, Exit, HartId, Insn, Observer, Step, StepEvents};
/// use hartrace_isa::Isa;
/// use std::ops::ControlFlow;
///
/// struct Exits(Vec<(u64, u32, Exit)>);
/// impl Consumer for Exits {
///     fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
///         if let Event::Run(run) = event {
///             self.0.push((run.start, run.insns, run.exit));
///         }
///         ControlFlow::Continue(())
///     }
/// }
///
/// // c.nop; c.j 0x1000
/// let mut events = StepEvents::new(Isa::RV64GC, Exits(Vec::new()));
/// for (pc, bits, next) in [(0x1000, 0x0001, 0x1002), (0x1002, 0xbffd, 0x1000)] {
///     let insn = Insn { pc, bits, next, ..Insn::default() };
///     events.step(HartId(0), &Step::Insn(insn), &Effects::default());
/// }
/// assert_eq!(events.into_inner().0, [(0x1000, 2, Exit::DirectJump)]);
/// ```
#[derive(Debug)]
pub struct StepEvents<C> {
    inner: C,
    state: State,
}

/// Everything but the consumer: compiled once for all.
#[derive(Debug)]
struct State {
    isa: Isa,
    harts: PerHart<Hart>,
}

#[derive(Debug, Default)]
struct Hart {
    /// The run that is being gathered.
    run: Option<Run>,
    /// The mode and context that were reported last.
    owner: Option<(Mode, Context)>,
    /// The time that was reported last; 0 before the first.
    time: u64,
}

impl<C: Consumer> StepEvents<C> {
    /// Gives events to `inner`. The instruction set is that of the code.
    pub fn new(isa: Isa, inner: C) -> StepEvents<C> {
        let harts = PerHart::default();
        StepEvents {
            inner,
            state: State { isa, harts },
        }
    }

    /// The consumer, for what it gathered so far. It has not seen the last
    /// instructions yet.
    pub fn inner(&mut self) -> &mut C {
        &mut self.inner
    }

    /// No more steps: gives the last events, and the consumer back.
    pub fn into_inner(mut self) -> C {
        self.finish();
        self.inner
    }
}

impl State {
    fn step(&mut self, id: HartId, step: &Step, out: &mut dyn Consumer) {
        match step {
            Step::Insn(insn) => self.insn(id, insn, out),
            Step::Trap(trap) => self.trap(id, trap, out),
            Step::Signal(signal) => self.signal(id, *signal, out),
        }
    }

    fn straights(&mut self, id: HartId, code: &Straights<'_>, out: &mut dyn Consumer) {
        for insn in code.iter() {
            self.insn(id, &insn, out);
        }
    }

    fn finish(&mut self, out: &mut dyn Consumer) {
        for (id, hart) in self.harts.iter_mut() {
            hart.end_run(id, out);
        }
    }

    fn insn(&mut self, id: HartId, insn: &Insn, out: &mut dyn Consumer) {
        let hart = self.harts.of(id);
        let continues = hart.run.is_some_and(|run| run.next == insn.pc)
            && hart.owner == Some((insn.mode, insn.context));
        if !continues {
            hart.end_run(id, out);
            hart.begin(id, (insn.mode, insn.context), insn.time, out);
        }
        let flow = Flow::of_retired(insn.bits, self.isa);
        let end = self.isa.xlen().wrap(insn.end());
        let run = hart.run.get_or_insert(Run {
            start: insn.pc,
            end: insn.pc,
            next: insn.pc,
            insns: 0,
            exit: Exit::Stop,
            last: 0,
        });
        run.insns += 1;
        (run.end, run.next, run.last) = (insn.end(), insn.next, insn.len());
        run.exit = exit(flow, insn.next != end);
        if run.exit != Exit::Stop || insn.next != end || run.insns >= MAX_INSNS {
            hart.end_run(id, out);
        }
    }

    fn trap(&mut self, id: HartId, step: &TrapStep, out: &mut dyn Consumer) {
        let hart = self.harts.of(id);
        hart.end_run(id, out);
        hart.begin(id, (step.mode, step.context), step.time, out);
        give(out, id, Event::Trap(step.trap));
    }

    fn signal(&mut self, id: HartId, signal: Signal, out: &mut dyn Consumer) {
        let hart = self.harts.of(id);
        let mark = match signal {
            Signal::Update => return,
            Signal::Halted => Mark::Halted,
            Signal::Resumed => Mark::Resumed,
            Signal::Reset => Mark::Reset,
            Signal::PowerDown => Mark::PowerDown,
            Signal::PowerUp => Mark::PowerUp,
            Signal::TraceOn => Mark::On,
            Signal::TraceOff | Signal::Untraced => Mark::Off,
            Signal::Notify => Mark::Notify,
            Signal::External(input) => Mark::External(input),
            Signal::Lost => {
                hart.end_run(id, out);
                let gap = Gap {
                    at: 0,
                    reason: LOST,
                    bytes: 0,
                    unconfirmed: 0,
                };
                give(out, id, Event::Gap(gap));
                return;
            }
        };
        hart.end_run(id, out);
        give(out, id, Event::Mark(mark));
    }
}

impl<C: Consumer> Observer for StepEvents<C> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        self.state.step(hart, step, &mut self.inner);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.state.straights(hart, code, &mut self.inner);
    }

    fn finish(&mut self) {
        self.state.finish(&mut self.inner);
    }
}

impl Hart {
    fn end_run(&mut self, id: HartId, out: &mut dyn Consumer) {
        if let Some(run) = self.run.take() {
            // Sources of steps do not pause.
            let _ = out.runs(id, &[run]);
        }
    }

    /// What is known when something begins, as far as it is new.
    fn begin(&mut self, id: HartId, owner: (Mode, Context), time: u64, out: &mut dyn Consumer) {
        if self.owner != Some(owner) {
            let (mode, context) = owner;
            let before = self.owner.map(|(_, context)| context);
            let new = before.unwrap_or_default() != context;
            let event = Ownership {
                mode: Some(mode),
                context: new.then_some(context),
            };
            self.owner = Some(owner);
            give(out, id, Event::Context(event));
        }
        if self.time != time {
            self.time = time;
            give(out, id, Event::Time(time));
        }
    }
}

/// Sources of steps do not pause.
fn give(out: &mut dyn Consumer, id: HartId, event: Event) {
    let _ = out.event(id, &event);
}

/// How an instruction ends a run, given whether the hart went elsewhere.
const fn exit(flow: Flow, elsewhere: bool) -> Exit {
    match flow {
        Flow::Seq | Flow::Const { .. } | Flow::Trap => Exit::Stop,
        Flow::Branch { .. } if elsewhere => Exit::Taken,
        Flow::Branch { .. } => Exit::NotTaken,
        Flow::Jump { link, .. } | Flow::Table { link, .. } => Exit::direct(link),
        Flow::Indirect { link, .. } => Exit::indirect(link),
        Flow::PopReturn => Exit::Return,
        Flow::TrapReturn => Exit::TrapReturn,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::ops::ControlFlow;

    use super::*;
    use crate::{Cause, Image, Replay, SpaceId, Trap};

    const HART: HartId = HartId(0);

    #[derive(Default)]
    struct Kept(Vec<(HartId, Event)>);

    impl Consumer for Kept {
        fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
            self.0.push((hart, *event));
            ControlFlow::Continue(())
        }
    }

    fn insn(pc: u64, bits: u32, next: u64) -> Insn {
        Insn {
            pc,
            bits,
            next,
            ..Insn::default()
        }
    }

    fn run(start: u64, end: u64, next: u64, insns: u32, exit: Exit) -> Event {
        Event::Run(Run {
            start,
            end,
            next,
            insns,
            exit,
            last: 4,
        })
    }

    fn events(steps: &[Step]) -> Vec<Event> {
        let mut out = StepEvents::new(Isa::RV64GC, Kept::default());
        for step in steps {
            out.step(HART, step, &Effects::default());
        }
        out.into_inner().0.into_iter().map(|(_, e)| e).collect()
    }

    fn owner(mode: Mode, context: Option<u64>) -> Event {
        Event::Context(Ownership {
            mode: Some(mode),
            context: context.map(Context),
        })
    }

    #[test]
    fn every_kind_of_exit() {
        let steps = [
            insn(0, 0x13, 4),            // nop
            insn(4, 0x0000_0463, 8),     // beq, not taken
            insn(8, 0x0000_0463, 16),    // beq, taken
            insn(16, 0x0080_00ef, 24),   // jal ra
            insn(24, 0x0080_006f, 32),   // jal x0
            insn(32, 0x0080_03ef, 40),   // jal t2
            insn(40, 0x0003_00e7, 100),  // jalr ra, t1
            insn(100, 0x0003_0067, 200), // jalr x0, t1
            insn(200, 0x0003_03e7, 300), // jalr t2, t1
            insn(300, 0x0000_8067, 400), // ret
            insn(400, 0x0002_80e7, 500), // jalr ra, t0
            insn(500, 0x3020_0073, 600), // mret
            insn(600, 0x13, 604),
        ];
        let steps: Vec<Step> = steps.into_iter().map(Step::Insn).collect();
        let exits = events(&steps).into_iter().filter_map(|event| match event {
            Event::Run(run) => Some((run.insns, run.exit)),
            _ => None,
        });
        let expected = [
            (2, Exit::NotTaken),
            (1, Exit::Taken),
            (1, Exit::DirectCall),
            (1, Exit::DirectJump),
            (1, Exit::OtherDirect),
            (1, Exit::IndirectCall),
            (1, Exit::IndirectJump),
            (1, Exit::OtherIndirect),
            (1, Exit::Return),
            (1, Exit::Swap),
            (1, Exit::TrapReturn),
            (1, Exit::Stop),
        ];
        assert_eq!(exits.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn traps_times_and_owners_stand_where_they_happened() {
        let trap = Trap {
            epc: Some(4),
            handler: Some(0x100),
            cause: Cause::Interrupt(Some(7)),
            tval: None,
            pending: None,
        };
        let steps = [
            Step::Insn(Insn {
                time: 5,
                mode: Mode::U,
                context: Context(3),
                ..insn(0, 0x13, 4)
            }),
            Step::Trap(TrapStep {
                trap,
                bits: None,
                mode: Mode::U,
                context: Context(3),
                time: 6,
            }),
            Step::Insn(Insn {
                time: 9,
                context: Context(3),
                ..insn(0x100, 0x13, 0x104)
            }),
            Step::Signal(Signal::Lost),
            Step::Signal(Signal::Update),
            Step::Signal(Signal::Reset),
        ];
        let gap = Gap {
            at: 0,
            reason: LOST,
            bytes: 0,
            unconfirmed: 0,
        };
        let expected = [
            owner(Mode::U, Some(3)),
            Event::Time(5),
            run(0, 4, 4, 1, Exit::Stop),
            Event::Time(6),
            Event::Trap(trap),
            owner(Mode::M, None),
            Event::Time(9),
            run(0x100, 0x104, 0x104, 1, Exit::Stop),
            Event::Gap(gap),
            Event::Mark(Mark::Reset),
        ];
        assert_eq!(events(&steps), expected);
    }

    /// Replayed events are the steps they came from.
    #[test]
    fn the_opposite_of_a_replay() {
        struct Steps(Vec<Step>);
        impl Observer for Steps {
            const WANTS: Wants = Wants::STEPS;
            fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
                self.0.push(*step);
            }
        }
        // nop; beq +8; nop; ret
        let code = [0x13u32, 0x0000_0463, 0x13, 0x0000_8067];
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0, &code, Isa::RV64GC);
        let steps: Vec<Step> = [
            insn(0, 0x13, 4),
            insn(4, 0x0000_0463, 12),
            insn(12, 0x0000_8067, 0),
            insn(0, 0x13, 4),
            insn(4, 0x0000_0463, 8),
            insn(8, 0x13, 12),
        ]
        .into_iter()
        .map(Step::Insn)
        .collect();
        let mut given = Steps(Vec::new());
        let mut out = StepEvents::new(Isa::RV64GC, Replay::new(&image, &mut given));
        for step in &steps {
            out.step(HART, step, &Effects::default());
        }
        out.into_inner().finish();
        assert_eq!(given.0, steps);
    }

    /// Code without a jump is divided, and nothing of it is lost.
    #[test]
    fn long_straight_code() {
        let count = u64::from(MAX_INSNS) * 2 + 3;
        let steps: Vec<Step> = (0..count)
            .map(|n| Step::Insn(insn(4 * n, 0x13, 4 * n + 4)))
            .collect();
        let runs: Vec<u32> = events(&steps)
            .into_iter()
            .filter_map(|event| match event {
                Event::Run(run) => Some(run.insns),
                _ => None,
            })
            .collect();
        assert_eq!(runs, [MAX_INSNS, MAX_INSNS, 3]);
    }
}
