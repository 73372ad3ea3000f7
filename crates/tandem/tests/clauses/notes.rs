//! Chapter 3: what is between items and groups.

use hartrace_tandem::{Config, Fault, Group, Item, NewPc, Next, Reader, Register, Request};
use hartrace_tandem::{Operation, Response};

use crate::common::{Told, faults, group, groups, hex, items, read, rv32, sv32, write};

/// Groups of c.nop, with ends and without.
const NOP: &str = "01 03 10 01 00";

fn begun(group: &Group) -> (u64, u64, bool) {
    (group.at, group.number, group.outside)
}

/// MLEN: 64 on RV64, 34 on RV32 with Sv32 and 32 otherwise; 34 bits are five
/// bytes.
#[test]
fn mlen() {
    use hartrace_isa::Isa;
    for (isa, supervisor, bits, bytes) in [
        ("rv64gc", false, 64, 8),
        ("rv64gc", true, 64, 8),
        ("rv32gc", false, 32, 4),
        ("rv32gc", true, 34, 5),
    ] {
        let config = Config::new(Isa::parse(isa).unwrap(), supervisor);
        assert_eq!((config.mlen.bits(), config.mlen.bytes()), (bits, bytes));
        assert_eq!(config.validate(), Ok(()));
    }
    for (xlen, mlen) in [(rv32(), Config::default()), (Config::default(), sv32())] {
        let mixed = Config {
            mlen: mlen.mlen,
            ..xlen
        };
        assert!(mixed.validate().is_err());
    }
}

/// FLEN follows the instruction set.
#[test]
fn flen() {
    use hartrace_isa::Isa;
    for (isa, bits) in [
        ("rv64imac", 0),
        ("rv32imafc", 32),
        ("rv64imafc", 32),
        ("rv32gc", 64),
    ] {
        let config = Config::new(Isa::parse(isa).unwrap(), false);
        assert_eq!(config.flen.bits(), bits, "{isa}");
    }
}

/// Little endian, and the first of two small fields in the lower half of a
/// byte.
#[test]
fn byte_order() {
    let config = Config::default();
    let request = Request {
        addr: 0x0123_4567_89ab_cdef,
        op: Operation::StoreConditional,
        size: 1,
        data: 0xfedc,
    };
    assert_eq!(
        write(&config, &[Item::Request(request)]),
        hex("08 ef cd ab 89 67 45 23 01 13 dc fe")
    );
    let response = Response {
        op: Operation::StoreConditional,
        size: 1,
        failure: true,
        data: 0,
    };
    assert_eq!(write(&config, &[Item::Response(response)]), hex("09 11"));
}

/// What is between begin and end is one group.
#[test]
fn a_group_is_atomic() {
    let config = Config::default();
    let all = items(&config);
    let pick = |wanted: fn(&Item) -> bool| *all.iter().find(|i| wanted(i)).unwrap();
    let body = [
        Item::BeginGroup,
        pick(|i| matches!(i, Item::Insn32(_))),
        pick(|i| matches!(i, Item::Full(..))),
        pick(|i| matches!(i, Item::Mtime(_))),
        Item::IncrementPc,
        Item::EndGroup,
    ];
    let group = group(&config, &write(&config, &body));
    assert_eq!((group.items, group.changes.len()), (4, 1));
    assert!(group.mtime.is_some() && group.insn.is_some());
}

/// Items outside groups are one unordered set behind the group before and in
/// front of the next one; they have no number of their own.
#[test]
fn items_outside_groups() {
    let config = Config::default();
    let mtime = "07 08 01 00 00 00 00 00 00 00";
    let mip = "04 44 03 80 00 00 00 00 00 00 00";
    let text = format!("{mtime} {NOP} 02 {mip} {mip} {mtime} {NOP} 02 {mip}");
    let all = groups(&config, &hex(&text));
    let shown: Vec<_> = all.iter().map(begun).collect();
    assert_eq!(
        shown,
        [
            (0, 0, true),
            (10, 0, false),
            (16, 1, true),
            (48, 1, false),
            (54, 2, true)
        ]
    );
    // No moment, so no ambiguity.
    assert_eq!(all[2].changes.len(), 2);
    assert_eq!(all[2].mtime, Some(1));
    assert_eq!(all[4].changes.len(), 1);
}

/// An ambiguity outside of groups is told, and the rest is given.
#[test]
fn ambiguous_items_outside_groups() {
    let config = Config::default();
    let text = format!("07 01 03 07 01 01 {NOP} 02");
    let told = read(&config, &hex(&text));
    assert_eq!(told[0].fault(), Some(Fault::StateTwice));
    let Told::Group(outside) = &told[1] else {
        panic!("{told:?}");
    };
    assert!(outside.outside && outside.mode.is_some());
    assert!(matches!(&told[2], Told::Group(group) if !group.outside));
}

/// The end of a group is implied by the next begin.
#[test]
fn implied_ends() {
    let config = Config::default();
    let with = groups(&config, &hex(&format!("{NOP} 02 {NOP} 02 {NOP} 02")));
    let without = groups(&config, &hex(&format!("{NOP} {NOP} {NOP} 02")));
    assert_eq!((with.len(), without.len()), (3, 3));
    for (a, b) in with.iter().zip(&without) {
        let same = Group {
            at: a.at,
            ..b.clone()
        };
        assert_eq!(*a, same);
    }
    assert_eq!(without[2].at, 10);
    // But not by the end of the trace.
    assert_eq!(
        faults(&config, &hex(&format!("{NOP} {NOP}"))),
        [Fault::OpenGroup]
    );
}

/// An end without a begin says nothing.
#[test]
fn stray_ends() {
    let config = Config::default();
    let mut reader = Reader::new(config);
    let bytes = hex(&format!(
        "02 02 {NOP} 02 02 07 08 01 00 00 00 00 00 00 00 02 {NOP} 02"
    ));
    let mut rest = &bytes[..];
    let mut groups = 0;
    while reader.next(&mut rest) == Next::Group {
        groups += 1;
    }
    assert_eq!((groups, reader.stray_ends()), (3, 4));
    assert_eq!(reader.groups(), 2);
}

/// Fields may be left out: every one by itself, and nothing at all.
#[test]
fn fields_may_be_omitted() {
    let config = Config::default();
    for item in items(&config) {
        let alone = match item {
            Item::BeginGroup | Item::EndGroup | Item::IncrementPc => continue,
            Item::Mode(2 | 255) => continue,
            Item::Offset(r, _) | Item::Mask(r, _) if r.is_float() => continue,
            item => item,
        };
        let bytes = write(&config, &[Item::BeginGroup, alone, Item::EndGroup]);
        assert_eq!(group(&config, &bytes).items, 1, "{item:?}");
    }
    assert_eq!(group(&config, &[1, 2]).items, 0);
}

/// The order of fields is free; of registers and accesses it is kept.
#[test]
fn fields_in_any_order() {
    let config = Config::default();
    let body = [
        Item::IncrementPc,
        Item::Insn32(0x0082_a203),
        Item::Full(Register::x(4), 1),
        Item::EffectiveAddress(8),
        Item::Mode(3),
    ];
    let mut seen: Option<Group> = None;
    // All orders of five.
    for number in 0..120usize {
        let (mut rest, mut order, mut code) = (body.to_vec(), vec![Item::BeginGroup], number);
        for left in (1..=5).rev() {
            order.push(rest.remove(code % left));
            code /= left;
        }
        order.push(Item::EndGroup);
        let group = group(&config, &write(&config, &order));
        if let Some(seen) = &seen {
            assert_eq!(*seen, group);
        }
        seen = Some(group);
    }
}

/// Register numbers of all three kinds; the pc is no register.
#[test]
fn register_addresses() {
    for (number, name) in [
        (0x000, "ustatus"),
        (0x003, "fcsr"),
        (0x300, "mstatus"),
        (0xb02, "minstret"),
        (0x1000, "zero"),
        (0x1002, "sp"),
        (0x101f, "t6"),
        (0x1020, "ft0"),
        (0x103f, "ft11"),
    ] {
        let register = Register::new(number).unwrap();
        let shown = register.to_string();
        assert!(shown == name || number == 0, "{shown}");
        assert_eq!(register.as_csr().is_some(), number < 0x1000);
    }
    assert_eq!(Register::from_name("pc"), None);
    // 0x7b1, dpc, is the debugger's.
    assert_eq!(
        Register::from_name("dpc").map(Register::number),
        Some(0x7b1)
    );
}

/// A response right behind its request, or none; not behind anything else.
#[test]
fn responses_follow_their_requests() {
    let config = Config::default();
    let load = "08 00 10 00 00 00 00 00 00 00"; // one byte
    let answer = "09 00 5a";
    let with = group(&config, &hex(&format!("01 0b {load} {answer} {load} 02")));
    assert_eq!(with.memory.len(), 2);
    assert_eq!(with.memory[0].response.map(|r| r.data), Some(0x5a));
    assert_eq!(with.memory[1].response, None);
    for text in [
        format!("01 {answer} 02"),
        format!("01 {load} 0b {answer} 02"),
        format!("01 {load} {answer} {answer} 02"),
        format!("01 {load} 02 {answer}"),
        format!("01 {load} 01 {answer} 02"),
        format!("{load} 01 {answer} 02"),
    ] {
        assert_eq!(
            faults(&config, &hex(&text)),
            [Fault::LoneResponse],
            "{text}"
        );
    }
    // Outside of groups likewise.
    let outside = group(&config, &hex(&format!("{load} {answer}")));
    assert!(outside.memory[0].response.is_some());
}

/// Increment pc needs an instruction in its group, before it or behind it.
#[test]
fn increment_needs_an_instruction() {
    let config = Config::default();
    for text in ["01 03 10 01 00 02", "01 10 01 00 03 02"] {
        assert_eq!(group(&config, &hex(text)).pc, Some(NewPc::Increment));
    }
    for text in [
        "01 03 02",
        "01 03 04 03 10 00 00 00 00 00 00 00 00 02",
        "03",
    ] {
        assert_eq!(
            faults(&config, &hex(text)),
            [Fault::IncrementAlone],
            "{text}"
        );
    }
    // An instruction of another group does not count.
    assert_eq!(
        faults(&config, &hex("01 10 01 00 02 01 03 02")),
        [Fault::IncrementAlone]
    );
}

/// State initialisation goes with registers and memory, not with an
/// instruction or a reset, and not only at the start.
#[test]
fn state_initialisation() {
    let config = Config::default();
    let register = "04 0a 10 01 00 00 00 00 00 00 00";
    let store = "08 00 10 00 00 00 00 00 00 01 5a";
    for text in [
        format!("01 0b {register} 02"),
        format!("01 {register} 0b 02"),
        format!("01 0b {store} 02"),
        format!("01 0b {store} 09 00 02"),
        "01 0b 02".to_owned(),
    ] {
        assert!(group(&config, &hex(&text)).init, "{text}");
    }
    for text in [
        "01 0b 10 01 00 02",
        "01 11 13 00 00 00 0b 02",
        "01 0a 0b 02",
    ] {
        assert_eq!(
            faults(&config, &hex(text)),
            [Fault::InitWithExecution],
            "{text}"
        );
    }
    let later = groups(
        &config,
        &hex(&format!("{NOP} 02 01 0b {register} 02 {NOP} 02")),
    );
    assert_eq!(
        later.iter().map(|g| g.init).collect::<Vec<_>>(),
        [false, true, false]
    );
}

/// Only unambiguous changes: what a group may have only once.
#[test]
fn ambiguous_groups() {
    let config = Config::default();
    let pc = "07 0a 00 01 00 00 00 00 00 00";
    let gp = "04 03 10 34 12 00 00 00 00 00 00";
    for (text, fault) in [
        (format!("01 {pc} {pc} 10 01 00 02"), Fault::TwoPcs),
        (format!("01 {pc} 03 10 01 00 02"), Fault::TwoPcs),
        ("01 03 03 10 01 00 02".to_owned(), Fault::TwoPcs),
        ("01 10 01 00 10 01 00 02".to_owned(), Fault::TwoInsns),
        ("01 10 01 00 11 13 00 00 00 02".to_owned(), Fault::TwoInsns),
        (format!("01 {gp} {gp} 02"), Fault::RegisterTwice),
        (format!("01 {gp} 05 03 10 01 02"), Fault::RegisterTwice),
        (format!("01 06 03 10 01 {gp} 02"), Fault::RegisterTwice),
        ("01 07 01 03 07 01 03 02".to_owned(), Fault::StateTwice),
        (
            "01 07 08 00 00 00 00 00 00 00 00 07 08 00 00 00 00 00 00 00 00 02".to_owned(),
            Fault::StateTwice,
        ),
        (
            "01 07 09 00 00 00 00 00 00 00 00 07 09 00 00 00 00 00 00 00 00 02".to_owned(),
            Fault::StateTwice,
        ),
    ] {
        // The group is not given, the one behind it is.
        let text = format!("{text} {NOP} 02");
        let told = read(&config, &hex(&text));
        assert_eq!(told.len(), 2, "{text}: {told:x?}");
        assert_eq!(told[0].fault(), Some(fault), "{text}");
        assert!(matches!(&told[1], Told::Group(group) if group.number == 1));
    }
}

/// Several accesses of an instruction: addresses and data that repeat begin
/// the next one.
#[test]
fn several_accesses() {
    let config = Config::default();
    let access = |addr, data| {
        [
            Item::EffectiveAddress(addr),
            Item::PhysicalAddress(addr + 0x1000),
            Item::StoreData(3, data),
        ]
    };
    let items = [
        vec![Item::BeginGroup, Item::IncrementPc, Item::Insn16(0xb842)],
        access(0, 1).to_vec(),
        access(8, 2).to_vec(),
        vec![
            Item::EffectiveAddress(16),
            Item::EffectiveAddress(24),
            Item::EndGroup,
        ],
    ];
    let group = group(&config, &write(&config, &items.concat()));
    assert_eq!(group.data.len(), 4);
    assert_eq!(group.data[1].store, Some((3, 2)));
    assert_eq!(group.data[1].paddr, Some(0x1008));
    assert_eq!(
        (group.data[2].eaddr, group.data[3].eaddr),
        (Some(16), Some(24))
    );
}
