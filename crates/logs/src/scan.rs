//! A place in a line of text that consists of words.

use crate::LineErrorKind as Kind;
use crate::text::{decimal, hex, hex8, hex16, prefixed_hex};
use hartrace_flow::{Cause, Mode, RegId};
use hartrace_isa::{Reg, csr};
use memchr::memchr;

/// A fault in a line: its kind and the byte.
pub(crate) type Fault = (Kind, usize);

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) rest: &'a [u8],
    len: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Scan<'a> {
        Scan {
            rest: line,
            len: line.len(),
        }
    }

    /// Bytes passed so far.
    pub(crate) fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    /// What is wrong here.
    pub(crate) fn expected<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err((Kind::Expected(what), self.at()))
    }

    /// Skips `text` if it is next.
    #[inline]
    pub(crate) fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.rest.strip_prefix(text);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    /// Skips `text`, which has to be next.
    pub(crate) fn need(&mut self, text: &[u8], what: &'static str) -> Result<(), Fault> {
        match self.eat(text) {
            true => Ok(()),
            false => self.expected(what),
        }
    }

    #[inline]
    pub(crate) fn spaces(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// What is before the first byte of that kind.
    #[inline]
    pub(crate) fn until(&mut self, end: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.rest.iter().position(|&b| end(b));
        let len = len.unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        self.rest = rest;
        word
    }

    /// The next word, empty at the end of the line.
    #[inline]
    pub(crate) fn word(&mut self) -> &'a [u8] {
        self.spaces();
        self.until(|b| b == b' ' || b == b'\t')
    }

    /// A hexadecimal word, with or without `0x`.
    #[inline]
    pub(crate) fn hex(&mut self, what: &'static str) -> Result<u64, Fault> {
        self.spaces();
        let start = *self;
        match self.value() {
            Some(value) => Ok(value),
            None => start.expected(what),
        }
    }

    /// What the word that is next spells in hexadecimal, with or without `0x`; `None` if it is
    /// no such number. It is passed.
    #[inline]
    pub(crate) fn value(&mut self) -> Option<u64> {
        let mut ahead = *self;
        ahead.eat(b"0x");
        if let Some(value) = ahead.all_digits(|next| next == b' ') {
            *self = ahead;
            return Some(value);
        }
        prefixed_hex(self.word())
    }

    /// A decimal word.
    #[inline]
    pub(crate) fn decimal(&mut self, what: &'static str) -> Result<u64, Fault> {
        self.spaces();
        let start = *self;
        match decimal(self.word()) {
            Some(value) => Ok(value),
            None => start.expected(what),
        }
    }

    /// A number of sixteen digits or of eight, as most logs have them, before a byte that
    /// ends it.
    #[inline]
    fn all_digits(&mut self, ends: impl Fn(u8) -> bool) -> Option<u64> {
        let sixteen = || {
            let (digits, rest) = self.rest.split_first_chunk::<16>()?;
            rest.first().filter(|next| ends(**next))?;
            Some((hex16(digits)?, rest))
        };
        let eight = || {
            let (digits, rest) = self.rest.split_first_chunk::<8>()?;
            rest.first().filter(|next| ends(**next))?;
            Some((hex8(*digits)?.into(), rest))
        };
        let (value, rest) = sixteen().or_else(eight)?;
        self.rest = rest;
        Some(value)
    }

    /// What is before a text that is recognised by its byte `at`, which is passed; all the
    /// rest without it.
    #[inline]
    pub(crate) fn before(&mut self, text: &[u8], at: usize) -> Option<&'a [u8]> {
        let mut from = at;
        let mark = *text.get(at)?;
        while let Some(found) = memchr(mark, self.rest.get(from..)?) {
            let start = from + found - at;
            if let Some(after) = self.rest.get(start..)?.strip_prefix(text) {
                let before = self.rest.get(..start)?;
                self.rest = after;
                return Some(before);
            }
            from += found + 1;
        }
        None
    }

    /// Hexadecimal digits that are next, of which the last sixteen count.
    pub(crate) fn digits(&mut self, what: &'static str) -> Result<u64, Fault> {
        if let Some(value) = self.all_digits(|next| !next.is_ascii_hexdigit()) {
            return Ok(value);
        }
        let start = *self;
        let digits = self.until(|b| !b.is_ascii_hexdigit());
        let last = digits.len().saturating_sub(16);
        match digits.get(last..).and_then(hex) {
            Some(value) => Ok(value),
            None => start.expected(what),
        }
    }

    /// Decimal digits that are next, after spaces.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<u64, Fault> {
        self.spaces();
        let start = *self;
        match decimal(self.until(|b| !b.is_ascii_digit())) {
            Some(value) => Ok(value),
            None => start.expected(what),
        }
    }
}

/// Lines without a number and a word hold nothing of a log's.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// What a log may write besides integer and floating-point registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Reg(RegId),
    Csr(u16),
    /// A vector register, or anything without a place among effects.
    Vector,
}

/// A register by its number or by the name of the calling convention: `x5`, `t0`,
/// `f3`, `fa0`, `v1`.
pub(crate) fn register(name: &[u8]) -> Option<Name> {
    let number = |digits: &[u8]| decimal(digits).filter(|&n| n < 32).map(|n| n as u8);
    let by_number = match name {
        [b'x', digits @ ..] => number(digits).map(|n| Name::Reg(RegId::X(n))),
        [b'f', digits @ ..] => number(digits).map(|n| Name::Reg(RegId::F(n))),
        [b'v', digits @ ..] => number(digits).map(|_| Name::Vector),
        _ => None,
    };
    by_number.or_else(|| {
        if name == b"fp" {
            return Some(Name::Reg(RegId::X(8)));
        }
        (0..32u8).find_map(|n| {
            let reg = Reg::new(n.into());
            if reg.abi_name().as_bytes() == name {
                return Some(Name::Reg(RegId::X(n)));
            }
            let float = reg.float_name().as_bytes() == name;
            float.then_some(Name::Reg(RegId::F(n)))
        })
    })
}

/// A register or a CSR: by name, or as Spike (`c768_mstatus`) and Whisper (`c768`) write
/// it.
pub(crate) fn register_or_csr(name: &[u8]) -> Option<Name> {
    register(name).or_else(|| {
        if let [b'c', digits @ ..] = name {
            let digits = digits.split(|&b| b == b'_').next().unwrap_or_default();
            if let Some(number) = decimal(digits).filter(|&n| n < 4096) {
                return Some(Name::Csr(number as u16));
            }
        }
        core::str::from_utf8(name)
            .ok()
            .and_then(csr::number)
            .map(Name::Csr)
    })
}

/// The fields of a line of a CSV, trimmed and without quotes, each with the place where
/// it starts. A comma between quotes is part of its field.
pub(crate) fn csv_fields(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = Some(0);
    core::iter::from_fn(move || {
        let start = next?;
        let mut quoted = false;
        let rest = line.get(start..)?;
        let len = rest.iter().position(|&b| {
            quoted ^= b == b'"';
            b == b',' && !quoted
        });
        next = len.map(|len| start + len + 1);
        let field = rest.get(..len.unwrap_or(rest.len()))?;
        let at = start + field.len() - field.trim_ascii_start().len();
        let field = field.trim_ascii();
        let bare = field
            .strip_prefix(b"\"")
            .and_then(|f| f.strip_suffix(b"\""));
        Some((at, bare.unwrap_or(field)))
    })
}

/// The cause of a trap from the value of `mcause` or `scause`.
pub(crate) const fn cause_of(value: u64, narrow: bool) -> Cause {
    let top = if narrow { 31 } else { 63 };
    let code = value & !(1 << top);
    let code = if code > u32::MAX as u64 {
        None
    } else {
        Some(code as u32)
    };
    match value >> top & 1 {
        0 => Cause::Exception(code),
        _ => Cause::Interrupt(code),
    }
}

/// A mode by the letters of the specification, in either case.
pub(crate) fn mode_named(name: &[u8]) -> Option<Mode> {
    Some(match name {
        b"M" | b"m" => Mode::M,
        b"S" | b"s" | b"HS" | b"hs" => Mode::S,
        b"U" | b"u" => Mode::U,
        b"VS" | b"vs" => Mode::VS,
        b"VU" | b"vu" => Mode::VU,
        b"D" | b"d" => Mode::D,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_and_what_ends_them() {
        for (text, value, rest) in [
            ("0123456789abcdef]", Some(0x0123_4567_89ab_cdef), "]"),
            ("0123456789ABCDEF", Some(0x0123_4567_89ab_cdef), ""),
            // The last sixteen count.
            ("f0123456789abcdef]", Some(0x0123_4567_89ab_cdef), "]"),
            ("89abcdef]", Some(0x89ab_cdef), "]"),
            ("89abcdef", Some(0x89ab_cdef), ""),
            ("189abcdef ", Some(0x1_89ab_cdef), " "),
            ("7]", Some(7), "]"),
            ("]", None, "]"),
        ] {
            let mut scan = Scan::new(text.as_bytes());
            assert_eq!(scan.digits("digits").ok(), value, "{text}");
            assert_eq!(scan.rest, rest.as_bytes(), "{text}");
        }
    }

    #[test]
    fn words_that_are_numbers() {
        for (text, value, rest) in [
            ("0x0123456789abcdef x", Some(0x0123_4567_89ab_cdef), " x"),
            ("0123456789abcdef\tx", Some(0x0123_4567_89ab_cdef), "\tx"),
            ("0x89abcdef", Some(0x89ab_cdef), ""),
            ("89abcdef x", Some(0x89ab_cdef), " x"),
            // A word ends at a space and nowhere else.
            ("89abcdef, x", None, " x"),
            ("0x0123456789abcdef0 x", None, " x"),
            ("0x x", None, " x"),
        ] {
            let mut scan = Scan::new(text.as_bytes());
            assert_eq!(scan.value(), value, "{text}");
            assert_eq!(scan.rest, rest.as_bytes(), "{text}");
            let mut scan = Scan::new(text.as_bytes());
            assert_eq!(scan.hex("a number").ok(), value, "{text}");
        }
    }

    #[test]
    fn texts_are_found_by_one_of_their_bytes() {
        for (line, text, at, before, rest) in [
            ("R[x] iinst=[00", "inst=[", 0, Some("R[x] i"), "00"),
            ("a::b : c : d", " : ", 1, Some("a::b"), "c : d"),
            (": c : d", " : ", 1, Some(": c"), "d"),
            ("a:b", " : ", 1, None, "a:b"),
            ("", " : ", 1, None, ""),
        ] {
            let mut scan = Scan::new(line.as_bytes());
            let found = scan.before(text.as_bytes(), at);
            assert_eq!(found, before.map(str::as_bytes), "{line}");
            assert_eq!(scan.rest, rest.as_bytes(), "{line}");
        }
    }
}
