//! Implicit return (3.2.5): which returns an encoder leaves out, and what it
//! reports about them.
//!
//! `docs/etrace-implicit-return.md` has the argument why a decoder finds every
//! reported address again.

use alloc::boxed::Box;
use alloc::vec;

use hartrace_flow::{Remember, ReturnStack, Swaps};

use crate::{Config, Version};

/// Most returns that `irets` can count.
const MOST_IRETS: u16 = 255;

/// The return stack of these settings.
///
/// A call counter alone counts calls; how high, the versions see differently.
/// Until 2.0 it is a number of so many bits, and `irdepth` has no more. In 2.05
/// chapter 11 has room for 2^`call_counter_size` calls, and counts recursive
/// calls in one entry if there is a stack too.
pub(crate) fn stack(config: &Config) -> ReturnStack {
    // The software model compares addresses even where hardware trusts a counter:
    // a return that goes elsewhere is reported.
    let stack = ReturnStack::new(Remember::Address, Swaps::Ignored, depth(config));
    let counts = 1usize << (config.call_counter_size & 15);
    match config.return_stack_size > 0 && config.version == Version::V2_05 {
        true => stack.with_repeats(counts as u32 - 1),
        false => stack,
    }
}

/// Entries that it has room for.
fn depth(config: &Config) -> usize {
    let counts = 1usize << (config.call_counter_size & 15);
    match config.return_stack_size {
        0 if config.version == Version::V2_05 => counts,
        0 => counts - 1,
        size => 1 << (size & 15),
    }
}

/// The target of a return that a packet reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Landing {
    /// `irets` or `irdepth`, if it must be reported.
    pub(crate) report: Option<u16>,
    /// The entry on the stack was this target.
    pub(crate) predicted: bool,
}

/// What an encoder keeps.
#[derive(Clone, Debug)]
pub(crate) struct Returns {
    stack: ReturnStack,
    /// `irets` is reported, not `irdepth`.
    counts: bool,
    /// Returns left out since the last branch, or packet that reports a place.
    irets: u16,
    /// Target of the last of them, and entries on the stack before it.
    last: (u64, u16),
    /// Where `irdepth` is reported: for each number of entries, the last tail in which
    /// a return with so many was left out. Tails are numbered from 1.
    tails: Box<[u64]>,
    tail: u64,
    /// The last tail in which a call dropped an entry after a return was left out.
    dropped: u64,
}

impl Returns {
    pub(crate) fn new(config: &Config) -> Returns {
        Returns {
            stack: stack(config),
            counts: config.iret_ext,
            irets: 0,
            last: (0, 0),
            tails: match config.iret_ext {
                true => Box::default(),
                false => vec![0; depth(config) + 1].into(),
            },
            tail: 1,
            dropped: 0,
        }
    }

    /// Whether packets report `irets`, and not `irdepth`.
    pub(crate) fn counts(&self) -> bool {
        self.counts
    }

    /// A call returns to this address.
    #[inline]
    pub(crate) fn call(&mut self, link: u64) {
        if self.is_open() && self.stack.len() + 1 == self.tails.len() {
            self.dropped = self.tail;
        }
        self.stack.push(link);
    }

    /// Where the next return is expected to go.
    #[inline]
    pub(crate) fn expected(&self) -> Option<u64> {
        self.stack.top()
    }

    /// Whether a return to this address can be left out.
    pub(crate) fn implies(&self, to: u64) -> bool {
        self.expected() == Some(to) && !(self.counts && self.irets == MOST_IRETS)
    }

    /// A return to this address is left out.
    pub(crate) fn leave_out(&mut self, to: u64) {
        let depth = self.stack.len();
        self.last = (to, depth as u16);
        if let Some(tail) = self.tails.get_mut(depth) {
            *tail = self.tail;
        }
        self.stack.pop();
        self.irets = self.irets.saturating_add(1);
    }

    /// A return to this address is not.
    pub(crate) fn reported(&mut self, to: u64) -> Landing {
        let depth = self.stack.len() as u16;
        Landing {
            report: match self.counts {
                true => (depth > 0 || self.irets > 0).then_some(self.irets),
                false => (depth > 0).then_some(depth),
            },
            predicted: self.stack.returns(to),
        }
    }

    /// Whether returns were left out since the last branch or packet.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.irets > 0
    }

    /// What a packet reports for an instruction which no return led to.
    pub(crate) fn here(&self) -> Option<u16> {
        self.is_open().then(|| match self.counts {
            true => self.irets,
            false => self.stack.len() as u16,
        })
    }

    /// What a packet reports for the target of a return that was left out.
    pub(crate) fn landed(&self) -> Option<u16> {
        self.is_open().then(|| match self.counts {
            true => self.irets - 1,
            false => self.last.1,
        })
    }

    /// The last return that was left out, if its target must be reported before a
    /// return here, or an instruction here: a return with as many entries on the
    /// stack was left out before, and a decoder would take that one, or entries were
    /// dropped, so that their number says too little.
    #[inline]
    pub(crate) fn repeated(&self) -> Option<(u64, u16)> {
        let before = self.tails.get(self.stack.len())?;
        let repeated = *before == self.tail || self.dropped == self.tail;
        (self.is_open() && repeated).then_some(self.last)
    }

    /// A branch, or a packet that reports where the hart is.
    #[inline]
    pub(crate) fn settle(&mut self) {
        self.irets = 0;
        self.tail += 1;
    }

    /// A synchronisation packet was sent.
    pub(crate) fn reset(&mut self) {
        self.stack.clear();
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::Xlen;

    /// A return, left out where it can be.
    fn returns_to(returns: &mut Returns, to: u64) -> Option<Landing> {
        match returns.implies(to) {
            true => {
                returns.leave_out(to);
                None
            }
            false => Some(returns.reported(to)),
        }
    }

    fn config(version: Version, stack: u8, counter: u8) -> Config {
        Config {
            return_stack_size: stack,
            call_counter_size: counter,
            ..Config::new(version, Xlen::Rv64)
        }
    }

    #[test]
    fn a_return_to_the_last_call_is_left_out() {
        let mut returns = Returns::new(&config(Version::V2_05, 3, 0));
        returns.call(0x104);
        assert_eq!(returns_to(&mut returns, 0x104), None);
        assert_eq!((returns.here(), returns.landed()), (Some(1), Some(0)));
        let empty = Landing {
            report: Some(1),
            predicted: false,
        };
        assert_eq!(returns_to(&mut returns, 0x200), Some(empty));
        returns.settle();
        assert_eq!((returns.here(), returns.landed()), (None, None));
        // Nothing to tell apart any more.
        let report = None;
        assert_eq!(
            returns_to(&mut returns, 0x200),
            Some(Landing { report, ..empty })
        );
    }

    #[test]
    fn a_return_elsewhere_is_reported() {
        for (version, report) in [(Version::V2_05, Some(1)), (Version::V2_0, Some(2))] {
            let mut returns = Returns::new(&config(version, 3, 0));
            for link in [0x104, 0x204, 0x304] {
                returns.call(link);
            }
            assert_eq!(returns_to(&mut returns, 0x304), None);
            let landing = Landing {
                report,
                predicted: false,
            };
            assert_eq!(returns_to(&mut returns, 0x900), Some(landing));
            returns.settle();
            assert_eq!(
                returns_to(&mut returns, 0x104),
                None,
                "its entry was used up"
            );
        }
    }

    #[test]
    fn two_hundred_and_fifty_five_returns_at_most() {
        let mut returns = Returns::new(&config(Version::V2_05, 0, 9));
        for _ in 0..300 {
            returns.call(0x104);
        }
        for _ in 0..255 {
            assert_eq!(returns_to(&mut returns, 0x104), None);
        }
        let landing = Landing {
            report: Some(255),
            predicted: true,
        };
        assert_eq!(returns_to(&mut returns, 0x104), Some(landing));
        returns.settle();
        assert_eq!(returns_to(&mut returns, 0x104), None);
    }

    #[test]
    fn how_deep_a_counter_counts() {
        for (version, deepest) in [
            (Version::V1_1_1, 7),
            (Version::V2_0, 7),
            (Version::V2_05, 8),
        ] {
            let mut returns = Returns::new(&config(version, 0, 3));
            for call in 0..20 {
                returns.call(call);
            }
            let left_out = (0..20)
                .rev()
                .take_while(|&c| returns_to(&mut returns, c).is_none());
            assert_eq!(left_out.count(), deepest, "{version:?}");
        }
    }

    #[test]
    fn a_stack_with_counters_in_2_05() {
        for (version, deepest) in [(Version::V2_0, 4), (Version::V2_05, 16)] {
            let mut returns = Returns::new(&config(version, 2, 2));
            for _ in 0..20 {
                returns.call(0x104);
            }
            let left_out = (0..20).take_while(|_| returns_to(&mut returns, 0x104).is_none());
            assert_eq!(left_out.count(), deepest, "{version:?}");
        }
    }

    #[test]
    fn irdepth_needs_a_packet_before_another_return_of_the_same_depth() {
        for (version, repeated) in [
            (Version::V2_0, Some((0x104, 1))),
            // irets counts them.
            (Version::V2_05, None),
        ] {
            let mut returns = Returns::new(&config(version, 3, 0));
            returns.call(0x104);
            assert_eq!(returns_to(&mut returns, 0x104), None);
            assert_eq!(returns.repeated(), None, "nothing returned from here");
            returns.call(0x108);
            assert_eq!(returns.repeated(), repeated);
            returns.call(0x204);
            assert_eq!(returns.repeated(), None, "one deeper");
            assert_eq!(returns_to(&mut returns, 0x204), None);
            assert_eq!(returns.repeated().is_some(), repeated.is_some());
            returns.settle();
            assert_eq!(returns.repeated(), None);
        }
    }

    #[test]
    fn irdepth_says_too_little_when_entries_were_dropped() {
        let mut returns = Returns::new(&config(Version::V2_0, 1, 0));
        for link in [0x104, 0x204, 0x304] {
            returns.call(link);
        }
        assert_eq!(returns_to(&mut returns, 0x304), None);
        assert_eq!(returns.repeated(), None, "they were dropped before");
        for link in [0x404, 0x504] {
            returns.call(link);
        }
        assert_eq!(returns.repeated(), Some((0x304, 2)));
        returns.settle();
        assert_eq!(returns_to(&mut returns, 0x504), None);
        assert_eq!(returns.repeated(), None);
    }
}
