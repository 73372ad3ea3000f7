//! Statistics of steps, to see what a generator covers.

use std::collections::HashSet;
use std::fmt;

use hartrace_flow::{
    Cause, Effects, HartId, Image, Insn, Mode, Observer, Signal, SpaceId, Step, TrapStep, Wants,
};
use hartrace_isa::{Const, Flow, Isa, Link};

use super::{Program, asm};

macro_rules! features {
    ($($variant:ident $text:literal,)+) => {
        /// Something an execution may contain.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // the text says it
        pub enum Feature { $($variant,)+ }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),+];

            /// In words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Feature::$variant => $text),+ }
            }
        }
    };
}

features! {
    Instructions "instructions",
    Compressed "compressed instructions",
    Long "instructions of 48 bits and more",
    Constant "lui and auipc",
    Taken "branches taken",
    NotTaken "branches not taken",
    Backward "branches taken backwards",
    SelfLoop "jumps and branches to themselves",
    DirectJump "direct jumps",
    DirectCall "direct calls",
    OtherDirect "direct jumps with another link register",
    IndirectJump "indirect jumps",
    IndirectCall "indirect calls",
    OtherIndirect "indirect jumps with another link register",
    DirectTailCall "direct tail calls",
    IndirectTailCall "indirect tail calls",
    Recursion "recursive calls",
    Return "returns that match their call",
    ReturnLongjmp "returns that skip frames",
    ReturnStray "returns to elsewhere",
    ReturnAlternate "returns through x5",
    PopReturn "cm.popret, cm.popretz",
    TableJump "cm.jt",
    TableCall "cm.jalt",
    Swap "co-routine swaps",
    SwapCompressed "c.jalr x5",
    PairAuipc "jumps through auipc right before",
    PairLui "jumps through lui right before",
    PairCompressed "jumps through c.lui right before",
    PairBroken "such jumps reached without their constant",
    PairOdd "such jumps that are returns or swaps",
    AbsoluteCall "calls through x0",
    AbsoluteJump "jumps through x0",
    Ecall "ecall",
    Ebreak "ebreak",
    CompressedEbreak "c.ebreak",
    Exception "other exceptions",
    FetchFault "exceptions without an instruction",
    Interrupt "interrupts",
    TrapFirst "traps before the first instruction",
    TrapAtTarget "traps at the target of a jump",
    TrapAtTakenTarget "traps at the target of a taken branch",
    TrapAfterReturn "traps right after mret or sret",
    InterruptAtHandler "interrupts before a handler's first instruction",
    ExceptionAtHandler "exceptions on a handler's first instruction",
    TrapInPair "traps between a constant and its jump",
    NestedTrap "traps inside handlers",
    VectorJump "traps to a handler that is a jump",
    Mret "mret",
    Sret "sret",
    ResumeSame "returns to the interrupted instruction",
    ResumeBehind "returns to behind it",
    ResumeElsewhere "returns to another task",
    ModeKept "trap returns in the same mode",
    ModeChanged "trap returns to another mode",
    InMachine "instructions in M",
    InSupervisor "instructions in S",
    InUser "instructions in U",
    InVirtualSupervisor "instructions in VS",
    InVirtualUser "instructions in VU",
    ContextChange "changes of context",
    TimeStill "steps at the same time",
    TimeLeap "leaps in time",
    Halted "halts",
    Resumed "resumes",
    TraceOn "trace on",
    TraceOff "trace off",
    Notify "notify",
    External "external triggers",
}

/// Without the main function, which ends in a jump to its own start.
fn functions_but_main(program: &Program) -> HashSet<u64> {
    let mut functions = program.function_addresses();
    functions.remove(&program.entry());
    functions
}

/// What a call or a trap left behind.
#[derive(Clone, Copy, Debug)]
enum Left {
    Call { back: u64, callee: u64 },
    Trap { epc: u64, behind: u64 },
}

/// Calls and traps remembered; the oldest are forgotten.
const DEPTH: usize = 1024;

/// Counts features. It looks at steps and image alone, as [`super::Replay`]
/// does; names of functions distinguishes tail calls from other jumps.
#[derive(Debug)]
pub struct Stats {
    /// A copy shares the bytes.
    image: Image,
    isa: Isa,
    functions: HashSet<u64>,
    counts: Vec<u64>,
    /// The step before; signals do not count.
    before: Option<Step>,
    open: Vec<Left>,
    /// A trap return was the last instruction, in this mode.
    returned_from: Option<Mode>,
    seen: HashSet<u64>,
    /// Instructions that executions added to this one saw.
    reached: u64,
    code: usize,
    steps: u64,
}

impl Default for Stats {
    /// Nothing yet, to be added to.
    fn default() -> Self {
        Stats {
            image: Image::new(),
            isa: Isa::RV64GC,
            functions: HashSet::new(),
            counts: vec![0; Feature::ALL.len()],
            before: None,
            open: Vec::new(),
            returned_from: None,
            seen: HashSet::new(),
            reached: 0,
            code: 0,
            steps: 0,
        }
    }
}

impl Stats {
    /// For steps of this program.
    #[must_use]
    pub fn new(program: &Program) -> Stats {
        Stats {
            image: program.image().clone(),
            isa: program.isa(),
            functions: functions_but_main(program),
            code: program.instructions().count(),
            ..Stats::default()
        }
    }

    /// How often it occurred.
    #[must_use]
    pub fn count(&self, feature: Feature) -> u64 {
        self.counts.get(feature as usize).copied().unwrap_or(0)
    }

    /// Adds another execution's counts to this one's.
    pub fn add(&mut self, other: &Stats) {
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to += from;
        }
        self.steps += other.steps;
        self.reached += other.seen.len() as u64 + other.reached;
        self.code += other.code;
    }

    fn hit(&mut self, feature: Feature) {
        self.hit_if(feature, true);
    }

    fn hit_if(&mut self, feature: Feature, condition: bool) {
        if let Some(count) = self.counts.get_mut(feature as usize) {
            *count += u64::from(condition);
        }
    }

    fn insn(&mut self, insn: &Insn) {
        self.seen.insert(insn.pc);
        self.hit(Feature::Instructions);
        self.hit_if(Feature::Compressed, insn.len() == 2);
        self.hit_if(Feature::Long, insn.len() > 4);
        self.hit(match insn.mode {
            Mode::M | Mode::D => Feature::InMachine,
            Mode::S => Feature::InSupervisor,
            Mode::U => Feature::InUser,
            Mode::VS => Feature::InVirtualSupervisor,
            Mode::VU => Feature::InVirtualUser,
        });
        self.mode_after_return(insn.mode);
        if let Some(Step::Insn(before)) = self.before {
            self.hit_if(Feature::ContextChange, before.context != insn.context);
            self.hit_if(Feature::TimeStill, before.time == insn.time);
            self.hit_if(Feature::TimeLeap, insn.time - before.time >= 100);
        }
        let flow = Flow::of(insn.bits, self.isa);
        self.hit_if(Feature::SelfLoop, insn.next == insn.pc);
        match flow {
            Flow::Seq | Flow::Trap => {}
            Flow::Const { .. } => self.hit(Feature::Constant),
            Flow::Branch { offset } => {
                let taken = insn.next != insn.end();
                self.hit_if(Feature::Taken, taken);
                self.hit_if(Feature::NotTaken, !taken);
                self.hit_if(Feature::Backward, taken && offset < 0);
            }
            Flow::TrapReturn => self.trap_return(insn),
            _ => self.jump(insn, flow),
        }
    }

    fn jump(&mut self, insn: &Insn, flow: Flow) {
        let link = flow.link().unwrap_or(Link::None);
        let direct = !matches!(flow, Flow::Indirect { .. } | Flow::PopReturn);
        let entry = self.functions.contains(&insn.next);
        let known = self.pair(insn, flow);
        let absolute = flow.target(insn.pc, self.isa.xlen()).is_some() && !direct;
        match (link, direct || known) {
            (Link::None, true) => self.hit_if(Feature::DirectTailCall, entry),
            (Link::None, false) => self.hit_if(Feature::IndirectTailCall, entry),
            _ => {}
        }
        match (link, direct) {
            (Link::None, true) => self.hit(Feature::DirectJump),
            (Link::Call, true) => self.hit(Feature::DirectCall),
            (_, true) => self.hit(Feature::OtherDirect),
            (Link::None, false) if absolute => self.hit(Feature::AbsoluteJump),
            (Link::Call, false) if absolute => self.hit(Feature::AbsoluteCall),
            (Link::None, false) => self.hit(Feature::IndirectJump),
            (Link::Call, false) => self.hit(Feature::IndirectCall),
            (Link::Other, false) => self.hit(Feature::OtherIndirect),
            (Link::Swap, false) => {
                self.hit(Feature::Swap);
                self.hit_if(Feature::SwapCompressed, insn.len() == 2);
            }
            (Link::Return, false) => {
                self.hit_if(Feature::PopReturn, flow == Flow::PopReturn);
                let alternate = matches!(flow, Flow::Indirect { rs1, .. } if rs1.number() == 5);
                self.hit_if(Feature::ReturnAlternate, alternate);
            }
        }
        if let Flow::Table { link, .. } = flow {
            self.hit_if(Feature::TableJump, link == Link::None);
            self.hit_if(Feature::TableCall, link == Link::Call);
        }
        if matches!(link, Link::Return | Link::Swap) && !known {
            self.go_back(insn.next, link);
        }
        if matches!(link, Link::Call | Link::Swap) {
            let callee = insn.next;
            let again = |l: &Left| matches!(l, Left::Call { callee: c, .. } if *c == callee);
            let recursive = link == Link::Call && self.open.iter().rev().take(64).any(again);
            self.hit_if(Feature::Recursion, recursive);
            let back = insn.end();
            self.leave(Left::Call { back, callee });
        }
    }

    /// Whether the target stands in the constant right before.
    fn pair(&mut self, insn: &Insn, flow: Flow) -> bool {
        let Flow::Indirect { rs1, link, .. } = flow else {
            return false;
        };
        if let Some(Step::Insn(before)) = self.before
            && before.end() == insn.pc
            && let Flow::Const { rd, value } = Flow::of(before.bits, self.isa)
            && rd == rs1
        {
            self.hit(match value {
                Const::Relative(_) => Feature::PairAuipc,
                Const::Absolute(_) if before.len() == 2 => Feature::PairCompressed,
                Const::Absolute(_) => Feature::PairLui,
            });
            let odd = matches!(link, Link::Return | Link::Swap);
            self.hit_if(Feature::PairOdd, odd);
            return true;
        }
        // A jump with an offset through a register that only pairs use.
        let arrived = matches!(self.before, Some(Step::Insn(b)) if b.end() != insn.pc);
        let pair_register = rs1.number() == 6 && insn.len() == 4;
        self.hit_if(Feature::PairBroken, arrived && pair_register);
        false
    }

    fn leave(&mut self, left: Left) {
        if self.open.len() >= DEPTH {
            self.open.drain(..DEPTH / 2);
        }
        self.open.push(left);
    }

    fn go_back(&mut self, to: u64, link: Link) {
        let matching = |l: &Left| matches!(l, Left::Call { back, .. } if *back == to);
        let depth = self.open.iter().rev().take(16).position(matching);
        if link == Link::Return {
            self.hit(match depth {
                Some(0) => Feature::Return,
                Some(_) => Feature::ReturnLongjmp,
                None => Feature::ReturnStray,
            });
        }
        match depth {
            Some(depth) => self.open.truncate(self.open.len() - depth - 1),
            None if matches!(self.open.last(), Some(Left::Call { .. })) => {
                self.open.pop();
            }
            None => {}
        }
    }

    fn trap_return(&mut self, insn: &Insn) {
        self.hit_if(Feature::Mret, insn.bits == asm::MRET);
        self.hit_if(Feature::Sret, insn.bits == asm::SRET);
        self.returned_from = Some(insn.mode);
        while let Some(left) = self.open.pop() {
            if let Left::Trap { epc, behind } = left {
                self.hit(match insn.next {
                    next if next == epc => Feature::ResumeSame,
                    next if next == behind => Feature::ResumeBehind,
                    _ => Feature::ResumeElsewhere,
                });
                return;
            }
        }
    }

    fn mode_after_return(&mut self, mode: Mode) {
        if let Some(from) = self.returned_from.take() {
            self.hit_if(Feature::ModeKept, from == mode);
            self.hit_if(Feature::ModeChanged, from != mode);
        }
    }

    fn trap(&mut self, step: &TrapStep) {
        self.mode_after_return(step.mode);
        let fetch = |pc| self.image.fetch(SpaceId::FIRST, pc).map(|f| f.bits);
        let at_epc = step.trap.epc.and_then(fetch);
        let handler = step.trap.handler.and_then(fetch);
        let handler = handler.map(|b| Flow::of(b, self.isa));
        self.hit_if(
            Feature::VectorJump,
            matches!(handler, Some(Flow::Jump { .. })),
        );
        self.classify_trap(step);
        self.surroundings(step, at_epc);
        let inside = self.open.iter().any(|l| matches!(l, Left::Trap { .. }));
        self.hit_if(Feature::NestedTrap, inside);
        let epc = step.trap.epc.unwrap_or(0);
        let len = at_epc.map_or(0, |b| hartrace_isa::length(b as u16));
        let behind = epc.wrapping_add(u64::from(len));
        self.leave(Left::Trap { epc, behind });
    }

    fn classify_trap(&mut self, step: &TrapStep) {
        let interrupt = matches!(step.trap.cause, Cause::Interrupt(_));
        let bits = step.bits.map(|b| Flow::of(b, self.isa));
        self.hit(match (interrupt, bits, step.bits) {
            (true, ..) => Feature::Interrupt,
            (_, None, _) => Feature::FetchFault,
            (_, Some(Flow::Trap), Some(asm::ECALL)) => Feature::Ecall,
            (_, Some(Flow::Trap), Some(asm::EBREAK)) => Feature::Ebreak,
            (_, Some(Flow::Trap), _) => Feature::CompressedEbreak,
            _ => Feature::Exception,
        });
    }

    /// What happened right before a trap.
    fn surroundings(&mut self, step: &TrapStep, at_epc: Option<u32>) {
        let interrupt = matches!(step.trap.cause, Cause::Interrupt(_));
        match self.before {
            None => self.hit(Feature::TrapFirst),
            Some(Step::Trap(_)) if interrupt => self.hit(Feature::InterruptAtHandler),
            Some(Step::Trap(_)) => self.hit(Feature::ExceptionAtHandler),
            Some(Step::Insn(insn)) => {
                let flow = Flow::of(insn.bits, self.isa);
                let away = insn.next != insn.end();
                let branch = matches!(flow, Flow::Branch { .. });
                self.hit_if(Feature::TrapAtTarget, away && !branch);
                self.hit_if(Feature::TrapAtTakenTarget, away && branch);
                self.hit_if(Feature::TrapAfterReturn, flow == Flow::TrapReturn);
                let jump = at_epc.map(|b| Flow::of(b, self.isa));
                let pair = matches!((flow, jump), (Flow::Const { rd, .. },
                    Some(Flow::Indirect { rs1, .. })) if rd == rs1);
                self.hit_if(Feature::TrapInPair, pair && !away);
            }
            Some(Step::Signal(_)) => {}
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.hit(match signal {
            Signal::Halted
            | Signal::Reset
            | Signal::PowerDown
            | Signal::Update
            | Signal::Lost
            | Signal::Untraced => Feature::Halted,
            Signal::Resumed | Signal::PowerUp => Feature::Resumed,
            Signal::TraceOn => Feature::TraceOn,
            Signal::TraceOff => Feature::TraceOff,
            Signal::Notify => Feature::Notify,
            Signal::External(_) => Feature::External,
        });
    }
}

impl Observer for Stats {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        self.steps += 1;
        match step {
            Step::Insn(insn) => self.insn(insn),
            Step::Trap(trap) => self.trap(trap),
            Step::Signal(signal) => return self.signal(*signal),
        }
        self.before = Some(*step);
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12}  steps", self.steps)?;
        let seen = self.seen.len() as u64 + self.reached;
        writeln!(
            f,
            "{seen:>12}  of {} instructions of code reached",
            self.code
        )?;
        for &feature in Feature::ALL {
            writeln!(f, "{:>12}  {}", self.count(feature), feature.text())?;
        }
        Ok(())
    }
}
