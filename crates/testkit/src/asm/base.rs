//! The base integer instructions, multiplication, atomics, bit manipulation,
//! control registers and traps.

use super::{branch, form, i_type, r_type, s_type, u_type};

form! {
    THREE: fn(rd: u32, rs1: u32, rs2: u32), "three registers";
    add => r_type(0x33, 0, 0x00, rd, rs1, rs2);
    sub => r_type(0x33, 0, 0x20, rd, rs1, rs2);
    sll => r_type(0x33, 1, 0x00, rd, rs1, rs2);
    slt => r_type(0x33, 2, 0x00, rd, rs1, rs2);
    sltu => r_type(0x33, 3, 0x00, rd, rs1, rs2);
    xor => r_type(0x33, 4, 0x00, rd, rs1, rs2);
    srl => r_type(0x33, 5, 0x00, rd, rs1, rs2);
    sra => r_type(0x33, 5, 0x20, rd, rs1, rs2);
    or => r_type(0x33, 6, 0x00, rd, rs1, rs2);
    and => r_type(0x33, 7, 0x00, rd, rs1, rs2);
    addw => r_type(0x3b, 0, 0x00, rd, rs1, rs2);
    subw => r_type(0x3b, 0, 0x20, rd, rs1, rs2);
    sllw => r_type(0x3b, 1, 0x00, rd, rs1, rs2);
    srlw => r_type(0x3b, 5, 0x00, rd, rs1, rs2);
    sraw => r_type(0x3b, 5, 0x20, rd, rs1, rs2);
    mul => r_type(0x33, 0, 0x01, rd, rs1, rs2);
    mulh => r_type(0x33, 1, 0x01, rd, rs1, rs2);
    mulhsu => r_type(0x33, 2, 0x01, rd, rs1, rs2);
    mulhu => r_type(0x33, 3, 0x01, rd, rs1, rs2);
    div => r_type(0x33, 4, 0x01, rd, rs1, rs2);
    divu => r_type(0x33, 5, 0x01, rd, rs1, rs2);
    rem => r_type(0x33, 6, 0x01, rd, rs1, rs2);
    remu => r_type(0x33, 7, 0x01, rd, rs1, rs2);
    mulw => r_type(0x3b, 0, 0x01, rd, rs1, rs2);
    divw => r_type(0x3b, 4, 0x01, rd, rs1, rs2);
    divuw => r_type(0x3b, 5, 0x01, rd, rs1, rs2);
    remw => r_type(0x3b, 6, 0x01, rd, rs1, rs2);
    remuw => r_type(0x3b, 7, 0x01, rd, rs1, rs2);
    sh1add => r_type(0x33, 2, 0x10, rd, rs1, rs2);
    sh2add => r_type(0x33, 4, 0x10, rd, rs1, rs2);
    sh3add => r_type(0x33, 6, 0x10, rd, rs1, rs2);
    add_uw => r_type(0x3b, 0, 0x04, rd, rs1, rs2);
    sh1add_uw => r_type(0x3b, 2, 0x10, rd, rs1, rs2);
    sh2add_uw => r_type(0x3b, 4, 0x10, rd, rs1, rs2);
    sh3add_uw => r_type(0x3b, 6, 0x10, rd, rs1, rs2);
    andn => r_type(0x33, 7, 0x20, rd, rs1, rs2);
    orn => r_type(0x33, 6, 0x20, rd, rs1, rs2);
    xnor => r_type(0x33, 4, 0x20, rd, rs1, rs2);
    max => r_type(0x33, 6, 0x05, rd, rs1, rs2);
    maxu => r_type(0x33, 7, 0x05, rd, rs1, rs2);
    min => r_type(0x33, 4, 0x05, rd, rs1, rs2);
    minu => r_type(0x33, 5, 0x05, rd, rs1, rs2);
    rol => r_type(0x33, 1, 0x30, rd, rs1, rs2);
    ror => r_type(0x33, 5, 0x30, rd, rs1, rs2);
    rolw => r_type(0x3b, 1, 0x30, rd, rs1, rs2);
    rorw => r_type(0x3b, 5, 0x30, rd, rs1, rs2);
    bclr => r_type(0x33, 1, 0x24, rd, rs1, rs2);
    bext => r_type(0x33, 5, 0x24, rd, rs1, rs2);
    binv => r_type(0x33, 1, 0x34, rd, rs1, rs2);
    bset => r_type(0x33, 1, 0x14, rd, rs1, rs2);
    clmul => r_type(0x33, 1, 0x05, rd, rs1, rs2);
    clmulh => r_type(0x33, 3, 0x05, rd, rs1, rs2);
    clmulr => r_type(0x33, 2, 0x05, rd, rs1, rs2);
    czero_eqz => r_type(0x33, 5, 0x07, rd, rs1, rs2);
    czero_nez => r_type(0x33, 7, 0x07, rd, rs1, rs2);
}

form! {
    TWO: fn(rd: u32, rs1: u32), "two registers";
    clz => i_type(0x13, 1, rd, rs1, 0x600);
    ctz => i_type(0x13, 1, rd, rs1, 0x601);
    cpop => i_type(0x13, 1, rd, rs1, 0x602);
    sext_b => i_type(0x13, 1, rd, rs1, 0x604);
    sext_h => i_type(0x13, 1, rd, rs1, 0x605);
    clzw => i_type(0x1b, 1, rd, rs1, 0x600);
    ctzw => i_type(0x1b, 1, rd, rs1, 0x601);
    cpopw => i_type(0x1b, 1, rd, rs1, 0x602);
    orc_b => i_type(0x13, 5, rd, rs1, 0x287);
    rev8_32 => i_type(0x13, 5, rd, rs1, 0x698);
    rev8_64 => i_type(0x13, 5, rd, rs1, 0x6b8);
    zext_h_32 => i_type(0x33, 4, rd, rs1, 0x080);
    zext_h_64 => i_type(0x3b, 4, rd, rs1, 0x080);
}

form! {
    IMMEDIATE: fn(rd: u32, rs1: u32, imm: i32), "a register and an immediate";
    addi => i_type(0x13, 0, rd, rs1, imm);
    slti => i_type(0x13, 2, rd, rs1, imm);
    sltiu => i_type(0x13, 3, rd, rs1, imm);
    xori => i_type(0x13, 4, rd, rs1, imm);
    ori => i_type(0x13, 6, rd, rs1, imm);
    andi => i_type(0x13, 7, rd, rs1, imm);
    slli => i_type(0x13, 1, rd, rs1, imm);
    srli => i_type(0x13, 5, rd, rs1, imm);
    srai => i_type(0x13, 5, rd, rs1, imm | 0x400);
    addiw => i_type(0x1b, 0, rd, rs1, imm);
    slliw => i_type(0x1b, 1, rd, rs1, imm);
    srliw => i_type(0x1b, 5, rd, rs1, imm);
    sraiw => i_type(0x1b, 5, rd, rs1, imm | 0x400);
    slli_uw => i_type(0x1b, 1, rd, rs1, imm | 0x080);
    rori => i_type(0x13, 5, rd, rs1, imm | 0x600);
    roriw => i_type(0x1b, 5, rd, rs1, imm | 0x600);
    bclri => i_type(0x13, 1, rd, rs1, imm | 0x480);
    bexti => i_type(0x13, 5, rd, rs1, imm | 0x480);
    binvi => i_type(0x13, 1, rd, rs1, imm | 0x680);
    bseti => i_type(0x13, 1, rd, rs1, imm | 0x280);
    jalr => i_type(0x67, 0, rd, rs1, imm);
}

form! {
    LOADS: fn(rd: u32, imm: i32, rs1: u32), "a load";
    lb => i_type(0x03, 0, rd, rs1, imm);
    lh => i_type(0x03, 1, rd, rs1, imm);
    lw => i_type(0x03, 2, rd, rs1, imm);
    ld => i_type(0x03, 3, rd, rs1, imm);
    lbu => i_type(0x03, 4, rd, rs1, imm);
    lhu => i_type(0x03, 5, rd, rs1, imm);
    lwu => i_type(0x03, 6, rd, rs1, imm);
}

form! {
    STORES: fn(rs2: u32, imm: i32, rs1: u32), "a store";
    sb => s_type(0x23, 0, rs1, rs2, imm);
    sh => s_type(0x23, 1, rs1, rs2, imm);
    sw => s_type(0x23, 2, rs1, rs2, imm);
    sd => s_type(0x23, 3, rs1, rs2, imm);
}

form! {
    BRANCHES: fn(rs1: u32, rs2: u32, offset: i64), "a branch by so many bytes";
    beq => branch(0, rs1, rs2, offset);
    bne => branch(1, rs1, rs2, offset);
    blt => branch(4, rs1, rs2, offset);
    bge => branch(5, rs1, rs2, offset);
    bltu => branch(6, rs1, rs2, offset);
    bgeu => branch(7, rs1, rs2, offset);
}

form! {
    ATOMICS: fn(rd: u32, rs2: u32, rs1: u32), "operands as in `amoadd.w rd, rs2, (rs1)`";
    sc_w => r_type(0x2f, 2, 0x03 << 2, rd, rs1, rs2);
    amoswap_w => r_type(0x2f, 2, 0x01 << 2, rd, rs1, rs2);
    amoadd_w => r_type(0x2f, 2, 0x00 << 2, rd, rs1, rs2);
    amoxor_w => r_type(0x2f, 2, 0x04 << 2, rd, rs1, rs2);
    amoand_w => r_type(0x2f, 2, 0x0c << 2, rd, rs1, rs2);
    amoor_w => r_type(0x2f, 2, 0x08 << 2, rd, rs1, rs2);
    amomin_w => r_type(0x2f, 2, 0x10 << 2, rd, rs1, rs2);
    amomax_w => r_type(0x2f, 2, 0x14 << 2, rd, rs1, rs2);
    amominu_w => r_type(0x2f, 2, 0x18 << 2, rd, rs1, rs2);
    amomaxu_w => r_type(0x2f, 2, 0x1c << 2, rd, rs1, rs2);
    sc_d => r_type(0x2f, 3, 0x03 << 2, rd, rs1, rs2);
    amoswap_d => r_type(0x2f, 3, 0x01 << 2, rd, rs1, rs2);
    amoadd_d => r_type(0x2f, 3, 0x00 << 2, rd, rs1, rs2);
    amoxor_d => r_type(0x2f, 3, 0x04 << 2, rd, rs1, rs2);
    amoand_d => r_type(0x2f, 3, 0x0c << 2, rd, rs1, rs2);
    amoor_d => r_type(0x2f, 3, 0x08 << 2, rd, rs1, rs2);
    amomin_d => r_type(0x2f, 3, 0x10 << 2, rd, rs1, rs2);
    amomax_d => r_type(0x2f, 3, 0x14 << 2, rd, rs1, rs2);
    amominu_d => r_type(0x2f, 3, 0x18 << 2, rd, rs1, rs2);
    amomaxu_d => r_type(0x2f, 3, 0x1c << 2, rd, rs1, rs2);
}

form! {
    RESERVING: fn(rd: u32, rs1: u32), "operands as in `lr.w rd, (rs1)`";
    lr_w => r_type(0x2f, 2, 0x08, rd, rs1, 0);
    lr_d => r_type(0x2f, 3, 0x08, rd, rs1, 0);
}

form! {
    UPPER: fn(rd: u32, imm20: u32), "upper bits";
    lui => u_type(0x37, rd, imm20 << 12);
    auipc => u_type(0x17, rd, imm20 << 12);
}

form! {
    CSRS: fn(rd: u32, csr: u16, source: u32), "the source is a register, or an immediate in the `i` forms";
    csrrw => i_type(0x73, 1, rd, source, csr as i32);
    csrrs => i_type(0x73, 2, rd, source, csr as i32);
    csrrc => i_type(0x73, 3, rd, source, csr as i32);
    csrrwi => i_type(0x73, 5, rd, source, csr as i32);
    csrrsi => i_type(0x73, 6, rd, source, csr as i32);
    csrrci => i_type(0x73, 7, rd, source, csr as i32);
}

/// `jal`.
#[must_use]
pub const fn jal(rd: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let imm =
        (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 255) << 12;
    0x6f | rd << 7 | imm
}

/// `li` of a value that fits `lui` and `addi`, as two instructions.
#[must_use]
pub const fn li32(rd: u32, value: u32) -> [u32; 2] {
    let low = (value as i32) << 20 >> 20;
    let high = value.wrapping_sub(low as u32) >> 12;
    [lui(rd, high), addi(rd, rd, low)]
}

/// `csrr rd, csr`.
#[must_use]
pub const fn csrr(rd: u32, csr: u16) -> u32 {
    csrrs(rd, csr, 0)
}

/// `csrw csr, rs1`.
#[must_use]
pub const fn csrw(csr: u16, rs1: u32) -> u32 {
    csrrw(0, csr, rs1)
}

/// `sfence.vma` with both registers.
#[must_use]
pub const fn sfence(rs1: u32, rs2: u32) -> u32 {
    r_type(0x73, 0, 0x09, 0, rs1, rs2)
}

/// `sfence.vma` of everything.
#[must_use]
pub const fn sfence_vma() -> u32 {
    sfence(0, 0)
}

/// Instructions without operands, for `text`.
pub(in crate::asm) const PLAIN: &[(&str, u32)] = &[
    ("nop", NOP),
    ("ecall", ECALL),
    ("ebreak", EBREAK),
    ("mret", MRET),
    ("sret", SRET),
    ("wfi", WFI),
    ("fence", FENCE),
    ("fence_i", FENCE_I),
    ("sfence_vma", sfence_vma()),
    ("ret", RET),
];

/// `nop`.
pub const NOP: u32 = 0x0000_0013;
/// `ecall`.
pub const ECALL: u32 = 0x0000_0073;
/// `ebreak`.
pub const EBREAK: u32 = 0x0010_0073;
/// `mret`.
pub const MRET: u32 = 0x3020_0073;
/// `sret`.
pub const SRET: u32 = 0x1020_0073;
/// `wfi`.
pub const WFI: u32 = 0x1050_0073;
/// `fence iorw, iorw`.
pub const FENCE: u32 = 0x0ff0_000f;
/// `fence.i`.
pub const FENCE_I: u32 = 0x0000_100f;
/// `ret`, of four bytes.
pub const RET: u32 = 0x0000_8067;
/// `j .`
pub const SPIN: u32 = 0x0000_006f;
