//! The examples of the texts: chapter 12, table 4.8, 8.3, looplabel (6.6.2 and
//! 6.5.1), and a stream of the reference encoder to the byte.

use hartrace_etrace::{
    Config, Ending, Packet, QualStatus, Resync, ResyncRule, ResyncUnit, Start, Version, csv,
};
use hartrace_flow::{Image, Ingress, Mode, PortConfig, Retirement, Signal};
use hartrace_isa::{Isa, Itype};

use crate::common::asm::*;
use crate::common::*;
use crate::random::blocks;

/// The code of chapter 12, with c.nop where it is left out.
fn chapter_12() -> Image {
    const C_NOP: u32 = 0x0001;
    rv64(&[
        (
            0x8000_10da,
            &[0x4781, 0x00a0_5863], // li a5,0; blez a0,800010ec
        ),
        (
            0x8000_10ec,
            &[
                0x60e2,
                0x6442,
                0x64a2,
                0x853e,
                0x6105,
                0x8082, // .. ret
                0x1579,
                0x0015_3513,
                0x8082, // 800010f8: .. ret
                0x1101,
                0xe822,
                0xe426,
                0xec06,
                0x842a,
                0x84ae,      // 80001100:
                0xfedf_f0ef, // 8000110c: jal x1,800010f8
                0xc115,
                0xc080,
                0x4785,      // 80001110: beqz a0,80001134 ..
                0x02f4_0463, // 80001116: beq s0,a5,8000113e
                0xc81d,
                0x4709,      // 8000111a: beqz s0,80001150 ..
                0x04e4_0063, // 8000111e: beq s0,a4,8000115e
            ],
        ),
        (
            0x8000_115e,
            &[0x60e2, 0x6442, 0xc09c, 0x64a2, 0x6105, 0x8082],
        ),
        (
            0x8000_1178,
            &[
                0x7139, C_NOP, C_NOP, C_NOP, C_NOP, C_NOP, C_NOP, C_NOP, 0x6121, 0x8082,
            ],
        ),
        (0x8000_121c, &[0x441c, 0xc795]), // lw; beqz a5,8000124a
        (
            0x8000_124a,
            &[
                0x44c8,
                0x4799,
                0x00c4_0593,
                0xc81c,
                0xeadf_f0ef, // .. jal x1,80001100
                0x0009_3783, // 80001258: ld
            ],
        ),
        (
            0x8000_1a80,
            &[0xf6d4_2423, 0xef4f_f0ef, 0x0000_0597, 0x6505_8593],
        ),
        (0x8000_1b8a, &[0xf444_2603]),
    ])
}

/// The payload of a packet as it was sent.
fn payload(config: &Config, image: &Image, way: &[Do], number: usize) -> Vec<u8> {
    pieces(&encode(config, image, way))[number][1..].to_vec()
}

/// Examples 1 and 2: a call that needs no packet, and the return from it.
#[test]
fn chapter_12_examples_1_and_2() {
    let image = chapter_12();
    let call = [0x8000_1a80, 0x8000_1a84];
    let printf: Vec<u64> = (0x8000_1178..=0x8000_118a).step_by(2).collect();
    let back = [0x8000_1a88, 0x8000_1a8c];
    for config in both() {
        let way = way(&[&go(&call), &go(&printf), &go(&back)]);
        let packets = round_trip(&config, &image, &way);
        let lines = [
            "support on",
            "start 80001a80",
            "address 80001a88",
            "address 80001a8c",
            "support off ended_rep",
        ];
        assert_eq!(text(&config, &packets), lines);
        let Packet::Address(report) = packets[2] else {
            panic!("{packets:?}");
        };
        let [_, updiscon, _] = report.sent(&config.layout());
        assert!(!updiscon, "updiscon=0");
        assert_eq!(payload(&config, &image, &way, 2), [0x12]);
        assert_eq!(payload(&config, &image, &way, 3), [0x0a]);
    }
}

/// Example 3: a branch that is taken, then a return; the difference is 0xab0.
#[test]
fn chapter_12_example_3() {
    let image = chapter_12();
    let pcs = [
        0x8000_10da,
        0x8000_10dc,
        0x8000_10ec,
        0x8000_10ee,
        0x8000_10f0,
        0x8000_10f2,
        0x8000_10f4,
        0x8000_10f6,
        0x8000_1b8a,
    ];
    for config in both() {
        let packets = round_trip(&config, &image, &go(&pcs));
        assert_eq!(packets[2], branches(&config, "T", 0xab0));
        let Packet::Branches { map, .. } = packets[2] else {
            panic!("{packets:?}");
        };
        assert_eq!((map.count, map.bits), (1, 0));
        let bytes = payload(&config, &image, &go(&pcs), 2);
        assert_eq!(bytes, [0x05, 0x58, 0x05]);
        let lines = [
            "support on",
            "start 800010da",
            "branches T 80001b8a",
            "support off ended_ntr",
        ];
        assert_eq!(text(&config, &packets), lines);
    }
}

/// Example 5 and then 4, which begins where it ends: two branches, two calls
/// and a return to a branch, which counts; three branches and a return.
#[test]
fn chapter_12_examples_5_and_4() {
    let image = chapter_12();
    let mut pcs = vec![0x8000_121c, 0x8000_121e];
    pcs.extend([0x8000_124a, 0x8000_124c, 0x8000_124e, 0x8000_1252]);
    pcs.extend([0x8000_1254]);
    pcs.extend((0x8000_1100..=0x8000_110c).step_by(2));
    pcs.extend([0x8000_10f8, 0x8000_10fa, 0x8000_10fe]);
    pcs.extend([0x8000_1110, 0x8000_1112, 0x8000_1114, 0x8000_1116]);
    pcs.extend([0x8000_111a, 0x8000_111c, 0x8000_111e]);
    pcs.extend((0x8000_115e..=0x8000_1168).step_by(2));
    pcs.extend([0x8000_1258]);
    for config in both() {
        let packets = round_trip(&config, &image, &go(&pcs));
        let lines = [
            "support on",
            "start 8000121c",
            "branches TN 80001110",
            "branches NNT 80001258",
            "support off ended_ntr",
        ];
        assert_eq!(text(&config, &packets), lines);
        let back = 0xffff_ffff_ffff_fef4_u64 as i64;
        assert_eq!(packets[2], branches(&config, "TN", back));
        assert_eq!(packets[3], branches(&config, "NNT", 0x148));
        let Packet::Branches { map, address } = packets[2] else {
            panic!("{packets:?}");
        };
        assert_eq!((map.count, map.bits), (2, 2));
        // The text says updiscon=1, which is the bit as it is sent: the same
        // as notify and as the MSB of the address.
        let sent = address.unwrap().sent(&config.layout());
        assert_eq!(sent, [true, true, true]);
        let Packet::Branches { map, .. } = packets[3] else {
            panic!("{packets:?}");
        };
        assert_eq!((map.count, map.bits), (3, 3));
        let bytes = payload(&config, &image, &go(&pcs), 2);
        assert_eq!(bytes, [0x09, 0xe9, 0xfd]);
        let bytes = payload(&config, &image, &go(&pcs), 3);
        assert_eq!(bytes, [0x8d, 0x91, 0x02]);
    }
}

/// Table 4.8: blocks of several instructions, as the port shows them and as
/// the encoder takes them.
#[test]
fn table_4_8_retirement() {
    // divuw; add; or; c.jalr a5. addi; c.beqz a0; c.bnez a0,988. lbu; csrrw.
    let image = rv64(&[
        (0x1000, &[0x02b5_553b, 0x00b5_0533, 0x00b5_6533, 0x9782]),
        (0x940, &[0x0015_0513, 0xc909, 0xe129]),
        (0x988, &[0x0005_4503, 0x3401_1173]),
    ]);
    let way = go(&[
        0x1000, 0x1004, 0x1008, 0x100c, 0x940, 0x944, 0x946, 0x988, 0x98c,
    ]);
    for config in both() {
        let port = PortConfig {
            retirement: Retirement::Block(16),
            ..port(&config, Isa::RV64GC)
        };
        let rows = blocks(port, &steps(&image, &way));
        let seen: Vec<_> = rows
            .iter()
            .map(|b| (b.iretire, b.iaddr, b.itype.code(), b.ilastsize))
            .collect();
        let table = [
            (7, 0x1000, 8, 0),
            (3, 0x940, 4, 0),
            (1, 0x946, 5, 0),
            (4, 0x988, 0, 1),
        ];
        assert_eq!(seen, table);
        let lines = [
            "support on",
            "start 1000",
            "address 940",
            "branches NT 98c",
            "support off ended_rep",
        ];
        assert_eq!(text(&config, &encode_blocks(&config, &rows)), lines);
        sends(&config, &image, &way, &lines);
    }
}

/// 8.3: the first instruction is told as the first one traced, the last one
/// because of the ecall; then the same with the handler's; then the other
/// handler's first.
#[test]
fn section_8_3_three_blocks() {
    for config in both() {
        let block = |iaddr, iretire, itype, cause| Ingress {
            iaddr,
            iretire,
            ilastsize: 1,
            itype,
            cause,
            ..Ingress::default()
        };
        let rows = [
            block(0x1000, 8, Itype::Exception, 11),
            block(0x2000, 6, Itype::Interrupt, 7),
            block(0x3000, 2, Itype::None, 0),
        ];
        let tval = if config.version == DRAFT {
            " tval 0"
        } else {
            ""
        };
        let interrupt = format!("interrupt 7 to 3000{tval}");
        let lines = [
            "support on",
            "start 1000",
            "address 100c",
            "exception 11 to 2000 tval 0",
            "address 2008",
            &interrupt,
            "support off ended_ntr",
        ];
        assert_eq!(text(&config, &encode_blocks(&config, &rows)), lines);
    }
}

/// 6.6.2: A; looplabel: B; C; D; jalr to looplabel. A handler.
fn looplabel() -> Image {
    rv64(&[
        (0x1000, &[ADD, ADD, ADD, ADD, JR_A5]),
        (0x2000, &[ADD, ADD]),
    ])
}

const FIRST: [u64; 5] = [0x1000, 0x1004, 0x1008, 0x100c, 0x1010];
const ROUND: [u64; 4] = [0x1004, 0x1008, 0x100c, 0x1010];
const FAULT: Do = Do::Trap(0x1008, 0x2000, exception(13), Some(0x55));

/// Scenario 1: the jump back to looplabel, and the second round goes on.
#[test]
fn looplabel_1() {
    let image = looplabel();
    for config in both() {
        let way = way(&[&go(&FIRST), &go(&ROUND), &go(&[0x1004, 0x1008])]);
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "address 1004",
            "address 1008",
            "support off ended_rep",
        ];
        sends(&config, &image, &way, &lines);
        // One round more than without the second packet.
        let end = address(&config, 4);
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            address(&config, 0),
            end,
            support(QualStatus::EndedRep),
        ];
        let lines = ["1000+5>1004", "1004+4>1004", "1004+1>1008", "1008+1>100c"];
        tells(&config, &image, &packets, &[&lines[..], &["off"]].concat());
    }
}

/// Scenario 2: an exception at looplabel + 4 in the second round.
#[test]
fn looplabel_2() {
    let image = looplabel();
    for config in both() {
        let way = way(&[&go(&FIRST), &go(&[0x1004]), &[FAULT], &go(&[0x2000])]);
        let lines = [
            "support on",
            "start 1000",
            "address 1004 updiscon",
            "exception 13 to 2000 tval 55",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
        let packets = [
            start(&config, 0x1000),
            updiscon(&config, 4),
            Packet::Trap(trap(&config, 13, true, 0x2000)),
        ];
        let lines = [
            "1000+5>1004",
            "1004+1>1008",
            "exception 13 at 1008 to 2000 tval 0",
            "2000+1>2004",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// Scenario 2 with a resync: its packet is told as the one before a format 3.
#[test]
fn looplabel_2_with_a_resync() {
    let image = looplabel();
    for version in VERSIONS {
        let config = Config {
            resync: Resync {
                unit: ResyncUnit::Packets,
                max: 0,
                rule: ResyncRule::Exceeded,
            },
            ..plain(version)
        };
        let rounds = ROUND.repeat(16);
        let way = way(&[&go(&FIRST), &go(&rounds), &go(&ROUND), &go(&ROUND)]);
        let steps = steps(&image, &way);
        let bytes = encode(&config, &image, &way);
        understood(&config, &image, &steps, &bytes);
        let lines = text(&config, &packets(&config, &bytes));
        // 16 packets, then the one that says what follows.
        assert!(
            lines[2..18].iter().all(|l| l == "address 1004"),
            "{lines:?}"
        );
        let end = ["address 1004 updiscon", "start 1008", "address 1004"];
        assert_eq!(lines[18..21], end, "{lines:?}");
    }
}

/// Scenario 2 with a privilege change: looplabel is a return from a trap.
#[test]
fn looplabel_2_with_a_privilege_change() {
    let image = rv64(&[(0x1000, &[ADD, MRET, ADD, JR_A5])]);
    for config in both() {
        let way = way(&[
            &go(&[0x1000, 0x1004, 0x1008, 0x100c, 0x1004]),
            &[Do::Mode(Mode::U)],
            &go(&[0x1008]),
        ]);
        let lines = [
            "support on",
            "start 1000",
            "address 1008",
            "address 1004 updiscon",
            "start 1008 in U",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
    }
}

/// Scenario 3: an exception right after the first time at looplabel.
#[test]
fn looplabel_3() {
    let image = looplabel();
    for config in both() {
        let way = way(&[&go(&[0x1000, 0x1004]), &[FAULT], &go(&[0x2000])]);
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "exception 13 to 2000 tval 55",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
        let packets = [
            start(&config, 0x1000),
            address(&config, 4),
            Packet::Trap(trap(&config, 13, true, 0x2000)),
        ];
        let lines = [
            "1000+1>1004",
            "1004+1>1008",
            "exception 13 at 1008 to 2000 tval 0",
            "2000+1>2004",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// Scenario 4: looplabel is to be notified, the first time and the second.
#[test]
fn looplabel_4() {
    let image = looplabel();
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            ..plain(version)
        };
        let notify_it = [Do::Signal(Signal::Notify)];
        let way = way(&[
            &go(&[0x1000]),
            &notify_it,
            &go(&ROUND),
            &notify_it,
            &go(&ROUND),
            &go(&[0x1004]),
        ]);
        let lines = [
            "support on",
            "start 1000",
            "address 1004 notify",
            "address 1004",
            "address 1004",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
        let packets = [
            start(&config, 0x1000),
            notify(&config, 4),
            address(&config, 0),
            support(QualStatus::EndedNtr),
        ];
        let lines = ["1000+1>1004", "notify", "1004+4>1004", "1004+1>1008", "off"];
        tells(&config, &image, &packets, &lines);
    }
}

/// 6.5.1: tracing stops at looplabel in the first round, or in the second.
#[test]
fn ended_rep_and_ended_ntr() {
    let image = looplabel();
    for config in both() {
        let lines = |status| ["support on", "start 1000", "address 1004", status];
        let first = go(&[0x1000, 0x1004]);
        sends(&config, &image, &first, &lines("support off ended_rep"));
        let second = way(&[&go(&FIRST), &go(&[0x1004])]);
        sends(&config, &image, &second, &lines("support off ended_ntr"));

        let told = |status| [start(&config, 0x1000), address(&config, 4), support(status)];
        let lines = ["1000+1>1004", "1004+1>1008", "off"];
        tells(&config, &image, &told(QualStatus::EndedRep), &lines);
        let lines = ["1000+5>1004", "1004+1>1008", "off"];
        tells(&config, &image, &told(QualStatus::EndedNtr), &lines);
    }
}

/// 6.5.1: an encoder that knows early may say `updiscon`; then it is always
/// ended_rep.
#[test]
fn ended_rep_behind_updiscon() {
    let image = looplabel();
    for config in both() {
        let packets = [
            start(&config, 0x1000),
            updiscon(&config, 4),
            support(QualStatus::EndedRep),
        ];
        tells(
            &config,
            &image,
            &packets,
            &["1000+5>1004", "1004+1>1008", "off"],
        );
    }
}

/// The settings of the reference models in their suite itype3_basic.
pub(crate) fn reference() -> Config {
    Config {
        context_width: 32,
        ecause_width: 5,
        ending: Ending::Reference,
        resync: Resync {
            unit: ResyncUnit::Packets,
            max: 0,
            rule: ResyncRule::Exceeded,
        },
        ..plain(Version::V2_0)
    }
}

/// What the reference encoder makes of its test of a jump, a branch and an
/// exception, to the byte; and what that says of code of the same shape.
#[test]
fn reference_stream() {
    let rows = |itype: u8, cause, insns: &[(u64, u32)]| -> Vec<Ingress> {
        let row = |&(iaddr, bytes): &(u64, u32)| Ingress {
            itype: Itype::from_code(itype).unwrap(),
            cause,
            ..one(iaddr, bytes)
        };
        insns.iter().map(row).collect()
    };
    let all: Vec<Ingress> = [
        rows(0, 0, &[(0x1000, 4), (0x1004, 4), (0x1008, 4), (0x100c, 4)]),
        rows(6, 0, &[(0x1010, 4)]),
        rows(0, 0, &[(0x8000_0000, 4), (0x8000_0004, 4)]),
        rows(0, 0, &[(0x8000_0008, 4), (0x8000_000c, 4)]),
        rows(0, 0, &[(0x8000_0010, 2), (0x8000_0012, 4)]),
        rows(0, 0, &[(0x8000_0056, 4), (0x8000_006a, 2)]),
        rows(6, 0, &[(0x8000_006c, 2)]),
        rows(4, 0, &[(0x8000_005a, 2)]),
        rows(1, 2, &[(0x8000_005c, 0)]),
        rows(0, 0, &[(0x8000_0038, 2), (0x8000_003a, 4)]),
        rows(0, 0, &[(0x8000_003e, 4), (0x8000_0042, 2)]),
        rows(0, 0, &[(0x8000_0044, 4), (0x8000_0048, 4)]),
        rows(0, 0, &[(0x8000_004c, 2), (0x8000_004e, 2)]),
        rows(0, 0, &[(0x8000_0018, 4), (0x8000_001c, 4)]),
        rows(0, 0, &[(0x8000_0020, 4), (0x8000_0024, 4)]),
        rows(0, 0, &[(0x8000_0028, 2), (0x8000_002a, 2)]),
        rows(0, 0, &[(0x8000_002c, 2), (0x8000_002e, 2)]),
        rows(0, 0, &[(0x8000_0030, 4)]),
    ]
    .concat();
    assert_eq!(all.len(), 33);
    let config = reference();
    let bytes = stream(&config, &encode_blocks(&config, &all));
    let expected: [&[u8]; 7] = [
        &[0x41, 0x1f],
        &[0x47, 0x73, 0, 0, 0, 0, 0, 0x04],
        &[0x45, 0x02, 0xe0, 0xff, 0xff, 0x00],
        &[0x4a, 0x85, 0x2d, 0, 0, 0, 0, 0, 0, 0, 0xff],
        &[0x4a, 0x77, 0, 0, 0, 0, 0x21, 0x07, 0, 0, 0x10],
        &[0x41, 0xf2],
        &[0x41, 0x4f],
    ];
    assert_eq!(bytes, expected.concat());

    // The table that goes with it. What concerns data trace is filled in later
    // there, and stays empty in the table.
    let table = [
        "3,0,800,1,_,_,_,_,0,_,_,_,_,_,_,_,_,3,_,_,_,_,_,_,_,_",
        "2,_,3ffff800,_,_,_,_,_,_,_,_,_,_,0,_,0,_,_,_,_,_,_,0,_,_,_",
        "1,_,2d,_,1,1,_,_,_,_,_,_,_,1,_,0,_,_,_,_,_,_,1,_,_,_",
        "3,1,4000001c,1,_,_,_,_,0,2,_,_,0,_,_,_,_,3,_,_,1,0,_,_,_,_",
        "2,_,7ffffffffffffffc,_,_,_,_,_,_,_,_,_,_,1,_,1,_,_,_,_,_,_,1,_,_,_",
    ];
    for (packet, line) in packets(&config, &bytes)[1..].iter().zip(table) {
        let mut row = String::new();
        csv::row(packet, &config.layout(), &mut row);
        assert_eq!(row, line);
    }

    // Code that does as the rows say.
    let c_j = 0xb7e9; // c.j by -0x36
    let image = rv64(&[
        (0x1000, &[ADD, ADD, ADD, ADD, JR_A5]),
        (0x8000_0000, &[ADD, ADD, ADD, ADD, C_ADD, jal(0, 0x44)]),
        (
            0x8000_0018,
            &[ADD, ADD, ADD, ADD, C_ADD, C_ADD, C_ADD, C_ADD],
        ),
        (0x8000_0030, &[jal(0, 0)]),
        (0x8000_0038, &[C_ADD, ADD, ADD, C_ADD, ADD, ADD, C_ADD, c_j]),
        (0x8000_0056, &[jal(1, 0x14), 0xc119]), // 5a: c.beqz a0
        (0x8000_006a, &[C_ADD, C_RET]),
    ]);
    let retired: Vec<u64> = all
        .iter()
        .filter(|row| row.iretire > 0)
        .map(|row| row.iaddr)
        .collect();
    let events = decode(&config, &image, &bytes);
    assert_eq!(events.codes(), [] as [&str; 0]);
    same(&events.pcs(&image), &retired, &[]);
    let trap = events.traps()[0];
    assert_eq!(
        (trap.epc, trap.handler),
        (Some(0x8000_005c), Some(0x8000_0038))
    );
}

/// 6.2.1: the first instruction is a branch and an exception follows it; the
/// `branch` field is all that tells its outcome.
#[test]
fn branch_field_before_an_exception() {
    let image = rv64(&[(0x1000, &[b(8), ADD, ADD]), (0x2000, &[ADD])]);
    for config in both() {
        for (taken, epc) in [("", 0x1004), (" taken", 0x1008)] {
            let way = way(&[
                &go(&[0x1000]),
                &[Do::Trap(epc, 0x2000, exception(13), Some(0))],
                &go(&[0x2000]),
            ]);
            let lines = [
                "support on",
                &format!("start 1000{taken}"),
                "exception 13 to 2000 tval 0",
                "support off ended_ntr",
            ];
            sends(&config, &image, &way, &lines);
        }
        let packets = [
            Packet::Start(Start {
                branch: false,
                privilege: 3,
                address: 0x800,
                ..Start::default()
            }),
            Packet::Trap(trap(&config, 13, true, 0x2000)),
        ];
        let lines = [
            "1000+1>1008",
            "exception 13 at 1008 to 2000 tval 0",
            "2000+1>2004",
        ];
        tells(&config, &image, &packets, &lines);
    }
}
