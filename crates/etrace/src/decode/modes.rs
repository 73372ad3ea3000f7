//! The run-time modes, and how far support packets are trusted with them.
//!
//! A damaged packet of another kind may look like a support packet, and no
//! later packet would correct it. So the modes in a support packet in the
//! middle of a trace are provisional until a walk has reached a synchronisation;
//! if a contradiction is found before that, the previous modes are restored.

use super::Settings;
use crate::config::SupportParameters;
use crate::{Config, DataConfig, Ioption, Support};

/// The run-time modes: from the configuration until a support packet reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) full_address: bool,
    pub(super) sijump: bool,
    pub(super) implicit_return: bool,
    pub(super) implicit_exception: bool,
    pub(super) prediction: bool,
    pub(super) cache: bool,
    /// Synchronisation packets leave predictor, cache and return stack as they
    /// are.
    pub(super) keeps: bool,
    pub(super) iret_ext: bool,
    /// Of the encoder, once a standard support packet has reported them.
    parameters: Option<SupportParameters>,
    /// Data trace (`denable`), once a support packet has reported it.
    pub(super) data: Option<bool>,
    /// The settings of data trace.
    pub(super) data_config: Option<DataConfig>,
}

impl Modes {
    pub(super) fn of(config: &Config) -> Modes {
        Modes {
            full_address: config.full_address,
            sijump: config.sijump,
            implicit_return: config.implicit_return,
            implicit_exception: config.implicit_exception,
            prediction: config.branch_prediction,
            cache: config.jump_target_cache,
            keeps: config.resync_disabled(),
            iret_ext: config.iret_ext,
            parameters: None,
            data: None,
            data_config: config.data,
        }
    }

    /// Whether packets depend on what came before, beyond the place.
    pub(super) const fn is_modal(&self) -> bool {
        self.implicit_return | self.prediction | self.cache
    }

    /// Whether a synchronisation packet in the middle of a trace is of no use to a
    /// decoder that starts there.
    pub(super) const fn needs_start(&self) -> bool {
        self.keeps && self.is_modal()
    }

    /// Settings in these modes.
    pub(super) fn apply(&self, config: &Config) -> Config {
        let mut config = Config {
            full_address: self.full_address,
            sijump: self.sijump,
            implicit_return: self.implicit_return,
            implicit_exception: self.implicit_exception,
            branch_prediction: self.prediction,
            jump_target_cache: self.cache,
            iret_ext: self.iret_ext,
            data: self.data_config,
            ..config.clone()
        };
        if let Some(parameters) = self.parameters {
            config.f0s_width = parameters.f0s_width;
            config.return_stack_size = parameters.return_stack_size;
            config.call_counter_size = parameters.call_counter_size;
            config.bpred_size = parameters.bpred_size;
            config.cache_size = parameters.cache_size;
            // It does not say whether there is a time.
            if config.time_width > 0 {
                config.time_width = parameters.time_bits();
            }
        }
        config
    }
}

impl Settings {
    /// The modes that a support packet reports.
    pub(super) fn told(&self, support: &Support) -> Modes {
        let ioptions = &self.config.ioptions;
        let told = |option| ioptions.get(support.ioptions, option);
        let before = &self.modes;
        let denable = support.data.map(|data| data.denable);
        let parameters = match self.config.version.is_standard() {
            true => Some(SupportParameters::from_field(
                support.ioptions >> ioptions.width(),
            )),
            false => None,
        };
        Modes {
            full_address: told(Ioption::FullAddress).unwrap_or(before.full_address),
            sijump: told(Ioption::SequentialJump).unwrap_or(before.sijump),
            implicit_return: told(Ioption::ImplicitReturn).unwrap_or(before.implicit_return),
            implicit_exception: told(Ioption::ImplicitException)
                .unwrap_or(before.implicit_exception),
            prediction: told(Ioption::BranchPrediction).unwrap_or(before.prediction),
            cache: told(Ioption::JumpTargetCache).unwrap_or(before.cache),
            keeps: told(Ioption::ResyncDisabled).unwrap_or(before.keeps),
            iret_ext: told(Ioption::ImplicitReturnExtension).unwrap_or(before.iret_ext),
            parameters,
            data: denable.or(before.data),
            data_config: before.data_config.map(|data| {
                let width = self.config.doptions_width.unwrap_or(0);
                data.follow(support, self.config.version, width)
            }),
        }
    }

    /// Whether it reports modes that are not supported: they need a table, and the
    /// encoder has none of a known size.
    pub(super) fn refuses(&self, support: &Support) -> bool {
        let modes = self.told(support);
        let config = modes.apply(&self.config);
        let calls = config.call_counter_size + config.return_stack_size;
        modes.prediction && config.bpred_size == 0
            || modes.cache && config.cache_size == 0
            || modes.implicit_return && calls == 0
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
