//! The groups of straight-line code, many at once.

use hartrace_flow::{Change, CsrWrite, Effects, Placed, Step, Straight, Straights};
use hartrace_isa::csr::FFLAGS;

use super::plain::{Group, Line, Plain};
use super::{Encoder, Sink, is_trap_return, mode_code};

/// What is left of straight-line code.
struct Rest<'a> {
    pieces: &'a [Straight],
    /// Instructions of the first piece that are done.
    done: usize,
    changes: &'a [Change],
}

impl Encoder {
    /// Instructions that a hart executed, with everything that they changed
    /// ([`Straights::changes`]): the same groups as step by step.
    #[inline(never)]
    pub fn straights<S: Sink>(&mut self, code: &Straights<'_>, sink: &mut S) {
        let mut rest = Rest {
            pieces: code.list,
            done: 0,
            changes: code.changes.list,
        };
        let mut changes = code.changes;
        let mut effects = None;
        loop {
            let mut full = false;
            if let Some(plain) = self.plain {
                full = self.plain_pieces(plain, code, &mut rest, sink);
            }
            let Some((piece, behind)) = rest.pieces.split_first() else {
                return;
            };
            if full {
                continue;
            }
            let effects = effects.get_or_insert(Effects::NONE);
            changes.list = rest.changes;
            changes.next(effects);
            rest.changes = changes.list;
            self.step(&Step::Insn(code.insn(piece, rest.done)), effects, sink);
            rest.done += 1;
            if rest.done >= usize::from(piece.count) {
                (rest.pieces, rest.done) = (behind, 0);
            }
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
        self.out.clear();
        let bytes = self.out.all();
        let (mut len, mut groups, mut full) = (0, 0, false);
        while let Some((piece, behind)) = rest.pieces.split_first() {
            let insns = code.insns(piece).get(rest.done..).unwrap_or_default();
            let (Some((first, last)), Some((changes, later))) = (
                insns.first().zip(insns.last()),
                rest.changes.split_at_checked(insns.len()),
            ) else {
                break;
            };
            if pc != piece.pc.wrapping_add(first.offset.into()) {
                break;
            }
            let end = piece.pc.wrapping_add(last.end.into());
            let jump = (piece.next != self.config.xlen.wrap(end)).then_some(piece.next);
            let mut written = 0;
            for (insn, change) in insns.iter().zip(changes) {
                let Some(room) = bytes.get_mut(len..).and_then(|b| b.first_chunk_mut()) else {
                    full = true;
                    break;
                };
                let mut line = Line {
                    bytes: room,
                    len: 0,
                };
                let to = jump.filter(|_| written + 1 == insns.len());
                let group = group(insn, change, to);
                if !group.is_some_and(|group| line.group(plain, &group)) {
                    break;
                }
                len += line.len;
                written += 1;
            }
            self.operands
                .follow(changes.iter().take(written).filter_map(|c| c.reg.as_ref()));
            groups += written as u64;
            if let Some(insn) = insns.get(written) {
                pc = piece.pc.wrapping_add(insn.offset.into());
                rest.done += written;
                rest.changes = rest.changes.get(written..).unwrap_or_default();
                break;
            }
            pc = piece.next;
            (rest.pieces, rest.done, rest.changes) = (behind, 0, later);
        }
        if groups > 0 {
            self.pc = Some(pc);
            self.counters.groups += groups;
            self.counters.bytes += len as u64;
            self.counters.instructions += groups;
            sink.groups(bytes.get(..len).unwrap_or_default(), groups);
        }
        full
    }
}

/// The group of an instruction that led `to` somewhere, if it may be plain.
#[inline(always)]
fn group<'a>(insn: &Placed, change: &'a Change, to: Option<u64>) -> Option<Group<'a>> {
    if change.more || insn.len > 4 || to.is_some() && is_trap_return(insn.bits) {
        return None;
    }
    Some(Group {
        bits: insn.bits,
        to,
        reg: change.reg.as_ref(),
        csr: change.fflags.map(|value| CsrWrite {
            csr: FFLAGS,
            value: value.into(),
        }),
        access: change.access.as_ref(),
    })
}
