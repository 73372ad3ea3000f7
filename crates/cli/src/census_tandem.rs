//! What a tandem trace is made of.

use crate::census::{Census, Count, Kind, Source};
use hartrace_capture::trace::GroupPiece;
use hartrace_tandem::{Fault, Group, NewPc};

/// Groups by what they tell.
#[derive(Default)]
pub(crate) struct GroupCount {
    kinds: [Count; NAMES.len()],
    all: Count,
    /// Ends of groups that never began.
    stray: u64,
    stamped: u64,
    faults: Vec<(Fault, Count)>,
    /// Groups with a whole pc, where the last one was, and the longest way
    /// between two.
    syncs: u64,
    first: Option<u64>,
    last: u64,
    longest: u64,
}

const NAMES: [&str; 6] = [
    "instruction",
    "trap",
    "state initialization",
    "reset",
    "other",
    "outside of groups",
];

impl GroupCount {
    pub(crate) fn piece(&mut self, at: u64, bytes: u64, piece: &GroupPiece<'_>) {
        let one = Count { messages: 1, bytes };
        match piece {
            GroupPiece::Stray => self.stray += bytes,
            GroupPiece::Bad(problem) => {
                let known = self.faults.iter_mut().find(|f| f.0 == problem.fault);
                match known {
                    Some((_, count)) => count.add(one),
                    None => self.faults.push((problem.fault, one)),
                }
            }
            GroupPiece::Group(group) => {
                if let Some(kind) = self.kinds.get_mut(kind(group)) {
                    kind.add(one);
                }
                self.all.add(one);
                self.stamped += u64::from(group.mtime.is_some());
                if matches!(group.pc, Some(NewPc::To(_) | NewPc::FromTo(..))) {
                    self.syncs += 1;
                    match self.first {
                        None => self.first = Some(at),
                        Some(_) => self.longest = self.longest.max(at - self.last),
                    }
                    self.last = at;
                }
            }
        }
    }

    pub(crate) fn census(&self) -> Census {
        let kinds = NAMES.iter().zip(self.kinds);
        let kinds = kinds.filter(|(_, count)| count.messages > 0);
        let between = self.syncs.saturating_sub(1);
        let way = self.last - self.first.unwrap_or(self.last);
        let faults = self.faults.iter();
        Census {
            kinds: kinds
                .map(|(name, count)| Kind {
                    tcode: None,
                    name: (*name).to_owned(),
                    count,
                })
                .collect(),
            all: self.all,
            idle: self.stray,
            stamped: self.stamped,
            faults: faults
                .map(|(fault, count)| (fault.code(), fault.text(), *count))
                .collect(),
            sources: vec![Source {
                number: 0,
                all: self.all,
                syncs: self.syncs,
                interval: way.checked_div(between),
                longest: self.longest,
            }],
            bandwidth: None,
            packets: None,
        }
    }
}

/// An index into the names.
fn kind(group: &Group) -> usize {
    let traps = |csr: u16| matches!(csr, 0x042 | 0x142 | 0x242 | 0x342);
    let mut csrs = group.changes.iter().filter_map(|c| c.register.as_csr());
    match group {
        _ if group.outside => 5,
        _ if group.reset => 3,
        _ if group.init => 2,
        _ if group.pc.is_some() && csrs.any(traps) && group.mode.is_some() => 1,
        _ if group.insn.is_some() => 0,
        _ => 4,
    }
}
