//! What is in a log, in one pass and bounded memory: how many lines, which
//! harts, the first and the last pc.
//!
//! The readers that turn a log into steps need the program; this one counts
//! without it.

use crate::detect::{Kind, column_is, without_comment};

/// Longer lines are cut here; no log line has a pc beyond.
const MAX_LINE: usize = 4096;

/// Harts that are told apart.
const MAX_HARTS: usize = 1024;

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogInfo {
    /// Lines in all, the last one also without a line end.
    pub lines: u64,
    /// Lines with a pc. A Spike log with both kinds of line has two of these
    /// per instruction.
    pub pcs: u64,
    /// Spike only: lines that `--log-commits` writes.
    pub commits: u64,
    /// Spike only: lines that tell of an exception or interrupt.
    pub traps: u64,
    /// Lines that could not be read, empty ones and comments aside.
    pub unread: u64,
    /// The number, from 1, of the first line that could not be read.
    pub first_unread: Option<u64>,
    /// The first pc.
    pub first_pc: Option<u64>,
    /// The last pc.
    pub last_pc: Option<u64>,
    /// Spike only: the harts, in the order they appear, up to 1024.
    pub harts: Vec<u32>,
}

/// Reads a log piece by piece.
pub struct LogScan {
    kind: Kind,
    /// The line that the last piece left unfinished.
    partial: Vec<u8>,
    /// CSV: which column is the address, from the heading.
    address: Option<usize>,
    info: LogInfo,
}

/// A line of a Spike log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// An instruction.
    Pc { hart: u32, pc: u64, commit: bool },
    /// An exception or interrupt.
    Trap { hart: u32 },
    /// A symbol, a trap value, anything else that a hart reports.
    Note { hart: u32 },
}

impl LogScan {
    /// For a log of this kind: [`Kind::SpikeLog`], [`Kind::PcList`],
    /// [`Kind::IngressCsv`] or [`Kind::SpikeCsv`]. Of any other kind, lines
    /// are counted.
    #[must_use]
    pub fn new(kind: Kind) -> LogScan {
        LogScan {
            kind,
            partial: Vec::new(),
            address: None,
            info: LogInfo::default(),
        }
    }

    /// Takes the next bytes in.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split_inclusive(|&b| b == b'\n');
        for piece in pieces.by_ref() {
            let Some(line) = piece.strip_suffix(b"\n") else {
                self.keep(piece);
                continue;
            };
            if self.partial.is_empty() {
                self.line(line);
            } else {
                self.keep(line);
                let whole = std::mem::take(&mut self.partial);
                self.line(&whole);
                self.partial = whole;
                self.partial.clear();
            }
        }
    }

    /// All bytes have been taken in.
    #[must_use]
    pub fn finish(mut self) -> LogInfo {
        if !self.partial.is_empty() {
            let whole = std::mem::take(&mut self.partial);
            self.line(&whole);
        }
        self.info
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.partial.len());
        self.partial.extend(piece.iter().take(room));
    }

    fn line(&mut self, line: &[u8]) {
        self.info.lines += 1;
        let line = line.get(..MAX_LINE).unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return;
        }
        let read = match self.kind {
            Kind::SpikeLog => self.spike(text),
            Kind::PcList => self.pc(hex(without_comment(text))),
            Kind::IngressCsv => self.row(text, "iaddr"),
            Kind::SpikeCsv => self.row(text, "ADDRESS"),
            _ => true,
        };
        if !read {
            self.info.unread += 1;
            self.info.first_unread.get_or_insert(self.info.lines);
        }
    }

    fn pc(&mut self, pc: Option<u64>) -> bool {
        if pc.is_some() {
            self.info.pcs += 1;
            self.info.first_pc = self.info.first_pc.or(pc);
            self.info.last_pc = pc;
        }
        pc.is_some()
    }

    fn spike(&mut self, text: &str) -> bool {
        let Some(line) = spike_line(text) else {
            return false;
        };
        let hart = match line {
            Line::Pc { hart, pc, commit } => {
                self.pc(Some(pc));
                self.info.commits += u64::from(commit);
                hart
            }
            Line::Trap { hart } => {
                self.info.traps += 1;
                hart
            }
            Line::Note { hart } => hart,
        };
        if !self.info.harts.contains(&hart) && self.info.harts.len() < MAX_HARTS {
            self.info.harts.push(hart);
        }
        true
    }

    fn row(&mut self, text: &str, address: &str) -> bool {
        let mut columns = text.split(',').map(str::trim);
        match self.address {
            None => {
                self.address = columns.position(|c| column_is(c, address));
                self.address.is_some()
            }
            Some(column) => self.pc(columns.nth(column).and_then(hex)),
        }
    }
}

/// `core   0: 0x... (0x...) ...`, with the privilege before the pc if it is a
/// commit.
pub(crate) fn spike_line(line: &str) -> Option<Line> {
    let (hart, rest) = line.strip_prefix("core")?.split_once(':')?;
    let hart = hart.trim().parse().ok()?;
    let mut words = rest.split_ascii_whitespace();
    let first = words.next()?;
    if first == "exception" || first == "interrupt" {
        return Some(Line::Trap { hart });
    }
    let commit = first.len() == 1 && first.starts_with(|c: char| c.is_ascii_digit());
    let pc = if commit { words.next() } else { Some(first) };
    let pc = pc.and_then(|word| hex(word.strip_prefix("0x")?));
    let bits = words.next().is_some_and(|word| word.starts_with("(0x"));
    Some(match pc {
        Some(pc) if bits => Line::Pc { hart, pc, commit },
        _ => Line::Note { hart },
    })
}

fn hex(text: &str) -> Option<u64> {
    let marked = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = marked.unwrap_or(text);
    // from_str_radix takes a sign.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIKE: &str = "warning: something\n\
        core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0\n\
        core   0: 3 0x0000000000001000 (0x00000297) x5  0x0000000000001000\n\
        core   0: >>>>  _start\n\
        core   1: 0x0000000080000000 (0x00000073) ecall\n\
        core   1: exception trap_machine_ecall, epc 0x0000000080000000\n\
        core   1:           tval 0x0000000000000000";

    fn scan(kind: Kind, text: &str, piece: usize) -> LogInfo {
        let mut scan = LogScan::new(kind);
        for piece in text.as_bytes().chunks(piece) {
            scan.feed(piece);
        }
        scan.finish()
    }

    #[test]
    fn spike_at_every_chunk_size() {
        for piece in 1..SPIKE.len() + 1 {
            let info = scan(Kind::SpikeLog, SPIKE, piece);
            let expected = LogInfo {
                lines: 7,
                pcs: 3,
                commits: 1,
                traps: 1,
                unread: 1,
                first_unread: Some(1),
                first_pc: Some(0x1000),
                last_pc: Some(0x8000_0000),
                harts: vec![0, 1],
            };
            assert_eq!(info, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn pc_lists_and_rows() {
        let info = scan(
            Kind::PcList,
            "# pcs\n80000000 # start\n\n0x80000002\nzz\n",
            5,
        );
        assert_eq!((info.lines, info.pcs, info.unread), (5, 2, 1));
        assert_eq!(info.first_unread, Some(5));
        assert_eq!(info.last_pc, Some(0x8000_0002));
        let csv = "itype_0,cause,iaddr_0,iretire_0\n0,0,80000000,1\n5,0,8000000a,2\n5,0\n";
        let info = scan(Kind::IngressCsv, csv, 7);
        assert_eq!((info.lines, info.pcs, info.unread), (4, 2, 1));
        assert_eq!(info.first_pc, Some(0x8000_0000));
        assert_eq!(info.last_pc, Some(0x8000_000a));
        let csv = "VALID,ADDRESS,INSN\n1,80000000,13\n1,80000004,13\n";
        let info = scan(Kind::SpikeCsv, csv, 3);
        assert_eq!((info.pcs, info.last_pc), (2, Some(0x8000_0004)));
    }

    #[test]
    fn endless_lines_take_no_memory() {
        let mut scan = LogScan::new(Kind::PcList);
        for _ in 0..100 {
            scan.feed(&[b'0'; 10_000]);
            assert!(scan.partial.len() <= MAX_LINE);
        }
        assert_eq!(scan.finish().lines, 1);
    }
}
