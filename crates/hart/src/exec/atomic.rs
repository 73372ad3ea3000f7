//! Load-reserved, store-conditional and atomic memory operations: A, Zabha and Zacas.

use hartrace_flow::{Access, AccessKind, Observer};
use hartrace_isa::Op;

use crate::access::Port;
use crate::code::Micro;
use crate::cpu::{Exception, SINK, cause};
use crate::exec::{Fault, Frame};
use crate::mmu::Use;
use crate::width::Width;

/// Which operation each of the read-modify-write instructions is: its kind, whether a
/// minimum or maximum is one of signed numbers, and the instructions for bytes,
/// halfwords, words and doublewords.
macro_rules! operations {
    ($op:expr; $($kind:ident $signed:literal $b:ident $h:ident $w:ident $d:ident;)+) => {
        match $op {
            $(
                Op::$b => (AccessKind::$kind, $signed, 1),
                Op::$h => (AccessKind::$kind, $signed, 2),
                Op::$w => (AccessKind::$kind, $signed, 4),
                Op::$d => (AccessKind::$kind, $signed, 8),
            )+
            _ => return None,
        }
    };
}

/// The operation of an atomic and the size of its operand in bytes.
fn operation(op: Op) -> Option<(AccessKind, bool, u64)> {
    Some(operations! { op;
        AtomicSwap false AmoswapB AmoswapH AmoswapW AmoswapD;
        AtomicAdd false AmoaddB AmoaddH AmoaddW AmoaddD;
        AtomicXor false AmoxorB AmoxorH AmoxorW AmoxorD;
        AtomicAnd false AmoandB AmoandH AmoandW AmoandD;
        AtomicOr false AmoorB AmoorH AmoorW AmoorD;
        AtomicMin true AmominB AmominH AmominW AmominD;
        AtomicMax true AmomaxB AmomaxH AmomaxW AmomaxD;
        AtomicMin false AmominuB AmominuH AmominuW AmominuD;
        AtomicMax false AmomaxuB AmomaxuH AmomaxuW AmomaxuD;
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

/// So many bytes as a register holds them: sign-extended.
fn extend(value: u64, len: u64) -> u64 {
    match len {
        1 => value as i8 as u64,
        2 => value as i16 as u64,
        4 => value as i32 as u64,
        _ => value,
    }
}

/// The bits of so many bytes, up to 16.
const fn mask(len: u64) -> u128 {
    u128::MAX >> (128 - 8 * len)
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
    pub(super) fn is_reservable(&self, paddr: u64) -> bool {
        self.bus
            .memory
            .spot(paddr)
            .is_some_and(|spot| spot.writable)
    }
}

impl<O: Observer> Frame<'_, O> {
    /// An atomic; true when the hart must look up.
    pub(super) fn atomic<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<bool, Fault> {
        let addr = W::unsigned(self.get(op.rs1));
        match op.op {
            Op::LrW => self.load_reserved::<W>(op, addr, 4, cycles),
            Op::LrD => self.load_reserved::<W>(op, addr, 8, cycles),
            Op::ScW => self.store_conditional::<W>(op, addr, 4, cycles),
            Op::ScD => self.store_conditional::<W>(op, addr, 8, cycles),
            Op::AmocasB => self.compare_and_swap::<W>(op, addr, 1, cycles),
            Op::AmocasH => self.compare_and_swap::<W>(op, addr, 2, cycles),
            Op::AmocasW => self.compare_and_swap::<W>(op, addr, 4, cycles),
            Op::AmocasD => self.compare_and_swap::<W>(op, addr, 8, cycles),
            Op::AmocasQ => self.compare_and_swap::<W>(op, addr, 16, cycles),
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
        self.access(Access {
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
        self.access(Access {
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
        self.access(Access {
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

    /// A register, or a pair of registers of which this is the first. The pair of x0 is
    /// zero (Zacas).
    fn operand<W: Width>(&self, register: u8, pair: bool) -> u128 {
        let value = |register| u128::from(W::unsigned(self.get(register)));
        match (register, pair) {
            (0 | SINK, _) => 0,
            (_, false) => value(register),
            (_, true) => value(register) | value(register + 1) << W::BITS,
        }
    }

    /// `amocas`, of up to 16 bytes. It is reported as accesses of up to 8 bytes: swaps if
    /// the values are equal, otherwise loads, since nothing is stored, with what they would
    /// have stored.
    fn compare_and_swap<W: Width>(
        &mut self,
        op: &Micro,
        addr: u64,
        len: u64,
        cycles: u64,
    ) -> Result<bool, Fault> {
        let pair = 8 * len > u64::from(W::BITS);
        let expected = self.operand::<W>(op.rd, pair) & mask(len);
        let new = self.operand::<W>(op.rs2, pair) & mask(len);
        let part = len.min(8);
        let offsets = (0..len).step_by(8);
        let fault = Use::Store.access_fault(addr);
        let (paddr, old, event) = self.with_port(cycles, |port| {
            port.require_alignment(addr, len, Use::Store)?;
            let paddr = port.find(addr, len, Use::Store)?;
            // Stores are possible even if none is made; Spike sees to that when it stores.
            if !port.bus.as_spike && !port.bus.takes_stores(paddr) {
                return Err(fault);
            }
            let mut old = 0;
            for at in offsets.clone() {
                let value = port.read(paddr + at, part).ok_or(fault)?;
                old |= u128::from(value) << (8 * at);
            }
            let mut event = false;
            if old == expected {
                for at in offsets.clone() {
                    let value = (new >> (8 * at)) as u64;
                    event |= port.write(paddr + at, part, value).ok_or(fault)?;
                }
            }
            Ok::<_, Exception>((paddr, old, event))
        })?;
        let swapped = old == expected;
        for at in offsets {
            let value = |whole: u128| (whole >> (8 * at) & mask(part)) as u64;
            self.access(Access {
                kind: match swapped {
                    true => AccessKind::AtomicSwap,
                    false => AccessKind::Load,
                },
                size: part.trailing_zeros() as u8,
                addr: W::unsigned(addr + at),
                paddr: Some(paddr + at),
                data: Some(value(if swapped { new } else { old })),
                operand: Some(value(if swapped { old } else { new })),
            });
        }
        if !pair {
            self.set::<W>(op.rd, extend(old as u64, len));
        } else if op.rd != SINK {
            self.set::<W>(op.rd, old as u64);
            self.set::<W>(op.rd + 1, (old >> W::BITS) as u64);
        }
        Ok(event)
    }
}
