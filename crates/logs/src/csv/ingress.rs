//! The ingress port as a table: `encoder_input` of the E-Trace reference flow.

use alloc::vec::Vec;

use hartrace_isa::Itype;

use super::{Fault, Stage, fields, flag, number};
use crate::lines::{Line, Lines};
use crate::{BlockSteps, LineError, LineErrorKind as Kind};
use hartrace_flow::{Context, Ctype, DataIngress, HartId, Ingress, Mode, Observer, Trigger};

/// Blocks that a port can retire in one cycle.
pub(crate) const MAX_GROUPS: usize = 8;

/// log2 of the largest access, in bytes.
const MAX_DSIZE: u8 = 3;

/// `ilastsize` of the longest instruction, 176 bits.
const MAX_LAST_SIZE: u8 = 4;

/// What `iretire` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Iretire {
    /// Instructions, 0 or 1: the reference flow and single-retirement ports
    /// (E-Trace 4.2.1). The halfwords of a block are then `1 << ilastsize`,
    /// which for an instruction of 48 bits, or another length that is no power
    /// of two, is more than it has. Steps take its length from the image.
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
    /// `trigger` as E-Trace 2.0 has it, not in the reference flow: trace-on and
    /// trace-off in bits 0 and 1, notify of block `k` in bit `2 + k`.
    pub trigger: bool,
    /// `halted`, not in the reference flow.
    pub halted: bool,
    /// `reset`, not in the reference flow.
    pub reset: bool,
    /// `impdef`, not in the reference flow.
    pub impdef: bool,
    /// `external`, not in the reference flow and no signal of the port.
    pub external: bool,
    /// `lost`, not in the reference flow and no signal of the port.
    pub lost: bool,
    /// `power_down`, not in the reference flow and no signal of the port.
    pub power_down: bool,
    /// `pending`, not in the reference flow and no signal of the port: the time at which
    /// the interrupt of the row became pending, empty where there is none.
    pub pending: bool,
    /// `hart`, not in the reference flow and no signal of the port: the number of the hart
    /// whose port it is, in a table of several.
    pub hart: bool,
    /// Data accesses per cycle in their unified form, 0 to 8: `dretire_0`, `dtype_0`,
    /// `daddr_0`, `dsize_0`, `data_0`, `iaddr_lsbs_0` and so on (E-Trace table 4.9).
    pub accesses: u8,
}

impl IngressColumns {
    /// The columns of the reference flow, and those without which loss, halts and
    /// triggers could not be shown.
    #[must_use]
    pub fn with_sideband() -> IngressColumns {
        IngressColumns {
            trigger: true,
            halted: true,
            reset: true,
            external: true,
            lost: true,
            ..IngressColumns::default()
        }
    }
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
            external: false,
            lost: false,
            power_down: false,
            pending: false,
            hart: false,
            accesses: 0,
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
    /// `trigger_0` and so on: replicated, as in the draft.
    BlockTrigger,
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
    External,
    Lost,
    PowerDown,
    Pending,
    Hart,
    Dretire,
    Dtype,
    Daddr,
    Dsize,
    Data,
    IaddrLsbs,
    /// A column that is not ours.
    Other,
}

impl Column {
    pub(super) const NAMES: [(&'static str, Column); 27] = [
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
        ("external", Column::External),
        ("lost", Column::Lost),
        ("power_down", Column::PowerDown),
        ("pending", Column::Pending),
        ("hart", Column::Hart),
        ("dretire", Column::Dretire),
        ("dtype", Column::Dtype),
        ("daddr", Column::Daddr),
        ("dsize", Column::Dsize),
        ("data", Column::Data),
        ("iaddr_lsbs", Column::IaddrLsbs),
        // After the one without a number, which has the plain name.
        ("trigger", Column::BlockTrigger),
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
        (self as u8) <= Column::Ilastsize as u8 || self.is_data()
    }

    /// Whether it belongs to the data interface.
    fn is_data(self) -> bool {
        (Column::Dretire as u8..=Column::IaddrLsbs as u8).contains(&(self as u8))
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

/// A cycle of a hart: its blocks, and its data accesses in their unified form.
#[derive(Clone, Copy, Debug)]
pub struct IngressCycle<'a> {
    /// The hart; hart 0 where the table has one.
    pub hart: HartId,
    /// The blocks, oldest first.
    pub blocks: &'a [Ingress],
    /// The accesses of their instructions, in order.
    pub data: &'a [DataIngress],
}

/// Reads the ingress port from CSV: columns by name as in the reference flow
/// (`itype_0,cause,tval,priv,iaddr_0[,context][,time][,ctype][,sijump_0],`
/// `iretire_0,ilastsize_0`) in any order, groups `_0` to `_7`, and columns of
/// our own for the sideband (`trigger`, `halted`, `reset`, `impdef`,
/// `external`, `lost`, `power_down`, `pending`, `hart`) and for data accesses in their unified form
/// (`dretire_0`, `dtype_0`, `daddr_0`, `dsize_0`, `data_0`, `iaddr_lsbs_0`), which
/// belong to the instructions of the row in their order. Columns of other names are
/// ignored.
///
/// `trigger` is one signal, as in E-Trace 2.0, with a notify bit for each
/// block; or, as in the draft's table 4.5, `trigger_0`, `trigger_1` and so on
/// have three bits each. What a row has once stands in the block that
/// [`Ingress`] names; `cause`, `tval` and `pending` in the first where none traps, and
/// `lost` in the oldest.
///
/// `tval`, `iaddr` and `impdef` are hexadecimal, the rest decimal. Groups that
/// show nothing at the end of a row are left out, but for the first. When
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

    /// Reads on. `out` gets cycles with all they have, and `None` for a damaged row.
    pub fn feed_cycles(
        &mut self,
        chunk: &[u8],
        out: &mut dyn FnMut(Option<IngressCycle<'_>>),
        damaged: &mut dyn FnMut(LineError),
    ) {
        let IngressReader { lines, table } = self;
        lines.feed(chunk, |n, line| table.whole_cycle(n, line, out, damaged));
    }

    /// The table has ended, as for [`IngressReader::feed_cycles`].
    pub fn finish_cycles(
        &mut self,
        out: &mut dyn FnMut(Option<IngressCycle<'_>>),
        damaged: &mut dyn FnMut(LineError),
    ) {
        let IngressReader { lines, table } = self;
        lines.finish(|n, line| table.whole_cycle(n, line, out, damaged));
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
    /// The blocks of one cycle, oldest first.
    blocks: [Ingress; MAX_GROUPS],
    /// Those of the last row that show something.
    shown: usize,
    /// The same of data accesses.
    accesses: usize,
    data: [DataIngress; MAX_GROUPS],
    /// The hart of the last row, if the table has several.
    hart: Option<HartId>,
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
            Ok(Some(cycle)) => out(number, IngressRow::Blocks(cycle)),
            Err(error) => {
                damaged(error);
                out(number, IngressRow::Lost);
            }
        }
    }

    fn whole_cycle(
        &mut self,
        number: u64,
        line: Line<'_>,
        out: &mut dyn FnMut(Option<IngressCycle<'_>>),
        damaged: &mut dyn FnMut(LineError),
    ) {
        match self.line(number, line) {
            Ok(None) => {}
            Ok(Some(_)) => out(Some(IngressCycle {
                hart: self.hart.unwrap_or_default(),
                blocks: self.blocks.get(..self.shown).unwrap_or_default(),
                data: self.data.get(..self.accesses).unwrap_or_default(),
            })),
            Err(error) => {
                damaged(error);
                out(None);
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
        let single = self.retirement == Iretire::Instructions;
        let accesses = self.accesses;
        match self.line(number, line) {
            Ok(None) => {}
            Ok(Some(_)) => {
                let blocks = match self.hart {
                    None => blocks,
                    Some(hart) => match blocks.of(hart) {
                        Some(blocks) => blocks,
                        None => return damaged(LineError::whole(number, &[], Kind::TooManyHarts)),
                    },
                };
                let cycle = self.blocks.get(..self.shown).unwrap_or_default();
                if accesses > 0 {
                    blocks.show(self.data.get(..accesses).unwrap_or_default());
                }
                for block in cycle {
                    if single && block.ilastsize > 1 {
                        let block = blocks.sized(block);
                        blocks.block(number, &block, out, damaged);
                    } else {
                        blocks.block(number, block, out, damaged);
                    }
                }
            }
            Err(error) => {
                damaged(error);
                blocks.lose_all(out);
            }
        }
    }

    /// What a line holds: nothing but the header, or a cycle.
    fn line(&mut self, number: u64, line: Line<'_>) -> Result<Option<&[Ingress]>, LineError> {
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
            let twice = match column {
                Column::Other => false,
                Column::Trigger => self.has(Column::Trigger) || self.has(Column::BlockTrigger),
                Column::BlockTrigger if self.has(Column::Trigger) => true,
                _ => self.columns.contains(&(column, group)),
            };
            if twice {
                return Err((Kind::Header, at));
            }
            match column.is_data() {
                true => self.accesses = self.accesses.max(group + 1),
                false => self.groups = self.groups.max(group + 1),
            }
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

    fn has(&self, column: Column) -> bool {
        self.columns.iter().any(|c| c.0 == column)
    }

    fn layout(&self) -> IngressColumns {
        let has = |column| self.has(column);
        IngressColumns {
            groups: self.groups as u8,
            context: has(Column::Context),
            time: has(Column::Time),
            ctype: has(Column::Ctype),
            sijump: has(Column::Sijump),
            trigger: has(Column::Trigger) || has(Column::BlockTrigger),
            halted: has(Column::Halted),
            reset: has(Column::Reset),
            impdef: has(Column::Impdef),
            external: has(Column::External),
            lost: has(Column::Lost),
            power_down: has(Column::PowerDown),
            pending: has(Column::Pending),
            hart: has(Column::Hart),
            accesses: self.accesses as u8,
        }
    }

    /// Reads the blocks of a row; those that show something are at the front.
    fn cycle(&mut self, line: &[u8]) -> Result<&[Ingress], Fault> {
        let mut shared = Ingress::default();
        let mut trigger = 0;
        let blocks = self.blocks.get_mut(..self.groups).unwrap_or_default();
        blocks.fill(Ingress::default());
        self.data = [DataIngress::default(); MAX_GROUPS];
        let mut texts = fields(line);
        for &(column, group) in &self.columns {
            let (at, text) = texts.next().ok_or((Kind::Fields, line.len()))?;
            let block = match blocks.get_mut(group) {
                Some(block) if column.is_grouped() => block,
                _ => &mut shared,
            };
            if column.is_data() {
                if let Some(data) = self.data.get_mut(group) {
                    set_data(data, column, text).map_err(|kind| (kind, at))?;
                }
            } else if column == Column::Hart {
                let hart = number(text, false).map_err(|kind| (kind, at))?;
                self.hart = Some(HartId(hart));
            } else if column == Column::Trigger {
                trigger = triggers(text, self.groups).map_err(|kind| (kind, at))?;
            } else {
                set(block, column, text).map_err(|kind| (kind, at))?;
            }
        }
        if let Some((at, _)) = texts.next() {
            return Err((Kind::Fields, at));
        }
        if self.retirement == Iretire::Instructions {
            for block in blocks.iter_mut().filter(|b| b.iretire > 0) {
                if block.iretire > 1 {
                    return Err((Kind::Value("iretire"), 0));
                }
                block.iretire = 1 << block.ilastsize;
            }
        }
        let count = spread(blocks, &shared, trigger);
        self.shown = count;
        Ok(blocks.get(..count).unwrap_or_default())
    }
}

/// The trigger signal of a whole cycle of so many blocks.
fn triggers(text: &[u8], groups: usize) -> Result<u16, Kind> {
    let bits: u16 = number(text, false)?;
    if bits >> (2 + groups) == 0 {
        Ok(bits)
    } else {
        Err(Kind::Value("trigger"))
    }
}

/// Gives the blocks of a cycle what the cycle has once, each signal where
/// [`Ingress`] has it, and counts the blocks up to the last that shows
/// anything; the first always does.
fn spread(blocks: &mut [Ingress], shared: &Ingress, trigger: u16) -> usize {
    let notified = |index: usize| trigger >> (2 + index) & 1 != 0;
    let valid = |b: &Ingress| b.iretire > 0 || b.itype != Itype::None;
    let newest = blocks.iter().rposition(valid).unwrap_or(0);
    let traps = blocks.iter().position(|b| b.itype.is_trap()).unwrap_or(0);
    let mut count = newest + 1;
    for (index, block) in blocks.iter_mut().enumerate() {
        block.trigger.on |= index == 0 && trigger & 1 != 0;
        block.trigger.off |= index == newest && trigger & 2 != 0;
        block.trigger.notify |= notified(index);
        if block.trigger != Trigger::default() {
            count = count.max(index + 1);
        }
        block.block = index as u8;
        block.mode = shared.mode;
        block.context = shared.context;
        block.time = shared.time;
        block.halted = shared.halted;
        block.reset = shared.reset;
        block.power_down = shared.power_down;
        block.impdef = shared.impdef;
        if index == traps {
            (block.cause, block.tval) = (shared.cause, shared.tval);
            block.pending = shared.pending;
        }
        if index == 0 {
            block.ctype = shared.ctype;
            block.external = shared.external;
            block.lost = shared.lost;
        }
    }
    count
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
            if block.ilastsize > MAX_LAST_SIZE {
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
        Column::BlockTrigger => {
            let bits: u8 = number(text, false)?;
            if bits > 7 {
                return Err(wrong());
            }
            block.trigger = Trigger::from_bits(bits);
        }
        Column::Halted => block.halted = flag(text)?,
        Column::Reset => block.reset = flag(text)?,
        Column::Impdef => block.impdef = number(text, true)?,
        Column::External => block.external = number(text, false)?,
        Column::Lost => block.lost = flag(text)?,
        Column::PowerDown => block.power_down = flag(text)?,
        Column::Pending if text.is_empty() => {}
        Column::Pending => block.pending = Some(dec(text)?),
        _ => {}
    }
    Ok(())
}

/// The same of the data interface.
fn set_data(data: &mut DataIngress, column: Column, text: &[u8]) -> Result<(), Kind> {
    match column {
        Column::Dretire => data.dretire = flag(text)?,
        Column::Dtype => data.dtype = number(text, false)?,
        Column::Daddr => data.daddr = number(text, true)?,
        Column::Dsize => {
            data.dsize = number(text, false)?;
            if data.dsize > MAX_DSIZE {
                return Err(Kind::Value("dsize"));
            }
        }
        Column::IaddrLsbs => data.iaddr_lsbs = number(text, true)?,
        Column::Data => {
            // Two values of 64 bits: more digits than a number has elsewhere.
            let low = text.len().saturating_sub(16);
            let (high, low) = text.split_at(if text.starts_with(b"0x") { 0 } else { low });
            let high: u64 = match high {
                [] => 0,
                high => number(high, true)?,
            };
            data.data = u128::from(high) << 64 | u128::from(number::<u64>(low, true)?);
        }
        _ => {}
    }
    Ok(())
}
