//! The settings of an encoder, and what a decoder must know of them.

use core::fmt;

use hartrace_flow::encode::ProtocolConfig;
pub use hartrace_flow::queue::Queue;
use hartrace_flow::{PortConfig, Retires};
use hartrace_isa::{Isa, ItypeTable, Xlen};

use crate::{Evcode, Layout, Sync, Tcodes};

/// Which text of the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.0.0-rc7 of 2023, "frozen".
    Rc7,
    /// 1.0, ratified 2024.
    #[default]
    V1_0,
}

/// What is reported about branches (trTeInstMode; chapter 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TraceMode {
    /// Branch trace messaging (3): a message for each taken branch.
    Btm,
    /// Branch history messaging (6): a bit for each branch.
    #[default]
    Htm,
}

impl TraceMode {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TraceMode::Btm => "branch trace",
            TraceMode::Htm => "branch history",
        }
    }
}

/// What happens when the instruction counter is full (8.4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IcntFull {
    /// ResourceFull with `RCODE` = 0.
    #[default]
    ResourceFull,
    /// A sync message with `SYNC` = 4, where the version allows it: rc7 in BTM,
    /// and in HTM with branches in the history; 1.0 in BTM only.
    Sync,
}

/// How traps are distinguished from jumps (table 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TrapTypes {
    /// `B-TYPE` = 1 for both.
    One,
    /// `B-TYPE` = 2 for exceptions, 3 for interrupts.
    #[default]
    Two,
    /// Not at all: always 0, as the reference encoder does.
    None,
}

/// When a periodic sync is due (trTeInstSyncMode, trTeInstSyncMax).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Periodic {
    /// What is counted.
    pub unit: SyncUnit,
    /// trTeInstSyncMax, 0 to 15: one sync every 2^(n+4) of them.
    pub max: u8,
    /// The sync waits for the next branch message and takes its place, instead
    /// of coming between two instructions at once.
    pub delayed: bool,
}

/// What the periodic sync counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncUnit {
    /// Nothing: no periodic sync.
    #[default]
    Off,
    /// Messages.
    Messages,
    /// Cycles: the time of the ingress port.
    Cycles,
    /// Halfwords of retired instructions.
    Halfwords,
}

/// Timestamps (trTsControl).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// Width of the counter, 1 to 64 bits (trTsWidth).
    pub width: u8,
    /// trTsPrescale, 0 to 3: one tick every 4^n units of time.
    pub prescale: u8,
    /// Only sync messages have one.
    pub sync_only: bool,
}

impl Default for Timestamps {
    fn default() -> Timestamps {
        Timestamps {
            width: 64,
            prescale: 0,
            sync_only: false,
        }
    }
}

/// Returns that are left out (trTeInstImplicitReturnMode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ImplicitReturn {
    /// None.
    #[default]
    Off,
    /// Mode 1: as many as calls, wherever they go.
    Count,
    /// Mode 2: those whose address agrees with the call's in this many low
    /// bits, above bit 0.
    Partial(u8),
    /// Mode 3: those that go back to their call.
    Full,
}

/// How repetitions in the history are found (trTeInstEnRepeatedHistory).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RepeatedHistory {
    /// Not at all.
    #[default]
    Off,
    /// Any period up to 31 branches.
    On,
    /// As the reference encoder does: whole registers of 31, 30 or 28
    /// branches.
    Reference,
}

/// What an encoder keeps of return addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StackKind {
    /// A stack that loses its oldest entry when it is full.
    #[default]
    Plain,
    /// The ring of the reference encoder, which after an overflow gives some
    /// wrong addresses. A decoder then goes by the reference's calls and
    /// returns: `ecall` is a call and `mret` a return, `jr t0` is neither.
    ReferenceRing,
}

/// What the trace ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ending {
    /// ProgTraceCorrelation; in HTM with `HIST`, even an empty one.
    #[default]
    Correlation,
    /// As the reference encoder does: `HIST` only where there are branches; a
    /// message that still waits for its address comes instead, with the
    /// address of the last instruction.
    Reference,
}

/// What a message with a reserved or vendor-defined `TCODE` is to a decoder
/// (6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OtherTcodes {
    /// It is reported, and the flow goes on: an encoder may send such messages.
    #[default]
    Reported,
    /// It is a damaged message: the encoder is known to send none.
    Damage,
}

/// What a pulse on an external trigger input does (trTeTrigExtInControl).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TriggerAction {
    /// Nothing.
    #[default]
    None,
    /// Starts tracing (2).
    On,
    /// Stops tracing (3).
    Off,
    /// Sends a sync message with `SYNC` = 0 (4).
    Notify,
}

/// All settings of an encoder. A decoder needs the same, but for those marked
/// "encoder".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which text.
    pub version: Version,
    /// BTM or HTM.
    pub mode: TraceMode,
    /// Width of addresses.
    pub xlen: Xlen,
    /// Width of `SRC`, 0 to 12; 0 for no such field (trTeSrcBits,
    /// trTeInhibitSrc).
    pub src_bits: u8,
    /// `SRC` of hart 0; hart n has this plus n (trTeSrcID).
    pub src_id: u16,
    /// Encoder: width of the instruction counter, its top bit the sign that it
    /// is full; 2 to 22, or 0 for one that never is.
    pub icnt_bits: u8,
    /// Encoder: what happens then.
    pub icnt_full: IcntFull,
    /// Encoder: width of the history with its stop bit, 2 to 32.
    pub hist_bits: u8,
    /// Encoder: a jump without branches before it is an IndirectBranch in HTM
    /// too, which saves a byte.
    pub short_indirect: bool,
    /// Encoder: periodic sync.
    pub periodic: Periodic,
    /// Encoder: `B-TYPE` of traps.
    pub trap_types: TrapTypes,
    /// Ownership messages (trTeContext).
    pub context: bool,
    /// The hart has hcontext: two Ownership messages after each sync.
    pub hcontext: bool,
    /// Timestamps, if any.
    pub timestamps: Option<Timestamps>,
    /// trTeInstExtendAddrMSB.
    pub extend_addr_msb: bool,
    /// trTeInstEnSequentialJump.
    pub sequential_jump: bool,
    /// trTeInstImplicitReturnMode.
    pub implicit_return: ImplicitReturn,
    /// Encoder: depth of its return stack, 1 to 32.
    pub stack_depth: u8,
    /// Kind of the encoder's return stack.
    pub stack_kind: StackKind,
    /// Encoder, rc7: `SYNC` 0, 4 and 6 do not clear the return stack (table
    /// 25). A decoder that starts there misses the returns to earlier calls.
    pub markers_keep_stack: bool,
    /// Encoder: repetitions in the history.
    pub repeated_history: RepeatedHistory,
    /// Encoder: width of `HREPEAT`; 0 for no limit.
    pub hrepeat_bits: u8,
    /// Encoder: repeated branch messages are counted (RepeatBranch; BTM).
    pub repeat_branch: bool,
    /// Encoder: width of `B-CNT`; 0 for no limit.
    pub bcnt_bits: u8,
    /// trTeInstEnAllJumps: direct jumps and calls count as taken branches.
    pub all_jumps: bool,
    /// Instructions that trap and count as retired all the same.
    pub retires: Retires,
    /// Encoder: debug triggers start and stop tracing and send markers
    /// (trTeInstTrigEnable).
    pub triggers: bool,
    /// Encoder: what external triggers do.
    pub external: [TriggerAction; 8],
    /// Encoder: tracing waits for a trigger.
    pub starts_disabled: bool,
    /// Encoder: `SYNC` of the first message.
    pub first_sync: Sync,
    /// Encoder: `EVCODE` of the last message.
    pub last_event: Evcode,
    /// Encoder: what the trace ends with.
    pub ending: Ending,
    /// Encoder: the output queue, of at least [`MIN_QUEUE`] bytes; `None` for
    /// one that is never full.
    pub queue: Option<Queue>,
    /// Decoder: what messages with a reserved or vendor-defined `TCODE` are.
    pub other_tcodes: OtherTcodes,
    /// Decoder: those that the encoder is known to send, which are skipped.
    pub ignore_tcodes: Tcodes,
    /// Decoder: the most halfwords or branches that one message is believed to
    /// stand for, counters and repetitions multiplied.
    pub max_expansion: u64,
}

/// Largest widths (table 10).
pub const MAX_ICNT_BITS: u8 = 22;
/// Largest width of `HIST`.
pub const MAX_HIST_BITS: u8 = 32;
/// Largest width of `HREPEAT` and `B-CNT` in 1.0.
pub const MAX_REPEAT_BITS: u8 = 18;
/// Deepest return stack.
pub const MAX_STACK: u8 = 32;
/// Smallest queue: two of the longest messages (chapter 3).
pub const MIN_QUEUE: u32 = 76;
/// Largest width of `SRC`.
pub const MAX_SRC_BITS: u8 = 12;

impl Config {
    /// What this version's encoder does with every option off: HTM, one hart,
    /// counters at their largest, a sync every 4096 messages.
    #[must_use]
    pub const fn new(version: Version, xlen: Xlen) -> Config {
        Config {
            version,
            mode: TraceMode::Htm,
            xlen,
            src_bits: 0,
            src_id: 0,
            icnt_bits: MAX_ICNT_BITS,
            icnt_full: IcntFull::ResourceFull,
            hist_bits: MAX_HIST_BITS,
            short_indirect: true,
            periodic: Periodic {
                unit: SyncUnit::Messages,
                max: 8,
                delayed: false,
            },
            trap_types: TrapTypes::Two,
            context: false,
            hcontext: false,
            timestamps: None,
            extend_addr_msb: false,
            sequential_jump: false,
            implicit_return: ImplicitReturn::Off,
            stack_depth: MAX_STACK,
            stack_kind: StackKind::Plain,
            markers_keep_stack: false,
            repeated_history: RepeatedHistory::Off,
            hrepeat_bits: MAX_REPEAT_BITS,
            repeat_branch: false,
            bcnt_bits: MAX_REPEAT_BITS,
            all_jumps: false,
            retires: match version {
                Version::Rc7 => Retires::Ecall,
                Version::V1_0 => Retires::Neither,
            },
            triggers: false,
            external: [TriggerAction::None; 8],
            starts_disabled: false,
            first_sync: Sync::DEBUG_EXIT,
            last_event: Evcode::DISABLED,
            ending: Ending::Correlation,
            queue: None,
            other_tcodes: OtherTcodes::Reported,
            ignore_tcodes: Tcodes::NONE,
            max_expansion: 1 << 32,
        }
    }

    /// The port of a hart with this instruction set, as the encoder needs it.
    #[must_use]
    pub const fn port(&self, isa: Isa) -> PortConfig {
        PortConfig {
            table: match self.version {
                Version::Rc7 => ItypeTable::NTraceRc7,
                Version::V1_0 => ItypeTable::NTrace10,
            },
            all_jumps: self.all_jumps,
            retires: self.retires,
            ..PortConfig::new(isa)
        }
    }

    /// What the bytes of messages depend on.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        Layout {
            src_bits: self.src_bits,
            xlen: self.xlen,
            extend_addr_msb: self.extend_addr_msb,
        }
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    ///
    /// The first that does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let depth = 1..=MAX_STACK;
        let checks = [
            (self.src_bits <= MAX_SRC_BITS, ConfigError::SrcBits),
            (
                u32::from(self.src_id) < 1 << self.src_bits.min(MAX_SRC_BITS),
                ConfigError::SrcId,
            ),
            (
                self.icnt_bits == 0 || (2..=MAX_ICNT_BITS).contains(&self.icnt_bits),
                ConfigError::IcntBits,
            ),
            (
                (2..=MAX_HIST_BITS).contains(&self.hist_bits),
                ConfigError::HistBits,
            ),
            (self.periodic.max <= 15, ConfigError::SyncMax),
            (
                self.timestamps
                    .is_none_or(|t| (1..=64).contains(&t.width) && t.prescale <= 3),
                ConfigError::Timestamps,
            ),
            (depth.contains(&self.stack_depth), ConfigError::StackDepth),
            (
                !matches!(self.implicit_return, ImplicitReturn::Partial(0 | 64..)),
                ConfigError::PartialBits,
            ),
            (
                self.hrepeat_bits <= 63 && self.bcnt_bits <= 63,
                ConfigError::RepeatBits,
            ),
            (
                self.icnt_full == IcntFull::ResourceFull
                    || self.version == Version::Rc7
                    || self.mode == TraceMode::Btm,
                ConfigError::SequentialSync,
            ),
            (
                self.repeated_history == RepeatedHistory::Off || self.mode == TraceMode::Htm,
                ConfigError::HistoryInBtm,
            ),
            (
                !self.repeat_branch || self.mode == TraceMode::Btm,
                ConfigError::RepeatInHtm,
            ),
            (
                !self.markers_keep_stack || self.version == Version::Rc7,
                ConfigError::MarkersKeepStack,
            ),
            (
                self.queue
                    .is_none_or(|q| q.bytes >= MIN_QUEUE && q.drain > 0),
                ConfigError::Queue,
            ),
            (
                self.first_sync.0 <= 15 && self.last_event.0 <= 15,
                ConfigError::Code,
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
    /// `src_bits`.
    SrcBits,
    /// `src_id`.
    SrcId,
    /// `icnt_bits`.
    IcntBits,
    /// `hist_bits`.
    HistBits,
    /// `periodic.max`.
    SyncMax,
    /// `timestamps`.
    Timestamps,
    /// `stack_depth`.
    StackDepth,
    /// `implicit_return`.
    PartialBits,
    /// `hrepeat_bits`, `bcnt_bits`.
    RepeatBits,
    /// `icnt_full`.
    SequentialSync,
    /// `repeated_history`.
    HistoryInBtm,
    /// `repeat_branch`.
    RepeatInHtm,
    /// `markers_keep_stack`.
    MarkersKeepStack,
    /// `queue`.
    Queue,
    /// `first_sync`, `last_event`.
    Code,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigError::SrcBits => "SRC must have 0 to 12 bits",
            ConfigError::SrcId => "the source id does not fit into src_bits",
            ConfigError::IcntBits => {
                "the instruction counter must have 2 to 22 bits, or 0 for \
                no limit"
            }
            ConfigError::HistBits => "HIST must have 2 to 32 bits",
            ConfigError::SyncMax => "trTeInstSyncMax must be 0 to 15",
            ConfigError::Timestamps => {
                "timestamps must have 1 to 64 bits and a prescaler of 0 \
                to 3"
            }
            ConfigError::StackDepth => "the return stack must have 1 to 32 entries",
            ConfigError::PartialBits => "implicit return mode 2 must compare 1 to 63 bits",
            ConfigError::RepeatBits => {
                "repeat counters must have at most 63 bits, or 0 for no \
                limit"
            }
            ConfigError::SequentialSync => "N-Trace 1.0 has SYNC=4 in branch trace mode only",
            ConfigError::HistoryInBtm => "repeated history needs branch history mode",
            ConfigError::RepeatInHtm => "RepeatBranch needs branch trace mode",
            ConfigError::MarkersKeepStack => {
                "only N-Trace rc7 keeps the return stack across \
                synchronisation"
            }
            ConfigError::Queue => "the queue must hold at least 76 bytes and drain",
            ConfigError::Code => "SYNC and EVCODE must be 0 to 15",
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
