//! An index as bytes, so that a trace is opened faster the next time.
//!
//! The bytes begin with [`MAGIC`], which changes with every change of the form, and a key:
//! what the index was made of. Numbers are packed, and the slices of a track are the
//! differences from one to the next. Whatever does not fit makes the index unreadable; it
//! is made again then.

use super::Index;
use crate::collect::Stop;
use crate::tracks::Scale;
use hartrace_analyze::{
    FunctionId, Functions, Measure, Position, Slice, SliceKind, Track, TrackId, TrackSlices,
};
use hartrace_flow::{Cause, Checkpoint, Context, HartId};
use hartrace_flow::{Packer, Unpacker};
use std::collections::{BTreeMap, HashMap};

/// The first bytes of an index.
const MAGIC: &[u8] = b"hartrace index 4\n";

/// What the first bytes of every version have in common.
const COMMON: &[u8] = b"hartrace index ";

impl Index {
    /// Whether bytes are an index of any version, perhaps damaged, or nothing at all:
    /// what an index may replace.
    #[must_use]
    pub fn is_kept_in(bytes: &[u8]) -> bool {
        // Before the first bytes is their length.
        let begin = bytes.get(1..).unwrap_or_default();
        let length = begin.len().min(COMMON.len());
        begin.get(..length) == COMMON.get(..length)
    }

    /// The index of what `key` says.
    #[must_use]
    pub fn to_bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut out = Packer::new();
        out.bytes(MAGIC);
        out.bytes(key);
        out.bytes(&self.document);
        out.number(self.strings.len() as u64);
        self.strings
            .iter()
            .for_each(|text| out.bytes(text.as_bytes()));
        for details in [&self.code, &self.sources] {
            out.number(details.len() as u64);
            for (number, json) in details {
                out.signed(*number);
                out.bytes(json);
            }
        }
        let Scale {
            measure,
            from,
            until,
            origin,
        } = self.scale;
        out.number(u64::from(measure == Measure::Time));
        for number in [from, until, origin, self.width] {
            out.number(number);
        }
        out.number(self.ids.len() as u64);
        for id in &self.ids {
            out.number(self.functions.get(*id).start);
        }
        let numbers: HashMap<FunctionId, u64> = self.ids.iter().copied().zip(1..).collect();
        out.number(self.tracks.len() as u64);
        for track in &self.tracks {
            write_track(track, measure, &numbers, &mut out);
        }
        out.number(self.gaps.len() as u64);
        for (track, gap) in &self.gaps {
            out.number(track.0.into());
            out.number(gap.begin.on(measure));
            out.number(gap.end.on(measure));
            out.signed(gap.depth.into());
        }
        self.write_stops(&mut out);
        out.finish()
    }

    fn write_stops(&self, out: &mut Packer) {
        out.number(self.threads.len() as u64);
        for (hart, thread, track) in &self.threads {
            out.number(hart.0.into());
            out.number((*thread).into());
            out.number(track.0.into());
        }
        out.number(self.stops.len() as u64);
        for (Checkpoint { offset, position }, stop) in &self.stops {
            out.number(*offset);
            out.number(*position);
            out.number(stop.harts.len() as u64);
            for (hart, insn, time) in &stop.harts {
                out.number(hart.0.into());
                out.number(*insn);
                out.option(*time);
            }
            out.bytes(&stop.state);
        }
    }

    /// Reads an index; `None` if it is of something else or cannot be read. `functions`
    /// are those of the program.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], key: &[u8], mut functions: Functions) -> Option<Index> {
        let mut input = Unpacker::new(bytes);
        if input.bytes()? != MAGIC || input.bytes()? != key {
            return None;
        }
        let document = input.bytes()?.to_vec();
        let strings: Option<Vec<String>> = (0..input.count()?)
            .map(|_| String::from_utf8(input.bytes()?.to_vec()).ok())
            .collect();
        let mut details = || -> Option<BTreeMap<i64, Vec<u8>>> {
            let mut all = BTreeMap::new();
            for _ in 0..input.count()? {
                all.insert(input.signed()?, input.bytes()?.to_vec());
            }
            Some(all)
        };
        let (code, sources) = (details()?, details()?);
        let measure = match input.number()? {
            0 => Measure::Instructions,
            _ => Measure::Time,
        };
        let scale = Scale {
            measure,
            from: input.number()?,
            until: input.number()?,
            origin: input.number()?,
        };
        if scale.from > scale.until || scale.origin > scale.from {
            return None;
        }
        let width = input.number()?;
        let mut ids = Vec::new();
        for _ in 0..input.count()? {
            let start = input.number()?;
            ids.push(match functions.of(start) {
                Some(id) => id,
                None => functions.unnamed(start),
            });
        }
        let tracks = (0..input.count()?).map(|_| read_track(&mut input, &ids));
        let tracks: Option<Vec<TrackSlices>> = tracks.collect();
        let gaps = (0..input.count()?).map(|_| read_gap(&mut input));
        let gaps: Option<Vec<(TrackId, Slice)>> = gaps.collect();
        let threads = (0..input.count()?).map(|_| read_thread(&mut input));
        let threads: Option<Vec<(HartId, u32, TrackId)>> = threads.collect();
        let stops = (0..input.count()?).map(|_| read_stop(&mut input));
        let stops: Option<Vec<(Checkpoint, Stop)>> = stops.collect();
        Some(Index {
            document,
            strings: strings?,
            code,
            sources,
            scale,
            width,
            tracks: tracks?,
            gaps: gaps?,
            threads: threads?,
            stops: stops?,
            functions,
            ids,
        })
    }
}

fn write_track(
    track: &TrackSlices,
    axis: Measure,
    numbers: &HashMap<FunctionId, u64>,
    out: &mut Packer,
) {
    let described = &track.track;
    out.number(described.hart.0.into());
    out.option(described.context.map(|context| context.0));
    out.number(described.number.into());
    out.number(described.is_rest.into());
    out.signed(track.floor.into());
    out.number(track.slices.len() as u64);
    let mut at = 0;
    for slice in &track.slices {
        let begin = slice.begin.on(axis);
        out.signed(begin.wrapping_sub(at) as i64);
        at = begin;
        out.number(slice.length(axis));
        out.signed(slice.depth.into());
        out.number(slice.flags.into());
        out.number(slice.merged.into());
        let function = slice.kind.function();
        let number = function.and_then(|id| numbers.get(&id).copied());
        let (kind, value) = match slice.kind {
            SliceKind::Call(_) => (0, number.unwrap_or(0)),
            SliceKind::TailCall(_) => (1, number.unwrap_or(0)),
            SliceKind::Merged(_) => (2, number.unwrap_or(0)),
            SliceKind::Away => (3, 0),
            SliceKind::Trap(Cause::Unknown) => (4, 0),
            SliceKind::Trap(Cause::Exception(code)) => (5, code.map_or(0, |c| u64::from(c) + 1)),
            SliceKind::Trap(Cause::Interrupt(code)) => (6, code.map_or(0, |c| u64::from(c) + 1)),
        };
        out.number(kind);
        out.number(value);
    }
}

/// A place on the axis, as instructions and as time.
const fn position(place: u64) -> Position {
    Position {
        insn: place,
        time: place,
    }
}

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

fn read_track(input: &mut Unpacker<'_>, ids: &[FunctionId]) -> Option<TrackSlices> {
    let track = Track {
        hart: HartId(small(input.number()?)?),
        context: input.option()?.map(Context),
        number: small(input.number()?)?,
        is_rest: input.number()? != 0,
    };
    let floor = i32::try_from(input.signed()?).ok()?;
    let count = input.count()?;
    let mut slices = Vec::with_capacity(count);
    let mut at = 0u64;
    for _ in 0..count {
        at = at.wrapping_add_signed(input.signed()?);
        let end = at.checked_add(input.number()?)?;
        let depth = i32::try_from(input.signed()?).ok()?;
        let flags = u8::try_from(input.number()?).ok()?;
        let merged = small(input.number()?)?;
        let (kind, value) = (input.number()?, input.number()?);
        slices.push(Slice {
            begin: position(at),
            end: position(end),
            kind: slice_kind(kind, value, ids)?,
            depth,
            flags,
            merged,
        });
    }
    Some(TrackSlices {
        track,
        slices,
        floor,
    })
}

fn slice_kind(kind: u64, value: u64, ids: &[FunctionId]) -> Option<SliceKind> {
    let number = usize::try_from(value).ok()?.checked_sub(1);
    let function = number.and_then(|number| ids.get(number).copied());
    let code = match value.checked_sub(1) {
        Some(code) => Some(small(code)?),
        None => None,
    };
    Some(match kind {
        0 => SliceKind::Call(function?),
        1 => SliceKind::TailCall(function?),
        2 => SliceKind::Merged(function),
        3 => SliceKind::Away,
        4 => SliceKind::Trap(Cause::Unknown),
        5 => SliceKind::Trap(Cause::Exception(code)),
        6 => SliceKind::Trap(Cause::Interrupt(code)),
        _ => return None,
    })
}

fn read_gap(input: &mut Unpacker<'_>) -> Option<(TrackId, Slice)> {
    let track = TrackId(small(input.number()?)?);
    let (begin, end) = (input.number()?, input.number()?);
    let slice = Slice {
        begin: position(begin),
        end: position(end),
        kind: SliceKind::Away,
        depth: i32::try_from(input.signed()?).ok()?,
        flags: 0,
        merged: 0,
    };
    Some((track, slice))
}

fn read_thread(input: &mut Unpacker<'_>) -> Option<(HartId, u32, TrackId)> {
    let (hart, thread) = (small(input.number()?)?, small(input.number()?)?);
    Some((HartId(hart), thread, TrackId(small(input.number()?)?)))
}

fn read_stop(input: &mut Unpacker<'_>) -> Option<(Checkpoint, Stop)> {
    let place = Checkpoint {
        offset: input.number()?,
        position: input.number()?,
    };
    let mut harts = Vec::new();
    for _ in 0..input.count()? {
        let hart = HartId(small(input.number()?)?);
        harts.push((hart, input.number()?, input.option()?));
    }
    let state = input.bytes()?.to_vec();
    Some((place, Stop { harts, state }))
}
