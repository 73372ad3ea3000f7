//! Address translation (privileged manual, 10.3 to 10.6): Sv32, Sv39, and the
//! deeper tables that differ only in depth.

use hartrace_flow::Mode;
use hartrace_hart::Config;
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, csr, status, virt};

pub(crate) const V: u64 = 1;
pub(crate) const R: u64 = 2;
pub(crate) const W: u64 = 4;
pub(crate) const X: u64 = 8;
pub(crate) const U: u64 = 16;
const G: u64 = 32;
pub(crate) const A: u64 = 64;
pub(crate) const D: u64 = 128;
/// A page for everything in supervisor mode.
pub(crate) const ALL: u64 = V | R | W | X | A | D;

/// Where page tables are.
pub(crate) const TABLES: u64 = BASE + 0x4_0000;
/// An address far from everything.
pub(crate) const VA: u64 = 0x1234_5000;

/// A bench in supervisor mode with translation on: the program's own memory is
/// mapped where it is, as one large page.
pub(crate) struct Paged {
    pub(crate) b: Bench,
    /// Depth, bits of an index and size of an entry.
    levels: u32,
    index: u32,
    pub(crate) size: u8,
    pub(crate) free: u64,
}

impl Paged {
    pub(crate) fn new(config: Config, levels: u32) -> Paged {
        let rv32 = config.isa.starts_with("rv32");
        let b = Bench::new(config);
        let (index, size) = if rv32 { (10, 4) } else { (9, 8) };
        let mut p = Paged {
            b,
            levels,
            index,
            size,
            free: TABLES + 0x1000,
        };
        let mode = if rv32 {
            1 << 31
        } else {
            u64::from(levels + 5) << 60
        };
        p.b.set_csr(csr::SATP, mode | TABLES >> 12);
        let large = if rv32 { 1 } else { 2 };
        p.map(BASE, BASE, ALL | G, large);
        p.b.set_mode(Mode::S);
        p
    }

    pub(crate) fn sv39() -> Paged {
        Paged::new(virt(Xlen::Rv64), 3)
    }

    fn sv32() -> Paged {
        Paged::new(virt(Xlen::Rv32), 2)
    }

    pub(crate) fn both() -> [Paged; 2] {
        [Paged::sv32(), Paged::sv39()]
    }

    /// The address of the entry for a virtual address at a level; tables in
    /// between are made.
    pub(crate) fn entry(&mut self, va: u64, level: u32) -> u64 {
        let mut table = TABLES;
        let mut at = self.levels - 1;
        loop {
            let number = va >> (12 + at * self.index) & ((1 << self.index) - 1);
            let entry = table + number * u64::from(self.size);
            if at == level {
                return entry;
            }
            if self.b.mem(entry, self.size) == 0 {
                let made = self.free >> 12 << 10 | V;
                self.b.set_mem(entry, self.size, made);
                self.free += 0x1000;
            }
            table = self.b.mem(entry, self.size) >> 10 << 12;
            at -= 1;
        }
    }

    pub(crate) fn set_entry(&mut self, va: u64, level: u32, value: u64) {
        let at = self.entry(va, level);
        let size = self.size;
        self.b.set_mem(at, size, value);
    }

    pub(crate) fn map(&mut self, va: u64, pa: u64, flags: u64, level: u32) {
        self.set_entry(va, level, pa >> 12 << 10 | flags);
    }

    /// Executes an access by this instruction, which uses a1: the exception
    /// and its trap value, or nothing.
    pub(crate) fn access(&mut self, va: u64, word: u32) -> Option<(u32, u64)> {
        let mode = self.b.mode();
        self.b.set_x(A1, va);
        self.b.code(BASE, &[word]);
        self.b.set_pc(BASE);
        let steps = self.b.steps(1);
        match steps[0].0 {
            hartrace_flow::Step::Trap(step) => {
                self.b.set_mode(mode);
                let hartrace_flow::Cause::Exception(Some(code)) = step.trap.cause else {
                    panic!("{step:?}");
                };
                Some((code, step.trap.tval.unwrap()))
            }
            _ => None,
        }
    }

    pub(crate) fn load(&mut self, va: u64) -> Option<(u32, u64)> {
        self.access(va, lw(A0, 0, A1))
    }

    pub(crate) fn store(&mut self, va: u64) -> Option<(u32, u64)> {
        self.access(va, sw(A0, 0, A1))
    }

    /// Jumps there, wherever that leads in a few steps.
    pub(crate) fn fetch_anywhere(&mut self, va: u64) {
        self.b.set_x(A1, va);
        self.b.code(BASE, &[jalr(ZERO, A1, 0)]);
        self.b.set_pc(BASE);
        self.b.steps(4);
        self.b.set_mode(Mode::S);
    }

    /// Jumps there; the trap, if the first instruction there does not run.
    pub(crate) fn fetch(&mut self, va: u64) -> Option<(u32, u64)> {
        let mode = self.b.mode();
        self.b.set_x(A1, va);
        self.b.code(BASE, &[jalr(ZERO, A1, 0)]);
        self.b.set_pc(BASE);
        let steps = self.b.steps(2);
        self.b.set_mode(mode);
        match steps[1].0 {
            hartrace_flow::Step::Trap(step) => {
                assert_eq!(step.trap.epc, Some(va));
                let hartrace_flow::Cause::Exception(Some(code)) = step.trap.cause else {
                    panic!("{step:?}");
                };
                Some((code, step.trap.tval.unwrap()))
            }
            _ => None,
        }
    }
}

#[test]
fn leaves_are_found_at_every_level() {
    // 10.3.2, 10.4 to 10.6.
    let deep = [
        (Xlen::Rv32, 2),
        (Xlen::Rv64, 3),
        (Xlen::Rv64, 4),
        (Xlen::Rv64, 5),
    ];
    for (xlen, levels) in deep {
        for level in 0..levels.min(3) {
            let mut p = Paged::new(virt(xlen), levels);
            // The large page holds all of memory.
            let reach = 1u64 << (12 + level * p.index);
            let va = 0x4000_0000 + (DATA & (reach - 1));
            p.map(va & !(reach - 1), DATA & !(reach - 1), ALL, level);
            p.b.set_mem(DATA + 0xabc, 4, 0x1234_5678);
            assert_eq!(p.load(va + 0xabc), None, "level {level} of {levels}");
            assert_eq!(p.b.x(A0), 0x1234_5678);
            assert_eq!(p.store(va + 0xac0), None);
            assert_eq!(p.b.mem(DATA + 0xac0, 4), 0x1234_5678);
            p.b.code(DATA, &[NOP]);
            assert_eq!(p.fetch(va), None);
        }
    }
}

#[test]
fn machine_mode_is_not_translated_and_bare_translates_nothing() {
    // 10.1.11; 3.1.6.3.
    for mut p in Paged::both() {
        assert_eq!(p.load(VA), Some((13, VA)));
        p.b.set_mode(Mode::M);
        assert_eq!(p.load(DATA), None);
        assert_eq!(p.load(VA), Some((5, VA)));
        p.b.set_csr(csr::MSTATUS, status::MPRV | status::MPP_S);
        assert_eq!(p.load(VA), Some((13, VA)), "MPRV");
        p.b.set_csr(csr::SATP, 0);
        p.b.set_mode(Mode::S);
        assert_eq!(p.load(VA), Some((5, VA)), "bare");
    }
}

#[test]
fn superpages_must_be_aligned() {
    // 10.3.2 step 6: a leaf with nonzero low ppn bits is a page fault.
    for mut p in Paged::both() {
        p.map(0x4000_0000, BASE + 0x1000, ALL, 1);
        assert_eq!(p.load(0x4000_0000), Some((13, 0x4000_0000)));
        assert_eq!(p.store(0x4000_0000), Some((15, 0x4000_0000)));
        assert_eq!(p.fetch(0x4000_0000), Some((12, 0x4000_0000)));
    }
    let mut p = Paged::sv39();
    p.map(0x4000_0000, BASE + 0x20_0000, ALL, 2);
    assert_eq!(p.load(0x4000_0000), Some((13, 0x4000_0000)));
}

#[test]
fn rights_are_of_the_leaf() {
    // 10.3.1, table 10.5: reserved combinations fault, as do uses without a
    // right.
    for mut p in Paged::both() {
        for rights in 0..8u64 {
            let (r, w, x) = (rights & 1 != 0, rights & 2 != 0, rights & 4 != 0);
            p.map(VA, DATA, V | A | D | rights << 1, 0);
            let reserved = w && !r || rights == 0;
            let fault = |code: u32, allowed: bool| (!allowed || reserved).then_some((code, VA));
            assert_eq!(p.load(VA), fault(13, r), "{rights:03b}");
            assert_eq!(p.store(VA), fault(15, w), "{rights:03b}");
            p.b.set_mem(DATA, 4, NOP.into());
            assert_eq!(p.fetch(VA), fault(12, x), "{rights:03b}");
            // An invalid entry has none.
            p.map(VA, DATA, A | D | rights << 1, 0);
            assert_eq!(p.load(VA), Some((13, VA)));
        }
    }
}

#[test]
fn mxr_makes_executable_pages_readable() {
    // 3.1.6.3, 10.1.1.2.
    for mut p in Paged::both() {
        p.map(VA, DATA, V | X | A | D, 0);
        assert_eq!(p.load(VA), Some((13, VA)));
        p.b.status(status::MXR);
        assert_eq!(p.load(VA), None);
        assert_eq!(p.store(VA), Some((15, VA)));
    }
}

#[test]
fn the_supervisor_reaches_user_pages_with_sum_and_never_executes_them() {
    // 10.3.1: U; 3.1.6.3: SUM.
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL | U, 0);
        assert_eq!(p.load(VA), Some((13, VA)));
        assert_eq!(p.store(VA), Some((15, VA)));
        assert_eq!(p.fetch(VA), Some((12, VA)));
        p.b.status(status::SUM);
        assert_eq!(p.store(VA), None);
        assert_eq!(p.load(VA), None);
        p.b.set_mem(DATA, 4, NOP.into());
        assert_eq!(p.fetch(VA), Some((12, VA)));
    }
}

#[test]
fn users_reach_user_pages_only() {
    // 10.3.1.
    for mut p in Paged::both() {
        let large = if p.size == 4 { 1 } else { 2 };
        p.map(BASE, BASE, ALL | U, large);
        p.map(VA, DATA, ALL | U, 0);
        p.map(VA + 0x1000, DATA, ALL, 0);
        p.b.set_mode(Mode::U);
        p.b.status(status::SUM);
        assert_eq!((p.store(VA), p.load(VA)), (None, None));
        p.b.set_mem(DATA, 4, NOP.into());
        assert_eq!(p.fetch(VA), None);
        let va = VA + 0x1000;
        assert_eq!(p.load(va), Some((13, va)));
        assert_eq!(p.store(va), Some((15, va)));
        assert_eq!(p.fetch(va), Some((12, va)));
    }
}

#[test]
fn reserved_bits_must_be_zero() {
    // 10.4.1: bits 60 to 54 are reserved, PBMT is while menvcfg.PBMTE is clear, and N
    // has a meaning for some page numbers only; 10.3.1: A, D and U of pointers are
    // reserved.
    for bit in 54..64 {
        let mut p = Paged::sv39();
        p.map(VA, DATA + 0x1000, ALL | 1 << bit, 0);
        assert_eq!(p.load(VA), Some((13, VA)), "leaf, bit {bit}");
        p.map(VA, DATA, ALL, 0);
        assert_eq!(p.load(VA), None);
        let at = p.entry(VA, 1);
        let pointer = p.b.mem(at, 8);
        p.b.set_mem(at, 8, pointer | 1 << bit);
        assert_eq!(p.load(VA), Some((13, VA)), "pointer, bit {bit}");
    }
    for mut p in Paged::both() {
        p.map(VA, DATA, ALL, 0);
        let at = p.entry(VA, 1);
        let size = p.size;
        let pointer = p.b.mem(at, size);
        for flag in [A, D, U] {
            p.b.set_mem(at, size, pointer | flag);
            assert_eq!(p.load(VA), Some((13, VA)), "pointer with {flag:#x}");
        }
        // G and the bits for software mean nothing here.
        p.b.set_mem(at, size, pointer | G | 0x300);
        assert_eq!(p.load(VA), None);
        p.map(VA, DATA, ALL | G | 0x300, 0);
        assert_eq!(p.load(VA), None);
    }
}

#[test]
fn a_pointer_in_the_last_table_leads_nowhere() {
    // 10.3.2 step 4.
    for mut p in Paged::both() {
        p.map(VA, DATA, V, 0);
        assert_eq!(p.load(VA), Some((13, VA)));
        assert_eq!(p.store(VA), Some((15, VA)));
        assert_eq!(p.fetch(VA), Some((12, VA)));
    }
}

#[test]
fn upper_address_bits_must_be_copies() {
    // 10.4.1: bits 63 to 39 equal bit 38.
    for (levels, bits) in [(3, 39), (4, 48), (5, 57)] {
        let mut p = Paged::new(virt(Xlen::Rv64), levels);
        p.map(VA, DATA, ALL, 0);
        let high = !0u64 << (bits - 1);
        p.map(high | VA, DATA, ALL, 0);
        assert_eq!((p.load(VA), p.load(high | VA)), (None, None));
        for bit in bits - 1..64 {
            for va in [VA ^ 1 << bit, (high | VA) ^ 1 << bit] {
                assert_eq!(p.load(va), Some((13, va)), "{va:#x}");
                assert_eq!(p.store(va), Some((15, va)), "{va:#x}");
                assert_eq!(p.fetch(va), Some((12, va)), "{va:#x}");
            }
        }
    }
}
