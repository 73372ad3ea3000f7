//! Block tables: the path from an address to the next decision, computed once.
//!
//! Between two decisions (conditional branches, indirect jumps) the program
//! alone determines what executes. A [`Block`] holds that path, with direct
//! jumps followed: its halfwords and instructions, the [`Run`]s to emit for
//! either outcome, and links to the next block for both. Following a branch is
//! an indexed load without a search.
//!
//! The tables fill on demand and are O(code). They belong to one decoder thread
//! and serve all its harts; nothing in them is shared or locked.

pub(crate) mod habits;
pub(crate) mod id;
mod stretches;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use hartrace_isa::{Flow, Itype, ItypeTable, Link, Xlen};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use self::habits::Habit;
pub(crate) use self::id::{BlockId, NOWHERE};
use crate::chain::{Chain, Chains, Gathered, Place};
use crate::cuts::{Cut, Cuts};
use crate::image::Space;
use crate::kept::new_store;
use crate::stretch::Stretches;
use crate::{Exit, Fetched, Image, Kept, Outcomes, Run, SpaceId};

/// Which jumps the walk may follow by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// A jump through a register that the instruction right before it loaded
    /// with a constant counts as direct (E-Trace `sijump`, N-Trace
    /// EnSequentialJump).
    pub sequential_jumps: bool,
    /// The same for returns. Where E-Trace has four-bit `itype` codes, they are
    /// reported all the same.
    pub sequential_returns: bool,
    /// `jalr` through x0 counts as direct: its target stands in the instruction.
    /// E-Trace says so; the N-Trace tables class every `jalr` as indirect.
    pub absolute_jumps: bool,
    /// Direct jumps and calls use up evidence, as taken branches do (N-Trace
    /// EnAllJumps).
    pub all_jumps: bool,
    /// Calls and returns are what the N-Trace reference encoder takes for them
    /// ([`ItypeTable::NexRv`]), for traces it made with implicit return.
    pub nexrv_links: bool,
}

impl Rules {
    /// Whether a jump through a register counts as direct where the
    /// instruction right before it loaded the register with a constant.
    pub(crate) const fn infers(&self, link: Option<Link>) -> bool {
        match link {
            Some(Link::Return) => self.sequential_returns,
            _ => self.sequential_jumps,
        }
    }
}

/// A successor that has not been looked up yet.
const UNLINKED: BlockId = BlockId::MAX;

/// Direct jumps followed in one block, each over a page of code at most. A
/// longer way goes on in another block.
const MAX_RUNS: usize = 4;

/// Outcomes in one chain.
pub(crate) const MAX_REACH: u8 = 8;

/// Runs gathered in one chain, one block more at most.
const MAX_CHAIN: usize = 64;

/// Straight code is cut at every multiple of this many bytes, whatever address
/// the walk came in at: so the work for one block is bounded, and the cuts do
/// not depend on where the trace was entered.
const PAGE: u64 = 4096;

/// What ends a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A conditional branch.
    Branch,
    /// A direct jump that uses up evidence ([`Rules::all_jumps`]).
    Jump,
    /// No decision; the way goes on in the next block.
    Continue,
    /// An indirect jump; the run's exit says which kind.
    Target,
    /// ecall or ebreak, not part of the block.
    Trap,
    /// The way goes on in code of another space: which one depends on when that is.
    Border,
    /// No code after this.
    Missing,
}

/// The way to the next decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Length of the way, the deciding instruction included.
    pub(crate) halfwords: u32,
    /// The same in instructions.
    pub(crate) insns: u32,
    /// First of the runs for "not taken" (or the only ones).
    runs: u32,
    /// Next blocks: not taken (or the only one), taken.
    next: [BlockId; 2],
    /// The deciding instruction, or where code ends.
    pub(crate) at: u64,
    /// Number of runs per outcome.
    count: u8,
    pub(crate) kind: Kind,
    /// Outcomes that name a chain from here, 0 to 8.
    reach: u8,
    /// A chain was built, so `reach` is no mere guess.
    measured: bool,
}

impl Block {
    /// What stands at [`NOWHERE`].
    const NOWHERE: Block = Block {
        halfwords: 0,
        insns: 0,
        runs: 0,
        next: [NOWHERE; 2],
        at: 0,
        count: 0,
        kind: Kind::Missing,
        reach: 0,
        measured: true,
    };
}

/// A block that was looked up; none with [`NOWHERE`].
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    pc: u64,
    space: SpaceId,
    id: BlockId,
}

/// A power of two: 16 KiB.
const RECENT: usize = 1 << 10;

/// Block tables over an image.
#[derive(Debug)]
pub struct Blocks<'a> {
    image: &'a Image,
    rules: Rules,
    xlen: Xlen,
    blocks: Vec<Block>,
    runs: Vec<Run>,
    /// The number of `runs` as a store.
    number: u32,
    /// Blocks found last, by their addresses.
    recent: Box<[Recent]>,
    /// From space and address to block.
    known: HashMap<(SpaceId, u64), BlockId, FxBuildHasher>,
    chains: Chains,
    /// By block.
    habits: Vec<Habit>,
    stretches: Stretches,
    cuts: Cuts,
}

impl<'a> Blocks<'a> {
    /// Empty tables.
    #[must_use]
    pub fn new(image: &'a Image, rules: Rules) -> Blocks<'a> {
        Blocks {
            image,
            rules,
            xlen: image.isa().map_or(Xlen::Rv64, |isa| isa.xlen()),
            blocks: vec![Block::NOWHERE],
            runs: Vec::new(),
            number: new_store(),
            recent: vec![Recent::default(); RECENT].into(),
            known: HashMap::default(),
            chains: Chains::new(),
            habits: Vec::new(),
            stretches: Stretches::new(),
            cuts: Cuts::new(),
        }
    }

    /// Width of the addresses in the image.
    #[inline]
    pub(crate) fn xlen(&self) -> Xlen {
        self.xlen
    }

    /// The image the tables are made of.
    #[must_use]
    pub fn image(&self) -> &'a Image {
        self.image
    }

    /// Whether a jump goes to the constant that was loaded right before
    /// it, at `pc`.
    pub(crate) fn is_inferred(&self, jump: Flow, (before, pc): (Flow, u64)) -> bool {
        self.rules.infers(jump.link()) && jump.sequential_target(before, pc, self.xlen).is_some()
    }

    /// Number of blocks found so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len() - 1
    }

    /// Whether nothing has been walked yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn block(&self, id: BlockId) -> Block {
        // Ids come from this table; the fallback only spares a panic.
        match self.blocks.get(id as usize) {
            Some(&block) => block,
            None => Block::NOWHERE,
        }
    }

    /// The runs of a block for one outcome. The `next` of the last is only
    /// filled in where the code determines it.
    #[inline]
    pub(crate) fn runs(&self, block: &Block, taken: bool) -> &[Run] {
        let count = usize::from(block.count);
        let from = block.runs as usize + if taken { count } else { 0 };
        self.runs.get(from..from + count).unwrap_or_default()
    }

    /// The name of the runs of a block for one outcome.
    #[inline]
    pub(crate) fn kept(&self, block: &Block, taken: bool) -> Kept {
        let skip = if taken { u32::from(block.count) } else { 0 };
        Kept::new(self.number, block.runs + skip)
    }

    /// The part of a run before an address after its first; `None` if no
    /// instruction starts there.
    pub(crate) fn cut(&mut self, space: SpaceId, run: &Run, at: u64) -> Option<Cut> {
        self.cuts.find(self.image, space, run, at)
    }

    /// Whether a block begins with a branch, at this address.
    #[inline]
    pub(crate) fn is_branch(&self, id: BlockId, address: u64) -> bool {
        let block = self.blocks.get(id as usize);
        block.is_some_and(|b| b.kind == Kind::Branch && b.at == address)
    }

    /// Where a block goes for one outcome.
    pub(crate) fn goes_to(&self, block: &Block, taken: bool) -> u64 {
        let last = self.runs(block, taken).last();
        last.map_or(block.at, |r| r.next)
    }

    /// The block after `id` for one outcome.
    #[inline]
    pub(crate) fn follow(&mut self, space: SpaceId, id: BlockId, taken: bool) -> BlockId {
        let next = self.blocks.get(id as usize).map_or(NOWHERE, |b| {
            let [not_taken, when_taken] = b.next;
            if taken { when_taken } else { not_taken }
        });
        if next == UNLINKED {
            self.link(space, id, taken)
        } else {
            next
        }
    }

    #[cold]
    fn link(&mut self, space: SpaceId, id: BlockId, taken: bool) -> BlockId {
        let block = self.block(id);
        let to = self.goes_to(&block, taken);
        let next = self.find_next(space, to);
        if let Some(block) = self.blocks.get_mut(id as usize) {
            let [not_taken, when_taken] = &mut block.next;
            *(if taken { when_taken } else { not_taken }) = next;
        }
        next
    }

    /// The block after one in this space. A version of code may be in place no longer
    /// when it has been left, were it by a jump to itself.
    fn find_next(&mut self, space: SpaceId, pc: u64) -> BlockId {
        match self.image.space(space) {
            Some(code) if !code.is_version() => self.find(space, pc),
            _ => NOWHERE,
        }
    }

    /// The block that starts at an address.
    #[inline]
    pub(crate) fn find(&mut self, space: SpaceId, pc: u64) -> BlockId {
        let slot = (pc >> 1) as usize & (RECENT - 1);
        if let Some(recent) = self.recent.get(slot)
            && (recent.pc, recent.space) == (pc, space)
            && recent.id != NOWHERE
        {
            return recent.id;
        }
        let id = self.look_up(space, pc);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = Recent { pc, space, id };
        }
        id
    }

    #[inline(never)]
    fn look_up(&mut self, space: SpaceId, pc: u64) -> BlockId {
        if let Some(&id) = self.known.get(&(space, pc)) {
            return id;
        }
        // Addresses without code are not remembered: a damaged trace can name
        // any number of them.
        let image = self.image;
        match image.space(space) {
            Some(code) if pc & 1 == 0 && code.holds(pc) => {
                let id = self.build(code, pc);
                self.known.insert((space, pc), id);
                id
            }
            _ => NOWHERE,
        }
    }

    /// Outcomes that name a chain from this block, 0 to 8.
    #[inline]
    pub(crate) fn reach(&self, id: BlockId) -> u8 {
        self.blocks.get(id as usize).map_or(0, |b| b.reach)
    }

    /// The chain from a block through the next outcomes, at most as many as
    /// its [`Blocks::reach`] says.
    #[inline]
    pub(crate) fn chain(&mut self, id: BlockId, outcomes: Outcomes) -> Option<Chain> {
        let chain = self.chains.find(Place::new(id), outcomes).copied()?;
        self.chains.earn(1);
        Some(chain)
    }

    /// The same, but [`Blocks::earn_chains`] is left to the caller.
    #[inline(always)]
    pub(crate) fn known_chain(&self, place: Place, outcomes: Outcomes) -> Option<&Chain> {
        self.chains.find(place, outcomes)
    }

    /// So many chains were found.
    #[inline]
    pub(crate) fn earn_chains(&mut self, count: u64) {
        self.chains.earn(count);
    }

    /// There was no chain: builds it for the next time, if it is worth it.
    /// `more` are the outcomes again and those after them, to find out how far
    /// chains from here go.
    #[inline(never)]
    pub(crate) fn no_chain(
        &mut self,
        space: SpaceId,
        id: BlockId,
        outcomes: Outcomes,
        more: Outcomes,
    ) {
        if !self.chains.is_wanted(id, outcomes) {
            return;
        }
        let Some(block) = self.blocks.get(id as usize) else {
            return;
        };
        let (reach, measured) = (block.reach, block.measured);
        if outcomes.count < reach && more.count < MAX_REACH {
            // The end of a history: this chain, and nothing about others.
            let chain = self.gather(space, id, outcomes.count, &mut |i, _| outcomes.is_taken(i));
            self.chains.enter((id, outcomes), chain);
            return;
        }
        let chain = self.gather(space, id, more.count, &mut |i, _| more.is_taken(i));
        // Outcomes after the chain's end must not be part of its key, or
        // there would be many names for one chain. The longest one met decides.
        let reach = if measured {
            reach.max(chain.used)
        } else {
            chain.used
        };
        if let Some(block) = self.blocks.get_mut(id as usize) {
            (block.reach, block.measured) = (reach, true);
        }
        self.chains.enter((id, more.first(reach)), chain);
    }

    /// The name of the runs of a chain.
    #[inline]
    pub(crate) fn chain_kept(&self, chain: &Chain) -> Kept {
        self.chains.kept(chain)
    }

    /// The runs of a chain.
    #[inline]
    pub(crate) fn chain_runs(&self, chain: &Chain) -> &[Run] {
        self.chains.runs(chain)
    }

    /// Gathers the runs from a block through so many outcomes, or as many of them as
    /// there are branches before a jump through a register. `outcome` is that of a
    /// branch by its number and address.
    #[cold]
    fn gather(
        &mut self,
        space: SpaceId,
        start: BlockId,
        outcomes: u8,
        outcome: &mut dyn FnMut(u8, u64) -> bool,
    ) -> Gathered {
        let from = self.chains.begin();
        let mut chain = Gathered {
            from,
            used: 0,
            halfwords: 0,
            insns: 0,
            end: start,
        };
        let (mut id, mut to, mut behind, mut way, mut insns) = (start, from, from, 0, 0);
        while chain.used < outcomes && to - from < MAX_CHAIN {
            let block = self.block(id);
            let taken = match block.kind {
                Kind::Branch => outcome(chain.used, block.at),
                Kind::Continue => false,
                _ => break,
            };
            let next = self.follow(space, id, taken);
            if next == NOWHERE {
                break;
            }
            let count = usize::from(block.count);
            let first = block.runs as usize + if taken { count } else { 0 };
            let runs = self.runs.get(first..first + count).unwrap_or_default();
            to = self.chains.push(runs);
            way += block.halfwords;
            insns += block.insns;
            id = next;
            if block.kind == Kind::Branch {
                chain.used += 1;
                (chain.halfwords, chain.insns) = (way, insns);
                (chain.end, behind) = (id, to);
            }
        }
        // What follows the last outcome is not part of the chain: a walk may
        // have to stop right after it.
        self.chains.truncate(behind);
        chain
    }

    /// Where a jump through a register goes this time. The block remembers it:
    /// most such jumps go to the same place again.
    #[inline]
    pub(crate) fn aim(&mut self, space: SpaceId, id: BlockId, to: u64) -> BlockId {
        let Some(block) = self.blocks.get(id as usize) else {
            return NOWHERE;
        };
        let [known, _] = block.next;
        let last = (block.runs as usize + usize::from(block.count)).wrapping_sub(1);
        if let Some(run) = self.runs.get_mut(last)
            && block.count > 0
        {
            if run.next == to && known != UNLINKED {
                return known;
            }
            run.next = to;
        }
        let next = self.find_next(space, to);
        if let Some(block) = self.blocks.get_mut(id as usize) {
            let [known, _] = &mut block.next;
            *known = next;
        }
        next
    }

    fn build(&mut self, code: &Space, pc: u64) -> BlockId {
        let id = self.blocks.len() as BlockId;
        if id == UNLINKED {
            // Four billion blocks: more code than an image can hold.
            return NOWHERE;
        }
        let first = self.runs.len();
        let mut way = Way {
            image: self.image,
            code,
            rules: self.rules,
            runs: &mut self.runs,
            start: pc,
            pc,
            insns: 0,
            halfwords: 0,
            before: None,
        };
        let (kind, at) = way.follow(first);
        let halfwords = way.halfwords;
        let count = self.runs.len() - first;
        let insns = self.runs.iter().skip(first).map(|r| r.insns).sum();
        if kind == Kind::Branch {
            self.duplicate_as_taken(first, at, code);
        }
        self.blocks.push(Block {
            halfwords,
            insns,
            runs: first as u32,
            next: [UNLINKED; 2],
            at,
            count: count as u8,
            kind,
            reach: match kind {
                Kind::Branch | Kind::Continue => MAX_REACH,
                _ => 0,
            },
            measured: false,
        });
        id
    }

    /// The runs once more with the last one ending in a taken branch; the
    /// first copy ends in one that is not.
    fn duplicate_as_taken(&mut self, first: usize, at: u64, code: &Space) {
        self.runs.extend_from_within(first..);
        if let (Some(taken), Some(f)) = (self.runs.last_mut(), code.fetch(at)) {
            let target = Flow::of(f.bits, f.isa).target(at, f.isa.xlen());
            taken.exit = Exit::Taken;
            taken.next = target.unwrap_or(taken.next);
        }
    }
}

/// A block in the making.
struct Way<'b> {
    image: &'b Image,
    code: &'b Space,
    rules: Rules,
    runs: &'b mut Vec<Run>,
    /// Where the run being gathered starts, and what it has.
    start: u64,
    pc: u64,
    insns: u32,
    halfwords: u32,
    /// The instruction before, if it retired right before in this block.
    before: Option<(Flow, u64)>,
}

impl Way<'_> {
    /// Follows the code to the next decision; gives its kind and address.
    fn follow(&mut self, first: usize) -> (Kind, u64) {
        loop {
            let at = self.pc;
            let Some(f) = self.code.fetch(at) else {
                self.stop();
                return (self.no_code(at), at);
            };
            let flow = Flow::of(f.bits, f.isa);
            let xlen = f.isa.xlen();
            if flow == Flow::Trap {
                self.stop();
                return (Kind::Trap, at);
            }
            let crosses = (at ^ at.wrapping_add(u64::from(f.len))) & !(PAGE - 1) != 0;
            // A constant and the jump that may use it stay together: the cut
            // is made before both.
            let constant = matches!(flow, Flow::Const { .. });
            if crosses && constant && self.insns > 0 {
                self.stop();
                return (Kind::Continue, at);
            }
            self.take(f);
            let end = xlen.wrap(self.pc);
            let mut destination = self.destination(flow, at, f);
            if self.rules.nexrv_links {
                destination.relink(flow.itype4(f.bits, true, ItypeTable::NexRv));
            }
            match destination {
                Destination::Next => {
                    self.before = Some((flow, at));
                    // RV32 code continues at address 0 after its last address.
                    if crosses && (!constant || end != self.pc) {
                        self.end_run(Exit::Stop, end, f.len);
                        return (Kind::Continue, end);
                    }
                }
                Destination::Branch => {
                    self.end_run(Exit::NotTaken, end, f.len);
                    return (Kind::Branch, at);
                }
                Destination::Jump(to, exit) => {
                    self.end_run(exit, to, f.len);
                    if self.rules.all_jumps && !matches!(flow, Flow::Indirect { .. }) {
                        return (Kind::Jump, at);
                    }
                    // As in `find_next`.
                    if self.code.is_version() {
                        return (Kind::Border, to);
                    }
                    // A block has at most one entry for the return stack, at its
                    // end: what it pushes, a return in the next block may need.
                    if exit.stacks() || self.runs.len() - first == MAX_RUNS {
                        return (Kind::Continue, to);
                    }
                    self.start = to;
                    self.pc = to;
                    self.before = None;
                }
                Destination::Unknown(exit) => {
                    self.end_run(exit, end, f.len);
                    return (Kind::Target, at);
                }
            }
        }
    }

    /// What the end of the code at an address means.
    fn no_code(&self, at: u64) -> Kind {
        let elsewhere = match self.code.is_version() {
            true => !self.code.is_start(at),
            false => self.image.varies_at(at),
        };
        if elsewhere {
            Kind::Border
        } else {
            Kind::Missing
        }
    }

    fn take(&mut self, f: Fetched) {
        self.insns += 1;
        self.halfwords += u32::from(f.len) / 2;
        self.pc = self.pc.wrapping_add(u64::from(f.len));
    }

    /// Ends the run before an instruction that is not part of it.
    fn stop(&mut self) {
        if self.insns > 0 {
            // Only fetched code gets here, so the instruction before is known.
            let last = self.before.map_or(0, |(_, pc)| self.pc.wrapping_sub(pc));
            self.end_run(Exit::Stop, self.pc, last as u8);
        }
    }

    fn end_run(&mut self, exit: Exit, next: u64, last: u8) {
        self.runs.push(Run {
            start: self.start,
            end: self.pc,
            next,
            insns: self.insns,
            exit,
            last,
        });
        self.insns = 0;
    }

    fn destination(&self, flow: Flow, at: u64, f: Fetched) -> Destination {
        let xlen: Xlen = f.isa.xlen();
        match flow {
            Flow::Seq | Flow::Const { .. } | Flow::Trap => Destination::Next,
            Flow::Branch { .. } => Destination::Branch,
            Flow::Jump { link, .. } => match flow.target(at, xlen) {
                Some(to) => Destination::Jump(to, Exit::direct(link)),
                None => Destination::Unknown(Exit::direct(link)),
            },
            Flow::Table { index, link } => match self.code.table_entry(index, f.isa) {
                Some(to) => Destination::Jump(to, Exit::direct(link)),
                None => Destination::Unknown(Exit::direct(link)),
            },
            Flow::Indirect { link, .. } => {
                if let (true, Some(to)) = (self.rules.absolute_jumps, flow.target(at, xlen)) {
                    return Destination::Jump(to, Exit::direct(link));
                }
                let inferred = self
                    .before
                    .filter(|_| self.rules.infers(Some(link)))
                    .and_then(|(before, pc)| flow.sequential_target(before, pc, xlen));
                match inferred {
                    Some(to) => Destination::Jump(to, Exit::indirect(link)),
                    None => Destination::Unknown(Exit::indirect(link)),
                }
            }
            Flow::PopReturn => Destination::Unknown(Exit::Return),
            Flow::TrapReturn => Destination::Unknown(Exit::TrapReturn),
        }
    }
}

/// Where an instruction goes, as far as the code determines it.
enum Destination {
    Next,
    Branch,
    Jump(u64, Exit),
    Unknown(Exit),
}

impl Destination {
    /// Another class of the same jump.
    fn relink(&mut self, itype: Itype) {
        let (Destination::Jump(_, exit) | Destination::Unknown(exit)) = self else {
            return;
        };
        *exit = match itype {
            Itype::DirectCall => Exit::DirectCall,
            Itype::DirectJump => Exit::DirectJump,
            Itype::IndirectCall => Exit::IndirectCall,
            Itype::IndirectJump => Exit::IndirectJump,
            Itype::Return => Exit::Return,
            _ => *exit,
        };
    }
}
