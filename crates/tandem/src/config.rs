//! The parameters that encoder and decoder must agree on (chapter 3:
//! negotiation is outside the protocol), and the encoder's choices.

use core::fmt;

use hartrace_isa::{Ext, Isa, Xlen};

use crate::elements::Elements;

/// Width of the floating-point registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flen {
    /// There are none.
    None,
    /// 32 bits: F.
    F32,
    /// 64 bits: D.
    #[default]
    F64,
}

impl Flen {
    /// Bits; 0 for none.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Flen::None => 0,
            Flen::F32 => 32,
            Flen::F64 => 64,
        }
    }
}

/// Width of memory addresses: the longer of the physical and the virtual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mlen {
    /// RV32 without Sv32.
    M32,
    /// RV32 with supervisor mode and Sv32; in the trace five bytes.
    M34,
    /// RV64.
    #[default]
    M64,
}

impl Mlen {
    /// Bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Mlen::M32 => 32,
            Mlen::M34 => 34,
            Mlen::M64 => 64,
        }
    }

    /// Bytes in the trace.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }
}

/// Which width the effective address (identifier 3) has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EaddrWidth {
    /// MLEN, as specified.
    #[default]
    Mlen,
    /// XLEN, as the Bluespec cores write it. Differs on RV32 with Sv32.
    Xlen,
}

/// Which half of a byte the first of two four-bit fields is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nibbles {
    /// The lower, as specified.
    #[default]
    Low,
    /// The upper, as Forvis reads them.
    High,
}

/// What the identifier 10 carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PcForm {
    /// The new pc, as specified.
    #[default]
    New,
    /// The pc of the instruction and the new pc, as some tools write it.
    Both,
}

/// What the data of a store is that is not plain: of an atomic operation or a
/// failed store-conditional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreData {
    /// What is written to memory: the result of an atomic operation, and
    /// nothing where nothing is written.
    #[default]
    Result,
    /// The operand in rs2, also of a failed store-conditional and a
    /// load-reserved, as the Bluespec cores write it.
    Operand,
}

/// What encoder and decoder agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Width of integer registers, CSRs and the pc: MXLEN, whatever UXL says.
    pub xlen: Xlen,
    /// Width of floating-point registers.
    pub flen: Flen,
    /// Width of memory addresses.
    pub mlen: Mlen,
    /// Width of effective addresses.
    pub eaddr: EaddrWidth,
    /// Order of four-bit fields in a byte.
    pub nibbles: Nibbles,
    /// What identifier 10 carries.
    pub pc: PcForm,
    /// Read identifier 16 as 10, as Appendix C prints it.
    pub lenient_pc_identifier: bool,
    /// What the data of an atomic operation is.
    pub store_data: StoreData,
    /// A group with more items is a fault.
    pub max_items: u32,
    /// What the trace does not record (3.2).
    pub absent: Elements,
    /// How an encoder writes.
    pub style: Style,
}

impl Config {
    /// The configuration for an instruction set, with Sv32 on RV32 if there is
    /// a supervisor mode.
    #[must_use]
    pub fn new(isa: Isa, supervisor: bool) -> Config {
        let flen = if isa.has(Ext::D) {
            Flen::F64
        } else if isa.has(Ext::F) {
            Flen::F32
        } else {
            Flen::None
        };
        let mlen = match (isa.xlen(), supervisor) {
            (Xlen::Rv64, _) => Mlen::M64,
            (Xlen::Rv32, true) => Mlen::M34,
            (Xlen::Rv32, false) => Mlen::M32,
        };
        Config {
            xlen: isa.xlen(),
            flen,
            mlen,
            ..Config::default()
        }
    }

    /// Checks what does not depend on a trace.
    ///
    /// # Errors
    ///
    /// Addresses that do not go with the registers, a group without room, an
    /// increment that cannot be written.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match (self.xlen, self.mlen) {
            (Xlen::Rv64, Mlen::M64) | (Xlen::Rv32, Mlen::M32 | Mlen::M34) => {}
            _ => return Err(ConfigError::Mlen(self.xlen, self.mlen)),
        }
        if self.max_items < MIN_ITEMS {
            return Err(ConfigError::MaxItems(self.max_items));
        }
        if self.pc == PcForm::Both && self.style.pc == PcStyle::Increment {
            return Err(ConfigError::Increment);
        }
        Ok(())
    }

    /// Bytes of an integer register, a CSR, the pc.
    #[must_use]
    #[inline]
    pub const fn xlen_bytes(&self) -> usize {
        self.xlen.bits() as usize / 8
    }

    /// Bytes of an effective address.
    #[must_use]
    #[inline]
    pub const fn eaddr_bytes(&self) -> usize {
        match self.eaddr {
            EaddrWidth::Mlen => self.mlen.bytes(),
            EaddrWidth::Xlen => self.xlen_bytes(),
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            xlen: Xlen::Rv64,
            flen: Flen::default(),
            mlen: Mlen::default(),
            eaddr: EaddrWidth::default(),
            nibbles: Nibbles::default(),
            pc: PcForm::default(),
            lenient_pc_identifier: false,
            store_data: StoreData::default(),
            max_items: 1 << 16,
            absent: Elements::default(),
            style: Style::default(),
        }
    }
}

/// A group of an exception with all its CSRs must fit.
const MIN_ITEMS: u32 = 64;

/// How an encoder writes what it may write in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// How the new pc is recorded.
    pub pc: PcStyle,
    /// Whether registers are recorded as increments, where that is
    /// shorter and the old value has been recorded.
    pub incremental: bool,
    /// Which addresses loads and stores have.
    pub addresses: Addresses,
    /// Whether every retired instruction records that minstret has grown by one,
    /// as the sizes of Appendix D have it.
    pub minstret: bool,
    /// Memory transactions beside the instruction's own view.
    pub memory: MemoryStyle,
    /// Whether groups end with an opcode of their own, or where the next
    /// begins.
    pub end_group: bool,
    /// Whether the trace starts with a group that records pc and privilege mode
    /// as initial state. Without one, where the first instructions are is
    /// known only from outside.
    pub start: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            pc: PcStyle::Increment,
            incremental: false,
            addresses: Addresses::Effective,
            minstret: false,
            memory: MemoryStyle::None,
            end_group: true,
            start: true,
        }
    }
}

impl Style {
    /// As small as it gets with nothing left out.
    #[must_use]
    pub const fn compact() -> Style {
        Style {
            pc: PcStyle::Increment,
            incremental: true,
            addresses: Addresses::Effective,
            minstret: false,
            memory: MemoryStyle::None,
            end_group: false,
            start: true,
        }
    }

    /// As the Bluespec cores write it: always a whole pc.
    #[must_use]
    pub const fn bluespec() -> Style {
        Style {
            pc: PcStyle::Full,
            incremental: false,
            addresses: Addresses::Effective,
            minstret: false,
            memory: MemoryStyle::None,
            end_group: true,
            start: false,
        }
    }
}

/// How an encoder records the new pc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PcStyle {
    /// Increment pc where the instruction does not jump.
    #[default]
    Increment,
    /// Always the whole pc.
    Full,
}

/// Which addresses of loads and stores an encoder records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// None.
    None,
    /// The effective address.
    #[default]
    Effective,
    /// The physical address; the effective one where that is not known.
    Physical,
    /// Both, as far as they are known.
    Both,
    /// The physical address, and the effective one where it differs: the rows
    /// of Appendix D with and without virtual addresses.
    Translated,
}

/// Which memory transactions an encoder records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryStyle {
    /// None.
    #[default]
    None,
    /// A request for every load, store and atomic operation.
    Requests,
    /// Each request with its response.
    Responses,
}

/// Why a configuration makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// MLEN is 64 on RV64, and 32 or 34 on RV32.
    Mlen(Xlen, Mlen),
    /// Fewer items than a group with an exception needs.
    MaxItems(u32),
    /// Increments do not give the pc of the instruction.
    Increment,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Mlen(xlen, mlen) => write!(
                f,
                "MLEN {} cannot be used with XLEN {}: it must be 64 on RV64, 32 or 34 on RV32",
                mlen.bits(),
                xlen.bits()
            ),
            ConfigError::MaxItems(items) => {
                write!(
                    f,
                    "max_items {items} is too small: it must be at least {MIN_ITEMS}"
                )
            }
            ConfigError::Increment => {
                f.write_str("pc increments cannot be used with two pcs in a group")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
