//! The status register: 0.1.4, 2.4 and 2.5; 1.0, 2.5.

use hartrace_ctr::{Config, Version};
use hartrace_isa::{Itype, Xlen};

use crate::common::*;

const DEPTHS: [u16; 5] = [16, 32, 64, 128, 256];

/// FROZEN, and WRAP of 0.1.4.
const fn frozen(version: Version) -> u64 {
    match version {
        V0_1_4 => 1 << 15,
        V1_0 => 1 << 31,
    }
}
const WRAP: u64 = 1 << 14;

/// WRPTR has the bits of its depth, FROZEN and WRAP are writable, all else is
/// 0.
#[test]
fn every_bit() {
    for config in everything() {
        for depth in DEPTHS {
            let mut s = Software::new(config);
            assert_eq!(s.status(), 0, "after reset");
            s.depth(depth);
            let rest = match config.version {
                V0_1_4 => 0xc000,
                V1_0 => 0x8000_0000,
            };
            s.set_status(u64::MAX);
            assert_eq!(s.status(), rest | (u64::from(depth) - 1), "{config:?}");
            s.set_status(0);
            assert_eq!(s.status(), 0);
            for bit in 0..config.xlen.bits() {
                s.set_status(1 << bit);
                let there = (rest | (u64::from(depth) - 1)) >> bit & 1;
                assert_eq!(s.status(), there << bit, "{config:?} {bit}");
            }
        }
    }
}

/// 0.1.4, 2.5: sctrstatus is mctrstatus, for S- and for VS-mode.
#[test]
fn aliases() {
    for xlen in [Xlen::Rv64, Xlen::Rv32] {
        let mut s = Software::new(Config::new(V0_1_4, xlen).with_hypervisor());
        for (mode, n) in [(S, 3), (VS, 0xc005), (M, 0x8007)] {
            s.mode = mode;
            s.write(0x183, n);
            assert_eq!(s.read(0x183), n);
            assert_eq!(s.as_machine(|s| s.read(0x383)), n);
        }
        s.mode = M;
        s.write(0x383, 0x4002);
        s.mode = VS;
        assert_eq!(s.read(0x183), 0x4002);
    }
    // 1.0, 2.3, note: there is one status, for V = 1 too.
    let mut s = Software::new(full(V1_0));
    s.mode = VS;
    s.write(0x14f, 0x8000_0009);
    s.mode = S;
    assert_eq!(s.read(0x14f), 0x8000_0009);
}

/// WRPTR is one more after each record and wraps at the depth.
#[test]
fn wrptr_counts() {
    for version in Version::ALL {
        for depth in DEPTHS {
            let mut s = Software::new(full(version));
            s.depth(depth);
            s.record_in(&[M], "");
            for n in 0..2 * u64::from(depth) + 3 {
                assert_eq!(s.wrptr(), n % u64::from(depth), "{version} {depth}");
                s.jump(Itype::Taken, 0x1000, 0x2000);
            }
            // Not one more for what is not recorded.
            let before = s.wrptr();
            s.jump(Itype::NotTaken, 0x1000, 0x1004);
            assert_eq!(s.wrptr(), before);
        }
    }
}

/// RASEMU: WRPTR is one less after each return, and wraps to depth - 1.
#[test]
fn wrptr_counts_down() {
    for version in Version::ALL {
        for depth in DEPTHS {
            let mut s = Software::new(full(version));
            s.depth(depth);
            s.record_in(&[M], "RASEMU");
            s.jump(Itype::DirectCall, 0x1000, 0x2000);
            assert_eq!(s.wrptr(), 1);
            s.jump(Itype::Return, 0x2000, 0x1004);
            assert_eq!(s.wrptr(), 0);
            s.jump(Itype::Return, 0x2000, 0x1004);
            assert_eq!(s.wrptr(), u64::from(depth) - 1, "{version} {depth}");
        }
    }
}

/// 0.1.4, WRAP: set when WRPTR goes up from depth - 1, and sticky.
#[test]
fn wrap_is_set() {
    for depth in DEPTHS {
        let mut s = Software::new(full(V0_1_4));
        s.depth(depth);
        s.record_in(&[M], "");
        for n in 0..3 * u64::from(depth) {
            let wrapped = n >= u64::from(depth);
            assert_eq!(s.status() & WRAP != 0, wrapped, "{depth} {n}");
            s.jump(Itype::DirectJump, 0x1000, 0x2000);
        }
        // Software may say otherwise.
        s.set_status(u64::from(depth) - 1);
        assert_eq!(s.status(), u64::from(depth) - 1);
        s.jump(Itype::DirectJump, 0x1000, 0x2000);
        assert_eq!(s.status(), WRAP);
    }
}

/// 0.1.4, WRAP: cleared when WRPTR goes down from 0, and by CLR; not by a write
/// to WRPTR's bits alone, and not by another decrement.
#[test]
fn wrap_is_cleared() {
    let mut s = Software::new(full(V0_1_4));
    s.record_in(&[M], "RASEMU");
    s.set_status(WRAP | 1);
    s.jump(Itype::Return, 0x2000, 0x1004);
    assert_eq!(s.status(), WRAP);
    s.jump(Itype::Return, 0x2000, 0x1004);
    assert_eq!(s.status(), 15);
    s.jump(Itype::Return, 0x2000, 0x1004);
    assert_eq!(s.status(), 14);
    s.set_status(WRAP | 15);
    s.jump(Itype::DirectCall, 0x2000, 0x1004);
    assert_eq!(s.status(), WRAP);
    s.set_status(WRAP | 5);
    s.control(CLR);
    assert_eq!(s.status(), 0);
}

/// 1.0: there is no WRAP.
#[test]
fn no_wrap() {
    let mut s = Software::new(full(V1_0));
    s.record_in(&[M], "");
    for _ in 0..40 {
        s.jump(Itype::DirectJump, 0x1000, 0x2000);
    }
    assert_eq!(s.status(), 8);
}

/// FROZEN, set by software: nothing is recorded until it clears it. Software
/// may write the entries meanwhile.
#[test]
fn frozen_by_software() {
    for version in Version::ALL {
        for mode in MODES {
            let mut s = Software::new(full(version));
            s.record_in(&MODES, "");
            s.mode = mode;
            s.jump(Itype::Taken, 0x1000, 0x2000);
            s.set_status(frozen(version) | 1);
            for kind in TYPES {
                s.mode = mode;
                s.transfer(kind, 0x3000, 0x4000);
            }
            s.mode = mode;
            assert_eq!(s.status(), frozen(version) | 1, "{version} {mode:?}");
            assert_eq!(s.sources(), [0x1000]);
            s.set_entry(0, (0x7001, 0x8000, 0));
            assert_eq!(s.sources(), [0x7000]);
            s.set_status(1);
            s.jump(Itype::Taken, 0x5000, 0x6000);
            assert_eq!(s.sources(), [0x5000, 0x7000]);
        }
    }
}

/// The same for RASEMU: no pop, no swap, no push.
#[test]
fn frozen_stack() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "RASEMU");
        s.jump(Itype::DirectCall, 0x1000, 0x2000);
        s.set_status(frozen(version) | 1);
        for kind in [Itype::Return, Itype::Swap, Itype::DirectCall] {
            s.jump(kind, 0x2000, 0x3000);
        }
        assert_eq!(s.status(), frozen(version) | 1);
        assert_eq!(s.sources(), [0x1000]);
    }
}

/// 2.4, note (1.0: 2.5): logical entry X is the physical entry
/// (WRPTR - X - 1) % depth.
#[test]
fn logical_and_physical() {
    for version in Version::ALL {
        for depth in DEPTHS {
            let last = u64::from(depth) - 1;
            let mut s = Software::new(full(version));
            s.depth(depth);
            // With WRPTR 0, physical entry Y is logical entry depth - 1 - Y.
            for physical in 0..=last {
                let entry = (last - physical) as u16;
                s.set_entry(entry, (0x1000 + 2 * physical, 0, 0));
            }
            for wrptr in [0, 1, 7, last] {
                s.set_status(wrptr);
                for x in [0, 1, 2, last] {
                    let y = (wrptr + 2 * u64::from(depth) - x - 1) % u64::from(depth);
                    assert_eq!(s.entry(x as u16).0, 0x1000 + 2 * y, "{version} {depth}");
                }
            }
        }
    }
}

/// 2.4, note (1.0: 2.5): an emulator increments WRPTR and writes entry 0, or
/// clears V of entry 0 and decrements WRPTR.
#[test]
fn emulated_transfers() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "");
        s.jump(Itype::DirectCall, 0x1000, 0x2000);
        let at = s.wrptr();
        s.set_status(at + 1);
        s.set_entry(0, (0x2001, 0x3000, 9));
        s.jump(Itype::DirectCall, 0x3000, 0x4000);
        assert_eq!(s.sources(), [0x3000, 0x2000, 0x1000], "{version}");
        s.set_entry(0, (0, 0, 0));
        let at = s.wrptr();
        s.set_status(at - 1);
        assert_eq!(s.sources(), [0x2000, 0x1000], "{version}");
        assert_eq!(s.entry(15).0 & 1, 0);
    }
}

/// 1.0, 2.5, note: a context is restored when the status is written first. All
/// of it comes back, and recording goes on where it was.
#[test]
fn contexts() {
    for version in Version::ALL {
        for depth in DEPTHS {
            let mut s = Software::new(full(version));
            s.depth(depth);
            s.record_in(&[M], "");
            for n in 0..u64::from(depth) + 5 {
                s.jump(Itype::DirectCall, 0x1000 + 4 * n, 0x2000);
            }
            let status = s.status();
            let saved: Vec<_> = (0..depth).map(|entry| s.entry(entry)).collect();
            s.set_status(0);
            for entry in 0..depth {
                s.set_entry(entry, (0, 0, 0));
            }
            assert!(s.sources().is_empty());
            s.set_status(status);
            for (entry, values) in (0..).zip(&saved) {
                s.set_entry(entry, *values);
            }
            assert_eq!(s.status(), status);
            let restored: Vec<_> = (0..depth).map(|entry| s.entry(entry)).collect();
            assert_eq!(restored, saved, "{version} {depth}");
            s.jump(Itype::DirectCall, 0x9000, 0x2000);
            assert_eq!(s.entry(0).0, 0x9001);
            assert_eq!(s.entry(1), saved[0]);
            assert_eq!(s.entry(depth - 1), saved[usize::from(depth) - 2]);
        }
    }
}
