//! `hartrace log`.

use crate::{Folder, RV64, fails, hartrace, repository, run, succeeds, text};
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

/// At 0x1000: a loop, an ecall, a return; at 0x100c the handler.
const CODE: [u8; 22] = [
    0x01, 0x00, // 1000 nop
    0x7d, 0xfd, // 1002 bnez a0,1000
    0x73, 0x00, 0x00, 0x00, // 1004 ecall
    0x01, 0x00, // 1008 nop
    0x82, 0x80, // 100a ret
    0x01, 0x00, // 100c nop
    0x73, 0x00, 0x20, 0x30, // 100e mret
    0x13, 0x00, 0x00, 0x00, // 1012 nop
];

const SPIKE: &str = "\
core   0: 3 0x0000000080000000 (0x00000297) x5  0x0000000080000000
core   1: 3 0x0000000090000000 (0x00c2b303) x6  0x0000000000000007 mem 0x000000009000000c
core   0: 3 0x0000000080000004 (0x30529073) c773_mtvec 0x0000000080000000
core   1: 0x0000000090000004 (0x00000073) ecall
core   1: exception trap_supervisor_ecall, epc 0x0000000090000004
core   1: 3 0x00000000a0000000 (0x00000013)
";

/// What a run of the code does, listed by a 64- or a 32-bit simulator.
fn pcs(digits: usize, with_trapped: bool) -> String {
    let mut path = [0x1000, 0x1002].repeat(50);
    path.extend([0x1004, 0x100c, 0x100e, 0x1008, 0x100a, 0x1000, 0x1002]);
    path.extend([0x1004, 0x100c, 0x100e, 0x1008, 0x100a, 0x1012]);
    path.retain(|&pc| with_trapped || pc != 0x1004);
    let line = |pc: &u32| format!("{pc:0digits$x}\n");
    path.iter().map(line).collect()
}

fn code(folder: &Folder) -> String {
    folder.file("code.bin", CODE) + "@0x1000"
}

/// The commits of a log are written as they were read; a log without them is
/// refused by name.
#[test]
fn a_log_of_commits_is_written_again() {
    let folder = Folder::new();
    for name in ["timer/timer-rv64gc.elf", "modes/modes-rv64gc.elf"] {
        let elf = repository().join("programs").join(name);
        let elf = elf.to_str().unwrap();
        let names = ["a.log", "b.log", "a.pc", "a.csv"].map(|name| folder.name(name));
        let kinds = ["spike", "spike-traps", "pc", "ingress"];
        let logs = kinds
            .iter()
            .zip(&names)
            .map(|(kind, name)| format!("{kind}={name}"));
        let mut args = vec!["run".to_owned(), "-q".to_owned(), elf.to_owned()];
        args.extend(["--max-insns".to_owned(), "30K".to_owned()]);
        logs.for_each(|log| args.extend(["--log".to_owned(), log]));
        assert_eq!(run(&args).status.code(), Some(0));
        let [commits, traps, pcs, rows] = &names;
        let expected = fs::read_to_string(commits).unwrap();
        for log in [commits, traps] {
            let args = ["log", "-q", log, "-e", elf, "--to", "spike"];
            assert!(succeeds(&args) == expected, "{name} {log}");
        }
        for (log, kind) in [(pcs, "pc list"), (rows, "ingress CSV")] {
            let args = ["log", "-q", log, "-e", elf, "--to", "spike"];
            let message = fails(&args, 1, "HT0114");
            assert!(
                message.contains(&format!("kind of log: {kind}")),
                "{message}"
            );
        }
    }
}

#[test]
fn lists_and_rows_lead_back_to_each_other() {
    let folder = Folder::new();
    let raw = code(&folder);
    let settings = [
        "",
        "[ingress]\nretirement = \"block\"\n",
        "[ingress]\nretirement = \"block\"\nmax_halfwords = 2\nitype_width = 3\n",
        "[ingress]\ntable = \"ntrace-rc7\"\nretires = \"ecall\"\nsijump = false\n",
    ];
    for (digits, isa) in [(16, "rv64gc"), (8, "rv32imac")] {
        for config in settings {
            let file = folder.file("run.toml", config);
            let program = ["--raw", &raw, "--isa", isa, "-c", &file, "-q", "--strict"];
            let log = |input: &str, to: &[&str]| {
                succeeds(&[&["log", input, "--to"], to, &program].concat())
            };
            for trapped in [false, true] {
                let list = pcs(digits, trapped);
                let input = folder.file("run.pc", &list);
                let to_pc: &[&str] = if trapped {
                    &["pc", "--with-trapped"]
                } else {
                    &["pc"]
                };
                assert_eq!(log(&input, to_pc), list);
                // The list has no causes, which the rows have to have.
                let lenient = &program[..program.len() - 1];
                let rows = succeeds(&[&["log", &input, "--to", "ingress"], lenient].concat());
                let rows_file = folder.file("run.csv", &rows);
                assert_eq!(log(&rows_file, to_pc), list, "{rows}");
                assert_eq!(log(&rows_file, &["ingress"]), rows);
            }
        }
    }
}

/// Rows for the E-Trace reference encoder, to the letter: it refuses other
/// columns, and rows in which nothing happens.
#[test]
fn rows_of_the_etrace_reference_flow() {
    let folder = Folder::new();
    let table = "VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n\
                 1,80000000,30200073,3,0,0,0,0\n1,80000100,73,0,1,8,0,0\n\
                 damaged\n1,80000200,1,3,0,0,0,0\n";
    let input = folder.file("a.spike_pc_trace", table);
    let config = "[ingress]\ntable = \"etrace-reference\"\nitype_width = 3\nsijump = false\n\
                  retires = \"ecall-ebreak\"\n";
    let config = folder.file("a.toml", config);
    let args = [
        "log", &input, "--to", "ingress", "-c", &config, "--isa", "rv64gc",
    ];
    let output = run(&args);
    let expected = "itype_0,cause,tval,priv,iaddr_0,context,ctype,iretire_0,ilastsize_0\n\
                    6,0,0,3,80000000,0,0,1,1\n1,8,0,0,80000100,0,0,1,1\n\
                    0,0,0,3,80000200,0,0,1,0\n";
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn what_iretire_counts_is_guessed_aloud() {
    let folder = Folder::new();
    let raw = code(&folder);
    let input = folder.file("run.pc", pcs(16, false));
    let config = folder.file("run.toml", "[ingress]\nretirement = \"block\"\n");
    let program = ["--raw", &raw, "--isa", "rv64gc"];
    let blocks = succeeds(
        &[
            &["log", &input, "--to", "ingress", "-c", &config, "-q"],
            &program[..],
        ]
        .concat(),
    );
    assert!(blocks.lines().count() < 80, "{blocks}");
    let blocks = folder.file("run.csv", blocks);
    let output = run(&[&["log", &blocks, "--to", "pc"], &program[..]].concat());
    assert!(text(&output.stderr).starts_with("warning[HT0401]: "));
    assert_eq!(text(&output.stdout), pcs(16, false));
}

#[test]
fn json_lines() {
    let folder = Folder::new();
    let log = folder.file("spike.log", SPIKE);
    let lines = succeeds(&["log", &log, "--to", "json"]);
    let values: Vec<serde_json::Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(values[0]["schema"], "hartrace-log");
    assert_eq!(values[0]["type"], "header");
    let of = |kind: &str| {
        values
            .iter()
            .filter(|v| v["type"] == kind)
            .collect::<Vec<_>>()
    };
    let (insns, traps) = (of("insn"), of("trap"));
    assert_eq!((insns.len(), traps.len()), (4, 1));
    assert_eq!(insns[0]["pc"], "0x80000000");
    assert_eq!(insns[0]["regs"][0]["name"], "x5");
    let load = insns.iter().find(|v| v["hart"] == 1).unwrap();
    assert_eq!(load["accesses"][0]["address"], "0x9000000c");
    assert_eq!(load["accesses"][0]["bytes"], 8);
    assert!(
        lines.contains("{\"name\":\"mtvec\",\"value\":\"0x80000000\"}"),
        "{lines}"
    );
    assert_eq!(traps[0]["cause"], "exception");
    assert_eq!(traps[0]["code"], 9);
    assert_eq!(traps[0]["handler"], "0xa0000000");
    // A list of pcs does not tell modes.
    let raw = code(&folder);
    let list = folder.file("run.pc", "0x1000\n0x1002\n");
    let list = [
        "log", &list, "--raw", &raw, "--isa", "rv64gc", "--to", "json",
    ];
    assert!(!succeeds(&list).contains("mode"));
}

#[test]
fn one_hart_of_several() {
    let folder = Folder::new();
    let log = folder.file("spike.log", SPIKE);
    let message = fails(
        &["log", &log, "--to", "pc", "-o", &folder.name("out")],
        2,
        "HT0305",
    );
    assert!(message.contains("several harts: 0, 1"), "{message}");
    fails(
        &[
            "log",
            &log,
            "--to",
            "ingress",
            "--hart",
            "7",
            "-o",
            &folder.name("out"),
        ],
        2,
        "HT0305",
    );
    assert_eq!(folder.entries(), ["spike.log"]);
    let zero = succeeds(&["log", &log, "--to", "pc", "--hart", "0"]);
    assert_eq!(zero, "0000000080000000\n0000000080000004\n");
    let one = succeeds(&["log", &log, "--to", "pc", "--hart", "1", "--with-trapped"]);
    assert_eq!(
        one,
        "0000000090000000\n0000000090000004\n00000000a0000000\n"
    );
    let json = succeeds(&["log", &log, "--to", "json", "--hart", "1"]);
    assert!(!json.contains("\"hart\":0"), "{json}");
    // Talk before the first line of a hart is not another hart.
    let log = folder.file(
        "other.log",
        format!("hello\n{}", SPIKE.replace("core   0", "core   1")),
    );
    let output = run(&["log", &log, "--to", "pc"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn the_width_of_a_spike_log_without_a_program() {
    let folder = Folder::new();
    let log = folder.file("spike.log", "core   0: 3 0x80000000 (0x00000013)\n");
    assert_eq!(succeeds(&["log", &log, "--to", "pc"]), "80000000\n");
}

#[test]
fn damaged_lines_are_named() {
    let folder = Folder::new();
    let raw = code(&folder);
    let program = ["--raw", &raw, "--isa", "rv64gc", "--to", "pc"];
    let log = folder.file("run.pc", format!("{}5000\nhello\n", pcs(16, false)));
    let log = [&["log", &log], &program[..]].concat();
    let output = run(&log);
    let message = text(&output.stderr);
    assert!(message.starts_with("warning[HT0106]: "), "{message}");
    assert!(message.contains("2 of 113 lines"), "{message}");
    assert!(
        message.contains("line 112, column 1: no code at 0x5000"),
        "{message}"
    );
    assert!(message.contains("found `hello`"), "{message}");
    assert_eq!(text(&output.stdout), pcs(16, false));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(succeeds(&[&log[..], &["-q"]].concat()), pcs(16, false));

    let out = folder.name("out.pc");
    fails(&[&log[..], &["--strict", "-o", &out]].concat(), 3, "HT0106");
    let wrong = folder.file("wrong.pc", "80000000\n80000004\n".repeat(10));
    let wrong = [&["log", &wrong], &program[..], &["-o", &out]].concat();
    let message = fails(&wrong, 5, "HT0109");
    assert!(
        message.contains("20 of 20 lines") && message.contains("and 15 more"),
        "{message}"
    );
    assert_eq!(folder.entries(), ["code.bin", "run.pc", "wrong.pc"]);
}

#[test]
fn another_program_is_noticed() {
    let folder = Folder::new();
    let raw = code(&folder);
    let program = ["--raw", &raw, "--isa", "rv64gc"];
    let list = format!("{}hello\n", "0x1000\n0x1008\n".repeat(50));
    let log = folder.file("run.pc", list);
    let out = folder.name("out");
    for command in [&["info", &log][..], &["log", &log, "--to", "pc"]] {
        let args = [command, &program].concat();
        let output = run(&args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(message.starts_with("warning[HT0110]: "), "{message}");
        assert!(message.contains("99 of 199 steps"), "{message}");
        let strict = [&args[..], &["--strict", "-o", &out]].concat();
        fails(&strict, 3, "HT0110");
        // A few are interrupts.
        let few = folder.file("few.pc", "0x1000\n0x1008\n".repeat(9));
        let few = [&[command[0], &few], &command[2..], &program].concat();
        succeeds(&few);
    }
    assert_eq!(folder.entries(), ["code.bin", "few.pc", "run.pc"]);
}

#[test]
fn modes_and_causes_that_a_list_does_not_tell() {
    let folder = Folder::new();
    let raw = code(&folder);
    let program = ["--raw", &raw, "--isa", "rv64gc"];
    let list = folder.file("run.pc", "0x1002\n0x1004\n0x100c\n0x100e\n");
    let rows = [&["log", &list, "--to", "ingress"], &program[..]].concat();
    let output = run(&rows);
    let message = text(&output.stderr);
    assert!(message.starts_with("warning[HT0402]: "), "{message}");
    assert!(message.contains("mode M is assumed"), "{message}");
    assert_eq!(output.status.code(), Some(0));
    for (mode, privilege, cause) in [("u", 0, 8), ("s", 1, 9), ("m", 3, 11)] {
        let shown = succeeds(&[&rows[..], &["--mode", mode]].concat());
        let trap = format!("\n1,{cause},0,{privilege},1004,0,");
        assert!(shown.contains(&trap), "{shown}");
        assert_eq!(shown == text(&output.stdout), mode == "m");
    }
    let json = [&["log", &list, "--to", "json"], &program[..]].concat();
    let shown = succeeds(&[&json[..], &["--mode", "u"]].concat());
    assert!(shown.contains("\"code\":8") && shown.contains("\"mode\":\"U\""));
    // Nothing tells why.
    let list = folder.file("run.pc", "0x1000\n0x100c\n0x100e\n");
    let rows = [&["log", &list, "--to", "ingress"], &program[..]].concat();
    let message = run(&[&rows[..], &["--mode", "u"]].concat()).stderr;
    assert!(text(&message).contains("does not record the cause of 1 trap"));
    assert!(text(&message).contains("exception 0 is written"));
    let message = run(&rows).stderr;
    assert!(text(&message).contains("does not record the cause of 1 trap"));
    assert!(text(&message).contains("mode M is assumed"));
    // A log that tells them is believed.
    let log = folder.file("spike.log", SPIKE);
    let rows = ["log", &log, "--to", "ingress", "--hart", "0"];
    let told = succeeds(&rows);
    assert_eq!(succeeds(&[&rows[..], &["--mode", "u"]].concat()), told);
}

#[test]
fn a_loss_is_kept_in_rows() {
    let folder = Folder::new();
    let raw = code(&folder);
    let log = folder.file("run.pc", "0x1000\nhello\n0x100a\n0x1012\n0x1000\n");
    let to =
        |input: &str, to: &str| run(&["log", input, "--raw", &raw, "--isa", "rv64gc", "--to", to]);
    let rows = to(&log, "ingress");
    let rows = folder.file("run.csv", &rows.stdout);
    let back = to(&rows, "json");
    assert_eq!(text(&back.stderr), "");
    assert!(text(&back.stdout).contains("\"signal\":\"lost\""));
}

#[test]
fn the_sidecar_names_the_program() {
    let folder = Folder::new();
    fs::copy(RV64, folder.path("a.elf")).unwrap();
    let list = "0000000080000000\n0000000080000004\n";
    let log = folder.file("run.pc", list);
    fails(&["log", &log, "--to", "pc"], 2, "HT0304");
    let sidecar = "[trace]\nformat = \"pc\"\n[program]\nelf = [\"a.elf\"]\n";
    folder.file("run.pc.toml", sidecar);
    assert_eq!(succeeds(&["log", &log, "--to", "pc"]), list);
    let hash = format!("{{ file = \"a.elf\", sha256 = \"{}\" }}", "0".repeat(64));
    folder.file("run.pc.toml", sidecar.replace("\"a.elf\"", &hash));
    fails(&["log", &log, "--to", "pc"], 1, "HT0205");
    fails(&["log", &log, "--to", "pc", "-e", RV64], 1, "HT0205");
}

#[test]
fn standard_input_to_standard_output() {
    let mut child = hartrace()
        .args(["log", "-", "--to", "pc", "--hart", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(SPIKE.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 2);
}

#[test]
fn what_is_no_log() {
    let folder = Folder::new();
    let list = folder.file("run.pc", "0000000080000000\n0000000080000004\n");
    let out = folder.name("out");
    let log = |input: &str, elf: &str, exit, code: &str| {
        fails(
            &["log", input, "-e", elf, "--to", "pc", "-o", &out],
            exit,
            code,
        )
    };
    assert!(log(&list, &list, 5, "HT0101").contains("pc list"));
    assert!(log(RV64, RV64, 5, "HT0108").contains("ELF file"));
    assert!(log(RV64, &list, 5, "HT0101").contains("pc list"));
    let config = folder.file("run.toml", "[ingress]\nctype = 1\n");
    assert!(log(&config, RV64, 5, "HT0108").contains("configuration"));
    let empty = folder.file("empty", "");
    assert!(log(&empty, RV64, 5, "HT0105").contains("is empty"));
    let garbage: Vec<u8> = (0..100_000u32)
        .map(|i| (i.wrapping_mul(i) >> 3) as u8)
        .collect();
    log(&folder.file("garbage", &garbage), RV64, 5, "HT0105");
    // Garbage behind a good start: refused line by line.
    let mixed = [
        b"0000000080000000\n0000000080000004\n".repeat(3000),
        garbage,
    ]
    .concat();
    let mixed = folder.file("mixed", mixed);
    let output = run(&["log", &mixed, "-e", RV64, "--to", "pc"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("line 6001, column"));
    assert!(!text(&output.stderr).contains('\x1b'));
    log(&folder.name(""), RV64, 1, "HT0002");
    log(&list, &folder.name(""), 1, "HT0002");
    log("none.pc", RV64, 1, "HT0001");
    assert!(!folder.entries().contains(&"out".to_owned()));
}

#[test]
fn where_it_cannot_be_written() {
    let folder = Folder::new();
    let list = folder.file("run.pc", "0000000080000000\n");
    let log = |out: &str, exit, code: &str| {
        fails(
            &["log", &list, "-e", RV64, "--to", "pc", "-o", out],
            exit,
            code,
        );
    };
    log(&list, 2, "HT0007");
    log(&folder.name("none/out"), 1, "HT0005");
    log(&folder.name(""), 1, "HT0005");
    #[cfg(target_os = "linux")]
    log("/dev/full", 1, "HT0006");
    assert_eq!(fs::read_to_string(&list).unwrap(), "0000000080000000\n");
}

#[test]
fn a_program_that_is_not_linked() {
    let folder = Folder::new();
    let mut bytes = fs::read(RV64).unwrap();
    bytes[56..58].fill(0); // e_phnum
    let elf = folder.file("a.o", bytes);
    let list = folder.file("run.pc", "0000000080000000\n");
    fails(&["log", &list, "-e", &elf, "--to", "pc"], 5, "HT0107");
    succeeds(&["disasm", &elf]);
}

#[test]
fn flags_that_do_not_go_together() {
    let output = run(&["log", "x", "--to", "json", "--with-trapped"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: --with-trapped requires --to pc"));
    for args in [
        &["log", "x"][..],
        &["log", "x", "--to", "xml"],
        &["log", "--to", "pc"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn progress_is_shown_when_asked_for() {
    let folder = Folder::new();
    let log = folder.file("run.pc", "0000000080000000\n".repeat(100_000));
    let out = folder.name("out");
    let args = ["log", &log, "-e", RV64, "--to", "pc", "-o", &out, "-q"];
    assert_eq!(text(&run(&args).stderr), "");
    let output = run(&[&args[..8], &["--progress", "always"]].concat());
    assert!(text(&output.stderr).contains("1700000 of 1700000 bytes, 100 %\n"));
}
