//! Straight-line instructions between decisions.

use hartrace_isa::{Ext, Isa, Xlen};

use super::Random;
use super::asm::{self, Code, Stack, c_imm, i_type, r_type, s_type};

/// Registers that random constants go to. No jump reads them, so that a
/// constant never makes a jump inferable by accident.
const DATA: [u32; 6] = [10, 11, 12, 13, 14, 15];

/// Some instruction that goes on to the next one.
pub(super) fn straight(r: &mut Random, isa: Isa) -> Code {
    let compressed = isa.has(Ext::Zca) && r.chance(550);
    Code::new(if compressed {
        compressed_word(r, isa)
    } else {
        full_word(r, isa)
    })
}

/// An instruction of 48 bits or more that it is unknown. Without compressed
/// instructions the next one must stay on a four-byte boundary.
pub(super) fn long(r: &mut Random, isa: Isa) -> Code {
    let kind = r.below32(6);
    let parcel = match kind {
        0 | 1 if isa.has(Ext::Zca) => 0x1f | (r.draw() as u16) << 6,
        0..=2 => 0x3f | (r.draw() as u16) << 7,
        _ if isa.has(Ext::Zca) => 0x7f | (r.draw() as u16 & 0xf1f) << 7 | long_units(r, 7),
        // 80 + 16n bits: odd n for a multiple of 32.
        _ => 0x7f | (r.draw() as u16 & 0x1f) << 7 | 0x1000 | (r.below32(3) as u16) << 13,
    };
    Code::long(parcel, || r.draw() as u8)
}

/// The length field of 80-bit instructions and longer, not the reserved 7.
fn long_units(r: &mut Random, bound: u32) -> u16 {
    (r.below32(bound) as u16) << 12
}

fn full_word(r: &mut Random, isa: Isa) -> u32 {
    let (rd, rs1, rs2) = (r.pick(&DATA), r.pick(&DATA), r.pick(&DATA));
    let imm = (r.draw() as i32) >> 20;
    let wide = isa.xlen() == Xlen::Rv64;
    let float = isa.has(Ext::D);
    match r.below32(16) {
        0 | 1 => i_type(0x13, r.pick(&[0, 2, 3, 4, 6, 7]), rd, rs1, imm),
        2 => r_type(0x33, r.below32(8), 0, rd, rs1, rs2),
        3 => r_type(0x33, r.below32(8), 1, rd, rs1, rs2),
        4 => i_type(0x03, r.pick(&[0, 1, 2, 4, 5]), rd, 2, imm),
        5 => s_type(0x23, r.below32(3), 2, rs2, imm),
        6 if wide => i_type(0x03, 3, rd, 2, imm),
        7 if wide => s_type(0x23, 3, 2, rs2, imm),
        8 if wide => i_type(0x1b, 0, rd, rs1, imm),
        9 => asm::lui(rd, r.draw() as u32 >> 12),
        10 => asm::auipc(rd, r.draw() as u32 >> 12),
        11 => r_type(0x2f, 2, r.pick(&[0, 4, 16, 32]) | 3, rd, rs1, rs2),
        12 => i_type(0x0f, r.below32(2), 0, 0, 0),
        // csrrs rd, cycle, x0
        13 => i_type(0x73, 2, rd, 0, -1024),
        14 if float => r_type(0x53, 7, r.below32(2), rd, rs1, rs2),
        15 if float => i_type(0x07, r.pick(&[2, 3]), rd, 2, imm),
        _ => 0x13,
    }
}

fn compressed_word(r: &mut Random, isa: Isa) -> u32 {
    let (rd, rs2) = (r.pick(&DATA), r.pick(&DATA));
    // Never 0: several immediates of 0 are reserved.
    let imm = r.between(1, 63);
    let short = rd & 7;
    match r.below32(14) {
        0 => 0x0001,
        1 | 2 => c_imm(0x0001, rd, imm),
        3 => c_imm(0x4001, rd, imm),
        4 => asm::c_lui(rd, imm),
        // c.addi16sp
        5 => c_imm(0x6001, 2, imm),
        // c.mv, c.add
        6 => r.pick(&[0x8002, 0x9002]) | rd << 7 | rs2 << 2,
        // c.and, c.or, c.xor, c.sub
        7 => 0x8c01 | short << 7 | (rs2 & 7) << 2 | r.below32(4) << 5,
        // c.lw, c.sw
        8 => r.pick(&[0x4000, 0xc000]) | short << 2 | (imm & 0x38) << 7 | 1 << 7,
        // c.addi4spn
        9 => (imm & 0x3f | 1) << 5 | short << 2,
        // c.slli with a shift below 32
        10 => c_imm(0x0002, rd, imm & 31 | 1),
        11 if isa.has(Ext::Zcmp) => {
            let what = if r.chance(500) {
                Stack::Push
            } else {
                Stack::Pop
            };
            asm::cm_stack(what, r.between(4, 15), r.below32(4))
        }
        // cm.mva01s s0, s1
        12 if isa.has(Ext::Zcmp) => 0xac62 | 1 << 2,
        // c.fsdsp: the same encodings as above in another instruction set
        11 | 12 if isa.has(Ext::Zcd) => 0xa002 | (r.draw() as u32 & 0x7ff) << 2,
        // c.lwsp
        13 => c_imm(0x4002, rd, imm),
        _ => 0x0001,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Spec;
    use hartrace_isa::Flow;

    #[test]
    fn fillers_go_on_to_the_next_instruction() {
        for seed in 0..60 {
            let isa = Spec::arbitrary(seed).isa();
            let mut r = Random::new(seed);
            for _ in 0..500 {
                let code = straight(&mut r, isa);
                let flow = Flow::of(code.bits(), isa);
                assert!(flow.is_sequential(), "{:x} {flow:?}", code.bits());
                assert!(isa.has(Ext::Zca) || code.bytes().len() == 4);
                let code = long(&mut r, isa);
                assert!(code.bytes().len() >= 6);
                assert!(isa.has(Ext::Zca) || code.bytes().len().is_multiple_of(4));
                assert!(Flow::of(code.bits(), isa).is_sequential());
            }
        }
    }
}
