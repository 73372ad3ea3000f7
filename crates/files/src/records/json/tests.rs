use super::super::SnapshotReader;
use super::*;
use hartrace_ctr::{Config, Ctr};
use hartrace_isa::Itype;

fn snapshot(version: Version) -> Snapshot {
    let mut ctr = Ctr::new(Config::new(version, Xlen::Rv64)).unwrap();
    ctr.set_control(Control::MODES.with(Control::NTBREN), 0);
    for n in 0..5 {
        ctr.record(&hartrace_flow::Transfer {
            source: 0xffff_ffff_8000_0000 + n * 8,
            target: 0x1000,
            kind: Itype::DirectCall,
            time: Some(n * 100),
            mispredicted: n == 2,
            ..hartrace_flow::Transfer::default()
        });
    }
    Snapshot {
        pc: Some(0x1004),
        mode: Some(Mode::VS),
        instructions: Some(1 << 60),
        cycles: Some(u64::MAX),
        guest_control: 5,
        ..ctr.snapshot(HartId(3))
    }
}

fn text(snapshots: &[Snapshot]) -> String {
    let mut out = Vec::new();
    write_json_start(false, &mut out);
    for snapshot in snapshots {
        let label = |address| (address == 0x1000).then(|| "main".to_owned());
        write_json(snapshot, &label, &mut out);
    }
    String::from_utf8(out).unwrap()
}

/// Snapshots, and faults with their lines.
fn read(text: &str, chunk: usize) -> (Vec<Snapshot>, Vec<(u64, Fault)>) {
    let mut reader = SnapshotReader::new(Form::Json);
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    let mut take = |result: Result<&Snapshot, SnapshotError>| match result {
        Ok(snapshot) => found.push(snapshot.clone()),
        Err(error) => wrong.push((error.problem.at, error.problem.fault)),
    };
    for chunk in text.as_bytes().chunks(chunk) {
        reader.feed(chunk, &mut take);
    }
    let end = reader.finish(&mut take);
    wrong.extend(end.err().map(|e| (e.problem.at, e.problem.fault)));
    (found, wrong)
}

#[test]
fn what_is_written_is_read() {
    let snapshots = Version::ALL.map(snapshot);
    let text = text(&snapshots);
    for chunk in [1, 7, 64, text.len()] {
        let (found, wrong) = read(&text, chunk);
        assert!(wrong.is_empty());
        assert_eq!(found, snapshots);
    }
    // Without the end of the last line too, and between empty lines.
    let (found, wrong) = read(&text.trim_end().replace('\n', "\r\n\n"), 100);
    assert_eq!(
        (found.as_slice(), wrong.as_slice()),
        (&snapshots[..], &[][..])
    );
}

#[test]
fn the_text_of_a_snapshot() {
    let text = text(&[snapshot(Version::V1_0)]);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(r#"{"type":"header","schema":"hartrace-ctr","version":1}"#)
    );
    let line = lines.next().unwrap();
    let start = concat!(
        r#"{"type":"snapshot","hart":3,"pc":"0x1004","mode":"VS","#,
        r#""instructions":"0x1000000000000000","cycles":"0xffffffffffffffff","#,
        r#""specification":"1.0","xlen":64,"control":"0x1000000007","#,
        r#""fields":["U","S","M","NTBREN"],"guest_control":"0x5","status":"0x5","depth":16,"#,
        r#""entries":[{"ctrsource":"0xffffffff80000021","ctrtarget":"0x1000","ctrdata":"0x648009","#,
        r#""valid":true,"transfer":{"kind":"direct-call","from":"0xffffffff80000020","to":"0x1000","#,
        r#""to_symbol":"main","cycles":100,"mispredicted":false}},"#,
    );
    assert!(line.starts_with(start), "{line}");
}

/// What every snapshot has.
const LEAST: &str =
    r#""type":"snapshot","specification":"1.0","xlen":64,"control":7,"status":0,"depth":16"#;

/// An address in a mode that is not recorded is not there.
#[test]
fn halves_of_records() {
    let half = |ctrsource, ctrtarget| Record {
        ctrsource,
        ctrtarget,
        ctrdata: 1,
    };
    let snapshot = Snapshot {
        entries: vec![half(0x11, 0), half(1, 0x20)],
        ..Snapshot::default()
    };
    let text = text(&[snapshot]);
    let from = r#""transfer":{"kind":"exception","from":"0x10","mispredicted":false}"#;
    let to = r#""transfer":{"kind":"exception","to":"0x20","mispredicted":false}"#;
    assert!(text.contains(from) && text.contains(to), "{text}");
}

/// What a person would type, or another program write.
#[test]
fn the_least_that_is_needed() {
    let entries = r#""entries":[{"ctrsource":"0x11","ctrtarget":32,"ctrdata":"0x9"}]"#;
    let header = r#"{"schema":"hartrace-ctr","version":1,"type":"header","by":"hand"}"#;
    let text = format!("{header}\n{{{LEAST},{entries}}}\n{{{LEAST}}}");
    let (found, wrong) = read(&text, 1000);
    assert!(wrong.is_empty());
    let (one, two) = (&found[0], &found[1]);
    assert_eq!((one.depth, one.entries.len(), one.pc), (16, 16, None));
    assert_eq!(one.entries[0].ctrtarget, 0x20);
    assert_eq!((two.depth, two.entries.len()), (16, 16));
    // An editor's mark in front, and a second file behind.
    let (found, wrong) = read(&format!("\u{feff}{text}\n{text}"), 2);
    assert_eq!((found.len(), wrong.as_slice()), (4, &[][..]));
}

#[test]
fn nothing_is_made_up() {
    for key in ["specification", "xlen", "control", "status", "depth"] {
        let kept: Vec<&str> = LEAST.split(',').filter(|k| !k.contains(key)).collect();
        let mut reader = SnapshotReader::new(Form::Json);
        let mut errors = Vec::new();
        let text = format!("{}{{{}}}\n", text(&[]), kept.join(","));
        reader.feed(text.as_bytes(), &mut |result| {
            errors.extend(result.err().map(|e| e.to_string()));
        });
        let expected = format!("line 2: object is not a snapshot: `{key}` is missing");
        assert_eq!(errors, [expected]);
    }
    let (found, wrong) = read(&format!("{}{{\"type\":\"sample\"}}\n", text(&[])), 9);
    assert_eq!((found.len(), wrong), (0, vec![(2, Fault::Object)]));
}

#[test]
fn each_fault_has_its_line() {
    let with = |line: &str| {
        let text = format!("{}{line}\n{{{LEAST}}}\n", text(&[]));
        let (found, wrong) = read(&text, 50);
        assert_eq!(found.len(), 1, "{line}");
        assert!(matches!(wrong.as_slice(), [(2, _)]), "{line}: {wrong:?}");
        wrong[0].1
    };
    // The least with this key in place of its own.
    let with_key = |key: &str, text: &str| {
        let kept = LEAST.split(',').filter(|k| !k.contains(key));
        let kept: Vec<&str> = kept.chain([text]).collect();
        format!("{{{}}}", kept.join(","))
    };
    let many = vec![r#"{"ctrsource":1,"ctrtarget":2,"ctrdata":3}"#; 257].join(",");
    for (line, fault) in [
        ("{", Fault::Object),
        ("17", Fault::Object),
        ("{}", Fault::Object),
        (r#"{"type":"snapshot","pc":"0xg"}"#, Fault::Object),
        (
            r#"{"type":"snapshot","pc":"0x10000000000000000"}"#,
            Fault::Object,
        ),
        (r#"{"type":"snapshot","pc":-1}"#, Fault::Object),
        (&with_key("mode", r#""mode":"X""#), Fault::Mode),
        (
            &with_key("specification", r#""specification":"2.0""#),
            Fault::Version,
        ),
        (&with_key("xlen", r#""xlen":128"#), Fault::Width),
        (&with_key("depth", r#""depth":8"#), Fault::Depth),
        (
            &with_key("status", r#""status":"0x100000000""#),
            Fault::Reserved,
        ),
        (
            &with_key("entries", &format!(r#""entries":[{many}]"#)),
            Fault::Entries,
        ),
        (&format!("{}1", "[".repeat(100_000)), Fault::Object),
    ] {
        assert_eq!(with(line), fault);
    }
    let long = format!(r#"{{"type":"snapshot","by":"{}"}}"#, "x".repeat(LONGEST));
    assert_eq!(with(&long), Fault::Object);
}

#[test]
fn files_that_are_something_else() {
    assert_eq!(read("", 1), (vec![], vec![(1, Fault::NotADump)]));
    assert_eq!(read("hello\n", 9), (vec![], vec![(1, Fault::NotADump)]));
    let log = r#"{"type":"header","schema":"hartrace-log","version":1}"#;
    assert_eq!(read(log, 9), (vec![], vec![(1, Fault::NotADump)]));
    let later = "{\"type\":\"header\",\"schema\":\"hartrace-ctr\",\"version\":2}\n{}\n";
    assert_eq!(read(later, 9), (vec![], vec![(1, Fault::Form)]));
}
