//! `hartrace scheduler`.

use crate::logs;
use crate::slots::Slots;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use hartrace_export::talk::say;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_sql::{MESSAGE, PlanCodec, session_state};
use hartrace_tables::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

pub(crate) const EXAMPLES: &str = "\
The scheduler divides the queries of `hartrace sql --scheduler` among its executors. It opens no \
traces, and it has no authentication: bind it to an address that only trusted machines reach. \
docs/guide/cluster.md explains how to run a cluster.

Examples:
  hartrace scheduler
  hartrace scheduler --bind 10.0.0.1:50050";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on; port 0 is any that is free
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,
    /// Name by which executors reach this machine [default: the address of --bind]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Seconds without a sign of life after which an executor is lost
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u64).range(2..))]
    executor_timeout: u64,
    /// Print what happens
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) async fn run(args: &Args) -> Result<(), Error> {
    logs::print(args.verbose);
    let listener = TcpListener::bind(args.bind).await;
    let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        let message = format!("cannot listen on {}: {error}", args.bind);
        Diagnostic::new(Code::NoScheduler, message).help("choose another address with --bind")
    })?;
    let host = args
        .host
        .clone()
        .unwrap_or_else(|| address.ip().to_string());
    let config = SchedulerConfig {
        external_host: host,
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: args.executor_timeout,
        expire_dead_executor_interval_seconds: (args.executor_timeout / 5).max(1),
        // The client of a query without any executor does not wait that long.
        no_executors_grace_period_seconds: args.executor_timeout.max(60),
        // Each executor that is lost may cost one.
        stage_max_failures: 16,
        grpc_server_max_decoding_message_size: MESSAGE,
        grpc_server_max_encoding_message_size: MESSAGE,
        grpc_client_max_message_size: MESSAGE,
        // Clients read answers through the scheduler: they need not reach the executors.
        enable_embedded_flight_proxy: true,
        override_session_builder: Some(Arc::new(session_state)),
        override_physical_codec: Some(Arc::new(PlanCodec::new())),
        ..SchedulerConfig::default()
    };
    let serve = async {
        let usual = BallistaCluster::new_from_config(&config).await?;
        let slots = Slots::new(usual.cluster_state());
        let cluster = BallistaCluster::new(Arc::new(slots), usual.job_state());
        let config = Arc::new(config);
        let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config);
        let scheduler = scheduler.await?;
        say(&format!("scheduler at {address}"));
        start_grpc_service_with_listener(listener, scheduler).await
    };
    tokio::select! {
        ended = serve => ended.map_err(|error| {
            Diagnostic::new(Code::NoScheduler, format!("the scheduler ended: {error}")).into()
        }),
        () = crate::executor::stopped() => Ok(()),
    }
}
