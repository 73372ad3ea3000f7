//! Passes steps through port, encoder and decoder and compares the result,
//! storing only what is in flight.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use hartrace_flow::encode::Sink;
use hartrace_flow::{
    Consumer, Decode, Effects, Event, HartId, Image, Ingress, IngressSink, Observer, Port, Signal,
    Step, Totals, Wants,
};

use super::{Counters, Format, Setting, Told, Truth};
use crate::generate::Random;

/// Bytes that may be on their way before the decoder gets them.
const CHUNK: usize = 1 << 12;

/// Bytes between encoder and decoder.
#[derive(Clone, Debug, Default)]
struct Wire(Rc<RefCell<Vec<u8>>>);

impl Sink for Wire {
    #[inline]
    fn message(&mut self, bytes: &[u8]) {
        self.0.borrow_mut().extend_from_slice(bytes);
    }
}

/// Where a hart is in its steps.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Halfwords and traps so far.
    position: u64,
    /// A loss was reported, and no start since. Other harts start when they do.
    lost: bool,
}

/// The encoder, and where in the steps it starts again after a loss.
#[derive(Debug)]
struct Tap<F: Format> {
    encoder: F::Encoder<Wire>,
    wire: Wire,
    config: F::Config,
    loses: bool,
    /// Of each hart.
    harts: Vec<Place>,
    restarts: Rc<RefCell<Vec<(HartId, u64)>>>,
}

impl<F: Format> IngressSink for Tap<F> {
    fn ingress(&mut self, hart: HartId, block: &Ingress) {
        if !self.loses {
            return self.encoder.ingress(hart, block);
        }
        let index = hart.0 as usize;
        if self.harts.len() <= index {
            self.harts.resize(index + 1, Place::default());
        }
        let before = self.wire.0.borrow().len();
        self.encoder.ingress(hart, block);
        let Some(place) = self.harts.get_mut(index) else {
            return;
        };
        let bytes = self.wire.0.borrow();
        let new = bytes.get(before..).unwrap_or_default();
        if !new.is_empty() && F::restarts(&self.config, new, &mut place.lost) {
            self.restarts.borrow_mut().push((hart, place.position));
        }
        place.position += u64::from(block.iretire) + u64::from(block.itype.is_trap());
    }

    fn finish(&mut self) {
        self.encoder.finish();
    }
}

/// The whole way.
#[derive(Debug)]
pub struct Pipe<'i, F: Format> {
    port: Port<Tap<F>>,
    wire: Wire,
    restarts: Rc<RefCell<Vec<(HartId, u64)>>>,
    decoder: F::Decoder<'i>,
    truth: Truth<F>,
    /// Decodes the same for one who only counts.
    counting: F::Decoder<'i>,
    counts: [Sum; 2],
    /// Bytes of chunks, to be drawn.
    chunks: Random,
    chunk: usize,
    /// Kept instead of decoded.
    keeps: bool,
}

impl<'i, F: Format> Pipe<'i, F> {
    /// A way for steps of code in this image.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense.
    pub fn new(setting: &Setting<F>, image: &'i Image) -> Result<Pipe<'i, F>, String> {
        let wire = Wire::default();
        let restarts = Rc::default();
        let encoder = F::encoder(&setting.config, wire.clone())?;
        let decoder = F::decoder(&setting.config, image)?;
        let counting = F::decoder(&setting.config, image)?;
        let tap = Tap {
            encoder,
            wire: wire.clone(),
            config: setting.config.clone(),
            loses: F::has_loss(setting),
            harts: Vec::new(),
            restarts: Rc::clone(&restarts),
        };
        Ok(Pipe {
            port: Port::new(setting.port, tap),
            wire,
            restarts,
            decoder,
            truth: Truth::new(setting),
            counting,
            counts: [Sum::default(), Sum::default()],
            chunks: Random::new(7),
            chunk: CHUNK,
            keeps: false,
        })
    }

    /// Only encodes: for [`Pipe::into_bytes`].
    #[must_use]
    pub fn keeping(mut self) -> Pipe<'i, F> {
        self.keeps = true;
        self
    }

    /// Whether a difference has been found: the rest is of no use.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.truth.difference().is_some()
    }

    /// Gives the decoder what is there.
    fn pump(&mut self) {
        for (hart, position) in self.restarts.borrow_mut().drain(..) {
            self.truth.restarts(hart, position);
        }
        let mut bytes = self.wire.0.borrow_mut();
        let [counted, sum] = &mut self.counts;
        feed(&mut self.decoder, &bytes, &mut Summed(sum, &mut self.truth));
        feed(&mut self.counting, &bytes, counted);
        bytes.clear();
        self.chunk = 1 + self.chunks.below(2 * CHUNK as u64) as usize;
    }

    /// Nothing follows: the outcome, and what the encoder did.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn finish(mut self) -> Result<(Told, Counters), String> {
        self.truth.end_of_steps();
        self.port.finish();
        self.pump();
        let [counted, sum] = &mut self.counts;
        self.decoder.finish(&mut Summed(sum, &mut self.truth));
        self.counting.finish(counted);
        let counters = F::counters(&self.port.into_sink().encoder);
        let told = self.truth.result()?;
        if counted != sum {
            return Err(format!("who only counts gets {counted:?}, not {sum:?}"));
        }
        Ok((told, counters))
    }

    /// Nothing follows: the trace.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.port.finish();
        self.wire.0.take()
    }
}

/// What one who only counts gets to know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    insns: u64,
    traps: u64,
    gaps: u64,
    others: u64,
}

impl Sum {
    fn add(&mut self, event: &Event) {
        match event {
            Event::Run(run) => self.insns += u64::from(run.insns),
            Event::Trap(_) => self.traps += 1,
            Event::Gap(_) => self.gaps += 1,
            // Of runs that are not given.
            Event::Code(_) => {}
            _ => self.others += 1,
        }
    }
}

impl Consumer for Sum {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.add(event);
        ControlFlow::Continue(())
    }

    fn only_counts(&self) -> bool {
        true
    }

    fn counted(&mut self, _: HartId, counted: Totals) -> ControlFlow<()> {
        self.insns += counted.insns;
        self.others += counted.accesses;
        ControlFlow::Continue(())
    }
}

/// Sums up what another consumer gets.
struct Summed<'s, C>(&'s mut Sum, &'s mut C);

impl<C: Consumer> Consumer for Summed<'_, C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.add(event);
        self.1.event(hart, event)
    }
}

/// Feeds all of it, whatever the consumer wishes.
pub(super) fn feed(decoder: &mut impl Decode, mut bytes: &[u8], out: &mut impl Consumer) {
    while !bytes.is_empty() {
        let used = decoder.feed(bytes, out);
        bytes = bytes.get(used..).unwrap_or_default();
    }
}

impl<F: Format> Observer for Pipe<'_, F> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if !self.keeps {
            self.truth.step(hart, step, effects);
        }
        self.port.step(hart, step, effects);
        if !self.keeps && self.wire.0.borrow().len() >= self.chunk {
            self.pump();
        }
    }
}

/// Breaks into the steps of a source with what it does not do by itself:
/// halts, resets, power, loss.
#[derive(Debug)]
pub(super) struct Break<'o, O> {
    out: &'o mut O,
    random: Random,
    /// One step in so many; 0 for none.
    every: u64,
    loses: bool,
}

impl<'o, O: Observer> Break<'o, O> {
    /// As the setting says, feeding an observer.
    pub(super) fn new<F: Format>(setting: &Setting<F>, seed: u64, out: &'o mut O) -> Break<'o, O> {
        let breaks = setting.signals || setting.loses;
        Break {
            out,
            random: Random::new(seed ^ 0xb3ea),
            every: u64::from(breaks) * 500,
            loses: setting.loses,
        }
    }

    /// The observer it feeds.
    pub(super) const fn inner(&self) -> &O {
        self.out
    }
}

impl<O: Observer> Observer for Break<'_, O> {
    const WANTS: Wants = O::WANTS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if self.every > 0 && self.random.below(self.every) == 0 {
            let signals: &[Signal] = match self.random.below(6) {
                0 => &[Signal::Halted, Signal::Resumed],
                1 => &[Signal::PowerDown, Signal::PowerUp],
                2 => &[Signal::Reset],
                3 => &[Signal::Notify],
                4 => &[Signal::External(3)],
                _ if self.loses => &[Signal::Lost],
                _ => &[],
            };
            for signal in signals {
                let step = Step::Signal(*signal);
                self.out.step(hart, &step, &Effects::default());
            }
        }
        self.out.step(hart, step, effects);
    }
}
