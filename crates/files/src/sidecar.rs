//! Sidecars: `FILE.toml` next to a trace, with its settings and its program.
//!
//! A sidecar is a [`Config`] with a `[trace]` section and the SHA-256 of the code
//! in every ELF file (`code_sha256`; older ones have that of the file, `sha256`).

use crate::config::{Config, LoadError, Program, Setting, Trace as TraceSection};
use crate::input::{Input, is_stdin};
use crate::output::{Output, OutputError};
use crate::program::{ElfFile, Identity, MAX_PROGRAM, first_difference, seen_from, symbol_at};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The sidecar's name for a trace: `run.ntrace` has `run.ntrace.toml`.
#[must_use]
pub fn path_for(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".toml");
    PathBuf::from(name)
}

/// Reads the sidecar of a trace, if it has one. Standard input has none.
///
/// # Errors
///
/// A sidecar that cannot be read or understood.
pub fn find(trace: &Path) -> Result<Option<Config>, LoadError> {
    let path = path_for(trace);
    if is_stdin(trace) || !path.is_file() {
        return Ok(None);
    }
    Config::load(&path).map(Some)
}

/// A sidecar and whether its programs are still those that were traced.
#[derive(Clone, Debug)]
pub struct Beside {
    /// The sidecar.
    pub path: PathBuf,
    /// What it says.
    pub config: Config,
    /// The programs it names.
    pub programs: Vec<(ElfFile, ProgramState)>,
}

impl Beside {
    /// The sidecar of a file, if it has one; of the programs up to `most`
    /// bytes are read.
    ///
    /// # Errors
    ///
    /// A sidecar that cannot be read or understood.
    pub fn find(file: &Path, most: u64) -> Result<Option<Beside>, LoadError> {
        let Some(config) = find(file)? else {
            return Ok(None);
        };
        let elf = config.program.elf.iter().flat_map(|s| &s.value);
        let programs = elf.map(|elf| (elf.clone(), ProgramState::of(elf, most)));
        Ok(Some(Beside {
            path: path_for(file),
            programs: programs.collect(),
            config,
        }))
    }
}

/// Whether a program is the one that a sidecar means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramState {
    /// It is, by its hash.
    Same,
    /// It is another.
    Different,
    /// It cannot be read.
    Unreadable,
    /// The sidecar has no hash of it.
    NoHash,
}

impl ProgramState {
    /// The state of a program of up to `most` bytes.
    #[must_use]
    pub fn of(elf: &ElfFile, most: u64) -> ProgramState {
        let Some(expected) = elf.identity else {
            return ProgramState::NoHash;
        };
        let bytes = Input::open(&elf.file).and_then(|input| input.read_all(most));
        match bytes {
            Ok(bytes) if expected.is_of(&bytes) => ProgramState::Same,
            Ok(_) => ProgramState::Different,
            Err(_) => ProgramState::Unreadable,
        }
    }

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ProgramState::Same => "same",
            ProgramState::Different => "different",
            ProgramState::Unreadable => "unreadable",
            ProgramState::NoHash => "no hash",
        }
    }
}

/// The sidecar of a file of this format and version, and the programs with
/// their content.
pub fn sidecar_of<'a>(
    trace: &Path,
    (format, version): (&str, &str),
    program: &Program,
    elf: impl IntoIterator<Item = (&'a ElfFile, &'a [u8])>,
) -> Config {
    let folder = trace.parent().unwrap_or(Path::new(""));
    let elf: Vec<ElfFile> = elf
        .into_iter()
        // TOML cannot name a file that is not UTF-8: better no name than a wrong one.
        .filter(|(elf, _)| elf.file.to_str().is_some())
        .map(|(elf, bytes)| ElfFile {
            file: seen_from(folder, &elf.file),
            base: elf.base,
            identity: Some(Identity::of_code(bytes)),
        })
        .collect();
    Config {
        trace: Some(TraceSection {
            format: Setting::default(format.to_owned()),
            version: Some(Setting::default(version.to_owned())),
        }),
        program: Program {
            isa: program.isa.clone(),
            elf: (!elf.is_empty()).then(|| Setting::default(elf)),
            raw: program.raw.clone().map(|mut raw| {
                for file in &mut raw.value {
                    file.file = seen_from(folder, &file.file);
                }
                raw
            }),
            code: None,
            debug: None,
        },
        ..Config::default()
    }
}

/// Writes the sidecar of a trace.
///
/// # Errors
///
/// An output that cannot be written.
pub fn write(trace: &Path, config: &Config) -> Result<(), OutputError> {
    let text = config.to_toml(false);
    Output::create(&path_for(trace))?.write_with(|out| out.write_all(text.as_bytes()))
}

/// The given program is not the one that was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The program that was given.
    pub given: PathBuf,
    /// Its hash.
    pub found: Identity,
    /// The program the sidecar names.
    pub traced: PathBuf,
    /// The hash the sidecar gives.
    pub expected: Identity,
    /// The first address where the code differs, and the function there, if the
    /// program that was traced is still in its place.
    pub differs_at: Option<(u64, Option<String>)>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not the program that was traced: it has {}, but `{}` had {}",
            self.given.display(),
            self.found,
            self.traced.display(),
            self.expected
        )
    }
}

impl std::error::Error for Mismatch {}

/// Checks a program that was given against the ones a sidecar names. A sidecar
/// without hashes accepts any.
///
/// # Errors
///
/// A hash that none of the sidecar's programs has.
pub fn check(sidecar: &Config, given: &Path, content: &[u8]) -> Result<(), Box<Mismatch>> {
    let traced: &[ElfFile] = match &sidecar.program.elf {
        Some(elf) => &elf.value,
        None => &[],
    };
    let hashes = traced
        .iter()
        .filter_map(|elf| elf.identity.map(|identity| (elf, identity)));
    // With a code history, files only supply names: those of a kernel and its programs are
    // not in the sidecar.
    let is_named = traced
        .iter()
        .any(|elf| elf.file.file_name() == given.file_name());
    if sidecar.program.code.is_some() && !is_named {
        return Ok(());
    }
    let mut wrong: Option<(&ElfFile, Identity)> = None;
    for (elf, expected) in hashes {
        if expected.is_of(content) {
            return Ok(());
        }
        // Of several, name the one the user most likely meant.
        if wrong.is_none() || elf.file.file_name() == given.file_name() {
            wrong = Some((elf, expected));
        }
    }
    match wrong {
        None => Ok(()),
        Some((elf, expected)) => Err(Box::new(Mismatch {
            given: given.to_path_buf(),
            found: expected.like(content),
            traced: elf.file.clone(),
            expected,
            differs_at: difference(elf, expected, content),
        })),
    }
}

/// Where the code of the program that was traced differs from that of another.
fn difference(
    traced: &ElfFile,
    expected: Identity,
    content: &[u8],
) -> Option<(u64, Option<String>)> {
    let old = Input::open(&traced.file).and_then(|input| input.read_all(MAX_PROGRAM));
    let old = old.ok().filter(|old| expected.is_of(old))?;
    let at = first_difference(&old, content)?;
    Some((at, symbol_at(&old, at).or_else(|| symbol_at(content, at))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Program, Setting, Trace};
    use crate::digest::Digest;
    use std::fs;

    fn sidecar(elf: Vec<ElfFile>) -> Config {
        Config {
            program: Program {
                elf: Some(Setting::flag(elf, "-e")),
                ..Program::default()
            },
            trace: Some(Trace {
                format: Setting::flag("pc".to_owned(), "--to"),
                version: None,
            }),
            ..Config::default()
        }
    }

    fn elf(name: &str, content: &[u8]) -> ElfFile {
        ElfFile {
            file: name.into(),
            base: None,
            identity: Some(Identity::File(Digest::of(content))),
        }
    }

    #[test]
    fn written_and_found() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("run.pc");
        assert!(find(&trace).unwrap().is_none());
        write(&trace, &sidecar(vec![elf("a.elf", b"a")])).unwrap();
        let found = find(&trace).unwrap().unwrap();
        assert_eq!(found.trace.unwrap().format.value, "pc");
        let program = found.program.elf.unwrap().value;
        assert_eq!(program[0].file, folder.path().join("a.elf"));
        assert_eq!(program[0].identity, Some(Identity::File(Digest::of(b"a"))));
        assert!(find(Path::new("-")).unwrap().is_none());
    }

    #[test]
    fn a_damaged_sidecar_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("run.pc");
        fs::write(path_for(&trace), "[trace").unwrap();
        assert!(find(&trace).is_err());
    }

    #[test]
    fn the_wrong_program_is_noticed() {
        let config = sidecar(vec![elf("a.elf", b"a"), elf("b.elf", b"b")]);
        assert_eq!(check(&config, Path::new("x.elf"), b"b"), Ok(()));
        let error = check(&config, Path::new("new/b.elf"), b"c").unwrap_err();
        assert_eq!(error.traced, Path::new("b.elf"));
        assert_eq!(error.expected.digest(), Digest::of(b"b"));
        assert_eq!(check(&sidecar(vec![]), Path::new("a"), b"a"), Ok(()));
        // With a code history, files for names may be added.
        let mut config = config;
        config.program.code = Some(Setting::flag(vec!["c".into()], "--code"));
        assert_eq!(check(&config, Path::new("vmlinux"), b"c"), Ok(()));
        assert!(check(&config, Path::new("new/b.elf"), b"c").is_err());
    }
}
