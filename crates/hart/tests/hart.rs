//! The hart from the outside, clause by clause.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "hart/asm.rs"]
mod asm;
#[path = "hart/bench.rs"]
mod bench;

#[path = "hart/atomic.rs"]
mod atomic;
#[path = "hart/bits.rs"]
mod bits;
#[path = "hart/control.rs"]
mod control;
#[path = "hart/costs.rs"]
mod costs;
#[path = "hart/counters.rs"]
mod counters;
#[path = "hart/csrs.rs"]
mod csrs;
#[path = "hart/float.rs"]
mod float;
#[path = "hart/host.rs"]
mod host;
#[path = "hart/integer.rs"]
mod integer;
#[path = "hart/interrupts.rs"]
mod interrupts;
#[path = "hart/machine.rs"]
mod machine;
#[path = "hart/memory.rs"]
mod memory;
#[path = "hart/model.rs"]
mod model;
#[path = "hart/observers.rs"]
mod observers;
#[path = "hart/paging.rs"]
mod paging;
#[path = "hart/pmp.rs"]
mod pmp;
#[path = "hart/traps.rs"]
mod traps;
