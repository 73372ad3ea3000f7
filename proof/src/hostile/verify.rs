//! The tandem verifier: any bytes as a trace of a small machine.

use std::ops::ControlFlow;

use hartrace_flow::{Effects, Step};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as Board, Machine, Platform, Program, Region, Segment};
use hartrace_isa::Isa;
use hartrace_tandem::verify::{Counters, Mismatch, Options, Range, Reporter};
use hartrace_tandem::{Config, Encoder, Problem, Verifier};

use super::{Input, ensure};
use crate::tandem::{Setting, Watch};

/// Where memory and the program start.
const BASE: u64 = 0x8000_0000;
const SIZE: u64 = 0x4000;

/// What a verifier says, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Heard {
    mismatches: Vec<(u64, u64, usize)>,
    problems: Vec<Problem>,
    resumed: Vec<u64>,
}

impl Reporter for Heard {
    fn mismatch(&mut self, m: &Mismatch<'_>) -> ControlFlow<()> {
        let differences = m.differences.len();
        self.mismatches.push((m.group.number, m.insn, differences));
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
        self.problems.push(*problem);
        ControlFlow::Continue(())
    }

    fn resumed(&mut self, skipped: u64) {
        self.resumed.push(skipped);
    }
}

/// A machine with this code.
fn machine(isa: Isa, code: &[u8]) -> Result<Machine, String> {
    let mut board = Board::new(Platform::Virt, isa.xlen());
    board.memory = vec![Region {
        base: BASE,
        size: SIZE,
    }];
    let mut machine = Machine::new(board, Host::silent()).map_err(|e| e.to_string())?;
    let program = Program {
        xlen: isa.xlen(),
        entry: BASE,
        segments: vec![Segment {
            addr: BASE,
            size: code.len() as u64,
            data: code.to_vec(),
        }],
        tohost: None,
        fromhost: None,
    };
    machine.load(program, None).map_err(|e| e.to_string())?;
    Ok(machine)
}

/// What the first bytes choose.
struct Choice<'a> {
    isa: Isa,
    config: Config,
    options: Options,
    chunk: usize,
    code: &'a [u8],
}

impl<'a> Choice<'a> {
    fn new(input: &mut Input<'a>) -> Choice<'a> {
        let isa = if input.flag() {
            Isa::RV64GC
        } else {
            Isa::RV32GC
        };
        let config = Setting::new(input.number(2), isa).config;
        let mut options = Options::default();
        let windows = input.byte();
        if windows & 1 != 0 {
            options.volatile.add_range(Range {
                base: BASE + 0x1000,
                size: 0x1000,
            });
        }
        options.tohost = (windows & 2 != 0).then_some(BASE + 0x3000);
        options.fromhost = (windows & 4 != 0).then_some(BASE + 0x3040);
        options.until = (windows & 8 != 0).then_some(u64::from(windows >> 4));
        let chunk = 1 + usize::from(input.byte());
        let len = usize::from(input.byte());
        Choice {
            isa,
            config,
            options,
            chunk,
            code: input.slice(len),
        }
    }

    fn verify(&self, trace: &[u8], chunk: usize) -> Result<(Heard, Counters), String> {
        let machine = machine(self.isa, self.code)?;
        let mut verifier = Verifier::new(self.config.clone(), self.options.clone(), machine);
        let mut heard = Heard::default();
        for part in trace.chunks(chunk) {
            if verifier.feed(part, &mut heard).is_break() {
                return Ok((heard, *verifier.counters()));
            }
        }
        let end = verifier.finish(&mut heard);
        let offset = verifier.offset();
        ensure(end.is_break() || offset == trace.len() as u64, || {
            format!("at {offset} of {}", trace.len())
        })?;
        Ok((heard, *verifier.counters()))
    }
}

/// Any bytes, any setting, any code: verifying ends and says the same in any
/// chunks, and no more than there are groups.
pub(super) fn verify(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let choice = Choice::new(&mut input);
    let trace = input.rest();
    let (heard, counters) = choice.verify(trace, trace.len().max(1))?;
    let again = choice.verify(trace, choice.chunk)?;
    ensure(again == (heard.clone(), counters), || {
        format!("{heard:?} {counters:?}, in chunks {again:?}")
    })?;
    let mismatches = heard.mismatches.len() as u64;
    ensure(
        mismatches == counters.mismatches && mismatches <= counters.groups,
        || format!("{mismatches} mismatches: {counters:?}"),
    )?;
    let bytes = trace.len();
    ensure(
        heard.problems.len() + counters.groups as usize <= bytes + 1,
        || format!("{} problems in {bytes} bytes", heard.problems.len()),
    )?;
    let inside = |p: &Problem| p.at <= bytes as u64;
    ensure(heard.problems.iter().all(inside), || {
        format!("{:?} in {bytes} bytes", heard.problems)
    })
}

/// A program that does a bit of everything, over and over: stores and loads,
/// reservations, counters, calls of the environment, a return to user mode.
const CODE: [u32; 24] = [
    0x0000_0297, // auipc t0, 0
    0x0542_8313, // addi t1, t0, 0x54
    0x3053_1073, // csrw mtvec, t1
    0x0000_1537, // lui a0, 1
    0x0055_0533, // add a0, a0, t0
    0x00a5_2023, // sw a0, 0(a0)
    0x0005_2583, // lw a1, 0(a0)
    0x1005_262f, // lr.w a2, (a0)
    0x18b5_26af, // sc.w a3, a1, (a0)
    0x00b5_272f, // amoadd.w a4, a1, (a0)
    0xb000_27f3, // csrr a5, mcycle
    0x3002_a073, // csrs mstatus, t0
    0x0000_6337, // lui t1, 6
    0x3003_2073, // csrs mstatus, t1
    0xf005_8053, // fmv.w.x ft0, a1
    0x0000_0053, // fadd.s ft0, ft0, ft0
    0x0000_0073, // ecall
    0x0085_8593, // addi a1, a1, 8
    0x02b5_0663, // beq a0, a1, .+44
    0xfe05_86e3, // beqz a1, .-20
    0xfd1f_f06f, // j .-48
    0x3410_2373, // csrr t1, mepc
    0x0043_0313, // addi t1, t1, 4
    0x3413_1073, // csrw mepc, t1 (and on into what is no instruction)
];

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut code: Vec<u8> = CODE.iter().flat_map(|w| w.to_le_bytes()).collect();
    code.extend_from_slice(&0x3020_0073u32.to_le_bytes());
    let seed = |number: u8| {
        let head = [number & 1, number, 0, number % 8, number, code.len() as u8];
        let bytes = [&head[..], &code].concat();
        let choice = Choice::new(&mut Input::new(&bytes));
        let mut encoder = Encoder::new(choice.config.clone()).ok()?;
        let mut trace = bytes.clone();
        let mut see = |step: &Step, effects: &Effects| encoder.step(step, effects, &mut trace);
        machine(choice.isa, &code)
            .ok()?
            .run(60, &mut Watch(&mut see));
        encoder.finish(&mut trace);
        Some(trace)
    };
    (0..48).filter_map(seed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds are traces of the program, so that mutation starts from
    /// something that is right.
    #[test]
    fn seeds_are_right() {
        let seeds = seeds();
        assert_eq!(seeds.len(), 48);
        for seed in seeds {
            let mut input = Input::new(&seed);
            let mut choice = Choice::new(&mut input);
            choice.options.until = None;
            let trace = input.rest();
            assert!(trace.len() > 300, "{}", trace.len());
            let (heard, counters) = choice.verify(trace, trace.len()).unwrap();
            assert_eq!(heard, Heard::default(), "{:?}", choice.config);
            assert!(counters.instructions() > 40);
        }
    }
}
