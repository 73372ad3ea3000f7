//! Code that changes while it runs: traced with its code history and decoded with it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use hartrace_capture::code_history::{CodeFile, CodeFileError};
use hartrace_capture::config::{Config, Setting};
use hartrace_capture::trace::{Decoder, Format, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Check, Consumer, Decode as _, Effects, Event, Fetched, HartId, Image, Insn, Mode,
    Observer as _, Since, Step,
};
use hartrace_isa::{Flow, Isa, Xlen, length};
use hartrace_testkit::Random;
use std::ops::ControlFlow;
use std::path::Path;

/// Where the code is, across the end of a page.
const BASE: u64 = 0xfc0;
const SLOTS: u64 = 64;

/// An instruction with which a halfword may begin: straight on, branches, jumps, calls,
/// returns, of both lengths.
fn instruction(random: &mut Random, at: u64) -> u32 {
    let back = at.wrapping_sub(BASE) as i64 / 2;
    let distance = 2 * (random.below(SLOTS) as i64 - back);
    match random.below(10) {
        0..3 => 0x0001,   // c.nop
        3 => 0x0000_0013, // nop
        4 => 0x8082,      // c.jr ra
        5 => 0x0000_80e7, // jalr ra
        // Forward only: how often a loop without branches is passed, E-Trace does not say.
        6 if distance > 0 => jal(0, distance),
        7 if distance > 0 => jal(1, distance),
        _ => beq(distance),
    }
}

fn jal(rd: u32, to: i64) -> u32 {
    let to = to as u32;
    let imm =
        (to >> 20 & 1) << 31 | (to >> 1 & 0x3ff) << 21 | (to >> 11 & 1) << 20 | (to & 0xff000);
    imm | rd << 7 | 0x6f
}

fn beq(to: i64) -> u32 {
    let to = to as u32;
    let imm =
        (to >> 12 & 1) << 31 | (to >> 5 & 0x3f) << 25 | (to >> 1 & 0xf) << 8 | (to >> 11 & 1) << 7;
    imm | 0x63
}

/// Memory that harts execute and write at the same time.
struct World {
    random: Random,
    halfwords: [u16; SLOTS as usize + 1],
    pcs: Vec<u64>,
    time: u64,
    /// Only instructions of one kind replace each other: a decoder of E-Trace has to know
    /// at some packets whether there is a branch at an address before it gets there.
    gentle: bool,
}

impl World {
    fn new(seed: u64, harts: usize) -> World {
        let mut world = World {
            random: Random::new(seed),
            halfwords: [1; SLOTS as usize + 1],
            pcs: vec![BASE; harts],
            time: 0,
            gentle: false,
        };
        for slot in 0..SLOTS {
            world.write(slot, false);
        }
        world
    }

    fn write(&mut self, slot: u64, gentle: bool) {
        let mut bits = instruction(&mut self.random, BASE + 2 * slot);
        if gentle {
            // The same kind of instruction as before.
            let kind = |bits: u32| (length(bits as u16), bits & 0x7f, bits & 0xf80);
            let old = self.fetch(BASE + 2 * slot);
            for _ in 0..100 {
                if kind(bits) == kind(old) {
                    break;
                }
                bits = instruction(&mut self.random, BASE + 2 * slot);
            }
            if kind(bits) != kind(old) {
                return;
            }
        }
        self.halfwords[slot as usize] = bits as u16;
        if length(bits as u16) == 4 {
            self.halfwords[slot as usize + 1] = (bits >> 16) as u16;
        }
    }

    fn fetch(&self, pc: u64) -> u32 {
        let slot = ((pc - BASE) / 2) as usize;
        let low = self.halfwords[slot];
        match length(low) {
            2 => u32::from(low),
            _ => u32::from(low) | u32::from(self.halfwords[slot + 1]) << 16,
        }
    }

    /// The instruction of a hart; one that cannot be executed is overwritten first.
    fn ready(&mut self, pc: u64) -> u32 {
        loop {
            let bits = self.fetch(pc);
            let len = length(bits as u16);
            let fetched = Fetched {
                bits,
                len,
                isa: Isa::RV64GC,
            };
            let end = BASE + 2 * SLOTS;
            let leaves = pc + u64::from(len) >= end;
            let flow = Flow::of(bits, Isa::RV64GC);
            let target = flow.target(pc, Xlen::Rv64);
            let least = match flow {
                Flow::Jump { .. } => pc + 2,
                _ => BASE,
            };
            let inside = target.is_none_or(|target| (least..end).contains(&target));
            let known = len <= 4 && bits != 0 && !fetched.is_unknown() && flow != Flow::Trap;
            if known && !leaves && inside {
                return bits;
            }
            if leaves {
                let slot = (pc - BASE) / 2;
                self.halfwords[slot as usize] = 0x8082;
                return 0x8082;
            }
            self.write((pc - BASE) / 2, false);
        }
    }

    /// What the next hart does.
    fn step(&mut self) -> (HartId, Insn) {
        let hart = self.random.below(self.pcs.len() as u64) as usize;
        if self.random.below(40) == 0 {
            let slot = self.random.below(SLOTS);
            self.write(slot, self.gentle);
        }
        let pc = self.pcs[hart];
        let bits = self.ready(pc);
        let flow = Flow::of(bits, Isa::RV64GC);
        let behind = pc + u64::from(length(bits as u16));
        let next = match flow {
            Flow::Branch { .. } if self.random.below(2) == 0 => behind,
            Flow::Branch { .. } | Flow::Jump { .. } => flow.target(pc, Xlen::Rv64).unwrap(),
            Flow::Indirect { .. } => BASE + 2 * self.random.below(SLOTS),
            _ => behind,
        };
        self.pcs[hart] = next;
        let (mode, time) = (Mode::M, self.time);
        self.time += 1;
        let insn = Insn {
            pc,
            next,
            bits,
            mode,
            time,
            ..Insn::default()
        };
        (HartId(hart as u32), insn)
    }
}

/// Settings of a format, with as many sources as there are harts.
fn settings(text: &str, harts: usize) -> (Config, Settings) {
    let config = Config::parse(text, Path::new("t.toml")).unwrap();
    let mut config = config.over(Config::defaults());
    config.hart.harts = Some(Setting::default(harts as u32));
    config.make_room_for_harts();
    let format = match text.contains("[etrace]") {
        true => Format::Etrace,
        false => Format::Ntrace,
    };
    let settings = format.settings(&config, Xlen::Rv64).unwrap();
    (config, settings)
}

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
    let mut world = World::new(seed, harts);
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
