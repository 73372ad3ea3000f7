//! Traps whose cause the input does not record: no command invents one without
//! a word.

use crate::{Folder, RV64, repository, run, succeeds, text};
use std::process::Output;

fn timer() -> String {
    let path = repository().join("programs/timer/timer-rv64gc.elf");
    path.to_str().unwrap().to_owned()
}

/// A run of `timer`, as a log of this kind.
fn log(folder: &Folder, kind: &str) -> String {
    let name = folder.name(kind);
    let output = run(&["run", "-q", &timer(), "--log", &format!("{kind}={name}")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    name
}

#[track_caller]
fn reports(output: &Output, exit: i32, parts: &[&str]) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// Every output that has to have a cause says for how many traps it has none,
/// where the first is, and what is written instead. With `--strict` there is no
/// output.
#[test]
fn causes_that_a_log_does_not_record_are_reported() {
    let folder = Folder::new();
    let (program, out) = (timer(), folder.name("out"));
    // Handlers that read mcause tell the cause of the others.
    for (kind, traps) in [("spike", "29 traps"), ("pc", "65 traps")] {
        let log = log(&folder, kind);
        let outputs: [(&[&str], &str); 4] = [
            (&["encode", "--to", "etrace"], "exception 0 is written"),
            (
                &["encode", "--to", "ntrace"],
                "an exception (B-TYPE 2) is written",
            ),
            (&["log", "--to", "ingress"], "exception 0 is written"),
            (&["ctr", "--every", "10K"], "an exception is written"),
        ];
        for (command, written) in outputs {
            let args = [command, &[&log, "-e", &program, "-o", &out]].concat();
            let first = "no jump leads to 0x80000d0";
            reports(&run(&args), 0, &["warning[HT0120]", traps, written, first]);
            std::fs::remove_file(&out).unwrap();
            let strict = [&args[..], &["--strict"]].concat();
            reports(&run(&strict), 3, &["error[HT0120]", traps, written]);
            assert!(!std::path::Path::new(&out).exists());
        }
        for to in ["etrace", "ntrace"] {
            let args = [
                "encode", &log, "-e", &program, "--to", to, "-o", &out, "--check",
            ];
            let unknown = traps.strip_suffix(" traps").unwrap();
            let summary = format!("65 traps ({unknown} trap causes unknown, not compared)");
            reports(&run(&args), 0, &["decoded and equal", &summary]);
        }
        // These invent nothing.
        let pcs = [
            "log", &log, "-e", &program, "--to", "pc", "-o", &out, "--strict",
        ];
        reports(&run(&pcs), 0, &[]);
        let json = ["log", &log, "-e", &program, "--to", "json", "--strict"];
        let output = run(&json);
        reports(&output, 0, &[]);
        assert!(text(&output.stdout).contains(r#""cause":"unknown""#));
        let one = folder.file("one.toml", "[ntrace]\ntrap_types = \"one\"\n");
        let args = ["encode", &log, "-e", &program, "-c", &one, "-o", &out];
        reports(
            &run(&[&args[..], &["--to", "ntrace", "--strict"]].concat()),
            0,
            &[],
        );
    }
}

/// A log with causes has nothing to report, and they are those of the run.
/// Handlers reveal all causes here, and yet some traps cannot be seen at all.
#[test]
fn traps_that_a_log_does_not_record_are_reported() {
    let folder = Folder::new();
    let program = repository().join("programs/modes/modes-rv64gc.elf");
    let program = program.to_str().unwrap();
    let (log, out) = (folder.name("modes.log"), folder.name("out"));
    let output = run(&["run", "-q", program, "--log", &format!("spike={log}")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for to in ["ntrace", "etrace"] {
        let args = ["encode", &log, "-e", program, "--to", to, "-o", &out];
        let (message, note) = ("does not record traps", "cannot be detected");
        reports(&run(&args), 0, &["warning[HT0402]", message, note]);
        let strict = run(&[&args[..], &["--strict"]].concat());
        reports(&strict, 3, &["error[HT0120]", message, note]);
    }
}

#[test]
fn causes_of_a_log_are_kept() {
    let folder = Folder::new();
    let (program, out) = (timer(), folder.name("out"));
    for kind in ["spike-traps", "ingress"] {
        let log = log(&folder, kind);
        for to in ["etrace", "ntrace"] {
            let args = ["encode", &log, "-e", &program, "--to", to, "-o", &out];
            let output = run(&[&args[..], &["--check", "--strict"]].concat());
            reports(&output, 0, &["decoded and equal"]);
            assert!(!text(&output.stderr).contains("unknown"));
        }
        succeeds(&[
            "encode", &log, "-q", "-e", &program, "--to", "etrace", "-o", &out,
        ]);
        let listing = succeeds(&["decode", &out]);
        assert!(listing.contains("interrupt 7") && listing.contains("exception 11"));
        assert!(!listing.contains("exception 0"));
    }
}

/// The `ebreak` of a semihosting call is no trap: every log leads to the trace of
/// the run, without a word.
#[test]
fn semihosting_calls_are_no_traps() {
    let folder = Folder::new();
    let program = repository().join("programs/semihost/semihost-rv64gc.elf");
    let program = program.to_str().unwrap();
    let kinds = ["spike", "spike-traps", "pc", "ingress"];
    let files = kinds.map(|kind| folder.name(kind));
    let logs: Vec<String> = kinds
        .iter()
        .zip(&files)
        .map(|(k, f)| format!("{k}={f}"))
        .collect();
    for format in ["etrace", "ntrace"] {
        let (trace, out) = (folder.name("run"), folder.name("out"));
        let to = format!("{format}={trace}");
        let mut args = vec!["run", "-q", program, "--trace", &to];
        args.extend(logs.iter().flat_map(|log| ["--log", log]));
        run(&args);
        for log in &files {
            let encode = [
                "encode", "-q", log, "-e", program, "--to", format, "-o", &out,
            ];
            succeeds(&[&encode[..], &["--strict", "--mode", "m"]].concat());
            let same = std::fs::read(&trace).unwrap() == std::fs::read(&out).unwrap();
            assert!(same, "{format} {log}");
        }
    }
}

/// A list or a table that goes where no jump leads.
#[test]
fn a_jump_from_nowhere_is_reported() {
    let folder = Folder::new();
    let out = folder.name("out");
    let pcs = folder.file("j.pc", "80000000\n80000004\n80000100\n");
    let head = "VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n";
    let listing = succeeds(&["disasm", RV64]);
    let row = |address: &str| {
        let mut lines = listing.lines().map(str::trim_start);
        let line = lines.find(|line| line.starts_with(&format!("{address}:")));
        let bits = line.unwrap().split_whitespace().nth(1).unwrap();
        format!("1,{address},{bits},3,0,0,0,0\n")
    };
    let rows: String = ["80000000", "80000004", "80000100"].map(row).concat();
    let table = folder.file("j.csv", format!("{head}{rows}"));
    for log in [&pcs, &table] {
        for to in ["etrace", "ntrace"] {
            let args = [
                "encode", log, "-e", RV64, "--to", to, "-o", &out, "--strict",
            ];
            let expected = ["error[HT0120]", "1 trap", "no jump leads to 0x80000100"];
            reports(&run(&args), 3, &expected);
            assert!(!std::path::Path::new(&out).exists());
        }
    }
}

/// Modes and times that the log does not record.
#[test]
fn modes_and_times_that_a_log_does_not_record_are_reported() {
    let folder = Folder::new();
    let out = folder.name("out");
    let pcs = folder.file("a.pc", "80000000\n80000004\n");
    let encode = |to: &str, more: &[&str]| {
        let args = ["encode", &pcs, "-e", RV64, "--to", to, "-o", &out];
        run(&[&args[..], more].concat())
    };
    let mode = "does not record modes; mode M is assumed";
    reports(&encode("etrace", &[]), 0, &["warning[HT0402]", mode]);
    let quiet = encode("etrace", &["--mode", "u"]);
    assert!(
        !text(&quiet.stderr).contains("warning"),
        "{}",
        text(&quiet.stderr)
    );
    // N-Trace has modes only with contexts.
    assert!(!text(&encode("ntrace", &[]).stderr).contains("warning"));
    let context = folder.file("c.toml", "[ntrace]\ncontext = true\ntimestamps = true\n");
    let output = encode("ntrace", &["-c", &context]);
    reports(
        &output,
        0,
        &[mode, "does not record times; time 0 is written"],
    );
    let log = log(&folder, "spike-traps");
    let times = folder.file("t.toml", "[etrace]\ntime_width = 32\n");
    let args = ["encode", &log, "-e", &timer(), "--to", "etrace", "-o", &out];
    let output = run(&[&args[..], &["-c", &times]].concat());
    reports(&output, 0, &["does not record times; time 0 is written"]);
}

/// N-Trace reports traps without their cause.
#[test]
fn causes_that_a_trace_does_not_record_are_reported() {
    let folder = Folder::new();
    let (trace, out) = (folder.name("t.nt"), folder.name("out"));
    let to = format!("ntrace={trace}");
    run(&["run", "-q", &timer(), "--trace", &to]);
    let convert = ["convert", &trace, "--to", "etrace", "-o", &out];
    let summary = "(65 trap causes unknown, not compared)";
    let output = run(&[&convert[..], &["--check"]].concat());
    reports(&output, 0, &["warning[HT0120]", "65 traps", summary]);
    std::fs::remove_file(&out).unwrap();
    let output = run(&[&convert[..], &["--strict"]].concat());
    reports(&output, 3, &["error[HT0120]"]);
    assert!(!std::path::Path::new(&out).exists());
    // Exceptions and interrupts are told apart by B-TYPE, unless it is 1.
    let again = ["convert", &trace, "--to", "ntrace", "-o", &out, "--strict"];
    let ctr = ["ctr", &trace, "--every", "10K", "--strict", "-o", &out];
    for args in [&again[..], &ctr] {
        assert!(!text(&run(args).stderr).contains("HT0120"));
    }
    let one = folder.file("one.toml", "[ntrace]\ntrap_types = \"one\"\n");
    run(&["run", "-q", &timer(), "-c", &one, "--trace", &to]);
    for args in [&again[..], &ctr] {
        reports(&run(args), 3, &["error[HT0120]", "54 traps"]);
    }
}
