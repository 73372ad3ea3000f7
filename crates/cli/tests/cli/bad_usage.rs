//! Flags that cannot be meant that way.

use crate::{Folder, RV32, RV64, fails, run, succeeds, text};

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
    for base in ["-1", "zz"] {
        for args in [["-e", "a.elf"], ["--raw", "rom"]] {
            let spec = format!("{}@{base}", args[1]);
            let message = fails(&["disasm", args[0], &spec], 2, "HT0302");
            let words = format!("the base `{base}` is not an address");
            assert!(message.contains(&words), "{message}");
        }
    }
    assert!(fails(&["disasm", "a.elf@"], 2, "HT0302").contains("there is no base after `@`"));
}

#[test]
fn bases_where_no_code_can_be() {
    let folder = Folder::new();
    let raw = folder.file("code.bin", [0x13, 0, 0, 0]);
    for (base, isa, words) in [
        ("0x1001", "rv64gc", "is odd"),
        (
            "0xfffffffffffffffe",
            "rv64gc",
            "the end of the address space",
        ),
        ("0xfffffffe", "rv32gc", "the end of the address space"),
        ("0x100000000", "rv32gc", "the end of the address space"),
    ] {
        let spec = format!("{raw}@{base}");
        let message = fails(&["disasm", "--raw", &spec, "--isa", isa], 2, "HT0302");
        assert!(message.contains(words), "{message}");
    }
    for base in ["0xfffffffffffffffc", "0"] {
        let spec = format!("{raw}@{base}");
        succeeds(&["disasm", "--raw", &spec, "--isa", "rv64gc"]);
    }
    for (elf, base) in [
        (RV64, "1"),
        (RV64, "0xfffffffffffffff0"),
        (RV32, "0xfffffff0"),
    ] {
        fails(&["disasm", &format!("{elf}@{base}")], 2, "HT0302");
    }
}

#[test]
fn bases_that_were_probably_not_meant() {
    let folder = Folder::new();
    let raw = folder.file("code.bin", [0x13, 0, 0, 0]) + "@80000000";
    let output = run(&["disasm", "--raw", &raw, "--isa", "rv64gc"]);
    let message = text(&output.stderr);
    assert!(message.starts_with("warning[HT0403]: "), "{message}");
    assert!(message.contains("did you mean 0x80000000?"), "{message}");
    assert_eq!(output.status.code(), Some(0));
    let output = run(&["disasm", &format!("{RV64}@0x1000")]);
    let message = text(&output.stderr);
    assert!(message.starts_with("warning[HT0403]: "), "{message}");
    assert!(message.contains("fixed addresses"), "{message}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn standard_input_twice() {
    for args in [
        &["disasm", "-", "-"][..],
        &["disasm", "-", "--raw=-@0x1000"],
        &["log", "-", "-e", "-", "--to", "pc"],
        &["info", "-", "-"],
        &["info", "-", "-e", "-"],
        &["config", "show", "-e", "-", "-c", "-"],
        &["config", "convert", "-", "-", "--to", "scf"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let message = text(&output.stderr);
        assert!(message.starts_with("error: `-` is given"), "{message}");
        assert_eq!(text(&output.stdout), "");
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
        &["config", "convert", "--to", "scf"],
        &["config", "convert", "x.scf"],
        &["config", "convert", "--registers", "1", "--to", "scf"],
        &["config", "convert", "--registers", "1,2,3", "--to", "scf"],
        &["config", "convert", "--registers", "1,x", "--to", "scf"],
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
