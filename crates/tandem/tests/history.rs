//! Histories of programs against what the hart did, step by step.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use hartrace_flow::{AccessKind, Cause, Effects, HartId, Mode, Observer, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Machine, Platform, Program};
use hartrace_tandem::history::{Byte, Origin, Recorder, Target};
use hartrace_tandem::{
    Addresses, Config, Encoder, History, MemoryStyle, Register, StoreData, Style,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Instructions that are looked at.
const SAMPLES: u64 = 8;

/// What the hart has done up to a place.
#[derive(Clone, Default)]
struct Truth {
    pc: Option<u64>,
    mode: Option<Mode>,
    /// Value, and the instruction that wrote it; `None` if it was none.
    registers: BTreeMap<Register, (u64, Option<u64>)>,
    memory: BTreeMap<u64, (u8, Option<u64>)>,
}

/// Encodes a run and remembers the truth at some of its instructions.
struct Run {
    encoder: Encoder,
    trace: Vec<u8>,
    insns: u64,
    /// Every so many instructions.
    every: u64,
    now: Truth,
    samples: Vec<(u64, Truth)>,
}

impl Observer for Run {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.encoder.step(step, effects, &mut self.trace);
        let attempts = match step {
            Step::Insn(_) => true,
            Step::Trap(trap) => matches!(trap.trap.cause, Cause::Exception(_)),
            Step::Signal(_) => false,
        };
        let here = match step {
            Step::Insn(insn) => Some((insn.pc, insn.mode)),
            Step::Trap(trap) => trap.trap.epc.map(|epc| (epc, trap.mode)),
            Step::Signal(_) => None,
        };
        if let (true, Some((pc, mode))) = (attempts, here) {
            (self.now.pc, self.now.mode) = (Some(pc), Some(mode));
            if self.insns % self.every == self.every / 2 {
                self.samples.push((self.insns, self.now.clone()));
            }
        }
        let writer = attempts.then_some(self.insns);
        self.insns += u64::from(attempts);
        for write in effects.regs.iter() {
            let value = (write.value, writer);
            self.now.registers.insert(write.reg.into(), value);
        }
        for write in effects.csrs.iter() {
            let register = Register::csr(write.csr);
            self.now.registers.insert(register, (write.value, writer));
        }
        for access in effects.accesses.iter() {
            let stores = !matches!(
                access.kind,
                AccessKind::Load | AccessKind::ConditionalStoreFailure
            );
            if let (true, Some(data)) = (stores, access.data) {
                for i in 0..1u64 << access.size {
                    let byte = (data >> (8 * i)) as u8;
                    let addr = access.paddr.unwrap_or(access.addr) + i;
                    self.now.memory.insert(addr, (byte, writer));
                }
            }
        }
    }

    fn finish(&mut self) {
        self.encoder.finish(&mut self.trace);
    }
}

fn run(name: &str, limit: u64, change: impl FnOnce(&mut Config)) -> (Run, Config) {
    let folder = name.split('-').next().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../programs")
        .join(folder)
        .join(format!("{name}.elf"));
    let program = Program::from_elf(&std::fs::read(path).unwrap()).unwrap();
    let config = hartrace_hart::Config::new(Platform::Virt, program.xlen);
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    let isa = machine.config().validate().unwrap();
    let mut config = Config::new(isa, true);
    change(&mut config);
    let mut run = Run {
        encoder: Encoder::new(config.clone()).unwrap(),
        trace: Vec::new(),
        insns: 0,
        every: limit / SAMPLES,
        now: Truth::default(),
        samples: Vec::new(),
    };
    machine.run(limit, &mut run);
    run.finish();
    (run, config)
}

/// Registers of the trace are those of the hart; x0 is not written.
fn check(run: &Run, history: &History) {
    assert_eq!(history.instructions(), run.insns);
    assert_eq!(history.problems(), 0);
    assert!(run.samples.len() >= SAMPLES as usize / 3);
    for (n, truth) in &run.samples {
        let state = history.at(&run.trace, *n).unwrap();
        assert_eq!(state.shadow.pc, truth.pc, "at {n}");
        assert_eq!(state.shadow.mode, truth.mode, "at {n}");
        assert!(state.next.is_some());
        let some = truth.registers.iter().skip(*n as usize % 3).step_by(3);
        for (&register, &(value, writer)) in some {
            if register == Register::x(0) {
                continue;
            }
            assert_eq!(state.shadow.get(register), Some(value), "{register} at {n}");
            let found = history.last_write(&run.trace, Target::Register(register), *n);
            let Some(Origin::Write(write)) = found else {
                panic!("{register} at {n}: {found:?}");
            };
            assert_eq!(write.new, Some(value));
            if let Some(writer) = writer {
                assert_eq!(write.insn, writer, "{register} at {n}");
            }
        }
        for (&addr, &(byte, writer)) in truth.memory.iter().step_by(truth.memory.len() / 12 + 1) {
            let found = history.memory(&run.trace, *n, addr, 1).unwrap();
            assert_eq!(found, [Byte::Told(byte)], "{addr:#x} at {n}");
            let target = Target::Memory { addr, len: 1 };
            let found = history.last_write(&run.trace, target, *n);
            let Some(Origin::Write(write)) = found else {
                panic!("{addr:#x} at {n}: {found:?}");
            };
            assert_eq!(Some(write.insn), writer, "{addr:#x} at {n}");
        }
    }
}

/// With points where they would be in a long trace, and with few of them.
fn check_all(run: &Run, config: &Config) {
    for (every, most) in [(500, 4096), (64, 20)] {
        let mut recorder = Recorder::with_points(config.clone(), every, most);
        run.trace.chunks(777).for_each(|chunk| recorder.feed(chunk));
        let history = recorder.finish();
        check(run, &history);
        let bytes = history.to_bytes(&run.trace);
        let again = History::from_bytes(&bytes, config.clone(), &run.trace).unwrap();
        let (n, truth) = &run.samples[run.samples.len() / 2];
        let state = again.at(&run.trace, *n).unwrap();
        assert_eq!(state.shadow.pc, truth.pc);
    }
}

#[test]
fn rv64_full() {
    let (run, config) = run("callbacks-rv64gc", 46_000, |_| {});
    check_all(&run, &config);
}

#[test]
fn rv32_compact() {
    let (run, config) = run("callbacks-rv32gc", 50_000, |config| {
        config.style = Style::compact();
    });
    check_all(&run, &config);
}

/// Floating point, with responses and physical addresses.
#[test]
fn float_with_transactions() {
    let (run, config) = run("float-rv64gc", 60_000, |config| {
        config.style.memory = MemoryStyle::Responses;
        config.style.addresses = Addresses::Both;
    });
    check_all(&run, &config);
}

/// Interrupts, traps in traps, atomic operations as operands.
#[test]
fn interrupts_and_operands() {
    for name in ["timer-rv64gc", "timer-rv32gc"] {
        let (run, config) = run(name, 40_000, |config| {
            config.store_data = StoreData::Operand;
        });
        check_all(&run, &config);
    }
}

/// Three modes and Sv39, memory by physical address.
#[test]
fn modes_and_pages() {
    let (run, config) = run("modes-rv64gc", 150_000, |config| {
        config.style = Style::compact();
        config.style.addresses = Addresses::Physical;
    });
    check_all(&run, &config);
}
