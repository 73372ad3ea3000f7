//! Messages that come again at the same place are not read again: what they lead to is the
//! same.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_flow::{
    Consumer, Event, HartId, Image, Since, SpaceId, Totals, Version as CodeVersion,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::pieces;

use super::Decoder;

use crate::{Body, Btype, Config, Evcode, Message, Sync, Version};

const BASE: u64 = 0x1000;

/// All events, or only how many instructions there were.
#[derive(Debug, Default, PartialEq)]
struct Told {
    counts: bool,
    insns: u64,
    events: Vec<Event>,
}

impl Consumer for Told {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.insns += u64::from(run.insns),
            Event::Code(_) if self.counts => return ControlFlow::Continue(()),
            _ => {}
        }
        self.events.push(*event);
        ControlFlow::Continue(())
    }

    fn only_counts(&self) -> bool {
        self.counts
    }

    fn counted(&mut self, _: HartId, counted: Totals) -> ControlFlow<()> {
        self.insns += counted.insns;
        ControlFlow::Continue(())
    }
}

impl Told {
    fn others(&self) -> Vec<Event> {
        let others = self.events.iter().copied();
        others
            .filter(|event| !matches!(event, Event::Run(_) | Event::Code(_)))
            .collect()
    }
}

fn config() -> Config {
    Config::new(Version::V1_0, Xlen::Rv64)
}

fn trace(bodies: &[Body<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for body in bodies {
        Message::new(0, *body).write(&config().layout(), &mut bytes);
    }
    bytes
}

fn decode<'b>(image: &Image, chunks: impl Iterator<Item = &'b [u8]>, counts: bool) -> Told {
    let mut decoder = Decoder::new(config(), image).unwrap();
    let mut told = Told {
        counts,
        ..Told::default()
    };
    for chunk in chunks {
        assert_eq!(decoder.feed(chunk, &mut told), chunk.len());
    }
    decoder.finish(&mut told);
    told
}

/// Decodes whole messages and bytes, which are never known before they are whole; for one
/// who counts, too.
fn same(image: &Image, bodies: &[Body<'_>]) -> Told {
    let bytes = trace(bodies);
    let single = decode(image, bytes.chunks(1), false);
    let whole = decode(image, core::iter::once(&bytes[..]), false);
    assert_eq!(whole, single);
    let mut random = hartrace_testkit::Random::new(3);
    let cut = decode(image, pieces(&bytes, &mut random).into_iter(), false);
    assert_eq!(cut, single);
    let counted = decode(image, core::iter::once(&bytes[..]), true);
    assert_eq!(
        (counted.insns, counted.others()),
        (single.insns, single.others())
    );
    single
}

fn start() -> Body<'static> {
    Body::ProgTraceSync {
        sync: Sync::DEBUG_EXIT,
        icnt: 0,
        faddr: BASE >> 1,
    }
}

fn end(icnt: u64) -> Body<'static> {
    Body::ProgTraceCorrelation {
        evcode: Evcode::DEBUG,
        icnt,
        hist: Some(1),
    }
}

fn jump(icnt: u64, uaddr: u64, hist: u64) -> Body<'static> {
    Body::IndirectBranchHist {
        btype: Btype::Indirect,
        icnt,
        uaddr,
        hist,
    }
}

/// 1000: c.beqz a0, 1006; c.nop; c.nop; 1006: c.nop; c.jr ra.
const LOOP: [u8; 10] = [0x19, 0xc1, 1, 0, 1, 0, 1, 0, 0x82, 0x80];

fn image(code: &[u8]) -> Image {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, code, Isa::RV64GC);
    image
}

#[test]
fn the_same_message_at_the_same_place_leads_the_same_way() {
    let mut bodies = [start()].to_vec();
    let mut insns = 0;
    for n in 0..200 {
        // Both ways, and twice the same address: then U-ADDR is 0.
        let (icnt, hist, more) = if n % 3 == 0 {
            (3, 0b11, 3)
        } else {
            (5, 0b10, 5)
        };
        bodies.push(jump(icnt, 0, hist));
        insns += more;
    }
    bodies.push(end(1));
    let told = same(&image(&LOOP), &bodies);
    assert_eq!((told.insns, told.others().len()), (insns + 1, 2));
}

/// What RepeatBranch repeats is the last message, read or not.
#[test]
fn a_message_that_was_not_read_is_repeated() {
    let mut bodies = [start()].to_vec();
    for count in 1..100 {
        bodies.push(jump(5, 0, 0b10));
        bodies.push(jump(3, 0, 0b11));
        bodies.push(Body::RepeatBranch { count });
    }
    bodies.push(end(1));
    let told = same(&image(&LOOP), &bodies);
    assert_eq!(told.insns, 99 * 8 + 99 * 50 * 3 + 1);
}

/// Outcomes come before the count that they belong to.
#[test]
fn outcomes_without_a_count() {
    // 1000: c.nop; 1002: c.bnez a0, 1000; c.jr ra.
    let code = [1, 0, 0x7d, 0xfd, 0x82, 0x80];
    let mut bodies = [start()].to_vec();
    for n in 0..300 {
        // 31 times round, once or twice; then five times, or not.
        for _ in 0..1 + n % 2 {
            bodies.push(Body::HistFull {
                hist: u64::from(u32::MAX),
            });
        }
        let all = 62 * (1 + n % 2);
        bodies.push(match n % 5 {
            0 => jump(all + 13, 0, 0b111_1110),
            _ => jump(all + 3, 0, 0b10),
        });
    }
    bodies.push(end(1));
    let told = same(&image(&code), &bodies);
    let rounds = 300 * 62 + 150 * 62;
    assert_eq!(told.insns, rounds + 60 * 13 + 240 * 3 + 1);
}

/// The same message without the outcomes that its count includes fits nothing.
#[test]
fn outcomes_that_are_missing() {
    let code = [1, 0, 0x7d, 0xfd, 0x82, 0x80];
    let mut bodies = [start()].to_vec();
    for _ in 0..20 {
        bodies.push(Body::HistFull {
            hist: u64::from(u32::MAX),
        });
        bodies.push(jump(62 + 3, 0, 0b10));
    }
    bodies.push(jump(62 + 3, 0, 0b10));
    // Messages at the very end of the bytes are read in any case.
    bodies.extend([start(), end(1)]);
    let told = same(&image(&code), &bodies);
    let gaps = told.others().into_iter();
    assert_eq!(
        gaps.filter(|event| matches!(event, Event::Gap(_))).count(),
        1
    );
}

/// Addresses far apart, so that messages have more than eight bytes: two that differ behind
/// them only.
#[test]
fn long_messages() {
    // 1000: c.beqz a0, 1008; nop; c.jr ra; 1008: c.nop; c.nop; c.jr ra.
    let code = [
        0x01, 0xc5, 0x13, 0, 0, 0, 0x82, 0x80, 1, 0, 1, 0, 0x82, 0x80,
    ];
    let far = 0x1234_5678_9abc_d000;
    let mut image = image(&code);
    image.add_raw(SpaceId::FIRST, far, &code, Isa::RV64GC);
    let uaddr = (far ^ BASE) >> 1;
    let mut bodies = [start()].to_vec();
    for n in 0..100 {
        let hist = if n % 4 < 2 { 0b11 } else { 0b10 };
        bodies.push(jump(4, uaddr, hist));
    }
    bodies.push(end(1));
    let (one, two) = (trace(&bodies[1..2]), trace(&bodies[3..4]));
    assert!(one[..8] == two[..8] && one != two);
    assert_eq!(same(&image, &bodies).insns, 50 * 4 + 50 * 3 + 1);
}

/// A message says nothing of the code: where that changes, so does what it leads to.
#[test]
fn code_that_changes() {
    // 1000: c.nop; 1002: c.nop, c.nop, or nop; 1006: c.jr ra.
    let mut image = image(&[1, 0, 0, 0, 0, 0, 0x82, 0x80]);
    let first = trace(&[start()]).len() as u64;
    let rounds = 50;
    let laps = vec_of(jump(4, 0, 1), rounds);
    let before = first + trace(&laps).len() as u64;
    let sync = Body::ProgTraceSync {
        sync: Sync::PERIODIC,
        icnt: 0,
        faddr: BASE >> 1,
    };
    let second = before + trace(&[sync]).len() as u64;
    let version = |since, content| CodeVersion {
        hart: None,
        context: None,
        since,
        content,
        doubtful: false,
    };
    let at = Since::Sync {
        offset: second,
        halfwords: 40,
    };
    let versions = [version(Since::Start, 0), version(at, 1)];
    let contents: [&[u8]; 2] = [&[1, 0, 1, 0], &[0x13, 0, 0, 0]];
    image.vary(BASE + 2..BASE + 6, &contents, &versions, Isa::RV64GC);
    let bodies = [
        vec_of(start(), 1),
        laps.clone(),
        vec_of(sync, 1),
        laps,
        vec_of(end(1), 1),
    ];
    let bodies = bodies.concat();
    // The first 10 rounds after the second message are still of the first version.
    let told = same(&image, &bodies);
    assert_eq!(told.insns, 60 * 4 + 40 * 3 + 1);

    // And from the start again.
    let bytes = trace(&bodies);
    let mut decoder = Decoder::new(config(), &image).unwrap();
    let seam = decoder.seam();
    for _ in 0..2 {
        let mut told = Told {
            counts: true,
            ..Told::default()
        };
        decoder.resume(&seam);
        decoder.feed(&bytes, &mut told);
        decoder.finish(&mut told);
        assert_eq!(told.insns, 60 * 4 + 40 * 3 + 1);
    }
}

/// Code that changes again and again, at moments that count from different messages: a way
/// through it is the same for some time only, and earlier it was another one.
#[test]
fn ways_that_are_the_same_for_some_time() {
    const PHASES: usize = 7;
    let version = |since, content| CodeVersion {
        hart: None,
        context: None,
        since,
        content,
        doubtful: false,
    };
    // 1000: c.nop; 1002: c.nop, c.nop, or nop; 1006: c.jr ra.
    let contents: [&[u8]; 2] = [&[1, 0, 1, 0], &[0x13, 0, 0, 0]];
    let sync = Body::ProgTraceSync {
        sync: Sync::PERIODIC,
        icnt: 0,
        faddr: BASE >> 1,
    };
    let mut random = hartrace_testkit::Random::new(11);
    for _ in 0..20 {
        let mut bytes = Vec::new();
        let mut versions = [version(Since::Start, 0)].to_vec();
        let mut seams = Vec::new();
        bytes.extend(trace(&[start()]));
        for phase in 0..PHASES {
            seams.push(bytes.len());
            bytes.extend(trace(&[sync]));
            if phase % 2 == 1 {
                let at = Since::Sync {
                    offset: bytes.len() as u64,
                    halfwords: 4 * random.below(20),
                };
                versions.push(version(at, versions.len() % 2));
            }
            for _ in 0..10 + random.below(40) {
                bytes.extend(trace(&[jump(4, 0, 1)]));
            }
        }
        let mut image = image(&[1, 0, 0, 0, 0, 0, 0x82, 0x80]);
        image.vary(BASE + 2..BASE + 6, &contents, &versions, Isa::RV64GC);
        let whole = |counts, from: usize, decoder: &mut Decoder<'_>| {
            let mut told = Told {
                counts,
                ..Told::default()
            };
            decoder.feed(&bytes[from..], &mut told);
            decoder.finish(&mut told);
            (told.insns, told.others())
        };
        let mut plain = Decoder::new(config(), &image).unwrap();
        let mut counting = Decoder::new(config(), &image).unwrap();
        let all = whole(false, 0, &mut plain);
        assert_eq!(whole(true, 0, &mut counting), all);
        // Back to any place, as often as one likes.
        for _ in 0..10 {
            let from = seams[random.below(seams.len() as u64) as usize];
            plain.restart(0);
            plain.feed(&bytes[..from], &mut Told::default());
            let seam = plain.seam();
            let rest = whole(false, from, &mut plain);
            counting.resume(&seam);
            assert_eq!(whole(true, from, &mut counting), rest);
        }
    }
}

fn vec_of(body: Body<'static>, count: usize) -> Vec<Body<'static>> {
    core::iter::repeat_n(body, count).collect()
}
