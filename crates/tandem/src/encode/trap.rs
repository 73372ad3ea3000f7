//! Traps, and their CSRs when the source does not record them.

use hartrace_flow::{Cause, Effects, Mode, TrapStep};
use hartrace_isa::csr;

use super::{Encoder, Sink, mode_code};
use crate::register::Register;

/// The CSRs that a trap to a mode writes.
struct Csrs {
    status: u16,
    epc: u16,
    cause: u16,
    tval: u16,
}

const MACHINE: Csrs = Csrs {
    status: csr::MSTATUS,
    epc: csr::MEPC,
    cause: csr::MCAUSE,
    tval: csr::MTVAL,
};

const SUPERVISOR: Csrs = Csrs {
    status: csr::SSTATUS,
    epc: csr::SEPC,
    cause: csr::SCAUSE,
    tval: csr::STVAL,
};

/// Whether everything to be recorded about a trap is known.
pub(super) fn is_told(trap: &TrapStep, effects: &Effects) -> bool {
    trap.trap.handler.is_some() && (effects.mode.is_some() || !effects.csrs.is_empty())
}

impl Encoder {
    /// A trap to `mode`.
    #[inline(never)]
    pub(super) fn trap<S: Sink>(
        &mut self,
        step: &TrapStep,
        effects: &Effects,
        mode: Mode,
        sink: &mut S,
    ) {
        let trap = &step.trap;
        self.arrive(trap.epc, step.mode, sink);
        self.begin();
        if let Some(handler) = trap.handler {
            self.new_pc(trap.epc.or(self.pc), handler);
        }
        if let Some(bits) = step.bits
            && !self.config.absent.insn
            && !matches!(trap.cause, Cause::Interrupt(_))
        {
            self.bits(bits);
        }
        self.changes(effects, true);
        if effects.csrs.is_empty() {
            self.synthesise(step, mode);
        }
        self.new_mode(mode);
        self.end(sink);
        self.operands.follow(&effects.regs[..]);
        self.pc = trap.handler;
        self.place_due |= trap.handler.is_none();
        self.counters.traps += 1;
    }

    /// The CSRs of a trap from what is known about it. A trap without a value
    /// writes zero; what a trap without a known cause writes is not known.
    fn synthesise(&mut self, step: &TrapStep, mode: Mode) {
        let csrs = match mode_code(mode) {
            3 => MACHINE,
            _ => SUPERVISOR,
        };
        let (code, top) = match step.trap.cause {
            Cause::Exception(code) => (code, 0),
            Cause::Interrupt(code) => (code, 1 << (self.config.xlen.bits() - 1)),
            Cause::Unknown => (None, 0),
        };
        let code = code.map(|code| u64::from(code) | top);
        let tval = step.trap.tval.or(code.map(|_| 0));
        for (csr, value) in [
            (csrs.epc, step.trap.epc),
            (csrs.cause, code),
            (csrs.tval, tval),
        ] {
            match value {
                Some(value) => self.change(Register::csr(csr), value, true),
                None => self.unreported.in_traps.insert(Register::csr(csr)),
            }
        }
        // mstatus shows all of sstatus.
        self.unreported
            .in_traps
            .insert(Register::csr(MACHINE.status));
        self.unreported.in_traps.insert(Register::csr(csrs.status));
        if let Some(told) = &mut self.told {
            told.forget_status();
        }
    }
}
