//! Traces on disk: configuration, sidecars, detection of file formats, chunked
//! input, atomic output.
//!
//! This crate opens files so that no other crate has to. It never prints: an
//! error is returned as a value with its position, and the caller reports it.
//!
//! ```
//! use hartrace_capture::config::Config;
//!
//! let text = "[program]\nisa = \"rv64gc\"\n\n[ingress]\nitype_width = 3\n";
//! let config = Config::parse(text, "run.toml".as_ref()).unwrap();
//! assert_eq!(config.ingress.itype_width.unwrap().value, hartrace_flow::ItypeWidth::Three);
//!
//! // A misspelled key is refused, with its position and a suggestion.
//! let error = Config::parse("[ingress]\nitype_with = 3\n", "run.toml".as_ref()).unwrap_err();
//! assert_eq!(error.span, 10..20);
//! assert_eq!(error.to_string(), "unknown key `itype_with` in [ingress]; did you mean `itype_width`?");
//! ```
//!
//! The parts:
//!
//! * [`Recording`] and [`Recorder`]: the simple interface: open a trace with its
//!   program and decode it; write the steps of a hart as a trace.
//! * [`config`]: the one TOML schema, read, merged and written.
//! * [`sidecar`]: `FILE.toml` next to a trace, which ties it to its program.
//! * [`input`] and [`output`]: files, standard streams, pipes and devices.
//! * [`detect`]: the kind of a file; [`elf_info`]: facts about an ELF file;
//!   [`log`]: logs of every kind, read as steps or summarised.
//! * [`survey`]: facts about a file of any kind.
//! * [`trace`]: traces, written from steps and decoded into events.
//! * [`compare`]: one run, traced with every option set of every format.
//! * [`records`]: control transfer records in files; [`history`]: the state in a
//!   tandem trace; [`verify`]: a tandem trace checked against a model.
//! * [`program`]: programs, given as `FILE[@BASE]`; [`digest`]: their SHA-256;
//!   [`memory`]: `BASE:SIZE`; [`quantity`]: numbers with units;
//!   [`isa_hint`]: suggestions for misspelled ISA strings.

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
