//! The formats, and which one a file has.

use crate::header::{Body, Header, Var};
use crate::{WaveError, fst, ghw, vcd};

/// A format of waveforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaveFormat {
    /// Value change dump: text (IEEE 1364, 18).
    Vcd,
    /// The format of GTKWave.
    Fst,
    /// The format of GHDL.
    Ghw,
}

impl WaveFormat {
    /// All of them.
    pub const ALL: [WaveFormat; 3] = [WaveFormat::Vcd, WaveFormat::Fst, WaveFormat::Ghw];

    /// The word by which it is chosen.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            WaveFormat::Vcd => "vcd",
            WaveFormat::Fst => "fst",
            WaveFormat::Ghw => "ghw",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WaveFormat::Vcd => "VCD waveform",
            WaveFormat::Fst => "FST waveform",
            WaveFormat::Ghw => "GHW waveform",
        }
    }

    /// The format of a file that starts with `head`; `None` if it is none of them.
    #[must_use]
    pub fn detect(head: &[u8]) -> Option<WaveFormat> {
        if head.starts_with(ghw::MAGIC) {
            return Some(WaveFormat::Ghw);
        }
        if fst::is_fst(head) {
            return Some(WaveFormat::Fst);
        }
        vcd::is_vcd(head).then_some(WaveFormat::Vcd)
    }
}

impl Header {
    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> WaveFormat {
        match *self.body {
            Body::Vcd { .. } => WaveFormat::Vcd,
            Body::Fst { .. } => WaveFormat::Fst,
            Body::Ghw { .. } => WaveFormat::Ghw,
        }
    }
}

/// Reads the header of a file that starts with `head`; `None` if more bytes are needed.
/// `see` gets every variable.
///
/// An FST file has its names at its end; [`fst::Front`] reads it with its names first.
///
/// # Errors
///
/// Something that the format does not allow.
pub fn read_header(
    format: WaveFormat,
    head: &[u8],
    see: &mut dyn FnMut(&Var<'_>),
) -> Result<Option<Header>, WaveError> {
    match format {
        WaveFormat::Vcd => vcd::read_header(head, see),
        WaveFormat::Fst => fst::read_header(head, see),
        WaveFormat::Ghw => ghw::read_header(head, see),
    }
}
