//! An execution of a program without a simulator: every outcome is drawn.

use hartrace_flow::{Context, Effects, HartId, Insn, Mode, Observer, Step};

use super::layout::Kind;
use super::program::{Op, Program};
use super::{Random, Spec};

/// Calls a task remembers; deeper ones forget the oldest half.
const MAX_CALLS: usize = 512;
/// Open calls beyond which a guard keeps out of another.
const GUARD_CALLS: usize = 24;
/// Traps a hart remembers; deeper ones forget the oldest.
const MAX_FRAMES: usize = 32;

/// What a trap put aside, or a task that is not running.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) resume: u32,
    pub(super) mode: Mode,
    pub(super) context: Context,
    pub(super) calls: Vec<u32>,
}

/// What comes from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Surprise {
    #[default]
    Leap,
    Interrupt,
    Exception,
    Signal,
    Context,
}

/// Walks over a program and tells an observer every step.
///
/// The walk is endless and depends on the program and the seed alone: however
/// the steps are asked for, in one go or one by one, they are the same.
#[derive(Debug)]
pub struct Driver<'p> {
    pub(super) program: &'p Program,
    pub(super) spec: &'p Spec,
    pub(super) r: Random,
    /// The op that comes next.
    pub(super) at: u32,
    pub(super) mode: Mode,
    pub(super) context: Context,
    pub(super) time: u64,
    /// How much later each step is than the one before, over and over.
    ticks: [u8; 256],
    tick: u8,
    /// Steps until the next surprise.
    pub(super) until: u64,
    /// The next surprise, if it is decided already.
    pub(super) forced: Option<Surprise>,
    pub(super) calls: Vec<u32>,
    pub(super) frames: Vec<Frame>,
    pub(super) parked: Vec<Frame>,
    /// Call stacks nobody uses, so that a trap need not allocate.
    pub(super) spare: Vec<Vec<u32>>,
    /// Trips left of each loop, by op.
    trips: Vec<u16>,
    /// The op was jumped to.
    pub(super) landed: bool,
    /// Rounds left of a self loop.
    spins: u32,
    /// Halted, and to be resumed before anything else.
    pub(super) halted: bool,
    pub(super) tracing: bool,
    hart: HartId,
    effects: Effects,
}

impl<'p> Driver<'p> {
    /// Starts at the program's entry.
    #[must_use]
    pub fn new(program: &'p Program, seed: u64) -> Driver<'p> {
        let mut r = Random::new(seed ^ 0x57a1);
        let spec = program.spec();
        let mut ticks = [0; 256];
        if spec.timed {
            for tick in &mut ticks {
                *tick = r.pick(&[0, 0, 1, 1, 1, 1, 1, 1, 2, 3, 17]);
            }
        }
        let mode = r.pick(spec.modes.all());
        let mut driver = Driver {
            program,
            spec,
            r,
            at: program.entries.first().copied().unwrap_or_default(),
            mode,
            context: Context(0),
            time: 0,
            ticks,
            tick: 0,
            until: 0,
            forced: None,
            calls: Vec::new(),
            frames: Vec::new(),
            parked: Vec::new(),
            spare: Vec::new(),
            trips: vec![0; program.ops.len()],
            landed: false,
            spins: 0,
            halted: false,
            tracing: true,
            hart: HartId(0),
            effects: Effects::default(),
        };
        driver.set_up();
        driver
    }

    /// Which hart the steps are of; 0 by default.
    #[must_use]
    pub fn with_hart(mut self, hart: HartId) -> Self {
        self.hart = hart;
        self
    }

    /// Address of the instruction that comes next.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.program.pc_of(self.at)
    }

    fn set_up(&mut self) {
        if self.spec.surprises.switch_task > 0 {
            for _ in 0..3 {
                let task = Frame {
                    resume: self.r.pick(&self.program.entries),
                    mode: self.r.pick(self.spec.modes.all()),
                    context: self.new_context(),
                    calls: Vec::new(),
                };
                self.parked.push(task);
            }
        }
        self.until = self.interval();
        if self.spec.surprises.first && self.spec.traps {
            self.until = 0;
            self.forced = Some(self.r.pick(&[Surprise::Interrupt, Surprise::Exception]));
        }
    }

    /// Steps until the next surprise: any number, small ones more often than
    /// chance would have it.
    pub(super) fn interval(&mut self) -> u64 {
        match u64::from(self.spec.surprises.every) {
            0 => u64::MAX,
            _ if self.r.chance(60) => self.r.below(4),
            mean => 1 + self.r.below(2 * mean),
        }
    }

    /// Takes exactly this many steps. An observer that needs to know of the
    /// end is decided by its owner: there is always another step.
    pub fn run<O: Observer>(&mut self, steps: u64, out: &mut O) {
        let mut left = steps;
        while left > 0 {
            if self.until == 0 {
                left -= u64::from(self.surprise(out));
                continue;
            }
            let Some(&op) = self.program.ops.get(self.at as usize) else {
                return;
            };
            let count = u64::from(op.run).min(left).min(self.until);
            if count > 0 {
                self.straight(count as u32, out);
            } else {
                self.decide(&op, out);
            }
            let taken = count.max(1);
            left -= taken;
            // A trap inside has drawn a new interval; 0 must stay 0.
            self.until = self.until.saturating_sub(taken);
        }
    }

    /// The steps themselves, for tests and small programs.
    pub fn steps(&mut self, steps: u64) -> Vec<Step> {
        let mut list = StepList(Vec::new());
        self.run(steps, &mut list);
        list.0
    }

    #[inline]
    fn straight<O: Observer>(&mut self, count: u32, out: &mut O) {
        let from = self.at as usize;
        let to = from + count as usize;
        for op in self.program.ops.get(from..to).unwrap_or_default() {
            let next = op.pc.wrapping_add(u64::from(op.len));
            self.retire(op, next, out);
        }
        self.at += count;
        self.landed = false;
    }

    #[inline]
    fn retire<O: Observer>(&mut self, op: &Op, next: u64, out: &mut O) {
        self.pass_time();
        let insn = Insn {
            pc: op.pc,
            next,
            time: self.time,
            context: self.context,
            bits: op.bits,
            mode: self.mode,
        };
        out.step(self.hart, &Step::Insn(insn), &self.effects);
    }

    #[inline]
    pub(super) fn pass_time(&mut self) {
        self.tick = self.tick.wrapping_add(1);
        let tick = self.ticks.get(usize::from(self.tick)).copied();
        self.time = self.time.wrapping_add(u64::from(tick.unwrap_or_default()));
    }

    pub(super) fn tell<O: Observer>(&mut self, step: &Step, out: &mut O) {
        out.step(self.hart, step, &self.effects);
    }

    /// Retires an op that has a choice, or traps on it.
    fn decide<O: Observer>(&mut self, op: &Op, out: &mut O) {
        let behind = self.at + 1;
        let to = match op.kind {
            Kind::Seq | Kind::Context => behind,
            Kind::Branch | Kind::Guard | Kind::Loop => {
                if self.takes(op) {
                    op.target
                } else {
                    behind
                }
            }
            Kind::Jump => op.target,
            Kind::Call => self.called(op.target, behind),
            Kind::PairJump => self.through_pair(op),
            Kind::PairCall => {
                let to = self.through_pair(op);
                self.called(to, behind)
            }
            Kind::PickJump => self.one_of(op),
            Kind::PickCall => {
                let to = self.one_of(op);
                self.called(to, behind)
            }
            Kind::Return => self.go_back(),
            Kind::Swap => {
                let to = self.go_back();
                self.called(to, behind)
            }
            Kind::TrapReturn => return self.trap_return(op, out),
            Kind::Trap => return self.environment(op, out),
            Kind::Spin => match self.spins {
                1 => {
                    self.spins = 0;
                    return self.interrupt(behind, out);
                }
                0 => {
                    self.spins = 1 + self.r.between(1, op.arg.max(1));
                    self.at
                }
                _ => {
                    self.spins -= 1;
                    self.at
                }
            },
        };
        self.go(op, to, out);
        if op.kind == Kind::Context {
            self.context = self.new_context();
        }
    }

    pub(super) fn go<O: Observer>(&mut self, op: &Op, to: u32, out: &mut O) {
        self.landed = to != self.at + 1;
        self.retire(op, self.program.pc_of(to), out);
        self.at = to;
    }

    fn takes(&mut self, op: &Op) -> bool {
        if op.kind != Kind::Loop {
            let full = op.kind == Kind::Guard
                && (self.calls.len() > GUARD_CALLS
                    || self.frames.len() > self.spec.surprises.nesting as usize);
            return full || (self.r.draw() & 255) < u64::from(op.arg);
        }
        let (most, same) = (op.arg as u16, op.arg >> 16 != 0);
        let Some(left) = self.trips.get_mut(self.at as usize) else {
            return false;
        };
        if *left == 0 {
            *left = match same {
                true => most,
                false => self.r.between(1, u32::from(most)) as u16,
            };
        }
        *left -= 1;
        *left > 0
    }

    /// Remembers a call.
    fn called(&mut self, to: u32, behind: u32) -> u32 {
        if self.calls.len() >= MAX_CALLS {
            self.calls.drain(..MAX_CALLS / 2);
        }
        self.calls.push(behind);
        to
    }

    fn one_of(&mut self, op: &Op) -> u32 {
        let at = op.target + self.r.below32(op.arg);
        self.program
            .pool
            .get(at as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The constant's target, unless the jump was reached without it.
    fn through_pair(&mut self, op: &Op) -> u32 {
        if self.landed && self.r.chance(500) {
            op.arg
        } else {
            op.target
        }
    }

    /// Where a return goes: usually after the last call.
    fn go_back(&mut self) -> u32 {
        let odd = self.r.below32(1000);
        let surprises = &self.spec.surprises;
        if odd < surprises.stray {
            return self.anywhere();
        }
        if odd < surprises.stray + surprises.longjmp {
            let skip = self.r.below(self.calls.len().min(5) as u64) as usize;
            self.calls.truncate(self.calls.len() - skip);
        }
        match self.calls.pop() {
            Some(back) => back,
            // NoObserver called: only the main function has no caller.
            None => self.r.pick(&self.program.home),
        }
    }

    /// Some place that a return or a new task may start from.
    pub(super) fn anywhere(&mut self) -> u32 {
        if self.r.chance(500) && !self.program.returns.is_empty() {
            self.r.pick(&self.program.returns)
        } else {
            self.r.pick(&self.program.entries)
        }
    }

    /// Puts the running task aside.
    pub(super) fn suspend(&mut self, resume: u32) {
        if self.frames.len() >= MAX_FRAMES {
            let forgotten = self.frames.remove(0);
            self.recycle(forgotten.calls);
        }
        let fresh = self.spare.pop().unwrap_or_default();
        self.frames.push(Frame {
            resume,
            mode: self.mode,
            context: self.context,
            calls: std::mem::replace(&mut self.calls, fresh),
        });
    }

    pub(super) fn recycle(&mut self, mut calls: Vec<u32>) {
        if self.spare.len() < MAX_FRAMES {
            calls.clear();
            self.spare.push(calls);
        }
    }
}

/// Keeps all steps.
struct StepList(Vec<Step>);

impl Observer for StepList {
    const WANTS: hartrace_flow::Wants = hartrace_flow::Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        self.0.push(*step);
    }
}
