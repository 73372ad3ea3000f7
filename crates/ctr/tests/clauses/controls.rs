//! Chapter 2 of both texts: the control registers, field by field.

use hartrace_ctr::{Config, ConfigError, Control, Csr, Denied, Version};
use hartrace_isa::Xlen;

use crate::common::*;

/// Writes all ones and all zeros to a control register of 64 bits, and gives
/// what was read back; as machine mode.
fn ones_and_zeros(config: Config, guest: bool) -> (u64, u64) {
    let mut s = Software::new(config);
    let map = s.map();
    let (low, high) = if guest {
        (map.vsctl, map.vsctlh)
    } else {
        (map.mctl, map.mctlh)
    };
    let read = |s: &mut Software, value: u64| match config.xlen {
        Xlen::Rv64 => s.try_out(low, value),
        Xlen::Rv32 if high == 0 => s.try_out(low, value),
        Xlen::Rv32 => {
            s.write(low, value);
            s.write(high, value >> 32);
            s.read(low) | s.read(high) << 32
        }
    };
    (read(&mut s, u64::MAX), read(&mut s, 0))
}

/// Every defined bit of the machine's register, as the register pictures have
/// them. CLR reads as 0; DEPTH at its largest.
const ALL_0_1_4: u64 = 0x0000_ff7e_000f_1f07;
const ALL_1_0: u64 = 0x0000_ff3e_0000_1b87;

/// What every implementation has: 0.1.4 M, S, U, DEPTH; 1.0 M, S, U, BPFRZ.
const MUST_0_1_4: u64 = 0xf_0007;
const MUST_1_0: u64 = 0x807;

/// M and MTE, which only the machine sees (2.2).
const MACHINE_0_1_4: u64 = 0x101;
const MACHINE_1_0: u64 = 0x204;

const fn all(version: Version) -> u64 {
    match version {
        V0_1_4 => ALL_0_1_4,
        V1_0 => ALL_1_0,
    }
}

const fn must(version: Version) -> u64 {
    match version {
        V0_1_4 => MUST_0_1_4,
        V1_0 => MUST_1_0,
    }
}

const fn machine(version: Version) -> u64 {
    match version {
        V0_1_4 => MACHINE_0_1_4,
        V1_0 => MACHINE_1_0,
    }
}

/// The bits of DEPTH in a register.
const fn depth(version: Version) -> u64 {
    match version {
        V0_1_4 => DEPTH_0_1_4,
        V1_0 => 0,
    }
}

/// The bits that reach software of this width: 1.0 has no high halves.
const fn reached(config: &Config, bits: u64) -> u64 {
    match (config.version, config.xlen) {
        (V1_0, Xlen::Rv32) => bits & 0xffff_ffff,
        _ => bits,
    }
}

/// 2.6: numbers and names.
#[test]
fn numbers() {
    let expected = |version, number| match (version, number) {
        (V0_1_4, 0x181) | (V1_0, 0x14e) => Some(Csr::SupervisorControl),
        (V0_1_4, 0x182) => Some(Csr::SupervisorControlHigh),
        (V0_1_4, 0x183) | (V1_0, 0x14f) => Some(Csr::SupervisorStatus),
        (V0_1_4, 0x281) | (V1_0, 0x24e) => Some(Csr::GuestControl),
        (V0_1_4, 0x282) => Some(Csr::GuestControlHigh),
        (V0_1_4, 0x381) | (V1_0, 0x34e) => Some(Csr::MachineControl),
        (V0_1_4, 0x382) => Some(Csr::MachineControlHigh),
        (V0_1_4, 0x383) => Some(Csr::MachineStatus),
        (V1_0, 0x15f) => Some(Csr::Depth),
        _ => None,
    };
    for version in Version::ALL {
        for number in 0..0x1000 {
            assert_eq!(
                Csr::from_number(version, number),
                expected(version, number),
                "{version} {number:#x}"
            );
        }
    }
}

/// 2.1: each field by its name at its bit, the names of the other text too.
#[test]
fn names_and_bits() {
    for version in Version::ALL {
        let mut union = 0;
        for &(name, bit) in fields(version) {
            let field = Control::field(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(field.to_bits(version), 1 << bit, "{version} {name}");
            assert_eq!(Control::from_bits(version, 1 << bit), field);
            assert_eq!(field.names(version).collect::<Vec<_>>(), [name]);
            assert_eq!(union & 1 << bit, 0, "{version} {name} stands alone");
            union |= 1 << bit;
        }
        assert_eq!(union | depth(version), all(version), "{version}");
        assert_eq!(Control::from_bits(version, !union), Control::NONE);
    }
    assert_eq!(Control::field("CLR"), None);
    assert_eq!(Control::field("eten"), Some(Control::ETEN));
    assert_eq!(Control::ETEN.to_bits(V1_0), 0);
}

/// 2.1: with everything implemented every field is writable; other bits, CLR
/// and the custom bits among them, read as 0.
#[test]
fn every_field_of_the_machine() {
    for config in everything() {
        let version = config.version;
        let (ones, zeros) = ones_and_zeros(config, false);
        assert_eq!(ones, reached(&config, all(version)), "{config:?}");
        assert_eq!(zeros, 0, "{config:?}");
        for &(name, bit) in fields(version) {
            let mut s = Software::new(config);
            s.control(1 << bit);
            let held = s.ctr.control();
            let there = reached(&config, 1 << bit);
            assert_eq!(held, Control::from_bits(version, there), "{name}");
        }
    }
}

/// 2.3: vsctrcontrol, vsctrctl: the same without M and MTE. DEPTH of 0.1.4 is
/// there, to be read.
#[test]
fn every_field_of_the_guest() {
    for config in everything() {
        let version = config.version;
        let (ones, zeros) = ones_and_zeros(config, true);
        let writable = all(version) & !machine(version) & !depth(version);
        assert_eq!(ones, reached(&config, writable), "{config:?}");
        assert_eq!(zeros, 0);
    }
}

/// 2.1: with nothing optional, what is left is what every implementation has.
#[test]
fn required_fields() {
    for version in Version::ALL {
        let (ones, zeros) = ones_and_zeros(bare(version), false);
        assert_eq!((ones, zeros), (must(version), 0), "{version}");
        let (ones, zeros) = ones_and_zeros(bare(version), true);
        let guest = must(version) & !machine(version) & !depth(version);
        assert_eq!((ones, zeros), (guest, 0), "{version}");
    }
    // 0.1.4: S only with S-mode; and so is STE.
    let machine_only = Config {
        supervisor: false,
        ..Config::new(V0_1_4, Xlen::Rv64)
    };
    let (ones, _) = ones_and_zeros(machine_only, false);
    assert_eq!(ones, ALL_0_1_4 & !bits(V0_1_4, "S STE"));
    let none = Config {
        fields: Control::NONE,
        ..machine_only
    };
    assert_eq!(
        ones_and_zeros(none, false).0,
        MUST_0_1_4 & !bits(V0_1_4, "S")
    );
}

/// 2.1: each optional field alone. Fields of external traps come together
/// (5.2.1).
#[test]
fn each_option_alone() {
    for version in Version::ALL {
        for &(name, _) in fields(version) {
            let with = match (version, name) {
                (V0_1_4, "ETEN") => "ETEN MTE STE",
                (V1_0, "MTE" | "STE") => "MTE STE",
                _ => name,
            };
            let added = bits(version, with);
            let config = Config {
                fields: Control::from_bits(version, added),
                ..bare(version)
            };
            let expected = must(version) | added;
            assert_eq!(
                ones_and_zeros(config, false),
                (expected, 0),
                "{version} {name}"
            );
            let guest = expected & !machine(version) & !depth(version);
            assert_eq!(ones_and_zeros(config, true), (guest, 0), "{version} {name}");
        }
    }
}

/// 2.1, 5.2.1 (1.0: 6.1.2): implementations that the texts do not allow.
#[test]
fn implementations_that_are_none() {
    let fields = |version, names| Config {
        fields: Control::from_bits(version, bits(version, names)),
        ..full(version)
    };
    let machine_only = |version| Config {
        supervisor: false,
        hypervisor: false,
        ..full(version)
    };
    let half = Err(ConfigError::HalfExternal);
    let rows = [
        // 0.1.4, 5.2.1: with ETEN, MTE, and STE with S-mode.
        (fields(V0_1_4, "ETEN"), half),
        (fields(V0_1_4, "ETEN MTE"), half),
        (fields(V0_1_4, "ETEN STE"), half),
        (fields(V0_1_4, "ETEN MTE STE"), Ok(())),
        (
            Config {
                supervisor: false,
                hypervisor: false,
                ..fields(V0_1_4, "ETEN MTE")
            },
            Ok(()),
        ),
        // 1.0, 6.1.2: MTE and STE both, or neither.
        (fields(V1_0, "MTE"), half),
        (fields(V1_0, "STE"), half),
        (fields(V1_0, "MTE STE"), Ok(())),
        // 1.0, 2.6: S-mode is needed.
        (machine_only(V0_1_4), Ok(())),
        (machine_only(V1_0), Err(ConfigError::NoSupervisor)),
        (
            Config {
                hypervisor: true,
                ..machine_only(V0_1_4)
            },
            Err(ConfigError::NoSupervisor),
        ),
    ];
    for (config, expected) in rows {
        assert_eq!(config.validate(), expected, "{config:?}");
    }
}

/// 2.2: sctrcontrol and sctrctl show all but M and MTE, and leave these two as
/// they are.
#[test]
fn the_supervisor_does_not_see_the_machine() {
    for version in Version::ALL {
        let hidden = machine(version);
        let map = map(version);
        for mode in [M, S, D] {
            for before in [0, hidden] {
                let mut s = Software::new(full(version));
                s.write(map.mctl, before);
                s.mode = mode;
                let ones = s.try_out(map.sctl, u64::MAX);
                assert_eq!(ones, all(version) & !hidden, "{version} {mode:?}");
                let whole = s.as_machine(|s| s.read(map.mctl));
                assert_eq!(whole, all(version) & !hidden | before);
                assert_eq!(s.try_out(map.sctl, 0), 0);
                assert_eq!(s.as_machine(|s| s.read(map.mctl)), before);
            }
        }
    }
}

/// 2.2, 2.3: with V = 1 sctrcontrol and sctrctl are the guest's, and the host's
/// stays as it is.
#[test]
fn guests_see_their_own() {
    for version in Version::ALL {
        let map = map(version);
        let mut s = Software::new(full(version));
        let host = bits(version, "M S MTE RASEMU EXCINH");
        s.write(map.mctl, host);
        s.mode = VS;
        let guest = all(version) & !machine(version) & !depth(version);
        assert_eq!(s.try_out(map.sctl, u64::MAX), guest, "{version}");
        s.mode = S;
        assert_eq!(s.read(map.vsctl), guest);
        assert_eq!(s.read(map.sctl), host & !machine(version));
        s.write(map.vsctl, bits(version, "U BPFRZ"));
        s.mode = VS;
        assert_eq!(s.read(map.sctl), bits(version, "U BPFRZ"));
        s.write(map.sctl, 0);
        s.mode = M;
        assert_eq!(s.read(map.vsctl), 0);
        assert_eq!(s.read(map.mctl), host);
    }
}

/// 0.1.4, 2.3: the guest's DEPTH is a copy of the host's that cannot be
/// written.
#[test]
fn guests_see_the_depth_of_the_host() {
    for (code, depth) in [(0, 16), (1, 32), (3, 64), (7, 128), (15, 256)] {
        let mut s = Software::new(full(V0_1_4));
        s.write(0x381, code << 16);
        for value in [0, !CLR] {
            s.mode = S;
            assert_eq!(s.try_out(0x281, value) & DEPTH_0_1_4, code << 16);
            s.mode = VS;
            assert_eq!(s.try_out(0x181, value) & DEPTH_0_1_4, code << 16);
            s.mode = M;
            assert_eq!(s.read(0x381) & DEPTH_0_1_4, code << 16);
            assert_eq!(s.ctr.depth(), depth);
        }
    }
}

/// 0.1.4, 2.1 to 2.3: on RV32 the high halves are registers of their own; each
/// half leaves the other alone.
#[test]
fn high_halves() {
    let config = Config::new(V0_1_4, Xlen::Rv32).with_hypervisor();
    let high = 0xff7e;
    for (mode, low_number, high_number, low) in [
        (M, 0x381, 0x382, 0xf_1f07),
        (M, 0x181, 0x182, 0xf_1e06),
        (M, 0x281, 0x282, 0x1e06),
        (S, 0x181, 0x182, 0xf_1e06),
        (S, 0x281, 0x282, 0x1e06),
        (VS, 0x181, 0x182, 0x1e06),
    ] {
        let what = format!("{low_number:#x} in {mode:?}");
        let mut s = Software::new(config);
        s.mode = mode;
        assert_eq!(s.try_out(high_number, u64::MAX), high, "{what}");
        assert_eq!(s.read(low_number), 0, "{what}");
        assert_eq!(s.try_out(low_number, u64::MAX), low, "{what}");
        assert_eq!(s.read(high_number), high, "{what}");
        assert_eq!(s.try_out(high_number, 0), 0, "{what}");
        assert_eq!(s.read(low_number), low, "{what}");
        // What is written to the high half does not clear: CLR is in the low.
        s.set_status(3);
        s.write(high_number, CLR);
        assert_eq!(s.wrptr(), 3, "{what}");
    }
}

/// 0.1.4, 2.6: "For RV32 only". 1.0, 2.6: RV32 cannot reach bits 63:32.
#[test]
fn no_high_halves_elsewhere() {
    let mut s = Software::new(full(V0_1_4));
    for number in [0x182, 0x282, 0x382] {
        assert_eq!(s.try_read(number), Err(Denied::Illegal));
        assert_eq!(s.try_write(number, 0), Err(Denied::Illegal));
    }
    // A supervisor of 32 bits on a hart of 64 has them: it is RV32.
    s.control(bits(V0_1_4, "M MTE EXCINH"));
    s.mode = S;
    s.xlen = Xlen::Rv32;
    assert_eq!(s.try_out(0x182, 0xff7e), 0xff7e);
    assert_eq!(s.try_out(0x181, 2), 2);
    assert_eq!(s.as_machine(|s| s.read(0x381)), 0x0000_ff7e_0000_0103);
    // In 1.0 it leaves bits 63:32 as they are.
    let mut s = Software::new(full(V1_0));
    s.control(bits(V1_0, "M MTE RETINH"));
    s.mode = S;
    s.xlen = Xlen::Rv32;
    assert_eq!(s.try_out(0x14e, u64::MAX), 0x1983);
    let expected = bits(V1_0, "M MTE RETINH") | 0x1983;
    assert_eq!(s.as_machine(|s| s.read(0x34e)), expected);
}

/// 0.1.4, 2.1, CLR: "Reads will always return 0".
#[test]
fn clr_reads_as_zero() {
    for (mode, number) in [
        (M, 0x381),
        (M, 0x181),
        (M, 0x281),
        (S, 0x181),
        (S, 0x281),
        (VS, 0x181),
    ] {
        let mut s = Software::new(full(V0_1_4));
        s.mode = mode;
        assert_eq!(s.try_out(number, CLR), 0, "{number:#x} in {mode:?}");
    }
}

/// 0.1.4, 2.2, 2.3: without S-mode no sctrcontrol, without H no vsctrcontrol.
#[test]
fn registers_of_modes_that_are_not_there() {
    let machine_only = Config {
        supervisor: false,
        ..Config::new(V0_1_4, Xlen::Rv32)
    };
    let mut s = Software::new(machine_only);
    for number in [0x181, 0x182, 0x183, 0x281, 0x282] {
        assert_eq!(s.try_read(number), Err(Denied::Illegal), "{number:#x}");
        assert_eq!(s.try_write(number, 0), Err(Denied::Illegal));
    }
    for number in [0x381, 0x382, 0x383] {
        assert!(s.try_read(number).is_ok(), "{number:#x}");
    }
    for (version, numbers) in [(V0_1_4, [0x281, 0x282]), (V1_0, [0x24e, 0x24e])] {
        for xlen in [Xlen::Rv64, Xlen::Rv32] {
            let mut s = Software::new(Config::new(version, xlen));
            for mode in [M, S, U] {
                s.mode = mode;
                for number in numbers {
                    assert_eq!(s.try_read(number), Err(Denied::Illegal));
                    assert_eq!(s.try_write(number, 0), Err(Denied::Illegal));
                }
            }
        }
    }
}
