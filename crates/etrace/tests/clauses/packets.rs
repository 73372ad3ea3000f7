//! Clauses about the bytes of packets: the tables of chapter 6 bit by bit,
//! sign-based compression, and packets in a stream.

use hartrace_etrace::{
    BranchMap, Config, Context, DataSupport, Encapsulated, Fault, Framer, Kind, Layout,
    MAX_PAYLOAD, NotifyBit, Packet, Padding, Piece, QualStatus, Report, Shortening, Start, Support,
    Trap, Version, csv, explain,
};
use hartrace_flow::decode::Framing as _;

use crate::common::*;

/// Fields of packets by hand: the first is sent first, each with its lowest
/// bit first.
#[derive(Clone, Default)]
pub(crate) struct Bits(Vec<bool>);

impl Bits {
    pub(crate) fn of(fields: &[(u64, u8)]) -> Bits {
        let mut bits = Vec::new();
        for &(value, width) in fields {
            bits.extend((0..width).map(|i| value.checked_shr(i.into()).unwrap_or(0) & 1 != 0));
        }
        Bits(bits)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them, the last repeated up to the end of its byte.
    pub(crate) fn whole(&self) -> Vec<u8> {
        let mut bits = self.0.clone();
        let last = *bits.last().unwrap();
        bits.resize(bits.len().next_multiple_of(8), last);
        let byte = |bits: &[bool]| (0..8).fold(0, |byte, i| byte | u8::from(bits[i]) << i);
        bits.chunks(8).map(byte).collect()
    }

    /// Without the bits at the end that repeat the one before them.
    pub(crate) fn compressed(&self) -> Vec<u8> {
        let last = *self.0.last().unwrap();
        let differs = self.0.iter().rposition(|&bit| bit != last);
        let keep = differs.map_or(1, |at| at + 2);
        Bits(self.0[..keep].to_vec()).whole()
    }
}

/// The packet has these fields, whether they are all sent or not.
#[track_caller]
fn has_fields(layout: &Layout, packet: Packet, fields: &[(u64, u8)]) {
    let bits = Bits::of(fields);
    assert_eq!(packet.bits(layout), bits.0.len() as u32, "{packet:?}");
    assert_eq!(
        packet.write(layout).bytes(),
        bits.compressed(),
        "{packet:?}"
    );
    let (whole, compressed) = (bits.whole(), bits.compressed());
    // Any length between the two is the same packet.
    for len in compressed.len()..=whole.len() {
        let read = Packet::read(&whole[..len], layout);
        assert_eq!(read, Ok(packet), "{len} of {} bytes", whole.len());
    }
    // And to people.
    let (shown, fault) = explain(&compressed, layout);
    let shown: Vec<_> = shown.iter().map(|f| (f.value, f.bits as u8)).collect();
    let there = fields.iter().copied().filter(|(_, width)| *width > 0);
    assert_eq!((shown, fault), (there.collect(), None), "{packet:?}");
    // And as a row of a table.
    let mut row = String::new();
    csv::row(&packet, layout, &mut row);
    assert_eq!(csv::parse_row(&row, layout), Ok(packet), "{row}");
}

/// Odd widths, so that no field can be taken for another.
fn layout(version: Version) -> Layout {
    let draft = version == DRAFT;
    Layout {
        version,
        iaddress_width: 48,
        iaddress_lsb: 1,
        privilege_width: 3,
        context_width: 11,
        time_width: if draft { 0 } else { 21 },
        ecause_width: 5,
        f0s_width: 1,
        bpred_size: 6,
        cache_size: 7,
        irdepth_width: 4,
        iret_ext: false,
        encoder_mode_width: 2,
        ioptions_width: 6,
        doptions_width: if draft { None } else { Some(3) },
        implicit_exception: false,
        exception_bit: None,
        shortening: Shortening::Packet,
        padding: Padding::Sign,
        notify_bit: NotifyBit::Address,
        interrupt_tval: false,
    }
}

const ADDRESS: u64 = 0x2345_6789_abcd;

#[test]
fn table_6_1_start() {
    for version in VERSIONS {
        let layout = layout(version);
        let time = 0x1a_aaaa & (u64::MAX >> (64 - layout.time_width.max(1)));
        let time = if version == DRAFT { 0 } else { time };
        for branch in [false, true] {
            let packet = Packet::Start(Start {
                branch,
                privilege: 5,
                time,
                context: 0x4d5,
                address: ADDRESS,
            });
            // 2.0 has the time between the privilege and the context.
            let fields = [
                (3, 2),
                (0, 2),
                (branch.into(), 1),
                (5, 3),
                (time, layout.time_width),
                (0x4d5, 11),
                (ADDRESS, 47),
            ];
            has_fields(&layout, packet, &fields);
        }
    }
}

/// Without `nocontext_p` and `notime_p` the fields have no bits.
#[test]
fn no_context_and_no_time() {
    for version in VERSIONS {
        let layout = Layout {
            context_width: 0,
            time_width: 0,
            ..layout(version)
        };
        let packet = Packet::Start(Start {
            branch: true,
            privilege: 3,
            address: ADDRESS,
            ..Start::default()
        });
        let fields = [(3, 2), (0, 2), (1, 1), (3, 3), (ADDRESS, 47)];
        has_fields(&layout, packet, &fields);
        let packet = Packet::Context(Context {
            privilege: 1,
            ..Context::default()
        });
        has_fields(&layout, packet, &[(3, 2), (2, 2), (1, 3)]);
    }
}

/// Draft, table 6.2: tvalepc is always there, and no thaddr.
#[test]
fn table_6_2_exception_of_the_draft() {
    let layout = layout(DRAFT);
    for interrupt in [false, true] {
        let packet = Packet::Trap(Trap {
            branch: true,
            privilege: 3,
            time: 0,
            context: 0x123,
            ecause: 0x15,
            interrupt,
            thaddr: true,
            address: Some(ADDRESS),
            tval: Some(0x8765_4321_1234),
        });
        let fields = [
            (3, 2),
            (1, 2),
            (1, 1),
            (3, 3),
            (0x123, 11),
            (0x15, 5),
            (interrupt.into(), 1),
            (ADDRESS, 47),
            (0x8765_4321_1234, 48),
        ];
        has_fields(&layout, packet, &fields);
    }
}

/// 2.0: thaddr, and tval only for exceptions.
#[test]
fn table_6_2_trap_of_2_0() {
    let layout = layout(RATIFIED);
    for thaddr in [false, true] {
        for interrupt in [false, true] {
            let tval = (!interrupt).then_some(0x8765_4321_1234);
            let packet = Packet::Trap(Trap {
                branch: false,
                privilege: 1,
                time: 0x12_3456,
                context: 0x123,
                ecause: 0x15,
                interrupt,
                thaddr,
                address: Some(ADDRESS),
                tval,
            });
            let mut fields = vec![
                (3, 2),
                (1, 2),
                (0, 1),
                (1, 3),
                (0x12_3456, 21),
                (0x123, 11),
                (0x15, 5),
                (interrupt.into(), 1),
                (thaddr.into(), 1),
                (ADDRESS, 47),
            ];
            fields.extend(tval.map(|tval| (tval, 48)));
            has_fields(&layout, packet, &fields);
        }
    }
}

/// Implicit exception mode: the handler's address is left out, an EPC is not.
#[test]
fn implicit_exception_leaves_the_handler_out() {
    for version in VERSIONS {
        let layout = Layout {
            implicit_exception: true,
            context_width: 0,
            time_width: 0,
            ..layout(version)
        };
        for thaddr in [true, false] {
            if version == DRAFT && !thaddr {
                continue;
            }
            let packet = Packet::Trap(Trap {
                branch: true,
                privilege: 3,
                ecause: 2,
                thaddr,
                address: (!thaddr).then_some(ADDRESS),
                tval: Some(0x77),
                ..Trap::default()
            });
            let mut fields = vec![(3, 2), (1, 2), (1, 1), (3, 3), (2, 5), (0, 1)];
            if version == RATIFIED {
                fields.push((thaddr.into(), 1));
            }
            if !thaddr {
                fields.push((ADDRESS, 47));
            }
            fields.push((0x77, 48));
            has_fields(&layout, packet, &fields);
        }
    }
}

#[test]
fn table_6_3_context() {
    for version in VERSIONS {
        let layout = layout(version);
        let time = if version == DRAFT { 0 } else { 0x1f_0001 };
        let packet = Packet::Context(Context {
            privilege: 6,
            time,
            context: 0x7ff,
        });
        let fields = [
            (3, 2),
            (2, 2),
            (6, 3),
            (time, layout.time_width),
            (0x7ff, 11),
        ];
        has_fields(&layout, packet, &fields);
    }
}

/// Draft: enable, encoder_mode, qual_status, options. 2.0: and what there is
/// about data trace.
#[test]
fn table_6_4_support() {
    for version in VERSIONS {
        let layout = layout(version);
        for (status, code) in [
            (QualStatus::NoChange, 0),
            (QualStatus::EndedRep, 1),
            (QualStatus::TraceLost, 2),
            (QualStatus::EndedNtr, 3),
        ] {
            for (ienable, denable, dloss) in [(true, false, true), (false, true, false)] {
                let data = (version == RATIFIED).then_some(DataSupport {
                    denable,
                    dloss,
                    doptions: 5,
                });
                let packet = Packet::Support(Support {
                    ienable,
                    encoder_mode: 2,
                    qual_status: status,
                    ioptions: 0x2a,
                    data,
                });
                let mut fields = vec![(3, 2), (3, 2), (ienable.into(), 1), (2, 2), (code, 2)];
                fields.push((0x2a, 6));
                if version == RATIFIED {
                    fields.extend([(denable.into(), 1), (dloss.into(), 1), (5, 3)]);
                }
                has_fields(&layout, packet, &fields);
            }
        }
    }
}

/// The bits behind an address, as they are sent: each is the same as the one
/// before it unless it says something.
fn tail(address: u64, report: &Report) -> Vec<(u64, u8)> {
    let msb = address >> 46 & 1;
    let notify = msb ^ u64::from(report.notify);
    let updiscon = notify ^ u64::from(report.updiscon);
    let irreport = updiscon ^ u64::from(report.irreport);
    vec![
        (address, 47),
        (notify, 1),
        (updiscon, 1),
        (irreport, 1),
        (report.irdepth.into(), 4),
    ]
}

/// Every combination of what the tail can say.
fn reports() -> Vec<(u64, Report)> {
    let mut all = Vec::new();
    for address in [0, 1, ADDRESS, (1 << 47) - 1, (1 << 47) - 4, 1 << 46] {
        for flags in 0..8u8 {
            for irdepth in [0, 5, 15] {
                let report = Report {
                    address,
                    notify: flags & 1 != 0,
                    updiscon: flags & 2 != 0,
                    irreport: flags & 4 != 0,
                    irdepth,
                };
                all.push((address, report));
            }
        }
    }
    all
}

#[test]
fn table_6_5_address() {
    for version in VERSIONS {
        for (address, report) in reports() {
            let fields = [vec![(2, 2)], tail(address, &report)].concat();
            has_fields(&layout(version), Packet::Address(report), &fields);
        }
    }
}

/// 1, 3, 7, 15 or 31 bits of map for 1, 2-3, 4-7, 8-15, 16-31 branches.
const fn map_width(branches: u8) -> u8 {
    match branches {
        1 => 1,
        2..=3 => 3,
        4..=7 => 7,
        8..=15 => 15,
        _ => 31,
    }
}

#[test]
fn table_6_6_branches_and_address() {
    for version in VERSIONS {
        let report = reports()[60];
        for count in 1..=31u8 {
            let width = map_width(count);
            let bits = 0x5d5d_5d5d & (u32::MAX >> (32 - count));
            let map = BranchMap { bits, count };
            let packet = Packet::Branches {
                map,
                address: Some(report.1),
            };
            let mut fields = vec![(1, 2), (count.into(), 5), (bits.into(), width)];
            fields.extend(tail(report.0, &report.1));
            has_fields(&layout(version), packet, &fields);
        }
    }
}

/// Without an address `branches` is 0 and the map has 31 bits.
#[test]
fn table_6_7_full_map() {
    for version in VERSIONS {
        for bits in [0, 1, 0x7fff_ffff, 0x4000_0000, 0x2aaa_5555] {
            let map = BranchMap { bits, count: 31 };
            let packet = Packet::Branches { map, address: None };
            let fields = [(1, 2), (0, 5), (bits.into(), 31)];
            has_fields(&layout(version), packet, &fields);
        }
    }
}

/// "The 12 LSBs are valid": what is above them is nobody's business.
#[test]
fn map_bits_above_the_count() {
    let layout = layout(RATIFIED);
    let report = reports()[60];
    let mut fields = vec![(1, 2), (12, 5), (0x7000 | 0xabc, 15)];
    fields.extend(tail(report.0, &report.1));
    let map = BranchMap {
        bits: 0xabc,
        count: 12,
    };
    let address = Some(report.1);
    let packet = Packet::Branches { map, address };
    let bytes = Bits::of(&fields).whole();
    assert_eq!(Packet::read(&bytes, &layout), Ok(packet));
}

/// branch_fmt 00 has no address; 10 and 11 have one; 01 is none of them.
#[test]
fn tables_6_8_and_6_9_branch_count() {
    for version in VERSIONS {
        let layout = layout(version);
        for branch_count in [0, 1, 0x1234_5678, u32::MAX] {
            let head = vec![(0, 2), (0, 1), (branch_count.into(), 32)];
            let packet = Packet::BranchCount {
                branch_count,
                address: None,
            };
            has_fields(&layout, packet, &[head.clone(), vec![(0, 2)]].concat());
            for failed in [false, true] {
                let (address, report) = reports()[60];
                let packet = Packet::BranchCount {
                    branch_count,
                    address: Some((failed, report)),
                };
                let fmt = vec![(2 + u64::from(failed), 2)];
                let fields = [head.clone(), fmt, tail(address, &report)].concat();
                has_fields(&layout, packet, &fields);
            }
            let reserved = [head, vec![(1, 2), (3, 20)]].concat();
            let read = Packet::read(&Bits::of(&reserved).whole(), &layout);
            assert_eq!(read, Err(Fault::UnknownBranchFmt));
        }
    }
}

/// With a map and without; irreport is relative to the bit before it.
#[test]
fn tables_6_10_and_6_11_jump_target() {
    for version in VERSIONS {
        let layout = layout(version);
        for irreport in [false, true] {
            let packet = Packet::JumpTarget {
                index: 0x55,
                map: BranchMap::default(),
                irreport,
                irdepth: 9,
            };
            // branches[MSB] is 0.
            let fields = [
                (0, 2),
                (1, 1),
                (0x55, 7),
                (0, 5),
                (irreport.into(), 1),
                (9, 4),
            ];
            has_fields(&layout, packet, &fields);
            for count in 1..=31u8 {
                let width = map_width(count);
                let bits = 0x5d5d_5d5d & (u32::MAX >> (32 - count));
                let map = BranchMap { bits, count };
                let packet = Packet::JumpTarget {
                    index: 0x55,
                    map,
                    irreport,
                    irdepth: 9,
                };
                // Bits that are not valid repeat the last outcome, so that they compress away.
                let msb = u64::from(bits >> (count - 1) & 1);
                let invalid = (u64::MAX << count) & (u64::MAX >> (64 - width));
                let filled = u64::from(bits) | (invalid * msb);
                let fields = [
                    (0, 2),
                    (1, 1),
                    (0x55, 7),
                    (count.into(), 5),
                    (filled, width),
                    (msb ^ u64::from(irreport), 1),
                    (9, 4),
                ];
                has_fields(&layout, packet, &fields);
            }
        }
    }
}

/// 6.8.1: where there is only one kind of format 0 it needs no subformat.
#[test]
fn section_6_8_1_subformat_of_format_0() {
    for version in VERSIONS {
        let count = Packet::BranchCount {
            branch_count: 7,
            address: None,
        };
        let index = Packet::JumpTarget {
            index: 0x55,
            map: BranchMap::default(),
            irreport: false,
            irdepth: 0,
        };
        let count_fields = [(7, 32), (0, 2)];
        let index_fields = [(0x55, 7), (0, 5), (0, 1), (0, 4)];
        for width in 0..=2 {
            let f0s_width = width;
            let head = |code| vec![(0, 2), (code, width)];
            let only_count = Layout {
                cache_size: 0,
                f0s_width,
                ..layout(version)
            };
            has_fields(&only_count, count, &[&head(0), &count_fields[..]].concat());
            let only_index = Layout {
                bpred_size: 0,
                f0s_width,
                ..layout(version)
            };
            has_fields(&only_index, index, &[&head(1), &index_fields[..]].concat());
            let neither = Layout {
                bpred_size: 0,
                cache_size: 0,
                f0s_width,
                ..layout(version)
            };
            let bytes = Bits::of(&[(0, 2), (0, 6)]).whole();
            let read = Packet::read(&bytes, &neither);
            assert_eq!(read, Err(Fault::UnknownSubformat));
        }
        // A third kind nobody has.
        let wide = Layout {
            f0s_width: 2,
            ..layout(version)
        };
        let bytes = Bits::of(&[(0, 2), (2, 2), (0, 4)]).whole();
        assert_eq!(Packet::read(&bytes, &wide), Err(Fault::UnknownSubformat));
    }
}

/// irdepth: return_stack_size + 1 if there is one, + call_counter_size bits.
#[test]
fn width_of_irdepth() {
    for (stack, counter, width) in [(0, 0, 0), (7, 0, 8), (0, 9, 9), (1, 0, 2), (3, 2, 6)] {
        let config = Config {
            return_stack_size: stack,
            call_counter_size: counter,
            ..plain(RATIFIED)
        };
        assert_eq!(config.layout().irdepth_width, width);
    }
}

/// 6.6.2, 6.6.3: the tail takes no bits while it says nothing, whatever the
/// sign of the address; and irdepth goes with it.
#[test]
fn a_tail_that_says_nothing_is_compressed_away() {
    let layout = layout(RATIFIED);
    for (address, bytes) in [(4, 1), ((1 << 47) - 4, 1), (0x1f, 1), (0x20, 2)] {
        let mut report = Report {
            address,
            ..Report::default()
        };
        report.irdepth = report.idle_irdepth(&layout);
        let payload = Packet::Address(report).write(&layout);
        assert_eq!(payload.bytes().len(), bytes, "{address:x}");
        report.updiscon = true;
        let payload = Packet::Address(report).write(&layout);
        assert!(payload.bytes().len() > 6, "{address:x}");
    }
}

/// Compression may take everything but one byte; less than a whole byte is
/// filled with the sign.
#[test]
fn sign_based_compression() {
    let config = plain(RATIFIED);
    let layout = config.layout();
    let short = |packet: Packet| packet.write(&layout).bytes().to_vec();
    assert_eq!(short(support(QualStatus::NoChange)), [0x1f]);
    assert_eq!(short(address(&config, 0)), [0x02]);
    assert_eq!(short(address(&config, -2)), [0xfe]);
    assert_eq!(short(full_map(&"T".repeat(31))), [0x01]);
    assert_eq!(short(full_map(&"N".repeat(31))), [0x81]);
    // A map whose sign the address does not share.
    assert_eq!(short(branches(&config, "N", 2)), [0x85, 0x01]);
    assert_eq!(short(branches(&config, "T", -2)), [0x05, 0xff]);
    // One byte is a packet of any format but 0, which there is none of here. A
    // context has six bits only, and the rest must repeat the last.
    for byte in 0..=u8::MAX {
        let packet = Packet::read(&[byte], &layout);
        let filled = byte & 0xf != 0xb || matches!(byte >> 5, 0 | 7);
        assert_eq!(packet.is_ok(), byte & 3 != 0 && filled, "{byte:x}");
        if let Ok(packet) = packet {
            let again = packet.write(&layout);
            assert_eq!(Packet::read(again.bytes(), &layout), Ok(packet));
        }
    }
}

/// An encoder may compress the address only, and transports may send more
/// bytes than there are: copies of the sign are no error, anything else is.
#[test]
fn uncompressed_packets() {
    let layout = layout(RATIFIED);
    for sign in [0, 0xff] {
        let field = if sign == 0 { 4 } else { (1 << 47) - 4 };
        let report = Report {
            address: field,
            irdepth: if sign == 0 { 0 } else { 15 },
            ..Report::default()
        };
        let whole = Bits::of(&[vec![(2, 2)], tail(field, &report)].concat()).whole();
        for more in 0..20 {
            let mut bytes = whole.clone();
            bytes.extend(vec![sign; more]);
            assert_eq!(Packet::read(&bytes, &layout), Ok(Packet::Address(report)));
            bytes.push(0x5a);
            assert_eq!(Packet::read(&bytes, &layout), Err(Fault::ExtraBits));
        }
    }
    assert_eq!(Packet::read(&[], &layout), Err(Fault::EmptyPacket));
}

/// Headers: five bits of length, two of kind, one for a timestamp that is not
/// there.
#[test]
fn headers_of_the_stream() {
    let config = plain(RATIFIED);
    let mut bytes = Vec::new();
    let payload = address(&config, 0x1_0000).write(&config.layout());
    payload.write_framed(Kind::Instruction, &mut bytes);
    payload.write_framed(Kind::Data, &mut bytes);
    assert_eq!(bytes, [0x43, 0x02, 0, 0x02, 0x63, 0x02, 0, 0x02]);
    let mut framer = Framer::new();
    let mut rest = &bytes[..];
    for (at, kind) in [(0, Kind::Instruction), (4, Kind::Data)] {
        let piece = Piece::Packet(Encapsulated {
            src: 0,
            kind,
            time: None,
            payload: &[0x02, 0, 0x02],
            len: 4,
        });
        assert_eq!(framer.next_piece(&mut rest), Some((at, piece)));
    }
    // Every length there is, byte by byte and in one go.
    let mut stream = Vec::new();
    for len in 1..=MAX_PAYLOAD {
        stream.push(0x40 | len as u8);
        stream.extend(vec![0x01; len]);
    }
    for step in [1, 7, stream.len()] {
        let mut framer = Framer::new();
        let mut lengths = Vec::new();
        for mut chunk in stream.chunks(step) {
            while let Some((_, piece)) = framer.next_piece(&mut chunk) {
                let Piece::Packet(Encapsulated {
                    src: 0,
                    kind: Kind::Instruction,
                    payload,
                    ..
                }) = piece
                else {
                    panic!("{piece:?}");
                };
                lengths.push(payload.len());
            }
        }
        assert!(lengths.iter().copied().eq(1..=MAX_PAYLOAD), "{step}");
        assert_eq!(framer.finish(), None);
    }
}

/// A payload has at most 31 bytes and 32 zeros cannot be inside one: whoever
/// looks for the first byte behind them finds a header.
#[test]
fn thirty_two_zeros_are_between_packets() {
    let config = plain(RATIFIED);
    let layout = config.layout();
    assert!(layout.longest() <= 8 * MAX_PAYLOAD);
    let mut bytes = vec![0x42, 0x13];
    bytes.extend([0; 33]);
    let next = bytes.len();
    bytes.extend(stream(&config, &[support(QualStatus::NoChange)]));
    // In the middle of the first packet, and of the zeros.
    for from in 1..next {
        let mut framer = Framer::new();
        let mut rest = &bytes[from..];
        let mut found = None;
        while let Some((at, piece)) = framer.next_piece(&mut rest) {
            if let Piece::Packet(..) = piece {
                found = found.or(Some(at as usize + from));
            }
        }
        assert_eq!(found, Some(next), "{from}");
    }
}

/// Blocks of memory that begin with a packet are filled up with zeros.
#[test]
fn blocks_of_memory_are_padded() {
    let config = plain(RATIFIED);
    let image = rv64(&[(0x1000, &[crate::common::asm::ADD; 64])]);
    let pcs: Vec<u64> = (0x1000..0x1080).step_by(4).collect();
    let plain_bytes = encode(&config, &image, &go(&pcs));
    let mut padded = Vec::new();
    for piece in pieces(&plain_bytes) {
        padded.extend(piece);
        padded.resize(padded.len().next_multiple_of(64), 0);
    }
    assert_eq!(
        decode(&config, &image, &padded),
        decode(&config, &image, &plain_bytes)
    );
}

/// Places to begin: packets with the address of an instruction that retired.
#[test]
fn synchronisation_packets() {
    let config = plain(RATIFIED);
    let packets = [
        support(QualStatus::NoChange),
        start(&config, 0x1000),
        address(&config, 4),
        Packet::Trap(trap(&config, 2, false, 0x1004)),
        Packet::Trap(trap(&config, 2, true, 0x2000)),
        Packet::Context(Context::default()),
    ];
    let bytes = stream(&config, &packets);
    let read = crate::common::packets(&config, &bytes);
    let syncs: Vec<usize> = (0..read.len()).filter(|&n| read[n].is_sync()).collect();
    // "Format 3 subformat 0 and 1": of the latter, those with a handler.
    assert_eq!(syncs, [1, 4]);
}
