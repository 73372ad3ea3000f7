//! The executed instructions of a trace, one by one.
//!
//! The text of a run depends only on the run and on how deep in calls it is. It is
//! formatted once and copied from then on, so a loop costs as much as copying its text.

mod gathered;
mod insn_lines;
mod listing;
mod pcs;
mod pieces;
mod window;

pub use gathered::Gathered;
pub use insn_lines::instruction_text;
pub use listing::{ListingStyle, TraceListing};
pub use pcs::PcList;
pub use pieces::PcPieces;
pub use window::{Point, PointKind, Window, WindowOptions, Windowed};

use crate::spaces::Spaces;
use hartrace_flow::{Image, Run, SpaceId};

/// Writes the lines of a run.
trait Render {
    /// What the lines depend on, beside the instructions.
    fn look(&self, _: &Run, _: u8) -> Look {
        Look::default()
    }

    /// Appends the lines of a run that looks so.
    fn lines(&mut self, image: &Image, space: SpaceId, run: &Run, look: Look, out: &mut Vec<u8>);

    /// The source lines of what was appended last.
    fn heading(&self) -> Heading {
        Heading::default()
    }
}

/// What the lines of a run depend on beside its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    /// Where it went, if that is no matter of its instructions.
    next: u64,
    /// Its exit and its depth.
    rest: u16,
}

/// The source line at the start of a run, which is left out if it is the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Heading {
    /// Bytes at the start of the text.
    bytes: u32,
    /// The source line at the start, and at the end; 0 for none.
    first: u32,
    last: u32,
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
    look: Look,
    insns: u32,
    space: SpaceId,
    from: u32,
    len: u32,
    heading: Heading,
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

    /// Appends the lines of a run at a depth of calls. `line` is the source line before
    /// it and becomes the one at its end.
    #[inline]
    fn append(&mut self, space: SpaceId, run: &Run, depth: u8, line: &mut u32, out: &mut Vec<u8>) {
        let look = self.render.look(run, depth);
        let at = index(run, look);
        let place = self.places.get(at).copied().unwrap_or_default();
        let known = place.start == run.start
            && place.insns == run.insns
            && place.look == look
            && place.space == space;
        let place = if known && place.len > 0 {
            place
        } else {
            self.make(space, run, look)
        };
        let mut from = place.from;
        if place.heading.first == *line {
            from += place.heading.bytes;
        }
        *line = place.heading.last;
        let range = from as usize..(place.from + place.len) as usize;
        out.extend_from_slice(self.text.get(range).unwrap_or_default());
    }

    #[cold]
    fn make(&mut self, space: SpaceId, run: &Run, look: Look) -> Place {
        if self.text.len() > MAX_TEXT {
            self.text.clear();
            self.places.fill(Place::default());
        }
        let from = self.text.len();
        let image = self.image;
        self.render.lines(image, space, run, look, &mut self.text);
        let place = Place {
            start: run.start,
            look,
            insns: run.insns,
            space,
            from: from as u32,
            len: (self.text.len() - from) as u32,
            heading: self.render.heading(),
        };
        if let Some(slot) = self.places.get_mut(index(run, look)) {
            *slot = place;
        }
        place
    }
}

/// Where a run is remembered.
#[inline]
fn index(run: &Run, look: Look) -> usize {
    let key = (run.start >> 1) ^ u64::from(run.insns) << 40 ^ look.next << 20;
    let key = key ^ u64::from(look.rest) << 32;
    // The golden ratio spreads what is near.
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize
}

#[cfg(test)]
mod tests;
