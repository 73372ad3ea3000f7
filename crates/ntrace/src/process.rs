//! `PROCESS`: mode and context in an Ownership message (7.1).

use hartrace_flow::Mode;

use crate::Fault;

/// What an Ownership message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The privilege mode, `V` and `PRV`.
    pub mode: Mode,
    /// Which context, if any.
    pub owner: Owner,
}

/// The context in an Ownership message: `FORMAT` and `CONTEXT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Only the mode changed (`FORMAT` = 00).
    Mode,
    /// scontext (`FORMAT` = 10).
    Scontext(u32),
    /// hcontext (`FORMAT` = 11).
    Hcontext(u32),
}

impl Process {
    /// The field's value.
    ///
    /// ```
    /// use hartrace_flow::Mode;
    /// use hartrace_ntrace::{Owner, Process};
    ///
    /// let user = Process { mode: Mode::VU, owner: Owner::Scontext(0x1d) };
    /// assert_eq!(user.field(), 0x3b2, "the example of 7.1");
    /// ```
    #[must_use]
    pub const fn field(self) -> u64 {
        let (format, context) = match self.owner {
            Owner::Mode => (0, 0),
            Owner::Scontext(c) => (2, c),
            Owner::Hcontext(c) => (3, c),
        };
        let (v, prv) = match self.mode {
            Mode::U => (0, 0),
            Mode::S => (0, 1),
            // Debug mode has no encoding; it runs with machine privilege.
            Mode::M | Mode::D => (0, 3),
            Mode::VU => (1, 0),
            Mode::VS => (1, 1),
        };
        (context as u64) << 5 | v << 4 | prv << 2 | format
    }

    /// From the field's value.
    ///
    /// # Errors
    ///
    /// Reserved `FORMAT`s and modes, and contexts above 32 bits.
    pub const fn from_field(field: u64) -> Result<Process, Fault> {
        let mode = match field >> 2 & 7 {
            0 => Mode::U,
            1 => Mode::S,
            3 => Mode::M,
            4 => Mode::VU,
            5 => Mode::VS,
            _ => return Err(Fault::UnknownProcess),
        };
        let context = field >> 5;
        if context > u32::MAX as u64 {
            return Err(Fault::FieldTooWide);
        }
        let owner = match field & 3 {
            0 if context == 0 => Owner::Mode,
            2 => Owner::Scontext(context as u32),
            3 => Owner::Hcontext(context as u32),
            _ => return Err(Fault::UnknownProcess),
        };
        Ok(Process { mode, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let machine = Process {
            mode: Mode::M,
            owner: Owner::Mode,
        };
        assert_eq!(machine.field(), 0xc);
        assert_eq!(Process::from_field(0xc), Ok(machine));
        let user = Process {
            mode: Mode::VU,
            owner: Owner::Scontext(0x1d),
        };
        assert_eq!(Process::from_field(0x3b2), Ok(user));
    }

    #[test]
    fn every_mode_and_format_comes_back() {
        for mode in [Mode::U, Mode::S, Mode::M, Mode::VU, Mode::VS] {
            for owner in [
                Owner::Mode,
                Owner::Scontext(0),
                Owner::Scontext(u32::MAX),
                Owner::Hcontext(1),
            ] {
                let process = Process { mode, owner };
                assert_eq!(Process::from_field(process.field()), Ok(process));
            }
        }
    }

    #[test]
    fn reserved_values_are_refused() {
        for field in [0x1, 0xd, 0x8, 0x18, 0x1c, 0x20] {
            assert_eq!(Process::from_field(field), Err(Fault::UnknownProcess));
        }
        assert_eq!(
            Process::from_field(2 | 1 << 37),
            Err(Fault::FieldTooWide),
            "scontext has 32 bits"
        );
    }
}
