//! `hartrace executor`.

use crate::logs;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use hartrace_export::talk::say;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_sql::{MESSAGE, PlanCodec, place, runtime};
use hartrace_tables::Error;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub(crate) const EXAMPLES: &str = "\
An executor opens traces and exports under the paths that `hartrace sql` has, so they are on \
storage that all machines have at the same place, or in an object store (s3://..., with the usual \
variables AWS_*). Executors and scheduler have the same version of hartrace.

Examples:
  hartrace executor
  hartrace executor --scheduler 10.0.0.1:50050 --bind 10.0.0.7 --slots 16";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050", value_parser = address)]
    scheduler: (String, u16),
    /// Address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Name by which other executors and clients reach this machine [default: its address, as
    /// the scheduler sees it]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Port for rows; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value = "0")]
    port: u16,
    /// Port for tasks; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value = "0")]
    task_port: u16,
    /// Parts of queries that run at the same time [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    slots: Option<u16>,
    /// Memory for sorting, joining and grouping, in MiB [default: 70 % of the memory]
    #[arg(long, value_name = "MIB")]
    memory: Option<u64>,
    /// Folder for intermediate rows [default: one in the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Seconds to wait for the scheduler
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    wait: u64,
    /// Print what happens
    #[arg(short, long)]
    verbose: bool,
}

/// Seconds between two signs of life: a few in the shortest time after which a scheduler counts
/// an executor as lost.
const HEARTBEAT: u64 = 1;

fn address(text: &str) -> Result<(String, u16), String> {
    place(text).ok_or_else(|| "write HOST:PORT".to_owned())
}

pub(crate) async fn run(args: &Args) -> Result<(), Error> {
    logs::print(args.verbose);
    reach(args).await?;
    let (port, task_port) = ports(args)?;
    let folder = folder(args)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let slots = args.slots.map_or(cores, usize::from);
    let mut functions = BallistaFunctionRegistry::default();
    for function in PlanCodec::functions() {
        let name = function.name().to_owned();
        functions.scalar_functions.insert(name, Arc::new(function));
    }
    let config = ExecutorProcessConfig {
        bind_host: args.bind.to_string(),
        external_host: args.host.clone(),
        port,
        grpc_port: task_port,
        scheduler_host: args.scheduler.0.clone(),
        scheduler_port: args.scheduler.1,
        vcores: slots,
        work_dir: Some(folder.path().display().to_string()),
        executor_heartbeat_interval_seconds: HEARTBEAT,
        grpc_max_decoding_message_size: MESSAGE,
        grpc_max_encoding_message_size: MESSAGE,
        memory_pool_size: args.memory.map(|size| size.saturating_mul(1 << 20)),
        override_function_registry: Some(Arc::new(functions)),
        override_runtime_producer: Some(Arc::new(|_| Ok(runtime()))),
        override_physical_codec: Some(Arc::new(PlanCodec::new())),
        ..ExecutorProcessConfig::default()
    };
    let bind = args.bind;
    say(&format!("executor at {bind}:{port}, slots={slots}"));
    tokio::select! {
        // It ends by itself at the first signal, when the tasks that it runs are done.
        ended = start_executor_process(Arc::new(config)) => ended.map_err(|error| {
            let message = format!("the executor ended: {error}");
            Diagnostic::new(Code::NoScheduler, message).into()
        }),
        () = stopped_twice() => Ok(()),
    }
}

/// Waits for a second Ctrl-C or request to end.
async fn stopped_twice() {
    stopped().await;
    let mut second = Box::pin(stopped());
    if timeout(Duration::from_secs(1), &mut second).await.is_err() {
        say("waiting for the tasks that run here; a second Ctrl-C or SIGTERM ends at once");
        second.await;
    }
}

/// Waits for the scheduler: an executor may be started at the same time.
async fn reach(args: &Args) -> Result<(), Error> {
    let (host, port) = &args.scheduler;
    let patience = Duration::from_secs(args.wait);
    let mut error = String::from("no answer");
    let tries = async {
        loop {
            match tokio::net::TcpStream::connect((host.as_str(), *port)).await {
                Ok(_) => return,
                Err(why) => error = why.to_string(),
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    match timeout(patience, tries).await {
        Ok(()) => Ok(()),
        Err(_) => {
            let message = format!("cannot reach the scheduler at `{host}:{port}`: {error}");
            Err(Diagnostic::new(Code::NoScheduler, message)
                .help("start it with `hartrace scheduler`, or name another with --scheduler")
                .into())
        }
    }
}

/// The ports that are given, or free ones.
fn ports(args: &Args) -> Result<(u16, u16), Error> {
    let bind = |port| TcpListener::bind((args.bind, port));
    // Both are open at the same time, so they differ.
    let both = bind(args.port).and_then(|first| Ok((first, bind(args.task_port)?)));
    let both = both
        .and_then(|(first, second)| Ok((first.local_addr()?.port(), second.local_addr()?.port())));
    both.map_err(|error| {
        let message = format!("cannot listen on {}: {error}", args.bind);
        Diagnostic::new(Code::NoScheduler, message)
            .help("choose another address with --bind, or other ports")
            .into()
    })
}

/// A folder of its own that is deleted with the executor.
fn folder(args: &Args) -> Result<tempfile::TempDir, Error> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("hartrace-executor-");
    let folder = match &args.work_dir {
        Some(parent) => builder.tempdir_in(parent),
        None => builder.tempdir(),
    };
    folder.map_err(|error| {
        let message = format!("cannot make a folder for intermediate rows: {error}");
        Diagnostic::new(Code::CannotCreate, message)
            .help("choose another with --work-dir")
            .into()
    })
}

/// Waits for Ctrl-C or a request to end.
pub(crate) async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
