//! What instructions of straight-line code changed, in few bytes.

use hartrace_isa::csr::FFLAGS;

use crate::{Access, CsrWrite, Effects, RegWrite};

/// What an instruction changed, if that is at most one register, the floating-point flags
/// and one access: a part of [`Effects`] that has room for no more than most instructions do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The register that it wrote, never x0.
    pub reg: Option<RegWrite>,
    /// The access that it made.
    pub access: Option<Access>,
    /// What `fflags` holds, if it wrote them.
    pub fflags: Option<u8>,
    /// It changed more: the next of [`Changes::others`] has everything.
    pub more: bool,
}

/// What all instructions of [`Straights`](crate::Straights) changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// One for each instruction, in order; none at all for an observer that does not want
    /// them.
    pub list: &'a [Change],
    /// The effects of those that changed more, in order.
    pub others: &'a [Effects],
}

impl Change {
    /// No change.
    pub const NONE: Change = Change {
        reg: None,
        access: None,
        fflags: None,
        more: false,
    };

    /// Adds what it holds to effects. No effects have too little room for it.
    #[inline]
    pub fn add_to(&self, effects: &mut Effects) {
        if let Some(reg) = self.reg {
            let _ = effects.regs.push(reg);
        }
        if let Some(value) = self.fflags {
            let value = value.into();
            let _ = effects.csrs.push(CsrWrite { csr: FFLAGS, value });
        }
        if let Some(access) = self.access {
            let _ = effects.accesses.push(access);
        }
    }
}

impl<'a> Changes<'a> {
    /// No changes are known.
    pub const NONE: Changes<'static> = Changes {
        list: &[],
        others: &[],
    };

    /// Takes the next change as effects.
    #[inline]
    pub fn next(&mut self, effects: &mut Effects) {
        effects.clear();
        let Some((change, list)) = self.list.split_first() else {
            return;
        };
        self.list = list;
        if !change.more {
            change.add_to(effects);
        } else if let Some((all, others)) = self.others.split_first() {
            effects.copy_from(all);
            self.others = others;
        }
    }
}
