//! The parameters of a CTR implementation.

use core::fmt;

use hartrace_isa::Xlen;

use crate::control::Control;
use crate::version::Version;

/// The depths that can be chosen: 16, 32, 64, 128 and 256, or some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Depths(u8);

impl Depths {
    /// All five.
    pub const ALL: Depths = Depths(31);

    /// None yet.
    pub const NONE: Depths = Depths(0);

    /// These and one more; `None` when there is no such depth.
    #[must_use]
    pub const fn with(self, depth: u16) -> Option<Depths> {
        match depth {
            16 | 32 | 64 | 128 | 256 => Some(Depths(self.0 | 1 << (depth.trailing_zeros() - 4))),
            _ => None,
        }
    }

    /// Whether a depth can be chosen.
    #[must_use]
    pub const fn contains(self, depth: u16) -> bool {
        match Depths::NONE.with(depth) {
            Some(one) => self.0 & one.0 != 0,
            None => false,
        }
    }

    /// The depths, the smallest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u16> {
        (0..5)
            .filter(move |code| self.0 >> code & 1 != 0)
            .map(|code| 16 << code)
    }

    /// The smallest; 16 when there is none.
    #[must_use]
    pub fn least(self) -> u16 {
        self.iter().next().unwrap_or(16)
    }

    /// What a wish for a depth gets: the largest that is not larger, or the
    /// smallest of all.
    pub(crate) fn nearest(self, wish: u16) -> u16 {
        let fits = self.iter().rev().find(|depth| *depth <= wish);
        fits.unwrap_or_else(|| self.least())
    }

    const fn are_consecutive(self) -> bool {
        let low = self.0 >> self.0.trailing_zeros();
        low & (low + 1) == 0
    }
}

/// What cycle counts mean in RAS emulation mode (5.4, the note at its end).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RasCycles {
    /// A return adds the count of the call it pops to the counter, so that
    /// every call records the cycles since the call recorded below it.
    #[default]
    Accumulate,
    /// No call has a valid count.
    Invalid,
}

/// An implementation. [`Config::new`] has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The register map.
    pub version: Version,
    /// MXLEN: the width of the entry registers.
    pub xlen: Xlen,
    /// There is an S-mode. Version 1.0 needs one.
    pub supervisor: bool,
    /// There is a hypervisor: VS- and VU-mode, `vsctrctl`.
    pub hypervisor: bool,
    /// The depths software can choose. Those of 0.1.4 are consecutive.
    pub depths: Depths,
    /// The fields of the control registers that exist. Fields that every
    /// implementation has are added.
    pub fields: Control,
    /// `ctrdata.TYPE` exists.
    pub types: bool,
    /// `ctrtarget.MISP` exists.
    pub mispredicts: bool,
    /// Cycles are counted, with this many bits of exponent (0 to 4).
    pub cycles: Option<u8>,
    /// What cycle counts mean in RAS emulation mode.
    pub ras_cycles: RasCycles,
}

impl Config {
    /// Everything a version has, without a hypervisor.
    #[must_use]
    pub const fn new(version: Version, xlen: Xlen) -> Config {
        Config {
            version,
            xlen,
            supervisor: true,
            hypervisor: false,
            depths: Depths::ALL,
            fields: Control::ALL,
            types: true,
            mispredicts: true,
            cycles: Some(4),
            ras_cycles: RasCycles::Accumulate,
        }
    }

    /// The same with VS- and VU-mode.
    #[must_use]
    pub const fn with_hypervisor(self) -> Config {
        Config {
            hypervisor: true,
            ..self
        }
    }

    /// Checks it against what the version demands.
    ///
    /// # Errors
    ///
    /// An implementation that the specification does not allow.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let draft = self.version == Version::V0_1_4;
        if self.depths == Depths::NONE {
            return Err(ConfigError::NoDepth);
        }
        if draft && !self.depths.are_consecutive() {
            return Err(ConfigError::ScatteredDepths);
        }
        if self.cycles.is_some_and(|bits| bits > 4) {
            return Err(ConfigError::Exponent);
        }
        if !self.supervisor && (!draft || self.hypervisor) {
            return Err(ConfigError::NoSupervisor);
        }
        let external = if draft { Control::ETEN } else { Control::MTE };
        let needed = if self.supervisor {
            Control::MTE.with(Control::STE)
        } else {
            Control::MTE
        };
        let some = self.fields.has(external) || !draft && self.fields.has(Control::STE);
        if some && !self.fields.has(needed) {
            return Err(ConfigError::HalfExternal);
        }
        Ok(())
    }

    /// The fields that are writable in `mctrctl` or `mctrcontrol`.
    pub(crate) fn implemented(&self) -> Control {
        let must = match self.version {
            Version::V0_1_4 => Control::M.with(Control::U).with(Control::S),
            Version::V1_0 => Control::M
                .with(Control::U)
                .with(Control::S)
                .with(Control::BPFRZ),
        };
        let mut fields = self.fields.with(must);
        if self.version == Version::V1_0 {
            fields = fields.without(Control::ETEN);
        }
        if !self.supervisor {
            fields = fields.without(Control::S.with(Control::STE));
        }
        fields
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new(Version::default(), Xlen::Rv64)
    }
}

/// Why the specification does not allow an implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No depth can be chosen.
    NoDepth,
    /// Depths that are not consecutive, in 0.1.4.
    ScatteredDepths,
    /// More than four bits of exponent.
    Exponent,
    /// 1.0 and the hypervisor need S-mode.
    NoSupervisor,
    /// External traps with some of their enables only.
    HalfExternal,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConfigError::NoDepth => "at least one depth of 16, 32, 64, 128 and 256 is needed",
            ConfigError::ScatteredDepths => "the depths of CTR 0.1.4 must be consecutive",
            ConfigError::Exponent => "a cycle count must have 0 to 4 bits of exponent",
            ConfigError::NoSupervisor => "CTR 1.0 and the hypervisor need supervisor mode",
            ConfigError::HalfExternal => {
                "recording of external traps needs MTE and, with supervisor mode, STE"
            }
        })
    }
}

impl core::error::Error for ConfigError {}
