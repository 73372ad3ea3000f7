//! Writes pc lists.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hartrace_flow::{Effects, HartId, Observer, Placed, Step, Straights, Wants};
use hartrace_isa::{Flow, Isa, Xlen};

use crate::Put;
use crate::text::{PAIRS, spell16};

/// Bytes gathered before they are handed on: no fewer than files buffer, so that they are not
/// copied there.
const GATHERED: usize = 1 << 16;

/// Bytes of a line: its digits and the end of the line.
const LINE64: usize = 17;
const LINE32: usize = 9;

/// Writes one pc per line: sixteen digits, or eight on RV32. `sink` takes the
/// bytes, many lines at a time.
///
/// Retired instructions are listed, of one hart or of all as they come;
/// signals are not, and traps only as [`PcWriter::listing_traps`] says.
pub struct PcWriter<'a> {
    sink: Put<'a>,
    /// All lines are as long, so the ends of lines are in place from the start.
    buffer: Vec<u8>,
    /// Bytes of whole lines at its start.
    used: usize,
    speller: Speller,
    xlen: Xlen,
    hart: Option<HartId>,
    traps: bool,
}

impl<'a> PcWriter<'a> {
    /// A writer of all harts' pcs.
    #[must_use]
    pub fn new(xlen: Xlen, sink: impl FnMut(&[u8]) + 'a) -> PcWriter<'a> {
        let line = match xlen {
            Xlen::Rv32 => LINE32,
            Xlen::Rv64 => LINE64,
        };
        PcWriter {
            sink: Box::new(sink),
            buffer: vec![b'\n'; GATHERED.next_multiple_of(line)],
            used: 0,
            speller: Speller::default(),
            xlen,
            hart: None,
            traps: false,
        }
    }

    /// Lists this hart only.
    #[must_use]
    pub fn of_hart(mut self, hart: HartId) -> PcWriter<'a> {
        self.hart = Some(hart);
        self
    }

    /// Lists ecall and ebreak too, which do not retire;
    /// [`PcReader`](super::PcReader) reads them back as what they were.
    #[must_use]
    pub fn listing_traps(mut self) -> PcWriter<'a> {
        self.traps = true;
        self
    }

    /// The pcs of instructions, by their offsets from the first.
    #[inline]
    fn put(&mut self, first: u64, insns: &[Placed]) {
        match self.xlen {
            Xlen::Rv64 => self.lines::<LINE64>(first, insns, |line, (high, low)| {
                if let Some((start, rest)) = line.split_first_chunk_mut()
                    && let Some(end) = rest.first_chunk_mut()
                {
                    *start = high.to_le_bytes();
                    *end = low.to_le_bytes();
                }
            }),
            Xlen::Rv32 => self.lines::<LINE32>(first, insns, |line, (_, low)| {
                if let Some(digits) = line.first_chunk_mut() {
                    *digits = low.to_le_bytes();
                }
            }),
        }
    }

    /// The same, with lines of so many bytes, whose digits `write` puts in place.
    #[inline(always)]
    fn lines<const LINE: usize>(
        &mut self,
        first: u64,
        insns: &[Placed],
        write: impl Fn(&mut [u8], (u64, u64)),
    ) {
        let mut rest = insns;
        while !rest.is_empty() {
            let free = self.buffer.get_mut(self.used..).unwrap_or_default();
            let (now, later) = rest.split_at(rest.len().min(free.len() / LINE));
            let mut speller = self.speller;
            for (line, insn) in free.chunks_exact_mut(LINE).zip(now) {
                let pc = first.wrapping_add(insn.offset.into());
                write(line, speller.spell(pc));
            }
            self.speller = speller;
            self.used += now.len() * LINE;
            if self.used == self.buffer.len() {
                self.flush();
            }
            rest = later;
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        if self.used > 0 {
            (self.sink)(self.buffer.get(..self.used).unwrap_or_default());
            self.used = 0;
        }
    }
}

impl Observer for PcWriter<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, _: &Effects) {
        if self.hart.is_some_and(|only| only != hart) {
            return;
        }
        // Its offset is 0.
        let one = [Placed::default()];
        match step {
            Step::Insn(insn) => self.put(insn.pc, &one),
            Step::Trap(trap) if self.traps => {
                let made_to_trap = |&bits: &u32| Flow::of(bits, Isa::RV64GC) == Flow::Trap;
                if trap.bits.filter(made_to_trap).is_some()
                    && let Some(epc) = trap.trap.epc
                {
                    self.put(epc, &one);
                }
            }
            Step::Trap(_) | Step::Signal(_) => {}
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if self.hart.is_some_and(|only| only != hart) {
            return;
        }
        for piece in code.list {
            self.put(piece.pc, code.insns(piece));
        }
    }

    fn finish(&mut self) {
        self.flush();
    }
}

/// Spells pcs one after the other: all digits but the last two are mostly those of the
/// pc before.
#[derive(Clone, Copy, Debug)]
struct Speller {
    /// The pc before, without its lowest byte.
    page: u64,
    /// Its first eight digits, the first one lowest.
    high: u64,
    /// The six after them, in the same way.
    low: u64,
}

impl Default for Speller {
    fn default() -> Self {
        Speller::of(0)
    }
}

impl Speller {
    fn of(page: u64) -> Speller {
        let digits = spell16(page << 8);
        let (high, low) = digits.split_at(8);
        let word = |bytes: &[u8]| {
            let bytes = bytes.first_chunk().copied();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        Speller {
            page,
            high: word(high),
            low: word(low) & (u64::MAX >> 16),
        }
    }

    /// The first eight digits and the last eight, as little-endian bytes.
    #[inline(always)]
    fn spell(&mut self, pc: u64) -> (u64, u64) {
        if pc >> 8 != self.page {
            *self = Speller::of(pc >> 8);
        }
        let last = PAIRS.get(usize::from(pc as u8)).copied();
        let last = u16::from_le_bytes(last.unwrap_or_default());
        (self.high, self.low | u64::from(last) << 48)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use hartrace_flow::Insn;

    /// More lines than are gathered, far from each other and near.
    #[test]
    fn lines_are_what_the_standard_library_spells() {
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            let mut written = Vec::new();
            let mut writer = PcWriter::new(xlen, |bytes| written.extend_from_slice(bytes));
            let mut wanted = String::new();
            let mut random = hartrace_testkit::Random::new(1);
            for _ in 0..3 * GATHERED / LINE32 {
                let pc = match random.below(2) {
                    0 => random.draw(),
                    _ => random.bits(20),
                };
                let pc = xlen.wrap(pc);
                let insn = Insn {
                    pc,
                    ..Insn::default()
                };
                writer.step(HartId(0), &Step::Insn(insn), &Effects::NONE);
                wanted += &match xlen {
                    Xlen::Rv32 => format!("{pc:08x}\n"),
                    Xlen::Rv64 => format!("{pc:016x}\n"),
                };
            }
            writer.finish();
            drop(writer);
            assert_eq!(core::str::from_utf8(&written).unwrap(), wanted);
        }
    }
}
