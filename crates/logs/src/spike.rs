//! Spike's log: `-l`, `--log-commits`, or both.

use alloc::vec::Vec;

use hartrace_isa::Isa;

use self::causes::{Await, Waiting};
use self::effects::{MemoryOp, Parts, Tail};
use self::hart::{Ground, Hart};
use self::line::{Cursor, Form};
use super::lines::{Line, Lines};
use super::site::Sites;
use super::{LineError, LineErrorKind, unreported};
use hartrace_flow::{Cause, Effects, HartId, Image, Observer, Signal, SpaceId, Step, Wants};

mod causes;
mod effects;
mod hart;
mod line;
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
/// No image is needed: the instructions are in the log. With one, a commit
/// whose instruction differs from the image is reported
/// ([`LineErrorKind::CodeDiffers`]) and given as the log has it.
#[derive(Clone, Debug)]
pub struct SpikeReader<'a> {
    lines: Lines,
    log: Log<'a>,
    /// Steps that wait for a cause.
    waiting: Waiting,
}

impl<'a> SpikeReader<'a> {
    /// A reader, with the program's image if there is one.
    #[must_use]
    pub fn new(options: SpikeOptions, image: Option<&'a Image>) -> SpikeReader<'a> {
        SpikeReader {
            lines: Lines::default(),
            waiting: Waiting::default(),
            log: Log {
                options,
                isa: options.isa.or(image.and_then(Image::isa)),
                sites: image.map(|image| Sites::new(image, SpaceId::FIRST)),
                listing: false,
                traps: false,
                commits: false,
                harts: Vec::new(),
                current: 0,
                quiet: false,
                unreported: unreported(),
                cause: None,
            },
        }
    }

    /// Whether there were lines of `--log-commits`. Without them the modes and
    /// the effects of the steps say nothing.
    #[must_use]
    pub fn commits(&self) -> bool {
        self.log.commits
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
        let SpikeReader {
            lines,
            log,
            waiting,
        } = self;
        let mut out = Await { waiting, out };
        lines.feed(chunk, |n, line| {
            log.line(n, line, &mut out, damaged);
            if let Some((hart, cause)) = log.cause.take() {
                out.waiting.cause(hart, cause, out.out);
            }
        });
    }

    /// The log has ended: gives the last step of each hart and ends the
    /// observer.
    pub fn finish<O: Observer>(&mut self, out: &mut O, damaged: &mut impl FnMut(LineError)) {
        let SpikeReader {
            lines,
            log,
            waiting,
        } = self;
        let mut last = Await { waiting, out };
        lines.finish(|n, line| log.line(n, line, &mut last, damaged));
        for at in 0..log.harts.len() {
            log.flush(at, &mut last);
        }
        last.waiting.flush(last.out);
        out.finish();
    }
}

/// All but the cutting into lines.
#[derive(Clone, Debug)]
struct Log<'a> {
    options: SpikeOptions,
    isa: Option<Isa>,
    sites: Option<Sites<'a>>,
    /// An instruction line was seen: the log records traps.
    listing: bool,
    /// A line recorded a trap.
    traps: bool,
    /// A commit line was seen: instruction lines do not show what retired.
    commits: bool,
    harts: Vec<Hart>,
    /// Position of the hart of the last line.
    current: usize,
    /// Every hart is lost and none has been heard of since.
    quiet: bool,
    unreported: Effects,
    /// A handler has read the cause of its trap.
    cause: Option<(HartId, Cause)>,
}

/// A fault in a line: its kind and the byte.
type Fault = (LineErrorKind, usize);

impl<'a> Log<'a> {
    #[inline]
    fn line<O: Observer>(
        &mut self,
        number: u64,
        line: Line<'_>,
        out: &mut O,
        damaged: &mut impl FnMut(LineError),
    ) {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                damaged(error);
                return self.lost(None, out);
            }
        };
        if line.is_empty() {
            return;
        }
        let mut cursor = Cursor::new(line);
        let id = match cursor.core() {
            Ok(id) => id,
            Err(kind) => {
                damaged(LineError::new(number, line, cursor.at(), kind));
                return self.lost(None, out);
            }
        };
        match self.read(HartId(id), &mut cursor, out) {
            Ok(()) => {}
            Err((kind, at)) => {
                damaged(LineError::new(number, line, at, kind));
                if !matches!(kind, LineErrorKind::CodeDiffers(_)) {
                    self.lost(Some(HartId(id)), out);
                }
            }
        }
    }

    #[inline]
    fn read<O: Observer>(
        &mut self,
        id: HartId,
        cursor: &mut Cursor<'_>,
        out: &mut O,
    ) -> Result<(), Fault> {
        let form = cursor.form().map_err(|kind| (kind, cursor.at()))?;
        let at = self.hart(id).map_err(|kind| (kind, 0))?;
        self.quiet = false;
        match form {
            Form::Commit {
                mode,
                pc,
                bits,
                narrow,
            } => {
                self.commits = true;
                let (harts, mut ground) = self.ground(narrow);
                let Some(hart) = harts.get_mut(at) else {
                    return Ok(());
                };
                hart.narrow = narrow;
                hart.lost = false;
                hart.follow(pc, Some(mode), &mut ground, out);
                hart.commit(pc, bits, mode);
                if wanted::<O>() || bits & 0x7f == 0x73 {
                    let read = hart.effects(cursor, bits, parts::<O>());
                    match read {
                        Ok(cause) => self.cause = cause.map(|cause| (id, cause)),
                        Err(kind) => {
                            hart.drop_insn();
                            return Err((kind, cursor.at()));
                        }
                    }
                }
                match self.sites.as_mut().and_then(|s| s.get(pc)) {
                    Some(site) if site.bits != bits => Err((LineErrorKind::CodeDiffers(pc), 0)),
                    _ => Ok(()),
                }
            }
            Form::Listed { pc, bits, narrow } => {
                self.listing = true;
                let commits = self.commits;
                let (harts, mut ground) = self.ground(narrow);
                if let Some(hart) = harts.get_mut(at) {
                    hart.narrow = narrow;
                    hart.lost = false;
                    if !commits {
                        hart.follow(pc, None, &mut ground, out);
                    }
                    hart.list(pc, bits);
                }
                Ok(())
            }
            Form::Debugger(signal) => {
                let read = self.debugger(at, signal, cursor, out);
                read.map_err(|kind| (kind, cursor.at()))
            }
            other => self.rare(at, other, out).map_err(|kind| (kind, 0)),
        }
    }

    #[cold]
    fn rare<O: Observer>(
        &mut self,
        at: usize,
        form: Form,
        out: &mut O,
    ) -> Result<(), LineErrorKind> {
        let commits = self.commits;
        let narrow = self.harts.get(at).is_some_and(|h| h.narrow);
        let max_repeat = self.options.max_repeat;
        let (harts, mut ground) = self.ground(narrow);
        let Some(hart) = harts.get_mut(at) else {
            return Ok(());
        };
        hart.lost = false;
        match form {
            Form::Trap { epc, cause, mode } => {
                hart.before_trap(epc, cause, commits, &mut ground, out);
                hart.hold(epc, cause, mode);
                self.traps = true;
                Ok(())
            }
            Form::Tval(value) => hart.tval(value).ok_or(LineErrorKind::StrayTval),
            Form::Executed(times) if !commits => {
                let placed = times <= max_repeat && hart.repeat(times);
                placed.then_some(()).ok_or(LineErrorKind::Repeat)
            }
            _ => Ok(()),
        }
    }

    /// A debugger did something to a hart.
    #[cold]
    fn debugger<O: Observer>(
        &mut self,
        at: usize,
        signal: Signal,
        cursor: &mut Cursor<'_>,
        out: &mut O,
    ) -> Result<(), LineErrorKind> {
        let narrow = self.harts.get(at).is_some_and(|h| h.narrow);
        self.traps = true;
        let (harts, mut ground) = self.ground(narrow);
        let Some(hart) = harts.get_mut(at) else {
            return Ok(());
        };
        hart.lost = false;
        hart.debugger(signal, cursor, parts::<O>(), &mut ground, out)
    }

    /// Position of a hart's state; new harts are added.
    #[inline]
    fn hart(&mut self, id: HartId) -> Result<usize, LineErrorKind> {
        if self.harts.get(self.current).is_some_and(|h| h.id == id) {
            return Ok(self.current);
        }
        self.other_hart(id)
    }

    #[cold]
    fn other_hart(&mut self, id: HartId) -> Result<usize, LineErrorKind> {
        self.current = match self.harts.iter().position(|h| h.id == id) {
            Some(at) => at,
            None if self.harts.len() < self.options.max_harts => {
                self.harts.push(Hart::new(id));
                self.harts.len() - 1
            }
            None => return Err(LineErrorKind::TooManyHarts),
        };
        Ok(self.current)
    }

    /// The harts and what they share.
    #[inline]
    fn ground(&mut self, narrow: bool) -> (&mut [Hart], Ground<'_, 'a>) {
        let default = if narrow { Isa::RV32GC } else { Isa::RV64GC };
        let ground = Ground {
            isa: self.isa.unwrap_or(default),
            plain_jumps: self.options.plain_jumps && self.listing && self.commits,
            sites: &mut self.sites,
            unreported: &self.unreported,
        };
        (&mut self.harts, ground)
    }

    /// Steps are missing, of one hart or of all. Where it may be any hart, the
    /// ones that have done nothing since the last loss are not reported again, but
    /// for the one that spoke last: a line of a thousand harts' log is not a
    /// thousand steps.
    #[cold]
    fn lost<O: Observer>(&mut self, id: Option<HartId>, out: &mut O) {
        let mut told = false;
        let all = match id {
            None if self.quiet => self.current..self.harts.len().min(self.current + 1),
            _ => 0..self.harts.len(),
        };
        self.quiet |= id.is_none();
        for at in all {
            let current = at == self.current;
            let Some(hart) = self.harts.get_mut(at).filter(|h| match id {
                Some(id) => id == h.id,
                None => current || !h.lost,
            }) else {
                continue;
            };
            hart.lost = true;
            let hart = hart.id;
            self.flush(at, out);
            out.step(hart, &Step::Signal(Signal::Lost), &self.unreported);
            told = true;
        }
        if !told {
            let id = id.unwrap_or_default();
            out.step(id, &Step::Signal(Signal::Lost), &self.unreported);
        }
    }

    /// Gives what a hart did last, as far as it can be known without a next
    /// line.
    fn flush<O: Observer>(&mut self, at: usize, out: &mut O) {
        let narrow = self.harts.get(at).is_some_and(|h| h.narrow);
        let commits = self.commits;
        let (harts, mut ground) = self.ground(narrow);
        if let Some(hart) = harts.get_mut(at) {
            hart.flush(commits, &mut ground, out);
        }
    }
}

const fn wanted<O: Observer>() -> bool {
    let parts = parts::<O>();
    parts.regs || parts.csrs || parts.accesses
}

const fn parts<O: Observer>() -> Parts {
    Parts {
        regs: O::WANTS.contains(Wants::REGS),
        csrs: O::WANTS.contains(Wants::CSRS),
        accesses: O::WANTS.contains(Wants::ACCESSES),
    }
}
