//! Counts for AutoFDO.

use super::Sample;
use crate::segments::Segments;
use hartrace_flow::Transfer;
use hartrace_isa::Itype;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

/// A longer way between two transfers is none: something is missing there.
const LONGEST: u64 = 1 << 20;

/// The text that AutoFDO reads with `--profiler=text`: ranges that were run
/// through, addresses where samples were taken, and transfers, each with a
/// count. Addresses are those in the file of the program; what lies outside of
/// it is left out.
///
/// A range reaches from the target of a transfer to the source of the next, so
/// the samples must hold everything that was taken. Branches that were not
/// taken do no harm. The instruction that an interrupt was taken in front of
/// has not run, and a trap is no call: its range ends before that instruction,
/// and traps and returns from them are not among the transfers.
#[derive(Debug, Default)]
pub struct AutoFdo {
    segments: Segments,
    ranges: HashMap<(u64, u64), u64>,
    addresses: HashMap<u64, u64>,
    branches: HashMap<(u64, u64), u64>,
    bogus: u64,
}

impl AutoFdo {
    /// No counts yet, of a program in these segments.
    #[must_use]
    pub fn new(segments: Segments) -> AutoFdo {
        AutoFdo {
            segments,
            ..AutoFdo::default()
        }
    }

    /// Counts a sample.
    pub fn add(&mut self, sample: &Sample<'_>) {
        if let Some(at) = sample.pc.and_then(|pc| self.segments.offset(pc)) {
            *self.addresses.entry(at).or_default() += 1;
        }
        let mut later: Option<&Transfer> = None;
        for t in sample.taken() {
            let to = self.segments.offset(t.target);
            // What goes elsewhere is not of this file.
            let sound = match (to, later) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(begin), Some(later)) => self.range(begin, later),
            };
            if sound {
                self.branch(t, to);
            }
            later = Some(t);
        }
    }

    /// From a target to the transfer after it; whether that can be.
    fn range(&mut self, begin: u64, later: &Transfer) -> bool {
        if later.source == 0 {
            // It came from a mode that is not recorded: the end is not known.
            return true;
        }
        let end = self.segments.offset(later.source);
        let Some(end) = end.filter(|end| *end >= begin && end - begin <= LONGEST) else {
            self.bogus += 1;
            return false;
        };
        let end = match later.kind {
            Itype::Interrupt if end == begin => return true,
            Itype::Interrupt => end - 1,
            _ => end,
        };
        *self.ranges.entry((begin, end)).or_default() += 1;
        true
    }

    fn branch(&mut self, t: &Transfer, to: Option<u64>) {
        if t.kind.is_trap() || t.kind == Itype::TrapReturn {
            return;
        }
        if let (Some(from), Some(to)) = (self.segments.offset(t.source), to) {
            *self.branches.entry((from, to)).or_default() += 1;
        }
    }

    /// Ways between two transfers that cannot be: backwards, or too long. They
    /// are not among the counts.
    #[must_use]
    pub const fn bogus(&self) -> u64 {
        self.bogus
    }

    /// Writes the counts, by address.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let ranges = sorted(&self.ranges);
        writeln!(out, "{}", ranges.len())?;
        for ((begin, end), count) in ranges {
            writeln!(out, "{begin:x}-{end:x}:{count}")?;
        }
        let addresses = sorted(&self.addresses);
        writeln!(out, "{}", addresses.len())?;
        for (address, count) in addresses {
            writeln!(out, "{address:x}:{count}")?;
        }
        let branches = sorted(&self.branches);
        writeln!(out, "{}", branches.len())?;
        for ((from, to), count) in branches {
            writeln!(out, "{from:x}->{to:x}:{count}")?;
        }
        Ok(())
    }
}

fn sorted<K: Copy + Ord + Hash>(counts: &HashMap<K, u64>) -> Vec<(K, u64)> {
    let mut list: Vec<(K, u64)> = counts.iter().map(|(key, count)| (*key, *count)).collect();
    list.sort_unstable();
    list
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::segments;

    /// Code of 4 MiB at 0x8000_0000, in the file at 0x1000.
    fn counts(samples: &[(u64, &[Transfer])]) -> (String, u64) {
        let mut fdo = AutoFdo::new(segments::testing(&[(0x8000_0000, 0x1000, 4 << 20)]));
        for (pc, transfers) in samples {
            fdo.add(&Sample {
                pc: Some(*pc),
                transfers,
                cut: false,
            });
        }
        let mut out = Vec::new();
        fdo.write(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), fdo.bogus())
    }

    #[test]
    fn ranges_addresses_and_branches() {
        let transfers = [
            testing(0x8000_0030, 0x8000_0010, Itype::Taken),
            testing(0x8000_0020, 0x8000_0024, Itype::NotTaken),
            testing(0x8000_0030, 0x8000_0010, Itype::Taken),
            testing(0x8000_0004, 0x8000_0010, Itype::DirectCall),
        ];
        let sample = (0x8000_0014, &transfers[..]);
        // 0x10..=0x30 twice in each sample: through the branch that was not
        // taken, and from the call.
        let expected = "1\n1010-1030:4\n1\n1014:2\n2\n1004->1010:2\n1030->1010:4\n";
        assert_eq!(counts(&[sample, sample]), (expected.to_owned(), 0));
    }

    #[test]
    fn ways_that_cannot_be_are_left_out() {
        let backwards = [
            testing(0x8000_0000, 0x8000_0040, Itype::DirectJump),
            testing(0x8000_0100, 0x8000_0010, Itype::DirectJump),
        ];
        let far = [
            testing(0x8020_0000, 0x8000_0040, Itype::DirectJump),
            testing(0x8000_0100, 0x8000_0010, Itype::DirectJump),
        ];
        // As the reference: neither the range nor the older transfer counts.
        assert_eq!(
            counts(&[(0, &backwards)]),
            ("0\n0\n1\n1000->1040:1\n".to_owned(), 1)
        );
        assert_eq!(
            counts(&[(0, &far)]),
            ("0\n0\n1\n201000->1040:1\n".to_owned(), 1)
        );
        // Exactly a mebibyte is not too far.
        let long = [
            testing(0x8010_0010, 0x8000_0040, Itype::DirectJump),
            testing(0x8000_0100, 0x8000_0010, Itype::DirectJump),
        ];
        let expected = "1\n1010-101010:1\n0\n2\n1100->1010:1\n101010->1040:1\n";
        assert_eq!(counts(&[(0, &long)]), (expected.to_owned(), 0));
    }

    #[test]
    fn other_code_is_not_counted() {
        let transfers = [
            testing(0x1000, 0x8000_0040, Itype::IndirectCall),
            testing(0x8000_0100, 0x1000, Itype::IndirectJump),
            testing(0x8000_0010, 0x8000_00f0, Itype::DirectJump),
        ];
        let expected = "1\n10f0-1100:1\n0\n1\n1010->10f0:1\n";
        assert_eq!(counts(&[(0x2000, &transfers)]), (expected.to_owned(), 0));
    }

    #[test]
    fn traps_end_ranges_and_are_no_calls() {
        let transfers = [
            testing(0x8000_0200, 0x8000_0018, Itype::TrapReturn),
            testing(0x8000_0018, 0x8000_0200, Itype::Interrupt),
            testing(0x8000_0004, 0x8000_0010, Itype::DirectJump),
            testing(0x8000_0200, 0x8000_0000, Itype::TrapReturn),
            testing(0x8000_0000, 0x8000_0200, Itype::Exception),
            testing(0x8000_0000, 0x8000_0000, Itype::DirectJump),
        ];
        let expected = "4\n1000-1000:1\n1000-1004:1\n1010-1017:1\n1200-1200:2\n\
                        1\n1018:1\n2\n1000->1000:1\n1004->1010:1\n";
        let (text, bogus) = counts(&[(0x8000_0018, &transfers)]);
        assert_eq!((text.as_str(), bogus), (expected, 0));
        // In front of the first instruction nothing has run.
        let at_once = [
            testing(0x8000_0010, 0x8000_0200, Itype::Interrupt),
            testing(0x8000_0004, 0x8000_0010, Itype::DirectJump),
        ];
        let expected = "0\n0\n1\n1004->1010:1\n";
        assert_eq!(counts(&[(0, &at_once)]), (expected.to_owned(), 0));
    }

    #[test]
    fn halves_of_records_are_no_ranges() {
        let transfers = [
            testing(0, 0x8000_0200, Itype::Interrupt),
            testing(0x8000_0010, 0, Itype::TrapReturn),
            testing(0x8000_0004, 0x8000_0008, Itype::DirectJump),
        ];
        let expected = "1\n1008-1010:1\n0\n1\n1004->1008:1\n";
        assert_eq!(counts(&[(0, &transfers)]), (expected.to_owned(), 0));
    }
}
