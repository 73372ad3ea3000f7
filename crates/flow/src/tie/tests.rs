use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_isa::{Isa, Xlen};

use super::*;
use crate::{Access, AccessKind, Exit, Gap, PlainForm, PlainValues, SpaceId, Totals};

const BASE: u64 = 0x1000;

/// lw a0, 0(a1); nop; sw a0, 4(a1); sc.w a0, a0, (a1); sw a0, 0(a1); vle32.v v8, (a1);
/// amocas.w a0, a0, (a1)
const CODE: [u32; 7] = [
    0x0005_a503,
    0x0000_0013,
    0x00a5_a223,
    0x18a5_a52f,
    0x00a5_a023,
    0x0205_e407,
    0x28a5_a52f,
];

fn image() -> Image {
    let bytes: Vec<u8> = CODE.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut image = Image::new();
    let isa = Isa::parse("rv64gcv_zacas").unwrap();
    image.add_raw(SpaceId::FIRST, BASE, &bytes, isa);
    image
}

fn reported(failures: bool) -> Reported {
    let mut kinds = [0xf; 16];
    kinds[15] = if failures { 0xf } else { 0 };
    Reported {
        kinds,
        addresses: true,
        values: true,
        address_width: 64,
        xlen: Xlen::Rv64,
        failures,
        failed_swaps: false,
        each: true,
    }
}

const REASON: Reason = Reason {
    code: "XX0001",
    text: "does not fit",
    value: 0,
};

#[derive(Default)]
struct Tape(Vec<String>);

impl Consumer for Tape {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push(match event {
            Event::Run(run) => format!("run {:x}+{}", run.start, run.insns),
            Event::Access(a) => format!(
                "{:?} {:?} {:x} {:?}",
                a.insn, a.access.kind, a.access.addr, a.access.data
            ),
            Event::DataGap(g) => format!("data gap {} {:x}", g.reason.code, g.reason.value),
            Event::Gap(_) => String::from("gap"),
            other => format!("{other:?}"),
        });
        ControlFlow::Continue(())
    }
}

/// The same, counted: with `only`, runs are not given.
#[derive(Default)]
struct Sums {
    only: bool,
    totals: Totals,
    loose: u64,
    gaps: u64,
}

impl Consumer for Sums {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.totals.insns += u64::from(run.insns),
            Event::Access(data) if data.insn.is_some() => self.totals.accesses += 1,
            Event::Access(_) => self.loose += 1,
            Event::DataGap(_) => self.gaps += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn only_counts(&self) -> bool {
        self.only
    }

    fn counted(&mut self, _: HartId, totals: Totals) -> ControlFlow<()> {
        self.totals += totals;
        ControlFlow::Continue(())
    }
}

fn access(kind: AccessKind, addr: u64) -> Event {
    Event::Access(DataAccess {
        insn: None,
        access: Access {
            kind,
            size: 2,
            addr,
            data: Some(addr + 1),
            ..Access::default()
        },
        has_address: true,
        part: Part::Whole,
    })
}

fn part(part: Part, data: Option<u64>) -> Event {
    let Event::Access(access) = access(AccessKind::Load, 0x40) else {
        panic!("an access")
    };
    Event::Access(DataAccess {
        access: Access {
            data,
            ..access.access
        },
        part,
        ..access
    })
}

/// So many instructions from this one on.
fn run(first: usize, insns: u32) -> Event {
    let start = BASE + 4 * first as u64;
    let end = start + 4 * u64::from(insns);
    Event::Run(Run {
        start,
        end,
        next: end,
        insns,
        exit: Exit::Stop,
        last: 4,
    })
}

const SYNC: Event = Event::Mark(Mark::Sync(0));

fn tied(reported: Reported, events: &[Event]) -> Vec<String> {
    let image = image();
    let mut tie = Tie::new(&image, reported, REASON);
    let mut tape = Tape::default();
    let mut out = tie.to(&mut tape);
    for event in events {
        let _ = out.event(HartId(0), event);
    }
    out.finish();
    assert!(!tie.is_waiting());
    tape.0
}

use AccessKind::{ConditionalStoreFailure as Failure, Load, Store};

#[test]
fn accesses_follow_their_run() {
    let events = [
        access(Load, 0x10),
        access(Store, 0x20),
        run(0, 2),
        run(2, 1),
        SYNC,
    ];
    let expected = [
        "run 1000+2",
        "Some(0) Load 10 Some(17)",
        "run 1008+1",
        "Some(0) Store 20 Some(33)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
}

/// Nothing is missing, so that there is no gap; but what belongs to which instruction is
/// not known until the next synchronisation.
#[test]
fn accesses_after_a_vector_load_have_no_instruction() {
    let events = [
        access(Store, 0x20),
        access(Load, 0x30),
        access(Load, 0x34),
        access(Load, 0x10),
        run(4, 2),
        run(0, 1),
        SYNC,
        access(Load, 0x40),
        run(0, 1),
        SYNC,
    ];
    let expected = [
        "run 1010+2",
        "Some(0) Store 20 Some(33)",
        "None Load 30 Some(49)",
        "None Load 34 Some(53)",
        "None Load 10 Some(17)",
        "run 1000+1",
        "run 1000+1",
        "Some(0) Load 40 Some(65)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
    // One that makes none, and a trace without loads.
    let none = [run(4, 2), access(Store, 0x20), SYNC];
    assert_eq!(
        tied(reported(true), &none),
        ["run 1010+2", "Some(0) Store 20 Some(33)"]
    );
    let mut stores = reported(true);
    stores.kinds[0] = 0;
    let events = [run(5, 1), access(Store, 0x20), run(4, 1), SYNC];
    let expected = ["run 1014+1", "run 1010+1", "Some(0) Store 20 Some(33)"];
    assert_eq!(tied(stores, &events), expected);
}

#[test]
fn a_run_waits_for_its_accesses() {
    let time = Event::Time(7);
    let events = [run(0, 3), time, access(Load, 0x10), access(Store, 0x20)];
    let expected = [
        "run 1000+3",
        "Some(0) Load 10 Some(17)",
        "Some(2) Store 20 Some(33)",
        "Time(7)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
}

#[test]
fn a_missing_access_is_noticed_at_the_synchronisation() {
    let events = [
        access(Load, 0x10),
        run(0, 3),
        SYNC,
        access(Load, 0x30),
        run(0, 1),
    ];
    let expected = [
        "run 1000+3",
        "data gap XX0001 1000",
        "None Load 10 Some(17)",
        "run 1000+1",
        "Some(0) Load 30 Some(49)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
}

#[test]
fn what_the_decoder_could_not_read_is_one_gap() {
    let lost = Event::DataGap(DataGap {
        at: 0,
        reason: Reason {
            code: "XX0002",
            ..REASON
        },
    });
    let expected = [
        "run 1000+1",
        "Some(0) Load 10 Some(17)",
        "data gap XX0002 0",
        "run 1008+1",
        "run 1000+1",
        "Some(0) Load 30 Some(49)",
    ];
    let after = [SYNC, access(Load, 0x30), run(0, 1)];
    // The store of the second run is lost, and reported before or after the run is known.
    let known = [access(Load, 0x10), run(0, 1), lost, run(2, 1)];
    let events = [known.as_slice(), &after].concat();
    assert_eq!(tied(reported(true), &events), expected);
    let later = [access(Load, 0x10), run(0, 1), run(2, 1), lost];
    let events = [later.as_slice(), &after].concat();
    let mut given = tied(reported(true), &events);
    given.swap(2, 3);
    assert_eq!(given, expected);
    // Too many accesses before it.
    let more = [access(Load, 0x10), access(Load, 0x14), run(0, 1), lost];
    let events = [more.as_slice(), &[SYNC, run(1, 1)]].concat();
    let given = tied(reported(true), &events);
    let gaps = given.iter().filter(|line| line.starts_with("data gap"));
    assert_eq!(gaps.count(), 1, "{given:?}");
    // After the synchronisation a gap of the tie's own is reported again.
    let events = [known.as_slice(), &[SYNC, run(0, 1), SYNC]].concat();
    let given = tied(reported(true), &events);
    assert_eq!(
        given.last().map(String::as_str),
        Some("data gap XX0001 1000")
    );
}

#[test]
fn a_wrong_access_and_one_too_many() {
    let events = [access(Store, 0x10), run(0, 1), run(1, 1), SYNC, run(1, 1)];
    let expected = [
        "run 1000+1",
        "data gap XX0001 1000",
        "None Store 10 Some(17)",
        "run 1004+1",
        "run 1004+1",
    ];
    assert_eq!(tied(reported(true), &events), expected);
    let events = [access(Load, 0x10), access(Load, 0x14), run(0, 2), SYNC];
    let expected = [
        "run 1000+2",
        "Some(0) Load 10 Some(17)",
        "None Load 14 Some(21)",
        "data gap XX0001 0",
    ];
    assert_eq!(tied(reported(true), &events), expected);
}

#[test]
fn a_gap_ends_the_order() {
    let gap = Event::Gap(Gap {
        at: 0,
        reason: REASON,
        bytes: 0,
        unconfirmed: 0,
    });
    let events = [access(Load, 0x10), gap, SYNC, access(Load, 0x14), run(0, 1)];
    let expected = [
        "None Load 10 Some(17)",
        "gap",
        "run 1000+1",
        "Some(0) Load 14 Some(21)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
}

#[test]
fn a_store_conditional_may_fail() {
    let events = [access(Failure, 0x10), access(Store, 0x20), run(3, 2), SYNC];
    let expected = [
        "run 100c+2",
        "Some(0) ConditionalStoreFailure 10 Some(17)",
        "Some(1) Store 20 Some(33)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
    // Where failures are not reported a store-conditional takes the first store.
    let events = [access(Store, 0x20), run(3, 1), run(4, 1), SYNC];
    let told = tied(reported(false), &events);
    assert_eq!(told[1], "Some(0) Store 20 Some(33)");
    assert_eq!(told[3], "data gap XX0001 1010");
}

#[test]
fn a_compare_and_swap_may_fail() {
    use AccessKind::{AtomicSwap, CompareSwapFailure};
    for kind in [AtomicSwap, CompareSwapFailure, Load] {
        let events = [access(kind, 0x10), run(6, 1), SYNC];
        let expected = format!("Some(0) {kind:?} 10 Some(17)");
        assert_eq!(tied(reported(true), &events), ["run 1018+1", &expected]);
    }
    // It is not a load of another instruction.
    let events = [access(CompareSwapFailure, 0x10), run(0, 1), SYNC];
    assert_eq!(tied(reported(true), &events)[1], "data gap XX0001 1000");
}

#[test]
fn responses_complete_requests() {
    let events = [
        part(Part::Request(3), None),
        run(0, 2),
        SYNC,
        part(Part::Request(4), None),
        run(0, 1),
        part(Part::Response(4), Some(8)),
        part(Part::Response(3), Some(9)),
        SYNC,
    ];
    let expected = [
        "run 1000+2",
        "Some(0) Load 40 Some(9)",
        "run 1000+1",
        "Some(0) Load 40 Some(8)",
    ];
    assert_eq!(tied(reported(true), &events), expected);
    // One that never comes.
    let events = [part(Part::Request(3), None), run(0, 1), run(1, 1)];
    let expected = ["run 1000+1", "Some(0) Load 40 None", "run 1004+1"];
    assert_eq!(tied(reported(true), &events), expected);
}

#[test]
fn what_is_filtered_has_no_instruction() {
    let some = Reported {
        each: false,
        ..reported(true)
    };
    let events = [run(0, 1), access(Store, 0x20), run(2, 1), SYNC];
    let expected = ["run 1000+1", "None Store 20 Some(33)", "run 1008+1"];
    assert_eq!(tied(some, &events), expected);
}

#[test]
fn what_waits_is_bounded() {
    let image = image();
    let mut tie = Tie::new(&image, reported(true), REASON);
    let mut count = 0u64;
    struct Count<'c>(&'c mut u64);
    impl Consumer for Count<'_> {
        fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
            *self.0 += 1;
            ControlFlow::Continue(())
        }
    }
    let mut out = tie.to(Count(&mut count));
    for _ in 0..MOST_HELD + 2 {
        let _ = out.event(HartId(0), &run(0, 1));
    }
    assert!(!tie.is_waiting());
    assert!(count > MOST_HELD as u64);
}

/// Another goes on from the state between any two events.
#[test]
fn another_goes_on() {
    let image = image();
    let events = [
        access(Load, 0x10),
        run(0, 2),
        run(2, 1),
        run(1, 1),
        SYNC,
        access(Store, 0x14),
        access(Load, 0x18),
        access(Store, 0x1c),
        SYNC,
        run(0, 2),
        run(2, 1),
        access(Load, 0x20),
        SYNC,
    ];
    let hart = HartId(3);
    let tape = |cut: Option<usize>| {
        let mut tape = Tape::default();
        let mut tie = Tie::new(&image, reported(true), REASON);
        for (at, event) in events.iter().enumerate() {
            if cut == Some(at) {
                let mut other = tie.another();
                other.set_state(&tie.state());
                assert_eq!(other.state(), tie.state());
                tie = other;
            }
            let _ = tie.to(&mut tape).event(hart, event);
        }
        tie.to(&mut tape).finish();
        (tape.0, tie.state())
    };
    let (whole, end) = tape(None);
    assert_eq!(end, TieState::default());
    for (cut, event) in events.iter().enumerate() {
        assert_eq!(tape(Some(cut)).0, whole, "before {event:?}");
    }
}

/// The load or store of an event.
fn plain(event: &Event) -> Option<(PlainForm, PlainValues)> {
    let Event::Access(data) = event else {
        panic!("an access")
    };
    let DataAccess { access, .. } = data;
    let form = PlainForm::new(access.kind, access.size, true, true)?;
    let values = PlainValues {
        addr: access.addr,
        data: access.data.unwrap(),
    };
    Some((form, values))
}

/// Gives accesses, those that are plain as such if wanted.
fn give_accesses(out: &mut dyn Consumer, accesses: &[Event], is_plain: bool) {
    for event in accesses {
        let _ = match plain(event).filter(|_| is_plain) {
            Some((form, values)) => {
                let (forms, values) = ([form], [values]);
                out.plain_accesses(HartId(0), PlainAccesses::new(&forms, &values))
            }
            None => out.event(HartId(0), event),
        };
    }
}

/// Runs that come under a name give what they give one by one, whether their accesses come
/// before or after them, whether all of them fit or not, and whether loads and stores are
/// given as such. Who only counts is told as many.
#[test]
fn named_runs_give_the_same() {
    let image = image();
    // The runs of three slices, and the accesses of each.
    let slices = [
        (vec![run(0, 2), run(2, 1), run(1, 1)], vec![Load, Store]),
        (vec![run(1, 1)], vec![]),
        (vec![run(2, 1), run(3, 2)], vec![Store, Failure, Store]),
    ];
    for order in 0..3usize.pow(4) {
        for missing in [None, Some(0), Some(3)] {
            let chosen = |i: u32| &slices[order / 3usize.pow(i) % 3];
            let accesses = (0..4).flat_map(|i| chosen(i).1.iter());
            let accesses: Vec<_> = accesses.map(|&kind| access(kind, 0x10)).collect();
            let mut tapes = Vec::new();
            let ways = [
                (false, 0, false),
                (true, 0, false),
                (true, 2, false),
                (true, 4, false),
                (false, 0, true),
                (false, 2, true),
                (true, 0, true),
                (true, 2, true),
                (true, 4, true),
            ];
            for way @ (named, before, _) in ways {
                let mut tape = Tape::default();
                let runs = |out: &mut dyn Consumer| {
                    for i in 0..4 {
                        let runs = chosen(i).0.iter().filter_map(|event| match event {
                            Event::Run(run) => Some(*run),
                            _ => None,
                        });
                        let runs: Vec<Run> = runs.collect();
                        let index = (order / 3usize.pow(i) % 3) as u32;
                        let _ = match named {
                            true => out.kept_runs(HartId(0), Kept::new(7, index), &runs),
                            false => out.runs(HartId(0), &runs),
                        };
                    }
                };
                let left = accesses.iter().enumerate();
                let left = left.filter(|(at, _)| missing != Some(*at));
                let left: Vec<Event> = left.map(|(_, event)| *event).collect();
                // With one missing, one less comes before the runs.
                let early = accesses.iter().take(before).count();
                let early = early - usize::from(missing.is_some_and(|at| at < early));
                let give = |out: &mut dyn Consumer| {
                    let mut tie = Tie::new(&image, reported(true), REASON);
                    let mut tied = tie.to(out);
                    give_accesses(&mut tied, &left[..early], way.2);
                    runs(&mut tied);
                    give_accesses(&mut tied, &left[early..], way.2);
                    let _ = tied.event(HartId(0), &SYNC);
                    tied.finish();
                    assert!(!tie.is_waiting());
                };
                give(&mut tape);
                let sums = [false, true].map(|only| {
                    let mut sums = Sums {
                        only,
                        ..Sums::default()
                    };
                    give(&mut sums);
                    (sums.totals, sums.loose, sums.gaps)
                });
                assert_eq!(sums[0], sums[1], "{order} {missing:?} {way:?}");
                tapes.push(tape.0);
            }
            let [single, named @ ..] = tapes.as_slice() else {
                panic!("no tapes");
            };
            for tape in named {
                let sorted = |tape: &Vec<String>| {
                    // After a gap, accesses have no place among the runs.
                    let mut tape = tape.clone();
                    if missing.is_some() {
                        tape.sort();
                    }
                    tape
                };
                assert_eq!(sorted(tape), sorted(single), "{order} {missing:?}");
            }
        }
    }
}

/// Accesses of slices of any length are compared, those after the eighth too.
#[test]
fn every_access_of_a_long_slice_is_compared() {
    let image = image();
    for len in 0..30u32 {
        // `len` loads, but the one at `wrong` is a store.
        for wrong in (0..len as usize).map(Some).chain([None]) {
            let runs: Vec<Run> = (0..len + 1)
                .filter_map(|i| match run(if i < len { 0 } else { 1 }, 1) {
                    Event::Run(run) => Some(run),
                    _ => None,
                })
                .collect();
            let mut tie = Tie::new(&image, reported(true), REASON);
            let mut tape = Tape::default();
            let mut out = tie.to(&mut tape);
            let accesses: Vec<_> = (0..len as usize)
                .filter_map(|i| {
                    let kind = if wrong == Some(i) { Store } else { Load };
                    plain(&access(kind, i as u64))
                })
                .collect();
            let forms: Vec<PlainForm> = accesses.iter().map(|a| a.0).collect();
            let values: Vec<PlainValues> = accesses.iter().map(|a| a.1).collect();
            let _ = out.kept_runs(HartId(0), Kept::new(7, 0), &runs);
            let _ = out.plain_accesses(HartId(0), PlainAccesses::new(&forms, &values));
            out.finish();
            let gaps = tape.0.iter().filter(|event| event.starts_with("data gap"));
            assert_eq!(gaps.count(), usize::from(wrong.is_some()));
            let tied = tape.0.iter().filter(|event| event.starts_with("Some(0)"));
            assert_eq!(tied.count(), wrong.unwrap_or(len as usize));
        }
    }
}

/// A source may leave values out for a consumer that does not look at them, and give them
/// again: each access that came with values keeps its own.
#[test]
fn accesses_with_and_without_values() {
    let image = image();
    let mut tie = Tie::new(&image, reported(true), REASON);
    let mut tape = Tape::default();
    let mut out = tie.to(&mut tape);
    let Some((form, _)) = plain(&access(Load, 0)) else {
        panic!("a load")
    };
    let values = |addr: u64| PlainValues { addr, data: 1 };
    let _ = out.plain_accesses(HartId(0), PlainAccesses::new(&[form, form], &[]));
    let some = [values(0x20), values(0x30)];
    let _ = out.plain_accesses(HartId(0), PlainAccesses::new(&[form, form], &some));
    let _ = out.plain_accesses(HartId(0), PlainAccesses::new(&[form], &[]));
    let _ = out.event(HartId(0), &SYNC);
    out.finish();
    let addresses: Vec<&str> = tape.0.iter().filter_map(|e| e.split(' ').nth(2)).collect();
    assert_eq!(addresses[..5], ["0", "0", "20", "30", "0"]);
}
