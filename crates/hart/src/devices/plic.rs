//! The platform-level interrupt controller (RISC-V PLIC specification 1.0.0).
//!
//! Sources are lines of devices, high while a device wants attention. Each hart
//! has two contexts, for machine and for supervisor mode, in this order. A gateway
//! forwards one request of its source at a time: the next one when the handler of
//! the last has completed.

use crate::cpu::interrupt;
use crate::memory::Region;

/// Where QEMU's `virt` machine has it.
pub(crate) const PLIC: Region = Region {
    base: 0x0c00_0000,
    size: 0x60_0000,
};

/// The number of the highest source; 0 is none.
pub(crate) const LAST_SOURCE: u32 = 95;
/// Words of a set of sources.
const WORDS: usize = LAST_SOURCE as usize / 32 + 1;
/// Priorities have three bits; 0 is never.
pub(crate) const MAX_PRIORITY: u32 = 7;

const PENDING: u64 = 0x1000;
const ENABLE: u64 = 0x2000;
const ENABLE_STRIDE: u64 = 0x80;
const CONTEXT: u64 = 0x20_0000;
const CONTEXT_STRIDE: u64 = 0x1000;
/// Registers of a context.
const THRESHOLD: u64 = 0;
const CLAIM: u64 = 4;

/// A set of sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Set([u32; WORDS]);

impl Set {
    fn has(&self, source: u32) -> bool {
        let word = self.0.get(source as usize / 32).copied().unwrap_or(0);
        word >> (source % 32) & 1 != 0
    }

    fn put(&mut self, source: u32, there: bool) {
        if let Some(word) = self.0.get_mut(source as usize / 32) {
            *word = *word & !(1 << (source % 32)) | u32::from(there) << (source % 32);
        }
    }

    fn word(&self, number: u64) -> u32 {
        self.0.get(number as usize).copied().unwrap_or(0)
    }
}

/// A target of interrupts: a hart in a mode.
#[derive(Clone, Debug, Default)]
struct Target {
    enabled: Set,
    threshold: u32,
}

/// Which register is at an offset.
enum Register {
    Priority(u32),
    Pending(u64),
    /// A target and the word of its set.
    Enable(usize, u64),
    Threshold(usize),
    Claim(usize),
    Reserved,
}

/// Its registers.
#[derive(Clone, Debug)]
pub(crate) struct Plic {
    priorities: [u32; LAST_SOURCE as usize + 1],
    targets: Vec<Target>,
    pending: Set,
    /// Lines that are high.
    high: Set,
    /// Requests that were claimed and not completed: their gateways are closed.
    served: Set,
    /// Per hart, the bits of `mip` that are up.
    outputs: Vec<u64>,
}

impl Plic {
    /// With two contexts for each of so many harts.
    pub(crate) fn new(harts: usize) -> Plic {
        Plic {
            priorities: [0; LAST_SOURCE as usize + 1],
            targets: vec![Target::default(); 2 * harts],
            pending: Set::default(),
            high: Set::default(),
            served: Set::default(),
            outputs: vec![0; harts],
        }
    }

    /// The external interrupts of a hart, as bits of `mip`.
    pub(crate) fn interrupts(&self, hart: u32) -> u64 {
        self.outputs.get(hart as usize).copied().unwrap_or(0)
    }

    /// A device changes its line.
    pub(crate) fn set_level(&mut self, source: u32, high: bool) {
        if self.high.has(source) != high {
            self.high.put(source, high);
            self.forward(source);
        }
    }

    /// Lets a request of a source through, if it has one and its gateway is open. A
    /// request that was forwarded stays although the line may fall.
    fn forward(&mut self, source: u32) {
        if self.high.has(source) && !self.served.has(source) {
            self.pending.put(source, true);
        }
        self.update();
    }

    fn register(&self, offset: u64) -> Register {
        let target = |base: u64, stride: u64| {
            let number = ((offset - base) / stride) as usize;
            (number < self.targets.len()).then_some((number, (offset - base) % stride))
        };
        match offset {
            0..PENDING => Register::Priority((offset / 4) as u32),
            PENDING..ENABLE => Register::Pending((offset - PENDING) / 4),
            ENABLE..CONTEXT => match target(ENABLE, ENABLE_STRIDE) {
                Some((number, at)) => Register::Enable(number, at / 4),
                None => Register::Reserved,
            },
            _ => match target(CONTEXT, CONTEXT_STRIDE) {
                Some((number, THRESHOLD)) => Register::Threshold(number),
                Some((number, CLAIM)) => Register::Claim(number),
                _ => Register::Reserved,
            },
        }
    }

    /// Reads the word at an offset. To read a claim register is to claim.
    pub(crate) fn load(&mut self, offset: u64) -> u32 {
        match self.register(offset) {
            Register::Priority(source) => self.priority(source),
            Register::Pending(word) => self.pending.word(word),
            Register::Enable(target, word) => {
                let target = self.targets.get(target);
                target.map_or(0, |target| target.enabled.word(word))
            }
            Register::Threshold(target) => self.targets.get(target).map_or(0, |t| t.threshold),
            Register::Claim(target) => self.claim(target),
            Register::Reserved => 0,
        }
    }

    /// Writes the word at an offset.
    pub(crate) fn store(&mut self, offset: u64, value: u32) {
        match self.register(offset) {
            // Source 0 does not exist.
            Register::Priority(0) => {}
            Register::Priority(source) => {
                if let Some(priority) = self.priorities.get_mut(source as usize) {
                    *priority = value & MAX_PRIORITY;
                }
            }
            Register::Enable(target, word) => {
                let none = u32::from(word == 0);
                let target = self.targets.get_mut(target);
                if let Some(set) = target.and_then(|t| t.enabled.0.get_mut(word as usize)) {
                    *set = value & !none;
                }
            }
            Register::Threshold(target) => {
                if let Some(target) = self.targets.get_mut(target) {
                    target.threshold = value & MAX_PRIORITY;
                }
            }
            Register::Claim(target) => self.complete(target, value),
            Register::Pending(_) | Register::Reserved => {}
        }
        self.update();
    }

    fn priority(&self, source: u32) -> u32 {
        self.priorities.get(source as usize).copied().unwrap_or(0)
    }

    /// The source of the highest priority that is pending for a target, the lowest of
    /// those alike, and its priority.
    fn first(&self, target: &Target) -> Option<(u32, u32)> {
        let words = self.pending.0.iter().zip(target.enabled.0);
        let mut first = None;
        for (word, base) in words.zip((0..).step_by(32)) {
            let mut set = word.0 & word.1;
            while set != 0 {
                let source = base + set.trailing_zeros();
                set &= set - 1;
                let priority = self.priority(source);
                if priority > first.map_or(0, |(_, highest)| highest) {
                    first = Some((source, priority));
                }
            }
        }
        first
    }

    /// Takes the request of the highest priority; the threshold does not matter
    /// here (chapter 8). 0 if there is none.
    fn claim(&mut self, target: usize) -> u32 {
        let target = self.targets.get(target);
        let Some((source, _)) = target.and_then(|target| self.first(target)) else {
            return 0;
        };
        self.pending.put(source, false);
        self.served.put(source, true);
        self.update();
        source
    }

    /// A source that is not enabled for the target is ignored (chapter 9).
    fn complete(&mut self, target: usize, source: u32) {
        let target = self.targets.get(target);
        if source <= LAST_SOURCE && target.is_some_and(|t| t.enabled.has(source)) {
            self.served.put(source, false);
            self.forward(source);
        }
    }

    /// Finds out which targets have an interrupt.
    fn update(&mut self) {
        let bits = [interrupt::MEI, interrupt::SEI];
        for hart in 0..self.outputs.len() {
            let mut output = 0;
            for (number, bit) in (2 * hart..).zip(bits) {
                let target = self.targets.get(number);
                let first = target.and_then(|target| Some((self.first(target)?.1, target)));
                if first.is_some_and(|(priority, target)| priority > target.threshold) {
                    output |= bit;
                }
            }
            if let Some(place) = self.outputs.get_mut(hart) {
                *place = output;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 0;
    const S: u64 = 1;

    fn enable(plic: &mut Plic, context: u64, source: u32) {
        let at = ENABLE + context * ENABLE_STRIDE + u64::from(source / 32) * 4;
        let old = plic.load(at);
        plic.store(at, old | 1 << (source % 32));
    }

    fn claim(plic: &mut Plic, context: u64) -> u32 {
        plic.load(CONTEXT + context * CONTEXT_STRIDE + CLAIM)
    }

    fn complete(plic: &mut Plic, context: u64, source: u32) {
        plic.store(CONTEXT + context * CONTEXT_STRIDE + CLAIM, source);
    }

    fn threshold(plic: &mut Plic, context: u64, value: u32) {
        plic.store(CONTEXT + context * CONTEXT_STRIDE + THRESHOLD, value);
    }

    /// Two harts; the sources have their numbers modulo 8 as priorities.
    fn plic() -> Plic {
        let mut plic = Plic::new(2);
        for source in 0..=LAST_SOURCE {
            plic.store(u64::from(source) * 4, source);
        }
        plic
    }

    #[test]
    fn priorities_have_three_bits_and_source_0_none() {
        let mut plic = plic();
        assert_eq!(plic.load(0), 0);
        assert_eq!(plic.load(4 * 10), 10 % 8);
        assert_eq!(plic.load(4 * 95), 95 % 8);
        plic.store(4 * 96, 7);
        assert_eq!(plic.load(4 * 96), 0, "no such source");
        // Bit 0 of the first word of enables is that of no source.
        plic.store(ENABLE, u32::MAX);
        assert_eq!(plic.load(ENABLE), u32::MAX - 1);
    }

    #[test]
    fn a_request_reaches_the_targets_that_enable_it() {
        let mut plic = plic();
        enable(&mut plic, S, 10);
        enable(&mut plic, 2 + M, 10);
        assert_eq!((plic.interrupts(0), plic.interrupts(1)), (0, 0));
        plic.set_level(10, true);
        assert_eq!(plic.load(PENDING), 1 << 10);
        assert_eq!(plic.interrupts(0), interrupt::SEI);
        assert_eq!(plic.interrupts(1), interrupt::MEI);
        assert_eq!(plic.interrupts(2), 0, "no such hart");
        // One of them gets it.
        assert_eq!(claim(&mut plic, 2 + M), 10);
        assert_eq!((plic.interrupts(0), plic.interrupts(1)), (0, 0));
        assert_eq!(claim(&mut plic, S), 0);
    }

    #[test]
    fn the_highest_priority_is_claimed_first_and_then_the_lowest_number() {
        let mut plic = plic();
        for source in [2, 9, 10, 18, 33, 95] {
            enable(&mut plic, M, source);
            plic.set_level(source, true);
        }
        let order: Vec<u32> = (0..7).map(|_| claim(&mut plic, M)).collect();
        assert_eq!(order, [95, 2, 10, 18, 9, 33, 0]);
    }

    #[test]
    fn the_gateway_is_closed_until_completion() {
        let mut plic = plic();
        enable(&mut plic, M, 1);
        plic.set_level(1, true);
        assert_eq!(claim(&mut plic, M), 1);
        plic.set_level(1, false);
        plic.set_level(1, true);
        assert_eq!(claim(&mut plic, M), 0, "in service");
        // Neither another target's completion nor one of another source opens it.
        complete(&mut plic, S, 1);
        complete(&mut plic, M, 2);
        complete(&mut plic, M, u32::MAX);
        assert_eq!(plic.interrupts(0), 0);
        complete(&mut plic, M, 1);
        assert_eq!(plic.interrupts(0), interrupt::MEI, "the line is still high");
        assert_eq!(claim(&mut plic, M), 1);
        plic.set_level(1, false);
        complete(&mut plic, M, 1);
        assert_eq!(plic.interrupts(0), 0);
    }

    #[test]
    fn a_forwarded_request_stays_although_the_line_falls() {
        let mut plic = plic();
        enable(&mut plic, M, 3);
        plic.set_level(3, true);
        plic.set_level(3, false);
        assert_eq!(claim(&mut plic, M), 3);
    }

    #[test]
    fn the_threshold_masks_interrupts_but_not_claims() {
        let mut plic = plic();
        enable(&mut plic, M, 3);
        plic.set_level(3, true);
        threshold(&mut plic, M, 3);
        assert_eq!(plic.interrupts(0), 0);
        threshold(&mut plic, M, 2);
        assert_eq!(plic.interrupts(0), interrupt::MEI);
        threshold(&mut plic, M, 0xffff_ffff);
        assert_eq!(plic.load(CONTEXT), MAX_PRIORITY);
        assert_eq!(claim(&mut plic, M), 3);
    }

    #[test]
    fn priority_0_never_interrupts() {
        let mut plic = plic();
        enable(&mut plic, M, 8);
        plic.set_level(8, true);
        assert_eq!((plic.interrupts(0), claim(&mut plic, M)), (0, 0));
        plic.store(8 * 4, 1);
        assert_eq!(
            (plic.interrupts(0), claim(&mut plic, M)),
            (interrupt::MEI, 8)
        );
    }

    #[test]
    fn every_offset_answers() {
        let mut plic = Plic::new(1);
        for offset in (0..PLIC.size).step_by(4) {
            plic.store(offset, u32::MAX);
            plic.load(offset);
        }
        // Targets that do not exist are reserved.
        assert_eq!(plic.load(CONTEXT + 2 * CONTEXT_STRIDE), 0);
        assert_eq!(plic.load(ENABLE + 2 * ENABLE_STRIDE), 0);
    }
}
