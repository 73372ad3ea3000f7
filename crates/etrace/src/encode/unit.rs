//! Units: what the encoder looks at in a block.

use hartrace_flow::{Context, Ctype, Ingress, Mode};
use hartrace_isa::Itype;

use crate::Config;

/// An instruction, or a trap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) kind: Kind,
    /// Of the instruction; of a trap the EPC, as far as the port tells.
    pub(super) addr: u64,
    /// Where the next instruction is if nothing else is known.
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
    /// The code tells where the jump goes if the instruction before it was
    /// traced.
    pub(super) sijump: bool,
    /// Of a trap.
    pub(super) cause: u32,
    pub(super) tval: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An instruction after which the code tells where the hart goes.
    Plain,
    NotTaken,
    Taken,
    /// A jump to where the code does not tell.
    Jump,
    Exception,
    Interrupt,
}

impl Kind {
    /// Of the instruction that ends a block with this `itype`. For the draft's
    /// and 2.0's "updiscon" the texts name 8, 10, 12 and 14; 6 stands for them
    /// where `itype` has three bits, 13 is one while returns are not implied,
    /// and 3 leads where no code tells either.
    #[inline]
    pub(super) const fn of(itype: Itype) -> Kind {
        match itype {
            Itype::NotTaken => Kind::NotTaken,
            Itype::Taken => Kind::Taken,
            itype if itype.is_uninferable() => Kind::Jump,
            _ => Kind::Plain,
        }
    }

    pub(super) const fn is_trap(self) -> bool {
        matches!(self, Kind::Exception | Kind::Interrupt)
    }

    #[inline]
    pub(super) const fn is_branch(self) -> bool {
        matches!(self, Kind::NotTaken | Kind::Taken)
    }
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
            kind: Kind::Plain,
            addr: b.iaddr,
            // Its size is not known. What follows it does so in the block.
            end: b.last_addr(),
            time: b.time,
            halfwords,
            mode: b.mode,
            context: b.context,
            change: Ctype::Unreported,
            notify: false,
            sijump: false,
            cause: 0,
            tval: 0,
        }
    }

    /// The last instruction of a block, which may be the only one.
    pub(super) fn last(config: &Config, b: &Ingress, halfwords: u64) -> Unit {
        let addr = b.last_addr();
        let before = addr.wrapping_sub(b.iaddr) / 2;
        Unit {
            kind: Kind::of(b.itype),
            addr,
            end: config.xlen.wrap(b.end()),
            sijump: is_sijump(config, b),
            ..Unit::first(b, halfwords + before)
        }
    }

    /// The trap a block ended with.
    pub(super) fn trap(config: &Config, b: &Ingress, halfwords: u64) -> Unit {
        Unit {
            kind: match b.itype {
                Itype::Interrupt => Kind::Interrupt,
                _ => Kind::Exception,
            },
            addr: config.xlen.wrap(b.end()),
            cause: b.cause,
            tval: b.tval,
            ..Unit::first(b, halfwords + u64::from(b.iretire))
        }
    }
}
