//! The specification clause by clause, over the public interface: each
//! sentence of the draft 0.1.4 and of the ratified 1.0 that can be tested has
//! a test here or beside the code, named in docs/ctr-clauses.md.
//!
//! Software is a [`common::Software`]: it knows CSR numbers and bits, as a
//! program does, and nothing of the types of the crate.

// All of this is a test, its helpers too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod access;
mod clear;
mod common;
mod controls;
mod cycles;
mod depths;
mod entries;
mod external;
mod filters;
mod freeze;
mod interface;
mod stack;
mod status;
mod table;
mod transitions;
