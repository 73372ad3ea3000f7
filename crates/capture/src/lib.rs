//! Traces of every format, logs of every kind and waveforms: read, written, compared.
//!
//! The files around them (configuration, sidecars, programs, code histories, records) are in
//! `hartrace-files`, whose modules this crate has, too. No other crate opens files. Nothing is
//! printed: an error is returned as a value with its position, and the caller reports it.
//!
//! The parts:
//!
//! * [`Recording`] and [`Recorder`]: the simple interface: open a trace with its
//!   program and decode it; write the steps of a hart as a trace.
//! * [`trace`]: traces, written from steps and decoded into events; [`shard`]: on several
//!   threads.
//! * [`log`]: logs of every kind, read as steps or summarised; [`wave`]: ports in waveforms.
//! * [`survey`]: facts about a file of any kind.
//! * [`compare`]: one run, traced with every option set of every format.
//! * [`history`]: the state in a tandem trace; [`verify`]: a tandem trace checked against a
//!   model.

#![deny(unsafe_code)]

pub mod compare;
pub mod history;
pub mod log;
mod recording;
pub mod shard;
pub mod survey;
pub mod trace;
pub mod verify;
pub mod wave;

#[doc(inline)]
pub use hartrace_files::{
    cache, code_history, config, detect, digest, elf_info, input, isa_hint, memory, output,
    program, quantity, records, sidecar, source_text,
};
pub use recording::{Recorder, Recording, RecordingError};
