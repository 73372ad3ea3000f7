//! `hartrace sql`: queries over traces.

mod output;
mod shell;

use clap::{Parser, ValueEnum};
use datafusion::error::DataFusionError;
use hartrace_export::talk::{failed, say};
use hartrace_export::{args, traces};
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_sql::{Carried, Cluster, Session};
use hartrace_tables::{Error, TraceSource};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

const EXAMPLES: &str = "\
The tables runs, calls, traps, accesses, gaps, messages, functions, lines and branches are those \
of the given traces, folders with traces, or exports; calls('FILE') and so on name a trace in the \
query. docs/tables.md has the columns, docs/guide/queries.md twenty questions and their queries. \
symbol(pc), source_line(pc) and demangle(name) are known besides the functions of DataFusion.

Without a query, they are read from stdin, each up to a semicolon. EXPLAIN ANALYZE shows how much \
of the traces was decoded: the first query of a large trace makes an index of it, with which \
later ones skip what they do not need.

Examples:
  hartrace sql \"SELECT function, count(*) FROM calls('run.ntrace') GROUP BY function\"
  hartrace sql \"SELECT * FROM traps ORDER BY begin LIMIT 10\" run.ntrace -e prog.elf
  hartrace sql regression/ < questions.sql
  hartrace sql \"SELECT trace, max(cycles) FROM calls GROUP BY trace\" tables -f csv -o t.csv";

/// Query traces with SQL
#[derive(Debug, Parser)]
#[command(name = "hartrace sql", bin_name = "hartrace sql", version)]
#[command(after_help = EXAMPLES, max_term_width = 100)]
struct Args {
    /// The query, and traces, folders with traces or exports (made by `hartrace export`)
    #[arg(value_name = "QUERY|TRACE|DIR")]
    words: Vec<String>,
    /// Another trace, with the name it has in the column `trace`; repeatable
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    trace: Vec<(String, PathBuf)>,
    /// File with the name of a trace in each line, and its program after a tab
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Number of decoding threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Run queries on the cluster of this scheduler (`hartrace scheduler`)
    #[arg(long, value_name = "HOST:PORT")]
    scheduler: Option<String>,
    /// Number of parts of a query on a cluster: at least the cores of all executors
    #[arg(long, value_name = "N", default_value = "16", requires = "scheduler")]
    partitions: usize,
    #[command(flatten)]
    program: args::Program,
}

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// JSON lines: one object per row
    Json,
    /// A Parquet file; requires -o
    Parquet,
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok((name.to_owned(), file.into()))
        }
        _ => Err("write NAME=FILE".to_owned()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            say(&format!(
                "error: {message}\n\nFor more information, try '--help'."
            ));
            ExitCode::from(2)
        }
        Err(Failure::Diagnostic(diagnostic)) => failed(&diagnostic),
        Err(Failure::Carried(carried)) => {
            say(&carried.text);
            ExitCode::from(carried.code.exit())
        }
    }
}

/// How a query ends without success.
enum Failure {
    /// The reader closed the output.
    ClosedPipe,
    /// Arguments that do not go together.
    Usage(String),
    /// An error that comes from a cluster.
    Carried(Box<Carried>),
    /// Anything else.
    Diagnostic(Box<Diagnostic>),
}

impl From<Error> for Failure {
    fn from(Error(diagnostic): Error) -> Failure {
        Failure::Diagnostic(diagnostic)
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        Failure::Diagnostic(Box::new(diagnostic))
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Failure {
        match error {
            DataFusionError::External(inner) if inner.is::<Carried>() => match inner.downcast() {
                Ok(carried) => Failure::Carried(carried),
                Err(inner) => Failure::from(DataFusionError::External(inner)),
            },
            error => Failure::Diagnostic(Box::new(diagnosed(error))),
        }
    }
}

/// An error of a query: ours, which comes through the engine, or one of the engine.
fn diagnosed(error: DataFusionError) -> Diagnostic {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours.0,
            Err(other) => Diagnostic::new(Code::BadQuery, other.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            diagnosed(*inner)
        }
        DataFusionError::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
            Ok(inner) => diagnosed(inner),
            Err(shared) => Diagnostic::new(Code::BadQuery, plain(&shared)),
        },
        other => Diagnostic::new(Code::BadQuery, plain(&other))
            .help("`SHOW TABLES` and `DESCRIBE calls` list tables and columns"),
    }
}

fn plain(error: &DataFusionError) -> String {
    error.strip_backtrace()
}

/// What the words of the command line are.
struct Words {
    query: Option<String>,
    exports: Vec<PathBuf>,
    inputs: Vec<PathBuf>,
}

/// Files and folders are inputs; the other word is the query.
fn sort_words(words: &[String]) -> Result<Words, Failure> {
    let mut sorted = Words {
        query: None,
        exports: Vec::new(),
        inputs: Vec::new(),
    };
    for word in words {
        let path = Path::new(word);
        let is_text = word.contains(char::is_whitespace);
        if Session::is_export(path) {
            sorted.exports.push(path.to_path_buf());
        } else if path.exists() || !is_text {
            // A single word is no query: if it is no file either, opening it says so.
            sorted.inputs.push(path.to_path_buf());
        } else if sorted.query.replace(word.clone()).is_some() {
            let message = format!("there are two queries, or `{word}` is not a file");
            return Err(Failure::Usage(message));
        }
    }
    Ok(sorted)
}

fn run(args: &Args) -> Result<(), Failure> {
    let Words {
        query,
        exports,
        inputs,
    } = sort_words(&args.words)?;
    let given = args.program.given();
    if args.format == Format::Parquet && args.output.as_os_str() == "-" {
        return Err(Failure::Usage("-f parquet requires -o FILE".to_owned()));
    }
    let is_object = |input: &Path| input.starts_with("s3:");
    let files = inputs.iter().filter(|input| !is_object(input));
    for input in files.filter(|input| !input.exists()) {
        // The message of a file that is not there.
        TraceSource::new(input, &given).open("sql").map(drop)?;
    }
    let mut sources = traces(&inputs, args.list.as_deref(), &given)?;
    for (name, file) in &args.trace {
        sources.push(TraceSource {
            name: name.clone(),
            ..TraceSource::new(file, &given)
        });
    }
    if !exports.is_empty() && !sources.is_empty() {
        let message = "give traces or exports: a table cannot come from both";
        return Err(Failure::Usage(message.to_owned()));
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.unwrap_or(cores);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .enable_all()
        .build()
        .map_err(|error| {
            let message = format!("cannot start threads: {error}");
            Failure::Diagnostic(Box::new(Diagnostic::new(Code::HostMemory, message)))
        })?;
    let out = output::Destination {
        format: args.format,
        path: &args.output,
    };
    runtime.block_on(async {
        let cluster = match &args.scheduler {
            Some(address) => Some(Cluster::connect(address).await?),
            None => None,
        };
        let session = match &cluster {
            Some(cluster) => Session::on_cluster(&given, args.partitions, cluster.clone())?,
            None => Session::new(&given, threads),
        };
        match exports.is_empty() {
            true if sources.is_empty() => {}
            true => session.add_traces(sources)?,
            false => session.add_exports(&exports)?,
        }
        let work = async {
            match query {
                Some(query) => output::write(&session, &query, &out).await,
                None => shell::run(&session, &out).await,
            }
        };
        match &cluster {
            Some(cluster) => until_interrupted(work, cluster).await,
            None => work.await,
        }
    })
}

/// A query on a cluster does not end with this process.
async fn until_interrupted(
    work: impl Future<Output = Result<(), Failure>>,
    cluster: &Cluster,
) -> Result<(), Failure> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => {
            cluster.cancel().await;
            let message = "interrupted; the query was cancelled";
            Err(Failure::Diagnostic(Box::new(Diagnostic::new(Code::Interrupted, message))))
        }
    }
}

/// All of standard input.
fn read_stdin() -> std::io::Result<String> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}
