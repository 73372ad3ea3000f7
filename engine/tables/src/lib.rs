//! Traces as tables: the rows of runs, calls, traps, data accesses, gaps and messages of a
//! trace, and of the functions, lines and branches of its program, as Arrow batches.
//!
//! ```no_run
//! use hartrace_tables::{Given, Take, Table, TraceSource, Wanted};
//! use std::ops::ControlFlow;
//!
//! struct Count(usize);
//!
//! impl Take for Count {
//!     fn batch(&mut self, _: Table, _: u32, batch: arrow_array::RecordBatch) -> ControlFlow<()> {
//!         self.0 += batch.num_rows();
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! let source = TraceSource::new("run.ntrace".as_ref(), &Given::default());
//! let opened = source.open("export")?;
//! let mut count = Count(0);
//! opened.read(&Wanted::all([Table::Calls]), &mut count, &mut |_| ())?;
//! println!("{} calls", count.0);
//! # Ok::<(), hartrace_tables::Error>(())
//! ```
//!
//! The layers:
//!
//! * [`Table`]: the tables, their columns and the version of both.
//! * [`TraceSource`]: where a trace or log and its program are; [`Opened`]: both opened.
//! * [`Opened::events`]: what every table of the run is made of.
//! * [`Opened::read`]: a whole trace in one pass, into any number of tables, with its
//!   [`Index`].
//! * [`Index`]: the stretches between synchronisation points; [`Zone`]: what a stretch has;
//!   [`Stop`]: the state with which a reader starts in it.
//! * [`Span`]: a part of a trace as a value; [`Opened::read_part`]: its rows. The rows of all
//!   parts are those of the whole, in the same order.
//! * [`Opened::select`]: some rows of one table.

mod calls;
mod collect;
mod column;
mod error;
mod flow;
mod full;
mod index;
mod messages;
mod names;
mod program;
mod recorded;
mod rows;
mod scan;
mod select;
mod source;
mod table;
mod zone;

pub use collect::{Take, Wanted};
pub use error::Error;
pub use full::Completer;
pub use index::{Index, Stop, Stretch};
pub use recorded::Recorded;
pub use scan::{Read, Span};
pub use select::Selection;
pub use source::{Given, Opened, TraceSource};
pub use table::{ColumnInfo, Projection, TABLE_KEY, Table, VERSION, VERSION_KEY};
pub use zone::{Begins, Bounds, Zone};

#[cfg(test)]
mod tests;
