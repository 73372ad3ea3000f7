//! The option matrix: every number is a setting of port and encoder that the
//! texts allow.

use hartrace_etrace::{
    Config, Encapsulation, Form, IdleIrdepth, Ioption, Ioptions, Padding, Queue, Resync,
    ResyncRule, ResyncUnit, Shortening, Version,
};
use hartrace_flow::{Ctype, ItypeWidth, PortConfig, Retirement, Retires};
use hartrace_isa::{Ext, Isa, ItypeTable, Xlen};

use super::Setting;
use crate::generate::{Base, Modes, Random, Spec};

/// The setting with this number, for code of this instruction set. One in
/// four is plain but for a few options, so that each is also seen alone.
pub(super) fn numbered(number: u64, isa: Isa) -> Setting {
    let mut r = Random::new(number ^ 0xe17a_ce20);
    let version = r.one_of([Version::V1_1_1, Version::V2_0, Version::V2_05]);
    let mut config = Config::new(version, isa.xlen());
    let calm = r.chance(250);
    let mut on = |permille| r.chance(if calm { permille / 5 } else { permille });
    let parts = [
        on(600),
        on(600),
        on(500),
        on(500),
        on(300),
        on(200),
        on(700),
    ];
    let [addresses, widths, resync, options, triggers, queue, modes] = parts;
    if addresses {
        addresses_of(&mut config, isa, &mut r);
    }
    if widths {
        widths_of(&mut config, &mut r);
    }
    if resync {
        config.resync = Resync {
            unit: r.one_of([
                ResyncUnit::Off,
                ResyncUnit::Packets,
                ResyncUnit::Cycles,
                ResyncUnit::Halfwords,
            ]),
            max: r.pick(&[0, 0, 1, 2, 3, 5, 7]),
            rule: r.one_of([ResyncRule::Settled, ResyncRule::Exceeded]),
        };
    }
    if options {
        options_of(&mut config, &mut r);
    }
    if modes {
        modes_of(&mut config, &mut r);
    }
    if triggers {
        config.triggers = r.chance(800);
        // Something must be able to start it.
        config.starts_disabled = config.triggers && r.chance(300);
    }
    config.queue = queue.then(|| Queue {
        bytes: r.pick(&[64, 80, 256, 4096]),
        drain: r.pick(&[20, 100, 400, 1000, 4000]),
        stall: r.chance(600),
    });
    let port = port_of(&config, isa, &mut r);
    encapsulation_of(&mut config, &mut r);
    config.sijump_returns = port.itype_width == ItypeWidth::Three;
    let several = config.encapsulation.has_sources();
    Setting {
        port,
        config,
        harts: match several {
            true => r.between(1, 3),
            // Packets do not say whose they are.
            false => 1,
        },
        signals: triggers || r.chance(100),
        loses: r.chance(80),
    }
}

impl Setting {
    /// The form of the reference models, and one hart: all that the plain decoder knows.
    pub(super) fn unpack(&mut self) {
        let config = &mut self.config;
        config.encapsulation = Encapsulation::default();
        config.shortening = Shortening::Packet;
        config.padding = Padding::Sign;
        config.interrupt_tval = false;
        self.harts = 1;
    }
}

/// One of the encapsulations, in half of the settings, with parameters of all kinds.
fn encapsulation_of(config: &mut Config, r: &mut Random) {
    if r.chance(500) {
        return;
    }
    let form = r.one_of([Form::Riscv, Form::Riscv, Form::Smi, Form::Atb, Form::Esp32]);
    let mut form = Encapsulation::new(match r.chance(150) {
        true => Form::Slots,
        false => form,
    });
    let riscv = matches!(form.form, Form::Riscv | Form::Slots);
    if riscv || form.form == Form::Smi {
        form.src_bits = r.pick(&[0, 2, 3, 8, 8, 11, 16]);
        form.src_id = match form.src_bits {
            0 => 0,
            bits => r.below(1 << bits) as u16 / 2,
        };
    }
    form.time_bytes = match form.form {
        Form::Riscv | Form::Slots => r.pick(&[0, 0, 1, 2, 5, 8]),
        Form::Smi | Form::Atb => r.pick(&[0, 2]),
        Form::Reference | Form::Esp32 => 0,
    };
    if riscv {
        form.type_bits = r.pick(&[0, 1, 3]);
        form.flow = r.pick(&[0, 1, 2, 3]);
    }
    if matches!(form.form, Form::Riscv | Form::Esp32) {
        form.sync_bytes = r.pick(&[0, 100, 4096]);
    }
    let plain = core::mem::replace(&mut config.encapsulation, form);
    let pulp = form.form == Form::Slots && r.chance(500);
    if pulp && config.bpred_size == 0 && config.cache_size == 0 {
        config.shortening = Shortening::Address;
        config.padding = Padding::Ignored;
        config.interrupt_tval = config.version == Version::V2_0;
    }
    if let Some(queue) = &mut config.queue {
        queue.bytes = queue.bytes.max(256);
    }
    if config.validate().is_err() {
        config.encapsulation = plain;
        config.shortening = Shortening::Packet;
        config.padding = Padding::Sign;
        config.interrupt_tval = false;
    }
}

fn addresses_of(config: &mut Config, isa: Isa, r: &mut Random) {
    config.full_address = r.chance(400);
    config.iaddress_lsb = match isa.has(Ext::Zca) {
        true => r.pick(&[0, 1, 1]),
        false => r.pick(&[0, 1, 2]),
    };
    // Code lies in the lower or upper part of 2^39 bytes.
    if isa.xlen() == Xlen::Rv64 {
        config.iaddress_width = r.one_of([40, 48, 64]);
    }
}

fn widths_of(config: &mut Config, r: &mut Random) {
    config.privilege_width = r.one_of([2, 3, 4]);
    config.context_width = r.one_of([0, 1, 2, 8, 13, 32, 64]);
    config.ecause_width = r.one_of([1, 4, 5, 6, 16, 64]);
    config.time_width = match config.version {
        Version::V1_1_1 => 0,
        Version::V2_0 => r.one_of([0, 1, 8, 16, 33, 48, 64]),
        Version::V2_05 => r.one_of([0, 16, 32, 48, 64]),
    };
    config.f0s_width = r.pick(&[0, 1, 2]);
    if config.version != Version::V2_05 {
        config.encoder_mode_width = r.pick(&[0, 1, 2, 8]);
        config.doptions_width = r.one_of([None, Some(0), Some(4), Some(16)]);
    }
    config.call_counter_size = r.pick(&[0, 0, 1, 9]);
    if config.call_counter_size == 0 {
        config.return_stack_size = r.pick(&[0, 0, 1, 7]);
    }
    config.idle_irdepth = r.one_of([IdleIrdepth::Repeated, IdleIrdepth::Ones]);
    // A packet has 31 bytes at most.
    if config.validate().is_err() {
        config.context_width = config.context_width.min(8);
        config.time_width = config.time_width.min(16);
    }
}

fn options_of(config: &mut Config, r: &mut Random) {
    config.sijump = r.chance(500);
    let known = [
        Some(Ioption::SequentialJump),
        Some(Ioption::ImplicitReturn),
        Some(Ioption::ImplicitException),
        Some(Ioption::BranchPrediction),
        Some(Ioption::JumpTargetCache),
        Some(Ioption::FullAddress),
        None,
    ];
    if r.chance(700) && config.version != Version::V2_05 {
        // Some of them, each once, from anywhere in the list.
        let mut order = Vec::new();
        for option in known {
            if r.chance(700) {
                let at = r.below(order.len() as u64 + 1) as usize;
                order.insert(at, option);
            }
        }
        config.ioptions = Ioptions::new(&order).unwrap_or(Ioptions::REFERENCE);
    }
}

/// The optional modes, each alone and all together.
fn modes_of(config: &mut Config, r: &mut Random) {
    config.branch_prediction = r.chance(500);
    // No program runs that long, and damage must not.
    config.max_branch_count = 1 << 20;
    config.jump_target_cache = r.chance(500);
    config.implicit_return = r.chance(500);
    config.implicit_exception = r.chance(400);
    if config.branch_prediction {
        config.bpred_size = r.pick(&[1, 2, 5, 7]);
    }
    if config.jump_target_cache {
        config.cache_size = r.pick(&[1, 2, 5, 7]);
    }
    if config.implicit_return {
        (config.return_stack_size, config.call_counter_size) = r.pick(&[
            (1, 0),
            (3, 0),
            (5, 0),
            (7, 0),
            (0, 1),
            (0, 3),
            (0, 7),
            (2, 2),
        ]);
    }
    if config.implicit_exception && config.ioptions.get(0, Ioption::ImplicitException).is_none() {
        config.ioptions = Ioptions::REFERENCE;
    }
    if config.bpred_size > 0 && config.cache_size > 0 {
        config.f0s_width = config.f0s_width.max(1);
    }
    // A packet has 31 bytes at most.
    if config.validate().is_err() {
        config.context_width = config.context_width.min(8);
        config.time_width = config.time_width.min(16);
    }
}

fn port_of(config: &Config, isa: Isa, r: &mut Random) -> PortConfig {
    PortConfig {
        table: match config.version {
            Version::V1_1_1 => ItypeTable::ETrace111,
            Version::V2_0 | Version::V2_05 => ItypeTable::ETrace20,
        },
        itype_width: match r.chance(300) && !config.implicit_return {
            true => ItypeWidth::Three,
            false => ItypeWidth::Four,
        },
        retirement: match r.below(4) {
            0 => Retirement::Block(r.between(2, 9)),
            1 => Retirement::Block(r.pick(&[64, 1000])),
            _ => Retirement::Single,
        },
        sijump: config.sijump || r.chance(300),
        retires: r.one_of([
            Retires::Neither,
            Retires::Neither,
            Retires::Ecall,
            Retires::EcallAndEbreak,
        ]),
        ctype: r.one_of([
            Ctype::Unreported,
            Ctype::Imprecise,
            Ctype::Precise,
            Ctype::Precise,
            Ctype::Discontinuity,
        ]),
        ..PortConfig::new(isa)
    }
}

/// Makes a program fit for the setting, and the setting for the program.
pub(super) fn tame(setting: &mut Setting, spec: &mut Spec) {
    let config = &mut setting.config;
    // VS and VU have codes of three bits.
    if config.privilege_width < 3 && spec.modes == Modes::Hypervisor {
        spec.modes = Modes::Supervisor;
    }
    if config.queue.is_some() {
        spec.timed = true;
    }
    // Narrow addresses, where the code has no others.
    let low = matches!(spec.base, Base::Zero | Base::Low) && spec.handlers.is_none();
    if low && config.iaddress_width == 40 {
        config.iaddress_width = 24;
    }
}
