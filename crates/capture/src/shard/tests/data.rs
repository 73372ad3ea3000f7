//! Accesses and their instructions, on several threads.

use super::*;
use crate::trace::{Decoder, Settings};
use hartrace_etrace::{
    BranchMap, Config, DataConfig, DataPacket, Encapsulated, Framer, Kind, Outstanding, Packet,
    Piece, QualStatus, Report, Start, Support, Version,
};

/// loop: lw a0, 0(a1); sw a0, 4(a1); lbu a0, 0(a2); c.bnez a0, loop; c.jr a1
const CODE: [u8; 16] = [
    0x03, 0xa5, 0x05, 0x00, 0x23, 0xa2, 0xa5, 0x00, 0x03, 0x45, 0x06, 0x00, 0x75, 0xf9, 0x82, 0x85,
];
const BASE: u64 = 0x1000;

/// The last of them.
const JUMP: u64 = BASE + 14;

fn image() -> Image {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, &CODE, Isa::RV64GC);
    image
}

fn config() -> Config {
    Config {
        data: Some(DataConfig::new(Version::V2_0, Xlen::Rv64)),
        ..Config::new(Version::V2_0, Xlen::Rv64)
    }
}

/// What an encoder does at a synchronisation with the accesses that differences refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Afresh {
    /// It forgets them, as 7.1.3 says.
    Always,
    /// It goes on with them.
    Never,
    /// It forgets words; bytes still refer to what was before, now and then.
    Words,
}

/// The data trace of an encoder that sends differences wherever it can.
struct Data {
    random: Random,
    /// Address and data of the last access, by log2 of its size.
    before: [Option<(u64, u64)>; 4],
}

impl Data {
    fn put(&mut self, store: bool, size: u8, bytes: &mut Vec<u8>) {
        let bits = 8 << size;
        let addr = 0x8000 + (self.random.below(64) << size);
        let value = self.random.below(1 << bits.min(40));
        let value = value & (u64::MAX >> (64 - bits));
        let last = self.before[usize::from(size)].replace((addr, value));
        let (from, base) = last.unwrap_or_default();
        let packet = DataPacket::Transfer {
            multiple: false,
            store,
            aligned: true,
            size,
            diff: if last.is_some() { 3 } else { 0 },
            data: Some(value.wrapping_sub(base) & (u64::MAX >> (64 - bits))),
            address: Some(((addr.wrapping_sub(from)) as i64 >> size) as u64),
        };
        let layout = config().data_layout().unwrap();
        let payload = packet.write(&layout, &Outstanding::default());
        payload.write_framed(Kind::Data, bytes);
    }
}

/// A hart that goes round that loop, and enters it again by the jump.
fn stream(afresh: Afresh, seed: u64, entries: u64) -> Vec<u8> {
    let layout = config().layout();
    let mut bytes = Vec::new();
    let put = |packet: Packet, bytes: &mut Vec<u8>| {
        let payload = packet.write(&layout);
        payload.write_framed(Kind::Instruction, bytes);
    };
    let mut data = Data {
        random: Random::new(seed),
        before: [None; 4],
    };
    let start = Packet::Start(Start {
        privilege: 3,
        branch: true,
        address: BASE >> 1,
        ..Start::default()
    });
    put(start, &mut bytes);
    for entry in 0..entries {
        let count = data.random.below(12) as u8 + 1;
        for _ in 0..count {
            data.put(false, 2, &mut bytes);
            data.put(true, 2, &mut bytes);
            data.put(false, 0, &mut bytes);
        }
        let map = BranchMap {
            bits: 1 << (count - 1),
            count,
        };
        // Out of the loop by the jump, and to its front again unless that was all.
        let address = Some(Report {
            address: (JUMP - BASE) >> 1,
            updiscon: true,
            ..Report::default()
        });
        put(Packet::Branches { map, address }, &mut bytes);
        if entry + 1 < entries {
            put(start, &mut bytes);
        }
        if afresh != Afresh::Never {
            data.before[2] = None;
        }
        if afresh == Afresh::Always || entry % 100 == 0 {
            data.before[0] = None;
        }
    }
    let end = Support {
        qual_status: QualStatus::EndedNtr,
        ..Support::default()
    };
    put(Packet::Support(end), &mut bytes);
    bytes
}

fn decode_all(bytes: &[u8], setting: (usize, usize, usize)) -> Vec<(HartId, Event)> {
    let image = image();
    let settings = Settings::Etrace(config());
    events_of(bytes, || Decoder::new(&settings, &image).unwrap(), setting)
}

const SETTINGS: [(usize, usize, usize); 4] = [
    (2, 500, 10),
    (3, 1000, 1),
    (8, 333, 500),
    (2, 5000, usize::MAX),
];

#[test]
fn threads_change_nothing() {
    for afresh in [Afresh::Always, Afresh::Never, Afresh::Words] {
        let bytes = stream(afresh, 7, 2000);
        let truth = decode_all(&bytes, (1, 1, usize::MAX));
        let tied = truth.iter().filter(|(_, event)| match event {
            Event::Access(data) => {
                assert!(data.insn.is_some(), "{afresh:?}");
                true
            }
            Event::Gap(_) | Event::DataGap(_) => panic!("{afresh:?}: {event:?}"),
            _ => false,
        });
        assert!(tied.count() > 20_000, "{afresh:?}");
        for setting in SETTINGS {
            let events = decode_all(&bytes, setting);
            assert!(events == truth, "{afresh:?} {setting:?}");
        }
    }
}

#[test]
fn threads_change_nothing_where_bytes_are_wrong() {
    let mut random = Random::new(98);
    for trial in 0..60 {
        let afresh = [Afresh::Always, Afresh::Never, Afresh::Words][trial as usize % 3];
        let mut bytes = stream(afresh, trial, 300);
        for _ in 0..=random.below(6) {
            let at = random.index(bytes.len());
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => drop(bytes.drain(at..bytes.len().min(at + 40))),
                _ => bytes.iter_mut().skip(at).take(60).for_each(|b| *b = 0),
            }
        }
        let truth = decode_all(&bytes, (1, 1, usize::MAX));
        for setting in SETTINGS {
            let events = decode_all(&bytes, setting);
            assert!(events == truth, "trial {trial} {afresh:?} {setting:?}");
        }
    }
}

/// A seam is right behind the packet that synchronises. What comes after it needs nothing
/// from before where the encoder starts afresh there.
#[test]
fn a_piece_needs_no_other() {
    let image = image();
    let settings = Settings::Etrace(config());
    for afresh in [Afresh::Always, Afresh::Never] {
        let bytes = stream(afresh, 3, 500);
        let mut decoder = Decoder::new(&settings, &image).unwrap();
        let mut at = decoder.boundary(&bytes, bytes.len() / 2).unwrap();
        decoder.restart(at as u64);
        while !decoder.is_synchronised() {
            at += decoder.pass(&bytes[at..]);
        }
        let mut framer = Framer::new();
        let (mut rest, mut last) = (&bytes[..at], None);
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if let Piece::Packet(Encapsulated { kind, payload, .. }) = piece {
                last = Some((kind, payload[0] & 3));
            }
        }
        assert_eq!(last, Some((Kind::Instruction, 3)), "format 3");
        let mut seam = decoder.seam();
        let mut before = Decoder::new(&settings, &image).unwrap();
        before.feed(&bytes[..at], &mut hartrace_flow::decode::Nothing);
        assert!(before.seam() != seam, "what was before is not known");
        Decoder::leave_open(&mut seam);
        decoder.resume(&seam);
        assert!(Decoder::complete(&mut seam, &before.seam()));
        assert!(before.seam() == seam, "it is all that is not known");
        decoder.feed(&bytes[at..], &mut hartrace_flow::decode::Nothing);
        let mut now = decoder.seam();
        let right = Decoder::complete(&mut now, &before.seam());
        assert_eq!(right, afresh == Afresh::Always, "{afresh:?}");
    }
}
