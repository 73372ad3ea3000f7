//! The tracer of Ibex and of CV32E40P: a line for each instruction, of columns divided
//! by tabs or spaces.
//!
//! | column | |
//! |---|---|
//! | time | CV32E40P: with its unit |
//! | cycle | decimal |
//! | pc, instruction | hexadecimal |
//! | context | CV32E40P: `(C)` for an instruction that trapped |
//! | text | after `-->` for an instruction that trapped, after `==>` for the first of a handler |
//! | `x8=0x...`, `x8:0x...` | a register after it, and before it |
//! | `PA:0x...`, `store:0x....12ab`, `load:0x...` | an access; `?` stand for bytes that are not stored |

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::{Entry, EntryAccess};
use crate::scan::{Fault, Name, Scan, is_blank, register};
use crate::text::prefixed_hex;
use hartrace_flow::{AccessKind, Cause, RegId, Touch};
use hartrace_isa::{Isa, Xlen, decode};

pub(super) struct Ibex;

/// What is before the text.
struct Start {
    cycle: u64,
    pc: u64,
    bits: u32,
}

fn start(scan: &mut Scan<'_>) -> Result<Start, Fault> {
    scan.spaces();
    let begin = *scan;
    let time = scan.word();
    if time.is_empty() || !time.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        return begin.expected("a time in the first column");
    }
    let unit = *scan;
    if !scan.word().iter().all(u8::is_ascii_alphabetic) {
        *scan = unit;
    }
    let cycle = scan.decimal("a cycle in decimal")?;
    let pc = scan.hex("a pc in hexadecimal")?;
    let bits = scan.hex("an instruction in hexadecimal")? as u32;
    Ok(Start { cycle, pc, bits })
}

pub(super) fn is_line(line: &[u8]) -> bool {
    let mut scan = Scan::new(line);
    let begins = start(&mut scan).is_ok();
    let text = scan.word();
    let passed = line.get(..scan.at() - text.len()).unwrap_or_default();
    // An instruction has four or eight digits.
    let mut code = passed.trim_ascii_end().split(|b| b.is_ascii_whitespace());
    let code = code.next_back().unwrap_or_default();
    let text = text.first().copied().unwrap_or_default();
    begins && matches!(code.len(), 4 | 8) && (text.is_ascii_alphabetic() || b"-=(".contains(&text))
}

impl Grammar for Ibex {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if is_blank(line) || line.trim_ascii_start().starts_with(b"Time") {
            return Ok(());
        }
        let mut scan = Scan::new(line);
        let Start { cycle, pc, bits } = start(&mut scan)?;
        let entry = to.begin(pc, Some(bits));
        (entry.time, entry.xlen) = (cycle, Some(Xlen::Rv32));
        scan.spaces();
        if scan.eat(b"(C)") || scan.eat(b"-->") {
            entry.trapped(Cause::Exception(None));
        } else if scan.eat(b"==>") {
            entry.handler = Some(Cause::Interrupt(None));
        }
        let mut operands = Operands::default();
        loop {
            scan.spaces();
            let at = scan.at();
            let word = scan.word();
            if word.is_empty() {
                break;
            }
            operands.word(word, entry).map_err(|what| (what, at))?;
        }
        operands.end(bits, entry);
        to.give()
    }
}

/// What the words after the text say about memory.
#[derive(Default)]
struct Operands {
    address: Option<u64>,
    stored: Option<(u64, u8)>,
    /// Registers that were read.
    read: [Option<(RegId, u64)>; 3],
}

impl Operands {
    fn word(&mut self, word: &[u8], entry: &mut Entry) -> Result<(), Kind> {
        let Some(mark) = word.iter().position(|b| matches!(b, b'=' | b':')) else {
            return Ok(());
        };
        let (name, value) = word.split_at_checked(mark).unwrap_or_default();
        let value = value.get(1..).unwrap_or_default();
        let bad = Kind::Expected("a value in hexadecimal");
        if name == b"store" {
            let digits = value.strip_prefix(b"0x").unwrap_or(value);
            let unknown = digits.iter().take_while(|&&b| b == b'?').count();
            let known = digits.get(unknown..).unwrap_or_default();
            let known = known.split(|&b| b == b'+').next().unwrap_or_default();
            let size = known.len().max(2).ilog2() as u8 - 1;
            self.stored = Some((prefixed_hex(known).ok_or(bad)?, size));
            return Ok(());
        }
        let number = || {
            let value = value.split(|&b| b == b'+').next().unwrap_or_default();
            prefixed_hex(value).ok_or(bad)
        };
        if name == b"PA" {
            self.address = Some(number()?);
        } else if let Some(Name::Reg(reg)) = register(name) {
            // The value of a capability has a second part.
            entry.incomplete |= value.contains(&b'+');
            let value = number()?;
            if word.get(mark) == Some(&b'=') {
                let value = match reg {
                    RegId::X(_) => value,
                    RegId::F(_) => value | 0xffff_ffff_0000_0000,
                };
                entry.reg(reg, value);
            } else if let Some(slot) = self.read.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some((reg, value));
            }
        }
        Ok(())
    }

    /// What is loaded is in the register that it is loaded to; what is
    /// on the bus is not.
    fn end(&self, bits: u32, entry: &mut Entry) {
        let Some(addr) = self.address else {
            return;
        };
        let touch = Touch::of(bits, Isa::RV32GC);
        let kind = AccessKind::Store;
        let stores = match touch {
            Touch::Accesses { kind: found, .. } => found == kind,
            Touch::Conditional { .. } => true,
            _ => false,
        };
        let mut access = EntryAccess {
            store: stores || self.stored.is_some(),
            addr,
            ..EntryAccess::default()
        };
        if let Some((data, size)) = self.stored {
            (access.data, access.size) = (Some(data), Some(size));
        } else if stores {
            let rs2 = decode(bits, Isa::RV32GC).rs2.number();
            let read = self.read.iter().flatten();
            let mut found =
                read.filter(|(reg, _)| matches!(reg, RegId::X(n) | RegId::F(n) if *n == rs2));
            // x0 is not listed.
            let zero = (rs2 == 0).then_some(0);
            access.data = found.next_back().map(|(_, value)| *value).or(zero);
        }
        entry.access(access);
        // One address, several accesses: cm.push and its relatives.
        entry.incomplete |= touch.count() > 1;
    }
}
