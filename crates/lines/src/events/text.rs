//! Events as text of the forms that need no order: parts of a trace can be written
//! on several threads.

use super::{JsonEvents, PcList};
use hartrace_analyze::{Gathered, Names};
use hartrace_flow::{Consumer, Event, Gather, HartId, Image, Run};
use hartrace_isa::Isa;
use std::ops::ControlFlow;

/// A form of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// The pcs of instructions.
    Pcs {
        /// ecall and ebreak too, which do not retire.
        traps: bool,
    },
    /// One object per event, without the header
    /// ([`write_header`](super::write_header)).
    Json,
}

/// Text that a part gathers before it has to wait for its turn.
const FULL: usize = 16 << 20;

/// The text of events in one form or another. `flush` gets the text when there
/// is much of it, and may empty it.
pub struct EventText<'a>(Inner<'a>);

/// One at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Inner<'a> {
    Pcs(PcList<'a>),
    Json(JsonEvents<'a>),
}

impl<'a> EventText<'a> {
    /// Text of this form, about a program and its names.
    pub fn new(
        form: EventForm,
        image: &'a Image,
        isa: Isa,
        names: &'a Names,
        flush: impl FnMut(&mut Vec<u8>) + Send + 'a,
    ) -> EventText<'a> {
        let pcs = |flush| PcList::new(image, isa.xlen(), flush);
        EventText(match form {
            EventForm::Pcs { traps: true } => Inner::Pcs(pcs(flush).listing_traps()),
            EventForm::Pcs { traps: false } => Inner::Pcs(pcs(flush)),
            EventForm::Json => Inner::Json(JsonEvents::new(image, Some(names), flush)),
        })
    }

    /// Text of a part of a trace, which is kept until it is given.
    #[must_use]
    pub fn held(mut self) -> EventText<'a> {
        self.out().hold();
        self
    }

    fn out(&mut self) -> &mut Gathered<'a> {
        match &mut self.0 {
            Inner::Pcs(pcs) => &mut pcs.out,
            Inner::Json(json) => &mut json.out,
        }
    }
}

impl Consumer for EventText<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match &mut self.0 {
            Inner::Pcs(text) => text.event(hart, event),
            Inner::Json(text) => text.event(hart, event),
        }
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        match &mut self.0 {
            Inner::Pcs(text) => text.runs(hart, runs),
            Inner::Json(text) => text.runs(hart, runs),
        }
    }
}

impl Gather for EventText<'_> {
    fn is_full(&self) -> bool {
        let size = match &self.0 {
            Inner::Pcs(pcs) => pcs.out.size(),
            Inner::Json(json) => json.out.size(),
        };
        size > FULL
    }

    fn give(&mut self) -> ControlFlow<()> {
        self.out().finish();
        ControlFlow::Continue(())
    }
}
