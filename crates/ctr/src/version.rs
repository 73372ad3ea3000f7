//! The versions of the specification.

use core::fmt;
use hartrace_isa::ItypeTable;

/// A version of the specification, which fixes the register map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// The draft 0.1.4 of September 2023.
    V0_1_4,
    /// The ratified 1.0 of November 2024, with its correction.
    #[default]
    V1_0,
}

impl Version {
    /// Both.
    pub const ALL: [Version; 2] = [Version::V0_1_4, Version::V1_0];

    /// `0.1.4` or `1.0`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Version::V0_1_4 => "0.1.4",
            Version::V1_0 => "1.0",
        }
    }

    /// The version of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|v| v.name() == name)
    }

    /// Whose table says what type an instruction is: 0.1.4 refers to E-Trace
    /// 2.0; 1.0 has a table of its own, which is that of N-Trace 1.0.
    #[must_use]
    pub const fn types(self) -> ItypeTable {
        match self {
            Version::V0_1_4 => ItypeTable::ETrace20,
            Version::V1_0 => ItypeTable::NTrace10,
        }
    }

    /// The bit of `mstateen0` and `hstateen0` that opens CTR to the modes below
    /// (chapter 4).
    #[must_use]
    pub const fn state_enable(self) -> u32 {
        match self {
            Version::V0_1_4 => 55,
            Version::V1_0 => 54,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
