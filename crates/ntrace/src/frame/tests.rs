use alloc::vec;

use super::*;
use crate::Layout;
use crate::testing::{RandomMessages as _, written};
use hartrace_testkit::Random;

/// A piece that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Message(Vec<u8>),
    Idle(u64),
    Bad(Fault, u64),
}

/// All pieces of a stream given in chunks; idle stretches are put together.
fn pieces<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(u64, Owned)> {
    let mut framer = Framer::new();
    let mut all: Vec<(u64, Owned)> = Vec::new();
    let mut total = 0;
    for mut chunk in chunks {
        total += chunk.len() as u64;
        while let Some((at, piece)) = framer.next_piece(&mut chunk) {
            match (piece, all.last_mut()) {
                (Piece::Idle(n), Some((_, Owned::Idle(sum)))) => *sum += n,
                (Piece::Idle(n), _) => all.push((at, Owned::Idle(n))),
                (Piece::Message(bytes), _) => all.push((at, Owned::Message(bytes.to_vec()))),
                (Piece::Bad(fault, n), _) => all.push((at, Owned::Bad(fault, n))),
            }
        }
        assert!(chunk.is_empty());
        assert_eq!(framer.position(), total);
    }
    let inside = framer.is_inside();
    let rest = framer.finish();
    assert_eq!(inside, rest.is_some());
    if let Some((at, Piece::Bad(fault, n))) = rest {
        all.push((at, Owned::Bad(fault, n)));
    }
    assert!(!framer.is_inside());
    assert_eq!(framer.finish(), None);
    // Every byte is in one piece.
    let mut next = 0;
    for (at, piece) in &all {
        assert_eq!(*at, next);
        next += match piece {
            Owned::Message(bytes) => bytes.len() as u64,
            Owned::Idle(n) | Owned::Bad(_, n) => *n,
        };
    }
    assert_eq!(next, total);
    all
}

fn whole(bytes: &[u8]) -> Vec<Owned> {
    pieces([bytes]).into_iter().map(|p| p.1).collect()
}

#[test]
fn table_6_with_idle_on_both_sides() {
    let message = [0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff];
    let mut stream = vec![0xff];
    stream.extend(message);
    stream.push(0xff);
    assert_eq!(
        pieces([&stream[..]]),
        [
            (0, Owned::Idle(1)),
            (1, Owned::Message(message.to_vec())),
            (7, Owned::Idle(1)),
        ],
        "the first 0xff behind 0xf8 is the message's last byte"
    );
}

#[test]
fn mseo_rules() {
    let good = Owned::Message(vec![0x0c, 0x07]);
    // 10 is reserved: everything to the next end is lost.
    for bytes in [[0x0c, 0x02, 0x07], [0x0e, 0x04, 0x07], [0x0c, 0x01, 0x02]] {
        let mut stream = bytes.to_vec();
        stream.extend([0x0b, 0x0c, 0x07]);
        let bad = if bytes[2] & 3 == 3 { 3 } else { 4 };
        let mut expected = vec![Owned::Bad(Fault::ReservedMseo, bad)];
        if bad == 3 {
            expected.push(Owned::Bad(Fault::StrayEnd, 1));
        }
        expected.push(good.clone());
        assert_eq!(whole(&stream), expected);
    }
    // 01 behind 11, and at the start.
    assert_eq!(
        whole(&[0x0c, 0x07, 0x05, 0x0c, 0x07, 0x0c, 0x07]),
        [good.clone(), Owned::Bad(Fault::StrayField, 3), good.clone()]
    );
    assert_eq!(
        whole(&[0x05, 0x03, 0x0c, 0x07]),
        [Owned::Bad(Fault::StrayField, 2), good.clone()]
    );
    // 11 behind 11 that is not idle; each on its own.
    assert_eq!(
        whole(&[0x0c, 0x07, 0x03, 0xfb, 0xff, 0x0c, 0x07]),
        [
            good.clone(),
            Owned::Bad(Fault::StrayEnd, 1),
            Owned::Bad(Fault::StrayEnd, 1),
            Owned::Idle(1),
            good.clone()
        ]
    );
    // Of two 0xff behind a field the first ends the message.
    assert_eq!(
        whole(&[0x0c, 0xfc, 0xff, 0xff]),
        [Owned::Message(vec![0x0c, 0xfc, 0xff]), Owned::Idle(1)]
    );
    // Fields may end one after the other.
    assert_eq!(
        whole(&[0x10, 0x05, 0x05, 0x07]),
        [Owned::Message(vec![0x10, 0x05, 0x05, 0x07])]
    );
}

#[test]
fn the_end_of_the_stream() {
    assert_eq!(whole(&[]), []);
    assert_eq!(whole(&[0xff; 9]), [Owned::Idle(9)]);
    assert_eq!(whole(&[0x0c]), [Owned::Bad(Fault::Truncated, 1)]);
    assert_eq!(
        whole(&[0x0c, 0x07, 0x10, 0x05]),
        [
            Owned::Message(vec![0x0c, 0x07]),
            Owned::Bad(Fault::Truncated, 2)
        ]
    );
    assert_eq!(whole(&[0x0c, 0x02]), [Owned::Bad(Fault::ReservedMseo, 2)]);
    assert_eq!(whole(&[0x05]), [Owned::Bad(Fault::StrayField, 1)]);
}

#[test]
fn the_longest_message_and_one_byte_more() {
    for len in MAX_MESSAGE - 2..MAX_MESSAGE + 3 {
        let mut stream = vec![0; len];
        stream[len - 1] = 0x03;
        stream.extend([0x0c, 0x07]);
        let first = if len <= MAX_MESSAGE {
            Owned::Message(stream[..len].to_vec())
        } else {
            Owned::Bad(Fault::Oversize, len as u64)
        };
        let expected = [first, Owned::Message(vec![0x0c, 0x07])];
        assert_eq!(whole(&stream), expected);
        assert_eq!(
            pieces(stream.chunks(1))
                .into_iter()
                .map(|p| p.1)
                .collect::<Vec<_>>(),
            expected
        );
    }
}

#[test]
fn erased_memory() {
    let zeros = vec![0; 1 << 20];
    assert_eq!(whole(&zeros), [Owned::Bad(Fault::Oversize, 1 << 20)]);
    let mut framer = Framer::new();
    let mut bytes = &zeros[..];
    assert_eq!(framer.next_piece(&mut bytes), None);
    assert!(framer.held.capacity() <= 2 * MAX_MESSAGE, "bounded");
    let mut bytes: &[u8] = &[0xff, 0x0c, 0x07];
    assert_eq!(
        framer.next_piece(&mut bytes),
        Some((0, Piece::Bad(Fault::Oversize, (1 << 20) + 1)))
    );
    assert_eq!(
        framer.next_piece(&mut bytes),
        Some(((1 << 20) + 1, Piece::Message(&[0x0c, 0x07])))
    );
}

#[test]
fn offsets_start_where_they_are_told() {
    let mut framer = Framer::new().at(100);
    let mut bytes: &[u8] = &[0xff, 0x0c];
    assert_eq!(framer.next_piece(&mut bytes), Some((100, Piece::Idle(1))));
    assert_eq!(framer.next_piece(&mut bytes), None);
    let mut bytes: &[u8] = &[0x07];
    assert_eq!(
        framer.next_piece(&mut bytes),
        Some((101, Piece::Message(&[0x0c, 0x07])))
    );
    assert_eq!(framer.position(), 103);
}

/// Messages, idle bytes and damage.
fn stream(random: &mut Random, len: usize) -> Vec<u8> {
    let layout = Layout::default();
    let mut bytes = Vec::new();
    while bytes.len() < len {
        match random.below(12) {
            0 => bytes.extend(vec![IDLE; random.below(5) as usize]),
            1 => bytes.push(random.draw() as u8),
            2 if random.below(20) == 0 => bytes.extend([0; 300]),
            _ => bytes.extend(written(&random.message(&layout), &layout)),
        }
    }
    bytes
}

#[test]
fn chunks_do_not_matter() {
    let mut random = Random::new(3);
    let bytes = stream(&mut random, 2000);
    let once = pieces([&bytes[..]]);
    for at in 0..=bytes.len() {
        let (a, b) = bytes.split_at(at);
        assert_eq!(pieces([a, b]), once, "cut at {at}");
    }
    for size in 1..300 {
        assert_eq!(pieces(bytes.chunks(size)), once, "chunks of {size}");
    }
    for _ in 0..200 {
        let bytes = stream(&mut random, 1000);
        let once = pieces([&bytes[..]]);
        let mut chunks = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(random.below(40).min(rest.len() as u64) as usize);
            chunks.push(head);
            rest = tail;
        }
        assert_eq!(pieces(chunks), once);
    }
}

#[test]
fn any_bytes_in_any_chunks() {
    let mut random = Random::new(11);
    for _ in 0..500 {
        let bytes = random.bytes(300);
        assert_eq!(pieces(bytes.chunks(7)), pieces([&bytes[..]]));
        assert_eq!(pieces(bytes.chunks(1)), pieces([&bytes[..]]));
    }
}
