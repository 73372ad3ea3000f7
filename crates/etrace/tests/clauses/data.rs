//! Clauses about data trace: the tables of chapter 7 bit by bit, what differences
//! refer to, and accesses on their way from the port of a hart to events.

use std::ops::ControlFlow;

use hartrace_etrace::{
    Compression, Config, DataConfig, DataLayout, DataPacket, Decoder, Encapsulated, Encoder, Fault,
    Framer, Kind, Outstanding, Packet, Piece, Queue, Resync, ResyncUnit, Version, explain_data,
};
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{
    Access, AccessKind, Check, Consumer, DataAccess, Effects, Event, HartId, Image, Ingress,
    IngressSink, Insn, Observer, Part, Port, PortConfig, Retirement, Step, Touch, Unreported,
};
use hartrace_isa::{Isa, Itype, Xlen};
use hartrace_testkit::Random;

use crate::common::*;
use crate::packets::Bits;

const BOTH: [Version; 2] = [DRAFT, RATIFIED];

pub(crate) fn settings(version: Version) -> DataConfig {
    DataConfig::new(version, Xlen::Rv64)
}

/// The packet has these fields, named like this, whether they are all sent or not.
#[track_caller]
pub(crate) fn has_fields(layout: &DataLayout, packet: DataPacket, fields: &[(&str, u64, u8)]) {
    has_fields_after(layout, &Outstanding::default(), packet, fields);
}

#[track_caller]
fn has_fields_after(
    layout: &DataLayout,
    outstanding: &Outstanding,
    packet: DataPacket,
    fields: &[(&str, u64, u8)],
) {
    let values: Vec<_> = fields
        .iter()
        .map(|&(_, value, width)| (value, width))
        .collect();
    let bits = Bits::of(&values);
    assert_eq!(
        packet.bits(layout, outstanding),
        bits.len() as u32,
        "{packet:?}"
    );
    let (whole, compressed) = (bits.whole(), bits.compressed());
    assert_eq!(
        packet.write(layout, outstanding).bytes(),
        compressed,
        "{packet:?}"
    );
    // Any length between the two is the same packet.
    for len in compressed.len()..=whole.len() {
        let read = DataPacket::read(&whole[..len], layout, outstanding);
        assert_eq!(read, Ok(packet), "{len} of {} bytes", whole.len());
    }
    let (shown, fault) = explain_data(&compressed, layout, outstanding);
    let shown: Vec<_> = shown
        .iter()
        .map(|f| (f.name, f.value, f.bits as u8))
        .collect();
    let there = fields.iter().copied().filter(|(_, _, width)| *width > 0);
    assert_eq!((shown, fault), (there.collect(), None), "{packet:?}");
}

/// Odd widths, so that no field can be taken for another.
pub(crate) fn odd(version: Version) -> DataConfig {
    DataConfig {
        daddress_width: 47,
        lrid_width: 5,
        ..settings(version)
    }
}

pub(crate) fn layout(data: DataConfig, version: Version) -> DataLayout {
    data.layout(version, Xlen::Rv64)
}

/// Codes of loads and stores: whether it is a store, whether it is aligned.
const TRANSFERS: [(u64, bool, bool); 4] = [
    (0, false, true),
    (1, false, false),
    (2, true, true),
    (3, true, false),
];

/// The field `size` of an atomic of 2^size bytes, and its width: the draft has one bit, for
/// words and doublewords.
const fn atomic_size(version: Version, size: u8) -> (u64, u8) {
    match version.is_draft() {
        true => (size as u64 - 2, 1),
        false => (size as u64, 2),
    }
}

/// Two bits of format are enough for unified loads and stores.
const fn without_others(data: DataConfig) -> DataConfig {
    DataConfig {
        atomics: false,
        csrs: false,
        ..data
    }
}

pub(crate) const ADDRESS: u64 = 0x2345_6789_abcd;
pub(crate) const VALUE: u64 = 0x1234_5678;

#[test]
fn table_7_1_address_and_data() {
    for version in BOTH {
        for (format, store, aligned) in TRANSFERS {
            for diff in 0..4 {
                let packet = DataPacket::Transfer {
                    multiple: false,
                    store,
                    aligned,
                    size: 2,
                    diff,
                    data: Some(VALUE),
                    address: Some(ADDRESS),
                };
                let mut fields = [
                    ("format", format, 3),
                    ("size", 2, 2),
                    ("diff", diff.into(), 2),
                    ("data_len", 3, 2),
                    ("data", VALUE, 32),
                    ("address", ADDRESS, 47),
                ];
                let data = odd(version);
                has_fields(&layout(data, version), packet, &fields);
                fields[0].2 = 2;
                has_fields(&layout(without_others(data), version), packet, &fields);
            }
        }
    }
}

/// 2.0, data_len field: bytes that repeat the sign are left out; a byte has no
/// length.
#[test]
fn data_is_as_long_as_it_must_be() {
    let layout = layout(odd(RATIFIED), RATIFIED);
    for (size, data, len, sent) in [
        (0, 0x80, 0, 0x80),
        (1, 0x7f, 0, 0x7f),
        (1, 0x80, 1, 0x80),
        (1, 0xff80, 0, 0x80),
        (3, 0xffff_ffff_ff12_3456, 3, 0xff12_3456),
        (3, 0xffff_ffff_ffff_ffff, 0, 0xff),
        (3, 0x8000_0000_0000_0000, 7, 0x8000_0000_0000_0000),
    ] {
        let packet = DataPacket::Transfer {
            multiple: false,
            store: false,
            aligned: true,
            size,
            diff: 0,
            data: Some(data),
            address: Some(ADDRESS),
        };
        let fields = [
            ("format", 0, 3),
            ("size", size.into(), 2),
            ("diff", 0, 2),
            ("data_len", len, size),
            ("data", sent, 8 * (len as u8 + 1)),
            ("address", ADDRESS, 47),
        ];
        has_fields(&layout, packet, &fields);
    }
}

#[test]
fn table_7_2_address_only() {
    for version in BOTH {
        let data = DataConfig {
            no_data: true,
            ..odd(version)
        };
        for (format, store, aligned) in TRANSFERS {
            for (diff, size) in (0..2).flat_map(|diff| (0..4).map(move |size| (diff, size))) {
                let packet = DataPacket::Transfer {
                    multiple: false,
                    store,
                    aligned,
                    size,
                    diff,
                    data: None,
                    address: Some(ADDRESS),
                };
                let mut fields = [
                    ("format", format, 3),
                    ("size", size.into(), 2),
                    ("diff", diff.into(), 1),
                    ("address", ADDRESS, 47),
                ];
                has_fields(&layout(data, version), packet, &fields);
                fields[0].2 = 2;
                has_fields(&layout(without_others(data), version), packet, &fields);
            }
        }
    }
}

#[test]
fn table_7_3_data_only() {
    for version in BOTH {
        for (diff_width, codes) in [(1, &[0, 1][..]), (2, &[0, 1, 3])] {
            let data = DataConfig {
                no_address: true,
                diff_width,
                ..odd(version)
            };
            let all = TRANSFERS.iter();
            for (&(format, store, aligned), &diff) in
                all.flat_map(|form| codes.iter().map(move |diff| (form, diff)))
            {
                let packet = DataPacket::Transfer {
                    multiple: false,
                    store,
                    aligned,
                    size: 1,
                    diff,
                    data: Some(0xfedc),
                    address: None,
                };
                // Extended by its sign to the width of the data bus.
                let mut fields = [
                    ("format", format, 3),
                    ("size", 1, 2),
                    ("diff", diff.into(), diff_width),
                    ("data", 0xffff_ffff_ffff_fedc, 64),
                ];
                has_fields(&layout(data, version), packet, &fields);
                fields[0].2 = 2;
                has_fields(&layout(without_others(data), version), packet, &fields);
            }
        }
    }
}

#[test]
fn table_7_4_load_requests() {
    for (version, id) in [(DRAFT, "index"), (RATIFIED, "lrid")] {
        let data = DataConfig {
            split: true,
            ..odd(version)
        };
        for (format, aligned) in [(0, true), (1, false)] {
            for diff in 0..2 {
                let packet = DataPacket::LoadRequest {
                    multiple: false,
                    aligned,
                    size: 2,
                    lrid: 21,
                    diff,
                    address: ADDRESS,
                };
                let fields = [
                    ("format", format, 3),
                    ("size", 2, 2),
                    (id, 21, 5),
                    ("diff", diff.into(), 1),
                    ("address", ADDRESS, 47),
                ];
                has_fields(&layout(data, version), packet, &fields);
            }
        }
    }
}

#[test]
fn table_7_5_load_responses() {
    for (version, id) in [(DRAFT, "index"), (RATIFIED, "lrid")] {
        let data = DataConfig {
            split: true,
            ..odd(version)
        };
        for resp in 0..4 {
            let data_field = if resp == 0 { 0 } else { VALUE };
            let packet = DataPacket::LoadResponse {
                size: 2,
                lrid: 21,
                resp,
                data: data_field,
            };
            let fields = [
                ("format", 4, 3),
                ("size", 2, 2),
                (id, 21, 5),
                ("resp", resp.into(), 2),
                ("data", VALUE, if resp == 0 { 0 } else { 64 }),
            ];
            has_fields(&layout(data, version), packet, &fields);
        }
    }
}

/// 7.1.2: two bits where data has at most 64 bits; the formula of the draft's table
/// gives three.
#[test]
fn the_size_field() {
    let packet = DataPacket::Transfer {
        multiple: false,
        store: false,
        aligned: true,
        size: 3,
        diff: 0,
        data: Some(1),
        address: Some(2),
    };
    for size_width in [2, 3] {
        let data = DataConfig {
            size_width,
            ..odd(DRAFT)
        };
        let fields = [
            ("format", 0, 3),
            ("size", 3, size_width),
            ("diff", 0, 2),
            ("data_len", 0, 3),
            ("data", 1, 8),
            ("address", 2, 47),
        ];
        has_fields(&layout(data, DRAFT), packet, &fields);
    }
    assert_eq!(settings(DRAFT).size_width, 2);
    // Sizes that the bus does not have.
    let narrow = DataConfig {
        data_width: 32,
        ..odd(RATIFIED)
    };
    let bytes = [0b011_000, 0, 0, 0];
    let narrow = layout(narrow, RATIFIED);
    let read = DataPacket::read(&bytes, &narrow, &Outstanding::default());
    assert_eq!(read, Err(Fault::UnknownDataSize));
}

#[test]
fn table_7_6_atomics() {
    for version in BOTH {
        for (subtype, diff) in (0..8).flat_map(|subtype| (0..4).map(move |diff| (subtype, diff))) {
            // The lengths have as many bits as the size has log2 of bytes.
            for (size, operand, op_len) in [(2, 0x12_3456, 2), (3, 0x1_0000_0000, 4)] {
                let packet = DataPacket::Atomic {
                    subtype,
                    size,
                    diff,
                    operand: Some(operand),
                    data: Some(VALUE),
                    address: Some(ADDRESS),
                };
                let (size_field, size_width) = atomic_size(version, size);
                let fields = [
                    ("format", 6, 3),
                    ("subtype", subtype.into(), 3),
                    ("size", size_field, size_width),
                    ("diff", diff.into(), 2),
                    ("op_len", op_len, size),
                    ("operand", operand, 8 * (op_len as u8 + 1)),
                    ("data_len", 3, size),
                    ("data", VALUE, 32),
                    ("address", ADDRESS, 47),
                ];
                has_fields(&layout(odd(version), version), packet, &fields);
            }
        }
    }
}

#[test]
fn table_7_7_atomics_address_only() {
    for version in BOTH {
        let data = DataConfig {
            no_data: true,
            ..odd(version)
        };
        for (subtype, diff) in (0..8).flat_map(|subtype| (0..2).map(move |diff| (subtype, diff))) {
            for size in [2, 3] {
                let packet = DataPacket::Atomic {
                    subtype,
                    size,
                    diff,
                    operand: None,
                    data: None,
                    address: Some(ADDRESS),
                };
                let (size_field, size_width) = atomic_size(version, size);
                let fields = [
                    ("format", 6, 3),
                    ("subtype", subtype.into(), 3),
                    ("size", size_field, size_width),
                    ("diff", diff.into(), 1),
                    ("address", ADDRESS, 47),
                ];
                has_fields(&layout(data, version), packet, &fields);
            }
        }
    }
}

#[test]
fn table_7_8_atomics_data_only() {
    for version in BOTH {
        for (diff_width, codes) in [(1, &[0, 1][..]), (2, &[0, 1, 3])] {
            let data = DataConfig {
                no_address: true,
                diff_width,
                ..odd(version)
            };
            for (subtype, &diff) in
                (0..8).flat_map(|subtype| codes.iter().map(move |diff| (subtype, diff)))
            {
                for (size, operand) in [(2, 0xffff_ff80), (3, 0xffff_ffff_ffff_ff80)] {
                    let packet = DataPacket::Atomic {
                        subtype,
                        size,
                        diff,
                        operand: Some(operand),
                        data: Some(VALUE),
                        address: None,
                    };
                    let (size_field, size_width) = atomic_size(version, size);
                    let fields = [
                        ("format", 6, 3),
                        ("subtype", subtype.into(), 3),
                        ("size", size_field, size_width),
                        ("diff", diff.into(), diff_width),
                        ("op_len", 0, size),
                        ("operand", 0x80, 8),
                        ("data", VALUE, 64),
                    ];
                    has_fields(&layout(data, version), packet, &fields);
                }
            }
        }
    }
}

#[test]
fn table_7_9_atomic_requests() {
    for (version, id) in [(DRAFT, "index"), (RATIFIED, "lrid")] {
        for (diff_width, diff) in [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)] {
            let data = DataConfig {
                split: true,
                diff_width,
                ..odd(version)
            };
            for (subtype, size) in (0..8).flat_map(|subtype| [2, 3].map(|size| (subtype, size))) {
                let packet = DataPacket::AtomicRequest {
                    subtype,
                    size,
                    lrid: 9,
                    diff,
                    operand: 0x7f,
                    address: ADDRESS,
                };
                let (size_field, size_width) = atomic_size(version, size);
                let fields = [
                    ("format", 6, 3),
                    ("subtype", subtype.into(), 3),
                    ("size", size_field, size_width),
                    (id, 9, 5),
                    ("diff", diff.into(), diff_width),
                    ("op_len", 0, size),
                    ("operand", 0x7f, 8),
                    ("address", ADDRESS, 47),
                ];
                has_fields(&layout(data, version), packet, &fields);
            }
        }
    }
}

/// Format 111: 2.0 prints 110, which is the request. The width of `data_len` depends
/// on the size that the request had.
#[test]
fn table_7_10_atomic_responses() {
    for (version, id) in [(DRAFT, "index"), (RATIFIED, "lrid")] {
        let data = DataConfig {
            split: true,
            ..odd(version)
        };
        let layout = layout(data, version);
        let mut outstanding = Outstanding::default();
        for (lrid, size) in [(9, 3), (4, 2)] {
            outstanding.note(&DataPacket::AtomicRequest {
                subtype: 0,
                size,
                lrid,
                diff: 0,
                operand: 0,
                address: 0,
            });
        }
        for (lrid, len_width) in [(9, 3), (4, 2)] {
            for resp in 0..4 {
                let packet = DataPacket::AtomicResponse {
                    lrid,
                    resp,
                    data: if resp == 0 { 0 } else { VALUE },
                };
                let there = |width| if resp == 0 { 0 } else { width };
                let fields = [
                    ("format", 7, 3),
                    (id, lrid.into(), 5),
                    ("resp", resp.into(), 2),
                    ("data_len", 3, there(len_width)),
                    ("data", VALUE, there(32)),
                ];
                has_fields_after(&layout, &outstanding, packet, &fields);
            }
        }
    }
}

/// Calls `check` with every layout of packets for CSRs that have data, the width of its lengths,
/// and each `subtype` and `diff`, the latter with its width.
fn each_csr(check: impl Fn(&DataLayout, u8, u8, (u8, u8))) {
    for version in BOTH {
        for (xlen, len) in [(Xlen::Rv32, 2), (Xlen::Rv64, 3)] {
            for (diff_width, diff) in [(1, 0), (1, 1), (2, 0), (2, 1), (2, 3)] {
                let data = DataConfig {
                    daddress_width: 32,
                    diff_width,
                    ..odd(version)
                };
                for subtype in 0..3 {
                    check(
                        &data.layout(version, xlen),
                        len,
                        subtype,
                        (diff, diff_width),
                    );
                }
            }
        }
    }
}

#[test]
fn table_7_11_csrs() {
    each_csr(|layout, len, subtype, (diff, diff_width)| {
        let packet = DataPacket::Csr {
            subtype,
            diff,
            data: Some(VALUE),
            operand: Some(0x88),
            address: 0x305,
        };
        let fields = [
            ("format", 5, 3),
            ("subtype", subtype.into(), 2),
            ("diff", diff.into(), diff_width),
            ("data_len", 3, len),
            ("data", VALUE, 32),
            ("addr_msbs", 0xc, 6),
            ("op_len", 1, len),
            ("operand", 0x88, 16),
            ("addr_lsbs", 5, 6),
        ];
        has_fields(layout, packet, &fields);
    });
}

#[test]
fn table_7_12_read_only_csrs() {
    each_csr(|layout, len, subtype, (diff, diff_width)| {
        let packet = DataPacket::Csr {
            subtype,
            diff,
            data: Some(0x42),
            operand: None,
            address: 0xf14,
        };
        let fields = [
            ("format", 5, 3),
            ("subtype", subtype.into(), 2),
            ("diff", diff.into(), diff_width),
            ("data_len", 0, len),
            ("data", 0x42, 8),
            ("addr_msbs", 0x3c, 6),
            ("addr_lsbs", 0x14, 6),
        ];
        has_fields(layout, packet, &fields);
    });
}

#[test]
fn table_7_13_csrs_address_only() {
    for version in BOTH {
        for (csr_subtype_width, csr_diff_width) in [(3, 0), (2, 1), (2, 0), (3, 1)] {
            let data = DataConfig {
                no_data: true,
                csr_subtype_width,
                csr_diff_width,
                ..odd(version)
            };
            for (subtype, diff) in
                (0..3).flat_map(|subtype| (0..=csr_diff_width).map(move |diff| (subtype, diff)))
            {
                let packet = DataPacket::Csr {
                    subtype,
                    diff,
                    data: None,
                    operand: None,
                    address: 0x7c1,
                };
                let fields = [
                    ("format", 5, 3),
                    ("subtype", subtype.into(), csr_subtype_width),
                    ("diff", diff.into(), csr_diff_width),
                    ("addr_msbs", 0x1f, 6),
                    ("addr_lsbs", 1, 6),
                ];
                has_fields(&layout(data, version), packet, &fields);
            }
        }
    }
}

#[test]
fn reserved_codes() {
    let read = |bytes: &[u8], data| {
        let layout = layout(data, RATIFIED);
        DataPacket::read(bytes, &layout, &Outstanding::default()).unwrap_err()
    };
    let data = settings(RATIFIED);
    // Formats of split accesses, where there are none.
    assert_eq!(read(&[4, 0], data), Fault::UnknownDataFormat);
    assert_eq!(read(&[7, 0], data), Fault::UnknownDataFormat);
    // CSR with subtype 3; diff = 2 without an address.
    assert_eq!(read(&[0b11_101, 0, 0], data), Fault::UnknownSubtype);
    let data_only = DataConfig {
        no_address: true,
        ..data
    };
    assert_eq!(read(&[0b100_0000, 0], data_only), Fault::UnknownDiff);
    assert_eq!(read(&[], data), Fault::EmptyPacket);
    // Bits after the address.
    let mut long = vec![0; 13];
    long[11] = 1;
    assert_eq!(read(&long, data), Fault::ExtraBits);
}

/// A loop with accesses of every kind, and what follows it.
pub(crate) fn program() -> (Image, Vec<u64>) {
    let insns = [
        0x0005_a503, // lw a0, 0(a1)
        0x00a5_b423, // sd a0, 8(a1)
        0x0005_c503, // lbu a0, 0(a1)
        0x00a5_9123, // sh a0, 2(a1)
        0x00b6_252f, // amoadd.w a0, a1, (a2)
        0xe0b6_352f, // amomaxu.d a0, a1, (a2)
        0x1006_252f, // lr.w a0, (a2)
        0x18b6_252f, // sc.w a0, a1, (a2)
        0x3405_9573, // csrrw a0, mscratch, a1
        0xf140_2573, // csrrs a0, mhartid, x0
        0x0005_b507, // fld fa0, 0(a1)
        asm::ADD,
        asm::b(-48),
        0x0085_b503, // ld a0, 8(a1)
        asm::ADD,
    ];
    let base = 0x8000_0000;
    let pcs = (0..insns.len() as u64).map(|i| base + 4 * i).collect();
    (rv64(&[(base, &insns)]), pcs)
}

/// So many times round the loop.
pub(crate) fn rounds(pcs: &[u64], times: usize) -> Vec<Do> {
    let mut path = Vec::new();
    for _ in 0..times {
        path.extend(go(&pcs[..13]));
    }
    path.extend(go(&pcs[13..]));
    path
}

/// Steps with the accesses that their instructions make, at random addresses.
pub(crate) fn with_accesses(steps: &[Step], isa: Isa, random: &mut Random) -> Vec<(Step, Effects)> {
    let mut stack = 0x8010_0000u64;
    steps
        .iter()
        .map(|step| {
            let mut effects = Effects::default();
            if let Step::Insn(insn) = step {
                stack = stack.wrapping_add(random.below(64)).wrapping_sub(24);
                add_accesses(insn, isa, stack, random, &mut effects);
            }
            (*step, effects)
        })
        .collect()
}

fn add_accesses(insn: &Insn, isa: Isa, at: u64, random: &mut Random, effects: &mut Effects) {
    let touch = Touch::of(insn.bits, isa);
    let (kind, size, count) = match touch {
        Touch::Nothing | Touch::Vector { .. } => return,
        Touch::Accesses { kind, size, count } => (kind, size, count),
        Touch::Swap { size, count } if random.flip() => (AccessKind::AtomicSwap, size, count),
        Touch::Swap { size, count } => (AccessKind::Load, size, count),
        Touch::Conditional { size } if random.flip() => (AccessKind::Store, size, 1),
        Touch::Conditional { size } => (AccessKind::ConditionalStoreFailure, size, 1),
    };
    // Of a load it is what a compare-and-swap would have stored.
    let is_failed_swap = matches!(touch, Touch::Swap { .. }) && kind == AccessKind::Load;
    let mask = u64::MAX >> (64 - (8 << size));
    for i in 0..u64::from(count) {
        let wild = random.below(20) == 0;
        let addr = if wild {
            random.draw()
        } else {
            at + (i << size)
        };
        let aligned = kind.code() >= 8 || is_failed_swap || random.below(10) > 0;
        let addr = if aligned { addr >> size << size } else { addr };
        let csr = u64::from(insn.bits >> 20);
        let small = random.draw() >> random.below(64);
        let access = Access {
            kind,
            size,
            addr: isa.xlen().wrap(if kind.is_csr() { csr } else { addr }),
            paddr: Some(addr),
            data: Some((if random.flip() { small } else { !small }) & mask),
            operand: match kind.code() >= 4 && kind.code() < 15 || is_failed_swap {
                true => Some(random.draw() & mask),
                false => None,
            },
        };
        match kind.is_csr() {
            true => effects.csr_access = Some(access),
            false => effects.accesses.push(access).unwrap(),
        }
    }
}

/// The stream of an encoder at such a port.
pub(crate) fn encode_steps(
    port: PortConfig,
    config: &Config,
    steps: &[(Step, Effects)],
) -> Vec<u8> {
    let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    let mut port = Port::new(port, encoder);
    for (step, effects) in steps {
        port.step(HartId(0), step, effects);
    }
    port.finish();
    port.into_sink().into_sink()
}

/// Events as a decoder gives them with accesses assigned, fed in pieces.
pub(crate) fn decode_to(
    config: &Config,
    image: &Image,
    bytes: &[u8],
    out: &mut impl Consumer,
    piece: usize,
) {
    let mut decoder = Decoder::new(config.clone(), image).unwrap();
    let mut tie = config.tie(image).unwrap();
    for part in bytes.chunks(piece) {
        decoder.feed(part, &mut tie.to(&mut *out));
    }
    let mut tied = tie.to(out);
    decoder.finish(&mut tied);
    tied.finish();
}

pub(crate) fn expecting(config: &Config) -> Check {
    let data = config.data.unwrap();
    Check::new().without(Unreported {
        traps: config.version == DRAFT,
        data: Some(data.reported(config.version, config.xlen)),
        ..Unreported::default()
    })
}

/// Everything comes back, whatever the pieces.
#[track_caller]
pub(crate) fn comes_back(
    config: &Config,
    port: PortConfig,
    image: &Image,
    steps: &[(Step, Effects)],
) -> u64 {
    let bytes = encode_steps(port, config, steps);
    let mut accesses = 0;
    for piece in [bytes.len(), 7] {
        let mut check = expecting(config);
        for (step, effects) in steps {
            check.step(HartId(0), step, effects);
        }
        decode_to(config, image, &bytes, &mut check, piece);
        match check.result() {
            Ok(checked) => accesses = checked.accesses,
            Err(difference) => panic!("{difference}\n{config:?}"),
        }
    }
    accesses
}

/// Packets of instruction trace in a stream.
fn instruction_packets(bytes: &[u8]) -> Vec<Vec<u8>> {
    kind_of_packets(bytes, Kind::Instruction)
}

pub(crate) fn kind_of_packets(bytes: &[u8], wanted: Kind) -> Vec<Vec<u8>> {
    let mut framer = Framer::new();
    let mut rest = bytes;
    let mut all = Vec::new();
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        if let Piece::Packet(Encapsulated { kind, payload, .. }) = piece
            && kind == wanted
        {
            all.push(payload.to_vec());
        }
    }
    all
}

pub(crate) fn with_data(version: Version, data: DataConfig) -> Config {
    Config {
        data: Some(data),
        resync: Resync {
            unit: ResyncUnit::Halfwords,
            max: 4,
            ..Resync::default()
        },
        ..plain(version)
    }
}

/// The run-time options, each with each.
pub(crate) fn options(data: DataConfig) -> Vec<DataConfig> {
    let mut all = Vec::new();
    for bits in 0..1 << 6 {
        let bit = |n: u8| bits >> n & 1 != 0;
        for compression in [
            Compression::Xor,
            Compression::Differential,
            Compression::Dynamic,
        ] {
            let one = DataConfig {
                no_address: bit(0),
                no_data: bit(1),
                full_address: bit(2),
                full_data: bit(3),
                xor_addresses: bit(4),
                diff_width: if bit(5) { 1 } else { 2 },
                compression,
                ..data
            };
            let nothing = one.no_address && one.no_data;
            let narrow = one.diff_width == 1 && compression == Compression::Dynamic;
            if !nothing && !narrow {
                all.push(one);
            }
        }
    }
    all
}

#[test]
fn every_option_comes_back() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 11));
    let mut random = Random::new(1);
    for version in [DRAFT, RATIFIED, REVIEW] {
        let steps = with_accesses(&path, Isa::RV64GC, &mut random);
        for data in options(settings(version)) {
            let config = with_data(version, data);
            // A failed store-conditional may be taken for the next store.
            let steps: Vec<_> = match data.failures {
                true => steps.clone(),
                false => steps.iter().map(succeed).collect(),
            };
            let port = config.port(Isa::RV64GC);
            let count = comes_back(&config, port, &image, &steps);
            assert_eq!(count, 11 * 11 + 1);
        }
    }
}

/// The same with a store-conditional that succeeds.
fn succeed((step, effects): &(Step, Effects)) -> (Step, Effects) {
    let mut effects = *effects;
    let all: Vec<_> = effects.accesses.iter().copied().collect();
    effects.accesses.clear();
    for mut access in all {
        if access.kind == AccessKind::ConditionalStoreFailure {
            access.kind = AccessKind::Store;
        }
        effects.accesses.push(access).unwrap();
    }
    (*step, effects)
}

/// 4.3, split form: requests and responses, in any of the options.
#[test]
fn split_loads_come_back() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 12));
    let mut random = Random::new(2);
    for lrid_width in [1, 3, 8] {
        let steps = with_accesses(&path, Isa::RV64GC, &mut random);
        for data in options(DataConfig {
            split: true,
            lrid_width,
            ..settings(RATIFIED)
        }) {
            let config = with_data(RATIFIED, data);
            if data.no_address {
                // Loads come when they are answered, out of order with stores.
                continue;
            }
            comes_back(&config, config.port(Isa::RV64GC), &image, &steps);
        }
    }
}

#[test]
fn kinds_that_are_not_supported() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 5));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(3));
    for (atomics, csrs, data_width, each) in [
        (false, true, 64, 11 - 2),
        (true, false, 64, 11 - 2),
        (false, false, 64, 11 - 4),
        (true, true, 32, 11 - 3),
    ] {
        let data = DataConfig {
            atomics,
            csrs,
            data_width,
            failures: false,
            ..settings(RATIFIED)
        };
        let config = with_data(RATIFIED, data);
        let steps: Vec<_> = steps.iter().map(succeed).collect();
        let count = comes_back(&config, config.port(Isa::RV64GC), &image, &steps);
        let last = u64::from(data_width == 64);
        assert_eq!(count, 5 * each + last, "{data:?}");
    }
}

/// Data trace does not change packets of instruction trace, but for what support
/// packets say; blocks of any size lead to the same packets.
#[test]
fn instruction_packets_are_the_same() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 40));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(4));
    for version in BOTH {
        let config = with_data(version, settings(version));
        let port = config.port(Isa::RV64GC);
        let without = Config {
            data: None,
            ..config.clone()
        };
        let single = encode_steps(port, &config, &steps);
        let plain = encode_steps(without.port(Isa::RV64GC), &without, &steps);
        let not_support = |packets: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
            let flow = packets.into_iter().filter(|p| p[0] & 15 != 15);
            flow.collect()
        };
        let flow = |bytes: &[u8]| not_support(instruction_packets(bytes));
        assert_eq!(flow(&single), flow(&plain));
        for room in [4, 16, 64] {
            let port = PortConfig {
                retirement: Retirement::Block(room),
                ..port
            };
            let bytes = encode_steps(port, &config, &steps);
            assert_eq!(flow(&bytes), flow(&single));
            let packets = |bytes| kind_of_packets(bytes, Kind::Data);
            assert_eq!(packets(&bytes), packets(&single));
            comes_back(&config, port, &image, &steps);
        }
    }
}

/// 7.1.3: after a synchronisation the first access of each size is sent in full.
#[test]
fn full_values_after_a_synchronisation() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 40));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(5));
    let config = with_data(
        RATIFIED,
        DataConfig {
            compression: Compression::Differential,
            ..settings(RATIFIED)
        },
    );
    let bytes = encode_steps(config.port(Isa::RV64GC), &config, &steps);
    let (layout, data) = (config.layout(), config.data_layout().unwrap());
    let mut framer = Framer::new();
    let mut rest = &bytes[..];
    let mut known = [false; 4];
    let (mut syncs, mut differences) = (0, 0);
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        match piece {
            Piece::Packet(Encapsulated {
                kind: Kind::Instruction,
                payload,
                ..
            }) => {
                let packet = Packet::read(payload, &layout).unwrap();
                if matches!(packet, Packet::Start(_) | Packet::Trap(_)) {
                    known = [false; 4];
                    syncs += 1;
                }
            }
            Piece::Packet(Encapsulated {
                kind: Kind::Data,
                payload,
                ..
            }) => {
                let packet = DataPacket::read(payload, &data, &Outstanding::default()).unwrap();
                if let DataPacket::Transfer { size, diff, .. } = packet {
                    let known = &mut known[usize::from(size)];
                    assert_eq!(diff != 0, *known, "{packet:?}");
                    *known = true;
                    differences += u32::from(diff != 0);
                }
            }
            piece => panic!("{piece:?}"),
        }
    }
    assert!(syncs > 3 && differences > 100, "{syncs} {differences}");
}

/// 4.3: an instruction with several accesses is shown once for each, with its own
/// type the last time; each access follows a block that ends with it.
#[test]
fn several_accesses_are_repeated() {
    let isa = Isa::parse("rv32ima_zicsr_zca_zcmp").unwrap();
    // cm.push {ra, s0-s2}, -16; c.nop; cm.popret {ra, s0-s2}, 16
    let base = 0x8000_0000;
    let image = image(isa, &[(base, &[0xb872, 0x0001, 0xbe72])]);
    let path = steps(&image, &go(&[base, base + 2, base + 4, base]));
    let steps = with_accesses(&path, isa, &mut Random::new(6));
    #[derive(Default)]
    struct Shown(Vec<String>);
    impl IngressSink for Shown {
        fn ingress(&mut self, _: HartId, block: &Ingress) {
            let (at, len) = (block.iaddr & 0xff, block.iretire);
            self.0.push(format!("{at:x}+{len} {}", block.itype.code()));
        }
        fn data(&mut self, _: HartId, _: &hartrace_flow::DataIngress) {
            self.0.push("data".to_owned());
        }
    }
    let shown = |retirement| {
        let mut port = PortConfig::new(isa);
        port.data = hartrace_flow::DataPort::Unified;
        port.retirement = retirement;
        let mut shown = Port::new(port, Shown::default());
        for (step, effects) in &steps[..3] {
            shown.step(HartId(0), step, effects);
        }
        shown.finish();
        shown.into_sink().0.join(", ")
    };
    let ret = Itype::Return.code();
    let push = "0+1 0, data";
    let pop = "4+1 0, data";
    assert_eq!(
        shown(Retirement::Single),
        format!("{push}, {push}, {push}, {push}, 2+1 0, {pop}, {pop}, {pop}, 4+1 {ret}, data"),
    );
    // The last push begins a block, and the first pop ends it.
    assert_eq!(
        shown(Retirement::Block(16)),
        format!("{push}, {push}, {push}, 0+3 0, data, data, {pop}, {pop}, 4+1 {ret}, data"),
    );
    for version in BOTH {
        let data = DataConfig::new(version, Xlen::Rv32);
        let config = Config {
            xlen: Xlen::Rv32,
            ..with_data(version, data)
        };
        let config = Config {
            iaddress_width: 32,
            ..config
        };
        for retirement in [Retirement::Single, Retirement::Block(16)] {
            let port = PortConfig {
                retirement,
                ..config.port(isa)
            };
            assert_eq!(comes_back(&config, port, &image, &steps), 12);
        }
    }
}

/// Addresses of fewer bits are extended by their sign.
#[test]
fn narrow_addresses() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 10));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(7));
    for daddress_width in [32, 39, 48] {
        for xor_addresses in [false, true] {
            let data = DataConfig {
                daddress_width,
                xor_addresses,
                ..settings(RATIFIED)
            };
            let config = with_data(RATIFIED, data);
            comes_back(&config, config.port(Isa::RV64GC), &image, &steps);
        }
    }
}

/// All events, in few words.
#[derive(Default)]
struct Told(Vec<String>);

impl Consumer for Told {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Access(DataAccess { insn, access, .. }) => {
                self.0.push(format!("{insn:?} {:?}", access.kind));
            }
            Event::DataGap(gap) => self.0.push(gap.reason.code.to_owned()),
            Event::Gap(gap) => self.0.push(gap.reason.code.to_owned()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A data packet that is missing, or one too many, is noticed by the next
/// synchronisation, and costs only the accesses up to there their instruction.
#[test]
fn a_lost_packet_is_noticed() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 200));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(8));
    let config = with_data(RATIFIED, settings(RATIFIED));
    let bytes = encode_steps(config.port(Isa::RV64GC), &config, &steps);
    let mut framer = Framer::new();
    let mut rest = &bytes[..];
    let mut places = Vec::new();
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        if let Piece::Packet(Encapsulated {
            kind: Kind::Data,
            payload,
            ..
        }) = piece
        {
            places.push(at as usize..at as usize + payload.len() + 1);
        }
    }
    let middle = places[places.len() / 2].clone();
    let whole = 200 * 11 + 1;
    let without = [&bytes[..middle.start], &bytes[middle.end..]].concat();
    let twice = [&bytes[..middle.end], &bytes[middle.start..]].concat();
    for (damaged, count) in [(without, whole - 1), (twice, whole + 1)] {
        let mut told = Told::default();
        decode_to(&config, &image, &damaged, &mut told, 4096);
        let warnings = told.0.iter().filter(|line| line.starts_with("ET")).count();
        assert_eq!(warnings, 1);
        assert!(told.0.iter().any(|line| line == "ET0404"));
        let accesses = told.0.len() - warnings;
        assert_eq!(accesses, count);
        let loose = told
            .0
            .iter()
            .filter(|line| line.starts_with("None"))
            .count();
        assert!(loose > 0 && loose < 400, "{loose}");
    }
}

/// A support packet that reports `dloss`, and bytes that are no data packet: nothing
/// until the next synchronisation.
#[test]
fn loss_that_is_reported() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 200));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(9));
    let config = with_data(RATIFIED, settings(RATIFIED));
    let bytes = encode_steps(config.port(Isa::RV64GC), &config, &steps);
    let places: Vec<_> = {
        let mut framer = Framer::new();
        let mut rest = &bytes[..];
        let mut places = Vec::new();
        while let Some((at, _)) = framer.next_piece(&mut rest) {
            places.push(at as usize);
        }
        places
    };
    let middle = places[places.len() / 2];
    let support = Packet::Support(hartrace_etrace::Support {
        ienable: true,
        ioptions: config.ioptions_field(),
        data: Some(hartrace_etrace::DataSupport {
            denable: true,
            dloss: true,
            doptions: 0,
        }),
        ..Default::default()
    });
    let mut lost = Vec::new();
    support
        .write(&config.layout())
        .write_framed(Kind::Instruction, &mut lost);
    // Format 4, which unified loads do not have.
    for (inserted, code) in [(lost, "ET0403"), (vec![0x61, 0x04], "ET0212")] {
        let damaged = [&bytes[..middle], &inserted, &bytes[middle..]].concat();
        let mut told = Told::default();
        decode_to(&config, &image, &damaged, &mut told, 4096);
        let gaps: Vec<_> = told
            .0
            .iter()
            .filter(|line| line.starts_with("ET"))
            .collect();
        // One loss, one gap: what is missing is not reported again.
        assert_eq!(gaps, [code]);
        let accesses = told.0.len() - 1;
        assert!(
            accesses < 200 * 11 && accesses > 200 * 11 - 400,
            "{accesses}"
        );
        let last = told.0.last().unwrap();
        assert_eq!(last, "Some(0) Load");
    }
}

/// A queue that overflows: the trace is lost with its data, and `dloss` says so.
#[test]
fn an_overflow_reports_dloss() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 200));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(10));
    let config = Config {
        queue: Some(Queue {
            bytes: 512,
            drain: 6000,
            stall: false,
        }),
        ..with_data(RATIFIED, settings(RATIFIED))
    };
    let bytes = encode_steps(config.port(Isa::RV64GC), &config, &steps);
    let layout = config.layout();
    let packets = instruction_packets(&bytes);
    let lost = packets.iter().filter(|payload| {
        let packet = Packet::read(payload, &layout).unwrap();
        matches!(packet, Packet::Support(support) if support.data.unwrap().dloss)
    });
    assert!(lost.count() > 2);
    let mut told = Told::default();
    decode_to(&config, &image, &bytes, &mut told, 4096);
    assert!(told.0.iter().any(|line| line == "ET0401"));
    // What is there has its instruction.
    let tied = told
        .0
        .iter()
        .filter(|line| line.starts_with("Some"))
        .count();
    assert!(tied > 100, "{tied}");
    let mismatches = told.0.iter().filter(|line| *line == "ET0404").count();
    assert_eq!(mismatches, 0);
}

/// 6.5: the options of data trace in the support packet are those that count.
#[test]
fn options_in_the_support_packet() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 3));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(11));
    for version in [RATIFIED, REVIEW] {
        let told = with_data(
            version,
            DataConfig {
                no_data: true,
                full_address: true,
                ..settings(version)
            },
        );
        let bytes = encode_steps(told.port(Isa::RV64GC), &told, &steps);
        // A decoder that was not told.
        let config = with_data(version, settings(version));
        let mut check = expecting(&told);
        for (step, effects) in &steps {
            check.step(HartId(0), step, effects);
        }
        decode_to(&config, &image, &bytes, &mut check, 4096);
        assert_eq!(check.result().map(|c| c.accesses), Ok(34));
    }
}

/// A load that failed has no data.
#[test]
fn a_response_with_an_error() {
    let (image, pcs) = program();
    let config = with_data(
        RATIFIED,
        DataConfig {
            split: true,
            ..settings(RATIFIED)
        },
    );
    let mut encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    let block = Ingress {
        iaddr: pcs[0],
        iretire: 2,
        ilastsize: 1,
        ..Ingress::default()
    };
    encoder.ingress(HartId(0), &block);
    let request = hartrace_flow::DataIngress {
        dretire: true,
        daddr: 0x1000,
        dsize: 2,
        lrid: 3,
        ..Default::default()
    };
    encoder.data(HartId(0), &request);
    let response = hartrace_flow::DataIngress {
        lresp: 3,
        lid: 3,
        ldata: 99,
        ..Default::default()
    };
    encoder.data(HartId(0), &response);
    encoder.finish();
    #[derive(Default)]
    struct Last(Option<DataAccess>);
    impl Consumer for Last {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            if let Event::Access(access) = event {
                self.0 = Some(*access);
            }
            ControlFlow::Continue(())
        }
    }
    let mut last = Last::default();
    decode_to(&config, &image, &encoder.into_sink(), &mut last, 4096);
    let access = last.0.unwrap();
    assert_eq!((access.access.addr, access.access.data), (0x1000, None));
    assert_eq!((access.insn, access.part), (Some(0), Part::Whole));
}
