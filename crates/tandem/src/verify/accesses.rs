//! Compares the loads and stores of a group with those of the model.

use hartrace_flow::{Access, AccessKind, Effects, Few, Model, Place};
use hartrace_isa::Op;

use super::Core;
use super::judge::{Case, Found, differ};
use super::plain::same_address;
use super::report::{Field, Kind};
use crate::config::StoreData;
use crate::group::Data;
use crate::register::Register;

impl Core {
    /// Accesses: those that write one by one, then those that read.
    pub(super) fn compare_accesses(
        &mut self,
        model: &mut dyn Model,
        case: &Case,
        effects: &Effects,
        found: &mut Found,
    ) {
        let writes =
            |access: &&Access| access.kind != AccessKind::Load && !access.kind.is_failure();
        let group = self.reader.group();
        let told: Few<Data, 16> = gather(group.data.iter().filter(|d| d.store.is_some()));
        let own: Few<Access, 16> = gather(effects.accesses.iter().filter(writes));
        let operand = self.config.store_data == StoreData::Operand;
        let first = effects.accesses.first();
        for i in 0..told.len().max(own.len()) {
            match (case.op, told.get(i), own.get(i)) {
                (Op::ScW | Op::ScD, told, own) => {
                    match (self.is_conditional_made(case, told, own), own.is_some()) {
                        (true, true) => self.compare_store(model, told, own, case, found),
                        // The operand is recorded all the same (notes 38).
                        (false, false) if operand => {}
                        (false, false) => self.compare_store(model, told, own, case, found),
                        _ => self.store_unsurely(model, told, first, case),
                    }
                }
                (Op::LrW | Op::LrD, Some(_), None) if operand => {}
                (_, told, own) => self.compare_store(model, told, own, case, found),
            }
        }
        self.compare_loads(effects, found);
        for access in own.iter() {
            let addr = access.paddr.unwrap_or(access.addr);
            let read = |addr| model.read(Place::Memory { addr, size: 8 }).ok();
            self.mailbox.stored(addr, 1 << access.size, read);
        }
    }

    /// Whether a store-conditional stores, by the trace. Its result says so; of
    /// one without a result, the store itself, unless operands are recorded in any
    /// case or stores never.
    pub(super) fn is_conditional_made(
        &self,
        case: &Case,
        told: Option<&Data>,
        own: Option<&Access>,
    ) -> bool {
        let rd = Register::x((case.bits >> 7) as u8);
        let operand = self.config.store_data == StoreData::Operand;
        match self.shadow.get(rd).filter(|_| !rd.is_zero()) {
            _ if self.config.absent.stores => own.is_some(),
            Some(0) => true,
            Some(1) => false,
            // No result: only the store can be believed.
            Some(_) => told.is_some(),
            None if operand => own.is_some(),
            None => told.is_some(),
        }
    }

    /// Memory after a store-conditional on which the sides do not agree is as
    /// the trace has it.
    pub(super) fn store_unsurely(
        &mut self,
        model: &mut dyn Model,
        told: Option<&Data>,
        access: Option<&Access>,
        case: &Case,
    ) {
        let Some(access) = access else {
            return;
        };
        let addr = access.paddr.unwrap_or(access.addr);
        if access.kind == AccessKind::Store {
            // It failed.
            let old = self.shadow.memory.read(addr, 1 << access.size);
            self.set_memory(model, addr, access.size, old);
        } else if let Some((size, value)) = told.and_then(|data| data.store) {
            self.shadow.memory.write(addr, 1 << size, value);
            if case.bits >> 7 & 31 == 0 {
                // No result will be excused.
                self.set_memory(model, addr, size, value);
            }
        }
    }

    pub(super) fn compare_store(
        &mut self,
        model: &mut dyn Model,
        told: Option<&Data>,
        own: Option<&Access>,
        case: &Case,
        found: &mut Found,
    ) {
        let addr = own.map(|access| access.paddr.unwrap_or(access.addr));
        if self.config.absent.stores {
            if let (Some(addr), Some(access)) = (addr, own) {
                let value = access.data.unwrap_or(0);
                self.shadow.memory.write(addr, 1 << access.size, value);
            }
            return;
        }
        self.counters.compare(Kind::Store, 1);
        let data = told.and_then(|data| data.store);
        let (Some(told), Some(access), Some(addr), Some((size, value))) = (told, own, addr, data)
        else {
            // One side stores and the other does not.
            let shown = told.and_then(|data| data.eaddr.or(data.paddr));
            differ(found, Field::StoreAddress, own.map(|a| a.addr), shown);
            if let (Some(data), Some((size, value))) = (told, data)
                && let Some(addr) = data.paddr.or(data.eaddr)
            {
                self.shadow.memory.write(addr, 1 << size, value);
            }
            return;
        };
        if !same_address(told, access) {
            let (own, shown) = match told.eaddr {
                Some(eaddr) if eaddr != access.addr => (Some(access.addr), Some(eaddr)),
                _ => (access.paddr, told.paddr),
            };
            differ(found, Field::StoreAddress, own, shown);
        }
        if size != access.size {
            let bytes = |size: u8| Some(1 << size);
            differ(found, Field::StoreSize, bytes(access.size), bytes(size));
        }
        let mask = u64::MAX >> (64 - (8 << size.min(3)));
        let own = access.data.unwrap_or(value) & mask;
        let amo = case.bits & 0x7f == 0x2f && !matches!(case.op, Op::ScW | Op::ScD);
        let operand = amo
            && self.config.store_data == StoreData::Operand
            && case.operand & mask == value & mask;
        let to = self.reported_address(told, access);
        if own == value & mask || operand {
            self.shadow.memory.write(to, 1 << size, own);
        } else {
            self.shadow.memory.write(to, 1 << size, value);
            if amo && self.is_outside(addr, 1 << size) {
                self.set_memory(model, addr, size, value);
            } else {
                differ(found, Field::StoreData, Some(own), Some(value));
            }
        }
    }

    /// Where a store of the trace goes, by physical address. An effective
    /// address that is not the model's is taken as it is: it cannot be
    /// translated.
    pub(super) fn reported_address(&self, told: &Data, access: &Access) -> u64 {
        match (told.paddr, told.eaddr) {
            (Some(paddr), _) => paddr,
            (None, Some(eaddr)) if eaddr != access.addr => {
                let offset = access
                    .paddr
                    .unwrap_or(access.addr)
                    .wrapping_sub(access.addr);
                eaddr.wrapping_add(offset)
            }
            _ => access.paddr.unwrap_or(access.addr),
        }
    }

    /// Addresses without data, of loads and of stores that were not made.
    pub(super) fn compare_loads(&mut self, effects: &Effects, found: &mut Found) {
        let group = self.reader.group();
        let reads = |access: &&Access| {
            access.kind == AccessKind::Load || access.kind.is_failure() || self.config.absent.stores
        };
        let told: Few<Data, 16> = gather(group.data.iter().filter(|d| d.store.is_none()));
        let own: Few<Access, 16> = gather(effects.accesses.iter().filter(reads));
        for (i, data) in told.iter().enumerate() {
            self.counters.compare(Kind::Load, 1);
            // A store-conditional that the model has done has an address, too.
            match own.get(i).or(effects.accesses.get(i)) {
                Some(access) if same_address(data, access) => {}
                access => {
                    let shown = data.eaddr.or(data.paddr);
                    let own = access.map(|access| access.addr);
                    differ(found, Field::LoadAddress, own, shown);
                }
            }
        }
    }
}

/// The first few.
fn gather<'a, T: Copy + Default + 'a, const N: usize>(
    items: impl Iterator<Item = &'a T>,
) -> Few<T, N> {
    let mut few = Few::new();
    for item in items.take(N) {
        let _ = few.push(*item);
    }
    few
}
