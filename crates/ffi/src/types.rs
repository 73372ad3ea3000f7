//! The structs and constants of the header.

use std::ffi::{c_char, c_void};

/// What a function returns: HARTRACE_OK, HARTRACE_DIFFERENCE, or an error below zero.
pub type Status = i32;

/// Done; core and hart agree so far.
pub const HARTRACE_OK: Status = 0;
/// Core and hart differ. hartrace_check_text() has the report.
pub const HARTRACE_DIFFERENCE: Status = 1;
/// A null pointer, a struct with a wrong size, a value that cannot be. Nothing was done.
pub const HARTRACE_ARGUMENT: Status = -1;
/// Settings or a program that cannot be used. The handle can only be freed.
pub const HARTRACE_CONFIG: Status = -2;
/// A retirement that does not follow the one before, by its order. Nothing was done.
pub const HARTRACE_ORDER: Status = -3;
/// A fault in the library. The handle can only be freed.
pub const HARTRACE_INTERNAL: Status = -4;

/// Fields of hartrace_retired that have a value: `order`.
pub const HARTRACE_HAS_ORDER: u32 = 1;
/// `pc_wdata`.
pub const HARTRACE_HAS_PC_WDATA: u32 = 1 << 1;
/// `intr`.
pub const HARTRACE_HAS_INTR: u32 = 1 << 2;
/// `mode`.
pub const HARTRACE_HAS_MODE: u32 = 1 << 3;
/// `ixl`.
pub const HARTRACE_HAS_IXL: u32 = 1 << 4;
/// `rd_addr` and `rd_wdata`.
pub const HARTRACE_HAS_RD: u32 = 1 << 5;
/// `mem_addr`, the masks and the data.
pub const HARTRACE_HAS_MEM: u32 = 1 << 6;
/// `cause`; for an instruction with `trap` or `intr`.
pub const HARTRACE_HAS_CAUSE: u32 = 1 << 7;
/// `tval`; for an instruction with `trap` or `intr`.
pub const HARTRACE_HAS_TVAL: u32 = 1 << 8;
/// In `reports` only: `writes` has every write to a floating-point register.
pub const HARTRACE_HAS_FLOATS: u32 = 1 << 9;
/// In `reports` only: `writes` has every write to a CSR, those of traps too. Without it
/// `writes` may have some: they are compared.
pub const HARTRACE_HAS_CSRS: u32 = 1 << 10;
/// The signals of the RISC-V Formal Interface: all up to HARTRACE_HAS_MEM.
pub const HARTRACE_RVFI: u32 = 0x7f;

/// How a core is checked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// sizeof(hartrace_check_options).
    pub size: u32,
    /// The number of the hart: what mhartid reads. Each hart has its own handle.
    pub hart: u32,
    /// HARTRACE_HAS_*: what the core reports of every instruction. 0: HARTRACE_RVFI.
    pub reports: u32,
    /// 0.
    pub reserved: u32,
    /// Settings in TOML, as `hartrace verify -c` reads them; or NULL.
    pub config: *const c_char,
    /// A file with settings, which those of `config` override; or NULL.
    pub config_file: *const c_char,
    /// The program, an ELF file; or NULL, if the settings name it or `elf` has it.
    pub elf_file: *const c_char,
    /// The program as the bytes of an ELF file, which are copied; or NULL.
    pub elf: *const c_void,
    /// Their number.
    pub elf_size: usize,
}

/// An instruction that has retired or trapped, with what it did: the signals of one lane of
/// the RISC-V Formal Interface, and what RVVI reports beyond them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    /// sizeof(hartrace_retired).
    pub size: u32,
    /// HARTRACE_HAS_*: the fields that have a value.
    pub valid: u32,
    /// The number of the instruction, each one more than the last.
    pub order: u64,
    /// Its address.
    pub pc_rdata: u64,
    /// Where the hart goes, if no interrupt is taken.
    pub pc_wdata: u64,
    /// The instruction; a compressed one in the low half.
    pub insn: u32,
    /// Not 0: it did not retire, but trapped. What follows is the handler.
    pub trap: u8,
    /// Not 0: it is the last one before the hart halts. Of no consequence here.
    pub halt: u8,
    /// Not 0: it is the first instruction of a trap handler.
    pub intr: u8,
    /// The privilege mode: 0, 1 or 3.
    pub mode: u8,
    /// The width of the hart: 1 for 32 bits, 2 for 64.
    pub ixl: u8,
    /// The integer register that it writes; 0 for none.
    pub rd_addr: u8,
    /// A bit for each byte that it reads, from `mem_addr` on.
    pub mem_rmask: u8,
    /// A bit for each byte that it writes.
    pub mem_wmask: u8,
    /// The new value of the register.
    pub rd_wdata: u64,
    /// The address of its memory access.
    pub mem_addr: u64,
    /// What it reads, each byte in the place of its bit in the mask.
    pub mem_rdata: u64,
    /// What it writes.
    pub mem_wdata: u64,
    /// The cause of the trap, as xcause has it.
    pub cause: u64,
    /// The value of the trap, as xtval has it.
    pub tval: u64,
    /// Further registers that it writes; or NULL.
    pub writes: *const Write,
    /// Their number.
    pub write_count: usize,
}

/// `kind` of a write: an integer register, 0 to 31.
pub const HARTRACE_X: u32 = 0;
/// A floating-point register, 0 to 31.
pub const HARTRACE_F: u32 = 1;
/// A CSR, 0 to 0xfff.
pub const HARTRACE_CSR: u32 = 2;

/// A register with its new value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Write {
    /// HARTRACE_X, HARTRACE_F or HARTRACE_CSR.
    pub kind: u32,
    /// Its number.
    pub number: u32,
    /// The whole value.
    pub value: u64,
}

/// `field` of a difference: the instruction itself.
pub const HARTRACE_FIELD_INSN: u32 = 0;
/// The pc after the instruction.
pub const HARTRACE_FIELD_PC: u32 = 1;
/// The privilege mode after it.
pub const HARTRACE_FIELD_MODE: u32 = 2;
/// An integer register, `number`.
pub const HARTRACE_FIELD_X: u32 = 3;
/// A floating-point register, `number`.
pub const HARTRACE_FIELD_F: u32 = 4;
/// A CSR, `number`.
pub const HARTRACE_FIELD_CSR: u32 = 5;
/// The address of a load.
pub const HARTRACE_FIELD_LOAD_ADDRESS: u32 = 6;
/// The address of a store.
pub const HARTRACE_FIELD_STORE_ADDRESS: u32 = 7;
/// Its size in bytes.
pub const HARTRACE_FIELD_STORE_SIZE: u32 = 8;
/// What it stores.
pub const HARTRACE_FIELD_STORE_DATA: u32 = 9;
/// An interrupt, by its code.
pub const HARTRACE_FIELD_INTERRUPT: u32 = 10;
/// The handler of an interrupt that has no cause: none that is enabled leads there.
pub const HARTRACE_FIELD_HANDLER: u32 = 11;

/// One value that differs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// sizeof(hartrace_difference).
    pub size: u32,
    /// HARTRACE_FIELD_*.
    pub field: u32,
    /// The register.
    pub number: u32,
    /// 1: the hart has a value, and `expected` is it; 0: it has none.
    pub has_expected: u8,
    /// 1: the core has a value, and `actual` is it; 0: it has none.
    pub has_actual: u8,
    /// 1: the hart has the instruction in `insn`.
    pub has_insn: u8,
    /// 0.
    pub reserved: u8,
    /// What the hart has.
    pub expected: u64,
    /// What the core has.
    pub actual: u64,
    /// The number of the instruction, from 0 on.
    pub index: u64,
    /// Its address.
    pub pc: u64,
    /// The instruction.
    pub insn: u32,
    /// How many values differ in it.
    pub count: u32,
}

/// What a checker has done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// sizeof(hartrace_counts).
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Instructions that retired.
    pub retired: u64,
    /// Exceptions.
    pub exceptions: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Values compared.
    pub compared: u64,
}

/// `format` of an encoder: by the settings, which have a section [etrace] or [ntrace].
pub const HARTRACE_FORMAT_CONFIG: u32 = 0;
/// E-Trace.
pub const HARTRACE_FORMAT_ETRACE: u32 = 1;
/// N-Trace.
pub const HARTRACE_FORMAT_NTRACE: u32 = 2;

/// How a trace is encoded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EncodeOptions {
    /// sizeof(hartrace_encode_options).
    pub size: u32,
    /// HARTRACE_FORMAT_*.
    pub format: u32,
    /// Settings in TOML, as `hartrace encode -c` reads them; or NULL.
    pub config: *const c_char,
    /// A file with settings, which those of `config` override; or NULL.
    pub config_file: *const c_char,
}

/// A block of the trace ingress port (E-Trace, chapter 4): the signals of one block in one
/// cycle. Show the blocks of a cycle one after the other, the oldest first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// sizeof(hartrace_block).
    pub size: u32,
    /// The number of the hart.
    pub hart: u32,
    /// itype.
    pub itype: u8,
    /// ilastsize: log2 of the halfwords of the last instruction.
    pub ilastsize: u8,
    /// priv: 0, 1, 3; 4 for debug mode.
    pub r#priv: u8,
    /// ctype.
    pub ctype: u8,
    /// sijump.
    pub sijump: u8,
    /// trigger: 1 trace-on, 2 trace-off, 4 notify.
    pub trigger: u8,
    /// Not 0: the hart is halted.
    pub halted: u8,
    /// Not 0: the hart is in reset.
    pub reset: u8,
    /// iretire in halfwords, also from a port with single retirement.
    pub iretire: u32,
    /// cause, without the interrupt bit.
    pub cause: u32,
    /// iaddr.
    pub iaddr: u64,
    /// tval.
    pub tval: u64,
    /// context.
    pub context: u64,
    /// time, in cycles.
    pub time: u64,
    /// impdef.
    pub impdef: u32,
    /// External trigger inputs, a bit each.
    pub external: u8,
    /// Not 0: the hart is in a low-power state.
    pub power_down: u8,
    /// 0.
    pub reserved: [u8; 2],
}
