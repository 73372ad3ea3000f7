//! The same events at any number of threads and any length of pieces.

use super::*;
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::{Isa, Xlen};
use hartrace_ntrace::{
    Body, Btype, Config, Decoder, ImplicitReturn, Message, Owner, Process, Sync, Timestamps,
    Version,
};
use hartrace_testkit::Random;
use std::sync::Mutex;

/// Keeps everything; full after so many events.
pub(crate) struct Keep {
    pub(crate) events: Vec<(HartId, Event)>,
    pub(crate) room: usize,
}

impl Consumer for Keep {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.events.push((hart, *event));
        ControlFlow::Continue(())
    }
}

impl Gather for Keep {
    fn is_full(&self) -> bool {
        self.events.len() >= self.room
    }
}

/// loop: c.nop; c.bnez a0, loop; c.jr a1
const CODE: [u8; 6] = [0x01, 0x00, 0x7d, 0xfd, 0x82, 0x85];

fn image() -> Image {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &CODE, Isa::RV64GC);
    image
}

/// Two harts that go round that loop.
fn stream(config: &Config, seed: u64, messages: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    let mut time = [0u64; 2];
    for n in 0..messages {
        let src = if n < 6 { n & 1 } else { random.below(2) } as u16;
        let now = &mut time[usize::from(src)];
        let step = random.below(40);
        *now += step;
        let sync = n < 6 || random.below(20) == 0;
        let (count, faddr) = (random.below(12), 0x1000 >> 1);
        let hist = (1 << count | ((1 << count) - 1)) << 1;
        let icnt = (count + 1) * 2 + 1;
        let body = if sync && n < 6 {
            let sync = Sync::DEBUG_EXIT;
            Body::ProgTraceSync {
                sync,
                icnt: 0,
                faddr,
            }
        } else if sync {
            let (sync, btype) = (Sync::PERIODIC, Btype::Indirect);
            Body::IndirectBranchHistSync {
                sync,
                btype,
                icnt,
                faddr,
                hist,
            }
        } else {
            let btype = Btype::Indirect;
            Body::IndirectBranchHist {
                btype,
                icnt,
                uaddr: 0,
                hist,
            }
        };
        let stamp = if sync { *now & 0xffff } else { step };
        let tstamp = config.timestamps.map(|_| stamp);
        let message = Message { src, body, tstamp };
        message.write(&config.layout(), &mut bytes);
        if sync && config.context {
            let owner = Owner::Scontext(random.below(3) as u32);
            let mode = hartrace_flow::Mode::U;
            let process = Process { mode, owner }.field();
            let body = Body::Ownership { process };
            let tstamp = config.timestamps.map(|_| 0);
            Message { src, body, tstamp }.write(&config.layout(), &mut bytes);
        }
    }
    bytes
}

/// The events of a stream on so many threads, in pieces of this length, from parts with so
/// much room.
fn events_of<D: Decode>(
    bytes: &[u8],
    decoder: impl Fn() -> D + std::marker::Sync,
    (threads, piece, room): (usize, usize, usize),
) -> Vec<(HartId, Event)> {
    let all = Mutex::new(Vec::new());
    Sharding { threads, piece }
        .decode(
            bytes,
            decoder,
            || Keep {
                events: Vec::new(),
                room,
            },
            |part, _| {
                all.lock().unwrap().append(&mut part.events);
                Ok(())
            },
        )
        .unwrap();
    all.into_inner().unwrap()
}

fn decode_all(
    bytes: &[u8],
    config: &Config,
    setting: (usize, usize, usize),
) -> Vec<(HartId, Event)> {
    let image = image();
    events_of(
        bytes,
        || Decoder::new(config.clone(), &image).unwrap(),
        setting,
    )
}

fn configs() -> Vec<Config> {
    let plain = Config {
        src_bits: 1,
        ..Config::new(Version::V1_0, Xlen::Rv64)
    };
    let narrow = Timestamps {
        width: 16,
        ..Timestamps::default()
    };
    vec![
        plain.clone(),
        Config {
            timestamps: Some(narrow),
            context: true,
            ..plain.clone()
        },
        Config {
            implicit_return: ImplicitReturn::Full,
            version: Version::Rc7,
            ..plain
        },
    ]
}

#[test]
fn threads_change_nothing() {
    for (i, config) in configs().iter().enumerate() {
        let bytes = stream(config, 77 + i as u64, 4000);
        let truth = decode_all(&bytes, config, (1, 1, usize::MAX));
        assert!(truth.len() > 4000);
        let gap = truth.iter().find(|(_, e)| matches!(e, Event::Gap(_)));
        assert_eq!(gap, None);
        for setting in [
            (2, 100, 10),
            (3, 1000, 1),
            (8, 333, 500),
            (2, 5000, usize::MAX),
        ] {
            let events = decode_all(&bytes, config, setting);
            assert!(events == truth, "{setting:?}");
        }
    }
}

#[test]
fn threads_change_nothing_where_bytes_are_wrong() {
    let mut random = Random::new(99);
    for config in configs() {
        for trial in 0..20 {
            let mut bytes = stream(&config, trial, 800);
            for _ in 0..=random.below(6) {
                let at = random.index(bytes.len());
                match random.below(3) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => drop(bytes.drain(at..bytes.len().min(at + 40))),
                    _ => bytes.iter_mut().skip(at).take(60).for_each(|b| *b = 0),
                }
            }
            let truth = decode_all(&bytes, &config, (1, 1, usize::MAX));
            for setting in [(2, 100, 10), (4, 64, 1), (3, 500, usize::MAX)] {
                let events = decode_all(&bytes, &config, setting);
                assert!(events == truth, "trial {trial} {setting:?}");
            }
        }
    }
}

#[test]
fn a_stream_without_seams_is_one_piece() {
    let config = configs().swap_remove(0);
    let all = stream(&config, 5, 2000);
    // Only the first messages have full addresses.
    let layout = config.layout();
    let mut bytes = Vec::new();
    let mut framer = hartrace_ntrace::Framer::new();
    let mut rest = &all[..];
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        if let hartrace_ntrace::Piece::Message(m) = piece {
            let sync = Message::read(m, &layout).unwrap().body.sync().is_some();
            if !sync || at < 40 {
                bytes.extend_from_slice(m);
            }
        }
    }
    let truth = decode_all(&bytes, &config, (1, 1, usize::MAX));
    assert!(truth.len() > 1000);
    assert!(decode_all(&bytes, &config, (3, 200, 7)) == truth);
}

#[test]
fn a_failure_to_write_is_told_once() {
    let config = configs().swap_remove(0);
    let bytes = stream(&config, 5, 2000);
    let image = image();
    let result = Sharding {
        threads: 3,
        piece: 300,
    }
    .decode(
        &bytes,
        || Decoder::new(config.clone(), &image).unwrap(),
        || Keep {
            events: Vec::new(),
            room: 3,
        },
        |_, _| Err(io::Error::other("full")),
    );
    assert_eq!(result.unwrap_err().to_string(), "full");
}

/// After a failure nothing more is decoded, in one piece or several.
#[test]
fn a_failure_ends_the_work() {
    let config = configs().swap_remove(0);
    let bytes = stream(&config, 5, 40_000);
    let image = image();
    for (threads, piece) in [(1, 1), (3, 3000)] {
        let mut seen = Vec::new();
        let result = Sharding { threads, piece }.decode(
            &bytes,
            || Decoder::new(config.clone(), &image).unwrap(),
            || Keep {
                events: Vec::new(),
                room: 3,
            },
            |part, done| {
                part.events.clear();
                seen.push(done);
                match done > 20_000 {
                    true => Err(io::Error::other("full")),
                    false => Ok(()),
                }
            },
        );
        assert_eq!(result.unwrap_err().to_string(), "full");
        assert!(seen.is_sorted());
        let last = seen.last().unwrap();
        let soon = 20_000 + STEP + 3000;
        assert!((20_000..soon).contains(last), "{last} {threads}");
        assert!(soon < bytes.len());
    }
}

/// A panic is handed on; nobody waits for the turn of what is gone.
#[test]
fn a_panic_ends_the_work() {
    let config = configs().swap_remove(0);
    let bytes = stream(&config, 5, 8000);
    let image = image();
    for room in [1, 100, usize::MAX] {
        let run = || {
            Sharding {
                threads: 4,
                piece: 500,
            }
            .decode(
                &bytes,
                || Decoder::new(config.clone(), &image).unwrap(),
                || Keep {
                    events: Vec::new(),
                    room,
                },
                |part, done| {
                    part.events.clear();
                    assert!(done < 9000, "as asked for");
                    Ok(())
                },
            )
        };
        let run = std::panic::AssertUnwindSafe(run);
        assert!(std::panic::catch_unwind(run).is_err());
    }
}

mod data;

mod etrace {
    use super::*;
    use hartrace_etrace::{
        BranchMap, Config, Decoder, Kind, Packet, QualStatus, Report, Start, Support, Version,
    };

    /// A hart that goes round that loop. The options come once, at the front.
    fn stream(full_address: bool, seed: u64, packets: u64) -> Vec<u8> {
        let layout = Config::new(Version::V2_0, Xlen::Rv64).layout();
        let mut random = Random::new(seed);
        let mut bytes = Vec::new();
        let mut put = |packet: Packet| {
            let payload = packet.write(&layout);
            payload.write_framed(Kind::Instruction, &mut bytes);
        };
        put(Packet::Support(Support {
            ienable: true,
            ioptions: if full_address { 4 } else { 0 },
            ..Support::default()
        }));
        // At the branch, which is taken.
        let start = Packet::Start(Start {
            privilege: 3,
            address: 0x1002 >> 1,
            ..Start::default()
        });
        put(start);
        let mut started = true;
        for _ in 0..packets {
            // Round and round, out, and by the jump to the front again.
            let count = random.below(12) as u8 + 1;
            let map = BranchMap {
                bits: 1 << (count - 1),
                count,
            };
            let sync = random.below(20) == 0;
            let report = Report {
                address: match full_address {
                    true => 0x1000 >> 1,
                    false if started => (1 << 63) - 1,
                    false => 0,
                },
                updiscon: sync,
                ..Report::default()
            };
            let address = Some(report);
            put(Packet::Branches { map, address });
            started = sync;
            if sync {
                put(start);
            }
        }
        put(Packet::Support(Support {
            qual_status: QualStatus::EndedNtr,
            ioptions: if full_address { 4 } else { 0 },
            ..Support::default()
        }));
        bytes
    }

    fn decode_all(bytes: &[u8], setting: (usize, usize, usize)) -> Vec<(HartId, Event)> {
        let image = image();
        let config = Config::new(Version::V2_0, Xlen::Rv64);
        events_of(
            bytes,
            || Decoder::new(config.clone(), &image).unwrap(),
            setting,
        )
    }

    #[test]
    fn threads_change_nothing() {
        for full_address in [false, true] {
            let bytes = stream(full_address, 5, 4000);
            let truth = decode_all(&bytes, (1, 1, usize::MAX));
            assert!(truth.len() > 4000);
            let gap = truth.iter().find(|(_, e)| matches!(e, Event::Gap(_)));
            assert_eq!(gap, None);
            for setting in [(2, 100, 10), (3, 1000, 1), (8, 333, 500)] {
                let events = decode_all(&bytes, setting);
                assert!(events == truth, "{setting:?}");
            }
        }
    }

    #[test]
    fn threads_change_nothing_where_bytes_are_wrong() {
        let mut random = Random::new(98);
        for trial in 0..30 {
            let mut bytes = stream(trial % 2 == 0, trial, 800);
            for _ in 0..=random.below(6) {
                let at = random.index(bytes.len());
                match random.below(3) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => drop(bytes.drain(at..bytes.len().min(at + 40))),
                    _ => bytes.iter_mut().skip(at).take(60).for_each(|b| *b = 0),
                }
            }
            let truth = decode_all(&bytes, (1, 1, usize::MAX));
            for setting in [(2, 100, 10), (4, 64, 1), (3, 500, usize::MAX)] {
                let events = decode_all(&bytes, setting);
                assert!(events == truth, "trial {trial} {setting:?}");
            }
        }
    }

    /// A piece knows the options before it is its turn: nothing is done twice.
    #[test]
    fn options_are_known_to_every_piece() {
        let bytes = stream(true, 9, 2000);
        let image = image();
        let config = Config::new(Version::V2_0, Xlen::Rv64);
        let mut decoder = Decoder::new(config, &image).unwrap();
        let hint = first(&mut decoder, &bytes);
        let at = decoder.boundary(&bytes, bytes.len() / 2).unwrap();
        decoder.restart(at as u64);
        decoder.hint(&hint);
        let mut keep = Keep {
            events: Vec::new(),
            room: usize::MAX,
        };
        decoder.feed(&bytes[at..], &mut keep);
        let gaps = keep.events.iter().filter_map(|(_, event)| match event {
            Event::Gap(gap) => Some(gap.reason.code),
            _ => None,
        });
        let gaps: Vec<_> = gaps.collect();
        assert!(gaps.iter().all(|code| *code == "ET0103"), "{gaps:?}");
        assert!(keep.events.len() > 500);
    }
}
