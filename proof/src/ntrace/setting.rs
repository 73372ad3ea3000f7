//! The option matrix: every number is a setting of port and encoder that the
//! texts allow.

use hartrace_flow::{ItypeWidth, PortConfig, Retirement, Retires};
use hartrace_isa::{Isa, ItypeTable};
use hartrace_ntrace::{
    Config, Evcode, IcntFull, ImplicitReturn, Periodic, Queue, RepeatedHistory, Sync, SyncUnit,
    Timestamps, TraceMode, TrapTypes, TriggerAction, Version,
};

use super::Setting;
use crate::generate::{Random, Spec};

/// The setting with this number, for code of this instruction set. One in
/// four is plain but for a few options, so that each is also seen alone.
pub(super) fn numbered(number: u64, isa: Isa) -> Setting {
    let mut r = Random::new(number ^ 0x0017_ace5);
    let version = if r.chance(500) {
        Version::Rc7
    } else {
        Version::V1_0
    };
    let mut config = Config::new(version, isa.xlen());
    if r.chance(400) {
        config.mode = TraceMode::Btm;
    }
    let calm = r.chance(250);
    let mut on = |permille| r.chance(if calm { permille / 5 } else { permille });
    let parts = [
        on(600),
        on(500),
        on(500),
        on(500),
        on(350),
        on(300),
        on(250),
    ];
    let [
        counters,
        periodic,
        identity,
        stack,
        repeats,
        triggers,
        queue,
    ] = parts;
    if counters {
        counters_of(&mut config, &mut r);
    }
    if periodic {
        config.periodic = Periodic {
            unit: r.pick(&[
                SyncUnit::Off,
                SyncUnit::Messages,
                SyncUnit::Cycles,
                SyncUnit::Halfwords,
            ]),
            max: r.pick(&[0, 0, 1, 2, 3, 5, 7]),
            delayed: r.chance(500),
        };
    }
    let harts = if identity {
        identity_of(&mut config, &mut r)
    } else {
        1
    };
    if stack {
        stack_of(&mut config, &mut r);
    }
    if repeats {
        repeats_of(&mut config, &mut r);
    }
    if triggers {
        triggers_of(&mut config, &mut r);
    }
    config.queue = queue.then(|| Queue {
        bytes: r.pick(&[76, 100, 256, 4096]),
        drain: r.pick(&[20, 100, 400, 1000, 4000]),
        stall: r.chance(600),
    });
    if r.chance(200) {
        config.retires = r.one_of([Retires::Neither, Retires::Ecall, Retires::EcallAndEbreak]);
    }
    let port = port_of(&mut config, isa, &mut r);
    Setting {
        port,
        config,
        harts,
        signals: triggers || r.chance(100),
        loses: r.chance(80),
    }
}

/// Makes a program fit for what the setting trusts it with.
pub(super) fn tame(setting: &Setting, spec: &mut Spec) {
    match setting.config.implicit_return {
        // Every return must go back to its call; what is left is found by
        // looking.
        ImplicitReturn::Count => {
            spec.surprises.longjmp = 0;
            spec.surprises.stray = 0;
            spec.surprises.switch_task = 0;
            spec.weights.swap = 0;
            spec.weights.other_link = 0;
            spec.weights.odd_pair = 0;
        }
        // The low bits must tell all code apart.
        ImplicitReturn::Partial(_) => spec.handlers = None,
        ImplicitReturn::Off | ImplicitReturn::Full => {}
    }
    if setting.config.queue.is_some() {
        spec.timed = true;
    }
}

fn counters_of(config: &mut Config, r: &mut Random) {
    config.icnt_bits = r.pick(&[0, 2, 3, 4, 5, 6, 8, 10, 14, 18, 22]);
    config.hist_bits = r.pick(&[2, 3, 4, 5, 8, 12, 16, 20, 31, 32]).max(2);
    config.short_indirect = r.chance(500);
    let sync = config.version == Version::Rc7 || config.mode == TraceMode::Btm;
    if sync && r.chance(400) {
        config.icnt_full = IcntFull::Sync;
    }
}

/// What messages carry beside the flow. Gives the number of harts.
fn identity_of(config: &mut Config, r: &mut Random) -> u32 {
    config.trap_types = if r.chance(400) {
        TrapTypes::One
    } else {
        TrapTypes::Two
    };
    config.context = r.chance(600);
    config.hcontext = config.context && r.chance(500);
    config.extend_addr_msb = r.chance(500);
    config.sequential_jump = r.chance(500);
    config.all_jumps = r.chance(300);
    if r.chance(500) {
        config.timestamps = Some(Timestamps {
            width: r.pick(&[8, 9, 16, 24, 32, 40, 48, 63, 64]).max(8),
            prescale: r.pick(&[0, 0, 1, 2, 3]),
            sync_only: r.chance(300),
        });
    }
    config.first_sync = r.one_of([Sync::DEBUG_EXIT, Sync::ENABLE, Sync::RESET]);
    config.last_event = r.one_of([Evcode::DEBUG, Evcode::DISABLED, Evcode::LOW_POWER]);
    config.src_bits = r.pick(&[0, 3, 12]);
    if config.src_bits == 0 {
        return 1;
    }
    config.src_id = r.below(1 << config.src_bits) as u16;
    r.between(1, 4)
}

fn stack_of(config: &mut Config, r: &mut Random) {
    config.implicit_return = match r.below(5) {
        0 => ImplicitReturn::Count,
        1 => ImplicitReturn::Partial(r.pick(&[24, 31, 40, 63]).max(24)),
        _ => ImplicitReturn::Full,
    };
    config.stack_depth = r.pick(&[1, 2, 3, 5, 8, 16, 31, 32]).max(1);
    config.markers_keep_stack = config.version == Version::Rc7 && r.chance(400);
}

fn repeats_of(config: &mut Config, r: &mut Random) {
    match config.mode {
        TraceMode::Btm => {
            config.repeat_branch = true;
            config.bcnt_bits = r.pick(&[0, 1, 2, 5, 18]);
        }
        TraceMode::Htm => {
            config.repeated_history = if r.chance(600) {
                RepeatedHistory::On
            } else {
                RepeatedHistory::Reference
            };
            config.hrepeat_bits = r.pick(&[0, 1, 2, 5, 18]);
        }
    }
}

fn triggers_of(config: &mut Config, r: &mut Random) {
    config.triggers = r.chance(700);
    for action in &mut config.external {
        *action = match r.below(6) {
            0 => TriggerAction::On,
            1 => TriggerAction::Off,
            2 | 3 => TriggerAction::Notify,
            _ => TriggerAction::None,
        };
    }
    // Something must be able to start it.
    config.starts_disabled = config.triggers && r.chance(300);
}

fn port_of(config: &mut Config, isa: Isa, r: &mut Random) -> PortConfig {
    let table = match config.version {
        Version::Rc7 => ItypeTable::NTraceRc7,
        Version::V1_0 => ItypeTable::NTrace10,
    };
    let three = r.chance(200);
    let table_jumps = config.version == Version::Rc7 && isa.to_string().contains("zcmt");
    // Three bits do not distinguish direct jumps from nothing at all, and those of
    // rc7 not cm.jt.
    let all_jumps = config.all_jumps && (three || table_jumps || r.chance(300));
    if all_jumps && !three {
        // Some calls are seen and some are not.
        config.implicit_return = ImplicitReturn::Off;
    }
    PortConfig {
        table,
        itype_width: if three {
            ItypeWidth::Three
        } else {
            ItypeWidth::Four
        },
        retirement: match r.below(4) {
            0 => Retirement::Block(r.between(2, 9)),
            1 => Retirement::Block(r.pick(&[64, 1000])),
            _ => Retirement::Single,
        },
        sijump: config.sequential_jump || r.chance(300),
        all_jumps,
        retires: config.retires,
        ..PortConfig::new(isa)
    }
}
