//! A trace on disk: configuration, sidecars, what kind of file it is, reading
//! in chunks, writing atomically.
//!
//! This crate opens files so that no other has to. It never prints: what goes
//! wrong comes back as a value with the place where it happened, and the
//! caller decides how to say it.
//!
//! ```
//! use hartrace_capture::config::Config;
//!
//! let text = "[program]\nisa = \"rv64gc\"\n\n[ingress]\nitype_width = 3\n";
//! let config = Config::parse(text, "run.toml".as_ref()).unwrap();
//! assert_eq!(config.ingress.itype_width.unwrap().value, hartrace_flow::ItypeWidth::Three);
//!
//! // A typing mistake is refused, with its place and the name that was meant.
//! let error = Config::parse("[ingress]\nitype_with = 3\n", "run.toml".as_ref()).unwrap_err();
//! assert_eq!(error.span, 10..20);
//! assert_eq!(error.to_string(), "unknown key `itype_with` in [ingress]; did you mean `itype_width`?");
//! ```
//!
//! The parts:
//!
//! * [`Recording`] and [`Recorder`]: the short way: open a trace with its
//!   program and decode it; write the steps of a hart as a trace.
//! * [`config`]: the one TOML schema, read, merged and written.
//! * [`sidecar`]: `FILE.toml` beside a trace, which binds it to its program.
//! * [`input`] and [`output`]: files, standard streams, pipes and devices.
//! * [`detect`]: what kind of file this is; [`elf_info`]: what an ELF file says;
//!   [`log`]: logs of every kind as steps, and what is in them.
//! * [`trace`]: traces made from steps and turned into events.
//! * [`records`]: control transfer records in files; [`history`]: the state in a
//!   tandem trace; [`verify`]: such a trace against a model.
//! * [`program`]: `FILE[@BASE]`, as the command line and the configuration
//!   spell a program; [`digest`]: its SHA-256;
//!   [`memory`]: `BASE:SIZE`; [`quantity`]: numbers with units;
//!   [`isa_hint`]: which instruction set was probably meant.

#![deny(unsafe_code)]

pub mod config;
pub mod detect;
pub mod digest;
pub mod elf_info;
pub mod history;
pub mod input;
pub mod isa_hint;
pub mod log;
pub mod memory;
pub mod output;
pub mod program;
pub mod quantity;
mod recording;
pub mod records;
pub mod shard;
pub mod sidecar;
pub mod trace;

pub use recording::{Recorder, Recording, RecordingError};
pub mod verify;
