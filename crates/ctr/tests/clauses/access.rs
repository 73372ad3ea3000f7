//! Chapter 4 (1.0: 5): who may access what, and which exception says no.

use hartrace_ctr::{Config, Denied, Version};
use hartrace_flow::Mode;
use hartrace_isa::{Itype, Xlen};

use crate::common::*;

/// Bits of `mstateen0` or `hstateen0`: CTR and bit 60.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Enables {
    ctr: bool,
    csrind: bool,
}

impl Enables {
    const OPEN: Enables = Enables {
        ctr: true,
        csrind: true,
    };

    fn all() -> impl Iterator<Item = Enables> {
        let both = [false, true].into_iter();
        both.flat_map(|ctr| [false, true].map(|csrind| Enables { ctr, csrind }))
    }

    /// All other bits set or clear, so that no other bit matters.
    fn to_bits(self, version: Version, rest: bool) -> u64 {
        let ctr = match version {
            V0_1_4 => 1 << 55,
            V1_0 => 1 << 54,
        };
        let named = ctr | 1 << 60;
        let mut bits = if rest { !named } else { 0 };
        if self.ctr {
            bits |= ctr;
        }
        if self.csrind {
            bits |= 1 << 60;
        }
        bits
    }
}

/// What a register is to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    /// Of machine mode.
    Machine,
    /// `sctrctl`, `sctrstatus`: a guest has them, too.
    Supervisor,
    /// `sctrdepth`: a guest does not.
    Depth,
    /// `vsctrctl`.
    Guest,
    /// `miselect`, and `mireg*`, which lead to entries (0.1.4) or nowhere.
    MachineSelect,
    MachineEntry,
    /// `siselect` and `sireg*`.
    SupervisorSelect,
    SupervisorEntry,
    /// `vsiselect` and `vsireg*`.
    GuestSelect,
    GuestEntry,
    /// SCTRCLR, which is no register.
    Clear,
}

use Register::*;

/// The numbers of RV32, which has the most.
fn registers(version: Version) -> Vec<(u16, Register)> {
    let mut all = match version {
        V0_1_4 => vec![
            (0x381, Machine),
            (0x382, Machine),
            (0x383, Machine),
            (0x181, Supervisor),
            (0x182, Supervisor),
            (0x183, Supervisor),
            (0x281, Guest),
            (0x282, Guest),
        ],
        V1_0 => vec![
            (0x34e, Machine),
            (0x14e, Supervisor),
            (0x14f, Supervisor),
            (0x15f, Depth),
            (0x24e, Guest),
            (0, Clear),
        ],
    };
    for (base, select, entry) in [
        (0x350, MachineSelect, MachineEntry),
        (0x150, SupervisorSelect, SupervisorEntry),
        (0x250, GuestSelect, GuestEntry),
    ] {
        all.push((base, select));
        all.extend([1, 2, 3, 5, 6, 7].map(|n| (base + n, entry)));
    }
    all
}

const ILLEGAL: Result<(), Denied> = Err(Denied::Illegal);
const VIRTUAL: Result<(), Denied> = Err(Denied::Virtual);

/// What happens, by the texts: this one, Smcsrind/Sscsrind for bit 60, and the
/// hypervisor extension for registers of other modes.
fn expected(
    version: Version,
    mode: Mode,
    register: Register,
    m: Enables,
    h: Enables,
) -> Result<(), Denied> {
    match (mode, register) {
        // State enables concern the modes below M-mode; debug mode has the
        // rights of M-mode. 1.0 has no entries behind miselect.
        (M | D, MachineEntry) if version == V1_0 => ILLEGAL,
        (M | D, _) => Ok(()),
        (_, Machine | MachineSelect | MachineEntry) => ILLEGAL,
        (U, _) => ILLEGAL,

        // mstateen0.CTR = 0: illegal, for S, VS and VU.
        (_, Supervisor | Depth | Guest | Clear) if !m.ctr => ILLEGAL,
        (S, Supervisor | Depth | Guest | Clear) => Ok(()),
        // A guest's guest has no supervisor's registers, a guest no depth and
        // no vsctrctl of its own.
        (VU, Supervisor | Clear) | (_, Depth | Guest) => VIRTUAL,
        // hstateen0.CTR.
        (_, Supervisor | Clear) if !h.ctr => VIRTUAL,
        (_, Supervisor | Clear) => Ok(()),

        // Bit 60 of mstateen0 closes the windows.
        _ if !m.csrind => ILLEGAL,
        // If it is 1, whatever the other bits: virtual-instruction exceptions
        // for the direct access of a guest to vs*, and for VU-mode.
        (VS | VU, GuestSelect | GuestEntry) | (VU, _) => VIRTUAL,
        (VS, _) if !h.csrind => VIRTUAL,
        (_, SupervisorSelect | GuestSelect) => Ok(()),
        (_, SupervisorEntry | GuestEntry) if !m.ctr => ILLEGAL,
        (VS, SupervisorEntry) if !h.ctr => VIRTUAL,
        (_, SupervisorEntry | GuestEntry) => Ok(()),
    }
}

/// Tries a read and a write.
fn attempt(s: &mut Software, number: u16, register: Register) -> Result<(), Denied> {
    if register == Clear {
        return s.try_clear();
    }
    // The window shows entry 3, whoever looks.
    let (mode, enables) = (s.mode, (s.mstateen0.take(), s.hstateen0.take()));
    s.mode = M;
    for select in [0x350, 0x150, 0x250] {
        s.write(select, 0x203);
    }
    s.mode = mode;
    (s.mstateen0, s.hstateen0) = enables;
    let read = s.try_read(number);
    let written = s.try_write(number, 0x203);
    assert_eq!(read.map(drop), written, "{number:#x} in {mode:?}");
    written
}

/// Every mode, every register, with and without Smstateen, all bits.
#[test]
fn every_mode_and_register() {
    for version in Version::ALL {
        for (number, register) in registers(version) {
            for mode in [M, S, U, VS, VU, D] {
                for (m, h) in Enables::all().flat_map(|m| Enables::all().map(move |h| (m, h))) {
                    for rest in [false, true] {
                        let mut s = Software::new(Config {
                            xlen: Xlen::Rv32,
                            ..full(version)
                        });
                        s.mode = mode;
                        s.mstateen0 = Some(m.to_bits(version, rest));
                        s.hstateen0 = Some(h.to_bits(version, rest));
                        assert_eq!(
                            attempt(&mut s, number, register),
                            expected(version, mode, register, m, h),
                            "{version} {mode:?} {number:#x} {m:?} {h:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Without Smstateen nothing is closed; without H there is no hstateen0.
#[test]
fn without_state_enables() {
    for version in Version::ALL {
        for (number, register) in registers(version) {
            for mode in [M, S, U, VS, VU, D] {
                let mut s = Software::new(Config {
                    xlen: Xlen::Rv32,
                    ..full(version)
                });
                s.mode = mode;
                let open = expected(version, mode, register, Enables::OPEN, Enables::OPEN);
                assert_eq!(attempt(&mut s, number, register), open, "{number:#x}");
            }
            if matches!(register, Guest | GuestSelect | GuestEntry) {
                continue;
            }
            for mode in [M, S, U] {
                for m in Enables::all() {
                    let mut s = Software::new(Config::new(version, Xlen::Rv32));
                    s.mstateen0 = Some(m.to_bits(version, false));
                    s.write(0x350, 0x203);
                    s.write(0x150, 0x203);
                    s.mode = mode;
                    let found = match register {
                        Clear => s.try_clear(),
                        _ => s.try_read(number).map(drop),
                    };
                    let expected = expected(version, mode, register, m, Enables::OPEN);
                    assert_eq!(found, expected, "{version} {mode:?} {number:#x}");
                }
            }
        }
    }
}

/// The high halves of RV32 do not exist for wider software, in any mode; that
/// is not a matter of state enables (0.1.4: "others raise an illegal
/// instruction exception").
#[test]
fn high_halves_of_wider_software() {
    for mode in [M, S, U, VS, VU, D] {
        for h in Enables::all() {
            let mut s = Software::new(full(V0_1_4));
            s.mode = mode;
            s.mstateen0 = Some(u64::MAX);
            s.hstateen0 = Some(h.to_bits(V0_1_4, false));
            for number in [0x182, 0x282, 0x382] {
                assert_eq!(s.try_read(number), Err(Denied::Illegal), "{mode:?}");
            }
        }
    }
}

/// 0.1.4 has no SCTRCLR.
#[test]
fn no_sctrclr_in_0_1_4() {
    for mode in [M, S, U, VS, VU, D] {
        let mut s = Software::new(full(V0_1_4));
        s.mode = mode;
        assert_eq!(s.try_clear(), Err(Denied::Illegal));
    }
}

/// 0.1.4 without S-mode: no sireg*, no vsireg*; mireg* leads to the entries.
#[test]
fn windows_of_a_hart_without_supervisor() {
    let mut s = Software::new(Config {
        supervisor: false,
        ..Config::new(V0_1_4, Xlen::Rv64)
    });
    s.write(0x350, 0x200);
    s.write(0x351, 0x1001);
    assert_eq!(s.read(0x351), 0x1001);
    for select in [0x150, 0x250] {
        s.write(select, 0x200);
        for n in [1, 2, 3, 5, 6, 7] {
            assert_eq!(s.try_read(select + n), Err(Denied::Illegal));
            assert_eq!(s.try_write(select + n, 0), Err(Denied::Illegal));
        }
    }
}

/// Closed state goes on being updated: mstateen0.CTR = 0 for modes below M,
/// hstateen0.CTR = 0 for V = 1.
#[test]
fn closed_state_is_updated() {
    for version in Version::ALL {
        for mode in MODES {
            for (m, h) in [(0, 0), (0, u64::MAX), (u64::MAX, 0)] {
                let mut s = Software::new(full(version));
                s.record_in(&[mode], "");
                s.mstateen0 = Some(m);
                s.hstateen0 = Some(h);
                s.mode = mode;
                s.jump(Itype::DirectJump, 0x1000, 0x2000);
                assert_eq!(s.sources(), [0x1000], "{version} {mode:?}");
                assert_eq!(s.wrptr(), 1);
            }
        }
    }
}
