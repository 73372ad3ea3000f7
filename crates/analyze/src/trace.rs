//! The executed instructions of a trace, one by one.
//!
//! The text of a run depends only on the run. It is formatted once and copied
//! from then on, so a loop costs as much as copying its text.

mod gathered;
mod listing;
mod pcs;
mod pieces;

pub use gathered::Gathered;
pub use listing::{TraceListing, instruction_text};
pub use pcs::PcList;
pub use pieces::PcPieces;

use crate::spaces::Spaces;
use hartrace_flow::{Fetched, Image, Run, SpaceId};

/// Writes the line of one instruction.
trait Render {
    fn line(&mut self, pc: u64, insn: &Fetched, out: &mut Vec<u8>);
}

/// Places for remembered runs; a power of two. Two runs that want the same
/// place take turns.
const PLACES: usize = 1 << 13;

/// Text that is remembered at most, in bytes, beside one more run.
const MAX_TEXT: usize = 32 << 20;

/// The text of runs, remembered.
struct RunText<'a, R> {
    image: &'a Image,
    render: R,
    places: Vec<Place>,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    start: u64,
    insns: u32,
    space: SpaceId,
    from: u32,
    len: u32,
}

impl<'a, R: Render> RunText<'a, R> {
    fn new(image: &'a Image, render: R) -> RunText<'a, R> {
        RunText {
            image,
            render,
            places: vec![Place::default(); PLACES],
            text: Vec::new(),
        }
    }

    /// Appends the lines of a run.
    #[inline]
    fn append(&mut self, space: SpaceId, run: &Run, out: &mut Vec<u8>) {
        let place = self.places.get(index(run)).copied().unwrap_or_default();
        let known = place.start == run.start && place.insns == run.insns && place.space == space;
        let place = if known && place.len > 0 {
            place
        } else {
            self.make(space, run)
        };
        let range = place.from as usize..(place.from + place.len) as usize;
        out.extend_from_slice(self.text.get(range).unwrap_or_default());
    }

    #[cold]
    fn make(&mut self, space: SpaceId, run: &Run) -> Place {
        if self.text.len() > MAX_TEXT {
            self.text.clear();
            self.places.fill(Place::default());
        }
        let from = self.text.len();
        for (pc, insn) in self.image.insns(space, run.start, u64::from(run.insns)) {
            self.render.line(pc, &insn, &mut self.text);
        }
        let place = Place {
            start: run.start,
            insns: run.insns,
            space,
            from: from as u32,
            len: (self.text.len() - from) as u32,
        };
        if let Some(slot) = self.places.get_mut(index(run)) {
            *slot = place;
        }
        place
    }
}

/// Where a run is remembered.
#[inline]
fn index(run: &Run) -> usize {
    let key = (run.start >> 1) ^ u64::from(run.insns) << 40;
    // The golden ratio spreads what is near.
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize
}

#[cfg(test)]
mod tests;
