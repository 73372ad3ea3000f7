//! Streams of packets, whole, in chunks and damaged.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::testing::RandomPackets as _;
use hartrace_testkit::Random;

/// A piece that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Packet(u64, Kind, Vec<u8>),
    Idle(u64, u64),
    Bad(u64, Fault, u64),
}

/// All pieces of a stream that comes in these chunks, padding in one.
fn pieces<'b>(chunks: impl Iterator<Item = &'b [u8]>) -> Vec<Owned> {
    let mut framer = Framer::new();
    let mut found = Vec::new();
    for mut chunk in chunks {
        while let Some((at, piece)) = framer.next_piece(&mut chunk) {
            add(&mut found, at, piece);
        }
        assert!(chunk.is_empty());
    }
    let end = framer.position();
    if let Some((at, piece)) = framer.finish() {
        add(&mut found, at, piece);
    }
    assert_eq!(framer.position(), end);
    assert!(!framer.is_inside());
    assert_eq!(framer.finish(), None);
    let all = found.iter().fold(0, |all, piece| {
        let (&at, len) = match piece {
            Owned::Packet(at, _, payload) => (at, 1 + payload.len() as u64),
            Owned::Idle(at, len) | Owned::Bad(at, _, len) => (at, *len),
        };
        assert_eq!(at, all);
        all + len
    });
    assert_eq!(all, end);
    found
}

fn add(found: &mut Vec<Owned>, at: u64, piece: Piece<'_>) {
    match (piece, found.last_mut()) {
        (Piece::Idle(more), Some(Owned::Idle(_, len))) => *len += more,
        (Piece::Idle(len), _) => found.push(Owned::Idle(at, len)),
        (Piece::Packet(Encapsulated { kind, payload, .. }), _) => {
            found.push(Owned::Packet(at, kind, payload.to_vec()));
        }
        (Piece::Lost(..), _) => panic!("packets have no numbers"),
        (Piece::Bad(fault, len), _) => found.push(Owned::Bad(at, fault, len)),
    }
}

fn whole(bytes: &[u8]) -> Vec<Owned> {
    pieces([bytes].into_iter())
}

/// A stream of so many packets, some with padding behind them, and the offsets
/// at which a header or padding stands.
fn stream(random: &mut Random, packets: u64) -> (Vec<u8>, BTreeSet<usize>) {
    let layout = random.layout();
    let (mut bytes, mut starts) = (Vec::new(), BTreeSet::new());
    for _ in 0..packets {
        starts.insert(bytes.len());
        let kind = match random.below(8) {
            0 => Kind::Data,
            _ => Kind::Instruction,
        };
        let payload = random.packet(&layout).write(&layout);
        payload.write_framed(kind, &mut bytes);
        if random.below(10) == 0 {
            for _ in 0..random.below(40) {
                starts.insert(bytes.len());
                bytes.push(0);
            }
        }
    }
    starts.insert(bytes.len());
    (bytes, starts)
}

/// Every byte there is, where a header should be.
#[test]
fn headers() {
    for byte in 0..=u8::MAX {
        let mut bytes = vec![byte];
        bytes.extend([0x99; 31]);
        let first = whole(&bytes).remove(0);
        let len = usize::from(byte & 31);
        let payload = vec![0x99; len];
        match byte {
            0 => assert_eq!(first, Owned::Idle(0, 1)),
            0x41..=0x5f => assert_eq!(first, Owned::Packet(0, Kind::Instruction, payload)),
            0x61..=0x7f => assert_eq!(first, Owned::Packet(0, Kind::Data, payload)),
            _ => assert_eq!(first, Owned::Bad(0, Fault::BadHeader, 32)),
        }
    }
    for kind in [Kind::Instruction, Kind::Data] {
        for len in 1..32u8 {
            assert_eq!(header(kind.header(len)), Some((kind, len.into())));
        }
    }
}

#[test]
fn the_stream_ends_inside_a_packet() {
    let bytes = [0x41, 0xf2, 0x43, 0x01, 0x02];
    let mut framer = Framer::new().at(100);
    let mut rest = &bytes[..];
    let packet = Piece::Packet(Encapsulated {
        src: 0,
        kind: Kind::Instruction,
        time: None,
        payload: &[0xf2],
        len: 2,
    });
    assert_eq!(framer.next_piece(&mut rest), Some((100, packet)));
    assert_eq!(framer.next_piece(&mut rest), None);
    assert!(framer.is_inside());
    let end = Piece::Bad(Fault::Truncated, 3);
    assert_eq!(framer.finish(), Some((102, end)));
    assert_eq!(framer.position(), 105);
}

/// Packets come back, and chunks make no difference, damaged or not.
#[test]
fn chunks_make_no_difference() {
    let mut random = Random::new(1);
    for round in 0..300 {
        let (mut bytes, _) = stream(&mut random, 60);
        for _ in 0..round % 4 {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
        }
        let expected = whole(&bytes);
        if round % 4 == 0 {
            let bad = expected.iter().any(|p| matches!(p, Owned::Bad(..)));
            assert!(!bad);
        }
        for size in [1, 2, 3, 7, 31, 32, 33, 100] {
            assert_eq!(pieces(bytes.chunks(size)), expected);
        }
        let mut rest = &bytes[..];
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let len = random.below(50).min(rest.len() as u64) as usize;
            chunks.push(&rest[..len]);
            rest = &rest[len..];
        }
        assert_eq!(pieces(chunks.into_iter()), expected);
    }
}

/// One byte is damaged. Behind what is reported as bad there are only packets
/// that were sent, and little is lost.
#[test]
fn after_damage_the_packets_are_the_sent_ones() {
    let mut random = Random::new(2);
    let (mut reported, mut lost) = (0, 0);
    for _ in 0..2_000 {
        let (mut bytes, starts) = stream(&mut random, 200);
        let at = random.below(bytes.len() as u64 / 2) as usize;
        bytes[at] ^= 1 + random.below(255) as u8;
        let mut bad = false;
        for piece in whole(&bytes) {
            match piece {
                Owned::Bad(_, Fault::BadHeader, len) => {
                    bad = true;
                    reported += 1;
                    lost += len;
                }
                Owned::Packet(at, ..) | Owned::Idle(at, _) if bad => {
                    assert!(starts.contains(&(at as usize)));
                }
                _ => {}
            }
        }
    }
    assert!(reported > 100, "{reported}");
    assert!(lost / reported < 150, "{lost} in {reported}");
}

/// A stretch of garbage between good packets: some end of it is found.
#[test]
fn garbage_is_passed() {
    let mut random = Random::new(3);
    let mut right = 0;
    for _ in 0..500 {
        let (before, _) = stream(&mut random, 5);
        let (after, starts) = stream(&mut random, 300);
        let mut bytes = before.clone();
        bytes.push(0x80);
        let len = random.below(300) as usize;
        bytes.extend(random.bytes(len));
        let good = bytes.len();
        bytes.extend(&after);
        let last = whole(&bytes)
            .into_iter()
            .rfind(|p| matches!(p, Owned::Packet(..)));
        if let Some(Owned::Packet(at, ..)) = last {
            right += u64::from(starts.contains(&(at as usize).wrapping_sub(good)));
        }
    }
    assert_eq!(right, 500);
}

/// Behind 32 zero bytes a packet starts at once (chapter 6).
#[test]
fn zeros_synchronise() {
    let mut bytes = vec![0x80, 0xff, 0x5f];
    bytes.extend([0; 40]);
    bytes.extend([0x41, 0x1f]);
    let found = whole(&bytes);
    let last = Owned::Packet(43, Kind::Instruction, vec![0x1f]);
    assert_eq!(found.last(), Some(&last));
    assert_eq!(found[0], Owned::Bad(0, Fault::BadHeader, 35));
    // 31 zeros may be a payload.
    let mut bytes = vec![0x80, 0xff, 0x5f];
    bytes.extend([0; 31]);
    bytes.extend([0x41, 0x1f]);
    assert_eq!(whole(&bytes).len(), 1);
}

/// Whatever the bytes, all of them are told about, in order.
#[test]
fn any_bytes() {
    let mut random = Random::new(4);
    for round in 0..500 {
        let len = random.below(2_000) as usize;
        let mut bytes = random.bytes(len);
        if round % 2 == 0 {
            // Mostly headers.
            bytes.iter_mut().for_each(|b| *b = 0x40 | *b & 0x3f);
        }
        whole(&bytes);
        let _ = boundary(
            &bytes,
            random.below(2_100) as usize,
            &Encapsulation::default(),
        );
    }
}

/// From any offset of a good stream the result is a place between packets,
/// and not far away.
#[test]
fn boundaries_are_true() {
    let mut random = Random::new(5);
    let (mut found, mut far) = (0, 0);
    for _ in 0..100 {
        let (bytes, starts) = stream(&mut random, 150);
        for from in 0..=bytes.len() {
            if let Some(at) = boundary(&bytes, from, &Encapsulation::default()) {
                assert!(at > from && starts.contains(&at));
                found += 1;
                far += at - from;
            }
        }
    }
    assert!(far / found < 80, "{}", far / found);
    assert_eq!(boundary(&[], 0, &Encapsulation::default()), None);
    assert_eq!(boundary(&[0x41], 7, &Encapsulation::default()), None);
}

/// A stream that can be cut in two ways all along: no guess is made.
#[test]
fn what_cannot_be_known() {
    let mut bytes = [0x41, 0x41].repeat(500);
    assert_eq!(boundary(&bytes, 3, &Encapsulation::default()), None);
    bytes.extend([0x42, 0x80, 0x80, 0x41, 0x41, 0x41, 0x41]);
    assert_eq!(boundary(&bytes, 3, &Encapsulation::default()), Some(1003));
}
