//! The settings of a machine as they were typed, and the program that runs on it.

use crate::args;
use crate::args::{MachineName, YesNo};
use crate::failure::Failure;
use crate::settings::{self, Elf};
use crate::talk::Talk;
use hartrace_capture::config::{
    Config, Hart, Machine as MachineSetting, Program as ProgramConfig, Setting,
};
use hartrace_capture::input;
use hartrace_capture::program::ElfFile;
pub(crate) use hartrace_cosim::machine::{
    build, complete, configure, configure_for, entry, load, program, width,
};
use hartrace_print::diagnostic::program::named_in;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::path::Path;

/// The settings in force, as far as they do not depend on the program.
pub(crate) fn settings(
    program: Option<&Path>,
    machine: &args::Machine,
    max_insns: Option<u64>,
    talk: &Talk,
) -> Result<Config, Failure> {
    let typed = args::Program {
        isa: machine.isa.clone(),
        config: machine.config.clone(),
        ..args::Program::default()
    };
    let below = settings::resolve(&[], &typed, talk)?;
    let named = program.map(|file| ElfFile {
        file: file.to_path_buf(),
        base: None,
        identity: None,
    });
    let flags = Config {
        program: ProgramConfig {
            elf: named.map(|elf| Setting::flag(vec![elf], "PROG")),
            ..ProgramConfig::default()
        },
        hart: Hart {
            max_insns: max_insns.map(|n| Setting::flag(n, "--max-insns")),
            ..typed_hart(machine)
        },
        ..Config::default()
    };
    Ok(flags.over(below))
}

/// What was typed of the machine.
pub(crate) fn typed_hart(machine: &args::Machine) -> Hart {
    Hart {
        machine: machine.machine.map(|name| {
            let value = match name {
                MachineName::Virt => MachineSetting::Virt,
                MachineName::Spike => MachineSetting::Spike,
            };
            Setting::flag(value, "--machine")
        }),
        memory: Some(machine.memory.clone())
            .filter(|memory| !memory.is_empty())
            .map(|memory| Setting::flag(memory, "--memory")),
        entry: machine
            .entry
            .clone()
            .map(|entry| Setting::flag(entry, "--entry")),
        misaligned: machine
            .misaligned
            .map(|yes| Setting::flag(yes == YesNo::Yes, "--misaligned")),
        ..Hart::default()
    }
}

/// Reads the one program that is to run.
pub(crate) fn read(config: &Config) -> Result<Elf, Failure> {
    let no_program = |message: String| {
        Diagnostic::new(Code::NoProgram, message)
            .help("give one program: hartrace run PROG, or elf in section [program]")
    };
    let Some(Setting { value, origin }) = &config.program.elf else {
        return Err(no_program("no program is given".to_owned()).into());
    };
    let [file] = value.as_slice() else {
        let message = format!(
            "{origin} lists {} programs, but only one can run",
            value.len()
        );
        return Err(no_program(message).into());
    };
    if let Some(base) = file.base {
        let message = format!("{} cannot run at {base:#x}", input::name(&file.file));
        return Err(Diagnostic::new(Code::BadFileSpec, message)
            .note(format!("the base comes from {origin}"))
            .help("leave out the base: a program runs at the address it was linked for")
            .into());
    }
    Elf::read(file).map_err(|error| named_in(origin, error.into()).into())
}
