//! Atoms that jump: over something, back to something, away and back.

use hartrace_isa::Ext;

use super::code::TP;
use super::program::Torture;
use crate::generate::asm;

impl Torture {
    /// Straight atoms for the inside of a jump.
    fn inside(&mut self, most: u32) {
        for _ in 0..self.random.between(1, most) {
            match self.random.below(4) {
                0 => self.memory_atom(),
                1 if self.has(Ext::F) => self.float_atom(),
                _ => self.int_atom(),
            }
        }
    }

    pub(super) fn flow_atom(&mut self) {
        match self.random.below(10) {
            0..4 => self.skip(),
            4 | 5 if !self.looping => self.repeat(),
            6 | 7 => self.call(),
            8 if self.free(1) => self.astray(),
            9 if !self.has(Ext::Zca) => self.misaligned_target(),
            _ => self.jump(),
        }
    }

    /// A forward branch.
    fn skip(&mut self) {
        let hole = if self.has(Ext::Zca) && self.random.chance(400) {
            let rs1 = self.random.between(8, 15);
            let not = self.random.chance(500);
            self.code.short_branch_ahead(not, rs1)
        } else {
            let funct3 = self.random.pick(&[0, 1, 4, 5, 6, 7]);
            let rs1 = self.random.below32(32);
            let rs2 = if self.random.chance(200) {
                rs1
            } else {
                self.random.below32(32)
            };
            self.code.branch_ahead(funct3, rs1, rs2)
        };
        self.inside(4);
        self.code.land(hole);
    }

    /// A forward jump over code that nobody runs.
    fn jump(&mut self) {
        let hole = if self.has(Ext::Zca) && self.random.chance(500) {
            self.code.short_jump_ahead(false)
        } else {
            let rd = self.reg();
            let rd = self.random.pick(&[0, rd]);
            self.code.jal_ahead(rd)
        };
        self.inside(3);
        self.code.land(hole);
    }

    /// A loop of a few rounds.
    fn repeat(&mut self) {
        let rounds = self.random.between(1, 6);
        self.code.addi(TP, 0, rounds as i32);
        let top = self.code.pc();
        self.looping = true;
        for _ in 0..self.random.between(1, 6) {
            self.atom();
        }
        self.looping = false;
        self.code.addi(TP, TP, -1);
        let back = top.wrapping_sub(self.code.pc()) as i64;
        if asm::fits(back, 13) {
            self.code.branch_to(1, TP, 0, top);
        }
    }

    /// A function right here, called from code after it or before it.
    fn call(&mut self) {
        let any = self.reg();
        // The compressed calls always link to ra.
        let link = if self.free(1) && self.random.chance(300) {
            1
        } else {
            any
        };
        let kept = self.kept;
        // Written by the call, read by the return.
        self.kept |= 1 << link;
        if self.random.chance(500) {
            self.call_behind(link);
        } else {
            self.call_before(link);
        }
        self.kept = kept;
    }

    fn write_return(&mut self, link: u32) {
        if self.has(Ext::Zca) && self.random.chance(500) {
            self.code.put(asm::c_jr(false, link));
        } else {
            let odd = self.random.pick(&[0, 1]);
            self.code.put(asm::jalr(0, link, odd));
        }
    }

    fn call_behind(&mut self, link: u32) {
        let over = self.code.jal_ahead(0);
        let function = self.code.pc();
        self.inside(3);
        self.write_return(link);
        self.code.land(over);
        let reach = asm::fits(function.wrapping_sub(self.code.pc()) as i64, 12);
        if link == 1 && self.has(Ext::Zca) && !self.wide() && reach && self.random.chance(500) {
            let offset = function.wrapping_sub(self.code.pc()) as i64;
            self.code.put(asm::c_j(true, offset));
        } else if self.random.chance(500) {
            self.code.jal_to(link, function);
        } else {
            let via = self.reg();
            let offset = self.random.below32(64) as i32 - 32;
            let base = function.wrapping_sub(i64::from(offset) as u64);
            self.code.la(via, base);
            self.code.put(asm::jalr(link, via, offset));
        }
    }

    fn call_before(&mut self, link: u32) {
        if link == 1 && self.has(Ext::Zca) && self.random.chance(600) {
            // The function starts after this call and the jump over it.
            let via = self.reg();
            let target = self.code.pc() + 8 + 2 + 4;
            self.code.la(via, target);
            self.code.put(asm::c_jr(true, via));
        } else {
            self.code.put(asm::jal(link, 8));
        }
        let over = self.code.jal_ahead(0);
        self.inside(3);
        self.write_return(link);
        self.code.land(over);
    }

    /// A jump to where nothing can be fetched; the handler comes back by ra.
    fn astray(&mut self) {
        let target = loop {
            let address = self.nowhere(4);
            // The first page has a debugger's code in it, not all of it odd.
            if address > 0xfff {
                break address;
            }
        };
        let via = self.reg();
        self.code.li(via, target);
        if self.has(Ext::Zca) && self.random.chance(300) {
            self.code.put(asm::c_jr(true, via));
        } else {
            self.code.put(asm::jalr(1, via, 0));
        }
    }

    /// Without compressed instructions a target in the middle of a word
    /// traps, if the jump is taken.
    fn misaligned_target(&mut self) {
        let (a, b) = (self.random.below32(32), self.random.below32(32));
        match self.random.below(3) {
            0 => {
                let funct3 = self.random.pick(&[0, 1, 4, 5, 6, 7]);
                self.code.put(asm::branch(funct3, a, b, 6));
            }
            1 => {
                let rd = self.reg();
                self.code.put(asm::jal(rd, 6));
            }
            _ => {
                let (via, rd) = (self.reg(), self.reg());
                let target = self.code.pc() + 14;
                self.code.la(via, target);
                self.code.put(asm::jalr(rd, via, 0));
            }
        }
    }
}
