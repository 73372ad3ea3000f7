//! The faults of a trace: one flat list, each with a stable code.

use hartrace_flow::faults;

faults! {
    //! What is wrong with a trace. Numbers 01xx concern the bytes: what
    //! comes after cannot be read, until a group is found again. 02xx
    //! concern single groups. 03xx concern what groups say together. 04xx
    //! concern a container.

    /// A byte where an opcode is due and that is none.
    UnknownOpcode = "TP0101", "byte is not an opcode";
    /// The bytes end inside an item.
    Truncated = "TP0102", "the trace ends inside an item";
    /// Additional state with an identifier that does not exist.
    UnknownIdentifier = "TP0103", "additional state with an unknown identifier";
    /// A register number of unknown width.
    UnknownRegister = "TP0104", "register number of no known register";
    /// A floating-point register of a hart that has none.
    NoFloat = "TP0105", "floating-point register, but FLEN is 0";
    /// A memory request or response with a size above 3.
    UnknownSize = "TP0106", "memory access with a reserved size";
    /// A memory request with operation 14 or 15.
    UnknownOperation = "TP0107", "memory request with a reserved operation";
    /// A memory response with a result above 1.
    UnknownResult = "TP0108", "memory response with a reserved result";
    /// A memory response without a request before it.
    LoneResponse = "TP0109", "memory response without a request before it";
    /// A memory response of another size than its request.
    ResponseSize = "TP0110", "memory response differs in size from its request";
    /// A 16-bit instruction that claims to be longer.
    InsnLength = "TP0111", "16-bit instruction opcode before a longer instruction";
    /// A group with more items than the limit.
    LongGroup = "TP0112", "group with too many items";

    /// The trace ends inside a group.
    OpenGroup = "TP0201", "the trace ends inside a group";
    /// Two program counters, or one and an increment.
    TwoPcs = "TP0202", "the group has more than one new pc";
    /// Increment pc in a group without an instruction.
    IncrementAlone = "TP0203", "increment pc without an instruction in the group";
    /// Two instructions in a group.
    TwoInsns = "TP0204", "the group has more than one instruction";
    /// A register twice in a group.
    RegisterTwice = "TP0205", "the group has a register more than once";
    /// State initialisation with an instruction or a reset.
    InitWithExecution = "TP0206", "state initialization together with an instruction or a reset";
    /// A privilege code that stands for no mode.
    UnknownMode = "TP0207", "privilege code of no known mode";
    /// An incremental update of a floating-point register.
    FloatIncrement = "TP0208", "incremental update of a floating-point register";
    /// A piece of additional state twice in a group.
    StateTwice = "TP0209", "the group has a piece of additional state more than once";

    /// The program counter has not been reported yet.
    UnknownPc = "TP0301", "the program counter is still unknown";
    /// An increment of a register whose value is not known.
    UnknownValue = "TP0302", "increment of a register whose value is unknown";
    /// In the two-pc form: the instruction is not where the hart was.
    Elsewhere = "TP0303", "the instruction is not at the next pc of the previous group";
    /// The trace does not record instructions, so the effect of this one is unknown.
    NoInsn = "TP0304", "the instruction is not in the trace";

    /// The file does not start like a container.
    NotContainer = "TP0401", "the file is not a container";
    /// A container of another version.
    ContainerVersion = "TP0402", "container of an unknown version";
    /// The parameters are damaged, too long, or make no sense.
    ContainerParameters = "TP0403", "the parameters of the container cannot be used";
    /// Where a frame is due there is none.
    FrameHeader = "TP0404", "bytes that are not a frame";
    /// A frame of more bytes than there may be, or of sizes that do not go
    /// together.
    FrameSize = "TP0405", "frame of an impossible size";
    /// A frame whose bytes are stored in an unknown way.
    FrameMethod = "TP0406", "frame with an unknown compression method";
    /// A frame whose bytes are not those that were framed.
    FrameChecksum = "TP0407", "frame with a wrong checksum";
    /// The container ends inside a frame.
    FrameTruncated = "TP0408", "the container ends inside a frame";
    /// The container ends without saying so.
    NoEnd = "TP0409", "the container has no end marker";
    /// Something follows the end of the container.
    AfterEnd = "TP0410", "bytes after the end of the container";
}

impl Fault {
    /// Whether the bytes after it cannot be read until a group is found
    /// again.
    #[must_use]
    pub const fn breaks_framing(self) -> bool {
        matches!(
            self,
            Fault::UnknownOpcode
                | Fault::Truncated
                | Fault::UnknownIdentifier
                | Fault::UnknownRegister
                | Fault::NoFloat
                | Fault::UnknownSize
                | Fault::UnknownOperation
                | Fault::UnknownResult
                | Fault::LoneResponse
                | Fault::ResponseSize
                | Fault::InsnLength
                | Fault::LongGroup
        )
    }
}
