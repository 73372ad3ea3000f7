//! Groups without instructions: the pc where the previous group does not lead
//! to it, and changes made from outside the hart.

use hartrace_flow::{Effects, Mode, Signal};

use super::{Encoder, Sink, mode_code};
use crate::item::Item;
use crate::register::Register;

impl Encoder {
    /// The hart is at `pc`, if that is known, in `mode`.
    #[inline]
    pub(super) fn arrive<S: Sink>(&mut self, pc: Option<u64>, mode: Mode, sink: &mut S) {
        let here = pc.is_none() || self.pc == pc;
        if !here || self.mode != Some(mode_code(mode)) || self.outside.is_some() {
            self.arrive_elsewhere(pc, mode, sink);
        }
    }

    #[cold]
    fn arrive_elsewhere<S: Sink>(&mut self, pc: Option<u64>, mode: Mode, sink: &mut S) {
        let effects = self.outside.take();
        let code = mode_code(mode);
        // A trace that starts without saying where.
        let silent = self.pc.is_none() && !self.place_due && effects.is_none();
        let moved = pc.filter(|_| self.pc != pc && !silent && !self.config.absent.pc);
        let changed = self.mode != Some(code) && !silent && !self.config.absent.mode;
        self.pc = pc.or(self.pc);
        self.place_due = false;
        if moved.is_some() || changed || effects.is_some() {
            self.begin();
            self.item(Item::StateInit);
            if let Some(pc) = moved {
                self.new_pc(Some(pc), pc);
            }
            if let Some(effects) = effects {
                self.set_from_outside(&effects);
            }
            if changed {
                self.new_mode(mode);
            }
            self.end(sink);
        }
        self.mode = Some(code);
    }

    pub(super) fn signal<S: Sink>(&mut self, signal: Signal, effects: &Effects, sink: &mut S) {
        match signal {
            Signal::Halted | Signal::Resumed => self.keep_outside(effects),
            Signal::Update => {
                self.tell_outside(sink);
                if changes_nothing(effects) {
                    return;
                }
                self.begin();
                self.item(Item::StateInit);
                self.set_from_outside(effects);
                if let Some(mode) = effects.mode {
                    self.new_mode(mode);
                }
                self.end(sink);
            }
            Signal::Reset => {
                self.outside = None;
                self.forget();
                self.place_due = self.config.style.start;
                self.inhibited = false;
                self.begin();
                self.item(Item::Reset);
                self.changes(effects, false);
                self.operands.follow(&effects.regs[..]);
                self.end(sink);
            }
            Signal::Lost | Signal::Untraced => {
                self.tell_outside(sink);
                self.forget();
                self.place_due = true;
            }
            _ => {}
        }
    }

    /// What a debugger has changed, until it is known where the hart goes on.
    fn keep_outside(&mut self, effects: &Effects) {
        if changes_nothing(effects) {
            return;
        }
        let kept = self.outside.get_or_insert_default();
        let regs = effects.regs.iter().all(|w| kept.regs.push(*w).is_ok());
        let csrs = effects.csrs.iter().all(|w| kept.csrs.push(*w).is_ok());
        let stores = effects
            .accesses
            .iter()
            .all(|a| kept.accesses.push(*a).is_ok());
        kept.incomplete |= effects.incomplete || !(regs && csrs && stores);
    }

    /// What still waits for a place, without one.
    pub(super) fn tell_outside<S: Sink>(&mut self, sink: &mut S) {
        if let Some(effects) = self.outside.take() {
            self.begin();
            self.item(Item::StateInit);
            self.set_from_outside(&effects);
            self.end(sink);
        }
    }

    /// Registers and memory that others have set: whole values.
    fn set_from_outside(&mut self, effects: &Effects) {
        let told = self.told.take();
        self.changes(effects, false);
        self.told = told;
        if let Some(told) = &mut self.told {
            for write in &*effects.regs {
                told.tell(write.reg.into(), write.value);
            }
            for write in &*effects.csrs {
                told.tell(Register::csr(write.csr), write.value);
            }
        }
        self.operands.follow(&effects.regs[..]);
        self.outside_stores(effects);
    }

    fn forget(&mut self) {
        self.pc = None;
        self.mode = None;
        self.operands.forget();
        if let Some(told) = &mut self.told {
            told.forget();
        }
    }
}

fn changes_nothing(effects: &Effects) -> bool {
    effects.regs.is_empty()
        && effects.csrs.is_empty()
        && effects.accesses.is_empty()
        && effects.mode.is_none()
}
