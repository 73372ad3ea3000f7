//! Data trace: the packets of chapter 7 and what they are made from.
//!
//! [`DataConfig`] has the parameters and run-time options, [`DataLayout`] what the
//! bytes of packets depend on, [`DataPacket`] one packet as a value. Differences
//! refer to the previous access of the same size ([`history`]).
//!
//! Choices the texts leave open:
//!
//! * A difference of addresses is one of byte addresses. It is shifted right by
//!   `size` in the aligned formats; if the previous access was not aligned and the
//!   difference is no multiple of the size, the unaligned format is used. Atomics,
//!   which have no such format, have the full address then.
//! * `data` of atomics and CSRs is the low half of the ingress signal, the stored
//!   value, and `operand` the high half: the value read, as the port of this
//!   project shows it (4.4 permits that or the operand of the instruction).
//!   `operand` is never compressed by a difference (2.0, operand field).
//! * `op_len` and `data_len` of the draft's atomics have two bits for words and
//!   three for doublewords; table 7.6 says `size` for the second.
//! * A split atomic's data has format 111. 2.0 prints 110, the code of the request.
//! * With the address or the data left out there is only one phase, so the unified
//!   packets serve split ports too (2.05, chapter 7).
//! * CSR packets always have an address: there is no table without. Their data has
//!   the size of a CSR, and is compressed with that of other accesses of that size.
//! * 111 is a failed store-conditional in every atomic packet of 2.0, though only one
//!   of its tables says so; it has no `operand`, which is sent as 0.

mod config;
mod decode;
mod encode;
mod explain;
mod follow;
pub(crate) mod history;
mod names;
mod packet;
mod quick;
mod read;
mod transfers;
mod write;

pub use config::{Compression, DataConfig, DataLayout};
pub(crate) use decode::DataSource;
pub(crate) use encode::DataEncoder;
pub use explain::explain_data;
pub use follow::DataFollower;
pub(crate) use names::{FORMATS, Formats};
pub use packet::{DataPacket, Outstanding};
pub(crate) use transfers::{Batch, Sums, Transfers};

#[cfg(test)]
mod tests;
