//! The specification clause by clause, over the public interface: each
//! sentence of the trace protocol of 2018-11-20 that can be tested has a test
//! here or beside the code, named in docs/tandem-clauses.md.

// All of this is a test, its helpers too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;
mod decoder;
mod examples;
mod faults;
mod items;
mod notes;
mod readings;
mod streams;
mod table;
