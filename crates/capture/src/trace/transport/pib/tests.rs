use super::super::testing::message;
use super::*;
use crate::trace::{Order, PibWidth};
use hartrace_flow::decode::Framing as _;
use hartrace_ntrace::{Body, Framer, Layout, Message, Piece, Sync};
use hartrace_testkit::Random;

const WIDTHS: [PibWidth; 5] = [
    PibWidth::One,
    PibWidth::Two,
    PibWidth::Four,
    PibWidth::Eight,
    PibWidth::Sixteen,
];
const NARROW: [PibWidth; 3] = [PibWidth::One, PibWidth::Two, PibWidth::Four];
const ORDERS: [Order; 3] = [Order::Plain, Order::Swapped16, Order::Swapped32];

/// Every way to pack samples.
fn packings() -> impl Iterator<Item = Pib> {
    WIDTHS.into_iter().flat_map(|width| {
        [false, true].into_iter().flat_map(move |high_first| {
            ORDERS.map(|order| Pib {
                width,
                high_first,
                order,
            })
        })
    })
}

fn read<'a>(pib: Pib, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut reader = PibReader::new(pib);
    let mut out = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, &mut |b| out.push(b));
    }
    reader.finish(&mut |b| out.push(b));
    out
}

/// The messages in bytes, and how many pieces are damaged.
fn framed(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let (mut framer, mut rest) = (Framer::new(), bytes);
    let (mut good, mut bad) = (Vec::new(), 0);
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        match piece {
            Piece::Message(bytes) => good.push(bytes.to_vec()),
            Piece::Bad(..) => bad += 1,
            Piece::Idle(_) => {}
        }
    }
    bad += usize::from(framer.finish().is_some());
    (good, bad)
}

fn messages(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    (0..count).map(|_| message(&mut random)).collect()
}

fn sent(pib: Pib, gap: u32, every: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = PibWriter::new(pib, gap, every);
    messages.iter().for_each(|m| writer.message(m));
    writer.finish()
}

#[test]
fn the_four_sequences_of_3_4() {
    // Two messages on one pin with 0, 2, 3 and 8 idle bits between them.
    let first = [0x0cu8, 0x07];
    let second = [0x10u8, 0x05, 0x0f];
    for gap in [0, 2, 3, 8] {
        let mut bits: Vec<u8> = Vec::new();
        let put = |bits: &mut Vec<u8>, byte: u8| bits.extend((0..8).map(|i| byte >> i & 1));
        first.iter().for_each(|&b| put(&mut bits, b));
        bits.extend(vec![1; gap]);
        second.iter().for_each(|&b| put(&mut bits, b));
        bits.resize(bits.len().next_multiple_of(8), 1);
        let packed: Vec<u8> = bits
            .chunks(8)
            .map(|c| c.iter().rev().fold(0, |byte, bit| byte << 1 | bit))
            .collect();
        let out = read(Pib::new(PibWidth::One), [&packed[..]]);
        assert_eq!(out, [0x0c, 0x07, 0x10, 0x05, 0x0f], "{gap} bits");
    }
}

#[test]
fn sixteen_pins_have_the_first_byte_on_the_low_half() {
    let mut writer = PibWriter::new(Pib::new(PibWidth::Sixteen), 1, 0);
    writer.message(&[0x10, 0x05, 0x0f]);
    writer.idle(1);
    let bytes = writer.finish();
    assert_eq!(bytes, [0xff, 0xff, 0x10, 0x05, 0x0f, 0xff, 0xff, 0xff]);
    let swapped = Pib {
        order: Order::Swapped16,
        ..Pib::new(PibWidth::Sixteen)
    };
    assert_eq!(
        read(swapped, [&[0x05, 0x10, 0xff, 0x0f][..]]),
        [0x10, 0x05, 0x0f, 0xff]
    );
}

#[test]
fn nibbles_in_both_orders() {
    let low = Pib::new(PibWidth::Four);
    let high = Pib {
        high_first: true,
        ..low
    };
    assert_eq!(sent(low, 0, 0, &[vec![0x0c, 0x17]]), [0x0c, 0x17]);
    assert_eq!(sent(high, 0, 0, &[vec![0x0c, 0x17]]), [0xc0, 0x71]);
    assert_eq!(sent(low, 1, 0, &[vec![0x0c, 0x17]]), [0xcf, 0x70, 0xf1]);
}

#[test]
fn every_gap_and_packing_comes_back() {
    let all = messages(5, 40);
    let plain: Vec<u8> = all.concat();
    for pib in packings() {
        for gap in 0..=40 {
            for every in [0, 1, 7] {
                let samples = sent(pib, gap, every, &all);
                let out = read(pib, [&samples[..]]);
                assert_eq!(framed(&out), (all.clone(), 0), "{pib:?} gap {gap}");
                if pib.width.bits() < 8 {
                    assert_eq!(out, plain, "idle samples are dropped");
                }
            }
        }
    }
}

#[test]
fn mixed_gaps_come_back() {
    let mut random = Random::new(9);
    for pib in packings() {
        let all = messages(random.draw(), 60);
        let mut writer = PibWriter::new(pib, 0, 0);
        for message in &all {
            writer.idle(random.below(20) as u32);
            writer.message(message);
        }
        let samples = writer.finish();
        assert_eq!(framed(&read(pib, [&samples[..]])), (all, 0), "{pib:?}");
    }
}

/// A stream that starts at any byte in any phase: but for the messages up to
/// the next gap and those that prove it, all come out.
#[test]
fn a_stream_that_starts_anywhere() {
    let all = messages(21, 80);
    for width in NARROW {
        let pib = Pib::new(width);
        for (gap, every, lost) in [(0, 4, 14), (20, 0, 3), (3, 1, 8)] {
            for skip in 0..120 {
                let mut writer = PibWriter::new(pib, gap, every);
                writer.idle(skip as u32 % 8);
                all.iter().for_each(|m| writer.message(m));
                let samples = writer.finish();
                let (good, _) = framed(&read(pib, [&samples[skip..]]));
                let pairs = good.iter().rev().zip(all.iter().rev());
                let same = pairs.take_while(|(a, b)| a == b).count();
                assert!(
                    same + lost + skip / 4 >= all.len(),
                    "{width:?} gap {gap} every {every} skip {skip}: {same}"
                );
            }
        }
    }
}

#[test]
fn damage_is_told_and_read_over() {
    for width in NARROW {
        let pib = Pib::new(width);
        let all = messages(33, 60);
        let samples = sent(pib, 0, 1, &all);
        for at in 40..samples.len() - 40 {
            let mut hurt = samples.clone();
            // A byte of samples is lost in the middle.
            hurt.remove(at);
            let (good, _) = framed(&read(pib, [&hurt[..]]));
            // Most of what was sent is still there, and the end of it.
            let last = &all[all.len() - 5..];
            if at < samples.len() / 2 {
                assert!(good.ends_with(last), "{width:?} {at}");
            }
        }
    }
}

#[test]
fn lost_alignment_is_a_damaged_message() {
    let pib = Pib::new(PibWidth::Four);
    let sync = Message::new(
        0,
        Body::ProgTraceSync {
            sync: Sync::RESET,
            icnt: 0,
            faddr: 0x4000_0000,
        },
    );
    let mut good = Vec::new();
    sync.write(&Layout::default(), &mut good);
    let mut bytes = vec![IDLE; 2];
    bytes.extend(&good);
    // MSEO = 10 in the middle of a message.
    bytes.extend([0x0c, 0x02, 0x0f]);
    bytes.extend([IDLE; 2]);
    bytes.extend(&good);
    let out = read(pib, [&bytes[..]]);
    assert_eq!(framed(&out), (vec![good.clone(), good], 1));
}

#[test]
fn chunks_do_not_matter() {
    let mut random = Random::new(17);
    for pib in packings() {
        let mut samples = sent(pib, 3, 5, &messages(41, 30));
        for _ in 0..10 {
            let at = random.below(samples.len() as u64) as usize;
            samples[at] ^= random.draw() as u8;
        }
        let once = read(pib, [&samples[..]]);
        for size in 1..9 {
            assert_eq!(read(pib, samples.chunks(size)), once, "{pib:?}");
        }
        for at in 0..samples.len() {
            let (a, b) = samples.split_at(at);
            assert_eq!(read(pib, [a, b]), once, "{pib:?}");
        }
    }
}

#[test]
fn any_samples_give_bounded_bytes() {
    let mut random = Random::new(23);
    for pib in packings() {
        for fill in [0x00, 0xff, 0xaa, 0x55, 0xfe, 0x80, 0xcc] {
            let out = read(pib, [&[fill; 3000][..]]);
            assert!(out.len() <= 3 * 3000, "{pib:?} {fill:#x}");
        }
        for _ in 0..20 {
            let bytes = random.bytes(2000);
            let out = read(pib, bytes.chunks(13));
            assert!(out.len() <= 3 * bytes.len());
        }
    }
    // Nothing is held for long.
    let mut reader = PibReader::new(Pib::new(PibWidth::Two));
    reader.feed(&[0x0c; 100_000], &mut |_| {});
    assert!(reader.held.len() <= PROOF as usize * MAX_MESSAGE);
}
