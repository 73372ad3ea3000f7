//! Executed addresses as numbers, in pieces.

use crate::spaces::Spaces;
use hartrace_flow::{Consumer, Event, HartId, Image, Run, SpaceId};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;

/// Addresses in a piece, about.
const PIECE: usize = 1 << 14;

/// Addresses of runs that are kept.
const MANY: usize = 1 << 20;

/// Gives `take` the addresses of all executed instructions in pieces.
pub struct PcPieces<'a> {
    image: &'a Image,
    spaces: Spaces,
    /// The addresses of runs, each found once.
    known: FxHashMap<(SpaceId, u64, u32), (u32, u32)>,
    pcs: Vec<u64>,
    piece: Vec<u64>,
    harts: Vec<HartId>,
    take: Box<dyn FnMut(Vec<u64>) + 'a>,
}

impl<'a> PcPieces<'a> {
    /// Nothing yet.
    pub fn new(image: &'a Image, take: impl FnMut(Vec<u64>) + 'a) -> PcPieces<'a> {
        PcPieces {
            image,
            spaces: Spaces::default(),
            known: FxHashMap::default(),
            pcs: Vec::new(),
            piece: Vec::new(),
            harts: Vec::new(),
            take: Box::new(take),
        }
    }

    /// Gives the last piece.
    pub fn finish(&mut self) {
        (self.take)(std::mem::take(&mut self.piece));
    }

    /// The harts that executed anything so far.
    #[must_use]
    pub fn harts(&self) -> &[HartId] {
        &self.harts
    }

    fn run(&mut self, hart: HartId, run: &Run) {
        if self.harts.last() != Some(&hart) && !self.harts.contains(&hart) {
            self.harts.push(hart);
        }
        let space = self.spaces.of(hart);
        if self.pcs.len() > MANY {
            self.pcs.clear();
            self.known.clear();
        }
        let (image, pcs) = (self.image, &mut self.pcs);
        let known = self.known.entry((space, run.start, run.insns));
        let (from, len) = *known.or_insert_with(|| {
            let from = pcs.len();
            let insns = image.insns(space, run.start, run.insns.into());
            pcs.extend(insns.map(|(pc, _)| pc));
            (from as u32, (pcs.len() - from) as u32)
        });
        let range = from as usize..(from + len) as usize;
        self.piece
            .extend_from_slice(self.pcs.get(range).unwrap_or_default());
        if self.piece.len() >= PIECE {
            (self.take)(std::mem::take(&mut self.piece));
        }
    }
}

impl Consumer for PcPieces<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(hart, run),
            Event::Context(owner) => self.spaces.enter(hart, owner, self.image),
            Event::Code(space) => self.spaces.set(hart, *space),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
