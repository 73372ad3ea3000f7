//! `hartrace export`: traces as Parquet tables.

use clap::Parser;
use hartrace_export::talk::{end_on_signal, ended, failed, interrupted, progress, say, warning};
use hartrace_export::{Export, Outcome, Report, args, traces};
use hartrace_print::diagnostic::{Code, Severity};
use hartrace_tables::{Error, Table, TraceSource};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

const EXAMPLES: &str = "\
Each table is a folder with a Parquet file for each trace and hart, which DuckDB, Polars, PyArrow \
and Spark read as they are. docs/tables.md has the columns. A trace that is finished is not \
exported again; one that is damaged has rows in `gaps`.

Examples:
  hartrace export run.ntrace -o tables
  hartrace export regression/ -o tables --threads 16
  hartrace export --list nightly.txt -e prog.elf -o tables --tables calls,traps
  hartrace sql \"SELECT function, count(*) FROM calls GROUP BY 1\" tables";

/// Write traces as Parquet tables
#[derive(Debug, Parser)]
#[command(name = "hartrace export", bin_name = "hartrace export", version)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
struct Args {
    /// Traces, and folders with traces
    #[arg(value_name = "TRACE|DIR")]
    traces: Vec<PathBuf>,
    /// File with the name of a trace in each line, and its program after a tab; `-` is stdin
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Folder for the tables
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Tables to write, or `all` [default: all but runs and messages, which take longest]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = tables)]
    tables: Vec<Chosen>,
    /// Number of traces exported at the same time [default: the number of cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Fail if a trace has gaps
    #[arg(long)]
    strict: bool,
    /// Print only errors on stderr
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    program: args::Program,
}

#[derive(Clone, Copy, Debug)]
enum Chosen {
    All,
    One(Table),
}

fn tables(name: &str) -> Result<Chosen, String> {
    match Table::from_name(name) {
        Some(table) => Ok(Chosen::One(table)),
        None if name == "all" => Ok(Chosen::All),
        None => {
            let names = Table::ALL.map(Table::name);
            Err(format!("write `all`, or some of {}", names.join(", ")))
        }
    }
}

impl Args {
    fn tables(&self) -> Vec<Table> {
        if self.tables.is_empty() {
            return Export::USUAL.to_vec();
        }
        let wanted = |table: &Table| {
            let mut chosen = self.tables.iter();
            chosen.any(|chosen| match chosen {
                Chosen::All => true,
                Chosen::One(one) => one == table,
            })
        };
        Table::ALL.into_iter().filter(wanted).collect()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    end_on_signal();
    match run(&args) {
        Ok(code) => code,
        Err(error) => failed(&error.0),
    }
}

/// What has been done so far, by all threads.
#[derive(Default)]
struct Shared {
    report: Report,
    /// The exit code of the first trace that could not be exported.
    failed: Option<Code>,
    /// Nothing can be written: the next trace would fail in the same way.
    is_over: bool,
}

fn run(args: &Args) -> Result<ExitCode, Error> {
    let sources = traces(&args.traces, args.list.as_deref(), &args.program.given())?;
    let export = Export::new(&args.output, args.tables())?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.unwrap_or(cores).clamp(1, sources.len().max(1));
    let (next, shared) = (AtomicUsize::new(0), Mutex::new(Shared::default()));
    let work = || {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            if interrupted() {
                return;
            }
            let mut done = export.trace(source, &interrupted);
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if shared.is_over && done.is_err() {
                // The other thread has said so.
                done = Ok(None);
            }
            note(args, &mut shared, (source, sources.len()), done);
            if shared.is_over {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    if !args.quiet {
        progress("");
    }
    if interrupted() {
        return Ok(ended());
    }
    let mut shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Report {
        new, old, failed, ..
    } = shared.report;
    shared.report.left = (sources.len() as u64).saturating_sub(new + old + failed);
    if !args.quiet {
        say(&shared.report.text());
    }
    let strict = (args.strict && shared.report.damaged > 0).then_some(Code::Gaps);
    let code = shared.failed.or(strict);
    Ok(code.map_or(ExitCode::SUCCESS, |code| ExitCode::from(code.exit())))
}

/// Takes note of what became of a trace.
fn note(
    args: &Args,
    shared: &mut Shared,
    (source, all): (&TraceSource, usize),
    outcome: Result<Option<Outcome>, Error>,
) {
    match outcome {
        Ok(Some(outcome)) => {
            shared.report.add(&outcome);
            if !args.quiet {
                outcome.warnings.iter().for_each(warning);
            }
        }
        Ok(None) => {}
        Err(Error(diagnostic)) => {
            let diagnostic = diagnostic.note(format!("the trace is `{}`", source.name));
            shared.report.failed += 1;
            shared.failed.get_or_insert(diagnostic.code);
            shared.is_over |= matches!(diagnostic.code, Code::CannotWrite | Code::CannotCreate);
            say(&diagnostic.render(Severity::Error));
        }
    }
    if !args.quiet {
        let Report {
            new, old, failed, ..
        } = shared.report;
        progress(&format!("{} of {all} traces", new + old + failed));
    }
}
