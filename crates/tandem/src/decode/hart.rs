//! The state of decoding.

use alloc::vec::Vec;

use hartrace_flow::{
    Access, AccessKind, Cause, Consumer, DataAccess, Event, Exit, Gap, HartId, Mark, Mode,
    Ownership, Reason, Run, Trap,
};
use hartrace_isa::{Ext, Flow, Isa, Xlen};

use super::access::{What, shape};
use super::values::Values;
use crate::config::{Config, Flen, StoreData};
use crate::fault::Fault;
use crate::follow::{Follower, Moves};
use crate::group::{Data, Group, Insn, NewPc, TrapCsr};
use crate::read::Problem;

/// Straight code is cut at every multiple of this many bytes, as other
/// decoders do it.
const PAGE: u64 = 4096;

/// Where a hart is, and what was reported about it.
#[derive(Clone, Debug)]
pub(super) struct Hart {
    id: HartId,
    isa: Isa,
    xlen: Xlen,
    store_data: StoreData,
    /// Groups do not record their instruction.
    blind: bool,
    /// The address of the next instruction.
    place: Follower,
    run: Open,
    /// Loads and stores of the run.
    accesses: Vec<DataAccess>,
    values: Values,
    mode: Told<Mode>,
    time: Told<u64>,
    lost: Option<Lost>,
    /// Offset of the group at hand.
    at: u64,
    /// Offset after the last usable group.
    good: u64,
    pause: bool,
}

/// A run that may grow.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    start: u64,
    end: u64,
    insns: u32,
    last: u8,
}

/// The current value, and the one reported last.
#[derive(Clone, Copy, Debug)]
struct Told<T> {
    now: Option<T>,
    told: Option<T>,
}

impl<T: Copy + PartialEq> Told<T> {
    const NOTHING: Told<T> = Told {
        now: None,
        told: None,
    };

    /// What has to be reported.
    #[inline]
    fn news(&mut self) -> Option<T> {
        if self.now == self.told {
            return None;
        }
        self.told = self.now;
        self.now
    }
}

/// Something is missing.
#[derive(Clone, Copy, Debug)]
struct Lost {
    at: u64,
    reason: Reason,
    /// Offset of the first byte that is of no use.
    from: u64,
}

impl Hart {
    pub(super) fn new(id: HartId, config: &Config) -> Hart {
        let isa = match config.xlen {
            Xlen::Rv32 => Isa::RV32GC,
            Xlen::Rv64 => Isa::RV64GC,
        };
        let isa = match config.flen {
            Flen::F64 => isa,
            Flen::None | Flen::F32 => isa.with(Ext::Zcmp).with(Ext::Zcmt),
        };
        Hart {
            id,
            isa,
            xlen: config.xlen,
            store_data: config.store_data,
            blind: config.absent.insn,
            place: Follower::new(config.xlen),
            run: Open::default(),
            accesses: Vec::new(),
            values: Values::new(config.xlen),
            mode: Told::NOTHING,
            time: Told::NOTHING,
            lost: None,
            at: 0,
            good: 0,
            pause: false,
        }
    }

    pub(super) fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
    }

    #[inline]
    pub(super) fn take_pause(&mut self) -> bool {
        core::mem::take(&mut self.pause)
    }

    fn event<C: Consumer>(&mut self, event: &Event, out: &mut C) {
        self.pause |= out.event(self.id, event).is_break();
    }

    /// A group, and the offset after it.
    #[inline(always)]
    pub(super) fn group<C: Consumer>(&mut self, group: &Group, behind: u64, out: &mut C) {
        self.at = group.at;
        for change in &group.changes {
            self.values.apply(change);
        }
        let plain = !group.outside && !group.reset && group.mode.is_none() && group.mtime.is_none();
        match (group.insn, group.pc, self.place.pc()) {
            // Nearly all of them.
            (Some(insn), Some(NewPc::Increment), Some(pc)) if plain && !transfers(insn.bits) => {
                self.push(pc, insn, out);
                if !group.data.is_empty() {
                    self.accesses(insn, &group.data);
                }
                self.go_on(out);
            }
            _ => self.other(group, out),
        }
        if self.lost.is_none() {
            self.good = behind;
        }
    }

    /// A problem in the trace: the position is unknown until the next full pc.
    #[cold]
    pub(super) fn lose<C: Consumer>(&mut self, problem: &Problem, out: &mut C) {
        self.miss(problem.at, problem.fault.reason(problem.value), out);
    }

    /// Something is missing from here on.
    #[cold]
    fn miss<C: Consumer>(&mut self, at: u64, reason: Reason, out: &mut C) {
        self.stop(out);
        self.place.set(None);
        self.values.forget();
        let from = self.good;
        self.lost.get_or_insert(Lost { at, reason, from });
    }

    /// The stream ends at this offset.
    pub(super) fn finish<C: Consumer>(&mut self, at: u64, out: &mut C) {
        self.stop(out);
        self.at = at;
        self.begin(out);
    }

    /// Something follows that must not be reported before the gap, and
    /// before the circumstances it happens in.
    #[inline]
    fn begin<C: Consumer>(&mut self, out: &mut C) {
        if let Some(lost) = self.lost.take() {
            let gap = Gap {
                at: lost.at,
                reason: lost.reason,
                bytes: self.at.saturating_sub(lost.from),
                unconfirmed: 0,
            };
            // Reported once, even if this group is unusable too.
            self.good = self.at;
            self.event(&Event::Gap(gap), out);
        }
        if let Some(mode) = self.mode.news() {
            let owner = Ownership {
                mode: Some(mode),
                context: None,
            };
            self.event(&Event::Context(owner), out);
        }
        if let Some(time) = self.time.news() {
            self.event(&Event::Time(time), out);
        }
    }

    /// An instruction retired here.
    #[inline(always)]
    fn push<C: Consumer>(&mut self, pc: u64, insn: Insn, out: &mut C) {
        if self.run.insns == 0 {
            self.begin(out);
            self.run.start = pc;
        }
        self.run.insns += 1;
        self.run.last = insn.len;
        self.run.end = pc.wrapping_add(insn.len.into());
    }

    /// The next instruction follows in memory.
    #[inline(always)]
    fn go_on<C: Consumer>(&mut self, out: &mut C) {
        let end = self.run.end;
        self.place.set(Some(self.xlen.wrap(end)));
        if (end ^ end.wrapping_sub(self.run.last.into())) & !(PAGE - 1) != 0 {
            self.stop(out);
        }
    }

    /// The run ends without a jump.
    fn stop<C: Consumer>(&mut self, out: &mut C) {
        self.end_run(Exit::Stop, self.xlen.wrap(self.run.end), out);
    }

    /// Gives the run and its accesses.
    #[inline]
    fn end_run<C: Consumer>(&mut self, exit: Exit, next: u64, out: &mut C) {
        if self.run.insns == 0 {
            return;
        }
        let Open {
            start,
            end,
            insns,
            last,
        } = self.run;
        let run = Run {
            start,
            end,
            next,
            insns,
            exit,
            last,
        };
        self.run.insns = 0;
        let mut pause = out.runs(self.id, &[run]).is_break();
        for access in self.accesses.drain(..) {
            pause |= out.event(self.id, &Event::Access(access)).is_break();
        }
        self.pause |= pause;
    }

    /// Anything but a plain instruction.
    #[inline(never)]
    fn other<C: Consumer>(&mut self, group: &Group, out: &mut C) {
        if group.reset {
            self.stop(out);
            self.begin(out);
            self.event(&Event::Mark(Mark::Reset), out);
            self.place.set(None);
            self.values.forget();
            group.changes.iter().for_each(|c| self.values.apply(c));
        }
        match group.insn {
            Some(insn) if !group.outside => self.insn(insn, group, out),
            None if !group.outside && !group.init && !group.reset => self.no_insn(group, out),
            _ => self.set_pc(group, out),
        }
        // A mode or a time applies after the group.
        if group.mode.is_some_and(|mode| self.mode.now != Some(mode)) || group.mtime.is_some() {
            self.stop(out);
            self.mode.now = group.mode.or(self.mode.now);
            self.time.now = group.mtime.or(self.time.now);
        }
    }

    /// Where a group was, and where it went if it says so. What it says of
    /// the first may contradict what came before it: then something is missing.
    fn moves<C: Consumer>(&mut self, group: &Group, out: &mut C) -> (Option<u64>, Option<u64>) {
        let here = self.place.pc();
        let Moves { from, to } = self.place.moves(group);
        if let Some(from) = from
            && here.is_some_and(|here| here != from)
        {
            self.miss(group.at, Fault::Elsewhere.reason(from), out);
            group.changes.iter().for_each(|c| self.values.apply(c));
        }
        (from, group.pc.and(to))
    }

    /// A group with an instruction that retired or caused an exception.
    fn insn<C: Consumer>(&mut self, insn: Insn, group: &Group, out: &mut C) {
        let (old, new) = self.moves(group, out);
        let flow = Flow::of_retired(insn.bits, self.isa);
        let goes_on = old.map(|old| self.place.after(old, insn.len));
        let sequential = flow.is_sequential() || flow == Flow::Trap;
        // What cannot jump and did not go on has not retired.
        let elsewhere = sequential && old.is_some() && new.is_some_and(|new| goes_on != Some(new));
        if elsewhere || group.traps() {
            return self.trap(group, (old, new), out);
        }
        // Where an instruction was that went on follows from where it went.
        let old = old.or_else(|| match flow.is_sequential() {
            true => Some(self.xlen.wrap(new?.wrapping_sub(insn.len.into()))),
            false => None,
        });
        let Some(pc) = old else {
            self.miss(group.at, Fault::UnknownPc.reason(insn.bits.into()), out);
            self.place.set(new);
            return;
        };
        self.retire(pc, insn, (flow, new), group, out);
    }

    /// An instruction retired here and went there, if that is reported.
    fn retire<C: Consumer>(
        &mut self,
        pc: u64,
        insn: Insn,
        (flow, new): (Flow, Option<u64>),
        group: &Group,
        out: &mut C,
    ) {
        if self.place.pc() != Some(pc) {
            self.stop(out);
        }
        self.push(pc, insn, out);
        self.accesses(insn, &group.data);
        let end = self.xlen.wrap(self.run.end);
        let exit = match flow {
            Flow::Seq | Flow::Const { .. } | Flow::Trap => return self.go_on(out),
            Flow::Branch { .. } if new == Some(end) => Exit::NotTaken,
            Flow::Branch { .. } => Exit::Taken,
            Flow::Jump { link, .. } | Flow::Table { link, .. } => Exit::direct(link),
            Flow::Indirect { link, .. } => Exit::indirect(link),
            Flow::PopReturn => Exit::Return,
            Flow::TrapReturn => Exit::TrapReturn,
        };
        let target = match flow {
            Flow::Jump { .. } => flow.target(pc, self.xlen),
            _ => None,
        };
        let next = new.or(target);
        self.place.set(next);
        match next {
            Some(next) => self.end_run(exit, next, out),
            // Where it went is not reported.
            None => self.stop(out),
        }
    }

    /// A group without an instruction that is not an initial state: an
    /// interrupt, a fetch that failed, or state of its own.
    fn no_insn<C: Consumer>(&mut self, group: &Group, out: &mut C) {
        let (old, Some(new)) = self.moves(group, out) else {
            return;
        };
        let told = group
            .changes
            .iter()
            .any(|c| TrapCsr::of(c.register).is_some());
        if self.blind && !told {
            // An unknown instruction.
            self.miss(group.at, Fault::NoInsn.reason(new), out);
            self.place.set(Some(new));
        } else if told || old != Some(new) {
            self.trap(group, (old, Some(new)), out);
        }
    }

    /// A trap was taken from the first to the second.
    fn trap<C: Consumer>(
        &mut self,
        group: &Group,
        (old, new): (Option<u64>, Option<u64>),
        out: &mut C,
    ) {
        self.stop(out);
        self.begin(out);
        let told = |csr: TrapCsr| {
            let change = group.told(csr)?;
            self.values.get(change.register)
        };
        let interrupt = 1u64 << (self.xlen.bits() - 1);
        let cause = match told(TrapCsr::Cause) {
            Some(cause) if cause & interrupt != 0 => {
                Cause::Interrupt(Some(cause as u32 & !(interrupt as u32)))
            }
            Some(cause) => Cause::Exception(Some(cause as u32)),
            None if group.insn.is_some() => Cause::Exception(None),
            None => Cause::Unknown,
        };
        let trap = Trap {
            epc: old.or_else(|| told(TrapCsr::Epc)),
            handler: new,
            cause,
            tval: told(TrapCsr::Tval),
            pending: None,
        };
        self.event(&Event::Trap(trap), out);
        self.place.set(new);
    }

    /// The pc was set from outside.
    fn set_pc<C: Consumer>(&mut self, group: &Group, out: &mut C) {
        let (here, moves) = (self.place.pc(), self.place.moves(group));
        let (Some(_), Some(new)) = (group.pc, moves.to) else {
            return;
        };
        if here.is_some_and(|pc| pc != new) {
            self.stop(out);
            self.begin(out);
            self.event(&Event::Mark(Mark::Halted), out);
            self.event(&Event::Mark(Mark::Resumed), out);
        }
        self.place.set(Some(new));
    }

    /// Loads and stores of the last instruction of the run.
    fn accesses(&mut self, insn: Insn, data: &[Data]) {
        let shape = shape(insn, self.xlen);
        let index = self.run.insns.wrapping_sub(1);
        for data in data {
            let Some(addr) = data.eaddr.or(data.paddr) else {
                continue;
            };
            let (size, rd) = match (shape, data.store) {
                (Some(shape), _) => (shape.size, shape.rd),
                (None, Some((size, _))) => (size, None),
                (None, None) => (self.xlen.bits().trailing_zeros() as u8 - 3, None),
            };
            let mask = u64::MAX >> (64 - (8u32 << size.min(3)));
            let loaded = rd.and_then(|rd| self.values.get(rd)).map(|v| v & mask);
            let stored = data.store.map(|(_, data)| data);
            let what = match (shape, stored) {
                (Some(shape), _) => shape.what,
                (None, Some(_)) => What::Store,
                (None, None) => What::Load,
            };
            let (kind, data_told, operand) = match (what, self.store_data) {
                (What::Load, _) => (AccessKind::Load, loaded, None),
                (What::Store, _) => (AccessKind::Store, stored, None),
                (What::Conditional, _) if loaded.is_none_or(|failed| failed == 0) => {
                    (AccessKind::Store, stored, None)
                }
                (What::Conditional, _) => (AccessKind::ConditionalStoreFailure, stored, None),
                (What::Atomic(kind), StoreData::Result) => (kind, stored, loaded),
                (What::Atomic(kind), StoreData::Operand) => (kind, None, stored),
            };
            let access = Access {
                kind,
                size,
                addr,
                paddr: data.paddr,
                data: data_told,
                operand,
            };
            self.accesses.push(DataAccess::of(index, access));
        }
    }
}

/// Whether an instruction may go elsewhere than on; true for some that do not.
#[inline(always)]
const fn transfers(bits: u32) -> bool {
    if bits & 3 == 3 {
        // Branches, jumps, system instructions, and unused opcodes.
        return bits & 0x60 == 0x60;
    }
    // A bit for each quadrant and upper three bits: c.jal, c.j, c.beqz and
    // c.bnez, c.jr and its like, cm.popret and its like.
    const MAY: u32 = 1 << 9 | 1 << 13 | 1 << 14 | 1 << 15 | 1 << 20 | 1 << 21;
    MAY >> ((bits & 3) << 3 | (bits >> 13 & 7)) & 1 != 0
}
