//! Integer registers.

use core::fmt;

/// An integer register, x0 to x31.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u8);

impl Reg {
    /// x0, the constant zero.
    pub const ZERO: Reg = Reg(0);
    /// x1, the link register.
    pub const RA: Reg = Reg(1);
    /// x2, the stack pointer.
    pub const SP: Reg = Reg(2);
    /// x5, the alternate link register.
    pub const T0: Reg = Reg(5);

    /// The register of a five-bit field; higher bits are ignored.
    #[must_use]
    pub const fn new(field: u32) -> Reg {
        Reg((field & 31) as u8)
    }

    /// The register's number, 0 to 31.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether the calling convention uses this register for return
    /// addresses: x1 or x5, `link` in the tables of both trace specifications.
    #[must_use]
    pub const fn is_link(self) -> bool {
        self.0 == 1 || self.0 == 5
    }

    /// The name the calling convention gives: `zero`, `ra`, `sp`, ...
    #[must_use]
    pub const fn abi_name(self) -> &'static str {
        const NAMES: [&str; 32] = [
            "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3",
            "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
            "t3", "t4", "t5", "t6",
        ];
        // Five bits, thirty-two names: the mask only shows that the index fits.
        #[allow(clippy::indexing_slicing)]
        NAMES[(self.0 & 31) as usize]
    }

    /// The name the calling convention gives the floating-point register of
    /// this number: `ft0`, ..., `fs0`, `fa0`, ...
    #[must_use]
    pub const fn float_name(self) -> &'static str {
        const NAMES: [&str; 32] = [
            "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1",
            "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7",
            "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
        ];
        // As above.
        #[allow(clippy::indexing_slicing)]
        NAMES[(self.0 & 31) as usize]
    }
}

impl fmt::Debug for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.abi_name())
    }
}
