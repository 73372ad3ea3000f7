//! Arbitrary bytes as a trace, and round trips of any trace.

use std::ops::ControlFlow;

use hartrace_flow::{Consumer, Decode, Event, HartId, Image, SpaceId, Totals};
use hartrace_isa::Isa;

use super::elf::inside;
use super::{Input, ensure};
use crate::trace::identity::Case;
use crate::trace::{Format, counted};

/// Where the small program stands.
pub(super) const BASE: u64 = 0x8000_0000;

/// Follows events: finitely many, and all inside the code.
struct Follow<'a> {
    image: &'a Image,
    hash: u64,
    insns: u64,
    events: u64,
    fault: Option<String>,
    /// It is only told how many instructions there were.
    counts: bool,
    /// Of all events but runs.
    others: u64,
}

impl Follow<'_> {
    const fn new(image: &Image, counts: bool) -> Follow<'_> {
        Follow {
            counts,
            others: 0,
            image,
            hash: 0,
            insns: 0,
            events: 0,
            fault: None,
        }
    }
}

impl Consumer for Follow<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.events += 1;
        let fields = match event {
            Event::Run(run) => {
                self.insns += u64::from(run.insns);
                // Walking in circles is walked once.
                if self.fault.is_none() && self.events < 5000 {
                    self.fault = inside(self.image, SpaceId::FIRST, run).err();
                }
                [
                    run.start,
                    run.end ^ run.next,
                    u64::from(run.insns),
                    run.exit as u64,
                ]
            }
            Event::Trap(trap) => [1, trap.epc.unwrap_or(1), trap.handler.unwrap_or(0), 0],
            Event::Context(owner) => [2, owner.context.map_or(0, |c| c.0), 0, 0],
            Event::Time(time) => [3, *time, 0, 0],
            Event::Gap(gap) => [4, gap.at, gap.bytes, gap.unconfirmed],
            Event::Mark(_) => [5, 0, 0, 0],
            Event::Access(_) => [6, 0, 0, 0],
            Event::DataGap(gap) => [8, gap.at, 0, 0],
            Event::Code(space) => [9, space.index() as u64, 0, 0],
            Event::Warning(warning) => [7, warning.at, u64::from(warning.is_loss), 0],
            Event::Unconfirmed(what) => [10, what.insns, what.address, 0],
        };
        for field in fields.into_iter().chain([u64::from(hart.0)]) {
            self.hash = (self.hash.rotate_left(5) ^ field).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if !matches!(event, Event::Run(_)) {
                self.others =
                    (self.others.rotate_left(5) ^ field).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
        ControlFlow::Continue(())
    }

    fn only_counts(&self) -> bool {
        self.counts
    }

    fn counted(&mut self, _: HartId, counted: Totals) -> ControlFlow<()> {
        self.insns += counted.insns;
        ControlFlow::Continue(())
    }
}

/// Any bytes, any setting, any program: decoding ends, gives the same events in
/// any chunks, and all its runs lie in the code.
pub(super) fn flow<F: Format>(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let isa = if input.flag() {
        Isa::RV64GC
    } else {
        Isa::RV32GC
    };
    let mut config = F::setting(input.number(2), isa).config;
    F::bound(&mut config);
    let chunk = 1 + usize::from(input.byte());
    let len = usize::from(input.byte());
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, input.slice(len), isa);
    let trace = input.rest();
    let (mut results, mut sums) = (Vec::new(), Vec::new());
    let whole = trace.len().max(1);
    for (chunk, counts) in [(whole, false), (1, false), (chunk, false), (whole, true)] {
        let mut decoder = F::decoder(&config, &image)?;
        let mut out = Follow::new(&image, counts);
        for mut rest in trace.chunks(chunk) {
            while !rest.is_empty() {
                let used = decoder.feed(rest, &mut out);
                ensure(used > 0, || "no progress".into())?;
                rest = rest.get(used..).unwrap_or_default();
            }
        }
        ensure(decoder.position() == trace.len() as u64, || {
            format!("at {} of {}", decoder.position(), trace.len())
        })?;
        decoder.finish(&mut out);
        if let Some(fault) = out.fault {
            return Err(fault);
        }
        sums.push((out.insns, out.others));
        if !counts {
            results.push((out.hash, out.insns, out.events));
        }
    }
    ensure(
        results.iter().all(|result| Some(result) == results.first()),
        || format!("in chunks of {chunk}: {results:?}"),
    )?;
    ensure(sums.first() == sums.last(), || {
        format!("only counted: {sums:?}")
    })?;
    counted(&F::settings(&config), &image, trace)
}

/// Any program, any setting, any walk: what is decoded is what was done.
pub(super) fn round_trip<F: Format>(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let seed = input.number(8);
    let steps = 1 + input.number(2) % 2000;
    let mut case = Case::<F>::new(seed);
    case.try_setting(input.number(4));
    case.identity(steps)?;
    case.blocks(steps).map(drop)
}

/// Seeds for [`flow`]: a small program, settings, and these bytes.
pub(super) fn flow_seeds(trace: &[u8]) -> Vec<Vec<u8>> {
    // loop: c.nop; c.bnez a0, loop; c.jal or c.addiw; c.jr ra; ecall
    let code = [
        0x01, 0x00, 0x7d, 0xfd, 0x01, 0x20, 0x82, 0x80, 0x73, 0x00, 0x00, 0x00, 0x01, 0x00,
    ];
    let seed = |setting: u8| {
        let mut seed = vec![setting & 1, setting, 0, 3, code.len() as u8];
        seed.extend_from_slice(&code);
        seed.extend_from_slice(trace);
        seed
    };
    (0..64).map(seed).collect()
}

pub(super) fn round_trip_seeds() -> Vec<Vec<u8>> {
    (0..40u64)
        .map(|seed| {
            let mut bytes = seed.to_le_bytes().to_vec();
            bytes.extend_from_slice(&[0xff, (seed & 3) as u8]);
            bytes.extend_from_slice(&(seed as u32 * 7).to_le_bytes());
            bytes
        })
        .collect()
}
