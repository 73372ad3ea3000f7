//! Calls and traps as rows.

mod rows;

pub(crate) use rows::CallRows;

use crate::names::FunctionNames;
use crate::rows::Traps;
use crate::table::{Projection, Table};
use crate::zone::Zone;
use hartrace_analyze::{
    Entered, FunctionId, How, Left, Moment, OpenCall, SavedSink, StackSink, Switched, cause_name,
};
use hartrace_flow::{Cause, Context, HartId, Packer, Trap, Unpacker};
use rows::Ended;
use std::collections::{BTreeMap, HashMap};

/// Takes what happens to stacks, and makes rows of calls and traps when they end.
pub(crate) struct CallSink {
    pub(crate) names: FunctionNames,
    calls: Option<Projection>,
    traps: Option<Projection>,
    /// Whether [`HartCalls::zones`] are kept.
    zoned: bool,
    harts: Vec<(HartId, HartCalls)>,
    recent: usize,
    /// Open calls of threads that were saved.
    saved: HashMap<(HartId, u32), Vec<SavedOpen>>,
    /// There are enough rows for a batch.
    pub(crate) is_full: bool,
}

/// The rows of a hart that have not been taken.
pub(crate) struct HartCalls {
    pub(crate) calls: Option<CallRows>,
    pub(crate) traps: Option<Traps>,
    zones: Option<Zones>,
    thread: Thread,
    waiting: BTreeMap<u32, Thread>,
    /// When a call or a trap ended last.
    now: Moment,
}

/// What the rows of a stretch have in common.
struct Zones {
    calls: Zone,
    traps: Zone,
    /// Whether each function is among those of the calls, and of the traps.
    called: Vec<u8>,
}

/// A thread of a hart.
#[derive(Default)]
struct Thread {
    number: u32,
    context: Option<u64>,
    open: Vec<Open>,
    /// The traps among these.
    traps: Vec<Trap>,
    /// Calls among these.
    depth: u32,
}

/// A call or a trap that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    what: What,
    begin: Moment,
}

/// Of a trap there is more in [`Thread::traps`]: calls are many, and this is small.
#[derive(Clone, Copy, Debug)]
enum What {
    Call(FunctionId),
    Trap,
}

/// A call or a trap that was saved. Which function it is, the stacks know.
struct SavedOpen {
    begin: Moment,
    trap: Option<Trap>,
}

impl CallSink {
    /// Rows of calls and of traps, if they are wanted.
    pub(crate) fn new(
        names: FunctionNames,
        calls: Option<Projection>,
        traps: Option<Projection>,
        zoned: bool,
    ) -> CallSink {
        CallSink {
            names,
            calls,
            traps,
            zoned,
            harts: Vec::new(),
            recent: 0,
            saved: HashMap::new(),
            is_full: false,
        }
    }

    /// The harts with their rows, and all names.
    pub(crate) fn harts(
        &mut self,
    ) -> (
        impl Iterator<Item = (HartId, &mut HartCalls)>,
        &mut FunctionNames,
    ) {
        let harts = self.harts.iter_mut().map(|(id, hart)| (*id, hart));
        (harts, &mut self.names)
    }

    /// What the rows since the last time have in common.
    pub(crate) fn take_zones(&mut self) -> Vec<Zone> {
        let mut all = Vec::new();
        for (id, hart) in &mut self.harts {
            let Some(zones) = &mut hart.zones else {
                continue;
            };
            let taken = std::mem::replace(zones, Zones::new(*id));
            all.extend(taken.finish());
        }
        all
    }

    #[inline]
    fn hart(&mut self, id: HartId) -> &mut HartCalls {
        let recent = self.harts.get(self.recent).map(|(recent, _)| *recent);
        if recent != Some(id) {
            self.find(id);
        }
        // Found or made just now.
        #[allow(clippy::indexing_slicing)]
        &mut self.harts[self.recent].1
    }

    #[cold]
    fn find(&mut self, id: HartId) {
        let known = self.harts.iter().position(|(known, _)| *known == id);
        self.recent = known.unwrap_or_else(|| {
            let hart = HartCalls {
                calls: self.calls.map(CallRows::new),
                traps: self.traps.map(Traps::new),
                zones: self.zoned.then(|| Zones::new(id)),
                thread: Thread::default(),
                waiting: BTreeMap::new(),
                now: Moment::default(),
            };
            self.harts.push((id, hart));
            self.harts.len() - 1
        });
    }

    /// A trap of a thread has ended.
    fn end_trap(&mut self, id: HartId, trap: &Trap, begin: Moment, how: How, end: Moment) {
        let below = self.hart(id).thread.open.iter().rev();
        let function = below.clone().find_map(Open::function);
        let key = function.and_then(|function| self.names.key(function));
        let hart = self.hart(id);
        if let Some(zones) = &mut hart.zones {
            zones.add(Table::Traps, (begin, end), hart.thread.context, key);
        }
        let Some(rows) = &mut hart.traps else {
            return;
        };
        rows.thread.push(hart.thread.number);
        rows.context.push(hart.thread.context);
        let (kind, code) = match trap.cause {
            Cause::Exception(code) => (0, code),
            Cause::Interrupt(code) => (1, code),
            Cause::Unknown => (2, None),
        };
        rows.kind.push(Some(kind));
        rows.code.push(code);
        rows.cause.push(Some(&cause_name(trap.cause)));
        rows.address.push(trap.epc);
        rows.handler.push(trap.handler);
        rows.value.push(trap.tval);
        rows.function.push(key);
        rows.depth.push(hart.thread.depth);
        rows.begin.push(begin.insn);
        rows.end.push(end.insn);
        rows.begin_time.push(begin.time);
        rows.end_time.push(end.time);
        rows.ended.push(Some(how as u8));
        self.is_full |= rows.end_row();
    }

    /// The traps inside the innermost call have ended, though nothing says how.
    #[inline]
    fn lose_traps(&mut self, id: HartId, at: Moment) {
        while let Some((trap, begin)) = self.hart(id).thread.pop_trap() {
            self.end_trap(id, &trap, begin, How::Lost, at);
        }
    }

    /// Ends what the thread of a hart has not ended.
    fn lose(&mut self, id: HartId, at: Moment) {
        while let Some(open) = self.hart(id).thread.open.last().copied() {
            match open.what {
                What::Trap => self.lose_traps(id, at),
                What::Call(function) => {
                    let left = Outcome {
                        function,
                        site: 0,
                        cost: None,
                        how: How::Lost,
                        whole: false,
                        at,
                    };
                    self.end_call(id, &left);
                }
            }
        }
    }

    /// The trace ends: so do threads that do not run.
    pub(crate) fn finish(&mut self, ends: &[(HartId, Moment)]) {
        for (id, at) in ends {
            // The last run may have waited for its time.
            let now = self.hart(*id).now;
            let at = if now.insn > at.insn { &now } else { at };
            self.lose(*id, *at);
            let waiting = std::mem::take(&mut self.hart(*id).waiting);
            for thread in waiting.into_values() {
                self.hart(*id).thread = thread;
                self.lose(*id, *at);
            }
        }
    }

    /// The innermost call has ended.
    #[inline]
    fn end_call(&mut self, id: HartId, left: &Outcome) {
        let mut hart = self.hart(id);
        if let Some(What::Trap) = hart.thread.open.last().map(|open| open.what) {
            self.lose_traps(id, left.at);
            hart = self.hart(id);
        }
        hart.now = left.at;
        let thread = &mut hart.thread;
        let Some(open) = thread.open.pop() else {
            return;
        };
        thread.depth = thread.depth.saturating_sub(1);
        let caller = thread.open.last().and_then(Open::function);
        let ended = Ended {
            function: left.function,
            caller,
            thread: thread.number,
            context: thread.context,
            depth: thread.depth,
            site: left.site,
            begin: open.begin,
            end: left.at,
            cost: left.cost,
            how: left.how,
            whole: left.whole,
        };
        self.add_call(&ended);
    }

    /// Makes a row of a call of the hart that was looked for last.
    #[inline]
    fn add_call(&mut self, call: &Ended) {
        let Some((_, hart)) = self.harts.get_mut(self.recent) else {
            return;
        };
        if let Some(zones) = &mut hart.zones {
            let key = self.names.key(call.function);
            zones.add(Table::Calls, (call.begin, call.end), call.context, key);
        }
        if let Some(rows) = &mut hart.calls {
            self.is_full |= rows.push(*call, &self.names);
        }
    }
}

/// How a call has ended.
struct Outcome {
    function: FunctionId,
    site: u64,
    /// Instructions and time.
    cost: Option<(u64, u64)>,
    how: How,
    whole: bool,
    at: Moment,
}

impl Open {
    const fn function(&self) -> Option<FunctionId> {
        match self.what {
            What::Call(function) => Some(function),
            What::Trap => None,
        }
    }
}

impl Zones {
    fn new(id: HartId) -> Zones {
        Zones {
            calls: Zone::new(Table::Calls, id.0),
            traps: Zone::new(Table::Traps, id.0),
            called: Vec::new(),
        }
    }

    #[inline]
    fn add(
        &mut self,
        table: Table,
        (begin, end): (Moment, Moment),
        context: Option<u64>,
        function: Option<i32>,
    ) {
        let (zone, bit) = match table {
            Table::Calls => (&mut self.calls, 1),
            _ => (&mut self.traps, 2),
        };
        zone.rows = Some(zone.rows.unwrap_or(0) + 1);
        zone.begin.add(begin.insn);
        zone.end.add(end.insn);
        begin.time.into_iter().for_each(|t| zone.begin_time.add(t));
        end.time.into_iter().for_each(|t| zone.end_time.add(t));
        zone.add_context(context);
        let Some(key) = function.and_then(|key| usize::try_from(key).ok()) else {
            return;
        };
        if key >= self.called.len() {
            self.called.resize(key + 1, 0);
        }
        if let Some(called) = self.called.get_mut(key) {
            *called |= bit;
        }
    }

    fn finish(self) -> impl Iterator<Item = Zone> {
        let of = |mut zone: Zone, bit: u8| {
            let called = (0u32..).zip(&self.called);
            let called = called.filter(|(_, bits)| *bits & bit != 0);
            zone.functions = called.map(|(key, _)| key).collect();
            zone.contexts.sort_unstable();
            zone
        };
        let both = [of(self.calls, 1), of(self.traps, 2)];
        both.into_iter().filter(|zone| zone.rows.is_some())
    }
}

impl StackSink for CallSink {
    const TIMES: bool = true;

    fn unnamed(&mut self, address: u64) {
        self.names.unnamed(address);
    }

    #[inline]
    fn entered(&mut self, id: HartId, call: &Entered) {
        let hart = self.hart(id);
        hart.thread.depth += 1;
        hart.thread.open.push(Open {
            what: What::Call(call.function),
            begin: call.at,
        });
    }

    #[inline]
    fn left(&mut self, id: HartId, call: &Left) {
        let left = Outcome {
            function: call.function,
            site: call.site,
            cost: Some((call.cost.insns, call.cost.time)),
            how: call.how,
            whole: call.whole,
            at: call.at,
        };
        self.end_call(id, &left);
    }

    fn trapped(&mut self, id: HartId, trap: &Trap, at: Moment) {
        self.hart(id).thread.push_trap(*trap, at);
    }

    fn resumed(&mut self, id: HartId, how: How, at: Moment) {
        if let Some((trap, begin)) = self.hart(id).thread.pop_trap() {
            self.end_trap(id, &trap, begin, how, at);
        }
    }

    fn switched(&mut self, id: HartId, to: &Switched<'_>) {
        let saved = self.saved.remove(&(id, to.number));
        let hart = self.hart(id);
        let context = to.context.map(|Context(number)| number);
        if hart.thread.number != to.number || hart.thread.open.is_empty() {
            let next = hart.waiting.remove(&to.number);
            let next = next.unwrap_or_else(|| Thread::new(to, saved));
            let before = std::mem::replace(&mut hart.thread, next);
            if !before.open.is_empty() {
                hart.waiting.insert(before.number, before);
            }
        }
        hart.thread.context = context;
    }

    fn ended(&mut self, id: HartId, thread: u32, at: Moment) {
        let hart = self.hart(id);
        if hart.thread.number == thread {
            return self.lose(id, at);
        }
        let Some(ended) = hart.waiting.remove(&thread) else {
            return;
        };
        let current = std::mem::replace(&mut hart.thread, ended);
        self.lose(id, at);
        self.hart(id).thread = current;
    }
}

impl Thread {
    /// A thread with what it has called, which began at the times that were saved, or now.
    fn new(to: &Switched<'_>, saved: Option<Vec<SavedOpen>>) -> Thread {
        let mut saved = saved.unwrap_or_default().into_iter();
        let mut thread = Thread {
            number: to.number,
            ..Thread::default()
        };
        for call in to.open() {
            let known = saved.next();
            let begin = known.as_ref().map_or(to.at, |known| known.begin);
            match call {
                OpenCall::Call(function) => {
                    thread.depth += 1;
                    let what = What::Call(function);
                    thread.open.push(Open { what, begin });
                }
                OpenCall::Trap(cause, epc) => {
                    let trap = known.and_then(|known| known.trap).unwrap_or(Trap {
                        epc,
                        handler: None,
                        cause,
                        tval: None,
                        pending: None,
                    });
                    thread.push_trap(trap, begin);
                }
            }
        }
        thread
    }

    fn push_trap(&mut self, trap: Trap, begin: Moment) {
        let what = What::Trap;
        self.traps.push(trap);
        self.open.push(Open { what, begin });
    }

    /// The innermost trap, if it is not around a call, and when it began.
    #[inline]
    fn pop_trap(&mut self) -> Option<(Trap, Moment)> {
        let open = self.open.last()?;
        if let What::Call(_) = open.what {
            return None;
        }
        let begin = open.begin;
        self.open.pop();
        Some((self.traps.pop()?, begin))
    }
}

/// Functions are known from the stacks, which are saved, too.
impl SavedSink for CallSink {
    fn save(&self, out: &mut Packer) {
        out.number(self.harts.len() as u64);
        for (id, hart) in &self.harts {
            out.number(id.0.into());
            let threads = hart.waiting.values().chain([&hart.thread]);
            let threads: Vec<&Thread> = threads.filter(|t| !t.open.is_empty()).collect();
            out.number(threads.len() as u64);
            for thread in threads {
                out.number(thread.number.into());
                out.number(thread.open.len() as u64);
                let mut traps = thread.traps.iter();
                for open in &thread.open {
                    let trap = match open.what {
                        What::Call(_) => None,
                        What::Trap => traps.next(),
                    };
                    save_open(open.begin, trap, out);
                }
            }
        }
    }

    fn restore(&mut self, saved: &mut Unpacker<'_>) -> Option<()> {
        for _ in 0..saved.count()? {
            let id = HartId(u32::try_from(saved.number()?).ok()?);
            for _ in 0..saved.count()? {
                let number = u32::try_from(saved.number()?).ok()?;
                let mut open = Vec::new();
                for _ in 0..saved.count()? {
                    open.push(SavedOpen::restore(saved)?);
                }
                self.saved.insert((id, number), open);
            }
        }
        Some(())
    }
}

fn save_open(begin: Moment, trap: Option<&Trap>, out: &mut Packer) {
    out.number(begin.insn);
    out.option(begin.time);
    let Some(trap) = trap else {
        return out.number(0);
    };
    let (kind, code) = match trap.cause {
        Cause::Exception(code) => (1, code),
        Cause::Interrupt(code) => (2, code),
        Cause::Unknown => (3, None),
    };
    out.number(kind);
    out.option(code.map(u64::from));
    for part in [trap.epc, trap.handler, trap.tval, trap.pending] {
        out.option(part);
    }
}

impl SavedOpen {
    fn restore(saved: &mut Unpacker<'_>) -> Option<SavedOpen> {
        let begin = Moment {
            insn: saved.number()?,
            time: saved.option()?,
        };
        let kind = saved.number()?;
        if kind == 0 {
            return Some(SavedOpen { begin, trap: None });
        }
        let code = saved.option()?.and_then(|code| u32::try_from(code).ok());
        let cause = match kind {
            1 => Cause::Exception(code),
            2 => Cause::Interrupt(code),
            3 => Cause::Unknown,
            _ => return None,
        };
        let trap = Trap {
            cause,
            epc: saved.option()?,
            handler: saved.option()?,
            tval: saved.option()?,
            pending: saved.option()?,
        };
        let trap = Some(trap);
        Some(SavedOpen { begin, trap })
    }
}
