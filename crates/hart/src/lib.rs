//! A RISC-V instruction-set simulator, used as the built-in reference.
//!
//! A [`Machine`] is a hart with memory, devices and a host. It runs bare-metal
//! programs of RV32 and RV64, I M A F D C B Zicsr Zifencei Zicntr Zihpm Zicond
//! Zicbom Zicboz Zicbop Zimop Zawrs Zacas Zabha Zfh Zfa Zbc Zcb Zcmop, in machine,
//! supervisor and user mode, with Sv32, Sv39, Sv48 and Sv57, Sstc, Svinval, Svnapot,
//! Svpbmt and physical memory protection; when the ISA string names them, with Zcmp and
//! Zcmt, Smcsrind, Sscsrind, Smstateen, Sscofpmf, and control transfer records (Smctr,
//! Ssctr). An [`Observer`](hartrace_flow::Observer) receives the steps; what it
//! does not want costs nothing.
//!
//! ```
//! use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
//! use hartrace_hart::host::Host;
//! use hartrace_hart::{Config, Machine, Platform, Program, Segment, Stop};
//! use hartrace_isa::Xlen;
//!
//! /// Counts jumps and taken branches.
//! struct Taken(u64);
//! impl Observer for Taken {
//!     const WANTS: Wants = Wants::TRANSFERS;
//!     fn step(&mut self, _: HartId, _: &Step, _: &Effects) {
//!         self.0 += 1;
//!     }
//! }
//!
//! // li a0, 6; li a1, 0; loop: add a1, a1, a0; addi a0, a0, -1; bnez a0, loop; j .
//! let code = [0x0060_0513u32, 0x0000_0593, 0x00a5_85b3, 0xfff5_0513, 0xfe05_1ce3, 0x0000_006f];
//! // Or Program::from_elf(&bytes)?
//! let program = Program {
//!     xlen: Xlen::Rv64,
//!     entry: 0x8000_0000,
//!     segments: vec![Segment {
//!         addr: 0x8000_0000,
//!         size: 24,
//!         data: code.iter().flat_map(|word| word.to_le_bytes()).collect(),
//!     }],
//!     tohost: None,
//!     fromhost: None,
//! };
//!
//! let config = Config::new(Platform::Virt, program.xlen);
//! let mut machine = Machine::new(config, Host::silent())?;
//! machine.load(program, None)?;
//! let mut taken = Taken(0);
//! let stop = machine.run(1_000_000, &mut taken);
//!
//! assert_eq!(stop, Stop::Spins { pc: 0x8000_0014 });
//! assert_eq!(machine.x(11), 6 + 5 + 4 + 3 + 2 + 1);
//! assert!(taken.0 > 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Two machines
//!
//! [`Platform::Virt`] starts at the program's entry, takes interrupts at the
//! instruction at which they become pending, serves the host at once and counts
//! cycles with the table of [`Costs`]. It has the devices of QEMU's virt machine, each
//! unless RAM is there: a PLIC, a 16550 that is the console, a clock, [`Virtio`]
//! devices, and a test finisher. [`Machine::boot`] starts a [`System`] on it:
//! firmware, a kernel and a device tree. A store of 0x5555 to the finisher ends the run with 0; 0x3333 ends it with the code in
//! the upper half; 0x7777, a reset, ends it with 0 and a note, because a restart
//! would only repeat the run. [`Platform::Spike`] reproduces everything that is
//! visible in Spike's log: boot ROM, memory map, the quantum of 5000 instructions
//! after which it updates time and polls the host, and the points at which it
//! checks for interrupts. Both are deterministic: same program, same steps.
//!
//! ## Layers
//!
//! * `memory`, `clint`, `devices`, `bus`: physical addresses. `pmp`, `mmu`, `access`:
//!   protection, translation, and the accesses that need them.
//! * `cpu`, `csr`, `events`: the architectural state, traps, control registers,
//!   counters that overflow.
//! * `code`, `exec`: code decoded once into blocks, and the interpreter that
//!   runs them; [`float`] is its arithmetic. `system`: the instructions that
//!   concern the whole hart.
//! * `machine`: interrupts, time, the host, and when to stop. [`host`]: requests
//!   of programs to the host, by HTIF and by semihosting, and the host's side of
//!   devices: streams and disks. [`fdt`]: the device tree and the boot ROM. `boot`:
//!   systems.
//! * `model`: [`Model`](hartrace_flow::Model), for the tandem verifier.
//!
//! Specifications: the RISC-V unprivileged manual 20240411, the privileged
//! manual 20240411 (machine 1.13, supervisor 1.13), RISC-V semihosting 1.0.
//!
//! ## Not implemented
//!
//! Several harts, the hypervisor, debug triggers (`tselect` reads 0 and selects
//! none), performance-monitor events (without Sscofpmf the counters read 0, with
//! it they count cycles and instructions), and any device on Spike's machine.

#![forbid(unsafe_code)]

mod access;
mod advance;
mod blocks;
mod boot;
mod bus;
mod changes;
mod clint;
mod code;
mod config;
mod cost;
mod cpu;
mod csr;
mod devices;
mod events;
mod exec;
pub mod fdt;
pub mod float;
mod hart;
pub mod host;
mod machine;
mod memory;
mod mmu;
mod model;
mod notes;
mod pending;
mod pieces;
mod pmp;
mod processes;
mod program;
mod report;
mod row;
mod system;
#[cfg(test)]
mod tests;
mod triggers;
mod variant;
mod vigil;
mod width;

pub use boot::{BootError, BootFiles, BootPart, System};
pub use config::{Config, ConfigError, ContextSource, Platform};
pub use cost::Costs;
pub use devices::{SLOTS, Virtio};
pub use machine::{LoadError, Machine, Stop};
pub use memory::{Memory, MemoryError, Region};
pub use program::{Program, ProgramError, Segment};
pub use variant::{Modes, Variant};
