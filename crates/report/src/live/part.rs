//! Parts of a trace, decoded when they are asked for.

use super::{ANSWER, Live};
use crate::recent::{Passed, Snapshot};
use hartrace_analyze::{
    Grouping, Measure, Profiler, Slice, SliceSummary, Timeline, TimelineSink as _, TrackId,
    TrackSlices,
};
use hartrace_flow::{
    Consumer, DataAccess, Event, HartId, Image, Interpolate, Ownership, Run, SpaceId,
};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Instructions that are decoded for one answer. A larger part is shown as the index
/// has it.
const MOST: u64 = 40_000_000;

/// How long an answer may take, where a trace can only be decoded from its start.
const PATIENCE: Duration = Duration::from_secs(10);

/// Instructions after which the time is looked at.
const LOOK: u64 = 1 << 18;

/// What an answer costs.
struct Effort {
    insns: u64,
    /// Where instructions are not limited: when to give up, and how many until the next
    /// look at the time.
    until: Option<Instant>,
    next: u64,
    is_over: bool,
}

impl Effort {
    fn new(from_start: bool) -> Effort {
        Effort {
            insns: 0,
            until: from_start.then(|| Instant::now() + PATIENCE),
            next: LOOK,
            is_over: false,
        }
    }

    fn spend(&mut self, insns: u64) {
        self.insns += insns;
        match self.until {
            None => self.is_over |= self.insns > MOST,
            Some(until) if self.insns >= self.next => {
                self.next = self.insns + LOOK;
                self.is_over |= Instant::now() > until;
            }
            Some(_) => {}
        }
    }
}

/// A part of a track, without slices shorter than a width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) track: usize,
    pub(super) range: (u64, u64),
    pub(super) width: u64,
}

/// Passes events on until a hart has passed a place on the axis.
struct Until<'c> {
    out: &'c mut dyn Consumer,
    hart: HartId,
    axis: Measure,
    until: u64,
    /// Instructions of the hart.
    insn: u64,
    time: u64,
    effort: Effort,
}

impl Until<'_> {
    fn is_done(&self) -> bool {
        let now = match self.axis {
            Measure::Instructions => self.insn,
            Measure::Time => self.time,
        };
        now > self.until || self.effort.is_over
    }

    fn flow(&self) -> ControlFlow<()> {
        match self.is_done() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn count(&mut self, hart: HartId, runs: &[Run]) {
        let insns: u64 = runs.iter().map(|run| u64::from(run.insns)).sum();
        self.effort.spend(insns);
        if hart == self.hart {
            self.insn += insns;
        }
    }
}

impl Consumer for Until<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.flow()?;
        match event {
            Event::Run(run) => self.count(hart, std::slice::from_ref(run)),
            Event::Time(time) if hart == self.hart => self.time = self.time.max(*time),
            _ => {}
        }
        let _ = self.out.event(hart, event);
        self.flow()
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.flow()?;
        self.count(hart, runs);
        let _ = self.out.runs(hart, runs);
        self.flow()
    }

    fn accesses(&mut self, _: HartId, _: &[DataAccess]) -> ControlFlow<()> {
        self.flow()
    }
}

impl Live<'_> {
    /// The slices of a part, decoded; `None` if that is not possible, or too much.
    pub(super) fn part(&self, wanted: Wanted) -> Option<Vec<Slice>> {
        let (replay, index) = (self.replay.as_ref()?, &self.index);
        let Wanted {
            track,
            range: (from, until),
            width,
        } = wanted;
        let whole = index.tracks.get(track)?;
        let (axis, hart) = (index.scale.measure, whole.track.hart);
        // What the index has not is shorter than its width: it begins and ends here.
        let stop = index.stop_before(hart, from.saturating_sub(index.width));
        let mut summary = SliceSummary::new(axis, ANSWER).merging(width);
        for (id, known) in (0u32..).zip(&index.tracks) {
            summary.track(TrackId(id), &known.track);
        }
        let timeline = Timeline::of_part(&mut summary, index.threads.iter().copied());
        let functions = index.functions.clone();
        let mut profiler = Profiler::new(self.image, functions, Grouping::default(), timeline);
        let mut harts = Vec::new();
        if let Some((_, stop)) = stop {
            harts = profiler.restore(&stop.state)?;
        }
        let known = stop.and_then(|(_, stop)| stop.harts.iter().find(|known| known.0 == hart));
        let place = stop.map(|(place, _)| *place);
        let mut timed = Interpolate::new(self.image, &mut profiler);
        for (id, time) in harts {
            if let Some(time) = time {
                timed.go_on(id, time);
            }
        }
        let mut bounded = Until {
            out: &mut timed,
            hart,
            axis,
            until: until.saturating_add(index.width),
            insn: known.map_or(0, |known| known.1),
            time: 0,
            effort: Effort::new(index.stops.is_empty()),
        };
        replay(place, &mut bounded);
        let is_whole = !bounded.effort.is_over;
        timed.finish();
        let (_, timeline) = profiler.finish();
        timeline.finish();
        let (tracks, _) = summary.finish();
        let found = tracks.into_iter().nth(track).filter(|_| is_whole)?;
        Some(settle(found, whole, axis, (from, until)))
    }

    /// The instructions of a hart from a place on: the run that is there and those after
    /// it; `None` if that is not possible, or too much.
    pub(super) fn snapshot(&self, hart: HartId, at: u64, count: u64) -> Option<Snapshot> {
        let (replay, index) = (self.replay.as_ref()?, &self.index);
        let stop = index.stop_before(hart, at);
        let known = stop.and_then(|(_, stop)| stop.harts.iter().find(|known| known.0 == hart));
        let mut taken = Taken {
            image: self.image,
            hart,
            axis: index.scale.measure,
            at,
            left: count,
            insn: known.map_or(0, |known| known.1),
            time: known.and_then(|known| known.2),
            space: SpaceId::FIRST,
            before: None,
            runs: Vec::new(),
            effort: Effort::new(index.stops.is_empty()),
        };
        let place = stop.map(|(place, _)| *place);
        match index.scale.measure {
            Measure::Instructions => replay(place, &mut taken),
            Measure::Time => {
                let mut timed = Interpolate::new(self.image, &mut taken);
                let known = stop.map_or(&[][..], |(_, stop)| stop.harts.as_slice());
                for (id, _, time) in known {
                    if let Some(time) = time {
                        timed.go_on(*id, *time);
                    }
                }
                replay(place, &mut timed);
                timed.finish();
            }
        }
        if taken.effort.is_over && taken.left > 0 {
            return None;
        }
        // After the last timestamp.
        let last = taken.before.filter(|_| taken.runs.is_empty());
        taken.runs.extend(last);
        Some(Snapshot {
            hart,
            insn: taken.insn,
            runs: taken.runs,
            last: None,
            outer: Vec::new(),
            is_last: false,
        })
    }
}

/// Puts the slices of a part at the depths that they have in the whole, and gives those
/// that the part has not all of their true begin and end, where the whole has them.
fn settle(
    part: TrackSlices,
    whole: &TrackSlices,
    axis: Measure,
    (from, until): (u64, u64),
) -> Vec<Slice> {
    let around = whole.window(axis, (from, until), 0);
    let lower = part.floor - whole.floor;
    let mut all = Vec::new();
    for mut slice in part.slices {
        slice.depth += lower;
        let (begin, end) = (slice.begin.on(axis), slice.end.on(axis));
        if begin > until || end < from {
            continue;
        }
        let is_cut = slice.flags & (Slice::START_NOT_SEEN | Slice::END_NOT_SEEN) != 0;
        let same = |other: &&Slice| {
            other.depth == slice.depth
                && other.kind == slice.kind
                && other.begin.on(axis) <= begin
                && other.end.on(axis) >= end
        };
        match is_cut.then(|| around.iter().find(same)).flatten() {
            Some(known) => all.push(*known),
            None => all.push(slice),
        }
    }
    all
}

/// Takes the runs of a hart from a place on.
struct Taken<'a> {
    image: &'a Image,
    hart: HartId,
    axis: Measure,
    at: u64,
    /// Instructions that are still wanted.
    left: u64,
    insn: u64,
    time: Option<u64>,
    space: SpaceId,
    /// The last run that did not begin after the place in time.
    before: Option<Passed>,
    runs: Vec<Passed>,
    effort: Effort,
}

impl Taken<'_> {
    fn run(&mut self, run: &Run) {
        let passed = Passed {
            run: *run,
            space: self.space,
            time: self.time,
        };
        // What a page may show, and no more: events that waited come all at once.
        if self.left == 0 {
            return;
        }
        self.insn += u64::from(run.insns);
        let mut wanted = u64::from(run.insns);
        if self.runs.is_empty() {
            match self.axis {
                Measure::Instructions if self.insn <= self.at => return,
                Measure::Instructions => wanted = wanted.min(self.insn - self.at),
                Measure::Time if self.time.unwrap_or(0) <= self.at => {
                    self.before = Some(passed);
                    return;
                }
                Measure::Time => {
                    let before = self.before.take();
                    wanted += before.map_or(0, |before| u64::from(before.run.insns));
                    self.runs.extend(before);
                }
            }
        }
        self.left = self.left.saturating_sub(wanted);
        self.runs.push(passed);
    }
}

impl Consumer for Taken<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.left == 0 || self.effort.is_over {
            return ControlFlow::Break(());
        }
        if let Event::Run(run) = event {
            self.effort.spend(run.insns.into());
        }
        if hart == self.hart {
            match event {
                Event::Run(run) => self.run(run),
                Event::Time(time) => self.time = Some(*time),
                Event::Context(Ownership {
                    context: Some(context),
                    ..
                }) => self.space = self.image.space_of(*context),
                Event::Code(space) => self.space = *space,
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn accesses(&mut self, _: HartId, _: &[DataAccess]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
