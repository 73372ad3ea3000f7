//! Accesses to registers from every mode.

use hartrace_ctr::{Caller, Control, Csr, Denied, Indirect, Window};
use hartrace_flow::Mode;
use hartrace_isa::Xlen;

use super::{NUMBERS_0_1_4, NUMBERS_1_0, Pair, WINDOWS, same};
use crate::ctr::naive::Asker;
use crate::hostile::Input;

/// What an access is to.
pub(super) enum Access {
    Csr(Csr),
    Entry(u8, u8),
    Select(Window),
    Denied,
}

pub(super) fn caller(who: &Asker) -> Caller {
    Caller {
        mode: who.mode,
        xlen: if who.narrow { Xlen::Rv32 } else { Xlen::Rv64 },
        mstateen0: who.mstateen0,
        hstateen0: who.hstateen0,
        cycles: who.now,
    }
}

impl Pair {
    /// Who asks: often the machine.
    pub(super) fn asker(&mut self, input: &mut Input<'_>) -> Asker {
        let kind = input.byte();
        let mode = match kind {
            0..=99 => Mode::M,
            100..=179 => self.naive.mode,
            _ => input.pick(&self.modes()).unwrap_or_default(),
        };
        self.now = self.now.saturating_add(u64::from(kind & 15));
        let machine = matches!(mode, Mode::M | Mode::D);
        Asker {
            mode,
            narrow: self.naive.plan.narrow || self.narrow_below && !machine,
            mstateen0: self.mstateen0,
            hstateen0: self.hstateen0,
            now: self.now,
        }
    }

    /// A control register with something that makes sense.
    pub(super) fn control(&mut self, input: &mut Input<'_>) -> Result<(), String> {
        let numbers: &[u16] = match (self.naive.plan.draft, self.naive.plan.narrow) {
            (true, true) => &[0x381, 0x382, 0x281, 0x282, 0x181, 0x182],
            (true, false) => &[0x381, 0x281, 0x181],
            (false, _) => &[0x34e, 0x24e, 0x14e],
        };
        let number = input.pick(numbers).unwrap_or(0x34e);
        // Modes are enabled more often than not, filters are few.
        let modes = u64::from(input.byte() | input.byte()) & 7;
        let rest = input.number(6);
        let few = rest & rest >> 13 & rest >> 29;
        let mut value = modes | few & !7;
        if input.below(4) != 0 {
            // RAS emulation and CLR are rarer.
            value &= !0x480;
        }
        if self.naive.plan.narrow && input.flag() {
            value |= few << 32;
        }
        let who = Asker {
            mode: Mode::M,
            ..self.asker(input)
        };
        let who = Asker {
            narrow: self.naive.plan.narrow,
            ..who
        };
        self.write(number, value, &who)
    }

    /// Any register with any value, by anybody.
    pub(super) fn access(&mut self, input: &mut Input<'_>) -> Result<(), String> {
        let own: &[u16] = if self.naive.plan.draft {
            &NUMBERS_0_1_4
        } else {
            &NUMBERS_1_0
        };
        let number = match input.byte() {
            0..=127 => input.pick(own),
            128..=239 => input.pick(&WINDOWS),
            // Of the other map, or nobody's.
            _ => Some(input.number(2) as u16 & 0xfff),
        };
        let number = number.unwrap_or(0);
        let who = self.asker(input);
        if input.flag() {
            return self.read(number, &who);
        }
        let value = match input.byte() {
            0..=31 => u64::MAX,
            32..=63 => 0,
            64..=127 => input.number(2),
            _ => input.number(8),
        };
        self.write(number, value, &who)
    }

    /// A select, and a register behind it.
    pub(super) fn window(&mut self, input: &mut Input<'_>) -> Result<(), String> {
        let base = input.pick(&[0x150, 0x250, 0x350]).unwrap_or(0x150);
        let select = match input.byte() {
            low @ 0..=199 => 0x200 | u64::from(low) & 31,
            200..=239 => 0x200 | u64::from(input.byte()),
            _ => input.number(2),
        };
        let who = self.asker(input);
        self.write(base, select, &who)?;
        let register = input.pick(&[1, 2, 3, 5, 6, 7]).unwrap_or(1);
        if input.flag() {
            self.read(base + register, &who)
        } else {
            let value = input.number(8);
            self.write(base + register, value, &who)
        }
    }

    pub(super) fn clear(&mut self, input: &mut Input<'_>) -> Result<(), String> {
        let who = self.asker(input);
        let ours = self.ctr.check_clear(&caller(&who));
        same("SCTRCLR", ours, self.naive.may_clear(&who))?;
        if ours.is_ok() {
            self.ctr.clear();
            self.naive.clear();
        }
        Ok(())
    }

    pub(super) fn enter(&mut self, input: &mut Input<'_>) {
        let mode = input.pick(&self.modes()).unwrap_or_default();
        let now = self.time(input);
        self.ctr.enter(mode, now);
        self.naive.enter(mode, now);
    }

    /// Other state enables, and widths.
    pub(super) fn enables(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        let some = |bits: u64| match kind & 3 {
            0 => None,
            1 => Some(u64::MAX),
            _ => Some(bits),
        };
        self.mstateen0 = some(input.number(8));
        self.hstateen0 = some(input.number(8)).filter(|_| self.naive.plan.hypervisor);
        self.narrow_below = kind >> 2 & 3 == 0;
    }

    /// Everything is enabled in a mode, and that is where it goes on: so that
    /// something happens.
    pub(super) fn run_in(&mut self, input: &mut Input<'_>) {
        let mode = input.pick(&self.modes()).unwrap_or_default();
        let now = Some(self.now);
        let fields = Control::MODES;
        let who = Asker {
            mode: Mode::M,
            narrow: false,
            mstateen0: None,
            hstateen0: None,
            now: self.now,
        };
        let bits = fields.to_bits(self.ctr.config().version);
        self.ctr.set_control(fields, self.now);
        let depth = self.naive.read(0x381, &who) & 0xf_0000;
        self.naive.write(0x381, bits | depth, &who);
        self.naive.write(0x34e, bits, &who);
        if self.naive.plan.hypervisor {
            self.ctr.set_guest_control(fields, self.now);
            self.naive.write(0x281, bits, &who);
            self.naive.write(0x24e, bits, &who);
        }
        self.ctr.enter(mode, now);
        self.naive.enter(mode, now);
    }

    /// What a select of a window holds for somebody.
    pub(super) fn select(&mut self, window: Window, mode: Mode) -> &mut u64 {
        let [machine, supervisor, guest] = &mut self.selects;
        match window {
            Window::Machine => machine,
            Window::Supervisor if !mode.is_virtual() => supervisor,
            _ => guest,
        }
    }

    /// Whether both allow an access. A register behind a window comes with its
    /// entry.
    pub(super) fn check(&mut self, number: u16, who: &Asker) -> Result<Access, String> {
        let caller = caller(who);
        let window = Window::from_number(number);
        let select = window.map_or(0, |(window, _)| *self.select(window, who.mode));
        let plain = self.naive.may(number, select, who);
        let mut entry = None;
        let ours = match window {
            Some((window, what)) => {
                let there = match window {
                    Window::Machine => true,
                    Window::Supervisor => self.naive.plan.supervisor,
                    Window::Guest => self.naive.plan.hypervisor,
                };
                match (what, Window::entry(select)) {
                    // Whether the window exists is the hart's business.
                    _ if !there => Err(Denied::Illegal),
                    (Indirect::Select, _) => caller.check_window(window),
                    (Indirect::Register(_), None) => Err(Denied::Illegal),
                    (Indirect::Register(register), Some(selected)) => {
                        entry = Some((selected, register));
                        self.ctr.check_entry(window, &caller)
                    }
                }
            }
            None => match Csr::from_number(self.ctr.config().version, number) {
                Some(csr) => self.ctr.check(csr, &caller),
                None => Err(Denied::Illegal),
            },
        };
        same(&format!("access to {number:#x} by {who:?}"), ours, plain)?;
        if ours.is_err() {
            self.done.denied += 1;
            return Ok(Access::Denied);
        }
        Ok(match (window, entry) {
            (_, Some((entry, register))) => Access::Entry(entry, register),
            (Some((window, _)), None) => Access::Select(window),
            (None, None) => match Csr::from_number(self.ctr.config().version, number) {
                Some(csr) => Access::Csr(csr),
                None => Access::Denied,
            },
        })
    }

    pub(super) fn read(&mut self, number: u16, who: &Asker) -> Result<(), String> {
        let caller = caller(who);
        let what = format!("{number:#x} read by {who:?}");
        match self.check(number, who)? {
            Access::Csr(csr) => same(
                &what,
                self.ctr.read(csr, &caller),
                self.naive.read(number, who),
            ),
            Access::Entry(entry, register) => same(
                &what,
                self.ctr.read_entry(entry, register, &caller),
                self.naive.read_entry(entry, register, who.narrow),
            ),
            Access::Select(_) | Access::Denied => Ok(()),
        }
    }

    pub(super) fn write(&mut self, number: u16, value: u64, who: &Asker) -> Result<(), String> {
        let caller = caller(who);
        let value = caller.xlen.wrap(value);
        match self.check(number, who)? {
            Access::Csr(csr) => {
                self.ctr.write(csr, value, &caller);
                self.naive.write(number, value, who);
            }
            Access::Entry(entry, register) => {
                self.ctr.write_entry(entry, register, value, &caller);
                self.naive.write_entry(entry, register, value, who.narrow);
            }
            Access::Select(window) => *self.select(window, who.mode) = value & 0xfff,
            Access::Denied => {}
        }
        Ok(())
    }
}
