//! The hart from the outside: one test for each rule, named after it.
//!
//! Programs are made by the assembler of `hartrace-testkit`, and state is read and
//! set through [`Model`](hartrace_flow::Model); `bench` holds both together.
//! Chapter numbers are those of the unprivileged and the privileged manual
//! 20240411. Every test names its clause.
//!
//! | clause | tests |
//! |---|---|
//! | unpriv. 2 RV32I, 4 RV64I, 13 M | `integer` |
//! | unpriv. B (Zba, Zbb, Zbc, Zbs), Zicond, Zcb | `bits` |
//! | unpriv. 2.6, 4.3 loads and stores; Zicclsm; priv. 3.6 PMAs | `memory` |
//! | unpriv. 14 A; priv. 3.6.3, 3.6.4 | `atomic` |
//! | Zacas, Zabha, Zawrs | `swaps` |
//! | Zicbom, Zicboz, Zicbop | `cache_blocks` |
//! | Zcmp, Zcmt | `small_code` |
//! | unpriv. 1.5, 2.5 control transfer; 6 Zifencei; 27 C | `control`, `pairs` |
//! | unpriv. 7 Zicsr; priv. 2, 3.1, 10.1 CSRs | `csrs` |
//! | unpriv. 8 Zicntr, Zihpm; priv. 3.1.10 to 3.1.12, 3.2.1 | `counters` |
//! | priv. Sscofpmf | `events` |
//! | priv. Smcsrind, Sscsrind, Smstateen | `stateen` |
//! | Control Transfer Records in the hart | `records`, `record_programs` |
//! | unpriv. 21 F, 22 D, 24 Zfh | `float`, `conversions` |
//! | Zfa, Zimop, Zcmop | `additional` |
//! | priv. 3.1.6 to 3.1.8, 3.1.14 to 3.1.16, 3.3 traps | `traps` |
//! | priv. 3.1.9, 3.2.1, 3.3.3, 10.1.3 interrupts; ACLINT | `interrupts`, `pending` |
//! | debug 5 Sdtrig | `triggers` |
//! | priv. 3.7 PMP | `pmp` |
//! | priv. 10.3 Sv32, 10.4 Sv39, 10.5 Sv48, 10.6 Sv57 | `paging` |
//! | priv. 3.1.18 Svadu, 10.2.1 sfence.vma, 10.3.2 the walk | `walks` |
//! | Sstc | `timer` |
//! | Svnapot, Svpbmt, Svinval; tables made to hurt | `page_types` |
//! | several harts: turns, memory and interrupts between them | `harts` |
//! | 16550 UART, SiFive test finisher | `devices` |
//! | systems; priv. 3.1.9 SEIP; PLIC, UART and virtio together | `system` |
//! | the host-target interface; RISC-V semihosting 1.0 | `host` |
//! | `Machine`, `Config`: loading, limits, stops | `machine` |
//! | `Costs`: the table | `costs` |
//! | `flow::Observer`: what is told | `observers` |
//! | `flow::Model`: tandem trace protocol, Appendix A | `model` |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use hartrace_testkit::asm;
#[path = "hart/bench.rs"]
mod bench;

#[path = "hart/additional.rs"]
mod additional;
#[path = "hart/atomic.rs"]
mod atomic;
#[path = "hart/bits.rs"]
mod bits;
#[path = "hart/cache_blocks.rs"]
mod cache_blocks;
#[path = "hart/control.rs"]
mod control;
#[path = "hart/conversions.rs"]
mod conversions;
#[path = "hart/costs.rs"]
mod costs;
#[path = "hart/counters.rs"]
mod counters;
#[path = "hart/csrs.rs"]
mod csrs;
#[path = "hart/devices.rs"]
mod devices;
#[path = "hart/events.rs"]
mod events;
#[path = "hart/float.rs"]
mod float;
#[path = "hart/harts.rs"]
mod harts;
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
#[path = "hart/page_types.rs"]
mod page_types;
#[path = "hart/paging.rs"]
mod paging;
#[path = "hart/pairs.rs"]
mod pairs;
#[path = "hart/pending.rs"]
mod pending;
#[path = "hart/pmp.rs"]
mod pmp;
#[path = "hart/record_programs.rs"]
mod record_programs;
#[path = "hart/records.rs"]
mod records;
#[path = "hart/small_code.rs"]
mod small_code;
#[path = "hart/stateen.rs"]
mod stateen;
#[path = "hart/swaps.rs"]
mod swaps;
#[path = "hart/system.rs"]
mod system;
#[path = "hart/timer.rs"]
mod timer;
#[path = "hart/traps.rs"]
mod traps;
#[path = "hart/triggers.rs"]
mod triggers;
#[path = "hart/walks.rs"]
mod walks;
