//! Resolves the settings: flags override configuration files, which override
//! defaults; and the program they name.

use crate::args;
use crate::failure::Failure;
use crate::talk::Talk;
use hartrace_analyze::Names;
use hartrace_capture::config::{Config, Log, Program as ProgramConfig, Setting};
use hartrace_capture::detect::{Kind, detect};
pub(crate) use hartrace_capture::log::chosen;
use hartrace_capture::program::looks_hexadecimal;
pub(crate) use hartrace_capture::program::{Elf, Program, Raw, add_boot_code, check_against};
use hartrace_capture::program::{ElfFile, RawFile, Remark, SpecError};
use hartrace_capture::sidecar;
use hartrace_isa::Isa;
use hartrace_print::diagnostic::program::{self, bad_isa};
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::ffi::OsString;
use std::path::Path;

/// The symbols of all ELF files of a program. A file without symbols has no
/// names.
pub(crate) fn names_of(elf: &[Elf]) -> Names {
    let mut names = Names::new();
    for elf in elf {
        for bias in elf.biases() {
            let _ = names.add_program(elf.symbols(), &elf.bytes, bias);
        }
    }
    names
}

/// The settings in force. `files` are ELF files given without a flag.
pub(crate) fn resolve(
    files: &[OsString],
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
    match &sidecar {
        Some(_) => talk.detail(&format!("sidecar: {}", sidecar::path_for(log).display())),
        None => talk.detail("no sidecar"),
    }
    let below = sidecar.clone().unwrap_or_default().over(Config::defaults());
    Ok((layers(&[], typed, below, talk)?, sidecar))
}

/// The kind of a file that starts with `head`: that of a log may be chosen by name.
pub(crate) fn kind_of(head: &[u8], file: &Path, typed: &args::Program) -> Result<Kind, Failure> {
    if let Some(kind) = typed.log_format {
        return Ok(kind);
    }
    let mut config = sidecar::find(file)?.unwrap_or_default();
    // Standard input is read once.
    for path in typed.config.iter().filter(|path| path.as_os_str() != "-") {
        config = Config::load(path)?.over(config);
    }
    Ok(chosen(detect(head), &config))
}

fn layers(
    files: &[OsString],
    typed: &args::Program,
    below: Config,
    talk: &Talk,
) -> Result<Config, Failure> {
    let elf = files.iter().chain(&typed.elf);
    let elf = specs(elf, |text| ElfFile::parse(text), "-e", talk)?;
    let raw = specs(typed.raw.iter(), |text| RawFile::parse(text), "--raw", talk)?;
    if let Some(text) = &typed.isa {
        Isa::parse(text).map_err(|error| bad_isa(text, &error))?;
    }
    let flags = Config {
        program: ProgramConfig {
            isa: typed.isa.clone().map(|isa| Setting::flag(isa, "--isa")),
            elf: (!elf.is_empty()).then(|| Setting::flag(elf, "-e")),
            raw: (!raw.is_empty()).then(|| Setting::flag(raw, "--raw")),
            code: (!typed.code.is_empty()).then(|| Setting::flag(typed.code.clone(), "--code")),
            debug: (!typed.debug_dir.is_empty())
                .then(|| Setting::flag(typed.debug_dir.clone(), "--debug-dir")),
        },
        log: Log {
            format: typed
                .log_format
                .map(|kind| Setting::flag(kind, "--log-format")),
            ..Log::default()
        },
        ..Config::default()
    };
    let mut config = below;
    for path in &typed.config {
        config = Config::load(path)?.over(config);
    }
    let config = flags.over(config);
    talk.settings(&config);
    Ok(config)
}

fn specs<'a, T>(
    texts: impl Iterator<Item = &'a OsString>,
    parse: fn(&OsString) -> Result<T, SpecError>,
    flag: &str,
    talk: &Talk,
) -> Result<Vec<T>, Failure> {
    let one = |typed: &OsString| {
        let text = &*typed.to_string_lossy();
        if let Some(hex) = looks_hexadecimal(text) {
            let message = format!("{flag} `{text}`: the base is read as decimal");
            let help = format!("did you mean {hex}?");
            talk.warning(&Diagnostic::new(Code::DoubtfulBase, message).help(help));
        }
        parse(typed).map_err(|error| {
            let message = format!("{flag} `{text}`: {error}");
            let diagnostic = Diagnostic::new(Code::BadFileSpec, message);
            match error {
                SpecError::BadBase(_) if Path::new(text).exists() => diagnostic.help(
                    "put a file name that ends this way into a configuration: { file = \
                        ... }",
                ),
                _ => diagnostic,
            }
            .into()
        })
    };
    texts.map(one).collect()
}

/// Reads the program that the settings name and completes the settings by
/// what it says.
pub(crate) fn load(config: Config, talk: &Talk) -> Result<Program, Failure> {
    let program = Program::load(config, &mut |remark| tell(&remark, talk))?;
    tell_program(&program.elf, talk);
    Ok(program)
}

/// Which programs were read.
pub(crate) fn tell_program(elf: &[Elf], talk: &Talk) {
    for elf in elf {
        let (name, bytes) = (elf.file.file.display(), elf.bytes.len());
        let at = (elf.file.base).map_or(String::new(), |base| format!(", loaded at {base:#x}"));
        talk.phase(&format!("program: {name}, {bytes} bytes{at}"));
        if let Some(debug) = &elf.debug {
            let path = debug.path.display();
            talk.phase(&format!("symbols and lines of it: {path}"));
        }
    }
}

fn tell(remark: &Remark, talk: &Talk) {
    match program::remark(remark) {
        Some(warning) => talk.warning(&warning),
        None => talk.detail(&remark.to_string()),
    }
}
