//! Slices in bounded memory.
//!
//! As long as there are few slices, all are kept. When there are too many, those shorter
//! than a *width* are merged with short neighbours inside the same slice, up to a length
//! of about the width; what was inside them is forgotten. So at most a few slices for each
//! width and depth are left, however long the trace is. The width is doubled as often as
//! needed.

use super::{Slice, SliceKind, TimelineSink, Track, TrackId};
use crate::stacks::Measure;
use hartrace_flow::order;

/// The slices of a track, by where they begin; the outer one first.
#[derive(Clone, Debug)]
pub struct TrackSlices {
    /// The track.
    pub track: Track,
    /// Its slices. The depth of the outermost ones is 0.
    pub slices: Vec<Slice>,
    /// The depth of these in the timeline.
    pub floor: i32,
}

impl TrackSlices {
    /// The slices between two places on an axis, with those shorter than a width merged.
    #[must_use]
    pub fn window(&self, axis: Measure, (from, until): (u64, u64), width: u64) -> Vec<Slice> {
        let after = |slice: &Slice| slice.begin.on(axis) <= until;
        let begun = self.slices.partition_point(after);
        let begun = self.slices.get(..begun).unwrap_or_default().iter();
        let inside = begun.filter(|slice| slice.end.on(axis) >= from);
        let mut kept = Kept::new(self.track);
        kept.slices.extend(inside);
        if width > 0 {
            kept.compact((axis, width));
        }
        kept.sort();
        kept.slices
    }
}

/// What was merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merging {
    /// Slices shorter than this, on the axis of the summary, were merged; 0 if none was.
    pub width: u64,
    /// How many.
    pub slices: u64,
}

/// Keeps the slices of a timeline, and merges short ones so that there are not too
/// many.
#[derive(Clone, Debug)]
pub struct SliceSummary {
    axis: Measure,
    limit: usize,
    width: u64,
    count: usize,
    tracks: Vec<Kept>,
}

/// The slices of a track, in the order in which they ended.
#[derive(Clone, Debug)]
struct Kept {
    track: Track,
    slices: Vec<Slice>,
    pending: Pending,
}

/// Short slices that may be merged with the next, by their depth.
#[derive(Clone, Debug, Default)]
struct Pending {
    /// The depth of the first.
    floor: i32,
    slots: Vec<Option<Group>>,
}

/// Slices that are merged.
#[derive(Clone, Copy, Debug)]
struct Group {
    slice: Slice,
    /// The weight of its function: what slices of it took, less what others took.
    weight: u64,
}

impl Group {
    fn of(slice: &Slice, axis: Measure) -> Group {
        Group {
            slice: *slice,
            weight: slice.length(axis),
        }
    }

    /// What is shown for it: a slice that is alone is itself.
    fn slice(&self) -> Slice {
        let function = self.slice.kind.function();
        match self.slice.merged {
            0 => self.slice,
            _ => Slice {
                kind: SliceKind::Merged(function),
                ..self.slice
            },
        }
    }

    /// Adds a slice that ends after all before. Of the functions, one that has more than
    /// half of the length is found for certain.
    fn add(&mut self, next: &Slice, axis: Measure) {
        let many = |slice: &Slice| slice.merged.max(1);
        self.slice.merged = many(&self.slice).saturating_add(many(next));
        self.slice.end = next.end;
        self.slice.flags |= next.flags;
        let (here, there) = (self.slice.kind.function(), next.kind.function());
        let weight = next.length(axis);
        if here == there {
            self.weight += weight;
        } else if weight > self.weight {
            self.slice.kind = SliceKind::Merged(there);
            self.weight = weight - self.weight;
        } else {
            self.weight -= weight;
        }
    }

    /// What was inside it is not shown.
    fn swallow(&mut self, inside: u32) {
        if inside > 0 {
            self.slice.merged = self.slice.merged.max(1).saturating_add(inside);
        }
    }
}

impl Pending {
    #[inline]
    fn take(&mut self, depth: i32) -> Option<Group> {
        let at = usize::try_from(depth.checked_sub(self.floor)?).ok()?;
        self.slots.get_mut(at)?.take()
    }

    fn put(&mut self, depth: i32, group: Group) {
        while depth < self.floor {
            self.slots.insert(0, None);
            self.floor -= 1;
        }
        let at = (depth - self.floor) as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Some(group);
        }
    }

    /// Merges a short slice, with so many inside it, with those before it. Gives what
    /// is too far before it.
    fn absorb(
        &mut self,
        slice: &Slice,
        inside: u32,
        (axis, width): (Measure, u64),
    ) -> Option<Slice> {
        let mut next = Group::of(slice, axis);
        next.swallow(inside);
        let Some(mut group) = self.take(slice.depth) else {
            self.put(slice.depth, next);
            return None;
        };
        let reach = slice
            .end
            .on(axis)
            .saturating_sub(group.slice.begin.on(axis));
        if reach <= width {
            group.add(&next.slice, axis);
            self.put(slice.depth, group);
            return None;
        }
        self.put(slice.depth, next);
        Some(group.slice())
    }

    /// Everything from a depth on.
    fn drain_from(&mut self, depth: i32) -> impl Iterator<Item = Slice> {
        let from = usize::try_from(depth.saturating_sub(self.floor)).unwrap_or(0);
        let slots = self.slots.get_mut(from..).unwrap_or_default();
        slots
            .iter_mut()
            .filter_map(|slot| Some(slot.take()?.slice()))
    }
}

impl Kept {
    fn new(track: Track) -> Kept {
        Kept {
            track,
            slices: Vec::new(),
            pending: Pending::default(),
        }
    }

    #[inline]
    fn end(&mut self, slice: &Slice, by: (Measure, u64)) {
        let (axis, width) = by;
        let inside = self.pending.take(slice.depth.saturating_add(1));
        if slice.length(axis) >= width {
            let beside = self.pending.take(slice.depth);
            let groups = inside.into_iter().chain(beside);
            self.slices.extend(groups.map(|group| group.slice()));
            self.slices.push(*slice);
            return;
        }
        let mut inside = inside.map_or(0, |group| group.slice.merged.max(1));
        // The width has grown since these were kept.
        while let Some(last) = self.slices.last()
            && last.depth > slice.depth
            && last.begin >= slice.begin
        {
            inside = inside.saturating_add(last.merged.max(1));
            self.slices.pop();
        }
        self.slices.extend(self.pending.absorb(slice, inside, by));
    }

    /// By where they begin, the outer one first. Those that begin at the same place at
    /// the same depth stay in the order of their ends.
    fn sort(&mut self) {
        self.slices.sort_by_key(|slice| (slice.begin, slice.depth));
    }

    /// Merges what is shorter than a greater width.
    fn compact(&mut self, by: (Measure, u64)) {
        self.sort();
        let (axis, width) = by;
        let mut pending = Pending::default();
        let mut kept: Vec<Slice> = Vec::with_capacity(self.slices.len());
        // A short slice, and what is inside it.
        let mut short: Option<(Slice, u32)> = None;
        // Long slices that have not ended: depth and end.
        let mut outer: Vec<Slice> = Vec::new();
        for slice in self.slices.drain(..) {
            if let Some((around, inside)) = &mut short {
                // What is after it may be inside one that has not ended.
                if slice.depth > around.depth && slice.begin < around.end {
                    *inside = inside.saturating_add(slice.merged.max(1));
                    continue;
                }
                kept.extend(pending.absorb(around, *inside, by));
                short = None;
            }
            while let Some(last) = outer.last()
                && (last.depth >= slice.depth || last.end <= slice.begin)
            {
                kept.extend(pending.drain_from(last.depth + 1));
                outer.pop();
            }
            if slice.length(axis) < width {
                short = Some((slice, 0));
                continue;
            }
            kept.extend(pending.drain_from(slice.depth));
            kept.push(slice);
            outer.push(slice);
        }
        if let Some((around, inside)) = short {
            kept.extend(pending.absorb(&around, inside, by));
        }
        kept.extend(pending.drain_from(i32::MIN));
        self.slices = kept;
    }
}

impl SliceSummary {
    /// At most `limit` slices, judged by their length on an axis; by their instructions
    /// where the trace has no times.
    #[must_use]
    pub fn new(axis: Measure, limit: usize) -> SliceSummary {
        SliceSummary {
            axis,
            limit: limit.max(16),
            width: 0,
            count: 0,
            tracks: Vec::new(),
        }
    }

    /// Slices shorter than a width are merged from the start.
    #[must_use]
    pub fn merging(self, width: u64) -> SliceSummary {
        SliceSummary { width, ..self }
    }

    /// The same with another limit.
    #[must_use]
    pub fn within(self, limit: usize) -> SliceSummary {
        SliceSummary {
            limit: limit.max(16),
            ..self
        }
    }

    /// The slices of all tracks, at most as many as the limit allows, and what was merged.
    #[must_use]
    pub fn finish(mut self) -> (Vec<TrackSlices>, Merging) {
        for kept in &mut self.tracks {
            let rest: Vec<Slice> = kept.pending.drain_from(i32::MIN).collect();
            kept.slices.extend(rest);
        }
        self.recount();
        if self.count > self.limit {
            self.compact(self.limit);
        }
        let mut merged = 0;
        let mut tracks = Vec::with_capacity(self.tracks.len());
        for mut kept in self.tracks {
            kept.sort();
            let floor = kept.slices.iter().map(|slice| slice.depth).min();
            for slice in &mut kept.slices {
                slice.depth = slice.depth.saturating_sub(floor.unwrap_or(0));
                merged += u64::from(slice.merged);
            }
            tracks.push(TrackSlices {
                track: kept.track,
                slices: kept.slices,
                floor: floor.unwrap_or(0),
            });
        }
        let merging = Merging {
            width: if merged > 0 { self.width } else { 0 },
            slices: merged,
        };
        (tracks, merging)
    }

    fn recount(&mut self) {
        self.count = self.tracks.iter().map(|kept| kept.slices.len()).sum();
    }

    /// Doubles the width until so many slices are left.
    #[cold]
    #[inline(never)]
    fn compact(&mut self, goal: usize) {
        let mut slices = self.tracks.iter().flat_map(|kept| &kept.slices);
        // A format may have times, and a trace of it none: then all would be short.
        if self.width == 0 && slices.all(|slice| slice.end.time == 0) {
            self.axis = Measure::Instructions;
        }
        let mut attempts = 0;
        while self.count > goal && attempts < 80 {
            self.width = self.next_width(goal);
            for kept in &mut self.tracks {
                kept.compact((self.axis, self.width));
            }
            self.recount();
            attempts += 1;
        }
        if self.count > goal {
            // Far too many tracks: each keeps its longest slices.
            self.keep_longest(goal);
        }
    }

    /// The next width, a power of two, with which at most `goal` slices may be long.
    fn next_width(&self, goal: usize) -> u64 {
        let mut lengths = [0usize; 65];
        for slice in self.tracks.iter().flat_map(|kept| &kept.slices) {
            let bits = 64 - slice.length(self.axis).leading_zeros();
            if let Some(count) = lengths.get_mut(bits as usize) {
                *count += 1;
            }
        }
        let mut long = 0;
        let least = (0u32..65).rev().find(|bits| {
            long += lengths.get(*bits as usize).copied().unwrap_or(0);
            long > goal
        });
        let width = least.map_or(1, |bits| 1u64.checked_shl(bits).unwrap_or(u64::MAX));
        width.max(self.width.saturating_mul(2)).max(1)
    }

    fn keep_longest(&mut self, goal: usize) {
        let share = goal / self.tracks.len().max(1);
        for kept in &mut self.tracks {
            let axis = self.axis;
            order::sort_by_key(&mut kept.slices, |s| {
                (std::cmp::Reverse(s.length(axis)), s.depth)
            });
            kept.slices.truncate(share);
        }
        self.recount();
    }
}

impl TimelineSink for SliceSummary {
    fn track(&mut self, id: TrackId, track: &Track) {
        debug_assert_eq!(id.index(), self.tracks.len());
        self.tracks.push(Kept::new(*track));
    }

    fn end(&mut self, track: TrackId, slice: &Slice) {
        let by = (self.axis, self.width);
        let Some(kept) = self.tracks.get_mut(track.index()) else {
            return;
        };
        let before = kept.slices.len();
        kept.end(slice, by);
        self.count = self.count + kept.slices.len() - before;
        // Room for as many again, so that this happens seldom.
        if self.count > 2 * self.limit {
            self.compact(self.limit);
        }
    }
}
