//! Atoms that compute: integers and floating point.

use hartrace_isa::{Ext, Op};

use super::code::{GP, SP};
use super::layout::POOL_SIZE;
use super::menu::{Class, writes_integer};
use super::program::Torture;
use super::values::Format;
use crate::generate::asm;

/// fflags, frm and fcsr.
const FLOAT_CSRS: [u32; 3] = [1, 2, 3];

impl Torture {
    /// A constant from the pool to an integer register.
    pub(super) fn fresh(&mut self) -> u32 {
        let rd = self.reg();
        self.fresh_to(rd);
        rd
    }

    fn fresh_to(&mut self, rd: u32) {
        let step: u64 = if self.wide() { 8 } else { 4 };
        let slots = 8 * POOL_SIZE / step;
        let at = (self.random.below(slots) + 1) * step;
        self.code.load(rd, GP, -(at as i32));
    }

    /// A constant from the pool to a floating-point register: mostly of the
    /// format, otherwise all 64 bits of any.
    fn fresh_float(&mut self, rd: u32, format: Format) {
        let whole = self.has(Ext::D) && self.random.chance(150);
        let format = if self.random.chance(900) {
            format
        } else {
            self.random
                .pick(&[Format::Double, Format::Single, Format::Half])
        };
        let at = format.place(&mut self.random) as i32;
        let funct3 = match format {
            _ if whole => 3,
            Format::Double if self.has(Ext::D) => 3,
            Format::Half if self.has(Ext::Zfhmin) => 1,
            _ => 2,
        };
        let imm = at - 8 * POOL_SIZE as i32;
        self.code.put(asm::i_type(0x07, funct3, rd, GP, imm));
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
        if self.random.chance(60) {
            self.float_csr();
            return;
        }
        let kept = self.kept;
        let inst = self.menu.pick(&mut self.random, Class::Float, |inst| {
            !writes_integer(inst) || kept >> inst.rd.number() & 1 == 0
        });
        let Some(inst) = inst else { return };
        let mut sources = vec![inst.rs1.number(), inst.rs2.number()];
        if inst.bits & 0x7f != 0x53 {
            sources.push(inst.rs3().number());
        }
        // Moves and conversions from an integer register.
        if matches!(inst.bits >> 27, 0x1a | 0x1e) && inst.bits & 0x7f == 0x53 {
            sources.clear();
            let rs1 = inst.rs1.number().into();
            if rs1 != 0 && self.free(rs1) && self.random.chance(600) {
                self.fresh_to(rs1);
            }
        }
        let format = Format::of(inst.bits);
        for source in sources {
            if self.random.chance(750) {
                self.fresh_float(source.into(), format);
            }
        }
        self.code.put(inst.bits);
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
        // A register or an immediate.
        let source = self.random.below32(32);
        self.code.csr(funct3, rd, csr, source);
        if csr != 1 && self.random.chance(800) {
            let mode = self.random.below32(5);
            self.code.csr(5, 0, 2, mode);
        }
    }
}
