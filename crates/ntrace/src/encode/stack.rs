//! The encoder's return stack (9.1.2).

use alloc::boxed::Box;

use hartrace_flow::{Remember, ReturnStack, Swaps};

use crate::{Config, ImplicitReturn, MAX_STACK, StackKind};

/// Return addresses of open calls, in the form the settings ask for.
#[derive(Clone, Debug)]
pub(super) enum Stack {
    /// No implicit returns.
    Off,
    /// A stack that loses its oldest entry.
    Plain(ReturnStack),
    /// As the reference encoder's.
    Ring(Box<Ring>),
}

impl Stack {
    pub(super) fn new(config: &Config) -> Stack {
        let remember = match config.implicit_return {
            ImplicitReturn::Off => return Stack::Off,
            ImplicitReturn::Count => Remember::Count,
            ImplicitReturn::Partial(bits) => Remember::LowBits(bits),
            ImplicitReturn::Full => Remember::Address,
        };
        let depth = usize::from(config.stack_depth.min(MAX_STACK));
        match config.stack_kind {
            StackKind::Plain => Stack::Plain(ReturnStack::new(remember, Swaps::PopAndPush, depth)),
            StackKind::ReferenceRing => Stack::Ring(Box::new(Ring::new(remember, depth))),
        }
    }

    /// A call that returns to this address.
    #[inline]
    pub(super) fn push(&mut self, address: u64) {
        match self {
            Stack::Off => {}
            Stack::Plain(stack) => stack.push(address),
            Stack::Ring(ring) => ring.push(address),
        }
    }

    /// A return to this address: whether the decoder can imply it. The entry
    /// is used up either way.
    #[inline]
    pub(super) fn returns(&mut self, actual: u64) -> bool {
        match self {
            Stack::Off => false,
            Stack::Plain(stack) => stack.returns(actual),
            Stack::Ring(ring) => ring.returns(actual),
        }
    }

    /// Forgets every call.
    pub(super) fn clear(&mut self) {
        match self {
            Stack::Off => {}
            Stack::Plain(stack) => stack.clear(),
            Stack::Ring(ring) => ring.count = 0,
        }
    }
}

/// The reference encoder's ring: calls use one slot more than returns wrap
/// around at, so that addresses come back wrong after an overflow.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    remember: Remember,
    depth: usize,
    slots: [u64; MAX_STACK as usize + 1],
    top: usize,
    count: usize,
}

impl Ring {
    fn new(remember: Remember, depth: usize) -> Ring {
        Ring {
            remember,
            depth,
            slots: [0; MAX_STACK as usize + 1],
            top: 0,
            count: 0,
        }
    }

    fn push(&mut self, address: u64) {
        self.top = if self.top >= self.depth {
            0
        } else {
            self.top + 1
        };
        if let Some(slot) = self.slots.get_mut(self.top) {
            *slot = address;
        }
        self.count = (self.count + 1).min(self.depth);
    }

    fn returns(&mut self, actual: u64) -> bool {
        if self.count == 0 {
            return false;
        }
        self.count -= 1;
        let expected = self.slots.get(self.top).copied().unwrap_or_default();
        self.top = match self.top.checked_sub(1) {
            Some(below) => below,
            None => self.depth.saturating_sub(1),
        };
        match self.remember {
            Remember::Count => true,
            Remember::Address => expected == actual,
            Remember::LowBits(n) => {
                let bits = (u32::from(n) + 1).min(64);
                (expected ^ actual) & (u64::MAX >> (64 - bits)) & !1 == 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_did_not_overflow_is_a_stack() {
        let mut ring = Ring::new(Remember::Address, 4);
        for address in [0x10, 0x20, 0x30, 0x40] {
            ring.push(address);
        }
        for address in [0x40, 0x30, 0x20, 0x10] {
            assert!(ring.returns(address));
        }
        assert!(!ring.returns(0x10), "empty");
    }

    #[test]
    fn a_ring_that_wraps_gives_old_addresses() {
        let mut ring = Ring::new(Remember::Address, 2);
        // Slots 1, 2, 0, 1: the fourth call takes the place of the first.
        for address in [0x10, 0x20, 0x30, 0x40] {
            ring.push(address);
        }
        assert!(ring.returns(0x40));
        assert!(ring.returns(0x30));
        assert!(!ring.returns(0x20), "only so many count");
        // From slot 0 the way down leads to slot 1, not to slot 2.
        for address in [0x50, 0x60] {
            ring.push(address);
        }
        assert!(ring.returns(0x60));
        assert!(!ring.returns(0x50), "slot 1 still holds 0x40");
    }

    #[test]
    fn low_bits_and_counts() {
        let mut ring = Ring::new(Remember::LowBits(4), 2);
        ring.push(0xff_0012);
        assert!(ring.returns(0xaa_0012));
        let mut ring = Ring::new(Remember::LowBits(63), 2);
        ring.push(1 << 63);
        assert!(!ring.returns(0));
        let mut ring = Ring::new(Remember::Count, 2);
        ring.push(0x10);
        assert!(ring.returns(0x9999));
        assert!(!ring.returns(0x10));
    }
}
