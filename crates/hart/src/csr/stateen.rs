//! State enables (Smstateen): bits with which machine mode hides state from
//! less privileged modes.

use hartrace_flow::Mode;
use hartrace_isa::{Ext, Xlen, csr};

use crate::cpu::Cpu;
use crate::csr::Wrote;

/// `sstateen` of the same number; all four registers have it.
const SE: u64 = 1 << 63;
/// `senvcfg`.
const ENVCFG: u64 = 1 << 62;
/// `siselect` and what it shows.
const CSRIND: u64 = 1 << 60;
/// `jvt` and the jumps that use it.
const JVT: u64 = 1 << 2;
/// `scontext`.
const CONTEXT: u64 = 1 << 57;

impl Cpu {
    /// Whether the state enables let the current mode at a CSR. Machine mode
    /// is above them.
    pub(super) fn is_enabled(&self, csr: u16) -> bool {
        if self.mode == Mode::M || !self.isa.has(Ext::Smstateen) {
            return true;
        }
        if csr == csr::JVT && self.mode == Mode::U && self.sstateen0() & JVT == 0 {
            return false;
        }
        let (number, bit) = match csr {
            csr::JVT => (0, JVT),
            csr::SENVCFG => (0, ENVCFG),
            csr::SSTATEEN0..=csr::SSTATEEN3 => (csr & 3, SE),
            csr::SISELECT..=csr::SIREG3 | csr::SIREG4..=csr::SIREG6 => (0, CSRIND),
            csr::SCONTEXT => (0, CONTEXT),
            _ => return true,
        };
        self.mstateen(number) & bit != 0
    }

    fn mstateen(&self, number: u16) -> u64 {
        let register = self.mstateen.get(usize::from(number));
        register.copied().unwrap_or(0)
    }

    /// The writable bits of a register: those whose state there is.
    fn mstateen_mask(&self, number: u16) -> u64 {
        if number != 0 {
            return SE;
        }
        let select = if self.isa.has(Ext::Sscsrind) {
            CSRIND
        } else {
            0
        };
        let records = self
            .records
            .as_ref()
            .and_then(|records| records.shown())
            .map_or(0, |ctr| 1 << ctr.config().version.state_enable());
        SE | ENVCFG | CONTEXT | select | records | self.table_enable()
    }

    /// The bit of the jump table, if there is one.
    fn table_enable(&self) -> u64 {
        if self.whole.has(Ext::Zcmt) { JVT } else { 0 }
    }

    /// `sstateen0`: what `mstateen0` hides is zero.
    fn sstateen0(&self) -> u64 {
        self.sstateen0 & self.mstateen(0)
    }

    /// Reads `mstateen`, its high half or `sstateen`; `None` without the
    /// extension, and for high halves on RV64.
    pub(super) fn read_stateen(&self, csr: u16) -> Option<u64> {
        let number = csr & 3;
        if !self.isa.has(Ext::Smstateen) {
            return None;
        }
        match csr >> 4 {
            // Of the state below supervisor mode, only the jump table has a bit.
            0x10 if number == 0 => Some(self.sstateen0()),
            0x10 => Some(0),
            0x30 => Some(self.mstateen(number)),
            0x31 if self.xlen() == Xlen::Rv32 => Some(self.mstateen(number) >> 32),
            _ => None,
        }
    }

    pub(super) fn write_stateen(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        let number = csr & 3;
        if csr == csr::SSTATEEN0 {
            self.sstateen0 = value & self.table_enable() & self.mstateen(0);
        }
        let mask = self.mstateen_mask(number);
        let rv32 = self.xlen() == Xlen::Rv32;
        if let Some(register) = self.mstateen.get_mut(usize::from(number)) {
            *register = match (csr >> 4, rv32) {
                (0x30, false) => value & mask,
                (0x30, true) => *register & !0xffff_ffff | value & mask & 0xffff_ffff,
                (0x31, true) => *register & 0xffff_ffff | value << 32 & mask,
                _ => *register,
            };
        }
        let shown = self.read_stateen(csr).unwrap_or(0);
        wrote(csr, self.xlen().wrap(shown));
    }
}
