//! Frames of the CoreSight formatter (IHI 0029): 16 bytes that carry the bytes of
//! several sources, each with an id of seven bits.
//!
//! Bytes 0, 2, ... 14 of a frame are data or, if their lowest bit is set, a new id;
//! bytes 1, 3, ... 13 are data. Bit n of byte 15 belongs to byte 2n: it is the lowest bit
//! of data, or says that a new id is valid only after the next byte. Frames may be
//! separated by full synchronisation packets, and have half ones inside.

/// Bytes of a frame.
const FRAME: usize = 16;

/// Full synchronisation, between frames.
const FULL: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];

/// Half synchronisation, at an even place.
const HALF: [u8; 2] = [0xff, 0x7f];

/// The id of padding.
const NULL: u8 = 0;

/// Frames after which an id that did not change is repeated, so that a reader can start
/// in the middle.
const REPEAT: u32 = 10;

/// The first id that is reserved, or a trigger.
const RESERVED: u8 = 0x70;

/// Takes frames apart. The bytes may come in chunks of any size.
///
/// The first byte is that of a frame, unless a full synchronisation packet shows
/// otherwise.
#[derive(Clone, Debug, Default)]
pub struct Deformatter {
    frame: [u8; FRAME],
    have: usize,
    /// The last bytes, for the search for full synchronisation.
    last: [u8; 4],
    /// The source of the next byte; `None` before the first id.
    id: Option<u8>,
    /// Bytes before the first id, and of sources that are reserved.
    dropped: u64,
}

impl Deformatter {
    /// At the start of a dump.
    #[must_use]
    pub fn new() -> Deformatter {
        Deformatter::default()
    }

    /// Bytes of no source: before the first id, or of one that is reserved.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The next bytes; gives each byte of data with the id of its source.
    pub fn feed(&mut self, bytes: &[u8], out: &mut impl FnMut(u8, u8)) {
        for &byte in bytes {
            let [_, a, b, c] = self.last;
            self.last = [a, b, c, byte];
            if let Some(place) = self.frame.get_mut(self.have) {
                *place = byte;
                self.have += 1;
            }
            if self.last == FULL {
                // A frame starts after it, wherever it came.
                self.have = 0;
                continue;
            }
            let half = self.have >= 2
                && self.have.is_multiple_of(2)
                && self.frame.get(self.have - 2..self.have) == Some(&HALF);
            if half && self.have < FRAME {
                self.have -= 2;
            }
            if self.have == FRAME {
                self.have = 0;
                self.take(out);
            }
        }
    }

    /// A whole frame.
    fn take(&mut self, out: &mut impl FnMut(u8, u8)) {
        let [.., flags] = self.frame;
        let frame = self.frame;
        for (n, pair) in frame.chunks_exact(2).enumerate() {
            let &[even, odd] = pair else {
                continue;
            };
            let flag = flags >> n & 1;
            let odd = (n < 7).then_some(odd);
            if even & 1 == 0 {
                self.data(even | flag, out);
                odd.into_iter().for_each(|odd| self.data(odd, out));
            } else if flag == 0 {
                self.id = Some(even >> 1);
                odd.into_iter().for_each(|odd| self.data(odd, out));
            } else {
                odd.into_iter().for_each(|odd| self.data(odd, out));
                self.id = Some(even >> 1);
            }
        }
    }

    fn data(&mut self, byte: u8, out: &mut impl FnMut(u8, u8)) {
        match self.id {
            Some(NULL) => {}
            Some(id) if id < RESERVED => out(id, byte),
            _ => self.dropped += 1,
        }
    }
}

/// Puts the bytes of several sources into frames.
#[derive(Clone, Debug)]
pub struct Formatter {
    frame: [u8; FRAME],
    at: usize,
    id: u8,
    /// Frames since the id was given last.
    unnamed: u32,
    /// The last byte, whose place depends on the source of the next.
    held: Option<(u8, u8)>,
    /// Frames between two full synchronisation packets, and since the last; 0 for none.
    sync: u32,
    since: u32,
    out: Vec<u8>,
}

impl Formatter {
    /// With a full synchronisation packet before every so many frames; 0 for none.
    #[must_use]
    pub const fn new(sync: u32) -> Formatter {
        Formatter {
            frame: [0; FRAME],
            at: 0,
            id: NULL,
            unnamed: 0,
            held: None,
            sync,
            since: 0,
            out: Vec::new(),
        }
    }

    /// Bytes of the source with this id, 1 to 111.
    pub fn put(&mut self, id: u8, bytes: &[u8]) {
        for &byte in bytes {
            self.place(id);
            self.held = Some((id, byte));
        }
    }

    /// The frames so far, the last filled up.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.place(NULL);
        while self.at > 0 {
            match self.id {
                NULL => self.byte(0),
                _ => self.change(NULL, 0),
            }
        }
        self.out
    }

    /// Finds a place for the byte that is held; the next is of this source.
    fn place(&mut self, next: u8) {
        let Some((id, byte)) = self.held.take() else {
            return;
        };
        // Only an even place can have an id; after the last byte of a source that is next.
        if id != self.id || self.unnamed >= REPEAT && self.at == 0 {
            self.change(id, 0);
        }
        let last = self.at == FRAME - 2;
        if self.at.is_multiple_of(2) && !last && next != id {
            // The id of the next source first; this byte is the last of the old one.
            self.change(next, 1);
            self.put_byte(byte);
            return;
        }
        self.byte(byte);
    }

    /// A new id, at an even place.
    fn change(&mut self, id: u8, late: u8) {
        self.flag(late);
        self.id = id;
        self.unnamed = 0;
        self.put_byte(id << 1 | 1);
    }

    /// A byte of data.
    fn byte(&mut self, byte: u8) {
        if self.at.is_multiple_of(2) {
            self.flag(byte & 1);
            self.put_byte(byte & !1);
        } else {
            self.put_byte(byte);
        }
    }

    fn flag(&mut self, flag: u8) {
        let [.., flags] = &mut self.frame;
        *flags |= flag << (self.at / 2);
    }

    fn put_byte(&mut self, byte: u8) {
        if let Some(place) = self.frame.get_mut(self.at) {
            *place = byte;
        }
        self.at += 1;
        if self.at < FRAME - 1 {
            return;
        }
        if self.sync > 0 && self.since.is_multiple_of(self.sync) {
            self.out.extend_from_slice(&FULL);
        }
        self.since += 1;
        self.unnamed += 1;
        self.out.extend_from_slice(&self.frame);
        self.frame = [0; FRAME];
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_testkit::{Random, pieces};

    fn taken_apart<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(u8, u8)> {
        let mut deformatter = Deformatter::new();
        let mut found = Vec::new();
        for chunk in chunks {
            deformatter.feed(chunk, &mut |id, byte| found.push((id, byte)));
        }
        found
    }

    /// By the rules, byte by byte: an id at once, one after the next byte, the lowest bits
    /// of data in the last byte.
    #[test]
    fn a_frame_by_hand() {
        let mut frame = [0; 16];
        frame[0] = 3 << 1 | 1;
        frame[1] = 0xaa;
        frame[2] = 0x54; // 0x55 with its lowest bit
        frame[3] = 0xbb;
        frame[4] = 5 << 1 | 1; // valid after the next byte
        frame[5] = 0xcc;
        frame[6] = 0x10;
        frame[7] = 0x11;
        frame[8] = 1; // id 0
        frame[15] = 0b0000_0110;
        let found = taken_apart([&frame[..]]);
        let expected = [
            (3, 0xaa),
            (3, 0x55),
            (3, 0xbb),
            (3, 0xcc),
            (5, 0x10),
            (5, 0x11),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn several_sources_there_and_back() {
        let mut random = Random::new(5);
        for sync in [0, 1, 3] {
            for round in 0..200 {
                let mut formatter = Formatter::new(sync);
                let mut sent: Vec<(u8, u8)> = Vec::new();
                for _ in 0..random.below(20) {
                    let id = 1 + random.below(3) as u8 * 50;
                    let len = random.index(12);
                    let bytes = random.bytes(len);
                    formatter.put(id, &bytes);
                    sent.extend(bytes.iter().map(|&byte| (id, byte)));
                }
                let frames = formatter.finish();
                let found = taken_apart(pieces(&frames, &mut random));
                for id in [1, 51, 101] {
                    let of = |all: &[(u8, u8)]| -> Vec<u8> {
                        let own = all.iter().filter(|(source, _)| *source == id);
                        own.map(|&(_, byte)| byte).collect()
                    };
                    assert_eq!(of(&found), of(&sent), "{sync} {round}");
                }
            }
        }
    }

    /// A dump that starts anywhere is in order from the first full synchronisation on.
    #[test]
    fn entered_in_the_middle() {
        let mut formatter = Formatter::new(2);
        for n in 0..100 {
            formatter.put(1 + n % 2, &[n, n, n]);
        }
        let frames = formatter.finish();
        let whole = taken_apart([&frames[..]]);
        for from in 1..36 {
            let found = taken_apart([&frames[from..]]);
            let last = &whole[whole.len() - 200..];
            assert_eq!(&found[found.len() - 200..], last, "from {from}");
        }
    }

    /// One source alone: its id comes again and again.
    #[test]
    fn ids_are_repeated() {
        let mut formatter = Formatter::new(0);
        let bytes: Vec<u8> = (0..=255).cycle().take(2000).collect();
        formatter.put(9, &bytes);
        let frames = formatter.finish();
        assert_eq!(taken_apart([&frames[..]]).len(), bytes.len());
        for from in (0..frames.len() / 2).step_by(FRAME) {
            let found = taken_apart([&frames[from..]]);
            assert!(found.len() > 800, "{from}");
            let found: Vec<u8> = found.iter().map(|&(_, byte)| byte).collect();
            assert!(bytes.ends_with(&found), "{from}");
        }
    }

    #[test]
    fn half_synchronisation_is_no_data() {
        let mut formatter = Formatter::new(0);
        formatter.put(7, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let frames = formatter.finish();
        let whole = taken_apart([&frames[..]]);
        for at in (0..14).step_by(2) {
            let cut = [&frames[..at], &HALF, &frames[at..]].concat();
            assert_eq!(taken_apart([&cut[..]]), whole, "{at}");
        }
    }

    #[test]
    fn any_bytes() {
        let mut random = Random::new(6);
        for _ in 0..50 {
            let noise = random.bytes(500);
            let whole = taken_apart([&noise[..]]);
            assert_eq!(taken_apart(pieces(&noise, &mut random)), whole);
        }
    }
}
