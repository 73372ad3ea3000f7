//! E-Trace against a second decoder, the plain one of the testkit: the same
//! packets, instructions and traps.

use std::collections::BTreeMap;
use std::time::Instant;

use hartrace_flow::Image;
use hartrace_isa::Isa;
use hartrace_testkit::plain_etrace::{Item, Packet};

use super::{Case, ETrace, Setting};
use crate::trace::{Events, Format as _, Recorded, programs};

#[path = "../../../crates/etrace/tests/shared/plain.rs"]
mod plain;

/// Steps of a random program in one case.
const STEPS: u64 = 10_000;

/// What was compared.
#[derive(Clone, Debug, Default)]
struct Compared {
    streams: u64,
    insns: u64,
    traps: u64,
    /// Packets by what they contain.
    packets: BTreeMap<String, u64>,
}

impl Compared {
    fn one(packets: &[Packet], items: &[Item]) -> Compared {
        let insns = items.iter().filter(|i| matches!(i, Item::Insn(_)));
        let traps = items.iter().filter(|i| matches!(i, Item::Trap(_)));
        let mut compared = Compared {
            streams: 1,
            insns: insns.count() as u64,
            traps: traps.count() as u64,
            packets: BTreeMap::new(),
        };
        for packet in packets {
            *compared.packets.entry(kind(packet)).or_default() += 1;
        }
        compared
    }

    fn add(&mut self, other: Compared) {
        self.streams += other.streams;
        self.insns += other.insns;
        self.traps += other.traps;
        for (kind, count) in other.packets {
            *self.packets.entry(kind).or_default() += count;
        }
    }
}

/// Format and subformat of a packet, and what it says besides.
fn kind(packet: &Packet) -> String {
    let mut kind = packet.format.to_string();
    if let Some(subformat) = packet.subformat {
        kind += &format!(".{subformat}");
    }
    let said = [
        (packet.has("address"), " address"),
        (packet.notify, " notify"),
        (packet.updiscon, " updiscon"),
        (packet.irreport && packet.has("irets"), " irets"),
        (packet.irreport && packet.has("irdepth"), " irdepth"),
    ];
    let said = said.iter().filter(|(is_there, _)| *is_there);
    kind.extend(said.map(|(_, word)| *word));
    kind
}

/// Decodes a stream with both.
fn both(setting: &Setting, image: &Image, isa: Isa, bytes: &[u8]) -> Result<Compared, String> {
    let mut events = Events::default();
    let mut decoder = ETrace::decoder(&setting.config, image)?;
    decoder.feed(bytes, &mut events);
    decoder.finish(&mut events);
    let events: Vec<_> = events.0.into_iter().map(|(_, event)| event).collect();
    let both = plain::compare(&setting.config, image, isa, bytes, &events)?;
    Ok(Compared::one(&both.0, &both.1))
}

/// A random program with a setting of its own; `None` if that is not covered.
fn random(seed: u64, steps: u64) -> Result<Option<Compared>, String> {
    let case = Case::new(seed);
    if !plain::is_covered(&case.setting.config) {
        return Ok(None);
    }
    let (image, isa) = (case.program.image(), case.program.isa());
    let bytes = case.trace(steps)?;
    let compared = both(&case.setting, image, isa, &bytes);
    let blame = |what| format!("case {seed} {:?}\n{what}", case.setting);
    compared.map(Some).map_err(blame)
}

/// A program of the repository with the setting of this number.
fn recorded(program: &Recorded, number: u64, limit: u64) -> Result<Option<Compared>, String> {
    let setting = ETrace::setting(number, program.isa);
    if !plain::is_covered(&setting.config) {
        return Ok(None);
    }
    let bytes = program.trace(&setting, number, limit)?;
    let compared = both(&setting, &program.image, program.isa, &bytes);
    let blame = |what| format!("{} with setting {number} {setting:?}\n{what}", program.name);
    compared.map(Some).map_err(blame)
}

/// `etrace-second [INSNS] [SEED]`: random programs and those of the repository
/// over the option matrix, half of the instructions each.
/// `etrace-second --case SEED [STEPS]` does one random program again.
///
/// # Errors
///
/// The first difference.
pub fn command(args: &[String]) -> Result<(), String> {
    let number = |i: usize, default: u64| -> Result<u64, String> {
        args.get(i).map_or(Ok(default), |a| {
            a.parse().map_err(|_| format!("not a number: {a}"))
        })
    };
    if args.first().is_some_and(|a| a == "--case") {
        println!("{:?}", random(number(1, 0)?, number(2, STEPS)?)?);
        return Ok(());
    }
    let (insns, seed) = (number(0, 20_000_000)?, number(1, 1)?);
    let start = Instant::now();
    let mut numbers = seed.wrapping_mul(1_000_000)..;
    let mut sum = Compared::default();
    while sum.insns < insns / 2 {
        let compared = random(numbers.next().unwrap_or_default(), STEPS)?;
        sum.add(compared.unwrap_or_default());
    }
    show("random programs", &sum, start);
    let files = programs()?;
    let read: Result<Vec<_>, _> = files.iter().map(|path| Recorded::read(path)).collect();
    let mut sum = Compared::default();
    let all = read?;
    while sum.insns < insns / 2 {
        for program in &all {
            let number = numbers.next().unwrap_or_default();
            sum.add(recorded(program, number, 100_000)?.unwrap_or_default());
        }
    }
    show(&format!("{} programs", all.len()), &sum, start);
    Ok(())
}

fn show(what: &str, sum: &Compared, start: Instant) {
    let packets: u64 = sum.packets.values().sum();
    println!(
        "{what}: {} streams, {packets} packets, {} instructions and {} traps equal in both decoders; {:.1} s",
        sum.streams,
        sum.insns,
        sum.traps,
        start.elapsed().as_secs_f64()
    );
    for (kind, count) in &sum.packets {
        println!("  {count:>9} {kind}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_decoders_say_the_same_of_random_programs() {
        let mut sum = Compared::default();
        for seed in 0..200 {
            let compared = random(seed, 500).unwrap();
            sum.add(compared.unwrap_or_default());
        }
        assert!(sum.streams > 100, "{sum:?}");
    }

    #[test]
    fn both_decoders_say_the_same_of_the_programs() {
        let mut sum = Compared::default();
        for (number, path) in (0..).zip(&programs().unwrap()) {
            let program = Recorded::read(path).unwrap();
            let compared = recorded(&program, number, 3000).unwrap();
            sum.add(compared.unwrap_or_default());
        }
        assert!(sum.streams > 10, "{sum:?}");
    }
}
