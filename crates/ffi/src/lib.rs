//! libhartrace: `hartrace-cosim` for C, and for what calls C: DPI-C, VPI, Python, C++.
//!
//! `include/hartrace.h` documents it, made from this crate by cbindgen. The files:
//!
//! * `types.rs`: the structs and constants of the header;
//! * `check.rs`, `encode.rs`: the handles, in safe Rust; what crosses the boundary is
//!   plain values here;
//! * `boundary.rs`: pointers to references and back; a panic ends there;
//! * `calls.rs`: the functions of the header.
//!
//! This is the only crate with `unsafe` apart from one `mmap` in `hartrace-capture`: in
//! `boundary.rs`, where a caller's promises about pointers become references, and in
//! `calls.rs`, where they are taken.

#![deny(unsafe_op_in_unsafe_fn)]

mod boundary;
pub mod calls;
mod check;
mod encode;
mod handle;
mod types;

pub use check::{Check, CheckSetup};
pub use encode::{Encode, EncodeSetup};
pub use handle::Handle;
pub use types::*;

use hartrace_capture::config::Config;
use std::path::Path;

/// The settings of a handle: the file first, the text over it.
fn settings(file: Option<&str>, text: Option<&str>) -> Result<Config, String> {
    let below = match file {
        None => Config::default(),
        Some(file) => Config::load(Path::new(file)).map_err(describe)?,
    };
    let above = match text {
        None => Config::default(),
        Some(text) => {
            let read = Config::from_bytes(text.as_bytes().to_vec(), Path::new("config"));
            read.map_err(describe)?
        }
    };
    Ok(above.over(below))
}

/// An error with its diagnostic.
fn describe(error: impl Into<hartrace_cosim::Error>) -> String {
    error.into().to_string()
}
