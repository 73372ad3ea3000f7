//! The encoder of one hart: its state and the fast path for plain blocks.

use alloc::boxed::Box;

use hartrace_flow::encode::Gathered;
use hartrace_flow::filter::Filter;
use hartrace_flow::{HartId, Ingress};
use hartrace_isa::Itype;

use super::Sink;
use super::map::FULL;
use super::out::Out;
use super::prediction::Prediction;
use super::resync::Resync;
use super::unit::{Unit, is_sijump};
use crate::data::DataEncoder;
use crate::modes::returns::{Landing, Returns};
use crate::modes::{Targets, Vectors};
use crate::{BranchMap, Config};

/// How much care the next block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It is remembered, and so is the outcome of its branch.
    Idle,
    /// The same, and an optional mode takes notice of it.
    Modal,
    /// It is the target of a jump, which is to be reported, and nothing else is due.
    /// No optional mode is on.
    Landing,
    /// Packets may become due with it.
    Pending,
    /// All there is.
    Busy,
}

/// What came before the unit that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing that was traced.
    Nothing,
    /// An instruction after which the code determines where the hart goes.
    Plain,
    /// An uninferable discontinuity.
    Jump,
    /// One that may change the mode.
    TrapReturn,
    /// A trap.
    Trap,
}

/// The previous packet reported the target of a jump, and a decoder may yet take the
/// address for one on the way: only what follows will say (6.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    No,
    Jump,
    TrapReturn,
}

/// Why an address packet for the current instruction waits for the next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A jump led there.
    Target,
    /// It was asked for.
    Notify,
    /// Branches must be reported before a synchronisation.
    Flush,
}

/// What the current instruction is to the return stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Returning {
    /// No return.
    #[default]
    No,
    /// A return that is left out.
    Implied,
    /// One that is reported; `true` although the stack has an address for it, which a
    /// decoder may take it for.
    Reported(bool),
}

/// The encoder of one hart; [`Encoder`](crate::Encoder) has one for each.
#[derive(Clone, Debug)]
pub struct Hart {
    pub(super) id: HartId,
    pub(super) readiness: Readiness,
    /// The unit seen last. Its mode and context are the hart's.
    pub(super) cur: Unit,
    /// A synchronisation packet reported the current instruction.
    pub(super) told: bool,
    /// The current instruction is a jump whose target the code does not determine.
    pub(super) jumps: bool,
    pub(super) due: Option<Due>,
    /// Branches not reported yet.
    pub(super) map: BranchMap,
    /// Halfwords retired.
    pub(super) halfwords: u64,

    /// What came before the current unit.
    pub(super) before: Before,
    /// The last trap, and whether a packet reported it.
    pub(super) trap: Unit,
    pub(super) trap_told: bool,
    /// The next instruction gets a synchronisation packet.
    pub(super) sync_next: bool,
    pub(super) open: Open,
    /// A change of context waits for a packet that reports it.
    pub(super) owes_context: bool,
    /// The address sent last.
    pub(super) base: u64,
    pub(super) resync: Resync,
    pub(super) out: Out,
    /// Packets of several runs; none between two calls.
    pub(super) gathered: Gathered,
    /// `ioptions`.
    pub(super) ioptions: u32,

    /// Branch prediction.
    pub(super) prediction: Option<Prediction>,
    /// The jump target cache.
    pub(super) targets: Option<Targets>,
    /// The current instruction is the target of a jump, and was in the cache.
    pub(super) hit: bool,
    /// Implicit return.
    pub(super) returns: Option<Returns>,
    pub(super) returning: Returning,
    /// A return that is left out led to the current instruction.
    pub(super) implied: bool,
    /// One that is reported led there.
    pub(super) landing: Option<Landing>,
    /// Synchronisation packets leave all of them as they are.
    pub(super) keeps: bool,
    /// Implicit exception.
    pub(super) vectors: Option<Vectors>,

    /// Data trace.
    pub(super) data: Option<Box<DataEncoder>>,
    /// It matters in which order instructions and accesses come: the queue may be full of
    /// data packets, or packets of both kinds have timestamps.
    pub(super) timed: bool,
    /// Packets have timestamps.
    pub(super) stamped: bool,
    /// Data packets were lost, and no packet has reported it.
    pub(super) data_lost: bool,

    /// The current unit is traced.
    pub(super) running: bool,
    /// Triggers have tracing enabled.
    pub(super) enabled: bool,
    /// The last support packet said that it is.
    pub(super) announced: bool,
    /// Trace was lost and no packet has reported it.
    pub(super) lost: bool,
    pub(super) halted: bool,
    /// The trace stops before the next block.
    pub(super) stops: bool,
    pub(super) filter: Filter,
}

impl Hart {
    pub(super) fn with_filter(config: &Config, filter: Filter, id: HartId) -> Hart {
        let stamped = config.encapsulation.time_bytes > 0;
        Hart {
            id,
            readiness: Readiness::Busy,
            cur: Unit::nothing(),
            told: false,
            jumps: false,
            due: None,
            map: BranchMap::default(),
            halfwords: 0,
            before: Before::Nothing,
            trap: Unit::nothing(),
            trap_told: false,
            sync_next: false,
            open: Open::No,
            owes_context: false,
            base: 0,
            resync: Resync::new(config),
            out: Out::new(config, id.0 as u16),
            gathered: Gathered::default(),
            ioptions: config.ioptions_field(),
            prediction: config.branch_prediction.then(|| Prediction::new(config)),
            targets: config
                .jump_target_cache
                .then(|| Targets::new(config.cache_size, config.iaddress_lsb)),
            hit: false,
            returns: config.implicit_return.then(|| Returns::new(config)),
            returning: Returning::No,
            implied: false,
            landing: None,
            keeps: config.resync_disabled(),
            vectors: config
                .implicit_exception
                .then(|| Vectors::new(config.trap_vectors, config.xlen)),
            data: DataEncoder::new(config).map(Box::new),
            timed: config.data.is_some() && (config.queue.is_some() || stamped),
            stamped,
            data_lost: false,
            running: false,
            enabled: !config.starts_disabled,
            announced: false,
            lost: false,
            halted: false,
            stops: false,
            filter,
        }
    }

    /// One block. Always part of the caller: where that has just made the
    /// block, its fields need not go through memory.
    #[inline(always)]
    pub(super) fn take_block(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let levels = b.halted | b.reset | b.lost | b.untraced;
        let pulses = b.trigger.on | b.trigger.off | b.trigger.notify;
        if levels | pulses | (b.iretire == 0) {
            self.any_block(config, b, sink);
            return;
        }
        let same = (b.mode == self.cur.mode) & (b.context == self.cur.context);
        let halfwords = self.halfwords + u64::from(b.iretire);
        let early = (b.time < self.resync.time_limit) & (halfwords < self.resync.halfword_limit);
        if !(same & early) | (self.readiness != Readiness::Idle) {
            self.instructions(config, b, sink);
            return;
        }
        if b.itype.is_trap() | b.itype.is_uninferable() {
            self.ending(config, b, halfwords, sink);
            return;
        }
        self.pass(b, halfwords);
        if b.itype != Itype::None {
            self.push(b.itype);
        }
    }

    /// Only remembers a block: no packet is due, and none becomes due.
    #[inline(always)]
    pub(super) fn pass(&mut self, b: &Ingress, halfwords: u64) {
        self.halfwords = halfwords;
        self.told = false;
        self.cur.itype = b.itype;
        self.cur.addr = b.last_addr();
        self.cur.end = b.end();
        self.cur.time = b.time;
    }

    /// A block that ends with a jump or a trap, and no packet is due.
    #[inline(never)]
    fn ending(&mut self, config: &Config, b: &Ingress, halfwords: u64, sink: &mut impl Sink) {
        if b.itype.is_trap() {
            self.instructions(config, b, sink);
        } else {
            self.pass(b, halfwords);
            self.jumps = !is_sijump(config, b);
            self.settle();
        }
    }

    /// A block without any signals.
    #[inline(never)]
    fn instructions(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        if self.readiness == Readiness::Busy {
            self.any_block(config, b, sink);
            return;
        }
        if self.readiness == Readiness::Modal && self.modal_block(config, b) {
            return;
        }
        self.units(config, b, false, sink);
        self.halfwords += u64::from(b.iretire);
        self.settle();
    }

    /// Takes the outcome of a branch into the map, if it is one.
    #[inline(always)]
    pub(super) fn push(&mut self, itype: Itype) {
        // Without a jump of our own: who can say what comes next?
        self.map.bits |= u32::from(itype == Itype::NotTaken) << (self.map.count & 31);
        self.map.count += u8::from(itype.is_branch());
        if self.map.count >= FULL && self.readiness == Readiness::Idle {
            self.readiness = Readiness::Pending;
        }
    }

    /// Whether branches must be reported for their number, or because one was
    /// not predicted.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        match &self.prediction {
            None => self.map.count >= FULL,
            Some(prediction) => prediction.is_due(self.map.count),
        }
    }

    /// Finds out how much care the next block needs.
    #[inline]
    pub(super) fn settle(&mut self) {
        let quiet = self.running & self.enabled & !self.lost & !self.out.is_dropping();
        let waits = self.due.is_some() | self.jumps | self.cur.itype.is_trap() | self.owes_context;
        let full = self.is_full() | self.resync.has_packets();
        self.readiness = if !quiet || !self.filter.is_empty() {
            Readiness::Busy
        } else if waits | full {
            Readiness::Pending
        } else if self.prediction.is_some() | self.returns.is_some() {
            Readiness::Modal
        } else {
            Readiness::Idle
        };
    }
}
