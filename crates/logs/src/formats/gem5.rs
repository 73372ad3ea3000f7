//! gem5's `Exec`:
//!
//! `  1000: system.cpu: T0 : 0x80000000 @_start    : auipc t0, 0      : IntAlu :  D=0x0000000080000000  flags=(IsInteger)`
//!
//! The tick, the CPU, the thread, the pc with its symbol and, of a part of an instruction,
//! the number of the part, the text, the class, and what was computed. `A=` is the address
//! of an access. There is no instruction; the program has it.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::EntryAccess;
use crate::scan::{Fault, Scan};
use crate::text::decimal;
use hartrace_flow::{AccessKind, HartId, Touch};
use hartrace_isa::{Isa, Xlen};
use memchr::memrchr;

#[derive(Default)]
pub(super) struct Gem5 {
    /// There is an instruction that has not been given: it may have more parts.
    open: bool,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    start(&mut Scan::new(line)).is_ok_and(|start| start.is_some())
}

struct Start {
    time: u64,
    hart: u32,
    pc: u64,
    /// The number of a part of an instruction.
    part: Option<u64>,
}

/// `None` for lines of other flags.
fn start(scan: &mut Scan<'_>) -> Result<Option<Start>, Fault> {
    let time = scan.count("a tick in decimal")?;
    scan.need(b": ", "`: ` and the name of a CPU")?;
    let name = scan.until(|b| b == b':');
    scan.need(b": ", "`: ` after the name of the CPU")?;
    if let [b'A', digits @ ..] = scan.rest
        && digits.first().is_some_and(u8::is_ascii_digit)
    {
        scan.word();
        scan.spaces();
    }
    if let [b'T', rest @ ..] = scan.rest
        && rest.first().is_some_and(u8::is_ascii_digit)
    {
        scan.word();
        scan.need(b" : ", "` : ` after the thread")?;
    }
    if !scan.eat(b"0x") {
        return Ok(None);
    }
    let pc = scan.digits("a pc in hexadecimal")?;
    let place = until_colon(scan);
    let dot = memrchr(b'.', place);
    let part = dot.and_then(|dot| decimal(place.get(dot + 1..)?.trim_ascii()));
    let hart = hart_of(name);
    Ok(Some(Start {
        time,
        hart,
        pc,
        part,
    }))
}

/// The last number in the name of a CPU: `system.cpu1`, `board.processor.cores0.core`.
fn hart_of(name: &[u8]) -> u32 {
    let numbers = name.split(|b| !b.is_ascii_digit());
    let last = numbers.rev().find(|digits| !digits.is_empty());
    let number = last.and_then(decimal);
    number.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

/// What is before the next ` : `, which is passed.
fn until_colon<'a>(scan: &mut Scan<'a>) -> &'a [u8] {
    let all = core::mem::take(&mut scan.rest);
    let mut rest = Scan::new(all);
    let before = rest.before(b" : ", 1);
    if before.is_some() {
        scan.rest = rest.rest;
    }
    before.unwrap_or(all)
}

impl Grammar for Gem5 {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let tick = line.trim_ascii_start().first();
        if !tick.is_some_and(u8::is_ascii_digit) {
            return Ok(());
        }
        let mut scan = Scan::new(line);
        let Some(start) = start(&mut scan)? else {
            return Ok(());
        };
        until_colon(&mut scan);
        let class = until_colon(&mut scan);
        // An instruction that consists of parts, before them.
        if class.is_empty() {
            return Ok(());
        }
        let more = start.part.is_some_and(|part| part > 0);
        if !(more && self.open && to.entry.pc == start.pc) {
            self.give(to)?;
            let Some(bits) = to.steps.code(start.pc) else {
                return Err((Kind::MissingCode(start.pc), 0));
            };
            let entry = to.begin(start.pc, Some(bits));
            (entry.hart, entry.time) = (HartId(start.hart), start.time);
            // Registers are not named.
            entry.incomplete = true;
            self.open = true;
        }
        results(&mut scan, to)?;
        match start.part {
            Some(_) => Ok(()),
            None => self.give(to),
        }
    }

    fn close(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.give(to)
    }
}

impl Gem5 {
    fn give(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        match core::mem::take(&mut self.open) {
            true => to.give(),
            false => Ok(()),
        }
    }
}

/// ` D=0x... A=0x...  flags=(...)`
fn results(scan: &mut Scan<'_>, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
    let (mut data, mut addr) = (None, None);
    loop {
        scan.spaces();
        let at = scan.at();
        let bad = (Kind::Expected("a value in hexadecimal"), at);
        match scan.rest {
            // The flags are the last.
            [] | [b'f', b'l', b'a', b'g', b's', b'=', ..] => break,
            // Vectors are longer.
            [b'D', b'=', value @ ..] => {
                scan.rest = value;
                data = scan.value();
            }
            [b'A', b'=', value @ ..] => {
                scan.rest = value;
                addr = Some(scan.value().ok_or(bad)?);
            }
            _ => {
                scan.word();
            }
        }
    }
    let Some(addr) = addr else {
        return Ok(());
    };
    let isa = match to.steps.xlen() {
        Xlen::Rv32 => Isa::RV32GC,
        Xlen::Rv64 => Isa::RV64GC,
    };
    let touch = Touch::of(to.entry.bits.unwrap_or_default(), isa);
    let store = match touch {
        Touch::Accesses { kind, .. } => kind == AccessKind::Store,
        Touch::Conditional { .. } => true,
        _ => false,
    };
    to.entry.access(EntryAccess {
        store,
        addr,
        data,
        ..EntryAccess::default()
    });
    Ok(())
}
