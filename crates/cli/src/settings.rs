//! What was typed, and what it means: flags over configuration files over
//! defaults, and the program they name.

use crate::args;
use crate::diagnostic::{Code, Diagnostic, Failure, bad_elf, bad_image, bad_isa};
use crate::talk::Talk;
use hartrace_analyze::Names;
use hartrace_capture::config::{Config, Machine, Origin, Program as ProgramConfig, Setting};
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::digest::Digest;
use hartrace_capture::elf_info::{ElfError, ElfInfo, ElfKind};
use hartrace_capture::input::{self, Input};
use hartrace_capture::program::{ElfFile, RawFile, SpecError, looks_hexadecimal};
use hartrace_capture::sidecar;
use hartrace_flow::{Image, SpaceId};
use hartrace_hart::fdt;
use hartrace_isa::{Ext, Isa, Xlen};
use std::path::{Path, PathBuf};

/// Programs are read at once; the largest known have debug information of a
/// few hundred megabytes.
pub(crate) const MAX_PROGRAM: u64 = 1 << 30;

/// A program, read into memory.
pub(crate) struct Program {
    /// The settings in force; `isa` is always there if there is any code.
    pub(crate) config: Config,
    /// The instruction set; `None` without any code and any setting.
    pub(crate) isa: Option<Isa>,
    pub(crate) elf: Vec<Elf>,
    pub(crate) raw: Vec<Raw>,
}

impl Program {
    /// The instruction set, where somebody said it; otherwise each ELF file
    /// knows its own.
    pub(crate) fn given_isa(&self) -> Option<Isa> {
        let origin = &self.config.program.isa.as_ref()?.origin;
        let given = matches!(origin, Origin::Flag(_) | Origin::File { .. });
        self.isa.filter(|_| given)
    }

    /// The code in memory; `None` without any. All of it is of the instruction
    /// set that a sidecar gets to tell.
    pub(crate) fn image(&self) -> Result<Option<Image>, Failure> {
        if self.elf.is_empty() && self.raw.is_empty() {
            return Ok(None);
        }
        let mut image = Image::new();
        for Elf { file, bytes, .. } in &self.elf {
            image
                .add_elf(SpaceId::FIRST, bytes, file.base, self.isa)
                .map_err(|error| bad_image(&file.file, &error))?;
        }
        for Raw { file, bytes } in &self.raw {
            let isa = self.isa.unwrap_or(Isa::RV64GC);
            image.add_raw(SpaceId::FIRST, file.base, bytes, isa);
        }
        add_boot_code(&mut image, &self.config, self.isa.unwrap_or(Isa::RV64GC));
        Ok(Some(image))
    }

    /// The symbols of all ELF files. A file without symbols has no names.
    pub(crate) fn names(&self) -> Names {
        let mut names = Names::new();
        for elf in &self.elf {
            let _ = names.add_elf(&elf.bytes, elf.file.base);
        }
        names
    }

    /// Whether the programs are those that the sidecar of a log names.
    pub(crate) fn check_against(&self, sidecar: &Config) -> Result<(), Failure> {
        check_against(&self.elf, sidecar)
    }
}

/// Whether programs are those that a sidecar names.
pub(crate) fn check_against(elf: &[Elf], sidecar: &Config) -> Result<(), Failure> {
    for Elf { file, bytes, .. } in elf {
        let checked = sidecar::check(sidecar, &file.file, Digest::of(bytes));
        checked.map_err(|m| wrong_program(&m.given, m.found, m.expected))?;
    }
    Ok(())
}

/// A run on Spike's machine starts in its boot code, which is in no program.
pub(crate) fn add_boot_code(image: &mut Image, config: &Config, isa: Isa) {
    let machine = config.hart.machine.as_ref();
    let spike = machine.is_some_and(|machine| machine.value == Machine::Spike);
    if spike && image.fetch(SpaceId::FIRST, fdt::BOOT_ROM).is_none() {
        let rom = fdt::boot_rom(isa.xlen(), 0, &[]);
        let code = rom.get(..fdt::BOOT_CODE).unwrap_or_default();
        image.add_raw(SpaceId::FIRST, fdt::BOOT_ROM, code, isa);
    }
}

/// An ELF file, read and checked.
pub(crate) struct Elf {
    pub(crate) file: ElfFile,
    pub(crate) bytes: Vec<u8>,
    pub(crate) info: ElfInfo,
}

/// A raw binary.
pub(crate) struct Raw {
    pub(crate) file: RawFile,
    pub(crate) bytes: Vec<u8>,
}

/// The settings in force. `files` are ELF files given without a flag.
pub(crate) fn resolve(
    files: &[String],
    typed: &args::Program,
    talk: &Talk,
) -> Result<Config, Failure> {
    layers(files, typed, Config::defaults(), talk)
}

/// As [`resolve`], with the settings in the sidecar of a log, which is given
/// too if there is one.
pub(crate) fn resolve_beside(
    log: &Path,
    typed: &args::Program,
    talk: &Talk,
) -> Result<(Config, Option<Config>), Failure> {
    let sidecar = sidecar::find(log)?;
    let below = sidecar.clone().unwrap_or_default().over(Config::defaults());
    Ok((layers(&[], typed, below, talk)?, sidecar))
}

fn layers(
    files: &[String],
    typed: &args::Program,
    below: Config,
    talk: &Talk,
) -> Result<Config, Failure> {
    let elf = files.iter().chain(&typed.elf);
    let elf = specs(elf, ElfFile::parse, "-e", talk)?;
    let raw = specs(typed.raw.iter(), RawFile::parse, "--raw", talk)?;
    if let Some(text) = &typed.isa {
        Isa::parse(text).map_err(|error| bad_isa(text, &error))?;
    }
    let flags = Config {
        program: ProgramConfig {
            isa: typed.isa.clone().map(|isa| Setting::flag(isa, "--isa")),
            elf: (!elf.is_empty()).then(|| Setting::flag(elf, "-e")),
            raw: (!raw.is_empty()).then(|| Setting::flag(raw, "--raw")),
        },
        ..Config::default()
    };
    let mut config = below;
    for path in &typed.config {
        config = Config::load(path)?.over(config);
    }
    Ok(flags.over(config))
}

fn specs<'a, T>(
    texts: impl Iterator<Item = &'a String>,
    parse: fn(&str) -> Result<T, SpecError>,
    flag: &str,
    talk: &Talk,
) -> Result<Vec<T>, Failure> {
    let one = |text: &String| {
        if let Some(hex) = looks_hexadecimal(text) {
            let message = format!("{flag} `{text}`: the base is decimal");
            let help = format!("did you mean {hex}?");
            talk.warning(&Diagnostic::new(Code::DoubtfulBase, message).help(help));
        }
        parse(text).map_err(|error| {
            let message = format!("{flag} `{text}`: {error}");
            let diagnostic = Diagnostic::new(Code::BadFileSpec, message);
            match error {
                SpecError::BadBase(_) if Path::new(text).exists() => diagnostic
                    .help("a name that ends this way goes into a configuration: { file = ... }"),
                _ => diagnostic,
            }
            .into()
        })
    };
    texts.map(one).collect()
}

/// Whether code can stand at a base: `first` goes there, and `end` is behind
/// the last byte.
fn check_base(path: &Path, base: u64, (first, end): (u64, u64), bits: u32) -> Result<(), Failure> {
    let size = end.saturating_sub(first);
    let room = u64::MAX.checked_shr(64 - bits).unwrap_or(u64::MAX);
    let last = base.checked_add(size.saturating_sub(1));
    let problem = if base % 2 == 1 {
        "is odd, where no instruction can stand"
    } else if last.is_none_or(|last| last > room) {
        "is too high: the code would pass the end of the address space"
    } else {
        return Ok(());
    };
    let message = format!("{}: the base {base:#x} {problem}", input::name(path));
    Err(Diagnostic::new(Code::BadFileSpec, message)
        .note(format!("{size} bytes of a {bits}-bit program go there"))
        .into())
}

fn check_bases(elf: &[Elf], raw: &[Raw], isa: Option<Isa>, talk: &Talk) -> Result<(), Failure> {
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
            let name = input::name(&file.file);
            let message = format!("{name} was linked to fixed addresses, and a base is given");
            let help = "leave out the base, or give the position-independent program";
            talk.warning(&Diagnostic::new(Code::DoubtfulBase, message).help(help));
        }
    }
    let bits = isa.map_or(64, bits_of);
    for Raw { file, bytes } in raw {
        check_base(&file.file, file.base, (0, bytes.len() as u64), bits)?;
    }
    Ok(())
}

fn bits_of(isa: Isa) -> u32 {
    match isa.xlen() {
        Xlen::Rv32 => 32,
        Xlen::Rv64 => 64,
    }
}

/// Reads the program that the settings name and completes the settings by
/// what it says.
pub(crate) fn load(mut config: Config, talk: &Talk) -> Result<Program, Failure> {
    let elf = files(&config.program.elf, read_elf)?;
    let raw = files(&config.program.raw, read_raw)?;
    let isa = match &config.program.isa {
        Some(setting) => Some(setting.clone()),
        None => isa_of(&elf, !raw.is_empty(), talk),
    };
    config.program.isa = isa;
    let isa = match &config.program.isa {
        Some(Setting { value, origin }) => {
            let isa = Isa::parse_lenient(value).map_err(|error| bad_isa(value, &error))?;
            check_width(isa, origin, &elf)?;
            Some(isa)
        }
        None => None,
    };
    check_bases(&elf, &raw, isa, talk)?;
    Ok(Program {
        config,
        isa,
        elf,
        raw,
    })
}

pub(crate) fn files<T, U>(
    setting: &Option<Setting<Vec<T>>>,
    read: fn(&T) -> Result<U, Failure>,
) -> Result<Vec<U>, Failure> {
    let Some(Setting { value, origin }) = setting else {
        return Ok(Vec::new());
    };
    let one = |file| read(file).map_err(|failure| named_in(origin, failure));
    value.iter().map(one).collect()
}

/// A file that is not there, with the place that names it.
pub(crate) fn named_in(origin: &Origin, failure: Failure) -> Failure {
    match (origin, failure) {
        (Origin::File { .. }, Failure::Diagnostic(diagnostic))
            if diagnostic.code == Code::CannotOpen =>
        {
            diagnostic
                .note(format!("it is named at {origin}"))
                .help("check the name; names in a configuration file are relative to that file")
                .into()
        }
        (_, failure) => failure,
    }
}

/// Reads an ELF file and checks that it is one, and the one that is meant.
pub(crate) fn read_elf(file: &ElfFile) -> Result<Elf, Failure> {
    let mut input = Input::open(&file.file)?;
    // What is no ELF file is not read to its end: it may have none.
    let head = input.peek(HEAD)?;
    if !matches!(detect(head), Kind::Elf) {
        return Err(bad_elf(&file.file, head, &ElfError::NotElf).into());
    }
    let bytes = input.read_all(MAX_PROGRAM)?;
    let info = ElfInfo::read(&bytes).map_err(|e| bad_elf(&file.file, &bytes, &e))?;
    if let Some(expected) = file.sha256 {
        let found = Digest::of(&bytes);
        if found != expected {
            let path = &file.file;
            return Err(wrong_program(path, found, expected).into());
        }
    }
    Ok(Elf {
        file: file.clone(),
        bytes,
        info,
    })
}

fn read_raw(file: &RawFile) -> Result<Raw, Failure> {
    let bytes = Input::open(&file.file)?.read_all(MAX_PROGRAM)?;
    Ok(Raw {
        file: file.clone(),
        bytes,
    })
}

fn wrong_program(path: &Path, found: Digest, expected: Digest) -> Diagnostic {
    let message = format!("`{}` is not the program that is meant", path.display());
    Diagnostic::new(Code::WrongProgram, message)
        .note(format!("its SHA-256 is  {found}"))
        .note(format!("it should be    {expected}"))
        .help("it was probably built again; give the old one with -e, or mend the sha256")
}

/// What the ELF files were built for, all of them together: it is one hart that
/// runs them. A guess, and said to be one, if none has attributes.
fn isa_of(elf: &[Elf], raw: bool, talk: &Talk) -> Option<Setting<String>> {
    let mut all: Option<(Isa, &Path)> = None;
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
        let path = path.to_path_buf();
        talk.detail(&format!(
            "isa {value}, from the attributes of {}",
            path.display()
        ));
        let origin = Origin::Elf(path);
        return Some(Setting { value, origin });
    }
    let bits = match elf.first() {
        Some(first) => first.info.bits,
        None if raw => 64,
        None => return None,
    };
    let value = format!("rv{bits}gc");
    let message = format!("no instruction set is given; assuming {value}");
    let warning = Diagnostic::new(Code::Guessed, message).help("say which one it is with --isa");
    talk.warning(&warning);
    let origin = Origin::Default;
    Some(Setting { value, origin })
}

pub(crate) fn check_width(isa: Isa, origin: &Origin, elf: &[Elf]) -> Result<(), Failure> {
    let bits = bits_of(isa);
    match elf.iter().find(|elf| elf.info.bits != bits) {
        None => Ok(()),
        Some(other) => {
            let path: &PathBuf = &other.file.file;
            let message = format!(
                "`{}` is a {}-bit program, but the instruction set has {bits} bits",
                path.display(),
                other.info.bits
            );
            Err(Diagnostic::new(Code::WidthMismatch, message)
                .note(format!("the instruction set comes from: {origin}"))
                .help("give programs of one width, and the --isa they were built for")
                .into())
        }
    }
}
