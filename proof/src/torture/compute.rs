//! Atoms that compute: integers and floating point.

use hartrace_isa::{Ext, Op};

use super::code::{GP, SP};
use super::layout::POOL_SIZE;
use super::menu::{Class, writes_integer};
use super::program::Torture;
use crate::generate::asm;

/// fflags, frm and fcsr.
const FLOAT_CSRS: [u32; 3] = [1, 2, 3];

impl Torture {
    /// A constant from the pool to an integer register.
    pub(super) fn fresh(&mut self) -> u32 {
        let rd = self.reg();
        let step: u64 = if self.wide() { 8 } else { 4 };
        let slots = 8 * POOL_SIZE / step;
        let at = (self.random.below(slots) + 1) * step;
        self.code.load(rd, GP, -(at as i32));
        rd
    }

    /// A constant from the pool to a floating-point register.
    fn fresh_float(&mut self) {
        let rd = self.random.below32(32);
        let widths = [
            (3, Ext::D),
            (3, Ext::D),
            (3, Ext::D),
            (2, Ext::F),
            (1, Ext::Zfhmin),
        ];
        let widths: Vec<u32> = widths
            .iter()
            .filter(|(_, ext)| self.has(*ext))
            .map(|(funct3, _)| *funct3)
            .collect();
        let funct3 = self.random.pick(&widths);
        let step = 1u64 << funct3;
        let at = (self.random.below(8 * POOL_SIZE / step) + 1) * step;
        self.code
            .put(asm::i_type(0x07, funct3, rd, GP, -(at as i32)));
    }

    /// One instruction on integer registers.
    pub(super) fn int_atom(&mut self) {
        if self.random.chance(350) {
            let rd = self.fresh();
            // A neighbour of a value in another register.
            if self.random.chance(250) {
                let near = self.reg();
                let imm = self.random.pick(&[-1, 0, 1]);
                self.code.addi(near, rd, imm);
            }
        }
        if self.has(Ext::Zca) && self.random.chance(15) {
            self.stack_pointer();
            return;
        }
        let kept = self.kept;
        let class = if self.random.chance(15) {
            Class::Fence
        } else {
            Class::Integer
        };
        let inst = self.menu.pick(&mut self.random, class, |inst| {
            let rd = inst.rd.number();
            // lui to x0 is what returns to machine mode look like.
            kept >> rd & 1 == 0 && (inst.op != Op::Lui || rd != 0)
        });
        if let Some(inst) = inst {
            self.code.put(inst.bits);
        }
    }

    /// `c.addi16sp` there and back.
    fn stack_pointer(&mut self) {
        // imm[9|4|6|8:7|5].
        let encode = |imm: u32| {
            let bit = |from: u32, to: u32| (imm >> from & 1) << to;
            0x6101 | bit(9, 12) | bit(4, 6) | bit(6, 5) | bit(8, 4) | bit(7, 3) | bit(5, 2)
        };
        let imm = self.random.between(1, 31) * 16;
        self.code.put(encode(imm));
        let rd = self.reg();
        self.code.addi(rd, SP, 0);
        self.code.put(encode(imm.wrapping_neg() & 0x3ff));
    }

    /// One instruction on floating-point registers, or on their CSRs.
    pub(super) fn float_atom(&mut self) {
        for _ in 0..self.random.pick(&[0, 0, 1, 1, 2]) {
            self.fresh_float();
        }
        if self.random.chance(60) {
            self.float_csr();
            return;
        }
        if self.random.chance(120) {
            self.fresh();
        }
        let kept = self.kept;
        let inst = self.menu.pick(&mut self.random, Class::Float, |inst| {
            !writes_integer(inst) || kept >> inst.rd.number() & 1 == 0
        });
        if let Some(inst) = inst {
            self.code.put(inst.bits);
        }
    }

    /// Reads and writes of fflags, frm and fcsr; the rounding mode is mostly
    /// a valid one afterwards.
    fn float_csr(&mut self) {
        let csr = self.random.pick(&FLOAT_CSRS);
        let rd = if self.random.chance(300) {
            0
        } else {
            self.reg()
        };
        let funct3 = self.random.pick(&[1, 2, 3, 5, 6, 7]);
        if funct3 > 4 {
            let imm = self.random.below32(32);
            self.code.csr(funct3, rd, csr, imm);
        } else {
            let rs1 = self.random.below32(32);
            self.code.csr(funct3, rd, csr, rs1);
        }
        if csr != 1 && self.random.chance(800) {
            let mode = self.random.below32(5);
            self.code.csr(5, 0, 2, mode);
        }
    }
}
