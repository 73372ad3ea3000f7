//! The variables of a waveform.

use std::sync::Arc;

/// A variable of bits. Those of text or real numbers are not shown.
#[derive(Clone, Copy, Debug)]
pub struct Var<'a> {
    /// The scopes it is in, from the outside, with dots between them.
    pub scope: &'a str,
    /// Its name without its range.
    pub name: &'a str,
    /// The numbers of its first and last bit, where the file has them. A vector may be
    /// there as single bits of the same name.
    pub range: Option<(i64, i64)>,
    /// Its bits.
    pub width: u32,
    /// The signals that it consists of, the highest bits first. Variables with the same
    /// signals are the same net.
    pub signals: &'a [u64],
}

/// What a [`Reader`](crate::Reader) has to know of a file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The unit of time, as a power of ten of a second.
    pub exponent: i8,
    pub(crate) body: Arc<Body>,
}

/// The part that depends on the format.
#[derive(Debug)]
pub(crate) enum Body {
    Vcd {
        /// Bytes of the header.
        start: u64,
    },
    Fst {
        /// The length of each signal in bits; 0 for texts, and [`fst::REAL`](crate::fst).
        lengths: Vec<u32>,
    },
    Ghw {
        /// Bytes of the header.
        start: u64,
        /// What each signal is, from number 1 on.
        kinds: Vec<Leaf>,
        big_endian: bool,
    },
}

/// What a scalar of a GHW file is, and so how its value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// No variable has it.
    #[default]
    None,
    /// `std_ulogic`: a byte for each of nine levels.
    Logic,
    /// An enumeration: a byte for so many bits.
    Enum(u8),
    /// An integer or a physical value of so many bits: a signed number.
    Integer(u8),
    /// A real number: eight bytes.
    Real,
}

impl Leaf {
    /// Its bits; 0 if it is not made of bits.
    pub(crate) const fn width(self) -> u32 {
        match self {
            Leaf::None | Leaf::Real => 0,
            Leaf::Logic => 1,
            Leaf::Enum(bits) | Leaf::Integer(bits) => bits as u32,
        }
    }
}

impl Header {
    pub(crate) fn new(exponent: i8, body: Body) -> Header {
        Header {
            exponent,
            body: Arc::new(body),
        }
    }
}

/// The scopes that a variable is in.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    path: String,
    lengths: Vec<usize>,
}

/// Scopes in each other, and their names, are limited: a file of scopes without an end must
/// not make names that grow with its square.
const MAX_PATH: usize = 1 << 16;

impl Scopes {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether there was room for it.
    pub(crate) fn enter(&mut self, name: &str) -> bool {
        self.lengths.push(self.path.len());
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.path.len() <= MAX_PATH
    }

    pub(crate) fn leave(&mut self) {
        if let Some(length) = self.lengths.pop() {
            self.path.truncate(length);
        }
    }
}

/// A name as files have it, and its range: `data[7:0]`, `data [7:0]`, `bit[3]` where there
/// is one bit. A number that is no range of so many bits belongs to the name, as that of an
/// element of an array.
pub(crate) fn split_range(name: &str, width: u32) -> (&str, Option<(i64, i64)>) {
    let name = name.trim();
    let name = name.strip_prefix('\\').unwrap_or(name);
    let found = || {
        let (base, range) = name.strip_suffix(']')?.rsplit_once('[')?;
        let (first, last) = range.split_once(':').unwrap_or((range, range));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let bits = i64::abs_diff(first, last).checked_add(1)?;
        (bits == u64::from(width) && !base.is_empty()).then_some((base.trim_end(), (first, last)))
    };
    match found() {
        Some((base, range)) => (base, Some(range)),
        None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_no_part_of_names() {
        for (name, width, base, range) in [
            ("clk", 1, "clk", None),
            ("data[7:0]", 8, "data", Some((7, 0))),
            ("data [7:0]", 8, "data", Some((7, 0))),
            ("up [0:7]", 8, "up", Some((0, 7))),
            ("bit[3]", 1, "bit", Some((3, 3))),
            ("lane[1] [31:0]", 32, "lane[1]", Some((31, 0))),
            ("lane[1]", 32, "lane[1]", None),
            ("\\odd.name ", 1, "odd.name", None),
            ("[3]", 1, "[3]", None),
        ] {
            assert_eq!(split_range(name, width), (base, range), "{name}");
        }
    }
}
