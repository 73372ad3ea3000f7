//! Writes FST files.
//!
//! All is known when writing starts, so a file is written from its start to its end, with
//! its names first.

use super::{
    CHANGES_ALIAS_2 as CHANGES, END_OF_SCOPE, GEOMETRY, HEADER, HIERARCHY, MODULE, SCOPE, STRING,
    WIRE,
};
use crate::leb128;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{self, Write};

/// Lengths of the texts in the header.
const WRITER: usize = 128;
const DATE: usize = 119;

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// So many bits.
    Bits(u32),
    /// A text of any length.
    Text,
}

/// A module with signals.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// Names and kinds of its signals, which are numbered over all scopes.
    pub signals: Vec<(&'static str, Kind)>,
}

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The first time.
    pub begin: u64,
    /// The last time.
    pub end: u64,
    /// Times are multiples of this power of ten of a second.
    pub exponent: i8,
    /// Sections with changes.
    pub sections: u64,
}

/// Writes all but the changes.
///
/// # Errors
///
/// Those of the output.
pub fn write_start(out: &mut dyn Write, header: &Start, scopes: &[Scope]) -> io::Result<()> {
    let kinds = scopes.iter().flat_map(|scope| &scope.signals);
    let count = kinds.clone().count() as u64;
    let mut bytes = Vec::new();
    for number in [header.begin, header.end] {
        bytes.extend(number.to_be_bytes());
    }
    // Shows in which order the bytes of such numbers are.
    bytes.extend(std::f64::consts::E.to_le_bytes());
    for number in [0, scopes.len() as u64, count, count, header.sections] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(header.exponent.to_be_bytes());
    // Always the same bytes for the same trace: there is no date.
    for (text, length) in [("hartrace", WRITER), ("", DATE)] {
        let end = bytes.len() + length;
        bytes.extend(text.bytes());
        bytes.resize(end, 0);
    }
    // A Verilog file, in which time starts with 0.
    bytes.push(0);
    bytes.extend(0u64.to_be_bytes());
    section(out, HEADER, &bytes)?;

    let mut lengths = Vec::new();
    for (_, kind) in kinds {
        leb128::unsigned(
            &mut lengths,
            match kind {
                Kind::Bits(bits) => u64::from(*bits),
                Kind::Text => u64::from(u32::MAX),
            },
        );
    }
    bytes.clear();
    for number in [lengths.len() as u64, count] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(lengths);
    section(out, GEOMETRY, &bytes)?;

    let names = hierarchy(scopes);
    bytes.clear();
    bytes.extend((names.len() as u64).to_be_bytes());
    let mut gzip = GzEncoder::new(bytes, Compression::default());
    gzip.write_all(&names)?;
    section(out, HIERARCHY, &gzip.finish()?)
}

fn section(out: &mut dyn Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[kind])?;
    // The length is part of what it is the length of.
    out.write_all(&(bytes.len() as u64 + 8).to_be_bytes())?;
    out.write_all(bytes)
}

fn hierarchy(scopes: &[Scope]) -> Vec<u8> {
    let mut names = Vec::new();
    for scope in scopes {
        names.extend([SCOPE, MODULE]);
        names.extend(scope.name.bytes());
        // The end of the name, and a component without a name.
        names.extend([0, 0]);
        for (name, kind) in &scope.signals {
            let (code, bits) = match kind {
                Kind::Bits(bits) => (WIRE, *bits),
                Kind::Text => (STRING, 0),
            };
            // Without a direction.
            names.extend([code, 0]);
            names.extend(name.bytes());
            if bits > 1 {
                names.extend(format!(" [{}:0]", bits - 1).bytes());
            }
            names.push(0);
            leb128::unsigned(&mut names, bits.into());
            // The signal is no alias of another.
            leb128::unsigned(&mut names, 0);
        }
        names.push(END_OF_SCOPE);
    }
    names
}

/// A value of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// Not known, or not settled: `x`.
    Unknown,
    /// The low bits of a number.
    Bits(u64),
    /// Words of a signal of more than 64 bits, the lowest first.
    Wide(&'a [u64]),
    /// A text.
    Text(&'a str),
}

/// Sections of changes, one after the other.
#[derive(Debug)]
pub struct Sections {
    kinds: Vec<Kind>,
    chains: Vec<Chain>,
    begin: u64,
    now: u64,
    /// Differences between times, and how many times there are.
    times: Vec<u8>,
    count: u64,
}

/// The changes of a signal in a section.
#[derive(Debug, Default)]
struct Chain {
    /// The value where the section begins, and now: bits as characters.
    first: Vec<u8>,
    last: Vec<u8>,
    bytes: Vec<u8>,
    /// The index of the time of the last change.
    index: u64,
}

impl Sections {
    /// Sections of the signals of these scopes, from a time on.
    #[must_use]
    pub fn new(scopes: &[Scope], begin: u64) -> Sections {
        let kinds = scopes.iter().flat_map(|scope| &scope.signals);
        let kinds: Vec<Kind> = kinds.map(|(_, kind)| *kind).collect();
        let chains = kinds.iter().map(|kind| Chain::new(*kind)).collect();
        Sections {
            kinds,
            chains,
            begin,
            now: begin,
            times: Vec::new(),
            count: 0,
        }
    }

    /// The changes that follow are at this time, which is not before the last.
    pub fn time(&mut self, at: u64) {
        let since = if self.count == 0 { 0 } else { self.now };
        if self.count == 0 || at > self.now {
            leb128::unsigned(&mut self.times, at.saturating_sub(since));
            self.count += 1;
        }
        self.now = at;
    }

    /// Whether a signal would change with this value.
    #[must_use]
    pub fn differs(&self, signal: usize, value: Written<'_>) -> bool {
        match (self.kinds.get(signal), self.chains.get(signal)) {
            (Some(Kind::Text), Some(chain)) => text(value) != chain.last,
            (Some(Kind::Bits(bits)), Some(chain)) => {
                !chain.last.iter().copied().eq(characters(value, *bits))
            }
            _ => false,
        }
    }

    /// A change at the time given last.
    pub fn change(&mut self, signal: usize, value: Written<'_>) {
        let (Some(kind), Some(chain)) = (self.kinds.get(signal), self.chains.get_mut(signal))
        else {
            return;
        };
        let index = self.count.saturating_sub(1);
        let since = index - chain.index;
        chain.index = index;
        match kind {
            Kind::Text => chain.text(since, text(value)),
            Kind::Bits(1) => chain.bit(since, value),
            Kind::Bits(bits) => chain.bits(since, value, *bits),
        }
    }

    /// Writes the section; the next begins where it ends.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.count == 0 {
            self.time(self.now);
        }
        let frame: Vec<u8> = self
            .fixed()
            .flat_map(|chain| &chain.first)
            .copied()
            .collect();
        let traversed: usize = self.chains.iter().map(|chain| chain.bytes.len()).sum();
        let mut bytes = Vec::new();
        for number in [self.begin, self.now, traversed as u64] {
            bytes.extend(number.to_be_bytes());
        }
        let signals = self.chains.len() as u64;
        // The frame is not compressed: it is as long as it would be.
        for number in [frame.len() as u64, frame.len() as u64, signals] {
            leb128::unsigned(&mut bytes, number);
        }
        bytes.extend(frame);
        leb128::unsigned(&mut bytes, signals);
        let places = self.write_chains(&mut bytes)?;
        bytes.extend(&places);
        bytes.extend((places.len() as u64).to_be_bytes());
        let packed = zlib(&self.times)?;
        let times = shorter(&self.times, &packed);
        bytes.extend(times);
        for number in [self.times.len() as u64, times.len() as u64, self.count] {
            bytes.extend(number.to_be_bytes());
        }
        section(out, CHANGES, &bytes)?;
        for chain in &mut self.chains {
            chain.first.clone_from(&chain.last);
            chain.bytes.clear();
            chain.index = 0;
        }
        self.begin = self.now;
        self.times.clear();
        self.count = 0;
        Ok(())
    }

    /// Signals with values in the frame.
    fn fixed(&self) -> impl Iterator<Item = &Chain> {
        let both = self.kinds.iter().zip(&self.chains);
        both.filter(|(kind, _)| **kind != Kind::Text)
            .map(|(_, chain)| chain)
    }

    /// Appends the chains, packed with zlib; where each of them is.
    fn write_chains(&self, bytes: &mut Vec<u8>) -> io::Result<Vec<u8>> {
        let start = bytes.len();
        bytes.push(b'Z');
        let mut places = Vec::new();
        let (mut last, mut unchanged) = (start, 0u64);
        for chain in &self.chains {
            if chain.bytes.is_empty() {
                unchanged += 1;
                continue;
            }
            if unchanged > 0 {
                leb128::unsigned(&mut places, unchanged << 1);
                unchanged = 0;
            }
            let place = bytes.len();
            let packed = zlib(&chain.bytes)?;
            match packed.len() < chain.bytes.len() {
                true => {
                    leb128::unsigned(bytes, chain.bytes.len() as u64);
                    bytes.extend(packed);
                }
                false => {
                    leb128::unsigned(bytes, 0);
                    bytes.extend(&chain.bytes);
                }
            }
            leb128::signed(&mut places, ((place - last) as i64) << 1 | 1);
            last = place;
        }
        if unchanged > 0 {
            leb128::unsigned(&mut places, unchanged << 1);
        }
        Ok(places)
    }
}

impl Chain {
    fn new(kind: Kind) -> Chain {
        let value = match kind {
            Kind::Bits(bits) => vec![b'x'; bits as usize],
            Kind::Text => Vec::new(),
        };
        Chain {
            first: value.clone(),
            last: value,
            ..Chain::default()
        }
    }

    fn text(&mut self, since: u64, text: &[u8]) {
        leb128::unsigned(&mut self.bytes, since << 1);
        leb128::unsigned(&mut self.bytes, text.len() as u64);
        self.bytes.extend(text);
        self.last.clear();
        self.last.extend(text);
    }

    fn bit(&mut self, since: u64, value: Written<'_>) {
        match value {
            Written::Bits(bit) => leb128::unsigned(&mut self.bytes, since << 2 | (bit & 1) << 1),
            // The number of `x` among the values that are no bits is 0.
            _ => leb128::unsigned(&mut self.bytes, since << 4 | 1),
        }
        self.last.clear();
        self.last.extend(characters(value, 1));
    }

    fn bits(&mut self, since: u64, value: Written<'_>, bits: u32) {
        self.last.clear();
        self.last.extend(characters(value, bits));
        match value {
            Written::Bits(number) => {
                leb128::unsigned(&mut self.bytes, since << 1);
                // The highest bit first, and the last byte filled up.
                let length = bits.div_ceil(8);
                let aligned = number.wrapping_shl(u64::BITS - bits);
                let bytes = aligned.to_be_bytes();
                self.bytes.extend(bytes.iter().take(length as usize));
            }
            Written::Wide(_) => {
                leb128::unsigned(&mut self.bytes, since << 1);
                for characters in self.last.chunks(8) {
                    let byte = characters.iter().fold(0, |n, c| n << 1 | (c & 1));
                    self.bytes.push(byte << (8 - characters.len()));
                }
            }
            _ => {
                leb128::unsigned(&mut self.bytes, since << 1 | 1);
                self.bytes.extend(&self.last);
            }
        }
    }
}

/// The characters of a value, the highest bit first.
fn characters(value: Written<'_>, bits: u32) -> impl Iterator<Item = u8> {
    let bit_of = |words: &[u64], bit: u32| {
        let word = words.get((bit / 64) as usize).copied().unwrap_or(0);
        b'0' + (word >> (bit % 64) & 1) as u8
    };
    (0..bits).rev().map(move |bit| match value {
        Written::Bits(number) => bit_of(&[number], bit),
        Written::Wide(words) => bit_of(words, bit),
        _ => b'x',
    })
}

fn text(value: Written<'_>) -> &[u8] {
    match value {
        Written::Text(text) => text.as_bytes(),
        _ => &[],
    }
}

fn shorter<'a>(plain: &'a [u8], packed: &'a [u8]) -> &'a [u8] {
    match packed.len() < plain.len() {
        true => packed,
        false => plain,
    }
}

fn zlib(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::new(4));
    packer.write_all(bytes)?;
    packer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section starts with the values and the time with which the one before ended.
    #[test]
    fn sections_follow_each_other() {
        let scopes = [Scope {
            name: "s".to_owned(),
            signals: vec![
                ("a", Kind::Bits(4)),
                ("b", Kind::Text),
                ("c", Kind::Bits(1)),
            ],
        }];
        let mut sections = Sections::new(&scopes, 100);
        let mut files = [Vec::new(), Vec::new(), Vec::new()];
        let [first, second, third] = &mut files;
        sections.time(100);
        assert!(sections.differs(0, Written::Bits(5)) && !sections.differs(0, Written::Unknown));
        sections.change(0, Written::Bits(5));
        sections.change(1, Written::Text("five"));
        assert!(!sections.differs(0, Written::Bits(5)) && sections.differs(2, Written::Bits(0)));
        sections.time(130);
        sections.change(2, Written::Bits(1));
        sections.write(first).unwrap();
        sections.time(200);
        sections.change(0, Written::Unknown);
        sections.write(second).unwrap();
        // Nothing has happened.
        sections.write(third).unwrap();
        let number = |bytes: &[u8], at: usize| {
            let bytes: [u8; 8] = bytes[at..at + 8].try_into().unwrap();
            u64::from_be_bytes(bytes)
        };
        let starts = files.each_ref().map(|bytes| {
            // Type, length, begin, end, memory, then the frame: its length twice, signals.
            assert_eq!(
                (bytes[0], number(bytes, 1)),
                (CHANGES, bytes.len() as u64 - 1)
            );
            assert_eq!(bytes[33..36], [5, 5, 3]);
            let frame = String::from_utf8(bytes[36..41].to_vec()).unwrap();
            let times = number(bytes, bytes.len() - 8);
            (number(bytes, 9), number(bytes, 17), frame, times)
        });
        let expected = [
            (100, 130, "xxxxx".to_owned(), 2),
            (130, 200, "01011".to_owned(), 1),
            (200, 200, "xxxx1".to_owned(), 1),
        ];
        assert_eq!(starts, expected);
        // Of the first: 0101 at the first time, and the bit at the second.
        let chain = |at: usize| &files[0][at..];
        assert_eq!(chain(41)[..2], [3, b'Z']);
        assert_eq!(chain(43)[..3], [0, 0, 0x50]);
        assert_eq!(chain(46)[..7], [0, 0, 4, b'f', b'i', b'v', b'e']);
        assert_eq!(chain(53)[..2], [0, 1 << 2 | 1 << 1]);
    }

    #[test]
    fn signed_numbers() {
        for (value, bytes) in [
            (0, &[0][..]),
            (63, &[63]),
            (64, &[0xc0, 0]),
            (-1, &[0x7f]),
            (-65, &[0xbf, 0x7f]),
        ] {
            let mut out = Vec::new();
            leb128::signed(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }
}
