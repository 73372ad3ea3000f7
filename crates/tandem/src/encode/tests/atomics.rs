//! Accesses that are not plain, and memory transactions.

use super::*;
use crate::config::{Addresses, MemoryStyle, StoreData};
use crate::{Data, Operation, Request, Response, Transaction};

fn config(store_data: StoreData, memory: MemoryStyle) -> Config {
    let bare = bare();
    Config {
        store_data,
        style: Style {
            memory,
            ..bare.style
        },
        ..bare
    }
}

/// The group of one instruction, with a register told before it.
fn group(config: &Config, known: Effects, bits: u32, effects: Effects) -> Group {
    let first = Step::Insn(Insn {
        pc: 0xffc,
        next: 0x1000,
        ..insn(0x13)
    });
    let steps = [(first, known), (Step::Insn(insn(bits)), effects)];
    groups(config, &encode(config, &steps)).pop().unwrap()
}

fn amo(kind: AccessKind, old: Option<u64>, new: u64) -> Access {
    Access {
        kind,
        operand: old,
        ..store(2, 0x8000, new)
    }
}

fn data(eaddr: u64, store: Option<(u8, u64)>) -> Data {
    Data {
        paddr: None,
        eaddr: Some(eaddr),
        store,
    }
}

/// An atomic on word 0x8000 with rs2 = x11.
const fn word(funct5: u32) -> u32 {
    funct5 << 27 | 11 << 20 | 10 << 15 | 2 << 12 | 12 << 7 | 0x2f
}

#[test]
fn store_data_is_the_result_or_the_operand() {
    let (result, operand) = (
        config(StoreData::Result, MemoryStyle::None),
        config(StoreData::Operand, MemoryStyle::None),
    );
    let told = |config: &Config, known, bits, access| {
        let group = group(config, known, bits, x(12, 3).access(access));
        assert_eq!(group.data.len(), 1);
        group.data[0].store
    };
    // amoadd: 3 + 4; the operand follows from both, amoand's only from x11.
    let add = amo(AccessKind::AtomicAdd, Some(3), 7);
    assert_eq!(told(&result, none(), word(0), add), Some((2, 7)));
    assert_eq!(told(&operand, none(), word(0), add), Some((2, 4)));
    // 0 - 1 in 32 bits
    let less = amo(AccessKind::AtomicAdd, Some(1), 0);
    assert_eq!(
        told(&operand, none(), word(0), less),
        Some((2, 0xffff_ffff))
    );
    let and = amo(AccessKind::AtomicAnd, Some(6), 2);
    assert_eq!(told(&result, none(), word(0xc), and), Some((2, 2)));
    assert_eq!(told(&operand, none(), word(0xc), and), None);
    let known = x(11, 0xffff_ffff_0000_0003);
    assert_eq!(told(&operand, known, word(0xc), and), Some((2, 3)));
    // amoswap to x0 shows no old value.
    let swap = amo(AccessKind::AtomicSwap, None, 5);
    assert_eq!(told(&operand, none(), word(1), swap), Some((2, 5)));
    // amoxor
    let xor = amo(AccessKind::AtomicXor, Some(6), 5);
    assert_eq!(told(&operand, none(), word(4), xor), Some((2, 3)));
    // amomax that stored its operand, and one that did not.
    let max = amo(AccessKind::AtomicMax, Some(6), 9);
    assert_eq!(told(&operand, none(), word(0x14), max), Some((2, 9)));
    let max = amo(AccessKind::AtomicMax, Some(6), 6);
    assert_eq!(told(&operand, none(), word(0x14), max), None);
    assert_eq!(told(&operand, x(11, 1), word(0x14), max), Some((2, 1)));
}

#[test]
fn load_reserved_and_store_conditional() {
    let (result, operand) = (
        config(StoreData::Result, MemoryStyle::None),
        config(StoreData::Operand, MemoryStyle::None),
    );
    let (lr, sc) = (0x1005_262f, word(3));
    let read = x(12, 5).access(load(2, 0x8000, 5));
    let failed = Access {
        kind: AccessKind::ConditionalStoreFailure,
        data: None,
        ..store(2, 0x8000, 0)
    };
    let failure = x(12, 1).access(failed);
    let success = x(12, 0).access(store(2, 0x8000, 9));
    let told = |config: &Config, bits, effects| group(config, x(11, 9), bits, effects).data;
    assert_eq!(told(&result, lr, read), [data(0x8000, None)]);
    assert_eq!(told(&operand, lr, read), [data(0x8000, Some((2, 0)))]);
    assert_eq!(told(&result, sc, failure), [data(0x8000, None)]);
    assert_eq!(told(&operand, sc, failure), [data(0x8000, Some((2, 9)))]);
    for config in [&result, &operand] {
        assert_eq!(told(config, sc, success), [data(0x8000, Some((2, 9)))]);
        // A plain load has none.
        assert_eq!(told(config, 0x0005_2603, read), [data(0x8000, None)]);
    }
}

#[test]
fn every_operation_has_its_request() {
    use AccessKind as Kind;
    use Operation as Op;
    let config = config(StoreData::Result, MemoryStyle::Responses);
    for (funct5, kind, op) in [
        (0x01, Kind::AtomicSwap, Op::AmoSwap),
        (0x00, Kind::AtomicAdd, Op::AmoAdd),
        (0x04, Kind::AtomicXor, Op::AmoXor),
        (0x0c, Kind::AtomicAnd, Op::AmoAnd),
        (0x08, Kind::AtomicOr, Op::AmoOr),
        (0x10, Kind::AtomicMin, Op::AmoMin),
        (0x14, Kind::AtomicMax, Op::AmoMax),
        (0x18, Kind::AtomicMin, Op::AmoMinu),
        (0x1c, Kind::AtomicMax, Op::AmoMaxu),
    ] {
        // All come to 6 with 6 and 6, but for addition and xor.
        let new = match kind {
            Kind::AtomicAdd => 12,
            Kind::AtomicXor => 0,
            _ => 6,
        };
        let effects = x(12, 6).access(amo(kind, Some(6), new));
        let group = group(&config, x(11, 6), word(funct5), effects);
        let request = Request {
            addr: 0x8000,
            op,
            size: 2,
            data: 6,
        };
        let response = Response {
            op,
            size: 2,
            failure: false,
            data: 6,
        };
        let want = Transaction {
            request,
            response: Some(response),
        };
        assert_eq!(group.memory, [want], "{op:?}");
    }
}

fn transaction(op: Operation, data: u64, response: Option<(bool, u64)>) -> Transaction {
    Transaction {
        request: Request {
            addr: 0x9000,
            op,
            size: 2,
            data,
        },
        response: response.map(|(failure, data)| Response {
            op,
            size: 2,
            failure,
            data,
        }),
    }
}

/// Requests have physical addresses where these are known.
#[test]
fn loads_stores_and_what_fails() {
    use Operation as Op;
    let config = config(StoreData::Result, MemoryStyle::Responses);
    let there = |access: Access| Access {
        paddr: Some(0x9000),
        ..access
    };
    let failed = Access {
        kind: AccessKind::ConditionalStoreFailure,
        ..there(store(2, 0x8000, 9))
    };
    let unknown = Access {
        data: None,
        ..there(load(2, 0x8000, 0))
    };
    let read = there(load(2, 0x8000, 5));
    let written = there(store(2, 0x8000, 9));
    for (bits, access, want) in [
        (
            0x0005_2603,
            read,
            transaction(Op::Load, 0, Some((false, 5))),
        ),
        (0x0005_2603, unknown, transaction(Op::Load, 0, None)),
        (
            0x1005_262f,
            read,
            transaction(Op::LoadReserved, 0, Some((false, 5))),
        ),
        (
            0x00b5_2023,
            written,
            transaction(Op::Store, 9, Some((false, 0))),
        ),
        (
            word(3),
            written,
            transaction(Op::StoreConditional, 9, Some((false, 0))),
        ),
        (
            word(3),
            failed,
            transaction(Op::StoreConditional, 9, Some((true, 0))),
        ),
    ] {
        let group = group(&config, none(), bits, none().access(access));
        assert_eq!(group.memory, [want], "{bits:x}");
    }
    // Without responses.
    let config = Config {
        style: Style {
            memory: MemoryStyle::Requests,
            ..config.style
        },
        ..config
    };
    let group = group(&config, none(), 0x0005_2603, none().access(read));
    assert_eq!(group.memory, [transaction(Op::Load, 0, None)]);
}

/// A store whose data is not known has no request, and an atomic operation
/// whose operand is not known is a load and a store. So is amocas.
#[test]
fn what_cannot_be_requested() {
    let config = config(StoreData::Result, MemoryStyle::Responses);
    let silent = Access {
        data: None,
        ..store(2, 0x8000, 0)
    };
    let written = group(&config, none(), 0x00b5_2023, none().access(silent));
    assert_eq!(written.memory, []);
    assert_eq!(written.data, [data(0x8000, None)]);
    let and = x(12, 6).access(amo(AccessKind::AtomicAnd, Some(6), 2));
    let cas = x(12, 6).access(amo(AccessKind::AtomicSwap, Some(6), 2));
    for (bits, effects) in [(word(0xc), and), (word(5), cas)] {
        let memory = group(&config, none(), bits, effects).memory;
        let ops: Vec<_> = memory
            .iter()
            .map(|t| (t.request.op, t.request.data))
            .collect();
        assert_eq!(ops, [(Operation::Load, 0), (Operation::Store, 2)]);
        let answers: Vec<_> = memory.iter().map(|t| t.response.unwrap().data).collect();
        assert_eq!(answers, [6, 0]);
    }
    // 128 bits have no size.
    let quad = none().access(store(4, 0x8000, 1));
    let wide = group(&config, none(), 0x00b5_2023, quad);
    assert_eq!(
        (wide.memory, wide.data),
        ([].into(), [data(0x8000, None)].into())
    );
}

/// cm.push: each address with its data, in order.
#[test]
fn several_accesses_stay_apart() {
    let two = |first: Option<u64>, second: Option<u64>| {
        let access = |addr, data, paddr| Access {
            paddr,
            ..store(3, addr, data)
        };
        none()
            .access(access(0x8008, 1, first))
            .access(access(0x8000, 2, second))
    };
    let one = |paddr, eaddr, data| Data {
        paddr,
        eaddr,
        store: Some((3, data)),
    };
    let (a, b) = (Some(0x8008), Some(0x8000));
    let (pa, pb) = (Some(0x9008), Some(0x9000));
    for (addresses, effects, want) in [
        (
            Addresses::Effective,
            two(pa, pb),
            [one(None, a, 1), one(None, b, 2)],
        ),
        (
            Addresses::Physical,
            two(pa, pb),
            [one(pa, None, 1), one(pb, None, 2)],
        ),
        (Addresses::Both, two(pa, pb), [one(pa, a, 1), one(pb, b, 2)]),
        (
            Addresses::Translated,
            two(a, pb),
            [one(a, None, 1), one(pb, b, 2)],
        ),
        // If one is not known, none is told.
        (
            Addresses::Both,
            two(pa, None),
            [one(None, a, 1), one(None, b, 2)],
        ),
        (
            Addresses::None,
            two(pa, pb),
            [one(None, None, 1), one(None, None, 2)],
        ),
    ] {
        let config = Config {
            style: Style {
                addresses,
                ..bare().style
            },
            ..bare()
        };
        let group = group(&config, none(), 0xb842, effects);
        assert_eq!(group.data, want, "{addresses:?}");
    }
}

/// Accesses to CSRs are none to memory.
#[test]
fn csrs_are_no_memory() {
    let config = config(StoreData::Operand, MemoryStyle::Responses);
    let access = Access {
        kind: AccessKind::CsrReadWrite,
        ..store(3, 0x300, 1)
    };
    let group = group(&config, none(), 0x3005_9073, none().access(access));
    assert_eq!((group.data, group.memory), ([].into(), [].into()));
}
