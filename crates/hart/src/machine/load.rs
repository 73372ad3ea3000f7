//! Putting a program into a machine.

use core::fmt;
use std::collections::VecDeque;

use hartrace_flow::{Effects, HartId, Observer, Signal, Step};
use hartrace_isa::Xlen;

use crate::boot::{Handover, System};
use crate::bus::{Bus, Clock};
use crate::clint::Clint;
use crate::config::{Config, ConfigError, ContextSource, Platform};
use crate::cpu::Cpu;
use crate::csr::set_csr;
use crate::devices::{Devices, Equipment};
use crate::fdt::{self, BOOT_ROM, Chosen, Description, tree};
use crate::hart::Hart;
use crate::host::htif::Htif;
use crate::host::semihosting::Semihosting;
use crate::machine::Machine;
use crate::machine::turns::Turns;
use crate::memory::{Memory, Region};
use crate::notes::Records;
use crate::program::Program;
use crate::triggers::Triggers;

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
                "the program is for RV{}, but the hart is RV{}",
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
                write!(f, "the entry {entry:#x} is misaligned")
            }
            LoadError::Entry { entry, ram } => {
                write!(f, "the entry {entry:#x} is not in memory ({})", list(ram))
            }
        }
    }
}

impl core::error::Error for LoadError {}

impl Machine {
    /// Puts a program into memory and the hart at its start, or at `entry`.
    ///
    /// # Errors
    ///
    /// A program that does not fit the machine.
    pub fn load(&mut self, program: Program, entry: Option<u64>) -> Result<(), LoadError> {
        self.load_with(program, entry, None)
    }

    /// Puts a system into memory and the hart at the start of its firmware, or of its
    /// kernel if it has none, with the device tree in `a1` and the rest of what is
    /// handed over in `a2`.
    ///
    /// # Errors
    ///
    /// A system that does not fit the machine.
    pub fn boot(&mut self, system: System) -> Result<(), LoadError> {
        self.load_with(system.program, None, Some(system.handover))
    }

    fn load_with(
        &mut self,
        program: Program,
        entry: Option<u64>,
        handover: Option<Handover>,
    ) -> Result<(), LoadError> {
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
        self.handover = handover;
        self.restart();
        Ok(())
    }

    /// Back to the state after [`Machine::load`]: memory too.
    fn restart(&mut self) {
        // Both were built before from the same settings.
        if let Ok(isa) = self.config.validate()
            && let Ok((hart, turns, bus)) = build(&self.config, isa, self.entry)
        {
            (self.hart, self.turns, self.bus) = (hart, turns, bus);
        }
        if let Some(ctr) = &self.beside {
            for hart in self.turns.others_and(&mut self.hart) {
                hart.record_to(ctr.clone());
            }
        }
        if let Some(program) = &self.program {
            for segment in &program.segments {
                self.bus.memory.write(segment.addr, &segment.data);
            }
            self.bus.tohost = program.tohost;
            let ends = program.tohost.map(|addr| [addr, addr.wrapping_add(7)]);
            for addr in ends.into_iter().flatten() {
                if let Some(spot) = self.bus.memory.spot(addr) {
                    self.bus.memory.pin(spot.frame);
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
        // A timer that was never set is due.
        self.refresh_interrupts();
        let rom = Handover {
            tree: self.config.boot_rom() + 32,
            info: 0,
        };
        let handover = self.handover.unwrap_or(rom);
        for hart in self.turns.others_and(&mut self.hart) {
            let cpu = &mut hart.cpu;
            match self.config.platform {
                Platform::Spike => cpu.pc = BOOT_ROM,
                Platform::Virt => {
                    cpu.pc = self.entry;
                    cpu.write_x(10, cpu.id.into());
                    cpu.write_x(11, handover.tree);
                    cpu.write_x(12, handover.info);
                }
            }
        }
    }

    /// Resets the machine and puts its program back.
    pub fn reset(&mut self) {
        self.restart();
    }

    /// Whether it was booted, rather than given a program.
    pub(super) fn is_system(&self) -> bool {
        self.handover.is_some()
    }

    /// The machine resets itself. Its time goes on, and so does the count of instructions.
    pub(super) fn reboot<O: Observer>(&mut self, observer: &mut O) {
        let retired = self.instructions();
        let clocks = self.turns.others_and(&mut self.hart);
        let now = clocks.map(|hart| hart.cpu.cycles).max().unwrap_or(0);
        self.restart();
        for hart in self.turns.others_and(&mut self.hart) {
            hart.cpu.cycles = now;
            let id = HartId(hart.cpu.id);
            observer.step(id, &Step::Signal(Signal::Reset), &Effects::NONE);
        }
        self.turns.resume(retired, now);
        self.bus.find_deadline(&self.hart.cpu);
        self.refresh_interrupts();
    }
}

/// The first hart, the others and the bus of a machine whose program starts at `entry`.
pub(super) fn build(
    config: &Config,
    isa: hartrace_isa::Isa,
    entry: u64,
) -> Result<(Hart, Turns, Bus), ConfigError> {
    let tree = match config.platform {
        Platform::Virt => tree(config, isa, Chosen::default()),
        Platform::Spike => {
            let ram: Vec<(u64, u64)> = config.memory.iter().map(|r| (r.base, r.size)).collect();
            Description::spike(&config.isa, &ram).blob()
        }
    };
    let rom = fdt::boot_rom(isa.xlen(), entry, &tree);
    let memory = Memory::new(&config.memory, config.boot_rom(), &rom)?;
    let clock = match config.platform {
        Platform::Virt => Clock::Cycles {
            per_tick: config.cycles_per_tick,
            base: 0,
        },
        Platform::Spike => Clock::Stepped,
    };
    let devices = match config.platform {
        Platform::Virt => {
            let equipment = Equipment::beside(&config.memory, &config.virtio);
            Devices::new(&equipment, config.harts as usize, config.epoch)
        }
        Platform::Spike => Devices::none(),
    };
    let mut bus = Bus {
        memory,
        clint: Clint::new(config.harts as usize),
        clock,
        devices,
        alarm: None,
        deadline: None,
        supervisor_deadline: None,
        tohost: None,
        called: None,
        as_spike: config.platform == Platform::Spike,
        processes: (config.context != ContextSource::Scontext).then(Box::default),
    };
    let mut others = VecDeque::new();
    for id in 1..config.harts {
        others.push_back(build_hart(config, isa, id)?);
    }
    if !others.is_empty() {
        bus.memory.share();
    }
    let first = build_hart(config, isa, 0)?;
    bus.find_deadline(&first.cpu);
    Ok((first, Turns::new(others, config.quantum, config.seed), bus))
}

fn build_hart(config: &Config, isa: hartrace_isa::Isa, id: u32) -> Result<Hart, ConfigError> {
    let mut cpu = Cpu::new(isa, id);
    cpu.always_counters = config.platform == Platform::Virt;
    if config.platform == Platform::Spike {
        cpu.unwritten = u32::MAX;
    }
    cpu.records = config
        .records(isa)?
        .map(|ctr| Box::new(Records::new(ctr, false)));
    cpu.update_ad = config.update_ad;
    cpu.context_source = config.context;
    let as_spike = config.platform == Platform::Spike;
    cpu.triggers = Triggers::new(config.triggers, isa.xlen(), as_spike);
    cpu.svadu = config.has_svadu();
    cpu.svnapot = config.names("svnapot");
    cpu.svpbmt = config.names("svpbmt");
    cpu.cache_block = config.cache_block;
    cpu.vary(&config.variant);
    for (csr, value) in &config.variant.reset {
        // Those that never change have it already.
        let _ = set_csr(&mut cpu, *csr, *value);
    }
    let mut hart = Hart::new(cpu, config.costs, config.does_misaligned());
    hart.tlb.forgetful = config.platform == Platform::Spike;
    Ok(hart)
}
