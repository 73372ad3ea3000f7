//! Atoms that load and store.

use hartrace_isa::{Inst, Op};

use super::code::SP;
use super::layout::{CODE, DATA};
use super::menu::{Class, second, width, writes_integer};
use super::program::Torture;
use crate::generate::asm;

impl Torture {
    /// Whether rs1 can be made the base of an access by whoever writes it.
    fn as_base(kept: u32, inst: &Inst) -> bool {
        let rs1 = u32::from(inst.rs1.number());
        rs1 != 0 && kept >> rs1 & 1 == 0
    }

    /// Whether an instruction leaves the registers alone that are kept.
    pub(super) fn harmless(kept: u32, inst: &Inst) -> bool {
        // Of two registers both, whatever the width.
        let pair = second(inst, false).is_some_and(|second| u64::from(kept) >> second & 1 != 0);
        !writes_integer(inst) || kept >> inst.rd.number() & 1 == 0 && !pair
    }

    /// A load or a store in the data area: mostly aligned.
    pub(super) fn memory_atom(&mut self) {
        if self.random.chance(40) {
            self.far_atom();
            return;
        }
        let kept = self.kept;
        let aligned = self.random.chance(880);
        let mut base = 0;
        let random = &mut self.random.fork(1);
        let inst = self.menu.pick(&mut self.random, Class::Memory, |inst| {
            let size = width(inst.op).unwrap_or(1) as i32;
            let by_stack = u32::from(inst.rs1.number()) == SP;
            base = if by_stack {
                0
            } else {
                random.between(0, 0xfff) as i32 - 0x800
            };
            if aligned {
                base -= (base + inst.imm).rem_euclid(size);
            }
            let at = base + inst.imm;
            let inside = (-0x800..0x7f0).contains(&at) && asm::fits(base.into(), 12);
            let fits = !aligned || at.rem_euclid(size) == 0;
            (by_stack || Torture::as_base(kept, inst))
                && inside
                && fits
                && (!by_stack || base == 0)
                && Torture::harmless(kept, inst)
        });
        let Some(inst) = inst else { return };
        let rs1 = u32::from(inst.rs1.number());
        if rs1 != SP {
            self.code.addi(rs1, SP, base);
        }
        self.code.put(inst.bits);
    }

    /// An access to where nothing is, or where it must not write.
    fn far_atom(&mut self) {
        let kept = self.kept;
        let inst = self.menu.pick(&mut self.random, Class::Memory, |inst| {
            Torture::as_base(kept, inst) && Torture::harmless(kept, inst)
        });
        let Some(inst) = inst else { return };
        let address = self.nowhere(width(inst.op).unwrap_or(1));
        let base = address.wrapping_sub(i64::from(inst.imm) as u64);
        self.code.li(inst.rs1.number().into(), base);
        self.code.put(inst.bits);
    }

    /// An address without memory.
    pub(super) fn nowhere(&mut self, align: u32) -> u64 {
        let some = self.random.below(0x1000);
        let near = [
            self.random.below(0xf0),
            0x8_0000 + some,
            0x3000_0000 + some,
            0x7fff_f000 + some,
            CODE - 8,
        ];
        let far = [1 << 32 | some, 1 << 40, 1 << 56 | some, 1 << 63 | some];
        let beyond = u64::MAX - some;
        let address = if self.wide() && self.random.chance(400) {
            if self.random.chance(300) {
                beyond
            } else {
                self.random.pick(&far)
            }
        } else {
            self.random.pick(&near)
        };
        if self.random.chance(900) {
            address & !u64::from(align - 1)
        } else {
            address
        }
    }

    /// An `amo`, or `lr` and `sc` with or without something between.
    pub(super) fn atomic_atom(&mut self) {
        if self.random.chance(300) && self.menu.has(Class::Reserve) {
            self.reservation();
            return;
        }
        let kept = self.kept;
        let inst = self.menu.pick(&mut self.random, Class::Amo, |inst| {
            Torture::as_base(kept, inst) && Torture::harmless(kept, inst)
        });
        let Some(inst) = inst else { return };
        let size = atomic_width(inst.op);
        let rs1 = inst.rs1.number().into();
        if self.random.chance(500) {
            self.expect(&inst);
        }
        self.data_address(rs1, size);
        self.code.put(inst.bits);
    }

    /// An address in the data area, mostly aligned, sometimes none at all.
    pub(super) fn data_address(&mut self, rs1: u32, size: u32) {
        if self.random.chance(40) {
            let address = self.nowhere(size);
            self.code.li(rs1, address);
            return;
        }
        let mut at = self.random.below32(0xff0);
        if self.random.chance(900) {
            at &= !(size - 1);
        }
        self.code.addi(rs1, SP, at as i32 - 0x800);
    }

    fn reservation(&mut self) {
        let kept = self.kept;
        let mut one = |load: bool, wide: Option<bool>, base: Option<u32>| {
            self.menu.pick(&mut self.random, Class::Reserve, |inst| {
                let is_load = matches!(inst.op, Op::LrW | Op::LrD);
                let is_wide = matches!(inst.op, Op::LrD | Op::ScD);
                let rs1 = u32::from(inst.rs1.number());
                is_load == load
                    && wide.is_none_or(|w| w == is_wide)
                    && base.is_none_or(|b| b == rs1)
                    && Torture::as_base(kept, inst)
                    && Torture::harmless(kept, inst)
                    && (!load || inst.rd != inst.rs1)
            })
        };
        let Some(lr) = one(true, None, None) else {
            return;
        };
        let base = lr.rs1.number().into();
        let sc = one(false, Some(lr.op == Op::LrD), Some(base));
        let other = one(false, None, Some(base));
        let size = if lr.op == Op::LrD { 8 } else { 4 };
        self.data_address(base, size);
        if !self.random.chance(100) {
            self.code.put(lr.bits);
        }
        match self.random.below(8) {
            // A store to the same place, or near it.
            0 => {
                let rs2 = self.random.below32(32);
                let imm = self.random.pick(&[0, 0, 4, 8, 64, -8]);
                self.code.put(asm::s_type(0x23, 2, base, rs2, imm));
            }
            // Another base register would lose the address.
            1 => {
                let rd = self.reg_but(base);
                self.code.load(rd, base, 0);
            }
            2 => {
                let imm = self.random.pick(&[8, 16, 64, 4, -8]);
                self.code.addi(base, base, imm);
            }
            3 => self.code.put(asm::ECALL),
            _ => {}
        }
        let sc = if self.random.chance(850) { sc } else { other };
        if let Some(sc) = sc {
            self.code.put(sc.bits);
            // A second one finds no reservation.
            if self.random.chance(150) && sc.rd != sc.rs1 {
                self.code.put(sc.bits);
            }
        }
    }

    /// A load of what may be an instruction, or a store to the data area,
    /// through a register that holds the address.
    pub(super) fn access(&mut self, base: u32) {
        let kept = self.kept | 1 << base;
        let class = match self.random.below(6) {
            5 if self.menu.has(Class::Cache) => Class::Cache,
            0 if self.menu.has(Class::Amo) => Class::Amo,
            1 if self.menu.has(Class::Reserve) => Class::Reserve,
            _ => Class::Memory,
        };
        let inst = self.menu.pick(&mut self.random, class, |inst| {
            u32::from(inst.rs1.number()) == base
                && Torture::harmless(kept, inst)
                && (0..64).contains(&inst.imm)
        });
        if let Some(inst) = inst {
            self.code.put(inst.bits);
        }
    }

    /// Where the data area is, for those who need an address in it.
    pub(super) fn data_place(&mut self) -> u64 {
        DATA + (self.random.below(0x1000) & !7)
    }
}

/// How many bytes an atomic moves.
fn atomic_width(op: Op) -> u32 {
    let name = op.name();
    match name.chars().next_back() {
        Some('b') => 1,
        Some('h') => 2,
        Some('w') => 4,
        Some('q') => 16,
        _ => 8,
    }
}
