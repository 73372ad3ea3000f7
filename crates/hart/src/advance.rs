//! Instructions that are attempted before it is known whether they are right, and can be
//! taken back: [`Model::advance`](hartrace_flow::Model::advance).

use hartrace_flow::{Confirm, Effects, HartId, Observer, Step, Straights, Wants};
use hartrace_isa::Xlen;

use crate::changes::Old;
use crate::cpu::Cpu;
use crate::exec::{self, Brake, Leave};
use crate::machine::Machine;
use crate::width::{Rv32, Rv64, Width};

/// Shows what was done.
struct Shown<'a, 'c> {
    /// `None` where it is known that all are right.
    confirm: Option<&'a mut Confirm<'c>>,
    /// How many there were, and how many are to stay.
    count: u64,
    right: u64,
}

impl Observer for Shown<'_, '_> {
    const WANTS: Wants = Wants::ALL.with(Wants::CHANGES);

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}

    fn straights(&mut self, _: HartId, code: &Straights<'_>) {
        self.count = code.count;
        self.right = match &mut self.confirm {
            Some(confirm) => confirm(code).min(code.count),
            None => code.count,
        };
    }
}

/// Ends a run before what cannot be taken back.
struct Tentative;

impl<O> Brake<O> for Tentative {
    const FITTED: bool = false;
    const TENTATIVE: bool = true;

    #[inline(always)]
    fn is_pulled(_: &O) -> bool {
        false
    }
}

/// What such instructions change of a hart.
struct Before {
    x: [u64; 32],
    f: [u64; 32],
    unwritten: u32,
    pc: u64,
    fflags: u8,
    mstatus: u64,
    mcycle: u64,
    minstret: u64,
    retired: u64,
    cycles: u64,
    waiting: bool,
}

impl Before {
    fn of(cpu: &Cpu) -> Before {
        Before {
            x: cpu.x,
            f: cpu.f,
            unwritten: cpu.unwritten,
            pc: cpu.pc,
            fflags: cpu.fflags,
            mstatus: cpu.mstatus,
            mcycle: cpu.mcycle,
            minstret: cpu.minstret,
            retired: cpu.retired,
            cycles: cpu.cycles,
            waiting: cpu.waiting,
        }
    }

    fn restore(&self, cpu: &mut Cpu) {
        cpu.x = self.x;
        cpu.f = self.f;
        cpu.unwritten = self.unwritten;
        cpu.pc = self.pc;
        cpu.fflags = self.fflags;
        cpu.mstatus = self.mstatus;
        cpu.mcycle = self.mcycle;
        cpu.minstret = self.minstret;
        cpu.retired = self.retired;
        cpu.cycles = self.cycles;
        cpu.waiting = self.waiting;
    }
}

impl Machine {
    /// See [`Model::advance`](hartrace_flow::Model::advance).
    pub(crate) fn attempt_ahead(&mut self, limit: u64, confirm: &mut Confirm<'_>) -> u64 {
        let cpu = &self.hart.cpu;
        let written = cpu.wrote_mcycle || cpu.wrote_minstret;
        let records = cpu.records.is_some() || !cpu.events.is_idle();
        if cpu.is_watched() || cpu.triggers.late.is_some() || records || written {
            return 0;
        }
        match cpu.xlen() {
            Xlen::Rv32 => self.attempt_ahead_width::<Rv32>(limit, confirm),
            Xlen::Rv64 => self.attempt_ahead_width::<Rv64>(limit, confirm),
        }
    }

    fn attempt_ahead_width<W: Width>(&mut self, limit: u64, confirm: &mut Confirm<'_>) -> u64 {
        let before = Before::of(&self.hart.cpu);
        let cut = self.cut;
        let mut shown = self.run_ahead::<W>(limit, Some(confirm));
        if shown.count == 0 && self.find_code() {
            shown = self.run_ahead::<W>(limit, shown.confirm);
        }
        let (count, right) = (shown.count, shown.right);
        if right < count {
            self.take_back(&before);
            self.cut = cut;
            if right > 0 {
                // The same as before, up to where it was right.
                self.run_ahead::<W>(right, None);
            }
        }
        count
    }

    fn run_ahead<'a, 'c, W: Width>(
        &mut self,
        limit: u64,
        confirm: Option<&'a mut Confirm<'c>>,
    ) -> Shown<'a, 'c> {
        let mut shown = Shown {
            confirm,
            count: 0,
            right: 0,
        };
        self.hart.changes.old.clear();
        let (hart, bus, mut left) = (&mut self.hart, &mut self.bus, limit);
        let leave = exec::run::<W, _, Tentative>(hart, bus, None, &mut left, &mut shown);
        // Nothing was done that concerns the whole hart.
        debug_assert_ne!(leave, Leave::Event);
        if shown.count > 0 {
            self.cut = false;
            self.hart.cpu.waiting = false;
        }
        shown
    }

    /// Decodes the code at pc, if that changes nothing that a program can see. True if it is
    /// known now.
    fn find_code(&mut self) -> bool {
        if self.hart.cpu.updates_ad() {
            return false;
        }
        match self.hart.fetch(&mut self.bus) {
            Ok(None) => true,
            Ok(Some(block)) => {
                self.hart.code.drop_one(block);
                false
            }
            Err(_) => false,
        }
    }

    fn take_back(&mut self, before: &Before) {
        let memory = &mut self.bus.memory;
        for old in self.hart.changes.old.drain(..).rev() {
            let Old {
                frame,
                addr,
                size,
                value,
            } = old;
            let bytes = value.to_le_bytes();
            if let Some(to) = memory.at_mut(frame, addr, size.into())
                && let Some(from) = bytes.get(..to.len())
            {
                to.copy_from_slice(from);
            }
        }
        before.restore(&mut self.hart.cpu);
    }
}
