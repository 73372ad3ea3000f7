//! Events as JSON lines, schema `hartrace-events`: what a trace reports, one
//! object per event.
//!
//! The text forms are [`PcList`] and [`TraceListing`]; [`EventText`] is a list of pcs or
//! JSON.

mod text;

use crate::json::{self, Hex};
use crate::steps::{Accessed, Trapped};
use crate::words;
pub use hartrace_analyze::{PcList, TraceListing};
pub use text::{EventForm, EventText};

use hartrace_analyze::{Gathered, Names, Spaces};
use hartrace_flow::{Consumer, Event, Exit, HartId, Image, Run, SpaceId};
use hartrace_isa::{Flow, Isa};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Writes one object per event. The first line is written apart, by
/// [`write_header`], since parts of a trace may be decoded on several threads.
///
/// ```
/// use hartrace_flow::{Consumer, Event, Exit, HartId, Image, Run, SpaceId};
/// use hartrace_isa::Isa;
/// use hartrace_lines::JsonEvents;
///
/// let mut image = Image::new();
/// image.add_raw(SpaceId::FIRST, 0x1000, &[0x13, 0, 0, 0, 0x01, 0], Isa::RV32GC);
/// let mut events = JsonEvents::new(&image, None, |_: &mut Vec<u8>| ());
/// let run = Run { start: 0x1000, end: 0x1006, next: 0x1006, insns: 2, exit: Exit::Stop, last: 2 };
/// let _ = events.event(HartId(0), &Event::Run(run));
/// let line = r#"{"type":"run","hart":0,"start":"0x1000","end":"0x1006","insns":2,"exit":"stop","next":"0x1006","last":"0x1004"}"#;
/// assert_eq!(events.out.text(), format!("{line}\n").as_bytes());
/// ```
pub struct JsonEvents<'a> {
    image: &'a Image,
    spaces: Spaces,
    symbols: Option<Symbols<'a>>,
    /// The text.
    pub out: Gathered<'a>,
}

/// Writes the first line.
///
/// # Errors
///
/// A failing write.
pub fn write_header(isa: Isa, out: &mut impl Write) -> io::Result<()> {
    let header = Line::Header {
        schema: "hartrace-events",
        version: 1,
        isa: isa.to_string(),
    };
    json::line(&header, out)
}

impl<'a> JsonEvents<'a> {
    /// Events of a program; with `names`, runs have the symbol of their start.
    pub fn new(
        image: &'a Image,
        names: Option<&'a Names>,
        flush: impl FnMut(&mut Vec<u8>) + Send + 'a,
    ) -> JsonEvents<'a> {
        JsonEvents {
            image,
            spaces: Spaces::default(),
            symbols: names.map(Symbols::new),
            out: Gathered::new(flush),
        }
    }
}

impl Consumer for JsonEvents<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Context(owner) => self.spaces.enter(hart, owner, self.image),
            Event::Code(space) => self.spaces.set(hart, *space),
            _ => {}
        }
        let code = (self.image, self.spaces.of(hart));
        let Some(line) = line(code, self.symbols.as_mut(), hart.0, event) else {
            return ControlFlow::Continue(());
        };
        // Writing to memory does not fail, and neither do these values.
        let _ = json::line(&line, self.out.text());
        self.out.added();
        ControlFlow::Continue(())
    }
}

/// Remembered symbols; a power of two. Two addresses that share a slot replace
/// each other.
const SLOTS: usize = 1 << 12;

/// The symbols of starts of runs, looked up once while they stay in their slot.
struct Symbols<'a> {
    names: &'a Names,
    slots: Vec<((SpaceId, u64), String)>,
}

impl<'a> Symbols<'a> {
    fn new(names: &'a Names) -> Symbols<'a> {
        // No instruction is at an odd address.
        let empty = ((SpaceId::FIRST, u64::MAX), String::new());
        Symbols {
            names,
            slots: vec![empty; SLOTS],
        }
    }

    /// `main+0x10`, `main`, or nothing.
    #[inline]
    fn of(&mut self, (image, space): (&Image, SpaceId), address: u64) -> &str {
        let key = (address >> 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some((start, symbol)) = self.slots.get_mut((key >> 52) as usize) else {
            return "";
        };
        if *start != (space, address) {
            *start = (space, address);
            symbol.clear();
            // Writing to memory does not fail.
            let _ = write!(symbol, "{}", self.names.within(image, space).label(address));
        }
        symbol
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
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
        last: Hex,
        #[serde(skip_serializing_if = "str::is_empty")]
        symbol: &'a str,
    },
    Trap {
        hart: u32,
        #[serde(flatten)]
        trap: Trapped,
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
        #[serde(skip_serializing_if = "Option::is_none")]
        insn: Option<u32>,
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
    #[serde(rename = "data-gap")]
    DataGap {
        hart: u32,
        code: &'static str,
        text: &'static str,
        value: Hex,
        offset: u64,
    },
    Warning {
        hart: u32,
        code: &'static str,
        text: &'static str,
        value: Hex,
        offset: u64,
        loss: bool,
    },
    Unconfirmed {
        hart: u32,
        insns: u64,
        address: Hex,
    },
}

/// Where the hart went after a run; unknown if the run was cut after a branch
/// or jump.
fn next((image, space): (&Image, SpaceId), run: &Run) -> Option<Hex> {
    let is_straight = || {
        let last = image.fetch(space, run.source());
        last.is_none_or(|insn| {
            let flow = Flow::of_retired(insn.bits, insn.isa);
            matches!(flow, Flow::Seq | Flow::Const { .. } | Flow::Trap)
        })
    };
    (run.exit != Exit::Stop || is_straight()).then_some(Hex(run.next))
}

#[inline]
fn line<'s>(
    code: (&Image, SpaceId),
    symbols: Option<&'s mut Symbols<'_>>,
    hart: u32,
    event: &Event,
) -> Option<Line<'s>> {
    Some(match event {
        // It concerns those who look at the code.
        Event::Code(_) => return None,
        Event::Run(run) => Line::Run {
            hart,
            start: Hex(run.start),
            end: Hex(run.end),
            insns: run.insns,
            exit: words::exit(run.exit),
            next: next(code, run),
            last: Hex(run.source()),
            symbol: symbols.map_or("", |symbols| symbols.of(code, run.start)),
        },
        Event::Trap(trap) => Line::Trap {
            hart,
            trap: Trapped::new(trap),
        },
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
            access: Accessed::of(data),
        },
        Event::Mark(what) => {
            let (mark, code) = words::mark(*what);
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
        Event::DataGap(gap) => Line::DataGap {
            hart,
            code: gap.reason.code,
            text: gap.reason.text,
            value: Hex(gap.reason.value),
            offset: gap.at,
        },
        Event::Warning(warning) => Line::Warning {
            hart,
            code: warning.reason.code,
            text: warning.reason.text,
            value: Hex(warning.reason.value),
            offset: warning.at,
            loss: warning.is_loss,
        },
        Event::Unconfirmed(unconfirmed) => Line::Unconfirmed {
            hart,
            insns: unconfirmed.insns,
            address: Hex(unconfirmed.address),
        },
    })
}
