//! `interrupts`: durations and nesting of interrupts are those of the hart's log.

use crate::{Folder, repository, run, succeeds, text};
use serde_json::Value;
use std::fs;

/// A trap as the log has it, up to the `mret` that ends it. Handlers nest in the order of
/// the log, whatever threads they switch.
#[derive(Clone, Debug)]
struct Truth {
    cause: (String, u64),
    at: u64,
    insns: u64,
    depth: u64,
    at_time: u64,
    time: u64,
    /// From when it became pending, of interrupts.
    latency: Option<u64>,
}

const MRET: u64 = 0x3020_0073;

fn hex(value: &Value) -> u64 {
    let digits = value.as_str().unwrap().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    let values = text.lines().map(|line| serde_json::from_str(line).unwrap());
    values.collect()
}

fn truth(log: &str) -> Vec<Truth> {
    let steps = lines(&fs::read_to_string(log).unwrap());
    let (mut open, mut done, mut insns) = (Vec::new(), Vec::new(), 0);
    // Traps that ended with the step before: time is that of the start of a step.
    let mut ended: Option<Truth> = None;
    for step in &steps[1..] {
        if let Some(mut trap) = ended.take_if(|_| step["time"].is_string()) {
            trap.time = hex(&step["time"]) - trap.at_time;
            done.push(trap);
        }
        if step["type"] == "trap" {
            let cause = step["cause"].as_str().unwrap().to_owned();
            open.push(Truth {
                cause: (cause, step["code"].as_u64().unwrap()),
                at: insns,
                insns: 0,
                depth: open.len() as u64,
                at_time: hex(&step["time"]),
                time: 0,
                latency: step["pending"]
                    .is_string()
                    .then(|| hex(&step["time"]) - hex(&step["pending"])),
            });
        } else if step["type"] == "insn" {
            insns += 1;
            if hex(&step["bits"]) == MRET
                && let Some(mut trap) = open.pop()
            {
                trap.insns = insns - trap.at;
                ended = Some(trap);
            }
        }
    }
    assert!(open.is_empty() && ended.is_none());
    done
}

/// The shortest that is no shorter than a share of all.
fn quantile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

fn check_spans(found: &Value, mut values: Vec<u64>) {
    values.sort_unstable();
    for (key, percent) in [
        ("min", 0),
        ("p50", 50),
        ("p90", 90),
        ("p99", 99),
        ("max", 100),
    ] {
        assert_eq!(
            found[key],
            quantile(&values, percent),
            "{key} of {values:?}"
        );
    }
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    assert!((found["mean"].as_f64().unwrap() - mean).abs() < 1e-6);
}

/// One cause and its longest ones, against all traps that it stands for.
fn check_cause(
    cause: &Value,
    (longest, delayed): (&[&Value], &[&Value]),
    truth: &[&Truth],
    timed: bool,
) {
    assert_eq!(cause["count"], truth.len());
    assert_eq!(cause["unfinished"], 0);
    assert_eq!(cause["depth"], truth.iter().map(|t| t.depth).max().unwrap());
    let nested = truth.iter().filter(|t| t.depth > 0).count();
    assert_eq!(cause["nested"], nested);
    let sum: u64 = truth.iter().map(|t| t.insns).sum();
    assert_eq!(cause["total"]["instructions"], sum);
    check_spans(
        &cause["instructions"],
        truth.iter().map(|t| t.insns).collect(),
    );
    if timed {
        check_spans(&cause["time"], truth.iter().map(|t| t.time).collect());
    }
    check_latencies(cause, delayed, truth, timed);
    let length = |t: &&&Truth| {
        if timed {
            (t.time, t.insns)
        } else {
            (t.insns, 0)
        }
    };
    let mut sorted: Vec<&&Truth> = truth.iter().collect();
    sorted.sort_by_key(|t| std::cmp::Reverse(length(t)));
    assert_eq!(longest.len(), truth.len().min(8));
    for (found, expected) in longest.iter().zip(sorted) {
        assert_eq!(found["duration"]["instructions"], expected.insns);
        let here = truth
            .iter()
            .find(|t| found["at"]["instructions"] == t.at)
            .unwrap();
        assert_eq!(found["duration"]["instructions"], here.insns);
        assert_eq!(found["depth"], here.depth);
        if timed {
            assert_eq!(found["duration"]["time"], here.time);
            assert_eq!(found["at"]["time"], here.at_time);
        }
    }
}

/// Latencies, which only ingress rows have, and only those of interrupts.
fn check_latencies(cause: &Value, delayed: &[&Value], truth: &[&Truth], timed: bool) {
    let mut latencies: Vec<u64> = truth.iter().filter_map(|t| t.latency).collect();
    if !timed || latencies.is_empty() {
        assert!(cause["latency"].is_null() && delayed.is_empty(), "{cause}");
        return;
    }
    assert_eq!(cause["latency"]["count"], truth.len());
    // Values over 1000 have three digits.
    let least = latencies.iter().min().copied();
    assert_eq!(cause["latency"]["min"].as_u64(), least);
    let p50 = |all: &mut Vec<u64>| {
        all.sort_unstable();
        quantile(all, 50)
    };
    assert_eq!(cause["latency"]["p50"], p50(&mut latencies));
    let max = cause["latency"]["max"].as_u64().unwrap();
    let longest = *latencies.last().unwrap();
    assert!(max >= longest && max <= longest + longest / 1000);
    assert_eq!(delayed.len(), truth.len().min(8));
    for (found, latency) in delayed.iter().zip(latencies.iter().rev()) {
        assert_eq!(found["latency"], *latency);
        let is_here = |t: &&&Truth| found["at"]["instructions"] == t.at;
        let here = truth.iter().find(is_here).unwrap();
        assert_eq!(here.latency, Some(*latency));
        assert_eq!(found["pending"], here.at_time - latency);
        assert!(!found["path"].as_array().unwrap().is_empty());
    }
}

fn check(report: &str, truth: &[Truth], timed: bool) {
    let values = lines(report);
    assert_eq!(values[0]["schema"], "hartrace-interrupts");
    let causes: Vec<_> = values.iter().filter(|v| v["type"] == "cause").collect();
    assert!(!causes.is_empty());
    let mut seen = 0;
    for cause in causes {
        let is_same = |v: &&Value| v["cause"] == cause["cause"] && v["code"] == cause["code"];
        let of_type = |kind: &str| {
            let all = values.iter().filter(|v| v["type"] == kind);
            all.filter(is_same).collect::<Vec<_>>()
        };
        let (longest, delayed) = (of_type("longest"), of_type("delayed"));
        // N-Trace says that it was an interrupt, and not which.
        let stands_for = |t: &&Truth| {
            cause["cause"] == t.cause.0.as_str()
                && (cause["code"].is_null() || cause["code"] == t.cause.1)
        };
        let truth: Vec<_> = truth.iter().filter(stands_for).collect();
        seen += truth.len();
        check_cause(cause, (&longest, &delayed), &truth, timed);
    }
    assert_eq!(seen, truth.len());
}

/// Nested interrupts, and a scheduler whose interrupts return to other threads; one of
/// the former is masked for long.
#[test]
fn durations_and_latencies_are_those_of_the_log() {
    for (name, count) in [("timer", 65), ("scheduler", 73)] {
        for xlen in ["rv32gc", "rv64gc"] {
            let folder = Folder::new();
            let elf = repository().join(format!("programs/{name}/{name}-{xlen}.elf"));
            let elf = elf.to_str().unwrap();
            let log = folder.name("run.json");
            let mut args = vec!["run".to_owned(), "-q".to_owned(), elf.to_owned()];
            args.extend(["--log".to_owned(), format!("json={log}")]);
            let files = ["ntrace", "etrace", "tandem", "ingress"].map(|kind| {
                let file = folder.name(&format!("run.{kind}"));
                let flag = if kind == "ingress" {
                    "--log"
                } else {
                    "--trace"
                };
                args.extend([flag.to_owned(), format!("{kind}={file}")]);
                (file, kind == "ingress")
            });
            assert_eq!(run(&args).status.code(), Some(0));
            let truth = truth(&log);
            if xlen == "rv64gc" {
                assert_eq!(truth.len(), count);
            }
            for (file, timed) in files {
                let args = ["interrupts", &file, "-e", elf, "-f", "json", "--top", "8"];
                let report = succeeds(&[&args[..], &["--exceptions"]].concat());
                check(&report, &truth, timed);
                let interrupts = truth.iter().filter(|t| t.cause.0 == "interrupt");
                let interrupts: Vec<_> = interrupts.cloned().collect();
                check(&succeeds(&args), &interrupts, timed);
            }
        }
    }
}

/// The timestamp of a return from a trap is the time at which it started, so a duration
/// may lack the return itself: two cycles on the built-in hart.
#[test]
fn timestamps_give_durations() {
    let folder = Folder::new();
    let elf = repository().join("programs/timer/timer-rv64gc.elf");
    let elf = elf.to_str().unwrap();
    let config = folder.file("c.toml", "[ntrace]\ntimestamps = true\n");
    let [log, trace] = ["t.json", "t.ntrace"].map(|name| folder.name(name));
    let to = [format!("json={log}"), format!("ntrace={trace}")];
    run(&[
        "run", "-q", elf, "-c", &config, "--log", &to[0], "--trace", &to[1],
    ]);
    let truth = truth(&log);
    let report = lines(&succeeds(&[
        "interrupts",
        &trace,
        "-f",
        "json",
        "--top",
        "8",
    ]));
    let longest: Vec<_> = report.iter().filter(|v| v["type"] == "longest").collect();
    assert_eq!(longest.len(), 8);
    for found in longest {
        let at = &found["at"];
        let here = truth.iter().find(|t| at["instructions"] == t.at).unwrap();
        assert_eq!(at["time"], here.at_time);
        let time = found["duration"]["time"].as_u64().unwrap();
        assert!((here.time - 2..=here.time).contains(&time), "{found}");
    }
}

/// Where the longest ones are can be looked at, and the path leads to what was interrupted.
#[test]
fn the_longest_can_be_found_again() {
    let folder = Folder::new();
    let elf = repository().join("programs/timer/timer-rv64gc.elf");
    let trace = folder.name("t.etrace");
    let to = format!("etrace={trace}");
    run(&["run", "-q", elf.to_str().unwrap(), "--trace", &to]);
    let report = lines(&succeeds(&[
        "interrupts",
        &trace,
        "-f",
        "json",
        "--top",
        "8",
    ]));
    let mut nested = 0;
    for found in report.iter().filter(|v| v["type"] == "longest") {
        let at = found["at"]["instructions"].to_string();
        let listing = succeeds(&["decode", &trace, "--around", &at, "--context", "1"]);
        let trap = listing
            .lines()
            .find(|l| l.starts_with("-- interrupt"))
            .unwrap();
        let path = found["path"].as_array().unwrap();
        let function = path.last().unwrap().as_str().unwrap();
        let place = format!("at {} <{function}", found["epc"].as_str().unwrap());
        assert!(trap.contains(&place), "{trap}: {place}");
        let handler = format!("<{}", found["handler"].as_str().unwrap());
        assert!(trap.contains(&handler), "{trap}: {handler}");
        nested += u32::from(path.iter().any(|name| *name == "[machine timer interrupt]"));
    }
    assert!(nested > 0);
    let text = succeeds(&["interrupts", &trace, "--top", "1"]);
    assert!(
        !text.contains("time per") && text.contains("latency: not known"),
        "{text}"
    );
}

#[test]
fn a_trace_without_interrupts() {
    let folder = Folder::new();
    let trace = folder.name("t.ntrace");
    let to = format!("ntrace={trace}");
    let output = run(&[
        "run",
        "-q",
        crate::RV64,
        "--max-insns",
        "2000",
        "--trace",
        &to,
    ]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        succeeds(&["interrupts", &trace]),
        "2 000 instructions, 0 interrupts\n"
    );
    let json = succeeds(&["interrupts", &trace, "-f", "json"]);
    assert_eq!(json.lines().count(), 1);
}

/// Rows of several harts have a column for the hart; each hart has its own steps, and its
/// own latencies.
#[test]
fn several_harts_in_one_table() {
    let folder = Folder::new();
    let elf = repository().join("programs/harts/harts-rv64gc.elf");
    let elf = elf.to_str().unwrap();
    let [log, rows] = ["t.json", "t.csv"].map(|name| folder.name(name));
    let to = [format!("json={log}"), format!("ingress={rows}")];
    let mut args = vec!["run", "-q", elf, "--harts", "3"];
    args.extend(["--log", &to[0], "--log", &to[1]]);
    assert_eq!(run(&args).status.code(), Some(0));
    // Half a million lines, of which only those of interrupts are read as JSON.
    let steps = fs::read_to_string(&log).unwrap();
    let traps = steps.lines().filter(|line| line.contains("\"pending\""));
    let traps: Vec<Value> = traps.flat_map(lines).collect();
    for hart in 0..3u32 {
        let number = hart.to_string();
        let chosen = ["-e", elf, "--hart", &number];
        let pcs = succeeds(&[&["log", &rows, "--to", "pc"], &chosen[..]].concat());
        let insn = format!("{{\"type\":\"insn\",\"hart\":{hart},\"pc\":\"0x");
        let insns = steps.lines().filter_map(|line| line.strip_prefix(&insn));
        let expected = insns.filter_map(|rest| rest.split('"').next());
        assert!(
            pcs.lines()
                .map(|pc| pc.trim_start_matches('0'))
                .eq(expected),
            "hart {hart}"
        );
        let own = traps.iter().filter(|step| step["hart"] == hart);
        let latency = |step: &Value| hex(&step["time"]) - hex(&step["pending"]);
        let mut latencies: Vec<u64> = own.map(latency).collect();
        latencies.sort_unstable();
        let report = [&["interrupts", &rows, "-f", "json"], &chosen[..]].concat();
        let report = lines(&succeeds(&report));
        let cause = report.iter().find(|v| v["type"] == "cause").unwrap();
        assert_eq!(cause["latency"]["count"], latencies.len());
        assert_eq!(cause["latency"]["min"], latencies[0]);
        let delayed = report.iter().find(|v| v["type"] == "delayed").unwrap();
        assert_eq!(delayed["latency"], *latencies.last().unwrap());
        assert_eq!(delayed["hart"], hart);
    }
}
