//! Timelines for viewers: slices are written while the trace is read.
//!
//! A slice is written when it has lasted [`ExportOptions::min_duration`]. What it is in
//! began earlier, so that is written already, and what ended before it is written too:
//! the begins and ends of a track are in order of time, and memory holds no more than
//! what has not ended.

mod arrows;
mod chrome;
mod ctf;
mod held;
mod parts;
mod perfetto;
mod rate;
mod signals;
mod spool;
mod timescale;
mod waves;
mod writer;

pub use chrome::Chrome;
pub use ctf::Ctf;
pub use held::Held;
pub use parts::{OnePart, Parts, WrittenPart};
pub use perfetto::Perfetto;
pub use signals::{Recorder, SignalOptions, Signals};
pub use spool::Scratch;
pub use timescale::Timescale;
pub use waves::Waves;
pub use writer::{Arrow, Beginning, Category, Counter, FileTrack, SliceWriter};

use super::{GapSpan, Position, Slice, SliceKind, TimelineSink, Track, TrackId, TrapSpan};
use crate::causes::cause_name;
use crate::functions::{FunctionId, Functions};
use crate::stacks::Measure;
use arrows::Arrows;
use hartrace_flow::{Cause, Context, HartId, PerHart};
use rate::Rate;
use rustc_hash::FxHashMap;
use std::io;

/// What of a timeline is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The axis of the timeline.
    pub axis: Measure,
    /// Shorter slices are left out.
    pub min_duration: u64,
    /// Slices inside so many others are left out.
    pub max_depth: usize,
    /// How long a unit of time is, if that is known.
    pub timescale: Option<Timescale>,
}

/// What was written, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Slices that were written.
    pub slices: u64,
    /// Slices that were too short, or not long enough in known time.
    pub too_short: u64,
    /// Slices inside too many others.
    pub too_deep: u64,
    /// Where the last slice ends on the axis.
    pub end: u64,
    /// How many slices that are not too deep have lengths of 0, 1, 2 to 3, 4 to 7 and so
    /// on.
    lengths: Vec<u64>,
}

impl Exported {
    /// The least duration, 0 or a power of two, with which no more than `limit` slices
    /// are written.
    #[must_use]
    pub fn min_duration(&self, limit: u64) -> u64 {
        let mut left: u64 = self.lengths.iter().sum();
        let mut least = 0;
        for (bits, count) in self.lengths.iter().enumerate() {
            if left <= limit {
                break;
            }
            left -= count;
            least = 1u64.checked_shl(bits as u32).unwrap_or(u64::MAX);
        }
        least
    }
}

/// Gives a timeline to a [`SliceWriter`]: a [`TimelineSink`].
pub struct Export<'w> {
    options: ExportOptions,
    writer: &'w mut dyn SliceWriter,
    functions: Functions,
    names: Names,
    tracks: Vec<OutTrack>,
    /// Every track of the file, by its number.
    described: Vec<Described>,
    /// The track of the gaps of each hart.
    gaps: FxHashMap<HartId, (u32, u64)>,
    rates: PerHart<Rate>,
    counters: Vec<Counted>,
    arrows: Arrows,
    /// Of the trap whose slice begins next.
    latency: Option<u64>,
    done: Exported,
    error: Option<io::Error>,
}

/// Values over the axis.
struct Counted {
    name: String,
    values: Vec<(u64, f64)>,
    /// How many of them are in earlier files.
    done: usize,
}

struct Described {
    hart: HartId,
    name: String,
    thread: Option<(u32, Option<Context>)>,
}

struct OutTrack {
    id: u32,
    hart: HartId,
    open: Vec<Open>,
    /// How many of these were written, the outermost first.
    written: usize,
    now: u64,
}

struct Open {
    kind: SliceKind,
    begin: u64,
    arrow: Arrow,
    latency: Option<u64>,
}

/// Names of slices, numbered.
#[derive(Default)]
struct Names {
    functions: FxHashMap<FunctionId, u32>,
    causes: FxHashMap<Cause, u32>,
    list: Vec<String>,
}

impl Names {
    fn add(&mut self, name: String) -> u32 {
        self.list.push(name);
        self.list.len() as u32 - 1
    }

    fn of(&mut self, kind: SliceKind, functions: &Functions) -> u32 {
        match (kind, kind.function()) {
            (SliceKind::Trap(cause), _) => match self.causes.get(&cause) {
                Some(id) => *id,
                None => {
                    let id = self.add(cause_name(cause));
                    self.causes.insert(cause, id);
                    id
                }
            },
            (_, Some(function)) => match self.functions.get(&function) {
                Some(id) => *id,
                None => {
                    let id = self.add(functions.get(function).name.clone());
                    self.functions.insert(function, id);
                    id
                }
            },
            _ => OTHER_THREADS,
        }
    }

    /// A name that few slices have.
    fn text(&mut self, name: &str) -> u32 {
        match self.list.iter().skip(GAP as usize).position(|n| n == name) {
            Some(at) => at as u32 + GAP,
            None => self.add(name.to_owned()),
        }
    }

    /// A slice of a track that begins.
    fn beginning(&mut self, track: u32, open: &Open, functions: &Functions) -> Beginning<'_> {
        let name = self.of(open.kind, functions);
        let text = self.list.get(name as usize);
        let function = open.kind.function();
        Beginning {
            track,
            at: open.begin,
            name: (name, text.map_or("", String::as_str)),
            category: match open.kind {
                SliceKind::Trap(_) => Category::Trap,
                SliceKind::Away => Category::Away,
                _ => Category::Call,
            },
            cause: match open.kind {
                SliceKind::Trap(cause) => Some(cause),
                _ => None,
            },
            address: function.map(|id| functions.get(id).start),
            latency: open.latency,
            arrow: open.arrow,
        }
    }
}

/// Numbers of the first names.
const OTHER_THREADS: u32 = 0;
const GAP: u32 = 1;

impl<'w> Export<'w> {
    /// Writes slices of these functions with `writer`.
    pub fn new(
        options: ExportOptions,
        functions: Functions,
        writer: &'w mut dyn SliceWriter,
    ) -> Export<'w> {
        let mut names = Names::default();
        names.add("other threads".to_owned());
        names.add("gap".to_owned());
        Export {
            options,
            writer,
            functions,
            names,
            tracks: Vec::new(),
            described: Vec::new(),
            gaps: FxHashMap::default(),
            rates: PerHart::default(),
            counters: Vec::new(),
            arrows: Arrows::default(),
            latency: None,
            done: Exported {
                lengths: vec![0; 65],
                ..Exported::default()
            },
            error: None,
        }
    }

    /// Values over the axis, such as the bytes of the trace. For a timeline in several
    /// files they are given before the events.
    pub fn counter(&mut self, name: &str, values: Vec<(u64, f64)>) {
        self.counters.push(Counted {
            name: name.to_owned(),
            values,
            done: 0,
        });
    }

    /// No more slices: writes counters, those given and instructions over time.
    ///
    /// # Errors
    ///
    /// The first write that failed.
    pub fn finish(mut self) -> io::Result<Exported> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.write_counters(u64::MAX)?;
        self.writer.finish()?;
        Ok(self.done)
    }

    /// No more slices, and nothing more is written: only what was measured is of interest.
    #[must_use]
    pub fn measured(self) -> Exported {
        self.done
    }

    /// Writes the values of counters up to a place, in so far as they are not written.
    fn write_counters(&mut self, until: u64) -> io::Result<()> {
        if self.options.axis == Measure::Time {
            let (name, per) = match self.options.timescale {
                Some(scale) => ("instructions per microsecond", scale.per_microsecond()),
                None => ("instructions per 1000 units of time", 1000.0),
            };
            let most = self.writer.most_values();
            for (hart, rate) in self.rates.iter_mut() {
                self.writer.counter(&Counter {
                    name,
                    hart: Some(hart),
                    values: &rate.take(per, most),
                })?;
            }
        }
        for Counted { name, values, done } in &mut self.counters {
            let rest = values.get(*done..).unwrap_or(&[]);
            let count = rest.iter().take_while(|(at, _)| *at < until).count();
            let values = rest.get(..count).unwrap_or(&[]);
            *done += count;
            self.writer.counter(&Counter {
                name,
                hart: None,
                values,
            })?;
        }
        Ok(())
    }

    /// Remembers the first error, and goes on in another file if it is time to.
    fn tried(&mut self, result: io::Result<()>) {
        let result = result.and_then(|()| match self.writer.is_full() {
            true => self.cut(),
            false => Ok(()),
        });
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Goes on in another file: what is open ends in one and begins in the other.
    fn cut(&mut self) -> io::Result<()> {
        let mut nows: PerHart<u64> = PerHart::default();
        for out in &self.tracks {
            let now = nows.of(out.hart);
            *now = out.now.max(*now);
        }
        // What is not written yet begins where what is written is interrupted, or later.
        let mut seam = |out: &OutTrack| match out.open.get(out.written) {
            Some(open) => open.begin,
            None => *nows.of(out.hart),
        };
        let seams: Vec<u64> = self.tracks.iter().map(&mut seam).collect();
        for (out, seam) in self.tracks.iter_mut().zip(&seams) {
            out.now = out.now.max(*seam);
            for _ in 0..out.written {
                self.writer.end(out.id, *seam, Arrow::None)?;
            }
        }
        self.write_counters(seams.iter().copied().max().unwrap_or(0))?;
        self.writer.next_file()?;
        for (id, track) in (0..).zip(&self.described) {
            self.writer.track(&track.of(id))?;
        }
        for (out, seam) in self.tracks.iter().zip(seams) {
            for open in out.open.iter().take(out.written) {
                let again = Open {
                    begin: seam,
                    arrow: Arrow::None,
                    latency: None,
                    ..*open
                };
                let slice = self.names.beginning(out.id, &again, &self.functions);
                self.writer.begin(&slice)?;
            }
        }
        Ok(())
    }

    /// Writes what has lasted long enough on a track, and counts instructions.
    fn advance(&mut self, track: TrackId, at: Position) {
        let Some(out) = self.tracks.get_mut(track.index()) else {
            return;
        };
        let now = at.on(self.options.axis);
        if self.options.axis == Measure::Time && out.now == 0 {
            // Before the first timestamp nothing can be placed.
            if now == 0 {
                return;
            }
            let unplaced = out.open.iter_mut().filter(|open| open.begin == 0);
            unplaced.for_each(|open| open.begin = now);
        }
        out.now = out.now.max(now);
        self.done.end = self.done.end.max(now);
        self.rates.of(out.hart).add(at);
        while let Some(out) = self.tracks.get_mut(track.index())
            && let Some(open) = out.open.get(out.written)
        {
            let lasted = out.now.saturating_sub(open.begin);
            let is_deep = out.written >= self.options.max_depth;
            if lasted < self.options.min_duration || is_deep || self.error.is_some() {
                return;
            }
            out.written += 1;
            self.done.slices += 1;
            let slice = self.names.beginning(out.id, open, &self.functions);
            let result = self.writer.begin(&slice);
            self.tried(result);
        }
    }

    fn new_track(&mut self, track: Described) -> u32 {
        let id = self.described.len() as u32;
        let result = self.writer.track(&track.of(id));
        self.described.push(track);
        self.tried(result);
        id
    }
}

impl Described {
    fn of(&self, id: u32) -> FileTrack<'_> {
        FileTrack {
            id,
            hart: self.hart,
            name: &self.name,
            thread: self.thread,
        }
    }
}

impl TimelineSink for Export<'_> {
    fn unnamed(&mut self, address: u64) {
        self.functions.unnamed(address);
    }

    fn track(&mut self, _: TrackId, track: &Track) {
        let mut name = match track.is_rest {
            true => "other threads".to_owned(),
            false => format!("thread {}", track.number),
        };
        if let Some(context) = track.context {
            name = format!("{}, {name}", self.functions.contexts().label(context));
        }
        let id = self.new_track(Described {
            hart: track.hart,
            name,
            thread: Some((track.number, track.context)),
        });
        self.tracks.push(OutTrack {
            id,
            hart: track.hart,
            open: Vec::new(),
            written: 0,
            now: 0,
        });
    }

    fn trapped(&mut self, trap: &TrapSpan) {
        self.latency = trap.latency();
    }

    fn begin(&mut self, track: TrackId, slice: &Slice) {
        let is_away = slice.kind == SliceKind::Away;
        self.settle(track, slice.begin, !is_away);
        if is_away && !self.writer.shows_away() {
            return self.advance(track, slice.begin);
        }
        let Some(out) = self.tracks.get_mut(track.index()) else {
            return;
        };
        let outer = out.open.last().map(|outer| (outer.kind, outer.arrow));
        let arrow = self.arrows.begin(out.hart, slice, outer);
        // A caller that is found begins where it is found: what it called is written.
        let begin = slice.begin.on(self.options.axis).max(out.now);
        out.open.push(Open {
            kind: slice.kind,
            begin,
            arrow,
            latency: self.latency.take(),
        });
        self.advance(track, slice.begin);
    }

    fn end(&mut self, track: TrackId, slice: &Slice) {
        let is_away = slice.kind == SliceKind::Away;
        let is_back = is_away && slice.flags & Slice::END_NOT_SEEN == 0;
        self.settle(track, slice.end, is_back);
        if is_away && !self.writer.shows_away() {
            return;
        }
        self.advance(track, slice.end);
        let Some(out) = self.tracks.get_mut(track.index()) else {
            return;
        };
        let Some(open) = out.open.pop() else {
            return;
        };
        let depth = out.open.len();
        if depth >= self.options.max_depth {
            self.done.too_deep += 1;
            return;
        }
        let length = out.now.saturating_sub(open.begin);
        let bits = (u64::BITS - length.leading_zeros()) as usize;
        if let Some(count) = self.done.lengths.get_mut(bits) {
            *count += 1;
        }
        if out.written <= depth {
            self.done.too_short += 1;
            return;
        }
        out.written = depth;
        if self.error.is_none() {
            let (from, to) = self.arrows.end(out.hart, slice);
            let (id, now) = (out.id, out.now);
            let result = self.writer.end(id, now, from);
            let result = result.and_then(|()| match to {
                Some(arrow) => self.writer.resumed(id, now, arrow),
                None => Ok(()),
            });
            self.tried(result);
        }
    }

    fn gap(&mut self, gap: &GapSpan) {
        let Some(hart) = self.tracks.get(gap.track.index()).map(|track| track.hart) else {
            return;
        };
        let axis = self.options.axis;
        let (track, last) = match self.gaps.get(&hart) {
            Some(known) => *known,
            None => {
                let described = Described {
                    hart,
                    name: "gaps".to_owned(),
                    thread: None,
                };
                (self.new_track(described), 0)
            }
        };
        let begin = gap.begin.on(axis).max(last);
        let end = gap.end.on(axis).max(begin);
        self.gaps.insert(hart, (track, end));
        let reason = gap.gap.map_or("tracing was off", |gap| gap.reason.text);
        let name = match gap.gap {
            Some(_) if reason.is_empty() => GAP,
            _ => self.names.text(reason),
        };
        let text = self.names.list.get(name as usize);
        let beginning = Beginning {
            track,
            at: begin,
            name: (name, text.map_or("", String::as_str)),
            category: Category::Gap,
            cause: None,
            address: None,
            latency: None,
            arrow: Arrow::None,
        };
        if self.error.is_none() {
            self.done.slices += 1;
            let result = self.writer.begin(&beginning);
            let result = result.and_then(|()| self.writer.end(track, end, Arrow::None));
            self.tried(result);
        }
    }
}

#[cfg(test)]
mod tests;
