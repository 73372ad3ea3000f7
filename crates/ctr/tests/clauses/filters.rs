//! 5.2 (1.0: 6.2): filters, and what the types are.

use hartrace_ctr::{Control, Version};
use hartrace_flow::{Effects, HartId, Insn, Observer, Step, StepTransfers, Transfer};
use hartrace_isa::{Isa, Itype};

use crate::common::*;

/// The filter of each of [`TYPES`]: its bit is 32 and the code.
const FILTERS: [(&str, &str); 13] = [
    ("EXCINH", "EXCINH"),
    ("INTRINH", "INTRINH"),
    ("TRETINH", "TRETINH"),
    ("NTBREN", "NTBREN"),
    ("TKBRINH", "TKBRINH"),
    ("INDCALLINH", "INDCALLINH"),
    ("DIRCALLINH", "DIRCALLINH"),
    ("INDJUMPINH", "INDJMPINH"),
    ("DIRJUMPINH", "DIRJMPINH"),
    ("CORSWAPINH", "CORSWAPINH"),
    ("RETINH", "RETINH"),
    ("INDOJMPINH", "INDLJMPINH"),
    ("DIROJMPINH", "DIRLJMPINH"),
];

fn filter(version: Version, kind: Itype) -> u64 {
    let at = TYPES.iter().position(|t| *t == kind).unwrap();
    bits(
        version,
        match version {
            V0_1_4 => FILTERS[at].0,
            V1_0 => FILTERS[at].1,
        },
    )
}

/// Every type that a mode has; user modes have no trap returns.
fn types_of(mode: hartrace_flow::Mode) -> impl Iterator<Item = Itype> {
    let user = matches!(mode, U | VU);
    let types = TYPES.into_iter();
    types.filter(move |kind| !(user && *kind == Itype::TrapReturn))
}

/// Whether one transfer is recorded with these filters.
fn is_recorded(s: &mut Software, mode: hartrace_flow::Mode, filters: u64, kind: Itype) -> bool {
    s.control(bits(s.version, "M S U") | filters);
    s.guest_control(bits(s.version, "S U") | filters);
    s.set_status(0);
    s.mode = mode;
    s.transfer(kind, 0x1000, 0x2000);
    s.wrptr() == 1
}

/// By default all are recorded but branches that are not taken; each filter
/// changes its own type and no other. In every mode.
#[test]
fn every_filter_and_type() {
    for version in Version::ALL {
        for mode in MODES {
            let mut s = Software::new(full(version));
            for kind in types_of(mode) {
                let usual = kind != Itype::NotTaken;
                assert_eq!(is_recorded(&mut s, mode, 0, kind), usual, "{kind:?}");
                for other in TYPES {
                    let filters = filter(version, other);
                    let expected = usual != (kind == other);
                    let found = is_recorded(&mut s, mode, filters, kind);
                    assert_eq!(found, expected, "{version} {mode:?} {kind:?} {other:?}");
                }
            }
        }
    }
}

/// All filters but one, and pairs of them.
#[test]
fn filters_together() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        let all = TYPES.iter().fold(0, |all, t| all | filter(version, *t));
        assert_eq!(all, 0x0000_ff3e_0000_0000);
        for kind in TYPES {
            let only = kind == Itype::NotTaken;
            assert_eq!(is_recorded(&mut s, M, all, kind), only);
            let but = all & !filter(version, kind);
            assert_eq!(is_recorded(&mut s, M, but, kind), !only);
            for (a, b) in TYPES
                .iter()
                .flat_map(|a| TYPES.iter().map(move |b| (*a, *b)))
            {
                let filters = filter(version, a) | filter(version, b);
                let set = kind == a || kind == b;
                let found = is_recorded(&mut s, M, filters, kind);
                assert_eq!(found, set == only, "{version} {kind:?} {a:?} {b:?}");
            }
        }
    }
}

/// A filter that is not implemented stays 0, so its type is recorded as by
/// default.
#[test]
fn filters_that_are_not_there() {
    for version in Version::ALL {
        let mut s = Software::new(bare(version));
        for kind in TYPES {
            let usual = kind != Itype::NotTaken;
            let found = is_recorded(&mut s, M, filter(version, kind), kind);
            assert_eq!(found, usual, "{version} {kind:?}");
        }
    }
}

/// The host's filters are for M, S and U, the guest's for VS and VU.
#[test]
fn filters_of_host_and_guest() {
    for version in Version::ALL {
        for mode in MODES {
            for kind in types_of(mode) {
                let usual = kind != Itype::NotTaken;
                let filter = filter(version, kind);
                for guest in [false, true] {
                    let mut s = Software::new(full(version));
                    s.control(bits(version, "M S U") | if guest { 0 } else { filter });
                    s.guest_control(bits(version, "S U") | if guest { filter } else { 0 });
                    s.mode = mode;
                    s.transfer(kind, 0x1000, 0x2000);
                    let expected = usual != (mode.is_virtual() == guest);
                    assert_eq!(s.wrptr() == 1, expected, "{version} {mode:?} {kind:?}");
                }
            }
        }
    }
}

/// Types that CTR does not use (0) or reserves (6, 7) are not recorded.
#[test]
fn types_that_are_none() {
    for version in Version::ALL {
        for kind in [Itype::None, Itype::Uninferable, Itype::Reserved] {
            for filters in [0, u64::MAX << 32] {
                let mut s = Software::new(full(version));
                assert!(!is_recorded(&mut s, M, filters, kind), "{kind:?}");
            }
        }
    }
}

/// A mode that is not enabled records none of its jumps; each enable is for one
/// mode.
#[test]
fn enables_of_modes() {
    for version in Version::ALL {
        for enabled in MODES {
            for mode in MODES {
                let mut s = Software::new(full(version));
                s.record_in(&[enabled], "");
                s.mode = mode;
                s.jump(Itype::DirectCall, 0x1000, 0x2000);
                let recorded = s.wrptr() == 1;
                assert_eq!(recorded, mode == enabled, "{version} {enabled:?} {mode:?}");
            }
        }
    }
}

/// 1.0, 6.2, the table of opcodes: an instruction that retires, and the type
/// it is recorded with.
#[test]
fn opcodes() {
    // Bits, type; jalr is imm[11:0] rs1 000 rd 1100111, jal imm rd 1101111.
    let rows: [(u32, u64, &str); 39] = [
        (0x0003_00e7, 8, "jalr x1, x6"),
        (0x0000_80e7, 8, "jalr x1, x1"),
        (0x0000_00e7, 8, "jalr x1, x0"),
        (0x0003_02e7, 8, "jalr x5, x6"),
        (0x0002_82e7, 8, "jalr x5, x5"),
        (0x0000_02e7, 8, "jalr x5, x0"),
        (0x9302, 8, "c.jalr x6"),
        (0x9082, 8, "c.jalr x1"),
        (0x0080_00ef, 9, "jal x1"),
        (0x0080_02ef, 9, "jal x5"),
        (0xa082, 9, "cm.jalt 32"),
        (0xa3fe, 9, "cm.jalt 255"),
        (0x0003_0067, 10, "jalr x0, x6"),
        (0x0000_0067, 10, "jalr x0, x0"),
        (0x8302, 10, "c.jr x6"),
        (0x0080_006f, 11, "jal x0"),
        (0xa021, 11, "c.j"),
        (0xa002, 11, "cm.jt 0"),
        (0xa07e, 11, "cm.jt 31"),
        (0x0002_80e7, 12, "jalr x1, x5"),
        (0x0000_82e7, 12, "jalr x5, x1"),
        (0x9282, 12, "c.jalr x5"),
        (0x0000_8067, 13, "jalr x0, x1"),
        (0x0002_8067, 13, "jalr x0, x5"),
        (0x0000_83e7, 13, "jalr x7, x1"),
        (0x0002_8fe7, 13, "jalr x31, x5"),
        (0x8082, 13, "c.jr x1"),
        (0x8282, 13, "c.jr x5"),
        (0xbe42, 13, "cm.popret {ra}"),
        (0xbc42, 13, "cm.popretz {ra}"),
        (0x0003_03e7, 14, "jalr x7, x6"),
        (0x0000_03e7, 14, "jalr x7, x0"),
        (0x0003_0fe7, 14, "jalr x31, x6"),
        (0x0080_03ef, 15, "jal x7"),
        (0x0080_0fef, 15, "jal x31"),
        (0x0000_0463, 5, "beq, taken"),
        (0xc101, 5, "c.beqz, taken"),
        (0x3020_0073, 3, "mret"),
        (0x1020_0073, 3, "sret"),
    ];
    let isa = Isa::parse("rv64imac_zicsr_zcmp_zcmt").unwrap();
    for (bits, code, name) in rows {
        assert_eq!(recorded_as(isa, bits, 0x100), Some(code), "{name}");
    }
    // C.JAL is there on RV32 only.
    let rv32 = Isa::parse("rv32imac_zicsr").unwrap();
    assert_eq!(recorded_as(rv32, 0x2021, 0x100), Some(9), "c.jal");
    // Not taken: to the instruction behind it.
    assert_eq!(recorded_as(isa, 0x0000_0463, 0x1004), Some(4), "beq");
    assert_eq!(recorded_as(isa, 0xc101, 0x1002), Some(4), "c.beqz");
    // These do not transfer control.
    for bits in [0x13, 0x1, 0x0000_0517, 0x0ff0_000f, 0x1050_0073] {
        assert_eq!(recorded_as(isa, bits, 0x1004), None, "{bits:#x}");
    }
}

/// The type an instruction at 0x1000 is recorded with, if it is.
fn recorded_as(isa: Isa, bits: u32, next: u64) -> Option<u64> {
    let mut s = Software::new(hartrace_ctr::Config::new(V1_0, isa.xlen()));
    // All that RV32 cannot set, from outside.
    s.ctr.set_control(Control::M.with(Control::NTBREN), 0);
    let ctr = &mut s.ctr;
    let sink = |_: HartId, transfer: &Transfer| ctr.record(transfer);
    let mut steps = StepTransfers::new(isa, sink);
    let insn = Insn {
        pc: 0x1000,
        bits,
        next,
        mode: M,
        ..Insn::default()
    };
    steps.step(HartId(0), &Step::Insn(insn), &Effects::default());
    steps.finish();
    let (source, target, data) = s.entry(0);
    if source == 0 {
        return None;
    }
    assert_eq!((source, target), (0x1001, next));
    Some(data & 0xf)
}
