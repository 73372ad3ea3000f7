//! Address translation, protection, and the lookup tables that make them fast.

use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use crate::blocks::Blocks;
use crate::bus::Bus;
use crate::cpu::{Cpu, Exception, cause, envcfg, status};
use crate::memory::PAGE;

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Fetch,
    Load,
    Store,
}

impl Use {
    pub(crate) fn access_fault(self, tval: u64) -> Exception {
        let code = match self {
            Use::Fetch => cause::FETCH_ACCESS,
            Use::Load => cause::LOAD_ACCESS,
            Use::Store => cause::STORE_ACCESS,
        };
        Exception { code, tval }
    }

    pub(crate) fn page_fault(self, tval: u64) -> Exception {
        let code = match self {
            Use::Fetch => cause::FETCH_PAGE,
            Use::Load => cause::LOAD_PAGE,
            Use::Store => cause::STORE_PAGE,
        };
        Exception { code, tval }
    }
}

/// One remembered page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Virtual page and context; see [`Tlb`].
    pub(crate) tag: u64,
    /// Physical address of the page.
    pub(crate) page: u64,
    /// Frame of the page; for fetches, the number of its code table.
    pub(crate) frame: u32,
}

const EMPTY: Entry = Entry {
    tag: u64::MAX,
    page: 0,
    frame: 0,
};

const ENTRIES: usize = 1024;

const GIGABYTE: u64 = 1 << 30;

/// Contexts before entries must be forgotten: the last one is never used, so
/// that the tag of an empty entry matches nothing.
const EPOCHS: u64 = 31;

/// Remembered translations.
///
/// A tag is a virtual page in bits 63 to 12 and a context in bits 11 to 3:
/// the mode, SUM, MXR and an epoch that grows when translations change. Bits
/// 2 to 0 are zero, so that comparing a tag with an address under a mask also
/// finds misaligned accesses.
#[derive(Clone, Debug)]
pub(crate) struct Tlb {
    pub(crate) fetch: Box<[Entry; ENTRIES]>,
    pub(crate) load: Box<[Entry; ENTRIES]>,
    pub(crate) store: Box<[Entry; ENTRIES]>,
    /// The blocks at virtual addresses, while their pages stay where they are.
    pub(crate) blocks: Blocks,
    pub(crate) fetch_context: u64,
    pub(crate) data_context: u64,
    epoch: u64,
    /// The gigabytes, by the low bits of their number, in which a page larger than
    /// [`PAGE`] was found.
    large: u64,
    /// Everything is forgotten with every trap and every return from one, and
    /// when the rights of loads and stores change, as Spike does: a program
    /// that changes page tables and fences nothing sees the change from then
    /// on.
    pub(crate) forgetful: bool,
}

impl Tlb {
    pub(crate) fn new() -> Tlb {
        Tlb {
            fetch: Box::new([EMPTY; ENTRIES]),
            load: Box::new([EMPTY; ENTRIES]),
            store: Box::new([EMPTY; ENTRIES]),
            blocks: Blocks::new(),
            fetch_context: 0,
            data_context: 0,
            epoch: 0,
            large: 0,
            forgetful: false,
        }
    }

    /// The entry an address would be in.
    #[inline(always)]
    pub(crate) fn slot(table: &[Entry; ENTRIES], addr: u64) -> &Entry {
        // Masked to the size of the table.
        #[allow(clippy::indexing_slicing)]
        &table[(addr / PAGE) as usize % ENTRIES]
    }

    fn slot_mut(table: &mut [Entry; ENTRIES], addr: u64) -> &mut Entry {
        // Masked to the size of the table.
        #[allow(clippy::indexing_slicing)]
        &mut table[(addr / PAGE) as usize % ENTRIES]
    }

    /// The physical address of an address in a remembered page.
    pub(crate) fn known(&self, what: Use, addr: u64) -> Option<u64> {
        let (table, context) = match what {
            Use::Fetch => (&self.fetch, self.fetch_context),
            Use::Load => (&self.load, self.data_context),
            Use::Store => (&self.store, self.data_context),
        };
        let entry = Tlb::slot(table, addr);
        let known = entry.tag == addr & !(PAGE - 1) | context;
        known.then(|| entry.page + addr % PAGE)
    }

    /// Remembers the page of an address, and the frame or table it is in.
    pub(crate) fn fill(&mut self, what: Use, addr: u64, found: Translation, frame: u32) {
        let (table, context) = match what {
            Use::Fetch => (&mut self.fetch, self.fetch_context),
            Use::Load => (&mut self.load, self.data_context),
            Use::Store => (&mut self.store, self.data_context),
        };
        *Tlb::slot_mut(table, addr) = Entry {
            tag: addr & !(PAGE - 1) | context,
            page: found.paddr & !(PAGE - 1),
            frame,
        };
        self.large |= match found.size {
            PAGE => 0,
            size if size <= GIGABYTE => 1 << (addr / GIGABYTE % 64),
            _ => u64::MAX,
        };
        if what == Use::Fetch {
            self.blocks.visit(addr);
        }
    }

    /// Forgets all translations.
    pub(crate) fn flush(&mut self, cpu: &Cpu) {
        self.epoch += 1;
        self.large = 0;
        if self.epoch == EPOCHS {
            self.epoch = 0;
            self.fetch.fill(EMPTY);
            self.load.fill(EMPTY);
            self.store.fill(EMPTY);
            self.blocks.forget();
        }
        self.enter(cpu);
    }

    /// Forgets the translation of one address: the page it is in, which may be a
    /// large one, of which pieces are remembered.
    pub(crate) fn flush_page(&mut self, cpu: &Cpu, addr: u64) {
        if self.forgetful || self.large >> (addr / GIGABYTE % 64) & 1 != 0 {
            return self.flush(cpu);
        }
        for table in [&mut self.fetch, &mut self.load, &mut self.store] {
            *Tlb::slot_mut(table, addr) = EMPTY;
        }
        if self.blocks.visited(addr) {
            self.blocks.forget();
            self.enter(cpu);
        }
    }

    /// Forgets where code is.
    pub(crate) fn forget_code(&mut self) {
        self.fetch.fill(EMPTY);
        self.forget_blocks();
    }

    /// Forgets which blocks there are.
    pub(crate) fn forget_blocks(&mut self) {
        self.blocks.forget();
        self.blocks.enter(self.fetch_context);
    }

    /// Forgets that stores go to a frame.
    pub(crate) fn forget_stores(&mut self, frame: u32) {
        for entry in self.store.iter_mut().filter(|entry| entry.frame == frame) {
            *entry = EMPTY;
        }
    }

    /// Goes to the context of the hart's mode and status after a trap or a
    /// return from one.
    pub(crate) fn change_mode(&mut self, cpu: &Cpu) {
        if self.forgetful {
            self.flush(cpu);
        } else {
            self.enter(cpu);
        }
    }

    /// Goes to the context of the hart's mode and status after a write to a
    /// CSR.
    pub(crate) fn change_status(&mut self, cpu: &Cpu) {
        let before = self.data_context;
        self.enter(cpu);
        if self.forgetful && self.data_context != before {
            self.flush(cpu);
        }
    }

    /// Goes to the context of the hart's mode and status.
    pub(crate) fn enter(&mut self, cpu: &Cpu) {
        let context =
            |mode: Mode, rights: u64| (self.epoch << 4 | rights << 2 | u64::from(mode.code())) << 3;
        // They do not concern code.
        let rights = (cpu.mstatus & (status::SUM | status::MXR)) >> 18;
        self.fetch_context = context(cpu.mode, 0);
        self.data_context = context(cpu.data_mode(), rights);
        self.blocks.enter(self.fetch_context);
    }
}

/// The shape of a page table.
struct Scheme {
    levels: u32,
    index_bits: u32,
    entry_size: u64,
    root: u64,
}

impl Scheme {
    fn of(cpu: &Cpu) -> Option<Scheme> {
        let satp = cpu.satp;
        match cpu.xlen() {
            Xlen::Rv32 => (satp >> 31 & 1 != 0).then_some(Scheme {
                levels: 2,
                index_bits: 10,
                entry_size: 4,
                root: cpu.root_page() * PAGE,
            }),
            Xlen::Rv64 => {
                let levels = match satp >> 60 {
                    8 => 3,
                    9 => 4,
                    10 => 5,
                    _ => return None,
                };
                Some(Scheme {
                    levels,
                    index_bits: 9,
                    entry_size: 8,
                    root: cpu.root_page() * PAGE,
                })
            }
        }
    }
}

const V: u64 = 1;
const R: u64 = 2;
const W: u64 = 4;
const X: u64 = 8;
const U: u64 = 16;
const ACCESSED: u64 = 64;
const DIRTY: u64 = 128;
/// Bits 63 to 54, of entries that have them: N, the memory type, and reserved ones.
const UPPER: u64 = 0xffc0_0000_0000_0000;
/// A page of 64 KiB, at the last level (Svnapot).
const N: u64 = 1 << 63;
/// The memory type (Svpbmt); 3 is reserved.
const PBMT: u64 = 3 << 61;
/// The low bits of the page number in an entry with N.
const NAPOT_MASK: u64 = 0xf;
const NAPOT_64K: u64 = 0x8;

/// Where an address lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Translation {
    pub(crate) paddr: u64,
    /// The size of its page, in bytes.
    pub(crate) size: u64,
}

/// The physical address for an access of `len` bytes that do not cross a page. Sets A
/// and D where the walker does so; protection is checked.
pub(crate) fn translate(
    cpu: &Cpu,
    bus: &mut Bus,
    addr: u64,
    len: u64,
    what: Use,
) -> Result<u64, Exception> {
    find(cpu, bus, addr, len, what).map(|found| found.paddr)
}

/// The same, with the page.
pub(crate) fn find(
    cpu: &Cpu,
    bus: &mut Bus,
    addr: u64,
    len: u64,
    what: Use,
) -> Result<Translation, Exception> {
    let mode = match what {
        Use::Fetch => cpu.mode,
        _ => cpu.data_mode(),
    };
    let found = match Scheme::of(cpu) {
        Some(scheme) if mode != Mode::M => walk(cpu, bus, addr, what, mode, &scheme)?,
        _ => Translation {
            paddr: addr,
            size: PAGE,
        },
    };
    if cpu.pmp.allows(found.paddr, len, what, mode) {
        Ok(found)
    } else {
        Err(what.access_fault(addr))
    }
}

/// The algorithm of the privileged architecture, 10.3.2.
fn walk(
    cpu: &Cpu,
    bus: &mut Bus,
    addr: u64,
    what: Use,
    mode: Mode,
    scheme: &Scheme,
) -> Result<Translation, Exception> {
    let fault = what.page_fault(addr);
    let bits = 12 + scheme.levels * scheme.index_bits;
    // The bits above are copies of the highest one that counts.
    if bits < cpu.xlen().bits() {
        let above = (addr as i64) >> (bits - 1);
        if above != 0 && above != -1 {
            return Err(fault);
        }
    }
    let reserved = reserved(cpu);
    let mut table = scheme.root;
    for level in (0..scheme.levels).rev() {
        let shift = 12 + level * scheme.index_bits;
        let index = addr >> shift & ((1 << scheme.index_bits) - 1);
        let at = table + index * scheme.entry_size;
        let entry = read_entry(cpu, bus, at, scheme, what, addr)?;
        let ppn = (entry & !UPPER) >> 10;
        if entry & reserved != 0 || entry & PBMT == PBMT {
            return Err(fault);
        }
        if entry & (V | R | W | X) == V {
            if entry & (DIRTY | ACCESSED | U | N | PBMT) != 0 {
                return Err(fault);
            }
            table = ppn * PAGE;
            continue;
        }
        let napot = entry & N != 0;
        if napot && (level != 0 || ppn & NAPOT_MASK != NAPOT_64K) {
            return Err(fault);
        }
        let (ppn, within) = match napot {
            true => (ppn & !NAPOT_MASK, NAPOT_MASK),
            false => (ppn, (1u64 << (shift - 12)) - 1),
        };
        if !permits(cpu, entry, what, mode) || ppn & within != 0 {
            return Err(fault);
        }
        let used = ACCESSED | if what == Use::Store { DIRTY } else { 0 };
        if entry & used != used {
            if !cpu.updates_ad() {
                return Err(fault);
            }
            write_entry(cpu, bus, at, entry | used, scheme, what, addr)?;
        }
        let page = ppn | ((addr / PAGE) & within);
        return Ok(Translation {
            paddr: page * PAGE + addr % PAGE,
            size: PAGE * (within + 1),
        });
    }
    Err(fault)
}

/// The upper bits of an entry that must be zero.
fn reserved(cpu: &Cpu) -> u64 {
    let napot = if cpu.svnapot { N } else { 0 };
    let types = match cpu.menvcfg & envcfg::PBMTE {
        0 => 0,
        _ => PBMT,
    };
    UPPER & !(napot | types)
}

fn permits(cpu: &Cpu, entry: u64, what: Use, mode: Mode) -> bool {
    let user = entry & U != 0;
    let right_mode = match mode {
        Mode::S => !user || what != Use::Fetch && cpu.mstatus & status::SUM != 0,
        _ => user,
    };
    let valid = entry & V != 0 && entry & (R | W) != W;
    let executable_as_data = cpu.mstatus & status::MXR != 0 && entry & X != 0;
    let right_use = match what {
        Use::Fetch => entry & X != 0,
        Use::Load => entry & R != 0 || executable_as_data,
        Use::Store => entry & W != 0,
    };
    right_mode && valid && right_use
}

/// Page-table entries are read as supervisor, whoever translates; a failure
/// is an access fault of the original kind.
fn read_entry(
    cpu: &Cpu,
    bus: &mut Bus,
    at: u64,
    scheme: &Scheme,
    what: Use,
    addr: u64,
) -> Result<u64, Exception> {
    let mut bytes = [0; 8];
    let size = scheme.entry_size as usize;
    let fault = what.access_fault(addr);
    if !cpu.pmp.allows(at, scheme.entry_size, Use::Load, Mode::S) {
        return Err(fault);
    }
    if bytes
        .get_mut(..size)
        .is_some_and(|b| bus.memory.read(at, b))
    {
        return Ok(u64::from_le_bytes(bytes));
    }
    let device = bus.as_spike.then_some(at).ok_or(fault)?;
    bus.load(device, scheme.entry_size, cpu.cycles).ok_or(fault)
}

fn write_entry(
    cpu: &Cpu,
    bus: &mut Bus,
    at: u64,
    entry: u64,
    scheme: &Scheme,
    what: Use,
    addr: u64,
) -> Result<(), Exception> {
    let bytes = entry.to_le_bytes();
    let allowed = cpu.pmp.allows(at, scheme.entry_size, Use::Store, Mode::S);
    let data = bytes.get(..scheme.entry_size as usize).unwrap_or_default();
    if allowed && bus.memory.write(at, data) {
        Ok(())
    } else {
        Err(what.access_fault(addr))
    }
}
