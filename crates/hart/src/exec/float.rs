//! Floating-point instructions: operands out of boxes, results into them,
//! flags into `fflags`.

use hartrace_flow::{Observer, RegId};
use hartrace_isa::{Op, csr};

use crate::code::Micro;
use crate::cpu::Cpu;
use crate::exec::{Fault, Frame};
use crate::float::{self, F16, F32, F64, Flags, Format, Round};
use crate::width::Width;

/// Where a result goes.
enum Outcome {
    /// A floating-point register, boxed.
    Float(u64),
    /// An integer register, sign-extended.
    Integer(u64),
}

use Outcome::{Float, Integer};

/// A function of two numbers that rounds.
type Binary = fn(u64, u64, Round, &mut Flags) -> u64;
/// A function of two numbers that does not.
type Select = fn(u64, u64, &mut Flags) -> u64;
type Compare = fn(u64, u64, &mut Flags) -> bool;

/// The instructions that exist in every format, from the names of their ops.
/// Each is one arm of one match, so that there is one jump to it.
macro_rules! dispatch {
    ($frame:ident, $op:ident, $flags:ident; $($format:ident:
        $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident
        $madd:ident $msub:ident $nmsub:ident $nmadd:ident
        $min:ident $max:ident $eq:ident $lt:ident $le:ident $class:ident
        $sgnj:ident $sgnjn:ident $sgnjx:ident
        $to_w:ident $to_wu:ident $to_l:ident $to_lu:ident
        $from_w:ident $from_wu:ident $from_l:ident $from_lu:ident
        $minm:ident $maxm:ident $leq:ident $ltq:ident $fround:ident $froundnx:ident $li:ident;)+
        => $($special:pat => $value:expr,)+
    ) => {
        match $op.op {
            $(
            Op::$add => $frame.binary::<$format>($op, $flags, float::add::<$format>)?,
            Op::$sub => $frame.binary::<$format>($op, $flags, float::sub::<$format>)?,
            Op::$mul => $frame.binary::<$format>($op, $flags, float::mul::<$format>)?,
            Op::$div => $frame.binary::<$format>($op, $flags, float::div::<$format>)?,
            Op::$sqrt => {
                let (a, round) = ($frame.unboxed::<$format>($op.rs1), $frame.round($op)?);
                Float(float::boxed::<$format>(float::sqrt::<$format>(a, round, $flags)))
            }
            Op::$madd => $frame.fused::<$format>($op, $flags, 0, 0)?,
            Op::$msub => $frame.fused::<$format>($op, $flags, 0, $format::SIGN)?,
            Op::$nmsub => $frame.fused::<$format>($op, $flags, $format::SIGN, 0)?,
            Op::$nmadd => $frame.fused::<$format>($op, $flags, $format::SIGN, $format::SIGN)?,
            Op::$min => $frame.select::<$format>($op, $flags, float::min::<$format>),
            Op::$max => $frame.select::<$format>($op, $flags, float::max::<$format>),
            Op::$eq => $frame.compare::<$format>($op, $flags, float::eq::<$format>),
            Op::$lt => $frame.compare::<$format>($op, $flags, float::lt::<$format>),
            Op::$le => $frame.compare::<$format>($op, $flags, float::le::<$format>),
            Op::$class => {
                Integer(float::classify::<$format>($frame.unboxed::<$format>($op.rs1)).into())
            }
            Op::$sgnj => $frame.sign::<$format>($op, |_, b| b),
            Op::$sgnjn => $frame.sign::<$format>($op, |_, b| !b),
            Op::$sgnjx => $frame.sign::<$format>($op, |a, b| a ^ b),
            Op::$to_w => {
                let (a, round) = ($frame.unboxed::<$format>($op.rs1), $frame.round($op)?);
                Integer(float::to_i32::<$format>(a, round, $flags) as u64)
            }
            Op::$to_wu => {
                let (a, round) = ($frame.unboxed::<$format>($op.rs1), $frame.round($op)?);
                Integer(float::to_u32::<$format>(a, round, $flags) as i32 as u64)
            }
            Op::$to_l => {
                let (a, round) = ($frame.unboxed::<$format>($op.rs1), $frame.round($op)?);
                Integer(float::to_i64::<$format>(a, round, $flags) as u64)
            }
            Op::$to_lu => {
                let (a, round) = ($frame.unboxed::<$format>($op.rs1), $frame.round($op)?);
                Integer(float::to_u64::<$format>(a, round, $flags))
            }
            Op::$from_w => {
                let (a, round) = ($frame.get($op.rs1) as i32, $frame.round($op)?);
                Float(float::boxed::<$format>(float::from_i32::<$format>(a, round, $flags)))
            }
            Op::$from_wu => {
                let (a, round) = ($frame.get($op.rs1) as u32, $frame.round($op)?);
                Float(float::boxed::<$format>(float::from_u32::<$format>(a, round, $flags)))
            }
            Op::$from_l => {
                let (a, round) = ($frame.get($op.rs1) as i64, $frame.round($op)?);
                Float(float::boxed::<$format>(float::from_i64::<$format>(a, round, $flags)))
            }
            Op::$from_lu => {
                let (a, round) = ($frame.get($op.rs1), $frame.round($op)?);
                Float(float::boxed::<$format>(float::from_u64::<$format>(a, round, $flags)))
            }
            Op::$minm => $frame.select::<$format>($op, $flags, float::minimum::<$format>),
            Op::$maxm => $frame.select::<$format>($op, $flags, float::maximum::<$format>),
            Op::$leq => $frame.compare::<$format>($op, $flags, float::le_quiet::<$format>),
            Op::$ltq => $frame.compare::<$format>($op, $flags, float::lt_quiet::<$format>),
            Op::$fround => {
                let rounded = $frame.to_integer::<$format>($op, $flags)?;
                $flags.0 &= !Flags::NX.0;
                rounded
            }
            Op::$froundnx => $frame.to_integer::<$format>($op, $flags)?,
            Op::$li => Float(float::boxed::<$format>(float::constant::<$format>($op.imm as u8))),
            )+
            $($special => $value,)+
            _ => return Err(Fault::Illegal),
        }
    };
}

impl<O: Observer> Frame<'_, O> {
    #[inline(always)]
    fn operands(&self) -> Operands<'_> {
        Operands {
            cpu: self.cpu,
            x: self.x,
        }
    }

    /// Writes a floating-point register, which makes the state dirty.
    #[inline(always)]
    fn set_f<W: Width>(&mut self, register: u8, value: u64) {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        {
            self.cpu.f[usize::from(register & 31)] = value;
        }
        self.cpu.unwritten &= !(1 << (register & 31));
        self.reg(RegId::F(register & 31), value);
        self.dirty::<W>();
    }

    #[inline(always)]
    fn dirty<W: Width>(&mut self) {
        if self.cpu.dirty_float() {
            self.csr(csr::MSTATUS, W::unsigned(self.cpu.mstatus));
        }
    }

    /// Adds flags to `fflags`.
    #[inline(always)]
    fn raise<W: Width>(&mut self, flags: Flags) {
        if flags.0 != 0 {
            self.dirty::<W>();
            self.cpu.fflags |= flags.0;
            self.csr(csr::FFLAGS, self.cpu.fflags.into());
        }
    }

    /// A load of `N` bytes into a floating-point register.
    #[inline(always)]
    pub(crate) fn load_float<W: Width, const N: usize>(
        &mut self,
        op: &Micro,
        cycles: u64,
    ) -> Result<(), Fault> {
        if !self.cpu.float_on() {
            return Err(Fault::Illegal);
        }
        let addr = W::unsigned(self.get(op.rs1).wrapping_add(op.imm as u64));
        let value = self.load::<N>(addr, cycles)?;
        let boxed = match N {
            2 => float::boxed::<F16>(value),
            4 => float::boxed::<F32>(value),
            _ => value,
        };
        self.set_f::<W>(op.rd, boxed);
        Ok(())
    }

    /// A store of a floating-point register; true when the hart must look up.
    #[inline(always)]
    pub(crate) fn store_float<W: Width>(&mut self, op: &Micro, cycles: u64) -> Result<bool, Fault> {
        if !self.cpu.float_on() {
            return Err(Fault::Illegal);
        }
        let addr = W::unsigned(self.get(op.rs1).wrapping_add(op.imm as u64));
        let value = self.operands().f(op.rs2);
        Ok(match op.op {
            Op::Fsd => self.store::<8>(addr, value, cycles)?,
            Op::Fsw => self.store::<4>(addr, value, cycles)?,
            _ => self.store::<2>(addr, value, cycles)?,
        })
    }

    /// Floating-point arithmetic.
    #[inline(always)]
    pub(crate) fn float<W: Width>(&mut self, op: &Micro) -> Result<(), Fault> {
        if !self.cpu.float_on() {
            return Err(Fault::Illegal);
        }
        let mut flags = Flags(0);
        let result = self.operands().arithmetic(op, &mut flags);
        let value = result.ok_or(Fault::Illegal)?;
        if flags.0 & TO_INTEGER == 0 {
            self.set_f::<W>(op.rd, value);
        } else {
            self.set::<W>(op.rd, value);
            flags.0 &= !TO_INTEGER;
        }
        self.raise::<W>(flags);
        Ok(())
    }
}

/// Beside the flags: the result goes to an integer register.
const TO_INTEGER: u8 = 1 << 7;

/// What arithmetic reads. It is compiled once, not for every observer.
#[derive(Clone, Copy)]
struct Operands<'a> {
    cpu: &'a Cpu,
    x: &'a [u64; 256],
}

impl Operands<'_> {
    #[inline(always)]
    fn get(self, register: u8) -> u64 {
        // There is one for every byte.
        #[allow(clippy::indexing_slicing)]
        self.x[usize::from(register)]
    }

    #[inline(always)]
    fn f(self, register: u8) -> u64 {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        self.cpu.f[usize::from(register & 31)]
    }

    /// The result, with [`TO_INTEGER`] among the flags where it belongs; `None` for an
    /// instruction that there is not. In this form it is passed in processor registers.
    #[inline(never)]
    fn arithmetic(self, op: &Micro, flags: &mut Flags) -> Option<u64> {
        match self.evaluate(op, flags) {
            Ok(Float(value)) => Some(value),
            Ok(Integer(value)) => {
                flags.0 |= TO_INTEGER;
                Some(value)
            }
            Err(_) => None,
        }
    }

    #[rustfmt::skip] // the table is easier to read
    #[inline(always)]
    fn evaluate(self, op: &Micro, flags: &mut Flags) -> Result<Outcome, Fault> {
        Ok(dispatch! { self, op, flags;
            F64: FaddD FsubD FmulD FdivD FsqrtD FmaddD FmsubD FnmsubD FnmaddD
                FminD FmaxD FeqD FltD FleD FclassD FsgnjD FsgnjnD FsgnjxD
                FcvtWD FcvtWuD FcvtLD FcvtLuD FcvtDW FcvtDWu FcvtDL FcvtDLu
                FminmD FmaxmD FleqD FltqD FroundD FroundnxD FliD;
            F32: FaddS FsubS FmulS FdivS FsqrtS FmaddS FmsubS FnmsubS FnmaddS
                FminS FmaxS FeqS FltS FleS FclassS FsgnjS FsgnjnS FsgnjxS
                FcvtWS FcvtWuS FcvtLS FcvtLuS FcvtSW FcvtSWu FcvtSL FcvtSLu
                FminmS FmaxmS FleqS FltqS FroundS FroundnxS FliS;
            F16: FaddH FsubH FmulH FdivH FsqrtH FmaddH FmsubH FnmsubH FnmaddH
                FminH FmaxH FeqH FltH FleH FclassH FsgnjH FsgnjnH FsgnjxH
                FcvtWH FcvtWuH FcvtLH FcvtLuH FcvtHW FcvtHWu FcvtHL FcvtHLu
                FminmH FmaxmH FleqH FltqH FroundH FroundnxH FliH;
            =>
            Op::FcvtSD => self.convert::<F64, F32>(op, flags)?,
            Op::FcvtDS => self.convert::<F32, F64>(op, flags)?,
            Op::FcvtSH => self.convert::<F16, F32>(op, flags)?,
            Op::FcvtHS => self.convert::<F32, F16>(op, flags)?,
            Op::FcvtDH => self.convert::<F16, F64>(op, flags)?,
            Op::FcvtHD => self.convert::<F64, F16>(op, flags)?,
            Op::FcvtmodWD =>
                Integer(float::to_i32_modular::<F64>(self.unboxed::<F64>(op.rs1), flags) as u64),
            Op::FmvhXD => Integer((self.f(op.rs1) >> 32) as i32 as u64),
            Op::FmvpDX => Float(self.get(op.rs1) & F32::MASK | self.get(op.rs2) << 32),
            Op::FmvXW => Integer(self.f(op.rs1) as i32 as u64),
            Op::FmvXD => Integer(self.f(op.rs1)),
            Op::FmvXH => Integer(self.f(op.rs1) as i16 as u64),
            Op::FmvWX => Float(float::boxed::<F32>(self.get(op.rs1) & F32::MASK)),
            Op::FmvDX => Float(self.get(op.rs1)),
            Op::FmvHX => Float(float::boxed::<F16>(self.get(op.rs1) & F16::MASK)),
        })
    }

    /// The rounding mode an instruction asks for; invalid ones are illegal,
    /// even where nothing is rounded.
    #[inline(always)]
    fn round(self, op: &Micro) -> Result<Round, Fault> {
        let code = match op.imm >> 5 & 7 {
            7 => self.cpu.frm,
            code => code as u8,
        };
        Round::from_code(code).ok_or(Fault::Illegal)
    }

    #[inline(always)]
    fn unboxed<F: Format>(self, register: u8) -> u64 {
        if self.cpu.unwritten >> (register & 31) & 1 != 0 {
            return F::NAN;
        }
        float::unboxed::<F>(self.f(register))
    }

    #[inline(always)]
    fn binary<F: Format>(
        self,
        op: &Micro,
        flags: &mut Flags,
        function: Binary,
    ) -> Result<Outcome, Fault> {
        let (a, b) = (self.unboxed::<F>(op.rs1), self.unboxed::<F>(op.rs2));
        Ok(Float(float::boxed::<F>(function(
            a,
            b,
            self.round(op)?,
            flags,
        ))))
    }

    /// A fused multiply-add with signs flipped: of the product, of the addend.
    #[inline(always)]
    fn fused<F: Format>(
        self,
        op: &Micro,
        flags: &mut Flags,
        product: u64,
        addend: u64,
    ) -> Result<Outcome, Fault> {
        let (a, b) = (self.unboxed::<F>(op.rs1), self.unboxed::<F>(op.rs2));
        let c = self.unboxed::<F>(op.imm as u8 & 31);
        let round = self.round(op)?;
        let sum = float::mul_add::<F>(a ^ product, b, c ^ addend, round, flags);
        Ok(Float(float::boxed::<F>(sum)))
    }

    #[inline(always)]
    fn select<F: Format>(self, op: &Micro, flags: &mut Flags, function: Select) -> Outcome {
        let (a, b) = (self.unboxed::<F>(op.rs1), self.unboxed::<F>(op.rs2));
        Float(float::boxed::<F>(function(a, b, flags)))
    }

    #[inline(always)]
    fn compare<F: Format>(self, op: &Micro, flags: &mut Flags, function: Compare) -> Outcome {
        let (a, b) = (self.unboxed::<F>(op.rs1), self.unboxed::<F>(op.rs2));
        Integer(function(a, b, flags).into())
    }

    /// The first operand with a sign made of both.
    #[inline(always)]
    fn sign<F: Format>(self, op: &Micro, signs: fn(u64, u64) -> u64) -> Outcome {
        let (a, b) = (self.unboxed::<F>(op.rs1), self.unboxed::<F>(op.rs2));
        Float(float::boxed::<F>(a & !F::SIGN | signs(a, b) & F::SIGN))
    }

    #[inline(always)]
    fn convert<From: Format, To: Format>(
        self,
        op: &Micro,
        flags: &mut Flags,
    ) -> Result<Outcome, Fault> {
        let a = self.unboxed::<From>(op.rs1);
        let value = float::convert::<From, To>(a, self.round(op)?, flags);
        Ok(Float(float::boxed::<To>(value)))
    }

    /// The operand rounded to an integer of its format.
    fn to_integer<F: Format>(self, op: &Micro, flags: &mut Flags) -> Result<Outcome, Fault> {
        let a = self.unboxed::<F>(op.rs1);
        let value = float::round_to_integer::<F>(a, self.round(op)?, flags);
        Ok(Float(float::boxed::<F>(value)))
    }
}
