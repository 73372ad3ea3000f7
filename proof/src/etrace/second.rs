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
    let mut case = Case::new(seed);
    case.setting.unpack();
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
    let mut setting = ETrace::setting(number, program.isa);
    setting.unpack();
    match plain::is_covered(&setting.config) {
        true => compared(program, &setting, number, limit).map(Some),
        false => Ok(None),
    }
}

/// A program of the repository with a setting.
fn compared(
    program: &Recorded,
    setting: &Setting,
    seed: u64,
    limit: u64,
) -> Result<Compared, String> {
    let bytes = program.trace(setting, seed, limit)?;
    let blame = |what| format!("{} {seed} with {setting:?}\n{what}", program.name);
    both(setting, &program.image, program.isa, &bytes).map_err(blame)
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
    use crate::trace::Pipe;
    use hartrace_etrace::{Config, Resync, ResyncRule, ResyncUnit, Version};
    use hartrace_flow::{Effects, HartId, Observer, Step, Wants};

    #[test]
    fn both_decoders_say_the_same_of_random_programs() {
        let mut sum = Compared::default();
        for seed in 0..150 {
            let compared = random(seed, 500).unwrap();
            sum.add(compared.unwrap_or_default());
        }
        assert!(sum.streams > 140 && sum.insns > 40_000, "{sum:?}");
    }

    /// A mode and its tables, or several.
    type Mode = fn(&mut Config);

    const MODES: [Mode; 7] = [
        |_| {},
        |c| c.full_address = true,
        |c| c.sijump = true,
        |c| c.implicit_exception = true,
        |c| (c.branch_prediction, c.bpred_size) = (true, 5),
        |c| (c.jump_target_cache, c.cache_size) = (true, 3),
        |c| (c.implicit_return, c.return_stack_size) = (true, 2),
    ];

    /// Steps of a program from one of them on.
    fn part(program: &Recorded, from: usize, count: usize) -> Vec<Step> {
        struct Steps(Vec<Step>);
        impl Observer for Steps {
            const WANTS: Wants = Wants::STEPS;
            fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
                self.0.push(*step);
            }
        }
        let mut steps = Steps(Vec::new());
        let limit = (from + count) as u64;
        program.run(limit, &mut steps, |_| false).unwrap();
        steps.0.split_off(from)
    }

    /// Every version with every mode alone and with all of them, with and without
    /// periodic synchronization.
    #[test]
    fn both_decoders_say_the_same_in_every_mode() {
        let mut sum = Compared::default();
        // Each after its first instructions, which all programs share.
        let parts = [
            ("interpreter-rv64gc", 20_000),
            ("recursion-rv32gc", 20_000),
            ("timer-rv64gc", 20_000),
            ("modes-rv64gc", 100_000),
        ];
        for (name, from) in parts {
            let program = Recorded::named(name).unwrap();
            let steps = part(&program, from, 2500);
            for version in [Version::V1_1_1, Version::V2_0, Version::V2_05] {
                for modes in MODES.iter().map(std::slice::from_ref).chain([&MODES[..]]) {
                    for unit in [ResyncUnit::Off, ResyncUnit::Halfwords] {
                        let mut config = Config::new(version, program.isa.xlen());
                        modes.iter().for_each(|mode| mode(&mut config));
                        let counts = config.branch_prediction && config.jump_target_cache;
                        config.f0s_width = counts.into();
                        config.resync = Resync {
                            unit,
                            max: 6,
                            rule: ResyncRule::Settled,
                        };
                        let setting = Setting {
                            port: config.port(program.isa),
                            config,
                            harts: 1,
                            signals: false,
                            loses: false,
                        };
                        let mut pipe = Pipe::new(&setting, &program.image).unwrap().keeping();
                        for step in &steps {
                            pipe.step(HartId(0), step, &Effects::default());
                        }
                        let bytes = pipe.into_bytes();
                        let compared = both(&setting, &program.image, program.isa, &bytes);
                        sum.add(compared.unwrap_or_else(|e| panic!("{name} {setting:?}\n{e}")));
                    }
                }
            }
        }
        assert_eq!(sum.streams, 4 * 3 * 8 * 2);
        let kinds = [
            "0.0",
            "0.0 address",
            "0.1",
            "0.1 irets",
            "1",
            "1 address irdepth",
            "1 address irets",
            "3.1",
            "3.1 address",
        ];
        for kind in kinds {
            assert!(sum.packets.contains_key(kind), "no {kind} in {sum:?}");
        }
    }

    #[test]
    fn both_decoders_say_the_same_of_the_programs() {
        let mut sum = Compared::default();
        for (number, path) in (0..).zip(&programs().unwrap()) {
            let program = Recorded::read(path).unwrap();
            let compared = recorded(&program, number, 2000).unwrap();
            sum.add(compared.unwrap_or_default());
        }
        assert!(sum.streams > 40, "{sum:?}");
    }
}
