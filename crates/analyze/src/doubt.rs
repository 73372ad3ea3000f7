//! Jumps that contradict the call stack: which of them the code explains.
//!
//! `longjmp`, an unwinder and a switch of stacks load the return address or the stack
//! pointer from somewhere else than their own frame, and the instructions before the
//! jump show that. A return without such a reason goes back to its caller, and an
//! indirect jump or call leads to the start of a function or stays inside the one it is
//! in, and goes to one of the cases of a `switch` there. If the trace says otherwise, it is probably damaged: a format without a
//! checksum, such as E-Trace, has no other way to show a flipped bit.

mod tables;

use crate::functions::Functions;
use crate::stacks::OddJump;
use hartrace_flow::{HartId, Image, SpaceId};
use hartrace_isa::{Flow, Inst, Link, Op, Reg, decode};
use rustc_hash::FxHashMap;
use tables::Tables;

/// Doubtful jumps that are kept.
const KEPT: usize = 16;

/// Jumps whose code is remembered.
const MANY: usize = 1 << 16;

/// Bytes of code before a jump that are examined.
const REACH: u64 = 1 << 16;

/// The frame pointer, from which a stack pointer may be computed.
const S0: Reg = Reg::new(8);

/// The jumps of a trace that contradict the call stack for no known reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<(HartId, OddJump)>,
    /// Instructions that may be wrong because of them.
    pub instructions: u64,
}

impl Doubts {
    fn add(&mut self, hart: HartId, jump: &OddJump) {
        self.count += 1;
        self.instructions += jump.at - jump.since;
        if self.first.len() < KEPT {
            self.first.push((hart, *jump));
        }
    }

    /// Adds those of another trace.
    pub fn append(&mut self, other: &Doubts) {
        self.count += other.count;
        self.instructions += other.instructions;
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room));
    }
}

/// Judges odd jumps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    /// Whether the code of a jump explains that it leaves its stack.
    known: FxHashMap<(SpaceId, u64), bool>,
    tables: Tables,
    pub(crate) doubts: Doubts,
}

impl Judge {
    /// Whether an indirect jump inside its function goes to none of the cases of its
    /// `switch`.
    pub(crate) fn is_no_case(
        &mut self,
        code: (&Image, SpaceId),
        functions: &Functions,
        jump: (u64, u64),
    ) -> bool {
        self.tables.contradict(code, functions, jump)
    }

    /// Takes a jump that is doubtful.
    pub(crate) fn doubt(&mut self, hart: HartId, jump: &OddJump) {
        self.doubts.add(hart, jump);
    }

    /// Decides whether an odd jump is doubtful.
    pub(crate) fn judge(
        &mut self,
        (hart, space): (HartId, SpaceId),
        jump: &mut OddJump,
        image: &Image,
        functions: &Functions,
    ) {
        // A return from a trap goes wherever the handler wants.
        let mut doubtful = jump.from != 0;
        // Even where the stack is not known, something must have been called there.
        doubtful &= jump.doubtful || !follows_call(image, space, jump.to);
        if doubtful {
            if self.known.len() > MANY {
                self.known.clear();
            }
            let known = self.known.entry((space, jump.from));
            doubtful = !*known.or_insert_with(|| leaves(image, space, jump.from, functions));
        }
        jump.doubtful = doubtful;
        if doubtful {
            self.doubts.add(hart, jump);
        }
    }
}

/// Whether the instruction before an address is a call, as far as it is known.
fn follows_call(image: &Image, space: SpaceId, to: u64) -> bool {
    let calls = |len: u8| {
        let insn = image.fetch(space, to.wrapping_sub(u64::from(len)))?;
        let link = Flow::of(insn.bits, insn.isa).link();
        Some(insn.len == len && matches!(link, Some(Link::Call | Link::Swap)))
    };
    match (calls(4), calls(2)) {
        (None, None) => true,
        (four, two) => four == Some(true) || two == Some(true),
    }
}

/// Whether the instructions before a jump take the return address or the stack
/// pointer from elsewhere than the frame of their function.
fn leaves(image: &Image, space: SpaceId, site: u64, functions: &Functions) -> bool {
    let start = functions.of(site).map(|id| functions.get(id).start);
    let Some(start) = start.filter(|start| site.wrapping_sub(*start) < REACH) else {
        // Where the code begins is not known, so neither is what it does.
        return true;
    };
    let mut frame = Frame::default();
    for (pc, insn) in image.insns(space, start, REACH) {
        if pc >= site {
            break;
        }
        match Flow::of(insn.bits, insn.isa) {
            // What follows is reached from elsewhere.
            Flow::Jump { link, .. } | Flow::Indirect { link, .. } if link == Link::None => {
                frame = Frame::default();
            }
            Flow::Indirect {
                link: Link::Return, ..
            }
            | Flow::PopReturn
            | Flow::TrapReturn => frame = Frame::default(),
            _ => frame.take(&decode(insn.bits, insn.isa)),
        }
    }
    frame.left
}

/// What straight-line code does to the registers that lead back to the caller.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// One of them comes from elsewhere.
    left: bool,
    /// Registers that hold constants: large frames are freed with them.
    constants: u32,
}

impl Frame {
    fn take(&mut self, inst: &Inst) {
        let constant = |reg: Reg| self.constants & 1 << reg.number() != 0;
        let stays = match (inst.op, inst.rd) {
            // Calls set the link register, and their callees keep the rest.
            (Op::Jal | Op::Jalr, _) => true,
            (Op::Lw | Op::Ld, Reg::RA) => inst.rs1 == Reg::SP || inst.rs1 == S0,
            (Op::Addi, Reg::SP) => inst.rs1 == Reg::SP || inst.rs1 == S0,
            (Op::Add | Op::Sub, Reg::SP) => {
                let base = inst.rs1 == Reg::SP || inst.rs1 == S0;
                base && constant(inst.rs2)
            }
            (_, Reg::RA | Reg::SP) => !writes_integer(inst.op),
            _ => true,
        };
        let bit = 1 << inst.rd.number();
        let is_constant = match inst.op {
            Op::Lui => true,
            Op::Addi | Op::Addiw => inst.rs1 == Reg::ZERO || constant(inst.rs1),
            _ => false,
        };
        match is_constant {
            true => self.constants |= bit,
            false => self.constants &= !bit,
        }
        // A later load from the frame makes up for an earlier one from elsewhere.
        let reloads = matches!((inst.op, inst.rd), (Op::Lw | Op::Ld, Reg::RA)) && stays;
        self.left = !stays || self.left && !reloads;
    }
}

/// Whether the destination is an integer register: floating-point registers have the
/// same numbers.
fn writes_integer(op: Op) -> bool {
    !matches!(op, Op::Flw | Op::Fld | Op::Flh)
}
