//! The optional modes (3.2.3, 3.2.5 to 3.2.7), format 0 (6.8), and what 2.05 adds:
//! from steps to packets and back.

use hartrace_etrace::{
    Config, Fault, Packet, QualStatus, Resync, ResyncRule, ResyncUnit, Support, TrapVectors,
    Version,
};
use hartrace_flow::{Image, Mode, Signal};

use crate::common::asm::*;
use crate::common::*;

const VERSIONS: [Version; 3] = [DRAFT, RATIFIED, REVIEW];
const RET: u32 = jalr(0, 1, 0);
const REP: QualStatus = QualStatus::EndedRep;

/// The same line for each version: `irdepth` and `irets` differ.
fn by_version<'a>(version: Version, irdepth: &'a str, irets: &'a str) -> &'a str {
    match version {
        Version::V2_05 => irets,
        _ => irdepth,
    }
}

// Branch prediction.

fn predicting(version: Version, bpred_size: u8) -> Config {
    Config {
        bpred_size,
        branch_prediction: true,
        ..plain(version)
    }
}

/// A loop of one branch at 0x1004, and code after it.
fn counting_loop() -> Image {
    rv64(&[
        (0x1000, &[ADD, b(0), ADD, ADD, JR_A5]),
        (0x2000, &[ADD, ADD]),
    ])
}

/// So many times round the loop, and out of it.
fn rounds(count: usize) -> Vec<Do> {
    let mut pcs = vec![0x1000];
    pcs.resize(1 + count, 0x1004);
    go(&pcs)
}

/// 3.2.6, 6.8: up to 31 branches a map; then they are counted, until one fails.
#[test]
fn predicted_branches_are_counted() {
    let image = counting_loop();
    for version in VERSIONS {
        let config = predicting(version, 4);
        // The first branch is not predicted: its map has 31 branches. After that all
        // are, up to the last one.
        let way = way(&[&rounds(31 + 100 + 1), &go(&[0x1008])]);
        let map = format!("branches {}", "T".repeat(31));
        let lines = [
            "start 1000",
            &map,
            "count 100 fails",
            "address 1008",
            &end(&config),
        ];
        sends_modal(&config, &image, &way, &lines);
    }
}

fn end(config: &Config) -> String {
    text(config, &[end_packet(config)])[0].clone()
}

fn end_packet(config: &Config) -> Packet {
    Packet::Support(Support {
        qual_status: REP,
        ioptions: config.ioptions_field(),
        ..Support::default()
    })
}

/// 6.8, 8.1: fewer than 31 branches are a map, predicted or not.
#[test]
fn few_branches_are_a_map() {
    let image = counting_loop();
    for version in VERSIONS {
        let config = predicting(version, 4);
        let map = format!("branches {}", "T".repeat(31));
        for more in 1..31 {
            let way = way(&[&rounds(31 + more), &go(&[0x1008])]);
            let last = format!("branches {}N 1008", "T".repeat(more - 1));
            let lines = ["start 1000", &map, &last, &end(&config)];
            sends_modal(&config, &image, &way, &lines);
        }
        // The 31st is the first that fails: a map without an address.
        let way = way(&[&rounds(62), &go(&[0x1008, 0x100c])]);
        let second = format!("branches {}N", "T".repeat(30));
        let lines = ["start 1000", &map, &second, "address 100c", &end(&config)];
        sends_modal(&config, &image, &way, &lines);
    }
}

/// Table 6.9: a count with an address: of a jump's target, of a branch that was
/// predicted, of one that was not.
#[test]
fn counts_with_an_address() {
    let image = counting_loop();
    for version in VERSIONS {
        let config = predicting(version, 4);
        let map = format!("branches {}", "T".repeat(31));
        let trap = Do::Trap(0x1004, 0x2000, exception(2), Some(0));
        let predicted = way(&[&rounds(31 + 40), &[trap], &go(&[0x2000])]);
        let lines = text(&config, &modal_trip(&config, &image, &predicted));
        assert_eq!(lines[2..4], [map.as_str(), "count 40 1004"]);
        // The last round leaves the loop, and the next instruction traps.
        let trap = Do::Trap(0x1008, 0x2000, exception(2), Some(0));
        let failed = way(&[&rounds(31 + 40), &[trap], &go(&[0x2000])]);
        let lines = text(&config, &modal_trip(&config, &image, &failed));
        assert_eq!(lines[2..4], [map.as_str(), "count 39 fails 1004"]);
        // The branch that leaves the loop fails after 31 that were counted: nothing is
        // left to report at the jump.
        let image = rv64(&[(0x1000, &[b(8), ADD, b(-8), JR_A5]), (0x2000, &[ADD])]);
        let round = go(&[0x1000, 0x1008]);
        let mut rounds: Vec<Do> = round.repeat(31);
        rounds.extend(go(&[0x1000, 0x1008, 0x100c, 0x2000]));
        let lines = text(&config, &modal_trip(&config, &image, &rounds));
        let map = format!("branches {}", "T".repeat(31));
        assert_eq!(
            lines[2..5],
            [map.as_str(), "count 31 fails", "address 2000"]
        );
    }
}

/// 3.2.6: the table is initialised by a synchronisation packet, and the branch that
/// it reports is the first to change it.
#[test]
fn synchronisation_initialises_the_predictor() {
    let image = counting_loop();
    for version in VERSIONS {
        let config = Config {
            resync: Resync {
                unit: ResyncUnit::Halfwords,
                max: 3,
                rule: ResyncRule::Settled,
            },
            ..predicting(version, 4)
        };
        // A resync about every 64 branches, each at the branch of the loop. It
        // reports that branch as taken: the next ones are predicted.
        let way = way(&[&rounds(400), &go(&[0x1008])]);
        let packets = modal_trip(&config, &image, &way);
        let lines = text(&config, &packets);
        let starts = lines.iter().filter(|line| *line == "start 1004 taken");
        assert!(starts.count() > 3, "{lines:?}");
        let maps = lines.iter().filter(|line| line.starts_with("branches"));
        assert_eq!(
            maps.count(),
            2,
            "only around the first and the last: {lines:?}"
        );
    }
}

/// A wrong count is found when the next packet contradicts it. What nothing
/// confirmed is counted in the gap.
#[test]
fn a_wrong_turn_in_a_predicted_stretch() {
    let image = counting_loop();
    for version in VERSIONS {
        let config = predicting(version, 4);
        let taken = full_map(&"T".repeat(31));
        let count = |branch_count| Packet::BranchCount {
            branch_count,
            address: None,
        };
        let good = [
            start(&config, 0x1000),
            taken,
            count(100),
            address(&config, 8),
            support(REP),
        ];
        assert_eq!(
            decode(&config, &image, &stream(&config, &good)).codes(),
            [""; 0]
        );
        // Back to the loop, which no jump leads to: the branches of the count are
        // in doubt.
        let bad = [
            start(&config, 0x1000),
            taken,
            count(100),
            Packet::Branches {
                map: map("TTT"),
                address: Some(by(&config, 0x400)),
            },
            support(REP),
        ];
        let gaps = decode(&config, &image, &stream(&config, &bad)).gaps();
        assert_eq!(gaps.len(), 1);
        assert!(gaps[0].unconfirmed >= 100, "{gaps:?}");
    }
}

/// 3.2.6: packets that a decoder without the mode cannot use.
#[test]
fn counts_without_the_mode() {
    let image = counting_loop();
    let config = Config {
        branch_prediction: false,
        ..predicting(RATIFIED, 4)
    };
    let count = Packet::BranchCount {
        branch_count: 3,
        address: None,
    };
    let bytes = stream(&config, &[start(&config, 0x1000), count]);
    let codes = decode(&config, &image, &bytes).codes();
    assert_eq!(codes, [Fault::UnknownSubformat.code()]);
}

/// A count that ends where it began is no repetition of that place, as the end of the
/// reference encoder is.
#[test]
fn a_count_that_ends_where_it_began() {
    let image = rv64(&[(0x1000, &[ADD, b(-4), ADD])]);
    for version in VERSIONS {
        let config = predicting(version, 4);
        let round = go(&[0x1000, 0x1004]);
        let way = way(&[&round.repeat(200), &go(&[0x1000])]);
        let lines = text(&config, &modal_trip(&config, &image, &way));
        let last = &lines[lines.len() - 2];
        assert_eq!(last, "count 169 1000", "{lines:?}");
    }
}

// Jump target cache.

fn caching(version: Version) -> Config {
    Config {
        cache_size: 5,
        jump_target_cache: true,
        full_address: true,
        ..plain(version)
    }
}

/// Jumps from 0x1000 to 0x2000 and back.
fn jumps() -> Image {
    rv64(&[
        (0x1000, &[JR_A5, ADD]),
        (0x12_3456, &[JR_A5, ADD]),
        (0x12_3496, &[JR_A5]),
    ])
}

/// 3.2.7, 6.8: a target that is in the cache is reported by its index.
#[test]
fn cached_targets_are_reported_by_index() {
    let image = jumps();
    for version in VERSIONS {
        let config = caching(version);
        let way = go(&[0x1000, 0x12_3456, 0x1000, 0x12_3456, 0x1000, 0x1000]);
        let lines = [
            "start 1000",
            "address 123456",
            "address 1000",
            // Bits 5:1 of the address.
            "index 11",
            "index 0",
            "index 0",
            &end(&config).replace("rep", "ntr"),
        ];
        sends_modal(&config, &image, &way, &lines);
    }
}

/// 3.2.7: one entry for all addresses with the same index: another target replaces it.
#[test]
fn entries_are_replaced() {
    let image = jumps();
    for version in VERSIONS {
        let config = caching(version);
        // 0x12_3456 and 0x12_3496 have the same index.
        let way = go(&[
            0x1000, 0x12_3456, 0x12_3496, 0x12_3456, 0x12_3456, 0x12_3496,
        ]);
        let lines = [
            "start 1000",
            "address 123456",
            "address 123496",
            "address 123456",
            "index 11",
            "address 123496",
            &end(&config).replace("rep", "ntr"),
        ];
        sends_modal(&config, &image, &way, &lines);
    }
}

/// 3.2.7: a synchronisation packet invalidates all entries.
#[test]
fn synchronisation_invalidates_the_cache() {
    let image = jumps();
    for version in VERSIONS {
        let config = caching(version);
        let stop = [Do::Signal(Signal::Halted), Do::Signal(Signal::Resumed)];
        let way = way(&[
            &go(&[0x1000, 0x12_3456, 0x12_3456, 0x12_345a]),
            &stop,
            &go(&[0x1000, 0x12_3456]),
        ]);
        // 0x12_345a does not follow the jump: tracing starts anew there.
        let bytes = encode(&config, &image, &way);
        let lines = text(&config, &packets(&config, &bytes));
        let cached = lines.iter().filter(|line| line.starts_with("index"));
        assert_eq!(cached.count(), 1, "{lines:?}");
        assert_eq!(lines[lines.len() - 2], "address 123456");
    }
}

/// 6.8: the encoder may send the address where that is shorter.
#[test]
fn the_shorter_packet_is_sent() {
    let image = rv64(&[(0x1000, &[JR_A5]), (0x10fc, &[JR_A5])]);
    for version in VERSIONS {
        let config = Config {
            full_address: false,
            cache_size: 7,
            ..caching(version)
        };
        // A difference of 0 has one byte, index 126 two.
        let way = go(&[0x1000, 0x10fc, 0x10fc, 0x10fc]);
        let lines = [
            "start 1000",
            "address 10fc",
            "address 10fc",
            "address 10fc",
            &end(&config).replace("rep", "ntr"),
        ];
        sends_modal(&config, &image, &way, &lines);
        // Even after outcomes, which are compressed away with it.
        let image = rv64(&[(0x1000, &[b(8), ADD, JR_A5])]);
        let way = go(&[0x1000, 0x1008, 0x1000, 0x1008, 0x1000, 0x1008]);
        let lines = text(&config, &modal_trip(&config, &image, &way));
        assert_eq!(lines[2..4], ["branches T 1000", "branches T 1000"]);
    }
}

/// Tables 6.10 and 6.11: with the branches before the jump, or without any.
#[test]
fn indexes_with_branches() {
    let image = rv64(&[(0x1000, &[b(8), ADD, JR_A5]), (0x12_3456, &[JR_A5])]);
    for version in VERSIONS {
        let config = caching(version);
        let round = go(&[0x1000, 0x1008, 0x12_3456]);
        let way = round.repeat(3);
        let lines = text(&config, &modal_trip(&config, &image, &way));
        let indexes = ["index 0 T", "index 11"];
        for index in indexes {
            assert!(lines.iter().any(|line| line == index), "{lines:?}");
        }
    }
}

/// An index whose entry is not valid is not guessed at.
#[test]
fn an_empty_entry_is_a_fault() {
    let image = jumps();
    for version in VERSIONS {
        let config = caching(version);
        let index = Packet::JumpTarget {
            index: 11,
            map: map(""),
            irreport: false,
            irdepth: 0,
        };
        let packets = [start(&config, 0x1000), index, start(&config, 0x1000)];
        let codes = decode(&config, &image, &stream(&config, &packets)).codes();
        assert_eq!(codes, [Fault::EmptyEntry.code()]);
    }
}

// Implicit return.

fn returning(version: Version, return_stack_size: u8) -> Config {
    Config {
        return_stack_size,
        implicit_return: true,
        ..plain(version)
    }
}

/// main calls f twice and then g, which calls f; a branch in between.
fn calls() -> Image {
    rv64(&[
        (
            0x1000,
            &[
                jal(1, 0x1000),
                jal(1, 0xffc),
                b(4),
                jal(1, 0x1ff4),
                ADD,
                ADD,
            ],
        ),
        // f
        (0x2000, &[ADD, RET]),
        // g
        (0x3000, &[ADD, jal(1, -0x1004), b(4), RET]),
    ])
}

/// 3.2.5: a return to the instruction after the call is left out.
#[test]
fn returns_are_left_out() {
    let image = calls();
    for version in VERSIONS {
        let config = returning(version, 4);
        let way = go(&[
            0x1000, 0x2000, 0x2004, 0x1004, 0x2000, 0x2004, 0x1008, 0x100c, 0x3000, 0x3004, 0x2000,
            0x2004, 0x3008, 0x300c, 0x1010, 0x1014,
        ]);
        let end = end(&config);
        let with_irets = ["start 1000", "branches NN 1014 irets 1", &end];
        // The first return must be settled before the second call.
        let with_irdepth = [
            "start 1000",
            "address 1004 irdepth 1",
            "branches NN 1014 irdepth 0",
            &end,
        ];
        match version {
            Version::V2_05 => sends_modal(&config, &image, &way, &with_irets),
            _ => sends_modal(&config, &image, &way, &with_irdepth),
        }
    }
}

/// 2.05, Background: two returns without a branch between them.
#[test]
fn two_returns_without_a_branch() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), jal(1, 0xffc), ADD, ADD]),
        (0x2000, &[ADD, RET]),
        (0x4000, &[ADD]),
    ]);
    for version in VERSIONS {
        let config = returning(version, 4);
        // The target of the second return is the last instruction before a trap.
        let trap = Do::Trap(0x100c, 0x4000, exception(2), Some(0));
        let way = way(&[
            &go(&[0x1000, 0x2000, 0x2004, 0x1004, 0x2000, 0x2004, 0x1008]),
            &[trap],
            &go(&[0x4000]),
        ]);
        let lines = text(&config, &modal_trip(&config, &image, &way));
        let report = by_version(
            version,
            "address 1008 updiscon irdepth 1",
            "address 1008 updiscon irets 1",
        );
        assert!(lines.iter().any(|line| line == report), "{lines:?}");
    }
}

/// A sequentially inferable call is followed like a direct one: a return that was left
/// out before it is settled first.
#[test]
fn a_sequentially_inferable_call_after_a_return() {
    // lui a0, 2
    let call = [0x2537, jalr(1, 10, 0)];
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), call[0], call[1], ADD, ADD]),
        (0x2000, &[ADD, RET]),
        (0x4000, &[ADD]),
    ]);
    for version in [DRAFT, RATIFIED] {
        let config = Config {
            sijump: true,
            ..returning(version, 4)
        };
        let trap = Do::Trap(0x1010, 0x4000, exception(2), Some(0));
        let way = way(&[
            &go(&[
                0x1000, 0x2000, 0x2004, 0x1004, 0x1008, 0x2000, 0x2004, 0x100c,
            ]),
            &[trap],
            &go(&[0x4000]),
        ]);
        let lines = text(&config, &modal_trip(&config, &image, &way));
        let settled = lines.iter().any(|line| line == "address 1004 irdepth 1");
        assert!(settled, "{lines:?}");
    }
}

/// Recursion: the same addresses at every depth.
#[test]
fn recursion() {
    // f: beq out; jal f; add; out: ret
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD]),
        (0x2000, &[b(12), jal(1, -4), ADD, RET]),
    ]);
    for version in VERSIONS {
        for depth in 1..7 {
            for size in [1, 2, 3] {
                let mut pcs = vec![0x1000];
                pcs.extend([0x2000, 0x2004].repeat(depth));
                pcs.extend([0x2000, 0x200c]);
                let up = pcs.len();
                pcs.extend([0x2008, 0x200c].repeat(depth));
                pcs.extend([0x1004, 0x1008]);
                let config = returning(version, size);
                modal_trip(&config, &image, &go(&pcs));
                // A trap after every instruction of the way down.
                for end in up..pcs.len() {
                    let trap = Do::Trap(pcs[end], 0x1008, exception(2), Some(0));
                    let way = way(&[&go(&pcs[..end]), &[trap], &go(&[0x1008])]);
                    modal_trip(&config, &image, &way);
                    modal_trip(&config, &image, &go(&pcs[..end]));
                }
            }
        }
    }
}

/// longjmp: returns that do not go to their calls, in the middle of others.
#[test]
fn longjmp() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD, ADD]),
        (0x2000, &[ADD, jal(1, 0xffc), ADD, RET]),
        (0x3000, &[ADD, jal(1, 0xffc), ADD, RET]),
        (0x4000, &[ADD, RET]),
    ]);
    for version in VERSIONS {
        let config = returning(version, 4);
        let deep = [0x1000, 0x2000, 0x2004, 0x3000, 0x3004, 0x4000, 0x4004];
        // From the deepest function to main, or to the middle of another.
        for (to, rest) in [
            (0x1004, &[0x1008][..]),
            (0x2008, &[0x200c, 0x1004]),
            (0x3008, &[0x300c, 0x2008, 0x200c, 0x1004]),
            (0x1008, &[0x100c]),
        ] {
            let pcs = [&deep[..], &[to], rest].concat();
            let packets = modal_trip(&config, &image, &go(&pcs));
            let lines = text(&config, &packets);
            let report = by_version(version, "irdepth 3", "irets 0");
            let jump = format!("address {to:x} {report}");
            let reported = lines.contains(&jump);
            assert_eq!(reported, to != 0x3008, "{lines:?}");
        }
    }
}

/// Returns without calls: nothing on the stack, nothing to imply.
#[test]
fn returns_without_calls() {
    let image = rv64(&[(0x1000, &[ADD, RET]), (0x2000, &[ADD, RET, ADD])]);
    for version in VERSIONS {
        let config = returning(version, 4);
        let way = go(&[0x1000, 0x1004, 0x2000, 0x2004, 0x1000, 0x1004, 0x2008]);
        let ntr = end(&config).replace("rep", "ntr");
        let lines = [
            "start 1000",
            "address 2000",
            "address 1000",
            "address 2008",
            &ntr,
        ];
        sends_modal(&config, &image, &way, &lines);
    }
}

/// 4.1.1: a co-routine swap neither pushes nor pops, and its target is reported.
#[test]
fn coroutine_swaps() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD]),
        (0x2000, &[ADD, SWAP, ADD, RET]),
        (0x3000, &[ADD, SWAP]),
    ]);
    for version in VERSIONS {
        let config = returning(version, 4);
        let way = go(&[
            0x1000, 0x2000, 0x2004, 0x3000, 0x3004, 0x2008, 0x200c, 0x1004, 0x1008,
        ]);
        let returned = by_version(version, "address 1008 irdepth 0", "address 1008 irets 1");
        let lines = [
            "start 1000",
            "address 3000",
            "address 2008",
            returned,
            &end(&config),
        ];
        sends_modal(&config, &image, &way, &lines);
    }
}

/// 3.2.5: calls deeper than the stack or the counter: the oldest are forgotten, and
/// their returns reported.
#[test]
fn calls_deeper_than_the_stack() {
    // Five functions, each calling the next one.
    let f = [ADD, jal(1, 0xffc), ADD, RET];
    let image = rv64(&[
        (0x1000, &f),
        (0x2000, &f),
        (0x3000, &f),
        (0x4000, &f),
        (0x5000, &[ADD, RET]),
    ]);
    let down = [
        0x1000, 0x1004, 0x2000, 0x2004, 0x3000, 0x3004, 0x4000, 0x4004,
    ];
    let up = [
        0x5000, 0x5004, 0x4008, 0x400c, 0x3008, 0x300c, 0x2008, 0x200c, 0x1008,
    ];
    let way = go(&[&down[..], &up].concat());
    for version in VERSIONS {
        for (size, counter, implied) in [(1, 0, 2), (2, 0, 4), (0, 1, 1), (0, 2, 3)] {
            let config = Config {
                call_counter_size: counter,
                ..returning(version, size)
            };
            let lines = text(&config, &modal_trip(&config, &image, &way));
            let reported = lines.iter().filter(|line| line.starts_with("address"));
            // In 2.05 a counter counts one more.
            let more = usize::from(version == REVIEW && counter > 0);
            let last = usize::from(implied + more >= 4);
            assert_eq!(
                reported.count(),
                4 - (implied + more).min(4) + last,
                "{lines:?}"
            );
        }
    }
}

/// Traps inside calls: in 2.0 they clear the stack, and later returns are reported.
#[test]
fn traps_inside_calls() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD]),
        (0x2000, &[ADD, ADD, RET]),
        (0x3000, &[jal(1, 0x1000), MRET]),
        (0x4000, &[ADD, RET]),
    ]);
    let trap = Do::Trap(0x2004, 0x3000, interrupt(7), None);
    let way = way(&[
        &go(&[0x1000, 0x2000]),
        &[trap],
        &go(&[
            0x3000, 0x4000, 0x4004, 0x3004, 0x2004, 0x2008, 0x1004, 0x1008,
        ]),
    ]);
    for version in VERSIONS {
        let config = returning(version, 4);
        let lines = text(&config, &modal_trip(&config, &image, &way));
        assert!(lines.iter().any(|line| line == "address 1004"), "{lines:?}");
        // A trap at the target of a return: its address cannot be implied.
        let trap = Do::Trap(0x1004, 0x3000, exception(2), Some(0));
        let at_target = crate::common::way(&[
            &go(&[0x1000, 0x2000, 0x2004, 0x2008]),
            &[trap],
            &go(&[0x3000, 0x4000]),
        ]);
        let lines = text(&config, &modal_trip(&config, &image, &at_target));
        let reported: &[&str] = match version {
            // tvalepc is its address.
            Version::V1_1_1 => &["address 2008", "exception 2 to 3000 tval 1004"],
            _ => &["address 2008", "exception 2 at 1004 tval 0", "start 3000"],
        };
        assert_eq!(lines[2..2 + reported.len()], *reported);
    }
    // Without resync, 2.05 keeps the stack.
    let config = Config {
        resync: Resync::default(),
        ..returning(REVIEW, 4)
    };
    let lines = text(&config, &modal_trip(&config, &image, &way));
    assert!(
        !lines.iter().any(|line| line == "address 1004"),
        "{lines:?}"
    );
}

/// A resync inside a call clears the stack, for a decoder that starts there: the return
/// is reported, and without a depth or count.
#[test]
fn resync_inside_a_call() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD]),
        (0x2000, &[b(0), RET]),
    ]);
    for version in VERSIONS {
        for rule in [ResyncRule::Settled, ResyncRule::Exceeded] {
            let config = Config {
                resync: Resync {
                    unit: ResyncUnit::Halfwords,
                    max: 0,
                    rule,
                },
                ..returning(version, 4)
            };
            // The first 16 halfwords end in the loop.
            for rounds in 16..40 {
                let mut pcs = vec![0x1000];
                pcs.resize(1 + rounds, 0x2000);
                pcs.extend([0x2004, 0x1004, 0x1008]);
                let path = go(&pcs);
                let bytes = encode(&config, &image, &path);
                decodes(&config, &image, &steps(&image, &path), &bytes);
                let lines = text(&config, &packets(&config, &bytes));
                assert!(lines.contains(&"start 2000 taken".to_owned()), "{lines:?}");
                let returned = lines.iter().find(|line| line.contains(" 1004"));
                let returned = returned.unwrap_or_else(|| panic!("{lines:?}"));
                assert!(!returned.contains("ir"), "{lines:?}");
                // Whoever starts at the resync knows as much.
                let last = lines.iter().rposition(|line| line == "start 2000 taken");
                let rest = pieces(&bytes)[last.unwrap()..].concat();
                let late = decode(&config, &image, &rest);
                assert!(
                    late.pcs(&image)
                        .ends_with(&[0x2000, 0x2004, 0x1004, 0x1008])
                );
                assert!(late.gaps().is_empty(), "{:?}", late.text());
                // Without the resync the return is left out.
                let never = Config {
                    resync: Resync {
                        unit: ResyncUnit::Off,
                        ..config.resync
                    },
                    ..config.clone()
                };
                let lines = text(&never, &modal_trip(&never, &image, &path));
                assert!(
                    !lines.iter().any(|line| line.contains(" 1004")),
                    "{lines:?}"
                );
            }
        }
    }
}

/// A trace that starts in the middle of a call: its return is reported.
#[test]
fn start_in_the_middle_of_a_call() {
    let image = calls();
    for version in VERSIONS {
        let config = returning(version, 4);
        let way = go(&[0x2000, 0x2004, 0x1004, 0x2000, 0x2004, 0x1008]);
        let returned = by_version(
            version,
            "branches N 1008 updiscon irdepth 1",
            "branches N 1008 updiscon irets 0",
        );
        let lines = ["start 2000", "address 1004", returned, &end(&config)];
        sends_modal(&config, &image, &way, &lines);
    }
}

/// Notifications of instructions after returns that were left out.
#[test]
fn notifications_after_returns() {
    let image = calls();
    let notify = [Do::Signal(Signal::Notify)];
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            ..returning(version, 4)
        };
        for at in [0x1004, 0x2000, 0x2004, 0x1008] {
            let mut path = Vec::new();
            for pc in [0x1000, 0x2000, 0x2004, 0x1004, 0x2000, 0x2004, 0x1008] {
                if pc == at {
                    path.extend(notify);
                }
                path.extend(go(&[pc]));
            }
            modal_trip(&config, &image, &path);
        }
    }
}

/// 2.05: 255 returns at most are left out in a row.
#[test]
fn two_hundred_and_fifty_five_returns() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD]),
        (0x2000, &[b(12), jal(1, -4), ADD, RET]),
    ]);
    let config = Config {
        call_counter_size: 9,
        ..returning(REVIEW, 0)
    };
    let depth = 300;
    let mut pcs = vec![0x1000];
    pcs.extend([0x2000, 0x2004].repeat(depth));
    pcs.extend([0x2000, 0x200c]);
    pcs.extend([0x2008, 0x200c].repeat(depth));
    pcs.extend([0x1004, 0x1008]);
    let lines = text(&config, &modal_trip(&config, &image, &go(&pcs)));
    let report = lines.iter().filter(|line| line.ends_with("2008 irets 255"));
    assert_eq!(report.count(), 1, "{lines:?}");
}

/// A return elsewhere whose target gets a synchronisation packet: no decoder could
/// tell it from an implied one, so the trace ends before it and starts anew.
#[test]
fn a_synchronisation_after_a_return_elsewhere() {
    let image = rv64(&[(0x1000, &[jal(1, 0x1000), ADD, ADD]), (0x2000, &[ADD, RET])]);
    for version in VERSIONS {
        let config = Config {
            context_width: 8,
            ..returning(version, 4)
        };
        let context = Do::Context(hartrace_flow::Context(3));
        let way = way(&[&go(&[0x1000, 0x2000, 0x2004]), &[context], &go(&[0x1008])]);
        let bytes = encode(&config, &image, &way);
        let lines = text(&config, &packets(&config, &bytes));
        let ended = lines.iter().position(|line| line.contains("ended_rep"));
        assert_eq!(lines[ended.unwrap() + 1], "start 1008 context 3");
        let events = decode(&config, &image, &bytes);
        assert_eq!(events.pcs(&image), [0x1000, 0x2000, 0x2004, 0x1008]);
    }
}

/// 6.6.3: main calls f and then g, which calls f: after the second return of f the stack
/// is as deep as it was in the first f. What is reported there must not be taken for the
/// target of the first return.
#[test]
fn irdepth_after_a_return_of_the_same_depth() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), jal(1, 0x1ffc), ADD]),
        (0x2000, &[ADD, RET]),
        (0x3000, &[jal(1, -0x1000), b(8), ADD, ADD, RET]),
        (0x5000, &[ADD]),
    ]);
    let calls = [
        0x1000, 0x2000, 0x2004, 0x1004, 0x3000, 0x2000, 0x2004, 0x3004,
    ];
    let trap = |epc| [Do::Trap(epc, 0x5000, exception(13), Some(0))];
    for version in [DRAFT, RATIFIED] {
        let config = Config {
            triggers: true,
            ..returning(version, 4)
        };
        let sent = |path: &[Do], expected: &[&str]| {
            let lines = text(&config, &modal_trip(&config, &image, path));
            assert_eq!(lines[2..2 + expected.len()], *expected, "{lines:?}");
        };
        // The branch right after the second return is its target.
        let path = way(&[&go(&calls), &trap(0x300c), &go(&[0x5000])]);
        sent(&path, &["branches T 3004 updiscon irdepth 2"]);
        // A notification there: as the target of any jump.
        let (before, after) = calls.split_at(7);
        let notify = [Do::Signal(Signal::Notify)];
        let path = way(&[&go(before), &notify, &go(after), &go(&[0x300c, 0x3010])]);
        sent(&path, &["branches T 3004 irdepth 2"]);
        // A branch on the path needs no depth, another instruction a packet before it.
        let image = rv64(&[
            (0x1000, &[jal(1, 0x1000), jal(1, 0x1ffc), ADD]),
            (0x2000, &[ADD, RET]),
            (0x3000, &[jal(1, -0x1000), ADD, b(8), ADD]),
            (0x5000, &[ADD]),
        ]);
        let sent = |path: &[Do], expected: &[&str]| {
            let lines = text(&config, &modal_trip(&config, &image, path));
            assert_eq!(lines[2..2 + expected.len()], *expected, "{lines:?}");
        };
        let path = way(&[&go(&calls), &go(&[0x3008]), &trap(0x3010), &go(&[0x5000])]);
        sent(&path, &["branches T 3008"]);
        let path = way(&[
            &notify,
            &go(&calls[..7]),
            &go(&[0x3004]),
            &notify,
            &go(&[0x3008]),
        ]);
        sent(&path, &["branches N 3008 notify"]);
        let image = rv64(&[
            (0x1000, &[jal(1, 0x1000), jal(1, 0x1ffc), ADD]),
            (0x2000, &[ADD, RET]),
            (0x3000, &[jal(1, -0x1000), ADD, ADD, ADD]),
            (0x5000, &[ADD]),
        ]);
        let path = way(&[&go(&calls), &go(&[0x3008]), &trap(0x300c), &go(&[0x5000])]);
        let lines = text(&config, &modal_trip(&config, &image, &path));
        assert_eq!(lines[2..4], ["address 3004 irdepth 2", "address 3008"]);
    }
}

/// 6.8.3: format 0 reports returns, too: with a count of branches and the address, and
/// with an index of the cache.
#[test]
fn returns_in_format_0() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), jal(0, -4)]),
        (0x2000, &[b(8), RET, RET]),
        (0x4000, &[ADD, JR_A5]),
    ]);
    for version in VERSIONS {
        // 41 branches are predicted, and 40 returns left out; then one goes elsewhere.
        let mut pcs = [0x1000, 0x2000, 0x2004, 0x1004].repeat(40);
        pcs.extend([0x1000, 0x2000, 0x2004, 0x4000, 0x4004, 0x1000]);
        let config = Config {
            bpred_size: 4,
            branch_prediction: true,
            ..returning(version, 4)
        };
        let lines = text(&config, &modal_trip(&config, &image, &go(&pcs)));
        let counted = by_version(version, "count 41 4000 irdepth 1", "count 41 4000 irets 0");
        assert_eq!(lines[2], counted, "{lines:?}");
        // Each return goes to the same place, which is in the cache from then on.
        let config = Config {
            cache_size: 4,
            jump_target_cache: true,
            ..returning(version, 4)
        };
        let pcs = [0x1000, 0x2000, 0x2004, 0x4004].repeat(3);
        let lines = text(&config, &modal_trip(&config, &image, &go(&pcs)));
        let (first, again) = match version {
            Version::V2_05 => ("branches N 4004 irets 0", "index 2 N irets 0"),
            _ => ("branches N 4004 irdepth 1", "index 2 N irdepth 1"),
        };
        assert_eq!(lines[2], first, "{lines:?}");
        let indexed = lines.iter().filter(|line| *line == again);
        assert_eq!(indexed.count(), 2, "{lines:?}");
    }
}

/// 3.2.5: a tail call leaves the stack as it is, and the return of the function it
/// goes to is that of the first call.
#[test]
fn tail_calls() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, jal(1, 0x1ff8), ADD]),
        // Goes on in 0x4000, once as the code says and once through a register.
        (0x2000, &[ADD, jal(0, 0x1ffc)]),
        (0x3000, &[ADD, JR_A5]),
        (0x4000, &[ADD, RET]),
    ]);
    let way = go(&[
        0x1000, 0x2000, 0x2004, 0x4000, 0x4004, 0x1004, 0x1008, 0x3000, 0x3004, 0x4000, 0x4004,
        0x100c,
    ]);
    for version in VERSIONS {
        let config = returning(version, 4);
        let returned = by_version(
            version,
            "address 100c updiscon irdepth 1",
            "address 100c updiscon irets 0",
        );
        let lines = ["start 1000", "address 4000", returned, &end(&config)];
        sends_modal(&config, &image, &way, &lines);
    }
}

// Implicit exception.

/// 3.2.3: where the handler is known its address is left out; where it is not, a
/// support packet switches the mode off for a moment.
#[test]
fn handlers_are_learnt() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD]), (0x2000, &[ADD, MRET])]);
    let trap = Do::Trap(0x1004, 0x2000, exception(5), Some(0));
    let round = way(&[&go(&[0x1000]), &[trap], &go(&[0x2000, 0x2004])]);
    let path = way(&[&round, &round, &go(&[0x1000, 0x1004])]);
    for version in VERSIONS {
        let config = Config {
            implicit_exception: true,
            ..plain(version)
        };
        let lines = text(&config, &modal_trip(&config, &image, &path));
        let traps = lines.iter().filter(|line| line.starts_with("exception"));
        let traps: Vec<&str> = traps.map(String::as_str).collect();
        assert_eq!(
            traps,
            ["exception 5 to 2000 tval 0", "exception 5 to ? tval 0"]
        );
        let supports = lines.iter().filter(|line| line.starts_with("support on"));
        assert_eq!(supports.count(), 3, "{lines:?}");
        let known = Config {
            trap_vectors: TrapVectors {
                mtvec: Some(0x2000),
                ..TrapVectors::default()
            },
            ..config
        };
        let lines = text(&known, &modal_trip(&known, &image, &path));
        let traps = lines.iter().filter(|line| line.contains("to 2000"));
        assert_eq!(traps.count(), 0, "{lines:?}");
    }
}

/// 3.2.3: traps to vectors that change, and to other modes.
#[test]
fn handlers_that_move() {
    let image = rv64(&[
        (0x1000, &[ADD, ADD, ADD]),
        (0x2000, &[ADD, MRET]),
        (0x3000, &[ADD, MRET]),
    ]);
    let mut path = Vec::new();
    for handler in [0x2000, 0x2000, 0x3000, 0x3000, 0x2000] {
        let trap = Do::Trap(0x1004, handler, exception(5), Some(0));
        path.extend([Do::Mode(Mode::U)]);
        path.extend(go(&[0x1000]));
        path.extend([trap, Do::Mode(Mode::M)]);
        path.extend(go(&[handler, handler + 4]));
    }
    path.extend(go(&[0x1000]));
    for version in VERSIONS {
        let config = Config {
            implicit_exception: true,
            ..plain(version)
        };
        let lines = text(&config, &modal_trip(&config, &image, &path));
        let told = lines.iter().filter(|line| line.contains(" to ?"));
        assert_eq!(told.count(), 2, "{lines:?}");
    }
}

/// 3.2, 6.5: a support packet switches modes in mid-stream. The encoder is disabled for
/// it, and the trace starts anew; a decoder may start with either part.
#[test]
fn modes_switched_in_mid_stream() {
    let image = rv64(&[
        (0x1000, &[b(0), jal(1, 0xffc), JR_A5]),
        (0x2000, &[jal(1, 0x1000), ADD, RET]),
        (0x3000, &[ADD, RET]),
    ]);
    let mut round = vec![0x1000; 50];
    round.extend([0x1004, 0x2000, 0x3000, 0x3004, 0x2004, 0x2008, 0x1008]);
    let path = go(&round.repeat(3));
    let steps = steps(&image, &path);
    for version in VERSIONS {
        let with = |modes: u8| Config {
            f0s_width: 1,
            bpred_size: 4,
            branch_prediction: modes & 1 != 0,
            cache_size: 3,
            jump_target_cache: modes & 2 != 0,
            return_stack_size: 3,
            implicit_return: modes & 4 != 0,
            full_address: modes & 8 != 0,
            ..plain(version)
        };
        for first in 0..16 {
            let other = (first * 7 + 5) % 16;
            let parts = [first, other].map(|modes| encode(&with(modes), &image, &path));
            let twice = [&steps[..], &steps].concat();
            // Whatever the decoder was told before.
            for told in [first, other, 0, 15] {
                decodes(&with(told), &image, &twice, &parts.concat());
            }
            let [bytes, second] = parts;
            let pieces = pieces(&bytes);
            let cut = [pieces[pieces.len() / 2..].concat(), second.clone()].concat();
            let pcs = decode(&with(first), &image, &cut).pcs(&image);
            assert!(pcs.len() >= steps.len(), "{version:?} {first} {other}");
            let tail = decode(&with(other), &image, &second).pcs(&image);
            assert_eq!(pcs[pcs.len() - steps.len()..], tail);
        }
    }
}

// 2.05.

/// The standard support packet, field by field.
#[test]
fn standard_support_packet() {
    let config = Config {
        sijump: true,
        time_width: 48,
        f0s_width: 1,
        call_counter_size: 9,
        bpred_size: 7,
        branch_prediction: true,
        cache_size: 3,
        ..returning(REVIEW, 5)
    };
    let packet = Packet::Support(Support {
        ienable: true,
        encoder_mode: 0,
        qual_status: QualStatus::EndedNtr,
        ioptions: config.ioptions_field(),
        data: Some(hartrace_etrace::DataSupport {
            denable: false,
            dloss: true,
            doptions: 0b10001,
        }),
    });
    let payload = packet.write(&config.layout());
    let (fields, fault) = hartrace_etrace::explain(payload.bytes(), &config.layout());
    assert_eq!(fault, None);
    let told: Vec<(&str, u64, u32)> = fields.iter().map(|f| (f.name, f.value, f.bits)).collect();
    let expected = [
        ("format", 3, 2),
        ("subformat", 3, 2),
        ("ienable", 1, 1),
        ("encoder_mode", 0, 2),
        ("qual_status", 3, 2),
        ("sijump", 1, 1),
        ("implicit_return", 1, 1),
        ("branch_predictor", 1, 1),
        ("jump_target_cache", 0, 1),
        ("implicit_except", 0, 1),
        ("full_iaddress", 0, 1),
        ("resync_disabled", 0, 1),
        ("iret_ext", 1, 1),
        ("time_width", 2, 2),
        ("f0s_width", 1, 2),
        ("return_stack_size", 5, 3),
        ("call_counter_size", 9, 4),
        ("bpred_size", 7, 3),
        ("cache_size", 3, 3),
        ("denable", 0, 1),
        ("dloss", 1, 1),
        ("mmacas_ext", 1, 1),
        ("noaddr", 0, 1),
        ("nodata", 0, 1),
        ("full_daddress", 0, 1),
        ("full_data", 1, 1),
    ];
    assert_eq!(told, expected);
    assert_eq!(Packet::read(payload.bytes(), &config.layout()), Ok(packet));
    // "Any other implementation specific information" after it.
    let mut longer = payload.bytes().to_vec();
    longer.extend([0x5a, 0x12]);
    assert_eq!(Packet::read(&longer, &config.layout()), Ok(packet));
}

/// A decoder takes every parameter from the support packet, whatever it was given.
#[test]
fn parameters_come_from_the_support_packet() {
    // A loop of 200 branches that are predicted, a branch that shares its entry in the
    // smallest predictor only, calls for which the smallest stack is too small, and a
    // jump back.
    let image = rv64(&[
        (0x1000, &[b(0), b(8), jal(1, 0xff8), JR_A5]),
        (0x2000, &[jal(1, 0x1000), ADD, RET]),
        (0x3000, &[jal(1, 0x1000), RET]),
        (0x4000, &[RET]),
    ]);
    let mut round = vec![0x1000; 200];
    round.extend([0x1004, 0x1008, 0x2000, 0x3000, 0x4000, 0x3004]);
    round.extend([0x2004, 0x2008, 0x100c]);
    let path = go(&round.repeat(4));
    let other = |size: u8| Config {
        time_width: 16,
        f0s_width: 2,
        bpred_size: size,
        cache_size: size,
        call_counter_size: size,
        ..returning(REVIEW, size)
    };
    for (bpred_size, cache_size, return_stack_size, call_counter_size) in
        [(5, 4, 3, 0), (1, 3, 1, 2), (7, 7, 0, 5)]
    {
        let config = Config {
            time_width: 48,
            f0s_width: 1,
            bpred_size,
            branch_prediction: true,
            cache_size,
            jump_target_cache: true,
            full_address: true,
            call_counter_size,
            ..returning(REVIEW, return_stack_size)
        };
        let lines = text(&config, &modal_trip(&config, &image, &path));
        for kind in ["count", "index"] {
            let found = lines.iter().any(|line| line.starts_with(kind));
            assert!(found, "no {kind}: {lines:?}");
        }
        assert!(
            !lines.iter().any(|line| line.contains(" 2004")),
            "{lines:?}"
        );
        let bytes = encode(&config, &image, &path);
        let expected = decode(&config, &image, &bytes).text();
        for size in [1, 2, 6] {
            assert_eq!(decode(&other(size), &image, &bytes).text(), expected);
        }
    }
}

/// A damaged packet may look like a support packet with other tables, or without any.
/// When nothing fits any more, those that the decoder was given are back.
#[test]
fn a_support_packet_that_was_none() {
    let image = counting_loop();
    let config = predicting(REVIEW, 4);
    let count = |branch_count| Packet::BranchCount {
        branch_count,
        address: None,
    };
    let good = [
        start(&config, 0x1000),
        full_map(&"T".repeat(31)),
        count(100),
        address(&config, 8),
    ];
    let alone = stream(&config, &[&good[..], &[end_packet(&config)]].concat());
    let expected = decode(&config, &image, &alone).pcs(&image);
    assert_eq!(expected.len(), 1 + 31 + 132 + 1);
    // Another predictor; a cache without a size; a trace without resyncs that ends; a
    // loss and no predictor, which only what follows the next start contradicts.
    for (ioptions, qual_status) in [
        (1 << 2 | 1 << 19, QualStatus::NoChange),
        (1 << 3, QualStatus::EndedNtr),
        (1 << 6, QualStatus::EndedRep),
        (1 << 5, QualStatus::TraceLost),
    ] {
        let support = Packet::Support(Support {
            ienable: true,
            qual_status,
            ioptions,
            ..Support::default()
        });
        let mut packets = good[..2].to_vec();
        packets.extend([support, address(&config, 0x40), address(&config, 0x40)]);
        packets.extend(good);
        packets.extend(good);
        packets.push(end_packet(&config));
        let events = decode(&config, &image, &stream(&config, &packets));
        assert!(!events.gaps().is_empty(), "{:?}", events.text());
        let pcs = events.pcs(&image);
        assert!(pcs.ends_with(&expected), "{:?}", events.text());
    }
}

/// resync_disabled: synchronisation packets leave predictor, cache and return stack
/// as they are. A decoder that starts at one of them waits for the next start.
#[test]
fn resync_disabled_keeps_the_tables() {
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), ADD, ADD, JR_A5]),
        (0x2000, &[b(0), ADD, RET]),
        (0x3000, &[ADD, MRET]),
    ]);
    let config = Config {
        resync: Resync::default(),
        bpred_size: 5,
        branch_prediction: true,
        cache_size: 4,
        jump_target_cache: true,
        f0s_width: 1,
        ..returning(REVIEW, 3)
    };
    let mut pcs = vec![0x1000];
    pcs.resize(60, 0x2000);
    let trap = Do::Trap(0x2000, 0x3000, interrupt(7), None);
    let rest = [
        vec![0x3000, 0x3004],
        vec![0x2000; 60],
        vec![0x2004, 0x2008, 0x1004, 0x1008],
    ];
    let round = way(&[&go(&pcs), &[trap], &go(&rest.concat()), &go(&[0x100c])]);
    let path = way(&[&round, &round, &go(&[0x1000])]);
    let packets = modal_trip(&config, &image, &path);
    let lines = text(&config, &packets);
    assert!(
        lines.iter().any(|line| line.starts_with("count")),
        "{lines:?}"
    );
    assert!(!lines.iter().any(|line| line.contains("1004")), "{lines:?}");
    // From the handler on nothing can be decoded.
    let handler = lines.iter().position(|line| line.starts_with("interrupt"));
    let tail = stream(&config, &packets[handler.unwrap()..]);
    let events = decode(&config, &image, &tail);
    assert!(events.pcs(&image).is_empty(), "{:?}", events.text());
    assert_eq!(events.codes(), [Fault::NotSynchronised.code()]);
    // After a loss, the first start that the encoder announces.
    let lost = Packet::Support(Support {
        ienable: true,
        qual_status: QualStatus::TraceLost,
        ioptions: config.ioptions_field(),
        ..Support::default()
    });
    let again = [&[packets[handler.unwrap()], lost][..], &packets[1..]].concat();
    let events = decode(&config, &image, &stream(&config, &again));
    assert_eq!(events.pcs(&image).len(), steps(&image, &path).len() - 2);
}
