//! The kind of access an instruction makes: a trace reports only addresses and
//! stored data.

use hartrace_flow::AccessKind;
use hartrace_isa::Xlen;

use crate::group::Insn;
use crate::register::Register;

/// The access of an instruction, as far as its encoding shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) what: What,
    /// log2 of its size in bytes.
    pub(super) size: u8,
    /// The register that gets what was loaded, or the result of a
    /// store-conditional.
    pub(super) rd: Option<Register>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Load,
    Store,
    Conditional,
    Atomic(AccessKind),
}

/// The access that an instruction makes. `None` for what is neither load,
/// store nor atomic operation, and where several accesses are made by one
/// instruction.
pub(super) fn shape(insn: Insn, xlen: Xlen) -> Option<Shape> {
    match insn.bits & 3 {
        3 => full(insn.bits),
        _ => compressed(insn.bits, xlen),
    }
}

fn full(bits: u32) -> Option<Shape> {
    let rd = (bits >> 7 & 31) as u8;
    let funct3 = (bits >> 12 & 7) as u8;
    let (what, size, rd) = match bits & 0x7f {
        0x03 => (What::Load, funct3 & 3, Some(Register::x(rd))),
        0x23 => (What::Store, funct3 & 3, None),
        // Widths 0 and 5 to 7 are those of vectors.
        0x07 if matches!(funct3, 1..=4) => (What::Load, funct3, Some(Register::f(rd))),
        0x27 if matches!(funct3, 1..=4) => (What::Store, funct3, None),
        0x2f => (atomic(bits >> 27)?, funct3, Some(Register::x(rd))),
        _ => return None,
    };
    Some(Shape { what, size, rd })
}

/// By the upper five bits.
const fn atomic(funct5: u32) -> Option<What> {
    Some(match funct5 {
        0b00010 => What::Load,
        0b00011 => What::Conditional,
        0b00000 => What::Atomic(AccessKind::AtomicAdd),
        // Compare and swap is a swap that may fail.
        0b00001 | 0b00101 => What::Atomic(AccessKind::AtomicSwap),
        0b00100 => What::Atomic(AccessKind::AtomicXor),
        0b01100 => What::Atomic(AccessKind::AtomicAnd),
        0b01000 => What::Atomic(AccessKind::AtomicOr),
        0b10000 | 0b11000 => What::Atomic(AccessKind::AtomicMin),
        0b10100 | 0b11100 => What::Atomic(AccessKind::AtomicMax),
        _ => return None,
    })
}

fn compressed(bits: u32, xlen: Xlen) -> Option<Shape> {
    let wide = xlen == Xlen::Rv64;
    let (short, long) = ((bits >> 2 & 7) as u8 + 8, (bits >> 7 & 31) as u8);
    let (quadrant, funct3) = (bits & 3, bits >> 13 & 7);
    let rd = match quadrant {
        0 => short,
        2 => long,
        _ => return None,
    };
    let (what, size, rd) = match funct3 {
        1 => (What::Load, 3, Some(Register::f(rd))),
        2 => (What::Load, 2, Some(Register::x(rd))),
        3 if wide => (What::Load, 3, Some(Register::x(rd))),
        3 => (What::Load, 2, Some(Register::f(rd))),
        // Zcb.
        4 if quadrant == 0 => match bits >> 10 & 7 {
            0 => (What::Load, 0, Some(Register::x(rd))),
            1 => (What::Load, 1, Some(Register::x(rd))),
            2 => (What::Store, 0, None),
            3 => (What::Store, 1, None),
            _ => return None,
        },
        5 if quadrant == 0 => (What::Store, 3, None),
        6 => (What::Store, 2, None),
        7 => (What::Store, if wide { 3 } else { 2 }, None),
        _ => return None,
    };
    Some(Shape { what, size, rd })
}
