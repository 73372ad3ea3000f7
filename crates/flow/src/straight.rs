//! Straight-line code as one step: what a source that runs decoded code reports
//! instead of single instructions.

use hartrace_isa::{Flow, Itype, length};

use crate::{Context, Insn, Mode};

/// Instructions that retired one after the other, each at the address after the
/// one before: conditional branches among them were not taken. Where the last one
/// went is [`next`](Straight::next).
#[derive(Clone, Copy, Debug)]
pub struct Straight<'a> {
    /// Address of the first instruction.
    pub pc: u64,
    /// Where the hart went after the last one; when a trap follows, the trap's
    /// `epc`.
    pub next: u64,
    /// The instructions; never empty.
    pub insns: &'a [Placed],
    /// Time at offset 0 of the code that `insns` are a part of, in the source's
    /// own unit.
    pub time: u64,
    /// Time when the last instruction retired.
    pub last_time: u64,
    /// Software context they ran in.
    pub context: Context,
    /// Privilege mode they ran in.
    pub mode: Mode,
}

/// An instruction in a piece of straight-line code, with what is known from the
/// code alone. Offsets and counts are from the start of that piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The instruction, as [`Insn::bits`].
    pub bits: u32,
    /// Its offset in bytes.
    pub offset: u16,
    /// Time from the start until it has retired.
    pub cost: u16,
    /// Offset of the end of the last conditional branch up to and including this
    /// instruction; 0 without one.
    pub branch_end: u16,
    /// Conditional branches up to and including this instruction.
    pub branches: u8,
    /// Its length in bytes.
    pub len: u8,
    /// What it does to the flow of control.
    pub role: Role,
}

/// What an instruction of straight-line code does to the flow of control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    #[default]
    Plain,
    /// A conditional branch.
    Branch,
    /// A jump, direct or indirect: always the last instruction.
    Jump,
}

impl Role {
    /// Of an instruction that retired.
    #[must_use]
    pub fn of(flow: Flow) -> Role {
        match flow {
            Flow::Branch { .. } => Role::Branch,
            _ if flow.is_sequential() => Role::Plain,
            _ => Role::Jump,
        }
    }
}

impl Placed {
    /// An instruction with its flow, after `before`; the first one after the
    /// default.
    #[must_use]
    pub fn after(before: &Placed, bits: u32, flow: Flow, cost: u16) -> Placed {
        let (role, len) = (Role::of(flow), length(bits as u16));
        let offset = before.end();
        let branch = role == Role::Branch;
        Placed {
            bits,
            offset,
            cost,
            branch_end: match branch {
                true => offset + u16::from(len),
                false => before.branch_end,
            },
            branches: before.branches + u8::from(branch),
            len,
            role,
        }
    }

    /// Offset of the instruction after it.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u16 {
        self.offset + self.len as u16
    }

    /// `itype` if the instruction after it in memory follows.
    #[must_use]
    #[inline]
    pub fn not_taken(&self) -> Itype {
        match self.role {
            Role::Branch => Itype::NotTaken,
            Role::Plain | Role::Jump => Itype::None,
        }
    }

    /// Whether it is a conditional branch.
    #[must_use]
    #[inline]
    pub fn is_branch(&self) -> bool {
        self.role == Role::Branch
    }
}

impl<'a> Straight<'a> {
    /// The last instruction.
    #[must_use]
    #[inline]
    pub fn last(&self) -> Placed {
        self.insns.last().copied().unwrap_or_default()
    }

    /// The number of instructions.
    #[must_use]
    #[inline]
    pub const fn count(&self) -> u64 {
        self.insns.len() as u64
    }

    /// Address of offset 0.
    #[must_use]
    #[inline]
    pub fn base(&self) -> u64 {
        let first = self.insns.first().map_or(0, |insn| insn.offset);
        self.pc.wrapping_sub(first.into())
    }

    /// The address after the last instruction; as [`Insn::end`], not wrapped.
    #[must_use]
    #[inline]
    pub fn end(&self) -> u64 {
        self.base().wrapping_add(self.last().end().into())
    }

    /// One of the instructions, by index.
    #[must_use]
    #[inline]
    pub fn insn(&self, index: usize) -> Insn {
        let insn = self.insns.get(index).copied().unwrap_or_default();
        let pc = self.base().wrapping_add(insn.offset.into());
        let (next, time) = match index + 1 == self.insns.len() {
            true => (self.next, self.last_time),
            false => (
                pc.wrapping_add(insn.len.into()),
                self.time.wrapping_add(insn.cost.into()),
            ),
        };
        Insn {
            pc,
            next,
            time,
            context: self.context,
            bits: insn.bits,
            mode: self.mode,
        }
    }

    /// The instructions one by one.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Insn> + use<'a> {
        let straight = *self;
        (0..self.insns.len()).map(move |index| straight.insn(index))
    }
}
