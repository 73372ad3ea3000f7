//! One run, traced with every option set of every format: how large each trace is,
//! what output it needs, and whether it decodes to what was run.
//!
//! The steps of a source pass once through a [`Feed`], which copies them in batches to
//! a few threads. Each thread has the encoders of some option sets, with a decoder
//! and a check for each. No stream is kept: memory does not grow with the run.

mod bandwidth;
mod batch;
mod options;

pub use bandwidth::{Bandwidth, BandwidthError, PINS};
pub use batch::Feed;
pub use options::{OPTION_SETS, OptionSet};

use crate::config::{Config, ConfigError};
use crate::trace::{Meter, Settings, TraceWriter, WriteError, WriteOptions, Written};
use batch::Batch;
use hartrace_etrace as etrace;
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::order;
use hartrace_flow::queue::Queue;
use hartrace_flow::{Checked, Difference, Image, Observer as _, PortConfig};
use hartrace_isa::Isa;
use hartrace_ntrace as ntrace;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Batches that wait for a thread.
const WAITING: usize = 4;

/// An output of the chip that is to carry the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputModel {
    /// What it carries, if that is given.
    pub bandwidth: Option<Bandwidth>,
    /// Depths of the buffer before it, in bytes.
    pub depths: Vec<u32>,
}

impl OutputModel {
    /// The smallest buffer that an encoder of every format can have, in bytes.
    pub const LEAST: u32 = if ntrace::MIN_QUEUE > etrace::MIN_QUEUE {
        ntrace::MIN_QUEUE
    } else {
        etrace::MIN_QUEUE
    };

    /// Bytes that leave in 1024 cycles.
    fn drain(&self) -> Option<u32> {
        self.bandwidth.map(|bandwidth| bandwidth.drain())
    }
}

/// What is compared.
pub struct Plan<'a> {
    streams: Vec<Stream>,
    filter: FilterConfig,
    image: &'a Image,
    output: OutputModel,
}

/// An option set and what it means for this program.
struct Stream {
    set: OptionSet,
    settings: Settings,
    port: PortConfig,
}

/// Why nothing can be compared.
#[derive(Debug)]
pub enum PlanError {
    /// An option set is not a configuration.
    Options(ConfigError),
    /// The settings of a format contradict each other.
    Write(WriteError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Options(error) => error.fmt(f),
            PlanError::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlanError {}

impl<E: Into<WriteError>> From<E> for PlanError {
    fn from(error: E) -> PlanError {
        PlanError::Write(error.into())
    }
}

/// How all option sets did.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Instructions that retired.
    pub instructions: u64,
    /// Those of them that passed the filters.
    pub traced: u64,
    /// Cycles from the first step to the last.
    pub cycles: u64,
    /// One row for each option set.
    pub rows: Vec<Row>,
}

impl Compared {
    /// The verified option set that needs the smallest buffer before the given output;
    /// the first of equals.
    #[must_use]
    pub fn least_buffer(&self) -> Option<&Row> {
        let rows = self.rows.iter().filter(|row| row.check.is_ok());
        let rows = rows.filter(|row| row.lossless_depth.is_some());
        rows.min_by_key(|row| row.lossless_depth)
    }

    /// The verified option set that the slowest output is enough for with a buffer of
    /// the depth with this index, and the bytes that leave in 1024 cycles; the first of
    /// equals.
    #[must_use]
    pub fn slowest_output(&self, depth: usize) -> Option<(&Row, u64)> {
        let rows = self.rows.iter().filter(|row| row.check.is_ok());
        let rows = rows.filter_map(|row| Some((row, row.buffers.get(depth)?.lossless_drain?)));
        rows.min_by_key(|(_, drain)| *drain)
    }
}

/// How one option set did.
#[derive(Clone, Debug)]
pub struct Row {
    /// The option set.
    pub set: OptionSet,
    /// Messages or packets.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes in [`WINDOW`](crate::trace::WINDOW) consecutive cycles.
    pub peak: u64,
    /// What was compared with the run, or where it differs.
    pub check: Result<Checked, Box<Difference>>,
    /// The depth at which a buffer before the given output loses nothing.
    pub lossless_depth: Option<u64>,
    /// What is known of each given depth.
    pub buffers: Vec<Buffer>,
}

/// A buffer of a given depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes that it holds.
    pub depth: u32,
    /// Bytes that must leave in 1024 cycles so that nothing is lost; `None` where no
    /// output is fast enough.
    pub lossless_drain: Option<u64>,
    /// What is lost before the given output.
    pub loss: Option<Loss>,
}

/// What a buffer loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How often it overflowed.
    pub overflows: u64,
    /// Messages that were lost.
    pub messages: u64,
}

impl<'a> Plan<'a> {
    /// All option sets, each over these settings, for the program in `image`.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(
        config: &Config,
        isa: Isa,
        filter: FilterConfig,
        image: &'a Image,
        output: OutputModel,
    ) -> Result<Plan<'a>, PlanError> {
        let mut plan = Plan {
            streams: Vec::new(),
            filter,
            image,
            output,
        };
        for set in OPTION_SETS {
            let config = set.over(config).map_err(PlanError::Options)?;
            let settings = set.format.settings(&config, isa.xlen())?;
            let stream = Stream {
                set: *set,
                port: settings.port(config.ingress).port(isa),
                settings: settings.with_queue(None),
            };
            // What contradicts itself does so here, not after the run.
            Encoders::new(&stream, &plan)?;
            plan.streams.push(stream);
        }
        Ok(plan)
    }

    /// The settings of every option set, to see whether they suit a program.
    pub fn settings(&self) -> impl Iterator<Item = &Settings> {
        self.streams.iter().map(|stream| &stream.settings)
    }

    /// Encodes and checks what `source` shows to its observer, on so many threads
    /// besides this one. The result does not depend on their number.
    ///
    /// # Errors
    ///
    /// None that [`Plan::new`] does not find.
    pub fn run<T>(
        &self,
        threads: usize,
        source: impl FnOnce(&mut Feed) -> T,
    ) -> Result<(T, Compared), PlanError> {
        let threads = threads.clamp(1, self.streams.len().max(1));
        thread::scope(|scope| {
            let mut senders = Vec::new();
            let mut workers = Vec::new();
            for first in 0..threads {
                let (sender, batches) = sync_channel(WAITING);
                senders.push(sender);
                workers.push(scope.spawn(move || self.work(first, threads, &batches)));
            }
            let mut feed = Feed::new(senders);
            let result = source(&mut feed);
            let cycles = feed.cycles();
            drop(feed);
            let mut rows = Vec::new();
            for worker in workers {
                match worker.join() {
                    Ok(done) => rows.extend(done?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            order::sort_by_key(&mut rows, |(index, ..)| *index);
            let first = rows.first();
            let compared = Compared {
                instructions: first.map_or(0, |(_, done, _)| done.instructions),
                traced: first.map_or(0, |(_, done, _)| done.passed.unwrap_or(done.instructions)),
                cycles,
                rows: rows.into_iter().map(|(_, _, row)| row).collect(),
            };
            Ok((result, compared))
        })
    }

    /// Encodes every option set that is the turn of this thread.
    fn work(
        &self,
        first: usize,
        threads: usize,
        batches: &Receiver<Arc<Batch>>,
    ) -> Result<Vec<(usize, Written, Row)>, PlanError> {
        let mine = || self.streams.iter().enumerate().skip(first).step_by(threads);
        let all: Result<Vec<_>, _> = mine().map(|(_, s)| Encoders::new(s, self)).collect();
        let mut all = all?;
        for batch in batches {
            for encoders in &mut all {
                encoders.replay(&batch);
            }
        }
        let done = mine().zip(all).map(|((index, stream), encoders)| {
            let (written, row) = encoders.done(stream.set, &self.output);
            (index, written, row)
        });
        Ok(done.collect())
    }
}

/// The encoders of one option set.
struct Encoders<'a> {
    /// The one that loses nothing.
    whole: TraceWriter<'a>,
    /// One with a queue for each depth; none without a drain.
    queued: Vec<TraceWriter<'a>>,
}

impl<'a> Encoders<'a> {
    fn new(stream: &Stream, plan: &Plan<'a>) -> Result<Encoders<'a>, WriteError> {
        let writer = |settings: &Settings, check| {
            let options = WriteOptions {
                check,
                ..WriteOptions::default()
            };
            TraceWriter::new(
                settings,
                stream.port,
                &plan.filter,
                options,
                Box::new(|_| {}),
            )
        };
        let drain = plan.output.drain();
        let queued = |&bytes: &u32| {
            let queue = drain.map(|drain| Queue {
                bytes,
                drain,
                stall: false,
            });
            let settings = stream.settings.clone().with_queue(queue);
            writer(&settings, None)
        };
        let whole = writer(&stream.settings, Some(plan.image))?;
        let depths = plan.output.depths.as_slice();
        let with_queue = if drain.is_some() { depths } else { &[] };
        Ok(Encoders {
            whole: whole.metered(Meter::new(drain, depths)),
            queued: with_queue.iter().map(queued).collect::<Result<_, _>>()?,
        })
    }

    fn replay(&mut self, batch: &Batch) {
        batch.replay(&mut self.whole);
        for queued in &mut self.queued {
            batch.replay(queued);
        }
    }

    fn done(mut self, set: OptionSet, output: &OutputModel) -> (Written, Row) {
        self.whole.finish();
        let mut written = self.whole.done();
        let meter = written.meter.take().unwrap_or_default();
        let mut losses = self.queued.into_iter().map(|mut queued| {
            queued.finish();
            let done = queued.done();
            Loss {
                overflows: done.overflows,
                messages: done.lost,
            }
        });
        let buffers = output.depths.iter().zip(meter.smallest_drains());
        let row = Row {
            set,
            messages: written.messages,
            bytes: written.bytes,
            peak: meter.peak(),
            check: written.check.take().unwrap_or(Ok(Checked::default())),
            lossless_depth: meter.deepest(),
            buffers: buffers
                .map(|(&depth, lossless_drain)| Buffer {
                    depth,
                    lossless_drain,
                    loss: losses.next(),
                })
                .collect(),
        };
        (written, row)
    }
}
