//! The machine as a model to verify against (tandem trace protocol,
//! Appendix A).

use core::ops::ControlFlow;

use hartrace_flow::{
    Absent, Cause, Confirm, Effects, HartId, Look, Mode, Model, Observer, Place, RegId, Signal,
    Step, Wants,
};
use hartrace_isa::{Xlen, csr};

use crate::csr::set_csr;
use crate::exec::{Brake, Leave};
use crate::machine::Machine;
use crate::system;
use crate::width::{Rv32, Rv64, Width};

/// Shows every step to a function, until it has seen enough.
struct Watch<'a> {
    look: &'a mut Look<'a>,
    enough: bool,
}

impl Observer for Watch<'_> {
    const WANTS: Wants = Wants::ALL;

    #[inline]
    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        if (self.look)(step, effects).is_break() {
            self.enough = true;
        }
    }
}

/// The same without the trace actions of triggers, which are no steps of a model.
struct Untraced<'w, 'a>(&'w mut Watch<'a>);

impl Observer for Untraced<'_, '_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if !matches!(step, Step::Signal(_)) {
            self.0.step(hart, step, effects);
        }
    }
}

/// The brake of [`Watch`].
struct Enough;

impl Brake<Watch<'_>> for Enough {
    const FITTED: bool = true;

    #[inline(always)]
    fn is_pulled(watch: &Watch<'_>) -> bool {
        watch.enough
    }
}

/// The same for one step.
struct Once;

impl Brake<Watch<'_>> for Once {
    const FITTED: bool = true;
    const ONCE: bool = true;

    #[inline(always)]
    fn is_pulled(watch: &Watch<'_>) -> bool {
        watch.enough
    }
}

/// The first step that `attempt` shows, with its effects.
fn first(effects: &mut Effects, attempt: impl FnOnce(&mut Watch<'_>)) -> Step {
    effects.clear();
    let mut kept = None;
    let look: &mut Look<'_> = &mut |step: &Step, changed: &Effects| {
        if kept.is_none() {
            kept = Some(*step);
            effects.copy_from(changed);
        }
        ControlFlow::Continue(())
    };
    let enough = false;
    attempt(&mut Watch { look, enough });
    kept.unwrap_or(Step::Signal(Signal::Update))
}

impl Model for Machine {
    fn read(&self, place: Place) -> Result<u64, Absent> {
        let cpu = &self.hart.cpu;
        let value = match place {
            Place::Pc => Some(cpu.pc),
            Place::Mode => Some(cpu.mode.code().into()),
            Place::Reg(RegId::X(number)) => (number < 32).then(|| cpu.read_x(number)),
            Place::Reg(RegId::F(number)) => cpu.f.get(usize::from(number)).copied(),
            Place::Csr(csr) => self.read_csr(csr),
            Place::Memory { addr, size } => {
                let mut bytes = [0; 8];
                let part = bytes.get_mut(..usize::from(size));
                let read = part.is_some_and(|part| self.bus.memory.read(addr, part));
                read.then(|| u64::from_le_bytes(bytes))
            }
        };
        value.ok_or(Absent(place))
    }

    fn write(&mut self, place: Place, value: u64) -> Result<(), Absent> {
        let cpu = &mut self.hart.cpu;
        let known = match place {
            Place::Pc => {
                // The lowest bit does not exist.
                cpu.pc = cpu.xlen().wrap(value) & !1;
                true
            }
            Place::Mode => match Mode::from_code(value as u8) {
                Some(mode @ (Mode::U | Mode::S | Mode::M)) => {
                    cpu.mode = mode;
                    let now = cpu.cycles;
                    if let Some(ctr) = cpu.settled() {
                        ctr.enter(mode, Some(now));
                    }
                    self.hart.tlb.flush(cpu);
                    true
                }
                _ => false,
            },
            Place::Reg(RegId::X(number @ 0..32)) => {
                cpu.write_x(number, value);
                true
            }
            Place::Reg(RegId::X(_)) => false,
            Place::Reg(RegId::F(number)) => match cpu.f.get_mut(usize::from(number)) {
                Some(register) => {
                    *register = value;
                    cpu.unwritten &= !(1 << number);
                    true
                }
                None => false,
            },
            Place::Csr(csr) => match set_csr(cpu, csr, value) {
                Some(after) => {
                    if after.decoding {
                        let isa = cpu.isa;
                        self.hart.forget_code(isa);
                    }
                    if after.translation {
                        self.hart.tlb.flush(&self.hart.cpu);
                    }
                    if after.timer {
                        self.bus.find_deadline(&self.hart.cpu);
                        self.refresh_interrupts();
                    }
                    self.hart.tlb.change_status(&self.hart.cpu);
                    true
                }
                None => false,
            },
            Place::Memory { addr, size } => {
                let bytes = value.to_le_bytes();
                let part = bytes.get(..usize::from(size));
                let wrote = part.is_some_and(|part| self.bus.memory.write(addr, part));
                self.settle();
                // It may be a page table.
                self.hart.tlb.flush(&self.hart.cpu);
                wrote
            }
        };
        // Spike looks for interrupts anew.
        self.cut = false;
        if known { Ok(()) } else { Err(Absent(place)) }
    }

    fn memory(&self, visit: &mut dyn FnMut(u64, &[u8])) {
        self.bus.memory.visit(visit);
    }

    fn step(&mut self, effects: &mut Effects) -> Step {
        first(effects, |watch| self.attempt(1, watch))
    }

    fn steps(&mut self, limit: u64, watch: &mut Look<'_>) -> ControlFlow<()> {
        let mut watch = Watch {
            look: watch,
            enough: false,
        };
        self.attempt(limit, &mut watch);
        if watch.enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn advance(&mut self, limit: u64, confirm: &mut Confirm<'_>) -> u64 {
        self.attempt_ahead(limit, confirm)
    }

    fn interrupt(&mut self, cause: Cause, effects: &mut Effects) -> Step {
        first(effects, |watch| self.trap(cause, 0, None, watch))
    }

    fn reset(&mut self) {
        Machine::reset(self);
    }
}

impl Machine {
    /// A CSR as an instruction would read it now.
    fn read_csr(&self, csr: u16) -> Option<u64> {
        let cpu = &self.hart.cpu;
        let mut value = cpu.read_csr(csr, self.bus.time(cpu.cycles))?;
        if csr == csr::MIP && self.bus.runs_by_itself() {
            value &= !cpu.outside_interrupts();
            value |= self.bus.interrupts(cpu);
        }
        Some(value)
    }

    /// Attempts instructions, and nothing but instructions, until the watch
    /// has seen enough.
    fn attempt(&mut self, limit: u64, watch: &mut Watch<'_>) {
        self.cut = false;
        match (self.hart.cpu.xlen(), limit) {
            (Xlen::Rv32, 1) => self.attempt_width::<Rv32, Once>(limit, watch),
            (Xlen::Rv64, 1) => self.attempt_width::<Rv64, Once>(limit, watch),
            (Xlen::Rv32, _) => self.attempt_width::<Rv32, Enough>(limit, watch),
            (Xlen::Rv64, _) => self.attempt_width::<Rv64, Enough>(limit, watch),
        }
        self.hart.cpu.settled();
    }

    fn attempt_width<W: Width, B: for<'a> Brake<Watch<'a>>>(
        &mut self,
        limit: u64,
        watch: &mut Watch<'_>,
    ) {
        let mut left = limit;
        while left > 0 && !watch.enough {
            self.hart.cpu.waiting = false;
            // A step of its own, after the instruction that it belongs to.
            if let Some(tval) = self.hart.cpu.triggers.late.take() {
                left -= 1;
                self.breakpoint(tval, watch);
                continue;
            }
            if self.hart.cpu.is_watched() {
                left -= 1;
                self.attempt_watched::<W, B>(watch);
                continue;
            }
            self.attempt_unwatched::<W, B>(&mut left, watch);
        }
    }

    /// Attempts one instruction that triggers may match.
    fn attempt_watched<W: Width, B: for<'a> Brake<Watch<'a>>>(&mut self, watch: &mut Watch<'_>) {
        if let Ok(watched) = self.before_step(&mut Untraced(watch)) {
            self.attempt_unwatched::<W, B>(&mut 1, watch);
            self.hart.cpu.triggers.late = self.finish_step(Some(watched)).breakpoint;
        }
    }

    /// Attempts instructions up to the first that is not plain.
    fn attempt_unwatched<W: Width, B: for<'a> Brake<Watch<'a>>>(
        &mut self,
        left: &mut u64,
        watch: &mut Watch<'_>,
    ) {
        let leave = self.run_blocks::<W, _, B>(left, watch);
        let (exception, bits) = match leave {
            Ok(Leave::Spent | Leave::Fetch) => return,
            Ok(Leave::Event) => {
                self.settle();
                self.serve_devices(watch);
                return;
            }
            Ok(Leave::System { bits, micro }) => {
                *left -= 1;
                let (hart, bus) = (&mut self.hart, &mut self.bus);
                let done = system::execute(hart, bus, bits, &micro, watch);
                self.forget_stale();
                match done {
                    Ok(()) => return,
                    Err(exception) => (exception, Some(bits)),
                }
            }
            Ok(Leave::Trap { exception, bits }) => {
                *left -= 1;
                (exception, Some(bits))
            }
            Err(exception) => {
                *left -= 1;
                (exception, None)
            }
        };
        let cause = Cause::Exception(Some(exception.code));
        self.trap(cause, exception.tval, bits, watch);
    }
}
