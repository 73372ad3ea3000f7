//! Events for other programs: JSON lines, a header first. Values of 64 bits
//! are hexadecimal strings, since JSON numbers are exact up to 2^53 only.

use super::log_json::{Accessed, Hex, access, cause};
use crate::traces::Text;
use hartrace_flow::{Consumer, Event, Exit, HartId, Image, Mark, Run, SpaceId};
use hartrace_isa::{Flow, Isa};
use serde::Serialize;
use std::ops::ControlFlow;

/// Bytes gathered before they are flushed.
const BUFFER: usize = 1 << 17;

/// Writes one object per event.
pub(super) struct JsonEvents<'a, F> {
    image: &'a Image,
    text: Vec<u8>,
    flush: F,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Header {
        schema: &'static str,
        version: u32,
        isa: String,
    },
    Run {
        hart: u32,
        start: Hex,
        end: Hex,
        insns: u32,
        exit: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<Hex>,
    },
    Trap {
        hart: u32,
        cause: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        epc: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        handler: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tval: Option<Hex>,
    },
    Context {
        hart: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<Hex>,
    },
    Time {
        hart: u32,
        time: Hex,
    },
    Access {
        hart: u32,
        insn: u32,
        #[serde(flatten)]
        access: Accessed,
    },
    Mark {
        hart: u32,
        mark: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<u16>,
    },
    Gap {
        hart: u32,
        code: &'static str,
        text: &'static str,
        value: Hex,
        offset: u64,
        bytes: u64,
        unconfirmed: u64,
    },
}

/// The first line.
pub(super) fn header(isa: Isa) -> Vec<u8> {
    let mut text = Vec::new();
    let header = Line::Header {
        schema: "hartrace-events",
        version: 1,
        isa: isa.to_string(),
    };
    put(&mut text, &header);
    text
}

fn put(text: &mut Vec<u8>, line: &Line) {
    // Writing to memory does not fail, and neither do these values.
    let _ = serde_json::to_writer(&mut *text, line);
    text.push(b'\n');
}

impl<'a, F: FnMut(&mut Vec<u8>)> JsonEvents<'a, F> {
    pub(super) fn new(image: &'a Image, flush: F) -> JsonEvents<'a, F> {
        let text = Vec::new();
        JsonEvents { image, text, flush }
    }
}

impl<F: FnMut(&mut Vec<u8>)> Text for JsonEvents<'_, F> {
    fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    fn size(&self) -> usize {
        self.text.len()
    }

    fn flush(&mut self) {
        (self.flush)(&mut self.text);
    }
}

impl<F: FnMut(&mut Vec<u8>)> Consumer for JsonEvents<'_, F> {
    fn event(&mut self, HartId(hart): HartId, event: &Event) -> ControlFlow<()> {
        put(&mut self.text, &line(self.image, hart, event));
        if self.text.len() >= BUFFER {
            self.flush();
        }
        ControlFlow::Continue(())
    }
}

/// Where the hart went behind a run. Of one that was cut behind a branch or
/// jump the trace does not tell.
fn next(image: &Image, run: &Run) -> Option<Hex> {
    let is_straight = || {
        let last = image.fetch(SpaceId::FIRST, run.source());
        last.is_none_or(|insn| {
            let flow = Flow::of_retired(insn.bits, insn.isa);
            matches!(flow, Flow::Seq | Flow::Const { .. } | Flow::Trap)
        })
    };
    (run.exit != Exit::Stop || is_straight()).then_some(Hex(run.next))
}

fn line(image: &Image, hart: u32, event: &Event) -> Line {
    match event {
        Event::Run(run) => Line::Run {
            hart,
            start: Hex(run.start),
            end: Hex(run.end),
            insns: run.insns,
            exit: exit(run.exit),
            next: next(image, run),
        },
        Event::Trap(trap) => {
            let (cause, code) = cause(trap.cause);
            Line::Trap {
                hart,
                cause,
                code,
                epc: trap.epc.map(Hex),
                handler: trap.handler.map(Hex),
                tval: trap.tval.map(Hex),
            }
        }
        Event::Context(owner) => Line::Context {
            hart,
            mode: owner.mode.map(|mode| mode.name()),
            context: owner.context.map(|context| Hex(context.0)),
        },
        Event::Time(time) => Line::Time {
            hart,
            time: Hex(*time),
        },
        Event::Access(data) => Line::Access {
            hart,
            insn: data.insn,
            access: access(&data.access),
        },
        Event::Mark(what) => {
            let (mark, code) = mark(*what);
            Line::Mark { hart, mark, code }
        }
        Event::Gap(gap) => Line::Gap {
            hart,
            code: gap.reason.code,
            text: gap.reason.text,
            value: Hex(gap.reason.value),
            offset: gap.at,
            bytes: gap.bytes,
            unconfirmed: gap.unconfirmed,
        },
    }
}

fn exit(exit: Exit) -> &'static str {
    match exit {
        Exit::Stop => "stop",
        Exit::NotTaken => "not-taken",
        Exit::Taken => "taken",
        Exit::DirectJump => "direct-jump",
        Exit::DirectCall => "direct-call",
        Exit::OtherDirect => "other-direct",
        Exit::IndirectJump => "indirect-jump",
        Exit::IndirectCall => "indirect-call",
        Exit::OtherIndirect => "other-indirect",
        Exit::Return => "return",
        Exit::Swap => "swap",
        Exit::TrapReturn => "trap-return",
    }
}

fn mark(mark: Mark) -> (&'static str, Option<u16>) {
    match mark {
        Mark::On => ("on", None),
        Mark::Off => ("off", None),
        Mark::Notify => ("notify", None),
        Mark::External(input) => ("external", Some(input.into())),
        Mark::Halted => ("halted", None),
        Mark::Resumed => ("resumed", None),
        Mark::Reset => ("reset", None),
        Mark::PowerDown => ("power-down", None),
        Mark::PowerUp => ("power-up", None),
        Mark::Sync(code) => ("sync", Some(code.into())),
        Mark::Vendor(code) => ("vendor", Some(code)),
    }
}
