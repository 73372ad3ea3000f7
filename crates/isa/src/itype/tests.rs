//! The four specifications' tables and those of the two reference programs, row
//! by row, for every register. What is expected is written from the wording of each text and knows nothing of
//! [`Flow`]; the encodings are built here from the fields.

use crate::{Flow, Isa, Itype, ItypeTable};

/// Instructions the tables name.
#[derive(Clone, Copy, Debug)]
enum I {
    Jal(u32),
    Jalr(u32, u32),
    CJal,
    CJ,
    CJr(u32),
    CJalr(u32),
    CmJt,
    CmJalt,
    CmPopret,
    CmPopretz,
    Branch,
    CBranch,
    Mret,
    Sret,
    Uret,
    Dret,
    Mnret,
    Ecall,
    Ebreak,
    CEbreak,
    Other(u32),
}

impl I {
    fn bits(self) -> u32 {
        match self {
            I::Jal(rd) => 0x0040_006f | rd << 7,
            I::Jalr(rd, rs) => 0x0080_0067 | rd << 7 | rs << 15,
            I::CJal => 0x2011,
            I::CJ => 0xa011,
            I::CJr(rs) => 0x8002 | rs << 7,
            I::CJalr(rs) => 0x9002 | rs << 7,
            I::CmJt => 0xa002 | 31 << 2,
            I::CmJalt => 0xa002 | 32 << 2,
            I::CmPopret => 0xbe42,
            I::CmPopretz => 0xbc42,
            I::Branch => 0x00b5_0463,
            I::CBranch => 0xc111,
            I::Mret => 0x3020_0073,
            I::Sret => 0x1020_0073,
            I::Uret => 0x0020_0073,
            I::Dret => 0x7b20_0073,
            I::Mnret => 0x7020_0073,
            I::Ecall => 0x0000_0073,
            I::Ebreak => 0x0010_0073,
            I::CEbreak => 0x9002,
            I::Other(bits) => bits,
        }
    }

    /// Every instruction the tables name, with every register they may have.
    fn all() -> impl Iterator<Item = I> {
        let single = [
            I::CJal,
            I::CJ,
            I::CmJt,
            I::CmJalt,
            I::CmPopret,
            I::CmPopretz,
            I::Branch,
            I::CBranch,
            I::Mret,
            I::Sret,
            I::Uret,
            I::Dret,
            I::Mnret,
            I::Ecall,
            I::Ebreak,
            I::CEbreak,
        ];
        // addi, lui, auipc, lw, sw, fence, wfi, csrr, c.addi, c.lui.
        let others = [
            0x0015_0513,
            0x1234_5537,
            0x1234_5517,
            0x0005_2503,
            0x00a5_2023,
            0x0ff0_000f,
            0x1050_0073,
            0x3000_2573,
            0x0505,
            0x6505,
        ];
        single
            .into_iter()
            .chain((0..32).map(I::Jal))
            .chain((0..32).flat_map(|rd| (0..32).map(move |rs| I::Jalr(rd, rs))))
            .chain((1..32).map(I::CJr))
            .chain((1..32).map(I::CJalr))
            .chain(others.map(I::Other))
    }
}

const fn link(r: u32) -> bool {
    r == 1 || r == 5
}

/// Codes that do not depend on the jump classes: E-Trace table 4.1, N-Trace's
/// first rows. Code 1 of ecall and ebreak belongs to the trap that follows,
/// not to the retirement `Flow` speaks of.
fn common(insn: I, taken: bool) -> Option<u8> {
    match insn {
        I::Branch | I::CBranch => Some(if taken { 5 } else { 4 }),
        I::Mret | I::Sret | I::Uret | I::Dret | I::Mnret => Some(3),
        I::Ecall | I::Ebreak | I::CEbreak | I::Other(_) => Some(0),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Class {
    Call,
    /// "Tail-call" in 1.1.1, "other jump without linkage" in 2.0.
    Without,
    Return,
    Swap,
    /// "Other" in 1.1.1, "other jump with linkage" in 2.0.
    With,
}

/// E-Trace 4.1.1: the bullets, one arm each. Both versions have the same
/// registers in all of them, but for the draft listing `jal x0` twice.
fn etrace_class(insn: I) -> Class {
    let calls = match insn {
        I::Jal(1) | I::Jal(5) | I::CJal => true,
        I::Jalr(1, rs) => rs != 5,
        I::Jalr(5, rs) => rs != 1,
        I::CJalr(rs) => rs != 5,
        // cm.jalt links x1 (Zcmt).
        I::CmJalt => true,
        _ => false,
    };
    let without = match insn {
        I::Jal(0) | I::CJ | I::CmJt => true,
        I::Jalr(0, rs) => rs != 1 && rs != 5,
        I::CJr(rs) => rs != 1 && rs != 5,
        _ => false,
    };
    let returns = match insn {
        I::Jalr(rd, rs) => (rs == 1 || rs == 5) && rd != 1 && rd != 5,
        I::CJr(rs) => rs == 1 || rs == 5,
        // They end with ret (Zcmp); 2.0 gives cm.popret's natural itype as 13.
        I::CmPopret | I::CmPopretz => true,
        _ => false,
    };
    let swap = matches!(insn, I::Jalr(1, 5) | I::Jalr(5, 1) | I::CJalr(5));
    let with = match insn {
        I::Jal(rd) => rd != 0 && rd != 1 && rd != 5,
        I::Jalr(rd, rs) => rs != 1 && rs != 5 && rd != 0 && rd != 1 && rd != 5,
        _ => false,
    };
    let rows = [
        (calls, Class::Call),
        (without, Class::Without),
        (returns, Class::Return),
        (swap, Class::Swap),
        (with, Class::With),
    ];
    let mut hits = rows.iter().filter(|row| row.0);
    let hit = hits.next().unwrap().1;
    assert!(hits.next().is_none(), "{insn:?} is in two bullets");
    hit
}

/// "Supplied via a constant embedded within the jump opcode": the offset of
/// `jal`, the offset of `jalr` when x0 is the base, the table of Zcmt.
fn etrace_inferable(insn: I) -> bool {
    matches!(
        insn,
        I::Jal(_) | I::CJ | I::CJal | I::Jalr(_, 0) | I::CmJt | I::CmJalt
    )
}

fn etrace4(insn: I, taken: bool) -> u8 {
    common(insn, taken).unwrap_or_else(|| match (etrace_class(insn), etrace_inferable(insn)) {
        (Class::Call, false) => 8,
        (Class::Call, true) => 9,
        (Class::Without, false) => 10,
        (Class::Without, true) => 11,
        (Class::Swap, _) => 12,
        (Class::Return, _) => 13,
        (Class::With, false) => 14,
        (Class::With, true) => 15,
    })
}

fn etrace3(insn: I, taken: bool) -> u8 {
    common(insn, taken).unwrap_or(if etrace_inferable(insn) { 0 } else { 6 })
}

/// N-Trace 1.0.0-rc7, table 2.
fn rc7_4(insn: I, taken: bool) -> u8 {
    common(insn, taken).unwrap_or_else(|| match insn {
        I::CmJt => 0,
        I::Jal(rd) if link(rd) => 9,
        I::Jal(_) => 15,
        I::Jalr(rd, rs1) if link(rd) && !link(rs1) => 8,
        I::Jalr(rd, rs1) if link(rd) && link(rs1) && rd != rs1 => 12,
        I::Jalr(rd, rs1) if link(rd) && link(rs1) && rd == rs1 => 8,
        I::Jalr(rd, rs1) if !link(rd) && link(rs1) => 13,
        I::Jalr(..) => 14,
        I::CJal => 9,
        I::CJalr(5) => 12,
        I::CJalr(_) => 8,
        I::CJr(rs1) if link(rs1) => 13,
        I::CJr(_) => 14,
        I::CJ => 15,
        I::CmJalt => 9,
        I::CmPopret | I::CmPopretz => 13,
        _ => panic!("{insn:?}"),
    })
}

/// N-Trace 1.0, "Generating itype for different instructions".
fn ntrace10_4(insn: I, taken: bool) -> u8 {
    common(insn, taken).unwrap_or_else(|| match insn {
        I::Jal(rd) if link(rd) => 9,
        I::Jal(0) => 11,
        I::Jal(_) => 15,
        I::Jalr(rd, rs) if link(rd) && !link(rs) => 8,
        I::Jalr(rd, rs) if link(rd) && link(rs) && rd == rs => 8,
        I::Jalr(rd, rs) if link(rd) && link(rs) && rd != rs => 12,
        I::Jalr(rd, rs) if !link(rd) && link(rs) => 13,
        I::Jalr(0, _) => 10,
        I::Jalr(..) => 14,
        I::CJal => 9,
        I::CJalr(5) => 12,
        I::CJalr(_) => 8,
        I::CJr(rs) if link(rs) => 13,
        I::CJr(_) => 10,
        I::CJ => 11,
        I::CmJt => 11,
        I::CmJalt => 9,
        I::CmPopret | I::CmPopretz => 13,
        _ => panic!("{insn:?}"),
    })
}

/// Both N-Trace texts, three bits: jal, c.j, c.jal, cm.jt and cm.jalt are 0;
/// jalr, its compressed forms and cm.popret* are 6.
fn ntrace3(insn: I, taken: bool) -> u8 {
    common(insn, taken).unwrap_or_else(|| match insn {
        I::Jal(_) | I::CJ | I::CJal | I::CmJt | I::CmJalt => 0,
        I::Jalr(..) | I::CJr(_) | I::CJalr(_) | I::CmPopret | I::CmPopretz => 6,
        _ => panic!("{insn:?}"),
    })
}

/// NexRv, by the mnemonic that a disassembler prints. The jalr here have an
/// offset of 8, which none prints as `ret`.
fn nexrv4(insn: I, taken: bool) -> u8 {
    let mnemonic = match insn {
        I::Jal(0) | I::CJ => "j",
        I::Jal(_) | I::CJal => "jal",
        I::CJr(1) => "ret",
        I::Jalr(0, _) | I::CJr(_) => "jr",
        I::Jalr(..) | I::CJalr(_) => "jalr",
        I::Branch | I::CBranch => "b",
        I::Mret => "mret",
        I::Ecall => "ecall",
        _ => "",
    };
    match mnemonic {
        "j" => 11,
        "jal" => 9,
        "ret" | "mret" => 13,
        "jr" => 10,
        "jalr" | "ecall" => 8,
        "b" => 4 + u8::from(taken),
        _ => 0,
    }
}

fn nexrv3(insn: I, taken: bool) -> u8 {
    match nexrv4(insn, taken) {
        9 | 11 => 0,
        8 | 10 | 13 => 6,
        code => code,
    }
}

/// The E-Trace reference flow: whatever it can disassemble, by the bullets of
/// the text, and returns from traps among the other uninferable jumps.
fn reference4(insn: I, taken: bool) -> u8 {
    match insn {
        I::Mret | I::Sret | I::Uret | I::Dret => 14,
        I::Mnret | I::CmJt | I::CmJalt | I::CmPopret | I::CmPopretz => 0,
        _ => etrace4(insn, taken),
    }
}

fn reference3(insn: I, taken: bool) -> u8 {
    match insn {
        I::Mret | I::Sret | I::Uret | I::Dret => 6,
        I::Mnret | I::CmJt | I::CmJalt | I::CmPopret | I::CmPopretz => 0,
        _ => etrace3(insn, taken),
    }
}

type Expect = fn(I, bool) -> u8;
type Got = fn(Flow, u32, bool, ItypeTable) -> Itype;

#[test]
fn every_row_of_the_tables() {
    let rv32 = Isa::parse("rv32imac_zcmp_zcmt").unwrap();
    let rv64 = Isa::parse("rv64imac_zcmp_zcmt").unwrap();
    let tables: [(ItypeTable, Expect, Expect); 6] = [
        (ItypeTable::ETrace111, etrace4, etrace3),
        (ItypeTable::ETrace20, etrace4, etrace3),
        (ItypeTable::NTraceRc7, rc7_4, ntrace3),
        (ItypeTable::NTrace10, ntrace10_4, ntrace3),
        (ItypeTable::NexRv, nexrv4, nexrv3),
        (ItypeTable::ETraceReference, reference4, reference3),
    ];
    let mut compared = 0;
    for (table, four, three) in tables {
        for isa in [rv32, rv64] {
            // c.jal exists on RV32 only.
            let there = |i: &I| isa == rv32 || !matches!(i, I::CJal);
            for insn in I::all().filter(there) {
                let flow = Flow::of(insn.bits(), isa);
                for taken in [false, true] {
                    let forms: [(Got, Expect); 2] = [(Flow::itype4, four), (Flow::itype3, three)];
                    for (got, expect) in forms {
                        let code = got(flow, insn.bits(), taken, table).code();
                        assert_eq!(code, expect(insn, taken), "{insn:?} {table:?} {isa}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert_eq!(compared, 54_888);
}

#[test]
fn nexrv_sees_a_return_without_an_offset() {
    let code = |bits| {
        let flow = Flow::of(bits, Isa::RV64GC);
        flow.itype4(bits, true, ItypeTable::NexRv).code()
    };
    // jalr x0, 0(x1); jalr x0, 4(x1); jalr x0, 0(x5); jalr x7, 0(x1).
    let jumps = [0x0000_8067, 0x0040_8067, 0x0002_8067, 0x0000_83e7];
    assert_eq!(jumps.map(code), [13, 10, 10, 8]);
}

#[test]
fn codes_round_trip() {
    for code in 0..16 {
        assert_eq!(Itype::from_code(code).unwrap().code(), code);
    }
    assert_eq!(Itype::from_code(16), None);
}
