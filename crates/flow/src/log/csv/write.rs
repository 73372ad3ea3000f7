//! The ingress port as a table, written.

use core::fmt::{self, Write};

use super::ingress::{IngressColumns, Iretire, MAX_GROUPS};
use crate::Ingress;

/// Why a row could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The sink refused the text.
    Sink,
    /// More blocks than the table has columns for.
    Groups(usize),
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
            RowError::Groups(n) => write!(f, "{n} blocks in a cycle do not fit the columns"),
            RowError::Halfwords(n) => {
                write!(f, "a block of {n} halfwords does not fit single retirement")
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
}

impl IngressWriter {
    /// A writer of these columns.
    #[must_use]
    pub fn new(columns: IngressColumns, retirement: Iretire) -> IngressWriter {
        IngressWriter {
            columns,
            retirement,
        }
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
        ] {
            out.write_str(if there { name } else { "" })?;
        }
        out.write_char('\n')
    }

    fn names(&self, out: &mut impl Write, name: &str) -> fmt::Result {
        (0..self.groups()).try_for_each(|group| write!(out, "{name}_{group},"))
    }

    /// Writes one cycle: its blocks, oldest first. Of the signals that exist
    /// once, the first block gives the levels and `ctype`; `cause` and `tval`
    /// are those of the block that traps, or else of the first; pulses and
    /// `lost` are written when any block has them. Missing blocks are written
    /// as idle.
    ///
    /// # Errors
    ///
    /// When `out` fails, or the blocks do not fit the columns; nothing is
    /// written then.
    pub fn write_row(&self, out: &mut impl Write, blocks: &[Ingress]) -> Result<(), RowError> {
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
        let idle = Ingress::default();
        let first = blocks.first().unwrap_or(&idle);
        let all = || {
            let padding = core::iter::repeat(&idle);
            blocks.iter().chain(padding).take(self.groups())
        };
        let has = &self.columns;
        for block in all() {
            write!(out, "{},", block.itype.code())?;
        }
        let mode = first.mode.code();
        let traps = blocks.iter().find(|b| b.itype.is_trap()).unwrap_or(first);
        write!(out, "{},{:x},{mode},", traps.cause, traps.tval)?;
        for block in all() {
            write!(out, "{:x},", block.iaddr)?;
        }
        if has.context {
            write!(out, "{},", first.context.0)?;
        }
        if has.time {
            write!(out, "{},", first.time)?;
        }
        if has.ctype {
            write!(out, "{},", first.ctype.code())?;
        }
        if has.sijump {
            for block in all() {
                write!(out, "{},", u8::from(block.sijump))?;
            }
        }
        for block in all() {
            write!(out, "{},", self.retired(block))?;
        }
        for (group, block) in all().enumerate() {
            write!(out, "{}{}", comma(group), block.ilastsize)?;
        }
        self.sideband(out, first, blocks)?;
        Ok(out.write_char('\n')?)
    }

    fn sideband(&self, out: &mut impl Write, first: &Ingress, blocks: &[Ingress]) -> fmt::Result {
        if self.columns.trigger {
            write!(out, ",{}", trigger(blocks))?;
        }
        if self.columns.halted {
            write!(out, ",{}", u8::from(first.halted))?;
        }
        if self.columns.reset {
            write!(out, ",{}", u8::from(first.reset))?;
        }
        if self.columns.impdef {
            write!(out, ",{:x}", first.impdef)?;
        }
        if self.columns.external {
            let pulses = blocks.iter().fold(0, |all, b| all | b.external);
            write!(out, ",{pulses}")?;
        }
        if self.columns.lost {
            write!(out, ",{}", u8::from(blocks.iter().any(|b| b.lost)))?;
        }
        Ok(())
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

fn comma(group: usize) -> &'static str {
    if group == 0 { "" } else { "," }
}
