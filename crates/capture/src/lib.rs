//! A trace on disk or on a wire: configuration, sidecars, sources.

#![deny(unsafe_code)]
