//! `spike_pc_trace` of the E-Trace reference flow: one row per instruction.

use hartrace_isa::{Isa, length};

use super::{Fault, Stage, fields, flag, number};
use crate::lines::{Line, Lines};
use crate::site::{Exits, Site};
use crate::{LineError, LineErrorKind as Kind, unreported};
use hartrace_flow::{
    Cause, Context, Effects, HartId, Insn, Mode, Observer, Signal, Step, Trap, TrapStep,
};

/// Names of the columns, in the order of [`Row`].
const NAMES: [&str; 8] = [
    "valid",
    "address",
    "insn",
    "privilege",
    "exception",
    "ecause",
    "tval",
    "interrupt",
];

/// One row.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    valid: bool,
    address: u64,
    insn: u64,
    mode: Mode,
    exception: bool,
    cause: u64,
    tval: u64,
    interrupt: bool,
}

/// Reads `VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT`, by
/// name in any order. ADDRESS, INSN, PRIVILEGE, ECAUSE and TVAL are
/// hexadecimal.
///
/// A row with EXCEPTION or INTERRUPT set is a trap at its ADDRESS, where no
/// instruction retired; the next row is the handler. A row that cannot follow
/// the one before shows a trap of unknown cause, as in
/// [`PcReader`](super::super::PcReader). Rows with VALID = 0 are ignored. When
/// the header is refused that is reported once and no row is read.
#[derive(Clone, Debug)]
pub struct SpikeCsvReader {
    lines: Lines,
    table: Table,
}

impl SpikeCsvReader {
    /// A reader for a hart of this instruction set.
    #[must_use]
    pub fn new(isa: Isa, hart: HartId) -> SpikeCsvReader {
        SpikeCsvReader {
            lines: Lines::default(),
            table: Table {
                isa,
                hart,
                stage: Stage::Header,
                places: [None; 8],
                width: 0,
                last: None,
                effects: unreported(),
            },
        }
    }

    /// Reads on.
    pub fn feed<O: Observer>(
        &mut self,
        chunk: &[u8],
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let SpikeCsvReader { lines, table } = self;
        lines.feed(chunk, |n, line| table.line(n, line, out, damaged));
    }

    /// The table has ended: gives the last step and ends the observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O, damaged: &mut impl FnMut(LineError)) {
        let SpikeCsvReader { lines, table } = self;
        lines.finish(|n, line| table.line(n, line, out, damaged));
        table.flush(out);
        out.finish();
    }
}

#[derive(Clone, Debug)]
struct Table {
    isa: Isa,
    hart: HartId,
    stage: Stage,
    /// Field of each of [`NAMES`].
    places: [Option<usize>; 8],
    /// Columns of the header.
    width: usize,
    /// The row whose successor is not known yet.
    last: Option<Row>,
    effects: Effects,
}

impl Table {
    fn line<O: Observer>(
        &mut self,
        number: u64,
        line: Line<'_>,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let read = line.and_then(|text| {
            self.read(text)
                .map_err(|(kind, at)| LineError::new(number, text, at, kind))
        });
        match read {
            Ok(None) => {}
            Ok(Some(row)) => {
                self.give(Some(row.address), out);
                self.last = Some(row);
            }
            Err(error) => {
                damaged(error);
                self.flush(out);
                out.step(self.hart, &Step::Signal(Signal::Lost), &self.effects);
            }
        }
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Row>, Fault> {
        if line.trim_ascii().is_empty() || self.stage == Stage::Refused {
            return Ok(None);
        }
        if self.stage == Stage::Rows {
            return self.row(line).map(|row| Some(row).filter(|r| r.valid));
        }
        self.stage = Stage::Refused;
        self.header(line)?;
        self.stage = Stage::Rows;
        Ok(None)
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        for (field, (at, text)) in fields(line).enumerate() {
            self.width = field + 1;
            for (name, place) in NAMES.iter().zip(&mut self.places) {
                if text.eq_ignore_ascii_case(name.as_bytes()) && place.replace(field).is_some() {
                    return Err((Kind::Header, at));
                }
            }
        }
        for (name, place) in NAMES.iter().zip(&self.places) {
            if place.is_none() {
                return Err((Kind::MissingColumn(name), 0));
            }
        }
        Ok(())
    }

    fn row(&self, line: &[u8]) -> Result<Row, Fault> {
        let mut row = Row::default();
        let mut count = 0;
        for (field, (at, text)) in fields(line).enumerate() {
            count = field + 1;
            let column = self.places.iter().position(|p| *p == Some(field));
            let fault = |kind| (kind, at);
            match column {
                Some(0) => row.valid = flag(text).map_err(fault)?,
                Some(1) => row.address = number(text, true).map_err(fault)?,
                Some(2) => row.insn = number(text, true).map_err(fault)?,
                Some(3) => {
                    let code = number(text, true).map_err(fault)?;
                    let mode = Mode::from_code(code);
                    row.mode = mode.ok_or(fault(Kind::Value("privilege")))?;
                }
                Some(4) => row.exception = flag(text).map_err(fault)?,
                Some(5) => row.cause = number(text, true).map_err(fault)?,
                Some(6) => row.tval = number(text, true).map_err(fault)?,
                Some(7) => row.interrupt = flag(text).map_err(fault)?,
                _ => {}
            }
        }
        if count == self.width {
            Ok(row)
        } else {
            Err((Kind::Fields, line.len()))
        }
    }

    /// Gives the row before, which went to `next` if that is known.
    fn give<O: Observer>(&mut self, next: Option<u64>, out: &mut O) {
        let Some(row) = self.last.take() else {
            return;
        };
        let bits = row.bits();
        if row.exception || row.interrupt {
            let bits = (!row.interrupt).then_some(bits);
            return self.trap(&row, row.address, next, row.cause(), bits, out);
        }
        let len = length(bits as u16);
        let site = Site::new(row.address, bits, len, self.isa, |_| None);
        let fits = next.filter(|&n| site.allows(n) || site.exits == Exits::Trap);
        let step = Step::Insn(Insn {
            pc: row.address,
            next: fits.unwrap_or(site.natural),
            time: 0,
            context: Context(0),
            bits,
            mode: row.mode,
        });
        out.step(self.hart, &step, &self.effects);
        if next.is_some() && fits.is_none() {
            self.trap(&row, site.natural, next, Cause::Unknown, None, out);
        }
    }

    fn trap<O: Observer>(
        &self,
        row: &Row,
        epc: u64,
        handler: Option<u64>,
        cause: Cause,
        bits: Option<u32>,
        out: &mut O,
    ) {
        let told = cause != Cause::Unknown;
        let step = Step::Trap(TrapStep {
            trap: Trap {
                epc: Some(epc),
                handler,
                cause,
                tval: told.then_some(row.tval),
                pending: None,
            },
            bits,
            mode: row.mode,
            context: Context(0),
            time: 0,
        });
        out.step(self.hart, &step, &self.effects);
    }

    fn flush<O: Observer>(&mut self, out: &mut O) {
        self.give(None, out);
    }
}

impl Row {
    fn bits(&self) -> u32 {
        if self.insn & 3 == 3 {
            self.insn as u32
        } else {
            self.insn as u32 & 0xffff
        }
    }

    fn cause(&self) -> Cause {
        // Some tools write the whole of xcause, interrupt bit included.
        let code = Some(self.cause as u32 & 0x7fff_ffff);
        if self.interrupt {
            Cause::Interrupt(code)
        } else {
            Cause::Exception(code)
        }
    }
}
