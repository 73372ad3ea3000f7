//! Transfers as printed by `perf script -F ip,brstack`, which other tools read.

use super::Sample;
use crate::names::Names;
use hartrace_flow::Transfer;
use hartrace_isa::Itype;
use std::io::Write as _;

/// Fields of an entry, with `/` between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fields {
    /// `FROM/TO/EVENT/INTX/ABORT/CYCLES`, as older tools expect.
    #[default]
    Six,
    /// The same and `TYPE/SPEC`.
    Eight,
}

/// One line per sample: the pc, then the transfers, the newest first.
///
/// EVENT is `M` (mispredicted), `P` (not), followed by an `N` for a branch
/// that was not taken, or `-` for a trap, of which nothing is predicted. Readers
/// of six fields know no `N`: branches that were not taken are left out there.
/// CYCLES are those since the entry before, 0 if they were not counted. An
/// address that was not recorded is `0x0`.
///
/// ```
/// use hartrace_analyze::{BrStack, Sample};
/// use hartrace_flow::Transfer;
/// use hartrace_isa::Itype;
///
/// let call = Transfer {
///     source: 0x80000010,
///     target: 0x80000100,
///     kind: Itype::DirectCall,
///     cycles: Some(9),
///     ..Transfer::default()
/// };
/// let sample = Sample { pc: Some(0x80000104), transfers: &[call], ..Sample::default() };
/// let mut out = Vec::new();
/// BrStack::default().line(&sample, &mut out);
/// assert_eq!(out, b"        80000104 0x80000010/0x80000100/P/-/-/9 \n");
/// ```
#[derive(Clone, Copy, Default)]
pub struct BrStack<'a> {
    /// Fields of an entry.
    pub fields: Fields,
    /// Addresses by name, as `brstacksym` has them; those without one are
    /// numbers.
    pub names: Option<&'a Names>,
}

impl BrStack<'_> {
    /// Appends the line of a sample.
    pub fn line(&self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = write!(out, "{:>16x}", sample.place().unwrap_or(0));
        match self.fields {
            Fields::Six => sample.taken().for_each(|t| self.entry(&t.transfer, out)),
            Fields::Eight => sample.transfers.iter().for_each(|t| self.entry(t, out)),
        }
        out.push(b'\n');
    }

    fn entry(&self, t: &Transfer, out: &mut Vec<u8>) {
        out.push(b' ');
        self.address(t.source, out);
        out.push(b'/');
        self.address(t.target, out);
        // Writing to memory does not fail.
        let _ = write!(out, "/{}/-/-/{}", event(t), t.cycles.unwrap_or(0));
        if self.fields == Fields::Eight {
            let _ = write!(out, "/{}/-", branch_type(t.kind));
        }
        out.push(b' ');
    }

    fn address(&self, address: u64, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = match self.names.and_then(|names| names.lookup(address)) {
            Some((name, offset)) if address != 0 => write!(out, "{name}+{offset:#x}"),
            _ => write!(out, "{address:#x}"),
        };
    }
}

const fn event(t: &Transfer) -> &'static str {
    match (t.kind, t.mispredicted) {
        (Itype::Exception | Itype::Interrupt, _) => "-",
        (Itype::NotTaken, true) => "MN",
        (Itype::NotTaken, false) => "PN",
        (_, true) => "M",
        (_, false) => "P",
    }
}

/// The types of perf, as Linux assigns them to those of CTR.
const fn branch_type(kind: Itype) -> &'static str {
    match kind {
        Itype::Exception => "SYSCALL",
        Itype::Interrupt => "IRQ",
        Itype::TrapReturn => "ERET",
        Itype::NotTaken | Itype::Taken => "COND",
        Itype::IndirectCall => "IND_CALL",
        Itype::DirectCall => "CALL",
        Itype::IndirectJump | Itype::OtherIndirect | Itype::Uninferable => "IND",
        Itype::DirectJump | Itype::OtherDirect => "UNCOND",
        Itype::Return => "RET",
        Itype::None | Itype::Reserved | Itype::Swap => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn text(stack: &BrStack<'_>, sample: &Sample<'_>) -> String {
        let mut out = Vec::new();
        stack.line(sample, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn six_and_eight_fields() {
        let transfers = [
            Transfer {
                cycles: Some(134_201_344),
                mispredicted: true,
                ..testing(0x8000_0020, 0x8000_0010, Itype::Taken)
            },
            Transfer {
                cycles: Some(1),
                ..testing(0x8000_0008, 0x8000_000c, Itype::NotTaken)
            },
            testing(0x8000_0004, 0, Itype::Exception),
            testing(0, 0x8000_0004, Itype::TrapReturn),
        ];
        let sample = Sample {
            pc: Some(0x8000_0014),
            transfers: &transfers,
            ..Sample::default()
        };
        assert_eq!(
            text(&BrStack::default(), &sample),
            "        80000014 0x80000020/0x80000010/M/-/-/134201345  \
             0x80000004/0x0/-/-/-/0  0x0/0x80000004/P/-/-/0 \n"
        );
        let eight = BrStack {
            fields: Fields::Eight,
            ..BrStack::default()
        };
        assert_eq!(
            text(&eight, &sample),
            "        80000014 0x80000020/0x80000010/M/-/-/134201344/COND/-  \
             0x80000008/0x8000000c/PN/-/-/1/COND/-  0x80000004/0x0/-/-/-/0/SYSCALL/-  \
             0x0/0x80000004/P/-/-/0/ERET/- \n"
        );
    }

    #[test]
    fn every_type_has_its_word() {
        let words: Vec<&str> = (0..16)
            .map(|code| branch_type(Itype::from_code(code).unwrap()))
            .collect();
        assert_eq!(
            words,
            [
                "-", "SYSCALL", "IRQ", "ERET", "COND", "COND", "IND", "-", "IND_CALL", "CALL",
                "IND", "UNCOND", "-", "RET", "IND", "UNCOND"
            ]
        );
    }

    #[test]
    fn samples_without_transfers() {
        let sample = Sample {
            pc: Some(0x10),
            ..Sample::default()
        };
        assert_eq!(text(&BrStack::default(), &sample), "              10\n");
        // Without a pc the last target stands for it.
        let jump = [testing(4, 8, Itype::DirectJump)];
        let sample = Sample {
            transfers: &jump,
            ..Sample::default()
        };
        assert_eq!(
            text(&BrStack::default(), &sample),
            "               8 0x4/0x8/P/-/-/0 \n"
        );
    }

    #[test]
    fn names_for_addresses() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/sieve/");
        let file = std::fs::read([folder, "sieve-rv64gc.elf"].concat()).unwrap();
        let mut names = Names::new();
        names.add_elf(&file, None).unwrap();
        let jump = [
            testing(0x8000_0004, 0x8000_0000, Itype::DirectJump),
            testing(0x8000_0004, 0, Itype::Exception),
        ];
        let sample = Sample {
            pc: Some(0x8000_0000),
            transfers: &jump,
            ..Sample::default()
        };
        let stack = BrStack {
            names: Some(&names),
            ..BrStack::default()
        };
        assert_eq!(
            text(&stack, &sample),
            "        80000000 _start+0x4/_start+0x0/P/-/-/0  _start+0x4/0x0/-/-/-/0 \n"
        );
    }
}
