//! Encoders of the instructions the generator uses, after the unprivileged
//! manual. Fields are numbers as the manual has them; what does not fit a
//! field is cut off, so whoever cares checks with the `fits_` functions first.

use hartrace_isa::length;

/// An instruction as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    bytes: [u8; 22],
    len: u8,
}

impl Code {
    /// A 16- or 32-bit instruction, as its low bits say.
    #[must_use]
    pub fn new(bits: u32) -> Code {
        let mut bytes = [0; 22];
        for (to, from) in bytes.iter_mut().zip(bits.to_le_bytes()) {
            *to = from;
        }
        Code {
            bytes,
            len: length(bits as u16).min(4),
        }
    }

    /// An instruction of 48 bits or more: `parcel` gives the length, `fill`
    /// the rest.
    #[must_use]
    pub fn long(parcel: u16, mut fill: impl FnMut() -> u8) -> Code {
        let [a, b] = parcel.to_le_bytes();
        let mut code = Code {
            bytes: [0; 22],
            len: length(parcel),
        };
        for (at, to) in code.bytes.iter_mut().enumerate() {
            *to = match at {
                0 => a,
                1 => b,
                _ if at < usize::from(code.len) => fill(),
                _ => 0,
            };
        }
        code
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The bits a trace step shows: the first 32 at most.
    #[must_use]
    pub fn bits(&self) -> u32 {
        let [a, b, c, d, ..] = self.bytes;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// R format.
#[must_use]
pub const fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25
}

/// I format.
#[must_use]
pub const fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | (imm as u32) << 20
}

/// S format.
#[must_use]
pub const fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32;
    opcode | (imm & 31) << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | (imm >> 5 & 127) << 25
}

/// U format; `high` is the value with its low twelve bits clear.
#[must_use]
pub const fn u_type(opcode: u32, rd: u32, high: u32) -> u32 {
    opcode | rd << 7 | high & 0xffff_f000
}

/// A conditional branch.
#[must_use]
pub const fn branch(funct3: u32, rs1: u32, rs2: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let imm = (o >> 12 & 1) << 31 | (o >> 5 & 63) << 25 | (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7;
    0x63 | funct3 << 12 | rs1 << 15 | rs2 << 20 | imm
}

/// `jal`.
#[must_use]
pub const fn jal(rd: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let imm =
        (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 255) << 12;
    0x6f | rd << 7 | imm
}

/// `jalr`.
#[must_use]
pub const fn jalr(rd: u32, rs1: u32, offset: i32) -> u32 {
    i_type(0x67, 0, rd, rs1, offset)
}

/// `lui`.
#[must_use]
pub const fn lui(rd: u32, high: u32) -> u32 {
    u_type(0x37, rd, high)
}

/// `auipc`.
#[must_use]
pub const fn auipc(rd: u32, high: u32) -> u32 {
    u_type(0x17, rd, high)
}

/// `csrrw x0, csr, rs1`.
#[must_use]
pub const fn csrw(csr: u32, rs1: u32) -> u32 {
    0x73 | 1 << 12 | rs1 << 15 | csr << 20
}

/// `ecall`.
pub const ECALL: u32 = 0x0000_0073;
/// `ebreak`.
pub const EBREAK: u32 = 0x0010_0073;
/// `c.ebreak`.
pub const C_EBREAK: u32 = 0x9002;
/// `mret`.
pub const MRET: u32 = 0x3020_0073;
/// `sret`.
pub const SRET: u32 = 0x1020_0073;

/// `c.j`, or with `link` the `c.jal` of RV32.
#[must_use]
pub const fn c_j(link: bool, offset: i64) -> u32 {
    let o = offset as u32;
    let imm = (o >> 11 & 1) << 12
        | (o >> 4 & 1) << 11
        | (o >> 8 & 3) << 9
        | (o >> 10 & 1) << 8
        | (o >> 6 & 1) << 7
        | (o >> 7 & 1) << 6
        | (o >> 1 & 7) << 3
        | (o >> 5 & 1) << 2;
    (if link { 0x2001 } else { 0xa001 }) | imm
}

/// `c.beqz`, or `c.bnez`; the register is x8 to x15.
#[must_use]
pub const fn c_branch(not: bool, rs1: u32, offset: i64) -> u32 {
    let o = offset as u32;
    let imm = (o >> 8 & 1) << 12
        | (o >> 3 & 3) << 10
        | (o >> 6 & 3) << 5
        | (o >> 1 & 3) << 3
        | (o >> 5 & 1) << 2;
    (if not { 0xe001 } else { 0xc001 }) | (rs1 & 7) << 7 | imm
}

/// `c.jr`, or `c.jalr`; not through x0.
#[must_use]
pub const fn c_jr(link: bool, rs1: u32) -> u32 {
    (if link { 0x9002 } else { 0x8002 }) | rs1 << 7
}

/// A CI-format instruction: its quadrant and funct3 in `base`, six bits of
/// immediate.
#[must_use]
pub const fn c_imm(base: u32, rd: u32, imm: u32) -> u32 {
    base | (imm >> 5 & 1) << 12 | rd << 7 | (imm & 31) << 2
}

/// `c.lui`; `high` as for [`lui`], not 0; rd neither x0 nor x2.
#[must_use]
pub const fn c_lui(rd: u32, high: u32) -> u32 {
    c_imm(0x6001, rd, high >> 12)
}

/// `cm.jt` below index 32, `cm.jalt` from there on.
#[must_use]
pub const fn cm_table(index: u32) -> u32 {
    0xa002 | (index & 255) << 2
}

/// The four of Zcmp that use the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the specification's names
pub enum Stack {
    Push = 0xb802,
    Pop = 0xba02,
    PopRetZ = 0xbc02,
    PopRet = 0xbe02,
}

/// `cm.push` and its kin; `list` is 4 to 15.
#[must_use]
pub const fn cm_stack(what: Stack, list: u32, adjust: u32) -> u32 {
    what as u32 | (list & 15) << 4 | (adjust & 3) << 2
}

/// Whether a signed number fits in this many bits.
#[must_use]
pub const fn fits(value: i64, bits: u32) -> bool {
    let limit = 1i64 << (bits - 1);
    value >= -limit && value < limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::{Const, Flow, Isa, Link, Reg};

    fn random_offsets(bits: u32) -> impl Iterator<Item = i64> {
        let mut r = super::super::Random::new(u64::from(bits));
        (0..500).map(move |_| ((r.draw() as i64) >> (64 - bits)) & !1)
    }

    #[test]
    fn offsets_survive_the_classification() {
        for offset in random_offsets(13) {
            let flow = Flow::of(branch(1, 3, 4, offset), Isa::RV64GC);
            assert_eq!(
                flow,
                Flow::Branch {
                    offset: offset as i32
                }
            );
        }
        for offset in random_offsets(21) {
            let flow = Flow::of(jal(1, offset), Isa::RV64GC);
            let link = Link::Call;
            assert_eq!(
                flow,
                Flow::Jump {
                    offset: offset as i32,
                    link
                }
            );
        }
        for offset in random_offsets(12) {
            let link = Link::None;
            let flow = Flow::of(c_j(false, offset), Isa::RV64GC);
            assert_eq!(
                flow,
                Flow::Jump {
                    offset: offset as i32,
                    link
                }
            );
            let link = Link::Call;
            let flow = Flow::of(c_j(true, offset), Isa::RV32GC);
            assert_eq!(
                flow,
                Flow::Jump {
                    offset: offset as i32,
                    link
                }
            );
        }
        for offset in random_offsets(9) {
            let flow = Flow::of(c_branch(true, 9, offset), Isa::RV64GC);
            assert_eq!(
                flow,
                Flow::Branch {
                    offset: offset as i32
                }
            );
        }
    }

    #[test]
    fn constants_survive_the_classification() {
        for high in [0x1000, 0x1_f000, 0xfffe_0000, 0xffff_f000] {
            for bits in [lui(9, high), c_lui(9, high)] {
                let value = Const::Absolute(high as i32);
                let rd = Reg::new(9);
                assert_eq!(Flow::of(bits, Isa::RV64GC), Flow::Const { rd, value });
            }
        }
    }

    #[test]
    fn long_instructions_have_their_length() {
        for (parcel, len) in [(0x1f, 6), (0x3f, 8), (0x7f, 10), (0x607f, 22)] {
            let code = Code::long(parcel, || 0xaa);
            assert_eq!(code.bytes().len(), len);
            assert_eq!(code.bits() & 0xffff, u32::from(parcel));
        }
        assert_eq!(Code::new(0x8082).bytes(), [0x82, 0x80]);
    }
}
