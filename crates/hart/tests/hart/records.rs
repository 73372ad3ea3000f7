//! Control transfer records that the hart keeps against records that somebody
//! who watches its steps keeps: two ways to the same.

use std::path::Path;

use hartrace_ctr::{
    Config as Records, ConfigError as RecordsError, Control, Ctr, Depths, PredictorKind, Record,
    Version,
};
use hartrace_flow::{
    Effects, HartId, Model as _, Observer, Place, Step, StepTransfers, Transfer, Wants,
};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, ConfigError, Machine, Platform, Program};
use hartrace_isa::{Isa, Xlen};

/// A machine with records, at the start of a program of this repository.
fn machine(name: &str, version: Version, predictor: PredictorKind) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs");
    let bytes = std::fs::read(path.join(name)).unwrap();
    let program = Program::from_elf(&bytes).unwrap();
    let mut config = Config::new(Platform::Virt, program.xlen);
    config.isa += "_smctr_ssctr";
    config.ctr = Records::new(version, program.xlen);
    config.predictor = predictor;
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    machine
}

/// Runs a program with the records on from its start, in stretches of some
/// instructions, and compares all there is after each.
fn agree(name: &str, version: Version, control: Control, depth: u16, predictor: PredictorKind) {
    let mut machine = machine(name, version, predictor);
    let xlen = machine.ctr().unwrap().config().xlen;
    let bits = control.to_bits(version);
    match version {
        Version::V1_0 => {
            let code = u64::from(depth.trailing_zeros() - 4);
            machine.write(Place::Csr(0x15f), code).unwrap();
            machine.write(Place::Csr(0x34e), bits).unwrap();
        }
        Version::V0_1_4 => {
            let bits = bits | u64::from(depth / 16 - 1) << 16;
            machine.write(Place::Csr(0x381), bits).unwrap();
            if xlen == Xlen::Rv32 {
                machine.write(Place::Csr(0x382), bits >> 32).unwrap();
            }
        }
    }
    let own = machine.ctr().unwrap();
    assert_eq!(own.depth(), depth);
    let mut beside = Ctr::new(*own.config()).unwrap();
    beside = beside.with_predictor(predictor.build());
    beside.set_depth(depth);
    // On RV32 the map of 1.0 does not reach the upper half.
    beside.set_control(own.control(), machine.cycles());

    let isa = Isa::parse(&machine.config().isa).unwrap();
    for stretch in [1, 10, 1_000, 50_000, 200_000] {
        let sink = |_: HartId, transfer: &Transfer| beside.record(transfer);
        let mut watch = StepTransfers::new(isa, sink).with_types(version.types());
        let _ = machine.run(stretch, &mut watch);
        watch.finish();
        let own = machine.ctr().unwrap();
        assert_eq!(
            own.snapshot(HartId(0)),
            beside.snapshot(HartId(0)),
            "{name} {version} {control} {depth} {predictor:?}"
        );
    }
    assert!(machine.instructions() > 1_000, "{name}");
}

const PROGRAMS: [&str; 6] = [
    "recursion/recursion-rv64gc.elf",
    "interpreter/interpreter-rv64gc.elf",
    "modes/modes-rv32gc.elf",
    "modes/modes-rv64gc.elf",
    "timer/timer-rv64gc.elf",
    "longjmp/longjmp-rv32gc.elf",
];

/// The enables and a choice of the other fields.
fn controls() -> Vec<Control> {
    let modes = Control::MODES;
    let calls = Control::TKBRINH
        .with(Control::DIRJMPINH)
        .with(Control::INDJMPINH);
    let external = Control::U
        .with(Control::MTE)
        .with(Control::STE)
        .with(Control::ETEN);
    vec![
        modes,
        modes.with(Control::NTBREN),
        modes.with(Control::RASEMU),
        modes.with(calls),
        modes.with(Control::EXCINH).with(Control::RETINH),
        Control::U,
        Control::S.with(Control::U),
        Control::M,
        external,
    ]
}

#[test]
fn what_the_hart_records_is_what_its_steps_tell() {
    for name in PROGRAMS {
        for (i, control) in controls().into_iter().enumerate() {
            let version = Version::ALL[i % 2];
            agree(name, version, control, 16 << (i % 5), PredictorKind::None);
        }
    }
}

#[test]
fn every_depth_and_version_records_everything() {
    for version in Version::ALL {
        for depth in [16, 32, 64, 128, 256] {
            let all = Control::MODES;
            agree(PROGRAMS[0], version, all, depth, PredictorKind::None);
        }
    }
}

#[test]
fn predictors_see_every_branch() {
    for predictor in PredictorKind::ALL {
        for control in [Control::MODES, Control::MODES.with(Control::RASEMU)] {
            agree(PROGRAMS[1], Version::V1_0, control, 32, predictor);
            agree(PROGRAMS[3], Version::V1_0, control, 32, predictor);
        }
    }
}

/// Control Transfer Records 1.0, 2.1: with Sscofpmf, which comes along here,
/// LCOFIFRZ is writable whatever else is left out.
#[test]
fn counters_that_overflow_bring_their_freeze() {
    let mut config = Config::new(Platform::Virt, Xlen::Rv64);
    config.isa += "_smctr_ssctr";
    config.ctr.fields = Control::NONE;
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.write(Place::Csr(0x34e), u64::MAX).unwrap();
    // LCOFIFRZ, BPFRZ, M, S, U.
    assert_eq!(machine.read(Place::Csr(0x34e)), Ok(0x1807));
}

/// The hart has S-mode and no hypervisor, whatever its records are said to
/// have (2.2, 2.3).
#[test]
fn modes_are_those_of_the_hart() {
    let mut config = Config::new(Platform::Virt, Xlen::Rv64);
    config.isa += "_smctr_ssctr";
    config.ctr = Records::new(Version::V0_1_4, Xlen::Rv64).with_hypervisor();
    config.ctr.supervisor = false;
    let machine = Machine::new(config, Host::silent()).unwrap();
    let records = machine.ctr().unwrap().config();
    assert_eq!((records.supervisor, records.hypervisor), (true, false));
}

/// Records that cannot be are refused before the machine is built.
#[test]
fn impossible_records_are_refused() {
    let mut config = Config::new(Platform::Virt, Xlen::Rv64);
    config.isa += "_smctr_ssctr";
    config.ctr = Records::new(Version::V0_1_4, Xlen::Rv64);
    config.ctr.depths = Depths::NONE.with(16).unwrap().with(64).unwrap();
    let error = config.validate().unwrap_err();
    assert_eq!(error, ConfigError::Records(RecordsError::ScatteredDepths));
}

/// A model shows the entries in every mode: who may is asked of instructions.
#[test]
fn a_model_reads_entries_in_user_mode() {
    let mut config = Config::new(Platform::Virt, Xlen::Rv64);
    config.isa += "_smctr_ssctr";
    let mut machine = Machine::new(config, Host::silent()).unwrap();
    machine.write(Place::Csr(0x150), 0x200).unwrap();
    machine.write(Place::Csr(0x151), 0x1235).unwrap();
    machine.write(Place::Mode, 0).unwrap();
    assert_eq!(machine.read(Place::Csr(0x151)), Ok(0x1235));
}

struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// Records beside the hart are those that the program could have had, and it
/// does not see them; a reset starts them anew.
#[test]
fn records_beside_the_hart_are_not_seen() {
    for name in PROGRAMS {
        for version in Version::ALL {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs");
            let program = Program::from_elf(&std::fs::read(path.join(name)).unwrap()).unwrap();
            let config = Config::new(Platform::Virt, program.xlen);
            let isa = Isa::parse(&config.isa).unwrap();
            let mut beside = Ctr::new(Records::new(version, program.xlen)).unwrap();
            beside.set_control(Control::MODES.with(Control::NTBREN), 0);
            let mut second = beside.clone();

            let mut machine = Machine::new(config, Host::silent()).unwrap();
            machine.load(program, None).unwrap();
            machine.record_beside(beside);
            for csr in [0x34e, 0x14e, 0x15f, 0x381, 0x151, 0x351] {
                assert!(machine.read(Place::Csr(csr)).is_err(), "{csr:#x}");
            }
            let sink = |_: HartId, transfer: &Transfer| second.record(transfer);
            let mut watch = StepTransfers::new(isa, sink).with_types(version.types());
            let _ = machine.run(100_000, &mut watch);
            watch.finish();
            let kept = machine.ctr().unwrap().snapshot(HartId(0));
            assert_eq!(kept, second.snapshot(HartId(0)), "{name} {version}");

            machine.reset();
            assert_eq!(machine.ctr().unwrap().entry(0), Record::default());
            let _ = machine.run(100_000, &mut NoObserver);
            assert_eq!(machine.ctr().unwrap().snapshot(HartId(0)), kept, "{name}");
        }
    }
}

/// A hart with records of its own keeps those.
#[test]
fn own_records_stay() {
    let mut machine = machine(PROGRAMS[0], Version::V1_0, PredictorKind::None);
    machine.record_beside(Ctr::new(Records::new(Version::V0_1_4, Xlen::Rv64)).unwrap());
    assert_eq!(machine.ctr().unwrap().config().version, Version::V1_0);
    assert!(machine.read(Place::Csr(0x34e)).is_ok());
}
