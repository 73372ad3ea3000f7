//! Decodes bits into an instruction.

use crate::op::{Format, ROWS, Row, SHORT_ROWS, Short16, ShortRow, allowed};
use crate::{Isa, Op, Reg, Short, Xlen, length};

/// One decoded instruction, sixteen bytes.
///
/// Register fields hold the number of an integer or of a floating-point
/// register as the op asks, and x0 where it has no such operand. Vector
/// registers have methods of their own, such as [`Inst::vd`].
///
/// ```
/// use hartrace_isa::{Isa, Op, Reg, decode};
///
/// // c.addi16sp sp,-64
/// let inst = decode(0x7139, Isa::RV64GC);
/// assert_eq!((inst.op, inst.rd, inst.rs1), (Op::Addi, Reg::SP, Reg::SP));
/// assert_eq!((inst.imm, inst.len), (-64, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    /// The encoding: 16 or 32 bits; the first 32 of something longer.
    pub bits: u32,
    /// The immediate, sign-extended: an addend, an offset in bytes, a shift
    /// amount, the upper immediate already shifted, the five bits of `csrrwi`,
    /// the fields fm, pred and succ of `fence`, a table index, the vtype of
    /// `vsetvli`.
    pub imm: i32,
    /// What it does.
    pub op: Op,
    /// Destination.
    pub rd: Reg,
    /// First source.
    pub rs1: Reg,
    /// Second source.
    pub rs2: Reg,
    /// Length in bytes, also for what is not decoded.
    pub len: u8,
    /// The compressed instruction it was, if it was one.
    pub short: Option<Short>,
}

impl Inst {
    const fn unknown(bits: u32, len: u8) -> Inst {
        Inst {
            bits,
            imm: 0,
            op: Op::Unknown,
            rd: Reg::ZERO,
            rs1: Reg::ZERO,
            rs2: Reg::ZERO,
            len,
            short: None,
        }
    }

    /// Third source of the fused multiply-adds.
    #[must_use]
    pub const fn rs3(self) -> Reg {
        Reg::new(self.bits >> 27)
    }

    /// The CSR number of a Zicsr instruction.
    #[must_use]
    pub const fn csr(self) -> u16 {
        (self.bits >> 20) as u16
    }

    /// The rounding-mode field of a floating-point instruction; 7 asks for the
    /// dynamic mode, 5 and 6 are reserved.
    #[must_use]
    pub const fn rm(self) -> u8 {
        (self.bits >> 12) as u8 & 7
    }

    /// Acquire ordering, of an atomic.
    #[must_use]
    pub const fn aq(self) -> bool {
        self.bits >> 26 & 1 != 0
    }

    /// Release ordering, of an atomic.
    #[must_use]
    pub const fn rl(self) -> bool {
        self.bits >> 25 & 1 != 0
    }

    /// The vector register in the place of rd: the destination, or the data of
    /// a store.
    #[must_use]
    pub const fn vd(self) -> u8 {
        (self.bits >> 7) as u8 & 31
    }

    /// The vector register in the place of rs1.
    #[must_use]
    pub const fn vs1(self) -> u8 {
        (self.bits >> 15) as u8 & 31
    }

    /// The vector register in the place of rs2.
    #[must_use]
    pub const fn vs2(self) -> u8 {
        (self.bits >> 20) as u8 & 31
    }

    /// Whether a vector instruction is unmasked; where it is not, v0 is the mask.
    #[must_use]
    pub const fn vm(self) -> bool {
        self.bits >> 25 & 1 != 0
    }

    /// The `nf` field of a vector load or store: the fields of a segment, less
    /// one.
    #[must_use]
    pub const fn nf(self) -> u8 {
        (self.bits >> 29) as u8
    }

    /// The register list of `cm.push` and its family: 4 is ra alone, 5 adds
    /// s0, ..., 14 adds s9, and 15 adds s10 and s11.
    #[must_use]
    pub const fn rlist(self) -> u8 {
        (self.bits >> 4) as u8 & 15
    }
}

/// Decodes the instruction in the low bits of `bits`. Total: what the
/// instruction set does not have is [`Op::Unknown`] with its length.
#[must_use]
pub fn decode(bits: u32, isa: Isa) -> Inst {
    let len = length(bits as u16);
    match len {
        2 => decode_short(bits as u16, isa),
        4 => decode_full(bits, isa),
        _ => Inst::unknown(bits, len),
    }
}

/// Buckets of the index: major opcode and funct3; for OP-FP, where funct3 is
/// mostly a rounding mode, funct7; for vector arithmetic, where funct3 is the
/// kind of operands, funct6.
const KEYS: usize = 32 * 8 + 128 + 64;
const OP_FP: u32 = 0x14;
const OP_V: u32 = 0x15;
const OP_VE: u32 = 0x1d;

#[inline]
const fn key(bits: u32) -> usize {
    let (major, funct3) = (bits >> 2 & 31, bits >> 12 & 7);
    match major {
        OP_FP => 256 + (bits >> 25) as usize,
        // The `vsetvli` family, under 7, has no funct6.
        OP_V | OP_VE if funct3 != 7 => 384 + (bits >> 26) as usize,
        _ => (major << 3 | funct3) as usize,
    }
}

/// How often and how far apart a row stands in the index: once, or once per
/// funct3 when its mask leaves funct3 open.
const fn spread(row: &Row) -> usize {
    if row.value >> 2 & 31 != OP_FP && row.mask & 0x7000 == 0 {
        8
    } else {
        1
    }
}

// Evaluated by the compiler, where a bad index is a build error.
#[allow(clippy::indexing_slicing)]
const fn entries() -> usize {
    let (mut i, mut n) = (0, 0);
    while i < ROWS.len() {
        n += spread(&ROWS[i]);
        i += 1;
    }
    n
}

/// What the search needs of a row, side by side in memory.
#[derive(Clone, Copy)]
struct Entry {
    mask: u32,
    value: u32,
    row: u16,
}

struct Index {
    /// Entries of key k are `entries[start[k]..start[k + 1]]`.
    start: [u16; KEYS + 1],
    entries: [Entry; entries()],
}

/// Whether `a` takes some of the encodings of `b`: a hint, a may-be-operation
/// with a meaning, a special case with its own name.
const fn refines(a: Entry, b: Entry) -> bool {
    a.mask.count_ones() > b.mask.count_ones() && (a.value ^ b.value) & a.mask & b.mask == 0
}

/// Rows of a key are in the order of the tables, which have the common
/// instructions first, but for those that refine another: they come before
/// all others, the narrowest first.
// Evaluated by the compiler, where a bad index is a build error.
#[allow(clippy::indexing_slicing)]
static TABLE: Index = {
    let mut start = [0u16; KEYS + 1];
    let mut i = 0;
    while i < ROWS.len() {
        let mut n = 0;
        while n < spread(&ROWS[i]) {
            start[key(ROWS[i].value) + n + 1] += 1;
            n += 1;
        }
        i += 1;
    }
    let mut k = 0;
    while k < KEYS {
        start[k + 1] += start[k];
        k += 1;
    }
    let none = Entry {
        mask: 0,
        value: 0,
        row: 0,
    };
    let mut entries = [none; entries()];
    let mut fill = start;
    let mut i = 0;
    while i < ROWS.len() {
        let mut n = 0;
        while n < spread(&ROWS[i]) {
            let k = key(ROWS[i].value) + n;
            entries[fill[k] as usize] = Entry {
                mask: ROWS[i].mask,
                value: ROWS[i].value,
                row: i as u16,
            };
            fill[k] += 1;
            n += 1;
        }
        i += 1;
    }
    let mut k = 0;
    while k < KEYS {
        refinements_first(&mut entries, start[k] as usize, start[k + 1] as usize);
        k += 1;
    }
    Index { start, entries }
};

/// Reorders one key's entries.
// Evaluated by the compiler, where a bad index is a build error.
#[allow(clippy::indexing_slicing)]
const fn refinements_first(entries: &mut [Entry], from: usize, to: usize) {
    let (mut front, mut j) = (from, from);
    while j < to {
        let entry = entries[j];
        let (mut i, mut special) = (from, false);
        while i < to {
            special |= refines(entry, entries[i]);
            i += 1;
        }
        if special {
            let mut at = from;
            while at < front && entries[at].mask.count_ones() >= entry.mask.count_ones() {
                at += 1;
            }
            let mut back = j;
            while back > at {
                entries[back] = entries[back - 1];
                back -= 1;
            }
            entries[at] = entry;
            front += 1;
        }
        j += 1;
    }
}

fn decode_full(bits: u32, isa: Isa) -> Inst {
    let k = key(bits);
    let range = match (TABLE.start.get(k), TABLE.start.get(k + 1)) {
        (Some(&from), Some(&to)) => usize::from(from)..usize::from(to),
        _ => 0..0,
    };
    TABLE
        .entries
        .get(range)
        .unwrap_or_default()
        .iter()
        .filter(|entry| bits & entry.mask == entry.value)
        .filter_map(|entry| ROWS.get(usize::from(entry.row)))
        .find(|row| allowed(row.xlen, row.need, isa) && !reserved(bits, row, isa))
        .map_or(Inst::unknown(bits, 4), |row| full_operands(bits, row))
}

/// Operand values for which the encoding means something else or nothing.
fn reserved(bits: u32, row: &Row, isa: Isa) -> bool {
    let odd = |shift: u32| bits >> shift & 1 != 0;
    match row.format {
        Format::Shift => isa.xlen() == Xlen::Rv32 && odd(25),
        // Register pairs start at an even register.
        Format::Amo => match row.op {
            Op::AmocasQ => odd(7) || odd(20),
            Op::AmocasD => isa.xlen() == Xlen::Rv32 && (odd(7) || odd(20)),
            _ => false,
        },
        // The shadow stack takes x1 and x5 only.
        Format::Rs1 => !Reg::new(bits >> 15).is_link(),
        Format::Rs2 => !Reg::new(bits >> 20).is_link(),
        Format::Rd => Reg::new(bits >> 7) == Reg::ZERO,
        Format::Rnum => bits >> 20 & 15 > 10,
        _ => false,
    }
}

fn full_operands(bits: u32, row: &Row) -> Inst {
    let mut inst = Inst::unknown(bits, 4);
    inst.op = row.op;
    let (rd, rs1, rs2) = (
        Reg::new(bits >> 7),
        Reg::new(bits >> 15),
        Reg::new(bits >> 20),
    );
    let i_imm = (bits as i32) >> 20;
    let s_imm = (bits as i32) >> 25 << 5 | (bits >> 7 & 31) as i32;
    let (d, s, t, imm) = match row.format {
        Format::None => (false, false, false, 0),
        Format::U => (true, false, false, (bits & 0xffff_f000) as i32),
        Format::J => (true, false, false, crate::flow::jump_offset(bits)),
        Format::B => (false, true, true, crate::flow::branch_offset(bits)),
        Format::Jalr | Format::Load | Format::I | Format::FLoad => (true, true, false, i_imm),
        Format::Store | Format::FStore => (false, true, true, s_imm),
        Format::Shift => (true, true, false, i_imm & 63),
        Format::ShiftW => (true, true, false, i_imm & 31),
        Format::Fence => (true, true, false, i_imm & 0xfff),
        Format::Csr => (true, true, false, 0),
        Format::CsrI => (true, false, false, rs1.number().into()),
        Format::R | Format::Amo | Format::F2 | Format::F2Rm | Format::F3Rm => (true, true, true, 0),
        Format::Xff | Format::Fxx => (true, true, true, 0),
        Format::Bs => (true, true, true, i_imm >> 10 & 3),
        Format::Rnum => (true, true, false, i_imm & 15),
        Format::MopR => (true, true, false, mop_number(bits, 2)),
        Format::MopRr => (true, true, true, mop_number(bits, 0)),
        Format::R1 | Format::Lr | Format::LoadReg | Format::F1Rm => (true, true, false, 0),
        Format::XF | Format::XFRm | Format::XFRtz | Format::FX | Format::FXRm => {
            (true, true, false, 0)
        }
        Format::F1Exact | Format::FXExact => (true, true, false, 0),
        Format::Fli => (true, false, false, rs1.number().into()),
        Format::Fences | Format::StoreReg => (false, true, true, 0),
        Format::Block | Format::Rs1 => (false, true, false, 0),
        Format::Prefetch => (false, true, false, s_imm & !31),
        Format::Lpad => (false, false, false, (bits >> 12) as i32),
        Format::Rd | Format::XV | Format::FV => (true, false, false, 0),
        Format::Rs2 => (false, false, true, 0),
        Format::Vsetvli => (true, true, false, i_imm & 0x7ff),
        Format::Vsetivli => (true, false, false, i_imm & 0x3ff),
        Format::VStride => (false, true, true, 0),
        Format::VUnit | Format::VIndex | Format::VWhole => (false, true, false, 0),
        Format::VX | Format::VAccumulateX | Format::VCarryX | Format::VMoveX => {
            (false, true, false, 0)
        }
        Format::VF | Format::VAccumulateF | Format::VCarryF | Format::VMoveF => {
            (false, true, false, 0)
        }
        Format::VV | Format::VAccumulateV | Format::VCarryV | Format::VMoveV => {
            (false, false, false, 0)
        }
        Format::V1 | Format::V2 => (false, false, false, 0),
        Format::VI | Format::VCarryI | Format::VMoveI => {
            (false, false, false, (bits << 12) as i32 >> 27)
        }
        Format::VU => (false, false, false, rs1.number().into()),
        Format::VU6 => (
            false,
            false,
            false,
            (bits >> 21 & 32 | bits >> 15 & 31) as i32,
        ),
    };
    inst.rd = if d { rd } else { Reg::ZERO };
    inst.rs1 = if s { rs1 } else { Reg::ZERO };
    inst.rs2 = if t { rs2 } else { Reg::ZERO };
    inst.imm = imm;
    inst
}

/// Bits 30 and 27:26 of a may-be-operation, and for the one-source kind 21:20
/// below them.
const fn mop_number(bits: u32, low: u32) -> i32 {
    let high = bits >> 30 & 1;
    let middle = bits >> 26 & 3;
    let tail = bits >> 20 & ((1 << low) - 1);
    ((high << 2 | middle) << low | tail) as i32
}

fn decode_short(bits: u16, isa: Isa) -> Inst {
    // Quadrant and funct3 choose a handful of neighbouring rows.
    let k = usize::from(bits & 3) * 8 + usize::from(bits >> 13);
    let range = match (SHORT_START.get(k), SHORT_START.get(k + 1)) {
        (Some(&from), Some(&to)) => usize::from(from)..usize::from(to),
        _ => 0..0,
    };
    SHORT_ROWS
        .get(range)
        .unwrap_or_default()
        .iter()
        .filter(|row| bits & row.mask == row.value && allowed(row.xlen, row.need, isa))
        .find_map(|row| short_operands(bits, row, isa))
        .unwrap_or(Inst::unknown(bits.into(), 2))
}

/// [`SHORT_ROWS`] is in the order of quadrant and funct3; this says where each
/// pair starts.
// Evaluated by the compiler, where a bad index is a build error.
#[allow(clippy::indexing_slicing)]
static SHORT_START: [u8; 33] = {
    let mut start = [0u8; 33];
    let (mut i, mut last) = (0, 0);
    while i < SHORT_ROWS.len() {
        let value = SHORT_ROWS[i].value;
        let k = (value & 3) as usize * 8 + (value >> 13) as usize;
        assert!(k >= last, "a row out of order");
        last = k;
        let mut later = k + 1;
        while later < 33 {
            start[later] = i as u8 + 1;
            later += 1;
        }
        i += 1;
    }
    start
};

/// Bits `from..=to` of a compressed instruction, moved to `at`.
const fn field(bits: u16, to: u32, from: u32, at: u32) -> i32 {
    (((bits >> from) as i32) & ((1 << (to - from + 1)) - 1)) << at
}

/// The immediate of a compressed instruction, in bytes where it is an offset.
fn short_imm(bits: u16, row: &ShortRow, isa: Isa) -> i32 {
    use Short16 as S;
    let f = |to, from, at| field(bits, to, from, at);
    let imm6 = f(6, 2, 0) - f(12, 12, 5);
    match row.format {
        S::Nop | S::AddImm | S::AddImmW | S::LoadImm | S::ImmS => imm6,
        S::Addi4spn => f(12, 11, 4) | f(10, 7, 6) | f(6, 6, 2) | f(5, 5, 3),
        S::Addi16sp => (f(6, 6, 4) | f(5, 5, 6) | f(4, 3, 7) | f(2, 2, 5)) - f(12, 12, 9),
        S::LoadUpper => imm6 << 12,
        S::ShiftS | S::Shift => imm6 & 63,
        S::LoadB | S::StoreB => f(6, 6, 0) | f(5, 5, 1),
        S::LoadH | S::StoreH => f(5, 5, 1),
        S::LoadW | S::StoreW => f(12, 10, 3) | f(6, 6, 2) | f(5, 5, 6),
        S::LoadD | S::StoreD => f(12, 10, 3) | f(6, 5, 6),
        S::LoadSpW | S::LoadSpWNz => f(12, 12, 5) | f(6, 4, 2) | f(3, 2, 6),
        S::LoadSpD | S::LoadSpDNz => f(12, 12, 5) | f(6, 5, 3) | f(4, 2, 6),
        S::StoreSpW => f(12, 9, 2) | f(8, 7, 6),
        S::StoreSpD => f(12, 10, 3) | f(9, 7, 6),
        S::Jump | S::JumpLink => crate::flow::c_jump_offset(bits.into()),
        S::Branch => crate::flow::c_branch_offset(bits.into()),
        S::Mop => f(10, 7, 0),
        S::Table => f(9, 2, 0),
        S::Stack if row.op == Op::CmPush => -stack_adjust(bits, isa.xlen()),
        S::Stack => stack_adjust(bits, isa.xlen()),
        S::ZextB => 255,
        S::Not => -1,
        S::None | S::Sspush | S::Sspopchk | S::Arith | S::Unary => 0,
        S::Jr | S::JalrLink | S::Move | S::Add | S::MovePair => 0,
    }
}

/// rd, rs1 and rs2 of what a compressed instruction stands for.
fn short_registers(bits: u16, format: Short16) -> (Reg, Reg, Reg) {
    use Short16 as S;
    let wide = u32::from(bits);
    let zero = Reg::ZERO;
    // Five-bit fields, and three-bit ones that name x8 to x15.
    let (rd, rs2) = (Reg::new(wide >> 7), Reg::new(wide >> 2));
    let (high, low) = (Reg::new(8 + (wide >> 7 & 7)), Reg::new(8 + (wide >> 2 & 7)));
    match format {
        S::None | S::Nop | S::Mop | S::Jump | S::Table | S::Stack => (zero, zero, zero),
        S::Addi4spn => (low, Reg::SP, zero),
        S::Addi16sp => (Reg::SP, Reg::SP, zero),
        S::LoadB | S::LoadH | S::LoadW | S::LoadD => (low, high, zero),
        S::StoreB | S::StoreH | S::StoreW | S::StoreD => (zero, high, low),
        S::AddImm | S::AddImmW | S::Shift => (rd, rd, zero),
        S::LoadImm | S::LoadUpper => (rd, zero, zero),
        S::ShiftS | S::ImmS | S::ZextB | S::Not | S::Unary => (high, high, zero),
        S::Arith => (high, high, low),
        S::JumpLink => (Reg::RA, zero, zero),
        S::Branch => (zero, high, zero),
        S::LoadSpW | S::LoadSpWNz | S::LoadSpD | S::LoadSpDNz => (rd, Reg::SP, zero),
        S::StoreSpW | S::StoreSpD => (zero, Reg::SP, rs2),
        S::Jr | S::Sspopchk => (zero, rd, zero),
        S::Sspush => (zero, zero, rd),
        S::JalrLink => (Reg::RA, rd, zero),
        S::Move => (rd, zero, rs2),
        S::Add => (rd, rd, rs2),
        S::MovePair => (zero, saved(wide >> 7), saved(wide >> 2)),
    }
}

/// What the row expands to; `None` for reserved operand values.
fn short_operands(bits: u16, row: &ShortRow, isa: Isa) -> Option<Inst> {
    use Short16 as S;
    let imm = short_imm(bits, row, isa);
    let (rd, rs1, rs2) = short_registers(bits, row.format);
    let reserved = match row.format {
        S::Addi4spn | S::Addi16sp | S::LoadUpper => imm == 0,
        S::AddImmW | S::LoadSpWNz | S::LoadSpDNz => rd == Reg::ZERO,
        S::Jr | S::JalrLink => rs1 == Reg::ZERO,
        S::Move | S::Add => rs2 == Reg::ZERO,
        S::ShiftS | S::Shift => imm >= isa.xlen().bits() as i32,
        // Moving both arguments into one register.
        S::MovePair => row.op == Op::CmMvsa01 && rs1 == rs2,
        // Register lists for a calling convention yet to come.
        S::Stack => bits >> 4 & 15 < 4,
        _ => false,
    };
    (!reserved).then_some(Inst {
        bits: bits.into(),
        imm,
        op: row.op,
        rd,
        rs1,
        rs2,
        len: 2,
        short: Some(row.short),
    })
}

/// The saved register of a three-bit field: s0, s1, then s2 to s7.
const fn saved(field: u32) -> Reg {
    let n = field & 7;
    Reg::new(if n < 2 { 8 + n } else { 16 + n })
}

/// Bytes that `cm.push` and its family move sp by: the registers, rounded up
/// to 16, and up to 48 more.
fn stack_adjust(bits: u16, xlen: Xlen) -> i32 {
    let rlist = i32::from(bits >> 4 & 15);
    let registers = if rlist == 15 { 13 } else { rlist - 3 };
    let bytes = registers * xlen.bits() as i32 / 8;
    ((bytes + 15) & !15) + field(bits, 3, 2, 4)
}

#[cfg(test)]
mod tests;
