//! A machine: a hart, memory, devices, and the world outside.

mod load;
mod outside;
mod quantum;
mod serve;
mod trap;
mod turns;
mod watch;

pub use load::LoadError;

use core::fmt;
use std::time::Duration;

use hartrace_ctr::Ctr;
use hartrace_flow::erase::{self, Dyn, Erased};
use hartrace_flow::{Context, Mode, Observer, TrapStep, Wants};
use hartrace_isa::{Op, Xlen};

use crate::boot::Handover;
use crate::bus::{Bus, FOREVER};
use crate::config::{Config, ConfigError, Platform};
use crate::cpu::{Exception, interrupt, status};
use crate::exec::{self, Brake, Leave, NoBrake};
use crate::hart::Hart;
use crate::host::Host;
use crate::host::htif::Htif;
use crate::host::semihosting::Semihosting;
use crate::mmu::{Use, translate};
use crate::program::Program;
use crate::system;
use crate::width::{Rv32, Rv64, Width};

use turns::Turns;

/// `j .` and `c.j .`.
const JUMP_TO_SELF: u32 = 0x0000_006f;
const SHORT_JUMP_TO_SELF: u16 = 0xa001;

/// Why a machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program ended with this code; 0 is success.
    Exit(u64),
    /// As many instructions as asked for were executed; or the hart waits for input
    /// that arrives in its own time, and the caller may want to look at something else.
    Limit,
    /// The hart jumps to the instruction it is at, and nothing can wake it.
    Spins {
        /// The instruction.
        pc: u64,
    },
    /// The hart waits for an interrupt that cannot come.
    Asleep {
        /// The instruction after the `wfi`.
        pc: u64,
    },
    /// The hart takes the same trap again and again.
    TrapLoop {
        /// The instruction that traps.
        epc: u64,
        /// The exception, as in xcause.
        code: u32,
        /// The trap value.
        tval: u64,
    },
}

/// What comes of a wait.
enum Wake {
    Now,
    /// Its turn is over.
    Later,
    /// Nothing can end it.
    Never,
}

/// Harts with memory, devices and a host.
pub struct Machine {
    /// The hart whose turn it is, or the only one.
    pub(crate) hart: Hart,
    turns: Turns,
    pub(crate) bus: Bus,
    config: Config,
    host: Host,
    htif: Htif,
    semihosting: Semihosting,
    fromhost: u64,
    program: Option<Program>,
    /// Records that are kept for others than the program, as they start.
    beside: Option<Ctr>,
    entry: u64,
    /// What a system finds in registers.
    handover: Option<Handover>,
    /// Time spent waiting for input since the caller could look at something else.
    waited: Duration,
    /// Instructions at which the host is looked at next.
    glance: u64,
    /// Spike: instructions left of the quantum, and whether the hart is in the
    /// middle of a serialising instruction.
    quantum: u64,
    serialized: bool,
    /// Spike: the limit has ended a stretch where it does not look for
    /// interrupts.
    pub(crate) cut: bool,
}

/// Where it is, not what its memory holds.
impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("config", &self.config)
            .field("pc", &format_args!("{:#x}", self.pc()))
            .field("instructions", &self.instructions())
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with empty memory, its hart in reset.
    ///
    /// # Errors
    ///
    /// A machine that cannot be built.
    pub fn new(config: Config, host: Host) -> Result<Machine, ConfigError> {
        let isa = config.validate()?;
        let (hart, turns, bus) = load::build(&config, isa, 0)?;
        Ok(Machine {
            hart,
            turns,
            bus,
            config,
            host,
            htif: Htif::new(),
            semihosting: Semihosting::new(),
            fromhost: 0,
            program: None,
            beside: None,
            entry: 0,
            handover: None,
            waited: Duration::ZERO,
            glance: 0,
            quantum: 0,
            serialized: false,
            cut: false,
        })
    }

    /// The configuration it was built from.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The world outside.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Instructions that all harts have retired since reset.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.hart.cpu.retired + self.turns.elsewhere
    }

    /// Cycles since reset of the hart that ran last, which what follows is about, too.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.hart.cpu.cycles
    }

    /// An integer register.
    #[must_use]
    pub fn x(&self, number: u8) -> u64 {
        self.hart.cpu.read_x(number)
    }

    /// Where the hart is.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.hart.cpu.pc
    }

    /// The privilege mode of the hart.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.hart.cpu.mode
    }

    /// Keeps control transfer records of which the program knows nothing, from
    /// the start of the program on, for each hart. Does nothing on harts with their
    /// own.
    pub fn record_beside(&mut self, ctr: Ctr) {
        if self.ctr().is_none() || self.beside.is_some() {
            self.beside = Some(ctr.clone());
            for hart in self.turns.others_and(&mut self.hart) {
                hart.record_to(ctr.clone());
            }
        }
    }

    /// The hart's control transfer records, if its instruction set has them, or
    /// those beside it ([`Machine::record_beside`]).
    #[must_use]
    pub fn ctr(&self) -> Option<&Ctr> {
        self.hart.cpu.records.as_ref().map(|r| r.ctr())
    }

    /// Runs up to `limit` more instructions; with a limit of 0 nothing happens.
    /// An observer that wants more than nothing sees every step it wants.
    pub fn run<O: Observer>(&mut self, limit: u64, observer: &mut O) -> Stop {
        if limit == 0 {
            return Stop::Limit;
        }
        let until = self.instructions().saturating_add(limit);
        let machine = self;
        erase::run(Until { machine, until }, observer)
    }

    /// As [`Machine::run`], for an observer of any type that wants this much; it may
    /// be shown more.
    pub fn run_any(&mut self, limit: u64, wants: Wants, observer: &mut Dyn<'_>) -> Stop {
        if limit == 0 {
            return Stop::Limit;
        }
        let until = self.instructions().saturating_add(limit);
        let machine = self;
        erase::run_any(Until { machine, until }, wants, observer)
    }

    fn run_as<O: Observer>(&mut self, until: u64, observer: &mut O) -> Stop {
        let stop = match self.hart.cpu.xlen() {
            Xlen::Rv32 => self.run_width::<Rv32, O>(until, observer),
            Xlen::Rv64 => self.run_width::<Rv64, O>(until, observer),
        };
        for hart in self.turns.others_and(&mut self.hart) {
            hart.cpu.settled();
        }
        stop
    }

    fn run_width<W: Width, O: Observer>(&mut self, until: u64, observer: &mut O) -> Stop {
        loop {
            let stop = match self.config.platform {
                Platform::Virt if self.turns.is_over(&self.hart) => self.next_turn(),
                Platform::Virt => self.advance::<W, O>(until, observer),
                Platform::Spike => self.advance_quantum::<W, O>(until, observer),
            };
            if let Some(stop) = stop {
                return stop;
            }
            if self.instructions() >= until {
                return Stop::Limit;
            }
        }
    }

    /// Goes on to the next thing that needs attention.
    fn advance<W: Width, O: Observer>(&mut self, until: u64, observer: &mut O) -> Option<Stop> {
        if let Some(stop) = self.look_outside(observer) {
            return Some(stop);
        }
        self.refresh_interrupts();
        if self.hart.cpu.waiting
            && let Some(stop) = self.await_input(observer)
        {
            return Some(stop);
        }
        if self.hart.cpu.waiting {
            match self.wake() {
                Wake::Now => {}
                Wake::Later => return None,
                Wake::Never => return Some(self.asleep()),
            }
        }
        if let Some(code) = self.hart.cpu.interrupt() {
            self.take_interrupt(code, observer);
            return None;
        }
        if self.hart.cpu.is_watched() {
            return self.step_watched::<W, O>(observer);
        }
        let mut budget = until.min(self.glance).saturating_sub(self.instructions());
        budget = budget.min(self.turns.budget(&self.hart));
        let cpu = &self.hart.cpu;
        for deadline in self.timers().filter(|&deadline| deadline > cpu.cycles) {
            // Not one instruction past the deadline, however long each takes.
            let sure = (deadline - cpu.cycles) / self.hart.costs.most();
            budget = budget.min(sure.max(1));
        }
        if let Some(alarm) = self.bus.alarm {
            let sure = alarm.saturating_sub(cpu.cycles) / self.hart.costs.most();
            budget = budget.min(sure.max(1));
        }
        if !cpu.events.is_idle() {
            budget = budget.min(cpu.room().budget(self.hart.costs.most()));
        }
        self.execute::<W, O>(&mut budget, observer)
    }

    /// Executes until something happens that may change what comes next.
    fn execute<W: Width, O: Observer>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Option<Stop> {
        let leave = match self.run_blocks::<W, O, NoBrake>(budget, observer) {
            Ok(leave) => leave,
            Err(exception) => return self.fault(exception, None, observer).err(),
        };
        match leave {
            Leave::Spent | Leave::Fetch => None,
            Leave::Event => {
                self.settle();
                self.serve_devices(observer);
                None
            }
            Leave::Trap { exception, bits } => self.fault(exception, Some(bits), observer).err(),
            Leave::System { bits, micro } => {
                if self.calls_host(micro.op) {
                    return self.semihosting_call(observer);
                }
                let done = system::execute(&mut self.hart, &mut self.bus, bits, &micro, observer);
                self.forget_stale();
                match done {
                    Ok(()) => {
                        if matches!(micro.op, Op::WrsNto | Op::WrsSto) {
                            self.stall();
                        }
                        None
                    }
                    Err(exception) => self.fault(exception, Some(bits), observer).err(),
                }
            }
        }
    }

    /// Runs decoded code, decoding what is missing.
    pub(crate) fn run_blocks<W: Width, O: Observer, B: Brake<O>>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Result<Leave, Exception> {
        let mut start = None;
        loop {
            let (hart, bus) = (&mut self.hart, &mut self.bus);
            let leave = exec::run::<W, O, B>(hart, bus, start, budget, observer);
            if let Some(block) = start.take() {
                self.hart.code.drop_one(block);
            }
            if leave != Leave::Fetch {
                return Ok(leave);
            }
            if *budget == 0 {
                return Ok(Leave::Spent);
            }
            start = self.hart.fetch(&mut self.bus)?;
        }
    }

    /// Forgets the code of pages that were written, on all harts.
    #[inline]
    pub(crate) fn forget_stale(&mut self) {
        if self.bus.memory.is_stale() {
            let stale = self.bus.memory.take_stale();
            for hart in self.turns.others_and(&mut self.hart) {
                hart.forget_frames(&stale);
            }
        }
    }

    /// After a store to a watched page.
    pub(crate) fn settle(&mut self) {
        self.forget_stale();
        self.refresh_timer();
        self.bus.find_deadline(&self.hart.cpu);
        self.refresh_interrupts();
        if let Some(bytes) = self.bus.called.take() {
            let delay = if bytes < 8 { outside::HALVES } else { 0 };
            self.glance = self.glance.min(self.instructions() + delay);
        }
    }

    /// The pending bits that come from the CLINT and from devices.
    pub(crate) fn refresh_interrupts(&mut self) {
        let cpu = &mut self.hart.cpu;
        let [machine, supervisor] = self.bus.timers_due();
        let due = [self.bus.ring(cpu.cycles), machine, supervisor];
        cpu.set_outside_interrupts(self.bus.interrupts(cpu), &due);
    }

    /// Before the deadlines of timers are found again: a timer may be due already.
    fn refresh_timer(&mut self) {
        let cpu = &self.hart.cpu;
        let due = self.bus.timers_due().iter().any(|(timer, deadline)| {
            cpu.mip & timer == 0 && deadline.is_some_and(|cycle| cycle <= cpu.cycles)
        });
        if due {
            self.refresh_interrupts();
        }
    }

    /// `wrs`: the hart waits for a store of another one to what it has reserved, or for
    /// an interrupt. Others only store in their turns, so it gives the rest of its own
    /// away; the only hart does not wait at all.
    fn stall(&mut self) {
        let cpu = &self.hart.cpu;
        let Some(end) = self.turns.end() else {
            return;
        };
        if cpu.reservation.is_some() && cpu.mip & cpu.mie == 0 {
            let until = self.next_interrupt().map_or(end, |first| first.min(end));
            let cycles = until.saturating_sub(cpu.cycles);
            self.hart.cpu.retire(0, cycles);
        }
    }

    /// Ends a wait: at once if an interrupt is pending, else by letting time
    /// pass until the timer, the overflow of a counter or a device.
    fn wake(&mut self) -> Wake {
        let cpu = &self.hart.cpu;
        if cpu.mip & cpu.mie == 0 {
            let first = self.next_interrupt();
            let cpu = &mut self.hart.cpu;
            // The others may do something about it.
            if let Some(end) = self.turns.end()
                && first.is_none_or(|first| first > end)
            {
                cpu.retire(0, end.saturating_sub(cpu.cycles));
                return Wake::Later;
            }
            let Some(first) = first else {
                return Wake::Never;
            };
            cpu.retire(0, first.saturating_sub(cpu.cycles));
            self.refresh_interrupts();
        }
        self.hart.cpu.waiting = false;
        Wake::Now
    }

    fn asleep(&self) -> Stop {
        let pc = self.hart.cpu.pc;
        Stop::Asleep { pc }
    }

    /// The cycles at which those of its timers are due whose interrupts are enabled.
    fn timers(&self) -> impl Iterator<Item = u64> {
        let mie = self.hart.cpu.mie;
        let machine = self.bus.deadline.filter(|_| mie & interrupt::MTI != 0);
        let supervisor = self.bus.supervisor_deadline;
        let supervisor = supervisor.filter(|_| mie & interrupt::STI != 0);
        machine.into_iter().chain(supervisor)
    }

    /// The cycle at which time brings an interrupt that is enabled.
    fn next_interrupt(&self) -> Option<u64> {
        let cpu = &self.hart.cpu;
        let overflow = cpu.cycles.checked_add(cpu.room().cycles);
        let overflow = overflow.filter(|_| cpu.mie & interrupt::LCOFI != 0);
        let overflow = overflow.filter(|&cycle| cycle <= FOREVER);
        let external = cpu.mie & (interrupt::MEI | interrupt::SEI) != 0;
        let alarm = self.bus.alarm.filter(|_| external);
        self.timers().chain(overflow).chain(alarm).min()
    }

    /// Whether an interrupt can come by itself: time, counters and input can
    /// bring one.
    fn can_wake(&self) -> bool {
        let cpu = &self.hart.cpu;
        let machine = (Some(self.bus.clint.deadline(cpu.id)), interrupt::MTI);
        let supervisor = (cpu.supervisor_timer(), interrupt::STI);
        let timer = [machine, supervisor].iter().any(|&(tick, bit)| {
            let near = tick.is_some_and(|tick| tick <= u64::MAX / 2);
            near && cpu.mie & bit != 0
        });
        let device = self.bus.alarm.is_some() || self.awaits_input();
        let overflow = cpu.mie & interrupt::LCOFI != 0 && cpu.room().is_finite();
        cpu.mip & cpu.mie != 0 || timer || device || overflow
    }

    /// The hart jumps to itself and no interrupt will take it away.
    fn find_spin(&mut self) -> Option<Stop> {
        let cpu = &self.hart.cpu;
        let deaf = cpu.mode == Mode::M && cpu.mstatus & status::MIE == 0;
        if !deaf && self.can_wake() {
            return None;
        }
        let pc = cpu.pc;
        let compressed = cpu.misalignment() == 0;
        let low = self.code_at(pc)?;
        let high = self.code_at(pc.wrapping_add(2)).unwrap_or(0);
        let jal = u32::from(low) | u32::from(high) << 16 == JUMP_TO_SELF;
        let spins = jal || compressed && low == SHORT_JUMP_TO_SELF;
        spins.then_some(Stop::Spins { pc })
    }

    /// A halfword of code, as the hart would fetch it.
    fn code_at(&mut self, addr: u64) -> Option<u16> {
        let paddr = translate(&self.hart.cpu, &mut self.bus, addr, 2, Use::Fetch).ok()?;
        let mut bytes = [0; 2];
        let read = self.bus.memory.read(paddr, &mut bytes);
        read.then_some(u16::from_le_bytes(bytes))
    }

    /// Whether the hart is in what looks like an endless row of traps. For a run
    /// that ends before [`Machine::run`] stops for that reason.
    #[must_use]
    pub fn trap_loop(&self) -> Option<Stop> {
        let (epc, exception) = self.hart.vigil.suspects(&self.hart.cpu)?;
        Some(Stop::TrapLoop {
            epc,
            code: exception.code,
            tval: exception.tval,
        })
    }

    /// The trap that the last row of traps began with: the later ones are its
    /// consequences.
    #[must_use]
    pub fn first_trap(&self) -> Option<TrapStep> {
        self.hart.row.first()
    }

    /// The names of contexts, where those are address spaces: of Linux processes, as far as
    /// their system calls show them.
    pub fn context_names(&self) -> impl Iterator<Item = (Context, &str)> {
        let processes = self.bus.processes.iter();
        processes.flat_map(|processes| processes.names())
    }

    /// Runs the same as `other` did until it stopped, on a machine that has just
    /// been loaded. Whether it ended alike: it does not if the program depends on
    /// input or files that are not there again.
    pub fn retrace<O: Observer>(&mut self, other: &Machine, stop: Stop, observer: &mut O) -> bool {
        let insns = other.instructions();
        let mut again = self.run(insns, observer);
        if again == Stop::Limit && stop != Stop::Limit {
            // What ended the run retires no instruction.
            again = match self.trap_loop() {
                Some(stop) => stop,
                None => self.run(1, observer),
            };
        }
        again == stop
            && self.instructions() == insns
            && self.cycles() == other.cycles()
            && (0..32).all(|x| self.x(x) == other.x(x))
    }
}

/// A machine that is to run until it has retired so many instructions. Its
/// functions have no type parameters: the interpreter is compiled here, once
/// for each kind of observer, and not again for every observer elsewhere.
struct Until<'m> {
    machine: &'m mut Machine,
    until: u64,
}

impl erase::Source for Until<'_> {
    type Output = Stop;

    #[inline(never)]
    fn events(self, to: &mut Dyn<'_>) -> Stop {
        let mut observer = Erased::<erase::Events>::new(to);
        self.machine.run_as(self.until, &mut observer)
    }

    #[inline(never)]
    fn steps(self, to: &mut Dyn<'_>) -> Stop {
        let mut observer = Erased::<erase::Steps>::new(to);
        self.machine.run_as(self.until, &mut observer)
    }

    #[inline(never)]
    fn data(self, to: &mut Dyn<'_>) -> Stop {
        let mut observer = Erased::<erase::Data>::new(to);
        self.machine.run_as(self.until, &mut observer)
    }

    #[inline(never)]
    fn everything(self, to: &mut Dyn<'_>) -> Stop {
        let mut observer = Erased::<erase::Everything>::new(to);
        self.machine.run_as(self.until, &mut observer)
    }
}
