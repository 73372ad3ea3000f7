//! Arrows of a timeline: from a trap to its handler, and from the return from it to where
//! the hart resumes.
//!
//! A trap that returns to what it interrupted has an arrow from its end to there. One that
//! returns to another thread has not ended: the arrow begins where the hart leaves the
//! thread, and ends in the other one, after its trap or at its first slice.

use super::{Arrow, Export};
use crate::timeline::{Position, Slice, SliceKind, TrackId};
use hartrace_flow::{HartId, PerHart};

/// Numbers of arrows, and those that have not ended.
#[derive(Default)]
pub(super) struct Arrows {
    count: u64,
    harts: PerHart<OfHart>,
}

#[derive(Default)]
struct OfHart {
    /// An arrow to another thread, which ends where this one continues, and where it began.
    returning: Option<(u64, Position)>,
    /// The track that runs.
    running: Option<TrackId>,
}

impl Arrows {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The arrow of a slice that begins inside another, of which the kind and the arrow
    /// are given.
    pub(super) fn begin(
        &mut self,
        hart: HartId,
        slice: &Slice,
        outer: Option<(SliceKind, Arrow)>,
    ) -> Arrow {
        match (slice.kind, outer) {
            (SliceKind::Trap(_), _) => Arrow::From(self.next()),
            (SliceKind::Away, _) if slice.flags & Slice::BY_TRAP_RETURN != 0 => {
                let arrow = self.next();
                self.harts.of(hart).returning = Some((arrow, slice.begin));
                Arrow::From(arrow)
            }
            (SliceKind::Away, _) => Arrow::None,
            (SliceKind::Call(_), Some((SliceKind::Trap(_), Arrow::From(arrow)))) => {
                Arrow::To(arrow)
            }
            _ => match self.harts.of(hart).returning.take() {
                Some((arrow, _)) => Arrow::To(arrow),
                None => Arrow::None,
            },
        }
    }

    /// The arrow from the end of a slice that is written, and the one that ends after it.
    pub(super) fn end(&mut self, hart: HartId, slice: &Slice) -> (Arrow, Option<u64>) {
        let lost = Slice::END_NOT_SEEN | Slice::UNWOUND;
        if !matches!(slice.kind, SliceKind::Trap(_)) || slice.flags & lost != 0 {
            return (Arrow::None, None);
        }
        match self.harts.of(hart).returning.take() {
            Some((arrow, _)) => (Arrow::None, Some(arrow)),
            None => {
                let arrow = self.next();
                (Arrow::From(arrow), Some(arrow))
            }
        }
    }
}

impl Export<'_> {
    /// Something happens on a track, which the hart runs from here on if `runs`. A thread
    /// to which a trap returned, and in which no trap ended, has gone on where it was: the
    /// arrow ends there.
    pub(super) fn settle(&mut self, track: TrackId, at: Position, runs: bool) {
        let Some(out) = self.tracks.get(track.index()) else {
            return;
        };
        let of = self.arrows.harts.of(out.hart);
        let before = of.running;
        if runs {
            of.running = Some(track);
        }
        if let Some((arrow, began)) = of.returning.filter(|(_, began)| began.insn < at.insn) {
            of.returning = None;
            let began = began.on(self.options.axis);
            let to = before.and_then(|track| self.tracks.get(track.index()));
            if let Some(to) = to.filter(|to| to.written == to.open.len() && to.written > 0) {
                let result = self.writer.resumed(to.id, began, arrow);
                self.tried(result);
            }
        }
        let Some(out) = self.tracks.get(track.index()) else {
            return;
        };
        if runs && before != Some(track) && self.error.is_none() {
            let at = at.on(self.options.axis).max(out.now);
            let result = self.writer.runs(out.id, at);
            self.tried(result);
        }
    }
}
