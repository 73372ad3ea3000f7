//! Builds a machine from the settings and loads the program.

use crate::args;
use crate::args::{MachineName, Run, YesNo};
use crate::diagnostic::{Code, Diagnostic, Failure, damaged_elf};
use crate::settings::{self, Elf};
use crate::talk::Talk;
use hartrace_analyze::Symbols;
use hartrace_capture::config::{
    COSTS, Config, Hart, Machine as MachineSetting, Origin, Program as ProgramConfig, Setting,
};
use hartrace_capture::memory::MemoryRange;
use hartrace_capture::program::{ElfFile, parse_address};
use hartrace_capture::{elf_info, input};
use hartrace_hart::host::Host;
use hartrace_hart::{
    Config as HartConfig, ConfigError, LoadError, Machine, MemoryError, Platform, Program,
    ProgramError, Region,
};
use hartrace_isa::{Isa, Xlen};

/// The settings in force, as far as they do not depend on the program.
pub(crate) fn settings(args: &Run, talk: &Talk) -> Result<Config, Failure> {
    let machine = &args.machine;
    let typed = args::Program {
        isa: machine.isa.clone(),
        config: machine.config.clone(),
        ..args::Program::default()
    };
    let below = settings::resolve(&[], &typed, talk)?;
    let named = args.program.clone().map(|file| ElfFile {
        file,
        base: None,
        identity: None,
    });
    let flags = Config {
        program: ProgramConfig {
            elf: named.map(|elf| Setting::flag(vec![elf], "PROG")),
            ..ProgramConfig::default()
        },
        hart: Hart {
            max_insns: args.max_insns.map(|n| Setting::flag(n, "--max-insns")),
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
    Elf::read(file).map_err(|error| settings::named_in(origin, error.into()))
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
        semihosting: value(&mut hart.semihosting, default.semihosting),
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
    let xlen = match elf.info.bits {
        32 => Xlen::Rv32,
        _ => Xlen::Rv64,
    };
    let mut hart = complete(&mut config.hart, xlen);
    let isa = config.program.isa.get_or_insert(Setting::default(hart.isa));
    hart.isa = isa.value.clone();
    hart.ctr = config.ctr.implementation(xlen)?;
    hart.predictor = config.ctr.predictor();
    let bad_isa = |error| crate::diagnostic::bad_isa(&isa.value, &error);
    let parsed = Isa::parse(&isa.value).map_err(bad_isa)?;
    settings::check_width(parsed, &isa.origin, std::slice::from_ref(elf))?;
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

/// Why a machine cannot be built.
fn bad_config(config: &HartConfig, error: &ConfigError) -> Diagnostic {
    let message = error.to_string();
    match error {
        ConfigError::Isa(_) => Diagnostic::new(Code::BadIsa, message),
        ConfigError::Unsupported(_) => Diagnostic::new(Code::UnsupportedIsa, message)
            .help("remove these extensions from --isa; a program that uses them traps"),
        ConfigError::Memory(MemoryError::TooLarge(_)) => Diagnostic::new(Code::HostMemory, message)
            .help(
                "choose a smaller size with \
                --memory BASE:SIZE",
            ),
        ConfigError::Memory(MemoryError::Overlap(one, other)) => {
            let given = |region: &Region| config.memory.contains(region);
            let diagnostic = Diagnostic::new(Code::BadMemory, message);
            match given(one) && given(other) {
                true => diagnostic,
                false => diagnostic.note(taken(config)),
            }
            .help("move the memory with --memory BASE:SIZE")
        }
        ConfigError::Memory(_) => Diagnostic::new(Code::BadMemory, message).help(
            "write --memory BASE:SIZE, such as 0x80000000:256M; hexadecimal numbers start with 0x",
        ),
        ConfigError::Clock | ConfigError::Cost | ConfigError::Records(_) => {
            Diagnostic::new(Code::ConfigValue, message)
        }
    }
}

/// Where memory cannot be.
fn taken(config: &HartConfig) -> &'static str {
    match config.platform {
        Platform::Virt => "the CLINT is at 0x2000000",
        Platform::Spike => "the boot ROM is at 0x1000 and the CLINT at 0x2000000",
    }
}

/// The program in an ELF file.
pub(crate) fn program(elf: &Elf) -> Result<Program, Failure> {
    Program::from_elf(&elf.bytes).map_err(|error| {
        let path = elf.file.file.as_path();
        let message = format!("{} is {error}", input::name(path));
        match error {
            ProgramError::NotElf => damaged_elf(path, "its program headers cannot be read"),
            ProgramError::Machine(_) => Diagnostic::new(Code::WrongMachine, message),
            ProgramError::BigEndian => Diagnostic::new(Code::BigEndian, message),
            ProgramError::NotExecutable => Diagnostic::new(Code::NotLinked, message),
            ProgramError::Empty => {
                let message = format!("{}: {error}", input::name(path));
                Diagnostic::new(Code::NotLinked, message).help("give the linked program")
            }
            ProgramError::Dynamic => user_program(elf).unwrap_or_else(|| {
                let message = format!("{} is {error}", input::name(path));
                Diagnostic::new(Code::NotBareMetal, message)
            }),
        }
        .into()
    })
}

/// A program that looks like one for an operating system.
fn user_program(elf: &Elf) -> Option<Diagnostic> {
    let why = elf_info::user_program(&elf.bytes)?;
    let name = input::name(&elf.file.file);
    let message =
        format!("{name} looks like a Linux user program, which needs an operating system");
    Some(
        Diagnostic::new(Code::NotBareMetal, message)
            .note(why)
            .note("the hart runs bare-metal programs: they set up the stack and handle traps themselves")
            .help("build it for bare metal (-nostartfiles and a linker script), or log it with a simulator that runs user programs and use `hartrace encode`"),
    )
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

/// Why a program cannot be loaded.
fn bad_load(
    elf: &Elf,
    config: &HartConfig,
    program: &[MemoryRange],
    error: &LoadError,
) -> Diagnostic {
    let message = format!("{}: {error}", input::name(&elf.file.file));
    match error {
        LoadError::Width { .. } => Diagnostic::new(Code::WidthMismatch, message),
        LoadError::Outside { ram, .. } => {
            let ram: Vec<MemoryRange> = ram.iter().map(range).collect();
            let memory = MemoryRange::holding(program, &ram);
            let flags: Vec<String> = memory
                .iter()
                .map(|range| format!("--memory {range}"))
                .collect();
            if let Some(user) = user_program(elf) {
                let flags = flags.join(" ");
                return user.note(format!("if it is bare metal, add memory: {flags}"));
            }
            let diagnostic = Diagnostic::new(Code::OutsideMemory, message)
                .note("the whole program, and its stack, must be in memory");
            let possible = HartConfig {
                memory: memory.iter().map(region).collect(),
                ..config.clone()
            };
            match possible.validate() {
                Ok(_) => diagnostic.help(format!("add memory there: {}", flags.join(" "))),
                Err(_) => diagnostic.note(taken(config)).help(
                    "link it for other addresses, or choose memory that does not overlap \
                        these",
                ),
            }
        }
        LoadError::Misaligned { .. } => Diagnostic::new(Code::BadEntry, message)
            .help("give the start with --entry: an even address or a symbol"),
        LoadError::Entry { .. } => Diagnostic::new(Code::EntryOutside, message)
            .help("give the start with --entry ADDR or --entry SYMBOL"),
    }
}

/// A machine that can be built or a reason why not.
pub(crate) fn build(hart: &HartConfig, host: Host) -> Result<Machine, Failure> {
    Ok(Machine::new(hart.clone(), host).map_err(|e| bad_config(hart, &e))?)
}

/// Puts a program into memory.
pub(crate) fn load(
    machine: &mut Machine,
    elf: &Elf,
    program: Program,
    entry: Option<u64>,
) -> Result<(), Failure> {
    let parts: Vec<MemoryRange> = program
        .segments
        .iter()
        .map(|segment| MemoryRange {
            base: segment.addr,
            size: segment.size,
        })
        .collect();
    machine
        .load(program, entry)
        .map_err(|error| bad_load(elf, machine.config(), &parts, &error).into())
}

/// The extensions that a program was built for and the hart does not have.
pub(crate) fn warn_of_missing(elf: &Elf, isa: Isa, talk: &Talk) {
    let built = elf.info.isa.as_deref();
    let Some(built) = built.and_then(|text| Isa::parse_lenient(text).ok()) else {
        return;
    };
    let lacking = built.extensions().filter(|ext| !isa.has(*ext));
    let names: Vec<&str> = lacking.map(|ext| ext.name()).collect();
    if names.is_empty() {
        return;
    }
    let name = input::name(&elf.file.file);
    let message = format!(
        "{name} was built for extensions that the hart does not have: {}",
        names.join(", ")
    );
    talk.warning(
        &Diagnostic::new(Code::MissingExtension, message)
            .note(format!("the hart executes {isa}; other instructions trap"))
            .help("add the extensions with --isa, or build the program without them"),
    );
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
