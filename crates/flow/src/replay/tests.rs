use super::*;
use crate::Observer;
use crate::{Access, AccessKind, Gap, Reason, Wants};
use alloc::vec;
use alloc::vec::Vec;
use hartrace_isa::{Isa, length};
use hartrace_testkit::Random;

const HART: HartId = HartId(3);
const BASE: u64 = 0x1000;

/// Everything, in order.
#[derive(Default)]
struct Tape {
    steps: Vec<(HartId, Step)>,
    effects: Vec<Effects>,
    ended: bool,
}

impl Observer for Tape {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.steps.push((hart, *step));
        self.effects.push(*effects);
    }

    fn finish(&mut self) {
        self.ended = true;
    }
}

fn image(code: &[u32]) -> Image {
    let mut bytes = Vec::new();
    for &bits in code {
        let len = usize::from(length(bits as u16)).min(4);
        bytes.extend_from_slice(&bits.to_le_bytes()[..len]);
    }
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, &bytes, Isa::RV64GC);
    image
}

fn replay(image: &Image, events: &[Event]) -> Vec<Step> {
    let mut tape = Tape::default();
    let mut replay = Replay::new(image, &mut tape);
    for event in events {
        assert!(replay.event(HART, event).is_continue());
    }
    replay.finish();
    assert!(tape.ended);
    assert!(tape.steps.iter().all(|(hart, _)| *hart == HART));
    tape.steps.into_iter().map(|(_, step)| step).collect()
}

fn run(start: u64, end: u64, insns: u32, (exit, next): (Exit, u64)) -> Event {
    Event::Run(Run {
        start,
        end,
        next,
        insns,
        exit,
        last: 4,
    })
}

/// `pc>next` of instructions, and the others as they are.
fn told(steps: &[Step]) -> Vec<alloc::string::String> {
    let line = |step: &Step| match step {
        Step::Insn(i) => alloc::format!("{:x}>{:x}", i.pc, i.next),
        Step::Trap(t) => alloc::format!("trap {:x?}>{:x?}", t.trap.epc, t.trap.handler),
        Step::Signal(s) => alloc::format!("{s:?}"),
    };
    steps.iter().map(line).collect()
}

/// Nops of both sizes.
fn nops() -> Image {
    image(&[0x13; 64])
}

/// A hart that goes anywhere: steps of all kinds, and the events a decoder
/// would give for them.
struct Wander {
    random: Random,
    code: Vec<(u64, u32)>,
    steps: Vec<Step>,
    events: Vec<Event>,
    now: Circumstances,
}

impl Wander {
    fn new(seed: u64) -> Wander {
        let mut random = Random::new(seed);
        let mut pc = BASE;
        let mut code = Vec::new();
        for _ in 0..100 {
            // nop, c.nop, lw, jr, ecall
            let choice = [0x13, 1, 0x0005_2503, 0x8502, 0x73][random.below(5) as usize];
            code.push((pc, choice));
            pc += u64::from(length(choice as u16));
        }
        Wander {
            random,
            code,
            steps: Vec::new(),
            events: Vec::new(),
            now: Circumstances::default(),
        }
    }

    /// A stretch from one instruction to another and what ends it.
    fn stretch(&mut self) {
        if self.random.below(4) == 0 {
            let modes = [Mode::U, Mode::S, Mode::M];
            self.now.mode = modes[self.random.below(3) as usize];
            self.now.context = Context(self.random.below(9));
            self.events.push(Event::Context(Ownership {
                mode: Some(self.now.mode),
                context: Some(self.now.context),
            }));
        }
        if self.random.below(4) == 0 {
            self.now.time += self.random.below(99);
            self.events.push(Event::Time(self.now.time));
        }
        let from = self.random.below(80) as usize;
        let most = 1 + self.random.below(12) as usize;
        let is = |bits| move |(_, b): &(u64, u32)| *b == bits;
        let code = &self.code[from..(from + most).min(90)];
        // Up to an ecall, which traps, or with a jump as the last.
        let ecall = code.iter().position(is(0x73)).unwrap_or(code.len());
        let jump = code
            .iter()
            .position(is(0x8502))
            .map_or(code.len(), |j| j + 1);
        let code = &code[..ecall.min(jump)];
        let behind = self.code[from + code.len()];
        let elsewhere = self.code[self.random.below(80) as usize].0;
        let jumps = code.last().is_some_and(is(0x8502));
        let next = if jumps { elsewhere } else { behind.0 };
        let mut pcs = code.iter().map(|i| i.0).skip(1).chain([next]);
        for &(pc, bits) in code {
            self.steps.push(Step::Insn(Insn {
                pc,
                next: pcs.next().unwrap(),
                time: self.now.time,
                context: self.now.context,
                bits,
                mode: self.now.mode,
            }));
        }
        if let Some(&(pc, bits)) = code.last() {
            let last = length(bits as u16);
            self.events.push(Event::Run(Run {
                start: code[0].0,
                end: pc + u64::from(last),
                next,
                insns: code.len() as u32,
                exit: if jumps {
                    Exit::IndirectJump
                } else {
                    Exit::Stop
                },
                last,
            }));
        }
        self.ending(next, (!jumps).then_some(behind.1).filter(|&b| b == 0x73));
    }

    /// A trap, a signal, or a gap.
    fn ending(&mut self, epc: u64, ecall: Option<u32>) {
        let handler = Some(self.code[self.random.below(80) as usize].0);
        let choice = self.random.below(4);
        let told = Cause::Exception(Some(2));
        let asked = match self.now.mode {
            Mode::U => 8,
            Mode::S => 9,
            _ => 11,
        };
        let at_epc = self.code.iter().find(|c| c.0 == epc).unwrap().1;
        let (cause, known, bits) = match (choice, ecall) {
            (0, _) => (Cause::Interrupt(Some(7)), Cause::Interrupt(Some(7)), None),
            (1, _) => (told, told, Some(at_epc)),
            (_, Some(bits)) => (Cause::Unknown, Cause::Exception(Some(asked)), Some(bits)),
            _ => return self.signals(),
        };
        let tval = None;
        let trap = |cause| Trap {
            epc: Some(epc),
            handler,
            cause,
            tval,
            pending: None,
        };
        self.events.push(Event::Trap(trap(cause)));
        self.steps.push(Step::Trap(TrapStep {
            trap: trap(known),
            bits,
            mode: self.now.mode,
            context: self.now.context,
            time: self.now.time,
        }));
    }

    fn signals(&mut self) {
        let (marks, signals): (&[Mark], &[Signal]) = match self.random.below(8) {
            0 => (&[Mark::Off, Mark::On], &[Signal::Untraced]),
            1 => (
                &[Mark::Halted, Mark::Resumed],
                &[Signal::Halted, Signal::Resumed],
            ),
            2 => (&[Mark::Reset], &[Signal::Reset]),
            3 => (&[Mark::Notify], &[Signal::Notify]),
            4 => (&[Mark::External(5)], &[Signal::External(5)]),
            5 => (
                &[Mark::PowerDown, Mark::Sync(9), Mark::PowerUp],
                &[Signal::PowerDown, Signal::PowerUp],
            ),
            6 => {
                self.events.push(gap());
                (&[], &[Signal::Lost])
            }
            // A jump elsewhere that nothing explains is somebody's mistake.
            _ => (&[Mark::Off], &[Signal::Untraced]),
        };
        self.events.extend(marks.iter().copied().map(Event::Mark));
        self.steps.extend(signals.iter().copied().map(Step::Signal));
    }
}

fn gap() -> Event {
    Event::Gap(Gap {
        at: 0,
        reason: Reason {
            code: "XX0001",
            text: "test",
            value: 0,
        },
        bytes: 0,
        unconfirmed: 0,
    })
}

#[test]
fn the_steps_come_back() {
    for seed in 0..200 {
        let mut wander = Wander::new(seed);
        wander.stretch();
        while wander.events.len() < 200 {
            wander.stretch();
        }
        // What nothing ran before and nothing runs behind is not said.
        let untraced = |s: &&Step| **s != Step::Signal(Signal::Untraced);
        let bits: Vec<u32> = wander.code.iter().map(|c| c.1).collect();
        let given = replay(&image(&bits), &wander.events);
        let given: Vec<&Step> = given.iter().filter(untraced).collect();
        let expected: Vec<&Step> = wander.steps.iter().filter(untraced).collect();
        for (given, expected) in given.iter().zip(&expected) {
            assert_eq!(given, expected, "seed {seed}");
        }
        assert_eq!(given.len(), expected.len());
    }
}

#[test]
fn tracing_that_was_off_is_said_once_and_where_something_follows() {
    let here = run(BASE, BASE + 4, 1, (Exit::Stop, BASE + 4));
    let there = run(BASE + 32, BASE + 36, 1, (Exit::Stop, BASE + 36));
    let mark = Event::Mark;
    let off = mark(Mark::Off);
    let on = mark(Mark::On);
    let (a, b) = ("1000>1004", "1020>1024");
    let of = |events: &[Event]| told(&replay(&nops(), events));
    assert_eq!(of(&[on, here, off, on, there]), [a, "Untraced", b]);
    assert_eq!(of(&[here, off, there, off]), [a, "Untraced", b]);
    assert_eq!(of(&[here, on, there]), [a, "Untraced", b]);
    assert_eq!(of(&[off, here, off, off]), [a]);
    assert_eq!(of(&[here, off, gap(), on, there]), [a, "Lost", b]);
    let reset = [here, off, mark(Mark::Reset), there];
    assert_eq!(of(&reset), [a, "Untraced", "Reset", b]);
}

/// No block of a halted hart is its own.
#[test]
fn what_runs_is_awake() {
    let here = run(BASE, BASE + 4, 1, (Exit::Stop, BASE + 4));
    for (mark, down, up) in [
        (Mark::Halted, "Halted", "Resumed"),
        (Mark::PowerDown, "PowerDown", "PowerUp"),
    ] {
        let steps = replay(&nops(), &[here, Event::Mark(mark), here]);
        assert_eq!(told(&steps), ["1000>1004", down, up, "1000>1004"]);
    }
    let reset = [Mark::Halted, Mark::Reset].map(Event::Mark);
    let steps = replay(&nops(), &[reset[0], reset[1], here]);
    assert_eq!(told(&steps), ["Halted", "Reset", "1000>1004"]);
}

#[test]
fn a_signal_stands_before_its_instruction() {
    let steps = replay(
        &nops(),
        &[
            run(BASE, BASE + 8, 2, (Exit::Stop, BASE + 8)),
            Event::Mark(Mark::Notify),
            Event::Time(5),
            run(BASE + 8, BASE + 16, 2, (Exit::Stop, BASE + 16)),
        ],
    );
    let expected = ["1000>1004", "1004>1008", "Notify", "1008>100c", "100c>1010"];
    assert_eq!(told(&steps), expected);
}

/// Where a run that was cut went is what comes next, unless that is elsewhere
/// for a reason.
#[test]
fn a_run_goes_where_the_next_thing_is() {
    let first = run(BASE, BASE + 4, 1, (Exit::Stop, BASE + 4));
    let second = run(BASE + 16, BASE + 20, 1, (Exit::Stop, BASE + 20));
    let trap = |epc| {
        Event::Trap(Trap {
            epc,
            handler: Some(BASE + 16),
            cause: Cause::Unknown,
            tval: None,
            pending: None,
        })
    };
    let next = |event| match replay(&nops(), &[first, event, second])[0] {
        Step::Insn(insn) => insn.next,
        _ => 0,
    };
    assert_eq!(next(trap(Some(BASE + 32))), BASE + 32);
    assert_eq!(next(trap(None)), BASE + 4);
    assert_eq!(next(gap()), BASE + 4);
    assert_eq!(next(second), BASE + 16);
}

#[test]
fn a_trap_has_the_instruction_that_trapped() {
    // ecall, c.ebreak, nop
    let image = image(&[0x73, 0x9002, 0x13]);
    let with = |epc, cause| {
        let trap = Trap {
            epc,
            handler: None,
            cause,
            tval: Some(1),
            pending: None,
        };
        match replay(&image, &[Event::Trap(trap)])[0] {
            Step::Trap(t) => (t.bits, t.trap.cause),
            _ => (None, Cause::Unknown),
        }
    };
    let code = |code| Cause::Exception(Some(code));
    let [ecall, ebreak, nop] = [BASE, BASE + 4, BASE + 6].map(Some);
    for unreported in [Cause::Unknown, Cause::Exception(None)] {
        assert_eq!(with(ecall, unreported), (Some(0x73), code(11)));
        assert_eq!(with(ebreak, unreported), (Some(0x9002), code(3)));
        assert_eq!(with(nop, unreported), (None, unreported));
    }
    assert_eq!(with(nop, code(2)), (Some(0x13), code(2)));
    for cause in [code(12), code(1), code(20), Cause::Interrupt(None)] {
        assert_eq!(with(ecall, cause), (None, cause));
    }
}

#[test]
fn a_trap_at_an_unknown_place_is_a_loss() {
    let image = nops();
    let trap = Trap {
        epc: None,
        handler: Some(BASE + 16),
        cause: Cause::Interrupt(Some(7)),
        tval: None,
        pending: None,
    };
    let events = [
        run(BASE, BASE + 4, 1, (Exit::Stop, BASE + 4)),
        Event::Trap(trap),
        run(BASE + 16, BASE + 20, 1, (Exit::Stop, BASE + 20)),
    ];
    let steps = replay(&image, &events);
    assert_eq!(told(&steps), ["1000>1004", "Lost", "1010>1014"]);
}

#[test]
fn a_trap_at_an_unknown_place_may_be_kept() {
    // mret, nop, beq x0,x0,.
    let image = image(&[0x3020_0073, 0x13, 0x63]);
    let trap = Event::Trap(Trap {
        epc: None,
        handler: Some(BASE + 4),
        cause: Cause::Interrupt(Some(7)),
        tval: None,
        pending: None,
    });
    let mode = |mode| {
        Event::Context(Ownership {
            mode: Some(mode),
            context: None,
        })
    };
    let events = [
        mode(Mode::M),
        run(BASE, BASE + 4, 1, (Exit::Stop, BASE + 4)),
        mode(Mode::U),
        trap,
        mode(Mode::S),
        // Only a jump may have gone anywhere.
        run(BASE + 4, BASE + 8, 1, (Exit::Stop, BASE + 8)),
        trap,
        run(BASE + 8, BASE + 12, 1, (Exit::Stop, BASE + 12)),
        trap,
    ];
    let mut tape = Tape::default();
    let mut replay = Replay::new(&image, &mut tape).keep_unplaced();
    for event in &events {
        let _ = replay.event(HART, event);
    }
    assert_eq!(replay.assumed().unplaced, 3);
    replay.finish();
    let steps: Vec<Step> = tape.steps.into_iter().map(|s| s.1).collect();
    let unplaced = "trap None>Some(1004)";
    assert_eq!(
        told(&steps),
        [
            "1000>0",
            unplaced,
            "1004>1008",
            unplaced,
            "1008>100c",
            unplaced
        ]
    );
    let modes: Vec<_> = steps
        .iter()
        .map(|step| match step {
            Step::Insn(insn) => insn.mode,
            Step::Trap(trap) => trap.mode,
            Step::Signal(_) => Mode::D,
        })
        .collect();
    assert_eq!(modes.get(..3), Some(&[Mode::M, Mode::U, Mode::S][..]));
}

#[test]
fn what_was_not_told_is_counted() {
    // ecall, c.ebreak, nop
    let image = image(&[0x73, 0x9002, 0x13]);
    let mut tape = Tape::default();
    let mut replay = Replay::new(&image, &mut tape);
    let trap = |epc, cause| {
        Event::Trap(Trap {
            epc,
            handler: None,
            cause,
            tval: None,
            pending: None,
        })
    };
    let told = Assumed::default();
    let mode = Event::Context(Ownership {
        mode: Some(Mode::U),
        context: None,
    });
    let [ecall, ebreak, nop] = [BASE, BASE + 4, BASE + 6].map(Some);
    let unknown = Cause::Exception(None);
    let modes = true;
    #[rustfmt::skip]
    let all = [
        // The cause of an ecall is that of the mode, and its value 0.
        (trap(ecall, unknown), Assumed { modes, causes: 1, ..told }),
        (trap(ebreak, unknown), Assumed { modes, causes: 1, values: 1, ..told }),
        (mode, Assumed { modes, causes: 1, values: 1, ..told }),
        (trap(ecall, unknown), Assumed { modes, causes: 1, values: 1, ..told }),
        (trap(nop, unknown), Assumed { modes, causes: 2, values: 2, ..told }),
        (trap(nop, Cause::Interrupt(None)), Assumed { modes, causes: 3, values: 2, ..told }),
        (trap(nop, Cause::Interrupt(Some(7))), Assumed { modes, causes: 3, values: 2, ..told }),
        (trap(None, unknown), Assumed { modes, causes: 3, values: 2, unplaced: 1, ..told }),
        (trap(nop, Cause::Unknown), Assumed { modes, causes: 4, kinds: 1, values: 3, unplaced: 1 }),
    ];
    for (event, expected) in all {
        let _ = replay.event(HART, &event);
        assert_eq!(replay.assumed(), expected, "{event:?}");
    }
}

#[test]
fn accesses_belong_to_their_instruction() {
    let access = |insn, addr| {
        let kind = AccessKind::Store;
        let access = Access {
            kind,
            addr,
            ..Access::default()
        };
        Event::Access(DataAccess::of(insn, access))
    };
    let events = [
        access(0, 1), // nobody's
        run(BASE, BASE + 12, 3, (Exit::Stop, BASE + 12)),
        access(2, 2),
        access(0, 3),
        access(2, 4),
        run(BASE + 12, BASE + 16, 1, (Exit::Stop, BASE + 16)),
    ];
    let image = nops();
    let mut tape = Tape::default();
    let mut replay = Replay::new(&image, &mut tape);
    for event in &events {
        let _ = replay.event(HART, event);
    }
    replay.finish();
    assert_eq!(tape.steps.len(), 4);
    let effects = tape.effects;
    let addrs: Vec<Vec<u64>> = effects
        .iter()
        .map(|e| e.accesses.iter().map(|a| a.addr).collect())
        .collect();
    assert_eq!(addrs, [vec![3], vec![], vec![2, 4], vec![]]);
}

/// Another image than the decoder had.
#[test]
fn code_that_is_not_there_is_lost() {
    let image = image(&[0x13, 0x13]);
    let steps = replay(&image, &[run(BASE, BASE + 12, 3, (Exit::Stop, BASE + 12))]);
    assert_eq!(told(&steps), ["1000>1004", "1004>100c", "Lost"]);
}

/// Each context has its own code, and each hart its own state.
#[test]
fn spaces_and_harts() {
    let mut image = nops();
    let space = image.add_space();
    image.add_raw(space, BASE, &[1, 0, 1, 0], Isa::RV64GC);
    image.assign(Context(7), space);
    let mut tape = Tape::default();
    let mut replay = Replay::new(&image, &mut tape);
    let here = Run {
        start: BASE,
        end: BASE + 4,
        next: BASE + 4,
        insns: 1,
        exit: Exit::Stop,
        last: 4,
    };
    let owner = Ownership {
        mode: None,
        context: Some(Context(7)),
    };
    let _ = replay.event(HartId(1), &Event::Context(owner));
    let there = Run {
        end: BASE + 2,
        ..here
    };
    let _ = replay.runs(HartId(1), &[there]);
    let _ = replay.runs(HartId(0), &[here]);
    replay.finish();
    let steps = tape.steps;
    let bits = |(hart, step): &(HartId, Step)| match step {
        Step::Insn(i) => (hart.0, i.bits, i.context.0),
        _ => (9, 9, 9),
    };
    let bits: Vec<_> = steps.iter().map(bits).collect();
    assert_eq!(bits, [(1, 1, 7), (0, 0x13, 0)]);
}
