//! RISC-V instructions: their length, their control flow, their text.
//!
//! This crate knows encodings and nothing about traces. It is `no_std`, does
//! not allocate and accepts any bit pattern: an unknown instruction gets its
//! length from its low bits and is treated as sequential.
//!
//! ```
//! use hartrace_isa::{Flow, Isa, Link};
//!
//! let isa = Isa::parse("rv64gc").unwrap();
//! // c.jr ra, which programmers write as `ret`.
//! assert!(matches!(Flow::of(0x8082, isa), Flow::Indirect { link: Link::Return, .. }));
//! ```
//!
//! The layers, from the bits upwards:
//!
//! * [`Isa`]: which instruction set the bits belong to. The same 16 bits are
//!   `c.fsdsp` with one set of extensions and `cm.popret` with another.
//! * [`Op`] and [`Short`]: the instructions, one table row each.
//! * [`encodings`] and [`Encoding`]: those rows as masks and values, for programs
//!   that generate instructions.
//! * [`decode`] and [`Inst`]: an op and its operands; a compressed instruction
//!   becomes the one it stands for and remembers its own name.
//! * [`Text`]: the instruction as GNU objdump writes it, in the [`Style`] asked
//!   for, addresses named by the caller's [`Resolve`]. [`Tracker`] adds the
//!   addresses that pairs such as `auipc` and `addi` make.
//! * [`csr`] and [`attributes`]: register names, and the instruction set recorded
//!   in an ELF file.
//! * [`Flow`]: the only control-flow classification of the workspace, straight
//!   from the bits, cheap enough to run per instruction. [`Itype`], the
//!   instruction type of the trace ingress port, is derived from it.
//!
//! Encodings follow the RISC-V unprivileged and privileged manuals and the
//! ratified extensions named in [`Ext`].

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod attributes;
pub mod csr;
mod decode;
mod encoding;
mod flow;
mod isa;
mod itype;
mod op;
mod reg;
mod text;

pub use decode::{Inst, decode};
pub use encoding::{Encoding, encodings};
pub use flow::{Const, Flow, Link, MRET, SRET, length};
pub use isa::{Ext, Isa, IsaError, Xlen};
pub use itype::{Itype, ItypeTable};
pub use op::{Op, Short};
pub use reg::Reg;
pub use text::{Dialect, Plain, Relative, Resolve, Style, Text, Tracker};
