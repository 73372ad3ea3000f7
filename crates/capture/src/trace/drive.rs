//! Decodes a whole trace: on one thread or several, into one consumer or
//! several, and counts what was decoded.

use super::census::PartCount;
use super::{
    Census, Counting, Decoder, Format, Growth, MAX_WHOLE, SettingsError, Trace, TraceError,
};
use crate::detect::{HEAD, detect};
use crate::input::{Halt, Input, InputError, is_stdin};
use crate::shard::{Parts, Sharding};
use hartrace_flow::{
    Consumer, DataAccess, DataGap, Decode as _, Event, Gap, Gather, HartId, Image, Kept, Ownership,
    Reason, Run, TiedRuns, Totals, Unconfirmed, Warning, boot,
};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes that are decoded at a time: little, since little can stand for much.
const STEP: usize = 1 << 12;

/// Bytes that are counted at a time.
const CHUNK: usize = 1 << 20;

/// Gaps that [`Decoded::first`] keeps.
const KEPT: usize = 5;

/// What was decoded of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Instructions that retired.
    pub instructions: u64,
    /// Traps.
    pub traps: u64,
    /// Losses.
    pub gaps: u64,
    /// Those where the trace contradicts the code of the program.
    pub contradictions: u64,
    /// Bytes that could not be used.
    pub lost: u64,
    /// The harts that appeared, the lowest number first; those that were not
    /// chosen too.
    pub harts: Vec<HartId>,
    /// The first gaps.
    pub first: Vec<Gap>,
    /// In which mode and context they are, as far as the trace has reported that.
    pub first_owners: Vec<Ownership>,
    /// The mode and context of each hart at the end.
    owners: Vec<(HartId, Ownership)>,
    /// The harts of the first gaps.
    first_harts: Vec<HartId>,
    /// Losses of data trace, the first kind first.
    pub data_gaps: Vec<DataGaps>,
    /// What else was reported, the first kind first.
    pub warnings: Vec<Warned>,
    /// Instructions that were decoded with code that may have been another one at the
    /// time.
    pub unconfirmed: u64,
    /// The first of them.
    pub first_unconfirmed: Option<Unconfirmed>,
}

/// Gaps of data trace of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataGaps {
    /// The first of them.
    pub first: DataGap,
    /// How many there are.
    pub count: u64,
}

/// Warnings of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warned {
    /// The first of them.
    pub first: Warning,
    /// How many there are.
    pub count: u64,
}

/// Bytes lost for each instruction, from which on nearly all is lost: a trace has
/// less than a byte for most instructions.
const NEARLY_ALL: u64 = 3;

/// Whether a gap is where the trace goes another way than the code. Boot code,
/// which is in no program, is another matter.
fn contradicts(gap: &Gap) -> bool {
    let Reason { code, value, .. } = gap.reason;
    matches!(code.get(..4), Some("NT03" | "ET03")) && !boot::RANGE.contains(&value)
}

impl Decoded {
    /// The format that a file looks like of which nothing could be decoded, if it
    /// is not the one it was read as.
    #[must_use]
    pub fn other_format(&self, path: &Path) -> Option<Format> {
        if self.instructions > 0 || is_stdin(path) {
            return None; // standard input has been read
        }
        let code = self.first.first()?.reason.code;
        let mut input = Input::open(path).ok()?;
        let looks = Format::from_kind(detect(input.peek(HEAD).ok()?))?;
        (Some(looks) != Format::from_fault(code)).then_some(looks)
    }

    /// Whether the trace is probably of another program: it contradicts the code
    /// almost at once, and nearly all of it is lost for that reason.
    #[must_use]
    pub fn doubts_program(&self) -> bool {
        let nearly_all = self.lost >= NEARLY_ALL * self.instructions;
        self.gaps > 0 && self.contradictions * 10 >= self.gaps * 9 && nearly_all
    }

    #[cold]
    fn appeared(&mut self, hart: HartId) {
        if let Err(at) = self.harts.binary_search(&hart) {
            self.harts.insert(at, hart);
        }
    }

    /// Whether instructions may be missing though there is no gap.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.warnings.iter().any(|warned| warned.first.is_loss)
    }

    #[cold]
    fn warn(&mut self, warned: Warned) {
        let code = warned.first.reason.code;
        let mut known = self.warnings.iter_mut();
        match known.find(|known| known.first.reason.code == code) {
            Some(known) => known.count += warned.count,
            None => self.warnings.push(warned),
        }
    }

    /// How many losses of data trace there are.
    #[must_use]
    pub fn data_gap_count(&self) -> u64 {
        self.data_gaps.iter().map(|gaps| gaps.count).sum()
    }

    #[cold]
    fn data_gap(&mut self, gaps: DataGaps) {
        let code = gaps.first.reason.code;
        let mut known = self.data_gaps.iter_mut();
        match known.find(|known| known.first.reason.code == code) {
            Some(known) => known.count += gaps.count,
            None => self.data_gaps.push(gaps),
        }
    }

    /// Adds what was decoded right after this.
    pub fn add(&mut self, part: Decoded) {
        self.instructions += part.instructions;
        self.traps += part.traps;
        self.gaps += part.gaps;
        self.contradictions += part.contradictions;
        self.lost += part.lost;
        self.unconfirmed += part.unconfirmed;
        self.first_unconfirmed = self.first_unconfirmed.or(part.first_unconfirmed);
        for hart in part.harts {
            self.appeared(hart);
        }
        for gaps in part.data_gaps {
            self.data_gap(gaps);
        }
        for warned in part.warnings {
            self.warn(warned);
        }
        let owners = part.first_harts.iter().zip(part.first_owners);
        for (gap, (hart, owner)) in part.first.iter().zip(owners) {
            self.keep_gap(*hart, gap, owner);
        }
        for (hart, owner) in part.owners {
            self.own(hart, owner);
        }
    }

    /// Keeps one of the first gaps. What is not known of the mode and the context there is
    /// as before.
    #[cold]
    fn keep_gap(&mut self, hart: HartId, gap: &Gap, owner: Ownership) {
        if self.first.len() < KEPT {
            let before = self.owners.iter().find(|(known, _)| *known == hart);
            let before = before.map_or(Ownership::default(), |(_, owner)| *owner);
            self.first.push(*gap);
            self.first_harts.push(hart);
            self.first_owners.push(update(before, owner));
        }
    }

    fn own(&mut self, hart: HartId, owner: Ownership) {
        let mut known = self.owners.iter_mut();
        match known.find(|(known, _)| *known == hart) {
            Some((_, known)) => *known = update(*known, owner),
            None => self.owners.push((hart, owner)),
        }
    }
}

/// What is known after a report of some of it.
fn update(known: Ownership, reported: Ownership) -> Ownership {
    Ownership {
        mode: reported.mode.or(known.mode),
        context: reported.context.or(known.context),
    }
}

/// Passes the events of one hart or of all on to `inner`, and counts them.
#[derive(Default)]
pub(crate) struct Watch<C> {
    pub(crate) inner: C,
    /// What was passed on.
    pub(crate) decoded: Decoded,
    only: Option<HartId>,
    /// `inner` broke: it wants no more.
    pub(crate) ended: bool,
}

impl<C> Watch<C> {
    /// Events for `inner`: those of the hart `only`, or of all.
    pub(crate) fn new(inner: C, only: Option<HartId>) -> Watch<C> {
        Watch {
            inner,
            decoded: Decoded::default(),
            only,
            ended: false,
        }
    }

    #[inline]
    fn skips(&mut self, hart: HartId) -> bool {
        if self.decoded.harts.last() != Some(&hart) {
            self.decoded.appeared(hart);
        }
        self.only.is_some_and(|only| only != hart)
    }

    #[inline]
    fn note(&mut self, flow: ControlFlow<()>) -> ControlFlow<()> {
        self.ended |= flow.is_break();
        flow
    }
}

impl<C: Consumer> Consumer for Watch<C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        match event {
            Event::Run(run) => self.decoded.instructions += u64::from(run.insns),
            Event::Trap(_) => self.decoded.traps += 1,
            Event::Gap(gap) => {
                self.decoded.gaps += 1;
                self.decoded.contradictions += u64::from(contradicts(gap));
                self.decoded.lost += gap.bytes;
                self.decoded.keep_gap(hart, gap, Ownership::default());
            }
            Event::Context(owner) => self.decoded.own(hart, *owner),
            Event::DataGap(first) => {
                let (first, count) = (*first, 1);
                self.decoded.data_gap(DataGaps { first, count });
            }
            Event::Warning(first) => {
                let (first, count) = (*first, 1);
                self.decoded.warn(Warned { first, count });
            }
            Event::Unconfirmed(what) => {
                self.decoded.unconfirmed += what.insns;
                self.decoded.first_unconfirmed.get_or_insert(*what);
            }
            _ => {}
        }
        let flow = self.inner.event(hart, event);
        self.note(flow)
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        let insns = runs.iter().map(|run| u64::from(run.insns));
        self.decoded.instructions += insns.sum::<u64>();
        let flow = self.inner.runs(hart, runs);
        self.note(flow)
    }

    #[inline]
    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        let flow = self.inner.accesses(hart, accesses);
        self.note(flow)
    }

    #[inline]
    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        let insns = runs.iter().map(|run| u64::from(run.insns));
        self.decoded.instructions += insns.sum::<u64>();
        let flow = self.inner.kept_runs(hart, kept, runs);
        self.note(flow)
    }

    #[inline]
    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        self.decoded.instructions += tied.insns();
        let flow = self.inner.tied_runs(hart, tied);
        self.note(flow)
    }

    fn keeps(&self) -> bool {
        self.inner.keeps()
    }

    fn looks_at_values(&self) -> bool {
        self.inner.looks_at_values()
    }

    fn only_counts(&self) -> bool {
        self.inner.only_counts()
    }

    fn counted(&mut self, hart: HartId, counted: Totals) -> ControlFlow<()> {
        if !self.skips(hart) {
            self.decoded.instructions += counted.insns;
        }
        ControlFlow::Continue(())
    }
}

impl<C: Gather> Gather for Watch<C> {
    fn is_full(&self) -> bool {
        self.inner.is_full()
    }

    fn give(&mut self) -> ControlFlow<()> {
        self.inner.give()
    }
}

/// Takes events and does nothing with them.
#[derive(Debug, Default)]
struct Ignore {
    /// The messages of a part of the stream, where they are counted.
    count: Option<PartCount>,
}

/// Parts of a stream in which messages are counted, too.
struct Counted;

impl Parts<Decoder<'_>, Watch<Ignore>> for Counted {
    fn part(&self) -> Watch<Ignore> {
        Watch::default()
    }

    fn done(&self, part: &mut Watch<Ignore>, decoder: &mut Decoder<'_>) {
        part.inner.count = decoder.take_count();
    }
}

impl Consumer for Ignore {
    fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn runs(&mut self, _: HartId, _: &[Run]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn accesses(&mut self, _: HartId, _: &[DataAccess]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn tied_runs(&mut self, _: HartId, _: &TiedRuns<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn looks_at_values(&self) -> bool {
        false
    }

    fn only_counts(&self) -> bool {
        true
    }
}

impl Gather for Ignore {}

/// What a trace is made of.
#[derive(Clone, Debug)]
pub struct Tallied {
    /// Its bytes.
    pub bytes: u64,
    /// Its messages.
    pub census: Census,
    /// Its events; only with a program.
    pub decoded: Option<Decoded>,
}

/// Why a trace could not be decoded.
#[derive(Debug)]
pub enum DecodeError {
    /// A failing read.
    Input(InputError),
    /// Settings that contradict each other.
    Settings(SettingsError),
}

impl From<InputError> for DecodeError {
    fn from(error: InputError) -> DecodeError {
        DecodeError::Input(error)
    }
}

impl From<SettingsError> for DecodeError {
    fn from(error: SettingsError) -> DecodeError {
        DecodeError::Settings(error)
    }
}

impl From<DecodeError> for TraceError {
    fn from(error: DecodeError) -> TraceError {
        match error {
            DecodeError::Input(error) => error.into(),
            DecodeError::Settings(error) => error.into(),
        }
    }
}

/// A break if it failed, with the error kept for later.
fn kept<E>(result: Result<(), E>, failed: &mut Option<E>) -> ControlFlow<()> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

// Everything below is compiled here, once, whatever takes the events: a caller's
// types appear only behind `dyn`.
impl Trace {
    /// Gives the events of the hart `only`, or of all, to `out`, until it breaks. Now
    /// and then `after` gets what was decoded so far, and the number of bytes that are
    /// done. Memory does not grow with the trace.
    ///
    /// # Errors
    ///
    /// A failing read, settings that contradict each other, and whatever
    /// `after` returns.
    pub fn decode<E: From<DecodeError>>(
        self,
        image: &Image,
        only: Option<HartId>,
        out: &mut dyn Consumer,
        after: impl FnMut(&Decoded, u64) -> Result<(), E>,
    ) -> Result<Decoded, E> {
        self.decode_counting(image, only, (out, None), after)
    }

    /// The same; a counter gets the bytes too. `after` is called more often in short
    /// traces, so that a [`Growth`] is exact.
    ///
    /// # Errors
    ///
    /// As [`Trace::decode`].
    pub fn decode_counting<E: From<DecodeError>>(
        self,
        image: &Image,
        only: Option<HartId>,
        (out, counting): (&mut dyn Consumer, Option<&mut Counting>),
        mut after: impl FnMut(&Decoded, u64) -> Result<(), E>,
    ) -> Result<Decoded, E> {
        let mut failed = None;
        let mut after = |decoded: &Decoded, done| kept(after(decoded, done), &mut failed);
        let watch = (Watch::new(out, only), counting);
        let decoded = self.decode_all(image, watch, &mut after)?;
        failed.map_or(Ok(decoded), Err)
    }

    fn decode_all(
        self,
        image: &Image,
        (mut watch, mut counting): (Watch<&mut dyn Consumer>, Option<&mut Counting>),
        after: &mut dyn FnMut(&Decoded, u64) -> ControlFlow<()>,
    ) -> Result<Decoded, DecodeError> {
        let mut decoder = Decoder::new(&self.settings, image)?;
        let mut done = 0;
        let read: Result<(), Halt> = self.input.chunks(|chunk| {
            let mut chunk = chunk;
            while !chunk.is_empty() {
                let length = counting.as_ref().map_or(STEP, |_| Growth::step(done, STEP));
                let (step, others) = chunk.split_at(length.min(chunk.len()));
                chunk = others;
                let mut rest = step;
                while !rest.is_empty() {
                    let used = match &mut counting {
                        Some(counting) => decoder.feed_counting(rest, &mut watch, counting),
                        None => decoder.feed(rest, &mut watch),
                    };
                    // A pause comes after a message, so there is one at least.
                    let used = used.max(1);
                    if watch.ended {
                        return Err(Halt::Ended);
                    }
                    rest = rest.get(used..).unwrap_or_default();
                }
                done += step.len() as u64;
                if after(&watch.decoded, done).is_break() {
                    return Err(Halt::Ended);
                }
            }
            Ok(())
        });
        match read {
            Ok(()) => {
                decoder.finish(&mut watch);
                if !watch.ended {
                    // Nothing is left to stop.
                    let _ = after(&watch.decoded, done);
                }
            }
            Err(Halt::Ended) => {}
            Err(Halt::Failed(error)) => return Err(error.into()),
        }
        Ok(watch.decoded)
    }

    /// Gives the events of the hart `only`, or of all, to parts, on so many threads
    /// ([`Trace::is_for_threads`] says whether that pays). `part` makes a part. Each is
    /// [given](Gather::give) when it is its turn; then `after` gets the number of bytes
    /// that are done.
    ///
    /// # Errors
    ///
    /// As [`Trace::decode`].
    pub fn decode_parts<'p, E: From<DecodeError> + Send>(
        self,
        image: &Image,
        (threads, only): (usize, Option<HartId>),
        part: &(dyn Fn() -> Box<dyn Gather + 'p> + Sync),
        mut after: impl FnMut(u64) -> Result<(), E> + Send,
    ) -> Result<Decoded, E> {
        let mut failed = None;
        let watched: &(dyn Fn() -> Watch<Box<dyn Gather + 'p>> + Sync) =
            &|| Watch::new(part(), only);
        let mut after = |done| kept(after(done), &mut failed);
        let decoded = self.decode_shared(image, threads, watched, &mut after)?;
        failed.map_or(Ok(decoded), Err)
    }

    fn decode_shared<'p>(
        self,
        image: &Image,
        threads: usize,
        part: &(dyn Fn() -> Watch<Box<dyn Gather + 'p>> + Sync),
        after: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<Decoded, DecodeError> {
        let decoder = Decoder::new(&self.settings, image)?;
        let bytes = self.input.contents(MAX_WHOLE)?;
        let mut decoded = Decoded::default();
        let give = |part: &mut Watch<Box<dyn Gather + 'p>>, done: usize| {
            decoded.add(std::mem::take(&mut part.decoded));
            match part.inner.give().is_break() || after(done as u64).is_break() {
                true => Err(io::ErrorKind::Other.into()),
                false => Ok(()),
            }
        };
        // What failed is known to whoever broke.
        let _ = Sharding::new(threads).decode(&bytes, || decoder.another(), part, give);
        Ok(decoded)
    }

    /// Counts messages and what they decode to, and gives the events to `out`.
    ///
    /// # Errors
    ///
    /// A failing read, and settings that contradict each other.
    pub fn tally_into(
        self,
        image: &Image,
        out: &mut dyn Consumer,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Tallied, DecodeError> {
        let mut counting = Counting::new(&self.settings);
        let mut decoder = Decoder::new(&self.settings, image)?;
        let mut watch = Watch::new(out, None);
        let mut bytes = 0;
        self.input.chunks(|chunk| {
            decoder.feed_counting(chunk, &mut watch, &mut counting);
            bytes += chunk.len() as u64;
            progress(bytes);
            Ok::<(), InputError>(())
        })?;
        decoder.finish(&mut watch);
        Ok(Tallied {
            bytes,
            census: counting.finish(),
            decoded: Some(watch.decoded),
        })
    }

    /// Counts messages, and with a program what they decode to, on so many
    /// threads if that pays. `progress` gets the number of bytes that are done.
    ///
    /// # Errors
    ///
    /// A failing read, and settings that contradict each other.
    pub fn tally(
        self,
        image: Option<&Image>,
        threads: usize,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<Tallied, DecodeError> {
        let mut counting = Counting::new(&self.settings);
        let mut decoder = match image {
            Some(image) => Some(Decoder::new(&self.settings, image)?),
            None => None,
        };
        let mut watch = Watch::<Ignore>::default();
        let mut bytes = 0;
        let in_pieces = self.is_for_threads(threads);
        if let Some(decoder) = decoder.as_mut().filter(|_| self.is_worth(threads)) {
            let whole = self.input.contents(MAX_WHOLE)?;
            bytes = whole.len() as u64;
            let counted =
                in_pieces && decoder.count(&mut counting, whole.get(..STEP).unwrap_or(&whole));
            let count = |messages: &mut Counting| {
                whole.chunks(CHUNK).for_each(|chunk| messages.feed(chunk));
            };
            let mut decode = |messages: Option<&mut Counting>| {
                let mut messages = messages;
                if in_pieces {
                    let give = |part: &mut Watch<Ignore>, done: usize| {
                        progress(done as u64);
                        watch.decoded.add(std::mem::take(&mut part.decoded));
                        if let (Some(all), Some(more)) = (&mut messages, part.inner.count.take()) {
                            all.append(more);
                        }
                        Ok(())
                    };
                    let sharding = Sharding::new(threads);
                    // Counting does not fail.
                    let _ = sharding.decode(&whole, || decoder.another(), Counted, give);
                    return;
                }
                let mut done = 0;
                for chunk in whole.chunks(CHUNK) {
                    decoder.feed(chunk, &mut watch);
                    done += chunk.len() as u64;
                    progress(done);
                }
                decoder.finish(&mut watch);
            };
            if counted {
                decode(Some(&mut counting));
                if !counting.is_whole() {
                    // There are timestamps, or messages change how others are read.
                    counting = Counting::new(&self.settings);
                    count(&mut counting);
                }
            } else {
                // Messages are counted while they are decoded.
                std::thread::scope(|scope| {
                    scope.spawn(|| count(&mut counting));
                    decode(None);
                });
            }
        } else {
            self.input.chunks(|chunk| {
                match &mut decoder {
                    Some(decoder) => {
                        decoder.feed_counting(chunk, &mut watch, &mut counting);
                    }
                    None => counting.feed(chunk),
                }
                bytes += chunk.len() as u64;
                progress(bytes);
                Ok::<(), InputError>(())
            })?;
            if let Some(decoder) = &mut decoder {
                decoder.finish(&mut watch);
            }
        }
        Ok(Tallied {
            bytes,
            census: counting.finish(),
            decoded: decoder.map(|_| watch.decoded),
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
