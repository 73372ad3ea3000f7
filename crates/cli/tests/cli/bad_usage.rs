//! Flags that cannot be meant that way.

use crate::{RV64, fails, run, text};

#[test]
fn unknown_isa() {
    let message = fails(&["disasm", RV64, "--isa", "rv64gc_zbaa"], 2, "HT0301");
    assert!(
        message.contains("did you mean --isa rv64gc_zba?"),
        "{message}"
    );
    for isa in [
        "",
        "x86",
        "rv64",
        "rv64gc_zqqqq",
        "rv64gc_zcmp",
        "rv64é",
        "rv128i",
    ] {
        fails(&["disasm", RV64, "--isa", isa], 2, "HT0301");
    }
}

#[test]
fn wrong_base() {
    for spec in ["a.elf@0xzz", "a.elf@0x1_0000_0000_0000_0000", "@0x10", ""] {
        fails(&["disasm", spec], 2, "HT0302");
    }
    for spec in ["rom", "rom@", "@1"] {
        fails(&["disasm", "--raw", spec], 2, "HT0302");
    }
}

#[test]
fn no_program() {
    fails(&["disasm"], 2, "HT0304");
    fails(&["disasm", "--isa", "rv64gc"], 2, "HT0304");
}

#[test]
fn unknown_commands_and_flags() {
    for args in [
        &["dissasm"][..],
        &["disasm", "--isaa", "rv64gc"],
        &["info"],
        &["info", "-f", "xml", "x"],
        &["config"],
        &["completions", "cmd.exe"],
        &["man"],
        &["disasm", "-q", "-v", "x"],
        &["--color", "sometimes", "info", "x"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let message = text(&output.stderr);
        let known = message.starts_with("error: ") || message.contains("Usage:");
        assert!(known, "{args:?}: {message}");
        assert_eq!(text(&output.stdout), "");
    }
    let output = run(&["dissasm"]);
    assert!(text(&output.stderr).contains("'disasm'"));
}

#[test]
fn colour_only_when_asked_for_or_on_a_terminal() {
    let escape = |args: &[&str]| text(&run(args).stderr).contains('\x1b');
    assert!(!escape(&["info", "none"]));
    assert!(!escape(&["info", "none", "--color", "never"]));
    assert!(escape(&["info", "none", "--color", "always"]));
}
