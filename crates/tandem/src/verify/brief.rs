//! The fastest comparison: of a step and a group that has not become a
//! [`Group`](crate::Group). It may say no where `plain` would say yes, but never yes
//! where `plain` would say no.

use hartrace_flow::{Access, AccessKind, Effects, Step};

use super::report::Kind;
use super::{Core, Past};
use crate::follow::Follower;
use crate::read::Brief;
use crate::register::Register;

impl Core {
    /// The group that comes next, if it is a brief one and may be compared while the
    /// model runs on, as [`Act::Run`](super::Act::Run) says of other groups.
    #[inline(always)]
    pub(super) fn look_ahead(&self, bytes: &[u8]) -> Option<Brief> {
        if !self.has_brief || self.disputes.open || self.is_over() {
            return None;
        }
        let told = self.reader.peek(bytes)?;
        let plain = self.fresh.is_empty() || told.bits & 0x7f != 0x73;
        (plain && self.shadow.pc.is_some()).then_some(told)
    }

    /// Whether an instruction did what this group says, which is at the start of
    /// `bytes`. If so, the shadow has it, too, and the group is read; otherwise nothing
    /// has changed.
    #[inline(always)]
    pub(super) fn agrees_briefly(
        &mut self,
        told: &Brief,
        step: &Step,
        effects: &Effects,
        bytes: &mut &[u8],
    ) -> bool {
        let Step::Insn(insn) = step else {
            return false;
        };
        let next = match told.to {
            Some(to) => to,
            None => Follower::at(self.config.xlen, None).after(insn.pc, told.insn_len),
        };
        let odd = effects.mode.is_some() | effects.incomplete;
        if told.bits != insn.bits || next != insn.next || odd {
            return false;
        }
        match (&effects.regs[..], told.reg) {
            ([], None) => {}
            ([write], Some((register, value)))
                if Register::from(write.reg) == register
                    && self.shadow.fits(register, write.value) == value => {}
            _ => return false,
        }
        let csr = told.has_csr() | !effects.csrs.is_empty();
        if csr && !self.agrees_on_csr(told, effects, bytes) {
            return false;
        }
        let store = match &effects.accesses[..] {
            [] if told.addr.is_none() && told.store.is_none() => None,
            [access] if self.is_told(access, told) => {
                Some(access).filter(|access| access.kind == AccessKind::Store)
            }
            _ => return false,
        };
        self.accept_brief(told, store);
        if csr {
            self.accept_csr(told, bytes);
        }
        let past = Past {
            insn: self.counters.instructions() - 1,
            group: self.reader.groups(),
            at: self.reader.offset(),
            pc: insn.pc,
            bits: told.bits,
        };
        self.remember(past);
        self.shadow.pc = Some(next);
        self.reader.skip(told, bytes);
        true
    }

    /// Whether a group says the same of the only CSR that was written.
    #[cold]
    fn agrees_on_csr(&self, told: &Brief, effects: &Effects, bytes: &[u8]) -> bool {
        match (&effects.csrs[..], self.reader.csr(told, bytes)) {
            ([write], Some((register, value))) => {
                write.csr == register.number()
                    && write.value == value
                    && self.options.volatile.bits(register) == 0
            }
            _ => false,
        }
    }

    /// The shadow has the CSR, too.
    #[cold]
    fn accept_csr(&mut self, told: &Brief, bytes: &[u8]) {
        if let Some((register, value)) = self.reader.csr(told, bytes) {
            // It is not volatile.
            self.shadow.set(register, value, &mut |_| {});
            self.counters.compare(Kind::Csr, 1);
        }
    }

    /// Whether a group says this of an access: a load, or a store without side effects.
    #[inline(always)]
    fn is_told(&self, access: &Access, told: &Brief) -> bool {
        told.addr.is_none_or(|addr| addr == access.addr)
            && match (told.store, access.kind) {
                (None, AccessKind::Load) => true,
                (Some((size, data)), AccessKind::Store) => {
                    size == access.size
                        && access.data == Some(data)
                        && !self.mailbox.minds(access.paddr.unwrap_or(access.addr))
                }
                _ => false,
            }
    }

    /// Puts what both agree on into the shadow and the counters.
    #[inline(always)]
    fn accept_brief(&mut self, told: &Brief, store: Option<&Access>) {
        if let Some((register, value)) = told.reg {
            let same = self.shadow.last(register) == value;
            self.unchanged = self.unchanged.saturating_add(same.into());
            self.shadow.put(register, value);
            let kind = match register.is_float() {
                true => Kind::Float,
                false => Kind::Integer,
            };
            self.counters.compare(kind, 1);
        }
        if let (Some(access), Some((size, data))) = (store, told.store) {
            let addr = access.paddr.unwrap_or(access.addr);
            self.shadow.memory.write(addr, 1 << size, data);
            self.counters.compare(Kind::Store, 1);
        }
        self.counters.compare(Kind::Insn, 1);
        self.counters.compare(Kind::Pc, 1);
        self.counters.retired += 1;
    }
}
