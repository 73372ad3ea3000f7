//! Human-readable analysis: symbols, source lines and disassembly for the
//! addresses of a trace, and reports on control transfers.
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
//! * [`Lines`]: source lines for addresses, from DWARF.
//! * [`listing`]: the disassembly of a whole program, byte for byte as
//!   `objdump -d` prints it, except that instructions that are not decoded
//!   (vector, vendor and others) and reserved encodings are printed as `.4byte`;
//!   [`raw_listing`]: the same for a raw binary.
//! * [`PcList`], [`TraceListing`]: the executed instructions of a trace, as a list
//!   of pcs or as text.
//! * [`Sample`]: the control transfers before a point in time; [`BrStack`],
//!   [`AutoFdo`], [`Folded`], [`Blocks`], [`Branches`], [`Table`]: reports on them.
//!
//! This crate sees ELF files and the events of `hartrace-flow`; it never sees
//! trace bytes.

#![forbid(unsafe_code)]

mod demangle;
mod elf;
mod functions;
mod lines;
mod listing;
mod names;
mod places;
mod profile;
mod runs;
mod segments;
mod spaces;
mod stacks;
mod symbols;
mod trace;
mod transfers;

pub use elf::{ElfError, isa_of};
pub use functions::{Function, FunctionId, Functions};
pub use lines::{Line, Lines};
pub use listing::{Listing, ListingError, listing, raw_listing};
pub use names::Names;
pub use places::{Place, Places};
pub use profile::{CallEdge, FunctionCost, HotLoop, InsnCost, Profile, Profiler};
pub use runs::RunCount;
pub use segments::Segments;
pub use stacks::{CallTree, Cost, Grouping, How, Left, Node, NodeId, Odd, StackSink, Stacks, What};
pub use symbols::Symbols;
pub use trace::{PcList, TraceListing};
pub use transfers::{
    AutoFdo, Backtrace, Block, Blocks, BrStack, Branches, Edge, Fields, Folded, Profgen, Sample,
    Table, mmap_events,
};
