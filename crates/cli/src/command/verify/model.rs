//! The hart that a trace is checked against.

use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::machine;
use crate::settings::{self, Elf};
use crate::talk::Talk;
use hartrace_capture::config::{Config, Origin};
use hartrace_capture::verify::{Options, Range, Volatile};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as HartConfig, Machine, Region, fdt};
use hartrace_isa::Isa;

/// The granularity of memory.
const PAGE: u64 = 4096;

/// What changes by itself on the machine.
pub(super) fn default_volatile() -> Volatile {
    let mut volatile = Volatile::default();
    let (base, size) = fdt::CLINT;
    volatile.add_range(Range { base, size });
    volatile
}

fn no_program() -> Failure {
    Diagnostic::new(Code::NoProgram, "no program is given")
        .note("the hart that the trace is checked against has to run it")
        .help("name the program with -e")
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
                .note("a core that has less differs where it traps, and in misa");
            talk.warning(&warning.help("say which one it is with --isa"));
        }
    }
    for range in volatile.ranges() {
        add_memory(&mut hart, range);
    }
    Ok((hart, isa))
}

/// Gives the machine memory where it has nothing.
fn add_memory(hart: &mut HartConfig, range: &Range) {
    let (clint, rom) = (fdt::CLINT, (hart.boot_rom(), PAGE));
    let ram = hart.memory.iter().map(|region| (region.base, region.size));
    let mut taken: Vec<(u64, u64)> = ram.chain([clint, rom]).collect();
    taken.sort_unstable();
    let mut at = range.base / PAGE * PAGE;
    let last = range.base.saturating_add(range.size - 1) / PAGE * PAGE;
    let mut gaps = Vec::new();
    for (base, size) in taken {
        let end = base.saturating_add(size);
        if base > at && at <= last {
            let to = base.min(last.saturating_add(PAGE));
            gaps.push(Region {
                base: at,
                size: to.saturating_sub(at) / PAGE * PAGE,
            });
        }
        at = at.max(end.div_ceil(PAGE).saturating_mul(PAGE));
    }
    if at <= last {
        gaps.push(Region {
            base: at,
            size: last.saturating_add(PAGE).saturating_sub(at) / PAGE * PAGE,
        });
    }
    hart.memory
        .extend(gaps.into_iter().filter(|gap| gap.size > 0));
}

/// The machine with the programs in it, and what the verifier has to know of
/// them. Nobody hears what they say.
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
    machine::load(&mut machine, &first.file.file, all, entry)?;
    Ok((machine, options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_hart::Platform;
    use hartrace_isa::Xlen;

    #[test]
    fn devices_become_memory_where_there_is_none() {
        let added = |base, size| {
            let mut hart = HartConfig::new(Platform::Virt, Xlen::Rv64);
            let before = hart.memory.len();
            add_memory(&mut hart, &Range { base, size });
            assert!(hart.validate().is_ok(), "{base:#x}");
            let added = hart.memory.split_off(before);
            added.iter().map(|r| (r.base, r.size)).collect::<Vec<_>>()
        };
        assert_eq!(added(0x1000_0000, 0x100), [(0x1000_0000, 0x1000)]);
        assert_eq!(added(0x1000_0ff8, 16), [(0x1000_0000, 0x2000)]);
        assert_eq!(added(0x8000_0000, 0x1000), []);
        assert_eq!(added(0x0200_0000, 0x1_0000), []);
        // Around the CLINT, and up to RAM.
        assert_eq!(
            added(0x01ff_f000, 0xd_0000),
            [(0x01ff_f000, 0x1000), (0x020c_0000, 0xf000)]
        );
        assert_eq!(added(0x7fff_f000, 0x2000), [(0x7fff_f000, 0x1000)]);
        assert_eq!(added(u64::MAX, 1), []);
    }
}
