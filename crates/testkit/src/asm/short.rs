//! Compressed instructions.

use super::form;

/// `c.nop`.
pub const C_NOP: u32 = 0x0001;
/// `c.ebreak`.
pub const C_EBREAK: u32 = 0x9002;
/// `c.jr ra`, the short `ret`.
pub const C_RET: u32 = 0x8082;

/// Those without operands, for `text`.
pub(in crate::asm) const PLAIN_SHORT: &[(&str, u32)] =
    &[("c_nop", C_NOP), ("c_ebreak", C_EBREAK), ("c_ret", C_RET)];

form! {
    SHORT_IMMEDIATE: fn(rd: u32, imm: u32), "a register and six bits";
    c_addi => c_imm(0x0001, rd, imm);
    c_addiw => c_imm(0x2001, rd, imm);
    c_li => c_imm(0x4001, rd, imm);
    c_slli => c_imm(0x0002, rd, imm);
    c_srli => c_imm(0x8001, rd & 7, imm);
    c_srai => c_imm(0x8401, rd & 7, imm);
    c_andi => c_imm(0x8801, rd & 7, imm);
}

form! {
    SHORT_TWO: fn(rd: u32, rs2: u32), "two registers";
    c_mv => 0x8002 | rd << 7 | rs2 << 2;
    c_add => 0x9002 | rd << 7 | rs2 << 2;
    c_sub => 0x8c01 | (rd & 7) << 7 | (rs2 & 7) << 2;
    c_xor => 0x8c21 | (rd & 7) << 7 | (rs2 & 7) << 2;
    c_or => 0x8c41 | (rd & 7) << 7 | (rs2 & 7) << 2;
    c_and => 0x8c61 | (rd & 7) << 7 | (rs2 & 7) << 2;
}

form! {
    SHORT_MEMORY: fn(reg: u32, imm: u32, rs1: u32), "registers x8 to x15";
    c_lw => 0x4000 | word_offset(imm) | (rs1 & 7) << 7 | (reg & 7) << 2;
    c_ld => 0x6000 | dword_offset(imm) | (rs1 & 7) << 7 | (reg & 7) << 2;
    c_sw => 0xc000 | word_offset(imm) | (rs1 & 7) << 7 | (reg & 7) << 2;
    c_sd => 0xe000 | dword_offset(imm) | (rs1 & 7) << 7 | (reg & 7) << 2;
}

const fn word_offset(imm: u32) -> u32 {
    (imm >> 3 & 7) << 10 | (imm >> 2 & 1) << 6 | (imm >> 6 & 1) << 5
}

const fn dword_offset(imm: u32) -> u32 {
    (imm >> 3 & 7) << 10 | (imm >> 6 & 3) << 5
}

/// `c.j`, or with `link` the `c.jal` of RV32.
#[must_use]
pub const fn c_j(link: bool, offset: i64) -> u32 {
    let o = offset as u32;
    let imm = (o >> 11 & 1) << 12
        | (o >> 4 & 1) << 11
        | (o >> 8 & 3) << 9
        | (o >> 10 & 1) << 8
        | (o >> 6 & 1) << 7
        | (o >> 7 & 1) << 6
        | (o >> 1 & 7) << 3
        | (o >> 5 & 1) << 2;
    (if link { 0x2001 } else { 0xa001 }) | imm
}

/// `c.beqz`, or `c.bnez`; the register is x8 to x15.
#[must_use]
pub const fn c_branch(not: bool, rs1: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let imm = (o >> 8 & 1) << 12
        | (o >> 3 & 3) << 10
        | (o >> 6 & 3) << 5
        | (o >> 1 & 3) << 3
        | (o >> 5 & 1) << 2;
    (if not { 0xe001 } else { 0xc001 }) | (rs1 & 7) << 7 | imm
}

/// `c.jr`, or `c.jalr`; not through x0.
#[must_use]
pub const fn c_jr(link: bool, rs1: u32) -> u32 {
    (if link { 0x9002 } else { 0x8002 }) | rs1 << 7
}

/// A CI-format instruction: its quadrant and funct3 in `base`, six bits of
/// immediate.
#[must_use]
pub const fn c_imm(base: u32, rd: u32, imm: u32) -> u32 {
    base | (imm >> 5 & 1) << 12 | rd << 7 | (imm & 31) << 2
}

/// `c.lui`; six bits, not 0; rd neither x0 nor x2.
#[must_use]
pub const fn c_lui(rd: u32, imm: u32) -> u32 {
    c_imm(0x6001, rd, imm)
}

/// `cm.jt` below index 32, `cm.jalt` from there on.
#[must_use]
pub const fn cm_table(index: u32) -> u32 {
    0xa002 | (index & 255) << 2
}

/// The four of Zcmp that use the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the specification's names
pub enum Stack {
    Push = 0xb802,
    Pop = 0xba02,
    PopRetZ = 0xbc02,
    PopRet = 0xbe02,
}

/// `cm.push` and its kin; `list` is 4 to 15.
#[must_use]
pub const fn cm_stack(what: Stack, list: u32, adjust: u32) -> u32 {
    what as u32 | (list & 15) << 4 | (adjust & 3) << 2
}
