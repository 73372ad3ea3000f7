//! What E-Trace reports besides control flow.

use hartrace_etrace::{ResyncUnit, Version};
use hartrace_flow::{Cause, Context, Ctype, ItypeWidth, Mark, Retirement, Trap};
use hartrace_isa::Isa;

use super::{ETrace, Setting};
use crate::trace::flag::{NOTIFY, RESET, START};
use crate::trace::{Behind, Format, Hart, Heard, Item, Judge, Meeting, What, is_start, is_stop};

/// What is compared and how.
#[derive(Clone, Debug)]
pub struct EJudge {
    isa: Isa,
    draft: bool,
    ctype: Ctype,
    context_width: u8,
    ecause_width: u8,
    tval_width: u8,
    /// Interrupts have `tval`, too.
    interrupt_tval: bool,
    time_width: u8,
    /// Nothing is ever synchronised because it is time.
    never: bool,
    loses: bool,
    /// Times are those of the first instruction of a block.
    blocks: bool,
    /// Direct jumps look like no jumps, and a change of context may be anything.
    hides_jumps: bool,
    stalls: bool,
}

impl EJudge {
    pub(super) fn new(setting: &Setting) -> EJudge {
        let config = &setting.config;
        EJudge {
            isa: setting.port.isa,
            draft: config.version == Version::V1_1_1,
            ctype: setting.port.ctype,
            context_width: config.context_width,
            ecause_width: config.ecause_width,
            tval_width: config.iaddress_width,
            interrupt_tval: config.version == Version::V1_1_1 || config.interrupt_tval,
            time_width: super::time_bits(config),
            never: config.resync.unit == ResyncUnit::Off,
            loses: ETrace::has_loss(setting),
            blocks: setting.port.retirement != Retirement::Single,
            hides_jumps: setting.port.itype_width == ItypeWidth::Three
                && setting.port.ctype == Ctype::Discontinuity,
            stalls: config.queue.is_some_and(|q| q.stall),
        }
    }

    /// Whether a change of context is reported where it happens.
    fn is_precise(&self) -> bool {
        matches!(self.ctype, Ctype::Precise | Ctype::Discontinuity)
    }

    fn is_context(&self, item: &Item, told: Option<Context>) -> bool {
        match self.context_width {
            0 => told.is_none(),
            width => told.is_some_and(|told| told.0 == low(item.context.0, width)),
        }
    }

    /// Whether a notification of this instruction must be reported as one: no
    /// other packet can have been in its place.
    fn must_notify(&self, heard: &Heard, item: &Item) -> bool {
        let plain = |before: &Item| {
            !before.is_trap()
                && !before.is_jump(self.isa)
                && before.mode == item.mode
                && before.context == item.context
        };
        self.never
            && !self.loses
            && item.has(NOTIFY)
            && !item.has(START | RESET)
            && !item.is_trap()
            && heard.last.as_ref().is_some_and(plain)
    }
}

/// The low bits, the highest of them up to the top.
const fn signed(value: u64, width: u8) -> u64 {
    let unused = 64 - width as u32;
    ((value << unused) as i64 >> unused) as u64
}

/// The low bits.
const fn low(value: u64, width: u8) -> u64 {
    match width {
        0 => 0,
        width if width >= 64 => value,
        width => value & ((1 << width) - 1),
    }
}

impl Judge for EJudge {
    fn begins(&self, heard: &Heard, item: &Item) -> Result<(), String> {
        let starts = heard.has(is_start);
        let notify = heard.has(|m| m == Mark::Notify);
        // Where `itype` does not show direct jumps, the encoder takes one into another
        // context for a change that a decoder would not notice, and starts anew.
        let jumped = |last: &Item| last.next != last.pc.wrapping_add(last.length().into());
        let moved = |last: &Item| last.context != item.context && jumped(last);
        let anew = self.hides_jumps && heard.last.as_ref().is_some_and(moved);
        let wrong = [
            (
                item.has(START) && !(starts || heard.gap),
                "a start without its mark",
            ),
            (!item.has(START) && starts && !anew, "a start that was none"),
            (
                heard.has(is_stop) && !item.has(START) && !heard.gap && !anew,
                "a stop that was none",
            ),
            (
                notify && !item.has(NOTIFY),
                "a notification where there was none",
            ),
            (
                !notify && self.must_notify(heard, item),
                "a trigger without its notification",
            ),
        ];
        match wrong.iter().find(|w| w.0) {
            Some((_, what)) => Err(format!("{what}: {:x?} before {item:x?}", heard.marks)),
            None => Ok(()),
        }
    }

    fn mark(&self, _: &mut Heard, mark: Mark) -> Result<(), String> {
        match mark {
            Mark::On | Mark::Off | Mark::Notify => Ok(()),
            mark => Err(format!("{mark:?} out of nowhere")),
        }
    }

    fn gap(&self, _: &mut Heard) {
        // The context stays the same until a change is reported.
    }

    fn context(&self, hart: &Hart) -> Result<(), String> {
        let Some(owner) = hart.heard.told.back() else {
            return Ok(());
        };
        // Where it is reported late, it is that of some step all the same.
        let last = hart.heard.last.iter();
        let mut known = last.chain(&hart.items);
        match known.any(|item| self.is_context(item, owner.context)) || hart.heard.gap {
            true => Ok(()),
            false => Err(format!("{owner:x?} out of nowhere")),
        }
    }

    fn owner(&self, heard: &mut Heard, item: &Item) -> Result<(), String> {
        if item.is_trap() {
            return Ok(());
        }
        while heard.told.len() > 1 {
            heard.told.pop_front();
        }
        let fits = heard.told.back().is_some_and(|owner| {
            let context = !self.is_precise() || self.is_context(item, owner.context);
            owner.mode == Some(item.mode) && context
        });
        match fits {
            true => Ok(()),
            false => Err(format!("{item:x?}, told {:x?}", heard.told)),
        }
    }

    fn time(&self, hart: &mut Hart, time: u64) -> Result<(), String> {
        if self.stalls || hart.heard.gap {
            return Ok(());
        }
        let is_it = |t: u64| low(time, self.time_width) == low(t, self.time_width);
        // After a trap it may be that of the trap or of the handler; in a
        // block, of any instruction before; and in a loop of any round.
        let last = hart.heard.last.iter();
        let known = last.chain(&hart.items).map(|item| item.time);
        let mut known = known.chain([hart.time]);
        let exact = !self.blocks && !self.loses && self.ctype != Ctype::Imprecise;
        match known.any(is_it) || !exact {
            true => Ok(()),
            false => Err(format!("time {time} out of nowhere")),
        }
    }

    fn is_trap(&self, meeting: &Meeting<'_>, trap: &Trap) -> bool {
        let item = meeting.item;
        let What::Trap(cause, tval) = item.what else {
            return false;
        };
        let epc = match (meeting.behind, trap.epc) {
            (Behind::Insn, None) | (Behind::Unreported, Some(_)) => false,
            (_, None) => true,
            (_, Some(epc)) => epc == item.pc || meeting.skipped == Some(epc),
        };
        let handler = match trap.handler {
            Some(handler) => handler == item.next,
            // Something may have been lost.
            None => meeting.is_last() || self.loses,
        };
        let code =
            |code: Option<u32>| code.map(|code| low(u64::from(code), self.ecause_width) as u32);
        let (cause, interrupt) = match cause {
            Cause::Exception(c) => (Cause::Exception(code(c)), false),
            Cause::Interrupt(c) => (Cause::Interrupt(code(c)), true),
            Cause::Unknown => (Cause::Unknown, false),
        };
        let illegal = cause == Cause::Exception(Some(2));
        let told = tval.map(|tval| self.isa.xlen().wrap(signed(tval, self.tval_width)));
        // For an illegal instruction the draft has its address in the field.
        let has_tval = match interrupt {
            true => self.interrupt_tval,
            false => !(self.draft && illegal),
        };
        let tval = trap.tval == told.filter(|_| has_tval);
        epc && handler && cause == trap.cause && tval
    }

    fn may_be_inside(&self, flags: u8) -> bool {
        let notify = flags & NOTIFY != 0 && self.never && !self.loses;
        flags & (START | RESET) == 0 && !notify
    }
}
