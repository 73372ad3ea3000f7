//! Random code, mostly valid.

use hartrace_isa::{Encoding, Isa, Op, Xlen, encodings};

use super::dice::Dice;
use crate::generate::asm;

/// CSRs that do something.
pub(super) const CSRS: [u16; 40] = [
    0x001, 0x002, 0x003, 0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x142, 0x143, 0x144, 0x180,
    0x300, 0x301, 0x302, 0x303, 0x304, 0x305, 0x306, 0x30a, 0x310, 0x31a, 0x320, 0x340, 0x341,
    0x342, 0x343, 0x344, 0x3a0, 0x3b0, 0x3b1, 0xb00, 0xb02, 0xb80, 0xc00, 0xc01, 0xc02, 0x7a8,
    0x5a8,
];

/// `mret`, `sret`, `wfi`, `sfence.vma`, `fence.i`, `ecall`, `ebreak`.
const SYSTEM: [u32; 8] = [
    0x3020_0073,
    0x1020_0073,
    0x1050_0073,
    0x1200_0073,
    0x0000_100f,
    0x0000_0073,
    0x0010_0073,
    0x1050_0073,
];

/// About `len` bytes of code.
pub(super) fn random(dice: &mut Dice<'_>, isa: Isa, len: usize) -> Vec<u8> {
    let rows: Vec<Encoding> = encodings(isa).collect();
    let mut code = Vec::new();
    while code.len() < len.min(2048) {
        put(dice, isa, &rows, &mut code);
    }
    // More of the same, at other alignments.
    let once = code.clone();
    while !once.is_empty() && code.len() < len {
        if dice.one_in(2) {
            code.extend([1, 0]);
        }
        code.extend_from_slice(&once);
    }
    code.truncate(len);
    code
}

/// One instruction, or a few that belong together.
fn put(dice: &mut Dice<'_>, isa: Isa, rows: &[Encoding], code: &mut Vec<u8>) {
    let wide = isa.xlen() == Xlen::Rv64;
    let base = 8 + dice.below(8) as u32;
    let any = dice.below(32) as u32;
    let bits = match dice.below(24) {
        // Loads and stores where something is.
        0..3 => asm::i_type(0x03, dice.below(7) as u32, any, base, offset(dice)),
        3..6 => asm::s_type(
            0x23,
            dice.below(if wide { 4 } else { 3 }) as u32,
            base,
            any,
            offset(dice),
        ),
        6 => {
            let operation = dice.pick(&[0, 4, 8, 12, 16, 20, 24, 28, 1, 2, 3]);
            let size = 2 + dice.below(2) as u32;
            operation << 27
                | 0x2f
                | any << 7
                | size << 12
                | base << 15
                | (dice.below(32) as u32) << 20
        }
        7 => asm::i_type(0x07, 1 + dice.below(3) as u32, any, base, offset(dice)),
        8 => asm::s_type(0x27, 1 + dice.below(3) as u32, base, any, offset(dice)),
        // CSRs and the like.
        9 | 10 => {
            let csr = CSRS.get(dice.below(40) as usize).copied().unwrap_or(0);
            let funct3 = dice.pick(&[1, 2, 3, 5, 6, 7]);
            asm::i_type(0x73, funct3, dice.below(32) as u32, any, i32::from(csr))
        }
        11 if dice.one_in(2) => dice.pick(&SYSTEM),
        12 => asm::branch(dice.pick(&[0, 1, 4, 5, 6, 7]), any, base, jump(dice)),
        13 => asm::jal(dice.below(2) as u32, 4 * jump(dice)),
        14 => asm::i_type(0x67, 0, dice.below(2) as u32, base, offset(dice)),
        15 if dice.one_in(4) => {
            // A call to the host: an operation, sometimes.
            if dice.one_in(2) {
                let operation = asm::i_type(0x13, 0, 10, 0, dice.below(0x32) as i32);
                code.extend(operation.to_le_bytes());
            }
            for word in [0x01f0_1013u32, 0x0010_0073, 0x4070_5013] {
                code.extend(word.to_le_bytes());
            }
            return;
        }
        15 | 18 => {
            // Code that goes elsewhere, perhaps to where it has been.
            let near = |dice: &mut Dice<'_>| 4 * (dice.below(48) as i32 - 32);
            code.extend(asm::auipc(8, 0).to_le_bytes());
            code.extend(asm::i_type(0x03, 2, 16, 8, near(dice)).to_le_bytes());
            asm::s_type(0x23, 2, 8, 16, near(dice))
        }
        16 if dice.one_in(4) => dice.draw() as u32,
        17 if dice.one_in(2) => dice.draw() as u32 & 0xffff & !3 | dice.below(3) as u32,
        _ => {
            let row = rows.get((dice.draw() % rows.len().max(1) as u64) as usize);
            match row {
                Some(row) if row.op != Op::Unimp => row.value | dice.draw() as u32 & row.open(),
                _ => 0x13,
            }
        }
    };
    let len = if bits & 3 == 3 { 4 } else { 2 };
    code.extend(bits.to_le_bytes().iter().take(len));
}

fn offset(dice: &mut Dice<'_>) -> i32 {
    match dice.below(4) {
        0 => dice.below(32) as i32 - 16,
        1 => (dice.below(256) as i32 - 128) * 8,
        _ => 8 * (dice.below(8) as i32),
    }
}

fn jump(dice: &mut Dice<'_>) -> i64 {
    2 * (dice.below(128) as i64 - 48)
}
