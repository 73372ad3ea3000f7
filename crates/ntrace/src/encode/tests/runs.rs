//! Runs of straight-line code, and the same instructions one by one.

use hartrace_flow::{
    Changes, Effects, Observer, Placed, Port, PortConfig, Step, Straight, Straights,
};
use hartrace_isa::{Flow, Isa};
use hartrace_testkit::Random;

use super::*;

const NOP: u32 = 0x0001;
/// `c.bnez a0, 8`.
const BNEZ: u32 = 0xe501;
const RET: u32 = 0x8082;

/// What pieces consist of; the last instruction may lead elsewhere.
const PIECES: [&[u32]; 5] = [
    &[NOP, BNEZ],
    &[BNEZ],
    &[BNEZ, NOP, BNEZ],
    &[NOP, BNEZ, NOP, RET],
    &[RET],
];

fn code() -> Vec<Placed> {
    let mut code = Vec::new();
    for piece in PIECES {
        let mut before = Placed::default();
        for bits in piece {
            let flow = Flow::of_retired(*bits, Isa::RV64GC);
            before = Placed::after(&before, *bits, flow, before.cost + 3);
            code.push(before);
        }
    }
    code
}

/// So many pieces, one after the other, with jumps and branches to each of them.
fn pieces(random: &mut Random, count: usize) -> Vec<Straight> {
    let ends: Vec<usize> = PIECES
        .iter()
        .scan(0, |end, piece| {
            *end += piece.len();
            Some(*end)
        })
        .collect();
    let (mut kind, mut time) = (0, 0);
    let mut list = Vec::new();
    for _ in 0..count {
        let insns = PIECES[kind];
        let branch = insns.last() == Some(&BNEZ);
        let (pc, last) = (0x1000 + 0x100 * kind as u64, ends[kind] as u32 - 1);
        // Branches are often followed by branches, so that histories fill.
        kind = match branch && random.below(8) != 0 {
            true => random.below(3),
            false => random.below(5),
        } as usize;
        list.push(Straight {
            pc,
            next: 0x1000 + 0x100 * kind as u64,
            time,
            last,
            count: insns.len() as u8,
            taken: branch.into(),
            extra: random.below(3) as u16,
        });
        time += 3 * insns.len() as u64 + 2;
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
    for list in pieces(&mut random, 3000).chunks(256) {
        let all = Straights {
            code: &code,
            list,
            count: Straight::count_all(list),
            accesses: &[],
            changes: Changes::NONE,
            context: Context(0),
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

/// Messages with their times, as a meter of the bandwidth takes them.
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

fn settings() -> Vec<Config> {
    let htm = htm(Version::V1_0);
    let repeated = Config {
        repeated_history: RepeatedHistory::On,
        ..htm.clone()
    };
    let stack = Config {
        implicit_return: ImplicitReturn::Full,
        ..htm.clone()
    };
    let stamped = Config {
        timestamps: Some(Timestamps::default()),
        ..htm.clone()
    };
    vec![htm, btm(Version::V1_0), repeated, stack, stamped]
}

#[test]
fn runs_send_the_messages_of_their_instructions() {
    for config in settings() {
        let [whole, single] = sent::<Vec<u8>>(&config);
        assert_eq!(whole, single, "{config:?}");
        assert!(whole.len() > 1000);
    }
}

#[test]
fn a_meter_of_runs_finds_what_one_of_instructions_finds() {
    for config in settings() {
        let [whole, single] = sent::<Timed>(&config);
        assert_eq!(whole, single, "{config:?}");
    }
}
