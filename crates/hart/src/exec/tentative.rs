//! Loads and stores of a run that may be taken back: only memory at hand is reached, and
//! what it held is kept.

use hartrace_flow::Observer;
use hartrace_isa::Op;

use super::frame::{Frame, key, value};
use crate::changes::Old;
use crate::code::Micro;
use crate::memory::PAGE;
use crate::mmu::Tlb;
use crate::width::Width;

impl<O: Observer> Frame<'_, O> {
    /// Whether a load of `N` bytes changes nothing but a register.
    #[inline(always)]
    pub(super) fn is_at_hand<const N: usize>(&self, addr: u64) -> bool {
        let offset = addr.wrapping_sub(self.base) as usize;
        if self.ram.get(offset..offset.wrapping_add(N)).is_some() {
            return addr.is_multiple_of(N as u64) || self.misaligned;
        }
        Tlb::slot(&self.tlb.load, addr).tag == key::<N>(addr, self.tlb.data_context)
    }

    /// Keeps what is where `N` bytes are about to be stored. False if the store would change
    /// more than memory, or there is no memory at hand.
    #[inline(always)]
    pub(super) fn keep_old<const N: usize>(&mut self, addr: u64) -> bool {
        let offset = addr.wrapping_sub(self.base) as usize;
        let (frame, bytes) = match self.ram.get(offset..offset.wrapping_add(N)) {
            Some(bytes) if addr.is_multiple_of(N as u64) => {
                let frame = (offset as u64 / PAGE) as u32;
                if self.bus.memory.is_watched(frame) && self.bus.minds_store(addr, frame, N as u64)
                {
                    return false;
                }
                (frame, bytes)
            }
            _ => {
                let entry = Tlb::slot(&self.tlb.store, addr);
                if entry.tag != key::<N>(addr, self.tlb.data_context) {
                    return false;
                }
                match self.bus.memory.at(entry.frame, addr, N) {
                    Some(bytes) => (entry.frame, bytes),
                    None => return false,
                }
            }
        };
        self.changes.old.push(Old {
            frame,
            addr,
            size: N as u8,
            value: value::<N>(bytes),
        });
        true
    }

    /// The same for a store of a floating-point register.
    #[inline(always)]
    pub(super) fn keeps_old_float<W: Width>(&mut self, op: &Micro) -> bool {
        let addr = W::unsigned(self.get(op.rs1).wrapping_add(op.imm as u64));
        match op.op {
            Op::Fsd => self.keep_old::<8>(addr),
            Op::Fsw => self.keep_old::<4>(addr),
            _ => self.keep_old::<2>(addr),
        }
    }
}
