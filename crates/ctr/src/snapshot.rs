//! Everything at one moment.

use alloc::vec::Vec;

use hartrace_flow::{HartId, Mode};
use hartrace_isa::Xlen;

use crate::config::Version;
use crate::record::Record;

/// What software that stops here would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The hart.
    pub hart: HartId,
    /// The next instruction, where known.
    pub pc: Option<u64>,
    /// The mode the hart is in, where known.
    pub mode: Option<Mode>,
    /// Instructions retired so far, where known.
    pub instructions: Option<u64>,
    /// Cycles so far, in the unit of the source, where known.
    pub cycles: Option<u64>,
    /// The map the registers below are in.
    pub version: Version,
    /// MXLEN.
    pub xlen: Xlen,
    /// `mctrctl`, or `mctrcontrol`.
    pub control: u64,
    /// `vsctrctl`, or `vsctrcontrol`; 0 without a hypervisor.
    pub guest_control: u64,
    /// `sctrstatus`, or `mctrstatus`.
    pub status: u32,
    /// The chosen depth in entries.
    pub depth: u16,
    /// The logical entries 0 up to the depth: the newest first, with those
    /// that are not valid.
    pub entries: Vec<Record>,
}

impl Snapshot {
    /// The records, the newest first. In RAS emulation mode these are the calls
    /// that have not returned.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.entries.iter().filter(|entry| entry.is_valid())
    }
}
