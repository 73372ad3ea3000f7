//! `hartrace scheduler` and `hartrace executor`: a cluster that runs the queries of
//! `hartrace sql --scheduler`.

mod executor;
mod graph;
mod logs;
mod scheduler;
mod slots;

use clap::{Parser, Subcommand};
use hartrace_export::talk::failed;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::Error;
use std::process::ExitCode;

/// Run SQL queries over traces on several machines
#[derive(Debug, Parser)]
#[command(
    name = "hartrace",
    bin_name = "hartrace",
    version,
    max_term_width = 100
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Divide queries among executors
    #[command(version, after_help = scheduler::EXAMPLES)]
    Scheduler(scheduler::Args),
    /// Run parts of queries for a scheduler
    #[command(version, after_help = executor::EXAMPLES)]
    Executor(executor::Args),
}

/// The stack of a thread: plans are walked recursively.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    match run(&Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error(diagnostic)) => failed(&diagnostic),
    }
}

fn run(command: &Command) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()
        .map_err(|error| {
            let message = format!("cannot start threads: {error}");
            Diagnostic::new(Code::HostMemory, message)
        })?;
    let ended = runtime.block_on(async {
        match command {
            Command::Scheduler(args) => scheduler::run(args).await,
            Command::Executor(args) => executor::run(args).await,
        }
    });
    // A task that still decodes does not keep the program alive.
    runtime.shutdown_background();
    ended
}
