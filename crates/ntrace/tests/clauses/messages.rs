//! Clauses about bytes, fields and messages: chapters 3, 6, 7 and the encoding
//! parts of 8 and 9. docs/ntrace-clauses.md says which test is for which.

use crate::common::*;
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Image, Mode};
use hartrace_isa::Xlen;
use hartrace_ntrace::{
    Body, Btype, Config, Evcode, Fault, Framer, Layout, Message, Owner, Piece, Process, Sync,
    Tcode, Timestamps, Version,
};

fn written(body: Body<'_>, tstamp: Option<u64>, layout: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    let src = 0;
    Message { src, body, tstamp }.write(layout, &mut bytes);
    bytes
}

fn read(bytes: &[u8]) -> Result<Body<'_>, Fault> {
    Message::read(bytes, &Layout::default()).map(|m| m.body)
}

/// The kinds of pieces in some bytes.
fn pieces(bytes: &[u8]) -> Vec<String> {
    let mut framer = Framer::new();
    let mut rest = bytes;
    let mut all = Vec::new();
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        all.push(match piece {
            Piece::Message(m) => format!("{at} message {}", m.len()),
            Piece::Idle(n) => format!("{at} idle {n}"),
            Piece::Bad(fault, n) => format!("{at} {} {n}", fault.code()),
        });
    }
    if let Some((at, Piece::Bad(fault, n))) = framer.finish() {
        all.push(format!("{at} {} {n}", fault.code()));
    }
    all
}

const TABLE_6: [u8; 6] = [0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff];

#[test]
fn table_6_byte_by_byte() {
    let body = Body::IndirectBranchHist {
        btype: Btype::Indirect,
        icnt: 0x7d,
        uaddr: 7,
        hist: 0xffe,
    };
    assert_eq!(read(&TABLE_6), Ok(body));
    assert_eq!(written(body, None, &Layout::default()), TABLE_6);
}

/// The byte 0xff in front of the message is idle, the one at its end belongs to
/// it, the one behind is idle.
#[test]
fn table_6_idle_bytes() {
    let mut bytes = vec![0xff];
    bytes.extend(TABLE_6);
    bytes.push(0xff);
    assert_eq!(pieces(&bytes), ["0 idle 1", "1 message 6", "7 idle 1"]);
}

#[test]
fn table_6_with_tstamp() {
    let mut bytes = TABLE_6.to_vec();
    bytes[5] = 0xfd;
    bytes.push(0x17);
    let message = Message::read(&bytes, &Layout::default()).unwrap();
    assert_eq!(message.tstamp, Some(5));
    assert_eq!(Ok(message.body), read(&TABLE_6));
}

/// Table 5: what may follow what.
#[test]
fn mseo_transitions() {
    assert_eq!(
        pieces(&[0x0c, 0x0f, 0x0c, 0x0f]),
        ["0 message 2", "2 message 2"]
    );
    assert_eq!(pieces(&[0x24, 0x0d, 0x01, 0x0b]), ["0 message 4"]);
    assert_eq!(pieces(&[0xff, 0xff]), ["0 idle 2"]);
    // 10 is reserved everywhere.
    assert_eq!(pieces(&[0x0c, 0x0e, 0x0f]), ["0 NT0101 3"]);
    assert_eq!(
        pieces(&[0x0e, 0x0f, 0x0c, 0x0f]),
        ["0 NT0101 2", "2 message 2"]
    );
    // So is 01 behind 11 (1.0).
    assert_eq!(
        pieces(&[0x0c, 0x0f, 0x0d, 0x0f]),
        ["0 message 2", "2 NT0103 2"]
    );
    // 11 behind 11 is idle, which is 0xff.
    assert_eq!(pieces(&[0x0c, 0x0f, 0x0f]), ["0 message 2", "2 NT0102 1"]);
}

/// MSEO in bits 1:0, MDO in bits 7:2, low bits first; fields that do not end on
/// a byte share it.
#[test]
fn bits_and_bytes_low_first() {
    let layout = Layout {
        src_bits: 4,
        ..Layout::default()
    };
    let mut bytes = Vec::new();
    let body = Body::DirectBranch { icnt: 0b100_0011 };
    Message {
        src: 0b1001,
        body,
        tstamp: None,
    }
    .write(&layout, &mut bytes);
    // TCODE 3; SRC 1001 and the two low bits of I-CNT; the rest of I-CNT.
    assert_eq!(bytes, [3 << 2, 0b11_1001 << 2, 0b01_0000 << 2 | 3]);
    assert_eq!(Message::head(&bytes, &layout), Some((Tcode(3), 9)));
}

/// SRC is the second field of every message, whatever its type.
#[test]
fn src_of_any_message() {
    for src_bits in 0..=12u8 {
        let layout = Layout {
            src_bits,
            ..Layout::default()
        };
        let src = 0xa5a & ((1 << src_bits) - 1);
        for body in one_of_each() {
            let mut bytes = Vec::new();
            Message::new(src, body).write(&layout, &mut bytes);
            assert_eq!(Message::head(&bytes, &layout), Some((body.tcode(), src)));
            assert_eq!(Message::read(&bytes, &layout), Ok(Message::new(src, body)));
        }
    }
}

fn one_of_each() -> [Body<'static>; 14] {
    let (sync, btype, icnt) = (Sync::PERIODIC, Btype::Interrupt, 0x2a);
    let (uaddr, faddr, hist) = (0x123, 0x4567, 0x2d);
    [
        Body::Ownership { process: 0x3b2 },
        Body::DirectBranch { icnt },
        Body::IndirectBranch { btype, icnt, uaddr },
        Body::Error { etype: 0, ecode: 4 },
        Body::ProgTraceSync { sync, icnt, faddr },
        Body::DirectBranchSync { sync, icnt, faddr },
        Body::IndirectBranchSync {
            sync,
            btype,
            icnt,
            faddr,
        },
        Body::IcntFull { icnt },
        Body::HistFull { hist },
        Body::HistRepeat { hist, count: 9 },
        Body::IndirectBranchHist {
            btype,
            icnt,
            uaddr,
            hist,
        },
        Body::IndirectBranchHistSync {
            sync,
            btype,
            icnt,
            faddr,
            hist,
        },
        Body::RepeatBranch { count: 7 },
        Body::ProgTraceCorrelation {
            evcode: Evcode::LOW_POWER,
            icnt,
            hist: Some(hist),
        },
    ]
}

/// Table 8: the TCODEs, and the fields behind them in their order.
#[test]
fn table_8_tcodes_and_field_order() {
    let expected: [(u8, &[u8]); 14] = [
        (2, &[0b11_0010 << 2, 0b00_1110 << 2 | 3]),
        (3, &[0x2a << 2 | 3]),
        // B-TYPE 3, I-CNT 0x2a, U-ADDR 0x123.
        (
            4,
            &[0b10_1011 << 2, 0b00_0010 << 2 | 1, 0x23 << 2, 0x04 << 2 | 3],
        ),
        (8, &[0b00_0000 << 2, 0b00_0001 << 2 | 3]),
        // SYNC 2, I-CNT 0x2a, F-ADDR 0x4567.
        (
            9,
            &[
                0b10_0010 << 2,
                0b00_1010 << 2 | 1,
                0x27 << 2,
                0x15 << 2,
                0x04 << 2 | 3,
            ],
        ),
        (
            11,
            &[
                0b10_0010 << 2,
                0b00_1010 << 2 | 1,
                0x27 << 2,
                0x15 << 2,
                0x04 << 2 | 3,
            ],
        ),
        (
            12,
            &[
                0b11_0010 << 2,
                0x2a << 2 | 1,
                0x27 << 2,
                0x15 << 2,
                0x04 << 2 | 3,
            ],
        ),
        (27, &[0b10_0000 << 2, 0b00_1010 << 2 | 3]),
        (27, &[0b01_0001 << 2, 0b00_1011 << 2 | 3]),
        (27, &[0b01_0010 << 2, 0b00_1011 << 2 | 1, 9 << 2 | 3]),
        (
            28,
            &[
                0b10_1011 << 2,
                0b00_0010 << 2 | 1,
                0x23 << 2,
                0x04 << 2 | 1,
                0x2d << 2 | 3,
            ],
        ),
        (
            29,
            &[
                0b11_0010 << 2,
                0x2a << 2 | 1,
                0x27 << 2,
                0x15 << 2,
                0x04 << 2 | 1,
                0x2d << 2 | 3,
            ],
        ),
        (30, &[7 << 2 | 3]),
        // EVCODE 1, CDF 1.
        (33, &[0b01_0001 << 2, 0x2a << 2 | 1, 0x2d << 2 | 3]),
    ];
    for (body, (tcode, fields)) in one_of_each().into_iter().zip(expected) {
        let bytes = written(body, None, &Layout::default());
        assert_eq!(bytes[0], tcode << 2, "{body:?}");
        assert_eq!(bytes[1..], *fields, "{body:?}");
        assert_eq!(read(&bytes), Ok(body));
    }
}

/// TSTAMP may end any message and starts on a byte.
#[test]
fn tstamp_ends_any_message() {
    for body in one_of_each() {
        let plain = written(body, None, &Layout::default());
        let mut stamped = written(body, Some(0x41), &Layout::default());
        assert_eq!(stamped.split_off(plain.len()), [1 << 2, 1 << 2 | 3]);
        let (last, rest) = stamped.split_last().unwrap();
        assert_eq!(*rest, plain[..plain.len() - 1]);
        assert_eq!(last & 3, 1, "{body:?}");
    }
}

/// Table 24.
#[test]
fn table_24_address_fields() {
    let layout = Layout::default();
    let reference = 0x3fc04u64;
    let start = sync(Sync::DEBUG_EXIT, 0, reference);
    assert_eq!(
        start,
        Body::ProgTraceSync {
            sync: Sync::DEBUG_EXIT,
            icnt: 0,
            faddr: 0x1fe02
        }
    );
    let first = jump(1, reference, 0x3f368);
    let second = jump(1, 0x3f368, 0x3e100);
    let uaddr = |body| match body {
        Body::IndirectBranch { uaddr, .. } => uaddr,
        _ => 0,
    };
    assert_eq!((uaddr(first), uaddr(second)), (0x7b6, 0x934));
    assert_eq!(
        written(first, None, &layout)[2..],
        [0x36 << 2, 0x1e << 2 | 3]
    );
    assert_eq!(
        written(second, None, &layout)[2..],
        [0x34 << 2, 0x24 << 2 | 3]
    );
}

/// The address bytes of 8.2.1 and 9.1.4, and the values they stand for.
fn address_examples() -> [(Vec<u8>, u64); 4] {
    let bits = |mdo: &[u8]| {
        let mut bytes: Vec<u8> = mdo.iter().map(|m| m << 2).collect();
        *bytes.last_mut().unwrap() |= 1;
        bytes
    };
    let ones = 0b111111;
    [
        (
            bits(&[ones, ones, ones, ones, ones, 0b011111]),
            0xf_ffff_fffe,
        ),
        (
            bits(&[ones, ones, ones, ones, 0b011111, 0b111100]),
            0xffff_fffe_3fff_fffe,
        ),
        (
            bits(&[ones, ones, ones, ones, ones, ones, 0]),
            0x1f_ffff_fffe,
        ),
        (
            bits(&[
                ones, ones, ones, ones, ones, ones, ones, ones, ones, ones, 0b000101,
            ]),
            0xbfff_ffff_ffff_fffe,
        ),
    ]
}

#[test]
fn extended_address_examples() {
    let layout = Layout {
        extend_addr_msb: true,
        ..Layout::default()
    };
    for (address, value) in address_examples() {
        let body = sync(Sync::DEBUG_EXIT, 0, value);
        let mut expected = vec![0x24, 0x0d];
        expected.extend(&address);
        expected.push(0x03);
        let bytes = written(body, Some(0), &layout);
        assert_eq!(bytes, expected, "{value:#x}");
        let message = Message::read(&bytes, &layout).unwrap();
        assert_eq!(message.body, body, "{value:#x}");
    }
}

/// Without the option the upper bits are zero and eleven bytes are needed.
#[test]
fn kernel_address_without_extension() {
    let kernel = 0xffff_ffff_8000_31f4u64;
    let body = sync(Sync::DEBUG_EXIT, 0, kernel);
    let bytes = written(body, None, &Layout::default());
    assert_eq!(bytes.len(), 2 + 11);
    assert_eq!(
        read(&bytes),
        Ok(Body::ProgTraceSync {
            sync: Sync::DEBUG_EXIT,
            icnt: 0,
            faddr: 0x7fff_ffff_c000_18fa
        })
    );
    let layout = Layout {
        extend_addr_msb: true,
        ..Layout::default()
    };
    let short = written(body, None, &layout);
    assert_eq!(short.len(), 2 + 6, "32 bits and the one that is extended");
    assert_eq!(Message::read(&short, &layout).unwrap().body, body);
}

/// On RV32 the extension ends at bit 31.
#[test]
fn extension_on_rv32_ends_at_bit_31() {
    let layout = Layout {
        extend_addr_msb: true,
        xlen: Xlen::Rv32,
        ..Layout::default()
    };
    let body = sync(Sync::DEBUG_EXIT, 0, 0xffff_fffe);
    let bytes = written(body, None, &layout);
    assert_eq!(bytes, [0x24, 0x0d, 0xff]);
    assert_eq!(Message::read(&bytes, &layout).unwrap().body, body);
}

/// Any number of equal bits may be left out (1.0): longer forms mean the same.
#[test]
fn extended_addresses_may_be_longer() {
    let layout = Layout {
        extend_addr_msb: true,
        ..Layout::default()
    };
    for sent in 1..=10 {
        let mut bytes = vec![0x24, 0x0d];
        bytes.extend(vec![0xfc; sent]);
        *bytes.last_mut().unwrap() = 0xff;
        let expected = sync(Sync::DEBUG_EXIT, 0, 0xffff_ffff_ffff_fffe);
        assert_eq!(Message::read(&bytes, &layout).map(|m| m.body), Ok(expected));
    }
    // Eleven bytes have three bits above the address: zero, or ones.
    for (rest, last, good) in [(0xfc, 0x1f, true), (0xfc, 0xff, true), (0x00, 0x23, false)] {
        let mut bytes = vec![0x24, 0x0d];
        bytes.extend(vec![rest; 10]);
        bytes.push(last);
        assert_eq!(Message::read(&bytes, &layout).is_ok(), good, "{last:#x}");
    }
}

/// The examples of 7.1.
#[test]
fn process_examples() {
    let user = Process {
        mode: Mode::VU,
        owner: Owner::Scontext(0x1d),
    };
    let machine = Process {
        mode: Mode::M,
        owner: Owner::Mode,
    };
    assert_eq!((user.field(), machine.field()), (0x3b2, 0xc));
    assert_eq!(Process::from_field(0x3b2), Ok(user));
    assert_eq!(Process::from_field(0xc), Ok(machine));
    let body = Body::Ownership { process: 0x3b2 };
    assert_eq!(written(body, None, &Layout::default()), [0x08, 0xc8, 0x3b]);
}

/// Table 12 and the modes below it.
#[test]
fn process_fields() {
    let modes = [
        (Mode::U, 0, 0),
        (Mode::S, 0, 1),
        (Mode::M, 0, 3),
        (Mode::VU, 1, 0),
    ];
    for (mode, v, prv) in modes.into_iter().chain([(Mode::VS, 1, 1)]) {
        for (owner, format, context) in [
            (Owner::Mode, 0, 0),
            (Owner::Scontext(0x1234), 2, 0x1234),
            (Owner::Hcontext(7), 3, 7),
        ] {
            let process = Process { mode, owner };
            assert_eq!(process.field(), context << 5 | v << 4 | prv << 2 | format);
            assert_eq!(Process::from_field(process.field()), Ok(process));
        }
    }
}

/// "All unused encodings are reserved."
#[test]
fn process_reserved() {
    for prv in 0..4u64 {
        let format_01 = prv << 2 | 1;
        assert_eq!(Process::from_field(format_01), Err(Fault::UnknownProcess));
    }
    for mode in [0b010, 0b110, 0b111u64] {
        assert_eq!(
            Process::from_field(mode << 2 | 2),
            Err(Fault::UnknownProcess)
        );
    }
}

/// HIST has its stop bit on top; 0 is none.
#[test]
fn hist_has_a_stop_bit() {
    // RCODE 1 and the two low bits of HIST, then the rest.
    for (hist, bytes) in [
        (0x5, [0b01_0001 << 2, 0b1 << 2 | 3].as_slice()),
        (0xf, &[0b11_0001 << 2, 0b11 << 2 | 3]),
        (0x10, &[0b00_0001 << 2, 0b100 << 2 | 3]),
        (0x1, &[0b01_0001 << 2 | 3]),
    ] {
        let body = Body::HistFull { hist };
        let sent = written(body, None, &Layout::default());
        assert_eq!(sent[1..], *bytes, "{hist:#x}");
        assert_eq!(read(&sent), Ok(body));
    }
    assert_eq!(read(&[27 << 2, 0b00_0001 << 2 | 3]), Err(Fault::EmptyHist));
}

/// RCODE says how many fields there are, so that TSTAMP is found.
#[test]
fn rcode_decides_what_the_second_field_is() {
    let two = [27 << 2, 0b01_0001 << 2, 0b00_1011 << 2 | 1, 9 << 2 | 3];
    let message = Message::read(&two, &Layout::default()).unwrap();
    assert_eq!(
        (message.body, message.tstamp),
        (Body::HistFull { hist: 0x2d }, Some(9))
    );
    let mut repeated = two;
    repeated[1] = 0b01_0010 << 2;
    let message = Message::read(&repeated, &Layout::default()).unwrap();
    let body = Body::HistRepeat {
        hist: 0x2d,
        count: 9,
    };
    assert_eq!((message.body, message.tstamp), (body, None));
    for rcode in 3..16u8 {
        assert_eq!(read(&[27 << 2, rcode << 2, 3]), Err(Fault::UnknownRcode));
    }
}

/// CDF says whether HIST is there.
#[test]
fn cdf_decides_whether_hist_is_there() {
    let read = |cdf: u8| {
        let bytes = [33 << 2, (cdf << 4) << 2, 0x0a << 2 | 1, 3 << 2 | 3];
        let message = Message::read(&bytes, &Layout::default())?;
        match message.body {
            Body::ProgTraceCorrelation { icnt: 10, hist, .. } => Ok((hist, message.tstamp)),
            _ => Err(Fault::ExtraField),
        }
    };
    assert_eq!(read(0), Ok((None, Some(3))));
    assert_eq!(read(1), Ok((Some(3), None)));
    assert_eq!(read(2), Err(Fault::UnknownCdf));
    assert_eq!(read(3), Err(Fault::UnknownCdf));
}

/// ECODE is always there, so that TSTAMP starts on a byte (12).
#[test]
fn ecode_is_of_variable_length() {
    let body = Body::Error { etype: 0, ecode: 0 };
    let bytes = written(body, Some(1), &Layout::default());
    assert_eq!(bytes, [8 << 2, 1, 1 << 2 | 3]);
    assert_eq!(read(&[8 << 2, 3]), Ok(body));
}

/// Every SYNC, B-TYPE and EVCODE is read, reserved ones too.
#[test]
fn codes_are_read_whatever_they_are() {
    for code in 0..16u8 {
        let body = sync(Sync(code), 0, 0x100);
        assert_eq!(read(&written(body, None, &Layout::default())), Ok(body));
        let body = stop(Evcode(code), 0, None);
        assert_eq!(read(&written(body, None, &Layout::default())), Ok(body));
    }
    for code in 0..4u8 {
        assert_eq!(Btype::from_bits(code).bits(), code);
    }
}

/// The longest message of the largest fields (chapter 3).
#[test]
fn longest_message() {
    let layout = Layout {
        src_bits: 12,
        ..Layout::default()
    };
    let mut bytes = Vec::new();
    let body = Body::IndirectBranchHistSync {
        sync: Sync(15),
        btype: Btype::Interrupt,
        icnt: (1 << 30) - 1,
        faddr: u64::MAX >> 1,
        hist: u64::from(u32::MAX),
    };
    let message = Message {
        src: 0xfff,
        body,
        tstamp: Some(u64::MAX),
    };
    message.write(&layout, &mut bytes);
    assert!(bytes.len() <= 38, "{}", bytes.len());
    assert_eq!(Message::read(&bytes, &layout), Ok(message));
}

/// Fields may be longer than they need, and are refused only where bits do not
/// fit.
#[test]
fn padded_fields() {
    let padded = [0x0c, 3 << 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(read(&padded), Ok(direct(3)));
    // 66 bits of address, the top three not zero.
    let mut bytes = vec![0x24, 0x0d];
    bytes.extend([0; 10]);
    bytes.push(0b001000 << 2 | 3);
    assert_eq!(read(&bytes), Err(Fault::FieldTooWide));
}

/// Bad messages of every kind.
#[test]
fn message_faults() {
    assert_eq!(read(&[0x24, 0x0d, 0x03]).map(|_| ()), Ok(()));
    assert_eq!(read(&[0x24, 0x0f]), Err(Fault::MissingField));
    assert_eq!(read(&[0x0d, 0x0f]), Err(Fault::CutField));
    assert_eq!(read(&[0x0c, 0x0d, 0x0d, 0x0f]), Err(Fault::ExtraField));
}

/// Zeros for ever: survived, and reported once.
#[test]
fn zeros_are_one_long_message() {
    let zeros = vec![0; 100_000];
    assert_eq!(pieces(&zeros), ["0 NT0104 100000"]);
    let config = Config {
        timestamps: Some(Timestamps::default()),
        ..htm(Version::V1_0)
    };
    let events = decode(&config, &Image::new(), &zeros);
    assert_eq!(events.codes(), ["NT0104"]);
}

/// Vendor and reserved messages: type and source are known, the rest is not.
#[test]
fn vendor_and_reserved_messages() {
    let layout = Layout {
        src_bits: 4,
        ..Layout::default()
    };
    for tcode in (56..=62u8).chain([0, 1, 5, 32, 63]) {
        let bytes = [tcode << 2, 0x24, 0xa9, 0x01, 0x00, 0x7f];
        let message = Message::read(&bytes, &layout).unwrap();
        assert_eq!(message.src, 9);
        assert_eq!(
            message.body,
            Body::Other {
                tcode: Tcode(tcode),
                bytes: &bytes
            }
        );
        assert_eq!(Tcode(tcode).is_vendor(), (56..=62).contains(&tcode));
    }
}

/// A vendor's message may be longer than 38 bytes (1.0).
#[test]
fn vendor_messages_may_be_long() {
    let mut bytes = vec![60 << 2];
    bytes.extend([0x54; 200]);
    bytes.push(0x57);
    assert_eq!(pieces(&bytes), ["0 message 202"]);
    assert!(matches!(read(&bytes), Ok(Body::Other { .. })));
}
