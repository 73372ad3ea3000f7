//! The steps of one stream to its bytes, and back again if that is to be checked.

use super::Meter;
use super::checker::Checker;
use super::passed::{Passed, PassedStep, Switches};
use hartrace_etrace as etrace;
use hartrace_flow::encode::{Counters, Encode, Encoder, SHORT, Sink};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Checked, CodeHistory, CodeRecorder, Difference, Effects, HartId, IngressSink as _, NamedSync,
    Observer, Port, PortConfig, Step, Straights, Unreported, Wants, steps_of,
};
use hartrace_logs::IngressCycle;
use hartrace_ntrace as ntrace;
use hartrace_tandem as tandem;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Steps between two looks at what the encoder has sent.
const LOOK: u32 = 1024;

/// Bytes gathered before they are handed on.
const BUFFER: usize = 1 << 16;

/// Bytes that are loaded between two looks.
const PAGE: usize = 4096;

/// Encodes steps; `sink` takes the bytes. With [`StreamWriter::checking`] they are
/// decoded again at once, and must come to the same steps.
pub(super) struct StreamWriter<'a, S, F> {
    source: S,
    sent: Rc<RefCell<Sent>>,
    check: Option<Checker<'a>>,
    steps: u32,
    instructions: u64,
    blocks: u64,
    /// Which of the steps pass the filters, and how many instructions did; `None`
    /// if all pass.
    passed: Option<(Box<Passed>, u64)>,
    /// The code that is executed, if it is wanted.
    code: Option<Box<CodeRecorder>>,
    sink: F,
}

/// Encodes steps as N-Trace.
pub(super) type NtraceWriter<'a, F> = StreamWriter<'a, Port<ntrace::Encoder<Shared>>, F>;

/// Encodes steps as E-Trace.
pub(super) type EtraceWriter<'a, F> = StreamWriter<'a, Port<etrace::Encoder<Shared>>, F>;

/// Encodes the steps of one hart as a tandem trace.
pub(super) type TandemWriter<'a, F> = StreamWriter<'a, Direct, F>;

/// What makes a trace of steps.
pub(super) trait Source: Observer {
    /// What it needs to know of steps.
    const NEEDS: Wants;

    /// Whether it takes many instructions in parts, with [`Source::part`].
    const PARTS: bool = false;

    /// What was sent and lost.
    fn counters(&self) -> Counters;

    /// Halfwords that a hart has retired, for [`CodeRecorder`].
    fn halfwords(&self, hart: HartId) -> u64;

    /// Takes those of many instructions that have these numbers.
    fn part(&mut self, _: &Straights<'_>, _: Range<usize>) {}
}

impl<E: Encode> Source for Port<Encoder<E, Shared>> {
    // Accesses only for data trace, which [`DATA`] asks for.
    const NEEDS: Wants = Wants::STEPS;

    fn counters(&self) -> Counters {
        self.sink().total()
    }

    #[inline(never)]
    fn halfwords(&self, hart: HartId) -> u64 {
        self.sink().halfwords(hart) + self.gathered(hart)
    }
}

/// What data trace needs to know of steps.
pub(super) const DATA: Wants = Wants::STEPS.with(Wants::DATA);

/// An encoder without a port: it takes steps with all their effects.
pub(super) struct Direct {
    encoder: tandem::Encoder,
    sink: Shared,
}

impl Source for Direct {
    const NEEDS: Wants = Wants::ALL;
    const PARTS: bool = true;

    fn counters(&self) -> Counters {
        Counters::default() // it has no queue
    }

    fn halfwords(&self, _: HartId) -> u64 {
        0 // its code is in the trace
    }

    #[inline]
    fn part(&mut self, code: &Straights<'_>, part: Range<usize>) {
        self.encoder.straights(code, part, &mut self.sink);
    }
}

impl Observer for Direct {
    const WANTS: Wants = Wants::ALL;

    #[inline]
    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.encoder.step(step, effects, &mut self.sink);
    }

    fn finish(&mut self) {
        self.encoder.finish(&mut self.sink);
    }
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Instructions that retired.
    pub instructions: u64,
    /// Blocks of an ingress port, of which the instructions are not known.
    pub blocks: u64,
    /// Those of them that passed the filters; `None` without filters.
    pub passed: Option<u64>,
    /// Messages, packets or groups of all kinds.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How often the output queue overflowed.
    pub overflows: u64,
    /// Messages that the queue lost.
    pub lost: u64,
    /// The bandwidth, if it was measured.
    pub meter: Option<Box<Meter>>,
    /// What was compared, or where it differs; `None` without a check.
    pub check: Option<Result<Checked, Box<Difference>>>,
    /// Bytes of the container it is in.
    pub container: Option<u64>,
    /// Names of the state that the steps did not report, so that the trace does
    /// not have it.
    pub absent: Vec<String>,
    /// The code that was executed, if it was recorded.
    pub code: Option<CodeHistory>,
}

#[derive(Default)]
struct Sent {
    bytes: Vec<u8>,
    messages: u64,
    total: u64,
    meter: Option<Box<Meter>>,
    /// The synchronisations among it, if they are wanted, and the halfwords that the hart
    /// had retired.
    syncs: Option<Vec<(NamedSync, u64)>>,
}

/// Where an encoder sends to: it owns its sink, so what it sends is shared.
pub(super) struct Shared(Rc<RefCell<Sent>>);

impl Shared {
    #[inline]
    fn take(&mut self, bytes: &[u8], messages: u64) {
        let mut sent = self.0.borrow_mut();
        sent.bytes.extend_from_slice(bytes);
        sent.messages += messages;
        sent.total += bytes.len() as u64;
    }
}

impl Sink for Shared {
    fn message(&mut self, bytes: &[u8]) {
        self.take(bytes, 1);
        if let Some(meter) = &mut self.0.borrow_mut().meter {
            meter.last(bytes.len());
        }
    }

    #[inline]
    fn message_at(&mut self, bytes: &[u8], time: u64) {
        self.take(bytes, 1);
        if let Some(meter) = &mut self.0.borrow_mut().meter {
            meter.message(bytes.len(), time);
        }
    }

    #[inline]
    fn short_message_at(&mut self, bytes: &[u8; SHORT], len: usize, time: u64) {
        let mut sent = self.0.borrow_mut();
        sent.bytes.short_message_at(bytes, len, time);
        sent.messages += 1;
        sent.total += len as u64;
        if let Some(meter) = &mut sent.meter {
            meter.message(len, time);
        }
    }

    fn wants_each(&self) -> bool {
        self.0.borrow().meter.is_some()
    }

    fn messages(&mut self, bytes: &[u8], count: u64) {
        self.take(bytes, count);
    }

    fn synchronised(&mut self, hart: HartId, address: u64, halfwords: u64) {
        let mut sent = self.0.borrow_mut();
        let offset = sent.total;
        if let Some(syncs) = &mut sent.syncs {
            let sync = NamedSync {
                hart,
                offset,
                address,
            };
            syncs.push((sync, halfwords));
        }
    }
}

impl tandem::Sink for Shared {
    #[inline]
    fn group(&mut self, bytes: &[u8]) {
        self.take(bytes, 1);
    }

    #[inline]
    fn groups(&mut self, bytes: &[u8], count: u64) {
        self.take(bytes, count);
    }

    #[inline(always)]
    fn short_group<const ROOM: usize>(&mut self, bytes: &[u8; ROOM], len: usize) {
        let mut sent = self.0.borrow_mut();
        tandem::Sink::short_group(&mut sent.bytes, bytes, len);
        sent.messages += 1;
        sent.total += len as u64;
    }
}

impl<F: FnMut(&[u8])> NtraceWriter<'_, F> {
    /// An encoder at the port of a hart; it traces what the filters let
    /// through.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub(super) fn new(
        config: ntrace::Config,
        port: PortConfig,
        filter: &FilterConfig,
        sink: F,
    ) -> Result<Self, ntrace::ConfigError> {
        StreamWriter::with(sink, |shared| {
            let encoder = ntrace::Encoder::new(config, shared)?;
            Ok(Port::new(port, encoder.with_filter(filter)))
        })
    }
}

impl<F: FnMut(&[u8])> EtraceWriter<'_, F> {
    /// An encoder at the port of a hart; it traces what the filters let
    /// through.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub(super) fn new(
        config: etrace::Config,
        port: PortConfig,
        filter: &FilterConfig,
        sink: F,
    ) -> Result<Self, etrace::ConfigError> {
        StreamWriter::with(sink, |shared| {
            let encoder = etrace::Encoder::new(config, shared)?;
            Ok(Port::new(port, encoder.with_filter(filter)))
        })
    }
}

impl<F: FnMut(&[u8])> TandemWriter<'_, F> {
    /// An encoder of the steps of one hart.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub(super) fn new(config: tandem::Config, sink: F) -> Result<Self, tandem::ConfigError> {
        StreamWriter::with(sink, |sink| {
            let encoder = tandem::Encoder::new(config)?;
            Ok(Direct { encoder, sink })
        })
    }

    /// Bytes that were in memory before the first step.
    pub(super) fn load(&mut self, addr: u64, bytes: &[u8]) {
        let (mut addr, mut rest) = (addr, bytes);
        while !rest.is_empty() {
            // As far as the next page: aligned pieces stay whole.
            let room = PAGE - addr as usize % PAGE;
            let (now, behind) = rest.split_at(room.min(rest.len()));
            let Direct { encoder, sink } = &mut self.source;
            encoder.load(addr, now, sink);
            self.look(BUFFER);
            addr = addr.wrapping_add(now.len() as u64);
            rest = behind;
        }
    }

    /// What the steps did not contain, so that the trace does not have it.
    #[must_use]
    pub(super) fn unreported(&self) -> &tandem::Elements {
        self.source.encoder.unreported()
    }
}

impl<'a, S: Source, F: FnMut(&[u8])> StreamWriter<'a, S, F> {
    fn with<X>(
        sink: F,
        source: impl FnOnce(Shared) -> Result<S, X>,
    ) -> Result<StreamWriter<'a, S, F>, X> {
        let sent = Rc::new(RefCell::new(Sent::default()));
        let source = source(Shared(Rc::clone(&sent)))?;
        Ok(StreamWriter {
            source,
            sent,
            check: None,
            steps: 0,
            instructions: 0,
            blocks: 0,
            passed: None,
            code: None,
            sink,
        })
    }

    /// Also takes note of the code that is executed.
    #[must_use]
    pub(super) fn recording_code(mut self) -> Self {
        self.code = Some(Box::default());
        self.sent.borrow_mut().syncs = Some(Vec::new());
        self
    }

    /// A step, for the code that is executed.
    #[cold]
    fn record(&mut self, hart: HartId, step: &Step) {
        let Some(code) = &mut self.code else {
            return;
        };
        let before = self.source.halfwords(hart);
        match step {
            Step::Insn(insn) => code.insn(hart, (insn.pc, insn.bits), before),
            Step::Trap(trap) => {
                if let (Some(bits), Some(epc)) = (trap.bits, trap.trap.epc) {
                    code.insn(hart, (epc, bits), before);
                }
            }
            Step::Signal(_) => {}
        }
    }

    /// The synchronisations of what was sent, for the code that is executed.
    #[inline(always)]
    fn synchronise(&mut self) {
        if self.code.is_some() {
            self.tell_synchronised();
        }
    }

    #[cold]
    fn tell_synchronised(&mut self) {
        let Some(code) = &mut self.code else {
            return;
        };
        let mut sent = self.sent.borrow_mut();
        for (sync, halfwords) in sent.syncs.iter_mut().flat_map(|syncs| syncs.drain(..)) {
            code.synchronised(sync, halfwords);
        }
    }

    /// Counts and compares only what passes the filters of an encoder at such
    /// a port.
    #[must_use]
    pub(super) fn filtered(
        mut self,
        port: &PortConfig,
        (filter, switches): (&FilterConfig, Switches),
        unreported: &Unreported,
    ) -> Self {
        let passed = Passed::new(port, (filter, switches), unreported.traps);
        self.passed = passed.map(|passed| (Box::new(passed), 0));
        self
    }

    /// Asks the filters about steps: those that pass are counted and compared.
    #[cold]
    fn pass(&mut self, ask: impl FnOnce(&mut Passed)) {
        let Some((passed, insns)) = &mut self.passed else {
            return;
        };
        ask(passed);
        while let Some(PassedStep {
            hart,
            step,
            effects,
        }) = passed.next()
        {
            *insns += u64::from(matches!(step, Step::Insn(_)));
            if let Some(check) = &mut self.check {
                check.step(hart, &step, &effects);
            }
        }
    }

    /// Also decodes what is sent.
    #[must_use]
    pub(super) fn checking(mut self, checker: Checker<'a>) -> StreamWriter<'a, S, F> {
        self.check = Some(checker);
        self
    }

    /// Also measures the bandwidth.
    #[must_use]
    pub(super) fn metered(self, meter: Meter) -> StreamWriter<'a, S, F> {
        self.sent.borrow_mut().meter = Some(Box::new(meter));
        self
    }

    /// What was written; after [`Observer::finish`].
    #[must_use]
    pub(super) fn written(self) -> Written {
        let mut sent = self.sent.borrow_mut();
        let counters = self.source.counters();
        Written {
            instructions: self.instructions,
            blocks: self.blocks,
            passed: self.passed.map(|(_, insns)| insns),
            messages: sent.messages,
            bytes: sent.total,
            overflows: counters.overflows,
            lost: counters.lost,
            meter: sent.meter.take(),
            check: self.check.map(Checker::result),
            container: None,
            absent: Vec::new(),
            code: self.code.map(|code| code.finish()),
        }
    }

    /// Many instructions, with looks at the same places as step by step: what is handed on
    /// together becomes a frame of a container.
    fn parts(&mut self, code: &Straights<'_>) {
        let count = code.count as usize;
        let mut done = 0;
        while done < count {
            let now = (count - done).min((LOOK - self.steps) as usize);
            self.source.part(code, done..done + now);
            done += now;
            self.steps += now as u32;
            if self.steps == LOOK {
                self.look(BUFFER);
            }
        }
    }

    /// Hands on what the encoder has sent, if that is at least so much, or if the check is due.
    #[cold]
    fn look(&mut self, least: usize) {
        self.steps = 0;
        let mut sent = self.sent.borrow_mut();
        let due = self.check.as_ref().is_some_and(Checker::is_due);
        if sent.bytes.len() < least && !due {
            return;
        }
        if let Some(check) = &mut self.check {
            check.feed(&sent.bytes);
        }
        if !sent.bytes.is_empty() {
            (self.sink)(&sent.bytes);
            sent.bytes.clear();
        }
    }
}

impl<E: Encode, F: FnMut(&[u8])> StreamWriter<'_, Port<Encoder<E, Shared>>, F> {
    /// Gives a cycle of a port to the encoder, as it is.
    pub(super) fn cycle(&mut self, cycle: &IngressCycle<'_>) {
        let encoder = self.source.sink_mut();
        for block in cycle.blocks {
            encoder.ingress(cycle.hart, block);
        }
        for data in cycle.data.iter().filter(|data| data.dretire) {
            encoder.data(cycle.hart, data);
        }
        self.blocks += cycle
            .blocks
            .iter()
            .filter(|block| block.iretire > 0)
            .count() as u64;
        self.steps += 1;
        if self.steps == LOOK {
            self.look(BUFFER);
        }
    }
}

impl<S: Source, F: FnMut(&[u8])> Observer for StreamWriter<'_, S, F> {
    const WANTS: Wants = S::NEEDS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if self.passed.is_some() {
            self.pass(|passed| passed.step(hart, step, effects));
        } else if let Some(check) = &mut self.check {
            check.step(hart, step, effects);
        }
        self.instructions += u64::from(matches!(step, Step::Insn(_)));
        if self.code.is_some() {
            self.record(hart, step);
        }
        self.source.step(hart, step, effects);
        self.synchronise();
        self.steps += 1;
        if self.steps == LOOK {
            self.look(BUFFER);
        }
    }

    #[inline]
    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if self.passed.is_some() || S::PARTS && !code.has_changes() {
            // A filter has to look at each instruction, and so has what needs effects.
            return steps_of(self, hart, code);
        }
        if let Some(check) = &mut self.check {
            check.straights(hart, code);
        }
        self.instructions += code.count;
        if let Some(recorder) = &mut self.code
            && !recorder.knows(hart, code.news)
        {
            recorder.straights(hart, code, self.source.halfwords(hart));
        }
        if S::PARTS {
            return self.parts(code);
        }
        self.source.straights(hart, code);
        self.synchronise();
        self.look(BUFFER);
    }

    fn finish(&mut self) {
        self.source.finish();
        self.synchronise();
        self.pass(Passed::finish);
        self.look(1);
        if let Some(check) = &mut self.check {
            check.finish();
        }
    }
}
