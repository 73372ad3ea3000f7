//! The return stack of the implicit-return modes (E-Trace 3.2.5, N-Trace
//! "Implicit Return Optimization").

use alloc::collections::VecDeque;

use hartrace_isa::Xlen;

use crate::{Exit, Run};

/// What an encoder remembers of a return address, and so when it may leave a
/// return out of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remember {
    /// The whole address (N-Trace mode 3, E-Trace return stack and call counter): a
    /// return is implied when it goes exactly there.
    Address,
    /// The low bits of the address, above bit 0 (N-Trace mode 2): implied when
    /// those bits agree.
    LowBits(u8),
    /// The number of calls only (N-Trace mode 1): every return inside a call is
    /// implied; the program is trusted.
    Count,
}

/// What a co-routine swap does to the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swaps {
    /// Nothing: a swap is neither a call nor a return (E-Trace 3.2.5, 4.1.1).
    Ignored,
    /// It returns and calls: one address comes off, the next goes on (N-Trace,
    /// handling of `itype` 12).
    PopAndPush,
}

/// Return addresses of the calls that have not returned yet, the oldest lost
/// when the stack is full.
///
/// An encoder asks [`ReturnStack::returns`] whether a return may be left out; the
/// decoder's stack then gives the target.
///
/// ```
/// use hartrace_flow::{Remember, ReturnStack, Swaps};
///
/// let mut encoder = ReturnStack::new(Remember::Address, Swaps::Ignored, 8);
/// let mut decoder = encoder.clone();
/// encoder.push(0x1004);
/// decoder.push(0x1004);
/// assert!(encoder.returns(0x1004), "not in the trace");
/// assert_eq!(decoder.pop(), Some(0x1004));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnStack {
    remember: Remember,
    swaps: Swaps,
    depth: usize,
    /// How often an entry can repeat.
    most_repeats: u32,
    entries: VecDeque<Entry>,
    /// Repeats of all entries together.
    repeats: u64,
    /// The sum of the addresses, each times [`MIX`] once for every later one.
    fingerprint: u64,
    /// The weight of the oldest entry of a full stack.
    weight: u64,
}

/// Calls from one place that have not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    address: u64,
    /// Calls after the first.
    repeats: u32,
}

/// Any odd number: multiplying by it can be undone.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const UNMIX: u64 = inverse(MIX);

/// The number that undoes multiplying by an odd one, by Newton's method.
const fn inverse(odd: u64) -> u64 {
    let mut x = odd;
    let mut round = 0;
    while round < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        round += 1;
    }
    x
}

impl ReturnStack {
    /// A stack of this depth; depth 0 never implies anything.
    #[must_use]
    pub fn new(remember: Remember, swaps: Swaps, depth: usize) -> ReturnStack {
        ReturnStack {
            remember,
            swaps,
            depth,
            most_repeats: 0,
            entries: VecDeque::new(),
            repeats: 0,
            fingerprint: 0,
            weight: MIX.wrapping_pow(depth.saturating_sub(1).try_into().unwrap_or(u32::MAX)),
        }
    }

    /// The same with a counter for each entry: a call with the return address of
    /// the one before it, as recursion makes them, only counts there, up to this
    /// often (E-Trace 2.05, chapter 11, with both a stack and a call counter).
    #[must_use]
    pub fn with_repeats(mut self, most: u32) -> ReturnStack {
        self.most_repeats = most;
        self
    }

    /// Whether the target of such a jump comes off this stack.
    #[must_use]
    pub fn answers(&self, exit: Exit) -> bool {
        match exit {
            Exit::Return => true,
            Exit::Swap => self.swaps == Swaps::PopAndPush,
            _ => false,
        }
    }

    /// Whether such a jump pushes the address after it on this stack.
    #[must_use]
    pub fn takes(&self, exit: Exit) -> bool {
        match exit {
            Exit::DirectCall | Exit::IndirectCall => true,
            Exit::Swap => self.swaps == Swaps::PopAndPush,
            _ => false,
        }
    }

    /// Follows the calls and returns of these runs, in order.
    pub fn follow(&mut self, runs: &[Run], xlen: Xlen) {
        for run in runs {
            self.pass(run.exit, xlen.wrap(run.end));
        }
    }

    /// Follows one jump of this class; the address after it is `end`.
    #[inline]
    pub fn pass(&mut self, exit: Exit, end: u64) {
        if self.answers(exit) {
            self.pop();
        }
        if self.takes(exit) {
            self.push(end);
        }
    }

    /// A number that is the same for the same addresses in the same order and
    /// hardly for others.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint ^ self.repeats.wrapping_mul(UNMIX)
    }

    /// A call: the address after it.
    #[inline]
    pub fn push(&mut self, address: u64) {
        if self.most_repeats > 0
            && let Some(top) = self.entries.back_mut()
            && top.address == address
            && top.repeats < self.most_repeats
        {
            top.repeats += 1;
            self.repeats += 1;
            return;
        }
        if self.entries.len() == self.depth {
            // Dropping the oldest also keeps a count at its maximum.
            if let Some(oldest) = self.entries.pop_front() {
                let part = oldest.address.wrapping_mul(self.weight);
                self.fingerprint = self.fingerprint.wrapping_sub(part);
                self.repeats -= u64::from(oldest.repeats);
            }
        }
        if self.depth > 0 {
            let repeats = 0;
            self.entries.push_back(Entry { address, repeats });
            let sum = self.fingerprint.wrapping_mul(MIX);
            self.fingerprint = sum.wrapping_add(address);
        }
    }

    /// A return as the decoder sees it: where it goes, if the stack knows.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let top = self.entries.back_mut()?;
        let address = top.address;
        if top.repeats > 0 {
            top.repeats -= 1;
            self.repeats -= 1;
            return Some(address);
        }
        self.entries.pop_back();
        let rest = self.fingerprint.wrapping_sub(address);
        self.fingerprint = rest.wrapping_mul(UNMIX);
        Some(address)
    }

    /// Where the next return would go.
    #[must_use]
    pub fn top(&self) -> Option<u64> {
        self.entries.back().map(|top| top.address)
    }

    /// Whether the next returns would go to these addresses.
    #[inline]
    pub(crate) fn leads(&self, to: &[u64]) -> bool {
        let mut entries = self.entries.iter().rev();
        let mut entry = entries.next();
        let mut used = 0;
        to.iter().all(|&address| {
            let Some(top) = entry else { return false };
            if used < top.repeats {
                used += 1;
            } else {
                (entry, used) = (entries.next(), 0);
            }
            top.address == address
        })
    }

    /// Whether so many calls leave the newest entries, of this number, on the stack.
    pub(crate) fn has_room(&self, calls: usize, newest: usize) -> bool {
        calls + newest <= self.depth
    }

    /// A return as the encoder sees it, going to `actual`: whether the decoder
    /// can imply it. The entry is used up either way.
    #[must_use]
    #[inline]
    pub fn returns(&mut self, actual: u64) -> bool {
        let Some(expected) = self.pop() else {
            return false;
        };
        match self.remember {
            Remember::Address => expected == actual,
            Remember::LowBits(n) => {
                let mask = 1u64
                    .checked_shl(u32::from(n) + 1)
                    .map_or(u64::MAX, |b| b - 1);
                (expected ^ actual) & mask & !1 == 0
            }
            Remember::Count => true,
        }
    }

    /// Number of entries on the stack.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no call is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets every call, as a sync does.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.repeats = 0;
        self.fingerprint = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_call_is_lost_first() {
        let mut stack = ReturnStack::new(Remember::Address, Swaps::PopAndPush, 2);
        for address in [0x10, 0x20, 0x30] {
            stack.push(address);
        }
        assert!(stack.returns(0x30));
        assert!(stack.returns(0x20));
        assert!(!stack.returns(0x10), "dropped when 0x30 came");
    }

    #[test]
    fn a_mismatch_uses_up_the_entry() {
        let mut stack = ReturnStack::new(Remember::Address, Swaps::PopAndPush, 4);
        stack.push(0x10);
        stack.push(0x20);
        assert!(!stack.returns(0x10), "longjmp");
        assert!(stack.returns(0x10));
    }

    #[test]
    fn low_bits_compare_above_bit_zero() {
        let mut stack = ReturnStack::new(Remember::LowBits(4), Swaps::PopAndPush, 4);
        stack.push(0xff_0012);
        assert!(stack.returns(0xaa_0012));
        stack.push(0xff_0012);
        assert!(!stack.returns(0xff_0002));
        let mut whole = ReturnStack::new(Remember::LowBits(63), Swaps::PopAndPush, 4);
        whole.push(u64::MAX - 1);
        assert!(!whole.returns(0x7fff_ffff_ffff_fffe));
    }

    #[test]
    fn a_count_trusts_the_program() {
        let mut stack = ReturnStack::new(Remember::Count, Swaps::PopAndPush, 2);
        assert!(!stack.returns(0x10));
        stack.push(0x10);
        assert!(stack.returns(0x9999));
        assert!(!stack.returns(0x10));
    }

    #[test]
    fn depth_zero_implies_nothing() {
        let mut stack = ReturnStack::new(Remember::Count, Swaps::PopAndPush, 0);
        stack.push(0x10);
        assert!(!stack.returns(0x10));
    }

    #[test]
    fn recursive_calls_share_an_entry() {
        let stack = ReturnStack::new(Remember::Address, Swaps::Ignored, 2);
        let mut stack = stack.with_repeats(3);
        stack.push(0x10);
        for _ in 0..6 {
            stack.push(0x20);
        }
        // Four calls in the older entry of 0x20, two in the newer one.
        assert_eq!(stack.len(), 2);
        let print = stack.fingerprint();
        assert_eq!(stack.pop(), Some(0x20));
        assert_ne!(stack.fingerprint(), print);
        stack.push(0x20);
        assert_eq!(stack.fingerprint(), print);
        for _ in 0..6 {
            assert!(stack.returns(0x20));
        }
        assert!(!stack.returns(0x10), "dropped with the second entry");
        assert!(stack.is_empty());
    }

    #[test]
    fn a_fingerprint_tells_contents_apart() {
        let mut stack = ReturnStack::new(Remember::Address, Swaps::Ignored, 3);
        let empty = stack.fingerprint();
        for address in [0x10, 0x20, 0x30, 0x40] {
            stack.push(address);
        }
        let mut same = ReturnStack::new(Remember::Address, Swaps::Ignored, 3);
        for address in [0x20, 0x30, 0x40] {
            same.push(address);
        }
        assert_eq!(stack.fingerprint(), same.fingerprint());
        same.pop();
        same.push(0x41);
        assert_ne!(stack.fingerprint(), same.fingerprint());
        while same.pop().is_some() {}
        assert_eq!(same.fingerprint(), empty);
        stack.clear();
        assert_eq!(stack.fingerprint(), empty);
    }
}
