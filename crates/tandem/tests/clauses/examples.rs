//! Appendix C, as printed and as meant, and the sizes of Appendix D.

use hartrace_flow::Mode;
use hartrace_tandem::{Change, Config, Data, Fault, Group, How, Insn, Item, NewPc, Register};

use crate::common::{Told, decode, faults, group, hex, read, write};

/// C.1: `add gp, t0, t1`.
const C1: &str = "01 03 11 b3 81 62 00 04 03 10 34 12 00 00 00 00 00 00 02";
/// C.2: `jr 256(sp)`, with the identifier 10 in hexadecimal.
const C2: &str = "01 07 0a 00 01 00 0c 00 00 00 00 11 67 00 01 10 02";
/// C.3: `fadd.s ft7, fa3, fa7`.
const C3: &str = "01 03 11 d3 f3 16 01 04 27 10 f9 f4 fe 66 ff ff ff ff 06 03 00 01 02";
/// C.4: `c.sub a0, a1`, with the number of a0 in hexadecimal.
const C4: &str = "01 03 10 0d 8d 04 0a 10 78 56 34 12 ff ff ff ff 02";
/// C.5: `lw tp, 8(t0)`, with the opcode of a 32-bit instruction and a value
/// that lw can load.
const C5: &str =
    "01 03 11 03 a2 82 00 04 04 10 aa 55 aa 55 00 00 00 00 07 02 08 00 00 01 00 00 00 00 02";
/// C.6: `csrrc s1, mie, a1`.
const C6: &str = "01 03 11 f3 b4 45 30 04 09 10 88 08 00 00 00 00 00 00 \
                  04 04 03 80 08 00 00 00 00 00 00 02";
/// C.7: an illegal instruction.
const C7: &str = "01 07 0a 00 00 01 00 00 00 00 00 11 00 00 00 00 \
                  04 41 03 34 12 08 00 00 00 00 00 04 42 03 02 00 00 00 00 00 00 00 \
                  04 00 03 b0 18 00 00 0a 00 00 00 04 43 03 00 00 00 00 00 00 00 00 07 01 03 02";
/// C.8: an interrupt.
const C8: &str = "01 07 0a 00 00 01 00 00 00 00 00 \
                  04 41 03 56 12 08 00 00 00 00 00 04 42 03 03 00 00 00 00 00 00 80 \
                  04 00 03 b0 18 00 00 0a 00 00 00 04 43 03 00 00 00 00 00 00 00 00 07 01 03 02";

fn example(text: &str) -> Group {
    group(&Config::default(), &hex(text))
}

fn full(register: Register, value: u64) -> Change {
    Change {
        register,
        how: How::Full(value),
    }
}

const fn wide(bits: u32) -> Option<Insn> {
    Some(Insn { bits, len: 4 })
}

#[test]
fn c1_add() {
    let group = example(C1);
    assert_eq!(group.pc, Some(NewPc::Increment));
    assert_eq!(group.insn, wide(0x0062_81b3));
    assert_eq!(group.changes, [full(Register::x(3), 0x1234)]);
    assert_eq!((group.mode, group.items), (None, 3));
}

#[test]
fn c2_jr() {
    let group = example(C2);
    assert_eq!(group.pc, Some(NewPc::To(0x0c00_0100)));
    assert_eq!(group.insn, wide(0x1001_0067));
    assert!(group.changes.is_empty());
}

/// The full FLEN, and an OR mask on fcsr.
#[test]
fn c3_fadd() {
    let group = example(C3);
    let mask = Change {
        register: Register::csr(3),
        how: How::Mask(1),
    };
    let ft7 = full(Register::f(7), 0xffff_ffff_66fe_f4f9);
    assert_eq!(group.changes, [ft7, mask]);
}

#[test]
fn c4_c_sub() {
    let group = example(C4);
    let insn = Insn {
        bits: 0x8d0d,
        len: 2,
    };
    assert_eq!(group.insn, Some(insn));
    assert_eq!(
        group.changes,
        [full(Register::x(10), 0xffff_ffff_1234_5678)]
    );
}

#[test]
fn c5_lw() {
    let group = example(C5);
    assert_eq!(group.insn, wide(0x0082_a203));
    let data = Data {
        paddr: Some(0x0100_0008),
        ..Data::default()
    };
    assert_eq!(group.data, [data]);
}

#[test]
fn c6_csrrc() {
    let group = example(C6);
    let changes = [
        full(Register::x(9), 0x888),
        full(Register::csr(0x304), 0x880),
    ];
    assert_eq!(group.changes, changes);
}

#[test]
fn c7_illegal_instruction() {
    let group = example(C7);
    assert_eq!(group.pc, Some(NewPc::To(0x1_0000)));
    assert_eq!((group.insn, group.mode), (wide(0), Some(Mode::M)));
    let numbers: Vec<_> = group.changes.iter().map(|c| c.register.number()).collect();
    assert_eq!(numbers, [0x341, 0x342, 0x300, 0x343]);
    assert_eq!(
        decode(&Config::default(), &hex(C7)),
        [
            "trap Some(81234) to Some(10000) Exception(Some(2)) Some(0)",
            "mode Some(M)"
        ]
    );
}

#[test]
fn c8_interrupt() {
    let group = example(C8);
    assert_eq!((group.insn, group.mode), (None, Some(Mode::M)));
    assert_eq!(
        decode(&Config::default(), &hex(C8)),
        [
            "trap Some(81256) to Some(10000) Interrupt(Some(3)) Some(0)",
            "mode Some(M)"
        ]
    );
}

/// Items written by hand are the examples, byte for byte.
#[test]
fn the_examples_are_written() {
    let config = Config::default();
    let csr = |number, value| Item::Full(Register::csr(number), value);
    let trap = |epc, cause| {
        [
            csr(0x341, epc),
            csr(0x342, cause),
            csr(0x300, 0xa_0000_18b0),
            csr(0x343, 0),
            Item::Mode(3),
        ]
    };
    let insn = |bits| vec![Item::IncrementPc, Item::Insn32(bits)];
    let bodies = [
        (
            C1,
            [insn(0x0062_81b3), vec![Item::Full(Register::x(3), 0x1234)]].concat(),
        ),
        (C2, vec![Item::Pc(0x0c00_0100), Item::Insn32(0x1001_0067)]),
        (
            C3,
            [
                insn(0x0116_f3d3),
                vec![
                    Item::Full(Register::f(7), 0xffff_ffff_66fe_f4f9),
                    Item::Mask(Register::csr(3), 1),
                ],
            ]
            .concat(),
        ),
        (
            C4,
            vec![
                Item::IncrementPc,
                Item::Insn16(0x8d0d),
                Item::Full(Register::x(10), 0xffff_ffff_1234_5678),
            ],
        ),
        (
            C5,
            [
                insn(0x0082_a203),
                vec![
                    Item::Full(Register::x(4), 0x55aa_55aa),
                    Item::PhysicalAddress(0x0100_0008),
                ],
            ]
            .concat(),
        ),
        (
            C6,
            [
                insn(0x3045_b4f3),
                vec![Item::Full(Register::x(9), 0x888), csr(0x304, 0x880)],
            ]
            .concat(),
        ),
        (
            C7,
            [
                vec![Item::Pc(0x1_0000), Item::Insn32(0)],
                trap(0x8_1234, 2).to_vec(),
            ]
            .concat(),
        ),
        (
            C8,
            [
                vec![Item::Pc(0x1_0000)],
                trap(0x8_1256, 1 << 63 | 3).to_vec(),
            ]
            .concat(),
        ),
    ];
    for (text, body) in bodies {
        let items = [vec![Item::BeginGroup], body, vec![Item::EndGroup]].concat();
        assert_eq!(write(&config, &items), hex(text));
    }
}

/// C.2, C.7 and C.8 as printed have the identifier 16: an error at that byte's
/// item, or the pc where that is asked for.
#[test]
fn as_printed_the_identifier_of_the_pc() {
    let lenient = Config {
        lenient_pc_identifier: true,
        ..Config::default()
    };
    for text in [C2, C7, C8] {
        let printed = hex(&text.replacen("07 0a", "07 10", 1));
        let told = read(&Config::default(), &printed);
        let Some(Told::Problem(problem)) = told.first() else {
            panic!("{told:?}");
        };
        assert_eq!(problem.fault, Fault::UnknownIdentifier);
        assert_eq!((problem.at, problem.group, problem.value), (1, 0, 16));
        assert_eq!(group(&lenient, &printed), example(text));
    }
}

/// C.4 as printed is a6.
#[test]
fn as_printed_the_number_of_a0() {
    let printed = example(&C4.replacen("04 0a 10", "04 10 10", 1));
    assert_eq!(printed.changes[0].register, Register::x(16));
    assert_eq!(printed.changes[0].register.to_string(), "a6");
}

/// C.5 as printed has the opcode of a 16-bit instruction before a longer one.
#[test]
fn as_printed_the_opcode_of_lw() {
    let printed = hex(&C5.replacen("03 11", "03 10", 1));
    assert_eq!(faults(&Config::default(), &printed), [Fault::InsnLength]);
    let Told::Problem(problem) = read(&Config::default(), &printed)[0].clone() else {
        panic!();
    };
    assert_eq!((problem.at, problem.value), (2, 0xa203));
}

/// Appendix D: sizes in bytes. Its rows are those of Appendix C and the four
/// bytes of minstret growing by one; "branch, jump" fits no formula.
#[test]
fn d_sizes() {
    let config = Config::default();
    let minstret = Item::Offset(Register::csr(0xb02), 1);
    let gpr = Item::Full(Register::x(1), 0);
    let fpr = Item::Full(Register::f(1), 0);
    let csr = |number| Item::Full(Register::csr(number), 0);
    let (paddr, eaddr) = (Item::PhysicalAddress(0), Item::EffectiveAddress(0));
    let data = Item::StoreData(3, 0);
    let fcsr = Item::Mask(Register::csr(3), 0);
    let trap = [
        csr(0x341),
        csr(0x342),
        csr(0x300),
        csr(0x343),
        Item::Mode(3),
    ];
    let size = |pc: Item, insn: bool, body: &[Item]| {
        let mut items = vec![Item::BeginGroup, pc];
        if insn {
            items.extend([Item::Insn32(0x13), minstret]);
        }
        items.extend(body);
        items.push(Item::EndGroup);
        write(&config, &items).len()
    };
    let (step, pc) = (Item::IncrementPc, Item::Pc(0));
    for (bytes, pc, insn, body) in [
        (23, step, true, &[gpr][..]),
        (12, step, true, &[]),
        (21, pc, true, &[]), // printed: 27
        (32, pc, true, &[gpr]),
        (33, step, true, &[gpr, paddr]),
        (43, step, true, &[gpr, paddr, eaddr]),
        (32, step, true, &[paddr, data]),
        (42, step, true, &[paddr, eaddr, data]),
        (53, step, true, &[gpr, paddr, eaddr, data]),
        (34, step, true, &[csr(0x304), gpr]),
        (23, step, true, &[csr(0x304)]),
        (27, step, true, &[fpr, fcsr]),
        (27, step, true, &[gpr, fcsr]),
        (43, step, true, &[fpr, paddr, eaddr]),
        (59, pc, false, &trap),
        (68, pc, true, &trap),
    ] {
        assert_eq!(size(pc, insn, body), bytes, "{body:?}");
    }
}
