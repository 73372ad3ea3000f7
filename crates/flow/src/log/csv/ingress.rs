//! The ingress port as a table: `encoder_input` of the E-Trace reference flow.

use alloc::vec::Vec;

use hartrace_isa::Itype;

use super::{Fault, Stage, fields, flag, number};
use crate::log::lines::{Line, Lines};
use crate::log::{BlockSteps, LineError, LineErrorKind as Kind};
use crate::{Context, Ctype, Few, Ingress, Mode, Observer, Trigger};

/// Blocks that a port can retire in one cycle.
pub(in crate::log) const MAX_GROUPS: usize = 8;

/// The blocks of one cycle, oldest first.
pub(in crate::log) type Cycle = Few<Ingress, MAX_GROUPS>;

/// What `iretire` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Iretire {
    /// Instructions, 0 or 1: the reference flow and single-retirement ports
    /// (E-Trace 4.2.1).
    #[default]
    Instructions,
    /// Halfwords (`retires_p` blocks of any length).
    Halfwords,
}

/// The columns of a table. `cause`, `tval`, `priv` and, for each block,
/// `itype`, `iaddr`, `iretire` and `ilastsize` are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a column
pub struct IngressColumns {
    /// Blocks per cycle, 1 to 8: `itype_0`, `itype_1` and so on.
    pub groups: u8,
    /// `context` (`nocontext_p` = 0).
    pub context: bool,
    /// `time` (`notime_p` = 0).
    pub time: bool,
    /// `ctype` (`nocontext_p` = 0).
    pub ctype: bool,
    /// `sijump_0` (`sijump_p` = 1).
    pub sijump: bool,
    /// `trigger`, not in the reference flow.
    pub trigger: bool,
    /// `halted`, not in the reference flow.
    pub halted: bool,
    /// `reset`, not in the reference flow.
    pub reset: bool,
    /// `impdef`, not in the reference flow.
    pub impdef: bool,
}

impl Default for IngressColumns {
    /// The reference flow's default.
    fn default() -> Self {
        IngressColumns {
            groups: 1,
            context: true,
            time: false,
            ctype: true,
            sijump: false,
            trigger: false,
            halted: false,
            reset: false,
            impdef: false,
        }
    }
}

/// What a column holds. Signals above `Ilastsize` exist once per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Itype,
    Iaddr,
    Sijump,
    Iretire,
    Ilastsize,
    Cause,
    Tval,
    Priv,
    Context,
    Time,
    Ctype,
    Trigger,
    Halted,
    Reset,
    Impdef,
    /// Somebody else's column.
    Other,
}

impl Column {
    pub(super) const NAMES: [(&'static str, Column); 15] = [
        ("itype", Column::Itype),
        ("iaddr", Column::Iaddr),
        ("sijump", Column::Sijump),
        ("iretire", Column::Iretire),
        ("ilastsize", Column::Ilastsize),
        ("cause", Column::Cause),
        ("tval", Column::Tval),
        ("priv", Column::Priv),
        ("context", Column::Context),
        ("time", Column::Time),
        ("ctype", Column::Ctype),
        ("trigger", Column::Trigger),
        ("halted", Column::Halted),
        ("reset", Column::Reset),
        ("impdef", Column::Impdef),
    ];

    /// Those without which a row means nothing.
    const REQUIRED: [Column; 7] = [
        Column::Itype,
        Column::Cause,
        Column::Tval,
        Column::Priv,
        Column::Iaddr,
        Column::Iretire,
        Column::Ilastsize,
    ];

    fn is_grouped(self) -> bool {
        (self as u8) <= Column::Ilastsize as u8
    }

    fn name(self) -> &'static str {
        let named = Column::NAMES.iter().find(|n| n.1 == self);
        named.map_or("", |n| n.0)
    }

    /// The column of this name, and its block.
    fn named(text: &[u8]) -> (Column, usize) {
        for (name, column) in Column::NAMES {
            if text.eq_ignore_ascii_case(name.as_bytes()) {
                return (column, 0);
            }
            if let Some((head, [b'_', digits @ ..])) = text.split_at_checked(name.len())
                && column.is_grouped()
                && head.eq_ignore_ascii_case(name.as_bytes())
                && let Ok(group) = number::<usize>(digits, false)
            {
                return (column, group);
            }
        }
        (Column::Other, 0)
    }
}

/// A row of the table, or the place of one that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngressRow<'a> {
    /// The blocks of one cycle, oldest first; at least one.
    Blocks(&'a [Ingress]),
    /// A damaged row.
    Lost,
}

/// Reads the ingress port from CSV: columns by name as in the reference flow
/// (`itype_0,cause,tval,priv,iaddr_0[,context][,time][,ctype][,sijump_0],`
/// `iretire_0,ilastsize_0`) in any order, groups `_0` to `_7`, and columns of
/// our own for the sideband (`trigger`, `halted`, `reset`, `impdef`). Columns
/// of other names are ignored.
///
/// `tval`, `iaddr` and `impdef` are hexadecimal, the rest decimal. Groups that
/// retire nothing at the end of a row are left out, but for the first. When
/// the header is refused that is reported once and no row is read.
#[derive(Clone, Debug, Default)]
pub struct IngressReader {
    lines: Lines,
    table: Table,
}

impl IngressReader {
    /// A reader of tables with this kind of `iretire`.
    #[must_use]
    pub fn new(retirement: Iretire) -> IngressReader {
        IngressReader {
            lines: Lines::default(),
            table: Table {
                retirement,
                ..Table::default()
            },
        }
    }

    /// The columns of the header, once it was read; those of others left out.
    #[must_use]
    pub fn columns(&self) -> Option<IngressColumns> {
        (self.table.stage == Stage::Rows).then(|| self.table.layout())
    }

    /// Reads on. `out` gets rows and the numbers of their lines.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        out: &mut impl FnMut(u64, IngressRow<'_>),
        damaged: &mut impl FnMut(LineError),
    ) {
        let IngressReader { lines, table } = self;
        lines.feed(chunk, |n, line| table.row(n, line, out, damaged));
    }

    /// The table has ended.
    pub fn finish(
        &mut self,
        out: &mut impl FnMut(u64, IngressRow<'_>),
        damaged: &mut impl FnMut(LineError),
    ) {
        let IngressReader { lines, table } = self;
        lines.finish(|n, line| table.row(n, line, out, damaged));
    }

    /// Reads on, to steps.
    pub fn feed_steps<O: Observer>(
        &mut self,
        chunk: &[u8],
        blocks: &mut BlockSteps<'_>,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let IngressReader { lines, table } = self;
        lines.feed(chunk, |n, line| table.steps(n, line, blocks, out, damaged));
    }

    /// The table has ended: gives the last steps and ends the observer.
    pub fn finish_steps<O: Observer>(
        &mut self,
        blocks: &mut BlockSteps<'_>,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let IngressReader { lines, table } = self;
        lines.finish(|n, line| table.steps(n, line, blocks, out, damaged));
        blocks.finish(out);
    }
}

/// The header and what follows from it.
#[derive(Clone, Debug, Default)]
struct Table {
    retirement: Iretire,
    stage: Stage,
    /// What each field is, and of which block.
    columns: Vec<(Column, usize)>,
    groups: usize,
}

impl Table {
    fn row(
        &mut self,
        number: u64,
        line: Line<'_>,
        out: &mut impl FnMut(u64, IngressRow<'_>),
        damaged: &mut impl FnMut(LineError),
    ) {
        match self.line(number, line) {
            Ok(None) => {}
            Ok(Some(cycle)) => out(number, IngressRow::Blocks(&cycle)),
            Err(error) => {
                damaged(error);
                out(number, IngressRow::Lost);
            }
        }
    }

    fn steps<O: Observer>(
        &mut self,
        number: u64,
        line: Line<'_>,
        blocks: &mut BlockSteps<'_>,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        match self.line(number, line) {
            Ok(None) => {}
            Ok(Some(cycle)) => {
                for block in &*cycle {
                    blocks.block(number, block, out, damaged);
                }
            }
            Err(error) => {
                damaged(error);
                blocks.lost(out);
            }
        }
    }

    /// What a line holds: nothing but the header, or a cycle.
    fn line(&mut self, number: u64, line: Line<'_>) -> Result<Option<Cycle>, LineError> {
        let line = line?;
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let read = match self.stage {
            Stage::Refused => Ok(None),
            Stage::Rows => self.cycle(line).map(Some),
            Stage::Header => {
                let read = self.header(line);
                self.stage = match read {
                    Ok(()) => Stage::Rows,
                    Err(_) => Stage::Refused,
                };
                read.map(|()| None)
            }
        };
        read.map_err(|(kind, at)| LineError::new(number, line, at, kind))
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        for (at, name) in fields(line) {
            let (column, group) = Column::named(name);
            if group >= MAX_GROUPS || self.columns.len() >= 256 {
                return Err((Kind::Header, at));
            }
            if column != Column::Other && self.columns.contains(&(column, group)) {
                return Err((Kind::Header, at));
            }
            self.groups = self.groups.max(group + 1);
            self.columns.push((column, group));
        }
        for column in Column::REQUIRED {
            let groups = if column.is_grouped() { self.groups } else { 1 };
            if !(0..groups).all(|g| self.columns.contains(&(column, g))) {
                return Err((Kind::MissingColumn(column.name()), 0));
            }
        }
        Ok(())
    }

    fn layout(&self) -> IngressColumns {
        let has = |column| self.columns.iter().any(|c| c.0 == column);
        IngressColumns {
            groups: self.groups as u8,
            context: has(Column::Context),
            time: has(Column::Time),
            ctype: has(Column::Ctype),
            sijump: has(Column::Sijump),
            trigger: has(Column::Trigger),
            halted: has(Column::Halted),
            reset: has(Column::Reset),
            impdef: has(Column::Impdef),
        }
    }

    fn cycle(&self, line: &[u8]) -> Result<Cycle, Fault> {
        let mut shared = Ingress::default();
        let mut blocks = [Ingress::default(); MAX_GROUPS];
        let mut texts = fields(line);
        for &(column, group) in &self.columns {
            let (at, text) = texts.next().ok_or((Kind::Fields, line.len()))?;
            let block = match blocks.get_mut(group) {
                Some(block) if column.is_grouped() => block,
                _ => &mut shared,
            };
            set(block, column, text).map_err(|kind| (kind, at))?;
        }
        if let Some((at, _)) = texts.next() {
            return Err((Kind::Fields, at));
        }
        let mut cycle = Cycle::new();
        let used = blocks.iter().take(self.groups);
        let idle = |b: &&Ingress| b.iretire == 0 && b.itype == Itype::None;
        let last = used.clone().rposition(|b| !idle(&b)).unwrap_or(0);
        for (index, block) in used.enumerate().take(last + 1) {
            let mut block = Ingress {
                itype: block.itype,
                iaddr: block.iaddr,
                sijump: block.sijump,
                iretire: block.iretire,
                ilastsize: block.ilastsize,
                block: index as u8,
                ..shared
            };
            if self.retirement == Iretire::Instructions && block.iretire > 0 {
                if block.iretire > 1 {
                    return Err((Kind::Value("iretire"), 0));
                }
                block.iretire = 1 << block.ilastsize;
            }
            let _ = cycle.push(block);
        }
        Ok(cycle)
    }
}

/// Puts a field in its place.
fn set(block: &mut Ingress, column: Column, text: &[u8]) -> Result<(), Kind> {
    let wrong = || Kind::Value(column.name());
    let dec = |text| number::<u64>(text, false);
    match column {
        Column::Itype => {
            let code = number(text, false)?;
            block.itype = Itype::from_code(code).ok_or_else(wrong)?;
        }
        Column::Iaddr => block.iaddr = number(text, true)?,
        Column::Sijump => block.sijump = flag(text)?,
        Column::Iretire => block.iretire = number(text, false)?,
        Column::Ilastsize => {
            block.ilastsize = number(text, false)?;
            if block.ilastsize > 3 {
                return Err(wrong());
            }
        }
        Column::Cause => block.cause = number(text, false)?,
        Column::Tval => block.tval = number(text, true)?,
        Column::Priv => {
            block.mode = Mode::from_code(number(text, false)?).ok_or_else(wrong)?;
        }
        Column::Context => block.context = Context(dec(text)?),
        Column::Time => block.time = dec(text)?,
        Column::Ctype => {
            block.ctype = Ctype::from_code(number(text, false)?).ok_or_else(wrong)?;
        }
        Column::Trigger => {
            let bits: u8 = number(text, false)?;
            if bits > 7 {
                return Err(wrong());
            }
            block.trigger = Trigger::from_bits(bits);
        }
        Column::Halted => block.halted = flag(text)?,
        Column::Reset => block.reset = flag(text)?,
        Column::Impdef => block.impdef = number(text, true)?,
        Column::Other => {}
    }
    Ok(())
}
