//! Sections with address translation (Sv39, or Sv32 for RV32) and with
//! physical memory protection.
//!
//! Two address spaces map code and data to themselves, one for the
//! supervisor and one where the body and its data are the user's. Beside
//! that, some entries of every level are rewritten all the time with random
//! rights and targets.

use super::handler::csr;
use super::layout::{
    BODY, CODE, CODE_END, DATA, GUARDED, HUGE_PAGE, MAPPED_END, PAGE_COUNT, PAGES, POOL,
    RETURN_COUNT, RETURNS, SUPERPAGE, TABLES, TOHOST,
};
use super::program::{Mode, Torture};
use crate::elf::Segment;
use crate::generate::asm;
use hartrace_isa::Ext;

const PAGE: u64 = 0x1000;

/// V, A and D with R and X, or R and W.
const CODE_RIGHTS: u64 = 0xcb;
const DATA_RIGHTS: u64 = 0xc7;
const USER: u64 = 0x10;

/// The tables of an address space, and those that both share.
struct Tables {
    /// Bytes of an entry, entries of a table as a power of two, levels.
    size: u64,
    bits: u32,
    levels: u32,
}

/// An entry that random mappings are written to.
#[derive(Clone, Copy)]
struct Slot {
    /// Where it is.
    at: u64,
    /// What it maps.
    virt: u64,
    /// 0 for a page.
    level: u32,
}

/// Where the middle of the test area begins.
const TEST: u64 = 0xc000_0000;
/// Page slots in use.
const PAGE_SLOTS: u64 = 16;

impl Tables {
    fn new(wide: bool) -> Tables {
        if wide {
            Tables {
                size: 8,
                bits: 9,
                levels: 3,
            }
        } else {
            Tables {
                size: 4,
                bits: 10,
                levels: 2,
            }
        }
    }

    /// A table by its number: for a space its root first, then down to the
    /// pages; after both spaces the ones of the test area.
    fn table(&self, space: u64, level: u32) -> u64 {
        let number = space * u64::from(self.levels) + u64::from(self.levels - 1 - level);
        TABLES + number * PAGE
    }

    /// A table of the test area; there is no root among them.
    fn test(&self, level: u32) -> u64 {
        TABLES + (u64::from(2 * self.levels) + u64::from(level)) * PAGE
    }

    fn index(&self, virt: u64, level: u32) -> u64 {
        virt >> (12 + self.bits * level) & ((1 << self.bits) - 1)
    }

    fn entry(&self, table: u64, virt: u64, level: u32) -> u64 {
        table + self.index(virt, level) * self.size
    }

    /// All slots of a space.
    fn slots(&self, space: u64) -> Vec<Slot> {
        let mut slots = Vec::new();
        let top = self.levels - 1;
        for n in 0..PAGE_SLOTS {
            let virt = TEST + n * PAGE;
            slots.push(Slot {
                at: self.entry(self.test(0), virt, 0),
                virt,
                level: 0,
            });
        }
        for level in 1..top {
            for n in 1..5 {
                let virt = TEST + (n << (12 + self.bits * level));
                slots.push(Slot {
                    at: self.entry(self.test(level), virt, level),
                    virt,
                    level,
                });
            }
        }
        let places = if self.levels == 3 {
            [0x4_0000_0000, 0x4_4000_0000, 0xffff_ffff_8000_0000]
        } else {
            [0xc080_0000, 0xd000_0000, 0xe000_0000]
        };
        for virt in places {
            slots.push(Slot {
                at: self.entry(self.table(space, top), virt, top),
                virt,
                level: top,
            });
        }
        slots
    }
}

/// A leaf or a pointer: page number and flags.
const fn entry(physical: u64, flags: u64) -> u64 {
    physical >> 12 << 10 | flags
}

impl Torture {
    /// The tables before the program starts.
    pub(super) fn fill_tables(&mut self) {
        let tables = Tables::new(self.wide());
        let count = 2 * tables.levels + tables.levels;
        let mut bytes = vec![0; count as usize * PAGE as usize];
        let mut set = |at: u64, value: u64| {
            let from = (at - TABLES) as usize;
            let place = bytes.get_mut(from..from + tables.size as usize);
            for (to, from) in place.into_iter().flatten().zip(value.to_le_bytes()) {
                *to = from;
            }
        };
        for space in 0..2 {
            for level in 1..tables.levels {
                let table = tables.table(space, level);
                let below = tables.table(space, level - 1);
                set(tables.entry(table, CODE, level), entry(below, 1));
            }
            let root = tables.levels - 1;
            let at = tables.entry(tables.table(space, root), TEST, root);
            set(at, entry(tables.test(root - 1), 1));
            let mut page = CODE;
            while page < MAPPED_END {
                let at = tables.entry(tables.table(space, 0), page, 0);
                set(at, entry(page, rights(page, space == 1)));
                page += PAGE;
            }
        }
        for level in 1..tables.levels - 1 {
            let at = tables.entry(tables.test(level), TEST, level);
            set(at, entry(tables.test(level - 1), 1));
        }
        self.image.push(Segment {
            base: TABLES,
            bytes,
        });
        let pages = (0..PAGE_COUNT * PAGE / 8).flat_map(|_| self.random.draw().to_le_bytes());
        let bytes = pages.collect();
        self.image.push(Segment { base: PAGES, bytes });
    }

    /// satp for a space.
    fn write_satp(&mut self, space: u64) {
        let tables = Tables::new(self.wide());
        let root = tables.table(space, tables.levels - 1) >> 12;
        let value = if self.wide() {
            8 << 60 | self.random.below(0x1_0000) << 44 | root
        } else {
            1 << 31 | self.random.below(0x200) << 22 | root
        };
        self.code.li(5, value);
        self.code.csr(1, 0, csr::SATP, 5);
        self.code.put(0x1200_0073);
    }

    /// Random flags: mostly valid, used and dirty, mostly with all rights.
    fn flags(&mut self) -> u64 {
        let mut flags = self.random.below(0x400) & 0x33e | 0xc1;
        if self.random.chance(700) {
            flags |= 0x0e;
        }
        for (chance, bit) in [(50, 0x01), (120, 0x40), (120, 0x80)] {
            if self.random.chance(chance) {
                flags &= !bit;
            }
        }
        flags
    }

    /// A random entry for a slot, and whether it may be jumped to.
    fn mapping(&mut self, slot: Slot) -> (u64, bool) {
        let wide = self.wide();
        let mut flags = self.flags();
        let random = &mut self.random;
        let mut jump = false;
        let target = match slot.level {
            0 if random.chance(300) => {
                jump = true;
                // Nothing may write there.
                flags &= !0x04;
                RETURNS + random.below(RETURN_COUNT) * PAGE
            }
            0 => PAGES + random.below(PAGE_COUNT) * PAGE,
            level if random.chance(100) => {
                // A pointer, perhaps with flags that only a leaf has.
                flags = random.pick(&[1, 1, 1, 0x41, 0x81, 0x11, 0x21]);
                Tables::new(wide).test(level - 1)
            }
            2 => HUGE_PAGE,
            _ => SUPERPAGE,
        };
        let leaf = flags & 0x0e != 0;
        let mut value = entry(target, flags);
        if slot.level > 0 && leaf && random.chance(120) {
            // A superpage that is not aligned.
            value |= 1 << (10 + random.below(9));
        }
        if leaf && random.chance(30) {
            // No memory there.
            value |= if wide {
                1 << random.pick(&[42, 45, 53])
            } else {
                0xc000_0000
            };
        } else if wide && slot.level == 0 && random.chance(60) {
            // 64 KiB (Svnapot), or what looks like it; not all of it is returns.
            jump = false;
            value |= 1 << 63 | random.pick(&[8, 8, 8, 4]) << 10;
        } else if wide && random.chance(40) {
            // Reserved, or extensions that are not there.
            value |= 1 << random.between(54, 63);
        }
        (value, jump)
    }

    fn write_mapping(&mut self, slot: Slot) -> bool {
        let (value, jump) = self.mapping(slot);
        self.code.li(5, value);
        self.code.li(6, slot.at);
        self.code.store(5, 6, 0);
        jump
    }

    /// Accesses through a slot, or a jump when only returns are there.
    fn use_mapping(&mut self, slot: Slot, jump: bool) {
        for _ in 0..self.random.between(1, 3) {
            let reach = if slot.level == 0 {
                0xfc0
            } else {
                1 << (12 + 9 * slot.level)
            };
            let mut virt = slot.virt + (self.random.below(reach) & !7);
            if self.random.chance(20) && self.wide() {
                virt ^= 1 << self.random.between(38, 63);
            }
            self.code.li(7, virt);
            if self.has(Ext::Zcmp) && self.free_of_small() && self.random.chance(200) {
                self.stack_at(7);
            } else if jump && self.free(1) && self.random.chance(500) {
                self.code.put(asm::jalr(1, 7, 0));
            } else {
                self.access(7);
            }
        }
    }

    pub(super) fn paging_section(&mut self, steps: u32) {
        if self.random.chance(500) {
            let exceptions = self.random.draw() & 0xb1ff;
            let exceptions = self.random.pick(&[0xb1ff, exceptions]);
            self.code.li(5, exceptions);
            self.code.csr(1, 0, csr::MEDELEG, 5);
        }
        if self.random.chance(500) {
            self.supervisor_pages(steps);
        } else {
            self.user_pages(steps);
        }
    }

    /// The supervisor rewrites entries and tries them.
    fn supervisor_pages(&mut self, steps: u32) {
        let slots = Tables::new(self.wide()).slots(0);
        self.write_satp(0);
        self.enter(Mode::Supervisor);
        self.paged = true;
        for _ in 0..steps {
            let Some(&slot) = slots.get(self.random.below(slots.len() as u64) as usize) else {
                return;
            };
            let jump = self.write_mapping(slot);
            let mut fence = self.fence();
            if self.random.chance(200) {
                self.code.li(6, slot.virt);
                fence |= 6 << 15;
            }
            self.code.put(fence);
            // SUM and MXR.
            let bits = self.random.below(4) << 18;
            self.code.li(5, bits);
            let funct3 = self.random.pick(&[2, 3]);
            self.code.csr(funct3, 0, csr::SSTATUS, 5);
            self.use_mapping(slot, jump);
            if self.random.chance(300) {
                self.atom();
            }
        }
    }

    /// Machine mode rewrites entries, the user tries them, or machine mode
    /// with the rights of a lower one.
    fn user_pages(&mut self, steps: u32) {
        let slots = Tables::new(self.wide()).slots(1);
        let mut chosen = Vec::new();
        for _ in 0..6 {
            if let Some(&slot) = slots.get(self.random.below(slots.len() as u64) as usize) {
                let jump = self.write_mapping(slot);
                chosen.retain(|(s, _): &(Slot, bool)| s.at != slot.at);
                chosen.push((slot, jump));
            }
        }
        self.write_satp(1);
        if self.random.chance(250) {
            self.borrowed_rights(&chosen);
        }
        // SUM for the supervisor's handler, whose memory is the user's.
        self.code.li(5, 1 << 18 | self.random.below(2) << 19);
        self.code.csr(2, 0, csr::MSTATUS, 5);
        self.enter(Mode::User);
        self.paged = true;
        for _ in 0..steps {
            let at = self.random.below(chosen.len() as u64) as usize;
            if let Some(&(slot, jump)) = chosen.get(at) {
                self.use_mapping(slot, jump);
            }
            if self.random.chance(300) {
                self.atom();
            }
        }
    }

    /// MPRV with translation on; jumps are not translated, so there are none.
    fn borrowed_rights(&mut self, chosen: &[(Slot, bool)]) {
        for &(slot, _) in chosen {
            self.code.li(5, 0x1800 | 3 << 18);
            self.code.csr(3, 0, csr::MSTATUS, 5);
            let bits = 1 << 17 | self.random.pick(&[0, 0x800]) | self.random.below(4) << 18;
            self.code.li(5, bits);
            self.code.csr(2, 0, csr::MSTATUS, 5);
            self.use_mapping(slot, false);
            self.code.li(5, 1 << 17);
            self.code.csr(3, 0, csr::MSTATUS, 5);
        }
    }

    /// Rights to parts of a page, and accesses around their ends.
    pub(super) fn pmp_section(&mut self, steps: u32) {
        let mut config = 0u64;
        let mut places = vec![GUARDED, GUARDED + 0xfc0];
        for n in 0..4u64 {
            let at = GUARDED + (self.random.below(0x1000) & !3);
            places.push(at);
            let size = 8u64 << self.random.below(7);
            // NA4, NAPOT, or TOR for those whose lower end is here too.
            let kinds = if n == 0 {
                &[0, 2, 3, 3][..]
            } else {
                &[0, 1, 1, 2, 3, 3][..]
            };
            let kind = self.random.pick(kinds);
            let mut address = at >> 2;
            if kind == 3 {
                address = (at & !(size - 1)) >> 2 | (size / 8 - 1);
            }
            let mut rights = self.random.below(8);
            if n == 3 && self.random.chance(500) {
                // The pages of returns, all of them.
                address = RETURNS >> 2 | (RETURN_COUNT * PAGE / 8 - 1);
                rights |= 3 << 3;
                config |= rights << 24;
            } else {
                config |= (rights | kind << 3) << (8 * n);
            }
            self.code.li(5, address);
            self.code.csr(1, 0, csr::PMPADDR0 + n as u32, 5);
        }
        self.code.li(5, config);
        self.code.csr(1, 0, csr::PMPCFG0, 5);
        if self.random.chance(50) {
            self.lock();
        }
        if self.random.chance(300) {
            self.code.li(5, 0xb1ff);
            self.code.csr(1, 0, csr::MEDELEG, 5);
        }
        let mode = self.lower_mode();
        if self.random.chance(800) {
            self.enter(mode);
        }
        for _ in 0..steps {
            let at = self.random.pick(&places);
            let near = self.random.below(16) * 4;
            self.code.li(7, (at + near).saturating_sub(32));
            self.access(7);
            if self.random.chance(150) && self.free(1) {
                self.code.li(7, RETURNS + self.random.below(0x7fc) * 4);
                self.code.put(asm::jalr(1, 7, 0));
            }
        }
        self.leave();
        self.code.csr(1, 0, csr::PMPCFG0, 0);
    }

    /// An entry that holds for machine mode as well, until the end.
    fn lock(&mut self) {
        let n = self.random.between(4, 7);
        let size = 8u64 << self.random.below(7);
        let at = GUARDED + 0x800 + (self.random.below(0x700) & !(size - 1));
        self.code.li(5, at >> 2 | (size / 8 - 1));
        self.code.csr(1, 0, csr::PMPADDR0 + n, 5);
        let config = (0x98 | self.random.below(8)) << (8 * (n % 4));
        let (csr, config) = if self.wide() {
            (csr::PMPCFG0, config << 32)
        } else {
            (csr::PMPCFG0 + 1, config)
        };
        self.code.li(5, config);
        self.code.csr(2, 0, csr, 5);
    }
}

/// What a page of the program may be used for.
const fn rights(page: u64, users: bool) -> u64 {
    let code = page < CODE_END;
    let shared = page >= BODY && page < CODE_END || page == POOL;
    let data = page >= DATA && page < TOHOST;
    let rights = if code { CODE_RIGHTS } else { DATA_RIGHTS };
    if users && (shared || data) {
        rights | USER
    } else {
        rights
    }
}
