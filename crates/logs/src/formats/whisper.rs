//! Whisper's text log:
//!
//! `#12 0  M 0000000080000000 00000297 r 0000000000000005 0000000080000000 auipc x5, 0x0`
//!
//! The number of the instruction, the hart, the mode, pc, instruction, and one thing that
//! it changed: `r`, `f`, `v` and a register, `c` and a CSR, `m` and an address, with the
//! value; then the text, after it the address of a load or store, `(exception)` or
//! `(interrupted)`. A line that ends with `+` is followed by another of the same instruction.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::{EntryAccess, EntryTrap};
use crate::scan::{Fault, Scan, cause_of, is_blank, mode_named};
use crate::text::prefixed_hex;
use hartrace_flow::{Cause, HartId, RegId};
use hartrace_isa::{Xlen, csr};
use memchr::memrchr;

#[derive(Default)]
pub(super) struct Whisper {
    /// The number of the instruction whose lines are read.
    open: Option<u64>,
    trapped: Option<Cause>,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    start(&mut Scan::new(line)).is_ok()
}

struct Start<'a> {
    tag: u64,
    hart: u32,
    mode: &'a [u8],
    pc: u64,
    narrow: bool,
    bits: u32,
}

fn start<'a>(scan: &mut Scan<'a>) -> Result<Start<'a>, Fault> {
    scan.need(b"#", "`#` and a number")?;
    let tag = scan.decimal("`#` and a number")?;
    let hart = scan.decimal("a hart number")?;
    let Ok(hart) = u32::try_from(hart) else {
        return scan.expected("a hart number");
    };
    let mode = scan.word();
    scan.spaces();
    let before = scan.at();
    let pc = scan.hex("a pc in hexadecimal")?;
    let narrow = scan.at() - before <= 8;
    let bits = scan.hex("an instruction in hexadecimal")? as u32;
    Ok(Start {
        tag,
        hart,
        mode,
        pc,
        narrow,
        bits,
    })
}

impl Grammar for Whisper {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        // Labels, page walks, and what the program prints.
        if is_blank(line) || !line.starts_with(b"#") {
            return Ok(());
        }
        let mut scan = Scan::new(line);
        let read = start(&mut scan)?;
        if self.open != Some(read.tag) || to.entry.hart != HartId(read.hart) {
            self.give(to)?;
            let Some(mode) = mode_named(read.mode) else {
                return Err((Kind::Expected("a mode: M, S, U, VS, VU or D"), 0));
            };
            let entry = to.begin(read.pc, Some(read.bits));
            (entry.hart, entry.mode) = (HartId(read.hart), Some(mode));
            entry.xlen = Some(if read.narrow { Xlen::Rv32 } else { Xlen::Rv64 });
            self.open = Some(read.tag);
        }
        self.change(&mut scan, read.bits, to)?;
        match scan.rest.trim_ascii_end().ends_with(b"+") {
            true => Ok(()),
            false => self.give(to),
        }
    }

    fn close(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.give(to)
    }
}

impl Whisper {
    fn change(
        &mut self,
        scan: &mut Scan<'_>,
        bits: u32,
        to: &mut Entries<'_, '_, '_, '_>,
    ) -> Result<(), Fault> {
        let kind = scan.word();
        let place = scan.hex("a register, CSR or address in hexadecimal")?;
        let first = to.entry.regs.is_empty() && to.entry.csrs.is_empty();
        let first = first && to.entry.accesses.is_empty();
        let entry = &mut *to.entry;
        match kind {
            b"r" | b"f" | b"c" | b"m" => {
                let value = scan.hex("a value in hexadecimal")?;
                match kind {
                    // x0 stands for nothing.
                    b"r" if place == 0 => {}
                    b"r" => entry.reg(RegId::X(place as u8 & 31), value),
                    b"f" => entry.reg(RegId::F(place as u8 & 31), value),
                    b"c" => entry.csr(place as u16 & 0xfff, value),
                    _ => entry.access(EntryAccess {
                        store: true,
                        addr: place,
                        data: Some(value),
                        ..EntryAccess::default()
                    }),
                }
            }
            b"v" => {
                scan.word();
                entry.incomplete = true;
            }
            _ => return scan.expected("`r`, `f`, `v`, `c` or `m`"),
        }
        if first {
            loads(scan.rest, bits, entry);
        }
        let rest = *scan;
        let ends = |mark| {
            let mut scan = rest;
            scan.before(mark, 0).is_some()
        };
        if ends(b"(exception)") {
            self.trapped = Some(Cause::Exception(None));
        } else if ends(b"(interrupted)") {
            self.trapped = Some(Cause::Interrupt(None));
        }
        Ok(())
    }

    /// Gives the instruction whose lines have been read.
    fn give(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let trapped = self.trapped.take();
        if self.open.take().is_none() {
            return Ok(());
        }
        if let Some(cause) = trapped {
            let narrow = to.entry.xlen == Some(Xlen::Rv32);
            let written = |numbers: [u16; 2]| {
                let mut writes = to.entry.csrs.iter().filter(|w| numbers.contains(&w.csr));
                writes.next().map(|write| write.value)
            };
            let cause =
                written([csr::MCAUSE, csr::SCAUSE]).map_or(cause, |value| cause_of(value, narrow));
            let tval = written([csr::MTVAL, csr::STVAL]);
            to.entry.trap = Some(EntryTrap { cause, tval });
        }
        to.give()
    }
}

/// The addresses of loads, in brackets after the text: `[0x1000]`, `[0x1000:0x80001000]`.
/// Those of stores are in lines of their own.
fn loads(text: &[u8], bits: u32, entry: &mut crate::Entry) {
    let stores =
        matches!(bits & 0x7f, 0x23 | 0x27) || matches!((bits & 3, bits >> 13 & 7), (0 | 2, 5..=7));
    let Some(open) = memrchr(b'[', text).filter(|_| !stores) else {
        return;
    };
    let inside = text.get(open + 1..).unwrap_or_default();
    let inside = inside.split(|&b| b == b']').next().unwrap_or_default();
    for address in inside.split(|&b| b == b';') {
        let mut parts = address.split(|&b| b == b':').map(prefixed_hex);
        if let Some(Some(addr)) = parts.next() {
            entry.access(EntryAccess {
                addr,
                paddr: parts.next().flatten(),
                ..EntryAccess::default()
            });
        }
    }
}
