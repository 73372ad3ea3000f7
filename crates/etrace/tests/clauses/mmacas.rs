//! The extension for multiple memory accesses and compare-and-swap (2.05): its packets
//! bit by bit, and accesses on their way to events.

use std::ops::ControlFlow;

use hartrace_etrace::{
    Config, DataConfig, DataLayout, DataPacket, Encoder, Fault, Kind, Outstanding,
};
use hartrace_flow::{
    AccessKind, Consumer, DataAccess, DataIngress, Event, HartId, Ingress, IngressSink, Observer,
    Part,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::Random;

use crate::common::*;
use crate::data::{
    ADDRESS, VALUE, comes_back, decode_to, encode_steps, expecting, has_fields, kind_of_packets,
    layout, odd, options, program, rounds, settings, with_accesses, with_data,
};

/// A change of the settings.
fn with(change: impl Fn(&mut DataConfig)) -> DataLayout {
    let mut data = odd(REVIEW);
    data.mmacas = true;
    change(&mut data);
    layout(data, REVIEW)
}

type Field = (&'static str, u64, u8);
type Change = fn(&mut DataConfig);

/// "Unified load or store": with address and data, address only, data only.
#[test]
fn loads_and_stores() {
    let widths: [(u8, Change); 2] = [
        (2, |_| {}),
        (1, |data| (data.atomics, data.csrs) = (false, false)),
    ];
    for (width, only) in widths {
        for code in 0..8u8 {
            let (multiple, store, aligned) = (code & 4 != 0, code & 2 != 0, code & 1 == 0);
            let head: [Field; 3] = [
                ("format", u64::from(multiple), width),
                ("subformat", u64::from(code & 3), 2),
                ("size", 2, 2),
            ];
            let data: [Field; 2] = [("data_len", 3, 2), ("data", VALUE, 32)];
            let packet = |diff, data, address| DataPacket::Transfer {
                multiple,
                store,
                aligned,
                size: 2,
                diff,
                data,
                address,
            };
            let address = [("address", ADDRESS, 47)];
            let both = [&head[..], &[("diff", 3, 2)], &data, &address].concat();
            has_fields(&with(only), packet(3, Some(VALUE), Some(ADDRESS)), &both);
            let no_data = with(|data| {
                only(data);
                data.no_data = true;
            });
            let fields = [&head[..], &[("diff", 1, 1)], &address].concat();
            has_fields(&no_data, packet(1, None, Some(ADDRESS)), &fields);
            let no_address = with(|data| {
                only(data);
                data.no_address = true;
            });
            let fields = [&head[..], &[("diff", 3, 2), ("data", VALUE, 64)]].concat();
            has_fields(&no_address, packet(3, Some(VALUE), None), &fields);
        }
    }
}

/// "Split load - request phase" and "Split load or atomic - data phase".
#[test]
fn split_loads_and_the_one_response() {
    let layout = with(|data| data.split = true);
    for code in 0..4u8 {
        let (multiple, aligned) = (code & 2 != 0, code & 1 == 0);
        let packet = DataPacket::LoadRequest {
            multiple,
            aligned,
            size: 3,
            lrid: 21,
            diff: 1,
            address: ADDRESS,
        };
        let fields = [
            ("format", u64::from(multiple), 2),
            ("subformat", u64::from(!aligned), 2),
            ("size", 3, 2),
            ("lrid", 21, 5),
            ("diff", 1, 1),
            ("address", ADDRESS, 47),
        ];
        has_fields(&layout, packet, &fields);
    }
    let packet = DataPacket::LoadResponse {
        size: 2,
        lrid: 21,
        resp: 3,
        data: VALUE,
    };
    let fields = [
        ("format", 3, 2),
        ("size", 2, 2),
        ("lrid", 21, 5),
        ("resp", 3, 2),
        ("data", VALUE, 64),
    ];
    has_fields(&layout, packet, &fields);
}

/// "Unified atomic", "Split atomic with operand and address" and "Unified CAS failure".
#[test]
fn atomics() {
    for subtype in 0..8 {
        let head: [Field; 3] = [
            ("format", 2, 2),
            ("subformat", 8 | subtype, 4),
            ("size", 2, 2),
        ];
        let packet = DataPacket::Atomic {
            subtype: subtype as u8,
            size: 2,
            diff: 2,
            operand: Some(5),
            data: Some(VALUE),
            address: Some(ADDRESS),
        };
        let values: [Field; 6] = [
            ("diff", 2, 2),
            ("op_len", 0, 2),
            ("operand", 5, 8),
            ("data_len", 3, 2),
            ("data", VALUE, 32),
            ("address", ADDRESS, 47),
        ];
        has_fields(&with(|_| {}), packet, &[&head[..], &values].concat());
        // `diff` of a request has two bits whatever is configured for others.
        let split = with(|data| (data.split, data.diff_width) = (true, 1));
        let packet = DataPacket::AtomicRequest {
            subtype: subtype as u8,
            size: 2,
            lrid: 9,
            diff: 2,
            operand: 5,
            address: ADDRESS,
        };
        let id = [("lrid", 9, 5)];
        let request = [&head[..], &id, &values[..3], &values[5..]].concat();
        has_fields(&split, packet, &request);
    }
    let head: [Field; 3] = [("format", 2, 2), ("subformat", 7, 4), ("size", 3, 2)];
    let address = [("address", ADDRESS, 47)];
    let failure = |diff, operand| DataPacket::SwapFailure {
        size: 3,
        diff,
        operand,
        address: ADDRESS,
    };
    let operand: [Field; 3] = [("diff", 2, 2), ("op_len", 3, 3), ("operand", VALUE, 32)];
    let fields = [&head[..], &operand, &address].concat();
    has_fields(&with(|_| {}), failure(2, Some(VALUE)), &fields);
    has_fields(
        &with(|data| data.split = true),
        failure(2, Some(VALUE)),
        &fields,
    );
    let fields = [&head[..], &[("diff", 1, 1)], &address].concat();
    has_fields(&with(|data| data.no_data = true), failure(1, None), &fields);
}

/// "Unified CSR", with data and with the address only.
#[test]
fn csrs() {
    for subtype in 0..3 {
        let head: [Field; 2] = [("format", 2, 2), ("subformat", 4 | subtype, 4)];
        let packet = |diff, data, operand| DataPacket::Csr {
            subtype: subtype as u8,
            diff,
            data,
            operand,
            address: 0x340,
        };
        let fields: [Field; 7] = [
            ("diff", 1, 2),
            ("data_len", 3, 3),
            ("data", VALUE, 32),
            ("addr_msbs", 0xd, 6),
            ("op_len", 0, 3),
            ("operand", 5, 8),
            ("addr_lsbs", 0, 6),
        ];
        let all = [&head[..], &fields].concat();
        has_fields(&with(|_| {}), packet(1, Some(VALUE), Some(5)), &all);
        let fields: [Field; 3] = [("diff", 1, 1), ("addr_msbs", 0xd, 6), ("addr_lsbs", 0, 6)];
        let all = [&head[..], &fields].concat();
        let layout = with(|data| data.no_data = true);
        has_fields(&layout, packet(1, None, None), &all);
    }
}

#[test]
fn reserved_codes() {
    let read = |bytes: &[u8], layout| DataPacket::read(bytes, &layout, &Outstanding::default());
    for subformat in 0..4 {
        let bytes = [2 | subformat << 2, 0, 0];
        assert_eq!(read(&bytes, with(|_| {})), Err(Fault::UnknownSubtype));
    }
    // No response without a request, and no failure without an address.
    assert_eq!(read(&[3, 0], with(|_| {})), Err(Fault::UnknownDataFormat));
    let no_address = with(|data| data.no_address = true);
    assert_eq!(
        read(&[2 | 7 << 2, 0], no_address),
        Err(Fault::UnknownSubtype)
    );
}

#[test]
fn every_option_comes_back() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 11));
    let mut random = Random::new(1);
    for split in [false, true] {
        let steps = with_accesses(&path, Isa::RV64GC, &mut random);
        for data in options(DataConfig {
            mmacas: true,
            split,
            ..settings(REVIEW)
        }) {
            // Split loads without addresses come out of order.
            if split && data.no_address {
                continue;
            }
            let config = with_data(REVIEW, data);
            comes_back(&config, config.port(Isa::RV64GC), &image, &steps);
        }
    }
}

/// `mmacas_ext` of the support packet is followed, in both directions.
#[test]
fn the_support_packet_says_so() {
    let (image, pcs) = program();
    let path = steps(&image, &rounds(&pcs, 3));
    let steps = with_accesses(&path, Isa::RV64GC, &mut Random::new(11));
    for mmacas in [true, false] {
        let with = |mmacas| {
            let data = settings(REVIEW);
            with_data(REVIEW, DataConfig { mmacas, ..data })
        };
        let told = with(mmacas);
        let bytes = encode_steps(told.port(Isa::RV64GC), &told, &steps);
        let mut check = expecting(&told);
        for (step, effects) in &steps {
            check.step(HartId(0), step, effects);
        }
        decode_to(&with(!mmacas), &image, &bytes, &mut check, 4096);
        assert_eq!(check.result().map(|c| c.accesses), Ok(34));
    }
}

#[derive(Default)]
struct Accesses(Vec<DataAccess>);

impl Consumer for Accesses {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Access(access) = event {
            self.0.push(*access);
        }
        ControlFlow::Continue(())
    }
}

/// Accesses of an instruction with several are marked, others are not.
#[test]
fn several_accesses_of_an_instruction() {
    let isa = Isa::parse("rv32ima_zicsr_zca_zcmp").unwrap();
    // cm.push {ra, s0-s2}, -16; c.lw a0, 0(a1); cm.push {ra}, -16; cm.popret {ra, s0}, 16
    let base = 0x8000_0000;
    let image = image(isa, &[(base, &[0xb872, 0x4188, 0xb842, 0xbe52])]);
    let path = steps(&image, &go(&[base, base + 2, base + 4, base + 6, base]));
    let steps = with_accesses(&path, isa, &mut Random::new(6));
    for split in [false, true] {
        let data = DataConfig {
            mmacas: true,
            split,
            ..DataConfig::new(REVIEW, Xlen::Rv32)
        };
        let config = Config {
            xlen: Xlen::Rv32,
            iaddress_width: 32,
            ..with_data(REVIEW, data)
        };
        comes_back(&config, config.port(isa), &image, &steps);
        let bytes = encode_steps(config.port(isa), &config, &steps[..4]);
        let layout = data.layout(REVIEW, Xlen::Rv32);
        let packets = kind_of_packets(&bytes, Kind::Data);
        let packets = packets.iter().filter_map(|payload| {
            match DataPacket::read(payload, &layout, &Outstanding::default()).unwrap() {
                DataPacket::Transfer { multiple, .. } => Some(multiple),
                DataPacket::LoadRequest { multiple, .. } => Some(multiple),
                _ => None,
            }
        });
        let expected = [true, true, true, true, false, false, true, true];
        assert_eq!(packets.collect::<Vec<_>>(), expected, "{split}");
    }
}

/// A compare-and-swap that fails stores nothing. With the extension it has a packet with
/// what it would have stored, unless packets have no addresses: there is none then. Without
/// it there is no `dtype` for it, and it is a load.
#[test]
fn a_compare_and_swap_that_fails() {
    let isa = Isa::parse("rv64gc_zacas").unwrap();
    let base = 0x8000_0000;
    // amocas.w a0, a0, (a1); lh a0, 0(a1); amocas.q a0, a0, (a1); sd a0, 8(a1); bnez a0, -16
    let insns = [
        0x28a5_a52f,
        0x0005_9503,
        0x28a5_c52f,
        0x00a5_b423,
        0xfe05_18e3,
    ];
    let image = image(isa, &[(base, &insns)]);
    let pcs: Vec<u64> = (0..5).map(|i| base + 4 * i).collect();
    let path: Vec<_> = (0..12).flat_map(|_| go(&pcs[..])).collect();
    let path = steps(&image, &path);
    let steps = with_accesses(&path, isa, &mut Random::new(9));
    let failed: Vec<_> = steps
        .iter()
        .flat_map(|(_, effects)| effects.accesses.iter())
        .filter_map(|access| access.failed_swap())
        .collect();
    assert!(failed.len() > 6, "{}", failed.len());
    for (version, mmacas) in [
        (DRAFT, false),
        (RATIFIED, false),
        (REVIEW, false),
        (REVIEW, true),
    ] {
        for split in [false, true] {
            for data in options(DataConfig {
                mmacas,
                split,
                ..settings(version)
            }) {
                if split && data.no_address {
                    continue;
                }
                let config = with_data(version, data);
                comes_back(&config, config.port(isa), &image, &steps);
                let bytes = encode_steps(config.port(isa), &config, &steps);
                let mut all = Accesses::default();
                decode_to(&config, &image, &bytes, &mut all, 4096);
                let is_failure =
                    |data: &&DataAccess| data.access.kind == AccessKind::CompareSwapFailure;
                let shown: Vec<_> = all.0.iter().filter(is_failure).collect();
                let expected = match mmacas && !data.no_address {
                    true => failed.len(),
                    false => 0,
                };
                assert_eq!(shown.len(), expected, "{data:?}");
                for (shown, failed) in shown.iter().zip(&failed) {
                    assert_eq!(shown.access.addr, failed.addr);
                    assert_eq!(shown.access.data, failed.data.filter(|_| !data.no_data));
                }
            }
        }
    }
}

/// `dtype` 2 and 3 of the port are loads and stores of several; 7 is a compare-and-swap
/// that failed.
#[test]
fn accesses_of_the_port() {
    let (image, pcs) = program();
    for split in [false, true] {
        let data = DataConfig {
            mmacas: true,
            split,
            ..settings(REVIEW)
        };
        let config = with_data(REVIEW, data);
        let mut encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
        let block = Ingress {
            iaddr: pcs[0],
            iretire: 4,
            ilastsize: 1,
            ..Ingress::default()
        };
        encoder.ingress(HartId(0), &block);
        for (dtype, dsize, value) in [(2, 2, 0x11), (3, 3, 0x22), (7, 3, 0x33)] {
            let port = DataIngress {
                dretire: true,
                dtype,
                daddr: 0x1000 + u64::from(dtype) * 8,
                dsize,
                data: u128::from(value as u32),
                sdata: value,
                lrid: 1,
                ..DataIngress::default()
            };
            encoder.data(HartId(0), &port);
        }
        if split {
            let response = DataIngress {
                lresp: 2,
                lid: 1,
                ldata: 0x11,
                ..DataIngress::default()
            };
            encoder.data(HartId(0), &response);
        }
        encoder.finish();
        let mut all = Accesses::default();
        decode_to(&config, &image, &encoder.into_sink(), &mut all, 4096);
        let shown = all.0.iter().map(|data| {
            assert_eq!(data.part, Part::Whole);
            let access = &data.access;
            (access.kind, access.addr, access.data, data.insn)
        });
        let expected = [
            (AccessKind::Load, 0x1010, Some(0x11), Some(0)),
            (AccessKind::Store, 0x1018, Some(0x22), Some(0)),
            (AccessKind::CompareSwapFailure, 0x1038, Some(0x33), None),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{split}");
    }
}
