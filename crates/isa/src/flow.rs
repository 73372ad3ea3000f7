//! The successors of an instruction: the only control-flow classification of
//! the workspace.

use crate::{Ext, Isa, Reg, Xlen};

/// `mret`.
pub const MRET: u32 = 0x3020_0073;
/// `sret`.
pub const SRET: u32 = 0x1020_0073;

/// Length in bytes of the instruction that starts with this 16-bit parcel:
/// 2, 4, 6, 8, or 10 to 22 for the longer forms of the base specification.
///
/// The reserved prefix for 192 bits and more gives 2, so that a reader of
/// such a stream still moves forward.
#[must_use]
pub const fn length(parcel: u16) -> u8 {
    if parcel & 0x3 != 0x3 {
        2
    } else if parcel & 0x1f != 0x1f {
        4
    } else if parcel & 0x3f == 0x1f {
        6
    } else if parcel & 0x7f == 0x3f {
        8
    } else if parcel & 0x7000 != 0x7000 {
        10 + 2 * ((parcel >> 12) & 7) as u8
    } else {
        2
    }
}

/// The role of a jump in the calling convention (E-Trace 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// A plain jump: nothing is linked and no link register is read.
    None,
    /// A call: the return address goes to x1 or x5.
    Call,
    /// A return: jumps through x1 or x5 and links neither of them.
    Return,
    /// A co-routine swap: jumps through one link register and links the other.
    Swap,
    /// Links a register that is neither x0, x1 nor x5.
    Other,
}

/// The constant that `lui`, `auipc` or `c.lui` put in a register, which makes
/// a jump right after it sequentially inferable (E-Trace 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Const {
    /// The value itself, sign-extended (`lui`, `c.lui`).
    Absolute(i32),
    /// An offset from the instruction's own address (`auipc`).
    Relative(i32),
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// The next instruction in memory follows.
    Seq,
    /// As [`Flow::Seq`], and `rd` holds a constant that a jump right after it
    /// may use.
    Const {
        /// Where the constant goes; never x0.
        rd: Reg,
        /// The constant.
        value: Const,
    },
    /// A conditional branch.
    Branch {
        /// Distance of the target from the branch, in bytes.
        offset: i32,
    },
    /// A jump whose target stands in the instruction (`jal`, `c.j`, `c.jal`).
    Jump {
        /// Distance of the target from the jump, in bytes.
        offset: i32,
        /// The jump's role.
        link: Link,
    },
    /// A jump through the static table at `jvt` (`cm.jt`, `cm.jalt`).
    Table {
        /// Entry in the table, 0 to 255.
        index: u8,
        /// [`Link::None`] for `cm.jt`, [`Link::Call`] for `cm.jalt`.
        link: Link,
    },
    /// A jump through a register (`jalr`, `c.jr`, `c.jalr`). With `rs1` = x0
    /// the target is the absolute address `offset`.
    Indirect {
        /// The register that holds the target.
        rs1: Reg,
        /// Added to the register; bit 0 of the sum is dropped.
        offset: i16,
        /// The jump's role.
        link: Link,
    },
    /// A return whose target was on the stack (`cm.popret`, `cm.popretz`).
    PopReturn,
    /// A return from a trap handler (`mret`, `sret`, `uret`, `mnret`, `dret`).
    TrapReturn,
    /// An instruction whose purpose is a trap (`ecall`, `ebreak`,
    /// `c.ebreak`). It does not retire.
    Trap,
}

impl Flow {
    /// Classifies the instruction in the low bits of `bits`; an instruction
    /// longer than 32 bits gives its first 32 and is [`Flow::Seq`].
    #[must_use]
    #[inline]
    pub const fn of(bits: u32, isa: Isa) -> Flow {
        if bits & 3 == 3 {
            Flow::of_full(bits)
        } else if isa.has(Ext::Zca) {
            Flow::of_compressed(bits, isa)
        } else {
            Flow::Seq
        }
    }

    /// Classifies an instruction that a hart has retired: a 16-bit one proves
    /// that the hart has compressed instructions, whatever the ISA string of
    /// its program says.
    #[must_use]
    #[inline]
    pub const fn of_retired(bits: u32, isa: Isa) -> Flow {
        if bits & 3 == 3 {
            Flow::of_full(bits)
        } else {
            Flow::of_compressed(bits, isa)
        }
    }

    const fn of_full(bits: u32) -> Flow {
        let rd = Reg::new(bits >> 7);
        let rs1 = Reg::new(bits >> 15);
        match bits & 0x7f {
            0x63 if !matches!((bits >> 12) & 7, 2 | 3) => Flow::Branch {
                offset: branch_offset(bits),
            },
            0x6f => Flow::Jump {
                offset: jump_offset(bits),
                link: link_of(rd, Reg::ZERO),
            },
            0x67 if (bits >> 12) & 7 == 0 => Flow::Indirect {
                rs1,
                offset: ((bits as i32) >> 20) as i16,
                link: link_of(rd, rs1),
            },
            0x37 if rd.number() != 0 => Flow::Const {
                rd,
                value: Const::Absolute((bits & 0xffff_f000) as i32),
            },
            0x17 if rd.number() != 0 => Flow::Const {
                rd,
                value: Const::Relative((bits & 0xffff_f000) as i32),
            },
            0x73 => match bits {
                0x0000_0073 | 0x0010_0073 => Flow::Trap,
                MRET | SRET | 0x0020_0073 | 0x7020_0073 | 0x7b20_0073 => Flow::TrapReturn,
                _ => Flow::Seq,
            },
            _ => Flow::Seq,
        }
    }

    const fn of_compressed(bits: u32, isa: Isa) -> Flow {
        let bits = bits & 0xffff;
        let reg = Reg::new(bits >> 7);
        match (bits & 3, bits >> 13) {
            // c.jal on RV32; the same bits are c.addiw on RV64.
            (1, 1) if matches!(isa.xlen(), Xlen::Rv32) => Flow::Jump {
                offset: c_jump_offset(bits),
                link: Link::Call,
            },
            (1, 5) => Flow::Jump {
                offset: c_jump_offset(bits),
                link: Link::None,
            },
            (1, 6 | 7) => Flow::Branch {
                offset: c_branch_offset(bits),
            },
            // c.lui; rd = x2 is c.addi16sp and an immediate of zero reserved.
            (1, 3) if reg.number() != 0 && reg.number() != 2 && bits & 0x107c != 0 => {
                let imm = ((bits << 19) as i32 >> 31) << 17 | ((bits & 0x7c) << 10) as i32;
                Flow::Const {
                    rd: reg,
                    value: Const::Absolute(imm),
                }
            }
            // c.jr, c.jalr and c.ebreak: rs2 = x0.
            (2, 4) if bits & 0x7c == 0 => match (bits & 0x1000 != 0, reg.number()) {
                (false, 0) => Flow::Seq,
                (true, 0) => Flow::Trap,
                (false, _) => Flow::Indirect {
                    rs1: reg,
                    offset: 0,
                    link: link_of(Reg::ZERO, reg),
                },
                (true, _) => Flow::Indirect {
                    rs1: reg,
                    offset: 0,
                    link: link_of(Reg::RA, reg),
                },
            },
            // The space of c.fsdsp, shared with Zcmp and Zcmt.
            (2, 5) => match bits & 0x1f03 {
                0x1e02 | 0x1c02 if isa.has(Ext::Zcmp) && (bits >> 4) & 15 >= 4 => Flow::PopReturn,
                _ if bits & 0x1c03 == 0x0002 && isa.has(Ext::Zcmt) => {
                    let index = ((bits >> 2) & 0xff) as u8;
                    Flow::Table {
                        index,
                        link: if index < 32 { Link::None } else { Link::Call },
                    }
                }
                _ => Flow::Seq,
            },
            _ => Flow::Seq,
        }
    }

    /// The address a direct or absolute jump or a taken branch at `pc` goes
    /// to, as far as the instruction alone determines it; `None` for everything else.
    #[must_use]
    #[inline]
    pub const fn target(self, pc: u64, xlen: Xlen) -> Option<u64> {
        match self {
            Flow::Branch { offset } | Flow::Jump { offset, .. } => {
                Some(xlen.wrap(pc.wrapping_add_signed(offset as i64)))
            }
            Flow::Indirect { rs1, offset, .. } if rs1.number() == 0 => {
                Some(xlen.wrap(offset as i64 as u64 & !1))
            }
            _ => None,
        }
    }

    /// The target of a jump through a register when the instruction before it,
    /// at `pc_before`, put a constant in that register: a sequentially
    /// inferable jump (E-Trace 4.1.1, N-Trace "sequential jump").
    #[must_use]
    pub const fn sequential_target(self, before: Flow, pc_before: u64, xlen: Xlen) -> Option<u64> {
        let (Flow::Indirect { rs1, offset, .. }, Flow::Const { rd, value }) = (self, before) else {
            return None;
        };
        if rs1.number() != rd.number() || rs1.number() == 0 {
            return None;
        }
        let base = match value {
            Const::Absolute(v) => v as i64 as u64,
            Const::Relative(v) => pc_before.wrapping_add_signed(v as i64),
        };
        Some(xlen.wrap(base.wrapping_add_signed(offset as i64) & !1))
    }

    /// The jump's role in the calling convention; `None` for what is no jump.
    #[must_use]
    pub const fn link(self) -> Option<Link> {
        match self {
            Flow::Jump { link, .. } | Flow::Table { link, .. } | Flow::Indirect { link, .. } => {
                Some(link)
            }
            Flow::PopReturn => Some(Link::Return),
            _ => None,
        }
    }

    /// Whether execution always continues after this instruction.
    #[must_use]
    #[inline]
    pub const fn is_sequential(self) -> bool {
        matches!(self, Flow::Seq | Flow::Const { .. })
    }
}

/// The hint rules of the unprivileged manual for `jalr rd, rs1`; `jal rd` is
/// the case `rs1` = x0.
const fn link_of(rd: Reg, rs1: Reg) -> Link {
    match (rd.is_link(), rs1.is_link()) {
        (true, true) if rd.number() != rs1.number() => Link::Swap,
        (true, _) => Link::Call,
        (false, true) => Link::Return,
        (false, false) if rd.number() == 0 => Link::None,
        (false, false) => Link::Other,
    }
}

/// imm[12|10:5] and imm[4:1|11] of the B format.
pub(crate) const fn branch_offset(b: u32) -> i32 {
    ((b as i32) >> 31) << 12
        | ((b & 0x80) << 4) as i32
        | ((b >> 20) & 0x7e0) as i32
        | ((b >> 7) & 0x1e) as i32
}

/// imm[20|10:1|11|19:12] of the J format.
pub(crate) const fn jump_offset(b: u32) -> i32 {
    ((b as i32) >> 31) << 20
        | (b & 0xf_f000) as i32
        | ((b >> 9) & 0x800) as i32
        | ((b >> 20) & 0x7fe) as i32
}

/// imm[11|4|9:8|10|6|7|3:1|5] of the CJ format.
pub(crate) const fn c_jump_offset(b: u32) -> i32 {
    ((b << 19) as i32 >> 31) << 11
        | ((b >> 7) & 0x10) as i32
        | ((b >> 1) & 0x300) as i32
        | ((b << 2) & 0x400) as i32
        | ((b >> 1) & 0x40) as i32
        | ((b << 1) & 0x80) as i32
        | ((b >> 2) & 0xe) as i32
        | ((b << 3) & 0x20) as i32
}

/// imm[8|4:3] and imm[7:6|2:1|5] of the CB format.
pub(crate) const fn c_branch_offset(b: u32) -> i32 {
    ((b << 19) as i32 >> 31) << 8
        | ((b >> 7) & 0x18) as i32
        | ((b << 1) & 0xc0) as i32
        | ((b >> 2) & 0x6) as i32
        | ((b << 3) & 0x20) as i32
}
