use super::*;
use crate::{Queue, Version};
use alloc::string::ToString;
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

fn config() -> Config {
    Config::new(Version::V1_0, Xlen::Rv64)
}

/// All settings that registers hold, from the digits of a number.
fn nth(mut n: u64) -> Config {
    let mut digit = |base: u64| {
        let d = n % base;
        n = (n / base) ^ (n.rotate_left(23) >> 8);
        d
    };
    let mut config = config();
    if digit(2) == 0 {
        config.mode = TraceMode::Btm;
    } else if digit(2) == 0 {
        config.repeated_history = RepeatedHistory::On;
    }
    config.src_bits = digit(13) as u8;
    config.src_id = digit(1 << config.src_bits) as u16;
    config.context = digit(2) == 0;
    config.triggers = digit(2) == 0;
    config.starts_disabled = digit(2) == 0;
    config.queue = (digit(2) == 0).then_some(Queue {
        bytes: 100,
        drain: 10,
        stall: digit(2) == 0,
    });
    config.periodic.unit = [
        SyncUnit::Off,
        SyncUnit::Messages,
        SyncUnit::Cycles,
        SyncUnit::Halfwords,
    ][digit(4) as usize];
    config.periodic.max = digit(16) as u8;
    config.timestamps = (digit(2) == 0).then_some(Timestamps {
        width: 1 + digit(63) as u8,
        prescale: digit(4) as u8,
        sync_only: false,
    });
    config.sequential_jump = digit(2) == 0;
    config.all_jumps = digit(2) == 0;
    config.extend_addr_msb = digit(2) == 0;
    config.implicit_return = [
        ImplicitReturn::Off,
        ImplicitReturn::Count,
        ImplicitReturn::Partial(PARTIAL_BITS),
        ImplicitReturn::Full,
    ][digit(4) as usize];
    for action in &mut config.external {
        *action = [
            TriggerAction::None,
            TriggerAction::On,
            TriggerAction::Off,
            TriggerAction::Notify,
        ][digit(4) as usize];
    }
    config
}

#[test]
fn settings_come_back() {
    let mut random = Random::new(1);
    for _ in 0..5000 {
        let want = nth(random.draw());
        want.validate().unwrap();
        let registers = Registers::of(&want);
        assert_eq!(registers.check_reserved(), Ok(()));
        // Onto the settings of another, and onto those of a new encoder.
        for mut got in [nth(random.draw()), config()] {
            got.queue = want.queue.map(|q| Queue { stall: false, ..q });
            registers.apply(&mut got).unwrap();
            assert_eq!(got, want);
        }
        // An encoder that can do it all holds what was written.
        let held = Capabilities::ALL.read_back(registers);
        let width = registers.ts_control.width();
        let wide = held.ts_control.with_width(width);
        let ts_control = if width == 0 { TsControl(0) } else { wide };
        assert_eq!(Registers { ts_control, ..held }, registers);
        assert_eq!(Capabilities::ALL.read_back(held), held);
    }
}

#[test]
fn fields_are_where_the_interface_has_them() {
    let control = TeControl(0x0158_a067);
    assert!(control.active() && control.enable() && control.inst_tracing());
    assert!(!control.empty() && control.inst_stall_ena() && control.inhibit_src());
    assert_eq!((control.inst_mode(), control.format()), (6, 1));
    assert_eq!((control.inst_sync_mode(), control.inst_sync_max()), (0, 5));
    assert_eq!(control.reserved(), 0x0008_0000);
    assert_eq!(TeImpl::N_TRACE, TeImpl(0x0001_0101));
    let features = TeInstFeatures(0xc123_07cc);
    assert_eq!((features.src_bits(), features.src_id()), (12, 0x123));
    assert!(features.en_sequential_jump() && features.en_implicit_return());
    assert_eq!(features.implicit_return_mode(), 3);
    assert!(features.en_all_jumps() && features.extend_addr_msb());
    let ts = TsControl(0).with_width(48).with_prescale(9).with_mode(4);
    assert_eq!(ts, TsControl(0x3000_0140));
}

#[test]
fn fields_do_not_overlap() {
    for fields in [
        TeControl::FIELDS,
        TeImpl::FIELDS,
        TeInstFeatures::FIELDS,
        TsControl::FIELDS,
    ] {
        let mut seen = 0;
        for field in fields {
            assert_eq!(seen & field.mask(), 0, "{}", field.name);
            seen |= field.mask();
            assert_eq!(field.get(field.set(0, u32::MAX)) + 1, 1 << field.width);
        }
    }
}

#[test]
fn an_error_names_its_field_and_changes_nothing() {
    let good = Registers::of(&config());
    let (control, impl_, features) = (good.control, good.impl_, good.inst_features);
    let ts = TsControl(0).with_enable(true).with_mode(2).with_width(40);
    let with_control = |control| Registers { control, ..good };
    let with_impl = |impl_| Registers { impl_, ..good };
    let with_features = |inst_features| Registers {
        inst_features,
        ..good
    };
    let with_ts = |ts_control| Registers { ts_control, ..good };
    let cases = [
        (with_control(control.with_format(7)), "trTeFormat = 0x7"),
        (
            with_control(control.with_inst_mode(0)),
            "trTeInstMode = 0x0",
        ),
        (
            with_control(control.with_inst_mode(4)),
            "trTeInstMode = 0x4",
        ),
        (
            with_control(control.with_inst_mode(7)),
            "a vendor-defined mode",
        ),
        (
            with_control(TeControl(control.0 | 1 << 31)),
            "trTeControl: reserved = 0x80000000",
        ),
        (with_impl(impl_.with_ver_major(0)), "trTeVerMajor = 0x0"),
        (with_impl(impl_.with_comp_type(8)), "trTeCompType = 0x8"),
        (with_impl(impl_.with_protocol_major(2)), "trTeProtocolMajor"),
        (
            with_features(features.with_no_addr_diff(true)),
            "trTeInstFeatures: trTeInstNoAddrDiff = 0x1",
        ),
        (
            with_features(features.with_no_trap_addr(true)),
            "trTeInstNoTrapAddr",
        ),
        (
            with_features(features.with_en_branch_prediction(true)),
            "trTeInstEnBranchPrediction",
        ),
        (
            with_features(features.with_en_jump_target_cache(true)),
            "trTeInstEnJumpTargetCache",
        ),
        (
            with_features(features.with_en_implicit_return(true)),
            "trTeInstImplicitReturnMode = 0x0",
        ),
        (
            with_features(features.with_src_bits(13)),
            "trTeSrcBits = 0xd",
        ),
        (with_ts(ts.with_mode(0)), "trTsMode = 0x0"),
        (with_ts(ts.with_mode(6)), "trTsMode = 0x6"),
        (with_ts(ts.with_width(0)), "trTsWidth = 0x0"),
        (
            Registers {
                trig_ext_in: 0x0500_0000,
                ..good
            },
            "trTeTrigExtInControl: trTeTrigExtInAction6 = 0x5",
        ),
    ];
    for (registers, text) in cases {
        let mut config = config();
        let error = registers.apply(&mut config).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(config, self::config());
    }
}

#[test]
fn a_source_that_does_not_fit_is_refused_unless_inhibited() {
    let mut registers = Registers::of(&config());
    registers.inst_features = TeInstFeatures(0).with_src_bits(3).with_src_id(8);
    let mut config = config();
    registers.apply(&mut config).unwrap();
    assert_eq!((config.src_bits, config.src_id), (0, 0));
    registers.control = registers.control.with_inhibit_src(false);
    assert!(registers.apply(&mut config).is_err());
    registers.inst_features = registers.inst_features.with_src_id(7);
    registers.apply(&mut config).unwrap();
    assert_eq!((config.src_bits, config.src_id), (3, 7));
}

#[test]
fn what_registers_do_not_say_stays() {
    let mut want = config();
    want.implicit_return = ImplicitReturn::Partial(9);
    want.repeated_history = RepeatedHistory::Reference;
    want.timestamps = Some(Timestamps {
        width: 64,
        prescale: 1,
        sync_only: true,
    });
    want.hist_bits = 20;
    let mut got = want.clone();
    Registers::of(&want).apply(&mut got).unwrap();
    assert_eq!(got, want);
    // A dump made after the trace: it did not begin switched off.
    let mut after = Registers::of(&want);
    after.control = after.control.with_enable(false).with_inst_tracing(false);
    after.apply(&mut got).unwrap();
    assert!(!got.starts_disabled);
    // Another minor version is good.
    after.impl_ = after.impl_.with_protocol_minor(3).with_ver_minor(1);
    after.apply(&mut got).unwrap();
}

#[test]
fn registers_must_go_with_the_rest() {
    let mut config = config();
    let htm = Registers::of(&config);
    config.mode = TraceMode::Btm;
    config.icnt_full = crate::IcntFull::Sync;
    assert_eq!(
        htm.apply(&mut config),
        Err(RegisterError::Config(ConfigError::SequentialSync))
    );
    config.icnt_full = crate::IcntFull::ResourceFull;
    config.repeat_branch = true;
    htm.apply(&mut config).unwrap();
    assert!(!config.repeat_branch);
}

#[test]
fn written_values_become_legal() {
    let ones = Registers {
        control: TeControl(u32::MAX),
        impl_: TeImpl(u32::MAX),
        inst_features: TeInstFeatures(u32::MAX),
        ts_control: TsControl(u32::MAX),
        trig_ext_in: 0x2345_f132,
    };
    let held = Capabilities::ALL.read_back(ones);
    assert_eq!(held.control, TeControl(0x01f3_aa6f));
    assert_eq!(held.impl_, TeImpl::N_TRACE);
    assert_eq!(held.inst_features, TeInstFeatures(0xcfff_07cc));
    // Mode 7 is a vendor's; shared timestamps have no prescaler here.
    assert_eq!(held.ts_control, TsControl(0x3f00_8041));
    assert_eq!(held.trig_ext_in, 0x2340_0032);
    let none = Capabilities {
        btm: true,
        htm: false,
        sync_modes: [false, true, false],
        sync_max: (4, 8),
        context: false,
        triggers: false,
        stall: false,
        inhibit_src: false,
        src_bits: 2,
        sequential_jump: false,
        implicit_return: [true, false, false],
        repeated_history: false,
        all_jumps: false,
        extend_addr_msb: false,
        timestamps: None,
        external_triggers: 1,
    };
    let held = none.read_back(ones);
    assert_eq!(held.control, TeControl(0x0182_003f));
    assert_eq!(held.inst_features, TeInstFeatures(0x2003_0048));
    assert_eq!((held.ts_control, held.trig_ext_in), (TsControl(0), 2));
    let zeros = Registers {
        control: TeControl(1),
        ..Registers::default()
    };
    assert_eq!(none.read_back(zeros).control, TeControl(0x0140_0009));
    // In reset.
    let reset = none.read_back(Registers::default());
    assert_eq!(reset.control, TeControl(8));
    assert_eq!(reset.impl_, TeImpl(0));
}

#[test]
fn what_is_read_back_is_always_legal() {
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99);
        (seed >> 32) as u32
    };
    let all = Capabilities::ALL;
    for _ in 0..2000 {
        let written = Registers {
            control: TeControl(next() | 1),
            impl_: TeImpl(next()),
            inst_features: TeInstFeatures(next()),
            ts_control: TsControl(next()),
            trig_ext_in: next(),
        };
        let some = Capabilities {
            htm: next() & 1 != 0,
            sync_modes: [next() & 1 != 0, true, next() & 1 != 0],
            src_bits: (next() % 13) as u8,
            implicit_return: [0; 3].map(|_| next() & 1 != 0),
            timestamps: all.timestamps.filter(|_| next() & 1 != 0),
            external_triggers: (next() % 9) as u8,
            ..all
        };
        let held = some.read_back(written);
        assert_eq!(some.read_back(held), held);
        assert_eq!(held.check_reserved(), Ok(()));
        let wrong = held.apply(&mut config());
        let inst_off = held.control.inst_mode() == 0;
        let no_time = held.ts_control.enable() && held.ts_control.mode() == 0;
        let src = held.inst_features;
        let no_src = !held.control.inhibit_src()
            && src.src_bits() > 0
            && src.src_id() >> src.src_bits() != 0;
        assert_eq!(wrong.is_err(), inst_off || no_time || no_src, "{wrong:?}");
    }
}
