//! The text of a program.

use crate::settings::Program;
use std::io::{self, Write};

/// Writes the listing of all code.
// connect: hartrace_analyze::listing for each of `program.elf`, with
// `program.isa` where the settings say it (its origin is a flag or a file) and
// the file's own otherwise. `file.base` and `program.raw` must be listed too,
// or refused; never left out silently. Until then: where the code is.
pub(crate) fn write(program: &Program, out: &mut dyn Write) -> io::Result<()> {
    if let Some(isa) = program.isa {
        writeln!(out, "# {isa}")?;
    }
    for elf in &program.elf {
        let name = elf.file.file.display();
        writeln!(out, "\n{name}: {} bytes", elf.bytes.len())?;
        let base = elf.file.base.unwrap_or(0);
        for section in &elf.info.code {
            let start = section.address.wrapping_add(base);
            let end = start.wrapping_add(section.size);
            writeln!(
                out,
                "{start:016x}..{end:016x} {}",
                section.name.escape_debug()
            )?;
        }
    }
    for raw in &program.raw {
        writeln!(out, "\n{}:", raw.file.file.display())?;
        let start = raw.file.base;
        let end = start.wrapping_add(raw.bytes.len() as u64);
        writeln!(out, "{start:016x}..{end:016x}")?;
    }
    Ok(())
}
