//! The files around a trace: configuration and sidecars, programs, code histories, control
//! transfer records; and how files of every kind are told apart, read and written.
//!
//! ```
//! use hartrace_files::config::Config;
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
//! Nothing here runs for each instruction or message, so this crate is not optimised and
//! builds fast. What runs that often is in `hartrace-capture`, which has all of these modules,
//! too.
//!
//! * [`config`]: the one TOML schema, read, merged and written; [`transport`] and
//!   [`wave_port`]: what it says about buffers, pins, frames and waveforms.
//! * [`sidecar`]: `FILE.toml` next to a trace, which ties it to its program.
//! * [`input`] and [`output`]: files, standard streams, pipes and devices; [`cache`]: results
//!   that are kept.
//! * [`detect`]: the kind of a file; [`elf_info`]: facts about an ELF file.
//! * [`program`]: programs, given as `FILE[@BASE]`; [`digest`]: their SHA-256;
//!   [`source_text`]: lines of their source.
//! * [`code_history`]: code that changed while it ran; [`records`]: control transfer records.
//! * [`memory`]: `BASE:SIZE`; [`quantity`]: numbers with units; [`isa_hint`]: suggestions for
//!   misspelled ISA strings.

#![deny(unsafe_code)]

pub mod cache;
pub mod code_history;
pub mod config;
pub mod detect;
pub mod digest;
pub mod elf_info;
pub mod input;
pub mod isa_hint;
pub mod memory;
pub mod output;
pub mod program;
pub mod quantity;
pub mod records;
pub mod sidecar;
pub mod source_text;
pub mod transport;
pub mod wave_port;
