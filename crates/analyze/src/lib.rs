//! Meaning for people: what the addresses of a trace are called and what code
//! stands there.
//!
//! ```
//! use hartrace_analyze::{Listing, listing};
//!
//! let mut out = Vec::new();
//! let refused = listing(b"not ELF", "a.out", &Listing::default(), &mut out);
//! assert!(refused.is_err() && out.is_empty());
//! ```
//!
//! The layers:
//!
//! * [`Symbols`]: names for addresses, chosen among aliases as objdump does.
//! * [`Lines`]: lines of source text for addresses, from DWARF.
//! * [`listing`]: a whole program as text, equal to `objdump -d` byte for byte
//!   but for instructions that are not decoded (vector, vendor and others) and
//!   encodings that are reserved: they are `.4byte` where objdump has names;
//!   [`raw_listing`]: code without a file format.
//! * [`PcList`], [`TraceListing`]: what a trace says was executed, as a list of
//!   pcs or as text.
//! * [`Sample`]: control transfers before a moment; [`BrStack`], [`AutoFdo`],
//!   [`Folded`], [`Blocks`], [`Branches`], [`Table`]: what profilers make of
//!   them.
//!
//! This crate sees ELF files and the events of `hartrace-flow`; it never sees
//! trace bytes.

#![forbid(unsafe_code)]

mod elf;
mod lines;
mod listing;
mod names;
mod places;
mod segments;
mod symbols;
mod trace;
mod transfers;

pub use elf::{ElfError, isa_of};
pub use lines::{Line, Lines};
pub use listing::{Listing, ListingError, listing, raw_listing};
pub use names::Names;
pub use places::{Place, Places};
pub use segments::Segments;
pub use symbols::Symbols;
pub use trace::{PcList, TraceListing};
pub use transfers::{
    AutoFdo, Backtrace, Block, Blocks, BrStack, Branches, Edge, Fields, Folded, Profgen, Sample,
    Table, mmap_events,
};
