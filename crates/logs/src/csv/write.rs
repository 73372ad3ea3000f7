//! Writes the ingress port as a table.

use core::fmt::{self, Write};

use super::ingress::{IngressColumns, Iretire, MAX_GROUPS};
use crate::text::spell16;
use hartrace_flow::{DataIngress, HartId, Ingress};

/// Why a row could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The sink refused the text.
    Sink,
    /// More blocks than the table has columns for.
    Groups(usize),
    /// More data accesses than the table has columns for.
    Accesses(usize),
    /// A block of several instructions in a table of single retirement.
    Halfwords(u32),
}

impl From<fmt::Error> for RowError {
    fn from(_: fmt::Error) -> RowError {
        RowError::Sink
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowError::Sink => f.write_str("the row could not be written"),
            RowError::Groups(n) => write!(f, "{n} blocks in a cycle do not fit into the columns"),
            RowError::Accesses(n) => {
                write!(
                    f,
                    "{n} data accesses in a cycle do not fit into the columns"
                )
            }
            RowError::Halfwords(n) => {
                write!(
                    f,
                    "a block of {n} halfwords cannot be written with single retirement"
                )
            }
        }
    }
}

impl core::error::Error for RowError {}

/// Writes the ingress port as CSV, as the E-Trace reference flow does, into
/// any [`core::fmt::Write`]. What [`IngressReader`](super::super::IngressReader)
/// reads from it is what was written, and a table in the order and the number
/// bases of the reference flow is written as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressWriter {
    columns: IngressColumns,
    retirement: Iretire,
    hart: HartId,
}

impl IngressWriter {
    /// A writer of these columns.
    #[must_use]
    pub fn new(columns: IngressColumns, retirement: Iretire) -> IngressWriter {
        IngressWriter {
            columns,
            retirement,
            hart: HartId(0),
        }
    }

    /// The same for rows of a hart.
    #[must_use]
    pub const fn of(self, hart: HartId) -> IngressWriter {
        IngressWriter { hart, ..self }
    }

    fn groups(&self) -> usize {
        usize::from(self.columns.groups).clamp(1, MAX_GROUPS)
    }

    /// Writes the names of the columns.
    ///
    /// # Errors
    ///
    /// When `out` fails.
    pub fn write_header(&self, out: &mut impl Write) -> fmt::Result {
        let has = &self.columns;
        self.names(out, "itype")?;
        out.write_str("cause,tval,priv,")?;
        self.names(out, "iaddr")?;
        for (there, name) in [
            (has.context, "context,"),
            (has.time, "time,"),
            (has.ctype, "ctype,"),
        ] {
            out.write_str(if there { name } else { "" })?;
        }
        if has.sijump {
            self.names(out, "sijump")?;
        }
        self.names(out, "iretire")?;
        for group in 0..self.groups() {
            write!(out, "{}ilastsize_{group}", comma(group))?;
        }
        for (there, name) in [
            (has.trigger, ",trigger"),
            (has.halted, ",halted"),
            (has.reset, ",reset"),
            (has.impdef, ",impdef"),
            (has.external, ",external"),
            (has.lost, ",lost"),
            (has.power_down, ",power_down"),
            (has.pending, ",pending"),
            (has.hart, ",hart"),
        ] {
            out.write_str(if there { name } else { "" })?;
        }
        for name in ["dretire", "dtype", "daddr", "dsize", "data", "iaddr_lsbs"] {
            for access in 0..self.accesses() {
                write!(out, ",{name}_{access}")?;
            }
        }
        out.write_char('\n')
    }

    fn names(&self, out: &mut impl Write, name: &str) -> fmt::Result {
        (0..self.groups()).try_for_each(|group| write!(out, "{name}_{group},"))
    }

    /// Writes one cycle: its blocks, oldest first. Of the signals that exist
    /// once, the first block gives the levels and `ctype`; `cause`, `tval` and
    /// `pending` are those of the block that traps, or else of the first; pulses and
    /// `lost` are written when any block has them. Missing blocks are written
    /// as idle.
    ///
    /// # Errors
    ///
    /// When `out` fails, or the blocks do not fit the columns; nothing is
    /// written then.
    pub fn write_row(&self, out: &mut impl Write, blocks: &[Ingress]) -> Result<(), RowError> {
        self.write_cycle(out, blocks, &[])
    }

    /// The same with data accesses in their unified form, in the order of their
    /// instructions.
    ///
    /// # Errors
    ///
    /// As [`IngressWriter::write_row`].
    pub fn write_cycle(
        &self,
        out: &mut impl Write,
        blocks: &[Ingress],
        data: &[DataIngress],
    ) -> Result<(), RowError> {
        if data.len() > self.accesses() {
            return Err(RowError::Accesses(data.len()));
        }
        if blocks.len() > self.groups() {
            return Err(RowError::Groups(blocks.len()));
        }
        if self.retirement == Iretire::Instructions {
            // One instruction: more than half of its rounded size.
            let long = |b: &&Ingress| {
                let most = 1 << (b.ilastsize & 7);
                b.iretire > most || (b.iretire > 0 && b.iretire <= most / 2)
            };
            if let Some(block) = blocks.iter().find(long) {
                return Err(RowError::Halfwords(block.iretire));
            }
        }
        let mut row = Row::default();
        self.cycle(&mut row, blocks);
        self.data(&mut row, data);
        Ok(out.write_str(row.text())?)
    }

    fn cycle(&self, row: &mut Row, blocks: &[Ingress]) {
        let idle = Ingress::default();
        let first = blocks.first().unwrap_or(&idle);
        let all = || {
            let padding = core::iter::repeat(&idle);
            blocks.iter().chain(padding).take(self.groups())
        };
        let has = &self.columns;
        let traps = blocks.iter().find(|b| b.itype.is_trap()).unwrap_or(first);
        all().for_each(|b| row.dec(b.itype.code().into()));
        row.dec(traps.cause.into());
        row.hex(traps.tval);
        row.dec(first.mode.code().into());
        all().for_each(|b| row.hex(b.iaddr));
        if has.context {
            row.dec(first.context.0);
        }
        if has.time {
            row.dec(first.time);
        }
        if has.ctype {
            row.dec(first.ctype.code().into());
        }
        if has.sijump {
            all().for_each(|b| row.dec(b.sijump.into()));
        }
        all().for_each(|b| row.dec(self.retired(b).into()));
        all().for_each(|b| row.dec(b.ilastsize.into()));
        if has.trigger {
            row.dec(trigger(blocks).into());
        }
        if has.halted {
            row.dec(first.halted.into());
        }
        if has.reset {
            row.dec(first.reset.into());
        }
        if has.impdef {
            row.hex(first.impdef.into());
        }
        if has.external {
            let pulses = blocks.iter().fold(0, |all, b| all | b.external);
            row.dec(pulses.into());
        }
        if has.lost {
            row.dec(blocks.iter().any(|b| b.lost).into());
        }
        if has.power_down {
            row.dec(first.power_down.into());
        }
        if has.pending {
            match traps.pending {
                Some(time) => row.dec(time),
                None => row.put(b""),
            }
        }
        if has.hart {
            row.dec(self.hart.0.into());
        }
    }

    fn accesses(&self) -> usize {
        usize::from(self.columns.accesses).min(MAX_GROUPS)
    }

    fn data(&self, row: &mut Row, data: &[DataIngress]) {
        let none = DataIngress::default();
        let all = || {
            let padding = core::iter::repeat(&none);
            data.iter().chain(padding).take(self.accesses())
        };
        all().for_each(|d| row.dec(d.dretire.into()));
        all().for_each(|d| row.dec(d.dtype.into()));
        all().for_each(|d| row.hex(d.daddr));
        all().for_each(|d| row.dec(d.dsize.into()));
        all().for_each(|d| row.wide(d.data));
        all().for_each(|d| row.hex(d.iaddr_lsbs));
    }

    fn retired(&self, block: &Ingress) -> u32 {
        match self.retirement {
            Iretire::Instructions => block.iretire.min(1),
            Iretire::Halfwords => block.iretire,
        }
    }
}

/// The one trigger signal of E-Trace 2.0.
fn trigger(blocks: &[Ingress]) -> u16 {
    let mut bits = 0;
    for (index, block) in blocks.iter().enumerate() {
        let trigger = block.trigger;
        bits |= u16::from(trigger.on) | u16::from(trigger.off) << 1;
        bits |= u16::from(trigger.notify) << (2 + index);
    }
    bits
}

/// One row, spelled without the machinery of formatting. The longest, eight
/// blocks and accesses with every column, has fewer than 1088 bytes.
struct Row {
    bytes: [u8; 1088],
    length: usize,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            bytes: [0; 1088],
            length: 0,
        }
    }
}

impl Row {
    /// The digits of a field, and the comma after it.
    #[inline]
    fn put(&mut self, digits: &[u8]) {
        let end = self.length + digits.len();
        if let Some([room @ .., comma]) = self.bytes.get_mut(self.length..end + 1) {
            room.copy_from_slice(digits);
            *comma = b',';
            self.length = end + 1;
        }
    }

    #[inline]
    fn dec(&mut self, mut value: u64) {
        let mut digits = [b'0'; 20];
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
            used += 1;
            if value == 0 {
                break;
            }
        }
        self.put(digits.get(20 - used..).unwrap_or_default());
    }

    #[inline]
    fn hex(&mut self, value: u64) {
        let zeros = (value | 1).leading_zeros() as usize / 4;
        self.put(spell16(value).get(zeros..).unwrap_or_default());
    }

    fn wide(&mut self, value: u128) {
        match (value >> 64) as u64 {
            0 => self.hex(value as u64),
            high => {
                let zeros = high.leading_zeros() as usize / 4;
                let mut digits = [0; 32];
                let (first, second) = digits.split_at_mut(16);
                first.copy_from_slice(&spell16(high));
                second.copy_from_slice(&spell16(value as u64));
                self.put(digits.get(zeros..).unwrap_or_default());
            }
        }
    }

    /// All of it, with a newline in place of the last comma.
    fn text(&mut self) -> &str {
        let all = self.bytes.get_mut(..self.length).unwrap_or_default();
        if let Some(last) = all.last_mut() {
            *last = b'\n';
        }
        core::str::from_utf8(all).unwrap_or_default()
    }
}

fn comma(group: usize) -> &'static str {
    if group == 0 { "" } else { "," }
}
