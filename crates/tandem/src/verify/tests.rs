//! The verifier, sentence by sentence (3.1, 3.2, and the notes on what the
//! text leaves open), over a small model.

extern crate std;

use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use hartrace_isa::Xlen;
use hartrace_testkit::asm::*;

use super::*;
use crate::history::Recorder;
use crate::{Item, Mlen, Operation, Problem, Request, Response, StoreData};

mod atomics;
mod brief;
mod compare;
mod groups;
mod partial;
mod resync;
mod toy;
mod traps;
mod unknown;
mod windows;

use toy::{BASE, DEVICE, HANDLER, Toy};

/// Keeps what it is told, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    mismatches: Vec<String>,
    problems: Vec<Problem>,
    resumed: Vec<u64>,
    /// Breaks after so many mismatches; 0 is never.
    most: usize,
}

impl Reporter for Heard {
    fn mismatch(&mut self, mismatch: &Mismatch<'_>) -> ControlFlow<()> {
        let side = |value: Option<u64>| value.map_or("-".to_string(), |v| format!("{v:x}"));
        let all: Vec<String> = mismatch
            .differences
            .iter()
            .map(|d| format!("{} {}/{}", d.field, side(d.expected), side(d.actual)))
            .collect();
        self.mismatches
            .push(format!("{}: {}", mismatch.group.number, all.join(", ")));
        match self.mismatches.len() == self.most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
        self.problems.push(*problem);
        ControlFlow::Continue(())
    }

    fn resumed(&mut self, skipped: u64) {
        self.resumed.push(skipped);
    }
}

/// A model, a trace, and what the verifier is told.
struct Bench {
    toy: Toy,
    config: Config,
    options: Options,
    trace: Vec<u8>,
}

/// What came of it.
struct Outcome {
    heard: Heard,
    counters: Counters,
    verifier: Verifier<Toy>,
}

impl Bench {
    fn new(program: &[u32]) -> Bench {
        Bench::with(Config::default(), program)
    }

    fn with(config: Config, program: &[u32]) -> Bench {
        Bench {
            toy: Toy::new(config.xlen, program),
            config,
            options: Options::default(),
            trace: Vec::new(),
        }
    }

    fn absent(names: &str, program: &[u32]) -> Bench {
        let config = Config {
            absent: names.parse().unwrap(),
            ..Config::default()
        };
        Bench::with(config, program)
    }

    /// A group of any items.
    fn group(&mut self, items: &[Item]) -> &mut Bench {
        let whole = [&[Item::BeginGroup], items, &[Item::EndGroup]].concat();
        self.outside(&whole)
    }

    /// Items that stand where they stand.
    fn outside(&mut self, items: &[Item]) -> &mut Bench {
        for item in items {
            item.write(&self.config, &mut self.trace);
        }
        self
    }

    /// An instruction that goes on to the next.
    fn insn(&mut self, bits: u32, items: &[Item]) -> &mut Bench {
        let head = [Item::IncrementPc, Item::Insn32(bits)];
        self.group(&[&head, items].concat())
    }

    /// An instruction that goes elsewhere.
    fn jump(&mut self, bits: u32, to: u64, items: &[Item]) -> &mut Bench {
        let head = [Item::Pc(to), Item::Insn32(bits)];
        self.group(&[&head, items].concat())
    }

    /// The whole trace; in single bytes it must come to the same.
    fn run(&self) -> Outcome {
        let whole = self.run_in(usize::MAX, 0);
        for chunk in [1, 7] {
            let again = self.run_in(chunk, 0);
            assert_eq!(again.heard, whole.heard);
            assert_eq!(again.counters, whole.counters);
        }
        whole
    }

    fn run_in(&self, chunk: usize, most: usize) -> Outcome {
        let toy = self.toy.clone();
        let mut verifier = Verifier::new(self.config.clone(), self.options.clone(), toy);
        let mut heard = Heard {
            most,
            ..Heard::default()
        };
        let mut flow = ControlFlow::Continue(());
        for bytes in self.trace.chunks(chunk) {
            if flow.is_continue() {
                flow = verifier.feed(bytes, &mut heard);
            }
        }
        if flow.is_continue() {
            let _ = verifier.finish(&mut heard);
        }
        Outcome {
            heard,
            counters: *verifier.counters(),
            verifier,
        }
    }

    /// The mismatches of a trace without problems.
    fn mismatches(&self) -> Vec<String> {
        let outcome = self.run();
        assert_eq!(outcome.heard.problems, []);
        assert_eq!(
            outcome.heard.mismatches.len() as u64,
            outcome.counters.mismatches
        );
        outcome.heard.mismatches
    }

    /// How many instructions the history of the trace has.
    fn recorded(&self) -> u64 {
        let mut recorder = Recorder::new(self.config.clone());
        recorder.feed(&self.trace);
        recorder.finish().instructions()
    }

    /// There is none, and the model has what the shadow has.
    fn agrees(&self) -> Outcome {
        assert_eq!(self.mismatches(), [""; 0]);
        let outcome = self.run();
        assert_eq!(self.recorded(), outcome.counters.instructions());
        let model = &outcome.verifier.model;
        let shadow = outcome.verifier.shadow();
        assert_eq!(shadow.pc, Some(model.pc));
        assert_eq!(shadow.mode.map(|m| m.code()), Some(model.mode));
        for number in 0..32 {
            let value = model.x[usize::from(number)];
            assert_eq!(shadow.get(Register::x(number)), Some(value), "x{number}");
        }
        outcome
    }
}

fn x(number: u8, value: u64) -> Item {
    Item::Full(Register::x(number), value)
}

fn f(number: u8, value: u64) -> Item {
    Item::Full(Register::f(number), value)
}

fn csr(name: &str, value: u64) -> Item {
    Item::Full(Register::from_name(name).unwrap(), value)
}

fn load(width: u32, rd: u32, rs1: u32, offset: i32) -> u32 {
    i_type(0x03, width, rd, rs1, offset)
}

fn amo(funct: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    r_type(0x2f, 2, funct << 2, rd, rs1, rs2)
}

/// Two pointers into memory and one to the device, from `a0` on.
fn pointers(bench: &mut Bench) {
    bench.toy.x[10] = BASE + 0x800;
    bench.toy.x[11] = BASE + 0x900;
    bench.toy.x[12] = DEVICE;
}
