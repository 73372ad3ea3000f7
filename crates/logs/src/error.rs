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
    /// The line from the fault on, cut short.
    pub excerpt: Excerpt,
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
            K::Itype(pc) => {
                return write!(f, "itype contradicts the program's instruction at {pc:#x}");
            }
        };
        f.write_str(text)
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        }
    }
}

/// The first bytes of something, shown with everything unprintable escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excerpt {
    bytes: Few<u8, 48>,
    cut: bool,
}

impl Excerpt {
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
