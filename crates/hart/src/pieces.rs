//! Straight-line code that was executed, on its way to an observer.

use hartrace_flow::{Context, HartId, Mode, News, Observer, Straight, Straights};

use crate::blocks::Blocks;
use crate::changes::Collected;
use crate::code::Code;
use crate::report::Report;

/// Pieces that are handed over together: few enough to stay in the cache.
const MOST: usize = 256;

/// Pieces that the observer has not seen yet; none between two runs of the
/// interpreter.
#[derive(Debug)]
pub(crate) struct Pieces {
    list: Box<[Straight; MOST]>,
    len: usize,
    /// See [`News::number`]; 0 while no observer is told what is new.
    number: u64,
}

/// Whose they are.
#[derive(Clone, Copy)]
pub(crate) struct Whose {
    pub(crate) id: HartId,
    pub(crate) mode: Mode,
    pub(crate) context: Context,
}

impl Pieces {
    pub(crate) fn new() -> Pieces {
        Pieces {
            list: Box::new([Straight::default(); MOST]),
            len: 0,
            number: 0,
        }
    }

    /// Whether an observer takes pieces that none took before: all code is new to it.
    pub(crate) fn begin(&mut self, observed: bool) -> bool {
        let before = self.number;
        self.number = if observed { before.max(1) } else { 0 };
        observed && before == 0
    }

    /// Adds one. True if there is no room for another: all must be handed over.
    #[inline(always)]
    pub(crate) fn push(&mut self, piece: Straight) -> bool {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        {
            self.list[self.len % MOST] = piece;
        }
        self.len += 1;
        self.len == MOST
    }

    /// Hands over what there is: so many instructions.
    #[inline(never)]
    pub(crate) fn flush<O: Observer>(
        &mut self,
        count: u64,
        (report, changes): (&mut Report<'_, O>, &mut Collected),
        code: &Code,
        blocks: &mut Blocks,
        whose: Whose,
    ) {
        let list = self.list.get(..self.len).unwrap_or_default();
        self.len = 0;
        if !list.is_empty() {
            let all = Straights {
                code: &code.placed,
                list,
                count,
                accesses: report.accesses,
                changes: changes.all(),
                context: whose.context,
                mode: whose.mode,
                news: (self.number > 0).then_some(News {
                    number: self.number,
                    any: blocks.news,
                }),
            };
            if self.number > 0 {
                self.number += 1;
                blocks.news = false;
            }
            report.observer.straights(whose.id, &all);
        }
        report.accesses.clear();
        changes.clear();
    }
}
