//! The tandem streams in a file: a plain stream, or those of several harts in a
//! container.

use super::SettingsError;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use hartrace_flow::{Consumer, Event, Gap, HartId};
use hartrace_isa::Isa;
use hartrace_tandem::container::{
    self, Frame, FrameReader, Method, NextFrame, ParameterError, Parameters,
};
use hartrace_tandem::{Config, Decoder, Fault, Problem};

/// A part of a file with tandem streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StreamPiece<'b> {
    /// Bytes of the stream of a hart.
    Bytes(HartId, &'b [u8]),
    /// Something of the container cannot be used: any stream may miss groups
    /// here.
    Lost(Problem),
}

/// Takes a file apart into the streams in it.
#[derive(Debug, Default)]
pub struct Streams {
    kind: Option<Kind>,
}

#[derive(Debug)]
enum Kind {
    Plain,
    Container(Box<Unpacker>),
}

impl Streams {
    /// The parameters of a container that starts with `head`, or why they
    /// cannot be read; `None` if it is none.
    #[must_use]
    pub fn parameters(head: &[u8]) -> Option<Result<Parameters, Fault>> {
        if !FrameReader::is_container(head) {
            return None;
        }
        let mut reader = FrameReader::new();
        Some(match reader.next(&mut &*head) {
            NextFrame::Start(parameters) => Ok(*parameters),
            NextFrame::Problem(problem) => Err(problem.fault),
            _ => Err(Fault::ContainerParameters),
        })
    }

    /// The next bytes of the file are these: whether it is a container.
    fn begin(&mut self, bytes: &[u8]) -> bool {
        if let (None, Some(first)) = (&self.kind, bytes.first()) {
            // No stream starts like a container, not even with its first byte.
            self.kind = Some(match container::MAGIC.first() == Some(first) {
                true => Kind::Container(Box::default()),
                false => Kind::Plain,
            });
        }
        matches!(self.kind, Some(Kind::Container(_)))
    }

    /// The next bytes of the file.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(StreamPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.begin(bytes);
        match &mut self.kind {
            Some(Kind::Container(unpacker)) => unpacker.feed(bytes, take),
            _ if bytes.is_empty() => Ok(()),
            _ => take(StreamPiece::Bytes(HartId(0), bytes)),
        }
    }

    /// The file ends.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub(crate) fn finish<E>(
        &mut self,
        mut take: impl FnMut(StreamPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(Kind::Container(unpacker)) = &mut self.kind else {
            return Ok(());
        };
        while let NextFrame::Problem(problem) = unpacker.reader.finish() {
            take(StreamPiece::Lost(problem))?;
        }
        Ok(())
    }
}

/// Frames to the bytes in them.
#[derive(Debug)]
struct Unpacker {
    reader: FrameReader,
    inflate: Decompress,
    plain: Vec<u8>,
}

impl Default for Unpacker {
    fn default() -> Unpacker {
        Unpacker {
            reader: FrameReader::new(),
            inflate: Decompress::new(false),
            plain: Vec::new(),
        }
    }
}

impl Unpacker {
    fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(StreamPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        loop {
            match self.reader.next(&mut rest) {
                NextFrame::Start(_) => {}
                NextFrame::More | NextFrame::End => return Ok(()),
                NextFrame::Problem(problem) => take(StreamPiece::Lost(problem))?,
                NextFrame::Frame(frame) => {
                    let piece = match self.unpack(&frame) {
                        Ok(()) => StreamPiece::Bytes(frame.hart, &self.plain),
                        Err(fault) => StreamPiece::Lost(Problem {
                            at: self.reader.offset() - u64::from(frame.payload),
                            group: self.reader.frames(),
                            fault,
                            value: frame.checksum.into(),
                        }),
                    };
                    take(piece)?;
                }
            }
        }
    }

    /// The bytes of a frame.
    fn unpack(&mut self, frame: &Frame) -> Result<(), Fault> {
        self.plain.clear();
        let payload = self.reader.payload();
        if frame.method == Method::Stored {
            self.plain.extend_from_slice(payload);
            return Ok(()); // it has been checked
        }
        self.inflate.reset(false);
        // One more, so that what is too long shows.
        self.plain.reserve_exact(frame.plain as usize + 1);
        let status = self
            .inflate
            .decompress_vec(payload, &mut self.plain, FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) => frame.check(&self.plain),
            _ => Err(Fault::FrameChecksum),
        }
    }
}

/// A decoder of all the tandem streams in a file.
#[derive(Debug)]
pub struct TandemDecoder {
    config: Config,
    isa: Option<Isa>,
    /// The hart whose stream it is, if it is the only one.
    hart: HartId,
    streams: Streams,
    harts: Vec<(HartId, Decoder)>,
    position: u64,
}

impl TandemDecoder {
    /// A decoder at the start of a file; a plain stream is of this hart.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(
        config: Config,
        isa: Option<Isa>,
        hart: HartId,
    ) -> Result<TandemDecoder, SettingsError> {
        config.validate()?;
        Ok(TandemDecoder {
            config,
            isa,
            hart,
            streams: Streams::default(),
            harts: Vec::new(),
            position: 0,
        })
    }

    /// Another at the start of a file.
    #[must_use]
    pub fn another(&self) -> TandemDecoder {
        TandemDecoder {
            config: self.config.clone(),
            streams: Streams::default(),
            harts: Vec::new(),
            position: 0,
            ..*self
        }
    }

    /// Offset in the file of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Decodes the next bytes; gives how many were used, fewer if the consumer
    /// asked for a pause.
    pub fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        let used = match self.streams.begin(bytes) {
            false => {
                let hart = self.hart;
                let decoder = self.of(hart);
                decoder.map_or(bytes.len(), |decoder| decoder.feed(bytes, out))
            }
            true => {
                let mut streams = std::mem::take(&mut self.streams);
                let _ = streams.feed(bytes, |piece| {
                    self.piece(piece, out);
                    Ok::<(), Never>(())
                });
                self.streams = streams;
                bytes.len()
            }
        };
        self.position += used as u64;
        used
    }

    /// The file ends.
    pub fn finish<C: Consumer>(&mut self, out: &mut C) {
        let mut streams = std::mem::take(&mut self.streams);
        let _ = streams.finish(|piece| {
            self.piece(piece, out);
            Ok::<(), Never>(())
        });
        for (_, decoder) in &mut self.harts {
            decoder.finish(out);
        }
    }

    /// There is no pause inside a container: it ends after the bytes.
    fn piece<C: Consumer>(&mut self, piece: StreamPiece<'_>, out: &mut C) {
        match piece {
            StreamPiece::Bytes(hart, mut rest) => {
                let Some(decoder) = self.of(hart) else {
                    return;
                };
                while !rest.is_empty() {
                    let used = decoder.feed(rest, out).max(1);
                    rest = rest.get(used..).unwrap_or_default();
                }
            }
            // Its hart is unknown: what every hart does next is not
            // known to follow.
            StreamPiece::Lost(problem) => {
                let mut harts = std::mem::take(&mut self.harts);
                for (_, decoder) in &mut harts {
                    decoder.finish(out);
                }
                let whose = harts.iter().map(|(hart, _)| *hart);
                let whose: Vec<HartId> = match harts.is_empty() {
                    true => vec![self.hart],
                    false => whose.collect(),
                };
                for hart in whose {
                    let gap = Gap {
                        at: problem.at,
                        reason: problem.fault.reason(problem.value),
                        bytes: 0,
                        unconfirmed: 0,
                    };
                    let _ = out.event(hart, &Event::Gap(gap));
                }
            }
        }
    }

    /// The decoder of a hart.
    fn of(&mut self, hart: HartId) -> Option<&mut Decoder> {
        let known = self.harts.iter().position(|(id, _)| *id == hart);
        let at = match known {
            Some(at) => at,
            None => {
                // The settings have been looked at.
                let decoder = Decoder::new(self.config.clone(), hart).ok()?;
                let decoder = match self.isa {
                    Some(isa) => decoder.with_isa(isa),
                    None => decoder,
                };
                self.harts.push((hart, decoder));
                self.harts.len() - 1
            }
        };
        self.harts.get_mut(at).map(|(_, decoder)| decoder)
    }
}

/// It does not fail.
enum Never {}

/// Bytes of a stream in a frame, about.
const FRAME: usize = 1 << 18;

/// Writes a container; `sink` takes its bytes.
pub(crate) struct ContainerWriter<F> {
    out: Packer<F>,
    harts: Vec<(HartId, Vec<u8>)>,
}

struct Packer<F> {
    deflate: Option<Compress>,
    packed: Vec<u8>,
    frame: Vec<u8>,
    /// Bytes of the container.
    written: u64,
    sink: F,
}

impl<F: FnMut(&[u8])> ContainerWriter<F> {
    /// Starts a container.
    ///
    /// # Errors
    ///
    /// Parameters that are too long.
    pub(super) fn new(
        parameters: &Parameters,
        compress: bool,
        sink: F,
    ) -> Result<ContainerWriter<F>, ParameterError> {
        let mut start = Vec::new();
        container::write_start(parameters, &mut start)?;
        let mut out = Packer {
            deflate: compress.then(|| Compress::new(Compression::default(), false)),
            packed: Vec::new(),
            frame: Vec::new(),
            written: 0,
            sink,
        };
        out.put(&start);
        Ok(ContainerWriter {
            out,
            harts: Vec::new(),
        })
    }

    /// Whole groups of a hart.
    pub(super) fn put(&mut self, hart: HartId, bytes: &[u8]) {
        let at = match self.harts.iter().position(|(id, _)| *id == hart) {
            Some(at) => at,
            None => {
                self.harts.push((hart, Vec::new()));
                self.harts.len() - 1
            }
        };
        let Some((_, plain)) = self.harts.get_mut(at) else {
            return;
        };
        // What does not begin a group belongs to the one before.
        let full = plain.len() + bytes.len() > FRAME;
        if full && bytes.first() == Some(&1) {
            self.out.frame(hart, plain);
            plain.clear();
        }
        plain.extend_from_slice(bytes);
    }

    /// The streams have ended; gives the size of the container.
    pub(super) fn finish(&mut self) -> u64 {
        for (hart, plain) in self.harts.drain(..) {
            self.out.frame(hart, &plain);
        }
        let mut end = Vec::new();
        container::write_end(&mut end);
        self.out.put(&end);
        self.out.written
    }
}

impl<F: FnMut(&[u8])> Packer<F> {
    fn put(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        (self.sink)(bytes);
    }

    fn frame(&mut self, hart: HartId, plain: &[u8]) {
        let mut bytes = std::mem::take(&mut self.frame);
        bytes.clear();
        for plain in plain.chunks(container::MAX_PLAIN) {
            match self.packed(hart, plain) {
                Some(frame) => {
                    frame.write(&mut bytes);
                    bytes.extend_from_slice(&self.packed);
                }
                None => container::write_stored(hart, plain, &mut bytes),
            }
        }
        self.put(&bytes);
        self.frame = bytes;
    }

    /// A frame of compressed bytes, unless they are no fewer.
    fn packed(&mut self, hart: HartId, plain: &[u8]) -> Option<Frame> {
        let deflate = self.deflate.as_mut()?;
        deflate.reset();
        self.packed.clear();
        self.packed.reserve_exact(plain.len());
        let packed = deflate.compress_vec(plain, &mut self.packed, FlushCompress::Finish);
        match packed {
            Ok(Status::StreamEnd) => Frame::of(hart, Method::Deflate, plain, self.packed.len()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
