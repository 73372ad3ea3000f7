//! One hart's encoder: its state and the short way for plain blocks.

use hartrace_flow::Ingress;
use hartrace_flow::filter::Filter;
use hartrace_isa::Itype;

use super::Sink;
use super::out::Out;
use super::resync::Resync;
use super::unit::{Kind, Unit, is_sijump};
use crate::{BranchMap, Config};

/// How much care the next block needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// It is remembered, and so is the outcome of its branch.
    Calm,
    /// All there is.
    Busy,
}

/// What came before the unit that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing that was traced.
    Nothing,
    /// An instruction after which the code tells where the hart goes.
    Plain,
    /// An uninferable discontinuity.
    Jump,
    /// A trap.
    Trap,
}

/// Why an address packet for the current instruction waits for the next unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A jump led there.
    Target,
    /// It was asked for.
    Notify,
    /// Branches must be told before a synchronisation.
    Flush,
}

/// Most branches of a map.
pub(super) const FULL: u8 = 31;

#[derive(Clone, Debug)]
pub(super) struct Hart {
    pub(super) mood: Mood,
    /// The unit seen last. Its mode and context are the hart's.
    pub(super) cur: Unit,
    /// A synchronisation packet told the current instruction.
    pub(super) told: bool,
    /// The current instruction jumps to where the code does not tell.
    pub(super) jumps: bool,
    pub(super) due: Option<Due>,
    /// Branches not told yet.
    pub(super) map: BranchMap,
    /// Halfwords retired.
    pub(super) halfwords: u64,

    /// What came before the current unit.
    pub(super) before: Before,
    /// The trap seen last, and whether a packet told it.
    pub(super) trap: Unit,
    pub(super) trap_told: bool,
    /// The next instruction gets a synchronisation packet.
    pub(super) sync_next: bool,
    /// The packet before told the target of a jump, and a decoder may yet take
    /// the address for one on the way: only what follows will say (6.6.2).
    pub(super) open: bool,
    /// A change of context waits for a packet that tells it.
    pub(super) owes_context: bool,
    /// The address sent last.
    pub(super) base: u64,
    pub(super) resync: Resync,
    pub(super) out: Out,
    /// `ioptions`.
    pub(super) ioptions: u32,

    /// The current unit is traced.
    pub(super) running: bool,
    /// Triggers have tracing enabled.
    pub(super) enabled: bool,
    /// The last support packet said that it is.
    pub(super) announced: bool,
    /// Trace was lost and no packet has told.
    pub(super) lost: bool,
    pub(super) halted: bool,
    pub(super) filter: Filter,
}

impl Hart {
    pub(super) fn new(config: &Config, filter: Filter) -> Hart {
        Hart {
            mood: Mood::Busy,
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
            open: false,
            owes_context: false,
            base: 0,
            resync: Resync::new(config),
            out: Out::new(config),
            ioptions: config.ioptions_field(),
            running: false,
            enabled: !config.starts_disabled,
            announced: false,
            lost: false,
            halted: false,
            filter,
        }
    }

    /// One block. Always part of the caller: where that has just made the
    /// block, its fields need not go through memory.
    #[inline(always)]
    pub(super) fn block(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let levels = b.halted | b.reset | b.lost;
        let pulses = b.trigger.on | b.trigger.off | b.trigger.notify;
        let same = (b.mode == self.cur.mode) & (b.context == self.cur.context);
        let halfwords = self.halfwords + u64::from(b.iretire);
        let early = (b.time < self.resync.time_limit) & (halfwords < self.resync.halfword_limit);
        let plain = !(levels | pulses) & same & early & (b.iretire > 0) & !b.itype.is_trap();
        if !plain | (self.mood != Mood::Calm) {
            self.any_block(config, b, sink);
            return;
        }
        // What any_block would come to: no packet is due, and none becomes due.
        self.halfwords = halfwords;
        self.told = false;
        self.cur.kind = Kind::Plain;
        self.cur.addr = b.last_addr();
        self.cur.end = config.xlen.wrap(b.end());
        self.cur.time = b.time;
        if b.itype == Itype::None {
            return;
        }
        self.cur.kind = Kind::of(b.itype);
        match self.cur.kind {
            Kind::Jump if !is_sijump(config, b) => {
                self.jumps = true;
                self.mood = Mood::Busy;
            }
            kind => self.push(kind),
        }
    }

    /// Takes the outcome of a branch into the map.
    #[inline]
    pub(super) fn push(&mut self, kind: Kind) {
        if kind.is_branch() {
            self.map.bits |= u32::from(kind == Kind::NotTaken) << (self.map.count & 31);
            self.map.count += 1;
            if self.map.count >= FULL {
                self.mood = Mood::Busy;
            }
        }
    }

    /// Finds out how much care the next block needs.
    #[inline]
    pub(super) fn settle(&mut self) {
        let waits = self.due.is_some() | self.jumps | self.cur.kind.is_trap();
        let full = (self.map.count >= FULL) | self.resync.has_packets();
        let quiet = self.running & self.enabled & !self.owes_context & !self.out.is_dropping();
        let calm = quiet && !waits && !full && self.filter.is_empty();
        self.mood = if calm { Mood::Calm } else { Mood::Busy };
    }
}
