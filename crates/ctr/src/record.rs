//! One CTR entry.

use hartrace_flow::Transfer;
use hartrace_isa::Itype;

/// An entry as its registers hold it: `ctrsource`, `ctrtarget`, `ctrdata`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// `ctrsource`: V in bit 0, the pc above.
    pub ctrsource: u64,
    /// `ctrtarget`: MISP in bit 0, the pc above.
    pub ctrtarget: u64,
    /// `ctrdata`: TYPE in 3:0, CCV in 15, CC in 31:16.
    pub ctrdata: u64,
}

/// The types there are, by name, in the order of their codes.
pub const KINDS: [(&str, Itype); 13] = [
    ("exception", Itype::Exception),
    ("interrupt", Itype::Interrupt),
    ("trap-return", Itype::TrapReturn),
    ("not-taken", Itype::NotTaken),
    ("taken", Itype::Taken),
    ("indirect-call", Itype::IndirectCall),
    ("direct-call", Itype::DirectCall),
    ("indirect-jump", Itype::IndirectJump),
    ("direct-jump", Itype::DirectJump),
    ("swap", Itype::Swap),
    ("return", Itype::Return),
    ("other-indirect", Itype::OtherIndirect),
    ("other-direct", Itype::OtherDirect),
];

/// `ctrsource.V`.
pub(crate) const VALID: u64 = 1;
/// `ctrtarget.MISP`.
pub(crate) const MISP: u64 = 1;
/// `ctrdata.TYPE`.
pub(crate) const TYPE: u64 = 0xf;
/// `ctrdata.CCV`.
pub(crate) const CCV: u64 = 1 << 15;

impl Record {
    /// `ctrsource.V`: there is a record.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.ctrsource & VALID != 0
    }

    /// Where it came from; 0 when that was in a mode that is not recorded.
    #[must_use]
    pub const fn source(&self) -> u64 {
        self.ctrsource & !VALID
    }

    /// Where it went; 0 when that was in a mode that is not recorded.
    #[must_use]
    pub const fn target(&self) -> u64 {
        self.ctrtarget & !MISP
    }

    /// `ctrtarget.MISP`.
    #[must_use]
    pub const fn is_mispredicted(&self) -> bool {
        self.ctrtarget & MISP != 0
    }

    /// `ctrdata.TYPE`; `None` for 0 and the reserved codes.
    #[must_use]
    pub fn kind(&self) -> Option<Itype> {
        let code = (self.ctrdata & TYPE) as u8;
        Itype::from_code(code).filter(|_| !matches!(code, 0 | 6 | 7))
    }

    /// The cycle count, if it is valid.
    #[must_use]
    #[inline]
    pub const fn cycles(&self) -> Option<u64> {
        if self.ctrdata & CCV == 0 {
            return None;
        }
        Some(CycleCount((self.ctrdata >> 16) as u16).cycles())
    }

    /// The transfer it records, if it is valid. A record without a type is
    /// one of [`Itype::None`].
    #[must_use]
    pub fn transfer(&self) -> Option<Transfer> {
        self.is_valid().then(|| Transfer {
            source: self.source(),
            target: self.target(),
            kind: self.kind().unwrap_or(Itype::None),
            cycles: self.cycles(),
            mispredicted: self.is_mispredicted(),
            ..Transfer::default()
        })
    }
}

/// `ctrdata.CC`: CCE in 15:12, CCM in 11:0 (5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CycleCount(pub u16);

impl CycleCount {
    /// The largest, with this many bits of exponent, up to 4.
    #[must_use]
    pub const fn most(exponent_bits: u8) -> CycleCount {
        match exponent_bits {
            0..=3 => CycleCount((1 << (12 + exponent_bits)) - 1),
            _ => CycleCount(u16::MAX),
        }
    }

    /// The count for a number of cycles, with this many bits of exponent.
    #[must_use]
    #[inline]
    pub const fn new(cycles: u64, exponent_bits: u8) -> CycleCount {
        if cycles < 4096 {
            return CycleCount(cycles as u16);
        }
        let most = CycleCount::most(exponent_bits);
        if cycles >= most.cycles() {
            return most;
        }
        let exponent = cycles.ilog2() - 11;
        let mantissa = cycles >> (exponent - 1) & 0xfff;
        CycleCount((exponent << 12) as u16 | mantissa as u16)
    }

    /// The cycles it stands for; the lowest bits of large counts are lost.
    #[must_use]
    #[inline]
    pub const fn cycles(self) -> u64 {
        let (exponent, mantissa) = (self.0 >> 12, self.0 as u64 & 0xfff);
        match exponent {
            0 => mantissa,
            _ => (4096 + mantissa) << (exponent - 1),
        }
    }
}
