//! Counters for the contents of a trace.

use alloc::collections::BTreeMap;

use crate::explain::Piece;
use crate::fault::Fault;
use crate::group::GroupKind;
use crate::item::Item;
use crate::register::Register;

/// Items or groups, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub number: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.number += 1;
        self.bytes += bytes;
    }
}

/// The kinds of items, in the order of opcodes and identifiers.
const KINDS: [&str; 21] = [
    "begin group",
    "end group",
    "increment pc",
    "integer register",
    "floating-point register",
    "CSR",
    "register, offset",
    "register, mask",
    "privilege mode",
    "physical address",
    "effective address",
    "store data",
    "mtime",
    "pc physical address",
    "pc",
    "memory request",
    "memory response",
    "hart reset",
    "state initialization",
    "instruction, 16 bits",
    "instruction, 32 bits",
];

const fn kind_of(item: &Item) -> usize {
    match item {
        Item::BeginGroup => 0,
        Item::EndGroup => 1,
        Item::IncrementPc => 2,
        Item::Full(register, _) => match class(*register) {
            Class::Integer => 3,
            Class::Float => 4,
            Class::Csr => 5,
        },
        Item::Offset(..) => 6,
        Item::Mask(..) => 7,
        Item::Mode(_) => 8,
        Item::PhysicalAddress(_) => 9,
        Item::EffectiveAddress(_) => 10,
        Item::StoreData(..) => 11,
        Item::Mtime(_) => 12,
        Item::PcPhysical(_) => 13,
        Item::Pc(_) | Item::TwoPcs(..) => 14,
        Item::Request(_) => 15,
        Item::Response(_) => 16,
        Item::Reset => 17,
        Item::StateInit => 18,
        Item::Insn16(_) => 19,
        Item::Insn32(_) => 20,
    }
}

enum Class {
    Integer,
    Float,
    Csr,
}

const fn class(register: Register) -> Class {
    if register.is_float() {
        Class::Float
    } else if register.number() < 0x1000 {
        Class::Csr
    } else {
        Class::Integer
    }
}

/// Counts items, groups and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    items: [Count; KINDS.len()],
    groups: [Count; GroupKind::ALL.len()],
    faults: BTreeMap<&'static str, (Option<Fault>, u64)>,
    /// Bytes that are no items.
    pub bad: u64,
}

impl Tally {
    /// Takes the next piece of the trace.
    pub fn piece(&mut self, piece: &Piece) {
        match *piece {
            Piece::Item(ref item, _, len) => {
                if let Some(count) = self.items.get_mut(kind_of(item)) {
                    count.add(len as u64);
                }
            }
            Piece::Group(kind, _, _, len) => {
                if let Some(count) = self.groups.get_mut(kind as usize) {
                    count.add(len);
                }
            }
            Piece::Problem(problem) => {
                let entry = self.faults.entry(problem.fault.code()).or_default();
                entry.0 = Some(problem.fault);
                entry.1 += 1;
            }
            Piece::Bad(_, len) => self.bad += len,
        }
    }

    /// Items by kind, those there are.
    pub fn items(&self) -> impl Iterator<Item = (&'static str, Count)> + '_ {
        let all = KINDS.iter().zip(&self.items);
        all.filter(|(_, count)| count.number > 0)
            .map(|(name, count)| (*name, *count))
    }

    /// Groups by kind, those there are.
    pub fn groups(&self) -> impl Iterator<Item = (GroupKind, Count)> + '_ {
        let all = GroupKind::ALL.iter().zip(&self.groups);
        all.filter(|(_, count)| count.number > 0)
            .map(|(kind, count)| (*kind, *count))
    }

    /// What is wrong, and how often.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        let known = self.faults.values();
        known.filter_map(|&(fault, count)| Some((fault?, count)))
    }

    /// Groups of this kind.
    #[must_use]
    pub fn group(&self, kind: GroupKind) -> Count {
        self.groups.get(kind as usize).copied().unwrap_or_default()
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bad + self.items.iter().map(|count| count.bytes).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Pieces;
    use crate::testing::{any_config, items, mixture};
    use crate::{Config, Flen};
    use alloc::vec::Vec;
    use hartrace_testkit::Random;

    fn count(bytes: &[u8], config: &Config) -> Tally {
        let mut tally = Tally::default();
        Pieces::new(bytes, config).for_each(|piece| tally.piece(&piece));
        tally
    }

    #[test]
    fn every_byte_is_counted_once() {
        let mut random = Random::new(7);
        for _ in 0..300 {
            let config = any_config(&mut random);
            let mut bytes = mixture(&config, &mut random);
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
            assert_eq!(count(&bytes, &config).bytes(), bytes.len() as u64);
        }
    }

    /// Every kind of item has a name of its own.
    #[test]
    fn kinds_have_names() {
        let config = Config {
            flen: Flen::F64,
            ..Config::default()
        };
        let mut seen: Vec<_> = items(&config).iter().map(kind_of).collect();
        seen.sort_unstable();
        seen.dedup();
        let names: Vec<_> = seen.iter().map(|at| KINDS[*at]).collect();
        assert_eq!(seen, (0..KINDS.len()).collect::<Vec<_>>());
        assert!(names.iter().all(|name| !name.is_empty()));
    }

    #[test]
    fn groups_are_counted_by_kind() {
        let config = Config::default();
        let csr = |number, value| Item::Full(Register::csr(number), value);
        let group = |items: &[Item]| {
            let mut bytes = Vec::new();
            let all = [&[Item::BeginGroup], items, &[Item::EndGroup]].concat();
            all.iter().for_each(|item| item.write(&config, &mut bytes));
            bytes
        };
        let mut bytes = Vec::new();
        Item::Mtime(3).write(&config, &mut bytes);
        for items in [
            &[Item::StateInit, Item::Pc(0)][..],
            &[Item::IncrementPc, Item::Insn16(1)],
            &[Item::IncrementPc, Item::Insn16(1)],
            &[
                Item::Pc(0),
                Item::Insn32(0x73),
                csr(0x342, 8),
                csr(0x341, 0),
            ],
            &[Item::Pc(0), csr(0x342, 1 << 63 | 7), csr(0x341, 0)],
            &[Item::Pc(0), csr(0x342, 12), csr(0x341, 0)],
            &[Item::Reset],
            &[Item::Mtime(5)],
            &[Item::IncrementPc],
        ] {
            bytes.extend(group(items));
        }
        let tally = count(&bytes, &config);
        let number = |kind| tally.group(kind).number;
        assert_eq!(number(GroupKind::Instruction), 2);
        assert_eq!(number(GroupKind::Exception), 2);
        assert_eq!(number(GroupKind::Interrupt), 1);
        assert_eq!(number(GroupKind::Init), 1);
        assert_eq!(number(GroupKind::Reset), 1);
        assert_eq!(number(GroupKind::State), 1);
        assert_eq!(number(GroupKind::Outside), 1);
        assert_eq!(tally.groups().count(), 7);
        let faults: Vec<_> = tally.faults().collect();
        assert_eq!(faults, [(Fault::IncrementAlone, 1)]);
        assert_eq!(tally.bytes(), bytes.len() as u64);
        let nops = tally.items().find(|(name, _)| name.ends_with("16 bits"));
        assert_eq!(
            nops.map(|(_, count)| count),
            Some(Count {
                number: 2,
                bytes: 6
            })
        );
    }
}
