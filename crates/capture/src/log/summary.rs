//! The summary of a log, in bounded memory.

use hartrace_flow::{
    Cause, Effects, HartId, Ingress, Mode, Observer, Signal, Step, Trap, TrapStep, Wants,
};
use hartrace_isa::Itype;
use hartrace_logs::{IngressRow, LineError};
use memchr::memchr_iter;

/// Trap causes that are counted separately; logs may hold any number.
const MAX_CAUSES: usize = 64;

/// The encoding of ecall.
const ECALL: u32 = 0x73;

/// Damaged lines that are kept.
const KEPT: usize = 5;

/// What a log holds. An [`Observer`] that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSummary {
    /// Instructions retired.
    pub instructions: u64,
    /// Without the program: pcs of a list, or ingress blocks that retired
    /// something.
    pub rows: u64,
    /// Traps by cause, in the order of appearance.
    pub traps: Vec<(Cause, u64)>,
    /// Traps of causes that no longer fitted in `traps`.
    pub more_traps: u64,
    /// Signals by kind, in the order of appearance.
    pub signals: Vec<(Signal, u64)>,
    /// Harts with instructions or traps, in their order. The reader bounds
    /// their number.
    pub harts: Vec<HartId>,
    /// The first pc.
    pub first_pc: Option<u64>,
    /// The last pc.
    pub last_pc: Option<u64>,
    /// One bit for each `priv` code.
    modes: u8,
    /// The hart of the last step.
    current: Option<HartId>,
}

impl LogSummary {
    /// Traps of all causes.
    #[must_use]
    pub fn all_traps(&self) -> u64 {
        self.traps.iter().map(|t| t.1).sum::<u64>() + self.more_traps
    }

    /// Whether the log goes where its program leads.
    #[must_use]
    pub fn fit(&self) -> Fit {
        let unexplained = self.traps.iter().find(|t| t.0 == Cause::Unknown);
        Fit {
            steps: self.instructions + self.all_traps(),
            unexplained: unexplained.map_or(0, |t| t.1),
            ..Fit::default()
        }
    }

    /// The modes of instructions and traps. Whether they were in the log, its
    /// reader knows.
    pub fn modes(&self) -> impl Iterator<Item = Mode> {
        let seen = self.modes;
        let codes = (0..8u8).filter(move |code| seen >> code & 1 == 1);
        codes.filter_map(Mode::from_code)
    }

    /// A pc without its instruction.
    #[inline]
    pub(super) fn row(&mut self, pc: u64) {
        self.rows += 1;
        self.pc(pc);
    }

    /// The blocks of a cycle, without their instructions.
    pub(super) fn cycle(&mut self, row: IngressRow<'_>) {
        let IngressRow::Blocks(blocks) = row else {
            return self.signal(Signal::Lost);
        };
        blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Ingress) {
        let code = Some(block.cause);
        match block.itype {
            Itype::Exception => self.trap(Cause::Exception(code)),
            Itype::Interrupt => self.trap(Cause::Interrupt(code)),
            _ if block.iretire == 0 => return,
            _ => {}
        }
        self.hart(HartId(0));
        self.mode(block.mode);
        if block.iretire > 0 {
            self.row(block.iaddr);
        }
    }

    #[inline]
    fn pc(&mut self, pc: u64) {
        if self.first_pc.is_none() {
            self.first_pc = Some(pc);
        }
        self.last_pc = Some(pc);
    }

    #[inline]
    fn hart(&mut self, hart: HartId) {
        if self.current != Some(hart) {
            self.other_hart(hart);
        }
    }

    #[cold]
    fn other_hart(&mut self, hart: HartId) {
        self.current = Some(hart);
        if let Err(at) = self.harts.binary_search(&hart) {
            self.harts.insert(at, hart);
        }
    }

    #[inline]
    fn mode(&mut self, mode: Mode) {
        self.modes |= 1 << (mode.code() & 7);
    }

    #[cold]
    fn trap(&mut self, cause: Cause) {
        let room = self.traps.len() < MAX_CAUSES;
        match self.traps.iter_mut().find(|t| t.0 == cause) {
            Some((_, count)) => *count += 1,
            None if room => self.traps.push((cause, 1)),
            None => self.more_traps += 1,
        }
    }

    #[cold]
    fn signal(&mut self, signal: Signal) {
        match self.signals.iter_mut().find(|s| s.0 == signal) {
            Some((_, count)) => *count += 1,
            // There are fewer than 300 of them.
            None => self.signals.push((signal, 1)),
        }
    }
}

impl Observer for LogSummary {
    const WANTS: Wants = Wants::STEPS;

    #[inline]
    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        match step {
            Step::Insn(insn) => {
                self.instructions += 1;
                self.hart(hart);
                self.mode(insn.mode);
                self.pc(insn.pc);
            }
            Step::Trap(trap) => {
                self.hart(hart);
                self.mode(trap.mode);
                self.trap(trap.trap.cause);
            }
            Step::Signal(signal) => self.signal(*signal),
        }
    }
}

/// Whether a log goes where its program leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Instructions and traps.
    pub steps: u64,
    /// Traps.
    pub traps: u64,
    /// Traps for which neither the log nor the program has a reason.
    pub unexplained: u64,
    /// Traps whose cause is not known, or not all of it. That of an ecall follows
    /// from its mode.
    pub causeless: u64,
    /// The first of them.
    pub first: Option<Causeless>,
}

/// A trap whose cause is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Causeless {
    /// Steps before it.
    pub step: u64,
    /// The trap.
    pub trap: Trap,
}

impl Fit {
    /// One more step.
    #[inline]
    pub fn add(&mut self, step: &Step) {
        match step {
            Step::Insn(_) => self.steps += 1,
            Step::Trap(trap) => self.trap(trap),
            Step::Signal(_) => {}
        }
    }

    #[cold]
    fn trap(&mut self, step: &TrapStep) {
        let trap = step.trap;
        let causeless = match trap.cause {
            Cause::Unknown | Cause::Interrupt(None) => true,
            Cause::Exception(None) => step.bits != Some(ECALL),
            Cause::Exception(Some(_)) | Cause::Interrupt(Some(_)) => false,
        };
        if causeless {
            let step = self.steps;
            self.first.get_or_insert(Causeless { step, trap });
            self.causeless += 1;
        }
        self.steps += 1;
        self.traps += 1;
        self.unexplained += u64::from(trap.cause == Cause::Unknown);
    }

    /// Interrupts leave no more than a few traps unexplained: many, and more
    /// than 5 % of the steps, are another program's.
    #[must_use]
    pub fn is_doubtful(self) -> bool {
        self.unexplained >= 20 && self.unexplained.saturating_mul(20) > self.steps
    }
}

/// The lines of a log that could not be read, or not believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How many.
    pub lines: u64,
    /// The first few of them.
    pub first: Vec<LineError>,
}

impl Damage {
    /// One more.
    #[cold]
    pub fn add(&mut self, error: LineError) {
        self.lines += 1;
        if self.first.len() < KEPT {
            self.first.push(error);
        }
    }

    /// Those that are not in `first`.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.lines - self.first.len() as u64
    }
}

/// Lines of a text in chunks, the last one also without a line end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineCount {
    ended: u64,
    open: bool,
}

impl LineCount {
    /// Counts on.
    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        if let Some(last) = chunk.last() {
            self.open = *last != b'\n';
            self.ended += memchr_iter(b'\n', chunk).count() as u64;
        }
    }

    /// Lines so far.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        self.ended + u64::from(self.open)
    }
}
