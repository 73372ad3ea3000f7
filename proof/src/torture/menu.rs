//! The instructions to choose from, sorted by what they need around them.

use hartrace_isa::{Encoding, Inst, Isa, Op, Short, decode, encodings};

use crate::generate::Random;

/// What kind of care an instruction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Integer registers to an integer register.
    Integer,
    /// Anything on floating-point registers.
    Float,
    /// Loads and stores.
    Memory,
    /// `amo*`.
    Amo,
    /// `lr` and `sc`.
    Reserve,
    /// Fences, which need nothing, and `wrs`, which the only hart does not wait in.
    Fence,
    /// `cbo.*`.
    Cache,
    /// Control flow, CSRs, traps: written by hand.
    Other,
}

/// What class an encoding is of.
fn class(e: &Encoding) -> Class {
    if matches!(e.short, Some(Short::CAddi16sp)) {
        return Class::Other;
    }
    match e.op {
        Op::Unimp | Op::Jal | Op::Jalr | Op::Ecall | Op::Ebreak => Class::Other,
        Op::Beq | Op::Bne | Op::Blt | Op::Bge | Op::Bltu | Op::Bgeu => Class::Other,
        Op::Fence | Op::FenceTso | Op::FenceI => Class::Fence,
        Op::WrsNto | Op::WrsSto => Class::Fence,
        Op::CboInval | Op::CboClean | Op::CboFlush | Op::CboZero => Class::Cache,
        Op::MopR | Op::MopRr => Class::Integer,
        op if op.name().starts_with("cm.") => Class::Other,
        Op::LrW | Op::LrD | Op::ScW | Op::ScD => Class::Reserve,
        op if width(op).is_some() => Class::Memory,
        _ => match e.value & 0x7f {
            _ if e.short.is_some() => Class::Integer,
            0x2f => Class::Amo,
            0x73 => Class::Other,
            0x43 | 0x47 | 0x4b | 0x4f | 0x53 => Class::Float,
            _ => Class::Integer,
        },
    }
}

/// How many bytes a load or a store moves.
pub(super) fn width(op: Op) -> Option<u32> {
    Some(match op {
        Op::Lb | Op::Lbu | Op::Sb => 1,
        Op::Lh | Op::Lhu | Op::Sh | Op::Flh | Op::Fsh => 2,
        Op::Lw | Op::Lwu | Op::Sw | Op::Flw | Op::Fsw => 4,
        Op::Ld | Op::Sd | Op::Fld | Op::Fsd => 8,
        Op::Flq | Op::Fsq => 16,
        _ => return None,
    })
}

/// Whether rd is an integer register.
pub(super) fn writes_integer(inst: &Inst) -> bool {
    let name = inst.op.name();
    let float = name.starts_with('f') && !name.starts_with("fence");
    let from_float = ["feq", "flt", "fle", "fclass", "fmv.x", "fmvh.x", "fcvtmod"];
    let to_integer = ["fcvt.w", "fcvt.l"];
    !float
        || from_float.iter().any(|p| name.starts_with(p))
        || to_integer.iter().any(|p| name.starts_with(p))
}

/// The second of the registers that a compare-and-swap writes, if there are two.
pub(super) fn second(inst: &Inst, wide: bool) -> Option<u8> {
    let pair = match inst.op {
        Op::AmocasQ => true,
        Op::AmocasD => !wide,
        _ => false,
    };
    (pair && inst.rd.number() != 0).then(|| inst.rd.number() + 1)
}

/// All instructions of an instruction set.
pub(super) struct Menu {
    isa: Isa,
    rows: Vec<(Class, Encoding)>,
}

impl Menu {
    pub(super) fn new(isa: Isa) -> Menu {
        let rows = encodings(isa).map(|e| (class(&e), e)).collect();
        Menu { isa, rows }
    }

    /// Whether there is anything of the class.
    pub(super) fn has(&self, class: Class) -> bool {
        self.rows.iter().any(|(c, _)| *c == class)
    }

    /// One instruction of the class, with random operands that please.
    pub(super) fn pick(
        &self,
        random: &mut Random,
        class: Class,
        mut pleases: impl FnMut(&Inst) -> bool,
    ) -> Option<Inst> {
        let rows = || self.rows.iter().filter(|(c, _)| *c == class);
        let count = rows().count() as u64;
        for _ in 0..20 {
            let (_, row) = rows().nth(random.below(count) as usize)?;
            if let Some(inst) = self.fill(random, row, &mut pleases) {
                return Some(inst);
            }
        }
        None
    }

    /// Random operands for one encoding.
    fn fill(
        &self,
        random: &mut Random,
        row: &Encoding,
        mut pleases: impl FnMut(&Inst) -> bool,
    ) -> Option<Inst> {
        // A rounding mode where the mask leaves funct3 open.
        let rounds = row.short.is_none()
            && matches!(row.value & 0x7f, 0x43 | 0x47 | 0x4b | 0x4f | 0x53)
            && row.mask & 0x7000 == 0;
        for _ in 0..100 {
            let mut bits = row.value | random.draw() as u32 & row.open();
            if rounds {
                let fixed = random.below32(5);
                let mode = random.weighted(&[(50, 7), (45, fixed), (3, 5), (2, 6)]);
                bits = bits & !0x7000 | mode << 12;
            }
            // Operands that are the same register, now and then.
            if row.short.is_none() && row.mask & 0x01f0_0000 == 0 && random.chance(60) {
                bits = bits & !(31 << 20) | (bits >> 15 & 31) << 20;
            }
            let inst = decode(bits, self.isa);
            if inst.op == row.op && inst.short == row.short && pleases(&inst) {
                return Some(inst);
            }
        }
        None
    }
}
