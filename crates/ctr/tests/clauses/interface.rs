//! What those who drive the engine may do beyond what a hart does.

use hartrace_ctr::{Caller, Config, Control, Csr, Ctr, CycleCount, Denied, PredictorKind};
use hartrace_flow::{Effects, HartId, Insn, Mode, Observer, Step, StepTransfers, Transfer};
use hartrace_isa::{Isa, Itype, Xlen};

use crate::common::{D, M, U, V0_1_4, V1_0};

fn recording(config: Config, control: Control) -> Ctr {
    let mut ctr = Ctr::new(config).unwrap();
    ctr.set_control(control, 0);
    ctr
}

fn call(from: Mode, to: Mode, time: u64) -> Transfer {
    Transfer {
        source: 0x1000,
        target: 0x2000,
        kind: Itype::DirectCall,
        from: Some(from),
        to: Some(to),
        time: Some(time),
        ..Transfer::default()
    }
}

/// 5: a jump is qualified by the mode it retires in. Partial records are those
/// of traps and their returns (5.1).
#[test]
fn a_jump_belongs_to_the_mode_it_retires_in() {
    for version in [V0_1_4, V1_0] {
        let config = Config::new(version, Xlen::Rv64);
        for behind in [M, D] {
            let mut ctr = recording(config, Control::U);
            ctr.record(&call(U, behind, 5));
            let entry = ctr.entry(0);
            assert_eq!((entry.source(), entry.target()), (0x1000, 0x2000));
            assert_eq!((ctr.mode(), ctr.is_active()), (behind, false));
        }
    }
}

/// The same from steps that have debug mode behind a jump.
#[test]
fn a_jump_in_front_of_debug_mode_is_recorded() {
    let mut ctr = recording(Config::default(), Control::MODES);
    let mut transfers = StepTransfers::new(Isa::RV64GC, |_: HartId, t: &Transfer| ctr.record(t));
    for (pc, mode) in [(0x1000, M), (0x800, D)] {
        let insn = Insn {
            pc,
            bits: 0x0080_006f,
            next: pc + 8,
            mode,
            ..Insn::default()
        };
        transfers.step(HartId(0), &Step::Insn(insn), &Effects::default());
    }
    transfers.finish();
    drop(transfers);
    assert_eq!(ctr.entry(0).source(), 0x1000);
    assert!(!ctr.entry(1).is_valid());
}

/// 5.3: where time goes backwards cycles were not counted.
#[test]
fn time_that_goes_backwards_has_no_count() {
    let mut ctr = recording(Config::default(), Control::MODES);
    let counts: Vec<_> = [100, 50, 60]
        .into_iter()
        .map(|time| {
            ctr.record(&call(M, M, time));
            ctr.entry(0).cycles()
        })
        .collect();
    assert_eq!(counts, [None, None, Some(10)]);
}

/// 2.6: each map has its registers and no others, however they are asked for.
#[test]
fn registers_of_the_other_map_do_not_exist() {
    let caller = |xlen| Caller {
        mode: M,
        xlen,
        mstateen0: None,
        hstateen0: None,
        cycles: 0,
    };
    let ratified = Ctr::new(Config::new(V1_0, Xlen::Rv32)).unwrap();
    for csr in [
        Csr::MachineStatus,
        Csr::MachineControlHigh,
        Csr::SupervisorControlHigh,
    ] {
        let check = ratified.check(csr, &caller(Xlen::Rv32));
        assert_eq!(check, Err(Denied::Illegal), "{csr:?}");
    }
    let draft = Ctr::new(Config::new(V0_1_4, Xlen::Rv64)).unwrap();
    let check = draft.check(Csr::Depth, &caller(Xlen::Rv64));
    assert_eq!(check, Err(Denied::Illegal));
}

/// Nothing that was left out moves WRPTR while nothing is recorded.
#[test]
fn a_replay_of_nothing_changes_nothing() {
    let mut ctr = Ctr::new(Config::default()).unwrap();
    ctr.replay(3, core::iter::empty());
    assert_eq!(ctr.snapshot(HartId(0)).status, 0);
}

/// The guest's register needs a hypervisor, from outside too.
#[test]
fn without_a_hypervisor_there_is_no_guest() {
    let mut ctr = Ctr::new(Config::default()).unwrap();
    ctr.set_guest_control(Control::MODES, 0);
    assert_eq!(ctr.guest_control(), Control::NONE);
}

/// 3.2: where MISP does not exist a predictor has nothing to say, and nobody
/// need show it every branch.
#[test]
fn a_predictor_needs_its_bit() {
    let config = Config {
        mispredicts: false,
        ..Config::default()
    };
    let ctr = Ctr::new(config).unwrap();
    let ctr = ctr.with_predictor(PredictorKind::Gshare.build());
    assert_eq!(ctr.wanted(), 0);
}

/// 5.3: four bits of exponent at most, whatever is asked.
#[test]
fn counts_have_sixteen_bits() {
    for bits in [4, 5, 20, 255] {
        assert_eq!(CycleCount::most(bits), CycleCount(0xffff));
        assert_eq!(CycleCount::new(u64::MAX, bits), CycleCount(0xffff));
    }
}
