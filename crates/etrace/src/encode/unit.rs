//! Units: the parts of a block that the encoder examines.

use hartrace_flow::{Context, Ctype, Ingress, Mode};
use hartrace_isa::Itype;

use crate::Config;

/// An instruction, or a trap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Of a trap 1 or 2, of an instruction neither.
    pub(super) itype: Itype,
    /// Of the instruction; of a trap the EPC, as far as the port reports it.
    pub(super) addr: u64,
    /// Where the next instruction is if nothing else is known; may pass the
    /// highest address.
    pub(super) end: u64,
    pub(super) time: u64,
    /// Halfwords retired before it, since the hart was first seen.
    pub(super) halfwords: u64,
    pub(super) mode: Mode,
    pub(super) context: Context,
    /// How its context came to be another than that of the unit before.
    pub(super) change: Ctype,
    /// Its address is asked for.
    pub(super) notify: bool,
    /// The next unit is further on in the same block.
    pub(super) inside: bool,
    /// The code determines where the jump goes if the instruction before it was
    /// traced.
    pub(super) sijump: bool,
    /// An instruction that retires in the block of its trap.
    pub(super) traps: bool,
    /// Of a trap.
    pub(super) cause: u32,
    pub(super) tval: u64,
}

/// Whether `sijump` is heeded: of a return or trap return it is not
/// (table 4.1).
#[inline]
pub(super) fn is_sijump(config: &Config, b: &Ingress) -> bool {
    config.sijump && b.sijump && !matches!(b.itype, Itype::Return | Itype::TrapReturn)
}

impl Unit {
    /// Before anything was seen.
    pub(super) fn nothing() -> Unit {
        Unit::first(&Ingress::default(), 0)
    }

    /// The first instruction of a block with several.
    pub(super) fn first(b: &Ingress, halfwords: u64) -> Unit {
        Unit {
            itype: Itype::None,
            addr: b.iaddr,
            // Its size is not known. What follows it does so in the block.
            end: b.last_addr(),
            time: b.time,
            halfwords,
            mode: b.mode,
            context: b.context,
            change: Ctype::Unreported,
            notify: false,
            inside: b.last_addr() != b.iaddr,
            sijump: false,
            traps: false,
            cause: 0,
            tval: 0,
        }
    }

    /// The last instruction of a block, which may be the only one.
    pub(super) fn last(config: &Config, b: &Ingress, halfwords: u64) -> Unit {
        let addr = b.last_addr();
        let before = addr.wrapping_sub(b.iaddr) / 2;
        Unit {
            itype: match b.itype.is_trap() {
                true => Itype::None,
                false => b.itype,
            },
            addr,
            end: b.end(),
            inside: false,
            sijump: is_sijump(config, b),
            traps: b.itype.is_trap(),
            ..Unit::first(b, halfwords + before)
        }
    }

    /// The trap a block ended with.
    pub(super) fn trap(config: &Config, b: &Ingress, halfwords: u64) -> Unit {
        Unit {
            itype: b.itype,
            addr: config.xlen.wrap(b.end()),
            inside: false,
            cause: b.cause,
            tval: b.tval,
            ..Unit::first(b, halfwords + u64::from(b.iretire))
        }
    }
}
