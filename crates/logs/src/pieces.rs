//! Instructions of a log to pieces of straight-line code.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::site::{Exits, Site};
use super::text::spell8;
use hartrace_flow::{
    Changes, Context, HartId, Image, Mode, Observer, Placed, SpaceId, Straight, Straights, Wants,
};
use hartrace_isa::{Flow, Isa};

/// Bytes of a line with the sixteen digits of a pc.
pub(super) const LINE: usize = 17;

/// Instructions in a piece.
const LONGEST: u8 = 64;

/// Pieces that are handed over together.
const MOST: usize = 256;

/// Decoded instructions before all are forgotten: about 16 MiB,
/// 28 MiB of commit logs.
const ROOM: usize = 1 << 18;

/// Starts that are found without their table.
const LATELY: usize = 256;

/// Eight digits as little-endian bytes.
#[inline(always)]
const fn word(digits: [u8; 8]) -> u64 {
    u64::from_le_bytes(digits)
}

/// Whether an observer gets instructions many at once.
pub(super) const fn wanted<O: Observer>() -> bool {
    O::WANTS.contains(Wants::INSNS) && !O::WANTS.overlaps(Wants::EFFECTS)
}

/// Follows pcs through decoded straight-line code and collects the pieces.
///
/// Only instructions that retire, that have a length of two or four bytes and
/// belong to one instruction set are in pieces; all others have to be steps.
#[derive(Clone, Debug)]
pub(super) struct Pieces<'a> {
    image: &'a Image,
    space: SpaceId,
    isa: Isa,
    /// Decoded code, and the same instructions with their successors.
    code: Vec<Placed>,
    sites: Vec<Site>,
    /// The last eight digits of their pcs, as little-endian bytes: most lines are compared as
    /// they are.
    digits: Vec<u64>,
    /// What a commit log has after them.
    codes: Vec<SpelledCode>,
    /// It is a commit log: lines have the instructions, too, and system instructions have
    /// effects that matter. Table jumps lead anywhere, since it may have no program.
    commits: bool,
    mode: Mode,
    /// The instruction that ended the last piece.
    before: Option<u32>,
    starts: HashMap<u64, Start, FxBuildHasher>,
    /// Starts that were looked up lately, with their pcs.
    lately: Box<[(u64, Start); LATELY]>,
    /// Pieces that the observer has not received yet.
    list: Box<[Straight; MOST]>,
    len: usize,
    /// The piece that may still grow; a count of 0 is none.
    open: Straight,
    /// The code after it: address and position of the next instruction, and how
    /// many there are.
    next: u64,
    index: usize,
    left: u8,
    /// The first half of its address, and as digits.
    high: (u32, u64),
}

/// An instruction as Spike spells it after its pc.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpelledCode {
    /// In the line of a commit: ` (0x00100117)` or ` (0x6289)`.
    pub(super) commit: Spelled,
    /// In a line of `-l`: always eight digits.
    pub(super) listed: Spelled,
}

impl SpelledCode {
    fn new(bits: u32) -> SpelledCode {
        let digits = spell8(bits);
        let short = match bits & 3 {
            3 => &digits,
            _ => digits.split_at(4).1,
        };
        SpelledCode {
            commit: Spelled::new(short),
            listed: Spelled::new(&digits),
        }
    }
}

/// Up to 16 bytes, the first one lowest. None of them is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelled(u128);

impl Spelled {
    fn new(digits: &[u8]) -> Spelled {
        let text = b" (0x".iter().chain(digits).chain(b")");
        Spelled(
            text.rev()
                .fold(0, |word, byte| word << 8 | u128::from(*byte)),
        )
    }

    /// Its length in bytes if a text starts with it.
    #[inline(always)]
    pub(super) fn starts(self, text: [u8; 16]) -> Option<usize> {
        let beyond = self.0.leading_zeros() & !7;
        let differs = (u128::from_le_bytes(text) ^ self.0) << beyond;
        (differs == 0).then_some(16 - beyond as usize / 8)
    }
}

/// Straight-line code from an address on: the position of the first instruction,
/// and the number of instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    first: u32,
    count: u8,
}

impl<'a> Pieces<'a> {
    /// Pieces of the code in a space that belongs to an instruction set.
    pub(super) fn new(image: &'a Image, space: SpaceId, isa: Isa) -> Pieces<'a> {
        Pieces {
            image,
            space,
            isa,
            code: Vec::new(),
            sites: Vec::new(),
            digits: Vec::new(),
            codes: Vec::new(),
            commits: false,
            mode: Mode::M,
            before: None,
            starts: HashMap::default(),
            // No start has an odd pc.
            lately: Box::new([(1, Start::default()); LATELY]),
            list: Box::new([Straight::default(); MOST]),
            len: 0,
            open: Straight::default(),
            next: 0,
            index: 0,
            left: 0,
            high: (0, word(spell8(0))),
        }
    }

    /// The same for a log that has the instructions, too. System instructions are in none.
    pub(super) fn of_commits(image: &'a Image, space: SpaceId, isa: Isa) -> Pieces<'a> {
        Pieces {
            commits: true,
            ..Pieces::new(image, space, isa)
        }
    }

    /// The mode of all pieces from now on; there must be none.
    pub(super) fn in_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// The mode of the pieces.
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Adds the instruction at `pc` to the open piece if it comes next there.
    #[inline]
    pub(super) fn grow(&mut self, pc: u64) -> bool {
        if pc != self.next || self.left == 0 {
            return false;
        }
        let Some(insn) = self.code.get(self.index) else {
            return false;
        };
        self.next = pc.wrapping_add(insn.len.into());
        self.index += 1;
        self.left -= 1;
        true
    }

    /// Adds the instructions at the pcs that lines of sixteen digits at the start of the text
    /// spell, as far as they come next in the open piece. Gives the number of lines.
    #[inline]
    pub(super) fn grow_by_text(&mut self, text: &[u8]) -> usize {
        let digits = self.digits.get(self.index..).unwrap_or_default();
        let lines = text.chunks_exact(LINE).zip(digits);
        let (_, high) = self.high;
        let expected = |line: &[u8], low: u64| {
            let Some((first, rest)) = line.split_first_chunk() else {
                return false;
            };
            let Some((second, end)) = rest.split_first_chunk() else {
                return false;
            };
            (word(*first) == high) & (word(*second) == low) & (end == b"\n")
        };
        let same = lines.take(self.left.into());
        let count = same.take_while(|(line, low)| expected(line, **low)).count();
        self.grow_by(count);
        count
    }

    /// How a commit log spells what comes next in the open piece: the second half of the
    /// address, and what follows it.
    #[inline]
    pub(super) fn coming(&self) -> impl Iterator<Item = (u64, SpelledCode)> + '_ {
        let digits = self.digits.get(self.index..).unwrap_or_default();
        let codes = self.codes.get(self.index..).unwrap_or_default();
        let all = digits.iter().copied().zip(codes.iter().copied());
        all.take(self.left.into())
    }

    /// Adds so many instructions of those that come next in the open piece.
    #[inline]
    pub(super) fn grow_by(&mut self, count: usize) {
        if count > 0 {
            self.index += count;
            self.left -= count as u8;
            let last = self.code.get(self.index - 1);
            let end = last.map_or(0, |insn| insn.end);
            self.next = self.open.pc.wrapping_add(end.into());
        }
    }

    /// Takes the last instruction out of the open piece, which ends before it.
    pub(super) fn withdraw<O: Observer>(&mut self, hart: HartId, out: &mut O) -> Option<Site> {
        let last = *self.last()?;
        self.index -= 1;
        self.left += 1;
        self.next = last.pc;
        match self.open.count == self.left {
            true => (self.open.count, self.left) = (0, 0),
            false => self.end(last.pc, hart, out),
        }
        Some(last)
    }

    /// Forgets the open piece, which has one instruction.
    pub(super) fn drop_open(&mut self) {
        (self.open.count, self.left) = (0, 0);
    }

    /// The instruction that ended the last piece, if one has ended since this was asked.
    pub(super) fn take_before(&mut self) -> Option<u32> {
        self.before.take()
    }

    /// The last instruction of the open piece.
    #[inline]
    pub(super) fn last(&self) -> Option<&Site> {
        match self.open.count {
            0 => None,
            _ => self.sites.get(self.index.wrapping_sub(1)),
        }
    }

    /// Ends the open piece: the hart went to `next`.
    #[inline]
    pub(super) fn end<O: Observer>(&mut self, next: u64, hart: HartId, out: &mut O) {
        let count = core::mem::take(&mut self.open.count) - core::mem::take(&mut self.left);
        let last = self.index.wrapping_sub(1);
        let insn = self.code.get(last);
        self.before = insn.map(|insn| insn.bits);
        let branch = insn.is_some_and(Placed::is_branch);
        let taken = branch && next != self.isa.xlen().wrap(self.next);
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        {
            self.list[self.len % MOST] = Straight {
                next,
                last: last as u32,
                count,
                taken: taken.into(),
                ..self.open
            };
        }
        self.len += 1;
        if self.len == MOST {
            self.hand_over(hart, out);
        }
    }

    /// Starts a piece; false where the instruction has to be a step. There must be
    /// no open piece.
    #[inline]
    pub(super) fn start<O: Observer>(&mut self, pc: u64, hart: HartId, out: &mut O) -> bool {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        let (lately, known) = self.lately[(pc / 2) as usize % LATELY];
        let start = match lately == pc {
            true => known,
            false => self.look_up(pc, hart, out),
        };
        let first = start.first as usize;
        let (true, Some(insn)) = (start.count > 0, self.code.get(first)) else {
            return false;
        };
        self.open = Straight {
            pc,
            count: start.count,
            ..Straight::default()
        };
        self.next = pc.wrapping_add(insn.len.into());
        self.index = first + 1;
        self.left = start.count - 1;
        let high = (pc >> 32) as u32;
        if self.high.0 != high {
            self.high = (high, word(spell8(high)));
        }
        true
    }

    #[inline(never)]
    fn look_up<O: Observer>(&mut self, pc: u64, hart: HartId, out: &mut O) -> Start {
        let start = match self.starts.get(&pc) {
            Some(start) => *start,
            None => self.decode(pc, hart, out),
        };
        // As above.
        #[allow(clippy::indexing_slicing)]
        {
            self.lately[(pc / 2) as usize % LATELY] = (pc, start);
        }
        start
    }

    /// Hands over all pieces but the open one.
    #[inline(never)]
    pub(super) fn hand_over<O: Observer>(&mut self, hart: HartId, out: &mut O) {
        let list = self.list.get(..self.len).unwrap_or_default();
        self.len = 0;
        if !list.is_empty() {
            let all = Straights {
                code: &self.code,
                list,
                count: Straight::count_all(list),
                accesses: &[],
                changes: Changes::NONE,
                context: Context(0),
                mode: self.mode,
                news: None,
            };
            out.straights(hart, &all);
        }
    }

    /// Decodes the code from `pc` on.
    #[cold]
    #[inline(never)]
    fn decode<O: Observer>(&mut self, pc: u64, hart: HartId, out: &mut O) -> Start {
        if self.code.len() >= ROOM || self.starts.len() >= ROOM {
            self.hand_over(hart, out);
            self.code.clear();
            self.sites.clear();
            self.digits.clear();
            self.codes.clear();
            self.starts.clear();
            self.lately.fill((1, Start::default()));
        }
        let mut start = Start {
            first: self.code.len() as u32,
            count: 0,
        };
        let (mut at, mut before) = (pc, Placed::default());
        while start.count < LONGEST
            && let Some(site) = self.fetch(at)
        {
            let flow = Flow::of_retired(site.bits, self.isa);
            before = Placed::after(&before, site.bits, flow, 0);
            self.code.push(before);
            self.sites.push(site);
            self.digits.push(word(spell8(at as u32)));
            if self.commits {
                self.codes.push(SpelledCode::new(site.bits));
            }
            start.count += 1;
            at = at.wrapping_add(site.len.into());
            let straight = flow.is_sequential() || matches!(flow, Flow::Branch { .. });
            // The first half of the address is the same in all of a piece; and the address
            // space ends after code that ends at its last byte.
            if !straight || at >> 32 != pc >> 32 {
                break;
            }
        }
        self.starts.insert(pc, start);
        start
    }

    /// An instruction that a piece may contain.
    fn fetch(&self, pc: u64) -> Option<Site> {
        let isa = self.image.fetch(self.space, pc)?.isa;
        let site = Site::fetch(self.image, self.space, pc)?;
        let usual = site.exits != Exits::Trap && matches!(site.len, 2 | 4);
        let system = self.commits && (site.bits & 0x7f == 0x73 || site.is_table());
        (usual && !system && isa == self.isa).then_some(site)
    }
}
