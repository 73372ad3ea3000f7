//! Where everything lies. The code and what it needs fit below
//! [`MAPPED_END`], which page tables map page by page to itself.

/// The first instruction, the handlers, the body.
pub(super) const CODE: u64 = 0x8000_0000;
/// The body starts on a page of its own: the handlers' page must stay the
/// supervisor's when the body is the user's.
pub(super) const BODY: u64 = 0x8000_2000;
/// The body ends before this.
pub(super) const CODE_END: u64 = 0x8010_0000;
/// Constants, then at `gp` the handlers' memory.
pub(super) const POOL: u64 = 0x8010_0000;
/// Constants in the pool, of eight bytes each.
pub(super) const POOL_SIZE: u64 = 256;
/// What `gp` points to: all of the pool is in reach of an offset.
pub(super) const CONTEXT: u64 = POOL + 8 * POOL_SIZE;
/// What loads and stores work on.
pub(super) const DATA: u64 = 0x8010_2000;
/// What `sp` points to: all of the data is in reach of an offset.
pub(super) const DATA_MIDDLE: u64 = DATA + 0x800;
/// Where the program says that it is done.
pub(super) const TOHOST: u64 = 0x8010_6000;
/// Unused, but simulators look for it.
pub(super) const FROMHOST: u64 = TOHOST + 64;
/// Page tables.
pub(super) const TABLES: u64 = 0x8011_0000;
/// Pages for random mappings.
pub(super) const PAGES: u64 = 0x8014_0000;
/// How many of them there are.
pub(super) const PAGE_COUNT: u64 = 8;
/// Pages full of returns, to be executed and never written.
pub(super) const RETURNS: u64 = 0x8015_0000;
/// How many of them there are.
pub(super) const RETURN_COUNT: u64 = 2;
/// What PMP entries protect.
pub(super) const GUARDED: u64 = 0x8016_0000;
/// Everything above is mapped to itself while translation is on.
pub(super) const MAPPED_END: u64 = 0x8020_0000;
/// A superpage of either width that nothing else uses.
pub(super) const SUPERPAGE: u64 = 0x8040_0000;
/// The largest kind of superpage.
pub(super) const HUGE_PAGE: u64 = 0xc000_0000;

/// `msip` of the first hart.
pub(super) const MSIP: u64 = 0x0200_0000;
/// `mtimecmp` of the first hart.
pub(super) const MTIMECMP: u64 = 0x0200_4000;
/// `mtime`.
pub(super) const MTIME: u64 = 0x0200_bff8;
