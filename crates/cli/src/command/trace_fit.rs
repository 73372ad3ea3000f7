//! Whether a trace by these settings can tell what a program does.

use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::settings::{Elf, Raw};
use crate::talk::Talk;
use hartrace_capture::config::{Config, Filter, Ingress};
use hartrace_capture::input;
use hartrace_capture::trace::Settings;
use hartrace_etrace as etrace;
use hartrace_flow::elf_bias;
use hartrace_isa::{Ext, Isa};
use hartrace_tandem as tandem;
use std::path::Path;

/// Codes of exceptions below this are the ones every hart has.
const USUAL_ECAUSE: u8 = 4;

/// Refuses settings by which no decoder could follow the program.
pub(super) fn check(
    settings: &Settings,
    config: &Config,
    isa: Isa,
    (elf, raw): (&[Elf], &[Raw]),
    talk: &Talk,
) -> Result<(), Failure> {
    match settings {
        Settings::Ntrace(_) => Ok(()),
        Settings::Etrace(etrace) => check_etrace(etrace, &config.ingress, isa, (elf, raw), talk),
        Settings::Tandem(tandem) => check_tandem(tandem, config, isa),
    }
}

fn check_tandem(tandem: &tandem::Config, config: &Config, isa: Isa) -> Result<(), Failure> {
    if config.filter != Filter::default() {
        let message = "[filter] does not go with a tandem trace";
        return Err(Diagnostic::new(Code::Contradiction, message)
            .note("such a trace tells every instruction: each depends on those before it")
            .help("leave the section out; absent in [tandem] leaves out parts of the state")
            .into());
    }
    if tandem.xlen != isa.xlen() {
        let (said, bits) = (tandem.xlen.bits(), isa.xlen().bits());
        let message = format!("xlen = {said} in [tandem] does not go with a hart of {bits} bits");
        return Err(Diagnostic::new(Code::Contradiction, message)
            .note(format!("the instruction set is {isa}"))
            .help("leave xlen out: it follows the instruction set")
            .into());
    }
    Ok(())
}

fn check_etrace(
    config: &etrace::Config,
    ingress: &Ingress,
    isa: Isa,
    (elf, raw): (&[Elf], &[Raw]),
    talk: &Talk,
) -> Result<(), Failure> {
    if ingress.all_jumps.as_ref().is_some_and(|s| s.value) {
        let message = "all_jumps = true in [ingress] does not go with E-Trace";
        return Err(Diagnostic::new(Code::Contradiction, message)
            .note("jumps would be told as branches, and a decoder takes them for jumps")
            .help("leave it out: it is a mode of N-Trace")
            .into());
    }
    if config.iaddress_lsb > 1 && isa.has(Ext::Zca) {
        let message = "iaddress_lsb = 2 in [etrace] does not go with compressed instructions";
        return Err(Diagnostic::new(Code::Contradiction, message)
            .note(format!("the instruction set is {isa}"))
            .help("use iaddress_lsb = 1, or say with --isa that there are none")
            .into());
    }
    addresses(config, elf, raw)?;
    if config.ecause_width < USUAL_ECAUSE {
        let width = config.ecause_width;
        let message = format!("ecause_width = {width} in [etrace] cuts the causes of traps");
        let help = "use 4 or more; codes go to 15 on usual harts, and to 63 at most";
        talk.warning(&Diagnostic::new(Code::CutShort, message).help(help));
    }
    Ok(())
}

/// The upper bits that are not traced must repeat the highest one that is.
fn addresses(config: &etrace::Config, elf: &[Elf], raw: &[Raw]) -> Result<(), Failure> {
    let width = u32::from(config.iaddress_width);
    let held = |address: u64| {
        let unused = 64u32.saturating_sub(width);
        let extended = (address.checked_shl(unused).unwrap_or(0)).cast_signed() >> unused;
        config.xlen.wrap(extended.cast_unsigned()) == config.xlen.wrap(address)
    };
    for (path, first, size) in elf.iter().flat_map(code).chain(raw.iter().map(all)) {
        let last = first.wrapping_add(size.saturating_sub(1));
        let Some(address) = [first, last].into_iter().find(|&address| !held(address)) else {
            continue;
        };
        let name = input::name(path);
        let message = format!("iaddress_width = {width} in [etrace] is too small for {name}");
        return Err(Diagnostic::new(Code::Contradiction, message)
            .note(format!(
                "it has code at {address:#x}; the upper bits must all be as bit {}",
                width.saturating_sub(1)
            ))
            .help("leave iaddress_width out for addresses as wide as the program's")
            .into());
    }
    Ok(())
}

/// What may be executed of an ELF file: first address and size of each part.
fn code(elf: &Elf) -> impl Iterator<Item = (&Path, u64, u64)> {
    let base = elf.file.base;
    let bias = base.map_or(0, |base| elf_bias(&elf.bytes, base).unwrap_or(base));
    let parts = elf.info.segments.iter();
    let parts = parts.filter(|s| matches!(s.access, [_, _, true]) && s.file_size > 0);
    parts.map(move |s| {
        let first = s.address.wrapping_add(bias);
        (elf.file.file.as_path(), first, s.file_size)
    })
}

fn all(raw: &Raw) -> (&Path, u64, u64) {
    (&raw.file.file, raw.file.base, raw.bytes.len() as u64)
}
