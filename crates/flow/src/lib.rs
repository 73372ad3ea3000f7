//! The vocabulary of RISC-V trace: what a hart did, what a trace reports about
//! it, and the program in between.
//!
//! ```text
//! hart or log -> Step -> Port -> Ingress -> encoder -> bytes      (make a trace)
//! bytes -> decoder + Walk over Image -> Event -> Consumer         (decode a trace)
//! ```
//!
//! All protocol crates share this vocabulary. The layers:
//!
//! * [`Step`], [`Observer`]: what a hart did, instruction by instruction, and the
//!   receiver of steps. Steps come from a simulator or a log (`hartrace-logs`).
//! * [`Ingress`], [`Port`]: the trace ingress port of a hart, and the adapter
//!   that derives its signals from steps. It is the only input of encoders.
//! * [`filter`]: selects the blocks that an encoder traces; [`queue`]: models its
//!   output queue.
//! * [`Image`], [`Blocks`], [`Walk`]: the program's code, the paths through it
//!   from decision to decision, and the walk that follows them with what a trace
//!   reports. [`ReturnStack`] supplies the return addresses a trace leaves out.
//! * [`Event`], [`Run`], [`Consumer`]: the output of every decoder and the input
//!   of every view. [`Transfer`] is a single jump, for control transfer records.
//! * [`Check`]: checks that events, expanded to instructions, equal the steps.
//!   [`Replay`] turns events back into steps, for another encoder.
//! * [`Model`]: a hart that can be inspected and stepped, for tandem verification.
//! * [`encode`], [`decode`]: the parts of encoders and decoders that all protocols
//!   share; [`tally`]: counts messages.
//!
//! A walk through a program, with the evidence of a trace, into a consumer that
//! counts:
//!
//! ```
//! use std::ops::ControlFlow;
//! use hartrace_flow::{Blocks, Consumer, Event, HartId, History, Image, Rules, SpaceId, Stop, Walk};
//! use hartrace_isa::Isa;
//!
//! struct Count(u32);
//! impl Consumer for Count {
//!     fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
//!         if let Event::Run(run) = event {
//!             self.0 += run.insns;
//!         }
//!         ControlFlow::Continue(())
//!     }
//! }
//!
//! // loop: c.nop; c.bnez a0, loop; c.nop
//! let mut image = Image::new();
//! image.add_raw(SpaceId::FIRST, 0x1000, &[0x01, 0x00, 0x7d, 0xfd, 0x01, 0x00], Isa::RV64GC);
//!
//! let mut blocks = Blocks::new(&image, Rules::default());
//! let mut walk = Walk::new(HartId(0));
//! walk.restart(&mut blocks, 0x1000);
//! let mut count = Count(0);
//! let mut left = 7; // halfwords: three iterations and one more
//! let stop = walk.advance(&mut blocks, &mut History::new(0b011, 3), &mut left, &mut count);
//! assert_eq!((stop, count.0), (Stop::Arrived, 7));
//! ```
//!
//! The crate is `no_std` with `alloc`, opens no files and knows no packet
//! format. It implements the ingress port of E-Trace 1.1.1-draft and 2.0
//! (chapter 4), which N-Trace shares.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod blocks;
pub mod boot;
mod cause;
mod chain;
mod change;
mod check;
mod code_history;
mod cuts;
pub mod decode;
pub mod elf;
pub mod encode;
pub mod erase;
mod event;
mod evidence;
mod fault;
mod few;
pub mod filter;
mod image;
mod ingress;
mod interpolate;
mod kept;
mod mode;
mod model;
pub mod order;
mod packed;
mod per_hart;
mod plain_access;
pub mod queue;
mod replay;
mod stack;
mod step;
mod step_events;
mod straight;
mod stretch;
pub mod tally;
mod tie;
mod touch;
mod transfer;
mod walk;

pub use blocks::{Blocks, Rules};
pub use cause::{exception_name, interrupt_name};
pub use change::{Change, Changes};
pub use check::{Check, Checked, Difference, Inference, Unreported, What};
pub use code_history::{CodeHistory, CodePiece, CodeRecorder, NamedSync, VaryingCode};
pub use decode::Decode;
pub use event::{
    Checkpoint, Consumer, DataAccess, DataGap, Event, Exit, Gap, Gather, Mark, Marked, Ownership,
    Part, Reason, Run, Totals, Unconfirmed, Warning,
};
pub use evidence::{Evidence, History, NotTaken, Outcomes};
pub use few::Few;
pub use image::{
    Fetched, Image, ImageError, Insns, Sighting, Since, SpaceId, Spot, Version, elf_bias,
};
pub use ingress::{
    Ctype, DataIngress, DataPort, Ingress, IngressRun, IngressRuns, IngressSink, ItypeWidth,
    PassRuns, Passing, Port, PortConfig, PushOutcomes, Retirement, Retires, Tally, Trigger,
};
pub use interpolate::{Interpolate, Spread};
pub use kept::Kept;
pub use mode::{Context, HartId, Mode};
pub use model::{Absent, Confirm, Look, Model, Place};
pub use packed::{Packer, Unpacker};
pub use per_hart::PerHart;
pub use plain_access::{PlainAccesses, PlainForm, PlainValues};
pub use replay::{Assumed, Replay};
pub use stack::{Remember, ReturnStack, Swaps};
pub use step::{
    Access, AccessKind, AnyObserver, Cause, CsrWrite, Effects, Insn, Many, Observer, RegId,
    RegWrite, Signal, Step, Trap, TrapStep, Wants, steps_of,
};
pub use step_events::StepEvents;
pub use straight::{Amount, News, Placed, Role, Straight, Straights};
pub use tie::{Tie, TieState, Tied, TiedRuns};
pub use touch::{Reported, Touch};
pub use transfer::{StepTransfers, Transfer, TransferSink};
pub use walk::{Goal, Milestone, Report, Shortcut, Stop, UNCOUNTED, Walk};
