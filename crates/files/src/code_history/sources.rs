//! What a code history is made of: programs, memory dumps, lists of patches, the side-band
//! of perf.

use super::make::{Bytes, CodeWrite, MakeError, make};
use super::patches::{BadPatch, read_patches};
use super::perf::{PerfData, PerfError};
use super::processes::{MissingCode, PerfMisfit, PerfOptions, mapped};
use crate::elf_info::ElfError;
use crate::input::{Input, InputError};
use crate::program::{MAX_PROGRAM, Program, ProgramError};
use hartrace_flow::{CodeHistory, Context, SpaceId, elf};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file of perf, and the largest memory dump that is read, in bytes.
const MAX_PERF: u64 = 1 << 32;

/// Gathers what a code history is made of. What comes later goes over what was there
/// before, if it is from the same moment.
#[derive(Debug, Default)]
pub struct CodeSources {
    writes: Vec<CodeWrite>,
    /// Where each of them is from.
    places: Vec<Place>,
}

/// Where something is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere.
    File(Arc<Path>),
    /// In a line, from 1.
    Line(Arc<Path>, usize),
    /// In a record that starts at this offset.
    Record(Arc<Path>, u64),
}

impl Place {
    /// The file.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Place::File(path) | Place::Line(path, _) | Place::Record(path, _) => path,
        }
    }
}

/// `list.txt:3`, `perf.data, the record at byte 0x1a8`
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Line(path, line) => write!(f, "{}:{line}", path.display()),
            Place::Record(path, offset) => {
                write!(f, "{}, the record at byte {offset:#x}", path.display())
            }
        }
    }
}

/// Why no code history can be made.
#[derive(Debug)]
pub enum CodeSourceError {
    /// A file cannot be read.
    Input(InputError),
    /// A program cannot be used.
    Program(ProgramError),
    /// A line of a list of patches cannot be read.
    Patch(Place, BadPatch),
    /// A file of perf cannot be read.
    Perf(PathBuf, PerfError),
    /// A file of perf needs to be told more.
    Misfit(PathBuf, PerfMisfit),
    /// A memory dump cannot be read.
    Core(PathBuf, ElfError),
    /// Changes contradict each other.
    Make(Option<Place>, MakeError),
    /// There is no code in what was given.
    Nothing,
}

impl fmt::Display for CodeSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeSourceError::Input(error) => error.fmt(f),
            CodeSourceError::Program(error) => error.fmt(f),
            CodeSourceError::Patch(place, error) => write!(f, "{place}: {error}"),
            CodeSourceError::Perf(path, error) => write!(f, "{}: {error}", path.display()),
            CodeSourceError::Misfit(path, error) => write!(f, "{}: {error}", path.display()),
            CodeSourceError::Core(path, error) => write!(f, "{} is {error}", path.display()),
            CodeSourceError::Make(Some(place), error) => write!(f, "{place}: {error}"),
            CodeSourceError::Make(None, error) => error.fmt(f),
            CodeSourceError::Nothing => f.write_str("there is no code in what was given"),
        }
    }
}

impl std::error::Error for CodeSourceError {}

impl From<InputError> for CodeSourceError {
    fn from(error: InputError) -> CodeSourceError {
        CodeSourceError::Input(error)
    }
}

impl From<ProgramError> for CodeSourceError {
    fn from(error: ProgramError) -> CodeSourceError {
        CodeSourceError::Program(error)
    }
}

impl CodeSources {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> CodeSources {
        CodeSources::default()
    }

    fn push(&mut self, place: Place, write: CodeWrite) {
        self.writes.push(write);
        self.places.push(place);
    }

    /// The code of programs, from the start on.
    ///
    /// # Errors
    ///
    /// Code that cannot be loaded.
    pub fn add_program(&mut self, program: &Program) -> Result<(), CodeSourceError> {
        let Some(image) = program.image()? else {
            return Ok(());
        };
        let elf = program.elf.first().map(|elf| &elf.file.file);
        let file = elf.or_else(|| program.raw.first().map(|raw| &raw.file.file));
        let path: Arc<Path> = file.map_or(Path::new(""), PathBuf::as_path).into();
        for (address, bytes) in image.segments(SpaceId::FIRST) {
            let bytes = Bytes::from(bytes.to_vec());
            let place = Place::File(Arc::clone(&path));
            self.push(place, CodeWrite::constant(address, bytes));
        }
        Ok(())
    }

    /// A list of patches.
    ///
    /// # Errors
    ///
    /// A list that cannot be read, with the line.
    pub fn add_patches(&mut self, path: &Path) -> Result<(), CodeSourceError> {
        let text = Input::open(path)?.read_all(MAX_PROGRAM)?;
        self.add_patch_bytes(path, &text, &mut |file| {
            let opened = Input::open(file).and_then(|input| input.read_all(MAX_PROGRAM));
            opened.map_err(|error| error.to_string())
        })
    }

    /// The same of bytes. `read` reads the files that they name.
    ///
    /// # Errors
    ///
    /// As [`CodeSources::add_patches`].
    pub fn add_patch_bytes(
        &mut self,
        path: &Path,
        text: &[u8],
        read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<(), CodeSourceError> {
        let list: Arc<Path> = path.into();
        let writes = read_patches(text, path, read).map_err(|error| {
            let place = Place::Line(Arc::clone(&list), error.line);
            CodeSourceError::Patch(place, error.what)
        })?;
        for (line, write) in writes {
            self.push(Place::Line(Arc::clone(&list), line), write);
        }
        Ok(())
    }

    /// The side-band of perf. Gives the mappings whose code is not known.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or that needs more options.
    pub fn add_perf(
        &mut self,
        path: &Path,
        options: &PerfOptions,
    ) -> Result<Vec<MissingCode>, CodeSourceError> {
        let bytes = Input::open(path)?.read_all(MAX_PERF)?;
        self.add_perf_bytes(path, &bytes, options, &mut |file| {
            // A name may be anything, a device too.
            let is_file = fs::metadata(file).is_ok_and(|found| found.is_file());
            let input = is_file.then(|| Input::open(file).ok()).flatten()?;
            input.read_all(MAX_PROGRAM).ok()
        })
    }

    /// The same of bytes. `read` reads the files that they name.
    ///
    /// # Errors
    ///
    /// As [`CodeSources::add_perf`].
    pub fn add_perf_bytes(
        &mut self,
        path: &Path,
        bytes: &[u8],
        options: &PerfOptions,
        read: &mut dyn FnMut(&Path) -> Option<Vec<u8>>,
    ) -> Result<Vec<MissingCode>, CodeSourceError> {
        let error = |error| CodeSourceError::Perf(path.to_path_buf(), error);
        let data = PerfData::read(bytes).map_err(error)?;
        let misfit = |misfit| CodeSourceError::Misfit(path.to_path_buf(), misfit);
        let mapped = mapped(&data, options, read).map_err(misfit)?;
        let perf: Arc<Path> = path.into();
        for (offset, write) in mapped.writes {
            self.push(Place::Record(Arc::clone(&perf), offset), write);
        }
        Ok(mapped.missing)
    }

    /// A memory dump: an ELF core file, of a context or of all.
    ///
    /// # Errors
    ///
    /// A file that is no ELF file for RISC-V, or damaged.
    pub fn add_core(
        &mut self,
        path: &Path,
        context: Option<Context>,
    ) -> Result<(), CodeSourceError> {
        let bytes = Input::open(path)?.read_all(MAX_PERF)?;
        let core = |error| CodeSourceError::Core(path.to_path_buf(), error);
        let file = elf::Elf::parse(&bytes).map_err(core)?;
        let place: Arc<Path> = path.into();
        for load in file.loads().map_err(core)? {
            if load.file_size == 0 || !load.access[2] {
                continue;
            }
            let data = load
                .data
                .ok_or_else(|| core(ElfError::outside("a segment")))?;
            let write = CodeWrite::constant(load.address, data.to_vec().into());
            let write = CodeWrite { context, ..write };
            self.push(Place::File(Arc::clone(&place)), write);
        }
        Ok(())
    }

    /// The history. Times are known within so many units.
    ///
    /// # Errors
    ///
    /// Changes that contradict each other, or nothing at all.
    pub fn make(&self, slack: u64) -> Result<CodeHistory, CodeSourceError> {
        let history = make(&self.writes, slack).map_err(|error| {
            let place = match &error {
                MakeError::Mismatch { write, .. } | MakeError::Mixed { write } => {
                    self.places.get(*write).cloned()
                }
                MakeError::TooMuch => None,
            };
            CodeSourceError::Make(place, error)
        })?;
        match history.is_empty() {
            true => Err(CodeSourceError::Nothing),
            false => Ok(history),
        }
    }
}
