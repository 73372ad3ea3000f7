//! Where the texts leave something open, contradict themselves or cannot be
//! meant: how they are read here. The numbers are those of
//! docs/etrace-clauses.md.

use hartrace_etrace::{
    BranchMap, Config, Context, Fault, Packet, QualStatus, Resync, ResyncRule, ResyncUnit,
    ReturnRule, Start, Trap, TrapVectors,
};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Ctype, Ingress, Mode, PortConfig, Trigger};
use hartrace_isa::{Isa, Itype};

use crate::book;
use crate::common::asm::*;
use crate::common::*;

const NTR: QualStatus = QualStatus::EndedNtr;
const REP: QualStatus = QualStatus::EndedRep;

/// Reading 1: "While (TRUE)" ends: in loops of any length, with branches that have
/// outcomes left, and in code that goes on for ever.
#[test]
fn reading_01_walks_end() {
    let mut far = vec![ADD; 500];
    far.push(jal(0, -2000));
    for code in [vec![jal(0, 0)], vec![ADD, jal(0, -4)], far] {
        let image = rv64(&[(0x1000, &code)]);
        for config in both() {
            for packets in [
                vec![address(&config, 0x2_0000), support(REP)],
                vec![address(&config, 0x2_0000), support(NTR)],
                vec![branches(&config, "TNT", 0), support(REP)],
                vec![full_map(&"T".repeat(31))],
                vec![start(&config, 0x9_0000)],
                vec![start_in(&config, 0x1000, Mode::U)],
            ] {
                let packets = [&[start(&config, 0x1000)], &packets[..]].concat();
                let codes = decode(&config, &image, &stream(&config, &packets)).codes();
                assert!(!codes.is_empty(), "{packets:?}");
            }
        }
    }
}

/// Reading 3: the address of an omitted handler comes from the configuration, or from
/// an earlier trap packet; if it is not known there is a gap.
#[test]
fn reading_03_implicit_exception() {
    let image = rv64(&[(0x1000, &[ADD, ADD]), (0x2000, &[ADD, ADD])]);
    for version in [DRAFT, RATIFIED, REVIEW] {
        let config = Config {
            implicit_exception: true,
            ..plain(version)
        };
        let implied = Packet::Trap(Trap {
            address: None,
            ..trap(&config, 5, true, 0)
        });
        let packets = [
            start(&config, 0x1000),
            implied,
            address(&config, 4),
            support(REP),
        ];
        // Not known: a gap up to the next full address.
        let codes = decode(&config, &image, &stream(&config, &packets)).codes();
        assert_eq!(codes, [Fault::UnknownHandler.code()]);
        let known = Config {
            trap_vectors: TrapVectors {
                mtvec: Some(0x2000),
                ..TrapVectors::default()
            },
            ..config
        };
        let lines = [
            "1000+1>1004",
            "exception 5 at 1004 to 2000 tval 0",
            "2000+1>2004",
            "2004+1>2008",
            "off",
        ];
        tells(&known, &image, &packets, &lines);
    }
}

/// Reading 4: Without a subformat field, format 0 is what there is: a count if there is
/// a predictor, else an index.
#[test]
fn reading_04_format_0_without_a_subformat() {
    let only_cache = Config {
        cache_size: 5,
        ..plain(RATIFIED)
    };
    let index = Packet::JumpTarget {
        index: 9,
        map: BranchMap::default(),
        irreport: false,
        irdepth: 0,
    };
    // Format 00, index.
    let bytes = [9 << 2];
    assert_eq!(index.write(&only_cache.layout()).bytes(), bytes);
    assert_eq!(Packet::read(&bytes, &only_cache.layout()), Ok(index));
    let only_predictor = Config {
        bpred_size: 5,
        ..plain(RATIFIED)
    };
    let count = Packet::BranchCount {
        branch_count: 9,
        address: None,
    };
    assert_eq!(Packet::read(&bytes, &only_predictor.layout()), Ok(count));
}

/// Reading 5: call_counter_size is a number of bits, as the width of irdepth has it.
#[test]
fn reading_05_call_counter() {
    let config = Config {
        call_counter_size: 9,
        ..plain(RATIFIED)
    };
    assert_eq!(config.layout().irdepth_width, 9);
}

/// Reading 7: implicit return with irdepth cannot be decoded in general. The encoder
/// avoids what is ambiguous, by a named rule; without the rule it is reported.
#[test]
fn reading_07_implicit_return() {
    let image = rv64(&[(0x1000, &[ADD, ADD])]);
    let config = Config {
        return_stack_size: 4,
        ..plain(RATIFIED)
    };
    // The parameter alone makes no difference but to the width of irdepth.
    let packets = [start(&config, 0x1000), address(&config, 4), support(REP)];
    tells(
        &config,
        &image,
        &packets,
        &["1000+1>1004", "1004+1>1008", "off"],
    );
    // call f; call f; add; and f returns at once. Its two returns have the same
    // depth, so irdepth = 1 may mean either: the encoder of this crate reports the
    // first before the second call, and others may not.
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), jal(1, 0xffc), ADD]),
        (0x2000, &[ADD, jalr(0, 1, 0)]),
    ]);
    let settled = Config {
        implicit_return: true,
        ..config
    };
    let way = go(&[0x1000, 0x2000, 0x2004, 0x1004, 0x2000, 0x2004, 0x1008]);
    let bytes = encode(&settled, &image, &way);
    decodes(&settled, &image, &steps(&image, &way), &bytes);
    let lines = [
        "support on, implicit return",
        "start 1000",
        "address 1004 irdepth 1",
        "address 1008 updiscon irdepth 1",
        "support off ended_rep, implicit return",
    ];
    assert_eq!(
        text(&settled, &crate::common::packets(&settled, &bytes)),
        lines
    );
    let unsettled = Config {
        return_rule: ReturnRule::Specification,
        ..settled
    };
    let codes = decode(&unsettled, &image, &bytes).codes();
    assert_eq!(codes, [Fault::AmbiguousReturn.code()]);
}

/// Reading 9: With thaddr = 1 the cause is that of the trap before; with 0 it is that of
/// the trap the packet tells, be it this one or the one before.
#[test]
fn reading_09_whose_cause() {
    let config = plain(RATIFIED);
    let row = |iaddr, itype, cause, tval| Ingress {
        iretire: 0,
        itype,
        cause,
        tval,
        ..one(iaddr, 4)
    };
    let rows = [
        one(0x1000, 4),
        row(0x1004, Itype::Exception, 13, 0xa),
        row(0x3000, Itype::Exception, 5, 0xb),
        one(0x4000, 4),
    ];
    let lines = text(&config, &encode_blocks(&config, &rows));
    let traps = ["exception 13 at 3000 tval a", "exception 5 to 4000 tval b"];
    assert_eq!(lines[2..4], traps);
}

/// Reading 10: Differences are to the last address sent, synchronisation packets
/// included.
#[test]
fn reading_10_base_of_differences() {
    let image = rv64(&[(0x1000, &[ADD, ADD]), (0x3000, &[ADD, ADD])]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            Packet::Trap(trap(&config, 13, true, 0x3000)),
            address(&config, 4),
            support(REP),
        ];
        let lines = events(&config, &image, &packets);
        assert!(lines.contains(&"3004+1>3008".to_owned()), "{lines:?}");
    }
    // A start, a jump, one with branches, a trap, and a start again.
    let image = rv64(&[
        (0x1000, &[JR_A5, JR_A5]),
        (0x1010, &[ADD, b(8), ADD, JR_A5]),
        (0x1020, &[ADD]),
        (0x3000, &[ADD, ADD]),
    ]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            address(&config, 0xc),
            branches(&config, "N", 0x10),
            Packet::Trap(trap(&config, 13, true, 0x3000)),
            address(&config, 4),
            support(REP),
            start(&config, 0x1000),
            address(&config, 4),
            support(NTR),
        ];
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.gaps(), []);
        let mut pcs = vec![0x1000, 0x1004, 0x1010, 0x1014, 0x1018, 0x101c, 0x1020];
        pcs.extend([0x3000, 0x3004, 0x1000, 0x1004]);
        assert_eq!(events.pcs(&image), pcs);
    }
}

/// Reading 11: With thaddr = 0: branch is 1, and the address is that of the trap at
/// hand even where it says nothing. A decoder heeds it behind a jump and at a
/// start.
#[test]
fn reading_11_thaddr_0() {
    let config = plain(RATIFIED);
    for (itype, first) in [
        (Itype::Taken, "start 1000 taken"),
        (Itype::NotTaken, "start 1000"),
        (Itype::None, "start 1000"),
        (Itype::IndirectJump, "start 1000"),
    ] {
        let rows = [
            Ingress {
                itype,
                ..one(0x1000, 4)
            },
            Ingress {
                iretire: 0,
                itype: Itype::Exception,
                cause: 13,
                ..one(0x1008, 4)
            },
            Ingress {
                iretire: 0,
                itype: Itype::Interrupt,
                cause: 7,
                ..one(0x3000, 4)
            },
            one(0x4000, 4),
        ];
        let packets = encode_blocks(&config, &rows);
        // At the target of a jump, the address of the first trap; else it is known,
        // and the address is that of the second.
        let (address, rest): (u64, &[&str]) = match itype {
            Itype::IndirectJump => (0x1008, &["interrupt 7 at 3000", "start 4000"]),
            _ => (0x3000, &["interrupt 7 to 4000"]),
        };
        let told = format!("exception 13 at {address:x} tval 0");
        let mut lines = vec!["support on", first, &told];
        lines.extend(rest);
        lines.push("support off ended_ntr");
        assert_eq!(text(&config, &packets), lines, "{itype:?}");
        let expected = Trap {
            branch: true,
            ..trap(&config, 13, false, address)
        };
        assert_eq!(packets[2], Packet::Trap(expected), "{itype:?}");
    }
}

/// Reading 15: A synchronisation every 2^(n+4) packets, support packets counted.
#[test]
fn reading_15_resync_max() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5])]);
    let pcs = [0x1000, 0x1004].repeat(200);
    for max in [0, 1, 2] {
        let config = Config {
            resync: Resync {
                unit: ResyncUnit::Packets,
                max,
                rule: ResyncRule::Exceeded,
            },
            ..plain(RATIFIED)
        };
        let bytes = encode(&config, &image, &go(&pcs));
        let lines = text(&config, &packets(&config, &bytes));
        let starts: Vec<usize> = (0..lines.len())
            .filter(|&i| lines[i].starts_with("start"))
            .collect();
        // 16 packets, and the one that makes it more.
        let every = (16 << max) + 2;
        assert!(
            starts.windows(2).all(|w| w[1] - w[0] == every),
            "{starts:?}"
        );
    }
}

/// Reading 17: Without a context there is none in context packets either, though table
/// 6.3 of the draft does not say so.
#[test]
fn reading_17_context_without_context() {
    for config in both() {
        let packet = Packet::Context(Context {
            privilege: 1,
            ..Context::default()
        });
        let bits = if config.version == DRAFT { 7 } else { 6 };
        assert_eq!(packet.bits(&config.layout()), bits);
        // Nothing is sent for a context that no packet has room for.
        let rows = [0, 1, 2].map(|i| Ingress {
            context: hartrace_flow::Context(i),
            ctype: [Ctype::Unreported, Ctype::Imprecise, Ctype::Precise][i as usize],
            ..one(0x1000 + 4 * i, 4)
        });
        let lines = text(&config, &encode_blocks(&config, &rows));
        let expected = [
            "support on",
            "start 1000",
            "address 1008",
            "support off ended_rep",
        ];
        assert_eq!(lines, expected);
    }
}

/// Reading 21: A trap return in a loop: to its own mode, whose target is on the way to
/// it, and then to another mode. By the figures no packet would come between
/// the two, and chapter 11 would leave a round out. The last instruction is
/// told, too.
#[test]
fn loop_of_trap_returns() {
    let image = rv64(&[(0x1000, &[ADD, ADD, MRET]), (0x2000, &[ADD])]);
    for config in both() {
        let way = way(&[
            &go(&[0x1000, 0x1004, 0x1008, 0x1004, 0x1008]),
            &[Do::Mode(Mode::U)],
            &go(&[0x2000]),
        ]);
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "address 1008",
            "start 2000 in U",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
        // Without it this decoder is right, and the one of chapter 11 is not.
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            start_in(&config, 0x2000, Mode::U),
            support(NTR),
        ];
        let lines = ["1000+3>1004", "1004+2>2000", "in U", "2000+1>2004", "off"];
        tells(&config, &image, &packets, &lines);
        let book = book::decode(&config, &image, &packets).unwrap();
        assert_eq!(book, [0x1000, 0x1004, 0x1008, 0x2000]);
    }
}

/// Reading 22: A resync some instructions behind a jump's target that is also on the
/// way to the jump. The texts' encoders say nothing before it, and to chapter 11
/// it is the first time. Here the instruction before the resync is told; and
/// where it is not, a synchronisation that does not follow at once is taken for
/// what it is.
#[test]
fn reading_22_resync_behind_a_target() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, ADD, JR_A5])]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            start(&config, 0x100c),
            support(NTR),
        ];
        let lines = ["1000+5>1004", "1004+2>100c", "100c+1>1010", "off"];
        tells(&config, &image, &packets, &lines);
        let book = book::decode(&config, &image, &packets).unwrap();
        assert_eq!(book, [0x1000, 0x1004, 0x1008, 0x100c]);
        // At once is the first time: else `updiscon` would say so.
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            start(&config, 0x1008),
            support(NTR),
        ];
        let lines = ["1000+1>1004", "1004+1>1008", "1008+1>100c", "off"];
        tells(&config, &image, &packets, &lines);
    }
}

/// Reading 23: ctype 3. The draft's figure has an exception packet without an
/// exception, and that of 2.0 tells the last instruction only if there are
/// branches to tell. Here it is told in any case, and a start follows.
#[test]
fn reading_23_discontinuities() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, JR_A5]), (0x2000, &[ADD, ADD])]);
    for version in VERSIONS {
        let config = Config {
            context_width: 8,
            ..plain(version)
        };
        let context = hartrace_flow::Context(5);
        let rows = [
            one(0x1000, 4),
            one(0x1004, 4),
            Ingress {
                context,
                ctype: Ctype::Discontinuity,
                ..one(0x2000, 4)
            },
            Ingress {
                context,
                ..one(0x2004, 4)
            },
        ];
        let packets = encode_blocks(&config, &rows);
        let lines = [
            "support on",
            "start 1000 context 0",
            "address 1004",
            "start 2000 context 5",
            "address 2004",
            "support off ended_rep",
        ];
        assert_eq!(text(&config, &packets), lines);
        let lines = [
            "1000+1>1004",
            "1004+1>1008",
            "in M context 5",
            "2000+1>2004",
            "2004+1>2008",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// Reading 23: another context at a place the code does not lead to is such a
/// change, however the last instruction was told.
#[test]
fn reading_23_discontinuities_of_others() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, JR_A5]), (0x2000, &[ADD, ADD])]);
    for version in VERSIONS {
        let config = Config {
            context_width: 8,
            ..plain(version)
        };
        let there = Packet::Start(Start {
            branch: true,
            privilege: 3,
            context: 5,
            address: 0x1000,
            ..Start::default()
        });
        let end = ["in M context 5", "2000+1>2004", "off"];
        let told = |packet: Packet, lines: &[&str]| {
            let first = start(&config, 0x1000);
            let packets = [first, packet, there, support(NTR)];
            tells(&config, &image, &packets, &[lines, &end].concat());
        };
        told(address(&config, 4), &["1000+1>1004", "1004+1>1008"]);
        told(updiscon(&config, 4), &["1000+4>1004", "1004+1>1008"]);
    }
}

/// Reading 23: where the packet before does not say that a start follows at once, the
/// next jump leads to the new context, as chapter 11 has it. No instruction is dropped
/// without a gap.
#[test]
fn reading_23_a_jump_into_another_context() {
    let image = rv64(&[
        (0x1000, &[ADD, ADD, ADD, JR_A5]),
        (0x2000, &[ADD, ADD]),
        (0x3000, &[ADD, b(8)]),
        (0x5000, &[ADD, JR_A5]),
    ]);
    for version in VERSIONS {
        let config = Config {
            context_width: 8,
            ..plain(version)
        };
        let there = Packet::Start(Start {
            branch: true,
            privilege: 3,
            context: 5,
            address: 0x1000,
            ..Start::default()
        });
        let end = ["in M context 5", "2000+1>2004", "off"];
        let packets = [start(&config, 0x1000), there, support(NTR)];
        tells(
            &config,
            &image,
            &packets,
            &[&["1000+4>2000"], &end[..]].concat(),
        );
        // The target of a jump is not the last instruction, nor is one that was asked
        // for.
        for (packet, jump) in [
            (address(&config, 0x4000), 0x5004),
            (notify(&config, 4), 0x100c),
        ] {
            let packets = [start(&config, 0x1000), packet, there, support(NTR)];
            let events = decode(&config, &image, &stream(&config, &packets));
            let pcs = events.pcs(&image);
            assert!(pcs.ends_with(&[jump, 0x2000]), "{:?}", events.text());
            assert!(events.gaps().is_empty());
        }
        // No jump to it: something is missing.
        let packets = [start(&config, 0x3000), there, support(NTR)];
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.codes(), [Fault::MissingOutcome.code()]);
        assert_eq!(events.pcs(&image), [0x2000]);
    }
}

/// Reading 23: a change that a decoder would not notice is a new start of the trace:
/// the last instruction has been reported by a start or for a trigger, or the context
/// looks the same.
#[test]
fn reading_23_discontinuities_that_look_like_none() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, JR_A5]), (0x2000, &[ADD, ADD])]);
    let notify = Trigger {
        notify: true,
        ..Trigger::default()
    };
    for version in VERSIONS {
        for (context_width, trigger, last, reported) in [
            (8, Trigger::default(), 0x1000, None),
            (8, notify, 0x1004, Some("address 1004 notify")),
            (0, Trigger::default(), 0x1004, Some("address 1004")),
            (2, Trigger::default(), 0x1004, Some("address 1004")),
        ] {
            let config = Config {
                context_width,
                triggers: true,
                ..plain(version)
            };
            let context = hartrace_flow::Context(4);
            let there = Ingress {
                context,
                ctype: Ctype::Discontinuity,
                ..one(0x2000, 4)
            };
            let mut rows = vec![one(0x1000, 4), one(0x1004, 4)];
            rows.truncate(if last == 0x1000 { 1 } else { 2 });
            rows.last_mut().unwrap().trigger = trigger;
            rows.push(there);
            let packets = encode_blocks(&config, &rows);
            let lines = text(&config, &packets);
            let ended = lines
                .iter()
                .position(|line| line.contains("ended"))
                .unwrap();
            assert!(lines[ended + 1].starts_with("start 2000"), "{lines:?}");
            if let Some(reported) = reported {
                assert_eq!(lines[ended - 1], reported);
            }
            let events = decode(&config, &image, &stream(&config, &packets));
            let mut pcs = vec![0x1000, 0x1004];
            pcs.truncate(rows.len() - 1);
            pcs.push(0x2000);
            assert_eq!(events.pcs(&image), pcs, "{lines:?}");
            assert!(events.gaps().is_empty());
            agrees(&config, &image, &stream(&config, &packets), &events);
        }
    }
}

/// Reading 31: no resync comes between a constant and the jump that goes by it.
/// Chapter 11 would infer the jump, and a decoder that starts there could not.
#[test]
fn reading_31_resync_before_an_inferred_jump() {
    let image = rv64(&[(
        0x1000,
        &[b(8), ADD, auipc_a5(0), jalr(0, 15, 8), ADD, JR_A5],
    )]);
    let round = [0x1000, 0x1008, 0x100c, 0x1010, 0x1014];
    for version in VERSIONS {
        for rule in [ResyncRule::Settled, ResyncRule::Exceeded] {
            for unit in [
                ResyncUnit::Halfwords,
                ResyncUnit::Cycles,
                ResyncUnit::Packets,
            ] {
                let config = Config {
                    sijump: true,
                    resync: Resync { unit, max: 0, rule },
                    ..plain(version)
                };
                let way = go(&round.repeat(60));
                let bytes = encode(&config, &image, &way);
                understood(&config, &image, &steps(&image, &way), &bytes);
                let lines = text(&config, &packets(&config, &bytes));
                assert!(!lines.contains(&"start 100c".to_owned()), "{lines:?}");
                assert!(tally(&lines)["start"] > 2, "{lines:?}");
            }
        }
    }
}

/// Reading 31: a new context that is reported at such a jump has to have its start
/// packet there. The jump is then reported like any other, as a decoder that starts
/// there needs it. Chapter 11, which remembers the constant, infers the jump and does
/// not know what the packet is for.
#[test]
fn reading_31_context_at_an_inferred_jump() {
    let image = rv64(&[(
        0x1000,
        &[auipc_a5(0), jalr(0, 15, 16), ADD, ADD, ADD, JR_A5],
    )]);
    for version in VERSIONS {
        let config = Config {
            sijump: true,
            context_width: 8,
            ..plain(version)
        };
        let way = way(&[
            &go(&[0x1000]),
            &[Do::Context(hartrace_flow::Context(5))],
            &go(&[0x1004, 0x1010, 0x1014, 0x1008]),
        ]);
        let steps = steps(&image, &way);
        let port = PortConfig {
            ctype: Ctype::Precise,
            sijump: true,
            ..port(&config, Isa::RV64GC)
        };
        let bytes = encode_at(port, &config, &FilterConfig::default(), &steps);
        let lines = [
            "support on",
            "start 1000 context 0",
            "start 1004 context 5",
            "address 1010",
            "address 1008",
            "support off ended_ntr",
        ];
        assert_eq!(text(&config, &packets(&config, &bytes)), lines);
        decodes(&config, &image, &steps, &bytes);
        let book = book::decode(&config, &image, &packets(&config, &bytes));
        assert_ne!(book, Ok(vec![0x1000, 0x1004, 0x1010, 0x1014, 0x1008]));
    }
}

/// Reading 24: Draft: traps that nothing retired before cannot be told, but for the last
/// of them. The instructions are all there.
#[test]
fn draft_traps_in_a_row() {
    let image = rv64(&[(0x1000, &[ADD, ADD]), (0x3000, &[ADD]), (0x4000, &[ADD])]);
    let config = plain(DRAFT);
    let way = way(&[
        &go(&[0x1000]),
        &[
            Do::Trap(0x1004, 0x3000, exception(13), Some(1)),
            Do::Trap(0x3000, 0x4000, exception(5), Some(2)),
        ],
        &go(&[0x4000]),
    ]);
    let lines = [
        "support on",
        "start 1000",
        "exception 5 to 4000 tval 2",
        "support off ended_ntr",
    ];
    sends(&config, &image, &way, &lines);
}

/// 6.3.1: `tvalepc` is the address of an illegal instruction even right after another
/// trap, where the hart never came by.
#[test]
fn draft_illegal_instruction_after_another_trap() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ECALL]), (0x4000, &[ADD])]);
    let config = plain(DRAFT);
    for (pcs, first) in [
        (
            &[0x1000][..],
            Do::Trap(0x1004, 0x3000, exception(13), Some(1)),
        ),
        (
            &[0x1000, 0x1004],
            Do::Trap(0x1008, 0x3000, exception(11), Some(0)),
        ),
    ] {
        let way = way(&[
            &go(pcs),
            &[first, Do::Trap(0x3000, 0x4000, exception(2), Some(2))],
            &go(&[0x4000]),
        ]);
        let bytes = encode(&config, &image, &way);
        let events = decode(&config, &image, &bytes);
        let traps: Vec<_> = events.traps().iter().map(|trap| trap.epc).collect();
        assert_eq!(traps, [Some(0x3000)], "{:?}", events.text());
        agrees(&config, &image, &bytes, &events);
    }
}

/// A trap right after a loss that the encoder reports is one on the first instruction:
/// its address is known. After packets that the decoder found missing it may be the
/// second of two traps, whose address is undefined.
#[test]
fn traps_right_after_a_loss() {
    let image = rv64(&[(0x1000, &[ADD, ADD]), (0x3000, &[ADD])]);
    let config = plain(RATIFIED);
    let first = Packet::Trap(Trap {
        tval: Some(7),
        ..trap(&config, 12, false, 0x2000)
    });
    let rest = [first, start(&config, 0x3000), support(NTR)];
    let lost = [start(&config, 0x1000), support(QualStatus::TraceLost)];
    let damaged = [start(&config, 0x1000), address(&config, 0x500)];
    for (before, epc) in [(lost, Some(0x2000)), (damaged, None)] {
        let bytes = stream(&config, &[&before[..], &rest].concat());
        let events = decode(&config, &image, &bytes);
        let traps: Vec<_> = events
            .traps()
            .iter()
            .map(|trap| (trap.epc, trap.handler))
            .collect();
        assert_eq!(traps, [(epc, Some(0x3000))], "{:?}", events.text());
        assert_eq!(events.gaps().len(), 1);
    }
    // In the draft an illegal instruction has its address in any case.
    let config = plain(DRAFT);
    let illegal = Packet::Trap(Trap {
        tval: Some(0x2000),
        ..trap(&config, 2, true, 0x3000)
    });
    for before in [support(QualStatus::TraceLost), address(&config, 0x500)] {
        let packets = [start(&config, 0x1000), before, illegal, support(NTR)];
        let events = decode(&config, &image, &stream(&config, &packets));
        let traps: Vec<_> = events.traps().iter().map(|trap| trap.epc).collect();
        assert_eq!(traps, [Some(0x2000)], "{:?}", events.text());
    }
}

/// Reading 25: Draft: behind a jump even where the hart was is lost, if the second of
/// two traps is an illegal instruction: its address is taken for the target.
#[test]
fn draft_two_traps_behind_a_jump() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x4000, &[ADD])]);
    let config = plain(DRAFT);
    let way = way(&[
        &go(&[0x1000, 0x1004]),
        &[
            Do::Trap(0x2000, 0x3000, exception(12), Some(1)),
            Do::Trap(0x3000, 0x4000, exception(2), Some(2)),
        ],
        &go(&[0x4000]),
    ]);
    let bytes = encode(&config, &image, &way);
    let lines = [
        "support on",
        "start 1000",
        "address 1004",
        "exception 2 to 4000 tval 3000",
        "support off ended_ntr",
    ];
    assert_eq!(text(&config, &packets(&config, &bytes)), lines);
    let events = decode(&config, &image, &bytes);
    assert_eq!(events.pcs(&image), [0x1000, 0x1004, 0x4000]);
    assert_eq!(events.text()[3], "1004+1>3000");
}

/// Reading 26: 2.0: an interrupt where a jump went is told as an exception there is,
/// with thaddr = 0; the figure would have an address packet for what never
/// retired. Where it was taken stays unknown: the text has its address
/// undefined.
#[test]
fn reading_26_interrupt_at_a_jumps_target() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x3000, &[ADD])]);
    let config = plain(RATIFIED);
    let way = way(&[
        &go(&[0x1000, 0x1004]),
        &[Do::Trap(0x2000, 0x3000, interrupt(7), Some(0))],
        &go(&[0x3000]),
    ]);
    let lines = [
        "support on",
        "start 1000",
        "address 1004",
        "interrupt 7 at 2000",
        "start 3000",
        "support off ended_ntr",
    ];
    sends(&config, &image, &way, &lines);
    let bytes = encode(&config, &image, &way);
    let lines = decode(&config, &image, &bytes).text();
    assert!(
        lines.contains(&"interrupt 7 at ? to 3000 tval ?".to_owned()),
        "{lines:?}"
    );
}

/// Reading 27: A trap whose handler is not traced: thaddr = 0 tells it before the end
/// (2.0). The draft has nothing to tell it with.
#[test]
fn reading_27_the_trace_ends_with_a_trap() {
    let image = rv64(&[(0x1000, &[ADD, ADD]), (0x3000, &[ADD])]);
    let things = [
        Do::At(0x1000),
        Do::Trap(0x1004, 0x3000, exception(13), Some(9)),
    ];
    let config = plain(RATIFIED);
    let lines = [
        "support on",
        "start 1000",
        "exception 13 at 1004 tval 9",
        "support off ended_rep",
    ];
    sends(&config, &image, &things, &lines);
    let config = plain(DRAFT);
    let bytes = encode(&config, &image, &things);
    let lines = ["support on", "start 1000", "support off ended_rep"];
    assert_eq!(text(&config, &packets(&config, &bytes)), lines);
    assert_eq!(decode(&config, &image, &bytes).pcs(&image), [0x1000]);
}

/// Reading 28: Debug mode that only the privilege shows comes without a trap, and only
/// branches would make an encoder tell where: what ran last before it is not
/// known, and a decoder says so. The way back is a return like any other.
#[test]
fn reading_28_debug_mode_by_privilege() {
    const DRET: u32 = 0x7b20_0073;
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, JR_A5]), (0x800, &[ADD, DRET])]);
    for version in VERSIONS {
        let config = Config {
            privilege_width: 3,
            ..plain(version)
        };
        let debug = |iaddr| Ingress {
            mode: Mode::D,
            ..one(iaddr, 4)
        };
        let rows = [
            one(0x1000, 4),
            one(0x1004, 4),
            debug(0x800),
            Ingress {
                itype: Itype::TrapReturn,
                ..debug(0x804)
            },
            one(0x1008, 4),
        ];
        let packets = encode_blocks(&config, &rows);
        let lines = [
            "support on",
            "start 1000",
            "start 800 in D",
            "start 1008",
            "support off ended_ntr",
        ];
        assert_eq!(text(&config, &packets), lines);
        let lines = decode(&config, &image, &stream(&config, &packets)).text();
        let end = ["800+2>1008", "in M", "1008+1>100c", "off"].map(String::from);
        assert!(lines.ends_with(&end), "{lines:?}");
        let gaps = lines.iter().filter(|l| l.starts_with("gap"));
        assert_eq!(gaps.count(), 1, "{lines:?}");
    }
}
