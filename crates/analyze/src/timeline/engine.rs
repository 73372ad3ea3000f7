//! Turns what happens to call stacks into slices on tracks.

use super::{GapSpan, Position, Slice, SliceKind, TimelineSink, Track, TrackId, TrapSpan};
use crate::functions::{FunctionId, Functions};
use crate::profile::{Profiler, Profiling};
use crate::stacks::{
    Entered, Entry, Grouping, How, Left, Moment, OddJump, OpenCall, SavedSink, StackSink, Switched,
};
use hartrace_flow::order;
use hartrace_flow::{Gap, HartId, Image, PerHart, Trap};
use hartrace_flow::{Packer, Unpacker};
use rustc_hash::FxHashMap;

/// Tracks of a hart at most, the last of which is for all other threads.
const MAX_TRACKS: u32 = 64;

/// A number that no thread has: nothing is known of what runs.
const NO_THREAD: u32 = u32::MAX;

/// Gives slices to a [`TimelineSink`]. It takes the calls of a
/// [`Profiler`](crate::Profiler) or a [`Follower`](crate::Follower).
///
/// A thread has a track of its own. Where it does not run, its track has a slice that
/// says so ([`SliceKind::Away`]). After a gap it may not be known which thread runs;
/// what follows then stays on the track, in new slices. Several threads may share a
/// track for that reason, or because there are too many of them: the slices of one end
/// where those of the other begin.
pub struct Timeline<'s> {
    sink: &'s mut dyn TimelineSink,
    harts: PerHart<Line>,
    tracks: u32,
    /// Tracks of threads, and depths of their outermost slices, from another timeline of
    /// the same trace.
    known: FxHashMap<(HartId, u32), u32>,
    bases: FxHashMap<(HartId, u32), i32>,
}

/// The timeline of a hart.
#[derive(Default)]
struct Line {
    /// The thread that runs; `None` before the first.
    thread: Option<u32>,
    track: u32,
    stack: Stack,
    /// Threads that do not run and have slices that have not ended.
    waiting: FxHashMap<u32, (u32, Stack)>,
    /// The track of each thread, and whose slices are on each track.
    tracks: FxHashMap<u32, u32>,
    owners: FxHashMap<u32, u32>,
    count: u32,
    rest: Option<u32>,
    now: Position,
    is_timed: bool,
    /// A gap that ends when the time is known again.
    gap: Option<GapSpan>,
    /// Where tracing was turned off; a gap if it is turned on again.
    off: Option<GapSpan>,
}

/// Slices of a thread that have not ended, outermost first.
#[derive(Default)]
struct Stack {
    open: Vec<Slice>,
    /// What is known of those that are traps.
    traps: Vec<TrapSpan>,
    /// Depth of the outermost slice.
    base: i32,
    /// Where the thread started.
    began: Position,
    /// Where the innermost trap returned to another thread, which runs now.
    returned: Option<Position>,
}

impl Stack {
    fn depth(&self) -> i32 {
        self.base.saturating_add(self.open.len() as i32)
    }

    /// The innermost function.
    fn function(&self) -> Option<FunctionId> {
        self.open.last().and_then(|slice| slice.kind.function())
    }

    #[inline]
    fn push(&mut self, kind: SliceKind, flags: u8, at: Position) -> Slice {
        let slice = Slice {
            begin: at,
            end: at,
            kind,
            depth: self.depth(),
            flags,
            merged: 0,
        };
        self.open.push(slice);
        slice
    }
}

impl Line {
    /// The position of a moment.
    #[inline]
    fn place(&mut self, at: Moment) -> Position {
        self.now.insn = at.insn;
        if let Some(time) = at.time {
            self.now.time = self.now.time.max(time);
            self.is_timed = true;
        }
        self.now
    }

    /// Ends the innermost slice of a stack.
    #[inline]
    fn pop(
        stack: &mut Stack,
        (track, at): (u32, Position),
        flags: u8,
        sink: &mut dyn TimelineSink,
    ) {
        let Some(mut slice) = stack.open.pop() else {
            return;
        };
        slice.end = at;
        slice.flags |= flags;
        match slice.kind {
            SliceKind::Trap(_) => Line::end_trap(stack, at, flags, sink),
            // A thread that does not come back has spent nothing in others.
            SliceKind::Away if flags & Slice::END_NOT_SEEN != 0 => {}
            SliceKind::Away => stack.traps.iter_mut().for_each(|trap| trap.spend(&slice)),
            _ => {}
        }
        sink.end(TrackId(track), &slice);
    }

    #[cold]
    fn end_trap(stack: &mut Stack, at: Position, flags: u8, sink: &mut dyn TimelineSink) {
        let returned = stack.returned.take();
        if let Some(mut trap) = stack.traps.pop() {
            trap.end = match flags & Slice::END_NOT_SEEN {
                0 => Some(at),
                _ => returned,
            };
            sink.trap(&trap);
        }
    }

    /// Ends all slices of a stack.
    fn close(mut stack: Stack, (track, at): (u32, Position), sink: &mut dyn TimelineSink) {
        while !stack.open.is_empty() {
            Line::pop(&mut stack, (track, at), Slice::END_NOT_SEEN, sink);
        }
    }

    /// Begins a trap.
    fn trap(&mut self, trap: &Trap, flags: u8, at: Position, sink: &mut dyn TimelineSink) {
        let stack = &mut self.stack;
        let span = TrapSpan {
            track: TrackId(self.track),
            begin: at,
            start_seen: flags & Slice::START_NOT_SEEN == 0,
            end: None,
            cause: trap.cause,
            epc: trap.epc,
            tval: trap.tval,
            interrupted: stack.function(),
            handler: None,
            nesting: stack.traps.len() as u32,
            depth: stack.depth(),
            away: Position::default(),
            pending: trap.pending,
        };
        stack.traps.push(span);
        sink.trapped(&span);
        let slice = stack.push(SliceKind::Trap(trap.cause), flags, at);
        sink.begin(TrackId(self.track), &slice);
    }

    /// Begins a call.
    #[inline]
    fn call(&mut self, kind: SliceKind, flags: u8, at: Position, sink: &mut dyn TimelineSink) {
        let stack = &mut self.stack;
        if let Some(Slice {
            kind: SliceKind::Trap(_),
            ..
        }) = stack.open.last()
            && let Some(trap) = stack.traps.last_mut()
            && trap.handler.is_none()
        {
            trap.handler = kind.function();
        }
        let slice = stack.push(kind, flags, at);
        sink.begin(TrackId(self.track), &slice);
    }

    /// The thread that runs is put aside.
    fn put_aside(&mut self, to: &Switched<'_>, at: Position, sink: &mut dyn TimelineSink) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let mut stack = std::mem::take(&mut self.stack);
        if stack.open.is_empty() {
            return;
        }
        stack.returned = to.by_trap_return.then_some(at);
        let flags = match to.by_trap_return {
            true => Slice::BY_TRAP_RETURN,
            false => 0,
        };
        let slice = stack.push(SliceKind::Away, flags, at);
        sink.begin(TrackId(self.track), &slice);
        self.waiting.insert(thread, (self.track, stack));
    }

    /// Ends the slices of the thread that a track shows.
    fn vacate(&mut self, track: u32, at: Position, sink: &mut dyn TimelineSink) {
        let Some(owner) = self.owners.remove(&track) else {
            return;
        };
        if self.thread == Some(owner) {
            let stack = std::mem::take(&mut self.stack);
            Line::close(stack, (track, at), sink);
            self.thread = None;
        } else if let Some((track, stack)) = self.waiting.remove(&owner) {
            Line::close(stack, (track, at), sink);
        }
    }

    /// Starts what a thread has open when it is not known here.
    fn rebuild(&mut self, to: &Switched<'_>, at: Position, sink: &mut dyn TimelineSink) {
        self.stack.began = at;
        for open in to.open() {
            match open {
                OpenCall::Call(function) => {
                    self.call(SliceKind::Call(function), Slice::START_NOT_SEEN, at, sink);
                }
                OpenCall::Trap(cause, epc) => {
                    let trap = Trap {
                        epc,
                        handler: None,
                        cause,
                        tval: None,
                        pending: None,
                    };
                    self.trap(&trap, Slice::START_NOT_SEEN, at, sink);
                }
            }
        }
    }
}

impl<'s> Timeline<'s> {
    /// A timeline for a sink.
    pub fn new(sink: &'s mut dyn TimelineSink) -> Timeline<'s> {
        Timeline {
            sink,
            harts: PerHart::default(),
            tracks: 0,
            known: FxHashMap::default(),
            bases: FxHashMap::default(),
        }
    }

    /// A profiler that makes a timeline; it is compiled here, whoever uses it.
    pub fn profiler<'a>(
        image: &'a Image,
        functions: Functions,
        grouping: Grouping,
        sink: &'s mut dyn TimelineSink,
    ) -> Box<dyn Profiling<Timeline<'s>> + 'a>
    where
        's: 'a,
    {
        let timeline = Timeline::new(sink);
        Box::new(Profiler::new(image, functions, grouping, timeline))
    }

    /// A timeline of a part of a trace, of which the timeline of the whole trace has given
    /// the tracks of threads ([`TimelineSink::thread`]).
    pub fn of_part(
        sink: &'s mut dyn TimelineSink,
        threads: impl IntoIterator<Item = (HartId, u32, TrackId)>,
    ) -> Timeline<'s> {
        let mut timeline = Timeline::new(sink);
        for (hart, thread, track) in threads {
            timeline.known.insert((hart, thread), track.0);
            timeline.tracks = timeline.tracks.max(track.0 + 1);
        }
        timeline
    }

    /// No more events: ends what has not ended.
    pub fn finish(mut self) {
        for (_, line) in self.harts.iter_mut() {
            let at = line.now;
            if let Some(gap) = line.gap.take() {
                self.sink.gap(&GapSpan { end: at, ..gap });
            }
            let stack = std::mem::take(&mut line.stack);
            Line::close(stack, (line.track, at), self.sink);
            let mut waiting: Vec<_> = line.waiting.drain().collect();
            order::sort_by_key(&mut waiting, |(thread, _)| *thread);
            for (_, (track, stack)) in waiting {
                Line::close(stack, (track, at), self.sink);
            }
        }
    }

    /// Nothing has run on a hart: a gap gets the track of what follows it.
    fn start_with_gap(&mut self, id: HartId) {
        let track = Track {
            hart: id,
            context: None,
            number: 0,
            is_rest: false,
        };
        let line = self.harts.of(id);
        (line.thread, line.track) = (Some(NO_THREAD), self.tracks);
        line.count += 1;
        self.tracks += 1;
        self.sink.track(TrackId(line.track), &track);
    }

    /// The track of a thread that has none yet.
    fn new_track(&mut self, id: HartId, to: &Switched<'_>) -> u32 {
        let line = self.harts.of(id);
        if let Some(rest) = line.rest {
            return rest;
        }
        let track = self.tracks;
        let is_rest = line.count + 1 >= MAX_TRACKS;
        let described = Track {
            hart: id,
            context: to.context.filter(|_| !is_rest),
            number: line.count,
            is_rest,
        };
        line.count += 1;
        line.rest = is_rest.then_some(track);
        self.tracks += 1;
        self.sink.track(TrackId(track), &described);
        track
    }
}

/// What a timeline of a part needs beside the stacks.
impl SavedSink for Timeline<'_> {
    fn save(&self, out: &mut Packer) {
        let mut bases = Vec::new();
        for (hart, line) in self.harts.iter() {
            let waiting = line.waiting.iter().map(|(n, (_, stack))| (*n, stack.base));
            let all = line.thread.map(|n| (n, line.stack.base)).into_iter();
            let found = all.chain(waiting).filter(|(_, base)| *base != 0);
            bases.extend(found.map(|(thread, base)| (hart, thread, base)));
        }
        bases.sort_unstable();
        out.number(bases.len() as u64);
        for (hart, thread, base) in bases {
            out.number(hart.0.into());
            out.number(thread.into());
            out.signed(base.into());
        }
    }

    fn restore(&mut self, saved: &mut Unpacker<'_>) -> Option<()> {
        for _ in 0..saved.count()? {
            let hart = HartId(u32::try_from(saved.number()?).ok()?);
            let thread = u32::try_from(saved.number()?).ok()?;
            let base = i32::try_from(saved.signed()?).ok()?;
            self.bases.insert((hart, thread), base);
        }
        Some(())
    }
}

impl StackSink for Timeline<'_> {
    const TIMES: bool = true;

    fn unnamed(&mut self, address: u64) {
        self.sink.unnamed(address);
    }

    #[inline]
    fn entered(&mut self, hart: HartId, call: &Entered) {
        let line = self.harts.of(hart);
        let at = line.place(call.at);
        let mut flags = if call.whole { 0 } else { Slice::START_NOT_SEEN };
        let kind = match call.by {
            Entry::TailCall => SliceKind::TailCall(call.function),
            _ => SliceKind::Call(call.function),
        };
        if call.by != Entry::Return {
            return line.call(kind, flags, at, self.sink);
        }
        flags |= Slice::INFERRED;
        if !line.stack.open.is_empty() {
            return line.call(kind, flags, at, self.sink);
        }
        // What it called is on the track already, at the depth of the base.
        line.stack.base = line.stack.base.saturating_sub(1);
        let began = line.stack.began;
        line.call(kind, flags, began, self.sink);
    }

    #[inline]
    fn left(&mut self, hart: HartId, call: &Left) {
        let line = self.harts.of(hart);
        let at = line.place(call.at);
        let flags = match call.how {
            How::Returned | How::TailCall => 0,
            How::Unwound => Slice::UNWOUND,
            How::Lost => Slice::END_NOT_SEEN,
        };
        let (stack, place) = (&mut line.stack, (line.track, at));
        // A trap that interrupted it has not ended: all of the stack is lost.
        while let Some(Slice {
            kind: SliceKind::Trap(_),
            ..
        }) = stack.open.last()
        {
            Line::pop(stack, place, Slice::END_NOT_SEEN, self.sink);
        }
        Line::pop(stack, place, flags, self.sink);
    }

    fn trapped(&mut self, hart: HartId, trap: &Trap, at: Moment) {
        let line = self.harts.of(hart);
        let at = line.place(at);
        line.trap(trap, 0, at, self.sink);
    }

    fn resumed(&mut self, hart: HartId, how: How, at: Moment) {
        let line = self.harts.of(hart);
        let at = line.place(at);
        let flags = match how {
            How::Returned | How::TailCall => 0,
            How::Unwound => Slice::UNWOUND,
            How::Lost => Slice::END_NOT_SEEN,
        };
        let (stack, place) = (&mut line.stack, (line.track, at));
        while let Some(slice) = stack.open.last() {
            let is_trap = matches!(slice.kind, SliceKind::Trap(_));
            Line::pop(stack, place, flags, self.sink);
            if is_trap {
                return;
            }
        }
    }

    fn switched(&mut self, hart: HartId, to: &Switched<'_>) {
        let line = self.harts.of(hart);
        if line.thread == Some(to.number) {
            return;
        }
        let at = line.place(to.at);
        let before = line.thread.map(|_| line.track);
        let earlier = || self.known.get(&(hart, to.number));
        let known = line.tracks.get(&to.number).or_else(earlier).copied();
        let track = match known.or(before.filter(|_| to.unsure)) {
            Some(track) => track,
            None => self.new_track(hart, to),
        };
        let line = self.harts.of(hart);
        if line.owners.get(&track) != Some(&to.number) {
            line.vacate(track, at, self.sink);
        }
        line.put_aside(to, at, self.sink);
        if line.tracks.insert(to.number, track).is_none() {
            self.sink.thread(TrackId(track), hart, to.number);
        }
        line.owners.insert(track, to.number);
        (line.thread, line.track) = (Some(to.number), track);
        match line.waiting.remove(&to.number) {
            Some((_, stack)) => {
                line.stack = stack;
                line.stack.returned = None;
                Line::pop(&mut line.stack, (track, at), 0, self.sink);
            }
            None => {
                let base = self.bases.get(&(hart, to.number));
                line.stack.base = base.copied().unwrap_or(0);
                line.rebuild(to, at, self.sink);
            }
        }
    }

    fn ended(&mut self, hart: HartId, thread: u32, at: Moment) {
        let line = self.harts.of(hart);
        let at = line.place(at);
        let track = line.tracks.remove(&thread);
        if let Some(track) = track.filter(|track| line.owners.get(track) == Some(&thread)) {
            let runs = line.thread == Some(thread);
            line.vacate(track, at, self.sink);
            // What follows, if nothing is known of it, stays on the track.
            if runs {
                line.thread = Some(thread);
            }
        }
    }

    fn gap(&mut self, hart: HartId, gap: Option<&Gap>, at: Moment) {
        let line = self.harts.of(hart);
        let at = line.place(at);
        if line.thread.is_none() {
            if gap.is_none() {
                return;
            }
            self.start_with_gap(hart);
        }
        let line = self.harts.of(hart);
        let span = GapSpan {
            track: TrackId(line.track),
            begin: at,
            end: at,
            depth: line.stack.depth(),
            gap: gap.copied(),
        };
        let span = match (gap, line.off.take()) {
            (None, None) => {
                line.off = Some(span);
                return;
            }
            (None, Some(off)) => off,
            (Some(_), _) => span,
        };
        if let Some(open) = line.gap.take() {
            self.sink.gap(&GapSpan { end: at, ..open });
        }
        match line.is_timed {
            true => line.gap = Some(span),
            false => self.sink.gap(&span),
        }
    }

    fn timed(&mut self, hart: HartId, at: Moment) {
        let line = self.harts.of(hart);
        let at = line.place(at);
        if let Some(open) = line.gap.take() {
            self.sink.gap(&GapSpan { end: at, ..open });
        }
    }

    fn odd(&mut self, hart: HartId, jump: &OddJump) {
        if jump.doubtful
            && let Some(slice) = self.harts.of(hart).stack.open.last_mut()
        {
            slice.flags |= Slice::DOUBTFUL;
        }
    }
}
