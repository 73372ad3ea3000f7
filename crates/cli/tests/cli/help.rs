//! Help, versions, completions and manual pages. Snapshots are written anew
//! with `SNAPSHOTS=overwrite`.

use crate::{Folder, hartrace, succeeds};
use snapbox::cmd::Command;
use snapbox::file;
use std::fs;

fn help(args: &[&str]) -> snapbox::cmd::OutputAssert {
    let command = Command::from_std(hartrace());
    command
        .args(args)
        .env("COLUMNS", "100")
        .assert()
        .success()
        .stderr_eq("")
}

#[test]
fn help_texts() {
    help(&["--help"]).stdout_eq(file!["snapshots/hartrace.txt"]);
    help(&["disasm", "--help"]).stdout_eq(file!["snapshots/disasm.txt"]);
    help(&["info", "--help"]).stdout_eq(file!["snapshots/info.txt"]);
    help(&["log", "--help"]).stdout_eq(file!["snapshots/log.txt"]);
    help(&["config", "show", "--help"]).stdout_eq(file!["snapshots/config-show.txt"]);
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
        "hartrace-completions.1",
        "hartrace-config-show.1",
        "hartrace-config.1",
    ];
    assert_eq!(pages[..3], expected);
    let expected = [
        "hartrace-disasm.1",
        "hartrace-info.1",
        "hartrace-log.1",
        "hartrace-man.1",
        "hartrace.1",
    ];
    assert_eq!(pages[3..], expected);
    let page = fs::read_to_string(folder.path("man/man1/hartrace-info.1")).unwrap();
    assert!(page.contains(".TH hartrace-info 1"), "{page}");
}
