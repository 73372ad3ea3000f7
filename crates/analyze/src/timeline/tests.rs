//! Timelines of events by hand and of random calls.

use super::*;
use crate::functions::Functions;
use crate::profile::{Profile, Profiler};
use crate::stacks::Grouping;
use hartrace_flow::{Consumer, Event, Exit, Image, Mark, Ownership, Reason, Run, Trap};

/// Functions of 0x100 bytes each: `a` at 0x1000, `b` at 0x1100 and so on; `i` handles
/// interrupts.
fn functions() -> Functions {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let starts = (0u64..).map(|n| 0x1000 + n * 0x100);
    let list: Vec<_> = starts
        .zip(names)
        .map(|(at, name)| (at, at + 0x100, name))
        .collect();
    Functions::testing(&list)
}

fn at(name: char) -> u64 {
    0x1000 + (u64::from(u32::from(name)) - 0x61) * 0x100
}

/// Four instructions, then a jump of this kind.
fn run(start: u64, exit: Exit, next: u64) -> Event {
    Event::Run(Run {
        start,
        end: start + 16,
        next,
        insns: 4,
        exit,
        last: 4,
    })
}

fn call(start: u64, callee: char) -> Event {
    run(start, Exit::DirectCall, at(callee))
}

fn ret(start: u64, to: u64) -> Event {
    run(start, Exit::Return, to)
}

fn stop(start: u64) -> Event {
    run(start, Exit::Stop, start + 16)
}

fn interrupt(epc: u64) -> Event {
    Event::Trap(Trap {
        epc: Some(epc),
        handler: Some(at('i')),
        cause: Cause::Interrupt(Some(7)),
        tval: None,
        pending: None,
    })
}

fn gap() -> Event {
    let reason = Reason {
        code: "NT0000",
        text: "",
        value: 0,
    };
    Event::Gap(Gap {
        at: 0,
        reason,
        bytes: 5,
        unconfirmed: 0,
    })
}

/// Everything that a timeline gives.
#[derive(Default)]
struct Seen {
    tracks: Vec<Track>,
    open: Vec<Vec<Slice>>,
    slices: Vec<(TrackId, Slice)>,
    traps: Vec<TrapSpan>,
    gaps: Vec<GapSpan>,
    threads: Vec<(HartId, u32, TrackId)>,
}

impl TimelineSink for Seen {
    fn thread(&mut self, track: TrackId, hart: HartId, thread: u32) {
        self.threads.push((hart, thread, track));
    }

    fn track(&mut self, id: TrackId, track: &Track) {
        assert_eq!(id.index(), self.tracks.len());
        self.tracks.push(*track);
        self.open.push(Vec::new());
    }

    fn begin(&mut self, track: TrackId, slice: &Slice) {
        self.open[track.index()].push(*slice);
    }

    /// What ends is what began last, and it lies inside what is open.
    fn end(&mut self, track: TrackId, slice: &Slice) {
        let open = &mut self.open[track.index()];
        let began = open.pop().expect("ends without having begun");
        assert_eq!((began.begin, began.depth), (slice.begin, slice.depth));
        assert_eq!(began.kind, slice.kind);
        assert!(slice.begin <= slice.end);
        if let Some(outer) = open.last() {
            assert!(outer.begin <= slice.begin, "{outer:?} around {slice:?}");
            assert_eq!(outer.depth + 1, slice.depth);
        }
        self.slices.push((track, *slice));
    }

    fn trap(&mut self, trap: &TrapSpan) {
        self.traps.push(*trap);
    }

    fn gap(&mut self, gap: &GapSpan) {
        self.gaps.push(*gap);
    }
}

fn follow(events: &[Event], sink: &mut dyn TimelineSink) -> Profile {
    let image = Image::new();
    let timeline = Timeline::new(sink);
    let mut profiler = Profiler::new(&image, functions(), Grouping::default(), timeline);
    for event in events {
        let _ = profiler.event(HartId(0), event);
    }
    let (profile, timeline) = profiler.finish();
    timeline.finish();
    profile
}

fn seen(events: &[Event]) -> Seen {
    let mut seen = Seen::default();
    follow(events, &mut seen);
    assert!(seen.open.iter().all(Vec::is_empty));
    seen
}

/// Slices as text, by track and begin: `0 a 0-12`, indented by depth, with flags.
fn text(seen: &Seen) -> Vec<String> {
    let functions = functions();
    let mut slices = seen.slices.clone();
    slices.sort_by_key(|(track, slice)| (*track, slice.begin, slice.depth));
    let line = |(track, slice): &(TrackId, Slice)| {
        let name = match slice.kind {
            SliceKind::Call(id) => functions.get(id).name.clone(),
            SliceKind::TailCall(id) => format!("={}", functions.get(id).name),
            SliceKind::Trap(_) => "trap".to_owned(),
            SliceKind::Away => "away".to_owned(),
            SliceKind::Merged(_) => "merged".to_owned(),
        };
        let flags = match slice.flags {
            0 => String::new(),
            flags => format!(" {flags}"),
        };
        let (begin, end) = (slice.begin.insn, slice.end.insn);
        format!("{} {} {name} {begin}-{end}{flags}", track.0, slice.depth)
    };
    slices.iter().map(line).collect()
}

#[test]
fn calls_tail_calls_and_interrupts_nest() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        call(a, 'b'),
        run(b, Exit::DirectJump, c),
        stop(c),
        interrupt(c + 16),
        call(at('i'), 'd'),
        ret(at('d'), at('i') + 16),
        run(at('i') + 16, Exit::TrapReturn, c + 16),
        ret(c + 16, a + 16),
        stop(a + 16),
    ];
    let seen = seen(&events);
    let lost = Slice::END_NOT_SEEN;
    assert_eq!(
        text(&seen),
        [
            &format!("0 0 a 0-32 {lost}"),
            "0 1 b 4-8",
            "0 1 =c 8-28",
            "0 2 trap 12-24",
            "0 3 i 12-24",
            "0 4 d 16-20",
        ]
    );
    let trap = seen.traps[0];
    let name = |id: Option<FunctionId>| functions().get(id.unwrap()).name.clone();
    assert_eq!(
        (name(trap.interrupted), name(trap.handler)),
        ("c".into(), "i".into())
    );
    assert_eq!(trap.duration(Measure::Instructions), Some(12));
    assert_eq!((trap.nesting, trap.epc), (0, Some(c + 16)));
}

/// The first instruction of a function traps: the function has been called, though nothing
/// of it was executed, and goes on when the trap returns.
#[test]
fn a_trap_at_the_first_instruction_of_a_call_interrupts_what_was_called() {
    let (a, b) = (at('a'), at('b'));
    let events = [
        call(a, 'b'),
        interrupt(b),
        run(at('i'), Exit::TrapReturn, b),
        ret(b, a + 16),
        stop(a + 16),
    ];
    let seen = seen(&events);
    assert_eq!(
        text(&seen),
        [
            &format!("0 0 a 0-16 {}", Slice::END_NOT_SEEN),
            "0 1 b 4-12",
            "0 2 trap 4-8",
            "0 3 i 4-8",
        ]
    );
    let name = |id: Option<FunctionId>| functions().get(id.unwrap()).name.clone();
    assert_eq!(name(seen.traps[0].interrupted), "b");
    assert_eq!(seen.traps[0].depth, 2);
}

/// The same of a function in the place of another, after which nothing is known.
#[test]
fn a_trap_at_the_first_instruction_of_a_tail_call_interrupts_what_was_called() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        call(a, 'b'),
        run(b, Exit::DirectJump, c),
        interrupt(c),
        stop(at('i')),
    ];
    let lost = Slice::END_NOT_SEEN;
    assert_eq!(
        text(&seen(&events)),
        [
            format!("0 0 a 0-12 {lost}"),
            "0 1 b 4-8".to_owned(),
            format!("0 1 =c 8-12 {lost}"),
            format!("0 2 trap 8-12 {lost}"),
            format!("0 3 i 8-12 {lost}"),
        ]
    );
}

/// The trace starts inside two calls: their callers enclose what came before.
#[test]
fn callers_that_are_found_enclose_what_they_called() {
    let (a, b, c) = (at('a'), at('b'), at('c'));
    let events = [
        ret(c + 32, b + 32),
        call(b + 32, 'd'),
        ret(at('d'), b + 48),
        ret(b + 48, a + 32),
        stop(a + 32),
    ];
    let mut summary = SliceSummary::new(Measure::Instructions, 100);
    follow(&events, &mut summary);
    let (tracks, merging) = summary.finish();
    assert_eq!(merging, Merging::default());
    let names = functions();
    let found: Vec<_> = tracks[0]
        .slices
        .iter()
        .map(|s| {
            let name = names.get(s.kind.function().unwrap()).name.clone();
            (s.depth, name, s.begin.insn, s.end.insn)
        })
        .collect();
    let expected = [
        (0, "a", 0, 20),
        (1, "b", 0, 16),
        (2, "c", 0, 4),
        (2, "d", 8, 12),
    ];
    assert_eq!(found, expected.map(|(d, n, b, e)| (d, n.to_owned(), b, e)));
    assert!(tracks[0].slices[0].flags & Slice::INFERRED != 0);
}

/// A scheduler in an interrupt: the first thread continues where it was interrupted.
#[test]
fn threads_have_tracks() {
    let (a, e) = (at('a'), at('e'));
    let handler = |to| run(at('i'), Exit::TrapReturn, to);
    let events = [
        stop(a),
        interrupt(a + 16),
        handler(e),
        stop(e),
        interrupt(e + 16),
        handler(a + 16),
        stop(a + 16),
    ];
    let seen = seen(&events);
    let (lost, by_trap) = (Slice::END_NOT_SEEN, Slice::BY_TRAP_RETURN);
    assert_eq!(
        text(&seen),
        [
            format!("0 0 a 0-20 {lost}"),
            "0 1 trap 4-16".to_owned(),
            "0 2 i 4-16".to_owned(),
            format!("0 3 away 8-16 {by_trap}"),
            format!("1 0 e 8-20 {lost}"),
            format!("1 1 trap 12-20 {lost}"),
            format!("1 2 i 12-20 {lost}"),
            format!("1 3 away 16-20 {}", by_trap | lost),
        ]
    );
    let numbers: Vec<u32> = seen.tracks.iter().map(|track| track.number).collect();
    assert_eq!(numbers, [0, 1]);
    let first = seen.traps.iter().find(|trap| trap.track == TrackId(0));
    let first = first.unwrap();
    assert_eq!(first.duration(Measure::Instructions), Some(4));
    assert_eq!(first.away.insn, 8);
    // The second returned to a thread, though not to its own.
    let second = seen.traps.iter().find(|trap| trap.track == TrackId(1));
    let second = second.unwrap();
    assert_eq!(second.end.map(|end| end.insn), Some(16));
    assert_eq!(second.duration(Measure::Instructions), Some(4));
}

/// A handler changes the context: the trap counts once.
#[test]
fn interrupts_of_contexts_count_once() {
    let context = |number| {
        Event::Context(Ownership {
            mode: None,
            context: Some(Context(number)),
        })
    };
    let (a, i) = (at('a'), at('i'));
    let events = [
        context(5),
        stop(a),
        interrupt(a + 16),
        stop(i),
        context(6),
        run(i + 16, Exit::TrapReturn, a + 16),
        stop(a + 16),
        interrupt(a + 32),
        stop(i),
        context(5),
        run(i + 16, Exit::TrapReturn, a + 16),
        stop(a + 16),
    ];
    let seen = seen(&events);
    let starts: Vec<bool> = seen.traps.iter().map(|trap| trap.start_seen).collect();
    assert_eq!(starts.iter().filter(|seen| **seen).count(), 2, "{starts:?}");
    let mut table = InterruptTable::new(Measure::Instructions, false);
    follow(&events, &mut table);
    let causes = table.causes();
    assert_eq!((causes.len(), causes[0].spans.count), (1, 2));
}

/// The call path of an interrupt is cut at its outer end; what it has of it is exact.
#[test]
fn paths_of_the_longest() {
    let (a, b) = (at('a'), at('b'));
    let mut events = vec![call(a, 'b')];
    events.extend((0..100).map(|_| call(b, 'b')));
    events.extend([
        stop(b),
        interrupt(b + 16),
        stop(at('i')),
        interrupt(at('i') + 16),
        run(at('i'), Exit::TrapReturn, at('i') + 16),
        run(at('i') + 16, Exit::TrapReturn, b + 16),
        stop(b + 16),
    ]);
    let mut table = InterruptTable::new(Measure::Instructions, false);
    follow(&events, &mut table);
    let causes = table.causes();
    let functions = functions();
    let b = SliceKind::Call(functions.of(b).unwrap());
    let (worst, of) = (&causes[0].worst, &causes[0]);
    let lengths: Vec<_> = worst
        .iter()
        .map(|w| w.trap.duration(Measure::Instructions))
        .collect();
    assert_eq!(lengths, [Some(12), Some(4)]);
    assert_eq!((worst[0].omitted, worst[0].path.len()), (38, 64));
    assert!(worst[0].path.iter().all(|kind| *kind == b));
    let inner = worst[1].path;
    let i = SliceKind::Call(functions.of(at('i')).unwrap());
    assert!(inner.ends_with(&[b, SliceKind::Trap(Cause::Interrupt(Some(7))), i]));
    assert_eq!((of.nested, of.insns, of.spans.nesting), (1, 16, 1));
    let preempted: Vec<_> = of.preempted.iter().map(|p| p.count).collect();
    assert_eq!(preempted, [1, 1]);
}

#[test]
fn contexts_have_tracks() {
    let context = |number| {
        Event::Context(Ownership {
            mode: None,
            context: Some(Context(number)),
        })
    };
    let a = at('a');
    let events = [
        context(5),
        stop(a),
        context(6),
        stop(a + 16),
        context(5),
        stop(a + 32),
    ];
    let seen = seen(&events);
    let contexts: Vec<_> = seen.tracks.iter().map(|track| track.context).collect();
    assert_eq!(contexts, [Some(Context(5)), Some(Context(6))]);
    let (start, end) = (Slice::START_NOT_SEEN, Slice::END_NOT_SEEN);
    assert_eq!(
        text(&seen),
        [
            format!("0 0 a 0-12 {end}"),
            "0 1 away 4-8".to_owned(),
            format!("1 0 a 4-12 {}", start | end),
            format!("1 1 away 8-12 {end}"),
        ]
    );
}

/// After a gap in an unknown function, the same track goes on.
#[test]
fn a_gap_stays_on_its_track() {
    let (a, b) = (at('a'), at('b'));
    let events = [
        call(a, 'b'),
        stop(b),
        gap(),
        stop(at('e')),
        gap(),
        stop(a + 16),
    ];
    let seen = seen(&events);
    assert_eq!(seen.tracks.len(), 1);
    let found: Vec<_> = seen.gaps.iter().map(|g| (g.begin.insn, g.depth)).collect();
    assert_eq!(found, [(8, 2), (12, 1)]);
    assert_eq!(seen.gaps[0].gap.unwrap().bytes, 5);
}

/// Tracing that is turned off and not on again is the end, not a gap.
#[test]
fn what_was_not_traced_is_a_gap() {
    let a = at('a');
    let (on, off) = (Event::Mark(Mark::On), Event::Mark(Mark::Off));
    let seen = seen(&[on, stop(a), off, on, stop(a + 16), off]);
    assert_eq!(seen.gaps.len(), 1);
    assert_eq!((seen.gaps[0].begin.insn, seen.gaps[0].gap), (4, None));
}

#[test]
fn nothing_happened() {
    assert!(seen(&[]).tracks.is_empty());
    // A trace that is nothing but a gap has a track for it.
    let seen = seen(&[gap()]);
    assert_eq!((seen.tracks.len(), seen.gaps.len()), (1, 1));
    let (tracks, merging) = SliceSummary::new(Measure::Time, 10).finish();
    assert!(tracks.is_empty() && merging.slices == 0);
}

#[test]
fn times_are_those_of_the_trace() {
    let (a, b) = (at('a'), at('b'));
    let events = [
        Event::Time(1000),
        call(a, 'b'),
        Event::Time(1010),
        ret(b, a + 16),
        Event::Time(1050),
        stop(a + 16),
        Event::Time(1060),
        gap(),
        stop(a + 32),
        Event::Time(2000),
    ];
    let seen = seen(&events);
    let times = |s: &Slice| (s.begin.time, s.end.time);
    let found: Vec<_> = seen.slices.iter().map(|(_, s)| times(s)).collect();
    assert_eq!(found, [(1010, 1050), (1000, 2000)]);
    let gap = seen.gaps[0];
    assert_eq!((gap.begin.time, gap.end.time), (1060, 2000));
}

/// More threads than there are tracks.
#[test]
fn too_many_threads_share_a_track() {
    let mut events = vec![stop(at('a'))];
    for n in 0..200u64 {
        // A return to where nothing was called: each is a thread of its own.
        events.push(interrupt(at('a') + 16));
        let to = 0x1_0000 + n * 0x100;
        events.push(run(at('i'), Exit::TrapReturn, to));
        events.push(stop(to));
    }
    let seen = seen(&events);
    assert_eq!(seen.tracks.len(), 64);
    assert!(seen.tracks[63].is_rest && !seen.tracks[62].is_rest);
}

/// Random calls and returns, up to eight deep.
fn random_calls(count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    // Functions, and how far they are.
    let mut stack = vec![('a', 0)];
    let mut state = 1u64;
    for _ in 0..count {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let random = state >> 33;
        let &(function, offset) = stack.last().unwrap();
        let here = at(function) + offset;
        let may_call = stack.len() < 8 && offset < 0xe0;
        if may_call && (stack.len() < 2 || random.is_multiple_of(2)) {
            let callee = char::from(b'b' + (random / 2 % 7) as u8);
            stack.last_mut().unwrap().1 = offset + 16;
            stack.push((callee, 0));
            events.push(call(here, callee));
        } else if stack.len() > 1 {
            stack.pop();
            let &(caller, back) = stack.last().unwrap();
            events.push(ret(here, at(caller) + back));
        } else {
            stack.last_mut().unwrap().1 = 0;
            events.push(run(here, Exit::DirectJump, at(function)));
        }
    }
    events
}

/// Each slice lies in the one around it, and neighbours do not overlap.
fn check_nesting(slices: &[Slice]) {
    let mut outer: Vec<Slice> = Vec::new();
    for slice in slices {
        while outer.last().is_some_and(|last| last.depth >= slice.depth) {
            let last = outer.pop().unwrap();
            assert!(last.end <= slice.begin, "{last:?} overlaps {slice:?}");
        }
        if let Some(around) = outer.last() {
            assert_eq!(around.depth + 1, slice.depth);
            assert!(around.begin <= slice.begin && slice.end <= around.end);
            assert_eq!(around.merged, 0, "inside a merged slice");
        }
        outer.push(*slice);
    }
}

#[test]
fn slices_add_up_to_the_profile() {
    let events = random_calls(3000);
    let mut summary = SliceSummary::new(Measure::Instructions, 1 << 20);
    let profile = follow(&events, &mut summary);
    let (tracks, merging) = summary.finish();
    assert_eq!((tracks.len(), merging.width), (1, 0));
    check_nesting(&tracks[0].slices);
    for cost in profile.by_function(Measure::Instructions) {
        let (mut total, mut calls, mut until) = (0, 0, 0);
        for slice in &tracks[0].slices {
            if slice.kind.function() != Some(cost.function) {
                continue;
            }
            calls += 1;
            // In recursion only the outermost call counts.
            if slice.begin.insn >= until {
                total += slice.length(Measure::Instructions);
                until = slice.end.insn;
            }
        }
        assert_eq!((total, calls), (cost.total.insns, cost.calls));
    }
}

/// Whatever the limit: it is respected, nesting is right, no call is lost, and all long
/// ones are there.
#[test]
fn summaries_stay_within_their_limit() {
    let events = random_calls(4000);
    let mut all = SliceSummary::new(Measure::Instructions, 1 << 20);
    follow(&events, &mut all);
    let all = all.finish().0.remove(0).slices;
    let calls = all.len() as u64;
    let mut widths = Vec::new();
    for limit in [1000, 300, 100, 30] {
        let mut summary = SliceSummary::new(Measure::Instructions, limit);
        follow(&events, &mut summary);
        let (tracks, merging) = summary.finish();
        let slices = &tracks[0].slices;
        assert!(slices.len() <= limit, "{} of {limit}", slices.len());
        check_nesting(slices);
        let shown: u64 = slices.iter().map(|s| u64::from(s.merged.max(1))).sum();
        assert_eq!(shown, calls);
        let long = |s: &&Slice| s.length(Measure::Instructions) >= merging.width;
        for slice in all.iter().filter(long) {
            assert!(slices.contains(slice), "{slice:?} is lost");
        }
        widths.push(merging.width);
    }
    assert!(widths.is_sorted() && widths[0] > 1, "{widths:?}");
}

/// Short slices before one that has not ended do not swallow what is inside that one.
#[test]
fn what_is_inside_an_open_slice_is_kept() {
    let mut summary = SliceSummary::new(Measure::Instructions, 16);
    summary.track(
        TrackId(0),
        &Track {
            hart: HartId(0),
            context: None,
            number: 0,
            is_rest: false,
        },
    );
    let function = functions().of(at('a')).unwrap();
    let mut end = |depth, begin, end| {
        let position = |insn| Position { insn, time: 0 };
        summary.end(
            TrackId(0),
            &Slice {
                begin: position(begin),
                end: position(end),
                kind: SliceKind::Call(function),
                depth,
                flags: 0,
                merged: 0,
            },
        );
    };
    end(1, 10, 12);
    // Inside one of depth 1 that begins at 20.
    end(2, 20, 5000);
    (0..100).for_each(|n| end(2, 5000 + n * 2, 5001 + n * 2));
    end(1, 20, 6000);
    end(0, 0, 6000);
    let (tracks, merging) = summary.finish();
    let long: Vec<_> = tracks[0].slices.iter().filter(|s| s.merged == 0).collect();
    let found: Vec<_> = long
        .iter()
        .map(|s| (s.depth, s.begin.insn, s.end.insn))
        .collect();
    assert_eq!(
        found,
        [(0, 0, 6000), (1, 10, 12), (1, 20, 6000), (2, 20, 5000)]
    );
    assert_eq!((merging.slices, merging.width > 1), (100, true));
}

#[test]
fn traps_are_counted_when_they_are_too_many() {
    let mut table = TrapTable::new(Measure::Instructions, 100);
    let position = |insn| Position { insn, time: 0 };
    for n in 0..10_000u64 {
        let cause = match n % 10 {
            0 => Cause::Exception(Some(2)),
            _ => Cause::Interrupt(Some(7)),
        };
        table.trap(&TrapSpan {
            track: TrackId(0),
            begin: position(n * 1000),
            start_seen: true,
            end: (n != 5000).then(|| position(n * 1000 + n % 500)),
            cause,
            epc: None,
            tval: None,
            interrupted: None,
            handler: None,
            nesting: (n % 3) as u32,
            depth: 0,
            away: Position::default(),
            pending: None,
        });
    }
    let (traps, dropped) = table.traps();
    assert!(traps.len() <= 200);
    assert_eq!(traps.len() as u64 + dropped, 10_000);
    assert!(traps.iter().any(|trap| trap.end.is_none()));
    let causes = table.causes();
    let counts: Vec<_> = causes.iter().map(|c| (c.count, c.unfinished)).collect();
    assert_eq!(counts, [(1000, 1), (9000, 0)]);
    let all = causes[1].duration(Measure::Instructions);
    assert_eq!((all.min, all.max, causes[1].nesting), (1, 499, 2));
    assert_eq!(causes[1].worst.len(), 8);
    assert_eq!(
        causes[1].worst[0].duration(Measure::Instructions),
        Some(499)
    );
    let histogram = causes[1].histogram(Measure::Instructions);
    assert_eq!(histogram.iter().map(|bar| bar.1).sum::<u64>(), 9000);
    assert!(histogram.is_sorted() && histogram.last().unwrap().0 == 499);
}

/// The timeline of a part of a trace, from where the state was saved: its slices are those
/// of the whole.
#[test]
fn a_part_goes_on_where_the_state_was_saved() {
    let mut events = random_calls(600);
    // Threads and an interrupt, in between.
    let (a, e) = (at('a'), at('e'));
    let more = [
        interrupt(a + 64),
        run(at('i'), Exit::TrapReturn, e),
        call(e, 'b'),
        stop(at('b')),
    ];
    events.splice(300..300, more);
    let image = Image::new();
    let mut all = Seen::default();
    let mut states = Vec::new();
    let mut profiler = Profiler::new(
        &image,
        functions(),
        Grouping::default(),
        Timeline::new(&mut all),
    );
    for (n, event) in events.iter().enumerate() {
        if n % 50 == 0 {
            states.push((n, profiler.save().unwrap()));
        }
        let _ = profiler.event(HartId(0), event);
    }
    profiler.finish().1.finish();
    for (n, state) in states {
        let mut part = Seen::default();
        part.tracks = all.tracks.clone();
        part.open = vec![Vec::new(); part.tracks.len()];
        let timeline = Timeline::of_part(&mut part, all.threads.iter().copied());
        let mut profiler = Profiler::new(&image, functions(), Grouping::default(), timeline);
        assert!(profiler.restore(&state).is_some());
        for event in events.iter().skip(n) {
            let _ = profiler.event(HartId(0), event);
        }
        profiler.finish().1.finish();
        let runs = events.iter().take(n).filter(|e| matches!(e, Event::Run(_)));
        let from = 4 * runs.count() as u64;
        let begun = |(_, slice): &&(TrackId, Slice)| slice.begin.insn > from;
        let expected: Vec<_> = all.slices.iter().filter(begun).collect();
        let found: Vec<_> = part.slices.iter().filter(begun).collect();
        assert_eq!(found.len(), expected.len(), "from {n}");
        assert!(found == expected, "from {n}");
    }
}

/// States that were damaged are refused or lead to other slices, and to nothing worse.
#[test]
fn damaged_states_do_no_harm() {
    let image = Image::new();
    let events = random_calls(300);
    let mut sink = Seen::default();
    let mut profiler = Profiler::new(
        &image,
        functions(),
        Grouping::default(),
        Timeline::new(&mut sink),
    );
    for event in &events {
        let _ = profiler.event(HartId(0), event);
    }
    let state = profiler.save().unwrap();
    let restored = |bytes: &[u8]| {
        let mut sink = SliceSummary::new(Measure::Instructions, 100);
        let timeline = Timeline::new(&mut sink);
        let mut profiler = Profiler::new(&image, functions(), Grouping::default(), timeline);
        let is_read = profiler.restore(bytes).is_some();
        for event in events.iter().take(40) {
            let _ = profiler.event(HartId(0), event);
        }
        profiler.finish().1.finish();
        is_read
    };
    assert!(restored(&state));
    for cut in 0..state.len() {
        restored(&state[..cut]);
        let mut flipped = state.clone();
        flipped[cut] ^= 1 << (cut % 8);
        restored(&flipped);
    }
}

/// A tandem trace may have times or not. Without them, what is kept depends on
/// instructions: long slices and long traps stay.
#[test]
fn without_times_lengths_are_instructions() {
    let at = |insn: u64| Position { insn, time: 0 };
    let slice = |begin: u64, end: u64, depth: i32| Slice {
        begin: at(begin),
        end: at(end),
        kind: SliceKind::Call(FunctionId(0)),
        depth,
        flags: 0,
        merged: 0,
    };
    let mut summary = SliceSummary::new(Measure::Time, 16);
    let track = Track {
        hart: HartId(0),
        context: None,
        number: 0,
        is_rest: false,
    };
    summary.track(TrackId(0), &track);
    for n in 0..100 {
        summary.end(TrackId(0), &slice(n * 10, n * 10 + 5, 1));
    }
    summary.end(TrackId(0), &slice(0, 1000, 0));
    let (tracks, merging) = summary.finish();
    let outer = tracks[0].slices[0];
    assert_eq!((outer.end.insn, outer.merged), (1000, 0));
    assert!(merging.width > 5 && merging.width < 1000, "{merging:?}");
    assert!(tracks[0].slices.len() > 4);
}

/// Latencies from pending to the handler: of those that never return, too; the longest
/// first, with their paths; none where the time or the moment is not known.
#[test]
fn latencies_by_cause() {
    let a = at('a');
    let pending = |code, pending| {
        Event::Trap(Trap {
            epc: Some(a + 16),
            handler: Some(at('i')),
            cause: Cause::Interrupt(Some(code)),
            tval: None,
            pending,
        })
    };
    let mut events = Vec::new();
    for (n, since) in [(1u64, Some(90)), (2, Some(150)), (3, None), (4, Some(500))] {
        events.extend([
            Event::Time(100 * n - 50),
            stop(a),
            Event::Time(100 * n),
            pending(7, since),
            stop(at('i')),
            run(at('i') + 16, Exit::TrapReturn, a + 16),
        ]);
    }
    events.extend([
        Event::Time(900),
        stop(a),
        Event::Time(910),
        pending(3, Some(0)),
        stop(at('i')),
    ]);
    let mut table = InterruptTable::new(Measure::Time, false);
    follow(&events, &mut table);
    let causes = table.causes();
    let of = |code| {
        let cause = Cause::Interrupt(Some(code));
        causes.iter().find(|c| c.spans.cause == cause).unwrap()
    };
    // The fourth was taken before it was pending: that cannot be.
    let timer = of(7);
    let (count, spans) = timer.spans.latency().unwrap();
    assert_eq!((timer.spans.count, count), (4, 2));
    assert_eq!((spans.min, spans.max), (10, 50));
    let longest: Vec<_> = timer.delayed.iter().map(|w| w.trap.latency()).collect();
    assert_eq!(longest, [Some(50), Some(10)]);
    let functions = functions();
    let call = SliceKind::Call(functions.of(a).unwrap());
    assert_eq!(timer.delayed[0].path, [call]);
    let software = of(3);
    assert_eq!(software.spans.unfinished, 1);
    assert_eq!(software.spans.latency().unwrap().1.max, 910);
    assert_eq!((software.worst.len(), software.delayed.len()), (0, 1));
}
