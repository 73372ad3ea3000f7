//! 5.1 (1.0: 6.1): traps and trap returns between modes.

use hartrace_ctr::Version;
use hartrace_flow::Mode;
use hartrace_isa::Itype;

use crate::common::*;

pub(crate) const SOURCE: u64 = 0x8000_1000;
pub(crate) const TARGET: u64 = 0x8000_2000;

/// Where traps of a mode go.
pub(crate) const TRAPS: [(Mode, &[Mode]); 5] = [
    (M, &[M]),
    (S, &[M, S]),
    (U, &[M, S]),
    (VS, &[M, S, VS]),
    (VU, &[M, S, VS]),
];

/// Where trap returns of a mode go: MRET, SRET, and SRET of a guest.
pub(crate) const RETURNS: [(Mode, &[Mode]); 3] = [
    (M, &[M, S, U, VS, VU]),
    (S, &[S, U, VS, VU]),
    (VS, &[VS, VU]),
];

/// Every way from a mode to a mode, with the types that go it.
pub(crate) fn ways() -> Vec<(Itype, Mode, Mode)> {
    let mut all = Vec::new();
    for (from, targets) in TRAPS {
        for to in targets {
            all.push((Itype::Exception, from, *to));
            all.push((Itype::Interrupt, from, *to));
        }
    }
    for (from, targets) in RETURNS {
        all.extend(targets.iter().map(|to| (Itype::TrapReturn, from, *to)));
    }
    all
}

/// The enables of all five modes, of the traps into disabled ones, and ETEN of
/// 0.1.4.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting {
    /// A bit for each of [`MODES`].
    pub(crate) enabled: u32,
    pub(crate) mte: bool,
    pub(crate) ste: bool,
    pub(crate) vste: bool,
    /// In the machine's register and in the guest's.
    pub(crate) eten: [bool; 2],
}

impl Setting {
    pub(crate) fn enables(&self, mode: Mode) -> bool {
        let at = MODES.iter().position(|m| *m == mode);
        at.is_some_and(|at| self.enabled >> at & 1 != 0)
    }

    /// The machine's register and the guest's.
    pub(crate) fn registers(&self, version: Version) -> (u64, u64) {
        let modes = MODES.into_iter().filter(|mode| self.enables(*mode));
        let mut both = modes.fold([0, 0], |mut both, mode| {
            both[usize::from(mode.is_virtual())] |= enable(version, mode);
            both
        });
        let mut set = |register: usize, name: &str, wanted: bool| {
            if wanted {
                both[register] |= bits(version, name);
            }
        };
        set(0, "MTE", self.mte);
        set(0, "STE", self.ste);
        set(1, "STE", self.vste);
        if version == V0_1_4 {
            set(0, "ETEN", self.eten[0]);
            set(1, "ETEN", self.eten[1]);
        }
        (both[0], both[1])
    }
}

/// What becomes of one transfer: the pcs and the type of its record. `s` is
/// used again and again.
pub(crate) fn outcome(
    s: &mut Software,
    registers: (u64, u64),
    (kind, from, to): (Itype, Mode, Mode),
) -> Option<(u64, u64, u64)> {
    s.control(registers.0);
    s.guest_control(registers.1);
    s.set_status(0);
    s.ctr.clear();
    s.mode = from;
    s.change(kind, SOURCE, TARGET, to);
    let (source, target, data) = s.entry(0);
    let recorded = source & 1 != 0;
    assert_eq!(s.wrptr(), u64::from(recorded));
    recorded.then_some((source & !1, target, data & 0xf))
}

/// The table "Trap and Trap Return Recording", without external traps: source
/// enabled, target enabled, and what is recorded for a trap and a return.
type Pcs = Option<(u64, u64)>;
const TABLE: [(bool, bool, Pcs, Pcs); 4] = [
    (true, true, Some((SOURCE, TARGET)), Some((SOURCE, TARGET))),
    (true, false, None, Some((SOURCE, 0))),
    (false, true, Some((0, TARGET)), None),
    (false, false, None, None),
];

/// Every way between two modes, all 32 combinations of enables.
#[test]
fn every_pair_of_modes() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        for way @ (kind, from, to) in ways() {
            for enabled in 0..32 {
                let setting = Setting {
                    enabled,
                    ..Setting::default()
                };
                let ends = (setting.enables(from), setting.enables(to));
                let row = TABLE.iter().find(|row| (row.0, row.1) == ends).unwrap();
                let pcs = if kind.is_trap() { row.2 } else { row.3 };
                let expected = pcs.map(|(s, t)| (s, t, u64::from(kind.code())));
                let found = outcome(&mut s, setting.registers(version), way);
                assert_eq!(found, expected, "{version} {way:?} {setting:?}");
            }
        }
    }
}

/// FROZEN applies, too: nothing is recorded, whatever is enabled.
#[test]
fn frozen() {
    for version in Version::ALL {
        for (kind, from, to) in ways() {
            let mut s = Software::new(full(version));
            s.record_in(&MODES, "MTE STE");
            s.set_status(0x8000_8000);
            s.mode = from;
            s.change(kind, SOURCE, TARGET, to);
            assert!(s.sources().is_empty(), "{version} {kind:?} {from:?} {to:?}");
        }
    }
}

/// The type's filter applies to full and to partial records.
#[test]
fn filtered() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        for way @ (kind, ..) in ways() {
            let filter = match kind {
                Itype::Exception => "EXCINH",
                Itype::Interrupt => "INTRINH",
                _ => "TRETINH",
            };
            let filter = bits(version, filter);
            for enabled in 0..32 {
                let setting = Setting {
                    enabled,
                    ..Setting::default()
                };
                let (machine, guest) = setting.registers(version);
                let both = (machine | filter, guest | filter);
                let found = outcome(&mut s, both, way);
                assert_eq!(found, None, "{version} {way:?} {enabled:#x}");
            }
        }
    }
}

/// "Transfers into and out of Debug Mode are never recorded", and none within.
/// A jump does not lead into it: debug mode comes behind a jump that retired.
#[test]
fn debug_mode() {
    for version in Version::ALL {
        for mode in [M, S, U, VS, VU, D] {
            for kind in TYPES {
                for (from, to) in [(mode, D), (D, mode)] {
                    let mut s = Software::new(full(version));
                    s.record_in(&MODES, "MTE STE NTBREN");
                    s.mode = from;
                    s.change(kind, SOURCE, TARGET, to);
                    let jumps = !kind.is_trap() && kind != Itype::TrapReturn && from != D;
                    let records = usize::from(jumps);
                    assert_eq!(
                        s.sources().len(),
                        records,
                        "{version} {kind:?} {from:?} {to:?}"
                    );
                    assert_eq!(s.status(), u64::from(jumps));
                }
            }
        }
    }
}

/// What comes behind a change of mode counts for the new mode.
#[test]
fn behind_a_transition() {
    for version in Version::ALL {
        for (kind, from, to) in ways() {
            for enabled in 0..32 {
                let setting = Setting {
                    enabled,
                    ..Setting::default()
                };
                let (machine, guest) = setting.registers(version);
                let mut s = Software::new(full(version));
                s.control(machine);
                s.guest_control(guest);
                s.mode = from;
                s.change(kind, SOURCE, TARGET, to);
                let before = s.sources().len();
                s.jump(Itype::DirectJump, 0x9000, 0xa000);
                let more = s.sources().len() - before;
                assert_eq!(more == 1, setting.enables(to), "{version} {to:?}");
            }
        }
    }
}

/// 1.0, 6.1.1: on a transition between V = 0 and V = 1 the filters, and RASEMU,
/// are the guest's; else those of the modes' own register. In 0.1.4 they are
/// those of the register in force: the source's.
#[test]
fn filters_on_transitions() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        for way @ (kind, from, to) in ways() {
            let filter = match kind {
                Itype::Exception => "EXCINH",
                Itype::Interrupt => "INTRINH",
                _ => "TRETINH",
            };
            let guests = match version {
                V0_1_4 => from.is_virtual(),
                V1_0 => from.is_virtual() || to.is_virtual(),
            };
            for name in [filter, "RASEMU"] {
                let field = bits(version, name);
                let setting = Setting {
                    enabled: 31,
                    ..Setting::default()
                };
                let (machine, guest) = setting.registers(version);
                let in_machine = outcome(&mut s, (machine | field, guest), way);
                let in_guest = outcome(&mut s, (machine, guest | field), way);
                assert_eq!(in_machine.is_some(), guests, "{version} {way:?} {name}");
                assert_eq!(in_guest.is_some(), !guests, "{version} {way:?} {name}");
            }
        }
    }
}

/// 1.0, 6.1.1, note: VU to HS, both enabled: the filters of vsctrctl.
#[test]
fn the_example_of_virtualization() {
    let mut s = Software::new(full(V1_0));
    let way = (Itype::Exception, VU, S);
    let (host, guest) = (bits(V1_0, "S"), bits(V1_0, "U"));
    let filter = bits(V1_0, "EXCINH");
    assert!(outcome(&mut s, (host, guest), way).is_some());
    assert!(outcome(&mut s, (host | filter, guest), way).is_some());
    assert!(outcome(&mut s, (host, guest | filter), way).is_none());
}
