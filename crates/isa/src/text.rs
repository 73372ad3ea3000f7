//! An instruction as text, as GNU objdump writes it.

mod alias;
mod track;
mod vector;

use crate::csr::{self, Priv};
use crate::op::{Format, Short16};
use crate::{Ext, Inst, Isa, Op, Reg, Short};
use core::fmt::{self, Display, Formatter};
pub use track::Tracker;

/// Whose spelling.
///
/// Two dialects, because objdump changed its mind between them. Without
/// aliases only the first row remains.
///
/// | instruction | 2.40 | 2.45 |
/// |---|---|---|
/// | unknown | `.4byte 0xffffffff`, `.byte 0x1f, ...` | `.insn 4, 0xffffffff` |
/// | `addi`, `andi`, `ori`, `xori`, `addiw` | `add a0,a0,1` | `addi a0,a0,1` |
/// | `slli`, `srli`, `srai`, `slliw`, ... | `sll a0,a0,0x3` | `slli a0,a0,0x3` |
/// | `rori`, `roriw`, `bclri`, `bexti`, `binvi`, `bseti` | `ror a0,a0,0x3` | `rori a0,a0,0x3` |
/// | `csrrwi`, `csrrsi`, `csrrci` | `csrw mstatus,5` | `csrwi mstatus,5` |
///
/// What 2.40 does not know at all, newer CSR names included, is spelled as 2.45
/// does in both.
///
/// Where this crate differs from both, on purpose:
///
/// | encoding | objdump | here |
/// |---|---|---|
/// | shifts by 32 and more on RV32, also compressed | `slli a0,a0,0x20` | unknown: reserved |
/// | `c.addi16sp` with 0 | `addi sp,sp,0` | unknown: reserved |
/// | `cm.push` and its family with a register list below 4 | `cm.push {ra},0` | unknown: reserved |
/// | `aes64ks1i` with a round above 10 | `aes64ks1i a0,a0,0xb` | unknown: reserved |
/// | `ssrdp` to x0 | `ssrdp zero` | the may-be-operation it is |
/// | `hret`, `sfence.vm` (2.40) | by name | unknown: not in the manuals |
/// | `mnret` | needs Smrnmi in the ISA string | always known |
/// | vendor instructions, Zilsd, Zclsd, Zqinx | by name | unknown |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dialect {
    /// binutils 2.40, as Debian 12 installs it.
    #[default]
    Binutils240,
    /// binutils 2.45.
    Binutils245,
}

/// How to write an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The instruction set: how wide addresses are, and whether floating point
    /// lives in integer registers.
    pub isa: Isa,
    /// `ret` rather than `jalr zero,0(ra)`, `addi` rather than `c.addi`.
    pub aliases: bool,
    /// `x10` rather than `a0`.
    pub numeric: bool,
    /// Whose spelling.
    pub dialect: Dialect,
    /// Which manual names the CSRs.
    pub privileged: Priv,
}

impl Style {
    /// objdump's defaults.
    #[must_use]
    pub fn new(isa: Isa) -> Style {
        Style {
            isa,
            aliases: true,
            numeric: false,
            dialect: Dialect::default(),
            privileged: Priv::default(),
        }
    }

    fn old(&self) -> bool {
        self.dialect == Dialect::Binutils240
    }
}

/// Writes code addresses. The default is the bare number in hexadecimal;
/// whoever knows symbols adds ` <main+0x10>`.
pub trait Resolve {
    /// Writes one address.
    ///
    /// # Errors
    ///
    /// Those of the formatter.
    fn address(&self, f: &mut Formatter<'_>, address: u64) -> fmt::Result {
        write!(f, "{address:x}")
    }
}

/// Bare numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Resolve for Plain {}

/// Distances from an instruction whose address is not known: `.+0x8`. The
/// instruction is written as if it stood at 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Relative;

impl Resolve for Relative {
    fn address(&self, f: &mut Formatter<'_>, address: u64) -> fmt::Result {
        // Of RV32 the upper half is zero.
        let distance = match u32::try_from(address) {
            Ok(short) => i64::from(short.cast_signed()),
            Err(_) => address.cast_signed(),
        };
        let sign = if distance < 0 { '-' } else { '+' };
        write!(f, ".{sign}{:#x}", distance.unsigned_abs())
    }
}

/// An instruction at an address, ready to be written; see [`Inst::text`].
#[derive(Clone, Copy, Debug)]
pub struct Text<'a, R = Plain> {
    inst: Inst,
    pc: u64,
    style: &'a Style,
    resolve: &'a R,
    note: Option<u64>,
    raw: &'a [u8],
}

impl Inst {
    /// The text of this instruction at `pc`: mnemonic, tab, operands.
    ///
    /// ```
    /// use hartrace_isa::{Isa, Style, decode};
    ///
    /// let style = Style::new(Isa::RV64GC);
    /// let inst = decode(0xfe05_1ce3, style.isa);
    /// assert_eq!(inst.text(0x1010, &style).to_string(), "bnez\ta0,1008");
    /// ```
    #[must_use]
    pub fn text(self, pc: u64, style: &Style) -> Text<'_> {
        Text {
            inst: self,
            pc,
            style,
            resolve: &Plain,
            note: None,
            raw: &[],
        }
    }
}

impl<'a, R> Text<'a, R> {
    /// The same text with addresses written by `resolve`.
    #[must_use]
    pub fn resolve<S>(self, resolve: &'a S) -> Text<'a, S> {
        Text {
            inst: self.inst,
            pc: self.pc,
            style: self.style,
            resolve,
            note: self.note,
            raw: self.raw,
        }
    }

    /// The same text followed by ` # address`; see [`Tracker::note`].
    #[must_use]
    pub fn note(self, note: Option<u64>) -> Self {
        Text { note, ..self }
    }

    /// The bytes of the instruction, which only something longer than 32 bits
    /// needs: its text is all of them.
    #[must_use]
    pub fn raw(self, raw: &'a [u8]) -> Self {
        Text { raw, ..self }
    }
}

/// One operand, as text names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arg {
    Rd,
    Rs1,
    Rs2,
    Fd,
    Fs1,
    Fs2,
    Fs3,
    Zero,
    Sp,
    /// The immediate in decimal and in hexadecimal.
    Imm,
    Hex,
    /// The upper 20 bits.
    Upper,
    /// pc plus the immediate.
    Target,
    /// offset(rs1).
    Mem,
    /// (rs1).
    Base,
    Csr,
    /// Left out when dynamic.
    Rm,
    Pred,
    Succ,
    Fli,
    /// {ra, s0-s3} and the stack adjustment after it.
    List,
    Vd,
    Vs1,
    Vs2,
    V0,
    /// v0.t; left out when unmasked.
    Vm,
    Vtype,
    /// The length of `vsetivli`.
    Avl,
}

/// An alias: its name and its operands.
type Spelled = (&'static str, &'static [Arg]);

const fn full_args(format: Format) -> &'static [Arg] {
    use Arg::{
        Base, Csr, Fd, Fli, Fs1, Fs2, Fs3, Hex, Imm, Mem, Pred, Rd, Rm, Rs1, Rs2, Succ, Target,
        Upper,
    };
    match format {
        Format::None => &[],
        Format::U => &[Rd, Upper],
        Format::J => &[Rd, Target],
        Format::Jalr | Format::Load => &[Rd, Mem],
        Format::B => &[Rs1, Rs2, Target],
        Format::Store => &[Rs2, Mem],
        Format::I => &[Rd, Rs1, Imm],
        Format::Shift | Format::ShiftW | Format::Rnum => &[Rd, Rs1, Hex],
        Format::R | Format::MopRr => &[Rd, Rs1, Rs2],
        Format::R1 | Format::MopR => &[Rd, Rs1],
        Format::Rd => &[Rd],
        Format::Rs1 => &[Rs1],
        Format::Rs2 => &[Rs2],
        Format::Fence => &[Pred, Succ],
        Format::Fences => &[Rs1, Rs2],
        Format::Csr => &[Rd, Csr, Rs1],
        Format::CsrI => &[Rd, Csr, Imm],
        Format::Amo => &[Rd, Rs2, Base],
        Format::Lr | Format::LoadReg => &[Rd, Base],
        Format::StoreReg => &[Rs2, Base],
        Format::Block => &[Base],
        Format::Prefetch => &[Mem],
        Format::Lpad => &[Hex],
        Format::Bs => &[Rd, Rs1, Rs2, Hex],
        Format::FLoad => &[Fd, Mem],
        Format::FStore => &[Fs2, Mem],
        Format::F1Rm => &[Fd, Fs1, Rm],
        Format::F1Exact => &[Fd, Fs1],
        Format::F2 => &[Fd, Fs1, Fs2],
        Format::F2Rm => &[Fd, Fs1, Fs2, Rm],
        Format::F3Rm => &[Fd, Fs1, Fs2, Fs3, Rm],
        Format::XF => &[Rd, Fs1],
        Format::XFRm | Format::XFRtz => &[Rd, Fs1, Rm],
        Format::Xff => &[Rd, Fs1, Fs2],
        Format::FX | Format::FXExact => &[Fd, Rs1],
        Format::FXRm => &[Fd, Rs1, Rm],
        Format::Fxx => &[Fd, Rs1, Rs2],
        Format::Fli => &[Fd, Fli],
        _ => vector::args(format),
    }
}

/// The operands of a compressed instruction under its own name.
const fn short_args(format: Short16, float: bool) -> &'static [Arg] {
    use Arg::{Fd, Fs2, Hex, Imm, List, Mem, Rd, Rs1, Rs2, Sp, Target, Upper, Zero};
    match format {
        Short16::None | Short16::Mop => &[],
        Short16::Nop => &[Zero, Imm],
        Short16::Addi4spn => &[Rd, Sp, Imm],
        Short16::Addi16sp => &[Sp, Imm],
        Short16::LoadB
        | Short16::LoadH
        | Short16::LoadW
        | Short16::LoadD
        | Short16::LoadSpW
        | Short16::LoadSpWNz
        | Short16::LoadSpD
        | Short16::LoadSpDNz => {
            if float {
                &[Fd, Mem]
            } else {
                &[Rd, Mem]
            }
        }
        Short16::StoreB
        | Short16::StoreH
        | Short16::StoreW
        | Short16::StoreD
        | Short16::StoreSpW
        | Short16::StoreSpD => {
            if float {
                &[Fs2, Mem]
            } else {
                &[Rs2, Mem]
            }
        }
        Short16::AddImm | Short16::AddImmW | Short16::LoadImm | Short16::ImmS => &[Rd, Imm],
        Short16::LoadUpper => &[Rd, Upper],
        Short16::ShiftS | Short16::Shift => &[Rd, Hex],
        Short16::Arith | Short16::Move | Short16::Add => &[Rd, Rs2],
        Short16::ZextB | Short16::Not | Short16::Unary => &[Rd],
        Short16::Jump | Short16::JumpLink => &[Target],
        Short16::Branch => &[Rs1, Target],
        Short16::Jr | Short16::JalrLink | Short16::Sspopchk => &[Rs1],
        Short16::Sspush => &[Rs2],
        Short16::Table => &[Imm],
        Short16::MovePair => &[Rs1, Rs2],
        Short16::Stack => &[List],
    }
}

impl<R: Resolve> Display for Text<'_, R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let inst = &self.inst;
        if inst.op == Op::Unknown || is_unspelled(inst) {
            return self.unknown(f);
        }
        // The csrrw that assemblers use as an illegal instruction.
        let spelled = if inst.bits == 0xc000_1073 {
            Some(("unimp", [].as_slice()))
        } else if self.style.aliases {
            alias::of(inst, self.style)
        } else {
            None
        };
        if let Some((name, args)) = spelled {
            f.write_str(name)?;
            self.args(f, args)?;
        } else if let Some(short) = inst.short.filter(|_| !self.style.aliases) {
            self.short(f, short)?;
        } else {
            self.full(f)?;
        }
        if let Some(address) = self.note {
            f.write_str(" # ")?;
            self.resolve.address(f, address)?;
        }
        Ok(())
    }
}

/// Encodings that execute but that objdump has no words for: reserved fields
/// of the fences, and rounding modes where nothing is rounded.
fn is_unspelled(inst: &Inst) -> bool {
    match inst.op.format() {
        Format::Fence => inst.bits & 0xf00f_8f80 != 0,
        Format::F1Exact | Format::FXExact => inst.rm() != 0 && !can_round(inst.op),
        _ => inst.op == Op::FenceI && inst.bits != 0x100f,
    }
}

/// objdump accepts a rounding mode on two of the exact conversions.
const fn can_round(op: Op) -> bool {
    matches!(op, Op::FcvtQL | Op::FcvtQLu)
}

impl<R: Resolve> Text<'_, R> {
    fn unknown(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let four = self.inst.bits.to_le_bytes();
        let len = usize::from(self.inst.len);
        let bytes = match self.raw.get(..len) {
            Some(bytes) => bytes,
            None => four.get(..len).unwrap_or(&four),
        };
        if !self.style.old() {
            write!(f, ".insn\t{len}, 0x")?;
            return halfwords(f, bytes);
        }
        if let 2 | 4 | 8 = len {
            let value = bytes.iter().rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
            return write!(f, ".{len}byte\t{value:#x}");
        }
        f.write_str(".byte\t")?;
        for (i, byte) in bytes.iter().enumerate() {
            write!(f, "{}{byte:#04x}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }

    /// A compressed instruction under its own name.
    fn short(&self, f: &mut Formatter<'_>, short: Short) -> fmt::Result {
        let inst = &self.inst;
        let shift = matches!(short, Short::CSlli | Short::CSrli | Short::CSrai);
        // c.nop is an alias of c.addi, and shifts by zero were RV128's.
        if short == Short::CNop {
            f.write_str("c.addi")?;
        } else if shift && inst.imm == 0 {
            write!(f, "{}64", short.name())?;
            return self.args(f, &[Arg::Rd]);
        } else {
            f.write_str(short.name())?;
        }
        if short == Short::CMop {
            return write!(f, ".{}", inst.imm);
        }
        let float = matches!(inst.op.format(), Format::FLoad | Format::FStore);
        self.args(f, short_args(short.format(), float))
    }

    /// The 32-bit instruction, whatever the length of this one.
    fn full(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let inst = &self.inst;
        let format = inst.op.format();
        match format {
            Format::VUnit | Format::VStride | Format::VIndex if inst.nf() != 0 => {
                vector::segment_name(f, inst)?;
            }
            _ => f.write_str(inst.op.name())?,
        }
        match format {
            Format::Amo | Format::Lr => f.write_str(match (inst.aq(), inst.rl()) {
                (false, false) => "",
                (true, false) => ".aq",
                (false, true) => ".rl",
                (true, true) => ".aqrl",
            })?,
            Format::MopR | Format::MopRr => write!(f, ".{}", inst.imm)?,
            _ if inst.op == Op::CMop => write!(f, ".{}", inst.imm)?,
            _ => {}
        }
        if can_round(inst.op) && inst.rm() != 0 {
            self.args(f, &[Arg::Fd, Arg::Rs1])?;
            return write!(f, ",{}", rounding(inst.rm()));
        }
        match inst.short {
            Some(short) if format == Format::None => {
                self.args(f, short_args(short.format(), false))
            }
            _ => self.args(f, full_args(format)),
        }
    }

    fn args(&self, f: &mut Formatter<'_>, args: &[Arg]) -> fmt::Result {
        for (i, &arg) in args.iter().enumerate() {
            if arg == Arg::Rm && self.inst.rm() == 7 || arg == Arg::Vm && self.inst.vm() {
                continue;
            }
            f.write_str(if i == 0 { "\t" } else { "," })?;
            self.arg(f, arg)?;
        }
        Ok(())
    }

    fn arg(&self, f: &mut Formatter<'_>, arg: Arg) -> fmt::Result {
        let inst = &self.inst;
        match arg {
            Arg::Rd => self.register(f, inst.rd),
            Arg::Rs1 => self.register(f, inst.rs1),
            Arg::Rs2 => self.register(f, inst.rs2),
            Arg::Zero => self.register(f, Reg::ZERO),
            Arg::Sp => self.register(f, Reg::SP),
            Arg::Fd => self.float(f, inst.rd),
            Arg::Fs1 => self.float(f, inst.rs1),
            Arg::Fs2 => self.float(f, inst.rs2),
            Arg::Fs3 => self.float(f, inst.rs3()),
            Arg::Imm => write!(f, "{}", inst.imm),
            Arg::Hex => write!(f, "{:#x}", inst.imm),
            Arg::Upper => write!(f, "{:#x}", inst.imm as u32 >> 12),
            Arg::Target => {
                let to = self.pc.wrapping_add_signed(inst.imm.into());
                self.resolve.address(f, self.style.isa.xlen().wrap(to))
            }
            Arg::Mem | Arg::Base => {
                if arg == Arg::Mem {
                    write!(f, "{}", inst.imm)?;
                }
                f.write_str("(")?;
                self.register(f, inst.rs1)?;
                f.write_str(")")
            }
            Arg::Csr => match csr::name_in(inst.csr(), self.style.privileged) {
                Some(name) => f.write_str(name),
                None => write!(f, "{:#x}", inst.csr()),
            },
            Arg::Rm => f.write_str(rounding(inst.rm())),
            Arg::Pred => fence_set(f, inst.imm >> 4),
            Arg::Succ => fence_set(f, inst.imm),
            Arg::Fli => f.write_str(fli_constant(inst.imm)),
            Arg::List => self.list(f),
            Arg::Vd => write!(f, "v{}", inst.vd()),
            Arg::Vs1 => write!(f, "v{}", inst.vs1()),
            Arg::Vs2 => write!(f, "v{}", inst.vs2()),
            Arg::V0 => f.write_str("v0"),
            Arg::Vm => f.write_str("v0.t"),
            Arg::Vtype => vector::vtype(f, inst.imm),
            Arg::Avl => write!(f, "{}", inst.vs1()),
        }
    }

    fn register(&self, f: &mut Formatter<'_>, reg: Reg) -> fmt::Result {
        if self.style.numeric {
            write!(f, "x{}", reg.number())
        } else {
            f.write_str(reg.abi_name())
        }
    }

    fn float(&self, f: &mut Formatter<'_>, reg: Reg) -> fmt::Result {
        if self.style.isa.has(Ext::Zfinx) {
            self.register(f, reg)
        } else if self.style.numeric {
            write!(f, "f{}", reg.number())
        } else {
            f.write_str(reg.float_name())
        }
    }

    /// `{ra,s0-s3},-48`. By number the list is cut where the numbers jump.
    fn list(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let saved = |n: u32| Reg::new(if n < 2 { 8 + n } else { 16 + n });
        let count = match self.inst.rlist() {
            15 => 12,
            n => u32::from(n.saturating_sub(4)),
        };
        let ranges = match (self.style.numeric, count) {
            (_, 0) => [None, None],
            (true, 3..) => [Some((0, 1)), Some((2, count - 1))],
            _ => [Some((0, count - 1)), None],
        };
        f.write_str("{")?;
        self.register(f, Reg::RA)?;
        for (from, to) in ranges.into_iter().flatten() {
            f.write_str(",")?;
            self.register(f, saved(from))?;
            if from != to {
                f.write_str("-")?;
                self.register(f, saved(to))?;
            }
        }
        write!(f, "}},{}", self.inst.imm)
    }
}

/// Bytes as one little-endian number, zero halfwords in front left out.
fn halfwords(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    let mut started = false;
    for (i, pair) in bytes.chunks_exact(2).enumerate().rev() {
        let value = pair.iter().rev().fold(0u16, |v, &b| v << 8 | u16::from(b));
        if value != 0 || started || i == 0 {
            write!(f, "{value:04x}")?;
            started = true;
        }
    }
    Ok(())
}

const fn rounding(rm: u8) -> &'static str {
    match rm {
        0 => "rne",
        1 => "rtz",
        2 => "rdn",
        3 => "rup",
        4 => "rmm",
        7 => "dyn",
        _ => "unknown",
    }
}

/// Device input and output, memory reads and writes.
fn fence_set(f: &mut Formatter<'_>, set: i32) -> fmt::Result {
    if set & 15 == 0 {
        return f.write_str("unknown");
    }
    for (bit, letter) in [(8, "i"), (4, "o"), (2, "r"), (1, "w")] {
        if set & bit != 0 {
            f.write_str(letter)?;
        }
    }
    Ok(())
}

/// The constants of `fli`, in C's hexadecimal notation (Zfa, table 1).
#[rustfmt::skip]
fn fli_constant(index: i32) -> &'static str {
    const NAMES: [&str; 32] = [
        "-0x1p+0", "min", "0x1p-16", "0x1p-15", "0x1p-8", "0x1p-7", "0x1p-4", "0x1p-3",
        "0x1p-2", "0x1.4p-2", "0x1.8p-2", "0x1.cp-2", "0x1p-1", "0x1.4p-1", "0x1.8p-1", "0x1.cp-1",
        "0x1p+0", "0x1.4p+0", "0x1.8p+0", "0x1.cp+0", "0x1p+1", "0x1.4p+1", "0x1.8p+1", "0x1p+2",
        "0x1p+3", "0x1p+4", "0x1p+7", "0x1p+8", "0x1p+15", "0x1p+16", "inf", "nan",
    ];
    usize::try_from(index).ok().and_then(|i| NAMES.get(i)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
