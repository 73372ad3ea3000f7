//! The hart that a trace is checked against.

use crate::failure::Failure;
use crate::machine;
use crate::settings::{self, Elf};
use crate::talk::Talk;
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::verify::{Options, Range, Volatile};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as HartConfig, Machine, fdt};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::{Code, Diagnostic};

/// What changes by itself on the machine.
pub(super) fn default_volatile() -> Volatile {
    let mut volatile = Volatile::default();
    let (base, size) = fdt::CLINT;
    volatile.add_range(Range { base, size });
    volatile
}

fn no_program() -> Failure {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("the built-in hart runs it to check the trace")
        .help("give the program with -e")
        .into()
}

/// The machine for the programs. Volatile memory that it does not have becomes
/// plain memory: what is loaded from there comes from the trace.
pub(super) fn configure(
    config: &mut Config,
    elf: &[Elf],
    volatile: &Volatile,
    talk: &Talk,
) -> Result<(HartConfig, Isa), Failure> {
    let Some(first) = elf.first() else {
        return Err(no_program());
    };
    let (mut hart, isa) = machine::configure(config, first)?;
    if let Some(said) = &config.program.isa {
        settings::check_width(isa, &said.origin, elf)?;
        if said.origin == Origin::Default {
            let message = format!("no instruction set is given; assuming {}", said.value);
            let warning = Diagnostic::new(Code::Guessed, message)
                .note("a core with fewer extensions differs in misa, and where it traps");
            talk.warning(&warning.help("give the instruction set with --isa"));
        }
    }
    for range in volatile.ranges() {
        hart.add_memory(range.base, range.size);
    }
    Ok((hart, isa))
}

/// The machine with the programs in it, and what the verifier has to know of
/// them. Their output is discarded.
pub(super) fn build(
    hart: &HartConfig,
    elf: &[Elf],
    entry: Option<u64>,
) -> Result<(Machine, Options), Failure> {
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
