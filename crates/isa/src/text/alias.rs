//! Assembler aliases for special cases: `ret`, `li`, `beqz`, ...

use super::{Arg, Spelled, Style, vector};
use crate::{Ext, Inst, Op, Reg, Short};

const RD_RS1: &[Arg] = &[Arg::Rd, Arg::Rs1];
const RD_RS2: &[Arg] = &[Arg::Rd, Arg::Rs2];
const RD_RS1_IMM: &[Arg] = &[Arg::Rd, Arg::Rs1, Arg::Imm];
const RD_RS1_HEX: &[Arg] = &[Arg::Rd, Arg::Rs1, Arg::Hex];
const FD_FS1: &[Arg] = &[Arg::Fd, Arg::Fs1];

/// The special spelling of this instruction, if it has one.
pub(super) fn of(inst: &Inst, style: &Style) -> Option<Spelled> {
    if let Some(spelled) = inst.short.and_then(|short| of_short(inst, short, style)) {
        return Some(spelled);
    }
    match inst.op {
        Op::Jal | Op::Jalr => jump(inst),
        Op::Beq | Op::Bne | Op::Blt | Op::Bge => branch(inst),
        Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
            csr(inst, style)
        }
        Op::SfenceVma | Op::HfenceVvma | Op::HfenceGvma => fence(inst),
        Op::Fence if inst.imm == 0xff => Some(("fence", &[])),
        _ => arithmetic(inst)
            .or_else(|| sign(inst))
            .or_else(|| vector::alias(inst))
            .or_else(|| {
                let name = register_name(inst.op).filter(|_| style.old())?;
                Some(match name {
                    "add" | "addw" | "and" | "or" | "xor" => (name, RD_RS1_IMM),
                    _ => (name, RD_RS1_HEX),
                })
            }),
    }
}

/// Compressed instructions that are not spelled as their expansion is.
fn of_short(inst: &Inst, short: Short, style: &Style) -> Option<Spelled> {
    let zero = inst.rd == Reg::ZERO;
    let imm = match style.old() {
        true => "add",
        false => "addi",
    };
    let spelled: Spelled = match short {
        Short::CNop if inst.imm == 0 => ("nop", &[]),
        Short::CNop => ("c.nop", &[Arg::Imm]),
        Short::CAddi | Short::CAddi16sp | Short::CAddi4spn => (imm, RD_RS1_IMM),
        Short::CLi if zero => ("c.li", &[Arg::Rd, Arg::Imm]),
        Short::CLui if zero => ("c.lui", &[Arg::Rd, Arg::Upper]),
        Short::CMv if zero => ("c.mv", RD_RS2),
        Short::CMv => ("mv", RD_RS2),
        Short::CAdd if zero => ("c.add", RD_RS2),
        Short::CSlli if inst.imm == 0 => ("c.slli64", &[Arg::Rd]),
        Short::CSlli if zero => ("c.slli", &[Arg::Rd, Arg::Hex]),
        Short::CSrli if inst.imm == 0 => ("c.srli64", &[Arg::Rd]),
        Short::CSrai if inst.imm == 0 => ("c.srai64", &[Arg::Rd]),
        Short::CUnimp => ("unimp", &[]),
        Short::CZextH => ("zext.h", RD_RS1),
        // An `and` and an `xor` that happen to have the immediates of the
        // 32-bit aliases.
        Short::CAndi if style.old() => ("and", RD_RS1_IMM),
        _ => return None,
    };
    Some(spelled)
}

fn jump(inst: &Inst) -> Option<Spelled> {
    let (rd, rs1) = (inst.rd.number(), inst.rs1.number());
    Some(match (inst.op, rd, inst.imm) {
        (Op::Jal, 0, _) => ("j", &[Arg::Target]),
        (Op::Jal, 1, _) => ("jal", &[Arg::Target]),
        (Op::Jal, ..) => return None,
        (_, 0, 0) if rs1 == 1 => ("ret", &[]),
        (_, 0, 0) => ("jr", &[Arg::Rs1]),
        (_, 0, _) => ("jr", &[Arg::Mem]),
        (_, 1, 0) => ("jalr", &[Arg::Rs1]),
        (_, 1, _) => ("jalr", &[Arg::Mem]),
        (_, _, 0) => ("jalr", RD_RS1),
        _ => return None,
    })
}

fn branch(inst: &Inst) -> Option<Spelled> {
    const RS1: &[Arg] = &[Arg::Rs1, Arg::Target];
    const RS2: &[Arg] = &[Arg::Rs2, Arg::Target];
    let (zero1, zero2) = (inst.rs1 == Reg::ZERO, inst.rs2 == Reg::ZERO);
    Some(match inst.op {
        Op::Beq if zero2 => ("beqz", RS1),
        Op::Bne if zero2 => ("bnez", RS1),
        Op::Bge if zero1 => ("blez", RS2),
        Op::Bge if zero2 => ("bgez", RS1),
        Op::Blt if zero2 => ("bltz", RS1),
        Op::Blt if zero1 => ("bgtz", RS2),
        _ => return None,
    })
}

fn arithmetic(inst: &Inst) -> Option<Spelled> {
    let (zero1, zero2) = (inst.rs1 == Reg::ZERO, inst.rs2 == Reg::ZERO);
    Some(match (inst.op, inst.imm) {
        (Op::Addi, 0) if zero1 && inst.rd == Reg::ZERO => ("nop", &[]),
        (Op::Addi, _) if zero1 => ("li", &[Arg::Rd, Arg::Imm]),
        (Op::Addi, 0) => ("mv", RD_RS1),
        (Op::Addiw, 0) => ("sext.w", RD_RS1),
        (Op::Xori, -1) => ("not", RD_RS1),
        (Op::Andi, 255) => ("zext.b", RD_RS1),
        (Op::Sltiu, 1) => ("seqz", RD_RS1),
        (Op::Sub, _) if zero1 => ("neg", RD_RS2),
        (Op::Subw, _) if zero1 => ("negw", RD_RS2),
        (Op::Sltu, _) if zero1 => ("snez", RD_RS2),
        (Op::Slt, _) if zero2 => ("sltz", RD_RS1),
        (Op::Slt, _) if zero1 => ("sgtz", RD_RS2),
        (Op::AddUw, _) if zero2 => ("zext.w", RD_RS1),
        _ => return None,
    })
}

/// Sign injection from the same register.
fn sign(inst: &Inst) -> Option<Spelled> {
    if inst.rs1 != inst.rs2 {
        return None;
    }
    Some(match inst.op {
        Op::FsgnjS => ("fmv.s", FD_FS1),
        Op::FsgnjnS => ("fneg.s", FD_FS1),
        Op::FsgnjxS => ("fabs.s", FD_FS1),
        Op::FsgnjD => ("fmv.d", FD_FS1),
        Op::FsgnjnD => ("fneg.d", FD_FS1),
        Op::FsgnjxD => ("fabs.d", FD_FS1),
        Op::FsgnjQ => ("fmv.q", FD_FS1),
        Op::FsgnjnQ => ("fneg.q", FD_FS1),
        Op::FsgnjxQ => ("fabs.q", FD_FS1),
        Op::FsgnjH => ("fmv.h", FD_FS1),
        Op::FsgnjnH => ("fneg.h", FD_FS1),
        Op::FsgnjxH => ("fabs.h", FD_FS1),
        _ => return None,
    })
}

/// The name 2.40 gives instructions with an immediate: that of the ones
/// without.
fn register_name(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Addi => "add",
        Op::Addiw => "addw",
        Op::Andi => "and",
        Op::Ori => "or",
        Op::Xori => "xor",
        Op::Slli => "sll",
        Op::Srli => "srl",
        Op::Srai => "sra",
        Op::Slliw => "sllw",
        Op::Srliw => "srlw",
        Op::Sraiw => "sraw",
        Op::Rori => "ror",
        Op::Roriw => "rorw",
        Op::Bclri => "bclr",
        Op::Bexti => "bext",
        Op::Binvi => "binv",
        Op::Bseti => "bset",
        _ => return None,
    })
}

fn fence(inst: &Inst) -> Option<Spelled> {
    match (inst.rs1.number(), inst.rs2.number()) {
        (0, 0) => Some((inst.op.name(), &[])),
        (_, 0) => Some((inst.op.name(), &[Arg::Rs1])),
        _ => None,
    }
}

fn csr(inst: &Inst, style: &Style) -> Option<Spelled> {
    const RD: &[Arg] = &[Arg::Rd];
    let (no_rd, no_rs1) = (inst.rd == Reg::ZERO, inst.rs1 == Reg::ZERO);
    if let (Op::Csrrs, true) = (inst.op, no_rs1) {
        let rv32 = style.isa.xlen().bits() == 32;
        match inst.csr() {
            0xc00 => return Some(("rdcycle", RD)),
            0xc01 => return Some(("rdtime", RD)),
            0xc02 => return Some(("rdinstret", RD)),
            0xc80 if rv32 => return Some(("rdcycleh", RD)),
            0xc81 if rv32 => return Some(("rdtimeh", RD)),
            0xc82 if rv32 => return Some(("rdinstreth", RD)),
            _ => {}
        }
    }
    let float = style.isa.has(Ext::F) || style.isa.has(Ext::Zfinx);
    if let Some(spelled) = float_csr(inst).filter(|_| float) {
        return Some(spelled);
    }
    let old = style.old();
    Some(match inst.op {
        Op::Csrrs if no_rs1 => ("csrr", &[Arg::Rd, Arg::Csr]),
        Op::Csrrw if no_rd => ("csrw", &[Arg::Csr, Arg::Rs1]),
        Op::Csrrs if no_rd => ("csrs", &[Arg::Csr, Arg::Rs1]),
        Op::Csrrc if no_rd => ("csrc", &[Arg::Csr, Arg::Rs1]),
        Op::Csrrwi if no_rd => (if old { "csrw" } else { "csrwi" }, &[Arg::Csr, Arg::Imm]),
        Op::Csrrsi if no_rd => (if old { "csrs" } else { "csrsi" }, &[Arg::Csr, Arg::Imm]),
        Op::Csrrci if no_rd => (if old { "csrc" } else { "csrci" }, &[Arg::Csr, Arg::Imm]),
        Op::Csrrwi if old => ("csrrw", &[Arg::Rd, Arg::Csr, Arg::Imm]),
        Op::Csrrsi if old => ("csrrs", &[Arg::Rd, Arg::Csr, Arg::Imm]),
        Op::Csrrci if old => ("csrrc", &[Arg::Rd, Arg::Csr, Arg::Imm]),
        _ => return None,
    })
}

/// fflags, frm and fcsr have names of their own.
fn float_csr(inst: &Inst) -> Option<Spelled> {
    let read = inst.op == Op::Csrrs && inst.rs1 == Reg::ZERO;
    let immediate = inst.op == Op::Csrrwi;
    if !read && !immediate && inst.op != Op::Csrrw {
        return None;
    }
    let name = match (inst.csr(), read, immediate) {
        (1, true, _) => "frflags",
        (1, _, true) => "fsflagsi",
        (1, ..) => "fsflags",
        (2, true, _) => "frrm",
        (2, _, true) => "fsrmi",
        (2, ..) => "fsrm",
        (3, true, _) => "frcsr",
        (3, false, false) => "fscsr",
        _ => return None,
    };
    Some(match (read, immediate, inst.rd == Reg::ZERO) {
        (true, ..) => (name, &[Arg::Rd]),
        (_, true, _) => (name, &[Arg::Rd, Arg::Imm]),
        (_, _, true) => (name, &[Arg::Rs1]),
        _ => (name, RD_RS1),
    })
}
