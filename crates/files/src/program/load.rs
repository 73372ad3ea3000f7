//! Reads programs into memory.

use super::debug::{self, DebugFile};
use super::whereabouts::whereabouts;
use super::{ElfFile, MAX_PROGRAM, RawFile};
use crate::code_history::{CodeFile, CodeFileError};
use crate::config::{Config, Machine, Origin, Setting};
use crate::detect::{HEAD, Kind, apparent};
use crate::elf_info::{ElfError, ElfInfo, ElfKind};
use crate::input::{Contents, Input, InputError};
use crate::sidecar::{self, Mismatch};
use hartrace_flow::{Image, ImageError, SpaceId, boot, elf_bias};
use hartrace_isa::{Ext, Isa, Xlen};
use std::fmt;
use std::path::{Path, PathBuf};

/// Programs that are larger than this are not read but mapped: nearly all of them is debugging
/// information, of which little is needed.
const LARGE: u64 = 64 << 20;

/// The files of a program, read into memory.
///
/// ```no_run
/// use hartrace_files::config::Config;
/// use hartrace_files::program::Program;
///
/// let config = Config::load("run.toml".as_ref())?;
/// let program = Program::load(config, &mut |remark| eprintln!("{remark}"))?;
/// let image = program.image()?.expect("run.toml names a program");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Program {
    /// The settings in force; `isa` is always set if there is any code.
    pub config: Config,
    /// The instruction set; `None` without any code and any setting.
    pub isa: Option<Isa>,
    /// The ELF files, in the order of the settings.
    pub elf: Vec<Elf>,
    /// The raw binaries.
    pub raw: Vec<Raw>,
    /// The code histories.
    pub code: Vec<Code>,
}

/// An ELF file, read and checked.
#[derive(Debug)]
pub struct Elf {
    /// Its name, its base, its digest.
    pub file: ElfFile,
    /// Its content.
    pub bytes: Contents,
    /// What it says about itself.
    pub info: ElfInfo,
    /// The file with its symbols and lines, where it has none itself.
    pub debug: Option<DebugFile>,
    /// What is added to its addresses, if code histories show where it ran.
    found: Vec<u64>,
}

/// A raw binary, read.
#[derive(Debug)]
pub struct Raw {
    /// Its name and its address.
    pub file: RawFile,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A code history, read.
#[derive(Debug)]
pub struct Code {
    /// Its name.
    pub file: PathBuf,
    /// Its content.
    pub code: CodeFile,
}

/// Why a program cannot be used.
#[derive(Debug)]
pub enum ProgramError {
    /// A file cannot be read. The origin is the setting that names it, where
    /// that is known.
    Input(InputError, Option<Origin>),
    /// A file is not an ELF file for RISC-V; the start of its content.
    Elf(PathBuf, Vec<u8>, ElfError),
    /// Not the program that was traced.
    Wrong(Box<Mismatch>),
    /// A file is not a code history.
    Code(PathBuf, CodeFileError),
    /// The code cannot be loaded.
    Image(PathBuf, ImageError),
    /// The instruction set cannot be parsed.
    Isa(String),
    /// A program of another width than the instruction set.
    Width {
        /// The program.
        path: PathBuf,
        /// Its width.
        bits: u32,
        /// The width of the instruction set.
        isa_bits: u32,
        /// Where the instruction set comes from.
        origin: Origin,
    },
    /// Code does not fit at its base.
    Base {
        /// The program.
        path: PathBuf,
        /// The address of its first byte.
        base: u64,
        /// Its size in bytes.
        size: u64,
        /// The width of its addresses.
        bits: u32,
        /// The base is odd; otherwise the code would pass the end of the
        /// address space.
        odd: bool,
    },
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::Input(error, _) => error.fmt(f),
            ProgramError::Elf(path, _, error) => write!(f, "{} is {error}", path.display()),
            ProgramError::Wrong(wrong) => wrong.fmt(f),
            ProgramError::Code(path, error) => write!(f, "{}: {error}", path.display()),
            ProgramError::Image(path, error) => write!(f, "{}: {error}", path.display()),
            ProgramError::Isa(text) => match Isa::parse_lenient(text) {
                Err(error) => write!(f, "instruction set `{text}`: {error}"),
                Ok(_) => write!(f, "instruction set `{text}`"),
            },
            ProgramError::Width {
                path,
                bits,
                isa_bits,
                ..
            } => write!(
                f,
                "`{}` is a {bits}-bit program, but the instruction set has {isa_bits} bits",
                path.display()
            ),
            ProgramError::Base {
                path, base, odd, ..
            } => {
                let problem = match odd {
                    true => "is odd, but instructions are at even addresses",
                    false => "is too high: the code would run past the end of the address space",
                };
                write!(f, "{}: the base {base:#x} {problem}", path.display())
            }
        }
    }
}

impl std::error::Error for ProgramError {}

impl From<InputError> for ProgramError {
    fn from(error: InputError) -> ProgramError {
        ProgramError::Input(error, None)
    }
}

/// Something a user should know about how a program was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The instruction set is that of a file's attributes.
    IsaFrom(String, PathBuf),
    /// No file says which instruction set it is built for; this one is assumed.
    IsaAssumed(String),
    /// A base is given for a program that was linked to fixed addresses.
    FixedAddresses(PathBuf),
    /// The bases at which a position-independent program ran.
    Found(PathBuf, Vec<u64>),
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::IsaFrom(isa, path) => {
                write!(f, "isa {isa}, from the attributes of {}", path.display())
            }
            Remark::IsaAssumed(isa) => {
                write!(f, "no instruction set is given; assuming {isa}")
            }
            Remark::FixedAddresses(path) => write!(
                f,
                "{} is linked to fixed addresses, but a base is given",
                path.display()
            ),
            Remark::Found(path, bases) => {
                write!(f, "{} ran at", path.display())?;
                bases.iter().try_for_each(|base| write!(f, " {base:#x}"))
            }
        }
    }
}

impl Program {
    /// Reads the program that the settings name and completes the settings by
    /// what it says.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, that are not programs, or that contradict the
    /// settings.
    pub fn load(
        mut config: Config,
        remark: &mut dyn FnMut(Remark),
    ) -> Result<Program, ProgramError> {
        let mut elf = read_named(&config.program.elf, Elf::read)?;
        let folders = config.program.debug.as_ref();
        let folders = folders.map_or(&[][..], |folders| &folders.value);
        elf.iter_mut().for_each(|elf| elf.find_debug(folders));
        let raw = read_named(&config.program.raw, Raw::read)?;
        let code = read_named(&config.program.code, |file| Code::read(file))?;
        for elf in elf.iter_mut().filter(|elf| elf.is_loaded_anywhere()) {
            let histories = code.iter().map(|code| &code.code.history);
            elf.found = whereabouts(&elf.bytes, histories);
            if !elf.found.is_empty() {
                let segments = elf.info.segments.iter();
                let low = segments.map(|segment| segment.address).min().unwrap_or(0);
                let bases = elf.found.iter().map(|bias| bias.wrapping_add(low));
                remark(Remark::Found(elf.file.file.clone(), bases.collect()));
            }
        }
        if config.program.isa.is_none() {
            let known = code.first().map(|code| Setting {
                value: code.code.isa.to_string(),
                origin: Origin::Default,
            });
            config.program.isa = known.or_else(|| isa_of(&elf, !raw.is_empty(), remark));
        }
        let isa = match &config.program.isa {
            Some(Setting { value, origin }) => {
                let isa = Isa::parse_lenient(value);
                let isa = isa.map_err(|_| ProgramError::Isa(value.clone()))?;
                check_width(isa, origin, &elf)?;
                Some(isa)
            }
            None => None,
        };
        check_bases(&elf, &raw, isa, remark)?;
        Ok(Program {
            config,
            isa,
            elf,
            raw,
            code,
        })
    }

    /// The instruction set where a user gave it; otherwise each ELF file knows
    /// its own.
    #[must_use]
    pub fn given_isa(&self) -> Option<Isa> {
        let origin = &self.config.program.isa.as_ref()?.origin;
        let given = matches!(origin, Origin::Flag(_) | Origin::File { .. });
        self.isa.filter(|_| given)
    }

    /// The code in memory; `None` without any. All of it is of one instruction
    /// set.
    ///
    /// # Errors
    ///
    /// Code that cannot be loaded.
    pub fn image(&self) -> Result<Option<Image>, ProgramError> {
        if self.elf.is_empty() && self.raw.is_empty() && self.code.is_empty() {
            return Ok(None);
        }
        let mut image = Image::new();
        for Elf { file, bytes, .. } in &self.elf {
            image
                .add_elf(SpaceId::FIRST, bytes, file.base, self.isa)
                .map_err(|error| ProgramError::Image(file.file.clone(), error))?;
        }
        let isa = self.isa.unwrap_or(Isa::RV64GC);
        for Raw { file, bytes } in &self.raw {
            image.add_raw(SpaceId::FIRST, file.base, bytes, isa);
        }
        add_boot_code(&mut image, &self.config, isa);
        for Code { code, .. } in &self.code {
            code.history.add_to(&mut image, code.isa);
        }
        Ok(Some(image))
    }

    /// Checks that the programs are those that a sidecar names.
    ///
    /// # Errors
    ///
    /// A program with another content.
    pub fn check_against(&self, sidecar: &Config) -> Result<(), ProgramError> {
        check_against(&self.elf, sidecar)
    }
}

impl Elf {
    /// Reads an ELF file and checks that it is one, and that it has the digest
    /// it must have.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not such a program.
    pub fn read(file: &ElfFile) -> Result<Elf, ProgramError> {
        let mut input = Input::open(&file.file)?;
        // What is not an ELF file is not read to its end: it may have none.
        let head = input.peek(HEAD)?;
        if apparent(head) != Some(Kind::Elf) {
            let (path, head) = (file.file.clone(), head.to_vec());
            return Err(ProgramError::Elf(path, head, ElfError::NotElf));
        }
        let bytes = match input.size().is_some_and(|size| size > LARGE) {
            true => input.contents(MAX_PROGRAM)?,
            false => Contents::Read(input.read_all(MAX_PROGRAM)?),
        };
        Elf::of(file, bytes)
    }

    /// A program that is in memory already, under a name for messages.
    ///
    /// # Errors
    ///
    /// Bytes that are not such a program.
    pub fn from_bytes(name: &Path, bytes: Vec<u8>) -> Result<Elf, ProgramError> {
        let file = ElfFile {
            file: name.to_path_buf(),
            base: None,
            identity: None,
        };
        Elf::of(&file, Contents::Read(bytes))
    }

    fn of(file: &ElfFile, bytes: Contents) -> Result<Elf, ProgramError> {
        let info = ElfInfo::read(&bytes).map_err(|error| {
            let head = bytes.get(..HEAD).unwrap_or(&bytes).to_vec();
            ProgramError::Elf(file.file.clone(), head, error)
        })?;
        if let Some(expected) = file.identity.filter(|expected| !expected.is_of(&bytes)) {
            return Err(ProgramError::Wrong(Box::new(Mismatch {
                given: file.file.clone(),
                found: expected.like(&bytes),
                traced: file.file.clone(),
                expected,
                differs_at: None,
            })));
        }
        let file = file.clone();
        Ok(Elf {
            file,
            bytes,
            info,
            debug: None,
            found: Vec::new(),
        })
    }

    /// Looks for the file that has its symbols and lines, if it has none itself: beside it,
    /// and in these folders.
    pub fn find_debug(&mut self, folders: &[PathBuf]) {
        self.debug = debug::find(&self.file.file, &self.bytes, folders);
    }

    /// The file that has its symbols.
    #[must_use]
    pub fn symbols(&self) -> &[u8] {
        match self.debug.as_ref().filter(|debug| debug.symbols) {
            Some(debug) => &debug.bytes,
            None => &self.bytes,
        }
    }

    /// The file that has its lines.
    #[must_use]
    pub fn lines(&self) -> &[u8] {
        match self.debug.as_ref().filter(|debug| debug.lines) {
            Some(debug) => &debug.bytes,
            None => &self.bytes,
        }
    }

    /// Whether an operating system chooses its addresses, and none is given.
    fn is_loaded_anywhere(&self) -> bool {
        self.info.kind == ElfKind::Shared && self.file.base.is_none()
    }

    /// What is added to its addresses: several numbers, if code histories show that it ran
    /// at several places.
    #[must_use]
    pub fn biases(&self) -> Vec<u64> {
        if !self.found.is_empty() {
            return self.found.clone();
        }
        let base = self.file.base;
        let bias = base.map_or(0, |base| elf_bias(&self.bytes, base).unwrap_or(base));
        vec![bias]
    }
}

impl Code {
    /// Reads a code history.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not one.
    pub fn read(file: &Path) -> Result<Code, ProgramError> {
        let bytes = Input::open(file)?.read_all(MAX_PROGRAM)?;
        let file = file.to_path_buf();
        let code = CodeFile::read(&bytes);
        let code = code.map_err(|error| ProgramError::Code(file.clone(), error))?;
        Ok(Code { file, code })
    }
}

impl Raw {
    fn read(file: &RawFile) -> Result<Raw, ProgramError> {
        let bytes = Input::open(&file.file)?.read_all(MAX_PROGRAM)?;
        let file = file.clone();
        Ok(Raw { file, bytes })
    }
}

/// Reads the files that a setting names.
///
/// # Errors
///
/// The first failure; a file that cannot be opened comes with the setting that
/// names it.
pub fn read_named<T, U>(
    setting: &Option<Setting<Vec<T>>>,
    read: fn(&T) -> Result<U, ProgramError>,
) -> Result<Vec<U>, ProgramError> {
    let Some(Setting { value, origin }) = setting else {
        return Ok(Vec::new());
    };
    let one = |file| {
        read(file).map_err(|error| match error {
            ProgramError::Input(error, None) => ProgramError::Input(error, Some(origin.clone())),
            error => error,
        })
    };
    value.iter().map(one).collect()
}

/// Checks that programs are those that a sidecar names.
///
/// # Errors
///
/// A program with another content.
pub fn check_against(elf: &[Elf], sidecar: &Config) -> Result<(), ProgramError> {
    for Elf { file, bytes, .. } in elf {
        let checked = sidecar::check(sidecar, &file.file, bytes);
        checked.map_err(ProgramError::Wrong)?;
    }
    Ok(())
}

/// A part of a program that may be executed: the file it is from, its first
/// address and its size.
pub type CodePart<'a> = (&'a Path, u64, u64);

/// What may be executed of the programs.
pub fn code_parts<'a>(elf: &'a [Elf], raw: &'a [Raw]) -> impl Iterator<Item = CodePart<'a>> {
    let segments = elf.iter().flat_map(|elf| {
        let base = elf.file.base;
        let bias = base.map_or(0, |base| elf_bias(&elf.bytes, base).unwrap_or(base));
        let parts = elf.info.segments.iter();
        let parts = parts.filter(|s| matches!(s.access, [_, _, true]) && s.file_size > 0);
        parts.map(move |s| {
            let first = s.address.wrapping_add(bias);
            (elf.file.file.as_path(), first, s.file_size)
        })
    });
    let raw = raw.iter().map(|raw| {
        let Raw { file, bytes } = raw;
        (file.file.as_path(), file.base, bytes.len() as u64)
    });
    segments.chain(raw)
}

/// Adds the boot code of Spike's machine, where runs on it start, unless there
/// is other code at its place.
pub fn add_boot_code(image: &mut Image, config: &Config, isa: Isa) {
    let machine = config.hart.machine.as_ref();
    let spike = machine.is_some_and(|machine| machine.value == Machine::Spike);
    if spike && image.fetch(SpaceId::FIRST, boot::ROM).is_none() {
        let code = boot::code(isa.xlen());
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        image.add_raw(SpaceId::FIRST, boot::ROM, &code, isa);
    }
}

/// Checks that all programs have the width of the instruction set.
///
/// # Errors
///
/// The first that has another.
pub fn check_width(isa: Isa, origin: &Origin, elf: &[Elf]) -> Result<(), ProgramError> {
    let isa_bits = bits_of(isa);
    match elf.iter().find(|elf| elf.info.bits != isa_bits) {
        None => Ok(()),
        Some(other) => Err(ProgramError::Width {
            path: other.file.file.clone(),
            bits: other.info.bits,
            isa_bits,
            origin: origin.clone(),
        }),
    }
}

fn bits_of(isa: Isa) -> u32 {
    match isa.xlen() {
        Xlen::Rv32 => 32,
        Xlen::Rv64 => 64,
    }
}

/// Checks that code fits at a base: `first` is loaded there, and `end` follows
/// the last byte.
fn check_base(
    path: &std::path::Path,
    base: u64,
    (first, end): (u64, u64),
    bits: u32,
) -> Result<(), ProgramError> {
    let size = end.saturating_sub(first);
    let room = u64::MAX.checked_shr(64 - bits).unwrap_or(u64::MAX);
    let last = base.checked_add(size.saturating_sub(1));
    let odd = base % 2 == 1;
    if !odd && last.is_some_and(|last| last <= room) {
        return Ok(());
    }
    Err(ProgramError::Base {
        path: path.to_path_buf(),
        base,
        size,
        bits,
        odd,
    })
}

fn check_bases(
    elf: &[Elf],
    raw: &[Raw],
    isa: Option<Isa>,
    remark: &mut dyn FnMut(Remark),
) -> Result<(), ProgramError> {
    for Elf { file, info, .. } in elf {
        let Some(base) = file.base else { continue };
        let loaded = info.segments.iter().map(|s| (s.address, s.memory_size));
        let sections = info.code.iter().map(|s| (s.address, s.size));
        let parts: Vec<(u64, u64)> = match info.segments.is_empty() {
            false => loaded.collect(),
            true => sections.collect(),
        };
        let first = parts.iter().map(|p| p.0).min().unwrap_or(0);
        let end = parts.iter().map(|p| p.0.saturating_add(p.1)).max();
        check_base(&file.file, base, (first, end.unwrap_or(0)), info.bits)?;
        if info.kind == ElfKind::Executable {
            remark(Remark::FixedAddresses(file.file.clone()));
        }
    }
    let bits = isa.map_or(64, bits_of);
    for Raw { file, bytes } in raw {
        check_base(&file.file, file.base, (0, bytes.len() as u64), bits)?;
    }
    Ok(())
}

/// What the ELF files were built for, all of them together: one hart runs them.
/// An assumption, with a remark, if none has attributes.
fn isa_of(elf: &[Elf], raw: bool, remark: &mut dyn FnMut(Remark)) -> Option<Setting<String>> {
    let mut all: Option<(Isa, &PathBuf)> = None;
    for Elf { file, info, .. } in elf {
        let Some(isa) = info.isa.as_deref().and_then(|t| Isa::parse_lenient(t).ok()) else {
            continue;
        };
        all = Some(match all {
            None => (isa, &file.file),
            Some((first, path)) => (isa.extensions().fold(first, Isa::with), path),
        });
    }
    if let Some((isa, path)) = all {
        // Code assembled under `.option rvc` is in the flags only.
        let compressed = elf.iter().any(|elf| elf.info.abi.compressed());
        let isa = if compressed { isa.with(Ext::Zca) } else { isa };
        let value = isa.to_string();
        remark(Remark::IsaFrom(value.clone(), path.clone()));
        let origin = Origin::Elf(path.clone());
        return Some(Setting { value, origin });
    }
    let bits = match elf.first() {
        Some(first) => first.info.bits,
        None if raw => 64,
        None => return None,
    };
    let value = format!("rv{bits}gc");
    remark(Remark::IsaAssumed(value.clone()));
    let origin = Origin::Default;
    Some(Setting { value, origin })
}
