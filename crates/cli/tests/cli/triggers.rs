//! Debug triggers: a program that traces a part of itself.

use crate::{Folder, json_lines, repository, run, succeeds, text};
use serde_json::Value;
use std::fs;

fn program(width: u32) -> String {
    let name = format!("programs/triggers/triggers-rv{width}gc.elf");
    repository().join(name).to_str().unwrap().to_owned()
}

/// The pcs that the log of a run says are traced, and the notifications among them.
fn traced(log: &str, starts_on: bool) -> (Vec<String>, usize) {
    let (mut pcs, mut notified) = (Vec::new(), 0);
    let (mut on, mut ends) = (starts_on, false);
    for line in fs::read_to_string(log).unwrap().lines().skip(1) {
        let step: Value = serde_json::from_str(line).unwrap();
        match step["type"].as_str().unwrap() {
            "signal" => match step["signal"].as_str().unwrap() {
                "trace-on" => on = true,
                "trace-off" => ends = true,
                "notify" => notified += usize::from(on),
                _ => {}
            },
            "insn" if on => {
                let pc = step["pc"].as_str().unwrap().trim_start_matches("0x");
                pcs.push(pc.to_owned());
                // The instruction that it stands before is the last one traced.
                on = !std::mem::take(&mut ends);
            }
            _ => {}
        }
    }
    (pcs, notified)
}

#[test]
fn traces_start_and_stop_where_triggers_say() {
    let folder = Folder::new();
    for width in [64, 32] {
        for starts_disabled in [true, false] {
            let settings = format!("triggers = true\nstarts_disabled = {starts_disabled}\n");
            let both = format!("[ntrace]\n{settings}[etrace]\n{settings}");
            let config = folder.file("c.toml", &both);
            let [log, ntrace, etrace] = ["t.json", "t.nt", "t.et"].map(|name| folder.name(name));
            let to = [
                format!("json={log}"),
                format!("ntrace={ntrace}"),
                format!("etrace={etrace}"),
            ];
            let elf = program(width);
            let mut args = vec!["run", "-q", &elf, "-c", &config, "--check"];
            args.extend(["--log", &to[0], "--trace", &to[1], "--trace", &to[2]]);
            let output = run(&args);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            let (pcs, notified) = traced(&log, !starts_disabled);
            assert_eq!(notified, 5);
            if starts_disabled {
                assert!((150..400).contains(&pcs.len()), "{}", pcs.len());
            }
            for trace in [&ntrace, &etrace] {
                let decoded = succeeds(&["decode", trace, "-f", "pc"]);
                let decoded: Vec<&str> = decoded.lines().collect();
                let short = |pc: &&str| pc.trim_start_matches('0').to_owned();
                assert!(decoded.iter().map(short).eq(pcs.iter().cloned()), "{trace}");
                let events = json_lines(&["decode", trace, "-f", "json"]);
                let marks = events.iter().filter(|event| event["mark"] == "notify");
                assert_eq!(marks.count(), 5, "{trace}");
            }
        }
    }
}

/// Without the setting, encoders take no notice of triggers.
#[test]
fn triggers_that_are_not_wanted() {
    let folder = Folder::new();
    let trace = folder.name("t.nt");
    let to = format!("ntrace={trace}");
    let args = ["run", "-q", &program(64), "--trace", &to, "--check"];
    assert_eq!(run(&args).status.code(), Some(0));
    let decoded = succeeds(&["decode", &trace, "-f", "pc"]);
    assert!(decoded.lines().count() > 20_000);
}

/// The number of triggers is a setting, and a program without any goes on.
#[test]
fn the_number_of_triggers_is_a_setting() {
    let folder = Folder::new();
    let few = folder.file("few.toml", "[hart]\ntriggers = 2\n");
    let output = run(&["run", "-q", &program(64), "-c", &few]);
    assert_eq!(output.status.code(), Some(10), "{}", text(&output.stdout));
    let many = folder.file("many.toml", "[hart]\ntriggers = 33\n");
    let output = run(&["run", "-q", &program(64), "-c", &many]);
    assert_ne!(output.status.code(), Some(0));
    let message = text(&output.stderr);
    assert!(
        message.contains("triggers") && message.contains("32"),
        "{message}"
    );
}
