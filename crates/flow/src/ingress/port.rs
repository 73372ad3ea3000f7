//! From steps to ingress blocks.

use alloc::vec::Vec;
use core::ops::Range;

use hartrace_isa::{Flow, Isa, Itype, ItypeTable, Op, decode};

use super::kinds::{Kind, Kinds};
use super::loads::Loads;
use super::{Ctype, DataIngress, Ingress, IngressRuns, IngressSink, Trigger};
use crate::per_hart::PerHart;
use crate::{
    Access, Amount, Cause, Context, Effects, HartId, Insn, Mode, Observer, Placed, Role, Signal,
    Step, Straight, Straights, TrapStep, Wants,
};

/// Width of `itype`: three bits do not distinguish jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItypeWidth {
    /// Codes 0 to 6.
    Three,
    /// Codes 0 to 5 and 8 to 15.
    Four,
}

/// How many instructions a block may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retirement {
    /// One (table 4.3).
    Single,
    /// Consecutive ones, up to this many halfwords (table
    /// 4.2).
    Block(u32),
}

/// Which instructions that always trap count as retired, in the block of their
/// trap. The ratified texts: none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Retires {
    /// None.
    #[default]
    Neither,
    /// ecall (N-Trace 1.0.0-rc7, table 2 and 8.4.4).
    Ecall,
    /// ecall, ebreak and c.ebreak (the E-Trace reference flow).
    EcallAndEbreak,
}

impl Retires {
    /// The instruction that a trap was taken at, if it counts as retired. A fault or a
    /// breakpoint of the debugger may be taken at any instruction: that one does not.
    pub fn retired(self, t: &TrapStep, isa: Isa) -> Option<u32> {
        let bits = t.bits?;
        let included = match self {
            Retires::Neither => false,
            Retires::Ecall => bits == ECALL,
            Retires::EcallAndEbreak => Flow::of_retired(bits, isa) == Flow::Trap,
        };
        let own = match t.trap.cause {
            Cause::Exception(Some(code)) if bits == ECALL => ENVIRONMENT_CALLS.contains(&code),
            Cause::Exception(Some(code)) => code == BREAKPOINT,
            Cause::Exception(None) | Cause::Unknown => true,
            Cause::Interrupt(_) => false,
        };
        (included && own).then_some(bits)
    }
}

const ECALL: u32 = 0x73;

/// Exception codes of an ecall, by mode, and of an ebreak.
const ENVIRONMENT_CALLS: core::ops::RangeInclusive<u32> = 8..=11;
const BREAKPOINT: u32 = 3;

/// The data half of a port (E-Trace 4.3, 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataPort {
    /// There is none.
    #[default]
    None,
    /// All of an access is shown with its instruction.
    Unified,
    /// What was read is shown later.
    Split {
        /// Loads that can be in progress.
        ids: u16,
        /// Instructions that retire before a response.
        latency: u8,
    },
}

/// What kind of port a hart has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Instruction set of the code.
    pub isa: Isa,
    /// `itype_width_p`.
    pub itype_width: ItypeWidth,
    /// Whose table gives `itype`. With that of the E-Trace reference flow the
    /// port has its other ways too: a sequentially inferable jump counts as
    /// direct, and the instruction that trapped has an `ilastsize`.
    pub table: ItypeTable,
    /// One instruction per block or several.
    pub retirement: Retirement,
    /// Sequentially inferable jumps are marked (`sijump`).
    pub sijump: bool,
    /// Direct jumps and calls are shown as taken branches (N-Trace
    /// trTeInstEnAllJumps). An encoder cannot distinguish a call from a
    /// branch then.
    pub all_jumps: bool,
    /// Which instructions count as retired although they trap.
    pub retires: Retires,
    /// How a change of context is to be reported.
    pub ctype: Ctype,
    /// Low bits of `tval` that are shown; 64 and more for all of them.
    pub tval_bits: u8,
    /// Data accesses. An instruction with several is shown once for each of them
    /// (E-Trace 4.3).
    pub data: DataPort,
    /// Loads and stores of an instruction with several have a `dtype` of their own,
    /// 2 and 3, and a compare-and-swap that failed has 7 (E-Trace 2.05, multiple memory
    /// accesses and compare-and-swap).
    pub multiple: bool,
}

impl PortConfig {
    /// A single-retirement port of the ratified E-Trace text with four-bit
    /// `itype` and every optional signal.
    #[must_use]
    pub const fn new(isa: Isa) -> PortConfig {
        PortConfig {
            isa,
            itype_width: ItypeWidth::Four,
            table: ItypeTable::ETrace20,
            retirement: Retirement::Single,
            sijump: true,
            all_jumps: false,
            retires: Retires::Neither,
            ctype: Ctype::Precise,
            tval_bits: 64,
            data: DataPort::None,
            multiple: false,
        }
    }

    /// The bits of `tval` that are shown.
    #[must_use]
    pub const fn tval_mask(&self) -> u64 {
        match self.tval_bits {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        }
    }

    /// Whether an instruction is a custom one, which N-Trace has shown as an
    /// indirect jump when it goes elsewhere (10.1).
    pub(super) fn is_custom(&self, flow: Flow, bits: u32) -> bool {
        let table = matches!(self.table, ItypeTable::NTraceRc7 | ItypeTable::NTrace10);
        table && flow.is_sequential() && decode(bits, self.isa).op == Op::Unknown
    }

    /// The type of a retired instruction.
    pub(super) fn itype(&self, flow: Flow, bits: u32, taken: bool) -> Itype {
        match self.itype_width {
            ItypeWidth::Three => flow.itype3(bits, taken, self.table),
            ItypeWidth::Four => flow.itype4(bits, taken, self.table),
        }
    }
}

/// The adapter: an [`Observer`] of steps that shows a sink what the port of
/// such a hart would show. Any number of harts, each with its own state.
///
/// ```
/// use hartrace_flow::{Effects, HartId, Ingress, Insn, Observer, Port, PortConfig, Step};
/// use hartrace_isa::{Isa, Itype};
///
/// let mut rows = Vec::new();
/// let mut port = Port::new(PortConfig::new(Isa::RV64GC), |_: HartId, row: &Ingress| rows.push(*row));
/// // c.beqz a0, 0x1008, taken
/// let insn = Insn { pc: 0x1000, bits: 0xc501, next: 0x1008, ..Insn::default() };
/// port.step(HartId(0), &Step::Insn(insn), &Effects::default());
/// port.finish();
/// drop(port);
/// assert_eq!((rows[0].itype, rows[0].iaddr, rows[0].iretire), (Itype::Taken, 0x1000, 1));
/// ```
#[derive(Debug)]
pub struct Port<S> {
    config: PortConfig,
    kinds: Kinds,
    harts: PerHart<Hart>,
    sink: S,
}

impl<S: IngressSink> Port<S> {
    /// A port that shows its blocks to the sink.
    pub fn new(config: PortConfig, sink: S) -> Self {
        Port {
            config,
            kinds: Kinds::new(),
            harts: PerHart::default(),
            sink,
        }
    }

    /// The sink, to read what is in it.
    #[must_use]
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The same, for blocks that come from elsewhere. A port that has shown blocks of its
    /// own is not to be bypassed.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Halfwords of a hart that are still gathered in a block.
    #[must_use]
    pub fn gathered(&self, hart: HartId) -> u64 {
        let known = self.harts.iter().find(|(id, _)| *id == hart);
        let open = known.and_then(|(_, hart)| hart.open.as_ref());
        open.map_or(0, |block| block.iretire.into())
    }

    /// The sink. What is still gathered in a block is shown first.
    pub fn into_sink(mut self) -> S {
        self.flush();
        self.sink
    }

    fn flush(&mut self) {
        for (id, hart) in self.harts.iter_mut() {
            hart.finish(id, &mut self.sink);
        }
    }
}

impl<S: IngressSink> Observer for Port<S> {
    const WANTS: Wants = Wants::STEPS.with(Wants::ACCESSES).with(Wants::CSRS);

    fn step(&mut self, id: HartId, step: &Step, effects: &Effects) {
        let hart = self.harts.of(id);
        match step {
            Step::Insn(insn) => {
                let kind = self.kinds.of(insn.bits, &self.config);
                match self.config.data {
                    DataPort::None => hart.insn(&self.config, kind, id, insn, &mut self.sink),
                    _ => hart.with_data(&self.config, kind, id, (insn, effects), &mut self.sink),
                }
            }
            Step::Trap(trap) => hart.trap(&self.config, id, trap, &mut self.sink),
            Step::Signal(signal) => hart.signal(id, *signal, &mut self.sink),
        }
    }

    fn straights(&mut self, id: HartId, code: &Straights<'_>) {
        let hart = self.harts.of(id);
        let xlen = self.config.isa.xlen();
        let mut pass = Pass {
            accesses: code.accesses.iter(),
            data: self.config.data != DataPort::None,
            ready: hart.is_ready(&self.config, code.context),
            hart,
            config: &self.config,
            kinds: &mut self.kinds,
            id,
            code,
            mask: xlen.wrap(u64::MAX),
            shown: None,
            sink: &mut self.sink,
        };
        pass.show();
        pass.remember();
    }

    fn finish(&mut self) {
        self.flush();
        self.sink.finish();
    }
}

/// What the port remembers of one hart.
#[derive(Debug, Default)]
pub(super) struct Hart {
    /// A block that may still grow, or take in a trap.
    pub(super) open: Option<Ingress>,
    /// Data accesses of the open block, shown after it.
    pub(super) accesses: Vec<DataIngress>,
    pub(super) loads: Loads,
    /// The instruction before, bits and pc: it may load a constant that a
    /// sequentially inferable jump uses.
    before: Option<(u32, u64)>,
    context: Option<Context>,
    trigger: Trigger,
    external: u8,
    level: Level,
}

/// The levels of the block before.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    mode: Mode,
    context: Context,
    time: u64,
    halted: bool,
    power_down: bool,
}

impl Hart {
    /// Whether the sink may be given instructions in this context at once.
    #[inline]
    fn is_ready(&self, config: &PortConfig, context: Context) -> bool {
        let pulses = self.external | self.trigger.bits();
        let levels = self.level.halted | self.level.power_down;
        // Responses come after instructions that are counted one by one.
        let single = config.retirement == Retirement::Single
            && !matches!(config.data, DataPort::Split { .. });
        single & (self.context == Some(context)) & !levels & (pulses == 0)
    }

    #[inline]
    pub(super) fn insn(
        &mut self,
        config: &PortConfig,
        kind: Kind,
        id: HartId,
        insn: &Insn,
        sink: &mut impl IngressSink,
    ) {
        let elsewhere = insn.next != config.isa.xlen().wrap(insn.end());
        let block = self.single(config, kind, insn, elsewhere);
        self.before = Some((insn.bits, insn.pc));
        self.keep_level(insn.mode, insn.context, insn.time);
        match config.retirement {
            Retirement::Single => sink.ingress(id, &block),
            Retirement::Block(room) => {
                // 48 bits cannot be distinguished from 64 inside a block.
                let odd = block.last_size() != u64::from(insn.len());
                let ends = !kind.sequential || elsewhere || odd;
                self.join(id, block, (ends, odd), room, sink);
            }
        }
    }

    /// Shows an instruction that will be shown again: it has another access.
    pub(super) fn repeat(
        &mut self,
        config: &PortConfig,
        kind: Kind,
        id: HartId,
        insn: &Insn,
        sink: &mut impl IngressSink,
    ) {
        let block = Ingress {
            itype: Itype::None,
            sijump: false,
            ..self.single(config, kind, insn, false)
        };
        self.keep_level(insn.mode, insn.context, insn.time);
        match config.retirement {
            Retirement::Single => sink.ingress(id, &block),
            Retirement::Block(room) => self.join(id, block, (true, false), room, sink),
        }
    }

    /// Adds the block of one instruction to the open one, or begins another.
    fn join(
        &mut self,
        id: HartId,
        block: Ingress,
        (ends, odd): (bool, bool),
        room: u32,
        sink: &mut impl IngressSink,
    ) {
        let marked = block.trigger != Trigger::default() || block.external != 0;
        let joined = self.open.filter(|open| {
            !(marked || odd)
                && open.end() == block.iaddr
                && open.mode == block.mode
                && block.ctype == Ctype::Unreported
                && open.context == block.context
                && open.iretire + block.iretire <= room
        });
        let block = match joined {
            Some(open) => Ingress {
                itype: block.itype,
                iretire: open.iretire + block.iretire,
                ilastsize: block.ilastsize,
                sijump: block.sijump,
                ..open
            },
            None => {
                self.close(id, sink);
                block
            }
        };
        if ends || marked {
            // Taken by an itype of its own, or by a gap in the addresses: a
            // trap after it gets a block of its own.
            self.open = None;
            self.show(id, &block, sink);
        } else {
            self.open = Some(block);
        }
    }

    /// The block of one instruction.
    #[inline(always)]
    fn single(&mut self, config: &PortConfig, kind: Kind, insn: &Insn, elsewhere: bool) -> Ingress {
        let reference = config.table == ItypeTable::ETraceReference;
        let asked = kind.indirect && (config.sijump || reference);
        let sequential = asked && self.is_sequential_jump(config, insn);
        let changed = self.context.is_some_and(|c| c != insn.context);
        self.context = Some(insn.context);
        let itype = kind.itype(elsewhere);
        Ingress {
            itype: match sequential && reference {
                true => inferable(itype),
                false => itype,
            },
            iretire: u32::from(insn.len()) / 2,
            ilastsize: last_size(insn.len()),
            iaddr: insn.pc,
            mode: insn.mode,
            context: insn.context,
            ctype: if changed {
                config.ctype
            } else {
                Ctype::Unreported
            },
            sijump: sequential && config.sijump,
            time: insn.time,
            trigger: core::mem::take(&mut self.trigger),
            external: core::mem::take(&mut self.external),
            halted: self.level.halted,
            power_down: self.level.power_down,
            ..Ingress::default()
        }
    }

    /// Whether this jump goes to the constant that was loaded right before.
    fn is_sequential_jump(&self, config: &PortConfig, insn: &Insn) -> bool {
        self.before.is_some_and(|(before, pc)| {
            let before = Flow::of_retired(before, config.isa);
            let flow = Flow::of_retired(insn.bits, config.isa);
            flow.sequential_target(before, pc, config.isa.xlen()) == Some(insn.next)
        })
    }

    fn trap(&mut self, config: &PortConfig, id: HartId, t: &TrapStep, sink: &mut impl IngressSink) {
        let (itype, cause) = match t.trap.cause {
            Cause::Interrupt(code) => (Itype::Interrupt, code),
            Cause::Exception(code) => (Itype::Exception, code),
            // The port has no code for "something": an exception says least.
            Cause::Unknown => (Itype::Exception, None),
        };
        let retires = config.retires.retired(t, config.isa);
        let len = retires.map_or(0, |bits| hartrace_isa::length(bits as u16));
        let itype = match retires {
            // NexRv knows no traps: what it counts is typed as any other.
            Some(bits) if config.table == ItypeTable::NexRv => config.itype(Flow::Trap, bits, true),
            _ => itype,
        };
        // The reference flow gives a size to what did not retire.
        let sized = match t.bits {
            Some(bits) if config.table == ItypeTable::ETraceReference => {
                hartrace_isa::length(bits as u16)
            }
            _ => len,
        };
        let alone = Ingress {
            iretire: u32::from(len) / 2,
            ilastsize: last_size(sized),
            iaddr: t.trap.epc.unwrap_or(0),
            mode: t.mode,
            context: t.context,
            time: t.time,
            trigger: core::mem::take(&mut self.trigger),
            external: core::mem::take(&mut self.external),
            ..self.level()
        };
        let marked = alone.trigger != Trigger::default() || alone.external != 0;
        let room = match config.retirement {
            Retirement::Single => 0,
            Retirement::Block(room) => room,
        };
        let open = self.open.take();
        let joined = open.filter(|open| {
            !marked
                && open.end() == alone.iaddr
                && open.mode == alone.mode
                && open.context == alone.context
                && open.iretire + alone.iretire <= room
        });
        if joined.is_none()
            && let Some(open) = open
        {
            self.show(id, &open, sink);
        }
        let block = joined.map_or(alone, |open| Ingress {
            iretire: open.iretire + alone.iretire,
            ilastsize: if len == 0 {
                open.ilastsize
            } else {
                alone.ilastsize
            },
            ..open
        });
        let block = Ingress {
            itype,
            cause: cause.unwrap_or(0),
            tval: t.trap.tval.unwrap_or(0) & config.tval_mask(),
            pending: t.trap.pending,
            ..block
        };
        self.before = None;
        self.keep_level(alone.mode, alone.context, alone.time);
        self.show(id, &block, sink);
    }

    fn signal(&mut self, id: HartId, signal: Signal, sink: &mut impl IngressSink) {
        match signal {
            Signal::TraceOn => self.trigger.on = true,
            Signal::TraceOff => self.trigger.off = true,
            Signal::Notify => self.trigger.notify = true,
            Signal::External(n) => self.external |= 1u8.checked_shl(u32::from(n)).unwrap_or(0),
            Signal::Halted
            | Signal::Resumed
            | Signal::Reset
            | Signal::PowerDown
            | Signal::PowerUp
            | Signal::Lost
            | Signal::Untraced => {
                self.close(id, sink);
                // Sleep does not separate a load from its jump. An encoder that
                // stops for it reports the jump's target anyway.
                if !matches!(signal, Signal::PowerDown | Signal::PowerUp) {
                    self.before = None;
                }
                match signal {
                    Signal::Halted => self.level.halted = true,
                    Signal::Resumed => self.level.halted = false,
                    Signal::PowerDown => self.level.power_down = true,
                    Signal::PowerUp => self.level.power_down = false,
                    Signal::Reset => (self.level.halted, self.level.power_down) = (false, false),
                    _ => {}
                }
                let idle = Ingress {
                    reset: signal == Signal::Reset,
                    lost: signal == Signal::Lost,
                    untraced: signal == Signal::Untraced,
                    ..self.level()
                };
                sink.ingress(id, &idle);
            }
            // Nothing the port shows.
            Signal::Update => {}
        }
    }

    /// Shows a block and the accesses that waited for it.
    fn show(&mut self, id: HartId, block: &Ingress, sink: &mut impl IngressSink) {
        sink.ingress(id, block);
        for access in self.accesses.drain(..) {
            sink.data(id, &access);
        }
    }

    #[inline]
    fn keep_level(&mut self, mode: Mode, context: Context, time: u64) {
        let level = &mut self.level;
        (level.mode, level.context, level.time) = (mode, context, time);
    }

    /// A block with the levels of the one before.
    fn level(&self) -> Ingress {
        Ingress {
            mode: self.level.mode,
            context: self.level.context,
            time: self.level.time,
            halted: self.level.halted,
            power_down: self.level.power_down,
            ..Ingress::default()
        }
    }

    /// Shows what is still gathered; a pulse that no instruction followed gets
    /// an idle cycle.
    fn finish(&mut self, id: HartId, sink: &mut impl IngressSink) {
        self.close(id, sink);
        self.respond(id, u64::MAX, sink);
        let idle = Ingress {
            trigger: core::mem::take(&mut self.trigger),
            external: core::mem::take(&mut self.external),
            ..self.level()
        };
        if idle.trigger != Trigger::default() || idle.external != 0 {
            sink.ingress(id, &idle);
        }
    }

    pub(super) fn close(&mut self, id: HartId, sink: &mut impl IngressSink) {
        if let Some(open) = self.open.take() {
            self.show(id, &open, sink);
        }
    }
}

/// How often a sink is asked whether it takes the rest of a piece.
const ATTEMPTS: usize = 8;

/// Straight-line code of one hart on its way to the sink.
struct Pass<'p, S> {
    hart: &'p mut Hart,
    config: &'p PortConfig,
    kinds: &'p mut Kinds,
    id: HartId,
    code: &'p Straights<'p>,
    /// The bits of an address.
    mask: u64,
    /// The accesses of the pieces that were not shown yet.
    accesses: core::slice::Iter<'p, Access>,
    /// Accesses are shown.
    data: bool,
    /// Nothing but the instructions themselves matters.
    ready: bool,
    /// The piece and index of the instruction shown last, as long as the hart does
    /// not know.
    shown: Option<(&'p Straight, usize)>,
    sink: &'p mut S,
}

impl<'p, S: IngressSink> Pass<'p, S> {
    /// Shows all pieces: as many as possible to a sink that takes whole ones.
    fn show(&mut self) {
        let mut rest = self.code.list;
        loop {
            // Which accesses are those of one instruction is seen one by one.
            if self.ready && !self.config.multiple {
                let taken = self.whole(rest);
                if self.data {
                    self.show_accesses(rest.get(..taken).unwrap_or_default());
                }
                if let Some(last) = taken.checked_sub(1).and_then(|last| rest.get(last)) {
                    self.shown = Some((last, usize::from(last.count).saturating_sub(1)));
                }
                rest = rest.get(taken..).unwrap_or_default();
            }
            let Some((piece, others)) = rest.split_first() else {
                return;
            };
            match self.data {
                true => self.each(piece),
                false => self.parts(piece),
            }
            rest = others;
        }
    }

    /// Shows the accesses of pieces that the sink took. It has no filter, so that it
    /// does not matter which instruction made them.
    #[inline(never)]
    fn show_accesses(&mut self, pieces: &[Straight]) {
        let code = self.code.code;
        let count = |piece: &Straight| {
            let last = code.get(piece.last as usize);
            last.map_or(0, |insn| usize::from(insn.accesses))
        };
        let count = pieces.iter().map(count).sum();
        let all = self.accesses.as_slice();
        let (shown, rest) = all.split_at_checked(count).unwrap_or((all, &[]));
        self.accesses = rest.iter();
        if !shown.is_empty() {
            self.sink.accesses(self.id, shown);
        }
    }

    /// Shows a piece instruction by instruction, with accesses.
    #[inline(never)]
    fn each(&mut self, piece: &Straight) {
        self.remember();
        let mut before = 0;
        for (index, placed) in self.code.insns(piece).iter().enumerate() {
            let own = usize::from(placed.accesses.saturating_sub(before));
            before = placed.accesses;
            let all = self.accesses.as_slice();
            let own = all.get(..own).unwrap_or(all);
            self.accesses = all.get(own.len()..).unwrap_or_default().iter();
            let insn = self.code.insn(piece, index);
            let kind = self.kinds.of(insn.bits, self.config);
            let accesses = own.iter();
            self.hart
                .with_accesses(self.config, kind, self.id, (&insn, accesses), self.sink);
        }
        self.ready = self.hart.is_ready(self.config, self.code.context);
    }

    /// Shows whole pieces as long as the sink takes them; how many it took.
    #[inline(always)]
    fn whole(&mut self, pieces: &[Straight]) -> usize {
        let code = self.code;
        let before = self.shown.and_then(|(piece, index)| {
            let insn = code.code.get(piece.first() + index)?;
            Some(insn.role)
        });
        let runs = IngressRuns {
            mode: code.mode,
            context: code.context,
            code: code.code,
            pieces: pieces.iter(),
            part: None,
            mask: self.mask,
            before: before.unwrap_or(Role::Constant),
            kinds: self.kinds,
            config: self.config,
        };
        self.sink.runs(self.id, runs)
    }

    /// A piece that the sink did not take as a whole.
    #[inline(never)]
    fn parts(&mut self, piece: &'p Straight) {
        let insns = self.code.insns(piece);
        // A jump at the end by itself: the port has to look at it.
        let jump = insns
            .last()
            .is_some_and(|last| matches!(last.role, Role::Direct | Role::Indirect));
        let end = insns.len() - usize::from(jump);
        let mut shown = 0;
        // A sink that has something to do with a block, and perhaps with the next
        // one, may take the rest.
        for _ in 0..ATTEMPTS {
            if self.run(piece, insns, shown..end) {
                shown = end;
            } else if let Some(cut) = last_branch(insns, shown..end)
                && self.run(piece, insns, shown..cut)
            {
                // The branch filled a message.
                shown = cut;
            }
            if shown == end {
                break;
            }
            self.one(piece, shown);
            shown += 1;
        }
        for index in shown..insns.len() {
            self.one(piece, index);
        }
    }

    /// One of the instructions.
    fn one(&mut self, piece: &Straight, index: usize) {
        self.remember();
        let insn = self.code.insn(piece, index);
        let kind = self.kinds.of(insn.bits, self.config);
        self.hart.insn(self.config, kind, self.id, &insn, self.sink);
        self.ready = self.hart.is_ready(self.config, self.code.context);
    }

    /// Shows some instructions without a jump at once, if the sink takes them.
    fn run(&mut self, piece: &'p Straight, insns: &[Placed], range: Range<usize>) -> bool {
        let last = range.end.wrapping_sub(1);
        let Some(part @ [first, ..]) = insns.get(range) else {
            return false;
        };
        let (true, Some(end)) = (self.ready, part.last()) else {
            return false;
        };
        // A piece of its own, of which only the first and the last instruction are
        // looked at.
        let single = part.len() == 1;
        let whole = last + 1 == insns.len();
        let piece_of_its_own = [Straight {
            pc: piece.pc.wrapping_add(first.offset.into()),
            next: match whole {
                true => piece.next,
                false => piece.pc.wrapping_add(end.end.into()),
            },
            time: piece.time,
            last: 1,
            count: if single { 1 } else { 2 },
            taken: if whole { piece.taken } else { 0 },
            extra: if whole { piece.extra } else { 0 },
        }];
        let end = Placed {
            offset: end.offset - first.offset,
            end: end.end - first.offset,
            branch_end: end.branch_end.saturating_sub(first.offset),
            from_branch: first.is_branch(),
            amount: Amount::new(
                (end.end - first.offset) / 2,
                end.branches() - first.branches() + u8::from(first.is_branch()),
            ),
            ..*end
        };
        let runs = IngressRuns {
            mode: self.code.mode,
            context: self.code.context,
            code: &[*first, end],
            pieces: piece_of_its_own.iter(),
            part: Some(part),
            mask: self.mask,
            before: Role::Constant,
            kinds: self.kinds,
            config: self.config,
        };
        let taken = self.sink.runs(self.id, runs) == 1;
        if taken {
            self.shown = Some((piece, last));
        }
        taken
    }

    /// The hart learns what was shown last.
    fn remember(&mut self) {
        if let Some((piece, index)) = self.shown.take() {
            let insn = self.code.insn(piece, index);
            self.hart.before = Some((insn.bits, insn.pc));
            self.hart.keep_level(insn.mode, insn.context, insn.time);
        }
    }
}

/// After the last branch of these instructions, unless that is the end.
fn last_branch(insns: &[Placed], range: Range<usize>) -> Option<usize> {
    let start = range.start;
    let part = insns.get(range)?;
    let last = part.iter().rposition(Placed::is_branch)?;
    (last + 1 < part.len()).then_some(start + last + 1)
}

/// What a sequentially inferable jump is to the E-Trace reference flow.
const fn inferable(itype: Itype) -> Itype {
    match itype {
        Itype::IndirectCall => Itype::DirectCall,
        Itype::IndirectJump => Itype::DirectJump,
        Itype::OtherIndirect => Itype::OtherDirect,
        Itype::Uninferable => Itype::None,
        other => other,
    }
}

/// `ilastsize` of an instruction of so many bytes: log2 of its halfwords,
/// rounded up for the lengths that are no power of two.
const fn last_size(len: u8) -> u8 {
    match len {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests;
