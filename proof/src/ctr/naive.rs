//! A second model of Control Transfer Records, as simple as possible: a list of
//! entries, the newest first, and registers as numbers. It is written from the
//! specifications alone, without regard to speed.

use hartrace_flow::{Cause, Mode, Transfer};
use hartrace_isa::Itype;

use super::plan::Plan;

mod registers;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) mode: Mode,
    pub(crate) narrow: bool,
    pub(crate) mstateen0: Option<u64>,
    pub(crate) hstateen0: Option<u64>,
    pub(crate) now: u64,
}

/// `ctrsource`, `ctrtarget`, `ctrdata`.
pub(crate) type Entry = (u64, u64, u64);

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    pub(crate) plan: Plan,
    /// The machine's control register and the guest's, without DEPTH.
    host: u64,
    guest: u64,
    wrptr: u64,
    wrap: bool,
    frozen: bool,
    /// As many as the depth says, the newest first.
    pub(crate) entries: Vec<Entry>,
    /// Physical entries beyond the depth.
    behind: Vec<Entry>,
    pub(crate) mode: Mode,
    counter: u64,
    counter_is_valid: bool,
    /// The time of whatever came last, if it is known.
    last: Option<u64>,
}

const LOW: u64 = 0xffff_ffff;

impl Naive {
    pub(crate) fn new(plan: Plan) -> Naive {
        let depth = plan.depths.first().copied().map_or(16, usize::from);
        Naive {
            plan,
            host: 0,
            guest: 0,
            wrptr: 0,
            wrap: false,
            frozen: false,
            entries: vec![(0, 0, 0); depth],
            behind: vec![(0, 0, 0); 256 - depth],
            mode: Mode::M,
            counter: 0,
            counter_is_valid: false,
            last: None,
        }
    }

    fn depth(&self) -> u64 {
        self.entries.len() as u64
    }

    // --- Cycles ----------------------------------------------------------

    /// Time goes on up to now; cycles count while it records.
    fn tick(&mut self, now: Option<u64>) {
        if self.is_active() {
            match (self.last, now) {
                (Some(last), Some(now)) if last <= now => {
                    self.counter = self.counter.saturating_add(now - last);
                }
                _ => self.counter_is_valid = false,
            }
        }
        self.last = now;
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.frozen && self.enables(self.mode)
    }

    /// CC and CCV for a record, which starts the counter anew.
    fn count(&mut self, told: bool) -> u64 {
        let cycles = core::mem::take(&mut self.counter);
        let valid = core::mem::replace(&mut self.counter_is_valid, true);
        let Some(bits) = self.plan.cycles.filter(|_| valid && told) else {
            return 0;
        };
        let most = match bits {
            0 => 4095,
            1 => 8191,
            2 => 32764,
            3 => 524_224,
            _ => 134_201_344,
        };
        let (mut cce, mut rest) = (0, cycles.min(most));
        if rest >= 4096 {
            // Halved until it is below 2^13; the top bit is not reported.
            cce = 1;
            while rest >= 8192 {
                rest /= 2;
                cce += 1;
            }
            rest -= 4096;
        }
        1 << 15 | rest << 16 | cce << 28
    }

    /// The cycles that a `ctrdata` tells, if they are valid.
    fn told(data: u64) -> Option<u64> {
        if data >> 15 & 1 == 0 {
            return None;
        }
        let (cce, ccm) = (data >> 28 & 15, data >> 16 & 0xfff);
        Some(if cce == 0 {
            ccm
        } else {
            (4096 + ccm) << (cce - 1)
        })
    }

    // --- Recording -------------------------------------------------------

    /// The register that has the enable of a mode.
    fn register(&self, mode: Mode) -> u64 {
        match mode {
            Mode::VS | Mode::VU => self.guest,
            _ => self.host,
        }
    }

    fn enables(&self, mode: Mode) -> bool {
        let field = match mode {
            Mode::M => "M",
            Mode::S | Mode::VS => "S",
            Mode::U | Mode::VU => "U",
            Mode::D => return false,
        };
        self.register(mode) & self.plan.bit(field) != 0
    }

    /// The hart is in this mode now.
    pub(crate) fn enter(&mut self, mode: Mode, now: Option<u64>) {
        if mode != self.mode {
            self.tick(now);
            self.mode = mode;
        }
    }

    /// A transfer that retires.
    pub(crate) fn transfer(&mut self, t: &Transfer) {
        let trap = matches!(t.kind, Itype::Exception | Itype::Interrupt);
        let from = t.from.unwrap_or(self.mode);
        let behind = t.to.unwrap_or(if trap { Mode::M } else { from });
        // Nothing else changes the mode: what did comes after it.
        let changes = trap || t.kind == Itype::TrapReturn;
        let to = if changes { behind } else { from };
        self.enter(from, t.time);
        // What leaves no record and no mode needs no time.
        if t.time.is_some() || trap || from != to || self.records_within(t, from) {
            self.tick(t.time);
        }
        if trap && self.freezes(t.cause, from, to) {
            self.frozen = true;
        }
        if !self.frozen && from != Mode::D && to != Mode::D {
            self.qualify(t, trap, from, to);
        }
        self.mode = to;
        self.enter(behind, t.time);
    }

    /// Whether a transfer within a mode is recorded, or pops a record.
    fn records_within(&self, t: &Transfer, mode: Mode) -> bool {
        let register = self.register(mode);
        let calls = matches!(
            t.kind,
            Itype::DirectCall | Itype::IndirectCall | Itype::Return | Itype::Swap
        );
        let passes = match register & self.plan.bit("RASEMU") != 0 {
            true => calls,
            false => self.passes(register, t.kind),
        };
        !self.frozen && self.enables(mode) && passes
    }

    fn freezes(&self, cause: Option<Cause>, from: Mode, to: Mode) -> bool {
        let field = match cause {
            Some(Cause::Exception(Some(3))) => "BPFRZ",
            Some(Cause::Interrupt(Some(13))) => "LCOFIFRZ",
            _ => return false,
        };
        let decides = if self.plan.draft { from } else { to };
        to != Mode::D && self.register(decides) & self.plan.bit(field) != 0
    }

    /// What becomes of a transfer while nothing is frozen.
    fn qualify(&mut self, t: &Transfer, trap: bool, from: Mode, to: Mode) {
        let virtualised = |mode| matches!(mode, Mode::VS | Mode::VU);
        let guests = virtualised(from) || !self.plan.draft && virtualised(to);
        let register = if guests { self.guest } else { self.host };
        if register & self.plan.bit("RASEMU") != 0 {
            if from == to && self.enables(from) {
                self.stack(t);
            }
            return;
        }
        let passes = self.passes(register, t.kind);
        match (self.enables(from), self.enables(to)) {
            (true, true) if passes => self.push(t, t.source, t.target),
            (true, false) if trap => {
                let shown = self.shows_external(from, to);
                if shown {
                    self.push(t, t.source, 0);
                }
            }
            (true, false) if passes => self.push(t, t.source, 0),
            (false, true) if passes && trap => self.push(t, 0, t.target),
            _ => {}
        }
    }

    /// Whether the filters of a register let a type through.
    fn passes(&self, register: u64, kind: Itype) -> bool {
        let inhibit = match kind {
            Itype::Exception => "EXCINH",
            Itype::Interrupt => "INTRINH",
            Itype::TrapReturn => "TRETINH",
            Itype::NotTaken => "NTBREN",
            Itype::Taken => "TKBRINH",
            Itype::IndirectCall => "INDCALLINH",
            Itype::DirectCall => "DIRCALLINH",
            Itype::IndirectJump => "INDJMPINH",
            Itype::DirectJump => "DIRJMPINH",
            Itype::Swap => "CORSWAPINH",
            Itype::Return => "RETINH",
            Itype::OtherIndirect => "INDLJMPINH",
            Itype::OtherDirect => "DIRLJMPINH",
            Itype::None | Itype::Uninferable | Itype::Reserved => return false,
        };
        let set = register & self.plan.bit(inhibit) != 0;
        set == (kind == Itype::NotTaken)
    }

    /// Whether a trap from an enabled to a disabled mode is recorded.
    fn shows_external(&self, from: Mode, to: Mode) -> bool {
        let mte = self.host & self.plan.bit("MTE") != 0;
        let ste = self.host & self.plan.bit("STE") != 0;
        let vste = self.guest & self.plan.bit("STE") != 0;
        if self.plan.draft {
            let eten = self.register(from) & self.plan.bit("ETEN") != 0;
            let agrees = match to {
                Mode::M => mte,
                Mode::S => ste,
                Mode::VS => vste,
                _ => false,
            };
            return eten && agrees;
        }
        match (from, to) {
            (Mode::U, Mode::S) | (Mode::VS, Mode::S) => ste,
            (Mode::U, Mode::M) | (Mode::VS, Mode::M) => mte && ste,
            (Mode::S, Mode::M) => mte,
            (Mode::VU, Mode::VS) => vste,
            (Mode::VU, Mode::S) => ste && vste,
            (Mode::VU, Mode::M) => mte && ste && vste,
            _ => false,
        }
    }

    /// RAS emulation, within an enabled mode.
    fn stack(&mut self, t: &Transfer) {
        let newest = self.entries.first().copied().unwrap_or_default();
        match t.kind {
            Itype::IndirectCall | Itype::DirectCall => self.push(t, t.source, t.target),
            Itype::Return => {
                self.take_over(newest);
                self.wrap &= self.wrptr != 0;
                self.wrptr = (self.wrptr + self.depth() - 1) % self.depth();
                self.entries.rotate_left(1);
                if let Some(last) = self.entries.last_mut() {
                    last.0 &= !1;
                }
            }
            Itype::Swap => {
                self.take_over(newest);
                let entry = self.entry(t, t.source, t.target, true);
                if let Some(first) = self.entries.first_mut() {
                    *first = entry;
                }
            }
            _ => {}
        }
    }

    /// A call that is gone: its cycles are those of the next record.
    fn take_over(&mut self, (source, _, data): Entry) {
        if source & 1 == 0 || self.plan.cycles.is_none() {
            return;
        }
        match Naive::told(data) {
            Some(cycles) => self.counter = self.counter.saturating_add(cycles),
            None => self.counter_is_valid = false,
        }
    }

    fn push(&mut self, t: &Transfer, source: u64, target: u64) {
        let calls = matches!(t.kind, Itype::IndirectCall | Itype::DirectCall);
        let stack = self.register(self.mode) & self.plan.bit("RASEMU") != 0 && calls;
        let entry = self.entry(t, source, target, stack);
        self.entries.pop();
        self.entries.insert(0, entry);
        self.wrap |= self.wrptr == self.depth() - 1;
        self.wrptr = (self.wrptr + 1) % self.depth();
    }

    /// A record of it.
    fn entry(&mut self, t: &Transfer, source: u64, target: u64, stack: bool) -> Entry {
        let wrong = t.mispredicted || self.plan.predicts && t.source >> 4 & 1 != 0;
        // Traps are no instructions; the predictor sees branches and jumps.
        let misp = match t.kind {
            Itype::Exception | Itype::Interrupt => false,
            Itype::TrapReturn => t.mispredicted,
            _ => wrong,
        };
        let bits = if self.plan.narrow { LOW } else { u64::MAX };
        let mut data = self.count(!stack || self.plan.accumulates);
        if self.plan.types {
            data |= u64::from(t.kind.code());
        }
        let misp = u64::from(misp && self.plan.mispredicts);
        ((source | 1) & bits, target & bits & !1 | misp, data)
    }

    /// Whether a type is recorded within the mode.
    pub(crate) fn records(&self, kind: Itype) -> bool {
        let register = self.register(self.mode);
        let stack = register & self.plan.bit("RASEMU") != 0;
        let stacked = matches!(kind.code(), 8 | 9 | 12 | 13);
        self.is_active()
            && if stack {
                stacked
            } else {
                self.passes(register, kind)
            }
    }
}
