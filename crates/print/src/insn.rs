//! The text of single instructions.

use hartrace_isa::{Resolve, Style, decode};
use std::fmt;

/// An instruction as text; without a `pc`, targets are relative to it.
#[must_use]
pub(crate) fn insn_text(bits: u32, pc: Option<u64>, style: &Style) -> String {
    let inst = decode(bits, style.isa);
    let text = match pc {
        Some(pc) => inst.text(pc, style).to_string(),
        None => inst.text(0, style).resolve(&Relative).to_string(),
    };
    text.replace('\t', " ")
}

/// Addresses relative to an instruction at 0: `.+0x10`.
pub(crate) struct Relative;

impl Resolve for Relative {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        // Of RV32 the upper half is zero.
        let distance = match u32::try_from(address) {
            Ok(short) => i64::from(short.cast_signed()),
            Err(_) => address.cast_signed(),
        };
        let sign = if distance < 0 { '-' } else { '+' };
        write!(f, ".{sign}{:#x}", distance.unsigned_abs())
    }
}
