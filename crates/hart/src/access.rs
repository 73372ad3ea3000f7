//! Loads and stores that miss the page lookup tables: page walks, devices,
//! misaligned addresses, watched pages.

use crate::bus::Bus;
use crate::cpu::{Cpu, Exception, cause};
use crate::memory::PAGE;
use crate::mmu::{self, Tlb, Use};

/// What a hart needs to reach memory.
pub(crate) struct Port<'a> {
    pub(crate) cpu: &'a Cpu,
    pub(crate) tlb: &'a mut Tlb,
    pub(crate) bus: &'a mut Bus,
    /// Misaligned accesses are done; otherwise they trap.
    pub(crate) misaligned: bool,
    /// The hart's cycle count, the time base of devices.
    pub(crate) cycles: u64,
}

/// A load or store that was done.
pub(crate) struct Done {
    /// The value loaded, zero-extended.
    pub(crate) value: u64,
    pub(crate) paddr: u64,
    /// Something may have changed that the hart must look at before its next
    /// instruction: interrupts, code, a call to the host.
    pub(crate) event: bool,
}

impl Port<'_> {
    /// Loads 1, 2, 4 or 8 bytes.
    pub(crate) fn load(&mut self, addr: u64, len: u64) -> Result<Done, Exception> {
        if addr & (len - 1) != 0 {
            return self.load_misaligned(addr, len);
        }
        let paddr = self.find(addr, len, Use::Load)?;
        let value = self.read(paddr, len).ok_or(Use::Load.access_fault(addr))?;
        Ok(Done {
            value,
            paddr,
            event: false,
        })
    }

    /// Stores 1, 2, 4 or 8 bytes.
    pub(crate) fn store(&mut self, addr: u64, len: u64, value: u64) -> Result<Done, Exception> {
        if addr & (len - 1) != 0 {
            return self.store_misaligned(addr, len, value);
        }
        let paddr = self.find(addr, len, Use::Store)?;
        let fault = Use::Store.access_fault(addr);
        let event = self.write(paddr, len, value).ok_or(fault)?;
        Ok(Done {
            value,
            paddr,
            event,
        })
    }

    /// Checks that a store is possible, without storing anything.
    pub(crate) fn require_store(&mut self, addr: u64, len: u64) -> Result<(), Exception> {
        if addr & (len - 1) != 0 && !self.misaligned {
            return Err(Exception {
                code: cause::STORE_MISALIGNED,
                tval: addr,
            });
        }
        let (near, far, next) = self.split(addr, len);
        for (addr, len) in [(addr, near), (next, far)] {
            if len != 0 {
                let paddr = self.find(addr, len, Use::Store)?;
                if !self.bus.takes_stores(paddr) {
                    return Err(Use::Store.access_fault(addr));
                }
            }
        }
        Ok(())
    }

    /// The physical address of an access within a page; remembers the page.
    pub(crate) fn find(&mut self, addr: u64, len: u64, what: Use) -> Result<u64, Exception> {
        if let Some(paddr) = self.tlb.known(what, addr) {
            return Ok(paddr);
        }
        let found = mmu::find(self.cpu, self.bus, addr, len, what)?;
        if let Some(spot) = self.bus.memory.spot(found.paddr)
            && self.cpu.pmp.is_uniform(found.paddr & !(PAGE - 1))
            && (what == Use::Load || spot.writable && !self.bus.memory.is_watched(spot.frame))
        {
            self.tlb.fill(what, addr, found, spot.frame);
        }
        Ok(found.paddr)
    }

    /// Reads physical memory or a device.
    pub(crate) fn read(&mut self, paddr: u64, len: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let part = bytes.get_mut(..len as usize)?;
        if self.bus.memory.read(paddr, part) {
            return Some(u64::from_le_bytes(bytes));
        }
        if len.is_power_of_two() && paddr & (len - 1) == 0 {
            return self.bus.load(paddr, len, self.cycles);
        }
        let mut value = 0;
        for i in 0..len {
            value |= self.bus.load(paddr + i, 1, self.cycles)? << (8 * i);
        }
        Some(value)
    }

    /// Writes physical memory or a device; says whether the hart must look up.
    pub(crate) fn write(&mut self, paddr: u64, len: u64, value: u64) -> Option<bool> {
        let bytes = value.to_le_bytes();
        if let Some(spot) = self.bus.memory.spot(paddr) {
            let data = bytes.get(..len as usize)?;
            let memory = &mut self.bus.memory;
            let to = memory.at_mut(spot.frame, paddr, len as usize)?;
            if !spot.writable {
                return None;
            }
            to.copy_from_slice(data);
            return Some(self.bus.note_store(paddr, spot.frame, len));
        }
        if len.is_power_of_two() && paddr & (len - 1) == 0 {
            return self
                .bus
                .store(paddr, len, value, self.cycles)
                .then_some(true);
        }
        for (i, byte) in (0..len).zip(bytes) {
            if !self.bus.store(paddr + i, 1, byte.into(), self.cycles) {
                return None;
            }
        }
        Some(true)
    }

    fn load_misaligned(&mut self, addr: u64, len: u64) -> Result<Done, Exception> {
        if !self.misaligned {
            return Err(Exception {
                code: cause::LOAD_MISALIGNED,
                tval: addr,
            });
        }
        let (near, far, next) = self.split(addr, len);
        let paddr = self.find(addr, near, Use::Load)?;
        let mut value = self.read(paddr, near).ok_or(Use::Load.access_fault(addr))?;
        if far != 0 {
            let second = self.find(next, far, Use::Load)?;
            let upper = self.read(second, far).ok_or(Use::Load.access_fault(next))?;
            value |= upper << (8 * near);
        }
        Ok(Done {
            value,
            paddr,
            event: false,
        })
    }

    fn store_misaligned(&mut self, addr: u64, len: u64, value: u64) -> Result<Done, Exception> {
        if !self.misaligned {
            return Err(Exception {
                code: cause::STORE_MISALIGNED,
                tval: addr,
            });
        }
        let (near, far, next) = self.split(addr, len);
        let paddr = self.find(addr, near, Use::Store)?;
        let fault = Use::Store.access_fault(addr);
        // Both pages must take it before anything is stored; Spike stores the
        // first part before it looks at the second page.
        if far != 0 && !self.bus.as_spike {
            let second = self.find(next, far, Use::Store)?;
            if !self.bus.takes_stores(paddr) {
                return Err(fault);
            }
            if !self.bus.takes_stores(second) {
                return Err(Use::Store.access_fault(next));
            }
        }
        let mut event = self.write(paddr, near, value).ok_or(fault)?;
        if far != 0 {
            let second = self.find(next, far, Use::Store)?;
            let fault = Use::Store.access_fault(next);
            event |= self.write(second, far, value >> (8 * near)).ok_or(fault)?;
        }
        Ok(Done {
            value,
            paddr,
            event,
        })
    }

    /// Bytes in the first page, bytes in the second, and its address.
    fn split(&self, addr: u64, len: u64) -> (u64, u64, u64) {
        let near = len.min(PAGE - addr % PAGE);
        let next = self.cpu.xlen().wrap(addr.wrapping_add(near));
        (near, len - near, next)
    }
}
