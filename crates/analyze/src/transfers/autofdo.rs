//! Branch and range counts as input for AutoFDO.

use super::Sample;
use super::counts::{FlowCounts, sorted};
use super::ways::{Stretch, Way, Ways};
use crate::segments::Segments;
use hartrace_flow::{Image, Transfer};
use hartrace_isa::Itype;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// The text that AutoFDO reads with `--profiler=text`: ranges that were run
/// through, addresses where samples were taken, and transfers, each with a
/// count. Addresses are those in the file of the program; what lies outside of
/// it is left out.
///
/// A range reaches from the target of a transfer to the source of the next, so
/// the samples must hold everything that was taken. Branches that were not
/// taken do no harm. The instruction that a trap was taken at has not retired,
/// and a trap is no call: its range ends with the instruction before, and traps
/// and returns from them are not among the transfers. A way that cannot be is
/// left out, and so is the transfer before it.
#[derive(Debug, Default)]
pub struct AutoFdo<'i> {
    segments: Segments,
    counts: FlowCounts,
    addresses: FxHashMap<u64, u64>,
    ways: Ways<'i>,
}

impl<'i> AutoFdo<'i> {
    /// No counts yet, of a program in these segments. With the code the ways
    /// are checked, and ranges that end with a trap are known.
    #[must_use]
    pub fn new(segments: Segments, image: Option<&'i Image>) -> AutoFdo<'i> {
        AutoFdo {
            segments,
            ways: Ways::new(image),
            ..AutoFdo::default()
        }
    }

    /// Counts a sample.
    pub fn add(&mut self, sample: &Sample<'_>) {
        if let Some(pc) = sample.pc {
            *self.addresses.entry(pc).or_default() += 1;
        }
        let mut later: Option<Transfer> = None;
        for taken in sample.taken() {
            let t = taken.transfer;
            let sound = match later.filter(|_| taken.joined) {
                None => true,
                Some(later) => self.range(&t, &later),
            };
            if sound && !t.kind.is_trap() && t.kind != Itype::TrapReturn {
                self.counts.branch(t.source, t.target);
            }
            later = Some(t);
        }
    }

    /// From a target to the transfer after it; whether that can be.
    fn range(&mut self, t: &Transfer, later: &Transfer) -> bool {
        let Some(stretch) = Stretch::between(t, later) else {
            // It came from a mode that is not recorded: the end is not known.
            return true;
        };
        let last = match self.ways.of(stretch) {
            Way::Impossible => return false,
            Way::Straight { last, .. } => last,
            Way::Unknown => (!stretch.trap).then_some(stretch.end),
        };
        if let Some(last) = last {
            self.counts.range(stretch.start, last);
        }
        true
    }

    /// Ways between two transfers that cannot be: backwards, too long, or
    /// through a jump. They are not among the counts.
    #[must_use]
    pub const fn bogus(&self) -> u64 {
        self.ways.bogus()
    }

    /// What was counted, by address in memory.
    #[must_use]
    pub const fn counts(&self) -> &FlowCounts {
        &self.counts
    }

    /// Writes the counts, by address.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let addresses = sorted(&self.addresses);
        self.counts.write_autofdo(&self.segments, &addresses, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::segments;
    use hartrace_flow::SpaceId;
    use hartrace_isa::Isa;

    /// A little code of 2 bytes each, and a jump.
    fn nops() -> Image {
        let mut image = Image::new();
        let mut code = [0x01, 0].repeat(0x300);
        // c.j .
        code[0x280] = 0x01;
        code[0x281] = 0xa0;
        image.add_raw(SpaceId::FIRST, 0x8000_0000, &code, Isa::RV64GC);
        image
    }

    /// Code of 4 MiB at 0x8000_0000, in the file at 0x1000.
    fn counts(samples: &[(u64, &[Transfer])]) -> (String, u64) {
        let segments = segments::testing(&[(0x8000_0000, 0x1000, 4 << 20)]);
        let image = nops();
        let mut fdo = AutoFdo::new(segments, Some(&image));
        for (pc, transfers) in samples {
            fdo.add(&Sample {
                pc: Some(*pc),
                transfers,
                ..Sample::default()
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
            testing(0x8010_1010, 0x8000_0040, Itype::DirectJump),
            testing(0x8000_0100, 0x8000_1010, Itype::DirectJump),
        ];
        let expected = "1\n2010-102010:1\n0\n2\n1100->2010:1\n102010->1040:1\n";
        assert_eq!(counts(&[(0, &long)]), (expected.to_owned(), 0));
        // Nothing goes through a jump.
        let through = [
            testing(0x8000_0282, 0x8000_0040, Itype::DirectJump),
            testing(0x8000_0100, 0x8000_0270, Itype::DirectJump),
        ];
        let expected = "0\n0\n1\n1282->1040:1\n";
        assert_eq!(counts(&[(0, &through)]), (expected.to_owned(), 1));
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
        let expected = "3\n1000-1004:1\n1010-1016:1\n1200-1200:2\n\
                        1\n1018:1\n2\n1000->1000:1\n1004->1010:1\n";
        let (text, bogus) = counts(&[(0x8000_0018, &transfers)]);
        assert_eq!((text.as_str(), bogus), (expected, 0));
        // Before the first instruction nothing has run.
        let at_once = [
            testing(0x8000_0010, 0x8000_0200, Itype::Interrupt),
            testing(0x8000_0004, 0x8000_0010, Itype::DirectJump),
        ];
        let expected = "0\n0\n1\n1004->1010:1\n";
        assert_eq!(counts(&[(0, &at_once)]), (expected.to_owned(), 0));
    }

    #[test]
    fn a_hole_is_no_range() {
        let image = nops();
        let segments = segments::testing(&[(0x8000_0000, 0x1000, 4 << 20)]);
        let mut fdo = AutoFdo::new(segments, Some(&image));
        let transfers = [
            testing(0x8000_0030, 0x8000_0010, Itype::Taken),
            testing(0x8000_0004, 0x8000_0010, Itype::DirectCall),
        ];
        fdo.add(&Sample {
            transfers: &transfers,
            numbers: &[0, 2],
            ..Sample::default()
        });
        let mut out = Vec::new();
        fdo.write(&mut out).unwrap();
        assert_eq!(out, b"0\n0\n2\n1004->1010:1\n1030->1010:1\n");
        assert_eq!(fdo.bogus(), 0);
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
