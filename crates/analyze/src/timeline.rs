//! Timelines: what ran when, as slices on tracks.
//!
//! A [`Timeline`] takes what happens to call stacks (it is a [`StackSink`]) and gives
//! slices to a [`TimelineSink`], from which a page, a viewer or a file for another tool
//! is made. Each thread of each hart has a track. The slices of a track are nested:
//! each lies inside the one of the next lower depth.
//!
//! * [`SliceSummary`] keeps slices in bounded memory: what is too short to be seen is
//!   merged with its neighbours.
//! * [`TrapTable`] keeps traps and measures them by cause; [`GapTable`] keeps gaps.
//! * [`Export`] gives slices to the writer of a file for a viewer: [`Perfetto`], [`Chrome`],
//!   [`Waves`], [`Ctf`].
//! * [`InterruptTable`] measures interrupts by cause, with what they interrupted.
//!
//! [`StackSink`]: crate::StackSink

mod engine;
mod export;
mod gaps;
mod interrupts;
mod summary;
mod traps;

pub use engine::Timeline;
pub use export::{
    Arrow, Beginning, Category, Chrome, Counter, Ctf, Export, ExportOptions, Exported, FileTrack,
    Held, OnePart, Parts, Perfetto, Recorder, Scratch, SignalOptions, Signals, SliceWriter,
    Timescale, Waves, WrittenPart,
};
pub use gaps::GapTable;
pub use interrupts::{InterruptTable, Interrupts, Preempted, WorstTrap};
pub use summary::{Merging, SliceSummary, TrackSlices};
pub use traps::{CauseSpans, TrapTable};

use crate::functions::FunctionId;
use crate::stacks::Measure;
use hartrace_flow::{Cause, Context, Gap, HartId};

/// A track of a timeline; numbered from 0 in the order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

impl TrackId {
    /// Its number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// The hart.
    pub hart: HartId,
    /// The context, where contexts are reported.
    pub context: Option<Context>,
    /// Which of the tracks of the hart it is, from 0.
    pub number: u32,
    /// It shows all threads for which there are no more tracks.
    pub is_rest: bool,
}

/// A place on a timeline, between two instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Instructions of the hart before it.
    pub insn: u64,
    /// Its time in the unit of the trace. Where it is not known, the last known one;
    /// 0 before the first.
    pub time: u64,
}

impl Position {
    /// It on an axis.
    #[must_use]
    #[inline]
    pub const fn on(self, axis: Measure) -> u64 {
        match axis {
            Measure::Instructions => self.insn,
            Measure::Time => self.time,
        }
    }
}

/// What a slice shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceKind {
    /// A call of a function, or the function in which the trace or a handler starts.
    Call(FunctionId),
    /// A function in the place of another.
    TailCall(FunctionId),
    /// A trap, up to the return from it.
    Trap(Cause),
    /// The hart runs another thread.
    Away,
    /// Several slices that are too short to be shown, and a function that has a large
    /// share of them; `None` where that is none.
    Merged(Option<FunctionId>),
}

impl SliceKind {
    /// The function it is of.
    #[must_use]
    pub const fn function(self) -> Option<FunctionId> {
        match self {
            SliceKind::Call(function) | SliceKind::TailCall(function) => Some(function),
            SliceKind::Merged(function) => function,
            SliceKind::Trap(_) | SliceKind::Away => None,
        }
    }
}

/// Something that took a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it begins.
    pub begin: Position,
    /// Where it ends; the same as `begin` as long as it has not ended.
    pub end: Position,
    /// What it is.
    pub kind: SliceKind,
    /// How many slices it is in. Negative in callers that were found when they were
    /// returned to: what they called has been given before, as not inside anything.
    pub depth: i32,
    /// What else is known of it: [`Slice::START_NOT_SEEN`] and so on.
    pub flags: u8,
    /// How many slices were merged in it; 0 for one of its own.
    pub merged: u32,
}

impl Slice {
    /// It began before the trace, in a gap, or while its thread did not run.
    pub const START_NOT_SEEN: u8 = 1;
    /// It ended after the trace, in a gap, or while its thread did not run.
    pub const END_NOT_SEEN: u8 = 2;
    /// A jump in it contradicts the call stack, and nothing explains it.
    pub const DOUBTFUL: u8 = 4;
    /// It was found by a return to it; its call is not in the trace.
    pub const INFERRED: u8 = 8;
    /// It did not return, but was left for a function further out.
    pub const UNWOUND: u8 = 16;
    /// The hart went to another thread with a return from a trap.
    pub const BY_TRAP_RETURN: u8 = 32;

    /// Its length on an axis.
    #[must_use]
    #[inline]
    pub const fn length(&self, axis: Measure) -> u64 {
        self.end.on(axis).saturating_sub(self.begin.on(axis))
    }
}

/// A trap with all that is known when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapSpan {
    /// The track it is on.
    pub track: TrackId,
    /// Where it was taken.
    pub begin: Position,
    /// Whether it was taken there. Otherwise it is a trap of another thread, which this
    /// one continues: where a handler changes the context, both have it.
    pub start_seen: bool,
    /// Where it returned; `None` if it never did. One that returned to another thread
    /// returns here when its own thread continues, or, if that does not happen, where it
    /// left it.
    pub end: Option<Position>,
    /// Why it was taken.
    pub cause: Cause,
    /// The instruction that trapped, or before which an interrupt was taken.
    pub epc: Option<u64>,
    /// The trap value.
    pub tval: Option<u64>,
    /// The function that was interrupted.
    pub interrupted: Option<FunctionId>,
    /// The function that handled it.
    pub handler: Option<FunctionId>,
    /// Traps that it interrupted.
    pub nesting: u32,
    /// The depth of its slice.
    pub depth: i32,
    /// How much of it the hart spent in other threads.
    pub away: Position,
    /// When an interrupt became pending, in the unit of the trace, if that is reported.
    pub pending: Option<u64>,
}

impl TrapSpan {
    /// How long it took on an axis, without other threads; `None` if it never returned,
    /// or if it was taken before the first known time.
    #[must_use]
    pub fn duration(&self, axis: Measure) -> Option<u64> {
        if axis == Measure::Time && self.begin.time == 0 {
            return None;
        }
        let length = self.end?.on(axis).saturating_sub(self.begin.on(axis));
        Some(length.saturating_sub(self.away.on(axis)))
    }

    /// The time from when an interrupt became pending to the first instruction of its
    /// handler; `None` if either is not known.
    #[must_use]
    pub fn latency(&self) -> Option<u64> {
        let taken = Some(self.begin.time).filter(|&time| time > 0)?;
        taken.checked_sub(self.pending?)
    }

    /// The hart was in another thread meanwhile.
    fn spend(&mut self, away: &Slice) {
        self.away.insn += away.length(Measure::Instructions);
        self.away.time += away.length(Measure::Time);
    }
}

/// A part of the execution that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapSpan {
    /// The track on which the hart was.
    pub track: TrackId,
    /// Where the last instruction before it is.
    pub begin: Position,
    /// Where the time is known again after it.
    pub end: Position,
    /// The slices it is in.
    pub depth: i32,
    /// What the trace says of it; `None` where tracing was off.
    pub gap: Option<Gap>,
}

/// Takes a timeline. Slices of a track begin and end in the order of the trace; what
/// ends is always the one that began last and has not ended.
pub trait TimelineSink {
    /// Code at this address that no symbol covers gets an id, if it has none: the next
    /// one.
    fn unnamed(&mut self, address: u64) {
        let _ = address;
    }

    /// A track that what follows may be on.
    fn track(&mut self, id: TrackId, track: &Track) {
        let _ = (id, track);
    }

    /// A thread of a hart is on this track from now on.
    fn thread(&mut self, track: TrackId, hart: HartId, thread: u32) {
        let _ = (track, hart, thread);
    }

    /// A slice begins; it may have begun earlier ([`Slice::INFERRED`]).
    fn begin(&mut self, track: TrackId, slice: &Slice) {
        let _ = (track, slice);
    }

    /// A slice has ended.
    fn end(&mut self, track: TrackId, slice: &Slice) {
        let _ = (track, slice);
    }

    /// A trap was taken; its slice begins next. Nothing is known yet of its end.
    fn trapped(&mut self, trap: &TrapSpan) {
        let _ = trap;
    }

    /// A trap has ended, or will not end.
    fn trap(&mut self, trap: &TrapSpan) {
        let _ = trap;
    }

    /// Something is missing.
    fn gap(&mut self, gap: &GapSpan) {
        let _ = gap;
    }
}

#[cfg(test)]
mod tests;
