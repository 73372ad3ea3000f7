//! The encoder of one hart: its state and the processing of each block.

use hartrace_flow::encode::Gathered;
use hartrace_flow::filter::Filter;
use hartrace_flow::{Context, HartId, Ingress, Mode};
use hartrace_isa::Itype;

use super::Sink;
use super::action::{Action, Actions};
use super::out::Out;
use super::stack::Stack;
use crate::hist::Hist;
use crate::{Btype, Config, IcntFull, Sync, SyncUnit, TraceMode, Version};

/// A message that waits for the address of the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Nothing,
    /// A taken branch (BTM).
    Direct,
    Jump,
    /// A return that may be implied; with the address a swap leaves on the
    /// stack.
    Return(Option<u64>),
    TrapReturn,
    Trap(Btype),
}

/// How much care the next block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It is counted.
    Idle,
    /// First a jump or branch before it is reported.
    Pending,
    /// All there is.
    Busy,
}

/// Where the trace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has been seen.
    Fresh,
    Running,
    /// A trigger or filter keeps the trace off.
    Disabled,
    /// The hart halted or lost its power, trace was lost, or all is over.
    Stopped,
}

/// The jump that a block ends with.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) addr: u64,
    /// Address of the instruction after it in memory; may pass the highest one.
    pub(super) next: u64,
    pub(super) time: u64,
    /// The code determines where it goes.
    pub(super) inferable: bool,
}

/// The encoder of one hart; [`Encoder`](crate::Encoder) has one for each.
#[derive(Clone, Debug)]
pub struct Hart {
    pub(super) id: HartId,
    pub(super) readiness: Readiness,
    /// Mode and context last seen.
    pub(super) mode: Mode,
    pub(super) context: Context,
    /// Halfwords retired since `I-CNT` was last sent.
    pub(super) icnt: u64,
    /// `icnt` at which there is something to do.
    pub(super) limit: u64,
    /// Branches go into a history.
    pub(super) history: bool,
    /// Time at which a periodic sync is due, in the port's unit.
    pub(super) sync_at: u64,
    /// Time of the last block.
    pub(super) time: u64,
    pub(super) hist: Hist,
    pub(super) actions: Actions,

    pub(super) pending: Pending,
    /// Time and address of the instruction after `pending`.
    pub(super) pending_time: u64,
    pub(super) pending_addr: u64,
    pub(super) stack: Stack,
    /// The last address sent.
    pub(super) reference: u64,
    pub(super) out: Out,
    /// Messages of several runs; none between two calls.
    pub(super) gathered: Gathered,

    pub(super) state: State,
    /// `SYNC` of the next start.
    pub(super) why: Sync,
    /// A sync message that is to come.
    pub(super) due: Option<Sync>,
    /// Triggers have tracing enabled.
    pub(super) enabled: bool,
    pub(super) filter: Filter,
    pub(super) halted: bool,
    pub(super) power_down: bool,
    /// A sync was sent: Ownership must follow.
    pub(super) owner_sync: bool,
    /// A trap or trap return was reported (rc7).
    pub(super) owner_trap: bool,
    /// Halfwords sent since the last sync, and all those before it.
    pub(super) halfwords: u64,
    pub(super) earlier: u64,
    pub(super) periods: Periods,
    /// `icnt` after a branch that may have filled the history, while it continues
    /// to count.
    pub(super) branch_icnt: Option<u64>,
}

/// About how many bytes each message has for `SRC` and `TSTAMP`.
fn bytes_beside(config: &Config) -> u32 {
    let src = u32::from(config.src_bits).div_ceil(6);
    // The time since the last message, some hundreds of ticks.
    let stamp = match config.timestamps {
        Some(stamps) if !stamps.sync_only => 2,
        _ => 0,
    };
    src + stamp
}

impl Hart {
    pub(super) fn with_source(config: &Config, filter: Filter, id: HartId, src: u16) -> Hart {
        let mut hart = Hart {
            id,
            readiness: Readiness::Busy,
            mode: Mode::M,
            context: Context(0),
            icnt: 0,
            limit: u64::MAX,
            history: config.mode == TraceMode::Htm,
            sync_at: u64::MAX,
            time: 0,
            hist: Hist::new(
                config.hist_bits,
                config.repeated_history,
                config.hrepeat_bits,
            )
            .with_bytes_beside(bytes_beside(config)),
            actions: Actions::new(config),
            pending: Pending::Nothing,
            pending_time: 0,
            pending_addr: 0,
            stack: Stack::new(config),
            reference: 0,
            out: Out::new(config, src),
            gathered: Gathered::default(),
            state: State::Fresh,
            why: config.first_sync,
            due: None,
            enabled: !config.starts_disabled,
            filter,
            halted: false,
            power_down: false,
            owner_sync: false,
            owner_trap: false,
            halfwords: 0,
            earlier: 0,
            periods: Periods::new(config),
            branch_icnt: None,
        };
        hart.set_limit();
        hart
    }

    /// One block. Always part of the caller: where that has just made the
    /// block, its fields need not go through memory.
    #[inline(always)]
    pub(super) fn take_block(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let levels = b.halted | b.power_down | b.reset | b.lost;
        let pulses = b.trigger.on | b.trigger.off | b.trigger.notify | (b.external != 0);
        let same = (b.mode == self.mode) & (b.context == self.context);
        if levels | pulses | !same | (b.iretire == 0) {
            self.any_block(config, b, sink);
            return;
        }
        let icnt = self.icnt + u64::from(b.iretire);
        let early = (icnt < self.limit) & (b.time < self.sync_at);
        if (self.readiness == Readiness::Idle) & (b.itype == Itype::None) & early {
            // Most blocks of ports that show single instructions.
            self.icnt = icnt;
            self.time = b.time;
        } else {
            self.plain(config, b, sink);
        }
    }

    /// A block of instructions only.
    #[inline(never)]
    fn plain(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        match self.readiness {
            Readiness::Idle => self.count(config, b, sink),
            Readiness::Pending => {
                self.resolve(config, b.iaddr, None, sink);
                self.count(config, b, sink);
                self.settle(config);
            }
            Readiness::Busy => self.any_block(config, b, sink),
        }
    }

    /// Counts a block's instructions and does what its end asks for.
    #[inline]
    pub(super) fn count(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let before = self.icnt;
        let action = self.actions.of(b.itype);
        self.icnt = before + u64::from(b.iretire);
        self.time = b.time;
        if self.icnt >= self.limit || b.time >= self.sync_at {
            // Before the history: when both are full, I-CNT goes first (7.8).
            self.limit_reached(config, action, before, b, sink);
        }
        match action {
            Action::Count => {}
            Action::NotTaken => self.push(config, false, b.time, sink),
            Action::Taken => self.push(config, true, b.time, sink),
            _ => {
                let end = End {
                    addr: b.last_addr(),
                    next: b.end(),
                    time: b.time,
                    inferable: is_inferable(config, action, before, b),
                };
                self.transfer(config, action, end, sink);
            }
        }
    }

    #[inline]
    pub(super) fn push(&mut self, config: &Config, taken: bool, time: u64, sink: &mut impl Sink) {
        self.branch_icnt = Some(self.icnt);
        let mut sent = false;
        let out = &mut self.out;
        self.hist.push(taken, &mut |body| {
            sent = true;
            out.send(body, time, sink);
        });
        if sent {
            self.after_message(config);
        }
    }

    /// The end of a block that is no branch of the history.
    #[inline(never)]
    pub(super) fn transfer(
        &mut self,
        config: &Config,
        action: Action,
        end: End,
        sink: &mut impl Sink,
    ) {
        let link = config.xlen.wrap(end.next);
        if action == Action::TakenCall {
            self.push(config, true, end.time, sink);
            self.stack.push(link);
            return;
        }
        self.pending = match action {
            Action::Call => {
                self.stack.push(link);
                return;
            }
            Action::Direct => Pending::Direct,
            Action::DirectCall => {
                self.stack.push(link);
                Pending::Direct
            }
            Action::JumpCall => {
                self.stack.push(link);
                Pending::Jump
            }
            Action::Return | Action::Swap => {
                let swap = (action == Action::Swap).then_some(link);
                if end.inferable {
                    // The stack sees it all the same.
                    let _ = self.stack.returns(0);
                    swap.into_iter().for_each(|link| self.stack.push(link));
                }
                Pending::Return(swap)
            }
            Action::TrapReturn => Pending::TrapReturn,
            Action::Trap(btype) => Pending::Trap(btype),
            _ => Pending::Jump,
        };
        if end.inferable {
            self.pending = Pending::Nothing;
            return;
        }
        self.pending_time = end.time;
        self.pending_addr = end.addr;
        match self.pending {
            Pending::Direct | Pending::Jump | Pending::Return(_)
                if self.readiness == Readiness::Idle && self.due.is_none() =>
            {
                self.readiness = Readiness::Pending;
            }
            _ => self.settle(config),
        }
    }

    /// A counter came to its limit with this block.
    #[cold]
    fn limit_reached(
        &mut self,
        config: &Config,
        action: Action,
        before: u64,
        b: &Ingress,
        sink: &mut impl Sink,
    ) {
        if b.time >= self.sync_at || self.halfwords + self.icnt >= self.periods.halfwords {
            self.sync_at = u64::MAX;
            self.raise(Sync::PERIODIC);
        }
        // The message of the jump will carry the count.
        if !action.waits() || is_inferable(config, action, before, b) {
            self.report_icnt(config, b.time, sink);
        }
        self.set_limit();
        self.settle(config);
    }

    /// Reports a full instruction counter (8.4.4).
    pub(super) fn report_icnt(&mut self, config: &Config, time: u64, sink: &mut impl Sink) {
        if self.icnt < self.periods.icnt {
            return;
        }
        let sync = config.icnt_full == IcntFull::Sync
            && match config.mode {
                TraceMode::Btm => true,
                TraceMode::Htm => config.version == Version::Rc7 && !self.hist.is_empty(),
            };
        if sync {
            // It needs the address of the next block.
            self.raise(Sync::SEQUENTIAL);
        } else {
            let icnt = self.take_icnt();
            self.out.send(crate::Body::IcntFull { icnt }, time, sink);
            self.after_message(config);
        }
    }

    /// The counter's value for a message; it starts again.
    #[inline]
    pub(super) fn take_icnt(&mut self) -> u64 {
        let icnt = core::mem::take(&mut self.icnt);
        self.halfwords += icnt;
        self.branch_icnt = None;
        self.set_limit();
        icnt
    }

    /// Where `icnt` needs attention next.
    #[inline]
    fn set_limit(&mut self) {
        self.limit = match self.due {
            None => self.periods.limit(self.halfwords),
            Some(_) => self.periods.icnt,
        };
    }

    /// A sync message was sent: what is counted between syncs starts again.
    pub(super) fn restart_period(&mut self, time: u64) {
        self.out.since_sync = 0;
        self.earlier += core::mem::take(&mut self.halfwords);
        self.due = None;
        self.sync_at = time.saturating_add(self.periods.cycles);
        self.set_limit();
    }

    /// A message was sent: perhaps the next is to be a sync.
    #[inline]
    pub(super) fn after_message(&mut self, config: &Config) {
        if self.out.since_sync + 1 >= self.periods.messages {
            self.raise(Sync::PERIODIC);
        }
        self.settle(config);
    }

    /// A sync message is wanted; the strongest reason stays.
    pub(super) fn raise(&mut self, sync: Sync) {
        if self.due.is_none_or(|due| rank(sync) > rank(due)) {
            self.due = Some(sync);
        }
    }

    /// Whether the sync that is due waits for the next branch message.
    pub(super) fn is_delayed(&self, config: &Config) -> bool {
        config.periodic.delayed && self.due == Some(Sync::PERIODIC)
    }

    /// Finds out how much care the next block needs.
    #[inline]
    pub(super) fn settle(&mut self, config: &Config) {
        let waits = match self.pending {
            Pending::Nothing => Readiness::Idle,
            Pending::Direct | Pending::Jump | Pending::Return(_) => Readiness::Pending,
            Pending::TrapReturn | Pending::Trap(_) => Readiness::Busy,
        };
        let due = self.due.is_some() && !(waits == Readiness::Idle && self.is_delayed(config));
        let traced = self.state == State::Running && self.enabled;
        let busy = !traced || due || self.out.is_dropping() || !self.filter.is_empty();
        self.readiness = if busy { Readiness::Busy } else { waits };
    }
}

/// Whether the code determines where this jump goes: it ends with its constant's
/// load right before it (9.1.1). The load must lie in the same message: in this
/// block, or in one since `I-CNT` last started from 0.
fn is_inferable(config: &Config, action: Action, before: u64, b: &Ingress) -> bool {
    let together = before > 0 || u64::from(b.iretire) * 2 > b.last_size();
    config.sequential_jump && b.sijump && action.is_jump() && together
}

/// How far counters go, from the settings; `u64::MAX` for those without a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    /// Where the instruction counter is full: its top bit is set.
    icnt: u64,
    /// Halfwords from sync to sync.
    halfwords: u64,
    /// Messages from sync to sync.
    pub(super) messages: u64,
    /// Time from sync to sync.
    cycles: u64,
}

impl Periods {
    fn new(config: &Config) -> Periods {
        let period = 1 << (u32::from(config.periodic.max & 15) + 4);
        let of = |unit| match config.periodic.unit == unit {
            true => period,
            false => u64::MAX,
        };
        Periods {
            icnt: match config.icnt_bits {
                0 => u64::MAX,
                bits => 1 << (bits.min(64) - 1),
            },
            halfwords: of(SyncUnit::Halfwords),
            messages: of(SyncUnit::Messages),
            cycles: of(SyncUnit::Cycles),
        }
    }

    /// Where the instruction counter needs attention, with so many halfwords sent
    /// since the last sync.
    #[inline]
    pub(super) fn limit(&self, halfwords: u64) -> u64 {
        self.icnt.min(self.halfwords.saturating_sub(halfwords))
    }
}

/// Which reason for a sync is stronger, where several coincide: lost trace,
/// a new start, a marker, a full counter, the time for one.
fn rank(sync: Sync) -> u8 {
    match sync {
        Sync::OVERRUN => 5,
        Sync::EXTERNAL_TRIGGER | Sync::EVENT => 3,
        Sync::SEQUENTIAL => 2,
        Sync::PERIODIC => 1,
        _ => 4,
    }
}
