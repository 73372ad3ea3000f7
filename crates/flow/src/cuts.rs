//! Cuts: a cache of where instructions start inside a run.
//!
//! A run knows how many instructions it has, but not where each starts; finding
//! that means decoding them one by one. Traces cut runs at the same places
//! again and again: at the instructions they report.

use alloc::boxed::Box;
use alloc::vec;

use crate::{Image, Run, SpaceId};

/// What lies in a run before the start of an instruction, which is not its
/// first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    space: SpaceId,
    start: u64,
    at: u64,
    /// Instructions; 0 for a slot not in use.
    pub(crate) insns: u32,
    /// Length of the last of them in bytes.
    pub(crate) last: u8,
}

/// Slots, a power of two.
const SLOTS: usize = 1 << 9;

/// A cache of fixed size.
#[derive(Debug)]
pub(crate) struct Cuts {
    slots: Box<[Cut]>,
}

impl Cuts {
    pub(crate) fn new() -> Cuts {
        let vacant = Cut {
            space: SpaceId::FIRST,
            start: 0,
            at: 0,
            insns: 0,
            last: 0,
        };
        Cuts {
            slots: vec![vacant; SLOTS].into_boxed_slice(),
        }
    }

    /// The part before `at`, an address after the run's first; `None` if no
    /// instruction of the run starts there.
    pub(crate) fn find(
        &mut self,
        image: &Image,
        space: SpaceId,
        run: &Run,
        at: u64,
    ) -> Option<Cut> {
        let key = run.start ^ at.rotate_left(20);
        let slot = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55;
        let slot = self.slots.get_mut(slot as usize & (SLOTS - 1))?;
        let same = (slot.space, slot.start, slot.at) == (space, run.start, at);
        if same && slot.insns > 0 {
            return Some(*slot);
        }
        let mut insns = 0;
        for (pc, f) in image.insns(space, run.start, u64::from(run.insns)) {
            insns += 1;
            // A run does not wrap round the end of the address space.
            let end = pc.wrapping_add(u64::from(f.len));
            if end == at && insns < run.insns {
                let (start, last) = (run.start, f.len);
                *slot = Cut {
                    space,
                    start,
                    at,
                    insns,
                    last,
                };
                return Some(*slot);
            }
        }
        None
    }
}
