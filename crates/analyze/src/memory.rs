//! What data trace reports about places in memory: their contents, and which
//! instruction wrote them last.

use crate::spaces::Spaces;
use hartrace_flow::{Access, AccessKind, Consumer, DataAccess, Event, HartId, Image, PerHart, Run};
use std::ops::ControlFlow;

/// Follows the accesses to places in memory up to an instruction.
///
/// Instructions are numbered from 0, each hart by itself. A load makes the contents
/// known, but it is not a write.
pub struct MemoryWatch<'a> {
    image: &'a Image,
    places: Vec<Watched>,
    until: Until,
    spaces: Spaces,
    harts: PerHart<Hart>,
    /// Accesses so far.
    accesses: u64,
}

/// Where the watch ends: what comes from there on does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end of the trace.
    End,
    /// The instruction with this number.
    Instruction(u64),
    /// The first instruction at this address.
    Address(u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Hart {
    /// Instructions before the last run, and with it.
    before: u64,
    done: u64,
    run: Option<Run>,
    /// The number of the instruction at which the watch ends.
    end: Option<u64>,
}

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its first address.
    pub start: u64,
    /// Its bytes, as far as they are known.
    pub bytes: Vec<Option<u8>>,
    /// The last write to any of its bytes.
    pub last: Option<Write>,
}

/// A write to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which hart.
    pub hart: HartId,
    /// The number of the instruction; `None` if the trace does not report which
    /// instruction it was.
    pub insn: Option<u64>,
    /// Its address.
    pub pc: Option<u64>,
    /// What it did.
    pub access: Access,
}

impl<'a> MemoryWatch<'a> {
    /// Watches places: the first address and the length of each.
    #[must_use]
    pub fn new(image: &'a Image, places: &[(u64, u64)], until: Until) -> MemoryWatch<'a> {
        let place = |&(start, len): &(u64, u64)| Watched {
            start,
            bytes: vec![None; usize::try_from(len).unwrap_or(0)],
            last: None,
        };
        MemoryWatch {
            image,
            places: places.iter().map(place).collect(),
            until,
            spaces: Spaces::default(),
            harts: PerHart::default(),
            accesses: 0,
        }
    }

    /// What was found, in the order of the places.
    #[must_use]
    pub fn places(&self) -> &[Watched] {
        &self.places
    }

    /// Accesses of the trace, to these places or not.
    #[must_use]
    pub const fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Instructions of the hart with the most.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        let all = self.harts.iter().map(|(_, hart)| hart.done);
        all.max().unwrap_or(0)
    }

    fn run(&mut self, id: HartId, run: &Run) {
        let space = self.spaces.of(id);
        let hart = self.harts.of(id);
        hart.before = hart.done;
        hart.done += u64::from(run.insns);
        hart.run = Some(*run);
        if let (Until::Address(address), None) = (self.until, hart.end)
            && address.wrapping_sub(run.start) < run.end.wrapping_sub(run.start)
        {
            let mut insns = self.image.insns(space, run.start, run.insns.into());
            let at = insns.position(|(pc, _)| pc == address);
            hart.end = at.map(|at| hart.before + at as u64);
        }
    }

    fn access(&mut self, id: HartId, data: &DataAccess) {
        self.accesses += 1;
        let access = &data.access;
        if !data.has_address || access.kind.is_csr() {
            return;
        }
        let len = 1u64 << (access.size & 7);
        if !self
            .places
            .iter()
            .any(|place| place.overlaps(access.addr, len))
        {
            return;
        }
        let hart = *self.harts.of(id);
        let insn = data.insn.map(|index| hart.before + u64::from(index));
        let end = match self.until {
            Until::End => None,
            Until::Instruction(number) => Some(number),
            Until::Address(_) => hart.end,
        };
        if end.is_some_and(|end| insn.unwrap_or(hart.done) >= end) {
            return;
        }
        let pc = data.insn.zip(hart.run).and_then(|(index, run)| {
            let insns = self
                .image
                .insns(self.spaces.of(id), run.start, u64::from(index) + 1);
            insns.last().map(|(pc, _)| pc)
        });
        let write = Write {
            hart: id,
            insn,
            pc,
            access: *access,
        };
        for place in &mut self.places {
            place.take(&write, len);
        }
    }
}

impl Watched {
    fn overlaps(&self, addr: u64, len: u64) -> bool {
        let size = self.bytes.len() as u64;
        addr.wrapping_sub(self.start) < size || self.start.wrapping_sub(addr) < len
    }

    fn take(&mut self, write: &Write, len: u64) {
        let access = &write.access;
        if !self.overlaps(access.addr, len) || access.kind.is_failure() {
            return;
        }
        for i in 0..len {
            let at = access.addr.wrapping_add(i).wrapping_sub(self.start);
            if let Some(byte) = usize::try_from(at)
                .ok()
                .and_then(|at| self.bytes.get_mut(at))
            {
                *byte = access.data.map(|data| (data >> (8 * i.min(7))) as u8);
            }
        }
        if access.kind != AccessKind::Load {
            self.last = Some(*write);
        }
    }
}

impl Consumer for MemoryWatch<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(hart, run),
            Event::Access(data) => self.access(hart, data),
            Event::Context(owner) => self.spaces.enter(hart, owner, self.image),
            Event::Code(space) => self.spaces.set(hart, *space),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_flow::{Exit, SpaceId};
    use hartrace_isa::Isa;

    const HART: HartId = HartId(0);

    fn watch(until: Until, places: &[(u64, u64)]) -> Vec<Watched> {
        let mut image = Image::new();
        image.add_raw(
            SpaceId::FIRST,
            0x100,
            &[0x13, 0, 0, 0].repeat(8),
            Isa::RV64GC,
        );
        let mut watch = MemoryWatch::new(&image, places, until);
        let access = |kind, addr, data| Access {
            kind,
            size: 2,
            addr,
            data,
            ..Access::default()
        };
        for (insn, one) in [
            (1, access(AccessKind::Store, 0x1000, Some(0x4433_2211))),
            (2, access(AccessKind::Load, 0x1004, Some(0x8877_6655))),
            (3, access(AccessKind::AtomicAdd, 0x1002, Some(0xddcc_bbaa))),
            (
                3,
                access(AccessKind::ConditionalStoreFailure, 0x1000, Some(0)),
            ),
        ] {
            let run = Run {
                start: 0x100,
                end: 0x120,
                next: 0x120,
                insns: 8,
                exit: Exit::Stop,
                last: 4,
            };
            let _ = watch.event(HART, &Event::Run(run));
            let _ = watch.event(HART, &Event::Access(DataAccess::of(insn, one)));
        }
        assert_eq!((watch.accesses(), watch.instructions()), (4, 32));
        watch.places().to_vec()
    }

    #[test]
    fn the_last_writer_and_the_contents() {
        let [first, second] = &watch(Until::End, &[(0x1000, 6), (0x1006, 4)])[..] else {
            panic!("two places");
        };
        let bytes = [0x11, 0x22, 0xaa, 0xbb, 0xcc, 0xdd].map(Some);
        assert_eq!(first.bytes, bytes);
        let last = first.last.unwrap();
        assert_eq!((last.insn, last.pc), (Some(16 + 3), Some(0x10c)));
        assert_eq!(last.access.kind, AccessKind::AtomicAdd);
        // Only read.
        assert_eq!(second.bytes, [Some(0x77), Some(0x88), None, None]);
        assert_eq!(second.last, None);
    }

    #[test]
    fn what_comes_later_does_not_count() {
        for until in [Until::Instruction(19), Until::Instruction(2)] {
            let places = watch(until, &[(0x1000, 4)]);
            assert_eq!(places[0].last.unwrap().insn, Some(1));
        }
        let places = watch(Until::Instruction(1), &[(0x1000, 4)]);
        assert_eq!(places[0].last, None);
        // 0x108 is the third instruction.
        let places = watch(Until::Address(0x108), &[(0x1000, 8)]);
        assert_eq!(places[0].last.unwrap().insn, Some(1));
        assert_eq!(places[0].bytes[4], None);
    }
}
