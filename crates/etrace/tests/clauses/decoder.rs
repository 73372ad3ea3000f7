//! Clauses about what packets say: chapter 11 step by step, and what a trace
//! can have wrong with it. Packets in, events out.

use std::ops::ControlFlow;

use hartrace_etrace::{
    BranchMap, Config, Context, DataConfig, DataSupport, Decoder, Encapsulation, Fault, Form,
    Ioption, Ioptions, Kind, Packer, Packet, QualStatus, Report, ReturnRule, Start, Support,
    Trap as TrapPacket,
};
use hartrace_flow::{Consumer, Event, HartId, Image, Mode, SpaceId};
use hartrace_isa::{Isa, Xlen};

use crate::common::asm::*;
use crate::common::*;

const NTR: QualStatus = QualStatus::EndedNtr;
const REP: QualStatus = QualStatus::EndedRep;

/// These packets do not fit the code: one gap with this fault, and all is well
/// from the start behind it.
#[track_caller]
fn refused(config: &Config, image: &Image, packets: &[Packet], fault: Fault) {
    let good = [start(config, GOOD), address(config, 4), support(REP)];
    let packets = [packets, &good].concat();
    let lines = decode(config, image, &stream(config, &packets)).text();
    let gaps: Vec<_> = lines.iter().filter(|l| l.starts_with("gap")).collect();
    assert_eq!(gaps, [&format!("gap {}", fault.code())], "{lines:?}");
    let end = [
        format!("{GOOD:x}+1>{:x}", GOOD + 4),
        format!("{:x}+1>{:x}", GOOD + 4, GOOD + 8),
        "off".into(),
    ];
    assert!(lines.ends_with(&end), "{lines:?}");
}

/// Where there is code that nobody else uses.
const GOOD: u64 = 0x7_0000;

fn with_good(parts: &[(u64, &[u32])]) -> Image {
    rv64(&[parts, &[(GOOD, &[ADD, ADD, ADD])]].concat())
}

/// "Expecting trace to start with format 3."
#[test]
fn trace_starts_with_format_3() {
    let image = with_good(&[(0x1000, &[ADD, ADD])]);
    for config in both() {
        let packets = [support(QualStatus::NoChange), address(&config, 4)];
        refused(&config, &image, &packets, Fault::NotSynchronised);
        let packets = [full_map(&"T".repeat(31)), branches(&config, "T", 4)];
        refused(&config, &image, &packets, Fault::NotSynchronised);
        // Again after the end of a trace.
        let packets = [start(&config, 0x1000), support(NTR), address(&config, 4)];
        refused(&config, &image, &packets, Fault::NotSynchronised);
    }
}

/// Format 3 subformat 0 while the trace runs is walked to, not jumped to.
#[test]
fn synchronisation_is_walked_to() {
    let image = rv64(&[(0x1000, &[ADD, ADD, jal(0, 8), ADD, ADD, JR_A5])]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            start(&config, 0x1010),
            start(&config, 0x1000),
            support(NTR),
        ];
        let lines = ["1000+3>1010", "1010+2>1000", "1000+1>1004", "off"];
        tells(&config, &image, &packets, &lines);
    }
}

/// Its `branch` adds one outcome behind those there are; behind a trap and at
/// a start it is the only one.
#[test]
fn branch_of_format_3() {
    let image = with_good(&[(0x1000, &[b(8), ADD, b(8), ADD, ADD])]);
    for config in both() {
        let packets = [
            start_taken(&config, 0x1000),
            start_taken(&config, 0x1008),
            start(&config, 0x1010),
            support(NTR),
        ];
        let lines = ["1000+1>1008", "1008+1>1010", "1010+1>1014", "off"];
        tells(&config, &image, &packets, &lines);
        // A trap discards what was left, here the outcome of the branch that
        // faulted, and begins with its own.
        let packets = [
            start_taken(&config, 0x1000),
            Packet::Trap(hartrace_etrace::Trap {
                branch: false,
                ..trap(&config, 13, true, 0x1008)
            }),
            start(&config, 0x1010),
            support(NTR),
        ];
        let lines = [
            "1000+1>1008",
            "exception 13 at 1008 to 1008 tval 0",
            "1008+1>1010",
            "1010+1>1014",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
        // A start after an end knows nothing of before.
        let packets = [
            start_taken(&config, 0x1000),
            support(NTR),
            start_taken(&config, 0x1008),
            address(&config, 8),
            support(REP),
        ];
        let lines = [
            "1000+1>1008",
            "off",
            "on",
            "1008+1>1010",
            "1010+1>1014",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// 31 outcomes and the one of the instruction told last: 32.
#[test]
fn one_branch_may_be_left_over() {
    let image = rv64(&[(0x1000, &[b(0), ADD, ADD])]);
    for config in both() {
        let packets = [
            start_taken(&config, 0x1000),
            full_map(&"T".repeat(31)),
            full_map(&("T".repeat(30) + "N")),
            address(&config, 4),
            support(REP),
        ];
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.codes(), [] as [&str; 0]);
        let mut pcs = vec![0x1000; 63];
        pcs.push(0x1004);
        assert_eq!(events.pcs(&image), pcs);
    }
}

/// A full map ends at its last branch: what comes behind is not known to have
/// retired.
#[test]
fn full_map_stops_at_its_last_branch() {
    let image = rv64(&[(0x1000, &[b(8), ADD, b(-8), ADD]), (0x2000, &[ADD])]);
    for config in both() {
        let outcomes = "T".repeat(31);
        let mut told = vec![start_taken(&config, 0x1000), full_map(&outcomes)];
        let config = &config;
        // 32 branches; the last one is that at 1008.
        told.push(Packet::Trap(trap(config, 13, true, 0x2000)));
        let events = decode(config, &image, &stream(config, &told));
        assert_eq!(events.codes(), [] as [&str; 0]);
        let mut pcs = [0x1000, 0x1008].repeat(16);
        pcs.push(0x2000);
        assert_eq!(events.pcs(&image), pcs);
        assert_eq!(events.traps()[0].epc, Some(0x1000), "nobody told of more");
    }
}

/// "Unexpected uninferable discontinuity": none before the last branch.
#[test]
fn no_jump_inside_a_full_map() {
    let image = with_good(&[(0x1000, &[b(8), ADD, JR_A5])]);
    for config in both() {
        let packets = [start_taken(&config, 0x1000), full_map(&"T".repeat(31))];
        refused(&config, &image, &packets, Fault::UnreportedJump);
    }
}

/// "Unprocessed branches": more outcomes than branches up to the target.
#[test]
fn unprocessed_branches() {
    let image = with_good(&[(0x1000, &[ADD, b(8), JR_A5, JR_A5]), (0x2000, &[ADD, b(8)])]);
    for config in both() {
        let first = start(&config, 0x1000);
        let told = |outcomes, to: i64| {
            let packet = branches(&config, outcomes, to - 0x1000);
            [first, packet, address(&config, 0)]
        };
        refused(
            &config,
            &image,
            &told("NT", 0x2000),
            Fault::LeftoverOutcomes,
        );
        // One is left over for a target that is a branch, and must be.
        refused(&config, &image, &told("N", 0x2004), Fault::MissingOutcome);
        let packets = [first, branches(&config, "NT", 0x1004), support(NTR)];
        let lines = ["1000+2>1008", "1008+1>2004", "2004+1>200c", "off"];
        tells(&config, &image, &packets, &lines);
    }
}

/// "Cannot resolve branch": fewer outcomes than branches.
#[test]
fn unresolved_branches() {
    let image = with_good(&[(0x1000, &[ADD, b(8), b(8), JR_A5]), (0x2000, &[ADD])]);
    for config in both() {
        let first = start(&config, 0x1000);
        let packets = [first, branches(&config, "N", 0x1000), address(&config, 0)];
        refused(&config, &image, &packets, Fault::MissingOutcome);
    }
}

/// Addresses are differences or not as the last support packet says.
#[test]
fn full_address_by_support_packet() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x2000, &[ADD, JR_A5])]);
    for config in both() {
        let mode = |on: bool| {
            Packet::Support(Support {
                ienable: true,
                ioptions: u32::from(on) << 2,
                ..Support::default()
            })
        };
        let packets = [
            mode(true),
            start(&config, 0x1000),
            address(&config, 0x2000),
            address(&config, 0x1000),
            // Still the base of differences.
            mode(false),
            address(&config, 0x1000),
            support(NTR),
        ];
        let lines = [
            "1000+2>2000",
            "2000+2>1000",
            "1000+2>2000",
            "2000+1>2004",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// An address on the way, with no jump before it, is only the place if a
/// format 3 or the end follows.
#[test]
fn inferred_addresses_wait() {
    let image = rv64(&[(0x1000, &[ADD, ADD, b(8), ADD, JR_A5]), (0x2000, &[ADD])]);
    for config in both() {
        let first = [start(&config, 0x1000), branches(&config, "N", 12)];
        let after = |packets: &[Packet]| [&first, packets].concat();
        // The next time the hart comes by.
        let packets = after(&[Packet::Trap(trap(&config, 13, true, 0x2000))]);
        let lines = [
            "1000+3>100c",
            "100c+1>1010",
            "exception 13 at 1010 to 2000 tval 0",
            "2000+1>2004",
        ];
        tells(&config, &image, &packets, &lines);
        // A jump there.
        let packets = after(&[address(&config, -12), support(NTR)]);
        let lines = [
            "1000+3>100c",
            "100c+2>100c",
            "100c+2>1000",
            "1000+1>1004",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
        // So does a full map. (Chapter 11 calls the jump an error here, which
        // it is not: it is before the map.)
        let packets = after(&[address(&config, -12 + 8), support(NTR)]);
        let lines = decode(&config, &image, &stream(&config, &packets)).text();
        assert!(lines.iter().any(|l| l.starts_with("gap")), "{lines:?}");
    }
}

/// A full map behind an address that is also a jump's target.
#[test]
fn full_map_behind_an_inferred_address() {
    let image = rv64(&[(0x1000, &[ADD, ADD, jal(0, 8), ADD, JR_A5, b(0)])]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            branches(&config, "T", 0x10),
            full_map(&"T".repeat(31)),
            support(NTR),
        ];
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.codes(), [] as [&str; 0], "{:?}", events.text());
        let mut pcs = vec![0x1000, 0x1004, 0x1008, 0x1010];
        pcs.extend([0x1004, 0x1008, 0x1010]);
        pcs.extend([0x1014; 32]);
        assert_eq!(events.pcs(&image), pcs);
    }
}

/// A notification is where the hart was the first time it came by.
#[test]
fn notifications() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, ADD, JR_A5])]);
    for config in both() {
        let told = Packet::Branches {
            map: map("N"),
            address: Some(Report {
                notify: true,
                ..by(&config, 12)
            }),
        };
        let packets = [
            start(&config, 0x1000),
            told,
            notify(&config, 4),
            address(&config, -0x10),
            support(NTR),
        ];
        let lines = [
            "1000+2>1008",
            "1008+1>100c",
            "notify",
            "100c+1>1010",
            "notify",
            "1010+1>1000",
            "1000+1>1004",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// `updiscon` without a jump on the way.
#[test]
fn updiscon_takes_a_jump() {
    let image = with_good(&[(0x1000, &[ADD, ADD, ADD, b(0)])]);
    for config in both() {
        let packets = [start(&config, 0x1000), updiscon(&config, 4)];
        refused(&config, &image, &packets, Fault::MissingOutcome);
        let endless = with_good(&[(0x1000, &[ADD, jal(0, -4)])]);
        refused(&config, &endless, &packets, Fault::NotAJump);
        // The address is where the jump went, also if the path to the jump
        // passes it.
        let jumps = rv64(&[(0x1000, &[ADD, ADD, JR_A5]), (0x2000, &[ADD, ADD])]);
        for (to, by) in [(0x2000, 0x1000), (0x1004, 4)] {
            let trap = Packet::Trap(trap(&config, 13, true, 0x2004));
            let packets = [
                start(&config, 0x1000),
                updiscon(&config, by),
                trap,
                support(NTR),
            ];
            let events = decode(&config, &jumps, &stream(&config, &packets));
            assert_eq!(events.gaps(), []);
            let pcs = [0x1000, 0x1004, 0x1008, to, 0x2004];
            assert_eq!(events.pcs(&jumps), pcs);
            assert_eq!(events.traps()[0].epc, Some(to + 4));
        }
    }
}

/// Direct jumps and calls, compressed or not, and jalr through x0.
#[test]
fn inferable_jumps() {
    let c_j = 0xa011; // c.j by 4
    let image = rv64(&[
        (
            0x1000,
            &[jal(0, 8), ADD, jal(1, 8), ADD, jal(7, 8), ADD, c_j, C_ADD],
        ),
        (0x101c, &[jalr(0, 0, 0x200)]),
        (0x200, &[jalr(1, 0, 0x300)]),
        (0x300, &[ADD, ADD]),
    ]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            address(&config, 0x304 - 0x1000),
            support(REP),
        ];
        let events = decode(&config, &image, &stream(&config, &packets));
        let pcs = [0x1000, 0x1008, 0x1010, 0x1018, 0x101c, 0x200, 0x300, 0x304];
        assert_eq!(events.pcs(&image), pcs, "{:?}", events.text());
    }
    // c.jal is there on RV32 only.
    let c_jal = 0x2011; // by 4
    let rv32 = image_of(Isa::RV32GC, &[(0x1000, &[c_jal, C_ADD, ADD, ADD])]);
    let config = Config::new(RATIFIED, Xlen::Rv32);
    let packets = [start(&config, 0x1000), address(&config, 8), support(REP)];
    tells(
        &config,
        &rv32,
        &packets,
        &["1000+1>1004", "1004+1>1008", "1008+1>100c", "off"],
    );
}

fn image_of(isa: Isa, parts: &[(u64, &[u32])]) -> Image {
    image(isa, parts)
}

/// Every kind of branch takes an outcome.
#[test]
fn every_branch_takes_an_outcome() {
    // beq, bne, blt, bge, bltu, bgeu, by 8; c.beqz, c.bnez a0, by 4.
    let mut insns: Vec<u32> = [0, 1, 4, 5, 6, 7].map(|f| b(8) | f << 12).to_vec();
    insns.extend([0xc111, 0xe111, ADD, ADD]);
    let image = rv64(&[(0x1000, &insns)]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            branches(&config, "NNNNNNN", 0x20),
            support(REP),
        ];
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.codes(), [] as [&str; 0]);
        assert_eq!(events.pcs(&image).len(), 10);
    }
}

/// The instructions that are uninferable jumps, and returns from traps.
#[test]
fn uninferable_jumps() {
    const URET: u32 = 0x0020_0073;
    const DRET: u32 = 0x7b20_0073;
    for jump in [
        JR_A5,
        jalr(1, 15, 4),
        jalr(0, 1, 0),
        jalr(1, 5, 0),
        jalr(7, 6, 0),
        C_JR_A5,
        C_JALR_A5,
        C_RET,
        URET,
        SRET,
        MRET,
        DRET,
    ] {
        let image = rv64(&[(0x1000, &[ADD, jump, ADD, ADD]), (0x2000, &[ADD, ADD])]);
        for config in both() {
            let packets = [
                start(&config, 0x1000),
                address(&config, 0x1000),
                support(NTR),
            ];
            let lines = ["1000+2>2000", "2000+1>2004", "off"];
            tells(&config, &image, &packets, &lines);
        }
    }
}

/// lui, c.lui or auipc and a jump through the same register: the target
/// follows, if the mode is on and nothing came between.
#[test]
fn sequential_jumps() {
    let image = with_good(&[
        (0x1000, &[lui_a5(0x3000), jalr(0, 15, 4), ADD]),
        (0x3004, &[auipc_a5(0x1000), JR_A5]),
        // c.lui a5, 1; c.jr a5.
        (0x4004, &[0x6785, C_JR_A5]),
    ]);
    for version in VERSIONS {
        let config = Config {
            sijump: true,
            ..plain(version)
        };
        let packets = [
            start(&config, 0x1000),
            address(&config, 0x3006),
            support(REP),
        ];
        let lines = [
            "1000+2>3004",
            "3004+2>4004",
            "4004+1>4006",
            "4006+1>1000",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
        // In other modes these are jumps like all others.
        let off = plain(version);
        let packets = [
            start(&off, 0x1000),
            address(&off, 0x2004),
            address(&off, 0x1000),
            support(NTR),
        ];
        let lines = ["1000+2>3004", "3004+2>4004", "4004+1>4006", "off"];
        tells(&off, &image, &packets, &lines);
        // At a synchronisation the instruction before is not known.
        let packets = [
            start(&config, 0x1004),
            address(&config, 0x2000),
            support(NTR),
        ];
        tells(
            &config,
            &image,
            &packets,
            &["1004+1>3004", "3004+1>3008", "off"],
        );
        // Another register.
        let other = with_good(&[(0x1000, &[lui_a5(0x3000), jalr(0, 14, 4)])]);
        let packets = [start(&config, 0x1000), full_map(&"T".repeat(31))];
        refused(&config, &other, &packets, Fault::UnreportedJump);
    }
}

/// 2.0: an address on the way does not do if the privilege is another; a return
/// from a trap must lead there.
#[test]
fn privilege_of_a_synchronisation() {
    let image = with_good(&[
        (0x1000, &[ADD, ADD, MRET]),
        (0x2000, &[ADD, JR_A5]),
        (0x3000, &[ADD, ADD]),
    ]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            start_in(&config, 0x1004, Mode::U),
            support(NTR),
        ];
        tells(
            &config,
            &image,
            &packets,
            &["1000+3>1004", "in U", "1004+1>1008", "off"],
        );
        // By the first return on the way, whatever comes before it.
        let packets = [start(&config, 0x2000), start_in(&config, 0x3000, Mode::U)];
        let back = [Packet::Trap(trap(&config, 8, true, GOOD))];
        let packets = [&packets[..], &back].concat();
        let lines = decode(&config, &image, &stream(&config, &packets)).text();
        let code = Fault::WrongPrivilege.code();
        assert!(lines.contains(&format!("gap {code}")), "{lines:?}");
    }
}

/// 2.0, exception_address: the told EPC behind a jump; an ecall's own; where
/// the hart would have gone otherwise, with the outcome of a branch.
#[test]
fn exception_addresses() {
    let image = rv64(&[
        (0x1000, &[ADD, JR_A5, ADD]),
        (0x1100, &[ADD, ECALL, EBREAK, C_EBREAK]),
        (0x1200, &[b(0x20), jal(0, 0x30)]),
        (0x3000, &[ADD]),
    ]);
    let config = plain(RATIFIED);
    let epc = |first: Packet, packets: &[Packet]| {
        let packets = [&[first], packets].concat();
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.codes(), [] as [&str; 0]);
        events.traps().last().unwrap().epc
    };
    let to = Packet::Trap(trap(&config, 13, true, 0x3000));
    let at = |epc| Packet::Trap(trap(&config, 13, false, epc));
    let first = start(&config, 0x1000);
    assert_eq!(epc(first, &[to]), Some(0x1004));
    assert_eq!(epc(first, &[address(&config, 4), to]), None);
    let told = [address(&config, 4), at(0x9000), start(&config, 0x3000)];
    assert_eq!(epc(first, &told), Some(0x9000));
    // Elsewhere the address of a packet with thaddr = 0 says nothing.
    assert_eq!(epc(first, &[at(0x9000), to]), None, "the second trap");
    let lines = events(
        &config,
        &image,
        &[first, at(0x9000), start(&config, 0x3000)],
    );
    assert!(
        lines.contains(&"exception 13 at 1004 to 3000 tval 0".to_owned()),
        "{lines:?}"
    );
    // ecall, ebreak and c.ebreak that count as retired.
    for (at, by) in [(0x1104, 4), (0x1108, 8), (0x110c, 12)] {
        let first = if at == 0x1104 { 0x1100 } else { at };
        let by = by - (first as i64 - 0x1100);
        let named = match by {
            0 => vec![to],
            by => vec![address(&config, by), to],
        };
        assert_eq!(epc(start(&config, first), &named), Some(at));
    }
    assert_eq!(epc(start_taken(&config, 0x1200), &[to]), Some(0x1220));
    assert_eq!(epc(start(&config, 0x1200), &[to]), Some(0x1204));
    assert_eq!(epc(start(&config, 0x1204), &[to]), Some(0x1234));
}

/// Interrupts have no tval in 2.0; where they were taken follows.
#[test]
fn interrupts() {
    let image = rv64(&[(0x1000, &[ADD, ADD, JR_A5]), (0x3000, &[ADD])]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            Packet::Trap(irq(&config, 7, true, 0x3000)),
        ];
        let tval = if config.version == DRAFT { "0" } else { "?" };
        let lines = [
            "1000+1>1004",
            "1004+1>1008",
            &format!("interrupt 7 at 1008 to 3000 tval {tval}"),
            "3000+1>3004",
        ];
        tells(&config, &image, &packets, &lines);
    }
    // Behind a jump nobody knows: the address of an interrupt is undefined.
    let config = plain(RATIFIED);
    let packets = [
        start(&config, 0x1008),
        Packet::Trap(irq(&config, 7, false, 0x5a5a)),
        start(&config, 0x3000),
    ];
    let lines = [
        "1008+1>100c",
        "interrupt 7 at ? to 3000 tval ?",
        "3000+1>3004",
    ];
    tells(&config, &image, &packets, &lines);
}

/// Traps in a row: the ones with thaddr = 0 have no handler that retired.
#[test]
fn traps_in_a_row() {
    let image = rv64(&[(0x1000, &[ADD, ADD]), (0x3000, &[ADD]), (0x4000, &[ADD])]);
    let config = plain(RATIFIED);
    let packets = [
        start(&config, 0x1000),
        Packet::Trap(trap(&config, 13, false, 0)),
        Packet::Trap(irq(&config, 7, false, 0)),
        Packet::Trap(trap(&config, 5, true, 0x4000)),
    ];
    let lines = [
        "1000+1>1004",
        "exception 13 at 1004 to ? tval 0",
        "interrupt 7 at ? to ? tval ?",
        "exception 5 at ? to 4000 tval 0",
        "4000+1>4004",
    ];
    tells(&config, &image, &packets, &lines);
    // The last is told by thaddr = 0 too: its handler is a start.
    let packets = [
        Packet::Trap(trap(&config, 12, false, 0x1004)),
        Packet::Trap(trap(&config, 5, false, 0x3000)),
        start(&config, 0x4000),
        support(NTR),
    ];
    let lines = [
        "exception 12 at 1004 to ? tval 0",
        "exception 5 at ? to 4000 tval 0",
        "4000+1>4004",
        "off",
    ];
    tells(&config, &image, &packets, &lines);
}

/// The end of the trace at a trap.
#[test]
fn ends_at_a_trap() {
    let image = rv64(&[(0x1000, &[ADD, ADD])]);
    let config = plain(RATIFIED);
    let packets = [
        start(&config, 0x1000),
        Packet::Trap(trap(&config, 13, false, 0)),
        support(REP),
    ];
    let lines = ["1000+1>1004", "exception 13 at 1004 to ? tval 0", "off"];
    tells(&config, &image, &packets, &lines);
}

/// Support packets: what they change, and when a trace ends by them.
#[test]
fn support_packets() {
    let image = rv64(&[(0x1000, &[ADD, ADD, JR_A5]), (0x2000, &[ADD, ADD])]);
    for config in both() {
        let no_change = support(QualStatus::NoChange);
        // In between it changes nothing, and does not decide anything.
        let packets = [
            no_change,
            start(&config, 0x1000),
            no_change,
            address(&config, 0x1000),
            no_change,
            address(&config, 4),
            no_change,
            support(REP),
        ];
        let lines = ["1000+3>2000", "2000+1>2004", "2004+1>2008", "off"];
        tells(&config, &image, &packets, &lines);
        // Data trace is none of its business.
        let data = Packet::Support(Support {
            ienable: true,
            data: Some(DataSupport {
                denable: true,
                dloss: true,
                doptions: 9,
            }),
            ..Support::default()
        });
        let packets = [data, start(&config, 0x1000), support(NTR)];
        if config.version == RATIFIED {
            tells(&config, &image, &packets, &["1000+1>1004", "off"]);
        }
    }
}

/// trace_lost: a gap up to the next full address.
#[test]
fn trace_lost() {
    let image = with_good(&[(0x1000, &[ADD, ADD, ADD, JR_A5])]);
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            support(QualStatus::TraceLost),
        ];
        refused(&config, &image, &packets, Fault::TraceLost);
        let lines = decode(&config, &image, &stream(&config, &packets)).text();
        // What came before is certain.
        let expected = ["1000+1>1004", "1004+1>1008", "gap ET0401"];
        assert_eq!(lines[2..], expected);
    }
}

/// Context packets: at the earliest, without an address.
#[test]
fn context_packets() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD])]);
    for version in VERSIONS {
        let config = Config {
            context_width: 16,
            ..plain(version)
        };
        let packets = [
            start(&config, 0x1000),
            Packet::Context(Context {
                privilege: 3,
                context: 0x1234,
                ..Context::default()
            }),
            address(&config, 8),
            support(REP),
        ];
        let lines = ["in M context 1234", "1000+2>1008", "1008+1>100c", "off"];
        tells(&config, &image, &packets, &lines);
    }
}

/// Code may differ by context.
#[test]
fn contexts_choose_the_code() {
    let mut image = rv64(&[(0x1000, &[ADD, ADD, ADD])]);
    let other = image.add_space();
    image.assign(hartrace_flow::Context(7), other);
    image.add_raw(other, 0x1000, &code(&[C_ADD; 6]), Isa::RV64GC);
    for version in VERSIONS {
        let config = Config {
            context_width: 8,
            ..plain(version)
        };
        let at = |address: u64, context| {
            Packet::Start(Start {
                branch: true,
                privilege: 3,
                context,
                address: address >> 1,
                ..Start::default()
            })
        };
        let packets = [
            at(0x1000, 0),
            at(0x1004, 7),
            address(&config, 4),
            support(REP),
        ];
        let lines = [
            "1000+1>1004",
            "in M context 7",
            "1004+2>1008",
            "1008+1>100a",
            "off",
        ];
        let told = decode(&config, &image, &stream(&config, &packets)).text();
        assert_eq!(told[2..], lines);
    }
}

/// Times go on when a narrow field wraps.
#[test]
fn times() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, ADD])]);
    let config = Config {
        time_width: 8,
        ..plain(RATIFIED)
    };
    let at = |address: u64, time| {
        Packet::Start(Start {
            branch: true,
            privilege: 3,
            time,
            address: address >> 1,
            ..Start::default()
        })
    };
    let packets = [
        at(0x1000, 0xf0),
        at(0x1004, 0x10),
        at(0x1008, 0x20),
        support(NTR),
    ];
    let lines = [
        "time f0",
        "1000+1>1004",
        "time 110",
        "1004+1>1008",
        "time 120",
        "1008+1>100c",
        "off",
    ];
    tells(&config, &image, &packets, &lines);
}

/// Data packets in between say nothing about the way.
#[test]
fn data_packets_are_skipped() {
    let image = rv64(&[(0x1000, &[ADD, ADD])]);
    let config = plain(RATIFIED);
    let mut bytes = stream(&config, &[start(&config, 0x1000)]);
    let data = address(&config, 0x55aa).write(&config.layout());
    data.write_framed(Kind::Data, &mut bytes);
    bytes.extend(stream(&config, &[address(&config, 4), support(REP)]));
    let lines = decode(&config, &image, &bytes).text();
    assert_eq!(lines[2..], ["1000+1>1004", "1004+1>1008", "off"]);
}

/// Modes that are not understood are not decoded by guess.
#[test]
fn modes_without_their_tables() {
    let image = with_good(&[(0x1000, &[ADD, ADD])]);
    for config in both() {
        for (bit, option) in Ioptions::REFERENCE.order().iter().enumerate() {
            let on = Packet::Support(Support {
                ienable: true,
                ioptions: 1 << bit,
                ..Support::default()
            });
            let packets = [on, start(&config, 0x1000), address(&config, 4)];
            if matches!(
                option,
                Some(Ioption::FullAddress | Ioption::ImplicitException)
            ) {
                continue;
            }
            let off = support(QualStatus::NoChange);
            let packets = [&packets[..], &[off]].concat();
            refused(&config, &image, &packets, Fault::UnknownOption);
        }
    }
}

/// What makes each fault come, as packets or bytes for a small program.
fn makes(fault: Fault) -> (Config, Image, Vec<u8>) {
    let config = plain(RATIFIED);
    let image = rv64(&[
        (0x1000, &[ADD, ADD, b(8), JR_A5, ECALL, ADD, ADD]),
        (0x2000, &[ADD, jal(0, -4)]),
        (0x3000, &[ADD, MRET, ADD]),
    ]);
    let first = start(&config, 0x1000);
    let f0 = Config {
        bpred_size: 4,
        ..config.clone()
    };
    let c = &config;
    let packets = match fault {
        Fault::BadHeader => return (config, image, vec![0xff, 0x01, 0x02]),
        Fault::Truncated => return (config, image, vec![0x47, 0x73]),
        Fault::EmptyPacket => {
            // No header says so; only a payload without framing can be empty.
            assert_eq!(Packet::read(&[], &c.layout()), Err(fault));
            return (config, image, vec![]);
        }
        Fault::ExtraBits => {
            let mut bytes = stream(c, &[first]);
            bytes.extend([0x46, 0x01, 0xff, 0xff, 0xff, 0xff, 0x5a]);
            return (config, image, bytes);
        }
        Fault::UnknownBranchFmt => {
            let bytes = vec![0x45, 0x00, 0x00, 0x00, 0x00, 0x04];
            return (f0, image, bytes);
        }
        Fault::UnknownSubformat => return (config, image, vec![0x41, 0x00]),
        Fault::NotSynchronised => vec![address(c, 4)],
        Fault::UnknownMode => vec![Packet::Support(Support {
            encoder_mode: 1,
            ..Support::default()
        })],
        Fault::UnknownOption => vec![Packet::Support(Support {
            ienable: true,
            ioptions: 1,
            ..Support::default()
        })],
        Fault::UnknownPrivilege => vec![Packet::Start(Start {
            branch: true,
            privilege: 2,
            address: 0x800,
            ..Start::default()
        })],
        Fault::NoCode => vec![start(c, 0x1014), address(c, 0x100), support(REP)],
        Fault::MissingOutcome => vec![first, address(c, 12), support(NTR)],
        Fault::LeftoverOutcomes => vec![first, branches(c, "NN", 0), support(NTR)],
        Fault::UnreportedJump => vec![first, full_map(&"N".repeat(31))],
        Fault::UnreportedTrap => vec![start(c, 0x1010), address(c, 4), support(REP)],
        Fault::EndlessLoop => vec![start(c, 0x2000), address(c, 0x100), support(REP)],
        Fault::WrongPrivilege => vec![start(c, 0x100c), start_in(c, 0x1004, Mode::U)],
        Fault::NotAJump => vec![start(c, 0x2000), updiscon(c, 4)],
        Fault::TraceLost => vec![first, support(QualStatus::TraceLost)],
        Fault::UnexpectedData => {
            let mut bytes = stream(c, &[support_data(false), first]);
            bytes.extend([0x61, 0x02]);
            return (config, image, bytes);
        }
        Fault::DataNotDecoded => vec![support_data(true), first, support(NTR)],
        Fault::NoEnd => vec![first],
        Fault::LargeBranchCount | Fault::EmptyEntry => {
            let config = Config {
                bpred_size: 4,
                cache_size: 4,
                f0s_width: 1,
                branch_prediction: true,
                jump_target_cache: true,
                ..config
            };
            let packet = match fault {
                Fault::EmptyEntry => Packet::JumpTarget {
                    index: 3,
                    map: map(""),
                    irreport: false,
                    irdepth: 0,
                },
                _ => Packet::BranchCount {
                    branch_count: config.max_branch_count + 1,
                    address: None,
                },
            };
            let bytes = stream(&config, &[first, packet]);
            return (config, image, bytes);
        }
        Fault::UnknownHandler => {
            let config = Config {
                implicit_exception: true,
                ..config
            };
            let implied = Packet::Trap(TrapPacket {
                address: None,
                ..trap(&config, 2, true, 0)
            });
            let bytes = stream(&config, &[first, address(&config, 4), implied]);
            return (config, image, bytes);
        }
        Fault::AmbiguousReturn => return ambiguous(),
        _ => return bad_data(fault, image),
    };
    let bytes = stream(c, &packets);
    (config, image, bytes)
}

/// A data packet that is wrong in this way.
fn bad_data(fault: Fault, image: Image) -> (Config, Image, Vec<u8>) {
    let no_address = fault == Fault::UnknownDiff;
    let data = DataConfig {
        no_address,
        data_width: 32,
        ..DataConfig::new(RATIFIED, Xlen::Rv64)
    };
    let config = Config {
        data: Some(data),
        doptions_width: None,
        ..plain(RATIFIED)
    };
    let payload = match fault {
        Fault::UnknownDataFormat => 0b100,
        Fault::UnknownDataSize => 0b11_000,
        Fault::UnknownDiff => 0b100_0000,
        Fault::UnknownSubtype => 0b11_101,
        Fault::NoDataBase => 0b010_0000,
        // What the encoder says, and what instructions say.
        _ => 0,
    };
    let lost = Packet::Support(Support {
        ienable: true,
        data: Some(DataSupport {
            dloss: true,
            ..DataSupport::default()
        }),
        ..Support::default()
    });
    let end = support(NTR);
    let mut bytes = stream(&config, &[start(&config, 0x1000)]);
    match fault {
        Fault::DataLost => {
            let config = Config {
                doptions_width: Some(4),
                ..config
            };
            bytes.extend(stream(&config, &[lost, end]));
            return (config, image, bytes);
        }
        Fault::DataMismatch => {}
        Fault::MissingPackets => {
            let config = Config {
                encapsulation: Encapsulation::new(Form::Esp32),
                data: None,
                ..config
            };
            let mut packer = Packer::new(config.encapsulation, 0);
            bytes.clear();
            for (n, packet) in [start(&config, 0x1000), end, start(&config, 0x1000), end]
                .iter()
                .enumerate()
            {
                let payload = packet.write(&config.layout());
                let packed = packer.pack(Kind::Instruction, payload.bytes(), 0);
                if n != 1 {
                    bytes.extend_from_slice(packed.bytes());
                }
            }
            return (config, image, bytes);
        }
        _ => bytes.extend([0x62, payload, 0]),
    }
    bytes.extend(stream(&config, &[end]));
    (config, image, bytes)
}

/// Two calls of the same function, and nothing that says in which the trace ends.
fn ambiguous() -> (Config, Image, Vec<u8>) {
    let config = Config {
        return_stack_size: 3,
        implicit_return: true,
        return_rule: ReturnRule::Specification,
        ..plain(RATIFIED)
    };
    let image = rv64(&[
        (0x1000, &[jal(1, 0x1000), jal(1, 0xffc), ADD]),
        (0x2000, &[ADD, ADD, jalr(0, 1, 0)]),
    ]);
    let inside = Packet::Address(Report {
        irreport: true,
        irdepth: 1,
        ..by(&config, 0x1004)
    });
    let packets = [start(&config, 0x1000), inside, support(REP)];
    let bytes = stream(&config, &packets);
    (config, image, bytes)
}

/// Each fault there is comes of something.
#[test]
fn every_fault() {
    for &fault in Fault::ALL {
        let (config, image, bytes) = makes(fault);
        let events = decode(&config, &image, &bytes);
        let expected: &[&str] = match fault {
            // The decoder has no part in the second: see `data::a_lost_packet_is_noticed`.
            Fault::EmptyPacket | Fault::DataMismatch => &[],
            _ => &[fault.code()],
        };
        let found = match fault {
            Fault::DataNotDecoded | Fault::NoEnd => events.warned(),
            Fault::DataLost if config.data.is_none() => events.warned(),
            Fault::UnknownDataFormat
            | Fault::UnknownDataSize
            | Fault::UnknownDiff
            | Fault::UnknownSubtype
            | Fault::NoDataBase
            | Fault::DataLost => events.data_gaps(),
            _ => events.codes(),
        };
        assert_eq!(found, expected, "{fault:?}");
        let reason = fault.reason(7);
        assert_eq!((reason.code, reason.value), (fault.code(), 7));
        assert!(!fault.text().is_empty());
    }
    let codes: std::collections::BTreeSet<_> = Fault::ALL.iter().map(|f| f.code()).collect();
    assert_eq!(codes.len(), Fault::ALL.len());
}

/// A support packet that says whether there is data trace.
fn support_data(denable: bool) -> Packet {
    Packet::Support(Support {
        ienable: true,
        data: Some(DataSupport {
            denable,
            ..DataSupport::default()
        }),
        ..Support::default()
    })
}

/// A data packet where the support packets say that there is no data trace is
/// damage; where they say that there is, it is passed over; where they have not
/// said anything, it is reported.
#[test]
fn data_packets() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, ADD])]);
    let config = plain(RATIFIED);
    assert!(config.doptions_width.is_some());
    let first = start(&config, 0x1000);
    let rest = [address(&config, 8), support(REP)];
    let with = |front: &[Packet]| {
        let mut bytes = stream(&config, front);
        let at = bytes.len() as u64;
        bytes.extend([0x62, 0x02, 0x03]);
        bytes.extend(stream(&config, &rest));
        (decode(&config, &image, &bytes), at)
    };
    let (off, at) = with(&[support_data(false), first]);
    assert_eq!(off.codes(), [Fault::UnexpectedData.code()]);
    assert_eq!(off.gaps()[0].at, at);
    let (on, _) = with(&[support_data(true), first]);
    assert_eq!(on.gaps(), []);
    assert_eq!(on.warned(), [Fault::DataNotDecoded.code()]);
    assert!(
        on.0.iter()
            .any(|e| matches!(e, Event::Warning(w) if !w.is_loss))
    );
    let (open, at) = with(&[first]);
    assert_eq!(open.gaps(), []);
    assert_eq!(open.warned(), [Fault::UnexpectedData.code()]);
    let doubt = |e: &Event| matches!(e, Event::Warning(w) if w.is_loss && w.at == at);
    assert!(open.0.iter().any(doubt));
    for events in [on, open] {
        assert_eq!(events.pcs(&image), [0x1000, 0x1004, 0x1008]);
    }
    // It is said again only where data trace was off in between.
    let front = [support_data(true), support_data(true), first];
    assert_eq!(with(&front).0.warned().len(), 1);
    let front = [
        support_data(true),
        support_data(false),
        support_data(true),
        first,
    ];
    assert_eq!(with(&front).0.warned().len(), 2);
}

/// A trace ends with a support packet that says so; one that does not is
/// reported, also behind a trap.
#[test]
fn a_trace_without_its_end_is_reported() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ECALL])]);
    for config in [plain(RATIFIED), plain(DRAFT)] {
        let first = start(&config, 0x1000);
        for status in [REP, NTR] {
            let whole = stream(&config, &[first, address(&config, 4), support(status)]);
            assert!(decode(&config, &image, &whole).warned().is_empty());
        }
        for cut in [vec![first], vec![first, address(&config, 4)]] {
            let bytes = stream(&config, &cut);
            let events = decode(&config, &image, &bytes);
            assert_eq!(events.gaps(), []);
            assert_eq!(events.warned(), [Fault::NoEnd.code()]);
            let Some(Event::Warning(warning)) = events.0.last() else {
                panic!("{events:?}");
            };
            assert_eq!(warning.at, bytes.len() as u64);
            assert!(warning.is_loss);
        }
    }
}

/// A gap tells where, how much and what of the last instructions is not
/// certain.
#[test]
fn gaps() {
    let image = with_good(&[(0x1000, &[ADD, ADD, b(8), JR_A5])]);
    let config = plain(RATIFIED);
    let packets = [
        start(&config, 0x1000),
        // The branch has no outcome.
        address(&config, 12),
        full_map(&"T".repeat(31)),
        start(&config, GOOD),
        support(NTR),
    ];
    let bytes = stream(&config, &packets);
    let gaps = decode(&config, &image, &bytes).gaps();
    assert_eq!(gaps.len(), 1);
    let sizes: Vec<u64> = pieces(&bytes).iter().map(|p| p.len() as u64).collect();
    // It is noticed when the packet that waited is used.
    assert_eq!(gaps[0].at, sizes[0] + sizes[1]);
    assert_eq!(gaps[0].reason.value, 0x1008);
    assert!(gaps[0].bytes >= sizes[2], "{gaps:?}");
}

/// Bytes come in pieces of any size; a decoder can begin anywhere.
#[test]
fn pieces_and_middles() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, JR_A5])]);
    let config = plain(RATIFIED);
    let round = [0x1000, 0x1004, 0x100c];
    let bytes = encode(&config, &image, &go(&round.repeat(20)));
    let whole = decode(&config, &image, &bytes);
    for size in [1, 2, 3, 5, 64] {
        let mut events = Events::default();
        let mut decoder = Decoder::new(config.clone(), &image).unwrap();
        for chunk in bytes.chunks(size) {
            decoder.feed(chunk, &mut events);
        }
        decoder.finish(&mut events);
        assert_eq!(events.text(), whole.text(), "{size}");
    }
    let mut decoder = Decoder::new(config.clone(), &image).unwrap();
    let pieces = pieces(&bytes);
    let at = pieces[0].len() + pieces[1].len();
    decoder.restart(at as u64);
    assert_eq!(decoder.position(), at as u64);
    let mut events = Events::default();
    decoder.feed(&bytes[at..], &mut events);
    decoder.finish(&mut events);
    assert_eq!(events.codes(), ["ET0103"]);
    assert!(!decoder.is_synchronised());
}

/// Nothing but the code decides where one is: an image without it is a gap.
#[test]
fn without_code() {
    let image = Image::new();
    for config in both() {
        let packets = [start(&config, 0x1000), address(&config, 4), support(REP)];
        let codes = decode(&config, &image, &stream(&config, &packets)).codes();
        assert_eq!(codes, [Fault::NoCode.code()]);
    }
    let mut hole = rv64(&[(0x1000, &[ADD, ADD])]);
    hole.add_raw(SpaceId::FIRST, 0x2000, &code(&[ADD, ADD, ADD]), Isa::RV64GC);
    let config = plain(RATIFIED);
    let packets = [
        start(&config, 0x1000),
        address(&config, 0x100),
        start(&config, 0x2000),
        address(&config, 4),
        support(REP),
    ];
    let lines = decode(&config, &hole, &stream(&config, &packets)).text();
    let end = ["gap ET0301", "2000+1>2004", "2004+1>2008", "off"];
    assert!(lines.ends_with(&end.map(String::from)), "{lines:?}");
}

/// Outcomes of more than a packet's own never come together.
#[test]
fn maps_of_every_size() {
    let image = rv64(&[(0x1000, &[b(0), ADD, ADD])]);
    for config in both() {
        for count in 1..=31 {
            let map = BranchMap {
                bits: 1 << (count - 1),
                count,
            };
            let told = Packet::Branches {
                map,
                address: Some(by(&config, 4)),
            };
            let packets = [start_taken(&config, 0x1000), told, support(REP)];
            let events = decode(&config, &image, &stream(&config, &packets));
            assert_eq!(events.codes(), [] as [&str; 0]);
            assert_eq!(events.pcs(&image).len(), usize::from(count) + 2);
        }
    }
}

/// Takes one event at a time.
#[derive(Default)]
struct OneByOne(Events);

impl Consumer for OneByOne {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let _ = self.0.event(hart, event);
        ControlFlow::Break(())
    }
}

/// A consumer that asks for pauses gets the same in the end.
#[test]
fn pauses() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, JR_A5]), (0x2000, &[ADD, MRET])]);
    let config = plain(RATIFIED);
    let round = [0x1000, 0x1004, 0x100c];
    let trap = Do::Trap(0x1000, 0x2000, interrupt(7), Some(0));
    let way = way(&[
        &go(&round.repeat(10)),
        &[trap],
        &go(&[0x2000, 0x2004, 0x1000]),
    ]);
    let bytes = encode(&config, &image, &way);
    let mut decoder = Decoder::new(config.clone(), &image).unwrap();
    let mut events = OneByOne::default();
    let mut at = 0;
    let mut pauses = 0;
    while at < bytes.len() {
        at += decoder.feed(&bytes[at..], &mut events);
        pauses += 1;
    }
    decoder.finish(&mut events);
    assert!(pauses > 10);
    assert_eq!(events.0.text(), decode(&config, &image, &bytes).text());
}
