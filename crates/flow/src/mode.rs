//! Hart, privilege mode and software context.

/// A hart, by the number its trace source gives it: N-Trace `SRC`, E-Trace
/// source id, or the number in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HartId(pub u32);

/// A privilege mode, with the codes of the ingress signal `priv` (E-Trace 2.0,
/// "Privilege level encoding").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mode {
    /// User.
    U = 0,
    /// Supervisor, or hypervisor-extended supervisor.
    S = 1,
    /// Machine.
    #[default]
    M = 3,
    /// Debug.
    D = 4,
    /// Virtual user.
    VU = 5,
    /// Virtual supervisor.
    VS = 6,
}

impl Mode {
    /// The mode with this `priv` code; 2 and 7 are reserved.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Mode> {
        match code {
            0 => Some(Mode::U),
            1 => Some(Mode::S),
            3 => Some(Mode::M),
            4 => Some(Mode::D),
            5 => Some(Mode::VU),
            6 => Some(Mode::VS),
            _ => None,
        }
    }

    /// The `priv` code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether the hart was virtualised (V = 1).
    #[must_use]
    pub const fn is_virtual(self) -> bool {
        matches!(self, Mode::VU | Mode::VS)
    }

    /// The mode's usual short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mode::U => "U",
            Mode::S => "S",
            Mode::M => "M",
            Mode::D => "D",
            Mode::VU => "VU",
            Mode::VS => "VS",
        }
    }
}

/// The software context: what the ingress signal `context` carries.
///
/// N-Trace reports two values, scontext and hcontext; they stand in the low
/// and the high half. A source with one value of its own uses the low half,
/// or all 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Context(pub u64);

impl Context {
    /// The context of these two CSRs.
    #[must_use]
    pub const fn new(scontext: u32, hcontext: u32) -> Context {
        Context(scontext as u64 | (hcontext as u64) << 32)
    }

    /// The supervisor's context, usually a process.
    #[must_use]
    pub const fn scontext(self) -> u32 {
        self.0 as u32
    }

    /// The hypervisor's context, usually a virtual machine.
    #[must_use]
    pub const fn hcontext(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
