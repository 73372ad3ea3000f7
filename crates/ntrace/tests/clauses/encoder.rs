//! Clauses about which messages come: the tables of chapter 2, 8.4, 8.5, 8.6,
//! 8.7, 9 and the rules of chapter 10, from steps. What the encoder sends is
//! compared message by message, and decoded again to the same steps.

use crate::common::asm::*;
use crate::common::*;
use crate::corner_cases::{busy, often};
use hartrace_flow::{Context, HartId, Image, Ingress, IngressSink, Mode, Retires, Signal, SpaceId};
use hartrace_isa::{Isa, Itype};
use hartrace_ntrace::{
    Body, Btype, Config, Encoder, Evcode, IcntFull, ImplicitReturn, Message, Owner, Periodic,
    Process, Queue, RepeatedHistory, Sync, SyncUnit, Timestamps, TraceMode, TrapTypes,
    TriggerAction, Version,
};

/// What comes out for this way, which must decode to the same.
#[track_caller]
fn sends(config: &Config, image: &Image, way: &[Do], expected: &[Body<'_>]) {
    let bytes = round_trip(config, image, way);
    assert_eq!(bodies(config, &bytes), expected);
}

fn owner(mode: Mode, owner: Owner) -> Body<'static> {
    let process = Process { mode, owner }.field();
    Body::Ownership { process }
}

fn exception(icnt: u64, reference: u64, to: u64) -> Body<'static> {
    indirect(Btype::Exception, icnt, reference, to)
}

#[test]
fn btm_three_runs() {
    let image = three_runs();
    for version in VERSIONS {
        let config = btm(version);
        let expected: [&[Body<'_>]; 3] = [
            &[start(0x100), direct(3), halt(&config, 1, 1)],
            &[start(0x100), direct(7), halt(&config, 2, 1)],
            &[start(0x100), halt(&config, 10, 1)],
        ];
        for (pcs, expected) in THREE.iter().zip(expected) {
            sends(&config, &image, &run_and_halt(pcs), expected);
        }
    }
}

/// The first of them to the byte.
#[test]
fn btm_first_run_bytes() {
    let bytes = encode(&btm(Version::V1_0), &three_runs(), &run_and_halt(THREE[0]));
    let expected = [
        [0x24, 0x0d, 0x00, 0x0b].as_slice(), // SYNC 3, I-CNT 0, F-ADDR 0x80
        &[0x0c, 0x0f],                       // I-CNT 3
        &[0x84, 0x00, 0x07],                 // EVCODE 0, CDF 0, I-CNT 1
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn htm_three_runs() {
    let image = three_runs();
    for version in VERSIONS {
        let config = htm(version);
        for (pcs, (icnt, hist)) in THREE.iter().zip([(4, 0b11), (9, 0b101), (10, 0b100)]) {
            let expected = [start(0x100), halt(&config, icnt, hist)];
            sends(&config, &image, &run_and_halt(pcs), &expected);
        }
    }
}

/// I-CNT = 1, 5 and 0 are those of traps.
#[test]
fn icnt_of_traps() {
    let image = three_runs();
    for config in VERSIONS.map(btm) {
        for (icnt, pcs, epc) in [
            (1, [0x100].as_slice(), 0x102),
            (5, &[0x100, 0x102, 0x106], 0x10a),
            (0, &[], 0x100),
        ] {
            let mut way = go(pcs);
            way.push(Do::Trap(epc, 0x800, EXCEPTION, None));
            way.push(Do::At(0x800));
            let expected = [
                start(0x100),
                exception(icnt, 0x100, 0x800),
                end(&config, 1, 1),
            ];
            sends(&config, &image, &way, &expected);
        }
    }
}

/// B-TYPE: 1 for both, or 2 and 3.
#[test]
fn btype_of_traps() {
    let image = three_runs();
    for (types, cause, btype) in [
        (TrapTypes::One, EXCEPTION, Btype::Trap),
        (TrapTypes::One, INTERRUPT, Btype::Trap),
        (TrapTypes::Two, EXCEPTION, Btype::Exception),
        (TrapTypes::Two, INTERRUPT, Btype::Interrupt),
        (TrapTypes::None, INTERRUPT, Btype::Indirect),
    ] {
        let config = Config {
            trap_types: types,
            ..htm(Version::V1_0)
        };
        let way = [
            Do::At(0x100),
            Do::Trap(0x102, 0x800, cause, None),
            Do::At(0x800),
            Do::At(0x802),
            Do::At(0x806),
            Do::At(0x102),
            Do::At(0x200),
        ];
        let expected = [
            start(0x100),
            indirect(btype, 1, 0x100, 0x800),
            jump(5, 0x800, 0x102),
            end(&config, 3, 0b11),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// The code of rc7's 8.4.4.
fn rc7_long() -> Image {
    image(
        Isa::RV64GC,
        &[(
            0x100,
            &[C_ADD, b(0xfe), C_ADD, ADD, ADD, ADD, ADD, ADD, C_EBREAK],
        )],
    )
}

const RC7_LONG: [u64; 8] = [0x100, 0x102, 0x106, 0x108, 0x10c, 0x110, 0x114, 0x118];

/// 8.4.4 of rc7: SYNC = 4 with the history, in three messages.
#[test]
fn icnt_full_sync_rc7() {
    let config = Config {
        icnt_bits: 4,
        icnt_full: IcntFull::Sync,
        ..htm(Version::Rc7)
    };
    let expected = [
        start(0x100),
        hist_sync(Sync::SEQUENTIAL, 8, 0x110, 2),
        halt(&config, 6, 1),
    ];
    sends(&config, &rc7_long(), &run_and_halt(&RC7_LONG), &expected);
}

/// The same as ResourceFull, which rc7 allows too.
#[test]
fn icnt_full_resource_rc7() {
    for config in [htm(Version::Rc7), btm(Version::Rc7)] {
        let config = Config {
            icnt_bits: 4,
            ..config
        };
        let expected = [start(0x100), full(8), halt(&config, 6, 2)];
        sends(&config, &rc7_long(), &run_and_halt(&RC7_LONG), &expected);
    }
}

fn v1_long() -> Image {
    image(
        Isa::RV64GC,
        &[(
            0x100,
            &[C_ADD, b(0xfe), ADD, ADD, ADD, ADD, ADD, C_ADD, C_EBREAK],
        )],
    )
}

const V1_LONG: [u64; 8] = [0x100, 0x102, 0x106, 0x10a, 0x10e, 0x112, 0x116, 0x11a];

/// 1.0, "Examples of I-CNT Field Full Generation", HTM.
#[test]
fn icnt_full_resource_v1() {
    let config = Config {
        icnt_bits: 4,
        ..htm(Version::V1_0)
    };
    let expected = [start(0x100), full(9), halt(&config, 5, 2)];
    sends(&config, &v1_long(), &run_and_halt(&V1_LONG), &expected);
}

/// The same in BTM with SYNC = 4.
#[test]
fn icnt_full_sync_v1() {
    let config = Config {
        icnt_bits: 4,
        icnt_full: IcntFull::Sync,
        ..btm(Version::V1_0)
    };
    let sequential = sync(Sync::SEQUENTIAL, 9, 0x112);
    assert_eq!(
        sequential,
        Body::ProgTraceSync {
            sync: Sync::SEQUENTIAL,
            icnt: 9,
            faddr: 0x89
        }
    );
    let expected = [start(0x100), sequential, halt(&config, 5, 1)];
    sends(&config, &v1_long(), &run_and_halt(&V1_LONG), &expected);
}

/// 1.0 has SYNC = 4 in BTM only.
#[test]
fn icnt_full_sync_is_btm_only_in_v1() {
    let config = Config {
        icnt_full: IcntFull::Sync,
        ..htm(Version::V1_0)
    };
    assert!(config.validate().is_err());
}

/// Both full at once: two messages, I-CNT first.
#[test]
fn icnt_and_hist_full_together() {
    let image = image(Isa::RV64GC, &[(0x100, &[b(0x10), b(0x10), C_ADD, C_ADD])]);
    for version in VERSIONS {
        let config = Config {
            icnt_bits: 3,
            hist_bits: 3,
            ..htm(version)
        };
        let way = run_and_halt(&[0x100, 0x104, 0x108]);
        let expected = [start(0x100), full(4), hist_full(0b100), halt(&config, 1, 1)];
        sends(&config, &image, &way, &expected);
    }
}

/// A loop of two branches: not taken, taken.
fn pattern_loop() -> Image {
    image(Isa::RV64GC, &[(0x100, &[b(0x20), b(-4), C_ADD, C_EBREAK])])
}

fn pattern_way(times: usize) -> Vec<Do> {
    let mut pcs = [0x100, 0x104].repeat(times);
    pcs.push(0x100);
    pcs.push(0x104);
    pcs.push(0x108);
    run_and_halt(&pcs)
}

/// 8.3.1: a full register is sent, then it starts again.
#[test]
fn hist_register_full() {
    let config = Config {
        hist_bits: 31,
        ..htm(Version::V1_0)
    };
    let mut expected = vec![start(0x100)];
    expected.extend([hist_full(0x5555_5555); 10]);
    expected.push(halt(&config, 300 * 2 + 5, 0b100));
    let bytes = encode(&config, &pattern_loop(), &pattern_way(150));
    // 30 branches and the stop bit: ten messages of pattern 01 fifteen times.
    let sent = bodies(&config, &bytes);
    assert_eq!(sent, expected);
    round_trip(&config, &pattern_loop(), &pattern_way(150));
}

/// 9.3: the encoder finds the repetition.
#[test]
fn repeated_history() {
    for version in VERSIONS {
        let config = Config {
            repeated_history: RepeatedHistory::On,
            ..htm(version)
        };
        // Six outcomes, fifty times, and the last two.
        let repeat = Body::HistRepeat {
            hist: 0b101_0101,
            count: 50,
        };
        let expected = [start(0x100), repeat, halt(&config, 605, 0b100)];
        sends(&config, &pattern_loop(), &pattern_way(150), &expected);
    }
}

/// HREPEAT too large for its field: several messages.
#[test]
fn hrepeat_is_split() {
    let config = Config {
        repeated_history: RepeatedHistory::On,
        hrepeat_bits: 4,
        ..htm(Version::V1_0)
    };
    let bytes = round_trip(&config, &pattern_loop(), &pattern_way(400));
    let sent = bodies(&config, &bytes);
    let counts: Vec<u64> = sent
        .iter()
        .filter_map(|b| match b {
            Body::HistRepeat { count, .. } => Some(*count),
            _ => None,
        })
        .collect();
    assert!(counts.len() > 1, "{counts:?}");
    assert!(counts.iter().all(|&c| c <= 15), "{counts:?}");
    // No outcome is missing.
    let outcomes = |hist: u64| u64::from(hist.ilog2());
    let told = sent.iter().map(|body| match *body {
        Body::HistRepeat { hist, count } => outcomes(hist) * count,
        Body::HistFull { hist } => outcomes(hist),
        Body::ProgTraceCorrelation { hist, .. } => outcomes(hist.unwrap()),
        _ => 0,
    });
    assert_eq!(told.sum::<u64>(), 2 * 400 + 2);
}

/// 10.1: a custom instruction that stays and one that goes.
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
        let expected = [start(0x100), halt(&config, 5, 1)];
        sends(
            &config,
            &image,
            &run_and_halt(&[0x100, 0x104, 0x108]),
            &expected,
        );
    }
}

/// Table 3, `itype` 6: any jump through a register, with the target as
/// difference to the last address sent.
#[test]
fn indirect_jump() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_ADD, C_JR_A5]), (0x3fc04, &[C_ADD, C_JR_A5])],
    );
    for config in all_kinds() {
        let way = go(&[0x100, 0x102, 0x3fc04, 0x3fc06, 0x100]);
        let expected = [
            start(0x100),
            jump(2, 0x100, 0x3fc04),
            jump(2, 0x3fc04, 0x100),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// Rule 4: with branches in HIST an IndirectBranchHist, without perhaps an
/// IndirectBranch.
#[test]
fn indirect_jump_with_history() {
    let image = image(Isa::RV64GC, &[(0x100, &[b(8), C_JR_A5, C_ADD])]);
    let way = go(&[0x100, 0x104, 0x106]);
    for version in VERSIONS {
        let config = htm(version);
        let expected = [
            start(0x100),
            hist_jump(3, 0x100, 0x106, 0b10),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way, &expected);
        let config = Config {
            short_indirect: false,
            ..config
        };
        let expected = [
            start(0x104),
            hist_jump(1, 0x104, 0x106, 1),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way[1..], &expected);
    }
}

/// Rules 1 and 3: direct jumps and calls say nothing.
#[test]
fn direct_jumps_say_nothing() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(0, 0x100)]),
            (0x200, &[jal(1, 0x100)]),
            (0x300, &[C_ADD]),
        ],
    );
    for config in all_kinds() {
        let expected = [start(0x100), end(&config, 5, 1)];
        sends(&config, &image, &go(&[0x100, 0x200, 0x300]), &expected);
    }
}

/// trTeInstEnAllJumps: they are taken branches then.
#[test]
fn all_jumps() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(0, 0x100)]),
            (0x200, &[jal(1, 0x100)]),
            (0x300, &[C_ADD]),
        ],
    );
    let way = go(&[0x100, 0x200, 0x300]);
    for version in VERSIONS {
        let config = Config {
            all_jumps: true,
            ..htm(version)
        };
        sends(
            &config,
            &image,
            &way,
            &[start(0x100), end(&config, 5, 0b111)],
        );
        let config = Config {
            mode: TraceMode::Btm,
            ..config
        };
        let expected = [start(0x100), direct(2), direct(2), end(&config, 1, 1)];
        sends(&config, &image, &way, &expected);
    }
}

/// rc7: ecall counts as retired, c.ebreak does not; 1.0: neither.
#[test]
fn ecall_in_icnt() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_ADD, ECALL, C_EBREAK]), (0x800, &[C_ADD])],
    );
    for (version, icnt) in [(Version::Rc7, 3), (Version::V1_0, 1)] {
        for config in [htm(version), btm(version)] {
            let way = [
                Do::At(0x100),
                Do::Trap(0x102, 0x800, EXCEPTION, None),
                Do::At(0x800),
            ];
            let expected = [
                start(0x100),
                exception(icnt, 0x100, 0x800),
                end(&config, 1, 1),
            ];
            sends(&config, &image, &way, &expected);
        }
    }
    // Neither form of ebreak, in both.
    let long = crate::common::image(Isa::RV64GC, &[(0x106, &[EBREAK]), (0x800, &[C_ADD])]);
    for config in all_kinds() {
        for image in [&image, &long] {
            let way = [Do::Trap(0x106, 0x800, EXCEPTION, None), Do::At(0x800)];
            let expected = [start(0x106), exception(0, 0x106, 0x800), end(&config, 1, 1)];
            sends(&config, image, &way, &expected);
        }
    }
    // Unless it is said to count.
    for kind in all_kinds() {
        let config = Config {
            retires: Retires::EcallAndEbreak,
            ..kind
        };
        for (image, icnt) in [(&image, 1), (&long, 2)] {
            let way = [Do::Trap(0x106, 0x800, EXCEPTION, None), Do::At(0x800)];
            let expected = [
                start(0x106),
                exception(icnt, 0x106, 0x800),
                end(&config, 1, 1),
            ];
            sends(&config, image, &way, &expected);
        }
    }
    // Named the other way round.
    let config = Config {
        retires: Retires::Ecall,
        ..htm(Version::V1_0)
    };
    let way = [
        Do::At(0x100),
        Do::Trap(0x102, 0x800, EXCEPTION, None),
        Do::At(0x800),
    ];
    let expected = [start(0x100), exception(3, 0x100, 0x800), end(&config, 1, 1)];
    sends(&config, &image, &way, &expected);
}

/// Calls, returns and a swap.
fn calls() -> Image {
    image(
        Isa::RV64GC,
        &[
            (0x100, &[jal(1, 0x100), C_ADD, C_JALR_A5, C_ADD, C_EBREAK]),
            (0x200, &[C_ADD, jal(5, 0xfe), C_ADD, C_RET]),
            (0x300, &[C_ADD, JR_T0]),
            (0x400, &[C_RET]),
            (0x800, &[C_ADD, ADD, MRET]),
        ],
    )
}

const CALLS: [u64; 12] = [
    0x100, 0x200, 0x202, 0x300, 0x302, 0x206, 0x208, 0x104, 0x106, 0x400, 0x108, 0x108,
];

/// 9.2: matching returns say nothing.
#[test]
fn implicit_return() {
    let image = calls();
    let pcs = &CALLS[..11];
    for kind in all_kinds() {
        let plain = [
            start(0x100),
            jump(8, 0x100, 0x206),
            jump(2, 0x206, 0x104),
            jump(2, 0x104, 0x400),
            jump(1, 0x400, 0x108),
            end(&kind, 1, 1),
        ];
        sends(&kind, &image, &go(pcs), &plain);
        for mode in [
            ImplicitReturn::Count,
            ImplicitReturn::Partial(8),
            ImplicitReturn::Full,
        ] {
            let config = Config {
                implicit_return: mode,
                ..kind.clone()
            };
            let expected = [start(0x100), jump(12, 0x100, 0x400), end(&kind, 2, 1)];
            sends(&config, &image, &go(pcs), &expected);
        }
    }
}

/// A return elsewhere is told and uses the entry up all the same.
#[test]
fn implicit_return_mismatch() {
    let image = calls();
    for kind in all_kinds() {
        let config = Config {
            implicit_return: ImplicitReturn::Full,
            ..kind
        };
        // The inner function returns past its caller.
        let way = go(&[
            0x100, 0x200, 0x202, 0x300, 0x302, 0x208, 0x104, 0x106, 0x400, 0x108,
        ]);
        let expected = [
            start(0x100),
            jump(8, 0x100, 0x208),
            jump(3, 0x208, 0x400),
            end(&config, 2, 1),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// Each version's rule of what a sync does to the stack (table 25; 1.0: all
/// reset).
#[test]
fn implicit_return_across_sync() {
    let image = calls();
    for version in VERSIONS {
        for keep in [false, true] {
            let config = Config {
                implicit_return: ImplicitReturn::Full,
                markers_keep_stack: keep,
                triggers: true,
                ..htm(version)
            };
            if keep && version == Version::V1_0 {
                assert!(config.validate().is_err());
                continue;
            }
            let mut way = go(&[0x100, 0x200, 0x202, 0x300]);
            way.push(Do::Signal(Signal::Notify));
            way.extend(go(&[0x302, 0x206, 0x208, 0x104]));
            let event = sync(Sync::EVENT, 6, 0x302);
            let expected = if keep {
                vec![start(0x100), event, end(&config, 5, 1)]
            } else {
                vec![
                    start(0x100),
                    event,
                    jump(2, 0x302, 0x206),
                    jump(2, 0x206, 0x104),
                    end(&config, 1, 1),
                ]
            };
            sends(&config, &image, &way, &expected);
        }
    }
}

/// No deeper than 32: the oldest entry is lost and told.
#[test]
fn implicit_return_depth() {
    // f: beq, to the return; jal ra, f; ret
    let image = image(Isa::RV64GC, &[(0x100, &[b(8), jal(1, -4), C_RET, C_ADD])]);
    for mode in [ImplicitReturn::Count, ImplicitReturn::Full] {
        let config = Config {
            implicit_return: mode,
            ..htm(Version::V1_0)
        };
        let mut pcs = [0x100, 0x104].repeat(40);
        pcs.push(0x100);
        pcs.extend([0x108; 41]);
        pcs.push(0x10a);
        let explicit = |b: &&Body<'_>| {
            matches!(
                b,
                Body::IndirectBranch { .. } | Body::IndirectBranchHist { .. }
            )
        };
        for depth in [1, 8, 32] {
            let config = Config {
                stack_depth: depth,
                ..config.clone()
            };
            let bytes = round_trip(&config, &image, &go(&pcs));
            let jumps = bodies(&config, &bytes);
            let told = jumps.iter().filter(explicit).count();
            assert_eq!(told, 41 - usize::from(depth));
            // Whatever depth the decoder is told.
            for other in [1, 8, 32] {
                let config = Config {
                    stack_depth: other,
                    ..config.clone()
                };
                let events = decode(&config, &image, &bytes).whole();
                assert_eq!(events.pcs(&image), pcs);
            }
        }
    }
}

/// 9.1: lui or auipc right before the jump.
#[test]
fn sequential_jump() {
    let image = image(
        Isa::RV64GC,
        &[
            (0x1000, &[lui_a5(0x2000), jalr(0, 15, 0x10), C_ADD]),
            (0x2010, &[auipc_a5(0x1000), jalr(0, 15, 0x20), C_ADD]),
            (0x3030, &[C_ADD, C_ADD]),
        ],
    );
    let pcs = [0x1000, 0x1004, 0x2010, 0x2014, 0x3030];
    for kind in all_kinds() {
        let told = [
            start(0x1000),
            jump(4, 0x1000, 0x2010),
            jump(4, 0x2010, 0x3030),
            end(&kind, 1, 1),
        ];
        sends(&kind, &image, &go(&pcs), &told);
        let config = Config {
            sequential_jump: true,
            ..kind
        };
        sends(
            &config,
            &image,
            &go(&pcs),
            &[start(0x1000), end(&config, 9, 1)],
        );
        // The load is not in this trace: told.
        let expected = [start(0x1004), jump(2, 0x1004, 0x2010), end(&config, 5, 1)];
        sends(&config, &image, &go(&pcs[1..]), &expected);
        // Not next to each other.
        let way = [
            Do::At(0x1000),
            Do::Trap(0x1004, 0x3030, EXCEPTION, None),
            Do::At(0x3030),
        ];
        round_trip(&config, &image, &way);
    }
}

/// A sync between the two keeps the pair apart.
#[test]
fn sequential_jump_apart() {
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
            triggers: true,
            ..kind
        };
        let way = [
            Do::At(0x1000),
            Do::Signal(Signal::Notify),
            Do::At(0x1004),
            Do::At(0x2010),
        ];
        let expected = [
            start(0x1000),
            sync(Sync::EVENT, 2, 0x1004),
            jump(2, 0x1004, 0x2010),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// 7.11: repeated branches in BTM.
#[test]
fn repeat_branch() {
    let image = image(Isa::RV64GC, &[(0x100, &[C_ADD, b(-2), C_EBREAK])]);
    for version in VERSIONS {
        let config = Config {
            repeat_branch: true,
            ..btm(version)
        };
        let mut pcs = [0x100, 0x102].repeat(20);
        pcs.extend([0x100, 0x102]);
        let expected = [
            start(0x100),
            direct(3),
            Body::RepeatBranch { count: 19 },
            halt(&config, 3, 1),
        ];
        sends(&config, &image, &run_and_halt(&pcs), &expected);
        // B-CNT too large for its field: several messages.
        let config = Config {
            bcnt_bits: 3,
            ..config
        };
        let again = |count| Body::RepeatBranch { count };
        let expected = [
            start(0x100),
            direct(3),
            again(7),
            again(7),
            again(5),
            halt(&config, 3, 1),
        ];
        sends(&config, &image, &run_and_halt(&pcs), &expected);
    }
}

/// An indirect branch again: the same target.
#[test]
fn repeat_branch_of_a_jump() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_JR_A5]), (0x200, &[C_ADD, C_JR_A5])],
    );
    for version in VERSIONS {
        let config = Config {
            repeat_branch: true,
            ..btm(version)
        };
        let mut pcs = vec![0x100];
        pcs.extend([0x200, 0x202].repeat(6));
        pcs.push(0x100);
        let expected = [
            start(0x100),
            jump(1, 0x100, 0x200),
            jump(2, 0x200, 0x200),
            Body::RepeatBranch { count: 4 },
            jump(2, 0x200, 0x100),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &go(&pcs), &expected);
    }
}

/// 1.0: what is repeated has no SYNC, and what is counted goes first.
#[test]
fn repeat_branch_and_sync() {
    let image = image(Isa::RV64GC, &[(0x100, &[C_ADD, b(-2), C_EBREAK])]);
    let config = Config {
        repeat_branch: true,
        triggers: true,
        ..btm(Version::V1_0)
    };
    let mut way = go(&[0x100, 0x102].repeat(5));
    way.push(Do::Signal(Signal::Notify));
    way.extend(run_and_halt(&[0x100, 0x102, 0x100, 0x102, 0x100]));
    let event = Body::DirectBranchSync {
        sync: Sync::EVENT,
        icnt: 3,
        faddr: 0x80,
    };
    let expected = [
        start(0x100),
        direct(3),
        Body::RepeatBranch { count: 3 },
        event,
        direct(3),
        Body::RepeatBranch { count: 1 },
        halt(&config, 1, 1),
    ];
    sends(&config, &image, &way, &expected);
}

/// Table 26: back to back returns and jumps.
#[test]
fn corner_back_to_back_jumps() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_RET]), (0x200, &[JR_T0]), (0x300, &[C_ADD])],
    );
    for config in all_kinds() {
        let expected = [
            start(0x100),
            jump(1, 0x100, 0x200),
            jump(2, 0x200, 0x300),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &go(&[0x100, 0x200, 0x300]), &expected);
    }
}

/// Table 26: back to back exceptions, and one at an interrupt's handler.
#[test]
fn corner_back_to_back_traps() {
    let image = three_runs();
    for config in all_kinds() {
        for (cause, btype) in [(EXCEPTION, Btype::Exception), (INTERRUPT, Btype::Interrupt)] {
            let way = [
                Do::At(0x100),
                Do::Trap(0x102, 0x200, cause, None),
                Do::Trap(0x200, 0x800, EXCEPTION, None),
                Do::At(0x800),
            ];
            let expected = [
                start(0x100),
                indirect(btype, 1, 0x100, 0x200),
                exception(0, 0x200, 0x800),
                end(&config, 1, 1),
            ];
            sends(&config, &image, &way, &expected);
        }
    }
}

/// Table 26: a trap before the first instruction.
#[test]
fn corner_trap_at_start() {
    let image = three_runs();
    for config in all_kinds() {
        for (cause, btype) in [(EXCEPTION, Btype::Exception), (INTERRUPT, Btype::Interrupt)] {
            let way = [Do::Trap(0x100, 0x800, cause, None), Do::At(0x800)];
            let expected = [
                start(0x100),
                indirect(btype, 0, 0x100, 0x800),
                end(&config, 1, 1),
            ];
            sends(&config, &image, &way, &expected);
        }
    }
}

/// Only the instructions from the trigger on are traced.
fn triggered(config: &Config) -> Config {
    Config {
        triggers: true,
        ..config.clone()
    }
}

/// Table 26: the trace starts disabled.
#[test]
fn corner_starts_disabled() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            starts_disabled: true,
            ..triggered(&kind)
        };
        let mut way = go(&[0x100, 0x102]);
        way.push(Do::Signal(Signal::TraceOn));
        way.extend(go(&[0x106, 0x10a, 0x300]));
        let bytes = encode(&config, &image, &way);
        let sent = bodies(&config, &bytes);
        assert_eq!(sent[0], end(&config, 0, 1));
        assert_eq!(sent[1], sync(Sync::ENABLE, 0, 0x106));
        let traced = steps(&image, &go(&[0x106, 0x10a, 0x300]));
        check(&config, &image, &traced, &bytes);
    }
}

/// Table 26: the hart halts while the trace is off.
#[test]
fn corner_halts_while_disabled() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            starts_disabled: true,
            ..triggered(&kind)
        };
        let way = run_and_halt(&[0x100]);
        let bytes = encode(&config, &image, &way);
        let expected = [end(&config, 0, 1), halt(&config, 0, 1)];
        assert_eq!(bodies(&config, &bytes), expected);
    }
}

/// Table 26 of 1.0, last row; rc7 has no such rule.
#[test]
fn corner_trap_after_trap_return() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            context: true,
            ..kind
        };
        let way = [
            Do::At(0x800),
            Do::At(0x802),
            Do::At(0x806),
            Do::Mode(Mode::U),
            Do::Trap(0x100, 0x800, INTERRUPT, None),
            Do::Mode(Mode::M),
            Do::At(0x800),
        ];
        let machine = owner(Mode::M, Owner::Scontext(0));
        let user = owner(Mode::U, Owner::Scontext(0));
        let expected = match config.version {
            Version::V1_0 => {
                let trap = |icnt| {
                    let (sync, btype, faddr) = (Sync::PERIODIC, Btype::Interrupt, 0x400);
                    Body::IndirectBranchSync {
                        sync,
                        btype,
                        icnt,
                        faddr,
                    }
                };
                vec![
                    start(0x800),
                    machine,
                    jump(5, 0x800, 0x100),
                    sync(Sync::PERIODIC, 0, 0x100),
                    user,
                    trap(0),
                    machine,
                    end(&config, 1, 1),
                ]
            }
            Version::Rc7 => vec![
                start(0x800),
                machine,
                jump(5, 0x800, 0x100),
                owner(Mode::U, Owner::Mode),
                indirect(Btype::Interrupt, 0, 0x100, 0x800),
                owner(Mode::M, Owner::Mode),
                end(&config, 1, 1),
            ],
        };
        sends(&config, &image, &way, &expected);
    }
}

/// Cases 1 to 5 of 1.0's "Examples of Synchronizing Messages": tracing and
/// debug mode.
#[test]
fn case_1_debug_while_tracing() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            starts_disabled: true,
            ..triggered(&kind)
        };
        let way = [
            Do::At(0x100),
            Do::Signal(Signal::TraceOn),
            Do::At(0x102),
            Do::Signal(Signal::Halted),
            Do::Signal(Signal::Resumed),
            Do::At(0x106),
            Do::Signal(Signal::TraceOff),
            Do::At(0x10a),
            Do::At(0x10e),
        ];
        let hist = |h| (config.mode == TraceMode::Htm).then_some(h);
        let expected = [
            stop(Evcode::DISABLED, 0, hist(1)),
            sync(Sync::ENABLE, 0, 0x102),
            stop(Evcode::DEBUG, 2, hist(2)),
            sync(Sync::DEBUG_EXIT, 0, 0x106),
            stop(Evcode::DISABLED, 4, hist(2)),
        ];
        let bytes = encode(&config, &image, &way);
        assert_eq!(bodies(&config, &bytes), expected);
        let traced = steps(&image, &go(&[0x102, 0x106, 0x10a]));
        check(&config, &image, &traced, &bytes);
    }
}

#[test]
fn case_2_enable_while_in_debug() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            starts_disabled: true,
            external: [TriggerAction::On; 8],
            ..triggered(&kind)
        };
        let way = [
            Do::At(0x100),
            Do::Signal(Signal::Halted),
            Do::Signal(Signal::External(0)),
            Do::Signal(Signal::Resumed),
            Do::At(0x106),
            Do::Signal(Signal::TraceOff),
            Do::At(0x10a),
            Do::At(0x10e),
        ];
        let hist = |h| (config.mode == TraceMode::Htm).then_some(h);
        let expected = [
            stop(Evcode::DISABLED, 0, hist(1)),
            stop(Evcode::DEBUG, 0, hist(1)),
            sync(Sync::DEBUG_EXIT, 0, 0x106),
            stop(Evcode::DISABLED, 4, hist(2)),
        ];
        let bytes = encode(&config, &image, &way);
        assert_eq!(bodies(&config, &bytes), expected);
    }
}

/// A block of one instruction, and one of a halted hart.
fn block(iaddr: u64, iretire: u32) -> Ingress {
    Ingress {
        iaddr,
        iretire,
        ilastsize: (iretire == 2).into(),
        ..Ingress::default()
    }
}

/// A block of a halted hart, with this on its external trigger inputs.
fn halted(external: u8) -> Ingress {
    Ingress {
        halted: true,
        external,
        ..Ingress::default()
    }
}

fn encode_blocks(config: &Config, blocks: &[Ingress]) -> Vec<u8> {
    let mut encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    for block in blocks {
        encoder.ingress(HartId(0), block);
    }
    encoder.finish();
    encoder.into_sink()
}

#[test]
fn case_3_disable_while_in_debug() {
    for kind in all_kinds() {
        let config = Config {
            external: [TriggerAction::Off; 8],
            first_sync: Sync::ENABLE,
            ..kind
        };
        let blocks = [
            block(0x100, 1),
            halted(0),
            halted(1),
            halted(0),
            block(0x106, 2),
            block(0x10a, 2),
        ];
        let bytes = encode_blocks(&config, &blocks);
        let expected = [sync(Sync::ENABLE, 0, 0x100), halt(&config, 1, 1)];
        assert_eq!(bodies(&config, &bytes), expected);
    }
}

/// With HIST the marker takes it along, without it is a ProgTraceSync.
#[test]
fn case_4_trigger_event() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = triggered(&kind);
        let way = [
            Do::At(0x100),
            Do::At(0x102),
            Do::Signal(Signal::Notify),
            Do::At(0x106),
            Do::Signal(Signal::Notify),
            Do::At(0x10a),
            Do::At(0x10e),
            Do::Signal(Signal::Halted),
        ];
        let first = match config.mode {
            TraceMode::Htm => hist_sync(Sync::EVENT, 3, 0x106, 2),
            TraceMode::Btm => sync(Sync::EVENT, 3, 0x106),
        };
        let expected = [
            start(0x100),
            first,
            sync(Sync::EVENT, 2, 0x10a),
            halt(&config, 3, 2),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// The same from outside: SYNC = 0.
#[test]
fn case_4_external_trigger() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            external: [TriggerAction::Notify; 8],
            ..kind
        };
        let way = [
            Do::At(0x100),
            Do::Signal(Signal::External(3)),
            Do::At(0x102),
            Do::At(0x106),
        ];
        let expected = [
            start(0x100),
            sync(Sync::EXTERNAL_TRIGGER, 1, 0x102),
            end(&config, 4, 2),
        ];
        sends(&config, &image, &way, &expected);
    }
}

#[test]
fn case_5_enable_and_disable_in_debug() {
    for kind in all_kinds() {
        let mut external = [TriggerAction::On; 8];
        external[1] = TriggerAction::Off;
        let config = Config {
            starts_disabled: true,
            external,
            ..kind
        };
        let blocks = [
            block(0x100, 1),
            halted(0),
            halted(1),
            halted(2),
            halted(0),
            block(0x106, 2),
            block(0x10a, 2),
        ];
        let bytes = encode_blocks(&config, &blocks);
        // Both are optional; table 26 asks for them.
        let expected = [end(&config, 0, 1), halt(&config, 0, 1)];
        assert_eq!(bodies(&config, &bytes), expected);
    }
}

/// A long loop without branches, to see periodic syncs.
fn spin() -> (Image, Vec<Do>) {
    let image = image(Isa::RV64GC, &[(0x100, &[ADD, jal(0, -4)])]);
    let mut pcs = [0x100, 0x104].repeat(50);
    pcs.push(0x100);
    (image, go(&pcs))
}

/// Case 6: at once, in linear code.
#[test]
fn case_6_periodic_at_once() {
    let (image, way) = spin();
    for kind in all_kinds() {
        let config = Config {
            periodic: Periodic {
                unit: SyncUnit::Halfwords,
                max: 1,
                delayed: false,
            },
            ..kind
        };
        let bytes = round_trip(&config, &image, &way);
        let sent = bodies(&config, &bytes);
        let expected = sync(Sync::PERIODIC, 32, 0x100);
        assert_eq!(sent[1..7], [expected; 6]);
    }
}

/// Case 6: or with the next branch message.
#[test]
fn case_6_periodic_delayed() {
    let image = image(Isa::RV64GC, &[(0x100, &[ADD, b(-4), C_JR_A5, C_ADD])]);
    let mut pcs = [0x100, 0x104].repeat(20);
    pcs.extend([0x100, 0x104, 0x108, 0x10a]);
    for kind in all_kinds() {
        let config = Config {
            periodic: Periodic {
                unit: SyncUnit::Halfwords,
                max: 1,
                delayed: true,
            },
            ..kind
        };
        let bytes = round_trip(&config, &image, &go(&pcs));
        let sent = bodies(&config, &bytes);
        let syncs: Vec<_> = sent[1..].iter().filter(|b| b.sync().is_some()).collect();
        assert!(!syncs.is_empty());
        for body in syncs {
            match config.mode {
                TraceMode::Btm => assert!(matches!(
                    body,
                    Body::DirectBranchSync { .. } | Body::IndirectBranchSync { .. }
                )),
                TraceMode::Htm => assert!(matches!(body, Body::IndirectBranchHistSync { .. })),
            }
        }
    }
}

/// Periods in messages and in cycles.
#[test]
fn periodic_units() {
    let image = image(Isa::RV64GC, &[(0x100, &[C_JR_A5])]);
    let way = go(&[0x100; 100]);
    for unit in [SyncUnit::Messages, SyncUnit::Cycles, SyncUnit::Halfwords] {
        for kind in all_kinds() {
            let config = Config {
                periodic: Periodic {
                    unit,
                    max: 0,
                    delayed: false,
                },
                ..kind
            };
            let bytes = round_trip(&config, &image, &way);
            let sent = bodies(&config, &bytes);
            let syncs = sent.iter().filter(|b| b.sync() == Some(Sync::PERIODIC));
            assert_eq!(syncs.count(), 6, "{unit:?}");
        }
    }
}

/// 8.5: SYNC = 1, with I-CNT of what ran before the reset.
#[test]
fn sync_after_reset() {
    let image = three_runs();
    for config in all_kinds() {
        let way = [
            Do::At(0x100),
            Do::At(0x102),
            Do::Signal(Signal::Reset),
            Do::At(0x800),
        ];
        let bytes = encode(&config, &image, &way);
        // The count and the history reach the last instruction before.
        let reset = match config.mode {
            TraceMode::Btm => sync(Sync::RESET, 3, 0x800),
            TraceMode::Htm => hist_sync(Sync::RESET, 3, 0x800, 2),
        };
        let expected = [start(0x100), reset, end(&config, 1, 1)];
        assert_eq!(bodies(&config, &bytes), expected);
        let events = decode(&config, &image, &bytes).whole();
        assert_eq!(events.pcs(&image), [0x100, 0x102, 0x800]);
    }
}

/// EVCODE = 1 and SYNC = 9.
#[test]
fn low_power() {
    let image = three_runs();
    for config in all_kinds() {
        let way = [
            Do::At(0x100),
            Do::Signal(Signal::PowerDown),
            Do::Signal(Signal::PowerUp),
            Do::At(0x102),
            Do::At(0x106),
        ];
        let hist = (config.mode == TraceMode::Htm).then_some(1);
        let expected = [
            start(0x100),
            stop(Evcode::LOW_POWER, 1, hist),
            sync(Sync::POWER_UP, 0, 0x102),
            end(&config, 4, 2),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// 7.4: Error right before the sync that restarts (SYNC = 7), and last where
/// nothing restarts.
#[test]
fn error_after_overrun() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[C_JR_A5]), (0x200, &[C_ADD, C_ADD])],
    );
    for kind in all_kinds() {
        let config = Config {
            queue: Some(Queue {
                bytes: 76,
                drain: 1024,
                stall: false,
            }),
            ..kind
        };
        let mut way = go(&[0x100; 200]);
        let bytes = encode(&config, &image, &way);
        let sent = bodies(&config, &bytes);
        let lost = Body::Error { etype: 0, ecode: 4 };
        assert_eq!(sent.last(), Some(&lost));
        way.push(Do::Wait(10_000));
        way.extend(go(&[0x200, 0x202]));
        let bytes = encode(&config, &image, &way);
        let sent = bodies(&config, &bytes);
        assert!(sent.contains(&lost));
        for pair in sent.windows(2) {
            let restart = pair[1].sync() == Some(Sync::OVERRUN);
            assert_eq!(restart, pair[0] == lost);
        }
        let events = decode(&config, &image, &bytes);
        assert!(events.codes().iter().all(|c| *c == "NT0401"));
        assert_eq!(events.pcs(&image).last(), Some(&0x202));
    }
}

/// 7.1: after each sync, at changes, and in rc7 at each trap.
#[test]
fn ownership() {
    let image = three_runs();
    let context = |s, h| Do::In(Context::new(s, h), SpaceId::FIRST);
    for kind in all_kinds() {
        let config = Config {
            context: true,
            ..triggered(&kind)
        };
        let way = [
            context(5, 0),
            Do::Mode(Mode::S),
            Do::At(0x100),
            // The same mode: rc7 tells it all the same.
            Do::Trap(0x102, 0x800, EXCEPTION, None),
            Do::At(0x800),
            context(6, 0),
            Do::At(0x802),
            Do::Signal(Signal::Notify),
            Do::At(0x806),
            Do::Mode(Mode::U),
            Do::At(0x102),
            Do::At(0x106),
        ];
        let mut expected = vec![
            start(0x100),
            owner(Mode::S, Owner::Scontext(5)),
            exception(1, 0x100, 0x800),
            owner(Mode::S, Owner::Scontext(6)),
            sync(Sync::EVENT, 3, 0x806),
            owner(Mode::S, Owner::Scontext(6)),
            jump(2, 0x806, 0x102),
            owner(Mode::U, Owner::Mode),
            end(&config, 4, 2),
        ];
        if config.version == Version::Rc7 {
            expected.insert(3, owner(Mode::S, Owner::Mode));
        }
        sends(&config, &image, &way, &expected);
    }
}

/// Where there is hcontext: two messages, hcontext first.
#[test]
fn ownership_with_hcontext() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            context: true,
            hcontext: true,
            ..kind
        };
        let way = [
            Do::In(Context::new(5, 9), SpaceId::FIRST),
            Do::Mode(Mode::VS),
            Do::At(0x100),
            Do::At(0x102),
        ];
        let expected = [
            start(0x100),
            owner(Mode::VS, Owner::Hcontext(9)),
            owner(Mode::VS, Owner::Scontext(5)),
            end(&config, 3, 2),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// 8.7: absolute in syncs, else the time since the last one reported.
#[test]
fn timestamps() {
    let image = image(Isa::RV64GC, &[(0x100, &[C_ADD, C_JR_A5])]);
    let config = Config {
        timestamps: Some(Timestamps::default()),
        ..triggered(&htm(Version::V1_0))
    };
    let way = [
        Do::Wait(1000),
        Do::At(0x100),
        Do::At(0x102),
        Do::Wait(50),
        Do::At(0x100),
        Do::At(0x102),
        Do::Signal(Signal::Notify),
        Do::At(0x100),
        Do::At(0x102),
        Do::At(0x100),
    ];
    let bytes = round_trip(&config, &image, &way);
    let stamps: Vec<_> = messages(&config, &bytes).iter().map(|m| m.tstamp).collect();
    // Start at 1000, jump at 1001, the marker's jump at 1053, the next at 1055.
    assert_eq!(stamps, [Some(1000), Some(1), Some(1053), Some(2), Some(1)]);
    let times = decode(&config, &image, &bytes).times();
    assert_eq!(times, [1000, 1001, 1053, 1055, 1056]);
}

/// Messages without sync may go without.
#[test]
fn timestamps_in_sync_only() {
    let image = image(Isa::RV64GC, &[(0x100, &[C_ADD, C_JR_A5])]);
    let config = Config {
        timestamps: Some(Timestamps {
            sync_only: true,
            ..Timestamps::default()
        }),
        ..htm(Version::V1_0)
    };
    let bytes = round_trip(&config, &image, &go(&[0x100, 0x102, 0x100]));
    let stamps: Vec<_> = messages(&config, &bytes).iter().map(|m| m.tstamp).collect();
    assert_eq!(stamps, [Some(0), None, None]);
}

/// Rule 6 and table 23: CDF = 1 in HTM even with an empty HIST, 0 in BTM.
#[test]
fn cdf_by_mode() {
    let image = three_runs();
    for config in all_kinds() {
        let bytes = encode(&config, &image, &run_and_halt(&[0x100]));
        let expected = [start(0x100), halt(&config, 1, 1)];
        assert_eq!(bodies(&config, &bytes), expected);
        let cdf = u8::from(config.mode == TraceMode::Htm);
        assert_eq!(bytes[5] >> 6, cdf);
    }
}

/// Longer instructions count three halfwords and more (8.4).
#[test]
fn long_instructions() {
    let mut image = Image::new();
    // 48 bits, 64 bits, then c.addi.
    let bytes = [
        0x1f, 0, 0, 0, 0, 0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x05, 0x05, 0x05, 0x05,
    ];
    image.add_raw(SpaceId::FIRST, 0x100, &bytes, Isa::RV64GC);
    for config in all_kinds() {
        let expected = [start(0x100), end(&config, 8, 1)];
        sends(&config, &image, &go(&[0x100, 0x106, 0x10e]), &expected);
    }
}

/// Tables 3 and 4: what each `itype` does, without and with a return stack. A
/// call before it makes the stack non-empty.
#[test]
fn tables_3_and_4() {
    for code in 0..16u8 {
        let itype = Itype::from_code(code).unwrap();
        for kind in all_kinds() {
            for stack in [false, true] {
                let config = Config {
                    implicit_return: if stack {
                        ImplicitReturn::Full
                    } else {
                        ImplicitReturn::Off
                    },
                    ..kind.clone()
                };
                let call = Ingress {
                    itype: Itype::DirectCall,
                    ..block(0x100, 2)
                };
                // The return goes back to the call, others elsewhere.
                let blocks = [
                    call,
                    Ingress {
                        itype,
                        ..block(0x200, 2)
                    },
                    block(0x104, 1),
                ];
                let btm = config.mode == TraceMode::Btm;
                let bytes = encode_blocks(&config, &blocks);
                let sent = bodies(&config, &bytes);
                let told = |btype| vec![indirect(btype, 4, 0x100, 0x104)];
                let expected = match code {
                    0 | 7 | 9 | 11 | 15 => vec![],
                    4 => vec![],
                    5 if btm => vec![direct(4)],
                    5 => vec![],
                    1 => told(Btype::Exception),
                    2 => told(Btype::Interrupt),
                    12 | 13 if stack => vec![],
                    _ => told(Btype::Indirect),
                };
                let icnt = if expected.is_empty() { 5 } else { 1 };
                let hist = match code {
                    4 if !btm => 0b10,
                    5 if !btm => 0b11,
                    _ => 1,
                };
                let mut all = vec![start(0x100)];
                all.extend(expected);
                all.push(end(&config, icnt, hist));
                assert_eq!(sent, all, "itype {code}");
            }
        }
    }
}

/// Table 4, stack actions: calls push, returns pop, a swap does both, and a
/// jump to another address than the one on the stack is told.
#[test]
fn table_4_stack() {
    let config = Config {
        implicit_return: ImplicitReturn::Full,
        ..htm(Version::V1_0)
    };
    for (first, second, target, told) in [
        (Itype::DirectCall, Itype::Return, 0x104, false),
        (Itype::IndirectCall, Itype::Return, 0x104, false),
        (Itype::DirectCall, Itype::Return, 0x108, true),
        (Itype::DirectCall, Itype::Swap, 0x104, false),
        (Itype::DirectCall, Itype::Swap, 0x108, true),
        (Itype::Swap, Itype::Return, 0x104, false),
        (Itype::OtherDirect, Itype::Return, 0x104, true),
        (Itype::DirectJump, Itype::Return, 0x104, true),
        (Itype::OtherIndirect, Itype::Return, 0x104, true),
        (Itype::IndirectJump, Itype::Return, 0x104, true),
        (Itype::TrapReturn, Itype::Return, 0x104, true),
        (Itype::Return, Itype::Return, 0x104, true),
    ] {
        let at = |addr, itype| Ingress {
            itype,
            ..block(addr, 2)
        };
        let blocks = [at(0x100, first), at(0x200, second), block(target, 1)];
        let bytes = encode_blocks(&config, &blocks);
        let sent = bodies(&config, &bytes);
        let last = sent[sent.len() - 2];
        let seen = matches!(last, Body::IndirectBranch { uaddr, .. }
            if uaddr << 1 == target ^ 0x200 || uaddr << 1 == target ^ 0x100);
        assert_eq!(seen, told, "{first:?} {second:?} {sent:?}");
    }
}

/// A change of hcontext: scontext follows it (1.0).
#[test]
fn ownership_when_hcontext_changes() {
    let image = three_runs();
    for kind in all_kinds() {
        let config = Config {
            context: true,
            hcontext: true,
            ..kind
        };
        let way = [
            Do::In(Context::new(5, 9), SpaceId::FIRST),
            Do::At(0x100),
            Do::In(Context::new(5, 8), SpaceId::FIRST),
            Do::At(0x102),
            Do::At(0x106),
        ];
        let mut expected = vec![
            start(0x100),
            owner(Mode::M, Owner::Hcontext(9)),
            owner(Mode::M, Owner::Scontext(5)),
            owner(Mode::M, Owner::Hcontext(8)),
            end(&config, 5, 2),
        ];
        if config.version == Version::V1_0 {
            expected.insert(4, owner(Mode::M, Owner::Scontext(5)));
        }
        sends(&config, &image, &way, &expected);
    }
}

/// Table 26: an interrupt that waited while the hart was halted.
#[test]
fn corner_trap_after_debug() {
    let image = three_runs();
    for config in all_kinds() {
        let way = [
            Do::At(0x100),
            Do::Signal(Signal::Halted),
            Do::Signal(Signal::Resumed),
            Do::Trap(0x102, 0x800, INTERRUPT, None),
            Do::At(0x800),
        ];
        let expected = [
            start(0x100),
            halt(&config, 1, 1),
            sync(Sync::DEBUG_EXIT, 0, 0x102),
            indirect(Btype::Interrupt, 0, 0x102, 0x800),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// The largest fields of table 10 are the limits of the settings.
#[test]
fn table_10_limits() {
    let good = htm(Version::V1_0);
    assert!(good.validate().is_ok());
    assert_eq!((good.icnt_bits, good.hist_bits), (22, 32));
    assert_eq!((good.hrepeat_bits, good.bcnt_bits), (18, 18));
    for bad in [
        Config {
            icnt_bits: 23,
            ..good.clone()
        },
        Config {
            hist_bits: 33,
            ..good.clone()
        },
        Config {
            src_bits: 13,
            ..good.clone()
        },
        Config {
            stack_depth: 33,
            ..good.clone()
        },
    ] {
        assert!(bad.validate().is_err());
    }
}

/// 9.1: c.lui too; calls and returns by a constant, with the return stack on
/// or off.
#[test]
fn sequential_jump_forms() {
    const C_LUI_A5: u32 = 0x6789; // c.lui a5, 2
    const AUIPC_RA: u32 = 0x1097; // auipc ra, 1
    const AUIPC_T0: u32 = 0x1297; // auipc t0, 1
    let image = image(
        Isa::RV64GC,
        &[
            (0x1000, &[C_LUI_A5, C_JR_A5]),
            // Calls 0x3022.
            (0x2000, &[C_ADD, AUIPC_RA, jalr(1, 1, 0x20), C_ADD, C_JR_A5]),
            // Goes on to 0x4064, as a return by t0 would.
            (0x3022, &[AUIPC_T0, jalr(0, 5, 0x42), C_ADD]),
            (0x4064, &[C_ADD, C_RET]),
        ],
    );
    let pcs = [
        0x1000, 0x1002, 0x2000, 0x2002, 0x2006, 0x3022, 0x3026, 0x4064, 0x4066, 0x200a, 0x200c,
        0x1000,
    ];
    for kind in all_kinds() {
        for mode in [
            ImplicitReturn::Off,
            ImplicitReturn::Count,
            ImplicitReturn::Full,
        ] {
            let config = Config {
                sequential_jump: true,
                implicit_return: mode,
                ..kind.clone()
            };
            let bytes = round_trip(&config, &image, &go(&pcs));
            let sent = bodies(&config, &bytes);
            let jumps = sent
                .iter()
                .filter(|b| matches!(b, Body::IndirectBranch { .. }));
            // The return, whose entry the jump by t0 used up, and the last jump.
            assert_eq!(jumps.count(), 2, "{sent:?}");
        }
    }
}

/// rc7: an ecall that counts, told with a sync.
#[test]
fn ecall_and_sync() {
    let image = image(
        Isa::RV64GC,
        &[(0x100, &[b(0x20), ECALL, C_ADD]), (0x800, &[C_ADD, MRET])],
    );
    for kind in all_kinds() {
        let config = triggered(&kind);
        let way = [
            Do::At(0x100),
            Do::Trap(0x104, 0x800, EXCEPTION, None),
            Do::Signal(Signal::Notify),
            Do::At(0x800),
            Do::At(0x802),
            Do::At(0x108),
        ];
        let icnt = if config.retires == Retires::Ecall {
            4
        } else {
            2
        };
        let event = match config.mode {
            TraceMode::Btm => Body::IndirectBranchSync {
                sync: Sync::EVENT,
                btype: Btype::Exception,
                icnt,
                faddr: 0x800 >> 1,
            },
            TraceMode::Htm => Body::IndirectBranchHistSync {
                sync: Sync::EVENT,
                btype: Btype::Exception,
                icnt,
                faddr: 0x800 >> 1,
                hist: 0b10,
            },
        };
        let expected = [
            start(0x100),
            event,
            jump(3, 0x800, 0x108),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// 8.6: a branch right at the target of another: I-CNT is the size of the second.
#[test]
fn corner_back_to_back_branches() {
    use hartrace_testkit::asm::{A0, c_branch};
    /// c.bnez a0, by 4 bytes.
    const C_BNEZ: u32 = c_branch(true, A0, 4);
    let image = image(
        Isa::RV64GC,
        &[
            (0x100, &[b(0x100)]),
            (0x200, &[C_BNEZ, b(0x0fe)]),
            (0x300, &[C_ADD]),
        ],
    );
    for config in all_kinds() {
        // Taken to a compressed one that is not taken; the next one is.
        let way = go(&[0x100, 0x200, 0x202, 0x300]);
        let expected = match config.mode {
            TraceMode::Btm => vec![start(0x100), direct(2), direct(3), end(&config, 1, 1)],
            TraceMode::Htm => vec![start(0x100), end(&config, 6, 0b1101)],
        };
        sends(&config, &image, &way, &expected);
    }
    let chain = crate::common::image(
        Isa::RV64GC,
        &[
            (0x100, &[b(0x100)]),
            (0x200, &[b(0x100)]),
            (0x300, &[C_BNEZ]),
            (0x304, &[C_ADD]),
        ],
    );
    for config in all_kinds() {
        let way = go(&[0x100, 0x200, 0x300, 0x304]);
        let expected = match config.mode {
            TraceMode::Btm => vec![
                start(0x100),
                direct(2),
                direct(2),
                direct(1),
                end(&config, 1, 1),
            ],
            TraceMode::Htm => vec![start(0x100), end(&config, 6, 0b1111)],
        };
        sends(&config, &chain, &way, &expected);
    }
}

/// BTM: a trap right behind a taken branch, and a halt there.
#[test]
fn trap_behind_a_taken_branch() {
    let image = three_runs();
    for config in VERSIONS.map(btm) {
        let way = [
            Do::At(0x100),
            Do::At(0x102),
            Do::Trap(0x200, 0x800, INTERRUPT, None),
            Do::At(0x800),
        ];
        let expected = [
            start(0x100),
            direct(3),
            indirect(Btype::Interrupt, 0, 0x100, 0x800),
            end(&config, 1, 1),
        ];
        sends(&config, &image, &way, &expected);
    }
}

/// Everything that can happen to a hart, one thing every few instructions.
fn eventful() -> (Image, Vec<Do>) {
    let (image, plain) = busy();
    let events = [
        &[Signal::Notify][..],
        &[Signal::External(0)],
        &[Signal::Halted, Signal::Resumed],
        &[Signal::TraceOff],
        &[Signal::TraceOn],
        &[Signal::PowerDown, Signal::PowerUp],
        &[Signal::Lost],
        &[Signal::Reset],
        &[Signal::TraceOff],
        &[Signal::Halted, Signal::Resumed],
        &[Signal::TraceOn],
    ];
    let mut way = Vec::new();
    let mut events = events.iter().cycle();
    for (n, thing) in plain.into_iter().enumerate() {
        way.push(thing);
        if n % 11 == 10 {
            way.extend(events.next().unwrap().iter().map(|s| Do::Signal(*s)));
        }
        if n % 29 == 28 {
            way.push(Do::Mode(if n % 2 == 0 { Mode::S } else { Mode::U }));
            way.push(Do::In(Context::new(n as u32, 0), SpaceId::FIRST));
        }
    }
    (image, way)
}

/// Whatever happens, the order of messages and the limits of their fields are
/// kept: Ownership behind each sync, Error in front of SYNC = 7, I-CNT = 0 at a
/// start, TSTAMP in each sync, CDF by mode, nothing of the other mode.
#[test]
fn rules_hold_whatever_happens() {
    let (image, way) = eventful();
    let queue = Queue {
        bytes: 80,
        drain: 1500,
        stall: false,
    };
    for kind in all_kinds() {
        for queue in [None, Some(queue)] {
            let is_htm = kind.mode == TraceMode::Htm;
            let config = Config {
                context: true,
                hcontext: true,
                timestamps: Some(Timestamps::default()),
                external: [TriggerAction::Notify; 8],
                implicit_return: ImplicitReturn::Full,
                repeat_branch: !is_htm,
                icnt_bits: 6,
                hist_bits: 5,
                bcnt_bits: 2,
                queue,
                ..triggered(&often(kind.clone()))
            };
            let bytes = encode(&config, &image, &way);
            let all = messages(&config, &bytes);
            assert!(all.len() > 40, "{}", all.len());
            rules(&config, &all);
            let events = decode(&config, &image, &bytes);
            assert!(events.codes().iter().all(|c| *c == "NT0401"));
        }
    }
}

#[track_caller]
fn rules(config: &Config, all: &[Message<'_>]) {
    let is_htm = config.mode == TraceMode::Htm;
    let owner = |m: Option<&Message<'_>>, format| match m.map(|m| m.body) {
        Some(Body::Ownership { process }) => process & 3 == format,
        _ => false,
    };
    let mut before = None;
    for (n, message) in all.iter().enumerate() {
        let next = all.get(n + 1);
        let counted = match message.body {
            Body::DirectBranch { icnt } | Body::IcntFull { icnt } => icnt,
            Body::IndirectBranch { icnt, .. } | Body::IndirectBranchHist { icnt, .. } => icnt,
            Body::ProgTraceSync { sync, icnt, .. } => {
                let starts = [
                    Sync::DEBUG_EXIT,
                    Sync::ENABLE,
                    Sync::OVERRUN,
                    Sync::POWER_UP,
                ];
                assert!(icnt == 0 || !starts.contains(&sync));
                icnt
            }
            Body::Error { .. } => {
                let sync = next.and_then(|m| m.body.sync());
                assert!(next.is_none() || sync == Some(Sync::OVERRUN));
                0
            }
            Body::RepeatBranch { count } => {
                assert!(!is_htm && count <= 3);
                0
            }
            Body::HistFull { hist } => {
                assert!(is_htm && hist < 32);
                0
            }
            Body::ProgTraceCorrelation { icnt, hist, .. } => {
                assert_eq!(hist.is_some(), is_htm);
                let follows = next.map(|m| (m.body.sync().is_some(), m.body));
                assert!(matches!(
                    follows,
                    None | Some((true, _))
                        | Some((_, Body::ProgTraceCorrelation { .. } | Body::Error { .. }))
                ));
                icnt
            }
            _ => 0,
        };
        assert!(counted < 64, "full at 32, and one instruction");
        let is_direct = matches!(
            message.body,
            Body::DirectBranch { .. } | Body::DirectBranchSync { .. }
        );
        assert!(!(is_htm && is_direct));
        if message.body.sync().is_some() {
            assert!(message.tstamp.is_some());
            // The queue may have no room for them; Error says so.
            let lost = |m: Option<&Message<'_>>| {
                matches!(m.map(|m| m.body), Some(Body::Error { .. }) | None)
            };
            let second = all.get(n + 2);
            let both = owner(next, 3) && (lost(second) || owner(second, 2));
            assert!(lost(next) || both, "{:?}", &all[n..n + 3]);
        }
        if message.body.sync() == Some(Sync::OVERRUN) {
            assert!(matches!(before, Some(Body::Error { .. })));
        }
        before = Some(message.body);
    }
}
