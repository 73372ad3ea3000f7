//! What encoder and decoder both keep for the optional modes.

use super::{Settings, Version};

/// The branch predictor (3.2.6): two bits for each entry.
#[derive(Clone, Debug)]
pub(super) struct Predictor {
    entries: Vec<u8>,
    lsb: u32,
}

impl Predictor {
    pub(super) fn new(size: u32, lsb: u32) -> Predictor {
        // "The lookup table entries are initialized to 01".
        let entries = vec![0b01; 1 << size];
        Predictor { entries, lsb }
    }

    pub(super) fn predict(&self, pc: u64) -> bool {
        self.entries[index(pc, self.entries.len(), self.lsb)] & 0b10 != 0
    }

    pub(super) fn update(&mut self, pc: u64, taken: bool) {
        let at = index(pc, self.entries.len(), self.lsb);
        self.entries[at] = match (self.entries[at], taken) {
            (0b00, false) => 0b00,
            (0b00, true) => 0b01,
            (0b01, false) => 0b00,
            (0b01, true) => 0b11,
            (0b11, true) => 0b11,
            (0b11, false) => 0b10,
            (_, true) => 0b11,
            (_, false) => 0b00,
        };
    }
}

/// The jump target cache (3.2.7).
#[derive(Clone, Debug)]
pub(super) struct Cache {
    entries: Vec<Option<u64>>,
    lsb: u32,
}

impl Cache {
    pub(super) fn new(size: u32, lsb: u32) -> Cache {
        let entries = vec![None; 1 << size];
        Cache { entries, lsb }
    }

    pub(super) fn get(&self, index: u64) -> Option<u64> {
        self.entries.get(index as usize).copied().flatten()
    }

    pub(super) fn store(&mut self, target: u64) {
        let at = index(target, self.entries.len(), self.lsb);
        self.entries[at] = Some(target);
    }
}

/// Bits `size:1` of an address with compressed instructions, `size+1:2`
/// without, which `iaddress_lsb` says: it is never less than 1 in the text.
fn index(address: u64, entries: usize, lsb: u32) -> usize {
    (address >> lsb.max(1)) as usize & (entries - 1)
}

/// The return stack (3.2.5).
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// Each with the number of further calls from the same place.
    entries: Vec<(u64, u64)>,
    most: usize,
    /// Calls from one place that share an entry, besides the first.
    most_repeated: u64,
}

impl Stack {
    pub(super) fn new(settings: &Settings, stack_size: u32, counter_size: u32) -> Stack {
        let draft = settings.version != Version::V2_05;
        let most = match (stack_size, draft) {
            // A counter of so many bits: irdepth has to hold it.
            (0, true) => (1 << counter_size) - 1,
            (0, false) => 1 << counter_size,
            _ => 1 << stack_size,
        };
        // Only the pseudo code of 2.05 knows entries with counters.
        let counted = !draft && stack_size > 0;
        let most_repeated = if counted { (1 << counter_size) - 1 } else { 0 };
        Stack {
            entries: Vec::new(),
            most,
            most_repeated,
        }
    }

    pub(super) fn depth(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn top(&self) -> Option<u64> {
        self.entries.last().map(|entry| entry.0)
    }

    pub(super) fn push(&mut self, link: u64) {
        if let Some((top, count)) = self.entries.last_mut()
            && *top == link
            && *count < self.most_repeated
        {
            *count += 1;
            return;
        }
        if self.entries.len() == self.most {
            self.entries.remove(0);
        }
        self.entries.push((link, 0));
    }

    pub(super) fn pop(&mut self) {
        match self.entries.last_mut() {
            Some((_, count)) if *count > 0 => *count -= 1,
            _ => drop(self.entries.pop()),
        }
    }
}
