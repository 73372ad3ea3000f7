//! What is wrong with settings.

use core::fmt;

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
    /// `branch_prediction` without `bpred_size`.
    NoPredictor,
    /// `jump_target_cache` without `cache_size`.
    NoCache,
    /// `implicit_return` without `call_counter_size` and `return_stack_size`.
    NoReturnStack,
    /// `implicit_exception` without a bit in `ioptions`.
    NoExceptionBit,
    /// `implicit_return` where `itype` has three bits, which do not show calls.
    ItypeWidth,
    /// `iret_ext` before 2.05.
    IretExt,
    /// Settings that a standard support packet has no room for.
    Standard,
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
    /// `shortening = "address"` with format 0, or with payloads that start inside a byte.
    ShortAddress,
    /// `encapsulation.src_bits`.
    SourceBits,
    /// `encapsulation.time_bytes`.
    TimeBytes,
    /// `encapsulation.type_bits`.
    TypeBits,
    /// `encapsulation.flow`.
    Flow,
    /// `encapsulation.sync_bytes`.
    SyncBytes,
    /// `encapsulation.slot_bytes`.
    SlotBytes,
    /// Data trace, and packets do not say which they are.
    NoKinds,
    /// `lrid_width`.
    LridWidth,
    /// `data_width`.
    DataWidth,
    /// `daddress_width`.
    DaddressWidth,
    /// `size_width`, `diff_width`, `csr_subtype_width`, `csr_diff_width`.
    DataFieldWidth,
    /// `diff_width` with a choice of compressions.
    DataDiffWidth,
    /// `no_address` and `no_data`.
    NothingOfData,
    /// `mmacas` without a standard support packet.
    Mmacas,
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
            ConfigError::EcauseWidth => "ecause_width must be 1 to 64",
            ConfigError::F0sWidth => "f0s_width must be 0 to 2",
            ConfigError::F0sNeeded => {
                "f0s_width must be at least 1 with both a predictor and a jump target cache"
            }
            ConfigError::TableSize => "bpred_size and cache_size must be at most 15",
            ConfigError::StackSize => {
                "call_counter_size and return_stack_size must be at most 15, and irdepth at \
                 most 16 bits"
            }
            ConfigError::NoPredictor => "branch_prediction needs a bpred_size",
            ConfigError::NoCache => "jump_target_cache needs a cache_size",
            ConfigError::NoReturnStack => {
                "implicit_return needs a return_stack_size or a call_counter_size"
            }
            ConfigError::NoExceptionBit => {
                "implicit_exception needs its bit in ioptions: where a handler is not known, a \
                 support packet switches the mode off"
            }
            ConfigError::ItypeWidth => {
                "implicit_return needs itype_width = 4 in [ingress]: three bits do not distinguish \
                 calls and returns"
            }
            ConfigError::IretExt => "iret_ext needs version 2.05",
            ConfigError::Standard => {
                "version 2.05 has the standard support packet: encoder_mode_width, ioptions and \
                 doptions_width as they are by default, time_width 0, 16, 32, 48 or 64, and at \
                 most 7 for return_stack_size, bpred_size and cache_size"
            }
            ConfigError::EncoderModeWidth => "encoder_mode_width must be at most 8",
            ConfigError::DoptionsWidth => "doptions_width must be at most 16",
            ConfigError::ResyncMax => "resync_max must be 0 to 27",
            ConfigError::Queue => {
                "the queue must drain, and hold at least 64 bytes or two of the longest packets \
                 in their encapsulation"
            }
            ConfigError::PacketTooLong => {
                "with these widths a packet can exceed 31 bytes, or what the encapsulation leaves \
                 of them"
            }
            ConfigError::ShortAddress => {
                "shortening = \"address\" needs bpred_size and cache_size 0, for it is not defined \
                 for format 0, and payloads of whole bytes: src_bits and type_bits in \
                 [etrace.encapsulation] together a multiple of 8"
            }
            ConfigError::SourceBits => {
                "[etrace.encapsulation] src_bits must be 0 to 16, and 0 for the forms \
                 \"reference\", \"atb\" and \"esp32\", which have no source"
            }
            ConfigError::TimeBytes => {
                "[etrace.encapsulation] time_bytes must be 0 to 8 for the forms \"riscv\" and \
                 \"slots\", 0 or 2 for \"smi\" and \"atb\", and 0 for the others"
            }
            ConfigError::TypeBits => {
                "[etrace.encapsulation] type_bits must be 0 to 8 for the forms \"riscv\" and \
                 \"slots\", 0 or 1 for \"atb\", and 0 for the others"
            }
            ConfigError::Flow => "[etrace.encapsulation] flow must be 0 to 3",
            ConfigError::SyncBytes => {
                "[etrace.encapsulation] sync_bytes needs the form \"riscv\" or \"esp32\": the \
                 others have no synchronisation sequence"
            }
            ConfigError::SlotBytes => {
                "[etrace.encapsulation] slot_bytes must be at most 64 and leave room for the \
                 longest packet"
            }
            ConfigError::NoKinds => {
                "data trace needs packets that say what they are: type_bits in \
                 [etrace.encapsulation], or the form \"reference\" or \"smi\""
            }
            ConfigError::LridWidth => "[etrace.data] lrid_width must be 1 to 8",
            ConfigError::DataWidth => "[etrace.data] data_width must be 32 or 64",
            ConfigError::DaddressWidth => {
                "[etrace.data] daddress_width must be 8 to the program's XLEN"
            }
            ConfigError::DataFieldWidth => {
                "[etrace.data] size_width must be 2 or 3, diff_width 1 or 2, csr_subtype_width 2 \
                 or 3, and csr_diff_width 0 or 1"
            }
            ConfigError::DataDiffWidth => {
                "[etrace.data] diff_width = 1 leaves room for one compression: set compression to \
                 \"xor\" or \"differential\""
            }
            ConfigError::NothingOfData => {
                "[etrace.data] no_address and no_data leave nothing to report"
            }
            ConfigError::Mmacas => {
                "[etrace.data] mmacas needs a version with the standard support packet (2.05)"
            }
        })
    }
}

impl core::error::Error for ConfigError {}
