//! The tandem-verification trace protocol: every architectural change of a
//! hart, group by group, and a verifier that checks it against a model.
//!
//! Implements the trace protocol specification of 2018-11-20, with settings for
//! existing implementations that deviate from it ([`Config`]). The crate is
//! `no_std` with `alloc`; it opens no files and prints nothing.
//!
//! The layers, from the bytes up:
//!
//! * [`Item`]: an opcode and its payload.
//! * [`Reader`]: reads [`Group`]s from bytes, and reports problems with their
//!   position.
//! * [`Follower`]: tracks the pc from group to group.
//! * [`Shadow`]: the state reported by groups.
//! * [`History`]: the state at any instruction, and the group that changed it.
//! * [`Verifier`]: compares the state with that of a model.
//! * [`Encoder`]: turns the steps of a hart into groups.
//! * [`Decoder`]: turns groups into the events that every view uses.
//!
//! One instruction, written as a group and read back into a shadow state:
//!
//! ```
//! use hartrace_tandem::{Config, Item, Next, Reader, Register, Shadow};
//!
//! let config = Config::default();
//! let a0 = Register::x(10);
//! // c.li a0, 5
//! let items = [Item::IncrementPc, Item::Insn16(0x4515), Item::Full(a0, 5)];
//! let mut bytes = Vec::new();
//! for item in [&[Item::BeginGroup], &items[..], &[Item::EndGroup]].concat() {
//!     item.write(&config, &mut bytes);
//! }
//!
//! let mut reader = Reader::new(config.clone());
//! let mut shadow = Shadow::new(&config);
//! shadow.pc = Some(0x8000_0000);
//! assert_eq!(reader.next(&mut bytes.as_slice()), Next::Group);
//! shadow.apply(reader.group(), &mut |_| {}).unwrap();
//! assert_eq!(shadow.get(a0), Some(5));
//! assert_eq!(shadow.pc, Some(0x8000_0002));
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
pub mod container;
mod decode;
mod detect;
mod elements;
mod encode;
mod explain;
mod fault;
mod follow;
mod group;
pub mod history;
mod item;
mod memory;
mod read;
mod register;
mod shadow;
mod tally;
#[cfg(test)]
mod testing;
pub mod verify;

pub use config::{
    Addresses, Config, ConfigError, EaddrWidth, Flen, MemoryStyle, Mlen, Nibbles, PcForm, PcStyle,
    StoreData, Style,
};
pub use decode::Decoder;
pub use detect::{Guess, guess, is_trace};
pub use elements::{Elements, Registers, UnknownElement};
pub use encode::{Counters, Encoder, Sink};
pub use explain::{Field, Piece, Pieces, Value, explain};
pub use fault::Fault;
pub use follow::{Follower, Moves};
pub use group::{Change, Data, Group, GroupKind, How, Insn, NewPc, Transaction};
pub use history::History;
pub use item::{Item, MAX_ITEM, Operation, Request, Response};
pub use memory::{Memory, PAGE};
pub use read::{CONFIRM, Next, Problem, Reader};
pub use register::Register;
pub use shadow::Shadow;
pub use tally::{Count, Tally};
pub use verify::Verifier;
