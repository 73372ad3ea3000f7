//! Clauses about decoding: chapter 11, the I-CNT examples of 8.4, 8.5, 8.7, 9
//! and 10.1, from messages as the texts give them.

use hartrace_flow::{
    Cause, Context, Event, Image, Mark, Mode, PortConfig, Retires, Signal, SpaceId, Warning,
};
use hartrace_isa::{Ext, Isa, Xlen};
use hartrace_ntrace::{
    Body, Btype, Config, Decoder, Ending, Evcode, Fault, ImplicitReturn, Message, OtherTcodes,
    Owner, Process, RepeatedHistory, Sync, Tcode, Tcodes, Timestamps, TraceMode, TrapTypes,
    Version,
};

use crate::common::asm::*;
use crate::common::*;

#[test]
fn btm_three_runs() {
    let image = three_runs();
    for version in VERSIONS {
        let config = btm(version);
        let debug = |icnt| stop(Evcode::DEBUG, icnt, None);
        let all: [&[Body<'_>]; 3] = [
            &[start(0x100), direct(3), debug(1)],
            &[start(0x100), direct(7), debug(2)],
            &[start(0x100), debug(10)],
        ];
        for (messages, pcs) in all.iter().zip(THREE) {
            gives(&config, &image, messages, pcs);
        }
    }
}

#[test]
fn htm_three_runs() {
    let image = three_runs();
    for version in VERSIONS {
        let config = htm(version);
        for ((icnt, hist), pcs) in [(4, 0b11), (9, 0b101), (10, 0b100)].iter().zip(THREE) {
            let last = stop(Evcode::DEBUG, *icnt, Some(*hist));
            gives(&config, &image, &[start(0x100), last], pcs);
        }
    }
}

/// I-CNT = 1, 5 and 0 with B-TYPE = 1, by U-ADDR and by F-ADDR.
#[test]
fn icnt_of_traps() {
    let image = three_runs();
    for config in all_kinds() {
        let cases: [(u64, u64, &[u64]); 3] = [
            (1, 1, &[0x100]),
            (5, 0b10, &[0x100, 0x102, 0x106]),
            (0, 1, &[]),
        ];
        for (icnt, hist, pcs) in cases {
            let btype = Btype::Trap;
            let by_uaddr = match config.mode {
                TraceMode::Btm => indirect(btype, icnt, 0x100, 0x800),
                TraceMode::Htm => Body::IndirectBranchHist {
                    btype,
                    icnt,
                    uaddr: (0x100 ^ 0x800) >> 1,
                    hist,
                },
            };
            let (sync, faddr) = (Sync::PERIODIC, 0x400);
            let by_faddr = match config.mode {
                TraceMode::Btm => Body::IndirectBranchSync {
                    sync,
                    btype,
                    icnt,
                    faddr,
                },
                TraceMode::Htm => Body::IndirectBranchHistSync {
                    sync,
                    btype,
                    icnt,
                    faddr,
                    hist,
                },
            };
            for message in [by_uaddr, by_faddr] {
                let bytes = stream(&config, &[start(0x100), message, end(&config, 1, 1)]);
                let events = decode(&config, &image, &bytes).whole();
                assert_eq!(events.pcs(&image), [pcs, &[0x800]].concat());
                let trap = events.traps()[0];
                assert_eq!(trap.epc, Some(0x100 + 2 * icnt));
                assert_eq!((trap.handler, trap.cause), (Some(0x800), Cause::Unknown));
            }
        }
    }
}

/// I-CNT = 4, 6 and 9 are wrong: reported, and decoding goes on at the next
/// sync.
#[test]
fn half_instructions() {
    let image = three_runs();
    for config in all_kinds() {
        for (icnt, hist, before) in [(4, 0b10, 2), (6, 0b10, 3), (9, 0b100, 5)] {
            let message = match config.mode {
                TraceMode::Btm => indirect(Btype::Trap, icnt, 0x100, 0x800),
                TraceMode::Htm => Body::IndirectBranchHist {
                    btype: Btype::Trap,
                    icnt,
                    uaddr: 0x480,
                    hist,
                },
            };
            let messages = [
                start(0x100),
                message,
                end(&config, 1, 1),
                sync(Sync::PERIODIC, 0, 0x200),
                end(&config, 1, 1),
            ];
            let bytes = stream(&config, &messages);
            let events = decode(&config, &image, &bytes);
            let gaps = events.gaps();
            assert_eq!(events.codes(), [Fault::HalfInstruction.code()]);
            assert_eq!(gaps[0].at, 4, "behind the first sync");
            assert_eq!(gaps[0].unconfirmed, before);
            assert_eq!(events.pcs(&image).last(), Some(&0x200));
        }
    }
}

fn long() -> Image {
    image(
        Isa::RV64GC,
        &[
            (
                0x100,
                &[C_ADD, b(0xfe), C_ADD, ADD, ADD, ADD, ADD, ADD, C_EBREAK],
            ),
            (
                0x1100,
                &[C_ADD, b(0xfe), ADD, ADD, ADD, ADD, ADD, C_ADD, C_EBREAK],
            ),
        ],
    )
}

const RC7: [u64; 8] = [0x100, 0x102, 0x106, 0x108, 0x10c, 0x110, 0x114, 0x118];
const V1: [u64; 8] = [
    0x1100, 0x1102, 0x1106, 0x110a, 0x110e, 0x1112, 0x1116, 0x111a,
];

/// 8.4.4 of rc7 and the examples of 1.0, each form in each version where the
/// form exists.
#[test]
fn icnt_full_examples() {
    let image = long();
    for version in VERSIONS {
        let config = htm(version);
        let sequential = hist_sync(Sync::SEQUENTIAL, 8, 0x110, 2);
        let messages = [start(0x100), sequential, halt(&config, 6, 1)];
        gives(&config, &image, &messages, &RC7);
        let messages = [start(0x1100), full(9), halt(&config, 5, 2)];
        gives(&config, &image, &messages, &V1);
        let config = btm(version);
        let messages = [
            start(0x1100),
            sync(Sync::SEQUENTIAL, 9, 0x1112),
            halt(&config, 5, 1),
        ];
        gives(&config, &image, &messages, &V1);
        let messages = [start(0x1100), full(9), halt(&config, 5, 1)];
        gives(&config, &image, &messages, &V1);
    }
}

/// RCODE = 0 any number of times, RCODE = 1 before or behind it.
#[test]
fn icnt_full_and_history_in_any_order() {
    let image = long();
    for version in VERSIONS {
        let config = htm(version);
        let hist = hist_full(0b10);
        for middle in [
            [full(9), hist].as_slice(),
            &[hist, full(9)],
            &[full(1), full(3), hist, full(5)],
            &[hist, full(4), full(5)],
        ] {
            let mut messages = vec![start(0x1100)];
            messages.extend(middle);
            messages.push(halt(&config, 5, 1));
            gives(&config, &image, &messages, &V1);
        }
        // The count alone and the history with the last message.
        let messages = [start(0x1100), full(9), full(5), halt(&config, 0, 0b10)];
        gives(&config, &image, &messages, &V1);
    }
}

/// ResourceFull before a sync that is told with I-CNT = 0: the count is not
/// forgotten.
#[test]
fn icnt_full_before_a_restart() {
    let image = long();
    for config in all_kinds() {
        let hist = config.mode == TraceMode::Htm;
        for reason in [Sync::RESET, Sync::ENABLE, Sync::DEBUG_EXIT, Sync::POWER_UP] {
            let mut messages = vec![start(0x1106), full(4)];
            messages.push(if hist {
                hist_sync(reason, 0, 0x100, 1)
            } else {
                sync(reason, 0, 0x100)
            });
            messages.push(end(&config, 1, 1));
            gives(&config, &image, &messages, &[0x1106, 0x110a, 0x100]);
        }
    }
}

/// 9.3: ten messages, HREPEAT = 10, and pattern 01 a hundred and fifty times
/// are the same.
#[test]
fn hrepeat_forms() {
    let image = image(Isa::RV64GC, &[(0x100, &[b(0x20), b(-4), C_ADD, C_EBREAK])]);
    let mut pcs = [0x100, 0x104].repeat(150);
    pcs.extend([0x100, 0x104, 0x108]);
    for version in VERSIONS {
        let config = htm(version);
        let repeat = |hist, count| Body::HistRepeat { hist, count };
        let forms = [
            vec![hist_full(0x5555_5555 & 0x7fff_ffff); 10],
            vec![repeat(0x5555_5555, 10)],
            vec![repeat(0b101, 150)],
            vec![repeat(0b101, 100), repeat(0b101, 50)],
            vec![repeat(0x5555_5555, 9), hist_full(0x5555_5555)],
            vec![hist_full(0b10), repeat(0b110, 149), hist_full(0b11)],
        ];
        for form in forms {
            let mut messages = vec![start(0x100)];
            messages.extend(form);
            messages.push(halt(&config, 605, 0b100));
            gives(&config, &image, &messages, &pcs);
        }
    }
}

/// A pattern that goes through calls and implied returns.
#[test]
fn hrepeat_across_implied_returns() {
    // loop: jal f; beq loop; f: beq (never); ret
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(1, 0x100), b(-4), C_ADD]),
            (0x200, &[b(0x20), C_RET]),
        ],
    );
    let mut pcs = [0x100, 0x200, 0x204, 0x104].repeat(100);
    pcs.push(0x108);
    for version in VERSIONS {
        let config = Config {
            implicit_return: ImplicitReturn::Full,
            repeated_history: RepeatedHistory::On,
            ..htm(version)
        };
        let repeat = Body::HistRepeat {
            hist: 0b101,
            count: 99,
        };
        let messages = [start(0x100), repeat, end(&config, 701, 0b100)];
        gives(&config, &image, &messages, &pcs);
        round_trip(&config, &image, &go(&pcs));
    }
}

/// 10.1: the custom instruction stays, or goes; by U-ADDR, by F-ADDR, in HTM
/// with HIST.
#[test]
fn custom_instruction() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[ADD, CUSTOM, C_ADD, C_EBREAK]),
            (0x200, &[C_ADD, C_EBREAK]),
        ],
    );
    for config in all_kinds() {
        let stays = [start(0x100), halt(&config, 5, 1)];
        gives(&config, &image, &stays, &[0x100, 0x104, 0x108]);
        let (sync, btype, icnt, faddr, hist) = (Sync::PERIODIC, Btype::Indirect, 4, 0x100, 1);
        let goes = [
            jump(4, 0x100, 0x200),
            hist_jump(4, 0x100, 0x200, 1),
            Body::IndirectBranchSync {
                sync,
                btype,
                icnt,
                faddr,
            },
            Body::IndirectBranchHistSync {
                sync,
                btype,
                icnt,
                faddr,
                hist,
            },
        ];
        for message in goes {
            let messages = [start(0x100), message, halt(&config, 1, 1)];
            gives(&config, &image, &messages, &[0x100, 0x104, 0x200]);
        }
    }
}

/// "Applicable to any size": a custom instruction of 48 bits that jumps.
#[test]
fn long_custom_instruction() {
    let mut image = image(Isa::RV64GC, &[(0x200, &[C_ADD])]);
    let bytes = [0x05, 0x05, 0x1f, 0, 0, 0, 0, 0, 0x05, 0x05];
    image.add_raw(SpaceId::FIRST, 0x100, &bytes, Isa::RV64GC);
    for config in all_kinds() {
        let stays = [start(0x100), halt(&config, 5, 1)];
        gives(&config, &image, &stays, &[0x100, 0x102, 0x108]);
        let goes = [start(0x100), jump(4, 0x100, 0x200), halt(&config, 1, 1)];
        gives(&config, &image, &goes, &[0x100, 0x102, 0x200]);
    }
}

/// A custom instruction that jumps, from steps.
#[test]
fn custom_instruction_round_trip() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[ADD, CUSTOM, C_ADD]), (0x200, &[C_ADD, C_ADD])],
    );
    for config in all_kinds() {
        let goes = [0x100, 0x104, 0x200, 0x202];
        let bytes = encode(&config, &image, &go(&goes));
        let events = decode(&config, &image, &bytes).whole();
        assert_eq!(events.pcs(&image), goes);
        round_trip(&config, &image, &go(&[0x100, 0x104, 0x108]));
    }
}

/// What a sync message stands behind is told: a jump without a count does not
/// mean it, whether decoding began there or before.
#[test]
fn custom_instruction_before_sync() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[ADD, CUSTOM, C_ADD]), (0x200, &[C_ADD, C_EBREAK])],
    );
    for config in all_kinds() {
        let behind = sync(Sync::PERIODIC, 4, 0x108);
        let all = [start(0x100), behind, jump(0, 0x108, 0x200)];
        for messages in [&all[..], &all[1..]] {
            let events = decode(&config, &image, &stream(&config, messages));
            assert_eq!(events.codes(), [Fault::NotAJump.code()]);
        }
    }
}

/// Counts that nobody would believe do not overflow, whatever the limit.
#[test]
fn counts_without_limit() {
    let image = image(Isa::RV64GC, &[(0x100, &[C_ADD, ECALL])]);
    let icnt = (1 << 56) - 1;
    for mut config in all_kinds() {
        config.max_expansion = u64::MAX;
        for ending in [jump(icnt, 0x100, 0x200), halt(&config, icnt, 1)] {
            let mut messages = vec![start(0x100)];
            messages.extend([full(icnt); 300]);
            messages.push(ending);
            let events = decode(&config, &image, &stream(&config, &messages));
            assert_eq!(events.codes(), [Fault::UnreportedTrap.code()]);
        }
    }
}

/// 8.5: any sync message may come on linear code; B-TYPE = 0 is no jump then.
#[test]
fn sync_on_linear_code() {
    let image = three_runs();
    for version in VERSIONS {
        for mode in [TraceMode::Btm, TraceMode::Htm] {
            let config = Config {
                mode,
                ..htm(version)
            };
            let (sync, btype, icnt, faddr) = (Sync::EVENT, Btype::Indirect, 1, 0x81);
            let hist = 1;
            for message in [
                Body::ProgTraceSync { sync, icnt, faddr },
                Body::DirectBranchSync { sync, icnt, faddr },
                Body::IndirectBranchSync {
                    sync,
                    btype,
                    icnt,
                    faddr,
                },
                Body::IndirectBranchHistSync {
                    sync,
                    btype,
                    icnt,
                    faddr,
                    hist,
                },
            ] {
                let messages = [start(0x100), message, end(&config, 4, 0b10)];
                gives(&config, &image, &messages, &[0x100, 0x102, 0x106]);
            }
        }
    }
}

/// Decoding starts at any sync message; what its counts say of before is
/// ignored.
#[test]
fn sync_starts_decoding() {
    let image = three_runs();
    for config in all_kinds() {
        for code in 0..16 {
            let messages = [sync(Sync(code), 77, 0x106), end(&config, 2, 1)];
            gives(&config, &image, &messages, &[0x106]);
            let first = hist_sync(Sync(code), 77, 0x106, 0x1234);
            let messages = [first, end(&config, 2, 1)];
            gives(&config, &image, &messages, &[0x106]);
        }
    }
}

/// "Decoders should report synchronization codes, including reserved ones."
#[test]
fn sync_codes_are_reported() {
    let image = three_runs();
    let config = htm(Version::V1_0);
    let expected = [
        (0, Some(Mark::External(0))),
        (1, Some(Mark::Reset)),
        (2, None),
        (3, Some(Mark::Resumed)),
        (4, Some(Mark::Sync(4))),
        (5, Some(Mark::On)),
        (6, Some(Mark::Notify)),
        (7, Some(Mark::Sync(7))),
        (8, Some(Mark::Sync(8))),
        (9, Some(Mark::PowerUp)),
        (10, Some(Mark::Sync(10))),
        (15, Some(Mark::Sync(15))),
    ];
    for (code, mark) in expected {
        let bytes = stream(&config, &[sync(Sync(code), 0, 0x100)]);
        let marks = decode(&config, &image, &bytes).marks();
        assert_eq!(marks, mark.into_iter().collect::<Vec<_>>(), "SYNC={code}");
    }
    for (code, mark) in [(0, Mark::Halted), (1, Mark::PowerDown), (4, Mark::Off)] {
        let messages = [sync(Sync(2), 0, 0x100), stop(Evcode(code), 0, Some(1))];
        let marks = decode(&config, &image, &stream(&config, &messages)).marks();
        assert_eq!(marks, [mark], "EVCODE={code}");
    }
}

/// HTM: a ProgTraceSync drops the branches it has no field for. That is a gap,
/// and the trace goes on.
#[test]
fn sync_without_its_history() {
    let image = three_runs();
    let config = htm(Version::V1_0);
    let messages = [
        start(0x100),
        sync(Sync::EVENT, 5, 0x10a),
        end(&config, 3, 0b10),
    ];
    let events = decode(&config, &image, &stream(&config, &messages));
    assert_eq!(events.codes(), [Fault::MissingHistory.code()]);
    let pcs = events.pcs(&image);
    assert_eq!(pcs[pcs.len() - 2..], [0x10a, 0x10e]);
}

/// The reference of U-ADDR is the last address sent, by whatever message.
#[test]
fn reference_address() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x3fc04, &[C_JR_A5]),
            (0x3f368, &[b(4), C_JR_A5]),
            (0x3e100, &[C_ADD]),
        ],
    );
    let config = htm(Version::V1_0);
    let raw = |icnt, uaddr, hist| Body::IndirectBranchHist {
        btype: Btype::Indirect,
        icnt,
        uaddr,
        hist,
    };
    let process = Process {
        mode: Mode::M,
        owner: Owner::Mode,
    };
    let messages = [
        start(0x3fc04),
        raw(1, 0x7b6, 1),
        hist_full(0b11),
        full(2),
        Body::Ownership {
            process: process.field(),
        },
        raw(1, 0x934, 1),
        end(&config, 1, 1),
    ];
    gives(
        &config,
        &image,
        &messages,
        &[0x3fc04, 0x3f368, 0x3f36c, 0x3e100],
    );
}

/// From every byte of a stream on: nothing wrong is ever decoded, and what
/// follows the first sync is complete.
#[test]
fn from_the_middle() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[ADD, b(-4), C_JR_A5]), (0x200, &[C_ADD, C_JR_A5])],
    );
    let mut pcs = Vec::new();
    for n in 0..40 {
        pcs.extend([0x100, 0x104].repeat(n % 7 + 1));
        pcs.extend([0x108, 0x200, 0x202]);
    }
    pcs.push(0x100);
    for kind in all_kinds() {
        let config = Config {
            periodic: hartrace_ntrace::Periodic {
                unit: hartrace_ntrace::SyncUnit::Messages,
                max: 0,
                delayed: false,
            },
            ..kind
        };
        let bytes = encode(&config, &image, &go(&pcs));
        for at in 0..bytes.len() {
            let events = decode(&config, &image, &bytes[at..]);
            let found = events.pcs(&image);
            assert!(events.gaps().len() <= 1, "from {at}");
            assert!(pcs.ends_with(&found), "from {at}");
        }
    }
}

/// Two harts in one stream, each with its own state.
#[test]
fn interleaved_sources() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[ADD, b(-4), C_JR_A5]),
            (0x200, &[C_ADD, C_JR_A5]),
            (0x800, &[C_ADD, MRET]),
        ],
    );
    for kind in all_kinds() {
        let config = Config {
            src_bits: 3,
            src_id: 2,
            timestamps: Some(Timestamps::default()),
            repeat_branch: kind.mode == TraceMode::Btm,
            ..kind
        };
        let mut way = Vec::new();
        for n in 0..30u32 {
            for hart in [0, 1, 3] {
                way.push(Do::Hart(hart));
                way.extend(go(&[0x100, 0x104].repeat((n + hart) as usize % 5)));
                way.extend(go(&[0x100, 0x104, 0x108, 0x200]));
                if n % 3 == hart % 3 {
                    way.push(Do::Trap(0x202, 0x800, INTERRUPT, None));
                    way.extend(go(&[0x800, 0x802]));
                }
                way.extend(go(&[0x202]));
            }
        }
        for hart in [0, 1, 3] {
            way.push(Do::Hart(hart));
            way.push(Do::At(0x100));
        }
        let bytes = round_trip(&config, &image, &way);
        let sources: Vec<u16> = messages(&config, &bytes).iter().map(|m| m.src).collect();
        for src in [2, 3, 5] {
            assert!(sources.contains(&src));
        }
    }
}

/// A gap of one source does not touch another.
#[test]
fn gaps_are_per_source() {
    let image = three_runs();
    let config = Config {
        src_bits: 2,
        ..btm(Version::V1_0)
    };
    let mut bytes = Vec::new();
    for (src, body) in [
        (0, start(0x100)),
        (1, start(0x100)),
        (0, direct(4)),
        (1, direct(3)),
        (0, direct(3)),
        (1, halt(&config, 1, 1)),
    ] {
        Message::new(src, body).write(&config.layout(), &mut bytes);
    }
    let events = decode(&config, &image, &bytes);
    assert_eq!(events.of(0).codes(), [Fault::HalfInstruction.code()]);
    let other = events.of(1).whole();
    assert_eq!(other.pcs(&image), THREE[0]);
}

/// Each kind of damage to the bytes: which code, where, how much, and decoding
/// goes on at the next sync.
#[test]
fn damaged_bytes() {
    let image = three_runs();
    let config = btm(Version::V1_0);
    let head = stream(&config, &[start(0x100), direct(3)]);
    let tail = stream(
        &config,
        &[halt(&config, 1, 1), start(0x300), halt(&config, 2, 1)],
    );
    // Behind the damage a message of three bytes says nothing any more.
    let cases: [(Fault, &[u8], u64); 8] = [
        (Fault::ReservedMseo, &[0x0c, 0x0e, 0x0f], 3),
        (Fault::StrayEnd, &[0x0f], 1),
        (Fault::StrayField, &[0x0d, 0x0f], 2),
        (Fault::MissingField, &[0x24, 0x0f], 2),
        (Fault::ExtraField, &[0x0c, 0x0d, 0x0d, 0x0f], 4),
        (Fault::EmptyHist, &[0x6c, 0x07], 2),
        (Fault::UnknownRcode, &[0x6c, 0x2c, 0x07], 3),
        (Fault::UnknownCdf, &[0x84, 0x80, 0x07], 3),
    ];
    for (fault, damage, bytes) in cases {
        let all = [&head, damage, &tail].concat();
        let events = decode(&config, &image, &all);
        let gaps = events.gaps();
        assert_eq!(events.codes(), [fault.code()]);
        assert_eq!(gaps[0].at, head.len() as u64, "{fault:?}");
        assert_eq!(gaps[0].bytes, bytes + 3, "{fault:?}");
        assert_eq!(gaps[0].unconfirmed, 0);
        assert_eq!(events.pcs(&image), [0x100, 0x102, 0x300], "{fault:?}");
    }
    let mut cut = head.clone();
    cut.extend([0x84, 0x00]);
    let events = decode(&config, &image, &cut);
    assert_eq!(events.codes(), [Fault::Truncated.code()]);
    assert_eq!((events.gaps()[0].at, events.gaps()[0].bytes), (6, 2));
}

/// A message too short to say whose it is, before anything else: still a gap.
#[test]
fn damage_of_nobody() {
    let image = three_runs();
    let config = Config {
        src_bits: 12,
        ..btm(Version::V1_0)
    };
    let mut bytes = vec![0x0c, 0x0f];
    bytes.extend(stream(&config, &[start(0x100), halt(&config, 1, 1)]));
    let events = decode(&config, &image, &bytes);
    assert_eq!(events.codes(), [Fault::MissingField.code()]);
    assert_eq!((events.gaps()[0].at, events.gaps()[0].bytes), (0, 2));
    assert_eq!(events.pcs(&image), [0x100]);
    // And alone.
    let events = decode(&config, &image, &bytes[..2]);
    assert_eq!(events.codes(), [Fault::MissingField.code()]);
}

/// Every fault there is, reached through the decoder.
#[test]
fn every_fault() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[C_ADD, b(0xfe), ADD, C_JR_A5, C_ADD]),
            (0x200, &[C_ADD, ECALL, C_ADD]),
            (0x300, &[jal(0, 0)]),
            (0x400, &[jal(0, 0x100)]),
            (0x500, &[C_ADD, C_ADD]),
        ],
    );
    let b = btm(Version::V1_0);
    let h = htm(Version::V1_0);
    let all = Config {
        all_jumps: true,
        ..h.clone()
    };
    let mut reached = Vec::new();
    let mut raw = |config: &Config, bytes: &[u8], fault: Fault| {
        let events = decode(config, &image, bytes);
        assert_eq!(events.codes(), [fault.code()], "{bytes:x?}");
        reached.push(fault);
    };
    raw(&b, &[0x0e, 0x0f], Fault::ReservedMseo);
    raw(&b, &[0x0f], Fault::StrayEnd);
    raw(&b, &[0x0d, 0x0f], Fault::StrayField);
    raw(&b, &[0; 5000], Fault::Oversize);
    raw(&b, &[0, 0, 0x24, 0x0f], Fault::Zeros);
    raw(&b, &[0x0c], Fault::Truncated);
    raw(&b, &[0x0c, 0x0f], Fault::NotSynchronised);
    raw(&b, &[0x24, 0x0f], Fault::MissingField);
    // SRC of four bits, and SYNC cut in the middle.
    let four = Config {
        src_bits: 4,
        ..b.clone()
    };
    raw(&four, &[0x24, 0x01, 0x03], Fault::CutField);
    raw(&b, &[0x0c, 0x0d, 0x0d, 0x0f], Fault::ExtraField);
    raw(&b, &[0x6c, 0x07], Fault::EmptyHist);
    raw(&b, &[0x6c, 0x2c, 0x07], Fault::UnknownRcode);
    raw(&b, &[0x84, 0x80, 0x07], Fault::UnknownCdf);
    let wide = [[0x0c].as_slice(), &[0xfc; 12], &[0x07]].concat();
    raw(&b, &wide, Fault::FieldTooWide);
    for (tcode, fault) in [(24, Fault::ReservedTcode), (60, Fault::VendorTcode)] {
        let strict = Config {
            other_tcodes: OtherTcodes::Damage,
            ..b.clone()
        };
        let mut bytes = stream(&b, &[start(0x100)]);
        bytes.extend([tcode << 2, 0x03]);
        raw(&strict, &bytes, fault);
    }
    let mut messages = |config: &Config, bodies: &[Body<'_>], fault: Fault| {
        refused(config, &image, bodies, fault);
        reached.push(fault);
    };
    let process = Body::Ownership { process: 1 };
    messages(&b, &[start(0x100), process], Fault::UnknownProcess);
    let repeat = Body::RepeatBranch { count: 1 };
    messages(&b, &[start(0x100), repeat], Fault::NothingToRepeat);
    messages(&b, &[start(0x100), direct(1 << 40)], Fault::TooLarge);
    messages(&b, &[start(0x100), direct(4)], Fault::HalfInstruction);
    messages(&b, &[start(0x900), direct(1)], Fault::NoCode);
    messages(&b, &[start(0x100), direct(5)], Fault::NotABranch);
    let jump_at = |icnt| jump(icnt, 0x100, 0x200);
    messages(&b, &[start(0x100), jump_at(5)], Fault::NotAJump);
    messages(&b, &[start(0x100), jump_at(7)], Fault::UnreportedJump);
    messages(&h, &[start(0x100), end(&h, 5, 1)], Fault::MissingHistory);
    messages(&h, &[start(0x100), end(&h, 1, 2)], Fault::LeftoverHistory);
    let elsewhere = sync(Sync::EVENT, 1, 0x104);
    messages(&b, &[start(0x100), elsewhere], Fault::WrongAddress);
    messages(&all, &[start(0x400), end(&all, 2, 2)], Fault::JumpNotTaken);
    messages(&b, &[start(0x200), end(&b, 4, 1)], Fault::UnreportedTrap);
    messages(&h, &[start(0x300), hist_full(2)], Fault::EndlessLoop);
    let small = [start(0x100), hist_full(2), end(&h, 1, 1)];
    messages(&h, &small, Fault::CountTooSmall);
    let error = Body::Error { etype: 0, ecode: 4 };
    messages(&b, &[start(0x100), error], Fault::Overrun);
    let open = decode(&b, &image, &stream(&b, &[start(0x100)]));
    assert_eq!(open.warnings()[0].reason.code, Fault::NoEnd.code());
    reached.push(Fault::NoEnd);
    for fault in Fault::ALL {
        assert!(reached.contains(fault), "{fault:?}");
    }
}

/// Vendor and reserved messages change nothing, whatever is pending.
#[test]
fn vendor_messages_are_skipped() {
    let image = three_runs();
    for config in all_kinds() {
        let way = run_and_halt(THREE[1]);
        let steps = steps(&image, &way);
        let plain = encode(&config, &image, &way);
        let mut all = Vec::new();
        let layout = config.layout();
        for message in messages(&config, &plain) {
            for tcode in [56, 62, 5, 63] {
                all.extend([tcode << 2, 0x24, 0xa9, 0x01, 0x03]);
            }
            message.write(&layout, &mut all);
        }
        check(&config, &image, &steps, &all);
        let marks = decode(&config, &image, &all).marks();
        let vendor = marks.iter().filter(|m| matches!(m, Mark::Vendor(_)));
        assert_eq!(vendor.count(), 4 * messages(&config, &plain).len());
        assert_eq!(Tcode(56).name(), None);
    }
}

/// 6.1: a message that may be a damaged one is reported with its offset, unless
/// the settings name its type; in the trace of an encoder that sends none it is
/// damage.
#[test]
fn other_tcodes_are_reported() {
    let image = three_runs();
    for (tcode, fault) in [
        (5, Fault::ReservedTcode),
        (63, Fault::ReservedTcode),
        (56, Fault::VendorTcode),
        (62, Fault::VendorTcode),
    ] {
        for config in all_kinds() {
            let way = run_and_halt(THREE[1]);
            let plain = encode(&config, &image, &way);
            let first = {
                let mut bytes = Vec::new();
                messages(&config, &plain)[0].write(&config.layout(), &mut bytes);
                bytes.len()
            };
            let (head, tail) = plain.split_at(first);
            let bytes = [head, &[tcode << 2, 0x24, 0xa9, 0x01, 0x03], tail].concat();
            let events = decode(&config, &image, &bytes).whole();
            let expected = Warning {
                at: first as u64,
                reason: fault.reason(tcode.into()),
                is_loss: true,
            };
            assert_eq!(events.warnings(), [expected]);
            let known = Config {
                ignore_tcodes: [Tcode(tcode)].into_iter().collect(),
                other_tcodes: OtherTcodes::Damage,
                ..config.clone()
            };
            let quiet = decode(&known, &image, &bytes).whole();
            assert_eq!(quiet.warnings(), []);
            assert_eq!(quiet.marks(), events.marks());
            assert_eq!(quiet.pcs(&image), THREE[1]);
            let damage = Config {
                ignore_tcodes: Tcodes::NONE,
                ..known
            };
            let lost = decode(&damage, &image, &bytes);
            assert_eq!(lost.codes(), [fault.code()]);
            assert_eq!(lost.gaps()[0].at, first as u64);
            assert_eq!(lost.warnings(), []);
            assert_eq!(lost.pcs(&image), []);
        }
    }
}

/// 6.1: only a full address confirms what follows such a message.
#[test]
fn nothing_confirms_what_follows_another_tcode() {
    let image = three_runs();
    let config = btm(Version::V1_0);
    let other = [24 << 2, 0x03];
    let wrong = stream(&config, &[direct(3), jump(0, 0x100, 0x200)]);
    let bytes = [&stream(&config, &[start(0x100)])[..], &other, &wrong].concat();
    let gap = decode(&config, &image, &bytes).gaps()[0];
    let plain = [&stream(&config, &[start(0x100)])[..], &wrong].concat();
    let certain = decode(&config, &image, &plain).gaps()[0];
    assert!(gap.unconfirmed > certain.unconfirmed, "{gap:?} {certain:?}");
    // A full address that is not the one reached says the same.
    let sync_to = |to| stream(&config, &[direct(3), sync(Sync::PERIODIC, 0, to)]);
    let elsewhere = [
        &stream(&config, &[start(0x100)])[..],
        &other,
        &sync_to(0x100),
    ]
    .concat();
    let gap = decode(&config, &image, &elsewhere).gaps()[0];
    assert_eq!(gap.reason.code, Fault::WrongAddress.code());
    assert_eq!(gap.unconfirmed, 2);
    // With the right one in between, the message is forgotten.
    let wrong = stream(&config, &[jump(0, 0x100, 0x200)]);
    let front = [
        &stream(&config, &[start(0x100)])[..],
        &other,
        &sync_to(0x200),
    ];
    let bytes = [&front.concat()[..], &wrong].concat();
    let gaps = decode(&config, &image, &bytes).gaps();
    assert_eq!((gaps.len(), gaps[0].unconfirmed), (1, 0));
}

/// 7.10: ProgTraceCorrelation ends a trace. One that has none is reported, of each
/// source; the reference encoder may end without one.
#[test]
fn a_trace_without_its_end_is_reported() {
    let image = three_runs();
    for config in all_kinds() {
        let config = Config {
            src_bits: 2,
            ..config
        };
        let mut bytes = Vec::new();
        let put = |bytes: &mut Vec<u8>, src, body| {
            Message::new(src, body).write(&config.layout(), bytes);
        };
        put(&mut bytes, 1, start(0x100));
        put(&mut bytes, 2, start(0x100));
        put(&mut bytes, 2, end(&config, 1, 1));
        let events = decode(&config, &image, &bytes).whole();
        assert_eq!(events.of(2).warnings(), []);
        let expected = Warning {
            at: bytes.len() as u64,
            reason: Fault::NoEnd.reason(0x100),
            is_loss: true,
        };
        assert_eq!(events.of(1).warnings(), [expected]);
        let reference = Config {
            ending: Ending::Reference,
            ..config.clone()
        };
        assert_eq!(decode(&reference, &image, &bytes).warnings(), []);
        put(&mut bytes, 1, end(&config, 1, 1));
        assert_eq!(decode(&config, &image, &bytes).warnings(), []);
    }
}

/// 11.3: two processes at one address, told apart by scontext.
#[test]
fn processes_at_the_same_address() {
    let mut image = image(Isa::RV64GC, &[(0x8000, &[WRITE_SCONTEXT, ADD, MRET])]);
    let kernel = code(&[WRITE_SCONTEXT, ADD, MRET]);
    let one = image.add_space();
    let two = image.add_space();
    for space in [one, two] {
        image.add_raw(space, 0x8000, &kernel, Isa::RV64GC);
    }
    image.add_raw(one, 0x100, &code(&[ADD, ADD, ADD]), Isa::RV64GC);
    image.add_raw(
        two,
        0x100,
        &code(&[C_ADD, b(6), C_ADD, C_ADD, C_ADD]),
        Isa::RV64GC,
    );
    let (first, second) = (Context::new(1, 0), Context::new(2, 0));
    image.assign(first, one);
    image.assign(second, two);
    for kind in all_kinds() {
        let config = Config {
            context: true,
            ..kind
        };
        let way = [
            Do::In(first, one),
            Do::Mode(Mode::U),
            Do::At(0x100),
            Do::At(0x104),
            Do::Trap(0x108, 0x8000, INTERRUPT, None),
            Do::Mode(Mode::M),
            Do::At(0x8000),
            Do::In(second, two),
            Do::At(0x8004),
            Do::At(0x8008),
            Do::Mode(Mode::U),
            Do::At(0x100),
            Do::At(0x102),
            Do::At(0x108),
            Do::Trap(0x10a, 0x8000, INTERRUPT, None),
            Do::Mode(Mode::M),
            Do::At(0x8000),
            Do::In(first, one),
            Do::At(0x8004),
            Do::At(0x8008),
            Do::Mode(Mode::U),
            Do::At(0x108),
        ];
        round_trip(&config, &image, &way);
    }
}

fn stamps() -> Option<Timestamps> {
    Some(Timestamps::default())
}

/// 8.7: absolute in syncs, added up elsewhere, in ResourceFull too; messages
/// without one do not matter.
#[test]
fn timestamps() {
    let image = long();
    let config = Config {
        timestamps: stamps(),
        ..btm(Version::V1_0)
    };
    let messages = [
        (start(0x1106), Some(1000)),
        // Its time is that of instructions which are given out later.
        (full(2), Some(10)),
        (full(2), None),
        (indirect(Btype::Interrupt, 0, 0x1106, 0x110e), Some(5)),
        (sync(Sync::EVENT, 0, 0x110e), Some(2000)),
        (end(&config, 0, 1), Some(7)),
        (sync(Sync::ENABLE, 0, 0x1106), Some(1_000_000)),
    ];
    let events = decode(&config, &image, &stamped(&config, &messages)).whole();
    assert_eq!(events.times(), [1000, 1015, 2000, 2007, 1_000_000]);
}

/// A counter of few bits goes round.
#[test]
fn timestamps_wrap() {
    let image = long();
    let config = Config {
        timestamps: Some(Timestamps {
            width: 8,
            ..Timestamps::default()
        }),
        ..btm(Version::V1_0)
    };
    let messages = [
        (start(0x1106), Some(0xf0)),
        (sync(Sync::EVENT, 2, 0x110a), Some(0x10)),
        (indirect(Btype::Interrupt, 0, 0x110a, 0x110e), Some(0xf8)),
        (sync(Sync::EVENT, 0, 0x110e), Some(0x09)),
    ];
    let events = decode(&config, &image, &stamped(&config, &messages)).whole();
    assert_eq!(events.times(), [0xf0, 0x110, 0x208, 0x209]);
}

/// After a loss differences mean nothing until the next absolute time.
#[test]
fn timestamps_after_loss() {
    let image = long();
    let config = Config {
        timestamps: stamps(),
        ..btm(Version::V1_0)
    };
    let error = Body::Error { etype: 0, ecode: 4 };
    let messages = [
        (start(0x1106), Some(1000)),
        (error, Some(3)),
        (sync(Sync::OVERRUN, 0, 0x110a), Some(5000)),
        (end(&config, 2, 1), Some(2)),
    ];
    let events = decode(&config, &image, &stamped(&config, &messages));
    assert_eq!(events.codes(), [Fault::Overrun.code()]);
    assert_eq!(events.times(), [1000, 5000, 5002]);
    assert_eq!(events.pcs(&image), [0x110a]);
}

/// Where none are configured, one is a field too many.
#[test]
fn timestamps_not_configured() {
    let image = long();
    let config = btm(Version::V1_0);
    let bytes = stamped(&config, &[(start(0x1106), Some(1000))]);
    let events = decode(&config, &image, &bytes);
    assert_eq!(events.codes(), [Fault::ExtraField.code()]);
}

/// 7.11: after a direct and an indirect branch, after IndirectBranchHist, with
/// ResourceFull and Ownership in between; not after a sync.
#[test]
fn repeat_branch() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[C_ADD, b(-2), C_ADD]),
            (0x200, &[C_JR_A5]),
            (0x300, &[C_ADD, C_JR_A5]),
            (0x400, &[b(4), C_JR_A5]),
        ],
    );
    for config in VERSIONS.map(btm) {
        let again = |count| Body::RepeatBranch { count };
        let messages = [
            start(0x100),
            direct(3),
            again(2),
            again(1),
            end(&config, 4, 1),
        ];
        let mut pcs = [0x100, 0x102].repeat(4);
        pcs.extend([0x100, 0x102, 0x106]);
        gives(&config, &image, &messages, &pcs);
        let messages = [
            start(0x200),
            jump(1, 0x200, 0x300),
            jump(2, 0x300, 0x300),
            again(3),
            // The reference is still 0x300.
            jump(2, 0x300, 0x100),
            end(&config, 1, 1),
        ];
        let mut pcs = vec![0x200];
        pcs.extend([0x300, 0x302].repeat(5));
        pcs.push(0x100);
        gives(&config, &image, &messages, &pcs);
        // The same target, although the first U-ADDR was not 0.
        let messages = [
            start(0x302),
            jump(1, 0x302, 0x302),
            again(2),
            end(&config, 0, 1),
        ];
        gives(&config, &image, &messages, &[0x302; 3]);
        let first = Body::DirectBranchSync {
            sync: Sync::EVENT,
            icnt: 3,
            faddr: 0x80,
        };
        refused(
            &config,
            &image,
            &[start(0x100), first, again(1)],
            Fault::NothingToRepeat,
        );
        let owner = Body::Ownership { process: 0xc };
        let messages = [start(0x100), direct(3), owner, again(1), end(&config, 1, 1)];
        gives(
            &config,
            &image,
            &messages,
            &[0x100, 0x102, 0x100, 0x102, 0x100],
        );
        let many = [start(0x100), direct(3), again(u64::MAX)];
        refused(&config, &image, &many, Fault::TooLarge);
    }
    let config = htm(Version::V1_0);
    let messages = [
        start(0x400),
        hist_jump(3, 0x400, 0x400, 0b10),
        Body::RepeatBranch { count: 3 },
        end(&config, 2, 0b10),
    ];
    let mut pcs = [0x400, 0x404].repeat(4);
    pcs.push(0x400);
    gives(&config, &image, &messages, &pcs);
}

/// Instructions of 48 bits inside a stretch.
#[test]
fn long_instructions() {
    let mut image = Image::new();
    let bytes = [0x05, 0x05, 0x1f, 0, 0, 0, 0, 0, 0x05, 0x05];
    image.add_raw(SpaceId::FIRST, 0x100, &bytes, Isa::RV64GC);
    for config in all_kinds() {
        let messages = [start(0x100), end(&config, 5, 1)];
        gives(&config, &image, &messages, &[0x100, 0x102, 0x108]);
        for half in [2, 3] {
            let messages = [start(0x100), end(&config, half, 1)];
            refused(&config, &image, &messages, Fault::HalfInstruction);
        }
    }
}

/// cm.jt and cm.jalt go where the table says; cm.popret returns.
#[test]
fn table_jumps() {
    let isa = Isa::RV64GC.with(Ext::Zcmt).with(Ext::Zcmp);
    let jt = |index: u32| 0xa002 | index << 2;
    const POPRET: u32 = 0xbe42;
    let mut image = image(
        isa,
        &[
            (0x100, &[C_ADD, jt(3)]),
            (0x200, &[C_ADD, jt(40), C_ADD]),
            (0x300, &[C_ADD, POPRET]),
        ],
    );
    let table: Vec<u8> = (0..64u64)
        .flat_map(|i| match i {
            3 => 0x200u64.to_le_bytes(),
            40 => 0x300u64.to_le_bytes(),
            _ => [0; 8],
        })
        .collect();
    image.add_raw(SpaceId::FIRST, 0x1000, &table, isa);
    image.set_jvt(SpaceId::FIRST, 0x1000);
    let way = go(&[0x100, 0x102, 0x200, 0x202, 0x300, 0x302, 0x204]);
    for kind in all_kinds() {
        for implicit in [ImplicitReturn::Off, ImplicitReturn::Full] {
            for all_jumps in [false, true] {
                let config = Config {
                    implicit_return: implicit,
                    all_jumps,
                    ..kind.clone()
                };
                let bytes = round_trip(&config, &image, &way);
                let jumps = bodies(&config, &bytes);
                let told = jumps.iter().filter(|b| {
                    matches!(
                        b,
                        Body::IndirectBranch { .. } | Body::IndirectBranchHist { .. }
                    )
                });
                // A port that shows calls as branches hides them from the stack.
                let told_return = implicit == ImplicitReturn::Off || all_jumps;
                assert_eq!(told.count(), usize::from(told_return));
            }
        }
    }
}

/// trTeInstEnAllJumps with calls, returns and branches mixed.
#[test]
fn all_jumps() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(1, 0x100), b(0x20), jal(0, -8), C_ADD]),
            (0x124, &[C_ADD, C_ADD]),
            (0x200, &[C_ADD, C_RET]),
        ],
    );
    let mut pcs = [0x100, 0x200, 0x202, 0x104, 0x108].repeat(50);
    pcs.extend([0x100, 0x200, 0x202, 0x104, 0x124]);
    for kind in all_kinds() {
        for implicit in [
            ImplicitReturn::Off,
            ImplicitReturn::Count,
            ImplicitReturn::Full,
        ] {
            let config = Config {
                all_jumps: true,
                implicit_return: implicit,
                ..kind.clone()
            };
            round_trip(&config, &image, &go(&pcs));
            // An encoder that sees calls as calls and counts them as branches.
            let steps = steps(&image, &go(&pcs));
            let port = PortConfig {
                all_jumps: false,
                ..port(&config, Isa::RV64GC)
            };
            let bytes = encode_at(port, &config, &steps);
            check(&config, &image, &steps, &bytes);
        }
    }
}

/// Whether a sequential jump is told is up to the encoder.
#[test]
fn sequential_jump_told_or_not() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x1000, &[lui_a5(0x2000), jalr(0, 15, 0x10)]),
            (0x2010, &[C_ADD]),
        ],
    );
    for kind in all_kinds() {
        let config = Config {
            sequential_jump: true,
            ..kind
        };
        let pcs = [0x1000, 0x1004, 0x2010];
        let quiet = [start(0x1000), end(&config, 5, 1)];
        gives(&config, &image, &quiet, &pcs);
        let told = [start(0x1000), jump(4, 0x1000, 0x2010), end(&config, 1, 1)];
        gives(&config, &image, &told, &pcs);
        let by_sync = [
            start(0x1000),
            sync(Sync::PERIODIC, 4, 0x2010),
            end(&config, 1, 1),
        ];
        gives(&config, &image, &by_sync, &pcs);
        let apart = [
            start(0x1000),
            full(2),
            jump(2, 0x1000, 0x2010),
            end(&config, 1, 1),
        ];
        gives(&config, &image, &apart, &pcs);
    }
}

fn call() -> Image {
    image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(1, 0x100), C_ADD, C_ADD]),
            (0x200, &[C_ADD, C_RET]),
            (0x800, &[C_ADD, MRET]),
        ],
    )
}

/// A trap, a sync, a full counter or the end right behind an implied return.
#[test]
fn implied_return_ends_a_stretch() {
    let image = call();
    for kind in all_kinds() {
        for mode in [
            ImplicitReturn::Count,
            ImplicitReturn::Partial(10),
            ImplicitReturn::Full,
        ] {
            let config = Config {
                implicit_return: mode,
                triggers: true,
                icnt_bits: 4,
                ..kind.clone()
            };
            let head = go(&[0x100, 0x200, 0x202]);
            let mut trap = head.clone();
            trap.push(Do::Trap(0x104, 0x800, INTERRUPT, None));
            trap.extend(go(&[0x800, 0x802, 0x104, 0x106]));
            round_trip(&config, &image, &trap);
            let mut notify = head.clone();
            notify.push(Do::Signal(Signal::Notify));
            notify.extend(go(&[0x104, 0x106]));
            round_trip(&config, &image, &notify);
            let small = Config {
                icnt_bits: 3,
                ..config.clone()
            };
            round_trip(&small, &image, &go(&[0x100, 0x200, 0x202, 0x104, 0x106]));
            // NoObserver says where the return went: it is given out, and no more.
            let bytes = encode(&config, &image, &run_and_halt(&[0x100, 0x200, 0x202]));
            let events = decode(&config, &image, &bytes).whole();
            assert_eq!(events.pcs(&image), [0x100, 0x200, 0x202]);
        }
    }
}

/// An explicit return at the end pops as well; an empty stack inside I-CNT is
/// an error.
#[test]
fn explicit_return_pops() {
    let image = call();
    for kind in all_kinds() {
        let config = Config {
            implicit_return: ImplicitReturn::Full,
            ..kind
        };
        let messages = [
            start(0x100),
            jump(4, 0x100, 0x202),
            jump(1, 0x202, 0x106),
            end(&config, 1, 1),
        ];
        let pcs = [0x100, 0x200, 0x202, 0x202, 0x106];
        gives(&config, &image, &messages, &pcs);
        // Nothing left to imply from.
        let messages = [start(0x100), jump(4, 0x100, 0x202), end(&config, 2, 1)];
        refused(&config, &image, &messages, Fault::UnreportedJump);
    }
}

/// rc7: a marker keeps the stack, other syncs and all of 1.0 clear it, and so
/// does a loss.
#[test]
fn implied_return_across_sync() {
    let image = call();
    for version in VERSIONS {
        for reason in [Sync::EXTERNAL_TRIGGER, Sync::EVENT, Sync::PERIODIC] {
            let config = Config {
                implicit_return: ImplicitReturn::Full,
                ..htm(version)
            };
            let messages = [start(0x100), sync(reason, 2, 0x200), end(&config, 3, 1)];
            if version == Version::Rc7 && reason != Sync::PERIODIC {
                gives(&config, &image, &messages, &[0x100, 0x200, 0x202, 0x104]);
            } else {
                refused(&config, &image, &messages, Fault::UnreportedJump);
            }
        }
    }
    let config = Config {
        implicit_return: ImplicitReturn::Full,
        ..htm(Version::Rc7)
    };
    // What was called or returned from in the gap is not known.
    let messages = [
        start(0x100),
        full(2),
        sync(Sync::EVENT, 0, 0x200),
        Body::RepeatBranch { count: 1 },
        sync(Sync::EVENT, 0, 0x200),
        end(&config, 3, 1),
    ];
    let events = decode(&config, &image, &stream(&config, &messages));
    let codes = [Fault::NothingToRepeat.code(), Fault::UnreportedJump.code()];
    assert_eq!(events.codes(), codes);
}

/// Code up to the last halfword of RV32's address space, and around it.
#[test]
fn top_of_rv32() {
    let image = image(
        Isa::RV32GC,
        &[
            (0xffff_fff0, &[C_ADD, C_JR_A5, ADD, jal(1, 0x1c), ADD]),
            (0x14, &[C_ADD, C_RET]),
            (0x0, &[C_ADD, C_JR_A5]),
        ],
    );
    let pcs = [
        0xffff_fff0,
        0xffff_fff2,
        0xffff_fff4,
        0xffff_fff8,
        0x14,
        0x16,
        0xffff_fffc,
        0x0,
        0x2,
        0xffff_fff0,
    ];
    for kind in all_kinds() {
        for extend_addr_msb in [false, true] {
            for implicit in [ImplicitReturn::Off, ImplicitReturn::Full] {
                let config = Config {
                    xlen: Xlen::Rv32,
                    extend_addr_msb,
                    implicit_return: implicit,
                    ..kind.clone()
                };
                round_trip(&config, &image, &go(&pcs));
            }
        }
    }
}

/// Kernel and user addresses, with and without the upper bits.
#[test]
fn kernel_addresses() {
    let kernel = 0xffff_ffff_8000_31f4u64;
    let image = image(
        Isa::RV64GC,
        &[(0x1_0000, &[C_ADD, C_JR_A5]), (kernel, &[C_ADD, C_JR_A5])],
    );
    let mut way = Vec::new();
    for _ in 0..3 {
        way.extend(go(&[0x1_0000, 0x1_0002, kernel, kernel + 2]));
    }
    way.push(Do::At(0x1_0000));
    let mut lengths = Vec::new();
    for kind in all_kinds() {
        for extend_addr_msb in [false, true] {
            let config = Config {
                extend_addr_msb,
                ..kind.clone()
            };
            lengths.push(round_trip(&config, &image, &way).len());
        }
    }
    assert!(lengths[0] > lengths[1]);
}

/// Traps not told as such (the reference encoder): any jump may be one, with
/// sync too.
#[test]
fn traps_without_btype() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            trap_types: TrapTypes::None,
            triggers: true,
            ..kind
        };
        let way = [
            Do::At(0x100),
            Do::Trap(0x102, 0x800, INTERRUPT, None),
            Do::Signal(Signal::Notify),
            Do::At(0x800),
            Do::At(0x802),
            Do::At(0x806),
            Do::At(0x102),
            Do::At(0x106),
        ];
        round_trip(&config, &image, &way);
    }
}

/// Behind ProgTraceCorrelation nothing is known until the next sync.
#[test]
fn correlation_ends_what_is_known() {
    let image = three_runs();
    let config = btm(Version::V1_0);
    let messages = [
        start(0x100),
        halt(&config, 1, 1),
        direct(2),
        start(0x200),
        halt(&config, 1, 1),
    ];
    let events = decode(&config, &image, &stream(&config, &messages));
    assert_eq!(events.codes(), [Fault::NotSynchronised.code()]);
    assert_eq!(events.pcs(&image), [0x100, 0x200]);
}

/// SYNC = 7 without an Error: messages were lost, whatever the counts say.
#[test]
fn overrun_without_error() {
    let image = three_runs();
    for config in all_kinds() {
        let messages = [
            start(0x100),
            full(1),
            sync(Sync::OVERRUN, 1, 0x106),
            end(&config, 2, 1),
        ];
        let events = decode(&config, &image, &stream(&config, &messages));
        assert_eq!(events.codes(), [Fault::Overrun.code()]);
        assert_eq!(events.pcs(&image), [0x106]);
    }
}

/// ecall counted or not, whatever the version: both are understood.
#[test]
fn ecall_counted_or_not() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_ADD, ECALL, C_ADD]), (0x800, &[C_ADD])],
    );
    for kind in all_kinds() {
        for (icnt, retires) in [(1, Retires::Neither), (3, Retires::Ecall)] {
            let config = Config {
                retires,
                ..kind.clone()
            };
            let messages = [
                start(0x100),
                indirect(Btype::Exception, icnt, 0x100, 0x800),
                end(&config, 1, 1),
            ];
            let events = decode(&config, &image, &stream(&config, &messages)).whole();
            assert_eq!(events.traps()[0].epc, Some(0x102));
            assert_eq!(events.pcs(&image).last(), Some(&0x800));
        }
    }
    // The same of both forms of ebreak.
    for (code, size) in [(EBREAK, 2), (C_EBREAK, 1)] {
        let image =
            crate::common::image(Isa::RV64GC, &[(0x100, &[C_ADD, code]), (0x800, &[C_ADD])]);
        for kind in all_kinds() {
            for (icnt, retires) in [
                (1, Retires::Neither),
                (1, Retires::Ecall),
                (1 + size, Retires::EcallAndEbreak),
            ] {
                let config = Config {
                    retires,
                    ..kind.clone()
                };
                let messages = [
                    start(0x100),
                    indirect(Btype::Exception, icnt, 0x100, 0x800),
                    end(&config, 1, 1),
                ];
                let events = decode(&config, &image, &stream(&config, &messages)).whole();
                assert_eq!(events.traps()[0].epc, Some(0x102));
                assert_eq!(events.pcs(&image).last(), Some(&0x800));
            }
        }
    }
}

/// Decoding is the same however the bytes arrive.
#[test]
fn bytes_one_by_one() {
    let image = three_runs();
    for config in all_kinds() {
        let bytes = encode(&config, &image, &run_and_halt(THREE[1]));
        let whole = decode(&config, &image, &bytes);
        let mut events = Events::default();
        let mut decoder = Decoder::new(config.clone(), &image).unwrap();
        for byte in bytes.chunks(1) {
            decoder.feed(byte, &mut events);
        }
        decoder.finish(&mut events);
        assert_eq!(events.0, whole.0);
        assert!(events.0.iter().any(|(_, e)| matches!(e, Event::Run(_))));
    }
}
