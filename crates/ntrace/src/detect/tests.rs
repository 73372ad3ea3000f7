use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::{Btype, IDLE};
use hartrace_testkit::Random;

/// What a trace looks like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    mode: TraceMode,
    src_bits: u8,
    sources: u16,
    stamps: bool,
    base: u64,
    /// Sync every so many messages of a source.
    period: u64,
}

const SHAPE: Shape = Shape {
    mode: TraceMode::Htm,
    src_bits: 0,
    sources: 1,
    stamps: false,
    base: 0x8000_0000,
    period: 50,
};

/// Messages as an encoder might send them.
fn stream(shape: Shape, count: u64, random: &mut Random) -> Vec<u8> {
    let layout = Layout {
        src_bits: shape.src_bits,
        ..Layout::default()
    };
    let mut bytes = Vec::new();
    let mut sent = vec![0u64; usize::from(shape.sources)];
    for i in 0..count {
        let src = if i < u64::from(shape.sources) {
            i
        } else {
            random.below(u64::from(shape.sources))
        };
        let number = &mut sent[src as usize];
        let body = body(shape, *number, random);
        *number += 1;
        let message = Message {
            src: src as u16,
            body,
            tstamp: shape.stamps.then(|| random.bits(12)),
        };
        message.write(&layout, &mut bytes);
        if random.below(10) == 0 {
            bytes.push(IDLE);
        }
    }
    for src in 0..shape.sources {
        let body = Body::ProgTraceCorrelation {
            evcode: Evcode::DEBUG,
            icnt: random.below(90),
            hist: (shape.mode == TraceMode::Htm).then_some(5),
        };
        let message = Message {
            src,
            body,
            tstamp: shape.stamps.then_some(3),
        };
        message.write(&layout, &mut bytes);
    }
    bytes
}

fn body(shape: Shape, number: u64, random: &mut Random) -> Body<'static> {
    let faddr = (shape.base + random.below(1 << 20)) >> 1;
    let uaddr = random.bits(18);
    let icnt = 1 + random.below(200);
    let hist = random.bits(31) | 0x10;
    let (sync, first) = if number == 0 {
        (Sync::DEBUG_EXIT, true)
    } else {
        (Sync::PERIODIC, false)
    };
    let btype = Btype::Indirect;
    if number.is_multiple_of(shape.period) {
        return match shape.mode {
            TraceMode::Htm if !first => Body::IndirectBranchHistSync {
                sync,
                btype,
                icnt,
                faddr,
                hist,
            },
            _ => Body::ProgTraceSync {
                sync,
                icnt: if first { 0 } else { icnt },
                faddr,
            },
        };
    }
    match (shape.mode, random.below(10)) {
        (TraceMode::Btm, 0..7) => Body::DirectBranch { icnt },
        (TraceMode::Btm, _) => Body::IndirectBranch { btype, icnt, uaddr },
        (TraceMode::Htm, 0..5) => Body::IndirectBranchHist {
            btype,
            icnt,
            uaddr,
            hist,
        },
        (TraceMode::Htm, 5..8) => Body::HistFull { hist },
        (TraceMode::Htm, _) => Body::IndirectBranch { btype, icnt, uaddr },
    }
}

#[test]
fn settings_are_found() {
    let mut random = Random::new(2);
    for mode in [TraceMode::Btm, TraceMode::Htm] {
        for src_bits in 0..=12u8 {
            for stamps in [false, true] {
                let most = if src_bits == 0 {
                    1
                } else {
                    3.min(1 << src_bits)
                };
                for sources in 1..=most {
                    let shape = Shape {
                        mode,
                        src_bits,
                        sources,
                        stamps,
                        ..SHAPE
                    };
                    let bytes = stream(shape, 600, &mut random);
                    let guess = guess(&bytes).unwrap_or_else(|| panic!("{shape:?}"));
                    assert_eq!(guess.mode, Some(mode), "{shape:?}");
                    assert_eq!(guess.timestamps, stamps, "{shape:?}");
                    assert_eq!(guess.xlen, None);
                    // One source that is always 0 leaves the width open.
                    if sources > 1 || src_bits == 0 {
                        assert_eq!(guess.src_bits, src_bits, "{shape:?} {guess}");
                        assert_eq!(guess.sources, u32::from(sources));
                        assert_eq!(guess.damaged, 0);
                    }
                }
            }
        }
    }
}

#[test]
fn high_addresses_are_wide() {
    let mut random = Random::new(4);
    let shape = Shape {
        base: 0xffff_ffff_8000_0000,
        ..SHAPE
    };
    let bytes = stream(shape, 300, &mut random);
    assert_eq!(guess(&bytes).unwrap().xlen, Some(Xlen::Rv64));
}

/// A buffer that wrapped: the first full address comes late, and where the
/// hart is on its way. With a bit of `SRC` few of these messages look odd.
#[test]
fn cut_off_in_front() {
    let mut bytes = Vec::new();
    let mut send = |body| {
        let message = Message {
            src: 0,
            body,
            tstamp: None,
        };
        message.write(&Layout::default(), &mut bytes);
    };
    let btype = Btype::Indirect;
    for i in 0..1000u64 {
        send(Body::IndirectBranchHist {
            btype,
            icnt: 8,
            uaddr: i,
            hist: 6,
        });
        if i % 80 == 0 {
            send(Body::HistFull { hist: 0xd555_5555 });
        }
        if i % 200 == 100 {
            send(Body::IndirectBranchHistSync {
                sync: Sync(2),
                btype,
                icnt: 1,
                faddr: 0x4000_0000 + i,
                hist: 5,
            });
        }
    }
    let found = guess(&bytes[3..]).unwrap();
    assert_eq!((found.src_bits, found.syncs, found.sources), (0, 5, 1));
}

#[test]
fn short_and_cut_and_hurt_traces() {
    let mut random = Random::new(6);
    let bytes = stream(SHAPE, 1, &mut random);
    let short = guess(&bytes).unwrap();
    assert_eq!((short.messages, short.score), (2, 100));
    let bytes = stream(SHAPE, 2000, &mut random);
    for cut in 0..40 {
        let guess = guess(&bytes[cut..bytes.len() - cut]).unwrap();
        assert_eq!((guess.src_bits, guess.mode), (0, Some(TraceMode::Htm)));
    }
    let mut hurt = bytes.clone();
    for _ in 0..8 {
        let at = random.below(hurt.len() as u64) as usize;
        hurt[at] ^= 1 << random.below(8);
    }
    let found = guess(&hurt).unwrap();
    assert_eq!(found.src_bits, 0);
    let text = found.to_string();
    assert!(
        text.contains("branch history (HTM), no timestamps"),
        "{text}"
    );
}

#[test]
fn other_things_are_not_n_trace() {
    let mut random = Random::new(8);
    for len in [0, 1, 2, 10, 100, 1000, 100_000] {
        assert_eq!(guess(&vec![0; len]), None, "zeros");
        assert_eq!(guess(&vec![IDLE; len]), None, "idle");
        assert_eq!(guess(&vec![0x55; len]), None);
    }
    for _ in 0..300 {
        let len = 20 + random.below(600) as usize;
        assert_eq!(guess(&random.bytes(len)), None, "random bytes");
    }
    assert_eq!(guess(&random.bytes(1 << 16)), None);
    let text = include_str!("../detect.rs");
    for (i, _) in text.char_indices().step_by(37) {
        assert_eq!(guess(&text.as_bytes()[i..]), None, "text from {i}");
    }
    for line in text.lines() {
        assert_eq!(guess(line.as_bytes()), None, "{line}");
    }
    let log: alloc::string::String = (0..2000u64)
        .map(|i| {
            alloc::format!(
                "core   0: 0x{:016x} (0x{:08x})\n",
                0x8000_0000 + i * 4,
                i * 77
            )
        })
        .collect();
    assert_eq!(guess(log.as_bytes()), None, "a log");
    // A program: its header and some code.
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
    elf.extend([0; 8]);
    elf.extend([2, 0, 0xf3, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0x40]);
    elf.resize(0x1000, 0);
    for i in 0..4000u32 {
        let instruction = [0x0000_0513, 0x00a5_8593, 0xfe05_0ee3, 0x0000_8067][i as usize % 4];
        elf.extend((instruction ^ (i & 7) << 20).to_le_bytes());
    }
    assert_eq!(guess(&elf), None, "a program");
}
