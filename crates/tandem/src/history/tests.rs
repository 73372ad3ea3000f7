//! Histories against a plain loop from the start of the trace.

extern crate std;

use std::collections::BTreeMap;
use std::vec;

use super::follow::Value;
use super::*;
use crate::config::StoreData;
use crate::group::GroupKind;
use crate::item::{Item, Operation, Request};
use crate::testing::{any_config, configs, mixture};
use hartrace_testkit::Random;

/// What a plain loop knows in front of an instruction.
#[derive(Clone)]
struct Plain {
    shadow: Shadow,
    memory: BTreeMap<u64, Byte>,
    lost: bool,
    /// Where registers and bytes come from: instruction and byte offset.
    registers: BTreeMap<Register, (u64, u64)>,
    stores: BTreeMap<u64, (u64, u64)>,
    registers_lost: Option<u64>,
    memory_lost: Option<u64>,
    here: (u64, u64),
}

impl Watch for Plain {
    fn register(&mut self, register: Register) {
        self.registers.insert(register, self.here);
    }

    fn memory(&mut self, touch: Touch) {
        for i in 0..touch.len {
            let addr = touch.addr.wrapping_add(i);
            let byte = match touch.value {
                Value::Written(value) | Value::Seen(value) => {
                    Byte::Told(value.to_le_bytes()[i as usize])
                }
                Value::Lost => Byte::Lost,
            };
            self.memory.insert(addr, byte);
            if !matches!(touch.value, Value::Seen(_)) {
                self.stores.insert(addr, self.here);
            }
        }
    }

    fn lose_registers(&mut self) {
        self.registers.clear();
        self.registers_lost = Some(self.here.1);
    }

    fn lose_memory(&mut self) {
        self.memory.clear();
        self.stores.clear();
        self.memory_lost = Some(self.here.1);
        self.lost = true;
    }
}

/// The states in front of all instructions, and at the end.
fn plainly(config: &Config, trace: &[u8]) -> Vec<Plain> {
    let mut plain = Plain {
        shadow: Shadow::new(config),
        memory: BTreeMap::new(),
        lost: false,
        registers: BTreeMap::new(),
        stores: BTreeMap::new(),
        registers_lost: None,
        memory_lost: None,
        here: (0, 0),
    };
    let mut all = Vec::new();
    let mut reader = Reader::new(config.clone());
    let (mut rest, mut ended) = (trace, false);
    loop {
        let next = match ended {
            false => reader.next(&mut rest),
            true => reader.finish(),
        };
        let mut shadow = plain.shadow.clone();
        match next {
            Next::More if ended => break,
            Next::More => ended = true,
            Next::Group => {
                let group = reader.group();
                if shadow.attempts(group, &config.absent) {
                    all.push(plain.clone());
                }
                let insn = all.len() - usize::from(shadow.attempts(group, &config.absent));
                plain.here = (insn as u64, group.at);
                follow::apply(&mut shadow, config, group, &mut plain);
            }
            Next::Problem(problem) => {
                plain.here = (all.len() as u64, problem.at);
                follow::lose(&mut shadow, &next, &mut plain);
            }
            Next::Resumed(_) => {}
        }
        plain.shadow = shadow;
    }
    all.push(plain);
    all
}

fn record(config: &Config, trace: &[u8], every: u64, most: usize, chunk: usize) -> History {
    let mut recorder = Recorder::with_points(config.clone(), every, most);
    trace.chunks(chunk).for_each(|chunk| recorder.feed(chunk));
    recorder.finish()
}

fn same_registers(shadow: &Shadow, plain: &Shadow) {
    assert!(shadow.registers().eq(plain.registers()));
    assert_eq!(shadow.pc, plain.pc);
    assert_eq!(shadow.mode, plain.mode);
    assert_eq!(shadow.mtime, plain.mtime);
}

/// Everything that can be asked, at every instruction.
fn compare(history: &History, trace: &[u8], all: &[Plain]) {
    assert_eq!(history.instructions(), all.len() as u64 - 1);
    for (n, plain) in all.iter().enumerate() {
        let n = n as u64;
        let state = history.at(trace, n).unwrap();
        same_registers(&state.shadow, &plain.shadow);
        assert_eq!(state.next.is_some(), n < history.instructions());
        let last = &all[all.len() - 1];
        for &addr in last.memory.keys().chain([&0, &u64::MAX]) {
            let rest = if plain.lost {
                Byte::Lost
            } else {
                Byte::Unreported
            };
            let byte = |i| *plain.memory.get(&addr.wrapping_add(i)).unwrap_or(&rest);
            let expected = [byte(0), byte(1), byte(2)];
            assert_eq!(
                history.memory(trace, n, addr, 3).unwrap(),
                expected,
                "{addr:#x}"
            );
            let target = Target::Memory { addr, len: 1 };
            let found = history.last_write(trace, target, n).unwrap();
            same_origin(found, plain.stores.get(&addr), plain.memory_lost);
        }
        for register in last.registers.keys() {
            let target = Target::Register(*register);
            let found = history.last_write(trace, target, n).unwrap();
            same_origin(found, plain.registers.get(register), plain.registers_lost);
            if let Origin::Write(write) = found {
                assert_eq!(write.new, plain.shadow.get(*register));
            }
        }
    }
    assert!(history.at(trace, all.len() as u64).is_none());
}

fn same_origin(found: Origin, place: Option<&(u64, u64)>, lost: Option<u64>) {
    match (found, place, lost) {
        (Origin::Write(write), Some(&place), _) => {
            assert_eq!((write.insn, write.offset), place);
        }
        (Origin::Lost { offset, .. }, None, Some(lost)) => assert_eq!(offset, lost),
        (Origin::Never, None, None) => {}
        other => panic!("{other:?}"),
    }
}

/// Traces of all sorts, whole and damaged, with points close and thin.
#[test]
fn histories_are_what_a_loop_finds() {
    let mut random = Random::new(11);
    for round in 0..60 {
        let mut config = any_config(&mut random);
        if round % 3 == 0 {
            config.store_data = StoreData::Operand;
        }
        if round % 5 == 0 {
            config.absent.add("trap.csr").unwrap();
        }
        let mut trace = mixture(&config, &mut random);
        if round % 2 == 0 {
            let at = random.below(trace.len() as u64) as usize;
            trace[at] = random.draw() as u8;
        }
        let all = plainly(&config, &trace);
        for (every, most) in [(1, 1000), (3, 4), (1000, 2)] {
            let chunk = 1 + random.below(40) as usize;
            compare(&record(&config, &trace, every, most, chunk), &trace, &all);
        }
    }
}

/// Groups of instructions: an addition, and a store every third.
fn counting(config: &Config, groups: u64) -> Vec<u8> {
    let mut trace = Vec::new();
    for n in 0..groups {
        let mut items = vec![Item::BeginGroup, Item::IncrementPc];
        if n % 3 == 2 {
            items.push(Item::Insn16(0xc188));
            items.push(Item::EffectiveAddress(0x1000 + n % 64 * 4));
            items.push(Item::StoreData(2, n));
        } else {
            items.push(Item::Insn16(0x0505));
            items.push(Item::Full(Register::x(10), n));
        }
        items.push(Item::EndGroup);
        items.iter().for_each(|item| item.write(config, &mut trace));
    }
    trace
}

/// However long the trace is, points are few, and the last are as good as the
/// first.
#[test]
fn points_are_bounded() {
    let config = Config::default();
    let trace = counting(&config, 5000);
    let history = record(&config, &trace, 2, 16, 1000);
    assert!(history.points.len() <= 16 && history.points.len() > 4);
    let a0 = Register::x(10);
    for n in (1..5000).step_by(37) {
        let expected = if n % 3 == 0 { n - 2 } else { n - 1 };
        let shadow = history.at(&trace, n).unwrap().shadow;
        assert_eq!(shadow.get(a0), Some(expected));
        let Some(Origin::Write(write)) = history.last_write(&trace, Target::Register(a0), n) else {
            panic!("{n}");
        };
        assert_eq!(write.insn, expected);
        assert_eq!(write.kind, GroupKind::Instruction);
        assert_eq!(write.old.is_some(), expected != 0);
    }
}

/// The old value of a store is what was in memory, also where it was written
/// long before.
#[test]
fn stores_know_what_they_replaced() {
    let config = Config::default();
    let trace = counting(&config, 1000);
    let history = record(&config, &trace, 16, 1000, trace.len());
    // 998 is a store to 0x1000 + 38 * 4, as 806 was.
    let target = Target::Memory {
        addr: 0x1099,
        len: 1,
    };
    let Some(Origin::Write(write)) = history.last_write(&trace, target, 1000) else {
        panic!();
    };
    assert_eq!(
        (write.insn, write.old, write.new),
        (998, Some(806), Some(998))
    );
    let addr = 0x1098;
    assert_eq!(write.target, Target::Memory { addr, len: 4 });
    let none = Target::Memory {
        addr: 0x2000,
        len: 8,
    };
    assert_eq!(history.last_write(&trace, none, 1000), Some(Origin::Never));
}

/// A view is written by what holds it; the mode and the pc have writers, too.
#[test]
fn views_modes_and_pcs() {
    let config = Config::default();
    let mut trace = Vec::new();
    for items in [
        &[
            Item::StateInit,
            Item::Full(Register::csr(0x300), 0x1800),
            Item::Mode(3),
        ][..],
        &[
            Item::Pc(0x100),
            Item::Insn32(0x3020_0073),
            Item::Full(Register::csr(0x300), 0x82),
            Item::Mode(0),
        ],
        &[Item::IncrementPc, Item::Insn16(1)],
        &[
            Item::IncrementPc,
            Item::Insn32(0x0030_5073),
            Item::Full(Register::csr(2), 1),
            Item::Full(Register::csr(1), 0),
        ],
    ] {
        Item::BeginGroup.write(&config, &mut trace);
        items
            .iter()
            .for_each(|item| item.write(&config, &mut trace));
        Item::EndGroup.write(&config, &mut trace);
    }
    let history = record(&config, &trace, 1, 100, 7);
    let find = |target, n| match history.last_write(&trace, target, n) {
        Some(Origin::Write(write)) => (write.insn, write.old, write.new),
        other => panic!("{other:?}"),
    };
    let csr = |name| Target::Register(Register::from_name(name).unwrap());
    assert_eq!(find(csr("sstatus"), 3), (0, Some(0), Some(2)));
    assert_eq!(find(csr("mstatus"), 0), (0, None, Some(0x1800)));
    assert_eq!(find(csr("fcsr"), 3), (2, None, Some(0x20)));
    assert_eq!(find(Target::Mode, 3), (0, Some(3), Some(0)));
    assert_eq!(find(Target::Pc, 2), (1, Some(0x100), Some(0x102)));
    let zero = Target::Register(Register::x(0));
    assert_eq!(history.last_write(&trace, zero, 3), Some(Origin::Never));
}

/// Requests from outside load memory; a store whose address nobody tells may
/// have gone anywhere.
#[test]
fn memory_from_outside_and_nowhere() {
    let config = Config::default();
    let mut trace = Vec::new();
    let request = Request {
        addr: 0x8000_0000,
        op: Operation::Store,
        size: 3,
        data: 0x1122_3344_5566_7788,
    };
    for items in [
        &[Item::StateInit, Item::Request(request)][..],
        &[Item::IncrementPc, Item::Insn16(1)],
        &[
            Item::IncrementPc,
            Item::Insn16(0xc188),
            Item::StoreData(0, 1),
        ],
    ] {
        Item::BeginGroup.write(&config, &mut trace);
        items
            .iter()
            .for_each(|item| item.write(&config, &mut trace));
    }
    Item::EndGroup.write(&config, &mut trace);
    let history = record(&config, &trace, 100, 100, 100);
    let at = |n| history.memory(&trace, n, 0x8000_0007, 2).unwrap();
    assert_eq!(at(0), [Byte::Told(0x11), Byte::Unreported]);
    assert_eq!(at(1), at(0));
    assert_eq!(at(2), [Byte::Lost, Byte::Lost]);
    let (addr, len) = (0x8000_0000, 1);
    let origin = history.last_write(&trace, Target::Memory { addr, len }, 2);
    assert!(matches!(
        origin,
        Some(Origin::Lost {
            insn: 1,
            group: 2,
            ..
        })
    ));
}

/// What was written comes back, and answers the same.
#[test]
fn an_index_leads_back() {
    let mut random = Random::new(5);
    for config in configs() {
        let trace = mixture(&config, &mut random);
        let history = record(&config, &trace, 3, 100, 100);
        let bytes = history.to_bytes(&trace);
        let again = History::from_bytes(&bytes, config.clone(), &trace).unwrap();
        assert_eq!(again.points, history.points);
        assert_eq!(again.instructions(), history.instructions());
        assert_eq!(again.problems(), history.problems());
        assert_eq!(again.groups(), history.groups());
    }
}

#[test]
fn a_stale_index_is_refused() {
    let config = Config::default();
    let mut trace = counting(&config, 500);
    let bytes = record(&config, &trace, 10, 100, 100).to_bytes(&trace);
    let read = |trace: &[u8], config: &Config| {
        History::from_bytes(&bytes, config.clone(), trace).map(|history| history.instructions())
    };
    assert_eq!(read(&trace, &config), Ok(500));
    let mut style = config.clone();
    style.style = crate::Style::compact();
    assert_eq!(
        read(&trace, &style),
        Ok(500),
        "only the encoder asks for it"
    );
    let mut other = config.clone();
    other.absent.add("a0").unwrap();
    assert_eq!(read(&trace, &other), Err(IndexError::Settings));
    let other = Config {
        lenient_pc_identifier: true,
        ..config.clone()
    };
    assert_eq!(read(&trace, &other), Err(IndexError::Settings));
    let cut = &trace[..trace.len() - 1];
    assert!(matches!(read(cut, &config), Err(IndexError::Length { .. })));
    for at in [0, trace.len() / 2, trace.len() - 1] {
        trace[at] ^= 1;
        assert_eq!(read(&trace, &config), Err(IndexError::Contents), "{at}");
        trace[at] ^= 1;
    }
    let of_nothing = record(&config, &[], 10, 100, 100).to_bytes(&[]);
    let nothing = History::from_bytes(&of_nothing, config.clone(), &[]).unwrap();
    assert_eq!(nothing.instructions(), 0);
}

/// Whatever is wrong with an index is said; with a right checksum around
/// nonsense, answers may be nonsense, and nothing worse.
#[test]
fn damaged_indexes() {
    let config = Config::default();
    let trace = counting(&config, 200);
    let bytes = record(&config, &trace, 10, 100, 100).to_bytes(&trace);
    let read = |bytes: &[u8]| History::from_bytes(bytes, config.clone(), &trace);
    for len in 0..bytes.len() {
        assert!(read(&bytes[..len]).is_err(), "{len}");
    }
    let mut version = bytes.clone();
    version[8] = 9;
    assert_eq!(read(&version).err(), Some(IndexError::Version(9)));
    assert_eq!(
        read(b"nonsense and more of it").err(),
        Some(IndexError::NotAnIndex)
    );
    let mut random = Random::new(3);
    for _ in 0..3000 {
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
        }
        let _ = read(&bytes);
        let sum = index::Sum::of(&bytes[index::HEADER..]);
        bytes[index::HEADER - 8..index::HEADER].copy_from_slice(&sum.to_le_bytes());
        let Ok(history) = read(&bytes) else {
            continue;
        };
        let n = random.below(history.instructions().max(1));
        let _ = history.at(&trace, n);
        let _ = history.memory(&trace, n, 0x1000, 16);
        let _ = history.last_write(&trace, Target::Register(Register::x(10)), n);
        let (addr, len) = (0x1000, 4);
        let _ = history.last_write(&trace, Target::Memory { addr, len }, n);
    }
}

/// A trace that is not the one the history is of.
#[test]
fn another_trace_is_no_harm() {
    let config = Config::default();
    let trace = counting(&config, 200);
    let history = record(&config, &trace, 10, 100, 100);
    for other in [&[][..], &trace[..100], &[0xff; 4000]] {
        for n in [0, 100, 200] {
            let _ = history.at(other, n);
            let _ = history.memory(other, n, 0x1000, 16);
            let _ = history.last_write(other, Target::Pc, n);
        }
    }
}

/// Resuming is what reading on would have been.
#[test]
fn readers_resume() {
    let config = Config::default();
    let trace = counting(&config, 50);
    let mut reader = Reader::new(config.clone());
    let mut rest = &trace[..];
    while reader.next(&mut rest) == Next::Group {
        let mut resumed = Reader::resume(config.clone(), reader.offset(), reader.groups());
        let mut from = &trace[reader.offset() as usize..];
        let mut ahead = reader.clone();
        let mut there = rest;
        let next = resumed.next(&mut from);
        assert_eq!(next, ahead.next(&mut there));
        assert!(next != Next::Group || resumed.group() == ahead.group());
    }
}
