//! Instructions for small code: `cm.push`, `cm.pop` and their kin (Zcmp), and jumps
//! through a table (Zcmt).
//!
//! An instruction that traps has changed nothing: registers are written when all loads
//! are done, and nothing is stored before all stores are known to be possible. Spike
//! leaves what it has done up to the fault.

use hartrace_flow::Observer;
use hartrace_isa::Op;

use crate::code::Micro;
use crate::exec::{Fault, Frame};
use crate::mmu::{self, Use};
use crate::width::Width;

const RA: u8 = 1;
const SP: u8 = 2;
const A0: u8 = 10;
const A1: u8 = 11;

/// Registers of the lists, in the order in which lists grow.
const SAVED: [u8; 13] = [RA, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// The registers of a list, 4 to 15, which has no place for one that ends with s10.
fn listed(list: u8) -> &'static [u8] {
    let count = match list {
        15 => SAVED.len(),
        _ => usize::from(list.saturating_sub(3)),
    };
    SAVED.get(..count).unwrap_or_default()
}

impl<O: Observer> Frame<'_, O> {
    /// Instructions that are neither computation nor plain accesses, jumps aside. True
    /// when the hart must look up.
    #[inline(never)]
    pub(super) fn rare<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<bool, Fault> {
        match op.op {
            Op::CmPush => self.push::<W>(op, cycles),
            Op::CmPop => self.pop::<W>(op, cycles).map(|()| false),
            Op::CmMvsa01 => {
                let (first, second) = (self.get(A0), self.get(A1));
                self.set::<W>(op.rs1, first);
                self.set::<W>(op.rs2, second);
                Ok(false)
            }
            Op::CmMva01s => {
                let (first, second) = (self.get(op.rs1), self.get(op.rs2));
                self.set::<W>(A0, first);
                self.set::<W>(A1, second);
                Ok(false)
            }
            Op::CboInval | Op::CboClean | Op::CboFlush | Op::CboZero => {
                self.cache_block::<W>(op, cycles)
            }
            _ => self.atomic::<W>(op, cycles),
        }
    }

    /// The addresses below `top` for so many registers, from the highest on.
    fn slots<W: Width>(top: u64, count: usize) -> impl Iterator<Item = u64> + Clone {
        let bytes = u64::from(W::BITS / 8);
        (1..=count as u64).map(move |slot| W::unsigned(top.wrapping_sub(bytes * slot)))
    }

    /// `cm.push`: stores the registers of a list below sp and moves sp.
    fn push<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<bool, Fault> {
        let registers = listed(op.rs1);
        let sp = self.get(SP);
        let slots = Self::slots::<W>(sp, registers.len());
        let reported = self.report.accesses.len();
        if !self.bus.as_spike {
            self.with_port(cycles, |port| {
                let mut slots = slots.clone();
                slots.try_for_each(|addr| port.require_store(addr, u64::from(W::BITS / 8)))
            })?;
        }
        let mut event = false;
        for (&register, addr) in registers.iter().rev().zip(slots) {
            let value = self.get(register);
            let stored = match W::RV32 {
                true => self.store::<4>(addr, value, cycles),
                false => self.store::<8>(addr, value, cycles),
            };
            event |= stored.inspect_err(|_| self.report.accesses.truncate(reported))?;
        }
        self.set::<W>(SP, sp.wrapping_add(op.imm as u64));
        Ok(event)
    }

    /// `cm.pop`: loads the registers of a list from above sp and moves sp.
    fn pop<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<(), Fault> {
        let registers = listed(op.rs1);
        let sp = self.get(SP).wrapping_add(op.imm as u64);
        let reported = self.report.accesses.len();
        let mut values = [0; SAVED.len()];
        let mut fault = None;
        let mut loaded = 0;
        for (value, addr) in values.iter_mut().zip(Self::slots::<W>(sp, registers.len())) {
            let result = match W::RV32 {
                true => self.load::<4>(addr, cycles),
                false => self.load::<8>(addr, cycles),
            };
            match result {
                Ok(word) => *value = word,
                Err(exception) => {
                    fault = Some(exception);
                    break;
                }
            }
            loaded += 1;
        }
        if fault.is_none() || self.bus.as_spike {
            for (&register, value) in registers.iter().rev().zip(values).take(loaded) {
                self.set::<W>(register, value);
            }
        }
        if let Some(exception) = fault {
            self.report.accesses.truncate(reported);
            return Err(exception.into());
        }
        self.set::<W>(SP, sp);
        Ok(())
    }

    /// `cm.popret` and `cm.popretz`: where they return to.
    #[inline(never)]
    pub(super) fn pop_return<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<u64, Fault> {
        self.pop::<W>(op, cycles)?;
        if op.op == Op::CmPopretz {
            self.set::<W>(A0, 0);
        }
        Ok(W::unsigned(self.get(RA)) & !1)
    }

    /// `cm.jt` and `cm.jalt`: where the entry of the table leads. Entries are fetched as
    /// instructions are.
    #[inline(never)]
    pub(super) fn table_jump<W: Width>(
        &mut self,
        op: &Micro,
        next: u64,
        cycles: u64,
    ) -> Result<u64, Fault> {
        let table = self.cpu.jump_table().ok_or(Fault::Illegal)?;
        let len = u64::from(W::BITS / 8);
        let addr = W::unsigned(table.wrapping_add(op.imm as u64 * len));
        let entry = self.with_port(cycles, |port| {
            let paddr = match port.tlb.known(Use::Fetch, addr) {
                Some(paddr) => paddr,
                None => mmu::translate(port.cpu, port.bus, addr, len, Use::Fetch)?,
            };
            let code = port.bus.as_spike || port.bus.memory.spot(paddr).is_some();
            let entry = code.then(|| port.read(paddr, len)).flatten();
            entry.ok_or(Use::Fetch.access_fault(addr))
        })?;
        if op.op == Op::CmJalt {
            self.set::<W>(RA, next);
        }
        Ok(W::unsigned(entry) & !1)
    }
}
