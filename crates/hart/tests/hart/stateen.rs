//! Indirect CSR access and state enables (privileged manual, "Smcsrind/Sscsrind"
//! and "Smstateen/Ssstateen").

use hartrace_flow::{Mode, Model, Place};
use hartrace_hart::{ConfigError, Machine, host::Host};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{Bench, WIDTHS, csr_writes, virt};

const MISELECT: u16 = 0x350;
const SISELECT: u16 = 0x150;
/// The numbers of `ireg` to `ireg6` above the one of the select register.
const ALIASES: [u16; 6] = [1, 2, 3, 5, 6, 7];
const MSTATEEN0: u16 = 0x30c;
const MSTATEEN0H: u16 = 0x31c;
const SSTATEEN0: u16 = 0x10c;
const SENVCFG: u16 = 0x10a;
const SCONTEXT: u16 = 0x5a8;

const SE: u64 = 1 << 63;
const ENVCFG: u64 = 1 << 62;
const CSRIND: u64 = 1 << 60;
const CONTEXT: u64 = 1 << 57;

fn with(xlen: Xlen, names: &str) -> Bench {
    Bench::isa(&format!("rv{}imac_{names}", xlen.bits()))
}

/// Sets all of mstateenN, by the halves of RV32.
fn set_stateen(b: &mut Bench, xlen: Xlen, number: u16, value: u64) {
    b.set_x(A1, xlen.wrap(value));
    b.one(csrw(MSTATEEN0 + number, A1));
    if xlen == Xlen::Rv32 {
        b.set_x(A1, value >> 32);
        b.one(csrw(MSTATEEN0H + number, A1));
    }
}

fn stateen(b: &Bench, xlen: Xlen, number: u16) -> u64 {
    let low = b.csr(MSTATEEN0 + number);
    match xlen {
        Xlen::Rv32 => low | b.csr(MSTATEEN0H + number) << 32,
        Xlen::Rv64 => low,
    }
}

/// Whether any access, reading or writing, is illegal in this mode.
fn is_closed(b: &mut Bench, mode: Mode, number: u16) -> bool {
    let words = [csrr(A0, number), csrw(number, ZERO), csrrsi(A0, number, 1)];
    let closed = words.map(|word| {
        b.set_mode(mode);
        b.is_illegal(word)
    });
    assert!(
        closed.iter().all(|now| *now == closed[0]),
        "{number:#x} {closed:?}"
    );
    b.set_mode(Mode::M);
    closed[0]
}

#[test]
fn nothing_of_it_is_there_without_its_extension() {
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let windows = (MISELECT..=MISELECT + 7).chain(SISELECT..=SISELECT + 7);
        let enables = (0..4).flat_map(|n| [MSTATEEN0 + n, MSTATEEN0H + n, SSTATEEN0 + n]);
        for number in windows.chain(enables) {
            assert!(is_closed(&mut b, Mode::M, number), "{number:#x}");
            assert!(b.m.read(Place::Csr(number)).is_err());
        }
        // And what it would close is open.
        assert!(!is_closed(&mut b, Mode::S, SENVCFG));
        assert!(!is_closed(&mut b, Mode::S, SCONTEXT));
    }
}

#[test]
fn select_registers_hold_what_a_supervisor_is_promised() {
    // "siselect ... will support the value range 0..0xFFF at a minimum".
    for xlen in WIDTHS {
        let mut b = with(xlen, "smcsrind");
        for number in [MISELECT, SISELECT] {
            assert_eq!(b.csr(number), 0);
            b.set_x(A1, u64::MAX);
            let effects = b.one(csrw(number, A1));
            assert_eq!(b.csr(number), 0xfff);
            assert_eq!(csr_writes(&effects), [(number, 0xfff)]);
        }
        // They are two registers.
        b.set_x(A1, 0x234);
        b.one(csrw(SISELECT, A1));
        assert_eq!((b.csr(MISELECT), b.csr(SISELECT)), (0xfff, 0x234));
        b.set_csr(MISELECT, 0x1_0123);
        assert_eq!(b.csr(MISELECT), 0x123, "from outside");
    }
}

#[test]
fn the_level_of_the_extension_is_the_level_of_its_registers() {
    // "Smcsrind encompasses all added CSRs ... over all privilege levels";
    // Sscsrind is without those of machine level.
    for xlen in WIDTHS {
        for (names, machine) in [("smcsrind", true), ("sscsrind", false), ("smctr", true)] {
            let mut b = with(xlen, names);
            assert_eq!(
                is_closed(&mut b, Mode::M, MISELECT),
                !machine,
                "{names} at machine level"
            );
            assert!(!is_closed(&mut b, Mode::M, SISELECT), "{names}");
        }
        let mut b = with(xlen, "smcsrind");
        for (number, least) in [(MISELECT, 3), (SISELECT, 1)] {
            for mode in [Mode::U, Mode::S, Mode::M] {
                let closed = is_closed(&mut b, mode, number);
                assert_eq!(closed, mode.code() < least, "{number:#x} in {mode:?}");
            }
        }
    }
}

#[test]
fn an_alias_of_nothing_is_illegal() {
    // "It is recommended that implementations raise an illegal instruction
    // exception for such accesses".
    let mut b = with(Xlen::Rv64, "smcsrind");
    for select in [0, 1, 0x30, 0x70, 0x1ff, 0x300, 0xfff] {
        b.set_csr(MISELECT, select);
        b.set_csr(SISELECT, select);
        for alias in ALIASES {
            for (number, mode) in [
                (MISELECT + alias, Mode::M),
                (SISELECT + alias, Mode::M),
                (SISELECT + alias, Mode::S),
            ] {
                assert!(is_closed(&mut b, mode, number), "{select:#x} {number:#x}");
                let place = Place::Csr(number);
                assert!(b.m.read(place).is_err());
                assert!(b.m.write(place, 0).is_err());
            }
        }
    }
    // What lies between them belongs to others.
    for number in [0x154, 0x354, 0x158, 0x358] {
        assert!(is_closed(&mut b, Mode::M, number), "{number:#x}");
    }
}

#[test]
fn enables_are_writable_for_state_that_is_there() {
    // "Bits ... that are defined to control state that a hart doesn't implement
    // are read-only zeros"; "On reset, all writable mstateen bits are
    // initialized by the hardware to zeros".
    for xlen in WIDTHS {
        for (names, first) in [
            ("smstateen", SE | ENVCFG | CONTEXT),
            ("smstateen_sscsrind", SE | ENVCFG | CONTEXT | CSRIND),
            ("smstateen_smcsrind", SE | ENVCFG | CONTEXT | CSRIND),
        ] {
            let mut b = with(xlen, names);
            for number in 0..4 {
                assert_eq!(stateen(&b, xlen, number), 0);
                set_stateen(&mut b, xlen, number, u64::MAX);
                let all = if number == 0 { first } else { SE };
                assert_eq!(stateen(&b, xlen, number), all, "{names} {number}");
                // There is nothing that user mode could be kept from.
                b.set_x(A1, u64::MAX);
                let effects = b.one(csrw(SSTATEEN0 + number, A1));
                assert_eq!(csr_writes(&effects), [(SSTATEEN0 + number, 0)]);
                assert_eq!(b.csr(SSTATEEN0 + number), 0);
                set_stateen(&mut b, xlen, number, 0);
                assert_eq!(stateen(&b, xlen, number), 0);
            }
        }
    }
}

#[test]
fn high_halves_of_the_enables_are_for_rv32() {
    let mut b = with(Xlen::Rv64, "smstateen");
    for number in 0..4 {
        assert!(is_closed(&mut b, Mode::M, MSTATEEN0H + number));
    }
    let mut b = with(Xlen::Rv32, "smstateen");
    for number in 0..4 {
        b.set_x(A1, 0xffff_ffff);
        let effects = b.one(csrw(MSTATEEN0H + number, A1));
        let all = if number == 0 {
            (SE | ENVCFG | CONTEXT) >> 32
        } else {
            SE >> 32
        };
        assert_eq!(csr_writes(&effects), [(MSTATEEN0H + number, all)]);
        b.set_csr(MSTATEEN0 + number, 0);
        assert_eq!(b.csr(MSTATEEN0H + number), all, "each half by itself");
        b.set_csr(MSTATEEN0H + number, 0);
        assert_eq!(b.csr(MSTATEEN0H + number), 0);
    }
}

#[test]
fn a_bit_opens_its_state_to_the_modes_below() {
    // "when a stateen CSR prevents access to state by less-privileged levels,
    // an attempt ... raises an illegal instruction exception".
    for xlen in WIDTHS {
        let mut b = with(xlen, "smstateen_smcsrind");
        let rows = [
            (0, SE, SSTATEEN0),
            (1, SE, SSTATEEN0 + 1),
            (2, SE, SSTATEEN0 + 2),
            (3, SE, SSTATEEN0 + 3),
            (0, ENVCFG, SENVCFG),
            (0, CSRIND, SISELECT),
            (0, CONTEXT, SCONTEXT),
        ];
        for (register, bit, number) in rows {
            for open in [false, true] {
                // Every other bit says the opposite.
                for other in 0..4 {
                    let value = if open { 0 } else { u64::MAX };
                    set_stateen(&mut b, xlen, other, value);
                }
                let value = if open { bit } else { !bit };
                set_stateen(&mut b, xlen, register, value);
                assert!(!is_closed(&mut b, Mode::M, number), "{number:#x}");
                assert_eq!(is_closed(&mut b, Mode::S, number), !open, "{number:#x}");
                // User mode has none of them anyhow.
                assert!(is_closed(&mut b, Mode::U, number), "{number:#x}");
            }
        }
    }
}

#[test]
fn other_registers_need_no_enable() {
    let mut b = with(Xlen::Rv64, "smstateen_smcsrind");
    for number in [0x100, 0x104, 0x105, 0x106, 0x140, 0x141, 0x144, 0x180] {
        assert!(!is_closed(&mut b, Mode::S, number), "{number:#x}");
    }
}

#[test]
fn a_reset_closes_all_again() {
    let mut b = with(Xlen::Rv64, "smstateen_smcsrind");
    b.set_csr(MSTATEEN0, u64::MAX);
    b.set_csr(MISELECT, 5);
    b.m.reset();
    assert_eq!((b.csr(MSTATEEN0), b.csr(MISELECT)), (0, 0));
}

#[test]
fn records_bring_what_they_stand_on() {
    // Control transfer records 1.0, chapter 1; the state enables and the
    // overflow of counters are what they can make use of.
    for xlen in WIDTHS {
        for names in ["smctr", "ssctr", "smctr_ssctr"] {
            let mut b = with(xlen, names);
            for number in [MISELECT, SISELECT, MSTATEEN0, SSTATEEN0] {
                assert!(!is_closed(&mut b, Mode::M, number), "{names} {number:#x}");
            }
            // sctrclr
            assert!(!b.is_illegal(0x1040_0073));
        }
    }
    // Other extensions stay unknown to the hart.
    let mut config = virt(Xlen::Rv64);
    config.isa = "rv64imac_smctr_zbkb".to_owned();
    let refused = Machine::new(config, Host::silent()).err();
    let missing = vec!["zbkb".to_owned()];
    assert_eq!(refused, Some(ConfigError::Unsupported(missing)));
}
