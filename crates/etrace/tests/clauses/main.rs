//! The specification clause by clause, over the public interface: each
//! normative or algorithmic statement of the E-Trace 1.1.1-draft and of 2.0
//! about instruction trace and data trace has a test here, named in
//! docs/etrace-clauses.md.

// All of this is a test, its helpers too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod book;
mod common;
mod corner_cases;
mod data;
mod decoder;
mod discovery;
mod encapsulation;
mod encoder;
mod examples;
mod figure;
mod mmacas;
mod modes;
mod packets;
mod parameters;
mod random;
mod readings;
mod table;
