//! Which block of decoded code is at a virtual address.
//!
//! Decoded code belongs to physical pages ([`Code`](crate::code::Code)). Going from
//! block to block by way of the page tables would cost more than most blocks do, so
//! the blocks that were found lately are kept by virtual address.

use crate::code::Block;
use crate::memory::PAGE;

/// A block at a virtual address.
#[derive(Clone, Copy, Debug)]
struct Found {
    pc: u64,
    /// When it was found: see [`Blocks::context`].
    context: u64,
    block: Block,
}

/// No block starts at an odd address.
const NONE: Found = Found {
    pc: 1,
    context: 0,
    block: Block::NONE,
};

/// Blocks that are kept.
const SLOTS: usize = 2048;

/// Bits of the set of pages.
const PAGES: u64 = 1024;

/// Blocks by virtual address.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    slots: Box<[Found; SLOTS]>,
    /// What blocks were found with that are still there: the context of fetches in
    /// bits 11 to 0, above it a number that grows with everything forgotten.
    context: u64,
    forgotten: u64,
    /// The pages that were fetched from since, by the low bits of their number.
    pages: [u64; PAGES as usize / 64],
    /// A block was kept since this was last reset.
    pub(crate) news: bool,
}

impl Blocks {
    pub(crate) fn new() -> Blocks {
        Blocks {
            slots: Box::new([NONE; SLOTS]),
            context: 0,
            forgotten: 0,
            news: true,
            pages: [0; PAGES as usize / 64],
        }
    }

    /// The block at an address, if it is kept.
    #[inline]
    pub(crate) fn find(&self, pc: u64) -> Option<Block> {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        let found = &self.slots[slot(pc)];
        (found.pc == pc && found.context == self.context).then_some(found.block)
    }

    /// Keeps the block at an address.
    pub(crate) fn keep(&mut self, pc: u64, block: Block) {
        self.news = true;
        let context = self.context;
        if let Some(found) = self.slots.get_mut(slot(pc)) {
            *found = Found { pc, context, block };
        }
    }

    /// Goes to another context of fetches.
    pub(crate) fn enter(&mut self, fetch_context: u64) {
        self.context = self.forgotten << 12 | fetch_context;
    }

    /// Forgets all blocks, as soon as a context is entered again.
    pub(crate) fn forget(&mut self) {
        self.forgotten += 1;
        self.pages = [0; PAGES as usize / 64];
    }

    /// Takes note that code was fetched from the page of an address.
    pub(crate) fn visit(&mut self, addr: u64) {
        let bit = addr / PAGE % PAGES;
        if let Some(word) = self.pages.get_mut((bit / 64) as usize) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Whether code may have been fetched from the page of an address.
    pub(crate) fn visited(&self, addr: u64) -> bool {
        let bit = addr / PAGE % PAGES;
        let word = self.pages.get((bit / 64) as usize).copied().unwrap_or(0);
        word >> (bit % 64) & 1 != 0
    }
}

/// Where a block would be. All instructions across two pages have the same low bits
/// and must not share a slot.
#[inline]
fn slot(pc: u64) -> usize {
    (pc >> 1 ^ pc >> 12) as usize % SLOTS
}
