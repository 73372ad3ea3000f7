use super::*;
use crate::{Const, Ext, Flow, Link};
use hartrace_testkit::Random;

/// Every extension, but for those whose encodings others share.
fn everything(xlen: &str) -> Isa {
    let base = Isa::parse(xlen).unwrap();
    Ext::ALL
        .iter()
        .filter(|e| !matches!(e, Ext::E | Ext::Zcd | Ext::C))
        .fold(base, |isa, &e| isa.with(e))
}

/// What the op says about control flow, to be held against [`Flow::of`].
fn flow_of_op(inst: &Inst) -> Flow {
    let role = |rd: Reg, rs1: Reg| match (rd.number(), rs1.number()) {
        (1, 5) | (5, 1) => Link::Swap,
        (1 | 5, _) => Link::Call,
        (_, 1 | 5) => Link::Return,
        (0, _) => Link::None,
        _ => Link::Other,
    };
    match inst.op {
        Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu => {
            Flow::Branch { offset: inst.imm }
        }
        Op::Jal => Flow::Jump {
            offset: inst.imm,
            link: role(inst.rd, Reg::ZERO),
        },
        Op::Jalr => Flow::Indirect {
            rs1: inst.rs1,
            offset: inst.imm as i16,
            link: role(inst.rd, inst.rs1),
        },
        Op::Lui if inst.rd != Reg::ZERO => Flow::Const {
            rd: inst.rd,
            value: Const::Absolute(inst.imm),
        },
        Op::Auipc if inst.rd != Reg::ZERO => Flow::Const {
            rd: inst.rd,
            value: Const::Relative(inst.imm),
        },
        Op::CmJt | Op::CmJalt => Flow::Table {
            index: inst.imm as u8,
            link: if inst.op == Op::CmJt {
                Link::None
            } else {
                Link::Call
            },
        },
        Op::CmPopret | Op::CmPopretz => Flow::PopReturn,
        Op::Mret | Op::Sret | Op::Uret | Op::Mnret | Op::Dret => Flow::TrapReturn,
        Op::Ecall | Op::Ebreak => Flow::Trap,
        _ => Flow::Seq,
    }
}

#[test]
fn every_row_decodes_to_itself_and_flows_as_classified() {
    let mut random = Random::new(1);
    for isa in [everything("rv32i"), everything("rv64i")] {
        for row in ROWS.iter().filter(|r| allowed(r.xlen, r.need, isa)) {
            let mut found = 0;
            for _ in 0..200 {
                let bits = random.draw() as u32 & !row.mask | row.value;
                let inst = decode(bits, isa);
                found += u32::from(inst.op == row.op);
                assert_eq!(inst.len, 4);
                assert_eq!(inst.bits, bits);
                assert_eq!(
                    flow_of_op(&inst),
                    Flow::of(bits, isa),
                    "{bits:08x} {inst:?}"
                );
            }
            assert!(found > 0, "{} is never found", row.op.name());
        }
    }
}

#[test]
fn rows_are_sound() {
    assert_eq!(size_of::<Inst>(), 16);
    for row in ROWS {
        assert_eq!(row.value & !row.mask, 0, "{}", row.op.name());
        assert_eq!(row.value & 3, 3, "{}", row.op.name());
    }
    for row in SHORT_ROWS {
        assert_eq!(row.value & !row.mask, 0, "{}", row.short.name());
        assert_ne!(row.value & 3, 3, "{}", row.short.name());
    }
    // Two rows with equally narrow masks never claim the same bits (ssrdp and
    // sspopchk are told apart by their registers).
    let rows = || ROWS.iter().filter(|r| r.op != Op::Ssrdp);
    for (i, a) in rows().enumerate() {
        for b in rows().skip(i + 1) {
            let both = a.mask & b.mask;
            let overlap = a.value & both == b.value & both
                && (a.xlen.is_none() || b.xlen.is_none() || a.xlen == b.xlen);
            assert!(
                !overlap || a.mask.count_ones() != b.mask.count_ones(),
                "{} and {}",
                a.op.name(),
                b.op.name()
            );
        }
    }
}

#[test]
fn any_word_has_one_flow() {
    let mut random = Random::new(2);
    for isa in [Isa::RV32GC, Isa::RV64GC, everything("rv64i")] {
        for _ in 0..400_000 {
            let bits = random.draw() as u32;
            let inst = decode(bits, isa);
            assert_eq!(inst.len, length(bits as u16));
            assert_eq!(
                flow_of_op(&inst),
                Flow::of(bits, isa),
                "{bits:08x} {inst:?}"
            );
        }
    }
}

#[test]
fn every_compressed_encoding_flows_as_classified() {
    let texts = [
        "rv32gc",
        "rv64gc",
        "rv32imac",
        "rv64imac",
        "rv32imafc_zcb_zba_zbb",
        "rv64imac_zcb_zba_zbb",
        "rv32imac_zcmp_zcmt_zcb",
        "rv64imac_zcmp_zcmt_zcb",
        "rv64imac_zcmop_zicfiss_zihintntl",
        "rv64i",
    ];
    for isa in texts.map(|t| Isa::parse(t).unwrap()) {
        let mut known = 0;
        for bits in (0..=0xffffu32).filter(|b| b & 3 != 3) {
            let inst = decode(bits, isa);
            assert_eq!(inst.len, 2);
            assert_eq!(
                flow_of_op(&inst),
                Flow::of(bits, isa),
                "{bits:04x} {inst:?} {isa}"
            );
            known += u32::from(inst.op != Op::Unknown);
        }
        assert_eq!(known > 0, isa.has(Ext::Zca));
    }
}

#[test]
fn compressed_operands() {
    let all = everything("rv64i");
    let gc = Isa::RV64GC;
    let at = |bits, isa| {
        let i = decode(bits, isa);
        (i.op, i.rd.number(), i.rs1.number(), i.rs2.number(), i.imm)
    };
    assert_eq!(at(0x7139, gc), (Op::Addi, 2, 2, 0, -64));
    assert_eq!(at(0x1008, gc), (Op::Addi, 10, 2, 0, 32));
    assert_eq!(at(0x852e, gc), (Op::Add, 10, 0, 11, 0));
    assert_eq!(at(0xe406, gc), (Op::Sd, 0, 2, 1, 8));
    assert_eq!(at(0x60a2, gc), (Op::Ld, 1, 2, 0, 8));
    assert_eq!(at(0x757d, gc), (Op::Lui, 10, 0, 0, -0x1000));
    // cm.push {ra, s0-s11}, -160; cm.mvsa01 s1,s7.
    assert_eq!(at(0xb8fe, all), (Op::CmPush, 0, 0, 0, -160));
    assert_eq!(at(0xacbe, all), (Op::CmMvsa01, 0, 9, 23, 0));
    assert_eq!(at(0x6081, Isa::parse("rv64imc_zcmop").unwrap()).0, Op::CMop);
}

#[test]
fn extensions_are_honoured() {
    let op = |bits, isa: &str| decode(bits, Isa::parse(isa).unwrap()).op;
    // sh1add a0,a0,a1
    assert_eq!(op(0x20b5_2533, "rv64i"), Op::Unknown);
    assert_eq!(op(0x20b5_2533, "rv64i_zba"), Op::Sh1add);
    // ld a0,0(a0)
    assert_eq!(op(0x0005_3503, "rv32i"), Op::Unknown);
    assert_eq!(op(0x0005_3503, "rv64i"), Op::Ld);
    // slli a0,a0,32
    assert_eq!(op(0x0205_1513, "rv32i"), Op::Unknown);
    assert_eq!(op(0x0205_1513, "rv64i"), Op::Slli);
    // prefetch.i 32(a0) is ori x0,a0,32 without Zicbop.
    assert_eq!(op(0x0205_6013, "rv64i_zicbop"), Op::PrefetchI);
    assert_eq!(op(0x0205_6013, "rv64i"), Op::Ori);
    // sctrclr
    assert_eq!(op(0x1040_0073, "rv64i_ssctr"), Op::Sctrclr);
    assert_eq!(op(0x1040_0073, "rv64i"), Op::Unknown);
    // The multiplication half of M, and a 48-bit encoding.
    assert_eq!(op(0x02b5_0533, "rv64i_zmmul"), Op::Mul);
    assert_eq!(decode(0x0000_001f, Isa::RV64GC).len, 6);
}
