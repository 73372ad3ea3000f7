//! Arbitrary programs and arbitrary evidence.
//!
//! Two walks over the same image get the same evidence: one as words of
//! history, the other outcome by outcome and with a consumer that pauses at
//! random. Their output must be the same, and each run must follow from the
//! code, the outcomes and the reported targets.

use std::ops::ControlFlow;

use hartrace_flow::{
    Blocks, Consumer, Event, Evidence, Exit, Goal, HartId, History, Image, Remember, ReturnStack,
    Rules, Run, SpaceId, Stop, Swaps, UNCOUNTED, Walk,
};
use hartrace_isa::Flow;

use super::elf::inside;
use super::isa::set;
use super::{Input, ensure};

/// One outcome at a time, and no looking ahead.
struct Single(History);

impl Evidence for Single {
    fn branch(&mut self, at: u64, last: bool) -> Option<bool> {
        self.0.branch(at, last)
    }

    fn left(&self) -> u64 {
        self.0.left()
    }
}

/// Follows the runs with a model of its own.
struct Follow<'a> {
    image: &'a Image,
    rules: Rules,
    space: SpaceId,
    /// Where the next run has to start.
    at: Option<u64>,
    /// Outcomes that the runs show, the oldest first.
    outcomes: Vec<bool>,
    halfwords: u64,
    runs: u64,
    hash: u64,
    /// Runs until a pause; 0 for never.
    pause: u64,
    fault: Option<String>,
}

impl Follow<'_> {
    fn run(&mut self, run: &Run) -> Result<(), String> {
        inside(self.image, self.space, run)?;
        let blame = |what: &str| format!("{run:x?}: {what}");
        ensure(self.at.is_none_or(|at| at == run.start), || {
            blame(&format!("does not start at {:x?}", self.at))
        })?;
        self.at = Some(run.next);
        let code = self.image.fetch(self.space, run.source());
        let code = code.ok_or_else(|| blame("no code"))?;
        let flow = Flow::of(code.bits, code.isa);
        let end = code.isa.xlen().wrap(run.end);
        let target = flow.target(run.source(), code.isa.xlen());
        let right = match run.exit {
            Exit::Stop => run.next == end,
            Exit::NotTaken => matches!(flow, Flow::Branch { .. }) && run.next == end,
            Exit::Taken => matches!(flow, Flow::Branch { .. }) && Some(run.next) == target,
            Exit::DirectJump | Exit::DirectCall | Exit::OtherDirect => match flow {
                Flow::Jump { .. } => Some(run.next) == target,
                Flow::Table { .. } => true,
                Flow::Indirect { .. } => Some(run.next) == target && self.rules.absolute_jumps,
                _ => false,
            },
            Exit::TrapReturn => flow == Flow::TrapReturn,
            _ => matches!(flow, Flow::Indirect { .. } | Flow::PopReturn),
        };
        ensure(right, || blame(&format!("{flow:?}")))?;
        match run.exit {
            Exit::Taken => self.outcomes.push(true),
            Exit::NotTaken => self.outcomes.push(false),
            Exit::DirectJump | Exit::DirectCall | Exit::OtherDirect
                if self.rules.all_jumps && !matches!(flow, Flow::Indirect { .. }) =>
            {
                self.outcomes.push(true);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Consumer for Follow<'_> {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        let Event::Run(run) = event else {
            return ControlFlow::Continue(());
        };
        self.runs += 1;
        self.halfwords += run.end.wrapping_sub(run.start) / 2;
        let fields = [
            run.start,
            run.end,
            run.next,
            u64::from(run.insns),
            run.exit as u64,
            u64::from(run.last),
        ];
        for field in fields {
            self.hash = (self.hash.rotate_left(5) ^ field).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        if self.fault.is_none() {
            self.fault = self.run(run).err();
        }
        match self.runs.checked_rem(self.pause) {
            Some(0) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A walk, its tables and what it gave.
struct Side<'a> {
    blocks: Blocks<'a>,
    walk: Walk,
    out: Follow<'a>,
}

impl<'a> Side<'a> {
    fn new(image: &'a Image, rules: Rules, stack: Option<ReturnStack>, pause: u64) -> Side<'a> {
        let mut walk = Walk::new(HartId(0));
        walk.set_stack(stack);
        Side {
            blocks: Blocks::new(image, rules),
            walk,
            out: Follow {
                image,
                rules,
                space: SpaceId::FIRST,
                at: None,
                outcomes: Vec::new(),
                halfwords: 0,
                runs: 0,
                hash: 0,
                pause,
                fault: None,
            },
        }
    }

    fn restart(&mut self, pc: u64) {
        self.walk.restart(&mut self.blocks, pc);
        self.out.at = Some(pc);
    }

    fn enter(&mut self, space: SpaceId) {
        self.walk.enter(&mut self.blocks, space);
        self.out.space = space;
    }

    fn advance(&mut self, evidence: &mut impl Evidence, left: &mut u64) -> Stop {
        let Side { blocks, walk, out } = self;
        walk.advance(blocks, evidence, left, out)
    }

    fn advance_to(&mut self, evidence: &mut impl Evidence, goal: Goal) -> Stop {
        let Side { blocks, walk, out } = self;
        walk.advance_to(blocks, evidence, goal, out)
    }

    /// Everything that must be equal on both sides.
    fn state(&mut self) -> (u64, u64, u64, u32, Option<ReturnStack>) {
        (
            self.out.hash,
            self.out.halfwords,
            self.walk.pc(&self.blocks),
            self.walk.to_decision(&self.blocks),
            self.walk.stack().cloned(),
        )
    }

    /// Takes the outcomes that were given out since the last time.
    fn outcomes(&mut self) -> Vec<bool> {
        std::mem::take(&mut self.out.outcomes)
    }
}

/// Where code lies: at both ends of the address space, across its borders, at
/// odd addresses.
const BASES: [u64; 10] = [
    0x1000,
    0,
    0x1ff8,
    0x1001,
    0x7fff_fff0,
    0xffff_fff0,
    0xffff_f000,
    0xffff_ffff_ffff_fff0,
    0xffff_ffff_ffff_f001,
    0x8000_0000,
];

/// An image of one to four segments that touch, overlap or lie apart, and a
/// later epoch of it.
fn program(input: &mut Input<'_>) -> (Image, SpaceId, u64) {
    let isa = set(input);
    let mut image = Image::new();
    let mut base = input.pick(&BASES).unwrap_or_default();
    let start = base;
    for _ in 0..=input.below(4) {
        let len = usize::from(input.byte());
        let bytes = input.slice(len);
        image.add_raw(SpaceId::FIRST, base, bytes, isa);
        let gap = i64::from(input.byte() as i8) / 16;
        base = base
            .wrapping_add(bytes.len() as u64)
            .wrapping_add_signed(gap);
    }
    image.set_jvt(SpaceId::FIRST, start);
    let at = start.wrapping_add(u64::from(input.byte()));
    let later = image.patch(SpaceId::FIRST, at, input.slice(4));
    (image, later, start)
}

pub(super) fn flow(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let choices = input.byte();
    let rules = Rules {
        sequential_jumps: choices & 1 != 0,
        sequential_returns: choices & 1 != 0,
        absolute_jumps: choices & 2 != 0,
        all_jumps: choices & 4 != 0,
        nexrv_links: false,
    };
    let depth = usize::from(choices >> 5);
    let stack = match choices >> 3 & 3 {
        0 => None,
        1 => Some(ReturnStack::new(
            Remember::Address,
            Swaps::PopAndPush,
            depth * 4,
        )),
        2 => Some(ReturnStack::new(Remember::Count, Swaps::Ignored, depth)),
        _ => Some(ReturnStack::new(
            Remember::LowBits(12),
            Swaps::PopAndPush,
            depth,
        )),
    };
    let pause = 1 + u64::from(input.below(7));
    let (image, later, start) = program(&mut input);
    let mut one = Side::new(&image, rules, stack.clone(), 0);
    let mut two = Side::new(&image, rules, stack, pause);
    one.restart(start.wrapping_add(start & 1));
    two.restart(start.wrapping_add(start & 1));
    let mut asked = Stop::Arrived;
    for _ in 0..256 {
        if input.is_empty() {
            break;
        }
        asked = operate(&mut input, (&mut one, &mut two), asked, (start, later))?;
        ensure(one.state() == two.state(), || {
            format!("{asked:?}: {:x?} is not {:x?}", one.state(), two.state())
        })?;
        for side in [&mut one, &mut two] {
            let pc = side.walk.pc(&side.blocks);
            side.out.fault.take().map_or(Ok(()), Err)?;
            let at = side.out.at.unwrap_or(pc);
            ensure(pc == at, || format!("stands at {pc:#x}, ran to {at:#x}"))?;
        }
    }
    Ok(())
}

/// One question to both sides, the same; gives what they stopped at.
fn operate<'i>(
    input: &mut Input<'_>,
    (one, two): (&mut Side<'i>, &mut Side<'i>),
    asked: Stop,
    (start, later): (u64, SpaceId),
) -> Result<Stop, String> {
    let what = input.byte();
    let near = start.wrapping_add(u64::from(input.byte()) * u64::from(1 + what / 64));
    match (what % 16, asked) {
        // A right answer to the question, more often than anything else.
        (0..6, Stop::Branch) => {
            let taken = what & 64 != 0 || one.out.rules.all_jumps;
            for side in [one, two] {
                let _ = side.walk.branch(&mut side.blocks, taken, &mut side.out);
                let given = side.outcomes();
                ensure(given == [taken], || format!("{given:?}, told {taken}"))?;
            }
            Ok(Stop::Arrived)
        }
        (0..6, Stop::Target(_)) => {
            for side in [one, two] {
                let _ = side.walk.target(&mut side.blocks, near, &mut side.out);
                // A table jump without its table looks direct and is reported.
                side.outcomes();
            }
            Ok(Stop::Arrived)
        }
        (6, _) => {
            // Whatever the walk stands at, told to be a branch or a jump.
            for side in [one, two] {
                let Side { blocks, walk, out } = side;
                let _ = if what & 64 != 0 {
                    walk.branch(blocks, what & 128 != 0, out)
                } else {
                    walk.target(blocks, near, out)
                };
                // NoObserver said what that means, but that the code is the
                // image's and the way on is right afterwards.
                out.fault = None;
                out.outcomes.clear();
                let pc = walk.pc(blocks);
                side.restart(pc);
            }
            Ok(Stop::Arrived)
        }
        (7, _) => {
            for side in [one, two] {
                side.restart(near);
            }
            Ok(Stop::Arrived)
        }
        (8, _) => {
            let space = if what & 64 != 0 {
                later
            } else {
                SpaceId::FIRST
            };
            for side in [one, two] {
                side.enter(space);
            }
            Ok(Stop::Arrived)
        }
        (9 | 10, _) => {
            for side in [one, two] {
                let before = side.out.runs;
                let did = side.walk.retire(&mut side.blocks, &mut side.out);
                ensure(did == (side.out.runs > before), || "retired".into())?;
                side.outcomes();
            }
            Ok(Stop::Arrived)
        }
        (11..14, _) => {
            let history = history(input);
            let count = match what >> 6 {
                0 => UNCOUNTED,
                1 => u64::from(input.byte()),
                _ => input.number(2),
            };
            let stop = count_both((one, two), history, count)?;
            Ok(stop)
        }
        _ => {
            let goal = Goal {
                leave_first: what & 64 != 0,
                own_outcome: what & 128 != 0,
                ..Goal::new(near)
            };
            let words = history(input);
            let (mut first, mut second) = (words, Single(words));
            let stop = one.advance_to(&mut first, goal);
            let other = two.advance_to(&mut second, goal);
            ensure(stop == other && first == second.0, || {
                format!("{goal:x?}: {stop:?} is not {other:?}")
            })?;
            told(one, words, &first)?;
            two.outcomes();
            let pc = one.walk.pc(&one.blocks);
            ensure(stop != Stop::Arrived || pc == near, || {
                format!("arrived at {pc:#x}, not {near:#x}")
            })?;
            Ok(stop)
        }
    }
}

fn history(input: &mut Input<'_>) -> History {
    let len = input.byte() % 80;
    // Loops ask for the same outcomes again and again.
    let bits = match input.below(4) {
        0 => u64::MAX,
        1 => 0,
        _ => input.number(8),
    };
    History::new(bits, len)
}

fn count_both(
    (one, two): (&mut Side<'_>, &mut Side<'_>),
    words: History,
    count: u64,
) -> Result<Stop, String> {
    let (mut first, mut second) = (words, Single(words));
    let (mut left, mut other_left) = (count, count);
    let before = one.out.halfwords;
    let stop = one.advance(&mut first, &mut left);
    let other = two.advance(&mut second, &mut other_left);
    ensure(
        stop == other && first == second.0 && left == other_left,
        || format!("{stop:?}, {left} left, is not {other:?}, {other_left} left"),
    )?;
    ensure(one.out.halfwords - before == count - left, || {
        format!("{stop:?}: {left} left of {count}")
    })?;
    ensure((stop == Stop::Arrived) == (left == 0) || left == 0, || {
        format!("{stop:?} with {left} left")
    })?;
    told(one, words, &first)?;
    two.outcomes();
    Ok(stop)
}

/// The branches that were given out have the outcomes that were used up.
fn told(side: &mut Side<'_>, mut words: History, left: &History) -> Result<(), String> {
    let mut used = Vec::new();
    while words.left() > left.left() {
        used.extend(words.branch(0, false));
    }
    let given = side.outcomes();
    // What contradicts the code is used up, and not given out.
    let same = given == used || used.strip_suffix(&[false]) == Some(&*given);
    ensure(same, || format!("{given:?} given, {used:?} used up"))
}

/// A program of loops and calls, then questions of every kind.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let code = [
        words_of(&[
            0x0000_0013,
            0xfe05_1ee3,
            0x0080_00ef,
            0xffdf_f06f,
            0x0000_8067,
        ]),
        // c.nop, c.bnez a0 back, c.j on, c.jr ra, lui and a jump through it
        vec![
            1, 0, 0x7d, 0xfd, 0x01, 0xa0, 0x82, 0x80, 0xb7, 0x12, 0, 0, 0x67, 0x80, 2, 0,
        ],
        words_of(&[
            0x0100_00ef,
            0x00c0_00ef,
            0x0080_00ef,
            0xff5f_f06f,
            0x0000_8067,
        ]),
        words_of(&[0x0000_0073, 0x0000_0297, 0x0002_80e7, 0x0000_007f, 0, 0]),
    ];
    let mut seeds = Vec::new();
    for (i, code) in code.iter().enumerate() {
        for choices in [0u8, 7, 0x49, 0x6b, 0xef, 0x55] {
            for base in 0..BASES.len() as u8 {
                let mut seed = vec![choices, i as u8, base % 3, base, 1];
                seed.push(code.len() as u8);
                seed.extend_from_slice(code);
                seed.push(base.wrapping_mul(40));
                seed.push(code.len() as u8);
                seed.extend_from_slice(code);
                seed.extend_from_slice(&[0, 8, 1, 0, 1, 0]);
                for op in [
                    11u8, 0, 75, 14, 3, 12, 12, 12, 9, 139, 15, 8, 72, 79, 6, 7, 2,
                ] {
                    seed.extend_from_slice(&[op, op.wrapping_mul(6), 70, op, 0xff]);
                }
                seeds.push(seed);
            }
        }
    }
    seeds
}

fn words_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}
