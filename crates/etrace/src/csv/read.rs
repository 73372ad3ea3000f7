//! Packets from rows of a table.

use core::fmt;

use super::{COLUMNS, Cells, Column, NAMES, is_hex};
use crate::packet::bits::mask;
use crate::packet::read::map_width;
use crate::{
    BranchMap, Context, DataSupport, Layout, Packet, QualStatus, Report, Start, Support, Trap,
};

/// A row that is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvError {
    /// The column, counted from 1.
    pub column: usize,
    /// Its name; empty after the last one.
    pub name: &'static str,
    /// What is wrong there.
    pub reason: CsvReason,
}

/// What is wrong with a field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CsvReason {
    /// The row ends before it.
    TooFew,
    /// The row has more columns than there are.
    TooMany,
    /// Neither a number nor `_`.
    NotANumber,
    /// More bits than the field has.
    TooLarge,
    /// The packet needs it.
    Missing,
    /// The packet has no such field.
    Unexpected,
    /// A value without a meaning.
    Reserved,
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            CsvReason::TooFew => "the row ends before this column",
            CsvReason::TooMany => "the row has too many columns",
            CsvReason::NotANumber => "neither a number nor _",
            CsvReason::TooLarge => "the value has more bits than the field",
            CsvReason::Missing => "the packet needs a value here",
            CsvReason::Unexpected => "the packet has no such field",
            CsvReason::Reserved => "the value has no meaning",
        };
        write!(f, "column {}", self.column)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        write!(f, ": {reason}")
    }
}

impl core::error::Error for CsvError {}

fn error(column: usize, reason: CsvReason) -> CsvError {
    CsvError {
        column: column + 1,
        name: NAMES.get(column).copied().unwrap_or_default(),
        reason,
    }
}

/// Reads a row, with or without its end of line. Bits of `branch_map` above the
/// number of branches are ignored.
///
/// # Errors
///
/// The first column that does not fit the packet.
pub fn parse_row(line: &str, layout: &Layout) -> Result<Packet, CsvError> {
    let mut cells = Cells([None; COLUMNS]);
    let mut columns = line.trim_end_matches(['\r', '\n']).split(',');
    for (i, cell) in cells.0.iter_mut().enumerate() {
        let text = columns.next().ok_or(error(i, CsvReason::TooFew))?;
        *cell = number(text.trim(), i)?;
    }
    if columns.next().is_some() {
        return Err(error(COLUMNS, CsvReason::TooMany));
    }
    let mut row = Row { cells, layout };
    let packet = row.packet()?;
    match row.cells.0.iter().position(Option::is_some) {
        Some(column) => Err(error(column, CsvReason::Unexpected)),
        None => Ok(packet),
    }
}

/// The widths that optional columns need to hold what is in them; 0 for one
/// that no row fills.
pub(crate) struct Filled {
    pub(crate) context: u8,
    pub(crate) time: u8,
}

/// The widths of the optional columns of these rows.
pub(crate) fn filled<'r>(rows: impl Iterator<Item = &'r str>) -> Filled {
    let mut filled = Filled {
        context: 0,
        time: 0,
    };
    for row in rows {
        let width = |column: Column| {
            let text = row.split(',').nth(column as usize).unwrap_or("_");
            match number(text.trim(), column as usize) {
                Ok(Some(value)) if value > u64::from(u32::MAX) => 64,
                Ok(Some(_)) => 32,
                _ => 0,
            }
        };
        filled.context = filled.context.max(width(Column::Context));
        filled.time = filled.time.max(width(Column::Time));
    }
    filled
}

fn number(text: &str, column: usize) -> Result<Option<u64>, CsvError> {
    if text == "_" {
        return Ok(None);
    }
    let radix = if is_hex(column) { 16 } else { 10 };
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        return Err(error(column, CsvReason::NotANumber));
    }
    match u64::from_str_radix(text, radix) {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(error(column, CsvReason::TooLarge)),
    }
}

/// A row whose values are taken one by one.
struct Row<'l> {
    cells: Cells,
    layout: &'l Layout,
}

impl Row<'_> {
    /// The value of a column, which must be there unless it has no width.
    fn take(&mut self, column: Column, width: u8) -> Result<u64, CsvError> {
        if width == 0 {
            return Ok(0);
        }
        let value = self.optional(column, width)?;
        value.ok_or(error(column as usize, CsvReason::Missing))
    }

    fn optional(&mut self, column: Column, width: u8) -> Result<Option<u64>, CsvError> {
        let cell = self.cells.0.get_mut(column as usize);
        let value = cell.and_then(Option::take);
        match value {
            Some(value) if value & !mask(width.into()) != 0 => {
                Err(error(column as usize, CsvReason::TooLarge))
            }
            _ => Ok(value),
        }
    }

    fn flag(&mut self, column: Column) -> Result<bool, CsvError> {
        Ok(self.take(column, 1)? != 0)
    }

    fn packet(&mut self) -> Result<Packet, CsvError> {
        match self.take(Column::Format, 2)? {
            0 => self.format0(),
            1 => match self.take(Column::Branches, 5)? as u32 {
                0 => Ok(Packet::Branches {
                    map: self.map(31)?,
                    address: None,
                }),
                count => Ok(Packet::Branches {
                    map: self.map(count)?,
                    address: Some(self.report()?),
                }),
            },
            2 => Ok(Packet::Address(self.report()?)),
            _ => self.format3(),
        }
    }

    fn format0(&mut self) -> Result<Packet, CsvError> {
        let layout = self.layout;
        let implied = u64::from(layout.f0s_width == 0 && layout.bpred_size == 0);
        let told = self.optional(Column::Subformat, layout.f0s_width.max(1))?;
        match told.unwrap_or(implied) {
            0 if layout.bpred_size > 0 => self.branch_count(),
            1 if layout.cache_size > 0 => self.jump_target(),
            _ => Err(error(Column::Subformat as usize, CsvReason::Reserved)),
        }
    }

    fn branch_count(&mut self) -> Result<Packet, CsvError> {
        let branch_count = self.take(Column::BranchCount, 32)? as u32;
        let address = match self.take(Column::BranchFmt, 2)? {
            0 => None,
            1 => return Err(error(Column::BranchFmt as usize, CsvReason::Reserved)),
            fmt => Some((fmt == 3, self.report()?)),
        };
        Ok(Packet::BranchCount {
            branch_count,
            address,
        })
    }

    fn jump_target(&mut self) -> Result<Packet, CsvError> {
        let index = self.take(Column::Address, self.layout.cache_size)? as u16;
        let map = match self.take(Column::Branches, 5)? as u32 {
            0 => BranchMap::default(),
            count => self.map(count)?,
        };
        Ok(Packet::JumpTarget {
            index,
            map,
            irreport: self.flag(Column::Irreport)? != map.last(),
            irdepth: self.take(Column::Irdepth, self.layout.irdepth_width)? as u16,
        })
    }

    fn map(&mut self, count: u32) -> Result<BranchMap, CsvError> {
        let bits = self.take(Column::BranchMap, map_width(count) as u8)?;
        Ok(BranchMap {
            bits: (bits & mask(count)) as u32,
            count: count as u8,
        })
    }

    fn report(&mut self) -> Result<Report, CsvError> {
        let layout = self.layout;
        let address = self.take(Column::Address, layout.address_width())?;
        let sent = [
            self.flag(Column::Notify)?,
            self.flag(Column::Updiscon)?,
            self.flag(Column::Irreport)?,
        ];
        let irdepth = self.take(Column::Irdepth, layout.irdepth_width)? as u16;
        Ok(Report::from_sent(address, sent, irdepth, layout))
    }

    fn format3(&mut self) -> Result<Packet, CsvError> {
        match self.take(Column::Subformat, 2)? {
            0 => {
                let owner = self.owner()?;
                Ok(Packet::Start(Start {
                    branch: self.flag(Column::Branch)?,
                    privilege: owner.privilege,
                    time: owner.time,
                    context: owner.context,
                    address: self.take(Column::Address, self.layout.address_width())?,
                }))
            }
            1 => Ok(Packet::Trap(self.trap()?)),
            2 => Ok(Packet::Context(self.owner()?)),
            _ => Ok(Packet::Support(self.support()?)),
        }
    }

    fn owner(&mut self) -> Result<Context, CsvError> {
        let layout = self.layout;
        Ok(Context {
            privilege: self.take(Column::Privilege, layout.privilege_width)? as u8,
            time: self.take(Column::Time, layout.time_width())?,
            context: self.take(Column::Context, layout.context_width)?,
        })
    }

    fn trap(&mut self) -> Result<Trap, CsvError> {
        let layout = self.layout;
        let draft = layout.version.is_draft();
        let owner = self.owner()?;
        let interrupt = self.flag(Column::Interrupt)?;
        let thaddr = draft || self.flag(Column::Thaddr)?;
        let has_address = !(layout.implicit_exception && thaddr);
        Ok(Trap {
            branch: self.flag(Column::Branch)?,
            privilege: owner.privilege,
            time: owner.time,
            context: owner.context,
            ecause: self.take(Column::Ecause, layout.ecause_width)? as u32,
            interrupt,
            thaddr,
            address: match has_address {
                true => Some(self.take(Column::Address, layout.address_width())?),
                false => None,
            },
            tval: match layout.has_tval(interrupt) {
                true => Some(self.take(Column::Tval, layout.iaddress_width)?),
                false => None,
            },
        })
    }

    fn support(&mut self) -> Result<Support, CsvError> {
        let layout = self.layout;
        let data = match layout.doptions_width {
            Some(width) => Some(DataSupport {
                denable: self.optional(Column::Denable, 1)? == Some(1),
                dloss: self.optional(Column::Dloss, 1)? == Some(1),
                doptions: self.optional(Column::Doptions, width)?.unwrap_or(0) as u16,
            }),
            None => None,
        };
        // The reference encoder always has a column for it.
        let encoder_mode = match layout.encoder_mode_width {
            0 => self.optional(Column::EncoderMode, 0)?.unwrap_or(0),
            width => self.take(Column::EncoderMode, width)?,
        };
        let ioptions = match layout.ioptions_width {
            0 => self.optional(Column::Ioptions, 0)?.unwrap_or(0),
            width => self.take(Column::Ioptions, width)?,
        };
        Ok(Support {
            ienable: self.flag(Column::Ienable)?,
            encoder_mode: encoder_mode as u8,
            qual_status: QualStatus::from_bits(self.take(Column::QualStatus, 2)? as u8),
            ioptions: ioptions as u32,
            data,
        })
    }
}
