//! Times between two timestamps of a trace, estimated.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use crate::per_hart::PerHart;
use crate::{Consumer, Event, Exit, HartId, Image, Packer, Run, SpaceId, Unpacker};

/// Events that are kept until the next timestamp.
const MOST: usize = 1 << 20;

/// Places for runs that were looked at, a power of two.
const RECENT: usize = 1 << 10;

/// Runs with times that are passed on together.
const TOGETHER: usize = 64;

/// The instruction `wfi`.
const WFI: u32 = 0x1050_0073;

/// A [`Consumer`] that gives every run a time of its own, as an [`Event::Time`]
/// before it.
///
/// A trace has timestamps now and then. Between two of them every instruction is
/// given the same share of the interval, and a `wfi` what is left when the other
/// instructions take as long as they do elsewhere in the trace. These times are
/// estimates. Instructions before the first timestamp, around a gap and after the
/// last one have none; [`Interpolate::spread`] counts the others.
///
/// Events of one hart stay in order; those of several are no longer interleaved
/// as they were.
pub struct Interpolate<'a, C> {
    inner: C,
    state: State<'a>,
}

/// Everything but the consumer: compiled once for all.
struct State<'a> {
    image: &'a Image,
    harts: PerHart<Hart>,
    spread: Spread,
    waits: Waits,
}

/// The `wfi` in each run, by the start and the length of the run.
#[derive(Default)]
struct Waits {
    all: BTreeMap<Key, Option<Wait>>,
    /// Those that were asked for last: [`RECENT`] places, or none yet.
    recent: Vec<(Key, Option<Wait>)>,
}

/// Start and instructions of a run.
type Key = (u64, u32);

/// What was estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Timestamps.
    pub stamps: u64,
    /// Instructions between two timestamps: their times are estimates.
    pub insns: u64,
    /// Instructions that are not between two timestamps, or too far from one.
    pub untimed: u64,
    /// The most instructions between two timestamps.
    pub longest: u64,
}

#[derive(Debug, Default)]
struct Hart {
    /// The last timestamp.
    since: Option<u64>,
    /// Events after it, and the instructions in them.
    held: Vec<Event>,
    insns: u64,
    /// Runs that have got their times and are not passed on yet.
    timed: Vec<(u64, Run)>,
    /// Time and instructions of the intervals without `wfi`.
    known: (u64, u64),
}

impl<'a, C: Consumer> Interpolate<'a, C> {
    /// Passes events with times on to `inner`. The code is searched for `wfi`.
    pub fn new(image: &'a Image, inner: C) -> Interpolate<'a, C> {
        let state = State {
            image,
            harts: PerHart::default(),
            spread: Spread::default(),
            waits: Waits::default(),
        };
        Interpolate { inner, state }
    }

    /// Whether events wait for the next timestamp.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let mut harts = self.state.harts.iter();
        harts.any(|(_, hart)| !hart.held.is_empty())
    }

    /// The events of a hart go on from this time.
    pub fn go_on(&mut self, id: HartId, time: u64) {
        self.state.harts.of(id).since = Some(time);
    }

    /// Writes what the times of later events depend on; `None` while events wait.
    pub fn save(&self, out: &mut Packer) -> Option<()> {
        self.state.save(out)
    }

    /// Goes on from what was written; `None` if it cannot be read.
    pub fn restore(&mut self, saved: &mut Unpacker<'_>) -> Option<()> {
        self.state.restore(saved)
    }

    /// What takes the events.
    pub fn inner(&mut self) -> &mut C {
        &mut self.inner
    }

    /// What was estimated so far.
    #[must_use]
    pub const fn spread(&self) -> Spread {
        self.state.spread
    }

    /// No more events: passes on those that wait, and gives `inner` back.
    pub fn finish(mut self) -> (C, Spread) {
        self.state.finish(&mut self.inner);
        (self.inner, self.state.spread)
    }
}

impl<C: Consumer> Consumer for Interpolate<'_, C> {
    fn event(&mut self, id: HartId, event: &Event) -> ControlFlow<()> {
        self.state.event(id, event, &mut self.inner)
    }

    fn runs(&mut self, id: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.state.runs(id, runs, &mut self.inner)
    }
}

impl State<'_> {
    fn event(&mut self, id: HartId, event: &Event, out: &mut dyn Consumer) -> ControlFlow<()> {
        match event {
            Event::Time(time) => self.stamp(id, *time, out),
            Event::Gap(_) => {
                // How long it took nothing reports.
                self.harts.of(id).since = None;
                self.keep(id, *event, out)
            }
            event => self.keep(id, *event, out),
        }
    }

    fn runs(&mut self, id: HartId, runs: &[Run], out: &mut dyn Consumer) -> ControlFlow<()> {
        let hart = self.harts.of(id);
        if hart.since.is_some() && hart.held.len() + runs.len() < MOST {
            let insns = runs.iter().map(|run| u64::from(run.insns));
            hart.insns += insns.sum::<u64>();
            hart.held.extend(runs.iter().map(|run| Event::Run(*run)));
            return ControlFlow::Continue(());
        }
        let mut flow = ControlFlow::Continue(());
        for run in runs {
            // A pause comes after the slice, never inside it.
            if self.keep(id, Event::Run(*run), out).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    fn save(&self, out: &mut Packer) -> Option<()> {
        out.number(self.harts.iter().count() as u64);
        for (id, hart) in self.harts.iter() {
            if !hart.held.is_empty() {
                return None;
            }
            out.number(id.0.into());
            out.option(hart.since);
            out.number(hart.known.0);
            out.number(hart.known.1);
        }
        Some(())
    }

    fn restore(&mut self, saved: &mut Unpacker<'_>) -> Option<()> {
        for _ in 0..saved.count()? {
            let hart = self.harts.of(HartId(u32::try_from(saved.number()?).ok()?));
            hart.since = saved.option()?;
            hart.known = (saved.number()?, saved.number()?);
        }
        Some(())
    }

    fn finish(&mut self, out: &mut dyn Consumer) {
        for (id, hart) in self.harts.iter_mut() {
            // A pause changes nothing at the end.
            let _ = hart.give_up(id, out, &mut self.spread);
        }
    }

    fn stamp(&mut self, id: HartId, time: u64, out: &mut dyn Consumer) -> ControlFlow<()> {
        let hart = self.harts.of(id);
        self.spread.stamps += 1;
        let since = hart.since.replace(time);
        let Some(since) = since.filter(|since| *since < time && hart.insns > 0) else {
            let flow = hart.give_up(id, out, &mut self.spread);
            out.event(id, &Event::Time(time))?;
            return flow;
        };
        self.spread.insns += hart.insns;
        self.spread.longest = self.spread.longest.max(hart.insns);
        let (image, waits) = (self.image, &mut self.waits);
        let mut wait_in = |run: &Run| waits.of(run, image);
        hart.spread(id, (since, time), &mut wait_in, out)
    }

    fn keep(&mut self, id: HartId, event: Event, out: &mut dyn Consumer) -> ControlFlow<()> {
        let hart = self.harts.of(id);
        if let Event::Run(run) = &event {
            hart.insns += u64::from(run.insns);
        }
        hart.held.push(event);
        if hart.since.is_some() && hart.held.len() < MOST {
            return ControlFlow::Continue(());
        }
        hart.since = None;
        hart.give_up(id, out, &mut self.spread)
    }
}

impl Hart {
    /// Passes on the events that wait, without times.
    fn give_up(
        &mut self,
        id: HartId,
        inner: &mut dyn Consumer,
        spread: &mut Spread,
    ) -> ControlFlow<()> {
        spread.untimed += core::mem::take(&mut self.insns);
        let mut flow = ControlFlow::Continue(());
        for event in self.held.drain(..) {
            if inner.event(id, &event).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    /// Passes on the events that wait, with times from `since` to `until`.
    fn spread(
        &mut self,
        id: HartId,
        (since, until): (u64, u64),
        wait_in: &mut impl FnMut(&Run) -> Option<Wait>,
        inner: &mut dyn Consumer,
    ) -> ControlFlow<()> {
        let insns = core::mem::take(&mut self.insns);
        let mut held = core::mem::take(&mut self.held);
        let last_wait = held.iter().enumerate().rev().find_map(|(at, event)| {
            let Event::Run(run) = event else { return None };
            Some((at, wait_in(run)?))
        });
        let elapsed = until - since;
        let running = match last_wait {
            None => {
                self.known = (self.known.0 + elapsed, self.known.1 + insns);
                elapsed
            }
            Some(_) => self.usual(insns).min(elapsed),
        };
        let share = |done: u64| match done {
            0 => 0,
            _ => part(running, done, insns.max(1)),
        };
        let (mut done, mut waited) = (0, 0);
        let mut out = Timed {
            id,
            runs: core::mem::take(&mut self.timed),
            inner,
            flow: ControlFlow::Continue(()),
        };
        for (at, event) in held.iter().enumerate() {
            let time = since + share(done) + waited;
            let Event::Run(run) = event else {
                if !matches!(event, Event::Access(_)) {
                    out.event(&Event::Time(time));
                }
                out.event(event);
                continue;
            };
            let Some((_, wait)) = last_wait.filter(|(place, _)| *place == at) else {
                out.run(time, *run);
                done += u64::from(run.insns);
                continue;
            };
            out.event(&Event::Time(time));
            let (before, itself, after) = wait.parts(run);
            for part in before.into_iter().chain([itself]) {
                out.run(since + share(done), part);
                done += u64::from(part.insns);
            }
            waited = elapsed - running;
            if let Some(part) = after {
                out.run(since + share(done) + waited, part);
                done += u64::from(part.insns);
            }
        }
        out.event(&Event::Time(until));
        let flow = out.flow;
        self.timed = out.runs;
        held.clear();
        self.held = held;
        flow
    }

    /// How long so many instructions take where the hart does not wait.
    fn usual(&self, insns: u64) -> u64 {
        let (time, all) = self.known;
        match all {
            0 => insns,
            _ => part(insns, time, all),
        }
    }
}

/// Passes events on, runs with their times several at once.
struct Timed<'o> {
    id: HartId,
    runs: Vec<(u64, Run)>,
    inner: &'o mut dyn Consumer,
    flow: ControlFlow<()>,
}

impl Timed<'_> {
    #[inline]
    fn run(&mut self, time: u64, run: Run) {
        self.runs.push((time, run));
        if self.runs.len() >= TOGETHER {
            self.flush();
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        self.flush();
        if self.inner.event(self.id, event).is_break() {
            self.flow = ControlFlow::Break(());
        }
    }

    #[inline]
    fn flush(&mut self) {
        if self.runs.is_empty() {
            return;
        }
        if self.inner.timed_runs(self.id, &self.runs).is_break() {
            self.flow = ControlFlow::Break(());
        }
        self.runs.clear();
    }
}

/// `a * b / all`.
fn part(a: u64, b: u64, all: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / all,
        None => {
            let part = u128::from(a) * u128::from(b) / u128::from(all);
            u64::try_from(part).unwrap_or(u64::MAX)
        }
    }
}

impl Waits {
    fn of(&mut self, run: &Run, image: &Image) -> Option<Wait> {
        let key = (run.start, run.insns);
        if self.recent.is_empty() {
            // No run has no instructions.
            self.recent.resize(RECENT, ((0, 0), None));
        }
        // Addresses are even; runs that begin at the same one differ in length.
        let place = (run.start >> 1) ^ u64::from(run.insns) << 5;
        let recent = self.recent.get_mut(place as usize % RECENT)?;
        if recent.0 == key {
            return recent.1;
        }
        let find = || Wait::find(image, run);
        let wait = *self.all.entry(key).or_insert_with(find);
        *recent = (key, wait);
        wait
    }
}

/// A `wfi` in a run.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Instructions before it, and the length of the last of them.
    before: u32,
    last: u8,
    pc: u64,
}

impl Wait {
    /// The first in a run.
    fn find(image: &Image, run: &Run) -> Option<Wait> {
        let (mut before, mut previous) = (0, run.start);
        for (pc, fetched) in image.insns(SpaceId::FIRST, run.start, run.insns.into()) {
            if fetched.bits == WFI {
                let last = u8::try_from(pc.wrapping_sub(previous)).unwrap_or(0);
                return Some(Wait { before, last, pc });
            }
            (before, previous) = (before + 1, pc);
        }
        None
    }

    /// The instructions of the run before it, itself, and those after it.
    fn parts(self, run: &Run) -> (Option<Run>, Run, Option<Run>) {
        let stop = |start: u64, end: u64, insns: u32, last: u8| Run {
            start,
            end,
            next: end,
            insns,
            exit: Exit::Stop,
            last,
        };
        let before = stop(run.start, self.pc, self.before, self.last);
        let before = Some(before).filter(|part| part.insns > 0);
        let rest = Run {
            start: self.pc,
            insns: run.insns - self.before,
            ..*run
        };
        if rest.insns <= 1 {
            return (before, rest, None);
        }
        let end = self.pc.wrapping_add(4);
        let after = Run {
            start: end,
            insns: rest.insns - 1,
            ..rest
        };
        (before, stop(self.pc, end, 1, 4), Some(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replay;
    use crate::{Effects, Gap, Observer, Reason, Step, Trap, Wants};
    use alloc::vec;
    use hartrace_isa::Isa;

    /// The pcs of instructions, and their times.
    #[derive(Default)]
    struct Times(Vec<(u64, u64)>);

    impl Observer for Times {
        const WANTS: Wants = Wants::STEPS;

        fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
            if let Step::Insn(insn) = step {
                self.0.push((insn.pc, insn.time));
            }
        }
    }

    fn run(start: u64, insns: u32) -> Event {
        let end = start + 4 * u64::from(insns);
        Event::Run(Run {
            start,
            end,
            next: end,
            insns,
            exit: Exit::Stop,
            last: 4,
        })
    }

    /// Ten `nop`s, with a `wfi` as the third.
    fn times(events: &[Event]) -> (Vec<(u64, u64)>, Spread) {
        let mut code = [0x13u32; 10];
        code[2] = WFI;
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
        let mut times = Times::default();
        let mut replay = Replay::new(&image, &mut times).spread_times();
        let mut timed = Interpolate::new(&image, &mut replay);
        for event in events {
            let _ = timed.event(HartId(0), event);
        }
        let (_, spread) = timed.finish();
        replay.finish();
        (times.0, spread)
    }

    /// Products that do not fit into 64 bits are divided all the same.
    #[test]
    fn shares_of_long_times() {
        assert_eq!(part(6, 5, 4), 7);
        assert_eq!(part(u64::MAX, 3, 6), u64::MAX / 2);
        assert_eq!(part(1 << 40, 1 << 40, 1 << 44), 1 << 36);
        assert_eq!(part(u64::MAX, 2, 1), u64::MAX);
    }

    #[test]
    fn instructions_share_the_time_between_two_stamps() {
        let trap = Event::Trap(Trap {
            epc: Some(0x1018),
            handler: Some(0x1020),
            cause: crate::Cause::Unknown,
            tval: None,
            pending: None,
        });
        let events = [
            run(0x1000, 1),
            Event::Time(100),
            run(0x100c, 3),
            trap,
            run(0x1020, 1),
            Event::Time(140),
            run(0x1024, 1),
        ];
        let (found, spread) = times(&events);
        let expected = vec![
            (0x1000, 0),
            (0x100c, 100),
            (0x1010, 110),
            (0x1014, 120),
            (0x1020, 130),
            (0x1024, 140),
        ];
        assert_eq!(found, expected);
        let counted = Spread {
            stamps: 2,
            insns: 4,
            untimed: 2,
            longest: 4,
        };
        assert_eq!(spread, counted);
    }

    #[test]
    fn a_wait_takes_what_the_others_leave() {
        let events = [
            Event::Time(0),
            run(0x100c, 2),
            Event::Time(20),
            run(0x1000, 4),
            Event::Time(1020),
        ];
        let (found, _) = times(&events);
        // Ten cycles each, and 960 before the instruction after the `wfi`.
        let expected = vec![
            (0x100c, 0),
            (0x1010, 10),
            (0x1000, 20),
            (0x1004, 30),
            (0x1008, 40),
            (0x100c, 1010),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_gap_took_is_not_given_to_others() {
        let gap = Event::Gap(Gap {
            at: 0,
            bytes: 0,
            unconfirmed: 0,
            reason: Reason {
                code: "",
                text: "",
                value: 0,
            },
        });
        let events = [
            Event::Time(10),
            run(0x100c, 1),
            gap,
            run(0x1010, 1),
            Event::Time(1000),
            run(0x1014, 1),
        ];
        let (found, spread) = times(&events);
        assert_eq!(found, [(0x100c, 10), (0x1010, 10), (0x1014, 1000)]);
        assert_eq!(spread.untimed, 3);
    }
}
