//! A place in a line of text that consists of words.

use crate::LineErrorKind as Kind;
use crate::text::{decimal, hex, prefixed_hex};
use hartrace_flow::{Cause, Mode, RegId};
use hartrace_isa::{Reg, csr};

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
        self.number(prefixed_hex, what)
    }

    /// A decimal word.
    #[inline]
    pub(crate) fn decimal(&mut self, what: &'static str) -> Result<u64, Fault> {
        self.number(decimal, what)
    }

    #[inline]
    fn number(
        &mut self,
        read: impl Fn(&[u8]) -> Option<u64>,
        what: &'static str,
    ) -> Result<u64, Fault> {
        self.spaces();
        let start = *self;
        match read(self.word()) {
            Some(value) => Ok(value),
            None => start.expected(what),
        }
    }

    /// Hexadecimal digits that are next, of which the last sixteen count.
    pub(crate) fn digits(&mut self, what: &'static str) -> Result<u64, Fault> {
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
