//! Call stacks from RAS emulation against the true ones, on whole programs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use hartrace_ctr::{Config as Records, Control, Ctr, Every, Known, Sampler, Snapshot, Version};
use hartrace_flow::{Effects, HartId, Observer, RegId, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Stop};
use hartrace_isa::{Isa, Xlen};
use std::cell::RefCell;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    source: u64,
    target: u64,
    /// Where it returns to, and the stack pointer there.
    back: u64,
    sp: u64,
}

/// The true stack: a frame is there from the instruction that leaves its
/// return address in `ra` until the hart is back there with the same stack
/// pointer. Nothing is asked about instructions that return.
#[derive(Default)]
struct Truth {
    frames: Vec<Frame>,
    sp: u64,
    deepest: usize,
}

impl Truth {
    fn step(&mut self, step: &Step, effects: &Effects) {
        let Step::Insn(insn) = step else { return };
        if self
            .frames
            .last()
            .is_some_and(|f| f.back == insn.pc && f.sp == self.sp)
        {
            self.frames.pop();
        }
        let links = effects
            .regs
            .iter()
            .any(|write| write.reg == RegId::X(1) && write.value == insn.end());
        if links && insn.next != insn.end() {
            self.frames.push(Frame {
                source: insn.pc,
                target: insn.next,
                back: insn.end(),
                sp: self.sp,
            });
            self.deepest = self.deepest.max(self.frames.len());
        }
        for write in effects.regs.iter() {
            if write.reg == RegId::X(2) {
                self.sp = write.value;
            }
        }
    }
}

/// The truth in front of each instruction, for the sampler behind it.
struct Both<'a, S> {
    truth: &'a RefCell<Truth>,
    /// The step whose frame is not there yet.
    held: Option<(Step, Effects)>,
    sampler: S,
}

impl<S: Observer> Observer for Both<'_, S> {
    const WANTS: Wants = Wants::STEPS.with(Wants::REGS);

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if let Some((step, effects)) = self.held.take() {
            self.truth.borrow_mut().step(&step, &effects);
        }
        // A frame ends in front of the instruction that follows it.
        let mut truth = self.truth.borrow_mut();
        if let Step::Insn(insn) = step {
            let sp = truth.sp;
            let done = |f: &Frame| f.back == insn.pc && f.sp == sp;
            if truth.frames.last().is_some_and(done) {
                truth.frames.pop();
            }
        }
        drop(truth);
        self.sampler.step(hart, step, effects);
        self.held = Some((*step, *effects));
    }
}

/// Runs a program and compares every so many instructions; how many snapshots
/// were compared as a whole, and how many were cut.
fn compare(name: &str, version: Version, depth: u16, every: u64) -> (u64, u64) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../programs/");
    let file = std::fs::read([folder, name].concat()).unwrap();
    let xlen = if name.contains("rv32") {
        Xlen::Rv32
    } else {
        Xlen::Rv64
    };
    let isa = match xlen {
        Xlen::Rv32 => Isa::RV32GC,
        Xlen::Rv64 => Isa::RV64GC,
    };
    let host = Host::new(
        Box::new(std::io::empty()),
        Box::new(std::io::sink()),
        Box::new(std::io::sink()),
    );
    let mut machine = Machine::new(Config::new(Platform::Virt, xlen), host).unwrap();
    machine
        .load(Program::from_elf(&file).unwrap(), None)
        .unwrap();

    let mut ctr = Ctr::new(Records::new(version, xlen)).unwrap();
    ctr.set_depth(depth);
    ctr.set_control(Control::MODES.with(Control::RASEMU), 0);
    let truth = RefCell::new(Truth::default());
    let (mut whole, mut cut) = (0, 0);
    let check = |s: &Snapshot| {
        let truth = truth.borrow();
        let found: Vec<_> = s.records().map(|r| (r.source(), r.target())).collect();
        let real = truth.frames.iter().rev().map(|f| (f.source, f.target));
        let real: Vec<_> = real.collect();
        let at = (name, s.instructions, s.pc);
        // The innermost calls are there in any case.
        assert_eq!(found, real[..found.len()], "{at:x?}");
        if s.is_cut() {
            cut += 1;
        } else if found.len() == real.len() {
            whole += 1;
        } else {
            // The registers hold what they would without the calls that are
            // lost: as many as there is room for, or twice as many.
            assert!((real.len() - found.len()).is_multiple_of(depth.into()));
            cut += 1;
        }
    };
    let told = Known {
        modes: true,
        cycles: true,
    };
    let sampler = Sampler::new(ctr, isa, Some(Every::Instructions(every)), told, check);
    let mut both = Both {
        truth: &truth,
        held: None,
        sampler,
    };
    let stop = machine.run(1_000_000, &mut both);
    assert!(matches!(stop, Stop::Exit(0) | Stop::Limit), "{stop:?}");
    drop(both);
    let deepest = truth.borrow().deepest;
    assert!(
        deepest >= usize::from(depth) || cut == 0,
        "{name}: {deepest} fit into {depth}, and {cut} are cut"
    );
    (whole, cut)
}

/// All programs whose calls return: the stacks are the true ones, wherever
/// snapshots are taken.
#[test]
fn stacks_that_fit_are_the_true_ones() {
    for version in Version::ALL {
        for name in [
            "recursion/recursion-rv64gc.elf",
            "recursion/recursion-rv32gc.elf",
            "sort/sort-rv64gc.elf",
            "callbacks/callbacks-rv64gc.elf",
            "callbacks/callbacks-rv32gc.elf",
            "interpreter/interpreter-rv64gc.elf",
            "strings/strings-rv64gc.elf",
            "dense/dense-rv64gc.elf",
            "timer/timer-rv64gc.elf",
        ] {
            let (whole, cut) = compare(name, version, 256, 7);
            assert!(whole > 1000 && cut == 0, "{name}: {whole}, {cut}");
        }
    }
}

/// A stack that does not fit has its innermost calls, and says that it is cut,
/// also when some of the calls that are left have returned.
#[test]
fn stacks_that_do_not_fit_say_so() {
    for version in Version::ALL {
        for name in [
            "recursion/recursion-rv64gc.elf",
            "recursion/recursion-rv32gc.elf",
        ] {
            for depth in [16, 32] {
                let (whole, cut) = compare(name, version, depth, 11);
                assert!(whole > 100 && cut > 100, "{depth}: {whole}, {cut}");
            }
            let (_, cut) = compare(name, version, 128, 11);
            assert_eq!(cut, 0);
        }
    }
}
