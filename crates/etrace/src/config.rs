//! The settings of an encoder, and what a decoder must know of them.

use hartrace_flow::encode::ProtocolConfig;
pub use hartrace_flow::queue::Queue;
use hartrace_flow::{DataPort, Image, PortConfig, Rules, Tie};
use hartrace_isa::{Isa, ItypeTable, Xlen};

use crate::{DataConfig, DataLayout, Encapsulation, Fault, Form, Layout};

mod error;
mod support;

pub use error::ConfigError;
pub(crate) use support::SupportParameters;

/// Which text of the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.1.1-draft of September 2020: exception packets with `tvalepc`, no
    /// `thaddr`, no `time`.
    V1_1_1,
    /// 2.0, ratified 2022 (text of June 2025).
    #[default]
    V2_0,
    /// 2.05, in public review 2026 (v2.05-0.81): 2.0 with the standard support
    /// packet and the implicit return extension (`irets`).
    V2_05,
}

impl Version {
    /// Whether packets are those of the draft.
    #[must_use]
    pub const fn is_draft(self) -> bool {
        matches!(self, Version::V1_1_1)
    }

    /// Whether support packets have the standard format.
    #[must_use]
    pub const fn is_standard(self) -> bool {
        matches!(self, Version::V2_05)
    }
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
    /// Addresses are differences (PULP tracer): the opposite.
    DeltaAddress,
    /// There is no periodic synchronisation, and synchronisation packets leave
    /// predictor, cache and return stack as they are (2.05).
    ResyncDisabled,
    /// Packets have `irets`, not `irdepth` (2.05).
    ImplicitReturnExtension,
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

    /// The first eight bits of the standard support packet (2.05).
    pub const STANDARD: Ioptions = Ioptions {
        bits: {
            let mut bits = [None; Ioptions::MOST];
            bits[0] = Some(Ioption::SequentialJump);
            bits[1] = Some(Ioption::ImplicitReturn);
            bits[2] = Some(Ioption::BranchPrediction);
            bits[3] = Some(Ioption::JumpTargetCache);
            bits[4] = Some(Ioption::ImplicitException);
            bits[5] = Some(Ioption::FullAddress);
            bits[6] = Some(Ioption::ResyncDisabled);
            bits[7] = Some(Ioption::ImplicitReturnExtension);
            bits
        },
        len: 8,
    };

    /// The seven bits of the PULP tracer.
    pub const PULP: Ioptions = Ioptions {
        bits: {
            let mut bits = [None; Ioptions::MOST];
            bits[0] = Some(Ioption::JumpTargetCache);
            bits[1] = Some(Ioption::BranchPrediction);
            bits[2] = Some(Ioption::ImplicitReturn);
            bits[3] = Some(Ioption::SequentialJump);
            bits[4] = Some(Ioption::ImplicitException);
            bits[5] = Some(Ioption::FullAddress);
            bits[6] = Some(Ioption::DeltaAddress);
            bits
        },
        len: 7,
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

    /// The bit of implicit exception.
    const fn exception_bit(&self) -> Option<u8> {
        let mut bit = 0;
        while bit < self.len as usize {
            #[allow(clippy::indexing_slicing, reason = "below the length")]
            if matches!(self.bits[bit], Some(Ioption::ImplicitException)) {
                return Some(bit as u8);
            }
            bit += 1;
        }
        None
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
    /// 0 to 15: one every 2^(n+4) of them. The reference models take larger numbers than
    /// the register has room for; so does this, up to 27.
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

/// How an encoder of `irdepth` avoids what no decoder could tell apart (3.2.5,
/// 6.6.3). Where packets have `irets` nothing has to be avoided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReturnRule {
    /// As the encoder of this crate does: `irdepth` means the first return, or the
    /// first time that the address is passed, with so many entries on the stack.
    /// `docs/etrace-implicit-return.md` shows why it always is.
    #[default]
    Settled,
    /// Decoder: the encoder follows the texts, and its packets may be
    /// ambiguous. Those that are make a gap.
    Specification,
}

/// What compression leaves out of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shortening {
    /// The upper bits of the whole packet that equal the last one sent (chapter 6).
    #[default]
    Packet,
    /// Those of the address, in whole bytes and one bit more, wherever it stands in
    /// the packet; the other fields are whole. So the PULP tracer does it.
    Address,
}

/// The bits after the last field of a packet, up to a whole byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Padding {
    /// They repeat the last bit of the packet (chapter 6).
    #[default]
    Sign,
    /// They mean nothing, and are zeros from the encoder.
    Ignored,
}

/// What the bit `notify` is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NotifyBit {
    /// The last bit of the address in the packet (6.6.1): a difference from it asks
    /// for attention.
    #[default]
    Address,
    /// Nothing: there are no notifications, and the bit is only what `updiscon` is
    /// compared with. The PULP tracer sends the highest bit of the whole address
    /// there, which the difference in the packet need not have.
    Unused,
}

/// Trap vectors, as in the registers of these names, where they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TrapVectors {
    /// Of machine mode.
    pub mtvec: Option<u64>,
    /// Of supervisor mode.
    pub stvec: Option<u64>,
    /// Of virtual supervisor mode.
    pub vstvec: Option<u64>,
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
    /// Width of `ecause`, 1 to 64.
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

    /// How packets are encapsulated.
    pub encapsulation: Encapsulation,
    /// What compression leaves out.
    pub shortening: Shortening,
    /// What the bits after the last field are.
    pub padding: Padding,
    /// What `notify` is compared with.
    pub notify_bit: NotifyBit,
    /// Trap packets of interrupts have `tval` too, which 2.0 leaves out.
    pub interrupt_tval: bool,
    /// Decoder: a start packet right after a packet with the same address is about the
    /// same execution of that instruction; the outcome of a branch was reported before. So
    /// the PULP tracer resynchronises; by the texts a later instruction is meant.
    pub resync_repeats: bool,
    /// Addresses are full, not differences.
    pub full_address: bool,
    /// Targets of sequentially inferable jumps are left out.
    pub sijump: bool,
    /// Decoder: those of returns too. So it is where `itype` has three bits and
    /// does not distinguish returns from other jumps; with four bits the signal
    /// `sijump` is ignored for them (2.0, table 4.1).
    pub sijump_returns: bool,
    /// Targets of returns are left out where they are those of the calls.
    pub implicit_return: bool,
    /// Packets have `irets`, not `irdepth` (2.05).
    pub iret_ext: bool,
    /// How an encoder of `irdepth` avoids ambiguous packets.
    pub return_rule: ReturnRule,
    /// Handler addresses are left out where they are known.
    pub implicit_exception: bool,
    /// Where handlers are.
    pub trap_vectors: TrapVectors,
    /// Branches that were predicted are counted.
    pub branch_prediction: bool,
    /// Decoder: a packet with a greater `branch_count` is damaged. A single
    /// packet can stand for four billion branches.
    pub max_branch_count: u32,
    /// Jump targets may be reported by their index in the cache.
    pub jump_target_cache: bool,

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
    /// Data trace; `None` without.
    pub data: Option<DataConfig>,

    /// Encoder: the output queue, of at least [`MIN_QUEUE`] bytes; `None` for
    /// one that is never full.
    pub queue: Option<Queue>,
}

/// Default of [`Config::max_branch_count`].
const BELIEVED: u32 = 1 << 26;

/// Instructions between a split load and its response at the port of our hart.
const LATENCY: u8 = 2;

/// The longest payload, in bytes: what five bits of length can say.
pub const MAX_PAYLOAD: usize = 31;

/// Smallest queue: two of the longest packets, with their headers.
pub const MIN_QUEUE: u32 = 64;

impl Config {
    /// An encoder of this version with every option off, widths for all of
    /// RISC-V and a synchronisation every 4096 packets.
    #[must_use]
    pub const fn new(version: Version, xlen: Xlen) -> Config {
        let draft = version.is_draft();
        let standard = version.is_standard();
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
            encoder_mode_width: if standard { 2 } else { 1 },
            ioptions: match standard {
                true => Ioptions::STANDARD,
                false => Ioptions::REFERENCE,
            },
            doptions_width: match version {
                Version::V1_1_1 => None,
                Version::V2_0 => Some(4),
                Version::V2_05 => Some(5),
            },
            encapsulation: Encapsulation::new(Form::Reference),
            shortening: Shortening::Packet,
            padding: Padding::Sign,
            notify_bit: NotifyBit::Address,
            interrupt_tval: false,
            resync_repeats: false,
            full_address: false,
            sijump: false,
            sijump_returns: false,
            implicit_return: false,
            iret_ext: standard,
            return_rule: ReturnRule::Settled,
            implicit_exception: false,
            trap_vectors: TrapVectors {
                mtvec: None,
                stvec: None,
                vstvec: None,
            },
            branch_prediction: false,
            max_branch_count: BELIEVED,
            jump_target_cache: false,
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
            data: None,
            queue: None,
        }
    }

    /// The PULP tracer (pulp-platform/rv_tracer): slots of 40 bytes with 8-byte
    /// timestamps, causes of 64 bits, only addresses shortened, padding of zeros,
    /// `notify` without a meaning, resyncs that repeat an instruction.
    #[must_use]
    pub const fn pulp(xlen: Xlen) -> Config {
        Config {
            iaddress_lsb: 0,
            ecause_width: xlen.bits() as u8,
            ioptions: Ioptions::PULP,
            doptions_width: None,
            encapsulation: Encapsulation::new(Form::Slots),
            shortening: Shortening::Address,
            padding: Padding::Ignored,
            notify_bit: NotifyBit::Unused,
            interrupt_tval: true,
            resync_repeats: true,
            ..Config::new(Version::V2_0, xlen)
        }
    }

    /// The port of a hart with this instruction set, as the encoder needs it.
    #[must_use]
    pub const fn port(&self, isa: Isa) -> PortConfig {
        PortConfig {
            table: match self.version {
                Version::V1_1_1 => ItypeTable::ETrace111,
                Version::V2_0 | Version::V2_05 => ItypeTable::ETrace20,
            },
            sijump: self.sijump,
            data: match self.data {
                None => DataPort::None,
                Some(data) if data.split => DataPort::Split {
                    ids: 1 << data.lrid_width,
                    latency: LATENCY,
                },
                Some(_) => DataPort::Unified,
            },
            multiple: match self.data {
                Some(data) => data.mmacas,
                None => false,
            },
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
            irdepth_width: SupportParameters::of(self).irdepth_width(self.iret_ext),
            iret_ext: self.iret_ext,
            encoder_mode_width: self.encoder_mode_width,
            ioptions_width: self.ioptions.width()
                + match self.version.is_standard() {
                    true => SupportParameters::WIDTH,
                    false => 0,
                },
            doptions_width: self.doptions_width,
            implicit_exception: self.implicit_exception,
            exception_bit: self.ioptions.exception_bit(),
            shortening: self.shortening,
            padding: self.padding,
            notify_bit: self.notify_bit,
            interrupt_tval: self.interrupt_tval,
        }
    }

    /// What the bytes of data packets depend on; `None` without data trace.
    #[must_use]
    pub const fn data_layout(&self) -> Option<DataLayout> {
        match &self.data {
            Some(data) => Some(data.layout(self.version, self.xlen)),
            None => None,
        }
    }

    /// What assigns the accesses that a decoder gives to instructions; `None` without
    /// data trace.
    #[must_use]
    pub fn tie<'a>(&self, image: &'a Image) -> Option<Tie<'a>> {
        let reported = self.data?.reported(self.version, self.xlen);
        Some(Tie::new(image, reported, Fault::DataMismatch.reason(0)))
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

    /// Whether a mode is on.
    #[must_use]
    pub const fn is_on(&self, option: Ioption) -> bool {
        match option {
            Ioption::SequentialJump => self.sijump,
            Ioption::ImplicitReturn => self.implicit_return,
            Ioption::ImplicitException => self.implicit_exception,
            Ioption::BranchPrediction => self.branch_prediction,
            Ioption::JumpTargetCache => self.jump_target_cache,
            Ioption::FullAddress => self.full_address,
            Ioption::DeltaAddress => !self.full_address,
            Ioption::ResyncDisabled => self.resync_disabled(),
            Ioption::ImplicitReturnExtension => self.iret_ext,
        }
    }

    /// Whether synchronisation packets leave predictor, cache and return stack as
    /// they are: in 2.05 without periodic synchronisation.
    #[must_use]
    pub const fn resync_disabled(&self) -> bool {
        self.version.is_standard() && matches!(self.resync.unit, ResyncUnit::Off)
    }

    /// Value of `ioptions` for these settings.
    #[must_use]
    pub fn ioptions_field(&self) -> u32 {
        let order = self.ioptions.order().iter().enumerate();
        let modes = order.fold(0, |field, (bit, option)| {
            field | u32::from(option.is_some_and(|option| self.is_on(option))) << bit
        });
        match self.version.is_standard() {
            true => modes | SupportParameters::of(self).field() << self.ioptions.width(),
            false => modes,
        }
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
                (1..=64).contains(&self.ecause_width),
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
            (
                !self.branch_prediction || self.bpred_size > 0,
                ConfigError::NoPredictor,
            ),
            (
                !self.jump_target_cache || self.cache_size > 0,
                ConfigError::NoCache,
            ),
            (
                !self.implicit_return || self.call_counter_size + self.return_stack_size > 0,
                ConfigError::NoReturnStack,
            ),
            (
                !self.implicit_exception
                    || self.ioptions.get(0, Ioption::ImplicitException).is_some(),
                ConfigError::NoExceptionBit,
            ),
            (
                !self.iret_ext || self.version.is_standard(),
                ConfigError::IretExt,
            ),
            (
                !self.version.is_standard() || self.is_standard(),
                ConfigError::Standard,
            ),
            (self.encoder_mode_width <= 8, ConfigError::EncoderModeWidth),
            (
                self.doptions_width.is_none_or(|w| w <= 16),
                ConfigError::DoptionsWidth,
            ),
            (self.resync.max <= 27, ConfigError::ResyncMax),
            (
                self.queue
                    .is_none_or(|q| q.bytes >= self.min_queue() && q.drain > 0),
                ConfigError::Queue,
            ),
            (
                self.layout().longest() <= MAX_PAYLOAD * 8,
                ConfigError::PacketTooLong,
            ),
            (
                matches!(self.shortening, Shortening::Packet)
                    || self.bpred_size == 0
                        && self.cache_size == 0
                        && self.encapsulation.is_aligned(),
                ConfigError::ShortAddress,
            ),
        ];
        if let Some(&(_, error)) = checks.iter().find(|(good, _)| !good) {
            return Err(error);
        }
        let longest = self.layout().longest();
        self.encapsulation.validate(longest, self.data.is_some())?;
        match self.data {
            Some(data) => data.validate(self.version, self.xlen),
            None => Ok(()),
        }
    }

    /// The smallest queue that can hold what follows a loss: [`MIN_QUEUE`], or more
    /// where the encapsulation needs more.
    #[must_use]
    pub fn min_queue(&self) -> u32 {
        MIN_QUEUE.max(self.encapsulation.min_queue() as u32)
    }

    /// Whether the standard support packet can report the settings.
    fn is_standard(&self) -> bool {
        self.ioptions == Ioptions::STANDARD
            && self.encoder_mode_width == 2
            && self.doptions_width == Some(5)
            && self.time_width.is_multiple_of(16)
            && self.return_stack_size <= 7
            && self.bpred_size <= 7
            && self.cache_size <= 7
    }
}

impl ProtocolConfig for Config {
    type Error = ConfigError;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }
}
