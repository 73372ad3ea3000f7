//! Files that hold code, ELF files and raw binaries, written `FILE[@BASE]`, and
//! the [`Program`] they are read into.

mod debug;
mod identity;
mod load;
mod symbols;
mod whereabouts;

pub use debug::DebugFile;
pub use identity::Identity;
pub(crate) use identity::first_difference;
pub use load::{
    Code, CodePart, Elf, Program, ProgramError, Raw, Remark, add_boot_code, check_against,
    check_width, code_parts, read_named,
};

pub(crate) use symbols::symbol_at;
pub use symbols::{find_symbol, similar_symbols};

use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// The largest program that is read, in bytes. The largest known have debug
/// information of a few hundred megabytes.
pub const MAX_PROGRAM: u64 = 1 << 30;

/// An ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfFile {
    /// Where it is; in a configuration, relative to the folder of that file.
    pub file: PathBuf,
    /// Where it is loaded, for position-independent files. Absent: where the
    /// file says.
    pub base: Option<u64>,
    /// What its content must hash to.
    pub identity: Option<Identity>,
}

/// A file that is code and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// Where it is; in a configuration, relative to the folder of that file.
    pub file: PathBuf,
    /// The address of its first byte.
    pub base: u64,
}

/// Why `FILE[@BASE]` was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// No file name.
    NoFile,
    /// What follows `@` is no number.
    BadBase(String),
    /// A raw binary without `@BASE`.
    NoBase,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::NoFile => f.write_str("the file name is missing"),
            SpecError::BadBase(base) if base.is_empty() => {
                f.write_str("there is no base after `@`: write an address such as 0x80000000")
            }
            SpecError::BadBase(base) => write!(
                f,
                "the base `{base}` is not an address: write one such as 0x80000000"
            ),
            SpecError::NoBase => f.write_str("a raw binary needs its address: FILE@BASE"),
        }
    }
}

impl std::error::Error for SpecError {}

impl ElfFile {
    /// Reads `FILE[@BASE]`.
    ///
    /// # Errors
    ///
    /// An empty file name, a base that is not a number.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<ElfFile, SpecError> {
        let (file, base) = split(text.as_ref())?;
        Ok(ElfFile {
            file,
            base,
            identity: None,
        })
    }
}

impl RawFile {
    /// Reads `FILE@BASE`.
    ///
    /// # Errors
    ///
    /// As [`ElfFile::parse`], and a base that is missing.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<RawFile, SpecError> {
        let (file, base) = split(text.as_ref())?;
        let base = base.ok_or(SpecError::NoBase)?;
        Ok(RawFile { file, base })
    }
}

/// An address: `0x` and hexadecimal digits or decimal, `_` between digits.
#[must_use]
pub fn parse_address(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((digits.as_str(), 10), |hex| (hex, 16));
    // from_str_radix takes a sign.
    if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// A path relative to the folder of `origin`, the file that names it.
#[must_use]
pub fn beside(origin: &Path, file: &Path) -> PathBuf {
    match origin.parent() {
        Some(folder) if !file.is_absolute() => folder.join(file),
        _ => file.to_path_buf(),
    }
}

/// The path of `file` as a configuration in `folder` names it: relative where
/// both are there and have something in common.
#[must_use]
pub(crate) fn seen_from(folder: &Path, file: &Path) -> PathBuf {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let (Ok(folder), Ok(file)) = (folder.canonicalize(), file.canonicalize()) else {
        return file.to_path_buf();
    };
    let both = folder.components().zip(file.components());
    let common = both.take_while(|(a, b)| a == b).count();
    if common <= 1 {
        return file;
    }
    let up = folder
        .components()
        .skip(common)
        .map(|_| Component::ParentDir);
    up.chain(file.components().skip(common)).collect()
}

/// A name may hold `@`, in a folder or before the suffix; what follows the
/// last one is a base otherwise.
fn split(text: &OsStr) -> Result<(PathBuf, Option<u64>), SpecError> {
    let (file, base) = match at(text) {
        Some((file, base)) if is_base(&base) => {
            let address = parse_address(&base).ok_or(SpecError::BadBase(base))?;
            (file, Some(address))
        }
        _ => (PathBuf::from(text), None),
    };
    if file.as_os_str().is_empty() {
        return Err(SpecError::NoFile);
    }
    Ok((file, base))
}

/// What is before and after the last `@`. A file name may have any bytes, a base
/// may not.
#[cfg(unix)]
fn at(text: &OsStr) -> Option<(PathBuf, String)> {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = text.as_bytes();
    let at = bytes.iter().rposition(|&byte| byte == b'@')?;
    let (file, base) = bytes.split_at_checked(at)?;
    let base = str::from_utf8(base.get(1..)?).ok()?;
    Some((PathBuf::from(OsStr::from_bytes(file)), base.to_owned()))
}

#[cfg(not(unix))]
fn at(text: &OsStr) -> Option<(PathBuf, String)> {
    let (file, base) = text.to_str()?.rsplit_once('@')?;
    Some((PathBuf::from(file), base.to_owned()))
}

fn is_base(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) || !text.contains(['/', '\\', '.'])
}

/// The base of `FILE@BASE` as `0x` would give it, if it is decimal and has so
/// many digits that it was probably meant that way.
#[must_use]
pub fn looks_hexadecimal(text: &str) -> Option<String> {
    let (_, base) = text.rsplit_once('@')?;
    let digits = base.bytes().filter(u8::is_ascii_digit).count();
    let decimal = base.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    (decimal && digits >= 8).then(|| format!("0x{base}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_base() {
        let elf = ElfFile::parse("a.elf").unwrap();
        assert_eq!((elf.file.as_path(), elf.base), (Path::new("a.elf"), None));
        let elf = ElfFile::parse("lib.so@0xffff_ffff_8000_0000").unwrap();
        assert_eq!(elf.base, Some(0xffff_ffff_8000_0000));
        let elf = ElfFile::parse("me@home/a.elf").unwrap();
        assert_eq!(
            (elf.file.as_path(), elf.base),
            (Path::new("me@home/a.elf"), None)
        );
        assert_eq!(ElfFile::parse("icon@large.elf").unwrap().base, None);
        assert_eq!(RawFile::parse("rom@4096").unwrap().base, 4096);
    }

    #[test]
    fn decimal_bases_that_look_hexadecimal() {
        let hex = looks_hexadecimal;
        assert_eq!(hex("rom@80000000").as_deref(), Some("0x80000000"));
        assert_eq!(hex("rom@8000_0000").as_deref(), Some("0x8000_0000"));
        for text in ["rom@4096", "rom@0x80000000", "rom", "80000000", "rom@"] {
            assert_eq!(hex(text), None, "{text}");
        }
    }

    #[test]
    fn refusals() {
        assert_eq!(ElfFile::parse(""), Err(SpecError::NoFile));
        assert_eq!(ElfFile::parse("@0x10"), Err(SpecError::NoFile));
        assert_eq!(
            ElfFile::parse("a@0xzz"),
            Err(SpecError::BadBase("0xzz".into()))
        );
        assert_eq!(
            ElfFile::parse("a@0x1_0000_0000_0000_0000"),
            Err(SpecError::BadBase("0x1_0000_0000_0000_0000".into()))
        );
        for base in ["", "-1", "zz", "x10"] {
            let bad = SpecError::BadBase(base.into());
            assert_eq!(ElfFile::parse(format!("a.elf@{base}")), Err(bad.clone()));
            assert_eq!(RawFile::parse(format!("rom@{base}")), Err(bad));
        }
        assert_eq!(RawFile::parse("rom"), Err(SpecError::NoBase));
        assert_eq!(parse_address("0x+1"), None);
        assert_eq!(parse_address("-1"), None);
        assert_eq!(parse_address("0x"), None);
    }

    #[test]
    fn a_file_seen_from_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir(at("c")).unwrap();
        std::fs::write(at("c/x.elf"), "").unwrap();
        let seen = seen_from(&at("a/b"), &at("c/x.elf"));
        assert_eq!(seen, Path::new("../../c/x.elf"));
        assert_eq!(seen_from(&at("c"), &at("c/x.elf")), Path::new("x.elf"));
        assert_eq!(beside(&at("a/b/run.toml"), &seen), at("a/b/../../c/x.elf"));
        assert_eq!(seen_from(&at("c"), Path::new("none")), Path::new("none"));
    }

    #[test]
    fn names_in_a_config_are_relative_to_it() {
        let config = Path::new("runs/a.toml");
        assert_eq!(beside(config, Path::new("a.elf")), Path::new("runs/a.elf"));
        assert_eq!(beside(config, Path::new("/a.elf")), Path::new("/a.elf"));
        assert_eq!(
            beside(Path::new("a.toml"), Path::new("a.elf")),
            Path::new("a.elf")
        );
    }
}
