//! A small assembler: one function per instruction, operands in the order of
//! the manual's assembly syntax. Written from the manuals alone, so that what
//! the hart decodes is checked as well as what it does.

#![allow(dead_code)] // a whole set is easier to read than the part in use

pub(crate) const ZERO: u8 = 0;
pub(crate) const RA: u8 = 1;
pub(crate) const T0: u8 = 5;
pub(crate) const T1: u8 = 6;
pub(crate) const T2: u8 = 7;
pub(crate) const A0: u8 = 10;
pub(crate) const A1: u8 = 11;
pub(crate) const A2: u8 = 12;
pub(crate) const A3: u8 = 13;
pub(crate) const A4: u8 = 14;
pub(crate) const A5: u8 = 15;

/// An R-type instruction.
pub(crate) fn r(op: u32, f3: u32, f7: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
    let (rd, rs1, rs2) = (u32::from(rd), u32::from(rs1), u32::from(rs2));
    f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op
}

/// An I-type instruction.
pub(crate) fn i(op: u32, f3: u32, rd: u8, rs1: u8, imm: i32) -> u32 {
    let (rd, rs1) = (u32::from(rd), u32::from(rs1));
    (imm as u32) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op
}

fn s(op: u32, f3: u32, rs2: u8, rs1: u8, imm: i32) -> u32 {
    let (rs1, rs2, imm) = (u32::from(rs1), u32::from(rs2), imm as u32);
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | (imm & 31) << 7 | op
}

fn b(f3: u32, rs1: u8, rs2: u8, offset: i32) -> u32 {
    let (rs1, rs2, imm) = (u32::from(rs1), u32::from(rs2), offset as u32);
    let high = (imm >> 12 & 1) << 6 | imm >> 5 & 0x3f;
    let low = (imm >> 1 & 15) << 1 | imm >> 11 & 1;
    high << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | low << 7 | 0x63
}

macro_rules! three {
    ($($name:ident $op:literal $f3:literal $f7:literal;)+) => { $(
        pub(crate) fn $name(rd: u8, rs1: u8, rs2: u8) -> u32 {
            r($op, $f3, $f7, rd, rs1, rs2)
        }
    )+ };
}

three! {
    add 0x33 0 0x00; sub 0x33 0 0x20; sll 0x33 1 0x00; slt 0x33 2 0x00;
    sltu 0x33 3 0x00; xor 0x33 4 0x00; srl 0x33 5 0x00; sra 0x33 5 0x20;
    or 0x33 6 0x00; and 0x33 7 0x00;
    addw 0x3b 0 0x00; subw 0x3b 0 0x20; sllw 0x3b 1 0x00; srlw 0x3b 5 0x00; sraw 0x3b 5 0x20;
    mul 0x33 0 0x01; mulh 0x33 1 0x01; mulhsu 0x33 2 0x01; mulhu 0x33 3 0x01;
    div 0x33 4 0x01; divu 0x33 5 0x01; rem 0x33 6 0x01; remu 0x33 7 0x01;
    mulw 0x3b 0 0x01; divw 0x3b 4 0x01; divuw 0x3b 5 0x01; remw 0x3b 6 0x01; remuw 0x3b 7 0x01;
    sh1add 0x33 2 0x10; sh2add 0x33 4 0x10; sh3add 0x33 6 0x10;
    add_uw 0x3b 0 0x04; sh1add_uw 0x3b 2 0x10; sh2add_uw 0x3b 4 0x10; sh3add_uw 0x3b 6 0x10;
    andn 0x33 7 0x20; orn 0x33 6 0x20; xnor 0x33 4 0x20;
    max 0x33 6 0x05; maxu 0x33 7 0x05; min 0x33 4 0x05; minu 0x33 5 0x05;
    rol 0x33 1 0x30; ror 0x33 5 0x30; rolw 0x3b 1 0x30; rorw 0x3b 5 0x30;
    bclr 0x33 1 0x24; bext 0x33 5 0x24; binv 0x33 1 0x34; bset 0x33 1 0x14;
    clmul 0x33 1 0x05; clmulh 0x33 3 0x05; clmulr 0x33 2 0x05;
    czero_eqz 0x33 5 0x07; czero_nez 0x33 7 0x07;
    fsgnj_s 0x53 0 0x10; fsgnjn_s 0x53 1 0x10; fsgnjx_s 0x53 2 0x10;
    fsgnj_d 0x53 0 0x11; fsgnjn_d 0x53 1 0x11; fsgnjx_d 0x53 2 0x11;
    fsgnj_h 0x53 0 0x12;
    fmin_s 0x53 0 0x14; fmax_s 0x53 1 0x14; fmin_d 0x53 0 0x15; fmax_d 0x53 1 0x15;
    feq_s 0x53 2 0x50; flt_s 0x53 1 0x50; fle_s 0x53 0 0x50; feq_d 0x53 2 0x51; flt_d 0x53 1 0x51;
    sfence 0x73 0 0x09;
}

macro_rules! two {
    ($($name:ident $op:literal $f3:literal $imm:literal;)+) => { $(
        pub(crate) fn $name(rd: u8, rs1: u8) -> u32 {
            i($op, $f3, rd, rs1, $imm)
        }
    )+ };
}

two! {
    clz 0x13 1 0x600; ctz 0x13 1 0x601; cpop 0x13 1 0x602; sext_b 0x13 1 0x604; sext_h 0x13 1 0x605;
    clzw 0x1b 1 0x600; ctzw 0x1b 1 0x601; cpopw 0x1b 1 0x602;
    orc_b 0x13 5 0x287; rev8_32 0x13 5 0x698; rev8_64 0x13 5 0x6b8;
    zext_h_32 0x33 4 0x080; zext_h_64 0x3b 4 0x080;
    fclass_s 0x53 1 -0x200; fclass_d 0x53 1 -0x1e0; fclass_h 0x53 1 -0x1c0;
    fmv_x_w 0x53 0 -0x200; fmv_x_d 0x53 0 -0x1e0; fmv_x_h 0x53 0 -0x1c0;
    fmv_w_x 0x53 0 -0x100; fmv_d_x 0x53 0 -0x0e0; fmv_h_x 0x53 0 -0x0c0;
}

macro_rules! immediate {
    ($($name:ident $op:literal $f3:literal $high:literal;)+) => { $(
        pub(crate) fn $name(rd: u8, rs1: u8, imm: i32) -> u32 {
            i($op, $f3, rd, rs1, imm | $high)
        }
    )+ };
}

immediate! {
    addi 0x13 0 0; slti 0x13 2 0; sltiu 0x13 3 0; xori 0x13 4 0; ori 0x13 6 0; andi 0x13 7 0;
    slli 0x13 1 0; srli 0x13 5 0; srai 0x13 5 0x400;
    addiw 0x1b 0 0; slliw 0x1b 1 0; srliw 0x1b 5 0; sraiw 0x1b 5 0x400;
    slli_uw 0x1b 1 0x080; rori 0x13 5 0x600; roriw 0x1b 5 0x600;
    bclri 0x13 1 0x480; bexti 0x13 5 0x480; binvi 0x13 1 0x680; bseti 0x13 1 0x280;
    jalr 0x67 0 0;
}

macro_rules! loads {
    ($($name:ident $op:literal $f3:literal;)+) => { $(
        pub(crate) fn $name(rd: u8, imm: i32, rs1: u8) -> u32 {
            i($op, $f3, rd, rs1, imm)
        }
    )+ };
}

loads! {
    lb 0x03 0; lh 0x03 1; lw 0x03 2; ld 0x03 3; lbu 0x03 4; lhu 0x03 5; lwu 0x03 6;
    flh 0x07 1; flw 0x07 2; fld 0x07 3;
}

macro_rules! stores {
    ($($name:ident $op:literal $f3:literal;)+) => { $(
        pub(crate) fn $name(rs2: u8, imm: i32, rs1: u8) -> u32 {
            s($op, $f3, rs2, rs1, imm)
        }
    )+ };
}

stores! {
    sb 0x23 0; sh 0x23 1; sw 0x23 2; sd 0x23 3; fsh 0x27 1; fsw 0x27 2; fsd 0x27 3;
}

macro_rules! branches {
    ($($name:ident $f3:literal;)+) => { $(
        pub(crate) fn $name(rs1: u8, rs2: u8, offset: i32) -> u32 {
            b($f3, rs1, rs2, offset)
        }
    )+ };
}

branches! { beq 0; bne 1; blt 4; bge 5; bltu 6; bgeu 7; }

macro_rules! atomics {
    ($($name:ident $f3:literal $f5:literal;)+) => { $(
        /// Operands as in `amoadd.w rd, rs2, (rs1)`.
        pub(crate) fn $name(rd: u8, rs2: u8, rs1: u8) -> u32 {
            r(0x2f, $f3, $f5 << 2, rd, rs1, rs2)
        }
    )+ };
}

atomics! {
    sc_w 2 0x03; amoswap_w 2 0x01; amoadd_w 2 0x00; amoxor_w 2 0x04; amoand_w 2 0x0c;
    amoor_w 2 0x08; amomin_w 2 0x10; amomax_w 2 0x14; amominu_w 2 0x18; amomaxu_w 2 0x1c;
    sc_d 3 0x03; amoswap_d 3 0x01; amoadd_d 3 0x00; amoxor_d 3 0x04; amoand_d 3 0x0c;
    amoor_d 3 0x08; amomin_d 3 0x10; amomax_d 3 0x14; amominu_d 3 0x18; amomaxu_d 3 0x1c;
}

pub(crate) fn lr_w(rd: u8, rs1: u8) -> u32 {
    r(0x2f, 2, 0x08, rd, rs1, 0)
}

pub(crate) fn lr_d(rd: u8, rs1: u8) -> u32 {
    r(0x2f, 3, 0x08, rd, rs1, 0)
}

pub(crate) fn lui(rd: u8, imm20: u32) -> u32 {
    imm20 << 12 | u32::from(rd) << 7 | 0x37
}

pub(crate) fn auipc(rd: u8, imm20: u32) -> u32 {
    imm20 << 12 | u32::from(rd) << 7 | 0x17
}

pub(crate) fn jal(rd: u8, offset: i32) -> u32 {
    let imm = offset as u32;
    let high = (imm >> 20 & 1) << 31 | (imm >> 1 & 0x3ff) << 21 | (imm >> 11 & 1) << 20;
    high | (imm >> 12 & 0xff) << 12 | u32::from(rd) << 7 | 0x6f
}

/// `li` of a value that fits `lui` and `addi`, as two instructions.
pub(crate) fn li32(rd: u8, value: u32) -> [u32; 2] {
    let low = (value as i32) << 20 >> 20;
    let high = value.wrapping_sub(low as u32) >> 12;
    [lui(rd, high), addi(rd, rd, low)]
}

macro_rules! csrs {
    ($($name:ident $f3:literal;)+) => { $(
        /// The last operand is a register, or an immediate in the `i` forms.
        pub(crate) fn $name(rd: u8, csr: u16, source: u8) -> u32 {
            i(0x73, $f3, rd, source, i32::from(csr))
        }
    )+ };
}

csrs! { csrrw 1; csrrs 2; csrrc 3; csrrwi 5; csrrsi 6; csrrci 7; }

pub(crate) fn csrr(rd: u8, csr: u16) -> u32 {
    csrrs(rd, csr, ZERO)
}

pub(crate) fn csrw(csr: u16, rs1: u8) -> u32 {
    csrrw(ZERO, csr, rs1)
}

pub(crate) fn sfence_vma() -> u32 {
    sfence(ZERO, ZERO, ZERO)
}

pub(crate) const NOP: u32 = 0x0000_0013;
pub(crate) const ECALL: u32 = 0x0000_0073;
pub(crate) const EBREAK: u32 = 0x0010_0073;
pub(crate) const MRET: u32 = 0x3020_0073;
pub(crate) const SRET: u32 = 0x1020_0073;
pub(crate) const WFI: u32 = 0x1050_0073;
pub(crate) const FENCE: u32 = 0x0ff0_000f;
pub(crate) const FENCE_I: u32 = 0x0000_100f;
pub(crate) const SPIN: u32 = 0x0000_006f;
pub(crate) const C_NOP: u16 = 0x0001;
pub(crate) const C_EBREAK: u16 = 0x9002;

/// Rounding modes.
pub(crate) const RNE: u32 = 0;
pub(crate) const RTZ: u32 = 1;
pub(crate) const RDN: u32 = 2;
pub(crate) const RUP: u32 = 3;
pub(crate) const RMM: u32 = 4;
pub(crate) const DYN: u32 = 7;

macro_rules! rounded {
    ($($name:ident $f7:literal;)+) => { $(
        pub(crate) fn $name(rm: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
            r(0x53, rm, $f7, rd, rs1, rs2)
        }
    )+ };
}

rounded! {
    fadd_s 0x00; fsub_s 0x04; fmul_s 0x08; fdiv_s 0x0c;
    fadd_d 0x01; fsub_d 0x05; fmul_d 0x09; fdiv_d 0x0d; fadd_h 0x02;
}

macro_rules! converted {
    ($($name:ident $f7:literal $from:literal;)+) => { $(
        pub(crate) fn $name(rm: u32, rd: u8, rs1: u8) -> u32 {
            r(0x53, rm, $f7, rd, rs1, $from)
        }
    )+ };
}

converted! {
    fsqrt_s 0x2c 0; fsqrt_d 0x2d 0;
    fcvt_w_s 0x60 0; fcvt_wu_s 0x60 1; fcvt_l_s 0x60 2; fcvt_lu_s 0x60 3;
    fcvt_w_d 0x61 0; fcvt_wu_d 0x61 1; fcvt_l_d 0x61 2; fcvt_lu_d 0x61 3;
    fcvt_s_w 0x68 0; fcvt_s_wu 0x68 1; fcvt_s_l 0x68 2; fcvt_s_lu 0x68 3;
    fcvt_d_w 0x69 0; fcvt_d_wu 0x69 1; fcvt_d_l 0x69 2; fcvt_d_lu 0x69 3;
    fcvt_s_d 0x20 1; fcvt_d_s 0x21 0; fcvt_h_s 0x22 0; fcvt_s_h 0x20 2;
}

/// A fused multiply-add: the opcode tells which.
pub(crate) fn fused(op: u32, double: bool, rd: u8, rs1: u8, rs2: u8, rs3: u8) -> u32 {
    r(
        op,
        DYN,
        u32::from(rs3) << 2 | u32::from(double),
        rd,
        rs1,
        rs2,
    )
}

pub(crate) fn fmadd_d(rd: u8, rs1: u8, rs2: u8, rs3: u8) -> u32 {
    fused(0x43, true, rd, rs1, rs2, rs3)
}
