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

/// Instructions of a function in which a switch of stacks is searched for: they are short.
const SWITCH: u64 = 256;

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
            doubtful = !*known.or_insert_with(|| {
                leaves(image, space, jump.from, functions)
                    || calls_a_switch(image, space, jump.from, functions)
            });
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

/// Whether the function of a jump calls one directly that changes stacks, as a scheduler
/// does: then it returns to what another thread had called it from.
fn calls_a_switch(image: &Image, space: SpaceId, site: u64, functions: &Functions) -> bool {
    let Some(start) = functions.of(site).map(|id| functions.get(id).start) else {
        return false;
    };
    let code = image.insns(space, start, REACH);
    let code = code.take_while(|(pc, _)| *pc < site);
    let mut callees = code.filter_map(|(pc, insn)| match Flow::of(insn.bits, insn.isa) {
        flow @ Flow::Jump {
            link: Link::Call, ..
        } => flow.target(pc, insn.isa.xlen()),
        _ => None,
    });
    callees.any(|callee| switches(image, space, callee, functions))
}

/// Whether a function returns with another stack than it was called with.
fn switches(image: &Image, space: SpaceId, callee: u64, functions: &Functions) -> bool {
    let function = functions.of(callee).map(|id| functions.get(id));
    let Some(function) = function.filter(|f| f.start == callee && f.end > callee) else {
        return false;
    };
    let code = image.insns(space, callee, SWITCH);
    let mut code = code.take_while(|(pc, _)| *pc < function.end);
    code.any(|(pc, insn)| {
        let flow = Flow::of(insn.bits, insn.isa);
        let returns = matches!(
            flow,
            Flow::Indirect {
                link: Link::Return,
                ..
            }
        );
        returns && leaves(image, space, pc, functions)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::Isa;

    /// Whether code before a return explains that it does not return.
    fn explains(words: &[u32]) -> bool {
        let mut image = Image::new();
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
        let end = 0x1000 + code.len() as u64;
        let functions = Functions::testing(&[(0x1000, end, "f")]);
        leaves(&image, SpaceId::FIRST, end - 4, &functions)
    }

    const RET: u32 = 0x0000_8067;

    #[test]
    fn plain_returns() {
        for code in [
            // Nothing before it.
            &[RET][..],
            // ld ra,8(sp); addi sp,sp,16
            &[0x0081_3083, 0x0101_0113, RET],
            // addi sp,s0,-32; ld ra,8(sp)
            &[0xfe04_0113, 0x0081_3083, RET],
            // lui t0,1; add sp,sp,t0
            &[0x0000_12b7, 0x0051_0133, RET],
            // ld ra,0(a0), then another return begins the code again
            &[0x0005_3083, RET, 0x0081_3083, RET],
            // fld ft1,0(a0): a floating-point register
            &[0x0005_3087, RET],
        ] {
            assert!(!explains(code), "{code:x?}");
        }
    }

    #[test]
    fn returns_elsewhere() {
        for code in [
            // longjmp: ld ra,0(a0); ld sp,8(a0)
            &[0x0005_3083, 0x0085_3103, RET][..],
            // a switch of stacks: mv sp,a1; ld ra,8(sp)
            &[0x0005_8113, RET],
            // an unwinder: ld ra,8(sp); add sp,sp,a4
            &[0x0081_3083, 0x00e1_0133, RET],
            // mv ra,t1
            &[0x0003_0093, RET],
        ] {
            assert!(explains(code), "{code:x?}");
        }
        // Where code begins is not known.
        let nowhere = Functions::new();
        assert!(leaves(&Image::new(), SpaceId::FIRST, 0x1000, &nowhere));
    }

    /// A scheduler: what it calls changes stacks, so it returns anywhere.
    #[test]
    fn schedulers_return_to_other_threads() {
        let schedule = |switch: [u32; 3]| {
            let mut image = Image::new();
            // addi sp,sp,-16; jal ra,.+16; addi sp,sp,16; ret; nop; and what it calls
            let mut words = vec![0xff01_0113, 0x0100_00ef, 0x0101_0113, RET, 0x13];
            words.extend(switch);
            let code: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
            image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
            let functions = [(0x1000, 0x1010, "schedule"), (0x1014, 0x1020, "switch")];
            let functions = Functions::testing(&functions);
            assert!(!leaves(&image, SpaceId::FIRST, 0x100c, &functions));
            calls_a_switch(&image, SpaceId::FIRST, 0x100c, &functions)
        };
        // ld ra,0(a1); ld sp,8(a1)
        assert!(schedule([0x0005_b083, 0x0085_b103, RET]));
        // ld ra,8(sp); addi sp,sp,16
        assert!(!schedule([0x0081_3083, 0x0101_0113, RET]));
    }

    #[test]
    fn what_follows_a_call() {
        let mut image = Image::new();
        // jal ra,.+8; nop; c.jalr a0; c.nop
        let code = [0xef, 0, 0x80, 0, 0x13, 0, 0, 0, 0x02, 0x95, 0x01, 0];
        image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
        let after = |to| follows_call(&image, SpaceId::FIRST, to);
        assert!(after(0x1004) && after(0x100a));
        assert!(!after(0x1008) && !after(0x100c));
        // There is no code to tell.
        assert!(after(0x2000));
    }

    /// Four cases in a table of distances, and one that is not there.
    #[test]
    fn cases_of_a_switch() {
        let mut image = Image::new();
        // auipc a5,0; addi a5,a5,64; then the cases, and the table at 0x1040.
        let mut code = vec![0x0000_0797u32, 0x0407_8793];
        code.resize(16, 0x0000_0013);
        code.extend([0x1010u32, 0x1018, 0x1020, 0x1028].map(|to| to.wrapping_sub(0x1040)));
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
        let functions = Functions::testing(&[(0x1000, 0x1040, "f")]);
        let mut tables = Tables::default();
        let mut odd = |to| {
            let code = (&image, SpaceId::FIRST);
            tables.contradict(code, &functions, (0x100c, to))
        };
        // Before the table is known to be that of the jump, nothing is wrong.
        assert!(!odd(0x1014));
        for to in [0x1010, 0x1018, 0x1020, 0x1028] {
            assert!(!odd(to), "{to:#x}");
        }
        assert!(odd(0x1014) && odd(0x1024));
        assert!(!odd(0x1010) && !odd(0x2000));
    }
}
