//! State that the model cannot know and takes from the trace.

use hartrace_isa::csr;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::elements::Registers;
use crate::register::Register;

/// Addresses, `size` bytes from `base` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Range {
    /// Whether any of `len` bytes at an address is in it.
    #[must_use]
    pub const fn touches(&self, addr: u64, len: u64) -> bool {
        addr.wrapping_sub(self.base) < self.size || self.base.wrapping_sub(addr) < len
    }
}

/// Non-deterministic state (3.1): registers, single bits of them, and ranges of
/// physical memory. It is copied from the trace to the model and not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volatile {
    masks: Vec<(Register, u64)>,
    set: Registers,
    ranges: Vec<Range>,
}

impl Volatile {
    /// Nothing.
    #[must_use]
    pub const fn nothing() -> Volatile {
        Volatile {
            masks: Vec::new(),
            set: Registers::NONE,
            ranges: Vec::new(),
        }
    }

    /// Adds bits of a register.
    pub fn add_bits(&mut self, register: Register, bits: u64) {
        match self.masks.iter_mut().find(|(known, _)| *known == register) {
            Some((_, mask)) => *mask |= bits,
            None => self.masks.push((register, bits)),
        }
        self.set.insert(register);
    }

    /// Adds a range of physical memory.
    pub fn add_range(&mut self, range: Range) {
        self.ranges.push(range);
    }

    /// Adds what a text says: a register by name (`mip`), bits of one
    /// (`mstatus:0x6000`), or memory (`0x10000000:0x1000`, base and size).
    ///
    /// # Errors
    ///
    /// A text that says nothing.
    pub fn add(&mut self, text: &str) -> Result<(), UnknownVolatile> {
        let unknown = || UnknownVolatile(text.to_string());
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(number(rest).ok_or_else(unknown)?)),
            None => (text, None),
        };
        if let Some(base) = number(name) {
            let size = rest.filter(|&size| size > 0).ok_or_else(unknown)?;
            self.add_range(Range { base, size });
            return Ok(());
        }
        let register = Register::from_name(name).ok_or_else(unknown)?;
        self.add_bits(register, rest.unwrap_or(u64::MAX));
        Ok(())
    }

    /// The bits of a register that are not compared.
    #[must_use]
    #[inline]
    pub fn bits(&self, register: Register) -> u64 {
        if !self.set.contains(register) {
            return 0;
        }
        let found = self.masks.iter().find(|(known, _)| *known == register);
        found.map_or(0, |(_, mask)| *mask)
    }

    /// Whether any of `len` bytes at a physical address is volatile.
    #[must_use]
    pub fn touches(&self, addr: u64, len: u64) -> bool {
        self.ranges.iter().any(|range| range.touches(addr, len))
    }

    /// The ranges of memory.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Registers, with the bits that are volatile.
    #[must_use]
    pub fn registers(&self) -> &[(Register, u64)] {
        &self.masks
    }
}

/// What changes by itself on any hart: pending interrupts, time and counters.
impl Default for Volatile {
    fn default() -> Volatile {
        let mut volatile = Volatile::nothing();
        // mip, time, timeh; mcycle, minstret and the event counters with their
        // upper halves. Their views in user mode are the same registers.
        let counters = [csr::MCYCLE, csr::MINSTRET]
            .into_iter()
            .chain(csr::MHPMCOUNTER3..=csr::MHPMCOUNTER31);
        for csr in [csr::MIP, csr::TIME, csr::TIMEH] {
            volatile.add_bits(Register::csr(csr), u64::MAX);
        }
        for csr in counters {
            volatile.add_bits(Register::csr(csr), u64::MAX);
            volatile.add_bits(Register::csr(csr | 0x80), u64::MAX);
        }
        // The overflow bits of the event counters, and their shadow.
        for csr in csr::MHPMEVENT3..=csr::MHPMEVENT31 {
            volatile.add_bits(Register::csr(csr), 1 << 63);
            volatile.add_bits(Register::csr(csr + 0x400), 1 << 31);
        }
        volatile.add_bits(Register::csr(csr::SCOUNTOVF), u64::MAX);
        // Control transfer records accessed through the indirect registers: whether a
        // jump was mispredicted, and the count of cycles.
        for window in [csr::SISELECT, csr::VSISELECT, csr::MISELECT] {
            volatile.add_bits(Register::csr(window + 2), 1);
            volatile.add_bits(Register::csr(window + 3), 0xffff_8000);
        }
        volatile
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A text that names no volatile state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVolatile(pub String);

impl fmt::Display for UnknownVolatile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is neither a register (mip), bits of one (mstatus:0x6000) nor memory \
             (0x10000000:0x1000)",
            self.0
        )
    }
}

impl core::error::Error for UnknownVolatile {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_bits_change_by_themselves() {
        // Privileged manual, Sscofpmf: the filters do not.
        let volatile = Volatile::default();
        let bits = |name| volatile.bits(Register::from_name(name).unwrap());
        for name in ["mhpmevent3", "mhpmevent31"] {
            assert_eq!(bits(name), 1 << 63);
        }
        for name in ["mhpmevent3h", "mhpmevent31h"] {
            assert_eq!(bits(name), 1 << 31);
        }
        assert_eq!(bits("scountovf"), u64::MAX);
        assert_eq!(bits("mhpmcounter31"), u64::MAX);
        assert_eq!(bits("mcountinhibit"), 0);
    }

    #[test]
    fn cycles_of_control_transfer_records_are_volatile() {
        // CTR 5.3 and 3.2: they depend on the pipeline, not on the program.
        let volatile = Volatile::default();
        let bits = |name| volatile.bits(Register::from_name(name).unwrap());
        assert_eq!((bits("sireg3"), bits("sireg2")), (0xffff_8000, 1));
        assert_eq!((bits("mireg3"), bits("vsireg2")), (0xffff_8000, 1));
        assert_eq!(bits("sireg"), 0);
    }

    #[test]
    fn texts() {
        let mut volatile = Volatile::nothing();
        volatile.add("mip").unwrap();
        volatile.add("mstatus:0x6000").unwrap();
        volatile.add("mstatus:1").unwrap();
        volatile.add("0x10000000:0x100").unwrap();
        let bits = |name| volatile.bits(Register::from_name(name).unwrap());
        assert_eq!(bits("mip"), u64::MAX);
        assert_eq!(bits("mstatus"), 0x6001);
        assert_eq!(bits("mie"), 0);
        assert!(volatile.touches(0x1000_00ff, 1));
        assert!(volatile.touches(0x0fff_fffc, 8));
        assert!(!volatile.touches(0x1000_0100, 8));
        for bad in ["", "nothing", "0x1000", "0x1000:0", "mip:x", "1:2:3"] {
            assert!(volatile.add(bad).is_err(), "{bad}");
        }
    }
}
