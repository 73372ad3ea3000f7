//! Timelines for viewers: slices are written while the trace is read.
//!
//! A slice is written when it has lasted [`ExportOptions::min_duration`]. What it is in
//! began earlier, so that is written already, and what ended before it is written too:
//! the begins and ends of a track are in order of time, and memory holds no more than
//! what has not ended.

mod chrome;
mod perfetto;
mod rate;

pub use chrome::Chrome;
pub use perfetto::Perfetto;

use super::{GapSpan, Position, Slice, SliceKind, TimelineSink, Track, TrackId};
use crate::causes::cause_name;
use crate::functions::{FunctionId, Functions};
use crate::stacks::Measure;
use hartrace_flow::{Cause, HartId, PerHart};
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

/// Kinds of slices in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// A call.
    Call,
    /// An interrupt or an exception.
    Trap,
    /// The hart runs another thread.
    Away,
    /// Something is missing.
    Gap,
}

impl Category {
    /// All, in the order of their numbers.
    pub const ALL: [Category; 4] = [
        Category::Call,
        Category::Trap,
        Category::Away,
        Category::Gap,
    ];

    /// What it is called in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Call => "call",
            Category::Trap => "trap",
            Category::Away => "other threads",
            Category::Gap => "gap",
        }
    }
}

/// An arrow from a trap to its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// None.
    None,
    /// One with this number starts here.
    From(u64),
    /// It ends here.
    To(u64),
}

/// A slice that begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The track.
    pub track: u32,
    /// Where, on the axis.
    pub at: u64,
    /// Its name, and a number for the name.
    pub name: (u32, &'a str),
    /// Its kind.
    pub category: Category,
    /// Its arrow.
    pub arrow: Arrow,
}

/// Values over time or instructions.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    /// What is counted.
    pub name: &'a str,
    /// The hart; `None` for all.
    pub hart: Option<HartId>,
    /// Where each value begins, and the value.
    pub values: &'a [(u64, f64)],
}

/// Writes a file for a viewer.
pub trait SliceWriter {
    /// A track of a hart; tracks are numbered from 0.
    ///
    /// # Errors
    ///
    /// A failing write, as for all methods.
    fn track(&mut self, track: u32, hart: HartId, name: &str) -> io::Result<()>;

    /// A slice begins.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()>;

    /// The slice of a track that began last ends.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn end(&mut self, track: u32, at: u64) -> io::Result<()>;

    /// A counter, after all slices.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()>;

    /// No more of anything.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn finish(&mut self) -> io::Result<()>;
}

/// Gives a timeline to a [`SliceWriter`]: a [`TimelineSink`].
pub struct Export<'w> {
    options: ExportOptions,
    writer: &'w mut dyn SliceWriter,
    functions: Functions,
    names: Names,
    tracks: Vec<OutTrack>,
    count: u32,
    /// The track of the gaps of each hart.
    gaps: FxHashMap<HartId, (u32, u64)>,
    rates: PerHart<Rate>,
    arrows: u64,
    done: Exported,
    error: Option<io::Error>,
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
            count: 0,
            gaps: FxHashMap::default(),
            rates: PerHart::default(),
            arrows: 0,
            done: Exported {
                lengths: vec![0; 65],
                ..Exported::default()
            },
            error: None,
        }
    }

    /// No more slices: writes counters, those given and instructions over time.
    ///
    /// # Errors
    ///
    /// The first write that failed.
    pub fn finish(mut self, counters: &[Counter<'_>]) -> io::Result<Exported> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.options.axis == Measure::Time {
            for (hart, rate) in self.rates.iter_mut() {
                self.writer.counter(&Counter {
                    name: "instructions per 1000 units of time",
                    hart: Some(hart),
                    values: &rate.values(),
                })?;
            }
        }
        for counter in counters {
            self.writer.counter(counter)?;
        }
        self.writer.finish()?;
        Ok(self.done)
    }

    /// Remembers the first error.
    fn tried(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
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
        self.rates.of(out.hart).add(at);
        while let Some(open) = out.open.get(out.written) {
            let lasted = out.now.saturating_sub(open.begin);
            let is_deep = out.written >= self.options.max_depth;
            if lasted < self.options.min_duration || is_deep || self.error.is_some() {
                return;
            }
            out.written += 1;
            self.done.slices += 1;
            let name = self.names.of(open.kind, &self.functions);
            let text = self.names.list.get(name as usize);
            let beginning = Beginning {
                track: out.id,
                at: open.begin,
                name: (name, text.map_or("", String::as_str)),
                category: match open.kind {
                    SliceKind::Trap(_) => Category::Trap,
                    SliceKind::Away => Category::Away,
                    _ => Category::Call,
                },
                arrow: open.arrow,
            };
            if let Err(error) = self.writer.begin(&beginning) {
                self.error = Some(error);
            }
        }
    }

    fn new_track(&mut self, hart: HartId, name: &str) -> u32 {
        let id = self.count;
        self.count += 1;
        let result = self.writer.track(id, hart, name);
        self.tried(result);
        id
    }

    /// The arrow of a slice that begins inside another.
    fn arrow(&mut self, kind: SliceKind, outer: Option<&Open>) -> Arrow {
        match (kind, outer) {
            (SliceKind::Trap(_), _) => {
                self.arrows += 1;
                Arrow::From(self.arrows)
            }
            (SliceKind::Call(_), Some(outer)) if matches!(outer.kind, SliceKind::Trap(_)) => {
                match outer.arrow {
                    Arrow::From(number) => Arrow::To(number),
                    arrow => arrow,
                }
            }
            _ => Arrow::None,
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
            name = format!("context {:#x}, {name}", context.0);
        }
        let id = self.new_track(track.hart, &name);
        self.tracks.push(OutTrack {
            id,
            hart: track.hart,
            open: Vec::new(),
            written: 0,
            now: 0,
        });
    }

    fn begin(&mut self, track: TrackId, slice: &Slice) {
        let outer = self.tracks.get_mut(track.index());
        let outer = outer.and_then(|track| track.open.pop());
        let arrow = self.arrow(slice.kind, outer.as_ref());
        let Some(out) = self.tracks.get_mut(track.index()) else {
            return;
        };
        out.open.extend(outer);
        // A caller that is found begins where it is found: what it called is written.
        let begin = slice.begin.on(self.options.axis).max(out.now);
        out.open.push(Open {
            kind: slice.kind,
            begin,
            arrow,
        });
        self.advance(track, slice.begin);
    }

    fn end(&mut self, track: TrackId, slice: &Slice) {
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
            let result = self.writer.end(out.id, out.now);
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
            None => (self.new_track(hart, "gaps"), 0),
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
            arrow: Arrow::None,
        };
        if self.error.is_none() {
            self.done.slices += 1;
            let result = self.writer.begin(&beginning);
            let result = result.and_then(|()| self.writer.end(track, end));
            self.tried(result);
        }
    }
}

impl Names {
    /// A name that few slices have.
    fn text(&mut self, name: &str) -> u32 {
        match self.list.iter().skip(GAP as usize).position(|n| n == name) {
            Some(at) => at as u32 + GAP,
            None => self.add(name.to_owned()),
        }
    }
}

/// Keeps what is written up to a limit. More than that is passed on, or lost if there is
/// no place for it.
pub struct Held<'w> {
    bytes: Vec<u8>,
    limit: usize,
    rest: Option<&'w mut dyn io::Write>,
    is_full: bool,
}

impl<'w> Held<'w> {
    /// Keeps `limit` bytes; when there are more, all go to `rest`.
    pub fn new(limit: usize, rest: Option<&'w mut dyn io::Write>) -> Held<'w> {
        Held {
            bytes: Vec::new(),
            limit,
            rest,
            is_full: false,
        }
    }

    /// All that was written; `None` if that was more than the limit.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u8>> {
        (!self.is_full).then_some(self.bytes)
    }
}

impl io::Write for Held<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_full {
            if self.bytes.len() + bytes.len() <= self.limit {
                self.bytes.extend_from_slice(bytes);
                return Ok(());
            }
            self.is_full = true;
            let held = std::mem::take(&mut self.bytes);
            if let Some(rest) = &mut self.rest {
                rest.write_all(&held)?;
            }
        }
        match &mut self.rest {
            Some(rest) => rest.write_all(bytes),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.rest.as_mut().map_or(Ok(()), |rest| rest.flush())
    }
}

#[cfg(test)]
mod tests;
