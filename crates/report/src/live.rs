//! A page that asks for what it shows: for traces of any size.
//!
//! An [`Index`] has an overview of a trace: slices down to some width, and stops from
//! which a part can be decoded. [`Live`] answers what a page asks for: from the index, or,
//! where the index has not enough detail, by decoding the part that is wanted.

mod file;
mod indexer;
mod part;

pub use indexer::Indexer;

use crate::about::{About, Budget};
use crate::code;
use crate::collect::{Collected, Kept, Stop};
use crate::columns::{Rows, Slices};
use crate::document::Document;
use crate::functions::Numbered;
use crate::http::{Answer, Request};
use crate::page::live_html;
use crate::run::Run;
use crate::strings::Strings;
use crate::tracks::{Scale, columns_of, gap_slice};
use hartrace_analyze::{
    FunctionId, Functions, Measure, Places, Slice, SliceKind, TrackId, TrackSlices, cause_name,
};
use hartrace_flow::{Cause, Checkpoint, Consumer, HartId, Image};
use part::Wanted;
use serde::Serialize;
use std::collections::BTreeMap;

/// Slices in an answer at most.
const ANSWER: usize = 100_000;

/// Widths of a slice that a page can show at most.
const PIXELS: u64 = 8192;

/// Instructions in an answer at most.
const INSTRUCTIONS: u64 = 2000;

/// Decodes a trace from a checkpoint, or from its start, until the consumer breaks.
pub type Replayed<'a> = Box<dyn Fn(Option<Checkpoint>, &mut dyn Consumer) + Send + 'a>;

/// Why an answer has less than was asked for.
const ONCE: &str = "The input can be read only once: this is all that was kept of it.";
const LATE: &str = "This format is decoded from its start, and this part is too far from it: \
    short calls are drawn together, and instructions are not shown.";
const LARGE: &str = "This part is too long to be decoded at once: short calls are drawn together.";

/// An answer, and what it lacks.
#[derive(Serialize)]
struct Lacking<T> {
    #[serde(flatten)]
    answer: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    lack: Option<&'static str>,
}

/// An overview of a trace, and places from which parts of it can be decoded.
#[derive(Clone, Debug)]
pub struct Index {
    /// The document without its details, as JSON.
    document: Vec<u8>,
    strings: Vec<String>,
    /// Code by the number of the function, source text by that of the file; as JSON.
    code: BTreeMap<i64, Vec<u8>>,
    sources: BTreeMap<i64, Vec<u8>>,
    scale: Scale,
    /// Shorter slices are merged in the index.
    width: u64,
    tracks: Vec<TrackSlices>,
    /// Gaps with their tracks.
    gaps: Vec<(TrackId, Slice)>,
    threads: Vec<(HartId, u32, TrackId)>,
    stops: Vec<(Checkpoint, Stop)>,
    functions: Functions,
    /// Functions by their numbers in the document.
    ids: Vec<FunctionId>,
}

impl Kept {
    /// For an [`Index`] with so many slices at most.
    #[must_use]
    pub fn for_index(has_time: bool, slices: usize) -> Kept {
        let budget = Budget {
            slices,
            ..Budget::LIVE
        };
        Kept::new(has_time, &budget)
    }
}

impl Index {
    /// Of a trace whose events were collected, with the stops of an [`Indexer`].
    #[must_use]
    pub fn new(
        about: &About<'_>,
        collected: &Collected,
        kept: Kept,
        stops: Vec<(Checkpoint, Stop)>,
    ) -> Index {
        let known = labels();
        let (mut run, scale, ids) = Run::with(about, collected, &kept, &Budget::LIVE, known);
        let code = std::mem::take(&mut run.code);
        let sources = std::mem::take(&mut run.sources);
        let strings = run.strings.clone();
        let Kept {
            slices,
            gaps,
            threads,
            ..
        } = kept;
        let (tracks, merging) = slices.finish();
        let floor = |track: TrackId| tracks.get(track.index()).map_or(0, |t| t.floor);
        let gaps = gaps.gaps.iter();
        let gaps = gaps.map(|gap| (gap.track, gap_slice(gap, floor(gap.track))));
        Index {
            document: Document::live(run).json(),
            strings,
            code: code.iter().map(|c| (c.function, json(c))).collect(),
            sources: sources.iter().map(|s| (s.file, json(s))).collect(),
            scale,
            width: merging.width,
            gaps: gaps.collect(),
            tracks,
            threads,
            stops,
            functions: collected.profile.functions.clone(),
            ids,
        }
    }

    /// The last stop at which a hart was not after a place on the axis.
    fn stop_before(&self, hart: HartId, place: u64) -> Option<&(Checkpoint, Stop)> {
        let axis = self.scale.measure;
        let at = |stop: &Stop| {
            let found = stop.harts.iter().find(|known| known.0 == hart);
            found.map_or(0, |(_, insn, time)| match axis {
                Measure::Instructions => *insn,
                Measure::Time => time.unwrap_or(u64::MAX),
            })
        };
        let mut before = self.stops.iter().rev();
        before.find(|(_, stop)| at(stop) <= place)
    }
}

/// A value as JSON.
fn json(value: &impl Serialize) -> Vec<u8> {
    // Numbers, strings and lists: nothing that could fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Strings that answers may need.
fn labels() -> Strings {
    let mut strings = Strings::default();
    for text in [
        "gap",
        "other threads",
        "traps and other threads",
        "a function that is left out",
    ] {
        strings.of(text);
    }
    let codes = || (0..24).map(Some).chain([None]);
    let exceptions = codes().map(Cause::Exception);
    let interrupts = codes().map(Cause::Interrupt);
    for cause in exceptions.chain(interrupts).chain([Cause::Unknown]) {
        strings.of(&cause_name(cause));
    }
    strings
}

/// Answers what a page asks for.
pub struct Live<'a> {
    index: Index,
    image: &'a Image,
    places: Places<'a>,
    replay: Option<Replayed<'a>>,
    numbered: Numbered,
    strings: Strings,
}

/// A slice that was searched for.
#[derive(Serialize)]
struct Hit {
    track: u32,
    begin: u64,
    end: u64,
    depth: i32,
    function: i64,
}

impl<'a> Live<'a> {
    /// For an index of a trace. Without `replay` there is only what the index has, and the
    /// page says so.
    #[must_use]
    pub fn new(
        index: Index,
        (image, places): (&'a Image, Places<'a>),
        replay: Option<Replayed<'a>>,
    ) -> Live<'a> {
        Live {
            numbered: Numbered::known(index.ids.clone()),
            strings: Strings::complete(index.strings.clone()),
            index,
            image,
            places,
            replay,
        }
    }

    /// The answer to a request.
    pub fn answer(&mut self, request: &Request<'_>) -> Answer {
        let found = match request.path {
            "" => return Answer::page(live_html()),
            "report.json" => Some(self.index.document.clone()),
            "timeline" => self.timeline(request),
            "code" => self.detail(request, "function", &self.index.code),
            "source" => self.detail(request, "file", &self.index.sources),
            "instructions" => self.instructions(request),
            "search" => self.search(request),
            _ => return Answer::status(404),
        };
        found.map_or_else(|| Answer::status(400), Answer::json)
    }

    /// Code or source text; `null` for what there is not.
    fn detail(
        &self,
        request: &Request<'_>,
        name: &str,
        details: &BTreeMap<i64, Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let number = i64::try_from(request.number(name)?).ok()?;
        let found = details.get(&number).cloned();
        Some(found.unwrap_or_else(|| b"null".to_vec()))
    }

    fn timeline(&mut self, request: &Request<'_>) -> Option<Vec<u8>> {
        let track = usize::try_from(request.number("track")?).ok()?;
        let from = self.index.scale.back(request.number("from")?);
        let until = self.index.scale.back(request.number("until")?);
        let pixels = request.number("pixels").unwrap_or(1000).clamp(1, PIXELS);
        if until < from {
            return None;
        }
        let width = (until - from) / pixels;
        let (answer, lack) = self.slices(track, (from, until), width)?;
        serde_json::to_vec(&Lacking { answer, lack }).ok()
    }

    /// Why a part was not decoded.
    fn lack(&self) -> &'static str {
        match (&self.replay, self.index.stops.is_empty()) {
            (None, _) => ONCE,
            (Some(_), true) => LATE,
            (Some(_), false) => LARGE,
        }
    }

    fn slices(
        &mut self,
        track: usize,
        range: (u64, u64),
        width: u64,
    ) -> Option<(Slices, Option<&'static str>)> {
        let (axis, index) = (self.index.scale.measure, &self.index);
        let whole = index.tracks.get(track)?;
        let detailed = match width < index.width {
            true => self.part(Wanted {
                track,
                range,
                width,
            }),
            false => None,
        };
        let is_coarse = width < index.width && detailed.is_none();
        let lack = is_coarse.then(|| self.lack());
        let slices = detailed.unwrap_or_else(|| whole.window(axis, range, width));
        let mut slices: Vec<(Slice, bool)> = slices.into_iter().map(|s| (s, false)).collect();
        let gaps = index.gaps.iter().filter(|(id, gap)| {
            let (begin, end) = (gap.begin.on(axis), gap.end.on(axis));
            id.index() == track && begin <= range.1 && end >= range.0
        });
        slices.extend(gaps.map(|(_, gap)| (*gap, true)));
        slices.sort_by_key(|(slice, _)| (slice.begin.on(axis), slice.depth));
        slices.truncate(ANSWER);
        let scale = self.index.scale;
        let columns = columns_of(&slices, &scale, &self.numbered, &mut self.strings);
        Some((columns, lack))
    }

    /// Executed instructions, from a place on.
    fn instructions(&mut self, request: &Request<'_>) -> Option<Vec<u8>> {
        let track = usize::try_from(request.number("track")?).ok()?;
        let at = self.index.scale.back(request.number("at")?);
        let count = request
            .number("count")
            .unwrap_or(200)
            .clamp(1, INSTRUCTIONS);
        let hart = self.index.tracks.get(track)?.track.hart;
        let Some(snapshot) = self.snapshot(hart, at, count) else {
            let (answer, lack) = (Rows::default(), Some(self.lack()));
            return serde_json::to_vec(&Lacking { answer, lack }).ok();
        };
        let named = (&self.index.functions, &self.numbered);
        let (code, scale) = ((self.image, &self.places), self.index.scale);
        // A run may have begun before the place.
        let limit = match scale.measure {
            Measure::Instructions => snapshot.insn.saturating_sub(at),
            Measure::Time => u64::MAX,
        };
        let strings = &mut self.strings;
        let answer = code::rows(&snapshot, code, named, (&scale, limit), strings);
        serde_json::to_vec(&Lacking { answer, lack: None }).ok()
    }

    /// The next slice of some functions, or the last one before a place.
    fn search(&self, request: &Request<'_>) -> Option<Vec<u8>> {
        let numbers = request.field("function")?.split(',');
        let numbers: Option<Vec<usize>> = numbers.map(|number| number.parse().ok()).collect();
        let wanted = numbers?.into_iter().filter_map(|n| self.index.ids.get(n));
        let wanted: std::collections::HashSet<FunctionId> = wanted.copied().collect();
        let from = self.index.scale.back(request.number("from")?);
        let back = request.field("back") == Some("1");
        let only = request.number("track");
        let axis = self.index.scale.measure;
        let tracks = (0u32..).zip(&self.index.tracks);
        let tracks = tracks.filter(|(id, _)| only.is_none_or(|only| only == u64::from(*id)));
        let hits = tracks.flat_map(|(id, track)| track.slices.iter().map(move |s| (id, s)));
        let hits = hits.filter(|(_, slice)| {
            let is_wanted = slice.kind.function().is_some_and(|f| wanted.contains(&f));
            is_wanted && !matches!(slice.kind, SliceKind::Merged(None))
        });
        let begin = |(id, slice): &(u32, &Slice)| (slice.begin.on(axis), *id, slice.depth);
        let hit = match back {
            false => hits.filter(|hit| begin(hit).0 > from).min_by_key(begin),
            true => hits.filter(|hit| begin(hit).0 < from).max_by_key(begin),
        };
        let hit = hit.map(|(track, slice)| Hit {
            track,
            begin: self.index.scale.at(slice.begin),
            end: self.index.scale.at(slice.end),
            depth: slice.depth,
            function: self.numbered.number(slice.kind.function()),
        });
        serde_json::to_vec(&hit).ok()
    }
}
