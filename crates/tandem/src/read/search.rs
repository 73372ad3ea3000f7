//! What is not read straight from a chunk: items that are cut, and the search
//! for a group behind a problem. The protocol has no marks to look for, only
//! opcodes that make sense one behind the other.

use super::{Next, Reader, State};
use crate::config::Config;
use crate::group::Group;
use crate::item::{Item, MAX_ITEM};

/// Groups that must follow each other before a place counts as found.
pub const CONFIRM: usize = 3;

/// Bytes these may take together.
const WINDOW: usize = 1024;

/// Whether groups start at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
    /// There are not enough bytes to say.
    Open,
}

impl Reader {
    /// Reads on with bytes kept from before, or looks for a group.
    #[cold]
    pub(super) fn next_slowly(&mut self, bytes: &mut &[u8]) -> Next {
        while self.state == State::Lost {
            if self.kept.is_empty() {
                match self.search(bytes, false) {
                    Some(found) => {
                        self.pass(bytes, found);
                        return self.found();
                    }
                    None => {
                        let undecided = undecided(bytes, &self.config);
                        self.at += (bytes.len() - undecided.len()) as u64;
                        self.kept.extend_from_slice(undecided);
                        *bytes = &[];
                        return Next::More;
                    }
                }
            }
            // A little at a time, so that the bytes are soon read in place.
            let (some, rest) = bytes.split_at(bytes.len().min(WINDOW));
            if some.is_empty() {
                return Next::More;
            }
            *bytes = rest;
            self.kept.extend_from_slice(some);
            let kept = core::mem::take(&mut self.kept);
            let found = self.search(&kept, false);
            let rest = match found {
                Some(at) => kept.get(at..).unwrap_or_default(),
                None => undecided(&kept, &self.config),
            };
            self.at += (kept.len() - rest.len()) as u64;
            self.kept.extend_from_slice(rest);
            if found.is_some() {
                return self.found();
            }
        }
        self.read_kept(bytes)
    }

    /// Reads what was kept, completed from the bytes that follow.
    fn read_kept(&mut self, bytes: &mut &[u8]) -> Next {
        let mut kept = core::mem::take(&mut self.kept);
        let mut rest = &kept[..];
        if let Some(next) = self.read(&mut rest) {
            let used = kept.len() - rest.len();
            kept.drain(..used);
            self.kept = kept;
            return next;
        }
        // The start of an item is left.
        let used = kept.len() - rest.len();
        kept.drain(..used);
        let start = kept.len();
        let more = bytes.get(..bytes.len().min(MAX_ITEM)).unwrap_or_default();
        kept.extend_from_slice(more);
        match Item::read(&kept, &self.config, self.request.as_ref()) {
            Ok(None) => {
                self.kept = kept;
                *bytes = &[];
                Next::More
            }
            Ok(Some((_, len))) if len >= start => {
                kept.truncate(len);
                *bytes = bytes.get(len - start..).unwrap_or_default();
                let mut item = &kept[..];
                match self.read(&mut item) {
                    // An item that closes a group is looked at again.
                    Some(next) => {
                        self.kept.extend_from_slice(item);
                        next
                    }
                    None => self.next(bytes),
                }
            }
            // What is wrong is in front of what was added.
            _ => {
                let mut item = &kept[..];
                let next = self.read(&mut item);
                let left = item.len().min(kept.len());
                let added = kept.len() - start;
                *bytes = bytes.get(added..).unwrap_or_default();
                let from = kept.len() - left;
                kept.drain(..from);
                self.kept = kept;
                next.unwrap_or(Next::More)
            }
        }
    }

    /// The end of the trace while looking for a group.
    pub(super) fn finish_search(&mut self) -> Next {
        let kept = core::mem::take(&mut self.kept);
        let found = self.search(&kept, true);
        let at = found.unwrap_or(kept.len());
        self.at += at as u64;
        self.kept
            .extend_from_slice(kept.get(at..).unwrap_or_default());
        self.state = State::Idle;
        match found {
            Some(_) => self.found(),
            None => Next::More,
        }
    }

    fn found(&mut self) -> Next {
        self.state = State::Idle;
        Next::Resumed(self.at - self.lost_at)
    }

    /// The first place where groups start. The place of the problem itself is
    /// not one.
    fn search(&self, bytes: &[u8], at_end: bool) -> Option<usize> {
        let first = usize::from(self.at == self.lost_at);
        let starts = bytes.iter().enumerate().skip(first);
        let mut starts = starts.filter(|(_, byte)| **byte == 1);
        let (at, verdict) = starts.find_map(|(at, _)| {
            let verdict = judge(bytes.get(at..)?, &self.config, at_end);
            (verdict != Verdict::No).then_some((at, verdict))
        })?;
        (verdict == Verdict::Yes).then_some(at)
    }
}

/// The part of the bytes from the first place on that may turn out to be one.
fn undecided<'a>(bytes: &'a [u8], config: &Config) -> &'a [u8] {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == 1);
    let mut rest = starts.filter_map(|(at, _)| bytes.get(at..));
    rest.find(|rest| judge(rest, config, false) == Verdict::Open)
        .unwrap_or_default()
}

/// Whether groups of instructions start here, one behind the other.
fn judge(bytes: &[u8], config: &Config, at_end: bool) -> Verdict {
    let window = bytes.get(..bytes.len().min(WINDOW)).unwrap_or_default();
    let (mut rest, mut group, mut request) = (window, Group::default(), None);
    let (mut open, mut whole) = (false, 0);
    loop {
        let item = match Item::read(rest, config, request.as_ref()) {
            Ok(Some((item, len))) => {
                rest = rest.get(len..).unwrap_or_default();
                item
            }
            Ok(None) if at_end && rest.is_empty() && !open && whole > 0 => return Verdict::Yes,
            // Nothing else in the window, or in the trace.
            Ok(None) if at_end || window.len() == WINDOW => return Verdict::No,
            Ok(None) => return Verdict::Open,
            Err(_) => return Verdict::No,
        };
        request = match item {
            Item::Request(request) => Some(request),
            _ => None,
        };
        match item {
            Item::BeginGroup | Item::EndGroup => {
                if open {
                    if group.insn.is_none() && !group.init || group.check().is_err() {
                        return Verdict::No;
                    }
                    whole += 1;
                    if whole == CONFIRM {
                        return Verdict::Yes;
                    }
                }
                open = item == Item::BeginGroup;
                group.clear(0, 0, false);
            }
            _ if group.add(&item).is_err() => return Verdict::No,
            _ => {}
        }
    }
}
