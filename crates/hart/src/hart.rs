//! One hart: its state, cached translations and decoded code.

use hartrace_ctr::Ctr;
use hartrace_flow::{Access, Effects};
use hartrace_isa::Isa;

use crate::bus::Bus;
use crate::changes::Collected;
use crate::code::{Block, Code, instruction, is_short};
use crate::cost::Costs;
use crate::cpu::{Cpu, Exception};
use crate::memory::PAGE;
use crate::mmu::{self, Tlb, Translation, Use};
use crate::notes::Records;
use crate::pieces::Pieces;
use crate::row::TrapRow;
use crate::vigil::Vigil;

/// A hart.
#[derive(Debug)]
pub(crate) struct Hart {
    pub(crate) cpu: Cpu,
    pub(crate) tlb: Tlb,
    pub(crate) code: Code,
    /// What the current instruction has changed, for observers.
    pub(crate) effects: Effects,
    /// Accesses of the code in `pieces`, for an observer that wants them.
    pub(crate) accesses: Vec<Access>,
    /// Everything that this code changed, for an observer that wants it.
    pub(crate) changes: Collected,
    /// Code that was executed, for observers.
    pub(crate) pieces: Pieces,
    pub(crate) costs: Costs,
    pub(crate) misaligned: bool,
    /// The integer registers while the interpreter runs. There are as many as
    /// a byte can name, so that no number needs a check.
    pub(crate) x: Box<[u64; 256]>,
    pub(crate) vigil: Vigil,
    pub(crate) row: TrapRow,
}

impl Hart {
    pub(crate) fn new(cpu: Cpu, costs: Costs, misaligned: bool) -> Hart {
        let version = cpu.records.as_ref().map(|r| r.ctr().config().version);
        let types = version.unwrap_or_default().types();
        let mut tlb = Tlb::new();
        tlb.enter(&cpu);
        Hart {
            code: Code::new(cpu.isa, costs, types, cpu.cache_block),
            cpu,
            tlb,
            effects: Effects::default(),
            accesses: Vec::new(),
            changes: Collected::new(),
            pieces: Pieces::new(),
            costs,
            misaligned,
            x: Box::new([0; 256]),
            vigil: Vigil::default(),
            row: TrapRow::default(),
        }
    }

    /// Keeps control transfer records that the program does not know of.
    pub(crate) fn record_to(&mut self, ctr: Ctr) {
        let types = ctr.config().version.types();
        let Cpu {
            isa, cache_block, ..
        } = self.cpu;
        self.code = Code::new(isa, self.costs, types, cache_block);
        self.tlb.forget_code();
        self.cpu.records = Some(Box::new(Records::new(ctr, true)));
    }

    /// Forgets decoded code; the instruction set may have changed.
    pub(crate) fn forget_code(&mut self, isa: Isa) {
        self.code.clear(isa);
        self.tlb.forget_code();
    }

    /// Forgets the code of frames that were written.
    pub(crate) fn forget_frames(&mut self, frames: &[u32]) {
        for &frame in frames {
            self.code.forget_frame(frame);
        }
        self.tlb.forget_blocks();
    }

    /// Finds and decodes the code at pc. `Some` is a block of one instruction
    /// to be run once: where the rights of a page are not uniform, or in a device.
    pub(crate) fn fetch(&mut self, bus: &mut Bus) -> Result<Option<Block>, Exception> {
        if self.code.is_full() {
            self.forget_code(self.cpu.isa);
        }
        let pc = self.cpu.pc;
        // A page that is known stays where it is until a fence: how much of it
        // was decoded when must not matter.
        let found = match self.tlb.known(Use::Fetch, pc) {
            Some(paddr) => Translation { paddr, size: PAGE },
            None => mmu::find(&self.cpu, bus, pc, 2, Use::Fetch)?,
        };
        let Some(frame) = self.lasting(bus, found.paddr) else {
            return self.fetch_one(bus, found.paddr).map(Some);
        };
        let table = self.code.table(frame);
        let mut known = self.code.block(table, pc);
        if known.count == 0 {
            let page = bus.memory.page(frame).ok_or(Use::Fetch.access_fault(pc))?;
            if instruction(page, pc % PAGE).is_none() {
                return self.fetch_crossing(bus, frame, found);
            }
            let covered = self.code.build(table, pc, page);
            if bus.memory.mark_code(frame, pc % PAGE, covered) {
                self.tlb.forget_stores(frame);
            }
            known = self.code.block(table, pc);
        }
        self.tlb.fill(Use::Fetch, pc, found, table);
        self.tlb.blocks.keep(pc, known);
        Ok(None)
    }

    /// The frame of code that may be kept: in memory, all of its page alike.
    fn lasting(&self, bus: &Bus, paddr: u64) -> Option<u32> {
        let spot = bus.memory.spot(paddr)?;
        let uniform = self.cpu.pmp.is_uniform(paddr & !(PAGE - 1));
        uniform.then_some(spot.frame)
    }

    /// The same for an instruction that ends in the next page, which is kept by its
    /// virtual address alone: the next page may be another one elsewhere.
    fn fetch_crossing(
        &mut self,
        bus: &mut Bus,
        frame: u32,
        found: Translation,
    ) -> Result<Option<Block>, Exception> {
        let pc = self.cpu.pc;
        let block = self.fetch_one(bus, found.paddr)?;
        let behind = self.cpu.xlen().wrap(pc.wrapping_add(2));
        let second = mmu::find(&self.cpu, bus, behind, 2, Use::Fetch)?;
        let Some(next) = self.lasting(bus, second.paddr) else {
            return Ok(Some(block));
        };
        for (frame, at, page) in [(frame, pc, found), (next, behind, second)] {
            if bus.memory.mark_code(frame, at % PAGE, 2) {
                self.tlb.forget_stores(frame);
            }
            let table = self.code.table(frame);
            self.tlb.fill(Use::Fetch, at, page, table);
        }
        self.tlb.blocks.keep(pc, block);
        Ok(None)
    }

    /// Decodes one instruction, halfword by halfword.
    fn fetch_one(&mut self, bus: &mut Bus, paddr: u64) -> Result<Block, Exception> {
        let pc = self.cpu.pc;
        let low = self.parcel(bus, paddr).ok_or(Use::Fetch.access_fault(pc))?;
        let mut bits = u32::from(low);
        if !is_short(low) {
            let next = self.cpu.xlen().wrap(pc.wrapping_add(2));
            let paddr = mmu::translate(&self.cpu, bus, next, 2, Use::Fetch)?;
            let high = self.parcel(bus, paddr);
            bits |= u32::from(high.ok_or(Use::Fetch.access_fault(next))?) << 16;
        }
        Ok(self.code.build_one(bits))
    }

    /// A halfword of code, from memory or from a device.
    fn parcel(&self, bus: &mut Bus, paddr: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        if bus.memory.read(paddr, &mut bytes) {
            return Some(u16::from_le_bytes(bytes));
        }
        let device = bus.as_spike.then_some(paddr)?;
        bus.load(device, 2, self.cpu.cycles).map(|bits| bits as u16)
    }
}
