//! What is in a stretch of a trace: enough to know that a query has no use for it.

use crate::table::Table;
use hartrace_flow::{Packer, Unpacker};

/// The least and the greatest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least; more than [`Bounds::max`] if there are none.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

impl Bounds {
    /// Of no numbers.
    pub const EMPTY: Bounds = Bounds {
        min: u64::MAX,
        max: 0,
    };

    /// With a number.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Whether there is no number.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.min > self.max
    }

    /// Whether it has numbers from one to another.
    #[must_use]
    pub const fn meet(&self, low: u64, high: u64) -> bool {
        !self.is_empty() && self.min <= high && self.max >= low
    }

    fn save(self, out: &mut Packer) {
        out.number(self.is_empty().into());
        if !self.is_empty() {
            out.number(self.min);
            out.number(self.max - self.min);
        }
    }

    fn restore(saved: &mut Unpacker<'_>) -> Option<Bounds> {
        if saved.number()? != 0 {
            return Some(Bounds::EMPTY);
        }
        let min = saved.number()?;
        let max = min.checked_add(saved.number()?)?;
        Some(Bounds { min, max })
    }
}

/// Where rows begin. Most begin in the stretch in which they end; the few that began long
/// before it, such as `main` at the end of a trace, are known one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begins {
    /// The least, in order.
    first: Vec<u64>,
    /// All others.
    others: Bounds,
}

impl Begins {
    /// How many are known one by one.
    const FIRST: usize = 16;

    /// No rows.
    pub(crate) const NONE: Begins = Begins {
        first: Vec::new(),
        others: Bounds::EMPTY,
    };

    /// The begin of a row.
    #[inline]
    pub(crate) fn add(&mut self, begin: u64) {
        match self.first.last() {
            Some(last) if self.first.len() == Begins::FIRST && begin >= *last => {
                self.others.add(begin);
            }
            _ => self.add_first(begin),
        }
    }

    fn add_first(&mut self, begin: u64) {
        if self.first.len() == Begins::FIRST
            && let Some(last) = self.first.pop()
        {
            self.others.add(last);
        }
        let place = self.first.partition_point(|known| *known <= begin);
        self.first.insert(place, begin);
    }

    /// A place between which and the others rows may begin.
    pub(crate) fn reach(&mut self, place: u64) {
        self.others.add(place);
    }

    /// All in one piece.
    pub(crate) fn bounds(&self) -> Bounds {
        let mut bounds = self.others;
        let ends = [self.first.first(), self.first.last()];
        ends.into_iter().flatten().for_each(|end| bounds.add(*end));
        bounds
    }

    /// Whether a row may begin from one place to another.
    #[must_use]
    pub fn meet(&self, low: u64, high: u64) -> bool {
        self.others.meet(low, high) || self.first.iter().any(|begin| (low..=high).contains(begin))
    }

    fn save(&self, out: &mut Packer) {
        out.number(self.first.len() as u64);
        let mut before = 0;
        for begin in &self.first {
            out.number(begin.wrapping_sub(before));
            before = *begin;
        }
        self.others.save(out);
    }

    fn restore(saved: &mut Unpacker<'_>) -> Option<Begins> {
        let mut begins = Begins::NONE;
        let mut before = 0u64;
        for _ in 0..saved.count()? {
            before = before.wrapping_add(saved.number()?);
            begins.first.push(before);
        }
        begins.others = Bounds::restore(saved)?;
        Some(begins)
    }
}

/// The rows of a table and a hart in a stretch of a trace.
///
/// A row is in the stretch in which it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The table: calls, traps, or runs for everything that has only a begin.
    pub table: Table,
    /// The hart.
    pub hart: u32,
    /// How many rows there are; `None` if they were not counted.
    pub rows: Option<u64>,
    /// Their begins, in instructions.
    pub begin: Begins,
    /// Their ends.
    pub end: Bounds,
    /// The times of their begins, where they are known.
    pub begin_time: Begins,
    /// The times of their ends.
    pub end_time: Bounds,
    /// Their contexts, sorted; `None` for one that is not known.
    pub contexts: Vec<Option<u64>>,
    /// The keys of their functions, sorted, in the names of the index.
    pub functions: Vec<u32>,
}

impl Zone {
    pub(crate) const fn new(table: Table, hart: u32) -> Zone {
        Zone {
            table,
            hart,
            rows: None,
            begin: Begins::NONE,
            end: Bounds::EMPTY,
            begin_time: Begins::NONE,
            end_time: Bounds::EMPTY,
            contexts: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// A context among those of its rows. There are few, and mostly the last comes again.
    #[inline]
    pub(crate) fn add_context(&mut self, context: Option<u64>) {
        if self.contexts.last() != Some(&context) && !self.contexts.contains(&context) {
            self.contexts.push(context);
        }
    }

    pub(crate) fn save(&self, out: &mut Packer) {
        out.number(self.table as u64);
        out.number(self.hart.into());
        out.option(self.rows);
        self.begin.save(out);
        self.begin_time.save(out);
        self.end.save(out);
        self.end_time.save(out);
        out.number(self.contexts.len() as u64);
        self.contexts
            .iter()
            .for_each(|context| out.option(*context));
        out.number(self.functions.len() as u64);
        let mut before = 0;
        for key in &self.functions {
            out.number(u64::from(key.wrapping_sub(before)));
            before = *key;
        }
    }

    pub(crate) fn restore(saved: &mut Unpacker<'_>) -> Option<Zone> {
        let table = usize::try_from(saved.number()?).ok()?;
        let mut zone = Zone::new(
            *Table::ALL.get(table)?,
            u32::try_from(saved.number()?).ok()?,
        );
        zone.rows = saved.option()?;
        zone.begin = Begins::restore(saved)?;
        zone.begin_time = Begins::restore(saved)?;
        zone.end = Bounds::restore(saved)?;
        zone.end_time = Bounds::restore(saved)?;
        for _ in 0..saved.count()? {
            zone.contexts.push(saved.option()?);
        }
        let mut before = 0u32;
        for _ in 0..saved.count()? {
            before = before.wrapping_add(u32::try_from(saved.number()?).ok()?);
            zone.functions.push(before);
        }
        Some(zone)
    }
}
