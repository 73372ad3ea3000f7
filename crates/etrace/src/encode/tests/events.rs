//! Starts and stops, triggers, filters, loss.

use hartrace_flow::filter::FilterConfig;

use super::*;
use crate::MIN_QUEUE;

const A: u64 = 0x1000;

fn triggered(bits: u8, block: Ingress) -> Ingress {
    Ingress {
        trigger: Trigger::from_bits(bits),
        ..block
    }
}

fn on(block: Ingress) -> Ingress {
    triggered(1, block)
}

fn off(block: Ingress) -> Ingress {
    triggered(2, block)
}

fn noted(block: Ingress) -> Ingress {
    triggered(4, block)
}

fn with_triggers(version: Version) -> Config {
    Config {
        triggers: true,
        ..config(version)
    }
}

fn halted() -> Ingress {
    Ingress {
        halted: true,
        ..Ingress::default()
    }
}

fn idle() -> Ingress {
    Ingress::default()
}

#[test]
fn notifications() {
    for version in VERSIONS {
        let config = with_triggers(version);
        // On an instruction, a branch, a jump, the target of one.
        let blocks = [
            i(A),
            noted(i(A + 4)),
            noted(taken(A + 8)),
            noted(jalr(A + 0x20)),
            noted(i(0x2000)),
            i(0x2004),
            i(0x2008),
        ];
        let inner = [
            start(A),
            Packet::Address(notify(delta(A, A + 4))),
            branches(map(1, 0), notify(delta(A + 4, A + 8))),
            Packet::Address(notify(delta(A + 8, A + 0x20))),
            address(A + 0x20, 0x2000),
            address(0x2000, 0x2008),
        ];
        check(&config, &blocks, &inner, QualStatus::EndedRep);
        // Before a trap, at the end; what a start told needs no more.
        let blocks = [
            noted(i(A)),
            noted(i(A + 4)),
            exception(A + 8, 5, 0),
            i(0x8000),
            noted(i(0x8004)),
        ];
        let inner = [
            start(A),
            Packet::Address(notify(delta(A, A + 4))),
            handler(5, 0x8000, 0),
            Packet::Address(notify(delta(0x8000, 0x8004))),
        ];
        check(&config, &blocks, &inner, QualStatus::EndedNtr);
    }
}

/// It names the last instruction of its block.
#[test]
fn a_notification_of_a_block() {
    let block = Ingress {
        iretire: 6,
        ..noted(i(A + 4))
    };
    let inner = [
        start(A),
        Packet::Address(notify(delta(A, A + 12))),
        address(A + 12, A + 16),
    ];
    let blocks = [i(A), block, i(A + 16)];
    check(
        &with_triggers(Version::V2_0),
        &blocks,
        &inner,
        QualStatus::EndedRep,
    );
    // Where none retired there is none to name; nor are there triggers.
    let blocks = [i(A), noted(exception(A + 4, 5, 0)), i(0x8000)];
    let inner = [start(A), handler(5, 0x8000, 0)];
    check(
        &with_triggers(Version::V2_0),
        &blocks,
        &inner,
        QualStatus::EndedNtr,
    );
    let blocks = [i(A), noted(i(A + 4)), on(off(i(A + 8)))];
    let inner = [start(A), address(A, A + 8)];
    check(&v2(), &blocks, &inner, QualStatus::EndedRep);
}

#[test]
fn triggers_start_and_stop() {
    let config = Config {
        starts_disabled: true,
        ..with_triggers(Version::V2_0)
    };
    let blocks = [
        i(A),
        on(i(A + 4)),
        i(A + 8),
        off(i(A + 12)),
        i(A + 16),
        i(A + 20),
        on(jalr(A + 24)),
        off(i(0x2000)),
        i(0x2004),
    ];
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start(A + 4),
        address(A + 4, A + 12),
        support(&config, false, QualStatus::EndedRep),
        support(&config, true, QualStatus::NoChange),
        start(A + 24),
        address(A + 24, 0x2000),
        support(&config, false, QualStatus::EndedNtr),
    ];
    assert_eq!(packets(&config, &blocks), expected);
    // The same if nothing follows.
    assert_eq!(packets(&config, &blocks[..8]), expected);
    // Never enabled.
    assert_eq!(packets(&config, &blocks[..1]), []);
}

/// 2.0, table 4.7: off and then on is on; on and off at once is one block.
#[test]
fn triggers_that_follow_each_other() {
    let config = with_triggers(Version::V2_0);
    let blocks = [i(A), off(i(A + 4)), on(i(A + 8)), i(A + 12)];
    let inner = [start(A), address(A, A + 12)];
    check(&config, &blocks, &inner, QualStatus::EndedRep);
    let config = Config {
        starts_disabled: true,
        ..config
    };
    let block = Ingress {
        iretire: 4,
        ..triggered(3, i(A + 4))
    };
    let inner = [start(A + 4), address(A + 4, A + 8)];
    let blocks = [i(A), block, i(A + 12)];
    check(&config, &blocks, &inner, QualStatus::EndedRep);
    // Pulses may come while nothing retires.
    let blocks = [on(idle()), i(A), off(idle()), i(A + 4)];
    check(&config, &blocks, &[start(A)], QualStatus::EndedNtr);
}

#[test]
fn a_hart_halts() {
    for version in VERSIONS {
        let config = config(version);
        let blocks = [
            i(A),
            not_taken(A + 4),
            halted(),
            // The debugger's own.
            Ingress {
                halted: true,
                ..i(0x100)
            },
            i(A + 8),
            i(A + 12),
        ];
        let expected = [
            support(&config, true, QualStatus::NoChange),
            start(A),
            branches(map(1, 1), delta(A, A + 4)),
            support(&config, true, QualStatus::EndedRep),
            start(A + 8),
            address(A + 8, A + 12),
            support(&config, false, QualStatus::EndedRep),
        ];
        assert_eq!(packets(&config, &blocks), expected);
        // With its last block.
        let last = Ingress {
            halted: true,
            ..not_taken(A + 4)
        };
        let blocks = [i(A), last, halted(), i(A + 8), i(A + 12)];
        assert_eq!(packets(&config, &blocks), expected);
        // It never runs on.
        let told = packets(&config, &blocks[..3]);
        let end = support(&config, false, QualStatus::NoChange);
        assert_eq!(told, [&expected[..4], &[end]].concat());
    }
}

/// What the source of the blocks did not trace is left out here as well; the
/// way from one part to the other is not told.
#[test]
fn what_was_not_traced_stops_the_trace() {
    for version in VERSIONS {
        let config = config(version);
        let untraced = Ingress {
            untraced: true,
            ..Ingress::default()
        };
        let far = 0x9000_0000;
        let blocks = [untraced, i(A), not_taken(A + 4), untraced, untraced, i(far)];
        let expected = [
            support(&config, true, QualStatus::NoChange),
            start(A),
            branches(map(1, 1), delta(A, A + 4)),
            support(&config, true, QualStatus::EndedRep),
            start(far),
            support(&config, false, QualStatus::EndedNtr),
        ];
        assert_eq!(packets(&config, &blocks), expected);
    }
}

/// At the target of a jump, at a jump, at a trap.
#[test]
fn a_hart_halts_anywhere() {
    let config = v2();
    let stop = |blocks: &[Ingress], told: &[Packet], status| {
        let blocks = [blocks, &[halted()]].concat();
        let mut expected = vec![support(&config, true, QualStatus::NoChange)];
        expected.extend_from_slice(told);
        expected.push(support(&config, true, status));
        expected.push(support(&config, false, QualStatus::NoChange));
        assert_eq!(packets(&config, &blocks), expected);
    };
    let jump = [i(A), jalr(A + 4), i(0x2000)];
    let told = [start(A), address(A, 0x2000)];
    stop(&jump, &told, QualStatus::EndedNtr);
    let told = [start(A), address(A, A + 4)];
    stop(&jump[..2], &told, QualStatus::EndedRep);
    stop(&jump[..1], &told[..1], QualStatus::EndedNtr);
    let trap = [i(A), exception(A + 4, 5, 0)];
    let told = [start(A), trap_only(5, A + 4, 0)];
    stop(&trap, &told, QualStatus::EndedRep);
}

#[test]
fn a_reset() {
    let config = v2();
    let reset = Ingress {
        reset: true,
        ..Ingress::default()
    };
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start(A),
        address(A, A + 4),
        support(&config, true, QualStatus::EndedRep),
        start(0x100),
        support(&config, false, QualStatus::EndedNtr),
    ];
    let blocks = [i(A), i(A + 4), reset, reset, i(0x100)];
    assert_eq!(packets(&config, &blocks), expected);
    // A block in reset is the first behind it.
    let first = Ingress {
        reset: true,
        ..i(0x100)
    };
    assert_eq!(packets(&config, &[i(A), i(A + 4), first]), expected);
}

/// A low-power state is no reason for anything.
#[test]
fn power_down() {
    let sleep = Ingress {
        power_down: true,
        ..Ingress::default()
    };
    let blocks = [i(A), sleep, sleep, idle(), i(A + 4)];
    let inner = [start(A), address(A, A + 4)];
    check(&v2(), &blocks, &inner, QualStatus::EndedRep);
}

fn filtered(config: &Config, filter: &FilterConfig, blocks: &[Ingress]) -> Vec<Packet> {
    let mut encoder = encoder(config).with_filter(filter);
    feed(&mut encoder, blocks);
    encoder.finish();
    read(&encoder)
}

#[test]
fn filters() {
    let config = v2();
    let filter = FilterConfig::address(A..=A + 0xfff);
    let blocks = [
        i(0x100),
        i(A),
        jalr(A + 4),
        i(0x2000),
        jalr(0x2004),
        i(A + 8),
        jalr(A + 12),
        i(A + 0x100),
        i(0x3000),
    ];
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start(A),
        // The jump is told for the end's sake; where it went is not traced.
        address(A, A + 4),
        support(&config, true, QualStatus::EndedRep),
        start(A + 8),
        // A target that would have been told anyway.
        address(A + 8, A + 0x100),
        support(&config, true, QualStatus::EndedNtr),
        support(&config, false, QualStatus::NoChange),
    ];
    assert_eq!(filtered(&config, &filter, &blocks), expected);
}

/// User mode only: the trap is told, its handler is not traced.
#[test]
fn a_handler_that_is_not_traced() {
    let u = |block| in_mode(Mode::U, block);
    let filter = FilterConfig::modes(&[Mode::U]);
    let config = v2();
    let blocks = [
        u(i(A)),
        u(i(A + 4)),
        u(exception(A + 8, 8, 0)),
        i(0x8000),
        at(0x8004, 2, Itype::TrapReturn),
        u(i(A + 12)),
    ];
    let trap = Packet::Trap(Trap {
        privilege: 0,
        thaddr: false,
        ..trap_fields(8, A + 8)
    });
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start_in(Mode::U, A),
        address(A, A + 4),
        trap,
        support(&config, true, QualStatus::EndedRep),
        start_in(Mode::U, A + 12),
        support(&config, false, QualStatus::EndedNtr),
    ];
    assert_eq!(filtered(&config, &filter, &blocks), expected);
}

fn lost(block: Ingress) -> Ingress {
    Ingress {
        lost: true,
        ..block
    }
}

#[test]
fn blocks_are_missing() {
    for version in VERSIONS {
        let config = config(version);
        let expected = [
            support(&config, true, QualStatus::NoChange),
            start(A),
            // The branch is lost with the rest.
            support(&config, true, QualStatus::TraceLost),
            start(0x3000),
            address(0x3000, 0x3004),
            support(&config, false, QualStatus::EndedRep),
        ];
        let blocks = [i(A), taken(A + 4), lost(i(0x3000)), i(0x3004)];
        assert_eq!(packets(&config, &blocks), expected);
        let blocks = [i(A), taken(A + 4), lost(idle()), i(0x3000), i(0x3004)];
        assert_eq!(packets(&config, &blocks), expected);
        // Before anything was traced there was nothing to lose.
        let blocks = [lost(i(0x3000)), i(0x3004)];
        let inner = [start(0x3000), address(0x3000, 0x3004)];
        check(&config, &blocks, &inner, QualStatus::EndedRep);
    }
}

/// What was not traced the first time is not lost.
#[test]
fn blocks_are_left_out() {
    let config = v2();
    let untraced = |block| Ingress {
        untraced: true,
        ..block
    };
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start(A),
        branches(map(1, 0), delta(A, A + 4)),
        support(&config, true, QualStatus::EndedRep),
        start(0x3000),
        support(&config, false, QualStatus::EndedNtr),
    ];
    let blocks = [i(A), taken(A + 4), untraced(i(0x3000))];
    assert_eq!(packets(&config, &blocks), expected);
    let blocks = [i(A), taken(A + 4), untraced(idle()), i(0x3000)];
    assert_eq!(packets(&config, &blocks), expected);
}

#[test]
fn blocks_are_missing_at_the_end() {
    let config = v2();
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start(A),
        support(&config, true, QualStatus::TraceLost),
        support(&config, false, QualStatus::NoChange),
    ];
    let blocks = [i(A), taken(A + 4), lost(idle())];
    assert_eq!(packets(&config, &blocks), expected);
}

/// Far jumps, one each cycle.
fn far(count: u64) -> Vec<Ingress> {
    let far = |n: u64| n.wrapping_mul(0x1234_5678_9abc_def0) & !1;
    (0..count)
        .map(|n| Ingress {
            time: n,
            ..jalr(far(n))
        })
        .collect()
}

fn queue(stall: bool) -> Config {
    Config {
        time_width: 32,
        queue: Some(Queue {
            bytes: MIN_QUEUE,
            drain: 4 * 1024,
            stall,
        }),
        ..v2()
    }
}

#[test]
fn a_full_queue_loses_packets() {
    let config = queue(false);
    let mut encoder = encoder(&config);
    let blocks = far(60);
    feed(&mut encoder, &blocks);
    encoder.finish();
    let total = encoder.total();
    assert!(total.overflows > 0 && total.lost > total.overflows);
    assert_eq!(total.stalled, 0);
    let all = read(&encoder);
    assert_eq!(all.len() as u64, total.messages);
    let losses: Vec<usize> = (0..all.len())
        .filter(|&n| all[n] == support(&config, true, QualStatus::TraceLost))
        .collect();
    assert!(!losses.is_empty());
    // Each is followed by a full address, which is right.
    for n in losses {
        let Some(Packet::Start(start)) = all.get(n + 1) else {
            panic!("no start behind a loss")
        };
        let block = blocks.iter().find(|b| b.iaddr >> 1 == start.address);
        assert_eq!(block.map(|b| b.time), Some(start.time));
    }
}

/// The last packets did not fit: the end says so and no more.
#[test]
fn a_queue_that_is_full_at_the_end() {
    let config = queue(false);
    let mut encoder = encoder(&config);
    for block in far(60) {
        if encoder.total().overflows == 0 {
            feed(&mut encoder, &[block]);
        }
    }
    assert_eq!(encoder.total().overflows, 1);
    let before = read(&encoder).len();
    encoder.finish();
    let all = read(&encoder);
    let end = support(&config, false, QualStatus::TraceLost);
    assert_eq!(all[before..], [end]);
}

#[test]
fn a_full_queue_stalls_the_hart() {
    let mut config = queue(true);
    let mut encoder = encoder(&config);
    feed(&mut encoder, &far(60));
    encoder.finish();
    let total = encoder.total();
    assert!(total.stalled > 0);
    assert_eq!((total.lost, total.overflows), (0, 0));
    // Nothing is missing, and times are later.
    config.queue = None;
    assert_eq!(read(&encoder).len(), packets(&config, &far(60)).len());
    assert_eq!(packets(&config, &far(60))[..6], read(&encoder)[..6]);
}

/// What comes behind the end is another trace.
#[test]
fn an_encoder_goes_on_after_its_end() {
    let config = v2();
    let mut encoder = encoder(&config);
    let expected = [
        support(&config, true, QualStatus::NoChange),
        start(A),
        support(&config, false, QualStatus::EndedNtr),
    ];
    for n in 1..3 {
        feed(&mut encoder, &[i(A)]);
        encoder.finish();
        encoder.finish();
        assert_eq!(read(&encoder), expected.repeat(n));
    }
}
