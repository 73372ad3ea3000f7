//! Physical addresses: memory, devices, and the words watched by the host.

use crate::clint::{CLINT, Clint};
use crate::cpu::{Cpu, interrupt};
use crate::devices::Devices;
use crate::memory::Memory;
use crate::pending::Due;
use crate::processes::Processes;

/// Where time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// One tick of mtime every so many cycles of the first hart.
    Cycles {
        /// Cycles per tick.
        per_tick: u64,
        /// mtime when the hart's cycle count was 0.
        base: u64,
    },
    /// Someone else advances mtime.
    Stepped,
}

/// No hart gets this far: cycle counts below it can be added up without a
/// thought.
pub(crate) const FOREVER: u64 = u64::MAX / 2;

/// Memory and devices, as all harts see them.
#[derive(Debug)]
pub(crate) struct Bus {
    pub(crate) memory: Memory,
    pub(crate) clint: Clint,
    pub(crate) clock: Clock,
    pub(crate) devices: Devices,
    /// The cycle at which a device does something by itself.
    pub(crate) alarm: Option<u64>,
    /// The cycle at which the timer interrupt is due; `None` is never, or
    /// not handled here.
    pub(crate) deadline: Option<u64>,
    /// The same for the timer of the supervisor.
    pub(crate) supervisor_deadline: Option<u64>,
    /// The doubleword through which the program talks to the host.
    pub(crate) tohost: Option<u64>,
    /// A store touched `tohost`: the number of bytes.
    pub(crate) called: Option<u64>,
    /// What Spike does and our own machine does not: devices can hold code and
    /// page tables, and a misaligned store that faults in its second page
    /// leaves the first one stored.
    pub(crate) as_spike: bool,
    /// The processes of a kernel, by address space, if that is the context.
    pub(crate) processes: Option<Box<Processes>>,
}

impl Bus {
    /// Brings mtime up to a cycle count.
    pub(crate) fn set_time(&mut self, cycles: u64) {
        self.clint.mtime = self.time(cycles);
    }

    /// Whether mtime follows the hart's cycles.
    pub(crate) fn runs_by_itself(&self) -> bool {
        self.clock != Clock::Stepped
    }

    /// mtime at a cycle count.
    pub(crate) fn time(&self, cycles: u64) -> u64 {
        match self.clock {
            Clock::Cycles { per_tick, base } => base.wrapping_add(cycles / per_tick),
            Clock::Stepped => self.clint.mtime,
        }
    }

    /// The bits of `mip` that come from outside, of the hart that runs.
    pub(crate) fn interrupts(&self, cpu: &Cpu) -> u64 {
        let mut pending = self.devices.interrupts(cpu.id);
        if self.clint.software_interrupt(cpu.id) {
            pending |= interrupt::MSI;
        }
        let is_due = |cycle: Option<u64>, tick: u64| match self.clock {
            Clock::Cycles { .. } => cycle.is_some_and(|cycle| cpu.cycles >= cycle),
            Clock::Stepped => self.clint.mtime >= tick,
        };
        if is_due(self.deadline, self.clint.deadline(cpu.id)) {
            pending |= interrupt::MTI;
        }
        if let Some(tick) = cpu.supervisor_timer()
            && is_due(self.supervisor_deadline, tick)
        {
            pending |= interrupt::STI;
        }
        pending
    }

    /// The bits of `mip` that the timers of the hart that runs set, and when.
    pub(crate) fn timers_due(&self) -> [Due; 2] {
        [
            (interrupt::MTI, self.deadline),
            (interrupt::STI, self.supervisor_deadline),
        ]
    }

    /// The cycle count at which it will be so late, or now; `None` if someone else
    /// advances time or it is out of reach. `mtime` must be up to date.
    fn cycle_of(&self, tick: u64, cycles: u64) -> Option<u64> {
        let Clock::Cycles { per_tick, .. } = self.clock else {
            return None;
        };
        let ticks = tick.saturating_sub(self.clint.mtime);
        if ticks == 0 {
            return Some(cycles);
        }
        (cycles / per_tick)
            .checked_add(ticks)?
            .checked_mul(per_tick)
            .filter(|&deadline| deadline <= FOREVER)
    }

    /// Finds when the timers of a hart are due, which only a store to the CLINT and
    /// writes of its CSRs change, and when a device is.
    pub(crate) fn find_deadline(&mut self, cpu: &Cpu) {
        let cycles = cpu.cycles;
        self.set_time(cycles);
        self.deadline = self.cycle_of(self.clint.deadline(cpu.id), cycles);
        let supervisor = cpu.supervisor_timer();
        self.supervisor_deadline = supervisor.and_then(|tick| self.cycle_of(tick, cycles));
        let tick = self.devices.deadline();
        self.alarm = tick.and_then(|tick| self.cycle_of(tick, cycles));
    }

    /// Lets devices do what is due. Gives the bits of `mip` that this may set, and when.
    pub(crate) fn ring(&mut self, cycles: u64) -> Due {
        let rings = self.alarm.filter(|&cycle| cycles >= cycle);
        if rings.is_some() {
            self.set_time(cycles);
            self.devices.tick(self.clint.mtime);
            self.alarm = None;
        }
        (interrupt::EXTERNAL, rings)
    }

    /// Reads a device register: `len` aligned bytes at a physical address that
    /// is not memory. `None` when nothing answers.
    pub(crate) fn load(&mut self, paddr: u64, len: u64, cycles: u64) -> Option<u64> {
        if CLINT.contains(paddr, len) {
            self.set_time(cycles);
            return Some(self.clint.load(paddr - CLINT.base, len));
        }
        self.devices.load(paddr, len, self.time(cycles))
    }

    /// Writes a device register. False when nothing answers.
    pub(crate) fn store(&mut self, paddr: u64, len: u64, value: u64, cycles: u64) -> bool {
        if CLINT.contains(paddr, len) {
            self.store_clint(paddr - CLINT.base, len, value, cycles);
            return true;
        }
        self.devices.store(paddr, len, value, self.time(cycles))
    }

    fn store_clint(&mut self, offset: u64, len: u64, value: u64, cycles: u64) {
        self.set_time(cycles);
        self.clint.store(offset, len, value);
        if let Clock::Cycles { per_tick, base } = &mut self.clock {
            *base = self.clint.mtime.wrapping_sub(cycles / *per_tick);
        }
    }

    /// Whether there is RAM or a device at a physical address.
    pub(crate) fn takes_stores(&self, paddr: u64) -> bool {
        match self.memory.spot(paddr) {
            Some(spot) => spot.writable,
            None => CLINT.contains(paddr, 1) || self.devices.answers(paddr),
        }
    }

    /// Writes memory that may hold code or `tohost`. True when a hart must
    /// look up.
    pub(crate) fn note_store(&mut self, paddr: u64, frame: u32, len: u64) -> bool {
        let code = self.memory.note_store(frame, paddr, len);
        let calls = self.is_tohost(paddr, len);
        if calls {
            self.called = Some(len);
        }
        calls || code
    }

    /// Whether a hart must look up after such a store.
    pub(crate) fn minds_store(&self, paddr: u64, frame: u32, len: u64) -> bool {
        self.memory.holds_code(frame, paddr, len) || self.is_tohost(paddr, len)
    }

    fn is_tohost(&self, paddr: u64, len: u64) -> bool {
        // Neither may end past the address space.
        let touches = |at: u64| paddr.wrapping_sub(at) < 8 || at.wrapping_sub(paddr) < len;
        self.tohost.is_some_and(touches)
    }
}
