//! An optional container for traces, which chapter 3 leaves open and section
//! 3.3 suggests: parameters at the start, then frames. Each frame has a hart,
//! checksums, and bytes that the caller may have compressed.
//! `docs/tandem-container.md` has the format.
//!
//! A frame starts where a group starts, and frames can be found again after
//! damage, so damage costs one frame.

mod checksum;
mod parameters;
mod read;

use alloc::string::ToString;
use alloc::vec::Vec;

use hartrace_flow::HartId;

use crate::encode::Sink;
use crate::fault::Fault;

pub use checksum::crc32;
pub use parameters::{ParameterError, Parameters};
pub use read::{FrameReader, NextFrame};

/// How a container starts. The first byte is no opcode, so that no trace
/// starts like this.
pub const MAGIC: [u8; 8] = *b"\x89TPC\r\n\x1a\n";

/// The version of the format.
pub const VERSION: u16 = 1;

/// How a frame starts.
const SYNC: [u8; 4] = [0xd7, 0x54, 0x50, 0xf2];

/// Bytes of a frame's header.
const HEADER: usize = 28;

/// A frame has at most this many plain bytes.
pub const MAX_PLAIN: usize = 1 << 20;

/// The parameters have at most this many bytes.
pub const MAX_PARAMETERS: usize = 1 << 16;

/// How the bytes of a frame are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// As they are.
    Stored,
    /// As one DEFLATE stream (RFC 1951), with no header of its own.
    Deflate,
}

impl Method {
    /// The code in the header.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Method::Stored => 0,
            Method::Deflate => 1,
        }
    }

    /// The method with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Method> {
        match code {
            0 => Some(Method::Stored),
            1 => Some(Method::Deflate),
            _ => None,
        }
    }
}

/// What a frame's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The hart whose trace it is.
    pub hart: HartId,
    /// How the payload is stored.
    pub method: Method,
    /// Bytes of the trace, at least 1.
    pub plain: u32,
    /// Bytes of the payload, at most as many.
    pub payload: u32,
    /// CRC-32 of the bytes of the trace.
    pub checksum: u32,
}

impl Frame {
    /// A frame for these bytes of a trace, of which the payload has so many.
    /// `None` if there are none or too many, or if the payload is longer than
    /// the trace: then it is stored.
    #[must_use]
    pub fn of(hart: HartId, method: Method, plain: &[u8], payload: usize) -> Option<Frame> {
        let fits = (1..=MAX_PLAIN).contains(&plain.len()) && payload <= plain.len();
        let stored = method != Method::Stored || payload == plain.len();
        (fits && stored).then(|| Frame {
            hart,
            method,
            plain: plain.len() as u32,
            payload: payload as u32,
            checksum: crc32(plain),
        })
    }

    /// Writes the header; the payload follows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let header = |out: &mut Vec<u8>| {
            out.extend(SYNC);
            out.extend([self.method.code(), 0, 0, 0]);
            for field in [self.hart.0, self.plain, self.payload, self.checksum] {
                out.extend(field.to_le_bytes());
            }
        };
        sealed(out, header);
    }

    /// Whether these are the bytes of the trace that were framed.
    ///
    /// # Errors
    ///
    /// [`Fault::FrameChecksum`] if they are not.
    pub fn check(&self, plain: &[u8]) -> Result<(), Fault> {
        match plain.len() == self.plain as usize && crc32(plain) == self.checksum {
            true => Ok(()),
            false => Err(Fault::FrameChecksum),
        }
    }
}

/// Writes how a container starts.
///
/// # Errors
///
/// Parameters that are too long, which only a very long list of absent
/// registers is.
pub fn write_start(parameters: &Parameters, out: &mut Vec<u8>) -> Result<(), ParameterError> {
    let text = parameters.to_string();
    if text.len() > MAX_PARAMETERS {
        return Err(ParameterError::TooLong(text.len()));
    }
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend([0, 0]);
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(crc32(text.as_bytes()).to_le_bytes());
    out.extend(text.as_bytes());
    Ok(())
}

/// Writes one frame as it is. Nothing is written of no bytes, and of more than
/// [`MAX_PLAIN`] several frames.
pub fn write_stored(hart: HartId, plain: &[u8], out: &mut Vec<u8>) {
    for plain in plain.chunks(MAX_PLAIN) {
        if let Some(frame) = Frame::of(hart, Method::Stored, plain, plain.len()) {
            frame.write(out);
            out.extend(plain);
        }
    }
}

/// Writes how a container ends: a header of a frame of nothing.
pub fn write_end(out: &mut Vec<u8>) {
    sealed(out, |out| {
        out.extend(SYNC);
        out.extend([0; HEADER - 8]);
    });
}

/// A header and its own checksum.
fn sealed(out: &mut Vec<u8>, header: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    header(out);
    let checksum = crc32(out.get(start..).unwrap_or_default());
    out.extend(checksum.to_le_bytes());
}

/// Gathers groups to frames: gives the bytes of each to `give`, never a part
/// of a group that fits in a frame.
#[derive(Clone, Debug)]
pub struct Gather<F> {
    plain: Vec<u8>,
    size: usize,
    give: F,
}

impl<F: FnMut(&[u8])> Gather<F> {
    /// Frames of about this many bytes, at most [`MAX_PLAIN`].
    pub fn new(size: usize, give: F) -> Gather<F> {
        Gather {
            plain: Vec::new(),
            size: size.clamp(1, MAX_PLAIN),
            give,
        }
    }

    /// Gives what there is.
    pub fn finish(&mut self) {
        for plain in self.plain.chunks(MAX_PLAIN) {
            (self.give)(plain);
        }
        self.plain.clear();
    }
}

impl<F: FnMut(&[u8])> Sink for Gather<F> {
    fn group(&mut self, bytes: &[u8]) {
        let full = self.plain.len() + bytes.len() > self.size;
        // What does not begin a group belongs to the one before.
        if full && bytes.first() == Some(&1) {
            self.finish();
        }
        self.plain.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
