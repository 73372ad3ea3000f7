//! Builds a machine from the settings and loads the program.

use crate::args;
use crate::args::{MachineName, YesNo};
use crate::failure::Failure;
use crate::settings::{self, Elf};
use crate::talk::Talk;
use hartrace_analyze::Symbols;
use hartrace_capture::config::{
    COSTS, Config, ContextSource as ContextSetting, Hart, Machine as MachineSetting, Origin,
    Program as ProgramConfig, Setting,
};
use hartrace_capture::input;
use hartrace_capture::memory::MemoryRange;
use hartrace_capture::program::{ElfFile, parse_address};
use hartrace_hart::host::Host;
use hartrace_hart::{
    Config as HartConfig, ConfigError, ContextSource, Machine, Platform, Program, Region,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_print::diagnostic::hart::{bad_config, bad_load, bad_program};
use hartrace_print::diagnostic::program::{bad_isa, named_in};
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

/// Completes the settings by those of the machine; the machine they make.
pub(crate) fn complete(hart: &mut Hart, xlen: Xlen) -> HartConfig {
    fn value<T: Clone>(setting: &mut Option<Setting<T>>, default: T) -> T {
        setting
            .get_or_insert(Setting::default(default))
            .value
            .clone()
    }
    let platform = match value(&mut hart.machine, MachineSetting::default()) {
        MachineSetting::Virt => Platform::Virt,
        MachineSetting::Spike => Platform::Spike,
    };
    let default = HartConfig::new(platform, xlen);
    let memory = default.memory.iter().map(range).collect();
    let memory = value(&mut hart.memory, memory);
    let mut costs = default.costs;
    for (name, _) in COSTS {
        if let Some(cost) = costs.entry_mut(name) {
            let setting = hart.cost.entry(name).or_insert(Setting::default(*cost));
            *cost = setting.value;
        }
    }
    HartConfig {
        memory: memory.iter().map(region).collect(),
        costs,
        misaligned: value(&mut hart.misaligned, default.misaligned),
        update_ad: value(&mut hart.update_ad, default.update_ad),
        cache_block: value(&mut hart.cache_block, default.cache_block),
        semihosting: value(&mut hart.semihosting, default.semihosting),
        triggers: value(&mut hart.triggers, default.triggers),
        context: match value(&mut hart.context, ContextSetting::Scontext) {
            ContextSetting::Scontext => ContextSource::Scontext,
            ContextSetting::Asid => ContextSource::Asid,
            ContextSetting::Root => ContextSource::Root,
        },
        harts: value(&mut hart.harts, default.harts),
        quantum: value(&mut hart.quantum, default.quantum),
        seed: value(&mut hart.seed, default.seed),
        cycles_per_tick: value(&mut hart.cycles_per_tick, default.cycles_per_tick),
        ..default
    }
}

fn range(region: &Region) -> MemoryRange {
    MemoryRange {
        base: region.base,
        size: region.size,
    }
}

fn region(range: &MemoryRange) -> Region {
    Region {
        base: range.base,
        size: range.size,
    }
}

/// The machine for a program, with the instruction set that is to be; the
/// settings say it all then.
pub(crate) fn configure(config: &mut Config, elf: &Elf) -> Result<(HartConfig, Isa), Failure> {
    configure_for(config, width(elf), std::slice::from_ref(elf))
}

/// The width of a program.
pub(crate) fn width(elf: &Elf) -> Xlen {
    match elf.info.bits {
        32 => Xlen::Rv32,
        _ => Xlen::Rv64,
    }
}

/// The same for programs of this width, of which some may be ELF files.
pub(crate) fn configure_for(
    config: &mut Config,
    xlen: Xlen,
    elf: &[Elf],
) -> Result<(HartConfig, Isa), Failure> {
    let mut hart = complete(&mut config.hart, xlen);
    let isa = config.program.isa.get_or_insert(Setting::default(hart.isa));
    hart.isa = isa.value.clone();
    hart.ctr = config.ctr.implementation(xlen)?;
    hart.predictor = config.ctr.predictor();
    let parsed = Isa::parse(&isa.value).map_err(|error| bad_isa(&isa.value, &error))?;
    settings::check_width(parsed, &isa.origin, elf)?;
    let valid = hart.validate().map_err(|error| {
        let memory = config.hart.memory.as_ref().map(|memory| &memory.origin);
        let (what, origin) = match &error {
            ConfigError::Memory(_) => ("memory", memory),
            _ => ("instruction set", Some(&isa.origin)),
        };
        match origin {
            Some(origin @ Origin::File { .. }) => {
                bad_config(&hart, &error).note(format!("the {what} comes from {origin}"))
            }
            _ => bad_config(&hart, &error),
        }
    })?;
    Ok((hart, valid))
}

/// The program in an ELF file.
pub(crate) fn program(elf: &Elf) -> Result<Program, Failure> {
    Program::from_elf(&elf.bytes).map_err(|error| bad_program(elf, &error).into())
}

/// Where the run starts, if not where the program says.
pub(crate) fn entry(text: Option<&str>, symbols: Option<&Symbols>) -> Result<Option<u64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let numeric = text.starts_with(|c: char| c.is_ascii_digit());
    if let Some(address) = parse_address(text).filter(|_| numeric) {
        return Ok(Some(address));
    }
    let found = symbols.and_then(|symbols| symbols.iter().find(|(_, name)| *name == text));
    found.map(|(address, _)| Some(address)).ok_or_else(|| {
        let message = format!("--entry `{text}` is neither an address nor a symbol of the program");
        Diagnostic::new(Code::BadEntry, message)
            .help(
                "write an address such as 0x80000000, or a symbol; `hartrace disasm` lists \
                the symbols",
            )
            .into()
    })
}

/// A machine that can be built or a reason why not.
pub(crate) fn build(hart: &HartConfig, host: Host) -> Result<Machine, Failure> {
    Ok(Machine::new(hart.clone(), host).map_err(|e| bad_config(hart, &e))?)
}

/// Puts a program into memory.
pub(crate) fn load(
    machine: &mut Machine,
    elf: &Elf,
    program: &Program,
    entry: Option<u64>,
) -> Result<(), Failure> {
    let loaded = machine.load(program.clone(), entry);
    loaded.map_err(|error| bad_load(elf, machine.config(), program, &error).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_hart::Costs;

    #[test]
    fn the_configuration_knows_every_cost() {
        let named: Vec<&str> = COSTS.iter().map(|cost| cost.0).collect();
        let real: Vec<&str> = Costs::default()
            .entries()
            .iter()
            .map(|cost| cost.0)
            .collect();
        assert_eq!(named, real);
        // The least that is taken makes a machine that can be built.
        let mut config = HartConfig::new(Platform::Virt, Xlen::Rv64);
        for (name, least) in COSTS {
            *config.costs.entry_mut(name).unwrap() = *least;
        }
        assert!(config.validate().is_ok());
    }

    #[test]
    fn nothing_said_is_the_usual_machine() {
        for (setting, platform) in [
            (None, Platform::Virt),
            (Some(MachineSetting::Spike), Platform::Spike),
        ] {
            for xlen in [Xlen::Rv32, Xlen::Rv64] {
                let mut hart = Hart {
                    machine: setting.map(Setting::default),
                    ..Hart::default()
                };
                let config = complete(&mut hart, xlen);
                assert_eq!(config, HartConfig::new(platform, xlen));
                // Everything is said now.
                assert_eq!(complete(&mut hart, xlen), config);
                assert_eq!(hart.cost.len(), COSTS.len());
            }
        }
    }
}
