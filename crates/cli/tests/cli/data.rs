//! E-Trace data trace: `run`, `decode`, `dump`, `stats`, `state`, `encode`.

use crate::tiny::{SPIN, addi, auipc, elf};
use crate::{Folder, RV32, RV64, fails, repository, run, succeeds, text};
use serde_json::Value;
use snapbox::{Assert, file};
use std::fs;

pub(crate) fn config(name: &str) -> String {
    let path = repository().join("configs/etrace").join(name);
    path.to_str().unwrap().to_owned()
}

/// Stores, loads, an atomic and a CSR; the name of the program.
fn small(folder: &Folder) -> String {
    let words = [
        auipc(5),
        addi(5, 5, 0x40),
        addi(6, 0, 0x55),
        0x0062_a023, // sw x6, 0(x5)
        0x0002_a383, // lw x7, 0(x5)
        0x0062_a52f, // amoadd.w x10, x6, (x5)
        0x3403_1073, // csrw mscratch, x6
        0x3400_25f3, // csrr x11, mscratch
        0x0072_8223, // sb x7, 4(x5)
        SPIN,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    folder.file("small.elf", elf(&words))
}

fn traced(folder: &Folder, program: &str, settings: &str, more: &[&str]) -> String {
    let trace = folder.name("run.etrace");
    let to = format!("etrace={trace}");
    let args = ["run", "-q", program, "-c", settings, "--trace", &to];
    let output = run(&[&args[..], &["--max-insns", "20K", "--check"], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    trace
}

#[test]
fn texts() {
    let folder = Folder::new();
    let trace = traced(&folder, &small(&folder), &config("data.toml"), &[]);
    let golden = Assert::new().action_env("SNAPSHOTS");
    let told = |args: &[&str]| {
        let args = [args, &[&trace]].concat();
        succeeds(&args).replace(&folder.name(""), "")
    };
    golden.eq(told(&["dump"]), file!["snapshots/data-dump.txt"]);
    golden.eq(told(&["decode"]), file!["snapshots/data-decode.txt"]);
    golden.eq(
        told(&["decode", "-f", "json"]),
        file!["snapshots/data-events.json"],
    );
    golden.eq(told(&["stats"]), file!["snapshots/data-stats.txt"]);
}

/// Every access is compared, in every configuration that is shipped.
#[test]
fn configurations_check() {
    for program in [RV64, RV32] {
        for settings in ["data.toml", "data-stores.toml", "data-split.toml"] {
            let folder = Folder::new();
            traced(&folder, program, &config(settings), &[]);
        }
    }
}

/// Two files are the same as one.
#[test]
fn files_of_their_own() {
    let folder = Folder::new();
    let one = traced(&folder, RV64, &config("data.toml"), &[]);
    let listed = succeeds(&["decode", &one]);
    assert!(listed.contains("; store"));
    let (two, data) = (folder.name("two.etrace"), folder.name("two.data"));
    let (to, to_data) = (format!("etrace={two}"), format!("etrace-data={data}"));
    // Data trace is enabled by its file.
    succeeds(&[
        "run",
        "-q",
        RV64,
        "--max-insns",
        "20K",
        "--trace",
        &to,
        "--trace",
        &to_data,
        "--check",
    ]);
    assert_eq!(succeeds(&["decode", &two, "--data", &data]), listed);
    let alone = run(&["decode", "-q", &two]);
    assert!(!text(&alone.stdout).contains("; store"));
    let bytes = |name: &str| fs::read(name).unwrap().len();
    assert!(bytes(&two) < bytes(&one) && bytes(&data) < bytes(&one));
    let refused = run(&["run", RV64, "--trace", &to_data]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("requires one --trace etrace=FILE"));
    // A trace without data trace.
    let plain = folder.name("plain.etrace");
    let to = format!("etrace={plain}");
    succeeds(&["run", "-q", RV64, "--max-insns", "1K", "--trace", &to]);
    let error = fails(&["decode", &plain, "--data", &data], 1, "HT0206");
    assert!(error.contains("has no data trace"), "{error}");
}

/// Two files in a transport are the same as one without: each file has its own registers.
#[test]
fn files_of_their_own_in_a_transport() {
    let folder = Folder::new();
    let one = traced(&folder, RV64, &config("data.toml"), &[]);
    let listed = succeeds(&["decode", &one]);
    for (name, keys) in [
        ("ram", "ram = \"0x80000000:0x80100000\""),
        ("pins", "pib = 4"),
    ] {
        let settings = folder.name(&format!("{name}.toml"));
        fs::write(&settings, format!("[transport]\n{keys}\n")).unwrap();
        let two = folder.name(&format!("{name}.etrace"));
        let data = folder.name(&format!("{name}.data"));
        let (to, to_data) = (format!("etrace={two}"), format!("etrace-data={data}"));
        succeeds(&[
            "run",
            "-q",
            RV64,
            "--max-insns",
            "20K",
            "-c",
            &settings,
            "--trace",
            &to,
            "--trace",
            &to_data,
            "--check",
        ]);
        assert_eq!(
            succeeds(&["decode", &two, "--data", &data]),
            listed,
            "{name}"
        );
        let written = succeeds(&[
            "state",
            &two,
            "--data",
            &data,
            "--last-write",
            "0x80001264:4",
        ]);
        assert!(!written.is_empty());
    }
}

/// A data packet that is missing is a gap of the data trace, and no gap otherwise.
#[test]
fn a_lost_access_is_a_gap() {
    let folder = Folder::new();
    let trace = traced(&folder, &small(&folder), &config("data.toml"), &[]);
    let whole = succeeds(&["decode", &trace]);
    let mut bytes = fs::read(&trace).unwrap();
    let mut at = 0;
    while bytes[at] >> 5 & 3 != 3 {
        at += 1 + usize::from(bytes[at] & 31);
    }
    bytes.drain(at..=at + usize::from(bytes[at] & 31));
    fs::write(&trace, bytes).unwrap();
    let listed = run(&["decode", &trace]);
    assert_eq!(listed.status.code(), Some(0));
    let warning = text(&listed.stderr);
    assert!(warning.contains("warning[ET0216]"), "{warning}");
    assert!(warning.contains("the instruction trace is not affected"));
    let listed = text(&listed.stdout);
    let gap = |line: &&str| line.contains("data gap at byte");
    assert_eq!(listed.lines().filter(gap).count(), 1, "{listed}");
    let insns = |text: &str| text.lines().filter(|line| line.starts_with('8')).count();
    assert_eq!(insns(listed), insns(&whole));
    let events = run(&["decode", "-q", "-f", "json", &trace]);
    let mut lines = text(&events.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect::<Vec<Value>>();
    lines.retain(|line| line["type"] == "data-gap");
    assert_eq!((lines.len(), &lines[0]["code"]), (1, &"ET0216".into()));
    // The report lists it with its reason, and has no other.
    let page = crate::report::report(&["-q", &trace]);
    let gaps = &page["runs"][0]["gaps"];
    assert_eq!(gaps["code"], serde_json::json!(["ET0216"]));
    let reason = gaps["reason"][0].as_u64().unwrap() as usize;
    let reason = page["runs"][0]["strings"][reason].as_str().unwrap();
    assert!(
        reason.starts_with("data trace: data packet with"),
        "{reason}"
    );
    let stats = run(&["stats", "-q", &trace]);
    let stats = text(&stats.stdout);
    assert!(
        stats.contains("gaps       0\ndata gaps  1: ET0216: "),
        "{stats}"
    );
    let strict = run(&["decode", "--strict", &trace]);
    assert_eq!(strict.status.code(), Some(3));
    let error = text(&strict.stderr);
    assert!(error.contains("error[HT0111]"), "{error}");
    assert!(error.contains("has 1 gap in its data trace"), "{error}");
}

#[test]
fn who_wrote_this_address() {
    let folder = Folder::new();
    let trace = traced(&folder, &small(&folder), &config("data.toml"), &[]);
    let asked = |more: &[&str]| -> Value {
        let args = [&["state", &trace, "-f", "json"], more].concat();
        serde_json::from_str(&succeeds(&args)).unwrap()
    };
    let start = asked(&["--mem", "0x80000000:1"]);
    assert_eq!(start["schema"], "hartrace-memory");
    let listed = succeeds(&["decode", &trace]);
    let line = listed.lines().find(|l| l.contains("; store 4")).unwrap();
    let place = line.split("store 4 ").nth(1).unwrap();
    let place = place.split(' ').next().unwrap();
    let whole = asked(&["--last-write", &format!("{place}:4")]);
    let last = &whole["places"][0]["last_write"];
    assert_eq!(last["kind"], "atomic-add");
    assert_eq!(
        (&last["instruction"], &last["data"]),
        (&5.into(), &"0xaa".into())
    );
    let before = asked(&["--last-write", place, "--before", "5"]);
    let last = &before["places"][0]["last_write"];
    assert_eq!(
        (&last["kind"], &last["instruction"]),
        (&"store".into(), &3.into())
    );
    let shown = succeeds(&["state", &trace, "--mem", &format!("{place}:6")]);
    assert!(shown.contains("aa 00 00 00 55 .."), "{shown}");
    let error = fails(&["state", &trace, "--reg", "a0"], 5, "HT0113");
    assert!(error.contains("memory accesses only"), "{error}");
}

/// From rows of the ingress port.
#[test]
fn rows_have_accesses() {
    let folder = Folder::new();
    let direct = traced(&folder, RV64, &config("data.toml"), &[]);
    for (retirement, name) in [("single", "a"), ("block", "b")] {
        let port = format!("[ingress]\ndata = \"unified\"\nretirement = \"{retirement}\"\n");
        let port = folder.file(&format!("{name}.toml"), port);
        let rows = folder.name(&format!("{name}.csv"));
        let to = format!("ingress={rows}");
        let args = [
            "run",
            "-q",
            RV64,
            "--max-insns",
            "20K",
            "--log",
            &to,
            "-c",
            &port,
        ];
        succeeds(&args);
        let trace = folder.name(&format!("{name}.etrace"));
        let settings = config("data.toml");
        succeeds(&[
            "encode", "-q", &rows, "-e", RV64, "--to", "etrace", "-o", &trace, "-c", &settings,
            "-c", &port, "--check",
        ]);
        let listed = succeeds(&["decode", &trace]);
        assert_eq!(listed, succeeds(&["decode", &direct]));
    }
}

/// Filters by address leave open which instruction made an access.
#[test]
fn filters() {
    let folder = Folder::new();
    let filter = |text: &str| {
        let settings = format!("[etrace.data]\nenabled = true\n[filter.data]\n{text}\n");
        let settings = folder.file("f.toml", settings);
        let trace = traced(&folder, RV64, &settings, &[]);
        succeeds(&["decode", &trace])
    };
    let stores = filter("kinds = [\"store\"]\nsizes = [1]");
    assert!(stores.contains("; store 1") && !stores.contains("load"));
    assert!(!stores.contains("store 8"));
    let some = filter("address = [\"0x80000000..+0x10000000\"]");
    assert!(some.contains("\n-- store 1") && !some.contains("; store"));
    let none = filter("address = [0]");
    assert!(!none.contains("store 1"));
    let code = filter("code = [\"main\"]\nkinds = [\"store\"]");
    assert!(!code.contains("; store"));
}
