//! Decodes what is written and compares it with the steps, at once or on another core.

use super::{Decoder, Settings, SettingsError};
use hartrace_flow::{
    Access, Changes, Check, Checked, Context, Decode as _, Difference, Effects, HartId, Image,
    Mode, Observer as _, Placed, Step, Straight, Straights, Unreported,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Instructions in a batch, at least.
const BATCH: usize = 1 << 14;

/// Batches on their way.
const WAITING: usize = 4;

type Outcome = Result<Checked, Box<Difference>>;

/// What decodes a trace while it is written. Steps come first, then the bytes that the encoder
/// has made of them.
pub(super) enum Checker<'a> {
    Here(Box<(Decoder<'a>, Check)>),
    Beside(Box<Beside>),
}

impl<'a> Checker<'a> {
    /// For traces with these settings, a tandem trace that of one hart. A thread of its own does
    /// the work if `beside` is set, unless there is none to be had.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub(super) fn new(
        (settings, hart): (&Settings, HartId),
        unreported: Unreported,
        image: &'a Image,
        beside: bool,
    ) -> Result<Checker<'a>, SettingsError> {
        let here = decoder(settings, hart, image)?;
        let there = (settings.clone(), hart, image.clone());
        if beside && let Some(beside) = Beside::new(there, unreported) {
            return Ok(Checker::Beside(Box::new(beside)));
        }
        let check = Check::new().without(unreported);
        Ok(Checker::Here(Box::new((here, check))))
    }

    #[inline]
    pub(super) fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        match self {
            Checker::Here(both) => both.1.step(hart, step, effects),
            Checker::Beside(beside) => beside.step(hart, step, effects),
        }
    }

    #[inline]
    pub(super) fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        match self {
            Checker::Here(both) => both.1.straights(hart, code),
            Checker::Beside(beside) => beside.straights(hart, code),
        }
    }

    /// Whether it should be given what bytes there are, however few: steps have gathered.
    pub(super) fn is_due(&self) -> bool {
        match self {
            Checker::Here(_) => true,
            Checker::Beside(beside) => beside.batch.size() >= BATCH,
        }
    }

    /// Takes bytes, and compares with the steps so far.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        match self {
            Checker::Here(both) => feed(&mut both.0, bytes, &mut both.1),
            Checker::Beside(beside) => beside.feed(bytes),
        }
    }

    /// There are no more bytes.
    pub(super) fn finish(&mut self) {
        match self {
            Checker::Here(both) => both.0.finish(&mut both.1),
            Checker::Beside(beside) => beside.finish(),
        }
    }

    /// The outcome.
    pub(super) fn result(self) -> Outcome {
        match self {
            Checker::Here(both) => both.1.result(),
            Checker::Beside(beside) => beside.result(),
        }
    }
}

fn decoder<'i>(
    settings: &Settings,
    hart: HartId,
    image: &'i Image,
) -> Result<Decoder<'i>, SettingsError> {
    match settings {
        Settings::Tandem(config) => Decoder::tandem(config, image, hart),
        _ => Decoder::new(settings, image),
    }
}

fn feed(decoder: &mut Decoder<'_>, bytes: &[u8], check: &mut Check) {
    let mut rest = bytes;
    // After the first difference there is nothing left to find out.
    while !rest.is_empty() && check.difference().is_none() {
        let used = decoder.feed(rest, check).max(1);
        rest = rest.get(used..).unwrap_or_default();
    }
}

/// A thread that decodes and compares.
pub(super) struct Beside {
    batch: Batch,
    /// Data accesses are compared, too.
    data: bool,
    /// `None` once there are no more.
    batches: Option<SyncSender<Batch>>,
    /// Those that were compared, to be filled again.
    used: Receiver<Batch>,
    /// There is a difference: the rest does not matter.
    over: Arc<AtomicBool>,
    thread: JoinHandle<Outcome>,
}

/// Steps, and the bytes that came after them.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    /// What the records have, in order.
    pieces: Vec<Straight>,
    code: Vec<Placed>,
    accesses: Vec<Access>,
    steps: Vec<Step>,
    effects: Vec<Effects>,
    bytes: Vec<u8>,
    /// There are no more bytes after these.
    is_last: bool,
}

enum Record {
    /// [`Straights`] of so many pieces and accesses.
    Straights {
        hart: HartId,
        pieces: usize,
        insns: u64,
        accesses: usize,
        context: Context,
        mode: Mode,
    },
    /// A step, with or without effects.
    Step { hart: HartId, effects: bool },
}

/// Takes so many from the front.
fn take<'s, T>(rest: &mut &'s [T], count: usize) -> &'s [T] {
    let (taken, behind) = rest.split_at(count.min(rest.len()));
    *rest = behind;
    taken
}

impl Batch {
    fn size(&self) -> usize {
        self.code.len() + self.steps.len()
    }

    fn clear(&mut self) {
        self.records.clear();
        self.pieces.clear();
        self.code.clear();
        self.accesses.clear();
        self.steps.clear();
        self.effects.clear();
        self.bytes.clear();
    }

    /// Gives the steps to a check.
    fn show(&self, check: &mut Check) {
        let (mut pieces, mut accesses) = (self.pieces.as_slice(), self.accesses.as_slice());
        let (mut steps, mut effects) = (self.steps.iter(), self.effects.iter());
        for record in &self.records {
            match *record {
                Record::Straights {
                    hart,
                    pieces: count,
                    insns,
                    accesses: accessed,
                    context,
                    mode,
                } => {
                    let code = Straights {
                        code: &self.code,
                        list: take(&mut pieces, count),
                        count: insns,
                        accesses: take(&mut accesses, accessed),
                        changes: Changes::NONE,
                        context,
                        mode,
                        news: None,
                    };
                    check.straights(hart, &code);
                }
                Record::Step {
                    hart,
                    effects: with_effects,
                } => {
                    let with = effects.as_slice().first().filter(|_| with_effects);
                    if with.is_some() {
                        effects.next();
                    }
                    if let Some(step) = steps.next() {
                        check.step(hart, step, with.unwrap_or(&Effects::NONE));
                    }
                }
            }
        }
    }
}

impl Beside {
    fn new(
        (settings, hart, image): (Settings, HartId, Image),
        unreported: Unreported,
    ) -> Option<Beside> {
        let (batches, work) = sync_channel::<Batch>(WAITING);
        let (back, used) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let found = Arc::clone(&over);
        let compare = move || {
            let mut check = Check::new().without(unreported);
            // The caller has made one before.
            let Ok(mut decoder) = decoder(&settings, hart, &image) else {
                return check.result();
            };
            for mut batch in work {
                batch.show(&mut check);
                feed(&mut decoder, &batch.bytes, &mut check);
                if batch.is_last {
                    decoder.finish(&mut check);
                }
                if check.difference().is_some() {
                    found.store(true, Ordering::Relaxed);
                }
                batch.clear();
                // Nobody takes it any more at the end.
                let _ = back.send(batch);
            }
            check.result()
        };
        let thread = Builder::new().name("check".to_owned());
        Some(Beside {
            batch: Batch::default(),
            data: unreported.data.is_some(),
            batches: Some(batches),
            used,
            over,
            thread: thread.spawn(compare).ok()?,
        })
    }

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if self.over.load(Ordering::Relaxed) {
            return;
        }
        let counts = !effects.accesses.is_empty() || effects.csr_access.is_some();
        let effects_count = self.data && (counts || effects.incomplete);
        let batch = &mut self.batch;
        batch.steps.push(*step);
        if effects_count {
            batch.effects.push(*effects);
        }
        batch.records.push(Record::Step {
            hart,
            effects: effects_count,
        });
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if self.over.load(Ordering::Relaxed) {
            return;
        }
        let batch = &mut self.batch;
        for piece in code.list {
            batch.pieces.push(piece.moved_to(batch.code.len()));
            batch.code.extend_from_slice(code.insns(piece));
        }
        batch.accesses.extend_from_slice(code.accesses);
        batch.records.push(Record::Straights {
            hart,
            pieces: code.list.len(),
            insns: code.count,
            accesses: code.accesses.len(),
            context: code.context,
            mode: code.mode,
        });
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.batch.bytes.extend_from_slice(bytes);
        let next = self.used.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        if let Some(batches) = &self.batches {
            // It does not end before there are no more, unless it panics: `result` goes on with
            // that.
            let _ = batches.send(batch);
        }
    }

    fn finish(&mut self) {
        self.batch.is_last = true;
        self.feed(&[]);
        self.batches = None;
    }

    fn result(self) -> Outcome {
        drop(self.batches);
        match self.thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests;
