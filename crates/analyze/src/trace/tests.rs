use super::*;
use crate::{Functions, Places};
use hartrace_flow::{
    Access, AccessKind, Cause, Consumer, DataAccess, Event, Exit, Gap, HartId, Mark, Mode,
    Ownership, Reason, Trap,
};
use hartrace_isa::{Isa, length};

const HART: HartId = HartId(0);

/// Code of mixed lengths: nop, c.nop, ecall.
fn image(halves: usize) -> Image {
    let mut code = Vec::new();
    let mut state = 1u32;
    while code.len() < halves * 2 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match state >> 30 {
            0 => code.extend([0x73, 0, 0, 0]),
            1 => code.extend([0x13, 0, 0, 0]),
            _ => code.extend([0x01, 0]),
        }
    }
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    image
}

fn run(start: u64, insns: u32) -> Run {
    Run {
        start,
        end: start,
        next: start,
        insns,
        exit: Exit::Stop,
        last: 4,
    }
}

fn pcs(image: &Image, runs: &[Run]) -> String {
    let mut text = Vec::new();
    let flush = |bytes: &mut Vec<u8>| text.append(bytes);
    let mut list = PcList::new(image, Isa::RV64GC.xlen(), flush);
    let _ = list.runs(HART, runs);
    list.out.finish();
    drop(list);
    String::from_utf8(text).unwrap()
}

/// More runs than there are places, each of them twice.
#[test]
fn remembered_text_is_the_same_text() {
    let image = image(40_000);
    let mut runs = Vec::new();
    let mut expected = String::new();
    let mut pc = 0x1000;
    let mut insns = 1;
    while let Some(fetched) = image.fetch(SpaceId::FIRST, pc) {
        let run = run(pc, insns);
        for _ in 0..2 {
            let mut at = run.start;
            for _ in 0..insns {
                let Some(f) = image.fetch(SpaceId::FIRST, at) else {
                    break;
                };
                expected += &format!("{at:016x}\n");
                at += u64::from(length(f.bits as u16));
            }
            runs.push(run);
        }
        pc += u64::from(fetched.len);
        insns = insns % 7 + 1;
    }
    assert!(runs.len() > 2 * PLACES);
    assert!(pcs(&image, &runs) == expected);
    runs.reverse();
    assert_eq!(pcs(&image, &runs).len(), expected.len());
}

#[test]
fn a_run_without_code_has_no_lines() {
    assert_eq!(
        pcs(&image(4), &[run(0, 3), run(0xffff_ffff_ffff_fffe, 9)]),
        ""
    );
}

#[test]
fn ecalls_are_listed_on_request() {
    let mut image = Image::new();
    image.add_raw(
        SpaceId::FIRST,
        0,
        &[0x73, 0, 0, 0, 0x13, 0, 0, 0],
        Isa::RV32GC,
    );
    let trap = |epc, cause| {
        Event::Trap(Trap {
            epc: Some(epc),
            handler: Some(4),
            cause,
            tval: None,
            pending: None,
        })
    };
    let listed = |with: bool, event: Event| {
        let mut text = Vec::new();
        let xlen = Isa::RV32GC.xlen();
        let mut list = PcList::new(&image, xlen, |bytes: &mut Vec<u8>| text.append(bytes));
        if with {
            list = list.listing_traps();
        }
        let _ = list.event(HART, &event);
        list.out.finish();
        drop(list);
        String::from_utf8(text).unwrap()
    };
    assert_eq!(listed(true, trap(0, Cause::Unknown)), "00000000\n");
    assert_eq!(listed(true, trap(0, Cause::Interrupt(None))), "");
    assert_eq!(listed(true, trap(4, Cause::Unknown)), "");
    assert_eq!(listed(false, trap(0, Cause::Exception(None))), "");
}

/// Accesses stand in the line of their instruction, or in one of their own.
#[test]
fn a_listing_with_accesses() {
    let image = image(8);
    let places = Places::new();
    let store = Access {
        kind: AccessKind::Store,
        size: 2,
        addr: 0x2000,
        data: Some(7),
        ..Access::default()
    };
    let set = Access {
        kind: AccessKind::CsrReadSet,
        size: 3,
        addr: 0x300,
        data: Some(9),
        operand: Some(1),
        ..Access::default()
    };
    let unknown = DataAccess {
        insn: None,
        has_address: false,
        ..DataAccess::of(0, store)
    };
    let about = (&places, Functions::new());
    let mut list = TraceListing::new(&image, about, ListingStyle::default(), |_| ());
    for event in [
        Event::Run(run(0x1000, 2)),
        Event::Access(DataAccess::of(0, store)),
        Event::Access(DataAccess::of(1, set)),
        Event::Access(DataAccess::of(1, store)),
        Event::Access(unknown),
    ] {
        let _ = list.event(HART, &event);
    }
    let text = String::from_utf8(list.out().text().clone()).unwrap();
    let expected = "0000000000001000  00000073  ecall  ; store 4 0x2000 = 0x7\n\
        0000000000001004  00000013  nop  ; set mstatus = 0x9, was 0x1  ; store 4 0x2000 = 0x7\n\
        -- store 4 = 0x7\n";
    assert_eq!(text, expected);
}

#[test]
fn a_listing_of_everything() {
    let image = image(8);
    let places = Places::new();
    let listed = |harts: bool, events: &[(u32, Event)]| {
        let style = ListingStyle {
            harts,
            ..ListingStyle::default()
        };
        let mut list = TraceListing::new(&image, (&places, Functions::new()), style, |_| ());
        for (hart, event) in events {
            let _ = list.event(HartId(*hart), event);
        }
        String::from_utf8(list.out().text().clone()).unwrap()
    };
    let gap = Gap {
        at: 16,
        reason: Reason {
            code: "NT0301",
            text: "I-CNT ends inside an instruction",
            value: 0x1002,
        },
        bytes: 3,
        unconfirmed: 2,
    };
    let trap = Trap {
        epc: Some(0x1004),
        handler: Some(0x1000),
        cause: Cause::Exception(Some(11)),
        tval: None,
        pending: None,
    };
    let owner = Ownership {
        mode: Some(Mode::S),
        context: None,
    };
    let events = [
        (0, Event::Mark(Mark::On)),
        (0, Event::Time(7)),
        (0, Event::Run(run(0x1000, 1))),
        (0, Event::Trap(trap)),
        (1, Event::Context(owner)),
        (1, Event::Gap(gap)),
        (0, Event::Run(run(0x1000, 1))),
    ];
    let expected = "-- tracing starts\n\
        -- time 7\n\
        0000000000001000  00000073  ecall\n\
        -- exception 11, environment call from M-mode, at 0x1004, handler 0x1000\n\
        -- now mode S\n\
        -- gap at byte 0x10: NT0301: I-CNT ends inside an instruction (0x1002); \
        the last 2 instructions are unconfirmed\n\
        0000000000001000  00000073    ecall\n";
    assert_eq!(listed(false, &events), expected);
    let numbered = listed(true, &events);
    assert!(numbered.contains("\n0   0000000000001000  00000073  ecall\n0   -- exception"));
    assert!(numbered.contains("\n1   -- now mode S\n"));
    let bare: String = numbered
        .lines()
        .map(|l| format!("{}\n", l.split_at(4).1))
        .collect();
    assert_eq!(bare, expected);
}

/// The numbers of the instructions that a window passes on, of twelve at 0x1000 in runs
/// of three with a trap after the second, and whether something was missing.
fn passed(options: WindowOptions) -> (Vec<u64>, bool) {
    struct Insns<'a>(&'a Image, Vec<u64>);
    impl Consumer for Insns<'_> {
        fn event(&mut self, _: HartId, event: &Event) -> std::ops::ControlFlow<()> {
            if let Event::Run(run) = event {
                let insns = self.0.insns(SpaceId::FIRST, run.start, run.insns.into());
                self.1.extend(insns.map(|(pc, _)| (pc - 0x1000) / 2));
                assert_eq!(run.end, self.1.last().unwrap() * 2 + 0x1002);
            }
            std::ops::ControlFlow::Continue(())
        }
    }
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &[1, 0].repeat(12), Isa::RV64GC);
    let mut windowed = Windowed {
        inner: Insns(&image, Vec::new()),
        window: Window::new(&image, options),
    };
    for n in 0..4 {
        let start = 0x1000 + 6 * n;
        let run = Run {
            start,
            end: start + 6,
            next: start + 6,
            insns: 3,
            exit: Exit::Stop,
            last: 2,
        };
        let _ = windowed.event(HART, &Event::Time(100 * n));
        let _ = windowed.event(HART, &Event::Run(run));
        if n == 1 {
            let trap = Trap {
                epc: Some(0x100c),
                handler: None,
                cause: Cause::Interrupt(Some(7)),
                tval: None,
                pending: None,
            };
            let _ = windowed.event(HART, &Event::Trap(trap));
        }
    }
    let missing = windowed.window.missing().is_some();
    (windowed.inner.1, missing)
}

#[test]
fn windows() {
    let point = |kind| Some(Point { kind, nth: 1 });
    let all = WindowOptions::default();
    let (index, time) = (PointKind::Index, PointKind::Time);
    let from = |kind| WindowOptions {
        from: point(kind),
        ..all
    };
    let around = |kind, context| WindowOptions {
        find: point(kind),
        context,
        ..all
    };
    let numbers = |range: std::ops::Range<u64>| range.collect::<Vec<u64>>();
    for (options, expected) in [
        (all, numbers(0..12)),
        (from(index(4)), numbers(4..12)),
        (from(time(150)), numbers(6..12)),
        (from(PointKind::Address(0x1002)), numbers(1..12)),
        (from(PointKind::Trap), numbers(6..12)),
        (from(PointKind::Interrupt(Some(7))), numbers(6..12)),
        (
            WindowOptions {
                until: point(index(8)),
                ..from(index(4))
            },
            numbers(4..8),
        ),
        // An end before the start.
        (
            WindowOptions {
                until: point(index(2)),
                ..from(index(4))
            },
            vec![],
        ),
        (
            WindowOptions {
                until: point(PointKind::Address(0x1008)),
                ..from(index(1))
            },
            numbers(1..4),
        ),
        (around(index(4), 0), vec![4]),
        (around(index(4), 2), numbers(2..7)),
        (around(index(0), 1), numbers(0..2)),
        (around(index(11), 20), numbers(0..12)),
        (around(PointKind::Trap, 2), numbers(4..8)),
        (around(PointKind::Trap, 0), vec![]),
    ] {
        assert_eq!(passed(options), (expected, false), "{options:?}");
    }
    for kind in [
        index(12),
        time(301),
        PointKind::Address(0x1003),
        PointKind::Gap,
        PointKind::Exception(None),
        PointKind::Interrupt(Some(3)),
    ] {
        assert_eq!(passed(from(kind)), (vec![], true));
        assert_eq!(passed(around(kind, 5)), (vec![], true));
    }
    // Later times and all times.
    let second = Point {
        kind: time(0),
        nth: 3,
    };
    let options = WindowOptions {
        from: Some(second),
        ..all
    };
    assert_eq!(passed(options).0, numbers(6..12));
    let every = WindowOptions {
        every: true,
        ..around(time(200), 1)
    };
    assert_eq!(passed(every).0, [5, 6, 8, 9]);
}

/// A branch that was taken, a call and a return of a program with lines.
#[test]
fn source_between_instructions() {
    const ELF: &[u8] = include_bytes!("../../../../programs/sieve/sieve-rv64gc.elf");
    let mut image = Image::new();
    image.add_elf(SpaceId::FIRST, ELF, None, None).unwrap();
    let mut places = Places::new();
    places.add_elf(ELF, None).unwrap();
    let mut functions = Functions::new();
    functions.add_elf(ELF, None).unwrap();
    let source = |file: &str, line: u32| Some(format!("{} {line}", file.len()));
    let style = ListingStyle {
        source: Some(&source),
        colour: true,
        ..ListingStyle::default()
    };
    let mut list = TraceListing::new(&image, (&places, functions), style, |_| ());
    let loops = Run {
        start: 0x8000_0000,
        end: 0x8000_0010,
        next: 0x8000_0000,
        insns: 4,
        exit: Exit::Taken,
        last: 4,
    };
    for _ in 0..2 {
        let _ = list.event(HART, &Event::Run(loops));
    }
    let text = String::from_utf8(list.out().text().clone()).unwrap();
    // The source line is not repeated within its code, but where the code is again.
    assert_eq!(text.matches("; start.S:17").count(), 2, "{text}");
    assert_eq!(text.matches("; start.S:").count(), 4, "{text}");
    assert_eq!(text.matches("\x1b[33m[taken]\x1b[0m").count(), 2, "{text}");
    assert!(text.contains("\x1b[36m_start+0x4\x1b[0m"), "{text}");
}

/// Two programs at the same addresses: each instruction has the name and the source line of
/// the program that ran.
#[test]
fn a_listing_of_programs_at_the_same_addresses() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/");
    let read = |name: &str| std::fs::read([folder, name].concat()).unwrap();
    let (one, two) = (read("sieve/sieve-rv64gc.elf"), read("sort/sort-rv64gc.elf"));
    let mut image = Image::new();
    image.add_elf(SpaceId::FIRST, &one, None, None).unwrap();
    let other = image.add_space();
    image.add_elf(other, &two, None, None).unwrap();
    let source = |_: &str, _: u32| None;
    let listed = |files: &[&Vec<u8>], space: SpaceId, start: u64| {
        let mut places = Places::new();
        for file in files {
            places.add_elf(file, None).unwrap();
        }
        let style = ListingStyle {
            source: Some(&source),
            ..ListingStyle::default()
        };
        let mut list = TraceListing::new(&image, (&places, Functions::new()), style, |_| ());
        let _ = list.event(HART, &Event::Code(space));
        let _ = list.event(HART, &Event::Run(run(start, 1)));
        String::from_utf8(list.out().text().clone()).unwrap()
    };
    let mut functions = Functions::new();
    functions.add_elf(&two, None).unwrap();
    let mut different = 0;
    for (start, ..) in functions.ranges() {
        let first = listed(&[&one], SpaceId::FIRST, start);
        let second = listed(&[&two], other, start);
        different += u32::from(first != second);
        for both in [[&one, &two], [&two, &one]] {
            assert_eq!(listed(&both, other, start), second);
            if image.fetch(SpaceId::FIRST, start).is_some() {
                assert_eq!(listed(&both, SpaceId::FIRST, start), first);
            }
        }
    }
    assert!(different > 5);
}
