//! Parts of blocks: when a count ends, or an address is, inside a block.

use hartrace_isa::Flow;

use crate::blocks::{Block, Kind};
use crate::{Blocks, Exit, Run, SpaceId, Walk};

impl Walk {
    /// Where the walk stands before a jump whose target is given by the constant that
    /// was loaded right before it: that instruction. Another walk that is to go
    /// on from here has to begin there.
    #[must_use]
    pub fn constant(&self, blocks: &Blocks<'_>) -> Option<u64> {
        let before = self.last().filter(|_| self.done > 0)?;
        let flow = |pc| {
            let fetched = self.fetch(blocks, pc);
            fetched.map(|f| Flow::of(f.bits, f.isa))
        };
        let (jump, load) = (flow(self.pc)?, flow(before)?);
        blocks.is_inferred(jump, (load, before)).then_some(before)
    }
}

/// The instructions of a run that lie wholly between two offsets, in
/// halfwords; `None` if there are none. `from` is where an instruction starts.
pub(super) fn trim(
    blocks: &mut Blocks<'_>,
    space: SpaceId,
    run: &Run,
    from: u32,
    to: u32,
) -> Option<Run> {
    let at = |offset: u32| run.start.wrapping_add(u64::from(offset) * 2);
    let before = match from {
        0 => 0,
        _ => blocks.cut(space, run, at(from))?.insns,
    };
    let part = Run {
        start: at(from),
        insns: run.insns - before,
        ..*run
    };
    if to >= run.halfwords() {
        return Some(part);
    }
    // The count may end inside an instruction: that one is not wholly there.
    let mut ends = (from + 1..=to).rev();
    let (end, cut) = ends.find_map(|to| Some((at(to), blocks.cut(space, run, at(to))?)))?;
    Some(Run {
        end,
        next: end,
        insns: cut.insns - before,
        exit: Exit::Stop,
        last: cut.last,
        ..part
    })
}

/// Where in a block an instruction starts, in halfwords, not before `from`.
pub(super) fn locate(
    blocks: &mut Blocks<'_>,
    block: &Block,
    space: SpaceId,
    address: u64,
    from: u32,
) -> Option<u32> {
    let mut offset = 0;
    let mut i = 0;
    while let Some(&run) = blocks.runs(block, false).get(i) {
        let inside = address.wrapping_sub(run.start);
        if inside < run.end.wrapping_sub(run.start) {
            let at = offset + (inside / 2) as u32;
            let starts = inside == 0 || blocks.cut(space, &run, address).is_some();
            if starts && at >= from {
                return Some(at);
            }
        }
        offset += run.halfwords();
        i += 1;
    }
    // The path ends before an ecall, or where there is no code: those are
    // addresses to arrive at too.
    let ends = matches!(block.kind, Kind::Trap | Kind::Missing);
    (ends && block.at == address && offset >= from).then_some(offset)
}
