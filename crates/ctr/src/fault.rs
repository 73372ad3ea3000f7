//! The faults of a dump: one flat list, each with a stable code.

use hartrace_flow::faults;

faults! {
    //! What is wrong with a dump of control transfer records. Numbers 01xx
    //! concern the file: nothing after them can be read. 02xx concern single
    //! snapshots.

    /// The file does not start like a dump.
    NotADump = "CT0101", "the file is not a dump of control transfer records";
    /// A dump of a form that is not known.
    Form = "CT0102", "dump of an unknown version";
    /// A size that no snapshot has.
    Size = "CT0103", "snapshot of an impossible size";
    /// The dump ends inside a snapshot.
    Truncated = "CT0104", "the dump ends inside a snapshot";

    /// A version of the specification that is not known.
    Version = "CT0201", "unknown version of the specification";
    /// A width of registers other than 32 and 64.
    Width = "CT0202", "registers are neither 32 nor 64 bits wide";
    /// A code that stands for no privilege mode.
    Mode = "CT0203", "privilege code of no known mode";
    /// A depth that does not exist.
    Depth = "CT0204", "depth other than 16, 32, 64, 128 and 256";
    /// More entries than the depth has.
    Entries = "CT0205", "more entries than the depth allows";
    /// Bits that mean nothing are set.
    Reserved = "CT0206", "reserved bits are set";
    /// An object of the JSON form that is none.
    Object = "CT0207", "object is not a snapshot";
}

impl Fault {
    /// Whether nothing after it can be read.
    pub(crate) const fn ends_the_dump(self) -> bool {
        matches!(
            self,
            Fault::NotADump | Fault::Form | Fault::Size | Fault::Truncated
        )
    }
}
