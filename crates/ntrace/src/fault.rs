//! The faults of a trace: one flat list, each with a stable code.

use hartrace_flow::faults;

faults! {
    //! What is wrong with a trace. Numbers 01xx concern the bytes, 02xx
    //! single messages, 03xx what they say about the program, 04xx what is
    //! known to be lost.

    /// MSEO = 10 (3.1).
    ReservedMseo = "NT0101", "byte with the reserved MSEO=10";
    /// A byte with MSEO = 11 where a message should start, and not idle.
    StrayEnd = "NT0102", "end of a message that never started";
    /// A byte with MSEO = 01 where a message should start.
    StrayField = "NT0103", "end of a field where a message should start";
    /// A message without end: erased or corrupted memory.
    Oversize = "NT0104", "message longer than any encoder sends";
    /// The bytes end inside a message.
    Truncated = "NT0105", "the trace ends inside a message";
    /// Bytes before the first message that could be used.
    NotSynchronised = "NT0106", "no full address yet: the trace starts in the middle";

    /// A message ended before its last field.
    MissingField = "NT0201", "message ends before its last field";
    /// A fixed-length field was cut by MSEO = 01.
    CutField = "NT0202", "fixed-length field is cut off";
    /// Bits of a field above those its meaning has room for.
    FieldTooWide = "NT0203", "field exceeds its largest value";
    /// More fields than the message has.
    ExtraField = "NT0204", "message has more fields than its type allows";
    /// HIST = 0 has no stop bit.
    EmptyHist = "NT0205", "HIST without a stop bit";
    /// RCODE 3 to 15.
    UnknownRcode = "NT0206", "ResourceFull with an unknown RCODE";
    /// CDF 2 or 3.
    UnknownCdf = "NT0207", "ProgTraceCorrelation with an unknown CDF";
    /// PROCESS with FORMAT = 01 or a reserved PRV.
    UnknownProcess = "NT0208", "Ownership with a reserved FORMAT or PRV";
    /// RepeatBranch without a message to repeat.
    NothingToRepeat = "NT0209", "RepeatBranch without a branch message before it";
    /// Counter times repetitions above what the configuration allows.
    TooLarge = "NT0210", "message expands to more than the configured limit";
    /// TCODE 0 is reserved; what looks like it is erased memory, and the zeros
    /// may have run into a message after them.
    Zeros = "NT0211", "message of zeros only";
    /// A `TCODE` that no version defines (6.1): damage looks like this.
    ReservedTcode = "NT0212", "message with a reserved TCODE";
    /// A `TCODE` from 56 to 62 that the settings do not name (6.1).
    VendorTcode = "NT0213", "message with a vendor-defined TCODE";

    /// I-CNT ends inside an instruction (8.4.1).
    HalfInstruction = "NT0301", "I-CNT ends inside an instruction";
    /// No code at the address.
    NoCode = "NT0302", "no code at this address";
    /// The message says a taken branch, the code has none there.
    NotABranch = "NT0303", "DirectBranch does not end at a branch";
    /// The message says a jump, the code has none there.
    NotAJump = "NT0304", "IndirectBranch does not end at an indirect jump";
    /// An indirect jump inside I-CNT.
    UnreportedJump = "NT0305", "I-CNT passes an indirect jump";
    /// A branch after the last bit of HIST.
    MissingHistory = "NT0306", "I-CNT passes a branch without history";
    /// HIST has outcomes of branches that I-CNT does not reach.
    LeftoverHistory = "NT0307", "HIST has more branches than I-CNT reaches";
    /// A sync message in linear code names another address than the one reached.
    WrongAddress = "NT0308", "the full address differs from the address reached";
    /// HIST says that a direct jump was not taken (EnAllJumps).
    JumpNotTaken = "NT0309", "HIST has a direct jump as not taken";
    /// ecall or ebreak inside I-CNT; they do not retire.
    UnreportedTrap = "NT0310", "I-CNT passes an ecall or ebreak";
    /// The history of a ResourceFull leads round without a branch.
    EndlessLoop = "NT0311", "HIST continues in a loop without branches";
    /// I-CNT is smaller than what the history before it covers.
    CountTooSmall = "NT0312", "I-CNT is smaller than the preceding history";

    /// The encoder says that it lost messages (Error).
    Overrun = "NT0401", "the encoder lost messages";
    /// The last message of a source is not the one that ends a trace.
    NoEnd = "NT0402", "the trace ends without a ProgTraceCorrelation message";
}
