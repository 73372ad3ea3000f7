//! Histories of writes.

use super::*;
use hartrace_flow::{Image, SpaceId, Spot};
use hartrace_isa::Isa;
use hartrace_testkit::Random;

fn write(address: u64, bytes: &[u8], since: Since) -> CodeWrite {
    CodeWrite {
        since,
        ..CodeWrite::constant(address, bytes.to_vec().into())
    }
}

fn at(time: u64, context: u64) -> Spot {
    Spot {
        hart: HartId(0),
        context: Some(Context(context)),
        sync: None,
        time: Some(time),
    }
}

/// The instruction that a history has at an address, and whether it is in doubt.
fn fetch(history: &CodeHistory, pc: u64, spot: &Spot) -> Option<(u32, bool)> {
    let mut image = Image::new();
    history.add_to(&mut image, Isa::RV64GC);
    let sighting = image.sight(SpaceId::FIRST, pc, spot);
    let fetched = image.fetch(sighting.space?, pc)?;
    Some((fetched.bits, sighting.doubtful))
}

const NOP: [u8; 4] = [0x13, 0, 0, 0];
const JUMP: [u8; 4] = [0x6f, 0, 0x80, 0];

#[test]
fn code_that_never_changes_is_one_piece() {
    let code: Vec<u8> = NOP.repeat(8);
    let part = write(0x1008, &NOP, Since::Start);
    let history = make(&[write(0x1000, &code, Since::Start), part], 0).unwrap();
    assert_eq!(history.varying, []);
    assert_eq!(history.pieces.len(), 1);
    assert_eq!(history.pieces[0].bytes, code);
}

/// Random writes of random lengths, at random moments, of random contexts, are compared
/// with a memory that is read byte by byte.
#[test]
fn every_byte_is_the_one_that_was_written_last() {
    let mut random = Random::new(5);
    for _ in 0..60 {
        let mut writes = Vec::new();
        for n in 0..1 + random.below(12) {
            let len = 2 * (1 + random.below(12));
            // Instructions of two and of four bytes.
            let bytes: Vec<u8> = (0..len)
                .map(|at| match at % 2 {
                    0 => [0x01, 0x13][random.below(2) as usize],
                    _ => random.below(4) as u8,
                })
                .collect();
            let since = match random.below(3) {
                0 => Since::Start,
                _ => Since::Time(10 * random.below(6)),
            };
            let since = if n == 0 { Since::Start } else { since };
            writes.push(CodeWrite {
                context: (random.below(3) == 0).then(|| Context(random.below(2))),
                ..write(0x1000 + 2 * random.below(16), &bytes, since)
            });
        }
        let history = make(&writes, 0).unwrap();
        let mut image = Image::new();
        history.add_to(&mut image, Isa::RV64GC);
        let mut order: Vec<&CodeWrite> = writes.iter().collect();
        order.sort_by_key(|write| write.since);
        for (time, context) in (0..7).flat_map(|t| (0..3).map(move |c| (10 * t, c))) {
            let spot = at(time, context);
            let mut memory = [None; 80];
            for write in &order {
                let seen = write.context.is_none_or(|own| own == Context(context));
                if seen && spot.time >= write.since_time() {
                    let bytes = match &write.what {
                        Written::Bytes(bytes) => bytes.get(),
                        _ => &[],
                    };
                    for (n, byte) in bytes.iter().enumerate() {
                        memory[(write.address - 0x1000) as usize + n] = Some(*byte);
                    }
                }
            }
            for slot in (0..60).step_by(2) {
                let pc = 0x1000 + slot as u64;
                let half = |at: usize| Some(u16::from_le_bytes([memory[at]?, memory[at + 1]?]));
                let truth = half(slot).and_then(|low| match low & 3 {
                    3 => Some(u32::from(low) | u32::from(half(slot + 2)?) << 16),
                    _ => Some(low.into()),
                });
                let space = image.space_at(SpaceId::FIRST, pc, &spot);
                let found = space.and_then(|space| image.fetch(space, pc));
                assert_eq!(
                    found.map(|f| f.bits),
                    truth,
                    "{pc:#x} at {spot:?}: {writes:?}"
                );
            }
        }
    }
}

impl CodeWrite {
    fn since_time(&self) -> Option<u64> {
        match self.since {
            Since::Time(time) => Some(time),
            _ => Some(0),
        }
    }
}

#[test]
fn what_was_there_before_is_checked() {
    let code = write(0x1000, &NOP.repeat(4), Since::Start);
    let patch = |was: &[u8], certain| CodeWrite {
        was: Some(Was {
            bytes: was.to_vec().into(),
            certain,
        }),
        ..write(0x1004, &JUMP, Since::Time(50))
    };
    assert!(make(&[code.clone(), patch(&NOP, true)], 0).is_ok());
    let error = make(&[code.clone(), patch(&[0x13, 0, 1, 0], true)], 0).unwrap_err();
    let words = "the code at 0x1006 was 0000, not 0100";
    assert_eq!(error.to_string(), words);
    assert!(matches!(error, MakeError::Mismatch { write: 1, .. }));
    // One that nobody vouches for leaves the code before it in doubt.
    let history = make(&[code, patch(&[0x93, 0, 0, 0], false)], 0).unwrap();
    assert_eq!(fetch(&history, 0x1004, &at(10, 0)), Some((0x93, true)));
    assert_eq!(
        fetch(&history, 0x1004, &at(50, 0)),
        Some((0x0080_006f, false))
    );
    assert_eq!(fetch(&history, 0x1008, &at(10, 0)), Some((0x13, false)));
}

#[test]
fn code_that_may_have_changed_is_in_doubt() {
    let code = write(0x1000, &NOP.repeat(4), Since::Start);
    let unsure = CodeWrite {
        what: Written::Unsure(4),
        ..write(0x1004, &[], Since::Start)
    };
    let patch = write(0x1004, &JUMP, Since::Time(50));
    let history = make(&[code.clone(), unsure, patch.clone()], 0).unwrap();
    assert_eq!(fetch(&history, 0x1000, &at(10, 0)), Some((0x13, false)));
    assert_eq!(fetch(&history, 0x1004, &at(10, 0)), Some((0x13, true)));
    assert_eq!(
        fetch(&history, 0x1004, &at(50, 0)),
        Some((0x0080_006f, false))
    );
    // And so is what changed at a time that is not known exactly.
    let history = make(&[code, patch], 5).unwrap();
    for (time, bits, doubtful) in [
        (44, 0x13, false),
        (45, 0x13, true),
        (50, 0x0080_006f, true),
        (55, 0x0080_006f, false),
    ] {
        let found = fetch(&history, 0x1004, &at(time, 0));
        assert_eq!(found, Some((bits, doubtful)), "{time}");
    }
}

#[test]
fn code_may_go_away() {
    let gone = CodeWrite {
        what: Written::Gone(8),
        ..write(0x1000, &[], Since::Time(9))
    };
    let history = make(&[write(0x1000, &NOP.repeat(4), Since::Start), gone], 0).unwrap();
    assert_eq!(fetch(&history, 0x1004, &at(8, 0)), Some((0x13, false)));
    assert_eq!(fetch(&history, 0x1004, &at(9, 0)), None);
    assert_eq!(fetch(&history, 0x1008, &at(9, 0)), Some((0x13, false)));
}

#[test]
fn times_and_messages_have_no_order() {
    let message = Since::Sync {
        offset: 7,
        halfwords: 0,
    };
    let writes = [
        write(0x1000, &NOP, Since::Start),
        write(0x1000, &JUMP, message),
        write(0x1000, &NOP, Since::Time(5)),
    ];
    assert!(matches!(make(&writes, 0), Err(MakeError::Mixed { .. })));
}

/// Many large writes over each other end with an error, not with all the memory.
#[test]
fn too_much_is_refused() {
    let writes = |differ: bool| -> Vec<CodeWrite> {
        let one = |n: u64| {
            let mut bytes = vec![1; 1000];
            bytes[8] += u8::from(differ) * n as u8;
            write(0x1000, &bytes, Since::Time(n))
        };
        (0..100).map(one).collect()
    };
    assert!(make_within(&writes(false), 0, 50_000).is_ok(), "all alike");
    let refused = make_within(&writes(true), 0, 50_000);
    assert_eq!(refused, Err(MakeError::TooMuch));
}

#[test]
fn a_change_of_no_bytes_changes_nothing() {
    let change = |address, what, time| CodeWrite {
        address,
        what,
        since: Since::Time(time),
        ..CodeWrite::constant(0, Vec::new().into())
    };
    let gone = change(0x2008, Written::Gone(1 << 40), 9);
    let code = write(0x2000, &NOP.repeat(4), Since::Start);
    let plain = make(&[gone.clone(), code.clone()], 0).unwrap();
    for what in [Written::Unsure(0), Written::Gone(0)] {
        for address in [0x2000, 0x2002, 0x2008, 0x200_8196] {
            let empty = change(address, what.clone(), 108);
            let history = make(&[empty, gone.clone(), code.clone()], 0).unwrap();
            assert_eq!(history, plain, "{address:#x} {what:?}");
        }
    }
}
