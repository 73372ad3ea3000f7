//! Answers queries by reading sections of the trace again.

use alloc::vec::Vec;

use hartrace_flow::Mode;

use super::follow::{self, Touch, Value, Watch};
use super::{History, Interval, Point, lines};
use crate::config::Config;
use crate::follow::Follower;
use crate::group::{Group, GroupKind};
use crate::read::{Next, Reader};
use crate::register::Register;
use crate::shadow::Shadow;

/// The state before an instruction.
#[derive(Clone, Debug)]
pub struct State {
    /// Registers, pc, mode and time; memory is not in it.
    pub shadow: Shadow,
    /// The group of the instruction; `None` at the end of the trace.
    pub next: Option<Group>,
}

/// A byte of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Byte {
    /// It is this.
    Told(u8),
    /// It has not been reported so far.
    Unreported,
    /// It may have changed since it was reported.
    Lost,
}

impl Byte {
    /// Its value, if it is known.
    #[must_use]
    pub const fn value(self) -> Option<u8> {
        match self {
            Byte::Told(value) => Some(value),
            Byte::Unreported | Byte::Lost => None,
        }
    }
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A register; of a view such as `sstatus`, what holds it.
    Register(Register),
    /// Bytes of memory.
    Memory {
        /// The first.
        addr: u64,
        /// How many.
        len: u64,
    },
    /// The privilege mode, where it changes.
    Mode,
    /// The program counter.
    Pc,
}

/// A group that wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Instructions before it: its own number, if it is an instruction.
    pub insn: u64,
    /// Number of the group.
    pub group: u64,
    /// Its byte offset.
    pub offset: u64,
    /// What it reports.
    pub kind: GroupKind,
    /// The pc before it.
    pub pc: Option<u64>,
    /// Its instruction.
    pub bits: Option<u32>,
    /// What it wrote: of memory, the bytes of the store.
    pub target: Target,
    /// What was there, if it was known; for a mode, its code.
    pub old: Option<u64>,
    /// What it is now, if that is known.
    pub new: Option<u64>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was written here.
    Write(Write),
    /// Unknown after a problem, a reset or a store to an unknown address.
    Lost {
        /// Instructions before it.
        insn: u64,
        /// Number of the group.
        group: u64,
        /// Byte offset.
        offset: u64,
    },
    /// It has not been written.
    Never,
}

/// Where to stop.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// Before an instruction.
    Insn(u64),
    /// Before the group at a byte offset, or after it.
    Offset(u64),
}

impl History {
    /// The state before an instruction; `None` if there are not that many.
    /// `trace` is the trace the history is of.
    #[must_use]
    pub fn at(&self, trace: &[u8], insn: u64) -> Option<State> {
        let point = self.points.get(self.in_front(insn)?)?;
        let mut replay = Replay::new(self, point, trace);
        let stopped = replay.run(Until::Insn(insn), &mut ());
        let next = stopped.then(|| replay.reader.group().clone());
        Some(State {
            shadow: replay.shadow,
            next,
        })
    }

    /// Memory before an instruction, byte by byte; `None` if there are not
    /// that many instructions. After the last address comes the first.
    #[must_use]
    pub fn memory(&self, trace: &[u8], insn: u64, addr: u64, len: usize) -> Option<Vec<Byte>> {
        let last = self.in_front(insn)?;
        Some(self.memory_until(trace, last, Until::Insn(insn), addr, len))
    }

    /// Who wrote something last before an instruction; `None` if there are not
    /// that many instructions. Interrupts and what was set from outside in
    /// front of the instruction are before it.
    #[must_use]
    pub fn last_write(&self, trace: &[u8], target: Target, before: u64) -> Option<Origin> {
        let last = self.in_front(before)?;
        if let (Target::Memory { .. }, true) = (target, self.config.absent.stores) {
            return Some(Origin::Never);
        }
        let mut until = Until::Insn(before);
        for point in self.points.get(..=last)?.iter().rev() {
            if may_write(&point.behind, target) {
                let found = Replay::new(self, point, trace).last_write(until, target);
                match found {
                    Some(Origin::Write(write)) => {
                        let write = self.with_old(trace, write);
                        return Some(Origin::Write(write));
                    }
                    Some(origin) => return Some(origin),
                    None => {}
                }
            }
            until = Until::Offset(point.offset);
        }
        Some(Origin::Never)
    }

    /// The last point before an instruction.
    fn in_front(&self, insn: u64) -> Option<usize> {
        if insn > self.instructions {
            return None;
        }
        let behind = self.points.partition_point(|point| point.insn <= insn);
        behind.checked_sub(1)
    }

    /// What a store found.
    fn with_old(&self, trace: &[u8], mut write: Write) -> Write {
        if let Target::Memory { addr, len } = write.target {
            let behind = self.points.partition_point(|p| p.offset <= write.offset);
            let (last, until) = (behind.saturating_sub(1), Until::Offset(write.offset));
            let old = self.memory_until(trace, last, until, addr, len as usize);
            let add = |sum: u64, byte: &Byte| Some(sum << 8 | u64::from(byte.value()?));
            write.old = old.iter().rev().try_fold(0, add);
        }
        write
    }

    /// Memory at a place after a point.
    fn memory_until(
        &self,
        trace: &[u8],
        last: usize,
        until: Until,
        addr: u64,
        len: usize,
    ) -> Vec<Byte> {
        let mut all = Window::new(addr, len);
        if self.config.absent.stores {
            all.lose_memory();
            return all.finish();
        }
        let mut until = until;
        let mut open = Vec::from([(addr, len as u64)]);
        for point in self.points.get(..=last).unwrap_or_default().iter().rev() {
            let Interval {
                memory,
                lost_memory,
                ..
            } = &point.behind;
            let touches = |&(addr, len): &(u64, u64)| lines::touches(memory, addr, len);
            if *lost_memory || open.iter().any(touches) {
                let mut window = Window::new(addr, len);
                Replay::new(self, point, trace).run(until, &mut window);
                all.fill_from(&window);
                all.find_open(&mut open);
                if all.lost || open.is_empty() {
                    break;
                }
            }
            until = Until::Offset(point.offset);
        }
        all.finish()
    }
}

/// Whether something may have been written in an interval.
fn may_write(interval: &Interval, target: Target) -> bool {
    match target {
        Target::Register(register) => {
            let mut written = interval.lost_registers;
            Shadow::holders(register, &mut |r| written |= interval.registers.contains(r));
            written
        }
        Target::Memory { addr, len } => {
            interval.lost_memory || lines::touches(&interval.memory, addr, len)
        }
        Target::Mode => interval.mode || interval.lost_registers,
        Target::Pc => true,
    }
}

/// Some bytes of memory, as far as a stretch reports them.
struct Window {
    addr: u64,
    bytes: Vec<Option<Byte>>,
    /// All memory was lost at some place.
    lost: bool,
}

impl Window {
    fn new(addr: u64, len: usize) -> Window {
        Window {
            addr,
            bytes: alloc::vec![None; len],
            lost: false,
        }
    }

    /// What an earlier stretch reports about bytes still unknown.
    fn fill_from(&mut self, earlier: &Window) {
        for (byte, &found) in self.bytes.iter_mut().zip(&earlier.bytes) {
            *byte = byte.or(found);
        }
        self.lost |= earlier.lost;
    }

    /// The ranges that are still unknown, as address and length.
    fn find_open(&self, open: &mut Vec<(u64, u64)>) {
        open.clear();
        let mut addr = self.addr;
        for bytes in self.bytes.chunk_by(|a, b| a.is_none() == b.is_none()) {
            let len = bytes.len() as u64;
            if bytes.first().is_some_and(Option::is_none) {
                open.push((addr, len));
            }
            addr = addr.wrapping_add(len);
        }
    }

    fn finish(self) -> Vec<Byte> {
        let rest = match self.lost {
            true => Byte::Lost,
            false => Byte::Unreported,
        };
        self.bytes.iter().map(|b| b.unwrap_or(rest)).collect()
    }
}

impl Watch for Window {
    #[inline]
    fn register(&mut self, _: Register) {}

    #[inline]
    fn memory(&mut self, touch: Touch) {
        for i in 0..touch.len {
            let at = touch.addr.wrapping_add(i).wrapping_sub(self.addr);
            let slot = usize::try_from(at)
                .ok()
                .and_then(|at| self.bytes.get_mut(at));
            if let Some(slot) = slot {
                *slot = Some(match touch.value {
                    Value::Written(value) | Value::Seen(value) => {
                        Byte::Told((value >> (8 * i)) as u8)
                    }
                    Value::Lost => Byte::Lost,
                });
            }
        }
    }

    fn lose_registers(&mut self) {}

    fn lose_memory(&mut self) {
        self.bytes.fill(None);
        self.lost = true;
    }
}

/// Looks for what writes a target, in one group.
struct Hit {
    target: Target,
    /// The registers that hold it.
    holders: [Option<Register>; 2],
    written: bool,
    /// The store that did it.
    touch: Option<Touch>,
    lost: bool,
}

impl Hit {
    fn new(target: Target) -> Hit {
        let mut holders = [None; 2];
        if let Target::Register(register) = target {
            let mut slots = holders.iter_mut();
            Shadow::holders(register, &mut |holder| {
                if let Some(slot) = slots.next() {
                    *slot = Some(holder);
                }
            });
        }
        Hit {
            target,
            holders,
            written: false,
            touch: None,
            lost: false,
        }
    }

    fn clear(&mut self) {
        (self.written, self.touch, self.lost) = (false, None, false);
    }
}

impl Watch for Hit {
    #[inline]
    fn register(&mut self, register: Register) {
        self.written |= self.holders.contains(&Some(register));
    }

    #[inline]
    fn memory(&mut self, touch: Touch) {
        if let Target::Memory { addr, len } = self.target
            && !matches!(touch.value, Value::Seen(_))
            && (touch.addr.wrapping_sub(addr) < len || addr.wrapping_sub(touch.addr) < touch.len)
        {
            (self.written, self.touch) = (true, Some(touch));
        }
    }

    fn lose_registers(&mut self) {
        self.lost |= matches!(self.target, Target::Register(_) | Target::Mode | Target::Pc);
    }

    fn lose_memory(&mut self) {
        self.lost |= matches!(self.target, Target::Memory { .. });
    }
}

/// Reads on from a point.
struct Replay<'a> {
    config: &'a Config,
    reader: Reader,
    rest: &'a [u8],
    /// The bytes are used up.
    ended: bool,
    shadow: Shadow,
    insns: u64,
}

impl<'a> Replay<'a> {
    fn new(history: &'a History, point: &Point, trace: &'a [u8]) -> Replay<'a> {
        let config = &history.config;
        let start = usize::try_from(point.offset).unwrap_or(usize::MAX);
        let mut shadow = Shadow::new(config);
        for &(register, value) in &point.registers {
            shadow.put(register, value);
        }
        (shadow.pc, shadow.mode, shadow.mtime) = (point.pc, point.mode, point.mtime);
        Replay {
            config,
            reader: Reader::resume(config.clone(), point.offset, point.group),
            rest: trace.get(start..).unwrap_or_default(),
            ended: false,
            shadow,
            insns: point.insn,
        }
    }

    /// What comes next; `None` where it is time to stop. `true` if a group
    /// stands there.
    #[inline]
    fn next(&mut self, until: Until) -> Result<Next, bool> {
        if let Until::Offset(offset) = until
            && self.reader.offset() >= offset
        {
            return Err(false);
        }
        let mut next = Next::More;
        if !self.ended {
            next = self.reader.next(&mut self.rest);
        }
        if next == Next::More {
            self.ended = true;
            next = self.reader.finish();
        }
        match next {
            Next::More => Err(false),
            Next::Group => {
                let group = self.reader.group();
                let stop = match until {
                    Until::Offset(offset) => group.at >= offset,
                    Until::Insn(insn) => {
                        self.insns >= insn && self.shadow.attempts(group, &self.config.absent)
                    }
                };
                if stop { Err(true) } else { Ok(next) }
            }
            _ => Ok(next),
        }
    }

    /// The group at hand, or what is wrong instead.
    #[inline]
    fn apply(&mut self, next: &Next, watch: &mut impl Watch) {
        if *next != Next::Group {
            follow::lose(&mut self.shadow, next, watch);
            return;
        }
        let group = self.reader.group();
        self.insns += u64::from(self.shadow.attempts(group, &self.config.absent));
        follow::apply(&mut self.shadow, self.config, group, watch);
    }

    /// Reads on; whether it stopped before a group.
    fn run(&mut self, until: Until, watch: &mut impl Watch) -> bool {
        loop {
            match self.next(until) {
                Ok(next) => self.apply(&next, watch),
                Err(stopped) => return stopped,
            }
        }
    }

    /// The last write on the way; what a store found is not in it.
    fn last_write(&mut self, until: Until, target: Target) -> Option<Origin> {
        let mut found = None;
        let mut hit = Hit::new(target);
        while let Ok(next) = self.next(until) {
            let (old, pc, insn) = (self.value(target), self.shadow.pc, self.insns);
            hit.clear();
            self.apply(&next, &mut hit);
            let group = self.reader.group();
            if hit.lost {
                let (group, offset) = match next {
                    Next::Problem(problem) => (problem.group, problem.at),
                    _ => (group.number, group.at),
                };
                found = Some(Origin::Lost {
                    insn,
                    group,
                    offset,
                });
            }
            if next != Next::Group {
                continue;
            }
            let new = self.value(target);
            let written = match target {
                Target::Mode => old != new && new.is_some(),
                Target::Pc => group.pc.is_some(),
                _ => hit.written,
            };
            if written {
                let write = Write {
                    insn,
                    group: group.number,
                    offset: group.at,
                    kind: self.kind(group, insn),
                    pc: Follower::at(self.config.xlen, pc).moves(group).from,
                    bits: group.insn.map(|insn| insn.bits),
                    target,
                    old,
                    new,
                };
                found = Some(Origin::Write(match hit.touch {
                    Some(touch) => of_store(write, &touch),
                    None => write,
                }));
            }
        }
        found
    }

    /// What a group reports; an exception by what its cause comes to.
    fn kind(&self, group: &Group, insn: u64) -> GroupKind {
        match group.kind(self.config.xlen) {
            GroupKind::Interrupt if self.insns > insn => GroupKind::Exception,
            kind => kind,
        }
    }

    /// What a target is now; memory is not looked at.
    fn value(&self, target: Target) -> Option<u64> {
        match target {
            Target::Register(register) => self.shadow.get(register),
            Target::Mode => self.shadow.mode.map(|mode: Mode| mode.code().into()),
            Target::Pc => self.shadow.pc,
            Target::Memory { .. } => None,
        }
    }
}

/// The write of a store, which may be a part of what was asked for, or more.
fn of_store(write: Write, touch: &Touch) -> Write {
    let bits = 64 - 8 * touch.len.clamp(1, 8) as u32;
    Write {
        target: Target::Memory {
            addr: touch.addr,
            len: touch.len,
        },
        new: match touch.value {
            Value::Written(value) | Value::Seen(value) => Some(value << bits >> bits),
            Value::Lost => None,
        },
        ..write
    }
}
