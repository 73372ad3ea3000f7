//! How long instructions take.
//!
//! The hart is not a model of any pipeline. It counts cycles by a table: a
//! fixed cost for each class of instruction, a penalty for control transfers
//! and one for traps. The same program takes the same cycles every time.
//!
//! | class | default | instructions |
//! |---|---|---|
//! | `integer` | 1 | arithmetic, logic, shifts, bit manipulation, fences, hints |
//! | `multiply` | 3 | `mul`, `mulh`, ..., carry-less products |
//! | `divide` | 20 | `div`, `rem`, ... |
//! | `load` | 2 | loads, floating-point ones too, `cm.pop` |
//! | `store` | 1 | stores, floating-point ones too, `cm.push`, `cbo...` |
//! | `branch` | 1 | conditional branches, taken or not |
//! | `jump` | 1 | `jal`, `jalr`, `cm.popret`, `cm.jt`, ... |
//! | `atomic` | 6 | `lr`, `sc`, `amo...` |
//! | `float` | 4 | additions, comparisons, conversions, moves |
//! | `float_multiply` | 5 | products and fused multiply-adds |
//! | `float_divide` | 20 | quotients |
//! | `float_sqrt` | 25 | square roots |
//! | `system` | 4 | CSR accesses, returns from traps, `wfi`, `wrs`, `fence.i`, `sfence.vma` and its parts |
//! | `taken` | 2 | added by a branch that is taken, by every jump and return from a trap |
//! | `trap` | 8 | added by every trap |

use hartrace_isa::Op;

/// Cycles per class of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the table above says what each is
pub struct Costs {
    pub integer: u8,
    pub multiply: u8,
    pub divide: u8,
    pub load: u8,
    pub store: u8,
    pub branch: u8,
    pub jump: u8,
    pub atomic: u8,
    pub float: u8,
    pub float_multiply: u8,
    pub float_divide: u8,
    pub float_sqrt: u8,
    pub system: u8,
    pub taken: u8,
    pub trap: u8,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            integer: 1,
            multiply: 3,
            divide: 20,
            load: 2,
            store: 1,
            branch: 1,
            jump: 1,
            atomic: 6,
            float: 4,
            float_multiply: 5,
            float_divide: 20,
            float_sqrt: 25,
            system: 4,
            taken: 2,
            trap: 8,
        }
    }
}

impl Costs {
    /// One cycle for every instruction and nothing else, as simulators
    /// without a notion of time count.
    pub const UNIT: Costs = Costs {
        integer: 1,
        multiply: 1,
        divide: 1,
        load: 1,
        store: 1,
        branch: 1,
        jump: 1,
        atomic: 1,
        float: 1,
        float_multiply: 1,
        float_divide: 1,
        float_sqrt: 1,
        system: 1,
        taken: 0,
        trap: 0,
    };

    /// The name and value of every entry, in the order of the table.
    #[must_use]
    pub fn entries(&self) -> [(&'static str, u8); 15] {
        [
            ("integer", self.integer),
            ("multiply", self.multiply),
            ("divide", self.divide),
            ("load", self.load),
            ("store", self.store),
            ("branch", self.branch),
            ("jump", self.jump),
            ("atomic", self.atomic),
            ("float", self.float),
            ("float_multiply", self.float_multiply),
            ("float_divide", self.float_divide),
            ("float_sqrt", self.float_sqrt),
            ("system", self.system),
            ("taken", self.taken),
            ("trap", self.trap),
        ]
    }

    /// The entry of this name.
    pub fn entry_mut(&mut self, name: &str) -> Option<&mut u8> {
        Some(match name {
            "integer" => &mut self.integer,
            "multiply" => &mut self.multiply,
            "divide" => &mut self.divide,
            "load" => &mut self.load,
            "store" => &mut self.store,
            "branch" => &mut self.branch,
            "jump" => &mut self.jump,
            "atomic" => &mut self.atomic,
            "float" => &mut self.float,
            "float_multiply" => &mut self.float_multiply,
            "float_divide" => &mut self.float_divide,
            "float_sqrt" => &mut self.float_sqrt,
            "system" => &mut self.system,
            "taken" => &mut self.taken,
            "trap" => &mut self.trap,
            _ => return None,
        })
    }

    /// The most that one instruction can take, traps aside.
    pub(crate) fn most(&self) -> u64 {
        let classes = self.entries();
        let most = classes.iter().take(13).map(|&(_, cost)| cost).max();
        u64::from(most.unwrap_or(1)) + u64::from(self.taken)
    }

    /// The cost of one instruction, without the penalty of a transfer.
    pub(crate) fn of(&self, op: Op) -> u8 {
        use Op::*;
        match op {
            Mul | Mulh | Mulhsu | Mulhu | Mulw | Clmul | Clmulh | Clmulr => self.multiply,
            Div | Divu | Rem | Remu | Divw | Divuw | Remw | Remuw => self.divide,
            Lb | Lh | Lw | Lbu | Lhu | Lwu | Ld | Flh | Flw | Fld => self.load,
            Sb | Sh | Sw | Sd | Fsh | Fsw | Fsd => self.store,
            CmPush | CboZero | CboInval | CboClean | CboFlush => self.store,
            CmPop => self.load,
            CmPopret | CmPopretz | CmJt | CmJalt => self.jump,
            Beq | Bne | Blt | Bge | Bltu | Bgeu => self.branch,
            Jal | Jalr => self.jump,
            WrsNto | WrsSto => self.system,
            op if (LrW..=AmocasH).contains(&op) => self.atomic,
            FmulH | FmaddH | FmsubH | FnmsubH | FnmaddH => self.float_multiply,
            FmulS | FmaddS | FmsubS | FnmsubS | FnmaddS => self.float_multiply,
            FmulD | FmaddD | FmsubD | FnmsubD | FnmaddD => self.float_multiply,
            FdivH | FdivS | FdivD => self.float_divide,
            FsqrtH | FsqrtS | FsqrtD => self.float_sqrt,
            Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci => self.system,
            Mret | Sret | Wfi | FenceI | SfenceVma | Ecall | Ebreak => self.system,
            SinvalVma | SfenceWInval | SfenceInvalIr => self.system,
            _ if op.is_float() => self.float,
            _ => self.integer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_do_not_cost_what_floating_point_does() {
        let costs = Costs {
            integer: 3,
            float: 5,
            system: 7,
            ..Costs::default()
        };
        assert_eq!(costs.of(Op::FaddD), 5);
        assert_eq!(costs.of(Op::Fence), 3);
        assert_eq!(costs.of(Op::FenceTso), 3);
        assert_eq!(costs.of(Op::FenceI), 7);
    }
}
