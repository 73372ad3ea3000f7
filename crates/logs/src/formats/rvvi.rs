//! RVVI-TEXT, version 0.1 draft: elements, each a word and its values. Comments are
//! between single quotes. A backslash continues a line. All elements of an instruction
//! are in the line of its `RET` or `TRAP`.

use super::{Entries, Grammar};
use crate::entry::EntryTrap;
use crate::scan::{Fault, Scan, cause_of};
use crate::text::{decimal, hex};
use hartrace_flow::{Cause, HartId, Mode, RegId};
use hartrace_isa::{Xlen, csr};

#[derive(Default)]
pub(super) struct Rvvi {
    hart: HartId,
    xlen: Option<Xlen>,
    /// The line goes on.
    continued: bool,
    /// A `RET` or `TRAP` of this line has not been given.
    open: Option<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Retired,
    Trapped,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    let mut words = Words(Scan::new(line));
    let params = line.starts_with(b"PARAMS ") || line.starts_with(b"VENDOR ");
    let first = words.next();
    let event = matches!(first, b"RET" | b"TRAP");
    let hart = first == b"HART" && decimal(words.next()).is_some();
    let event = event || (hart && matches!(words.next(), b"RET" | b"TRAP"));
    params || (event && hex(words.next()).is_some() && hex(words.next()).is_some())
}

/// Words without comments.
struct Words<'a>(Scan<'a>);

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a [u8] {
        loop {
            self.0.spaces();
            if !self.0.eat(b"'") {
                return self.0.until(|b| matches!(b, b' ' | b'\t' | b'\''));
            }
            self.0.until(|b| b == b'\'');
            self.0.eat(b"'");
        }
    }

    fn decimal(&mut self, what: &'static str) -> Result<u64, Fault> {
        let word = self.next();
        decimal(word).ok_or((crate::LineErrorKind::Expected(what), self.start(word)))
    }

    fn hex(&mut self, what: &'static str) -> Result<u64, Fault> {
        let word = self.next();
        // Of a value that is wider than a register the last digits count.
        let last = word.get(word.len().saturating_sub(16)..);
        let value = last.and_then(hex);
        value.ok_or((crate::LineErrorKind::Expected(what), self.start(word)))
    }

    fn start(&self, word: &[u8]) -> usize {
        self.0.at() - word.len()
    }
}

impl Grammar for Rvvi {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if !core::mem::take(&mut self.continued) {
            to.entry.clear();
        }
        let mut words = Words(Scan::new(line));
        loop {
            let word = words.next();
            match word {
                b"" => break,
                b"\\" => {
                    self.continued = true;
                    return Ok(());
                }
                _ => self.element(word, &mut words, to)?,
            }
        }
        self.give(to)
    }

    fn close(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.continued = false;
        self.give(to)
    }
}

impl Rvvi {
    fn element(
        &mut self,
        word: &[u8],
        words: &mut Words<'_>,
        to: &mut Entries<'_, '_, '_, '_>,
    ) -> Result<(), Fault> {
        match word {
            b"RET" => self.event(Event::Retired, words, to)?,
            b"TRAP" => self.event(Event::Trapped, words, to)?,
            b"HART" => {
                self.give(to)?;
                let at = words.0.at();
                let hart = words.decimal("a hart number")?;
                let fault = (crate::LineErrorKind::Expected("a hart number"), at);
                self.hart = HartId(u32::try_from(hart).map_err(|_| fault)?);
            }
            b"X" | b"F" => {
                let number = words.decimal("a register number")? as u8 & 31;
                let value = words.hex("a value in hexadecimal")?;
                to.entry.reg(
                    match word {
                        b"X" => RegId::X(number),
                        _ => RegId::F(number),
                    },
                    value,
                );
            }
            b"C" => {
                let number = words.hex("a CSR number in hexadecimal")? as u16 & 0xfff;
                let value = words.hex("a value in hexadecimal")?;
                to.entry.csr(number, value);
            }
            b"V" => {
                words.decimal("a register number")?;
                words.hex("a value in hexadecimal")?;
                to.entry.incomplete = true;
            }
            b"MODE" => {
                let code = words.hex("a privilege mode")?;
                let mode = u8::try_from(code).ok().and_then(Mode::from_code);
                to.entry.mode = to.entry.mode.or(mode);
            }
            b"DM" => {
                if words.hex("0 or 1")? != 0 {
                    to.entry.mode = Some(Mode::D);
                }
            }
            b"PARAMS" => self.parameters(words)?,
            b"META" => {
                for _ in 0..words.decimal("a number of words")?.min(1 << 16) {
                    words.next();
                }
            }
            b"ORDER" | b"ISSUE" => {
                words.decimal("a number")?;
            }
            b"NET" | b"VERSION" => {
                words.next();
                words.next();
            }
            b"VENDOR" => {
                words.next();
                words.decimal("a version")?;
                words.decimal("a version")?;
            }
            _ => {
                let what = "an element such as RET, TRAP, X or C";
                return Err((crate::LineErrorKind::Expected(what), words.start(word)));
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        event: Event,
        words: &mut Words<'_>,
        to: &mut Entries<'_, '_, '_, '_>,
    ) -> Result<(), Fault> {
        self.give(to)?;
        to.entry.pc = words.hex("a pc in hexadecimal")?;
        to.entry.bits = Some(words.hex("an instruction in hexadecimal")? as u32);
        self.open = Some(event);
        Ok(())
    }

    fn parameters(&mut self, words: &mut Words<'_>) -> Result<(), Fault> {
        for _ in 0..words.decimal("a number of parameters")?.min(64) {
            let (key, value) = (words.next(), words.next());
            self.xlen = match (key, value) {
                (b"XLEN", b"32") => Some(Xlen::Rv32),
                (b"XLEN", b"64") => Some(Xlen::Rv64),
                _ => self.xlen,
            };
        }
        Ok(())
    }

    /// Gives the instruction whose elements have been read.
    fn give(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let Some(event) = self.open.take() else {
            return Ok(());
        };
        let narrow = self.xlen.unwrap_or(to.steps.xlen()) == Xlen::Rv32;
        let entry = &mut *to.entry;
        (entry.hart, entry.xlen) = (self.hart, self.xlen);
        let written = |numbers: [u16; 2]| {
            let mut writes = entry.csrs.iter().filter(|w| numbers.contains(&w.csr));
            writes.next().map(|write| write.value)
        };
        let cause = written([csr::MCAUSE, csr::SCAUSE]).map(|value| cause_of(value, narrow));
        let tval = written([csr::MTVAL, csr::STVAL]);
        let system = entry.bits.is_some_and(|bits| bits & 0x7f == 0x73);
        match (event, cause) {
            (Event::Trapped, _) => {
                let cause = cause.unwrap_or(Cause::Exception(None));
                entry.trap = Some(EntryTrap { cause, tval });
            }
            // The CSRs that an interrupt writes are those of the first instruction of
            // its handler.
            (Event::Retired, Some(Cause::Interrupt(_))) if !system => entry.handler = cause,
            _ => {}
        }
        // Memory is not recorded.
        entry.incomplete = true;
        let given = to.give();
        to.entry.clear();
        given
    }
}
