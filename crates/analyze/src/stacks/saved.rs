//! Call stacks as bytes, to go on from there later.
//!
//! Everything is saved but the tree of call paths: what a sink gets afterwards is what it
//! would have got without the interruption, except for the nodes. What is right for a sink of
//! calls is not right for a profile.

use super::hart::{Hart, UNSETTLED};
use super::sink::StackSink;
use super::thread::{Arrival, Frame, Segment, Thread, Trapped};
use super::tree::{Cost, NodeId};
use super::{Stacks, UNNAMED};
use crate::functions::Functions;
use hartrace_flow::{Cause, Context, Exit, HartId, Mode, Run};
use hartrace_flow::{Packer, Unpacker};

/// Calls that are saved at most.
const MAX_CALLS: usize = 1 << 14;

impl<S: StackSink> Stacks<S> {
    /// The stacks of all harts; `None` if they are too deep.
    pub(crate) fn save(&self, functions: &Functions, out: &mut Packer) -> Option<()> {
        let calls: usize = self
            .harts
            .iter()
            .flat_map(|(_, hart)| hart.threads())
            .map(|thread| thread.frames.len() + thread.segments.len())
            .sum();
        if calls > MAX_CALLS {
            return None;
        }
        out.number(self.harts.iter().count() as u64);
        for (id, hart) in self.harts.iter() {
            out.number(id.0.into());
            save_hart(hart, functions, out);
        }
        Some(())
    }

    /// Goes on from stacks that were saved; `None` if they cannot be read. The sink is
    /// told of every thread.
    pub(crate) fn restore(
        &mut self,
        saved: &mut Unpacker<'_>,
        functions: &mut Functions,
    ) -> Option<()> {
        for _ in 0..saved.count()? {
            let id = HartId(u32::try_from(saved.number()?).ok()?);
            self.restore_hart(id, saved, functions)?;
        }
        Some(())
    }

    /// The harts, with their contexts and times.
    pub(crate) fn harts(&self) -> Vec<(HartId, Option<Context>, Option<u64>)> {
        let harts = self.harts.iter();
        harts
            .map(|(id, hart)| (id, hart.context, hart.now))
            .collect()
    }

    /// Code without symbols got numbers: the sink gets to know them in the same order.
    fn tell_unnamed<'f>(
        &mut self,
        frames: impl IntoIterator<Item = &'f Frame>,
        functions: &Functions,
    ) {
        let unnamed = frames.into_iter().filter(|frame| frame.code == UNNAMED);
        unnamed.for_each(|frame| self.sink.unnamed(functions.get(frame.function).start));
    }

    fn restore_hart(
        &mut self,
        id: HartId,
        saved: &mut Unpacker<'_>,
        functions: &mut Functions,
    ) -> Option<()> {
        let hart = self.harts.of(id);
        hart.done = saved.number()?;
        hart.agreed = hart.done;
        hart.now = saved.option()?;
        hart.started = u32::try_from(saved.number()?).ok()?;
        hart.context = saved.option()?.map(Context);
        hart.mode = match saved.option()? {
            Some(mode) => Some(Mode::from_code(u8::try_from(mode).ok()?)?),
            None => None,
        };
        hart.site = saved.number()?;
        hart.certain = saved.number()? != 0;
        hart.last = exit(saved)?;
        hart.stopped = run(saved)?;
        hart.open = run(saved)?;
        hart.epc = saved.option()?;
        let arrival = arrival(saved)?;
        let cost = cost(saved)?;
        let inner = match saved.option()? {
            Some(when) => Some((when, frames(saved, functions)?)),
            None => None,
        };
        let inner_frames = inner.iter().flat_map(|(_, frames)| frames);
        self.tell_unnamed(inner_frames, functions);
        let threads = saved.count()?;
        for left in (0..threads).rev() {
            let mut thread = restore_thread(saved, functions)?;
            self.tell_unnamed(&thread.frames, functions);
            if let Some(first) = thread.segments.first_mut() {
                first.base = self.tree.unknown(NodeId::ROOT);
            }
            let hart = self.harts.of(id);
            hart.thread = thread;
            if !hart.thread.segments.is_empty() {
                hart.announce(false, id, &mut self.sink);
            }
            if left > 0 {
                let thread = std::mem::take(&mut hart.thread);
                hart.suspended.push(thread);
            }
        }
        let hart = self.harts.of(id);
        (hart.cost, hart.settled, hart.inner) = (cost, cost, inner);
        match arrival {
            Some(arrival) => hart.await_run(arrival),
            None => hart.expect(),
        }
        Some(())
    }
}

fn save_hart(hart: &Hart, functions: &Functions, out: &mut Packer) {
    out.number(hart.done);
    out.option(hart.now);
    out.number(hart.started.into());
    out.option(hart.context.map(|context| context.0));
    out.option(hart.mode.map(|mode| u64::from(mode.code())));
    out.number(hart.site);
    out.number(hart.certain.into());
    out.number(hart.last as u64);
    save_run(hart.stopped, out);
    save_run(hart.open, out);
    out.option(hart.epc);
    save_arrival((hart.expected == UNSETTLED).then_some(hart.arrival), out);
    save_cost(hart.cost, out);
    out.option(hart.inner.as_ref().map(|(when, _)| *when));
    if let Some((_, inner)) = &hart.inner {
        save_frames(hart, inner, functions, out);
    }
    out.number(hart.suspended.len() as u64 + 1);
    for thread in hart.threads() {
        save_thread(hart, thread, functions, out);
    }
}

fn save_cost(cost: Cost, out: &mut Packer) {
    out.number(cost.insns);
    out.number(cost.time);
}

fn cost(saved: &mut Unpacker<'_>) -> Option<Cost> {
    Some(Cost {
        insns: saved.number()?,
        time: saved.number()?,
    })
}

fn save_run(run: Option<Run>, out: &mut Packer) {
    out.option(run.map(|run| run.start));
    if let Some(run) = run {
        out.number(run.end.wrapping_sub(run.start));
        out.number(run.next);
        out.number(run.insns.into());
        out.number(run.exit as u64);
        out.number(run.last.into());
    }
}

fn run(saved: &mut Unpacker<'_>) -> Option<Option<Run>> {
    let Some(start) = saved.option()? else {
        return Some(None);
    };
    Some(Some(Run {
        start,
        end: start.wrapping_add(saved.number()?),
        next: saved.number()?,
        insns: u32::try_from(saved.number()?).ok()?,
        exit: exit(saved)?,
        last: u8::try_from(saved.number()?).ok()?,
    }))
}

fn exit(saved: &mut Unpacker<'_>) -> Option<Exit> {
    let number = usize::try_from(saved.number()?).ok()?;
    Exit::ALL.get(number).copied()
}

fn save_arrival(arrival: Option<Arrival>, out: &mut Packer) {
    let Some(arrival) = arrival else {
        return out.number(0);
    };
    match arrival {
        Arrival::Start => out.number(1),
        Arrival::Jump => out.number(2),
        Arrival::Call { ret, site } => {
            out.number(3);
            out.number(ret);
            out.number(site);
        }
        Arrival::Caller => out.number(4),
        Arrival::Contradiction => out.number(5),
        Arrival::Resumed => out.number(6),
        Arrival::Gap => out.number(7),
    }
}

fn arrival(saved: &mut Unpacker<'_>) -> Option<Option<Arrival>> {
    Some(Some(match saved.number()? {
        0 => return Some(None),
        1 => Arrival::Start,
        2 => Arrival::Jump,
        3 => Arrival::Call {
            ret: saved.number()?,
            site: saved.number()?,
        },
        4 => Arrival::Caller,
        5 => Arrival::Contradiction,
        6 => Arrival::Resumed,
        7 => Arrival::Gap,
        _ => return None,
    }))
}

fn save_thread(hart: &Hart, thread: &Thread, functions: &Functions, out: &mut Packer) {
    out.number(thread.number.into());
    out.option(thread.context.map(|context| context.0));
    out.number(thread.segments.len() as u64);
    for segment in &thread.segments {
        out.number(segment.first as u64);
        let (kind, code) = match segment.trap.map(|trap| trap.cause) {
            None => (0, None),
            Some(Cause::Exception(code)) => (1, code),
            Some(Cause::Interrupt(code)) => (2, code),
            Some(Cause::Unknown) => (3, None),
        };
        out.number(kind);
        out.option(code.map(u64::from));
        out.option(segment.trap.and_then(|trap| trap.epc));
        out.number(segment.found.into());
        save_cost(segment.cost, out);
        save_arrival(segment.pending, out);
        save_run(segment.open, out);
    }
    save_frames(hart, &thread.frames, functions, out);
}

fn save_frames(hart: &Hart, frames: &[Frame], functions: &Functions, out: &mut Packer) {
    out.number(frames.len() as u64);
    for frame in frames {
        // The numbers of functions without symbols depend on what came before.
        out.number(functions.get(frame.function).start);
        // Gaps are counted from here on: what had one is not whole.
        let flags = [frame.code == UNNAMED, hart.has_whole(frame), frame.nested];
        let flags = (0..).zip(flags).map(|(bit, flag)| u64::from(flag) << bit);
        out.number(flags.sum());
        out.option(frame.ret);
        out.number(frame.site);
        save_cost(frame.entered, out);
    }
}

fn frames(saved: &mut Unpacker<'_>, functions: &mut Functions) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    for _ in 0..saved.count()? {
        let start = saved.number()?;
        let flags = saved.number()?;
        let function = match flags & 1 {
            1 => functions.unnamed(start),
            _ => functions.of(start)?,
        };
        frames.push(Frame {
            function,
            code: match flags & 1 {
                1 => UNNAMED,
                _ => function.0,
            },
            node: NodeId::ROOT,
            ret: saved.option()?,
            site: saved.number()?,
            entered: cost(saved)?,
            whole: flags & 2 != 0,
            gaps: 0,
            nested: flags & 4 != 0,
        });
    }
    Some(frames)
}

fn restore_thread(saved: &mut Unpacker<'_>, functions: &mut Functions) -> Option<Thread> {
    let mut thread = Thread {
        number: u32::try_from(saved.number()?).ok()?,
        context: saved.option()?.map(Context),
        ..Thread::default()
    };
    for _ in 0..saved.count()? {
        thread.segments.push(restore_segment(saved)?);
    }
    thread.frames = frames(saved, functions)?;
    let mut first = 0;
    for segment in &thread.segments {
        if segment.first < first || segment.first > thread.frames.len() {
            return None;
        }
        first = segment.first;
    }
    Some(thread)
}

fn restore_segment(saved: &mut Unpacker<'_>) -> Option<Segment> {
    let first = usize::try_from(saved.number()?).ok()?;
    let kind = saved.number()?;
    let code = saved.option()?.and_then(|code| u32::try_from(code).ok());
    let epc = saved.option()?;
    let cause = match kind {
        0 => None,
        1 => Some(Cause::Exception(code)),
        2 => Some(Cause::Interrupt(code)),
        3 => Some(Cause::Unknown),
        _ => return None,
    };
    Some(Segment {
        first,
        trap: cause.map(|cause| Trapped { cause, epc }),
        base: NodeId::ROOT,
        found: u32::try_from(saved.number()?).ok()?,
        cost: cost(saved)?,
        pending: arrival(saved)?,
        open: run(saved)?,
    })
}
