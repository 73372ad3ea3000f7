//! QEMU's plugin `execlog`:
//!
//! `0, 0x80000000, 0x297, "auipc t0,0x0", load, 0x80001000, RAM, t0 -> 0x0000000080000000`
//!
//! The hart, the pc, the instruction, its text; accesses, with the name of the device
//! where the address is physical; registers, if they were asked for, whose values changed.
//! An instruction is listed before it executes: one that should access memory and has no
//! access may have trapped.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::EntryAccess;
use crate::scan::{Fault, Name, Scan, csv_fields, is_blank, register_or_csr};
use crate::text::{decimal, prefixed_hex};
use hartrace_flow::{HartId, Touch};
use hartrace_isa::{Isa, Xlen};

pub(super) struct Plugin;

pub(super) fn is_line(line: &[u8]) -> bool {
    start(&mut Scan::new(line)).is_ok()
}

/// Hart, pc and instruction, up to the text.
fn start(scan: &mut Scan<'_>) -> Result<(u32, u64, u32), Fault> {
    let begin = *scan;
    let hart = decimal(scan.until(|b| b == b',')).and_then(|hart| u32::try_from(hart).ok());
    let Some(hart) = hart else {
        return begin.expected("a vCPU number");
    };
    scan.need(b", 0x", "a pc in hexadecimal")?;
    let pc = scan.digits("a pc in hexadecimal")?;
    scan.need(b", 0x", "an instruction in hexadecimal")?;
    let bits = scan.digits("an instruction in hexadecimal")? as u32;
    scan.need(b", \"", "the text of the instruction")?;
    Ok((hart, pc, bits))
}

impl Grammar for Plugin {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        // Other options of -d write to the same file.
        if is_blank(line) || !line.first().is_some_and(u8::is_ascii_digit) {
            return Ok(());
        }
        let mut scan = Scan::new(line);
        let (hart, pc, bits) = start(&mut scan)?;
        scan.until(|b| b == b'"');
        scan.eat(b"\"");
        let entry = to.begin(pc, Some(bits));
        (entry.hart, entry.incomplete) = (HartId(hart), true);
        let offset = scan.at();
        let mut fields = csv_fields(scan.rest).skip(1).peekable();
        while let Some((at, field)) = fields.next() {
            if let b"load" | b"store" = field {
                let (at, addr) = fields.next().unwrap_or((at, b""));
                let addr = prefixed_hex(addr);
                let bad = (Kind::Expected("an address in hexadecimal"), offset + at);
                let addr = addr.ok_or(bad)?;
                let device = |next: &(usize, &[u8])| {
                    !matches!(next.1, b"load" | b"store") && !is_register(next.1)
                };
                let physical = fields.next_if(device).is_some();
                entry.access(EntryAccess {
                    store: field == b"store",
                    addr,
                    paddr: physical.then_some(addr),
                    ..EntryAccess::default()
                });
            } else if let Some((name, value)) = assignment(field) {
                let bad = (Kind::Expected("a value in hexadecimal"), offset + at);
                let value = prefixed_hex(value).ok_or(bad)?;
                match register_or_csr(name) {
                    Some(Name::Reg(reg)) => entry.reg(reg, value),
                    Some(Name::Csr(number)) => entry.csr(number, value),
                    Some(Name::Vector) | None => {}
                }
            } else {
                let what = "`load`, `store` or `register -> value`";
                return Err((Kind::Expected(what), offset + at));
            }
        }
        let isa = match to.steps.xlen() {
            Xlen::Rv32 => Isa::RV32GC,
            Xlen::Rv64 => Isa::RV64GC,
        };
        let accesses = match Touch::of(bits, isa) {
            Touch::Nothing => false,
            Touch::Accesses { kind, .. } => !kind.is_csr(),
            _ => true,
        };
        to.entry.unconfirmed = accesses && to.entry.accesses.is_empty();
        to.give()
    }
}

fn is_register(field: &[u8]) -> bool {
    assignment(field).is_some()
}

/// `name -> value`.
fn assignment(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let arrow = b" -> ";
    let at = field.windows(arrow.len()).position(|w| w == arrow)?;
    Some((field.get(..at)?, field.get(at + arrow.len()..)?))
}
