//! Stacks of small programs: functions of 0x100 bytes each, events by hand.

use super::tree::MAX_DEPTH;
use super::*;
use crate::profile::{Profile, Profiler};
use hartrace_flow::{Cause, Consumer, Context, Gap, Image, Mode, Ownership, Reason, SpaceId, Trap};
use hartrace_isa::Isa;

/// `a` at 0x1000, `b` at 0x1100 and so on.
fn functions() -> Functions {
    let names = ["a", "b", "c", "d", "e", "f", "isr", "swtch", "longjmp"];
    let list: Vec<(u64, u64, &str)> = (0u64..)
        .zip(names)
        .map(|(n, name)| (0x1000 + n * 0x100, 0x1100 + n * 0x100, name))
        .collect();
    Functions::testing(&list)
}

fn at(name: char) -> u64 {
    match name {
        'i' => 0x1600,
        's' => 0x1700,
        'l' => 0x1800,
        name => 0x1000 + (u64::from(u32::from(name)) - 0x61) * 0x100,
    }
}

/// Four instructions at an address, then a jump of this kind.
fn run(start: u64, exit: Exit, next: u64) -> Event {
    Event::Run(Run {
        start,
        end: start + 16,
        next,
        insns: 4,
        exit,
        last: 4,
    })
}

fn call(start: u64, callee: char) -> Event {
    run(start, Exit::DirectCall, at(callee))
}

fn ret(start: u64, to: u64) -> Event {
    run(start, Exit::Return, to)
}

fn stop(start: u64) -> Event {
    run(start, Exit::Stop, start + 16)
}

fn trap(epc: u64) -> Event {
    Event::Trap(Trap {
        epc: Some(epc),
        handler: Some(at('i')),
        cause: Cause::Interrupt(Some(7)),
        tval: None,
        pending: None,
    })
}

fn gap() -> Event {
    Event::Gap(Gap {
        at: 0,
        reason: Reason {
            code: "NT0000",
            text: "",
            value: 0,
        },
        bytes: 0,
        unconfirmed: 0,
    })
}

fn context(number: u64) -> Event {
    Event::Context(Ownership {
        mode: None,
        context: Some(Context(number)),
    })
}

#[derive(Default)]
struct Seen {
    left: Vec<Left>,
    odd: Vec<Odd>,
}

impl StackSink for Seen {
    fn left(&mut self, _: HartId, call: &Left) {
        self.left.push(*call);
    }

    fn odd(&mut self, _: HartId, jump: &OddJump) {
        self.odd.push(jump.odd);
    }
}

fn profile(grouping: Grouping, events: &[(u32, Event)]) -> (Profile, Seen) {
    let image = Image::new();
    let mut profiler = Profiler::new(&image, functions(), grouping, Seen::default());
    for (hart, event) in events {
        let _ = profiler.event(HartId(*hart), event);
    }
    profiler.finish()
}

/// Call paths with their own instructions in runs of four, `?` for inferred
/// functions; and what was odd.
fn paths_of(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for node in profile.tree.nodes() {
        if node.own.insns == 0 {
            continue;
        }
        let mut names = Vec::new();
        let mut here = node;
        loop {
            names.push(match here.what {
                What::Root => break,
                What::Function(id) => {
                    let mark = if here.inferred { "?" } else { "" };
                    format!("{}{mark}", profile.functions.get(id).name)
                }
                What::Trap(_) => "trap".to_owned(),
                What::Hart(id) => format!("hart{}", id.0),
                What::Context(context) => format!("context{:?}", context.map(|c| c.0)),
                What::Mode(mode) => mode.map_or("-", Mode::name).to_owned(),
                What::Unknown => "unknown".to_owned(),
            });
            here = profile.tree.node(here.parent).unwrap();
        }
        names.reverse();
        lines.push(format!("{} {}", names.join(";"), node.own.insns / 4));
    }
    lines.sort();
    lines
}

fn paths(events: &[Event]) -> (Vec<String>, Vec<Odd>) {
    let events: Vec<(u32, Event)> = events.iter().map(|e| (0, *e)).collect();
    let (profile, seen) = profile(Grouping::default(), &events);
    assert_eq!(profile.total().insns, profile.tree.totals()[0].insns);
    (paths_of(&profile), seen.odd)
}

#[track_caller]
fn check(events: &[Event], expected: &[&str], odd: &[Odd]) {
    let (found, found_odd) = paths(events);
    assert_eq!(found, expected);
    assert_eq!(found_odd, odd);
}

/// What a trap has interrupted when the trace ends cost what it did before the trap.
#[test]
fn interrupted_calls_end_with_their_own_cost() {
    let (a, b, i) = (at('a'), at('b'), at('i'));
    let events = [
        call(a, 'b'),
        stop(b),
        trap(b + 16),
        call(i, 'c'),
        stop(at('c')),
    ];
    let events: Vec<(u32, Event)> = events.iter().map(|e| (0, *e)).collect();
    let (_, seen) = profile(Grouping::default(), &events);
    let costs: Vec<u64> = seen.left.iter().map(|left| left.cost.insns).collect();
    assert_eq!(costs, [4, 8, 4, 8]);
}

#[test]
fn calls_and_returns() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        call(a, 'b'),
        call(b, 'c'),
        ret(c, b + 16),
        ret(b + 16, a + 16),
        call(a + 16, 'c'),
        ret(c, a + 32),
        stop(a + 32),
    ];
    check(&events, &["a 3", "a;b 2", "a;b;c 1", "a;c 1"], &[]);
    let events: Vec<(u32, Event)> = events.iter().map(|e| (0, *e)).collect();
    let (profile, seen) = profile(Grouping::default(), &events);
    let costs: Vec<(String, u64, u64, u64)> = profile
        .by_function(Measure::Instructions)
        .iter()
        .map(|f| {
            let name = profile.functions.get(f.function).name.clone();
            (name, f.own.insns, f.total.insns, f.calls)
        })
        .collect();
    let expected = [("a", 12, 28, 1), ("b", 8, 12, 1), ("c", 8, 8, 2)];
    assert_eq!(costs, expected.map(|(n, o, t, c)| (n.to_owned(), o, t, c)));
    let lengths: Vec<(u64, bool, How)> = seen
        .left
        .iter()
        .map(|l| (l.cost.insns, l.whole, l.how))
        .collect();
    let returned = How::Returned;
    assert_eq!(
        lengths,
        [
            (4, true, returned),
            (12, true, returned),
            (4, true, returned),
            (28, false, How::Lost)
        ]
    );
    let edges: Vec<(u64, u64)> = profile
        .call_edges(Measure::Instructions)
        .iter()
        .filter(|e| e.caller != What::Root)
        .map(|e| (e.calls, e.total.insns))
        .collect();
    assert_eq!(edges, [(1, 12), (1, 4), (1, 4)]);
}

/// The callee returns to the caller of the function that jumped to it.
#[test]
fn a_tail_call() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        call(a, 'b'),
        run(b, Exit::DirectJump, c),
        ret(c, a + 16),
        stop(a + 16),
    ];
    check(&events, &["a 2", "a;b 1", "a;c 1"], &[]);
    // By a branch, by a pointer, and by running on.
    for exit in [Exit::Taken, Exit::IndirectJump, Exit::Stop] {
        let events = [call(a, 'b'), run(b, exit, c), ret(c, a + 16), stop(a + 16)];
        check(&events, &["a 2", "a;b 1", "a;c 1"], &[]);
    }
}

#[test]
fn recursion_counts_once() {
    let (a, b) = (at('a'), at('b'));
    let mut events = vec![call(a, 'b')];
    events.extend((0..5).map(|_| call(b, 'b')));
    events.push(ret(b + 32, b + 16));
    events.extend((0..4).map(|_| ret(b + 16, b + 16)));
    events.push(ret(b + 16, a + 16));
    events.push(stop(a + 16));
    let events: Vec<(u32, Event)> = events.iter().map(|e| (0, *e)).collect();
    let (profile, seen) = profile(Grouping::default(), &events);
    assert!(seen.odd.is_empty());
    let [b, a] = profile.by_function(Measure::Instructions)[..] else {
        panic!()
    };
    assert_eq!((b.own.insns, b.total.insns, b.calls), (44, 44, 6));
    assert_eq!((a.own.insns, a.total.insns), (8, 52));
}

/// Out of two calls at once, by a return and by an indirect jump.
#[test]
fn longjmp_and_exceptions() {
    let (a, b, l) = (at('a'), at('b'), at('l'));
    for exit in [Exit::Return, Exit::IndirectJump] {
        let events = [
            call(a, 'b'),
            call(b, 'l'),
            run(l, exit, a + 64),
            stop(a + 64),
            call(a + 80, 'b'),
            ret(b, a + 96),
            stop(a + 96),
        ];
        check(&events, &["a 4", "a;b 2", "a;b;longjmp 1"], &[Odd::Unwound]);
    }
}

/// A return that goes over its caller.
#[test]
fn a_return_over_a_frame() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [call(a, 'b'), call(b, 'c'), ret(c, a + 16), stop(a + 16)];
    check(&events, &["a 2", "a;b 1", "a;b;c 1"], &[Odd::Unwound]);
}

#[test]
fn traps_have_tracks_of_their_own() {
    let (a, b, i) = (at('a'), at('b'), at('i'));
    let resume = |from: u64, to: u64| run(from, Exit::TrapReturn, to);
    let events = [
        call(a, 'b'),
        // Between the call and the first instruction of the callee.
        trap(b),
        call(i, 'c'),
        // A nested one.
        trap(at('c')),
        resume(i, at('c')),
        ret(at('c'), i + 16),
        resume(i + 16, b),
        ret(b, a + 16),
        trap(a + 16),
        resume(i, a + 16),
        stop(a + 16),
    ];
    check(
        &events,
        &["a 2", "a;b 1", "trap;isr 4", "trap;isr;c 1"],
        &[],
    );
}

/// An ecall returns to the instruction after it.
#[test]
fn a_trap_that_skips_its_instruction() {
    let (a, i) = (at('a'), at('i'));
    let events = [
        stop(a),
        trap(a + 16),
        run(i, Exit::TrapReturn, a + 20),
        stop(a + 20),
    ];
    check(&events, &["a 2", "trap;isr 1"], &[]);
}

/// A preemptive scheduler returns from traps to where other threads were.
#[test]
fn preemptive_threads() {
    let (a, b, c, d, i) = (at('a'), at('b'), at('c'), at('d'), at('i'));
    let events = [
        call(a, 'b'),
        stop(b),
        trap(b + 16),
        // To a new thread, which calls.
        run(i, Exit::TrapReturn, c),
        call(c, 'd'),
        stop(d),
        trap(d + 16),
        // Back to the first one.
        run(i, Exit::TrapReturn, b + 16),
        ret(b + 16, a + 16),
        trap(a + 16),
        run(i, Exit::TrapReturn, d + 16),
        ret(d + 16, c + 16),
        stop(c + 16),
    ];
    check(
        &events,
        &["a 1", "a;b 2", "c 2", "c;d 2", "trap;isr 3"],
        &[Odd::Started, Odd::Switched, Odd::Switched],
    );
}

/// Threads that switch with a function that returns into another thread.
#[test]
fn cooperative_threads() {
    let (a, b, s) = (at('a'), at('b'), at('s'));
    let events = [
        call(a, 's'),
        // The first time, into the entry of a thread.
        ret(s, b),
        call(b, 's'),
        ret(s, a + 16),
        call(a + 16, 's'),
        ret(s, b + 16),
        stop(b + 16),
    ];
    let expected = ["a 2", "a;swtch 2", "b 2", "b;swtch 1"];
    check(
        &events,
        &expected,
        &[Odd::Started, Odd::Switched, Odd::Switched],
    );
}

/// Contexts that a trace reports.
#[test]
fn reported_contexts() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        context(1),
        call(a, 'b'),
        stop(b),
        // A new context continues with the stack of the old one.
        context(2),
        run(b + 16, Exit::DirectJump, c),
        stop(c),
        context(1),
        ret(b + 16, a + 16),
        stop(a + 16),
        context(2),
        stop(c + 16),
    ];
    check(&events, &["a 2", "a;b 3", "a;c 2"], &[]);
}

const BY_CONTEXT: Grouping = Grouping {
    harts: false,
    contexts: true,
    modes: false,
    sites: false,
};

fn paths_by_context(events: &[Event]) -> Vec<String> {
    let events: Vec<(u32, Event)> = events.iter().map(|e| (0, *e)).collect();
    let (profile, _) = profile(BY_CONTEXT, &events);
    assert_eq!(profile.total().insns, profile.tree.totals()[0].insns);
    paths_of(&profile)
}

/// A kernel: `b` is its scheduler, called by the handler of traps, `c` changes the address
/// space in its middle and `swtch` changes stacks. `a` is the program of two
/// processes, `e` is a thread of the kernel.
#[test]
fn address_spaces_change_before_stacks() {
    let (a, b, c, e, i, s) = (at('a'), at('b'), at('c'), at('e'), at('i'), at('s'));
    // From the trap to the change of the address space.
    let leave = |pc: u64| [trap(pc), call(i, 'b'), call(b, 'c'), stop(c)];
    // From there to the return from the trap.
    let arrive = |pc: u64| {
        [
            ret(c + 16, b + 16),
            call(b + 16, 's'),
            ret(s, b + 32),
            ret(b + 32, i + 16),
            run(i + 16, Exit::TrapReturn, pc),
        ]
    };
    let mut events = vec![context(1), call(a, 'f'), stop(at('f'))];
    let pc = at('f') + 16;
    // A new process, which returns to the same place.
    events.extend(leave(pc));
    events.push(context(2));
    events.extend(arrive(pc));
    events.push(stop(pc));
    // Back to the first.
    events.extend(leave(pc + 16));
    events.push(context(1));
    events.extend(arrive(pc));
    events.push(stop(pc));
    // A thread of the kernel runs in the address space of the first,
    events.extend([
        trap(pc + 16),
        call(i, 'b'),
        call(b + 16, 's'),
        ret(s, b + 32),
    ]);
    events.extend([
        ret(b + 32, e + 16),
        call(e + 16, 'b'),
        call(b, 'c'),
        stop(c),
    ]);
    // and is followed by the second, then by the first.
    events.push(context(2));
    events.extend(arrive(pc + 16));
    events.push(ret(pc + 16, a + 16));
    events.push(stop(a + 16));
    events.extend(leave(a + 32));
    events.push(context(1));
    events.extend(arrive(pc + 16));
    events.push(ret(pc + 16, a + 16));
    events.push(stop(a + 16));
    let found = paths_by_context(&events);
    let per_context = |context: &str| -> Vec<&str> {
        let own = |line: &&String| line.starts_with(&format!("contextSome({context});"));
        found
            .iter()
            .filter(own)
            .map(|l| l.split_once(';').unwrap().1)
            .collect()
    };
    let first = [
        "a 2",
        "a;f 3",
        "e? 1",
        "e?;b 1",
        "e?;b;c 1",
        "trap;isr 4",
        "trap;isr;b 7",
        "trap;isr;b;c 3",
        "trap;isr;b;swtch 3",
    ];
    assert_eq!(per_context("1"), first);
    let second = [
        "a 1",
        "a;f 2",
        "trap;isr 4",
        "trap;isr;b 6",
        "trap;isr;b;c 4",
        "trap;isr;b;swtch 2",
    ];
    assert_eq!(per_context("2"), second);
    assert_eq!(found.len(), first.len() + second.len());
}

/// The caller of the first function is found when that returns.
#[test]
fn a_start_in_the_middle_of_a_call() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        stop(c + 32),
        ret(c + 48, b + 32),
        ret(b + 32, a + 64),
        call(a + 64, 'b'),
        ret(b, a + 80),
        stop(a + 80),
    ];
    check(&events, &["a? 2", "a?;b? 2", "a?;b?;c? 2"], &[]);
}

#[test]
fn gaps() {
    let (a, b, c, d) = (at('a'), at('b'), at('c'), at('d'));
    // The trace continues in a function of the stack.
    let events = [
        call(a, 'b'),
        call(b, 'c'),
        stop(c),
        gap(),
        stop(b + 64),
        ret(b + 80, a + 16),
        stop(a + 16),
    ];
    check(&events, &["a 2", "a;b? 3", "a;b?;c 1"], &[]);
    // It continues in another function, which returns to one of the stack.
    let events = [
        call(a, 'b'),
        call(b, 'c'),
        stop(c),
        gap(),
        stop(d + 64),
        ret(d + 80, b + 16),
        ret(b + 16, a + 16),
        stop(a + 16),
    ];
    check(
        &events,
        &["a 2", "a;b 2", "a;b;c 1", "d? 2"],
        &[Odd::Switched],
    );
}

/// A gap may hide a return and another call of the same function, on any stack: a
/// return elsewhere is odd then, but not doubtful.
#[test]
fn stacks_are_uncertain_after_a_gap() {
    let (a, b, c, d) = (at('a'), at('b'), at('c'), at('d'));
    let doubts = |events: &[Event]| {
        let events: Vec<(u32, Event)> = events.iter().map(|event| (0, *event)).collect();
        profile(Grouping::default(), &events).0.doubts.count
    };
    let returns = [ret(b + 16, a + 48), stop(a + 48)];
    let seen = [call(a, 'b'), call(b, 'c'), ret(c, b + 16)];
    assert_eq!(doubts(&[&seen[..], &returns].concat()), 1);
    // The stack is left for that of another thread, and found again.
    let hidden = [call(a, 'b'), call(b, 'c'), stop(c), gap()];
    let hidden = [&hidden[..], &[stop(d + 64), ret(d + 80, b + 16)]].concat();
    assert_eq!(doubts(&[&hidden[..], &returns].concat()), 0);
    // Calls after the gap are certain again.
    let again = [call(a + 48, 'b'), ret(b, a + 80), stop(a + 80)];
    assert_eq!(doubts(&[&hidden[..], &returns, &again].concat()), 1);
}

#[test]
fn a_reset_forgets_everything() {
    let (a, b) = (at('a'), at('b'));
    let events = [
        call(a, 'b'),
        stop(b),
        Event::Mark(Mark::Reset),
        stop(a),
        ret(a + 16, b + 16),
        stop(b + 16),
    ];
    check(&events, &["a 1", "a;b 1", "b? 1", "b?;a 2"], &[]);
}

#[test]
fn harts_and_modes_are_told_apart() {
    let (a, b) = (at('a'), at('b'));
    let mode = |mode| {
        Event::Context(Ownership {
            mode: Some(mode),
            context: None,
        })
    };
    let events = [
        (0, mode(Mode::U)),
        (1, mode(Mode::S)),
        (0, call(a, 'b')),
        (1, stop(a)),
        (0, stop(b)),
        (0, trap(b + 16)),
        (0, mode(Mode::M)),
        (0, run(at('i'), Exit::TrapReturn, b + 16)),
        (0, mode(Mode::U)),
        (0, stop(b + 16)),
    ];
    let both = Grouping {
        harts: true,
        modes: true,
        ..Grouping::default()
    };
    let (profile, _) = profile(both, &events);
    let expected = [
        "hart0;M;trap;isr 1",
        "hart0;U;a 1",
        "hart0;U;a;b 2",
        "hart1;S;a 1",
    ];
    assert_eq!(paths_of(&profile), expected);
}

/// Code without symbols: functions are what is called.
#[test]
fn code_without_symbols() {
    let events = [
        call(0x8000, 'a'),
        run(at('a'), Exit::IndirectCall, 0x9000),
        run(0x9000, Exit::Taken, 0x9100),
        ret(0x9100, at('a') + 16),
        ret(at('a') + 16, 0x8010),
        stop(0x8010),
    ];
    check(
        &events,
        &["0x8000 2", "0x8000;a 2", "0x8000;a;0x9000 2"],
        &[],
    );
}

/// A recursion without end, and returns without calls: bounded, and nothing is
/// lost.
#[test]
fn endless_calls_and_returns() {
    let (a, b) = (at('a'), at('b'));
    let mut events = vec![stop(a)];
    events.extend((0..5000).flat_map(|_| [call(a, 'b'), call(b, 'a')]));
    let events: Vec<(u32, Event)> = events.iter().map(|e| (0, *e)).collect();
    let (profile, _) = profile(Grouping::default(), &events);
    assert_eq!(profile.total().insns, 40_004);
    assert_eq!(profile.tree.totals()[0].insns, 40_004);
    assert!(profile.tree.nodes().len() <= 2 * MAX_DEPTH);
    let mut events = vec![(0, stop(a))];
    for n in 0..5000 {
        let (from, to) = if n % 2 == 0 { (a, b) } else { (b, a) };
        events.push((0, ret(from + 16, to + 16)));
    }
    let (profile, _) = super::tests::profile(Grouping::default(), &events);
    assert_eq!(profile.tree.totals()[0].insns, 20_004);
}

/// Gaps without end: paths are merged now and then.
#[test]
fn endless_gaps() {
    let (a, b) = (at('a'), at('b'));
    let mut events = Vec::new();
    for n in 0..200_000u64 {
        events.push((0, gap()));
        events.push((0, stop(at(if n % 2 == 0 { 'c' } else { 'd' }))));
        events.push((0, call(a, 'b')));
        events.push((0, ret(b, a + 16)));
    }
    let (profile, _) = profile(Grouping::default(), &events);
    assert_eq!(profile.total().insns, 12 * 200_000);
    assert_eq!(profile.tree.totals()[0].insns, 12 * 200_000);
    assert!(profile.tree.nodes().len() < 64);
}

/// A trap whose handler traps at its first instruction, again and again.
#[test]
fn a_trap_loop_is_one_trap() {
    let (a, i) = (at('a'), at('i'));
    let image = Image::new();
    let mut follower = crate::Follower::new(&image, functions(), Grouping::default(), ());
    let looping = |epc| {
        Event::Trap(Trap {
            epc: Some(epc),
            handler: Some(i),
            cause: Cause::Exception(Some(2)),
            tval: None,
            pending: None,
        })
    };
    let mut events = vec![call(a, 'b'), looping(at('b'))];
    events.extend((0..5000).map(|_| looping(i)));
    for event in &events {
        follower.event(HartId(0), event);
    }
    let found = follower.backtrace(HartId(0));
    let trap = |epc| Outer::Trap(Cause::Exception(Some(2)), Some(epc));
    let site = match &events[0] {
        Event::Run(run) => run.source(),
        _ => 0,
    };
    assert_eq!(found.0, [trap(i), trap(at('b')), Outer::Call(site)]);
}

/// An interrupt after a return whose target the trace does not report: the interrupt
/// returns there.
#[test]
fn an_interrupt_between_a_return_and_its_target() {
    let mut image = Image::new();
    // A return at the end of the only run of `b`.
    let code = [0x13u32, 0x13, 0x13, 0x0000_8067];
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, at('b'), &code, Isa::RV64GC);
    let grouping = Grouping::default();
    let mut profiler = Profiler::new(&image, functions(), grouping, Seen::default());
    let (a, b, i) = (at('a'), at('b'), at('i'));
    let interrupt = Event::Trap(Trap {
        epc: None,
        handler: Some(i),
        cause: Cause::Interrupt(Some(7)),
        tval: None,
        pending: None,
    });
    let events = [
        call(a, 'b'),
        stop(b),
        interrupt,
        run(i, Exit::TrapReturn, a + 16),
        stop(a + 16),
    ];
    for event in &events {
        let _ = profiler.event(HartId(0), event);
    }
    let (profile, seen) = profiler.finish();
    assert_eq!(paths_of(&profile), ["a 2", "a;b 1", "trap;isr 1"]);
    assert!(seen.odd.is_empty() && profile.doubts.count == 0);
}

/// An interrupt after an indirect call, and another one before the first instruction
/// after the handler: the return from the second leads into the function that was
/// called. Seen in the boot of Linux.
#[test]
fn interrupts_after_a_call_one_after_the_other() {
    let (a, b, i) = (at('a'), at('b'), at('i'));
    let mut image = Image::new();
    // jalr ra,0(t0) at the end of the first run, mret at the end of the handler's.
    let mut code = vec![0x13u32; 0x700 / 4];
    code[3] = 0x0002_80e7;
    code[(i - a) as usize / 4 + 3] = 0x3020_0073;
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, a, &code, Isa::RV64GC);
    let mut profiler = Profiler::new(&image, functions(), Grouping::default(), Seen::default());
    let interrupt = Event::Trap(Trap {
        epc: None,
        handler: Some(i),
        cause: Cause::Interrupt(Some(7)),
        tval: None,
        pending: None,
    });
    let events = [
        stop(a),
        interrupt,
        stop(i),
        interrupt,
        run(i, Exit::TrapReturn, b),
        ret(b, a + 16),
        stop(a + 16),
    ];
    for event in &events {
        let _ = profiler.event(HartId(0), event);
    }
    let (profile, seen) = profiler.finish();
    assert_eq!(paths_of(&profile), ["a 2", "a;b 1", "trap;isr 2"]);
    assert!(seen.odd.is_empty() && profile.doubts.count == 0);
}

/// Runs with their times, several at once, are the same as one event after the other.
#[test]
fn runs_with_times_are_times_and_runs() {
    let (a, b) = (at('a'), at('b'));
    let runs = [call(a, 'b'), stop(b), ret(b + 16, a + 16), stop(a + 16)];
    let runs: Vec<(u64, Run)> = (1u64..)
        .zip(runs)
        .filter_map(|(nth, event)| match event {
            Event::Run(run) => Some((100 * nth * nth, run)),
            _ => None,
        })
        .collect();
    let results = [1, 2, 4].map(|together| {
        let image = Image::new();
        let grouping = Grouping::default();
        let mut profiler = Profiler::new(&image, functions(), grouping, Seen::default());
        for runs in runs.chunks(together) {
            let _ = match runs {
                [(time, run)] => {
                    let _ = profiler.event(HartId(0), &Event::Time(*time));
                    profiler.event(HartId(0), &Event::Run(*run))
                }
                runs => profiler.timed_runs(HartId(0), runs),
            };
        }
        assert_eq!(profiler.executed(HartId(0)), 16);
        let _ = profiler.event(HartId(0), &Event::Time(2000));
        let (profile, seen) = profiler.finish();
        assert!(profile.timed);
        (paths_of(&profile), profile.runs, seen.left)
    });
    let costs: Vec<u64> = results[0].2.iter().map(|left| left.cost.time).collect();
    assert_eq!(costs, [1200, 1900]);
    assert!(results.iter().all(|result| *result == results[0]));
}

/// Calls from two places are two paths; of a function that is running already, one.
#[test]
fn calls_by_the_instruction_that_calls() {
    let (a, b) = (at('a'), at('b'));
    let events = [
        call(a, 'b'),
        ret(b, a + 16),
        call(a + 16, 'b'),
        call(b, 'b'),
        ret(b, b + 16),
        call(b + 16, 'b'),
        // In the place of `b`.
        run(b, Exit::DirectJump, at('c')),
        ret(at('c'), b + 32),
        ret(b + 32, a + 32),
        stop(a + 32),
    ];
    let events = events.map(|event| (0, event));
    let sites = Grouping {
        sites: true,
        ..Grouping::default()
    };
    let (profile, _) = profile(sites, &events);
    let mut nodes: Vec<(String, u64, u64)> = Vec::new();
    for node in profile.tree.nodes() {
        if let What::Function(id) = node.what {
            let name = profile.functions.get(id).name.clone();
            nodes.push((name, node.site, node.calls));
        }
    }
    let expected = [
        ("a", 0, 1),
        ("b", a + 12, 1),
        ("b", a + 28, 1),
        ("b", 0, 2),
        ("c", b + 28, 1),
    ];
    let expected = expected.map(|(name, site, calls)| (name.to_owned(), site, calls));
    assert_eq!(nodes, expected);
    // Without them, what is called is one.
    let (merged, _) = self::profile(Grouping::default(), &events);
    assert_eq!(merged.tree.nodes().len(), 5);
    assert_eq!(merged.total(), profile.total());
}
