//! Models of branch predictors, which determine mispredictions.
//!
//! `ctrtarget.MISP` marks what the branch predictor of the core got wrong, in
//! direction or target. The models here are simple ones.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use hartrace_flow::Transfer;
use hartrace_isa::Itype;

/// A model of a branch predictor.
pub trait Predictor: fmt::Debug + Send {
    /// Whether this transfer was mispredicted; the predictor learns from it.
    /// It sees branches, taken or not, and jumps, in the order they retire.
    fn mispredicts(&mut self, transfer: &Transfer) -> bool;

    /// The same predictor, with what it has learned.
    fn boxed(&self) -> Box<dyn Predictor>;
}

impl Clone for Box<dyn Predictor> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// The predictors there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PredictorKind {
    /// Nothing is ever mispredicted.
    #[default]
    None,
    /// [`NotTaken`].
    NotTaken,
    /// [`Bimodal`].
    Bimodal,
    /// [`Gshare`].
    Gshare,
}

impl PredictorKind {
    /// All of them.
    pub const ALL: [PredictorKind; 4] = [
        PredictorKind::None,
        PredictorKind::NotTaken,
        PredictorKind::Bimodal,
        PredictorKind::Gshare,
    ];

    /// Its name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PredictorKind::None => "none",
            PredictorKind::NotTaken => "not-taken",
            PredictorKind::Bimodal => "bimodal",
            PredictorKind::Gshare => "gshare",
        }
    }

    /// A fresh one; `None` predicts nothing.
    #[must_use]
    pub fn build(self) -> Option<Box<dyn Predictor>> {
        match self {
            PredictorKind::None => None,
            PredictorKind::NotTaken => Some(Box::new(NotTaken::default())),
            PredictorKind::Bimodal => Some(Box::new(Bimodal::default())),
            PredictorKind::Gshare => Some(Box::new(Gshare::default())),
        }
    }
}

/// Calls a return-address stack remembers.
const CALLS: usize = 16;

/// Targets a branch target buffer remembers.
const TARGETS: usize = 512;

/// Two-bit counters of a table of directions.
const COUNTERS: usize = 4096;

/// Targets of indirect jumps: the last one of each, and a return-address
/// stack. Direct targets stand in the code and are always right.
#[derive(Clone, Debug)]
struct Targets {
    last: Vec<(u64, u64)>,
    calls: [u64; CALLS],
    depth: usize,
}

impl Default for Targets {
    fn default() -> Targets {
        Targets {
            last: vec![(0, 0); TARGETS],
            calls: [0; CALLS],
            depth: 0,
        }
    }
}

impl Targets {
    /// Of jumps.
    fn mispredicts(&mut self, t: &Transfer) -> bool {
        match t.kind {
            Itype::Return => !self.returns_to(t.target),
            Itype::Swap => {
                let right = self.returns_to(t.target);
                self.push(t.source);
                !right
            }
            Itype::DirectCall => {
                self.push(t.source);
                false
            }
            Itype::IndirectCall => {
                self.push(t.source);
                self.guesses_wrong(t)
            }
            Itype::IndirectJump | Itype::OtherIndirect => self.guesses_wrong(t),
            _ => false,
        }
    }

    fn guesses_wrong(&mut self, t: &Transfer) -> bool {
        let slot = self.last.get_mut((t.source >> 1) as usize % TARGETS);
        match slot {
            Some(slot) => core::mem::replace(slot, (t.source, t.target)) != (t.source, t.target),
            None => false,
        }
    }

    fn push(&mut self, source: u64) {
        if let Some(slot) = self.calls.get_mut(self.depth % CALLS) {
            *slot = source;
        }
        self.depth += 1;
    }

    /// Takes the last call; whether this is the address after it. A transfer does not
    /// record how long its instruction is: two bytes or four.
    fn returns_to(&mut self, target: u64) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else {
            return false;
        };
        self.depth = depth;
        let call = self.calls.get(depth % CALLS).copied().unwrap_or(0);
        matches!(target.wrapping_sub(call), 2 | 4)
    }
}

/// No branch is expected to be taken: the simplest of cores.
#[derive(Clone, Debug, Default)]
pub struct NotTaken {
    targets: Targets,
}

impl Predictor for NotTaken {
    fn mispredicts(&mut self, transfer: &Transfer) -> bool {
        match transfer.kind {
            Itype::Taken => true,
            Itype::NotTaken => false,
            _ => self.targets.mispredicts(transfer),
        }
    }

    fn boxed(&self) -> Box<dyn Predictor> {
        Box::new(self.clone())
    }
}

/// A table of two-bit counters, by address.
#[derive(Clone, Debug)]
pub struct Bimodal {
    counters: Vec<u8>,
    targets: Targets,
}

impl Default for Bimodal {
    fn default() -> Bimodal {
        Bimodal {
            // Weakly not taken.
            counters: vec![1; COUNTERS],
            targets: Targets::default(),
        }
    }
}

impl Bimodal {
    fn mispredicts_at(&mut self, index: u64, transfer: &Transfer) -> bool {
        let taken = match transfer.kind {
            Itype::Taken => true,
            Itype::NotTaken => false,
            _ => return self.targets.mispredicts(transfer),
        };
        let Some(counter) = self.counters.get_mut(index as usize % COUNTERS) else {
            return false;
        };
        let expected = *counter >= 2;
        *counter = if taken {
            (*counter + 1).min(3)
        } else {
            counter.saturating_sub(1)
        };
        expected != taken
    }
}

impl Predictor for Bimodal {
    fn mispredicts(&mut self, transfer: &Transfer) -> bool {
        self.mispredicts_at(transfer.source >> 1, transfer)
    }

    fn boxed(&self) -> Box<dyn Predictor> {
        Box::new(self.clone())
    }
}

/// A table of two-bit counters, by address and the last directions.
#[derive(Clone, Debug, Default)]
pub struct Gshare {
    table: Bimodal,
    history: u64,
}

impl Predictor for Gshare {
    fn mispredicts(&mut self, transfer: &Transfer) -> bool {
        let index = transfer.source >> 1 ^ self.history;
        let wrong = self.table.mispredicts_at(index, transfer);
        if transfer.kind.is_branch() {
            self.history = self.history << 1 | u64::from(transfer.kind == Itype::Taken);
        }
        wrong
    }

    fn boxed(&self) -> Box<dyn Predictor> {
        Box::new(self.clone())
    }
}
