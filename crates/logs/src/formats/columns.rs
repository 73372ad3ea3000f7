//! Lines of any other tool, described by their columns: a CSV, or a pattern.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::{EntryAccess, EntryTrap};
use crate::scan::{Fault, Name, cause_of, is_blank, mode_named, register};
use crate::text::{decimal, prefixed_hex};
use hartrace_flow::{Cause, HartId, Mode, RegId};
use hartrace_isa::Xlen;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Column {
    /// Address of the instruction.
    Pc,
    /// The instruction.
    Insn,
    /// The mode, as a digit (0, 1, 3) or a letter.
    Mode,
    /// The number of the hart.
    Hart,
    /// The time or cycle.
    Time,
    /// Where the hart goes next.
    Next,
    /// Not 0 where the row counts.
    Valid,
    /// Not 0 where the instruction trapped.
    Trap,
    /// Not 0 where the instruction is the first of a handler.
    Intr,
    /// The cause of the trap, as in `mcause`.
    Cause,
    /// The trap value.
    Tval,
    /// The register that is written: a number, or a name.
    Rd,
    /// Its value.
    RdValue,
    /// The floating-point register that is written.
    Frd,
    /// Its value.
    FrdValue,
    /// Address of a memory access.
    MemAddr,
    /// Which bytes from there on are read, a bit for each.
    MemRmask,
    /// Which bytes are written.
    MemWmask,
    /// What is read; its bytes are where those of the mask are.
    MemRdata,
    /// What is written.
    MemWdata,
}

/// How many there are.
const COUNT: usize = 20;

impl Column {
    /// All of them, with the names by which they are chosen.
    pub const NAMES: [(&'static str, Column); COUNT] = [
        ("pc", Column::Pc),
        ("insn", Column::Insn),
        ("mode", Column::Mode),
        ("hart", Column::Hart),
        ("time", Column::Time),
        ("next", Column::Next),
        ("valid", Column::Valid),
        ("trap", Column::Trap),
        ("intr", Column::Intr),
        ("cause", Column::Cause),
        ("tval", Column::Tval),
        ("rd", Column::Rd),
        ("rd_value", Column::RdValue),
        ("frd", Column::Frd),
        ("frd_value", Column::FrdValue),
        ("mem_addr", Column::MemAddr),
        ("mem_rmask", Column::MemRmask),
        ("mem_wmask", Column::MemWmask),
        ("mem_rdata", Column::MemRdata),
        ("mem_wdata", Column::MemWdata),
    ];

    /// The column with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Column> {
        let found = Column::NAMES.iter().find(|named| named.0 == name);
        found.map(|named| named.1)
    }

    fn name(self) -> &'static str {
        let found = Column::NAMES.iter().find(|named| named.1 == self);
        found.map_or("", |named| named.0)
    }

    /// Numbers without `0x` are decimal, unless something else is said.
    const fn is_decimal(self) -> bool {
        matches!(
            self,
            Column::Hart
                | Column::Time
                | Column::Valid
                | Column::Trap
                | Column::Intr
                | Column::Rd
                | Column::Frd
        )
    }
}

/// Why columns cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnsError {
    /// There is no pc.
    NoPc,
    /// There is no such column.
    Unknown(String),
    /// A column is there twice.
    Twice(Column),
    /// Two columns of a pattern have nothing between them.
    Adjacent,
    /// A brace of a pattern has no other.
    Brace,
}

impl fmt::Display for ColumnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnsError::NoPc => f.write_str("there is no `pc`"),
            ColumnsError::Unknown(name) => write!(f, "there is no column `{name}`"),
            ColumnsError::Twice(column) => write!(f, "`{}` is there twice", column.name()),
            ColumnsError::Adjacent => f.write_str("two columns have nothing between them"),
            ColumnsError::Brace => f.write_str("a brace has no other"),
        }
    }
}

impl core::error::Error for ColumnsError {}

/// The lines of a log, as columns.
///
/// ```
/// use hartrace_logs::{Column, Columns};
///
/// // cycle,address,code
/// Columns::csv(b',', &[(Column::Time, "cycle"), (Column::Pc, "address")])?;
/// // 17: 80000000 (00000297) t0=80000000
/// Columns::pattern("{time}: {pc} ({insn}) {rd}={rd_value}")?;
/// # Ok::<(), hartrace_logs::ColumnsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    shape: Shape,
    decimal: [bool; COUNT],
    ignore: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// A separator, and columns by their names in the first line, or by their numbers
    /// from 1 on.
    Table(u8, Vec<(Column, String)>),
    /// Text and columns in turn.
    Pattern(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Space,
    Column(Column),
    Anything,
}

impl Columns {
    /// A table: columns by their names in a header, in either case, or by their numbers
    /// from 1 on, if there is no header.
    ///
    /// # Errors
    ///
    /// Columns without a pc, or with one column twice.
    pub fn csv(separator: u8, columns: &[(Column, &str)]) -> Result<Columns, ColumnsError> {
        let mut seen = [false; COUNT];
        for (column, _) in columns {
            note(&mut seen, *column)?;
        }
        let named = columns
            .iter()
            .map(|(column, name)| (*column, (*name).to_owned()));
        Columns::checked(Shape::Table(separator, named.collect()), seen)
    }

    /// A pattern: text with columns in braces. Spaces stand for any number of spaces and
    /// tabs. `{*}` is text that does not matter; a last column extends to the end of the
    /// line.
    ///
    /// # Errors
    ///
    /// A pattern that is none.
    pub fn pattern(text: &str) -> Result<Columns, ColumnsError> {
        let (mut pieces, mut seen) = (Vec::new(), [false; COUNT]);
        let mut rest = text.trim();
        while !rest.is_empty() {
            let spaces = rest.trim_start();
            if spaces.len() < rest.len() {
                pieces.push(Piece::Space);
                rest = spaces;
            } else if let Some(inside) = rest.strip_prefix('{') {
                let (name, after) = inside.split_once('}').ok_or(ColumnsError::Brace)?;
                if matches!(pieces.last(), Some(Piece::Column(_) | Piece::Anything)) {
                    return Err(ColumnsError::Adjacent);
                }
                pieces.push(match name {
                    "*" => Piece::Anything,
                    _ => {
                        let unknown = || ColumnsError::Unknown(name.to_owned());
                        let column = Column::named(name).ok_or_else(unknown)?;
                        note(&mut seen, column)?;
                        Piece::Column(column)
                    }
                });
                rest = after;
            } else {
                let end = rest.find(|c: char| c == '{' || c.is_whitespace());
                let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
                if text.contains('}') {
                    return Err(ColumnsError::Brace);
                }
                pieces.push(Piece::Text(text.as_bytes().to_vec()));
                rest = after;
            }
        }
        Columns::checked(Shape::Pattern(pieces), seen)
    }

    /// Numbers of this column are decimal, or hexadecimal.
    #[must_use]
    pub fn with_decimal(mut self, column: Column, decimal: bool) -> Columns {
        if let Some(slot) = self.decimal.get_mut(column as usize) {
            *slot = decimal;
        }
        self
    }

    /// Lines that are not of this form are passed over.
    #[must_use]
    pub fn ignoring_others(mut self) -> Columns {
        self.ignore = true;
        self
    }

    fn checked(shape: Shape, seen: [bool; COUNT]) -> Result<Columns, ColumnsError> {
        if seen.first() != Some(&true) {
            return Err(ColumnsError::NoPc);
        }
        let mut decimal = [false; COUNT];
        for ((_, column), slot) in Column::NAMES.iter().zip(&mut decimal) {
            *slot = column.is_decimal();
        }
        Ok(Columns {
            shape,
            decimal,
            ignore: false,
        })
    }

    /// Whether a column is there.
    #[must_use]
    pub fn has(&self, column: Column) -> bool {
        match &self.shape {
            Shape::Table(_, columns) => columns.iter().any(|named| named.0 == column),
            Shape::Pattern(pieces) => pieces.contains(&Piece::Column(column)),
        }
    }
}

fn note(seen: &mut [bool; COUNT], column: Column) -> Result<(), ColumnsError> {
    match seen.get_mut(column as usize) {
        Some(slot) if !*slot => {
            *slot = true;
            Ok(())
        }
        _ => Err(ColumnsError::Twice(column)),
    }
}

/// The values of a line: the text of each column, and where it starts.
type Values<'a> = [Option<(usize, &'a [u8])>; COUNT];

/// Reads lines by columns.
#[derive(Default)]
pub(super) struct Reader {
    columns: Option<Columns>,
    /// Fields of a table, once its header has been read.
    places: Option<Vec<(usize, Column)>>,
}

impl Reader {
    pub(super) fn new(columns: Columns) -> Reader {
        Reader {
            columns: Some(columns),
            places: None,
        }
    }
}

impl Grammar for Reader {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        if is_blank(line) {
            return Ok(());
        }
        let Some(columns) = &self.columns else {
            return Err((Kind::Expected("columns in section [log.columns]"), 0));
        };
        let mut values: Values<'_> = [None; COUNT];
        let read = match &columns.shape {
            Shape::Table(separator, named) => {
                let Some(places) = &self.places else {
                    let (places, header) = places(line, *separator, named)?;
                    self.places = Some(places);
                    return match header {
                        true => Ok(()),
                        false => self.line(line, to),
                    };
                };
                fields(line, *separator, places, &mut values);
                Ok(())
            }
            Shape::Pattern(pieces) => matched(line, pieces, &mut values),
        };
        match read.and_then(|()| fill(columns, &values, to)) {
            Ok(true) => to.give(),
            Ok(false) => Ok(()),
            Err(_) if columns.ignore => Ok(()),
            Err(fault) => Err(fault),
        }
    }
}

/// Where the columns of a table are, by its first line; whether that is a header.
fn places(
    line: &[u8],
    separator: u8,
    named: &[(Column, String)],
) -> Result<(Vec<(usize, Column)>, bool), Fault> {
    let numbers = named
        .iter()
        .all(|(_, name)| decimal(name.as_bytes()).is_some_and(|n| n > 0));
    let mut places = Vec::new();
    for (column, name) in named {
        let place = match numbers {
            true => decimal(name.as_bytes()).map(|n| n as usize - 1),
            false => {
                let mut fields = line.split(|&b| b == separator).map(unquoted);
                fields.position(|field| field.eq_ignore_ascii_case(name.as_bytes()))
            }
        };
        places.push((
            place.ok_or((Kind::MissingColumn(column.name()), 0))?,
            *column,
        ));
    }
    Ok((places, !numbers))
}

fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    let bare = field
        .strip_prefix(b"\"")
        .and_then(|f| f.strip_suffix(b"\""));
    bare.unwrap_or(field)
}

fn fields<'a>(line: &'a [u8], separator: u8, places: &[(usize, Column)], values: &mut Values<'a>) {
    let mut at = 0;
    for (number, field) in line.split(|&b| b == separator).enumerate() {
        for (_, column) in places.iter().filter(|place| place.0 == number) {
            if let Some(slot) = values.get_mut(*column as usize) {
                *slot = Some((at, unquoted(field)));
            }
        }
        at += field.len() + 1;
    }
}

/// Compares a line with a pattern.
fn matched<'a>(line: &'a [u8], pieces: &[Piece], values: &mut Values<'a>) -> Result<(), Fault> {
    let mut at = line.len() - line.trim_ascii_start().len();
    let line = line.trim_ascii_end();
    let expected = |at| Err((Kind::Expected("a line of the form of the pattern"), at));
    for (index, piece) in pieces.iter().enumerate() {
        let rest = line.get(at..).unwrap_or_default();
        match piece {
            Piece::Text(text) if rest.starts_with(text) => at += text.len(),
            Piece::Text(_) => return expected(at),
            Piece::Space => {
                let len = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
                let last = index + 1 == pieces.len();
                if len == 0 && !(last || rest.is_empty()) {
                    return expected(at);
                }
                at += len;
            }
            Piece::Column(_) | Piece::Anything => {
                let len = match pieces.get(index + 1) {
                    Some(Piece::Text(text)) => rest.windows(text.len()).position(|w| w == text),
                    Some(Piece::Space) => {
                        let end = rest.iter().position(u8::is_ascii_whitespace);
                        Some(end.unwrap_or(rest.len()))
                    }
                    _ => Some(rest.len()),
                };
                let Some(len) = len else {
                    return expected(at);
                };
                if let Piece::Column(column) = piece
                    && let Some(slot) = values.get_mut(*column as usize)
                {
                    *slot = Some((at, rest.get(..len).unwrap_or_default().trim_ascii()));
                }
                at += len;
            }
        }
    }
    Ok(())
}

/// Fills the entry; `false` where the row does not count.
fn fill(
    columns: &Columns,
    values: &Values<'_>,
    to: &mut Entries<'_, '_, '_, '_>,
) -> Result<bool, Fault> {
    let row = Row { columns, values };
    if row.number(Column::Valid)? == Some(0) {
        return Ok(false);
    }
    let Some(pc) = row.number(Column::Pc)? else {
        return Err((Kind::MissingColumn("pc"), 0));
    };
    let narrow = to.steps.xlen() == Xlen::Rv32;
    let bits = row.number(Column::Insn)?.map(|bits| bits as u32);
    let entry = to.begin(pc, bits);
    let hart = row.number(Column::Hart)?.unwrap_or(0);
    let hart = u32::try_from(hart).map_err(|_| (Kind::Value("hart"), 0))?;
    entry.hart = HartId(hart);
    entry.time = row.number(Column::Time)?.unwrap_or(0);
    entry.next = row.number(Column::Next)?;
    entry.mode = row.mode()?;
    let cause = row
        .number(Column::Cause)?
        .map(|cause| cause_of(cause, narrow));
    let tval = row.number(Column::Tval)?;
    // Without a column of its own, a cause that is there is a trap.
    let trapped = match row.number(Column::Trap)? {
        Some(trap) => trap != 0,
        None => cause.is_some() && !columns.has(Column::Trap),
    };
    if trapped {
        let cause = cause.unwrap_or(Cause::Exception(None));
        entry.trap = Some(EntryTrap { cause, tval });
        // What is at a pc where a trap was taken may be anything.
        entry.next = None;
    } else if row.number(Column::Intr)?.is_some_and(|intr| intr != 0) {
        entry.handler = Some(cause.unwrap_or(Cause::Interrupt(None)));
    }
    for (rd, value, integer) in [
        (Column::Rd, Column::RdValue, true),
        (Column::Frd, Column::FrdValue, false),
    ] {
        if let (Some(reg), Some(value)) = (row.register(rd, integer)?, row.number(value)?)
            && reg != RegId::X(0)
        {
            entry.reg(reg, value);
        }
    }
    let memory = row.memory(&mut |access| entry.access(access))?;
    // Columns have no CSRs.
    entry.incomplete = !memory || bits.is_none_or(|bits| bits & 0x7f == 0x73);
    Ok(true)
}

/// The values of a line.
struct Row<'r, 'a> {
    columns: &'r Columns,
    values: &'r Values<'a>,
}

impl<'a> Row<'_, 'a> {
    /// What a column holds, if it is there and not empty.
    fn text(&self, column: Column) -> Option<(usize, &'a [u8])> {
        let value = self.values.get(column as usize).copied().flatten();
        value.filter(|(_, text)| !text.is_empty())
    }

    fn number(&self, column: Column) -> Result<Option<u64>, Fault> {
        let Some((at, text)) = self.text(column) else {
            return Ok(None);
        };
        let is_decimal = self.columns.decimal.get(column as usize) == Some(&true);
        let value = match is_decimal && !text.starts_with(b"0x") {
            true => decimal(text),
            false => prefixed_hex(text),
        };
        let value = value.ok_or((Kind::Value(column.name()), at))?;
        Ok(Some(value))
    }

    fn mode(&self) -> Result<Option<Mode>, Fault> {
        let Some((at, text)) = self.text(Column::Mode) else {
            return Ok(None);
        };
        let digit = prefixed_hex(text).and_then(|code| Mode::from_code(u8::try_from(code).ok()?));
        // `d` is a mode, not a number.
        let mode = mode_named(text).or(digit);
        mode.map(Some).ok_or((Kind::Value("mode"), at))
    }

    fn register(&self, column: Column, integer: bool) -> Result<Option<RegId>, Fault> {
        let Some((at, text)) = self.text(column) else {
            return Ok(None);
        };
        if let Some(Name::Reg(reg)) = register(text) {
            return Ok(Some(reg));
        }
        let number = self.number(column)?.and_then(|n| u8::try_from(n).ok());
        let number = number.filter(|&n| n < 32);
        let number = number.ok_or((Kind::Value(column.name()), at))?;
        Ok(Some(match integer {
            true => RegId::X(number),
            false => RegId::F(number),
        }))
    }

    /// Gives the accesses; whether there are columns for them.
    fn memory(&self, give: &mut dyn FnMut(EntryAccess)) -> Result<bool, Fault> {
        let addr = self.number(Column::MemAddr)?;
        for (mask, data, store) in [
            (Column::MemRmask, Column::MemRdata, false),
            (Column::MemWmask, Column::MemWdata, true),
        ] {
            let data = self.number(data)?;
            let bytes = self.number(mask)?;
            let Some(addr) = addr else {
                continue;
            };
            let there = bytes.map_or(data.is_some() && !self.columns.has(mask), |m| m != 0);
            if !there {
                continue;
            }
            let offset = bytes.map_or(0, u64::trailing_zeros);
            let count = bytes.map(u64::count_ones);
            give(EntryAccess {
                store,
                addr: addr.wrapping_add(offset.into()),
                paddr: None,
                size: count.map(|count| count.next_power_of_two().ilog2() as u8),
                data: data.map(|data| data.checked_shr(8 * offset).unwrap_or(0)),
            });
        }
        Ok(self.columns.has(Column::MemAddr))
    }
}
