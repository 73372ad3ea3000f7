//! The disassembly of a program.

use crate::args;
use crate::failure::Failure;
use crate::settings::Program;
use crate::talk::Talk;
use hartrace_analyze::{Listing, ListingError, listing, raw_listing};
use hartrace_capture::isa_hint::undecoded;
use hartrace_capture::output::Output;
use hartrace_print::diagnostic::program::damaged_elf;
use hartrace_print::diagnostic::{Code, Diagnostic};

/// Writes the listing of all code, file by file.
pub(crate) fn write(
    args: &args::Disasm,
    program: &Program,
    mut out: Output,
) -> Result<(), Failure> {
    let options = Listing {
        isa: program.given_isa(),
        aliases: !args.no_aliases,
        numeric: args.numeric,
        dialect: args.objdump.dialect(),
        ..Listing::default()
    };
    for elf in &program.elf {
        let options = Listing {
            base: elf.file.base,
            ..options
        };
        let name = elf.file.file.display().to_string();
        match listing(&elf.bytes, &name, &options, &mut out) {
            Ok(()) => {}
            Err(ListingError::Write(error)) => return Err(out.failed(error).into()),
            Err(ListingError::Elf(error)) => {
                return Err(damaged_elf(&elf.file.file, &error.to_string()).into());
            }
        }
    }
    for raw in &program.raw {
        let options = Listing {
            isa: program.isa,
            base: Some(raw.file.base),
            ..options
        };
        let name = raw.file.file.display().to_string();
        let written = raw_listing(&raw.bytes, &name, &options, &mut out);
        written.map_err(|error| out.failed(error))?;
    }
    Ok(out.finish()?)
}

/// Warns about extensions whose instructions are not decoded.
pub(crate) fn warn_of_undecoded(program: &Program, talk: &Talk) {
    let given = program.config.program.isa.as_ref();
    let texts: Vec<&str> = match given.filter(|_| program.given_isa().is_some()) {
        Some(isa) => vec![&isa.value],
        None => {
            let attributes = program.elf.iter().map(|elf| elf.info.isa.as_deref());
            attributes.flatten().collect()
        }
    };
    let mut names: Vec<String> = texts.into_iter().flat_map(undecoded).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return;
    }
    let message = format!(
        "instructions of these extensions are not decoded: {}",
        names.join(", ")
    );
    let note = "they are printed as numbers, where objdump prints names";
    talk.warning(&Diagnostic::new(Code::NotDecoded, message).note(note));
}
