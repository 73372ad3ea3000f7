//! Parts of blocks, instruction by instruction: where a walk's count ends
//! inside a block, or an address lies in one.

use crate::blocks::{Block, Kind};
use crate::{Blocks, Exit, Run, SpaceId};

/// The instructions of a run that lie wholly between two offsets, in
/// halfwords; `None` if there are none. `from` is where an instruction starts.
pub(super) fn trim(
    blocks: &Blocks<'_>,
    space: SpaceId,
    run: &Run,
    from: u32,
    to: u32,
) -> Option<Run> {
    let mut part: Option<Run> = None;
    let mut offset = 0;
    for (pc, f) in blocks.image().insns(space, run.start, u64::from(run.insns)) {
        let start = offset;
        offset += u32::from(f.len) / 2;
        if offset > to {
            break;
        }
        if start < from {
            continue;
        }
        let part = part.get_or_insert(Run {
            start: pc,
            insns: 0,
            ..*run
        });
        part.insns += 1;
        part.last = f.len;
        part.end = pc.wrapping_add(u64::from(f.len));
    }
    part.map(|part| match part.end == run.end {
        true => part,
        false => Run {
            exit: Exit::Stop,
            next: part.end,
            ..part
        },
    })
}

/// Where in a block an instruction starts, in halfwords, not before `from`.
pub(super) fn locate(
    blocks: &Blocks<'_>,
    block: &Block,
    space: SpaceId,
    address: u64,
    from: u32,
) -> Option<u32> {
    let mut offset = 0;
    for run in blocks.runs(block, false) {
        if address.wrapping_sub(run.start) < run.end.wrapping_sub(run.start) {
            let mut at = offset;
            let insns = blocks.image().insns(space, run.start, run.insns.into());
            for (pc, f) in insns {
                if pc == address && at >= from {
                    return Some(at);
                }
                at += u32::from(f.len) / 2;
            }
        }
        offset += halfwords(run);
    }
    // The way ends in front of an ecall, or where there is no code: those are
    // addresses to arrive at too.
    let ends = matches!(block.kind, Kind::Trap | Kind::Missing);
    (ends && block.at == address && offset >= from).then_some(offset)
}

/// Length of a run.
pub(super) fn halfwords(run: &Run) -> u32 {
    (run.end.wrapping_sub(run.start) / 2) as u32
}
