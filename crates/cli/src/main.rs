//! The `hartrace` command.

#![forbid(unsafe_code)]

fn main() {}
