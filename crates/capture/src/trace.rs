//! Traces: made from steps with [`NtraceWriter`], turned into events with
//! [`decode`].

mod write;

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

/// Gives the events of an N-Trace stream to `out`, and the number of bytes
/// that were used to `after`, now and then.
///
/// # Errors
///
/// A failing read, settings that contradict each other, and whatever `after`
/// returns.
pub fn decode<C, E>(
    input: Input,
    config: hartrace_ntrace::Config,
    image: &Image,
    threads: usize,
    out: &mut C,
    mut after: impl FnMut(&mut C, usize) -> Result<(), E>,
) -> Result<(), E>
where
    C: Consumer,
    E: From<InputError> + From<ConfigError>,
{
    // One thread, whatever is asked for.
    let _ = threads;
    let mut decoder = Decoder::new(config, image)?;
    input.chunks(|chunk| {
        let mut rest = chunk;
        while !rest.is_empty() {
            // A pause comes behind a message, so there is one at least.
            let used = decoder.feed(rest, out).max(1);
            rest = rest.get(used..).unwrap_or_default();
            after(out, used)?;
        }
        Ok::<(), E>(())
    })?;
    decoder.finish(out);
    after(out, 0)
}

/// Divides an N-Trace stream into its pieces; each comes with its offset and
/// its bytes.
///
/// # Errors
///
/// A failing read, and whatever `take` returns.
pub fn pieces<E: From<InputError>>(
    input: Input,
    mut take: impl FnMut(u64, &[u8], &Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut framer = Framer::new();
    // The bytes from `base` on that no piece has had yet.
    let mut window: Vec<u8> = Vec::new();
    let mut base = 0;
    input.chunks(|chunk| {
        window.extend_from_slice(chunk);
        let mut rest = chunk;
        let mut end = base;
        while let Some((at, piece)) = framer.next_piece(&mut rest) {
            let len = length(&piece);
            let from = (at - base) as usize;
            take(at, window.get(from..from + len).unwrap_or_default(), &piece)?;
            end = at + len as u64;
        }
        window.drain(..(end - base) as usize);
        base = end;
        Ok::<(), E>(())
    })?;
    match framer.finish() {
        Some((at, piece)) => take(at, &window, &piece),
        None => Ok(()),
    }
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
