//! Help, versions, completions and manual pages. Snapshots are written anew
//! with `SNAPSHOTS=overwrite`.

use crate::{Folder, hartrace, succeeds, text};
use snapbox::cmd::Command;
use snapbox::file;
use std::fs;

const COLUMNS: usize = 80;

fn help(args: &[&str]) -> snapbox::cmd::OutputAssert {
    let command = Command::from_std(hartrace());
    let command = command.args(args).env("COLUMNS", COLUMNS.to_string());
    command.assert().success().stderr_eq("")
}

/// Each flag of `run` stands under the heading it belongs to.
#[test]
fn flags_stand_under_their_headings() {
    let text = succeeds(&["run", "--help"]);
    let of = |heading: &str| {
        let (_, rest) = text.split_once(&format!("\n{heading}:\n")).unwrap();
        rest.split("\n\n").next().unwrap().to_owned()
    };
    let options = of("Options");
    for flag in [
        "--log",
        "--trace",
        "--every",
        "--with-trapped",
        "--max-insns",
        "--files",
    ] {
        assert!(options.contains(&format!(" {flag} ")), "{flag}: {options}");
    }
    let container = of("Container");
    let flags = container
        .lines()
        .filter(|l| l.trim_start().starts_with("--"));
    assert_eq!(flags.count(), 2, "{container}");
}

#[test]
fn help_is_wrapped_cleanly() {
    for command in [
        &[][..],
        &["compare"],
        &["run"],
        &["disasm"],
        &["info"],
        &["log"],
        &["encode"],
        &["dump"],
        &["decode"],
        &["stats"],
        &["convert"],
        &["profile"],
        &["calls"],
        &["code"],
        &["coverage"],
        &["flamegraph"],
        &["report"],
        &["view"],
        &["timeline"],
        &["branches"],
        &["interrupts"],
        &["diff"],
        &["verify"],
        &["state"],
        &["ctr"],
        &["config"],
        &["config", "convert"],
        &["explain"],
    ] {
        for flag in ["-h", "--help"] {
            let output = hartrace()
                .args(command)
                .arg(flag)
                .env("COLUMNS", COLUMNS.to_string())
                .output()
                .unwrap();
            let lines: Vec<&str> = text(&output.stdout).lines().collect();
            for line in &lines {
                assert!(line.chars().count() <= COLUMNS, "{line}");
            }
            // In a paragraph, the next word did not fit.
            let prose = |l: &str| l.starts_with(|c: char| c.is_ascii_alphabetic());
            for pair in lines.windows(2).filter(|p| p.iter().all(|l| prose(l))) {
                let word = pair[1].split(' ').next().unwrap();
                assert!(pair[0].len() + 1 + word.len() > COLUMNS, "{pair:?}");
            }
        }
    }
}

#[test]
fn help_texts() {
    help(&["--help"]).stdout_eq(file!["snapshots/hartrace.txt"]);
    help(&["compare", "--help"]).stdout_eq(file!["snapshots/compare.txt"]);
    help(&["run", "--help"]).stdout_eq(file!["snapshots/run.txt"]);
    help(&["disasm", "--help"]).stdout_eq(file!["snapshots/disasm.txt"]);
    help(&["info", "--help"]).stdout_eq(file!["snapshots/info.txt"]);
    help(&["log", "--help"]).stdout_eq(file!["snapshots/log.txt"]);
    help(&["encode", "--help"]).stdout_eq(file!["snapshots/encode.txt"]);
    help(&["dump", "--help"]).stdout_eq(file!["snapshots/dump.txt"]);
    help(&["decode", "--help"]).stdout_eq(file!["snapshots/decode.txt"]);
    help(&["stats", "--help"]).stdout_eq(file!["snapshots/stats.txt"]);
    help(&["convert", "--help"]).stdout_eq(file!["snapshots/convert.txt"]);
    help(&["profile", "--help"]).stdout_eq(file!["snapshots/profile.txt"]);
    help(&["calls", "--help"]).stdout_eq(file!["snapshots/calls.txt"]);
    help(&["code", "--help"]).stdout_eq(file!["snapshots/code.txt"]);
    help(&["coverage", "--help"]).stdout_eq(file!["snapshots/coverage.txt"]);
    help(&["diff", "--help"]).stdout_eq(file!["snapshots/diff.txt"]);
    help(&["branches", "--help"]).stdout_eq(file!["snapshots/branches.txt"]);
    help(&["interrupts", "--help"]).stdout_eq(file!["snapshots/interrupts.txt"]);
    help(&["flamegraph", "--help"]).stdout_eq(file!["snapshots/flamegraph.txt"]);
    help(&["report", "--help"]).stdout_eq(file!["snapshots/report.txt"]);
    help(&["view", "--help"]).stdout_eq(file!["snapshots/view.txt"]);
    help(&["timeline", "--help"]).stdout_eq(file!["snapshots/timeline.txt"]);
    help(&["verify", "--help"]).stdout_eq(file!["snapshots/verify.txt"]);
    help(&["state", "--help"]).stdout_eq(file!["snapshots/state.txt"]);
    help(&["ctr", "--help"]).stdout_eq(file!["snapshots/ctr.txt"]);
    help(&["explain", "--help"]).stdout_eq(file!["snapshots/explain.txt"]);
    help(&["config", "show", "--help"]).stdout_eq(file!["snapshots/config-show.txt"]);
    help(&["config", "convert", "--help"]).stdout_eq(file!["snapshots/config-convert.txt"]);
}

#[test]
fn versions() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(succeeds(&["-V"]), format!("hartrace {version}\n"));
    let long = succeeds(&["--version"]);
    assert!(long.starts_with(&format!("hartrace {version}\n")) && long.lines().count() > 2);
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeeds(&["completions", shell]);
        assert!(
            script.contains("disasm") && script.contains("completions"),
            "{shell}"
        );
    }
}

#[test]
fn one_manual_page_per_command() {
    let folder = Folder::new();
    succeeds(&["man", &folder.name("man/man1")]);
    let mut pages: Vec<String> = fs::read_dir(folder.path("man/man1"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let expected = [
        "hartrace-branches.1",
        "hartrace-calls.1",
        "hartrace-code.1",
        "hartrace-compare.1",
        "hartrace-completions.1",
        "hartrace-config-convert.1",
        "hartrace-config-show-run.1",
        "hartrace-config-show.1",
        "hartrace-config.1",
        "hartrace-convert.1",
        "hartrace-coverage.1",
    ];
    assert_eq!(pages[..11], expected);
    let expected = [
        "hartrace-ctr.1",
        "hartrace-decode.1",
        "hartrace-diff.1",
        "hartrace-disasm.1",
        "hartrace-dump.1",
        "hartrace-encode.1",
        "hartrace-executor.1",
        "hartrace-explain.1",
        "hartrace-export.1",
        "hartrace-flamegraph.1",
        "hartrace-info.1",
        "hartrace-interrupts.1",
        "hartrace-log.1",
        "hartrace-man.1",
        "hartrace-profile.1",
        "hartrace-report.1",
        "hartrace-run.1",
        "hartrace-scheduler.1",
        "hartrace-sql.1",
        "hartrace-state.1",
        "hartrace-stats.1",
        "hartrace-timeline.1",
        "hartrace-verify.1",
        "hartrace-view.1",
        "hartrace.1",
    ];
    assert_eq!(pages[11..], expected);
    let page = fs::read_to_string(folder.path("man/man1/hartrace-info.1")).unwrap();
    assert!(page.contains(".TH hartrace-info 1"), "{page}");
}
