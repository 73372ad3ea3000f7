//! Traps: exceptions and interrupts, taken and reported.

use hartrace_flow::{Cause, HartId, Observer, Step, Trap, TrapStep, Wants};
use hartrace_isa::Itype;

use crate::cpu::{Exception, cause};
use crate::machine::{Machine, Stop};
use crate::processes::note_call;
use crate::report::Report;

impl Machine {
    /// Takes an exception, unless it is one of an endless row.
    pub(super) fn fault<O: Observer>(
        &mut self,
        exception: Exception,
        bits: Option<u32>,
        observer: &mut O,
    ) -> Result<(), Stop> {
        if let Some(stop) = self.is_endless(exception) {
            return Err(stop);
        }
        let cause = Cause::Exception(Some(exception.code));
        self.trap(cause, exception.tval, bits, observer);
        Ok(())
    }

    /// Whether an exception that is about to be taken is one of an endless row.
    pub(super) fn is_endless(&mut self, exception: Exception) -> Option<Stop> {
        let endless = self.hart.vigil.sees_loop(&self.hart.cpu, exception);
        endless.then_some(Stop::TrapLoop {
            epc: self.hart.cpu.pc,
            code: exception.code,
            tval: exception.tval,
        })
    }

    pub(super) fn take_interrupt<O: Observer>(&mut self, code: u32, observer: &mut O) {
        self.hart.vigil.sees_interrupt();
        self.trap(Cause::Interrupt(Some(code)), 0, None, observer);
    }

    /// Takes a trap and reports it, and lets triggers for it fire.
    pub(crate) fn trap<O: Observer>(
        &mut self,
        cause: Cause,
        tval: u64,
        bits: Option<u32>,
        observer: &mut O,
    ) {
        let from = self.hart.cpu.mode;
        let watched = self.hart.cpu.triggers.watches_traps(from);
        if watched && matches!(cause, Cause::Interrupt(_)) {
            let now = self.hart.cpu.circumstances(from, from);
            self.hart.cpu.triggers.count_interrupt(&now);
        }
        self.take_trap(cause, tval, bits, observer);
        if watched {
            self.watch_trap(cause, from, observer);
        }
    }

    /// Takes a trap and reports it.
    pub(super) fn take_trap<O: Observer>(
        &mut self,
        cause: Cause,
        tval: u64,
        bits: Option<u32>,
        observer: &mut O,
    ) {
        // A store may trap half way, with what it has done to be noticed.
        if matches!(cause, Cause::Exception(Some(7 | 15))) {
            self.settle();
            self.serve_devices(observer);
        }
        if cause == Cause::Exception(Some(cause::ECALL_U)) && self.bus.processes.is_some() {
            note_call(&self.hart.cpu, &mut self.bus);
        }
        let hart = &mut self.hart;
        let (epc, mode, context) = (hart.cpu.pc, hart.cpu.mode, hart.cpu.context());
        hart.cpu.retire(0, hart.costs.trap.into());
        hart.effects.clear();
        let mut report = Report {
            effects: &mut hart.effects,
            accesses: &mut hart.accesses,
            observer,
        };
        hart.cpu
            .trap(cause, tval, &mut |csr, value| report.csr(csr, value));
        hart.tlb.change_mode(&hart.cpu);
        let kind = match cause {
            Cause::Interrupt(_) => Itype::Interrupt,
            Cause::Exception(_) | Cause::Unknown => Itype::Exception,
        };
        hart.cpu.record(epc, mode, kind, Some(cause));
        let fetched = !matches!(cause, Cause::Exception(Some(0 | 1 | 12)));
        let trap = Trap {
            epc: Some(epc),
            handler: Some(hart.cpu.pc),
            cause,
            tval: Some(hart.cpu.xlen().wrap(tval)),
            pending: match cause {
                Cause::Interrupt(Some(code)) => hart.cpu.pending.since(code),
                _ => None,
            },
        };
        let step = TrapStep {
            trap,
            bits: bits.filter(|_| fetched),
            mode,
            context,
            time: hart.cpu.cycles,
        };
        hart.row.add(&step);
        if O::WANTS.contains(Wants::EVENTS) {
            hart.effects.mode = Some(hart.cpu.mode).filter(|&to| to != mode);
            observer.step(HartId(hart.cpu.id), &Step::Trap(step), &hart.effects);
        }
        hart.effects.clear();
    }
}
