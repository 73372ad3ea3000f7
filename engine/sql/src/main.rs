//! e
fn main() {}
