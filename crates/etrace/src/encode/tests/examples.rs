//! Table 4.8, chapter 12, and the loop of 6.6.2.

use super::*;

/// Table 4.8: nine instructions in four blocks.
#[test]
fn the_example_of_the_ingress_port() {
    let block = |iaddr, iretire, ilastsize, itype| Ingress {
        itype,
        iretire,
        ilastsize,
        iaddr,
        ..Ingress::default()
    };
    let blocks = [
        block(0x1000, 7, 0, Itype::IndirectCall),
        block(0x940, 3, 0, Itype::NotTaken),
        block(0x946, 1, 0, Itype::Taken),
        block(0x988, 4, 1, Itype::None),
    ];
    for version in VERSIONS {
        let inner = [
            start(0x1000),
            address(0x1000, 0x940),
            branches(map(2, 0b01), delta(0x940, 0x98c)),
        ];
        check(&config(version), &blocks, &inner, QualStatus::EndedRep);
    }
}

fn c(iaddr: u64) -> Ingress {
    at(iaddr, 1, Itype::None)
}

fn ret(iaddr: u64) -> Ingress {
    at(iaddr, 1, Itype::Return)
}

fn jal(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::DirectCall)
}

/// The payloads, without the support packets.
fn payloads(blocks: &[Ingress]) -> Vec<Vec<u8>> {
    let mut encoder = encoder(&v2());
    feed(&mut encoder, blocks);
    encoder.finish();
    let Packets(all) = encoder.into_sink();
    let [_, inner @ .., _] = &all[..] else {
        panic!("no support packets")
    };
    inner.iter().map(|bytes| bytes[1..].to_vec()).collect()
}

/// Examples 1 and 2: a call tells nothing, the return from it an address.
#[test]
fn a_call_and_its_return() {
    let blocks = [
        i(0x8000_1a80),
        jal(0x8000_1a84),
        c(0x8000_1178),
        c(0x8000_1188),
        ret(0x8000_118a),
        i(0x8000_1a88),
        i(0x8000_1a8c),
    ];
    let told = payloads(&blocks);
    assert_eq!(told[1..], [vec![0x12], vec![0x0a]]);
    let inner = [
        start(0x8000_1a80),
        address(0x8000_1a80, 0x8000_1a88),
        address(0x8000_1a88, 0x8000_1a8c),
    ];
    check(&v2(), &blocks, &inner, QualStatus::EndedRep);
}

/// Example 3: branches=1, branch_map=0, a difference of 0xab0.
#[test]
fn a_taken_branch_and_a_return() {
    let blocks = [
        c(0x8000_10da),
        taken(0x8000_10dc),
        c(0x8000_10ec),
        c(0x8000_10ee),
        c(0x8000_10f0),
        c(0x8000_10f2),
        c(0x8000_10f4),
        ret(0x8000_10f6),
        i(0x8000_1b8a),
        i(0x8000_1b8e),
    ];
    let told = payloads(&blocks);
    assert_eq!(told[1], [0x05, 0x58, 0x05]);
    let packet = Packet::read(&told[1], &v2().layout()).unwrap();
    assert_eq!(
        packet,
        branches(map(1, 0), delta(0x8000_10da, 0x8000_10da + 0xab0))
    );
}

/// Example 5 and, behind it, 4: branches=2, branch_map=2, a difference of
/// -0x10c; branches=3, branch_map=3, a difference of 0x148.
#[test]
fn branches_calls_and_returns() {
    let blocks = [
        c(0x8000_121c),
        at(0x8000_121e, 1, Itype::Taken),
        c(0x8000_124a),
        c(0x8000_124c),
        i(0x8000_124e),
        c(0x8000_1252),
        jal(0x8000_1254),
        c(0x8000_1100),
        c(0x8000_1102),
        c(0x8000_1104),
        c(0x8000_1106),
        c(0x8000_1108),
        c(0x8000_110a),
        jal(0x8000_110c),
        c(0x8000_10f8),
        i(0x8000_10fa),
        ret(0x8000_10fe),
        at(0x8000_1110, 1, Itype::NotTaken),
        c(0x8000_1112),
        c(0x8000_1114),
        not_taken(0x8000_1116),
        at(0x8000_111a, 1, Itype::NotTaken),
        c(0x8000_111c),
        taken(0x8000_111e),
        c(0x8000_115e),
        c(0x8000_1160),
        c(0x8000_1162),
        c(0x8000_1164),
        c(0x8000_1166),
        ret(0x8000_1168),
        i(0x8000_1258),
        i(0x8000_125c),
    ];
    let told = payloads(&blocks);
    assert_eq!(told[1], [0x09, 0xe9, 0xfd]);
    assert_eq!(told[2], [0x8d, 0x91, 0x02]);
    let layout = v2().layout();
    let Packet::Branches {
        map,
        address: Some(report),
    } = Packet::read(&told[1], &layout).unwrap()
    else {
        panic!("not branches with an address")
    };
    assert_eq!((map.count, map.bits), (2, 2));
    assert_eq!(report.address << 1, -0x10c_i64 as u64);
    // "updiscon=1" in the text: the bit as it is sent, after a negative
    // difference.
    assert_eq!((report.sent(&layout)[1], report.updiscon), (true, false));
}

const LOOP: u64 = 0x1004;

/// Once into the loop of 6.6.2 and round: opcodes A, B, C, the jump.
fn round() -> Vec<Ingress> {
    vec![i(LOOP - 4), i(LOOP), i(LOOP + 4), jalr(LOOP + 8)]
}

/// Scenario 1: the second iteration goes on.
#[test]
fn a_loop_goes_on() {
    let blocks = [round(), vec![i(LOOP), i(LOOP + 4), jalr(LOOP + 8), i(LOOP)]].concat();
    for version in VERSIONS {
        let inner = [
            start(LOOP - 4),
            address(LOOP - 4, LOOP),
            address(LOOP, LOOP),
        ];
        check(&config(version), &blocks, &inner, QualStatus::EndedNtr);
    }
}

/// Scenario 2: an exception, a change of mode or a synchronisation in the
/// second iteration.
#[test]
fn a_format_3_follows_in_the_second_iteration() {
    let told = Packet::Address(updiscon(delta(LOOP - 4, LOOP)));
    for version in VERSIONS {
        let trap = vec![i(LOOP), exception(LOOP + 4, 5, 0x77), i(0x2000)];
        let inner = [start(LOOP - 4), told, handler(5, 0x2000, 0x77)];
        let blocks = [round(), trap].concat();
        check(&config(version), &blocks, &inner, QualStatus::EndedNtr);

        let mode = vec![i(LOOP), in_mode(Mode::U, i(LOOP + 4))];
        let inner = [start(LOOP - 4), told, start_in(Mode::U, LOOP + 4)];
        let blocks = [round(), mode].concat();
        check(&config(version), &blocks, &inner, QualStatus::EndedNtr);

        let resync = Resync {
            unit: ResyncUnit::Halfwords,
            max: 0,
            rule: ResyncRule::Exceeded,
        };
        let config = Config {
            resync,
            ..config(version)
        };
        let mut long = vec![i(LOOP - 20), i(LOOP - 16), i(LOOP - 12), i(LOOP - 8)];
        long.extend(round());
        long.extend([i(LOOP), i(LOOP + 4)]);
        let told = Packet::Address(updiscon(delta(LOOP - 20, LOOP)));
        let inner = [start(LOOP - 20), told, start(LOOP + 4)];
        check(&config, &long, &inner, QualStatus::EndedNtr);
    }
}

/// Scenario 3: an exception right after the first execution.
#[test]
fn an_exception_in_the_first_iteration() {
    let blocks = [i(LOOP - 4), i(LOOP), exception(LOOP + 4, 5, 0), i(0x2000)];
    for version in VERSIONS {
        let inner = [
            start(LOOP - 4),
            address(LOOP - 4, LOOP),
            handler(5, 0x2000, 0),
        ];
        check(&config(version), &blocks, &inner, QualStatus::EndedNtr);
    }
}

/// Scenario 4: the first execution is notified with its own bit, others would
/// have been told anyway.
#[test]
fn a_notification_in_each_iteration() {
    let told = Ingress {
        trigger: Trigger::from_bits(4),
        ..i(LOOP)
    };
    let blocks = [i(LOOP - 4), told, jalr(LOOP + 4), told, i(LOOP + 4)];
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            ..config(version)
        };
        let inner = [
            start(LOOP - 4),
            Packet::Address(notify(delta(LOOP - 4, LOOP))),
            address(LOOP, LOOP),
            address(LOOP, LOOP + 4),
        ];
        check(&config, &blocks, &inner, QualStatus::EndedRep);
    }
}

/// 6.5.1: the same loop where the trace ends.
#[test]
fn the_trace_ends_in_either_iteration() {
    for version in VERSIONS {
        let config = config(version);
        let first = [i(LOOP - 4), i(LOOP)];
        let inner = [start(LOOP - 4), address(LOOP - 4, LOOP)];
        check(&config, &first, &inner, QualStatus::EndedRep);
        let second = [round(), vec![i(LOOP)]].concat();
        check(&config, &second, &inner, QualStatus::EndedNtr);
    }
}
