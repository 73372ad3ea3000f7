//! What N-Trace reports besides control flow.

use hartrace_flow::{Cause, Mark, Mode, Ownership, Retirement, Trap};
use hartrace_ntrace::{RepeatedHistory, TrapTypes};

use super::{NTrace, Setting};
use crate::trace::flag::{EXTERNAL, LAST, NOTIFY, OPEN, RESET, START};
use crate::trace::{Format, Hart, Heard, Item, Judge, Meeting, What, is_start, is_stop};

/// What is compared and how.
#[derive(Clone, Debug)]
pub struct NJudge {
    context: bool,
    hcontext: bool,
    trap_types: TrapTypes,
    loses: bool,
    /// History is reported later than it happens.
    late: bool,
    /// Times are those of the first instruction of a block.
    blocks: bool,
    stalls: bool,
    prescale: u8,
    width: u8,
}

impl NJudge {
    pub(super) fn new(setting: &Setting) -> NJudge {
        let config = &setting.config;
        NJudge {
            context: config.context,
            hcontext: config.hcontext,
            trap_types: config.trap_types,
            loses: NTrace::has_loss(setting),
            late: config.repeated_history != RepeatedHistory::Off,
            blocks: setting.port.retirement != Retirement::Single,
            stalls: config.queue.is_some_and(|q| q.stall),
            prescale: config.timestamps.map_or(0, |t| 2 * t.prescale),
            width: config.timestamps.map_or(64, |t| t.width),
        }
    }
}

impl Judge for NJudge {
    fn begins(&self, heard: &Heard, item: &Item) -> Result<(), String> {
        let starts = heard.has(is_start);
        let strong = item.has(START | RESET) || heard.gap;
        let notify = heard.has(|m| m == Mark::Notify);
        let external = heard.has(|m| matches!(m, Mark::External(_)));
        let wrong = [
            (
                item.has(START) && !(starts || heard.gap),
                "a start without its mark",
            ),
            (
                item.has(RESET) && !(starts || heard.gap),
                "a reset without its mark",
            ),
            (!item.has(START | RESET) && starts, "a start that was none"),
            (
                item.has(NOTIFY) && !notify && !strong,
                "a trigger without its mark",
            ),
            (
                item.has(EXTERNAL) && !external && !strong && !item.has(NOTIFY),
                "an external trigger without its mark",
            ),
            (
                (notify && !item.has(NOTIFY)) || (external && !item.has(EXTERNAL)),
                "a marker where there was none",
            ),
            (
                heard.has(is_stop) && !item.has(START) && !heard.gap && !self.loses,
                "a stop that was none",
            ),
        ];
        match wrong.iter().find(|w| w.0) {
            Some((_, what)) => Err(format!("{what}: {:x?} before {item:x?}", heard.marks)),
            None => Ok(()),
        }
    }

    fn mark(&self, heard: &mut Heard, mark: Mark) -> Result<(), String> {
        if is_start(mark) {
            heard.told.clear();
        }
        Ok(())
    }

    fn gap(&self, heard: &mut Heard) {
        heard.told.clear();
    }

    fn context(&self, hart: &Hart) -> Result<(), String> {
        match self.context {
            true => Ok(()),
            false => Err(format!("{:x?} that nobody asked for", hart.heard.told)),
        }
    }

    fn owner(&self, heard: &mut Heard, item: &Item) -> Result<(), String> {
        if !self.context {
            return Ok(());
        }
        let mode = match item.mode {
            Mode::D => Mode::M,
            mode => mode,
        };
        let same = |o: &Ownership| {
            let context = o.context.unwrap_or_default();
            o.mode == Some(mode)
                && context.scontext() == item.context.scontext()
                && (!self.hcontext || context.hcontext() == item.context.hcontext())
        };
        // A change inside a stretch is reported before all of it.
        match heard.told.iter().position(same) {
            Some(later) => {
                heard.told.drain(..later);
                Ok(())
            }
            None => Err(format!("{item:x?}, told {:x?}", heard.told)),
        }
    }

    fn time(&self, hart: &mut Hart, time: u64) -> Result<(), String> {
        let heard = &mut hart.heard;
        let context = std::mem::take(&mut heard.after_context);
        if self.stalls || heard.gap {
            return Ok(());
        }
        let tick = |t: u64| t >> self.prescale;
        // Steps that are not traced pass time too, and after a loss nothing is
        // known of those before.
        let early = match self.blocks || self.loses {
            true => 0,
            false => tick(heard.before),
        };
        let vague = context || self.late || self.loses || self.blocks;
        let late = match hart.items.front() {
            Some(item) if !vague && heard.marks.is_empty() => item.time,
            _ => hart.time,
        };
        let mask = u64::MAX >> (64 - u32::from(self.width.clamp(1, 64)));
        let (since, most) = (
            time.wrapping_sub(early) & mask,
            tick(late).wrapping_sub(early),
        );
        if since > most && early <= tick(late) {
            return Err(format!(
                "time {time}, between {early} and {} in {} bits",
                tick(late),
                self.width
            ));
        }
        Ok(())
    }

    fn is_trap(&self, meeting: &Meeting<'_>, trap: &Trap) -> bool {
        let item = meeting.item;
        let kind = match (self.trap_types, item.what) {
            (TrapTypes::Two, What::Trap(Cause::Interrupt(_), _)) => Cause::Interrupt(None),
            (TrapTypes::Two, _) => Cause::Exception(None),
            _ => Cause::Unknown,
        };
        Some(item.pc) == trap.epc && Some(item.next) == trap.handler && kind == trap.cause
    }

    fn may_be_inside(&self, flags: u8) -> bool {
        flags & !(LAST | OPEN) == 0
    }
}
