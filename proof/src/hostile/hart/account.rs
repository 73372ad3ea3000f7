//! Checks that the reports of a machine are consistent: each step follows from
//! the previous one, and all writes together give the final state.

use std::collections::BTreeMap;

use hartrace_flow::{
    Access, AccessKind, Effects, Mode, Model, Place, RegId, Signal, Step, TrapStep,
};
use hartrace_hart::Machine;

use super::super::ensure;
use super::scene::Scene;

/// CSRs that change only when they are written, by their own name.
const STEADY: [u16; 32] = [
    0x001, 0x002, 0x105, 0x106, 0x140, 0x142, 0x143, 0x180, 0x300, 0x301, 0x302, 0x303, 0x304,
    0x305, 0x306, 0x30a, 0x31a, 0x320, 0x340, 0x342, 0x343, 0x3a0, 0x3a2, 0x3b0, 0x3b1, 0x3b2,
    0x3b3, 0x3b4, 0x5a8, 0x7a8, 0x141, 0x341,
];

/// What the steps say the machine looks like.
pub(super) struct Account<'a> {
    scene: &'a Scene,
    known: BTreeMap<Place, u64>,
    /// Bytes of RAM that were stored.
    stored: BTreeMap<u64, u8>,
    pc: u64,
    mode: Mode,
    time: u64,
    /// Page tables may have changed, or others may be used.
    tables_kept: bool,
    /// There may be translation.
    paged: bool,
    /// Memory is written by others, or in places not told.
    memory_told: bool,
}

impl<'a> Account<'a> {
    pub(super) fn new(machine: &Machine, scene: &'a Scene) -> Account<'a> {
        let registers = (0..32).flat_map(|n| [RegId::X(n), RegId::F(n)]);
        let csrs = STEADY.iter().map(|&csr| Place::Csr(csr));
        let places = registers.map(Place::Reg).chain(csrs);
        let known = places
            .filter_map(|place| Some((place, machine.read(place).ok()?)))
            .collect();
        let get = |place| machine.read(place).unwrap_or(0);
        Account {
            scene,
            known,
            stored: BTreeMap::new(),
            pc: get(Place::Pc),
            mode: Mode::from_code(get(Place::Mode) as u8).unwrap_or_default(),
            time: 0,
            tables_kept: !scene.wild,
            paged: get(Place::Csr(0x180)) != 0,
            memory_told: scene.tohost().is_none() && !scene.config.update_ad,
        }
    }

    pub(super) fn replay(&mut self, steps: &[(Step, Effects)]) -> Result<(), String> {
        for (step, effects) in steps {
            self.follow(step, effects)
                .map_err(|what| format!("{what}: {step:x?} with {effects:x?}"))?;
        }
        Ok(())
    }

    fn follow(&mut self, step: &Step, effects: &Effects) -> Result<(), String> {
        ensure(!effects.incomplete, || "incomplete".into())?;
        match step {
            Step::Insn(insn) => {
                self.is_here(insn.pc, insn.mode, insn.time)?;
                self.pc = insn.next;
                self.memory_told &= insn.next == self.pc;
            }
            Step::Trap(TrapStep {
                trap, mode, time, ..
            }) => {
                self.is_here(trap.epc.ok_or("no epc")?, *mode, *time)?;
                self.pc = trap.handler.ok_or("no handler")?;
                ensure(
                    effects.regs.is_empty() && effects.accesses.is_empty(),
                    || "a trap did more".into(),
                )?;
            }
            Step::Signal(Signal::Halted) => {
                // The host is called: it may write memory.
                self.pc = self.scene.isa.xlen().wrap(self.pc.wrapping_add(4));
                self.memory_told = false;
            }
            Step::Signal(_) => {}
        }
        self.mode = effects.mode.unwrap_or(self.mode);
        for write in effects.regs.iter() {
            ensure(write.reg != RegId::X(0), || "x0 is written".into())?;
            self.known.insert(Place::Reg(write.reg), write.value);
        }
        for write in effects.csrs.iter() {
            let place = Place::Csr(write.csr);
            if write.csr == 0x180 && self.known.get(&place) != Some(&write.value) {
                self.tables_kept = false;
                self.paged = true;
            }
            if matches!(write.csr, 0x30a | 0x31a) && write.value != 0 {
                self.memory_told = false;
            }
            if let Some(known) = self.known.get_mut(&place) {
                *known = write.value;
            }
        }
        effects.accesses.iter().try_for_each(|a| self.access(a))
    }

    fn is_here(&mut self, pc: u64, mode: Mode, time: u64) -> Result<(), String> {
        ensure(pc == self.pc, || format!("comes after {:#x}", self.pc))?;
        ensure(mode == self.mode, || format!("comes after {:?}", self.mode))?;
        ensure(time >= self.time, || format!("comes after {}", self.time))?;
        self.time = time;
        Ok(())
    }

    fn access(&mut self, access: &Access) -> Result<(), String> {
        let (paddr, size) = (access.paddr.ok_or("no address")?, 1u64 << access.size);
        let data = access.data.ok_or("no data")?;
        ensure(size == 8 || data >> (8 * size) == 0, || "wide data".into())?;
        // Where the second half went is not reported.
        let crosses = paddr % 4096 + size > 4096;
        if access.kind == AccessKind::Load || access.kind == AccessKind::ConditionalStoreFailure {
            let old = access.data.filter(|_| access.kind == AccessKind::Load);
            return if crosses {
                Ok(())
            } else {
                self.check(paddr, size, old)
            };
        }
        self.check(paddr, size, access.operand)?;
        let (tables, len) = self.scene.tables;
        // Which are also where a table of another size would be.
        if paddr.wrapping_sub(tables).wrapping_add(8) < len + 16 || crosses {
            self.tables_kept = false;
        }
        self.memory_told &= !crosses;
        for i in 0..size {
            let at = paddr.wrapping_add(i);
            if self.scene.config.memory.iter().any(|r| r.contains(at, 1)) {
                self.stored.insert(at, (data >> (8 * i)) as u8);
            }
        }
        Ok(())
    }

    /// Whether what was read is what was stored before.
    fn check(&self, paddr: u64, size: u64, value: Option<u64>) -> Result<(), String> {
        let Some(value) = value.filter(|_| self.memory_told) else {
            return Ok(());
        };
        for i in 0..size {
            let byte = (value >> (8 * i)) as u8;
            let stored = self.stored.get(&paddr.wrapping_add(i));
            ensure(stored.is_none_or(|&s| s == byte), || {
                format!("byte {i} read was {stored:x?}")
            })?;
        }
        Ok(())
    }

    /// Whether the machine is as was reported.
    pub(super) fn compare(&self, machine: &Machine) -> Result<(), String> {
        let same = |place: Place, told: u64| {
            let there = machine.read(place).map_err(|e| e.to_string())?;
            // What mepc and sepc show depends on `misa`.
            let mask = match place {
                Place::Csr(0x141 | 0x341) => !2,
                _ => !0,
            };
            ensure(there & mask == told & mask, || {
                format!("told {told:#x}, there is {there:#x} at {place:x?}")
            })
        };
        same(Place::Pc, self.pc)?;
        same(Place::Mode, self.mode.code().into())?;
        for (&place, &told) in &self.known {
            same(place, told)?;
        }
        for (&addr, &byte) in self.stored.iter().filter(|_| self.memory_told) {
            same(Place::Memory { addr, size: 1 }, byte.into())?;
        }
        Ok(())
    }

    /// Whether nothing was stored where page tables are, so that remembered
    /// translations cannot be seen.
    pub(super) fn keeps_tables(&self) -> bool {
        !self.paged || self.tables_kept && !self.scene.config.update_ad
    }
}
