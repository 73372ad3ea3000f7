//! Input that cannot be read straight from a chunk: items that are cut, and the
//! search for a group after a problem. The protocol has no markers, so the
//! search looks for a plausible sequence of opcodes.

use super::{Next, Reader, State};
use crate::config::Config;
use crate::group::Group;
use crate::item::{Item, MAX_ITEM};

/// Groups that must follow each other before a place counts as found.
pub const CONFIRM: usize = 3;

/// Bytes these may take together.
pub(crate) const WINDOW: usize = 1024;

/// Items that a group has at most which a search takes for one: more than any
/// instruction needs, so that a place is soon judged.
const MOST_ITEMS: u32 = 64;

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
            if bytes.is_empty() {
                return Next::More;
            }
            if self.kept.is_empty() {
                let (at, found) = self.search(bytes, false);
                self.pass(bytes, at);
                if found {
                    return self.found();
                }
                self.kept.extend_from_slice(bytes);
                *bytes = &[];
                return Next::More;
            }
            // A little at a time, so that the bytes are soon read in place.
            let (some, rest) = bytes.split_at(bytes.len().min(WINDOW));
            *bytes = rest;
            let mut kept = core::mem::take(&mut self.kept);
            kept.extend_from_slice(some);
            let (at, found) = self.search(&kept, false);
            self.at += at as u64;
            kept.drain(..at);
            self.kept = kept;
            if found {
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
            // The problem is before the added bytes.
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
        let mut kept = core::mem::take(&mut self.kept);
        let (at, found) = self.search(&kept, true);
        self.at += at as u64;
        kept.drain(..at);
        self.kept = kept;
        self.state = State::Idle;
        match found {
            true => self.found(),
            false => Next::More,
        }
    }

    fn found(&mut self) -> Next {
        self.state = State::Idle;
        Next::Resumed(self.at - self.lost_at)
    }

    /// The first place where groups start, or may turn out to, and which of
    /// the two; everything if there is none. The place of the problem itself
    /// is not one.
    fn search(&mut self, bytes: &[u8], at_end: bool) -> (usize, bool) {
        let first = usize::from(self.at == self.lost_at);
        let starts = bytes.iter().enumerate().skip(first);
        for (at, _) in starts.filter(|(_, byte)| **byte == 1) {
            let rest = bytes.get(at..).unwrap_or_default();
            // The group that was being read is gone.
            match judge(rest, &self.config, &mut self.group, at_end) {
                Verdict::No => {}
                verdict => return (at, verdict == Verdict::Yes),
            }
        }
        (bytes.len(), false)
    }
}

/// Whether groups start here, one after the other: [`CONFIRM`] of instructions
/// or of initial state, and whatever else is between them.
fn judge(bytes: &[u8], config: &Config, group: &mut Group, at_end: bool) -> Verdict {
    let window = bytes.get(..bytes.len().min(WINDOW)).unwrap_or_default();
    let (mut rest, mut request) = (window, None);
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
        if !matches!(item, Item::BeginGroup | Item::EndGroup) {
            if group.items == MOST_ITEMS || group.add(&item).is_err() {
                return Verdict::No;
            }
            continue;
        }
        if open {
            if group.items == 0 || group.check().is_err() {
                return Verdict::No;
            }
            whole += usize::from(group.insn.is_some() || group.init);
            if whole == CONFIRM {
                return Verdict::Yes;
            }
        }
        open = item == Item::BeginGroup;
        group.clear(0, 0, !open);
    }
}
