use super::*;
use crate::config::Config;
use crate::shard::tests::Keep;
use crate::trace::{Settings, TraceWriter, WriteOptions};
use hartrace_etrace as etrace;
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Access, AccessKind, Effects, Insn, Mode, Observer as _, SpaceId, Step};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::Random;
use std::cell::Cell;
use std::sync::Mutex;

/// loop: c.nop; c.bnez a0, loop; c.jr a1
const CODE: [u8; 6] = [0x01, 0x00, 0x7d, 0xfd, 0x82, 0x85];
const BASE: u64 = 0x1000;

/// c.ld a2, 0(a0) instead of c.nop.
const LOAD: u32 = 0x6110;

pub(in crate::trace) fn image() -> Image {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, &CODE, Isa::RV64GC);
    image
}

fn image_with_loads() -> Image {
    let mut code = CODE;
    code[..2].copy_from_slice(&LOAD.to_le_bytes()[..2]);
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, &code, Isa::RV64GC);
    image
}

/// A trace of that loop, left and entered again so many times, and the number of
/// its instructions.
pub(in crate::trace) fn recorded(format: Format, rounds: u64) -> (Settings, Vec<u8>, u64) {
    let settings = format.settings(&Config::defaults(), Xlen::Rv64).unwrap();
    let (bytes, insns) = with_settings(&settings, rounds);
    (settings, bytes, insns)
}

fn with_settings(settings: &Settings, rounds: u64) -> (Vec<u8>, u64) {
    let config = Config::defaults();
    let port = settings.port(config.ingress).port(Isa::RV64GC);
    let (mut bytes, count) = (Vec::new(), Cell::new(0));
    let put = Box::new(|part: &[u8]| bytes.extend_from_slice(part));
    let filter = FilterConfig::default();
    let mut writer =
        TraceWriter::new(settings, port, &filter, WriteOptions::default(), put).unwrap();
    let loads = matches!(settings, Settings::Etrace(config) if config.data.is_some());
    let first = if loads { LOAD } else { 0x0001 };
    let mut step = |pc: u64, bits: u32, next: u64| {
        let mut effects = Effects::default();
        if bits == LOAD {
            let load = Access {
                kind: AccessKind::Load,
                size: 3,
                addr: 0x8000 + count.get() % 700 * 8,
                data: Some(count.get().wrapping_mul(0x1234_5678_9abc)),
                ..Access::default()
            };
            effects.accesses.push(load).unwrap();
        }
        let insn = Insn {
            pc,
            bits,
            next,
            mode: Mode::M,
            time: count.get(),
            ..Insn::default()
        };
        count.set(count.get() + 1);
        writer.step(HartId(0), &Step::Insn(insn), &effects);
    };
    let mut random = Random::new(5);
    for _ in 0..rounds {
        for n in (0..=random.below(6)).rev() {
            step(BASE, first, BASE + 2);
            step(BASE + 2, 0xfd7d, if n > 0 { BASE } else { BASE + 4 });
        }
        step(BASE + 4, 0x8582, BASE);
    }
    writer.finish();
    drop(writer.done());
    (bytes, count.get())
}

pub(in crate::trace) fn trace(settings: &Settings, bytes: &[u8]) -> Trace {
    let config = Config::defaults();
    let input = Input::of(Path::new("t"), bytes.to_vec());
    let known = super::super::Known::default();
    let mut trace = Trace::given(input, settings.format(), &config, known).unwrap();
    trace.settings = settings.clone();
    trace
}

#[derive(Debug)]
enum Failed {
    Read,
    Given(u64),
}

impl From<DecodeError> for Failed {
    fn from(_: DecodeError) -> Failed {
        Failed::Read
    }
}

type Events = Vec<(HartId, Event)>;

/// Gives its events to all others.
struct Shared<'a>(Keep, &'a Mutex<Events>);

impl Consumer for Shared<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.0.event(hart, event)
    }
}

impl Gather for Shared<'_> {
    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    fn give(&mut self) -> ControlFlow<()> {
        self.1.lock().unwrap().append(&mut self.0.events);
        ControlFlow::Continue(())
    }
}

/// Long enough for threads.
const ROUNDS: u64 = 90_000;

/// All events in one go.
fn truth(trace: Trace, image: &Image) -> Events {
    let mut keep = Keep {
        events: Vec::new(),
        room: usize::MAX,
    };
    trace
        .decode(image, None, &mut keep, |_, _| Ok::<(), Failed>(()))
        .unwrap();
    keep.events
}

/// Parts in their order are the whole, on one thread and on several.
#[test]
fn parts_are_the_whole() {
    let image = image();
    for format in [Format::Ntrace, Format::Etrace] {
        let (settings, bytes, insns) = recorded(format, ROUNDS);
        let whole = trace(&settings, &bytes);
        assert!(whole.is_for_threads(2), "{format}: {}", bytes.len());
        let expected = truth(whole, &image);
        let count = |(_, event): &(HartId, Event)| match event {
            Event::Run(run) => u64::from(run.insns),
            _ => 0,
        };
        assert_eq!(expected.iter().map(count).sum::<u64>(), insns, "{format}");
        for (threads, room) in [(1, usize::MAX), (2, 1000), (4, usize::MAX)] {
            let events = Mutex::new(Vec::new());
            let part = || -> Box<dyn Gather + '_> {
                let events_here = Vec::new();
                let keep = Keep {
                    events: events_here,
                    room,
                };
                Box::new(Shared(keep, &events))
            };
            let mut last = 0;
            let whole = trace(&settings, &bytes);
            let given = whole.decode_parts(&image, (threads, None), &part, |done| {
                assert!(done >= last, "bytes are done in their order");
                last = done;
                Ok::<(), Failed>(())
            });
            assert_eq!(given.unwrap().instructions, insns);
            assert_eq!(last, bytes.len() as u64);
            let events = events.into_inner().unwrap();
            assert!(events == expected, "{format}, {threads} threads");
        }
    }
}

/// What fails outside ends the decoding and is returned as it is.
#[test]
fn a_failure_to_give_is_returned() {
    let image = image();
    let (settings, bytes, _) = recorded(Format::Ntrace, ROUNDS);
    for threads in [1, 3] {
        let events = Mutex::new(Vec::new());
        let part = || -> Box<dyn Gather + '_> {
            let keep = Keep {
                events: Vec::new(),
                room: 10,
            };
            Box::new(Shared(keep, &events))
        };
        let mut calls = 0;
        let whole = trace(&settings, &bytes);
        let given = whole.decode_parts(&image, (threads, None), &part, |done| {
            calls += 1;
            Err::<(), Failed>(Failed::Given(done))
        });
        match given {
            Err(Failed::Given(done)) => assert!(done < bytes.len() as u64, "{threads} threads"),
            other => panic!("{threads} threads: {other:?}"),
        }
        assert_eq!(calls, 1, "{threads} threads");
    }
}

/// The same counts on any number of threads, and those of the events.
#[test]
fn a_tally_counts_what_is_decoded() {
    let image = image();
    for &format in Format::ALL {
        let (settings, mut bytes, insns) = recorded(format, ROUNDS);
        if format != Format::Tandem {
            // Damage is counted as well: neither format has such a byte.
            let middle = bytes.len() / 2;
            bytes[middle..middle + 20].fill(0xaa);
        }
        let whole = trace(&settings, &bytes);
        let mut ignore = Ignore::default();
        let decoded = whole.decode(&image, None, &mut ignore, |_, _| Ok::<(), Failed>(()));
        let expected = decoded.unwrap();
        assert!(expected.instructions > insns / 2, "{format}: {expected:?}");
        assert_eq!(expected.gaps > 0, format != Format::Tandem, "{format}");
        assert_eq!(expected.harts, [HartId(0)]);
        let mut messages = None;
        for threads in [1, 2, 4] {
            let mut last = 0;
            let tallied = trace(&settings, &bytes)
                .tally(Some(&image), threads, &mut |done| {
                    assert!(done >= last);
                    last = done;
                })
                .unwrap();
            assert_eq!((tallied.bytes, last), (bytes.len() as u64, tallied.bytes));
            assert_eq!(tallied.decoded.as_ref(), Some(&expected), "{format}");
            let census = format!("{:?}", tallied.census);
            let (_, known) = messages.get_or_insert((tallied.census.all.messages, census.clone()));
            assert_eq!(*known, census, "{format}, {threads} threads");
        }
        // Without a program, messages are counted all the same.
        let tallied = trace(&settings, &bytes).tally(None, 4, &mut |_| ());
        let tallied = tallied.unwrap();
        assert_eq!(tallied.decoded, None);
        let messages = messages.map(|(messages, _)| messages);
        assert_eq!(Some(tallied.census.all.messages), messages);
        assert_eq!(tallied.bytes, bytes.len() as u64);
    }
}

/// Damage anywhere, timestamps or none, and timestamps that the settings do not have:
/// whatever is counted in parts, or while it is decoded, is counted as in one. Data packets
/// too, of which those of split loads cannot be counted in parts.
#[test]
fn parts_of_a_trace_are_counted_as_one() {
    let mut random = Random::new(9);
    let (plain, bytes, _) = recorded(Format::Ntrace, ROUNDS);
    let mut stamped = plain.clone();
    match &mut stamped {
        Settings::Ntrace(config) => config.timestamps = Some(Default::default()),
        other => panic!("{other:?}"),
    }
    let with_times = with_settings(&stamped, ROUNDS).0;
    let (etrace, packets, _) = recorded(Format::Etrace, ROUNDS);
    let (mut data, mut split) = (etrace.clone(), etrace.clone());
    for (settings, split) in [(&mut data, false), (&mut split, true)] {
        let Settings::Etrace(config) = settings else {
            panic!("{settings:?}")
        };
        let plain = etrace::DataConfig::new(config.version, config.xlen);
        config.data = Some(etrace::DataConfig { split, ..plain });
    }
    let loads = with_settings(&data, ROUNDS / 8).0;
    let requests = with_settings(&split, ROUNDS / 8).0;
    for (settings, bytes) in [
        (&plain, &bytes),
        (&stamped, &with_times),
        (&plain, &with_times),
        (&etrace, &packets),
        (&etrace, &bytes),
        (&data, &loads),
        (&data, &packets),
        (&split, &requests),
    ] {
        let image = match bytes == &loads || bytes == &requests {
            true => image_with_loads(),
            false => image(),
        };
        let tally = |threads, bytes: &[u8]| {
            let tallied = trace(settings, bytes).tally(Some(&image), threads, &mut |_| ());
            format!("{:?}", tallied.unwrap())
        };
        let mut bytes = bytes.clone();
        for _ in 0..random.below(2) * 20 {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
        }
        bytes.truncate(bytes.len() - random.below(3) as usize);
        let expected = tally(1, &bytes);
        let threads = 2 + random.below(4) as usize;
        assert_eq!(tally(threads, &bytes), expected, "{threads} threads");
        let mut counting = Counting::new(settings);
        counting.feed(&bytes);
        let apart = format!("{:?}", counting.finish());
        assert!(expected.contains(&apart), "{apart}\n{expected}");
    }
}
