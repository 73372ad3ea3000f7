//! The trigger module (Sdtrig, RISC-V Debug Specification 1.0, chapter 5): breakpoints and
//! trace actions on addresses, data, counts of instructions, interrupts and exceptions.
//!
//! All triggers can be of all types: `mcontrol6`, `mcontrol`, `icount`, `itrigger`,
//! `etrigger`. There is no debug mode, so `dmode` is 0 and no action enters it. Of the two
//! ways to keep breakpoints out of trap handlers (5.4) the hart has the first: no
//! breakpoints while interrupts are off in the mode that takes them; there is no
//! `tcontrol`.
//!
//! A hart asks [`Triggers::watches`] before it runs. Only where a trigger may match, it goes
//! instruction by instruction (`machine/watch.rs`); otherwise triggers cost nothing.

mod matching;

pub(crate) use matching::{Looked, Touched};

use hartrace_flow::{Cause, Mode};
use hartrace_isa::{Xlen, csr};

use crate::cpu::{Cpu, cause, status};

/// Triggers that a hart can have.
pub(crate) const MOST: u32 = 32;

/// Types in `tdata1`.
const MCONTROL: u64 = 2;
const ICOUNT: u64 = 3;
const ITRIGGER: u64 = 4;
const ETRIGGER: u64 = 5;
const MCONTROL6: u64 = 6;
const DISABLED: u64 = 15;

/// The types there are, and the version of the specification: `tinfo`.
const INFO: u64 = 1 << 24
    | 1 << MCONTROL
    | 1 << ICOUNT
    | 1 << ITRIGGER
    | 1 << ETRIGGER
    | 1 << MCONTROL6
    | 1 << DISABLED;

/// Fields of `mcontrol` and `mcontrol6`, which agree but for a few.
mod control {
    pub(super) const LOAD: u64 = 1;
    pub(super) const STORE: u64 = 1 << 1;
    pub(super) const EXECUTE: u64 = 1 << 2;
    pub(super) const ACCESSES: u64 = LOAD | STORE | EXECUTE;
    pub(super) const U: u64 = 1 << 3;
    pub(super) const S: u64 = 1 << 4;
    pub(super) const M: u64 = 1 << 6;
    pub(super) const MATCH: u64 = 15 << 7;
    pub(super) const CHAIN: u64 = 1 << 11;
    pub(super) const ACTION: u64 = 15 << 12;
    /// What both have in the same place.
    pub(super) const COMMON: u64 = ACCESSES | U | S | M | MATCH | CHAIN | ACTION;
    /// Only in `mcontrol6`.
    pub(super) const SIZE: u64 = 7 << 16;
    pub(super) const SELECT6: u64 = 1 << 21;
    pub(super) const HIT0: u64 = 1 << 22;
    pub(super) const HIT1: u64 = 1 << 25;
    /// Only in `mcontrol`.
    pub(super) const TIMING: u64 = 1 << 18;
    pub(super) const SELECT: u64 = 1 << 19;
    pub(super) const HIT: u64 = 1 << 20;
}

/// Fields of `icount`, `itrigger` and `etrigger`.
mod event {
    pub(super) const ACTION: u64 = 63;
    pub(super) const U: u64 = 1 << 6;
    pub(super) const S: u64 = 1 << 7;
    pub(super) const M: u64 = 1 << 9;
    pub(super) const COMMON: u64 = ACTION | U | S | M;
    /// Only in `icount`.
    pub(super) const PENDING: u64 = 1 << 8;
    pub(super) const COUNT: u64 = 0x3fff << 10;
    pub(super) const COUNT_ONE: u64 = 1 << 10;
    pub(super) const COUNT_HIT: u64 = 1 << 24;
    /// Only in `itrigger`; this hart has no such interrupts.
    pub(super) const NMI: u64 = 1 << 10;
}

/// Actions (5.2).
const BREAKPOINT: u64 = 0;
const TRACE_ON: u64 = 2;
const TRACE_OFF: u64 = 3;
const TRACE_NOTIFY: u64 = 4;

/// What fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// A breakpoint exception, with its trap value.
    pub(crate) breakpoint: Option<u64>,
    pub(crate) trace_on: bool,
    pub(crate) trace_off: bool,
    pub(crate) notify: bool,
}

impl Fired {
    fn add(&mut self, action: u64, tval: u64) {
        match action {
            BREAKPOINT => self.breakpoint = self.breakpoint.or(Some(tval)),
            TRACE_ON => self.trace_on = true,
            TRACE_OFF => self.trace_off = true,
            _ => self.notify = true,
        }
    }

    /// What fired first, and what fired then.
    pub(crate) fn and(self, then: Fired) -> Fired {
        Fired {
            breakpoint: self.breakpoint.or(then.breakpoint),
            trace_on: self.trace_on || then.trace_on,
            trace_off: self.trace_off || then.trace_off,
            notify: self.notify || then.notify,
        }
    }

    /// Whether a trace hears of it.
    pub(crate) fn traces(&self) -> bool {
        self.trace_on || self.trace_off || self.notify
    }
}

/// What triggers depend on besides what happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    mode: Mode,
    /// Breakpoints may be taken (5.4).
    breakpoints: bool,
    scontext: u64,
    mcontext: u64,
    asid: u64,
}

impl Cpu {
    /// What triggers depend on, for what happens in `mode`; breakpoints would be taken
    /// in `taken_in`.
    pub(crate) fn circumstances(&self, mode: Mode, taken_in: Mode) -> Circumstances {
        let delegated = self.medeleg >> cause::BREAKPOINT & 1 != 0;
        Circumstances {
            mode,
            breakpoints: match taken_in {
                Mode::M => self.mstatus & status::MIE != 0,
                Mode::S => !delegated || self.mstatus & status::SIE != 0,
                _ => true,
            },
            scontext: self.scontext,
            mcontext: self.mcontext,
            asid: self.asid(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Trigger {
    tdata1: u64,
    tdata2: u64,
    tdata3: u64,
}

/// The triggers of a hart.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    list: Vec<Trigger>,
    selected: usize,
    xlen: Xlen,
    /// As Spike does it: fewer ways to match, and no look at the mode that a trap has
    /// led to.
    as_spike: bool,
    /// By the code of the mode: instructions must be looked at, or traps.
    instructions: u8,
    traps: u8,
    /// Instruction counts that the instruction under way counts for, by number.
    counting: u32,
    /// Triggers that have fired for it.
    done: u32,
    /// A model: the trap value of a breakpoint to be taken before anything else.
    pub(crate) late: Option<u64>,
}

impl Triggers {
    pub(crate) fn new(count: u32, xlen: Xlen, as_spike: bool) -> Triggers {
        let trigger = Trigger {
            tdata1: DISABLED << (xlen.bits() - 4),
            tdata2: 0,
            tdata3: 0,
        };
        Triggers {
            list: vec![trigger; count.min(MOST) as usize],
            selected: 0,
            xlen,
            as_spike,
            instructions: 0,
            traps: 0,
            counting: 0,
            done: 0,
            late: None,
        }
    }

    /// Whether every instruction in a mode has to be looked at.
    #[inline]
    pub(crate) fn watches(&self, mode: Mode) -> bool {
        self.instructions >> (mode.code() & 3) & 1 != 0
    }

    /// Whether traps from a mode have to be looked at.
    pub(crate) fn watches_traps(&self, mode: Mode) -> bool {
        (self.traps | self.instructions) >> (mode.code() & 3) & 1 != 0
    }

    /// Reads one of the registers; without triggers they are 0.
    pub(crate) fn read(&self, csr: u16) -> u64 {
        let Some(trigger) = self.list.get(self.selected) else {
            return 0;
        };
        match csr {
            csr::TSELECT => self.selected as u64,
            csr::TDATA1 => trigger.tdata1,
            csr::TDATA2 => trigger.tdata2,
            csr::TDATA3 => trigger.tdata3,
            _ => INFO,
        }
    }

    /// Writes one of the registers.
    pub(crate) fn write(&mut self, csr: u16, value: u64) {
        let value = self.xlen.wrap(value);
        if csr == csr::TSELECT {
            if value < self.list.len() as u64 {
                self.selected = value as usize;
            }
            return;
        }
        let (xlen, as_spike) = (self.xlen, self.as_spike);
        let Some(trigger) = self.list.get_mut(self.selected) else {
            return;
        };
        match csr {
            csr::TDATA1 => {
                trigger.tdata1 = legal_tdata1(value, xlen, as_spike);
                // What is written now stays as it is.
                self.counting &= !(1 << self.selected);
            }
            csr::TDATA2 => trigger.tdata2 = value,
            csr::TDATA3 => trigger.tdata3 = legal_tdata3(value, xlen),
            _ => {}
        }
        if !as_spike {
            trigger.keep_napot(xlen);
        }
        self.find_watched();
    }

    /// Finds the modes in which something has to be looked at.
    fn find_watched(&mut self) {
        (self.instructions, self.traps) = (0, 0);
        for trigger in &self.list {
            let tdata1 = trigger.tdata1;
            let modes = trigger.modes(self.xlen);
            match trigger.kind(self.xlen) {
                MCONTROL | MCONTROL6 if tdata1 & control::ACCESSES != 0 => {
                    self.instructions |= modes;
                }
                ICOUNT if tdata1 & (event::COUNT | event::PENDING) != 0 => {
                    self.instructions |= modes;
                }
                ITRIGGER | ETRIGGER => self.traps |= modes,
                _ => {}
            }
        }
    }

    /// An instruction is about to be executed. What fires before it is even fetched:
    /// counts that have run out.
    pub(crate) fn begin(&mut self, now: &Circumstances) -> Fired {
        let mut fired = Fired::default();
        (self.counting, self.done) = (0, 0);
        let xlen = self.xlen;
        for (number, trigger) in self.list.iter_mut().enumerate() {
            if trigger.kind(xlen) != ICOUNT || !trigger.concerns(now, xlen) {
                continue;
            }
            if trigger.tdata1 & event::PENDING != 0 {
                trigger.tdata1 &= !event::PENDING;
                trigger.tdata1 |= event::COUNT_HIT;
                fired.add(trigger.tdata1 & event::ACTION, 0);
            }
            if trigger.tdata1 & event::COUNT != 0 {
                self.counting |= 1 << number;
            }
        }
        self.find_watched();
        fired
    }

    /// The instruction has retired or trapped: it counts.
    pub(crate) fn end(&mut self) {
        let counting = core::mem::take(&mut self.counting);
        for (number, trigger) in self.list.iter_mut().enumerate() {
            if counting >> number & 1 != 0 {
                trigger.count();
            }
        }
        if counting != 0 {
            self.find_watched();
        }
    }

    /// A trap was taken. What fires before the first instruction of its handler.
    pub(crate) fn trapped(&mut self, why: Cause, now: &Circumstances) -> Fired {
        let mut fired = Fired::default();
        let xlen = self.xlen;
        let (kind, code) = match why {
            Cause::Interrupt(code) => (ITRIGGER, code),
            Cause::Exception(code) => (ETRIGGER, code),
            Cause::Unknown => return fired,
        };
        for trigger in &mut self.list {
            let bit = trigger.tdata2.checked_shr(code.unwrap_or(64)).unwrap_or(0) & 1;
            if trigger.kind(xlen) == kind && bit != 0 && trigger.concerns(now, xlen) {
                trigger.tdata1 |= 1 << (xlen.bits() - 6);
                fired.add(trigger.tdata1 & event::ACTION, 0);
            }
        }
        fired
    }

    /// An interrupt is about to be taken, which counts as an instruction does.
    pub(crate) fn count_interrupt(&mut self, now: &Circumstances) {
        let xlen = self.xlen;
        for trigger in &mut self.list {
            if trigger.kind(xlen) == ICOUNT && trigger.concerns(now, xlen) {
                trigger.count();
            }
        }
        self.find_watched();
    }

    /// Whether breakpoints of traps are judged by the mode that the trap has led to.
    pub(crate) fn judges_handlers(&self) -> bool {
        !self.as_spike
    }
}

impl Trigger {
    fn kind(&self, xlen: Xlen) -> u64 {
        self.tdata1 >> (xlen.bits() - 4)
    }

    /// The modes it is on in, by their codes.
    fn modes(&self, xlen: Xlen) -> u8 {
        let (u, s, m) = match self.kind(xlen) {
            MCONTROL | MCONTROL6 => (control::U, control::S, control::M),
            _ => (event::U, event::S, event::M),
        };
        let on = |bit: u64| u8::from(self.tdata1 & bit != 0);
        on(u) | on(s) << 1 | on(m) << 3
    }

    fn action(&self, xlen: Xlen) -> u64 {
        match self.kind(xlen) {
            MCONTROL | MCONTROL6 => self.tdata1 >> 12 & 15,
            _ => self.tdata1 & event::ACTION,
        }
    }

    /// Whether mode, context and what is allowed let it match.
    fn concerns(&self, now: &Circumstances, xlen: Xlen) -> bool {
        let allowed = now.breakpoints || self.action(xlen) != BREAKPOINT;
        allowed && self.is_on(now, xlen)
    }

    /// Whether mode and context let it match, whatever its action.
    fn is_on(&self, now: &Circumstances, xlen: Xlen) -> bool {
        self.modes(xlen) >> (now.mode.code() & 3) & 1 != 0 && self.is_in_context(now, xlen)
    }

    /// `textra32` and `textra64`.
    fn is_in_context(&self, now: &Circumstances, xlen: Xlen) -> bool {
        let (mhvalue, mhselect, bytes, svalue, wide) = match xlen {
            Xlen::Rv32 => (
                self.tdata3 >> 26 & 0x3f,
                self.tdata3 >> 23 & 7,
                self.tdata3 >> 18 & 3,
                self.tdata3 >> 2 & 0xffff,
                0x3f,
            ),
            Xlen::Rv64 => (
                self.tdata3 >> 51 & 0x1fff,
                self.tdata3 >> 48 & 7,
                self.tdata3 >> 36 & 15,
                self.tdata3 >> 2 & 0xffff_ffff,
                0x1fff,
            ),
        };
        if mhselect == 4 && now.mcontext & wide != mhvalue {
            return false;
        }
        let asid = match xlen {
            Xlen::Rv32 => 0x1ff,
            Xlen::Rv64 => 0xffff,
        };
        match self.tdata3 & 3 {
            1 => (0..4).all(|byte| {
                let ignored = bytes >> byte & 1 != 0;
                ignored || (now.scontext ^ svalue) >> (8 * byte) & 0xff == 0
            }),
            2 => now.asid == svalue & asid,
            _ => true,
        }
    }

    /// One instruction or interrupt less.
    fn count(&mut self) {
        match self.tdata1 & event::COUNT {
            0 => {}
            event::COUNT_ONE => {
                self.tdata1 &= !event::COUNT;
                self.tdata1 |= event::PENDING;
            }
            _ => self.tdata1 -= event::COUNT_ONE,
        }
    }

    /// A range of all addresses there are is too large: it becomes half of that.
    fn keep_napot(&mut self, xlen: Xlen) {
        let largest = xlen.wrap(u64::MAX) >> 1;
        let is_napot = self.kind(xlen) == MCONTROL6 && self.tdata1 >> 7 & 7 == 1;
        if is_napot && self.tdata2 & largest == largest {
            self.tdata2 &= !(largest - (largest >> 1));
        }
    }
}

/// `tdata1` as it can be.
fn legal_tdata1(value: u64, xlen: Xlen, as_spike: bool) -> u64 {
    let top = xlen.bits() - 4;
    let kind = value >> top & 15;
    let hit = 1 << (xlen.bits() - 6);
    let mask = match kind {
        MCONTROL => control::COMMON | control::TIMING | control::SELECT | control::HIT,
        MCONTROL6 if as_spike => control::COMMON | control::SELECT6 | control::HIT0 | control::HIT1,
        MCONTROL6 => {
            control::COMMON | control::SIZE | control::SELECT6 | control::HIT0 | control::HIT1
        }
        ICOUNT => event::COMMON | event::PENDING | event::COUNT | event::COUNT_HIT,
        ITRIGGER => event::COMMON | event::NMI | hit,
        ETRIGGER => event::COMMON | hit,
        _ => return DISABLED << top,
    };
    let mut legal = value & mask | kind << top;
    let action = match kind {
        MCONTROL | MCONTROL6 => control::ACTION,
        _ => event::ACTION,
    };
    let asked = (legal & action) >> action.trailing_zeros();
    if !matches!(asked, BREAKPOINT | TRACE_ON | TRACE_OFF | TRACE_NOTIFY) {
        legal &= !action;
    }
    if matches!(kind, MCONTROL | MCONTROL6) {
        legal = legal_control(legal, kind, as_spike);
    }
    legal
}

/// Ways to match, sizes and timings as they can be.
fn legal_control(mut legal: u64, kind: u64, as_spike: bool) -> u64 {
    let ways = match (kind, as_spike) {
        (MCONTROL, _) => 0b00_0011_1101,
        (_, true) => 0b00_0011_1111,
        (_, false) => 0b11_0011_0011_1111,
    };
    if 1u64 << (legal >> 7 & 15) & ways == 0 {
        legal &= !control::MATCH;
    }
    if kind == MCONTROL6 {
        // 128 bits are not accessed at once.
        if legal >> 16 & 7 > 5 {
            legal &= !control::SIZE;
        }
    } else if legal & control::SELECT != 0 && legal & control::LOAD != 0 {
        legal |= control::TIMING;
    } else if legal & control::EXECUTE != 0 {
        legal &= !control::TIMING;
    }
    legal
}

/// `tdata3` as it can be. Without a hypervisor `mhselect` is 0 or 4.
fn legal_tdata3(value: u64, xlen: Xlen) -> u64 {
    let mask = match xlen {
        Xlen::Rv32 => 0x3f << 26 | 4 << 23 | 3 << 18 | 0xffff << 2,
        Xlen::Rv64 => 0x1fff << 51 | 4 << 48 | 15 << 36 | 0xffff_ffff << 2,
    };
    let select = match value & 3 {
        3 => 0,
        select => select,
    };
    value & mask | select
}
