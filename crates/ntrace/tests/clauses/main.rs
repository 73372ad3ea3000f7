//! The specification clause by clause, over the public interface: each
//! normative statement of N-Trace 1.0.0-rc7 and 1.0 about messages, fields,
//! encoding and decoding has a test here, named in docs/ntrace-clauses.md.

// All of this is a test, its helpers too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod common;
mod corner_cases;
mod decoder;
mod encoder;
mod messages;
mod table;
