//! Floating point.

use super::{form, i_type, r_type, s_type};

form! {
    THREE_FLOAT: fn(rd: u32, rs1: u32, rs2: u32), "three registers";
    fsgnj_s => r_type(0x53, 0, 0x10, rd, rs1, rs2);
    fsgnjn_s => r_type(0x53, 1, 0x10, rd, rs1, rs2);
    fsgnjx_s => r_type(0x53, 2, 0x10, rd, rs1, rs2);
    fsgnj_d => r_type(0x53, 0, 0x11, rd, rs1, rs2);
    fsgnjn_d => r_type(0x53, 1, 0x11, rd, rs1, rs2);
    fsgnjx_d => r_type(0x53, 2, 0x11, rd, rs1, rs2);
    fsgnj_h => r_type(0x53, 0, 0x12, rd, rs1, rs2);
    fmin_s => r_type(0x53, 0, 0x14, rd, rs1, rs2);
    fmax_s => r_type(0x53, 1, 0x14, rd, rs1, rs2);
    fmin_d => r_type(0x53, 0, 0x15, rd, rs1, rs2);
    fmax_d => r_type(0x53, 1, 0x15, rd, rs1, rs2);
    feq_s => r_type(0x53, 2, 0x50, rd, rs1, rs2);
    flt_s => r_type(0x53, 1, 0x50, rd, rs1, rs2);
    fle_s => r_type(0x53, 0, 0x50, rd, rs1, rs2);
    feq_d => r_type(0x53, 2, 0x51, rd, rs1, rs2);
    flt_d => r_type(0x53, 1, 0x51, rd, rs1, rs2);
}

form! {
    TWO_FLOAT: fn(rd: u32, rs1: u32), "two registers";
    fclass_s => i_type(0x53, 1, rd, rs1, -0x200);
    fclass_d => i_type(0x53, 1, rd, rs1, -0x1e0);
    fclass_h => i_type(0x53, 1, rd, rs1, -0x1c0);
    fmv_x_w => i_type(0x53, 0, rd, rs1, -0x200);
    fmv_x_d => i_type(0x53, 0, rd, rs1, -0x1e0);
    fmv_x_h => i_type(0x53, 0, rd, rs1, -0x1c0);
    fmv_w_x => i_type(0x53, 0, rd, rs1, -0x100);
    fmv_d_x => i_type(0x53, 0, rd, rs1, -0x0e0);
    fmv_h_x => i_type(0x53, 0, rd, rs1, -0x0c0);
}

form! {
    LOADS_FLOAT: fn(rd: u32, imm: i32, rs1: u32), "a load";
    flh => i_type(0x07, 1, rd, rs1, imm);
    flw => i_type(0x07, 2, rd, rs1, imm);
    fld => i_type(0x07, 3, rd, rs1, imm);
}

form! {
    STORES_FLOAT: fn(rs2: u32, imm: i32, rs1: u32), "a store";
    fsh => s_type(0x27, 1, rs1, rs2, imm);
    fsw => s_type(0x27, 2, rs1, rs2, imm);
    fsd => s_type(0x27, 3, rs1, rs2, imm);
}

form! {
    ROUNDED: fn(rm: u32, rd: u32, rs1: u32, rs2: u32), "three registers and a rounding mode";
    fadd_s => r_type(0x53, rm, 0x00, rd, rs1, rs2);
    fsub_s => r_type(0x53, rm, 0x04, rd, rs1, rs2);
    fmul_s => r_type(0x53, rm, 0x08, rd, rs1, rs2);
    fdiv_s => r_type(0x53, rm, 0x0c, rd, rs1, rs2);
    fadd_d => r_type(0x53, rm, 0x01, rd, rs1, rs2);
    fsub_d => r_type(0x53, rm, 0x05, rd, rs1, rs2);
    fmul_d => r_type(0x53, rm, 0x09, rd, rs1, rs2);
    fdiv_d => r_type(0x53, rm, 0x0d, rd, rs1, rs2);
    fadd_h => r_type(0x53, rm, 0x02, rd, rs1, rs2);
}

form! {
    CONVERTED: fn(rm: u32, rd: u32, rs1: u32), "two registers and a rounding mode";
    fsqrt_s => r_type(0x53, rm, 0x2c, rd, rs1, 0);
    fsqrt_d => r_type(0x53, rm, 0x2d, rd, rs1, 0);
    fcvt_w_s => r_type(0x53, rm, 0x60, rd, rs1, 0);
    fcvt_wu_s => r_type(0x53, rm, 0x60, rd, rs1, 1);
    fcvt_l_s => r_type(0x53, rm, 0x60, rd, rs1, 2);
    fcvt_lu_s => r_type(0x53, rm, 0x60, rd, rs1, 3);
    fcvt_w_d => r_type(0x53, rm, 0x61, rd, rs1, 0);
    fcvt_wu_d => r_type(0x53, rm, 0x61, rd, rs1, 1);
    fcvt_l_d => r_type(0x53, rm, 0x61, rd, rs1, 2);
    fcvt_lu_d => r_type(0x53, rm, 0x61, rd, rs1, 3);
    fcvt_s_w => r_type(0x53, rm, 0x68, rd, rs1, 0);
    fcvt_s_wu => r_type(0x53, rm, 0x68, rd, rs1, 1);
    fcvt_s_l => r_type(0x53, rm, 0x68, rd, rs1, 2);
    fcvt_s_lu => r_type(0x53, rm, 0x68, rd, rs1, 3);
    fcvt_d_w => r_type(0x53, rm, 0x69, rd, rs1, 0);
    fcvt_d_wu => r_type(0x53, rm, 0x69, rd, rs1, 1);
    fcvt_d_l => r_type(0x53, rm, 0x69, rd, rs1, 2);
    fcvt_d_lu => r_type(0x53, rm, 0x69, rd, rs1, 3);
    fcvt_s_d => r_type(0x53, rm, 0x20, rd, rs1, 1);
    fcvt_d_s => r_type(0x53, rm, 0x21, rd, rs1, 0);
    fcvt_h_s => r_type(0x53, rm, 0x22, rd, rs1, 0);
    fcvt_s_h => r_type(0x53, rm, 0x20, rd, rs1, 2);
}

/// Rounding to nearest, ties to even.
pub const RNE: u32 = 0;
/// Rounding towards zero.
pub const RTZ: u32 = 1;
/// Rounding down.
pub const RDN: u32 = 2;
/// Rounding up.
pub const RUP: u32 = 3;
/// Rounding to nearest, ties to the larger magnitude.
pub const RMM: u32 = 4;
/// Rounding as `frm` says.
pub const DYN: u32 = 7;

/// A fused multiply-add, selected by the opcode.
#[must_use]
pub const fn fused(opcode: u32, double: bool, rd: u32, rs1: u32, rs2: u32, rs3: u32) -> u32 {
    r_type(opcode, DYN, rs3 << 2 | double as u32, rd, rs1, rs2)
}

/// `fmadd.d`.
#[must_use]
pub const fn fmadd_d(rd: u32, rs1: u32, rs2: u32, rs3: u32) -> u32 {
    fused(0x43, true, rd, rs1, rs2, rs3)
}
