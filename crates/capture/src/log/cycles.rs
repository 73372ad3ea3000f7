//! Cycles of an ingress port, from a table or a waveform, for an encoder.

use super::{Damage, LineCount, LogOptions, Overseer};
use crate::detect::Kind;
use crate::input::{Halt, Input, InputError};
use crate::trace::TraceWriter;
use crate::wave::{Shown, WavePort, WaveReader};
use hartrace_flow::{HartId, Ingress, Observer as _};
use hartrace_logs::{IngressCycle, IngressReader};
use std::ops::ControlFlow;

/// Reads the cycles of an ingress port. They need no program: an encoder knows what it has
/// to know from the port.
pub struct CycleReader(Form);

/// One at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Form {
    Table(IngressReader),
    Wave(WaveReader),
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Cycles {
    /// The harts of the table.
    pub harts: Vec<HartId>,
    /// There are several where there is room for one, and none was chosen.
    pub clash: bool,
    /// Rows that could not be read.
    pub damage: Damage,
    /// All lines, or edges of the clock.
    pub lines: u64,
}

impl CycleReader {
    /// A reader for a log of this kind; `None` for one without an ingress port.
    #[must_use]
    pub fn new(kind: Kind, options: &LogOptions<'_>) -> Option<CycleReader> {
        match (kind, &options.wave) {
            (Kind::IngressCsv, _) => {
                let reader = IngressReader::new(options.iretire);
                Some(CycleReader(Form::Table(reader)))
            }
            (Kind::Wave(_), Some(Ok(plan))) if plan.port != WavePort::Rvfi => {
                Some(CycleReader(Form::Wave(WaveReader::new(plan))))
            }
            _ => None,
        }
    }

    /// Gives all cycles of the hart `only`, or of all, to an encoder; a `single` one has no
    /// room for two.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn copy(
        mut self,
        input: Input,
        (only, single): (Option<HartId>, bool),
        writer: &mut TraceWriter<'_>,
        after: &mut Overseer<'_>,
    ) -> Result<Cycles, InputError> {
        let mut to = To {
            writer,
            only,
            single,
            cycles: Cycles::default(),
            lost: false,
            blocks: Vec::new(),
        };
        let mut lines = LineCount::default();
        let mut done = 0;
        let read: Result<(), Halt> = input.chunks(|chunk| {
            self.part(Some(chunk), &mut to);
            lines.feed(chunk);
            done += chunk.len() as u64;
            match after(&to.cycles.harts, to.cycles.clash, done) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(Halt::Ended),
            }
        });
        match read {
            Ok(()) => self.part(None, &mut to),
            Err(Halt::Ended) => {}
            Err(Halt::Failed(error)) => return Err(error),
        }
        let To {
            writer, mut cycles, ..
        } = to;
        writer.finish();
        cycles.lines = match &self.0 {
            Form::Table(_) => lines.count(),
            Form::Wave(reader) => reader.edges(),
        };
        Ok(cycles)
    }

    fn part(&mut self, chunk: Option<&[u8]>, to: &mut To<'_, '_>) {
        match &mut self.0 {
            Form::Table(reader) => {
                let mut damage = std::mem::take(&mut to.cycles.damage);
                let damaged = &mut |error| damage.add(error);
                let out = &mut |cycle: Option<IngressCycle<'_>>| to.take(cycle);
                match chunk {
                    Some(chunk) => reader.feed_cycles(chunk, out, damaged),
                    None => reader.finish_cycles(out, damaged),
                }
                to.cycles.damage = damage;
            }
            Form::Wave(reader) => {
                let show = &mut |shown: Shown<'_>| match shown {
                    Shown::Blocks(blocks) => to.take(Some(IngressCycle {
                        hart: HartId(0),
                        blocks,
                        data: &[],
                    })),
                    Shown::Lost => to.take(None),
                    Shown::Damaged(error) => to.cycles.damage.add(error),
                    Shown::Entry(_) => {}
                };
                match chunk {
                    Some(chunk) => reader.feed(chunk, show),
                    None => reader.finish(show),
                }
            }
        }
    }
}

/// An encoder, and what is known of the cycles so far.
struct To<'w, 't> {
    writer: &'w mut TraceWriter<'t>,
    only: Option<HartId>,
    single: bool,
    cycles: Cycles,
    /// Something is missing before the next block.
    lost: bool,
    blocks: Vec<Ingress>,
}

impl To<'_, '_> {
    fn take(&mut self, cycle: Option<IngressCycle<'_>>) {
        let Some(cycle) = cycle else {
            // Before the first block nothing can be missing.
            self.lost = !self.cycles.harts.is_empty();
            return;
        };
        if let Err(at) = self.cycles.harts.binary_search(&cycle.hart) {
            self.cycles.harts.insert(at, cycle.hart);
        }
        self.cycles.clash = self.single && self.only.is_none() && self.cycles.harts.len() > 1;
        if self.cycles.clash || self.only.is_some_and(|only| only != cycle.hart) {
            return;
        }
        if !std::mem::take(&mut self.lost) {
            return self.writer.cycle(&cycle);
        }
        self.blocks.clear();
        self.blocks.extend_from_slice(cycle.blocks);
        if let Some(first) = self.blocks.first_mut() {
            first.lost = true;
        }
        let blocks = &self.blocks;
        self.writer.cycle(&IngressCycle { blocks, ..cycle });
    }
}
