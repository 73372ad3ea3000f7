//! The walk on small programs written by hand.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_isa::Isa;
use hartrace_testkit::asm;

use super::*;
use crate::{Event, History, Image, NotTaken, Remember, Rules, Swaps};

const BASE: u64 = 0x1000;

/// Gathers runs, and asks for a pause after each if told to.
#[derive(Default)]
struct Gather {
    runs: Vec<Run>,
    pausing: bool,
}

impl Consumer for Gather {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            self.runs.push(*run);
        }
        if self.pausing {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Gather {
    /// Every instruction's address, through the image.
    fn pcs(&self, image: &Image) -> Vec<u64> {
        let insns = self
            .runs
            .iter()
            .flat_map(|r| image.insns(SpaceId::FIRST, r.start, u64::from(r.insns)));
        insns.map(|(pc, _)| pc).collect()
    }
}

fn image(parcels: &[u16]) -> Image {
    let bytes: Vec<u8> = parcels.iter().flat_map(|p| p.to_le_bytes()).collect();
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, &bytes, Isa::RV64GC);
    image
}

const C_NOP: u16 = asm::C_NOP as u16;
const C_RET: u16 = asm::C_RET as u16;
const C_EBREAK: u16 = asm::C_EBREAK as u16;

/// c.beqz a0, by so many bytes.
fn beqz(offset: i64) -> u16 {
    asm::c_branch(false, asm::A0, offset) as u16
}

/// c.j by so many bytes.
fn j(offset: i64) -> u16 {
    asm::c_j(false, offset) as u16
}

/// jal ra by so many bytes, two parcels.
fn call(offset: i64) -> [u16; 2] {
    let word = asm::jal(asm::RA, offset);
    [word as u16, (word >> 16) as u16]
}

/// nop; loop: nop; c.beqz loop; nop; c.j over; nop; over: ret
fn looping() -> Image {
    image(&[C_NOP, C_NOP, beqz(-2), C_NOP, j(4), C_NOP, C_RET])
}

struct Stand<'a> {
    blocks: Blocks<'a>,
    walk: Walk,
    out: Gather,
}

impl<'a> Stand<'a> {
    fn at(image: &'a Image, rules: Rules, pc: u64) -> Self {
        let mut blocks = Blocks::new(image, rules);
        let mut walk = Walk::new(HartId(0));
        walk.restart(&mut blocks, pc);
        Stand {
            blocks,
            walk,
            out: Gather::default(),
        }
    }

    fn new(image: &'a Image) -> Self {
        Stand::at(image, Rules::default(), BASE)
    }

    fn count(&mut self, evidence: &mut impl Evidence, mut left: u64) -> (Stop, u64) {
        let stop = self
            .walk
            .advance(&mut self.blocks, evidence, &mut left, &mut self.out);
        (stop, left)
    }

    fn to(&mut self, evidence: &mut impl Evidence, address: u64, leave_first: bool) -> Stop {
        let goal = Goal {
            leave_first,
            own_outcome: true,
            ..Goal::new(address)
        };
        self.walk
            .advance_to(&mut self.blocks, evidence, goal, &mut self.out)
    }

    fn target(&mut self, to: u64) {
        let _ = self.walk.target(&mut self.blocks, to, &mut self.out);
    }

    fn pc(&self) -> u64 {
        self.walk.pc(&self.blocks)
    }

    fn pcs(&self) -> Vec<u64> {
        self.out.pcs(self.blocks.image())
    }
}

#[test]
fn outcomes_lead_through_branches_and_direct_jumps() {
    let image = looping();
    let mut s = Stand::new(&image);
    let mut history = History::new(0b011, 3);
    assert_eq!(
        s.count(&mut history, UNCOUNTED).0,
        Stop::Target(Exit::Return)
    );
    assert_eq!(
        s.pc(),
        BASE + 6,
        "the jump to the return is not given out yet"
    );
    s.target(0x9000);
    let expected: Vec<u64> = [0, 2, 4, 2, 4, 2, 4, 6, 8, 12]
        .iter()
        .map(|o| BASE + o)
        .collect();
    assert_eq!(s.pcs(), expected);
    let exits: Vec<Exit> = s.out.runs.iter().map(|r| r.exit).collect();
    assert_eq!(
        exits,
        [
            Exit::Taken,
            Exit::Taken,
            Exit::NotTaken,
            Exit::DirectJump,
            Exit::Return
        ]
    );
    assert_eq!(s.out.runs.last().unwrap().next, 0x9000);
    assert_eq!(s.count(&mut history, 5).0, Stop::Missing);
    assert_eq!(s.pc(), 0x9000);
}

/// A count may end after any instruction, and going on gives the rest.
#[test]
fn a_walk_cut_anywhere_is_the_same_walk() {
    let image = looping();
    let whole = {
        let mut s = Stand::new(&image);
        assert_eq!(s.count(&mut History::new(0b011, 3), 9), (Stop::Arrived, 0));
        s.pcs()
    };
    for first in 0..=9 {
        for second in 0..=9 - first {
            let mut s = Stand::new(&image);
            let mut history = History::new(0b011, 3);
            for part in [first, second, 9 - first - second] {
                assert_eq!(s.count(&mut history, part), (Stop::Arrived, 0));
            }
            assert_eq!(s.pcs(), whole, "{first} {second}");
        }
    }
}

#[test]
fn a_count_that_ends_inside_an_instruction_is_told() {
    let image = image(&[C_NOP, 0x0013, 0x0000, C_RET]);
    let mut s = Stand::new(&image);
    assert_eq!(
        s.count(&mut History::default(), 2),
        (Stop::HalfInstruction, 1)
    );
    assert_eq!(s.pc(), BASE + 2);
    assert_eq!(s.pcs(), [BASE]);
    assert_eq!(s.count(&mut History::default(), 2), (Stop::Arrived, 0));
    assert_eq!(s.pcs(), [BASE, BASE + 2]);
}

#[test]
fn without_evidence_the_walk_asks_and_gives_nothing() {
    let image = looping();
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut History::default(), UNCOUNTED).0, Stop::Branch);
    assert_eq!(s.out.runs, []);
    assert_eq!(s.walk.to_decision(&s.blocks), 3);
    let _ = s.walk.branch(&mut s.blocks, false, &mut s.out);
    assert_eq!(s.pcs(), [BASE, BASE + 2, BASE + 4]);
    assert_eq!(s.pc(), BASE + 6);
}

/// N-Trace BTM: branches on the way are not taken; the one that ends the count
/// is the decoder's.
#[test]
fn not_taken_leaves_the_last_branch_open() {
    let image = image(&[beqz(4), beqz(4), C_NOP, C_RET]);
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut NotTaken, 2), (Stop::Branch, 1));
    assert_eq!(s.pc(), BASE + 2);
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut NotTaken, 3), (Stop::Arrived, 0));
    assert_eq!(s.pc(), BASE + 6);
}

#[test]
fn ecall_does_not_retire_but_can_be_passed() {
    let image = image(&[C_NOP, C_EBREAK, C_NOP, C_RET]);
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut History::default(), 3), (Stop::Trap, 2));
    assert_eq!((s.pc(), s.pcs()), (BASE + 2, vec![BASE]));
    assert!(s.walk.retire(&mut s.blocks, &mut s.out));
    assert_eq!(s.count(&mut History::default(), 1), (Stop::Arrived, 0));
    assert_eq!(s.pcs(), [BASE, BASE + 2, BASE + 4]);
    // A count that ends right before it has arrived.
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut History::default(), 1), (Stop::Arrived, 0));
    assert_eq!(s.count(&mut History::default(), 0), (Stop::Arrived, 0));
}

#[test]
fn code_that_ends_is_missing_code() {
    let image = image(&[C_NOP, C_NOP]);
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut History::default(), 5), (Stop::Missing, 3));
    assert_eq!(s.pc(), BASE + 4);
    assert_eq!(s.pcs(), [BASE, BASE + 2]);
    assert!(!s.walk.retire(&mut s.blocks, &mut s.out));
    let mut s = Stand::at(&image, Rules::default(), BASE + 1);
    assert_eq!(
        s.count(&mut History::default(), 5),
        (Stop::Missing, 5),
        "an odd address"
    );
}

/// `j .` and longer circles: bounded by a count, found out without one.
#[test]
fn a_circle_without_evidence_ends() {
    for image in [
        image(&[j(0)]),
        image(&[C_NOP, j(-2)]),
        image(&[C_NOP, C_NOP, j(2), j(-6)]),
    ] {
        let mut s = Stand::new(&image);
        assert_eq!(s.count(&mut History::default(), UNCOUNTED).0, Stop::Endless);
        let mut s = Stand::new(&image);
        assert_eq!(
            s.count(&mut History::default(), 100_000),
            (Stop::Arrived, 0)
        );
        assert_eq!(s.pcs().len(), 100_000);
        let mut s = Stand::new(&image);
        assert_eq!(s.to(&mut History::default(), 0x5000, false), Stop::Endless);
    }
}

#[test]
fn a_recursive_circle_through_the_stack_ends() {
    // f: call f
    let image = image(&call(0));
    let mut s = Stand::new(&image);
    s.walk.set_stack(Some(ReturnStack::new(
        Remember::Address,
        Swaps::Ignored,
        32,
    )));
    assert_eq!(s.to(&mut History::default(), 0x5000, false), Stop::Endless);
}

#[test]
fn returns_follow_the_stack() {
    // call f; nop; ebreak; f: nop; ret
    let [lo, hi] = call(8);
    let image = image(&[lo, hi, C_NOP, C_EBREAK, C_NOP, C_RET]);
    let mut s = Stand::new(&image);
    s.walk
        .set_stack(Some(ReturnStack::new(Remember::Address, Swaps::Ignored, 4)));
    assert_eq!(s.count(&mut History::default(), UNCOUNTED).0, Stop::Trap);
    assert_eq!(s.pcs(), [BASE, BASE + 8, BASE + 10, BASE + 4]);
    // The return that ends a count is left to the decoder, who may disagree.
    let mut s = Stand::new(&image);
    s.walk
        .set_stack(Some(ReturnStack::new(Remember::Address, Swaps::Ignored, 4)));
    assert_eq!(
        s.count(&mut History::default(), 4).0,
        Stop::Target(Exit::Return)
    );
    s.target(BASE + 8);
    assert!(s.walk.stack().unwrap().is_empty(), "used up all the same");
    assert_eq!(
        s.count(&mut History::default(), 2).0,
        Stop::Target(Exit::Return)
    );
}

#[test]
fn sequential_jumps_are_followed_when_the_pair_was_walked() {
    // auipc t1, 0; jalr x0, 12(t1); nop; nop; ret
    let image = image(&[0x0317, 0x0000, 0x0067, 0x00c3, C_NOP, C_NOP, C_RET]);
    let rules = Rules {
        sequential_jumps: true,
        sequential_returns: true,
        ..Rules::default()
    };
    let mut s = Stand::at(&image, rules, BASE);
    assert_eq!(
        s.count(&mut History::default(), UNCOUNTED).0,
        Stop::Target(Exit::Return)
    );
    s.target(0);
    assert_eq!(s.pcs(), [BASE, BASE + 4, BASE + 12]);
    // Entered at the jump, or with the rule off, nobody knows the register.
    for (rules, pc) in [(rules, BASE + 4), (Rules::default(), BASE)] {
        let mut s = Stand::at(&image, rules, pc);
        assert_eq!(
            s.count(&mut History::default(), UNCOUNTED).0,
            Stop::Target(Exit::IndirectJump)
        );
    }
}

#[test]
fn absolute_jumps_and_all_jumps_are_rules() {
    // jalr x0, 0x100(x0)
    let absolute = image(&[0x0067, 0x1000]);
    let rules = Rules {
        absolute_jumps: true,
        ..Rules::default()
    };
    let mut s = Stand::at(&absolute, rules, BASE);
    assert_eq!(s.count(&mut History::default(), UNCOUNTED).0, Stop::Missing);
    assert_eq!((s.pc(), s.pcs()), (0x100, vec![BASE]));
    let mut s = Stand::new(&absolute);
    assert_eq!(
        s.count(&mut History::default(), 2).0,
        Stop::Target(Exit::IndirectJump)
    );

    let jumps = image(&[j(2), C_RET]);
    let rules = Rules {
        all_jumps: true,
        ..Rules::default()
    };
    let mut s = Stand::at(&jumps, rules, BASE);
    assert_eq!(s.count(&mut History::default(), 1), (Stop::Branch, 1));
    assert_eq!(
        s.count(&mut History::new(0, 1), 1),
        (Stop::Contradiction, 1)
    );
    assert_eq!(s.count(&mut History::new(1, 1), 1), (Stop::Arrived, 0));
    assert_eq!(s.out.runs.first().unwrap().exit, Exit::DirectJump);
}

#[test]
fn an_address_is_reached_when_the_outcomes_are_used_up() {
    let image = looping();
    let mut s = Stand::new(&image);
    // Twice round before it counts.
    assert_eq!(
        s.to(&mut History::new(0b11, 2), BASE + 2, false),
        Stop::Arrived
    );
    assert_eq!(s.pcs(), [0, 2, 4, 2, 4].map(|o| BASE + o));
    // The goal is the branch itself, whose own outcome waits.
    let mut history = History::new(0b1, 2);
    assert_eq!(s.to(&mut history, BASE + 4, false), Stop::Arrived);
    assert_eq!(history.left(), 1);
    assert_eq!(s.pc(), BASE + 4);
    // From there the same address again means once round, not nothing.
    let mut s = Stand::at(&image, Rules::default(), BASE + 4);
    assert_eq!(
        s.to(&mut History::new(0b01, 2), BASE + 4, true),
        Stop::Arrived
    );
    assert_eq!(s.pcs(), [4, 2].map(|o| BASE + o));
    // Standing there already.
    let mut s = Stand::at(&image, Rules::default(), BASE + 6);
    assert_eq!(
        s.to(&mut History::default(), BASE + 6, false),
        Stop::Arrived
    );
    assert_eq!(s.pcs(), []);
    // Never on the way.
    assert_eq!(
        s.to(&mut History::default(), BASE + 10, false),
        Stop::Target(Exit::Return)
    );
}

/// Long straight code is cut at the same addresses wherever it is entered.
#[test]
fn cuts_do_not_depend_on_the_entry() {
    let mut parcels = vec![C_NOP; 6000];
    // A constant as the last instruction of a page stays with what follows.
    parcels[2046] = 0x6537; // lui a0
    parcels[2047] = 0x0000;
    parcels.push(C_RET);
    let image = image(&parcels);
    let from = |pc| {
        let mut s = Stand::at(&image, Rules::default(), pc);
        s.count(&mut History::default(), UNCOUNTED);
        s.target(0);
        s.out.runs
    };
    let whole = from(BASE);
    assert!(whole.len() > 2);
    for entry in [BASE + 2, BASE + 4092, BASE + 4096, BASE + 8000] {
        let later = from(entry);
        let n = later.len() - 1;
        assert_eq!(later[1..], whole[whole.len() - n..], "{entry:#x}");
    }
}

/// A consumer's wish for a pause is kept, and changes nothing else.
#[test]
fn a_wish_for_a_pause_is_kept() {
    let image = looping();
    let mut plain = Stand::new(&image);
    let plain_stop = plain.count(&mut History::new(0x3f, 7), UNCOUNTED);
    assert!(!plain.walk.take_pause());
    let mut pausing = Stand::new(&image);
    pausing.out.pausing = true;
    assert_eq!(
        pausing.count(&mut History::new(0x3f, 7), UNCOUNTED),
        plain_stop
    );
    assert!(pausing.walk.take_pause());
    assert!(!pausing.walk.take_pause(), "told once");
    assert_eq!(plain.pcs(), pausing.pcs());
    // Also where a count ends inside a block.
    let mut cut = Stand::new(&image);
    cut.out.pausing = true;
    assert_eq!(cut.count(&mut History::default(), 1), (Stop::Arrived, 0));
    assert!(cut.walk.take_pause());
}

/// Chains of eight outcomes give what single outcomes give.
#[test]
fn chains_change_nothing() {
    struct OneByOne(History);
    impl Evidence for OneByOne {
        fn branch(&mut self, at: u64, last: bool) -> Option<bool> {
            self.0.branch(at, last)
        }
        fn left(&self) -> u64 {
            self.0.left()
        }
    }
    let image = image(&[C_NOP, beqz(4), j(-4), beqz(-6), C_NOP, beqz(-10), j(-12)]);
    let mut chained = Stand::new(&image);
    let mut single = Stand::new(&image);
    let mut word = 0x1234_5678_9abc_def1u64;
    for _ in 0..200 {
        word = word.rotate_left(5) ^ (word >> 3);
        let len = (word % 65) as u8;
        let bits = word & 0x5555_3333_0f0f_ffff;
        let a = chained.count(&mut History::new(bits, len), UNCOUNTED);
        let b = single.count(&mut OneByOne(History::new(bits, len)), UNCOUNTED);
        assert_eq!(a, b);
        assert_eq!(chained.pc(), single.pc());
    }
    assert_eq!(chained.out.runs, single.out.runs);
}

/// The outcomes of whole messages: whoever only counts is told of as many instructions, and
/// the walk goes on at the same place, also where calls are stacked.
#[test]
fn outcomes_that_are_only_counted() {
    struct Sum(u64);
    impl Consumer for Sum {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            if let Event::Run(run) = event {
                self.0 += u64::from(run.insns);
            }
            ControlFlow::Continue(())
        }
        fn only_counts(&self) -> bool {
            true
        }
        fn counted(&mut self, _: HartId, counted: Totals) -> ControlFlow<()> {
            self.0 += counted.insns;
            ControlFlow::Continue(())
        }
    }
    let branches = [C_NOP, beqz(4), j(-4), beqz(-6), C_NOP, beqz(-10), j(-12)];
    // call f; beqz; beqz; j; f: nop; beqz; ret
    let [a, b] = call(10);
    let calls = [a, b, beqz(-4), beqz(-6), j(-8), C_NOP, beqz(-2), C_RET];
    for (code, stacked) in [(&branches[..], false), (&calls[..], true)] {
        let image = image(code);
        let (mut counting, mut single) = (Stand::new(&image), Stand::new(&image));
        if stacked {
            for s in [&mut counting, &mut single] {
                let stack = ReturnStack::new(Remember::Address, Swaps::Ignored, 4);
                s.walk.set_stack(Some(stack));
            }
        }
        let (mut sum, mut at_once) = (Sum(0), 0);
        let mut word = 0x1234_5678_9abc_def1u64;
        for _ in 0..600 {
            word = word.rotate_left(5) ^ (word >> 3);
            let len = 1 + (word % 40) as u8;
            let bits = word & 0x7 | (word >> 9) & 0x1f00;
            let bits = bits & (u64::MAX >> (64 - len));
            let Stand { blocks, walk, out } = &mut single;
            let expected = walk.use_up(blocks, &mut History::new(bits, len), out);
            let Stand { blocks, walk, .. } = &mut counting;
            let walked = match walk.count_outcomes(blocks, word, (bits, len), &mut sum) {
                Some(walked) => {
                    at_once += 1;
                    (Stop::Arrived, walked)
                }
                None => walk.use_up(blocks, &mut History::new(bits, len), &mut sum),
            };
            assert_eq!((walked, counting.pc()), (expected, single.pc()));
        }
        let insns = single.out.runs.iter().map(|run| u64::from(run.insns));
        assert_eq!(sum.0, insns.sum::<u64>());
        assert_eq!(at_once > 100, !stacked, "{at_once}");
    }
}

/// Outcomes by address, which change now and then, and one that differs.
#[derive(Clone)]
struct Foretold {
    left: u64,
    fails: bool,
    taken: u8,
    /// May be asked for many at once.
    fast: bool,
}

impl Evidence for Foretold {
    fn branch(&mut self, at: u64, _: bool) -> Option<bool> {
        if let Some(rest) = self.left.checked_sub(1) {
            self.left = rest;
            return Some(self.foresee(at));
        }
        core::mem::take(&mut self.fails).then(|| !self.foresee(at))
    }

    fn left(&self) -> u64 {
        self.left + u64::from(self.fails)
    }

    fn foreseen(&self) -> (u64, bool) {
        match self.fast {
            true => (self.left, self.fails),
            false => (0, false),
        }
    }

    fn foresee(&self, at: u64) -> bool {
        self.taken >> (at >> 1 & 7) & 1 != 0
    }

    fn foresees(&self, _: Kept, runs: &[Run]) -> bool {
        let is_branch = |run: &&Run| matches!(run.exit, Exit::Taken | Exit::NotTaken);
        let mut branches = runs.iter().filter(is_branch);
        branches.all(|run| self.foresee(run.source()) == (run.exit == Exit::Taken))
    }

    fn skip(&mut self, outcomes: u8) {
        match self.left.checked_sub(outcomes.into()) {
            Some(rest) => self.left = rest,
            None => (self.left, self.fails) = (0, false),
        }
    }
}

/// Outcomes that are foreseen give the same many at once and one by one, however far
/// they go, and to an address as well.
#[test]
fn habits_change_nothing() {
    let image = image(&[C_NOP, beqz(4), j(-4), beqz(-6), C_NOP, beqz(-10), j(-12)]);
    let mut fast = Stand::new(&image);
    let mut single = Stand::new(&image);
    let mut word = 0x1234_5678_9abc_def1u64;
    for round in 0..2000 {
        word = word.rotate_left(5) ^ (word >> 3);
        let evidence = Foretold {
            left: word % 90,
            fails: word >> 8 & 1 != 0,
            // The same for a while, so that habits form.
            taken: (0x96c3_5a17_u64 >> (round / 100 * 3)) as u8,
            fast: true,
        };
        let mut slow = Foretold {
            fast: false,
            ..evidence.clone()
        };
        let mut evidence = evidence;
        if word >> 9 & 3 == 0 {
            let goal = BASE + 2 * (word >> 11 & 7);
            let stop = fast.to(&mut evidence, goal, true);
            assert_eq!(stop, single.to(&mut slow, goal, true));
        } else {
            let stop = fast.count(&mut evidence, UNCOUNTED);
            assert_eq!(stop, single.count(&mut slow, UNCOUNTED));
        }
        assert_eq!((evidence.left, evidence.fails), (slow.left, slow.fails));
        assert_eq!(fast.pc(), single.pc());
        let pc = BASE + 2 * (word >> 20 & 3);
        fast.walk.restart(&mut fast.blocks, pc);
        single.walk.restart(&mut single.blocks, pc);
    }
    assert_eq!(fast.out.runs, single.out.runs);
    assert!(fast.out.runs.len() > 10_000);
}

/// A stretch goes through returns whose addresses are on the stack, its own calls and
/// those before it, as long as the stack is the same.
#[test]
fn a_stretch_goes_through_returns() {
    // f: c.beqz +2; c.ret; at 0x1010: call f; c.nop; c.jr a5
    let jr = 0x8782;
    let [low, high] = call(-0x10);
    let image = image(&[
        beqz(2),
        C_RET,
        C_NOP,
        C_NOP,
        C_NOP,
        C_NOP,
        C_NOP,
        C_NOP,
        low,
        high,
        C_NOP,
        jr,
    ]);
    let f = BASE;
    for depth in [1, 2, 8] {
        let stack = ReturnStack::new(Remember::Address, Swaps::Ignored, depth);
        let mut s = Stand::new(&image);
        s.walk.set_stack(Some(stack));
        let mut repeated = 0;
        for round in 0..12 {
            // In f, called from two places; then to the jump, through another call.
            let link = if round % 4 < 3 {
                BASE + 0x10
            } else {
                BASE + 0x14
            };
            let mut general = s.walk.clone();
            s.walk.restart(&mut s.blocks, f);
            general.restart(&mut s.blocks, f);
            for walk in [&mut s.walk, &mut general] {
                let stack = walk.stack().unwrap();
                stack.clear();
                stack.push(0x9000);
                stack.push(link);
            }
            let outcomes = if link == BASE + 0x10 { 0b111 } else { 0b11 };
            let mut out = Gather::default();
            let bits = History::new(outcomes, if outcomes == 0b111 { 2 } else { 1 });
            let stop = general.advance(&mut s.blocks, &mut { bits }, &mut { UNCOUNTED }, &mut out);
            assert_eq!(stop, Stop::Target(Exit::IndirectJump));
            general.target(&mut s.blocks, BASE + 4, &mut out);
            let before = s.out.runs.len();
            let own = s
                .walk
                .repeat_to_jump(&mut s.blocks, outcomes, BASE + 4, &mut s.out);
            if own.is_some() {
                repeated += 1;
                assert_eq!(s.out.runs[before..], out.runs, "{round}");
                assert_eq!(s.walk.stack(), general.stack());
                assert_eq!(s.walk.pc(&s.blocks), general.pc(&s.blocks));
            }
        }
        assert_eq!(repeated > 3, depth > 1, "{depth}: {repeated}");
    }
}

#[test]
fn an_epoch_changes_the_code_under_the_walk() {
    let mut image = image(&[C_NOP, C_NOP, C_RET]);
    let later = image.patch(SpaceId::FIRST, BASE + 2, &C_EBREAK.to_le_bytes());
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut History::default(), 1), (Stop::Arrived, 0));
    s.walk.enter(&mut s.blocks, later);
    assert_eq!(s.count(&mut History::default(), UNCOUNTED).0, Stop::Trap);
    s.walk.enter(&mut s.blocks, SpaceId::FIRST);
    assert_eq!(
        s.count(&mut History::default(), UNCOUNTED).0,
        Stop::Target(Exit::Return)
    );
}

/// f straddles a page, so each call goes through three blocks: f, the rest of
/// f, and what is behind the call.
#[test]
fn a_function_called_again_and_again_is_no_circle() {
    const CALLS: usize = 40;
    const F: usize = 0x7fe;
    let mut parcels = vec![C_NOP; F + 4];
    for i in 0..CALLS {
        parcels[2 * i..2 * i + 2].copy_from_slice(&call((F as i64 - 2 * i as i64) * 2));
    }
    parcels[2 * CALLS] = C_EBREAK;
    parcels[F + 3] = C_RET;
    let image = image(&parcels);
    let goal = BASE + 4 * CALLS as u64;
    let mut s = Stand::new(&image);
    s.walk
        .set_stack(Some(ReturnStack::new(Remember::Address, Swaps::Ignored, 8)));
    assert_eq!(s.to(&mut History::default(), goal, false), Stop::Arrived);
    let mut s = Stand::new(&image);
    s.walk
        .set_stack(Some(ReturnStack::new(Remember::Address, Swaps::Ignored, 8)));
    assert_eq!(s.count(&mut History::default(), UNCOUNTED).0, Stop::Trap);
}

/// main: call f, again and again; f: nop; ret, and no end to it.
#[test]
fn a_circle_of_calls_and_returns_ends() {
    let [a, b] = call(6);
    let image = image(&[a, b, j(-4), C_NOP, C_RET]);
    let mut s = Stand::new(&image);
    s.walk
        .set_stack(Some(ReturnStack::new(Remember::Address, Swaps::Ignored, 8)));
    assert_eq!(s.to(&mut History::default(), 0x5000, false), Stop::Endless);
    assert!(s.out.runs.len() < 64);
}

/// Two co-routines that swap for ever: jalr ra,t0 and jalr t0,ra.
#[test]
fn a_circle_of_swaps_ends() {
    let image = image(&[0x80e7, 0x0002, j(-4), 0x82e7, 0x0000, j(-4)]);
    let mut s = Stand::new(&image);
    let mut stack = ReturnStack::new(Remember::Address, Swaps::PopAndPush, 8);
    stack.push(BASE + 6);
    s.walk.set_stack(Some(stack));
    assert_eq!(s.to(&mut History::default(), 0x5000, false), Stop::Endless);
    assert!(s.out.runs.len() < 64);
}

/// Forty functions that call the next one twice: no circle, but no end in
/// sight either.
#[test]
fn a_tree_of_calls_is_given_up_on() {
    let mut parcels = Vec::new();
    for _ in 0..40 {
        parcels.extend(call(10));
        parcels.extend(call(6));
        parcels.push(C_RET);
    }
    parcels.push(C_RET);
    let image = image(&parcels);
    let mut s = Stand::new(&image);
    s.walk.set_stack(Some(ReturnStack::new(
        Remember::Address,
        Swaps::Ignored,
        64,
    )));
    assert_eq!(s.to(&mut History::default(), 0x5000, false), Stop::Endless);
}

#[test]
fn a_jump_that_uses_evidence_is_answered_like_a_branch() {
    let image = looping();
    let rules = Rules {
        all_jumps: true,
        ..Rules::default()
    };
    // c.j over; the block behind it exists already.
    let mut s = Stand::at(&image, rules, BASE + 12);
    s.walk.restart(&mut s.blocks, BASE + 8);
    s.walk.restart(&mut s.blocks, BASE + 10);
    s.walk.restart(&mut s.blocks, BASE + 8);
    assert_eq!(s.count(&mut History::default(), 9).0, Stop::Branch);
    assert!(!s.walk.branch(&mut s.blocks, false, &mut s.out));
    assert!(s.walk.branch(&mut s.blocks, true, &mut s.out));
    assert_eq!(s.out.pcs(&image), [BASE + 8]);
    assert_eq!(s.out.runs[0].exit, Exit::DirectJump);
    assert_eq!(s.walk.pc(&s.blocks), BASE + 12);
}

/// Damaged evidence may name a target where the program has a branch.
#[test]
fn a_wrong_answer_spoils_no_later_walk() {
    let image = looping();
    let mut s = Stand::new(&image);
    assert!(!s.walk.target(&mut s.blocks, BASE + 12, &mut s.out));
    assert_eq!((s.pc(), s.out.runs.len()), (BASE, 0));
    s.walk.restart(&mut s.blocks, BASE);
    assert_eq!(s.count(&mut History::new(0, 1), 4).0, Stop::Arrived);
    assert_eq!(s.out.pcs(&image), [BASE, BASE + 2, BASE + 4, BASE + 6]);
    assert_eq!(s.out.runs[0].next, BASE + 6);
}

/// lui as the last instruction below 4 GiB.
#[test]
fn rv32_code_goes_on_at_zero() {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0xffff_fffc, &[0xb7, 2, 0, 0], Isa::RV32GC);
    image.add_raw(SpaceId::FIRST, 0, &[1, 0, 2, 0x90], Isa::RV32GC);
    let mut s = Stand::at(&image, Rules::default(), 0xffff_fffc);
    assert_eq!(s.count(&mut History::default(), 9).0, Stop::Trap);
    assert_eq!(s.out.pcs(&image), [0xffff_fffc, 0]);
    assert_eq!(s.walk.pc(&s.blocks), 2);
}

/// N-Trace BTM evidence has no end of its own: an address walk on it must.
#[test]
fn free_answers_do_not_hide_a_circle() {
    let image = image(&[beqz(4), j(-2)]);
    let mut s = Stand::new(&image);
    assert_eq!(s.to(&mut NotTaken, 0x5000, false), Stop::Endless);
    let mut s = Stand::new(&image);
    assert_eq!(s.count(&mut NotTaken, UNCOUNTED).0, Stop::Endless);
}

/// Evidence that counts implied returns (E-Trace `irets`) is evidence.
#[test]
fn counted_returns_are_evidence() {
    struct Returns(u64);
    impl Evidence for Returns {
        fn branch(&mut self, _: u64, _: bool) -> Option<bool> {
            None
        }
        fn left(&self) -> u64 {
            self.0
        }
        fn implied_return(&mut self, _: u64, depth: usize, _: bool) -> bool {
            assert_eq!(depth, 1);
            let more = self.0 > 0;
            self.0 -= u64::from(more);
            more
        }
    }
    // loop: call f; j loop; f: ret
    let [a, b] = call(6);
    let image = image(&[a, b, j(-4), C_RET]);
    let mut s = Stand::new(&image);
    let stack = ReturnStack::new(Remember::Address, Swaps::Ignored, 8);
    s.walk.set_stack(Some(stack));
    let stop = s.count(&mut Returns(10), UNCOUNTED).0;
    assert_eq!(stop, Stop::Target(Exit::Return));
    let returns = s.out.runs.iter().filter(|r| r.exit == Exit::Return);
    assert_eq!(returns.count(), 10);
}

/// N-Trace ResourceFull: right behind the last branch, whatever follows.
#[test]
fn using_up_stops_right_behind_the_last_branch() {
    let [a, b] = call(6);
    let image = image(&[C_NOP, beqz(4), C_NOP, a, b, C_RET, C_RET]);
    for repeat in 0..6 {
        let mut s = Stand::new(&image);
        let stop = s
            .walk
            .use_up(&mut s.blocks, &mut History::new(1, 1), &mut s.out);
        assert_eq!((stop, s.pc()), ((Stop::Arrived, 2), BASE + 6), "{repeat}");
    }
    // Chains included: they end behind their last branch too.
    let image = looping();
    let mut s = Stand::new(&image);
    for _ in 0..4 {
        s.walk.restart(&mut s.blocks, BASE);
        let mut history = History::new(0x7f, 8);
        let (stop, walked) = s.walk.use_up(&mut s.blocks, &mut history, &mut s.out);
        assert_eq!((stop, walked), (Stop::Arrived, 17));
        assert_eq!(s.pc(), BASE + 6);
    }
}

#[test]
fn one_instruction_with_the_evidence_it_needs() {
    let image = looping();
    let mut s = Stand::new(&image);
    let mut history = History::new(1, 1);
    for pc in [BASE, BASE + 2, BASE + 4] {
        assert_eq!(s.pc(), pc);
        assert_eq!(s.walk.at_branch(&s.blocks), pc == BASE + 4);
        assert_eq!(
            s.walk.step(&mut s.blocks, &mut history, &mut s.out),
            Stop::Arrived
        );
    }
    assert_eq!(s.pc(), BASE + 2, "taken");
    s.walk.restart(&mut s.blocks, BASE + 8);
    assert_eq!(
        s.walk.step(&mut s.blocks, &mut history, &mut s.out),
        Stop::Arrived
    );
    assert_eq!(s.pc(), BASE + 12, "a direct jump is followed");
    let stop = s.walk.step(&mut s.blocks, &mut history, &mut s.out);
    assert_eq!(stop, Stop::Target(Exit::Return));
    assert_eq!(s.walk.decision(&s.blocks), BASE + 12);
    // A call stacks, a retired one cannot.
    assert!(s.walk.retire(&mut s.blocks, &mut s.out));
    assert_eq!(s.pc(), BASE + 14);
    s.walk.restart(&mut s.blocks, BASE + 1);
    assert!(!s.walk.retire(&mut s.blocks, &mut s.out), "an odd address");
}

/// The same evidence, the same events, however warm the tables are.
#[test]
fn what_is_given_before_an_endless_stop_does_not_depend_on_the_past() {
    let image = image(&[beqz(2), j(0)]);
    let mut s = Stand::new(&image);
    let mut given = Vec::new();
    for _ in 0..5 {
        s.out.runs.clear();
        s.walk.restart(&mut s.blocks, BASE);
        let stop = s.count(&mut History::new(0xff, 8), UNCOUNTED).0;
        assert_eq!(stop, Stop::Endless);
        given.push(s.out.runs.len());
    }
    assert!(given.windows(2).all(|w| w[0] == w[1]), "{given:?}");
}

/// Chains on the way to an address change nothing.
#[test]
fn an_address_walk_may_use_chains() {
    let image = looping();
    let mut warm = Stand::new(&image);
    for round in 0..5 {
        warm.walk.restart(&mut warm.blocks, BASE);
        warm.out.runs.clear();
        let mut history = History::new(u64::MAX >> 2, 63);
        assert_eq!(warm.to(&mut history, BASE + 8, false), Stop::Arrived);
        assert_eq!(warm.pc(), BASE + 8);
        assert_eq!(warm.out.runs.len(), 64, "{round}");
    }
}

#[test]
fn swaps_move_the_stack_where_the_protocol_says_so() {
    // jalr ra, t0
    let image = image(&[0x80e7, 0x0002, C_NOP]);
    for (swaps, kept) in [(Swaps::Ignored, 0x77), (Swaps::PopAndPush, BASE + 4)] {
        let mut s = Stand::new(&image);
        let mut stack = ReturnStack::new(Remember::Address, swaps, 8);
        stack.push(0x77);
        s.walk.set_stack(Some(stack));
        assert_eq!(
            s.count(&mut History::default(), 2).0,
            Stop::Target(Exit::Swap)
        );
        s.target(BASE);
        assert_eq!(s.walk.stack().unwrap().top(), Some(kept));
    }
}

/// A page that is not there faults at its first instruction.
#[test]
fn an_address_without_code_can_be_arrived_at() {
    let image = image(&[C_NOP, C_NOP]);
    let mut s = Stand::new(&image);
    assert_eq!(
        s.to(&mut History::default(), BASE + 4, false),
        Stop::Arrived
    );
    assert_eq!((s.pc(), s.pcs().len()), (BASE + 4, 2));
    assert_eq!(s.to(&mut History::default(), BASE + 4, true), Stop::Missing);
    let mut s = Stand::at(&image, Rules::default(), 0x9000);
    assert_eq!(s.to(&mut History::default(), 0x9000, false), Stop::Arrived);
    assert_eq!(s.to(&mut History::default(), 0x9000, true), Stop::Missing);
}

/// A stretch that is asked for again and again gives what walking gives, and
/// goes wherever it is sent; another count or other outcomes are not it.
#[test]
fn a_stretch_is_repeated() {
    // loop: c.nop; c.bnez a0, loop; c.ret
    let image = image(&[C_NOP, 0xfd7d, C_RET, C_NOP]);
    let mut s = Stand::new(&image);
    let mut known = Vec::new();
    for round in 0..5 {
        s.walk.restart(&mut s.blocks, BASE);
        s.out = Gather::default();
        // Three times round: taken, taken, not taken, and the jump.
        let to = BASE + 2 * (round & 1);
        let repeated = s.walk.repeat(&mut s.blocks, 0b1110, 7, to, &mut s.out);
        if !repeated {
            assert_eq!(s.count(&mut History::new(0b011, 3), 7).1, 1);
            s.target(to);
        }
        assert_eq!(s.walk.pc(&s.blocks), to);
        assert_eq!(s.walk.instructions(), 7 * (round + 1));
        let last = s.out.runs.last().copied().unwrap();
        assert_eq!((last.next, last.exit), (to, Exit::Return));
        known.push((repeated, s.out.runs.len()));
    }
    assert_eq!(known[0].1, known[4].1);
    assert_eq!(
        known.iter().map(|k| k.0).collect::<Vec<_>>(),
        [false, false, true, true, true]
    );
    for (outcomes, halfwords) in [(0b1110, 6), (0b1100, 7), (0b110, 7), (0, 7), (0b1110, 9)] {
        for _ in 0..3 {
            s.walk.restart(&mut s.blocks, BASE);
            let repeated = s
                .walk
                .repeat(&mut s.blocks, outcomes, halfwords, BASE, &mut s.out);
            assert!(!repeated, "{outcomes:#b} {halfwords}");
        }
    }
}
