//! Turns drafts into addresses and bytes.

use hartrace_isa::Xlen;

use super::Base;
use super::asm::{self, Code, fits};

/// A place in the code that may not be known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Label(pub(super) u32);

/// What the walk does at an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Goes on.
    #[default]
    Seq,
    /// Taken `arg` times in 256.
    Branch,
    /// A backward branch: `arg` low half is the largest trip count, bit 16
    /// says that it is the only one.
    Loop,
    /// A branch that keeps out of a call when enough of them are open.
    Guard,
    /// Always to `target`.
    Jump,
    /// As [`Kind::Jump`], and comes back.
    Call,
    /// The second half of a constant pair: to `target`, or to `arg` when
    /// something jumped right to it.
    PairJump,
    /// As [`Kind::PairJump`], and comes back.
    PairCall,
    /// To one of the `arg` places in the pool from `target` on.
    PickJump,
    /// As [`Kind::PickJump`], and comes back.
    PickCall,
    /// To where the last call came from.
    Return,
    /// As [`Kind::Return`], and comes back.
    Swap,
    /// To where the last trap came from.
    TrapReturn,
    /// ecall, ebreak.
    Trap,
    /// A jump to itself, up to `arg` times, until an interrupt.
    Spin,
    /// Changes the context.
    Context,
}

/// How an instruction becomes bits once its target has an address.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Fixed(Code),
    /// Short: `c.beqz`, `c.bnez`; `rs1` is x8 to x15 then, `rs2` x0.
    Branch {
        funct3: u32,
        rs1: u32,
        rs2: u32,
    },
    /// Short: `c.j`, `c.jal`.
    Jal {
        rd: u32,
    },
    Auipc {
        rd: u32,
    },
    /// Short: `c.lui`.
    Lui {
        rd: u32,
    },
    /// Low half of a target whose high half the instruction before made.
    JalrRelative {
        rd: u32,
        rs1: u32,
    },
    JalrLow {
        rd: u32,
        rs1: u32,
    },
    /// Through x0.
    JalrZero {
        rd: u32,
    },
}

/// Where an instruction goes.
#[derive(Clone, Debug, Default)]
pub(super) enum Aim {
    #[default]
    None,
    At(Label),
    Pool(Vec<Label>),
}

/// An instruction without an address.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Bytes before it that are no code.
    pub(super) gap: Vec<u8>,
    pub(super) form: Form,
    /// Whether the short form is used if it reaches.
    pub(super) short: bool,
    pub(super) kind: Kind,
    pub(super) aim: Aim,
    /// See [`Kind`]; for pairs filled in from `other`.
    pub(super) arg: u32,
    pub(super) other: Option<Label>,
}

/// A stretch of drafts that lie together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Island {
    /// Its first draft.
    pub(super) first: usize,
    pub(super) base: Base,
    /// Bytes of constants before the code.
    pub(super) table: u64,
}

/// Everything that is to be placed.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) xlen: Xlen,
    pub(super) drafts: Vec<Draft>,
    /// Draft each label stands for.
    pub(super) labels: Vec<u32>,
    pub(super) islands: Vec<Island>,
}

/// Addresses for a [`Plan`]; positions match.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Address of each draft.
    pub(super) pcs: Vec<u64>,
    /// Code of each draft.
    pub(super) codes: Vec<Code>,
    /// Of each island: where its table starts, where its code ends.
    pub(super) spans: Vec<(u64, u64)>,
}

impl Plan {
    /// The draft of a label.
    pub(super) fn draft_of(&self, label: Label) -> u32 {
        self.labels
            .get(label.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Gives every draft an address and bits. Short forms that do not reach
    /// grow, which moves others, until all reach: sizes only grow, so it ends.
    pub(super) fn place(&mut self) -> Placed {
        let mut placed = Placed::default();
        loop {
            self.measure(&mut placed);
            let too_far: Vec<usize> = (0..self.drafts.len())
                .filter(|&at| !self.reaches(at, &placed.pcs))
                .collect();
            if too_far.is_empty() {
                break;
            }
            for at in too_far {
                if let Some(draft) = self.drafts.get_mut(at) {
                    draft.short = false;
                }
            }
        }
        placed.codes = (0..self.drafts.len())
            .map(|at| self.encode(at, &placed.pcs))
            .collect();
        placed
    }

    fn measure(&self, placed: &mut Placed) {
        placed.pcs.clear();
        placed.spans.clear();
        for (nth, island) in self.islands.iter().enumerate() {
            let end = self
                .islands
                .get(nth + 1)
                .map_or(self.drafts.len(), |next| next.first);
            let drafts = self.drafts.get(island.first..end).unwrap_or_default();
            let size: u64 = drafts.iter().map(Draft::size).sum();
            let (table, mut pc) = self.start_of(island, size, &placed.spans);
            for draft in drafts {
                pc += draft.gap.len() as u64;
                placed.pcs.push(pc);
                pc = pc.wrapping_add(draft.len());
            }
            placed.spans.push((table, pc));
        }
    }

    /// First addresses of the table and of the code of an island: where it
    /// wants to be, or after the others if one of them is there already.
    fn start_of(&self, island: &Island, size: u64, spans: &[(u64, u64)]) -> (u64, u64) {
        let all = island.table + size;
        let start = island.base.start(all, self.xlen);
        // Code ends where the island ends; the table's alignment moves the
        // table, not the code, so that `Base::Top` is met to the byte.
        let mut code = start.wrapping_add(island.table);
        let mut table = if island.table == 0 { code } else { start & !63 };
        let last = code.wrapping_add(size).wrapping_sub(1);
        let clash = |&&(from, to): &&(u64, u64)| from <= last && table <= to.wrapping_sub(1);
        if let Some(&(from, to)) = spans.iter().find(clash) {
            // There is room before an island at the top, and after others.
            let at_top = self.xlen.wrap(to) < from;
            table = if at_top {
                (from - all - 64) & !63
            } else {
                (to + 63) & !63
            };
            code = table + island.table;
        }
        (table, code)
    }

    fn target(&self, at: usize, pcs: &[u64]) -> u64 {
        let label = match self.drafts.get(at).map(|d| &d.aim) {
            Some(&Aim::At(label)) => label,
            _ => return 0,
        };
        let draft = self.draft_of(label) as usize;
        pcs.get(draft).copied().unwrap_or_default()
    }

    /// Distance to the target from `from`, which is not `at` in pairs.
    fn distance(&self, at: usize, from: usize, pcs: &[u64]) -> i64 {
        let pc = pcs.get(from).copied().unwrap_or_default();
        let distance = self.target(at, pcs).wrapping_sub(pc);
        match self.xlen {
            Xlen::Rv32 => i64::from(distance as i32),
            Xlen::Rv64 => distance as i64,
        }
    }

    fn reaches(&self, at: usize, pcs: &[u64]) -> bool {
        let Some(draft) = self.drafts.get(at).filter(|d| d.short) else {
            return true;
        };
        match draft.form {
            Form::Branch { .. } => fits(self.distance(at, at, pcs), 9),
            Form::Jal { .. } => fits(self.distance(at, at, pcs), 12),
            Form::Lui { .. } => {
                let high = high_part(self.target(at, pcs) as i32 as i64);
                high != 0 && fits(i64::from(high as i32), 18)
            }
            _ => true,
        }
    }

    fn encode(&self, at: usize, pcs: &[u64]) -> Code {
        let Some(draft) = self.drafts.get(at) else {
            return Code::default();
        };
        let here = || self.distance(at, at, pcs);
        let absolute = || self.target(at, pcs) as i32 as i64;
        Code::new(match draft.form {
            Form::Fixed(code) => return code,
            Form::Branch { funct3, rs1, .. } if draft.short => {
                asm::c_branch(funct3 & 1 == 1, rs1, here())
            }
            Form::Branch { funct3, rs1, rs2 } => asm::branch(funct3, rs1, rs2, here()),
            Form::Jal { rd } if draft.short => asm::c_j(rd == 1, here()),
            Form::Jal { rd } => asm::jal(rd, here()),
            Form::Auipc { rd } => asm::auipc(rd, high_part(here()) >> 12),
            Form::Lui { rd } if draft.short => asm::c_lui(rd, high_part(absolute()) >> 12),
            Form::Lui { rd } => asm::lui(rd, high_part(absolute()) >> 12),
            Form::JalrRelative { rd, rs1 } => {
                let low = self.distance(at, at.wrapping_sub(1), pcs);
                asm::jalr(rd, rs1, low as i32 & 0xfff)
            }
            Form::JalrLow { rd, rs1 } => asm::jalr(rd, rs1, absolute() as i32 & 0xfff),
            Form::JalrZero { rd } => asm::jalr(rd, 0, absolute() as i32 & 0xfff),
        })
    }
}

impl Draft {
    /// Length of the instruction as it stands now.
    pub(super) fn len(&self) -> u64 {
        match self.form {
            Form::Fixed(code) => code.bytes().len() as u64,
            _ if self.short => 2,
            _ => 4,
        }
    }

    fn size(&self) -> u64 {
        self.gap.len() as u64 + self.len()
    }
}

/// What `lui` or `auipc` holds for a value whose low twelve bits are added,
/// sign-extended, afterwards.
fn high_part(value: i64) -> u32 {
    (value as u32).wrapping_add(0x800) & 0xffff_f000
}
