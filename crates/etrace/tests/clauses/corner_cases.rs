//! What breaks decoders, case by case. 16 to 19 are about optional modes, in
//! `modes.rs` and `packets.rs`; 24 is about data trace.

use hartrace_etrace::{
    Config, Ending, Fault, Ioption, Ioptions, Kind, Packet, QualStatus, Report, Resync, ResyncRule,
    ResyncUnit, Start, Support,
};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Image, Inference, Mode, PortConfig, Retirement, Rules, Signal, SpaceId, Unreported,
};
use hartrace_isa::{Ext, Isa, Xlen};

use crate::common::asm::*;
use crate::common::*;
use crate::examples::reference;

const NTR: QualStatus = QualStatus::EndedNtr;
const REP: QualStatus = QualStatus::EndedRep;

/// A loop whose head is reached by falling through and by an indirect jump,
/// left in every round and in every way.
#[test]
fn case_01_loop_head() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, JR_A5]), (0x2000, &[ADD, MRET])]);
    let round = [0x1004, 0x1008, 0x100c];
    for rounds in 0..4 {
        let mut pcs = vec![0x1000];
        pcs.extend(round.repeat(rounds));
        pcs.push(0x1004);
        let head = go(&pcs);
        let end_here = vec![];
        let halt = vec![
            Do::Signal(Signal::Halted),
            Do::Signal(Signal::Resumed),
            Do::At(0x1008),
        ];
        let trap = vec![
            Do::Trap(0x1008, 0x2000, exception(13), Some(0)),
            Do::At(0x2000),
            Do::At(0x2004),
            Do::At(0x1008),
        ];
        let mode = vec![
            Do::Trap(0x1008, 0x2000, interrupt(7), Some(0)),
            Do::At(0x2000),
            Do::At(0x2004),
            Do::Mode(Mode::U),
            Do::At(0x1008),
        ];
        let more = go(&[0x1008]);
        for tail in [end_here, halt, trap, mode, more] {
            for config in both() {
                round_trip(&config, &image, &way(&[&head, &tail]));
                let often = Config {
                    triggers: true,
                    resync: Resync {
                        unit: ResyncUnit::Halfwords,
                        max: 0,
                        rule: ResyncRule::Settled,
                    },
                    ..config
                };
                let notified = way(&[&[Do::Signal(Signal::Notify)], &head, &tail]);
                round_trip(&often, &image, &notified);
            }
        }
    }
}

/// The last instruction was told already: no second address, unless asked to
/// do as the reference does; that is understood too.
#[test]
fn case_02_last_instruction_told_already() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x2000, &[b(8), ADD, ADD])]);
    let way = go(&[0x1000, 0x1004, 0x2000]);
    for config in both() {
        let lines = [
            "support on",
            "start 1000",
            "branches N 2000",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
        let config = Config {
            ending: Ending::Reference,
            ..config
        };
        let bytes = encode(&config, &image, &way);
        let lines = [
            "support on",
            "start 1000",
            "branches N 2000",
            "address 2000",
            "support off ended_rep",
        ];
        assert_eq!(text(&config, &packets(&config, &bytes)), lines);
        decodes(&config, &image, &steps(&image, &way), &bytes);
    }
}

/// Loops without a branch: how often they went round nobody knows, and a
/// decoder that was told nonsense comes to an end.
#[test]
fn case_03_loops_without_a_branch() {
    const WFI: u32 = 0x1050_0073;
    for body in [
        &[jal(0, 0)][..],
        &[ADD, jal(0, -4)],
        &[WFI, jal(0, -4)],
        &[ADD, jal(0, 8), ADD, jal(0, -12)],
    ] {
        let image = rv64(&[(0x1000, body), (0x2000, &[ADD])]);
        let mut round = vec![0x1000];
        if body.len() > 1 {
            round.push(0x1004);
        }
        if body.len() > 2 {
            round.push(0x100c);
        }
        let last = *round.last().unwrap();
        let trap = Do::Trap(0x1000, 0x2000, interrupt(7), Some(0));
        let way = way(&[&go(&round.repeat(5)), &[trap], &go(&[0x2000])]);
        for config in both() {
            let bytes = encode(&config, &image, &way);
            let unreported = Unreported {
                rounds: Some(Inference {
                    isa: Isa::RV64GC,
                    rules: Rules {
                        absolute_jumps: true,
                        ..Rules::default()
                    },
                    returns: false,
                }),
                ..Unreported::default()
            };
            decodes_but(&config, &image, &steps(&image, &way), &bytes, unreported);
            let events = decode(&config, &image, &bytes);
            assert_eq!(events.traps()[0].epc, Some(0x1000));
            let pcs = events.pcs(&image);
            assert!(pcs.len() < 12 && pcs[pcs.len() - 2] == last, "{pcs:x?}");
            // Somewhere else is not in the loop.
            let packets = [
                start(&config, 0x1000),
                address(&config, 0x1000),
                start(&config, 0x2000),
            ];
            let codes = decode(&config, &image, &stream(&config, &packets)).codes();
            assert_eq!(codes, [Fault::EndlessLoop.code()]);
        }
    }
}

/// 31 branches with an address and without, and with one more before them.
#[test]
fn case_04_thirty_one_branches() {
    let image = rv64(&[(0x1000, &[ADD, b(-4), ADD, JR_A5])]);
    for config in both() {
        for count in [30, 31, 32, 62, 63] {
            // Starting at the branch or before it.
            for first in [&[][..], &[0x1000]] {
                let mut pcs = first.to_vec();
                pcs.extend([0x1004, 0x1000].repeat(count));
                let way = way(&[&go(&pcs), &go(&[0x1004, 0x1008, 0x100c, 0x1000])]);
                round_trip(&config, &image, &way);
            }
        }
        // All 32 outcomes at once.
        let packets = [
            start_taken(&config, 0x1004),
            branches(&config, &("T".repeat(30) + "N"), 4),
            support(REP),
        ];
        let events = decode(&config, &image, &stream(&config, &packets));
        assert_eq!(events.codes(), [] as [&str; 0]);
        assert_eq!(events.pcs(&image).len(), 2 * 32);
    }
}

/// A full map says nothing of what comes behind its last branch.
#[test]
fn case_05_full_map() {
    let image = rv64(&[(0x1000, &[b(8), ADD, b(-8), JR_A5]), (0x2000, &[ADD])]);
    for config in both() {
        let mut pcs = [0x1000, 0x1008].repeat(16);
        pcs.pop();
        // 31 branches, then a trap on the way to the 32nd.
        let trap = Do::Trap(0x1008, 0x2000, exception(13), Some(0));
        let after = way(&[&go(&[0x1000, 0x1008]), &go(&pcs), &[trap], &go(&[0x2000])]);
        round_trip(&config, &image, &after);
        let packets = [start(&config, 0x100c), full_map(&"T".repeat(31))];
        let codes = decode(&config, &image, &stream(&config, &packets)).codes();
        assert_eq!(codes, [Fault::UnreportedJump.code()]);
    }
}

/// A resync at a branch: its outcome comes behind those told before.
#[test]
fn case_06_resync_at_a_branch() {
    let image = rv64(&[(0x1000, &[b(8), ADD, b(-8), ADD])]);
    let mut pcs = [0x1000, 0x1008].repeat(40);
    pcs.extend([0x1000, 0x1004, 0x1008, 0x100c]);
    for version in VERSIONS {
        for unit in [ResyncUnit::Halfwords, ResyncUnit::Cycles] {
            let config = Config {
                resync: Resync {
                    unit,
                    max: 0,
                    rule: ResyncRule::Settled,
                },
                ..plain(version)
            };
            let packets = round_trip(&config, &image, &go(&pcs));
            let taken = packets
                .iter()
                .filter(|p| matches!(p, Packet::Start(Start { branch: false, .. })));
            assert!(taken.count() > 3, "{:#?}", text(&config, &packets));
        }
    }
}

/// An exception on what a branch leads to uses the branch's outcome.
#[test]
fn case_07_exception_behind_a_branch() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, ADD]), (0x2000, &[ADD])]);
    for config in both() {
        for (epc, outcome) in [(0x1008, "N"), (0x100c, "T")] {
            let trap = Do::Trap(epc, 0x2000, exception(13), Some(0));
            let way = way(&[&go(&[0x1000, 0x1004]), &[trap], &go(&[0x2000])]);
            let lines = [
                "support on",
                "start 1000",
                &format!("branches {outcome} 1004"),
                "exception 13 to 2000 tval 0",
                "support off ended_ntr",
            ];
            sends(&config, &image, &way, &lines);
        }
    }
}

/// Traps behind jumps, on the first instruction, in a row; interrupts.
#[test]
fn case_08_traps_of_every_kind() {
    let image = rv64(&[
        (0x1000, &[ADD, JR_A5, ADD]),
        (0x3000, &[ADD, MRET]),
        (0x4000, &[ADD, MRET]),
    ]);
    let causes = [exception(12), exception(2), interrupt(7)];
    for config in both() {
        for first in causes {
            for second in causes {
                let behind_a_jump = [
                    Do::At(0x1000),
                    Do::At(0x1004),
                    Do::Trap(0x1008, 0x3000, first, Some(1)),
                    Do::At(0x3000),
                    Do::Trap(0x3004, 0x4000, second, Some(2)),
                    Do::At(0x4000),
                ];
                round_trip(&config, &image, &behind_a_jump);
                let on_the_first = [
                    Do::Trap(0x1000, 0x3000, first, Some(1)),
                    Do::At(0x3000),
                    Do::At(0x3004),
                    Do::Trap(0x1000, 0x4000, second, Some(2)),
                    Do::At(0x4000),
                ];
                round_trip(&config, &image, &on_the_first);
                let in_a_row = [
                    Do::At(0x1000),
                    Do::Trap(0x1004, 0x3000, first, Some(1)),
                    Do::Trap(0x3000, 0x4000, second, Some(2)),
                    Do::At(0x4000),
                    Do::At(0x4004),
                    Do::At(0x1004),
                ];
                round_trip(&config, &image, &in_a_row);
            }
        }
    }
}

/// ecall and its kind, at the end of everything and as the first: their EPC is
/// their own address, retired or not.
#[test]
fn case_09_ecall() {
    for insn in [ECALL, EBREAK, C_EBREAK] {
        let image = rv64(&[(0x1000, &[ADD, insn]), (0x3000, &[insn, ADD])]);
        for config in both() {
            let way = [
                Do::At(0x1000),
                Do::Trap(0x1004, 0x3004, exception(11), Some(0)),
                Do::At(0x3004),
            ];
            let way = match insn {
                C_EBREAK => [
                    Do::At(0x1000),
                    Do::Trap(0x1004, 0x3002, exception(3), Some(0)),
                    Do::At(0x3002),
                ],
                _ => way,
            };
            round_trip(&config, &image, &way);
            let events = decode(&config, &image, &encode(&config, &image, &way));
            assert_eq!(events.traps()[0].epc, Some(0x1004));
        }
    }
}

/// Returns from traps to where the hart comes by anyway, in the same mode and
/// in others.
#[test]
fn case_10_returns_from_traps() {
    for ret in [MRET, SRET] {
        let image = rv64(&[(0x1000, &[ADD, ADD, ret, ADD])]);
        for config in both() {
            for modes in [
                [Mode::M, Mode::M],
                [Mode::M, Mode::U],
                [Mode::U, Mode::M],
                [Mode::S, Mode::U],
            ] {
                let way = [
                    Do::At(0x1000),
                    Do::At(0x1004),
                    Do::At(0x1008),
                    Do::Mode(modes[0]),
                    Do::At(0x1004),
                    Do::At(0x1008),
                    Do::Mode(modes[1]),
                    Do::At(0x1004),
                    Do::At(0x1008),
                    Do::At(0x100c),
                ];
                round_trip(&config, &image, &way);
            }
        }
    }
}

/// Whatever is compressed away comes back with the right sign.
#[test]
fn case_11_signs() {
    let config = Config::new(RATIFIED, Xlen::Rv32);
    let layout = config.layout();
    for difference in [0, 2, -2, 0x7ffe, -0x8000, 0x7fff_fffe, -0x8000_0000] {
        for flags in 0..4 {
            let report = Report {
                notify: flags & 1 != 0,
                updiscon: flags & 2 != 0,
                ..by(&config, difference)
            };
            let packet = Packet::Address(report);
            let short = packet.write(&layout);
            assert_eq!(Packet::read(short.bytes(), &layout), Ok(packet));
            assert!(flags != 0 || short.bytes().len() <= 5);
        }
    }
    // Wrapping at the top, both ways.
    let image = image(
        Isa::RV32GC,
        &[(0, &[ADD, JR_A5]), (0xffff_fff0, &[ADD, JR_A5])],
    );
    let way = go(&[0, 4, 0xffff_fff0, 0xffff_fff4, 0, 4, 0xffff_fff4]);
    let packets = round_trip(&config, &image, &way);
    let lines = text(&config, &packets);
    assert_eq!(lines[2..4], ["address fffffff0", "address 0"]);
    assert_eq!(packets[2].write(&layout).bytes().len(), 1);
}

/// Widths and low bits of addresses, together.
#[test]
fn case_12_widths_of_addresses() {
    for (width, lsb, kernel) in [
        (40, 0, 0xffff_ff80_0000_0000_u64),
        (40, 1, 0xffff_ffff_ffff_f000),
        (48, 2, 0xffff_8000_1234_5678),
        (64, 2, 0x8000_0000_0000_0000),
    ] {
        let image = rv64(&[(0x1000, &[ADD, JR_A5]), (kernel, &[ADD, JR_A5])]);
        let way = go(&[0x1000, 0x1004, kernel, kernel + 4, 0x1000, 0x1004, kernel]);
        for version in VERSIONS {
            for full_address in [false, true] {
                let config = Config {
                    iaddress_width: width,
                    iaddress_lsb: lsb,
                    full_address,
                    ..plain(version)
                };
                round_trip(&config, &image, &way);
            }
        }
    }
}

/// The reference has a context of 32 bits where discovery has none.
#[test]
fn case_13_context_by_default() {
    let image = rv64(&[(0x1000, &[ADD, ADD])]);
    let config = reference();
    let bytes = stream(&config, &[start(&config, 0x1000)]);
    assert_eq!(bytes, [0x47, 0x73, 0, 0, 0, 0, 0, 0x04]);
    let other = plain(RATIFIED);
    let lines = decode(&other, &image, &bytes).text();
    // The same bytes without a context are another address.
    assert_eq!(lines, ["on", "in M", "gap ET0301"]);
    assert_eq!(decode(&config, &image, &bytes).pcs(&image), [0x1000]);
}

/// Bits of a map above the number of branches.
#[test]
fn case_14_bits_above_the_map() {
    let image = rv64(&[(0x1000, &[ADD, b(8), b(8), ADD, ADD])]);
    let config = plain(RATIFIED);
    for garbage in [0, 1u16] {
        // Format 1, two branches, a map of three bits, 16 bytes on.
        let bits = 1 | 2 << 2 | 0b01 << 7 | garbage << 9 | 8 << 10;
        let mut bytes = stream(&config, &[start(&config, 0x1000)]);
        bytes.push(0x42);
        bytes.extend(&bits.to_le_bytes());
        bytes.extend(stream(&config, &[support(REP)]));
        let events = decode(&config, &image, &bytes);
        assert_eq!(
            events.pcs(&image),
            [0x1000, 0x1004, 0x1008, 0x1010],
            "{garbage}"
        );
    }
}

/// Jumps that are not what they look like.
#[test]
fn case_15_odd_jumps() {
    // jalr ra, ra; c.jr t0; c.jalr t0.
    for jump in [jalr(1, 1, 0), 0x8282, 0x9282] {
        let image = rv64(&[(0x1000, &[ADD, jump, ADD]), (0x2000, &[ADD])]);
        for config in both() {
            let lines = [
                "support on",
                "start 1000",
                "address 2000",
                "support off ended_ntr",
            ];
            sends(&config, &image, &go(&[0x1000, 0x1004, 0x2000]), &lines);
        }
    }
    // jalr through x0 goes to an address that stands in it.
    let image = rv64(&[(0x1000, &[ADD, jalr(1, 0, 0x7f0)]), (0x7f0, &[ADD, ADD])]);
    for config in both() {
        let lines = [
            "support on",
            "start 1000",
            "address 7f4",
            "support off ended_rep",
        ];
        sends(
            &config,
            &image,
            &go(&[0x1000, 0x1004, 0x7f0, 0x7f4]),
            &lines,
        );
    }
    // Constants that something came between.
    let image = rv64(&[
        (0x1000, &[lui_a5(0x2000), ADD, JR_A5]),
        (0x2000, &[ADD, ADD]),
    ]);
    let config = Config {
        sijump: true,
        ..plain(RATIFIED)
    };
    let way = go(&[0x1000, 0x1004, 0x1008, 0x2000]);
    let lines = text(&config, &round_trip(&config, &image, &way));
    assert_eq!(lines[2], "address 2000");
}

/// A jump table, returns that pop, and instructions of 48 bits.
#[test]
fn case_15_other_lengths_and_tables() {
    let isa = Isa::RV64GC.with(Ext::Zcmt).with(Ext::Zcmp);
    let jt = |index: u32| 0xa002 | index << 2;
    const POPRET: u32 = 0xbe42;
    const POPRETZ: u32 = 0xbc42;
    let mut image = image(
        isa,
        &[
            (0x100, &[C_ADD, jt(3)]),
            (0x200, &[C_ADD, jt(40), C_ADD, C_ADD]),
            (0x300, &[C_ADD, POPRET]),
            (0x400, &[C_ADD, POPRETZ]),
        ],
    );
    let entry = |i: u64| match i {
        3 => 0x200u64,
        40 => 0x300,
        _ => 0,
    };
    let table: Vec<u8> = (0..64).flat_map(|i| entry(i).to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, 0x1000, &table, isa);
    image.set_jvt(SpaceId::FIRST, 0x1000);
    let things = go(&[
        0x100, 0x102, 0x200, 0x202, 0x300, 0x302, 0x400, 0x402, 0x204, 0x206,
    ]);
    for config in both() {
        let steps = steps(&image, &things);
        let bytes = encode_at(
            port(&config, isa),
            &config,
            &FilterConfig::default(),
            &steps,
        );
        let lines = [
            "support on",
            "start 100",
            "address 400",
            "address 204",
            "address 206",
            "support off ended_rep",
        ];
        assert_eq!(text(&config, &packets(&config, &bytes)), lines);
        decodes(&config, &image, &steps, &bytes);
    }
    // c.add; 48 bits; c.add; c.jr a5.
    let bytes = [0x05, 0x05, 0x1f, 0, 0, 0, 0, 0, 0x05, 0x05, 0x82, 0x87];
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &bytes, Isa::RV64GC);
    for config in both() {
        let way = go(&[0x1000, 0x1002, 0x1008, 0x100a, 0x1002, 0x1008]);
        let packets = round_trip(&config, &image, &way);
        assert_eq!(text(&config, &packets)[2], "address 1002");
        for room in [4, 8] {
            let port = PortConfig {
                retirement: Retirement::Block(room),
                ..port(&config, Isa::RV64GC)
            };
            let steps = steps(&image, &way);
            let bytes = encode_at(port, &config, &FilterConfig::default(), &steps);
            decodes(&config, &image, &steps, &bytes);
        }
    }
}

/// Lost packets, streams from the middle, padding.
#[test]
fn case_20_losses() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, JR_A5])]);
    let config = plain(RATIFIED);
    let round = [0x1000, 0x1004, 0x100c];
    let bytes = encode(&config, &image, &go(&round.repeat(10)));
    // Any packet lost: what is decoded comes to an end, and nothing is made up
    // beyond the next full address.
    for lost in 0..pieces(&bytes).len() {
        let mut rest = pieces(&bytes);
        rest.remove(lost);
        let events = decode(&config, &image, &rest.concat());
        assert!(events.gaps().len() <= 1);
    }
    // From the middle of a packet on.
    let good = [start(&config, 0x1000), branches(&config, "N", 8)];
    let tail = stream(&config, &[&good[..], &[support(REP)]].concat()).repeat(20);
    for cut in 0..bytes.len() {
        let joined = [&bytes[cut..], &tail].concat();
        let lines = decode(&config, &image, &joined).text();
        assert_eq!(lines.last().map(String::as_str), Some("off"), "{cut}");
    }
    // Zeros wherever there is room for them.
    let padded: Vec<u8> = pieces(&bytes)
        .iter()
        .flat_map(|p| [p, &[0; 5][..]].concat())
        .collect();
    let (padded, whole) = (
        decode(&config, &image, &padded),
        decode(&config, &image, &bytes),
    );
    assert_eq!(padded.text(), whole.text());
}

/// Options that change in the middle, and more of them than anybody knows.
#[test]
fn case_21_options_in_the_middle() {
    let ioptions = Ioptions::new(&[
        None,
        Some(Ioption::FullAddress),
        None,
        Some(Ioption::SequentialJump),
        None,
        None,
        None,
    ])
    .unwrap();
    let image = rv64(&[
        (0x1000, &[ADD, lui_a5(0x2000), JR_A5]),
        (0x2000, &[ADD, JR_A5]),
    ]);
    for version in VERSIONS {
        let config = Config {
            ioptions,
            ..plain(version)
        };
        let options = |ioptions| {
            Packet::Support(Support {
                ienable: true,
                ioptions,
                ..Support::default()
            })
        };
        let packets = [
            // Bits of no meaning are nothing to worry about.
            options(0b111_0101),
            start(&config, 0x1000),
            address(&config, 0x1000),
            address(&config, -0x1000),
            options(0b000_1000),
            address(&config, 0),
            options(0b000_0010),
            address(&config, 0x2000),
            support(NTR),
        ];
        // With sequential jumps the first jump is implied, the second told.
        let lines = [
            "1000+3>2000",
            "2000+2>1000",
            "1000+3>2000",
            "2000+2>1000",
            "1000+3>2000",
            "2000+1>2004",
            "off",
        ];
        tells(&config, &image, &packets, &lines);
    }
}

/// Code that is missing or was another: lost up to the next full address.
#[test]
fn case_22_other_code() {
    let real = rv64(&[
        (0x1000, &[ADD, b(8), ADD, jal(0, 0xff4)]),
        (0x2000, &[ADD, JR_A5]),
    ]);
    let known = rv64(&[(0x1000, &[ADD, ADD, ADD, jal(0, 0xff4)])]);
    let config = plain(RATIFIED);
    let trap = Do::Trap(0x2004, 0x1000, interrupt(7), Some(0));
    let way = way(&[
        &go(&[0x1000, 0x1004, 0x1008, 0x100c, 0x2000]),
        &[trap],
        &go(&[0x1000]),
    ]);
    let bytes = encode(&config, &real, &way);
    let events = decode(&config, &known, &bytes);
    assert_eq!(events.gaps().len(), 1);
    assert_eq!(events.pcs(&known).last(), Some(&0x1000));
}

/// Packets of data trace among the others. (Sources in one stream take an
/// encapsulation that names them.)
#[test]
fn case_23_data_packets() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, JR_A5])]);
    let config = plain(RATIFIED);
    let bytes = encode(&config, &image, &go(&[0x1000, 0x1004, 0x100c].repeat(5)));
    let mut mixed = Vec::new();
    for (i, piece) in pieces(&bytes).iter().enumerate() {
        let mut packet = Packet::read(&piece[1..], &config.layout()).unwrap();
        if let Packet::Support(support) = &mut packet {
            support.data.as_mut().unwrap().denable = true;
        }
        let payload = packet.write(&config.layout());
        payload.write_framed(Kind::Instruction, &mut mixed);
        let data = address(&config, 0x1234 << i).write(&config.layout());
        data.write_framed(Kind::Data, &mut mixed);
    }
    let (mixed, whole) = (
        decode(&config, &image, &mixed),
        decode(&config, &image, &bytes),
    );
    assert_eq!(mixed.text(), whole.text());
    assert_eq!(mixed.warned(), ["ET0209"]);
}
