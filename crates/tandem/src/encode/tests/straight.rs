//! Straight-line code with its changes gives the bytes of single steps.

use super::random::{config, walk};
use super::*;
use hartrace_flow::{Change, Changes, HartId, Observer, Placed, Straight, Straights, Wants};
use hartrace_isa::csr::FFLAGS;
use hartrace_isa::{Flow, Isa};
use hartrace_testkit::Random;

/// Instructions that a piece may have.
const LONGEST: u8 = 127;

/// Instructions of one mode, as a hart hands them over.
#[derive(Default)]
struct Batch {
    mode: Mode,
    code: Vec<Placed>,
    list: Vec<Straight>,
    changes: Vec<Change>,
    others: Vec<Effects>,
    /// Where a piece goes on.
    open: Option<u64>,
}

/// A change, if there is room in it for these effects.
fn change(effects: &Effects) -> Option<Change> {
    let (regs, csrs, accesses) = (&effects.regs, &effects.csrs, &effects.accesses);
    let few = regs.len() < 2 && csrs.len() < 2 && accesses.len() < 2;
    let plain = csrs.iter().all(|w| w.csr == FFLAGS) && effects.mode.is_none();
    (few && plain).then(|| Change {
        reg: regs.first().copied(),
        access: accesses.first().copied(),
        fflags: csrs.first().map(|w| w.value as u8),
        more: false,
    })
}

impl Batch {
    fn add(&mut self, insn: &Insn, effects: &Effects) {
        let flow = Flow::of_retired(insn.bits, Isa::RV64GC);
        let full = self.list.last().is_some_and(|piece| piece.count == LONGEST);
        let start = full || self.open != Some(insn.pc);
        let before = match start {
            true => Placed::default(),
            false => *self.code.last().unwrap(),
        };
        if start {
            self.list.push(Straight {
                pc: insn.pc,
                ..Straight::default()
            });
        }
        let placed = Placed::after(&before, insn.bits, flow, 1);
        let piece = self.list.last_mut().unwrap();
        piece.last = self.code.len() as u32;
        piece.count += 1;
        piece.next = insn.next;
        piece.taken = u8::from(placed.is_branch() && insn.next != insn.end());
        self.code.push(placed);
        self.open = (insn.next == insn.end()).then_some(insn.next);
        self.changes.push(change(effects).unwrap_or_else(|| {
            self.others.push(*effects);
            // The rest of it means nothing.
            Change {
                reg: Some(RegWrite::default()),
                more: true,
                ..Change::NONE
            }
        }));
    }

    fn give(&mut self, take: impl FnOnce(&Straights<'_>)) {
        let batch = core::mem::take(self);
        if !batch.list.is_empty() {
            take(&Straights {
                code: &batch.code,
                list: &batch.list,
                count: Straight::count_all(&batch.list),
                accesses: &[],
                changes: Changes {
                    list: &batch.changes,
                    others: &batch.others,
                },
                context: Context(0),
                mode: batch.mode,
                news: None,
            });
        }
    }
}

/// Takes code step by step.
struct Single(Vec<Did>);

impl Observer for Single {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.0.push((*step, *effects));
    }
}

#[test]
fn straight_code_has_the_groups_of_its_steps() {
    let mut rng = Random::new(0x5eed);
    let mut plain = 0;
    for _ in 0..600 {
        let mut config = config(&mut rng);
        if rng.below(2) == 0 {
            config.style = Style::default();
            config.absent = crate::Elements::default();
        }
        if config.validate().is_err() {
            continue;
        }
        let mut whole = Encoder::new(config.clone()).unwrap();
        plain += u32::from(whole.plain.is_some());
        let (mut bytes, mut single) = (Vec::new(), Single(Vec::new()));
        let mut batch = Batch::default();
        for (step, mut effects) in walk(&mut rng, config.xlen) {
            // Mostly what instructions do.
            if rng.below(4) != 0 && matches!(step, Step::Insn(_)) {
                effects.mode = None;
                effects.csrs.clear();
            }
            let mode = match step {
                Step::Insn(insn) => Some(insn.mode),
                _ => None,
            };
            if mode != Some(batch.mode) || rng.below(20) == 0 {
                batch.give(|code| {
                    in_parts(&mut whole, code, &mut rng, &mut bytes);
                    single.straights(HartId(0), code);
                });
                batch.mode = mode.unwrap_or_default();
            }
            match step {
                Step::Insn(insn) => batch.add(&insn, &effects),
                _ => {
                    whole.step(&step, &effects, &mut bytes);
                    single.step(HartId(0), &step, &effects);
                }
            }
        }
        batch.give(|code| {
            in_parts(&mut whole, code, &mut rng, &mut bytes);
            single.straights(HartId(0), code);
        });
        whole.finish(&mut bytes);
        assert_eq!(whole.counters().bytes, bytes.len() as u64);
        assert_eq!(bytes, encode(&config, &single.0));
    }
    assert!(plain > 100);
}

/// Code in parts, cut anywhere.
fn in_parts(encoder: &mut Encoder, code: &Straights<'_>, rng: &mut Random, out: &mut Vec<u8>) {
    let mut done = 0;
    let count = code.count as usize;
    while done < count {
        let end = (done + 1 + rng.below(20) as usize).min(count);
        encoder.straights(code, done..end, out);
        done = end;
    }
}

/// A piece whose groups need more room than there is at once.
#[test]
fn long_pieces_are_written_in_parts() {
    let mut batch = Batch::default();
    for index in 0..1000 {
        let mut insn = insn(0x13);
        (insn.pc, insn.next) = (0x1000 + 4 * index, 0x1004 + 4 * index);
        let effects = x(5, index).access(store(3, 0x2000, index));
        batch.add(&insn, &effects);
    }
    assert_eq!(batch.list.len(), 1000usize.div_ceil(LONGEST.into()));
    let config = Config::default();
    let mut encoder = Encoder::new(config.clone()).unwrap();
    let (mut bytes, mut single) = (Vec::new(), Single(Vec::new()));
    batch.give(|code| {
        encoder.straights(code, 0..1000, &mut bytes);
        single.straights(HartId(0), code);
    });
    encoder.finish(&mut bytes);
    assert_eq!(single.0.len(), 1000);
    assert_eq!(bytes, encode(&config, &single.0));
}
