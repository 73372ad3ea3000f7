//! The tables of chapter 6, field by field, in both texts.

use alloc::vec::Vec;

use super::*;

/// Fields as a table lists them, with values, one behind the other.
fn row(fields: &[(u64, u32)]) -> Vec<u8> {
    let (mut bits, mut len) = ([0u8; 31], 0);
    let mut last = 0;
    for &(value, width) in fields {
        for i in 0..width {
            last = value >> i & 1;
            bits[len / 8] |= (last << (len % 8)) as u8;
            len += 1;
        }
    }
    // Sign-extended to the byte boundary.
    while len % 8 != 0 {
        bits[len / 8] |= (last << (len % 8)) as u8;
        len += 1;
    }
    bits[..len / 8].to_vec()
}

/// The row is the packet, in full and compressed.
fn is(layout: &Layout, fields: &[(u64, u32)], packet: Packet) {
    let bytes = row(fields);
    assert_eq!(Packet::read(&bytes, layout), Ok(packet), "{bytes:x?}");
    let written = packet.write(layout);
    assert_eq!(longer(written.bytes(), bytes.len()), bytes, "{packet:?}");
}

/// Every width another one.
const V2: Layout = Layout {
    version: Version::V2_0,
    iaddress_width: 39,
    iaddress_lsb: 1,
    privilege_width: 2,
    context_width: 9,
    time_width: 11,
    ecause_width: 5,
    f0s_width: 2,
    bpred_size: 9,
    cache_size: 7,
    irdepth_width: 6,
    iret_ext: false,
    encoder_mode_width: 3,
    ioptions_width: 8,
    doptions_width: Some(4),
    implicit_exception: false,
    exception_bit: None,
    shortening: Shortening::Packet,
    padding: Padding::Sign,
    notify_bit: NotifyBit::Address,
    interrupt_tval: false,
};

const DRAFT: Layout = Layout {
    version: Version::V1_1_1,
    time_width: 0,
    doptions_width: None,
    ..V2
};

const ADDRESS: u64 = 0x2a_5555_5555;

#[test]
fn start() {
    let start = Start {
        branch: true,
        privilege: 1,
        time: 0x2aa,
        context: 0x155,
        address: ADDRESS,
    };
    let head = [(3, 2), (0, 2), (1, 1), (1, 2)];
    let tail = [(0x155, 9), (ADDRESS, 38)];
    let time = [(0x2aa, 11)];
    is(
        &V2,
        &[&head[..], &time, &tail].concat(),
        Packet::Start(start),
    );
    let draft = Packet::Start(Start { time: 0, ..start });
    is(&DRAFT, &[&head[..], &tail].concat(), draft);
}

#[test]
fn trap() {
    for implicit_exception in [false, true] {
        for (interrupt, thaddr) in [(false, true), (true, true), (false, false), (true, false)] {
            let layout = Layout {
                implicit_exception,
                ..V2
            };
            let has_address = !(implicit_exception && thaddr);
            let mut fields = [
                (3, 2),
                (1, 2),
                (0, 1),
                (3, 2),
                (0x7f, 11),
                (0x11, 9),
                (13, 5),
                (interrupt.into(), 1),
                (thaddr.into(), 1),
            ]
            .to_vec();
            if has_address {
                fields.push((ADDRESS, 38));
            }
            if !interrupt {
                fields.push((0x12_3456_789a, 39));
            }
            let trap = Trap {
                branch: false,
                privilege: 3,
                time: 0x7f,
                context: 0x11,
                ecause: 13,
                interrupt,
                thaddr,
                address: has_address.then_some(ADDRESS),
                tval: (!interrupt).then_some(0x12_3456_789a),
            };
            is(&layout, &fields, Packet::Trap(trap));
        }
    }
}

/// No `thaddr`, and `tvalepc` whatever the cause.
#[test]
fn exception_of_the_draft() {
    for implicit_exception in [false, true] {
        for interrupt in [false, true] {
            let layout = Layout {
                implicit_exception,
                ..DRAFT
            };
            let mut fields = [
                (3, 2),
                (1, 2),
                (1, 1),
                (3, 2),
                (0x11, 9),
                (2, 5),
                (interrupt.into(), 1),
            ]
            .to_vec();
            if !implicit_exception {
                fields.push((ADDRESS, 38));
            }
            fields.push((0x12_3456_789a, 39));
            let trap = Trap {
                branch: true,
                privilege: 3,
                time: 0,
                context: 0x11,
                ecause: 2,
                interrupt,
                thaddr: true,
                address: (!implicit_exception).then_some(ADDRESS),
                tval: Some(0x12_3456_789a),
            };
            is(&layout, &fields, Packet::Trap(trap));
        }
    }
}

#[test]
fn context() {
    let packet = Context {
        privilege: 2,
        time: 0x555,
        context: 0xaa,
    };
    let head = [(3, 2), (2, 2), (2, 2)];
    let fields = [&head[..], &[(0x555, 11), (0xaa, 9)]].concat();
    is(&V2, &fields, Packet::Context(packet));
    let fields = [&head[..], &[(0xaa, 9)]].concat();
    is(
        &DRAFT,
        &fields,
        Packet::Context(Context { time: 0, ..packet }),
    );
    // nocontext_p and notime_p leave the fields out.
    let neither = Layout {
        context_width: 0,
        time_width: 0,
        ..V2
    };
    let alone = Context {
        privilege: 2,
        ..Context::default()
    };
    is(&neither, &head, Packet::Context(alone));
}

#[test]
fn support() {
    let states = [
        QualStatus::NoChange,
        QualStatus::EndedRep,
        QualStatus::TraceLost,
        QualStatus::EndedNtr,
    ];
    for (code, qual_status) in states.into_iter().enumerate() {
        let head = [(3, 2), (3, 2), (1, 1), (5, 3), (code as u64, 2), (0xa5, 8)];
        let tail = [(1, 1), (0, 1), (9, 4)];
        let support = Support {
            ienable: true,
            encoder_mode: 5,
            qual_status,
            ioptions: 0xa5,
            data: Some(DataSupport {
                denable: true,
                dloss: false,
                doptions: 9,
            }),
        };
        is(&V2, &[&head[..], &tail].concat(), Packet::Support(support));
        let draft = Support {
            data: None,
            ..support
        };
        is(&DRAFT, &head, Packet::Support(draft));
    }
}

/// `address`, `notify`, `updiscon`, `irreport`, `irdepth` in all sixteen ways.
fn tails() -> impl Iterator<Item = (Vec<(u64, u32)>, Report)> {
    (0..16).map(|bits: u64| {
        let [msb, notify, updiscon, irreport] = [bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3];
        let address = ADDRESS & !(1 << 37) | msb << 37;
        let fields = [
            (address, 38),
            (notify, 1),
            (updiscon, 1),
            (irreport, 1),
            (0x25, 6),
        ];
        let report = Report {
            address,
            notify: notify != msb,
            updiscon: updiscon != notify,
            irreport: irreport != updiscon,
            irdepth: 0x25,
        };
        (fields.to_vec(), report)
    })
}

#[test]
fn address() {
    for layout in [V2, DRAFT] {
        for (tail, report) in tails() {
            let fields = [&[(2, 2)], &tail[..]].concat();
            is(&layout, &fields, Packet::Address(report));
        }
    }
}

#[test]
fn branches_with_address() {
    let widths = [(1, 1), (3, 3), (7, 7), (15, 15), (31, 31)];
    for layout in [V2, DRAFT] {
        for count in 1..32u8 {
            let &(_, width) = widths.iter().find(|&&(most, _)| count <= most).unwrap();
            let bits = 0x5a5a_a5a5 & ((1 << count) - 1);
            for (tail, report) in tails() {
                let head = [(1, 2), (count.into(), 5), (bits, width)];
                let packet = Packet::Branches {
                    map: BranchMap {
                        bits: bits as u32,
                        count,
                    },
                    address: Some(report),
                };
                is(&layout, &[&head[..], &tail].concat(), packet);
            }
        }
    }
}

#[test]
fn branches_without_address() {
    for layout in [V2, DRAFT] {
        for bits in [0, 0x7fff_ffff, 0x5a5a_a5a5] {
            let packet = Packet::Branches {
                map: BranchMap {
                    bits: bits as u32,
                    count: 31,
                },
                address: None,
            };
            is(&layout, &[(1, 2), (0, 5), (bits, 31)], packet);
        }
    }
}

/// Bits of the map above the number of branches have no meaning.
#[test]
fn unused_bits_of_the_map() {
    let report = Report::default();
    let map = BranchMap { bits: 1, count: 2 };
    for above in [0, 4] {
        let bytes = row(&[(1, 2), (2, 5), (1 | above, 3), (0, 47)]);
        let address = Some(report);
        let packet = Packet::Branches { map, address };
        assert_eq!(Packet::read(&bytes, &V2), Ok(packet));
        // irreport differs from the bit of the map, whatever that means.
        let bytes = row(&[
            (0, 2),
            (1, 2),
            (3, 7),
            (2, 5),
            (1 | above, 3),
            (1, 1),
            (0, 6),
        ]);
        let packet = Packet::JumpTarget {
            index: 3,
            map,
            irreport: above == 0,
            irdepth: 0,
        };
        assert_eq!(Packet::read(&bytes, &V2), Ok(packet));
    }
}

#[test]
fn branch_count() {
    let head = |fmt| [(0, 2), (0, 2), (0x8765_4321, 32), (fmt, 2)];
    let packet = |address| Packet::BranchCount {
        branch_count: 0x8765_4321,
        address,
    };
    for layout in [V2, DRAFT] {
        is(&layout, &head(0), packet(None));
        for (tail, report) in tails() {
            for (fmt, failed) in [(2, false), (3, true)] {
                let fields = [&head(fmt)[..], &tail].concat();
                is(&layout, &fields, packet(Some((failed, report))));
            }
        }
        let reserved = row(&head(1));
        assert_eq!(
            Packet::read(&reserved, &layout),
            Err(Fault::UnknownBranchFmt)
        );
    }
}

#[test]
fn jump_target() {
    for layout in [V2, DRAFT] {
        for irreport in [false, true] {
            let packet = |map| Packet::JumpTarget {
                index: 0x55,
                map,
                irreport,
                irdepth: 0x2a,
            };
            let head = [(0, 2), (1, 2), (0x55, 7)];
            // Relative to the last bit of branches, which is 0.
            let none = [(0, 5), (irreport.into(), 1), (0x2a, 6)];
            let fields = [&head[..], &none].concat();
            is(&layout, &fields, packet(BranchMap::default()));
            for (bits, last) in [(0x1234, 0), (0x7234, 1)] {
                let bit = last ^ u64::from(irreport);
                let some = [(15, 5), (bits, 15), (bit, 1), (0x2a, 6)];
                let map = BranchMap {
                    bits: bits as u32,
                    count: 15,
                };
                is(&layout, &[&head[..], &some].concat(), packet(map));
            }
        }
    }
}

/// The bits that mean nothing go with the last outcome.
#[test]
fn jump_target_after_branches_not_taken() {
    let map = BranchMap {
        bits: 0xffff,
        count: 16,
    };
    let packet = Packet::JumpTarget {
        index: 0,
        map,
        irreport: false,
        irdepth: 0x3f,
    };
    assert_eq!(packet.write(&V2).bytes().len(), 2);
    assert_eq!(Packet::read(packet.write(&V2).bytes(), &V2), Ok(packet));
}

/// Without a subformat field (6.8.1) the parameters tell which it is.
#[test]
fn format_0_without_subformat() {
    let only = |bpred_size, cache_size| Layout {
        f0s_width: 0,
        bpred_size,
        cache_size,
        ..V2
    };
    let count = Packet::BranchCount {
        branch_count: 9,
        address: None,
    };
    is(&only(9, 0), &[(0, 2), (9, 32), (0, 2)], count);
    let jump = Packet::JumpTarget {
        index: 9,
        map: BranchMap::default(),
        irreport: false,
        irdepth: 0,
    };
    is(&only(0, 7), &[(0, 2), (9, 7), (0, 12)], jump);
    let unknown = Err(Fault::UnknownSubformat);
    assert_eq!(Packet::read(&[0], &only(0, 0)), unknown);
    for (subformat, bpred_size, cache_size) in [(0, 0, 7), (1, 9, 0), (2, 9, 7), (3, 9, 7)] {
        let layout = Layout {
            bpred_size,
            cache_size,
            ..V2
        };
        assert_eq!(Packet::read(&[subformat << 2], &layout), unknown);
    }
}

#[test]
fn faults() {
    assert_eq!(Packet::read(&[], &V2), Err(Fault::EmptyPacket));
    let whole = row(&[(2, 2), (5, 38), (0, 9)]);
    assert!(Packet::read(&whole, &V2).is_ok());
    // 49 bits: seven more in the last byte.
    for bit in 1..8 {
        let mut bytes = whole.clone();
        bytes[6] |= 1 << bit;
        assert_eq!(Packet::read(&bytes, &V2), Err(Fault::ExtraBits));
    }
    for len in 8..50 {
        let mut bytes = longer(&whole, len);
        assert!(Packet::read(&bytes, &V2).is_ok());
        bytes[len - 1] = 0x10;
        assert_eq!(Packet::read(&bytes, &V2), Err(Fault::ExtraBits));
    }
}
