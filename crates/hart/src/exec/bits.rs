//! Bit manipulation: Zba, Zbb, Zbs, Zbc and Zicond, as functions of two
//! operands.

use hartrace_isa::Op;

use crate::width::{Rv64, Width};

/// The result of an instruction that only computes; `None` for all others.
#[inline(always)]
pub(crate) fn evaluate<W: Width>(op: Op, a: u64, b: u64, imm: u64) -> Option<u64> {
    let (sa, sb) = (a as i64, b as i64);
    let low = a as u32 as u64;
    let bit = |n: u64| 1u64 << (n as u32 % W::BITS);
    let ua = W::unsigned(a);
    Some(match op {
        Op::Sh1add => (a << 1).wrapping_add(b),
        Op::Sh2add => (a << 2).wrapping_add(b),
        Op::Sh3add => (a << 3).wrapping_add(b),
        Op::Sh1addUw => (low << 1).wrapping_add(b),
        Op::Sh2addUw => (low << 2).wrapping_add(b),
        Op::Sh3addUw => (low << 3).wrapping_add(b),
        Op::AddUw => low.wrapping_add(b),
        Op::SlliUw => low << (imm & 63),

        Op::Andn => a & !b,
        Op::Orn => a | !b,
        Op::Xnor => !(a ^ b),
        Op::Clz => u64::from(ua.leading_zeros()) + u64::from(W::BITS) - 64,
        Op::Ctz => ua.trailing_zeros().min(W::BITS).into(),
        Op::Cpop => ua.count_ones().into(),
        Op::Clzw => (a as u32).leading_zeros().into(),
        Op::Ctzw => (a as u32).trailing_zeros().into(),
        Op::Cpopw => (a as u32).count_ones().into(),
        Op::Min => sa.min(sb) as u64,
        Op::Max => sa.max(sb) as u64,
        Op::Minu => a.min(b),
        Op::Maxu => a.max(b),
        Op::SextB => a as i8 as u64,
        Op::SextH => a as i16 as u64,
        Op::ZextH => a as u16 as u64,
        Op::OrcB => or_bytes(a),
        Op::Rev8 => ua.swap_bytes() >> (64 - W::BITS),
        Op::Rol => rotate_left::<W>(a, b),
        Op::Ror => rotate_left::<W>(a, b.wrapping_neg()),
        Op::Rori => rotate_left::<W>(a, imm.wrapping_neg()),
        Op::Rolw => (a as u32).rotate_left(b as u32 & 31) as i32 as u64,
        Op::Rorw => (a as u32).rotate_right(b as u32 & 31) as i32 as u64,
        Op::Roriw => (a as u32).rotate_right(imm as u32 & 31) as i32 as u64,

        Op::Bclr => a & !bit(b),
        Op::Bclri => a & !bit(imm),
        Op::Bset => a | bit(b),
        Op::Bseti => a | bit(imm),
        Op::Binv => a ^ bit(b),
        Op::Binvi => a ^ bit(imm),
        Op::Bext => a >> (b as u32 % W::BITS) & 1,
        Op::Bexti => a >> (imm as u32 % W::BITS) & 1,

        Op::Clmul => carry_less(ua, W::unsigned(b)) as u64,
        Op::Clmulh => (carry_less(ua, W::unsigned(b)) >> W::BITS) as u64,
        Op::Clmulr => (carry_less(ua, W::unsigned(b)) >> (W::BITS - 1)) as u64,

        Op::CzeroEqz => if b == 0 { 0 } else { a },
        Op::CzeroNez => if b != 0 { 0 } else { a },
        _ => return None,
    })
}

/// Whether [`evaluate`] knows the instruction.
pub(crate) fn is_bits(op: Op) -> bool {
    evaluate::<Rv64>(op, 0, 0, 0).is_some()
}

#[inline(always)]
fn rotate_left<W: Width>(a: u64, by: u64) -> u64 {
    if W::RV32 {
        (a as u32).rotate_left(by as u32 & 31).into()
    } else {
        a.rotate_left(by as u32 & 63)
    }
}

/// Every byte with a bit set becomes all ones.
fn or_bytes(a: u64) -> u64 {
    u64::from_le_bytes(a.to_le_bytes().map(|byte| if byte == 0 { 0 } else { 0xff }))
}

/// The product of two polynomials over the field of two elements.
fn carry_less(a: u64, b: u64) -> u128 {
    let mut product = 0;
    let mut rest = b;
    while rest != 0 {
        product ^= u128::from(a) << rest.trailing_zeros();
        rest &= rest - 1;
    }
    product
}
