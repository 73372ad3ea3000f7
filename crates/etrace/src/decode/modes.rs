//! The run-time modes, and how far support packets are trusted with them.
//!
//! A damaged packet of another kind may look like a support packet, and no
//! later packet would correct it. So the modes in a support packet in the
//! middle of a trace are provisional until a synchronisation has been reached;
//! if a contradiction is found before that, the previous modes are restored.

use super::Settings;
use crate::{Config, Ioption, Support};

/// The run-time modes: from the configuration until a support packet reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) full_address: bool,
    pub(super) sijump: bool,
    /// Data trace (`denable`), once a support packet has reported it.
    pub(super) data: Option<bool>,
}

impl Modes {
    pub(super) fn of(config: &Config) -> Modes {
        Modes {
            full_address: config.full_address,
            sijump: config.sijump,
            data: None,
        }
    }
}

/// Modes that change what packets mean and are not understood.
const UNKNOWN: [Ioption; 4] = [
    Ioption::ImplicitReturn,
    Ioption::ImplicitException,
    Ioption::BranchPrediction,
    Ioption::JumpTargetCache,
];

impl Settings {
    /// The modes that a support packet reports.
    pub(super) fn told(&self, support: &Support) -> Modes {
        let told = |option| self.config.ioptions.get(support.ioptions, option);
        let denable = support.data.map(|data| data.denable);
        Modes {
            full_address: told(Ioption::FullAddress).unwrap_or(self.modes.full_address),
            sijump: told(Ioption::SequentialJump).unwrap_or(self.modes.sijump),
            data: denable.or(self.modes.data),
        }
    }

    /// Whether it reports modes that are not supported.
    pub(super) fn refuses(&self, ioptions: u32) -> bool {
        let on = |option| self.config.ioptions.get(ioptions, option) == Some(true);
        UNKNOWN.into_iter().any(on)
    }
}

/// What a support packet in the middle of a trace replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) modes: Modes,
    pub(super) refused: bool,
    /// Something did not fit since.
    pub(super) failed: bool,
    /// Offset after the support packet. A synchronisation right there proves
    /// nothing.
    pub(super) behind: u64,
}
