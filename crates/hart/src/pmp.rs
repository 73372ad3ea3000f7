//! Physical memory protection (privileged architecture, 3.7): sixteen entries
//! of four-byte granularity.

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::memory::PAGE;
use crate::mmu::Use;

/// Entries that exist; programs may write 64, the rest stay zero.
pub(crate) const ENTRIES: usize = 16;

const R: u8 = 1;
const W: u8 = 2;
const X: u8 = 4;
const A: u8 = 0x18;
const TOR: u8 = 0x08;
const NA4: u8 = 0x10;
const NAPOT: u8 = 0x18;
const L: u8 = 0x80;

/// The entries.
#[derive(Clone, Debug)]
pub(crate) struct Pmp {
    cfg: [u8; ENTRIES],
    /// As programs see it: bits 33 (RV32) or 55 (RV64) to 2 of an address.
    addr: [u64; ENTRIES],
    /// The entries in force, in their order: worked out when one is written.
    rules: Vec<Rule>,
    open: bool,
}

/// One entry in force: its first and its last address, and its `pmpcfg`.
#[derive(Clone, Copy, Debug)]
struct Rule {
    from: u64,
    to: u64,
    cfg: u8,
}

impl Pmp {
    /// One entry that opens everything to everybody, for software that knows
    /// nothing of protection.
    pub(crate) fn open(xlen: Xlen) -> Pmp {
        let mut pmp = Pmp {
            cfg: [0; ENTRIES],
            addr: [0; ENTRIES],
            rules: Vec::new(),
            open: true,
        };
        pmp.set_addr(0, Pmp::addr_mask(xlen));
        pmp.set_cfg(0, NAPOT | R | W | X);
        pmp
    }

    /// The bits of a `pmpaddr` that exist.
    pub(crate) fn addr_mask(xlen: Xlen) -> u64 {
        match xlen {
            Xlen::Rv32 => (1 << 32) - 1,
            Xlen::Rv64 => (1 << 54) - 1,
        }
    }

    pub(crate) fn cfg(&self, entry: usize) -> u8 {
        self.cfg.get(entry).copied().unwrap_or(0)
    }

    pub(crate) fn addr(&self, entry: usize) -> u64 {
        self.addr.get(entry).copied().unwrap_or(0)
    }

    /// Writes one byte of a `pmpcfg`, unless the entry is locked. Write without
    /// read is reserved and loses its write.
    pub(crate) fn set_cfg(&mut self, entry: usize, value: u8) {
        if let Some(cfg) = self.cfg.get_mut(entry)
            && *cfg & L == 0
        {
            *cfg = value & (R | W | X | A | L);
            if *cfg & R == 0 {
                *cfg &= !W;
            }
            self.look();
        }
    }

    /// Writes a `pmpaddr`. False when it is locked, by its own entry or as the
    /// base of the next one.
    pub(crate) fn set_addr(&mut self, entry: usize, value: u64) -> bool {
        let next = self.cfg(entry + 1);
        if self.cfg(entry) & L != 0 || next & L != 0 && next & A == TOR {
            return false;
        }
        if let Some(addr) = self.addr.get_mut(entry) {
            *addr = value;
            self.look();
        }
        true
    }

    /// The addresses of an entry, from the first to the last; `None` when it is off
    /// or empty.
    fn span(&self, entry: usize) -> Option<(u64, u64)> {
        let addr = self.addr(entry);
        match self.cfg(entry) & A {
            0 => None,
            TOR => {
                let base = if entry == 0 {
                    0
                } else {
                    self.addr(entry - 1) << 2
                };
                let end = addr << 2;
                (base < end).then(|| (base, end - 1))
            }
            NA4 => Some((addr << 2, (addr << 2) + 3)),
            _ => {
                // The lowest zero bit gives the size.
                let low = addr ^ addr.wrapping_add(1);
                let base = (addr & !low) << 2;
                Some((base, base | (low << 2) | 3))
            }
        }
    }

    /// Whether an access is allowed: `len` bytes at `paddr`.
    pub(crate) fn allows(&self, paddr: u64, len: u64, what: Use, mode: Mode) -> bool {
        let last = paddr + (len - 1);
        for &Rule { from, to, cfg } in &self.rules {
            if last < from || to < paddr {
                continue;
            }
            if paddr < from || to < last {
                return false;
            }
            let need = match what {
                Use::Fetch => X,
                Use::Load => R,
                Use::Store => W,
            };
            return mode == Mode::M && cfg & L == 0 || cfg & need != 0;
        }
        mode == Mode::M
    }

    /// Whether machine mode may do anything anywhere: nothing is locked, and
    /// no region ends within a page, where it could hold a part of an access,
    /// which no mode may do.
    pub(crate) fn is_open_to_machine(&self) -> bool {
        self.open
    }

    /// Finds the entries in force, and whether they are open to machine mode.
    fn look(&mut self) {
        let rules = (0..ENTRIES).filter_map(|entry| {
            let (from, to) = self.span(entry)?;
            let cfg = self.cfg(entry);
            Some(Rule { from, to, cfg })
        });
        self.rules = rules.collect();
        let whole = |rule: &Rule| rule.from.is_multiple_of(PAGE) && rule.to % PAGE == PAGE - 1;
        self.open = self.cfg.iter().all(|cfg| cfg & L == 0) && self.rules.iter().all(whole);
    }

    /// Whether every byte of a page is treated alike.
    pub(crate) fn is_uniform(&self, page: u64) -> bool {
        let last = page | 0xfff;
        let cuts = |rule: &Rule| {
            (page < rule.from && rule.from <= last) || (page <= rule.to && rule.to < last)
        };
        !self.rules.iter().any(cuts)
    }
}
