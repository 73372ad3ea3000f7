//! What happens beside the instructions.

use super::*;
use crate::{Change, How, NewPc};

fn signal(signal: Signal, effects: Effects) -> Did {
    (Step::Signal(signal), effects)
}

fn at(pc: u64) -> Did {
    let insn = Insn {
        pc,
        next: pc + 4,
        ..insn(0x13)
    };
    (Step::Insn(insn), none())
}

fn read(config: &Config, steps: &[Did]) -> Vec<Group> {
    groups(config, &encode(config, steps))
}

/// Where a group says the hart is.
fn place(group: &Group) -> (bool, Option<NewPc>, Option<Mode>) {
    (group.init, group.pc, group.mode)
}

fn start(pc: u64) -> (bool, Option<NewPc>, Option<Mode>) {
    (true, Some(NewPc::To(pc)), Some(Mode::M))
}

const NEXT: (bool, Option<NewPc>, Option<Mode>) = (false, Some(NewPc::Increment), None);

#[test]
fn the_start() {
    let config = Config::default();
    let told: Vec<_> = read(&config, &[at(0x1000), at(0x1004)])
        .iter()
        .map(place)
        .collect();
    assert_eq!(told, [start(0x1000), NEXT, NEXT]);
    let told: Vec<_> = read(&bare(), &[at(0x1000), at(0x1004)])
        .iter()
        .map(place)
        .collect();
    assert_eq!(told, [NEXT, NEXT]);
    // A trap comes first.
    let step = Step::Trap(trap(Cause::Interrupt(Some(7)), None));
    let groups = read(&config, &[(step, none().csr(0x342, 7))]);
    assert_eq!(place(&groups[0]), start(0x1000));
    // Nothing can be told.
    let config = Config {
        absent: "pc,priv".parse().unwrap(),
        ..config
    };
    assert_eq!(read(&config, &[at(0x1000)]).len(), 1);
}

/// Groups lead from each instruction to the next, or a group says where to.
#[test]
fn a_place_nothing_led_to() {
    for config in [Config::default(), bare()] {
        let groups = read(&config, &[at(0x1000), at(0x3000)]);
        let told: Vec<_> = groups.iter().rev().take(2).map(place).collect();
        assert_eq!(told, [NEXT, (true, Some(NewPc::To(0x3000)), None)]);
    }
    // A mode nothing led to.
    let mut user = at(0x1004);
    if let Step::Insn(insn) = &mut user.0 {
        insn.mode = Mode::U;
    }
    let groups = read(&bare(), &[at(0x1000), user]);
    assert_eq!(place(&groups[1]), (true, None, Some(Mode::U)));
}

#[test]
fn reset() {
    let steps = [at(0x1000), signal(Signal::Reset, none()), at(0x1000)];
    let bytes = encode(&bare(), &steps);
    let nop = [1, 3, 17, 0x13, 0, 0, 0, 2];
    assert_eq!(bytes, [&nop[..], &[1, 10, 2], &nop].concat());
    let groups = read(&Config::default(), &steps);
    assert!(groups[2].reset);
    assert_eq!(place(&groups[3]), start(0x1000));
}

/// Old values are forgotten.
#[test]
fn a_reset_forgets() {
    let mut config = bare();
    config.style.incremental = true;
    for lost in [Signal::Reset, Signal::Lost] {
        let steps = [
            (at(0x1000).0, x(3, 1)),
            signal(lost, none()),
            (at(0x1004).0, x(3, 2)),
            (at(0x1008).0, x(3, 3)),
        ];
        let groups = read(&config, &steps);
        let how: Vec<_> = groups
            .iter()
            .filter_map(|g| Some(g.changes.first()?.how))
            .collect();
        assert_eq!(how, [How::Full(1), How::Full(2), How::Offset(1)]);
    }
}

/// Pending interrupts, as the Bluespec cores tell them.
#[test]
fn an_update_is_state_from_outside() {
    let steps = [at(0x1000), signal(Signal::Update, none().csr(0x344, 0x80))];
    let bytes = encode(&bare(), &steps);
    let want = [1, 11, 4, 0x44, 3, 0x80, 0, 0, 0, 0, 0, 0, 0, 2];
    assert_eq!(bytes[8..], want);
    // Nothing has changed.
    let steps = [at(0x1000), signal(Signal::Update, none())];
    assert_eq!(encode(&bare(), &steps).len(), 8);
    // A store into memory.
    let stored = signal(Signal::Update, none().access(store(1, 0x8000, 0xbeef)));
    let bytes = encode(&bare(), &[stored]);
    let want = [1, 11, 8, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x11, 0xef, 0xbe, 2];
    assert_eq!(bytes, want);
}

/// Semihosting: the hart halts at an ebreak, and goes on behind it with a
/// result.
#[test]
fn a_debugger_sets_registers_and_pc() {
    let steps = [
        at(0x1000),
        signal(Signal::Halted, x(10, 7)),
        signal(Signal::Resumed, none()),
        at(0x1008),
    ];
    let groups = read(&bare(), &steps);
    assert_eq!(groups.len(), 3);
    assert_eq!(place(&groups[1]), (true, Some(NewPc::To(0x1008)), None));
    let change = Change {
        register: Register::x(10),
        how: How::Full(7),
    };
    assert_eq!(groups[1].changes, [change]);
    // The trace ends before it goes on, or the hart has gone nowhere.
    let groups = read(&bare(), &steps[..3]);
    assert_eq!(place(&groups[1]), (true, None, None));
    assert_eq!(groups[1].changes, [change]);
    let groups = read(&bare(), &[steps[0], steps[1], steps[2], at(0x1004)]);
    assert_eq!(place(&groups[1]), (true, None, None));
    // Without effects it says nothing.
    let silent = [at(0x1000), signal(Signal::Halted, none()), at(0x1004)];
    assert_eq!(read(&bare(), &silent).len(), 2);
}

#[test]
fn a_loss_tells_the_place_again() {
    let steps = [at(0x1000), signal(Signal::Lost, none()), at(0x1004)];
    let told: Vec<_> = read(&bare(), &steps).iter().map(place).collect();
    assert_eq!(told, [NEXT, start(0x1004), NEXT]);
}

#[test]
fn signals_without_a_word() {
    for silent in [
        Signal::TraceOn,
        Signal::Notify,
        Signal::PowerDown,
        Signal::External(3),
    ] {
        let steps = [at(0x1000), signal(silent, none()), at(0x1004)];
        assert_eq!(
            encode(&bare(), &steps),
            encode(&bare(), &[steps[0], steps[2]])
        );
    }
}

/// The largest size that is aligned, as a loader would.
#[test]
fn loading() {
    let mut encoder = Encoder::new(Config::default()).unwrap();
    let mut bytes = Vec::new();
    let data: Vec<u8> = (1..=20).collect();
    encoder.load(0x8000_0001, &data, &mut bytes);
    encoder.load(0, &[], &mut bytes);
    let groups = groups(&Config::default(), &bytes);
    let told: Vec<_> = groups
        .iter()
        .map(|g| {
            assert!(g.init && g.items == 2);
            let request = g.memory[0].request;
            assert_eq!(request.op, Operation::Store);
            assert_eq!(g.memory[0].response, None);
            (request.addr, request.size, request.data)
        })
        .collect();
    assert_eq!(
        told,
        [
            (0x8000_0001, 0, 0x01),
            (0x8000_0002, 1, 0x0302),
            (0x8000_0004, 2, 0x0706_0504),
            (0x8000_0008, 3, 0x0f0e_0d0c_0b0a_0908),
            (0x8000_0010, 2, 0x1312_1110),
            (0x8000_0014, 0, 0x14),
        ]
    );
}
