//! What `hartrace ctr` makes of traces, logs and dumps as they come.

use crate::{Folder, fails, repository, run, succeeds, text};
use serde_json::Value;
use std::fs;

fn program(name: &str) -> String {
    let path = repository().join("programs").join(name);
    path.to_str().unwrap().to_owned()
}

/// The objects of a JSON form, without the header.
fn objects(json: &str) -> Vec<Value> {
    let lines = json.lines().skip(1);
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Of an interrupt right behind a return from a trap E-Trace does not tell the
/// place, and around a semihosting call it pauses. Neither shortens a snapshot.
#[test]
fn etrace_keeps_the_records_that_tandem_keeps() {
    let folder = Folder::new();
    for (name, unreported) in [
        ("modes/modes-rv64gc.elf", true),
        ("semihost/semihost-rv64gc.elf", false),
    ] {
        let elf = program(name);
        let (etrace, tandem) = (folder.name("t.etrace"), folder.name("t.tandem"));
        let (e, t) = (format!("etrace={etrace}"), format!("tandem={tandem}"));
        succeeds(&["run", "-q", &elf, "--trace", &e, "--trace", &t]);
        let snapshots = |file: &str| {
            let args = ["ctr", file, "-e", &elf, "--every", "1000", "-f", "json"];
            let output = run(&args);
            assert_eq!(text(&output.stderr), "", "{name}");
            objects(text(&output.stdout))
        };
        let (mut found, expected) = (snapshots(&etrace), snapshots(&tandem));
        let mut missing = 0;
        // Nothing but an address that is not told differs.
        for (found, expected) in found.iter_mut().zip(&expected) {
            let entries = found["entries"].as_array_mut().unwrap();
            for (entry, full) in entries
                .iter_mut()
                .zip(expected["entries"].as_array().unwrap())
            {
                let of = |entry: &Value, key: &str| entry["transfer"][key].clone();
                assert_eq!(of(entry, "kind"), of(full, "kind"));
                if full["valid"] == true
                    && (of(entry, "from").is_null() || of(entry, "to").is_null())
                {
                    missing += 1;
                    *entry = full.clone();
                }
            }
        }
        assert_eq!(found, expected, "{name}");
        assert_eq!(missing > 0, unreported, "{name}: {missing}");
    }
}

#[test]
fn records_that_start_anew_are_counted() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let log = folder.name("t.spike");
    let to = format!("spike={log}");
    succeeds(&["run", "-q", &elf, "--log", &to, "--max-insns", "1000"]);
    let summary = |file: &str| text(&run(&["ctr", file, "-e", &elf]).stderr).to_owned();
    assert!(!summary(&log).contains("anew"), "{}", summary(&log));
    let lines = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let mut damaged = lines.clone();
    damaged[500] = "core   0: 0x zzz";
    let damaged = folder.file("damaged", &(damaged.join("\n") + "\n"));
    let words = summary(&damaged);
    assert!(words.contains("recording restarted 1 time: "), "{words}");
}

/// Traces with timestamps tell the time at their messages.
#[test]
fn snapshots_by_the_time_that_traces_tell() {
    let folder = Folder::new();
    let elf = program("modes/modes-rv64gc.elf");
    let timed = "[ntrace]\ntimestamps = true\n[etrace]\nversion = \"2.0\"\ntime_width = 40\n";
    let timed = folder.file("timed.toml", timed);
    let (ntrace, etrace) = (folder.name("t.ntrace"), folder.name("t.etrace"));
    let (n, e) = (format!("ntrace={ntrace}"), format!("etrace={etrace}"));
    succeeds(&[
        "run", "-q", &elf, "-c", &timed, "--trace", &n, "--trace", &e,
    ]);
    for file in [&ntrace, &etrace] {
        let args = ["ctr", file, "-e", &elf, "--every", "5Kcycles", "-f", "json"];
        let output = run(&args);
        let words = text(&output.stderr);
        assert!(words.starts_with("warning[HT0402]: "), "{words}");
        assert!(words.contains("interpolated by instruction"), "{words}");
        let json = text(&output.stdout);
        let header = json.lines().next().unwrap();
        assert!(header.contains("\"times\":\"interpolated\""), "{header}");
        let found = objects(json);
        // 305 000 cycles, with long times without a message.
        assert!((20..=62).contains(&found.len()), "{file}: {}", found.len());
        for snapshot in &found {
            assert!(snapshot["cycles"].is_null());
            let entries = snapshot["entries"].as_array().unwrap();
            assert!(entries.iter().all(|e| e["transfer"]["cycles"].is_null()));
        }
    }
    // Without them there is none.
    succeeds(&["run", "-q", &elf, "--trace", &n, "--trace", &e]);
    for file in [&ntrace, &etrace] {
        let message = fails(
            &["ctr", file, "-e", &elf, "--every", "5Kcycles"],
            1,
            "HT0118",
        );
        assert!(message.contains("has no timestamps"), "{message}");
    }
}

/// The share of the snapshots that stand in each function.
fn shares(json: &str) -> std::collections::BTreeMap<String, f64> {
    let found = objects(json);
    let mut shares = std::collections::BTreeMap::new();
    for snapshot in &found {
        let symbol = snapshot["symbol"].as_str().unwrap();
        let function = symbol.split('+').next().unwrap().to_owned();
        *shares.entry(function).or_insert(0.0) += 100.0 / found.len() as f64;
    }
    shares
}

/// Samples by time fall where the time is spent, not where the messages are.
#[test]
fn snapshots_of_a_timed_trace_are_not_biased_towards_messages() {
    let folder = Folder::new();
    let timed = "[ntrace]\ntimestamps = true\n[etrace]\ntime_width = 64\n";
    let timed = folder.file("timed.toml", timed);
    let names = ["t.ctr", "t.ntrace", "t.etrace"].map(|name| folder.name(name));
    let [ctr, ntrace, etrace] = &names;
    let to = [("ctr", ctr), ("ntrace", ntrace), ("etrace", etrace)];
    let to = to.map(|(kind, name)| format!("{kind}={name}"));
    // Interrupts and wfi; and plain loops and calls.
    for (name, etrace_too) in [
        ("timer/timer-rv64gc.elf", true),
        ("sort/sort-rv64gc.elf", false),
    ] {
        let elf = program(name);
        let mut args = vec!["run", "-q", &elf, "-c", &timed, "--ctr-every", "97cycles"];
        args.extend(["--max-insns", "30K"]);
        to.iter().for_each(|to| args.extend(["--trace", to]));
        assert_eq!(run(&args).status.code(), Some(0));
        let truth = shares(&succeeds(&["ctr", ctr, "-f", "json"]));
        for file in [ntrace, etrace]
            .into_iter()
            .take(1 + usize::from(etrace_too))
        {
            let args = ["ctr", "-q", file, "--every", "97cycles", "-f", "json"];
            let found = shares(&succeeds(&args));
            for function in truth.keys().chain(found.keys()) {
                let share = |of: &std::collections::BTreeMap<String, f64>| {
                    of.get(function).copied().unwrap_or(0.0)
                };
                let (is, was) = (share(&found), share(&truth));
                assert!(
                    (is - was).abs() < 7.0,
                    "{name} {file} {function}: {is} for {was}"
                );
            }
        }
    }
}

/// Lists of pcs and commits alone show only where the hart went.
#[test]
fn logs_that_do_not_tell_traps() {
    let folder = Folder::new();
    let words = |name: &str, kind: &str| {
        let elf = program(name);
        let log = folder.name(kind);
        let to = format!("{kind}={log}");
        succeeds(&["run", "-q", &elf, "--log", &to]);
        let output = run(&["ctr", &log, "-e", &elf]);
        assert_eq!(output.status.code(), Some(0));
        text(&output.stderr).to_owned()
    };
    // The handlers read the causes, which commits show and pcs do not.
    for (kind, code, what) in [
        ("spike", "HT0402", "does not record traps"),
        ("pc", "HT0120", "does not record the cause of"),
    ] {
        let words = words("modes/modes-rv64gc.elf", kind);
        assert!(
            words.starts_with(&format!("warning[{code}]")),
            "{kind}: {words}"
        );
        assert!(words.contains(what), "{kind}: {words}");
        assert_eq!(words.matches("warning[").count(), 1, "{kind}: {words}");
    }
    for kind in ["spike-traps", "ingress"] {
        assert_eq!(words("modes/modes-rv64gc.elf", kind), "", "{kind}");
    }
    // Where there are none, none are missing.
    assert_eq!(words("recursion/recursion-rv64gc.elf", "spike"), "");
}

/// A semihosting call goes on behind its `ebreak`: that is no exception.
#[test]
fn semihosting_in_logs_is_no_exception() {
    let folder = Folder::new();
    let elf = program("semihost/semihost-rv64gc.elf");
    let kinds = ["spike", "spike-traps", "pc"];
    let files = kinds.map(|kind| folder.name(kind));
    let logs: Vec<String> = kinds
        .iter()
        .zip(&files)
        .map(|(k, f)| format!("{k}={f}"))
        .collect();
    let tandem = folder.name("tandem");
    let to = format!("tandem={tandem}");
    let mut args = vec!["run", "-q", &elf, "--trace", &to];
    args.extend(logs.iter().flat_map(|log| ["--log", log]));
    run(&args);
    let table = |file: &str| {
        let args = ["ctr", file, "-e", &elf, "--every", "1000", "-f", "brstack"];
        succeeds(&args)
    };
    let expected = table(&tandem);
    assert!(expected.lines().count() > 30);
    for file in &files {
        assert_eq!(table(file), expected, "{file}");
    }
}

/// The program sets the records that the hart has itself: `[ctr]` says only
/// what there is of them.
#[test]
fn settings_without_effect_on_the_harts_own_records() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = folder.name("run.ctr");
    let to = format!("ctr={dump}");
    let text_of = "[ctr]\ndepth = 64\ncontrol = [\"M\"]\nrecord = [\"return\"]\n";
    let only = folder.file("only.toml", text_of);
    let words = |isa: &str| {
        let args = ["run", &elf, "--trace", &to, "--isa", isa, "-c", &only];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0));
        let sidecar = fs::read_to_string(format!("{dump}.toml")).unwrap();
        (text(&output.stderr).to_owned(), sidecar)
    };
    let note = "note: `depth`, `control`, `record` in [ctr] have no effect: ";
    let keys = ["\ndepth = ", "\ncontrol = ", "\nrecord = "];
    let (own, sidecar) = words("rv64gc_smctr_ssctr");
    assert_eq!(own.matches(note).count(), 1, "{own}");
    assert!(!keys.iter().any(|key| sidecar.contains(key)), "{sidecar}");
    assert!(sidecar.contains("\nfields = ") && !sidecar.contains("ETEN"));
    let (beside, sidecar) = words("rv64gc");
    assert!(!beside.contains("note:"), "{beside}");
    assert!(keys.iter().all(|key| sidecar.contains(key)), "{sidecar}");
    assert!(!sidecar.contains("ETEN"), "{sidecar}");
}

/// A JSON form of two snapshots.
fn two_snapshots(folder: &Folder) -> String {
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = folder.name("two.ctr");
    let to = format!("ctr={dump}");
    let args = ["run", "-q", &elf, "--trace", &to, "--ctr-every", "1000"];
    succeeds(&[&args[..], &["--max-insns", "2000"]].concat());
    succeeds(&["ctr", &dump, "-f", "json"])
}

/// The header says what it is; what is damaged behind it costs its line.
#[test]
fn bad_bytes_cost_one_line() {
    let folder = Folder::new();
    let json = two_snapshots(&folder);
    let second = json.find("\n").unwrap() + 10;
    for byte in [0xff, 0] {
        let mut bytes = json.clone().into_bytes();
        bytes[second] = byte;
        let file = folder.file("bad.json", bytes);
        let output = run(&["ctr", &file, "-f", "brstack"]);
        let words = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words}");
        assert!(words.starts_with("warning[CT0207]"), "{words}");
        assert!(
            words.contains("line 2: object is not a snapshot"),
            "{words}"
        );
        assert_eq!(text(&output.stdout).lines().count(), 1);
    }
    let marked = folder.file("marked.json", format!("\u{feff}{json}"));
    assert_eq!(
        succeeds(&["ctr", &marked, "-f", "brstack"]).lines().count(),
        2
    );
    // A key without which nobody knows what a snapshot means, and strangers.
    let other = "{\"type\":\"sample\"}\n";
    for text in [
        json.replacen("\"depth\":32,", "", 1),
        format!("{json}{other}"),
    ] {
        let file = folder.file("other.json", text);
        fails(
            &["ctr", &file, "--strict", "-o", &folder.name("x")],
            3,
            "CT0207",
        );
    }
}

#[test]
fn a_json_log_is_not_read() {
    let header = "{\"type\":\"header\",\"schema\":\"hartrace-log\",\"version\":1}\n";
    let folder = Folder::new();
    let log = folder.file("log.json", header);
    let message = fails(&["ctr", &log], 5, "HT0105");
    assert!(message.contains("is a JSON log"), "{message}");
}

#[test]
fn dumps_that_are_empty_cut_or_joined() {
    let folder = Folder::new();
    let json = two_snapshots(&folder);
    let bytes = fs::read(folder.name("two.ctr")).unwrap();
    let header = json.lines().next().unwrap().as_bytes();
    for empty in [&bytes[..12], header] {
        let output = run(&["ctr", &folder.file("empty", empty)]);
        let words = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words}");
        assert!(words.starts_with("warning[HT0412]"), "{words}");
    }
    let message = fails(&["ctr", &folder.file("cut", &bytes[..20])], 5, "CT0104");
    let told = "byte 12: the dump ends inside a snapshot, of which there are 8 bytes";
    assert!(message.contains(told), "{message}");
    for both in [bytes.repeat(2), json.repeat(2).into_bytes()] {
        let both = folder.file("both", both);
        assert_eq!(
            succeeds(&["ctr", &both, "-f", "brstack"]).lines().count(),
            4
        );
    }
}

/// A dump that is made of a trace or of another has the program in its sidecar.
#[test]
fn dumps_of_reports_have_sidecars() {
    let folder = Folder::new();
    two_snapshots(&folder);
    let elf = program("recursion/recursion-rv64gc.elf");
    let (trace, from_trace) = (folder.name("t.etrace"), folder.name("trace.ctr"));
    let to = format!("etrace={trace}");
    succeeds(&["run", "-q", &elf, "--trace", &to, "--max-insns", "2000"]);
    let again = folder.name("again.ctr");
    succeeds(&["ctr", &folder.name("two.ctr"), "-f", "dump", "-o", &again]);
    succeeds(&["ctr", &trace, "-e", &elf, "-f", "dump", "-o", &from_trace]);
    for dump in [again, from_trace] {
        let sidecar = fs::read_to_string(format!("{dump}.toml")).unwrap();
        let start = "[trace]\nformat = \"ctr\"\nversion = \"1.0\"\n";
        assert!(sidecar.starts_with(start), "{sidecar}");
        assert!(sidecar.contains("\ndepth = 32\n"), "{sidecar}");
        // Names without -e.
        let table = succeeds(&["ctr", &dump]);
        assert!(table.contains(" recursion.c:"), "{table}");
    }
    // Snapshots of several programs are of none.
    let other = folder.name("other.ctr");
    let to = format!("ctr={other}");
    let sort = program("sort/sort-rv64gc.elf");
    succeeds(&["run", "-q", &sort, "--trace", &to, "--max-insns", "2000"]);
    let both = folder.name("both.ctr");
    let two = folder.name("two.ctr");
    succeeds(&["ctr", &two, &other, "-f", "dump", "-o", &both]);
    let sidecar = fs::read_to_string(format!("{both}.toml")).unwrap();
    assert!(!sidecar.contains(".elf"), "{sidecar}");
}
