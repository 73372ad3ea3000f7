//! The operands and aliases of vector instructions.

use super::{Arg, Spelled};
use crate::op::Format;
use crate::{Inst, Op, Reg};
use core::fmt::{self, Formatter};

/// The operands of the vector formats.
pub(super) const fn args(format: Format) -> &'static [Arg] {
    use Arg::{Avl, Base, Fd, Fs1, Imm, Rd, Rs1, Rs2, V0, Vd, Vm, Vs1, Vs2, Vtype};
    match format {
        Format::Vsetvli => &[Rd, Rs1, Vtype],
        Format::Vsetivli => &[Rd, Avl, Vtype],
        Format::VUnit => &[Vd, Base, Vm],
        Format::VStride => &[Vd, Base, Rs2, Vm],
        Format::VIndex => &[Vd, Base, Vs2, Vm],
        Format::VWhole => &[Vd, Base],
        Format::VV => &[Vd, Vs2, Vs1, Vm],
        Format::VX => &[Vd, Vs2, Rs1, Vm],
        Format::VF => &[Vd, Vs2, Fs1, Vm],
        Format::VI | Format::VU | Format::VU6 => &[Vd, Vs2, Imm, Vm],
        Format::VAccumulateV => &[Vd, Vs1, Vs2, Vm],
        Format::VAccumulateX => &[Vd, Rs1, Vs2, Vm],
        Format::VAccumulateF => &[Vd, Fs1, Vs2, Vm],
        Format::VCarryV => &[Vd, Vs2, Vs1, V0],
        Format::VCarryX => &[Vd, Vs2, Rs1, V0],
        Format::VCarryF => &[Vd, Vs2, Fs1, V0],
        Format::VCarryI => &[Vd, Vs2, Imm, V0],
        Format::VMoveV => &[Vd, Vs1],
        Format::VMoveX => &[Vd, Rs1],
        Format::VMoveF => &[Vd, Fs1],
        Format::VMoveI => &[Vd, Imm],
        Format::V1 => &[Vd, Vm],
        Format::V2 => &[Vd, Vs2, Vm],
        Format::XV => &[Rd, Vs2, Vm],
        Format::FV => &[Fd, Vs2],
        _ => &[],
    }
}

/// The name of a load or store of segments: `vlseg3e32.v` for `vle32.v`.
pub(super) fn segment_name(f: &mut Formatter<'_>, inst: &Inst) -> fmt::Result {
    let name = inst.op.name();
    let element = name.rfind('e').unwrap_or_default();
    let (access, width) = name.split_at_checked(element).unwrap_or((name, ""));
    write!(f, "{access}seg{}{width}", inst.nf() + 1)
}

/// `e32,m1,ta,ma`; a value with reserved fields is a number.
pub(super) fn vtype(f: &mut Formatter<'_>, vtype: i32) -> fmt::Result {
    let width = match vtype >> 3 & 7 {
        0 => "e8",
        1 => "e16",
        2 => "e32",
        3 => "e64",
        _ => return write!(f, "{vtype}"),
    };
    let group = match vtype & 7 {
        0 => "m1",
        1 => "m2",
        2 => "m4",
        3 => "m8",
        5 => "mf8",
        6 => "mf4",
        7 => "mf2",
        _ => return write!(f, "{vtype}"),
    };
    if vtype >> 8 != 0 {
        return write!(f, "{vtype}");
    }
    let tail = if vtype & 0x40 == 0 { "tu" } else { "ta" };
    let mask = if vtype & 0x80 == 0 { "mu" } else { "ma" };
    write!(f, "{width},{group},{tail},{mask}")
}

/// The special spelling of a vector instruction, if it has one.
pub(super) fn alias(inst: &Inst) -> Option<Spelled> {
    const UNARY: &[Arg] = &[Arg::Vd, Arg::Vs2, Arg::Vm];
    const LOAD: &[Arg] = &[Arg::Vd, Arg::Base];
    let zero = inst.rs1 == Reg::ZERO;
    let same = inst.vs1() == inst.vs2();
    let all_same = same && inst.vd() == inst.vs2();
    Some(match inst.op {
        Op::Vl1re8V => ("vl1r.v", LOAD),
        Op::Vl2re8V => ("vl2r.v", LOAD),
        Op::Vl4re8V => ("vl4r.v", LOAD),
        Op::Vl8re8V => ("vl8r.v", LOAD),
        Op::VrsubVx if zero => ("vneg.v", UNARY),
        Op::VwaddVx if zero => ("vwcvt.x.x.v", UNARY),
        Op::VwadduVx if zero => ("vwcvtu.x.x.v", UNARY),
        Op::VnsrlWx if zero => ("vncvt.x.x.w", UNARY),
        Op::VxorVi if inst.imm == -1 => ("vnot.v", UNARY),
        Op::VfsgnjnVv if same => ("vfneg.v", UNARY),
        Op::VfsgnjxVv if same => ("vfabs.v", UNARY),
        Op::VmandMm if same => ("vmmv.m", UNARY),
        Op::VmnandMm if same => ("vmnot.m", UNARY),
        Op::VmxorMm if all_same => ("vmclr.m", &[Arg::Vd]),
        Op::VmxnorMm if all_same => ("vmset.m", &[Arg::Vd]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
