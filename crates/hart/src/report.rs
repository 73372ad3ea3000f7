//! What an instruction changes, for the observer.

use hartrace_flow::{Access, CsrWrite, Effects, Observer, RegId, RegWrite, Wants};

/// What an instruction changes, as far as the observer wants to know.
pub(crate) struct Report<'a, O> {
    pub(crate) effects: &'a mut Effects,
    /// Accesses of straight-line code, which is reported later.
    pub(crate) accesses: &'a mut Vec<Access>,
    pub(crate) observer: &'a mut O,
}

impl<O: Observer> Report<'_, O> {
    #[inline(always)]
    pub(crate) fn reg(&mut self, reg: RegId, value: u64) {
        if const { O::WANTS.contains(Wants::REGS) } {
            let full = self.effects.regs.push(RegWrite { reg, value }).is_err();
            self.effects.incomplete |= full;
        }
    }

    #[inline(always)]
    pub(crate) fn csr(&mut self, csr: u16, value: u64) {
        if const { O::WANTS.contains(Wants::CSRS) } {
            let full = self.effects.csrs.push(CsrWrite { csr, value }).is_err();
            self.effects.incomplete |= full;
        }
    }

    /// The access of a CSR instruction.
    #[inline(always)]
    pub(crate) fn csr_access(&mut self, access: Access) {
        if const { O::WANTS.overlaps(Wants::CSRS.with(Wants::DATA)) } {
            self.effects.csr_access = Some(access);
        }
    }

    #[inline(always)]
    pub(crate) fn access(&mut self, access: Access) {
        if const { O::WANTS.contains(Wants::ACCESSES) } {
            let full = self.effects.accesses.push(access).is_err();
            self.effects.incomplete |= full;
        } else if const { O::WANTS.contains(Wants::DATA) } {
            self.accesses.push(access);
        }
    }
}
