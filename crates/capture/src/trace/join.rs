//! E-Trace data packets in a file of their own.
//!
//! The file has the data packets and a copy of each packet of format 3 of the
//! instruction trace. All data packets before such a packet belong to instructions
//! before it, so the copies are where the two files are joined again: the data
//! packets up to the next one, then the packets of instruction trace up to it, then
//! the packet itself.

use super::{Settings, Trace};
use crate::input::{Contents, Input, InputError};
use hartrace_etrace::{Encapsulated, Encapsulation, Framer, Framing as _, Kind, Piece};
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are joined at a time.
const STEP: usize = 1 << 16;

/// Synchronisation packets among which a copy is looked for.
const WINDOW: usize = 256;

/// Divides a stream: packets of instruction trace, and data packets with copies of
/// the packets of format 3.
pub fn split(settings: &Settings, stream: &[u8], instructions: &mut Vec<u8>, data: &mut Vec<u8>) {
    let mut rest = stream;
    let mut framer = Framer::of(encapsulation(settings));
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        let from = at as usize;
        let bytes = stream.get(from..from + Framer::length(&piece));
        let bytes = bytes.unwrap_or_default();
        if bytes.is_empty() {
            continue;
        }
        match piece {
            Piece::Packet(Encapsulated {
                kind: Kind::Data, ..
            }) => data.extend_from_slice(bytes),
            piece => {
                instructions.extend_from_slice(bytes);
                if is_format_3(&piece) {
                    data.extend_from_slice(bytes);
                }
            }
        }
    }
}

fn encapsulation(settings: &Settings) -> Encapsulation {
    match settings {
        Settings::Etrace(config) => config.encapsulation,
        Settings::Ntrace(_) | Settings::Tandem(_) => Encapsulation::default(),
    }
}

fn is_format_3(piece: &Piece<'_>) -> bool {
    match piece {
        Piece::Packet(Encapsulated {
            kind: Kind::Instruction,
            payload,
            ..
        }) => payload.first().is_some_and(|byte| byte & 3 == 3),
        _ => false,
    }
}

/// One of the two files.
struct Side {
    bytes: Contents,
    framer: Framer,
}

/// A piece by its place, and what it is.
#[derive(Clone, Copy)]
struct Found {
    from: usize,
    len: usize,
    data: bool,
    format_3: bool,
}

impl Side {
    fn new(form: Encapsulation, bytes: Contents) -> Side {
        Side {
            bytes,
            framer: Framer::of(form),
        }
    }

    fn next(&mut self) -> Option<Found> {
        let at = self.framer.position() as usize;
        let mut rest = self.bytes.get(at..)?;
        let found = match self.framer.next_piece(&mut rest) {
            Some((at, piece)) => (at, Framer::length(&piece), piece),
            None => {
                let (at, piece) = self.framer.finish()?;
                (at, Framer::length(&piece), piece)
            }
        };
        let (from, len, piece) = found;
        Some(Found {
            from: from as usize,
            len,
            data: matches!(
                piece,
                Piece::Packet(Encapsulated {
                    kind: Kind::Data,
                    ..
                })
            ),
            format_3: is_format_3(&piece),
        })
    }

    fn bytes(&self, found: Found) -> &[u8] {
        let bytes = self.bytes.get(found.from..found.from + found.len);
        bytes.unwrap_or_default()
    }
}

/// Both files as one stream.
struct Joined {
    instructions: Side,
    data: Side,
    /// The copy that the data packets so far lead to; `None` before it is reached.
    mark: Option<Vec<u8>>,
    /// The data packets have ended.
    data_ended: bool,
    ended: bool,
    out: Vec<u8>,
    given: usize,
}

impl Joined {
    /// Makes more of the stream.
    fn fill(&mut self) {
        self.out.clear();
        self.given = 0;
        while self.out.len() < STEP && !self.ended {
            if self.mark.is_none() && !self.data_ended {
                self.take_data();
            } else {
                self.take_instruction();
            }
        }
    }

    fn take_data(&mut self) {
        match self.data.next() {
            None => self.data_ended = true,
            Some(found) if found.format_3 => self.mark = Some(self.data.bytes(found).to_vec()),
            // Damage too: it is for the decoder to report.
            Some(found) => self.out.extend_from_slice(self.data.bytes(found)),
        }
    }

    fn take_instruction(&mut self) {
        let Some(found) = self.instructions.next() else {
            // What is left belongs to nothing that is known.
            while let Some(found) = self.data.next() {
                if found.data {
                    self.out.extend_from_slice(self.data.bytes(found));
                }
            }
            self.ended = true;
            return;
        };
        let packet = self.instructions.bytes(found).to_vec();
        if found.format_3 {
            self.reach(&packet);
        }
        self.out.extend_from_slice(&packet);
    }

    /// A packet of format 3: the data packets before its copy come first.
    fn reach(&mut self, packet: &[u8]) {
        let Some(mark) = &self.mark else {
            return;
        };
        if mark == packet {
            self.mark = None;
            return;
        }
        // One of the files lacks a packet. If the copy comes later, go there; otherwise
        // the instructions have to come to the one that was reached.
        let before = self.data.framer.clone();
        let length = self.out.len();
        for _ in 0..WINDOW {
            loop {
                match self.data.next() {
                    None => {
                        self.data.framer = before;
                        self.out.truncate(length);
                        return;
                    }
                    Some(found) if found.format_3 => {
                        if self.data.bytes(found) == packet {
                            self.mark = None;
                            return;
                        }
                        break;
                    }
                    Some(found) => self.out.extend_from_slice(self.data.bytes(found)),
                }
            }
        }
        self.data.framer = before;
        self.out.truncate(length);
    }
}

impl Read for Joined {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.given == self.out.len() {
            self.fill();
        }
        let from = self.out.get(self.given..).unwrap_or_default();
        let count = from.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..count), from.get(..count)) {
            to.copy_from_slice(from);
        }
        self.given += count;
        Ok(count)
    }
}

/// Two files as one stream, in the order of their synchronisation packets.
fn join(path: &Path, form: Encapsulation, instructions: Contents, data: Contents) -> Input {
    Input::from_reader(
        path,
        Box::new(Joined {
            instructions: Side::new(form, instructions),
            data: Side::new(form, data),
            mark: None,
            data_ended: false,
            ended: false,
            out: Vec::new(),
            given: 0,
        }),
    )
}

impl Trace {
    /// Whether it can be joined with a file of data packets.
    #[must_use]
    pub fn can_join(&self) -> bool {
        self.settings.has_data()
    }

    /// The same trace with the data packets of another file. Offsets of faults are
    /// those in the joined stream.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn with_data(mut self, data: Input) -> Result<Trace, InputError> {
        let path = self.input.path().to_path_buf();
        let instructions = self.input.contents(super::MAX_WHOLE)?;
        let data = data.contents(super::MAX_WHOLE)?;
        let form = encapsulation(&self.settings);
        self.input = join(&path, form, instructions, data);
        if let Settings::Etrace(config) = &mut self.settings
            && let Some(data) = &mut config.data
        {
            data.separate = false;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_etrace::Version;
    use hartrace_isa::Xlen;

    fn read(instructions: &[u8], data: &[u8]) -> Vec<u8> {
        let contents = |bytes: &[u8]| Contents::Read(bytes.to_vec());
        let form = Encapsulation::default();
        let input = join(Path::new("a"), form, contents(instructions), contents(data));
        let mut out = Vec::new();
        let done = input.chunks(|chunk| {
            out.extend_from_slice(chunk);
            Ok::<(), InputError>(())
        });
        done.unwrap();
        out
    }

    /// Sync packets s1 to s3, data packets, packets of instruction trace.
    const S: [&[u8]; 3] = [&[0x42, 0x13, 1], &[0x42, 0x13, 2], &[0x42, 0x13, 3]];
    const D: [&[u8]; 3] = [&[0x61, 0x10], &[0x61, 0x20], &[0x61, 0x30]];
    const I: [&[u8]; 2] = [&[0x41, 0x02], &[0x41, 0x06]];

    #[test]
    fn a_stream_is_divided_and_joined() {
        let stream = [S[0], D[0], I[0], D[1], S[1], I[1], D[2], S[2]].concat();
        let (mut instructions, mut data) = (Vec::new(), Vec::new());
        let config = hartrace_etrace::Config::new(Version::V2_0, Xlen::Rv64);
        let settings = Settings::Etrace(config);
        split(&settings, &stream, &mut instructions, &mut data);
        assert_eq!(instructions, [S[0], I[0], S[1], I[1], S[2]].concat());
        assert_eq!(data, [S[0], D[0], D[1], S[1], D[2], S[2]].concat());
        // Data packets come before the instructions between two synchronisations.
        let joined = [S[0], D[0], D[1], I[0], S[1], D[2], I[1], S[2]].concat();
        assert_eq!(read(&instructions, &data), joined);
    }

    #[test]
    fn what_is_missing_in_one_file() {
        let instructions = [S[0], I[0], S[1], I[1], S[2]].concat();
        // The second copy is missing: its data belongs to either segment.
        let data = [S[0], D[0], D[1], S[2], D[2]].concat();
        let joined = read(&instructions, &data);
        assert_eq!(
            joined,
            [S[0], D[0], D[1], I[0], S[1], I[1], S[2], D[2]].concat()
        );
        // The second packet is missing among the instructions.
        let instructions = [S[0], I[0], S[2], I[1]].concat();
        let data = [S[0], D[0], S[1], D[1], S[2], D[2]].concat();
        let joined = read(&instructions, &data);
        assert_eq!(joined, [S[0], D[0], I[0], D[1], S[2], D[2], I[1]].concat());
        // No data at all, and data without instructions.
        assert_eq!(read(&instructions, &[]), instructions);
        assert_eq!(read(&[], &data), [D[0], D[1], D[2]].concat());
    }

    #[test]
    fn damage_is_passed_on() {
        let bad = [0xff; 8];
        let joined = read(&[S[0], I[0]].concat(), &[&bad[..]].concat());
        assert_eq!(joined, [&bad[..], S[0], I[0]].concat());
    }
}
