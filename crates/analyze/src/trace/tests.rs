use super::*;
use crate::Names;
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
    let names = Names::new();
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
    let mut list = TraceListing::new(&image, &names, false, |_| ());
    for event in [
        Event::Run(run(0x1000, 2)),
        Event::Access(DataAccess::of(0, store)),
        Event::Access(DataAccess::of(1, set)),
        Event::Access(DataAccess::of(1, store)),
        Event::Access(unknown),
    ] {
        let _ = list.event(HART, &event);
    }
    let text = String::from_utf8(list.out.text().clone()).unwrap();
    let expected = "0000000000001000  00000073  ecall  ; store 4 0x2000 = 0x7\n\
        0000000000001004  00000013  nop  ; set mstatus = 0x9, was 0x1  ; store 4 0x2000 = 0x7\n\
        -- store 4 = 0x7\n";
    assert_eq!(text, expected);
}

#[test]
fn a_listing_of_everything() {
    let image = image(8);
    let names = Names::new();
    let listed = |harts: bool, events: &[(u32, Event)]| {
        let mut list = TraceListing::new(&image, &names, harts, |_| ());
        for (hart, event) in events {
            let _ = list.event(HartId(*hart), event);
        }
        String::from_utf8(list.out.text().clone()).unwrap()
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
        0000000000001000  00000073  ecall\n";
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
