//! Starts, stops, traps, ownership and loss.

use super::*;

#[test]
fn traps_at_the_start() {
    for version in VERSIONS {
        for (itype, btype) in [
            (Itype::Interrupt, Btype::Interrupt),
            (Itype::Exception, Btype::Exception),
        ] {
            let blocks = [trap(0x100, itype), c(0x800)];
            let first = branch(btype, 0, 0x100 ^ 0x800);
            check(&htm(version), &blocks, &[start(0x100), first, end(1, 1)]);
            let config = Config {
                trap_types: TrapTypes::One,
                ..htm(version)
            };
            let first = branch(Btype::Trap, 0, 0x100 ^ 0x800);
            check(&config, &blocks, &[start(0x100), first, end(1, 1)]);
            let config = Config {
                trap_types: TrapTypes::None,
                ..htm(version)
            };
            let first = jump(0, 0x100 ^ 0x800);
            check(&config, &blocks, &[start(0x100), first, end(1, 1)]);
        }
    }
}

fn on(block: Ingress) -> Ingress {
    let trigger = Trigger {
        on: true,
        ..block.trigger
    };
    Ingress { trigger, ..block }
}

fn off(block: Ingress) -> Ingress {
    let trigger = Trigger {
        off: true,
        ..block.trigger
    };
    Ingress { trigger, ..block }
}

fn notify(block: Ingress) -> Ingress {
    let trigger = Trigger {
        notify: true,
        ..block.trigger
    };
    Ingress { trigger, ..block }
}

#[test]
fn starts_disabled() {
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            starts_disabled: true,
            ..htm(version)
        };
        let disabled = stop(Evcode::DISABLED, 0, Some(1));
        let debug = |icnt| stop(Evcode::DEBUG, icnt, Some(1));
        let enabled = |addr| sync(Sync::ENABLE, 0, addr);
        // Disabled, then halted; disabled again, then on.
        let blocks = [
            c(0x100),
            c(0x102),
            halted(),
            idle(),
            c(0x104),
            on(c(0x106)),
            c(0x108),
            halted(),
        ];
        check(
            &config,
            &blocks,
            &[disabled, debug(0), enabled(0x106), debug(2)],
        );
        // Without triggers in the settings nothing listens to them.
        let config = Config {
            triggers: false,
            ..config
        };
        check(&config, &blocks, &[disabled, debug(0), debug(0)]);
    }
}

#[test]
fn the_block_with_trace_off_is_the_last() {
    let config = Config {
        triggers: true,
        ..htm(Version::V1_0)
    };
    let blocks = [
        c(0x100),
        off(at(0x102, 1, Itype::IndirectJump)),
        c(0x200),
        on(c(0x202)),
        off(on(c(0x204))),
        c(0x206),
    ];
    let expected = [
        start(0x100),
        jump(2, 0x100 ^ 0x200),
        end(0, 1),
        sync(Sync::ENABLE, 0, 0x202),
        end(2, 1),
    ];
    check(&config, &blocks, &expected);
    // Entry into debug mode must not be told as anything else.
    let blocks = [c(0x100), off(c(0x102)), halted()];
    let expected = [start(0x100), stop(Evcode::DEBUG, 2, Some(1))];
    check(&config, &blocks, &expected);
}

#[test]
fn halting_and_going_on() {
    for version in VERSIONS {
        let blocks = [
            c(0x100),
            at(0x102, 1, Itype::IndirectJump),
            halted(),
            // The debugger's own code.
            Ingress {
                halted: true,
                ..c(0x9000)
            },
            idle(),
            c(0x300),
            at(0x302, 1, Itype::Taken),
            Ingress {
                halted: true,
                ..c(0x400)
            },
            idle(),
            c(0x500),
        ];
        let expected = [
            start(0x100),
            stop(Evcode::DEBUG, 2, Some(1)),
            start(0x300),
            stop(Evcode::DEBUG, 3, Some(3)),
            start(0x500),
            end(1, 1),
        ];
        check(&htm(version), &blocks, &expected);
        let expected = [
            start(0x100),
            stop(Evcode::DEBUG, 2, None),
            start(0x300),
            direct(2),
            stop(Evcode::DEBUG, 1, None),
            start(0x500),
            stop(Evcode::DISABLED, 1, None),
        ];
        check(&btm(version), &blocks, &expected);
    }
}

#[test]
fn a_taken_branch_is_told_although_nothing_follows() {
    let blocks = [at(0x100, 1, Itype::Taken), halted()];
    let expected = [start(0x100), direct(1), stop(Evcode::DEBUG, 0, None)];
    check(&btm(Version::V1_0), &blocks, &expected);
}

#[test]
fn reset_and_power() {
    let reset = Ingress {
        reset: true,
        ..idle()
    };
    let down = Ingress {
        power_down: true,
        ..idle()
    };
    let blocks = [
        c(0x100),
        at(0x102, 1, Itype::Taken),
        c(0x200),
        reset,
        c(0x1000),
        down,
        down,
        idle(),
        c(0x1002),
        halted(),
        reset,
        c(0x1000),
    ];
    let reset = Body::IndirectBranchHistSync {
        sync: Sync::RESET,
        btype: Btype::Indirect,
        icnt: 3,
        faddr: 0x800,
        hist: 3,
    };
    let expected = [
        start(0x100),
        reset,
        stop(Evcode::LOW_POWER, 1, Some(1)),
        sync(Sync::POWER_UP, 0, 0x1002),
        stop(Evcode::DEBUG, 1, Some(1)),
        sync(Sync::RESET, 0, 0x1000),
        end(1, 1),
    ];
    check(&htm(Version::V1_0), &blocks, &expected);
}

#[test]
fn lost_input() {
    let lost = Ingress {
        lost: true,
        ..idle()
    };
    let blocks = [
        lost,
        c(0x100),
        at(0x102, 1, Itype::IndirectJump),
        lost,
        c(0x200),
        lost,
    ];
    let error = Body::Error { etype: 0, ecode: 4 };
    let expected = [start(0x100), error, sync(Sync::OVERRUN, 0, 0x200), error];
    check(&htm(Version::V1_0), &blocks, &expected);
    let config = Config {
        context: true,
        ..htm(Version::V1_0)
    };
    let mut encoder = encoder(&config);
    blocks.iter().for_each(|b| encoder.ingress(HartId(0), b));
    let error = Body::Error {
        etype: 0,
        ecode: 12,
    };
    assert_eq!(bodies(&encoder)[2], error);
}

#[test]
fn markers() {
    let mut config = Config {
        triggers: true,
        ..htm(Version::V1_0)
    };
    config.external[2] = TriggerAction::Notify;
    config.external[7] = TriggerAction::Off;
    let external = |bit: u8, block| Ingress {
        external: 1u8 << bit,
        ..block
    };
    let blocks = [
        c(0x100),
        at(0x102, 1, Itype::NotTaken),
        notify(c(0x104)),
        external(2, c(0x106)),
        external(3, c(0x108)),
        at(0x10a, 1, Itype::IndirectJump),
        external(2, notify(c(0x200))),
        external(7, c(0x202)),
        notify(c(0x204)),
    ];
    let expected = [
        start(0x100),
        Body::IndirectBranchHistSync {
            sync: Sync::EVENT,
            btype: Btype::Indirect,
            icnt: 2,
            faddr: 0x82,
            hist: 2,
        },
        sync(Sync::EXTERNAL_TRIGGER, 1, 0x106),
        Body::IndirectBranchSync {
            sync: Sync::EVENT,
            btype: Btype::Indirect,
            icnt: 3,
            faddr: 0x100,
        },
        end(2, 1),
    ];
    check(&config, &blocks, &expected);
}

fn owner(mode: Mode, owner: Owner) -> Body<'static> {
    let process = Process { mode, owner }.field();
    Body::Ownership { process }
}

fn by(mode: Mode, scontext: u32, hcontext: u32, block: Ingress) -> Ingress {
    Ingress {
        mode,
        context: Context::new(scontext, hcontext),
        ..block
    }
}

#[test]
fn ownership() {
    let blocks = [
        by(Mode::S, 1, 0, c(0x100)),
        by(Mode::S, 2, 0, c(0x102)),
        by(Mode::S, 2, 9, at(0x104, 2, Itype::TrapReturn)),
        by(Mode::U, 2, 9, c(0x200)),
        by(Mode::U, 2, 9, trap(0x202, Itype::Exception)),
        by(Mode::U, 2, 9, c(0x300)),
    ];
    let s = |context| owner(Mode::S, Owner::Scontext(context));
    let jumps = [
        jump(4, 0x100 ^ 0x200),
        branch(Btype::Exception, 1, 0x200 ^ 0x300),
    ];
    let user = owner(Mode::U, Owner::Mode);
    let config = Config {
        context: true,
        ..htm(Version::V1_0)
    };
    let expected = [
        start(0x100),
        s(1),
        s(2),
        jumps[0],
        user,
        jumps[1],
        end(1, 1),
    ];
    check(&config, &blocks, &expected);
    // rc7 tells it after each trap, even when the mode stays.
    let config = Config {
        hcontext: true,
        ..Config {
            context: true,
            ..htm(Version::Rc7)
        }
    };
    let h = |context| owner(Mode::S, Owner::Hcontext(context));
    let expected = [
        start(0x100),
        h(0),
        s(1),
        s(2),
        h(9),
        jumps[0],
        user,
        jumps[1],
        user,
        end(1, 1),
    ];
    check(&config, &blocks, &expected);
    let config = Config {
        context: false,
        ..config
    };
    check(
        &config,
        &blocks,
        &[start(0x100), jumps[0], jumps[1], end(1, 1)],
    );
}

/// 1.0: a trap right behind a trap return.
#[test]
fn trap_behind_trap_return() {
    let blocks = [
        at(0x100, 2, Itype::TrapReturn),
        by(Mode::U, 0, 0, trap(0x200, Itype::Interrupt)),
        c(0x300),
    ];
    let own = |mode| owner(mode, Owner::Scontext(0));
    let config = Config {
        context: true,
        ..htm(Version::V1_0)
    };
    let expected = [
        start(0x100),
        own(Mode::M),
        jump(2, 0x100 ^ 0x200),
        sync(Sync::PERIODIC, 0, 0x200),
        own(Mode::U),
        Body::IndirectBranchSync {
            sync: Sync::PERIODIC,
            btype: Btype::Interrupt,
            icnt: 0,
            faddr: 0x180,
        },
        own(Mode::M),
        end(1, 1),
    ];
    check(&config, &blocks, &expected);
    let expected = [
        start(0x100),
        jump(2, 0x100 ^ 0x200),
        branch(Btype::Interrupt, 0, 0x200 ^ 0x300),
        end(1, 1),
    ];
    check(&htm(Version::Rc7), &blocks, &expected);
}

#[test]
fn several_harts() {
    let config = Config {
        src_bits: 4,
        src_id: 3,
        ..htm(Version::V1_0)
    };
    let mut encoder = encoder(&config);
    encoder.ingress(HartId(0), &c(0x100));
    encoder.ingress(HartId(5), &c(0x500));
    encoder.ingress(HartId(0), &at(0x102, 1, Itype::IndirectJump));
    encoder.ingress(HartId(5), &at(0x502, 1, Itype::IndirectJump));
    encoder.ingress(HartId(5), &c(0x600));
    encoder.ingress(HartId(0), &c(0x200));
    encoder.finish();
    let sources: Vec<_> = read(&encoder).iter().map(|m| m.src).collect();
    assert_eq!(sources, [3, 8, 8, 3, 3, 8]);
    let expected = [
        start(0x100),
        start(0x500),
        jump(2, 0x500 ^ 0x600),
        jump(2, 0x100 ^ 0x200),
        end(1, 1),
        end(1, 1),
    ];
    assert_eq!(bodies(&encoder), expected);
    assert_eq!(encoder.counters(HartId(5)).unwrap().messages, 3);
    assert_eq!(encoder.counters(HartId(1)), None);
    assert_eq!(encoder.total().messages, 6);
    let bytes: usize = encoder.sink().0.iter().map(Vec::len).sum();
    assert_eq!(encoder.total().bytes, bytes as u64);
}

#[test]
fn the_end_comes_once() {
    let mut encoder = encoder(&htm(Version::V1_0));
    encoder.ingress(HartId(0), &c(0x100));
    encoder.finish();
    encoder.finish();
    assert_eq!(bodies(&encoder), [start(0x100), end(1, 1)]);
    encoder.ingress(HartId(0), &c(0x102));
    assert_eq!(bodies(&encoder)[2], sync(Sync::ENABLE, 0, 0x102));
}

/// A filter stops the trace with the address it left for, and starts it again
/// with SYNC = 5.
#[test]
fn filters_stop_and_start_the_trace() {
    let config = htm(Version::V1_0);
    let filter = FilterConfig::address(0x100..=0x1ff);
    let mut encoder = encoder(&config).with_filter(&filter);
    let blocks = [
        c(0x100),
        at(0x102, 1, Itype::Return),
        c(0x200),
        c(0x202),
        c(0x110),
    ];
    blocks.iter().for_each(|b| encoder.ingress(HartId(0), b));
    encoder.finish();
    let expected = [
        start(0x100),
        Body::IndirectBranch {
            btype: Btype::Indirect,
            icnt: 2,
            uaddr: (0x100 ^ 0x200) >> 1,
        },
        Body::ProgTraceCorrelation {
            evcode: Evcode::DISABLED,
            icnt: 0,
            hist: Some(1),
        },
        Body::ProgTraceSync {
            sync: Sync::ENABLE,
            icnt: 0,
            faddr: 0x110 >> 1,
        },
        end(1, 1),
    ];
    assert_eq!(bodies(&encoder), expected);
}

/// What the source of the blocks did not trace is left out here as well, and
/// nothing is said of how the hart got on. It takes no trigger.
#[test]
fn what_was_not_traced_stops_the_trace() {
    for version in VERSIONS {
        let config = htm(version);
        let untraced = Ingress {
            untraced: true,
            ..Ingress::default()
        };
        let blocks = [c(0x100), untraced, untraced, c(0x200)];
        let stop = Body::ProgTraceCorrelation {
            evcode: Evcode::DISABLED,
            icnt: 1,
            hist: Some(1),
        };
        let on = Body::ProgTraceSync {
            sync: Sync::ENABLE,
            icnt: 0,
            faddr: 0x100,
        };
        check(&config, &blocks, &[start(0x100), stop, on, end(1, 1)]);
        check(&config, &[untraced, c(0x100)], &[start(0x100), end(1, 1)]);
    }
}
