//! Traces as tables of DataFusion, decoded while a query runs.
//!
//! ```no_run
//! use hartrace_sql::Session;
//! use hartrace_tables::Given;
//!
//! # async fn example() -> datafusion::error::Result<()> {
//! let session = Session::new(&Given::default(), 4);
//! session.add_traces(hartrace_export::traces(&["run.ntrace".into()], None, &Given::default()).unwrap());
//! let query = "SELECT function, count(*) FROM calls GROUP BY function";
//! let batches = session.context().sql(query).await?.collect().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The layers:
//!
//! * [`TraceTable`]: a table over any number of traces; it turns filters into
//!   [`Limits`] and leaves out the stretches that an index excludes.
//! * [`Work`]: a trace or a part of one as a value; [`TraceExec`]: the plan that decodes works,
//!   several at the same time.
//! * [`Session`]: the tables, the table functions and the functions `symbol`, `source_line` and
//!   `demangle`.
//! * [`Cluster`]: a scheduler that runs the queries of a session; [`PlanCodec`]: plans as bytes,
//!   for it and its executors; [`runtime`]: object stores.

mod codec;
mod copies;
mod exec;
mod exported;
mod functions;
mod limits;
mod once;
mod pool;
mod provider;
mod remote;
mod session;
mod store;
mod wire;
mod work;

pub use codec::{PLAN_VERSION, PlanCodec};
pub use exec::TraceExec;
pub use limits::Limits;
pub use provider::TraceTable;
pub use remote::{Cluster, MESSAGE, place, session_state};
pub use session::Session;
pub use store::runtime;
pub use wire::Carried;
pub use work::{Extent, Work};
