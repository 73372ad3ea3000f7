//! Chapter 9: the parameters of an encoder, what they may be, and what follows
//! from them.

use hartrace_etrace::{
    Config, ConfigError, DataConfig, Decoder, Encapsulation, Encoder, Form, Ioption, Ioptions,
    MIN_QUEUE, Packet, Queue, Resync, Shortening,
};
use hartrace_flow::{Context, Image, Ingress, Mode, Signal};
use hartrace_isa::{Isa, Itype, Xlen};

use crate::common::asm::*;
use crate::common::*;

/// The same of data trace.
fn wrong_data(error: ConfigError) -> DataConfig {
    let mut data = DataConfig::new(RATIFIED, Xlen::Rv64);
    match error {
        ConfigError::LridWidth => data.lrid_width = 9,
        ConfigError::DataWidth => data.data_width = 16,
        ConfigError::DaddressWidth => data.daddress_width = 65,
        ConfigError::DataFieldWidth => data.size_width = 4,
        ConfigError::DataDiffWidth => data.diff_width = 1,
        ConfigError::Mmacas => data.mmacas = true,
        _ => (data.no_address, data.no_data) = (true, true),
    }
    data
}

/// An encapsulation that is wrong in this one way.
fn wrong_encapsulation(error: ConfigError) -> Encapsulation {
    let mut form = Encapsulation::new(match error {
        ConfigError::SlotBytes => Form::Slots,
        ConfigError::TimeBytes | ConfigError::SyncBytes => Form::Smi,
        _ => Form::Riscv,
    });
    match error {
        ConfigError::SourceBits => form.src_bits = 17,
        ConfigError::TimeBytes => form.time_bytes = 3,
        ConfigError::TypeBits => form.type_bits = 9,
        ConfigError::Flow => form.flow = 4,
        ConfigError::SyncBytes => form.sync_bytes = 1,
        _ => form.slot_bytes = 20,
    }
    form
}

/// Settings that are wrong in this one way.
fn wrong(error: ConfigError) -> Config {
    let base = plain(RATIFIED);
    match error {
        ConfigError::IaddressWidth => Config {
            iaddress_width: 65,
            ..base
        },
        ConfigError::IaddressLsb => Config {
            iaddress_lsb: 3,
            ..base
        },
        ConfigError::PrivilegeWidth => Config {
            privilege_width: 1,
            ..base
        },
        ConfigError::ContextWidth => Config {
            context_width: 65,
            ..base
        },
        ConfigError::TimeWidth => Config {
            time_width: 65,
            ..base
        },
        ConfigError::DraftTime => Config {
            time_width: 1,
            ..plain(DRAFT)
        },
        ConfigError::EcauseWidth => Config {
            ecause_width: 0,
            ..base
        },
        ConfigError::F0sWidth => Config {
            f0s_width: 3,
            ..base
        },
        ConfigError::F0sNeeded => Config {
            bpred_size: 4,
            cache_size: 4,
            ..base
        },
        ConfigError::TableSize => Config {
            bpred_size: 16,
            ..base
        },
        ConfigError::StackSize => Config {
            return_stack_size: 16,
            ..base
        },
        ConfigError::NoPredictor => Config {
            branch_prediction: true,
            ..base
        },
        ConfigError::NoCache => Config {
            jump_target_cache: true,
            ..base
        },
        ConfigError::NoReturnStack => Config {
            implicit_return: true,
            ..base
        },
        ConfigError::NoExceptionBit => Config {
            implicit_exception: true,
            ioptions: Ioptions::new(&[]).unwrap(),
            ..base
        },
        // Of the port, which the encoder does not see.
        ConfigError::ItypeWidth => base,
        ConfigError::IretExt => Config {
            iret_ext: true,
            ..base
        },
        ConfigError::Standard => Config {
            time_width: 8,
            ..plain(REVIEW)
        },
        ConfigError::EncoderModeWidth => Config {
            encoder_mode_width: 9,
            ..base
        },
        ConfigError::DoptionsWidth => Config {
            doptions_width: Some(17),
            ..base
        },
        ConfigError::LridWidth
        | ConfigError::DataWidth
        | ConfigError::DaddressWidth
        | ConfigError::DataFieldWidth
        | ConfigError::DataDiffWidth
        | ConfigError::NothingOfData
        | ConfigError::Mmacas => Config {
            data: Some(wrong_data(error)),
            ..base
        },
        ConfigError::ResyncMax => Config {
            resync: Resync {
                max: 28,
                ..base.resync
            },
            ..base
        },
        ConfigError::Queue => Config {
            queue: Some(Queue {
                bytes: MIN_QUEUE - 1,
                drain: 1,
                stall: false,
            }),
            ..base
        },
        ConfigError::ShortAddress => Config {
            shortening: Shortening::Address,
            cache_size: 4,
            ..base
        },
        ConfigError::SourceBits
        | ConfigError::TimeBytes
        | ConfigError::TypeBits
        | ConfigError::Flow
        | ConfigError::SyncBytes
        | ConfigError::SlotBytes => Config {
            encapsulation: wrong_encapsulation(error),
            ..base
        },
        ConfigError::NoKinds => Config {
            encapsulation: Encapsulation::new(Form::Riscv),
            data: Some(DataConfig::new(RATIFIED, Xlen::Rv64)),
            ..base
        },
        ConfigError::PacketTooLong => Config {
            context_width: 64,
            time_width: 64,
            ..base
        },
    }
}

#[test]
fn every_config_error() {
    let image = Image::new();
    for error in [
        ConfigError::IaddressWidth,
        ConfigError::IaddressLsb,
        ConfigError::PrivilegeWidth,
        ConfigError::ContextWidth,
        ConfigError::TimeWidth,
        ConfigError::DraftTime,
        ConfigError::EcauseWidth,
        ConfigError::F0sWidth,
        ConfigError::F0sNeeded,
        ConfigError::TableSize,
        ConfigError::StackSize,
        ConfigError::NoPredictor,
        ConfigError::NoCache,
        ConfigError::NoReturnStack,
        ConfigError::NoExceptionBit,
        ConfigError::IretExt,
        ConfigError::Standard,
        ConfigError::EncoderModeWidth,
        ConfigError::DoptionsWidth,
        ConfigError::ResyncMax,
        ConfigError::Queue,
        ConfigError::PacketTooLong,
        ConfigError::ShortAddress,
        ConfigError::SourceBits,
        ConfigError::TimeBytes,
        ConfigError::TypeBits,
        ConfigError::Flow,
        ConfigError::SyncBytes,
        ConfigError::SlotBytes,
        ConfigError::NoKinds,
        ConfigError::LridWidth,
        ConfigError::DataWidth,
        ConfigError::DaddressWidth,
        ConfigError::DataFieldWidth,
        ConfigError::DataDiffWidth,
        ConfigError::NothingOfData,
        ConfigError::Mmacas,
    ] {
        let config = wrong(error);
        assert_eq!(config.validate(), Err(error));
        assert_eq!(Encoder::new(config.clone(), Vec::new()).err(), Some(error));
        assert_eq!(Decoder::new(config, &image).err(), Some(error));
        assert!(!error.to_string().is_empty());
    }
}

/// The other ends of what is allowed.
#[test]
fn ranges_of_the_parameters() {
    let base = || plain(RATIFIED);
    let queue = |bytes, drain| {
        Some(Queue {
            bytes,
            drain,
            stall: false,
        })
    };
    let rv32 = Config::new(RATIFIED, Xlen::Rv32);
    let (good, bad) = (Ok(()), Err(()));
    let width = |iaddress_width| Config {
        iaddress_width,
        ..base()
    };
    for (config, expected) in [
        (width(8), good),
        (width(7), bad),
        (
            Config {
                iaddress_width: 33,
                ..rv32
            },
            bad,
        ),
        (
            Config {
                iaddress_lsb: 0,
                ..base()
            },
            good,
        ),
        (
            Config {
                iaddress_lsb: 2,
                ..base()
            },
            good,
        ),
        (
            Config {
                privilege_width: 4,
                ..base()
            },
            good,
        ),
        (
            Config {
                privilege_width: 5,
                ..base()
            },
            bad,
        ),
        (
            Config {
                context_width: 64,
                ..base()
            },
            good,
        ),
        (
            Config {
                time_width: 64,
                ..base()
            },
            good,
        ),
        (
            Config {
                ecause_width: 64,
                ..base()
            },
            good,
        ),
        (
            Config {
                ecause_width: 65,
                ..base()
            },
            bad,
        ),
        (
            Config {
                f0s_width: 1,
                bpred_size: 15,
                cache_size: 15,
                ..base()
            },
            good,
        ),
        (
            Config {
                cache_size: 16,
                ..base()
            },
            bad,
        ),
        (
            Config {
                call_counter_size: 15,
                ..base()
            },
            good,
        ),
        (
            Config {
                call_counter_size: 16,
                ..base()
            },
            bad,
        ),
        (
            Config {
                return_stack_size: 15,
                ..base()
            },
            good,
        ),
        // irdepth of 17 bits.
        (
            Config {
                return_stack_size: 15,
                call_counter_size: 1,
                ..base()
            },
            bad,
        ),
        (
            Config {
                encoder_mode_width: 0,
                ..base()
            },
            good,
        ),
        (
            Config {
                doptions_width: None,
                ..base()
            },
            good,
        ),
        (
            Config {
                doptions_width: Some(0),
                ..base()
            },
            good,
        ),
        (
            Config {
                queue: queue(MIN_QUEUE, 1),
                ..base()
            },
            good,
        ),
        (
            Config {
                queue: queue(MIN_QUEUE, 0),
                ..base()
            },
            bad,
        ),
    ] {
        assert_eq!(config.validate().map_err(|_| ()), expected, "{config:?}");
    }
}

/// Table 9.2: what a decoder assumes of an encoder that tells nothing. Most
/// attributes are one less than the width they stand for.
#[test]
fn discovery_defaults() {
    let image = image(Isa::RV32GC, &[(0x1000, &[ADD, b(8), ADD, C_JR_A5])]);
    for version in VERSIONS {
        let draft = version == DRAFT;
        let config = Config {
            context_width: if draft { 1 } else { 0 },
            time_width: 0,
            ecause_width: 4,
            iaddress_lsb: 1,
            iaddress_width: 32,
            privilege_width: if draft { 3 } else { 2 },
            ..Config::new(version, Xlen::Rv32)
        };
        let way = way(&[
            &go(&[0x1000, 0x1004, 0x1008, 0x100c, 0x1000]),
            &[Do::Trap(0x1004, 0x1008, exception(15), Some(0x1234))],
            &go(&[0x1008, 0x100c, 0x1004]),
        ]);
        let context = if draft { " context 0" } else { "" };
        let lines = [
            "support on",
            &format!("start 1000{context}"),
            "branches N 1000 updiscon",
            &format!("exception 15 to 1008 tval 1234{context}"),
            "branches N 1004",
            "support off ended_ntr",
        ];
        sends(&config, &image, &way, &lines);
    }
}

/// `iaddress_lsb_p` bits are not sent, of an address or of a difference.
#[test]
fn iaddress_lsb() {
    let image = rv64(&[(0x1000, &[ADD, ADD, JR_A5]), (0xff0, &[ADD, ADD])]);
    let way = go(&[0x1000, 0x1004, 0x1008, 0xff0, 0xff4]);
    for version in VERSIONS {
        for lsb in 0..=2 {
            let config = Config {
                iaddress_lsb: lsb,
                ..plain(version)
            };
            let packets = round_trip(&config, &image, &way);
            let (Packet::Start(start), Packet::Address(jump)) = (packets[1], packets[2]) else {
                panic!("{packets:?}");
            };
            assert_eq!(start.address, 0x1000 >> lsb);
            let width = 64 - u32::from(lsb);
            let back = (-0x10_i64 >> lsb) as u64 & u64::MAX >> (64 - width);
            assert_eq!(jump.address, back);
        }
    }
}

/// Addresses of fewer bits than XLEN: the highest of them goes on to the top.
#[test]
fn iaddress_width() {
    for (width, low, high) in [
        (40, 0x0000_0000_1000, 0xffff_ff80_0000_0000_u64),
        (48, 0x0000_1234_5000, 0xffff_8000_0000_0000),
        (39, 0x0000_0000_1000, 0xffff_ffc0_0020_0000),
        (57, 0x00ff_ffff_f000, 0xff00_0000_0000_0000),
    ] {
        let image = rv64(&[(low, &[ADD, JR_A5, ADD]), (high, &[ADD, JR_A5, ADD])]);
        let way = way(&[
            &go(&[low, low + 4, high, high + 4, low]),
            &[Do::Trap(low + 4, high, exception(2), Some(high))],
            &go(&[high, high + 4, low + 8]),
        ]);
        for version in VERSIONS {
            for full_address in [false, true] {
                let config = Config {
                    iaddress_width: width,
                    full_address,
                    ..plain(version)
                };
                round_trip(&config, &image, &way);
            }
        }
    }
}

/// RV32: the upper half of 64 bits is never anybody's, and addresses wrap.
#[test]
fn rv32_addresses() {
    let image = image(
        Isa::RV32GC,
        &[
            (0, &[ADD, JR_A5]),
            (0x8000_0000, &[ADD, JR_A5]),
            (0xffff_fff8, &[ADD, ADD]),
        ],
    );
    let way = go(&[
        0x8000_0000,
        0x8000_0004,
        0xffff_fff8,
        0xffff_fffc,
        0,
        4,
        0x8000_0000,
    ]);
    for version in VERSIONS {
        for full_address in [false, true] {
            let config = Config {
                full_address,
                ..Config::new(version, Xlen::Rv32)
            };
            let lines = [
                "support on",
                "start 80000000",
                "address fffffff8",
                "address 80000000",
                "support off ended_ntr",
            ];
            sends(&config, &image, &way, &lines);
        }
    }
}

/// Fields hold the lowest bits of what the port shows.
#[test]
fn narrow_fields() {
    let config = Config {
        ecause_width: 4,
        context_width: 8,
        time_width: 8,
        ..plain(RATIFIED)
    };
    let rows = [
        Ingress {
            context: Context(0x1234),
            time: 0xabcd,
            itype: Itype::Exception,
            cause: 0x1f,
            ..one(0x1000, 4)
        },
        Ingress {
            context: Context(0x1234),
            time: 0xabce,
            ..one(0x2000, 4)
        },
    ];
    let lines = text(&config, &encode_blocks(&config, &rows));
    let expected = [
        "support on",
        "start 1000 time cd context 34",
        "exception 15 to 2000 tval 0 time ce context 34",
        "support off ended_ntr",
    ];
    assert_eq!(lines, expected);
}

/// A privilege width of two bits has no room for debug mode and the virtual
/// ones; with three they are all told.
#[test]
fn privilege_codes() {
    let image = rv64(&[(0x1000, &[MRET, MRET, MRET, MRET, MRET, MRET, ADD])]);
    let modes = [Mode::U, Mode::S, Mode::M, Mode::D, Mode::VU, Mode::VS];
    for version in VERSIONS {
        let config = Config {
            privilege_width: 3,
            ..plain(version)
        };
        let mut things = Vec::new();
        let mut lines = vec!["support on".to_owned()];
        for (pc, mode) in (0x1000..).step_by(4).zip(modes) {
            things.extend([Do::Mode(mode), Do::At(pc)]);
            let name = mode.name();
            let owner = if mode == Mode::M {
                String::new()
            } else {
                format!(" in {name}")
            };
            lines.push(format!("start {pc:x}{owner}"));
        }
        lines.push("support off ended_ntr".to_owned());
        let packets = round_trip(&config, &image, &things);
        assert_eq!(text(&config, &packets), lines);
        let codes = packets.iter().filter_map(|p| match p {
            Packet::Start(s) => Some(s.privilege),
            _ => None,
        });
        assert!(codes.eq([0, 1, 3, 4, 5, 6]));
    }
}

/// `ioptions` is what an implementation makes of it: which bit means what is a
/// parameter too.
#[test]
fn ioptions_by_their_place() {
    let order = [
        None,
        Some(Ioption::SequentialJump),
        None,
        None,
        Some(Ioption::FullAddress),
        Some(Ioption::ImplicitReturn),
        None,
    ];
    let other = Ioptions::new(&order).unwrap();
    assert_eq!((other.width(), other.order()), (7, &order[..]));
    assert_eq!(Ioptions::new(&[None; 17]), None);
    let config = Config {
        ioptions: other,
        full_address: true,
        sijump: true,
        ..plain(RATIFIED)
    };
    assert_eq!(config.ioptions_field(), 0b001_0010);
    assert_eq!(other.get(0b001_0000, Ioption::FullAddress), Some(true));
    assert_eq!(other.get(0b110_1111, Ioption::FullAddress), Some(false));
    assert_eq!(other.get(!0, Ioption::BranchPrediction), None);
    // The reference: implicit return, implicit exception, full address, cache,
    // prediction; none for sequential jumps.
    let config = Config {
        full_address: true,
        sijump: true,
        ..plain(RATIFIED)
    };
    assert_eq!(config.ioptions_field(), 0b100);
    for (bit, option) in [
        Ioption::ImplicitReturn,
        Ioption::ImplicitException,
        Ioption::FullAddress,
        Ioption::JumpTargetCache,
        Ioption::BranchPrediction,
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(Ioptions::REFERENCE.get(1 << bit, option), Some(true));
    }
}

/// The widths of the packets about an encoder's own state do not change what
/// they say.
#[test]
fn support_packets_of_any_width() {
    let image = rv64(&[(0x1000, &[ADD, ADD, ADD])]);
    let way = way(&[
        &go(&[0x1000, 0x1004]),
        &[Do::Signal(Signal::Halted), Do::Signal(Signal::Resumed)],
        &go(&[0x1008]),
    ]);
    for version in VERSIONS {
        for encoder_mode_width in [0, 1, 8] {
            for doptions_width in [None, Some(0), Some(4), Some(16)] {
                let config = Config {
                    encoder_mode_width,
                    doptions_width,
                    ..plain(version)
                };
                let lines = [
                    "support on",
                    "start 1000",
                    "address 1004",
                    "support on ended_rep",
                    "start 1008",
                    "support off ended_ntr",
                ];
                sends(&config, &image, &way, &lines);
            }
        }
    }
}
