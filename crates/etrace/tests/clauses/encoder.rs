//! Clauses about which packets come: chapters 3, 4, 5, 6.5 and 8, from steps
//! or from the port. What the encoder sends is compared packet by packet, and
//! decoded again to the same steps.

use hartrace_etrace::{
    Config, Encoder, Ending, IdleIrdepth, Ioption, Ioptions, Packet, QualStatus, Queue, Resync,
    ResyncRule, ResyncUnit,
};
use hartrace_flow::filter::{
    Comparator, Comparison, FilterConfig, Function, Impdef, Input, Match, MatchMode, TrapKind,
};
use hartrace_flow::{
    Context, Ctype, HartId, Ingress, IngressSink, ItypeWidth, Mode, PortConfig, Retirement,
    Retires, Signal, Trigger,
};
use hartrace_isa::{Isa, Itype};

use crate::common::asm::*;
use crate::common::*;
use crate::random::blocks;

/// What comes out of the port for a way.
fn rows(config: &Config, image: &hartrace_flow::Image, way: &[Do]) -> Vec<Ingress> {
    blocks(port(config, Isa::RV64GC), &steps(image, way))
}

#[track_caller]
fn blocks_send(config: &Config, rows: &[Ingress], expected: &[&str]) {
    let lines = text(config, &encode_blocks(config, rows));
    assert_eq!(lines, expected, "{:?}", config.version);
}

/// 3.1.1: nothing is said of what lies between.
#[test]
fn sequential_instructions() {
    let image = rv64(&[(0x1000, &[ADD; 200])]);
    let pcs: Vec<u64> = (0x1000..0x1320).step_by(4).collect();
    for config in both() {
        let lines = [
            "support on",
            "start 1000",
            "address 131c",
            "support off ended_rep",
        ];
        sends(&config, &image, &go(&pcs), &lines);
    }
}

/// 3.1.2: the target of each kind of indirect jump is told; no direct jump is.
#[test]
fn uninferable_discontinuities() {
    for config in both() {
        for code in 0..16 {
            let itype = Itype::from_code(code).unwrap();
            if itype.is_trap() || itype.is_branch() {
                continue;
            }
            let rows = [
                one(0xf00, 4),
                Ingress {
                    itype,
                    ..one(0x1000, 4)
                },
                one(0x2000, 4),
                one(0x2004, 4),
            ];
            // The texts name 8, 10, 12 and 14. 6 is all of them in three bits,
            // 13 is one unless returns are implied, and where 3 goes no code
            // tells either.
            let told = matches!(code, 3 | 6 | 8 | 10 | 12 | 13 | 14);
            let mut lines = vec!["support on", "start f00", "address 2000", "address 2004"];
            if !told {
                lines.remove(2);
            }
            lines.push("support off ended_rep");
            blocks_send(&config, &rows, &lines);
        }
    }
}

/// 3.1.3, 8: 0 for taken, 1 for not taken, the oldest in bit 0.
#[test]
fn branches_in_order() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, b(8), ADD, b(8), ADD, ADD])]);
    for config in both() {
        let way = go(&[0x1000, 0x1004, 0x100c, 0x1010, 0x1014, 0x101c]);
        let packets = round_trip(&config, &image, &way);
        let Packet::Branches { map, .. } = packets[2] else {
            panic!("{packets:?}");
        };
        assert_eq!((map.count, map.bits), (3, 0b010));
        let lines = ["branches TNT 101c", "support off ended_rep"];
        assert_eq!(text(&config, &packets)[2..], lines);
    }
}

/// 3.1.4: the last instruction that retired, then the first of the handler.
#[test]
fn interrupts_and_exceptions() {
    let image = rv64(&[(0x1000, &[ADD, ADD, b(8), ADD]), (0x2000, &[ADD, MRET])]);
    for config in both() {
        for (cause, tval) in [(exception(13), 0xbeef), (interrupt(7), 0)] {
            let way = way(&[
                &go(&[0x1000, 0x1004]),
                &[Do::Trap(0x1008, 0x2000, cause, Some(tval))],
                &go(&[0x2000, 0x2004, 0x1008, 0x100c]),
            ]);
            let told = match (cause == interrupt(7), config.version == DRAFT) {
                (false, _) => "exception 13 to 2000 tval beef",
                (true, true) => "interrupt 7 to 2000 tval 0",
                (true, false) => "interrupt 7 to 2000",
            };
            let lines = [
                "support on",
                "start 1000",
                "address 1004",
                told,
                "branches N 1008",
                "address 100c",
                "support off ended_rep",
            ];
            sends(&config, &image, &way, &lines);
        }
    }
}

/// 3.1.5: what is the first traced after a reset or after a halt.
#[test]
fn synchronised_after_reset_and_halt() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, b(8), ADD])]);
    for config in both() {
        for signals in [
            vec![Signal::Reset],
            vec![Signal::Halted, Signal::Resumed],
            vec![Signal::Halted, Signal::Reset],
        ] {
            let signals: Vec<Do> = signals.into_iter().map(Do::Signal).collect();
            let way = way(&[&go(&[0x1000, 0x1004]), &signals, &go(&[0x1008, 0x100c])]);
            let lines = [
                "support on",
                "start 1000",
                "address 1004",
                "support on ended_rep",
                "start 1008",
                "branches N 100c",
                "support off ended_rep",
            ];
            sends(&config, &image, &way, &lines);
        }
    }
}

/// 3.1.5: any time the instruction before was not traced.
#[test]
fn synchronised_behind_what_is_not_traced() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, ADD, ADD, ADD])]);
    let pcs: Vec<u64> = (0x1000..0x1018).step_by(4).collect();
    let mut filter = FilterConfig::address(0x1000..=0x1004);
    filter.add(&Match::address(0x1010..=0x1014)).unwrap();
    for config in both() {
        let port = port(&config, Isa::RV64GC);
        let bytes = encode_at(port, &config, &filter, &steps(&image, &go(&pcs)));
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "support on ended_rep",
            "start 1010",
            "address 1014",
            "support off ended_rep",
        ];
        assert_eq!(text(&config, &packets(&config, &bytes)), lines);
        let events = decode(&config, &image, &bytes);
        assert_eq!(events.pcs(&image), [0x1000, 0x1004, 0x1010, 0x1014]);
    }
}

/// 2.0, 3.1.5: the privilege changes. The branches before it are told first.
#[test]
fn synchronised_at_a_privilege_change() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, MRET, ADD, ADD])]);
    for config in both() {
        let user = [Do::Mode(Mode::U)];
        let straight = way(&[&go(&[0x1008, 0x100c]), &user, &go(&[0x1010, 0x1014])]);
        let lines = [
            "support on",
            "start 1008",
            "start 1010 in U",
            "address 1014",
            "support off ended_rep",
        ];
        sends(&config, &image, &straight, &lines);
        let behind = way(&[&go(&[0x1000, 0x1004, 0x100c]), &user, &go(&[0x1010])]);
        let lines = [
            "support on",
            "start 1000",
            "branches T 100c",
            "start 1010 in U",
            "support off ended_ntr",
        ];
        sends(&config, &image, &behind, &lines);
    }
}

/// 3.1.6, table 4.5: whatever stops the trace, its last address is told first.
#[test]
fn the_last_address() {
    let image = rv64(&[(0x1000, &[ADD, b(8), ADD, ADD])]);
    let pcs = [0x1000, 0x1004, 0x1008];
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            ..plain(version)
        };
        for (signals, status) in [
            // Disabled; halted; reset.
            (vec![], "support off ended_rep"),
            (vec![Signal::Halted], "support on ended_rep"),
            (vec![Signal::Reset], "support on ended_rep"),
        ] {
            let signals: Vec<Do> = signals.into_iter().map(Do::Signal).collect();
            let mut lines = vec!["support on", "start 1000", "branches N 1008", status];
            if !signals.is_empty() {
                lines.push("support off");
            }
            let way = way(&[&go(&pcs), &signals]);
            sends(&config, &image, &way, &lines);
        }
        // A trace-off trigger: behind the block it comes with.
        let rows = [
            one(0x1000, 4),
            Ingress {
                itype: Itype::NotTaken,
                ..one(0x1004, 4)
            },
            Ingress {
                trigger: Trigger::from_bits(2),
                ..one(0x1008, 4)
            },
            one(0x100c, 4),
        ];
        let lines = [
            "support on",
            "start 1000",
            "branches N 1008",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// 3.2, 6.5: the settings are told before anything else.
#[test]
fn settings_are_told() {
    let ioptions = Ioptions::new(&[
        Some(Ioption::SequentialJump),
        Some(Ioption::FullAddress),
        Some(Ioption::ImplicitReturn),
    ])
    .unwrap();
    for version in VERSIONS {
        for (full_address, sijump, field) in [
            (false, false, 0),
            (true, false, 2),
            (false, true, 1),
            (true, true, 3),
        ] {
            let config = Config {
                ioptions,
                full_address,
                sijump,
                ..plain(version)
            };
            let packets = encode_blocks(&config, &[one(0x1000, 4)]);
            for packet in [packets[0], packets[2]] {
                let Packet::Support(support) = packet else {
                    panic!("{packets:?}");
                };
                assert_eq!((support.ioptions, support.encoder_mode), (field, 0));
            }
        }
    }
}

/// 3.2.1: relative to the last address sent, by whatever packet; a packet of
/// branches only sends none.
#[test]
fn delta_addresses() {
    let image = rv64(&[
        (0x1000, &[b(0), JR_A5]),
        (0x2000, &[JR_A5]),
        (0x3000, &[ADD, JR_A5]),
    ]);
    for config in both() {
        let rounds = [0x1000; 35];
        let way = way(&[
            &go(&rounds),
            &go(&[0x1004, 0x2000]),
            &[Do::Trap(0x1000, 0x3000, exception(13), Some(0))],
            &go(&[0x3000, 0x3004, 0x2000]),
        ]);
        let packets = round_trip(&config, &image, &way);
        let fields: Vec<_> = packets
            .iter()
            .filter_map(|p| match p {
                Packet::Address(r) => Some(r.address),
                Packet::Branches { address, .. } => address.map(|r| r.address),
                _ => None,
            })
            .collect();
        let delta = |by: i64| (by >> 1) as u64 & u64::MAX >> 1;
        // From the start, over the full map; and from the handler.
        let expected = [delta(0x1000), delta(0x2000 - 0x3000)];
        assert_eq!(fields, expected, "{:#?}", text(&config, &packets));
    }
}

/// 3.2.2: absolute addresses, and a support packet that says so.
#[test]
fn full_addresses() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x2000, &[ADD, b(8), JR_A5])]);
    for version in VERSIONS {
        let config = Config {
            full_address: true,
            ..plain(version)
        };
        let way = go(&[0x1000, 0x1004, 0x2000, 0x2004, 0x2008, 0x1000]);
        let packets = round_trip(&config, &image, &way);
        let (Packet::Address(a), Packet::Branches { address, .. }) = (packets[2], packets[3])
        else {
            panic!("{packets:?}");
        };
        assert_eq!((a.address, address.unwrap().address), (0x1000, 0x800));
    }
}

/// 3.2.4, 4.1.1: lui or auipc and a jump through the same register.
#[test]
fn sequentially_inferable_jumps() {
    // c.lui a5, 0x1; c.jr a5.
    let image = rv64(&[
        (0x1000, &[ADD, lui_a5(0x2000), JR_A5]),
        (0x2000, &[auipc_a5(0x1000), jalr(1, 15, 8)]),
        (0x3008, &[0x6785, C_JALR_A5]),
    ]);
    let way = go(&[
        0x1000, 0x1004, 0x1008, 0x2000, 0x2004, 0x3008, 0x300a, 0x1000,
    ]);
    for version in VERSIONS {
        let off = plain(version);
        let on = Config {
            sijump: true,
            ..off.clone()
        };
        let told = [
            "support on",
            "start 1000",
            "address 2000",
            "address 3008",
            "address 1000",
            "support off ended_ntr",
        ];
        sends(&off, &image, &way, &told);
        let unreported = ["support on", "start 1000", "address 1000"];
        let lines = [&unreported[..], &["support off ended_rep"]].concat();
        sends(&on, &image, &way, &lines);
    }
}

/// 3.2.4: both must be traced. A decoder that starts at the jump cannot infer.
#[test]
fn sijump_needs_what_is_before() {
    let image = rv64(&[
        (0x1000, &[lui_a5(0x2000), JR_A5]),
        (0x2000, &[ADD, ADD]),
        (0x3000, &[MRET]),
    ]);
    for version in VERSIONS {
        let config = Config {
            sijump: true,
            ..plain(version)
        };
        // The jump is the first instruction traced.
        let lines = |first| ["support on", first, "address 2000", "support off ended_ntr"];
        let sijump = |row: Ingress| Ingress {
            itype: Itype::IndirectJump,
            sijump: true,
            ..row
        };
        let jump = sijump(one(0x1004, 4));
        blocks_send(&config, &[jump, one(0x2000, 4)], &lines("start 1004"));
        // The constant and the jump in one block are both traced.
        let pair = sijump(Ingress {
            iretire: 4,
            ..one(0x1000, 4)
        });
        let unreported = [
            "support on",
            "start 1000",
            "address 2000",
            "support off ended_rep",
        ];
        blocks_send(&config, &[pair, one(0x2000, 4)], &unreported);
        // A trap between them: the handler returns to the jump.
        let way = way(&[
            &go(&[0x1000]),
            &[Do::Trap(0x1004, 0x3000, interrupt(7), Some(0))],
            &go(&[0x3000]),
            &[Do::Mode(Mode::U)],
            &go(&[0x1004, 0x2000]),
        ]);
        let lines = text(&config, &round_trip(&config, &image, &way));
        let end = ["start 1004 in U", "address 2000", "support off ended_ntr"];
        assert_eq!(lines[lines.len() - 3..], end);
        // Not where the mode stays, either: the instruction before the jump is
        // the return.
        let way = [
            Do::At(0x1000),
            Do::Trap(0x1004, 0x3000, interrupt(7), Some(0)),
            Do::At(0x3000),
            Do::At(0x1004),
            Do::At(0x2000),
        ];
        let lines = text(&config, &round_trip(&config, &image, &way));
        let end = ["address 1004", "address 2000", "support off ended_ntr"];
        assert_eq!(lines[lines.len() - 3..], end);
    }
}

/// Table 4.1: `sijump` is ignored for itype other than 6, 8, 10, 12 and 14.
#[test]
fn sijump_of_other_types() {
    for version in VERSIONS {
        let config = Config {
            sijump: true,
            ..plain(version)
        };
        for code in [3, 6, 8, 10, 12, 13, 14] {
            let rows = [
                one(0x1000, 4),
                Ingress {
                    itype: Itype::from_code(code).unwrap(),
                    sijump: true,
                    ..one(0x1004, 4)
                },
                one(0x2000, 4),
                one(0x2004, 4),
            ];
            let mut lines = vec!["support on", "start 1000", "address 2000", "address 2004"];
            if !matches!(code, 3 | 13) {
                lines.remove(2);
            }
            lines.push("support off ended_rep");
            blocks_send(&config, &rows, &lines);
        }
    }
}

/// 4.2: with iretire = 0 and itype = 0 the other signals say nothing.
#[test]
fn blocks_without_anything() {
    for config in both() {
        let nothing = Ingress {
            iaddr: 0xdead_beef,
            mode: Mode::U,
            context: Context(77),
            ctype: Ctype::Precise,
            cause: 9,
            sijump: true,
            ..Ingress::default()
        };
        let rows = [one(0x1000, 4), nothing, one(0x1004, 4), nothing];
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// 4.2: the address of the last instruction follows from iretire and
/// ilastsize.
#[test]
fn address_of_the_last_instruction() {
    for config in both() {
        for (iretire, ilastsize, last) in [(1, 0, 0x1000), (2, 1, 0x1000), (7, 0, 0x100c)] {
            let rows = [Ingress {
                iretire,
                ilastsize,
                ..one(0x1000, 2)
            }];
            let end = if last == 0x1000 {
                "ended_ntr"
            } else {
                "ended_rep"
            };
            let last = format!("address {last:x}");
            let mut lines = vec!["support on".to_owned(), "start 1000".into(), last];
            if end == "ended_ntr" {
                lines.pop();
            }
            lines.push(format!("support off {end}"));
            assert_eq!(text(&config, &encode_blocks(&config, &rows)), lines);
        }
    }
}

/// 4.2: three bits of itype lead to the same packets as four.
#[test]
fn itype_of_three_bits() {
    let image = rv64(&[
        (0x1000, &[jal(1, 8), ADD, C_JALR_A5, C_JR_A5]),
        (0x2000, &[C_RET, MRET]),
    ]);
    let way = go(&[
        0x1000, 0x1008, 0x2000, 0x100a, 0x2002, 0x1000, 0x1008, 0x1000,
    ]);
    for config in both() {
        let four = port(&config, Isa::RV64GC);
        let three = PortConfig {
            itype_width: ItypeWidth::Three,
            ..four
        };
        let steps = steps(&image, &way);
        let none = FilterConfig::default();
        let bytes = encode_at(three, &config, &none, &steps);
        assert_eq!(bytes, encode_at(four, &config, &none, &steps));
        understood(&config, &image, &steps, &bytes);
    }
}

/// Table 4.1: cause and tval are those of itype 1 and 2 only.
#[test]
fn cause_and_tval_of_traps_only() {
    for config in both() {
        let junk = |row| Ingress {
            cause: 31,
            tval: 0x5555,
            ..row
        };
        let trapped = Ingress {
            itype: Itype::Exception,
            cause: 5,
            tval: 0x77,
            ..one(0x1004, 4)
        };
        let rows = [junk(one(0x1000, 4)), trapped, junk(one(0x2000, 4))];
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "exception 5 to 2000 tval 77",
            "support off ended_ntr",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// Draft, 6.3.1: the address of an illegal instruction in place of its tval.
/// 2.0: always tval.
#[test]
fn tvalepc() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD]), (0x2000, &[ADD])]);
    for config in both() {
        for (cause, told) in [(exception(2), 0x1008), (exception(12), 0xabcd)] {
            let way = way(&[
                &go(&[0x1000, 0x1004]),
                &[Do::Trap(0x1008, 0x2000, cause, Some(0xabcd))],
                &go(&[0x2000]),
            ]);
            let told = if config.version == DRAFT {
                told
            } else {
                0xabcd
            };
            let packets = round_trip(&config, &image, &way);
            let Packet::Trap(trap) = packets[3] else {
                panic!("{packets:?}");
            };
            assert_eq!(trap.tval, Some(told));
        }
        // Interrupt 2 is no illegal instruction.
        let trap = Do::Trap(0x1008, 0x2000, interrupt(2), Some(0xabcd));
        let way = way(&[&go(&[0x1000, 0x1004]), &[trap], &go(&[0x2000])]);
        let packets = round_trip(&config, &image, &way);
        let Packet::Trap(trap) = packets[3] else {
            panic!("{packets:?}");
        };
        let tval = (config.version == DRAFT).then_some(0xabcd);
        assert_eq!((trap.interrupt, trap.tval), (true, tval));
    }
}

fn with_context(version: hartrace_etrace::Version) -> Config {
    Config {
        context_width: 8,
        ..plain(version)
    }
}

/// The rows of some instructions, the context another from the second on.
fn contexts(ctype: Ctype, before: Itype) -> Vec<Ingress> {
    let context = Context(5);
    vec![
        one(0x1000, 4),
        Ingress {
            itype: before,
            ..one(0x1004, 4)
        },
        Ingress {
            context,
            ctype,
            ..one(0x1008, 4)
        },
        Ingress {
            context,
            ..one(0x100c, 4)
        },
    ]
}

/// Table 4.4: 0 is not reported. It goes with the next packet that has room.
#[test]
fn ctype_0_unreported() {
    for config in VERSIONS.map(with_context) {
        let mut rows = contexts(Ctype::Unreported, Itype::None);
        let lines = [
            "support on",
            "start 1000 context 0",
            "address 100c",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
        rows[3].itype = Itype::Exception;
        rows.push(Ingress {
            context: Context(5),
            ..one(0x2000, 4)
        });
        let lines = text(&config, &encode_blocks(&config, &rows));
        let expected = [
            "support on",
            "start 1000 context 0",
            "address 100c",
            "exception 0 to 2000 tval 0 context 5",
            "support off ended_ntr",
        ];
        assert_eq!(lines, expected);
    }
}

/// Table 4.4, 6.4: 1 is told without an address as soon as possible.
#[test]
fn ctype_1_imprecise() {
    for config in VERSIONS.map(with_context) {
        let rows = contexts(Ctype::Imprecise, Itype::Taken);
        let lines = [
            "support on",
            "start 1000 context 0",
            "context context 5",
            "branches T 100c",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
        // "When the context value changes": the same one is no news.
        let same = [0x1000, 0x1004].map(|iaddr| Ingress {
            context: Context(5),
            ctype: Ctype::Imprecise,
            ..one(iaddr, 4)
        });
        let lines = [
            "support on",
            "start 1000 context 5",
            "address 1004",
            "support off ended_rep",
        ];
        blocks_send(&config, &same, &lines);
    }
}

/// Table 4.4: 2 is told with the address of the first instruction, after the
/// branches if there are any.
#[test]
fn ctype_2_precise() {
    for config in VERSIONS.map(with_context) {
        let lines = [
            "support on",
            "start 1000 context 0",
            "start 1008 context 5",
            "address 100c",
            "support off ended_rep",
        ];
        blocks_send(&config, &contexts(Ctype::Precise, Itype::None), &lines);
        let lines = [
            "support on",
            "start 1000 context 0",
            "branches N 1004",
            "start 1008 context 5",
            "address 100c",
            "support off ended_rep",
        ];
        blocks_send(&config, &contexts(Ctype::Precise, Itype::NotTaken), &lines);
    }
}

/// Table 4.4: 3 tells the last instruction of the old context and the first of
/// the new one.
#[test]
fn ctype_3_discontinuity() {
    for config in VERSIONS.map(with_context) {
        for before in [Itype::None, Itype::NotTaken] {
            let mut rows = contexts(Ctype::Discontinuity, before);
            rows[2].iaddr = 0x3000;
            rows[3].iaddr = 0x3004;
            let told = match before {
                Itype::None => "address 1004",
                _ => "branches N 1004",
            };
            let lines = [
                "support on",
                "start 1000 context 0",
                told,
                "start 3000 context 5",
                "address 3004",
                "support off ended_rep",
            ];
            blocks_send(&config, &rows, &lines);
        }
    }
}

/// Table 4.5: trace-on starts at the block it comes with, subject to filters;
/// trace-off stops behind its own.
#[test]
fn triggers() {
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            starts_disabled: true,
            ..plain(version)
        };
        let row = |iaddr, trigger| Ingress {
            trigger: Trigger::from_bits(trigger),
            ..one(iaddr, 4)
        };
        let rows = [
            row(0x1000, 0),
            row(0x1004, 1),
            row(0x1008, 0),
            row(0x100c, 2),
            row(0x1010, 0),
            row(0x1014, 1),
            row(0x1018, 0),
        ];
        let lines = [
            "support on",
            "start 1004",
            "address 100c",
            "support off ended_rep",
            "support on",
            "start 1014",
            "address 1018",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
        // iTrigEnable is off: nothing starts it, and nothing stops it.
        let config = Config {
            triggers: false,
            ..config
        };
        blocks_send(&config, &rows, &[]);
        let config = Config {
            starts_disabled: false,
            ..config
        };
        let lines = [
            "support on",
            "start 1000",
            "address 1018",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// 2.0, "Using trigger outputs": off in one cycle and on in the next changes
/// nothing; both at once trace that cycle.
#[test]
fn triggers_together() {
    let row = |iaddr, trigger| Ingress {
        trigger: Trigger::from_bits(trigger),
        ..one(iaddr, 4)
    };
    for version in VERSIONS {
        let on = Config {
            triggers: true,
            ..plain(version)
        };
        let rows = [
            row(0x1000, 0),
            row(0x1004, 2),
            row(0x1008, 1),
            row(0x100c, 0),
        ];
        let lines = [
            "support on",
            "start 1000",
            "address 100c",
            "support off ended_rep",
        ];
        blocks_send(&on, &rows, &lines);
        let off = Config {
            starts_disabled: true,
            ..on
        };
        let rows = [row(0x1000, 0), row(0x1004, 3), row(0x1008, 0)];
        let lines = ["support on", "start 1004", "support off ended_ntr"];
        blocks_send(&off, &rows, &lines);
    }
}

/// Table 4.7: trace-notify tells the last instruction of its block, with the
/// branches so far, and not where it is told anyway.
#[test]
fn notify_trigger() {
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            ..plain(version)
        };
        let notify = Trigger::from_bits(4);
        let rows = [
            // Told by the start.
            Ingress {
                trigger: notify,
                ..one(0x1000, 4)
            },
            Ingress {
                itype: Itype::NotTaken,
                ..one(0x1004, 4)
            },
            Ingress {
                iretire: 6,
                trigger: notify,
                ..one(0x1008, 4)
            },
            Ingress {
                itype: Itype::IndirectJump,
                ..one(0x1014, 4)
            },
            // Told as the target.
            Ingress {
                trigger: notify,
                ..one(0x2000, 4)
            },
            one(0x2004, 4),
        ];
        let lines = [
            "support on",
            "start 1000",
            "branches N 1010 notify",
            "address 2000",
            "address 2004",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
        // Subject to filters.
        let filter = FilterConfig::address(0x1000..=0x1004);
        let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
        let mut encoder = encoder.with_filter(&filter);
        for row in &rows {
            encoder.ingress(HartId(0), row);
        }
        encoder.finish();
        let lines = text(&config, &packets(&config, &encoder.into_sink()));
        assert!(
            lines.iter().all(|line| !line.contains("notify")),
            "{lines:?}"
        );
    }
}

/// Table 4.5: a halted hart is not traced, whatever retires then.
#[test]
fn halted() {
    for config in both() {
        let halted = |row| Ingress {
            halted: true,
            ..row
        };
        let rows = [
            one(0x1000, 4),
            one(0x1004, 4),
            halted(Ingress::default()),
            halted(one(0x800, 4)),
            halted(one(0x804, 4)),
            one(0x1008, 4),
        ];
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "support on ended_rep",
            "start 1008",
            "support off ended_ntr",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// Table 4.5: a hart that halts behind a jump, whose target is the first
/// instruction when it runs again.
#[test]
fn halted_behind_a_jump() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x2000, &[ADD])]);
    let halt = [Do::Signal(Signal::Halted), Do::Signal(Signal::Resumed)];
    for config in both() {
        let way = way(&[&go(&[0x1000, 0x1004]), &halt, &go(&[0x2000])]);
        let lines = [
            "support on",
            "start 1000",
            "address 1004",
            "support on ended_rep",
            "start 2000",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
    }
}

/// Tables 2.1 and 4.6: a full queue stalls the hart, or loses packets; the
/// loss is told by the first packet that has room, and a start follows.
#[test]
fn full_queues() {
    let image = rv64(&[(0x1000, &[b(8), JR_A5, ADD, JR_A5])]);
    let pcs = [0x1000, 0x1004].repeat(200);
    let mut things = go(&pcs);
    things.push(Do::Wait(10_000));
    things.extend(go(&[0x1000, 0x1004, 0x1008]));
    let steps = steps(&image, &things);
    for version in VERSIONS {
        for stall in [false, true] {
            let config = Config {
                queue: Some(Queue {
                    bytes: 64,
                    drain: 100,
                    stall,
                }),
                ..plain(version)
            };
            let mut encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
            for row in blocks(port(&config, Isa::RV64GC), &steps) {
                encoder.ingress(HartId(0), &row);
            }
            encoder.finish();
            let counters = encoder.total();
            let bytes = encoder.into_sink();
            assert_eq!(counters.messages, pieces(&bytes).len() as u64);
            assert_eq!(counters.bytes, bytes.len() as u64);
            assert_eq!(counters.bytes, counters.payload_bytes + counters.messages);
            let lines = text(&config, &packets(&config, &bytes));
            if stall {
                assert!(counters.stalled > 0 && counters.lost == 0);
                understood(&config, &image, &steps, &bytes);
            } else {
                assert!(counters.lost > 0 && counters.overflows > 0);
                let lost = lines.iter().position(|l| l == "support on trace_lost");
                let after = &lines[lost.unwrap() + 1..];
                assert!(after[0].starts_with("start "), "{lines:?}");
                let codes = decode(&config, &image, &bytes).codes();
                assert!(codes.iter().all(|code| *code == "ET0401"), "{codes:?}");
                assert_eq!(codes.len() as u64, counters.overflows);
            }
        }
    }
}

/// Blocks that never came are trace that was lost.
#[test]
fn lost_blocks() {
    for config in both() {
        let rows = [
            one(0x1000, 4),
            one(0x1004, 4),
            Ingress {
                lost: true,
                ..one(0x2000, 4)
            },
            one(0x2004, 4),
        ];
        let lines = [
            "support on",
            "start 1000",
            "support on trace_lost",
            "start 2000",
            "address 2004",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// What a filter lets through of a way, as packets.
fn filtered(config: &Config, filter: &FilterConfig, rows: &[Ingress]) -> Vec<String> {
    let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    let mut encoder = encoder.with_filter(filter);
    for row in rows {
        encoder.ingress(HartId(0), row);
    }
    encoder.finish();
    text(config, &packets(config, &encoder.into_sink()))
}

/// 5, 2.3: from one address to another; modes; contexts; handlers of causes;
/// trap values; sideband signals.
#[test]
fn filters() {
    let config = with_context(RATIFIED);
    let mut rows: Vec<Ingress> = (0x1000..0x1020).step_by(4).map(|a| one(a, 4)).collect();
    rows[2].mode = Mode::U;
    rows[3].context = Context(9);
    rows[4].impdef = 0x12;
    // A trap behind the sixth, the handler is the last two.
    rows[5].itype = Itype::Exception;
    rows[5].cause = 8;
    rows[5].tval = 0x4444;
    rows[7].itype = Itype::TrapReturn;
    rows.push(one(0x3000, 4));
    let only = |what: Match| {
        let mut filter = FilterConfig::default();
        filter.add(&what).unwrap();
        filtered(&config, &filter, &rows)
    };
    let traced = |what| {
        let lines = only(what);
        let of = |kind| lines.iter().filter_map(move |l| l.strip_prefix(kind));
        let starts: Vec<_> = of("start ").collect();
        (
            starts.join(", "),
            of("address ").next_back().unwrap_or("none").to_owned(),
        )
    };
    let is = |first: &str, last: &str| (first.to_owned(), last.to_owned());
    let default = Match::default;
    let what = Match {
        between: Some((0x1008, 0x1010)),
        ..default()
    };
    // The mode changes in between.
    let all = "1008 in U context 0, 100c context 9";
    assert_eq!(traced(what).0, all);
    let what = Match::address(0x1010..=0x1014);
    assert_eq!(traced(what), is("1010 context 0", "1014"));
    let what = Match::modes(&[Mode::U]);
    assert_eq!(traced(what), is("1008 in U context 0", "none"));
    let what = Match {
        context: Some(9..=9),
        ..default()
    };
    assert_eq!(traced(what), is("100c context 9", "none"));
    let what = Match {
        impdef: Some(Impdef {
            value: 0x10,
            mask: 0xf0,
        }),
        ..default()
    };
    assert_eq!(traced(what), is("1010 context 0", "none"));
    for (causes, trap) in [
        (Some(1 << 8), None),
        (None, Some(TrapKind::Exception)),
        (Some(1 << 8), Some(TrapKind::Exception)),
    ] {
        let what = Match {
            causes,
            trap,
            ..default()
        };
        // "Start matching from exception cause codes, and stop matching upon
        // return".
        let lines = only(what);
        assert!(!lines.iter().any(|l| l.contains("3000")), "{lines:?}");
        assert!(lines.iter().any(|l| l.contains("101c")), "{lines:?}");
    }
}

/// Table 2.6, pNotify: a watchpoint tells the address of the last instruction
/// of the block that matches.
#[test]
fn watchpoints() {
    for config in both() {
        let mut filter = FilterConfig::default();
        filter.comparators[0] = Comparator {
            primary: Comparison {
                input: Input::Iaddr,
                function: Function::Equal,
                value: 0x1008,
                notify: true,
            },
            mode: MatchMode::Primary,
            ..Comparator::default()
        };
        let rows = [
            one(0x1000, 4),
            Ingress {
                iretire: 6,
                ..one(0x1004, 4)
            },
            one(0x1010, 4),
        ];
        let lines = [
            "support on",
            "start 1000",
            "address 100c notify",
            "address 1010",
            "support off ended_rep",
        ];
        assert_eq!(filtered(&config, &filter, &rows), lines);
    }
}

/// 4.3: a block is traced if any of its instructions matches.
#[test]
fn filters_take_whole_blocks() {
    for config in both() {
        let rows = [
            one(0x1000, 4),
            Ingress {
                iretire: 6,
                ..one(0x1004, 4)
            },
            one(0x1010, 4),
        ];
        let filter = FilterConfig::address(0x1008..=0x1008);
        let lines = [
            "support on",
            "start 1004",
            "address 100c",
            "support on ended_rep",
            "support off",
        ];
        assert_eq!(filtered(&config, &filter, &rows), lines);
    }
}

/// 2.0, 6.5: a support packet for every end, whatever the reason, and one when
/// tracing is enabled again.
#[test]
fn support_packets_of_a_filter() {
    let rows: Vec<Ingress> = (0x1000..0x1010).step_by(4).map(|a| one(a, 4)).collect();
    for config in both() {
        let filter = FilterConfig::address(0x1004..=0x1004);
        // The start told the only instruction.
        let lines = [
            "support on",
            "start 1004",
            "support on ended_ntr",
            "support off",
        ];
        assert_eq!(filtered(&config, &filter, &rows), lines);
        let never = FilterConfig::address(0x9000..=0x9000);
        let lines = ["support on", "support off"];
        assert_eq!(filtered(&config, &never, &rows), lines);
    }
}

/// 6.6, 6.7, 8.1: format 2 without branches, format 1 with some; 31 of them are
/// told without an address at once.
#[test]
fn format_selection() {
    let image = rv64(&[(0x1000, &[b(0), ADD, JR_A5])]);
    for config in both() {
        for count in [1, 30, 31, 32, 61, 62, 63, 100] {
            let mut pcs = vec![0x1004, 0x1008];
            pcs.extend(vec![0x1000; count]);
            pcs.extend([0x1004, 0x1008, 0x1004]);
            let lines = text(&config, &round_trip(&config, &image, &go(&pcs)));
            // The target of the jump is the first branch, the last goes on.
            let full = "branches ".to_owned() + &"T".repeat(31);
            let mut expected = vec!["support on".to_owned(), "start 1004".into()];
            let first = if count == 1 { 'N' } else { 'T' };
            expected.push(format!("branches {first} 1000"));
            let left = count - 1;
            if left > 0 {
                let outcomes = "T".repeat(left - 1) + "N";
                let (maps, rest) = outcomes.split_at(left - left % 31);
                for map in maps.as_bytes().chunks(31) {
                    let map = String::from_utf8_lossy(map);
                    expected.push(format!("branches {map}"));
                }
                let rest = match rest {
                    "" => "address 1004".to_owned(),
                    rest => format!("branches {rest} 1004"),
                };
                expected.push(rest);
            } else {
                expected.push("address 1004".to_owned());
            }
            expected.push("support off ended_ntr".to_owned());
            assert_eq!(lines, expected, "{count} {full}");
        }
    }
}

/// 6.7.2: 31 branches with an address when the last is a jump's target, or (2.0)
/// the address is wanted for any reason.
#[test]
fn full_map_with_an_address() {
    let image = rv64(&[(0x1000, &[b(0), JR_A5, ADD]), (0x2000, &[ADD])]);
    for config in both() {
        // The 31st branch is where a jump went.
        let mut pcs = vec![0x1000; 31];
        pcs.extend([0x1004, 0x1000, 0x1004, 0x1008]);
        let lines = text(&config, &round_trip(&config, &image, &go(&pcs)));
        let map = format!("branches {}NN 1000", "T".repeat(29));
        let front = ["support on", "start 1000 taken"];
        assert_eq!(lines[..2], front);
        assert_eq!(lines[2..], [&map, "address 1008", "support off ended_ntr"]);
        // The 31st branch is the last before a trap, and the last of all.
        let trap = Do::Trap(0x1004, 0x2000, exception(13), Some(0));
        let way = way(&[&go(&[0x1000; 32]), &[trap], &go(&[0x2000])]);
        let lines = text(&config, &round_trip(&config, &image, &way));
        let map = format!("branches {}N 1000", "T".repeat(30));
        let trap = "exception 13 to 2000 tval 0";
        assert_eq!(lines[..2], front);
        assert_eq!(lines[2..], [&map, trap, "support off ended_ntr"]);
        let lines = text(&config, &round_trip(&config, &image, &go(&[0x1000; 32])));
        assert_eq!(lines[..2], front);
        let end = [&map, "support off ended_rep"];
        assert_eq!(lines[2..], end, "the last goes on in memory");
    }
}

fn resync(version: hartrace_etrace::Version, unit: ResyncUnit, rule: ResyncRule) -> Config {
    Config {
        resync: Resync { unit, max: 0, rule },
        ..plain(version)
    }
}

/// 8.2: the counter is full and the branches are told before the start; both
/// rules, counting packets.
#[test]
fn resync_by_packets() {
    let image = rv64(&[(0x1000, &[b(8), ADD, ADD, JR_A5])]);
    let round = [0x1000, 0x1008, 0x100c];
    for version in VERSIONS {
        // Behind the jump, which is told too: its target could be on the way.
        let config = resync(version, ResyncUnit::Packets, ResyncRule::Settled);
        let lines = text(
            &config,
            &round_trip(&config, &image, &go(&round.repeat(20))),
        );
        assert_eq!(lines[1], "start 1000 taken");
        assert!(
            lines[2..18].iter().all(|l| l == "branches T 1000"),
            "{lines:?}"
        );
        let end = ["address 100c", "start 1000 taken"];
        assert_eq!(lines[18..20], end, "{lines:?}");

        // At its limit a packet for the target; above it the start.
        let config = resync(version, ResyncUnit::Packets, ResyncRule::Exceeded);
        let way = go(&round.repeat(20));
        let bytes = encode(&config, &image, &way);
        understood(&config, &image, &steps(&image, &way), &bytes);
        let lines = text(&config, &packets(&config, &bytes));
        assert!(
            lines[2..18].iter().all(|l| l == "branches T 1000"),
            "{lines:?}"
        );
        let end = ["branches T 1000 updiscon", "start 1008", "branches T 1000"];
        assert_eq!(lines[18..21], end, "{lines:?}");
    }
}

/// Table 2.1: 2^(n+4) of whatever is counted.
#[test]
fn resync_by_cycles_and_halfwords() {
    let image = rv64(&[(0x1000, &[ADD, ADD, jal(0, 8), ADD, b(-16)])]);
    let round = [0x1000, 0x1004, 0x1008, 0x1010];
    for version in VERSIONS {
        for unit in [ResyncUnit::Cycles, ResyncUnit::Halfwords] {
            for max in [0, 1, 3] {
                let config = Config {
                    resync: Resync {
                        unit,
                        max,
                        rule: ResyncRule::Settled,
                    },
                    ..plain(version)
                };
                let way = go(&round.repeat(100));
                let packets = round_trip(&config, &image, &way);
                let starts = packets
                    .iter()
                    .filter(|p| matches!(p, Packet::Start(_)))
                    .count();
                // 400 instructions, a cycle and two halfwords each.
                let per = 1 << (max + 4);
                let all = if unit == ResyncUnit::Cycles { 400 } else { 800 };
                let most = all / per + 1;
                assert!(
                    starts <= most && starts * 4 > most * 3,
                    "{unit:?} {max}: {starts} of {most}"
                );
            }
        }
    }
}

/// 6.6.2: after `updiscon` the very next instruction has a packet of format 3, however
/// many instructions a block has. Inside a block the encoder does not see it.
#[test]
fn resync_after_a_target_in_a_block() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD, JR_A5])]);
    let way = go(&[0x1000, 0x1004, 0x1008, 0x100c].repeat(100));
    let steps = steps(&image, &way);
    for version in VERSIONS {
        for unit in [
            ResyncUnit::Packets,
            ResyncUnit::Cycles,
            ResyncUnit::Halfwords,
        ] {
            let config = resync(version, unit, ResyncRule::Exceeded);
            for retirement in [
                Retirement::Single,
                Retirement::Block(4),
                Retirement::Block(64),
            ] {
                let port = PortConfig {
                    retirement,
                    ..port(&config, Isa::RV64GC)
                };
                let bytes = encode_at(port, &config, &FilterConfig::default(), &steps);
                // The plain decoder among others, which insists on it.
                decodes(&config, &image, &steps, &bytes);
                let lines = text(&config, &packets(&config, &bytes));
                assert!(tally(&lines)["start"] > 4, "{retirement:?} {lines:?}");
                for pair in lines.windows(2) {
                    let marked = pair[0].contains("updiscon");
                    assert!(!marked || pair[1] == "start 1004", "{pair:?}");
                }
            }
        }
    }
}

/// 6.7.1: with branches, notify and updiscon are as without them.
#[test]
fn notify_and_updiscon_of_format_1() {
    let image = rv64(&[
        (0x1000, &[b(8), ADD, ADD, JR_A5, ADD]),
        (0x2000, &[ADD, ADD]),
        (0x3000, &[ADD]),
    ]);
    for version in VERSIONS {
        let config = Config {
            triggers: true,
            ..plain(version)
        };
        let notify = [Do::Signal(Signal::Notify)];
        let path = way(&[&go(&[0x1000]), &notify, &go(&[0x1008, 0x100c, 0x2000])]);
        let lines = text(&config, &round_trip(&config, &image, &path));
        // The start packet has the outcome of its own branch.
        assert_eq!(lines[1..3], ["start 1000 taken", "address 1008 notify"]);
        let image = rv64(&[
            (0x1000, &[ADD, b(8), ADD, ADD, JR_A5, ADD]),
            (0x2000, &[ADD, ADD]),
            (0x3000, &[ADD]),
        ]);
        let path = way(&[
            &go(&[0x1000, 0x1004]),
            &notify,
            &go(&[0x100c, 0x1010, 0x2000]),
        ]);
        let lines = text(&config, &round_trip(&config, &image, &path));
        assert_eq!(lines[2], "branches T 100c notify");
        let trap = [Do::Trap(0x2004, 0x3000, interrupt(7), Some(0))];
        let jumps = go(&[0x1000, 0x1004, 0x100c, 0x1010, 0x2000]);
        let path = way(&[&jumps, &trap, &go(&[0x3000])]);
        let lines = text(&config, &round_trip(&config, &image, &path));
        assert_eq!(lines[2], "branches T 2000 updiscon");
        assert!(lines[3].starts_with("interrupt 7 to 3000"), "{lines:?}");
    }
}

/// ResyncMode 0.
#[test]
fn resync_off() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5])]);
    let pcs = [0x1000, 0x1004].repeat(300);
    for version in VERSIONS {
        for rule in [ResyncRule::Settled, ResyncRule::Exceeded] {
            let config = resync(version, ResyncUnit::Off, rule);
            let lines = text(&config, &round_trip(&config, &image, &go(&pcs)));
            assert_eq!(tally(&lines)["start"], 1);
        }
    }
}

/// 8.2: a trap's packet is a synchronisation too.
#[test]
fn resync_counts_from_any_synchronisation() {
    let image = rv64(&[
        (0x1000, &[ADD, JR_A5]),
        (0x2000, &[ADD, JR_A5]),
        (0x3000, &[MRET]),
    ]);
    let rounds = |n: usize| go(&[0x1000, 0x1004].repeat(n));
    let traps = [exception(13), interrupt(7)].map(|cause| {
        let trap = Do::Trap(0x1004, 0x2000, cause, Some(0));
        way(&[&go(&[0x1000]), &[trap], &go(&[0x2000, 0x2004])])
    });
    let [exception, interrupt] = traps;
    let halts = |signals: &[Signal]| signals.iter().copied().map(Do::Signal).collect();
    // What is between the rounds, and the starts it makes.
    let cases: [(Vec<Do>, usize); 5] = [
        (exception, 0),
        (interrupt, 0),
        (way(&[&go(&[0x3000]), &[Do::Mode(Mode::U)]]), 1),
        (halts(&[Signal::Halted, Signal::Resumed]), 1),
        (halts(&[Signal::Reset]), 1),
    ];
    for version in VERSIONS {
        let config = resync(version, ResyncUnit::Packets, ResyncRule::Settled);
        for (between, starts) in &cases {
            let way = way(&[&rounds(10), between, &rounds(12)]);
            let lines = text(&config, &round_trip(&config, &image, &way));
            assert_eq!(tally(&lines)["start"], 1 + starts, "{lines:?}");
        }
        // Without any, the counter reaches its limit.
        let lines = text(&config, &round_trip(&config, &image, &rounds(22)));
        assert_eq!(tally(&lines)["start"], 2, "{lines:?}");
    }
}

/// 8, 8.3: "must be the same as if retiring one instruction at a time".
#[test]
fn multiple_retirement() {
    let image = rv64(&[
        (
            0x1000,
            &[ADD, C_ADD, ADD, b(-6), C_ADD, lui_a5(0x2000), JR_A5],
        ),
        (0x2000, &[ADD, C_ADD, ADD, C_JALR_A5]),
        (0x3000, &[ADD, ADD, MRET]),
    ]);
    let inner = [0x1004, 0x1006, 0x100a];
    let mut pcs = vec![0x1000];
    pcs.extend(inner.repeat(40));
    pcs.extend([0x100e, 0x1010, 0x1014, 0x2000, 0x2004, 0x2006]);
    let trap = Do::Trap(0x200a, 0x3000, interrupt(7), Some(0));
    let way = way(&[
        &go(&pcs),
        &[trap],
        &go(&[0x3000, 0x3004, 0x3008, 0x200a, 0x1000]),
    ]);
    for version in VERSIONS {
        for sijump in [false, true] {
            for unit in [ResyncUnit::Off, ResyncUnit::Packets, ResyncUnit::Halfwords] {
                let config = Config {
                    sijump,
                    ..resync(version, unit, ResyncRule::Settled)
                };
                // Compares blocks of two sizes with single instructions.
                round_trip(&config, &image, &way);
            }
        }
    }
}

/// 8.3: a block that is both the first traced and ends with a trap leads to two
/// packets.
#[test]
fn two_packets_of_one_block() {
    for config in both() {
        let rows = [Ingress {
            iretire: 6,
            itype: Itype::Exception,
            cause: 13,
            ..one(0x1000, 4)
        }];
        let mut lines = vec!["support on", "start 1000", "address 1008"];
        if config.version == RATIFIED {
            // The trace ends with a trap that only thaddr = 0 can tell.
            lines.push("exception 13 at 100c tval 0");
        }
        lines.push("support off ended_rep");
        blocks_send(&config, &rows, &lines);
    }
}

/// 2.0, 6.3.1: an exception at the target of a jump, thaddr = 0 and its EPC; the
/// handler by a start. The draft tells the jump and then the handler.
#[test]
fn exception_at_a_jumps_target() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x3000, &[ADD])]);
    for config in both() {
        let trap = Do::Trap(0x9000, 0x3000, exception(12), Some(0x9000));
        let way = way(&[&go(&[0x1000, 0x1004]), &[trap], &go(&[0x3000])]);
        let lines: &[&str] = match config.version == DRAFT {
            true => &[
                "support on",
                "start 1000",
                "address 1004",
                "exception 12 to 3000 tval 9000",
                "support off ended_ntr",
            ],
            false => &[
                "support on",
                "start 1000",
                "address 1004",
                "exception 12 at 9000 tval 9000",
                "start 3000",
                "support off ended_ntr",
            ],
        };
        sends(&config, &image, &way, lines);
    }
}

/// 2.0: an exception on the first instruction traced is told in the same way.
#[test]
fn exception_on_the_first_instruction() {
    let image = rv64(&[(0x1000, &[ADD]), (0x3000, &[ADD])]);
    for config in both() {
        let trap = Do::Trap(0x1000, 0x3000, exception(12), Some(0x1000));
        let way = way(&[&[trap], &go(&[0x3000])]);
        let lines: &[&str] = match config.version == DRAFT {
            true => &[
                "support on",
                "exception 12 to 3000 tval 1000",
                "support off ended_ntr",
            ],
            false => &[
                "support on",
                "exception 12 at 1000 tval 1000",
                "start 3000",
                "support off ended_ntr",
            ],
        };
        sends(&config, &image, &way, lines);
    }
}

/// 2.0, figure: two traps with nothing between them; three of them; the first
/// one told already.
#[test]
fn traps_in_a_row() {
    let image = rv64(&[
        (0x1000, &[ADD, JR_A5]),
        (0x3000, &[ADD]),
        (0x4000, &[ADD]),
        (0x5000, &[ADD]),
    ]);
    let first = Do::Trap(0x1004, 0x3000, exception(13), Some(0x11));
    let second = Do::Trap(0x3000, 0x4000, interrupt(7), Some(0));
    let third = Do::Trap(0x4000, 0x5000, exception(5), Some(0x33));
    let config = plain(RATIFIED);
    let sent = |things: &[&[Do]], lines: &[&str]| {
        let lines = [&["support on", "start 1000"], lines].concat();
        let lines = [&lines[..], &["support off ended_ntr"]].concat();
        sends(&config, &image, &way(things), &lines);
    };
    sent(
        &[&go(&[0x1000]), &[first, second], &go(&[0x4000])],
        &["exception 13 at 3000 tval 11", "interrupt 7 to 4000"],
    );
    sent(
        &[&go(&[0x1000]), &[first, second, third], &go(&[0x5000])],
        &[
            "exception 13 at 3000 tval 11",
            "interrupt 7 at 4000",
            "exception 5 to 5000 tval 33",
        ],
    );
    // Behind a jump the first is told at once, and so is each behind it.
    let first = Do::Trap(0x9000, 0x3000, exception(12), Some(0x9000));
    sent(
        &[&go(&[0x1000, 0x1004]), &[first, second], &go(&[0x4000])],
        &[
            "address 1004",
            "exception 12 at 9000 tval 9000",
            "interrupt 7 at 3000",
            "start 4000",
        ],
    );
}

/// 2.0, 6.3.1: with thaddr = 0 the privilege is the one before the trap.
#[test]
fn privilege_before_the_trap() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x3000, &[ADD])]);
    let config = plain(RATIFIED);
    let way = way(&[
        &[Do::Mode(Mode::U)],
        &go(&[0x1000, 0x1004]),
        &[Do::Trap(0x9000, 0x3000, exception(12), Some(0))],
        &[Do::Mode(Mode::M)],
        &go(&[0x3000]),
    ]);
    let lines = [
        "support on",
        "start 1000 in U",
        "address 1004",
        "exception 12 at 9000 tval 0 in U",
        "start 3000",
        "support off ended_ntr",
    ];
    sends(&config, &image, &way, &lines);
}

/// 2.0: a return to another mode whose first instruction traps: the trap is
/// told in that mode, and no start for what never retired.
#[test]
fn trap_at_the_target_of_a_return() {
    let image = rv64(&[(0x1000, &[b(8), ADD, MRET]), (0x3000, &[ADD])]);
    let config = plain(RATIFIED);
    let way = way(&[
        &go(&[0x1000, 0x1008]),
        &[
            Do::Mode(Mode::U),
            Do::Trap(0x9000, 0x3000, exception(12), Some(0)),
        ],
        &[Do::Mode(Mode::M)],
        &go(&[0x3000]),
    ]);
    let lines = [
        "support on",
        "start 1000 taken",
        "address 1008",
        "exception 12 at 9000 tval 0 in U",
        "start 3000",
        "support off ended_ntr",
    ];
    sends(&config, &image, &way, &lines);
}

/// The reference flow counts ecall and ebreak as retired: their addresses are
/// told, and the traps are taken there.
#[test]
fn ecall_as_retired() {
    let image = rv64(&[
        (0x1000, &[ADD, ECALL, ADD]),
        (0x3000, &[ADD, EBREAK]),
        (0x4000, &[ADD, C_EBREAK]),
        (0x5000, &[ADD]),
    ]);
    let things = [
        Do::At(0x1000),
        Do::Trap(0x1004, 0x3000, exception(11), Some(0)),
        Do::At(0x3000),
        Do::Trap(0x3004, 0x4000, exception(3), Some(0)),
        Do::At(0x4000),
        Do::Trap(0x4004, 0x5000, exception(3), Some(0)),
        Do::At(0x5000),
    ];
    for config in both() {
        let steps = steps(&image, &things);
        for (retires, told) in [
            (Retires::EcallAndEbreak, ["1004", "3004", "4004"]),
            (Retires::Neither, ["", "", ""]),
        ] {
            let port = PortConfig {
                retires,
                ..port(&config, Isa::RV64GC)
            };
            let bytes = encode_at(port, &config, &FilterConfig::default(), &steps);
            let lines = text(&config, &packets(&config, &bytes));
            let mut expected = vec!["support on".to_owned(), "start 1000".into()];
            let traps = ["11 to 3000", "3 to 4000", "3 to 5000"];
            for (told, trap) in told.iter().zip(traps) {
                if !told.is_empty() {
                    expected.push(format!("address {told}"));
                }
                expected.push(format!("exception {trap} tval 0"));
            }
            expected.push("support off ended_ntr".to_owned());
            assert_eq!(lines, expected);
            let traps = decode(&config, &image, &bytes).traps();
            let epcs: Vec<_> = traps.iter().map(|t| t.epc.unwrap()).collect();
            assert_eq!(epcs, [0x1004, 0x3004, 0x4004]);
        }
    }
}

/// 6.6.3: irdepth repeats the bit before it, or is all ones as the reference
/// has it; both mean nothing.
#[test]
fn idle_irdepth() {
    let image = rv64(&[(0x1000, &[ADD, JR_A5]), (0x2000, &[ADD, JR_A5])]);
    let way = go(&[0x1000, 0x1004, 0x2000, 0x2004, 0x1000]);
    for (idle_irdepth, fields) in [
        (IdleIrdepth::Repeated, [0, 0x1ff]),
        (IdleIrdepth::Ones, [0x1ff, 0x1ff]),
    ] {
        let config = Config {
            call_counter_size: 9,
            idle_irdepth,
            ..plain(RATIFIED)
        };
        let packets = round_trip(&config, &image, &way);
        let irdepths = packets.iter().filter_map(|p| match p {
            Packet::Address(r) => Some(r.irdepth),
            _ => None,
        });
        assert!(irdepths.eq(fields), "{packets:?}");
    }
}

/// The end as the reference encoder has it: the last address in any case.
#[test]
fn ending_of_the_reference() {
    let config = Config {
        ending: Ending::Reference,
        ..plain(RATIFIED)
    };
    let rows = [one(0x1000, 4), one(0x1004, 4)];
    let lines = [
        "support on",
        "start 1000",
        "address 1004",
        "support off ended_rep",
    ];
    blocks_send(&config, &rows, &lines);
    let lines = [
        "support on",
        "start 1000",
        "address 1000",
        "support off ended_rep",
    ];
    blocks_send(&config, &rows[..1], &lines);
}

/// `time` (2.0): in every synchronisation and context packet.
#[test]
fn time_of_packets() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD]), (0x3000, &[ADD, MRET])]);
    let config = Config {
        time_width: 16,
        ..plain(RATIFIED)
    };
    let things = [
        Do::Wait(5),
        Do::At(0x1000),
        Do::Wait(10),
        Do::Trap(0x1004, 0x3000, interrupt(7), Some(0)),
        Do::At(0x3000),
        Do::At(0x3004),
        Do::Mode(Mode::U),
        Do::At(0x1004),
    ];
    let lines = [
        "support on",
        "start 1000 time 5",
        "interrupt 7 to 3000 time 11",
        "start 1004 in U time 13",
        "support off ended_ntr",
    ];
    sends(&config, &image, &things, &lines);
}

/// Several blocks in a cycle are several blocks.
#[test]
fn several_blocks_in_a_cycle() {
    for config in both() {
        let rows: Vec<Ingress> = [0x1000, 0x1010, 0x1004, 0x1020]
            .into_iter()
            .zip(0..)
            .map(|(iaddr, i)| Ingress {
                itype: Itype::Taken,
                block: i % 2,
                time: u64::from(i / 2),
                ..one(iaddr, 4)
            })
            .collect();
        let lines = [
            "support on",
            "start 1000 taken",
            "branches TTT 1020",
            "support off ended_rep",
        ];
        blocks_send(&config, &rows, &lines);
    }
}

/// What is not there: the port of a hart that retires one instruction a time
/// has blocks of one, and none is cut.
#[test]
fn single_retirement_blocks() {
    let image = rv64(&[(0x1000, &[ADD, C_ADD, b(8), ADD, ADD])]);
    let config = plain(RATIFIED);
    let rows = rows(&config, &image, &go(&[0x1000, 0x1004, 0x1006, 0x100e]));
    let seen: Vec<_> = rows.iter().map(|b| (b.iaddr, b.iretire)).collect();
    assert_eq!(seen, [(0x1000, 2), (0x1004, 1), (0x1006, 2), (0x100e, 2)]);
    let lines = [
        "support on",
        "start 1000",
        "branches T 100e",
        "support off ended_rep",
    ];
    blocks_send(&config, &rows, &lines);
}

/// A pulse that nothing follows, a status that nothing asks for: an encoder
/// that has traced nothing says so at most.
#[test]
fn nothing_at_all() {
    for config in both() {
        blocks_send(&config, &[], &[]);
        let idle = [Ingress::default()];
        blocks_send(&config, &idle, &["support on", "support off"]);
        let packets = encode_blocks(&config, &idle);
        let Packet::Support(last) = packets[1] else {
            panic!("{packets:?}");
        };
        assert_eq!(last.qual_status, QualStatus::NoChange);
    }
}

/// Blocks of at most one instruction and of many at once, a port of each kind:
/// the same.
#[test]
fn ports_of_every_size() {
    let image = rv64(&[(0x1000, &[ADD, C_ADD, ADD, ADD, b(-14), JR_A5])]);
    let round = [0x1000, 0x1004, 0x1006, 0x100a, 0x100e];
    let mut pcs = round.repeat(3);
    pcs.extend([0x1012, 0x1000]);
    for config in both() {
        let steps = steps(&image, &go(&pcs));
        let single = port(&config, Isa::RV64GC);
        let none = FilterConfig::default();
        let bytes = encode_at(single, &config, &none, &steps);
        for room in 1..12 {
            let port = PortConfig {
                retirement: Retirement::Block(room),
                ..single
            };
            assert_eq!(encode_at(port, &config, &none, &steps), bytes, "{room}");
        }
    }
}
