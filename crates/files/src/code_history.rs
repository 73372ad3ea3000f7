//! Code histories as files.
//!
//! The format is described in `docs/code-history.md`. A file begins with [`MAGIC`] and the
//! number of the version; the rest is one gzip member, which has a checksum of its own.
//! In it, everything is a number of seven bits in each byte, the lowest first, or bytes
//! after their number.

mod make;
mod patches;
mod perf;
mod processes;
mod sources;

pub use make::{Bytes, CodeWrite, MakeError, Was, Written, make};
pub use patches::{BadPatch, PatchError, read_patches};
pub use perf::{KERNEL_PID, Mapping, PerfData, PerfError, PerfEvent, PerfRecord, TimeConversion};
pub use processes::{ContextOf, Missing, MissingCode, PerfMisfit, PerfOptions};
pub use sources::{CodeSourceError, CodeSources, Place};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hartrace_flow::{
    CodeHistory, CodePiece, Context, HartId, NamedSync, Packer, Since, Unpacker, VaryingCode,
    Version,
};
use hartrace_isa::Isa;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The first bytes of a file.
pub const MAGIC: &[u8; 8] = b"\x89HTCODE\n";

/// The version that is written, and the only one that is read.
const VERSION: u8 = 1;

/// Bytes that a file has at most when it is unpacked: more code than a decoder could hold.
const MOST: u64 = 1 << 30;

/// Added to the kind of a moment: the version is in doubt.
const DOUBTFUL: u64 = 4;

/// A code history with the instruction set of its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFile {
    /// The instruction set.
    pub isa: Isa,
    /// The code.
    pub history: CodeHistory,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeFileError {
    /// It is something else.
    NotCode,
    /// It is of another version.
    Version(u8),
    /// It is damaged or cut off.
    Damaged,
    /// It is larger than any code.
    TooLarge,
    /// It names an instruction set that is not known.
    Isa(String),
}

impl fmt::Display for CodeFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeFileError::NotCode => f.write_str("it is not a code history"),
            CodeFileError::Version(version) => write!(
                f,
                "it is a code history of version {version}; this program reads version {VERSION}"
            ),
            CodeFileError::Damaged => f.write_str("the code history is damaged or cut off"),
            CodeFileError::TooLarge => {
                write!(f, "the code history holds more than {} MiB", MOST >> 20)
            }
            CodeFileError::Isa(isa) => {
                write!(
                    f,
                    "the code history is of an unknown instruction set: `{isa}`"
                )
            }
        }
    }
}

impl std::error::Error for CodeFileError {}

/// The name of the code history of a trace: `run.ntrace` has `run.ntrace.code`.
#[must_use]
pub fn path_for(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".code");
    PathBuf::from(name)
}

impl CodeFile {
    /// As the bytes of a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Packer::new();
        out.bytes(self.isa.to_string().as_bytes());
        out.number(self.history.pieces.len() as u64);
        let mut end = 0u64;
        for piece in &self.history.pieces {
            out.number(piece.address.wrapping_sub(end));
            out.bytes(&piece.bytes);
            end = piece.address.wrapping_add(piece.bytes.len() as u64);
        }
        out.number(self.history.varying.len() as u64);
        let mut last = 0u64;
        for code in &self.history.varying {
            out.number(code.address.wrapping_sub(last));
            last = code.address;
            write_varying(&mut out, code);
        }
        out.number(self.history.syncs.len() as u64);
        let mut last = 0u64;
        for sync in &self.history.syncs {
            out.number(sync.offset.wrapping_sub(last));
            last = sync.offset;
            out.number(sync.hart.0.into());
            out.number(sync.address);
        }
        let mut file = MAGIC.to_vec();
        file.push(VERSION);
        let mut packed = GzEncoder::new(file, Compression::default());
        // Memory takes all bytes.
        let _ = packed.write_all(&out.finish());
        packed.finish().unwrap_or_default()
    }

    /// The body of a file, unpacked.
    ///
    /// # Errors
    ///
    /// Bytes that are not such a file, or are damaged.
    pub fn unpack(bytes: &[u8]) -> Result<Vec<u8>, CodeFileError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(CodeFileError::NotCode)?;
        let packed = match rest.split_first() {
            Some((&VERSION, packed)) => packed,
            Some((&version, _)) => return Err(CodeFileError::Version(version)),
            None => return Err(CodeFileError::Damaged),
        };
        let mut unpacked = Vec::new();
        let mut reader = GzDecoder::new(packed).take(MOST + 1);
        let read = reader.read_to_end(&mut unpacked);
        read.map_err(|_| CodeFileError::Damaged)?;
        match unpacked.len() as u64 > MOST {
            true => Err(CodeFileError::TooLarge),
            false => Ok(unpacked),
        }
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    ///
    /// Bytes that are not such a file, or are damaged.
    pub fn read(bytes: &[u8]) -> Result<CodeFile, CodeFileError> {
        let unpacked = CodeFile::unpack(bytes)?;
        let mut from = Unpacker::new(&unpacked);
        let isa = from.bytes().ok_or(CodeFileError::Damaged)?;
        let isa = String::from_utf8_lossy(isa);
        let isa = Isa::parse_lenient(&isa).map_err(|_| CodeFileError::Isa(isa.to_string()))?;
        let history = read_history(&mut from).filter(|_| from.is_empty());
        let history = history.ok_or(CodeFileError::Damaged)?;
        Ok(CodeFile { isa, history })
    }
}

fn write_varying(out: &mut Packer, code: &VaryingCode) {
    out.number(code.len);
    out.number(code.contents.len() as u64);
    for content in &code.contents {
        out.bytes(content);
    }
    out.number(code.versions.len() as u64);
    for version in &code.versions {
        out.option(version.hart.map(|hart| hart.0.into()));
        out.option(version.context.map(|context| context.0));
        let doubt = u64::from(version.doubtful) * DOUBTFUL;
        match version.since {
            Since::Start => out.number(doubt),
            Since::Sync { offset, halfwords } => {
                out.number(1 + doubt);
                out.number(offset);
                out.number(halfwords);
            }
            Since::Time(time) => {
                out.number(2 + doubt);
                out.number(time);
            }
        }
        out.number(version.content as u64);
    }
}

fn read_history(from: &mut Unpacker<'_>) -> Option<CodeHistory> {
    let mut history = CodeHistory::default();
    let mut end = 0u64;
    for _ in 0..from.count()? {
        let address = end.checked_add(from.number()?)?;
        let bytes = from.bytes()?.to_vec();
        end = address.checked_add(bytes.len() as u64)?;
        history.pieces.push(CodePiece { address, bytes });
    }
    let (mut last, mut end) = (0u64, 0u64);
    for _ in 0..from.count()? {
        last = last.checked_add(from.number()?)?;
        let code = read_varying(from, last)?;
        // None overlaps another.
        if last < end {
            return None;
        }
        end = last.checked_add(code.len)?;
        history.varying.push(code);
    }
    let mut offset = 0u64;
    for _ in 0..from.count()? {
        offset = offset.checked_add(from.number()?)?;
        history.syncs.push(NamedSync {
            offset,
            hart: HartId(u32::try_from(from.number()?).ok()?),
            address: from.number()?,
        });
    }
    Some(history)
}

fn read_varying(from: &mut Unpacker<'_>, address: u64) -> Option<VaryingCode> {
    let len = from.number()?;
    let contents = (0..from.count()?).map(|_| Some(from.bytes()?.to_vec()));
    let contents: Vec<Vec<u8>> = contents.collect::<Option<_>>()?;
    let versions = (0..from.count()?).map(|_| {
        let hart = match from.option()? {
            Some(hart) => Some(HartId(u32::try_from(hart).ok()?)),
            None => None,
        };
        let context = from.option()?.map(Context);
        let kind = from.number()?;
        let since = match kind & !DOUBTFUL {
            0 => Since::Start,
            1 => Since::Sync {
                offset: from.number()?,
                halfwords: from.number()?,
            },
            2 => Since::Time(from.number()?),
            _ => return None,
        };
        let content = usize::try_from(from.number()?).ok()?;
        (content < contents.len()).then_some(Version {
            hart,
            context,
            since,
            content,
            doubtful: kind & DOUBTFUL != 0,
        })
    });
    let versions = versions.collect::<Option<_>>()?;
    Some(VaryingCode {
        address,
        len,
        contents,
        versions,
    })
}
