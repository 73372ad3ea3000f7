//! A small assembler: one function per instruction, operands in the order of
//! the manual's assembly syntax, registers as numbers. It is written from the
//! manuals alone, independently of the decoder that tests check.
//!
//! Values that do not fit into a field are truncated; [`fits`] checks that.

mod base;
mod float;
mod short;
pub(crate) mod text;

pub use base::*;
pub use float::*;
pub use short::*;

/// `x0`.
pub const ZERO: u32 = 0;
/// `x1`, the link register.
pub const RA: u32 = 1;
/// `x2`.
pub const SP: u32 = 2;
/// `x5`, the other link register.
pub const T0: u32 = 5;
/// `x6`.
pub const T1: u32 = 6;
/// `x7`.
pub const T2: u32 = 7;
/// `x10`.
pub const A0: u32 = 10;
/// `x11`.
pub const A1: u32 = 11;
/// `x12`.
pub const A2: u32 = 12;
/// `x13`.
pub const A3: u32 = 13;
/// `x14`.
pub const A4: u32 = 14;
/// `x15`.
pub const A5: u32 = 15;

/// Whether a signed number fits in this many bits.
#[must_use]
pub const fn fits(value: i64, bits: u32) -> bool {
    let limit = 1i64 << (bits - 1);
    value >= -limit && value < limit
}

/// The bytes of instructions of two or four bytes, as their low bits say.
#[must_use]
pub fn code(insns: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &insn in insns {
        let len = if insn & 3 == 3 { 4 } else { 2 };
        bytes.extend(insn.to_le_bytes().iter().take(len));
    }
    bytes
}

/// R format.
#[must_use]
pub const fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25
}

/// I format.
#[must_use]
pub const fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | (imm as u32) << 20
}

/// S format.
#[must_use]
pub const fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    opcode | (imm & 31) << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | (imm >> 5 & 127) << 25
}

/// U format; `high` is the value with its low twelve bits clear.
#[must_use]
pub const fn u_type(opcode: u32, rd: u32, high: u32) -> u32 {
    opcode | rd << 7 | high & 0xffff_f000
}

/// A conditional branch.
#[must_use]
pub const fn branch(funct3: u32, rs1: u32, rs2: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let imm = (o >> 12 & 1) << 31 | (o >> 5 & 63) << 25 | (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7;
    0x63 | funct3 << 12 | rs1 << 15 | rs2 << 20 | imm
}

/// The instructions of one form: a function each, and their table for
/// [`text`]. A dot in a name is an underscore here.
macro_rules! form {
    ($table:ident: fn $args:tt, $what:literal;
     $($name:ident => $bits:expr;)+) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: ", $what, ".")]
            #[must_use]
            pub const fn $name $args -> u32 {
                $bits
            }
        )+
        /// Those of this form, by name.
        pub(in crate::asm) const $table: &[(&str, fn $args -> u32)] =
            &[$((stringify!($name), $name)),+];
    };
}
pub(in crate::asm) use form;
