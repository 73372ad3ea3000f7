//! Names of addresses and registers.

use crate::words;
use hartrace_analyze as analyze;
use hartrace_isa::{Isa, Resolve, Style, Xlen, decode};
use hartrace_tandem::Register;
use std::fmt;

/// The distance after a symbol up to which it names an address, in bytes.
const FAR: u64 = 16 << 20;

/// What is known of the addresses of the programs.
pub struct Places<'a> {
    known: analyze::Places<'a>,
    style: Style,
}

impl<'a> Places<'a> {
    /// No names are known of a program of this instruction set.
    #[must_use]
    pub fn new(isa: Isa) -> Places<'a> {
        Places {
            known: analyze::Places::new(),
            style: Style::new(isa),
        }
    }

    /// Adds the names and lines of an ELF file; a file without any adds
    /// nothing.
    pub fn add_elf(&mut self, elf: &'a [u8]) {
        let _ = self.known.add_elf(elf, None);
    }

    /// `main+0x10`.
    pub(super) fn symbol(&self, address: u64) -> Option<String> {
        let names = self.known.names();
        let (_, distance) = names.lookup(address)?;
        (distance <= FAR).then(|| names.label(address).to_string())
    }

    /// `0x80000010 <main+0x10>`.
    pub(super) fn address(&self, address: u64) -> String {
        match self.symbol(address) {
            Some(symbol) => format!("{address:#x} <{symbol}>"),
            None => format!("{address:#x}"),
        }
    }

    /// The file and the line.
    pub(super) fn line(&self, address: u64) -> Option<(&str, u32)> {
        let line = self.known.line(address)?;
        Some((line.file, line.line))
    }

    /// An instruction as text.
    pub(super) fn text(&self, pc: u64, bits: u32) -> String {
        let inst = decode(bits, self.style.isa);
        let text = inst.text(pc, &self.style).resolve(self).to_string();
        text.replace('\t', " ")
    }

    fn xlen(&self) -> Xlen {
        self.style.isa.xlen()
    }

    /// What a value of xcause means.
    pub(super) fn cause(&self, cause: u64) -> String {
        words::xcause(cause, self.xlen())
    }
}

impl Resolve for Places<'_> {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        write!(f, "{address:x}")?;
        match self.symbol(address) {
            Some(symbol) => write!(f, " <{symbol}>"),
            None => Ok(()),
        }
    }
}

/// Both names of a register: `a0 (x10)`, `mstatus (0x300)`.
pub(super) fn register(register: Register) -> String {
    match numbered(register) {
        Some(other) => format!("{register} ({other})"),
        None => register.to_string(),
    }
}

/// The name with a number; `None` where it has no other.
pub(super) fn numbered(register: Register) -> Option<String> {
    let number = register.number();
    match register.as_csr() {
        Some(csr) => hartrace_isa::csr::name(csr).map(|_| format!("{csr:#05x}")),
        None if register.is_float() => Some(format!("f{}", number & 31)),
        None => Some(format!("x{}", number & 31)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_symbols_say_nothing() {
        let elf = include_bytes!("../../../../programs/sieve/sieve-rv64gc.elf");
        let mut places = Places::new(Isa::RV64GC);
        places.add_elf(elf);
        let start = 0x8000_0000;
        assert_eq!(places.address(start), "0x80000000 <_start>");
        let far = start + (64 << 20);
        assert_eq!(places.address(far), "0x84000000");
        // j . + 4
        assert!(places.text(start, 0x0040_006f).ends_with(" <_start+0x4>"));
        assert!(places.text(far, 0x0040_006f).ends_with(" 84000004"));
    }
}
