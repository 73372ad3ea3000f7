//! A world whose code changes all the time, for tests.

use hartrace_capture::config::{Config, Setting};
use hartrace_capture::trace::{Format, Settings};
use hartrace_flow::{Context, Fetched, HartId, Insn, Mode};
use hartrace_isa::{Flow, Isa, Xlen, length};
use hartrace_testkit::Random;
use std::path::Path;

/// Where the code is, across the end of a page.
pub(crate) const BASE: u64 = 0xfc0;
pub(crate) const SLOTS: u64 = 64;

/// An instruction with which a halfword may begin: straight on, branches, jumps, calls,
/// returns, of both lengths.
fn instruction(random: &mut Random, at: u64, wide: bool) -> u32 {
    let back = at.wrapping_sub(BASE) as i64 / 2;
    let mut distance = 2 * (random.below(SLOTS) as i64 - back);
    if wide {
        distance &= !3;
    }
    match random.below(10) {
        0..3 if wide => 0x0000_0013, // nop
        4 if wide => 0x0000_8067,    // ret
        0..3 => 0x0001,              // c.nop
        3 => 0x0000_0013,            // nop
        4 => 0x8082,                 // c.jr ra
        5 => 0x0000_80e7,            // jalr ra
        // Forward only: how often a loop without branches is passed, E-Trace does not say.
        6 if distance > 0 => jal(0, distance),
        7 if distance > 0 => jal(1, distance),
        _ => beq(distance),
    }
}

fn jal(rd: u32, to: i64) -> u32 {
    let to = to as u32;
    let imm =
        (to >> 20 & 1) << 31 | (to >> 1 & 0x3ff) << 21 | (to >> 11 & 1) << 20 | (to & 0xff000);
    imm | rd << 7 | 0x6f
}

fn beq(to: i64) -> u32 {
    let to = to as u32;
    let imm =
        (to >> 12 & 1) << 31 | (to >> 5 & 0x3f) << 25 | (to >> 1 & 0xf) << 8 | (to >> 11 & 1) << 7;
    imm | 0x63
}

/// Code that was written: when, in which context, where, and what.
pub(crate) type Wrote = (u64, u64, u64, Vec<u8>);

/// Memory that harts execute and write at the same time.
pub(crate) struct World {
    random: Random,
    /// Of each context.
    halfwords: Vec<[u16; SLOTS as usize + 1]>,
    context: usize,
    /// The context of each hart, and whether its last instruction was an indirect jump:
    /// only there a trace reports exactly where the context changes.
    of: Vec<(usize, bool)>,
    pub(crate) wrote: Vec<Wrote>,
    pcs: Vec<u64>,
    time: u64,
    /// Only instructions of one kind replace each other: a decoder of E-Trace has to know
    /// at some packets whether there is a branch at an address before it gets there.
    pub(crate) gentle: bool,
    /// All instructions have four bytes, so that none overlaps another.
    wide: bool,
    /// Code is written before one of so many instructions.
    pub(crate) seldom: u64,
}

impl World {
    pub(crate) fn new(seed: u64, harts: usize, contexts: usize, wide: bool) -> World {
        let mut world = World {
            random: Random::new(seed),
            halfwords: vec![[1; SLOTS as usize + 1]; contexts],
            context: 0,
            of: vec![(0, false); harts],
            wrote: Vec::new(),
            pcs: vec![BASE; harts],
            time: 0,
            gentle: false,
            wide,
            seldom: 40,
        };
        for context in 0..contexts {
            world.context = context;
            world.put(SLOTS, 1, 2);
            for slot in (0..SLOTS).step_by(if wide { 2 } else { 1 }) {
                world.write(slot, false);
            }
        }
        world
    }

    /// Goes on until every instruction that is reached can be executed; what was written
    /// until then was there from the start. Then nothing is written.
    pub(crate) fn settle(&mut self) {
        self.seldom = u64::MAX;
        let mut before = 0;
        while self.wrote.len() > before {
            before = self.wrote.len();
            for _ in 0..5000 {
                self.step();
            }
        }
        for wrote in &mut self.wrote {
            wrote.0 = 0;
        }
        self.time = 1;
    }

    fn write(&mut self, slot: u64, gentle: bool) {
        let mut bits = instruction(&mut self.random, BASE + 2 * slot, self.wide);
        if gentle {
            // The same kind of instruction as before.
            let kind = |bits: u32| (length(bits as u16), bits & 0x7f, bits & 0xf80);
            let old = self.fetch(BASE + 2 * slot);
            for _ in 0..100 {
                if kind(bits) == kind(old) {
                    break;
                }
                bits = instruction(&mut self.random, BASE + 2 * slot, self.wide);
            }
            if kind(bits) != kind(old) {
                return;
            }
        }
        self.put(slot, bits, usize::from(length(bits as u16)));
    }

    /// Puts an instruction into memory.
    fn put(&mut self, slot: u64, bits: u32, len: usize) {
        let memory = &mut self.halfwords[self.context];
        memory[slot as usize] = bits as u16;
        if len == 4 {
            memory[slot as usize + 1] = (bits >> 16) as u16;
        }
        let bytes = bits.to_le_bytes()[..len].to_vec();
        let context = self.context as u64;
        self.wrote
            .push((self.time, context, BASE + 2 * slot, bytes));
    }

    fn fetch(&self, pc: u64) -> u32 {
        let slot = ((pc - BASE) / 2) as usize;
        let memory = &self.halfwords[self.context];
        let low = memory[slot];
        match length(low) {
            2 => u32::from(low),
            _ => u32::from(low) | u32::from(memory[slot + 1]) << 16,
        }
    }

    /// The instruction of a hart; one that cannot be executed is overwritten first.
    fn ready(&mut self, pc: u64) -> u32 {
        loop {
            let bits = self.fetch(pc);
            let len = length(bits as u16);
            let fetched = Fetched {
                bits,
                len,
                isa: Isa::RV64GC,
            };
            let end = BASE + 2 * SLOTS;
            let leaves = pc + u64::from(len) >= end;
            let flow = Flow::of(bits, Isa::RV64GC);
            let target = flow.target(pc, Xlen::Rv64);
            let least = match flow {
                Flow::Jump { .. } => pc + 2,
                _ => BASE,
            };
            let inside = target.is_none_or(|target| (least..end).contains(&target));
            let known = len <= 4 && bits != 0 && !fetched.is_unknown() && flow != Flow::Trap;
            if known && !leaves && inside {
                return bits;
            }
            if leaves {
                let slot = (pc - BASE) / 2;
                let (ret, len) = if self.wide { (0x8067, 4) } else { (0x8082, 2) };
                if bits != ret {
                    self.put(slot, ret, len);
                }
                return ret;
            }
            self.write((pc - BASE) / 2, false);
        }
    }

    /// What the next hart does.
    pub(crate) fn step(&mut self) -> (HartId, Insn) {
        let hart = self.random.below(self.pcs.len() as u64) as usize;
        if self.of[hart].1 && self.random.below(8) == 0 {
            self.of[hart].0 = self.random.below(self.halfwords.len() as u64) as usize;
        }
        self.context = self.of[hart].0;
        if self.random.below(self.seldom) == 0 {
            let slot = match self.wide {
                true => 2 * self.random.below(SLOTS / 2),
                false => self.random.below(SLOTS),
            };
            self.write(slot, self.gentle);
        }
        let pc = self.pcs[hart];
        let bits = self.ready(pc);
        let flow = Flow::of(bits, Isa::RV64GC);
        let behind = pc + u64::from(length(bits as u16));
        let next = match flow {
            Flow::Branch { .. } if self.random.below(2) == 0 => behind,
            Flow::Branch { .. } | Flow::Jump { .. } => flow.target(pc, Xlen::Rv64).unwrap(),
            Flow::Indirect { .. } if self.wide => BASE + 4 * self.random.below(SLOTS / 2),
            Flow::Indirect { .. } => BASE + 2 * self.random.below(SLOTS),
            _ => behind,
        };
        self.pcs[hart] = next;
        self.of[hart].1 = matches!(flow, Flow::Indirect { .. });
        let (mode, time) = (Mode::M, self.time);
        self.time += 1;
        let insn = Insn {
            pc,
            next,
            bits,
            mode,
            time,
            context: Context(self.context as u64),
        };
        (HartId(hart as u32), insn)
    }
}

/// Settings of a format, with as many sources as there are harts.
pub(crate) fn settings(text: &str, harts: usize) -> (Config, Settings) {
    let config = Config::parse(text, Path::new("t.toml")).unwrap();
    let mut config = config.over(Config::defaults());
    config.hart.harts = Some(Setting::default(harts as u32));
    config.make_room_for_harts();
    let format = match text.contains("[etrace]") {
        true => Format::Etrace,
        false => Format::Ntrace,
    };
    let settings = format.settings(&config, Xlen::Rv64).unwrap();
    (config, settings)
}
