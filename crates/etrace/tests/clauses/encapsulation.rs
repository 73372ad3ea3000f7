//! How packets are encapsulated: e-trace-encap 1.0.0 clause by clause, the examples of
//! chapter 6 of the draft, and the forms of two implementations.

use hartrace_etrace::{
    Config, Decoder, Encapsulated, Encapsulation, Encoder, Fault, Form, Framer, Kind, Packer,
    Packet, Piece, QualStatus, Report, Start, Trap, boundary,
};
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Check, Effects, Event, HartId, Observer, Port, Step, Unreported};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::{Random, pieces as chunks};

use crate::common::asm::*;
use crate::common::*;
use crate::random::{program, walk};

/// A packet that owns its bytes: source, kind, time, payload.
type Owned = (u16, Kind, Option<u64>, Vec<u8>);

/// What is found in a stream.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found {
    packets: Vec<Owned>,
    idle: u64,
    bad: u64,
    lost: Vec<(u16, Fault, u64)>,
}

/// All of a stream that comes in chunks; every byte is in one piece.
fn divide<'b>(mut framer: Framer, chunks: impl IntoIterator<Item = &'b [u8]>) -> Found {
    let mut found = Found::default();
    let mut next = framer.position();
    let mut add = |at: u64, piece: Piece<'_>| {
        assert_eq!(at, next);
        next += Framer::length(&piece) as u64;
        match piece {
            Piece::Packet(packet) => {
                let Encapsulated {
                    src, kind, time, ..
                } = packet;
                found
                    .packets
                    .push((src, kind, time, packet.payload.to_vec()));
            }
            Piece::Idle(bytes) => found.idle += bytes,
            Piece::Bad(_, bytes) => found.bad += bytes,
            Piece::Lost(src, fault, value, _) => found.lost.push((src, fault, value)),
        }
    };
    for mut chunk in chunks {
        while let Some((at, piece)) = framer.next_piece(&mut chunk) {
            add(at, piece);
        }
        assert!(chunk.is_empty());
    }
    if let Some((at, piece)) = framer.finish() {
        add(at, piece);
    }
    found
}

fn riscv(src_bits: u8, time_bytes: u8, type_bits: u8) -> Encapsulation {
    Encapsulation {
        src_bits,
        time_bytes,
        type_bits,
        sync_bytes: 0,
        ..Encapsulation::new(Form::Riscv)
    }
}

/// One packet in a form, without its payload's own meaning.
fn packed(form: Encapsulation, src: u16, kind: Kind, payload: &[u8], time: u64) -> Vec<u8> {
    Packer::new(form, src)
        .pack(kind, payload, time)
        .bytes()
        .to_vec()
}

/// All forms, with parameters of all kinds.
fn forms() -> Vec<Encapsulation> {
    let mut forms = vec![
        Encapsulation::new(Form::Reference),
        Encapsulation::new(Form::Esp32),
        Encapsulation {
            sync_bytes: 100,
            ..Encapsulation::new(Form::Esp32)
        },
        Encapsulation::new(Form::Slots),
        Encapsulation {
            type_bits: 1,
            src_bits: 3,
            time_bytes: 4,
            ..Encapsulation::new(Form::Slots)
        },
    ];
    for src_bits in [0, 5, 8, 16] {
        for time_bytes in [0, 1, 8] {
            for type_bits in [0, 1, 3] {
                for sync_bytes in [0, 150] {
                    forms.push(Encapsulation {
                        sync_bytes,
                        flow: src_bits % 4,
                        ..riscv(src_bits, time_bytes, type_bits)
                    });
                }
            }
        }
    }
    for time_bytes in [0, 2] {
        for src_bits in [0, 3, 8, 13] {
            forms.push(Encapsulation {
                src_bits,
                time_bytes,
                ..Encapsulation::new(Form::Smi)
            });
        }
        for type_bits in [0, 1] {
            forms.push(Encapsulation {
                type_bits,
                time_bytes,
                ..Encapsulation::new(Form::Atb)
            });
        }
    }
    forms
}

/// Packets of random payloads, from as many sources and of as many kinds as the form
/// has, with what must be found.
fn traffic(form: Encapsulation, random: &mut Random, count: u64) -> (Vec<u8>, Vec<Owned>) {
    let sources = 1u64 << form.src_bits.min(2);
    let mut packers: Vec<Packer> = (0..sources)
        .map(|src| Packer::new(form, src as u16))
        .collect();
    let (mut bytes, mut sent) = (Vec::new(), Vec::new());
    let mut time = 0;
    for _ in 0..count {
        time += random.below(1000);
        let src = random.below(sources);
        let data = form.has_kinds() && random.one_in(3);
        let kind = if data { Kind::Data } else { Kind::Instruction };
        let most = (form.room() / 8) as u64;
        let len = 1 + random.below(most.min(20)) as usize;
        let mut payload = random.bytes(len);
        // As packets are: the last byte is not only a repetition.
        if let Some(last) = payload.last_mut() {
            *last |= 1;
        }
        let packet = packers[src as usize].pack(kind, &payload, time);
        bytes.extend_from_slice(packet.bytes());
        let bits = 8 * u32::from(form.time_bytes);
        let stamp = match bits {
            0 => None,
            64 => Some(time),
            _ => Some(time & ((1 << bits) - 1)),
        };
        sent.push((src as u16, kind, stamp, payload));
    }
    (bytes, sent)
}

/// The same payload up to repetitions of its last bit.
fn same(a: &Owned, b: &Owned) -> bool {
    let trimmed = |payload: &[u8]| {
        let mut payload = payload.to_vec();
        while let [.., before, last] = payload[..]
            && last == ((before as i8) >> 7) as u8
        {
            payload.pop();
        }
        payload
    };
    (a.0, a.1, a.2) == (b.0, b.1, b.2) && trimmed(&a.3) == trimmed(&b.3)
}

fn assert_same(found: &[Owned], sent: &[Owned], form: &Encapsulation) {
    assert_eq!(found.len(), sent.len(), "{form:?}");
    for (found, sent) in found.iter().zip(sent) {
        assert!(same(found, sent), "{form:?}: {found:x?}, not {sent:x?}");
    }
}

/// encap 2.1, tables 1 to 3: the header, `srcID`, `timestamp`, `type` and payload in
/// their order, the lowest bit first.
#[test]
fn encap_groups_in_order() {
    let form = Encapsulation {
        flow: 2,
        ..riscv(8, 2, 0)
    };
    let bytes = packed(form, 0x5a, Kind::Instruction, &[0x73, 0x40], 0x1234);
    assert_eq!(bytes, [0xc2, 0x5a, 0x34, 0x12, 0x73, 0x40]);
    // Without a timestamp extend is 0.
    let bytes = packed(riscv(8, 0, 0), 0x5a, Kind::Instruction, &[0x73], 9);
    assert_eq!(bytes, [0x01, 0x5a, 0x73]);
    // srcID of 4 bits, type of 1 bit: the payload starts in bit 5 of the second byte.
    let bytes = packed(riscv(4, 0, 1), 0xb, Kind::Data, &[0x73, 0x40], 9);
    let all = 0xb | 1 << 4 | 0x4073 << 5;
    assert_eq!(
        bytes,
        [0x03, all as u8, (all >> 8) as u8, (all >> 16) as u8]
    );
    // With one, in the bits between srcID and type.
    let bytes = packed(riscv(4, 1, 1), 0xb, Kind::Data, &[0x13], 0xee);
    let all: u32 = 0xb | 0xee << 4 | 1 << 12 | 0x13 << 13;
    assert_eq!(
        bytes,
        [0x82, all as u8, (all >> 8) as u8, (all >> 16) as u8]
    );
}

/// encap 2.1.5: 1 + S + T * extend + length; bits of `srcID` over a whole number of
/// bytes count as payload.
#[test]
fn encap_packet_length() {
    for src_bits in 0..=16u8 {
        for time_bytes in [0, 1, 8] {
            for (payload, most) in [(vec![0x33], 1), (vec![0xaa; 30], 30)] {
                let form = riscv(src_bits, time_bytes, 0);
                let bytes = packed(form, 1, Kind::Instruction, &payload, 7);
                let length = usize::from(bytes[0] & 31);
                assert_eq!(bytes[0] >> 7 != 0, time_bytes > 0);
                let whole = usize::from(src_bits / 8) + usize::from(time_bytes);
                assert_eq!(bytes.len(), 1 + whole + length);
                assert!(length == most || src_bits % 8 > 0 && length == most + 1);
            }
        }
    }
    // Upper bits of the payload that are all the same need no room.
    let bytes = packed(riscv(4, 0, 1), 0xb, Kind::Instruction, &[0x01], 0);
    assert_eq!(bytes.len(), 2);
}

/// encap 2.1.1: extend must be 0 where timestamps have no width.
#[test]
fn encap_extend_needs_a_width() {
    let found = divide(Framer::of(riscv(0, 0, 0)), [&[0x81, 0x1f][..]]);
    assert_eq!((found.packets.len(), found.bad), (0, 2));
    let found = divide(Framer::of(riscv(0, 1, 0)), [&[0x81, 5, 0x1f][..]]);
    assert_eq!(found.packets, [(0, Kind::Instruction, Some(5), vec![0x1f])]);
}

/// Of one form packets with and without a timestamp: each says which it is.
#[test]
fn encap_timestamps_are_optional() {
    let stream = [0x81, 0x11, 0x22, 0x1f, 0x01, 0x2f, 0x81, 0x33, 0x44, 0x3f];
    let found = divide(Framer::of(riscv(0, 2, 0)), [&stream[..]]);
    let times: Vec<_> = found.packets.iter().map(|packet| packet.2).collect();
    assert_eq!(times, [Some(0x2211), None, Some(0x4433)]);
}

/// encap 2.2: a null packet is one byte, whatever `flow` and `extend` say.
#[test]
fn encap_null_packets() {
    let stream = [0x00, 0x80, 0x20, 0xe0, 0x01, 0x1f, 0x60];
    let found = divide(Framer::of(riscv(0, 0, 0)), [&stream[..]]);
    assert_eq!((found.packets.len(), found.idle, found.bad), (1, 5, 0));
}

/// encap 3.3: `type` 0 is instruction trace and 1 data trace; packets of other types
/// are no trace.
#[test]
fn encap_types() {
    let form = riscv(0, 0, 2);
    let stream = [
        0x02,
        0x1f << 2,
        0,
        0x02,
        0x1f << 2 | 1,
        0,
        0x02,
        0x1f << 2 | 2,
        0,
    ];
    let found = divide(Framer::of(form), [&stream[..]]);
    let kinds: Vec<_> = found.packets.iter().map(|packet| packet.1).collect();
    assert_eq!(kinds, [Kind::Instruction, Kind::Data]);
    assert_eq!((found.idle, found.bad), (3, 0));
}

/// encap 2.3: N = 31 + T + S null packets and one more; N null.idle and a
/// null.alignment here.
#[test]
fn encap_synchronisation_sequence() {
    for (src_bits, time_bytes) in [(0, 0), (8, 0), (16, 8), (5, 2)] {
        let form = Encapsulation {
            sync_bytes: 1,
            ..riscv(src_bits, time_bytes, 0)
        };
        let n = 31 + usize::from(time_bytes) + usize::from(src_bits / 8);
        let bytes = packed(form, 0, Kind::Instruction, &[0x1f], 0);
        assert!(bytes[..n].iter().all(|&byte| byte == 0));
        assert_eq!((bytes[n], bytes[n + 1] & 31 > 0), (0x80, true));
        // From any place before it, the packet after it is found, and not one of the
        // damaged bytes.
        let junk = [0x9f; 40];
        let stream = [&junk[..], &bytes[..]].concat();
        for from in 0..junk.len() {
            let framer = Framer::of(form).in_the_middle();
            let found = divide(framer, [&stream[from..]]);
            assert_eq!(found.packets.len(), 1, "{form:?} {from}");
        }
    }
}

/// A sequence may have null.alignment anywhere, and be longer.
#[test]
fn encap_opportunistic_synchronisation() {
    let form = riscv(0, 0, 0);
    for last in [0x00, 0x80] {
        let mut stream = vec![0x1f, 1, 2];
        stream.extend([0x80; 50]);
        stream.push(last);
        stream.extend([0x01, 0x1f]);
        let found = divide(Framer::of(form).in_the_middle(), [&stream[..]]);
        assert_eq!(found.packets, [(0, Kind::Instruction, None, vec![0x1f])]);
    }
}

/// Draft, figure 6.1: header with length, kind and the bit of the timestamp, index,
/// 16-bit timestamp, payload.
#[test]
fn draft_6_1_smi_messages() {
    let form = Encapsulation {
        src_bits: 5,
        time_bytes: 2,
        ..Encapsulation::new(Form::Smi)
    };
    let bytes = packed(form, 3, Kind::Instruction, &[0x1f], 0x1_0203);
    assert_eq!(bytes, [0xc1, 3, 0x03, 0x02, 0x1f]);
    let bytes = packed(form, 3, Kind::Data, &[0x1f], 0x1_0203);
    assert_eq!(bytes, [0xe1, 3, 0x03, 0x02, 0x1f]);
    // Without index and timestamp it is the file form of the reference models.
    let smi = Encapsulation::new(Form::Smi);
    let bytes = packed(smi, 0, Kind::Instruction, &[0x1f], 0);
    assert_eq!(bytes, [0x41, 0x1f]);
}

/// Draft, chapter 6, for ATB: a length and the bit of the timestamp, the timestamp, the
/// payload.
#[test]
fn draft_6_atb_header() {
    let form = Encapsulation {
        time_bytes: 2,
        ..Encapsulation::new(Form::Atb)
    };
    let bytes = packed(form, 0, Kind::Instruction, &[0x1f, 0x20], 0x0304);
    assert_eq!(bytes, [0x22, 0x04, 0x03, 0x1f, 0x20]);
    let found = divide(Framer::of(form), [&[0x01, 0x1f, 0x21, 1, 2, 0x2f][..]]);
    let times: Vec<_> = found.packets.iter().map(|packet| packet.2).collect();
    assert_eq!(times, [None, Some(0x0201)]);
}

/// ESP32: the length counts the header of three bytes, and packets are numbered.
#[test]
fn esp32_packets() {
    let form = Encapsulation::new(Form::Esp32);
    let mut packer = Packer::new(form, 0);
    let mut stream = vec![0; 14];
    for n in 0..3u8 {
        let packet = packer.pack(Kind::Instruction, &[0x1f, n], 0);
        stream.extend_from_slice(packet.bytes());
    }
    assert_eq!(stream[14..19], [5, 0, 0, 0x1f, 0]);
    assert_eq!(stream[19..24], [5, 1, 0, 0x1f, 1]);
    let found = divide(Framer::of(form), [&stream[..]]);
    assert_eq!((found.packets.len(), found.idle), (3, 14));
    // Headers with other bits, and lengths without a payload, are none.
    for first in [1, 2, 3, 0x24, 0x84] {
        let found = divide(Framer::of(form), [&[first, 0, 0, 0x1f][..]]);
        assert_eq!((found.packets.len(), found.bad), (0, 4), "{first}");
    }
}

/// Packets that are missing are counted by their numbers, in any chunks; a number that
/// wraps is none.
#[test]
fn esp32_numbers_show_what_is_missing() {
    let form = Encapsulation::new(Form::Esp32);
    let packet = |index: u16, n: u8| {
        let [low, high] = index.to_le_bytes();
        [5, low, high, 0x1f, n]
    };
    let indices = [65534, 65535, 0, 4, 5, 5];
    let stream: Vec<u8> = indices.iter().flat_map(|&i| packet(i, 1)).collect();
    for size in 1..stream.len() {
        let found = divide(Framer::of(form), stream.chunks(size));
        assert_eq!(found.packets.len(), 6, "in chunks of {size}");
        // The last: the same number again, 65,535 after the one expected.
        let missing = [3, 65535].map(|count| (0, Fault::MissingPackets, count));
        assert_eq!(found.lost, missing);
    }
}

/// PULP: a slot of 40 bytes holds the packet backwards, zeros before it.
#[test]
fn pulp_slots() {
    let form = Encapsulation::new(Form::Slots);
    let bytes = packed(form, 0, Kind::Instruction, &[0x0f, 0x40], 0x0102_0304);
    assert_eq!(bytes.len(), 40);
    assert!(bytes[..29].iter().all(|&byte| byte == 0));
    assert_eq!(bytes[29..], [0x40, 0x0f, 0, 0, 0, 0, 1, 2, 3, 4, 0x82]);
    // Slots without a packet say nothing.
    let stream = [&bytes[..], &[0; 40], &bytes].concat();
    let found = divide(Framer::of(form), [&stream[..]]);
    assert_eq!((found.packets.len(), found.idle, found.bad), (2, 40, 0));
    // After bytes that are none, slots are found again.
    let stream = [&[7; 13][..], &bytes, &bytes].concat();
    for size in [1, 7, 40, 100] {
        let found = divide(Framer::of(form), stream.chunks(size));
        assert_eq!((found.packets.len(), found.bad), (2, 13), "{size}");
    }
}

/// The packets of the PULP tracer, bit by bit: only the address is shortened, to whole
/// bytes and a bit; zeros fill the last byte.
#[test]
fn pulp_packets() {
    let config = Config::pulp(Xlen::Rv64);
    let layout = config.layout();
    let start = Packet::Start(Start {
        branch: true,
        privilege: 3,
        address: 0x8000_0e6e,
        ..Start::default()
    });
    // 7 bits, then 41 bits of address.
    let bits: u64 = 3 | 1 << 4 | 3 << 5 | 0x8000_0e6e << 7;
    assert_eq!(start.write(&layout).bytes(), &bits.to_le_bytes()[..6]);
    // A negative difference of 17 bits; notify is 0 nevertheless, updiscon and irreport
    // are 1, and nothing repeats the last bit.
    let report = hartrace_etrace::Report {
        address: 0x1ff72u64 | !0x1ffff,
        updiscon: true,
        ..Default::default()
    };
    let packet = Packet::Address(report);
    let bits: u64 = 2 | 0x1ff72 << 2 | 1 << 20 | 1 << 21;
    assert_eq!(packet.write(&layout).bytes(), &bits.to_le_bytes()[..3]);
    assert_eq!(Packet::read(&bits.to_le_bytes()[..3], &layout), Ok(packet));
    // By the texts the same bits ask for attention, and mean another address.
    let plain = Config::new(RATIFIED, Xlen::Rv64).layout();
    assert_ne!(Packet::read(&bits.to_le_bytes()[..3], &plain), Ok(packet));
}

/// The PULP tracer resynchronises with two packets about one instruction, which may be a
/// branch or a jump. By the texts the second is about a later one. In a loop without a
/// decision it is about the next round by either.
#[test]
fn pulp_resync_names_an_instruction_twice() {
    // A loop with a branch; a jump to itself.
    let image = rv64(&[
        (0x1000, &[ADD, b(8), ADD, ADD, jal(0, -0x10)]),
        (0x2000, &[ADD, jal(0, 0)]),
    ]);
    let config = Config {
        resync_repeats: true,
        ..plain(RATIFIED)
    };
    let once = [0x1000, 0x1004, 0x1008, 0x100c, 0x1010];
    let jump = [
        start(&config, 0x1000),
        branches(&config, "NN", 0x10),
        start(&config, 0x1010),
        branches(&config, "N", -4),
        support(QualStatus::EndedRep),
    ];
    let found = decode(&config, &image, &stream(&config, &jump));
    assert_eq!(found.gaps(), []);
    assert_eq!(found.pcs(&image), [&once[..], &once, &once[..4]].concat());
    let branch = [
        start(&config, 0x1000),
        branches(&config, "NN", 4),
        start(&config, 0x1004),
        branches(&config, "N", 0),
        support(QualStatus::EndedRep),
    ];
    let found = decode(&config, &image, &stream(&config, &branch));
    assert_eq!(found.gaps(), []);
    assert_eq!(found.pcs(&image), [&once[..], &once, &once[..2]].concat());
    let itself = [
        start(&config, 0x2000),
        address(&config, 4),
        start(&config, 0x2004),
        support(QualStatus::EndedNtr),
    ];
    let found = decode(&config, &image, &stream(&config, &itself));
    assert_eq!(found.gaps(), []);
    assert_eq!(found.pcs(&image), [0x2000, 0x2004, 0x2004]);
    let texts = plain(RATIFIED);
    let found = decode(&texts, &image, &stream(&texts, &jump));
    assert_eq!(found.codes(), ["ET0302"]);
}

/// Where only the address is shortened, its end is known whatever stands before and after
/// it: the bits that fill the last byte do not belong to it.
#[test]
fn shortened_addresses_among_fields_of_any_width() {
    for context_width in 0..9 {
        let config = Config {
            context_width,
            ..Config::pulp(Xlen::Rv64)
        };
        let layout = config.layout();
        for address in [0, 0x7f, 0x80, 0x8000_0e6e, 0xffff_ff80, u64::MAX, 1 << 63] {
            let context = (1 << context_width) - 1;
            let start = Packet::Start(Start {
                context,
                address,
                ..Start::default()
            });
            let trap = Packet::Trap(Trap {
                context,
                thaddr: true,
                address: Some(address),
                tval: Some(address),
                ..Trap::default()
            });
            let report = Packet::Address(Report {
                address,
                ..Report::default()
            });
            for packet in [start, trap, report] {
                let written = packet.write(&layout);
                let read = Packet::read(written.bytes(), &layout);
                assert_eq!(read, Ok(packet), "{context_width} bits of context");
            }
        }
    }
}

/// Every form: what is packed is found again, in chunks of any size, from several
/// sources and of both kinds.
#[test]
fn every_form_there_and_back() {
    let mut random = Random::new(1);
    for form in forms() {
        let (bytes, sent) = traffic(form, &mut random, 60);
        let found = divide(Framer::of(form), [&bytes[..]]);
        assert_eq!((found.bad, found.lost.len()), (0, 0), "{form:?}");
        assert_same(&found.packets, &sent, &form);
        let cut = divide(Framer::of(form), chunks(&bytes, &mut random));
        assert_eq!(cut, found, "{form:?}");
    }
}

/// Every form: from any place of a stream, packets are found again, and all of them are
/// right.
#[test]
fn every_form_entered_in_the_middle() {
    let mut random = Random::new(2);
    for form in forms() {
        let (bytes, sent) = traffic(form, &mut random, 120);
        for _ in 0..8 {
            let from = random.index(bytes.len() / 2);
            let framer = Framer::of(form).in_the_middle().at(from as u64);
            let found = divide(framer, [&bytes[from..]]);
            let count = found.packets.len();
            // Without synchronisation sequences it may take long.
            let sure = form.form != Form::Riscv || form.sync_bytes > 0;
            assert!(count > 20 || !sure, "{form:?}: {count} from {from}");
            assert_same(&found.packets, &sent[sent.len() - count..], &form);
            let Some(at) = boundary(&bytes, from, &form) else {
                assert!(!sure, "{form:?}");
                continue;
            };
            let found = divide(Framer::of(form), [&bytes[at..]]);
            assert_eq!(found.bad, 0, "{form:?}: {at}");
            let first = sent.len() - found.packets.len();
            assert_same(&found.packets, &sent[first..], &form);
        }
    }
}

/// Every form: damage hides packets near it, and those far from it are found.
#[test]
fn every_form_damaged() {
    let mut random = Random::new(3);
    for form in forms() {
        let (bytes, sent) = traffic(form, &mut random, 200);
        for _ in 0..6 {
            let mut damaged = bytes.clone();
            let at = bytes.len() / 3 + random.index(20);
            damaged.drain(at..at + 1 + random.index(30));
            let found = divide(Framer::of(form), chunks(&damaged, &mut random));
            let end = found.packets.len().saturating_sub(40);
            let last = &found.packets[end..];
            assert_same(last, &sent[sent.len() - last.len()..], &form);
        }
        // Any bytes at all.
        let noise = random.bytes(3000);
        let found = divide(Framer::of(form), [&noise[..]]);
        let cut = divide(Framer::of(form), chunks(&noise, &mut random));
        assert_eq!(found, cut, "{form:?}");
    }
}

/// Settings in each form, each with what it can tell.
fn configs() -> Vec<Config> {
    let mut configs: Vec<Config> = forms()
        .into_iter()
        .map(|encapsulation| Config {
            encapsulation,
            ..plain(RATIFIED)
        })
        .filter(|config| config.validate().is_ok())
        .collect();
    configs.push(Config::pulp(Xlen::Rv64));
    configs
}

/// Ways of one or two harts through random programs, encoded in each form, come back.
#[test]
fn every_form_from_steps_to_events() {
    let mut random = Random::new(4);
    for config in configs() {
        let program = program(&mut random);
        let harts = if config.encapsulation.has_sources() {
            2
        } else {
            1
        };
        let ways: Vec<Vec<Step>> = (0..harts)
            .map(|_| steps(&program.0, &walk(RATIFIED, &program, &mut random, 150)))
            .collect();
        let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
        let mut port = Port::new(config.port(Isa::RV64GC), encoder);
        let mut check = Check::new().without(Unreported::default());
        let longest = ways.iter().map(Vec::len).max().unwrap();
        for i in 0..longest {
            for (way, hart) in ways.iter().zip(0u64..) {
                if let Some(step) = way.get(i) {
                    port.step(HartId(hart as u32), step, &Effects::default());
                    check.step(HartId(hart as u32), step, &Effects::default());
                }
            }
        }
        port.finish();
        let bytes = port.into_sink().into_sink();
        let mut decoder = Decoder::new(config.clone(), &program.0).unwrap();
        for chunk in chunks(&bytes, &mut random) {
            let mut rest = chunk;
            while !rest.is_empty() {
                let used = decoder.feed(rest, &mut check).max(1);
                rest = &rest[used..];
            }
        }
        decoder.finish(&mut check);
        let form = config.encapsulation;
        let checked = check
            .result()
            .unwrap_or_else(|error| panic!("{form:?}: {error}"));
        assert!(checked.insns > 100 * harts, "{form:?}");
    }
}

/// Timestamps of the encapsulation are the times of events, unless packets have their
/// own.
#[test]
fn timestamps_become_times() {
    let image = rv64(&[(0x1000, &[crate::common::asm::C_ADD; 8])]);
    let form = riscv(0, 4, 0);
    let config = Config {
        encapsulation: form,
        ..plain(RATIFIED)
    };
    let layout = config.layout();
    let start = |address: u64| {
        Packet::Start(Start {
            branch: true,
            privilege: 3,
            address: address >> 1,
            ..Start::default()
        })
    };
    let mut packer = Packer::new(form, 0);
    let mut stream = Vec::new();
    for (address, time) in [(0x1000, 0xffff_fff0), (0x1004, 0xffff_fff8), (0x1008, 0x10)] {
        let payload = start(address).write(&layout);
        let packet = packer.pack(Kind::Instruction, payload.bytes(), time);
        stream.extend_from_slice(packet.bytes());
    }
    let mut times = Vec::new();
    let mut seen = 0;
    let mut decoder = Decoder::new(config, &image).unwrap();
    struct Times<'a>(&'a mut Vec<(u64, u64)>, &'a mut u64);
    impl hartrace_flow::Consumer for Times<'_> {
        fn event(&mut self, _: HartId, event: &Event) -> std::ops::ControlFlow<()> {
            match event {
                Event::Time(time) => self.0.push((*self.1, *time)),
                Event::Run(run) => *self.1 += u64::from(run.insns),
                _ => {}
            }
            std::ops::ControlFlow::Continue(())
        }
    }
    decoder.feed(&stream, &mut Times(&mut times, &mut seen));
    decoder.finish(&mut Times(&mut times, &mut seen));
    // The time comes before the instruction that the packet reports; wraps are counted.
    assert_eq!(
        times,
        [(0, 0xffff_fff0), (2, 0xffff_fff8), (4, 0x1_0000_0010)]
    );
}

/// What is missing is a gap of its source alone, with the number of packets.
#[test]
fn missing_packets_are_a_gap() {
    let image = rv64(&[(0x1000, &[crate::common::asm::C_ADD; 8])]);
    let form = Encapsulation::new(Form::Esp32);
    let config = Config {
        encapsulation: form,
        ..plain(RATIFIED)
    };
    let layout = config.layout();
    let mut packer = Packer::new(form, 0);
    let mut stream = Vec::new();
    for n in 0..6u64 {
        let packet = Packet::Start(Start {
            branch: true,
            privilege: 3,
            address: (0x1000 + 2 * n) >> 1,
            ..Start::default()
        });
        let payload = packet.write(&layout);
        let packed = packer.pack(Kind::Instruction, payload.bytes(), 0);
        if n != 2 && n != 3 {
            stream.extend_from_slice(packed.bytes());
        }
    }
    let mut decoder = Decoder::new(config, &image).unwrap();
    let mut events = Vec::new();
    struct Gaps<'a>(&'a mut Vec<(&'static str, u64)>);
    impl hartrace_flow::Consumer for Gaps<'_> {
        fn event(&mut self, _: HartId, event: &Event) -> std::ops::ControlFlow<()> {
            if let Event::Gap(gap) = event {
                self.0.push((gap.reason.code, gap.reason.value));
            }
            std::ops::ControlFlow::Continue(())
        }
    }
    decoder.feed(&stream, &mut Gaps(&mut events));
    decoder.finish(&mut Gaps(&mut events));
    assert_eq!(events, [("ET0405", 2)]);
}
