//! Where things are and what they are called.

use crate::settings::Elf;
use hartrace_analyze::{Lines, Names};
use hartrace_flow::{exception_name, interrupt_name};
use hartrace_isa::{Isa, Resolve, Style, Xlen, decode};
use hartrace_tandem::Register;
use std::fmt;

/// Bytes behind a symbol where it has no more to do with an address.
const FAR: u64 = 16 << 20;

/// What is known of the addresses of the programs.
pub(super) struct Places<'a> {
    names: Names,
    lines: Vec<Lines<'a>>,
    style: Style,
}

impl<'a> Places<'a> {
    pub(super) fn new(elf: &'a [Elf], isa: Isa) -> Places<'a> {
        let mut names = Names::new();
        for elf in elf {
            // One without symbols has no names.
            let _ = names.add_elf(&elf.bytes, None);
        }
        Places {
            names,
            lines: elf
                .iter()
                .filter_map(|elf| Lines::from_elf(&elf.bytes))
                .collect(),
            style: Style::new(isa),
        }
    }

    /// `main+0x10`.
    pub(super) fn symbol(&self, address: u64) -> Option<String> {
        let (_, distance) = self.names.lookup(address)?;
        if distance > FAR {
            return None;
        }
        Some(self.names.label(address).to_string())
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
        let line = self.lines.iter().find_map(|lines| lines.lookup(address))?;
        Some((line.file, line.line))
    }

    /// An instruction as text.
    pub(super) fn text(&self, pc: u64, bits: u32) -> String {
        let inst = decode(bits, self.style.isa);
        let text = inst.text(pc, &self.style).resolve(self).to_string();
        text.replace('\t', " ")
    }

    pub(super) fn xlen(&self) -> Xlen {
        self.style.isa.xlen()
    }

    /// What a value of xcause means.
    pub(super) fn cause(&self, cause: u64) -> String {
        let top = self.xlen().bits() - 1;
        let code = (cause & !(1 << top)) as u32;
        match cause >> top & 1 {
            0 => named(exception_name(code), "exception", code),
            _ => interrupt(code),
        }
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

/// `machine timer interrupt (7)`.
pub(super) fn interrupt(code: u32) -> String {
    named(interrupt_name(code), "interrupt", code)
}

fn named(name: Option<&str>, kind: &str, code: u32) -> String {
    match name {
        Some(name) => format!("{name} ({code})"),
        None => format!("{kind} {code}"),
    }
}

/// An instruction as it is encoded: four digits or eight.
pub(super) fn encoding(bits: u32) -> String {
    match bits & 3 {
        3 => format!("{bits:08x}"),
        _ => format!("{bits:04x}"),
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
        let elf = include_bytes!("../../../../../programs/sieve/sieve-rv64gc.elf");
        let mut places = Places::new(&[], Isa::RV64GC);
        places.names.add_elf(elf, None).unwrap();
        let start = 0x8000_0000;
        assert_eq!(places.address(start), "0x80000000 <_start>");
        let far = start + (64 << 20);
        assert!(places.names.lookup(far).is_some());
        assert_eq!(places.address(far), "0x84000000");
        // j . + 4
        assert!(places.text(start, 0x0040_006f).ends_with(" <_start+0x4>"));
        assert!(places.text(far, 0x0040_006f).ends_with(" 84000004"));
    }
}
