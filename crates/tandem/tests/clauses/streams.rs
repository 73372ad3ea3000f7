//! Streams: chunks of any size, ends anywhere, damage of any kind.

use std::time::{Duration, Instant};

use hartrace_tandem::{CONFIRM, Config, Fault, Item, Next, PcForm, Reader, Register};

use hartrace_testkit::Random;

use crate::common::{
    Told, configs, decode_chunks, faults, hex, items, read, read_all, read_chunks, rv32, stream,
    write,
};

/// A trace with everything in it, wrong groups too.
fn mixture(config: &Config, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let all = items(config);
    let mut bytes = Vec::new();
    for _ in 0..20 {
        let count = random.below(5);
        for _ in 0..count {
            all[random.below(all.len() as u64) as usize].write(config, &mut bytes);
        }
        Item::BeginGroup.write(config, &mut bytes);
    }
    bytes
}

/// The same groups and problems, wherever the bytes are cut.
#[test]
fn chunks_make_no_difference() {
    for (seed, config) in (1..).zip(configs()) {
        let (good, _) = match config.pc {
            PcForm::New => stream(&config, seed, 6),
            PcForm::Both => (Vec::new(), Vec::new()),
        };
        for bytes in [good, mixture(&config, seed)] {
            let whole = read(&config, &bytes);
            for cut in 0..bytes.len() {
                let mut reader = Reader::new(config.clone());
                let parts = [&bytes[..cut], &[], &bytes[cut..]];
                assert_eq!(read_all(&mut reader, parts), whole, "cut at {cut}");
            }
            for chunk in 1..20 {
                assert_eq!(
                    read_chunks(&config, &bytes, chunk),
                    whole,
                    "chunks of {chunk}"
                );
            }
        }
    }
}

/// The same of the events, with damage.
#[test]
fn chunks_make_no_difference_to_events() {
    let config = Config::default();
    let mut random = Random::new(3);
    for seed in 1..40 {
        let (mut bytes, _) = stream(&config, seed, 40);
        for _ in 0..seed % 4 {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.draw() as u8;
        }
        let whole = decode_chunks(&config, &bytes, usize::MAX, false);
        for chunk in [1, 2, 7, 18, 33] {
            assert_eq!(decode_chunks(&config, &bytes, chunk, false), whole);
            assert_eq!(decode_chunks(&config, &bytes, chunk, true), whole);
        }
    }
}

/// The trace ends anywhere: all whole groups are given, and what is wrong with
/// the rest is told.
#[test]
fn truncation_at_every_byte() {
    for config in [Config::default(), rv32()] {
        let (bytes, mut starts) = stream(&config, 5, 30);
        starts.push(bytes.len());
        for len in 0..=bytes.len() {
            let told = read(&config, &bytes[..len]);
            let whole = starts.iter().skip(1).filter(|s| **s <= len).count();
            let given = told.iter().filter(|t| matches!(t, Told::Group(_))).count();
            assert_eq!(given, whole, "{len}");
            let ends = starts.contains(&len);
            match (ends, &told[whole..]) {
                (true, []) => {}
                (false, [Told::Problem(problem)]) => {
                    let open = problem.fault == Fault::OpenGroup;
                    assert!(open || problem.fault == Fault::Truncated, "{problem:?}");
                    assert_eq!(problem.group, whole as u64);
                    assert!(problem.at <= len as u64);
                }
                (_, rest) => panic!("{len}: {rest:?}"),
            }
        }
    }
}

/// How many groups of a good trace are missing from what was read, and how
/// many were read that are none.
fn damage(config: &Config, good: &[u8], bad: &[u8]) -> (usize, usize) {
    let bodies = |bytes: &[u8]| {
        let told = read(config, bytes).into_iter();
        let group = |told| match told {
            Told::Group(group) => Some(format!(
                "{:?}{:?}{:?}{:?}",
                group.insn, group.pc, group.changes, group.data
            )),
            _ => None,
        };
        told.filter_map(group).collect::<Vec<_>>()
    };
    let (good, bad) = (bodies(good), bodies(bad));
    let head = good.iter().zip(&bad).take_while(|(a, b)| a == b).count();
    let tails = good[head..].iter().rev().zip(bad[head..].iter().rev());
    let tail = tails.take_while(|(a, b)| a == b).count();
    (good.len() - head - tail, bad.len() - head - tail)
}

/// One bit flipped anywhere: few groups are lost.
#[test]
fn a_flipped_bit() {
    let config = Config::default();
    let (good, _) = stream(&config, 7, 30);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let (lost, wrong) = damage(&config, &good, &bad);
            assert!(
                lost <= CONFIRM + 3 && wrong <= 3,
                "{at}.{bit}: {lost} {wrong}"
            );
        }
    }
}

/// One byte missing, or one too many.
#[test]
fn a_byte_too_few_or_too_many() {
    let config = Config::default();
    let (good, _) = stream(&config, 11, 30);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad.remove(at);
        let (lost, wrong) = damage(&config, &good, &bad);
        assert!(
            lost <= CONFIRM + 3 && wrong <= 3,
            "{at} removed: {lost} {wrong}"
        );
        for byte in [0, 1, 2, 4, 7, 8, 0x11, 0xff] {
            let mut bad = good.clone();
            bad.insert(at, byte);
            let (lost, wrong) = damage(&config, &good, &bad);
            assert!(
                lost <= CONFIRM + 3 && wrong <= 3,
                "{at} {byte}: {lost} {wrong}"
            );
        }
    }
}

/// A stretch missing, or garbage in its place.
#[test]
fn a_stretch_missing_or_overwritten() {
    let config = Config::default();
    let (good, _) = stream(&config, 13, 200);
    let mut random = Random::new(17);
    for _ in 0..100 {
        let len = 1 + random.below(60) as usize;
        let at = random.below((good.len() - len) as u64) as usize;
        let mut bad = good.clone();
        bad.drain(at..at + len);
        let (lost, _) = damage(&config, &good, &bad);
        assert!(lost <= 10 + len / 8, "{at} {len}: {lost}");
        let mut bad = good.clone();
        bad[at..at + len].fill_with(|| random.draw() as u8);
        let (lost, _) = damage(&config, &good, &bad);
        assert!(lost <= 10 + len / 8, "{at} {len}: {lost}");
    }
}

/// Groups are found again among interrupts, resets and times.
#[test]
fn found_among_other_groups() {
    let config = Config::default();
    let mtime = "01 07 08 01 00 00 00 00 00 00 00 02";
    let nop = "01 03 10 01 00 02";
    let text = format!("01 0c {}", format!("{mtime} {nop} ").repeat(6));
    let told = read(&config, &hex(&text));
    assert_eq!(told[..2].iter().filter(|t| t.fault().is_some()).count(), 1);
    assert_eq!(told[1], Told::Resumed(1));
    assert_eq!(told.len(), 2 + 12);
}

/// The end of a trace is not asked for three groups.
#[test]
fn found_at_the_end() {
    let config = Config::default();
    let nop = "01 03 10 01 00 02";
    for count in 0..6 {
        let text = format!("01 0c {}", format!("{nop} ").repeat(count));
        let told = read(&config, &hex(&text));
        let groups = told.iter().filter(|t| matches!(t, Told::Group(_))).count();
        assert_eq!(groups, count);
    }
}

/// The end inside a group is told as that, also where the bytes before it were
/// kept for a search.
#[test]
fn found_and_then_cut() {
    let config = Config::default();
    let nop = "01 03 10 01 00 02";
    let text = format!("01 0c {} 01 03", format!("{nop} ").repeat(3));
    let bytes = hex(&text);
    let mut reader = Reader::new(config);
    let mut told = Vec::new();
    // Asked no more once the bytes are used up: the rest is given at the end.
    for mut chunk in bytes.chunks(5) {
        while !chunk.is_empty() {
            told.push(reader.next(&mut chunk));
        }
    }
    loop {
        match reader.finish() {
            Next::More => break,
            next => told.push(next),
        }
    }
    let Some(Next::Problem(problem)) = told.last() else {
        panic!("{told:?}");
    };
    assert_eq!((problem.fault, problem.at), (Fault::OpenGroup, 22));
}

/// The longest group there may be, and one item more.
#[test]
fn groups_of_many_items() {
    let config = Config {
        max_items: 64,
        ..Config::default()
    };
    let body = |count: u16| {
        let mut items = vec![Item::BeginGroup];
        items.extend((0..count).map(|n| Item::Full(Register::csr(n), 0)));
        items.push(Item::EndGroup);
        write(&config, &items)
    };
    assert_eq!(read(&config, &body(64)).len(), 1);
    assert_eq!(faults(&config, &body(65)), [Fault::LongGroup]);
    // Outside of groups too.
    let outside = body(65)[1..].to_vec();
    assert_eq!(faults(&config, &outside), [Fault::LongGroup]);
    let smaller = Config {
        max_items: 63,
        ..config
    };
    assert!(smaller.validate().is_err());
}

/// Input made to be slow: a bounded time for each byte, whatever the chunks.
#[test]
fn hostile_streams_take_bounded_time() {
    let config = Config::default();
    const LEN: usize = 1 << 15;
    let repeat = |text: &str| -> Vec<u8> {
        let bytes = hex(text);
        bytes.iter().copied().cycle().take(LEN).collect()
    };
    let mut random = Random::new(23);
    let noise: Vec<u8> = (0..LEN).map(|_| random.draw() as u8).collect();
    let low: Vec<u8> = (0..LEN).map(|_| random.below(18) as u8).collect();
    let cases = [
        repeat("01"),
        repeat("00"),
        repeat("ff"),
        repeat("01 11"),
        repeat("01 11 00 00 00 00"),
        repeat("01 0a 0a 0a 0a 0a 0a 0a 0a 0a 0a ff"),
        repeat("08 01 0a 0a 0a 0a 0a 0a 0a 00"),
        repeat("01 0b 08 01 08 01 08 01 08 01 08 00"),
        repeat("04 01 05 01 06 01 05 01 06 01 05"),
        repeat("01 05 01 01 01 06 01 01 01 05"),
        repeat("01 03 10 01 00 01 03 10 01 00 0c"),
        noise,
        low,
    ];
    for bytes in cases {
        for chunk in [usize::MAX, 64] {
            let before = Instant::now();
            let mut reader = Reader::new(config.clone());
            let told = read_all(&mut reader, bytes.chunks(chunk));
            let took = before.elapsed();
            assert!(
                took < Duration::from_secs(20),
                "{:x?} {took:?}",
                &bytes[..12]
            );
            assert!(told.len() <= LEN);
        }
    }
}
