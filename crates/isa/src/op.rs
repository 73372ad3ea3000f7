//! The instructions: one row each, from which the decoder, the names and the
//! operand lists are derived.
//!
//! Masks and matches are those of the ratified manuals. Fields that hardware
//! must ignore (`fence` and `fence.i` fields, the rounding mode of exact
//! conversions) are not in the masks.

#[macro_use]
mod integer;
#[macro_use]
mod atomic;
#[macro_use]
mod bits;
#[macro_use]
mod float;
#[macro_use]
mod privileged;
#[macro_use]
mod vector;
#[macro_use]
mod vector_float;
#[macro_use]
mod vector_crypto;
#[macro_use]
mod compressed;

use crate::{Ext, Isa, Xlen};

/// Which fields of a 32-bit instruction are operands, and the order in which
/// text names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(crate) enum Format {
    /// No operands.
    None,
    /// rd, upper immediate.
    U,
    /// rd, target.
    J,
    /// rd, offset(rs1), a jump.
    Jalr,
    /// rs1, rs2, target.
    B,
    /// rd, offset(rs1).
    Load,
    /// rs2, offset(rs1).
    Store,
    /// rd, rs1, immediate.
    I,
    /// rd, rs1, shift amount below XLEN.
    Shift,
    /// rd, rs1, shift amount below 32.
    ShiftW,
    /// rd, rs1, rs2.
    R,
    /// rd, rs1.
    R1,
    /// One register.
    Rd, Rs1, Rs2,
    /// Predecessor and successor sets.
    Fence,
    /// rs1, rs2 of an address-translation fence.
    Fences,
    /// rd, csr, rs1 and rd, csr, five-bit immediate.
    Csr, CsrI,
    /// rd, rs2, (rs1), with aq and rl.
    Amo,
    /// rd, (rs1), with aq and rl.
    Lr,
    /// rd, (rs1) and rs2, (rs1).
    LoadReg, StoreReg,
    /// (rs1).
    Block,
    /// offset(rs1), the offset a multiple of 32.
    Prefetch,
    /// Landing-pad label.
    Lpad,
    /// May-be-operations, numbered by the immediate.
    MopR, MopRr,
    /// rd, rs1, rs2, byte select.
    Bs,
    /// rd, rs1, round number.
    Rnum,
    /// fd, offset(rs1) and fs2, offset(rs1).
    FLoad, FStore,
    /// Floating-point operands by count; `Rm` ends with a rounding mode.
    F1Rm, F2, F2Rm, F3Rm,
    /// From a floating-point register to an integer one.
    XF, XFRm, Xff,
    /// Always rounds towards zero.
    XFRtz,
    /// From integer registers to a floating-point one.
    FX, FXRm, Fxx,
    /// Conversions that are exact, whose rounding mode does not count.
    F1Exact, FXExact,
    /// fd, one of 32 constants.
    Fli,
    /// rd, rs1, vtype and rd, five-bit length, vtype.
    Vsetvli, Vsetivli,
    /// vd, (rs1), and what follows it: nothing, a stride in rs2, indices in vs2.
    /// `nf` is in the bits; the mask follows.
    VUnit, VStride, VIndex,
    /// vd, (rs1), without a mask.
    VWhole,
    /// vd, vs2, a second source, mask. The source is vs1, rs1, a floating-point
    /// register, or an immediate: signed, unsigned, unsigned of six bits.
    VV, VX, VF, VI, VU, VU6,
    /// vd, a source, vs2, mask: vd is a source too.
    VAccumulateV, VAccumulateX, VAccumulateF,
    /// vd, vs2, a second source, v0.
    VCarryV, VCarryX, VCarryF, VCarryI,
    /// vd, a source.
    VMoveV, VMoveX, VMoveF, VMoveI,
    /// vd, mask and vd, vs2, mask.
    V1, V2,
    /// From a vector register to an integer one, and to a floating-point one.
    XV, FV,
}

/// Where the operands of a compressed instruction are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub(crate) enum Short16 {
    None, Nop, Addi4spn,
    LoadB, LoadH, LoadW, LoadD, StoreB, StoreH, StoreW, StoreD,
    AddImm, AddImmW, LoadImm, Addi16sp, LoadUpper, Mop, Sspush, Sspopchk,
    ShiftS, ImmS, Arith, ZextB, Not, Unary,
    Jump, JumpLink, Branch,
    Shift, LoadSpW, LoadSpWNz, LoadSpD, LoadSpDNz, StoreSpW, StoreSpD,
    Jr, JalrLink, Move, Add,
    Table, MovePair, Stack,
}

/// One encoding of a 32-bit instruction.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) op: Op,
    pub(crate) xlen: Option<Xlen>,
    pub(crate) mask: u32,
    pub(crate) value: u32,
    /// Either of the two sets of extensions suffices.
    pub(crate) need: [u128; 2],
    pub(crate) format: Format,
}

/// One compressed instruction.
#[derive(Clone, Copy)]
pub(crate) struct ShortRow {
    pub(crate) short: Short,
    pub(crate) xlen: Option<Xlen>,
    pub(crate) mask: u16,
    pub(crate) value: u16,
    pub(crate) need: [u128; 2],
    pub(crate) format: Short16,
    pub(crate) op: Op,
}

/// Whether the base width and the extensions of a row are in force.
pub(crate) const fn allowed(xlen: Option<Xlen>, need: [u128; 2], isa: Isa) -> bool {
    let width = match xlen {
        Some(Xlen::Rv32) => matches!(isa.xlen(), Xlen::Rv32),
        Some(Xlen::Rv64) => matches!(isa.xlen(), Xlen::Rv64),
        None => true,
    };
    width && (isa.covers(need[0]) || isa.covers(need[1]))
}

macro_rules! width {
    (any) => {
        None
    };
    (rv32) => {
        Some(Xlen::Rv32)
    };
    (rv64) => {
        Some(Xlen::Rv64)
    };
}

macro_rules! need {
    ([$($a:ident)+]) => { [0 $(| Ext::$a.bit())+, 0 $(| Ext::$a.bit())+] };
    ([$($a:ident)+ | $($b:ident)+]) => { [0 $(| Ext::$a.bit())+, 0 $(| Ext::$b.bit())+] };
}

macro_rules! op_table {
    ([] $($variant:ident $name:literal $width:ident $mask:literal $value:literal $need:tt $format:ident
        $(also $width2:ident $mask2:literal $value2:literal)?;)+) => {
        /// What an instruction does. A compressed instruction has the op of the
        /// 32-bit instruction it stands for; the few that stand for none have
        /// their own, at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Op {
            /// Not an instruction of this instruction set, or one this crate
            /// does not decode (vendor extensions, more than 32 bits).
            Unknown,
            $(#[doc = concat!("`", $name, "`")] $variant,)+
            /// The sixteen zero bits that are defined to be illegal.
            Unimp,
            /// `c.mop.1` to `c.mop.15`; the immediate is the number.
            CMop,
            /// `cm.jt`; the immediate is the table index.
            CmJt,
            /// `cm.jalt`; the immediate is the table index.
            CmJalt,
            /// `cm.mvsa01`: a0 to rs1, a1 to rs2.
            CmMvsa01,
            /// `cm.mva01s`: rs1 to a0, rs2 to a1.
            CmMva01s,
            /// `cm.push`; the immediate is added to sp.
            CmPush,
            /// `cm.pop`; the immediate is added to sp.
            CmPop,
            /// `cm.popretz`; the immediate is added to sp.
            CmPopretz,
            /// `cm.popret`; the immediate is added to sp.
            CmPopret,
        }

        impl Op {
            /// Every op of a 32-bit instruction.
            pub const FULL: &[Op] = &[$(Op::$variant),+];

            /// The mnemonic, without aq, rl or the number of a may-be-operation.
            /// Vector loads and stores of segments have the name for one field.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Op::Unknown => "unknown",
                    $(Op::$variant => $name,)+
                    Op::Unimp => "c.unimp",
                    Op::CMop => "c.mop",
                    Op::CmJt => "cm.jt",
                    Op::CmJalt => "cm.jalt",
                    Op::CmMvsa01 => "cm.mvsa01",
                    Op::CmMva01s => "cm.mva01s",
                    Op::CmPush => "cm.push",
                    Op::CmPop => "cm.pop",
                    Op::CmPopretz => "cm.popretz",
                    Op::CmPopret => "cm.popret",
                }
            }

            pub(crate) const fn format(self) -> Format {
                match self {
                    $(Op::$variant => Format::$format,)+
                    _ => Format::None,
                }
            }
        }

        pub(crate) const ROWS: &[Row] = &[
            $(
                Row {
                    op: Op::$variant, xlen: width!($width), mask: $mask, value: $value,
                    need: need!($need), format: Format::$format,
                },
                $(Row {
                    op: Op::$variant, xlen: width!($width2), mask: $mask2, value: $value2,
                    need: need!($need), format: Format::$format,
                },)?
            )+
        ];
    };
}

impl Op {
    /// Whether it is a scalar floating-point instruction. Fences are none,
    /// whatever their name begins with.
    ///
    /// ```
    /// use hartrace_isa::Op;
    ///
    /// assert!(Op::FaddD.is_float() && Op::Fsw.is_float());
    /// assert!(!Op::FenceI.is_float());
    /// ```
    #[must_use]
    pub const fn is_float(self) -> bool {
        use Format::*;
        let writes = self.writes_float() && !matches!(self.format(), FV);
        writes || matches!(self.format(), FStore | XF | XFRm | XFRtz | Xff)
    }

    /// Whether it is a vector load or store.
    ///
    /// ```
    /// use hartrace_isa::Op;
    ///
    /// assert!(Op::Vle32V.is_vector_memory() && Op::Vs1rV.is_vector_memory());
    /// assert!(!Op::VaddVv.is_vector_memory());
    /// ```
    #[must_use]
    pub const fn is_vector_memory(self) -> bool {
        use Format::*;
        matches!(self.format(), VUnit | VStride | VIndex | VWhole)
    }

    /// Whether its destination is a floating-point register; with Zfinx an
    /// integer register.
    #[must_use]
    pub const fn writes_float(self) -> bool {
        use Format::*;
        matches!(
            self.format(),
            FLoad | F1Rm | F2 | F2Rm | F3Rm | FX | FXRm | Fxx | F1Exact | FXExact | Fli | FV
        )
    }
}

integer_ops! { [
    atomic_ops bits_ops float_ops privileged_ops
    vector_ops vector_float_ops vector_crypto_ops op_table
] }

macro_rules! short_table {
    ($($variant:ident $name:literal $width:ident $mask:literal $value:literal $need:tt $format:ident $op:ident;)+) => {
        /// A compressed instruction, by its own name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Short {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl Short {
            /// The mnemonic, without the number of `c.mop`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Short::$variant => $name,)+ }
            }

            pub(crate) const fn format(self) -> Short16 {
                match self { $(Short::$variant => Short16::$format,)+ }
            }
        }

        pub(crate) const SHORT_ROWS: &[ShortRow] = &[
            $(ShortRow {
                short: Short::$variant, xlen: width!($width), mask: $mask, value: $value,
                need: need!($need), format: Short16::$format, op: Op::$op,
            },)+
        ];
    };
}

short_rows! { short_table }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_not_floating_point() {
        for op in Op::FULL {
            let name = op.name();
            let float = name.starts_with('f') && !name.starts_with("fence");
            assert_eq!(op.is_float(), float, "{name}");
        }
    }

    #[test]
    fn destinations_that_are_floating_point_registers() {
        let to_integer = [
            "fcvt.w", "fcvt.l", "fcvtmod", "feq", "flt", "fle", "fclass", "fmv.x", "fmvh.x",
        ];
        let stores = ["fsh", "fsw", "fsd", "fsq"];
        for op in Op::FULL {
            let name = op.name();
            let other = to_integer.iter().any(|p| name.starts_with(p)) || stores.contains(&name);
            let from_vector = *op == Op::VfmvFS;
            assert_eq!(
                op.writes_float(),
                op.is_float() && !other || from_vector,
                "{name}"
            );
        }
    }
}
