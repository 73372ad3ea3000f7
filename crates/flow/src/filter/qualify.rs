//! Evaluates filters.

use alloc::vec::Vec;

use hartrace_isa::{Itype, Xlen};

use super::pair::{Pair, Seen};
use super::{FilterConfig, FilterUnit, TrapKind};
use crate::{DataIngress, Ingress};

/// What the filters say about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qualified {
    /// The block is traced.
    pub traced: bool,
    /// The block is traced, and its last address is to be reported: a
    /// comparator with a notify bit matched.
    pub notify: bool,
}

/// What the filters say about a cycle of the data interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedData {
    /// The access that retired is traced; `false` if none did.
    pub traced: bool,
    /// The load response belongs to an access that is traced; `false` if there
    /// is none.
    pub response: bool,
}

/// The filters of one hart, with what they remember from block to block.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Nothing is configured.
    empty: bool,
    filters: Vec<Unit>,
    /// Those for data trace.
    data: Vec<Unit>,
    comparators: Vec<Pair>,
    /// What was said about the block before.
    before: bool,
    /// The block before, and the outputs for it, which its accesses share.
    block: Ingress,
    outputs: u8,
    /// Ids of the loads that are traced and have not been answered.
    loads: Vec<u16>,
}

/// A filter that is selected and enabled.
#[derive(Clone, Copy, Debug)]
struct Unit {
    config: FilterUnit,
    /// The comparators it needs, one bit each.
    comparators: u8,
    /// Those that a trap must match for its handler to match.
    traps: u8,
    /// How deep in the handlers of traps it is, from the first that matched.
    depth: u32,
    /// The block before was in such a handler, or need not be.
    inside: bool,
}

impl Filter {
    /// Filters in the state after reset.
    #[must_use]
    pub fn new(config: &FilterConfig) -> Filter {
        let width = match config.xlen {
            Xlen::Rv32 => u64::from(u32::MAX),
            Xlen::Rv64 => u64::MAX,
        };
        let all: Vec<Pair> = (config.comparators.iter().zip(0..))
            .map(|(comparator, number)| Pair::new(comparator, number, width, config.text))
            .collect();
        let tval = |n: u8| all.get(usize::from(n)).is_some_and(Pair::sees_tval);
        let units = |selected: u16| -> Vec<Unit> {
            let chosen = (0..).zip(&config.filters);
            let chosen = chosen.filter(|(n, unit)| unit.enabled && selected >> n & 1 != 0);
            chosen.map(|(_, unit)| Unit::new(unit, tval)).collect()
        };
        let (filters, data) = (units(config.selected), units(config.data_selected));
        let needed = filters.iter().chain(&data);
        let used = needed.fold(0, |all, unit| all | unit.comparators);
        let mut comparators = all;
        comparators.retain(|pair| used & pair.output() != 0 || pair.notifies());
        Filter {
            empty: filters.is_empty() && data.is_empty() && comparators.is_empty(),
            before: filters.is_empty(),
            filters,
            data,
            comparators,
            block: Ingress::default(),
            outputs: 0,
            loads: Vec::new(),
        }
    }

    /// Whether there is nothing to ask: everything is traced and nothing
    /// reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Whether the next block is traced. One in which nothing happened is
    /// traced as the one before was.
    #[inline]
    pub fn qualifies(&mut self, block: &Ingress) -> Qualified {
        if self.empty {
            return Qualified {
                traced: true,
                notify: false,
            };
        }
        self.ask(block)
    }

    fn ask(&mut self, block: &Ingress) -> Qualified {
        if block.reset {
            // The handlers it was in are left, and no load is answered.
            let all = self.filters.iter_mut().chain(&mut self.data);
            all.for_each(|unit| unit.depth = 0);
            self.loads.clear();
        }
        if block.iretire == 0 && !block.itype.is_trap() {
            return Qualified {
                traced: self.before,
                notify: false,
            };
        }
        let seen = Seen::block(block);
        let (mut outputs, mut notify) = (0u8, false);
        for pair in &mut self.comparators {
            let (output, notified) = pair.compare(&seen);
            outputs |= pair.output() & u8::from(output).wrapping_neg();
            notify |= notified;
        }
        // Each filter sees each block, for what it remembers.
        let mut traced = self.filters.is_empty();
        for unit in &mut self.filters {
            unit.handler(block, outputs);
            traced |= unit.matches(block, outputs);
        }
        for unit in &mut self.data {
            unit.handler(block, outputs);
        }
        self.before = traced;
        (self.block, self.outputs) = (*block, outputs);
        Qualified {
            traced,
            notify: notify && traced,
        }
    }

    /// Whether a data access of the block asked about last is traced, and a
    /// load response that comes with it or alone.
    #[inline]
    pub fn qualifies_data(&mut self, access: &DataIngress) -> QualifiedData {
        let answered = access.lresp != 0;
        if self.empty {
            return QualifiedData {
                traced: access.dretire,
                response: answered,
            };
        }
        let traced = access.dretire && self.ask_data(access);
        if self.data.is_empty() {
            return QualifiedData {
                traced,
                response: answered,
            };
        }
        // A response may come in the cycle of its request.
        let place = self.loads.iter().position(|id| *id == access.lrid);
        match place {
            Some(at) if access.dretire && !traced => {
                self.loads.swap_remove(at);
            }
            None if traced => self.loads.push(access.lrid),
            _ => {}
        }
        let place = self.loads.iter().position(|id| *id == access.lid);
        let place = place.filter(|_| answered);
        if let Some(at) = place {
            self.loads.swap_remove(at);
        }
        QualifiedData {
            traced,
            response: place.is_some(),
        }
    }

    fn ask_data(&mut self, access: &DataIngress) -> bool {
        let block = &self.block;
        let seen = Seen::access(block, access);
        let mut outputs = 0u8;
        for pair in &mut self.comparators {
            // What is latched by blocks does not change between them.
            let output = if pair.is_latch() && !pair.sees_data() {
                self.outputs & pair.output() != 0
            } else {
                pair.compare(&seen).0
            };
            outputs |= pair.output() & u8::from(output).wrapping_neg();
        }
        let mut matching = self.data.iter().filter(|unit| {
            let config = &unit.config;
            // One of several accesses of an instruction is a load or a store too.
            let bit = |dtype: u8| 1u16.checked_shl(dtype.into()).unwrap_or(0);
            let dtype = bit(access.dtype) | bit(access.plain_dtype().0);
            let dsize = 1u8.checked_shl(access.dsize.into()).unwrap_or(0);
            unit.matches(block, outputs)
                && config.dtypes.is_none_or(|types| types & dtype != 0)
                && config.dsizes.is_none_or(|sizes| sizes & dsize != 0)
        });
        self.data.is_empty() || matching.next().is_some()
    }
}

impl Unit {
    fn new(config: &FilterUnit, tval: impl Fn(u8) -> bool) -> Unit {
        let numbers = config.comparators.iter().flatten().map(|n| n & 7);
        let bits = |all: u8, number: u8| all | 1 << number;
        let by_trap = config.causes.is_some() || config.trap.is_some();
        let traps = numbers.clone().filter(|n| by_trap && tval(*n));
        Unit {
            config: *config,
            comparators: numbers.fold(0, bits),
            traps: traps.fold(0, bits),
            depth: 0,
            inside: !by_trap,
        }
    }

    fn matches(&self, block: &Ingress, outputs: u8) -> bool {
        let config = &self.config;
        self.inside
            && !outputs & self.comparators & !self.traps == 0
            && (config.modes).is_none_or(|modes| modes >> block.mode.code() & 1 != 0)
            && (config.impdef).is_none_or(|i| (block.impdef ^ i.value) & i.mask == 0)
    }

    /// Finds out whether the block is between a trap that matches and the
    /// return from it, or need not be.
    fn handler(&mut self, block: &Ingress, outputs: u8) {
        let config = &self.config;
        if config.causes.is_none() && config.trap.is_none() {
            return;
        }
        if block.itype.is_trap() {
            let cause = |causes: u64| causes.checked_shr(block.cause).unwrap_or(0) & 1 != 0;
            let kind = match block.itype {
                Itype::Interrupt => TrapKind::Interrupt,
                _ => TrapKind::Exception,
            };
            let starts = config.causes.is_none_or(cause)
                && config.trap.is_none_or(|k| k == kind)
                && !outputs & self.traps == 0;
            if self.depth > 0 || starts {
                self.depth = self.depth.saturating_add(1);
            }
        }
        self.inside = self.depth > 0;
        if block.itype == Itype::TrapReturn {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}
