//! Reads groups from bytes.

use alloc::vec::Vec;

use crate::config::Config;
use crate::fault::Fault;
use crate::group::Group;
use crate::item::{Item, Request};
use crate::register::Register;

mod brief;
mod quick;
mod search;

pub(crate) use brief::Brief;
pub use search::CONFIRM;
pub(crate) use search::WINDOW;

use quick::Widths;

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Byte offset of the item.
    pub at: u64,
    /// Number of the group it is in, or that would come next.
    pub group: u64,
    /// What it is.
    pub fault: Fault,
    /// The offending value.
    pub value: u64,
}

/// What [`Reader::next`] comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A group is whole: [`Reader::group`].
    Group,
    /// The bytes are used up.
    More,
    /// Something is wrong. The group it is in is not given.
    Problem(Problem),
    /// After a problem in the bytes: a group was found again, this many bytes
    /// after the problem.
    Resumed(u64),
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between groups, with nothing to give.
    Idle,
    /// Between groups, after items outside any group.
    Outside,
    /// In a group.
    Inside,
    /// In a group that is not given because of a problem that left the framing
    /// alone.
    Skipping,
    /// Looking for a group.
    Lost,
}

/// Bytes to groups, in chunks of any size.
///
/// A problem in the bytes ends what can be read until a group is found again:
/// the reader looks for a place from which [`CONFIRM`] groups can be read and
/// goes on there. Whoever wants to stop at the first problem stops asking.
///
/// ```
/// use hartrace_tandem::{Config, NewPc, Next, Reader};
///
/// let mut reader = Reader::new(Config::default());
/// // c.nop at a known place, and the first bytes of the next group.
/// let mut bytes = &[1, 3, 16, 1, 0, 2, 1, 3][..];
/// assert_eq!(reader.next(&mut bytes), Next::Group);
/// assert_eq!(reader.group().pc, Some(NewPc::Increment));
/// assert_eq!(reader.next(&mut bytes), Next::More);
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    config: Config,
    widths: Widths,
    state: State,
    /// The group being read, or just read.
    group: Group,
    /// The next byte's offset.
    at: u64,
    /// Groups begun.
    begun: u64,
    /// The memory request right before the next item.
    request: Option<Request>,
    /// Bytes kept from one chunk to the next: an item that was cut, or what a
    /// search has not decided on.
    kept: Vec<u8>,
    /// Where the bytes were wrong, while looking for a group.
    lost_at: u64,
    /// End group without a begin: ignored (the specification is silent).
    stray_ends: u64,
}

impl Reader {
    /// A reader at the start of a trace.
    #[must_use]
    pub fn new(config: Config) -> Reader {
        Reader {
            widths: Widths::of(&config),
            config,
            state: State::Idle,
            group: Group::default(),
            at: 0,
            begun: 0,
            request: None,
            kept: Vec::new(),
            lost_at: 0,
            stray_ends: 0,
        }
    }

    /// A reader that goes on between two groups: at a byte offset, with the
    /// number of the group that comes next, as [`Reader::offset`] and
    /// [`Reader::groups`] reported them when a group was complete.
    #[must_use]
    pub fn resume(config: Config, offset: u64, group: u64) -> Reader {
        Reader {
            at: offset,
            begun: group,
            ..Reader::new(config)
        }
    }

    /// What the trace is read by.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The group announced by [`Next::Group`].
    #[must_use]
    #[inline]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The byte offset reading has come to.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Groups begun so far.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.begun
    }

    /// How many ends of groups had no beginning.
    #[must_use]
    pub fn stray_ends(&self) -> u64 {
        self.stray_ends
    }

    /// Reads on from `bytes`, which is advanced past what was used.
    #[inline]
    pub fn next(&mut self, bytes: &mut &[u8]) -> Next {
        if self.kept.is_empty() && self.state != State::Lost {
            if self.state == State::Idle && bytes.first() == Some(&1) {
                self.group.clear(self.at, self.begun, false);
                if let Some(len) = quick::read(bytes, &self.widths, &mut self.group) {
                    self.begun += 1;
                    self.pass(bytes, len);
                    return Next::Group;
                }
            }
            return match self.read(bytes) {
                Some(next) => next,
                None => {
                    self.kept.extend_from_slice(bytes);
                    *bytes = &[];
                    Next::More
                }
            };
        }
        self.next_slowly(bytes)
    }

    /// The next group, if it is a brief one and starts the bytes. It is not read by this:
    /// [`Reader::next`] would give it as a group, [`Reader::skip`] passes over it.
    #[inline(always)]
    pub(crate) fn peek(&self, bytes: &[u8]) -> Option<Brief> {
        self.is_idle().then(|| Brief::read(bytes, &self.widths))?
    }

    /// Whether the next group starts with the next bytes.
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Idle && self.kept.is_empty()
    }

    /// Passes over so many groups with so many bytes, which the caller has looked at. The
    /// reader is idle.
    pub(crate) fn skip_many(&mut self, groups: u64, len: usize, bytes: &mut &[u8]) {
        self.begun += groups;
        self.pass(bytes, len);
    }

    /// The CSR that a group writes which was peeked at and starts the bytes.
    pub(crate) fn csr(&self, brief: &Brief, bytes: &[u8]) -> Option<(Register, u64)> {
        brief.csr(bytes, &self.widths)
    }

    /// Passes over a group that was peeked at.
    #[inline(always)]
    pub(crate) fn skip(&mut self, brief: &Brief, bytes: &mut &[u8]) {
        self.begun += 1;
        self.pass(bytes, brief.len);
    }

    /// Bytes are missing here, for this reason and value: a frame of a
    /// container was damaged. What comes next starts with a group.
    pub fn missing(&mut self, fault: Fault, value: u64) -> Problem {
        let problem = self.problem_at(fault, value);
        self.kept.clear();
        self.request = None;
        self.state = State::Idle;
        problem
    }

    /// The trace has ended: gives what is left, and in the end
    /// [`Next::More`].
    pub fn finish(&mut self) -> Next {
        if self.state == State::Lost {
            return self.finish_search();
        }
        if !self.kept.is_empty() {
            let kept = core::mem::take(&mut self.kept);
            let mut rest = &kept[..];
            let next = self.read(&mut rest);
            if let Some(next) = next {
                self.kept.extend_from_slice(rest);
                return next;
            }
            if !rest.is_empty() {
                let problem = self.problem_at(Fault::Truncated, rest.len() as u64);
                self.at += rest.len() as u64;
                self.state = State::Idle;
                return Next::Problem(problem);
            }
        }
        match self.state {
            State::Outside => self.whole(),
            State::Inside => {
                let problem = self.problem_at(Fault::OpenGroup, self.group.at);
                self.state = State::Idle;
                Next::Problem(problem)
            }
            _ => {
                self.state = State::Idle;
                Next::More
            }
        }
    }

    /// Reads items until there is something to report; `None` when the bytes end
    /// first, with the start of an item left in them.
    fn read(&mut self, bytes: &mut &[u8]) -> Option<Next> {
        loop {
            match Item::read(bytes, &self.config, self.request.as_ref()) {
                Ok(Some((Item::BeginGroup, _))) => {
                    self.request = None;
                    if matches!(self.state, State::Inside | State::Outside) {
                        // The byte is looked at again, for the next group.
                        return Some(self.whole());
                    }
                    self.state = State::Inside;
                    self.group.clear(self.at, self.begun, false);
                    self.begun += 1;
                    self.pass(bytes, 1);
                }
                Ok(Some((Item::EndGroup, _))) => {
                    self.request = None;
                    self.pass(bytes, 1);
                    match self.state {
                        State::Inside => return Some(self.whole()),
                        State::Skipping => self.state = State::Idle,
                        _ => self.stray_ends += 1,
                    }
                }
                Ok(Some((item, len))) => {
                    self.request = match item {
                        Item::Request(request) => Some(request),
                        _ => None,
                    };
                    if self.state != State::Inside && !self.open_outside() {
                        // The rest of a group that is not given.
                        self.pass(bytes, len);
                        continue;
                    }
                    if self.group.items >= self.config.max_items {
                        let items = self.group.items.into();
                        return Some(self.lose(Fault::LongGroup, items));
                    }
                    let added = self.group.add(&item);
                    if let Err((fault, value)) = added {
                        return Some(self.refuse(fault, value, bytes, len));
                    }
                    self.pass(bytes, len);
                }
                Ok(None) => return None,
                Err((fault, value)) => return Some(self.lose(fault, value)),
            }
        }
    }

    #[inline(always)]
    fn pass(&mut self, bytes: &mut &[u8], len: usize) {
        self.at += len as u64;
        *bytes = bytes.get(len..).unwrap_or_default();
    }

    /// An item outside of groups: whether it is of use.
    #[cold]
    fn open_outside(&mut self) -> bool {
        if self.state == State::Idle {
            self.group.clear(self.at, self.begun, true);
            self.state = State::Outside;
        }
        self.state == State::Outside
    }

    /// The item at hand makes its group ambiguous. What stands outside of
    /// groups goes on without it.
    #[cold]
    fn refuse(&mut self, fault: Fault, value: u64, bytes: &mut &[u8], len: usize) -> Next {
        let problem = self.problem_at(fault, value);
        if self.state == State::Inside {
            self.state = State::Skipping;
        }
        self.pass(bytes, len);
        Next::Problem(problem)
    }

    /// The open group is whole.
    #[inline]
    fn whole(&mut self) -> Next {
        self.state = State::Idle;
        match self.group.check() {
            Ok(()) => Next::Group,
            Err((fault, value)) => Next::Problem(Problem {
                at: self.group.at,
                group: self.group.number,
                fault,
                value,
            }),
        }
    }

    fn problem_at(&self, fault: Fault, value: u64) -> Problem {
        let open = matches!(self.state, State::Inside | State::Skipping);
        Problem {
            at: self.at,
            group: self.begun - u64::from(open),
            fault,
            value,
        }
    }

    /// The bytes at hand are no item: a group has to be found.
    #[cold]
    fn lose(&mut self, fault: Fault, value: u64) -> Next {
        let problem = self.problem_at(fault, value);
        self.state = State::Lost;
        self.request = None;
        self.lost_at = self.at;
        Next::Problem(problem)
    }
}
