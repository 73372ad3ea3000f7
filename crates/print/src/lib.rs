//! Output of traces, reports and summaries: text for people, JSON lines for
//! programs.
//!
//! Every printer takes values that another crate produced and a
//! [`std::io::Write`]; it opens no files and computes nothing. The command line
//! prints through these functions only, so a program that links this crate gets
//! the same text and the same JSON.
//!
//! JSON is written as lines: a header with `schema` and `version`, then one
//! object per item, each with a `type`. Values that may exceed 2^53 are
//! hexadecimal strings ([`json::Hex`]).
//!
//! The printers:
//!
//! * [`steps`]: the steps of a hart; [`events`]: the events of a trace.
//! * [`info`]: facts about files; [`state`]: registers and memory in a tandem
//!   trace; [`verify`]: the findings of a verifier; [`records`]: reports on
//!   control transfer records.
//! * [`profile`]: exact profiles, trees of calls, flame graphs; [`coverage`]: which
//!   code ran; [`jumps`]: which way branches went; [`difference`]: where two runs
//!   differ.
//! * [`compare`]: the option sets of all formats, compared.
//! * [`summary`]: one-line summaries; [`run`]: how a run ended.
//! * [`diagnostic`]: errors and warnings with their codes, from the errors of the
//!   other crates; [`manual`]: what the codes mean.
//! * [`json`], [`words`], [`insn`]: shared parts.

#![forbid(unsafe_code)]

pub mod compare;
pub mod coverage;
pub mod diagnostic;
pub mod difference;
pub mod info;
pub mod insn;
pub mod interrupts;
pub mod jumps;
pub mod manual;
pub mod profile;
pub mod records;
pub mod run;
pub mod state;
pub mod stats;
pub mod summary;
pub mod verify;
pub mod words;

#[doc(inline)]
pub use hartrace_lines::{JsonEvents, JsonSteps, dump, events, json, memory, steps};
