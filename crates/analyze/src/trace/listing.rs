//! One instruction per line, with its disassembly and symbol.

use super::insn_lines::{DEEPEST, InsnLines, Palette, SourceLine};
use super::window::{Item, Show, Skip};
use super::{Gathered, RunText, Window};
use crate::causes::cause_name;
use crate::context_names::ContextNames;
use crate::follow::Follower;
use crate::functions::Functions;
use crate::places::Places;
use crate::spaces::Spaces;
use crate::stacks::{Grouping, Odd, OddJump, StackSink};
use hartrace_flow::{
    AccessKind, Cause, Consumer, DataAccess, DataGap, Event, Gap, HartId, Image, Mark, Ownership,
    PerHart, Run, Touch, Trap, Unconfirmed, Warning,
};
use hartrace_isa::csr;
use std::fmt;
use std::io::Write as _;
use std::ops::ControlFlow;

/// How a listing looks.
#[derive(Clone, Copy, Default)]
pub struct ListingStyle<'a> {
    /// Each line has the number of its hart.
    pub harts: bool,
    /// With escape sequences for a terminal.
    pub colour: bool,
    /// Source lines between the instructions: their text by file and number.
    pub source: Option<SourceLine<'a>>,
}

/// Lists what was executed, as text: one instruction per line, indented by calls, and
/// lines that begin with `--` for everything else. Data accesses stand after their
/// instruction where all of a run is shown without source.
pub struct TraceListing<'a> {
    follower: Follower<'a, Odds>,
    window: Option<Window<'a>>,
    page: Page<'a>,
}

/// The odd jumps that were reported since the last look.
#[derive(Default)]
struct Odds(Vec<OddJump>);

impl StackSink for Odds {
    fn odd(&mut self, _: HartId, jump: &OddJump) {
        if jump.doubtful {
            self.0.push(*jump);
        }
    }
}

impl<'a> TraceListing<'a> {
    /// A listing of all harts, as they come.
    pub fn new(
        image: &'a Image,
        (places, functions): (&'a Places<'a>, Functions),
        style: ListingStyle<'a>,
        flush: impl FnMut(&mut Vec<u8>) + Send + 'a,
    ) -> TraceListing<'a> {
        let lines = InsnLines::new(places, style.colour, style.source);
        let contexts = functions.contexts().clone();
        TraceListing {
            follower: Follower::new(image, functions, Grouping::default(), Odds::default()),
            window: None,
            page: Page {
                palette: lines.palette,
                lines: RunText::new(image, lines),
                image,
                spaces: Spaces::default(),
                contexts,
                harts: style.harts,
                source: PerHart::default(),
                last: None,
                whole: style.source.is_none(),
                out: Gathered::new(flush),
            },
        }
    }

    /// Lists only a part.
    #[must_use]
    pub fn within(mut self, window: Window<'a>) -> TraceListing<'a> {
        self.window = Some(window);
        self.page.whole = false;
        self
    }

    /// The part that is listed, if it is not everything.
    #[must_use]
    pub fn window(&self) -> Option<&Window<'a>> {
        self.window.as_ref()
    }

    /// The text.
    pub fn out(&mut self) -> &mut Gathered<'a> {
        &mut self.page.out
    }

    fn item(&mut self, hart: HartId, item: &Item, depth: u8) {
        match &mut self.window {
            None => self.page.show(hart, item, depth),
            Some(window) => window.take(hart, item, depth, &mut self.page),
        }
    }

    /// Lists the doubtful jumps that have come up.
    #[cold]
    fn doubts(&mut self, hart: HartId, depth: u8) {
        for jump in std::mem::take(&mut self.follower.sink().0) {
            self.item(hart, &Item::Doubt(jump), depth);
        }
    }
}

impl Consumer for TraceListing<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.window.as_ref().is_some_and(Window::is_done) {
            return ControlFlow::Break(());
        }
        let before = self.follower.depth(hart);
        self.follower.event(hart, event);
        let depth = before.saturating_sub(1).min(usize::from(DEEPEST)) as u8;
        // A jump that leads here is judged when it arrives, any other when it is made.
        let arrived = match (self.follower.sink().0.first(), event) {
            (Some(jump), Event::Run(run)) => jump.from != run.source(),
            _ => false,
        };
        if arrived {
            self.doubts(hart, depth);
        }
        self.item(hart, &Item::Event(*event), depth);
        if !self.follower.sink().0.is_empty() {
            self.doubts(hart, depth);
        }
        ControlFlow::Continue(())
    }
}

/// The text, as it is written.
struct Page<'a> {
    image: &'a Image,
    lines: RunText<'a, InsnLines<'a>>,
    palette: Palette,
    spaces: Spaces,
    contexts: ContextNames,
    /// There may be several harts.
    harts: bool,
    /// The source line that each hart is at.
    source: PerHart<u32>,
    /// Where the text of the last run starts and the address of the run, if nothing came
    /// after it.
    last: Option<(usize, u64)>,
    /// Each run is shown whole, a line for each instruction and no others.
    whole: bool,
    out: Gathered<'a>,
}

impl Page<'_> {
    #[inline]
    fn run(&mut self, hart: HartId, run: &Run, depth: u8) {
        let space = self.spaces.of(hart);
        let line = self.source.of(hart);
        // The text of a run stays until the next: an access may be added to it.
        self.out.added();
        self.last = self.whole.then_some((self.out.text().len(), run.start));
        if !self.harts {
            self.lines.append(space, run, depth, line, self.out.text());
            return;
        }
        // The same text with a number before each line.
        let mut lines = Vec::new();
        self.lines.append(space, run, depth, line, &mut lines);
        for line in lines.split_inclusive(|&b| b == b'\n') {
            let _ = write!(self.out.text(), "{:<3} ", hart.0);
            self.out.text().extend_from_slice(line);
        }
    }

    /// Adds an access to the line of its instruction.
    fn access(&mut self, hart: HartId, data: &DataAccess) {
        let at = (self.last.zip(data.insn)).and_then(|((start, pc), insn)| {
            let lines = self.out.text().get(start..)?;
            let mut ends = lines.iter().enumerate().filter(|(_, b)| **b == b'\n');
            let (end, _) = ends.nth(insn as usize)?;
            let reads = data.access.kind.is_csr() && self.only_reads(hart, pc, insn);
            Some((start + end, reads))
        });
        match at {
            Some((at, reads)) => {
                let text = format!("  ; {}", access(data, reads));
                self.out.text().splice(at..at, text.into_bytes());
            }
            None => self.say(Some(hart), self.palette.event, access(data, false)),
        }
    }

    /// Whether an instruction of the run at `pc` is one of those that read a CSR and set
    /// or clear no bits of it: their `rs1`, or the immediate in its place, is 0.
    fn only_reads(&self, hart: HartId, pc: u64, insn: u32) -> bool {
        let space = self.spaces.of(hart);
        let mut insns = self.image.insns(space, pc, u64::from(insn) + 1);
        insns.nth(insn as usize).is_some_and(|(_, fetched)| {
            let touch = Touch::of(fetched.bits, fetched.isa);
            let sets = matches!(
                touch,
                Touch::Accesses {
                    kind: AccessKind::CsrReadSet | AccessKind::CsrReadClear,
                    ..
                }
            );
            sets && fetched.bits >> 15 & 31 == 0
        })
    }

    fn say(&mut self, hart: Option<HartId>, colour: &str, what: impl fmt::Display) {
        let plain = self.palette.plain;
        self.last = None;
        // Writing to memory does not fail.
        let _ = match hart.filter(|_| self.harts) {
            Some(hart) => writeln!(self.out.text(), "{:<3} {colour}-- {what}{plain}", hart.0),
            None => writeln!(self.out.text(), "{colour}-- {what}{plain}"),
        };
        self.out.added();
    }

    fn place(&self, hart: HartId, address: u64) -> String {
        let places = self.lines.render.places;
        let names = places.names().within(self.image, self.spaces.of(hart));
        match names.label(address).to_string().as_str() {
            "" => format!("{address:#x}"),
            name => format!("{address:#x} <{name}>"),
        }
    }

    fn trap(&self, hart: HartId, trap: &Trap) -> String {
        let mut text = cause(trap.cause);
        text += &match trap.epc {
            Some(epc) => format!(" at {}", self.place(hart, epc)),
            None => " at an unknown address".to_owned(),
        };
        if let Some(tval) = trap.tval {
            text += &format!(", value {tval:#x}");
        }
        if let Some(handler) = trap.handler {
            text += &format!(", handler {}", self.place(hart, handler));
        }
        text
    }

    fn doubt(&self, hart: HartId, jump: &OddJump) -> String {
        let what = match jump.odd {
            Odd::Inside => "leads into the middle of a function",
            Odd::NoCase => "leads to no case of its switch",
            _ => "fits no call",
        };
        let to = self.place(hart, jump.to);
        let from = self.place(hart, jump.from);
        let wrong = jump.at - jump.since;
        format!(
            "doubtful: the jump from {from} to {to} {what}; the {wrong} instructions before it \
             may be wrong"
        )
    }

    fn other(&mut self, hart: HartId, event: &Event) {
        let Palette {
            event: bold, alarm, ..
        } = self.palette;
        let (colour, text) = match event {
            Event::Run(_) => return,
            Event::Trap(event) => (bold, self.trap(hart, event)),
            Event::Context(event) => {
                self.spaces.enter(hart, event, self.image);
                (bold, owner(event, &self.contexts))
            }
            Event::Code(space) => return self.spaces.set(hart, *space),
            Event::Time(time) => (bold, format!("time {time}")),
            Event::Access(event) => return self.access(hart, event),
            Event::Mark(event) => (bold, mark(*event)),
            Event::Gap(event) => (alarm, gap(event)),
            Event::DataGap(event) => (alarm, data_gap(event)),
            Event::Warning(event) => (alarm, warning(event)),
            Event::Unconfirmed(event) => (alarm, unconfirmed(event)),
        };
        self.say(Some(hart), colour, text);
    }
}

impl Show for Page<'_> {
    fn skip(&mut self, to: Skip) {
        for (_, line) in self.source.iter_mut() {
            *line = 0;
        }
        let time = to
            .time
            .map_or(String::new(), |time| format!(", after time {time}"));
        let text = format!("instruction {}{time}", to.index);
        self.say(None, self.palette.event, text);
    }

    #[inline]
    fn show(&mut self, hart: HartId, item: &Item, depth: u8) {
        match item {
            Item::Event(Event::Run(run)) => self.run(hart, run, depth),
            Item::Event(event) => self.other(hart, event),
            Item::Doubt(jump) => {
                let text = self.doubt(hart, jump);
                self.say(Some(hart), self.palette.alarm, text);
            }
        }
    }
}

fn cause(cause: Cause) -> String {
    match cause {
        Cause::Exception(Some(code)) => match hartrace_flow::exception_name(code) {
            Some(name) => format!("exception {code}, {name},"),
            None => format!("exception {code}"),
        },
        Cause::Interrupt(Some(code)) => match hartrace_flow::interrupt_name(code) {
            Some(name) => format!("interrupt {code}, {name},"),
            None => format!("interrupt {code}"),
        },
        cause => cause_name(cause),
    }
}

fn mark(mark: Mark) -> String {
    match mark {
        Mark::On => "tracing starts".to_owned(),
        Mark::Off => "tracing ends".to_owned(),
        Mark::Notify => "trigger".to_owned(),
        Mark::External(input) => format!("external trigger {input}"),
        Mark::Halted => "halted".to_owned(),
        Mark::Resumed => "resumed".to_owned(),
        Mark::Reset => "reset".to_owned(),
        Mark::PowerDown => "power down".to_owned(),
        Mark::PowerUp => "power up".to_owned(),
        Mark::Sync(code) => format!("synchronised, reason {code}"),
        Mark::Vendor(code) => format!("vendor message {code}"),
    }
}

fn owner(owner: &Ownership, names: &ContextNames) -> String {
    let mut text = "now".to_owned();
    if let Some(mode) = owner.mode {
        text += &format!(" mode {}", mode.name());
    }
    if let Some(context) = owner.context {
        text += &format!(" {}", names.label(context));
    }
    text
}

fn gap(gap: &Gap) -> String {
    let mut text = format!("gap at byte {:#x}: {}", gap.at, gap.reason);
    if gap.unconfirmed > 0 {
        text += &format!(
            "; the last {} instructions are unconfirmed",
            gap.unconfirmed
        );
    }
    text
}

fn data_gap(gap: &DataGap) -> String {
    format!("data gap at byte {:#x}: {}", gap.at, gap.reason)
}

fn warning(warning: &Warning) -> String {
    format!("warning at byte {:#x}: {}", warning.at, warning.reason)
}

fn unconfirmed(unconfirmed: &Unconfirmed) -> String {
    let Unconfirmed { insns, address } = unconfirmed;
    let (before, are) = match insns {
        1 => ("the instruction".to_owned(), "is"),
        _ => (format!("the {insns} instructions"), "are"),
    };
    format!(
        "unconfirmed: {before} before this {are} decoded with code that may have changed, at \
         {address:#x}"
    )
}

/// `load 4 0x80001000 = 0x2a`, `add 4 0x80001000 = 0x2b, was 0x2a`,
/// `write mstatus = 0x8, was 0x0`; `read mstatus = 0x8` if the instruction only reads.
fn access(data: &DataAccess, reads: bool) -> String {
    let access = &data.access;
    let what = match access.kind {
        AccessKind::CsrReadSet | AccessKind::CsrReadClear if reads => "read",
        AccessKind::Load => "load",
        AccessKind::Store => "store",
        AccessKind::CsrReadWrite => "write",
        AccessKind::CsrReadSet => "set",
        AccessKind::CsrReadClear => "clear",
        AccessKind::AtomicSwap => "swap",
        AccessKind::AtomicAdd => "add",
        AccessKind::AtomicAnd => "and",
        AccessKind::AtomicOr => "or",
        AccessKind::AtomicXor => "xor",
        AccessKind::AtomicMax => "max",
        AccessKind::AtomicMin => "min",
        AccessKind::ConditionalStoreFailure => "failed store",
        AccessKind::CompareSwapFailure => "failed swap",
    };
    let mut text = what.to_owned();
    if access.kind.is_csr() {
        text += &match csr::name(access.addr as u16) {
            Some(name) => format!(" {name}"),
            None => format!(" csr {:#x}", access.addr),
        };
    } else {
        text += &format!(" {}", 1u32.checked_shl(access.size.into()).unwrap_or(0));
        if data.has_address {
            text += &format!(" {:#x}", access.addr);
        }
    }
    if let Some(value) = access.data {
        text += &format!(" = {value:#x}");
    }
    if let Some(value) = access.operand.filter(|_| !reads) {
        text += &format!(", was {value:#x}");
    }
    text
}
