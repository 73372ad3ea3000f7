use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::testing::{KINDS, RandomMessages as _, body, layouts, written};
use crate::{Owner, Process};
use hartrace_testkit::Random;

const RV64: Layout = Layout {
    src_bits: 0,
    xlen: Xlen::Rv64,
    extend_addr_msb: false,
};
const RV32: Layout = Layout {
    xlen: Xlen::Rv32,
    ..RV64
};
const RV64_MSB: Layout = Layout {
    extend_addr_msb: true,
    ..RV64
};
const RV32_MSB: Layout = Layout {
    extend_addr_msb: true,
    ..RV32
};

fn read<'a>(bytes: &'a [u8], layout: &Layout) -> Result<Message<'a>, Fault> {
    Message::read(bytes, layout)
}

/// One message of each kind, with fields that take more than a byte.
fn each_kind() -> impl Iterator<Item = Body<'static>> {
    (0..KINDS).map(|kind| {
        body(
            kind,
            0x7d,
            0x1fe02,
            0xffe,
            1000,
            Sync::PERIODIC,
            Btype::Interrupt,
            Evcode::DISABLED,
        )
    })
}

#[test]
fn table_6_line_by_line() {
    let lines = [
        (0x70u8, 0b01_1100, 0b00),
        (0xd0, 0b11_0100, 0b00),
        (0x1d, 0b00_0111, 0b01),
        (0x1d, 0b00_0111, 0b01),
        (0xf8, 0b11_1110, 0b00),
        (0xff, 0b11_1111, 0b11),
    ];
    let bytes: Vec<u8> = lines
        .iter()
        .map(|&(_, mdo, mseo)| mdo << 2 | mseo)
        .collect();
    assert_eq!(bytes, lines.map(|l| l.0));
    let mut fields = Fields::new(&bytes);
    assert_eq!(fields.fixed(6), Ok(28), "TCODE[6]");
    assert_eq!(fields.fixed(2), Ok(0), "BTYPE[2]");
    let icnt = fields.var().unwrap();
    assert_eq!((icnt.value, icnt.bits), (0x7d, 10), "ICNT[10]");
    let uaddr = fields.var().unwrap();
    assert_eq!((uaddr.value, uaddr.bits), (7, 6), "UADDR[6]");
    let hist = fields.var().unwrap();
    assert_eq!((hist.value, hist.bits), (0xffe, 12), "HIST[12]");
    assert!(fields.is_end());
    let message = Message::new(
        0,
        Body::IndirectBranchHist {
            btype: Btype::Indirect,
            icnt: 0x7d,
            uaddr: 7,
            hist: 0xffe,
        },
    );
    assert_eq!(read(&bytes, &RV64), Ok(message));
    assert_eq!(written(&message, &RV64), bytes);
    // "Here we could have TSTAMP": MSEO of the byte before becomes 01.
    let stamped = Message {
        tstamp: Some(5),
        ..message
    };
    let longer = [0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xfd, 5 << 2 | 3];
    assert_eq!(written(&stamped, &RV64), longer);
    assert_eq!(read(&longer, &RV64), Ok(stamped));
}

#[test]
fn table_24_address_compression() {
    let full = Message::new(
        0,
        Body::ProgTraceSync {
            sync: Sync::RESET,
            icnt: 0,
            faddr: 0x3fc04 >> 1,
        },
    );
    // 0x1fe02 in 6-bit groups from the low end: 02, 38, 1f.
    assert_eq!(
        written(&full, &RV64),
        [9 << 2, 1 << 2 | 1, 0x02 << 2, 0x38 << 2, 0x1f << 2 | 3]
    );
    let mut reference = 0x3fc04u64;
    for (address, uaddr, groups) in [
        (0x3f368u64, 0x7b6u64, [0x36u8, 0x1e]),
        (0x3e100, 0x934, [0x34, 0x24]),
    ] {
        assert_eq!((reference ^ address) >> 1, uaddr);
        let message = Message::new(
            0,
            Body::IndirectBranch {
                btype: Btype::Indirect,
                icnt: 1,
                uaddr,
            },
        );
        let bytes = written(&message, &RV64);
        let [low, high] = groups;
        assert_eq!(bytes, [4 << 2, 1 << 4 | 1, low << 2, high << 2 | 3]);
        assert_eq!(read(&bytes, &RV64), Ok(message));
        reference = address;
    }
}

/// A ProgTraceSync with these MDO groups as its F-ADDR.
fn with_faddr(groups: &[u8]) -> Vec<u8> {
    let mut bytes = vec![9 << 2, 1 << 2 | 1];
    bytes.extend(groups.iter().map(|g| g << 2));
    *bytes.last_mut().unwrap() |= 3;
    bytes
}

fn faddr(groups: &[u8], layout: &Layout) -> Result<u64, Fault> {
    match read(&with_faddr(groups), layout)?.body {
        Body::ProgTraceSync { faddr, .. } => Ok(faddr),
        other => panic!("{other:?}"),
    }
}

fn groups(faddr: u64, layout: &Layout) -> Vec<u8> {
    let sync = Body::ProgTraceSync {
        sync: Sync::RESET,
        icnt: 0,
        faddr,
    };
    let bytes = written(&Message::new(0, sync), layout);
    assert_eq!(bytes[..2], [9 << 2, 1 << 2 | 1]);
    bytes[2..].iter().map(|b| b >> 2).collect()
}

#[test]
fn the_examples_of_msb_extension() {
    // 8.2.1 of rc7, 9.1.4 of the extensions: the groups, the address.
    let mut full = [0x3f; 11];
    full[10] = 0b00_0101;
    let examples: [(&[u8], u64); 4] = [
        (&[0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0b01_1111], 0xf_ffff_fffe),
        (
            &[0x3f, 0x3f, 0x3f, 0x3f, 0b01_1111, 0b11_1100],
            0xffff_fffe_3fff_fffe,
        ),
        (&[0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0], 0x1f_ffff_fffe),
        (&full, 0xbfff_ffff_ffff_fffe),
    ];
    for (sent, address) in examples {
        assert_eq!(faddr(sent, &RV64_MSB), Ok(address >> 1), "{address:#x}");
        assert_eq!(groups(address >> 1, &RV64_MSB), sent, "{address:#x}");
    }
    // The address of the Linux kernel, without and with extension.
    let kernel = 0xffff_ffff_8000_31f4u64;
    assert_eq!(kernel >> 1, 0x7fff_ffff_c000_18fa);
    assert_eq!(groups(kernel >> 1, &RV64).len(), 11);
    let short = groups(kernel >> 1, &RV64_MSB);
    assert_eq!(short, [0x3a, 0x23, 0x01, 0, 0, 0x3f]);
    assert_eq!(faddr(&short, &RV64_MSB), Ok(kernel >> 1));
}

#[test]
fn without_extension_ones_are_only_ones() {
    assert_eq!(faddr(&[0x3f], &RV64), Ok(0x3f));
    assert_eq!(faddr(&[0x3f], &RV64_MSB), Ok(u64::MAX >> 1));
    assert_eq!(faddr(&[0x3f], &RV32_MSB), Ok(0x7fff_ffff));
    assert_eq!(faddr(&[0x1f], &RV64_MSB), Ok(0x1f));
    assert_eq!(faddr(&[0x3f, 0], &RV64_MSB), Ok(0x3f));
    assert_eq!(groups(0x3f, &RV64_MSB), [0x3f, 0]);
    assert_eq!(groups(0, &RV64_MSB), [0]);
}

#[test]
fn every_length_of_address_comes_back() {
    for layout in [RV32, RV64, RV32_MSB, RV64_MSB] {
        let width = addr_bits(layout.xlen);
        let mask = u64::MAX >> (64 - width);
        for bit in 0..width {
            for value in [1 << bit, (1 << bit) - 1, !0 << bit, !(1 << bit), 5 << bit] {
                let value = value & mask;
                let sent = groups(value, &layout);
                assert!(sent.len() <= width.div_ceil(6) as usize);
                assert_eq!(faddr(&sent, &layout), Ok(value), "{value:#x} {layout:?}");
                // More groups that say the same are as good.
                let top = *sent.last().unwrap() & 0x20 != 0;
                let filler = if layout.extend_addr_msb && top {
                    0x3f
                } else {
                    0
                };
                let mut longer = sent.clone();
                longer.push(filler);
                assert_eq!(faddr(&longer, &layout), Ok(value), "{value:#x} {layout:?}");
            }
        }
    }
}

#[test]
fn bits_above_an_address_are_zero_or_repeat_it() {
    // 36 bits for the 31 of RV32.
    let sent = |top: u8| [0x3f, 0x3f, 0x3f, 0x3f, 0x3f, top];
    assert_eq!(faddr(&sent(0b00_0001), &RV32), Ok(0x7fff_ffff));
    assert_eq!(faddr(&sent(0b00_0010), &RV32), Err(Fault::FieldTooWide));
    assert_eq!(faddr(&sent(0b11_1111), &RV32), Err(Fault::FieldTooWide));
    assert_eq!(faddr(&sent(0b11_1111), &RV32_MSB), Ok(0x7fff_ffff));
    assert_eq!(faddr(&sent(0b00_0001), &RV32_MSB), Ok(0x7fff_ffff));
    assert_eq!(faddr(&sent(0b10_0001), &RV32_MSB), Err(Fault::FieldTooWide));
    assert_eq!(faddr(&sent(0b11_1110), &RV32_MSB), Err(Fault::FieldTooWide));
    // 66 bits for the 63 of RV64.
    let sent = |top: u8| {
        let mut all = [0x3f; 11];
        all[10] = top;
        all
    };
    let all = u64::MAX >> 1;
    assert_eq!(faddr(&sent(0b00_0111), &RV64), Ok(all));
    assert_eq!(faddr(&sent(0b00_1111), &RV64), Err(Fault::FieldTooWide));
    assert_eq!(faddr(&sent(0b01_0111), &RV64), Err(Fault::FieldTooWide));
    assert_eq!(faddr(&sent(0b11_1111), &RV64), Err(Fault::FieldTooWide));
    assert_eq!(faddr(&sent(0b11_1111), &RV64_MSB), Ok(all));
    assert_eq!(faddr(&sent(0b00_0111), &RV64_MSB), Ok(all));
    assert_eq!(faddr(&sent(0b11_1011), &RV64_MSB), Err(Fault::FieldTooWide));
}

#[test]
fn ownership_carries_the_examples_of_7_1() {
    use hartrace_flow::Mode;
    let process = Process {
        mode: Mode::VU,
        owner: Owner::Scontext(0x1d),
    }
    .field();
    let bytes = written(&Message::new(0, Body::Ownership { process }), &RV64);
    assert_eq!(bytes, [2 << 2, 0x32 << 2, 0x0e << 2 | 3]);
    let bytes = written(&Message::new(0, Body::Ownership { process: 0xc }), &RV64);
    assert_eq!(bytes, [2 << 2, 0xc << 2 | 3]);
}

#[test]
fn the_repeated_histories_of_9_3() {
    let hist = 0x5555_5555;
    let once = [
        27 << 2,
        0b01_0001 << 2,
        0x15 << 2,
        0x15 << 2,
        0x15 << 2,
        0x15 << 2,
        0x15 << 2 | 3,
    ];
    // RCODE takes four bits, RDATA the other two: 2 + 5 * 6 = 32.
    assert_eq!(
        written(&Message::new(0, Body::HistFull { hist }), &RV64),
        once
    );
    assert_eq!(
        read(&once, &RV64),
        Ok(Message::new(0, Body::HistFull { hist }))
    );
    let mut ten = once.to_vec();
    ten[1] = 0b01_0010 << 2;
    ten[6] = 0x15 << 2 | 1;
    ten.push(10 << 2 | 3);
    let repeat = Message::new(0, Body::HistRepeat { hist, count: 10 });
    assert_eq!(written(&repeat, &RV64), ten);
    assert_eq!(read(&ten, &RV64), Ok(repeat));
    // A single pattern: 150 times, two bytes less.
    let short = [27 << 2, 0b01_0010 << 2, 1 << 2 | 1, 22 << 2, 2 << 2 | 3];
    let repeat = Message::new(
        0,
        Body::HistRepeat {
            hist: 5,
            count: 150,
        },
    );
    assert_eq!(written(&repeat, &RV64), short);
    assert_eq!(read(&short, &RV64), Ok(repeat));
}

#[test]
fn the_second_field_of_resource_full_depends_on_rcode() {
    for (body, extra) in [
        (Body::IcntFull { icnt: 9 }, 1),
        (Body::HistFull { hist: 9 }, 1),
        (Body::HistRepeat { hist: 9, count: 4 }, 1),
    ] {
        let plain = written(&Message::new(0, body), &RV64);
        let stamped = Message {
            src: 0,
            body,
            tstamp: Some(4),
        };
        let bytes = written(&stamped, &RV64);
        assert_eq!(bytes.len(), plain.len() + extra);
        assert_eq!(read(&bytes, &RV64), Ok(stamped));
    }
    // One field is the history, two are it and the count.
    let bytes = [27 << 2, 2 << 2, 1 << 2 | 3];
    assert_eq!(read(&bytes, &RV64), Err(Fault::MissingField));
}

#[test]
fn every_kind_with_every_src_and_any_stamp() {
    for layout in layouts() {
        let most = (1u32 << layout.src_bits) - 1;
        for body in each_kind() {
            for src in [0, most as u16, most as u16 / 2] {
                for tstamp in [None, Some(0), Some(0x3f), Some(0x40), Some(u64::MAX)] {
                    let message = Message { src, body, tstamp };
                    let bytes = written(&message, &layout);
                    assert_eq!(read(&bytes, &layout), Ok(message), "{layout:?}");
                    assert_eq!(Message::head(&bytes, &layout), Some((body.tcode(), src)));
                    assert!(bytes.len() <= 48);
                    assert_eq!(bytes[0] & 3, 0);
                    assert_eq!(bytes.last().unwrap() & 3, 3);
                }
            }
        }
    }
}

#[test]
fn the_longest_message_has_38_bytes() {
    let layout = Layout {
        src_bits: 12,
        ..RV64
    };
    let message = Message {
        src: 0xfff,
        body: Body::IndirectBranchHistSync {
            sync: Sync::PERIODIC,
            btype: Btype::Interrupt,
            icnt: (1 << 30) - 1,
            faddr: u64::MAX >> 1,
            hist: u64::from(u32::MAX),
        },
        tstamp: Some(u64::MAX),
    };
    // The specification gives TCODE, SRC, SYNC and B-TYPE five bytes; their 24
    // bits fit into four.
    assert_eq!(written(&message, &layout).len(), 37);
}

#[test]
fn padded_fields_are_read() {
    // DirectBranch with I-CNT = 3 and TSTAMP = 0, each with empty groups.
    let bytes = [3 << 2, 3 << 2, 0, 0, 1, 0, 0, 0, 3];
    let message = Message {
        src: 0,
        body: Body::DirectBranch { icnt: 3 },
        tstamp: Some(0),
    };
    assert_eq!(read(&bytes, &RV64), Ok(message));
    let mut long = vec![3 << 2, 3 << 2];
    long.extend([0; 200]);
    long.push(3);
    assert_eq!(
        read(&long, &RV64),
        Ok(Message::new(0, Body::DirectBranch { icnt: 3 }))
    );
}

#[test]
fn wide_fields() {
    let process = |top: u8| {
        let mut bytes = [0x3f << 2; 12];
        bytes[0] = 2 << 2;
        bytes[11] = top << 2 | 3;
        match read(&bytes, &RV64)?.body {
            Body::Ownership { process } => Ok(process),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(process(0x0f), Ok(u64::MAX), "64 of 66 bits");
    assert_eq!(process(0x1f), Err(Fault::FieldTooWide));
    assert_eq!(process(0x2f), Err(Fault::FieldTooWide));
    // I-CNT stops at 56 bits.
    let icnt = |top: u8| {
        let mut bytes = [0; 11];
        bytes[0] = 3 << 2;
        bytes[10] = top << 2 | 3;
        match read(&bytes, &RV64)?.body {
            Body::DirectBranch { icnt } => Ok(icnt),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(icnt(2), Ok(1 << 55));
    assert_eq!(icnt(4), Err(Fault::FieldTooWide));
}

#[test]
fn every_fault_of_a_message() {
    let cases: &[(&[u8], Fault)] = &[
        (&[], Fault::MissingField),
        (&[3 << 2 | 3], Fault::MissingField),
        (&[3 << 2], Fault::MissingField),
        (&[4 << 2, 1], Fault::MissingField),
        (&[4 << 2, 3], Fault::MissingField),
        (&[9 << 2 | 1, 3], Fault::CutField),
        (&[12 << 2, 2 << 2 | 1, 1, 3], Fault::CutField),
        (&[3 << 2 | 1, 3], Fault::CutField),
        (&[3 << 2, 1, 1, 3], Fault::ExtraField),
        (&[28 << 2, 1, 1, 3], Fault::EmptyHist),
        (&[27 << 2, 1 << 2 | 3], Fault::EmptyHist),
        (&[27 << 2, 2 << 2 | 1, 3], Fault::EmptyHist),
        (&[33 << 2, 1 << 6, 1, 3], Fault::EmptyHist),
        (&[27 << 2, 3 << 2 | 3], Fault::UnknownRcode),
        (&[27 << 2, 15 << 2 | 3], Fault::UnknownRcode),
        (&[33 << 2, 2 << 6, 3], Fault::UnknownCdf),
        (&[33 << 2, 3 << 6, 1, 7], Fault::UnknownCdf),
        (&[3 << 2, 2, 3], Fault::ReservedMseo),
        (&[3 << 2 | 2, 3], Fault::ReservedMseo),
        (&[3 << 2, 1, 2], Fault::ReservedMseo),
    ];
    for &(bytes, fault) in cases {
        assert_eq!(read(bytes, &RV64), Err(fault), "{bytes:02x?}");
    }
    let src = Layout {
        src_bits: 6,
        ..RV64
    };
    // A fixed-length field that ends with its byte does not end with MSEO = 01.
    assert_eq!(read(&[3 << 2, 1, 3], &src), Err(Fault::CutField));
    assert_eq!(read(&[3 << 2, 0, 3], &src).map(|m| m.src), Ok(0));
}

#[test]
fn cut_anywhere_a_message_is_no_message() {
    for layout in layouts() {
        for body in each_kind() {
            let bytes = written(&Message::new(0, body), &layout);
            for len in 0..bytes.len() {
                assert!(read(&bytes[..len], &layout).is_err(), "{body:?} {len}");
            }
        }
    }
}

#[test]
fn vendor_and_reserved_messages_are_kept() {
    let layout = Layout {
        src_bits: 4,
        ..RV64
    };
    for tcode in (0..64).map(Tcode).filter(|t| t.name().is_none()) {
        let bytes = [tcode.0 << 2, 0x9 << 2 | 1, 0xfc, 0xff];
        let message = read(&bytes, &layout).unwrap();
        assert_eq!(message.src, 9);
        assert_eq!(
            message.body,
            Body::Other {
                tcode,
                bytes: &bytes
            }
        );
        assert_eq!(written(&message, &layout), bytes);
    }
}

#[test]
fn values_too_large_do_not_spill_into_their_neighbours() {
    let layout = Layout {
        src_bits: 3,
        ..RV64
    };
    let body = Body::ProgTraceSync {
        sync: Sync(0xf2),
        icnt: 0,
        faddr: u64::MAX,
    };
    let bytes = written(&Message::new(0xffff, body), &layout);
    let body = Body::ProgTraceSync {
        sync: Sync(2),
        icnt: 0,
        faddr: u64::MAX >> 1,
    };
    assert_eq!(read(&bytes, &layout), Ok(Message::new(7, body)));
    // Nor does a width that cannot be do harm.
    let wild = Layout {
        src_bits: 255,
        ..RV64
    };
    let bytes = written(&Message::new(0xfff, body), &wild);
    assert_eq!(read(&bytes, &wild), Ok(Message::new(0xfff, body)));
}

#[test]
fn random_messages_come_back_in_every_layout() {
    let mut random = Random::new(1);
    for layout in layouts() {
        for _ in 0..400 {
            let message = random.message(&layout);
            let bytes = written(&message, &layout);
            assert_eq!(read(&bytes, &layout), Ok(message), "{layout:?}");
        }
    }
}

#[test]
fn what_random_bytes_say_comes_back() {
    let mut random = Random::new(7);
    let mut good = 0;
    for layout in layouts() {
        for _ in 0..400 {
            let len = 2 + random.below(20) as usize;
            let mut bytes = random.bytes(len);
            // No reserved MSEO and one end, so that some are messages.
            for byte in &mut bytes {
                *byte &= 0xfd;
            }
            bytes[0] &= 0xfc;
            *bytes.last_mut().unwrap() |= 3;
            let Ok(message) = read(&bytes, &layout) else {
                continue;
            };
            good += 1;
            let again = written(&message, &layout);
            assert_eq!(read(&again, &layout), Ok(message), "{bytes:02x?}");
            assert!(again.len() <= bytes.len(), "{bytes:02x?} {layout:?}");
        }
    }
    assert!(good > 1000, "{good}");
}

/// The short way says the same as the long one, or nothing.
#[test]
fn the_short_way_agrees() {
    let mut random = Random::new(41);
    let (mut taken, mut long, mut known) = (0, 0, 0);
    let mut check = |bytes: &[u8], layout: &Layout, random: &mut Random| {
        // Whatever follows in the stream.
        let mut words = random.bytes(16);
        for (to, from) in words.iter_mut().zip(bytes) {
            *to = *from;
        }
        let end = words.iter().position(|byte| byte & 3 == 3);
        let whole = quick::whole(&words);
        assert_eq!(whole.map(|(_, len)| len), end.map(|at| at + 1));
        if let Some((whole, _)) = whole.filter(|(_, len)| *len > 8)
            && let Some((message, len)) = quick::read_whole(whole, layout)
        {
            assert_eq!(read(&words[..len], layout), Ok(message), "{words:x?}");
            let ends = words[..len].iter().filter(|&b| b & 3 == 3).count();
            assert_eq!((ends, words[len - 1] & 3), (1, 3));
            long += 1;
        }
        let word = u64::from_le_bytes(*words.first_chunk().unwrap());
        let kind = quick::kind(&words[..8]).filter(|_| quick::is_plain(layout));
        if let Some((place, len)) = kind {
            let kind = (quick::KINDS[place], len);
            let (message, len) = quick::read(word, layout).unwrap();
            assert_eq!((message.body.tcode(), len), kind, "{word:x}");
            known += 1;
        } else if *layout == RV64 {
            assert!(quick::read(word, layout).is_none(), "{word:x}");
        }
        if let Some((message, len)) = quick::read(word, layout) {
            let bytes = &word.to_le_bytes()[..len];
            assert_eq!(read(bytes, layout), Ok(message), "{bytes:x?}");
            let ends = bytes.iter().filter(|&b| b & 3 == 3).count();
            assert_eq!((ends, bytes[len - 1] & 3), (1, 3));
            taken += 1;
        }
    };
    for layout in layouts() {
        for _ in 0..3000 {
            let mut bytes = written(&random.message(&layout), &layout);
            if random.below(3) == 0 {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
            check(&bytes, &layout, &mut random);
            // Any bytes of the types it knows.
            let tcode = [3, 4, 27, 28][random.below(4) as usize] << 2;
            check(&[tcode], &layout, &mut random);
        }
    }
    assert!(taken > 10_000, "{taken}");
    assert!(known > 300, "{known}");
    assert!(long > 5_000, "{long}");
}

/// Messages are told apart by their bytes, whatever follows them.
#[test]
fn the_bytes_of_a_message() {
    let mut stream = [
        0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff, 0xff, 0x0c, 3, 9, 3, 9, 9, 9, 9, 9,
    ];
    let found = |stream: &[u8]| quick::whole(stream);
    assert_eq!(found(&stream), Some(([0xfff8_1d1d_d070, 0], 6)));
    assert_eq!(found(&stream[..8]), Some(([0xfff8_1d1d_d070, 0], 6)));
    assert_eq!(found(&stream[..7]), None);
    (stream[5], stream[6]) = (0xfc, 0xfc);
    let bytes = [0x0cfc_fcf8_1d1d_d070, 3];
    assert_eq!(found(&stream), Some((bytes, 9)));
    assert_eq!(found(&stream[..15]), None);
    stream[8] = 0;
    let bytes = [0x0cfc_fcf8_1d1d_d070, 0x3_0900];
    assert_eq!(found(&stream), Some((bytes, 11)));
    stream[10] = 0;
    assert_eq!(found(&stream), None);
}

#[test]
fn table_6_goes_the_short_way() {
    let word = u64::from_le_bytes([0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff, 0xff, 0x0c]);
    let (message, len) = quick::read(word, &RV64).unwrap();
    assert_eq!(
        (message.body.tcode(), len),
        (Tcode::INDIRECT_BRANCH_HIST, 6)
    );
}

/// Fields of every length, up to the longest message of a word and beyond it.
#[test]
fn a_jump_in_a_word_is_the_packed_message() {
    let mut random = Random::new(7);
    let layout = Layout::default();
    let (mut words, mut longer) = (0, 0);
    for _ in 0..20_000 {
        let mut field = || random.bits(64);
        let (icnt, uaddr, hist) = (field(), field() >> 1, field().max(1));
        for btype in [Btype::Indirect, Btype::Exception] {
            for without in [false, true] {
                let body = match without {
                    true => Body::IndirectBranch { btype, icnt, uaddr },
                    false => Body::IndirectBranchHist {
                        btype,
                        icnt,
                        uaddr,
                        hist,
                    },
                };
                let packed = written(&Message::new(0, body), &layout);
                match quick::jump(btype, icnt, uaddr, (hist, without)) {
                    Some((word, len)) => {
                        assert_eq!(word.to_le_bytes()[..len], packed[..]);
                        words += 1;
                    }
                    None => {
                        assert!(packed.len() > quick::WORD);
                        longer += 1;
                    }
                }
            }
        }
    }
    assert!(words > 1000 && longer > 1000);
}

#[test]
fn a_full_history_in_a_word_is_the_packed_message() {
    let mut random = Random::new(8);
    for bits in 2..=32 {
        for _ in 0..100 {
            let hist = 1 << (bits - 1) | random.bits(bits - 1);
            let packed = written(
                &Message::new(0, Body::HistFull { hist }),
                &Layout::default(),
            );
            let (word, len) = quick::hist_full(hist);
            assert_eq!(word.to_le_bytes()[..len], packed[..]);
        }
    }
}
