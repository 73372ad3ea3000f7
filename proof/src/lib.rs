//! Truth: generators, differential drivers, benches and long runs.

#![forbid(unsafe_code)]

pub mod bench;
pub mod generate;
pub mod identity;
