//! The files that a command reads and writes.

use crate::args;
use crate::failure::Failure;
use crate::talk::clean_up_on_signal;
use hartrace_capture::config::Config;
use hartrace_capture::input::is_stdin;
use hartrace_capture::output::Output;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::fs;
use std::path::{Path, PathBuf};

/// Opens an output before the work starts; none of `inputs` may be the same
/// file.
pub(crate) fn create<'a>(
    path: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<Output, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Output::create(path)?);
    }
    if let Ok(target) = fs::canonicalize(path) {
        // A device may well be read and written.
        let same =
            |input: &&Path| fs::canonicalize(input).is_ok_and(|p| p == target && p.is_file());
        if let Some(input) = inputs.into_iter().find(same) {
            let message = format!("the output would replace the input `{}`", input.display());
            return Err(Diagnostic::new(Code::OutputIsInput, message)
                .help("give the output another name")
                .into());
        }
    }
    clean_up_on_signal();
    Ok(Output::create(path)?)
}

/// Standard input can be read once only.
pub(crate) fn one_stdin<'a>(names: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    match names.into_iter().filter(|n| is_stdin(n)).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::Usage(
            "`-` is given more than once, but standard input can be read only once",
        )),
    }
}

/// The files a configuration names.
pub(crate) fn inputs(config: &Config) -> impl Iterator<Item = &Path> + Clone {
    let program = &config.program;
    let elf = program.elf.iter().flat_map(|s| &s.value);
    let raw = program.raw.iter().flat_map(|s| &s.value);
    let code = program.code.iter().flat_map(|s| &s.value);
    elf.map(|f| f.file.as_path())
        .chain(raw.map(|f| f.file.as_path()))
        .chain(code.map(PathBuf::as_path))
}

/// The configuration files that were typed.
pub(crate) fn configs(program: &args::Program) -> impl Iterator<Item = &Path> {
    program.config.iter().map(PathBuf::as_path)
}
