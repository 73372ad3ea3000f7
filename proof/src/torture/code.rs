//! Machine code under construction: constants, addresses, and forward jumps.

use hartrace_isa::{Xlen, length};

use crate::generate::asm;

/// The integer registers that a program keeps for itself.
pub(super) const SP: u32 = 2;
/// Points to the constants below it and the handlers' memory above it.
pub(super) const GP: u32 = 3;
/// Counts loops.
pub(super) const TP: u32 = 4;

/// Code from [`super::layout::CODE`] on.
pub(super) struct Code {
    base: u64,
    bytes: Vec<u8>,
    xlen: Xlen,
}

/// A jump whose offset is not known yet.
#[derive(Clone, Copy)]
pub(super) struct Hole {
    at: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Jal { rd: u32 },
    Branch { funct3: u32, rs1: u32, rs2: u32 },
    ShortJump { link: bool },
    ShortBranch { not: bool, rs1: u32 },
}

impl Code {
    pub(super) fn new(base: u64, xlen: Xlen) -> Code {
        Code {
            base,
            bytes: Vec::new(),
            xlen,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn wide(&self) -> bool {
        self.xlen == Xlen::Rv64
    }

    /// Where the next instruction will be.
    pub(super) fn pc(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// An instruction of two or four bytes, as its low bits say. Of a longer
    /// encoding only four: that is how far the handlers skip.
    pub(super) fn put(&mut self, bits: u32) {
        let count = if bits & 3 == 3 { 4 } else { 2 };
        self.bytes.extend(bits.to_le_bytes().iter().take(count));
    }

    /// Four bytes whatever they mean.
    pub(super) fn word(&mut self, bits: u32) {
        self.bytes.extend_from_slice(&bits.to_le_bytes());
    }

    /// Fills up with nops; only code with compressed instructions is ever at
    /// an odd half.
    pub(super) fn align(&mut self, to: u64) {
        if !self.pc().is_multiple_of(4) {
            self.put(0x0001);
        }
        while !self.pc().is_multiple_of(to) {
            self.put(0x13);
        }
    }

    pub(super) fn addi(&mut self, rd: u32, rs1: u32, imm: i32) {
        self.put(asm::i_type(0x13, 0, rd, rs1, imm));
    }

    /// A load as wide as a register.
    pub(super) fn load(&mut self, rd: u32, rs1: u32, imm: i32) {
        let funct3 = if self.wide() { 3 } else { 2 };
        self.put(asm::i_type(0x03, funct3, rd, rs1, imm));
    }

    /// A store as wide as a register.
    pub(super) fn store(&mut self, rs2: u32, rs1: u32, imm: i32) {
        let funct3 = if self.wide() { 3 } else { 2 };
        self.put(asm::s_type(0x23, funct3, rs1, rs2, imm));
    }

    /// `csrrw`, `csrrs` or `csrrc` by funct3 1, 2, 3; or their immediate
    /// kinds, 5, 6, 7.
    pub(super) fn csr(&mut self, funct3: u32, rd: u32, csr: u32, source: u32) {
        self.put(asm::i_type(0x73, funct3, rd, source, csr as i32));
    }

    /// Any constant.
    pub(super) fn li(&mut self, rd: u32, value: u64) {
        if !self.wide() || value as i64 == i64::from(value as i32) {
            let value = value as u32;
            let high = value.wrapping_add(0x800) & 0xffff_f000;
            let low = value.wrapping_sub(high) as i32;
            if high != 0 {
                self.put(asm::lui(rd, high >> 12));
            }
            if high == 0 {
                self.addi(rd, 0, low);
            } else if self.wide() {
                self.put(asm::i_type(0x1b, 0, rd, rd, low));
            } else {
                self.addi(rd, rd, low);
            }
            return;
        }
        let low = ((value << 52) as i64 >> 52) as i32;
        let rest = value.wrapping_sub(low as u64);
        let zeros = rest.trailing_zeros().clamp(12, 63);
        self.li(rd, ((rest as i64) >> zeros) as u64);
        self.put(asm::i_type(0x13, 1, rd, rd, zeros as i32));
        self.addi(rd, rd, low);
    }

    /// An address near the program counter.
    pub(super) fn la(&mut self, rd: u32, address: u64) {
        let offset = address.wrapping_sub(self.pc()) as u32;
        let high = offset.wrapping_add(0x800) & 0xffff_f000;
        self.put(asm::auipc(rd, high >> 12));
        self.addi(rd, rd, offset.wrapping_sub(high) as i32);
    }

    pub(super) fn jal_to(&mut self, rd: u32, target: u64) {
        let offset = target.wrapping_sub(self.pc()) as i64;
        self.put(asm::jal(rd, offset));
    }

    pub(super) fn branch_to(&mut self, funct3: u32, rs1: u32, rs2: u32, target: u64) {
        let offset = target.wrapping_sub(self.pc()) as i64;
        self.put(asm::branch(funct3, rs1, rs2, offset));
    }

    fn hole(&mut self, kind: Kind) -> Hole {
        let at = self.bytes.len();
        match kind {
            Kind::Jal { .. } | Kind::Branch { .. } => self.put(0x13),
            Kind::ShortJump { .. } | Kind::ShortBranch { .. } => self.put(0x0001),
        }
        Hole { at, kind }
    }

    /// `jal rd, (here, later)`.
    pub(super) fn jal_ahead(&mut self, rd: u32) -> Hole {
        self.hole(Kind::Jal { rd })
    }

    pub(super) fn branch_ahead(&mut self, funct3: u32, rs1: u32, rs2: u32) -> Hole {
        self.hole(Kind::Branch { funct3, rs1, rs2 })
    }

    pub(super) fn short_jump_ahead(&mut self, link: bool) -> Hole {
        self.hole(Kind::ShortJump { link })
    }

    pub(super) fn short_branch_ahead(&mut self, not: bool, rs1: u32) -> Hole {
        self.hole(Kind::ShortBranch { not, rs1 })
    }

    /// Makes the jump go to the next instruction. One that does not reach so
    /// far stays a nop, which falls into what it was to skip: other code, but
    /// as good a test.
    pub(super) fn land(&mut self, hole: Hole) -> bool {
        let offset = (self.bytes.len() - hole.at) as i64;
        let (bits, reach) = match hole.kind {
            Kind::Jal { rd } => (asm::jal(rd, offset), 21),
            Kind::Branch { funct3, rs1, rs2 } => (asm::branch(funct3, rs1, rs2, offset), 13),
            Kind::ShortJump { link } => (asm::c_j(link, offset), 12),
            Kind::ShortBranch { not, rs1 } => (asm::c_branch(not, rs1, offset), 9),
        };
        let fits = asm::fits(offset, reach);
        if fits {
            let count = usize::from(length(bits as u16));
            let place = self.bytes.get_mut(hole.at..hole.at + count);
            for (to, from) in place.into_iter().flatten().zip(bits.to_le_bytes()) {
                *to = from;
            }
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::{Isa, Op, decode};

    /// What `li` leaves in the register.
    fn run(code: &Code) -> u64 {
        let mut value = 0u64;
        for chunk in code.bytes().chunks(4) {
            let bits = u32::from_le_bytes(chunk.try_into().unwrap());
            let inst = decode(bits, Isa::RV64GC);
            let imm = i64::from(inst.imm) as u64;
            let source = if inst.rs1.number() == 0 { 0 } else { value };
            value = match inst.op {
                Op::Lui => imm,
                Op::Addi => source.wrapping_add(imm),
                Op::Addiw => i64::from(source.wrapping_add(imm) as i32) as u64,
                Op::Slli => source << inst.imm,
                other => panic!("{other:?}"),
            };
        }
        value
    }

    #[test]
    fn constants_come_out() {
        let mut random = crate::generate::Random::new(5);
        for round in 0..2000u32 {
            let value = random.draw() >> (round % 64);
            for value in [value, !value, value << 12, 1 << (round % 64)] {
                let mut code = Code::new(0, Xlen::Rv64);
                code.li(5, value);
                assert_eq!(run(&code), value, "{value:#x}");
            }
        }
    }
}
