//! The settings of an encoder, and what a decoder must know of them.

use core::fmt;

use hartrace_flow::encode::ProtocolConfig;
pub use hartrace_flow::queue::Queue;
use hartrace_flow::{PortConfig, Rules};
use hartrace_isa::{Isa, ItypeTable, Xlen};

use crate::Layout;

/// Which text of the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.1.1-draft of September 2020: exception packets with `tvalepc`, no
    /// `thaddr`, no `time`.
    V1_1_1,
    /// 2.0, ratified 2022 (text of June 2025).
    #[default]
    V2_0,
}

/// A run-time mode reported by a bit of `ioptions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ioption {
    /// Targets of sequentially inferable jumps are left out.
    SequentialJump,
    /// Return addresses are left out.
    ImplicitReturn,
    /// Handler addresses are left out.
    ImplicitException,
    /// Branches that were predicted are counted.
    BranchPrediction,
    /// Jump targets may be reported by their index in a cache.
    JumpTargetCache,
    /// Addresses are full, not differences.
    FullAddress,
}

/// The bits of `ioptions` (draft: `options`), which every implementation
/// arranges in its own way: what each bit reports, the lowest first; `None` for a
/// bit of no known meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ioptions {
    bits: [Option<Ioption>; Ioptions::MOST],
    len: u8,
}

impl Ioptions {
    /// The largest number of bits.
    pub const MOST: usize = 16;

    /// The five bits of the reference models.
    pub const REFERENCE: Ioptions = Ioptions {
        bits: {
            let mut bits = [None; Ioptions::MOST];
            bits[0] = Some(Ioption::ImplicitReturn);
            bits[1] = Some(Ioption::ImplicitException);
            bits[2] = Some(Ioption::FullAddress);
            bits[3] = Some(Ioption::JumpTargetCache);
            bits[4] = Some(Ioption::BranchPrediction);
            bits
        },
        len: 5,
    };

    /// These bits, the lowest first; `None` if there are too many.
    #[must_use]
    pub fn new(order: &[Option<Ioption>]) -> Option<Ioptions> {
        let mut bits = [None; Ioptions::MOST];
        bits.get_mut(..order.len())?.copy_from_slice(order);
        let len = order.len() as u8;
        Some(Ioptions { bits, len })
    }

    /// What each bit reports, the lowest first.
    #[must_use]
    pub fn order(&self) -> &[Option<Ioption>] {
        self.bits.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Width of the field.
    #[must_use]
    pub const fn width(&self) -> u8 {
        self.len
    }

    /// What a value of the field says about a mode; `None` if no bit reports it.
    #[must_use]
    pub fn get(&self, field: u32, option: Ioption) -> Option<bool> {
        let bit = self.order().iter().position(|&o| o == Some(option))?;
        Some(field >> bit & 1 != 0)
    }
}

/// When a synchronisation packet is due though nothing else asks for one
/// (`ResyncMode`, `ResyncMax`; trTeInstSyncMode, trTeInstSyncMax).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resync {
    /// What is counted.
    pub unit: ResyncUnit,
    /// 0 to 15: one every 2^(n+4) of them.
    pub max: u8,
    /// Where exactly it comes.
    pub rule: ResyncRule,
}

/// What the resync counter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResyncUnit {
    /// Nothing: no periodic synchronisation.
    #[default]
    Off,
    /// Packets.
    Packets,
    /// Cycles: the time of the ingress port.
    Cycles,
    /// Halfwords of retired instructions.
    Halfwords,
}

/// Where a resync comes once its counter is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResyncRule {
    /// After the next branch, indirect jump or other discontinuity: places
    /// every ingress port shows, so the packets do not depend on how many
    /// instructions a block has. The branches before it are reported first, as
    /// state 2 of the ratified text has it.
    #[default]
    Settled,
    /// As the draft (8.2) and the reference encoder have it: when the counter
    /// has reached its limit, a packet for the next branch or jump target; one
    /// packet above it, the synchronisation at the very next instruction the
    /// port shows.
    Exceeded,
}

/// What the trace ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The address of the last instruction, unless a packet just reported it, and
    /// a support packet.
    #[default]
    Reported,
    /// As the reference encoder does: the address of the last instruction in
    /// any case, and a support packet with `ended_rep`. Decoders cannot know
    /// what that means if the address was just reported.
    Reference,
}

/// What `irdepth` holds while `irreport` says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdleIrdepth {
    /// The bit before it over and over, so that it is compressed away (6.6.3).
    #[default]
    Repeated,
    /// Ones, as the reference encoder writes it.
    Ones,
}

/// When `updiscon` is reported for the target of a jump (6.6.2). Decoders read both
/// alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UpdisconRule {
    /// When a format 3 packet follows.
    #[default]
    Followed,
    /// As the reference encoder does, by the next row of its input: when that is
    /// a trap, even of an instruction that retires and gets a packet of its own
    /// before; when it is in another mode; before a resync.
    NextRow,
}

/// All settings of an encoder. A decoder needs the same, but for those marked
/// "encoder". The first part are the parameters of table 9.1, with their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which text.
    pub version: Version,
    /// Width of addresses in the program.
    pub xlen: Xlen,
    /// Bits of an address that are traced, at most as many as `xlen` has. The
    /// upper ones repeat the highest of them.
    pub iaddress_width: u8,
    /// Low bits of an address that are not: 0 to 2.
    pub iaddress_lsb: u8,
    /// Width of `privilege`, 2 to 4: one bit cannot hold machine mode.
    pub privilege_width: u8,
    /// Width of `context`, 1 to 64; 0 for no such field (`nocontext_p`).
    pub context_width: u8,
    /// Width of `time`, 1 to 64; 0 for no such field (`notime_p`).
    pub time_width: u8,
    /// Width of `ecause`, 1 to 16.
    pub ecause_width: u8,
    /// Width of `subformat` in format 0, 0 to 2.
    pub f0s_width: u8,
    /// The branch predictor has 2 to the power of this entries; 0 for none.
    pub bpred_size: u8,
    /// The jump target cache has 2 to the power of this entries; 0 for none.
    pub cache_size: u8,
    /// Bits of the call counter; 0 for none.
    pub call_counter_size: u8,
    /// The return stack has 2 to the power of this entries; 0 for none.
    pub return_stack_size: u8,
    /// Width of `encoder_mode`, 0 to 8.
    pub encoder_mode_width: u8,
    /// The bits of `ioptions`.
    pub ioptions: Ioptions,
    /// Width of `doptions`, 0 to 16; `None` where support packets have none of
    /// `denable`, `dloss` and `doptions`.
    pub doptions_width: Option<u8>,

    /// Addresses are full, not differences.
    pub full_address: bool,
    /// Targets of sequentially inferable jumps are left out.
    pub sijump: bool,
    /// Decoder: those of returns too. So it is where `itype` has three bits and
    /// does not distinguish returns from other jumps; with four bits the signal
    /// `sijump` is ignored for them (2.0, table 4.1).
    pub sijump_returns: bool,

    /// Encoder: periodic synchronisation.
    pub resync: Resync,
    /// Encoder: debug triggers start and stop tracing and ask for packets.
    pub triggers: bool,
    /// Encoder: tracing waits for a trigger.
    pub starts_disabled: bool,
    /// Encoder: what the trace ends with. A decoder heeds it where the last
    /// packet could mean either.
    pub ending: Ending,
    /// Encoder: what `irdepth` holds while it says nothing.
    pub idle_irdepth: IdleIrdepth,
    /// Encoder: when `updiscon` is reported.
    pub updiscon: UpdisconRule,
    /// Encoder: the output queue, of at least [`MIN_QUEUE`] bytes; `None` for
    /// one that is never full.
    pub queue: Option<Queue>,
}

/// The longest payload, in bytes: what five bits of length can say.
pub const MAX_PAYLOAD: usize = 31;

/// Smallest queue: two of the longest packets, with their headers.
pub const MIN_QUEUE: u32 = 64;

impl Config {
    /// An encoder of this version with every option off, widths for all of
    /// RISC-V and a synchronisation every 4096 packets.
    #[must_use]
    pub const fn new(version: Version, xlen: Xlen) -> Config {
        let draft = matches!(version, Version::V1_1_1);
        Config {
            version,
            xlen,
            iaddress_width: xlen.bits() as u8,
            iaddress_lsb: 1,
            privilege_width: if draft { 3 } else { 2 },
            context_width: 0,
            time_width: 0,
            ecause_width: 6,
            f0s_width: 0,
            bpred_size: 0,
            cache_size: 0,
            call_counter_size: 0,
            return_stack_size: 0,
            encoder_mode_width: 1,
            ioptions: Ioptions::REFERENCE,
            doptions_width: if draft { None } else { Some(4) },
            full_address: false,
            sijump: false,
            sijump_returns: false,
            resync: Resync {
                unit: ResyncUnit::Packets,
                max: 8,
                rule: ResyncRule::Settled,
            },
            triggers: false,
            starts_disabled: false,
            ending: Ending::Reported,
            idle_irdepth: IdleIrdepth::Repeated,
            updiscon: UpdisconRule::Followed,
            queue: None,
        }
    }

    /// The port of a hart with this instruction set, as the encoder needs it.
    #[must_use]
    pub const fn port(&self, isa: Isa) -> PortConfig {
        PortConfig {
            table: match self.version {
                Version::V1_1_1 => ItypeTable::ETrace111,
                Version::V2_0 => ItypeTable::ETrace20,
            },
            sijump: self.sijump,
            ..PortConfig::new(isa)
        }
    }

    /// What the bytes of packets depend on.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        Layout {
            version: self.version,
            iaddress_width: self.iaddress_width,
            iaddress_lsb: self.iaddress_lsb,
            privilege_width: self.privilege_width,
            context_width: self.context_width,
            time_width: self.time_width,
            ecause_width: self.ecause_width,
            f0s_width: self.f0s_width,
            bpred_size: self.bpred_size,
            cache_size: self.cache_size,
            irdepth_width: self.call_counter_size
                + self.return_stack_size
                + (self.return_stack_size > 0) as u8,
            encoder_mode_width: self.encoder_mode_width,
            ioptions_width: self.ioptions.width(),
            doptions_width: self.doptions_width,
            implicit_exception: false,
        }
    }

    /// Which jumps a decoder follows by itself.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        self.rules_with(self.sijump)
    }

    /// The same while this mode is on or not.
    pub(crate) const fn rules_with(&self, sijump: bool) -> Rules {
        Rules {
            sequential_jumps: sijump,
            sequential_returns: sijump && self.sijump_returns,
            absolute_jumps: true,
            all_jumps: false,
            nexrv_links: false,
        }
    }

    /// Value of `ioptions` for these settings.
    #[must_use]
    pub fn ioptions_field(&self) -> u32 {
        let on = |option| match option {
            Ioption::SequentialJump => self.sijump,
            Ioption::FullAddress => self.full_address,
            _ => false,
        };
        let order = self.ioptions.order().iter().enumerate();
        order.fold(0, |field, (bit, option)| {
            field | u32::from(option.is_some_and(on)) << bit
        })
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    ///
    /// The first that does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let checks = [
            (
                (8..=self.xlen.bits() as u8).contains(&self.iaddress_width),
                ConfigError::IaddressWidth,
            ),
            (self.iaddress_lsb <= 2, ConfigError::IaddressLsb),
            (
                (2..=4).contains(&self.privilege_width),
                ConfigError::PrivilegeWidth,
            ),
            (self.context_width <= 64, ConfigError::ContextWidth),
            (self.time_width <= 64, ConfigError::TimeWidth),
            (
                self.time_width == 0 || self.version != Version::V1_1_1,
                ConfigError::DraftTime,
            ),
            (
                (1..=16).contains(&self.ecause_width),
                ConfigError::EcauseWidth,
            ),
            (self.f0s_width <= 2, ConfigError::F0sWidth),
            (
                self.f0s_width > 0 || self.bpred_size == 0 || self.cache_size == 0,
                ConfigError::F0sNeeded,
            ),
            (
                self.bpred_size <= 15 && self.cache_size <= 15,
                ConfigError::TableSize,
            ),
            (
                self.call_counter_size <= 15
                    && self.return_stack_size <= 15
                    && self.layout().irdepth_width <= 16,
                ConfigError::StackSize,
            ),
            (self.encoder_mode_width <= 8, ConfigError::EncoderModeWidth),
            (
                self.doptions_width.is_none_or(|w| w <= 16),
                ConfigError::DoptionsWidth,
            ),
            (self.resync.max <= 15, ConfigError::ResyncMax),
            (
                self.queue
                    .is_none_or(|q| q.bytes >= MIN_QUEUE && q.drain > 0),
                ConfigError::Queue,
            ),
            (
                self.layout().longest() <= MAX_PAYLOAD * 8,
                ConfigError::PacketTooLong,
            ),
        ];
        match checks.iter().find(|(good, _)| !good) {
            Some(&(_, error)) => Err(error),
            None => Ok(()),
        }
    }
}

/// Settings that do not make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigError {
    /// `iaddress_width`.
    IaddressWidth,
    /// `iaddress_lsb`.
    IaddressLsb,
    /// `privilege_width`.
    PrivilegeWidth,
    /// `context_width`.
    ContextWidth,
    /// `time_width`.
    TimeWidth,
    /// `time_width` in the draft.
    DraftTime,
    /// `ecause_width`.
    EcauseWidth,
    /// `f0s_width`.
    F0sWidth,
    /// `f0s_width` with two kinds of format 0.
    F0sNeeded,
    /// `bpred_size`, `cache_size`.
    TableSize,
    /// `call_counter_size`, `return_stack_size`.
    StackSize,
    /// `encoder_mode_width`.
    EncoderModeWidth,
    /// `doptions_width`.
    DoptionsWidth,
    /// `resync.max`.
    ResyncMax,
    /// `queue`.
    Queue,
    /// All the widths together.
    PacketTooLong,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigError::IaddressWidth => "iaddress_width must be 8 to the program's XLEN",
            ConfigError::IaddressLsb => "iaddress_lsb must be 0 to 2",
            ConfigError::PrivilegeWidth => {
                "privilege_width must be 2 to 4: one bit cannot \
                represent machine mode"
            }
            ConfigError::ContextWidth => "context_width must be at most 64",
            ConfigError::TimeWidth => "time_width must be at most 64",
            ConfigError::DraftTime => "packets of the 1.1.1-draft have no time",
            ConfigError::EcauseWidth => "ecause_width must be 1 to 16",
            ConfigError::F0sWidth => "f0s_width must be 0 to 2",
            ConfigError::F0sNeeded => {
                "f0s_width must be at least 1 with both a predictor and a jump target cache"
            }
            ConfigError::TableSize => "bpred_size and cache_size must be at most 15",
            ConfigError::StackSize => {
                "call_counter_size and return_stack_size must be at most 15, and irdepth at \
                 most 16 bits"
            }
            ConfigError::EncoderModeWidth => "encoder_mode_width must be at most 8",
            ConfigError::DoptionsWidth => "doptions_width must be at most 16",
            ConfigError::ResyncMax => "resync_max must be 0 to 15",
            ConfigError::Queue => "the queue must hold at least 64 bytes and drain",
            ConfigError::PacketTooLong => "with these widths a packet can exceed 31 bytes",
        })
    }
}

impl core::error::Error for ConfigError {}

impl ProtocolConfig for Config {
    type Error = ConfigError;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }
}
