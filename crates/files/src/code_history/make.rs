//! Makes a code history of what was written to memory.
//!
//! Memory is divided where a write begins or ends. Between two such places all bytes have
//! the same past, so each part is either always the same, or has its own list of versions.
//! An instruction belongs to the part that it starts in, and may end in the next one:
//! therefore a write also concerns the halfword before it.

use hartrace_flow::{CodeHistory, CodePiece, Context, HartId, Since, VaryingCode, Version};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of code that are made at most, all versions together.
const MOST: u64 = 1 << 30;

/// Writes that are looked at at most, each as often as there are parts that it concerns.
const MOST_WORK: u64 = 1 << 26;

/// Bytes of an instruction after its first halfword. Longer ones do not exist.
const TAIL: u64 = 2;

/// A part of bytes that may be shared.
#[derive(Clone, Debug)]
pub struct Bytes {
    all: Arc<[u8]>,
    part: Range<usize>,
}

impl Bytes {
    /// A part of bytes, as far as they have it.
    #[must_use]
    pub fn part(all: &Arc<[u8]>, from: u64, len: u64) -> Bytes {
        let bound = |at: u64| usize::try_from(at).map_or(all.len(), |at| at.min(all.len()));
        let part = bound(from)..bound(from.saturating_add(len));
        let all = Arc::clone(all);
        Bytes { all, part }
    }

    /// The bytes.
    #[must_use]
    pub fn get(&self) -> &[u8] {
        self.all.get(self.part.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let part = 0..bytes.len();
        let all = bytes.into();
        Bytes { all, part }
    }
}

/// What happened to some bytes of memory.
#[derive(Clone, Debug)]
pub enum Written {
    /// They are these from now on.
    Bytes(Bytes),
    /// So many of them are no code any more.
    Gone(u64),
    /// So many of them may have been changed: nobody knows when, or into what.
    Unsure(u64),
}

/// What was there before.
#[derive(Clone, Debug)]
pub struct Was {
    /// The bytes.
    pub bytes: Bytes,
    /// If it was something else, the history is wrong; otherwise it is in doubt.
    pub certain: bool,
}

/// A change of memory.
#[derive(Clone, Debug)]
pub struct CodeWrite {
    /// Address of the first byte.
    pub address: u64,
    /// What happened.
    pub what: Written,
    /// What was there before, if that is known.
    pub was: Option<Was>,
    /// As this hart sees it only.
    pub hart: Option<HartId>,
    /// In this context only.
    pub context: Option<Context>,
    /// When.
    pub since: Since,
}

impl CodeWrite {
    /// Code that is there from the start, for everyone.
    #[must_use]
    pub fn constant(address: u64, bytes: Bytes) -> CodeWrite {
        CodeWrite {
            address,
            what: Written::Bytes(bytes),
            was: None,
            hart: None,
            context: None,
            since: Since::Start,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match &self.what {
            Written::Bytes(bytes) => bytes.get().len() as u64,
            Written::Gone(len) | Written::Unsure(len) => *len,
        }
    }

    /// Address after the last byte.
    fn end(&self) -> u64 {
        self.address.saturating_add(self.len())
    }

    /// Address after the last byte that is known of it.
    fn known_end(&self) -> u64 {
        let new = match &self.what {
            Written::Bytes(bytes) => bytes.get().len(),
            Written::Gone(_) | Written::Unsure(_) => 0,
        };
        let old = self.was.as_ref().map_or(0, |was| was.bytes.get().len());
        self.address.saturating_add(new.max(old) as u64)
    }

    /// Whether some bytes of it are known.
    fn is_known(&self) -> bool {
        self.known_end() > self.address
    }

    /// Whether this hart in this context sees it.
    fn concerns(&self, view: View) -> bool {
        (self.hart.is_none() || self.hart == view.0)
            && (self.context.is_none() || self.context == view.1)
    }
}

/// Why there is no history of some writes. The number is that of the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MakeError {
    /// Something else was there before.
    Mismatch {
        /// Which write.
        write: usize,
        /// Address of the first bytes that differ.
        address: u64,
        /// What should have been there.
        expected: Vec<u8>,
        /// What was there; fewer bytes if there was no code.
        found: Vec<u8>,
    },
    /// Some changes of the same code are placed by time and some by messages, so that
    /// their order is not known.
    Mixed {
        /// Which write.
        write: usize,
    },
    /// All versions together are more than any code.
    TooMuch,
}

impl fmt::Display for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::Mismatch {
                address,
                expected,
                found,
                ..
            } => {
                write!(f, "the code at {address:#x} was ")?;
                match found.is_empty() {
                    true => f.write_str("not known")?,
                    false => hex(f, found)?,
                }
                f.write_str(", not ")?;
                hex(f, expected)
            }
            MakeError::Mixed { .. } => f.write_str(
                "the same code is changed at a time and after a message: their order is not known",
            ),
            MakeError::TooMuch => write!(
                f,
                "there are more than {} MiB of code, all versions together",
                MOST >> 20
            ),
        }
    }
}

impl std::error::Error for MakeError {}

fn hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    const SHOWN: usize = 16;
    for byte in bytes.iter().take(SHOWN) {
        write!(f, "{byte:02x}")?;
    }
    f.write_str(if bytes.len() > SHOWN { "..." } else { "" })
}

/// A hart and a context, or any.
type View = (Option<HartId>, Option<Context>);

/// Makes the history of these writes; of several at the same moment, the later in the list
/// comes later. Changes by time are known to have happened so exactly: within so many
/// units before and after, the code is in doubt.
///
/// # Errors
///
/// Writes that contradict each other, or are too many.
///
/// ```
/// use hartrace_files::code_history::{CodeWrite, make};
/// use hartrace_flow::Since;
///
/// let code = CodeWrite::constant(0x1000, vec![1, 0, 1, 0, 1, 0].into());
/// let patch = CodeWrite {
///     since: Since::Time(500),
///     ..CodeWrite::constant(0x1002, vec![0x82, 0x80].into())
/// };
/// let history = make(&[code, patch], 0).unwrap();
/// assert_eq!(history.varying[1].address, 0x1002);
/// assert_eq!(history.varying[1].versions[1].since, Since::Time(500));
/// ```
pub fn make(writes: &[CodeWrite], slack: u64) -> Result<CodeHistory, MakeError> {
    make_within(writes, slack, MOST)
}

/// The same with so many bytes of code at most.
fn make_within(writes: &[CodeWrite], slack: u64, most: u64) -> Result<CodeHistory, MakeError> {
    let mut bounds = BTreeSet::new();
    // One of no bytes changes nothing.
    let is_empty = |write: &CodeWrite| write.len() == 0 && !write.is_known();
    for write in writes.iter().filter(|write| !is_empty(write)) {
        let first = write.address & !1;
        let end = write.end().saturating_add(1) & !1;
        let known = write.known_end().saturating_add(1) & !1;
        bounds.extend([first.saturating_sub(TAIL), first, end, known]);
    }
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.retain(|&at| writes.get(at).is_some_and(|write| !is_empty(write)));
    order.sort_by_key(|&at| writes.get(at).map(|write| write.address));
    let mut order = order.into_iter().peekable();
    let mut maker = Maker {
        writes,
        slack,
        most,
        history: CodeHistory::default(),
        size: 0,
    };
    let (mut active, mut work): (Vec<usize>, u64) = (Vec::new(), 0);
    let bounds: Vec<u64> = bounds.into_iter().collect();
    for pair in bounds.windows(2) {
        let &[start, end] = pair else { continue };
        let reach = end.saturating_add(TAIL);
        while let Some(next) =
            order.next_if(|&at| writes.get(at).is_some_and(|write| write.address < reach))
        {
            active.push(next);
        }
        active.retain(|&at| writes.get(at).is_some_and(|write| write.end() > start));
        // By moment, and those of the same moment in the order in which they were given.
        active.sort_unstable_by_key(|&at| (writes.get(at).map(|write| write.since), at));
        work = work.saturating_add(1 + active.len() as u64);
        if work > MOST_WORK {
            return Err(MakeError::TooMuch);
        }
        // Where nothing is known there is no code, however large the part is.
        let known = |at: &usize| {
            let write = writes.get(*at);
            write.is_some_and(|write| write.is_known() && write.known_end() > start)
        };
        if active.iter().any(known) {
            maker.part(start..end, &active)?;
        }
    }
    Ok(maker.history)
}

struct Maker<'w> {
    writes: &'w [CodeWrite],
    slack: u64,
    most: u64,
    history: CodeHistory,
    size: u64,
}

/// The code of a part from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    since: Since,
    /// As far as it is known without a hole.
    bytes: Vec<u8>,
    doubtful: bool,
}

impl State {
    /// Whether only the moment is another.
    fn is_like(&self, other: &State) -> bool {
        (&self.bytes, self.doubtful) == (&other.bytes, other.doubtful)
    }
}

impl Maker<'_> {
    /// Adds the code of a part of memory, which these writes concern.
    fn part(&mut self, part: Range<u64>, active: &[usize]) -> Result<(), MakeError> {
        let writes = || active.iter().filter_map(|&at| self.writes.get(at));
        let harts: BTreeSet<Option<HartId>> = writes().map(|write| write.hart).collect();
        let contexts: BTreeSet<Option<Context>> = writes().map(|write| write.context).collect();
        // Those of one come before those of all.
        let harts = harts.iter().rev().copied().chain([None]);
        let mut views: Vec<View> = harts
            .flat_map(|hart| contexts.iter().rev().map(move |context| (hart, *context)))
            .collect();
        views.extend(views.clone().iter().map(|view| (view.0, None)));
        views.sort_by_key(|view| (view.0.is_none(), view.1.is_none(), *view));
        views.dedup();
        let mut code = VaryingCode {
            address: part.start,
            len: part.end - part.start,
            contents: Vec::new(),
            versions: Vec::new(),
        };
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        for (hart, context) in views {
            for state in self.states(&part, active, (hart, context))? {
                let content = match known.get(&state.bytes) {
                    Some(content) => *content,
                    None => {
                        self.size = self.size.saturating_add(state.bytes.len() as u64);
                        if self.size > self.most {
                            return Err(MakeError::TooMuch);
                        }
                        known.insert(state.bytes.clone(), code.contents.len());
                        code.contents.push(state.bytes);
                        code.contents.len() - 1
                    }
                };
                code.versions.push(Version {
                    hart,
                    context,
                    since: state.since,
                    content,
                    doubtful: state.doubtful,
                });
            }
        }
        self.add(code);
        Ok(())
    }

    /// What one hart and context sees there, one after the other.
    fn states(
        &self,
        part: &Range<u64>,
        active: &[usize],
        view: View,
    ) -> Result<Vec<State>, MakeError> {
        let mut memory = Memory::new(part);
        let mut states: Vec<State> = Vec::new();
        let (mut by_time, mut by_message, mut size) = (false, false, 0u64);
        for &at in active {
            let Some(write) = self.writes.get(at).filter(|write| write.concerns(view)) else {
                continue;
            };
            by_time |= matches!(write.since, Since::Time(_));
            by_message |= matches!(write.since, Since::Sync { .. });
            if by_time && by_message {
                return Err(MakeError::Mixed { write: at });
            }
            if let Some(was) = &write.was {
                let found = memory.compare(write.address, was.bytes.get());
                if let (Some((address, found)), true) = (found, was.certain) {
                    let skip = usize::try_from(address - write.address).unwrap_or(usize::MAX);
                    let expected = was.bytes.get().get(skip..).unwrap_or_default();
                    return Err(MakeError::Mismatch {
                        write: at,
                        address,
                        expected: expected.to_vec(),
                        found,
                    });
                }
                if memory.compare(write.address, was.bytes.get()).is_some() {
                    // Something changed it before, at a time that is not known.
                    memory.put(write.address, was.bytes.get());
                    let since = states.last().map_or(Since::Start, |state| state.since);
                    states.pop();
                    states.push(memory.state(since, true));
                }
            }
            match &write.what {
                Written::Bytes(bytes) => memory.put(write.address, bytes.get()),
                Written::Gone(len) => memory.remove(write.address, *len),
                Written::Unsure(_) => memory.doubtful |= true,
            }
            if states.last().is_some_and(|last| last.since == write.since) {
                states.pop();
            }
            let state = memory.state(write.since, memory.doubtful);
            if states.last().is_some_and(|last| last.is_like(&state)) {
                continue;
            }
            size = size.saturating_add(state.bytes.len() as u64);
            if size > self.most {
                return Err(MakeError::TooMuch);
            }
            states.push(state);
        }
        let mut states = slackened(states, self.slack);
        states.dedup_by(|next, last| next.is_like(last));
        Ok(states)
    }

    /// Adds a part to the history: as constant code, if everyone always sees the same.
    fn add(&mut self, code: VaryingCode) {
        let everyones = |version: &Version| {
            let from_start = version.since == Since::Start && !version.doubtful;
            version.content == 0 && from_start
        };
        let anyones = |version: &Version| version.hart.is_none() && version.context.is_none();
        let constant = code.versions.iter().all(everyones) && code.versions.iter().any(anyones);
        match code.contents.first() {
            Some(bytes) if constant => self.piece(code.address, bytes),
            _ if code.contents.iter().all(Vec::is_empty) => {}
            _ => self.varying(code),
        }
    }

    /// Adds code that changes. Where it does so after a number of halfwords, each
    /// instruction is a place of its own: between two of them the code may change.
    fn varying(&mut self, code: VaryingCode) {
        let exact = |version: &Version| matches!(version.since, Since::Sync { .. });
        if !code.versions.iter().any(exact) {
            self.history.varying.push(code);
            return;
        }
        for at in (0..code.len).step_by(2) {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let part = |bytes: &Vec<u8>| {
                let rest = bytes.get(from..).unwrap_or_default();
                rest.get(..4).unwrap_or(rest).to_vec()
            };
            self.history.varying.push(VaryingCode {
                address: code.address + at,
                len: 2,
                contents: code.contents.iter().map(part).collect(),
                versions: code.versions.clone(),
            });
        }
    }

    /// Adds constant code, which may overlap the last of it.
    fn piece(&mut self, address: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(last) = self.history.pieces.last_mut() {
            let at = address.wrapping_sub(last.address);
            if let Ok(at) = usize::try_from(at)
                && at <= last.bytes.len()
            {
                last.bytes.truncate(at);
                last.bytes.extend_from_slice(bytes);
                return;
            }
        }
        let bytes = bytes.to_vec();
        self.history.pieces.push(CodePiece { address, bytes });
    }
}

/// The same where times are known within so many units.
fn slackened(states: Vec<State>, slack: u64) -> Vec<State> {
    let time = |state: &State| match state.since {
        Since::Time(time) => Some(time),
        _ => None,
    };
    let times: Vec<u64> = states.iter().filter_map(time).collect();
    if slack == 0 || times.is_empty() {
        return states;
    }
    let from = |time: &u64| time.saturating_sub(slack);
    let to = |time: &u64| time.saturating_add(slack);
    let moments: BTreeSet<u64> = times
        .iter()
        .flat_map(|time| [from(time), *time, to(time)])
        .collect();
    let first = states.len() - times.len();
    let mut all: Vec<State> = states.iter().take(first).cloned().collect();
    for moment in moments {
        let past = times.partition_point(|time| *time <= moment);
        let now = (first + past).checked_sub(1).and_then(|at| states.get(at));
        let last = past.checked_sub(1).and_then(|at| times.get(at));
        let near = last.is_some_and(|time| moment < to(time))
            || times.get(past).is_some_and(|time| from(time) <= moment);
        all.push(State {
            since: Since::Time(moment),
            bytes: now.map_or(Vec::new(), |state| state.bytes.clone()),
            doubtful: near || now.is_some_and(|state| state.doubtful),
        });
    }
    all
}

/// The bytes of a part, and those that its last instruction may need.
struct Memory {
    start: u64,
    bytes: Vec<u8>,
    known: Vec<bool>,
    doubtful: bool,
}

impl Memory {
    fn new(part: &Range<u64>) -> Memory {
        let len = (part.end - part.start).saturating_add(TAIL);
        let len = usize::try_from(len.min(MOST)).unwrap_or(0);
        Memory {
            start: part.start,
            bytes: vec![0; len],
            known: vec![false; len],
            doubtful: false,
        }
    }

    /// Where bytes at an address are in this part, and where in the bytes that is.
    fn overlap(&self, address: u64, len: u64) -> Option<(Range<usize>, usize)> {
        let from = address.max(self.start);
        let end = address.saturating_add(len);
        let end = end.min(self.start.saturating_add(self.bytes.len() as u64));
        let count = usize::try_from(end.checked_sub(from)?).ok()?;
        let at = usize::try_from(from - self.start).ok()?;
        let skip = usize::try_from(from - address).ok()?;
        (count > 0).then_some((at..at + count, skip))
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let Some((range, skip)) = self.overlap(address, bytes.len() as u64) else {
            return;
        };
        let part = bytes.get(skip..skip + range.len());
        if let (Some(to), Some(part)) = (self.bytes.get_mut(range.clone()), part) {
            to.copy_from_slice(part);
        }
        // What is written at a known moment is certain.
        self.doubtful &= range.start != 0;
        if let Some(known) = self.known.get_mut(range) {
            known.fill(true);
        }
    }

    fn remove(&mut self, address: u64, len: u64) {
        if let Some((range, _)) = self.overlap(address, len)
            && let Some(known) = self.known.get_mut(range)
        {
            known.fill(false);
        }
    }

    /// The first address where something else is than these bytes, and what.
    fn compare(&self, address: u64, bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (range, skip) = self.overlap(address, bytes.len() as u64)?;
        let part = bytes.get(skip..skip + range.len())?;
        let here = self.bytes.get(range.clone())?;
        let known = self.known.get(range)?;
        let differs = part.iter().zip(here).zip(known);
        let first = differs
            .clone()
            .position(|((a, b), known)| a != b || !known)?;
        let found = here.iter().zip(known).skip(first);
        let found = found.take_while(|(_, known)| **known);
        let found = found.map(|(byte, _)| *byte).collect();
        Some((address + (skip + first) as u64, found))
    }

    fn state(&self, since: Since, doubtful: bool) -> State {
        let known = self.known.iter().take_while(|known| **known).count();
        State {
            since,
            bytes: self.bytes.get(..known).unwrap_or_default().to_vec(),
            doubtful: doubtful && known > 0,
        }
    }
}

#[cfg(test)]
mod tests;
