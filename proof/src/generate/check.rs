//! Checks that steps are a possible execution of a program, from its image
//! alone and independently of the walk that produced them.

use std::collections::HashSet;
use std::fmt;

use hartrace_flow::{
    Effects, HartId, Image, Insn, Mode, Observer, Signal, SpaceId, Step, TrapStep, Wants,
};
use hartrace_isa::{Flow, Isa};

use super::Program;

/// What is wrong with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its position, 0 the first.
    pub step: u64,
    /// Its address, if it has one.
    pub pc: u64,
    /// The rule it breaks.
    pub rule: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} at {:#x}: {}", self.step, self.pc, self.rule)
    }
}

/// How the mode may change before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    No,
    Trapped,
    Returned,
}

/// Privilege, lowest first. Written anew here rather than taken from the walk:
/// a check that shares its rules with what it checks finds nothing.
const fn rank(mode: Mode) -> u8 {
    match mode {
        Mode::U | Mode::VU => 0,
        Mode::VS => 1,
        Mode::S => 2,
        Mode::M | Mode::D => 3,
    }
}

/// Traps never lower the privilege, and a guest's handler serves its guest.
const fn may_trap(from: Mode, to: Mode) -> bool {
    rank(to) > 0 && rank(to) >= rank(from) && (!to.is_virtual() || from.is_virtual())
}

/// Returns never raise the privilege, and a guest stays one.
const fn may_return(from: Mode, to: Mode) -> bool {
    rank(from) > 0 && rank(to) <= rank(from) && (!from.is_virtual() || to.is_virtual())
}

/// Replays steps against an image and keeps the first fault.
#[derive(Debug)]
pub struct Replay<'a> {
    image: &'a Image,
    isa: Isa,
    jvt: Option<u64>,
    /// Where an instruction starts; data in between is no target.
    starts: HashSet<u64>,
    expected: Option<u64>,
    /// The step before, if it was an instruction.
    before: Option<Insn>,
    mode: Option<Mode>,
    change: Change,
    time: u64,
    halted: bool,
    steps: u64,
    fault: Option<Fault>,
}

impl<'a> Replay<'a> {
    /// For steps of this program.
    #[must_use]
    pub fn new(program: &'a Program) -> Replay<'a> {
        Replay {
            image: program.image(),
            isa: program.isa(),
            jvt: program.jvt(),
            starts: program.instructions().map(|i| i.0).collect(),
            expected: Some(program.entry()),
            before: None,
            mode: None,
            change: Change::No,
            time: 0,
            halted: false,
            steps: 0,
            fault: None,
        }
    }

    /// The number of steps, or the first fault.
    ///
    /// # Errors
    ///
    /// The first step that could not be.
    pub fn result(&self) -> Result<u64, Fault> {
        self.fault.map_or(Ok(self.steps), Err)
    }

    fn insn(&mut self, insn: &Insn) -> Result<(), &'static str> {
        if self.expected.is_some_and(|pc| pc != insn.pc) {
            return Err("not where the step before went");
        }
        if self.halted {
            return Err("retired while halted");
        }
        let fetched = self.image.fetch(SpaceId::FIRST, insn.pc);
        let fetched = fetched.ok_or("no code there")?;
        if fetched.bits != insn.bits || fetched.len != insn.len() {
            return Err("other bits than the image");
        }
        if !self.starts.contains(&insn.next) {
            return Err("goes where no instruction starts");
        }
        self.circumstances(insn.mode, insn.time)?;
        let flow = Flow::of(insn.bits, self.isa);
        self.legal(insn, flow)?;
        self.expected = Some(insn.next);
        self.before = Some(*insn);
        if flow == Flow::TrapReturn {
            self.change = Change::Returned;
        }
        Ok(())
    }

    /// Mode and time follow from the step before.
    fn circumstances(&mut self, mode: Mode, time: u64) -> Result<(), &'static str> {
        if time < self.time {
            return Err("time goes back");
        }
        self.time = time;
        let allowed = match (self.mode, self.change) {
            (None, _) => true,
            (Some(old), Change::No) => old == mode,
            (Some(old), Change::Trapped) => may_trap(old, mode),
            (Some(old), Change::Returned) => may_return(old, mode),
        };
        self.change = Change::No;
        self.mode = Some(mode);
        allowed.then_some(()).ok_or("mode out of the blue")
    }

    /// `next` is a place the instruction can go to.
    fn legal(&self, insn: &Insn, flow: Flow) -> Result<(), &'static str> {
        let xlen = self.isa.xlen();
        let end = xlen.wrap(insn.end());
        let target = flow.target(insn.pc, xlen);
        let fine = match flow {
            Flow::Seq | Flow::Const { .. } => insn.next == end,
            Flow::Branch { .. } => insn.next == end || Some(insn.next) == target,
            Flow::Jump { .. } => Some(insn.next) == target,
            Flow::Table { index, .. } => Some(insn.next) == self.table_entry(index),
            Flow::Indirect { .. } if target.is_some() => Some(insn.next) == target,
            Flow::Indirect { .. } => {
                let before = self.before.filter(|b| xlen.wrap(b.end()) == insn.pc);
                let inferred = before
                    .and_then(|b| flow.sequential_target(Flow::of(b.bits, self.isa), b.pc, xlen));
                inferred.is_none_or(|target| target == insn.next)
            }
            Flow::PopReturn => true,
            Flow::TrapReturn => matches!(
                (insn.bits, insn.mode),
                (super::asm::MRET, Mode::M) | (super::asm::SRET, Mode::S | Mode::VS)
            ),
            Flow::Trap => return Err("ecall and ebreak do not retire"),
        };
        fine.then_some(())
            .ok_or("goes where the instruction cannot")
    }

    fn table_entry(&self, index: u8) -> Option<u64> {
        let width = u64::from(self.isa.xlen().bits() / 8);
        let mut entry = [0; 8];
        let bytes = entry.get_mut(..width as usize)?;
        let at = self.jvt? + u64::from(index) * width;
        let read = self.image.read(SpaceId::FIRST, at, bytes);
        (read == bytes.len()).then(|| u64::from_le_bytes(entry))
    }

    fn trap(&mut self, step: &TrapStep) -> Result<(), &'static str> {
        let trap = step.trap;
        let Some(epc) = trap.epc else {
            return Err("a trap without an epc");
        };
        if self.expected.is_some_and(|pc| pc != epc) {
            return Err("epc is not where the step before went");
        }
        if self.halted {
            return Err("trapped while halted");
        }
        let fetched = self.image.fetch(SpaceId::FIRST, epc);
        if step.bits.is_some() && step.bits != fetched.map(|f| f.bits) {
            return Err("trapped on other bits than the image");
        }
        let Some(handler) = trap.handler else {
            return Err("a trap without a handler");
        };
        if !self.starts.contains(&handler) {
            return Err("no code at the handler");
        }
        self.circumstances(step.mode, step.time)?;
        self.change = Change::Trapped;
        self.expected = Some(handler);
        self.before = None;
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), &'static str> {
        let resumed = signal == Signal::Resumed;
        if self.halted != resumed {
            return Err("halted and resumed do not alternate");
        }
        self.halted = signal == Signal::Halted;
        Ok(())
    }
}

impl Observer for Replay<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        if self.fault.is_some() {
            return;
        }
        let (pc, result) = match step {
            Step::Insn(insn) => (insn.pc, self.insn(insn)),
            Step::Trap(trap) => (trap.trap.epc.unwrap_or(0), self.trap(trap)),
            Step::Signal(signal) => (0, self.signal(*signal)),
        };
        if let Err(rule) = result {
            self.fault = Some(Fault {
                step: self.steps,
                pc,
                rule,
            });
        }
        self.steps += 1;
    }
}
