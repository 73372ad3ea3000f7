use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use hartrace_flow as flow;
use hartrace_flow::{
    Consumer, Event, HartId, Image, Since, SpaceId, Totals, Version as CodeVersion,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::Random;
use hartrace_testkit::asm::{A0, ECALL, MRET, NOP, ZERO, beq, jal, jalr};

use super::Decoder;
use crate::{
    BranchMap, Config, Context, Encapsulation, Form, Kind, Packer, Packet, QualStatus, Report,
    Start, Support, Trap, Version,
};

/// Code of 32-bit instructions from 0x1000 on.
fn image(code: &[u32]) -> Image {
    let bytes: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &bytes, Isa::RV64GC);
    image
}

/// jalr x0, 0(a0)
const JR: u32 = jalr(ZERO, A0, 0);

/// beq x0, x0, by so many bytes
const fn branch(by: i64) -> u32 {
    beq(ZERO, ZERO, by)
}

/// jal x0, by so many bytes
const fn jump(by: i64) -> u32 {
    jal(ZERO, by)
}

fn config(version: Version) -> Config {
    Config::new(version, Xlen::Rv64)
}

/// Events as short lines.
#[derive(Default)]
struct Lines(Vec<String>);

impl Consumer for Lines {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push(match event {
            Event::Run(r) => format!("{:x}+{}>{:x}", r.start, r.insns, r.next),
            Event::Trap(t) => format!("trap {:x?} to {:x?}, {:?}", t.epc, t.handler, t.cause),
            Event::Context(o) => format!("{:?}", o.mode),
            Event::Gap(g) => format!("gap {} at {} of {}", g.reason.code, g.at, g.bytes),
            Event::Mark(m) => format!("{m:?}"),
            // Packets of one rule have no end.
            Event::Warning(w) if w.reason.code == crate::Fault::NoEnd.code() => {
                return ControlFlow::Continue(());
            }
            other => format!("{other:x?}"),
        });
        ControlFlow::Continue(())
    }
}

/// What packets say of the code, without the start that they all have.
fn decode_as(config: Config, code: &[u32], packets: &[Packet]) -> Vec<String> {
    let image = image(code);
    let mut bytes = Vec::new();
    for packet in packets {
        let payload = packet.write(&config.layout());
        payload.write_framed(Kind::Instruction, &mut bytes);
    }
    let mut lines = Lines::default();
    let mut decoder = Decoder::new(config, &image).unwrap();
    decoder.feed(&bytes, &mut lines);
    decoder.finish(&mut lines);
    if lines.0.starts_with(&["On".into(), "Some(M)".into()]) {
        lines.0.drain(..2);
    }
    lines.0
}

fn decode(code: &[u32], packets: &[Packet]) -> Vec<String> {
    decode_as(config(Version::V2_0), code, packets)
}

fn start(address: u64) -> Packet {
    Packet::Start(Start {
        branch: true,
        privilege: 3,
        address: address >> 1,
        ..Start::default()
    })
}

fn report(by: i64) -> Report {
    Report {
        address: (by >> 1) as u64 & (u64::MAX >> 1),
        ..Report::default()
    }
}

fn address(by: i64) -> Packet {
    Packet::Address(report(by))
}

fn branches(bits: u32, count: u8, address: Option<Report>) -> Packet {
    let map = BranchMap { bits, count };
    Packet::Branches { map, address }
}

fn ended(qual_status: QualStatus) -> Packet {
    Packet::Support(Support {
        qual_status,
        ..Support::default()
    })
}

fn trap(ecause: u32, thaddr: bool, address: u64) -> Packet {
    Packet::Trap(Trap {
        branch: true,
        privilege: 3,
        ecause,
        thaddr,
        address: Some(address >> 1),
        tval: Some(0),
        ..Trap::default()
    })
}

fn interrupt(ecause: u32, thaddr: bool, address: u64) -> Packet {
    let Packet::Trap(trap) = trap(ecause, thaddr, address) else {
        panic!("not a trap")
    };
    Packet::Trap(Trap {
        interrupt: true,
        tval: None,
        ..trap
    })
}

/// 6.6.2: looplabel is 0x1004; an indirect jump at 0x100c closes the loop.
const LOOP: [u32; 8] = [NOP, NOP, NOP, JR, NOP, NOP, NOP, NOP];

#[test]
fn looplabel_1_a_jump_and_the_loop_goes_on() {
    let packets = [
        start(0x1000),
        address(4),
        address(0),
        ended(QualStatus::EndedNtr),
    ];
    let lines = decode(&LOOP, &packets);
    assert_eq!(lines, ["1000+4>1004", "1004+3>1004", "1004+1>1008", "Off"]);
}

#[test]
fn looplabel_2_an_exception_in_the_second_round() {
    let jumped = Packet::Address(Report {
        updiscon: true,
        ..report(4)
    });
    let lines = decode(&LOOP, &[start(0x1000), jumped, trap(5, true, 0x1018)]);
    let expected = [
        "1000+4>1004",
        "1004+1>1008",
        "trap Some(1008) to Some(1018), Exception(Some(5))",
        "1018+1>101c",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn looplabel_3_an_exception_in_the_first_round() {
    let lines = decode(&LOOP, &[start(0x1000), address(4), trap(5, true, 0x1018)]);
    let expected = [
        "1000+1>1004",
        "1004+1>1008",
        "trap Some(1008) to Some(1018), Exception(Some(5))",
        "1018+1>101c",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn looplabel_4_a_notification_in_the_first_round() {
    let notified = Packet::Address(Report {
        notify: true,
        ..report(4)
    });
    let packets = [
        start(0x1000),
        notified,
        address(0),
        ended(QualStatus::EndedNtr),
    ];
    let lines = decode(&LOOP, &packets);
    let expected = ["1000+1>1004", "Notify", "1004+3>1004", "1004+1>1008", "Off"];
    assert_eq!(lines, expected);
}

#[test]
fn tracing_ends_in_the_first_or_the_second_round() {
    let first = [start(0x1000), address(4), ended(QualStatus::EndedRep)];
    assert_eq!(decode(&LOOP, &first), ["1000+1>1004", "1004+1>1008", "Off"]);
    let second = [start(0x1000), address(4), ended(QualStatus::EndedNtr)];
    assert_eq!(
        decode(&LOOP, &second),
        ["1000+4>1004", "1004+1>1008", "Off"]
    );
}

#[test]
fn an_end_that_is_told_twice() {
    // The reference encoder reports the last instruction once more.
    let code = [NOP, JR, NOP, NOP];
    let packets = [
        start(0x1000),
        address(8),
        address(0),
        ended(QualStatus::EndedRep),
    ];
    let lines = decode(&code, &packets);
    assert_eq!(lines, ["1000+2>1008", "1008+1>100c", "Off"]);
}

#[test]
fn a_synchronisation_further_on_does_not_make_it_the_first_round() {
    // The jump back was told; two instructions later the encoder synchronises,
    // with no branches to tell before that.
    let lines = decode(&LOOP, &[start(0x1000), address(4), start(0x100c)]);
    assert_eq!(lines, ["1000+4>1004", "1004+2>100c", "100c+1>1010"]);
    // At the very next instruction it would have said `updiscon`.
    let lines = decode(&LOOP, &[start(0x1000), address(4), start(0x1008)]);
    assert_eq!(lines, ["1000+1>1004", "1004+1>1008", "1008+1>100c"]);
}

#[test]
fn what_is_between_two_packets_does_not_decide() {
    // A context packet says nothing about which round it was.
    let context = Packet::Context(Context {
        privilege: 3,
        ..Context::default()
    });
    let packets = [start(0x1000), address(4), context, address(0)];
    let lines = decode(&LOOP, &packets);
    let rounds = ["1000+1>1004", "1004+3>1004", "1004+3>1004", "1004+1>1008"];
    assert_eq!(lines, rounds);
    let packets = [start(0x1000), address(4), context, trap(5, true, 0x1018)];
    let lines = decode(&LOOP, &packets);
    assert_eq!(lines[..2], ["1000+1>1004", "1004+1>1008"]);
    assert!(lines[2].starts_with("trap Some(1008)"), "{lines:?}");
}

#[test]
fn a_way_met_often_is_the_same_way() {
    // The remembered way and the one walked anew tell the same.
    let mut packets = vec![start(0x1000), address(4)];
    packets.extend([address(0); 5]);
    packets.push(ended(QualStatus::EndedNtr));
    let lines = decode(&LOOP, &packets);
    assert_eq!(lines.len(), 8);
    assert!(lines[1..6].iter().all(|l| l == "1004+3>1004"), "{lines:?}");
}

#[test]
fn a_target_that_is_a_branch_keeps_its_outcome() {
    // jr to a branch, taken to the jr again.
    let code = [NOP, JR, branch(-4), NOP];
    let map = |bits, by| branches(bits, 1, Some(report(by)));
    let mut packets = vec![start(0x1000), map(0, 8)];
    packets.extend([map(0, 0); 4]);
    packets.push(map(1, 0));
    packets.push(ended(QualStatus::EndedNtr));
    let lines = decode(&code, &packets);
    assert_eq!(lines[..2], ["1000+2>1008", "1008+1>1004"]);
    assert_eq!(lines[lines.len() - 2..], ["1008+1>100c", "Off"]);
}

#[test]
fn thirty_one_branches_and_one_more() {
    // A start on a branch gives one outcome, the full map 31 more.
    let code = [branch(0), NOP, NOP];
    let first = Packet::Start(Start {
        branch: false,
        privilege: 3,
        address: 0x1000 >> 1,
        ..Start::default()
    });
    let packets = [
        first,
        branches(0, 31, None),
        branches(1, 1, Some(report(4))),
        ended(QualStatus::EndedRep),
    ];
    let lines = decode(&code, &packets);
    let (last, rounds) = lines.split_last().unwrap();
    assert_eq!((last.as_str(), rounds.len()), ("Off", 34));
    assert!(rounds[..32].iter().all(|l| l == "1000+1>1000"), "{lines:?}");
    assert_eq!(rounds[32..], ["1000+1>1004", "1004+1>1008"]);
}

#[test]
fn an_ecall_that_retired_is_where_its_trap_was_taken() {
    let code = [NOP, ECALL, NOP, NOP];
    let lines = decode(&code, &[start(0x1000), address(4), trap(11, true, 0x100c)]);
    let taken = "trap Some(1004) to Some(100c), Exception(Some(11))";
    assert_eq!(lines, ["1000+1>1004", taken, "100c+1>1010"]);
    // And one that did not: the instruction before it was the last.
    let lines = decode(&code, &[start(0x1000), trap(11, true, 0x100c)]);
    assert_eq!(lines, ["1000+1>1004", taken, "100c+1>1010"]);
}

#[test]
fn a_trap_behind_a_branch_uses_its_outcome() {
    let code = [branch(8), NOP, NOP, NOP];
    let packets = [
        Packet::Start(Start {
            branch: false,
            privilege: 3,
            address: 0x1000 >> 1,
            ..Start::default()
        }),
        trap(2, true, 0x1004),
    ];
    let lines = decode(&code, &packets);
    let taken = "trap Some(1008) to Some(1004), Exception(Some(2))";
    assert_eq!(lines, ["1000+1>1008", taken, "1004+1>1008"]);
}

#[test]
fn an_exception_at_the_target_of_a_jump() {
    let code = [JR, NOP, NOP];
    let packets = [start(0x1000), trap(12, false, 0x9000), start(0x1008)];
    let lines = decode(&code, &packets);
    let taken = "trap Some(9000) to Some(1008), Exception(Some(12))";
    assert_eq!(lines, ["1000+1>9000", taken, "1008+1>100c"]);
    // Where an interrupt was taken nothing tells.
    let packets = [start(0x1000), interrupt(7, false, 0x9000), start(0x1008)];
    let lines = decode(&code, &packets);
    let taken = "trap None to Some(1008), Interrupt(Some(7))";
    assert_eq!(lines, ["1000+1>1004", taken, "1008+1>100c"]);
}

#[test]
fn two_traps_in_a_row() {
    let code = [NOP, NOP, NOP, NOP];
    let packets = [start(0x1000), trap(2, false, 0), trap(5, true, 0x100c)];
    let lines = decode(&code, &packets);
    let expected = [
        "1000+1>1004",
        "trap Some(1004) to None, Exception(Some(2))",
        "trap None to Some(100c), Exception(Some(5))",
        "100c+1>1010",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_trap_on_the_first_instruction() {
    let packets = [trap(2, false, 0x1004), start(0x1008)];
    let lines = decode(&[NOP, NOP, NOP], &packets);
    let taken = "trap Some(1004) to Some(1008), Exception(Some(2))";
    assert_eq!(lines, [taken, "1008+1>100c"]);
}

#[test]
fn the_draft_tells_where_an_illegal_instruction_was() {
    let code = [JR, NOP, NOP];
    let illegal = Packet::Trap(Trap {
        branch: true,
        privilege: 3,
        ecause: 2,
        thaddr: true,
        address: Some(0x1008 >> 1),
        tval: Some(0x9000),
        ..Trap::default()
    });
    let lines = decode_as(config(Version::V1_1_1), &code, &[start(0x1000), illegal]);
    let taken = "trap Some(9000) to Some(1008), Exception(Some(2))";
    assert_eq!(lines, ["1000+1>9000", taken, "1008+1>100c"]);
}

#[test]
fn another_privilege_takes_a_return_from_a_trap() {
    // 0x1004 comes by on the way to the mret, but in M-mode.
    let code = [NOP, NOP, MRET, NOP];
    let user = Packet::Start(Start {
        branch: true,
        privilege: 0,
        address: 0x1004 >> 1,
        ..Start::default()
    });
    let lines = decode(&code, &[start(0x1000), user]);
    assert_eq!(lines, ["1000+3>1004", "Some(U)", "1004+1>1008"]);
    // Without a return there is none.
    let lines = decode(&[NOP, NOP, JR, NOP], &[start(0x1000), user]);
    assert_eq!(lines[0], "gap ET0307 at 4 of 0");
}

#[test]
fn another_privilege_and_another_context_at_once() {
    // 0x1004 comes by on the way; a change of context that nobody reported
    // before does not make that the place.
    let mut config = config(Version::V2_0);
    config.context_width = 8;
    let user = Packet::Start(Start {
        branch: true,
        privilege: 0,
        context: 5,
        address: 0x1004 >> 1,
        ..Start::default()
    });
    let lines = decode_as(config, &[NOP, NOP, MRET, NOP], &[start(0x1000), user]);
    assert_eq!(lines, ["1000+3>1004", "Some(U)", "1004+1>1008"]);
}

#[test]
fn sequentially_inferable_returns_depend_on_the_port() {
    // auipc ra, 0; jalr x0, 12(ra): a return by its registers, to 0x100c.
    let code = [0x97, 0x00c0_8067, NOP, NOP, JR];
    let mut config = config(Version::V2_0);
    config.sijump = true;
    config.ioptions = crate::Ioptions::new(&[]).unwrap();
    let packets = [start(0x1000), address(12), ended(QualStatus::EndedRep)];
    let lines = decode_as(config.clone(), &code, &packets);
    assert_eq!(lines, ["1000+2>100c", "100c+1>1010", "Off"]);
    // With four bits of itype the target is told; it could be another one.
    let packets = [start(0x1000), address(8), ended(QualStatus::EndedNtr)];
    let lines = decode_as(config.clone(), &code, &packets);
    assert_eq!(lines, ["1000+2>1008", "1008+1>100c", "Off"]);
    // With three it is not: what is told is the next jump's.
    config.sijump_returns = true;
    let lines = decode_as(config, &code, &packets);
    assert_eq!(lines, ["1000+2>100c", "100c+2>1008", "1008+1>100c", "Off"]);
}

#[test]
fn a_jump_through_x0_is_absolute() {
    // jalr x0, 0x200(x0) goes to 0x200 wherever it stands.
    let mut image = image(&[0x2000_0067]);
    image.add_raw(SpaceId::FIRST, 0x200, &NOP.to_le_bytes(), Isa::RV64GC);
    let config = config(Version::V2_0);
    let mut bytes = Vec::new();
    for packet in [start(0x1000), address(0x200 - 0x1000)] {
        let payload = packet.write(&config.layout());
        payload.write_framed(Kind::Instruction, &mut bytes);
    }
    let mut lines = Lines::default();
    let mut decoder = Decoder::new(config, &image).unwrap();
    decoder.feed(&bytes, &mut lines);
    decoder.finish(&mut lines);
    assert_eq!(lines.0[2..], ["1000+1>200", "200+1>204"]);
}

#[test]
fn loops_without_the_address_end() {
    for code in [[jump(0), NOP], [NOP, jump(-4)]] {
        let lines = decode(&code, &[start(0x1000), address(0x100), start(0x1000)]);
        assert!(
            lines.iter().any(|l| l.starts_with("gap ET0306")),
            "{lines:?}"
        );
    }
}

#[test]
fn whatever_does_not_fit_is_a_gap_up_to_the_next_full_address() {
    // A branch and no outcome; more outcomes than branches; no code.
    for (code, packet, fault) in [
        ([branch(8), NOP, NOP, JR], address(12), "ET0302"),
        (
            [NOP, NOP, NOP, JR],
            branches(0, 2, Some(report(4))),
            "ET0303",
        ),
        ([NOP, NOP, NOP, NOP], address(0x100), "ET0301"),
        ([NOP, ECALL, NOP, NOP], address(12), "ET0305"),
    ] {
        let not_taken = Packet::Start(Start {
            branch: true,
            privilege: 3,
            address: 0x1000 >> 1,
            ..Start::default()
        });
        let after = [address(4), start(0x1008), ended(QualStatus::EndedNtr)];
        let mut packets = vec![not_taken, packet];
        packets.extend(after);
        let code = match fault {
            // The start told the outcome of the first branch.
            "ET0302" => [branch(8), branch(8), NOP, JR],
            _ => code,
        };
        let lines = decode(&code, &packets);
        let gap = lines.iter().position(|l| l.starts_with("gap")).unwrap();
        assert!(lines[gap].contains(fault), "{fault}: {lines:?}");
        assert_eq!(lines[lines.len() - 2..], ["1008+1>100c", "Off"], "{fault}");
    }
}

#[test]
fn lost_packets_are_a_gap() {
    let packets = [
        start(0x1000),
        address(4),
        ended(QualStatus::TraceLost),
        start(0x1008),
    ];
    let lines = decode(&[NOP, NOP, NOP, JR], &packets);
    let (first, rest) = lines.split_at(2);
    assert_eq!(first, ["1000+1>1004", "1004+1>1008"]);
    assert!(rest[0].starts_with("gap ET0401"), "{rest:?}");
    assert_eq!(rest[1], "1008+1>100c");
}

#[test]
fn a_mode_nobody_understands_is_a_gap() {
    let odd = Packet::Support(Support {
        ienable: true,
        ioptions: 1,
        ..Support::default()
    });
    let plain = Packet::Support(Support {
        ienable: true,
        ..Support::default()
    });
    let packets = [odd, start(0x1000), address(4), plain, start(0x1008)];
    let lines = decode(&[NOP, NOP, NOP, NOP], &packets);
    assert!(lines[0].starts_with("gap ET0206"), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "1008+1>100c");
}

#[test]
fn a_support_packet_changes_the_mode() {
    let full = Packet::Support(Support {
        ienable: true,
        ioptions: 1 << 2,
        ..Support::default()
    });
    let packets = [
        full,
        start(0x1000),
        address(0x1008),
        ended(QualStatus::EndedNtr),
    ];
    let lines = decode(&[NOP, JR, NOP], &packets);
    assert_eq!(lines, ["1000+2>1008", "1008+1>100c", "Off"]);
}

/// A damaged packet may look like a support packet. What it says is not kept
/// when nothing fits any more.
#[test]
fn a_support_packet_in_the_middle_is_in_doubt() {
    let code = [NOP, JR, NOP, NOP];
    for ioptions in [1, 1 << 2] {
        let support = Packet::Support(Support {
            ienable: true,
            ioptions,
            ..Support::default()
        });
        let nonsense = [start(0x1000), address(0x40), address(0x40)];
        // Right before a synchronisation it may be meant; nothing fits either.
        for doubtful in [&nonsense[1..], &nonsense] {
            let mut packets = vec![start(0x1000), support];
            packets.extend(doubtful);
            packets.extend([start(0x1000), address(8), ended(QualStatus::EndedNtr)]);
            let lines = decode(&code, &packets);
            assert!(lines.iter().any(|l| l.starts_with("gap")), "{lines:?}");
            let end = &lines[lines.len() - 3..];
            assert_eq!(end, ["1000+2>1008", "1008+1>100c", "Off"], "{lines:?}");
        }
    }
}

#[test]
fn narrow_addresses_are_extended_at_the_top() {
    let mut config = config(Version::V2_0);
    config.iaddress_width = 40;
    let mut image = Image::new();
    let code: Vec<u8> = [JR, NOP].iter().flat_map(|w| w.to_le_bytes()).collect();
    image.add_raw(SpaceId::FIRST, 0xffff_ffff_8000_0000, &code, Isa::RV64GC);
    let mut bytes = Vec::new();
    let packets = [
        Packet::Start(Start {
            branch: true,
            privilege: 1,
            address: 0xff_8000_0000 >> 1,
            ..Start::default()
        }),
        address(4),
        ended(QualStatus::EndedNtr),
    ];
    for packet in packets {
        let payload = packet.write(&config.layout());
        payload.write_framed(Kind::Instruction, &mut bytes);
    }
    let mut lines = Lines::default();
    let mut decoder = Decoder::new(config, &image).unwrap();
    decoder.feed(&bytes, &mut lines);
    let expected = [
        "ffffffff80000000+1>ffffffff80000004",
        "ffffffff80000004+1>ffffffff80000008",
    ];
    assert_eq!(lines.0[2..4], expected);
}

/// What a consumer that only counts gets, or one that gets the runs.
#[derive(Debug, Default, PartialEq)]
struct Told {
    counts: bool,
    insns: u64,
    others: Vec<String>,
}

impl Consumer for Told {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.insns += u64::from(run.insns),
            Event::Code(_) => {}
            other => self.others.push(format!("{hart:?} {other:x?}")),
        }
        ControlFlow::Continue(())
    }

    fn only_counts(&self) -> bool {
        self.counts
    }

    fn counted(&mut self, _: HartId, counted: Totals) -> ControlFlow<()> {
        self.insns += counted.insns;
        ControlFlow::Continue(())
    }
}

/// Code that changes again and again, at moments that count from different packets of two
/// harts, and is another one in a context: a way through it is the same for some time only,
/// another hart is not as far, and earlier it was another one.
#[test]
fn ways_that_are_the_same_for_some_time() {
    let config = Config {
        context_width: 4,
        encapsulation: Encapsulation {
            form: Form::Riscv,
            src_bits: 3,
            ..Encapsulation::default()
        },
        ..config(Version::V2_0)
    };
    let version = |context, since, content| CodeVersion {
        hart: None,
        context,
        since,
        content,
        doubtful: false,
    };
    // 1000: c.nop; 1002: c.nop, c.nop, or nop; 1006: c.beqz a0, 1000; 1008: c.jr a1.
    let contents: [&[u8]; 2] = [&[1, 0, 1, 0], &[0x13, 0, 0, 0]];
    let code = [1, 0, 0, 0, 0, 0, 0x6d, 0xdd, 0x82, 0x85];
    let mut random = Random::new(11);
    for _ in 0..20 {
        let mut bytes = Vec::new();
        let put = |src: u16, packet: &Packet, bytes: &mut Vec<u8>| {
            let payload = packet.write(&config.layout());
            let mut packer = Packer::new(config.encapsulation, src);
            bytes.extend_from_slice(packer.pack(Kind::Instruction, payload.bytes(), 0).bytes());
        };
        let lap = |random: &mut Random| match random.below(8) {
            // Round and round, without an address.
            0 => branches(0, 31, None),
            1 => branches(0b10, 2, Some(report(0))),
            _ => branches(1, 1, Some(report(0))),
        };
        let mut versions = [version(None, Since::Start, 0)].to_vec();
        let in_context = Packet::Start(Start {
            branch: true,
            privilege: 3,
            context: 1,
            address: 0x1000 >> 1,
            ..Start::default()
        });
        let mut seams = Vec::new();
        for src in [0, 1] {
            put(src, &start(0x1000), &mut bytes);
        }
        for phase in 0..7 {
            // One of them has a new packet, and both go on.
            let src = random.below(2) as u16;
            put(src, &branches(0, 31, None), &mut bytes);
            seams.push(bytes.len());
            match random.below(2) {
                0 => put(src, &start(0x1000), &mut bytes),
                _ => put(src, &in_context, &mut bytes),
            }
            if phase % 2 == 1 {
                let at = Since::Sync {
                    offset: bytes.len() as u64,
                    halfwords: 5 * random.below(20),
                };
                versions.push(version(None, at, versions.len() % 2));
            }
            for _ in 0..20 + random.below(60) {
                let packet = lap(&mut random);
                put(random.below(2) as u16, &packet, &mut bytes);
            }
        }
        if random.below(2) == 0 {
            let own = version(Some(flow::Context(1)), Since::Start, 1);
            versions.insert(0, own);
        }
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
        image.vary(0x1002..0x1006, &contents, &versions, Isa::RV64GC);
        let whole = |counts, from: usize, decoder: &mut Decoder<'_>| {
            let mut told = Told {
                counts,
                ..Told::default()
            };
            decoder.feed(&bytes[from..], &mut told);
            decoder.finish(&mut told);
            (told.insns, told.others)
        };
        let mut plain = Decoder::new(config.clone(), &image).unwrap();
        let mut counting = Decoder::new(config.clone(), &image).unwrap();
        let all = whole(false, 0, &mut plain);
        assert!(!all.1.iter().any(|event| event.contains("Gap")), "{all:?}");
        assert_eq!(whole(true, 0, &mut counting), all);
        // Back to any place, as often as one likes.
        for _ in 0..10 {
            let from = seams[random.below(seams.len() as u64) as usize];
            plain.restart(0);
            plain.feed(&bytes[..from], &mut Told::default());
            let seam = plain.seam();
            let rest = whole(false, from, &mut plain);
            counting.resume(&seam);
            assert_eq!(whole(true, from, &mut counting), rest);
        }
    }
}
