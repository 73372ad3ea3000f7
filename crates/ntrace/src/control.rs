//! The encoder's control registers and the settings they represent (Trace
//! Control Interface 1.0; N-Trace 1.0, chapter 6).

mod capabilities;
mod registers;

use core::fmt;

use crate::{
    Config, ConfigError, ImplicitReturn, RepeatedHistory, SyncUnit, Timestamps, TraceMode,
    TriggerAction,
};

pub use capabilities::{Capabilities, TsCapabilities};
pub use registers::{RegisterField, TeControl, TeImpl, TeInstFeatures, TsControl};

/// The registers of one encoder that have to do with its [`Config`].
///
/// ```
/// use hartrace_isa::Xlen;
/// use hartrace_ntrace::{Config, Registers, TraceMode, Version};
///
/// let mut config = Config::new(Version::V1_0, Xlen::Rv64);
/// let mut registers = Registers::of(&config);
/// assert_eq!(registers.control.inst_mode(), 6);
/// registers.control = registers.control.with_inst_mode(3);
/// registers.apply(&mut config).unwrap();
/// assert_eq!(config.mode, TraceMode::Btm);
/// registers.control = registers.control.with_format(0);
/// let error = registers.apply(&mut config).unwrap_err();
/// assert_eq!(error.to_string(), "trTeControl: trTeFormat = 0x0: not N-Trace");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    /// `trTeControl` (0x000).
    pub control: TeControl,
    /// `trTeImpl` (0x004).
    pub impl_: TeImpl,
    /// `trTeInstFeatures` (0x008).
    pub inst_features: TeInstFeatures,
    /// `trTsControl` (0x040).
    pub ts_control: TsControl,
    /// `trTeTrigExtInControl` (0x054): four bits for each of eight inputs.
    pub trig_ext_in: u32,
}

/// Bits that part of a return address has if nothing specifies them: the register
/// does not, and a decoder need not know.
const PARTIAL_BITS: u8 = 16;

/// Largest width that `trTsWidth` can say.
const MAX_TS_WIDTH: u8 = 63;

impl TeImpl {
    /// An encoder of N-Trace 1.0 with a control interface 1.0.
    pub const N_TRACE: TeImpl = TeImpl(0)
        .with_ver_major(1)
        .with_comp_type(1)
        .with_protocol_major(1);
}

impl Registers {
    /// What software writes for these settings, with tracing on, and what it
    /// reads back from an encoder that can do it all.
    ///
    /// Not all settings are in registers. A timestamp of 64 bits is encoded as 63,
    /// the most that can be.
    #[must_use]
    pub fn of(config: &Config) -> Registers {
        Registers {
            control: control_of(config),
            impl_: TeImpl::N_TRACE,
            inst_features: features_of(config),
            ts_control: config.timestamps.map_or(TsControl(0), |t| {
                TsControl(0)
                    .with_active(true)
                    .with_count(true)
                    .with_mode(2)
                    .with_prescale(t.prescale.into())
                    .with_enable(true)
                    .with_width(t.width.min(MAX_TS_WIDTH).into())
            }),
            trig_ext_in: config.external.iter().rev().fold(0, |all, action| {
                let code = match action {
                    TriggerAction::None => 0,
                    TriggerAction::On => 2,
                    TriggerAction::Off => 3,
                    TriggerAction::Notify => 4,
                };
                all << 4 | code
            }),
        }
    }

    /// Puts into `config` what these registers say, such as a dump of them
    /// made while or after tracing; the rest of it stays.
    ///
    /// Without trTeEnable, trTeInstTracing says nothing about how the trace
    /// began. trTeInstStallEna needs a queue to have an effect.
    ///
    /// # Errors
    ///
    /// The first value that is not N-Trace's, or not known; `config` is then
    /// as it was.
    pub fn apply(&self, config: &mut Config) -> Result<(), RegisterError> {
        self.check_reserved()?;
        self.check_impl()?;
        let mut new = config.clone();
        self.apply_control(&mut new)?;
        self.apply_features(&mut new)?;
        self.apply_timestamps(&mut new)?;
        self.apply_triggers(&mut new)?;
        new.validate().map_err(RegisterError::Config)?;
        *config = new;
        Ok(())
    }

    /// Bits of a later version may change the trace.
    fn check_reserved(&self) -> Result<(), RegisterError> {
        let why = "bits of a later version";
        let all = [
            (TeControl::NAME, self.control.reserved()),
            (TeInstFeatures::NAME, self.inst_features.reserved()),
            (TsControl::NAME, self.ts_control.reserved()),
        ];
        all.into_iter()
            .try_for_each(|(name, bits)| refuse(bits != 0, name, "reserved", bits, why))
    }

    fn check_impl(&self) -> Result<(), RegisterError> {
        let it = self.impl_;
        let bad = |wrong, field, value, why| refuse(wrong, TeImpl::NAME, field, value, why);
        let version = it.ver_major();
        bad(
            version != 1,
            "trTeVerMajor",
            version,
            "not version 1 of the control interface",
        )?;
        let kind = it.comp_type();
        bad(kind != 1, "trTeCompType", kind, "not a trace encoder")?;
        // Another minor version is an extension that can be read all the same.
        let protocol = it.protocol_major();
        bad(
            protocol != 1,
            "trTeProtocolMajor",
            protocol,
            "not version 1 of N-Trace",
        )
    }

    fn apply_control(&self, config: &mut Config) -> Result<(), RegisterError> {
        let it = self.control;
        let bad = |field, value, why| RegisterError::field(TeControl::NAME, field, value, why);
        if it.format() != 1 {
            return Err(bad("trTeFormat", it.format(), "not N-Trace"));
        }
        config.mode = match it.inst_mode() {
            3 => TraceMode::Btm,
            6 => TraceMode::Htm,
            mode => {
                let why = match mode {
                    0 => "instruction tracing is off",
                    7 => "a vendor-defined mode",
                    _ => "not a mode of N-Trace",
                };
                return Err(bad("trTeInstMode", mode, why));
            }
        };
        if it.enable() {
            config.starts_disabled = !it.inst_tracing();
        }
        config.context = it.context();
        config.triggers = it.inst_trig_enable();
        if let Some(queue) = &mut config.queue {
            queue.stall = it.inst_stall_ena();
        }
        config.periodic.unit = match it.inst_sync_mode() {
            0 => SyncUnit::Off,
            1 => SyncUnit::Messages,
            2 => SyncUnit::Cycles,
            _ => SyncUnit::Halfwords,
        };
        config.periodic.max = it.inst_sync_max() as u8;
        // RepeatBranch has no bit of its own, and no use in HTM.
        config.repeat_branch &= config.mode == TraceMode::Btm;
        Ok(())
    }

    fn apply_features(&self, config: &mut Config) -> Result<(), RegisterError> {
        let it = self.inst_features;
        let bad = |wrong, field, value, why| refuse(wrong, TeInstFeatures::NAME, field, value, why);
        for (set, field) in [
            (it.no_addr_diff(), "trTeInstNoAddrDiff"),
            (it.no_trap_addr(), "trTeInstNoTrapAddr"),
            (it.en_branch_prediction(), "trTeInstEnBranchPrediction"),
            (it.en_jump_target_cache(), "trTeInstEnJumpTargetCache"),
        ] {
            bad(set, field, 1, "not in N-Trace")?;
        }
        config.sequential_jump = it.en_sequential_jump();
        config.all_jumps = it.en_all_jumps();
        config.extend_addr_msb = it.extend_addr_msb();
        config.implicit_return = match (it.en_implicit_return(), it.implicit_return_mode()) {
            (false, _) => ImplicitReturn::Off,
            (true, 0) => {
                let why = "implicit return is on, but its mode is not given";
                return bad(true, "trTeInstImplicitReturnMode", 0, why);
            }
            (true, 1) => ImplicitReturn::Count,
            (true, 2) => match config.implicit_return {
                ImplicitReturn::Partial(bits) => ImplicitReturn::Partial(bits),
                _ => ImplicitReturn::Partial(PARTIAL_BITS),
            },
            (true, _) => ImplicitReturn::Full,
        };
        // In BTM there is no history.
        let repeats = it.en_repeated_history() && config.mode == TraceMode::Htm;
        config.repeated_history = match config.repeated_history {
            _ if !repeats => RepeatedHistory::Off,
            RepeatedHistory::Off => RepeatedHistory::On,
            kind => kind,
        };
        let width = it.src_bits();
        bad(width > 12, "trTeSrcBits", width, "SRC has 0 to 12 bits")?;
        if self.control.inhibit_src() || width == 0 {
            (config.src_bits, config.src_id) = (0, 0);
            return Ok(());
        }
        let id = it.src_id();
        let fits = id < 1 << width;
        bad(!fits, "trTeSrcID", id, "does not fit into trTeSrcBits")?;
        (config.src_bits, config.src_id) = (width as u8, id as u16);
        Ok(())
    }

    fn apply_timestamps(&self, config: &mut Config) -> Result<(), RegisterError> {
        let it = self.ts_control;
        if !it.enable() {
            config.timestamps = None;
            return Ok(());
        }
        let bad = |wrong, field, value, why| refuse(wrong, TsControl::NAME, field, value, why);
        let mode = it.mode();
        bad(
            mode == 0,
            "trTsMode",
            0,
            "timestamps are enabled, but the encoder has none",
        )?;
        bad(mode > 4, "trTsMode", mode, "vendor-defined timestamps")?;
        let width = it.width() as u8;
        bad(width == 0, "trTsWidth", 0, "timestamps of zero bits")?;
        let old = config.timestamps.unwrap_or(Timestamps {
            width,
            ..Timestamps::default()
        });
        config.timestamps = Some(Timestamps {
            // 64 bits cannot be encoded.
            width: if width == MAX_TS_WIDTH {
                old.width.max(width)
            } else {
                width
            },
            prescale: it.prescale() as u8,
            sync_only: old.sync_only,
        });
        Ok(())
    }

    fn apply_triggers(&self, config: &mut Config) -> Result<(), RegisterError> {
        const FIELDS: [&str; 8] = [
            "trTeTrigExtInAction0",
            "trTeTrigExtInAction1",
            "trTeTrigExtInAction2",
            "trTeTrigExtInAction3",
            "trTeTrigExtInAction4",
            "trTeTrigExtInAction5",
            "trTeTrigExtInAction6",
            "trTeTrigExtInAction7",
        ];
        let mut rest = self.trig_ext_in;
        for (action, field) in config.external.iter_mut().zip(FIELDS) {
            *action = match rest & 15 {
                0 => TriggerAction::None,
                2 => TriggerAction::On,
                3 => TriggerAction::Off,
                4 => TriggerAction::Notify,
                code => {
                    let register = "trTeTrigExtInControl";
                    return Err(RegisterError::field(
                        register,
                        field,
                        code,
                        "not a trigger action",
                    ));
                }
            };
            rest >>= 4;
        }
        Ok(())
    }
}

fn control_of(config: &Config) -> TeControl {
    let mode = match config.mode {
        TraceMode::Btm => 3,
        TraceMode::Htm => 6,
    };
    let unit = match config.periodic.unit {
        SyncUnit::Off => 0,
        SyncUnit::Messages => 1,
        SyncUnit::Cycles => 2,
        SyncUnit::Halfwords => 3,
    };
    TeControl(0)
        .with_active(true)
        .with_enable(true)
        .with_inst_tracing(!config.starts_disabled)
        .with_empty(true)
        .with_inst_mode(mode)
        .with_context(config.context)
        .with_inst_trig_enable(config.triggers)
        .with_inst_stall_ena(config.queue.is_some_and(|q| q.stall))
        .with_inhibit_src(config.src_bits == 0)
        .with_inst_sync_mode(unit)
        .with_inst_sync_max(config.periodic.max.into())
        .with_format(1)
}

fn features_of(config: &Config) -> TeInstFeatures {
    let mode = match config.implicit_return {
        ImplicitReturn::Off => 0,
        ImplicitReturn::Count => 1,
        ImplicitReturn::Partial(_) => 2,
        ImplicitReturn::Full => 3,
    };
    TeInstFeatures(0)
        .with_en_sequential_jump(config.sequential_jump)
        .with_en_implicit_return(mode != 0)
        .with_implicit_return_mode(mode)
        .with_en_repeated_history(config.repeated_history != RepeatedHistory::Off)
        .with_en_all_jumps(config.all_jumps)
        .with_extend_addr_msb(config.extend_addr_msb)
        .with_src_id(config.src_id.into())
        .with_src_bits(config.src_bits.into())
}

/// Registers that are not those of an N-Trace encoder, or not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterError {
    /// A field has a value that cannot be.
    Field {
        /// The register.
        register: &'static str,
        /// Its field.
        field: &'static str,
        /// The value.
        value: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// They do not go with the other settings.
    Config(ConfigError),
}

impl RegisterError {
    const fn field(
        register: &'static str,
        field: &'static str,
        value: u32,
        why: &'static str,
    ) -> RegisterError {
        RegisterError::Field {
            register,
            field,
            value,
            why,
        }
    }
}

const fn refuse(
    wrong: bool,
    register: &'static str,
    field: &'static str,
    value: u32,
    why: &'static str,
) -> Result<(), RegisterError> {
    if wrong {
        return Err(RegisterError::field(register, field, value, why));
    }
    Ok(())
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Field {
                register,
                field,
                value,
                why,
            } => write!(f, "{register}: {field} = {value:#x}: {why}"),
            RegisterError::Config(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RegisterError {}

#[cfg(test)]
mod tests;
