//! The addresses that two runs executed, decoded at the same time.

use crate::failure::Failure;
use crate::logs::which_hart;
use crate::settings::Program;
use crate::source::Source;
use hartrace_analyze::PcPieces;
use hartrace_flow::Image;
use hartrace_isa::Isa;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Pieces that one run may be ahead of the comparison.
const AHEAD: usize = 4;

/// The addresses of a run, piece by piece.
pub(crate) type Pieces = Receiver<Vec<u64>>;

/// A run whose addresses are wanted.
pub(crate) struct Addresses<'a, 'p> {
    pub(crate) source: Source<'a>,
    pub(crate) of: (&'p Program, &'p Image, Isa),
    pub(crate) path: &'p Path,
}

/// Decodes two runs for `compare`; what that came to, and what reading came to.
pub(crate) fn side_by_side<T>(
    [a, b]: [Addresses<'_, '_>; 2],
    hart: Option<u32>,
    compare: impl FnOnce([Pieces; 2]) -> T,
) -> (T, Result<(), Failure>) {
    let (to_a, from_a) = sync_channel(AHEAD);
    let (to_b, from_b) = sync_channel(AHEAD);
    thread::scope(|scope| {
        let a = scope.spawn(move || produce(a, hart, &to_a));
        let b = scope.spawn(move || produce(b, hart, &to_b));
        let compared = compare([from_a, from_b]);
        let read = [a.join(), b.join()].map(joined);
        (compared, read.into_iter().collect())
    })
}

/// What a thread came to.
fn joined(result: thread::Result<Result<(), Failure>>) -> Result<(), Failure> {
    match result {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Decodes one of the runs, and sends its addresses until none are wanted any more.
fn produce(
    run: Addresses<'_, '_>,
    hart: Option<u32>,
    to: &SyncSender<Vec<u64>>,
) -> Result<(), Failure> {
    // The comparison ends early if the runs do not meet again.
    let unwanted = AtomicBool::new(false);
    let take = |piece| {
        if !unwanted.load(Ordering::Relaxed) && to.send(piece).is_err() {
            unwanted.store(true, Ordering::Relaxed);
        }
    };
    let wanted = || match unwanted.load(Ordering::Relaxed) {
        true => Err(Failure::ClosedPipe),
        false => Ok(()),
    };
    let mut pieces = PcPieces::new(run.of.1, take);
    match run.source.feed(run.of, &mut pieces, hart, wanted) {
        Err(Failure::ClosedPipe) => {}
        read => {
            read?;
            pieces.finish();
        }
    }
    // The addresses of several harts, mixed, are those of no run.
    let harts = pieces.harts();
    which_hart(run.path, harts, harts.len() > 1)
}
