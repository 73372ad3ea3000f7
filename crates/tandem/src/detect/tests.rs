use super::*;
use crate::item::{Item, Operation, Request};
use crate::register::Register;
use alloc::string::ToString;

/// Groups as a hart would send them: loads, stores, branches and float.
fn trace(config: &Config, groups: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |item: Item| item.write(config, &mut bytes);
    let mut pc = 0x8000_0000;
    for n in 0..groups {
        put(Item::BeginGroup);
        let new = if n % 5 == 0 { pc - 64 } else { pc + 4 };
        match config.pc {
            PcForm::New if n % 5 != 0 => put(Item::IncrementPc),
            PcForm::New => put(Item::Pc(new)),
            PcForm::Both => put(Item::TwoPcs(pc, new)),
        }
        pc = new;
        match n % 4 {
            0 => {
                put(Item::Insn32(0x0062_81b3));
                put(Item::Full(Register::x(3), 0x1234_5678 + n));
            }
            1 => {
                put(Item::Insn32(0x0082_a203));
                put(Item::Full(Register::x(4), n));
                put(Item::EffectiveAddress(0x8001_0000 + 8 * n));
            }
            2 => {
                put(Item::Insn32(0x0116_f3d3));
                put(Item::Full(Register::f(7), 0x3f80_0000));
            }
            _ => {
                put(Item::Insn32(0x00b5_2023));
                put(Item::EffectiveAddress(0x8001_0000 + 8 * n));
                put(Item::StoreData(2, n));
                put(Item::Request(Request {
                    addr: 0x8001_0000 + 8 * n,
                    op: Operation::Store,
                    size: 2,
                    data: n,
                }));
            }
        }
        put(Item::EndGroup);
    }
    bytes
}

/// All widths, and each dialect.
fn all() -> Vec<Config> {
    let mut all: Vec<Config> = Vec::new();
    for config in candidates(&Config::default()) {
        if !config.lenient_pc_identifier && !all.contains(&config) {
            all.push(config);
        }
    }
    all
}

#[test]
fn widths_and_dialects_are_found() {
    for config in all() {
        let bytes = trace(&config, 200);
        assert!(is_trace(&bytes), "{config:?}");
        let found = guess(&bytes, &Config::default(), None).unwrap();
        assert_eq!(found.config, config, "{:?}", found.also);
        assert_eq!(found.groups, 200);
        assert_eq!(found.also, [""; 0], "{config:?}");
        // Cut anywhere.
        for cut in (150..250).step_by(13) {
            assert!(is_trace(&bytes[..cut]), "{cut} of {config:?}");
        }
    }
}

#[test]
fn the_identifier_of_the_examples() {
    let mut bytes = trace(&Config::default(), 100);
    for at in 0..bytes.len() - 1 {
        if bytes[at..at + 2] == [7, 10] {
            bytes[at + 1] = 16;
        }
    }
    let found = guess(&bytes, &Config::default(), None).unwrap();
    assert!(found.config.lenient_pc_identifier);
    assert!(found.to_string().contains("identifier 16"), "{found}");
}

#[test]
fn a_known_width_is_not_guessed() {
    let bytes = trace(&Config::default(), 100);
    assert!(guess(&bytes, &Config::default(), Some(Xlen::Rv64)).is_some());
    assert_eq!(guess(&bytes, &Config::default(), Some(Xlen::Rv32)), None);
}

/// Without anything that depends on it, a width fits that may be wrong.
#[test]
fn what_fits_as_well_is_told() {
    let bytes = [1, 3, 16, 1, 0, 2].repeat(10);
    let found = guess(&bytes, &Config::default(), None).unwrap();
    // They read the same: nothing is to be told.
    assert!(found.also.is_empty(), "{:?}", found.also);
    assert_eq!(found.config.xlen, Xlen::Rv64);
}

#[test]
fn damage_is_no_obstacle() {
    for config in [Config::default(), all().remove(1)] {
        let mut bytes = trace(&config, 1000);
        for at in [100, 5000, 9000] {
            bytes[at..at + 8].fill(0xff);
        }
        assert!(is_trace(&bytes));
        let found = guess(&bytes, &Config::default(), None).unwrap();
        assert_eq!(found.config, config);
        // The first bytes are missing.
        assert!(is_trace(&bytes[3..]));
    }
}

#[test]
fn other_bytes_are_no_trace() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    for _ in 0..10 {
        let bytes: Vec<u8> = (0..1 << 12).map(|_| random()).collect();
        assert!(!is_trace(&bytes));
        // Opcodes only.
        let bytes: Vec<u8> = bytes.iter().map(|b| b % 18).collect();
        assert!(!is_trace(&bytes));
    }
    for bytes in [&[][..], &[1], &[1, 2], &[2; 100], &[1; 100], &[0; 100]] {
        assert!(!is_trace(bytes), "{bytes:?}");
    }
}
