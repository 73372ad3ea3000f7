//! The encodings of an instruction set, for programs that generate
//! instructions.

use crate::op::{ROWS, SHORT_ROWS, allowed};
use crate::{Isa, Op, Short};

/// One row of the tables: the bits that are fixed. The others are operands,
/// and a few of their values are reserved or mean another instruction; decode
/// the result to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// What it does.
    pub op: Op,
    /// The compressed instruction, if it is one.
    pub short: Option<Short>,
    /// Which bits are fixed.
    pub mask: u32,
    /// Their values; zero elsewhere.
    pub value: u32,
}

impl Encoding {
    /// The bits that hold operands.
    #[must_use]
    pub const fn open(self) -> u32 {
        match self.short {
            Some(_) => !self.mask & 0xffff,
            None => !self.mask,
        }
    }
}

/// Every encoding of an instruction set, the 32-bit ones first. An op may have
/// several: its own and those of compressed instructions that stand for it.
///
/// ```
/// use hartrace_isa::{Isa, Op, decode, encodings};
///
/// let add = encodings(Isa::RV64GC).find(|e| e.op == Op::Add).unwrap();
/// assert_eq!(decode(add.value | 10 << 7, Isa::RV64GC).op, Op::Add);
/// ```
pub fn encodings(isa: Isa) -> impl Iterator<Item = Encoding> {
    let full = ROWS.iter().filter(move |r| allowed(r.xlen, r.need, isa));
    let short = SHORT_ROWS.iter();
    let short = short.filter(move |r| allowed(r.xlen, r.need, isa));
    let full = full.map(|row| Encoding {
        op: row.op,
        short: None,
        mask: row.mask,
        value: row.value,
    });
    full.chain(short.map(|row| Encoding {
        op: row.op,
        short: Some(row.short),
        mask: row.mask.into(),
        value: row.value.into(),
    }))
}
