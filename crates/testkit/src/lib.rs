//! Shared test helpers of hartrace, independent of all other crates.
//!
//! * [`Random`]: pseudorandom numbers that are the same on every machine.
//! * [`asm`]: one function per instruction, and [`assemble`] for text with labels.
//! * [`elf_at`], [`elf32_at`]: an ELF file of such code.
//! * [`Case`]: a case of `proof/cases`, one text file each.
//! * [`plain_etrace`]: a second E-Trace decoder, to compare the first with.
//! * [`GhwFile`]: waveforms of GHDL.
//! * [`cuts`], [`pieces`], [`flip_bits`]: bytes cut in every way, and damaged.
//!
//! ```
//! let program = hartrace_testkit::assemble(0x8000_0000, "
//!     loop:  addi a0, a0, -1
//!            bnez a0, loop
//!            ret
//! ").unwrap();
//! assert_eq!(program.bytes.len(), 12);
//! assert_eq!(program.address("loop"), Some(0x8000_0000));
//! ```

#![forbid(unsafe_code)]

pub mod asm;
mod case;
mod cuts;
mod elf;
mod ghw_file;
pub mod plain_etrace;
mod random;

pub use asm::text::{AsmError, Program, assemble};
pub use case::{Case, difference};
pub use cuts::{assert_any_cut, cuts, flip_bits, pieces};
pub use elf::{elf_at, elf32_at};
pub use ghw_file::GhwFile;
pub use random::Random;
