//! Contexts, addresses, jumps, and other settings.

use hartrace_flow::filter::FilterConfig;

use super::*;
use hartrace_flow::Ctype;

const A: u64 = 0x1000;

fn with_context(version: Version) -> Config {
    Config {
        context_width: 16,
        ..config(version)
    }
}

fn ctx(context: u64, ctype: u8, block: Ingress) -> Ingress {
    Ingress {
        context: Owner(context),
        ctype: Ctype::from_code(ctype).unwrap(),
        ..block
    }
}

fn start_ctx(context: u64, addr: u64) -> Packet {
    Packet::Start(Start {
        context,
        ..start_fields(addr)
    })
}

fn new_context(context: u64) -> Packet {
    Packet::Context(Context {
        privilege: 3,
        time: 0,
        context,
    })
}

#[test]
fn contexts_are_told_as_ctype_says() {
    for version in VERSIONS {
        let config = with_context(version);
        let run = |ctype, inner: &[Packet]| {
            let blocks = [
                ctx(1, 0, i(A)),
                ctx(1, 0, not_taken(A + 4)),
                ctx(2, ctype, i(A + 8)),
                ctx(2, 0, i(A + 12)),
                ctx(2, 0, i(A + 16)),
            ];
            check(&config, &blocks, inner, QualStatus::EndedRep);
        };
        let told = branches(map(1, 1), delta(A, A + 4));
        let last = branches(map(1, 1), delta(A, A + 16));
        run(0, &[start_ctx(1, A), last]);
        run(1, &[start_ctx(1, A), new_context(2), last]);
        let sync = start_ctx(2, A + 8);
        let rest = address(A + 8, A + 16);
        run(2, &[start_ctx(1, A), told, sync, rest]);
        run(3, &[start_ctx(1, A), told, sync, rest]);
    }
}

/// Without branches only the discontinuity needs the address before it.
#[test]
fn a_discontinuity_tells_the_last_instruction() {
    let run = |ctype, inner: &[Packet]| {
        let blocks = [
            ctx(1, 0, i(A)),
            ctx(1, 0, i(A + 4)),
            ctx(2, ctype, i(0x9000)),
        ];
        check(
            &with_context(Version::V2_0),
            &blocks,
            inner,
            QualStatus::EndedNtr,
        );
    };
    let (first, last) = (start_ctx(1, A), start_ctx(2, 0x9000));
    run(2, &[first, last]);
    run(3, &[first, address(A, A + 4), last]);
}

/// The target of the jump may be on the way to it.
#[test]
fn a_jump_before_a_new_context_is_told() {
    let blocks = [ctx(1, 0, i(A)), ctx(1, 0, jalr(A + 4)), ctx(2, 2, i(A))];
    let inner = [start_ctx(1, A), address(A, A + 4), start_ctx(2, A)];
    check(
        &with_context(Version::V2_0),
        &blocks,
        &inner,
        QualStatus::EndedNtr,
    );
    // Nor does the context tell how often the hart came by.
    let blocks = [
        ctx(1, 0, i(A)),
        ctx(1, 0, i(A + 4)),
        ctx(1, 0, jalr(A + 8)),
        ctx(1, 0, i(A)),
        ctx(1, 0, i(A + 4)),
        ctx(2, 2, jalr(A + 8)),
    ];
    let inner = [
        start_ctx(1, A),
        address(A, A),
        address(A, A + 4),
        start_ctx(2, A + 8),
    ];
    check(
        &with_context(Version::V2_0),
        &blocks,
        &inner,
        QualStatus::EndedNtr,
    );
}

#[test]
fn an_imprecise_change_waits_for_a_packet() {
    let config = with_context(Version::V2_0);
    // The address goes first; what a synchronisation says is said.
    let blocks = [
        ctx(1, 0, jalr(A)),
        ctx(2, 1, i(0x2000)),
        ctx(2, 0, i(0x2004)),
        in_mode(Mode::U, ctx(3, 1, i(0x400))),
        in_mode(Mode::U, ctx(3, 0, i(0x404))),
        in_mode(Mode::U, ctx(4, 1, i(0x408))),
    ];
    let user = Packet::Start(Start {
        privilege: 0,
        context: 3,
        ..start_fields(0x400)
    });
    let last = Packet::Context(Context {
        privilege: 0,
        time: 0,
        context: 4,
    });
    let inner = [
        start_ctx(1, A),
        address(A, 0x2000),
        new_context(2),
        user,
        last,
        address(0x400, 0x408),
    ];
    check(&config, &blocks, &inner, QualStatus::EndedRep);
}

#[test]
fn ctype_without_a_change_says_nothing() {
    for ctype in 0..4 {
        let blocks = [ctx(1, 0, i(A)), ctx(1, ctype, i(A + 4))];
        let inner = [start_ctx(1, A), address(A, A + 4)];
        check(
            &with_context(Version::V2_0),
            &blocks,
            &inner,
            QualStatus::EndedRep,
        );
    }
}

#[test]
fn without_the_field_only_discontinuities_count() {
    for ctype in 0..3 {
        let blocks = [ctx(1, 0, i(A)), ctx(2, ctype, i(A + 4))];
        let inner = [start(A), address(A, A + 4)];
        check(&v2(), &blocks, &inner, QualStatus::EndedRep);
    }
    // And they are a new start: no context tells them from a jump.
    let blocks = [ctx(1, 0, i(A)), ctx(2, 3, i(0x9000))];
    let ended = Packet::Support(Support {
        ienable: true,
        qual_status: QualStatus::EndedNtr,
        data: Some(DataSupport::default()),
        ..Support::default()
    });
    check(
        &v2(),
        &blocks,
        &[start(A), ended, start(0x9000)],
        QualStatus::EndedNtr,
    );
}

/// Low bits only, in both fields.
#[test]
fn contexts_and_times_are_cut_to_their_fields() {
    let config = Config {
        context_width: 4,
        time_width: 8,
        ..v2()
    };
    let block = Ingress {
        context: Owner(0x125),
        time: 0x1234,
        ..i(A)
    };
    let inner = [Packet::Start(Start {
        context: 5,
        time: 0x34,
        ..start_fields(A)
    })];
    check(&config, &[block], &inner, QualStatus::EndedNtr);
}

/// 31 branches in a row from here, the last at `A + 31 * 4`.
fn many(count: u64) -> Vec<Ingress> {
    let all = (1..=count).map(|n| match n % 3 {
        0 => taken(A + 4 * n),
        _ => not_taken(A + 4 * n),
    });
    [i(A)].into_iter().chain(all).collect()
}

/// Every third of them was taken.
fn outcomes(count: u8) -> BranchMap {
    let bits = (0..u32::from(count)).filter(|n| n % 3 != 2);
    map(count, bits.fold(0, |all, bit| all | 1 << bit))
}

#[test]
fn a_full_map_needs_no_address() {
    let mut blocks = many(31);
    blocks.push(i(A + 4 * 32));
    let inner = [
        start(A),
        Packet::Branches {
            map: outcomes(31),
            address: None,
        },
        address(A, A + 4 * 32),
    ];
    for version in VERSIONS {
        check(&config(version), &blocks, &inner, QualStatus::EndedRep);
    }
    // With one less there is room.
    let mut blocks = many(30);
    blocks.push(i(A + 4 * 31));
    let last = branches(outcomes(30), delta(A, A + 4 * 31));
    check(&v2(), &blocks, &[start(A), last], QualStatus::EndedRep);
}

#[test]
fn a_full_map_with_an_address() {
    let last = A + 4 * 31;
    let told = branches(outcomes(31), delta(A, last));
    // The trace ends; a trap follows; the mode changes.
    check(&v2(), &many(31), &[start(A), told], QualStatus::EndedRep);
    let trap = [many(31), vec![exception(last + 4, 5, 0), i(0x8000)]].concat();
    let inner = [start(A), told, handler(5, 0x8000, 0)];
    check(&v2(), &trap, &inner, QualStatus::EndedNtr);
    let mode = [many(31), vec![in_mode(Mode::S, i(last + 4))]].concat();
    let inner = [start(A), told, start_in(Mode::S, last + 4)];
    check(&v2(), &mode, &inner, QualStatus::EndedNtr);
    // 6.7.2: the instruction before the last branch is an uninferable jump.
    let mut jump = many(30);
    jump.extend([jalr(last), not_taken(0x4000), i(0x4004)]);
    let inner = [
        start(A),
        branches(
            BranchMap {
                bits: outcomes(30).bits | 1 << 30,
                count: 31,
            },
            delta(A, 0x4000),
        ),
        address(0x4000, 0x4004),
    ];
    check(&v2(), &jump, &inner, QualStatus::EndedRep);
}

#[test]
fn full_addresses() {
    let blocks = [i(A), jalr(A + 4), i(0x2000), i(0x2004)];
    for version in VERSIONS {
        let config = Config {
            full_address: true,
            ..config(version)
        };
        let inner = [start(A), address(0, 0x2000), address(0, 0x2004)];
        check(&config, &blocks, &inner, QualStatus::EndedRep);
        assert_eq!(config.ioptions_field(), 4);
    }
}

/// A field of so many bits less `lsb`, and its upper bits repeat the highest.
#[test]
fn widths_of_addresses() {
    let kernel = 0xffff_ffc0_0000_1000_u64;
    for (width, lsb) in [(64, 0), (64, 2), (48, 1), (40, 0), (40, 2)] {
        for full_address in [false, true] {
            let config = Config {
                iaddress_width: width,
                iaddress_lsb: lsb,
                full_address,
                ..v2()
            };
            let field = |addr: u64| addr >> lsb & mask(u32::from(width - lsb));
            let tell = |from: u64, to: u64| {
                let from = if full_address { 0 } else { from };
                Packet::Address(Report {
                    address: field(to.wrapping_sub(from)),
                    ..Report::default()
                })
            };
            let blocks = [jalr(A), i(kernel), jalr(kernel + 4), i(A), i(A + 4)];
            let inner = [
                Packet::Start(Start {
                    address: field(A),
                    ..start_fields(A)
                }),
                tell(A, kernel),
                tell(kernel, A),
                tell(A, A + 4),
            ];
            check(&config, &blocks, &inner, QualStatus::EndedRep);
        }
    }
}

#[test]
fn addresses_of_rv32() {
    let config = Config::new(Version::V2_0, Xlen::Rv32);
    let blocks = [jalr(0xffff_fff0), i(0x10), jalr(0x14), i(0xffff_fff0)];
    let tell = |from: u64, to: u64| {
        Packet::Address(Report {
            address: to.wrapping_sub(from) >> 1 & mask(31),
            ..Report::default()
        })
    };
    let inner = [
        start(0xffff_fff0),
        tell(0xffff_fff0, 0x10),
        tell(0x10, 0xffff_fff0),
    ];
    check(&config, &blocks, &inner, QualStatus::EndedNtr);
}

/// Three bits of `itype` say as much as four.
#[test]
fn kinds_of_jumps_make_no_difference() {
    let four = [
        Itype::IndirectCall,
        Itype::IndirectJump,
        Itype::Swap,
        Itype::Return,
        Itype::OtherIndirect,
        Itype::TrapReturn,
    ];
    let direct = [
        Itype::Reserved,
        Itype::DirectCall,
        Itype::DirectJump,
        Itype::OtherDirect,
    ];
    let run = |itype| {
        let blocks = [i(A), at(A + 4, 2, itype), i(0x2000), i(0x2004)];
        bytes(&v2(), &blocks)
    };
    for itype in four {
        assert_eq!(run(itype), run(Itype::Uninferable));
    }
    for itype in direct {
        assert_eq!(run(itype), run(Itype::None));
    }
    assert_ne!(run(Itype::None), run(Itype::Uninferable));
}

fn sijump(itype: Itype, iaddr: u64) -> Ingress {
    Ingress {
        sijump: true,
        ..at(iaddr, 2, itype)
    }
}

#[test]
fn sequentially_inferable_jumps() {
    let on = Config {
        sijump: true,
        ..v2()
    };
    let blocks = |itype| [i(A), i(A + 4), sijump(itype, A + 8), i(0x2000), i(0x2004)];
    let told = [start(A), address(A, 0x2000), address(0x2000, 0x2004)];
    let inferred = [start(A), address(A, 0x2004)];
    check(
        &v2(),
        &blocks(Itype::IndirectJump),
        &told,
        QualStatus::EndedRep,
    );
    for itype in [Itype::IndirectJump, Itype::IndirectCall, Itype::Uninferable] {
        check(&on, &blocks(itype), &inferred, QualStatus::EndedRep);
    }
    // Not of returns (table 4.1).
    for itype in [Itype::Return, Itype::TrapReturn] {
        check(&on, &blocks(itype), &told, QualStatus::EndedRep);
    }
    // In one block with what loads the constant.
    let pair = Ingress {
        iretire: 4,
        ..sijump(Itype::IndirectJump, A)
    };
    let inner = [start(A), address(A, 0x2004)];
    check(
        &on,
        &[pair, i(0x2000), i(0x2004)],
        &inner,
        QualStatus::EndedRep,
    );
}

/// Both the constant's load and the jump must be traced (3.2.4).
#[test]
fn inferable_jumps_behind_a_synchronisation() {
    let on = Config {
        sijump: true,
        ..v2()
    };
    let jump = sijump(Itype::IndirectJump, A + 8);
    let blocks = [jump, i(0x2000), i(0x2004)];
    let inner = [
        start(A + 8),
        address(A + 8, 0x2000),
        address(0x2000, 0x2004),
    ];
    check(&on, &blocks, &inner, QualStatus::EndedRep);
    let blocks = [i(A), in_mode(Mode::S, jump), in_mode(Mode::S, i(0x2000))];
    let inner = [start(A), start_in(Mode::S, A + 8), address(A + 8, 0x2000)];
    check(&on, &blocks, &inner, QualStatus::EndedNtr);
}

/// The bit of `ioptions` for it, where there is one.
#[test]
fn options_are_announced() {
    let order = [
        Some(Ioption::FullAddress),
        None,
        Some(Ioption::SequentialJump),
    ];
    let config = Config {
        sijump: true,
        ioptions: Ioptions::new(&order).unwrap(),
        ..v2()
    };
    let first = packets(&config, &[i(A)])[0];
    assert_eq!(first, support(&config, true, QualStatus::NoChange));
    assert_eq!(config.ioptions_field(), 4);
}

#[test]
fn idle_irdepth_is_compressed_away() {
    let sizes = [(0, 7), (9, 0), (0, 0)];
    let blocks = [i(A), jalr(A + 4), i(0x2000), jalr(0x2004), i(A), i(A + 4)];
    for (call_counter_size, return_stack_size) in sizes {
        let repeated = Config {
            call_counter_size,
            return_stack_size,
            ..v2()
        };
        assert_eq!(bytes(&repeated, &blocks), bytes(&v2(), &blocks));
        let ones = Config {
            idle_irdepth: IdleIrdepth::Ones,
            ..repeated
        };
        let width = ones.layout().irdepth_width;
        let told = packets(&ones, &blocks);
        let Packet::Address(report) = told[2] else {
            panic!("no address")
        };
        assert!(!report.irreport);
        assert_eq!(u64::from(report.irdepth), mask(width.into()));
    }
}

/// A negative difference has ones above it, which go on through `irdepth`.
#[test]
fn irdepth_repeats_the_bit_before_it() {
    let config = Config {
        return_stack_size: 3,
        ..v2()
    };
    let blocks = [jalr(A), i(0x800), in_mode(Mode::U, i(0x804))];
    let told = packets(&config, &blocks);
    let Packet::Address(report) = told[2] else {
        panic!("no address")
    };
    // MSB 1, notify 1, updiscon 0 as it differs, irdepth likewise.
    assert_eq!((report.updiscon, report.irdepth), (true, 0));
    let blocks = [jalr(A), i(0x800), i(0x804)];
    let Packet::Address(report) = packets(&config, &blocks)[2] else {
        panic!("no address")
    };
    assert_eq!((report.updiscon, report.irdepth), (false, 15));
}

/// The reference encoder tells the last address whatever was told before.
#[test]
fn endings() {
    let reference = Config {
        ending: Ending::Reference,
        ..v2()
    };
    let end = QualStatus::EndedRep;
    check(&reference, &[i(A)], &[start(A), address(A, A)], end);
    let blocks = [jalr(A), i(0x2000)];
    let inner = [start(A), address(A, 0x2000), address(0x2000, 0x2000)];
    check(&reference, &blocks, &inner, end);
    let blocks = [i(A), not_taken(A + 4)];
    let inner = [start(A), branches(map(1, 1), delta(A, A + 4))];
    check(&reference, &blocks, &inner, end);
    let inner = [
        start(A),
        Packet::Branches {
            map: outcomes(31),
            address: None,
        },
        address(A, A + 4 * 31),
    ];
    check(&reference, &many(31), &inner, end);
    // A halt is no end.
    let halted = Ingress {
        halted: true,
        ..Ingress::default()
    };
    let told = packets(&reference, &[jalr(A), i(0x2000), halted]);
    assert_eq!(told[3], support(&reference, true, QualStatus::EndedNtr));
    assert_eq!(told[4], support(&reference, false, QualStatus::NoChange));
    assert_eq!(told.len(), 5);
}

/// Each hart has its own state and counters.
#[test]
fn several_harts() {
    let mut encoder = encoder(&v2());
    for n in 0..3 {
        for hart in [7, 3] {
            let base = u64::from(hart) << 16;
            encoder.ingress(HartId(hart), &i(base + 4 * n));
        }
    }
    encoder.finish();
    let all = read(&encoder);
    assert_eq!(all.len(), 8);
    assert_eq!([all[1], all[3]], [start(7 << 16), start(3 << 16)]);
    let one = encoder.counters(HartId(3)).unwrap();
    assert_eq!(one.messages, 4);
    assert_eq!(one.bytes, one.payload_bytes + 4);
    assert_eq!(encoder.total().messages, 8);
    let bytes: usize = encoder.sink().0.iter().map(Vec::len).sum();
    assert_eq!(encoder.total().bytes, bytes as u64);
    assert_eq!(encoder.counters(HartId(0)), None);
}

/// 6.8: a branch that makes the count 0xffff_ffff is reported with its address.
#[test]
fn the_largest_branch_count() {
    for version in ALL_VERSIONS {
        let config = Config {
            bpred_size: 4,
            branch_prediction: true,
            ..config(version)
        };
        let mut hart = Hart::with_filter(&config, Filter::new(&FilterConfig::default()), HartId(0));
        let mut sink = Packets::default();
        hart.take_block(&config, &i(0x100), &mut sink);
        // As if 31 + 0xffff_fffe branches had been predicted.
        let prediction = hart.prediction.as_mut().unwrap();
        prediction.pretend(u64::from(u32::MAX) + 30);
        for _ in 0..2 {
            hart.take_block(&config, &not_taken(0x104), &mut sink);
        }
        hart.end(&config, &mut sink);
        let read = |bytes: &Vec<u8>| Packet::read(&bytes[1..], &config.layout()).unwrap();
        let packets: Vec<Packet> = sink.0.iter().map(read).collect();
        let expected = Packet::BranchCount {
            branch_count: u32::MAX,
            address: Some((false, delta(0x100, 0x104))),
        };
        assert_eq!(packets[2], expected, "{packets:x?}");
        let one = branches(map(1, 1), delta(0x104, 0x104));
        assert_eq!(packets[3], one, "the next branch is counted anew");
    }
}
