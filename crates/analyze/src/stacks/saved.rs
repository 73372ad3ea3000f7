//! Call stacks as bytes, to go on from there later.
//!
//! What a trap interrupted in the middle of a call, and costs, are not saved: what follows
//! is right for a timeline, not for a profile.

use super::hart::{Arrival, Hart, UNSETTLED};
use super::sink::StackSink;
use super::thread::{Frame, Segment, Thread, Trapped};
use super::tree::{Cost, NodeId};
use super::{Stacks, UNNAMED};
use crate::functions::Functions;
use hartrace_flow::{Cause, Context, Exit, HartId};
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
        hart.site = saved.number()?;
        hart.last = *Exit::ALL.get(usize::try_from(saved.number()?).ok()?)?;
        let arrival = match saved.number()? {
            0 => None,
            code => Some(arrival(code, saved)?),
        };
        let threads = saved.count()?;
        for left in (0..threads).rev() {
            let mut thread = restore_thread(saved, functions)?;
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
    out.number(hart.site);
    out.number(hart.last as u64);
    match hart.expected == UNSETTLED {
        false => out.number(0),
        true => save_arrival(hart.arrival, out),
    }
    out.number(hart.suspended.len() as u64 + 1);
    for thread in hart.threads() {
        save_thread(thread, functions, out);
    }
}

fn save_arrival(arrival: Arrival, out: &mut Packer) {
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

fn arrival(code: u64, saved: &mut Unpacker<'_>) -> Option<Arrival> {
    Some(match code {
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
    })
}

fn save_thread(thread: &Thread, functions: &Functions, out: &mut Packer) {
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
    }
    out.number(thread.frames.len() as u64);
    for frame in &thread.frames {
        // The numbers of functions without symbols depend on what came before.
        out.number(functions.get(frame.function).start);
        out.number(u64::from(frame.code == UNNAMED) | u64::from(frame.whole) << 1);
        out.option(frame.ret);
        out.number(frame.site);
    }
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
    for _ in 0..saved.count()? {
        let start = saved.number()?;
        let flags = saved.number()?;
        let function = match flags & 1 {
            1 => functions.unnamed(start),
            _ => functions.of(start)?,
        };
        thread.frames.push(Frame {
            function,
            code: match flags & 1 {
                1 => UNNAMED,
                _ => function.0,
            },
            node: NodeId::ROOT,
            ret: saved.option()?,
            site: saved.number()?,
            entered: Cost::default(),
            whole: flags & 2 != 0,
            gaps: 0,
            nested: false,
        });
    }
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
        found: 0,
        cost: Cost::default(),
        pending: None,
        open: None,
    })
}
