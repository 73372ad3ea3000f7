//! Samples of a pin interface block. In N-Trace (3.4) messages may start at any sample,
//! and any number of samples of ones may separate them.

use super::Pib;
use hartrace_flow::encode::Sink;
use hartrace_ntrace::{IDLE, MAX_MESSAGE, Tcode};

/// Ones before a zero that make it certainly the start of a message. Without
/// idle samples there are up to 13 before other zeros: six bits of data,
/// MSEO = 11 and five more bits.
const SURE: u32 = 14;

/// Ones before a zero that may be the start of a message: one idle byte.
const LIKELY: u32 = 8;

/// Whole messages that make a likely start a sure one.
const PROOF: u32 = 4;

/// What stands for the place where the alignment was lost: a damaged message.
const LOST: [u8; 2] = [0x02, IDLE];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Looking for the start of a message.
    Hunting,
    /// After a message.
    Between,
    /// In a message: bytes so far.
    Inside(usize),
}

/// Finds the messages in the samples of a port.
///
/// With less than eight pins idle samples are dropped, and the bytes that come
/// out are those of messages only. Where they cannot be (MSEO = 10, a message
/// that does not start with MSEO = 00 or does not end), the alignment was lost:
/// the reader gives the bytes 0x02 0xff, which a [`Framer`](hartrace_ntrace::Framer) takes
/// for a damaged message, and hunts. It continues after 14 ones, where there must
/// be the start of a message, or after 8 (one idle byte), or at the very first
/// sample, when four messages in a row prove it right.
///
/// With eight and sixteen pins bytes are where they are, and all of them come
/// out, idle ones too.
#[derive(Clone, Debug)]
pub struct PibReader {
    pib: Pib,
    /// Bytes of a word whose rest has not come.
    word: Vec<u8>,
    state: State,
    /// Ones up to here.
    ones: u32,
    /// Bits of the current byte.
    bits: u8,
    have: u32,
    /// Messages still wanted as a proof, and the bytes that wait for it.
    doubt: u32,
    held: Vec<u8>,
    /// Something has been given out.
    started: bool,
    dropped: u64,
}

impl PibReader {
    /// At the start of a stream, which may begin anywhere.
    #[must_use]
    pub const fn new(pib: Pib) -> PibReader {
        PibReader {
            pib,
            word: Vec::new(),
            state: State::Between,
            ones: 0,
            bits: 0,
            have: 0,
            doubt: PROOF,
            held: Vec::new(),
            started: false,
            dropped: 0,
        }
    }

    /// Bytes that were read, but not given out, for the alignment was wrong;
    /// those that went by in search of one are not counted.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes some samples; gives the bytes found. Where the samples are cut into
    /// chunks does not matter.
    pub fn feed(&mut self, samples: &[u8], out: &mut impl FnMut(u8)) {
        let word = self.pib.order.word();
        if word == 1 {
            samples.iter().for_each(|&byte| self.byte(byte, out));
            return;
        }
        for &byte in samples {
            self.word.push(byte);
            if self.word.len() == word {
                while let Some(byte) = self.word.pop() {
                    self.byte(byte, out);
                }
            }
        }
    }

    /// The samples end here: gives what waits for a proof that will not come.
    pub fn finish(&mut self, out: &mut impl FnMut(u8)) {
        for byte in std::mem::take(&mut self.word) {
            self.byte(byte, out);
        }
        self.trust(out);
        *self = PibReader {
            dropped: self.dropped,
            ..PibReader::new(self.pib)
        };
    }

    /// A byte of samples.
    fn byte(&mut self, byte: u8, out: &mut impl FnMut(u8)) {
        let width = self.pib.width.bits();
        if width >= 8 {
            out(byte);
            return;
        }
        let byte = self.pib.turn(byte);
        for i in 0..8 / width {
            self.sample(byte >> (i * width) & !(!0 << width), width, out);
        }
    }

    fn sample(&mut self, sample: u8, width: u32, out: &mut impl FnMut(u8)) {
        let ones = self.ones;
        let idle = sample.trailing_ones() == width;
        self.ones = if idle {
            ones.saturating_add(width).min(SURE)
        } else {
            // Those at the end of the sample.
            (sample << (8 - width)).leading_ones()
        };
        if let State::Inside(len) = self.state {
            self.collect(sample, width, len, out);
            return;
        }
        if idle {
            return;
        }
        let starts = sample.trailing_zeros() >= width.min(2);
        match self.state {
            State::Hunting if !starts || ones < LIKELY => return,
            State::Hunting => self.doubt = PROOF,
            _ if !starts => return self.lose(out),
            _ => {}
        }
        if ones >= SURE {
            self.trust(out);
        }
        self.collect(sample, width, 0, out);
    }

    /// A sample of a message that has so many bytes.
    fn collect(&mut self, sample: u8, width: u32, len: usize, out: &mut impl FnMut(u8)) {
        self.state = State::Inside(len);
        self.bits |= sample << self.have;
        self.have += width;
        if self.have < 8 {
            return;
        }
        let byte = std::mem::take(&mut self.bits);
        self.have = 0;
        let mseo = byte & 3;
        if mseo == 2 || (len == 0 && !self.may_start(byte)) || len >= MAX_MESSAGE {
            return self.lose(out);
        }
        if self.doubt > 0 {
            self.held.push(byte);
        } else {
            out(byte);
            self.started = true;
        }
        if mseo != 3 {
            self.state = State::Inside(len + 1);
            return;
        }
        self.state = State::Between;
        if self.doubt == 1 {
            self.trust(out);
        }
        self.doubt = self.doubt.saturating_sub(1);
    }

    /// Whether a message may start with this byte. A doubtful one has a known
    /// type.
    const fn may_start(&self, byte: u8) -> bool {
        let tcode = Tcode(byte >> 2);
        byte & 3 == 0 && (self.doubt == 0 || tcode.name().is_some() || tcode.is_vendor())
    }

    /// The alignment is right: what was held goes out.
    fn trust(&mut self, out: &mut impl FnMut(u8)) {
        self.started |= !self.held.is_empty();
        self.held.drain(..).for_each(&mut *out);
        self.doubt = 0;
    }

    /// The alignment is wrong.
    fn lose(&mut self, out: &mut impl FnMut(u8)) {
        if self.started && self.doubt == 0 {
            LOST.into_iter().for_each(&mut *out);
        }
        self.dropped += self.held.len() as u64;
        self.held.clear();
        self.state = State::Hunting;
        (self.bits, self.have) = (0, 0);
        self.doubt = PROOF;
    }
}

/// Makes the samples of a port out of messages.
#[derive(Clone, Debug)]
pub struct PibWriter {
    pib: Pib,
    out: Vec<u8>,
    /// Samples of the last byte.
    bits: u8,
    have: u32,
    /// Idle samples before each message.
    gap: u32,
    /// Messages between idle bytes, and how many there were.
    every: u32,
    since: u32,
}

impl PibWriter {
    /// With this many idle samples before each message, and one idle byte
    /// more before the first message and every so many (0: never): 1.0
    /// wants some with less than eight pins, so that the alignment can be found.
    #[must_use]
    pub const fn new(pib: Pib, gap: u32, every: u32) -> PibWriter {
        PibWriter {
            pib,
            out: Vec::new(),
            bits: 0,
            have: 0,
            gap,
            every,
            since: 0,
        }
    }

    /// Idle samples.
    pub fn idle(&mut self, samples: u32) {
        for _ in 0..samples {
            self.put(u16::MAX, self.pib.width.bits());
        }
    }

    /// The samples so far; the last sample, byte or word is filled up with ones.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let width = self.pib.width.bits();
        let unit = self.pib.order.word().max(width as usize / 8);
        while self.have > 0 || !self.out.len().is_multiple_of(unit) {
            self.put(u16::MAX, width.min(8));
        }
        self.pib.order.turn(&mut self.out);
        self.out
    }

    /// A sample of so many bits.
    fn put(&mut self, sample: u16, width: u32) {
        if width >= 8 {
            let [low, high] = sample.to_le_bytes();
            self.out.push(low);
            if width > 8 {
                self.out.push(high);
            }
            return;
        }
        self.bits |= (sample as u8 & !(!0 << width)) << self.have;
        self.have += width;
        if self.have == 8 {
            let byte = std::mem::take(&mut self.bits);
            self.out.push(self.pib.turn(byte));
            self.have = 0;
        }
    }
}

impl Sink for PibWriter {
    fn message(&mut self, bytes: &[u8]) {
        self.idle(self.gap);
        // On sixteen pins a message may start in the high half.
        let width = self.pib.width.bits().min(8);
        if self.every > 0 && self.since == 0 {
            (0..8 / width).for_each(|_| self.put(u16::MAX, width));
        }
        self.since = (self.since + 1).checked_rem(self.every).unwrap_or(0);
        for &byte in bytes {
            for i in 0..8 / width {
                self.put(u16::from(byte >> (i * width)), width);
            }
        }
    }
}

#[cfg(test)]
mod tests;
