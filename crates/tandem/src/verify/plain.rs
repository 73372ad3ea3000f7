//! The fast comparison: whether a step and a group agree in the simplest way.
//! It may say no where `judge` would find no difference, but never yes where
//! `judge` would find one.

use hartrace_flow::{Access, AccessKind, Effects, Step};

use super::report::Kind;
use super::{Core, PAST, Past};
use crate::follow::Follower;
use crate::group::{Data, Group, How};
use crate::shadow::Shadow;

impl Core {
    /// Whether an instruction did what the group at hand says. If so, the
    /// shadow has it, too; otherwise nothing has changed.
    #[inline]
    pub(super) fn agrees(&mut self, step: &Step, effects: &Effects) -> bool {
        let group = self.reader.group();
        let (Step::Insn(insn), Some(told)) = (step, group.insn) else {
            return false;
        };
        let moves = Follower::at(self.config.xlen, Some(insn.pc)).moves(group);
        let next = match moves.to {
            _ if moves.from != Some(insn.pc) => return false,
            Some(next) if group.pc.is_some() => next,
            _ if self.config.absent.pc => insn.next,
            _ => return false,
        };
        let odd = effects.mode.is_some()
            || group.mode.is_some()
            || group.mtime.is_some()
            || effects.incomplete;
        if told.bits != insn.bits || next != insn.next || odd || !self.same_registers(effects) {
            return false;
        }
        let Some(store) = self.same_data(group, effects) else {
            return false;
        };
        self.accept(insn.pc, told.bits, effects, store);
        if self.disputes.open {
            self.settle_plainly(store);
        }
        self.shadow.pc = Some(next);
        true
    }

    /// Whether the registers of the group are those of the effects. Volatile
    /// ones may be in the group alone, absent ones in the effects alone.
    #[inline]
    fn same_registers(&self, effects: &Effects) -> bool {
        let mut same = 0;
        for change in &self.reader.group().changes {
            let register = change.register;
            let value = match change.how {
                How::Full(value) => value,
                _ => match self.shadow.after(change) {
                    Some(value) => value,
                    None => return false,
                },
            };
            let found = match register.as_reg() {
                Some(reg) => effects.regs.iter().any(|write| {
                    write.reg == reg && self.shadow.fits(register, write.value) == value
                }),
                None => effects
                    .csrs
                    .iter()
                    .any(|write| write.csr == register.number() && write.value == value),
            };
            match found {
                true => same += 1,
                false if self.options.volatile.bits(register) == u64::MAX => {}
                false => return false,
            }
        }
        let all = effects.regs.len() + effects.csrs.len();
        same == all || same == all - self.absent_effects(effects)
    }

    #[cold]
    fn absent_effects(&self, effects: &Effects) -> usize {
        let absent = &self.config.absent.registers;
        let regs = effects
            .regs
            .iter()
            .filter(|w| absent.contains(w.reg.into()));
        let csr = |number| absent.contains(crate::register::Register::csr(number));
        regs.count() + effects.csrs.iter().filter(|w| csr(w.csr)).count()
    }

    /// Whether accesses agree; `Some` with the store to be made in the shadow.
    #[inline]
    fn same_data<'a>(&self, group: &Group, effects: &'a Effects) -> Option<Option<&'a Access>> {
        match (&group.data[..], &effects.accesses[..]) {
            ([], []) => Some(None),
            ([], [access]) if access.kind == AccessKind::Load => Some(None),
            ([], [access]) if self.config.absent.stores => self.plain_store(access).map(Some),
            ([data], [access]) if same_address(data, access) => match (data.store, access.kind) {
                (None, AccessKind::Load) => Some(None),
                (None, AccessKind::Store) if self.config.absent.stores => {
                    self.plain_store(access).map(Some)
                }
                (Some((size, value)), AccessKind::Store) => {
                    let same = size == access.size && access.data == Some(value);
                    if same {
                        self.plain_store(access).map(Some)
                    } else {
                        None
                    }
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A store without side effects.
    #[inline]
    fn plain_store<'a>(&self, access: &'a Access) -> Option<&'a Access> {
        let addr = access.paddr.unwrap_or(access.addr);
        (!self.mailbox.minds(addr)).then_some(access)
    }

    /// Puts what both agree on into the shadow.
    #[inline]
    fn accept(&mut self, pc: u64, bits: u32, effects: &Effects, store: Option<&Access>) {
        let group = self.reader.group();
        let (mut csrs, mut integers, mut floats) = (0, 0, 0);
        for change in &group.changes {
            let register = change.register;
            let Some(value) = self.shadow.after(change) else {
                continue;
            };
            if register.as_csr().is_some() {
                csrs += 1;
                let fresh = &mut self.fresh;
                let volatile = &self.options.volatile;
                self.shadow.set(register, value, &mut |register| {
                    if volatile.bits(register) != 0 {
                        fresh.add(register);
                    }
                });
            } else if !register.is_zero() {
                floats += u64::from(register.is_float());
                integers += 1;
                let same = self.shadow.last(register) == value;
                self.unchanged = self.unchanged.saturating_add(same.into());
                self.shadow.put(register, value);
            }
        }
        if let Some(access) = store {
            let addr = access.paddr.unwrap_or(access.addr);
            let value = access.data.unwrap_or(0);
            self.shadow.memory.write(addr, 1 << access.size, value);
            self.counters.compare(Kind::Store, 1);
        }
        if self.has_absent {
            self.shadow.follow_absent(&self.config.absent, effects);
        }
        let counters = &mut self.counters;
        counters.compare(Kind::Csr, csrs);
        counters.compare(Kind::Integer, integers - floats);
        counters.compare(Kind::Float, floats);
        counters.compare(Kind::Insn, 1);
        counters.compare(Kind::Pc, 1);
        counters.retired += 1;
        let past = Past {
            insn: counters.instructions() - 1,
            group: group.number,
            at: group.at,
            pc,
            bits,
        };
        self.remember(past);
    }

    /// What both have agreed on is not in dispute any more.
    #[cold]
    fn settle_plainly(&mut self, store: Option<&Access>) {
        for change in &self.reader.group().changes {
            let disputes = &mut self.disputes;
            Shadow::holders(change.register, &mut |holder| disputes.overwrite(holder));
        }
        if let Some(access) = store {
            let addr = access.paddr.unwrap_or(access.addr);
            self.disputes.overwrite_memory(addr, 1 << access.size);
        }
    }

    /// Puts a group among those that are over.
    #[inline]
    pub(super) fn remember(&mut self, past: Past) {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        {
            self.past[self.counters.groups as usize % PAST] = past;
        }
        self.counters.groups += 1;
    }
}

/// Whether the addresses in a group are those of the access.
#[inline]
pub(super) fn same_address(data: &Data, access: &Access) -> bool {
    data.eaddr.is_none_or(|addr| addr == access.addr)
        && (data.paddr.is_none() || data.paddr == access.paddr || access.paddr.is_none())
}
