//! Makes a code history of what harts execute.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use hartrace_isa::length;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{CodeHistory, CodePiece, NamedSync, VaryingCode};
use crate::{HartId, News, PerHart, Placed, Since, Straight, Straights, Version};

/// Halfwords in a page of code.
const PAGE: usize = 2048;

/// Pieces of code that were looked at last, by hart: a power of two.
const SEEN: usize = 1 << 14;

/// Takes note of the code of every instruction that harts execute.
///
/// [`CodeRecorder::synchronised`] reports which instructions the synchronisation messages
/// of a trace name. The moments at which code changed are counted from these.
///
/// ```
/// use hartrace_flow::{CodeRecorder, HartId, NamedSync, Since};
///
/// let mut recorder = CodeRecorder::new();
/// let sync = NamedSync { hart: HartId(0), offset: 12, address: 0x1000 };
/// recorder.synchronised(sync, 0);
/// recorder.insn(HartId(0), (0x1000, 0x0001), 0);
/// recorder.insn(HartId(0), (0x1002, 0x0001), 1);
/// recorder.insn(HartId(0), (0x1002, 0x8082), 2); // another one
/// let history = recorder.finish();
/// assert_eq!(history.pieces[0].bytes, [1, 0]);
/// let varying = &history.varying[0];
/// assert_eq!(varying.contents, [[0x01, 0x00], [0x82, 0x80]]);
/// assert_eq!(varying.versions[1].since, Since::Sync { offset: 12, halfwords: 2 });
/// ```
#[derive(Clone, Debug, Default)]
pub struct CodeRecorder {
    pages: HashMap<u64, Box<Page>, FxBuildHasher>,
    /// By the address of the instruction.
    varying: BTreeMap<u64, Varying>,
    /// Code that changed was executed, or may be: nothing is known for good.
    changes: bool,
    harts: PerHart<Hart>,
    /// Those that versions count from.
    syncs: Vec<NamedSync>,
}

/// The instructions of a page, by the halfword with which they start.
#[derive(Clone, Debug)]
struct Page {
    /// The instruction there; 0, which never executes, if there was none.
    bits: [u32; PAGE],
    /// It was not always the same; `bits` is the first one.
    varies: [u64; PAGE / 64],
}

impl Page {
    fn new() -> Box<Page> {
        Box::new(Page {
            bits: [0; PAGE],
            varies: [0; PAGE / 64],
        })
    }

    fn varies(&self, at: usize) -> bool {
        let word = self.varies.get(at / 64).copied().unwrap_or(0);
        word >> (at % 64) & 1 != 0
    }
}

/// An instruction that is not always the same.
#[derive(Clone, Debug)]
struct Varying {
    /// The first of them is what everyone saw before it changed.
    contents: Vec<u32>,
    /// Which of them each hart saw last, if not the first.
    last: Vec<(HartId, usize)>,
    versions: Vec<Version>,
}

impl Varying {
    fn new(bits: u32) -> Varying {
        Varying {
            contents: vec![bits],
            last: Vec::new(),
            versions: vec![Version {
                hart: None,
                context: None,
                since: Since::Start,
                content: 0,
                doubtful: false,
            }],
        }
    }

    /// A hart executes this instruction: the number of a new version, if it was
    /// another one before.
    fn change(&mut self, hart: HartId, bits: u32) -> Option<usize> {
        let known = self.contents.iter().position(|known| *known == bits);
        let content = known.unwrap_or_else(|| {
            self.contents.push(bits);
            self.contents.len() - 1
        });
        let own = self.last.iter().position(|(id, _)| *id == hart);
        let before = own
            .and_then(|own| self.last.get(own))
            .map_or(0, |own| own.1);
        if content == before {
            return None;
        }
        let version = |since, content| Version {
            hart: Some(hart),
            context: None,
            since,
            content,
            doubtful: false,
        };
        match own.and_then(|own| self.last.get_mut(own)) {
            Some(own) => own.1 = content,
            None => {
                self.last.push((hart, content));
                self.versions.push(version(Since::Start, 0));
            }
        }
        self.versions.push(version(Since::Start, content));
        Some(self.versions.len() - 1)
    }

    /// As part of a history. What is said of one hart goes before what is said of all.
    fn code(mut self, address: u64) -> VaryingCode {
        self.versions.sort_by_key(|version| version.hart.is_none());
        VaryingCode {
            address,
            len: 2,
            contents: self.contents.iter().map(|bits| bytes(*bits)).collect(),
            versions: self.versions,
        }
    }
}

/// An instruction as it is in memory.
fn bytes(bits: u32) -> Vec<u8> {
    let all = bits.to_le_bytes();
    let len = usize::from(length(bits as u16)).min(all.len());
    all.iter().take(len).copied().collect()
}

/// What is kept of a hart.
#[derive(Clone, Debug)]
struct Hart {
    seen: Box<[Seen]>,
    /// [`News::number`] of the last pieces, if none were missed; otherwise 0.
    number: u64,
    /// Length of its decoded code when it was last looked at.
    code_len: usize,
    /// The last synchronisation, and the halfwords before it.
    sync: Option<(NamedSync, u64)>,
    /// Changes since.
    unplaced: Vec<Change>,
}

impl Default for Hart {
    fn default() -> Hart {
        Hart {
            seen: vec![Seen::default(); SEEN].into(),
            number: 0,
            code_len: 0,
            sync: None,
            unplaced: Vec::new(),
        }
    }
}

/// A version of which the moment in the trace is not known yet.
#[derive(Clone, Copy, Debug)]
struct Change {
    address: u64,
    version: usize,
    /// Halfwords retired before.
    at: u64,
}

/// A piece of decoded code at an address, all of which has always been the same.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    pc: u64,
    first: u32,
    bits: u32,
}

#[inline]
fn slot(pc: u64) -> usize {
    (pc >> 1 ^ pc >> 13) as usize & (SEEN - 1)
}

impl Hart {
    /// Whether pieces are not new to an observer that was told of all before.
    #[inline]
    fn knows(&mut self, news: News) -> bool {
        let told = news.number == 1 || self.number + 1 == news.number;
        self.number = if told { news.number } else { 0 };
        told && !news.any
    }

    /// Whether a piece was looked at before.
    fn has_seen(&self, piece: &Straight, first: &Placed) -> bool {
        let seen = self.seen.get(slot(piece.pc));
        seen.is_some_and(|seen| {
            (seen.pc, seen.first, seen.bits) == (piece.pc, piece.first() as u32, first.bits)
        })
    }
}

impl CodeRecorder {
    /// Nothing has been executed.
    #[must_use]
    pub fn new() -> CodeRecorder {
        CodeRecorder::default()
    }

    /// Whether there is nothing to learn from the next pieces of a hart. To be asked before
    /// each call of [`CodeRecorder::straights`], which may then be omitted.
    #[inline]
    pub fn knows(&mut self, id: HartId, news: Option<News>) -> bool {
        let hart = self.harts.of(id);
        news.is_some_and(|news| hart.knows(news)) && !self.changes
    }

    /// Pieces of straight-line code, executed after so many halfwords had retired.
    pub fn straights(&mut self, id: HartId, code: &Straights<'_>, mut before: u64) {
        let hart = self.harts.of(id);
        if code.code.len() < hart.code_len {
            // Numbers mean other code now.
            hart.seen.fill(Seen::default());
        }
        hart.code_len = code.code.len();
        for piece in code.list {
            let insns = code.insns(piece);
            let (Some(first), Some(last)) = (insns.first(), insns.last()) else {
                continue;
            };
            if !self.harts.of(id).has_seen(piece, first) {
                self.piece(id, piece, code, before);
            }
            before += u64::from(last.end / 2);
        }
    }

    /// A piece that was not looked at lately. With it goes all code that was decoded
    /// together with it, of which more may be executed without being new.
    #[inline(never)]
    fn piece(&mut self, id: HartId, piece: &Straight, code: &Straights<'_>, before: u64) {
        let decoded = code.code.get(piece.first()..).unwrap_or_default();
        let starts = decoded.iter().skip(1).take_while(|insn| insn.offset != 0);
        let len = (1 + starts.count()).min(decoded.len());
        let count = usize::from(piece.count).min(len);
        let insns = decoded.get(..count).unwrap_or_default();
        let rest = decoded.get(count..len).unwrap_or_default();
        let address = |insn: &Placed| piece.pc.wrapping_add(insn.offset.into());
        let mut constant = true;
        for insn in insns {
            let before = before + u64::from(insn.offset / 2);
            constant &= self.see(id, address(insn), insn.bits, before);
        }
        for insn in rest {
            constant &= self.expect(address(insn), insn.bits);
        }
        let (Some(first), true) = (insns.first(), constant) else {
            return;
        };
        if let Some(slot) = self.harts.of(id).seen.get_mut(slot(piece.pc)) {
            *slot = Seen {
                pc: piece.pc,
                first: piece.first() as u32,
                bits: first.bits,
            };
        }
    }

    /// An instruction, by its address and bits, that a hart executed after so many
    /// halfwords had retired; perhaps it trapped.
    pub fn insn(&mut self, id: HartId, (pc, bits): (u64, u32), before: u64) {
        self.see(id, pc, bits, before);
    }

    /// A synchronisation message names the instruction of a hart before which so many
    /// halfwords had retired. To be called when the instructions up to it were shown.
    pub fn synchronised(&mut self, sync: NamedSync, halfwords: u64) {
        let hart = self.harts.of(sync.hart);
        let before = hart.sync.replace((sync, halfwords));
        let later = hart
            .unplaced
            .partition_point(|change| change.at < halfwords);
        for change in hart.unplaced.drain(..later) {
            place(&mut self.varying, &mut self.syncs, change, before);
        }
    }

    /// The history.
    #[must_use]
    pub fn finish(mut self) -> CodeHistory {
        for (_, hart) in self.harts.iter_mut() {
            for change in core::mem::take(&mut hart.unplaced) {
                place(&mut self.varying, &mut self.syncs, change, hart.sync);
            }
        }
        let pieces = self.pieces();
        let varying = self.varying.into_iter();
        self.syncs
            .sort_unstable_by_key(|sync| (sync.offset, sync.hart));
        CodeHistory {
            pieces,
            syncs: self.syncs,
            varying: varying.map(|(at, code)| code.code(at)).collect(),
        }
    }

    /// Code that was always the same, in order. Where such instructions overlap and do not
    /// fit together, one of them is put among those that vary.
    fn pieces(&mut self) -> Vec<CodePiece> {
        let mut numbers: Vec<u64> = self.pages.keys().copied().collect();
        numbers.sort_unstable();
        let mut pieces: Vec<CodePiece> = Vec::new();
        for number in numbers {
            let Some(page) = self.pages.get(&number) else {
                continue;
            };
            for (at, &bits) in page.bits.iter().enumerate() {
                if bits == 0 || page.varies(at) {
                    continue;
                }
                let address = (number << 12) + 2 * at as u64;
                if !add(&mut pieces, address, &bytes(bits)) {
                    self.varying.insert(address, Varying::new(bits));
                }
            }
        }
        pieces
    }

    /// Looks at an instruction. Whether it has always been the same.
    fn see(&mut self, id: HartId, pc: u64, bits: u32, before: u64) -> bool {
        let page = self.pages.entry(pc >> 12).or_insert_with(Page::new);
        let at = (pc >> 1) as usize % PAGE;
        let varies = page.varies(at);
        match page.bits.get_mut(at) {
            Some(known) if *known == bits && !varies => return true,
            Some(known) if *known == 0 => {
                *known = bits;
                return true;
            }
            _ => {}
        }
        self.vary(id, pc, bits, before);
        false
    }

    /// Looks at an instruction that may be executed later on.
    fn expect(&mut self, pc: u64, bits: u32) -> bool {
        let page = self.pages.entry(pc >> 12).or_insert_with(Page::new);
        let at = (pc >> 1) as usize % PAGE;
        let varies = page.varies(at);
        let known = page.bits.get_mut(at);
        let constant = known.is_some_and(|known| {
            if *known == 0 {
                *known = bits;
            }
            *known == bits && !varies
        });
        self.changes |= !constant;
        constant
    }

    /// [`CodeRecorder::see`] for one that has not.
    #[cold]
    fn vary(&mut self, id: HartId, pc: u64, bits: u32, before: u64) {
        self.changes = true;
        let at = (pc >> 1) as usize % PAGE;
        if let Some(page) = self.pages.get_mut(&(pc >> 12))
            && !page.varies(at)
        {
            let before = page.bits.get(at).copied().unwrap_or(0);
            self.varying.insert(pc, Varying::new(before));
            if let Some(word) = page.varies.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
            // It may be part of any of them.
            for (_, hart) in self.harts.iter_mut() {
                hart.seen.fill(Seen::default());
            }
        }
        let Some(varying) = self.varying.get_mut(&pc) else {
            return;
        };
        if let Some(version) = varying.change(id, bits) {
            let hart = self.harts.of(id);
            hart.unplaced.push(Change {
                address: pc,
                version,
                at: before,
            });
        }
    }
}

/// Adds an instruction after others; `false` if it contradicts the last of them.
fn add(pieces: &mut Vec<CodePiece>, address: u64, bytes: &[u8]) -> bool {
    if let Some(last) = pieces.last_mut() {
        let at = address.wrapping_sub(last.address) as usize;
        if let Some(known) = last.bytes.get(at..) {
            let both = known.len().min(bytes.len());
            if known.get(..both) != bytes.get(..both) {
                return false;
            }
            last.bytes.extend(bytes.get(both..).unwrap_or_default());
            return true;
        }
    }
    pieces.push(CodePiece {
        address,
        bytes: bytes.to_vec(),
    });
    true
}

/// Says since when a version was in place: so long after the last synchronisation.
fn place(
    varying: &mut BTreeMap<u64, Varying>,
    syncs: &mut Vec<NamedSync>,
    change: Change,
    sync: Option<(NamedSync, u64)>,
) {
    let varying = varying.get_mut(&change.address);
    let version = varying.and_then(|varying| varying.versions.get_mut(change.version));
    if let (Some(version), Some((sync, before))) = (version, sync) {
        version.since = Since::Sync {
            offset: sync.offset,
            halfwords: change.at.saturating_sub(before),
        };
        if !syncs.iter().rev().take(64).any(|known| *known == sync) {
            syncs.push(sync);
        }
    }
}

#[cfg(test)]
mod tests {
    use hartrace_isa::{Flow, Isa};

    use super::*;
    use crate::{Changes, Context, Mode};

    const NOP: u32 = 0x0001;
    const RET: u32 = 0x8082;

    /// Shows the first instructions of a block of three `nop`s and a `ret` at 0x1000.
    fn show(recorder: &mut CodeRecorder, count: u8, news: Option<News>) {
        let mut before = Placed::default();
        let code = [NOP, NOP, NOP, RET].map(|bits| {
            let flow = Flow::of_retired(bits, Isa::RV64GC);
            before = Placed::after(&before, bits, flow, 1);
            before
        });
        let piece = Straight {
            pc: 0x1000,
            count,
            ..Straight::default()
        }
        .moved_to(0);
        let all = Straights {
            code: &code,
            list: &[piece],
            count: count.into(),
            accesses: &[],
            changes: Changes::NONE,
            context: Context(0),
            mode: Mode::M,
            news,
        };
        if !recorder.knows(HartId(0), news) {
            recorder.straights(HartId(0), &all, 0);
        }
    }

    fn bytes_of(recorder: CodeRecorder) -> usize {
        let pieces = recorder.finish().pieces;
        pieces.iter().map(|piece| piece.bytes.len()).sum()
    }

    const fn news(number: u64, any: bool) -> Option<News> {
        Some(News { number, any })
    }

    #[test]
    fn code_decoded_with_a_piece_is_known_when_it_runs_later() {
        let mut recorder = CodeRecorder::new();
        show(&mut recorder, 2, news(1, true));
        assert!(recorder.knows(HartId(0), news(2, false)));
        assert_eq!(bytes_of(recorder), 8);
    }

    #[test]
    fn an_observer_that_missed_pieces_looks_at_all() {
        let mut recorder = CodeRecorder::new();
        show(&mut recorder, 4, news(3, false));
        assert_eq!(bytes_of(recorder), 8);
        let mut recorder = CodeRecorder::new();
        assert!(!recorder.knows(HartId(0), news(1, true)));
        show(&mut recorder, 4, news(3, false));
        assert_eq!(bytes_of(recorder), 8);
    }

    #[test]
    fn nothing_is_known_for_good_once_code_has_changed() {
        let mut recorder = CodeRecorder::new();
        show(&mut recorder, 4, news(1, true));
        recorder.insn(HartId(0), (0x1002, RET), 4);
        assert!(!recorder.knows(HartId(0), news(2, false)));
    }
}
