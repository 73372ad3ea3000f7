//! Load-reserved, store-conditional and atomic memory operations.

use hartrace_flow::{Access, AccessKind, Observer};
use hartrace_isa::Op;

use crate::access::Port;
use crate::code::Micro;
use crate::cpu::{Exception, cause};
use crate::exec::{Fault, Frame};
use crate::mmu::Use;
use crate::width::Width;

/// The operation of an atomic and the size of its operand in bytes.
fn operation(op: Op) -> Option<(AccessKind, bool, u64)> {
    use AccessKind::*;
    use Op::*;
    // The second value distinguishes signed minima and maxima from unsigned ones.
    Some(match op {
        AmoswapW => (AtomicSwap, false, 4),
        AmoaddW => (AtomicAdd, false, 4),
        AmoxorW => (AtomicXor, false, 4),
        AmoandW => (AtomicAnd, false, 4),
        AmoorW => (AtomicOr, false, 4),
        AmominW => (AtomicMin, true, 4),
        AmomaxW => (AtomicMax, true, 4),
        AmominuW => (AtomicMin, false, 4),
        AmomaxuW => (AtomicMax, false, 4),
        AmoswapD => (AtomicSwap, false, 8),
        AmoaddD => (AtomicAdd, false, 8),
        AmoxorD => (AtomicXor, false, 8),
        AmoandD => (AtomicAnd, false, 8),
        AmoorD => (AtomicOr, false, 8),
        AmominD => (AtomicMin, true, 8),
        AmomaxD => (AtomicMax, true, 8),
        AmominuD => (AtomicMin, false, 8),
        AmomaxuD => (AtomicMax, false, 8),
        _ => return None,
    })
}

/// What an atomic stores, both operands sign-extended.
fn combine(kind: AccessKind, signed: bool, old: u64, operand: u64) -> u64 {
    let less = if signed {
        (old as i64) < operand as i64
    } else {
        old < operand
    };
    match kind {
        AccessKind::AtomicAdd => old.wrapping_add(operand),
        AccessKind::AtomicXor => old ^ operand,
        AccessKind::AtomicAnd => old & operand,
        AccessKind::AtomicOr => old | operand,
        AccessKind::AtomicMin if less => old,
        AccessKind::AtomicMax if !less => old,
        _ => operand,
    }
}

fn extend(value: u64, len: u64) -> u64 {
    if len == 4 { value as i32 as u64 } else { value }
}

impl Port<'_> {
    /// Refuses misaligned atomics: with the exception of ordinary accesses
    /// where those trap, otherwise with an access fault.
    fn require_alignment(&self, addr: u64, len: u64, what: Use) -> Result<(), Exception> {
        if addr & (len - 1) == 0 {
            return Ok(());
        }
        Err(match (self.misaligned, what) {
            (true, _) => what.access_fault(addr),
            (false, Use::Load) => Exception {
                code: cause::LOAD_MISALIGNED,
                tval: addr,
            },
            (false, _) => Exception {
                code: cause::STORE_MISALIGNED,
                tval: addr,
            },
        })
    }

    /// Whether reservations exist at a physical address: RAM only.
    fn is_reservable(&self, paddr: u64) -> bool {
        self.bus
            .memory
            .spot(paddr)
            .is_some_and(|spot| spot.writable)
    }
}

impl<O: Observer> Frame<'_, O> {
    /// An atomic; true when the hart must look up.
    pub(crate) fn atomic<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<bool, Fault> {
        let addr = W::unsigned(self.get(op.rs1));
        match op.op {
            Op::LrW => self.load_reserved::<W>(op, addr, 4, cycles),
            Op::LrD => self.load_reserved::<W>(op, addr, 8, cycles),
            Op::ScW => self.store_conditional::<W>(op, addr, 4, cycles),
            Op::ScD => self.store_conditional::<W>(op, addr, 8, cycles),
            _ => self.read_modify_write::<W>(op, addr, cycles),
        }
    }

    fn load_reserved<W: Width>(
        &mut self,
        op: &Micro,
        addr: u64,
        len: u64,
        cycles: u64,
    ) -> Result<bool, Fault> {
        let fault = Use::Load.access_fault(addr);
        let (paddr, value) = self.with_port(cycles, |port| {
            port.require_alignment(addr, len, Use::Load)?;
            let paddr = port.find(addr, len, Use::Load)?;
            if !port.is_reservable(paddr) {
                return Err(fault);
            }
            Ok((paddr, port.read(paddr, len).ok_or(fault)?))
        })?;
        self.cpu.reservation = Some(paddr);
        self.report.access(Access {
            kind: AccessKind::Load,
            size: len.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(value),
            operand: None,
        });
        self.set::<W>(op.rd, extend(value, len));
        Ok(false)
    }

    fn store_conditional<W: Width>(
        &mut self,
        op: &Micro,
        addr: u64,
        len: u64,
        cycles: u64,
    ) -> Result<bool, Fault> {
        let value = self.get(op.rs2);
        let reservation = self.cpu.reservation;
        let fault = Use::Store.access_fault(addr);
        let (paddr, success, event) = self.with_port(cycles, |port| {
            port.require_alignment(addr, len, Use::Store)?;
            // Only a store that is done needs the rights to all of its bytes.
            let paddr = port.find(addr, 1, Use::Store)?;
            if !port.is_reservable(paddr) {
                return Err(fault);
            }
            let success = reservation == Some(paddr);
            if success {
                port.find(addr, len, Use::Store)?;
            }
            let event = success && port.write(paddr, len, value).ok_or(fault)?;
            Ok((paddr, success, event))
        })?;
        self.cpu.reservation = None;
        let mask = u64::MAX >> (64 - 8 * len);
        self.report.access(Access {
            kind: if success {
                AccessKind::Store
            } else {
                AccessKind::ConditionalStoreFailure
            },
            size: len.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(value & mask),
            operand: None,
        });
        self.set::<W>(op.rd, (!success).into());
        Ok(event)
    }

    fn read_modify_write<W: Width>(
        &mut self,
        op: &Micro,
        addr: u64,
        cycles: u64,
    ) -> Result<bool, Fault> {
        let (kind, signed, len) = operation(op.op).ok_or(Fault::Illegal)?;
        let operand = extend(self.get(op.rs2), len);
        let fault = Use::Store.access_fault(addr);
        let (paddr, old, new, event) = self.with_port(cycles, |port| {
            port.require_alignment(addr, len, Use::Store)?;
            let paddr = port.find(addr, len, Use::Store)?;
            let old = port.read(paddr, len).ok_or(fault)?;
            let new = combine(kind, signed, extend(old, len), operand);
            let event = port.write(paddr, len, new).ok_or(fault)?;
            Ok::<_, Exception>((paddr, old, new, event))
        })?;
        self.report.access(Access {
            kind,
            size: len.trailing_zeros() as u8,
            addr,
            paddr: Some(paddr),
            data: Some(new & u64::MAX >> (64 - 8 * len)),
            operand: Some(old),
        });
        self.set::<W>(op.rd, extend(old, len));
        Ok(event)
    }
}
