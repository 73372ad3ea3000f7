use crate::{Dialect, Isa, Op, Style, decode};
use std::collections::BTreeSet;
use std::string::ToString;

const CASES: &str = include_str!("cases.txt");
const ALL: &str = "imafdv_zvfh_zvfbfwma_zvbb_zvkng_zvknc_zvksg";

/// Bits, text, text without aliases.
fn cases() -> impl Iterator<Item = (u32, &'static str, &'static str)> {
    let lines = CASES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (bits, text) = line.split_once(' ').unwrap();
        let (text, base) = text.split_once(" = ").unwrap_or((text, text));
        (u32::from_str_radix(bits, 16).unwrap(), text, base)
    })
}

#[test]
fn every_case_in_both_widths() {
    for width in ["rv32", "rv64"] {
        let mut style = Style::new(Isa::parse(&std::format!("{width}{ALL}")).unwrap());
        style.dialect = Dialect::Binutils245;
        for (bits, text, base) in cases() {
            for (aliases, expected) in [(true, text), (false, base)] {
                style.aliases = aliases;
                let ours = decode(bits, style.isa).text(0, &style).to_string();
                assert_eq!(ours.replace('\t', " "), expected, "{bits:08x}");
            }
        }
    }
}

#[test]
fn both_dialects_spell_vectors_alike() {
    let mut style = Style::new(Isa::parse(&std::format!("rv64{ALL}")).unwrap());
    style.dialect = Dialect::Binutils240;
    for (bits, text, _) in cases().filter(|(_, text, _)| !text.starts_with('.')) {
        let ours = decode(bits, style.isa).text(0, &style).to_string();
        assert_eq!(ours.replace('\t', " "), text, "{bits:08x}");
    }
}

#[test]
fn every_vector_instruction_has_a_case() {
    let isa = Isa::parse(&std::format!("rv64{ALL}")).unwrap();
    let seen: BTreeSet<Op> = cases().map(|(bits, ..)| decode(bits, isa).op).collect();
    let vector = Op::FULL.iter().filter(|op| op.name().starts_with('v'));
    let missing: std::vec::Vec<_> = vector.filter(|op| !seen.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let names = cases().map(|(_, _, base)| base.split(' ').next().unwrap());
    // The reserved cases are all one op; segments have two to eight fields.
    let names: BTreeSet<_> = names.filter(|name| name.starts_with('v')).collect();
    assert_eq!(names.len(), seen.len() - 1 + 36 * 7);
}

/// Every instruction is unknown without its extension.
#[test]
fn extensions_are_honoured() {
    for (bits, needs) in [
        (0x0d05_f557, "zve32x"),
        (0x0205_6007, "zve64x"),
        (0x0221_90d7, "zve32f"),
        (0x4a26_90d7, "zvfbfmin"),
        (0xee21_90d7, "zvfbfwma"),
        (0x0621_80d7, "zvkb"),
        (0x4a26_20d7, "zvbb"),
        (0x3221_a0d7, "zvbc"),
        (0xb221_a0f7, "zvkg"),
        (0xa220_20f7, "zvkned"),
        (0xb621_a0f7, "zvknha"),
        (0xb621_a0f7, "zvknhb"),
        (0x8621_a0f7, "zvksed"),
        (0x8221_a0f7, "zvksh"),
    ] {
        let with = Isa::parse(&std::format!("rv64i_{needs}")).unwrap();
        assert_ne!(decode(bits, with).op, Op::Unknown, "{bits:08x} {needs}");
        let letters = ["rv64gc", "rv64i_zve64x_zvksed_zvkned"];
        let isa = letters.map(|text| Isa::parse(text).unwrap());
        assert_eq!(decode(bits, isa[0]).op, Op::Unknown, "{bits:08x}");
        let other = ["zve", "zvkned", "zvksed"]
            .iter()
            .any(|n| needs.starts_with(n));
        let float = needs == "zve32f";
        assert_eq!(
            decode(bits, isa[1]).op == Op::Unknown,
            !other || float,
            "{needs}"
        );
    }
}

#[test]
fn scalar_operands_are_registers_and_vectors_are_not() {
    let isa = Isa::parse("rv64gcv").unwrap();
    let at = |bits| {
        let i = decode(bits, isa);
        (i.rd.number(), i.rs1.number(), i.rs2.number(), i.imm)
    };
    // vle32.v v8,(a1); vsse16.v v8,(a1),a2; vadd.vv v1,v2,v3; vadd.vx v1,v2,a0.
    assert_eq!(at(0x0205_e407), (0, 11, 0, 0));
    assert_eq!(at(0x0ac5_d427), (0, 11, 12, 0));
    assert_eq!(at(0x0221_80d7), (0, 0, 0, 0));
    assert_eq!(at(0x0225_40d7), (0, 10, 0, 0));
    // vadd.vi v1,v2,-16; vsll.vi v1,v2,31; vsetvli a0,a1,e32,m1,ta,ma; vmv.x.s a0,v2.
    assert_eq!(at(0x0228_30d7), (0, 0, 0, -16));
    assert_eq!(at(0x962f_b0d7), (0, 0, 0, 31));
    assert_eq!(at(0x0d05_f557), (10, 11, 0, 0xd0));
    assert_eq!(at(0x4220_2557), (10, 0, 0, 0));
    let load = decode(0x62c6_e407, isa);
    assert_eq!((load.vd(), load.nf(), load.vm()), (8, 3, true));
    let add = decode(0x0021_80d7, isa);
    assert_eq!((add.vd(), add.vs1(), add.vs2(), add.vm()), (1, 3, 2, false));
}
