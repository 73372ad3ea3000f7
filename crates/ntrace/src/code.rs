//! The small codes of the messages, with the names of the specification.

use core::fmt;

use crate::Fault;

/// `TCODE`, the type of a message (table 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tcode(pub u8);

impl Tcode {
    /// Who runs: mode and context.
    pub const OWNERSHIP: Tcode = Tcode(2);
    /// A taken branch (BTM).
    pub const DIRECT_BRANCH: Tcode = Tcode(3);
    /// A jump whose target the code does not determine, or a trap.
    pub const INDIRECT_BRANCH: Tcode = Tcode(4);
    /// Messages were lost.
    pub const ERROR: Tcode = Tcode(8);
    /// A full address.
    pub const PROG_TRACE_SYNC: Tcode = Tcode(9);
    /// A taken branch with a full address.
    pub const DIRECT_BRANCH_SYNC: Tcode = Tcode(11);
    /// A jump or trap with a full address.
    pub const INDIRECT_BRANCH_SYNC: Tcode = Tcode(12);
    /// A counter or the history is full.
    pub const RESOURCE_FULL: Tcode = Tcode(27);
    /// A jump or trap with the branches before it (HTM).
    pub const INDIRECT_BRANCH_HIST: Tcode = Tcode(28);
    /// The same with a full address.
    pub const INDIRECT_BRANCH_HIST_SYNC: Tcode = Tcode(29);
    /// The branch message before, again.
    pub const REPEAT_BRANCH: Tcode = Tcode(30);
    /// Tracing ends.
    pub const PROG_TRACE_CORRELATION: Tcode = Tcode(33);

    /// The name in the specification; `None` for reserved and vendor codes.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Tcode::OWNERSHIP => "Ownership",
            Tcode::DIRECT_BRANCH => "DirectBranch",
            Tcode::INDIRECT_BRANCH => "IndirectBranch",
            Tcode::ERROR => "Error",
            Tcode::PROG_TRACE_SYNC => "ProgTraceSync",
            Tcode::DIRECT_BRANCH_SYNC => "DirectBranchSync",
            Tcode::INDIRECT_BRANCH_SYNC => "IndirectBranchSync",
            Tcode::RESOURCE_FULL => "ResourceFull",
            Tcode::INDIRECT_BRANCH_HIST => "IndirectBranchHist",
            Tcode::INDIRECT_BRANCH_HIST_SYNC => "IndirectBranchHistSync",
            Tcode::REPEAT_BRANCH => "RepeatBranch",
            Tcode::PROG_TRACE_CORRELATION => "ProgTraceCorrelation",
            _ => return None,
        })
    }

    /// Whether the code is set aside for vendors (56 to 62).
    #[must_use]
    pub const fn is_vendor(self) -> bool {
        matches!(self.0, 56..=62)
    }

    /// What is wrong with a message of this type: nothing if the specification
    /// defines it.
    #[must_use]
    pub const fn fault(self) -> Option<Fault> {
        match self.name() {
            Some(_) => None,
            None if self.0 == 0 => Some(Fault::Zeros),
            None if self.is_vendor() => Some(Fault::VendorTcode),
            None => Some(Fault::ReservedTcode),
        }
    }

    /// Whether the message has a `SYNC` field and a full address.
    #[must_use]
    pub const fn is_sync(self) -> bool {
        matches!(
            self,
            Tcode::PROG_TRACE_SYNC
                | Tcode::DIRECT_BRANCH_SYNC
                | Tcode::INDIRECT_BRANCH_SYNC
                | Tcode::INDIRECT_BRANCH_HIST_SYNC
        )
    }
}

/// Some of the 64 values of `TCODE`.
///
/// ```
/// use hartrace_ntrace::{Tcode, Tcodes};
///
/// let codes: Tcodes = [Tcode(56), Tcode(7)].into_iter().collect();
/// assert!(codes.has(Tcode(7)) && !codes.has(Tcode(8)));
/// assert!(codes.iter().eq([Tcode(7), Tcode(56)]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tcodes(u64);

impl Tcodes {
    /// None of them.
    pub const NONE: Tcodes = Tcodes(0);

    /// Whether this one is among them.
    #[must_use]
    pub const fn has(self, tcode: Tcode) -> bool {
        self.0 >> (tcode.0 & 63) & 1 != 0
    }

    /// All of them, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = Tcode> {
        (0..64).map(Tcode).filter(move |&tcode| self.has(tcode))
    }
}

impl FromIterator<Tcode> for Tcodes {
    fn from_iter<I: IntoIterator<Item = Tcode>>(codes: I) -> Tcodes {
        let bits = codes.into_iter().map(|tcode| 1 << (tcode.0 & 63));
        Tcodes(bits.fold(0, |all, bit: u64| all | bit))
    }
}

/// `DirectBranch`, `Vendor(56)`, `Reserved(5)`.
impl fmt::Display for Tcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None if self.is_vendor() => write!(f, "Vendor({})", self.0),
            None => write!(f, "Reserved({})", self.0),
        }
    }
}

/// `SYNC`: why there is a full address (table 25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sync(pub u8);

impl Sync {
    /// An external trigger.
    pub const EXTERNAL_TRIGGER: Sync = Sync(0);
    /// The hart was reset.
    pub const RESET: Sync = Sync(1);
    /// It was time for one.
    pub const PERIODIC: Sync = Sync(2);
    /// The hart left debug mode.
    pub const DEBUG_EXIT: Sync = Sync(3);
    /// The instruction counter is full.
    pub const SEQUENTIAL: Sync = Sync(4);
    /// Tracing goes on after it was disabled.
    pub const ENABLE: Sync = Sync(5);
    /// A watchpoint with action trace-notify.
    pub const EVENT: Sync = Sync(6);
    /// Messages before this one were lost.
    pub const OVERRUN: Sync = Sync(7);
    /// Power is back.
    pub const POWER_UP: Sync = Sync(9);

    /// What the code says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "External Trace Trigger",
            1 => "Exit from Reset",
            2 => "Periodic Synchronization",
            3 => "Exit from Debug Mode",
            4 => "Sequential Instruction Counter",
            5 => "Trace Enable",
            6 => "Trace Event",
            7 => "Restart from FIFO overrun",
            9 => "Exit from Power-down",
            14 | 15 => "Vendor Defined",
            _ => "Reserved",
        }
    }

    /// A marker inside code that goes on: rc7 lets the encoder keep its state
    /// (table 25, "Encoder Reset: No").
    #[must_use]
    pub const fn is_marker(self) -> bool {
        matches!(self, Sync(0 | 4 | 6))
    }
}

/// `EVCODE`: why tracing ends (table 23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Evcode(pub u8);

impl Evcode {
    /// The hart entered debug mode.
    pub const DEBUG: Evcode = Evcode(0);
    /// The hart entered a low-power mode.
    pub const LOW_POWER: Evcode = Evcode(1);
    /// Tracing was disabled; the hart may be running.
    pub const DISABLED: Evcode = Evcode(4);

    /// What the code says.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "Entry into Debug Mode",
            1 => "Entry into Low-power Mode",
            4 => "Program Trace Disabled",
            8..=15 => "Vendor Defined",
            _ => "Reserved",
        }
    }
}

/// `B-TYPE`: what made the hart go elsewhere (table 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Btype {
    /// A jump, call or return; in a sync message perhaps nothing at all.
    Indirect = 0,
    /// An exception or an interrupt.
    Trap = 1,
    /// An exception.
    Exception = 2,
    /// An interrupt.
    Interrupt = 3,
}

impl Btype {
    /// From the two bits of the field.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Btype {
        match bits & 3 {
            0 => Btype::Indirect,
            1 => Btype::Trap,
            2 => Btype::Exception,
            _ => Btype::Interrupt,
        }
    }

    /// The two bits of the field.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }
}
