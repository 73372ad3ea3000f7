//! The `hartrace` command.
//!
//! `args` holds the command line, `settings` resolves it, and each command does
//! its work in `command`. Data goes to stdout, messages to stderr.

#![forbid(unsafe_code)]

mod args;
mod command;
mod failure;
mod files;
mod listing;
mod logs;
mod machine;
mod points;
mod profiling;
mod progress;
mod reporting;
mod session;
mod settings;
mod side_by_side;
mod sink;
mod source;
mod talk;
mod terminal;
mod trace_file;
mod viewing;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use failure::Failure;
use std::process::ExitCode;
use talk::Talk;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // A closed pipe is no reason to complain.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            };
        }
    };
    let talk = Talk::new(&args.talk);
    let done = command::run(&args.command, &talk);
    talk.phase("done");
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has what it wanted: `hartrace ... | head -1`.
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Reported(code)) => ExitCode::from(code.exit()),
        Err(Failure::Usage(message)) => {
            // The usage of the subcommand, not of all of them.
            let mut command = args::Args::command();
            let typed = command.try_get_matches_from_mut(std::env::args_os());
            let name = typed
                .as_ref()
                .ok()
                .and_then(|typed| typed.subcommand_name());
            let error = match name.and_then(|name| command.find_subcommand_mut(name)) {
                Some(command) => command.error(ErrorKind::ArgumentConflict, message),
                None => args::Args::command().error(ErrorKind::ArgumentConflict, message),
            };
            let _ = error.print();
            ExitCode::from(2)
        }
        Err(Failure::Diagnostic(diagnostic)) => {
            talk.error(&diagnostic);
            ExitCode::from(diagnostic.code.exit())
        }
    }
}
