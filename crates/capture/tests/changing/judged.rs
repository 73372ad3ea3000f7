//! Code histories made of writes by time and by context: what is decoded with them is right,
//! or marked as unconfirmed.

use hartrace_capture::code_history::{CodeWrite, make};
use hartrace_capture::trace::{Decoder, Settings, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Consumer, Context, Decode as _, Effects, Event, HartId, Image, Insn, Observer as _, Run, Since,
    SpaceId, Step,
};
use hartrace_isa::Isa;
use std::ops::ControlFlow;

use crate::changing::{World, Wrote, settings};

const TIMED: [&str; 6] = [
    "[ntrace]\ntimestamps = true\ncontext = true\nsync_max = 2",
    "[ntrace]\ntimestamps = true\ncontext = true\nsync_max = 2\nmode = \"btm\"",
    "[ntrace]\ntimestamps = true\ncontext = true\nsync_max = 2\nimplicit_return = \"full\"",
    "[ntrace]\ntimestamps = true\ncontext = true\nsync_max = 2\ntimestamp_sync_only = true",
    "[etrace]\ncontext_width = 8\nresync_max = 2\n\
     [etrace.encapsulation]\nform = \"riscv\"\nsrc_bits = 8\ntime_bytes = 8",
    "[etrace]\ncontext_width = 8\nresync_max = 2\ntime_width = 40",
];

/// The trace of steps.
fn traced(text: &str, harts: usize, steps: &[(HartId, Insn)]) -> (Settings, Vec<u8>) {
    let (config, settings) = settings(text, harts);
    let port = settings.port(config.ingress.clone()).port(Isa::RV64GC);
    let mut bytes = Vec::new();
    let put = Box::new(|part: &[u8]| bytes.extend_from_slice(part));
    let (filter, options) = (FilterConfig::default(), WriteOptions::default());
    let mut writer = TraceWriter::new(&settings, port, &filter, options, put).unwrap();
    for (hart, insn) in steps {
        writer.step(*hart, &Step::Insn(*insn), &Effects::default());
    }
    writer.finish();
    drop(writer);
    (settings, bytes)
}

/// The code that was written, by time and context.
fn image(wrote: &[Wrote], contexts: bool) -> Image {
    let write = |(time, context, address, bytes): &Wrote| CodeWrite {
        since: match time {
            0 => Since::Start,
            _ => Since::Time(*time),
        },
        context: contexts.then_some(Context(*context)),
        ..CodeWrite::constant(*address, bytes.clone().into())
    };
    let writes: Vec<CodeWrite> = wrote.iter().map(write).collect();
    let mut image = Image::new();
    make(&writes, 0).unwrap().add_to(&mut image, Isa::RV64GC);
    image
}

/// What a decoder gave of one hart: instructions, and whether it vouches for each.
struct Given<'i> {
    image: &'i Image,
    hart: HartId,
    space: SpaceId,
    insns: Vec<(u64, u32, bool)>,
    /// Where something is missing.
    breaks: Vec<usize>,
    gaps: u64,
}

impl Given<'_> {
    fn doubt(&mut self, count: u64) {
        for insn in self.insns.iter_mut().rev().take(count as usize) {
            insn.2 = false;
        }
    }

    fn run(&mut self, run: &Run) {
        for (pc, fetched) in self
            .image
            .insns(self.space, run.start, u64::from(run.insns))
        {
            self.insns.push((pc, fetched.bits, true));
        }
    }
}

impl Consumer for Given<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            _ if hart != self.hart => {}
            Event::Run(run) => self.run(run),
            Event::Code(space) => self.space = *space,
            Event::Context(_) => self.space = SpaceId::FIRST,
            Event::Unconfirmed(what) => {
                assert!(what.insns > 0 && what.insns <= self.insns.len() as u64);
                self.doubt(what.insns);
            }
            Event::Gap(gap) => {
                self.gaps += 1;
                self.doubt(gap.unconfirmed);
                self.breaks.push(self.insns.len());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whatever a decoder vouches for, the hart did, in this order. Gives how many
/// instructions those are.
fn judge(given: &Given<'_>, truth: &[(u64, u32)], what: &str) -> usize {
    let (mut at, mut sure, mut first) = (0, 0, 0);
    let mut ends: Vec<usize> = (0..given.insns.len())
        .filter(|n| !given.insns[*n].2)
        .chain(given.breaks.iter().copied())
        .chain([given.insns.len()])
        .collect();
    ends.sort_unstable();
    for end in ends {
        let end = end.max(first);
        let part: Vec<(u64, u32)> = given.insns[first..end].iter().map(|i| (i.0, i.1)).collect();
        first = match given.insns.get(end) {
            Some((_, _, false)) => end + 1,
            _ => end,
        };
        if part.is_empty() {
            continue;
        }
        let found = truth[at..].windows(part.len()).position(|w| w == part);
        assert!(
            found.is_some(),
            "{what}: {part:x?} is not in the truth from {at} on"
        );
        at += found.unwrap_or(0) + part.len();
        sure += part.len();
    }
    sure
}

fn decoded<'i>(settings: &Settings, bytes: &[u8], image: &'i Image, hart: HartId) -> Given<'i> {
    let mut given = Given {
        image,
        hart,
        space: SpaceId::FIRST,
        insns: Vec::new(),
        breaks: Vec::new(),
        gaps: 0,
    };
    let mut decoder = Decoder::new(settings, image).unwrap();
    decoder.feed(bytes, &mut given);
    decoder.finish(&mut given);
    given
}

#[test]
fn what_a_decoder_vouches_for_is_right() {
    let (mut sure, mut all, mut unsure) = (0, 0, 0);
    for text in TIMED {
        for (seed, harts, contexts, seldom) in [
            (1, 1, 1, 40),
            (2, 1, 1, 200),
            (3, 2, 1, 100),
            (4, 1, 3, 100),
            (5, 2, 2, 60),
        ] {
            if contexts > 1 && text.contains("implicit_return") {
                continue; // returns into another context are not reported
            }
            let mut world = World::new(seed, harts, contexts, true);
            world.settle();
            world.seldom = seldom;
            let steps: Vec<_> = (0..4000).map(|_| world.step()).collect();
            let (settings, bytes) = traced(text, harts, &steps);
            let image = image(&world.wrote, contexts > 1);
            for hart in 0..harts as u32 {
                let own = steps.iter().filter(|step| step.0 == HartId(hart));
                let truth: Vec<(u64, u32)> = own.map(|(_, i)| (i.pc, i.bits)).collect();
                let given = decoded(&settings, &bytes, &image, HartId(hart));
                let right = judge(&given, &truth, &format!("{text}, seed {seed}"));
                sure += right;
                all += truth.len();
                unsure += given.insns.len() - right;
            }
        }
    }
    assert!(unsure > 0, "nothing was ever in doubt");
    assert!(sure * 2 > all, "{sure} of {all}");
}

/// Processes with other code at the same addresses.
#[test]
fn contexts_have_code_of_their_own() {
    for text in TIMED
        .iter()
        .filter(|text| !text.contains("implicit_return"))
    {
        let mut world = World::new(9, 1, 3, true);
        world.settle();
        let steps: Vec<_> = (0..3000).map(|_| world.step()).collect();
        let (settings, bytes) = traced(text, 1, &steps);
        let image = image(&world.wrote, true);
        let truth: Vec<(u64, u32)> = steps.iter().map(|(_, i)| (i.pc, i.bits)).collect();
        let given = decoded(&settings, &bytes, &image, HartId(0));
        assert_eq!(judge(&given, &truth, text), truth.len(), "{text}");
        assert_eq!(given.gaps, 0, "{text}");
    }
}
