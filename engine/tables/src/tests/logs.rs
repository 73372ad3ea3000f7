//! Tables of logs.

use super::{FLOW, Rows, UNLIKE_NTRACE, assert_same, of_steps, whole};
use crate::{Given, Opened, Recorded, Table, TraceSource, Wanted};
use hartrace_engine_testkit::{elf, run};
use hartrace_flow::Observer;
use hartrace_isa::Xlen;
use hartrace_logs::{PcWriter, SpikeWriter};
use std::cell::RefCell;
use std::path::Path;

const PROGRAM: &str = "sort-rv64gc";
const LIMIT: u64 = 60_000;

/// Runs the program with a writer of logs.
fn write<O: Observer>(path: &Path, make: impl FnOnce(Box<dyn FnMut(&[u8])>) -> O) {
    let text = std::rc::Rc::new(RefCell::new(Vec::new()));
    let to = std::rc::Rc::clone(&text);
    let mut writer = make(Box::new(move |bytes: &[u8]| {
        to.borrow_mut().extend_from_slice(bytes);
    }));
    run(PROGRAM, LIMIT, &mut writer);
    drop(writer);
    std::fs::write(path, &*text.borrow()).unwrap();
}

fn given() -> Given {
    Given {
        elf: vec![elf(PROGRAM).display().to_string()],
        ..Given::default()
    }
}

fn open(path: &Path) -> Opened {
    TraceSource::new(path, &given()).open("test").unwrap()
}

/// A log has the rows of the steps of the hart, as a trace has them.
#[test]
fn tables_of_logs_are_those_of_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (pcs, spike) = (folder.path().join("run.pc"), folder.path().join("run.log"));
    write(&pcs, |put| PcWriter::new(Xlen::Rv64, put));
    write(&spike, |put| {
        SpikeWriter::new(hartrace_isa::Isa::RV64GC, put).with_traps()
    });
    for path in [&pcs, &spike] {
        let opened = open(path);
        assert!(matches!(opened.replay, Recorded::Log(_)));
        assert!(!opened.can_start_anywhere());
        let (rows, index) = whole(&opened, &FLOW, UNLIKE_NTRACE);
        assert_eq!(index.stretches.len(), 1);
        let steps = of_steps(&opened, PROGRAM, LIMIT, UNLIKE_NTRACE);
        assert!(steps.rows[&(Table::Calls, 0)].len() > 10);
        assert_same(&steps, &rows, &path.display().to_string());
        let mut branches = Rows::default();
        let wanted = Wanted::all([Table::Branches, Table::Messages]);
        opened.read(&wanted, &mut branches, &mut |_| ()).unwrap();
        assert!(branches.rows[&(Table::Branches, 0)].len() > 10);
        assert!(!branches.rows.contains_key(&(Table::Messages, 0)));
    }
}

/// A damaged line is a gap. A log of which no line can be read is refused, as is one without
/// its program.
#[test]
fn damaged_logs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.pc");
    write(&path, |put| PcWriter::new(Xlen::Rv64, put));
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_at(17 * 1000);
    std::fs::write(&path, format!("{first}what is this\n{rest}")).unwrap();
    let mut rows = Rows::default();
    let wanted = Wanted::all([Table::Gaps]);
    let read = open(&path).read(&wanted, &mut rows, &mut |_| ()).unwrap();
    assert_eq!(read.decoded.gaps, 1);
    let gaps = &rows.rows[&(Table::Gaps, 0)];
    assert!(
        gaps.len() == 1 && gaps[0].contains("code=HT0106"),
        "{gaps:?}"
    );

    let refused = TraceSource::new(&path, &Given::default()).open("test");
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("no program"), "{refused}");

    std::fs::write(&path, "0000000000000010\n".repeat(100)).unwrap();
    let read = open(&path).read(&wanted, &mut rows, &mut |_| ());
    let refused = read.err().unwrap().to_string();
    assert!(refused.contains("HT0109"), "{refused}");

    let given = Given {
        log_format: Some("nonsense".to_owned()),
        ..given()
    };
    let refused = TraceSource::new(&path, &given).open("test");
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("not a format of logs"), "{refused}");
}
