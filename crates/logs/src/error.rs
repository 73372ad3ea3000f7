//! Errors in single lines.

use core::fmt;

use hartrace_flow::Few;

/// A line that could not be read, or not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Its number, from 1.
    pub line: u64,
    /// The first byte at fault, from 1; 0 where the whole line is.
    pub column: u32,
    /// What was expected there.
    pub kind: LineErrorKind,
    /// The line from the fault on, cut short; of a waveform, the end of the signal's name.
    pub excerpt: Excerpt,
    /// When it was, in a waveform, which has no lines.
    pub time: Option<Moment>,
}

/// A time of a log or a waveform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// In the unit of the source.
    pub ticks: u64,
    /// The unit as a power of ten of a second, if it is known.
    pub exponent: Option<i8>,
}

/// `1,250 ns`: in the unit of the source, or one up to nanoseconds in which it is whole.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(exponent) = self.exponent else {
            return grouped(self.ticks.into(), f);
        };
        // No format has others.
        let mut exponent = exponent.clamp(-15, 2);
        let mut ticks = u128::from(self.ticks);
        while exponent.rem_euclid(3) != 0 || exponent > 0 {
            ticks = ticks.saturating_mul(10);
            exponent -= 1;
        }
        while exponent < -9 && ticks % 1000 == 0 {
            ticks /= 1000;
            exponent += 3;
        }
        grouped(ticks, f)?;
        f.write_str(match exponent {
            0 => " s",
            -3 => " ms",
            -6 => " us",
            -9 => " ns",
            -12 => " ps",
            _ => " fs",
        })
    }
}

/// A number with commas between groups of three digits.
fn grouped(number: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match number {
        0..1000 => write!(f, "{number}"),
        _ => {
            grouped(number / 1000, f)?;
            write!(f, ",{:03}", number % 1000)
        }
    }
}

/// Why a line was refused. Each kind names what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LineErrorKind {
    /// A hexadecimal number of 1 to 16 digits.
    Hex,
    /// A decimal number that fits its signal.
    Decimal,
    /// Nothing but the number.
    TrailingText,
    /// A line of at most [`MAX_LINE`](super::MAX_LINE) bytes.
    TooLong,
    /// Code at this address in the image.
    MissingCode(u64),
    /// The instruction the image has at this address.
    CodeDiffers(u64),
    /// A line that starts with `core` and a hart number.
    Core,
    /// No more harts than the reader allows.
    TooManyHarts,
    /// One of the line forms of Spike.
    SpikeForm,
    /// A privilege digit: 0, 1 or 3.
    Privilege,
    /// An instruction in parentheses.
    Instruction,
    /// A register, CSR or `mem` with its value.
    Effect,
    /// The name of a trap.
    TrapName,
    /// A trap that this trap value belongs to.
    StrayTval,
    /// A repeat count that can be placed, and is not above the limit.
    Repeat,
    /// A header with this column.
    MissingColumn(&'static str),
    /// A header that names each column once.
    Header,
    /// As many fields as the header has columns.
    Fields,
    /// A value that this column can have.
    Value(&'static str),
    /// Instructions in the image that fill this block exactly.
    BlockBounds(u64),
    /// A block to which the one before can lead.
    Discontinuity(u64),
    /// The `itype` that the instruction at this address has.
    Itype(u64),
    /// A trap whose `epc` follows from the block or the one before.
    Epc,
    /// This.
    Expected(&'static str),
    /// Something that the format does not record.
    Limit(&'static str),
    /// 0 or 1 in every bit of a signal.
    UnknownBits,
    /// The number of the retirement that follows the last one.
    Order {
        /// The number that was expected.
        expected: u64,
        /// The number that the port shows.
        found: u64,
    },
    /// A signal with a value that it can have.
    SignalValue(u64),
    /// A waveform that can be read; this is what is wrong with it.
    Wave(&'static str),
}

impl fmt::Display for LineErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LineErrorKind as K;
        let text = match *self {
            K::Hex => "expected a hexadecimal number of 1 to 16 digits",
            K::Decimal => "expected a decimal number that fits its signal",
            K::TrailingText => "expected the end of the line",
            K::TooLong => "expected a line of at most 64 KiB (is this a text file?)",
            K::MissingCode(pc) => {
                return write!(
                    f,
                    "no code at {pc:#x} in the program (is an ELF file missing?)"
                );
            }
            K::CodeDiffers(pc) => {
                return write!(
                    f,
                    "the program has other code at {pc:#x} (is it the right ELF file?)"
                );
            }
            K::Core => "expected `core` and a hart number",
            K::TooManyHarts => "more harts than the reader allows",
            K::SpikeForm => "expected a commit, an instruction or an exception",
            K::Privilege => "expected the privilege digit 0, 1 or 3",
            K::Instruction => "expected an instruction as `(0x...)`",
            K::Effect => "expected a register, a CSR or `mem` with its value",
            K::TrapName => "expected the name of a trap",
            K::StrayTval => "a trap value without a trap before it",
            K::Repeat => "a repeat count that does not belong here or is above the limit",
            K::MissingColumn(name) => return write!(f, "the header lacks the column `{name}`"),
            K::Header => "expected a header that names each column once",
            K::Fields => "expected one field for each column of the header",
            K::Value(name) => return write!(f, "not a value of the column `{name}`"),
            K::BlockBounds(pc) => {
                return write!(
                    f,
                    "the program's instructions do not fill the block at {pc:#x}"
                );
            }
            K::Discontinuity(pc) => {
                return write!(f, "the previous block cannot lead to {pc:#x}");
            }
            K::Epc => "a trap whose instruction address is unknown",
            K::Expected(what) => return write!(f, "expected {what}"),
            K::Limit(what) => return write!(f, "the format does not record {what}"),
            K::UnknownBits => "bits that are neither 0 nor 1 (x or z)",
            K::Order { expected, found } => {
                return match found > expected {
                    true => write!(
                        f,
                        "retirements are missing: order is {found}, not {expected}"
                    ),
                    false => write!(f, "retirements repeat: order is {found}, not {expected}"),
                };
            }
            K::SignalValue(value) => return write!(f, "not a value of this signal: {value:#x}"),
            K::Wave(what) => return write!(f, "the waveform cannot be read any further: {what}"),
            K::Itype(pc) => {
                return write!(f, "itype contradicts the program's instruction at {pc:#x}");
            }
        };
        f.write_str(text)
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(time) = self.time {
            write!(f, "at {time}: {}", self.kind)?;
            return match self.excerpt.is_empty() {
                true => Ok(()),
                false => write!(f, " in `{}`", self.excerpt),
            };
        }
        write!(f, "line {}", self.line)?;
        if self.column > 0 {
            write!(f, ", column {}", self.column)?;
        }
        write!(f, ": {}", self.kind)?;
        if !self.excerpt.is_empty() {
            write!(f, ", found `{}`", self.excerpt)?;
        }
        Ok(())
    }
}

impl core::error::Error for LineError {}

impl LineError {
    /// The error `kind` at byte `at` of `line`.
    #[cold]
    pub(super) fn new(number: u64, line: &[u8], at: usize, kind: LineErrorKind) -> LineError {
        LineError {
            line: number,
            column: u32::try_from(at.saturating_add(1)).unwrap_or(u32::MAX),
            kind,
            excerpt: Excerpt::of(line.get(at..).unwrap_or_default()),
            time: None,
        }
    }

    /// The error `kind` of a line as a whole.
    #[cold]
    pub(super) fn whole(number: u64, line: &[u8], kind: LineErrorKind) -> LineError {
        LineError {
            line: number,
            column: 0,
            kind,
            excerpt: Excerpt::of(line),
            time: None,
        }
    }

    /// The error `kind` of a signal at a time of a waveform; of a long name the end is kept.
    #[cold]
    #[must_use]
    pub fn at(time: Moment, signal: &str, kind: LineErrorKind) -> LineError {
        let from = signal.len().saturating_sub(Excerpt::ROOM);
        LineError {
            line: 0,
            column: 0,
            kind,
            excerpt: Excerpt::of(signal.as_bytes().get(from..).unwrap_or_default()),
            time: Some(time),
        }
    }
}

/// The first bytes of something, shown with everything unprintable escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excerpt {
    bytes: Few<u8, { Excerpt::ROOM }>,
    cut: bool,
}

impl Excerpt {
    const ROOM: usize = 48;

    fn of(text: &[u8]) -> Excerpt {
        let mut excerpt = Excerpt {
            bytes: Few::new(),
            cut: false,
        };
        for &byte in text {
            if excerpt.bytes.push(byte).is_err() {
                excerpt.cut = true;
                break;
            }
        }
        excerpt
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes.escape_ascii())?;
        f.write_str(if self.cut { "..." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn times_have_the_unit_of_their_source() {
        let shown = |ticks, exponent| Moment { ticks, exponent }.to_string();
        assert_eq!(shown(1250, Some(-9)), "1,250 ns");
        assert_eq!(shown(1_250_000, Some(-12)), "1,250 ns");
        assert_eq!(shown(1_250_500, Some(-12)), "1,250,500 ps");
        assert_eq!(shown(7, Some(-8)), "70 ns");
        assert_eq!(shown(7, Some(-10)), "700 ps");
        assert_eq!(shown(3_000_000, Some(-15)), "3 ns");
        assert_eq!(shown(0, Some(-15)), "0 ns");
        assert_eq!(shown(2, Some(2)), "200 s");
        assert_eq!(shown(12_345, None), "12,345");
        for exponent in [i8::MIN, i8::MAX] {
            assert!(!shown(u64::MAX, Some(exponent)).is_empty());
        }
    }
}
