//! A decoder for a trace of any format.

use super::census::{Counted, MessageCount, PartCount};
use super::{Counting, Settings, SettingsError, TandemDecoder};
use hartrace_etrace as etrace;
use hartrace_flow::decode::Nothing;
use hartrace_flow::{
    Consumer, DataAccess, Decode, Event, HartId, Image, Kept, PlainAccesses, Run, Tie, TieState,
    Totals,
};
use hartrace_ntrace as ntrace;
use hartrace_tandem as tandem;
use std::ops::ControlFlow;

/// A decoder of one format or another.
#[derive(Debug)]
pub enum Decoder<'a> {
    /// Of N-Trace, and what counts the messages that it decodes, if anything does.
    Ntrace(
        Box<ntrace::Decoder<'a>>,
        Option<Box<MessageCount<ntrace::NTrace>>>,
    ),
    /// Of E-Trace; with data trace what assigns accesses to instructions; and what counts
    /// packets.
    Etrace(
        Box<etrace::Decoder<'a>>,
        Option<Box<Tie<'a>>>,
        Option<Box<MessageCount<etrace::ETrace>>>,
    ),
    /// Of tandem traces.
    Tandem(Box<TandemDecoder>),
}

impl<'a> Decoder<'a> {
    /// A decoder of traces with these settings.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(settings: &Settings, image: &'a Image) -> Result<Decoder<'a>, SettingsError> {
        Ok(match settings {
            Settings::Ntrace(config) => {
                let decoder = ntrace::Decoder::new(config.clone(), image)?;
                Decoder::Ntrace(Box::new(decoder), None)
            }
            Settings::Etrace(config) => {
                let mut config = config.clone();
                // Its packets are in another file.
                config.data = config.data.filter(|data| !data.separate);
                let decoder = etrace::Decoder::new(config.clone(), image)?;
                Decoder::Etrace(Box::new(decoder), config.tie(image).map(Box::new), None)
            }
            Settings::Tandem(config) => Decoder::tandem(config, image, HartId(0))?,
        })
    }

    /// A decoder of tandem traces; a plain one is of this hart.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn tandem(
        config: &tandem::Config,
        image: &Image,
        hart: HartId,
    ) -> Result<Decoder<'a>, SettingsError> {
        let decoder = TandemDecoder::new(config.clone(), image.isa(), hart)?;
        Ok(Decoder::Tandem(Box::new(decoder)))
    }

    /// Decodes into a consumer of any type. The protocols' decoders are compiled
    /// here, once, for a [`Batch`] of runs; a consumer costs an indirect call for
    /// each batch.
    fn feed_any(&mut self, bytes: &[u8], out: &mut dyn Consumer) -> usize {
        match self {
            Decoder::Etrace(decoder, Some(tie), count) => {
                feed_tied((decoder, tie), bytes, out, |decoder, block, batch| {
                    feed_and_count(decoder, count, block, batch)
                })
            }
            _ => self.feed_batch(bytes, Batch::new(out)),
        }
    }

    /// From now on, messages are counted while they are decoded, from each [`Decode::restart`]
    /// and [`Decode::resume`] on, if that can be done for parts of the stream, which starts
    /// with these bytes.
    pub(super) fn count(&mut self, counting: &mut Counting, start: &[u8]) -> bool {
        match self {
            Decoder::Ntrace(decoder, count) => {
                *count = counting.ntrace().and_then(|all| all.for_parts(start));
                begin(count, decoder);
                count.is_some()
            }
            Decoder::Etrace(decoder, _, count) => {
                *count = counting.etrace().and_then(|all| all.for_parts(start));
                begin(count, decoder);
                count.is_some()
            }
            Decoder::Tandem(_) => false,
        }
    }

    /// What was counted.
    pub(super) fn take_count(&mut self) -> Option<PartCount> {
        match self {
            Decoder::Ntrace(decoder, count) => {
                let taken = count.clone();
                begin(count, decoder);
                taken.map(PartCount::Ntrace)
            }
            Decoder::Etrace(decoder, _, count) => {
                let taken = count.clone();
                begin(count, decoder);
                taken.map(PartCount::Etrace)
            }
            Decoder::Tandem(_) => None,
        }
    }

    /// As [`Decode::feed`]; what is used is also counted.
    pub fn feed_counting(
        &mut self,
        bytes: &[u8],
        out: &mut dyn Consumer,
        counting: &mut Counting,
    ) -> usize {
        if let (Decoder::Ntrace(decoder, _), Some(count)) = (&mut *self, counting.ntrace()) {
            return feed_counted(count, decoder, bytes, out);
        }
        if let (Decoder::Etrace(decoder, tie, _), Some(count)) = (&mut *self, counting.etrace()) {
            let Some(tie) = tie else {
                return feed_counted(count, decoder, bytes, out);
            };
            return feed_tied((decoder, tie), bytes, out, |decoder, block, batch| {
                count.decode(decoder, block, batch)
            });
        }
        let used = self.feed_any(bytes, out);
        counting.feed(bytes.get(..used).unwrap_or(bytes));
        used
    }

    /// The same where accesses, if there are any, are not assigned.
    fn feed_batch(&mut self, bytes: &[u8], mut out: Batch<'_>) -> usize {
        let used = match self {
            Decoder::Ntrace(decoder, count) => feed_and_count(decoder, count, bytes, &mut out),
            Decoder::Etrace(decoder, _, count) => feed_and_count(decoder, count, bytes, &mut out),
            Decoder::Tandem(decoder) => decoder.feed(bytes, &mut out),
        };
        out.flush();
        used
    }

    fn finish_any(&mut self, out: &mut dyn Consumer) {
        if let Decoder::Etrace(decoder, Some(tie), _) = self {
            let at = decoder.position();
            tie.set_position(at - at % BLOCK);
            let mut tied = tie.to(out);
            let mut out = Batch::new(&mut tied);
            decoder.finish(&mut out);
            out.flush();
            tied.finish();
            return;
        }
        let mut out = Batch::new(out);
        match self {
            Decoder::Ntrace(decoder, _) => decoder.finish(&mut out),
            Decoder::Etrace(decoder, ..) => decoder.finish(&mut out),
            Decoder::Tandem(decoder) => decoder.finish(&mut out),
        }
        out.flush();
    }
}

/// Decodes, and counts if anything counts.
fn feed_and_count<P: Counted>(
    decoder: &mut hartrace_flow::decode::Decoder<'_, P>,
    count: &mut Option<Box<MessageCount<P>>>,
    bytes: &[u8],
    out: &mut Batch<'_>,
) -> usize {
    match count {
        None => decoder.feed(bytes, out),
        Some(count) => count.decode(decoder, bytes, out),
    }
}

/// Decodes and counts.
fn feed_counted<P: Counted>(
    count: &mut MessageCount<P>,
    decoder: &mut hartrace_flow::decode::Decoder<'_, P>,
    bytes: &[u8],
    out: &mut dyn Consumer,
) -> usize {
    let mut batch = Batch::new(out);
    let used = count.decode(decoder, bytes, &mut batch);
    batch.flush();
    used
}

/// Decodes with accesses that are assigned to instructions. `feed` decodes some bytes.
fn feed_tied<'a>(
    (decoder, tie): (&mut etrace::Decoder<'a>, &mut Tie<'a>),
    bytes: &[u8],
    out: &mut dyn Consumer,
    mut feed: impl FnMut(&mut etrace::Decoder<'a>, &[u8], &mut Batch<'_>) -> usize,
) -> usize {
    // The same positions, whatever the pieces are that the bytes come in.
    let mut done = 0;
    loop {
        let at = decoder.position();
        tie.set_position(at - at % BLOCK);
        let rest = bytes.get(done..).unwrap_or_default();
        let block = rest.get(..(BLOCK - at % BLOCK) as usize).unwrap_or(rest);
        let mut tied = tie.to(&mut *out);
        let mut batch = Batch::new(&mut tied);
        let used = feed(decoder, block, &mut batch);
        batch.flush();
        done += used;
        if used < block.len() || done == bytes.len() {
            return done;
        }
    }
}

/// What counts begins anew, where the decoder is.
fn begin<P: Counted>(
    count: &mut Option<Box<MessageCount<P>>>,
    decoder: &hartrace_flow::decode::Decoder<'_, P>,
) {
    if let Some(count) = count {
        count.begin(decoder);
    }
}

/// Bytes of a trace of which losses of accesses have the same offset.
const BLOCK: u64 = 1 << 14;

/// Runs that are passed on together.
const BATCH: usize = 256;

/// Gathers runs for a consumer whose type is not known. A pause that it asks
/// for comes with the batch, so some messages after the run that caused it.
struct Batch<'o> {
    out: &'o mut dyn Consumer,
    /// The hart that the runs are of.
    hart: HartId,
    runs: Vec<Run>,
    paused: bool,
    /// A pause comes after every message with content.
    each: bool,
    /// The consumer wants runs that come again by name.
    keeps: bool,
    /// It looks at addresses and data.
    values: bool,
    /// It only counts instructions; these are those of runs that it did not get.
    counts: bool,
    insns: u64,
}

impl<'o> Batch<'o> {
    fn new(out: &'o mut dyn Consumer) -> Batch<'o> {
        Batch {
            keeps: out.keeps(),
            values: out.looks_at_values(),
            counts: out.only_counts(),
            out,
            hart: HartId(0),
            runs: Vec::with_capacity(BATCH),
            paused: false,
            each: false,
            insns: 0,
        }
    }

    /// The same, with a pause after every message with content.
    fn of_each(out: &'o mut dyn Consumer) -> Batch<'o> {
        Batch {
            paused: true,
            each: true,
            ..Batch::new(out)
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        if !self.runs.is_empty() {
            self.paused |= self.out.runs(self.hart, &self.runs).is_break();
            self.runs.clear();
        }
        if self.insns > 0 {
            let insns = Totals::insns(std::mem::take(&mut self.insns));
            self.paused |= self.out.counted(self.hart, insns).is_break();
        }
    }

    #[inline]
    fn flow(&mut self) -> ControlFlow<()> {
        match std::mem::replace(&mut self.paused, self.each) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Consumer for Batch<'_> {
    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        self.flush();
        self.paused |= self.out.accesses(hart, accesses).is_break();
        self.flow()
    }

    fn plain_accesses(&mut self, hart: HartId, accesses: PlainAccesses<'_>) -> ControlFlow<()> {
        self.flush();
        self.paused |= self.out.plain_accesses(hart, accesses).is_break();
        self.flow()
    }

    fn looks_at_values(&self) -> bool {
        self.values
    }

    #[inline]
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            return self.runs(hart, std::slice::from_ref(run));
        }
        self.flush();
        self.paused |= self.out.event(hart, event).is_break();
        self.flow()
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        if hart != self.hart || self.runs.len() + runs.len() > BATCH {
            self.flush();
            self.hart = hart;
        }
        if self.counts {
            self.insns += runs.iter().map(|run| u64::from(run.insns)).sum::<u64>();
            return ControlFlow::Continue(());
        }
        self.runs.extend_from_slice(runs);
        self.flow()
    }

    #[inline]
    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        if !self.keeps {
            return self.runs(hart, runs);
        }
        if !self.runs.is_empty() {
            self.flush();
        }
        self.paused |= self.out.kept_runs(hart, kept, runs).is_break();
        self.flow()
    }

    fn keeps(&self) -> bool {
        self.keeps
    }

    #[inline]
    fn only_counts(&self) -> bool {
        self.counts
    }

    #[inline]
    fn counted(&mut self, hart: HartId, counted: Totals) -> ControlFlow<()> {
        if hart != self.hart {
            self.flush();
            self.hart = hart;
        }
        self.insns += counted.insns;
        ControlFlow::Continue(())
    }
}

/// The state of a [`Decoder`] between two messages. That of a tandem trace is
/// too much to carry about: such a trace is decoded in one piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Seam {
    /// Of N-Trace.
    Ntrace(Box<ntrace::Seam>),
    /// Of E-Trace, with that of what assigns accesses to instructions.
    Etrace(Box<etrace::Seam>, Option<Box<TieState>>),
    /// Of a tandem trace: where it is, and no more.
    Tandem(u64),
}

impl Decode for Decoder<'_> {
    type Seam = Seam;

    fn feed<C: Consumer>(&mut self, bytes: &[u8], out: &mut C) -> usize {
        self.feed_any(bytes, out)
    }

    fn finish<C: Consumer>(&mut self, out: &mut C) {
        self.finish_any(out);
    }

    fn seam(&self) -> Seam {
        match self {
            Decoder::Ntrace(decoder, _) => Seam::Ntrace(Box::new(decoder.seam())),
            Decoder::Etrace(decoder, tie, _) => {
                let tie = tie.as_ref().map(|tie| Box::new(tie.state()));
                Seam::Etrace(Box::new(decoder.seam()), tie)
            }
            Decoder::Tandem(decoder) => Seam::Tandem(decoder.position()),
        }
    }

    fn resume(&mut self, seam: &Seam) {
        match (self, seam) {
            (Decoder::Ntrace(decoder, count), Seam::Ntrace(seam)) => {
                decoder.resume(seam);
                begin(count, decoder);
            }
            (Decoder::Etrace(decoder, tie, count), Seam::Etrace(seam, state)) => {
                decoder.resume(seam);
                begin(count, decoder);
                if let (Some(tie), Some(state)) = (tie, state) {
                    tie.set_state(state);
                }
            }
            // A state of another stream.
            (decoder, seam) => decoder.restart(Self::at(seam)),
        }
    }

    fn restart(&mut self, offset: u64) {
        match self {
            Decoder::Ntrace(decoder, count) => {
                decoder.restart(offset);
                begin(count, decoder);
            }
            Decoder::Etrace(decoder, tie, count) => {
                decoder.restart(offset);
                begin(count, decoder);
                if let Some(tie) = tie {
                    tie.set_state(&TieState::default());
                }
            }
            Decoder::Tandem(_) => {}
        }
    }

    fn is_synchronised(&self) -> bool {
        match self {
            Decoder::Ntrace(decoder, _) => decoder.is_synchronised(),
            Decoder::Etrace(decoder, ..) => decoder.is_synchronised(),
            Decoder::Tandem(_) => false,
        }
    }

    fn hint(&mut self, seam: &Seam) {
        match (self, seam) {
            (Decoder::Ntrace(decoder, _), Seam::Ntrace(seam)) => decoder.hint(seam),
            (Decoder::Etrace(decoder, ..), Seam::Etrace(seam, _)) => decoder.hint(seam),
            _ => {}
        }
    }

    fn position(&self) -> u64 {
        match self {
            Decoder::Ntrace(decoder, _) => decoder.position(),
            Decoder::Etrace(decoder, ..) => decoder.position(),
            Decoder::Tandem(decoder) => decoder.position(),
        }
    }

    fn at(seam: &Seam) -> u64 {
        match seam {
            Seam::Ntrace(seam) => seam.at(),
            Seam::Etrace(seam, _) => seam.at(),
            Seam::Tandem(at) => *at,
        }
    }

    /// What is passed is not counted.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut nothing = Nothing;
        let out = &mut Batch::of_each(&mut nothing);
        match self {
            Decoder::Ntrace(decoder, _) => decoder.feed(bytes, out),
            Decoder::Etrace(decoder, None, _) => decoder.feed(bytes, out),
            Decoder::Etrace(decoder, Some(tie), _) => {
                let mut tied = tie.to(nothing);
                let mut batch = Batch::of_each(&mut tied);
                let used = decoder.feed(bytes, &mut batch);
                batch.flush();
                used
            }
            Decoder::Tandem(decoder) => decoder.feed(bytes, out),
        }
    }

    fn leave_open(seam: &mut Seam) {
        // Only accesses refer to what was long before.
        if let Seam::Etrace(seam, Some(_)) = seam {
            etrace::Decoder::leave_open(seam);
        }
    }

    fn is_open(seam: &Seam) -> bool {
        match seam {
            Seam::Etrace(seam, _) => etrace::Decoder::is_open(seam),
            _ => false,
        }
    }

    fn complete(seam: &mut Seam, before: &Seam) -> bool {
        match (seam, before) {
            (Seam::Etrace(seam, _), Seam::Etrace(before, _)) => {
                etrace::Decoder::complete(seam, before)
            }
            _ => true,
        }
    }

    fn boundary(&self, bytes: &[u8], from: usize) -> Option<usize> {
        match self {
            Decoder::Ntrace(decoder, _) => decoder.boundary(bytes, from),
            Decoder::Etrace(decoder, ..) => decoder.boundary(bytes, from),
            Decoder::Tandem(_) => None,
        }
    }

    fn another(&self) -> Self {
        match self {
            Decoder::Ntrace(decoder, count) => {
                let another = Box::new(decoder.another());
                let mut count = count.clone();
                begin(&mut count, &another);
                Decoder::Ntrace(another, count)
            }
            Decoder::Etrace(decoder, tie, count) => {
                let tie = tie.as_ref().map(|tie| Box::new(tie.another()));
                let another = Box::new(decoder.another());
                let mut count = count.clone();
                begin(&mut count, &another);
                Decoder::Etrace(another, tie, count)
            }
            Decoder::Tandem(decoder) => Decoder::Tandem(Box::new(decoder.another())),
        }
    }
}

#[cfg(test)]
mod tests;
