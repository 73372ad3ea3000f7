//! The page of the report: its bundle is what its sources say, and it works in a
//! browser.
//!
//! `PAGE=write cargo test -p hartrace-report --test page bundle` writes the bundle.
//! The tests in a browser need chromium; without it they say so and pass.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

mod browser;
mod bundle;
mod bundler;
mod chromium;
mod look;
mod samples;
mod server;
