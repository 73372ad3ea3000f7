//! `hartrace info`.

use crate::{Folder, RV32, RV64, fails, run, succeeds, text};
use std::fs;

const SPIKE: &str = "\
core   0: 0x000000007ffffffc (0x00000297) auipc   t0, 0x0
core   0: >>>>  _start
core   0: 0x0000000080000000 (0x00000073) ecall
core   0: exception trap_machine_ecall, epc 0x0000000080000000
core   0: 0x0000000080000010 (0x00000013) nop
";

fn json(args: &[&str]) -> Vec<serde_json::Value> {
    let lines = succeeds(&[&["info", "-f", "json"], args].concat());
    let values: Vec<serde_json::Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(values[0]["schema"], "hartrace-info");
    assert_eq!(values.len(), args.len() + 1);
    values
}

#[test]
fn elf_files() {
    let values = json(&[RV64, RV32]);
    let (a, b) = (&values[1], &values[2]);
    assert_eq!((&a["type"], &b["type"]), (&"elf".into(), &"elf".into()));
    assert_eq!(a["elf"]["bits"], 64);
    assert_eq!(a["elf"]["abi"], "lp64d");
    assert_eq!(a["elf"]["entry"], "0x80000000");
    assert_eq!(a["elf"]["segments"].as_array().unwrap().len(), 2);
    assert_eq!(b["elf"]["bits"], 32);
    assert_eq!(b["elf"]["abi"], "ilp32");
    assert_eq!(b["elf"]["line_info"], true);
    let shown = succeeds(&["info", RV64, RV32]);
    let digest = a["sha256"].as_str().unwrap();
    assert!(
        shown.contains(&format!("  sha256      {digest}\n")),
        "{shown}"
    );
    assert!(shown.contains("  extensions  i m a c zicsr"), "{shown}");
}

#[test]
fn logs_without_a_program() {
    let folder = Folder::new();
    let spike = folder.file("spike.log", SPIKE);
    let pcs = folder.file("run.pc", "0000000080000000\n0000000080000004\n");
    let rows = folder.file(
        "run.csv",
        "itype,cause,tval,priv,iaddr,iretire,ilastsize\n\
         0,0,0,3,80000000,1,1\n1,2,0,0,80000004,0,0\n5,0,0,3,8000000a,1,0\n",
    );
    let values = json(&[&spike, &pcs, &rows]);
    let kinds: Vec<_> = values[1..]
        .iter()
        .map(|v| v["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["spike", "pc", "ingress"]);
    let (spike_log, pc_log, row_log) = (&values[1]["log"], &values[2]["log"], &values[3]["log"]);
    assert_eq!(spike_log["lines"], 5);
    assert_eq!(spike_log["instructions"], 2);
    assert_eq!(spike_log["causes"][0]["code"], 11);
    assert_eq!(spike_log["first_pc"], "0x7ffffffc");
    assert_eq!(
        (&pc_log["rows"], &pc_log["instructions"]),
        (&2.into(), &().into())
    );
    assert_eq!(pc_log["last_pc"], "0x80000004");
    assert_eq!(
        (&row_log["rows"], &row_log["traps"]),
        (&2.into(), &1.into())
    );
    assert_eq!(row_log["modes"], serde_json::json!(["U", "M"]));
    assert_eq!(row_log["last_pc"], "0x8000000a");
    let shown = succeeds(&["info", &spike]);
    assert!(shown.contains("  last pc     0x80000010\n"), "{shown}");
    assert!(
        shown.contains("  traps       1\n              exception 11: 1\n"),
        "{shown}"
    );
    // Without commits the log does not tell modes.
    assert!(!shown.contains("modes"), "{shown}");
}

#[test]
fn a_list_of_pcs_with_its_program() {
    let folder = Folder::new();
    let list = "0000000080000000\n0000000080000004\n0000000080000008\n0x5\n0000000080000000\n";
    let list = folder.file("run.pc", list);
    let shown = succeeds(&["info", &list, "-e", RV64]);
    for row in [
        "  retired     4 instructions\n",
        "  damaged     1 line\n              line 4, column 1: no code at 0x5 in the program",
        "  signals     lost: 1\n",
    ] {
        assert!(shown.contains(row), "{shown}");
    }
    fails(
        &[
            "info",
            &list,
            "-e",
            RV64,
            "--strict",
            "-o",
            &folder.name("o"),
        ],
        3,
        "HT0106",
    );
    assert!(succeeds(&["info", &list, "--strict"]).contains("  pcs         5\n"));
    let output = run(&["info", "-v", &list]);
    assert!(text(&output.stderr).contains("million lines/s"));
    fails(&["info", &list, "-e", &list], 5, "HT0101");
    assert!(
        shown.contains("(is an ELF file missing?), found `0x5`\n"),
        "{shown}"
    );
}

#[test]
fn a_log_of_which_nothing_could_be_read() {
    let folder = Folder::new();
    let list = folder.file("run.pc", "0x10\n0x14\n".repeat(10));
    let output = run(&["info", &list, "-e", RV64]);
    assert_eq!(output.status.code(), Some(5));
    let message = text(&output.stderr);
    assert!(message.starts_with("error[HT0109]: "), "{message}");
    assert!(message.contains("20 of 20 lines"), "{message}");
    let out = folder.name("o");
    fails(&["info", &list, "-e", RV64, "-o", &out], 5, "HT0109");
    succeeds(&["info", &list]);
}

#[test]
fn damaged_lines_fail_with_strict_only() {
    let folder = Folder::new();
    let log = folder.file("run.log", format!("hello\n{SPIKE}bye\n"));
    let shown = succeeds(&["info", &log]);
    assert!(shown.contains("  damaged     2 lines\n"), "{shown}");
    assert!(
        shown.contains("line 7, column 1: expected `core`"),
        "{shown}"
    );
    let output = run(&["info", "--strict", &log]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).starts_with("error[HT0106]: "));
    let out = folder.name("out.txt");
    fails(&["info", "--strict", &log, "-o", &out], 3, "HT0106");
    assert_eq!(folder.entries(), ["run.log"]);
}

#[test]
fn a_sidecar_is_found_and_its_program_compared() {
    let folder = Folder::new();
    let log = folder.file("run.pc", "0000000080000000\n");
    fs::copy(RV64, folder.path("a.elf")).unwrap();
    let digest = json(&[RV64])[1]["sha256"].as_str().unwrap().to_owned();
    let sidecar = format!(
        "[trace]\nformat = \"pc\"\n[program]\nelf = [{{ file = \"a.elf\", sha256 = \"{digest}\" }}]\n"
    );
    let sidecar = folder.file("run.pc.toml", sidecar);
    let state = || json(&[&log])[1]["sidecar"]["programs"][0]["state"].clone();
    assert_eq!(state(), "same");
    fs::copy(RV32, folder.path("a.elf")).unwrap();
    assert_eq!(state(), "different");
    fs::remove_file(folder.path("a.elf")).unwrap();
    assert_eq!(state(), "unreadable");
    let value = &json(&[&sidecar])[1];
    assert_eq!(value["type"], "sidecar");
    assert_eq!(value["config"]["format"], "pc");
    folder.file("run.pc.toml", "[trace\n");
    fails(&["info", &log], 1, "HT0201");
}

#[test]
fn json_is_not_read_back() {
    let folder = Folder::new();
    let file = folder.name("a.json");
    let log = format!("json={file}");
    succeeds(&["run", "-q", RV64, "--log", &log, "--max-insns", "10"]);
    for args in [&["info", &file][..], &["log", &file, "--to", "pc"]] {
        let output = run(args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{message}");
        assert!(message.contains("is a JSON log"), "{message}");
        assert!(message.contains("docs/json.md"), "{message}");
    }
}

#[test]
fn unknown_and_empty_files() {
    let folder = Folder::new();
    let empty = folder.file("empty", "");
    assert!(fails(&["info", &empty], 5, "HT0105").contains("is empty"));
    for content in [&b"hello\n"[..], b"\0\0\0\0", b"CC = gcc\n", b"\xff"] {
        let file = folder.file("unknown", content);
        fails(&["info", &file], 5, "HT0105");
    }
}

#[test]
fn compressed_files() {
    let folder = Folder::new();
    for (name, magic, program) in [
        ("a.gz", &b"\x1f\x8b\x08\0\0"[..], "gzip"),
        ("a.xz", b"\xfd7zXZ\0\0", "xz"),
        ("a.zst", b"\x28\xb5\x2f\xfd\0", "zstd"),
    ] {
        let file = folder.file(name, magic);
        let message = fails(&["info", &file], 5, "HT0105");
        let help = format!("`{program} -dc {file} | hartrace info -`");
        assert!(
            message.contains("compressed") && message.contains(&help),
            "{message}"
        );
        let message = fails(&["log", &file, "--to", "pc"], 5, "HT0105");
        assert!(message.contains("| hartrace log -`"), "{message}");
        let message = fails(&["disasm", &file], 5, "HT0101");
        assert!(message.contains(&format!("{program} -d ")), "{message}");
    }
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let output = run(&["info", "none.elf", RV64, "none.log"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr).matches("error[HT0001]").count(), 2);
    assert!(text(&output.stdout).contains(": ELF file\n"));
}

#[test]
fn damaged_elf_files() {
    let folder = Folder::new();
    let whole = fs::read(RV64).unwrap();
    for length in [4, 20, 64, 4000, whole.len() - 1] {
        let file = folder.file("cut.elf", &whole[..length]);
        let message = fails(&["info", &file], 1, "HT0104");
        assert!(message.contains("help: "), "{message}");
        let title = message.lines().next().unwrap();
        assert_eq!(title.matches(": ").count(), 2, "{message}");
    }
}

#[test]
fn progress_is_shown_when_asked_for() {
    let folder = Folder::new();
    let log = folder.file("run.pc", "0000000080000000\n".repeat(200_000));
    assert_eq!(text(&run(&["info", &log]).stderr), "");
    let output = run(&["info", "--progress", "always", &log]);
    assert!(text(&output.stderr).ends_with("3400000 of 3400000 bytes, 100 %\n"));
}
