//! Atoms that read and write CSRs: those a mode may access, those it may not,
//! and those that do not exist.

use hartrace_isa::Ext;

use super::handler::{M_VECTORS, S_VECTORS, csr};
use super::program::{Mode, Torture};
use crate::generate::asm;

/// What takes any value without harm to a machine-mode program.
const MACHINE_FREE: &[u32] = &[
    0x340, 0x341, 0x342, 0x343, // mscratch, mepc, mcause, mtval
    0x140, 0x141, 0x142, 0x143, // the supervisor's
    0x106, 0x306, 0x320, // scounteren, mcounteren, mcountinhibit
    0x10a, 0x30a, // senvcfg, menvcfg
    0x14d, // stimecmp
    0xb00, 0xb02, // mcycle, minstret
    0x304, 0x104, 0x344, 0x144, // mie, sie, mip, sip
    0x303, // mideleg
];

/// What takes any value without harm to a supervisor.
const SUPERVISOR_FREE: &[u32] = &[0x140, 0x141, 0x142, 0x143, 0x106, 0x10a, 0x104, 0x144];

/// Read-only, or with bits that must stay.
const MACHINE_READ: &[u32] = &[
    0xf11, 0xf12, 0xf13, 0xf14, 0xf15, // identity
    0x300, 0x301, 0x302, 0x305, 0x105, 0x100, 0x180, // mstatus to satp
    0xc00, 0xc01, 0xc02, // cycle, time, instret
    0x3a0, 0x3a1, 0x3a2, 0x3a3, 0x3b0, 0x3bf,
];

/// Exceptions that a supervisor may be given; not its own calls, which lead
/// back to machine mode.
const DELEGABLE: u64 = 0xb1ff;

impl Torture {
    pub(super) fn csr_atom(&mut self) {
        match (self.random.below(10), self.mode) {
            (0..3, _) => self.csr_read(),
            (3..6, Mode::Machine) => {
                let mut csr = self.random.pick(MACHINE_FREE);
                if self.random.chance(250) {
                    // mhpmcounter3 to 31, mhpmevent3 to 31, pmpaddr0 to 14.
                    let n = self.random.between(3, 31);
                    csr = self.random.pick(&[0xb00 + n, 0x320 + n, 0x3b0 + n % 15]);
                }
                if !self.wide() && self.random.chance(150) {
                    let n = self.random.between(2, 31);
                    csr = self.random.pick(&[0xb80, 0xb80 + n, 0x31a]);
                }
                self.csr_write(csr);
            }
            (6, Mode::Machine) => self.mstatus(),
            (7, Mode::Machine) => self.special(),
            (3..6, Mode::Supervisor) => {
                let csr = self.random.pick(SUPERVISOR_FREE);
                self.csr_write(csr);
            }
            (6, Mode::Supervisor) => self.sstatus(),
            (7, Mode::Supervisor) => {
                let vectored = self.random.below(2);
                self.code.la(5, S_VECTORS + vectored);
                let rd = self.reg();
                self.code.csr(1, rd, csr::STVEC, 5);
            }
            (8, _) if self.has(Ext::F) => {
                let csr = self.random.between(1, 3);
                self.csr_write(csr);
                let mode = self.random.below32(5);
                self.code.csr(5, 0, 2, mode);
            }
            _ => self.csr_illegal(),
        }
    }

    /// One of the six instructions with any operands.
    fn csr_write(&mut self, csr: u32) {
        let funct3 = self.random.pick(&[1, 1, 2, 3, 5, 6, 7]);
        let rd = self.reg();
        let rd = self.random.pick(&[0, rd, rd]);
        let source = if self.random.chance(200) {
            0
        } else {
            self.random.below32(32)
        };
        self.code.csr(funct3, rd, csr, source);
    }

    /// A read: `csrrs` and its kin with nothing to set.
    fn csr_read(&mut self) {
        let csr = match self.random.below(4) {
            0 => self.random.pick(MACHINE_READ),
            1 => self.random.pick(MACHINE_FREE),
            2 => 0xc00 + self.random.below32(32) + self.random.pick(&[0, 0, 0x80]),
            _ => self.any_csr(),
        };
        let rd = self.reg();
        let funct3 = self.random.pick(&[2, 3, 6, 7]);
        self.code.csr(funct3, rd, csr, 0);
    }

    /// Any number but those of triggers and debug mode.
    fn any_csr(&mut self) -> u32 {
        loop {
            let csr = self.random.below32(0x1000);
            if !(0x7a0..0x7c0).contains(&csr) && csr != 0x5a8 && csr != 0xfb0 {
                return csr;
            }
        }
    }

    /// A write that traps: to what is read-only, or is not there.
    fn csr_illegal(&mut self) {
        let csr = match self.random.below(4) {
            0 => self
                .random
                .pick(&[0xf11, 0xf12, 0xf14, 0xc00, 0xc01, 0xc02, 0xc03]),
            1 => 0x800 + self.random.below32(0x100),
            2 => 0xbc0 + self.random.below32(0x40),
            _ => self.random.pick(&[0x5c0, 0x9c0, 0xcc0, 0xfc0]) + self.random.below32(0x40),
        };
        self.csr_write(csr);
    }

    /// mstatus with any value in the fields that do no harm in machine mode;
    /// floating point mostly stays on.
    fn mstatus(&mut self) {
        // SIE, MIE, SPIE, MPIE, SPP, MPP, FS, SUM, MXR, TVM, TW, TSR.
        let mut set = self.random.draw() & 0x007c_79aa;
        if self.random.chance(700) {
            set |= 0x6000;
        }
        let with = self.reg();
        let rd = self.reg();
        self.code.li(with, set);
        let funct3 = self.random.pick(&[1, 1, 2]);
        self.code.csr(funct3, rd, csr::MSTATUS, with);
    }

    fn sstatus(&mut self) {
        // SIE, SPIE, SPP, FS, MXR.
        let mut set = self.random.draw() & 0x0008_6122;
        if self.random.chance(700) {
            set |= 0x6000;
        }
        let with = self.reg();
        let rd = self.reg();
        self.code.li(with, set);
        let funct3 = self.random.pick(&[1, 2, 3]);
        self.code.csr(funct3, rd, csr::SSTATUS, with);
        if funct3 == 3 && self.random.chance(700) {
            self.code.li(with, 0x6000);
            self.code.csr(2, 0, csr::SSTATUS, with);
        }
    }

    /// Registers that take a value for one instruction only, since nothing
    /// works with it: vectors, translation, the instruction set.
    fn special(&mut self) {
        self.code.csr(7, 0, csr::MSTATUS, 8);
        let with = self.reg();
        let rd = self.reg_but(with);
        match self.random.below(7) {
            0 | 1 => {
                let (csr, good) = self.random.pick(&[
                    (csr::MTVEC, M_VECTORS),
                    (csr::STVEC, S_VECTORS),
                    (csr::MTVEC, M_VECTORS + 1),
                ]);
                let funct3 = self.random.pick(&[1, 2, 3]);
                let any = self.fresh();
                self.code.csr(funct3, rd, csr, any);
                self.code.csr(2, rd, csr, 0);
                self.code.la(with, good);
                self.code.csr(1, 0, csr, with);
            }
            2 | 3 => {
                let value = if self.wide() {
                    self.random.draw() & 0xfff_ffff | self.random.below(16) << 60
                } else {
                    self.random.draw()
                };
                self.code.li(with, value);
                self.code.csr(1, rd, csr::SATP, with);
                self.code.csr(2, rd, csr::SATP, 0);
                self.code.csr(1, 0, csr::SATP, 0);
            }
            4 if self.has(Ext::C) => self.without_compressed(with, rd),
            4 | 5 => {
                let value = self.random.draw() & DELEGABLE;
                self.code.li(with, value);
                self.csr_delegation(rd, with);
            }
            _ => self.without_extension(with, rd),
        }
    }

    /// Delegation that does not touch machine mode.
    fn csr_delegation(&mut self, rd: u32, with: u32) {
        let funct3 = self.random.pick(&[1, 2, 3]);
        self.code.csr(funct3, rd, csr::MEDELEG, with);
        self.code.csr(2, rd, csr::MEDELEG, 0);
    }

    /// Without compressed instructions a jump into the middle of a word traps.
    /// Everything here and in the handlers is four bytes long.
    fn without_compressed(&mut self, with: u32, rd: u32) {
        let via = self.reg_but(with);
        self.code.align(4);
        self.code.li(with, 4);
        self.code.csr(3, rd, csr::MISA, with);
        self.code.put(asm::jal(rd, 6));
        self.code.put(asm::branch(0, rd, rd, 6));
        let target = self.code.pc() + 14;
        self.code.la(via, target);
        self.code.put(asm::jalr(via, via, 0));
        self.code.put(asm::ECALL);
        self.code.csr(1, via, csr::MEPC, 0);
        self.code.csr(1, via, csr::MEPC, rd);
        self.code.csr(2, via, csr::MEPC, 0);
        self.code.li(with, 4);
        self.code.csr(2, rd, csr::MISA, with);
    }

    /// Turns an extension off in misa, tries it, and turns it on again.
    fn without_extension(&mut self, with: u32, rd: u32) {
        let letters = [('m', Ext::M), ('a', Ext::A), ('d', Ext::D), ('f', Ext::F)];
        let at = self.random.below(4) as usize;
        let Some(&(letter, ext)) = letters.get(at).filter(|(_, ext)| self.has(*ext)) else {
            return;
        };
        // F off takes D with it, and both come back together.
        let bit = |letter: char| 1u64 << (letter as u32 - 'a' as u32);
        let on = match letter {
            'f' | 'd' if self.has(Ext::D) => bit('f') | bit('d'),
            other => bit(other),
        };
        let kept = self.kept;
        self.kept |= 1 << with;
        self.code.li(with, bit(letter));
        self.code.csr(3, rd, csr::MISA, with);
        for _ in 0..3 {
            match ext {
                Ext::A => self.atomic_atom(),
                Ext::M => self.int_atom(),
                _ => self.float_atom(),
            }
        }
        self.code.li(with, on);
        self.code.csr(2, rd, csr::MISA, with);
        self.kept = kept;
    }
}
