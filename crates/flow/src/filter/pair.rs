//! Evaluates comparators.

use super::compare::{Span, last, meet};
use super::{Comparator, Comparison, FilterText, Function, Input, MatchMode};
use crate::{DataIngress, Ingress};

/// The inputs of the comparators; what is `None` is not there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    iaddr: Span,
    context: u64,
    tval: Option<u64>,
    daddr: Option<u64>,
}

impl Seen {
    pub(super) fn block(block: &Ingress) -> Seen {
        let (low, high) = (block.iaddr, block.last_addr());
        Seen {
            // At the very top of the addresses the end may be below.
            iaddr: Span {
                low,
                high: if high < low { u64::MAX } else { high },
            },
            context: block.context.0,
            tval: block.itype.is_trap().then_some(block.tval),
            daddr: None,
        }
    }

    /// An access by an instruction of the block. As many low bits of the
    /// instruction's address count as the block has room for; where they name
    /// none of its instructions, the last one it is.
    pub(super) fn access(block: &Ingress, access: &DataIngress) -> Seen {
        let bytes = u64::from(block.iretire) * 2;
        let room = bytes.next_power_of_two() - 1;
        let offset = access.iaddr_lsbs.wrapping_sub(block.iaddr) & room;
        let most = block.last_addr().wrapping_sub(block.iaddr);
        Seen {
            iaddr: Span::one(block.iaddr.wrapping_add(offset.min(most))),
            daddr: Some(access.daddr),
            ..Seen::block(block)
        }
    }

    fn get(&self, input: Input) -> Option<Span> {
        match input {
            Input::Iaddr => Some(self.iaddr),
            Input::Context => Some(Span::one(self.context)),
            Input::Tval => self.tval.map(Span::one),
            Input::Daddr => self.daddr.map(Span::one),
        }
    }
}

/// A comparator that is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    config: Comparator,
    number: u8,
    latched: bool,
}

impl Pair {
    /// `width` has the bits that the inputs have.
    pub(super) fn new(config: &Comparator, number: u8, width: u64, text: FilterText) -> Pair {
        let mut config = *config;
        config.primary.value &= width;
        config.secondary.value &= width;
        if text == FilterText::ETrace111 && config.primary.function == Function::Special {
            config.primary.function = Function::Always;
        }
        Pair {
            config,
            number,
            latched: config.primary.function == Function::Special,
        }
    }

    /// The bit of its output.
    pub(super) const fn output(&self) -> u8 {
        1 << (self.number & 7)
    }

    pub(super) fn notifies(&self) -> bool {
        self.config.primary.notifies() || self.config.secondary.notifies()
    }

    pub(super) fn is_latch(&self) -> bool {
        self.config.mode == MatchMode::Latch
    }

    pub(super) fn sees_data(&self) -> bool {
        self.looks_at(Input::Daddr)
    }

    pub(super) fn sees_tval(&self) -> bool {
        self.looks_at(Input::Tval)
    }

    /// Whether the output depends on this input.
    fn looks_at(&self, input: Input) -> bool {
        let Comparator {
            primary,
            secondary,
            mode,
        } = &self.config;
        let looks = |half: &Comparison| {
            half.input == input && !matches!(half.function, Function::Special | Function::Always)
        };
        looks(primary) || (*mode != MatchMode::Primary && looks(secondary))
    }

    /// The output, and whether it is to be reported.
    pub(super) fn compare(&mut self, seen: &Seen) -> (bool, bool) {
        let Comparator {
            primary,
            secondary,
            mode,
        } = &self.config;
        let masks = secondary.function == Function::Special;
        let mask = if masks { secondary.value } else { u64::MAX };
        let (p, all_p) = primary.of(seen, mask);
        let (s, all_s) = match masks {
            true => (true, true),
            false => secondary.of(seen, u64::MAX),
        };
        // Of several addresses both may need the same one.
        let several = !masks
            && (primary.input, secondary.input) == (Input::Iaddr, Input::Iaddr)
            && seen.iaddr.low != seen.iaddr.high;
        let pieces = |half: &Comparison| half.function.pieces(seen.iaddr, half.value);
        let output = match mode {
            MatchMode::Primary => p,
            MatchMode::Both if several => meet(pieces(primary), pieces(secondary)),
            MatchMode::Both => p && s,
            MatchMode::NotBoth => !(all_p && all_s),
            MatchMode::Latch => {
                let on = self.latched || p;
                // P after the last S sets it again.
                let again = p && several && last(pieces(primary)) > last(pieces(secondary));
                self.latched = on && (!s || again);
                on
            }
        };
        let notify = primary.notifies() && p || secondary.notifies() && s;
        (output, notify)
    }
}

impl Comparison {
    fn notifies(&self) -> bool {
        self.notify && self.input == Input::Iaddr
    }

    /// Whether any of the values there compares so, and whether all do.
    fn of(&self, seen: &Seen, mask: u64) -> (bool, bool) {
        match self.function {
            Function::Always => return (true, true),
            Function::Special => return (false, false),
            _ => {}
        }
        match seen.get(self.input) {
            Some(span) => (
                self.function.any(span, self.value, mask),
                self.function.all(span, self.value, mask),
            ),
            None => (false, false),
        }
    }
}
