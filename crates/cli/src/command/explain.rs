//! `hartrace explain`: the manual's section on a diagnostic.

use crate::args;
use crate::failure::Failure;
use crate::files::create;
use hartrace_print::manual::{self, plain};

/// Prints the section of a code, or the list of all codes.
pub(crate) fn run(args: &args::Explain) -> Result<(), Failure> {
    let text = match &args.code {
        Some(section) => {
            let title = format!("{}: {}\n\n", section.code, section.title);
            title + &plain(section.body)
        }
        None => manual::sections()
            .map(|section| format!("{}  {}\n", section.code, section.title))
            .collect(),
    };
    let output = create(&args.output.output, [])?;
    output.write_with(|out| out.write_all(text.as_bytes()))?;
    Ok(())
}
