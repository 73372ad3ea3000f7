//! RV32 and RV64 as types, so that the interpreter is compiled for each.
//!
//! Integer registers hold 64 bits in both. On RV32 they are sign-extended, so
//! that comparisons, logic and signed division need no second form.

use hartrace_isa::Xlen;

/// The width of the integer registers.
pub(crate) trait Width: Copy {
    const XLEN: Xlen;
    const RV32: bool = matches!(Self::XLEN, Xlen::Rv32);
    /// Bits of a register.
    const BITS: u32 = Self::XLEN.bits();

    /// A result as a register holds it.
    #[inline(always)]
    fn register(value: u64) -> u64 {
        if Self::RV32 {
            value as i32 as u64
        } else {
            value
        }
    }

    /// A register as an address or as the value of an unsigned operation.
    #[inline(always)]
    fn unsigned(value: u64) -> u64 {
        if Self::RV32 {
            value as u32 as u64
        } else {
            value
        }
    }
}

/// 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rv32;

impl Width for Rv32 {
    const XLEN: Xlen = Xlen::Rv32;
}

/// 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rv64;

impl Width for Rv64 {
    const XLEN: Xlen = Xlen::Rv64;
}
