//! Commands that are programs of their own, started as cargo starts its subcommands.

use crate::failure::Failure;
use hartrace_print::diagnostic::{Code, Diagnostic};
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// Starts `hartrace-NAME` with a command of its own, if it has several, and these arguments,
/// and ends as it ends.
pub(crate) fn run(name: &str, command: Option<&str>, args: &[OsString]) -> Result<(), Failure> {
    let shown = command.unwrap_or(name);
    let file = format!("hartrace-{name}{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe().ok();
    let beside = beside.as_deref().and_then(|path| path.parent());
    let beside = beside.map(|folder| folder.join(&file));
    // A name without a folder is looked up on the PATH.
    let found = beside.filter(|path| path.is_file());
    let mut program = Command::new(found.unwrap_or_else(|| PathBuf::from(&file)));
    let error = replace(program.args(command).args(args));
    if error.kind() == io::ErrorKind::NotFound {
        return Err(absent(name, shown).into());
    }
    let message = format!("cannot start `{file}`: {error}");
    Err(Diagnostic::new(Code::NotInstalled, message).into())
}

/// Becomes the program, so that signals reach it. Only returns if it cannot be started.
#[cfg(unix)]
fn replace(program: &mut Command) -> io::Error {
    use std::os::unix::process::CommandExt as _;
    program.exec()
}

/// Runs the program, and ends as it ends. Only returns if it cannot be started.
#[cfg(not(unix))]
fn replace(program: &mut Command) -> io::Error {
    match program.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

fn absent(name: &str, shown: &str) -> Diagnostic {
    let message = format!("`hartrace {shown}` needs the program `hartrace-{name}`");
    Diagnostic::new(Code::NotInstalled, message)
        .note("it is neither beside `hartrace` nor on the PATH")
        .help(format!(
            "in the sources of hartrace, run `cargo install --path engine/{name}`"
        ))
}
