//! Straight-line code, many instructions at once: what a source that runs decoded
//! code reports instead of single steps.

use hartrace_isa::{Flow, Itype, length};

use crate::{Access, Changes, Context, Effects, Insn, Mode};

/// Pieces of straight-line code that a hart executed one after the other, all in
/// one mode and context.
#[derive(Clone, Copy, Debug)]
pub struct Straights<'a> {
    /// Decoded code.
    pub code: &'a [Placed],
    /// The pieces, oldest first.
    pub list: &'a [Straight],
    /// How many instructions they have together.
    pub count: u64,
    /// Their data accesses in order, as many as [`Placed::accesses`] says, for an
    /// observer that wants them ([`Wants::DATA`](crate::Wants::DATA)); otherwise none.
    pub accesses: &'a [Access],
    /// Everything that they changed, for an observer that wants it
    /// ([`Wants::CHANGES`](crate::Wants::CHANGES)); otherwise nothing. The accesses are then
    /// part of it.
    pub changes: Changes<'a>,
    /// Software context they ran in.
    pub context: Context,
    /// Privilege mode they ran in.
    pub mode: Mode,
    /// Whether there is anything new about them; `None` if the source does not say.
    pub news: Option<News>,
}

/// What a source says of pieces, compared with those that it reported before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// How many times it has reported pieces of this hart, this one included, since it
    /// began to say what is new: an observer that missed some notices.
    pub number: u64,
    /// If not, each of the pieces belongs to decoded code of which a piece at the same
    /// address was reported before, while there was news.
    pub any: bool,
}

/// Instructions that retired one after the other, each at the address after the
/// one before: conditional branches among them were not taken, but perhaps for the
/// last instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Straight {
    /// Address of the first instruction.
    pub pc: u64,
    /// Where the hart went after the last one; when a trap follows, the trap's
    /// `epc`.
    pub next: u64,
    /// Time before the first one, in the source's own unit.
    pub time: u64,
    /// Index of the last one in [`Straights::code`]. The offset of the first one there
    /// is 0.
    pub last: u32,
    /// Number of instructions, 1 to 127.
    pub count: u8,
    /// 1 if the last one is a conditional branch and `next` is not the instruction after
    /// it in memory, otherwise 0.
    pub taken: u8,
    /// Time that the last one took beyond its [`Placed::cost`].
    pub extra: u16,
}

/// An instruction in a piece of straight-line code, with what is known from the
/// code alone. Offsets and counts are from the start of that piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The instruction, as [`Insn::bits`].
    pub bits: u32,
    /// Its offset in bytes.
    pub offset: u16,
    /// Offset of the instruction after it.
    pub end: u16,
    /// Time from the start until it has retired.
    pub cost: u16,
    /// Offset of the end of the last conditional branch up to and including this
    /// instruction; 0 without one.
    pub branch_end: u16,
    /// Offset of that branch.
    pub branch: u16,
    /// Halfwords and conditional branches up to and including this instruction.
    pub amount: Amount,
    /// Instructions since that branch, at most 255.
    pub since_branch: u8,
    /// Whether the first instruction of that piece is a conditional branch.
    pub from_branch: bool,
    /// Its length in bytes.
    pub len: u8,
    /// Data accesses up to and including those of this instruction.
    pub accesses: u8,
    /// What it does to the flow of control.
    pub role: Role,
    /// What the instruction before it does, [`Role::Constant`] for the first one: a
    /// jump may go by a constant that another piece ended with.
    pub before: Role,
}

/// How many halfwords and conditional branches some instructions have, in one word: both
/// are added at once, and both sums are compared with their limits at once
/// ([`Tally`](crate::Tally)).
///
/// The branches are in bits 31 to 24, below them the halfwords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount(u32);

impl Amount {
    /// The top bit of each number: set when a sum has reached its limit.
    const FULL: u32 = 1 << 31 | 1 << 23;

    /// So many halfwords, and so many branches: at most 127.
    #[must_use]
    #[inline]
    pub const fn new(halfwords: u16, branches: u8) -> Amount {
        Amount((branches as u32) << 24 | halfwords as u32)
    }

    /// What is full as soon as so many halfwords, or so many branches, at most 127, are
    /// added; at once if one of them is 0. It may be full earlier where there is no room
    /// for the number of halfwords.
    #[must_use]
    #[inline(always)]
    pub const fn below(halfwords: u64, branches: u8) -> Amount {
        const HALFWORDS: u32 = 1 << 23;
        let halfwords = match halfwords < HALFWORDS as u64 {
            true => HALFWORDS - halfwords as u32,
            false => 0,
        };
        let branches = 128u8.wrapping_sub(branches) as u32;
        Amount(branches << 24 | halfwords)
    }

    /// Both together, where neither is full.
    #[must_use]
    #[inline(always)]
    pub const fn plus(self, other: Amount) -> Amount {
        Amount(self.0.wrapping_add(other.0))
    }

    /// What was added to `before`.
    #[must_use]
    #[inline(always)]
    pub const fn since(self, before: Amount) -> Amount {
        Amount(self.0.wrapping_sub(before.0))
    }

    /// Whether as much was added as [`Amount::below`] says.
    #[must_use]
    #[inline(always)]
    pub const fn is_full(self) -> bool {
        self.0 & Amount::FULL != 0
    }

    /// The halfwords.
    #[must_use]
    #[inline(always)]
    pub const fn halfwords(self) -> u64 {
        (self.0 & 0xff_ffff) as u64
    }

    /// The branches.
    #[must_use]
    #[inline(always)]
    pub const fn branches(self) -> u8 {
        (self.0 >> 24) as u8
    }
}

/// What an instruction of straight-line code does to the flow of control, from the
/// least to the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Nothing.
    #[default]
    Plain,
    /// Nothing; but a jump right after it may go by the constant that it loads.
    Constant,
    /// A conditional branch.
    Branch,
    /// A jump to where the code says: always the last instruction.
    Direct,
    /// Any other jump: always the last instruction.
    Indirect,
}

impl Role {
    /// Of an instruction that retired.
    #[must_use]
    pub fn of(flow: Flow) -> Role {
        match flow {
            Flow::Branch { .. } => Role::Branch,
            Flow::Jump { .. } => Role::Direct,
            Flow::Const { .. } => Role::Constant,
            _ if flow.is_sequential() => Role::Plain,
            _ => Role::Indirect,
        }
    }
}

impl Placed {
    /// An instruction with its flow, after `before`; the first one after the
    /// default.
    #[must_use]
    pub fn after(before: &Placed, bits: u32, flow: Flow, cost: u16) -> Placed {
        let (role, len) = (Role::of(flow), length(bits as u16));
        let offset = before.end;
        let end = offset + u16::from(len);
        let branch = role == Role::Branch;
        Placed {
            bits,
            offset,
            end,
            cost,
            branch_end: match branch {
                true => end,
                false => before.branch_end,
            },
            branch: if branch { offset } else { before.branch },
            amount: Amount::new(end / 2, before.branches() + u8::from(branch)),
            since_branch: match branch {
                true => 0,
                false => before.since_branch.saturating_add(1),
            },
            from_branch: match offset {
                0 => branch,
                _ => before.from_branch,
            },
            len,
            accesses: before.accesses,
            role,
            before: match offset {
                0 => Role::Constant,
                _ => before.role,
            },
        }
    }

    /// The same with so many data accesses of its own.
    #[must_use]
    pub const fn with_accesses(self, own: u8) -> Placed {
        Placed {
            accesses: self.accesses.saturating_add(own),
            ..self
        }
    }

    /// Halfwords up to and including this instruction.
    #[must_use]
    #[inline(always)]
    pub const fn halfwords(&self) -> u64 {
        (self.end / 2) as u64
    }

    /// Conditional branches up to and including this instruction.
    #[must_use]
    #[inline(always)]
    pub const fn branches(&self) -> u8 {
        self.amount.branches()
    }

    /// `itype` if the instruction after it in memory follows.
    #[must_use]
    #[inline]
    pub fn not_taken(&self) -> Itype {
        match self.role {
            Role::Branch => Itype::NotTaken,
            Role::Plain | Role::Constant | Role::Direct | Role::Indirect => Itype::None,
        }
    }

    /// Whether it is a conditional branch.
    #[must_use]
    #[inline]
    pub fn is_branch(&self) -> bool {
        self.role == Role::Branch
    }
}

impl Straight {
    /// Index of the first instruction in [`Straights::code`].
    #[must_use]
    #[inline(always)]
    pub const fn first(&self) -> usize {
        (self.last as usize + 1).wrapping_sub(self.count as usize)
    }

    /// The same, where the code is elsewhere: the index of the first instruction there.
    #[must_use]
    #[inline]
    pub const fn moved_to(self, first: usize) -> Straight {
        let last = (first + self.count as usize).wrapping_sub(1) as u32;
        Straight { last, ..self }
    }

    /// How many instructions these pieces have together.
    #[must_use]
    pub fn count_all(pieces: &[Straight]) -> u64 {
        pieces.iter().map(|piece| u64::from(piece.count)).sum()
    }

    /// Time when the instruction with this index, which is `insn`, retired.
    #[must_use]
    #[inline]
    pub fn time_of(&self, index: usize, insn: &Placed) -> u64 {
        let time = self.time.wrapping_add(insn.cost.into());
        match index + 1 == usize::from(self.count) {
            true => time.wrapping_add(self.extra.into()),
            false => time,
        }
    }
}

impl<'a> Straights<'a> {
    /// The instructions of a piece.
    #[must_use]
    #[inline]
    pub fn insns(&self, piece: &Straight) -> &'a [Placed] {
        let insns = self.code.get(piece.first()..piece.last as usize + 1);
        insns.unwrap_or_default()
    }

    /// One instruction of a piece, by index.
    #[must_use]
    #[inline]
    pub fn insn(&self, piece: &Straight, index: usize) -> Insn {
        let insn = self.code.get(piece.first() + index);
        let insn = insn.copied().unwrap_or_default();
        let pc = piece.pc.wrapping_add(insn.offset.into());
        Insn {
            pc,
            next: match index + 1 == usize::from(piece.count) {
                true => piece.next,
                false => pc.wrapping_add(insn.len.into()),
            },
            time: piece.time_of(index, &insn),
            context: self.context,
            bits: insn.bits,
            mode: self.mode,
        }
    }

    /// Whether everything is there that the instructions changed.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changes.list.is_empty()
    }

    /// All instructions one by one, each with its effects, as far as they are known.
    pub(crate) fn each(&self, mut take: impl FnMut(&Insn, &Effects)) {
        if self.has_changes() {
            return self.each_changed(take);
        }
        let mut accesses = self.accesses.iter();
        let mut effects = Effects::NONE;
        for piece in self.list {
            let mut before = 0;
            for (index, placed) in self.insns(piece).iter().enumerate() {
                let own = placed.accesses.saturating_sub(before);
                before = placed.accesses;
                effects.accesses.clear();
                for access in accesses.by_ref().take(own.into()) {
                    // No instruction makes more than there is room for.
                    let _ = effects.accesses.push(*access);
                }
                take(&self.insn(piece, index), &effects);
            }
        }
    }

    fn each_changed(&self, mut take: impl FnMut(&Insn, &Effects)) {
        let mut changes = self.changes;
        let mut effects = Effects::NONE;
        for piece in self.list {
            for index in 0..usize::from(piece.count) {
                changes.next(&mut effects);
                take(&self.insn(piece, index), &effects);
            }
        }
    }

    /// All instructions one by one.
    pub fn iter(&self) -> impl Iterator<Item = Insn> + use<'a> {
        let all = *self;
        let list = self.list.iter();
        list.flat_map(move |piece| {
            (0..usize::from(piece.count)).map(move |index| all.insn(piece, index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_full_at_either_limit() {
        let full = |halfwords, branches| {
            let sum = Amount::below(1000, 31).plus(Amount::new(halfwords, branches));
            (sum.is_full(), sum.since(Amount::below(1000, 31)))
        };
        assert_eq!(full(999, 30), (false, Amount::new(999, 30)));
        assert!(full(1000, 0).0 && full(0, 31).0 && full(0xffff, 127).0);
        assert!(Amount::below(0, 31).is_full() && Amount::below(1000, 0).is_full());
        let large = Amount::below(u64::MAX, 127);
        assert!(!large.plus(Amount::new(0xffff, 126)).is_full());
        assert!(large.plus(Amount::new(0, 127)).is_full());
    }
}
