//! What the tests of the encoder share.

extern crate std;

use std::vec::Vec;

use hartrace_flow::{
    Access, AccessKind, Cause, Context, CsrWrite, Effects, Insn, Mode, RegId, RegWrite, Signal,
    Step, Trap, TrapStep,
};

use super::*;
use crate::{Group, Next, Reader};

mod appendix;
mod atomics;
mod logs;
mod partial;
mod random;
mod signals;
mod straight;
mod widths;

/// A step and what it changed.
type Did = (Step, Effects);

/// An instruction at 0x1000 that goes on to the next.
fn insn(bits: u32) -> Insn {
    Insn {
        pc: 0x1000,
        next: if bits & 3 == 3 { 0x1004 } else { 0x1002 },
        bits,
        ..Insn::default()
    }
}

/// Effects, put together piece by piece.
trait Build: Sized {
    fn reg(self, reg: RegId, value: u64) -> Self;
    fn csr(self, csr: u16, value: u64) -> Self;
    fn access(self, access: Access) -> Self;
    fn mode(self, mode: Mode) -> Self;
}

impl Build for Effects {
    fn reg(mut self, reg: RegId, value: u64) -> Effects {
        self.regs.push(RegWrite { reg, value }).unwrap();
        self
    }

    fn csr(mut self, csr: u16, value: u64) -> Effects {
        self.csrs.push(CsrWrite { csr, value }).unwrap();
        self
    }

    fn access(mut self, access: Access) -> Effects {
        self.accesses.push(access).unwrap();
        self
    }

    fn mode(mut self, mode: Mode) -> Effects {
        self.mode = Some(mode);
        self
    }
}

fn none() -> Effects {
    Effects::default()
}

fn x(number: u8, value: u64) -> Effects {
    none().reg(RegId::X(number), value)
}

fn f(number: u8, value: u64) -> Effects {
    none().reg(RegId::F(number), value)
}

fn load(size: u8, addr: u64, data: u64) -> Access {
    Access {
        kind: AccessKind::Load,
        size,
        addr,
        data: Some(data),
        ..Access::default()
    }
}

fn store(size: u8, addr: u64, data: u64) -> Access {
    Access {
        kind: AccessKind::Store,
        ..load(size, addr, data)
    }
}

/// A trap from 0x1000 to 0x2000.
fn trap(cause: Cause, bits: Option<u32>) -> TrapStep {
    TrapStep {
        trap: Trap {
            epc: Some(0x1000),
            handler: Some(0x2000),
            cause,
            tval: None,
            pending: None,
        },
        bits,
        mode: Mode::M,
        context: Context(0),
        time: 0,
    }
}

/// Settings without a group at the start.
fn bare() -> Config {
    Config {
        style: Style {
            start: false,
            ..Style::default()
        },
        ..Config::default()
    }
}

use crate::config::Style;

/// The trace of some steps.
fn encode(config: &Config, steps: &[Did]) -> Vec<u8> {
    let mut encoder = Encoder::new(config.clone()).unwrap();
    let mut bytes = Vec::new();
    for (step, effects) in steps {
        encoder.step(step, effects, &mut bytes);
    }
    encoder.finish(&mut bytes);
    assert_eq!(encoder.counters().bytes, bytes.len() as u64);
    bytes
}

/// The trace of one instruction.
fn encode_insn(config: &Config, bits: u32, effects: Effects) -> Vec<u8> {
    encode(config, &[(Step::Insn(insn(bits)), effects)])
}

/// The groups of a trace without a fault.
fn groups(config: &Config, bytes: &[u8]) -> Vec<Group> {
    let mut reader = Reader::new(config.clone());
    let mut rest = bytes;
    let mut groups = Vec::new();
    loop {
        let next = match rest.is_empty() {
            true => reader.finish(),
            false => reader.next(&mut rest),
        };
        match next {
            Next::Group => groups.push(reader.group().clone()),
            Next::More if rest.is_empty() => return groups,
            Next::More => {}
            other => panic!("{other:x?} in {bytes:x?}"),
        }
    }
}
