//! The text of a program.

use crate::args;
use crate::diagnostic::{Code, Diagnostic, Failure, damaged_elf};
use crate::settings::Program;
use crate::talk::Talk;
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

/// Tells which extensions have instructions that are not decoded.
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
        "the instructions of these extensions are not decoded: {}",
        names.join(", ")
    );
    let note = "they appear as `.4byte`, where objdump prints names";
    talk.warning(&Diagnostic::new(Code::NotDecoded, message).note(note));
}

/// The vector and vendor extensions in an ISA string.
fn undecoded(isa: &str) -> Vec<String> {
    let isa = isa.to_ascii_lowercase();
    let letters = isa.strip_prefix("rv32").or(isa.strip_prefix("rv64"));
    let mut names = Vec::new();
    for part in letters.unwrap_or_default().split('_') {
        // Names of several letters may follow the single ones directly.
        let at = part.find(['z', 's', 'x']).unwrap_or(part.len());
        let (singles, name) = part.split_at_checked(at).unwrap_or((part, ""));
        if singles.contains('v') {
            names.push("v".to_owned());
        }
        let vector = name.starts_with("zv") && !name.starts_with("zvl");
        if vector || name.starts_with('x') {
            names.push(without_version(name).to_owned());
        }
    }
    if names.iter().any(|n| n == "v") {
        names.retain(|n| !n.starts_with("zve"));
    }
    names
}

/// `zvbb` of `zvbb1p0`.
fn without_version(name: &str) -> &str {
    let digits = |text: &'_ str| text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let minor = name.get(..digits(name)).unwrap_or(name);
    match minor.strip_suffix('p') {
        Some(major) if major.ends_with(|c: char| c.is_ascii_digit()) => {
            major.get(..digits(major)).unwrap_or(name)
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_and_vendor_extensions() {
        for (isa, names) in [
            ("rv64gc", &[][..]),
            ("rv64imac_zicsr_zvl128b1p0_svinval", &[]),
            ("rv64gcv", &["v"]),
            ("rv64i2p1_m2p0_v1p0_zve32x1p0_zvl32b1p0", &["v"]),
            ("rv32imzve32x1p0_xtheadba1p0", &["zve32x", "xtheadba"]),
            ("RV64GC_Zvbb_Xcv2", &["zvbb", "xcv2"]),
        ] {
            assert_eq!(undecoded(isa), names, "{isa}");
        }
    }
}
