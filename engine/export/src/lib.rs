//! Traces as Parquet files: which traces, their tables, and the folder with the files of each.
//!
//! ```no_run
//! use hartrace_export::{Export, traces};
//! use hartrace_tables::Given;
//!
//! let traces = traces(&["runs".into()], None, &Given::default())?;
//! let export = Export::new("tables".as_ref(), Export::USUAL.to_vec())?;
//! for trace in &traces {
//!     if let Some(outcome) = export.trace(trace, &|| false)? {
//!         println!("{}: {} rows", trace.name, outcome.done.rows());
//!     }
//! }
//! # Ok::<(), hartrace_tables::Error>(())
//! ```

pub mod args;
mod column;
mod dictionary;
mod encoding;
mod export;
mod file;
mod list;
mod report;
pub mod talk;
mod writer;

pub use export::{Done, Export, NAMES, Outcome, decoded_name, folder_name};
pub use list::traces;
pub use report::Report;
