//! Widths and dialects, byte by byte.

use super::*;
use crate::config::{Addresses, EaddrWidth, Flen, MemoryStyle, Mlen, Nibbles, PcStyle};
use hartrace_isa::Xlen;

fn rv32(mlen: Mlen, flen: Flen) -> Config {
    Config {
        xlen: Xlen::Rv32,
        flen,
        mlen,
        style: Style {
            addresses: Addresses::Both,
            start: false,
            ..Style::default()
        },
        ..Config::default()
    }
}

fn both(addr: u64, paddr: u64) -> Access {
    Access {
        paddr: Some(paddr),
        ..store(1, addr, 0xbeef)
    }
}

#[test]
fn rv32_addresses() {
    let effects = x(3, 0xffff_fffe).access(both(0x8000_0010, 0x3_0000_0010));
    let front = [1, 3, 17, 0x13, 0, 0, 0, 4, 3, 0x10, 0xfe, 0xff, 0xff, 0xff];
    let wide = rv32(Mlen::M34, Flen::None);
    let narrow_eaddr = Config {
        eaddr: EaddrWidth::Xlen,
        ..wide.clone()
    };
    for (config, addresses) in [
        (
            rv32(Mlen::M32, Flen::None),
            &[7, 2, 0x10, 0, 0, 0, 7, 3, 0x10, 0, 0, 0x80][..],
        ),
        (wide, &[7, 2, 0x10, 0, 0, 0, 3, 7, 3, 0x10, 0, 0, 0x80, 0]),
        (
            narrow_eaddr,
            &[7, 2, 0x10, 0, 0, 0, 3, 7, 3, 0x10, 0, 0, 0x80],
        ),
    ] {
        let bytes = encode_insn(&config, 0x13, effects);
        let want = [&front[..], addresses, &[7, 5, 0xef, 0xbe, 2]].concat();
        assert_eq!(bytes, want, "{config:?}");
    }
}

/// RV32 with D: registers of four and of eight bytes.
#[test]
fn float_registers() {
    let value = 0x4000_0000_1234_5678;
    let effects = x(3, 1).reg(RegId::F(1), value);
    let long = [4, 0x21, 0x10, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0x40];
    for (flen, float) in [
        (Flen::F64, &long[..]),
        (Flen::F32, &long[..7]),
        // A hart without them cannot have written one.
        (Flen::None, &[]),
    ] {
        let config = rv32(Mlen::M32, flen);
        let bytes = encode_insn(&config, 0x13, effects);
        let front = [1, 3, 17, 0x13, 0, 0, 0, 4, 3, 0x10, 1, 0, 0, 0];
        assert_eq!(bytes, [&front[..], float, &[2]].concat(), "{flen:?}");
    }
}

#[test]
fn the_order_of_half_bytes() {
    let config = |nibbles| {
        let mut config = bare();
        config.nibbles = nibbles;
        config.style.memory = MemoryStyle::Responses;
        config
    };
    let effects = none().access(load(2, 0, 0xabcd));
    let bytes = |nibbles, op_size, size_result| {
        let bytes = encode_insn(&config(nibbles), 0x2003, effects);
        let front = [1, 3, 17, 3, 0x20, 0, 0, 7, 3, 0, 0, 0, 0, 0, 0, 0, 0];
        let request = [8, 0, 0, 0, 0, 0, 0, 0, 0, op_size];
        let response = [9, size_result, 0xcd, 0xab, 0, 0, 2];
        assert_eq!(bytes, [&front[..], &request, &response].concat());
    };
    bytes(Nibbles::Low, 0x20, 0x02);
    bytes(Nibbles::High, 0x02, 0x20);
}

#[test]
fn both_pcs() {
    let mut config = bare();
    config.pc = PcForm::Both;
    assert!(Encoder::new(config.clone()).is_err());
    config.style.pc = PcStyle::Full;
    config.style.start = true;
    let bytes = encode_insn(&config, 0x13, none());
    let pc = |low: u8, high: u8| [low, high, 0, 0, 0, 0, 0, 0];
    let here = pc(0, 0x10);
    let want = [
        &[1, 11, 7, 10][..],
        &here,
        &here,
        &[7, 1, 3, 2, 1, 7, 10],
        &here,
        &pc(4, 0x10),
        &[17, 0x13, 0, 0, 0, 2],
    ]
    .concat();
    assert_eq!(bytes, want);
    // A trap.
    let step = Step::Trap(trap(Cause::Interrupt(Some(7)), None));
    config.style.start = false;
    let bytes = encode(&config, &[(step, none().csr(0x342, 7))]);
    let want = [&[1, 7, 10][..], &here, &pc(0, 0x20)].concat();
    assert_eq!(bytes[..want.len()], want);
}

/// The last instruction of RV32's address space goes on at 0.
#[test]
fn the_pc_wraps() {
    let last = Insn {
        pc: 0xffff_fffc,
        next: 0,
        ..insn(0x13)
    };
    let bytes = encode(&rv32(Mlen::M32, Flen::None), &[(Step::Insn(last), none())]);
    assert_eq!(bytes, [1, 3, 17, 0x13, 0, 0, 0, 2]);
}

/// There is no opcode for more than 32 bits: the first of them, and the pc.
#[test]
fn long_instructions() {
    let long = Insn {
        next: 0x1006,
        ..insn(0x1f)
    };
    let bytes = encode(&bare(), &[(Step::Insn(long), none())]);
    let want = [1, 7, 10, 6, 0x10, 0, 0, 0, 0, 0, 0, 17, 0x1f, 0, 0, 0, 2];
    assert_eq!(bytes, want);
}

/// Groups without an end, but for the last.
#[test]
fn implied_ends() {
    let mut config = bare();
    config.style.end_group = false;
    let steps = [
        (Step::Insn(insn(0x13)), none()),
        (
            Step::Insn(Insn {
                pc: 0x1004,
                next: 0x1006,
                ..insn(1)
            }),
            none(),
        ),
    ];
    let bytes = encode(&config, &steps);
    assert_eq!(bytes, [1, 3, 17, 0x13, 0, 0, 0, 1, 3, 16, 1, 0, 2]);
    assert_eq!(groups(&config, &bytes).len(), 2);
    assert_eq!(encode(&config, &[]), []);
}

/// The encoder's own buffer and a vector get the same bytes.
#[test]
fn a_full_group_fits() {
    let mut effects = none();
    for n in 0..16 {
        effects = effects.reg(RegId::X(n + 1), u64::MAX);
        effects = effects.access(Access {
            kind: AccessKind::AtomicAnd,
            paddr: Some(1),
            operand: Some(1),
            ..store(3, 2, 3)
        });
    }
    for csr in 0..12 {
        effects = effects.csr(0x340 + csr, u64::MAX);
    }
    let mut config = bare();
    config.style.addresses = Addresses::Both;
    config.style.memory = MemoryStyle::Responses;
    config.style.pc = PcStyle::Full;
    config.style.minstret = true;
    let bytes = encode_insn(&config, 0x13, effects.mode(Mode::S));
    let group = groups(&config, &bytes).pop().unwrap();
    assert_eq!(group.changes.len(), 16 + 12 + 1);
    assert_eq!((group.data.len(), group.memory.len()), (16, 32));
    assert_eq!(group.mode, Some(Mode::S));
}
