//! Values of registers that events need; a trace may report them as increments.

use hartrace_isa::Xlen;

use crate::group::{Change, How};
use crate::register::Register;

/// Integer and floating-point registers, and the scratch, epc, cause and tval
/// CSRs of every mode.
const SLOTS: usize = 96;

/// The values as far as they are known.
#[derive(Clone, Debug)]
pub(super) struct Values {
    xlen: Xlen,
    values: [u64; SLOTS],
    known: u128,
}

impl Values {
    pub(super) fn new(xlen: Xlen) -> Values {
        Values {
            xlen,
            values: [0; SLOTS],
            known: 0,
        }
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.known = 0;
    }

    #[inline]
    pub(super) fn get(&self, register: Register) -> Option<u64> {
        let at = slot(register)?;
        let value = self.values.get(at)?;
        (self.known >> at & 1 != 0).then_some(*value)
    }

    /// A register has changed.
    #[inline]
    pub(super) fn apply(&mut self, change: &Change) {
        let Some(at) = slot(change.register) else {
            return;
        };
        let Some(value) = self.values.get_mut(at) else {
            return;
        };
        match change.how {
            How::Full(new) => {
                *value = new;
                self.known |= 1 << at;
            }
            // Of an unknown value it stays unknown.
            How::Offset(offset) => {
                *value = self.xlen.wrap(value.wrapping_add_signed(offset.into()))
            }
            How::Mask(mask) => *value |= u64::from(mask),
        }
    }
}

/// Where a register's value is.
#[inline]
const fn slot(register: Register) -> Option<usize> {
    let number = register.number() as usize;
    if number >= 0x1000 {
        // x0 has none that could be reported.
        return if number == 0x1000 {
            None
        } else {
            Some(number & 63)
        };
    }
    if number & 0x8fc == 0x040 {
        return Some(64 + (number >> 8 & 7) * 4 + (number & 3));
    }
    None
}
