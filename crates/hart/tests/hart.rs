//! The hart from the outside, clause by clause.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "hart/asm.rs"]
mod asm;
#[path = "hart/bench.rs"]
mod bench;

#[path = "hart/bits.rs"]
mod bits;
#[path = "hart/integer.rs"]
mod integer;
