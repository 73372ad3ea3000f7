//! Events as text of any form.

use super::{JsonEvents, PcList, TraceListing};
use hartrace_analyze::Names;
use hartrace_capture::shard::Part;
use hartrace_flow::{Consumer, Event, HartId, Image, Run};
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
    /// Instructions, with what else happened.
    Listing {
        /// Each line has the number of its hart.
        harts: bool,
    },
    /// One object per event, without the header
    /// ([`write_header`](super::write_header)).
    Json,
}

/// Text that a part gathers before it has to wait for its turn.
const FULL: usize = 16 << 20;

/// The text of events in one form or another. `flush` gets the text when there
/// is much of it, and may empty it.
pub struct EventText<'a, F>(Inner<'a, F>);

/// One at a time, so that their sizes do not matter.
#[allow(clippy::large_enum_variant)]
enum Inner<'a, F> {
    Pcs(PcList<'a, F>),
    Listing(TraceListing<'a, F>),
    Json(JsonEvents<'a>),
}

impl<'a, F: FnMut(&mut Vec<u8>) + Send + 'a> EventText<'a, F> {
    /// Text of this form, about a program and its names.
    pub fn new(
        form: EventForm,
        image: &'a Image,
        isa: Isa,
        names: &'a Names,
        flush: F,
    ) -> EventText<'a, F> {
        let pcs = |flush| PcList::new(image, isa.xlen(), flush);
        EventText(match form {
            EventForm::Pcs { traps: true } => Inner::Pcs(pcs(flush).listing_traps()),
            EventForm::Pcs { traps: false } => Inner::Pcs(pcs(flush)),
            EventForm::Listing { harts } => {
                Inner::Listing(TraceListing::new(image, names, harts, flush))
            }
            EventForm::Json => Inner::Json(JsonEvents::new(image, Some(names), flush)),
        })
    }

    /// What has not been flushed.
    pub fn text(&mut self) -> &mut Vec<u8> {
        match &mut self.0 {
            Inner::Pcs(pcs) => pcs.out.text(),
            Inner::Listing(listing) => listing.out.text(),
            Inner::Json(json) => json.out.text(),
        }
    }
}

impl<F: FnMut(&mut Vec<u8>)> Consumer for EventText<'_, F> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match &mut self.0 {
            Inner::Pcs(text) => text.event(hart, event),
            Inner::Listing(text) => text.event(hart, event),
            Inner::Json(text) => text.event(hart, event),
        }
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        match &mut self.0 {
            Inner::Pcs(text) => text.runs(hart, runs),
            Inner::Listing(text) => text.runs(hart, runs),
            Inner::Json(text) => text.runs(hart, runs),
        }
    }
}

impl<F: FnMut(&mut Vec<u8>) + Send> Part for EventText<'_, F> {
    fn is_full(&self) -> bool {
        let size = match &self.0 {
            Inner::Pcs(pcs) => pcs.out.size(),
            Inner::Listing(listing) => listing.out.size(),
            Inner::Json(json) => json.out.size(),
        };
        size > FULL
    }
}
