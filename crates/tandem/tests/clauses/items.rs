//! Chapter 2: opcodes, identifiers, requests and responses, and their bytes.

use hartrace_tandem::{Config, EaddrWidth, Fault, Flen, Item, Nibbles, Operation, PcForm};
use hartrace_tandem::{MAX_ITEM, Register, Request, Response};

use crate::common::{answers, configs, hex, items, operations, rv32, sv32, write};

/// Reads the one item there is.
fn one(config: &Config, bytes: &[u8], request: Option<&Request>) -> Item {
    let (item, len) = Item::read(bytes, config, request).unwrap().unwrap();
    assert_eq!(len, bytes.len());
    item
}

/// The table of opcodes, for XLEN = FLEN = MLEN = 64.
#[test]
fn opcodes_and_their_bytes() {
    let config = Config::default();
    let load = Request {
        addr: 0x8000_0010,
        op: Operation::Load,
        size: 2,
        data: 0,
    };
    let response = Response {
        op: Operation::Load,
        size: 2,
        failure: false,
        data: 0x1234_5678,
    };
    let x3 = Register::x(3);
    for (item, bytes) in [
        (Item::BeginGroup, "01"),
        (Item::EndGroup, "02"),
        (Item::IncrementPc, "03"),
        (Item::Full(x3, 0x1234), "04 03 10 34 12 00 00 00 00 00 00"),
        (Item::Offset(x3, -2), "05 03 10 fe"),
        (Item::Mask(Register::csr(3), 0x11), "06 03 00 11"),
        (Item::Mode(3), "07 01 03"),
        (Item::Request(load), "08 10 00 00 80 00 00 00 00 20"),
        (Item::Response(response), "09 02 78 56 34 12"),
        (Item::Reset, "0a"),
        (Item::StateInit, "0b"),
        (Item::Insn16(0x8d0d), "10 0d 8d"),
        (Item::Insn32(0x0062_81b3), "11 b3 81 62 00"),
    ] {
        assert_eq!(write(&config, &[item]), hex(bytes), "{item:?}");
        assert_eq!(one(&config, &hex(bytes), Some(&load)), item);
    }
}

/// The table of identifiers.
#[test]
fn identifiers_and_their_bytes() {
    let config = Config::default();
    for (item, bytes) in [
        (Item::Mode(1), "07 01 01"),
        (
            Item::PhysicalAddress(0x102),
            "07 02 02 01 00 00 00 00 00 00",
        ),
        (
            Item::EffectiveAddress(0x102),
            "07 03 02 01 00 00 00 00 00 00",
        ),
        (Item::StoreData(0, 0xef), "07 04 ef"),
        (Item::StoreData(1, 0xcdef), "07 05 ef cd"),
        (Item::StoreData(2, 0x89ab_cdef), "07 06 ef cd ab 89"),
        (
            Item::StoreData(3, 0x0123_4567_89ab_cdef),
            "07 07 ef cd ab 89 67 45 23 01",
        ),
        (Item::Mtime(7), "07 08 07 00 00 00 00 00 00 00"),
        (Item::PcPhysical(0x100), "07 09 00 01 00 00 00 00 00 00"),
        (Item::Pc(0x100), "07 0a 00 01 00 00 00 00 00 00"),
    ] {
        assert_eq!(write(&config, &[item]), hex(bytes), "{item:?}");
        assert_eq!(one(&config, &hex(bytes), None), item);
    }
}

/// The tables of memory requests: operations 0 to 13, sizes 0 to 3, and data
/// for what writes.
#[test]
fn requests_and_their_bytes() {
    let config = Config::default();
    let names = [
        Operation::Load,
        Operation::Store,
        Operation::LoadReserved,
        Operation::StoreConditional,
        Operation::AmoSwap,
        Operation::AmoAdd,
        Operation::AmoXor,
        Operation::AmoAnd,
        Operation::AmoOr,
        Operation::AmoMin,
        Operation::AmoMax,
        Operation::AmoMinu,
        Operation::AmoMaxu,
        Operation::InstructionFetch,
    ];
    assert_eq!(operations(), names);
    for (code, op) in (0u8..).zip(names) {
        for size in 0..4u8 {
            let only_reads = matches!(code, 0 | 2 | 13);
            let data = [1, 2, 3, 4, 5, 6, 7, 8];
            let mut bytes = hex("08 00 10 00 00 00 00 00 00");
            bytes.push(size << 4 | code);
            if !only_reads {
                bytes.extend(&data[..1 << size]);
            }
            let Item::Request(request) = one(&config, &bytes, None) else {
                panic!("{code}");
            };
            assert_eq!((request.op, request.size, request.addr), (op, size, 0x1000));
            assert_eq!(write(&config, &[Item::Request(request)]), bytes);
            assert_eq!(request.data != 0, !only_reads);
        }
    }
}

/// A response has 16, 24, 40 or 72 bits, opcode left out, and 8 where there is
/// no data.
#[test]
fn responses_and_their_bytes() {
    let config = Config::default();
    for op in operations() {
        for size in 0..4u8 {
            let request = Request {
                addr: 0,
                op,
                size,
                data: 0,
            };
            for (result, answer) in (0u8..).zip(answers(&request)) {
                let bytes = write(&config, &[answer]);
                let stores = matches!(op, Operation::Store | Operation::StoreConditional);
                let bits = if stores {
                    8
                } else {
                    [16, 24, 40, 72][usize::from(size)]
                };
                assert_eq!((bytes.len() - 1) * 8, bits);
                assert_eq!(bytes[..2], [9, result << 4 | size]);
                assert_eq!(one(&config, &bytes, Some(&request)), answer);
            }
        }
    }
}

/// Everything there is, for every width and dialect: what is written is read,
/// whatever follows; what is cut is not an item and not a fault.
#[test]
fn every_item_both_ways() {
    for config in configs() {
        let mut all: Vec<_> = items(&config)
            .into_iter()
            .map(|item| (item, None))
            .collect();
        for (item, _) in all.clone() {
            if let Item::Request(request) = item {
                all.extend(answers(&request).map(|answer| (answer, Some(request))));
            }
        }
        for (item, request) in all {
            let bytes = write(&config, &[item]);
            assert!(bytes.len() <= MAX_ITEM);
            assert_eq!(one(&config, &bytes, request.as_ref()), item, "{config:?}");
            for len in 0..bytes.len() {
                let cut = Item::read(&bytes[..len], &config, request.as_ref());
                assert_eq!(cut, Ok(None), "{item:?} {len}");
            }
            for junk in [0, 0x5a, 0xff] {
                let longer = [&bytes[..], &[junk; 20]].concat();
                let read = Item::read(&longer, &config, request.as_ref());
                assert_eq!(read, Ok(Some((item, bytes.len()))));
            }
        }
    }
}

/// Payload lengths follow XLEN, FLEN and MLEN, which is rounded up to bytes.
#[test]
fn widths_of_payloads() {
    let len = |config: &Config, item| write(config, &[item]).len();
    let gpr = Item::Full(Register::x(1), 0);
    let csr = Item::Full(Register::csr(0x300), 0);
    let fpr = Item::Full(Register::f(1), 0);
    let load = Item::Request(Request {
        addr: 0,
        op: Operation::Load,
        size: 3,
        data: 0,
    });
    for (config, xlen, mlen) in [(Config::default(), 8, 8), (rv32(), 4, 4), (sv32(), 4, 5)] {
        assert_eq!(len(&config, gpr), 3 + xlen);
        assert_eq!(len(&config, csr), 3 + xlen);
        assert_eq!(len(&config, Item::Pc(0)), 2 + xlen);
        assert_eq!(len(&config, Item::PhysicalAddress(0)), 2 + mlen);
        assert_eq!(len(&config, Item::EffectiveAddress(0)), 2 + mlen);
        assert_eq!(len(&config, Item::PcPhysical(0)), 2 + mlen);
        assert_eq!(len(&config, load), 2 + mlen);
        assert_eq!(len(&config, Item::Mtime(0)), 10);
        for (flen, bytes) in [(Flen::F32, 4), (Flen::F64, 8)] {
            let config = Config {
                flen,
                ..config.clone()
            };
            assert_eq!(len(&config, fpr), 3 + bytes);
        }
    }
}

/// Of 256 opcodes 13 are defined.
#[test]
fn opcodes_that_are_none() {
    let config = Config::default();
    for opcode in 0..=255u8 {
        let read = Item::read(&[opcode; 20], &config, None);
        match opcode {
            1..=7 | 8 | 10 | 11 | 16 | 17 => {
                assert_ne!(read, Err((Fault::UnknownOpcode, opcode.into())));
            }
            9 => assert_eq!(read, Err((Fault::LoneResponse, 9))),
            _ => assert_eq!(read, Err((Fault::UnknownOpcode, opcode.into()))),
        }
    }
}

/// Of 256 identifiers ten are defined.
#[test]
fn identifiers_that_are_none() {
    let config = Config::default();
    for identifier in 0..=255u8 {
        let mut bytes = [0; 20];
        bytes[..2].copy_from_slice(&[7, identifier]);
        let read = Item::read(&bytes, &config, None);
        match identifier {
            1..=10 => assert!(read.is_ok()),
            _ => assert_eq!(read, Err((Fault::UnknownIdentifier, identifier.into()))),
        }
    }
}

/// Reserved sizes, operations and results.
#[test]
fn codes_that_are_reserved() {
    let config = Config::default();
    for byte in 0..=255u8 {
        let mut bytes = [0; 20];
        (bytes[0], bytes[9]) = (8, byte);
        let (op, size) = (byte & 15, byte >> 4);
        let expected = match (size, op) {
            (4.., _) => Some((Fault::UnknownSize, size.into())),
            (_, 14..) => Some((Fault::UnknownOperation, op.into())),
            _ => None,
        };
        assert_eq!(Item::read(&bytes, &config, None).err(), expected);

        let request = Request {
            addr: 0,
            op: Operation::Load,
            size: 2,
            data: 0,
        };
        let mut bytes = [0; 20];
        (bytes[0], bytes[1]) = (9, byte);
        let (size, result) = (byte & 15, byte >> 4);
        let expected = match (size, result) {
            (4.., _) => Some((Fault::UnknownSize, size.into())),
            (_, 2..) => Some((Fault::UnknownResult, result.into())),
            (0 | 1 | 3, _) => Some((Fault::ResponseSize, size.into())),
            _ => None,
        };
        assert_eq!(Item::read(&bytes, &config, Some(&request)).err(), expected);
    }
}

/// Numbers of registers: 0x0000 to 0x103f have a width, the rest has none.
#[test]
fn registers_that_are_none() {
    let config = Config::default();
    for number in 0..=u16::MAX {
        let [low, high] = number.to_le_bytes();
        for opcode in [4, 5, 6] {
            let mut bytes = [0; 20];
            bytes[..3].copy_from_slice(&[opcode, low, high]);
            let read = Item::read(&bytes, &config, None);
            match number {
                0..0x1040 => assert!(read.is_ok()),
                _ => assert_eq!(read, Err((Fault::UnknownRegister, number.into()))),
            }
        }
    }
    let integer = Config {
        flen: Flen::None,
        ..Config::default()
    };
    let f1 = hex("04 21 10 00 00 00 00 00 00 00 00");
    assert_eq!(
        Item::read(&f1, &integer, None),
        Err((Fault::NoFloat, 0x1021))
    );
}

/// The dialects, each by itself: what they change and nothing else.
#[test]
fn dialects() {
    let plain = sv32();
    let eaddr = Config {
        eaddr: EaddrWidth::Xlen,
        ..plain.clone()
    };
    let item = Item::EffectiveAddress(0x1234_5678);
    assert_eq!(write(&plain, &[item]), hex("07 03 78 56 34 12 00"));
    assert_eq!(write(&eaddr, &[item]), hex("07 03 78 56 34 12"));
    let item = Item::PhysicalAddress(0x1234_5678);
    assert_eq!(write(&eaddr, &[item]), hex("07 02 78 56 34 12 00"));

    let nibbles = Config {
        nibbles: Nibbles::High,
        ..Config::default()
    };
    let request = Request {
        addr: 0,
        op: Operation::Store,
        size: 2,
        data: 0,
    };
    let bytes = write(&Config::default(), &[Item::Request(request)]);
    assert_eq!(bytes[9], 0x21);
    let bytes = write(&nibbles, &[Item::Request(request)]);
    assert_eq!(bytes[9], 0x12);
    let response = answers(&request)[1];
    assert_eq!(write(&Config::default(), &[response]), hex("09 12"));
    assert_eq!(write(&nibbles, &[response]), hex("09 21"));

    let both = Config {
        pc: PcForm::Both,
        ..rv32()
    };
    let bytes = hex("07 0a 00 01 00 00 04 01 00 00");
    assert_eq!(one(&both, &bytes, None), Item::TwoPcs(0x100, 0x104));
    assert_eq!(write(&both, &[Item::TwoPcs(0x100, 0x104)]), bytes);

    let lenient = Config {
        lenient_pc_identifier: true,
        ..rv32()
    };
    let printed = hex("07 10 00 01 00 00");
    assert_eq!(one(&lenient, &printed, None), Item::Pc(0x100));
    assert_eq!(
        write(&lenient, &[Item::Pc(0x100)]),
        hex("07 0a 00 01 00 00")
    );
    assert_eq!(
        Item::read(&printed, &rv32(), None),
        Err((Fault::UnknownIdentifier, 16))
    );
}
