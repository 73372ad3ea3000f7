//! Atoms of the extensions that need care: cache blocks, Zcmp, Zcmt, compare-and-swap,
//! the supervisor's timer, and the parts of address-translation fences.

use hartrace_isa::{Ext, Inst, Op};

use super::code::{SP, TP};
use super::handler::csr;
use super::layout::{CODE, DATA_MIDDLE};
use super::menu::{Class, second};
use super::program::Torture;
use crate::generate::asm::{self, Stack, cm_stack, cm_table};

const JVT: u32 = 0x017;
const STIMECMP: u32 = 0x14d;
const STIMECMPH: u32 = 0x15d;
const MENVCFG: u32 = 0x30a;
const MENVCFGH: u32 = 0x31a;
const TIME: u32 = 0xc01;

const SFENCE_VMA: u32 = 0x1200_0073;
const SINVAL_VMA: u32 = 0x1600_0073;
const SFENCE_W_INVAL: u32 = 0x1800_0073;
const SFENCE_INVAL_IR: u32 = 0x1810_0073;
/// The hypervisor's, which are illegal without one.
const HINVAL_VVMA: u32 = 0x2600_0073;
const HINVAL_GVMA: u32 = 0x6600_0073;

/// Registers that `cm.push` and its kin know: ra, s0 to s11; and a0 and a1.
const SMALL: u32 = 1 << 1 | 3 << 8 | 0x3ff << 18 | 3 << 10;

impl Torture {
    /// `sfence.vma`, or what it can be put together from.
    pub(super) fn fence(&mut self) -> u32 {
        if !self.has(Ext::Svinval) || self.random.chance(600) {
            return SFENCE_VMA;
        }
        for fence in [SFENCE_W_INVAL, SFENCE_INVAL_IR] {
            if self.random.chance(500) {
                self.code.put(fence);
            }
        }
        if self.random.chance(100) {
            let bits = self.random.pick(&[HINVAL_GVMA, HINVAL_VVMA]);
            self.code.put(bits);
        }
        SINVAL_VMA
    }

    /// Makes it likely that a compare-and-swap finds what it compares with: that is what
    /// is in memory.
    pub(super) fn expect(&mut self, inst: &Inst) {
        let funct3 = match inst.op {
            Op::AmocasB => 0,
            Op::AmocasH => 1,
            Op::AmocasW => 2,
            Op::AmocasD if self.wide() => 3,
            Op::AmocasD => 2,
            Op::AmocasQ => 3,
            _ => return,
        };
        let (rd, rs1) = (inst.rd.number().into(), inst.rs1.number().into());
        let second = second(inst, self.wide());
        if rd == 0 || rd == rs1 || second.is_some_and(|r| u32::from(r) == rs1) {
            return;
        }
        self.data_address(rs1, 16);
        self.code.put(asm::i_type(0x03, funct3, rd, rs1, 0));
        if let Some(second) = second {
            let next = if funct3 == 3 { 8 } else { 4 };
            self.code
                .put(asm::i_type(0x03, funct3, second.into(), rs1, next));
        }
        self.code.put(inst.bits);
    }

    /// An operation on a cache block.
    pub(super) fn cache_atom(&mut self) {
        let kept = self.kept;
        let inst = self.menu.pick(&mut self.random, Class::Cache, |inst| {
            let rs1 = inst.rs1.number();
            rs1 != 0 && kept >> rs1 & 1 == 0
        });
        let Some(inst) = inst else { return };
        self.data_address(inst.rs1.number().into(), 1);
        self.code.put(inst.bits);
    }

    /// Whether all registers of Zcmp may be written.
    pub(super) fn free_of_small(&self) -> bool {
        self.kept & SMALL == 0
    }

    /// One of Zcmp or Zcmt.
    pub(super) fn small_atom(&mut self) {
        let (zcmp, zcmt) = (self.has(Ext::Zcmp), self.has(Ext::Zcmt));
        match self.random.below(6) {
            0 if zcmt => self.table_jump(),
            1 if zcmt && self.free(1) => self.table_astray(),
            2 if zcmp && self.free_of_small() => self.move_pair(),
            3 if zcmp && self.free_of_small() && !self.paged => self.pop_return(),
            _ if zcmp && self.free_of_small() => self.push_and_pop(),
            _ if zcmt => self.table_jump(),
            _ => {}
        }
    }

    fn move_pair(&mut self) {
        let (first, second) = (self.random.below32(8), self.random.below32(8));
        let what = self.random.pick(&[0xac22, 0xac62]);
        self.code.put(what | first << 7 | second << 2);
    }

    /// One of the four, with any list but the reserved ones, mostly.
    fn stack(&mut self, what: Stack, list: u32) -> u32 {
        let adjust = self.random.below32(4);
        match self.random.chance(20) {
            true => cm_stack(what, self.random.below32(4), adjust),
            false => cm_stack(what, list, adjust),
        }
    }

    fn push_and_pop(&mut self) {
        if self.random.chance(60) {
            // Misaligned.
            self.code.addi(SP, SP, 2);
        }
        let list = self.random.between(4, 15);
        let push = self.stack(Stack::Push, list);
        self.code.put(push);
        if self.random.chance(500) {
            self.int_atom();
        }
        let list = match self.random.chance(700) {
            true => list,
            false => self.random.between(4, 15),
        };
        let pop = self.stack(Stack::Pop, list);
        self.code.put(pop);
        self.code.la(SP, DATA_MIDDLE);
    }

    /// A stack where a register points to, which may be nowhere or reach into the page
    /// before.
    pub(super) fn stack_at(&mut self, base: u32) {
        let offset = self.random.below32(16) as i32 * 8 - 16;
        self.code.addi(SP, base, offset);
        let list = self.random.between(4, 15);
        let what = match self.random.chance(500) {
            true => Stack::Push,
            false => Stack::Pop,
        };
        let bits = self.stack(what, list);
        self.code.put(bits);
        self.code.la(SP, DATA_MIDDLE);
    }

    /// The return address is pushed, and popped into the pc.
    fn pop_return(&mut self) {
        let list = self.random.between(4, 15);
        let push = cm_stack(Stack::Push, list, 0);
        let what = match self.random.chance(500) {
            true => Stack::PopRet,
            false => Stack::PopRetZ,
        };
        // auipc and addi, push, popret, a nop: 14 bytes.
        let target = self.code.pc() + 14;
        self.code.la(1, target);
        self.code.put(push);
        self.code.put(cm_stack(what, list, 0));
        self.code.put(0x0001);
    }

    /// A table with the one entry that is used, and a jump through it.
    fn table_jump(&mut self) {
        let index = self.index();
        let bytes = if self.wide() { 8 } else { 4 };
        let offset = u64::from(index) * bytes;
        let over = self.code.jal_ahead(0);
        self.code.align(4);
        while self.code.pc() % 64 != offset % 64 {
            self.code.put(0x13);
        }
        let entry = self.code.pc();
        // After the table: la, csrw, the jump and a nop, 16 bytes.
        let target = entry + bytes + 16 + self.random.below(2);
        for part in 0..bytes / 4 {
            self.code.word((target >> (32 * part)) as u32);
        }
        self.code.land(over);
        let via = self.reg();
        self.code.la(via, entry.wrapping_sub(offset));
        self.code.csr(1, 0, JVT, via);
        self.code.put(cm_table(index));
        self.code.put(0x0001);
    }

    /// One that `cm.jalt` uses only if ra is free.
    fn index(&mut self) -> u32 {
        match self.free(1) && self.random.chance(600) {
            true => self.random.between(32, 255),
            false => self.random.below32(32),
        }
    }

    /// A table where nothing is; the handler comes back by ra.
    fn table_astray(&mut self) {
        let address = loop {
            let address = self.nowhere(4) & !63;
            // No entry may be in memory.
            if address > 0xffff && !(CODE - 256 * 8..CODE).contains(&address) {
                break address;
            }
        };
        let index = self.random.below32(256);
        let via = self.reg_but(1);
        self.code.li(via, address);
        self.code.csr(1, 0, JVT, via);
        // auipc and addi, the jump.
        let target = self.code.pc() + 10;
        self.code.la(1, target);
        self.code.put(cm_table(index));
    }

    /// The supervisor's own timer fires, in machine mode or where it is delegated to.
    pub(super) fn supervisor_timer(&mut self) {
        let ahead = self.random.between(0, 120);
        let (config, bit) = match self.wide() {
            true => (MENVCFG, 1 << 63),
            false => (MENVCFGH, 1 << 31),
        };
        self.code.li(5, bit);
        self.code.csr(2, 0, config, 5);
        self.code.csr(2, 6, TIME, 0);
        self.code.addi(6, 6, ahead as i32);
        if !self.wide() {
            self.code.csr(1, 0, STIMECMPH, 0);
        }
        self.code.csr(1, 0, STIMECMP, 6);
        self.code.li(6, 1 << 5);
        self.code.csr(2, 0, csr::MIE, 6);
        self.code.csr(6, 0, csr::MSTATUS, 8);
        let rounds = self.random.between(500, 8000);
        self.code.li(TP, rounds.into());
        let top = self.code.pc();
        self.int_atom();
        self.code.addi(TP, TP, -1);
        self.code.branch_to(1, TP, 0, top);
        let rd = self.reg();
        self.code.csr(2, rd, csr::MIP, 0);
        self.code.li(5, bit);
        self.code.csr(3, 0, config, 5);
    }
}
