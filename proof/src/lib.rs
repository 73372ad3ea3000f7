//! Long checks: generators, differential drivers, benchmarks.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

pub mod bench;
pub mod block;
#[cfg(test)]
mod cases;
pub mod commands;
pub mod ctr;
pub mod elf;
pub mod encodings;
pub mod etrace;
pub mod float;
pub mod generate;
pub mod hostile;
pub mod identity;
pub mod linux;
pub mod lockstep;
pub mod model;
pub mod ntrace;
pub mod objdump;
pub mod processes;
pub mod speed;
pub mod tandem;
pub mod torture;
pub mod trace;
pub mod views;
pub mod waves;
