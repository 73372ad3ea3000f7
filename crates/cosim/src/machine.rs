//! Builds a machine from the settings and loads the program.

use crate::Error;
use hartrace_analyze::Symbols;
use hartrace_capture::config::{
    COSTS, Config, ContextSource as ContextSetting, Hart, Machine as MachineSetting, Origin,
    Setting,
};
use hartrace_capture::memory::MemoryRange;
use hartrace_capture::program::{Elf, check_width, parse_address};
use hartrace_hart::host::Host;
use hartrace_hart::{
    Config as HartConfig, ConfigError, ContextSource, Machine, Platform, Program, Region,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_print::diagnostic::hart::{bad_config, bad_load, bad_program};
use hartrace_print::diagnostic::program::bad_isa;
use hartrace_print::diagnostic::{Code, Diagnostic};

/// Completes the settings by those of the machine; the machine they make.
pub fn complete(hart: &mut Hart, xlen: Xlen) -> HartConfig {
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
///
/// # Errors
///
/// Settings that make no machine, or not one for this program.
pub fn configure(config: &mut Config, elf: &Elf) -> Result<(HartConfig, Isa), Error> {
    configure_for(config, width(elf), std::slice::from_ref(elf))
}

/// The width of a program.
#[must_use]
pub fn width(elf: &Elf) -> Xlen {
    match elf.info.bits {
        32 => Xlen::Rv32,
        _ => Xlen::Rv64,
    }
}

/// The same for programs of this width, of which some may be ELF files.
///
/// # Errors
///
/// Settings that make no machine, or not one for these programs.
pub fn configure_for(
    config: &mut Config,
    xlen: Xlen,
    elf: &[Elf],
) -> Result<(HartConfig, Isa), Error> {
    let mut hart = complete(&mut config.hart, xlen);
    let isa = config.program.isa.get_or_insert(Setting::default(hart.isa));
    hart.isa = isa.value.clone();
    hart.ctr = config.ctr.implementation(xlen)?;
    hart.predictor = config.ctr.predictor();
    let parsed = Isa::parse(&isa.value).map_err(|error| bad_isa(&isa.value, &error))?;
    check_width(parsed, &isa.origin, elf)?;
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
///
/// # Errors
///
/// A file that cannot be loaded.
pub fn program(elf: &Elf) -> Result<Program, Error> {
    Program::from_elf(&elf.bytes).map_err(|error| bad_program(elf, &error).into())
}

/// Where the run starts, if not where the program says.
///
/// # Errors
///
/// A text that is neither an address nor a symbol.
pub fn entry(hart: &Hart, symbols: Option<&Symbols>) -> Result<Option<u64>, Error> {
    let Some(Setting {
        value: text,
        origin,
    }) = &hart.entry
    else {
        return Ok(None);
    };
    let numeric = text.starts_with(|c: char| c.is_ascii_digit());
    if let Some(address) = parse_address(text).filter(|_| numeric) {
        return Ok(Some(address));
    }
    let found = symbols.and_then(|symbols| symbols.iter().find(|(_, name)| *name == text));
    found.map(|(address, _)| Some(address)).ok_or_else(|| {
        let what = "is neither an address nor a symbol of the program";
        let diagnostic = match origin {
            Origin::File { .. } => {
                Diagnostic::new(Code::BadEntry, format!("`entry = \"{text}\"` {what}"))
                    .note(format!("it comes from {origin}"))
            }
            _ => Diagnostic::new(Code::BadEntry, format!("--entry `{text}` {what}")),
        };
        diagnostic
            .help(
                "write an address such as 0x80000000, or a symbol; `hartrace disasm` lists \
                the symbols",
            )
            .into()
    })
}

/// A machine that can be built or a reason why not.
///
/// # Errors
///
/// Settings that make no machine.
pub fn build(hart: &HartConfig, host: Host) -> Result<Machine, Error> {
    Ok(Machine::new(hart.clone(), host).map_err(|e| bad_config(hart, &e))?)
}

/// Puts a program into memory.
///
/// # Errors
///
/// A program for which the machine has no memory.
pub fn load(
    machine: &mut Machine,
    elf: &Elf,
    program: &Program,
    entry: Option<u64>,
) -> Result<(), Error> {
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
