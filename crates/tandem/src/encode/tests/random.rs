//! Random steps through the encoder and the reader.

use std::collections::BTreeMap;

use super::*;
use crate::config::{Addresses, EaddrWidth, Flen, MemoryStyle, Mlen, Nibbles, PcStyle, StoreData};
use crate::{Data, How, NewPc};
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

/// Small ones, large ones and near ones.
fn value(random: &mut Random, xlen: Xlen) -> u64 {
    let near = random.below(300);
    let value = match random.below(4) {
        0 => near,
        1 => 0u64.wrapping_sub(near),
        2 => 0x8000_0000 + near,
        _ => random.draw(),
    };
    xlen.wrap(value)
}

const BITS: [u32; 9] = [
    0x13,
    0x0001,
    0x6f,
    0x8082,
    0x0005_2603,
    0x00b5_2023,
    0x1005_262f,
    0x18b5_262f,
    0xc0b5_262f,
];

const CSRS: [u16; 8] = [0x001, 0x002, 0x003, 0x300, 0x100, 0x341, 0x344, 0xb02];

const KINDS: [AccessKind; 6] = [
    AccessKind::Load,
    AccessKind::Store,
    AccessKind::AtomicAdd,
    AccessKind::AtomicAnd,
    AccessKind::AtomicMin,
    AccessKind::ConditionalStoreFailure,
];

fn effects(rng: &mut Random, xlen: Xlen) -> Effects {
    let mut effects = none();
    for _ in 0..rng.below(4) {
        let number = rng.below(32) as u8;
        let (reg, value) = match rng.below(4) {
            0 => (RegId::F(number), rng.draw()),
            _ => (RegId::X(number % 4), value(rng, xlen)),
        };
        effects = effects.reg(reg, value);
    }
    for _ in 0..rng.below(4) {
        effects = effects.csr(rng.one_of(CSRS), value(rng, xlen));
    }
    for _ in 0..rng.below(3) {
        let size = rng.below(4) as u8;
        let cut = u64::MAX >> (64 - (8 << size));
        effects = effects.access(Access {
            kind: rng.one_of(KINDS),
            paddr: (rng.below(2) == 0).then(|| value(rng, xlen)),
            data: Some(rng.draw() & cut),
            operand: Some(rng.draw() & cut),
            ..store(size, value(rng, xlen), 0)
        });
    }
    effects
}

/// Steps that lead from one to the next, with signals between.
pub(super) fn walk(rng: &mut Random, xlen: Xlen) -> Vec<Did> {
    let mut steps = Vec::new();
    let (mut pc, mut mode) = (0x8000_0000, Mode::M);
    for _ in 0..60 {
        let mut effects = effects(rng, xlen);
        if rng.below(6) == 0 {
            let new = rng.one_of([Mode::U, Mode::S, Mode::M]);
            effects.mode = Some(new).filter(|&new| new != mode);
        }
        let step = match rng.below(10) {
            0 => {
                let handler = value(rng, xlen) & !3;
                effects.regs.clear();
                effects.accesses.clear();
                // Not to be made up.
                effects = effects.csr(0x341, pc);
                Step::Trap(TrapStep {
                    trap: Trap {
                        epc: Some(pc),
                        handler: Some(handler),
                        cause: Cause::Exception(Some(2)),
                        tval: None,
                        pending: None,
                    },
                    bits: (rng.below(2) == 0).then_some(0x73),
                    mode,
                    context: Context(0),
                    time: 0,
                })
            }
            1 => {
                effects.mode = None;
                let signal = rng.one_of([Signal::Update, Signal::Lost, Signal::Notify]);
                Step::Signal(signal)
            }
            _ => {
                let mut insn = insn(rng.one_of(BITS));
                (insn.pc, insn.mode) = (pc, mode);
                insn.next = match rng.below(3) {
                    0 => value(rng, xlen) & !1,
                    _ => xlen.wrap(insn.end()),
                };
                Step::Insn(insn)
            }
        };
        pc = match step {
            Step::Insn(insn) => insn.next,
            Step::Trap(trap) => trap.trap.handler.unwrap(),
            Step::Signal(_) => pc,
        };
        // Somewhere else, without a word.
        if rng.below(20) == 0 {
            pc = value(rng, xlen) & !1;
        }
        mode = effects.mode.unwrap_or(mode);
        steps.push((step, effects));
    }
    steps
}

pub(super) fn config(rng: &mut Random) -> Config {
    let xlen = rng.one_of([Xlen::Rv32, Xlen::Rv64]);
    let two = rng.below(5) == 0;
    let addresses = [
        Addresses::None,
        Addresses::Effective,
        Addresses::Physical,
        Addresses::Both,
        Addresses::Translated,
    ];
    let memory = [
        MemoryStyle::None,
        MemoryStyle::Requests,
        MemoryStyle::Responses,
    ];
    let style = Style {
        pc: match two {
            true => PcStyle::Full,
            false => rng.one_of([PcStyle::Increment, PcStyle::Full]),
        },
        incremental: rng.below(2) == 0,
        addresses: rng.one_of(addresses),
        minstret: rng.below(4) == 0,
        memory: rng.one_of(memory),
        end_group: rng.below(2) == 0,
        start: rng.below(2) == 0,
    };
    let absent = [
        "",
        "",
        "a0,mstatus",
        "insn",
        "priv",
        "store",
        "trap.mepc",
        "fpr",
    ];
    Config {
        xlen,
        flen: rng.one_of([Flen::None, Flen::F32, Flen::F64]),
        mlen: match xlen {
            Xlen::Rv32 => rng.one_of([Mlen::M32, Mlen::M34]),
            Xlen::Rv64 => Mlen::M64,
        },
        eaddr: rng.one_of([EaddrWidth::Mlen, EaddrWidth::Xlen]),
        nibbles: rng.one_of([Nibbles::Low, Nibbles::High]),
        pc: if two { PcForm::Both } else { PcForm::New },
        store_data: rng.one_of([StoreData::Result, StoreData::Operand]),
        absent: rng.one_of(absent).parse().unwrap(),
        style: match rng.below(8) {
            0 => Style::bluespec(),
            1 if !two => Style::compact(),
            2 if !two => Style::default(),
            _ => style,
        },
        ..Config::default()
    }
}

/// What a reader knows of the hart.
#[derive(Default)]
struct Shadow {
    pc: Option<u64>,
    mode: Option<Mode>,
    values: BTreeMap<u16, u64>,
}

impl Shadow {
    /// Applies a group; the registers it has changed.
    fn apply(&mut self, config: &Config, group: &Group) -> BTreeMap<u16, u64> {
        match group.pc {
            Some(NewPc::To(pc)) => self.pc = Some(pc),
            Some(NewPc::FromTo(from, pc)) => {
                assert!(group.init || self.pc.is_none_or(|pc| pc == from));
                self.pc = Some(pc);
            }
            Some(NewPc::Increment) => {
                let len = u64::from(group.insn.unwrap().len);
                self.pc = self.pc.map(|pc| config.xlen.wrap(pc.wrapping_add(len)));
            }
            None => {}
        }
        self.mode = group.mode.or(self.mode);
        let mut changed = BTreeMap::new();
        for change in &group.changes {
            let number = change.register.number();
            if number == 0xb02 && change.how == How::Offset(1) {
                continue;
            }
            let value = match change.how {
                How::Full(value) => value,
                How::Offset(by) => {
                    let old = self.values[&number];
                    config.xlen.wrap(old.wrapping_add_signed(by.into()))
                }
                How::Mask(mask) => self.values[&number] | u64::from(mask),
            };
            changed.insert(number, value);
        }
        for change in &group.changes {
            let number = change.register.number();
            if let Some(&value) = changed.get(&number) {
                self.set(number, value);
            }
        }
        changed
    }

    /// Sets a register, and what shows the same bits.
    fn set(&mut self, number: u16, value: u64) {
        self.values.insert(number, value);
        let fcsr = self.values.get(&3).copied();
        match (number, fcsr) {
            (3, _) => {
                self.values.insert(1, value & 31);
                self.values.insert(2, value >> 5 & 7);
            }
            (1, Some(fcsr)) => drop(self.values.insert(3, fcsr & !31 | value & 31)),
            (2, Some(fcsr)) => drop(self.values.insert(3, fcsr & 31 | (value & 7) << 5)),
            // A difference to these would not be found here.
            (0x100, _) => drop(self.values.remove(&0x300)),
            (0x300, _) => drop(self.values.remove(&0x100)),
            _ => {}
        }
    }
}

/// The registers a step is to tell.
fn registers(config: &Config, effects: &Effects, in_trap: bool) -> BTreeMap<u16, u64> {
    let mut values = BTreeMap::new();
    let mut add = |register: Register, value: u64| {
        let absent = &config.absent;
        let width = match register.is_float() {
            true => config.flen.bits(),
            false => config.xlen.bits(),
        };
        let left_out = width == 0
            || register.is_zero()
            || absent.registers.contains(register)
            || in_trap && absent.in_traps.contains(register);
        if !left_out {
            values.insert(register.number(), value & u64::MAX >> (64 - width));
        }
    };
    for write in &*effects.regs {
        add(write.reg.into(), write.value);
    }
    for write in &*effects.csrs {
        add(Register::csr(write.csr), write.value);
    }
    values
}

/// The accesses a step is to tell.
fn data(config: &Config, effects: &Effects) -> Vec<Data> {
    let cut = |bytes: usize, value: u64| value & u64::MAX >> (64 - 8 * bytes);
    let all = effects.accesses.iter().all(|a| a.paddr.is_some());
    let of = |access: &Access| {
        let paddr = access.paddr.filter(|_| all);
        let eaddr = Some(access.addr);
        let (paddr, eaddr) = match (config.style.addresses, paddr) {
            (Addresses::None, _) => (None, None),
            (Addresses::Effective, _) | (_, None) => (None, eaddr),
            (Addresses::Physical, _) => (paddr, None),
            (Addresses::Both, _) => (paddr, eaddr),
            (Addresses::Translated, _) => (paddr, eaddr.filter(|_| paddr != eaddr)),
        };
        let store = match access.kind {
            AccessKind::Load | AccessKind::ConditionalStoreFailure => None,
            _ if config.absent.stores => None,
            _ => Some((access.size, access.data.unwrap())),
        };
        Data {
            paddr: paddr.map(|a| cut(config.mlen.bytes(), a)),
            eaddr: eaddr.map(|a| cut(config.eaddr_bytes(), a)),
            store,
        }
    };
    let told = effects.accesses.iter().map(of);
    told.filter(|d| *d != Data::default()).collect()
}

/// Compares the groups with the steps they were made from.
fn check(config: &Config, steps: &[Did], groups: &[Group]) {
    let mut shadow = Shadow::default();
    let mut expected = steps.iter().filter(|s| !matches!(s.0, Step::Signal(_)));
    for group in groups {
        let before = shadow.pc;
        let changed = shadow.apply(config, group);
        if group.init {
            continue;
        }
        let (step, effects) = expected.next().unwrap();
        let (pc, next, bits, in_trap) = match step {
            Step::Insn(insn) => (insn.pc, insn.next, Some(insn.bits), false),
            Step::Trap(trap) => {
                let next = trap.trap.handler.unwrap();
                (trap.trap.epc.unwrap(), next, trap.bits, true)
            }
            Step::Signal(signal) => panic!("{signal:?}"),
        };
        assert!(before.is_none_or(|before| before == pc), "{step:x?}");
        assert!(shadow.pc.is_none_or(|pc| pc == next), "{step:x?}");
        assert_eq!(
            group.insn.map(|i| i.bits),
            bits.filter(|_| !config.absent.insn)
        );
        assert_eq!(changed, registers(config, effects, in_trap), "{step:x?}");
        if config.store_data == StoreData::Result {
            assert_eq!(group.data, data(config, effects), "{step:x?}");
        }
        let requests = match config.style.memory {
            MemoryStyle::None => 0,
            _ => effects.accesses.len(),
        };
        assert!(group.memory.len() >= requests);
        let mode = match step {
            Step::Trap(trap) => Some(effects.mode.unwrap_or(trap.mode)),
            _ => effects.mode,
        };
        assert_eq!(group.mode, mode.filter(|_| !config.absent.mode));
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn steps_come_back() {
    let mut rng = Random::new(0x1234_5678_9abc_def1);
    for _ in 0..1500 {
        let config = config(&mut rng);
        let steps = walk(&mut rng, config.xlen);
        let groups = groups(&config, &encode(&config, &steps));
        check(&config, &steps, &groups);
    }
}

/// Groups written at once have the bytes of those written item by item.
#[test]
fn plain_groups_are_the_same_bytes() {
    let mut rng = Random::new(77);
    let mut plain = 0;
    for _ in 0..400 {
        let mut config = config(&mut rng);
        config.style = crate::config::Style::default();
        config.absent = crate::elements::Elements::default();
        if config.validate().is_err() {
            continue;
        }
        let steps: Vec<Did> = walk(&mut rng, config.xlen)
            .into_iter()
            .map(|(step, mut effects)| {
                // Mostly what instructions do.
                if matches!(step, Step::Insn(_)) && rng.below(4) != 0 {
                    effects.csrs.clear();
                    effects.mode = None;
                }
                (step, effects)
            })
            .collect();
        let write = |at_once: bool| {
            let mut encoder = Encoder::new(config.clone()).unwrap();
            let possible = encoder.plain.is_some();
            encoder.plain = encoder.plain.filter(|_| at_once);
            let mut bytes = Vec::new();
            for (step, effects) in &steps {
                encoder.step(step, effects, &mut bytes);
            }
            encoder.finish(&mut bytes);
            (possible, encoder.counters(), bytes)
        };
        let (possible, counters, bytes) = write(true);
        assert_eq!((possible, counters, bytes), write(false));
        plain += u32::from(possible);
    }
    assert!(plain > 100);
}
