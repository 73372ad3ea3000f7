//! The machine and its host: calls through `tohost`, semihosting, devices.

use hartrace_flow::{Access, AccessKind, Effects, HartId, Observer, RegId, Signal, Step, Wants};
use hartrace_isa::Op;

use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::devices::Finish;
use crate::host::semihosting::Outcome;
use crate::host::{GuestMemory, Note};
use crate::machine::{Machine, Stop};
use crate::memory::Memory;
use crate::mmu::{Use, translate};
use crate::report::Report;

/// Instructions between two looks at the host where stores to `tohost` are
/// noticed by themselves: for answers that wait.
const GLANCE: u64 = 10_000;

/// Instructions between the halves of `tohost` when RV32 writes it as two.
pub(super) const HALVES: u64 = 16;

impl Machine {
    /// Looks at the host when it is time to.
    pub(super) fn look_outside<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        if self.instructions() < self.glance {
            return None;
        }
        self.serve_devices(observer);
        // What has stopped stays so: the next look is at once.
        let mut stop = self.finished(observer).or_else(|| self.poll_host(observer));
        if stop.is_none() && self.turns.is_alone() {
            stop = self.find_spin();
        }
        if stop.is_none() {
            self.glance = self.instructions() + GLANCE;
        }
        stop
    }

    /// The end that a program has asked its device for. A program that starts again
    /// would only do the same again; a system has disks, and users who expect it.
    fn finished<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        match self.bus.devices.finish? {
            Finish::Exit(code) => Some(Stop::Exit(code)),
            Finish::Reset if self.is_system() && self.config.reboot => {
                self.reboot(observer);
                None
            }
            Finish::Reset => {
                self.host.note(Note::Reset);
                Some(Stop::Exit(0))
            }
        }
    }

    pub(super) fn poll_host<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        let tohost = self.bus.tohost?;
        let mut memory = Physical {
            memory: &mut self.bus.memory,
            written: Written::new::<O>(),
        };
        let code = self
            .htif
            .poll(&mut self.host, &mut memory, tohost, self.fromhost);
        let written = memory.written;
        self.forget_stale();
        self.tell_written(&written, observer);
        code.map(Stop::Exit)
    }

    /// Reports what the host has written to the program's memory.
    pub(super) fn tell_written<O: Observer>(&mut self, written: &Written, observer: &mut O) {
        let hart = &mut self.hart;
        let Some(pieces) = written.0.as_deref().filter(|pieces| !pieces.is_empty()) else {
            return;
        };
        hart.effects.clear();
        let id = HartId(hart.cpu.id);
        let update = Step::Signal(Signal::Update);
        let mut tell = |effects: &mut Effects| {
            if !O::WANTS.contains(Wants::ACCESSES) {
                effects.accesses.clear();
            }
            observer.step(id, &update, effects);
            effects.clear();
        };
        for access in pieces.iter().flat_map(|(addr, data)| accesses(*addr, data)) {
            if hart.effects.accesses.push(access).is_err() {
                tell(&mut hart.effects);
                // There is room again.
                let _ = hart.effects.accesses.push(access);
            }
        }
        tell(&mut hart.effects);
    }

    /// Whether the system instruction at pc is a semihosting call to be served.
    pub(super) fn calls_host(&mut self, op: Op) -> bool {
        op == Op::Ebreak && self.config.semihosting && self.is_semihosting_call()
    }

    /// Whether the `ebreak` at pc is the middle of the three instructions that
    /// call the host (RISC-V semihosting, 2.1).
    pub(super) fn is_semihosting_call(&mut self) -> bool {
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
    /// would do: the hart halts at the `ebreak` and resumes after it.
    pub(super) fn semihosting_call<O: Observer>(&mut self, observer: &mut O) -> Option<Stop> {
        let xlen = self.hart.cpu.xlen();
        let (operation, param) = (self.hart.cpu.read_x(10), self.hart.cpu.read_x(11));
        self.bus.set_time(self.hart.cpu.cycles);
        let time = self.bus.clint.mtime;
        let mut memory = Virtual {
            cpu: &self.hart.cpu,
            bus: &mut self.bus,
            written: Written::new::<O>(),
        };
        let outcome =
            self.semihosting
                .call(&mut self.host, xlen, operation, param, time, &mut memory);
        let result = match outcome {
            Outcome::Return(result) => result,
            Outcome::Exit(code) => return Some(Stop::Exit(code)),
        };
        let written = memory.written;
        self.settle();
        self.tell_written(&written, observer);
        let hart = &mut self.hart;
        hart.effects.clear();
        hart.cpu.write_x(10, result);
        hart.cpu.pc = xlen.wrap(hart.cpu.pc.wrapping_add(4));
        if O::WANTS.contains(Wants::EVENTS) {
            let id = HartId(hart.cpu.id);
            let mut report = Report {
                effects: &mut hart.effects,
                accesses: &mut hart.accesses,
                observer,
            };
            report.reg(RegId::X(10), result);
            observer.step(id, &Step::Signal(Signal::Halted), &hart.effects);
            hart.effects.clear();
            observer.step(id, &Step::Signal(Signal::Resumed), &hart.effects);
        }
        None
    }
}

/// What the host has written, by physical address, if the observer wants it.
pub(super) struct Written(Option<Vec<(u64, Vec<u8>)>>);

impl Written {
    pub(super) fn new<O: Observer>() -> Written {
        Written(O::WANTS.contains(Wants::EVENTS).then(Vec::new))
    }

    fn note(&mut self, address: u64, data: &[u8]) {
        if let Some(pieces) = &mut self.0 {
            pieces.push((address, data.to_vec()));
        }
    }
}

/// Stores of the largest aligned sizes that make up some bytes.
fn accesses(addr: u64, data: &[u8]) -> impl Iterator<Item = Access> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let addr = addr.wrapping_add(at as u64);
        let left = data.len() - at;
        let size = (0..=3u8)
            .rev()
            .find(|size| left >> size != 0 && addr.is_multiple_of(1 << size))
            .filter(|_| left > 0)?;
        let part = data.get(at..at + (1 << size))?;
        at += part.len();
        let value = part.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
        Some(Access {
            kind: AccessKind::Store,
            size,
            addr,
            paddr: Some(addr),
            data: Some(value),
            operand: None,
        })
    })
}

/// Memory by physical address, for the host-target interface and for devices.
pub(super) struct Physical<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) written: Written,
}

impl GuestMemory for Physical<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.memory.read(address, buffer)
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let wrote = self.memory.write(address, data);
        if wrote {
            self.written.note(address, data);
        }
        wrote
    }
}

/// Memory as the program's loads and stores see it, for semihosting.
struct Virtual<'a> {
    cpu: &'a Cpu,
    bus: &'a mut Bus,
    written: Written,
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
            self.written.note(paddr, now);
            (at, rest) = (at.wrapping_add(len as u64), later);
        }
        true
    }
}
