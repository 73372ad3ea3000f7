//! The fastest comparison: of a step and a group that has not become a
//! [`Group`](crate::Group). It may say no where `plain` would say yes, but never yes
//! where `plain` would say no.

use hartrace_flow::{Access, AccessKind, Effects, Step};

use super::report::Kind;
use super::{Core, Past};
use crate::follow::Follower;
use crate::read::{ROOM, Shape, Shapes};
use crate::register::Register;

impl Core {
    /// The number of the shape of the group that comes next, if it is a brief one and may be
    /// compared while the model runs on, as [`Act::Run`](super::Act::Run) says of other
    /// groups.
    #[inline(always)]
    pub(super) fn look_ahead(&self, bytes: &[u8], shapes: &mut Shapes) -> Option<u16> {
        if !self.has_brief || self.disputes.open || self.is_over() {
            return None;
        }
        let number = self.reader.peek(bytes, self.shadow.pc?, shapes)?;
        let plain = self.fresh.is_empty() || shapes.get(number).bits & 0x7f != 0x73;
        plain.then_some(number)
    }

    /// Whether an instruction did what a group of this shape says, which is at the start of
    /// `bytes`. If so, the shadow has it, too, and the group is read; otherwise nothing
    /// has changed.
    #[inline(always)]
    pub(super) fn agrees_briefly(
        &mut self,
        shape: &Shape,
        step: &Step,
        effects: &Effects,
        bytes: &mut &[u8],
    ) -> bool {
        let (Step::Insn(insn), Some(window)) = (step, bytes.first_chunk::<ROOM>()) else {
            return false;
        };
        let next = match shape.to {
            Some(to) => to.value(window),
            None => Follower::at(self.config.xlen, None).after(insn.pc, shape.insn_len),
        };
        let odd = effects.mode.is_some() | effects.incomplete;
        if shape.bits != insn.bits || next != insn.next || odd {
            return false;
        }
        let (Some(reg), Some(csr), Some(access)) = (
            effects.regs.at_most_one(),
            effects.csrs.at_most_one(),
            effects.accesses.at_most_one(),
        ) else {
            return false;
        };
        let reg = match (reg, shape.reg) {
            (None, None) => None,
            (Some(write), Some((register, field))) => {
                let value = field.value(window);
                let same = Register::from(write.reg) == register;
                if !same || self.shadow.fits(register, write.value) != value {
                    return false;
                }
                Some((register, value))
            }
            _ => return false,
        };
        let csr = match (csr, shape.csr) {
            (None, None) => None,
            (Some(write), Some((register, field))) => {
                let value = field.value(window);
                let same = write.csr == register.number() && write.value == value;
                if !same || self.options.volatile.bits(register) != 0 {
                    return false;
                }
                Some((register, value))
            }
            _ => return false,
        };
        let store = match access {
            None if shape.addr.is_none() && shape.store.is_none() => None,
            Some(access) if self.is_told(access, shape, window) => {
                Some(access).filter(|access| access.kind == AccessKind::Store)
            }
            _ => return false,
        };
        self.accept_brief(reg, store);
        if let Some((register, value)) = csr {
            // It is not volatile.
            self.shadow.set(register, value, &mut |_| {});
            self.counters.compare(Kind::Csr, 1);
        }
        let past = Past {
            insn: self.counters.instructions() - 1,
            group: self.reader.groups(),
            at: self.reader.offset(),
            pc: insn.pc,
            bits: shape.bits,
        };
        self.remember(past);
        self.shadow.pc = Some(next);
        self.reader.skip(shape, bytes);
        true
    }

    /// Whether a group says this of an access: a load, or a store without side effects.
    #[inline(always)]
    fn is_told(&self, access: &Access, shape: &Shape, window: &[u8; ROOM]) -> bool {
        shape
            .addr
            .is_none_or(|addr| addr.value(window) == access.addr)
            && match (shape.store, access.kind) {
                (None, AccessKind::Load) => true,
                (Some((size, data)), AccessKind::Store) => {
                    size == access.size
                        && access.data == Some(data.value(window))
                        && !self.mailbox.minds(access.paddr.unwrap_or(access.addr))
                }
                _ => false,
            }
    }

    /// Puts what both agree on into the shadow and the counters.
    #[inline(always)]
    fn accept_brief(&mut self, reg: Option<(Register, u64)>, store: Option<&Access>) {
        if let Some((register, value)) = reg {
            let same = self.shadow.last(register) == value;
            self.unchanged = self.unchanged.saturating_add(same.into());
            self.shadow.put(register, value);
            let kind = match register.is_float() {
                true => Kind::Float,
                false => Kind::Integer,
            };
            self.counters.compare(kind, 1);
        }
        if let Some(access) = store {
            let addr = access.paddr.unwrap_or(access.addr);
            let data = access.data.unwrap_or(0);
            self.shadow.memory.write(addr, 1 << access.size, data);
            self.counters.compare(Kind::Store, 1);
        }
        self.counters.compare(Kind::Insn, 1);
        self.counters.compare(Kind::Pc, 1);
        self.counters.retired += 1;
    }
}
