//! An entropy device (Virtual I/O Device 1.2, 5.4). Its bytes come from a seed, so
//! they are the same in every run: no secret should depend on them.

use super::queue::{Broken, Chain};
use crate::host::GuestMemory;

/// Most bytes given to one request; the driver asks again.
const MOST: u64 = 4096;

/// A sequence of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Entropy(u64);

impl Entropy {
    pub(crate) fn new(seed: u64) -> Entropy {
        Entropy(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Fills bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.number().to_le_bytes();
            chunk
                .iter_mut()
                .zip(number)
                .for_each(|(to, byte)| *to = byte);
        }
    }

    pub(super) fn serve(
        &mut self,
        chain: &mut Chain,
        memory: &mut dyn GuestMemory,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        buffer.clear();
        buffer.resize(chain.writable().min(MOST) as usize, 0);
        self.fill(buffer);
        chain.write(memory, buffer)
    }
}
