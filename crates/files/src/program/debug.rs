//! Separate debug files: the names and lines of a program from which they were taken away.
//!
//! Distributions strip programs and put symbols and DWARF into files of their own. A program
//! names its debug file by its build id, or by a file name with a checksum
//! (`.gnu_debuglink`); both are looked for as GDB does.

use super::MAX_PROGRAM;
use crate::input::{Contents, Input};
use flate2::Crc;
use flate2::read::ZlibDecoder;
use hartrace_flow::elf::{Elf, Section, section_by_name};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Where distributions have their debug files, below a folder.
const LAYOUTS: &[&str] = &["", "usr/lib/debug", "lib/debug"];

/// What sections of debugging information may be together, unpacked.
const MAX_UNPACKED: u64 = 4 << 30;

/// A file with the names and lines of a program.
pub struct DebugFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its content; its sections are not compressed.
    pub bytes: Contents,
    /// It has symbols, and the program none.
    pub symbols: bool,
    /// It has DWARF, and the program none.
    pub lines: bool,
}

/// Shows where it is.
impl std::fmt::Debug for DebugFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DebugFile").field(&self.path).finish()
    }
}

/// What a program says about its debug file, and what it has itself.
#[derive(Debug, Default)]
struct Wanted {
    build_id: Option<Vec<u8>>,
    /// The name of a file, and the CRC-32 of its content.
    link: Option<(PathBuf, u32)>,
    has: Parts,
}

/// What a file has of debugging information.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    symbols: bool,
    /// DWARF.
    lines: bool,
    /// DWARF that is compressed.
    packed: bool,
}

impl Parts {
    fn of(elf: &Elf<'_>, sections: &[Section<'_>]) -> Parts {
        let lines = section_by_name(sections, b".debug_info");
        let packed = lines.is_some_and(|(_, section)| section.compressed);
        Parts {
            symbols: !elf.symbols(false).is_empty(),
            lines: lines.is_some() && !packed,
            packed,
        }
    }
}

impl Wanted {
    /// `None` if the program has everything itself.
    fn by(file: &[u8]) -> Option<Wanted> {
        let elf = Elf::parse(file).ok()?;
        let sections = elf.sections().ok()?;
        let has = Parts::of(&elf, &sections);
        if has.symbols && has.lines {
            return None;
        }
        let build_id = elf.build_id().map(<[u8]>::to_vec);
        let link = section_by_name(&sections, b".gnu_debuglink");
        let link = link.and_then(|(_, section)| debug_link(section.data?));
        Some(Wanted {
            build_id,
            link,
            has,
        })
    }

    /// Where its file may be, the best places first, and what it must be then.
    fn places(&self, program: &Path, folders: &[PathBuf]) -> Vec<PathBuf> {
        let mut places = Vec::new();
        let roots: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| LAYOUTS.iter().map(|layout| folder.join(layout)))
            .collect();
        if let Some(name) = self.build_id.as_deref().and_then(build_id_path) {
            places.extend(roots.iter().map(|root| root.join(&name)));
        }
        let own = program.parent().unwrap_or(Path::new(""));
        if let Some((name, _)) = &self.link {
            places.push(own.join(name));
            places.push(own.join(".debug").join(name));
            let full = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
            let inside = full
                .components()
                .filter(|c| matches!(c, Component::Normal(_)));
            let inside: PathBuf = inside.collect();
            places.extend(roots.iter().map(|root| root.join(&inside).join(name)));
            places.extend(roots.iter().map(|root| root.join(name)));
        }
        if let Some(name) = program.file_name() {
            let mut longer = name.to_os_string();
            longer.push(".debug");
            places.extend(folders.iter().flat_map(|f| [f.join(&longer), f.join(name)]));
        }
        places
    }

    /// Whether this is the file.
    fn is(&self, bytes: &[u8]) -> bool {
        let Ok(elf) = Elf::parse(bytes) else {
            return false;
        };
        if let (Some(wanted), Some(found)) = (&self.build_id, elf.build_id()) {
            return wanted == found;
        }
        self.link.as_ref().is_some_and(|(_, crc)| {
            let mut sum = Crc::new();
            sum.update(bytes);
            sum.sum() == *crc
        })
    }
}

/// The debug file of a program, if it lacks something and has one.
#[must_use]
pub(super) fn find(program: &Path, bytes: &[u8], folders: &[PathBuf]) -> Option<DebugFile> {
    let wanted = Wanted::by(bytes)?;
    let itself = program.canonicalize().ok();
    let places = wanted.places(program, folders);
    let files = places.into_iter().filter(|path| path.is_file());
    let mut files = files.filter(|path| path.canonicalize().ok() != itself);
    let found = files.find_map(|path| {
        let bytes = Input::open(&path).ok()?.contents(MAX_PROGRAM).ok()?;
        wanted.is(&bytes).then(|| {
            let bytes = match unpack(&bytes) {
                Some(plain) => Contents::Read(plain),
                None => bytes,
            };
            DebugFile::new(path, bytes, wanted.has)
        })
    });
    found.or_else(|| {
        let plain = wanted.has.packed.then(|| unpack(bytes)).flatten()?;
        let path = program.to_path_buf();
        Some(DebugFile::new(path, Contents::Read(plain), wanted.has))
    })
}

impl DebugFile {
    /// A file for what a program does not have.
    fn new(path: PathBuf, bytes: Contents, own: Parts) -> DebugFile {
        let elf = Elf::parse(&bytes).ok();
        let parts = elf.and_then(|elf| Some(Parts::of(&elf, &elf.sections().ok()?)));
        let parts = parts.unwrap_or_default();
        DebugFile {
            path,
            bytes,
            symbols: parts.symbols && !own.symbols,
            lines: parts.lines && !own.lines,
        }
    }
}

/// `.build-id/ab/cdef.debug`.
fn build_id_path(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let mut name = String::new();
    for byte in rest {
        // Writing to a String does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    Some(PathBuf::from(format!(".build-id/{first:02x}/{name}.debug")))
}

/// A name that ends with a zero, zeros up to a multiple of four, and a checksum. Only a plain
/// name is followed.
fn debug_link(data: &[u8]) -> Option<(PathBuf, u32)> {
    let end = data.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(data.get(..end)?).ok()?;
    let crc = data.get((end + 4) & !3..)?.first_chunk::<4>()?;
    let plain = Path::new(name).file_name() == Some(OsStr::new(name));
    plain.then(|| (PathBuf::from(name), u32::from_le_bytes(*crc)))
}

/// Offsets in the header of a file and of a section, by the width of addresses.
struct Fields {
    table: usize,
    entry: usize,
    count: usize,
    flags: usize,
    offset: usize,
    size: usize,
    header: usize,
    word: usize,
}

const WIDE: Fields = Fields {
    table: 0x28,
    entry: 0x3a,
    count: 0x3c,
    flags: 8,
    offset: 24,
    size: 32,
    header: 24,
    word: 8,
};

const NARROW: Fields = Fields {
    table: 0x20,
    entry: 0x2e,
    count: 0x30,
    flags: 8,
    offset: 16,
    size: 20,
    header: 12,
    word: 4,
};

/// Compressed with zlib.
const ZLIB: u64 = 1;
const COMPRESSED: u64 = 0x800;

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(size)?)?;
    let sum = field
        .iter()
        .rev()
        .fold(0, |sum, &b| sum << 8 | u64::from(b));
    Some(sum)
}

fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) -> Option<()> {
    let field = bytes.get_mut(at..at.checked_add(size)?)?;
    field.copy_from_slice(value.to_le_bytes().get(..size)?);
    Some(())
}

/// The same file without compressed sections: what they hold is put after its end. `None` if
/// nothing is compressed, or cannot be unpacked.
fn unpack(file: &[u8]) -> Option<Vec<u8>> {
    let sections = Elf::parse(file).ok()?.sections().ok()?;
    if !sections.iter().any(|section| section.compressed) {
        return None;
    }
    let fields = match file.get(4)? {
        2 => &WIDE,
        _ => &NARROW,
    };
    let table = usize::try_from(number(file, fields.table, fields.word)?).ok()?;
    let entry = usize::try_from(number(file, fields.entry, 2)?).ok()?;
    let count = usize::try_from(number(file, fields.count, 2)?).ok()?;
    let mut out = file.to_vec();
    let mut left = MAX_UNPACKED;
    for header in (0..count).map_while(|n| table.checked_add(n.checked_mul(entry)?)) {
        let flags = number(file, header + fields.flags, fields.word)?;
        if flags & COMPRESSED == 0 {
            continue;
        }
        let offset = usize::try_from(number(file, header + fields.offset, fields.word)?).ok()?;
        let size = usize::try_from(number(file, header + fields.size, fields.word)?).ok()?;
        let data = file.get(offset..offset.checked_add(size)?)?;
        let whole = number(data, fields.word, fields.word)?;
        left = left.checked_sub(whole)?;
        if number(data, 0, 4)? != ZLIB {
            continue;
        }
        let start = out.len();
        let mut packed = ZlibDecoder::new(data.get(fields.header..)?).take(whole);
        packed.read_to_end(&mut out).ok()?;
        let found = (out.len() - start) as u64;
        put(
            &mut out,
            header + fields.flags,
            fields.word,
            flags & !COMPRESSED,
        )?;
        put(&mut out, header + fields.offset, fields.word, start as u64)?;
        put(&mut out, header + fields.size, fields.word, found)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests;
