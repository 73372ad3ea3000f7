//! The part of a document that is about one trace.

use crate::about::{About, Budget, Statistics};
use crate::code;
use crate::collect::{Collected, DataGaps, Kept};
use crate::columns::{
    Axis, BeforeTrap, Branches, Code, Ending, Flame, Functions, Gaps, Interrupts, Source, Track,
    Traps,
};
use crate::ending;
use crate::flame::flame;
use crate::functions::functions;
use crate::recent::{Last, Snapshot};
use crate::strings::Strings;
use crate::tracks::{self, Scale};
use hartrace_analyze::{Coverage, FunctionId, GapSpan, Measure, TrackSlices, TrapSpan};
use hartrace_flow::HartId;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a page shows of one trace.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    name: String,
    format: String,
    bytes: u64,
    program: Vec<String>,
    settings: Vec<(String, String)>,
    instructions: u64,
    seconds: Option<f64>,
    axis: Axis,
    pub(crate) strings: Vec<String>,
    functions: Functions,
    pub(crate) tracks: Vec<Track>,
    traps: Traps,
    interrupts: Vec<Interrupts>,
    gaps: Gaps,
    flame: Flame,
    branches: Branches,
    pub(crate) code: Vec<Code>,
    pub(crate) sources: Vec<Source>,
    endings: Vec<Ending>,
    before_traps: Vec<BeforeTrap>,
    statistics: Statistics,
    warnings: Vec<String>,
    left_out: Vec<String>,
}

impl Run {
    /// Of a trace whose events were collected: as much as the budget allows.
    #[must_use]
    pub fn of(about: &About<'_>, collected: &Collected, kept: &Kept, budget: &Budget) -> Run {
        Run::with(about, collected, kept, budget, Strings::default()).0
    }

    /// The same with strings that are known before, and with what the numbers mean.
    pub(crate) fn with(
        about: &About<'_>,
        collected: &Collected,
        kept: &Kept,
        budget: &Budget,
        mut strings: Strings,
    ) -> (Run, Scale, Vec<FunctionId>) {
        let profile = &collected.profile;
        let mut left_out = LeftOut::default();
        let coverage = Coverage::new(about.image, &profile.functions, about.places, &profile.runs);
        let numbered = functions(profile, &coverage, about, budget.functions, &mut strings);
        left_out.functions(numbered.left_out);
        let more = collected.data_gaps.count - collected.data_gaps.first.len() as u64;
        left_out.add(more, "gaps of data trace are not listed");
        let line = Line::of(profile.timed, kept, budget, &mut left_out);
        let (scale, named) = (&line.scale, (&profile.functions, &numbered));
        let rows = |snapshot: &Snapshot, limit: u64, strings: &mut Strings| {
            let code = (about.image, about.places);
            code::rows(snapshot, code, named, (scale, limit), strings)
        };
        let endings = collected.endings.iter().map(|end| Ending {
            track: line.track_of(end.hart),
            how: ending::how(end, named.0, about.places),
            trap: line.trap_of(end),
            rows: rows(end, code::ROWS, &mut strings),
        });
        let endings = endings.collect();
        let mut before_traps = Vec::new();
        let mut last = None;
        for (trap, snapshot) in line.find_traps(&collected.before_traps) {
            let again = last.replace((snapshot.hart, snapshot.insn));
            let again = again == Some((snapshot.hart, snapshot.insn));
            let limit = if again { 0 } else { code::ROWS };
            before_traps.push(BeforeTrap {
                trap,
                again,
                rows: rows(snapshot, limit, &mut strings),
                callers: code::callers(&snapshot.outer, about.places, named, &mut strings),
            });
        }
        let (flame, paths) = flame(profile, &numbered, budget.paths, &mut strings);
        left_out.add(
            paths,
            "call paths that cost least are not in the flame graph",
        );
        let ranges = code::lines(about, &coverage);
        let covered = (&coverage, &ranges);
        let (branches, more) = code::branches(named, covered, budget.branches, &mut strings);
        left_out.add(more, "branches that were executed least are not listed");
        let (code, more) = code::code(about, named, covered, budget.code, &mut strings);
        left_out.add(more, "functions are shown without their code");
        let (sources, missing, more) = code::sources(about, &coverage, budget.source, &mut strings);
        left_out.add(more, "source files are too large to be shown");
        left_out.missing(&missing);
        let run = Run {
            name: about.name.clone(),
            format: about.format.clone(),
            bytes: about.bytes,
            program: about.program.clone(),
            settings: about.settings.clone(),
            instructions: profile.total().insns,
            seconds: None,
            axis: scale.axis(),
            tracks: tracks::tracks(&line.tracks, line.gaps, scale, &numbered, &mut strings),
            traps: tracks::traps(&line.traps, &line.tracks, scale, named),
            interrupts: tracks::interrupts(&kept.traps.causes(), &line.tracks, &line.traps, scale),
            gaps: line.gaps(&collected.data_gaps, &mut strings),
            flame,
            branches,
            code,
            sources,
            endings,
            before_traps,
            statistics: statistics(about, scale),
            warnings: about.warnings.clone(),
            left_out: left_out.0,
            functions: numbered.columns,
            strings: strings.into_list(),
        };
        (run, line.scale, numbered.ids)
    }
}

/// The statistics of a trace, with times as the axis has them.
fn statistics(about: &About<'_>, scale: &Scale) -> Statistics {
    let mut statistics = about.statistics.clone();
    let bandwidth = &mut statistics.bandwidth;
    if scale.measure == Measure::Time && bandwidth.is_timed {
        for at in &mut bandwidth.x {
            *at = at.saturating_sub(scale.origin);
        }
    }
    statistics
}

/// The timeline, as much of it as the budget allows.
struct Line<'a> {
    scale: Scale,
    tracks: Vec<TrackSlices>,
    traps: Vec<TrapSpan>,
    gaps: &'a [GapSpan],
}

impl<'a> Line<'a> {
    fn of(timed: bool, kept: &'a Kept, budget: &Budget, left_out: &mut LeftOut) -> Line<'a> {
        let (tracks, merging) = kept.slices.clone().within(budget.slices).finish();
        let (measure, unit) = match (timed, kept.axis) {
            (true, Measure::Time) => (Measure::Time, "units of time"),
            _ => (Measure::Instructions, "instructions"),
        };
        let what = format!(
            "calls and traps shorter than {} {unit} are drawn together with their neighbours",
            grouped(merging.width)
        );
        left_out.add(merging.slices, &what);
        let (mut traps, dropped) = kept.traps.traps();
        let many = traps.len() as u64;
        traps.truncate(budget.traps);
        let dropped = dropped + many - traps.len() as u64;
        left_out.add(dropped, "traps are not listed one by one");
        let gaps = kept.gaps.gaps.as_slice();
        let gaps = gaps.get(..budget.gaps).unwrap_or(gaps);
        let more = kept.gaps.count - gaps.len() as u64;
        left_out.add(more, "gaps are not listed");
        Line {
            scale: Scale::of(measure, &tracks, gaps),
            tracks,
            traps,
            gaps,
        }
    }

    /// The gaps, and those of data trace.
    fn gaps(&self, data: &DataGaps, strings: &mut Strings) -> Gaps {
        let mut columns = tracks::gaps(self.gaps, &self.scale, strings);
        for (hart, at, gap) in &data.first {
            let place = at.on(self.scale.measure);
            let text = format!("data trace: {}", gap.reason.text);
            columns.track.push(self.track_at(*hart, place));
            columns.at.push(self.scale.at(*at));
            columns.end.push(self.scale.at(*at));
            columns.bytes.push(0);
            columns.reason.push(strings.of(&text));
            columns.code.push(gap.reason.code);
        }
        columns
    }

    /// The track on which a hart was at a place.
    fn track_at(&self, hart: HartId, place: u64) -> u32 {
        let axis = self.scale.measure;
        let ran = |track: &TrackSlices| {
            let ran = track.slices.iter().filter(|s| s.kind.function().is_some());
            let here = ran.filter(|s| (s.begin.on(axis)..=s.end.on(axis)).contains(&place));
            here.map(|slice| slice.begin.on(axis)).max()
        };
        let of_hart = (0u32..).zip(&self.tracks);
        let of_hart = of_hart.filter(|(_, t)| t.track.hart == hart);
        let track = of_hart.max_by_key(|(_, track)| ran(track));
        track.map_or(0, |(id, _)| id)
    }

    /// The track on which a hart was last.
    fn track_of(&self, hart: HartId) -> u32 {
        let of_hart = (0u32..).zip(&self.tracks);
        let of_hart = of_hart.filter(|(_, t)| t.track.hart == hart);
        let last = |track: &TrackSlices| {
            let ran = track.slices.iter().filter(|s| s.kind.function().is_some());
            ran.map(|s| (s.begin.insn, s.end.insn)).max()
        };
        let track = of_hart.max_by_key(|(_, track)| last(track));
        track.map_or(0, |(id, _)| id)
    }

    fn hart_of(&self, trap: &TrapSpan) -> Option<HartId> {
        let track = self.tracks.get(trap.track.index());
        track.map(|found| found.track.hart)
    }

    /// The places in the table of the exceptions that snapshots were taken at, in the order
    /// of the table. Several may be at one position and address.
    fn find_traps<'s>(&self, snapshots: &'s [Snapshot]) -> Vec<(usize, &'s Snapshot)> {
        let mut found: BTreeMap<usize, &Snapshot> = BTreeMap::new();
        for snapshot in snapshots {
            let Some(Last::Trap(taken)) = snapshot.last else {
                continue;
            };
            let is_it = |trap: &TrapSpan| {
                let same = (trap.begin.insn, trap.cause) == (snapshot.insn, taken.cause);
                let at = taken.epc.is_none() || trap.epc == taken.epc;
                same && at && self.hart_of(trap) == Some(snapshot.hart)
            };
            let at = match snapshot.is_last {
                true => self.traps.iter().rposition(is_it),
                false => self.traps.iter().position(is_it),
            };
            if let Some(at) = at {
                found.entry(at).or_insert(snapshot);
            }
        }
        found.into_iter().collect()
    }

    /// The place in the table of the exception in whose handler a hart ended.
    fn trap_of(&self, end: &Snapshot) -> Option<usize> {
        let (cause, epc) = ending::open_exception(end)?;
        self.traps.iter().rposition(|trap| {
            let same = (trap.cause, trap.epc, trap.end) == (cause, epc, None);
            same && self.hart_of(trap) == Some(end.hart)
        })
    }
}

/// What a report does not have, in words.
#[derive(Default)]
struct LeftOut(Vec<String>);

impl LeftOut {
    /// So many of something, if there are any.
    fn add(&mut self, count: impl TryInto<u64>, what: &str) {
        let count = count.try_into().unwrap_or(u64::MAX);
        if count > 0 {
            self.0.push(format!("{} {what}.", grouped(count)));
        }
    }

    fn functions(&mut self, (all, ran): (usize, usize)) {
        self.add(ran, "functions that cost least are not listed");
        self.add(all - ran, "functions that never ran are not listed");
    }

    /// Source files that were not found.
    fn missing(&mut self, files: &[String]) {
        let Some(first) = files.first() else { return };
        let others = match files.len() {
            1 => String::new(),
            2 => ", nor that of another file".to_owned(),
            many => format!(", nor that of {} other files", grouped(many as u64 - 1)),
        };
        self.0.push(format!(
            "The text of {first} was not found{others}: its lines are shown with their counts \
             only. --source-dir says where source files are."
        ));
    }
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1 000"),
            (1_234_567, "1 234 567"),
        ];
        for (number, expected) in cases {
            assert_eq!(grouped(number), expected);
        }
    }
}
