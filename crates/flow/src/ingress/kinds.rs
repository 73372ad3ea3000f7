//! What the port shows of each instruction, remembered by its bits.

use alloc::boxed::Box;

use hartrace_isa::{Flow, Itype};

use super::{ItypeWidth, PortConfig};

/// What the port needs to know of an instruction's bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    bits: u32,
    /// `itype` when the next instruction in memory follows, and when it does not.
    itypes: [Itype; 2],
    /// The next instruction in memory always follows.
    pub(super) sequential: bool,
    /// It jumps through a register.
    pub(super) indirect: bool,
}

impl Kind {
    /// What nothing has: such bits are no instruction of 32 or 16 bits.
    const VACANT: Kind = Kind {
        bits: u32::MAX,
        itypes: [Itype::None; 2],
        sequential: true,
        indirect: false,
    };

    fn new(bits: u32, config: &PortConfig) -> Kind {
        let flow = Flow::of_retired(bits, config.isa);
        let mut itypes = [false, true].map(|taken| config.itype(flow, bits, taken));
        if config.all_jumps && matches!(flow, Flow::Jump { .. } | Flow::Table { .. }) {
            itypes = [Itype::Taken; 2];
        }
        if config.is_custom(flow, bits) {
            let [_, elsewhere] = &mut itypes;
            *elsewhere = match config.itype_width {
                ItypeWidth::Three => Itype::Uninferable,
                ItypeWidth::Four => Itype::OtherIndirect,
            };
        }
        Kind {
            bits,
            itypes,
            sequential: flow.is_sequential(),
            indirect: matches!(flow, Flow::Indirect { .. }),
        }
    }

    #[inline]
    pub(super) const fn itype(&self, elsewhere: bool) -> Itype {
        let [behind, other] = self.itypes;
        if elsewhere { other } else { behind }
    }
}

/// Slots, a power of two.
const SLOTS: usize = 1 << 10;

/// The kinds of the instructions met lately: decoding takes longer than
/// looking up.
#[derive(Debug)]
pub(super) struct Kinds(Box<[Kind; SLOTS]>);

impl Kinds {
    pub(super) fn new() -> Kinds {
        Kinds(Box::new([Kind::VACANT; SLOTS]))
    }

    /// `itype` of these bits, if they were met lately.
    #[inline(always)]
    pub(super) fn itype(&self, bits: u32, elsewhere: bool) -> Option<Itype> {
        let kind = self.0.get(slot(bits))?;
        (kind.bits == bits).then(|| kind.itype(elsewhere))
    }

    #[inline]
    pub(super) fn of(&mut self, bits: u32, config: &PortConfig) -> Kind {
        match self.0.get_mut(slot(bits)) {
            Some(kind) if kind.bits == bits && bits != u32::MAX => *kind,
            Some(kind) => {
                *kind = Kind::new(bits, config);
                *kind
            }
            // The mask keeps it inside.
            None => Kind::new(bits, config),
        }
    }
}

#[inline(always)]
const fn slot(bits: u32) -> usize {
    (bits.wrapping_mul(0x9e37_79b9) >> 22) as usize & (SLOTS - 1)
}
