//! Value change dumps: text (IEEE 1364-2005, 18).

use crate::header::{Body, Scopes, split_range};
use crate::value::bit_of;
use crate::watch::{Board, Part, Take, Watch};
use crate::{Header, Var, WaveError};

/// A word is a value of a signal or a name. Longer ones are none.
const MAX_WORD: usize = 1 << 20;

/// Identifiers up to this number are looked up in a table.
const TABLE: u64 = 1 << 20;

/// Whether a file that starts with `head` is a value change dump: the first word is one of
/// those that a header starts with.
pub(crate) fn is_vcd(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let words: [&[u8]; 7] = [
        b"$date",
        b"$version",
        b"$timescale",
        b"$comment",
        b"$scope",
        b"$var",
        b"$attrbegin",
    ];
    let follows = |word: &&[u8]| {
        let rest = head.strip_prefix(*word);
        rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
    };
    words.iter().any(follows)
}

/// The words of a text, up to its last whole word.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// The next word; `None` if its end has not come.
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let start = rest.iter().position(|byte| *byte > b' ')?;
        let rest = rest.get(start..)?;
        let length = word_length(rest)?;
        self.at += start + length;
        rest.get(..length)
    }

    /// The words up to `$end`.
    fn command(&mut self) -> Option<Vec<&'a [u8]>> {
        let mut words = Vec::new();
        loop {
            match self.next()? {
                b"$end" => return Some(words),
                word => words.push(word),
            }
        }
    }
}

/// The bytes before the first space; `None` if there is none. Eight at a time: values are long.
#[inline]
fn word_length(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (chunks, rest) = text.as_chunks::<8>();
    for (number, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        // The highest bit of bytes below 0x21; of others only after such a byte.
        let spaces = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
        if spaces != 0 {
            return Some(8 * number + spaces.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| *byte <= b' ')?;
    Some(8 * chunks.len() + at)
}

pub(crate) fn read_header(
    head: &[u8],
    see: &mut dyn FnMut(&Var<'_>),
) -> Result<Option<Header>, WaveError> {
    let (mut scopes, mut exponent) = (Scopes::default(), -9);
    let mut words = Words { text: head, at: 0 };
    // A header is read again with more bytes, so what is seen is put off to the end.
    if !is_complete(head) {
        return Ok(None);
    }
    while let Some(word) = words.next() {
        let offset = words.at as u64;
        let damaged = |what| WaveError::Damaged { what, offset };
        let Some(rest) = words.command() else {
            return Ok(None);
        };
        match word {
            b"$enddefinitions" => {
                let start = words.at as u64;
                return Ok(Some(Header::new(exponent, Body::Vcd { start })));
            }
            b"$timescale" => {
                exponent = timescale(&rest.concat()).ok_or(damaged("an unknown unit of time"))?;
            }
            b"$scope" => {
                let name = rest.get(1).ok_or(damaged("a scope without a name"))?;
                if !scopes.enter(&String::from_utf8_lossy(name)) {
                    return Err(damaged("too many scopes in each other"));
                }
            }
            b"$upscope" => scopes.leave(),
            b"$var" => var(&rest, scopes.path(), see).ok_or(damaged("not a variable"))?,
            word if word.starts_with(b"$") => {}
            _ => return Err(damaged("expected a command of the header")),
        }
    }
    Ok(None)
}

/// Whether the header has an end.
fn is_complete(head: &[u8]) -> bool {
    const END: &[u8] = b"$enddefinitions";
    let mut rest = head;
    // Nothing but a header has this word, and it is near the end of one.
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        rest = rest.get(at..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix(END) {
            return after.windows(5).any(|window| window.starts_with(b"$end"));
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}

/// `1 ns`, `10ps` and the like as a power of ten.
fn timescale(text: &[u8]) -> Option<i8> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let zeros = match number {
        b"1" => 0,
        b"10" => 1,
        b"100" => 2,
        _ => return None,
    };
    let unit = match unit {
        b"s" => 0,
        b"ms" => -3,
        b"us" => -6,
        b"ns" => -9,
        b"ps" => -12,
        b"fs" => -15,
        _ => return None,
    };
    Some(unit + zeros)
}

/// `wire 32 ! data [31:0]`.
fn var(words: &[&[u8]], scope: &str, see: &mut dyn FnMut(&Var<'_>)) -> Option<()> {
    let [kind, width, code, name @ ..] = words else {
        return None;
    };
    let width: u32 = std::str::from_utf8(width).ok()?.parse().ok()?;
    let signal = number_of(code)?;
    if matches!(*kind, b"real" | b"realtime" | b"string" | b"event") || width == 0 {
        return Some(());
    }
    let name = name.join(&b' ');
    let name = String::from_utf8_lossy(&name);
    let (name, range) = split_range(&name, width);
    if width <= MAX_WORD as u32 {
        see(&Var {
            scope,
            name,
            range,
            width,
            signals: &[signal],
        });
    }
    Some(())
}

/// Characters of identifiers are printable, and no spaces.
const BASE: u8 = b'~' - b' ' + 1;

/// An identifier as a number: its characters are digits.
#[inline]
fn number_of(code: &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for byte in code {
        let digit = byte.checked_sub(b' ').filter(|digit| *digit < BASE)?;
        number = number.checked_mul(BASE.into())?.checked_add(digit.into())?;
    }
    (!code.is_empty()).then_some(number)
}

/// The parts of watched signals, by the number of their identifier.
#[derive(Debug)]
struct Parts {
    /// Sorted by identifier.
    parts: Vec<(u64, usize, Part)>,
    /// The first part of small identifiers, from 1 on; 0 for none.
    table: Vec<u32>,
}

impl Parts {
    fn new(watch: &Watch) -> Parts {
        let watched = watch.watched.iter().enumerate();
        let parts = watched.flat_map(|(at, watched)| {
            let parts = watched.parts.iter();
            parts.map(move |part| (part.signal, at, *part))
        });
        let mut parts: Vec<(u64, usize, Part)> = parts.collect();
        parts.sort_by_key(|part| part.0);
        let highest = parts.last().map_or(0, |part| part.0);
        let mut table = vec![0; (highest.min(TABLE) + 1) as usize];
        for (at, (signal, ..)) in parts.iter().enumerate().rev() {
            if let Some(entry) = usize::try_from(*signal)
                .ok()
                .and_then(|at| table.get_mut(at))
            {
                *entry = at as u32 + 1;
            }
        }
        Parts { parts, table }
    }

    #[inline]
    fn of(&self, signal: u64) -> &[(u64, usize, Part)] {
        let first = match usize::try_from(signal)
            .ok()
            .and_then(|at| self.table.get(at))
        {
            Some(0) => return &[],
            Some(number) => *number as usize - 1,
            None => self.parts.partition_point(|part| part.0 < signal),
        };
        let rest = self.parts.get(first..).unwrap_or_default();
        let count = rest.iter().take_while(|part| part.0 == signal).count();
        rest.get(..count).unwrap_or_default()
    }
}

/// Reads the changes.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Bytes of the header that have not passed.
    skip: u64,
    /// The start of the rest, for errors.
    offset: u64,
    /// What has come of words without an end.
    rest: Vec<u8>,
    parts: Parts,
    board: Board,
    time: u64,
    /// In a command whose words do not count.
    comment: bool,
}

/// Why a text is not read any further.
enum Halt {
    /// The rest of a word has not come.
    More,
    Error(WaveError),
}

impl Reader {
    pub(crate) fn new(start: u64, watch: Watch) -> Reader {
        Reader {
            skip: start,
            offset: 0,
            rest: Vec::new(),
            parts: Parts::new(&watch),
            board: Board::new(&watch),
            time: 0,
            comment: false,
        }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8], take: &mut Take<'_>) -> Result<(), WaveError> {
        let skipped = self.skip.min(chunk.len() as u64);
        self.skip -= skipped;
        self.offset += skipped;
        let chunk = chunk.get(skipped as usize..).unwrap_or_default();
        if self.rest.is_empty() {
            return self.text(chunk, take);
        }
        let mut text = std::mem::take(&mut self.rest);
        text.extend_from_slice(chunk);
        self.text(&text, take)
    }

    pub(crate) fn finish(&mut self, take: &mut Take<'_>) -> Result<(), WaveError> {
        if self.skip > 0 {
            return Err(WaveError::Truncated);
        }
        let mut text = std::mem::take(&mut self.rest);
        text.push(b'\n');
        self.text(&text, take)?;
        if !self.rest.trim_ascii().is_empty() {
            return Err(WaveError::Truncated);
        }
        self.board.step(self.time, take)
    }

    /// Reads the words of a text; the last ones may wait for more.
    fn text(&mut self, text: &[u8], take: &mut Take<'_>) -> Result<(), WaveError> {
        let mut words = Words { text, at: 0 };
        let mut done = 0;
        loop {
            match self.change(&mut words, take) {
                Ok(()) => done = words.at,
                Err(Halt::More) => break,
                Err(Halt::Error(error)) => {
                    return Err(match error {
                        WaveError::Damaged { what, .. } => WaveError::Damaged {
                            what,
                            offset: self.offset + done as u64,
                        },
                        error => error,
                    });
                }
            }
        }
        self.offset += done as u64;
        let rest = text.get(done..).unwrap_or_default();
        if rest.len() > MAX_WORD && rest.trim_ascii().len() > MAX_WORD {
            let (what, offset) = ("a word without an end", self.offset);
            return Err(WaveError::TooLarge { what, offset });
        }
        self.rest.extend_from_slice(rest);
        Ok(())
    }

    /// Reads one change, time or command.
    #[inline]
    fn change(&mut self, words: &mut Words<'_>, take: &mut Take<'_>) -> Result<(), Halt> {
        let word = words.next().ok_or(Halt::More)?;
        let (first, rest) = word.split_first().ok_or(Halt::More)?;
        if self.comment {
            self.comment = word != b"$end";
            return Ok(());
        }
        match first {
            b'b' | b'B' => {
                let code = words.next().ok_or(Halt::More)?;
                let signal = number_of(code).ok_or(damaged("an identifier"))?;
                for (_, watched, part) in self.parts.of(signal) {
                    self.board.change(*watched, |value| {
                        value.set_characters(part.lsb, part.width, rest);
                    });
                }
            }
            b'#' => self.at(rest, take)?,
            b'r' | b'R' | b's' | b'S' => {
                words.next().ok_or(Halt::More)?;
            }
            b'$' => self.command(word),
            level => {
                let signal = number_of(rest).ok_or(damaged("expected a change of a signal"))?;
                for (_, watched, part) in self.parts.of(signal) {
                    self.board
                        .change(*watched, |value| match (part.width, bit_of(*level)) {
                            (1, (bit, unknown)) => value.set(part.lsb, 1, bit, unknown),
                            _ => {
                                let level = std::slice::from_ref(level);
                                value.set_characters(part.lsb, part.width, level);
                            }
                        });
                }
            }
        }
        Ok(())
    }

    fn at(&mut self, digits: &[u8], take: &mut Take<'_>) -> Result<(), Halt> {
        let digit = |time: u64, byte: &u8| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            time.checked_mul(10)?.checked_add(u64::from(digit))
        };
        let time = digits.iter().try_fold(0, digit);
        let time = time.filter(|_| !digits.is_empty());
        let time = time.ok_or(damaged("expected a time"))?;
        if time < self.time {
            return Err(damaged("a time before the last one"));
        }
        if time > self.time {
            self.board.step(self.time, take).map_err(Halt::Error)?;
            self.time = time;
        }
        Ok(())
    }

    fn command(&mut self, word: &[u8]) {
        match word {
            b"$comment" => self.comment = true,
            b"$dumpoff" => self.board.switch(true),
            b"$dumpon" | b"$dumpall" => self.board.switch(false),
            // The values of others are changes like any; words that are not known have none.
            _ => {}
        }
    }
}

/// The place is known to the caller.
const fn damaged(what: &'static str) -> Halt {
    Halt::Error(WaveError::Damaged { what, offset: 0 })
}
