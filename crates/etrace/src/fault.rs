//! The faults of a trace: one flat list, each with a stable code.

use hartrace_flow::faults;

faults! {
    //! What is wrong with a trace. Numbers 01xx concern the bytes, 02xx
    //! single packets, 03xx what they say about the program, 04xx what is
    //! known to be lost.

    /// A byte that cannot be the header of a packet.
    BadHeader = "ET0101", "byte is not a packet header";
    /// The bytes end inside a packet.
    Truncated = "ET0102", "the trace ends inside a packet";
    /// Packets before the first one that could be used.
    NotSynchronised = "ET0103", "no full address yet: the trace starts in the middle";

    /// A payload without a byte.
    EmptyPacket = "ET0201", "packet without a payload";
    /// Bits after the last field that do not repeat its last bit.
    ExtraBits = "ET0202", "packet has bits after its last field";
    /// `branch_fmt` = 01.
    UnknownBranchFmt = "ET0203", "branch count with the reserved branch_fmt=01";
    /// A subformat of format 0 that the parameters do not provide for.
    UnknownSubformat = "ET0204", "format 0 without a branch predictor or jump target cache";
    /// `encoder_mode` is not 0.
    UnknownMode = "ET0205", "support packet with an unknown encoder_mode";
    /// The support packet has modes that are on and not supported.
    UnknownOption = "ET0206", "support packet with an option that cannot be decoded";
    /// A privilege code that stands for no mode.
    UnknownPrivilege = "ET0207", "privilege code of no known mode";
    /// A packet of data trace, and no support packet has said that there is
    /// data trace (`denable`): damage to a packet of instruction trace looks
    /// like this.
    UnexpectedData = "ET0208", "data packet, but no support packet has enabled data trace";
    /// A support packet enables data trace.
    DataNotDecoded = "ET0209", "data trace is enabled, and its packets are not decoded";
    /// More predicted branches than are believed (`max_branch_count`).
    LargeBranchCount = "ET0210", "branch count above max_branch_count";
    /// A jump target index whose entry is invalid.
    EmptyEntry = "ET0211", "jump target index of an empty cache entry";

    /// A format of data packets that the settings do not provide for.
    UnknownDataFormat = "ET0212", "data packet with a format that the settings exclude";
    /// A size of more bytes than `data_width` has.
    UnknownDataSize = "ET0213", "data packet with a size above data_width";
    /// `diff` = 10 in a packet without an address.
    UnknownDiff = "ET0214", "data packet with the reserved diff=10";
    /// A subtype of CSR packets or atomics that is reserved.
    UnknownSubtype = "ET0215", "data packet with a reserved subtype";
    /// A difference, and no access of this size before it.
    NoDataBase = "ET0216", "data packet with a difference from an access that is not known";

    /// No code at the address.
    NoCode = "ET0301", "no code at this address";
    /// A branch and no outcome for it.
    MissingOutcome = "ET0302", "a branch on the path has no outcome";
    /// Outcomes of branches that are not on the way.
    LeftoverOutcomes = "ET0303", "more outcomes than branches on the path";
    /// An indirect jump whose target no packet reported.
    UnreportedJump = "ET0304", "the path passes an indirect jump";
    /// ecall or ebreak on the way.
    UnreportedTrap = "ET0305", "the path passes an ecall or ebreak";
    /// The address is not on the way, which leads round for ever.
    EndlessLoop = "ET0306", "the path loops without reaching the address";
    /// The privilege changed without a return from a trap.
    WrongPrivilege = "ET0307", "the privilege changed without a return from a trap";
    /// `updiscon` without an indirect jump.
    NotAJump = "ET0308", "the packet reports a jump, but the path has none";
    /// A trap without the address of its handler, which is not known otherwise.
    UnknownHandler = "ET0309", "the handler of the trap is not known";
    /// More than one place that `irdepth` may mean.
    AmbiguousReturn = "ET0310", "irdepth does not say which return is meant";

    /// The encoder says that it lost packets.
    TraceLost = "ET0401", "the encoder lost packets";
    /// The hart is still being traced where the bytes end.
    NoEnd = "ET0402", "the trace ends without a support packet that ends it";
    /// The encoder says that it lost packets of data trace.
    DataLost = "ET0403", "the encoder lost data packets";
    /// Accesses that do not fit the instructions, or are missing.
    DataMismatch = "ET0404", "accesses are missing or do not fit the instructions";
    /// Packets have numbers, and some are missing.
    MissingPackets = "ET0405", "packets are missing: their numbers have a gap";
}

impl Fault {
    /// Its number in a mark of a merged stream.
    #[must_use]
    pub const fn mark(self) -> u16 {
        self as u16
    }

    /// From such a number.
    pub(crate) fn from_mark(mark: u16) -> Fault {
        let fault = Fault::ALL.get(usize::from(mark));
        fault.copied().unwrap_or(Fault::BadHeader)
    }
}
