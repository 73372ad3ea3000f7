//! Addresses formed by two instructions together.

use crate::{Inst, Op, Reg, Short, Xlen};

/// Remembers what `lui` and `auipc` put where, so that the instruction that
/// completes the address can be written with it: `ld a0,24(a5) # 12018 <x>`.
///
/// The rules are objdump's and look at nothing but the order of instructions
/// in memory: a value holds until its register is used once as a base.
#[derive(Clone, Copy, Debug)]
pub struct Tracker {
    high: [Option<u64>; 32],
    global_pointer: Option<u64>,
    xlen: Xlen,
}

const GP: Reg = Reg::new(3);
const TP: Reg = Reg::new(4);

impl Tracker {
    /// Nothing known but, perhaps, the value of `__global_pointer$`.
    #[must_use]
    pub const fn new(xlen: Xlen, global_pointer: Option<u64>) -> Tracker {
        Tracker {
            high: [None; 32],
            global_pointer,
            xlen,
        }
    }

    /// Takes the next instruction, at `pc`, and gives the address it
    /// completes. With `aliases` off, `mv` and `sext.w` are additions too.
    pub fn note(&mut self, inst: &Inst, pc: u64, aliases: bool) -> Option<u64> {
        let imm = i64::from(inst.imm);
        match inst.op {
            Op::Lui => self.set(inst.rd, imm as u64),
            Op::Auipc => self.set(inst.rd, pc.wrapping_add_signed(imm)),
            _ => {}
        }
        let address = match (inst.op, inst.short) {
            (Op::Addi, Some(Short::CAddi)) if inst.rd != Reg::ZERO => self.base(inst)?,
            (Op::Addi, None) if inst.rs1 != Reg::ZERO && !(aliases && inst.imm == 0) => {
                self.base(inst)?
            }
            (Op::Addiw, None | Some(Short::CAddiw))
                if inst.rs1 != Reg::ZERO && !(aliases && inst.imm == 0) =>
            {
                self.base(inst)? as i32 as i64 as u64
            }
            (Op::Jalr, None) if !(aliases && is_return(inst)) => {
                // Written as offset(base), objdump asks twice, and the second
                // answer, of gp, tp or zero, counts.
                let first = self.base(inst);
                let again = inst.imm != 0 || !aliases;
                let second = if again { self.base(inst) } else { None };
                second.or(first)?
            }
            (op, None) if has_offset(op) => self.base(inst)?,
            _ => return None,
        };
        Some(self.xlen.wrap(address))
    }

    fn set(&mut self, reg: Reg, value: u64) {
        if let Some(slot) = self.high.get_mut(usize::from(reg.number())) {
            *slot = Some(value);
        }
    }

    /// The base register plus the immediate, if the base is known.
    fn base(&mut self, inst: &Inst) -> Option<u64> {
        let slot = self.high.get_mut(usize::from(inst.rs1.number()))?;
        let base = match slot.take() {
            Some(high) if inst.rs1 != Reg::ZERO => high,
            Some(_) => 0,
            None if inst.rs1 == GP && self.global_pointer.is_some() => self.global_pointer?,
            None if inst.rs1 == TP || inst.rs1 == Reg::ZERO => 0,
            None => return None,
        };
        Some(base.wrapping_add_signed(inst.imm.into()))
    }
}

fn is_return(inst: &Inst) -> bool {
    inst.rd == Reg::ZERO && inst.rs1 == Reg::RA && inst.imm == 0
}

/// Loads and stores with an offset.
fn has_offset(op: Op) -> bool {
    use crate::op::Format;
    matches!(
        op.format(),
        Format::Load | Format::Store | Format::FLoad | Format::FStore
    )
}
