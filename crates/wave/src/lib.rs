//! Waveforms of simulators: VCD, FST and GHW, read at the edges of a clock.
//!
//! A program that looks for what a design did needs a few signals, each at the edges of
//! one clock. [`read_header`] lists the variables of a file; a [`Reader`] takes the rest of
//! the file in chunks of any size, and gives a [`Sample`] at every edge. Its values are
//! those *just before* the edge: what a flip-flop would take at that edge. Memory does not
//! grow with the file: of a VCD or GHW file, no more than the current values are kept, of
//! an FST file one section.
//!
//! ```
//! use hartrace_wave::{Edge, Reader, Watch, Watched, WaveFormat, read_header};
//!
//! let file = b"$timescale 1ns $end
//! $scope module top $end
//! $var wire 1 ! clk $end
//! $var wire 4 \" count [3:0] $end
//! $upscope $end
//! $enddefinitions $end
//! #0 0! b0 \"
//! #5 1! b1 \"
//! #10 0!
//! #15 1! b10 \"
//! #20 0!";
//! let mut watched = Vec::new();
//! let header = read_header(WaveFormat::Vcd, file, &mut |var| {
//!     watched.push(Watched::of(var));
//! });
//! let header = header.unwrap().expect("the header is complete");
//! let watch = Watch { watched, clock: 0, edge: Edge::Rising };
//! let mut reader = Reader::new(&header, watch).unwrap();
//! let mut counts = Vec::new();
//! reader
//!     .feed(file, &mut |sample| {
//!         counts.push((sample.time(), sample.value(1)?.get(0, 4)));
//!         Ok(())
//!     })
//!     .unwrap();
//! // Before the first edge the counter is 0, before the second it is 1.
//! assert_eq!(counts, [(5, Some(0)), (15, Some(1))]);
//! ```
//!
//! Files are not trusted: what is damaged is a [`WaveError`], and no claim of a file makes
//! a reader take more memory than a limit. [`fst`] also writes FST files.

#![forbid(unsafe_code)]

mod bytes;
mod error;
mod format;
pub mod fst;
mod ghw;
mod header;
pub mod leb128;
mod reader;
mod value;
mod vcd;
mod watch;

pub use error::WaveError;
pub use format::{WaveFormat, read_header};
pub use header::{Header, Var};
pub use reader::Reader;
pub use value::Value;
pub use watch::{Edge, Part, Sample, Take, Watch, Watched};
