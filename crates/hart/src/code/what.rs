//! What the interpreter can do.

use hartrace_isa::{Inst, Op, Reg};

use crate::exec::bits;

/// Declares [`Do`]: the instructions that are done under their own names, what
/// is done in another way, and the pairs.
macro_rules! what {
    (
        same { $($same:ident)+ }
        other { $($(#[$doc:meta])+ $other:ident)+ }
        pairs { $($pair:ident = $first:ident $second:ident;)+ }
    ) => {
        /// What the interpreter does for an instruction: a dense list, so that
        /// one jump table finds it. What is rare shares an entry.
        ///
        /// Jumping costs more than doing. Two instructions that often follow
        /// each other are a pair, which is done with one jump.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Do {
            $($same,)+
            $($(#[$doc])+ $other,)+
            $($pair,)+
        }

        impl Do {
            /// What has an instruction's own name.
            fn named(op: Op) -> Option<Do> {
                match op {
                    $(Op::$same => Some(Do::$same),)+
                    _ => None,
                }
            }

            /// The first of a pair; what is no pair is the same.
            #[inline(always)]
            pub(crate) fn alone(self) -> Do {
                match self {
                    $(Do::$pair => Do::$first,)+
                    alone => alone,
                }
            }

            /// The pair these two make, if it is a common one.
            pub(super) fn pair(self, next: Do) -> Option<Do> {
                match (self, next) {
                    $((Do::$first, Do::$second) => Some(Do::$pair),)+
                    _ => None,
                }
            }
        }
    };
}

// The pairs are those that many programs execute most often.
what! {
same {
    Addi Add Sub Auipc And Or Xor Andi Ori Xori Slt Sltu Slti Sltiu Slli Srli Srai Sll
    Srl Sra Addiw Addw Subw Slliw Srliw Sraiw Sllw Srlw Sraw Lb Lbu Lh Lhu Lw Lwu Ld Sb
    Sh Sw Sd Beq Bne Blt Bge Bltu Bgeu Jal Jalr Mul Mulh Mulhsu Mulhu Mulw Div Divu Rem
    Remu Divw Divuw Remw Remuw Flh Flw Fld
}
other {
    /// rd = imm: `lui`, `addi` from x0, and may-be-operations.
    Li
    /// rd = rs1.
    Mv
    /// Stores of floating-point registers.
    FStore
    /// Fences and hints.
    Nothing
    /// Bit manipulation.
    Bits
    /// Floating-point arithmetic.
    Float
    /// Atomics, operations on cache blocks, `cm.push` and its kin.
    Rare
    /// A return with registers from the stack: `cm.popret`, `cm.popretz`.
    PopReturn
    /// A jump through the table: `cm.jt`, `cm.jalt`.
    Table
    /// What concerns the whole hart.
    System
    /// What does not exist.
    Illegal
}
pairs {
    SlliAdd = Slli Add; SlliAddi = Slli Addi; SlliSrli = Slli Srli;
    SlliSlli = Slli Slli; AddAdd = Add Add; AddAddi = Add Addi; AddSlli = Add Slli;
    AddLw = Add Lw; AddLd = Add Ld; AddLbu = Add Lbu; AddBne = Add Bne;
    AddBltu = Add Bltu; AddJal = Add Jal; AddiAdd = Addi Add; AddiAddi = Addi Addi;
    AddiMv = Addi Mv; AddiSlli = Addi Slli; AddiAddiw = Addi Addiw; AddiSb = Addi Sb;
    AddiSw = Addi Sw; AddiSd = Addi Sd; AddiBne = Addi Bne; AddiBeq = Addi Beq;
    AddiBlt = Addi Blt; AddiBltu = Addi Bltu; AddiJal = Addi Jal; AddiJalr = Addi Jalr;
    MvMv = Mv Mv; MvAddi = Mv Addi; MvJal = Mv Jal; AddiwAddi = Addiw Addi;
    AddiwAddiw = Addiw Addiw; AddiwXor = Addiw Xor; AddiwBne = Addiw Bne;
    AndiAddiw = Andi Addiw; AndiXor = Andi Xor; SrliwAndi = Srliw Andi;
    SrliwBeq = Srliw Beq; XorSrliw = Xor Srliw; LbuAddi = Lbu Addi; LbuLbu = Lbu Lbu;
    LwLw = Lw Lw; LwAdd = Lw Add; LwAddi = Lw Addi; LdLd = Ld Ld; LdAddi = Ld Addi;
    SbBne = Sb Bne; SwAddi = Sw Addi; SwAdd = Sw Add; SdSd = Sd Sd; SdLd = Sd Ld;
    SdAddi = Sd Addi; LiLi = Li Li; LiBeq = Li Beq; LbuBeq = Lbu Beq; AndiBne = Andi Bne;
    AuipcJalr = Auipc Jalr; SrliwSlliw = Srliw Slliw; SlliwOr = Slliw Or;
    OrAddw = Or Addw; XorAddw = Xor Addw; AddwAddw = Addw Addw; AddwSrliw = Addw Srliw;
}
}

impl Do {
    pub(super) fn of(inst: &Inst) -> Do {
        use Op as O;
        match inst.op {
            O::Lui | O::MopR | O::MopRr => return Do::Li,
            O::Addi if inst.rs1 == Reg::ZERO => return Do::Li,
            O::Addi if inst.imm == 0 => return Do::Mv,
            _ => {}
        }
        if let Some(same) = Do::named(inst.op) {
            return same;
        }
        match inst.op {
            O::Fsh | O::Fsw | O::Fsd => Do::FStore,
            O::Fence | O::FenceTso | O::Pause => Do::Nothing,
            O::PrefetchI | O::PrefetchR | O::PrefetchW | O::CMop => Do::Nothing,
            O::NtlP1 | O::NtlPall | O::NtlS1 | O::NtlAll => Do::Nothing,
            O::Csrrw | O::Csrrs | O::Csrrc | O::Csrrwi | O::Csrrsi | O::Csrrci => Do::System,
            O::Ecall | O::Ebreak | O::Mret | O::Sret | O::Wfi => Do::System,
            O::FenceI | O::SfenceVma | O::Sctrclr => Do::System,
            O::SinvalVma | O::SfenceWInval | O::SfenceInvalIr => Do::System,
            O::WrsNto | O::WrsSto => Do::System,
            O::CmPopret | O::CmPopretz => Do::PopReturn,
            O::CmJt | O::CmJalt => Do::Table,
            op if bits::is_bits(op) => Do::Bits,
            op if op.is_float() => Do::Float,
            op if is_rare(op) => Do::Rare,
            _ => Do::Illegal,
        }
    }

    /// Whether the next instruction in memory may not follow it, or it
    /// concerns more than registers and memory.
    pub(super) fn ends_block(self) -> bool {
        matches!(
            self,
            Do::Jal | Do::Jalr | Do::PopReturn | Do::Table | Do::System | Do::Illegal
        )
    }
}

/// Whether an instruction is one of [`Do::Rare`].
fn is_rare(op: Op) -> bool {
    (Op::LrW..=Op::AmocasH).contains(&op)
        || (Op::CboInval..=Op::CboZero).contains(&op)
        || (Op::CmMvsa01..=Op::CmPop).contains(&op)
}
