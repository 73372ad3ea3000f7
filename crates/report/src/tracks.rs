//! The timeline: tracks with slices, traps and gaps.

use crate::columns::{self, Axis, Durations, Gaps, Interrupts, Slices, Traps, Worst};
use crate::functions::Numbered;
use crate::strings::Strings;
use hartrace_analyze::{
    CauseSpans, FunctionId, Functions, GapSpan, Measure, Position, Slice, SliceKind, Track,
    TrackSlices, TrapSpan, cause_name,
};
use hartrace_flow::Cause;

/// Integers up to this are exact in JavaScript.
const EXACT: u64 = 1 << 53;

/// What a slice stands for, as the page knows it.
const CALL: u8 = 0;
const TAIL_CALL: u8 = 1;
const TRAP: u8 = 2;
const GAP: u8 = 3;
const AWAY: u8 = 4;
const MERGED: u8 = 5;

/// The axis of a timeline, and positions on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) measure: Measure,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) origin: u64,
}

impl Scale {
    /// From the first to the last position of all slices and gaps.
    pub(crate) fn of(measure: Measure, tracks: &[TrackSlices], gaps: &[GapSpan]) -> Scale {
        let slices = tracks.iter().flat_map(|track| &track.slices);
        let spans = slices.map(|slice| (slice.begin, slice.end));
        let spans = spans.chain(gaps.iter().map(|gap| (gap.begin, gap.end)));
        let (mut from, mut until) = (u64::MAX, 0);
        for (begin, end) in spans {
            let begin = begin.on(measure);
            // There is no time before the first timestamp.
            if measure == Measure::Instructions || begin > 0 {
                from = from.min(begin);
            }
            until = until.max(end.on(measure));
        }
        let from = from.min(until);
        Scale {
            measure,
            from,
            until,
            origin: if until >= EXACT { from } else { 0 },
        }
    }

    /// A position on the axis.
    pub(crate) fn at(&self, position: Position) -> u64 {
        self.point(position.on(self.measure))
    }

    /// The time or the number of instructions at a place on the axis.
    pub(crate) fn back(&self, place: u64) -> u64 {
        place.saturating_add(self.origin)
    }

    /// A time or a number of instructions on the axis.
    pub(crate) fn point(&self, at: u64) -> u64 {
        at.clamp(self.from, self.until.max(self.from)) - self.origin
    }

    pub(crate) fn axis(&self) -> Axis {
        Axis {
            unit: match self.measure {
                Measure::Instructions => "instructions",
                Measure::Time => "time",
            },
            from: self.from - self.origin,
            until: self.until.max(self.from) - self.origin,
            origin: self.origin.to_string(),
            ticks_per_second: None,
        }
    }
}

/// The columns of all tracks.
pub(crate) fn tracks(
    tracks: &[TrackSlices],
    gaps: &[GapSpan],
    scale: &Scale,
    numbered: &Numbered,
    strings: &mut Strings,
) -> Vec<columns::Track> {
    let alone = |hart| tracks.iter().filter(|t| t.track.hart == hart).count() < 2;
    let mut all = Vec::with_capacity(tracks.len());
    for (id, found) in (0u32..).zip(tracks) {
        let TrackSlices {
            track,
            slices,
            floor,
        } = found;
        let mut slices: Vec<(Slice, bool)> = slices.iter().map(|s| (*s, false)).collect();
        let here = gaps.iter().filter(|gap| gap.track.0 == id);
        slices.extend(here.map(|gap| (gap_slice(gap, *floor), true)));
        // Slices come in order; gaps go between them.
        slices.sort_by_key(|(slice, _)| (slice.begin, slice.depth));
        let depth = slices.iter().map(|(slice, _)| slice.depth).max();
        let columns = columns_of(&slices, scale, numbered, strings);
        all.push(columns::Track {
            id,
            hart: track.hart.0,
            context: track.context.map(|context| context.0),
            thread: track.number,
            name: name(track, alone(track.hart)),
            max_depth: depth.map_or(0, |depth| depth.max(0) as u32),
            slices: columns,
        });
    }
    all
}

/// The columns of slices, of which some are gaps.
pub(crate) fn columns_of(
    slices: &[(Slice, bool)],
    scale: &Scale,
    numbered: &Numbered,
    strings: &mut Strings,
) -> Slices {
    let mut columns = Slices::default();
    for (slice, is_gap) in slices {
        push(&mut columns, slice, *is_gap, scale, numbered, strings);
    }
    columns
}

/// A gap as a slice inside all others.
pub(crate) fn gap_slice(gap: &GapSpan, floor: i32) -> Slice {
    Slice {
        begin: gap.begin,
        end: gap.end,
        kind: SliceKind::Away,
        depth: gap.depth.saturating_sub(floor).max(0),
        flags: 0,
        merged: 0,
    }
}

/// `hart 0, context 0x12, thread 3`.
fn name(track: &Track, alone: bool) -> String {
    let mut name = format!("hart {}", track.hart.0);
    if let Some(context) = track.context {
        name += &format!(", context {:#x}", context.0);
    }
    match (alone, track.is_rest) {
        (_, true) => name += ", other threads",
        (false, _) => name += &format!(", thread {}", track.number),
        (true, _) => {}
    }
    name
}

fn push(
    columns: &mut Slices,
    slice: &Slice,
    is_gap: bool,
    scale: &Scale,
    numbered: &Numbered,
    strings: &mut Strings,
) {
    let (kind, function) = match slice.kind {
        _ if is_gap => (GAP, strings.label("gap")),
        SliceKind::Call(id) => (CALL, numbered.number(Some(id))),
        SliceKind::TailCall(id) => (TAIL_CALL, numbered.number(Some(id))),
        SliceKind::Trap(cause) => (TRAP, strings.label(&cause_name(cause))),
        SliceKind::Away => (AWAY, strings.label("other threads")),
        SliceKind::Merged(None) => (MERGED, strings.label("traps and other threads")),
        SliceKind::Merged(id) => (MERGED, numbered.number(id)),
    };
    let function = match function {
        -1 => strings.label("a function that is left out"),
        function => function,
    };
    columns.begin.push(scale.at(slice.begin));
    columns.end.push(scale.at(slice.end));
    columns.depth.push(slice.depth.max(0) as u32);
    columns.function.push(function);
    columns.kind.push(kind);
    columns.flags.push(slice.flags);
    columns.merged.push(slice.merged);
}

/// The columns of traps.
pub(crate) fn traps(
    traps: &[TrapSpan],
    tracks: &[TrackSlices],
    scale: &Scale,
    (functions, numbered): (&Functions, &Numbered),
) -> Traps {
    let mut columns = Traps::default();
    let hex = |address: Option<u64>| address.map(|address| format!("{address:#x}"));
    for trap in traps {
        let (interrupt, cause) = cause(trap.cause);
        columns.track.push(trap.track.0);
        columns.at.push(scale.at(trap.begin));
        columns
            .end
            .push(trap.end.map_or(-1, |end| scale.at(end) as i64));
        columns.away.push(trap.away.on(scale.measure));
        columns.depth.push(depth(trap, tracks));
        columns.interrupt.push(u8::from(interrupt));
        columns.cause.push(cause);
        columns.epc.push(hex(trap.epc));
        columns.tval.push(hex(trap.tval));
        columns
            .function
            .push(numbered.number(interrupted(trap, functions)));
        columns.handler.push(numbered.number(trap.handler));
    }
    columns
}

/// The function that a trap interrupted. Where nothing ran before it, the address says
/// which. Code without a symbol is in none: a jump to 0 is not part of its caller.
fn interrupted(trap: &TrapSpan, functions: &Functions) -> Option<FunctionId> {
    let Some(epc) = trap.epc else {
        return trap.interrupted;
    };
    let is_unnamed = |id: &FunctionId| {
        let function = functions.get(*id);
        function.start == function.end
    };
    functions.of(epc).or(trap.interrupted.filter(is_unnamed))
}

/// The depth of the slice of a trap.
fn depth(trap: &TrapSpan, tracks: &[TrackSlices]) -> u32 {
    let floor = tracks.get(trap.track.index()).map_or(0, |t| t.floor);
    trap.depth.saturating_sub(floor).max(0) as u32
}

/// Whether a cause is an interrupt, and its code; -1 if that is not known.
fn cause(cause: Cause) -> (bool, i64) {
    let code = |code: Option<u32>| code.map_or(-1, i64::from);
    match cause {
        Cause::Exception(number) => (false, code(number)),
        Cause::Interrupt(number) => (true, code(number)),
        Cause::Unknown => (false, -1),
    }
}

/// Traps by cause.
pub(crate) fn interrupts(
    causes: &[&CauseSpans],
    tracks: &[TrackSlices],
    listed: &[TrapSpan],
    scale: &Scale,
) -> Vec<Interrupts> {
    let one = |spans: &&CauseSpans| {
        let (interrupt, code) = cause(spans.cause);
        let measured = spans.duration(scale.measure);
        let finished = spans.count > spans.unfinished;
        let worst = spans.worst.iter().filter_map(|trap| {
            Some(Worst {
                track: trap.track.0,
                at: scale.at(trap.begin),
                duration: trap.duration(scale.measure)?,
                away: trap.away.on(scale.measure),
                depth: depth(trap, tracks),
                trap: listed.iter().position(|other| other == trap),
            })
        });
        Interrupts {
            interrupt,
            cause: code,
            name: cause_name(spans.cause),
            count: spans.count,
            unfinished: spans.unfinished,
            duration: finished.then(|| Durations {
                min: measured.min,
                p50: measured.p50,
                p90: measured.p90,
                p99: measured.p99,
                max: measured.max,
                mean: measured.mean,
                histogram: spans.histogram(scale.measure),
            }),
            latency: None,
            nesting: spans.nesting,
            worst: worst.collect(),
        }
    };
    causes.iter().map(one).collect()
}

/// The columns of gaps.
pub(crate) fn gaps(gaps: &[GapSpan], scale: &Scale, strings: &mut Strings) -> Gaps {
    let mut columns = Gaps::default();
    for span in gaps {
        let reason = span.gap.map(|gap| gap.reason);
        columns.track.push(span.track.0);
        columns.at.push(scale.at(span.begin));
        columns.end.push(scale.at(span.end));
        columns.bytes.push(span.gap.map_or(0, |gap| gap.bytes));
        let text = reason.map_or("tracing was off", |reason| reason.text);
        columns.reason.push(strings.of(text));
        columns.code.push(reason.map_or("", |reason| reason.code));
    }
    columns
}
