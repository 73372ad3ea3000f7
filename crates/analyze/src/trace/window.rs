//! Parts of a trace: from one point to another, or around what is searched for.

use crate::spaces::Spaces;
use crate::stacks::OddJump;
use hartrace_flow::{Cause, Consumer, Event, Exit, HartId, Image, Ownership, Run, SpaceId};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// A point in a trace: the n-th time that something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// What happens.
    pub kind: PointKind,
    /// Which time, counted from 1.
    pub nth: u64,
}

/// What happens at a [`Point`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// The instruction with this number, counted from 0 over all harts.
    Index(u64),
    /// The first timestamp that is not before this time.
    Time(u64),
    /// The instruction at this address is executed.
    Address(u64),
    /// A trap.
    Trap,
    /// An exception, perhaps only with this code.
    Exception(Option<u32>),
    /// An interrupt, perhaps only with this code.
    Interrupt(Option<u32>),
    /// Something is missing.
    Gap,
    /// A jump that contradicts the call stack.
    Doubt,
}

impl PointKind {
    /// Whether one of the instructions may be the point.
    #[inline]
    fn touches(self, run: &Run, index: u64) -> bool {
        match self {
            PointKind::Index(n) => n.wrapping_sub(index) < u64::from(run.insns),
            PointKind::Address(address) => (run.start..run.end).contains(&address),
            _ => false,
        }
    }

    fn is_insn(self, pc: u64, index: u64) -> bool {
        match self {
            PointKind::Index(n) => n == index,
            PointKind::Address(address) => address == pc,
            _ => false,
        }
    }

    fn is_event(self, event: &Event) -> bool {
        let same = |want: Option<u32>, code: Option<u32>| want.is_none() || want == code;
        match (self, event) {
            (PointKind::Time(time), Event::Time(now)) => *now >= time,
            (PointKind::Trap, Event::Trap(_)) | (PointKind::Gap, Event::Gap(_)) => true,
            (PointKind::Exception(want), Event::Trap(trap)) => match trap.cause {
                Cause::Exception(code) => same(want, code),
                _ => false,
            },
            (PointKind::Interrupt(want), Event::Trap(trap)) => match trap.cause {
                Cause::Interrupt(code) => same(want, code),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Which part of a trace is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowOptions {
    /// From here on; from the start without it.
    pub from: Option<Point>,
    /// Up to here, without it; looked for after the start.
    pub until: Option<Point>,
    /// Only where this happens, and so many instructions before and after it.
    pub find: Option<Point>,
    /// Instructions before and after what is found.
    pub context: u64,
    /// All that is found, not only the first.
    pub every: bool,
}

/// A part of what a trace reports.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Event(Event),
    Doubt(OddJump),
}

impl Item {
    fn insns(&self) -> u64 {
        match self {
            Item::Event(Event::Run(run)) => u64::from(run.insns),
            _ => 0,
        }
    }
}

/// Takes what a [`Window`] shows.
pub(super) trait Show {
    /// What follows is not next to what was shown before.
    fn skip(&mut self, to: Skip);
    /// An item with the depth of calls it is at.
    fn show(&mut self, hart: HartId, item: &Item, depth: u8);
}

/// Where a part begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skip {
    /// The number of the next instruction.
    pub(super) index: u64,
    /// The last time that was reported.
    pub(super) time: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    Done,
}

/// Passes on a part of a trace. Runs are cut where it begins and ends.
pub struct Window<'a> {
    image: &'a Image,
    options: WindowOptions,
    state: State,
    /// Instructions so far.
    index: u64,
    time: Option<u64>,
    spaces: Spaces,
    /// Times that each point has come.
    seen: [u64; 3],
    /// What may be shown if something is found: number of its first instruction, hart,
    /// item, depth, time.
    held: VecDeque<Held>,
    held_insns: u64,
    /// Instructions that are still shown after what was found; the end of what was
    /// found is included.
    after: u64,
    /// The number after the last instruction that was shown.
    shown: Option<u64>,
    found: u64,
    /// The first instruction, if the end is not after it.
    begins_late: Option<u64>,
}

struct Held {
    index: u64,
    time: Option<u64>,
    hart: HartId,
    item: Item,
    depth: u8,
}

/// Places in [`Window::seen`].
const FROM: usize = 0;
const UNTIL: usize = 1;
const FIND: usize = 2;

/// Items that are held beside instructions: contexts and times may come without end.
const MAX_HELD: usize = 1 << 16;

impl<'a> Window<'a> {
    /// A window on a trace of a program.
    #[must_use]
    pub fn new(image: &'a Image, options: WindowOptions) -> Window<'a> {
        Window {
            image,
            options,
            state: match options.from {
                Some(_) => State::Before,
                None => State::Inside,
            },
            index: 0,
            time: None,
            spaces: Spaces::default(),
            seen: [0; 3],
            held: VecDeque::new(),
            held_insns: 0,
            after: 0,
            shown: None,
            found: 0,
            begins_late: None,
        }
    }

    /// Whether nothing more will be shown.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The point that never came: the start, or what was searched for.
    #[must_use]
    pub fn missing(&self) -> Option<Point> {
        match self.state {
            State::Before => self.options.from,
            _ if self.found == 0 && self.begins_late.is_none() => self.options.find,
            _ => None,
        }
    }

    /// The number of the first instruction, if the end is not after it: nothing is
    /// shown.
    #[must_use]
    pub fn begins_late(&self) -> Option<u64> {
        self.begins_late
    }

    /// Whether a point, of which there is only one, has passed.
    fn has_passed(&self, point: Point) -> bool {
        match point.kind {
            PointKind::Index(n) => n <= self.index,
            PointKind::Time(time) => self.time.is_some_and(|now| time <= now),
            _ => false,
        }
    }

    /// Instructions so far.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.index
    }

    pub(super) fn take(&mut self, hart: HartId, item: &Item, depth: u8, out: &mut dyn Show) {
        if let Item::Event(Event::Run(run)) = item {
            return self.run(hart, run, depth, out);
        }
        match item {
            Item::Event(Event::Time(time)) => self.time = Some(*time),
            Item::Event(Event::Context(owner)) => self.own(hart, owner),
            Item::Event(Event::Code(space)) => {
                // Nothing is shown of it, but what is shown after it depends on it.
                self.spaces.set(hart, *space);
                return match self.held.is_empty() {
                    true => out.show(hart, item, depth),
                    false => self.hold(self.held(hart, *item, depth)),
                };
            }
            _ => {}
        }
        let happens = |point: &Point| match item {
            Item::Event(event) => point.kind.is_event(event),
            Item::Doubt(_) => point.kind == PointKind::Doubt,
        };
        if !self.pass(happens, out) {
            return self.keep(hart, *item, depth, out);
        }
        // It is no instruction: those around it are counted without it.
        let held = self.held(hart, *item, depth);
        self.give(&held, out);
        self.after = self.options.context;
        if self.after == 0 && !self.options.every {
            self.state = State::Done;
        }
    }

    fn own(&mut self, hart: HartId, owner: &Ownership) {
        self.spaces.enter(hart, owner, self.image);
    }

    /// Instructions in a row.
    fn run(&mut self, hart: HartId, run: &Run, depth: u8, out: &mut dyn Show) {
        let WindowOptions {
            from, until, find, ..
        } = self.options;
        let mut points = [from, until, find].into_iter().flatten();
        let index = self.index;
        if !points.any(|point| point.kind.touches(run, index)) {
            self.keep(hart, Item::Event(Event::Run(*run)), depth, out);
            return;
        }
        let space = self.spaces.of(hart);
        let insns = self.image.insns(space, run.start, u64::from(run.insns));
        let mut first = 0;
        for ((pc, _), n) in insns.zip(0u32..) {
            let index = index + u64::from(n);
            let mut points = [from, until, find].into_iter().flatten();
            if points.any(|point| point.kind.is_insn(pc, index)) {
                self.part(hart, (space, run), (first, n), depth, out);
                first = n;
                self.pass(|point| point.kind.is_insn(pc, index), out);
            }
        }
        self.part(hart, (space, run), (first, run.insns), depth, out);
    }

    /// Passes what may be a point; whether it is one that is looked for. What comes next
    /// is shown then.
    fn pass(&mut self, happens: impl Fn(&Point) -> bool, out: &mut dyn Show) -> bool {
        let WindowOptions {
            from,
            until,
            find,
            context,
            every,
        } = self.options;
        let is_late = until.is_some_and(|until| self.has_passed(until));
        let mut is = |point: Option<Point>, seen: usize| {
            let Some(point) = point.filter(|point| happens(point)) else {
                return false;
            };
            let Some(seen) = self.seen.get_mut(seen) else {
                return false;
            };
            *seen += 1;
            // All of a kind from the n-th on, where all are looked for.
            *seen >= point.nth
        };
        if self.state == State::Inside && is(until, UNTIL) {
            self.state = State::Done;
            return false;
        }
        if self.state == State::Before && is(from, FROM) {
            self.state = State::Inside;
            if is_late {
                self.begins_late = Some(self.index);
                self.state = State::Done;
            }
        }
        if self.state != State::Inside || !is(find, FIND) || self.found > 0 && !every {
            return false;
        }
        self.found += 1;
        self.after = context + 1;
        self.held_insns = 0;
        for held in std::mem::take(&mut self.held) {
            self.give(&held, out);
        }
        true
    }

    /// Some of the instructions of a run.
    fn part(
        &mut self,
        hart: HartId,
        (space, run): (SpaceId, &Run),
        (first, end): (u32, u32),
        depth: u8,
        out: &mut dyn Show,
    ) {
        if let Some(part) = cut(self.image, space, run, (first, end)) {
            self.keep(hart, Item::Event(Event::Run(part)), depth, out);
        }
    }

    const fn held(&self, hart: HartId, item: Item, depth: u8) -> Held {
        Held {
            index: self.index,
            time: self.time,
            hart,
            item,
            depth,
        }
    }

    /// Shows an item, holds it, or drops it.
    fn keep(&mut self, hart: HartId, item: Item, depth: u8, out: &mut dyn Show) {
        let held = self.held(hart, item, depth);
        self.index += item.insns();
        if self.state != State::Inside {
            return;
        }
        if self.options.find.is_none() {
            return self.give(&held, out);
        }
        if self.after == 0 {
            return self.hold(held);
        }
        let Item::Event(Event::Run(run)) = item else {
            return self.give(&held, out);
        };
        let many = u64::from(run.insns).min(self.after) as u32;
        self.after -= u64::from(many);
        let space = self.spaces.of(hart);
        if let Some(shown) = cut(self.image, space, &run, (0, many)) {
            let item = Item::Event(Event::Run(shown));
            self.give(&Held { item, ..held }, out);
        }
        if self.after == 0 && !self.options.every {
            self.state = State::Done;
        } else if let Some(rest) = cut(self.image, space, &run, (many, run.insns)) {
            self.hold(Held {
                index: held.index + u64::from(many),
                item: Item::Event(Event::Run(rest)),
                ..held
            });
        }
    }

    /// Holds an item as long as it may be before something that is found.
    fn hold(&mut self, held: Held) {
        self.held_insns += held.item.insns();
        self.held.push_back(held);
        loop {
            let over = self.held_insns.saturating_sub(self.options.context);
            if over == 0 && self.held.len() <= MAX_HELD {
                return;
            }
            let Some(first) = self.held.front_mut() else {
                return;
            };
            let insns = first.item.insns();
            if insns > over
                && let Item::Event(Event::Run(run)) = first.item
            {
                let space = self.spaces.of(first.hart);
                let kept = cut(self.image, space, &run, (over as u32, run.insns));
                if let Some(kept) = kept {
                    first.item = Item::Event(Event::Run(kept));
                    first.index += over;
                    self.held_insns -= over;
                    return;
                }
            }
            self.held_insns -= insns;
            self.held.pop_front();
        }
    }

    fn give(&mut self, held: &Held, out: &mut dyn Show) {
        let begins = match self.shown {
            Some(shown) => shown != held.index,
            None => held.index > 0,
        };
        if begins {
            out.skip(Skip {
                index: held.index,
                time: held.time,
            });
        }
        self.shown = Some(held.index + held.item.insns());
        out.show(held.hart, &held.item, held.depth);
    }
}

/// Instructions of a run, from one to before another; `None` for none.
fn cut(image: &Image, space: SpaceId, run: &Run, (first, end): (u32, u32)) -> Option<Run> {
    if first == 0 && end >= run.insns {
        return Some(*run);
    }
    let count = end.checked_sub(first).filter(|count| *count > 0)?;
    let mut insns = image.insns(space, run.start, run.insns.into());
    let (start, _) = insns.nth(first as usize)?;
    let mut insns = image.insns(space, start, count.into());
    let (last, insn) = insns.nth(count as usize - 1)?;
    let after = last.wrapping_add(u64::from(insn.len));
    Some(match end >= run.insns {
        true => Run {
            start,
            insns: count,
            ..*run
        },
        false => Run {
            start,
            end: after,
            next: after,
            insns: count,
            exit: Exit::Stop,
            last: insn.len,
        },
    })
}

/// Passes the events of a [`Window`] on to another consumer.
pub struct Windowed<'a, C> {
    /// What takes the events.
    pub inner: C,
    /// Which part it gets.
    pub window: Window<'a>,
}

struct PassOn<'o, C>(&'o mut C);

impl<C: Consumer> Show for PassOn<'_, C> {
    fn skip(&mut self, _: Skip) {}

    fn show(&mut self, hart: HartId, item: &Item, _: u8) {
        if let Item::Event(event) = item {
            // Pauses are asked for when the window is done.
            let _ = self.0.event(hart, event);
        }
    }
}

impl<C: Consumer> Consumer for Windowed<'_, C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.window.is_done() {
            return ControlFlow::Break(());
        }
        let mut out = PassOn(&mut self.inner);
        self.window.take(hart, &Item::Event(*event), 0, &mut out);
        ControlFlow::Continue(())
    }
}
