//! Call stacks of the events of a trace.

use crate::doubt::{Doubts, Judge};
use crate::functions::Functions;
use crate::runs::Runs;
use crate::spaces::Spaces;
use crate::stacks::{Backtrace, CallTree, Grouping, Odd, Passed, StackSink, Stacks, UNNAMED};
use hartrace_flow::Unpacker;
use hartrace_flow::{
    Cause, Consumer, Context, Event, Exit, HartId, Image, Ownership, PerHart, Run, SpaceId, Trap,
};
use hartrace_isa::Flow;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Gives the runs of a trace to [`Stacks`], each with its function, and judges the
/// jumps that contradict them.
#[derive(Clone, Debug)]
pub struct Follower<'a, S = ()> {
    image: &'a Image,
    pub(crate) functions: Functions,
    pub(crate) runs: Runs,
    pub(crate) stacks: Stacks<S>,
    spaces: Spaces,
    /// Runs that leave their function without a jump, divided.
    divided: HashMap<(SpaceId, u8, u64, u32), Vec<Run>>,
    /// The contexts of harts, while programs share addresses.
    contexts: PerHart<Option<Context>>,
    judge: Judge,
}

/// What a [`Follower`] has found.
pub(crate) struct Followed<S> {
    pub(crate) functions: Functions,
    pub(crate) runs: Runs,
    pub(crate) tree: CallTree,
    pub(crate) doubts: Doubts,
    pub(crate) sink: S,
}

impl<'a, S: StackSink> Follower<'a, S> {
    /// No events yet. `sink` gets every call.
    pub fn new(image: &'a Image, functions: Functions, grouping: Grouping, sink: S) -> Self {
        Follower {
            image,
            functions,
            runs: Runs::default(),
            stacks: Stacks::new(grouping, sink),
            spaces: Spaces::default(),
            divided: HashMap::new(),
            contexts: PerHart::default(),
            judge: Judge::default(),
        }
    }

    /// One event of a hart.
    pub fn event(&mut self, id: HartId, event: &Event) {
        match event {
            Event::Run(run) => self.run(id, run, 0),
            event => {
                if self.functions.is_shared() {
                    if let Event::Context(owner) = event {
                        let context = self.contexts.of(id);
                        *context = owner.context.or(*context);
                    }
                    self.functions.enter(*self.contexts.of(id));
                }
                match event {
                    Event::Context(owner) => self.spaces.enter(id, owner, self.image),
                    Event::Code(space) => self.spaces.set(id, *space),
                    // An exception may return anywhere.
                    Event::Trap(Trap {
                        epc: None,
                        cause: Cause::Interrupt(_),
                        ..
                    }) => self.interrupt(id),
                    Event::Trap(Trap { epc: Some(epc), .. }) => {
                        self.stacks.reach(id, *epc, &mut self.functions);
                    }
                    _ => {}
                }
                self.stacks.event(id, event);
            }
        }
    }

    /// An interrupt at an unknown address: the target of the jump before it, if that is one.
    fn interrupt(&mut self, id: HartId) {
        let Some(run) = self.stacks.stopped(id) else {
            return;
        };
        let insn = self.image.fetch(self.spaces.of(id), run.source());
        let flow = insn.map(|insn| Flow::of_retired(insn.bits, insn.isa));
        let exit = match flow {
            Some(Flow::PopReturn) => Exit::Return,
            Some(Flow::TrapReturn) => Exit::TrapReturn,
            Some(Flow::Indirect { link, .. }) => Exit::indirect(link),
            _ => return,
        };
        self.stacks.interrupts(id, Run { exit, ..run });
    }

    /// The code that a hart runs.
    #[inline]
    pub(crate) fn space(&self, id: HartId) -> SpaceId {
        self.spaces.of(id)
    }

    /// Calls of a hart that will not have returned when its next run starts, those on
    /// other tracks included.
    pub fn depth(&mut self, id: HartId) -> usize {
        self.stacks.depth(id)
    }

    /// What a hart has called and what has interrupted it, and has not returned.
    pub fn backtrace(&mut self, id: HartId) -> Backtrace {
        self.stacks.backtrace(id)
    }

    /// What takes calls.
    pub fn sink(&mut self) -> &mut S {
        self.stacks.sink()
    }

    /// The jumps that nothing explains.
    #[must_use]
    pub fn doubts(&self) -> &Doubts {
        &self.judge.doubts
    }

    /// Goes on from stacks that were saved; the harts and their times.
    pub(crate) fn restore(
        &mut self,
        saved: &mut Unpacker<'_>,
    ) -> Option<Vec<(HartId, Option<u64>)>> {
        self.stacks.restore(saved, &mut self.functions)?;
        let harts = self.stacks.harts();
        for (id, context, _) in &harts {
            let owner = Ownership {
                mode: None,
                context: *context,
            };
            self.spaces.enter(*id, &owner, self.image);
        }
        Some(harts.into_iter().map(|(id, _, time)| (id, time)).collect())
    }

    /// No more events.
    pub(crate) fn finish(self) -> Followed<S> {
        let (tree, sink) = self.stacks.finish();
        Followed {
            functions: self.functions,
            runs: self.runs,
            tree,
            doubts: self.judge.doubts,
            sink,
        }
    }

    /// A run that took some time.
    #[inline(never)]
    pub(crate) fn run(&mut self, id: HartId, run: &Run, time: u64) {
        let space = self.spaces.of(id);
        if self.functions.is_shared() {
            let context = *self.contexts.of(id);
            self.functions.look(context, (self.image, space), run);
        }
        let function = self.runs.count(space, run, time, &self.functions);
        if self.runs.take_fresh() {
            self.check_case(id, run.start);
        }
        if function == Runs::DIVIDE {
            return self.run_divided(id, space, run, time);
        }
        self.pass(id, &Passed::of(run, space, function, time));
    }

    /// Runs in one function.
    #[inline(always)]
    pub(crate) fn pass(&mut self, id: HartId, passed: &Passed<'_>) {
        self.stacks.run(id, passed, &mut self.functions);
        if self.stacks.is_odd() {
            self.judge();
        }
    }

    /// Judges how a hart came to code that was not executed from here before. Where an
    /// indirect jump was right once, it is not judged again.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_case(&mut self, id: HartId, to: u64) {
        let Some(from) = self.stacks.jumped_from(id) else {
            return;
        };
        let code = (self.image, self.spaces.of(id));
        if self.judge.is_no_case(code, &self.functions, (from, to)) {
            let jump = self.stacks.no_case(id, (from, to));
            self.judge.doubt(id, &jump);
            self.stacks.sink().odd(id, &jump);
        }
    }

    #[cold]
    #[inline(never)]
    fn judge(&mut self) {
        for (id, mut jump) in self.stacks.take_odd() {
            let space = self.spaces.of(id);
            let code = (self.image, &self.functions);
            self.judge.judge((id, space), &mut jump, code.0, code.1);
            // A caller that was found is nothing odd.
            if jump.doubtful || jump.odd != Odd::Found {
                self.stacks.sink().odd(id, &jump);
            }
        }
    }

    /// A run through several functions: each part is a run of its own.
    #[cold]
    fn run_divided(&mut self, id: HartId, space: SpaceId, run: &Run, time: u64) {
        let key = (space, self.functions.program(), run.start, run.insns);
        let (image, functions) = (self.image, &self.functions);
        let parts = self.divided.entry(key);
        let parts = parts.or_insert_with(|| divide(image, space, run, functions));
        let parts = parts.clone();
        let mut left = time;
        for (at, part) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len();
            let part = match is_last {
                true => Run {
                    exit: run.exit,
                    next: run.next,
                    ..*part
                },
                false => *part,
            };
            let share = time * u64::from(part.insns) / u64::from(run.insns.max(1));
            let share = if is_last { left } else { share };
            left = left.saturating_sub(share);
            let function = self.runs.count(space, &part, share, &self.functions);
            let function = match function {
                Runs::DIVIDE => UNNAMED,
                function => function,
            };
            self.pass(id, &Passed::of(&part, space, function, share));
        }
    }
}

impl<S: StackSink> Consumer for Follower<'_, S> {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        Follower::event(self, id, event);
        ControlFlow::Continue(())
    }
}

/// The parts of a run in one function each; the last has no exit yet.
fn divide(image: &Image, space: SpaceId, run: &Run, functions: &Functions) -> Vec<Run> {
    let mut parts: Vec<Run> = Vec::new();
    let mut before = None;
    for (pc, insn) in image.insns(space, run.start, u64::from(run.insns)) {
        let function = functions.of(pc);
        let end = pc.wrapping_add(u64::from(insn.len));
        match parts.last_mut().filter(|_| before == Some(function)) {
            Some(part) => {
                part.insns += 1;
                (part.end, part.next, part.last) = (end, end, insn.len);
            }
            None => parts.push(Run {
                start: pc,
                end,
                next: end,
                insns: 1,
                exit: Exit::Stop,
                last: insn.len,
            }),
        }
        before = Some(function);
    }
    let found: u32 = parts.iter().map(|part| part.insns).sum();
    match found == run.insns {
        true => parts,
        // The image is not the one that the events were made with.
        false => vec![*run],
    }
}
