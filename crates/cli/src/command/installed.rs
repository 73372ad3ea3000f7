//! Commands that are programs of their own, started as cargo starts its subcommands.

use crate::failure::Failure;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, exit};

/// Starts `hartrace-NAME` with these arguments, and ends as it ends.
pub(crate) fn run(name: &str, args: &[OsString]) -> Result<(), Failure> {
    let file = format!("hartrace-{name}{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok();
    let beside = beside.as_deref().and_then(|path| path.parent());
    let beside = beside.map(|folder| folder.join(&file));
    // A name without a folder is looked up on the PATH.
    let found = beside.filter(|path| path.is_file());
    let mut command = Command::new(found.unwrap_or_else(|| PathBuf::from(&file)));
    match command.args(args).status() {
        // Ended by a signal: as a shell reports it.
        Ok(status) => exit(status.code().unwrap_or(130)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(absent(name).into()),
        Err(error) => {
            let message = format!("cannot start `{file}`: {error}");
            Err(Diagnostic::new(Code::NotInstalled, message).into())
        }
    }
}

fn absent(name: &str) -> Diagnostic {
    let message = format!("`hartrace {name}` needs the program `hartrace-{name}`");
    Diagnostic::new(Code::NotInstalled, message)
        .note("it is neither beside `hartrace` nor on the PATH")
        .help(format!(
            "in the sources of hartrace, run `cargo install --path engine/{name}`"
        ))
}
