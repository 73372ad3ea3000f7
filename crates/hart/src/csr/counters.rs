//! Base counters and event counters.

use hartrace_flow::Mode;
use hartrace_isa::{Ext, Xlen, csr};

use crate::cpu::{Cpu, interrupt};
use crate::csr::Wrote;

impl Cpu {
    /// User-level counters are opened by the mode above.
    pub(super) fn may_count(&self, csr: u16) -> bool {
        let bit = csr & 31;
        let machine = self.mode == Mode::M || self.mcounteren >> bit & 1 != 0;
        let supervisor = self.mode != Mode::U || self.scounteren >> bit & 1 != 0;
        machine && supervisor
    }

    pub(super) fn has_counters(&self) -> bool {
        self.always_counters || self.whole.has(Ext::Zicntr)
    }

    fn has_events(&self) -> bool {
        self.always_counters || self.whole.has(Ext::Zihpm) || self.counts_events()
    }

    /// Whether the event counters count, and report overflows.
    pub(crate) fn counts_events(&self) -> bool {
        self.isa.has(Ext::Sscofpmf)
    }

    /// The overflow interrupt, if there is one.
    pub(super) fn overflow_interrupt(&self) -> u64 {
        if self.counts_events() {
            interrupt::LCOFI
        } else {
            0
        }
    }

    /// Counters that exist, as `mcounteren` shows them.
    pub(super) fn counter_mask(&self) -> u64 {
        let base = if self.has_counters() { 7 } else { 0 };
        let events = if self.has_events() { 0xffff_fff8 } else { 0 };
        base | events
    }

    pub(super) fn read_counter(&self, csr: u16, time: u64) -> Option<u64> {
        let high = csr & 0x80 != 0;
        if high && self.xlen() == Xlen::Rv64 {
            return None;
        }
        let user = csr >> 8 == 0xc;
        let value = match csr & !0x80 {
            csr::MCYCLE => self.mcycle,
            csr::MINSTRET => self.minstret,
            csr::MHPMCOUNTER3..=csr::MHPMCOUNTER31 => self.events.counter(csr & 31),
            csr::CYCLE if self.has_counters() => self.mcycle,
            csr::TIME if self.has_counters() => time,
            csr::INSTRET if self.has_counters() => self.minstret,
            csr::HPMCOUNTER3..=csr::HPMCOUNTER31 if user && self.has_events() => {
                self.events.counter(csr & 31)
            }
            _ => return None,
        };
        Some(if high { value >> 32 } else { value })
    }

    pub(super) fn write_counter(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        let half = |old: u64| merge(old, value, self.xlen(), csr & 0x80 != 0);
        match csr & !0x80 {
            csr::MCYCLE => {
                self.mcycle = half(self.mcycle);
                self.wrote_mcycle = true;
            }
            csr::MINSTRET => {
                self.minstret = half(self.minstret);
                self.wrote_minstret = true;
            }
            csr::MHPMCOUNTER3..=csr::MHPMCOUNTER31 if self.counts_events() => {
                let number = csr & 31;
                let new = half(self.events.counter(number));
                self.events.write_counter(number, new);
            }
            // The event counters count nothing.
            _ => return,
        }
        wrote(csr, self.xlen().wrap(value));
    }

    /// `mhpmevent`, or its high half; without Sscofpmf there is no event to be
    /// chosen, and no high half.
    pub(super) fn read_event(&self, csr: u16) -> Option<u64> {
        let event = self.events.event(csr & 31);
        if csr < 0x700 {
            return Some(event);
        }
        let narrow = self.xlen() == Xlen::Rv32 && self.counts_events();
        narrow.then_some(event >> 32)
    }

    pub(super) fn write_event(&mut self, csr: u16, value: u64, wrote: Wrote<'_>) {
        if self.counts_events() {
            let number = csr & 31;
            let old = self.events.event(number);
            let mut new = merge(old, value, self.xlen(), csr >= 0x700);
            // The upper half has no part of an event's number on RV32.
            if self.xlen() == Xlen::Rv32 {
                new &= !0x00ff_ffff_0000_0000;
            }
            self.events.set_event(number, new);
        }
        let shown = self.read_event(csr).unwrap_or(0);
        wrote(csr, self.xlen().wrap(shown));
    }

    /// `scountovf`: the overflow bits that the current mode may see.
    pub(super) fn scountovf(&self) -> Option<u64> {
        let seen = match self.mode {
            Mode::M => u64::MAX,
            _ => self.mcounteren,
        };
        let overflows = self.events.overflows() & seen;
        self.counts_events().then_some(overflows)
    }
}

/// A 64-bit register after a write to it, which on RV32 reaches one half.
pub(crate) fn merge(old: u64, value: u64, xlen: Xlen, high: bool) -> u64 {
    match (xlen, high) {
        (Xlen::Rv64, _) => value,
        (Xlen::Rv32, false) => old & !0xffff_ffff | value & 0xffff_ffff,
        (Xlen::Rv32, true) => old & 0xffff_ffff | value << 32,
    }
}
