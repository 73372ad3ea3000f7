//! Traces: made from steps with [`NtraceWriter`], turned into events with
//! [`decode`].

mod transport;
mod write;

pub use transport::{Transport, TransportError};
pub use write::{NtraceWriter, Written};

use crate::config::{Config, Ntrace, Program, Setting, Trace};
use crate::digest::Digest;
use crate::input::{Input, InputError};
use crate::program::{ElfFile, seen_from};
use hartrace_flow::{Consumer, Image};
use hartrace_ntrace::{ConfigError, Decoder, Framer, Piece, Version};
use std::path::Path;

/// What N-Trace is called in `[trace]` and on the command line.
pub const NTRACE: &str = "ntrace";

/// Bytes that are decoded at a time: little, since little can stand for much.
const STEP: usize = 1 << 12;

/// Gives the events of an N-Trace stream to `out`, and the number of bytes
/// that were used to `after`, now and then. Memory does not grow with the
/// stream.
///
/// # Errors
///
/// A failing read, settings that contradict each other, and whatever `after`
/// returns.
pub fn decode<C, E>(
    input: Input,
    config: &hartrace_ntrace::Config,
    image: &Image,
    out: &mut C,
    mut after: impl FnMut(&mut C, usize) -> Result<(), E>,
) -> Result<(), E>
where
    C: Consumer,
    E: From<InputError> + From<ConfigError>,
{
    let mut decoder = Decoder::new(config.clone(), image)?;
    input.chunks(|chunk| {
        for step in chunk.chunks(STEP) {
            let mut rest = step;
            while !rest.is_empty() {
                // A pause comes behind a message, so there is one at least.
                let used = decoder.feed(rest, out).max(1);
                rest = rest.get(used..).unwrap_or_default();
            }
            after(out, step.len())?;
        }
        Ok::<(), E>(())
    })?;
    decoder.finish(out);
    after(out, 0)
}

/// Bytes of an unfinished piece that are kept, far more than a message has.
const KEPT: usize = 1 << 16;

/// Divides an N-Trace stream into its pieces; each comes with its offset and
/// its bytes. Of one that is no message and longer than 64 KiB they may be the
/// first ones only: memory does not grow with the stream.
#[derive(Default)]
pub struct Pieces {
    framer: Framer,
    /// The first bytes of the piece whose end has not come.
    kept: Vec<u8>,
}

impl Pieces {
    /// The next bytes of the stream.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(u64, &[u8], &Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.framer.position();
        let mut rest = chunk;
        // How much of the chunk belongs to pieces that are given out.
        let mut given = 0;
        while let Some((at, piece)) = self.framer.next_piece(&mut rest) {
            let end = (at + length(&piece) as u64 - start) as usize;
            let bytes = chunk.get(given..end).unwrap_or_default();
            given = end;
            if at >= start {
                take(at, bytes, &piece)?;
            } else {
                keep(&mut self.kept, bytes);
                take(at, &self.kept, &piece)?;
            }
            self.kept.clear();
        }
        keep(&mut self.kept, chunk.get(given..).unwrap_or_default());
        Ok(())
    }

    /// The stream ends: what is left of a message, if there is any.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub fn finish<E>(
        &mut self,
        mut take: impl FnMut(u64, &[u8], &Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.framer.finish() {
            Some((at, piece)) => take(at, &self.kept, &piece),
            None => Ok(()),
        }
    }
}

/// Keeps more bytes of a piece, if there is room.
fn keep(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT.saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
}

/// The pieces of a whole input.
///
/// # Errors
///
/// A failing read, and whatever `take` returns.
pub fn pieces<E: From<InputError>>(
    input: Input,
    mut take: impl FnMut(u64, &[u8], &Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut pieces = Pieces::default();
    input.chunks(|chunk| pieces.feed(chunk, &mut take))?;
    pieces.finish(take)
}

/// Bytes of a piece.
fn length(piece: &Piece<'_>) -> usize {
    match *piece {
        Piece::Message(bytes) => bytes.len(),
        Piece::Idle(bytes) | Piece::Bad(_, bytes) => bytes as usize,
    }
}

/// The sidecar of an N-Trace file: its settings, and the programs with their
/// content.
#[must_use]
pub fn sidecar<'a>(
    trace: &Path,
    config: &hartrace_ntrace::Config,
    program: &Program,
    elf: impl IntoIterator<Item = (&'a ElfFile, &'a [u8])>,
) -> Config {
    let folder = trace.parent().unwrap_or(Path::new(""));
    let elf: Vec<ElfFile> = elf
        .into_iter()
        .map(|(elf, bytes)| ElfFile {
            file: seen_from(folder, &elf.file),
            base: elf.base,
            sha256: Some(Digest::of(bytes)),
        })
        .collect();
    let version = match config.version {
        Version::V1_0 => "1.0",
        Version::Rc7 => "1.0.0-rc7",
    };
    Config {
        trace: Some(Trace {
            format: Setting::default(NTRACE.to_owned()),
            version: Some(Setting::default(version.to_owned())),
        }),
        program: Program {
            isa: program.isa.clone(),
            elf: (!elf.is_empty()).then(|| Setting::default(elf)),
            raw: program.raw.clone().map(|mut raw| {
                for file in &mut raw.value {
                    file.file = seen_from(folder, &file.file);
                }
                raw
            }),
        },
        ntrace: Ntrace::of(config),
        ..Config::default()
    }
}

#[cfg(test)]
mod tests;
