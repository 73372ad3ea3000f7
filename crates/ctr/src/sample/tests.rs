use alloc::vec;

use super::*;
use crate::config::Config;
use crate::record::Record;
use crate::version::Version;
use hartrace_flow::{Cause, Context, Insn, Trap, TrapStep};
use hartrace_isa::Xlen;

const HART: HartId = HartId(0);
const NOP: u32 = 0x13;
const CALL: u32 = 0x0080_00ef;
const MRET: u32 = 0x3020_0073;

fn recorder(control: Control) -> Ctr {
    let mut ctr = Ctr::new(Config::new(Version::V1_0, Xlen::Rv64)).unwrap();
    ctr.set_control(control, 0);
    ctr
}

fn insn(pc: u64, bits: u32, next: u64, mode: Mode, time: u64) -> Step {
    Step::Insn(Insn {
        pc,
        bits,
        next,
        mode,
        time,
        ..Insn::default()
    })
}

fn sample(control: Control, every: Option<Every>, told: Known, steps: &[Step]) -> Vec<Snapshot> {
    let mut found = Vec::new();
    let take = |snapshot: &Snapshot| found.push(snapshot.clone());
    let mut sampler = Sampler::new(recorder(control), Isa::RV64GC, every, told, take);
    for step in steps {
        sampler.step(HART, step, &Effects::default());
    }
    sampler.finish();
    drop(sampler);
    found
}

const ALL: Known = Known {
    modes: true,
    cycles: true,
};

/// A loop of three instructions, a call in the middle, 10 cycles each.
fn round(n: u64) -> [Step; 3] {
    let m = Mode::M;
    let at = n * 30;
    [
        insn(0x100, NOP, 0x104, m, at + 10),
        insn(0x104, CALL, 0x10c, m, at + 20),
        insn(0x10c, 0xff5f_f06f, 0x100, m, at + 30),
    ]
}

#[test]
fn every_so_many_instructions() {
    let steps: Vec<Step> = (0..4).flat_map(round).collect();
    let every = Some(Every::Instructions(2));
    let found = sample(Control::MODES, every, ALL, &steps);
    let rows: Vec<_> = found
        .iter()
        .map(|s| (s.instructions, s.pc, s.cycles, s.records().count()))
        .collect();
    let row = |insns, pc, cycles, records| (Some(insns), Some(pc), Some(cycles), records);
    assert_eq!(
        rows,
        [
            row(2, 0x10c, 20, 1),
            row(4, 0x104, 40, 2),
            row(6, 0x100, 60, 4),
            row(8, 0x10c, 80, 5),
            row(10, 0x104, 100, 6),
            row(12, 0x100, 120, 8),
        ]
    );
    // All transfers up to there, the newest first, with their cycles.
    let newest = found[0].entries[0];
    assert_eq!((newest.source(), newest.target()), (0x104, 0x10c));
    let second = found[2].entries[0];
    assert_eq!((second.source(), second.cycles()), (0x10c, Some(10)));
    assert_eq!(found[2].mode, Some(Mode::M));
}

#[test]
fn every_so_many_cycles() {
    let steps: Vec<Step> = (0..3).flat_map(round).collect();
    let found = sample(Control::MODES, Some(Every::Cycles(25)), ALL, &steps);
    // In front of the first instruction behind 25, 50 and 75, and at the end.
    let times: Vec<_> = found.iter().map(|s| s.cycles).collect();
    assert_eq!(times, [Some(30), Some(50), Some(80), Some(90)]);
    // Time need not start at 0.
    let steps: Vec<Step> = (10..12).flat_map(round).collect();
    let found = sample(Control::MODES, Some(Every::Cycles(50)), ALL, &steps);
    let times: Vec<_> = found.iter().map(|s| s.cycles).collect();
    assert_eq!(times, [Some(350), Some(360)]);
    // It may jump as far as it likes.
    let steps = [
        insn(0x100, NOP, 0x104, Mode::M, 1),
        insn(0x104, NOP, 0x108, Mode::M, u64::MAX - 1),
        insn(0x108, NOP, 0x10c, Mode::M, u64::MAX),
    ];
    assert_eq!(
        sample(Control::MODES, Some(Every::Cycles(1)), ALL, &steps).len(),
        2
    );
}

#[test]
fn one_at_the_end_and_none_of_nothing() {
    let found = sample(Control::MODES, None, ALL, &round(0));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].pc, found[0].records().count()), (Some(0x100), 2));
    assert_eq!(sample(Control::MODES, None, ALL, &[]).len(), 0);
    let lost = Step::Signal(Signal::Lost);
    assert_eq!(sample(Control::MODES, None, ALL, &[lost]).len(), 0);
}

#[test]
fn modes_count_where_they_are_told() {
    let trap = Step::Trap(TrapStep {
        trap: Trap {
            epc: Some(0x104),
            handler: Some(0x800),
            cause: Cause::Exception(Some(8)),
            tval: None,
            pending: None,
        },
        bits: Some(0x73),
        mode: Mode::U,
        context: Context(0),
        time: 0,
    });
    let steps = [
        insn(0x100, NOP, 0x104, Mode::U, 0),
        trap,
        insn(0x800, MRET, 0x108, Mode::M, 0),
        insn(0x108, CALL, 0x110, Mode::U, 0),
    ];
    let told = Known {
        modes: true,
        cycles: false,
    };
    let found = sample(Control::U, None, told, &steps);
    assert_eq!(found[0].records().count(), 1);
    assert_eq!((found[0].mode, found[0].cycles), (Some(Mode::U), None));
    assert!(found[0].records().all(|r| r.cycles().is_none()));
    // Behind a trap or a return from one the mode is not known.
    assert_eq!(sample(Control::U, None, told, &steps[..2])[0].mode, None);
    assert_eq!(sample(Control::U, None, told, &steps[..3])[0].mode, None);
    // Where they are not, everything is recorded.
    let unreported = Known {
        modes: false,
        cycles: false,
    };
    let found = sample(Control::U, None, unreported, &steps);
    let kinds: Vec<_> = found[0]
        .records()
        .map(|r| r.kind().unwrap().code())
        .collect();
    assert_eq!((found[0].mode, kinds), (None, vec![9, 3, 1]));
    assert!(found[0].fields().has(Control::MODES));
}

#[test]
fn records_do_not_reach_across_a_loss() {
    let mut steps = round(0).to_vec();
    steps.push(Step::Signal(Signal::Lost));
    steps.extend(round(1));
    let found = sample(Control::MODES, None, ALL, &steps);
    assert_eq!(found[0].records().count(), 2);
    // NoObserver knows how many cycles went by.
    let last = found[0].records().last().unwrap();
    assert_eq!(last.cycles(), None);
}

#[test]
fn harts_have_records_of_their_own() {
    let mut found = Vec::new();
    let take = |s: &Snapshot| found.push((s.hart.0, s.records().count(), s.instructions));
    let ctr = recorder(Control::MODES);
    let every = Some(Every::Instructions(2));
    let mut sampler = Sampler::new(ctr, Isa::RV64GC, every, ALL, take);
    for step in round(0) {
        for hart in [3, 1] {
            sampler.step(HartId(hart), &step, &Effects::default());
        }
    }
    sampler.finish();
    drop(sampler);
    let two = Some(2);
    let three = Some(3);
    assert_eq!(
        found,
        [(3, 1, two), (1, 1, two), (3, 2, three), (1, 2, three)]
    );
}

/// A debugger's time is not the program's: the record behind a halt has no
/// valid count (5.1, 5.3).
#[test]
fn a_halt_is_not_counted() {
    let m = Mode::M;
    let found = sample(
        Control::MODES,
        None,
        ALL,
        &[
            insn(0x1000, CALL, 0x1008, m, 10),
            insn(0x1008, CALL, 0x1010, m, 20),
            Step::Signal(Signal::Halted),
            Step::Signal(Signal::Resumed),
            insn(0x1010, CALL, 0x1018, m, 100_020),
            insn(0x1018, CALL, 0x1020, m, 100_030),
        ],
    );
    let counts: Vec<_> = found[0].records().map(Record::cycles).collect();
    assert_eq!(counts, [Some(10), None, Some(10), None]);
}

/// A reset leaves nothing behind, not even a freeze.
#[test]
fn a_reset_thaws() {
    let m = Mode::M;
    let breakpoint = Step::Trap(TrapStep {
        trap: Trap {
            epc: Some(0x1008),
            handler: Some(0x100),
            cause: Cause::Exception(Some(3)),
            tval: None,
            pending: None,
        },
        bits: None,
        mode: m,
        context: Context(0),
        time: 3,
    });
    let found = sample(
        Control::MODES.with(Control::BPFRZ),
        None,
        ALL,
        &[
            insn(0x1000, CALL, 0x1008, m, 1),
            breakpoint,
            insn(0x100, CALL, 0x108, m, 4),
            Step::Signal(Signal::Reset),
            insn(0x1000, CALL, 0x1008, m, 1),
        ],
    );
    assert_eq!((found[0].status, found[0].records().count()), (1, 1));
}

/// Where the last return from a trap went is told by its effects or by nobody;
/// what is not told is not recorded if it matters.
#[test]
fn the_end_is_not_guessed() {
    let step = insn(0x1000, MRET, 0x2000, Mode::M, 1);
    for (control, mode, records) in [
        (Control::M, None, vec![]),
        (Control::M, Some(Mode::U), vec![0]),
        (Control::MODES, None, vec![0x2000]),
    ] {
        let mut found = Vec::new();
        let take = |snapshot: &Snapshot| found.push(snapshot.clone());
        let mut sampler = Sampler::new(recorder(control), Isa::RV64GC, None, ALL, take);
        let effects = Effects {
            mode,
            ..Effects::default()
        };
        sampler.step(HART, &step, &effects);
        sampler.finish();
        drop(sampler);
        let targets: Vec<u64> = found[0].records().map(Record::target).collect();
        assert_eq!(targets, records, "{control} {mode:?}");
    }
}

/// Steps with `Untraced` behind the first, and how many records there are in
/// front of the last; how often they started anew.
fn across_a_pause(steps: &[Step]) -> (usize, u64) {
    let mut found = Vec::new();
    let take = |snapshot: &Snapshot| found.push(snapshot.records().count());
    let mut sampler = Sampler::new(recorder(Control::MODES), Isa::RV64GC, None, ALL, take);
    for step in round(0).iter().chain(steps) {
        sampler.step(HART, step, &Effects::default());
    }
    sampler.finish();
    let restarts = sampler.restarts();
    drop(sampler);
    (found[0], restarts)
}

#[test]
fn untraced_time_of_a_semihosting_call_keeps_the_records() {
    let m = Mode::M;
    let entry = insn(0x100, CALL_ENTRY, 0x104, m, 40);
    let exit = insn(0x108, CALL_EXIT, 0x10c, m, 50);
    let untraced = Step::Signal(Signal::Untraced);
    assert_eq!(across_a_pause(&[entry, untraced, exit]), (2, 0));
    assert_eq!(across_a_pause(&[entry, untraced]), (2, 0));
    // A trace may also say that a debugger was there.
    let halted = Step::Signal(Signal::Halted);
    let resumed = Step::Signal(Signal::Resumed);
    assert_eq!(
        across_a_pause(&[entry, untraced, halted, resumed, exit]),
        (2, 0)
    );
    // Elsewhere, with something else behind, or when more is missing, not.
    let elsewhere = insn(0x208, CALL_EXIT, 0x20c, m, 50);
    assert_eq!(across_a_pause(&[entry, untraced, elsewhere]), (0, 1));
    let other = insn(0x108, NOP, 0x10c, m, 50);
    assert_eq!(across_a_pause(&[entry, untraced, other]), (0, 1));
    let plain = insn(0x100, NOP, 0x104, m, 40);
    assert_eq!(across_a_pause(&[plain, untraced, exit]), (0, 1));
    let lost = Step::Signal(Signal::Lost);
    assert_eq!(across_a_pause(&[entry, untraced, lost, exit]), (0, 1));
    assert_eq!(across_a_pause(&[entry, lost, exit]), (0, 1));
}

#[test]
fn a_trap_without_epc_keeps_the_records() {
    let trap = Step::Trap(TrapStep {
        trap: Trap {
            epc: None,
            handler: Some(0x200),
            cause: Cause::Interrupt(Some(5)),
            tval: None,
            pending: None,
        },
        bits: None,
        mode: Mode::U,
        context: Context::default(),
        time: 0,
    });
    let mut steps = round(0).to_vec();
    steps.extend([
        insn(0x100, MRET, 0, Mode::M, 40),
        trap,
        insn(0x200, NOP, 0x204, Mode::S, 50),
    ]);
    let found = sample(Control::MODES, None, ALL, &steps);
    let records: Vec<_> = found[0]
        .records()
        .map(|r| (r.source(), r.target(), r.kind()))
        .collect();
    assert_eq!(
        records[..2],
        [
            (0, 0x200, Some(Itype::Interrupt)),
            (0x100, 0, Some(Itype::TrapReturn)),
        ]
    );
    assert_eq!(records.len(), 4);
}

#[test]
fn restarts_count_what_was_thrown_away() {
    let lost = Step::Signal(Signal::Lost);
    let m = Mode::M;
    let nop = insn(0x100, NOP, 0x104, m, 40);
    assert_eq!(across_a_pause(&[lost, lost, nop, lost]).1, 2);
    let reset = Step::Signal(Signal::Reset);
    assert_eq!(across_a_pause(&[reset, nop]).1, 1);
}

#[test]
fn time_that_is_told_now_and_then() {
    let now_and_then = Known {
        cycles: false,
        ..ALL
    };
    // Known at the third and the seventh instruction.
    let times = [0, 0, 1000, 1000, 1000, 1000, 1060, 1060, 1060];
    let untimed = (0..3).flat_map(round);
    let steps: Vec<Step> = untimed
        .zip(times)
        .map(|(step, time)| match step {
            Step::Insn(insn) => Step::Insn(Insn { time, ..insn }),
            other => other,
        })
        .collect();
    let found = sample(
        Control::MODES,
        Some(Every::Cycles(25)),
        now_and_then,
        &steps,
    );
    let rows: Vec<_> = found.iter().map(|s| (s.instructions, s.cycles)).collect();
    // Before the first instruction that starts at the time that is due.
    assert_eq!(rows, [(Some(6), None), (Some(9), None)]);
    assert!(found[0].records().all(|r| r.cycles().is_none()));
}

/// A log does not tell halts: it goes on behind the `ebreak`.
#[test]
fn a_semihosting_call_is_no_exception() {
    let m = Mode::M;
    let entry = insn(0x100, CALL_ENTRY, 0x104, m, 40);
    let trap = |epc, handler| {
        Step::Trap(TrapStep {
            trap: Trap {
                epc: Some(epc),
                handler: Some(handler),
                cause: Cause::Exception(Some(3)),
                tval: None,
                pending: None,
            },
            bits: Some(0x0010_0073),
            mode: m,
            context: Context::default(),
            time: 0,
        })
    };
    let kept = |steps: &[Step]| {
        let steps: Vec<Step> = round(0).iter().chain(steps).copied().collect();
        sample(Control::MODES, None, ALL, &steps)[0]
            .records()
            .count()
    };
    let exit = insn(0x108, CALL_EXIT, 0x10c, m, 50);
    assert_eq!(kept(&[entry, trap(0x104, 0x108), exit]), 2);
    // A handler, or another ebreak.
    let handler = insn(0x200, NOP, 0x204, m, 50);
    assert_eq!(kept(&[entry, trap(0x104, 0x200), handler]), 3);
    let plain = insn(0x100, NOP, 0x104, m, 40);
    assert_eq!(kept(&[plain, trap(0x104, 0x108), exit]), 3);
}
