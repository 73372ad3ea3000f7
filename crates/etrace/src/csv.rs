//! Packets as rows of a table: the `te_inst` files of the reference models.
//!
//! A file is [`HEADER`] and one row for each packet, all lines ended by
//! [`LINE_END`]. Fields hold the bits as they are sent; `_` stands for a field
//! that the packet does not have. `address` and `tval` are hexadecimal, all
//! others decimal.
//!
//! The reference models know no format 0 and no draft. For them the column
//! `address` has the `index` of a jump target packet, which has no address, and
//! `tval` has the draft's `tvalepc`.

mod read;

pub(crate) use read::filled;
pub use read::{CsvError, CsvReason, parse_row};

use alloc::string::String;
use core::fmt::Write;

use crate::{Layout, Packet, Report, Support, Trap};

macro_rules! columns {
    ($($column:ident $name:literal),* $(,)?) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Column { $($column,)* }

        const NAMES: &[&str] = &[$($name,)*];
    };
}

columns! {
    Format "format",
    Subformat "subformat",
    Address "address",
    Branch "branch",
    Branches "branches",
    BranchMap "branch_map",
    BranchCount "branch_count",
    BranchFmt "branch_fmt",
    Context "context",
    Ecause "ecause",
    Ienable "ienable",
    EncoderMode "encoder_mode",
    Interrupt "interrupt",
    Irreport "irreport",
    Irdepth "irdepth",
    Notify "notify",
    Ioptions "ioptions",
    Privilege "privilege",
    QualStatus "qual_status",
    Time "time",
    Thaddr "thaddr",
    Tval "tval",
    Updiscon "updiscon",
    Denable "denable",
    Dloss "dloss",
    Doptions "doptions",
}

/// How many columns.
const COLUMNS: usize = NAMES.len();

/// The first line.
pub const HEADER: &str = "format,subformat,address,branch,branches,branch_map,branch_count,\
    branch_fmt,context,ecause,ienable,encoder_mode,interrupt,irreport,irdepth,notify,ioptions,\
    privilege,qual_status,time,thaddr,tval,updiscon,denable,dloss,doptions";

/// What the reference models end lines with.
pub const LINE_END: &str = "\r\n";

/// The columns whose numbers are hexadecimal.
const fn is_hex(column: usize) -> bool {
    column == Column::Address as usize || column == Column::Tval as usize
}

/// The values of a row.
#[derive(Clone, Copy)]
struct Cells([Option<u64>; COLUMNS]);

impl Cells {
    fn set(&mut self, column: Column, value: impl Into<u64>) {
        if let Some(cell) = self.0.get_mut(column as usize) {
            *cell = Some(value.into());
        }
    }

    /// A field that is there if it has a width.
    fn optional(&mut self, column: Column, width: u8, value: u64) {
        if width > 0 {
            self.set(column, value);
        }
    }

    fn report(&mut self, report: &Report, layout: &Layout) {
        let [notify, updiscon, irreport] = report.sent(layout);
        self.set(Column::Address, report.address);
        self.set(Column::Notify, notify);
        self.set(Column::Updiscon, updiscon);
        self.set(Column::Irreport, irreport);
        let width = layout.irdepth_width;
        self.optional(Column::Irdepth, width, report.irdepth.into());
    }

    fn owner(&mut self, privilege: u8, time: u64, context: u64, layout: &Layout) {
        self.set(Column::Privilege, privilege);
        self.optional(Column::Time, layout.time_width(), time);
        self.optional(Column::Context, layout.context_width, context);
    }

    fn trap(&mut self, trap: &Trap, layout: &Layout) {
        self.set(Column::Branch, trap.branch);
        self.owner(trap.privilege, trap.time, trap.context, layout);
        self.set(Column::Ecause, trap.ecause);
        self.set(Column::Interrupt, trap.interrupt);
        if !layout.version.is_draft() {
            self.set(Column::Thaddr, trap.thaddr);
        }
        if let Some(address) = trap.address {
            self.set(Column::Address, address);
        }
        if let Some(tval) = trap.tval {
            self.set(Column::Tval, tval);
        }
    }

    fn support(&mut self, support: &Support) {
        self.set(Column::Ienable, support.ienable);
        self.set(Column::EncoderMode, support.encoder_mode);
        self.set(Column::QualStatus, support.qual_status as u8);
        self.set(Column::Ioptions, support.ioptions);
        // The reference encoder reports nothing about data trace if there is none.
        let data = support.data.unwrap_or_default();
        if data != Default::default() {
            self.set(Column::Denable, data.denable);
            self.set(Column::Dloss, data.dloss);
            self.set(Column::Doptions, data.doptions);
        }
    }

    fn packet(&mut self, packet: &Packet, layout: &Layout) {
        match *packet {
            Packet::BranchCount {
                branch_count,
                address,
            } => {
                self.set(Column::BranchCount, branch_count);
                let fmt = match address {
                    None => 0u8,
                    Some((failed, _)) => 2 | u8::from(failed),
                };
                self.set(Column::BranchFmt, fmt);
                if let Some((_, report)) = address {
                    self.report(&report, layout);
                }
            }
            Packet::JumpTarget {
                index,
                map,
                irreport,
                irdepth,
            } => {
                self.set(Column::Address, index);
                self.set(Column::Branches, map.count);
                if map.count > 0 {
                    self.set(Column::BranchMap, map.bits);
                }
                self.set(Column::Irreport, irreport != map.last());
                self.optional(Column::Irdepth, layout.irdepth_width, irdepth.into());
            }
            Packet::Branches { map, address } => {
                let count = address.map_or(0, |_| map.count);
                self.set(Column::Branches, count);
                self.set(Column::BranchMap, map.bits);
                if let Some(report) = address {
                    self.report(&report, layout);
                }
            }
            Packet::Address(report) => self.report(&report, layout),
            Packet::Start(start) => {
                self.set(Column::Branch, start.branch);
                self.owner(start.privilege, start.time, start.context, layout);
                self.set(Column::Address, start.address);
            }
            Packet::Trap(trap) => self.trap(&trap, layout),
            Packet::Context(to) => self.owner(to.privilege, to.time, to.context, layout),
            Packet::Support(support) => self.support(&support),
        }
    }
}

/// Writes the row of a packet, without an end of line.
///
/// ```
/// use hartrace_etrace::{Config, Packet, Version, csv};
/// use hartrace_isa::Xlen;
///
/// let layout = Config::new(Version::V2_0, Xlen::Rv32).layout();
/// let packet = Packet::read(&[0xf2], &layout).unwrap();
/// let mut row = String::new();
/// csv::row(&packet, &layout, &mut row);
/// assert_eq!(row, "2,_,7ffffffc,_,_,_,_,_,_,_,_,_,_,1,_,1,_,_,_,_,_,_,1,_,_,_");
/// assert_eq!(csv::parse_row(&row, &layout), Ok(packet));
/// ```
pub fn row(packet: &Packet, layout: &Layout, out: &mut String) {
    let mut cells = Cells([None; COLUMNS]);
    cells.set(Column::Format, packet.format());
    if let Some(subformat) = packet.subformat() {
        cells.set(Column::Subformat, subformat);
    }
    cells.packet(packet, layout);
    for (i, cell) in cells.0.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        // Writing to a string cannot fail.
        let _ = match *cell {
            None => out.write_char('_'),
            Some(value) if is_hex(i) => write!(out, "{value:x}"),
            Some(value) => write!(out, "{value}"),
        };
    }
}

#[cfg(test)]
mod tests;
