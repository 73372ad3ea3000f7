//! Corner cases that break decoders, one test each. The first ten are about
//! bytes, then the flow, then addresses, time and sources.

use hartrace_flow::{Context, Event, Image, Mark, Mode, PortConfig, Retirement, Signal, SpaceId};
use hartrace_isa::{Isa, Xlen};
use hartrace_ntrace::{
    Body, Btype, Config, Evcode, Fault, ImplicitReturn, Message, Owner, Periodic, Process,
    RepeatedHistory, Sync, SyncUnit, Timestamps, TraceMode, Version,
};

use crate::common::asm::*;
use crate::common::*;

/// A loop with a branch, a call, a return and jumps, and a way through it that
/// makes many messages of all kinds.
pub(crate) fn busy() -> (Image, Vec<Do>) {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(1, 0x100), b(0x1c), C_JR_A5]),
            (0x120, &[C_ADD, b(-0x22)]),
            (0x126, &[C_JR_A5]),
            (0x200, &[C_ADD, b(6), C_ADD, C_RET]),
            (0x800, &[C_ADD, MRET]),
        ],
    );
    let mut way = Vec::new();
    for n in 0..60 {
        way.extend(go(&[0x100, 0x200, 0x202]));
        if n % 3 != 0 {
            way.push(Do::At(0x206));
        }
        if n % 7 == 0 {
            way.push(Do::Trap(0x208, 0x800, INTERRUPT, None));
            way.extend(go(&[0x800, 0x802]));
        }
        way.push(Do::At(0x208));
        way.push(Do::At(0x104));
        match n % 5 {
            0 => way.push(Do::At(0x108)),
            1 => way.extend(go(&[0x120, 0x122, 0x126])),
            _ => way.extend(go(&[0x120, 0x122])),
        }
    }
    way.push(Do::At(0x100));
    way.push(Do::At(0x200));
    (image, way)
}

/// Settings with a sync every sixteen messages.
pub(crate) fn often(kind: Config) -> Config {
    Config {
        periodic: Periodic {
            unit: SyncUnit::Messages,
            max: 0,
            delayed: false,
        },
        ..kind
    }
}

/// The busy way is sound, whatever is set.
#[test]
fn case_00_busy_way() {
    let (image, way) = busy();
    for kind in all_kinds() {
        for implicit_return in [ImplicitReturn::Off, ImplicitReturn::Full] {
            let repeated_history = match kind.mode {
                TraceMode::Htm => RepeatedHistory::On,
                TraceMode::Btm => RepeatedHistory::Off,
            };
            let config = Config {
                implicit_return,
                repeated_history,
                repeat_branch: kind.mode == TraceMode::Btm,
                ..often(kind.clone())
            };
            round_trip(&config, &image, &way);
            // Several instructions in a block make the same trace, but for
            // where syncs come.
            let steps = steps(&image, &way);
            for room in [2, 7, 64] {
                let port = PortConfig {
                    retirement: Retirement::Block(room),
                    ..port(&config, Isa::RV64GC)
                };
                let bytes = encode_at(port, &config, &steps);
                check(&config, &image, &steps, &bytes);
            }
        }
    }
}

/// Every setting at once, decoded from every byte on: what comes out is the end
/// of what is right, whatever was missed.
#[test]
fn case_08_every_start_with_every_option() {
    let (image, mut way) = busy();
    way.insert(0, Do::Mode(Mode::U));
    for n in (40..way.len()).step_by(90) {
        way.insert(n, Do::Signal(Signal::Notify));
    }
    for kind in all_kinds() {
        let htm = kind.mode == TraceMode::Htm;
        let config = Config {
            implicit_return: ImplicitReturn::Full,
            repeated_history: if htm {
                RepeatedHistory::On
            } else {
                RepeatedHistory::Off
            },
            repeat_branch: !htm,
            context: true,
            hcontext: true,
            triggers: true,
            timestamps: Some(Timestamps::default()),
            icnt_bits: 7,
            hist_bits: 9,
            ..often(kind)
        };
        let bytes = round_trip(&config, &image, &way);
        let whole = decode(&config, &image, &bytes);
        let (pcs, times) = (whole.pcs(&image), whole.times());
        for at in 0..bytes.len() {
            let events = decode(&config, &image, &bytes[at..]);
            assert!(events.gaps().len() <= 1, "from {at}: {:?}", events.gaps());
            assert!(pcs.ends_with(&events.pcs(&image)), "from {at}");
            assert!(times.ends_with(&events.times()), "from {at}");
        }
    }
}

/// MSEO = 10, and 01 right behind 11: dropped to the next 11, then a sync is
/// waited for.
#[test]
fn case_01_reserved_mseo() {
    let (image, way) = busy();
    for kind in all_kinds() {
        let config = often(kind);
        let bytes = encode(&config, &image, &way);
        let pcs = decode(&config, &image, &bytes).whole().pcs(&image);
        for at in (5..bytes.len() - 40).step_by(7) {
            let mut bad = bytes.clone();
            bad[at] = bad[at] & !3 | 2;
            let events = decode(&config, &image, &bad);
            assert_eq!(events.codes(), [Fault::ReservedMseo.code()], "byte {at}");
            let gap = events.gaps()[0];
            assert!(gap.at <= at as u64 && (at as u64) < gap.at + gap.bytes);
            // In front of the gap and behind it all is right.
            let found = events.pcs(&image);
            let behind = found.len() - count_before_gap(&events) as usize;
            assert!(pcs.starts_with(&found[..found.len() - behind]), "byte {at}");
            assert!(pcs.ends_with(&found[found.len() - behind..]), "byte {at}");
        }
    }
    let config = btm(Version::V1_0);
    let mut bytes = stream(&config, &[start(0x100)]);
    bytes.extend([0x05, 0x0f]);
    let events = decode(&config, &image, &bytes);
    assert_eq!(events.codes(), [Fault::StrayField.code()]);
}

/// Instructions in front of the first gap.
fn count_before_gap(events: &Events) -> u64 {
    let mut count = 0;
    for (_, event) in &events.0 {
        match event {
            Event::Run(run) => count += u64::from(run.insns),
            Event::Gap(_) => break,
            _ => {}
        }
    }
    count
}

/// 0xff is idle only where no message is open.
#[test]
fn case_02_idle_or_last_byte() {
    let (image, way) = busy();
    let steps = steps(&image, &way);
    for kind in all_kinds() {
        let config = often(kind);
        let bytes = encode(&config, &image, &way);
        for idle in 1..4 {
            let mut padded = vec![0xff; idle];
            for message in messages(&config, &bytes) {
                message.write(&config.layout(), &mut padded);
                padded.extend(vec![0xff; idle]);
            }
            check(&config, &image, &steps, &padded);
        }
        // A message that ends in 0xff, then idle.
        let last = Body::RepeatBranch { count: 63 };
        let ends = stream(&config, &[last]);
        assert_eq!(ends, [30 << 2, 0xff]);
    }
}

/// A byte with MSEO = 11 that is not 0xff, between messages.
#[test]
fn case_03_stray_end() {
    let image = three_runs();
    let config = btm(Version::V1_0);
    for stray in [0x03, 0x0f, 0xfb] {
        let mut bytes = stream(&config, &[start(0x100)]);
        bytes.push(stray);
        bytes.extend(stream(
            &config,
            &[direct(3), start(0x100), end(&config, 1, 1)],
        ));
        let events = decode(&config, &image, &bytes);
        assert_eq!(events.codes(), [Fault::StrayEnd.code()]);
        assert_eq!((events.gaps()[0].at, events.gaps()[0].bytes), (4, 3));
        assert_eq!(events.pcs(&image), [0x100]);
    }
}

/// Erased memory in the middle of a trace.
#[test]
fn case_04_zeros() {
    let image = three_runs();
    let config = btm(Version::V1_0);
    for zeros in [1, 2, 50, 5000] {
        let mut bytes = stream(&config, &[start(0x100)]);
        bytes.extend(vec![0; zeros]);
        bytes.extend(stream(
            &config,
            &[direct(3), start(0x100), end(&config, 1, 1)],
        ));
        let events = decode(&config, &image, &bytes);
        let gap = events.gaps();
        // A few zeros make the next message one of type 0, which is reserved
        // and skipped: its count is missing, and nothing shows it.
        if zeros > 256 {
            assert_eq!(gap.len(), 1);
            assert_eq!(gap[0].bytes, zeros as u64 + 2);
        }
        assert_eq!(events.pcs(&image), [0x100]);
    }
}

/// 66 bits for 63 of an address and for 64 of a time.
#[test]
fn case_05_eleven_bytes() {
    let high = 0xffff_ffff_8000_0000u64;
    let image = image(Isa::RV64GC, &[(high, &[C_ADD, C_ADD])]);
    let config = Config {
        timestamps: Some(Timestamps::default()),
        ..htm(Version::V1_0)
    };
    let time = 0xfedc_ba98_7654_3210;
    let bytes = stamped(
        &config,
        &[(start(high), Some(time)), (end(&config, 1, 1), None)],
    );
    assert_eq!(bytes.len(), 2 + 11 + 11 + 4);
    let events = decode(&config, &image, &bytes).whole();
    assert_eq!(
        (events.pcs(&image), events.times()),
        (vec![high], vec![time])
    );
}

/// Fields padded with zeros mean the same.
#[test]
fn case_06_padding() {
    let image = three_runs();
    let config = btm(Version::V1_0);
    let bytes = [
        [0x24, 0x0c, 0x01, 0x00, 0x08, 0x00, 0x00, 0x03].as_slice(),
        &[0x0c, 0x0c, 0x00, 0x03],
        &[0x84, 0x00, 0x04, 0x03],
    ]
    .concat();
    let events = decode(&config, &image, &bytes).whole();
    assert_eq!(events.pcs(&image), THREE[0]);
}

/// Unknown types are skipped, their source known.
#[test]
fn case_07_unknown_types() {
    let image = three_runs();
    let config = Config {
        src_bits: 5,
        ..btm(Version::V1_0)
    };
    let mut bytes = Vec::new();
    let mut put = |src, body| Message::new(src, body).write(&config.layout(), &mut bytes);
    put(3, start(0x100));
    put(3, direct(3));
    // Type 60 of source 3, type 1 of source 9.
    bytes.extend([60 << 2, 3 << 2, 0xfc, 0xfd, 0x03]);
    bytes.extend([1 << 2, 9 << 2 | 3]);
    Message::new(3, end(&config, 1, 1)).write(&config.layout(), &mut bytes);
    let events = decode(&config, &image, &bytes).whole();
    assert_eq!(events.pcs(&image), THREE[0]);
    assert_eq!(events.of(3).marks()[1], Mark::Vendor(60));
    assert_eq!(events.of(9).marks(), [Mark::Vendor(1)]);
}

/// A trace whose end is cut.
#[test]
fn case_08_cut_at_the_end() {
    let (image, way) = busy();
    for kind in all_kinds() {
        let config = often(kind);
        let bytes = encode(&config, &image, &way);
        let pcs = decode(&config, &image, &bytes).whole().pcs(&image);
        for len in 1..bytes.len() {
            let events = decode(&config, &image, &bytes[..len]);
            let found = events.pcs(&image);
            assert!(pcs.starts_with(&found), "{len} bytes");
        }
    }
}

/// Which field is TSTAMP depends on RCODE and CDF.
#[test]
fn case_10_where_tstamp_is() {
    let image = image(Isa::RV64GC, &[(0x100, &[b(-0), b(0x20), C_ADD])]);
    for version in VERSIONS {
        let config = Config {
            timestamps: Some(Timestamps::default()),
            ..htm(version)
        };
        let repeat = Body::HistRepeat {
            hist: 0b11,
            count: 3,
        };
        let messages = [
            (start(0x100), Some(100)),
            (full(2), Some(1)),
            (hist_full(0b11), Some(2)),
            (repeat, Some(3)),
            (repeat, None),
            (stop(Evcode::DISABLED, 2 * 7, Some(0b10)), Some(4)),
            (sync(Sync::ENABLE, 0, 0x108), Some(200)),
            (stop(Evcode::DISABLED, 1, None), Some(5)),
        ];
        let events = decode(&config, &image, &stamped(&config, &messages)).whole();
        assert_eq!(events.times(), [100, 103, 106, 110, 200, 205]);
        assert_eq!(events.pcs(&image), [vec![0x100; 8], vec![0x108]].concat());
    }
}

/// RCODE = 0 with branches pending: summed, not walked.
#[test]
fn case_11_icnt_full_with_history_pending() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[b(0x10), ADD, b(0xfc), ADD, b(-0x10), C_ADD])],
    );
    // The first branch is taken, the second not: only HIST tells.
    let pcs = [0x100, 0x110, 0x100, 0x104, 0x108, 0x204];
    let image = {
        let mut image = image;
        image.add_raw(SpaceId::FIRST, 0x204, &code(&[C_ADD]), Isa::RV64GC);
        image
    };
    for version in VERSIONS {
        let config = htm(version);
        for middle in [
            [full(4), full(4)].as_slice(),
            &[full(8)],
            &[full(4), hist_full(0b111), full(4)],
            &[hist_full(0b11), full(8), hist_full(0b11)],
        ] {
            let told = middle.iter().map(|b| match b {
                Body::HistFull { hist } => 63 - hist.leading_zeros(),
                _ => 0,
            });
            let rest = 4 - told.sum::<u32>();
            let hist = 1 << rest | 0b1101 & ((1 << rest) - 1);
            let mut all = vec![start(0x100)];
            all.extend(middle);
            all.push(end(&config, 3, hist));
            gives(&config, &image, &all, &pcs);
        }
        for icnt_bits in 2..8 {
            let config = Config {
                icnt_bits,
                ..config.clone()
            };
            round_trip(&config, &image, &go(&pcs));
        }
    }
}

/// RCODE = 1 does not restart I-CNT, and the walk stops right behind the last
/// branch.
#[test]
fn case_12_history_does_not_restart_icnt() {
    let image = image(Isa::RV64GC, &[(0x100, &[b(0x20), C_ADD, C_JR_A5])]);
    let config = htm(Version::V1_0);
    // A trap right behind the branch: had the walk gone on, it would be past it.
    let all = [
        start(0x100),
        hist_full(0b10),
        indirect(Btype::Exception, 2, 0x100, 0x104),
        jump(2, 0x104, 0x104),
        end(&config, 1, 1),
    ];
    gives(&config, &image, &all, &[0x100, 0x104, 0x106, 0x104]);
    let all = [start(0x100), hist_full(0b10), end(&config, 3, 1)];
    gives(&config, &image, &all, &[0x100, 0x104]);
    let all = [start(0x100), hist_full(0b10), end(&config, 1, 1)];
    refused(&config, &image, &all, Fault::CountTooSmall);
    for hist_bits in 2..=32 {
        let (image, way) = busy();
        let config = Config {
            hist_bits,
            ..config.clone()
        };
        round_trip(&config, &image, &way);
    }
}

/// The first branch is the bit below the stop bit; up to 32 bits and above.
#[test]
fn case_13_order_of_hist() {
    // Ten branches in a row, each over one instruction.
    let insns: Vec<u32> = [b(6), C_ADD].repeat(31);
    let image = image(Isa::RV64GC, &[(0x100, &insns), (0x100 + 31 * 6, &[C_ADD])]);
    let config = htm(Version::V1_0);
    let outcomes = 0x2d5a_5a1bu64 & 0x7fff_ffff;
    let mut pcs = Vec::new();
    let mut icnt = 0;
    for i in 0..31u64 {
        pcs.push(0x100 + 6 * i);
        icnt += 2;
        if outcomes >> (30 - i) & 1 == 0 {
            pcs.push(0x104 + 6 * i);
            icnt += 1;
        }
    }
    let hist = 1 << 31 | outcomes;
    gives(
        &config,
        &image,
        &[start(0x100), end(&config, icnt, hist)],
        &pcs,
    );
    let all = [start(0x100), hist_full(hist), end(&config, icnt, 1)];
    let events = decode(&config, &image, &stream(&config, &all)).whole();
    assert_eq!(events.pcs(&image), pcs);
    // A history of 63 branches, more than any encoder sends.
    let spin = {
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0x100, &code(&[b(0)]), Isa::RV64GC);
        image
    };
    let all = [start(0x100), end(&config, 126, u64::MAX)];
    gives(&config, &spin, &all, &[0x100; 63]);
}

/// Patterns of any length, split counts, and through calls and returns.
#[test]
fn case_14_patterns() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(1, 0x100), b(-4), C_ADD]),
            (0x200, &[b(6), C_RET, C_RET]),
        ],
    );
    for version in VERSIONS {
        for period in 1..9 {
            let mut pcs = Vec::new();
            for n in 0..400 {
                let taken = n % period == 0;
                pcs.extend([0x100, 0x200, if taken { 0x206 } else { 0x204 }, 0x104]);
            }
            pcs.push(0x108);
            for (hrepeat_bits, hist_bits) in [(18, 32), (3, 32), (18, 7), (0, 31)] {
                let config = Config {
                    implicit_return: ImplicitReturn::Full,
                    repeated_history: RepeatedHistory::On,
                    hrepeat_bits,
                    hist_bits,
                    triggers: true,
                    ..htm(version)
                };
                let bytes = round_trip(&config, &image, &go(&pcs));
                let repeats = bodies(&config, &bytes);
                // With small fields a repetition is no gain.
                if hrepeat_bits == 18 && hist_bits == 32 {
                    assert!(repeats.iter().any(|b| matches!(b, Body::HistRepeat { .. })));
                }
                // A sync in the middle of a repetition: what was counted first.
                let mut way = go(&pcs);
                way.insert(401, Do::Signal(Signal::Notify));
                let config = Config {
                    implicit_return: ImplicitReturn::Off,
                    ..config
                };
                round_trip(&config, &image, &way);
            }
        }
    }
}

/// RepeatBranch: the same target, traps too, any number.
#[test]
fn case_15_repeat_branch() {
    let image = image(Isa::RV64GC, &[(0x800, &[C_ADD, C_EBREAK])]);
    let mut way = Vec::new();
    for _ in 0..20 {
        way.push(Do::At(0x800));
        way.push(Do::Trap(0x802, 0x800, EXCEPTION, None));
    }
    way.push(Do::At(0x800));
    for version in VERSIONS {
        let config = Config {
            repeat_branch: true,
            timestamps: Some(Timestamps::default()),
            ..btm(version)
        };
        let bytes = round_trip(&config, &image, &way);
        let expected = [
            start(0x800),
            indirect(Btype::Exception, 1, 0x800, 0x800),
            Body::RepeatBranch { count: 19 },
            end(&config, 1, 1),
        ];
        assert_eq!(bodies(&config, &bytes), expected);
        let times = decode(&config, &image, &bytes).times();
        assert_eq!(times, [0, 1, 39, 40]);
    }
    for body in [full(1), Body::Ownership { process: 0xc }] {
        // None of them is repeated.
        let config = btm(Version::V1_0);
        let all = [start(0x800), body, Body::RepeatBranch { count: 1 }];
        refused(&config, &image, &all, Fault::NothingToRepeat);
    }
    let config = btm(Version::V1_0);
    let first = indirect(Btype::Exception, 1, 0x800, 0x800);
    for middle in [
        Body::Error { etype: 0, ecode: 4 },
        sync(Sync::EVENT, 0, 0x800),
        halt(&config, 0, 1),
    ] {
        let all = [start(0x800), first, middle, Body::RepeatBranch { count: 1 }];
        let events = decode(&config, &image, &stream(&config, &all));
        assert_eq!(events.codes().len(), 1, "{middle:?}");
        assert_eq!(events.traps().len(), 1);
    }
}

/// Swaps, both link registers, traps between call and return, deep calls.
#[test]
fn case_16_implied_returns() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(5, 0x100), C_ADD, jal(1, 0x1fa), C_ADD]),
            (0x200, &[C_ADD, SWAP, C_ADD, SWAP]),
            (0x300, &[C_ADD, C_RET]),
            (0x800, &[jal(1, 0x100), C_ADD, MRET]),
            (0x900, &[C_ADD, C_RET]),
        ],
    );
    let way = [
        go(&[0x100, 0x200, 0x202, 0x104]),
        // call, trap in it with a call of its own, and back.
        go(&[0x106, 0x300]),
        vec![Do::Trap(0x302, 0x800, INTERRUPT, None)],
        go(&[0x800, 0x900, 0x902, 0x804, 0x806, 0x302, 0x10a]),
    ]
    .concat();
    for kind in all_kinds() {
        for mode in [
            ImplicitReturn::Count,
            ImplicitReturn::Partial(12),
            ImplicitReturn::Full,
        ] {
            let config = Config {
                implicit_return: mode,
                ..kind.clone()
            };
            let mut way = way.clone();
            way[3] = Do::At(0x104);
            let bytes = round_trip(&config, &image, &way);
            let told = bodies(&config, &bytes);
            // The interrupt and its return, no other.
            let hist = (config.mode == TraceMode::Htm).then_some(1);
            let expected = [
                start(0x100),
                indirect(Btype::Interrupt, 9, 0x100, 0x800),
                jump(7, 0x800, 0x302),
                stop(Evcode::DISABLED, 2, hist),
            ];
            assert_eq!(told, expected);
        }
    }
}

/// A jump inside I-CNT: only where it is implied.
#[test]
fn case_17_jump_inside_icnt() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x1000, &[lui_a5(0x2000), jalr(0, 15, 0x10), C_ADD]),
            (0x2010, &[C_ADD]),
        ],
    );
    for config in all_kinds() {
        let all = [start(0x1000), end(&config, 5, 1)];
        refused(&config, &image, &all, Fault::UnreportedJump);
        let config = Config {
            sequential_jump: true,
            ..config
        };
        gives(&config, &image, &all, &[0x1000, 0x1004, 0x2010]);
        let apart = [start(0x1004), end(&config, 3, 1)];
        refused(&config, &image, &apart, Fault::UnreportedJump);
    }
}

/// A stretch may end anywhere but inside an instruction.
#[test]
fn case_18_a_stretch_ends_anywhere() {
    let image = three_runs();
    let ends = [0, 1, 3, 5, 7, 8, 10];
    let hists = [1, 1, 0b10, 0b10, 0b100, 0b100, 0b100];
    for config in all_kinds() {
        for (n, icnt) in ends.into_iter().enumerate() {
            let hist = if config.mode == TraceMode::Htm {
                hists[n]
            } else {
                1
            };
            let trap = Body::IndirectBranchHist {
                btype: Btype::Interrupt,
                icnt,
                uaddr: 0x480,
                hist,
            };
            let trap = match config.mode {
                TraceMode::Htm => trap,
                TraceMode::Btm => indirect(Btype::Interrupt, icnt, 0x100, 0x800),
            };
            let all = [start(0x100), trap, end(&config, 1, 1)];
            let pcs = [&THREE[2][..n], &[0x800]].concat();
            gives(&config, &image, &all, &pcs);
        }
    }
    let config = btm(Version::V1_0);
    for icnt in [2, 4, 6, 9] {
        let trap = indirect(Btype::Interrupt, icnt, 0x100, 0x800);
        refused(
            &config,
            &image,
            &[start(0x100), trap],
            Fault::HalfInstruction,
        );
    }
}

/// A branch behind the last outcome: not inside a stretch.
#[test]
fn case_19_branch_without_an_outcome() {
    let image = three_runs();
    let config = htm(Version::V1_0);
    // In front of it the stretch may end.
    let all = [start(0x100), end(&config, 5, 0b10)];
    gives(&config, &image, &all, &[0x100, 0x102, 0x106]);
    let all = [start(0x100), end(&config, 8, 0b10)];
    refused(&config, &image, &all, Fault::MissingHistory);
    // BTM: DirectBranch ends with a taken one, all others were not taken.
    let config = btm(Version::V1_0);
    let all = [start(0x100), direct(7), end(&config, 2, 1)];
    gives(&config, &image, &all, THREE[1]);
    for last in [end(&config, 7, 1), sync(Sync::EVENT, 7, 0x10e)] {
        let all = [start(0x100), last];
        gives(&config, &image, &all, &[0x100, 0x102, 0x106, 0x10a]);
    }
    let trap = indirect(Btype::Interrupt, 7, 0x100, 0x800);
    let all = [start(0x100), trap, end(&config, 0, 1)];
    gives(&config, &image, &all, &[0x100, 0x102, 0x106, 0x10a]);
    // A sync may say that the last one was taken.
    let all = [
        start(0x100),
        sync(Sync::EVENT, 7, 0x300),
        end(&config, 2, 1),
    ];
    gives(&config, &image, &all, THREE[1]);
}

/// IndirectBranch in HTM, with history in a ResourceFull before it.
#[test]
fn case_20_short_messages_in_htm() {
    let image = image(Isa::RV64GC, &[(0x100, &[b(8), C_JR_A5, C_ADD, C_JR_A5])]);
    let config = htm(Version::V1_0);
    let all = [
        start(0x100),
        hist_full(0b11),
        jump(3, 0x100, 0x104),
        jump(1, 0x104, 0x100),
        end(&config, 2, 0b10),
    ];
    gives(&config, &image, &all, &[0x100, 0x108, 0x104, 0x100]);
    let all = [
        start(0x100),
        hist_full(0b11),
        Body::IndirectBranchSync {
            sync: Sync::PERIODIC,
            btype: Btype::Indirect,
            icnt: 3,
            faddr: 0x82,
        },
        jump(1, 0x104, 0x100),
        end(&config, 2, 0b10),
    ];
    gives(&config, &image, &all, &[0x100, 0x108, 0x104, 0x100]);
}

/// A sync in linear code is a check of the way to it.
#[test]
fn case_21_sync_checks_the_way() {
    let image = three_runs();
    for config in all_kinds() {
        let hist = |h| match config.mode {
            TraceMode::Htm => hist_sync(Sync::PERIODIC, 5, 0x10a, h),
            TraceMode::Btm => sync(Sync::PERIODIC, 5, 0x10a),
        };
        let all = [start(0x100), hist(0b10), end(&config, 3, 0b10)];
        gives(&config, &image, &all, &[0x100, 0x102, 0x106, 0x10a, 0x10e]);
        let wrong = [
            start(0x100),
            sync(Sync::PERIODIC, 1, 0x106),
            end(&config, 2, 1),
        ];
        let events = decode(&config, &image, &stream(&config, &wrong));
        assert_eq!(events.codes(), [Fault::WrongAddress.code()]);
        assert_eq!(events.pcs(&image), [0x100, 0x106]);
        assert_eq!(events.gaps()[0].unconfirmed, 1);
    }
}

/// Error, and SYNC = 7 behind it: what is pending is void.
#[test]
fn case_22_error() {
    let image = three_runs();
    for config in all_kinds() {
        let error = Body::Error {
            etype: 0,
            ecode: 12,
        };
        let all = [
            start(0x100),
            full(3),
            error,
            sync(Sync::OVERRUN, 0, 0x300),
            end(&config, 2, 1),
        ];
        let events = decode(&config, &image, &stream(&config, &all));
        assert_eq!(events.codes(), [Fault::Overrun.code()]);
        assert_eq!(events.gaps()[0].reason.value, 12);
        assert_eq!(events.pcs(&image), [0x300]);
        // It may be the last, or the first.
        let events = decode(&config, &image, &stream(&config, &all[..3]));
        assert_eq!(events.codes(), [Fault::Overrun.code()]);
        let events = decode(&config, &image, &stream(&config, &all[2..]));
        assert_eq!(events.codes(), [Fault::Overrun.code()]);
        assert_eq!(events.pcs(&image), [0x300]);
    }
}

/// Behind a Correlation nothing is known; more of them may follow.
#[test]
fn case_23_correlation() {
    let image = three_runs();
    for config in all_kinds() {
        let all = [
            start(0x100),
            end(&config, 1, 1),
            halt(&config, 0, 1),
            sync(Sync::DEBUG_EXIT, 0, 0x300),
            end(&config, 2, 1),
        ];
        gives(&config, &image, &all, &[0x100, 0x300]);
        let marks = decode(&config, &image, &stream(&config, &all)).marks();
        let expected = [
            Mark::Resumed,
            Mark::Off,
            Mark::Halted,
            Mark::Resumed,
            Mark::Off,
        ];
        assert_eq!(marks, expected);
        let all = [start(0x100), end(&config, 1, 1), jump(0, 0x100, 0x300)];
        refused(&config, &image, &all, Fault::NotSynchronised);
    }
}

/// ecall counted or not.
#[test]
fn case_24_ecall() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_ADD, ECALL, C_ADD]), (0x800, &[C_ADD, MRET])],
    );
    let way = [
        go(&[0x100]),
        vec![Do::Trap(0x102, 0x800, EXCEPTION, None)],
        go(&[0x800, 0x802, 0x106]),
    ]
    .concat();
    for (kind, icnt) in all_kinds().zip([3, 3, 1, 1]) {
        let bytes = round_trip(&kind, &image, &way);
        let sent = bodies(&kind, &bytes)[1];
        assert_eq!(sent, indirect(Btype::Exception, icnt, 0x100, 0x800));
    }
    // Past it there is no way.
    for config in all_kinds() {
        let all = [start(0x100), end(&config, 4, 1)];
        refused(&config, &image, &all, Fault::UnreportedTrap);
    }
}

/// Direct jumps that use up outcomes.
#[test]
fn case_25_all_jumps() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[jal(0, 8)]), (0x108, &[b(-8), C_ADD])],
    );
    let config = htm(Version::V1_0);
    let on = Config {
        all_jumps: true,
        ..config.clone()
    };
    let pcs = [0x100, 0x108, 0x100, 0x108, 0x10c];
    gives(&on, &image, &[start(0x100), end(&on, 9, 0b11110)], &pcs);
    gives(
        &config,
        &image,
        &[start(0x100), end(&config, 9, 0b110)],
        &pcs,
    );
    // Each with the other's setting.
    refused(
        &on,
        &image,
        &[start(0x100), end(&on, 9, 0b110)],
        Fault::NoCode,
    );
    refused(
        &config,
        &image,
        &[start(0x100), end(&config, 9, 0b11110)],
        Fault::HalfInstruction,
    );
    let wrong = [start(0x100), end(&on, 2, 0b10)];
    refused(&on, &image, &wrong, Fault::JumpNotTaken);
}

/// Custom instructions and longer ones; the table jumps of Zcmt have a test of
/// their own.
#[test]
fn case_26_unusual_instructions() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[b(8), CUSTOM, CUSTOM, C_ADD]), (0x200, &[C_ADD])],
    );
    let config = htm(Version::V1_0);
    let all = [
        start(0x100),
        hist_jump(6, 0x100, 0x200, 0b10),
        end(&config, 1, 1),
    ];
    gives(&config, &image, &all, &[0x100, 0x104, 0x108, 0x200]);
    // It is no jump where another instruction stands.
    let all = [start(0x200), jump(1, 0x200, 0x100)];
    refused(&config, &image, &all, Fault::NotAJump);
}

/// The image depends on the context.
#[test]
fn case_27_code_by_context() {
    let mut image = image(Isa::RV64GC, &[(0x100, &[ADD, ADD])]);
    let other = image.patch(SpaceId::FIRST, 0x100, &code(&[C_ADD, C_ADD, C_ADD, C_ADD]));
    image.assign(Context::new(7, 0), other);
    let owner = |s| Body::Ownership {
        process: Process {
            mode: Mode::U,
            owner: Owner::Scontext(s),
        }
        .field(),
    };
    for kind in all_kinds() {
        let config = Config {
            context: true,
            ..kind
        };
        for (context, insns) in [(7, 3), (8, 0), (0, 0)] {
            let all = [start(0x100), owner(context), end(&config, 3, 1)];
            let events = decode(&config, &image, &stream(&config, &all));
            let found: u32 = events.runs().map(|r| r.insns).sum();
            if insns == 0 {
                assert_eq!(events.codes(), [Fault::HalfInstruction.code()]);
            } else {
                assert_eq!(found, insns);
            }
        }
    }
}

/// U-ADDR is relative to the last address sent, not to the pc.
#[test]
fn case_28_reference() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_JR_A5]), (0x1f0, &[C_ADD, b(-2), C_JR_A5])],
    );
    for config in VERSIONS.map(btm) {
        let all = [
            start(0x100),
            jump(1, 0x100, 0x1f0),
            direct(3),
            full(3),
            jump(1, 0x1f0, 0x100),
        ];
        let pcs = [0x100, 0x1f0, 0x1f2, 0x1f0, 0x1f2, 0x1f6];
        gives(&config, &image, &all, &pcs);
    }
    // Upper bits are put back before the difference is taken.
    let high = 0xffff_ffff_8000_0000u64;
    let far = {
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, high, &code(&[C_JR_A5]), Isa::RV64GC);
        image.add_raw(SpaceId::FIRST, 0x100, &code(&[C_JR_A5]), Isa::RV64GC);
        image
    };
    let config = Config {
        extend_addr_msb: true,
        ..htm(Version::V1_0)
    };
    let way = go(&[high, 0x100, high, high, 0x100, 0x100, high]);
    let bytes = encode(&config, &far, &way);
    let events = decode(&config, &far, &bytes).whole();
    assert_eq!(
        events.pcs(&far),
        [high, 0x100, high, high, 0x100, 0x100, high]
    );
}

/// RV32: addresses end at bit 31.
#[test]
fn case_29_rv32() {
    let image = image(
        Isa::RV32GC,
        &[(0x8000_0000, &[C_ADD, C_JR_A5]), (0x100, &[C_ADD, C_JR_A5])],
    );
    for kind in all_kinds() {
        for extend_addr_msb in [false, true] {
            let config = Config {
                xlen: Xlen::Rv32,
                extend_addr_msb,
                ..kind.clone()
            };
            let pcs = [0x8000_0000, 0x8000_0002, 0x100, 0x102, 0x8000_0000];
            let bytes = round_trip(&config, &image, &go(&pcs));
            let events = decode(&config, &image, &bytes);
            assert_eq!(events.pcs(&image), pcs);
        }
    }
    // A wider address is none.
    let config = Config {
        xlen: Xlen::Rv32,
        ..btm(Version::V1_0)
    };
    let wide = stream(&btm(Version::V1_0), &[start(0x1_0000_0000)]);
    let events = decode(&config, &image, &wide);
    assert_eq!(events.codes(), [Fault::FieldTooWide.code()]);
}

/// Times per source, of any message, some without.
#[test]
fn case_30_times() {
    let image = three_runs();
    let config = Config {
        src_bits: 1,
        timestamps: Some(Timestamps {
            width: 40,
            ..Timestamps::default()
        }),
        ..btm(Version::V1_0)
    };
    let mut bytes = Vec::new();
    let top = (1 << 40) - 1;
    for (src, body, tstamp) in [
        (0, start(0x100), Some(top - 10)),
        (1, start(0x100), Some(50)),
        (0, direct(3), Some(20)),
        (1, direct(3), None),
        (0, Body::Ownership { process: 0xc }, Some(1)),
        (1, Body::Ownership { process: 0xc }, Some(2)),
        (0, sync(Sync::EVENT, 1, 0x202), Some(30)),
        (1, sync(Sync::EVENT, 1, 0x202), Some(40)),
    ] {
        Message { src, body, tstamp }.write(&config.layout(), &mut bytes);
    }
    let events = decode(&config, &image, &bytes).whole();
    let turn = 1u64 << 40;
    assert_eq!(
        events.of(0).times(),
        [top - 10, turn + 9, turn + 10, turn + 30]
    );
    // Behind the last time of its own source: one more turn.
    assert_eq!(events.of(1).times(), [50, 52, turn + 40]);
}

/// Every source has a state of its own: reference, repetition, counts.
#[test]
fn case_31_sources() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_ADD, b(-2), C_JR_A5]), (0x4000, &[C_JR_A5])],
    );
    let config = Config {
        src_bits: 6,
        ..btm(Version::V1_0)
    };
    let each = [
        start(0x100),
        direct(3),
        Body::RepeatBranch { count: 2 },
        full(1),
        direct(2),
        full(3),
        jump(1, 0x100, 0x4000),
        jump(1, 0x4000, 0x100),
        end(&config, 1, 1),
    ];
    let mut bytes = Vec::new();
    // Source 33 is three messages behind source 7.
    for n in 0..each.len() + 3 {
        for (src, at) in [(7, Some(n)), (33, n.checked_sub(3))] {
            if let Some(&body) = at.and_then(|at| each.get(at)) {
                Message::new(src, body).write(&config.layout(), &mut bytes);
            }
        }
    }
    let events = decode(&config, &image, &bytes).whole();
    let mut pcs = [0x100, 0x102].repeat(4);
    pcs.extend([0x100, 0x102, 0x106, 0x4000, 0x100]);
    for hart in [7, 33] {
        assert_eq!(events.of(hart).pcs(&image), pcs);
    }
}

/// One or two Ownership messages behind a sync; reserved ones are refused.
#[test]
fn case_32_ownership() {
    let image = three_runs();
    let config = Config {
        context: true,
        hcontext: true,
        ..btm(Version::V1_0)
    };
    let owner = |process| Body::Ownership { process };
    let all = [
        start(0x100),
        owner(9 << 5 | 0b11_11),
        owner(5 << 5 | 0b11_10),
        end(&config, 1, 1),
    ];
    let events = decode(&config, &image, &stream(&config, &all)).whole();
    let contexts: Vec<_> = events
        .0
        .iter()
        .filter_map(|(_, e)| match e {
            Event::Context(c) => Some((c.mode, c.context)),
            _ => None,
        })
        .collect();
    let mode = Some(Mode::M);
    let expected = [
        (mode, Some(Context::new(0, 9))),
        (mode, Some(Context::new(5, 9))),
    ];
    assert_eq!(contexts, expected);
    for process in [0b01, 0b10_00, 0b1_11_10] {
        let all = [start(0x100), owner(process)];
        refused(&config, &image, &all, Fault::UnknownProcess);
    }
}
