//! What a source keeps for the optional modes, as its encoder does.

use alloc::boxed::Box;
use core::ops::ControlFlow;

use hartrace_flow::decode::Track;
use hartrace_flow::{Consumer, DataAccess, Event, HartId, Kept, PlainAccesses, Run};

use super::Settings;
use crate::modes::{Predictor, Shared, Targets, Vectors, returns};

/// The tables of the modes that are on. The return stack is that of the walk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Aids {
    /// Away while a packet is decoded, see [`Tap`].
    pub(super) predictor: Option<Box<Predictor>>,
    pub(super) targets: Option<Targets>,
    pub(super) vectors: Option<Vectors>,
    /// Sizes of predictor, cache, counter and stack; 0 without the mode.
    sizes: [u8; 4],
    /// They are what the encoder has.
    pub(super) known: bool,
    /// The encoder has started afresh, or is about to.
    pub(super) fresh: bool,
}

impl Aids {
    /// Tables as these settings need them. Those of a mode that stays on stay.
    pub(super) fn adopt(&mut self, settings: &Settings, track: &mut Track) {
        let (config, modes) = (&settings.config, &settings.modes);
        let when = |on: bool, size: u8| if on { size } else { 0 };
        let sizes = [
            when(modes.prediction, config.bpred_size),
            when(modes.cache, config.cache_size),
            when(modes.implicit_return, config.call_counter_size),
            when(modes.implicit_return, config.return_stack_size),
        ];
        let [predictor, cache, calls @ ..] = sizes;
        let [old_predictor, old_cache, old_calls @ ..] = core::mem::replace(&mut self.sizes, sizes);
        let lsb = config.iaddress_lsb;
        if predictor != old_predictor {
            self.predictor = (predictor > 0).then(|| Box::new(Predictor::new(predictor, lsb)));
        }
        if cache != old_cache {
            self.targets = (cache > 0).then(|| Targets::new(cache, lsb));
        }
        if calls != old_calls {
            let stack = (calls != [0; 2]).then(|| returns::stack(config));
            track.walk.set_stack(stack);
        }
        if modes.implicit_exception && self.vectors.is_none() {
            self.vectors = Some(Vectors::new(config.trap_vectors, config.xlen));
        }
    }

    /// Whether a mode that has a table is on.
    pub(super) fn is_modal(&self) -> bool {
        self.sizes != [0; 4]
    }

    /// All of them as after a synchronisation packet.
    pub(super) fn reset(&mut self, track: &mut Track, table: Option<Shared<'_>>) {
        if let Some(table) = table {
            table.reset();
        }
        if let Some(targets) = &mut self.targets {
            targets.reset();
        }
        if let Some(stack) = track.walk.stack() {
            stack.clear();
        }
    }

    /// The target of an uninferable jump.
    #[inline]
    pub(super) fn landed(&mut self, to: u64) {
        if let Some(targets) = &mut self.targets {
            targets.update(to);
        }
    }
}

/// Keeps a predictor up to date with the branches that are given out.
pub(super) struct Tap<'t, C> {
    pub(super) out: &'t mut C,
    pub(super) table: Shared<'t>,
}

impl<C: Consumer> Consumer for Tap<'_, C> {
    #[inline]
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.table.note(run);
        }
        self.out.event(hart, event)
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.table.note(run);
        }
        self.out.runs(hart, runs)
    }

    #[inline]
    fn accesses(&mut self, hart: HartId, accesses: &[DataAccess]) -> ControlFlow<()> {
        self.out.accesses(hart, accesses)
    }

    #[inline]
    fn plain_accesses(&mut self, hart: HartId, accesses: PlainAccesses<'_>) -> ControlFlow<()> {
        self.out.plain_accesses(hart, accesses)
    }

    #[inline]
    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        self.table.update_all(kept, runs);
        self.out.kept_runs(hart, kept, runs)
    }

    #[inline]
    fn looks_at_values(&self) -> bool {
        self.out.looks_at_values()
    }

    #[inline]
    fn keeps(&self) -> bool {
        self.out.keeps()
    }
}
