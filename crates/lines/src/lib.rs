//! A line of text or JSON for each of the many: instructions, events, messages, accesses.
//!
//! JSON is written as lines: a header with `schema` and `version`, then one object per item,
//! each with a `type`. Values that may exceed 2^53 are hexadecimal strings ([`json::Hex`]).
//!
//! * [`steps`]: the steps of a hart; [`events`]: the events of a trace.
//! * [`dump`]: messages, with their fields; [`memory`]: accesses to memory.
//! * [`json`], [`words`]: parts that reports share.
//!
//! Reports are in `hartrace-print`, which has these modules too.

#![forbid(unsafe_code)]

pub mod dump;
pub mod events;
pub mod json;
pub mod memory;
pub mod steps;
pub mod words;

pub use events::JsonEvents;
pub use steps::JsonSteps;
