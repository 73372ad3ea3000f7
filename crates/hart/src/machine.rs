//! A machine: a hart, memory, devices, and the world outside.

use core::fmt;

use hartrace_flow::{Cause, HartId, Mode, Observer, Signal, Step, Trap, TrapStep, Wants};
use hartrace_isa::{Op, Xlen};

use crate::bus::{Bus, Clock};
use crate::clint::Clint;
use crate::config::{Config, ConfigError, Platform};
use crate::cpu::{Cpu, Exception, interrupt, status};
use crate::exec::{self, Leave};
use crate::fdt::{self, BOOT_ROM, Description};
use crate::hart::Hart;
use crate::host::htif::Htif;
use crate::host::semihosting::{Outcome, Semihosting};
use crate::host::{GuestMemory, Host};
use crate::memory::{Memory, Region};
use crate::mmu::{Use, translate};
use crate::program::Program;
use crate::system;
use crate::vigil::Vigil;
use crate::width::{Rv32, Rv64, Width};

/// Instructions Spike executes before it looks at time and host.
const QUANTUM: u64 = 5000;

/// Ticks of time in a quantum.
const TICKS: u64 = 50;

/// Instructions between two looks at the host where stores to `tohost` are
/// noticed by themselves: for answers that wait.
const GLANCE: u64 = 10_000;

/// Instructions between the halves of `tohost` when RV32 writes it as two.
const HALVES: u64 = 16;

/// `j .` and `c.j .`.
const JUMP_TO_SELF: u32 = 0x0000_006f;
const SHORT_JUMP_TO_SELF: u16 = 0xa001;

/// Why a machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program ended with this code; 0 is success.
    Exit(u64),
    /// As many instructions as asked for were executed.
    Limit,
    /// The hart jumps to the instruction it is at, and nothing can wake it.
    Spins {
        /// The instruction.
        pc: u64,
    },
    /// The hart waits for an interrupt that cannot come.
    Asleep {
        /// Behind the `wfi`.
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

/// Why a program cannot be put into a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A program of one width for a hart of the other.
    Width {
        /// The program's.
        program: Xlen,
        /// The hart's.
        hart: Xlen,
    },
    /// Part of the program is not in RAM.
    Outside {
        /// The part.
        segment: Region,
        /// The RAM there is.
        ram: Vec<Region>,
    },
    /// The program would start where no instruction can be.
    Misaligned {
        /// Where it starts.
        entry: u64,
    },
    /// The program would start where there is no memory.
    Entry {
        /// Where it starts.
        entry: u64,
        /// The RAM there is.
        ram: Vec<Region>,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ram: &[Region]| {
            let each = ram
                .iter()
                .map(|r| format!("{:#x}-{:#x}", r.base, r.end().wrapping_sub(1)));
            each.collect::<Vec<_>>().join(", ")
        };
        match self {
            LoadError::Width { program, hart } => write!(
                f,
                "the program is for RV{}, the hart is RV{}",
                program.bits(),
                hart.bits()
            ),
            LoadError::Outside { segment, ram } => write!(
                f,
                "the program wants {:#x}-{:#x}, which is not in memory ({})",
                segment.base,
                segment.end().wrapping_sub(1),
                list(ram)
            ),
            LoadError::Misaligned { entry } => {
                write!(
                    f,
                    "no instruction can be at the entry {entry:#x}: it is misaligned"
                )
            }
            LoadError::Entry { entry, ram } => {
                write!(f, "the entry {entry:#x} is not in memory ({})", list(ram))
            }
        }
    }
}

impl core::error::Error for LoadError {}

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

/// A hart with memory, devices and a host.
pub struct Machine {
    pub(crate) hart: Hart,
    pub(crate) bus: Bus,
    config: Config,
    host: Host,
    htif: Htif,
    semihosting: Semihosting,
    fromhost: u64,
    program: Option<Program>,
    entry: u64,
    /// Instructions at which the host is looked at next.
    glance: u64,
    /// Spike: instructions left of the quantum, and whether the hart is in the
    /// middle of a serialising instruction.
    quantum: u64,
    serialized: bool,
    /// Spike: the limit has ended a stretch where it does not look for
    /// interrupts.
    pub(crate) cut: bool,
    vigil: Vigil,
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
        let (hart, bus) = build(&config, isa, 0)?;
        Ok(Machine {
            hart,
            bus,
            config,
            host,
            htif: Htif::new(),
            semihosting: Semihosting::new(),
            fromhost: 0,
            program: None,
            entry: 0,
            glance: 0,
            quantum: 0,
            serialized: false,
            cut: false,
            vigil: Vigil::default(),
        })
    }

    /// Puts a program into memory and the hart at its start, or at `entry`.
    ///
    /// # Errors
    ///
    /// A program that does not fit the machine.
    pub fn load(&mut self, program: Program, entry: Option<u64>) -> Result<(), LoadError> {
        let hart = self.hart.cpu.xlen();
        if program.xlen != hart {
            return Err(LoadError::Width {
                program: program.xlen,
                hart,
            });
        }
        let ram: Vec<Region> = self.bus.memory.ram().collect();
        for segment in &program.segments {
            let segment = Region {
                base: segment.addr,
                size: segment.size,
            };
            if !ram
                .iter()
                .any(|region| region.contains(segment.base, segment.size))
            {
                return Err(LoadError::Outside { segment, ram });
            }
        }
        let entry = entry.unwrap_or(program.entry);
        if entry & (1 | self.hart.cpu.misalignment()) != 0 {
            return Err(LoadError::Misaligned { entry });
        }
        if !ram.iter().any(|region| region.contains(entry, 2)) {
            return Err(LoadError::Entry { entry, ram });
        }
        self.program = Some(program);
        self.entry = entry;
        self.restart();
        Ok(())
    }

    /// Back to the state after [`Machine::load`]: memory too.
    fn restart(&mut self) {
        // Both were built before from the same settings.
        if let Ok(isa) = self.config.validate()
            && let Ok((hart, bus)) = build(&self.config, isa, self.entry)
        {
            (self.hart, self.bus) = (hart, bus);
        }
        if let Some(program) = &self.program {
            for segment in &program.segments {
                self.bus.memory.write(segment.addr, &segment.data);
            }
            self.bus.tohost = program.tohost;
            let ends = program.tohost.map(|addr| [addr, addr.wrapping_add(7)]);
            for addr in ends.into_iter().flatten() {
                if let Some(spot) = self.bus.memory.spot(addr) {
                    self.bus.memory.watch(spot.frame);
                }
            }
            self.fromhost = program.fromhost.unwrap_or(0);
        }
        self.htif = Htif::new();
        self.semihosting = Semihosting::new();
        self.glance = 0;
        self.quantum = 0;
        self.serialized = false;
        self.cut = false;
        self.vigil = Vigil::default();
        let cpu = &mut self.hart.cpu;
        match self.config.platform {
            Platform::Spike => cpu.pc = BOOT_ROM,
            Platform::Virt => {
                // As a jump there would.
                cpu.pc = self.entry & !1;
                cpu.write_x(10, cpu.id.into());
                cpu.write_x(11, self.config.boot_rom() + 32);
            }
        }
    }

    /// Resets the machine and puts its program back.
    pub fn reset(&mut self) {
        self.restart();
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

    /// Instructions retired since reset.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.hart.cpu.retired
    }

    /// Cycles since reset.
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

    /// Runs up to `limit` more instructions; with a limit of 0 nothing happens.
    /// An observer that wants more than nothing sees every step it wants.
    pub fn run<O: Observer>(&mut self, limit: u64, observer: &mut O) -> Stop {
        if limit == 0 {
            return Stop::Limit;
        }
        let until = self.hart.cpu.retired.saturating_add(limit);
        match self.hart.cpu.xlen() {
            Xlen::Rv32 => self.run_width::<Rv32, O>(until, observer),
            Xlen::Rv64 => self.run_width::<Rv64, O>(until, observer),
        }
    }

    fn run_width<W: Width, O: Observer>(&mut self, until: u64, observer: &mut O) -> Stop {
        loop {
            let stop = match self.config.platform {
                Platform::Virt => self.advance::<W, O>(until, observer),
                Platform::Spike => self.advance_quantum::<W, O>(until, observer),
            };
            if let Some(stop) = stop {
                return stop;
            }
            if self.hart.cpu.retired >= until {
                return Stop::Limit;
            }
        }
    }

    /// Goes on to the next thing that needs attention.
    fn advance<W: Width, O: Observer>(&mut self, until: u64, observer: &mut O) -> Option<Stop> {
        if let Some(stop) = self.look_outside() {
            return Some(stop);
        }
        self.refresh_interrupts();
        if self.hart.cpu.waiting && !self.wake() {
            return Some(Stop::Asleep {
                pc: self.hart.cpu.pc,
            });
        }
        if let Some(code) = self.hart.cpu.interrupt() {
            self.take_interrupt(code, observer);
            return None;
        }
        let cpu = &self.hart.cpu;
        let mut budget = until.min(self.glance).saturating_sub(cpu.retired);
        if let Some(deadline) = self.bus.deadline
            && deadline > cpu.cycles
            && cpu.mie & interrupt::MTI != 0
        {
            // Not one instruction past the deadline, however long each takes.
            let sure = (deadline - cpu.cycles) / self.hart.costs.most();
            budget = budget.min(sure.max(1));
        }
        self.execute::<W, O>(&mut budget, observer)
    }

    /// One quantum of Spike, or what is left of it.
    fn advance_quantum<W: Width, O: Observer>(
        &mut self,
        until: u64,
        observer: &mut O,
    ) -> Option<Stop> {
        if self.quantum == 0 {
            if let Some(stop) = self.poll_host() {
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
            let pause = self.execute_serialized::<W, O>(&mut budget, observer);
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
            let pc = self.hart.cpu.pc;
            return Some(Err(Stop::Asleep { pc }));
        }
        // A look at whether to go on waiting counts as an instruction.
        self.hart.cpu.retire(1, 1);
        Some(Ok(()))
    }

    /// Runs to the next place where Spike looks for interrupts.
    fn execute_serialized<W: Width, O: Observer>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Pause {
        loop {
            let leave = match self.run_blocks::<W, O>(budget, observer) {
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
                    let csr = !matches!(
                        micro.op,
                        Op::Ecall
                            | Op::Ebreak
                            | Op::Mret
                            | Op::Sret
                            | Op::Wfi
                            | Op::FenceI
                            | Op::SfenceVma
                    );
                    // CSR instructions are looked at twice: once to empty the
                    // pipeline, with a look for interrupts, once to be done.
                    if csr && !self.serialized {
                        self.serialized = true;
                        return Pause::Look;
                    }
                    self.serialized &= !csr;
                    if let Err(exception) =
                        system::execute(&mut self.hart, &mut self.bus, bits, &micro, observer)
                    {
                        return self.fault(exception, Some(bits), observer).into();
                    }
                    *budget -= 1;
                    if self.hart.cpu.waiting {
                        return Pause::Over;
                    }
                    if !matches!(micro.op, Op::FenceI | Op::SfenceVma) {
                        return Pause::Look;
                    }
                }
            }
        }
    }

    /// Executes until something happens that may change what comes next.
    fn execute<W: Width, O: Observer>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Option<Stop> {
        let leave = match self.run_blocks::<W, O>(budget, observer) {
            Ok(leave) => leave,
            Err(exception) => return self.fault(exception, None, observer).err(),
        };
        match leave {
            Leave::Spent | Leave::Fetch => None,
            Leave::Event => {
                self.settle();
                None
            }
            Leave::Trap { exception, bits } => self.fault(exception, Some(bits), observer).err(),
            Leave::System { bits, micro } => {
                if self.calls_host(micro.op) {
                    return self.semihosting_call(observer);
                }
                match system::execute(&mut self.hart, &mut self.bus, bits, &micro, observer) {
                    Ok(()) => None,
                    Err(exception) => self.fault(exception, Some(bits), observer).err(),
                }
            }
        }
    }

    /// Runs decoded code, decoding what is missing.
    pub(crate) fn run_blocks<W: Width, O: Observer>(
        &mut self,
        budget: &mut u64,
        observer: &mut O,
    ) -> Result<Leave, Exception> {
        let mut start = None;
        loop {
            let leave = exec::run::<W, O>(&mut self.hart, &mut self.bus, start, budget, observer);
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

    /// After a store that somebody watches.
    pub(crate) fn settle(&mut self) {
        if self.bus.memory.is_stale() {
            self.hart.forget_stale(&mut self.bus);
        }
        self.bus
            .find_deadline(self.hart.cpu.id, self.hart.cpu.cycles);
        self.refresh_interrupts();
        if let Some(bytes) = self.bus.called.take() {
            let delay = if bytes < 8 { HALVES } else { 0 };
            self.glance = self.glance.min(self.hart.cpu.retired + delay);
        }
    }

    /// The pending bits that come from the CLINT.
    fn refresh_interrupts(&mut self) {
        let cpu = &mut self.hart.cpu;
        cpu.set_outside_interrupts(self.bus.interrupts(cpu.id, cpu.cycles));
    }

    /// Ends a wait: at once if an interrupt is pending, else by letting time
    /// pass until the timer. False when nothing can end it.
    fn wake(&mut self) -> bool {
        let cpu = &mut self.hart.cpu;
        if cpu.mip & cpu.mie == 0 {
            let Some(deadline) = self.bus.deadline.filter(|_| cpu.mie & interrupt::MTI != 0) else {
                return false;
            };
            cpu.retire(0, deadline - cpu.cycles);
            self.refresh_interrupts();
        }
        self.hart.cpu.waiting = false;
        true
    }

    /// Whether an interrupt can come by itself: only time can bring one.
    fn can_wake(&self) -> bool {
        let cpu = &self.hart.cpu;
        let far = self.bus.clint.deadline(cpu.id) > u64::MAX / 2;
        cpu.mip & cpu.mie != 0 || cpu.mie & interrupt::MTI != 0 && !far
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

    /// Looks at the host when it is time to.
    fn look_outside(&mut self) -> Option<Stop> {
        if self.hart.cpu.retired < self.glance {
            return None;
        }
        // What has stopped stays so: the next look is at once.
        let stop = self.poll_host().or_else(|| self.find_spin());
        if stop.is_none() {
            self.glance = self.hart.cpu.retired + GLANCE;
        }
        stop
    }

    fn poll_host(&mut self) -> Option<Stop> {
        let tohost = self.bus.tohost?;
        let mut memory = Physical(&mut self.bus.memory);
        let code = self
            .htif
            .poll(&mut self.host, &mut memory, tohost, self.fromhost);
        if self.bus.memory.is_stale() {
            self.hart.forget_stale(&mut self.bus);
        }
        code.map(Stop::Exit)
    }

    /// Takes an exception, unless it is one of an endless row.
    fn fault<O: Observer>(
        &mut self,
        exception: Exception,
        bits: Option<u32>,
        observer: &mut O,
    ) -> Result<(), Stop> {
        if self.vigil.sees_loop(&self.hart.cpu, exception) {
            return Err(Stop::TrapLoop {
                epc: self.hart.cpu.pc,
                code: exception.code,
                tval: exception.tval,
            });
        }
        let cause = Cause::Exception(Some(exception.code));
        self.trap(cause, exception.tval, bits, observer);
        Ok(())
    }

    fn take_interrupt<O: Observer>(&mut self, code: u32, observer: &mut O) {
        self.vigil.sees_interrupt();
        self.trap(Cause::Interrupt(Some(code)), 0, None, observer);
    }

    /// Takes a trap and tells of it.
    pub(crate) fn trap<O: Observer>(
        &mut self,
        cause: Cause,
        tval: u64,
        bits: Option<u32>,
        observer: &mut O,
    ) {
        // A store may trap half way, with what it has done to be noticed.
        if matches!(cause, Cause::Exception(Some(7 | 15))) {
            self.settle();
        }
        let hart = &mut self.hart;
        let (epc, mode, context) = (hart.cpu.pc, hart.cpu.mode, hart.cpu.context());
        hart.cpu.retire(0, hart.costs.trap.into());
        hart.effects.clear();
        let mut report = exec::Report {
            effects: &mut hart.effects,
            observer,
        };
        hart.cpu
            .trap(cause, tval, &mut |csr, value| report.csr(csr, value));
        hart.tlb.change_mode(&hart.cpu);
        if O::WANTS.contains(Wants::EVENTS) {
            hart.effects.mode = Some(hart.cpu.mode).filter(|&to| to != mode);
            let fetched = !matches!(cause, Cause::Exception(Some(0 | 1 | 12)));
            let trap = Trap {
                epc,
                handler: Some(hart.cpu.pc),
                cause,
                tval: Some(hart.cpu.xlen().wrap(tval)),
            };
            let step = Step::Trap(TrapStep {
                trap,
                bits: bits.filter(|_| fetched),
                mode,
                context,
                time: hart.cpu.cycles,
            });
            observer.step(HartId(hart.cpu.id), &step, &hart.effects);
        }
        hart.effects.clear();
    }

    /// Whether the system instruction at pc is a semihosting call to be served.
    fn calls_host(&mut self, op: Op) -> bool {
        op == Op::Ebreak && self.config.semihosting && self.is_semihosting_call()
    }

    /// Whether the `ebreak` at pc is the middle of the three instructions that
    /// call the host (RISC-V semihosting, 2.1).
    fn is_semihosting_call(&mut self) -> bool {
        let (pc, xlen) = (self.hart.cpu.pc, self.hart.cpu.xlen());
        let mut half = |addr: u64| {
            let addr = xlen.wrap(addr);
            let paddr = translate(&self.hart.cpu, &mut self.bus, addr, 2, Use::Fetch).ok()?;
            let mut bytes = [0; 2];
            let read = self.bus.memory.read(paddr, &mut bytes);
            read.then_some(u32::from(u16::from_le_bytes(bytes)))
        };
        // The halves may be in different pages.
        let mut word = |addr: u64| Some(half(addr)? | half(addr.wrapping_add(2))? << 16);
        // slli x0, x0, 31; ebreak; srai x0, x0, 7
        word(pc) == Some(0x0010_0073)
            && word(pc.wrapping_sub(4)) == Some(0x01f0_1013)
            && word(pc.wrapping_add(4)) == Some(0x4070_5013)
    }

    /// Serves a semihosting call. To the program's trace it is what a debugger
    /// would do: the hart halts at the `ebreak` and resumes behind it.
    fn semihosting_call<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        let xlen = self.hart.cpu.xlen();
        let (operation, param) = (self.hart.cpu.read_x(10), self.hart.cpu.read_x(11));
        self.bus.set_time(self.hart.cpu.cycles);
        let time = self.bus.clint.mtime;
        let mut memory = Virtual {
            cpu: &self.hart.cpu,
            bus: &mut self.bus,
        };
        let outcome =
            self.semihosting
                .call(&mut self.host, xlen, operation, param, time, &mut memory);
        let result = match outcome {
            Outcome::Return(result) => result,
            Outcome::Exit(code) => return Some(Stop::Exit(code)),
        };
        self.settle();
        let hart = &mut self.hart;
        hart.effects.clear();
        hart.cpu.write_x(10, result);
        hart.cpu.pc = xlen.wrap(hart.cpu.pc.wrapping_add(4));
        if O::WANTS.contains(Wants::EVENTS) {
            let id = HartId(hart.cpu.id);
            let mut report = exec::Report {
                effects: &mut hart.effects,
                observer,
            };
            report.reg(hartrace_flow::RegId::X(10), result);
            observer.step(id, &Step::Signal(Signal::Halted), &hart.effects);
            hart.effects.clear();
            observer.step(id, &Step::Signal(Signal::Resumed), &hart.effects);
        }
        None
    }
}

/// The hart and the bus of a machine whose program starts at `entry`.
fn build(config: &Config, isa: hartrace_isa::Isa, entry: u64) -> Result<(Hart, Bus), ConfigError> {
    let ram: Vec<(u64, u64)> = config.memory.iter().map(|r| (r.base, r.size)).collect();
    let description = match config.platform {
        Platform::Virt => Description::virt(&config.isa, &ram),
        Platform::Spike => Description::spike(&config.isa, &ram),
    };
    let rom = fdt::boot_rom(isa.xlen(), entry, &description.blob());
    let memory = Memory::new(&config.memory, config.boot_rom(), &rom)?;
    let clock = match config.platform {
        Platform::Virt => Clock::Cycles {
            per_tick: config.cycles_per_tick,
            base: 0,
        },
        Platform::Spike => Clock::Stepped,
    };
    let mut cpu = Cpu::new(isa, 0);
    cpu.always_counters = config.platform == Platform::Virt;
    if config.platform == Platform::Spike {
        cpu.unwritten = u32::MAX;
    }
    cpu.update_ad = config.update_ad;
    cpu.svadu = config.has_svadu();
    let mut bus = Bus {
        memory,
        clint: Clint::new(1),
        clock,
        deadline: None,
        tohost: None,
        called: None,
        as_spike: config.platform == Platform::Spike,
    };
    bus.find_deadline(cpu.id, cpu.cycles);
    let mut hart = Hart::new(cpu, config.costs, config.does_misaligned());
    hart.tlb.forgetful = config.platform == Platform::Spike;
    Ok((hart, bus))
}

/// Memory by physical address, for the host-target interface.
struct Physical<'a>(&'a mut Memory);

impl GuestMemory for Physical<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.0.read(address, buffer)
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        self.0.write(address, data)
    }
}

/// Memory as the program's loads and stores see it, for semihosting.
struct Virtual<'a> {
    cpu: &'a Cpu,
    bus: &'a mut Bus,
}

impl Virtual<'_> {
    /// The physical address and how many of `len` bytes are in its page.
    fn part(&mut self, address: u64, len: usize, what: Use) -> Option<(u64, usize)> {
        let room = 4096 - (address % 4096) as usize;
        let len = len.min(room);
        let paddr = translate(self.cpu, self.bus, address, len as u64, what).ok()?;
        Some((paddr, len))
    }
}

impl GuestMemory for Virtual<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let (mut at, mut rest) = (address, buffer);
        while !rest.is_empty() {
            let Some((paddr, len)) = self.part(at, rest.len(), Use::Load) else {
                return false;
            };
            let (now, later) = rest.split_at_mut(len);
            if !self.bus.memory.read(paddr, now) {
                return false;
            }
            (at, rest) = (at.wrapping_add(len as u64), later);
        }
        true
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let (mut at, mut rest) = (address, data);
        while !rest.is_empty() {
            let Some((paddr, len)) = self.part(at, rest.len(), Use::Store) else {
                return false;
            };
            let (now, later) = rest.split_at(len);
            if !self.bus.memory.write(paddr, now) {
                return false;
            }
            (at, rest) = (at.wrapping_add(len as u64), later);
        }
        true
    }
}
