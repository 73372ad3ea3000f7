use super::*;
use crate::{Cause, Changes, Context, Exit, Insn, Mode, Placed, Reason, Run, Straight, TrapStep};
use alloc::format;
use alloc::vec::Vec;
use hartrace_isa::Flow;

const HART: HartId = HartId(0);

fn insn(pc: u64, bits: u32, next: u64) -> Step {
    Step::Insn(Insn {
        pc,
        bits,
        next,
        ..Insn::default()
    })
}

fn run(start: u64, end: u64, insns: u32, last: u8) -> Event {
    Event::Run(Run {
        start,
        end,
        next: end,
        insns,
        exit: Exit::Stop,
        last,
    })
}

/// A jump at 0 whose target nothing told.
fn unreported_jump() -> Event {
    run(0, 4, 1, 4)
}

fn trap(epc: u64, cause: Cause) -> Trap {
    Trap {
        epc: Some(epc),
        handler: Some(0x800),
        cause,
        tval: None,
        pending: None,
    }
}

fn taken(epc: u64, cause: Cause) -> Step {
    Step::Trap(TrapStep {
        trap: trap(epc, cause),
        bits: None,
        mode: Mode::M,
        context: Context(0),
        time: 0,
    })
}

fn after(steps: &[Step], events: &[Event]) -> Result<Checked, Box<Difference>> {
    without(Unreported::default(), steps, events)
}

fn without(
    unreported: Unreported,
    steps: &[Step],
    events: &[Event],
) -> Result<Checked, Box<Difference>> {
    let mut check = Check::new().without(unreported);
    for step in steps {
        check.step(HART, step, &Effects::default());
    }
    for event in events {
        let _ = check.event(HART, event);
    }
    check.result()
}

/// N-Trace reports a trap with the next instruction that retires.
#[test]
fn traps_at_the_end_may_be_unreported() {
    let steps = [
        taken(0, Cause::Exception(Some(1))),
        taken(0, Cause::Exception(Some(1))),
    ];
    let unreported = Unreported {
        last_traps: true,
        ..Unreported::default()
    };
    assert!(after(&steps, &[]).is_err());
    assert!(without(unreported, &steps, &[]).is_ok());
    let retires = [steps[0], insn(0x800, NOP, 0x804)];
    assert!(without(unreported, &retires, &[]).is_err());
}

/// What transfers and call stacks are made of.
#[test]
fn where_a_run_goes_is_checked() {
    let steps = [insn(0, 0x0200_006f, 0x20), insn(0x20, 1, 0x22)];
    let jump = |next| {
        Event::Run(Run {
            start: 0,
            end: 4,
            next,
            insns: 1,
            exit: Exit::DirectJump,
            last: 4,
        })
    };
    assert!(after(&steps, &[jump(0x20), run(0x20, 0x22, 1, 2)]).is_ok());
    assert!(after(&steps, &[jump(0x24), run(0x20, 0x22, 1, 2)]).is_err());
    assert!(after(&steps, &[run(0, 4, 1, 4), run(0x20, 0x22, 1, 2)]).is_err());
}

/// Where the last instruction went need not be told, but what was told
/// must be right, and only the last is the last.
#[test]
fn where_the_last_run_goes_may_be_untold() {
    let steps = [insn(0, 0x13, 4), insn(4, 0x8782, 0x20)];
    let all = run(0, 6, 2, 2);
    assert_eq!(after(&steps, &[all]).map(|c| c.insns), Ok(2));
    let wrong = Run {
        start: 0,
        end: 6,
        next: 0x30,
        insns: 2,
        exit: Exit::IndirectJump,
        last: 2,
    };
    assert!(after(&steps, &[Event::Run(wrong)]).is_err());
    let more = [steps[0], steps[1], insn(0x20, 1, 0x22)];
    assert!(after(&more, &[all]).is_err());
    // A step that arrives later, and its event.
    let mut check = Check::new();
    for step in &steps {
        check.step(HART, step, &Effects::default());
    }
    let _ = check.event(HART, &all);
    check.step(HART, &more[2], &Effects::default());
    let told = check.event(HART, &run(0x20, 0x22, 1, 2));
    assert!(told.is_break());
    assert!(check.result().is_err());
}

/// What is behind an indirect jump whose target never retired, the trace
/// need not know; what it says must be right.
#[test]
fn a_trap_at_an_unknown_address() {
    let steps = [insn(0, 0x8782, 0x20), taken(0x20, Cause::Unknown)];
    let unknown = Trap {
        epc: None,
        ..trap(0, Cause::Unknown)
    };
    let stop = run(0, 2, 1, 2);
    assert_eq!(
        after(&steps, &[stop, Event::Trap(unknown)]).unwrap().traps,
        1
    );
    let known = Event::Trap(trap(0x20, Cause::Unknown));
    assert!(after(&steps, &[stop, known]).is_err());
    assert!(after(&steps, &[stop]).is_err());
    let straight = [insn(0, 1, 2), taken(2, Cause::Unknown)];
    assert!(after(&straight, &[stop, Event::Trap(unknown)]).is_ok());
    assert!(after(&steps, &[Event::Trap(unknown)]).is_err());
}

#[test]
fn runs_may_be_cut_anywhere() {
    let steps = [
        insn(0, 0x13, 4),
        insn(4, 1, 6),
        insn(6, 0x13, 0x20),
        insn(0x20, 1, 0x22),
    ];
    let jump = |start, insns| {
        Event::Run(Run {
            start,
            end: 10,
            next: 0x20,
            insns,
            exit: Exit::IndirectJump,
            last: 4,
        })
    };
    let whole = [jump(0, 3), run(0x20, 0x22, 1, 2)];
    assert_eq!(after(&steps, &whole).unwrap().insns, 4);
    let cut = [run(0, 4, 1, 4), jump(4, 2), run(0x20, 0x22, 1, 2)];
    assert_eq!(after(&steps, &cut).unwrap().insns, 4);
}

#[test]
fn every_kind_of_difference_is_seen() {
    let steps = [insn(0, 0x13, 4), insn(4, 1, 6), insn(6, 1, 8)];
    // An address, a missing end, one too many, a wrong count, a wrong cut.
    for events in [
        &[run(2, 8, 2, 2)][..],
        &[run(0, 6, 2, 2)],
        &[run(0, 8, 3, 2), run(8, 10, 1, 2)],
        &[run(0, 8, 4, 2)],
        &[run(0, 2, 1, 2), run(2, 8, 2, 2)],
        &[run(0, 8, 3, 4)],
    ] {
        assert!(after(&steps, events).is_err(), "{events:?}");
    }
}

#[test]
fn traps_agree_as_far_as_both_sides_know() {
    let with = |step: Cause, event: Cause| {
        let steps = [insn(0, 0x13, 4), taken(4, step)];
        after(&steps, &[run(0, 4, 1, 4), Event::Trap(trap(4, event))])
    };
    let exception = Cause::Exception(Some(2));
    assert_eq!(with(exception, exception).unwrap().traps, 1);
    assert!(with(exception, Cause::Unknown).is_ok());
    assert!(with(exception, Cause::Exception(None)).is_ok());
    assert!(with(exception, Cause::Exception(Some(3))).is_err());
    assert!(with(exception, Cause::Interrupt(None)).is_err());
}

#[test]
fn a_missing_trap_and_a_needless_gap_are_differences() {
    let steps = [insn(0, 0x13, 4)];
    assert!(after(&steps, &[Event::Trap(trap(0, Cause::Unknown))]).is_err());
    let gap = Gap {
        at: 7,
        reason: Reason {
            code: "XX0001",
            text: "test",
            value: 1,
        },
        bytes: 0,
        unconfirmed: 0,
    };
    let difference = after(&steps, &[Event::Gap(gap)]).unwrap_err();
    assert_eq!(difference.actual, Some(What::Gap(gap)));
}

/// E-Trace draft: what comes last is told, to a decoder at the place of the
/// first.
#[test]
fn traps_in_a_row_may_be_told_by_the_last() {
    let steps = [
        insn(0, 0x13, 4),
        taken(4, Cause::Exception(Some(8))),
        taken(0x800, Cause::Exception(Some(12))),
        taken(0x800, Cause::Interrupt(Some(7))),
        insn(0x800, 0x13, 0x804),
    ];
    let unreported = Unreported {
        traps: true,
        ..Unreported::default()
    };
    let with = |traps: &[Trap]| {
        let mut events = Vec::from([run(0, 4, 1, 4)]);
        events.extend(traps.iter().copied().map(Event::Trap));
        events.push(run(0x800, 0x804, 1, 4));
        let strict = after(&steps, &events);
        let lenient = without(unreported, &steps, &events);
        assert!(strict.is_err() || strict == lenient);
        (strict.is_ok(), lenient.is_ok())
    };
    let first = trap(4, Cause::Exception(Some(8)));
    let second = trap(0x800, Cause::Exception(Some(12)));
    let third = trap(0x800, Cause::Interrupt(Some(7)));
    assert_eq!(with(&[first, second, third]), (true, true));
    assert_eq!(with(&[first, third]), (false, true));
    assert_eq!(with(&[third]), (false, true));
    for epc in [None, Some(4)] {
        assert_eq!(with(&[Trap { epc, ..third }]), (false, true));
    }
    let elsewhere = Trap {
        epc: Some(6),
        ..third
    };
    for wrong in [&[first][..], &[first, second], &[second], &[elsewhere], &[]] {
        assert_eq!(with(wrong), (false, false), "{wrong:?}");
    }
}

/// An ingress port may show the low bits only.
#[test]
fn a_trap_value_may_be_told_in_part() {
    let with = |tval| Trap {
        tval: Some(tval),
        ..trap(4, Cause::Exception(Some(15)))
    };
    let Step::Trap(taken) = taken(4, Cause::Exception(Some(15))) else {
        panic!();
    };
    let done = Step::Trap(crate::TrapStep {
        trap: with(0x1234),
        ..taken
    });
    let steps = [insn(0, 0x13, 4), done, insn(0x800, 0x13, 0x804)];
    let unreported = Unreported {
        tval: !0xff,
        ..Unreported::default()
    };
    for (tval, whole, part) in [
        (0x1234, true, true),
        (0x34, false, true),
        (0x35, false, false),
    ] {
        let trap = Event::Trap(with(tval));
        let events = [run(0, 4, 1, 4), trap, run(0x800, 0x804, 1, 4)];
        assert_eq!(after(&steps, &events).is_ok(), whole, "{tval:#x}");
        assert_eq!(
            without(unreported, &steps, &events).is_ok(),
            part,
            "{tval:#x}"
        );
    }
}

const RULES: Rules = Rules {
    sequential_jumps: true,
    sequential_returns: true,
    absolute_jumps: true,
    all_jumps: false,
    nexrv_links: false,
};

fn rounds(returns: bool) -> Unreported {
    Unreported {
        traps: false,
        last_traps: false,
        tval: 0,
        data: None,
        rounds: Some(Inference {
            isa: Isa::RV64GC,
            rules: RULES,
            returns,
        }),
    }
}

const NOP: u32 = 0x13;
const C_NOP: u32 = 1;
const J: u32 = 0x6f;

/// Steps of a loop gone round and left by a trap, and the events of a decoder
/// that goes round `given` times: `(pc, bits)` once, each going to the next.
fn looped(code: &[(u64, u32)], times: usize, given: usize, left_at: usize) -> [Vec<Step>; 2] {
    let steps = |times| {
        let mut pcs: Vec<_> = core::iter::repeat_n(code, times).flatten().collect();
        pcs.extend(&code[..left_at]);
        let next = pcs.iter().skip(1).map(|i| i.0).chain([code[left_at].0]);
        let insns = pcs.iter().zip(next).map(|(i, next)| insn(i.0, i.1, next));
        let mut steps: Vec<Step> = insns.collect();
        steps.push(taken(code[left_at].0, Cause::Interrupt(None)));
        steps.push(insn(0x800, NOP, 0x804));
        steps
    };
    [steps(times), steps(given)]
}

/// One event for each step.
fn single(steps: &[Step]) -> Vec<Event> {
    let event = |step: &Step| match step {
        Step::Signal(_) => None,
        Step::Trap(t) => Some(Event::Trap(t.trap)),
        Step::Insn(i) => Some(Event::Run(Run {
            start: i.pc,
            end: i.end(),
            next: i.next,
            insns: 1,
            exit: Exit::OtherDirect,
            last: i.len(),
        })),
    };
    steps.iter().filter_map(event).collect()
}

#[test]
fn rounds_that_nothing_counts_may_be_missing() {
    let stand = [(0x40, J)];
    let wait = [(0x40, 0x1050_0073), (0x44, J)];
    let long = [
        (0x40, NOP),
        (0x44, C_NOP),
        (0x46, J),
        (0x60, NOP),
        (0x64, J),
    ];
    let far = [(0x40, J), (0x60, J), (0x20, C_NOP), (0x22, J)];
    let sequential = [(0x40, 0x0000_0517), (0x44, 0x0005_0067)];
    let called = [(0x40, 0x0200_00ef), (0x60, 0x8082), (0x44, J)];
    let popped = [(0x40, 0x0200_00ef), (0x60, 0xbe42), (0x44, J)];
    let branch = [(0x40, 0xc001), (0x42, J)]; // not taken
    let through = [(0x40, 0x8782)];
    let returned = [(0x40, 0x3020_0073)];
    for (code, returns, silent) in [
        (&stand[..], false, true),
        (&wait, false, true),
        (&long, false, true),
        (&far, false, true),
        (&sequential, false, true),
        (&called, true, true),
        (&called, false, false),
        (&popped, false, true), // c.fsdsp without Zcmp
        (&branch, true, false),
        (&through, true, false),
        (&returned, true, false),
    ] {
        for left_at in 0..code.len() {
            for given in 0..5 {
                let [steps, told] = looped(code, 5, given, left_at);
                let events = single(&told);
                assert!(after(&steps, &events).is_err());
                let outcome = without(rounds(returns), &steps, &events);
                assert_eq!(outcome.is_ok(), silent, "{code:x?} {left_at} {given}");
                // One round too many, and the end left out.
                let [more, _] = looped(code, 6, 0, left_at);
                assert!(without(rounds(returns), &steps, &single(&more)).is_err());
                let unended = events.len() - 1;
                assert!(without(rounds(returns), &steps, &events[..unended]).is_err());
                // The trace ends in the loop.
                let steps = &steps[..steps.len() - 2];
                let outcome = without(rounds(returns), steps, &events[..unended - 1]);
                assert_eq!(outcome.is_ok(), silent, "{code:x?} {left_at} {given}");
            }
        }
    }
}

/// A return right behind a constant is inferred only where the rules say so.
#[test]
fn a_sequential_return_may_have_to_be_told() {
    // auipc ra, 0; jalr x0, 0(ra)
    let code = [(0x40, 0x0000_0097), (0x44, 0x0000_8067)];
    for inferred in [true, false] {
        let mut unreported = rounds(false);
        if let Some(inference) = &mut unreported.rounds {
            inference.rules.sequential_returns = inferred;
        }
        let [steps, told] = looped(&code, 5, 2, 0);
        let outcome = without(unreported, &steps, &single(&told));
        assert_eq!(outcome.is_ok(), inferred);
    }
}

/// Part of a round is not a round.
#[test]
fn the_place_where_a_loop_is_left_is_told() {
    let code = [(0x40, NOP), (0x44, NOP), (0x48, J)];
    for left_at in 0..3 {
        for told_at in 0..3 {
            let [steps, _] = looped(&code, 4, 0, left_at);
            let [told, _] = looped(&code, 2, 0, told_at);
            let mut events = single(&told);
            let last = events.len() - 2;
            if let Event::Trap(trap) = &mut events[last] {
                trap.epc = None;
            }
            let outcome = without(rounds(false), &steps, &events);
            assert_eq!(outcome.is_ok(), left_at == told_at);
        }
    }
}

/// The lengths in a round that was kept once only, and memory.
#[test]
fn many_rounds_take_no_room_and_may_be_given() {
    let code = [(0x40, NOP), (0x44, C_NOP), (0x46, J)];
    let [steps, _] = looped(&code, 100_000, 0, 2);
    let mut check = Check::new().without(rounds(false));
    for step in &steps {
        check.step(HART, step, &Effects::default());
    }
    assert!(check.harts.of(HART).room() < 20);
    for event in single(&steps) {
        assert!(check.event(HART, &event).is_continue());
    }
    assert_eq!(check.result().unwrap().insns, 300_003);
}

#[test]
fn where_a_trace_stops_a_target_need_not_be_told() {
    // jalr x0, 0(a5)
    let steps = [insn(0, 0x0007_8067, 0x20), insn(0x20, 1, 0x22)];
    let off = Event::Mark(Mark::Off);
    let rest = run(0x20, 0x22, 1, 2);
    assert!(after(&steps, &[unreported_jump(), off, rest]).is_ok());
    let difference = after(&steps, &[unreported_jump(), rest]).unwrap_err();
    assert_eq!(difference.expected, Some(What::Jump { from: 0, to: 0x20 }));
    assert!(
        after(&steps, &[unreported_jump(), off]).is_err(),
        "the rest is missing"
    );
}

/// What was not sent before a loss is lost with it, and nothing else.
#[test]
fn a_gap_may_stand_at_a_loss() {
    let lost = Step::Signal(Signal::Lost);
    let gap = Event::Gap(Gap {
        at: 0,
        reason: Reason {
            code: "XX0000",
            text: "lost",
            value: 0,
        },
        bytes: 0,
        unconfirmed: 0,
    });
    let nop = |pc| insn(pc, 0x13, pc + 4);
    let steps = [nop(0), nop(4), lost, nop(0x100), lost, nop(0x200)];
    let equal = |insns, lost| {
        Ok(Checked {
            accesses: 0,
            insns,
            traps: 0,
            lost,
        })
    };
    let [first, second, third] = [
        run(0, 4, 1, 4),
        run(0x100, 0x104, 1, 4),
        run(0x200, 0x204, 1, 4),
    ];
    assert_eq!(
        after(&steps, &[first, gap, second, gap, third]),
        equal(3, 1)
    );
    // One gap for two losses, two gaps for one.
    assert_eq!(after(&steps, &[first, gap, third]), equal(2, 2));
    assert_eq!(after(&steps, &[first, gap, gap, third]), equal(2, 2));
    assert_eq!(after(&steps[3..], &[second, gap, gap, third]), equal(2, 0));
    // Nothing was waiting.
    let whole = run(0, 8, 2, 4);
    assert_eq!(after(&steps, &[whole, second, third]), equal(4, 0));
    // What is behind the last loss must be there, and no third gap.
    assert!(after(&steps, &[first, gap, second, gap]).is_err());
    assert!(after(&steps, &[first, second]).is_err());
    assert!(after(&steps, &[first, gap, second, gap, third, gap]).is_err());
}

/// Pieces that follow each other in memory, jump, and end with a compressed
/// instruction: the same is expected as of their single instructions.
#[test]
fn straight_line_code_is_expected_like_its_instructions() {
    let nop = |before: &Placed, bits| Placed::after(before, bits, Flow::Seq, 0);
    let first = nop(&Placed::default(), 0x13);
    let second = nop(&first, 0x1);
    let code = [first, second, nop(&second, 0x13)];
    let piece = |pc, count, next| {
        let piece = Straight {
            pc,
            next,
            count,
            ..Straight::default()
        };
        piece.moved_to(0)
    };
    let list = [
        piece(0x1000, 2, 0x1006),
        piece(0x1006, 3, 0x1010),
        piece(0x1010, 1, 0x1000),
        piece(0x1000, 3, 0x100a),
        piece(0x2000, 3, 0x2000),
    ];
    let all = Straights {
        accesses: &[],
        changes: Changes::NONE,
        code: &code,
        list: &list,
        count: Straight::count_all(&list),
        context: Context(0),
        mode: Mode::M,
        news: None,
    };
    for unreported in [Unreported::default(), rounds(false)] {
        let mut whole = Check::new().without(unreported);
        let mut single = Check::new().without(unreported);
        whole.straights(HartId(0), &all);
        for insn in all.iter() {
            single.step(HartId(0), &Step::Insn(insn), &Effects::default());
        }
        assert_eq!(format!("{whole:?}"), format!("{single:?}"));
    }
}
