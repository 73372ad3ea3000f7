//! 5.5 (1.0: 6.5): what freezes.

use hartrace_ctr::Version;
use hartrace_flow::{Cause, Mode};
use hartrace_isa::Itype;

use crate::common::*;
use crate::transitions::{RETURNS, TRAPS};

const BREAKPOINT: (Itype, Cause) = (Itype::Exception, Cause::Exception(Some(3)));
const OVERFLOW: (Itype, Cause) = (Itype::Interrupt, Cause::Interrupt(Some(13)));

/// The two causes and their fields.
const FREEZES: [((Itype, Cause), &str); 2] = [(BREAKPOINT, "BPFRZ"), (OVERFLOW, "LCOFIFRZ")];

/// Every trap between two modes.
fn traps() -> impl Iterator<Item = (Mode, Mode)> {
    let all = TRAPS.into_iter();
    all.flat_map(|(from, targets)| targets.iter().map(move |to| (from, *to)))
}

fn is_frozen(s: &mut Software) -> bool {
    let frozen = match s.version {
        V0_1_4 => 1 << 15,
        V1_0 => 1 << 31,
    };
    s.status() & frozen != 0
}

/// Each target mode, each register: 1.0: mctrctl/sctrctl for traps into M and
/// S, vsctrctl for those into VS. 0.1.4: the register in force, which is that
/// of the mode that traps. Enabled or not.
#[test]
fn every_trap_and_register() {
    for version in Version::ALL {
        for ((kind, cause), name) in FREEZES {
            let field = bits(version, name);
            for (from, to) in traps() {
                for enabled in [0, u64::MAX] {
                    for (host, guest) in [(0, 0), (field, 0), (0, field), (field, field)] {
                        let mut s = Software::new(full(version));
                        s.control(bits(version, "M S U") & enabled | host);
                        s.guest_control(bits(version, "S U") & enabled | guest);
                        s.mode = from;
                        s.trap(kind, Some(cause), 0x1000, 0x2000, to);
                        let asked = match version {
                            V0_1_4 if from.is_virtual() => guest,
                            V1_0 if to == VS => guest,
                            _ => host,
                        };
                        let what = format!("{version} {name} {from:?} {to:?} {host:x} {guest:x}");
                        assert_eq!(is_frozen(&mut s), asked != 0, "{what}");
                        // "The trap itself is not recorded."
                        let recorded = asked == 0 && enabled != 0;
                        assert_eq!(s.sources().len(), usize::from(recorded), "{what}");
                    }
                }
            }
        }
    }
}

/// The supervisor sets the fields, too, and a guest its own.
#[test]
fn fields_of_the_supervisor() {
    for version in Version::ALL {
        for ((kind, cause), name) in FREEZES {
            for (mode, trapped, to) in [(S, U, S), (S, U, M), (VS, VU, VS)] {
                let mut s = Software::new(full(version));
                s.mode = mode;
                let number = s.map().sctl;
                s.write(number, bits(version, name));
                s.mode = trapped;
                s.trap(kind, Some(cause), 0x1000, 0x2000, to);
                assert!(is_frozen(&mut s), "{version} {name} {mode:?}");
            }
        }
    }
}

/// No other cause freezes, nor these numbers as the other kind of trap.
#[test]
fn other_causes() {
    for version in Version::ALL {
        for number in 0..64 {
            let traps = [
                (Itype::Exception, Cause::Exception(Some(number))),
                (Itype::Interrupt, Cause::Interrupt(Some(number))),
            ];
            for trap @ (kind, cause) in traps {
                let mut s = Software::new(full(version));
                s.record_in(&MODES, "BPFRZ LCOFIFRZ");
                s.mode = U;
                s.trap(kind, Some(cause), 0x1000, 0x2000, S);
                let expected = trap == BREAKPOINT || trap == OVERFLOW;
                assert_eq!(is_frozen(&mut s), expected, "{version} {cause:?}");
                assert_eq!(s.sources().is_empty(), expected);
            }
        }
        for (kind, cause) in [
            (Itype::Exception, Some(Cause::Exception(None))),
            (Itype::Interrupt, Some(Cause::Interrupt(None))),
            (Itype::Exception, None),
        ] {
            let mut s = Software::new(full(version));
            s.record_in(&MODES, "BPFRZ LCOFIFRZ");
            s.trap(kind, cause, 0x1000, 0x2000, M);
            assert!(!is_frozen(&mut s), "{version} {cause:?}");
        }
    }
}

/// Each field is for its own cause.
#[test]
fn each_for_its_own() {
    for version in Version::ALL {
        for ((kind, cause), name) in FREEZES {
            for (_, other) in FREEZES.iter().filter(|row| row.1 != name) {
                let mut s = Software::new(full(version));
                s.record_in(&MODES, other);
                s.trap(kind, Some(cause), 0x1000, 0x2000, M);
                assert!(!is_frozen(&mut s), "{version} {name}");
                assert_eq!(s.sources(), [0x1000]);
            }
        }
    }
}

/// "It does not include entry into Debug Mode."
#[test]
fn debug_mode_does_not_freeze() {
    for version in Version::ALL {
        for ((kind, cause), _) in FREEZES {
            for mode in MODES {
                let mut s = Software::new(full(version));
                s.record_in(&MODES, "BPFRZ LCOFIFRZ");
                s.mode = mode;
                s.trap(kind, Some(cause), 0x1000, 0x2000, D);
                assert!(!is_frozen(&mut s), "{version} {mode:?}");
                assert!(s.sources().is_empty());
            }
        }
    }
}

/// An external trap that freezes is not recorded either.
#[test]
fn external_traps() {
    for version in Version::ALL {
        for ((kind, cause), name) in FREEZES {
            let mut s = Software::new(full(version));
            let eten = if version == V0_1_4 { "ETEN" } else { "" };
            s.record_in(&[U], &format!("MTE STE {eten} {name}"));
            s.mode = U;
            s.trap(kind, Some(cause), 0x1000, 0x2000, M);
            assert!(is_frozen(&mut s), "{version} {name}");
            assert!(s.sources().is_empty());
        }
    }
}

/// It stays frozen until software says otherwise: nothing of the handler is
/// recorded; the return is, if FROZEN was cleared before it.
#[test]
fn until_software_clears_it() {
    for version in Version::ALL {
        for ((kind, cause), name) in FREEZES {
            for (handler, targets) in RETURNS {
                for cleared in [false, true] {
                    let mut s = Software::new(full(version));
                    s.record_in(&MODES, name);
                    s.mode = handler;
                    s.jump(Itype::DirectCall, 0x1000, 0x2000);
                    s.trap(kind, Some(cause), 0x2000, 0x8000, handler);
                    s.jump(Itype::DirectCall, 0x8000, 0x9000);
                    assert_eq!(s.sources(), [0x1000]);
                    if cleared {
                        s.set_status(1);
                    }
                    s.change(Itype::TrapReturn, 0x9000, 0x2000, targets[0]);
                    let expected: &[u64] = if cleared {
                        &[0x9000, 0x1000]
                    } else {
                        &[0x1000]
                    };
                    assert_eq!(s.sources(), expected, "{version} {name} {handler:?}");
                    assert_eq!(is_frozen(&mut s), !cleared);
                }
            }
        }
    }
}

/// Frozen or not, RASEMU or not, a second one changes nothing.
#[test]
fn frozen_already() {
    for version in Version::ALL {
        for extra in ["", "RASEMU"] {
            let mut s = Software::new(full(version));
            s.record_in(&MODES, &format!("BPFRZ {extra}"));
            s.jump(Itype::DirectCall, 0x1000, 0x2000);
            for _ in 0..3 {
                let (kind, cause) = BREAKPOINT;
                s.trap(kind, Some(cause), 0x1000, 0x2000, M);
                assert!(is_frozen(&mut s));
                assert_eq!(s.sources(), [0x1000], "{version} {extra}");
                assert_eq!(s.wrptr(), 1);
            }
        }
    }
}

/// Cycles are counted up to the trap that freezes, and from where FROZEN is
/// cleared.
#[test]
fn cycles_around_a_freeze() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "BPFRZ");
        s.now = 10;
        s.jump(Itype::DirectCall, 0x1000, 0x2000);
        s.now = 16;
        let (kind, cause) = BREAKPOINT;
        s.trap(kind, Some(cause), 0x2000, 0x8000, M);
        s.now = 100;
        s.set_status(1);
        s.now = 103;
        s.jump(Itype::DirectCall, 0x3000, 0x4000);
        assert_eq!(s.entry(0).2 >> 15, 9 << 1 | 1, "{version}");
    }
}

/// Where a field is not implemented nothing freezes. BPFRZ of 1.0 always is.
#[test]
fn not_implemented() {
    for version in Version::ALL {
        for ((kind, cause), name) in FREEZES {
            let mut s = Software::new(bare(version));
            s.record_in(&[M], name);
            s.trap(kind, Some(cause), 0x1000, 0x2000, M);
            let there = version == V1_0 && name == "BPFRZ";
            assert_eq!(is_frozen(&mut s), there, "{version} {name}");
            assert_eq!(s.sources().is_empty(), there);
        }
    }
}
