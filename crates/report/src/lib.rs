//! The report page: what a program did, as one HTML file that opens without a network.
//!
//! A [`Collector`] takes the events of a trace, [`Run::of`] turns what it found into the
//! part of a [`Document`] that is about one trace, and [`html`] puts the document into the
//! page. The page itself is in `page/`: small JavaScript modules, and in `page/dist` the
//! bundle of them, which is part of this crate.
//!
//! ```
//! use hartrace_report::{Document, html};
//!
//! let document = Document::new(Vec::new(), None);
//! let page = html(&document.json());
//! assert!(page.starts_with("<!doctype html>"));
//! ```
//!
//! For traces of any size, an [`Index`] is made instead, and [`Live`] answers what a page
//! asks an [`http::Server`] for.
//!
//! This crate sees no trace bytes and opens no files: sizes, messages and source text come
//! as plain values ([`About`]), and parts of a trace are decoded by a function
//! ([`Replayed`]).

#![forbid(unsafe_code)]

mod about;
mod code;
mod collect;
mod columns;
mod document;
mod ending;
mod flame;
mod functions;
pub mod http;
mod live;
mod page;
mod recent;
mod run;
mod strings;
mod tracks;

pub use about::{About, Bandwidth, Budget, SourceLines, Statistics};
pub use collect::{Collected, Collector, Kept, Stop};
pub use document::{Change, Comparison, Document};
pub use live::{Index, Indexer, Live, Replayed};
pub use page::{html, live_html};
pub use run::Run;
