//! A RISC-V instruction-set simulator.

#![forbid(unsafe_code)]

mod access;
mod bus;
mod clint;
mod code;
mod config;
mod cost;
mod cpu;
mod csr;
#[cfg(test)]
mod edges;
mod exec;
pub mod fdt;
pub mod float;
mod hart;
pub mod host;
mod machine;
mod memory;
mod mmu;
mod model;
mod pmp;
mod program;
mod system;
mod width;

pub use config::{Config, ConfigError, Platform};
pub use cost::Costs;
pub use machine::{LoadError, Machine, Stop};
pub use memory::{Memory, MemoryError, Region};
pub use program::{Program, ProgramError, Segment};
