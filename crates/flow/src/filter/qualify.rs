//! The filters at work.

use alloc::vec::Vec;

use hartrace_isa::{Itype, Xlen};

use super::compare::Span;
use super::{
    Comparator, Comparison, FilterConfig, FilterUnit, Function, Input, MatchMode, TrapKind,
};
use crate::Ingress;

/// What the filters say about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qualified {
    /// The block is traced.
    pub traced: bool,
    /// The block is traced, and its last address is to be reported: a
    /// comparator with a notify bit matched.
    pub notify: bool,
}

/// The filters of one hart, with what they remember from block to block.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Nothing is configured.
    empty: bool,
    filters: Vec<Unit>,
    comparators: Vec<Pair>,
    /// What was said about the block before.
    before: bool,
}

/// A filter that is selected and enabled.
#[derive(Clone, Copy, Debug)]
struct Unit {
    config: FilterUnit,
    /// The comparators it needs, one bit each.
    comparators: u8,
    /// How deep in the handlers of traps it is, from the first that matched.
    depth: u32,
}

/// A comparator that is used.
#[derive(Clone, Copy, Debug)]
struct Pair {
    config: Comparator,
    number: usize,
    latched: bool,
}

impl Filter {
    /// Filters in the state after reset.
    #[must_use]
    pub fn new(config: &FilterConfig) -> Filter {
        let active = |n: usize, unit: &FilterUnit| unit.enabled && config.selected >> n & 1 != 0;
        let filters: Vec<Unit> = (config.filters.iter().enumerate())
            .filter(|(n, unit)| active(*n, unit))
            .map(|(_, unit)| Unit::new(unit))
            .collect();
        let used = filters.iter().fold(0, |all, unit| all | unit.comparators);
        let width = match config.xlen {
            Xlen::Rv32 => u64::from(u32::MAX),
            Xlen::Rv64 => u64::MAX,
        };
        let comparators: Vec<Pair> = (config.comparators.iter().enumerate())
            .filter(|(n, c)| used >> n & 1 != 0 || c.notifies())
            .map(|(number, c)| Pair {
                config: c.cut(width),
                number,
                latched: c.primary.function == Function::Special,
            })
            .collect();
        Filter {
            empty: filters.is_empty() && comparators.is_empty(),
            before: filters.is_empty(),
            filters,
            comparators,
        }
    }

    /// Whether every block is traced and none is reported.
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
            // The handlers it was in are left.
            self.filters.iter_mut().for_each(|unit| unit.depth = 0);
        }
        if block.iretire == 0 && !block.itype.is_trap() {
            return Qualified {
                traced: self.before,
                notify: false,
            };
        }
        let (mut outputs, mut notify) = (0u8, false);
        for pair in &mut self.comparators {
            let (output, notified) = pair.compare(block);
            outputs |= u8::from(output) << pair.number;
            notify |= notified;
        }
        // Each filter sees each block, for what it remembers.
        let mut traced = self.filters.is_empty();
        for unit in &mut self.filters {
            traced |= unit.matches(block, outputs);
        }
        self.before = traced;
        Qualified {
            traced,
            notify: notify && traced,
        }
    }
}

impl Unit {
    fn new(config: &FilterUnit) -> Unit {
        let numbers = config.comparators.iter().flatten();
        Unit {
            config: *config,
            comparators: numbers.fold(0, |all, number| all | 1 << (number & 7)),
            depth: 0,
        }
    }

    fn matches(&mut self, block: &Ingress, outputs: u8) -> bool {
        let handler = self.handler(block);
        let config = &self.config;
        handler
            && outputs & self.comparators == self.comparators
            && (config.modes).is_none_or(|modes| modes >> block.mode.code() & 1 != 0)
            && (config.impdef).is_none_or(|i| (block.impdef ^ i.value) & i.mask == 0)
    }

    /// Whether the block is between a trap that matches and the return from
    /// it, or need not be.
    fn handler(&mut self, block: &Ingress) -> bool {
        let config = &self.config;
        if config.causes.is_none() && config.trap.is_none() {
            return true;
        }
        if block.itype.is_trap() {
            let cause = |causes: u64| causes.checked_shr(block.cause).unwrap_or(0) & 1 != 0;
            let kind = match block.itype {
                Itype::Interrupt => TrapKind::Interrupt,
                _ => TrapKind::Exception,
            };
            let starts = config.causes.is_none_or(cause) && config.trap.is_none_or(|k| k == kind);
            if self.depth > 0 || starts {
                self.depth = self.depth.saturating_add(1);
            }
        }
        let inside = self.depth > 0;
        if block.itype == Itype::TrapReturn {
            self.depth = self.depth.saturating_sub(1);
        }
        inside
    }
}

impl Comparator {
    /// Without the bits of the match values that the inputs do not have.
    fn cut(mut self, width: u64) -> Comparator {
        self.primary.value &= width;
        self.secondary.value &= width;
        self
    }

    fn notifies(&self) -> bool {
        self.primary.notifies() || self.secondary.notifies()
    }
}

impl Comparison {
    fn notifies(&self) -> bool {
        self.notify && self.input == Input::Iaddr
    }

    /// Whether any of the block's values compares so, and whether all do.
    fn of(&self, block: &Ingress, mask: u64) -> (bool, bool) {
        match self.function {
            Function::Always => return (true, true),
            Function::Special => return (false, false),
            _ => {}
        }
        match self.input.of(block) {
            Some(span) => (
                self.function.any(span, self.value, mask),
                self.function.all(span, self.value, mask),
            ),
            None => (false, false),
        }
    }
}

impl Input {
    /// What a block has of it.
    fn of(self, block: &Ingress) -> Option<Span> {
        let one = |value| Span {
            low: value,
            high: value,
        };
        match self {
            Input::Iaddr => {
                let (low, high) = (block.iaddr, block.last_addr());
                // At the very top of the addresses the end may be below.
                let high = if high < low { u64::MAX } else { high };
                Some(Span { low, high })
            }
            Input::Context => Some(one(block.context.0)),
            Input::Tval => block.itype.is_trap().then(|| one(block.tval)),
            Input::Daddr => None,
        }
    }
}

impl Pair {
    /// The output, and whether it is to be reported.
    fn compare(&mut self, block: &Ingress) -> (bool, bool) {
        let Comparator {
            primary,
            secondary,
            mode,
        } = &self.config;
        let masks = secondary.function == Function::Special;
        let mask = if masks { secondary.value } else { u64::MAX };
        let (p, all_p) = primary.of(block, mask);
        let (s, all_s) = if masks {
            (true, true)
        } else {
            secondary.of(block, u64::MAX)
        };
        let output = match mode {
            MatchMode::Primary => p,
            MatchMode::Both => p && s,
            MatchMode::NotBoth => !(all_p && all_s),
            MatchMode::Latch => {
                let on = self.latched || p;
                self.latched = on && !s;
                on
            }
        };
        let notify = primary.notifies() && p || secondary.notifies() && s;
        (output, notify)
    }
}
