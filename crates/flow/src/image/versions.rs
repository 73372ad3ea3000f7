//! Code that is not always the same at an address: patched by a kernel, written by a
//! compiler at run time, or of another process.
//!
//! What is always the same stays in one space, so blocks of it serve everyone. Where
//! the code differs, that space has a hole, and each version of the code in the hole
//! is a space of its own. A walk that comes to a hole looks up which version the hart
//! saw at that moment ([`Spot`]), each time.

use alloc::vec::Vec;
use core::ops::Range;

use hartrace_isa::Isa;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{Image, Space, SpaceId};
use crate::{Context, HartId, NamedSync};

/// From when on a version is in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Since {
    /// From the start.
    Start,
    /// A number of halfwords after the instruction that a synchronisation message
    /// names.
    Sync {
        /// Offset of the byte after the message in the stream.
        offset: u64,
        /// Halfwords that retired since.
        halfwords: u64,
    },
    /// A time, in the unit of the trace. The first instructions that are certainly
    /// later are those of the first message after it.
    Time(u64),
}

/// A version of the code at some addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// For this hart only.
    pub hart: Option<HartId>,
    /// In this context only.
    pub context: Option<Context>,
    /// From when on.
    pub since: Since,
    /// Which of the contents.
    pub content: usize,
    /// It may have been another one: whoever made the history knows that something
    /// changed the code, but not when, or into what.
    pub doubtful: bool,
}

/// A moment in the execution of a hart, as far as a decoder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The hart.
    pub hart: HartId,
    /// The context it runs in, if reported.
    pub context: Option<Context>,
    /// Offset of the byte after the last synchronisation message, and the halfwords
    /// retired since.
    pub sync: Option<(u64, u64)>,
    /// The last time that was reported.
    pub time: Option<u64>,
}

impl Spot {
    /// Whether this is certainly not before `since`; `None` if it is not known.
    fn is_past(&self, since: Since) -> Option<bool> {
        match since {
            Since::Start => Some(true),
            Since::Sync { offset, halfwords } => self.sync.map(|spot| (offset, halfwords) <= spot),
            Since::Time(time) => self.time.map(|now| time <= now),
        }
    }
}

/// The version of the code at an address that a hart sees at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where it is; `None` if it is not known which version it is, or if there is none.
    pub space: Option<SpaceId>,
    /// The time at which another one takes its place: until a later time is reported, this
    /// may have happened already. 0 if it depends on the time, and none was reported.
    pub until: Option<u64>,
    /// It may have been another one.
    pub doubtful: bool,
    /// It stays the same up to this offset: until after a synchronisation message that ends
    /// there. 0 if that is not known.
    pub stays: u64,
    /// Other harts and contexts may see another one.
    pub own: bool,
}

/// Inserts something in order; mostly it is the last.
fn insert<T>(list: &mut Vec<T>, new: T, key: impl Fn(&T) -> u64) {
    let at = list.partition_point(|known| key(known) < key(&new));
    list.insert(at, new);
}

/// Which version of a hole is there, and from when on.
#[derive(Clone, Copy, Debug)]
struct Change {
    since: Since,
    space: SpaceId,
    doubtful: bool,
}

/// The versions that one hart, or one context, sees one after the other.
#[derive(Clone, Debug)]
struct Sight {
    hart: Option<HartId>,
    context: Option<Context>,
    /// In order.
    changes: Vec<Change>,
}

impl Sight {
    fn is_of(&self, spot: &Spot) -> bool {
        self.hart.is_none_or(|hart| hart == spot.hart)
            && (self.context.is_none() || self.context == spot.context)
    }

    /// The version at a moment.
    fn at(&self, spot: &Spot) -> Sighting {
        let past = |change: &Change| spot.is_past(change.since);
        let time = |change: &Change| match change.since {
            Since::Time(time) => Some(time),
            _ => None,
        };
        // All are placed alike: if one can be judged, all can.
        let last = self.changes.last();
        if last.and_then(past).is_none() {
            return Sighting {
                space: None,
                until: last.and_then(time).map(|_| 0),
                doubtful: false,
                stays: 0,
                own: true,
            };
        }
        let behind = self
            .changes
            .partition_point(|change| past(change) == Some(true));
        let now = behind.checked_sub(1).and_then(|at| self.changes.get(at));
        let for_all = self.hart.is_none() && self.context.is_none();
        let doubtful = now.is_some_and(|change| change.doubtful);
        Sighting {
            space: now.map(|change| change.space),
            until: self.changes.get(behind).and_then(time),
            doubtful,
            stays: match self.changes.get(behind).map(|next| next.since) {
                _ if doubtful => 0,
                None => u64::MAX,
                Some(Since::Sync { offset, .. }) => offset,
                Some(_) => 0,
            },
            own: !for_all,
        }
    }
}

/// Addresses whose code has several versions.
#[derive(Clone, Debug)]
struct Hole {
    /// Addresses of instructions.
    range: Range<u64>,
    sights: Vec<Sight>,
}

/// All such addresses of an image.
#[derive(Clone, Debug, Default)]
pub(super) struct Holes {
    list: Vec<Hole>,
    /// Positions in `list` by the first address of each.
    starts: HashMap<u64, usize, FxBuildHasher>,
    /// The same in order.
    order: Vec<(u64, usize)>,
}

impl Holes {
    fn add(&mut self, hole: Hole) {
        let (start, number) = (hole.range.start, self.list.len());
        self.starts.insert(start, number);
        insert(&mut self.order, (start, number), |(start, _)| *start);
        self.list.push(hole);
    }

    /// Most are one instruction long.
    fn find(&self, pc: u64) -> Option<&Hole> {
        let number = match self.starts.get(&pc) {
            Some(number) => *number,
            None => {
                let behind = self.order.partition_point(|(start, _)| *start <= pc);
                self.order.get(behind.checked_sub(1)?)?.1
            }
        };
        let hole = self.list.get(number)?;
        hole.range.contains(&pc).then_some(hole)
    }
}

impl Image {
    /// The code at these addresses has several versions. Each of the contents begins at
    /// the first of them, and may go on after the last: an instruction belongs to the
    /// place where it starts. Versions come in the order in which they were in place, and
    /// those of a hart or a context go before those of all.
    ///
    /// The addresses must not overlap those of an earlier call.
    ///
    /// ```
    /// use hartrace_flow::{HartId, Image, Since, SpaceId, Spot, Version};
    /// use hartrace_isa::Isa;
    ///
    /// // A nop that became `c.jr ra` 100 halfwords after the message at offset 7.
    /// let mut image = Image::new();
    /// image.add_raw(SpaceId::FIRST, 0x1000, &[1, 0, 1, 0, 1, 0], Isa::RV64GC);
    /// let version = |since, content| Version {
    ///     hart: None, context: None, since, content, doubtful: false,
    /// };
    /// let patched = Since::Sync { offset: 7, halfwords: 100 };
    /// let versions = [version(Since::Start, 0), version(patched, 1)];
    /// image.vary(0x1002..0x1004, &[&[1, 0], &[0x82, 0x80]], &versions, Isa::RV64GC);
    ///
    /// let at = |halfwords| Spot { hart: HartId(0), context: None, sync: Some((7, halfwords)), time: None };
    /// let bits = |halfwords| {
    ///     let space = image.space_at(SpaceId::FIRST, 0x1002, &at(halfwords)).unwrap();
    ///     image.fetch(space, 0x1002).unwrap().bits
    /// };
    /// assert_eq!((bits(99), bits(100)), (1, 0x8082));
    /// assert_eq!(image.fetch(SpaceId::FIRST, 0x1002), None, "it depends");
    /// ```
    pub fn vary(&mut self, range: Range<u64>, contents: &[&[u8]], versions: &[Version], isa: Isa) {
        let spaces: Vec<SpaceId> = contents
            .iter()
            .map(|bytes| {
                let space = self.push(Space {
                    starts: Some((range.start, range.end)),
                    ..Space::default()
                });
                self.add_raw(space, range.start, bytes, isa);
                space
            })
            .collect();
        let mut sights: Vec<Sight> = Vec::new();
        for version in versions {
            let Some(&space) = spaces.get(version.content) else {
                continue;
            };
            let change = Change {
                since: version.since,
                space,
                doubtful: version.doubtful,
            };
            let (hart, context) = (version.hart, version.context);
            let known = sights.iter_mut();
            match known.rev().find(|s| (s.hart, s.context) == (hart, context)) {
                Some(sight) => sight.changes.push(change),
                None => sights.push(Sight {
                    hart,
                    context,
                    changes: [change].into(),
                }),
            }
        }
        if let Some(first) = self.spaces.first_mut() {
            insert(&mut first.barred, (range.start, range.end), |(start, _)| {
                *start
            });
        }
        self.holes.add(Hole { range, sights });
    }

    /// Where the code at an address is at a moment: in this space, or in a version of a
    /// hole in it. `None` if it is not known which.
    #[must_use]
    pub fn space_at(&self, space: SpaceId, pc: u64, spot: &Spot) -> Option<SpaceId> {
        self.sight(space, pc, spot).space
    }

    /// The same, with what is known of it.
    #[must_use]
    pub fn sight(&self, space: SpaceId, pc: u64, spot: &Spot) -> Sighting {
        let known = |space: Option<SpaceId>| Sighting {
            space,
            until: None,
            doubtful: false,
            stays: space.map_or(0, |_| u64::MAX),
            own: false,
        };
        match self.holes.find(pc) {
            None => known(Some(space)),
            Some(hole) => match hole.sights.iter().position(|sight| sight.is_of(spot)) {
                // Those before it are of other harts and contexts.
                Some(number) => {
                    let sighting = hole.sights.get(number).map(|sight| sight.at(spot));
                    let mut sighting = sighting.unwrap_or(known(None));
                    sighting.own |= number > 0;
                    sighting
                }
                None => known(None),
            },
        }
    }

    /// The moments of versions count from these messages. A trace that does not have them
    /// is not the one that the versions are of.
    pub fn expect(&mut self, syncs: &[NamedSync]) {
        self.syncs.extend_from_slice(syncs);
        self.syncs.sort_unstable();
    }

    /// Whether a trace in which a synchronisation message follows another of its hart, or
    /// `after` is `None`, may be the one that the versions are of.
    pub(crate) fn is_expected(&self, sync: NamedSync, after: Option<u64>) -> bool {
        let from = after.map_or(sync.offset, |after| after + 1);
        let first = self.syncs.partition_point(|known| known.offset < from);
        let known = self.syncs.iter().skip(first);
        let mut near = known.take_while(|known| known.offset <= sync.offset);
        near.all(|known| known.hart != sync.hart || *known == sync)
    }

    /// Whether code at any address has several versions.
    #[must_use]
    pub fn varies(&self) -> bool {
        !self.holes.list.is_empty()
    }

    /// Whether the code at an address has several versions.
    pub(crate) fn varies_at(&self, pc: u64) -> bool {
        self.holes.find(pc).is_some()
    }
}
