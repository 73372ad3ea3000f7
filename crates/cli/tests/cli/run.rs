//! Programs on the built-in hart.

use crate::tiny::{
    self, BACK, ECALL, MRET, SPIN, WFI, addi, auipc, calling, clear, ending, jump, lui, set_handler,
};
use crate::{Folder, RV32, RV64, hartrace, repository, run, succeeds, text};
use hartrace_testkit::asm::{jal, jalr};
use std::fs;
use std::process::Output;

/// Runs, with this exit code; what was said on stderr.
#[track_caller]
fn ends(args: &[&str], exit: i32) -> String {
    let output = run(args);
    let message = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(exit), "{message}");
    assert!(
        !message.contains("panicked") && !message.contains('\x1b'),
        "{message}"
    );
    message
}

#[track_caller]
fn has(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[test]
fn programs_of_both_widths() {
    for file in [RV64, RV32] {
        let output = run(&["run", file]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(text(&output.stdout), "");
        let message = text(&output.stderr);
        has(
            message,
            &[
                " instructions, ",
                " cycles in ",
                " M/s); the program ended with code 0\n",
            ],
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        succeeds(&["run", "-q", file]);
        succeeds(&["run", "-q", file, "--machine", "spike"]);
    }
}

#[test]
fn the_same_instructions_every_time() {
    let count = |args: &[&str]| {
        let message = ends(args, 0);
        message.split(" cycles").next().unwrap().to_owned()
    };
    let first = count(&["run", RV64]);
    assert_eq!(count(&["run", RV64]), first);
    let folder = Folder::new();
    assert_eq!(
        count(&["run", RV64, "--log", &format!("pc={}", folder.name("a.pc"))]),
        first
    );
}

#[test]
fn what_the_program_says_and_ends_with() {
    let folder = Folder::new();
    for (code, words) in [(3, "code 3"), (-1, "code -1")] {
        let file = folder.file("a.elf", ending(code));
        let message = ends(&["run", &file], 10);
        has(
            &message,
            &[
                "error[HT0501]: the program reported failure",
                words,
                " M/s); ",
            ],
        );
        let message = ends(&["run", "-q", &file], 10);
        assert!(message.starts_with("error[HT0501]"), "{message}");
    }
    let file = folder.file("a.elf", ending(0));
    succeeds(&["run", "-q", &file]);
    let file = folder.file("a.elf", calling(4, b"hello\n\0", &[SPIN]));
    let output = run(&["run", &file]);
    assert_eq!(text(&output.stdout), "hello\n");
    has(text(&output.stderr), &["the hart spins at 0x80000018"]);
}

#[test]
fn the_end_can_be_near() {
    for (typed, shown) in [
        ("1000", "1 000"),
        ("2k", "2 000"),
        ("0x10", "16"),
        ("1_0", "10"),
    ] {
        let message = ends(&["run", RV64, "--max-insns", typed], 0);
        has(
            &message,
            &[
                &format!("{shown} instructions"),
                "the instruction limit was reached at 0x80",
            ],
        );
    }
    let message = ends(&["run", RV64, "--max-insns", "0"], 0);
    has(&message, &["0 instructions", "0x80000000 <_start>"]);
    let folder = Folder::new();
    let config = folder.file("a.toml", "[hart]\nmax_insns = \"1K\"\n");
    has(
        &ends(&["run", RV64, "-c", &config], 0),
        &["1 000 instructions"],
    );
}

fn pcs(file: &str, of: &str) -> String {
    succeeds(&["log", file, "-e", of, "--to", "pc"])
}

#[test]
fn logs_tell_the_same_run() {
    for (file, machine) in [(RV64, "virt"), (RV32, "virt"), (RV64, "spike")] {
        let folder = Folder::new();
        let log = |kind: &str| format!("{kind}={}", folder.name(kind));
        let kinds = ["pc", "spike", "spike-traps", "ingress", "json"];
        let specs = kinds.map(log);
        let mut args = vec!["run", "-q", file, "--machine", machine];
        specs.iter().for_each(|spec| args.extend(["--log", spec]));
        succeeds(&args);
        let whole = fs::read_to_string(folder.path("pc")).unwrap();
        let list = match machine {
            // The boot code is not in the program.
            "spike" => whole.splitn(6, '\n').last().unwrap(),
            _ => whole.as_str(),
        };
        assert!(list.lines().count() > 40_000);
        for kind in ["spike", "spike-traps"] {
            let name = folder.name(kind);
            assert_eq!(succeeds(&["log", &name, "--to", "pc"]), whole, "{kind}");
        }
        if machine == "virt" {
            assert_eq!(pcs(&folder.name("ingress"), file), list);
        }
        let json = fs::read_to_string(folder.path("json")).unwrap();
        let mut lines = json
            .lines()
            .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
        assert_eq!(lines.next().unwrap()["schema"], "hartrace-log");
        let insns = lines.filter(|line| line["type"] == "insn");
        assert_eq!(insns.count(), whole.lines().count());
        // Alone each is the same as among others.
        for kind in kinds {
            let alone = format!("{kind}={}", folder.name("alone"));
            succeeds(&["run", "-q", file, "--machine", machine, "--log", &alone]);
            let alone = fs::read(folder.path("alone")).unwrap();
            assert!(alone == fs::read(folder.path(kind)).unwrap(), "{kind}");
        }
    }
}

#[test]
fn trapped_instructions_if_asked_for() {
    let folder = Folder::new();
    // The handler behind the ecall skips it.
    let words = [
        auipc(5),
        addi(5, 5, 20),
        set_handler(5),
        ECALL,
        SPIN,
        0x3410_2373,
        addi(6, 6, 4),
        0x3413_1073,
        MRET,
    ];
    let file = folder.file("a.elf", tiny::elf(&words));
    let list = succeeds(&["run", "-q", &file, "--log", "pc=-"]);
    let more = succeeds(&["run", "-q", &file, "--log", "pc=-", "--with-trapped"]);
    assert!(!list.contains("8000000c"), "{list}");
    assert_eq!(more.lines().nth(3), Some("000000008000000c"));
    let message = ends(&["run", &file, "--with-trapped"], 2);
    has(&message, &["--with-trapped requires --log pc=FILE"]);
}

#[test]
fn a_log_on_stdout_has_it_for_itself() {
    let folder = Folder::new();
    let file = folder.file("a.elf", calling(4, b"hello\n\0", &[SPIN]));
    let output = run(&["run", "-q", &file, "--log", "pc=-"]);
    assert!(text(&output.stdout).starts_with("0000000080000000\n0000000080000004\n"));
    assert_eq!(text(&output.stderr), "hello\n");
}

#[test]
fn wrong_flags() {
    let same = ["run", RV64, "--log", "pc=a", "--log", "spike=a"];
    let spelled = ["run", RV64, "--log", "pc=a", "--log", "spike=./a"];
    let beside = ["run", RV64, "--trace", "etrace=a", "--log", "pc=a.toml"];
    for (args, words) in [
        (&["run", RV64, "--log", "pc"][..], "write --log pc=FILE"),
        (&["run", RV64, "--log", "pc="], "write --log pc=FILE"),
        (
            &["run", RV64, "--log", "pcs=a"],
            "the kinds are pc, spike, spike-traps, ingress, json",
        ),
        (&["run", RV64, "--max-insns", "many"], "10M"),
        (
            &["run", RV64, "--memory", "0x80000000"],
            "BASE:SIZE, such as 0x80000000:256M",
        ),
        (&["run", RV64, "--machine", "qemu"], "virt"),
        (&["run", RV64, "--files", "ro"], "none, ro:DIR or rw:DIR"),
        (&same, "two logs or traces have the same file name"),
        (&spelled, "two logs or traces have the same file name"),
        (&beside, "or one has the name of another's sidecar"),
        (&["run"], "HT0304"),
        (&["run", RV64, "--isa", "rv32gc"], "HT0303"),
        (&["run", RV64, "--isa", "rv64gq"], "HT0306"),
        (&["run", RV64, "--isa", "rv64gc_zbaa"], "HT0301"),
        (&["run", RV64, "--entry", "nowhere"], "HT0308"),
        (&["run", RV64, "--entry", "0x80000001"], "HT0308"),
        (&["run", RV64, "--memory", "0x80000000:100"], "HT0307"),
        (&["run", RV64, "--memory", "0x2000000:64K"], "HT0307"),
        (
            &["run", RV64, "--memory", "0x0:64K", "--machine", "spike"],
            "HT0307",
        ),
    ] {
        has(&ends(args, 2), &[words]);
    }
    has(
        &ends(&["run", RV64, "--memory", "0x80000000:1000T"], 1),
        &["HT0507"],
    );
    let folder = Folder::new();
    let config = folder.file("a.toml", "\n[hart]\nmemory = [\"0x0:64M\"]\n");
    let message = ends(&["run", RV64, "-c", &config], 2);
    has(&message, &["HT0307", "the CLINT is at", "a.toml:3"]);
    let twice = ["--memory", "0x80000000:8K", "--memory", "0x80001000:8K"];
    let message = ends(&[&["run", RV64][..], &twice].concat(), 2);
    assert!(!message.contains("CLINT"), "{message}");
    has(
        &ends(&["run", RV64, "--files", "ro:/no/such"], 1),
        &["HT0001", "/no/such"],
    );
}

#[test]
fn files_that_are_no_programs_for_it() {
    let folder = Folder::new();
    let whole = tiny::elf(&[SPIN]);
    let changed = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        bytes
    };
    for (bytes, code) in [
        (b"hello".to_vec(), "HT0101"),
        (changed(18, 62), "HT0102"),
        (changed(5, 2), "HT0103"),
        (whole[..100].to_vec(), "HT0104"),
        // An object file, nothing to load, a program interpreter.
        (changed(16, 1), "HT0107"),
        (changed(64, 4), "HT0107"),
        (changed(64, 3), "HT0506"),
    ] {
        let file = folder.file("a.elf", bytes);
        let log = format!("pc={}", folder.name("a.pc"));
        let exit = if code == "HT0104" { 1 } else { 5 };
        let message = ends(&["run", &file, "--log", &log], exit);
        assert!(
            message.starts_with(&format!("error[{code}]")),
            "{code}: {message}"
        );
        assert_eq!(folder.entries(), ["a.elf"]);
    }
    has(&ends(&["run", "/no/such.elf"], 1), &["HT0001"]);
}

/// A program for Linux is not told to add memory first.
#[test]
fn programs_for_an_operating_system() {
    let folder = Folder::new();
    let code = tiny::code(&[ECALL, SPIN]);
    let low = tiny::elf_at(0x10000, &code);
    let mut abi = tiny::elf_at(0x4000_0000, &code);
    abi[7] = 3;
    let mut dynamic = tiny::elf(&[SPIN]);
    dynamic[64] = 3;
    for (bytes, why) in [
        (&low, "it is linked to 0x10000"),
        (&abi, "names the ABI of GNU/Linux"),
        (&dynamic, "names a program interpreter"),
    ] {
        let file = folder.file("a.elf", bytes);
        let message = ends(&["run", &file], 5);
        let words = ["error[HT0506]: ", "looks like a Linux user program", why];
        has(&message, &words);
        has(&message, &["bare metal", "hartrace encode"]);
    }
    // One that is bare metal is run where it has memory.
    let file = folder.file("a.elf", &low);
    let args = ["run", &file, "--memory", "0x10000:1M", "--max-insns", "1"];
    assert_eq!(run(&args).status.code(), Some(10));
}

#[test]
fn programs_outside_memory() {
    let folder = Folder::new();
    let file = folder.file("a.elf", tiny::elf_at(0x2000_0000, &tiny::code(&[SPIN])));
    let message = ends(&["run", &file], 1);
    has(
        &message,
        &["HT0504", "0x20000000-0x20000003", "--memory 0x20000000:1M"],
    );
    // What is advised is possible: the boot ROM makes room for RAM.
    let low = folder.file("low.elf", tiny::elf_at(0, &tiny::code(&[SPIN])));
    let message = ends(&["run", &low], 1);
    has(&message, &["HT0504", "--memory 0x0:1M"]);
    let message = ends(&["run", &low, "--memory", "0x0:1M"], 0);
    has(&message, &["spins at 0x0"]);
    let clint = folder.file("b.elf", tiny::elf_at(0x200_0000, &tiny::code(&[SPIN])));
    let message = ends(&["run", &clint], 1);
    has(&message, &["HT0504", "the CLINT is at 0x2000000"]);
    let message = ends(&["run", &file, "--memory", "0x20000000:1M"], 0);
    has(&message, &["spins at 0x20000000"]);
    has(
        &ends(&["run", RV64, "--entry", "0x10"], 1),
        &["HT0505", "0x10"],
    );
    let message = ends(&["run", RV64, "--entry", "main", "--max-insns", "1"], 0);
    has(&message, &["1 instruction, "]);
}

/// What is said of a program that traps for ever, or sleeps.
#[track_caller]
fn stuck(words: &[u32], code: &str) -> String {
    let folder = Folder::new();
    let file = folder.file("a.elf", tiny::elf(words));
    let log = format!("pc={}", folder.name("a.pc"));
    let message = ends(&["run", &file, "--log", &log], 10);
    has(&message, &[&format!("error[{code}]: "), " cycles in "]);
    // What happened is in the log all the same.
    assert!(fs::metadata(folder.path("a.pc")).unwrap().len() > 0);
    message
}

#[test]
fn programs_that_get_stuck() {
    let message = stuck(&[lui(5, 0x1234), jump(5)], "HT0502");
    has(
        &message,
        &[
            "instruction access fault at 0x1234000",
            "a jump to a wrong address",
            "mtvec",
        ],
    );
    let message = stuck(&[lui(5, 1), clear(5)], "HT0502");
    has(
        &message,
        &[
            "store access fault at 0x80000004",
            "0x1000 is in the boot ROM",
        ],
    );
    let message = stuck(&[lui(5, 0x10000), addi(5, 5, 0x14), clear(5)], "HT0502");
    has(
        &message,
        &[
            "store access fault at 0x80000008",
            "UART",
            "eight one-byte registers",
        ],
    );
    let message = stuck(&[addi(0, 0, 0), 0xabcd_000b], "HT0502");
    has(
        &message,
        &["illegal instruction at 0x80000004", "0xabcd000b", "--isa"],
    );
    // A handler that returns to where it came from.
    let words = [
        auipc(5),
        addi(5, 5, 20),
        set_handler(5),
        0xabcd_000b,
        SPIN,
        MRET,
    ];
    let message = stuck(&words, "HT0502");
    has(
        &message,
        &[
            "illegal instruction at 0x8000000c",
            "the same trap occurs again",
        ],
    );
    // A handler that traps itself.
    let words = [
        auipc(5),
        addi(5, 5, 20),
        set_handler(5),
        ECALL,
        SPIN,
        0xabcd_000b,
    ];
    let message = stuck(&words, "HT0502");
    has(&message, &["environment call from M-mode at 0x8000000c"]);
    has(
        &message,
        &["the handler 0x80000014 itself traps: illegal instruction at 0x80000014"],
    );
    // The same further on in the handler.
    let words = [
        auipc(5),
        addi(5, 5, 20),
        set_handler(5),
        ECALL,
        SPIN,
        addi(0, 0, 0),
        clear(0),
        MRET,
    ];
    let message = stuck(&words, "HT0502");
    has(&message, &["environment call from M-mode at 0x8000000c"]);
    has(
        &message,
        &["the handler 0x80000014 itself traps: store access fault at 0x80000018"],
    );
    let message = stuck(&[addi(2, 0, -16), clear(2)], "HT0502");
    has(
        &message,
        &["near sp (0xfffffffffffffff0)", "the stack overflowed"],
    );
    let message = stuck(&[addi(0, 0, 0), clear(0)], "HT0502");
    has(
        &message,
        &["0x0 cannot be stored to: probably a null pointer"],
    );
    let message = stuck(&[addi(0, 0, 0), 0], "HT0502");
    has(&message, &["the instruction is 0: "]);
    // An atomic access that is not aligned: amoadd.w x0, x0, (x5).
    let message = stuck(&[auipc(5), addi(5, 5, 1), 0x0002_a02f], "HT0502");
    has(&message, &["0x80000001 is in memory", "is misaligned"]);
    let message = stuck(&[addi(0, 0, 0), WFI], "HT0503");
    has(&message, &["0x80000008", "mtimecmp"]);
}

/// A call through a null pointer: how the program came there, and the records.
#[test]
fn a_run_that_dies_shows_its_last_jumps_and_calls() {
    // call 0x80000008; spin; call through x6, which is 0.
    let words = [jal(1, 8), SPIN, addi(6, 0, 0), jalr(1, 6, 0)];
    let message = stuck(&words, "HT0502");
    let expected = [
        "instruction access fault at 0x0",
        "a call or jump through a null pointer, probably",
        "the last jumps before the exception:",
        "direct call    0x80000000 -> 0x80000008",
        "indirect call  0x8000000c -> 0x0",
        "exception      0x0 -> 0x0",
        "the call stack, innermost first:",
        "instruction access fault at 0x0\n",
        "called at 0x8000000c\n",
        "called at 0x80000000\n",
    ];
    has(&message, &expected);
    let folder = Folder::new();
    let file = folder.file("a.elf", tiny::elf(&words));
    let to = format!("ctr={}", folder.name("a.ctr"));
    ends(&["run", "-q", &file, "--trace", &to], 10);
    let table = succeeds(&["ctr", &folder.name("a.ctr")]);
    has(
        &table,
        &["indirect call ", "it went to address 0: a null pointer"],
    );
    assert!(!table.contains("recorded"), "{table}");
    // The trap does not push the jumps out of the records.
    assert!(table.lines().count() < 10, "{table}");
    let json = succeeds(&["ctr", &folder.name("a.ctr"), "-f", "json"]);
    has(&json, &["\"from\":\"0x8000000c\",\"to\":\"0x0\""]);
    // Its trace says what was done, though N-Trace has no message for a trap after
    // which nothing retires.
    for format in ["ntrace", "etrace", "tandem"] {
        let to = format!("{format}={}", folder.name(format));
        let message = ends(&["run", &file, "--trace", &to, "--check"], 10);
        has(&message, &["decoded and equal", "error[HT0502]"]);
    }
}

/// With lines, of a program that reports failure in its trap handler.
#[test]
fn a_program_that_fails_shows_its_calls_with_lines() {
    // _start of this program is its own; main calls through the table.
    let elf = repository().join("programs/sieve/sieve-rv64gc.elf");
    let elf = elf.to_str().unwrap();
    // From here on everything is 0 but the pc: the stack is not there.
    let message = ends(&["run", elf, "--entry", "main"], 10);
    has(&message, &["error[HT050", "the last jumps", "main"]);
    has(&message, &["sieve.c:"]);
}

/// A limit that ends an endless row of traps is no success.
#[test]
fn a_limit_in_a_loop_of_traps() {
    let words = [
        auipc(5),
        addi(5, 5, 20),
        set_handler(5),
        0xabcd_000b,
        SPIN,
        MRET,
    ];
    let folder = Folder::new();
    let file = folder.file("a.elf", tiny::elf(&words));
    let message = ends(&["run", &file, "--max-insns", "1000"], 10);
    has(
        &message,
        &["error[HT0502]", "illegal instruction at 0x8000000c"],
    );
    // Not where the program goes on.
    let message = ends(&["run", &file, "--max-insns", "10"], 0);
    has(&message, &["limit was reached"]);
}

#[test]
fn programs_that_cannot_end() {
    let folder = Folder::new();
    let file = folder.file("a.elf", tiny::elf(&[addi(0, 0, 0), SPIN]));
    let message = ends(&["run", &file], 0);
    has(
        &message,
        &[
            "the hart spins at 0x80000004",
            "warning[HT0405]",
            "`tohost`",
        ],
    );
    succeeds(&["run", "-q", &file]);
    let file = folder.file("a.elf", tiny::elf(&[addi(0, 0, 0), BACK]));
    let message = ends(&["run", &file, "--max-insns", "1M"], 0);
    has(
        &message,
        &["the instruction limit was reached", "warning[HT0405]"],
    );
    // Semihosting is a way out, where it is served.
    let file = folder.file("a.elf", ending(0));
    assert!(!ends(&["run", &file, "--max-insns", "3"], 0).contains("HT0405"));
    let message = ends(&["run", &file, "--max-insns", "3", "--machine", "spike"], 0);
    has(&message, &["HT0405", "--machine virt"]);
    let config = folder.file("a.toml", "[hart]\nsemihosting = false\n");
    let message = ends(&["run", &file, "--max-insns", "3", "-c", &config], 0);
    has(&message, &["HT0405", "semihosting = true"]);
}

#[test]
fn what_the_host_does_not_do_is_told() {
    let folder = Folder::new();
    let file = folder.file("a.elf", calling(0x77, &[], &[SPIN]));
    has(&ends(&["run", &file], 0), &["warning[HT0406]", "0x77"]);
}

#[test]
fn extensions_the_hart_lacks() {
    let output = run(&[
        "run",
        RV64,
        "--isa",
        "rv64ima_zicsr_zifencei",
        "--max-insns",
        "5",
    ]);
    let message = text(&output.stderr);
    has(message, &["warning[HT0407]", "c"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn settings_of_a_run() {
    let folder = Folder::new();
    let config = folder.file(
        "a.toml",
        "[hart]\nmisaligned = false\nmemory = \"0x80000000:16M\"\n\n[hart.cost]\nload = 9\n",
    );
    let args = [
        "config",
        "show",
        "run",
        RV64,
        "-c",
        &config,
        "--max-insns",
        "1M",
    ];
    let shown = succeeds(&args);
    for (value, origin) in [
        ("elf = ", "PROG".to_owned()),
        ("isa = \"rv64", "default".to_owned()),
        ("machine = \"virt\"", "default".to_owned()),
        ("memory = [\"0x80000000:16M\"]", format!("{config}:3")),
        ("misaligned = false", format!("{config}:2")),
        ("max_insns = 1000000", "--max-insns".to_owned()),
        ("load = 9", format!("{config}:6")),
        ("store = 1", "default".to_owned()),
    ] {
        let line = shown.lines().find(|l| l.starts_with(value)).expect(value);
        assert!(line.ends_with(&format!("# {origin}")), "{line}");
    }
    // What is shown is the run.
    let file = folder.file("shown.toml", &shown);
    let cycles = |args: &[&str]| {
        let message = ends(args, 0);
        message.split(" in ").next().unwrap().to_owned()
    };
    assert_eq!(
        cycles(&["run", "-c", &file]),
        cycles(&["run", RV64, "-c", &config])
    );
    assert_ne!(cycles(&["run", "-c", &file]), cycles(&["run", RV64]));
    assert!(succeeds(&["config", "show"]).contains("[hart.cost]\ninteger = 1"));
}

#[cfg(unix)]
fn shell(command: &str) -> Output {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_hartrace"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", command])
        .env("PATH", path)
        .output()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn pipes_and_descriptors() {
    let folder = Folder::new();
    let fifo = folder.name("fifo");
    let command =
        format!("mkfifo {fifo} && (hartrace run -q {RV64} --log pc={fifo} & wc -l < {fifo}; wait)");
    let output = shell(&command);
    let lines = text(&output.stdout).trim().parse::<u64>().unwrap();
    assert!(lines > 40_000 && output.stderr.is_empty());
    assert_eq!(folder.entries(), ["fifo"]);
    let output = shell(&format!(
        "hartrace run -q {RV64} --log pc=/dev/fd/3 3>&1 | head -1"
    ));
    assert_eq!(text(&output.stdout), "0000000080000000\n");
    assert_eq!(text(&output.stderr), "");
    // A program that writes for ever to nobody.
    let file = folder.file("a.elf", calling(4, b"hello\n\0", &[0xfe9f_f06f]));
    let output = shell(&format!("hartrace run -q {file} | head -1"));
    assert_eq!(text(&output.stdout), "hello\n");
    assert_eq!(text(&output.stderr), "");
    // A log that nobody reads any more does not cut the others short.
    let file = folder.file("a.elf", tiny::elf(&[addi(0, 0, 0), BACK]));
    let whole = folder.name("a.pc");
    let output = shell(&format!(
        "hartrace run {file} --max-insns 1200k --log pc=- --log pc={whole} | head -1"
    ));
    has(
        text(&output.stderr),
        &[
            "1 200 000 instructions, ",
            "the instruction limit was reached",
        ],
    );
    assert_eq!(fs::metadata(&whole).unwrap().len(), 1_200_000 * 17);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let folder = Folder::new();
    let file = folder.file("a.elf", calling(4, b"hello\n\0", &[SPIN]));
    let output = shell(&format!("hartrace run {file} > /dev/full"));
    has(text(&output.stderr), &["error[HT0006]"]);
    assert_eq!(output.status.code(), Some(1));
    let output = shell(&format!("hartrace run {RV64} --log pc=/dev/full"));
    has(text(&output.stderr), &["error[HT0006]"]);
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_keeps_its_logs() {
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    if crate::signals::ignores_signals() {
        return;
    }
    let folder = Folder::new();
    // Waits for a character, and then goes round for ever.
    let file = folder.file("a.elf", calling(7, &[], &[addi(0, 0, 0), BACK]));
    let mut child = hartrace()
        .args([
            "run",
            &file,
            "--log",
            &format!("pc={}", folder.name("a.pc")),
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(crate::signals::wait_until(|| folder.entries().len() > 1));
    let pid = child.id().to_string();
    // The program may not wait yet; it makes no difference.
    // Some senders send twice at once: that is one wish.
    for _ in 0..2 {
        let kill = Command::new("kill").args(["-s", "INT", &pid]).status();
        assert!(kill.is_ok());
    }
    let mut code = None;
    let ended = crate::signals::wait_until(|| {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    if !ended {
        child.kill().unwrap();
    }
    let mut talk = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut talk)
        .unwrap();
    assert_eq!(code.and_then(|c| c.code()), Some(1), "{talk}");
    has(&talk, &["interrupted at 0x800000"]);
    let list = fs::read_to_string(folder.path("a.pc")).unwrap();
    assert!(list.starts_with("0000000080000000\n") && list.ends_with('\n'));
}

#[test]
fn programs_of_the_repository_say_what_they_should() {
    let programs = crate::repository().join("programs");
    let folder = programs.to_str().unwrap();
    let mut seen = 0;
    for name in [
        "sort",
        "recursion",
        "callbacks",
        "longjmp",
        "strings",
        "float",
        "timer",
        "scheduler",
        "harts",
        "exceptions",
        "modes",
        "contexts",
        "paging",
        "selfmod",
        "triggers",
        "causes",
        "dense",
        "semihost",
    ] {
        let all = programs.join(name).join(format!("{name}.expected"));
        for entry in fs::read_dir(programs.join(name)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "elf") {
                continue;
            }
            let own = path.with_extension("expected");
            let expected = if own.exists() { &own } else { &all };
            let expected = fs::read_to_string(expected).unwrap();
            let files = format!("ro:{folder}");
            let mut args = vec!["run", "-q", path.to_str().unwrap(), "--files", &files];
            if name == "semihost" {
                args.extend(["--", "semihost/sample.txt"]);
            }
            // Lines with # depend on how fast time runs.
            let said = succeeds(&args);
            let said = said.split_inclusive('\n').filter(|l| !l.starts_with('#'));
            let said: String = said.collect();
            assert_eq!(said, expected, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 20);
}

/// A program for any number of harts.
const HARTS: &str = "../../programs/harts/harts-rv64gc.elf";

#[test]
fn several_harts_do_the_same_every_time() {
    let expected = fs::read_to_string("../../programs/harts/harts.expected").unwrap();
    let folder = Folder::new();
    let traced = |harts: &str, seed: &str, name: &str| {
        let files = [
            folder.name(&format!("{name}.nt")),
            folder.name(&format!("{name}.et")),
        ];
        let traces = [
            format!("ntrace={}", files[0]),
            format!("etrace={}", files[1]),
        ];
        let args = ["run", HARTS, "--harts", harts, "--seed", seed, "--check"];
        let output = run(&[&args[..], &["--trace", &traces[0], "--trace", &traces[1]]].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert_eq!(message.matches("decoded and equal").count(), 2, "{message}");
        let printed = text(&output.stdout).split_once('\n').unwrap();
        assert_eq!(
            printed,
            (format!("# {harts} harts").as_str(), expected.as_str())
        );
        files.map(|file| fs::read(file).unwrap())
    };
    let first = traced("4", "0", "a");
    assert_eq!(traced("4", "0", "b"), first);
    assert_ne!(traced("4", "5", "c"), first);
    traced("2", "0", "d");
    // Each hart is a source, and did something of its own.
    for name in ["a.nt", "a.et"] {
        let stats = run(&["stats", "-f", "json", &folder.name(name)]);
        let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
        assert_eq!(stats["sources"].as_array().unwrap().len(), 4, "{stats}");
    }
}

#[test]
fn several_harts_need_room_in_a_trace() {
    let folder = Folder::new();
    let narrow = folder.file("narrow.toml", b"[ntrace]\nsrc_bits = 1\n");
    let plain = folder.file(
        "plain.toml",
        b"[etrace.encapsulation]\nform = \"reference\"\n",
    );
    let to = |kind: &str| format!("{kind}={}", folder.name("t"));
    let args = |config: &str, kind: &str| {
        let trace = to(kind);
        ends(
            &[
                "run", HARTS, "--harts", "4", "-c", config, "--trace", &trace,
            ],
            1,
        )
    };
    has(
        &args(&narrow, "ntrace"),
        &["room for 2 harts, but there are 4", "src_bits in [ntrace]"],
    );
    has(
        &args(&plain, "etrace"),
        &[
            "room for one hart, but there are 4",
            "[etrace.encapsulation]",
        ],
    );
    let tandem = to("tandem");
    let message = ends(&["run", HARTS, "--harts", "2", "--trace", &tandem], 2);
    has(&message, &["requires --container"]);
    has(&ends(&["run", HARTS, "--seed", "2"], 2), &["--harts N"]);
    let message = ends(&["run", HARTS, "--harts", "2", "--machine", "spike"], 1);
    has(&message, &["exactly one hart"]);
}

/// Every cause that the hart without a hypervisor and counters has.
#[test]
fn a_program_takes_every_cause() {
    let folder = Folder::new();
    let log = folder.name("t.json");
    let to = format!("json={log}");
    for width in [32, 64] {
        let elf = format!("../../programs/causes/causes-rv{width}gc.elf");
        let args = ["run", "-q", &elf, "--misaligned", "no", "--log", &to];
        assert!(!succeeds(&args).contains('#'));
        let mut causes = std::collections::BTreeSet::new();
        for line in fs::read_to_string(&log).unwrap().lines() {
            let step: serde_json::Value = serde_json::from_str(line).unwrap();
            if step["type"] == "trap" {
                let kind = step["cause"].as_str().unwrap().to_owned();
                causes.insert((kind, step["code"].as_u64().unwrap()));
            }
        }
        let exceptions = (0..=9)
            .chain([11, 12, 13, 15])
            .map(|code| ("exception", code));
        let interrupts = [1, 3, 5, 7, 9, 11].map(|code| ("interrupt", code));
        let all = exceptions.chain(interrupts);
        let all = all.map(|(kind, code)| (kind.to_owned(), code)).collect();
        assert_eq!(causes, all);
    }
}

/// A trace knows the contexts of a scheduler, and a timeline has a track for each.
#[test]
fn contexts_of_tasks_are_traced() {
    let folder = Folder::new();
    let config = folder.file(
        "c.toml",
        "[ntrace]\ncontext = true\n[etrace]\ncontext_width = 32\n",
    );
    let elf = "../../programs/contexts/contexts-rv64gc.elf";
    for kind in ["ntrace", "etrace"] {
        let trace = folder.name(kind);
        let to = format!("{kind}={trace}");
        succeeds(&["run", "-q", elf, "-c", &config, "--trace", &to, "--check"]);
        let chrome = folder.name("t.json");
        succeeds(&["timeline", &trace, "-f", "chrome", "-o", &chrome]);
        let text = fs::read_to_string(&chrome).unwrap();
        for task in 0..4 {
            assert!(
                text.contains(&format!("context 0x{:x}", 0x1000 + task)),
                "{kind} {task}"
            );
        }
    }
}

/// Code that changes is decoded with the code history that is written beside the trace.
/// E-Trace does not report how often the last jump, to itself, was done.
#[test]
fn code_that_changes_is_decoded() {
    let folder = Folder::new();
    let pcs = folder.name("t.pc");
    for (width, kind) in [
        (64, "ntrace"),
        (32, "ntrace"),
        (64, "etrace"),
        (32, "etrace"),
    ] {
        let elf = format!("../../programs/selfmod/selfmod-rv{width}gc.elf");
        let trace = folder.name(&format!("{kind}{width}"));
        let to = [format!("{kind}={trace}"), format!("pc={pcs}")];
        succeeds(&["run", "-q", &elf, "--trace", &to[0], "--log", &to[1]]);
        let decoded = succeeds(&["decode", &trace, "-f", "pc"]);
        let list = fs::read_to_string(&pcs).unwrap();
        let rest = list.strip_prefix(&decoded).unwrap();
        let last = decoded.lines().last().unwrap();
        assert!(
            rest.lines().all(|pc| kind == "etrace" && pc == last),
            "{width} {kind}"
        );
    }
}
