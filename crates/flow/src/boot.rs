//! The boot code of Spike's machine. Every run on it starts there, and no
//! program contains it.

use core::ops::Range;

use hartrace_isa::Xlen;

/// Where the boot ROM lies, and where harts start.
pub const ROM: u64 = 0x1000;

/// The code at the start of the ROM: it jumps to the entry point with the
/// number of the hart in `a0` and the address of the device tree in `a1`.
#[must_use]
pub const fn code(xlen: Xlen) -> [u32; 5] {
    [
        0x0000_0297, // auipc t0, 0
        0x0202_8593, // addi a1, t0, 32
        0xf140_2573, // csrr a0, mhartid
        match xlen {
            Xlen::Rv32 => 0x0182_a283, // lw t0, 24(t0)
            Xlen::Rv64 => 0x0182_b283, // ld t0, 24(t0)
        },
        0x0002_8067, // jr t0
    ]
}

/// The addresses of that code.
pub const RANGE: Range<u64> = ROM..ROM + 20;
