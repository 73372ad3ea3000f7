//! Pc lists: the simplest log of a simulator.

mod write;

use alloc::boxed::Box;

use hartrace_isa::Isa;

pub use write::PcWriter;

use super::lines::{Line, Lines, split};
use super::pieces::{self, LINE, Pieces};
use super::site::{Exits, Site, Sites, is_semihosting};
use super::text::{HighHalf, hex8, prefixed_hex};
use super::{LineError, LineErrorKind, unreported};
use hartrace_flow::{
    Cause, Context, Effects, HartId, Image, Insn, Mode, Observer, Signal, SpaceId, Step, Trap,
    TrapStep,
};

/// What an ecall or ebreak in a list of pcs means. It does not retire, but
/// some simulators list it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListedTraps {
    /// It trapped: a trap at its own pc and no retired instruction.
    #[default]
    Trapped,
    /// The source counts it as retired, whatever follows.
    Retired,
}

/// Reads one hexadecimal pc per line, with or without `0x`, 1 to 16 digits of
/// either case. Blank lines and what follows a `#` are ignored.
///
/// The image supplies the instructions. A pc that cannot follow the one before
/// shows a trap of unknown cause after it: the instruction before went where
/// its own bits send it, which is the trap's `epc`. A conditional branch that
/// was followed by neither of its successors counts as not taken, since its
/// outcome is unknown. A trap right after an indirect jump cannot be distinguished from
/// the jump.
///
/// The `ebreak` of a semihosting call halts the hart for a debugger, which resumes
/// it after the `ebreak`: that is no trap.
///
/// Mode and context are not in the list: [`Mode::M`] and context 0 stand for
/// them. An ecall or ebreak at the very end is not given, for want of a
/// handler.
///
/// ```
/// # use hartrace_flow::*;
/// # use hartrace_logs::PcReader;
/// # let mut image = Image::new();
/// # image.add_raw(SpaceId::FIRST, 0x8000_0000, &[1, 0, 1, 0], hartrace_isa::Isa::RV64GC);
/// # struct Print;
/// # impl Observer for Print {
/// #     const WANTS: Wants = Wants::STEPS;
/// #     fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
/// # }
/// let mut reader = PcReader::new(&image);
/// let mut damaged = |error: hartrace_logs::LineError| { error.line; };
/// reader.feed(b"80000000 # start\n0x80000002\n", &mut Print, &mut damaged);
/// reader.finish(&mut Print, &mut damaged);
/// ```
#[derive(Clone, Debug)]
pub struct PcReader<'a> {
    lines: Lines,
    path: Path<'a>,
}

impl<'a> PcReader<'a> {
    /// A reader of pcs in the image's first space, for hart 0.
    #[must_use]
    pub fn new(image: &'a Image) -> PcReader<'a> {
        PcReader::of_hart(image, SpaceId::FIRST, HartId(0), ListedTraps::Trapped)
    }

    /// A reader for another space or hart, or another kind of list.
    #[must_use]
    pub fn of_hart(
        image: &'a Image,
        space: SpaceId,
        hart: HartId,
        traps: ListedTraps,
    ) -> PcReader<'a> {
        PcReader {
            lines: Lines::default(),
            path: Path {
                sites: Sites::new(image, space),
                last: None,
                hart,
                traps,
                effects: unreported(),
                pieces: None,
            },
        }
    }

    /// Code of this instruction set is given many instructions at once
    /// ([`Observer::straights`]) to observers that want no effects. It should be the
    /// one by which the observer classifies instructions.
    #[must_use]
    pub fn in_pieces(mut self, isa: Isa) -> PcReader<'a> {
        let Sites { image, space, .. } = self.path.sites;
        self.path.pieces = Some(Box::new(Pieces::new(image, space, isa)));
        self
    }

    /// Reads on.
    pub fn feed<O: Observer>(
        &mut self,
        chunk: &[u8],
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let PcReader { lines, path } = self;
        scan(lines, chunk, &mut Walked { path, out, damaged });
        path.hand_over(out);
    }

    /// The list has ended: gives the last step and ends the observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O, damaged: &mut impl FnMut(LineError)) {
        let PcReader { lines, path } = self;
        let mut walked = Walked { path, out, damaged };
        lines.finish(|n, line| line_of(n, line, &mut walked));
        path.flush(out);
        out.finish();
    }
}

/// Reads a list of pcs without its program: the bare numbers, for those who
/// count or compare.
///
/// ```
/// # use hartrace_logs::PcLines;
/// let (mut lines, mut pcs) = (PcLines::default(), Vec::new());
/// lines.feed(b"80000000 # start\n0x80000002\n", &mut |pc| pcs.push(pc), &mut |_| {});
/// lines.finish(&mut |pc| pcs.push(pc), &mut |_| {});
/// assert_eq!(pcs, [0x8000_0000, 0x8000_0002]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PcLines {
    lines: Lines,
}

impl PcLines {
    /// Reads on.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        pc: &mut impl FnMut(u64),
        damaged: &mut impl FnMut(LineError),
    ) {
        scan(&mut self.lines, chunk, &mut Bare { pc, damaged });
    }

    /// The list has ended.
    pub fn finish(&mut self, pc: &mut impl FnMut(u64), damaged: &mut impl FnMut(LineError)) {
        let mut bare = Bare { pc, damaged };
        self.lines.finish(|n, line| line_of(n, line, &mut bare));
    }
}

/// Takes what the lines of a list hold.
trait Pcs {
    /// A pc at byte `at` of its line.
    fn pc(&mut self, number: u64, line: &[u8], at: usize, pc: u64);

    /// Takes lines of sixteen digits at the start of the text, as far as they spell what it
    /// expects. Gives their number.
    #[inline]
    fn expected(&mut self, _: &[u8]) -> usize {
        0
    }

    fn damaged(&mut self, error: LineError);
}

struct Bare<'c, P, D> {
    pc: &'c mut P,
    damaged: &'c mut D,
}

impl<P: FnMut(u64), D: FnMut(LineError)> Pcs for Bare<'_, P, D> {
    #[inline]
    fn pc(&mut self, _: u64, _: &[u8], _: usize, pc: u64) {
        (self.pc)(pc);
    }

    fn damaged(&mut self, error: LineError) {
        (self.damaged)(error);
    }
}

/// The lines of a chunk.
#[inline]
fn scan(lines: &mut Lines, chunk: &[u8], out: &mut impl Pcs) {
    let mut rest = lines.begin(chunk, |n, line| line_of(n, line, out));
    let mut high = HighHalf::default();
    loop {
        let expected = out.expected(rest);
        lines.pass(expected);
        rest = rest.get(expected * LINE..).unwrap_or_default();
        // The usual lines: sixteen digits, or eight on RV32.
        if let Some((&[digits @ .., b'\n'], behind)) = rest.split_first_chunk::<LINE>()
            && let Some(pc) = high.hex16(&digits)
        {
            let number = lines.count();
            rest = behind;
            out.pc(number, &digits, 0, pc);
            continue;
        }
        if let Some((&[digits @ .., b'\n'], behind)) = rest.split_first_chunk::<9>()
            && let Some(pc) = hex8(digits)
        {
            let number = lines.count();
            rest = behind;
            out.pc(number, &digits, 0, pc.into());
            continue;
        }
        let Some((raw, behind)) = split(rest) else {
            break;
        };
        rest = behind;
        lines.one(raw, |n, line| line_of(n, line, out));
    }
    lines.keep(rest, |n, line| line_of(n, line, out));
}

/// A line of any other form.
fn line_of(number: u64, line: Line<'_>, out: &mut impl Pcs) {
    let line = match line {
        Ok(line) => line,
        Err(error) => return out.damaged(error),
    };
    let text = line.split(|&b| b == b'#').next().unwrap_or_default();
    let at = text.len() - text.trim_ascii_start().len();
    let text = text.trim_ascii();
    if text.is_empty() {
        return;
    }
    match prefixed_hex(text) {
        Some(pc) => out.pc(number, line, at, pc),
        None => {
            let column = at + good_digits(text);
            out.damaged(LineError::new(number, line, column, LineErrorKind::Hex));
        }
    }
}

/// Pcs on their way through the program.
struct Walked<'c, 'a, O, D> {
    path: &'c mut Path<'a>,
    out: &'c mut O,
    damaged: &'c mut D,
}

impl<O: Observer, D: FnMut(LineError)> Pcs for Walked<'_, '_, O, D> {
    #[inline]
    fn pc(&mut self, number: u64, line: &[u8], at: usize, pc: u64) {
        if !self.path.pc(pc, self.out) {
            let kind = LineErrorKind::MissingCode(pc);
            self.damaged(LineError::new(number, line, at, kind));
        }
    }

    #[inline]
    fn expected(&mut self, text: &[u8]) -> usize {
        match &mut self.path.pieces {
            Some(pieces) if pieces::wanted::<O>() => pieces.grow_by_text(text),
            _ => 0,
        }
    }

    #[cold]
    fn damaged(&mut self, error: LineError) {
        (self.damaged)(error);
        self.path.lost(self.out);
    }
}

/// The way through the program so far.
#[derive(Clone, Debug)]
struct Path<'a> {
    sites: Sites<'a>,
    /// The last pc, whose successor is not known yet.
    last: Option<Site>,
    hart: HartId,
    traps: ListedTraps,
    effects: Effects,
    /// For observers that get many instructions at once. The last pc is in an open
    /// piece or in `last`.
    pieces: Option<Box<Pieces<'a>>>,
}

impl Path<'_> {
    /// The next pc; false where the image has no code.
    #[inline]
    fn pc<O: Observer>(&mut self, pc: u64, out: &mut O) -> bool {
        if pieces::wanted::<O>()
            && let Some(pieces) = &mut self.pieces
        {
            return pieces.grow(pc) || self.turn(pc, out);
        }
        if let Some(last) = self.last {
            self.leave(&last, pc, out);
        }
        self.last = self.sites.get(pc);
        self.last.is_some()
    }

    /// The next pc, which does not continue the open piece.
    #[inline(never)]
    fn turn<O: Observer>(&mut self, pc: u64, out: &mut O) -> bool {
        let open = self.pieces.as_ref().and_then(|pieces| pieces.last());
        if let Some(last) = open.copied().or(self.last.take()) {
            self.leave(&last, pc, out);
        }
        let Some(pieces) = &mut self.pieces else {
            return false;
        };
        if pieces.start(pc, self.hart, out) {
            return true;
        }
        self.last = self.sites.get(pc);
        self.last.is_some()
    }

    /// From `last`, which has not been given, to `next`.
    #[inline]
    fn leave<O: Observer>(&mut self, last: &Site, next: u64, out: &mut O) {
        match last.allows(next) {
            true => self.retire(last, next, out),
            false => self.depart(last, next, out),
        }
    }

    /// `site` retired: the last instruction of the open piece, or one that is in
    /// none.
    #[inline]
    fn retire<O: Observer>(&mut self, site: &Site, next: u64, out: &mut O) {
        if pieces::wanted::<O>()
            && let Some(pieces) = &mut self.pieces
        {
            if pieces.last().is_some() {
                return pieces.end(next, self.hart, out);
            }
            pieces.hand_over(self.hart, out);
        }
        let step = Step::Insn(Insn {
            pc: site.pc,
            next,
            time: 0,
            context: Context(0),
            bits: site.bits,
            mode: Mode::M,
        });
        out.step(self.hart, &step, &self.effects);
    }

    /// Anything but an instruction that retired.
    fn event<O: Observer>(&mut self, step: &Step, out: &mut O) {
        self.hand_over(out);
        out.step(self.hart, step, &self.effects);
    }

    /// Hands over the pieces but the open one.
    fn hand_over<O: Observer>(&mut self, out: &mut O) {
        if let Some(pieces) = &mut self.pieces {
            pieces.hand_over(self.hart, out);
        }
    }

    /// From `last` to an address that it cannot send the hart to.
    #[cold]
    fn depart<O: Observer>(&mut self, last: &Site, next: u64, out: &mut O) {
        if last.exits != Exits::Trap {
            self.retire(last, last.natural, out);
            if is_semihosting(last.bits, last.natural, next) {
                for signal in [Signal::Halted, Signal::Resumed] {
                    self.event(&Step::Signal(signal), out);
                }
                return;
            }
            return self.trap(last.natural, Some(next), Cause::Unknown, None, out);
        }
        match self.traps {
            ListedTraps::Retired => self.retire(last, next, out),
            ListedTraps::Trapped => self.trap_itself(last, Some(next), out),
        }
    }

    /// An instruction whose purpose is a trap.
    fn trap_itself<O: Observer>(&mut self, site: &Site, handler: Option<u64>, out: &mut O) {
        let cause = Cause::of_instruction(site.bits, None);
        self.trap(site.pc, handler, cause, Some(site.bits), out);
    }

    fn trap<O: Observer>(
        &mut self,
        epc: u64,
        handler: Option<u64>,
        cause: Cause,
        bits: Option<u32>,
        out: &mut O,
    ) {
        let step = Step::Trap(TrapStep {
            trap: Trap {
                epc: Some(epc),
                handler,
                cause,
                tval: None,
                pending: None,
            },
            bits,
            mode: Mode::M,
            context: Context(0),
            time: 0,
        });
        self.event(&step, out);
    }

    #[cold]
    fn lost<O: Observer>(&mut self, out: &mut O) {
        self.flush(out);
        self.event(&Step::Signal(Signal::Lost), out);
    }

    /// Gives the last instruction although nothing shows where it went.
    fn flush<O: Observer>(&mut self, out: &mut O) {
        let open = self.pieces.as_ref().and_then(|pieces| pieces.last());
        if let Some(last) = open.copied().or(self.last.take()) {
            match (last.exits, self.traps) {
                (Exits::Trap, ListedTraps::Trapped) => self.trap_itself(&last, None, out),
                _ => self.retire(&last, last.natural, out),
            }
        }
        self.hand_over(out);
    }
}

/// How much of a refused number is all right: the fault is after it.
fn good_digits(text: &[u8]) -> usize {
    let prefix = if text.starts_with(b"0x") { 2 } else { 0 };
    let digits = text.get(prefix..).unwrap_or_default();
    let good = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    prefix + good.min(16)
}
