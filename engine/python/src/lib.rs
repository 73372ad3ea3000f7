//! The compiled part of the Python package `hartrace`: traces as events and Arrow tables.
//!
//! The package itself is in `python/hartrace`; what its users see is documented there.
//!
//! * `trace`: a trace or log with its program.
//! * `table`: a table, given away through the Arrow PyCapsule interface; `stream`: the
//!   batches that a thread decodes for it.
//! * `feed`: what a thread of ours gives to an iterator of Python; `events`,
//!   `instructions` and `messages` are such iterators.
//! * `run`: a program on the built-in hart.
//! * `error`: diagnostics as exceptions.
//!
//! Nothing here holds the interpreter while it decodes or runs, and everything that waits looks
//! for Ctrl-C.

mod error;
mod events;
mod feed;
mod instructions;
mod messages;
mod run;
mod stream;
mod table;
mod trace;

use pyo3::prelude::*;

/// The parts of hartrace that are compiled.
#[pymodule]
mod _hartrace {
    #[pymodule_export]
    use crate::events::{Access, Context, Events, Gap, Mark, Run, Trap};
    #[pymodule_export]
    use crate::instructions::{Instruction, Instructions};
    #[pymodule_export]
    use crate::messages::{Message, Messages};
    #[pymodule_export]
    use crate::run::{Outcome, run_program};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::trace::{Recording, open_recording, table_columns};
}
