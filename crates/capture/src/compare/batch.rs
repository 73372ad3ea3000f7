//! Steps on their way from one source to several threads.

use hartrace_flow::{
    Changes, Context, Effects, HartId, Mode, Observer, Placed, Step, Straight, Straights, Wants,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Instructions in a batch, about.
const SIZE: usize = 1 << 15;

/// Steps of a source, copied.
#[derive(Default)]
pub(super) struct Batch {
    items: Vec<Item>,
    /// The code of all pieces, and the pieces.
    code: Vec<Placed>,
    list: Vec<Straight>,
}

enum Item {
    Step(HartId, Step),
    Straights {
        hart: HartId,
        context: Context,
        mode: Mode,
        list: Range<usize>,
        count: u64,
    },
}

impl Batch {
    fn is_full(&self) -> bool {
        self.items.len() + self.code.len() >= SIZE
    }

    /// Shows the steps to an observer that wants no effects.
    pub(super) fn replay(&self, observer: &mut impl Observer) {
        for item in &self.items {
            match item {
                Item::Step(hart, step) => observer.step(*hart, step, &Effects::NONE),
                Item::Straights {
                    hart,
                    context,
                    mode,
                    list,
                    count,
                } => {
                    let straights = Straights {
                        code: &self.code,
                        list: self.list.get(list.clone()).unwrap_or_default(),
                        count: *count,
                        // What is compared has no data trace.
                        accesses: &[],
                        changes: Changes::NONE,
                        context: *context,
                        mode: *mode,
                        news: None,
                    };
                    observer.straights(*hart, &straights);
                }
            }
        }
    }
}

/// Takes the steps of a source and passes them to every thread of a comparison.
pub struct Feed {
    batch: Batch,
    threads: Vec<SyncSender<Arc<Batch>>>,
    times: Option<(u64, u64)>,
}

impl Feed {
    pub(super) fn new(threads: Vec<SyncSender<Arc<Batch>>>) -> Feed {
        Feed {
            batch: Batch::default(),
            threads,
            times: None,
        }
    }

    /// The time from the first step to the last.
    pub(super) fn cycles(&self) -> u64 {
        self.times.map_or(0, |(first, last)| last - first)
    }

    #[inline]
    fn time(&mut self, first: u64, last: u64) {
        let known = self.times.unwrap_or((first, first));
        self.times = Some((known.0, known.1.max(last)));
    }

    fn send(&mut self) {
        let batch = Arc::new(std::mem::take(&mut self.batch));
        for thread in &self.threads {
            // A thread that has ended reports why.
            let _ = thread.send(Arc::clone(&batch));
        }
    }
}

impl Observer for Feed {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        match step {
            Step::Insn(insn) => self.time(insn.time, insn.time),
            Step::Trap(trap) => self.time(trap.time, trap.time),
            Step::Signal(_) => {}
        }
        self.batch.items.push(Item::Step(hart, *step));
        if self.batch.is_full() {
            self.send();
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        let from = self.batch.list.len();
        for piece in code.list {
            let insns = code.insns(piece);
            if let Some(last) = insns.last() {
                self.time(piece.time, piece.time_of(insns.len() - 1, last));
            }
            let piece = piece.moved_to(self.batch.code.len());
            self.batch.code.extend_from_slice(insns);
            self.batch.list.push(piece);
        }
        self.batch.items.push(Item::Straights {
            hart,
            context: code.context,
            mode: code.mode,
            list: from..self.batch.list.len(),
            count: code.count,
        });
        if self.batch.is_full() {
            self.send();
        }
    }

    fn finish(&mut self) {
        self.send();
    }
}
