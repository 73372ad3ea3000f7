//! Applies a group to the state: registers through the shadow, memory as a list
//! of writes.

use hartrace_isa::csr;

use crate::config::{Config, StoreData};
use crate::group::{Data, Group, TrapCsr};
use crate::item::Operation;
use crate::read::Next;
use crate::register::Register;
use crate::shadow::Shadow;

/// What happened to some bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) addr: u64,
    /// Bytes, 1 to 8.
    pub(super) len: u64,
    pub(super) value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// They were written.
    Written(u64),
    /// They were read, and this was there.
    Seen(u64),
    /// They were written, or may have been, with an unknown value.
    Lost,
}

/// Takes what a group did.
pub(super) trait Watch {
    /// A register was set, or is not known any more.
    fn register(&mut self, register: Register);
    /// Memory was touched.
    fn memory(&mut self, touch: Touch);
    /// No register is known any more.
    fn lose_registers(&mut self);
    /// No memory is known any more.
    fn lose_memory(&mut self);
}

/// No watcher.
impl Watch for () {
    #[inline(always)]
    fn register(&mut self, _: Register) {}
    #[inline(always)]
    fn memory(&mut self, _: Touch) {}
    #[inline(always)]
    fn lose_registers(&mut self) {}
    #[inline(always)]
    fn lose_memory(&mut self) {}
}

/// Something may have happened that was not reported.
pub(super) fn lose(shadow: &mut Shadow, next: &Next, watch: &mut impl Watch) {
    if let Next::Problem(_) = next {
        shadow.forget();
        watch.lose_registers();
        watch.lose_memory();
    }
}

/// Brings a shadow up to a group; its memory is left alone.
#[inline]
pub(super) fn apply(shadow: &mut Shadow, config: &Config, group: &Group, watch: &mut impl Watch) {
    if group.reset {
        // The state after a reset is not reported (notes 33).
        shadow.forget();
        watch.lose_registers();
    }
    if shadow
        .apply(group, &mut |register| watch.register(register))
        .is_err()
    {
        for change in &group.changes {
            Shadow::holders(change.register, &mut |register| watch.register(register));
        }
    }
    if !config.absent.in_traps.is_empty() {
        doubt_in_traps(shadow, config, group, watch);
    }
    if !(group.data.is_empty() && group.memory.is_empty()) {
        touch(shadow, config, group, watch);
    }
}

/// CSRs that a trap writes without a report.
#[cold]
fn doubt_in_traps(shadow: &mut Shadow, config: &Config, group: &Group, watch: &mut impl Watch) {
    // mstatus, sstatus, and epc, cause and tval of both modes.
    const WRITTEN: [u16; 8] = [
        csr::MSTATUS,
        csr::SSTATUS,
        csr::MEPC,
        csr::MCAUSE,
        csr::MTVAL,
        csr::SEPC,
        csr::SCAUSE,
        csr::STVAL,
    ];
    let told = |csr| group.told(csr).is_some();
    let interrupt = group.insn.is_none() && group.pc.is_some() && !group.init;
    let trap = group.traps() || interrupt && (told(TrapCsr::Cause) || told(TrapCsr::Epc));
    if !trap || group.outside {
        return;
    }
    for register in WRITTEN.map(Register::csr) {
        let tells = |change: &crate::group::Change| change.register == register;
        if config.absent.in_traps.contains(register) && !group.changes.iter().any(tells) {
            Shadow::holders(register, &mut |holder| {
                shadow.doubt(holder);
                watch.register(holder);
            });
        }
    }
}

/// What an atomic instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Atomic {
    No,
    LoadReserved,
    StoreConditional,
    Amo(Operation),
    /// One without an operation of the protocol.
    Other,
}

impl Atomic {
    /// By the AMO opcode and its funct5.
    fn of(bits: u32) -> Atomic {
        if bits & 0x7f != 0x2f {
            return Atomic::No;
        }
        Atomic::Amo(match bits >> 27 {
            0x02 => return Atomic::LoadReserved,
            0x03 => return Atomic::StoreConditional,
            0x00 => Operation::AmoAdd,
            0x01 => Operation::AmoSwap,
            0x04 => Operation::AmoXor,
            0x08 => Operation::AmoOr,
            0x0c => Operation::AmoAnd,
            0x10 => Operation::AmoMin,
            0x14 => Operation::AmoMax,
            0x18 => Operation::AmoMinu,
            0x1c => Operation::AmoMaxu,
            _ => return Atomic::Other,
        })
    }
}

/// Memory that a group touches; the shadow is already past the group.
fn touch(shadow: &Shadow, config: &Config, group: &Group, watch: &mut impl Watch) {
    if config.absent.stores {
        // Never known, so never asked for.
        return;
    }
    let bits = group.insn.map_or(0, |insn| insn.bits);
    let atomic = Atomic::of(bits);
    // What rd is now: what was loaded, or how a store-conditional went.
    let rd = Register::x((bits >> 7) as u8);
    let result = match atomic {
        Atomic::No => None,
        _ => shadow.get(rd).filter(|_| !rd.is_zero()),
    };
    let traps = group.traps();
    let told = |data: &&Data| data.store.is_some();
    let stores = !traps && group.data.iter().any(|data| told(&data));
    for transaction in &group.memory {
        let request = &transaction.request;
        let value = match transaction.response {
            Some(response) if response.failure => continue,
            Some(response) if request.op.only_reads() => Value::Seen(response.data),
            None if request.op.only_reads() => continue,
            _ if request.op == Operation::Store => Value::Written(request.data),
            Some(_) if request.op == Operation::StoreConditional => Value::Written(request.data),
            None if request.op == Operation::StoreConditional => match result {
                Some(0) => Value::Written(request.data),
                Some(_) => continue,
                None => Value::Lost,
            },
            // The instruction determines the result.
            _ if stores && config.store_data == StoreData::Result => continue,
            response => {
                let old = response.map(|response| response.data).or(result);
                outcome(request.op, old, request.data, request.size)
            }
        };
        let len = 1 << request.size;
        let addr = request.addr;
        watch.memory(Touch { addr, len, value });
    }
    if !stores {
        return;
    }
    let mut requests = group.memory.iter().filter(|t| !t.request.op.only_reads());
    for data in group.data.iter().filter(told) {
        let Some((size, value)) = data.store else {
            continue;
        };
        let request = requests.find(|t| t.request.size == size);
        let Some(addr) = data
            .paddr
            .or(request.map(|t| t.request.addr))
            .or(data.eaddr)
        else {
            // Somewhere.
            watch.lose_memory();
            continue;
        };
        let operand = config.store_data == StoreData::Operand;
        let value = match (atomic, result) {
            (Atomic::LoadReserved, _) => continue,
            (Atomic::StoreConditional, Some(1..)) => continue,
            (Atomic::StoreConditional, None) if operand => Value::Lost,
            (Atomic::Amo(op), old) if operand => outcome(op, old, value, size),
            (Atomic::Other, _) if operand => Value::Lost,
            _ => Value::Written(value),
        };
        let len = 1 << size;
        watch.memory(Touch { addr, len, value });
    }
}

/// What an atomic operation leaves in memory; the size is log2 of the bytes.
fn outcome(op: Operation, old: Option<u64>, operand: u64, size: u8) -> Value {
    let unused = 64 - (8 << size.min(3));
    // To the top, so that signs are where they are looked for.
    let up = |value: u64| value << unused;
    let signed = |value: u64| up(value) as i64;
    let Some(old) = old.or((op == Operation::AmoSwap).then_some(0)) else {
        return Value::Lost;
    };
    let chosen = |first: bool| if first { old } else { operand };
    let new = match op {
        Operation::AmoSwap => operand,
        Operation::AmoAdd => old.wrapping_add(operand),
        Operation::AmoXor => old ^ operand,
        Operation::AmoAnd => old & operand,
        Operation::AmoOr => old | operand,
        Operation::AmoMin => chosen(signed(old) < signed(operand)),
        Operation::AmoMax => chosen(signed(old) > signed(operand)),
        Operation::AmoMinu => chosen(up(old) < up(operand)),
        Operation::AmoMaxu => chosen(up(old) > up(operand)),
        _ => return Value::Lost,
    };
    Value::Written(up(new) >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unprivileged manual, "Atomic memory operations"; words in the low
    /// half of registers, whose upper half is the sign or rubbish.
    #[test]
    fn atomic_operations() {
        let minus = 0xffff_ffff_8000_0000u64;
        for (op, old, operand, new) in [
            (Operation::AmoSwap, 5, 7, 7),
            (Operation::AmoAdd, minus, minus, 0),
            (Operation::AmoXor, 6, 3, 5),
            (Operation::AmoAnd, 6, 3, 2),
            (Operation::AmoOr, 6, 3, 7),
            (Operation::AmoMin, minus, 1, 0x8000_0000),
            (Operation::AmoMax, minus, 1, 1),
            (Operation::AmoMinu, minus, 1, 1),
            (Operation::AmoMaxu, minus, 0x1_0000_0001, 0x8000_0000),
        ] {
            assert_eq!(
                outcome(op, Some(old), operand, 2),
                Value::Written(new),
                "{op:?}"
            );
        }
        assert_eq!(outcome(Operation::AmoAdd, None, 1, 3), Value::Lost);
        assert_eq!(outcome(Operation::AmoSwap, None, 1, 3), Value::Written(1));
    }
}
