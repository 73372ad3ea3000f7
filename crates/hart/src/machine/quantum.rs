//! Running as Spike does: 5000 instructions at a time, less when a trap is
//! taken or the hart waits, and a look for interrupts where Spike looks.

use hartrace_flow::Observer;
use hartrace_isa::Op;

use crate::exec::{Leave, NoBrake};
use crate::machine::{Machine, Stop};
use crate::system;
use crate::width::Width;

/// Instructions Spike executes before it looks at time and host.
const QUANTUM: u64 = 5000;

/// Ticks of time in a quantum.
const TICKS: u64 = 50;

/// Where a stretch of instructions ended, on Spike.
enum Pause {
    /// Where it looks for interrupts.
    Look,
    /// The budget is used up.
    Spent,
    /// The quantum is over: a trap was taken, or the hart waits.
    Over,
    /// For good.
    Stop(Stop),
}

impl From<Result<(), Stop>> for Pause {
    fn from(taken: Result<(), Stop>) -> Pause {
        match taken {
            Ok(()) => Pause::Over,
            Err(stop) => Pause::Stop(stop),
        }
    }
}

impl Machine {
    /// One quantum of Spike, or what is left of it.
    pub(super) fn advance_quantum<W: Width, O: Observer>(
        &mut self,
        until: u64,
        observer: &mut O,
    ) -> Option<Stop> {
        if self.quantum == 0 {
            if let Some(stop) = self.poll_host(observer) {
                return Some(stop);
            }
            if let Some(stop) = self.find_spin() {
                return Some(stop);
            }
            self.quantum = QUANTUM;
        }
        let over = self.step_quantum::<W, O>(until, observer);
        match over {
            Ok(false) => return None,
            Ok(true) => {}
            Err(stop) => return Some(stop),
        }
        self.quantum = 0;
        self.hart.cpu.reservation = None;
        self.bus.clint.mtime = self.bus.clint.mtime.wrapping_add(TICKS);
        self.refresh_interrupts();
        None
    }

    /// Runs until the quantum is used up or cut short by a trap or by waiting
    /// (true), or until the limit of instructions (false).
    fn step_quantum<W: Width, O: Observer>(
        &mut self,
        until: u64,
        observer: &mut O,
    ) -> Result<bool, Stop> {
        while self.quantum > 0 {
            if self.cut && self.hart.cpu.retired == until {
                return Ok(false);
            }
            if !core::mem::take(&mut self.cut)
                && let Some(over) = self.look_for_interrupts(observer)
            {
                return over.map(|()| true);
            }
            let before = self.hart.cpu.retired;
            let mut budget = self.quantum.min(until - before);
            if budget == 0 {
                return Ok(false);
            }
            let pause = match self.hart.cpu.is_watched() {
                true => self.execute_watched::<W, O>(&mut budget, observer),
                false => self.execute_serialized::<W, O>(&mut budget, observer),
            };
            self.quantum = self.quantum.saturating_sub(self.hart.cpu.retired - before);
            match pause {
                Pause::Look => {}
                Pause::Spent if self.quantum > 0 => {
                    self.cut = true;
                    return Ok(false);
                }
                Pause::Spent => {}
                Pause::Over => return Ok(true),
                Pause::Stop(stop) => return Err(stop),
            }
        }
        Ok(true)
    }

    /// What Spike does before a stretch of instructions: it takes an interrupt
    /// or goes on waiting for one. `Some` ends the quantum.
    fn look_for_interrupts<O: Observer>(&mut self, observer: &mut O) -> Option<Result<(), Stop>> {
        let cpu = &mut self.hart.cpu;
        if cpu.mip & cpu.mie != 0 {
            cpu.waiting = false;
        }
        if let Some(code) = cpu.interrupt() {
            self.take_interrupt(code, observer);
            return Some(Ok(()));
        }
        if !cpu.waiting {
            return None;
        }
        if !self.can_wake() {
            return Some(Err(self.asleep()));
        }
        // A look at whether to go on waiting counts as an instruction.
        self.hart.cpu.retire(1, 1);
        Some(Ok(()))
    }

    /// The same, instruction by instruction while triggers may match.
    fn execute_watched<W: Width, O: Observer>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Pause {
        loop {
            // The second look at a CSR instruction is no second instruction.
            let again = self.serialized;
            let watched = match again {
                true => None,
                false => match self.before_step(observer) {
                    Ok(watched) => Some(watched),
                    Err(None) => return Pause::Look,
                    Err(Some(stop)) => return Pause::Stop(stop),
                },
            };
            let before = self.hart.cpu.retired;
            let pause = self.execute_serialized::<W, O>(&mut 1, observer);
            *budget = budget.saturating_sub(self.hart.cpu.retired - before);
            if self.serialized && !again {
                return pause;
            }
            if let Some(stop) = self.after_step(watched, observer) {
                return Pause::Stop(stop);
            }
            match pause {
                Pause::Spent if *budget > 0 && self.hart.cpu.is_watched() => {}
                Pause::Spent if *budget > 0 => {
                    return self.execute_serialized::<W, O>(budget, observer);
                }
                pause => return pause,
            }
        }
    }

    /// Runs to the next place where Spike looks for interrupts.
    fn execute_serialized<W: Width, O: Observer>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Pause {
        loop {
            let leave = match self.run_blocks::<W, O, NoBrake>(budget, observer) {
                Ok(leave) => leave,
                Err(exception) => return self.fault(exception, None, observer).into(),
            };
            match leave {
                Leave::Spent => return Pause::Spent,
                Leave::Fetch => {}
                Leave::Event => self.settle(),
                Leave::Trap { exception, bits } => {
                    return self.fault(exception, Some(bits), observer).into();
                }
                Leave::System { bits, micro } => {
                    if self.calls_host(micro.op) {
                        match self.semihosting_call(observer) {
                            None => continue,
                            Some(stop) => return Pause::Stop(stop),
                        }
                    }
                    let plain = matches!(
                        micro.op,
                        Op::FenceI
                            | Op::SfenceVma
                            | Op::SinvalVma
                            | Op::SfenceWInval
                            | Op::SfenceInvalIr
                            | Op::WrsNto
                            | Op::WrsSto
                    );
                    let csr = !plain
                        && !matches!(
                            micro.op,
                            Op::Ecall | Op::Ebreak | Op::Mret | Op::Sret | Op::Wfi
                        );
                    // CSR instructions are looked at twice: once to empty the
                    // pipeline, with a look for interrupts, once to be done.
                    if csr && !self.serialized {
                        self.serialized = true;
                        return Pause::Look;
                    }
                    self.serialized &= !csr;
                    let done =
                        system::execute(&mut self.hart, &mut self.bus, bits, &micro, observer);
                    self.forget_stale();
                    if let Err(exception) = done {
                        return self.fault(exception, Some(bits), observer).into();
                    }
                    *budget -= 1;
                    if self.hart.cpu.waiting {
                        return Pause::Over;
                    }
                    if !plain {
                        return Pause::Look;
                    }
                }
            }
        }
    }
}
