//! Reads frames from bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hartrace_flow::HartId;

use super::{
    Frame, HEADER, MAGIC, MAX_PARAMETERS, MAX_PLAIN, Method, Parameters, SYNC, VERSION, crc32,
};
use crate::fault::Fault;
use crate::read::Problem;

/// What precedes the parameters.
const START: usize = 20;

/// Bytes that a search takes at once.
const STRIDE: usize = 4096;

/// What [`FrameReader::next`] comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextFrame {
    /// The parameters, once, at the start.
    Start(Box<Parameters>),
    /// A frame is whole: [`FrameReader::payload`]. That of a stored one has
    /// been checked.
    Frame(Frame),
    /// Something is wrong at this offset. Reading goes on with the next frame
    /// that can be found, and with none where the start is wrong. The group in
    /// it is the number of frames before.
    Problem(Problem),
    /// The bytes are used up.
    More,
    /// The container has ended.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been read.
    Start,
    /// Between frames.
    Frames,
    /// Looking for a frame.
    Lost,
    /// After the last frame.
    End,
    /// No container: nothing is read any more.
    Refused,
}

/// Bytes to frames, in chunks of any size. It keeps at most one frame.
///
/// ```
/// use hartrace_flow::HartId;
/// use hartrace_tandem::container::{self, FrameReader, NextFrame, Parameters};
///
/// let mut file = Vec::new();
/// container::write_start(&Parameters::default(), &mut file).unwrap();
/// container::write_stored(HartId(3), &[1, 3, 16, 1, 0, 2], &mut file);
/// container::write_end(&mut file);
///
/// let mut reader = FrameReader::new();
/// let mut rest = &file[..];
/// assert!(matches!(reader.next(&mut rest), NextFrame::Start(_)));
/// let NextFrame::Frame(frame) = reader.next(&mut rest) else { panic!() };
/// assert_eq!((frame.hart, reader.payload()), (HartId(3), &[1, 3, 16, 1, 0, 2][..]));
/// assert_eq!(reader.next(&mut rest), NextFrame::End);
/// ```
#[derive(Clone, Debug)]
pub struct FrameReader {
    state: State,
    /// The bytes at hand, from the start of what is being read.
    kept: Vec<u8>,
    /// Offset of the first of them.
    at: u64,
    /// How many of them belong to the frame given last.
    used: usize,
    /// Up to here a frame was that had a wrong checksum.
    doubted: u64,
    frames: u64,
}

impl Default for FrameReader {
    fn default() -> FrameReader {
        FrameReader::new()
    }
}

impl FrameReader {
    /// A reader at the start of a container.
    #[must_use]
    pub const fn new() -> FrameReader {
        FrameReader {
            state: State::Start,
            kept: Vec::new(),
            at: 0,
            used: 0,
            doubted: 0,
            frames: 0,
        }
    }

    /// Whether a file starts like a container.
    #[must_use]
    pub fn is_container(start: &[u8]) -> bool {
        start.starts_with(&MAGIC)
    }

    /// The payload of the frame announced by [`NextFrame::Frame`].
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.kept.get(HEADER..self.used).unwrap_or_default()
    }

    /// The offset reading has come to.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at + self.used as u64
    }

    /// Frames given so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Reads on from `bytes`, which is advanced past what was taken.
    pub fn next(&mut self, bytes: &mut &[u8]) -> NextFrame {
        self.drop_used();
        loop {
            match self.state {
                State::End if self.kept.is_empty() && bytes.is_empty() => return NextFrame::End,
                State::End => {
                    let at = self.at;
                    self.refuse(bytes);
                    return self.problem(at, Fault::AfterEnd, 0);
                }
                State::Refused => {
                    self.refuse(bytes);
                    return NextFrame::More;
                }
                State::Start | State::Frames | State::Lost => {}
            }
            let want = match self.state {
                State::Start => self.want_start(),
                State::Frames => self.want_frame(),
                _ => match self.search() {
                    true => continue,
                    false => HEADER,
                },
            };
            let most = match self.state {
                State::Lost => STRIDE,
                _ => want,
            };
            if !self.fill((want, most), bytes) {
                return NextFrame::More;
            }
            let next = match self.state {
                State::Start => self.start(),
                State::Frames => self.frame(),
                _ => None,
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// The file has ended: what is wrong with that, and then
    /// [`NextFrame::End`].
    pub fn finish(&mut self) -> NextFrame {
        self.drop_used();
        let fault = match (self.state, self.kept.is_empty()) {
            (State::Start, _) => Fault::NotContainer,
            (State::Frames, true) | (State::Lost, _) => Fault::NoEnd,
            (State::Frames, false) => Fault::FrameTruncated,
            (State::End | State::Refused, _) => return NextFrame::End,
        };
        let (at, left) = (self.at, self.kept.len() as u64);
        self.refuse(&mut &[][..]);
        self.problem(at, fault, left)
    }

    fn problem(&self, at: u64, fault: Fault, value: u64) -> NextFrame {
        NextFrame::Problem(Problem {
            at,
            group: self.frames,
            fault,
            value,
        })
    }

    /// Passes all there is.
    fn refuse(&mut self, bytes: &mut &[u8]) {
        self.at += (self.kept.len() + bytes.len()) as u64;
        self.kept.clear();
        *bytes = &[];
        self.state = State::Refused;
    }

    fn drop_used(&mut self) {
        let used = core::mem::take(&mut self.used);
        self.pass(used);
    }

    fn pass(&mut self, len: usize) {
        let len = len.min(self.kept.len());
        self.kept.drain(..len);
        self.at += len as u64;
    }

    /// Takes bytes until there are at least, and at most, so many; whether
    /// there are.
    fn fill(&mut self, (want, most): (usize, usize), bytes: &mut &[u8]) -> bool {
        let missing = most.saturating_sub(self.kept.len());
        let (some, rest) = bytes.split_at(bytes.len().min(missing));
        self.kept.extend_from_slice(some);
        *bytes = rest;
        self.kept.len() >= want
    }

    fn field(&self, at: usize) -> u32 {
        let bytes = self.kept.get(at..).and_then(|rest| rest.first_chunk::<4>());
        u32::from_le_bytes(bytes.copied().unwrap_or_default())
    }

    /// Bytes that the start has, as far as that is known.
    fn want_start(&self) -> usize {
        let len = match self.kept.len() >= START {
            true => (self.field(12) as usize).min(MAX_PARAMETERS),
            false => 0,
        };
        START + len
    }

    fn start(&mut self) -> Option<NextFrame> {
        let version = self.field(8) as u16;
        let len = self.field(12) as usize;
        let fault = match () {
            () if !FrameReader::is_container(&self.kept) => (Fault::NotContainer, 0),
            () if version != VERSION => (Fault::ContainerVersion, version.into()),
            () if len > MAX_PARAMETERS => (Fault::ContainerParameters, len as u64),
            // The parameters are to come.
            () if self.kept.len() < START + len => return None,
            () => match self.parameters(len) {
                Ok(parameters) => {
                    self.pass(START + len);
                    self.state = State::Frames;
                    return Some(NextFrame::Start(Box::new(parameters)));
                }
                Err(fault) => fault,
            },
        };
        let at = self.at;
        self.refuse(&mut &[][..]);
        Some(self.problem(at, fault.0, fault.1))
    }

    fn parameters(&self, len: usize) -> Result<Parameters, (Fault, u64)> {
        let text = self.kept.get(START..START + len).unwrap_or_default();
        if crc32(text) != self.field(16) {
            return Err((Fault::ContainerParameters, 0));
        }
        let text = core::str::from_utf8(text).map_err(|_| (Fault::ContainerParameters, 0))?;
        let parameters: Result<Parameters, _> = text.parse();
        parameters.map_err(|error| (Fault::ContainerParameters, error.line()))
    }

    /// Bytes that the frame has, as far as that is known.
    fn want_frame(&self) -> usize {
        match self.header() {
            Ok(_) => HEADER + self.field(16) as usize,
            Err(_) => HEADER,
        }
    }

    /// The header at the front: what it says, `None` for that of the end.
    fn header(&self) -> Result<Option<Header>, (Fault, u64)> {
        let header = self.kept.get(..HEADER).unwrap_or_default();
        if !is_header(header) {
            return Err((Fault::FrameHeader, 0));
        }
        let code = self.kept.get(4).copied().unwrap_or_default();
        let (plain, payload) = (self.field(12), self.field(16));
        let method = Method::from_code(code);
        if (code, plain, payload) == (0, 0, 0) {
            return Ok(None);
        }
        let fits = plain as usize <= MAX_PLAIN && payload <= plain && payload > 0;
        if !fits || method == Some(Method::Stored) && plain != payload {
            return Err((Fault::FrameSize, plain.max(payload).into()));
        }
        let frame = method.map(|method| Frame {
            hart: HartId(self.field(8)),
            method,
            plain,
            payload,
            checksum: self.field(20),
        });
        Ok(Some(frame.ok_or(code)))
    }

    fn frame(&mut self) -> Option<NextFrame> {
        let header = match self.header() {
            Err((fault, value)) => return Some(self.lose(fault, value)),
            Ok(None) => {
                self.pass(HEADER);
                self.state = State::End;
                return None;
            }
            Ok(Some(header)) => header,
        };
        let whole = HEADER + self.field(16) as usize;
        if self.kept.len() < whole {
            return None;
        }
        let frame = match header {
            Ok(frame) => frame,
            Err(code) => {
                let at = self.at;
                self.pass(whole);
                return Some(self.problem(at, Fault::FrameMethod, code.into()));
            }
        };
        self.used = whole;
        if frame.method == Method::Stored && frame.check(self.payload()).is_err() {
            return Some(self.distrust(&frame));
        }
        self.frames += 1;
        Some(NextFrame::Frame(frame))
    }

    /// The payload at hand is not what was framed. If bytes are missing from
    /// it, the next frame is among them: it is looked for there, but only
    /// once, so that no byte is looked at over and over.
    fn distrust(&mut self, frame: &Frame) -> NextFrame {
        let (at, used) = (self.at, self.used);
        let next = self.lose(Fault::FrameChecksum, frame.checksum.into());
        if at < self.doubted {
            self.pass(used - 1);
        } else {
            self.doubted = at + used as u64;
        }
        next
    }

    /// No frame stands here: one has to be found.
    fn lose(&mut self, fault: Fault, value: u64) -> NextFrame {
        let at = self.at;
        self.used = 0;
        self.pass(1);
        self.state = State::Lost;
        self.problem(at, fault, value)
    }

    /// Passes what cannot be a header; whether one stands at the front then.
    fn search(&mut self) -> bool {
        let found = self.kept.windows(HEADER).position(is_header);
        let rest = self.kept.len().saturating_sub(HEADER - 1);
        self.pass(found.unwrap_or(rest));
        if found.is_some() {
            self.state = State::Frames;
        }
        found.is_some()
    }
}

/// A frame, or the code of an unknown method.
type Header = Result<Frame, u8>;

/// Whether these are the bytes of a header.
fn is_header(bytes: &[u8]) -> bool {
    let Some((fields, seal)) = bytes.split_last_chunk::<4>() else {
        return false;
    };
    fields.starts_with(&SYNC) && crc32(fields).to_le_bytes() == *seal
}
