//! The groups of straight-line code, many at once.

use core::ops::Range;

use hartrace_flow::{Changes, Effects, Insn, Step, Straight, Straights};

use super::plain::{Group, Line, Plain};
use super::{Encoder, Sink, mode_code};

/// What is left of straight-line code.
struct Rest<'a> {
    pieces: &'a [Straight],
    /// Instructions of the first piece that are done.
    done: usize,
    changes: Changes<'a>,
    /// Instructions that are left.
    count: usize,
}

impl<'a> Rest<'a> {
    /// Some of the instructions.
    fn new(code: &Straights<'a>, part: Range<usize>) -> Rest<'a> {
        let mut rest = Rest {
            pieces: code.list,
            done: 0,
            changes: code.changes,
            count: part.end,
        };
        rest.pass(part.start);
        rest
    }

    /// Passes over some instructions.
    fn pass(&mut self, mut count: usize) {
        self.count = self.count.saturating_sub(count);
        let (passed, list) = self
            .changes
            .list
            .split_at(count.min(self.changes.list.len()));
        let others = passed.iter().filter(|change| change.more).count();
        self.changes = Changes {
            list,
            others: self.changes.others.get(others..).unwrap_or_default(),
        };
        while let Some((piece, behind)) = self.pieces.split_first() {
            let left = usize::from(piece.count) - self.done;
            if count < left {
                self.done += count;
                return;
            }
            count -= left;
            (self.pieces, self.done) = (behind, 0);
        }
    }

    /// The next instruction, with its effects.
    fn next(&mut self, code: &Straights<'_>, effects: &mut Effects) -> Option<Insn> {
        let (piece, behind) = self.pieces.split_first().filter(|_| self.count > 0)?;
        let insn = code.insn(piece, self.done);
        self.changes.next(effects);
        self.count -= 1;
        self.done += 1;
        if self.done >= usize::from(piece.count) {
            (self.pieces, self.done) = (behind, 0);
        }
        Some(insn)
    }
}

impl Encoder {
    /// Instructions that a hart executed, with everything that they changed
    /// ([`Straights::changes`]): those with these numbers. The groups are the same as step
    /// by step.
    #[inline(never)]
    pub fn straights<S: Sink>(&mut self, code: &Straights<'_>, part: Range<usize>, sink: &mut S) {
        let mut rest = Rest::new(code, part);
        let mut effects = None;
        loop {
            if let Some(plain) = self.plain
                && self.plain_pieces(plain, code, &mut rest, sink)
            {
                continue;
            }
            if rest.count == 0 {
                return;
            }
            let effects = effects.get_or_insert(Effects::NONE);
            let Some(insn) = rest.next(code, effects) else {
                return;
            };
            self.step(&Step::Insn(insn), effects, sink);
        }
    }

    /// Writes groups as long as they are plain and there is room. Gives whether room is
    /// what was missing.
    #[inline(always)]
    fn plain_pieces<S: Sink>(
        &mut self,
        plain: Plain,
        code: &Straights<'_>,
        rest: &mut Rest<'_>,
        sink: &mut S,
    ) -> bool {
        let at_rest = self.waiting.is_none() && self.outside.is_none();
        let (true, Some(mut pc)) = (at_rest && self.mode == Some(mode_code(code.mode)), self.pc)
        else {
            return false;
        };
        let bytes = self.out.all();
        let (mut len, mut groups, mut full) = (0, 0, false);
        while let Some((piece, behind)) = rest.pieces.split_first() {
            let insns = code.insns(piece).get(rest.done..).unwrap_or_default();
            let Some((first, last)) = insns.first().zip(insns.last()) else {
                break;
            };
            if pc != piece.pc.wrapping_add(first.offset.into()) {
                break;
            }
            let end = piece.pc.wrapping_add(last.end.into());
            let jump = (piece.next != self.config.xlen.wrap(end)).then_some(piece.next);
            let changes = rest.changes.list;
            let most = insns.len().min(rest.count);
            let mut written = 0;
            for (insn, change) in insns.iter().zip(changes).take(most) {
                let Some(room) = bytes.get_mut(len..).and_then(|b| b.first_chunk_mut()) else {
                    full = true;
                    break;
                };
                let mut line = Line {
                    bytes: room,
                    len: 0,
                };
                let to = jump.filter(|_| written + 1 == insns.len());
                let group = Group::of(insn, change, to);
                if !group.is_some_and(|group| plain.put(&group, &mut line)) {
                    break;
                }
                len += line.len;
                written += 1;
            }
            self.operands
                .follow(changes.iter().take(written).filter_map(|c| c.reg.as_ref()));
            groups += written;
            rest.count -= written;
            rest.changes.list = changes.get(written..).unwrap_or_default();
            if let Some(insn) = insns.get(written) {
                pc = piece.pc.wrapping_add(insn.offset.into());
                rest.done += written;
                break;
            }
            pc = piece.next;
            (rest.pieces, rest.done) = (behind, 0);
        }
        if groups > 0 {
            self.pc = Some(pc);
            self.counters.groups += groups as u64;
            self.counters.bytes += len as u64;
            self.counters.instructions += groups as u64;
            sink.groups(bytes.get(..len).unwrap_or_default(), groups as u64);
        }
        full
    }
}
