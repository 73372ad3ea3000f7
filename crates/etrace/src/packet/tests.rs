//! Packets and their bytes: the tables of chapter 6, the examples of chapter
//! 12, and any packet in any layout.

use alloc::vec::Vec;

use super::*;
use crate::Config;
use crate::testing::RandomPackets as _;
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

mod tables;

/// The layout of the reference models.
fn reference() -> Layout {
    Config {
        context_width: 32,
        ecause_width: 5,
        ..Config::new(Version::V2_0, Xlen::Rv64)
    }
    .layout()
}

/// A small trace of the reference encoder, of every kind of packet it sends.
#[test]
fn a_trace_of_the_reference_encoder() {
    let address = |address| Report {
        address,
        ..Report::default()
    };
    let support = Support {
        data: Some(DataSupport::default()),
        ..Support::default()
    };
    let packets: [(&[u8], Packet); 7] = [
        (
            &[0x1f],
            Packet::Support(Support {
                ienable: true,
                ..support
            }),
        ),
        (
            &[0x73, 0, 0, 0, 0, 0, 0x04],
            Packet::Start(Start {
                branch: true,
                privilege: 3,
                address: 0x1000 >> 1,
                ..Start::default()
            }),
        ),
        (
            &[0x02, 0xe0, 0xff, 0xff, 0],
            Packet::Address(address((0x8000_0000 - 0x1000) >> 1)),
        ),
        (
            &[0x85, 0x2d, 0, 0, 0, 0, 0, 0, 0, 0xff],
            Packet::Branches {
                map: BranchMap { bits: 1, count: 1 },
                address: Some(Report {
                    updiscon: true,
                    ..address(0x5a >> 1)
                }),
            },
        ),
        (
            &[0x77, 0, 0, 0, 0, 0x21, 0x07, 0, 0, 0x10],
            Packet::Trap(Trap {
                branch: true,
                privilege: 3,
                ecause: 2,
                thaddr: true,
                address: Some(0x8000_0038 >> 1),
                tval: Some(0),
                ..Trap::default()
            }),
        ),
        (&[0xf2], Packet::Address(address(u64::MAX >> 1 & !3))),
        (
            &[0x4f],
            Packet::Support(Support {
                qual_status: QualStatus::EndedRep,
                ..support
            }),
        ),
    ];
    let layout = reference();
    for (bytes, packet) in packets {
        assert_eq!(Packet::read(bytes, &layout), Ok(packet));
        assert_eq!(packet.write(&layout).bytes(), bytes);
    }
}

/// The packets of chapter 12, as differences where it gives one.
#[test]
fn the_examples_of_the_specification() {
    let layout = Config::new(Version::V1_1_1, Xlen::Rv64).layout();
    let report = |delta: u64, updiscon| Report {
        address: delta >> 1,
        updiscon,
        ..Report::default()
    };
    let branches = |count, bits, report| Packet::Branches {
        map: BranchMap { bits, count },
        address: Some(report),
    };
    // Example 1 sends nothing.
    let examples: [(Packet, &[u8]); 4] = [
        // 10, then 0x80001a88 / 2 in full.
        (
            Packet::Address(report(0x8000_1a88, false)),
            &[0x12, 0x35, 0x00, 0x00, 0x01],
        ),
        // 01, 00001, 0, then 0xab0 / 2.
        (branches(1, 0, report(0xab0, false)), &[0x05, 0x58, 0x05]),
        // 01, 00011, 011, then 0x148 / 2.
        (branches(3, 3, report(0x148, false)), &[0x8d, 0x91, 0x02]),
        // 01, 00010, 010, then -0x10c / 2; updiscon is the other way round.
        (
            branches(2, 2, report(0xffff_ffff_ffff_fef4, true)),
            &[0x09, 0xe9, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03],
        ),
    ];
    for (mut packet, bytes) in examples {
        if let Packet::Branches {
            address: Some(report),
            ..
        } = &mut packet
        {
            report.address &= bits::mask(layout.address_width().into());
        }
        assert_eq!(packet.write(&layout).bytes(), bytes, "{packet:x?}");
        assert_eq!(Packet::read(bytes, &layout), Ok(packet));
    }
}

/// The same payload with the sign repeated in more bytes.
fn longer(payload: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = payload.to_vec();
    let sign = payload.last().map_or(0, |last| (*last as i8 >> 7) as u8);
    bytes.resize(len.max(payload.len()), sign);
    bytes
}

/// Whole, compressed, and everything between.
#[test]
fn any_packet_comes_back() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let layout = random.layout();
        for _ in 0..100 {
            let packet = random.packet(&layout);
            let short = packet.write(&layout);
            let whole = write::write(&packet, &layout).whole();
            assert!(short.bytes().len() <= whole.bytes().len());
            assert!(whole.bytes().len() <= layout.longest().div_ceil(8));
            assert_eq!(longer(short.bytes(), whole.bytes().len()), whole.bytes());
            for len in short.bytes().len()..=40 {
                let bytes = longer(short.bytes(), len);
                assert_eq!(Packet::read(&bytes, &layout), Ok(packet), "{layout:?}");
            }
        }
    }
}

/// The last byte is needed: without it the packet would be another.
#[test]
fn no_payload_can_be_shorter() {
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let layout = random.layout();
        let packet = random.packet(&layout);
        let payload = packet.write(&layout);
        if let Some((&last, rest @ [.., before])) = payload.bytes().split_last() {
            assert_ne!(last, (*before as i8 >> 7) as u8, "{packet:x?}");
            assert_ne!(Packet::read(rest, &layout), Ok(packet));
        }
    }
}

/// Any bytes: no panic, and what is read comes back.
#[test]
fn any_bytes() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let layout = random.layout();
        for _ in 0..200 {
            let len = random.below(40) as usize;
            let mut bytes = random.bytes(len);
            // Long runs of equal bytes make packets whose end is right.
            let same = random.below(40) as usize;
            let fill = if random.flip() { 0xff } else { 0 };
            bytes.iter_mut().skip(same).for_each(|byte| *byte = fill);
            if let Ok(packet) = Packet::read(&bytes, &layout) {
                let written = packet.write(&layout);
                assert_eq!(Packet::read(written.bytes(), &layout), Ok(packet));
            }
        }
    }
}

/// Widths that no configuration has: no panic.
#[test]
fn any_layout() {
    let mut random = Random::new(4);
    for _ in 0..20_000 {
        let mut width = || random.draw() as u8;
        let layout = Layout {
            iaddress_width: width(),
            iaddress_lsb: width(),
            privilege_width: width(),
            context_width: width(),
            time_width: width(),
            ecause_width: width(),
            f0s_width: width(),
            irdepth_width: width(),
            encoder_mode_width: width(),
            ioptions_width: width(),
            doptions_width: Some(width()),
            cache_size: width(),
            ..random.layout()
        };
        let bytes = random.bytes(36);
        if let Ok(packet) = Packet::read(&bytes, &layout) {
            assert!(packet.write(&layout).bytes().len() <= MAX_PAYLOAD);
        }
    }
}

/// The short way gives what the long one gives, for every payload of one and
/// two bytes in some layouts and for many longer ones; what it leaves is none
/// of formats 1 and 2, or bad.
#[test]
fn the_short_way_is_the_long_way() {
    let same = |bytes: &[u8], layout: &Layout, behind: u64| {
        let word = bytes
            .iter()
            .rev()
            .fold(behind, |w, &b| w << 8 | u64::from(b));
        let word = match bytes.len() {
            // Longer ones go the long way.
            9.. => return,
            len => bits::extended(word, len, 0),
        };
        let long = Packet::read_long(bytes, layout);
        if let Some(plain) = quick::plain(word, layout) {
            let (map, report) = match long {
                Ok(Packet::Branches { map, address }) => (map, address),
                Ok(Packet::Address(report)) => (BranchMap::default(), Some(report)),
                other => panic!("{bytes:x?} {layout:?} {other:?}"),
            };
            let marks = |r: Report| r.notify | r.updiscon | r.irreport;
            assert!(!report.is_some_and(marks), "{bytes:x?} {layout:?}");
            let width = u32::from(layout.address_width());
            let field = plain.address.map(|a| a & bits::mask(width));
            assert_eq!((plain.map, field), (map, report.map(|r| r.address)));
        }
        if let Some(packet) = quick::format_0(word, layout) {
            assert_eq!(Ok(packet), long, "{bytes:x?} {layout:?}");
        } else if let Ok(Packet::JumpTarget { irreport, .. }) = long {
            let irdepth = layout.irdepth_width > 0;
            assert!(irreport || irdepth, "{bytes:x?} {layout:?}");
        }
        match quick::read(word, layout) {
            Some(packet) => assert_eq!(Ok(packet), long, "{bytes:x?} {layout:?}"),
            None => assert!(
                !matches!(long, Ok(Packet::Address(_) | Packet::Branches { .. })),
                "{bytes:x?} {layout:?}"
            ),
        }
    };
    let mut random = Random::new(5);
    for _ in 0..12 {
        let layout = random.layout();
        for bytes in 0..=u16::MAX {
            let behind = random.draw();
            same(&bytes.to_le_bytes(), &layout, behind);
            same(&bytes.to_le_bytes()[..1], &layout, behind);
        }
    }
    for _ in 0..2_000 {
        let layout = random.layout();
        for _ in 0..50 {
            let behind = random.draw();
            let packet = random.packet(&layout);
            let payload = packet.write(&layout);
            let most = (payload.bytes().len() + random.below(3) as usize).min(8);
            let mut bytes = longer(payload.bytes(), most);
            bytes.truncate(8);
            same(&bytes, &layout, behind);
            let len = 1 + random.below(8) as usize;
            same(&random.bytes(len), &layout, behind);
        }
    }
}

/// An idle `irdepth` repeats `updiscon` and costs nothing.
#[test]
fn irdepth_is_compressed_away() {
    let mut random = Random::new(6);
    for _ in 0..10_000 {
        let layout = random.layout();
        let mut report = random.report(&layout);
        report.irreport = false;
        report.irdepth = report.idle_irdepth(&layout);
        let without = Layout {
            irdepth_width: 0,
            ..layout
        };
        let with = Packet::Address(report).write(&layout);
        report.irdepth = 0;
        assert_eq!(with, Packet::Address(report).write(&without));
    }
}

/// Addresses of every length with every number of branches, up to the longest packet of a
/// word and beyond it.
#[test]
fn a_difference_in_a_word_is_the_compressed_report() {
    let mut random = Random::new(9);
    let (mut words, mut longer) = (0, 0);
    for (iaddress_width, iaddress_lsb) in [(64, 1), (64, 0), (39, 1), (8, 2)] {
        let layout = Config {
            iaddress_width,
            iaddress_lsb,
            ..Config::new(Version::V2_0, Xlen::Rv64)
        }
        .layout();
        for _ in 0..10_000 {
            let count = random.below(32) as u8;
            let map = BranchMap {
                bits: random.bits(count.into()) as u32,
                count,
            };
            let length = random.below(65) as u32;
            let positive = random.bits(length);
            let difference = if random.below(2) == 0 {
                positive
            } else {
                !positive
            };
            let payload = write::plain_fields(map, difference, &layout).compressed();
            match write::short_difference(map, difference, &layout) {
                Some((word, len)) => {
                    assert_eq!(word.to_le_bytes()[..len as usize], *payload.bytes());
                    words += 1;
                }
                None => {
                    assert!(payload.bytes().len() >= 8);
                    longer += 1;
                }
            }
        }
    }
    assert!(words > 1000 && longer > 1000);
}
