//! Instructions, as far as a trace decoder must know them (4.1.1), from the
//! unprivileged manual.

use super::Settings;

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The next instruction in memory follows.
    Plain,
    /// `lui`, `c.lui`, `auipc`: a constant goes to a register.
    Constant { rd: u32, value: u64 },
    /// A conditional branch to this address.
    Branch { to: u64 },
    /// A jump to an address that the instruction contains.
    Direct { to: u64, role: Role },
    /// A jump to an address in a register.
    Indirect { rs1: u32, offset: u64, role: Role },
    /// `mret` and the like.
    TrapReturn,
    /// `ecall`, `ebreak`, `c.ebreak`.
    Trap,
}

/// What a jump is in the calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It pushes a return address.
    Call,
    /// It pops one.
    Return,
    /// Tail calls, co-routine swaps and others do neither.
    Neither,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Insn {
    /// In bytes.
    pub(super) len: u64,
    pub(super) kind: Kind,
}

impl Insn {
    pub(super) fn is_branch(self) -> bool {
        matches!(self.kind, Kind::Branch { .. })
    }

    pub(super) fn is_return(self) -> bool {
        let role = Role::Return;
        matches!(self.kind, Kind::Indirect { role: r, .. } if r == role)
    }
}

/// The instruction at an address, from its first four bytes.
pub(super) fn insn(bits: u32, pc: u64, settings: &Settings) -> Insn {
    let kind = match length(bits) {
        2 => compressed(bits & 0xffff, pc, settings),
        4 => full(bits, pc),
        _ => Kind::Plain,
    };
    let len = length(bits);
    Insn { len, kind }
}

/// "Expanded Instruction-Length Encoding" of the unprivileged manual.
fn length(bits: u32) -> u64 {
    if bits & 3 != 3 {
        2
    } else if bits & 0b11111 != 0b11111 {
        4
    } else if bits & 0b111111 == 0b011111 {
        6
    } else if bits & 0b1111111 == 0b0111111 {
        8
    } else {
        10 + 2 * u64::from(field(bits, 14, 12))
    }
}

/// The bits `high` to `low`, moved down to bit 0.
fn field(bits: u32, high: u32, low: u32) -> u32 {
    (bits >> low) & ((1 << (high - low + 1)) - 1)
}

/// A number of `width` bits as a signed one.
pub(super) fn extend(value: u64, width: u32) -> u64 {
    match width {
        0 => 0,
        64.. => value,
        _ => ((value << (64 - width)) as i64 >> (64 - width)) as u64,
    }
}

fn full(bits: u32, pc: u64) -> Kind {
    let (rd, rs1, funct3) = (field(bits, 11, 7), field(bits, 19, 15), field(bits, 14, 12));
    let upper = extend(u64::from(bits & 0xffff_f000), 32);
    match bits & 0x7f {
        0x37 => Kind::Constant { rd, value: upper },
        0x17 => Kind::Constant {
            rd,
            value: pc.wrapping_add(upper),
        },
        0x63 if funct3 != 2 && funct3 != 3 => {
            let imm = field(bits, 31, 31) << 12
                | field(bits, 7, 7) << 11
                | field(bits, 30, 25) << 5
                | field(bits, 11, 8) << 1;
            let to = pc.wrapping_add(extend(u64::from(imm), 13));
            Kind::Branch { to }
        }
        0x6f => {
            let imm = field(bits, 31, 31) << 20
                | field(bits, 19, 12) << 12
                | field(bits, 20, 20) << 11
                | field(bits, 30, 21) << 1;
            let to = pc.wrapping_add(extend(u64::from(imm), 21));
            let role = role(rd, None);
            Kind::Direct { to, role }
        }
        0x67 if funct3 == 0 => jalr(rd, rs1, extend(u64::from(field(bits, 31, 20)), 12)),
        0x73 => match bits {
            0x0000_0073 | 0x0010_0073 => Kind::Trap,
            // uret, sret, mret, mnret, dret
            0x0020_0073 | 0x1020_0073 | 0x3020_0073 | 0x7020_0073 | 0x7b20_0073 => Kind::TrapReturn,
            _ => Kind::Plain,
        },
        _ => Kind::Plain,
    }
}

fn compressed(bits: u32, pc: u64, settings: &Settings) -> Kind {
    let (quadrant, funct3) = (bits & 3, field(bits, 15, 13));
    let (rd, rs2) = (field(bits, 11, 7), field(bits, 6, 2));
    let jump = || {
        let imm = field(bits, 12, 12) << 11
            | field(bits, 11, 11) << 4
            | field(bits, 10, 9) << 8
            | field(bits, 8, 8) << 10
            | field(bits, 7, 7) << 6
            | field(bits, 6, 6) << 7
            | field(bits, 5, 3) << 1
            | field(bits, 2, 2) << 5;
        pc.wrapping_add(extend(u64::from(imm), 12))
    };
    match (quadrant, funct3) {
        (1, 1) if settings.rv32 => Kind::Direct {
            to: jump(),
            role: Role::Call,
        },
        (1, 5) => Kind::Direct {
            to: jump(),
            role: Role::Neither,
        },
        (1, 6 | 7) => {
            let imm = field(bits, 12, 12) << 8
                | field(bits, 11, 10) << 3
                | field(bits, 6, 5) << 6
                | field(bits, 4, 3) << 1
                | field(bits, 2, 2) << 5;
            let to = pc.wrapping_add(extend(u64::from(imm), 9));
            Kind::Branch { to }
        }
        // rd = x2 is c.addi16sp.
        (1, 3) if rd != 2 => {
            let imm = field(bits, 12, 12) << 17 | rs2 << 12;
            let value = extend(u64::from(imm), 18);
            Kind::Constant { rd, value }
        }
        (2, 4) if rs2 == 0 => match (field(bits, 12, 12), rd) {
            (0, 0) => Kind::Plain,
            (1, 0) => Kind::Trap,
            (0, rs1) => jalr(0, rs1, 0),
            (_, rs1) => jalr(1, rs1, 0),
        },
        // cm.popret and cm.popretz: a return through no register.
        (2, 5) if settings.zcmp && matches!(field(bits, 12, 8), 0b11110 | 0b11100) => {
            jalr_role(0, 0, Role::Return)
        }
        // cm.jt and cm.jalt: the table is part of the program.
        (2, 5) if !settings.jump_table.is_empty() && field(bits, 12, 10) == 0 => {
            let index = field(bits, 9, 2) as usize;
            let role = if index < 32 {
                Role::Neither
            } else {
                Role::Call
            };
            let to = settings.jump_table[index];
            Kind::Direct { to, role }
        }
        _ => Kind::Plain,
    }
}

/// `jalr`. With x0 the target is a constant in the instruction: the absolute
/// address, not one relative to the pc as in the pseudo code.
fn jalr(rd: u32, rs1: u32, offset: u64) -> Kind {
    match rs1 {
        0 => Kind::Direct {
            to: offset & !1,
            role: role(rd, None),
        },
        _ => jalr_role(rs1, offset, role(rd, Some(rs1))),
    }
}

fn jalr_role(rs1: u32, offset: u64, role: Role) -> Kind {
    Kind::Indirect { rs1, offset, role }
}

/// The lists of 4.1.1. Link registers are x1 and x5.
fn role(rd: u32, rs: Option<u32>) -> Role {
    let link = |reg: u32| reg == 1 || reg == 5;
    match rs {
        // jalr x1, x5 and jalr x5, x1
        Some(rs) if link(rd) && link(rs) && rd != rs => Role::Neither,
        _ if link(rd) => Role::Call,
        Some(rs) if link(rs) => Role::Return,
        _ => Role::Neither,
    }
}
