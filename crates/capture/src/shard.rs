//! Decoding on several threads, with the same output as on one.
//!
//! The stream is cut into pieces at message boundaries. A decoder that starts
//! at a cut synchronises at the next full address of every source. From that
//! point on, the *seam*, its state equals that of a decoder of the whole
//! stream. Each piece therefore runs from one seam to the next, and the output
//! of the pieces is emitted in order. The result is checked: when a piece is
//! done, its final state is compared with the initial state of the next piece,
//! which is decoded again if they differ.
//!
//! Of some things the state at a seam may lack the last values
//! ([`Decode::leave_open`]). A piece does without them until it is its turn, and is
//! decoded again if it needed them before.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use hartrace_flow::decode::Pause;
use hartrace_flow::{
    Consumer, DataAccess, Decode, Event, Gather, HartId, Kept, Run, TiedRuns, Totals,
};

/// Pieces are at least this long. Finding a seam takes some kilobytes of
/// messages that are read and not followed, a small part of the work.
const PIECE: usize = 1 << 16;

/// Bytes decoded between two looks at whether a part is full.
const STEP: usize = 1 << 14;

/// Bytes at the start of a stream in which encoders report their options.
const OPTIONS: usize = 1 << 12;

/// As many threads as there are cores.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How a stream is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Threads, at least 1.
    pub threads: usize,
    /// Bytes of the shortest piece. Only speed depends on it.
    pub piece: usize,
}

impl Sharding {
    /// On so many threads, in pieces that are worth the trouble.
    #[must_use]
    pub const fn new(threads: usize) -> Sharding {
        Sharding {
            threads,
            piece: PIECE,
        }
    }

    /// Decodes a whole stream. `decoder` makes a decoder, `parts` what takes the
    /// events of a piece; `give` gets the parts, filled, in the order of the
    /// stream, always from one thread at a time, and how many bytes of the stream
    /// are done. A part that is full may be given several times; `give` empties
    /// it.
    ///
    /// # Errors
    ///
    /// The first error of `give`.
    pub fn decode<D, P>(
        self,
        bytes: &[u8],
        decoder: impl Fn() -> D + Sync,
        parts: impl Parts<D, P>,
        give: impl FnMut(&mut P, usize) -> io::Result<()> + Send,
    ) -> io::Result<()>
    where
        D: Decode,
        P: Gather,
    {
        let Sharding { threads, piece } = self;
        let mut pieces = if threads > 1 {
            bytes.len() / piece.max(1)
        } else {
            0
        };
        let hint = (pieces > 1).then(|| {
            let mut probe = decoder();
            let hint = first(&mut probe, bytes);
            if let Some(long) = worthwhile(&mut probe, bytes, &hint) {
                pieces = pieces.min(bytes.len() / long);
            }
            hint
        });
        let pieces = pieces.max(1);
        let work = Work {
            bytes,
            hint,
            cuts: (0..pieces).map(|i| bytes.len() / pieces * i).collect(),
            starts: (0..pieces).map(|_| OnceLock::new()).collect(),
            next: AtomicUsize::new(0),
            turn: Mutex::new(Turn {
                piece: 0,
                seam: None,
                early: BTreeMap::new(),
                held: 0,
                spare: Vec::new(),
                give,
                failed: None,
            }),
            turned: Condvar::new(),
            over: AtomicBool::new(false),
            early: threads * EARLY,
            parts: &parts,
        };
        if pieces == 1 {
            work.run(decoder());
        } else {
            std::thread::scope(|scope| {
                for _ in 1..threads.min(pieces) {
                    scope.spawn(|| work.run(decoder()));
                }
                work.run(decoder());
            });
        }
        let turn = work
            .turn
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        turn.failed.map_or(Ok(()), Err)
    }
}

/// Makes what takes the events of a piece.
pub trait Parts<D, P>: Sync {
    /// A part that has taken nothing.
    fn part(&self) -> P;

    /// The piece is done, by this decoder. It may still turn out to be wrong; then this part
    /// is dropped.
    fn done(&self, part: &mut P, decoder: &mut D) {
        let _ = (part, decoder);
    }
}

impl<D, P, F: Fn() -> P + Sync> Parts<D, P> for F {
    fn part(&self) -> P {
        self()
    }
}

/// The state at the start of a piece, found from the stream alone.
type Start<S> = Option<S>;

struct Work<'w, D: Decode, P, F, G> {
    bytes: &'w [u8],
    /// What the start of the stream reports about all of it.
    hint: Option<D::Seam>,
    /// Where to begin looking for the seam of each piece.
    cuts: Vec<usize>,
    /// What was found; `None` if nothing before the next cut.
    starts: Vec<OnceLock<Start<D::Seam>>>,
    /// The next piece that no thread has taken.
    next: AtomicUsize,
    turn: Mutex<Turn<D::Seam, P, G>>,
    turned: Condvar,
    /// Something failed, or a thread panicked: nothing is given out any more,
    /// and no thread waits for a turn that may not come.
    over: AtomicBool,
    /// Pieces that may wait for their turn.
    early: usize,
    parts: &'w F,
}

/// Whose turn it is to give something out.
struct Turn<S, P, G> {
    piece: usize,
    /// The state at the end of what was given out; `None` at the start.
    seam: Option<S>,
    /// Pieces that are done before their turn; `None` for one that belongs to
    /// the piece before.
    early: BTreeMap<usize, Option<Done<S, P>>>,
    /// Those of them with events.
    held: usize,
    /// Parts that were given out, to be used again.
    spare: Vec<P>,
    give: G,
    failed: Option<io::Error>,
}

/// A piece that has been decoded.
struct Done<S, P> {
    part: P,
    /// The state it began with, and whether that is known to be right.
    start: Start<S>,
    right: bool,
    /// Where it ended, and the state there.
    end: usize,
    seam: S,
}

/// Pieces that may be done before their turn, for each thread.
const EARLY: usize = 2;

impl<D, P, F, G> Work<'_, D, P, F, G>
where
    D: Decode,
    P: Gather,
    F: Parts<D, P>,
    G: FnMut(&mut P, usize) -> io::Result<()> + Send,
{
    /// Does pieces until there are none left.
    fn run(&self, mut decoder: D) {
        let _end = EndOnPanic(self);
        while !self.is_over() {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.cuts.len() {
                return;
            }
            // Finding where pieces start takes a decoder, so that comes first.
            let start = match piece {
                0 => None,
                _ => self.start(piece, &mut decoder).clone(),
            };
            let done = (piece == 0 || start.is_some()).then(|| {
                let end = self.end(piece, &mut decoder);
                self.piece(piece, start, end, &mut decoder)
            });
            self.finish(piece, done, &mut decoder);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Turn<D::Seam, P, G>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all pieces before this one were given out.
    fn wait(&self, piece: usize) -> MutexGuard<'_, Turn<D::Seam, P, G>> {
        let mut turn = self.lock();
        while turn.piece != piece && !self.is_over() {
            turn = self
                .turned
                .wait(turn)
                .unwrap_or_else(PoisonError::into_inner);
        }
        turn
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Ends all work; with the lock held, so that no thread goes to sleep meanwhile.
    fn end_all(&self, _turn: &mut Turn<D::Seam, P, G>) {
        self.over.store(true, Ordering::Relaxed);
        self.turned.notify_all();
    }

    /// Gives a part out, the stream being done so far.
    fn give(&self, turn: &mut Turn<D::Seam, P, G>, part: &mut P, done: usize) {
        if !self.is_over()
            && let Err(error) = (turn.give)(part, done)
        {
            turn.failed = Some(error);
            self.end_all(turn);
        }
    }

    /// The state at the start of a piece, found by whoever asks first.
    fn start(&self, piece: usize, decoder: &mut D) -> &Start<D::Seam> {
        let cell = self.starts.get(piece);
        match cell {
            Some(cell) => cell.get_or_init(|| self.find(piece, decoder)),
            None => &None,
        }
    }

    fn find(&self, piece: usize, decoder: &mut D) -> Start<D::Seam> {
        let cut = *self.cuts.get(piece)?;
        let next = self.cuts.get(piece + 1);
        let end = next.and_then(|&next| decoder.boundary(self.bytes, next));
        let end = end.unwrap_or(self.bytes.len());
        let mut at = decoder.boundary(self.bytes, cut)?;
        decoder.restart(at as u64);
        let known = self.lock().seam.clone();
        if let Some(seam) = known.as_ref().or(self.hint.as_ref()) {
            decoder.hint(seam);
        }
        // A message at a time: each asks for a pause.
        while at < end && !self.is_over() {
            at += decoder.pass(self.bytes.get(at..end)?);
            if decoder.is_synchronised() {
                let mut seam = decoder.seam();
                D::leave_open(&mut seam);
                return Some(seam);
            }
        }
        None
    }

    /// Decodes a piece; again from the right state if it turns out that this
    /// was not it.
    fn piece(
        &self,
        piece: usize,
        start: Start<D::Seam>,
        end: usize,
        decoder: &mut D,
    ) -> Done<D::Seam, P> {
        match self.attempt(piece, start, end, false, decoder) {
            Some(done) => done,
            None => {
                drop(self.wait(piece));
                self.again(piece, end, decoder)
            }
        }
    }

    /// Decodes a piece whose turn it is from the state the piece before ended
    /// with.
    fn again(&self, piece: usize, end: usize, decoder: &mut D) -> Done<D::Seam, P> {
        loop {
            let start = self.lock().seam.clone();
            if let Some(done) = self.attempt(piece, start, end, true, decoder) {
                return done;
            }
        }
    }

    /// `None` if the piece began with a wrong state.
    fn attempt(
        &self,
        piece: usize,
        start: Start<D::Seam>,
        end: usize,
        right: bool,
        decoder: &mut D,
    ) -> Option<Done<D::Seam, P>> {
        match &start {
            Some(seam) => decoder.resume(seam),
            None => decoder.restart(0),
        }
        let spare = self.lock().spare.pop();
        let mut ordered = Ordered {
            work: self,
            piece,
            start: &start,
            part: spare.unwrap_or_else(|| self.parts.part()),
            state: if right { Stand::First } else { Stand::Waiting },
            done: decoder.position() as usize,
        };
        self.walk(decoder, end, &mut ordered);
        let Ordered {
            mut part, state, ..
        } = ordered;
        self.parts.done(&mut part, decoder);
        (state != Stand::Wrong).then(|| Done {
            part,
            start,
            right: state == Stand::First,
            end,
            seam: decoder.seam(),
        })
    }

    /// Gives a piece out, or leaves it to whoever does the pieces before it.
    fn finish(&self, piece: usize, done: Option<Done<D::Seam, P>>, decoder: &mut D) {
        let (mut piece, mut done) = (piece, done);
        let mut turn = self.lock();
        if turn.piece != piece {
            // One without a start holds nothing.
            let holds = usize::from(done.is_some());
            if turn.held + holds <= self.early {
                turn.held += holds;
                turn.early.insert(piece, done);
                return;
            }
            drop(turn);
            turn = self.wait(piece);
        }
        loop {
            if let Some(Done {
                start,
                right,
                end,
                seam,
                ..
            }) = &mut done
                && !*right
                && piece > 0
                && !turn.completes::<D>(start, seam)
            {
                let end = *end;
                drop(turn);
                done = Some(self.again(piece, end, decoder));
                turn = self.lock();
            }
            if let Some(mut done) = done {
                self.give(&mut turn, &mut done.part, done.end);
                turn.seam = Some(done.seam);
                turn.spare.push(done.part);
            }
            piece += 1;
            turn.piece = piece;
            self.turned.notify_all();
            match turn.early.remove(&piece) {
                Some(next) => {
                    turn.held -= usize::from(next.is_some());
                    done = next;
                }
                None => return,
            }
        }
    }

    /// Where a piece ends: at the next seam, or with the stream.
    fn end(&self, piece: usize, decoder: &mut D) -> usize {
        for later in piece + 1..self.cuts.len() {
            if self.start(later, decoder).is_some() {
                let seam = self.starts.get(later).and_then(OnceLock::get);
                if let Some(Some(seam)) = seam {
                    return D::at(seam) as usize;
                }
            }
        }
        self.bytes.len()
    }

    /// Goes on with a piece whose turn it is and that began with an open state, now with
    /// all that was lacking.
    fn complete(&self, decoder: &mut D, out: &mut Ordered<'_, '_, D, P, F, G>) {
        let mut turn = self.lock();
        let mut seam = decoder.seam();
        if !turn.completes::<D>(out.start, &mut seam) {
            out.state = Stand::Wrong;
            return;
        }
        decoder.resume(&seam);
        out.state = Stand::First;
        self.give(&mut turn, &mut out.part, out.done);
    }

    /// Feeds everything from where the decoder is to `end`.
    fn walk(&self, decoder: &mut D, end: usize, out: &mut Ordered<'_, '_, D, P, F, G>) {
        let mut at = decoder.position() as usize;
        while at < end && out.state != Stand::Wrong && !self.is_over() {
            out.done = at;
            let step = self.bytes.get(at..end.min(at + STEP)).unwrap_or_default();
            at += decoder.feed(step, out);
            if out.state == Stand::Open {
                self.complete(decoder, out);
            }
        }
        if end == self.bytes.len() && out.state != Stand::Wrong {
            decoder.finish(out);
        }
    }
}

impl<S: PartialEq, P, G> Turn<S, P, G> {
    /// Whether a piece that began with `start` is right; then `now`, a later state of it,
    /// is completed.
    fn completes<D: Decode<Seam = S>>(&self, start: &Start<S>, now: &mut S) -> bool
    where
        S: Clone,
    {
        if self.seam == *start {
            return true;
        }
        let (Some(before), Some(start)) = (&self.seam, start) else {
            return false;
        };
        let mut start = start.clone();
        D::is_open(&start)
            && D::complete(&mut start, before)
            && start == *before
            && D::complete(now, before)
    }
}

/// The length of pieces between which enough is decoded for each seam that is looked for, if
/// full addresses are so rare that it should be more than the usual.
fn worthwhile<D: Decode>(decoder: &mut D, bytes: &[u8], hint: &D::Seam) -> Option<usize> {
    let mut most = 0;
    for part in 1..=SAMPLES {
        let start = decoder.boundary(bytes, bytes.len() / (SAMPLES + 1) * part)?;
        decoder.restart(start as u64);
        decoder.hint(hint);
        let rest = bytes.get(start..)?;
        let rest = rest.get(..LONGEST / WORTH).unwrap_or(rest);
        let mut reach = 0;
        while reach < rest.len() && !decoder.is_synchronised() {
            reach += decoder.pass(rest.get(reach..)?).max(1);
        }
        most = most.max(reach);
    }
    let well = (WELL_WORTH * most).min(bytes.len() / MANY).min(LONGEST);
    let length = well.max(WORTH * most);
    (length > PIECE).then_some(length)
}

/// Places from which a seam is looked for.
const SAMPLES: usize = 3;

/// How many times as much should be decoded as is searched at least, and how many times where
/// there are still so many pieces then.
const WORTH: usize = 4;
const WELL_WORTH: usize = 16;
const MANY: usize = 64;

/// A piece need not be longer than this.
const LONGEST: usize = 1 << 20;

/// The state after the start of a stream, where encoders report their options.
pub(crate) fn first<D: Decode>(decoder: &mut D, bytes: &[u8]) -> D::Seam {
    decoder.restart(0);
    let mut rest = bytes.get(..OPTIONS).unwrap_or(bytes);
    while !rest.is_empty() {
        // A pause comes after a message, so there is at least one.
        let used = decoder.feed(rest, &mut Pause).max(1);
        rest = rest.get(used..).unwrap_or_default();
    }
    decoder.seam()
}

/// Ends it all when its thread panics: the others would wait for ever.
struct EndOnPanic<'o, 'w, D, P, F, G>(&'o Work<'w, D, P, F, G>)
where
    D: Decode,
    P: Gather,
    F: Parts<D, P>,
    G: FnMut(&mut P, usize) -> io::Result<()> + Send;

impl<D, P, F, G> Drop for EndOnPanic<'_, '_, D, P, F, G>
where
    D: Decode,
    P: Gather,
    F: Parts<D, P>,
    G: FnMut(&mut P, usize) -> io::Result<()> + Send,
{
    fn drop(&mut self) {
        if std::thread::panicking() {
            let EndOnPanic(work) = self;
            work.end_all(&mut work.lock());
        }
    }
}

/// Where a piece stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Others come before it.
    Waiting,
    /// It is its turn, and it may have needed what its first state lacked.
    Open,
    /// It is its turn.
    First,
    /// It began with a wrong state; nothing of it is of use.
    Wrong,
}

/// A part that is given out in order.
struct Ordered<'o, 'w, D: Decode, P, F, G> {
    work: &'o Work<'w, D, P, F, G>,
    piece: usize,
    start: &'o Start<D::Seam>,
    part: P,
    state: Stand,
    /// Bytes of the stream that are done, at least.
    done: usize,
}

impl<D, P, F, G> Ordered<'_, '_, D, P, F, G>
where
    D: Decode,
    P: Gather,
    F: Parts<D, P>,
    G: FnMut(&mut P, usize) -> io::Result<()> + Send,
{
    /// Gives out what there is, when its turn has come.
    fn give(&mut self) {
        let mut turn = self.work.wait(self.piece);
        if self.state == Stand::Waiting {
            self.state = match self.start {
                Some(start) if D::is_open(start) => Stand::Open,
                start if self.piece > 0 && turn.seam != *start => Stand::Wrong,
                _ => Stand::First,
            };
        }
        if self.state != Stand::First {
            return;
        }
        self.work.give(&mut turn, &mut self.part, self.done);
    }

    #[cold]
    fn overflow(&mut self) -> ControlFlow<()> {
        self.give();
        match self.state {
            // It is completed between two messages.
            Stand::Wrong | Stand::Open => ControlFlow::Break(()),
            Stand::Waiting | Stand::First => ControlFlow::Continue(()),
        }
    }

    /// After events that the part took.
    #[inline]
    fn after(&mut self, flow: ControlFlow<()>) -> ControlFlow<()> {
        match self.part.is_full() {
            true => self.overflow(),
            false => flow,
        }
    }
}

impl<D, P, F, G> Consumer for Ordered<'_, '_, D, P, F, G>
where
    D: Decode,
    P: Gather,
    F: Parts<D, P>,
    G: FnMut(&mut P, usize) -> io::Result<()> + Send,
{
    #[inline]
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.state == Stand::Wrong {
            return ControlFlow::Break(());
        }
        let flow = self.part.event(hart, event);
        self.after(flow)
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        if self.state == Stand::Wrong {
            return ControlFlow::Break(());
        }
        let flow = self.part.runs(hart, runs);
        self.after(flow)
    }

    #[inline]
    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        if self.state == Stand::Wrong {
            return ControlFlow::Break(());
        }
        let flow = self.part.kept_runs(hart, kept, runs);
        self.after(flow)
    }

    #[inline]
    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        if self.state == Stand::Wrong {
            return ControlFlow::Break(());
        }
        let flow = self.part.accesses(hart, accesses);
        self.after(flow)
    }

    #[inline]
    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        if self.state == Stand::Wrong {
            return ControlFlow::Break(());
        }
        let flow = self.part.tied_runs(hart, tied);
        self.after(flow)
    }

    fn keeps(&self) -> bool {
        self.part.keeps()
    }

    fn looks_at_values(&self) -> bool {
        self.part.looks_at_values()
    }

    fn only_counts(&self) -> bool {
        self.part.only_counts()
    }

    fn counted(&mut self, hart: HartId, counted: Totals) -> ControlFlow<()> {
        match self.state == Stand::Wrong {
            true => ControlFlow::Break(()),
            false => self.part.counted(hart, counted),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
