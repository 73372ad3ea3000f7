//! The device that ends a run, compatible with SiFive's test finisher: one
//! register that is written once.

use crate::fdt;
use crate::memory::Region;

/// Where it is.
pub(crate) const FINISHER: Region = Region {
    base: fdt::FINISHER.0,
    size: fdt::FINISHER.1,
};

const FAIL: u64 = 0x3333;
const PASS: u64 = 0x5555;
const RESET: u64 = 0x7777;

/// What a program has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// To end with this code.
    Exit(u64),
    /// To start again.
    Reset,
}

/// Whether it answers to an access: of two or four bytes.
pub(crate) fn answers(len: u64) -> bool {
    matches!(len, 2 | 4)
}

/// What a store at an offset asks for; the code of a failure is in the upper
/// half of the word.
pub(crate) fn request(offset: u64, value: u64) -> Option<Finish> {
    match value & 0xffff {
        _ if offset != 0 => None,
        // A failure without a code is still none that ended well.
        FAIL => Some(Finish::Exit((value >> 16 & 0xffff).max(1))),
        PASS => Some(Finish::Exit(0)),
        RESET => Some(Finish::Reset),
        _ => None,
    }
}
