//! The text of a program.

use crate::args;
use crate::diagnostic::{Failure, damaged_elf};
use crate::settings::Program;
use hartrace_analyze::{Listing, ListingError, listing, raw_listing};
use hartrace_capture::output::Output;

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
