//! A RISC-V instruction-set simulator.

#![forbid(unsafe_code)]

pub mod fdt;
pub mod float;
pub mod host;
