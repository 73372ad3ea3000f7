//! Spike's log: `-l`, `--log-commits`, or both. And the logs that cores write after its
//! example: CVA6, Rocket, BOOM and Dromajo.

use alloc::boxed::Box;

use hartrace_isa::{Isa, Xlen};

use self::effects::Tail;
use self::line::{Cursor, Form};
use self::straight::Straightaway;
use super::entry::{Entry, EntryOptions, EntrySteps, Ground, Hart, MemoryOp, Out, parts};
use super::lines::{Line, Lines, split};
use super::pieces;
use super::text::HighHalf;
use super::{LineError, LineErrorKind};
use hartrace_flow::{Cause, HartId, Image, Mode, Observer};

mod effects;
mod line;
mod straight;
mod write;

pub use write::SpikeWriter;
#[cfg(test)]
mod tests;

/// How to read a log of Spike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpikeOptions {
    /// The instruction set; from the image, or GC of the width of the
    /// addresses, when it is not given.
    pub isa: Option<Isa>,
    /// More harts than this are a fault in the log.
    pub max_harts: usize,
    /// A jump that no instruction makes and no line explains is where the log
    /// says the instruction went, not a trap, if the log records traps (`-l` and
    /// `--log-commits`): for a verifier, who wants to see it.
    pub plain_jumps: bool,
    /// A repeat count above this ("Executed N times") is a fault in the log.
    pub max_repeat: u64,
}

impl Default for SpikeOptions {
    fn default() -> Self {
        SpikeOptions {
            isa: None,
            max_harts: 1024,
            plain_jumps: false,
            max_repeat: 1 << 24,
        }
    }
}

/// Reads what Spike writes with `-l`, with `--log-commits` or with both; which
/// of them is found out from the lines. Steps of a hart come out one line
/// late, since only the next line shows where an instruction went.
///
/// * Both: everything is known but the CSRs that traps write.
/// * `--log-commits` alone: a trap is a jump that the instruction before
///   cannot make, or a rise in privilege. Its cause is unknown, unless an
///   image shows that its `epc` is an ecall or ebreak, or the handler reads
///   `mcause` or `scause` within 256 steps (for observers that want no effects,
///   since steps have to wait for that); after an indirect jump
///   it cannot be distinguished from the jump.
/// * `-l` alone: no effects and no modes; [`Mode::M`](hartrace_flow::Mode::M) stands for them. Lines
///   that Spike left out ("Executed N times") are given again.
///
/// Effects of a trap and of `-l` alone are marked incomplete. Effects that no observer
/// wants are not read, so damage in them is not seen. The `ebreak` of a semihosting
/// call halts the hart for a debugger, which resumes it after the `ebreak`: that is
/// no trap. Only hartrace's own logs record what the debugger changed. A failed
/// store-conditional has its address from the log's register writes. The step
/// before a damaged line goes where its own bits send it; a trap whose handler
/// was not seen is not given. Damage in a line that names no hart counts
/// against all harts.
///
/// The cores' logs have the same commits, without `core`: CVA6, with its exceptions;
/// Rocket, where a register that is written late is an effect of its instruction only
/// if no other instruction retires in between; BOOM; Dromajo, with hart numbers and
/// exceptions. They record no CSRs. Values that they store are cut to the size of the
/// instruction; of an atomic operation CVA6 records the operand, so what it stores is
/// unknown.
///
/// No image is needed: the instructions are in the log. With one, a commit
/// whose instruction differs from the image is reported
/// ([`LineErrorKind::CodeDiffers`]) and given as the log has it.
#[derive(Clone, Debug)]
pub struct SpikeReader<'a> {
    lines: Lines,
    log: Log<'a>,
}

impl<'a> SpikeReader<'a> {
    /// A reader, with the program's image if there is one.
    #[must_use]
    pub fn new(options: SpikeOptions, image: Option<&'a Image>) -> SpikeReader<'a> {
        let entries = EntryOptions {
            isa: options.isa,
            max_harts: options.max_harts,
            plain_jumps: options.plain_jumps,
        };
        let mut steps = EntrySteps::new(entries, image);
        steps.commits = false;
        steps.records_traps(false);
        SpikeReader {
            lines: Lines::default(),
            log: Log {
                options,
                steps,
                entry: Entry::default(),
                high: HighHalf::default(),
                listing: false,
                traps: false,
                handler: None,
                straight: None,
                in_pieces: false,
            },
        }
    }

    /// Code of this instruction set is given many instructions at once
    /// ([`Observer::straights`]) to observers that want no effects, if there is an image. It
    /// should be the one by which the observer classifies instructions.
    #[must_use]
    pub fn in_pieces(mut self, isa: Isa) -> SpikeReader<'a> {
        let image = self.log.steps.image();
        self.log.straight = image.map(|image| Box::new(Straightaway::new(image, isa)));
        self
    }

    /// Whether there were lines of `--log-commits`. Without them the modes and
    /// the effects of the steps say nothing.
    #[must_use]
    pub fn commits(&self) -> bool {
        self.log.steps.commits
    }

    /// Whether there were lines that record traps, or that come with them. Without
    /// them, traps are guessed from where the hart went.
    #[must_use]
    pub fn has_traps(&self) -> bool {
        self.log.listing || self.log.traps
    }

    /// Reads on.
    pub fn feed<O: Observer>(
        &mut self,
        chunk: &[u8],
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let parts = parts::<O>();
        let out = &mut Out { to: out, parts };
        self.log.set_in_pieces(pieces::wanted::<O>(), out);
        self.read(chunk, out, damaged);
    }

    /// The log has ended: gives the last step of each hart and ends the
    /// observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O, damaged: &mut impl FnMut(LineError)) {
        let parts = parts::<O>();
        self.end(&mut Out { to: out, parts }, damaged);
        out.finish();
    }

    fn read(&mut self, chunk: &[u8], out: &mut Out<'_, '_>, damaged: &mut dyn FnMut(LineError)) {
        let SpikeReader { lines, log } = self;
        let mut rest = lines.begin(chunk, |n, line| log.line(n, line, out, damaged));
        loop {
            if log.in_pieces {
                let (number, bytes) = log.expected(rest);
                lines.pass(number);
                rest = rest.get(bytes..).unwrap_or_default();
            }
            let Some((raw, behind)) = split(rest) else {
                break;
            };
            rest = behind;
            lines.one(raw, |n, line| log.line(n, line, out, damaged));
        }
        lines.keep(rest, |n, line| log.line(n, line, out, damaged));
        if let Some(straight) = &mut log.straight {
            straight.hand_over(out);
        }
    }

    fn end(&mut self, out: &mut Out<'_, '_>, damaged: &mut dyn FnMut(LineError)) {
        let SpikeReader { lines, log } = self;
        lines.finish(|n, line| log.line(n, line, out, damaged));
        log.end_pieces(out);
        log.steps.end(out);
    }
}

/// All but the cutting into lines.
#[derive(Clone, Debug)]
struct Log<'a> {
    options: SpikeOptions,
    steps: EntrySteps<'a>,
    /// The line that is read.
    entry: Entry,
    /// The first half of the last pc.
    high: HighHalf,
    /// An instruction line was seen: the log records traps.
    listing: bool,
    /// A line recorded a trap.
    traps: bool,
    /// The next commit of this instruction is the first of a handler.
    handler: Option<u64>,
    /// For observers that get many instructions at once.
    straight: Option<Box<Straightaway<'a>>>,
    /// The observer does, and there is a program.
    in_pieces: bool,
}

/// A fault in a line: its kind and the byte.
type Fault = (LineErrorKind, usize);

/// A commit line without its effects.
struct Commit {
    mode: Mode,
    pc: u64,
    bits: u32,
    narrow: bool,
    bare: bool,
}

impl Commit {
    /// It has no effects that matter to the path of the hart.
    const fn is_plain(&self) -> bool {
        !self.bare && !self.is_system()
    }

    const fn is_system(&self) -> bool {
        self.bits & 0x7f == 0x73
    }
}

impl<'a> Log<'a> {
    #[inline]
    fn line(
        &mut self,
        number: u64,
        line: Line<'_>,
        out: &mut Out<'_, '_>,
        damaged: &mut dyn FnMut(LineError),
    ) {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                damaged(error);
                self.end_pieces(out);
                return self.steps.lose(None, out);
            }
        };
        if line.is_empty() {
            return;
        }
        let mut cursor = Cursor::new(line);
        let (id, bare) = match cursor.core() {
            Ok((id, bare)) => (HartId(id), bare),
            Err(kind) => {
                damaged(LineError::new(number, line, cursor.at(), kind));
                self.end_pieces(out);
                return self.steps.lose(None, out);
            }
        };
        if let Err((kind, at)) = self.read(id, bare, &mut cursor, out) {
            damaged(LineError::new(number, line, at, kind));
            if !matches!(kind, LineErrorKind::CodeDiffers(_)) {
                self.end_pieces(out);
                self.steps.lose(Some(id), out);
            }
        }
    }

    #[inline]
    fn read(
        &mut self,
        id: HartId,
        bare: bool,
        cursor: &mut Cursor<'_>,
        out: &mut Out<'_, '_>,
    ) -> Result<(), Fault> {
        let mode = cursor.committed(bare);
        if let Some(mode) = mode.map_err(|kind| (kind, cursor.at()))? {
            let code = cursor.code(&mut self.high);
            let (pc, bits, narrow) = code.map_err(|kind| (kind, cursor.at()))?;
            let commit = Commit {
                mode,
                pc,
                bits,
                narrow,
                bare,
            };
            if self.goes_on(id, &commit, out) {
                return Ok(());
            }
            self.end_pieces(out);
            return self.commit(id, &commit, cursor, out);
        }
        let form = cursor.form(bare).map_err(|kind| (kind, cursor.at()))?;
        // Its commit may go on as the code does.
        if !matches!(form, Form::Listed { .. }) || !self.steps.commits || self.is_elsewhere(id) {
            self.end_pieces(out);
        }
        match form {
            Form::Listed { pc, bits, narrow } => {
                self.listing = true;
                self.update();
                let (hart, mut ground) = self.hart(id, Some(narrow))?;
                if !ground.commits {
                    hart.follow(pc, None, &mut ground, out);
                }
                hart.list(pc, bits);
                Ok(())
            }
            other => self.rare(id, other, cursor, out),
        }
    }

    #[inline]
    fn commit(
        &mut self,
        id: HartId,
        commit: &Commit,
        cursor: &mut Cursor<'_>,
        out: &mut Out<'_, '_>,
    ) -> Result<(), Fault> {
        if !self.steps.commits {
            self.steps.commits = true;
            self.update();
        }
        let Commit { pc, bits, bare, .. } = *commit;
        let entry = &mut self.entry;
        entry.clear();
        (entry.hart, entry.pc, entry.bits) = (id, pc, Some(bits));
        entry.mode = Some(commit.mode);
        entry.xlen = Some(if commit.narrow {
            Xlen::Rv32
        } else {
            Xlen::Rv64
        });
        let handler = self.handler.take_if(|handler| *handler == pc);
        entry.handler = handler.map(|_| Cause::Interrupt(None));
        let mut owed = None;
        if out.parts.any() || bare || commit.is_system() {
            let op = MemoryOp::of(bits, commit.narrow);
            let mut tail = Tail::new(entry, op, bare);
            tail.read(cursor).map_err(|kind| (kind, cursor.at()))?;
            owed = tail.owed;
            self.traps |= self.entry.trap.is_some();
        }
        let taken = self.take(commit, out).map_err(|kind| (kind, 0));
        if owed.is_some() {
            self.hart(id, None)?.0.owe(owed);
        }
        taken
    }

    /// The instruction of a commit, which is in `entry`.
    #[inline]
    fn take(&mut self, commit: &Commit, out: &mut Out<'_, '_>) -> Result<(), LineErrorKind> {
        let Commit { mode, pc, .. } = *commit;
        let id = self.entry.hart;
        // Where harts take turns, pieces do not pay.
        let straight = self.straight.as_mut().filter(|straight| {
            let same = self.steps.current().is_some_and(|hart| hart.id == id);
            self.in_pieces && same && commit.is_plain() && straight.is_of_width(commit.narrow)
        });
        let Some(bits) = self.steps.enter(&self.entry, out)? else {
            return Ok(());
        };
        if let Some(straight) = straight
            && let Some(hart) = self.steps.current()
            && straight.begin((id, mode), pc, bits, out)
        {
            hart.leave();
            return Ok(());
        }
        self.steps.retire(&self.entry, bits, out)
    }

    /// Whether a commit is where the open piece leads.
    #[inline]
    fn goes_on(&mut self, id: HartId, commit: &Commit, out: &mut Out<'_, '_>) -> bool {
        let Commit { mode, pc, bits, .. } = *commit;
        let Some(straight) = self.straight.as_mut().filter(|_| self.in_pieces) else {
            return false;
        };
        let plain = commit.is_plain() && self.handler.is_none();
        if !plain || !straight.is_of_width(commit.narrow) || !straight.leads(id, mode, pc) {
            return false;
        }
        if self.listing
            && let Some(hart) = self.steps.current()
        {
            hart.unlist();
        }
        straight.follow(pc, bits, out)
    }

    /// Lines that say what comes next: how many they are, and their bytes.
    #[inline]
    fn expected(&mut self, text: &[u8]) -> (usize, usize) {
        let Some(straight) = &mut self.straight else {
            return (0, 0);
        };
        let expected = straight.expected(text, self.listing);
        if self.listing
            && expected.0 > 0
            && let Some(hart) = self.steps.current()
        {
            hart.unlist();
        }
        expected
    }

    /// Whether the open piece is of another hart.
    fn is_elsewhere(&self, id: HartId) -> bool {
        self.straight
            .as_ref()
            .is_none_or(|straight| straight.hart() != id)
    }

    /// Whether the observer gets pieces.
    fn set_in_pieces(&mut self, wanted: bool, out: &mut Out<'_, '_>) {
        if !wanted {
            self.end_pieces(out);
        }
        self.in_pieces = wanted && self.straight.is_some();
    }

    /// From here on not in pieces.
    #[inline]
    fn end_pieces(&mut self, out: &mut Out<'_, '_>) {
        if let Some(straight) = self
            .straight
            .as_mut()
            .filter(|straight| straight.is_ahead())
        {
            straight.end(&mut self.steps, out);
        }
    }

    #[cold]
    fn rare(
        &mut self,
        id: HartId,
        form: Form,
        cursor: &mut Cursor<'_>,
        out: &mut Out<'_, '_>,
    ) -> Result<(), Fault> {
        let max_repeat = self.options.max_repeat;
        let whole = |kind| (kind, 0);
        match form {
            Form::Trap { epc, cause, mode } => {
                self.traps = true;
                let (hart, mut ground) = self.hart(id, None)?;
                hart.before_trap(epc, (cause, None), &mut ground, out);
                hart.hold(epc, cause, mode);
            }
            Form::Trapped { pc, bits, cause } => {
                self.traps = true;
                self.entry.clear();
                (self.entry.hart, self.entry.pc) = (id, pc);
                self.entry.bits = Some(bits);
                self.entry.trapped(cause);
                return self.steps.take(&self.entry, out).map_err(whole);
            }
            Form::Tval(value) => {
                let (hart, _) = self.hart(id, None)?;
                let placed = hart.tval(value);
                return placed.ok_or((LineErrorKind::StrayTval, 0));
            }
            Form::Executed(times) => {
                let (hart, ground) = self.hart(id, None)?;
                let placed = ground.commits || times <= max_repeat && hart.repeat(times);
                return placed.then_some(()).ok_or((LineErrorKind::Repeat, 0));
            }
            Form::Debugger(signal) => {
                self.traps = true;
                self.entry.clear();
                let mut tail = Tail::new(&mut self.entry, MemoryOp::Other, false);
                tail.read(cursor).map_err(|kind| (kind, cursor.at()))?;
                let (hart, mut ground) = self.steps.with(id, None).map_err(whole)?;
                hart.debugger(signal, &self.entry, &mut ground, out);
            }
            Form::Late(reg, value) => self.hart(id, None)?.0.late(reg, value, out.parts),
            Form::Interrupted { pc } => {
                (self.handler, self.traps) = (Some(pc), true);
                self.hart(id, None)?;
            }
            _ => {
                self.hart(id, None)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn hart(
        &mut self,
        id: HartId,
        narrow: Option<bool>,
    ) -> Result<(&mut Hart, Ground<'_, 'a>), Fault> {
        self.steps.with(id, narrow).map_err(|kind| (kind, 0))
    }

    /// Whether it is a log that records traps.
    fn update(&mut self) {
        self.steps.records_traps(self.listing && self.steps.commits);
    }
}
