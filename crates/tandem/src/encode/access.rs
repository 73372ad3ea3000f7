//! Loads and stores, as the instruction sees them and as transactions.

use hartrace_flow::{Access, AccessKind, Effects, RegId, RegWrite};
use hartrace_isa::{Ext, Isa, Op, decode};

use super::Encoder;
use crate::config::{Addresses, Config, MemoryStyle, StoreData};
use crate::item::{Item, Operation, Request, Response};

/// What the bits of an atomic instruction say beyond its access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomic {
    LoadReserved,
    StoreConditional,
    /// Minimum and maximum of unsigned numbers.
    Unsigned,
    /// Compare and swap, for which there is no operation.
    Compare,
    Other,
}

impl Atomic {
    fn of(bits: u32) -> Atomic {
        // Spares all other instructions the decoder.
        if bits & 0x7f != 0x2f {
            return Atomic::Other;
        }
        const ISA: Isa = Isa::RV64GC.with(Ext::Zabha).with(Ext::Zacas);
        match decode(bits, ISA).op {
            Op::LrW | Op::LrD => Atomic::LoadReserved,
            Op::ScW | Op::ScD => Atomic::StoreConditional,
            Op::AmominuB | Op::AmominuH | Op::AmominuW | Op::AmominuD => Atomic::Unsigned,
            Op::AmomaxuB | Op::AmomaxuH | Op::AmomaxuW | Op::AmomaxuD => Atomic::Unsigned,
            Op::AmocasB | Op::AmocasH | Op::AmocasW | Op::AmocasD | Op::AmocasQ => Atomic::Compare,
            _ => Atomic::Other,
        }
    }
}

/// Integer registers as far as known from the steps: where the operand of
/// an atomic operation comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    x: [u64; 32],
    known: u32,
    /// Whether the values are needed.
    wanted: bool,
}

impl Operands {
    pub(super) fn new(config: &Config) -> Operands {
        Operands {
            x: [0; 32],
            known: 1,
            wanted: config.store_data == StoreData::Operand
                || config.style.memory != MemoryStyle::None,
        }
    }

    pub(super) fn forget(&mut self) {
        self.known = 1;
    }

    /// The registers as a step leaves them, which has written these.
    #[inline(always)]
    pub(super) fn follow<'w>(&mut self, regs: impl IntoIterator<Item = &'w RegWrite>) {
        if !self.wanted {
            return;
        }
        for write in regs {
            self.keep(write);
        }
    }

    #[inline(never)]
    fn keep(&mut self, write: &RegWrite) {
        if let RegId::X(number @ 1..=31) = write.reg
            && let Some(slot) = self.x.get_mut(usize::from(number))
        {
            *slot = write.value;
            self.known |= 1 << number;
        }
    }

    /// What rs2 holds.
    fn rs2(&self, bits: u32) -> Option<u64> {
        let number = bits >> 20 & 31;
        let value = self.x.get(number as usize)?;
        (self.known >> number & 1 != 0).then_some(*value)
    }
}

/// Whether it is an access to memory.
const fn is_memory(kind: AccessKind) -> bool {
    !matches!(
        kind,
        AccessKind::CsrReadWrite | AccessKind::CsrReadSet | AccessKind::CsrReadClear
    )
}

/// The lowest bytes of a value, by log2 of their number.
const fn cut(value: u64, size: u8) -> u64 {
    match size {
        0 => value & 0xff,
        1 => value & 0xffff,
        2 => value & 0xffff_ffff,
        _ => value,
    }
}

impl Encoder {
    /// The accesses of an instruction.
    #[inline]
    pub(super) fn accesses(&mut self, bits: u32, effects: &Effects) {
        let Some(first) = effects.accesses.first() else {
            return;
        };
        // One without its physical address would be taken for a part of the
        // access before it.
        let physical = match effects.accesses.len() {
            1 => first.paddr.is_some(),
            _ => effects.accesses.iter().all(|a| a.paddr.is_some()),
        };
        for access in effects.accesses.iter().filter(|a| is_memory(a.kind)) {
            self.addresses(access, physical);
            if access.size <= 3
                && !self.config.absent.stores
                && let Some(data) = self.store_data(access, bits)
            {
                self.item(Item::StoreData(access.size, cut(data, access.size)));
            }
        }
        if self.config.style.memory != MemoryStyle::None {
            for access in effects.accesses.iter().filter(|a| is_memory(a.kind)) {
                self.transaction(access, bits);
            }
        }
    }

    #[inline]
    fn addresses(&mut self, access: &Access, physical: bool) {
        let paddr = access.paddr.filter(|_| physical);
        let (tell_physical, tell_effective) = match self.config.style.addresses {
            Addresses::None => (false, false),
            Addresses::Effective => (false, true),
            Addresses::Physical => (true, paddr.is_none()),
            Addresses::Both => (true, true),
            Addresses::Translated => (true, paddr != Some(access.addr)),
        };
        if let (true, Some(paddr)) = (tell_physical, paddr) {
            self.item(Item::PhysicalAddress(paddr));
        }
        if tell_effective {
            self.item(Item::EffectiveAddress(access.addr));
        }
    }

    /// What an access stores, as the configuration understands it.
    #[inline]
    fn store_data(&self, access: &Access, bits: u32) -> Option<u64> {
        let operand = self.config.store_data == StoreData::Operand;
        match access.kind {
            AccessKind::Store => access.data,
            AccessKind::Load => (operand && Atomic::of(bits) == Atomic::LoadReserved).then_some(0),
            AccessKind::ConditionalStoreFailure if operand => self.conditional(access, bits),
            AccessKind::ConditionalStoreFailure | AccessKind::CompareSwapFailure => None,
            _ if operand => self.operand(access, bits),
            _ => access.data,
        }
    }

    /// What a store-conditional that failed would have stored.
    fn conditional(&self, access: &Access, bits: u32) -> Option<u64> {
        let rs2 = || match Atomic::of(bits) {
            Atomic::StoreConditional => self.operands.rs2(bits),
            _ => None,
        };
        access.data.or_else(rs2)
    }

    /// The operand of an atomic operation: found from the value stored and the
    /// one before, or in its register.
    fn operand(&self, access: &Access, bits: u32) -> Option<u64> {
        let found = match (access.kind, access.data, access.operand) {
            (AccessKind::AtomicSwap, data, _) => data,
            (AccessKind::AtomicAdd, Some(new), Some(old)) => Some(new.wrapping_sub(old)),
            (AccessKind::AtomicXor, Some(new), Some(old)) => Some(new ^ old),
            (AccessKind::AtomicMin | AccessKind::AtomicMax, Some(new), Some(old)) => {
                (new != old).then_some(new)
            }
            _ => None,
        };
        let rs2 = || match bits & 0x7f {
            0x2f => self.operands.rs2(bits),
            _ => None,
        };
        let found = found.or_else(rs2)?;
        Some(cut(found, access.size))
    }

    /// The transaction of an access.
    fn transaction(&mut self, access: &Access, bits: u32) {
        if access.size > 3 {
            return;
        }
        let atomic = Atomic::of(bits);
        let failed = access.kind == AccessKind::ConditionalStoreFailure;
        match access.kind {
            AccessKind::Load => {
                let op = match atomic {
                    Atomic::LoadReserved => Operation::LoadReserved,
                    _ => Operation::Load,
                };
                self.request(access, op, Some(0));
                self.response(access, op, false, access.data);
            }
            AccessKind::CompareSwapFailure => {
                self.request(access, Operation::Load, Some(0));
                self.response(access, Operation::Load, false, None);
            }
            AccessKind::Store | AccessKind::ConditionalStoreFailure => {
                let op = match atomic == Atomic::StoreConditional || failed {
                    true => Operation::StoreConditional,
                    false => Operation::Store,
                };
                let data = match failed {
                    true => self.conditional(access, bits),
                    false => access.data,
                };
                if self.request(access, op, data) {
                    self.response(access, op, failed, Some(0));
                }
            }
            _ => self.atomic(access, bits, atomic),
        }
    }

    /// An atomic operation, or where its operand is not known, the load and
    /// the store it comes to.
    fn atomic(&mut self, access: &Access, bits: u32, atomic: Atomic) {
        let op = match (access.kind, atomic) {
            (_, Atomic::Compare) => None,
            (AccessKind::AtomicSwap, _) => Some(Operation::AmoSwap),
            (AccessKind::AtomicAdd, _) => Some(Operation::AmoAdd),
            (AccessKind::AtomicXor, _) => Some(Operation::AmoXor),
            (AccessKind::AtomicAnd, _) => Some(Operation::AmoAnd),
            (AccessKind::AtomicOr, _) => Some(Operation::AmoOr),
            (AccessKind::AtomicMin, Atomic::Unsigned) => Some(Operation::AmoMinu),
            (AccessKind::AtomicMax, Atomic::Unsigned) => Some(Operation::AmoMaxu),
            (AccessKind::AtomicMin, _) => Some(Operation::AmoMin),
            (AccessKind::AtomicMax, _) => Some(Operation::AmoMax),
            _ => None,
        };
        if let (Some(op), Some(operand)) = (op, self.operand(access, bits)) {
            self.request(access, op, Some(operand));
            self.response(access, op, false, access.operand);
            return;
        }
        self.request(access, Operation::Load, Some(0));
        self.response(access, Operation::Load, false, access.operand);
        if self.request(access, Operation::Store, access.data) {
            self.response(access, Operation::Store, false, Some(0));
        }
    }

    /// A request, if its data is known.
    fn request(&mut self, access: &Access, op: Operation, data: Option<u64>) -> bool {
        let Some(data) = data else {
            return false;
        };
        self.item(Item::Request(Request {
            addr: access.paddr.unwrap_or(access.addr),
            op,
            size: access.size,
            data: cut(data, access.size),
        }));
        true
    }

    /// The response to the request just written, if its data is known.
    fn response(&mut self, access: &Access, op: Operation, failure: bool, data: Option<u64>) {
        if let (MemoryStyle::Responses, Some(data)) = (self.config.style.memory, data) {
            self.item(Item::Response(Response {
                op,
                size: access.size,
                failure,
                data: cut(data, access.size),
            }));
        }
    }

    /// Stores from outside: memory requests, whatever the style.
    pub(super) fn outside_stores(&mut self, effects: &Effects) {
        for access in effects.accesses.iter() {
            if access.kind == AccessKind::Store && access.size <= 3 {
                self.request(access, Operation::Store, access.data);
            }
        }
    }
}
