//! State history: the value of any register and any byte of memory at any
//! instruction of a trace, and the group that wrote it.
//!
//! A [`Recorder`] reads a trace once and keeps *points*: every so many groups
//! it saves the registers, and which registers and memory were written up to
//! the next point. A [`History`] answers queries with the trace at hand: it
//! reads again from the preceding point, or only the sections that wrote what
//! the query asks for. It holds no memory contents and does not grow with the
//! trace: above a limit, every second point is dropped.
//!
//! **Instructions** are numbered from 0 as in the verifier: every group with an
//! instruction counts, retired or trapped, and so does the trap of an
//! instruction that could not be fetched. The state *at* an instruction is the
//! state before it, after any interrupts taken there; the state at the number
//! of instructions is the state at the end.
//!
//! **Memory** is known from the trace: stores of instructions, memory requests
//! that write, and the data of memory responses. A store applies to its
//! physical address; if that is not recorded, to the address of a request in
//! its group; otherwise to its effective address. So a trace with effective
//! addresses only has one memory for all address spaces. Data that an
//! instruction loaded is not taken as memory: it may have come from a device.
//!
//! **Unknown** is what the trace has not reported, and what cannot be trusted:
//! after a problem, everything not reported again ([`Shadow::forget`]),
//! including memory; after a reset, all registers; after a store without any
//! address, all memory. CSRs that change by themselves (counters, `mip`) have
//! the value last reported.

mod follow;
mod index;
mod lines;
mod query;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use hartrace_flow::Mode;

pub use index::IndexError;
pub use query::{Byte, Origin, State, Target, Write};

use self::follow::{Touch, Watch};
use self::lines::{Lines, Range};
use crate::config::Config;
use crate::elements::Registers;
use crate::read::{Next, Reader};
use crate::register::Register;
use crate::shadow::Shadow;

/// Groups between two points, at first.
const EVERY: u64 = 1 << 16;

/// The most points there are.
const POINTS: usize = 4096;

/// Bytes between two points, for each group there may be: long groups are
/// slower to read.
const BYTES: u64 = 64;

/// A place in a trace, between two groups, and what happened from there to the
/// next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    /// Instructions before it.
    insn: u64,
    /// Groups begun before it.
    group: u64,
    /// Byte offset of what comes next.
    offset: u64,
    pc: Option<u64>,
    mode: Option<Mode>,
    mtime: Option<u64>,
    /// Registers that are known.
    registers: Box<[(Register, u64)]>,
    behind: Interval,
}

/// What happened after a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Interval {
    /// Registers that were set or are not known any more.
    registers: Registers,
    /// Memory that was touched, in order.
    memory: Box<[Range]>,
    /// At some place no register was known any more.
    lost_registers: bool,
    /// At some place no memory was known any more.
    lost_memory: bool,
    /// The privilege mode was reported.
    mode: bool,
}

impl Interval {
    /// This one and the one after it.
    fn join(&mut self, next: &Interval) {
        next.registers.iter().for_each(|r| self.registers.insert(r));
        self.memory = lines::union(&self.memory, &next.memory);
        self.lost_registers |= next.lost_registers;
        self.lost_memory |= next.lost_memory;
        self.mode |= next.mode;
    }
}

/// Makes the history of a trace, in one pass.
///
/// ```
/// use hartrace_tandem::history::{Byte, Origin, Recorder, Target};
/// use hartrace_tandem::{Config, Register};
///
/// let mut trace = vec![1, 3, 16, 1, 0, 2]; // c.nop
/// trace.extend([1, 3, 16, 0x15, 0x45, 4, 10, 16, 5, 0, 0, 0, 0, 0, 0, 0, 2]); // c.li a0, 5
/// trace.extend([1, 3, 16, 0x88, 0xc1]); // c.sw a0, 0(a1), to 0x8000
/// trace.extend([7, 3, 0, 0x80, 0, 0, 0, 0, 0, 0, 7, 6, 5, 0, 0, 0, 2]);
///
/// let mut recorder = Recorder::new(Config::default());
/// recorder.feed(&trace);
/// let history = recorder.finish();
/// assert_eq!(history.instructions(), 3);
/// let a0 = Register::x(10);
/// assert_eq!(history.at(&trace, 1).unwrap().shadow.get(a0), None);
/// assert_eq!(history.at(&trace, 2).unwrap().shadow.get(a0), Some(5));
/// assert_eq!(history.memory(&trace, 3, 0x8000, 1).unwrap(), [Byte::Told(5)]);
/// let Some(Origin::Write(write)) = history.last_write(&trace, Target::Register(a0), 3) else {
///     panic!()
/// };
/// assert_eq!((write.insn, write.new), (1, Some(5)));
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    reader: Reader,
    shadow: Shadow,
    history: History,
    /// Groups, problems and the like since the last point.
    since: u64,
    every: u64,
    most: usize,
    seen: Seen,
    lines: Lines,
}

/// What happened since the last point.
type Seen = Interval;

/// What is kept of a trace: see the [module](self).
#[derive(Clone, Debug)]
pub struct History {
    config: Config,
    points: Vec<Point>,
    instructions: u64,
    groups: u64,
    problems: u64,
    /// Bytes of the trace.
    len: u64,
}

/// Recorder of an interval.
struct Noting<'a> {
    seen: &'a mut Seen,
    lines: &'a mut Lines,
}

impl Watch for Noting<'_> {
    #[inline]
    fn register(&mut self, register: Register) {
        self.seen.registers.insert(register);
    }

    #[inline]
    fn memory(&mut self, touch: Touch) {
        self.lines.add(&touch);
    }

    fn lose_registers(&mut self) {
        self.seen.lost_registers = true;
    }

    fn lose_memory(&mut self) {
        self.seen.lost_memory = true;
    }
}

impl Recorder {
    /// At the start of a trace.
    #[must_use]
    pub fn new(config: Config) -> Recorder {
        Recorder::with_points(config, EVERY, POINTS)
    }

    /// The same with points every so many groups, and at most so many of them:
    /// when there are more, every second one is dropped.
    #[must_use]
    pub fn with_points(config: Config, every: u64, most: usize) -> Recorder {
        let shadow = Shadow::new(&config);
        let reader = Reader::new(config.clone());
        let start = point(&reader, &shadow, 0);
        Recorder {
            reader,
            shadow,
            history: History {
                config,
                points: Vec::from([start]),
                instructions: 0,
                groups: 0,
                problems: 0,
                len: 0,
            },
            since: 0,
            every: every.max(1),
            most: most.max(2),
            seen: Seen::default(),
            lines: Lines::new(),
        }
    }

    /// Instructions so far.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.history.instructions
    }

    /// The next bytes of the trace.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.history.len += bytes.len() as u64;
        let mut rest = bytes;
        loop {
            match self.reader.next(&mut rest) {
                Next::More => return,
                next => self.take(next),
            }
        }
    }

    /// The trace has ended.
    #[must_use]
    pub fn finish(mut self) -> History {
        loop {
            match self.reader.finish() {
                Next::More => break,
                next => self.take(next),
            }
        }
        self.close();
        self.history
    }

    #[inline]
    fn take(&mut self, next: Next) {
        let mut noting = Noting {
            seen: &mut self.seen,
            lines: &mut self.lines,
        };
        self.since += 1;
        if next != Next::Group {
            self.history.problems += u64::from(matches!(next, Next::Problem(_)));
            follow::lose(&mut self.shadow, &next, &mut noting);
            return;
        }
        let (group, config) = (self.reader.group(), &self.history.config);
        let attempts = self.shadow.attempts(group, &config.absent);
        noting.seen.mode |= group.mode.is_some();
        follow::apply(&mut self.shadow, config, group, &mut noting);
        self.history.instructions += u64::from(attempts);
        self.history.groups += 1;
        if self.since >= self.every || self.is_far() {
            self.mark();
        }
    }

    /// Whether the last point is many bytes back.
    #[inline]
    fn is_far(&self) -> bool {
        let last = self.history.points.last().map_or(0, |p| p.offset);
        self.reader.offset() - last >= self.every.saturating_mul(BYTES)
    }

    /// A point after the current group.
    #[cold]
    fn mark(&mut self) {
        self.close();
        let points = &mut self.history.points;
        if points.len() >= self.most {
            thin(points);
            self.every = self.every.saturating_mul(2);
        }
        points.push(point(&self.reader, &self.shadow, self.history.instructions));
        self.since = 0;
    }

    /// What happened so far belongs to the last point.
    fn close(&mut self) {
        let mut seen = core::mem::take(&mut self.seen);
        seen.memory = self.lines.take();
        if let Some(last) = self.history.points.last_mut() {
            last.behind = seen;
        }
    }
}

/// A point where a reader is, between two groups.
fn point(reader: &Reader, shadow: &Shadow, insn: u64) -> Point {
    Point {
        insn,
        group: reader.groups(),
        offset: reader.offset(),
        pc: shadow.pc,
        mode: shadow.mode,
        mtime: shadow.mtime,
        registers: shadow.registers().filter(|(r, _)| !r.is_zero()).collect(),
        behind: Interval::default(),
    }
}

/// Drops every second point.
fn thin(points: &mut Vec<Point>) {
    let mut number = 0;
    points.dedup_by(|next, last| {
        number += 1;
        let drop = number % 2 == 1;
        if drop {
            last.behind.join(&next.behind);
        }
        drop
    });
}

impl History {
    /// Instructions in the trace.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Groups in the trace, with what stands outside of them.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.groups
    }

    /// Problems in the trace: after each, values reported before are unknown.
    #[must_use]
    pub fn problems(&self) -> u64 {
        self.problems
    }

    /// What the trace is read by.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }
}
