//! Meaning for people.

#![forbid(unsafe_code)]
