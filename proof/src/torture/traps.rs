//! Atoms that trap, and sections below machine mode or with interrupts.

use hartrace_isa::{Ext, Op, decode};

use super::code::TP;
use super::handler::csr;
use super::layout::{MSIP, MTIME, MTIMECMP};
use super::program::{Mode, Torture};
use crate::generate::asm::{self, C_EBREAK, EBREAK, ECALL, MRET, SRET};

const WFI: u32 = 0x1050_0073;
/// `uret`, `dret` and `mnret`, which a plain hart has not.
const STRANGE_RETURNS: [u32; 3] = [0x0020_0073, 0x7b20_0073, 0x7020_0073];

/// Supervisor software, timer and external interrupts.
const SUPERVISOR_INTERRUPTS: [u64; 3] = [1 << 1, 1 << 5, 1 << 9];

impl Torture {
    pub(super) fn trap_atom(&mut self) {
        let short = self.has(Ext::Zca);
        match (self.random.below(12), self.mode) {
            (0 | 1, _) => self.code.put(ECALL),
            (2, _) => self.code.put(EBREAK),
            (3, _) if short => self.code.put(C_EBREAK),
            (4, _) if short => self.code.put(0),
            (5, Mode::User) => self.code.put(SRET),
            (6, Mode::User | Mode::Supervisor) => self.code.put(MRET),
            (7, _) => {
                let bits = self.random.pick(&STRANGE_RETURNS);
                self.code.put(bits);
            }
            (8, _) => {
                let rs1 = self.random.below32(32);
                let rs2 = self.random.below32(32);
                let fence = self.fence();
                self.code.put(fence | rs1 << 15 | rs2 << 20);
            }
            (9, Mode::User | Mode::Supervisor) if self.wait_traps => self.code.put(WFI),
            (9, Mode::Machine) => self.return_to(),
            (10, Mode::Machine) => self.as_other_mode(),
            _ => self.illegal(),
        }
    }

    /// Bits that are no instruction.
    fn illegal(&mut self) {
        let mut bits = 0xffff_ffff;
        for _ in 0..200 {
            let word = self.random.draw() as u32;
            let word = if self.has(Ext::Zca) && self.random.chance(300) {
                word & 0xffff
            } else {
                word | 3
            };
            // Long encodings are skipped as if they had four bytes; system
            // instructions that are not known here may be known elsewhere.
            if decode(word, self.isa).op == Op::Unknown && word & 0x7f != 0x73 {
                bits = word;
                break;
            }
        }
        self.code.put(bits);
        if self.random.chance(200) {
            self.code.put(0xffff_ffff);
        }
    }

    /// `mret` or `sret` that stays in machine mode or goes below for a few
    /// instructions.
    fn return_to(&mut self) {
        // TVM, TW and TSR, which the supervisor's handler does without.
        self.code.li(5, 0x0070_0000);
        self.code.csr(3, 0, csr::MSTATUS, 5);
        let mode = self.lower_mode();
        self.enter(mode);
        for _ in 0..self.random.between(1, 3) {
            self.int_atom();
        }
        self.leave();
    }

    /// Loads and stores with the rights of another mode.
    fn as_other_mode(&mut self) {
        let (with, base) = (5, 6);
        self.code.li(with, 0x1800);
        self.code.csr(3, 0, csr::MSTATUS, with);
        let level = self.random.pick(&[0, 0x800, 0x1800]);
        self.code.li(with, 1 << 17 | level);
        self.code.csr(2, 0, csr::MSTATUS, with);
        for _ in 0..self.random.between(1, 3) {
            let place = self.data_place();
            self.code.li(base, place);
            self.access(base);
        }
        self.code.li(with, 1 << 17);
        self.code.csr(3, 0, csr::MSTATUS, with);
    }

    /// Supervisor or user.
    pub(super) fn lower_mode(&mut self) -> Mode {
        if self.random.chance(500) {
            Mode::Supervisor
        } else {
            Mode::User
        }
    }

    /// Random delegation and rights, then a while in a lower mode, or in two.
    pub(super) fn mode_section(&mut self, atoms: u32) {
        self.rights();
        let mode = self.lower_mode();
        self.enter(mode);
        if mode == Mode::Supervisor && self.random.chance(400) {
            self.atoms(atoms / 2);
            self.fall_to_user();
            self.atoms(atoms / 2);
        } else {
            self.atoms(atoms);
        }
    }

    /// Either traps go to the supervisor, or it may not do what its handler
    /// does.
    fn rights(&mut self) {
        if self.random.chance(600) {
            let exceptions = self.random.draw() & 0xb1ff;
            let exceptions = self.random.pick(&[0xb1ff, exceptions]);
            self.code.li(5, exceptions);
            self.code.csr(1, 0, csr::MEDELEG, 5);
            let interrupts = self.random.draw() & 0x222;
            self.code.li(5, interrupts);
            self.code.csr(1, 0, csr::MIDELEG, 5);
        } else {
            // TVM, TW, TSR.
            let bits = self.random.below(8) << 20;
            self.wait_traps = bits & 1 << 21 != 0;
            self.code.li(5, bits);
            self.code.csr(2, 0, csr::MSTATUS, 5);
        }
        if self.random.chance(400) {
            let pending = self.random.draw() & 0x222;
            self.code.li(5, pending);
            self.code.csr(2, 0, csr::MIP, 5);
            self.code.li(5, 0x222);
            self.code.csr(2, 0, csr::MIE, 5);
        }
        let counters = self.random.draw() & 0xffff_ffff;
        self.code.li(5, counters);
        self.code.csr(1, 0, 0x306, 5);
    }

    /// `sret` to user mode; with TSR it traps and the supervisor goes on.
    pub(super) fn fall_to_user(&mut self) {
        self.code.li(5, 0x100);
        self.code.csr(3, 0, csr::SSTATUS, 5);
        let target = self.code.pc() + 16;
        self.code.la(5, target);
        self.code.csr(1, 0, csr::SEPC, 5);
        self.code.put(SRET);
        self.mode = Mode::User;
    }

    /// Interrupts of every kind.
    pub(super) fn interrupt_section(&mut self, count: u32) {
        for _ in 0..count {
            match self.random.below(6) {
                5 if self.has(Ext::Sstc) => self.supervisor_timer(),
                0 => self.supervisor_interrupt(),
                1 => self.software_interrupt(),
                2 => self.timer_interrupt(),
                3 => self.delegated_interrupt(),
                _ => self.wait(),
            }
            self.code.csr(7, 0, csr::MSTATUS, 8);
            self.code.csr(1, 0, csr::MIE, 0);
            self.code.csr(1, 0, csr::MIP, 0);
            let few = self.random.between(0, 3);
            for _ in 0..few {
                self.int_atom();
            }
        }
    }

    fn some_supervisor_interrupts(&mut self) -> u64 {
        let chosen = SUPERVISOR_INTERRUPTS.iter();
        let set = chosen.filter(|_| self.random.chance(500)).sum::<u64>();
        if set == 0 { 1 << 1 } else { set }
    }

    /// Pending and enabled in any order, then let in.
    fn supervisor_interrupt(&mut self) {
        let set = self.some_supervisor_interrupts();
        self.code.li(5, set);
        let mut order = [csr::MIE, csr::MIP];
        if self.random.chance(500) {
            order.reverse();
        }
        let early = self.random.chance(300);
        if early {
            self.code.csr(6, 0, csr::MSTATUS, 8);
        }
        for csr in order {
            self.code.csr(2, 0, csr, 5);
        }
        if !early {
            self.code.csr(6, 0, csr::MSTATUS, 8);
        }
        self.int_atom();
        self.int_atom();
    }

    fn software_interrupt(&mut self) {
        self.code.csr(6, 0, csr::MIE, 8);
        if self.random.chance(500) {
            self.code.csr(6, 0, csr::MSTATUS, 8);
        }
        self.code.li(5, MSIP);
        self.code.addi(6, 0, 1);
        self.code.put(asm::s_type(0x23, 2, 5, 6, 0));
        for _ in 0..self.random.between(0, 4) {
            self.int_atom();
        }
        self.code.csr(6, 0, csr::MSTATUS, 8);
        self.int_atom();
        self.code.li(5, MSIP);
        self.code.put(asm::s_type(0x23, 2, 5, 0, 0));
        self.code.put(asm::i_type(0x03, 2, 6, 5, 0));
    }

    /// Sets the timer a little ahead.
    fn arm(&mut self, ahead: u32) {
        self.code.li(5, MTIME);
        self.code.load(6, 5, 0);
        self.code.addi(6, 6, ahead as i32);
        self.code.li(5, MTIMECMP);
        if !self.wide() {
            self.code.put(asm::s_type(0x23, 2, 5, 0, 4));
        }
        self.code.store(6, 5, 0);
        self.code.li(5, 1 << 7);
        self.code.csr(2, 0, csr::MIE, 5);
    }

    /// The timer fires during a loop that is long enough.
    fn timer_interrupt(&mut self) {
        let ahead = self.random.between(0, 120);
        self.arm(ahead);
        self.code.csr(6, 0, csr::MSTATUS, 8);
        // A hundred instructions per tick, in steps of fifty ticks.
        let rounds = self.random.between(500, 8000);
        self.code.li(TP, rounds.into());
        let top = self.code.pc();
        self.int_atom();
        self.code.addi(TP, TP, -1);
        self.code.branch_to(1, TP, 0, top);
    }

    /// `wfi` until the timer fires, with interrupts let in or not.
    fn wait(&mut self) {
        // Once handled, the timer is off and nobody would wake the hart: it
        // must not fire before the wait. Time goes in steps of fifty.
        let awake = self.random.chance(500);
        let ahead = if awake {
            self.random.between(110, 250)
        } else {
            self.random.between(0, 250)
        };
        self.arm(ahead);
        if awake {
            self.code.csr(6, 0, csr::MSTATUS, 8);
        }
        self.code.put(WFI);
        self.int_atom();
        self.code.csr(6, 0, csr::MSTATUS, 8);
        self.int_atom();
    }

    /// Interrupts that the supervisor handles itself, once it runs.
    fn delegated_interrupt(&mut self) {
        self.code.csr(7, 0, csr::MSTATUS, 8);
        let set = self.some_supervisor_interrupts();
        self.code.li(5, 0x222);
        self.code.csr(1, 0, csr::MIDELEG, 5);
        self.code.csr(1, 0, csr::MIE, 5);
        self.code.li(5, set);
        self.code.csr(2, 0, csr::MIP, 5);
        let mode = self.lower_mode();
        self.enter(mode);
        self.int_atom();
        if mode == Mode::Supervisor {
            self.code.csr(6, 0, csr::SSTATUS, 2);
            self.int_atom();
            self.code.csr(6, 0, csr::SIP, 2);
            self.code.csr(6, 0, csr::SIE, 2);
            self.int_atom();
        }
        self.int_atom();
        self.leave();
        self.code.csr(1, 0, csr::MIDELEG, 0);
    }
}
