//! The names of blocks.

/// Index of a block; [`NOWHERE`] is the block of addresses without code.
pub(crate) type BlockId = u32;

/// The block that stands for every address without code.
pub(crate) const NOWHERE: BlockId = 0;
