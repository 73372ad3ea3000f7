//! State reconstructed from reported effects only.

use std::collections::BTreeMap;

use hartrace_flow::{Access, AccessKind, Effects, Model, Place, RegId, Step};
use hartrace_hart::{Machine, Region};

const PAGE: u64 = 4096;

/// CSRs nobody tells of: counters and time run by themselves, and so do
/// pending interrupts.
fn is_free_running(csr: u16) -> bool {
    matches!(csr, 0x144 | 0x344) || matches!(csr & !0x80, 0xb00 | 0xb02 | 0xc00..=0xc02)
}

/// CSRs that show bits of others: sstatus, sie, fcsr.
fn is_view(csr: u16) -> bool {
    matches!(csr, 0x003 | 0x100 | 0x104)
}

/// The bits of a CSR that change by telling only. Of an exception pc, bit 1
/// comes and goes with compressed instructions (privileged architecture,
/// 3.1.14: it is masked when it is read). What is seen of triggers depends on the one that
/// is selected, and their counts and hits run by themselves.
fn reported_bits(place: Place) -> u64 {
    match place {
        Place::Csr(0x141 | 0x341) => !2,
        Place::Csr(0x7a1..=0x7a3) => 0,
        _ => !0,
    }
}

/// The state.
pub(super) struct Shadow {
    pc: u64,
    mode: u64,
    x: [u64; 32],
    f: [u64; 32],
    csrs: Vec<(u16, u64)>,
    ram: Region,
    pages: BTreeMap<u64, Vec<u8>>,
    /// A store crossed pages that may lie anywhere: memory is not known any
    /// more.
    blind: bool,
}

impl Shadow {
    /// The state a machine starts with.
    pub(super) fn new(machine: &Machine, ram: Region) -> Shadow {
        let read = |place| machine.read(place).unwrap_or(0);
        let mut csrs = Vec::new();
        machine.csrs(&mut |csr, value| {
            if !is_free_running(csr) && !is_view(csr) {
                csrs.push((csr, value));
            }
        });
        let mut shadow = Shadow {
            pc: read(Place::Pc),
            mode: read(Place::Mode),
            x: core::array::from_fn(|n| read(Place::Reg(RegId::X(n as u8)))),
            f: core::array::from_fn(|n| read(Place::Reg(RegId::F(n as u8)))),
            csrs,
            ram,
            pages: BTreeMap::new(),
            blind: false,
        };
        machine.memory(&mut |addr, bytes| shadow.store(addr, bytes));
        shadow
    }

    /// Puts bytes into memory, as far as they are in RAM.
    pub(super) fn store(&mut self, addr: u64, bytes: &[u8]) {
        for (addr, &byte) in (addr..).zip(bytes) {
            if self.ram.contains(addr, 1) {
                let page = self.pages.entry(addr / PAGE);
                let page = page.or_insert_with(|| vec![0; PAGE as usize]);
                if let Some(to) = page.get_mut((addr % PAGE) as usize) {
                    *to = byte;
                }
            }
        }
    }

    fn load(&self, addr: u64) -> u8 {
        let page = self.pages.get(&(addr / PAGE));
        let byte = page.and_then(|page| page.get((addr % PAGE) as usize));
        byte.copied().unwrap_or(0)
    }

    /// Changes what a step says it changed.
    pub(super) fn follow(&mut self, step: &Step, effects: &Effects) -> Result<(), String> {
        if effects.incomplete {
            return Err("there was no room for everything".to_owned());
        }
        self.pc = match step {
            Step::Insn(insn) => insn.next,
            Step::Trap(trap) => trap.trap.handler.ok_or("no handler")?,
            Step::Signal(_) => return Err("no step".to_owned()),
        };
        for write in effects.regs.iter() {
            let (bank, number) = match write.reg {
                RegId::X(0) => return Err("x0 was written".to_owned()),
                RegId::X(number) => (&mut self.x, number),
                RegId::F(number) => (&mut self.f, number),
            };
            let register = bank.get_mut(usize::from(number));
            *register.ok_or("no such register")? = write.value;
        }
        for write in effects.csrs.iter() {
            if is_free_running(write.csr) {
                continue;
            }
            let known = self.csrs.iter_mut().find(|(csr, _)| *csr == write.csr);
            known
                .ok_or(format!("csr {:#x} does not exist", write.csr))?
                .1 = write.value;
        }
        self.mode = effects.mode.map_or(self.mode, |mode| mode.code().into());
        effects.accesses.iter().try_for_each(|a| self.access(a))
    }

    /// Memory is as an access says, and will be.
    fn access(&mut self, access: &Access) -> Result<(), String> {
        let (Some(paddr), Some(data)) = (access.paddr, access.data) else {
            return Err(format!("{access:x?} is not whole"));
        };
        let size = 1u64 << access.size;
        let crosses = paddr % PAGE + size > PAGE;
        if crosses && paddr != access.addr {
            self.blind |= access.kind != AccessKind::Load;
            return Ok(());
        }
        let bytes = data.to_le_bytes();
        let part = bytes.get(..size as usize).unwrap_or_default();
        let read = match access.kind {
            AccessKind::Load => Some(data),
            AccessKind::Store | AccessKind::ConditionalStoreFailure => None,
            _ => Some(access.operand.ok_or("an atomic without what it read")?),
        };
        if let Some(read) = read.filter(|_| self.ram.contains(paddr, size) && !self.blind) {
            let same = (0..size).all(|i| self.load(paddr + i) == (read >> (8 * i)) as u8);
            same.then_some(())
                .ok_or(format!("{access:x?} read something else"))?;
        }
        if !matches!(
            access.kind,
            AccessKind::Load | AccessKind::ConditionalStoreFailure
        ) {
            self.store(paddr, part);
        }
        Ok(())
    }

    /// Registers and CSRs are as reported.
    pub(super) fn compare(&self, machine: &Machine) -> Result<(), String> {
        let registers = (0..32u8).flat_map(|n| {
            let number = usize::from(n);
            let of = |bank: &[u64; 32]| bank.get(number).copied().unwrap_or(0);
            [(RegId::X(n), of(&self.x)), (RegId::F(n), of(&self.f))]
        });
        let registers = registers.map(|(reg, value)| (Place::Reg(reg), value));
        let csrs = self
            .csrs
            .iter()
            .map(|&(csr, value)| (Place::Csr(csr), value));
        let others = [(Place::Pc, self.pc), (Place::Mode, self.mode)];
        for (place, value) in others.into_iter().chain(registers).chain(csrs) {
            let now = machine.read(place).map_err(|e| e.to_string())?;
            if (now ^ value) & reported_bits(place) != 0 {
                return Err(format!("{place:x?} is {now:#x}, not {value:#x}"));
            }
        }
        Ok(())
    }

    /// Memory is as reported.
    pub(super) fn compare_memory(&self, machine: &Machine) -> Result<(), String> {
        let mut now = BTreeMap::new();
        machine.memory(&mut |addr, bytes| {
            for (page, bytes) in (addr / PAGE..).zip(bytes.chunks(PAGE as usize)) {
                if self.ram.contains(page * PAGE, 1) {
                    now.insert(page, bytes.to_vec());
                }
            }
        });
        let used = |page: &&Vec<u8>| page.iter().any(|&byte| byte != 0);
        let known = self.pages.iter().filter(|(_, page)| used(page));
        if self.blind || now.iter().eq(known) {
            Ok(())
        } else {
            Err("memory was changed without a word".to_owned())
        }
    }
}
