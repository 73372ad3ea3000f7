//! Runs of straight-line code, and the same instructions one by one.

use hartrace_flow::{
    Changes, Effects, Observer, Placed, Port, PortConfig, Step, Straight, Straights,
};
use hartrace_isa::{Flow, Isa};
use hartrace_testkit::Random;

use super::*;
use crate::{Encapsulation, Form, Shortening};

const NOP: u32 = 0x0001;
/// `c.bnez a0, 8`.
const BNEZ: u32 = 0xe501;
const RET: u32 = 0x8082;

/// Decoded code: the pieces of [`PIECES`].
fn code() -> Vec<Placed> {
    let pieces: [&[u32]; 5] = [
        &[NOP, BNEZ],
        &[BNEZ],
        &[BNEZ, NOP, BNEZ],
        &[NOP, RET],
        &[RET],
    ];
    let place = |before: &mut Placed, bits: &u32| {
        *before = Placed::after(
            before,
            *bits,
            Flow::of_retired(*bits, Isa::RV64GC),
            before.cost + 3,
        );
        Some(*before)
    };
    let placed = pieces.map(|piece| piece.iter().scan(Placed::default(), place));
    placed.into_iter().flatten().collect()
}

/// Index of the last instruction, number of instructions, and whether it is a branch.
const PIECES: [(u32, u8, bool); 5] = [
    (1, 2, true),
    (2, 1, true),
    (5, 3, true),
    (7, 2, false),
    (8, 1, false),
];

/// So many pieces, one after the other, with jumps and branches to each of them.
fn pieces(random: &mut Random, count: usize) -> Vec<Straight> {
    let mut list = Vec::new();
    let (mut kind, mut time) = (0, 0);
    for _ in 0..count {
        let (last, insns, branch) = PIECES[kind];
        let pc = 0x1000 + 0x100 * kind as u64;
        // Branches are rarely followed by anything but branches, so that maps fill.
        kind = match branch && random.below(20) != 0 {
            true => random.below(3),
            false => random.below(5),
        } as usize;
        list.push(Straight {
            pc,
            next: 0x1000 + 0x100 * kind as u64,
            time,
            last,
            count: insns,
            taken: branch.into(),
            extra: random.below(3) as u16,
        });
        time += 3 * u64::from(insns) + 2;
    }
    list
}

/// What two encoders send: one is given runs, the other each instruction.
fn sent<S: Sink + Default>(config: &Config) -> [S; 2] {
    let mut random = Random::new(1);
    let port = || {
        let encoder = Encoder::new(config.clone(), S::default()).unwrap();
        Port::new(PortConfig::new(Isa::RV64GC), encoder)
    };
    let (mut whole, mut single) = (port(), port());
    let code = code();
    let list = pieces(&mut random, 3000);
    for list in list.chunks(256) {
        let all = Straights {
            code: &code,
            list,
            count: Straight::count_all(list),
            accesses: &[],
            changes: Changes::NONE,
            context: Owner(0),
            mode: Mode::M,
            news: None,
        };
        Observer::straights(&mut whole, HartId(0), &all);
        for insn in all.iter() {
            Observer::step(&mut single, HartId(0), &Step::Insn(insn), &Effects::NONE);
        }
    }
    [whole, single].map(|mut port| {
        Observer::finish(&mut port);
        core::mem::take(port.sink_mut().sink_mut())
    })
}

/// Packets with their times, as a meter of the bandwidth takes them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Timed(Vec<(Vec<u8>, u64)>);

impl Sink for Timed {
    fn message(&mut self, bytes: &[u8]) {
        self.0.push((bytes.to_vec(), 0));
    }

    fn message_at(&mut self, bytes: &[u8], time: u64) {
        self.0.push((bytes.to_vec(), time));
    }
}

fn check_runs(config: &Config) {
    // Several packets at once, and each with its time.
    let [whole, single] = sent::<Vec<u8>>(config);
    assert_eq!(whole, single, "{config:?}");
    assert!(whole.len() > 100);
    let [whole, single] = sent::<Timed>(config);
    assert_eq!(whole, single, "{config:?}");
}

#[test]
fn runs_send_the_packets_of_their_instructions() {
    for unit in [ResyncUnit::Packets, ResyncUnit::Halfwords, ResyncUnit::Off] {
        for max in [0, 1, 4, 8] {
            let resync = Resync {
                unit,
                max,
                ..v2().resync
            };
            for full_address in [false, true] {
                check_runs(&Config {
                    resync,
                    full_address,
                    ..v2()
                });
            }
        }
    }
}

/// Full maps of several runs were compressed as chapter 6 has it.
#[test]
fn full_maps_of_runs_are_shortened_as_the_settings_say() {
    check_runs(&Config {
        shortening: Shortening::Address,
        ..v2()
    });
}

#[test]
fn timestamps_of_runs_are_those_of_their_instructions() {
    for full_address in [false, true] {
        check_runs(&Config {
            encapsulation: Encapsulation {
                form: Form::Riscv,
                time_bytes: 4,
                ..Encapsulation::default()
            },
            full_address,
            ..v2()
        });
    }
}

#[test]
fn a_meter_of_runs_finds_what_one_of_instructions_finds() {
    let modes: [fn(&mut Config); 4] = [
        |_| {},
        |config| (config.implicit_return, config.return_stack_size) = (true, 3),
        |config| (config.branch_prediction, config.bpred_size) = (true, 4),
        |config| (config.jump_target_cache, config.cache_size) = (true, 4),
    ];
    for mode in modes {
        let mut config = v2();
        mode(&mut config);
        check_runs(&config);
    }
}
