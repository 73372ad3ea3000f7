//! `mcontrol` and `mcontrol6`: addresses and data of instructions, loads and stores.

use hartrace_flow::RegId;
use hartrace_isa::Xlen;

use super::{BREAKPOINT, Circumstances, Fired, MCONTROL, MCONTROL6, Trigger, Triggers, control};

/// An access of the instruction that is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    pub(crate) load: bool,
    pub(crate) store: bool,
    /// Virtual address.
    pub(crate) addr: u64,
    pub(crate) bytes: u64,
    /// A block of the cache: it has no size and no data.
    pub(crate) block: bool,
    pub(crate) stored: Option<u64>,
    pub(crate) loaded: Option<u64>,
    /// The register it is loaded to.
    pub(crate) to: Option<RegId>,
}

/// What is known of an instruction so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked<'a> {
    pub(crate) pc: u64,
    /// The instruction and its length in bytes, when it has been fetched.
    pub(crate) insn: Option<(u32, u8)>,
    pub(crate) accesses: &'a [Touched],
    /// It has retired.
    pub(crate) retired: bool,
}

impl Triggers {
    /// What fires now, of what has not fired for this instruction yet. In a chain all
    /// triggers must match the same instruction; the last one has the action.
    pub(crate) fn look(&mut self, looked: &Looked<'_>, now: &Circumstances) -> Fired {
        let mut fired = Fired::default();
        let (mut first, mut tval) = (0, None);
        let mut matched = true;
        for last in 0..self.list.len() {
            let Some(trigger) = self.list.get(last) else {
                break;
            };
            let found = trigger.find(looked, now, self.xlen);
            matched &= found.is_some();
            tval = tval.or(found);
            let chained = trigger.is_control(self.xlen) && trigger.tdata1 & control::CHAIN != 0;
            if chained {
                continue;
            }
            let action = trigger.action(self.xlen);
            let allowed = now.breakpoints || action != BREAKPOINT;
            if matched && allowed && self.done >> last & 1 == 0 {
                self.done |= 1 << last;
                fired.add(action, tval.unwrap_or(0));
                for trigger in self.list.iter_mut().take(last + 1).skip(first) {
                    trigger.set_hit(looked.retired, self.xlen);
                }
            }
            (first, tval, matched) = (last + 1, None, true);
        }
        fired
    }
}

impl Trigger {
    fn is_control(&self, xlen: Xlen) -> bool {
        matches!(self.kind(xlen), MCONTROL | MCONTROL6)
    }

    fn is_legacy(&self, xlen: Xlen) -> bool {
        self.kind(xlen) == MCONTROL
    }

    fn compares_data(&self, xlen: Xlen) -> bool {
        let select = match self.is_legacy(xlen) {
            true => control::SELECT,
            false => control::SELECT6,
        };
        self.tdata1 & select != 0
    }

    /// Fires only when the instruction has retired: what was loaded is known then.
    fn is_late(&self, xlen: Xlen) -> bool {
        match self.is_legacy(xlen) {
            true => self.tdata1 & control::TIMING != 0,
            false => self.compares_data(xlen) && self.tdata1 & control::LOAD != 0,
        }
    }

    fn set_hit(&mut self, after: bool, xlen: Xlen) {
        self.tdata1 |= match (self.is_legacy(xlen), after) {
            (true, _) => control::HIT,
            (false, false) => control::HIT0,
            (false, true) => control::HIT0 | control::HIT1,
        };
        if !self.is_legacy(xlen) && !after {
            self.tdata1 &= !control::HIT1;
        }
    }

    /// The address with which it matches, if it does.
    fn find(&self, looked: &Looked<'_>, now: &Circumstances, xlen: Xlen) -> Option<u64> {
        if !self.is_control(xlen) || self.is_late(xlen) && !looked.retired || !self.is_on(now, xlen)
        {
            return None;
        }
        let executed = match self.tdata1 & control::EXECUTE {
            0 => None,
            _ => self.executes(looked, xlen),
        };
        executed.or_else(|| {
            let accesses = looked.accesses.iter();
            let mut matching = accesses.filter(|access| self.touches(access, xlen));
            matching.next().map(|access| access.addr)
        })
    }

    fn executes(&self, looked: &Looked<'_>, xlen: Xlen) -> Option<u64> {
        let pc = looked.pc;
        let (bits, bytes) = match looked.insn {
            Some((bits, len)) if self.fits(len.into(), xlen) => (Some(bits), u64::from(len)),
            Some(_) => return None,
            // All that is known is that there are two bytes at least.
            None if self.size(xlen) == 0 => (None, 2),
            None => return None,
        };
        if self.compares_data(xlen) {
            return self.has_data(bits?.into(), bytes, xlen).then_some(pc);
        }
        let parcel = (0..bytes).step_by(2).find(|parcel| {
            let addr = pc.wrapping_add(*parcel);
            self.has_address(addr, 2, xlen)
        });
        parcel.map(|parcel| xlen.wrap(pc.wrapping_add(parcel)))
    }

    fn touches(&self, access: &Touched, xlen: Xlen) -> bool {
        let loads = access.load && self.tdata1 & control::LOAD != 0;
        let stores = access.store && self.tdata1 & control::STORE != 0;
        if !loads && !stores {
            return false;
        }
        if access.block {
            let plain = self.size(xlen) == 0 && !self.compares_data(xlen);
            return plain && self.has_address(access.addr, access.bytes, xlen);
        }
        if !self.fits(access.bytes, xlen) {
            return false;
        }
        if !self.compares_data(xlen) {
            return self.has_address(access.addr, access.bytes, xlen);
        }
        let has = |data: Option<u64>| data.is_some_and(|d| self.has_data(d, access.bytes, xlen));
        loads && has(access.loaded) || stores && has(access.stored)
    }

    fn size(&self, xlen: Xlen) -> u64 {
        match self.is_legacy(xlen) {
            true => 0,
            false => self.tdata1 >> 16 & 7,
        }
    }

    /// Whether the size of an access, or of an instruction, is the one asked for.
    fn fits(&self, bytes: u64, xlen: Xlen) -> bool {
        match self.size(xlen) {
            0 => true,
            1 => bytes == 1,
            2 => bytes == 2,
            3 => bytes == 4,
            4 => bytes == 6,
            _ => bytes == 8,
        }
    }

    /// Any of the addresses that are accessed.
    fn has_address(&self, addr: u64, bytes: u64, xlen: Xlen) -> bool {
        let negated = self.tdata1 >> 10 & 1 != 0;
        let mut all = (0..bytes).map(|offset| xlen.wrap(addr.wrapping_add(offset)));
        negated != all.any(|addr| self.compares(addr, xlen.bits(), xlen))
    }

    fn has_data(&self, value: u64, bytes: u64, xlen: Xlen) -> bool {
        let negated = self.tdata1 >> 10 & 1 != 0;
        let bits = 8 * bytes as u32;
        bits <= xlen.bits() && negated != self.compares(value, bits, xlen)
    }

    /// The comparison without its negation, of the low bits.
    fn compares(&self, value: u64, bits: u32, xlen: Xlen) -> bool {
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let (value, wanted) = (value & mask, self.tdata2 & mask);
        let half = xlen.bits() / 2;
        let low = (1 << half) - 1;
        match self.tdata1 >> 7 & 7 {
            0 => value == wanted,
            1 => {
                // The lowest zero and what is below it do not matter.
                let size = wanted.trailing_ones() + 1;
                value.checked_shr(size) == wanted.checked_shr(size)
            }
            2 => value >= wanted,
            3 => value < wanted,
            4 => value & low & (wanted >> half) == wanted & low,
            _ => (value >> half) & (wanted >> half) == wanted & low,
        }
    }
}
