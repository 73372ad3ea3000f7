//! 5.4 (1.0: 6.4): RAS emulation mode.

use hartrace_ctr::{Config, RasCycles, Version};
use hartrace_isa::Itype;

use crate::common::*;

const CALL: Itype = Itype::DirectCall;
const RETURN: Itype = Itype::Return;
const SWAP: Itype = Itype::Swap;

/// Depth 16, RASEMU in this mode.
fn stack(config: Config, mode: hartrace_flow::Mode) -> Software {
    let mut s = Software::new(config);
    s.record_in(&[mode], "RASEMU");
    s.mode = mode;
    s
}

/// Calls, direct and indirect, are recorded as normal; returns pop the most
/// recent. In every mode.
#[test]
fn push_and_pop() {
    for version in Version::ALL {
        for mode in MODES {
            let mut s = stack(full(version), mode);
            s.jump(CALL, 0x1000, 0x2000);
            s.jump(Itype::IndirectCall, 0x2010, 0x3000);
            assert_eq!(s.sources(), [0x2010, 0x1000], "{version} {mode:?}");
            assert_eq!(s.entry(0).2 & 0xf, 8);
            assert_eq!(s.entry(1).2 & 0xf, 9);
            s.jump(RETURN, 0x3004, 0x2014);
            assert_eq!(s.sources(), [0x1000]);
            assert_eq!(s.wrptr(), 1);
            s.jump(CALL, 0x2020, 0x4000);
            assert_eq!(s.sources(), [0x2020, 0x1000]);
            s.jump(RETURN, 0x4000, 0x2024);
            s.jump(RETURN, 0x2024, 0x1004);
            assert!(s.sources().is_empty());
            assert_eq!(s.wrptr(), 0);
        }
    }
}

/// "logical entry 0 is invalidated and moves to logical entry depth-1, while
/// logical entries 1..depth-1 move to 0..depth-2". V is cleared.
#[test]
fn a_pop_rotates() {
    for version in Version::ALL {
        for depth in [16, 64, 256] {
            let mut s = stack(full(version), M);
            s.depth(depth);
            for n in 0..u64::from(depth) + 3 {
                s.jump(CALL, 0x1000 + 4 * n, 0x2000);
            }
            let before: Vec<_> = (0..depth).map(|e| s.entry(e)).collect();
            s.jump(RETURN, 0x3000, 0x4000);
            let after: Vec<_> = (0..depth).map(|e| s.entry(e)).collect();
            let last = usize::from(depth) - 1;
            assert_eq!(after[..last], before[1..], "{version} {depth}");
            assert_eq!(after[last].0 & 1, 0);
            assert_eq!(before[last].0 & 1, 1);
        }
    }
}

/// A return with nothing to pop: WRPTR goes down all the same, and what it
/// points to is not valid. Later calls are pushed there.
#[test]
fn pop_when_empty() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        for n in 1..=20u64 {
            s.jump(RETURN, 0x1000, 0x2000);
            assert!(s.sources().is_empty());
            assert_eq!(s.wrptr(), (32 - n) % 16, "{version}");
        }
        s.jump(CALL, 0x3000, 0x4000);
        assert_eq!(s.sources(), [0x3000]);
        assert_eq!(s.wrptr(), 13);
    }
}

/// More calls than entries: the oldest are lost, and the returns from them pop
/// nothing.
#[test]
fn deeper_than_the_array() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        for n in 0..20 {
            s.jump(CALL, 0x1000 + 4 * n, 0x2000);
        }
        for left in (4..20).rev() {
            s.jump(RETURN, 0x2000, 0x1000);
            let expected: Vec<u64> = (4..left).rev().map(|n| 0x1000 + 4 * n).collect();
            assert_eq!(s.sources(), expected, "{version}");
        }
        for _ in 0..4 {
            s.jump(RETURN, 0x2000, 0x1000);
            assert!(s.sources().is_empty());
        }
        assert_eq!(s.wrptr(), 0);
    }
}

/// "Co-routine swaps affect both a return and a call. Logical entry 0 is
/// overwritten, and WRPTR is not modified."
#[test]
fn swap() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        s.jump(CALL, 0x1000, 0x2000);
        s.jump(CALL, 0x2000, 0x3000);
        s.jump(SWAP, 0x3000, 0x4000);
        assert_eq!(s.wrptr(), 2, "{version}");
        assert_eq!(s.sources(), [0x3000, 0x1000]);
        let (source, target, data) = s.entry(0);
        assert_eq!((source, target, data & 0xf), (0x3001, 0x4000, 12));
        s.jump(RETURN, 0x4000, 0x3004);
        assert_eq!(s.sources(), [0x1000]);
    }
}

/// A swap with nothing to return from is a record in entry 0 all the same.
#[test]
fn swap_when_empty() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        s.jump(SWAP, 0x3000, 0x4000);
        assert_eq!(s.wrptr(), 0, "{version}");
        assert_eq!(s.entry(0).0, 0x3001);
        assert_eq!(s.entry(0).1, 0x4000);
        // WRPTR did not move, so a call comes behind it.
        s.jump(CALL, 0x5000, 0x6000);
        assert_eq!(s.sources(), [0x5000, 0x3000]);
        assert_eq!(s.wrptr(), 1);
    }
}

/// "Other transfer types are inhibited."
#[test]
fn other_types() {
    for version in Version::ALL {
        for mode in MODES {
            for kind in TYPES {
                let mut s = Software::new(full(version));
                s.record_in(&MODES, "RASEMU NTBREN");
                s.mode = mode;
                s.jump(CALL, 0x1000, 0x2000);
                s.transfer(kind, 0x3000, 0x4000);
                let expected: &[u64] = match kind {
                    Itype::DirectCall | Itype::IndirectCall => &[0x3000, 0x1000],
                    Itype::Return => &[],
                    Itype::Swap => &[0x3000],
                    _ => &[0x1000],
                };
                assert_eq!(s.sources(), expected, "{version} {mode:?} {kind:?}");
            }
        }
    }
}

/// "Transfer type filtering bits and external trap enable bits are ignored."
#[test]
fn filters_are_ignored() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        let filters = 0x0000_ff3e_0000_0000;
        s.control(bits(version, "U RASEMU MTE STE") | filters);
        s.mode = U;
        s.jump(CALL, 0x1000, 0x2000);
        s.jump(Itype::IndirectCall, 0x2000, 0x3000);
        assert_eq!(s.sources(), [0x2000, 0x1000], "{version}");
        s.jump(SWAP, 0x3000, 0x4000);
        assert_eq!(s.sources(), [0x3000, 0x1000]);
        s.jump(RETURN, 0x4000, 0x5000);
        assert_eq!(s.sources(), [0x1000]);
        s.jump(Itype::NotTaken, 0x5000, 0x5004);
        s.change(Itype::Exception, 0x5000, 0x6000, M);
        assert_eq!(s.sources(), [0x1000]);
    }
}

/// Traps and trap returns between enabled modes leave no record, and the calls
/// of all of them share one stack.
#[test]
fn modes_share_a_stack() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&MODES, "RASEMU");
        s.mode = U;
        s.jump(CALL, 0x1000, 0x2000);
        s.change(Itype::Exception, 0x2000, 0x8000, S);
        s.jump(CALL, 0x8000, 0x9000);
        assert_eq!(s.sources(), [0x8000, 0x1000], "{version}");
        s.jump(RETURN, 0x9000, 0x8004);
        s.change(Itype::TrapReturn, 0x8004, 0x2004, U);
        s.jump(RETURN, 0x2004, 0x1004);
        assert!(s.sources().is_empty());
    }
}

/// Disabled modes neither push nor pop.
#[test]
fn disabled_modes() {
    for version in Version::ALL {
        let mut s = stack(full(version), U);
        s.jump(CALL, 0x1000, 0x2000);
        s.change(Itype::Exception, 0x2000, 0x8000, M);
        s.jump(CALL, 0x8000, 0x9000);
        s.jump(RETURN, 0x9000, 0x8004);
        s.jump(RETURN, 0x9000, 0x8004);
        s.jump(SWAP, 0x9000, 0x8004);
        assert_eq!(s.sources(), [0x1000], "{version}");
        assert_eq!(s.wrptr(), 1);
    }
}

/// RASEMU of the host's register is for M, S and U, that of the guest's for VS
/// and VU.
#[test]
fn host_and_guest() {
    for version in Version::ALL {
        for mode in MODES {
            for guest in [false, true] {
                let mut s = Software::new(full(version));
                let ras = bits(version, "RASEMU");
                s.control(bits(version, "M S U") | if guest { 0 } else { ras });
                s.guest_control(bits(version, "S U") | if guest { ras } else { 0 });
                s.mode = mode;
                s.jump(CALL, 0x1000, 0x2000);
                s.jump(RETURN, 0x2000, 0x1004);
                let popped = s.sources().is_empty();
                assert_eq!(popped, mode.is_virtual() == guest, "{version} {mode:?}");
            }
        }
    }
}

/// Where RASEMU is not implemented, everything is recorded.
#[test]
fn not_implemented() {
    for version in Version::ALL {
        let mut s = stack(bare(version), M);
        s.jump(CALL, 0x1000, 0x2000);
        s.jump(RETURN, 0x2000, 0x1004);
        assert_eq!(s.sources(), [0x2000, 0x1000], "{version}");
    }
}

/// V of an entry that is popped is what is cleared: an emulator, or a
/// debugger, still finds the rest.
#[test]
fn only_v_is_cleared() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        s.jump(CALL, 0x1000, 0x2000);
        s.jump(RETURN, 0x2000, 0x1004);
        let (source, target, data) = s.entry(15);
        assert_eq!((source, target, data & 0xf), (0x1000, 0x2000, 9));
    }
}

fn at(s: &mut Software, now: u64, kind: Itype) {
    s.now = now;
    s.jump(kind, 0x1000, 0x2000);
}

/// CC of the newest entry, if it is valid.
fn count(s: &mut Software) -> Option<u64> {
    let data = s.entry(0).2;
    (data >> 15 & 1 != 0).then_some(data >> 16)
}

/// The note: "returns that pop a call entry not only do not reset the cycle
/// counter, but instead add the CC field from the popped entry": each call
/// tells the cycles since the call that is below it.
#[test]
fn cycles_accumulate() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        at(&mut s, 10, CALL);
        assert_eq!(count(&mut s), None);
        at(&mut s, 30, CALL);
        assert_eq!(count(&mut s), Some(20), "{version}");
        at(&mut s, 50, RETURN);
        at(&mut s, 60, CALL);
        assert_eq!(count(&mut s), Some(50), "{version}");
        at(&mut s, 61, CALL);
        at(&mut s, 62, RETURN);
        at(&mut s, 63, RETURN);
        at(&mut s, 64, CALL);
        assert_eq!(count(&mut s), Some(54), "{version}: since 10");
        // The outermost has no count, so neither has the one after it.
        at(&mut s, 65, RETURN);
        at(&mut s, 66, RETURN);
        at(&mut s, 70, CALL);
        assert_eq!(count(&mut s), None, "{version}");
        at(&mut s, 75, CALL);
        assert_eq!(count(&mut s), Some(5), "{version}");
    }
}

/// A swap is a return and a call: its count is that since the call below.
#[test]
fn cycles_of_a_swap() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        at(&mut s, 10, CALL);
        at(&mut s, 30, CALL);
        at(&mut s, 45, SWAP);
        assert_eq!(count(&mut s), Some(35), "{version}");
        at(&mut s, 50, CALL);
        assert_eq!(count(&mut s), Some(5), "{version}");
        at(&mut s, 51, RETURN);
        at(&mut s, 60, SWAP);
        assert_eq!(count(&mut s), Some(50), "{version}");
    }
}

/// A return that pops nothing adds nothing.
#[test]
fn cycles_of_an_empty_stack() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        at(&mut s, 10, CALL);
        at(&mut s, 30, CALL);
        s.set_entry(0, (0, 0, 0x0099_8000));
        at(&mut s, 40, RETURN);
        at(&mut s, 45, CALL);
        assert_eq!(count(&mut s), Some(15), "{version}");
    }
}

/// The note: "an implementation may opt to record CCV=0 for all calls".
#[test]
fn cycles_left_out() {
    for version in Version::ALL {
        let config = Config {
            ras_cycles: RasCycles::Invalid,
            ..full(version)
        };
        let mut s = stack(config, M);
        for (now, kind) in [(10, CALL), (20, CALL), (25, RETURN), (30, CALL), (35, SWAP)] {
            at(&mut s, now, kind);
            assert_eq!(count(&mut s), None, "{version} {now}");
            assert_eq!(s.entry(0).2 >> 16, 0);
        }
        // Not with RASEMU, it counts.
        s.record_in(&[M], "");
        at(&mut s, 40, CALL);
        at(&mut s, 44, CALL);
        assert_eq!(count(&mut s), Some(4));
    }
}

/// 1.0, 6.1.1: on the way to a guest that does not emulate, RASEMU is 0: the
/// trap return is recorded, and counts as others do.
#[test]
fn cycles_on_the_way_to_a_guest() {
    for ras_cycles in [RasCycles::Invalid, RasCycles::Accumulate] {
        let mut s = Software::new(Config {
            ras_cycles,
            ..full(V1_0)
        });
        s.control(bits(V1_0, "S RASEMU"));
        s.guest_control(bits(V1_0, "S"));
        s.mode = S;
        at(&mut s, 10, CALL);
        s.now = 14;
        s.change(Itype::TrapReturn, 0x1000, 0x2000, VS);
        assert_eq!(count(&mut s), Some(4), "{ras_cycles:?}");
    }
}

/// Software writes a control register: the next call has no count, and none
/// after it that takes over from one without.
#[test]
fn cycles_behind_a_write() {
    for version in Version::ALL {
        let mut s = stack(full(version), M);
        at(&mut s, 10, CALL);
        at(&mut s, 20, CALL);
        s.now = 25;
        s.record_in(&[M], "RASEMU");
        at(&mut s, 30, RETURN);
        at(&mut s, 40, CALL);
        assert_eq!(count(&mut s), None, "{version}");
        at(&mut s, 45, CALL);
        assert_eq!(count(&mut s), Some(5), "{version}");
    }
}
