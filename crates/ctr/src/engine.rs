//! The recorder (chapter 5).

use alloc::boxed::Box;

use hartrace_flow::{Cause, HartId, Mode, Transfer};
use hartrace_isa::Itype;

use crate::clock::Clock;
use crate::config::{Config, ConfigError, RasCycles};
use crate::control::Control;
use crate::predict::Predictor;
use crate::record::{CCV, CycleCount, MISP, Record, TYPE, VALID};
use crate::ring::Ring;
use crate::snapshot::Snapshot;
use crate::version::Version;

/// Control Transfer Records of one hart.
#[derive(Clone, Debug)]
pub struct Ctr {
    pub(crate) config: Config,
    /// `mctrctl`, of which `sctrctl` shows a part.
    pub(crate) control: Control,
    /// `vsctrctl`.
    pub(crate) guest: Control,
    pub(crate) ring: Ring,
    pub(crate) frozen: bool,
    mode: Mode,
    clock: Clock,
    /// Types that are recorded in the current mode, a bit for each code; none
    /// when nothing is.
    allowed: u16,
    /// RAS emulation in the current mode.
    stack: bool,
    predictor: Option<Box<dyn Predictor>>,
}

/// A jump or branch within one mode, as an interpreter notes it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// The instruction.
    pub source: u64,
    /// Where it went.
    pub target: u64,
    /// The hart's cycles when it had retired.
    pub time: u64,
    /// What it was.
    pub kind: Itype,
}

/// Types by their codes: calls, returns and swaps.
const STACK_TYPES: u16 = 1 << Itype::IndirectCall.code()
    | 1 << Itype::DirectCall.code()
    | 1 << Itype::Swap.code()
    | 1 << Itype::Return.code();

/// Taken branches and jumps.
const TAKEN_TYPES: u16 = 0xff20;

/// Codes of exceptions and interrupts that can freeze.
const BREAKPOINT: Cause = Cause::Exception(Some(3));
const LOCAL_COUNTER_OVERFLOW: Cause = Cause::Interrupt(Some(13));

impl Ctr {
    /// Records after reset: nothing is enabled, the depth is the smallest.
    ///
    /// # Errors
    ///
    /// An implementation that the specification does not allow.
    pub fn new(config: Config) -> Result<Ctr, ConfigError> {
        config.validate()?;
        Ok(Ctr {
            config,
            control: Control::NONE,
            guest: Control::NONE,
            ring: Ring::new(config.depths.least()),
            frozen: false,
            mode: Mode::M,
            clock: Clock::default(),
            allowed: 0,
            stack: false,
            predictor: None,
        })
    }

    /// The same with a branch predictor, which fills in MISP. Where there is
    /// no such bit it is not needed.
    #[must_use]
    pub fn with_predictor(self, predictor: Option<Box<dyn Predictor>>) -> Ctr {
        let predictor = predictor.filter(|_| self.config.mispredicts);
        Ctr { predictor, ..self }
    }

    /// The implementation.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Types of which [`Ctr::replay`] must be shown every transfer, a bit for
    /// each code of [`Itype`]: those that are recorded within the current mode,
    /// and what a predictor learns from.
    #[must_use]
    pub fn wanted(&self) -> u16 {
        match self.predictor {
            Some(_) => TAKEN_TYPES | 1 << Itype::NotTaken.code(),
            None => self.allowed,
        }
    }

    /// The fields of the machine's control register.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control
    }

    /// The fields of the guest's control register.
    #[must_use]
    pub fn guest_control(&self) -> Control {
        self.guest
    }

    /// The depth in force.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.ring.depth()
    }

    /// `FROZEN`.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// A logical entry: 0 is the newest; those beyond the depth are zero.
    #[must_use]
    pub fn entry(&self, entry: u8) -> Record {
        self.ring.get(entry)
    }

    /// Writes the machine's control register from outside, at this time.
    /// Fields that are not implemented stay 0.
    pub fn set_control(&mut self, control: Control, now: u64) {
        self.change(Some(now), |ctr| {
            ctr.control = control.and(ctr.config.implemented());
        });
        self.clock.reset();
    }

    /// The same for the guest's.
    pub fn set_guest_control(&mut self, control: Control, now: u64) {
        self.change(Some(now), |ctr| {
            let machine = Control::M.with(Control::MTE);
            if ctr.config.hypervisor {
                ctr.guest = control.and(ctr.config.implemented()).without(machine);
            }
        });
        self.clock.reset();
    }

    /// Chooses a depth: if it is not implemented the largest that is smaller,
    /// or the smallest of all.
    pub fn set_depth(&mut self, depth: u16) {
        self.ring.set_depth(self.config.depths.nearest(depth));
    }

    /// Freezes or thaws.
    pub(crate) fn set_frozen(&mut self, frozen: bool, now: Option<u64>) {
        self.change(now, |ctr| ctr.frozen = frozen);
    }

    /// `SCTRCLR`: zeroes the entries at every depth and the cycle counter.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.clock.reset();
    }

    /// The hart is in another mode now, without a transfer that led there:
    /// after reset, into debug mode and out of it, or where steps are missing.
    pub fn enter(&mut self, mode: Mode, now: Option<u64>) {
        if mode != self.mode {
            self.change(now, |ctr| ctr.mode = mode);
        }
    }

    /// Something happens that may start or end recording.
    fn change(&mut self, now: Option<u64>, act: impl FnOnce(&mut Ctr)) {
        self.clock.settle(self.is_active(), now);
        act(self);
        self.refresh(now);
    }

    /// After anything that may start or end recording.
    fn refresh(&mut self, now: Option<u64>) {
        let active = self.is_active();
        let control = self.control_of(self.mode);
        self.stack = active && control.has(Control::RASEMU);
        self.allowed = match (active, self.stack) {
            (false, _) => 0,
            (true, true) => STACK_TYPES,
            (true, false) => control.types(),
        };
        self.clock.resume(active, now);
    }

    /// The mode the hart is in, as far as it is known.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether transfers and cycles of the current mode count.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.frozen && self.is_enabled(self.mode)
    }

    fn is_enabled(&self, mode: Mode) -> bool {
        self.control_of(mode).enables(mode)
    }

    /// The register with the enable of a mode.
    const fn control_of(&self, mode: Mode) -> Control {
        if mode.is_virtual() {
            self.guest
        } else {
            self.control
        }
    }

    /// A transfer of the hart. Modes it does not name are the current one, and
    /// for a trap machine mode. Addresses of a mode whose XLEN is less than
    /// MXLEN come zero-extended (3.1).
    ///
    /// Only traps and returns from them change the mode. If another transfer
    /// does, something after it is missing: it is recorded within the mode it
    /// was in.
    pub fn record(&mut self, transfer: &Transfer) {
        let t = transfer;
        let from = t.from.unwrap_or(self.mode);
        let to = t.to.unwrap_or(match t.kind {
            Itype::Exception | Itype::Interrupt => Mode::M,
            _ => from,
        });
        self.enter(from, t.time);
        let predicted = self.predict(t);
        let changes = t.kind.is_trap() || t.kind == Itype::TrapReturn && from != to;
        if !changes {
            if self.allowed >> t.kind.code() & 1 != 0 {
                self.clock.settle(true, t.time);
                match self.stack {
                    true => self.record_within::<true>(t.source, t.target, t.kind, predicted),
                    false => self.record_within::<false>(t.source, t.target, t.kind, predicted),
                }
                self.clock.resume(true, t.time);
            }
            self.enter(to, t.time);
            return;
        }
        self.clock.settle(self.is_active(), t.time);
        if t.kind.is_trap() && self.freezes(t.cause, from, to) {
            self.frozen = true;
        }
        if let Some((source, target)) = self.outcome(t, from, to) {
            let cycles = self.clock.take();
            let record = self.record_of(source, target, t.kind, predicted, cycles);
            self.ring.push(record);
        }
        self.mode = to;
        self.refresh(t.time);
    }

    /// Jumps and branches of the current mode, in their order: all whose type
    /// is among [`Ctr::wanted`]. Others do no harm. `unseen` is how many there
    /// were before them; [`Ctr::memory`] says how many can be left out.
    pub fn replay(&mut self, unseen: u64, raws: impl Iterator<Item = Raw>) {
        if self.memory().is_some() {
            self.ring.skip(unseen);
        }
        match (self.predictor.is_some(), self.stack) {
            (false, false) => raws.for_each(|raw| self.record_raw::<false, false>(&raw)),
            (false, true) => raws.for_each(|raw| self.record_raw::<false, true>(&raw)),
            (true, false) => raws.for_each(|raw| self.record_raw::<true, false>(&raw)),
            (true, true) => raws.for_each(|raw| self.record_raw::<true, true>(&raw)),
        }
    }

    /// How many of the last taken branches and jumps [`Ctr::replay`] must see:
    /// when all of them are recorded those that stay, and the one in front,
    /// from which the first of them counts its cycles. `None`: all.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        let all = self.allowed & TAKEN_TYPES == TAKEN_TYPES && self.predictor.is_none();
        all.then_some(u64::from(self.depth()) + 1)
    }

    #[inline(always)]
    fn record_raw<const PREDICT: bool, const STACK: bool>(&mut self, raw: &Raw) {
        let mut wrong = false;
        if PREDICT && let Some(predictor) = &mut self.predictor {
            wrong = predictor.mispredicts(&Transfer {
                source: raw.source,
                target: raw.target,
                kind: raw.kind,
                ..Transfer::default()
            });
        }
        if self.allowed >> raw.kind.code() & 1 != 0 {
            self.clock.lap(raw.time);
            self.record_within::<STACK>(raw.source, raw.target, raw.kind, wrong);
        }
    }

    /// An allowed transfer within the current mode, the clock being settled.
    /// `STACK`: in RAS emulation mode (5.4).
    #[inline(always)]
    fn record_within<const STACK: bool>(
        &mut self,
        source: u64,
        target: u64,
        kind: Itype,
        wrong: bool,
    ) {
        if STACK && kind == Itype::Return {
            let popped = self.ring.pop();
            self.take_over(&popped);
            return;
        }
        let swaps = STACK && kind == Itype::Swap;
        if swaps {
            self.take_over(&self.ring.get(0));
        }
        let cycles = self.clock.take();
        let cycles = cycles.filter(|_| !STACK || self.config.ras_cycles == RasCycles::Accumulate);
        let record = self.record_of(source, target, kind, wrong, cycles);
        if swaps {
            if let Some(entry) = self.ring.get_mut(0) {
                *entry = record;
            }
        } else {
            self.ring.push(record);
        }
    }

    /// The cycles of a call that has returned belong to the next record.
    #[inline]
    fn take_over(&mut self, popped: &Record) {
        if !popped.is_valid() || self.config.cycles.is_none() {
            return;
        }
        match popped.cycles() {
            Some(cycles) => self.clock.add(cycles),
            None => self.clock.lose(),
        }
    }

    /// What the predictor says of an instruction; traps are no instructions.
    fn predict(&mut self, t: &Transfer) -> bool {
        let code = t.kind.code();
        let wrong = match &mut self.predictor {
            Some(predictor) if code >= Itype::NotTaken.code() => predictor.mispredicts(t),
            _ => false,
        };
        (wrong || t.mispredicted) && !t.kind.is_trap()
    }

    /// An entry with the fields that are implemented.
    #[inline]
    fn record_of(
        &self,
        source: u64,
        target: u64,
        kind: Itype,
        wrong: bool,
        cycles: Option<u64>,
    ) -> Record {
        let mut data = 0;
        if self.config.types {
            data = u64::from(kind.code());
        }
        if let (Some(bits), Some(cycles)) = (self.config.cycles, cycles) {
            data |= CCV | u64::from(CycleCount::new(cycles, bits).0) << 16;
        }
        let wrong = wrong && self.config.mispredicts;
        let xlen = self.config.xlen;
        Record {
            ctrsource: xlen.wrap(source) & !VALID | VALID,
            ctrtarget: xlen.wrap(target) & !MISP | u64::from(wrong),
            ctrdata: data,
        }
    }

    /// The pcs a transfer that changes mode, or a trap, is recorded with, if it
    /// is (5.1).
    fn outcome(&self, t: &Transfer, from: Mode, to: Mode) -> Option<(u64, u64)> {
        if self.frozen || from == Mode::D || to == Mode::D {
            return None;
        }
        let control = self.control_between(from, to);
        let passes = control.types() >> t.kind.code() & 1 != 0;
        if control.has(Control::RASEMU) {
            return None;
        }
        let enabled = (self.is_enabled(from), self.is_enabled(to));
        match (t.kind.is_trap(), enabled) {
            (_, (true, true)) => passes.then_some((t.source, t.target)),
            (true, (false, true)) => passes.then_some((0, t.target)),
            (true, (true, false)) => self.is_external_allowed(from, to).then_some((t.source, 0)),
            (false, (true, false)) => passes.then_some((t.source, 0)),
            (_, (false, _)) => None,
        }
    }

    /// The register whose filters hold between two modes. In 1.0 the guest's,
    /// if either is virtual; 0.1.4 does not say, and means the one in force
    /// when the transfer begins.
    const fn control_between(&self, from: Mode, to: Mode) -> Control {
        let guest = match self.config.version {
            Version::V0_1_4 => from.is_virtual(),
            Version::V1_0 => from.is_virtual() || to.is_virtual(),
        };
        if guest { self.guest } else { self.control }
    }

    /// Whether a trap out of the enabled modes is recorded (5.2.1): with the
    /// consent of its target, and in 1.0 of the modes it passes by.
    fn is_external_allowed(&self, from: Mode, to: Mode) -> bool {
        let machine = self.control.has(Control::MTE);
        let supervisor = self.control.has(Control::STE);
        let guest = self.guest.has(Control::STE);
        match self.config.version {
            Version::V0_1_4 => {
                let target = match to {
                    Mode::M => machine,
                    Mode::S => supervisor,
                    _ => guest,
                };
                self.control_of(from).has(Control::ETEN) && target
            }
            Version::V1_0 => match (from, to) {
                (Mode::U, Mode::S) => supervisor,
                (Mode::U, Mode::M) => machine && supervisor,
                (Mode::S, Mode::M) => machine,
                (Mode::VU, Mode::VS) => guest,
                (Mode::VU, Mode::S) => supervisor && guest,
                (Mode::VU, Mode::M) => machine && supervisor && guest,
                (Mode::VS, Mode::S) => supervisor,
                (Mode::VS, Mode::M) => machine && supervisor,
                _ => false,
            },
        }
    }

    /// Whether a trap freezes (5.5). In 1.0 the target's register says so, in
    /// 0.1.4 the one in force.
    fn freezes(&self, cause: Option<Cause>, from: Mode, to: Mode) -> bool {
        if to == Mode::D {
            return false;
        }
        let control = self.control_of(match self.config.version {
            Version::V0_1_4 => from,
            Version::V1_0 => to,
        });
        match cause {
            Some(BREAKPOINT) => control.has(Control::BPFRZ),
            Some(LOCAL_COUNTER_OVERFLOW) => control.has(Control::LCOFIFRZ),
            _ => false,
        }
    }

    /// Bits of `ctrdata` that exist.
    pub(crate) fn data_mask(&self) -> u64 {
        let types = if self.config.types { TYPE } else { 0 };
        let cycles = self
            .config
            .cycles
            .map_or(0, |bits| CCV | u64::from(CycleCount::most(bits).0) << 16);
        types | cycles
    }

    /// Everything at this moment.
    #[must_use]
    pub fn snapshot(&self, hart: HartId) -> Snapshot {
        let mut snapshot = Snapshot {
            hart,
            ..Snapshot::default()
        };
        self.snapshot_into(&mut snapshot);
        snapshot
    }

    /// The same into one that was used before; what the records do not hold
    /// stays as it is.
    pub fn snapshot_into(&self, snapshot: &mut Snapshot) {
        snapshot.version = self.config.version;
        snapshot.xlen = self.config.xlen;
        snapshot.control = self.control_bits();
        snapshot.guest_control = self.guest_bits();
        snapshot.status = self.status_bits();
        snapshot.depth = self.depth();
        snapshot.entries.clear();
        let last = (self.depth() - 1) as u8;
        snapshot
            .entries
            .extend((0..=last).map(|entry| self.ring.get(entry)));
    }
}
