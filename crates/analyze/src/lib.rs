//! Human-readable analysis: symbols, source lines and disassembly for the
//! addresses of a trace, call stacks, profiles and coverage, and reports on control
//! transfers.
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
//! * [`Functions`]: the functions of programs, by address range.
//! * [`Stacks`]: call stacks, followed from run to run; [`CallTree`]: call paths with
//!   their cost.
//! * [`Profiler`]: exact profiles; [`Latencies`], [`CallSites`]: calls one by one.
//! * [`Timeline`]: calls and traps as slices on tracks, given to a [`TimelineSink`].
//! * [`RunCounter`], [`Coverage`]: which code ran.
//! * [`JumpCounter`]: branches, indirect jumps and the rounds of loops.
//! * [`compare_runs`]: where two runs differ.
//! * [`Sample`]: the control transfers before a point in time; [`BrStack`],
//!   [`AutoFdo`], [`Folded`], [`Blocks`], [`Branches`], [`Table`]: reports on them.
//!
//! This crate sees ELF files and the events of `hartrace-flow`; it never sees
//! trace bytes.

#![forbid(unsafe_code)]

mod calls;
mod causes;
mod context_names;
mod coverage;
mod demangle;
mod difference;
mod doubt;
mod elf;
mod follow;
mod functions;
mod jumps;
mod lines;
mod listing;
pub mod memory;
mod names;
mod places;
mod profile;
mod program_code;
pub mod protobuf;
mod runs;
mod scopes;
mod segments;
mod slices;
mod spaces;
mod stacks;
mod symbols;
mod timeline;
mod trace;
mod transfers;

pub use calls::{CallSites, Latencies, Latency, SiteCost, Spans};
pub use causes::cause_name;
pub use context_names::ContextNames;
pub use coverage::{
    BranchCount, ContextRuns, Coverage, FunctionCoverage, LineCoverage, PartCounter, RunCounter,
    Share, Shares, add_runs,
};
pub use demangle::demangle;
pub use difference::{Compared, DiffOptions, Divergence, Meeting, Pcs, compare_runs};
pub use doubt::Doubts;
pub use elf::{ElfError, isa_of};
pub use follow::Follower;
pub use functions::{Function, FunctionId, Functions};
pub use jumps::{IndirectJump, JumpCounter, Jumps, LoopTrips, Trips};
pub use lines::{Line, Lines, SourceFrame};
pub use listing::{Listing, ListingError, listing, raw_listing};
pub use names::{Names, NamesIn};

pub use places::{LineRanges, Place, Places, PlacesIn};
pub use profile::{
    Added, CallEdge, CallSink, FunctionChange, FunctionCost, GapMark, HotLoop, InsnCosts, LineCost,
    PathCosts, PathRuns, PathSequence, PathThread, Profile, Profiler, Profiling, Recording,
    TrapMark, Visit,
};
pub use runs::RunCount;
pub use scopes::{LinePlace, Scopes, SourcePoint};
pub use segments::{Module, Segment, Segments};
pub use spaces::Spaces;
pub use stacks::{
    Backtrace, CallTree, Cost, Entered, Entry, Grouping, How, Left, Measure, Moment, Node, NodeId,
    Odd, OddJump, OpenCall, Outer, Ran, SavedSink, StackSink, Stacks, Switched, What,
};
pub use symbols::Symbols;
pub use timeline::{
    Arrow, Beginning, Category, CauseSpans, Chrome, Counter, Ctf, Export, ExportOptions, Exported,
    FileTrack, GapSpan, GapTable, Held, InterruptTable, Interrupts, Merging, OnePart, Parts,
    Perfetto, Position, Preempted, Recorder, Scratch, SignalOptions, Signals, Slice, SliceKind,
    SliceSummary, SliceWriter, Timeline, TimelineSink, Timescale, Track, TrackId, TrackSlices,
    TrapSpan, TrapTable, Waves, WorstTrap, WrittenPart,
};
pub use trace::{
    Gathered, ListingStyle, PcList, PcPieces, Point, PointKind, TraceListing, Window,
    WindowOptions, Windowed, instruction_text,
};
pub use transfers::{
    AutoFdo, Block, Blocks, BrStack, Branches, Edge, Fields, FlowCounts, Folded, LastJumps,
    Profgen, Sample, SampleProfile, Table, mmap_events,
};
