//! Commits that go on as the code does: their lines are compared with what they have to be,
//! and their instructions are given many at once.
//!
//! Only what leaves no doubt is dealt with here: lines of one hart in one mode, without
//! system instructions, each where the one before can send the hart. Anything else is for
//! [`EntrySteps`], which first gets the last of these instructions: it waits there for the
//! line that shows where it went.

use hartrace_flow::erase::{Erased, Steps};
use hartrace_flow::{HartId, Image, Mode, SpaceId};
use hartrace_isa::{Isa, Xlen};
use memchr::memchr;

use crate::entry::{EntrySteps, Out};
use crate::lines::MAX_LINE;
use crate::pieces::{Pieces, Spelled};
use crate::site::Exits;
use crate::text::spell8;

/// Bytes of a commit line up to the last eight digits of its pc, and of a line of `-l`: on
/// RV64, where there are eight more, and on RV32.
const COMMIT: usize = 22;
const LISTED: usize = 20;
const NARROW_COMMIT: usize = COMMIT - 8;
const NARROW_LISTED: usize = LISTED - 8;

/// Straight-line code of one hart.
#[derive(Clone, Debug)]
pub(super) struct Straightaway<'a> {
    pieces: Pieces<'a>,
    hart: HartId,
    /// XLEN is 32: lines have eight digits of their pc.
    narrow: bool,
    /// How lines of the open piece begin.
    commit: [u8; COMMIT],
    listed: [u8; LISTED],
    /// The first half of their pcs.
    high: u32,
    /// A jump could have gone anywhere.
    jumped: bool,
    /// What `EntrySteps` knows of the hart is behind.
    ahead: bool,
}

impl<'a> Straightaway<'a> {
    /// For code of this instruction set.
    pub(super) fn new(image: &'a Image, isa: Isa) -> Straightaway<'a> {
        Straightaway {
            pieces: Pieces::of_commits(image, SpaceId::FIRST, isa),
            hart: HartId(0),
            narrow: isa.xlen() == Xlen::Rv32,
            commit: *b"core   0: 3 0x00000000",
            listed: *b"core   0: 0x00000000",
            high: 0,
            jumped: false,
            ahead: false,
        }
    }

    /// Takes lines at the start of the text as far as they say what comes next; where
    /// `listing`, each may have its line of `-l` before it. Gives the number of lines and
    /// their bytes.
    #[inline]
    pub(super) fn expected(&mut self, text: &[u8], listing: bool) -> (usize, usize) {
        match self.narrow {
            true => self.lines::<NARROW_COMMIT, NARROW_LISTED>(text, listing),
            false => self.lines::<COMMIT, LISTED>(text, listing),
        }
    }

    /// The same, where lines have these many bytes before the last eight digits.
    #[inline]
    fn lines<const C: usize, const L: usize>(
        &mut self,
        text: &[u8],
        listing: bool,
    ) -> (usize, usize) {
        let begins = (
            self.commit.first_chunk::<C>(),
            self.listed.first_chunk::<L>(),
        );
        let (Some(commit), Some(listed)) = begins else {
            return (0, 0);
        };
        let (mut rest, mut lines, mut count) = (text, 0, 0);
        for (low, code) in self.pieces.coming() {
            let (mut from, mut more) = (rest, 1);
            if listing && let Some(behind) = behind(from, listed, low, code.listed) {
                (from, more) = (behind, 2);
            }
            let Some(behind) = behind(from, commit, low, code.commit) else {
                break;
            };
            rest = behind;
            lines += more;
            count += 1;
        }
        self.pieces.grow_by(count);
        (lines, text.len() - rest.len())
    }

    /// Whether [`Straightaway::end`] has something to do.
    #[inline]
    pub(super) const fn is_ahead(&self) -> bool {
        self.ahead
    }

    /// Whether lines of this width are dealt with.
    #[inline]
    pub(super) const fn is_of_width(&self, narrow: bool) -> bool {
        self.narrow == narrow
    }

    /// Whose instructions these are.
    pub(super) const fn hart(&self) -> HartId {
        self.hart
    }

    /// Whether the open instruction sends this hart to `pc`, in the same mode.
    #[inline]
    pub(super) fn leads(&self, hart: HartId, mode: Mode, pc: u64) -> bool {
        let last = self.pieces.last();
        last.is_some_and(|last| last.allows(pc)) && hart == self.hart && mode == self.pieces.mode()
    }

    /// The next instruction, which [`Straightaway::leads`] has allowed. False where it is
    /// not the one of the program, or none for here.
    #[inline]
    pub(super) fn follow(&mut self, pc: u64, bits: u32, out: &mut Out<'_, '_>) -> bool {
        if self.pieces.grow(pc) {
            if self.pieces.last().is_some_and(|site| site.bits == bits) {
                return true;
            }
            self.pieces.withdraw(self.hart, &mut erased(out));
            return false;
        }
        let last = self.pieces.last();
        self.jumped |= last.is_some_and(|last| last.exits == Exits::Anywhere);
        self.pieces.end(pc, self.hart, &mut erased(out));
        self.open(pc, bits, out)
    }

    /// The first instruction, after which nothing waits to be given. False as before.
    pub(super) fn begin(
        &mut self,
        (hart, mode): (HartId, Mode),
        pc: u64,
        bits: u32,
        out: &mut Out<'_, '_>,
    ) -> bool {
        let number = u8::try_from(hart.0).ok().filter(|&number| number < 10);
        // Mode D is only in lines of other tools.
        let (Some(number), Mode::M | Mode::S | Mode::U) = (number, mode) else {
            return false;
        };
        self.hart = hart;
        self.pieces.in_mode(mode);
        self.commit[7] = b'0' + number;
        self.listed[7] = b'0' + number;
        self.commit[10] = b'0' + mode.code();
        self.ahead = self.open(pc, bits, out);
        self.ahead
    }

    #[inline]
    fn open(&mut self, pc: u64, bits: u32, out: &mut Out<'_, '_>) -> bool {
        let started = self.pieces.start(pc, self.hart, &mut erased(out));
        if !started || self.pieces.last().is_none_or(|site| site.bits != bits) {
            self.pieces.drop_open();
            return false;
        }
        let high = (pc >> 32) as u32;
        if high != self.high {
            self.high = high;
            let digits = spell8(high);
            self.commit[14..].copy_from_slice(&digits);
            self.listed[12..].copy_from_slice(&digits);
        }
        true
    }

    /// Hands over what has ended.
    pub(super) fn hand_over(&mut self, out: &mut Out<'_, '_>) {
        self.pieces.hand_over(self.hart, &mut erased(out));
    }

    /// Hands over everything; the last instruction waits in `steps`.
    #[inline(never)]
    pub(super) fn end(&mut self, steps: &mut EntrySteps<'_>, out: &mut Out<'_, '_>) {
        self.ahead = false;
        let last = self.pieces.withdraw(self.hart, &mut erased(out));
        self.hand_over(out);
        let mode = self.pieces.mode();
        let Some(hart) = steps.current() else {
            return;
        };
        if let Some(before) = self.pieces.take_before() {
            hart.resume(before, mode);
        }
        if core::mem::take(&mut self.jumped) {
            hart.jumped();
        }
        if let Some(last) = last {
            hart.wait(last.pc, last.bits, mode);
        }
    }
}

/// The observer of what is given here.
fn erased<'s, 'd>(out: &'s mut Out<'_, 'd>) -> Erased<'s, 'd, Steps> {
    Erased::new(out.to)
}

/// What is behind the line at the start of the text, if it starts with these.
#[inline(always)]
fn behind<'t, const N: usize>(
    text: &'t [u8],
    begin: &[u8; N],
    low: u64,
    code: Spelled,
) -> Option<&'t [u8]> {
    let (first, rest) = text.split_first_chunk::<N>()?;
    let (second, rest) = rest.split_first_chunk()?;
    let len = code.starts(*rest.first_chunk()?)?;
    if first != begin || u64::from_le_bytes(*second) != low {
        return None;
    }
    let from = N + 8 + len;
    let end = from + memchr(b'\n', text.get(from..)?)?;
    (end <= MAX_LINE).then_some(text.get(end + 1..)?)
}
