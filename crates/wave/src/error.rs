//! What can be wrong with a waveform.

use std::fmt;

/// Why a waveform cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaveError {
    /// The file ends in the middle of something.
    Truncated,
    /// The file has no names of signals: its writer did not finish it.
    NoHierarchy,
    /// Something that the format does not allow.
    Damaged {
        /// What it is.
        what: &'static str,
        /// The byte of the file at which it was found, or the start of its section.
        offset: u64,
    },
    /// Something that takes more memory than the reader allows.
    TooLarge {
        /// What it is.
        what: &'static str,
        /// The byte of the file at which it was found.
        offset: u64,
    },
    /// A form of the format that is not supported.
    Unsupported(&'static str),
}

impl fmt::Display for WaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaveError::Truncated => f.write_str("the file is cut off"),
            WaveError::NoHierarchy => {
                f.write_str("the file has no names of signals: the simulator did not finish it")
            }
            WaveError::Damaged { what, offset } => {
                write!(f, "damaged at byte {offset}: {what}")
            }
            WaveError::TooLarge { what, offset } => {
                write!(f, "too large at byte {offset}: {what}")
            }
            WaveError::Unsupported(what) => write!(f, "not supported: {what}"),
        }
    }
}

impl std::error::Error for WaveError {}
