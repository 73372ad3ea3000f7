//! The code between two transfers.

use hartrace_flow::{Image, SpaceId, Transfer};
use hartrace_isa::Flow;
use std::collections::HashMap;

/// A longer way between two transfers is none: something is missing there.
const LONGEST: u64 = 1 << 20;

/// Instructions of a way that are counted.
const MOST_INSNS: u64 = 1 << 16;

/// From the target of a transfer to the source of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) end: u64,
    /// A trap ended it: the instruction at `end` has not retired.
    pub(super) trap: bool,
}

impl Stretch {
    /// `None` for halves of records: an end is not known.
    pub(super) fn between(earlier: &Transfer, later: &Transfer) -> Option<Stretch> {
        let known = earlier.target != 0 && later.source != 0;
        known.then_some(Stretch {
            start: earlier.target,
            end: later.source,
            trap: later.kind.is_trap(),
        })
    }

    /// Backwards, or too long.
    pub(super) const fn is_odd(&self) -> bool {
        self.end < self.start || self.end - self.start > LONGEST
    }
}

/// What the code of a stretch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One instruction after the other.
    Straight {
        /// How many retired.
        insns: u64,
        /// The last that did.
        last: Option<u64>,
    },
    /// It is not in the image, or does not end between two instructions.
    Unknown,
    /// Backwards, too long, or something in it goes elsewhere always.
    Impossible,
}

/// What the code of stretches is, each looked up once.
#[derive(Debug, Default)]
pub(super) struct Ways<'i> {
    image: Option<&'i Image>,
    known: HashMap<Stretch, Way>,
    bogus: u64,
}

impl<'i> Ways<'i> {
    /// Without code, only addresses can be compared.
    pub(super) fn new(image: Option<&'i Image>) -> Ways<'i> {
        Ways {
            image,
            ..Ways::default()
        }
    }

    /// Where the hart went from one transfer to the next.
    pub(super) fn of(&mut self, stretch: Stretch) -> Way {
        let image = self.image;
        let look = || way(image, &stretch);
        let way = *self.known.entry(stretch).or_insert_with(look);
        self.bogus += u64::from(way == Way::Impossible);
        way
    }

    /// How often a way was asked for that cannot be.
    pub(super) const fn bogus(&self) -> u64 {
        self.bogus
    }
}

/// What the code of a stretch is.
pub(super) fn way(image: Option<&Image>, stretch: &Stretch) -> Way {
    if stretch.is_odd() {
        return Way::Impossible;
    }
    let Some(image) = image else {
        return Way::Unknown;
    };
    let code = image.insns(SpaceId::FIRST, stretch.start, MOST_INSNS);
    let mut before = None;
    for (count, (pc, insn)) in (0..).zip(code) {
        if pc == stretch.end {
            return match stretch.trap {
                true => Way::Straight {
                    insns: count,
                    last: before,
                },
                false => Way::Straight {
                    insns: count + 1,
                    last: Some(pc),
                },
            };
        }
        if pc > stretch.end || pc < stretch.start {
            return Way::Unknown;
        }
        let flow = Flow::of_retired(insn.bits, insn.isa);
        if !flow.is_sequential() && !matches!(flow, Flow::Branch { .. } | Flow::Trap) {
            return Way::Impossible;
        }
        before = Some(pc);
    }
    Way::Unknown
}

#[cfg(test)]
mod tests {
    use super::super::testing_image;
    use super::*;

    #[test]
    fn what_lies_between() {
        let image = testing_image();
        let way = |start, end, trap| way(Some(&image), &Stretch { start, end, trap });
        let straight = |insns, last| Way::Straight { insns, last };
        assert_eq!(way(0x1000, 0x1004, false), straight(3, Some(0x1004)));
        assert_eq!(way(0x1000, 0x1004, true), straight(2, Some(0x1002)));
        assert_eq!(way(0x1000, 0x1000, true), straight(0, None));
        // The c.j itself may end it; nothing goes through it.
        assert_eq!(way(0x1004, 0x100c, false), straight(3, Some(0x100c)));
        assert_eq!(way(0x1004, 0x100e, false), Way::Impossible);
        assert_eq!(way(0x1004, 0x1000, false), Way::Impossible);
        assert_eq!(way(0x1000, 0x1006, false), Way::Unknown);
        assert_eq!(way(0x5000, 0x5004, false), Way::Unknown);
    }
}
