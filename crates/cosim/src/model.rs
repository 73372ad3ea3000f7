//! The hart that a core or a trace is checked against.

use crate::{Error, machine};
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::program::{Elf, check_width};
use hartrace_capture::verify::{self, Options, Range, Volatile};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as HartConfig, Machine, fdt};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::{Code, Diagnostic};

/// What comes from the trace or the core: what changes by itself on the machine, unless
/// the settings say otherwise, and what they name.
#[must_use]
pub fn volatile(config: &Config) -> Volatile {
    let defaults = config.verify.default_volatile.as_ref();
    let mut volatile = match defaults.is_none_or(|defaults| defaults.value) {
        true => default_volatile(),
        false => Volatile::nothing(),
    };
    for text in config.verify.volatile.iter().flat_map(|list| &list.value) {
        // They have been looked at.
        let _ = volatile.add(text);
    }
    volatile
}

fn default_volatile() -> Volatile {
    let mut volatile = Volatile::default();
    let (base, size) = fdt::CLINT;
    volatile.add_range(Range { base, size });
    volatile
}

/// Adds what the settings say is not reported.
pub fn add_absent(config: &Config, to: &mut verify::Config) {
    for name in config
        .verify
        .absent
        .iter()
        .flat_map(|said| said.value.names())
    {
        // They are names of elements.
        let _ = to.absent.add(&name);
    }
}

fn no_program() -> Error {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("the built-in hart runs it to check the trace")
        .help("give the program with -e")
        .into()
}

/// The machine for the programs. Volatile memory that it does not have becomes
/// plain memory: what is loaded from there comes from the trace. What was guessed is
/// given to `warn`.
///
/// # Errors
///
/// Settings that make no machine, or not one for these programs.
pub fn configure(
    config: &mut Config,
    elf: &[Elf],
    volatile: &Volatile,
    warn: &mut dyn FnMut(Diagnostic),
) -> Result<(HartConfig, Isa), Error> {
    let Some(first) = elf.first() else {
        return Err(no_program());
    };
    let (mut hart, isa) = machine::configure(config, first)?;
    if let Some(said) = &config.program.isa {
        check_width(isa, &said.origin, elf)?;
        if said.origin == Origin::Default {
            let message = format!("no instruction set is given; assuming {}", said.value);
            let warning = Diagnostic::new(Code::Guessed, message)
                .note("a core with fewer extensions differs in misa, and where it traps");
            warn(warning.help("give the instruction set with --isa"));
        }
    }
    for range in volatile.ranges() {
        hart.add_memory(range.base, range.size);
    }
    Ok((hart, isa))
}

/// The machine with the programs in it, and what the verifier has to know of
/// them. Their output is discarded.
///
/// # Errors
///
/// Programs for which the machine has no memory.
pub fn build(
    hart: &HartConfig,
    elf: &[Elf],
    entry: Option<u64>,
) -> Result<(Machine, Options), Error> {
    let mut machine = machine::build(hart, Host::silent())?;
    let [first, rest @ ..] = elf else {
        return Err(no_program());
    };
    let mut all = machine::program(first)?;
    for elf in rest {
        let program = machine::program(elf)?;
        all.segments.extend(program.segments);
        all.tohost = all.tohost.or(program.tohost);
        all.fromhost = all.fromhost.or(program.fromhost);
    }
    let options = Options {
        tohost: all.tohost,
        fromhost: all.fromhost,
        ..Options::default()
    };
    machine::load(&mut machine, first, &all, entry)?;
    Ok((machine, options))
}
