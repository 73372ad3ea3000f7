//! Lists of patches: text with a change of the code in each line.
//!
//! `docs/code-history.md` describes the lines.

use super::make::{Bytes, CodeWrite, Was, Written};
use crate::program::{beside, parse_address};
use hartrace_flow::{Context, HartId, Since};
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: BadPatch,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPatch {
    /// It is not text.
    NotText,
    /// What should be an address is none.
    Address(String),
    /// The code is missing after the address.
    NoCode,
    /// What should be bytes is none.
    Bytes(String),
    /// A keyword has no value.
    NoValue(&'static str),
    /// The value of a keyword is no number, or too large.
    Number(&'static str, String),
    /// This is no keyword.
    Keyword(String),
    /// A keyword is given twice, or one that excludes it.
    Twice(&'static str),
    /// A file cannot be read, and why.
    File(PathBuf, String),
    /// The code passes the end of the address space.
    TooHigh,
}

impl fmt::Display for BadPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPatch::NotText => f.write_str("it is not text"),
            BadPatch::Address(text) => {
                write!(f, "`{text}` is no address: write one such as 0x80000000")
            }
            BadPatch::NoCode => f.write_str(
                "the code is missing: write its bytes after the address, `file NAME`, `gone \
                 LENGTH` or `unsure LENGTH`",
            ),
            BadPatch::Bytes(text) => write!(
                f,
                "`{text}` are no bytes: write two hexadecimal digits for each, in the order of \
                 memory, such as 13000000 for a nop"
            ),
            BadPatch::NoValue(keyword) => write!(f, "there is nothing after `{keyword}`"),
            BadPatch::Number("message", text) => write!(
                f,
                "`{text}` is no place in a trace: write an offset, or an offset and halfwords \
                 such as 0x1a4+12"
            ),
            BadPatch::Number(keyword, text) => {
                write!(f, "`{text}` after `{keyword}` is no number in its range")
            }
            BadPatch::Keyword(text) => write!(
                f,
                "`{text}` is unknown: write `was`, `time`, `message`, `hart` or `context`"
            ),
            BadPatch::Twice(keyword) => {
                write!(f, "`{keyword}` contradicts what stands before it")
            }
            BadPatch::File(path, why) => write!(f, "cannot read `{}`: {why}", path.display()),
            BadPatch::TooHigh => f.write_str("the code passes the end of the address space"),
        }
    }
}

/// Reads a list. `read` reads a file that it names, relative to the list.
///
/// # Errors
///
/// The first line that cannot be read.
pub fn read_patches(
    text: &[u8],
    list: &Path,
    read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
) -> Result<Vec<(usize, CodeWrite)>, PatchError> {
    let mut writes = Vec::new();
    for (line, bytes) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let error = |what| PatchError { line, what };
        let text = std::str::from_utf8(bytes).map_err(|_| error(BadPatch::NotText))?;
        let text = text.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace();
        if let Some(address) = words.next() {
            let write = patch(address, &mut words, list, read).map_err(error)?;
            writes.push((line, write));
        }
    }
    Ok(writes)
}

type Words<'a> = std::str::SplitWhitespace<'a>;

fn patch(
    address: &str,
    words: &mut Words<'_>,
    list: &Path,
    read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
) -> Result<CodeWrite, BadPatch> {
    let address = parse_address(address).ok_or_else(|| BadPatch::Address(address.to_owned()))?;
    let what = match words.next().ok_or(BadPatch::NoCode)? {
        "file" => {
            let path = beside(list, Path::new(value("file", words)?));
            let bytes = read(&path).map_err(|why| BadPatch::File(path, why))?;
            Written::Bytes(bytes.into())
        }
        "gone" => Written::Gone(number("gone", words)?),
        "unsure" => Written::Unsure(number("unsure", words)?),
        text => Written::Bytes(bytes(text)?),
    };
    let mut write = CodeWrite {
        what,
        ..CodeWrite::constant(address, Vec::new().into())
    };
    if address.checked_add(write.len()).is_none() {
        return Err(BadPatch::TooHigh);
    }
    while let Some(keyword) = words.next() {
        match keyword {
            "was" if write.was.is_none() => {
                let bytes = bytes(value("was", words)?)?;
                let certain = true;
                write.was = Some(Was { bytes, certain });
            }
            "time" if write.since == Since::Start => {
                write.since = Since::Time(number("time", words)?);
            }
            "message" if write.since == Since::Start => {
                write.since = message(value("message", words)?)?;
            }
            "hart" if write.hart.is_none() => {
                let number = number("hart", words)?;
                let bad = |_| BadPatch::Number("hart", number.to_string());
                write.hart = Some(HartId(u32::try_from(number).map_err(bad)?));
            }
            "context" if write.context.is_none() => {
                write.context = Some(Context(number("context", words)?));
            }
            "was" => return Err(BadPatch::Twice("was")),
            "time" => return Err(BadPatch::Twice("time")),
            "message" => return Err(BadPatch::Twice("message")),
            "hart" => return Err(BadPatch::Twice("hart")),
            "context" => return Err(BadPatch::Twice("context")),
            other => return Err(BadPatch::Keyword(other.to_owned())),
        }
    }
    Ok(write)
}

fn value<'a>(keyword: &'static str, words: &mut Words<'a>) -> Result<&'a str, BadPatch> {
    words.next().ok_or(BadPatch::NoValue(keyword))
}

fn number(keyword: &'static str, words: &mut Words<'_>) -> Result<u64, BadPatch> {
    let text = value(keyword, words)?;
    parse_address(text).ok_or_else(|| BadPatch::Number(keyword, text.to_owned()))
}

/// `OFFSET` or `OFFSET+HALFWORDS`.
fn message(text: &str) -> Result<Since, BadPatch> {
    let (offset, halfwords) = text.split_once('+').unwrap_or((text, "0"));
    match (parse_address(offset), parse_address(halfwords)) {
        (Some(offset), Some(halfwords)) => Ok(Since::Sync { offset, halfwords }),
        _ => Err(BadPatch::Number("message", text.to_owned())),
    }
}

fn bytes(text: &str) -> Result<Bytes, BadPatch> {
    let pair = |pair: &[u8]| {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        u8::try_from(digit(0)? << 4 | digit(1)?).ok()
    };
    let digits = text.as_bytes().chunks(2).map(pair);
    let bytes: Option<Vec<u8>> = digits.collect();
    let bytes = bytes.filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| BadPatch::Bytes(text.to_owned()))?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<(usize, CodeWrite)>, PatchError> {
        read_patches(
            text.as_bytes(),
            Path::new("lists/a.txt"),
            &mut |path| match path == Path::new("lists/code.bin") {
                true => Ok(vec![1, 0]),
                false => Err("no such file".to_owned()),
            },
        )
    }

    #[test]
    fn lines_are_patches() {
        let list = "# a list\n\n0x1000 13000000 was 01000100 time 0x20 # why not\n\
            4096 file code.bin message 0x10+3 hart 1 context 5\n0x1000 unsure 8\n";
        let writes = parse(list).unwrap();
        let lines: Vec<usize> = writes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 4, 5]);
        let first = &writes[0].1;
        assert_eq!((first.address, first.since), (0x1000, Since::Time(0x20)));
        assert!(matches!(&first.what, Written::Bytes(bytes) if bytes.get() == [0x13, 0, 0, 0]));
        assert_eq!(first.was.as_ref().unwrap().bytes.get(), [1, 0, 1, 0]);
        let second = &writes[1].1;
        let since = Since::Sync {
            offset: 16,
            halfwords: 3,
        };
        assert_eq!((second.address, second.since), (0x1000, since));
        let view = (second.hart, second.context);
        assert_eq!(view, (Some(HartId(1)), Some(Context(5))));
        assert!(matches!(writes[2].1.what, Written::Unsure(8)));
    }

    #[test]
    fn lines_that_are_none_are_named() {
        for (list, line, words) in [
            ("\n0x10g0 13", 2, "`0x10g0` is no address"),
            ("4096", 1, "the code is missing"),
            ("4096 1", 1, "`1` are no bytes"),
            ("4096 13 was", 1, "nothing after `was`"),
            ("4096 13 time soon", 1, "`soon` after `time`"),
            ("4096 13 hart 0x100000000", 1, "`4294967296` after `hart`"),
            ("4096 13 message 1+x", 1, "`1+x` is no place"),
            ("4096 13 when 7", 1, "`when` is unknown"),
            ("4096 13 time 7 message 9", 1, "`message` contradicts"),
            ("4096 file other.bin", 1, "cannot read `lists/other.bin`"),
            ("0xffffffffffffffff 1300", 1, "end of the address space"),
        ] {
            let error = parse(list).unwrap_err();
            assert_eq!(error.line, line, "{list}");
            let found = error.what.to_string();
            assert!(found.contains(words), "{list}: {found}");
        }
        let bad = read_patches(b"4096 13\n\xff", Path::new("a"), &mut |_| Ok(Vec::new()));
        assert_eq!(bad.unwrap_err().line, 2);
    }
}
