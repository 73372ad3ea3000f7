//! The fastest comparison: the model executes many instructions, and then the groups that our
//! own encoder would write for them are compared with the bytes of the trace. Where each
//! group starts is known without having read the one before. What the model has done beyond
//! the first group that is another one, it takes back.

use hartrace_flow::{AccessKind, Change, Model, Placed, Straights};
use hartrace_isa::csr::FFLAGS;

use super::report::Kind;
use super::{Core, Options, PAST, Past};
use crate::config::Config;
use crate::encode::plain::{Group, Plain, ROOM};
use crate::item::Put;
use crate::register::Register;

/// Most groups that are compared before the model is asked for more.
const MOST: usize = 512;

/// Bytes that are worth a look.
const ENOUGH: usize = 1 << 9;

/// Groups that are compared one by one after so many in a row did not agree.
const LEAST: u32 = 8;
const LONGEST: u32 = 1 << 10;

/// Whether the model runs ahead.
#[derive(Clone, Debug)]
pub(super) struct Advance {
    /// How groups are written; `None` if this trace is not compared in this way.
    plain: Option<Plain>,
    /// Groups that are compared one by one before the model runs ahead again.
    pub(super) singly: u32,
    /// How many there were the last time.
    pause: u32,
    /// Where the groups of a run start.
    starts: [u32; MOST],
}

impl Advance {
    pub(super) fn new(config: &Config, options: &Options) -> Advance {
        let whole = config.absent.is_empty()
            && config.eaddr_bytes() >= config.xlen_bytes()
            && options.volatile.bits(Register::csr(FFLAGS)) == 0;
        Advance {
            plain: Plain::new(config).filter(|_| whole),
            singly: 0,
            pause: LEAST,
            starts: [0; MOST],
        }
    }

    /// Whether to look at the model again before the next group.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        self.singly == 0 && self.plain.is_some()
    }
}

/// Compares what is put with the bytes of a trace.
struct Compared<'b> {
    bytes: &'b [u8; ROOM],
    len: usize,
    /// Bits that differ.
    differs: u64,
}

impl Put for Compared<'_> {
    #[inline(always)]
    fn put(&mut self, width: usize, value: u64) {
        let there = self.bytes.get(self.len..self.len + 8);
        match there.and_then(|there| there.first_chunk()) {
            Some(there) => {
                let differs = u64::from_le_bytes(*there) ^ value;
                self.differs |= differs << (64 - 8 * width.clamp(1, 8) as u32);
                self.len += width.min(8);
            }
            None => self.differs = 1,
        }
    }
}

/// What the groups that agree have in common.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    groups: usize,
    bytes: usize,
    integers: u64,
    floats: u64,
    csrs: u64,
    stores: u64,
    unchanged: u32,
}

impl Core {
    /// Lets the model run ahead as long as the groups in `bytes` agree with it, which are
    /// passed over. All before them have been dealt with.
    pub(super) fn advance(&mut self, model: &mut dyn Model, bytes: &mut &[u8]) {
        let Some(plain) = self.advance.plain else {
            return;
        };
        if self.advance.singly > 0 {
            self.advance.singly -= 1;
            return;
        }
        let mut passed = 0;
        while self.may_advance(bytes) {
            let limit = match self.options.until {
                Some(until) => until - self.counters.instructions(),
                None => u64::MAX,
            };
            let mut right = 0;
            let count = model.advance(limit, &mut |code| {
                right = self.confirm(plain, code, bytes);
                right
            });
            passed += right;
            if count == 0 || right < count {
                break;
            }
        }
        let advance = &mut self.advance;
        if passed >= LEAST.into() {
            advance.pause = LEAST;
            advance.singly = 1;
        } else {
            advance.singly = advance.pause;
            advance.pause = (advance.pause * 2).min(LONGEST);
        }
    }

    fn may_advance(&self, bytes: &[u8]) -> bool {
        let ready = self.step.is_none() && self.shadow.pc.is_some() && self.reader.is_idle();
        ready && bytes.len() >= ENOUGH && !self.disputes.open && !self.is_over()
    }

    /// How many of these instructions, from the first on, did what the groups in `bytes`
    /// say. Those are passed over, and the shadow has them, too.
    fn confirm(&mut self, plain: Plain, code: &Straights<'_>, bytes: &mut &[u8]) -> u64 {
        let mut sums = Sums::default();
        let mut changes = code.changes.list.iter();
        'all: for piece in code.list {
            let insns = code.insns(piece);
            let Some((last, others)) = insns.split_last() else {
                break;
            };
            for (insn, change) in others.iter().zip(&mut changes) {
                if !self.confirm_one(plain, (insn, change, None), bytes, &mut sums) {
                    break 'all;
                }
            }
            let end = piece.pc.wrapping_add(last.end.into());
            let to = (piece.next != self.config.xlen.wrap(end)).then_some(piece.next);
            let Some(change) = changes.next() else {
                break;
            };
            if !self.confirm_one(plain, (last, change, to), bytes, &mut sums) {
                break;
            }
        }
        if sums.groups > 0 {
            self.pass_confirmed(code, &sums, bytes);
        }
        sums.groups as u64
    }

    /// Compares the next instruction with its group.
    #[inline(always)]
    fn confirm_one(
        &mut self,
        plain: Plain,
        (insn, change, to): (&Placed, &Change, Option<u64>),
        bytes: &[u8],
        sums: &mut Sums,
    ) -> bool {
        let there = bytes.get(sums.bytes..).and_then(|b| b.first_chunk());
        let start = self.advance.starts.get_mut(sums.groups);
        let (Some(there), Some(start), Some(group)) = (there, start, Group::of(insn, change, to))
        else {
            return false;
        };
        *start = sums.bytes as u32;
        let mut compared = Compared {
            bytes: there,
            len: 0,
            differs: 0,
        };
        if !plain.put(&group, &mut compared) || compared.differs != 0 {
            return false;
        }
        if let Some(access) = &change.access
            && access.kind == AccessKind::Store
        {
            let addr = access.paddr.unwrap_or(access.addr);
            if self.mailbox.minds(addr) {
                return false;
            }
            let value = access.data.unwrap_or(0);
            self.shadow.memory.write(addr, 1 << access.size, value);
            sums.stores += 1;
        }
        if let Some(write) = &change.reg {
            let register = Register::from(write.reg);
            let value = self.shadow.fits(register, write.value);
            sums.unchanged += u32::from(self.shadow.last(register) == value);
            self.shadow.put(register, value);
            let float = u64::from(register.is_float());
            sums.floats += float;
            sums.integers += 1 - float;
        }
        if let Some(flags) = change.fflags {
            // They are not volatile.
            let register = Register::csr(FFLAGS);
            self.shadow.set(register, flags.into(), &mut |_| {});
            sums.csrs += 1;
        }
        sums.bytes += compared.len;
        sums.groups += 1;
        true
    }

    /// Passes over the groups that agree; at least one does.
    fn pass_confirmed(&mut self, code: &Straights<'_>, sums: &Sums, bytes: &mut &[u8]) {
        let (offset, number) = (self.reader.offset(), self.reader.groups());
        let groups = sums.groups as u64;
        let done = self.counters.instructions();
        let forgotten = sums.groups.saturating_sub(PAST);
        self.counters.groups += forgotten as u64;
        let mut index = 0;
        for piece in code.list {
            let behind = index + usize::from(piece.count);
            for at in index.max(forgotten)..behind.min(sums.groups) {
                let insn = code.insn(piece, at - index);
                let start = self.advance.starts.get(at).copied().unwrap_or(0);
                self.remember(Past {
                    insn: done + at as u64,
                    group: number + at as u64,
                    at: offset + u64::from(start),
                    pc: insn.pc,
                    bits: insn.bits,
                });
                self.shadow.pc = Some(self.config.xlen.wrap(insn.next));
            }
            index = behind;
        }
        let counters = &mut self.counters;
        counters.retired += groups;
        counters.compare(Kind::Insn, groups);
        counters.compare(Kind::Pc, groups);
        counters.compare(Kind::Integer, sums.integers);
        counters.compare(Kind::Float, sums.floats);
        counters.compare(Kind::Csr, sums.csrs);
        counters.compare(Kind::Store, sums.stores);
        self.unchanged = self.unchanged.saturating_add(sums.unchanged);
        self.reader.skip_many(groups, sums.bytes, bytes);
    }
}
