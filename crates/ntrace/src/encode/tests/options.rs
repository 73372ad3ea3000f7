//! Each setting of an encoder.

use super::*;

#[test]
fn history() {
    let config = Config {
        hist_bits: 4,
        ..htm(Version::V1_0)
    };
    let b = |addr, itype| at(addr, 2, itype);
    let blocks = [
        b(0x100, Itype::NotTaken),
        b(0x104, Itype::Taken),
        b(0x200, Itype::NotTaken),
        b(0x204, Itype::Taken),
        at(0x300, 2, Itype::Return),
        c(0x400),
    ];
    let hist = Body::IndirectBranchHist {
        btype: Btype::Indirect,
        icnt: 10,
        uaddr: 0x500 >> 1,
        hist: 3,
    };
    let full = Body::HistFull { hist: 0b1010 };
    check(&config, &blocks, &[start(0x100), full, hist, end(1, 1)]);
}

#[test]
fn long_indirect() {
    let config = Config {
        short_indirect: false,
        ..htm(Version::V1_0)
    };
    let blocks = [at(0x100, 2, Itype::Return), c(0x400)];
    let hist = Body::IndirectBranchHist {
        btype: Btype::Indirect,
        icnt: 2,
        uaddr: 0x500 >> 1,
        hist: 1,
    };
    check(&config, &blocks, &[start(0x100), hist, end(1, 1)]);
}

#[test]
fn direct_jumps() {
    let blocks = [
        at(0x100, 2, Itype::DirectCall),
        at(0x200, 2, Itype::OtherDirect),
        at(0x300, 2, Itype::DirectJump),
        at(0x400, 2, Itype::Reserved),
        at(0x500, 2, Itype::Return),
        c(0x104),
    ];
    let plain = [start(0x100), jump(10, 0x100 ^ 0x104), end(1, 1)];
    check(&htm(Version::Rc7), &blocks, &plain);
    let config = Config {
        all_jumps: true,
        implicit_return: ImplicitReturn::Full,
        ..htm(Version::Rc7)
    };
    check(&config, &blocks, &[start(0x100), end(11, 0x1f)]);
    let config = Config {
        mode: TraceMode::Btm,
        ..config
    };
    let mut expected = vec![start(0x100)];
    expected.extend([direct(2); 4]);
    expected.push(stop(Evcode::DISABLED, 3, None));
    check(&config, &blocks, &expected);
}

#[test]
fn implicit_returns() {
    let mut config = Config {
        implicit_return: ImplicitReturn::Full,
        ..htm(Version::V1_0)
    };
    let call = |addr| at(addr, 2, Itype::DirectCall);
    let ret = |addr| at(addr, 1, Itype::Return);
    // An empty stack, a call, a return elsewhere.
    let blocks = [
        ret(0x100),
        call(0x200),
        ret(0x300),
        at(0x204, 2, Itype::IndirectCall),
        ret(0x300),
        c(0x8204),
    ];
    let head = [start(0x100), jump(1, 0x100 ^ 0x200), jump(5, 0x200 ^ 0x300)];
    let explicit = [
        head[0],
        head[1],
        head[2],
        jump(1, 0x300 ^ 0x8204),
        end(1, 1),
    ];
    check(&config, &blocks, &explicit);
    config.implicit_return = ImplicitReturn::Partial(20);
    check(&config, &blocks, &explicit);
    let implied = [head[0], head[1], head[2], end(2, 1)];
    config.implicit_return = ImplicitReturn::Partial(8);
    // 0x208 and 0x8204 differ in the low bits, too.
    check(&config, &blocks, &explicit);
    let mut other = blocks;
    other[5].iaddr = 0x8208;
    check(&config, &other, &implied);
    config.implicit_return = ImplicitReturn::Count;
    check(&config, &blocks, &implied);
    config.implicit_return = ImplicitReturn::Off;
    let all = [
        head[0],
        head[1],
        jump(3, 0x200 ^ 0x204),
        jump(2, 0x204 ^ 0x300),
        jump(1, 0x300 ^ 0x8204),
        end(1, 1),
    ];
    check(&config, &blocks, &all);
}

#[test]
fn swaps_pop_and_push() {
    let config = Config {
        implicit_return: ImplicitReturn::Full,
        ..htm(Version::V1_0)
    };
    let swap = |addr| at(addr, 2, Itype::Swap);
    let blocks = [
        at(0x100, 2, Itype::DirectCall),
        swap(0x200),
        swap(0x104),
        at(0x204, 1, Itype::Return),
        c(0x108),
    ];
    check(&config, &blocks, &[start(0x100), end(8, 1)]);
}

#[test]
fn traps_leave_the_stack_alone() {
    let config = Config {
        implicit_return: ImplicitReturn::Full,
        ..htm(Version::V1_0)
    };
    let blocks = [
        at(0x100, 2, Itype::DirectCall),
        trap(0x200, Itype::Interrupt),
        at(0x800, 2, Itype::TrapReturn),
        at(0x200, 1, Itype::Return),
        c(0x104),
    ];
    let expected = [
        start(0x100),
        branch(Btype::Interrupt, 2, 0x100 ^ 0x800),
        jump(2, 0x800 ^ 0x200),
        end(2, 1),
    ];
    check(&config, &blocks, &expected);
}

#[test]
fn sequential_jumps() {
    let config = Config {
        sequential_jump: true,
        icnt_bits: 3,
        ..htm(Version::V1_0)
    };
    let si = |addr, itype| Ingress {
        sijump: true,
        ..at(addr, 2, itype)
    };
    let together = [i(0x100), si(0x104, Itype::IndirectJump), c(0x200)];
    let full = Body::IcntFull { icnt: 4 };
    check(&config, &together, &[start(0x100), full, end(1, 1)]);
    // The trace starts between load and jump.
    let expected = [start(0x104), jump(2, 0x104 ^ 0x200), end(1, 1)];
    check(&config, &together[1..], &expected);
    // So does the counter: a full one was told behind the load.
    let split = [i(0xfc), i(0x100), si(0x104, Itype::IndirectJump), c(0x200)];
    let expected = [start(0xfc), full, jump(2, 0xfc ^ 0x200), end(1, 1)];
    check(&config, &split, &expected);
    // Both in one block.
    let block = Ingress {
        iretire: 4,
        ..si(0x100, Itype::OtherIndirect)
    };
    check(
        &config,
        &[block, c(0x200)],
        &[start(0x100), full, end(1, 1)],
    );
    let off = Config {
        sequential_jump: false,
        ..config.clone()
    };
    let expected = [start(0x100), jump(4, 0x100 ^ 0x200), end(1, 1)];
    check(&off, &[block, c(0x200)], &expected);
    // Calls and returns still use the stack.
    let stack = Config {
        implicit_return: ImplicitReturn::Full,
        icnt_bits: 0,
        ..config
    };
    let blocks = [
        i(0x100),
        si(0x104, Itype::IndirectCall),
        at(0x200, 1, Itype::Return),
        i(0x108),
        at(0x10c, 2, Itype::DirectCall),
        i(0x300),
        si(0x304, Itype::Return),
        at(0x400, 1, Itype::Return),
        c(0x110),
    ];
    let expected = [start(0x100), jump(14, 0x100 ^ 0x110), end(1, 1)];
    check(&stack, &blocks, &expected);
}

#[test]
fn periodic_by_halfwords() {
    let mut config = Config {
        periodic: Periodic {
            unit: SyncUnit::Halfwords,
            max: 0,
            delayed: false,
        },
        ..htm(Version::V1_0)
    };
    let mut blocks: Vec<_> = (0..10).map(|n| i(0x100 + 4 * n)).collect();
    blocks.push(at(0x128, 2, Itype::Return));
    blocks.push(c(0x200));
    let periodic = sync(Sync::PERIODIC, 16, 0x120);
    let ret = jump(6, 0x120 ^ 0x200);
    check(&config, &blocks, &[start(0x100), periodic, ret, end(1, 1)]);
    config.periodic.delayed = true;
    let ret = Body::IndirectBranchSync {
        sync: Sync::PERIODIC,
        btype: Btype::Indirect,
        icnt: 22,
        faddr: 0x100,
    };
    check(&config, &blocks, &[start(0x100), ret, end(1, 1)]);
}

#[test]
fn periodic_by_cycles() {
    let config = Config {
        periodic: Periodic {
            unit: SyncUnit::Cycles,
            max: 0,
            delayed: false,
        },
        ..btm(Version::V1_0)
    };
    let mut blocks: Vec<_> = (0..7).map(|n| i(0x100 + 4 * n)).collect();
    for (block, n) in blocks.iter_mut().zip(100..) {
        block.time = n * 4;
    }
    blocks[4].itype = Itype::Taken;
    blocks[5].iaddr = 0x200;
    blocks[6].iaddr = 0x204;
    // Due with the fifth block, which has a message of its own to come.
    let taken = Body::DirectBranchSync {
        sync: Sync::PERIODIC,
        icnt: 10,
        faddr: 0x100,
    };
    let last = stop(Evcode::DISABLED, 4, None);
    check(&config, &blocks, &[start(0x100), taken, last]);
}

#[test]
fn periodic_by_messages() {
    let config = Config {
        periodic: Periodic {
            unit: SyncUnit::Messages,
            max: 0,
            delayed: false,
        },
        ..htm(Version::V1_0)
    };
    let mut encoder = encoder(&config);
    for _ in 0..40 {
        encoder.ingress(HartId(0), &at(0x100, 2, Itype::Return));
    }
    let syncs: Vec<_> = bodies(&encoder)
        .iter()
        .enumerate()
        .filter_map(|(n, body)| body.sync().map(|s| (n, s)))
        .collect();
    let expected = [
        (0, Sync::DEBUG_EXIT),
        (16, Sync::PERIODIC),
        (32, Sync::PERIODIC),
    ];
    assert_eq!(syncs, expected);
}

#[test]
fn repeated_branches() {
    let mut config = Config {
        repeat_branch: true,
        ..btm(Version::V1_0)
    };
    let round = [c(0x100), at(0x102, 1, Itype::Taken)];
    let mut blocks: Vec<_> = [round; 6].concat();
    blocks.extend([c(0x104), at(0x106, 1, Itype::Taken), c(0x100)]);
    let repeat = |count| Body::RepeatBranch { count };
    let last = stop(Evcode::DISABLED, 1, None);
    // The sixth goes to 0x104: it is taken, but not the same.
    let expected = [
        start(0x100),
        direct(2),
        repeat(4),
        direct(2),
        direct(2),
        last,
    ];
    check(&config, &blocks, &expected);
    config.bcnt_bits = 1;
    let mut expected = vec![start(0x100), direct(2)];
    expected.extend([repeat(1); 4]);
    expected.extend([direct(2), direct(2), last]);
    check(&config, &blocks, &expected);
    // The same target, though U-ADDR would be 0; and time of the last one.
    let config = Config {
        timestamps: Some(Timestamps::default()),
        bcnt_bits: 0,
        ..config
    };
    let mut blocks = vec![at(0x100, 1, Itype::Return); 5];
    for (block, n) in blocks.iter_mut().zip(1..) {
        block.time = n * 10;
    }
    let mut encoder = encoder(&config);
    blocks.iter().for_each(|b| encoder.ingress(HartId(0), b));
    encoder.finish();
    let expected = [
        (start(0x100), Some(10)),
        (jump(1, 0), Some(0)),
        (repeat(3), Some(30)),
        (stop(Evcode::DISABLED, 1, None), Some(10)),
    ];
    let found: Vec<_> = read(&encoder).iter().map(|m| (m.body, m.tstamp)).collect();
    assert_eq!(found, expected);
}

#[test]
fn timestamps() {
    let mut config = Config {
        timestamps: Some(Timestamps {
            width: 8,
            prescale: 1,
            sync_only: false,
        }),
        ..htm(Version::V1_0)
    };
    let blocks = [
        (0x100, Itype::None, 4000),
        (0x102, Itype::Return, 4100),
        // The message of a jump has the jump's time.
        (0x200, Itype::Return, 4200),
        (0x300, Itype::None, 4204),
    ];
    let stamps = |config: &Config| {
        let mut encoder = encoder(config);
        for (addr, itype, time) in blocks {
            let block = Ingress {
                time,
                ..at(addr, 1, itype)
            };
            encoder.ingress(HartId(0), &block);
        }
        encoder.finish();
        read(&encoder).iter().map(|m| m.tstamp).collect::<Vec<_>>()
    };
    // 1000, 1025, 1050 and 1051 in eight bits: 232, then past 255.
    assert_eq!(stamps(&config), [Some(232), Some(25), Some(25), Some(1)]);
    config.timestamps = Some(Timestamps {
        sync_only: true,
        ..Timestamps::default()
    });
    assert_eq!(stamps(&config), [Some(4000), None, None, None]);
}

/// A loop of jumps, four cycles each.
fn busy(encoder: &mut Encoder<Messages>, from: u64, to: u64) {
    for n in from..to {
        let block = Ingress {
            time: n * 4,
            ..at(0x100 + (n & 1) * 0x1000, 1, Itype::Return)
        };
        encoder.ingress(HartId(0), &block);
    }
}

#[test]
fn a_full_queue_loses_messages() {
    let config = Config {
        queue: Some(Queue {
            bytes: 76,
            drain: 256,
            stall: false,
        }),
        context: true,
        ..htm(Version::V1_0)
    };
    let mut encoder = encoder(&config);
    busy(&mut encoder, 0, 2000);
    encoder.finish();
    let counters = encoder.total();
    assert!(counters.overflows > 2 && counters.lost > counters.overflows);
    assert!(counters.bytes <= 76 + 2000 + 20, "one byte in four cycles");
    let all = bodies(&encoder);
    let errors: Vec<_> = (0..all.len())
        .filter(|&n| matches!(all[n], Body::Error { .. }))
        .collect();
    let told = errors.len() as u64;
    assert_eq!(told, counters.overflows);
    for n in errors {
        assert_eq!(all[n], Body::Error { etype: 0, ecode: 4 });
        if let Some(next) = all.get(n + 1) {
            let Body::ProgTraceSync { sync, icnt, .. } = *next else {
                panic!("{next:?} behind Error");
            };
            assert_eq!((sync, icnt), (Sync::OVERRUN, 0));
            assert!(matches!(all[n + 2], Body::Ownership { .. }));
        }
    }
}

#[test]
fn a_loss_is_told_at_the_end() {
    let config = Config {
        queue: Some(Queue {
            bytes: 76,
            drain: 1,
            stall: false,
        }),
        ..htm(Version::V1_0)
    };
    let mut encoder = encoder(&config);
    busy(&mut encoder, 0, 100);
    // The trace stops while messages are dropped.
    encoder.ingress(HartId(0), &halted());
    encoder.finish();
    let all = bodies(&encoder);
    assert_eq!(all.last(), Some(&Body::Error { etype: 0, ecode: 4 }));
    assert_eq!(encoder.total().overflows, 1);
}

#[test]
fn a_full_queue_stalls_the_hart() {
    let mut config = Config {
        queue: Some(Queue {
            bytes: 76,
            drain: 256,
            stall: true,
        }),
        timestamps: Some(Timestamps::default()),
        ..htm(Version::V1_0)
    };
    let mut with = encoder(&config);
    busy(&mut with, 0, 500);
    with.finish();
    config.queue = None;
    let mut without = encoder(&config);
    busy(&mut without, 0, 500);
    without.finish();
    assert_eq!(bodies(&with), bodies(&without), "nothing is lost");
    let counters = with.total();
    assert!(counters.stalled > 500 && counters.lost == 0);
    let time = |encoder: &Encoder<Messages>| {
        let stamps = read(encoder).into_iter().map(|m| m.tstamp.unwrap());
        stamps.sum::<u64>()
    };
    assert_eq!(time(&with), time(&without) + counters.stalled);
}

fn reference() -> Config {
    Config {
        icnt_bits: 0,
        periodic: Periodic::default(),
        trap_types: TrapTypes::None,
        stack_kind: StackKind::ReferenceRing,
        first_sync: Sync::RESET,
        last_event: Evcode::DEBUG,
        ending: Ending::Reference,
        ..htm(Version::Rc7)
    }
}

#[test]
fn the_end_of_the_reference() {
    let config = reference();
    let first = sync(Sync::RESET, 0, 0x100);
    let blocks = [c(0x100), at(0x102, 2, Itype::Taken), i(0x200)];
    let last = stop(Evcode::DEBUG, 5, Some(3));
    check(&config, &blocks, &[first, last]);
    check(
        &config,
        &blocks[..1],
        &[first, stop(Evcode::DEBUG, 1, None)],
    );
    // A jump at the very end goes to itself.
    let blocks = [c(0x100), at(0x102, 2, Itype::Return)];
    check(&config, &blocks, &[first, jump(3, 0x100 ^ 0x102)]);
    // A register full at the very end.
    let config = Config {
        hist_bits: 2,
        ..config
    };
    let blocks = [c(0x100), at(0x102, 2, Itype::Taken), i(0x200)];
    let full = Body::HistFull { hist: 3 };
    check(&config, &blocks[..2], &[first, full]);
    let last = stop(Evcode::DEBUG, 5, None);
    check(&config, &blocks, &[first, full, last]);
    let config = Config {
        mode: TraceMode::Btm,
        ..config
    };
    check(&config, &blocks[..2], &[first, direct(3)]);
}

#[test]
fn repetitions_are_sent_before_the_end() {
    let config = Config {
        repeated_history: RepeatedHistory::On,
        ..htm(Version::V1_0)
    };
    let mut encoder = encoder(&config);
    for _ in 0..1000 {
        encoder.ingress(HartId(0), &at(0x100, 1, Itype::Taken));
    }
    encoder.finish();
    let mut branches = 0;
    let mut icnt = 0;
    for body in bodies(&encoder) {
        match body {
            Body::HistRepeat { hist, count } => branches += u64::from(hist.ilog2()) * count,
            Body::HistFull { hist } => branches += u64::from(hist.ilog2()),
            Body::ProgTraceCorrelation {
                icnt: n,
                hist: Some(hist),
                ..
            } => {
                icnt = n;
                branches += u64::from(hist.ilog2());
            }
            _ => {}
        }
    }
    assert_eq!((branches, icnt), (1000, 1000));
    assert!(encoder.total().messages < 6);
}
