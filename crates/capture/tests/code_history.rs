//! Code that changes while it runs: traced with its code history and decoded with it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use hartrace_capture::code_history::{CodeFile, CodeFileError};
use hartrace_capture::config::Config;
use hartrace_capture::trace::{Decoder, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Check, Consumer, Decode as _, Effects, Event, HartId, Image, Insn, Observer as _, Since, Step,
};
use hartrace_isa::Isa;
use hartrace_testkit::Random;
use std::ops::ControlFlow;

mod changing;
#[path = "changing/judged.rs"]
mod judged;

use changing::{World, settings};

/// The trace of a world, its steps, and the code that ran.
fn traced(
    text: &str,
    seed: u64,
    harts: usize,
) -> (Settings, Vec<u8>, Vec<(HartId, Insn)>, CodeFile) {
    let (config, settings) = settings(text, harts);
    let port = settings.port(config.ingress.clone()).port(Isa::RV64GC);
    let mut bytes = Vec::new();
    let put = Box::new(|part: &[u8]| bytes.extend_from_slice(part));
    let options = WriteOptions {
        code: true,
        ..WriteOptions::default()
    };
    let filter = FilterConfig::default();
    let mut writer = TraceWriter::new(&settings, port, &filter, options, put).unwrap();
    let mut world = World::new(seed, harts, 1, false);
    world.gentle = text.lines().count() > 1 && text.contains("[etrace]");
    let mut steps = Vec::new();
    for _ in 0..6_000 {
        let (hart, insn) = world.step();
        writer.step(hart, &Step::Insn(insn), &Effects::default());
        steps.push((hart, insn));
    }
    writer.finish();
    let (isa, history) = (Isa::RV64GC, writer.done().code.unwrap());
    (settings, bytes, steps, CodeFile { isa, history })
}

const SETTINGS: [&str; 7] = [
    "[ntrace]",
    "[ntrace]\nmode = \"btm\"",
    "[ntrace]\nimplicit_return = \"full\"\nsync_max = 2",
    "[etrace]",
    "[etrace]\nbranch_prediction = true\nbpred_size = 4",
    "[etrace]\njump_target_cache = true\ncache_size = 4",
    "[etrace]\nresync_max = 2",
];

/// Decodes a trace with code and compares it with what was done.
fn compare(settings: &Settings, bytes: &[u8], image: &Image, steps: &[(HartId, Insn)]) {
    let port = settings.port(Config::defaults().ingress).port(Isa::RV64GC);
    let mut check = Check::new().without(settings.unreported(&port));
    for (hart, insn) in steps {
        check.step(*hart, &Step::Insn(*insn), &Effects::default());
    }
    let mut decoder = Decoder::new(settings, image).unwrap();
    let mut rest = bytes;
    while !rest.is_empty() {
        let used = decoder.feed(rest, &mut check).max(1);
        rest = &rest[used..];
    }
    decoder.finish(&mut check);
    let checked = check.result().unwrap();
    assert_eq!(checked.insns, steps.len() as u64);
}

#[test]
fn code_that_changes_all_the_time_is_decoded_as_it_was() {
    for text in SETTINGS {
        for (seed, harts) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
            let (settings, bytes, steps, code) = traced(text, seed, harts);
            assert!(!code.history.varying.is_empty());
            let read = CodeFile::read(&code.to_bytes()).unwrap();
            assert_eq!(read, code);
            let mut image = Image::new();
            read.history.add_to(&mut image, read.isa);
            compare(&settings, &bytes, &image, &steps);
        }
    }
}

#[test]
fn damaged_histories_are_refused() {
    let (_, _, _, code) = traced("[ntrace]", 7, 1);
    let bytes = code.to_bytes();
    assert_eq!(CodeFile::read(b"\x7fELF"), Err(CodeFileError::NotCode));
    let mut other = bytes.clone();
    other[8] = 9;
    assert_eq!(CodeFile::read(&other), Err(CodeFileError::Version(9)));
    for end in (0..bytes.len()).step_by(97) {
        assert!(CodeFile::read(&bytes[..end]).is_err(), "{end}");
    }
    let mut random = Random::new(1);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        let at = 9 + random.below(bytes.len() as u64 - 9) as usize;
        damaged[at] ^= 1 << random.below(8);
        // Some bits of gzip's header say nothing.
        assert!(
            CodeFile::read(&damaged).map_or(true, |read| read == code),
            "{at}"
        );
    }
}

/// The history of another run: gaps, but nothing wrong.
#[test]
fn the_history_of_another_run_is_noticed() {
    for text in ["[ntrace]\nsync_max = 2", "[etrace]"] {
        let (settings, bytes, steps, code) = traced(text, 11, 1);
        let mut image = Image::new();
        code.history.add_to(&mut image, code.isa);
        compare(&settings, &bytes, &image, &steps);
        // Its messages are a little further on.
        let mut other = code.history.clone();
        for sync in &mut other.syncs {
            sync.offset += 1;
        }
        let later = |since: &mut Since| {
            if let Since::Sync { offset, .. } = since {
                *offset += 1;
            }
        };
        let versions = other.varying.iter_mut().flat_map(|code| &mut code.versions);
        versions.for_each(|version| later(&mut version.since));
        let mut image = Image::new();
        other.add_to(&mut image, code.isa);
        let mut decoder = Decoder::new(&settings, &image).unwrap();
        let mut lost = Lost(0);
        decoder.feed(&bytes, &mut lost);
        decoder.finish(&mut lost);
        assert!(lost.0 > 0, "{text}");
    }
}

/// Counts gaps.
struct Lost(u64);

impl Consumer for Lost {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.0 += u64::from(matches!(event, Event::Gap(_)));
        ControlFlow::Continue(())
    }
}
