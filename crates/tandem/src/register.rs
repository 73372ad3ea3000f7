//! Registers by the numbers of the RISC-V debug specification (chapter 3,
//! "Register addresses"): CSRs, integer and floating-point registers in one
//! space of 16 bits.

use core::fmt;

use hartrace_flow::RegId;
use hartrace_isa::{Reg, csr};

/// Registers have numbers below this.
pub(crate) const REGISTERS: usize = 0x1040;

/// A register that has a number: 0x0000 to 0x0fff are the CSRs, 0x1000 to
/// 0x101f x0 to x31, 0x1020 to 0x103f f0 to f31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(u16);

impl Register {
    /// The register with a number; the debug specification leaves the numbers
    /// from 0x1040 on open, so that their width is not known.
    #[must_use]
    #[inline]
    pub const fn new(number: u16) -> Option<Register> {
        if (number as usize) < REGISTERS {
            Some(Register(number))
        } else {
            None
        }
    }

    /// A CSR; bits above the twelfth are ignored.
    #[must_use]
    #[inline]
    pub const fn csr(number: u16) -> Register {
        Register(number & 0xfff)
    }

    /// An integer register; bits above the fifth are ignored.
    #[must_use]
    #[inline]
    pub const fn x(number: u8) -> Register {
        Register(0x1000 | (number & 31) as u16)
    }

    /// A floating-point register; bits above the fifth are ignored.
    #[must_use]
    #[inline]
    pub const fn f(number: u8) -> Register {
        Register(0x1020 | (number & 31) as u16)
    }

    /// Its number in the trace.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether it is a floating-point register.
    #[must_use]
    #[inline]
    pub const fn is_float(self) -> bool {
        self.0 >= 0x1020
    }

    /// Whether it is x0, which never changes.
    #[must_use]
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0x1000
    }

    /// The number of a CSR.
    #[must_use]
    #[inline]
    pub const fn as_csr(self) -> Option<u16> {
        if self.0 < 0x1000 { Some(self.0) } else { None }
    }

    /// An integer or floating-point register.
    #[must_use]
    #[inline]
    pub const fn as_reg(self) -> Option<RegId> {
        match self.0 {
            0x1000..=0x101f => Some(RegId::X((self.0 & 31) as u8)),
            0x1020.. => Some(RegId::F((self.0 & 31) as u8)),
            _ => None,
        }
    }

    /// A register by any of its names: `x10`, `a0`, `f10`, `fa0`, `mstatus`, or
    /// a CSR by its number, `0x300`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Register> {
        let numbered = |prefix: char| {
            let number: u8 = name.strip_prefix(prefix)?.parse().ok()?;
            (number < 32).then_some(number)
        };
        if let Some(number) = numbered('x') {
            return Some(Register::x(number));
        }
        if let Some(number) = numbered('f') {
            return Some(Register::f(number));
        }
        let named =
            |of: fn(Reg) -> &'static str| (0..32u8).find(|&n| of(Reg::new(n.into())) == name);
        if let Some(number) = named(Reg::abi_name).or((name == "fp").then_some(8)) {
            return Some(Register::x(number));
        }
        if let Some(number) = named(Reg::float_name) {
            return Some(Register::f(number));
        }
        if let Some(number) = csr::number(name) {
            return Some(Register::csr(number));
        }
        let number = u16::from_str_radix(name.strip_prefix("0x")?, 16).ok()?;
        (number < 0x1000).then_some(Register(number))
    }
}

impl From<RegId> for Register {
    #[inline]
    fn from(reg: RegId) -> Register {
        match reg {
            RegId::X(number) => Register::x(number),
            RegId::F(number) => Register::f(number),
        }
    }
}

/// The usual name: `a0`, `fa0`, `mstatus`; a CSR without one as `csr 0x7c0`.
impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reg = Reg::new(u32::from(self.0));
        match self.0 {
            0x1020.. => f.write_str(reg.float_name()),
            0x1000..=0x101f => f.write_str(reg.abi_name()),
            number => match csr::name(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "csr {number:#05x}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The debug specification's numbers; the two slips of Appendix C (a0 is
    /// 0x100a, not 0x1010).
    #[test]
    fn numbers_and_names() {
        for (name, number) in [
            ("gp", 0x1003),
            ("a0", 0x100a),
            ("a6", 0x1010),
            ("ft7", 0x1027),
            ("fcsr", 0x003),
            ("mie", 0x304),
            ("x31", 0x101f),
            ("f0", 0x1020),
            ("fp", 0x1008),
            ("0x7c0", 0x7c0),
        ] {
            assert_eq!(Register::from_name(name), Register::new(number), "{name}");
        }
        for bad in ["x32", "f32", "nothing", "0x1000", "", "x"] {
            assert_eq!(Register::from_name(bad), None, "{bad}");
        }
        assert_eq!(Register::new(0x1040), None);
        assert_eq!(Register::x(10).to_string(), "a0");
        assert_eq!(Register::csr(0x7c0).to_string(), "csr 0x7c0");
    }

    /// Every register is found again by the name it is shown with.
    #[test]
    fn names_lead_back() {
        for number in 0..REGISTERS as u16 {
            let register = Register::new(number).unwrap();
            let name = register.to_string();
            let name = name.strip_prefix("csr ").unwrap_or(&name);
            assert_eq!(Register::from_name(name), Some(register), "{name}");
        }
    }

    extern crate std;
    use std::string::ToString;
}
