//! Environment configuration, `menvcfg` and `senvcfg`, and what it is asked about.

use hartrace_flow::Mode;
use hartrace_isa::{Ext, csr};

use crate::cpu::{Cpu, envcfg};
use crate::csr::{Wrote, merge};

/// The bit of `time` in `mcounteren`.
const TM: u64 = 1 << 1;

/// A mask that leaves out CBIE where a value has the one that is reserved.
pub(super) const fn without_reserved(value: u64) -> u64 {
    match value & envcfg::CBIE {
        0x20 => !envcfg::CBIE,
        _ => !0,
    }
}

impl Cpu {
    /// The fields for operations on cache blocks that there are.
    pub(super) fn cache_block_fields(&self) -> u64 {
        let of = |ext, fields| if self.whole.has(ext) { fields } else { 0 };
        of(Ext::Zicbom, envcfg::CBIE | envcfg::CBCFE) | of(Ext::Zicboz, envcfg::CBZE)
    }

    pub(super) fn write_menvcfg(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        let of = |has, field| if has { field } else { 0 };
        let mask = self.cache_block_fields()
            | of(self.svadu, envcfg::ADUE)
            | of(self.svpbmt, envcfg::PBMTE)
            | of(self.whole.has(Ext::Sstc), envcfg::STCE);
        let high = csr == csr::MENVCFGH;
        let new = merge(self.menvcfg, value, self.xlen(), high);
        self.menvcfg = new & mask & without_reserved(new);
        let shown = match high {
            true => self.menvcfg >> 32,
            false => self.menvcfg,
        };
        wrote(csr, self.xlen().wrap(shown));
    }

    /// Whether the current mode may access `stimecmp`: below machine mode, if there is a
    /// timer now and `time` may be read (Sstc).
    pub(super) fn may_access_timer(&self) -> bool {
        let timer = self.menvcfg & envcfg::STCE != 0 && self.mcounteren & TM != 0;
        self.mode == Mode::M || timer
    }

    /// Where the jump table is, if the current mode may use it.
    pub(crate) fn jump_table(&self) -> Option<u64> {
        self.may_access(csr::JVT, false).then_some(self.jvt)
    }
}
