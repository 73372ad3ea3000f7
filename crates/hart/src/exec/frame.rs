//! What the interpreter holds while it runs: the hart, its registers, memory
//! at hand, and the effects for the observer.

use hartrace_flow::{Access, AccessKind, Mode, Observer, RegId, RegWrite, Wants};

use hartrace_isa::csr::FFLAGS;

use crate::access::Port;
use crate::bus::Bus;
use crate::changes::Collected;
use crate::code::Micro;
use crate::cpu::{Cpu, Exception, SINK, cause};
use crate::memory::{Memory, PAGE};
use crate::mmu::Tlb;
use crate::report::Report;
use crate::system::{self, Tried};
use crate::width::Width;

/// Whether changes are reported with many instructions at once.
pub(crate) const fn collects<O: Observer>() -> bool {
    O::WANTS.contains(Wants::CHANGES)
}

/// What only `exec` needs to know about the hart while it runs.
pub(crate) struct Frame<'a, O> {
    pub(crate) cpu: &'a mut Cpu,
    pub(crate) tlb: &'a mut Tlb,
    pub(crate) bus: &'a mut Bus,
    pub(crate) report: Report<'a, O>,
    /// What straight-line code changed, which is reported later.
    pub(crate) changes: &'a mut Collected,
    pub(crate) misaligned: bool,
    /// The integer registers.
    pub(super) x: &'a mut [u64; 256],
    /// The largest piece of RAM, borrowed from the bus, if loads and stores
    /// reach it as it is: without translation or protection. Otherwise empty.
    pub(super) ram: Vec<u8>,
    direct: bool,
    /// The address of its first byte.
    pub(super) base: u64,
}

impl<'a, O: Observer> Frame<'a, O> {
    /// The frame of a hart that goes on.
    #[inline]
    pub(super) fn new<W: Width>(
        cpu: &'a mut Cpu,
        tlb: &'a mut Tlb,
        bus: &'a mut Bus,
        (report, changes): (Report<'a, O>, &'a mut Collected),
        misaligned: bool,
        x: &'a mut [u64; 256],
    ) -> Frame<'a, O> {
        let direct = match cpu.data_mode() {
            Mode::M if cpu.pmp.is_open_to_machine() => bus.memory.main_ram(),
            _ => None,
        };
        // The last address of RV32 is followed by the first.
        let direct = direct.filter(|region| !W::RV32 || region.end() <= 1 << 32);
        let mut frame = Frame {
            cpu,
            tlb,
            bus,
            report,
            changes,
            misaligned,
            x,
            ram: Vec::new(),
            direct: direct.is_some(),
            base: direct.map_or(0, |region| region.base),
        };
        frame.exchange();
        frame
            .x
            .iter_mut()
            .zip(frame.cpu.x)
            .for_each(|(to, from)| *to = from);
        frame
    }

    /// Gives registers and memory back.
    #[inline]
    pub(super) fn finish(&mut self) {
        self.exchange();
        if let Some(x) = self.x.first_chunk() {
            self.cpu.x = *x;
        }
    }

    /// Does something with all of memory, devices too.
    pub(super) fn with_port<T>(&mut self, cycles: u64, act: impl FnOnce(&mut Port<'_>) -> T) -> T {
        self.exchange();
        let result = act(&mut Port {
            cpu: self.cpu,
            tlb: self.tlb,
            bus: self.bus,
            misaligned: self.misaligned,
            cycles,
        });
        self.exchange();
        result
    }

    /// Reports a register that the instruction wrote.
    #[inline(always)]
    pub(super) fn reg(&mut self, reg: RegId, value: u64) {
        if const { collects::<O>() } {
            let change = self.changes.current();
            if change.reg.is_none() {
                change.reg = Some(RegWrite { reg, value });
                return;
            }
            self.changes.widen(self.report.effects);
        }
        self.report.reg(reg, value);
    }

    /// Reports a CSR.
    #[inline(always)]
    pub(super) fn csr(&mut self, csr: u16, value: u64) {
        if const { collects::<O>() } {
            let change = self.changes.current();
            if csr == FFLAGS && change.fflags.is_none() {
                change.fflags = Some(value as u8);
                return;
            }
            self.changes.widen(self.report.effects);
        }
        self.report.csr(csr, value);
    }

    /// Reports an access.
    #[inline(always)]
    pub(super) fn access(&mut self, access: Access) {
        if const { collects::<O>() } {
            let change = self.changes.current();
            if change.access.is_none() {
                change.access = Some(access);
                return;
            }
            self.changes.widen(self.report.effects);
        }
        self.report.access(access);
    }

    /// The instruction has retired, and its piece will be reported later.
    #[inline(always)]
    pub(super) fn keep_changes(&mut self) {
        if const { collects::<O>() } {
            self.changes.keep(self.report.effects);
        }
    }

    /// Executes a CSR instruction, if that does not concern the whole hart.
    pub(super) fn try_csr(&mut self, op: &Micro, bits: u32, cycles: u64) -> Tried {
        system::try_csr(self.cpu, self.tlb, self.bus, self.x, op, bits, cycles)
    }

    /// Takes RAM from the bus, or gives it back.
    #[inline]
    fn exchange(&mut self) {
        if self.direct {
            self.bus.memory.swap_ram(&mut self.ram);
        }
    }

    /// Loads `N` bytes; inlined where memory is at hand.
    #[inline(always)]
    pub(super) fn load<const N: usize>(
        &mut self,
        addr: u64,
        cycles: u64,
    ) -> Result<u64, Exception> {
        let offset = addr.wrapping_sub(self.base) as usize;
        let (value, paddr) = if let Some(bytes) = self.ram.get(offset..offset.wrapping_add(N))
            && (addr.is_multiple_of(N as u64) || self.misaligned)
        {
            (value::<N>(bytes), addr)
        } else if let Some(value) = load_known::<N>(self.tlb, &self.bus.memory, addr) {
            (value, Tlb::slot(&self.tlb.load, addr).page + addr % PAGE)
        } else {
            self.load_slowly::<N>(addr, cycles)?
        };
        self.access(Access {
            kind: AccessKind::Load,
            size: N.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(value),
            operand: None,
        });
        Ok(value)
    }

    /// The value and its physical address.
    #[inline(never)]
    fn load_slowly<const N: usize>(
        &mut self,
        addr: u64,
        cycles: u64,
    ) -> Result<(u64, u64), Exception> {
        let done = self.with_port(cycles, |port| port.load(addr, N as u64))?;
        Ok((done.value, done.paddr))
    }

    /// Stores `N` bytes; true when the hart must look up.
    #[inline(always)]
    pub(super) fn store<const N: usize>(
        &mut self,
        addr: u64,
        value: u64,
        cycles: u64,
    ) -> Result<bool, Exception> {
        let offset = addr.wrapping_sub(self.base) as usize;
        let (event, paddr) = if let Some(bytes) = self.ram.get_mut(offset..offset.wrapping_add(N))
            && addr.is_multiple_of(N as u64)
            && !self.bus.memory.is_watched((offset as u64 / PAGE) as u32)
        {
            put::<N>(bytes, value);
            (false, addr)
        } else if store_known::<N>(self.tlb, &mut self.bus.memory, addr, value) {
            (false, Tlb::slot(&self.tlb.store, addr).page + addr % PAGE)
        } else {
            self.store_slowly::<N>(addr, value, cycles)?
        };
        self.access(Access {
            kind: AccessKind::Store,
            size: N.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(value & u64::MAX >> (64 - 8 * N)),
            operand: None,
        });
        Ok(event)
    }

    /// Whether the hart must look up, and the physical address.
    #[inline(never)]
    fn store_slowly<const N: usize>(
        &mut self,
        addr: u64,
        value: u64,
        cycles: u64,
    ) -> Result<(bool, u64), Exception> {
        let offset = addr.wrapping_sub(self.base) as usize;
        if let Some(bytes) = self.ram.get_mut(offset..offset.wrapping_add(N))
            && addr.is_multiple_of(N as u64)
        {
            // Memory at hand, in a page with code.
            put::<N>(bytes, value);
            let frame = (offset as u64 / PAGE) as u32;
            return Ok((self.bus.note_store(addr, frame, N as u64), addr));
        }
        let done = self.with_port(cycles, |port| port.store(addr, N as u64, value))?;
        Ok((done.event, done.paddr))
    }

    /// Writes an integer register.
    #[inline(always)]
    pub(super) fn set<W: Width>(&mut self, rd: u8, value: u64) {
        let value = W::register(value);
        // A byte cannot miss.
        #[allow(clippy::indexing_slicing)]
        {
            self.x[usize::from(rd)] = value;
        }
        if const { O::WANTS.contains(Wants::REGS) } && rd != SINK {
            self.reg(RegId::X(rd), W::unsigned(value));
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, register: u8) -> u64 {
        // A byte cannot miss.
        #[allow(clippy::indexing_slicing)]
        self.x[usize::from(register)]
    }
}

/// Loads from a page that is remembered: an aligned value, in one piece.
#[inline(always)]
fn load_known<const N: usize>(tlb: &Tlb, memory: &Memory, addr: u64) -> Option<u64> {
    let entry = Tlb::slot(&tlb.load, addr);
    if entry.tag != key::<N>(addr, tlb.data_context) {
        return None;
    }
    memory.at(entry.frame, addr, N).map(value::<N>)
}

/// Stores to a page that is remembered. False if it is not, and nothing has happened.
#[inline(always)]
fn store_known<const N: usize>(tlb: &Tlb, memory: &mut Memory, addr: u64, value: u64) -> bool {
    let entry = Tlb::slot(&tlb.store, addr);
    if entry.tag != key::<N>(addr, tlb.data_context) {
        return false;
    }
    match memory.at_mut(entry.frame, addr, N) {
        Some(bytes) => {
            put::<N>(bytes, value);
            true
        }
        None => false,
    }
}

/// An address as tags of remembered pages would have it if it is aligned.
#[inline(always)]
pub(super) fn key<const N: usize>(addr: u64, context: u64) -> u64 {
    addr & (!(PAGE - 1) | (N as u64 - 1)) | context
}

/// `N` bytes of memory as a number.
#[inline(always)]
pub(super) fn value<const N: usize>(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    if let Some(low) = wide.get_mut(..N)
        && bytes.len() == N
    {
        low.copy_from_slice(bytes);
    }
    u64::from_le_bytes(wide)
}

/// A number as `N` bytes of memory.
#[inline(always)]
fn put<const N: usize>(bytes: &mut [u8], value: u64) {
    if let Some(low) = value.to_le_bytes().get(..N)
        && bytes.len() == N
    {
        bytes.copy_from_slice(low);
    }
}

/// Why an instruction was not done.
pub(crate) enum Fault {
    /// It does not exist here, or not now.
    Illegal,
    Memory(Exception),
}

impl Fault {
    #[cold]
    pub(crate) fn exception(self, bits: u32) -> Exception {
        match self {
            Fault::Illegal => Exception {
                code: cause::ILLEGAL,
                tval: bits.into(),
            },
            Fault::Memory(exception) => exception,
        }
    }
}

impl From<Exception> for Fault {
    fn from(exception: Exception) -> Fault {
        Fault::Memory(exception)
    }
}
