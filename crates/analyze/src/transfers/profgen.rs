//! Samples as input for `llvm-profgen --perfscript`.

use super::ways::{Stretch, Way, Ways};
use super::{Sample, Taken};
use crate::segments::Segments;
use hartrace_flow::{Image, Transfer};
use hartrace_isa::Itype;
use std::fmt::Display;
use std::io::{self, Write};

/// Lines as `perf script -F ip,brstack` prints them, such that `llvm-profgen`
/// counts what was run and called, and nothing else.
///
/// It counts each entry as a jump, or as a call if a function begins at its
/// target, and the code from the target of an entry up to the source of the
/// later one. The address 0 is outside of the program: nothing is counted of
/// it. So
///
/// * branches that were not taken are left out;
/// * a trap, which is no call, is two entries: out of the program after the
///   last instruction that retired, and into the handler. So is the return
///   from one;
/// * the transfer before a way that cannot be goes outside;
/// * where a record is missing, another line begins.
#[derive(Debug, Default)]
pub struct Profgen<'i> {
    ways: Ways<'i>,
}

/// What leads up to the later entry.
enum Joint {
    /// The way from the target of this one.
    Way,
    /// Nothing of this target.
    Nothing,
}

impl<'i> Profgen<'i> {
    /// With the code the ways are checked, and what retired before a trap is
    /// known.
    #[must_use]
    pub fn new(image: Option<&'i Image>) -> Profgen<'i> {
        Profgen {
            ways: Ways::new(image),
        }
    }

    /// Ways between two transfers that cannot be: backwards, too long, or
    /// through a jump. They are not in the lines.
    #[must_use]
    pub const fn bogus(&self) -> u64 {
        self.ways.bogus()
    }

    /// Appends the lines of a sample; none if nothing went elsewhere.
    pub fn lines(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        let mut later: Option<Transfer> = None;
        let mut place = sample.place();
        for Taken { transfer, joined } in sample.taken() {
            let t = &transfer;
            if !joined {
                if later.is_some() {
                    out.push(b'\n');
                    place = Some(t.target);
                }
                // Writing to memory does not fail.
                let _ = write!(out, "{:>16x}", place.unwrap_or(0));
            }
            let joint = match later.filter(|_| joined) {
                None => Joint::Way,
                Some(later) => self.join(t, &later, out),
            };
            let target = match joint {
                Joint::Way => t.target,
                Joint::Nothing => 0,
            };
            match t.kind {
                // Its other half is written when the one before it is known.
                Itype::Exception | Itype::Interrupt => entry(0, target, t, out),
                Itype::TrapReturn => {
                    entry(0, target, t, out);
                    entry(t.source, 0, t, out);
                }
                _ => entry(t.source, target, t, out),
            }
            later = Some(transfer);
        }
        if later.is_some() {
            out.push(b'\n');
        }
    }

    /// The way to the later transfer. If that is a trap, the way ends before
    /// its source.
    fn join(&mut self, t: &Transfer, later: &Transfer, out: &mut Vec<u8>) -> Joint {
        let Some(stretch) = Stretch::between(t, later) else {
            return Joint::Way;
        };
        match self.ways.of(stretch) {
            Way::Impossible => return Joint::Nothing,
            Way::Straight {
                last: Some(last), ..
            } if stretch.trap => entry(last, 0, later, out),
            Way::Straight { .. } | Way::Unknown => {}
        }
        Joint::Way
    }
}

/// An entry, unless both of its ends are outside.
fn entry(source: u64, target: u64, t: &Transfer, out: &mut Vec<u8>) {
    if source == 0 && target == 0 {
        return;
    }
    let event = match t.kind {
        Itype::Exception | Itype::Interrupt => '-',
        _ if t.mispredicted => 'M',
        _ => 'P',
    };
    // Of the halves of a trap the first has the cycles.
    let cycles = t.cycles.filter(|_| source != 0).unwrap_or(0);
    // Writing to memory does not fail.
    let _ = write!(out, " {source:#x}/{target:#x}/{event}/-/-/{cycles} ");
}

/// Writes a sample that counts a jump and the code from its target to another instruction
/// so many times, each where it is known, and nothing else.
pub(super) fn counted(
    source: Option<u64>,
    target: u64,
    last: Option<u64>,
    count: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let source = source.unwrap_or(0);
    write!(out, "{count}\n{:>16x}", last.unwrap_or(target))?;
    if let Some(last) = last {
        write!(out, " {last:#x}/0x0/P/-/-/0 ")?;
    }
    writeln!(out, " {source:#x}/{target:#x}/P/-/-/0 ")
}

/// Appends the lines in which perf reports where the code of a file was mapped:
/// one for each executable segment. `name` is the file as the reader will look
/// for it; llvm-profgen compares what follows the last `/`.
pub fn mmap_events(segments: &Segments, name: &dyn Display, out: &mut Vec<u8>) {
    for segment in segments.iter() {
        let (address, size, offset) = segment.pages();
        // Writing to memory does not fail.
        let _ = writeln!(
            out,
            "PERF_RECORD_MMAP2 1/1: [{address:#x}({size:#x}) @ {offset:#x} 00:00 0 0]: r-xp {name}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::{testing, testing_image};
    use super::*;
    use crate::segments;

    fn text(transfers: &[Transfer], numbers: &[u16]) -> (String, u64) {
        let image = testing_image();
        let mut profgen = Profgen::new(Some(&image));
        let sample = Sample {
            pc: Some(0x2000),
            transfers,
            numbers,
            ..Sample::default()
        };
        let mut out = Vec::new();
        profgen.lines(&sample, &mut out);
        (String::from_utf8(out).unwrap(), profgen.bogus())
    }

    #[test]
    fn traps_are_no_calls() {
        let transfers = [
            testing(0x1004, 0x100c, Itype::Taken),
            testing(0x3000, 0x1004, Itype::TrapReturn),
            testing(0x1004, 0x3000, Itype::Interrupt),
            testing(0x100c, 0x1000, Itype::DirectJump),
        ];
        let expected = "            2000 0x1004/0x100c/P/-/-/0  \
            0x0/0x1004/P/-/-/0  0x3000/0x0/P/-/-/0  \
            0x0/0x3000/-/-/-/0  0x1002/0x0/-/-/-/0  0x100c/0x1000/P/-/-/0 \n";
        assert_eq!(text(&transfers, &[]), (expected.to_owned(), 0));
        // Before the first instruction nothing has run.
        let at_once = [
            testing(0x1000, 0x3000, Itype::Exception),
            testing(0x100c, 0x1000, Itype::DirectJump),
        ];
        let expected = "            2000 0x0/0x3000/-/-/-/0  0x100c/0x1000/P/-/-/0 \n";
        assert_eq!(text(&at_once, &[]), (expected.to_owned(), 0));
    }

    #[test]
    fn ways_that_cannot_be_lead_outside() {
        let transfers = [
            testing(0x100e, 0x1000, Itype::Return),
            testing(0x100c, 0x1004, Itype::DirectJump),
        ];
        let expected = "            2000 0x100e/0x1000/P/-/-/0  0x100c/0x0/P/-/-/0 \n";
        assert_eq!(text(&transfers, &[]), (expected.to_owned(), 1));
    }

    #[test]
    fn a_hole_begins_another_line() {
        let transfers = [
            testing(0x1004, 0x100c, Itype::Taken),
            testing(0x100c, 0x1000, Itype::DirectJump),
        ];
        let expected = "            2000 0x1004/0x100c/P/-/-/0 \n            \
                        1000 0x100c/0x1000/P/-/-/0 \n";
        assert_eq!(text(&transfers, &[0, 2]), (expected.to_owned(), 0));
    }

    #[test]
    fn branches_not_taken_are_left_out_and_their_cycles_are_not() {
        let after = |cycles, t: Transfer| Transfer {
            cycles: Some(cycles),
            ..t
        };
        let not = after(3, testing(0x1004, 0x1008, Itype::NotTaken));
        let transfers = [after(2, testing(0x100c, 0x1004, Itype::DirectJump)), not];
        let expected = "            2000 0x100c/0x1004/P/-/-/5 \n";
        assert_eq!(text(&transfers, &[]), (expected.to_owned(), 0));
        assert_eq!(text(&[not], &[]), (String::new(), 0));
    }

    /// The pattern of llvm-profgen: a line of at least 50 characters.
    #[test]
    fn mapped_files() {
        let segments = segments::testing(&[(0x8000_0000, 0xe8, 0xc10), (0x9000_0010, 0x2010, 8)]);
        let mut out = Vec::new();
        mmap_events(&segments, &"dir/a.elf", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "PERF_RECORD_MMAP2 1/1: [0x80000000(0x1000) @ 0x0 00:00 0 0]: r-xp dir/a.elf\n\
             PERF_RECORD_MMAP2 1/1: [0x90000000(0x1000) @ 0x2000 00:00 0 0]: r-xp dir/a.elf\n"
        );
    }
}
