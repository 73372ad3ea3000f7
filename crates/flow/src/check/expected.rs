//! The events that the steps of one hart imply.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use hartrace_isa::{Flow, Link};

use super::accesses::Accesses;
use super::{Checked, Inference, Unreported, What};
use crate::{Cause, DataAccess, Exit, Gap, Insn, Placed, Run, Straight, Trap};

/// Expected and actual, when they differ.
pub(super) type Mismatch = Box<(Option<What>, What)>;

/// Steps of one hart that no event has covered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    items: VecDeque<Item>,
    /// Lengths of the instructions in all the items; of a span that repeats,
    /// once.
    lengths: VecDeque<u8>,
    /// Their data accesses, if those are compared.
    pub(super) accesses: Accesses,
    /// Instructions found equal.
    pub(super) equal: u64,
    /// Where the last instruction went, expected and actual, if the trace did
    /// not report: right where it stops, or before a trap whose `epc` it does
    /// not report.
    pub(super) open: Option<Mismatch>,
    /// Losses among the items.
    losses: usize,
    /// A gap came for a loss, and nothing since: it may stand for the losses
    /// after it too.
    in_gap: bool,
    /// The last instruction and its address, if it loaded a constant that a
    /// jump may use.
    constant: Option<(Flow, u64)>,
}

/// Instructions contiguous in memory, a trap, or a place where steps are
/// missing.
#[derive(Clone, Copy, Debug)]
enum Item {
    Span(Span),
    Trap(Trap),
    Loss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    /// Where the last of them went.
    next: u64,
    /// The last one that a trace has to report, if iterations are unreported.
    told: Option<u64>,
    /// Consecutive repetitions, if iterations are unreported: an endless loop must not
    /// fill the memory.
    times: u64,
}

impl Span {
    const fn len(&self) -> u64 {
        self.end.wrapping_sub(self.start)
    }

    const fn contains(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.start) < self.len()
    }

    /// Whether a decoder finds the path through it without any report.
    /// What was before a start that has moved does not count.
    fn is_silent(&self) -> bool {
        !self.told.is_some_and(|told| self.contains(told))
    }
}

impl Item {
    const fn what(&self) -> Option<What> {
        match self {
            Item::Span(span) => Some(What::Insn(span.start)),
            Item::Trap(trap) => Some(What::Trap(*trap)),
            Item::Loss => None,
        }
    }
}

impl Expected {
    #[inline]
    pub(super) fn push_insn(&mut self, insn: &Insn) {
        self.lengths.push_back(insn.len());
        match self.items.back_mut() {
            Some(Item::Span(span)) if span.end == insn.pc && span.next == insn.pc => {
                span.end = insn.end();
                span.next = insn.next;
            }
            _ => self.items.push_back(Item::Span(Span {
                start: insn.pc,
                end: insn.end(),
                next: insn.next,
                told: None,
                times: 1,
            })),
        }
    }

    /// As [`Expected::push_insn`] for each instruction of a piece.
    pub(super) fn push_piece(&mut self, piece: &Straight, insns: &[Placed]) {
        let Some(last) = insns.last() else {
            return;
        };
        self.lengths.extend(insns.iter().map(|insn| insn.len));
        let end = piece.pc.wrapping_add(last.end.into());
        match self.items.back_mut() {
            Some(Item::Span(span)) if span.end == piece.pc && span.next == piece.pc => {
                (span.end, span.next) = (end, piece.next);
            }
            _ => self.items.push_back(Item::Span(Span {
                start: piece.pc,
                end,
                next: piece.next,
                told: None,
                times: 1,
            })),
        }
    }

    /// As [`Expected::push_insn`], if iterations are unreported.
    pub(super) fn push_inferred(&mut self, insn: &Insn, inference: &Inference) {
        if !matches!(self.items.back(), Some(Item::Span(span)) if span.end == insn.pc) {
            self.fold();
        }
        let told = self.is_told(insn, inference);
        self.push_insn(insn);
        if let (true, Some(Item::Span(span))) = (told, self.items.back_mut()) {
            span.told = Some(insn.pc);
        }
    }

    pub(super) fn push_trap(&mut self, trap: Trap) {
        self.items.push_back(Item::Trap(trap));
    }

    /// Steps are missing here: a trace may have a gap, and an encoder may lose
    /// what it had not sent.
    pub(super) fn push_loss(&mut self) {
        if !matches!(self.items.back(), Some(Item::Loss)) {
            self.items.push_back(Item::Loss);
            self.losses += 1;
        }
        self.constant = None;
    }

    pub(super) const fn has_loss(&self) -> bool {
        self.losses > 0
    }

    /// What comes next.
    pub(super) fn front(&self) -> Option<What> {
        self.items.iter().find_map(Item::what)
    }

    /// A gap: it is for the first loss, and what comes before that is lost.
    pub(super) fn gap(&mut self, gap: &Gap) -> Result<Checked, Mismatch> {
        let Some(lost) = self.pass_loss() else {
            // Two for one loss add nothing.
            return match self.in_gap {
                true => Ok(Checked::default()),
                false => Err(Box::new((self.front(), What::Gap(*gap)))),
            };
        };
        self.in_gap = true;
        self.accesses.pass(lost);
        Ok(Checked {
            lost,
            ..Checked::default()
        })
    }

    /// A data access.
    pub(super) fn access(&mut self, actual: &DataAccess) -> Result<Checked, Mismatch> {
        match self.accesses.take(actual) {
            Ok(()) => Ok(Checked {
                accesses: 1,
                ..Checked::default()
            }),
            Err(expected) => Err(Box::new((
                expected.map(What::Access),
                What::Access(*actual),
            ))),
        }
    }

    /// Leaves out everything to the next loss, if there is one, and counts the
    /// instructions.
    fn pass_loss(&mut self) -> Option<u64> {
        if self.losses == 0 {
            return None;
        }
        let before = self.lengths.len();
        while let Some(item) = self.items.pop_front() {
            match item {
                Item::Span(span) => {
                    self.drop_lengths(span.len());
                }
                Item::Trap(_) => {}
                Item::Loss => {
                    self.losses -= 1;
                    break;
                }
            }
        }
        Some((before - self.lengths.len()) as u64)
    }

    /// A loss in front that the trace went over without a gap, because nothing
    /// was waiting to be sent; or one that the last gap stands for too.
    fn skip_loss(&mut self, lost: &mut u64) -> bool {
        if matches!(self.items.front(), Some(Item::Loss)) || self.in_gap {
            match self.pass_loss() {
                Some(insns) => *lost += insns,
                None => return false,
            }
            return true;
        }
        false
    }

    /// Things kept.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.items.len() + self.lengths.len()
    }

    /// What is left that a decoder had to give.
    pub(super) fn rest(&self, unreported: &Unreported) -> Option<What> {
        let first = self.front()?;
        let traps = |item: &Item| !matches!(item, Item::Span(_));
        if unreported.last_traps && self.items.iter().all(traps) {
            return None;
        }
        if unreported.rounds.is_none() {
            return Some(first);
        }
        let mut left = self.clone();
        while left.skip_round(unreported) {}
        left.front()
    }

    /// Whether a trace reports where this instruction goes.
    fn is_told(&mut self, insn: &Insn, inference: &Inference) -> bool {
        let rules = &inference.rules;
        let constant = self.constant.take();
        let flow = Flow::of_retired(insn.bits, inference.isa);
        let inferred = match flow {
            Flow::Seq => true,
            Flow::Const { .. } => {
                self.constant = Some((flow, insn.pc));
                true
            }
            Flow::Jump { .. } | Flow::Table { .. } => !rules.all_jumps,
            Flow::Indirect { rs1, .. } if rs1.number() == 0 => rules.absolute_jumps,
            Flow::Indirect { .. } | Flow::PopReturn => {
                let target = constant.filter(|_| rules.infers(flow.link()));
                let target = target.and_then(|(before, pc)| {
                    flow.sequential_target(before, pc, inference.isa.xlen())
                });
                let implied = inference.returns && flow.link() == Some(Link::Return);
                implied || target == Some(insn.next)
            }
            Flow::Branch { .. } | Flow::TrapReturn | Flow::Trap => false,
        };
        !inferred
    }

    /// Another time round the same small loop takes no more room.
    fn fold(&mut self) {
        let last = self.items.len().wrapping_sub(1);
        let before = last.wrapping_sub(1);
        let (Some(Item::Span(again)), Some(Item::Span(span))) =
            (self.items.get(last), self.items.get(before))
        else {
            return;
        };
        let once = Span { times: 1, ..*span };
        if again.next != again.start || *again != once || !again.is_silent() {
            return;
        }
        let mut bytes = again.len();
        self.items.pop_back();
        if let Some(Item::Span(span)) = self.items.back_mut() {
            span.times += 1;
        }
        while bytes > 0
            && let Some(len) = self.lengths.pop_back()
        {
            bytes = bytes.saturating_sub(len.into());
        }
    }

    /// The first time round of the span in front becomes a span of its own.
    fn unfold(&mut self) {
        let Some(Item::Span(span)) = self.items.front_mut() else {
            return;
        };
        span.times -= 1;
        let once = Span { times: 1, ..*span };
        let mut bytes = once.len();
        self.items.push_front(Item::Span(once));
        let mut insns = 0;
        for &len in &self.lengths {
            if bytes == 0 {
                break;
            }
            bytes = bytes.saturating_sub(len.into());
            insns += 1;
        }
        // From the last to the first: each is where the one after it
        // stood.
        for _ in 0..insns {
            if let Some(&len) = self.lengths.get(insns - 1) {
                self.lengths.push_front(len);
            }
        }
    }

    /// Leaves out whole iterations of a loop that are not reported, from where
    /// the decoder is back to the same place. It must be called only when what
    /// is expected is not what was decoded.
    fn skip_round(&mut self, unreported: &Unreported) -> bool {
        if unreported.rounds.is_none() {
            return false;
        }
        let Some((home, whole, cut)) = self.round() else {
            return false;
        };
        for _ in 0..whole {
            if let Some(Item::Span(span)) = self.items.pop_front() {
                let insns = self.drop_lengths(span.len());
                self.accesses.skip(insns * span.times);
            }
        }
        if cut {
            if matches!(self.items.front(), Some(Item::Span(span)) if span.times > 1) {
                self.unfold();
            }
            if let Some(Item::Span(span)) = self.items.front_mut() {
                let bytes = home.wrapping_sub(span.start);
                span.start = home;
                let insns = self.drop_lengths(bytes);
                self.accesses.skip(insns);
            }
        }
        true
    }

    /// The first address, the spans that are gone through whole until it is
    /// reached again, and whether it is inside the one after them.
    fn round(&self) -> Option<(u64, usize, bool)> {
        let Some(Item::Span(Span { start: home, .. })) = self.items.front() else {
            return None;
        };
        let (home, mut at) = (*home, *home);
        for (whole, item) in self.items.iter().enumerate() {
            let Item::Span(span) = item else {
                return None;
            };
            if span.start != at || !span.is_silent() {
                return None;
            }
            if whole > 0 && span.contains(home) {
                return Some((home, whole, true));
            }
            if span.next == home {
                return Some((home, whole + 1, false));
            }
            at = span.next;
        }
        None
    }

    /// Drops the lengths of so many bytes; of how many instructions.
    fn drop_lengths(&mut self, mut bytes: u64) -> u64 {
        let mut insns = 0;
        while bytes > 0
            && let Some(len) = self.lengths.pop_front()
        {
            bytes = bytes.saturating_sub(len.into());
            insns += 1;
        }
        insns
    }

    /// Takes a run off the front: its addresses first, then the lengths of its
    /// instructions.
    pub(super) fn run(&mut self, run: &Run, unreported: &Unreported) -> Result<Checked, Mismatch> {
        let mut at = run.start;
        let mut went = run.start;
        let mut lost = 0;
        while at != run.end {
            match self.items.front_mut() {
                Some(Item::Span(span)) if span.start == at => {
                    if span.times > 1 {
                        self.unfold();
                    } else if span.len() > run.end.wrapping_sub(at) {
                        span.start = run.end;
                        (at, went) = (run.end, run.end);
                    } else {
                        (at, went) = (span.end, span.next);
                        self.items.pop_front();
                    }
                }
                _ => {
                    let skipped = at == run.start
                        && (self.skip_round(unreported) || self.skip_loss(&mut lost));
                    if !skipped {
                        return Err(Box::new((self.front(), What::Insn(at))));
                    }
                }
            }
        }
        if went != run.next {
            let from = run.source();
            let of = |to| What::Jump { from, to };
            let mismatch = Box::new((Some(of(went)), of(run.next)));
            // A trace that ends after an indirect jump cannot report where it
            // went, nor one with a trap there.
            if run.exit != Exit::Stop {
                return Err(mismatch);
            }
            self.open = Some(mismatch);
        }
        self.in_gap = false;
        let checked = self.take_lengths(run)?;
        self.accesses.pass(lost);
        self.accesses.run(run.insns);
        Ok(Checked { lost, ..checked })
    }

    fn take_lengths(&mut self, run: &Run) -> Result<Checked, Mismatch> {
        let insns = u64::from(run.insns);
        let bytes = run.end.wrapping_sub(run.start);
        let (mut found, mut last) = (0, 0);
        let there = (run.insns as usize).min(self.lengths.len());
        for len in self.lengths.drain(..there) {
            found += u64::from(len);
            last = len;
        }
        let of = |insns, bytes| What::Run {
            start: run.start,
            insns,
            bytes,
        };
        if found != bytes || last != run.last || there as u64 != insns {
            return Err(Box::new((Some(of(there as u64, found)), of(insns, bytes))));
        }
        Ok(Checked {
            insns,
            ..Checked::default()
        })
    }

    pub(super) fn trap(
        &mut self,
        actual: &Trap,
        unreported: &Unreported,
    ) -> Result<Checked, Mismatch> {
        // Where the first of the traps was taken that are left out; to a
        // decoder the reported one was taken there.
        let mut first = None;
        let mut lost = 0;
        loop {
            match self.items.front() {
                Some(Item::Trap(expected)) => {
                    let chained = Trap {
                        epc: first.filter(|_| first == actual.epc).or(expected.epc),
                        ..*expected
                    };
                    let epc = expected.epc;
                    if agrees(&chained, actual, unreported) {
                        self.items.pop_front();
                        self.in_gap = false;
                        return Ok(Checked {
                            traps: 1,
                            lost,
                            ..Checked::default()
                        });
                    }
                    if self.in_gap && self.skip_loss(&mut lost) {
                        continue;
                    }
                    if !unreported.traps || !matches!(self.items.get(1), Some(Item::Trap(_))) {
                        break;
                    }
                    self.items.pop_front();
                    first = first.or(epc);
                }
                _ => {
                    if !self.skip_round(unreported) && !self.skip_loss(&mut lost) {
                        break;
                    }
                }
            }
        }
        Err(Box::new((self.front(), What::Trap(*actual))))
    }
}

/// Equal as far as both sides know.
fn agrees(a: &Trap, b: &Trap, unreported: &Unreported) -> bool {
    let code = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
    let cause = match (a.cause, b.cause) {
        (Cause::Unknown, _) | (_, Cause::Unknown) => true,
        (Cause::Exception(a), Cause::Exception(b)) => code(a, b),
        (Cause::Interrupt(a), Cause::Interrupt(b)) => code(a, b),
        _ => false,
    };
    let same = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
    let shown = |tval: Option<u64>| tval.map(|tval| tval & !unreported.tval);
    let tval = same(shown(a.tval), shown(b.tval));
    same(a.epc, b.epc) && same(a.handler, b.handler) && cause && tval
}
