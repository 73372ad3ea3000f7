//! 5.2.1 (1.0: 6.1.2): traps from an enabled to a disabled mode.

use hartrace_ctr::Version;
use hartrace_flow::Mode;
use hartrace_isa::Itype;

use crate::common::*;
use crate::transitions::{SOURCE, Setting, outcome, ways};

/// An enable, and whose register it is in.
#[derive(Clone, Copy, Debug)]
enum Enable {
    Mte,
    Ste,
    Vste,
}

use Enable::{Mte, Ste, Vste};

/// 1.0, the table "External Trap Enable Requirements".
const REQUIRED_1_0: [(Mode, Mode, &[Enable]); 8] = [
    (U, S, &[Ste]),
    (U, M, &[Mte, Ste]),
    (S, M, &[Mte]),
    (VU, VS, &[Vste]),
    (VU, S, &[Ste, Vste]),
    (VU, M, &[Mte, Ste, Vste]),
    (VS, S, &[Ste]),
    (VS, M, &[Mte, Ste]),
];

/// 0.1.4: xTE of the target mode, and ETEN.
const REQUIRED_0_1_4: [(Mode, Mode, &[Enable]); 8] = [
    (U, S, &[Ste]),
    (U, M, &[Mte]),
    (S, M, &[Mte]),
    (VU, VS, &[Vste]),
    (VU, S, &[Ste]),
    (VU, M, &[Mte]),
    (VS, S, &[Ste]),
    (VS, M, &[Mte]),
];

/// Whether an external trap is recorded.
fn recorded(version: Version, from: Mode, to: Mode, setting: &Setting) -> bool {
    let table = match version {
        V0_1_4 => REQUIRED_0_1_4,
        V1_0 => REQUIRED_1_0,
    };
    let row = table.iter().find(|row| (row.0, row.1) == (from, to));
    let required = row.unwrap_or_else(|| panic!("{from:?} {to:?}")).2;
    let given = required.iter().all(|enable| match enable {
        Mte => setting.mte,
        Ste => setting.ste,
        Vste => setting.vste,
    });
    // ETEN is the wish of those who are recorded: of the source's register.
    let wished = version == V1_0 || setting.eten[usize::from(from.is_virtual())];
    given && wished
}

fn settings() -> impl Iterator<Item = Setting> {
    (0u32..1 << 10).map(|n| Setting {
        enabled: n & 31,
        mte: n >> 5 & 1 != 0,
        ste: n >> 6 & 1 != 0,
        vste: n >> 7 & 1 != 0,
        eten: [n >> 8 & 1 != 0, n >> 9 & 1 != 0],
    })
}

/// Every trap between two modes, with all combinations of enables. "In such
/// cases, the target PC is 0"; the type stays that of the trap. Trap returns
/// do not depend on any of this.
#[test]
fn every_combination() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        for way @ (kind, from, to) in ways() {
            for setting in settings() {
                let ends = (setting.enables(from), setting.enables(to));
                let registers = setting.registers(version);
                let found = outcome(&mut s, registers, way);
                if kind.is_trap() && ends == (true, false) {
                    let code = u64::from(kind.code());
                    let expected = recorded(version, from, to, &setting);
                    let expected = expected.then_some((SOURCE, 0, code));
                    assert_eq!(found, expected, "{version} {way:?} {setting:?}");
                } else {
                    let without = Setting {
                        enabled: setting.enabled,
                        ..Setting::default()
                    };
                    let plain = outcome(&mut s, without.registers(version), way);
                    assert_eq!(found, plain, "{version} {way:?} {setting:?}");
                }
            }
        }
    }
}

/// "external trap recording does not depend on EXCINH/INTRINH": nor on any
/// other filter.
#[test]
fn filters_do_not_count() {
    for version in Version::ALL {
        let all = 0x0000_ff3e_0000_0000;
        let mut s = Software::new(full(version));
        let traps = ways().into_iter().filter(|way| way.0.is_trap());
        for way @ (kind, from, to) in traps.filter(|way| way.1 != way.2) {
            let setting = Setting {
                enabled: 31 & !(1 << MODES.iter().position(|m| *m == to).unwrap()),
                mte: true,
                ste: true,
                vste: true,
                eten: [true; 2],
            };
            let (machine, guest) = setting.registers(version);
            let found = outcome(&mut s, (machine | all, guest | all), way);
            let code = u64::from(kind.code());
            assert_eq!(found, Some((SOURCE, 0, code)), "{version} {from:?} {to:?}");
        }
    }
}

/// 0.1.4: the two examples of the note. A guest that wants to see its own
/// traps, and a hypervisor that does not show its own; firmware that shows, and
/// a profiler that does not look.
#[test]
fn examples_of_the_handshake() {
    let mut s = Software::new(full(V0_1_4));
    let guest = bits(V0_1_4, "U ETEN STE");
    let exception = Itype::Exception;
    assert!(outcome(&mut s, (0, guest), (exception, VU, VS)).is_some());
    assert!(outcome(&mut s, (0, guest), (exception, VU, S)).is_none());
    let shown = bits(V0_1_4, "U MTE");
    assert!(outcome(&mut s, (shown, 0), (exception, U, M)).is_none());
    let looked = bits(V0_1_4, "U MTE ETEN");
    assert!(outcome(&mut s, (looked, 0), (exception, U, M)).is_some());
}

/// "No mechanism exists for recording external trap returns": a return from a
/// disabled mode leaves nothing.
#[test]
fn returns() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        for way @ (_, from, _) in ways().into_iter().filter(|w| !w.0.is_trap()) {
            let at = MODES.iter().position(|m| *m == from).unwrap();
            let setting = Setting {
                enabled: 31 & !(1 << at),
                mte: true,
                ste: true,
                vste: true,
                eten: [true; 2],
            };
            assert_eq!(outcome(&mut s, setting.registers(version), way), None);
        }
    }
}

/// Where the enables do not exist, external traps are not recorded.
#[test]
fn not_implemented() {
    for version in Version::ALL {
        let mut s = Software::new(bare(version));
        let ones = !bits(version, "M S");
        let ones = match version {
            V0_1_4 => ones & !CLR,
            V1_0 => ones & !bits(version, "BPFRZ"),
        };
        for to in [M, S] {
            assert_eq!(
                outcome(&mut s, (ones, ones), (Itype::Exception, U, to)),
                None
            );
        }
    }
}
