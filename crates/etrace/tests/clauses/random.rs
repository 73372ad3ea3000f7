//! Ways through random programs: the encoder against figure 8.1, and what it
//! sends against both decoders.

use hartrace_etrace::{Config, Encoder, Follower, Resync, ResyncRule, ResyncUnit, Version};
use hartrace_flow::filter::{Filter, FilterConfig};
use hartrace_flow::{
    Context, Ctype, Effects, Event, HartId, Image, Ingress, IngressSink, Insn, Mode, Observer,
    Port, PortConfig, Retirement, Signal, SpaceId, Step,
};
use hartrace_isa::{Flow, Isa, Xlen};
use hartrace_testkit::Random;

use crate::common::asm::*;
use crate::common::*;
use crate::{book, figure};

const BASE: u64 = 0x8000_0000;
const HANDLER: u64 = 0x8000_4000;

/// A program whose only loops are those of branches and indirect jumps: of
/// others nobody could tell how often they go round.
pub(crate) fn program(random: &mut Random) -> (Image, Vec<u64>) {
    let count = 10 + random.below(30) as usize;
    let kinds: Vec<u64> = (0..count).map(|_| random.below(11)).collect();
    let mut places = vec![BASE];
    for kind in &kinds {
        let size = match kind {
            0..5 => 2,
            10 => 8,
            _ => 4,
        };
        places.push(places[places.len() - 1] + size);
    }
    let mut insns = Vec::new();
    for (i, kind) in kinds.iter().enumerate() {
        let by = |to: usize| places[to].wrapping_sub(places[i]) as i32;
        let insn = match kind {
            0..4 => C_ADD,
            4 => C_JR_A5,
            5 => ADD,
            6 | 7 => b(by(random.below(count as u64) as usize)),
            8 => b(by((i + 2).min(count))),
            9 => jal(random.below(2) as u32, by((i + 2).min(count))),
            _ => {
                // A jump to a constant, over the next instruction.
                insns.push(auipc_a5(0));
                jalr(0, 15, by((i + 2).min(count)) as u32)
            }
        };
        insns.push(insn);
    }
    // Room to run into.
    insns.extend([ADD, ADD, C_JALR_A5]);
    let image = rv64(&[
        (BASE, &insns),
        (HANDLER, &[C_ADD, b(4), ADD, MRET]),
        (HANDLER + 0x100, &[b(8), ADD, C_ADD, MRET]),
    ]);
    (image, places)
}

/// A way through it of at least so many instructions. In the draft no two
/// traps come in a row: it cannot tell them both (`readings`).
pub(crate) fn walk(
    version: Version,
    (image, places): &(Image, Vec<u64>),
    random: &mut Random,
    len: usize,
) -> Vec<Do> {
    let modes = [Mode::M, Mode::S, Mode::U];
    let mut way = Vec::new();
    let (mut pc, mut mode) = (places[0], Mode::M);
    let mut back = Vec::new();
    let (mut jumped, mut trapped) = (false, false);
    let mut constant = None;
    while way.len() < len || trapped || jumped {
        let f = image.fetch(SpaceId::FIRST, pc).unwrap();
        let flow = Flow::of(f.bits, f.isa);
        let clear = version != DRAFT || !trapped;
        if back.len() < 3 && clear && random.one_in(25) {
            let handler = HANDLER + 0x100 * random.below(2);
            let cause = match random.below(3) {
                0 => interrupt(7),
                1 => exception(2),
                _ => exception(13),
            };
            way.push(Do::Trap(
                pc,
                handler,
                cause,
                Some(0x1230 + random.below(16)),
            ));
            back.push((pc, mode));
            (pc, mode) = (handler, Mode::M);
            way.push(Do::Mode(mode));
            trapped = true;
            constant = None;
            continue;
        }
        if random.one_in(20) {
            way.push(Do::Signal(Signal::Notify));
        }
        way.push(Do::At(pc));
        jumped = matches!(flow, Flow::Indirect { .. } | Flow::TrapReturn);
        trapped = false;
        let next = pc + u64::from(f.len);
        let sequential = constant
            .take()
            .and_then(|(before, at)| flow.sequential_target(before, at, Xlen::Rv64));
        if let Flow::Const { .. } = flow {
            constant = Some((flow, pc));
        }
        pc = match flow {
            Flow::Branch { .. } if random.one_in(2) => flow.target(pc, Xlen::Rv64).unwrap(),
            Flow::Jump { .. } => flow.target(pc, Xlen::Rv64).unwrap(),
            Flow::Indirect { .. } => {
                let to = places[random.below(places.len() as u64) as usize];
                sequential.unwrap_or(to)
            }
            Flow::TrapReturn => {
                let (to, old) = back.pop().unwrap_or((places[0], Mode::M));
                mode = match random.below(6) {
                    n @ 0..3 => modes[n as usize],
                    _ => old,
                };
                way.push(Do::Mode(mode));
                if random.one_in(4) { places[0] } else { to }
            }
            _ => next,
        };
    }
    way
}

/// The blocks of a single-retirement port.
pub(crate) fn blocks(port: PortConfig, steps: &[Step]) -> Vec<Ingress> {
    let mut rows = Vec::new();
    let mut port = Port::new(port, |_: HartId, row: &Ingress| rows.push(*row));
    for step in steps {
        port.step(HartId(0), step, &Effects::default());
    }
    port.finish();
    drop(port);
    rows
}

/// The figure of the version, whole traces and parts of them.
#[test]
fn packets_are_those_of_figure_8_1() {
    for seed in 1..12 {
        for version in VERSIONS {
            let config = Config {
                triggers: true,
                ..plain(version)
            };
            let mut random = Random::new(seed);
            let program = program(&mut random);
            let way = walk(version, &program, &mut random, 300);
            let (image, places) = program;
            let steps = steps(&image, &way);
            let from = places[random.below(places.len() as u64 / 2) as usize];
            for filter in [
                FilterConfig::default(),
                FilterConfig::address(from..=from + 24),
                FilterConfig::modes(&[Mode::M, Mode::S]),
            ] {
                let port = port(&config, Isa::RV64GC);
                let bytes = encode_at(port, &config, &filter, &steps);
                let mut traced = Filter::new(&filter);
                let rows: Vec<_> = blocks(port, &steps)
                    .into_iter()
                    .map(|row| (row, traced.qualifies(&row).traced))
                    .collect();
                let sent = text(&config, &packets(&config, &bytes));
                let figure = text(&config, &figure::encode(&config, &rows));
                assert_eq!(sent, figure, "seed {seed} {version:?}");
                let mut follower = Follower::new(&config);
                for (packet, line) in packets(&config, &bytes).iter().zip(&sent) {
                    if let Some(address) = follower.packet(0, packet) {
                        assert!(line.contains(&format!(" {address:x}")), "{line}");
                    }
                }
                let pcs: Vec<u64> = rows
                    .iter()
                    .filter(|(row, traced)| *traced && row.iretire > 0)
                    .map(|(row, _)| row.iaddr)
                    .collect();
                let events = decode(&config, &image, &bytes);
                assert_eq!(events.codes(), [] as [&str; 0], "seed {seed} {sent:#?}");
                same(&events.pcs(&image), &pcs, &sent);
                let book = book::decode(&config, &image, &packets(&config, &bytes));
                same(&book.unwrap(), &pcs, &sent);
            }
        }
    }
}

/// With synchronisations by whatever is counted, by both rules; and blocks of
/// several instructions lead to the same packets.
#[test]
fn whatever_is_sent_is_understood() {
    let units = [
        ResyncUnit::Off,
        ResyncUnit::Packets,
        ResyncUnit::Cycles,
        ResyncUnit::Halfwords,
    ];
    for seed in 1..4 {
        for version in VERSIONS {
            for unit in units {
                for rule in [ResyncRule::Settled, ResyncRule::Exceeded] {
                    let mut random = Random::new(seed);
                    let config = Config {
                        triggers: true,
                        resync: Resync { unit, max: 0, rule },
                        sijump: random.one_in(2),
                        full_address: random.one_in(2),
                        ..plain(version)
                    };
                    let program = program(&mut random);
                    let way = walk(version, &program, &mut random, 400);
                    let (image, _) = program;
                    let steps = steps(&image, &way);
                    let port = port(&config, Isa::RV64GC);
                    let none = FilterConfig::default();
                    let bytes = encode_at(port, &config, &none, &steps);
                    understood(&config, &image, &steps, &bytes);
                    if rule == ResyncRule::Exceeded || unit == ResyncUnit::Cycles {
                        continue;
                    }
                    let retirement = Retirement::Block(1 + random.below(20) as u32);
                    let port = PortConfig { retirement, ..port };
                    let other = encode_at(port, &config, &none, &steps);
                    let texts =
                        [bytes, other].map(|bytes| text(&config, &packets(&config, &bytes)));
                    assert_eq!(texts[0], texts[1], "seed {seed} {unit:?} {retirement:?}");
                }
            }
        }
    }
}

/// Each hart has an encoder of its own; their packets come in one stream.
#[test]
fn an_encoder_per_hart() {
    let config = plain(RATIFIED);
    let mut random = Random::new(77);
    let program = program(&mut random);
    let ways = [(); 2].map(|()| walk(RATIFIED, &program, &mut random, 60));
    let (image, _) = program;
    let rows = ways
        .each_ref()
        .map(|way| blocks(port(&config, Isa::RV64GC), &steps(&image, way)));
    let mut both = Encoder::new(config.clone(), Vec::new()).unwrap();
    for i in 0..60 {
        for (hart, rows) in (0..).zip(&rows) {
            if let Some(row) = rows.get(i) {
                both.ingress(HartId(hart), row);
            }
        }
    }
    both.finish();
    for (hart, way) in (0..).zip(&ways) {
        let alone = packets(&config, &encode(&config, &image, way));
        let counters = both.counters(HartId(hart)).unwrap();
        assert_eq!(counters.messages, alone.len() as u64, "hart {hart}");
    }
}

/// Contexts by every `ctype`: what is reported precisely is decoded precisely.
#[test]
fn contexts_are_where_they_were() {
    for seed in 1..4 {
        for version in VERSIONS {
            for ctype in [Ctype::Imprecise, Ctype::Precise, Ctype::Discontinuity] {
                let config = Config {
                    context_width: 8,
                    ..plain(version)
                };
                let mut random = Random::new(seed);
                let program = program(&mut random);
                let mut way = walk(version, &program, &mut random, 100);
                for count in 1..6 {
                    let context = Do::Context(Context(count));
                    if ctype == Ctype::Discontinuity {
                        // Another hart, in the same mode and where this one was
                        // not coming to: see `readings::reading_23_discontinuities`.
                        if mode(&way) == Mode::M {
                            way.push(context);
                            way.extend(walk(version, &program, &mut random, 30));
                        }
                    } else {
                        let at = way.len() as u64 * (count + random.below(2)) / 8;
                        way.insert(at as usize, context);
                    }
                }
                let (image, _) = program;
                let steps = steps(&image, &way);
                let port = PortConfig {
                    ctype,
                    ..port(&config, Isa::RV64GC)
                };
                let bytes = encode_at(port, &config, &FilterConfig::default(), &steps);
                let sent = text(&config, &packets(&config, &bytes));
                let events = decode(&config, &image, &bytes);
                assert_eq!(
                    events.codes(),
                    [] as [&str; 0],
                    "seed {seed} {ctype:?} {sent:#?}"
                );
                let pcs: Vec<u64> = retired(&steps).map(|insn| insn.pc).collect();
                same(&events.pcs(&image), &pcs, &sent);
                let then: Vec<u64> = retired(&steps).map(|insn| insn.context.0).collect();
                let told = contexts(&events);
                let (told, then) = match ctype {
                    // Sooner or later.
                    Ctype::Imprecise => (changes(&events), dedup(then)),
                    _ => (told, then),
                };
                assert_eq!(told, then, "seed {seed} {ctype:?} {sent:#?}");
            }
        }
    }
}

/// The mode at the end of a way.
fn mode(way: &[Do]) -> Mode {
    let modes = way.iter().rev().filter_map(|thing| match thing {
        Do::Mode(mode) => Some(*mode),
        _ => None,
    });
    modes.into_iter().next().unwrap_or(Mode::M)
}

/// The context of each instruction.
fn contexts(events: &Events) -> Vec<u64> {
    let mut context = 0;
    let mut all = Vec::new();
    for event in &events.0 {
        match event {
            Event::Context(owner) => context = owner.context.unwrap().0,
            Event::Run(run) => all.extend((0..run.insns).map(|_| context)),
            _ => {}
        }
    }
    all
}

/// All contexts that were told.
fn changes(events: &Events) -> Vec<u64> {
    let told = events.0.iter().filter_map(|event| match event {
        Event::Context(owner) => Some(owner.context.unwrap().0),
        _ => None,
    });
    dedup(told.collect())
}

fn dedup(mut contexts: Vec<u64>) -> Vec<u64> {
    contexts.dedup();
    contexts
}

fn retired(steps: &[Step]) -> impl Iterator<Item = &Insn> {
    steps.iter().filter_map(|step| match step {
        Step::Insn(insn) => Some(insn),
        _ => None,
    })
}
