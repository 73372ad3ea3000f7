//! Every fault that a trace can have, with its place and value.

use std::collections::BTreeSet;

use hartrace_tandem::{Config, Fault, Flen, PcForm, Shadow, Style};

use crate::common::{Told, decode, groups, hex, read};

/// Where the pc is, and c.nop: what can be found again.
const NOP: &str = "01 03 10 01 00 02";

/// A trace, what is wrong with it, where, in which group, and which value.
struct Case(Fault, String, u64, u64, u64);

fn cases() -> Vec<Case> {
    let to = "08 00 10 00 00 00 00 00 00";
    let load = format!("{to} 20");
    let many = "07 02 00 00 00 00 00 00 00 00 ".repeat(65);
    vec![
        Case(Fault::UnknownOpcode, format!("{NOP} 01 0c 02"), 7, 1, 12),
        Case(Fault::Truncated, format!("{NOP} 01 04 03"), 7, 1, 2),
        Case(Fault::UnknownIdentifier, "01 07 0b".into(), 1, 0, 11),
        Case(
            Fault::UnknownRegister,
            format!("{NOP} 04 40 10"),
            6,
            1,
            0x1040,
        ),
        Case(Fault::NoFloat, "01 04 20 10".into(), 1, 0, 0x1020),
        Case(Fault::UnknownSize, format!("01 {to} 40"), 1, 0, 4),
        Case(Fault::UnknownOperation, format!("01 {to} 0e"), 1, 0, 14),
        Case(Fault::UnknownResult, format!("01 {load} 09 22"), 11, 0, 2),
        Case(Fault::LoneResponse, "01 09 00".into(), 1, 0, 9),
        Case(Fault::ResponseSize, format!("01 {load} 09 01"), 11, 0, 1),
        Case(Fault::InsnLength, "01 10 13 00".into(), 1, 0, 0x13),
        Case(Fault::LongGroup, format!("01 {many}"), 1 + 64 * 10, 0, 64),
        Case(Fault::OpenGroup, format!("{NOP} 01 03"), 8, 1, 6),
        Case(Fault::TwoPcs, "01 03 03 02".into(), 2, 0, 3),
        Case(Fault::IncrementAlone, format!("{NOP} 01 03 02"), 6, 1, 3),
        Case(Fault::TwoInsns, "01 10 01 00 10 02 00 02".into(), 4, 0, 2),
        Case(
            Fault::RegisterTwice,
            "01 05 01 10 01 05 01 10 01 02".into(),
            5,
            0,
            0x1001,
        ),
        Case(
            Fault::InitWithExecution,
            "01 0b 10 01 00 02".into(),
            0,
            0,
            11,
        ),
        Case(Fault::UnknownMode, "01 07 01 02 02".into(), 1, 0, 2),
        Case(
            Fault::FloatIncrement,
            "01 05 20 10 01 02".into(),
            1,
            0,
            0x1020,
        ),
        Case(Fault::StateTwice, "01 07 01 03 07 01 00 02".into(), 4, 0, 1),
    ]
}

fn config_of(fault: Fault) -> Config {
    Config {
        flen: match fault {
            Fault::NoFloat => Flen::None,
            _ => Flen::F64,
        },
        max_items: 64,
        ..Config::default()
    }
}

/// The diagnosis: what, where, in which group, and the value.
#[test]
fn every_fault_of_bytes_and_groups() {
    for Case(fault, text, at, group, value) in cases() {
        let told = read(&config_of(fault), &hex(&text));
        let problems: Vec<_> = told.iter().filter(|t| t.fault().is_some()).collect();
        assert_eq!(problems.len(), 1, "{fault:?}: {told:x?}");
        let Told::Problem(problem) = problems[0] else {
            panic!();
        };
        assert_eq!(problem.fault, fault, "{told:x?}");
        assert_eq!(
            (problem.at, problem.group, problem.value),
            (at, group, value),
            "{fault:?}"
        );
    }
}

/// What concerns the bytes costs groups until some are found again; what
/// concerns a group costs the group.
#[test]
fn faults_and_what_they_cost() {
    for Case(fault, text, ..) in cases() {
        if matches!(fault, Fault::Truncated | Fault::OpenGroup) {
            continue;
        }
        let more = format!("{text} {}", format!("{NOP} ").repeat(5));
        let told = read(&config_of(fault), &hex(&more));
        let resumed = told.iter().any(|t| matches!(t, Told::Resumed(_)));
        assert_eq!(resumed, fault.breaks_framing(), "{fault:?}: {told:x?}");
        let after = told.iter().skip_while(|t| t.fault().is_none()).skip(1);
        let groups = after.filter(|t| matches!(t, Told::Group(_))).count();
        assert_eq!(groups, 5, "{fault:?}: {told:x?}");
    }
}

/// What groups say together: told by the decoder, or by the shadow state.
#[test]
fn faults_between_groups() {
    let config = Config::default();
    let gap = |config: &Config, text: &str| decode(config, &hex(text)).join("; ");
    // A jump from nobody knows where.
    let ret = "01 07 0a 00 01 00 00 00 00 00 00 10 82 80 02";
    assert_eq!(gap(&config, ret), "gap 0 TP0301 15");
    let both = Config {
        pc: PcForm::Both,
        style: Style::bluespec(),
        ..config.clone()
    };
    let two = |from: &str, to: &str| {
        format!("01 07 0a {from} 00 00 00 00 00 00 00 {to} 00 00 00 00 00 00 00 10 01 00 02 ")
    };
    assert_eq!(
        gap(&both, &[two("10", "12"), two("14", "16")].concat()),
        "run 10-12 1 Stop 12; gap 17 TP0303 0; run 14-16 1 Stop 16"
    );
    let mut absent = config.clone();
    absent.absent.insn = true;
    let blind = "01 07 0a 00 01 00 00 00 00 00 00 04 03 10 00 00 00 00 00 00 00 00 02";
    assert_eq!(gap(&absent, blind), "gap 0 TP0304 23");
    let group = groups(&config, &hex("01 0b 05 01 10 01 02")).remove(0);
    let mut shadow = Shadow::new(&config);
    let applied = shadow.apply(&group, &mut |_| {});
    assert_eq!(
        applied.map_err(|(fault, _)| fault),
        Err(Fault::UnknownValue)
    );
}

/// No fault without a test.
#[test]
fn no_fault_is_left_out() {
    let mut tested: BTreeSet<_> = cases().iter().map(|case| case.0.code()).collect();
    // By the test above.
    tested.extend(["TP0301", "TP0302", "TP0303", "TP0304"]);
    // Those of containers are tested beside the code.
    tested.extend(
        Fault::ALL
            .iter()
            .map(|f| f.code())
            .filter(|c| c.starts_with("TP04")),
    );
    let all: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.code()).collect();
    assert_eq!(tested, all);
    assert_eq!(all.len(), Fault::ALL.len());
    for fault in Fault::ALL {
        assert!(!fault.text().is_empty());
        assert_eq!(fault.breaks_framing(), fault.code() < "TP0200");
    }
}
