//! `verify`: tandem traces against the built-in hart.

use crate::tiny::{BASE, elf_at};
use crate::trace::programs;
use crate::{Folder, RV32, RV64, fails, hartrace, repository, run, succeeds, text};
use hartrace_tandem::{Config, Item, Register};
use hartrace_testkit::assemble;
use serde_json::Value;
use snapbox::{assert_data_eq, file};
use std::fs;
use std::process::Output;

fn config(name: &str) -> String {
    let path = repository().join("configs/tandem").join(name);
    path.to_str().unwrap().to_owned()
}

/// A run of a program, traced.
fn traced(folder: &Folder, program: &str, more: &[&str]) -> String {
    let trace = folder.name("run.tandem");
    let to = format!("tandem={trace}");
    let mut args = vec!["run", "-q", program, "--trace", &to];
    args.extend(more);
    if !more.contains(&"--max-insns") {
        args.extend(["--max-insns", "20K"]);
    }
    let output = run(&args);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 10)), "{}", text(&output.stderr));
    trace
}

/// The lines of a report.
fn lines(output: &Output) -> Vec<Value> {
    let lines = text(&output.stdout).lines();
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn every_program_verifies() {
    let folder = Folder::new();
    for program in programs() {
        let program = program.to_str().unwrap();
        for name in ["full", "compact", "bluespec", "partial"] {
            let config = config(&format!("{name}.toml"));
            let trace = traced(&folder, program, &["-c", &config, "--max-insns", "10K"]);
            let output = run(&["verify", "-q", &trace]);
            let report = text(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{program} {name}: {report}");
            assert!(report.ends_with("verdict       clean\n"), "{report}");
        }
    }
}

#[test]
fn a_spike_log_verifies() {
    let folder = Folder::new();
    let trace = folder.name("t");
    let log = repository().join("programs/sieve/sieve-rv64gc.log");
    let log = log.to_str().unwrap();
    let args = [
        "encode",
        "-q",
        log,
        "-e",
        RV64,
        "--isa",
        "rv64gc_zicntr_zihpm",
    ];
    let output = run(&[&args[..], &["--to", "tandem", "-o", &trace]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = succeeds(&["verify", "-q", &trace]);
    assert!(report.contains("clean"), "{report}");
}

/// Logs of commits alone have no traps: they are seen by their handlers, and which they were
/// is known when the handler reads it. The last instruction has no successor.
#[test]
fn logs_without_traps_verify() {
    let folder = Folder::new();
    let log = folder.name("log");
    for (name, most) in [
        ("timer/timer", "60000"),
        ("scheduler/scheduler", "20000"),
        ("exceptions/exceptions", "60000"),
        ("devices/devices", "60000"),
    ] {
        for width in ["rv64gc", "rv32gc"] {
            let program = repository().join(format!("programs/{name}-{width}.elf"));
            let program = program.to_str().unwrap();
            let to = format!("spike={log}");
            run(&["run", "-q", program, "--max-insns", most, "--log", &to]);
            let report = succeeds(&["verify", "-q", &log, "-e", program]);
            assert!(report.contains("verdict       clean\n"), "{name}: {report}");
        }
    }
}

/// Traps right after returns from traps, in logs that do not record traps: of the instruction
/// that was returned to, in both modes, and interrupts that the return enables. A pc list has
/// no registers either, so that only the hart knows where returns lead.
#[test]
fn traps_right_after_returns_verify() {
    let program = assemble(
        BASE,
        "       auipc t0, 0
                addi t0, t0, 76         # handler
                csrw mtvec, t0
                ecall
                ecall
                lui t2, 0x2000
                li a3, 3
                sw a3, 0(t2)            # msip
                csrrsi zero, mie, 8
                csrrsi zero, mstatus, 8
                nop
                auipc t0, 0
                addi t0, t0, 20         # user
                csrw mepc, t0
                csrw mstatus, zero
                mret
        user:   ecall
                ecall
        end:    j end
        handler:
                csrr a1, mcause
                blt a1, zero, software
                csrr t1, mepc
                addi t1, t1, 4
                csrw mepc, t1
                mret
        software:
                addi a3, a3, -1
                bne a3, zero, again
                sw zero, 0(t2)
        again:  mret",
    );
    let folder = Folder::new();
    let elf = folder.file("returns.elf", elf_at(BASE, &program.unwrap().bytes));
    let (spike, list) = (folder.name("spike.log"), folder.name("pcs"));
    let logs = [format!("spike={spike}"), format!("pc={list}")];
    let args = ["run", "-q", &elf, "--max-insns", "60"];
    run(&[&args[..], &["--log", &logs[0], "--log", &logs[1]]].concat());
    // In both, the handler follows returns: of the first ecall, to user mode, of interrupts.
    let text_of_log = fs::read_to_string(&list).unwrap();
    let lines: Vec<&str> = text_of_log.lines().collect();
    let returns = ["0000000080000060", "000000008000003c", "0000000080000070"];
    let at_once = |ret: &&str| {
        let pairs = lines.windows(2);
        pairs
            .filter(|pair| pair[0] == *ret && pair[1] == "000000008000004c")
            .count()
    };
    assert_eq!(returns.each_ref().map(at_once), [2, 1, 2], "{text_of_log}");
    for log in [&spike, &list] {
        let output = run(&["verify", "-q", log, "-e", &elf, "--isa", "rv64imac_zicsr"]);
        let report = text(&output.stdout);
        assert!(report.contains("verdict       clean\n"), "{log}: {report}");
    }
}

/// An interrupt that is taken while interrupts are off, in a log that does not say which
/// it is.
#[test]
fn an_interrupt_that_is_not_enabled_is_found_in_a_log_without_traps() {
    let folder = Folder::new();
    let log = folder.name("log");
    let program = repository().join("programs/timer/timer-rv64gc.elf");
    let program = program.to_str().unwrap();
    let to = format!("spike={log}");
    run(&["run", "-q", program, "--max-insns", "5000", "--log", &to]);
    let text_of_log = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text_of_log.lines().collect();
    // The first entry of the handler of software interrupts, a jump, comes again two
    // instructions later.
    let at = lines
        .iter()
        .position(|line| line.contains(" 0x0000000080000d0c "))
        .unwrap();
    let twice = [&lines[..at + 3], &lines[at..]].concat().join("\n");
    let log = folder.file("twice.log", twice + "\n");
    let output = run(&["verify", "-q", &log, "-e", program, "--max-mismatches", "1"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{report}");
    assert!(report.contains("no enabled interrupt"), "{report}");
    assert!(
        report.contains("at 0x80000bbc <software_entry+0x4>"),
        "{report}"
    );
}

/// The log records what the debugger of a semihosting program changes.
#[test]
fn a_log_of_a_semihosting_program_verifies() {
    let folder = Folder::new();
    let (log, trace) = (folder.name("log"), folder.name("t"));
    for width in ["rv64gc", "rv32gc"] {
        let program = repository().join(format!("programs/semihost/semihost-{width}.elf"));
        let program = program.to_str().unwrap();
        run(&["run", "-q", program, "--log", &format!("spike-traps={log}")]);
        let args = [
            "encode", "-q", &log, "-e", program, "--to", "tandem", "-o", &trace,
        ];
        assert_eq!(succeeds(&args), "");
        let report = succeeds(&["verify", "-q", &trace]);
        assert!(report.contains("clean"), "{report}");
    }
}

/// The same machine as that of the run, by the sidecar.
#[test]
fn the_machine_is_known() {
    let folder = Folder::new();
    let more = [
        "--memory",
        "0x80000000:1M",
        "--misaligned",
        "no",
        "--machine",
        "spike",
    ];
    let trace = traced(&folder, RV32, &[&more[..], &["--isa", "rv32imac"]].concat());
    let sidecar = fs::read_to_string(folder.path("run.tandem.toml")).unwrap();
    for part in ["machine = \"spike\"", "0x80000000:1M", "misaligned = false"] {
        assert!(sidecar.contains(part), "{sidecar}");
    }
    succeeds(&["verify", "-q", &trace]);
    // Another one starts elsewhere; the trace says where, and is followed.
    succeeds(&[
        "verify",
        "-q",
        &trace,
        "--machine",
        "virt",
        "--memory",
        "0x80000000:2M",
    ]);
}

/// A trace as groups of items.
struct Groups {
    config: Config,
    groups: Vec<Vec<Item>>,
}

impl Groups {
    fn read(trace: &str) -> Groups {
        let config = Config::new(hartrace_isa::Isa::RV64GC, true);
        let bytes = fs::read(trace).unwrap();
        let (mut at, mut groups) = (0, Vec::<Vec<Item>>::new());
        while at < bytes.len() {
            let (item, length) = Item::read(&bytes[at..], &config, None).unwrap().unwrap();
            if item == Item::BeginGroup {
                groups.push(Vec::new());
            }
            groups.last_mut().unwrap().push(item);
            at += length;
        }
        Groups { config, groups }
    }

    /// The first group behind another with an item that `edit` can change.
    fn edit(&mut self, from: usize, edit: impl Fn(&mut Vec<Item>) -> bool) -> usize {
        let behind = self.groups.iter_mut().enumerate().skip(from);
        let mut found = behind.filter_map(|(i, group)| edit(group).then_some(i));
        found.next().unwrap()
    }

    fn write(&self, path: &str) {
        let mut bytes = Vec::new();
        for item in self.groups.iter().flatten() {
            item.write(&self.config, &mut bytes);
        }
        fs::write(path, bytes).unwrap();
    }
}

fn register(item: &Item) -> bool {
    matches!(item, Item::Full(register, _) if register.as_reg().is_some())
}

type Fault = (&'static str, fn(&mut Vec<Item>) -> bool);

const FAULTS: [Fault; 8] = [
    ("integer register", |group| {
        let item = group.iter_mut().find(|item| register(item));
        item.is_some_and(|item| match item {
            Item::Full(_, value) => {
                *value ^= 1 << 17;
                true
            }
            _ => false,
        })
    }),
    // A lost write.
    ("integer register", |group| {
        let at = group.iter().position(register);
        at.map(|at| group.remove(at)).is_some()
    }),
    // An extra write.
    ("integer register", |group| {
        let end = group.len() - 1;
        group.insert(end, Item::Full(Register::x(27), 0x1234_5678));
        true
    }),
    ("pc", |group| {
        let pc = group.iter_mut().find(|i| matches!(i, Item::Pc(_)));
        pc.map(|pc| *pc = Item::Pc(0x8000_0008)).is_some()
    }),
    ("store", |group| {
        let store = group.iter_mut().find(|i| matches!(i, Item::StoreData(..)));
        store.is_some_and(|item| match item {
            Item::StoreData(_, value) => {
                *value ^= 2;
                true
            }
            _ => false,
        })
    }),
    ("store", |group| {
        let stores = group.iter().any(|i| matches!(i, Item::StoreData(..)));
        let address = group
            .iter_mut()
            .find(|i| matches!(i, Item::EffectiveAddress(_)));
        match address {
            Some(Item::EffectiveAddress(address)) if stores => {
                *address ^= 8;
                true
            }
            _ => false,
        }
    }),
    ("csr", |group| {
        let csr = |i: &&mut Item| matches!(i, Item::Full(r, _) if r.as_csr().is_some());
        let trap = group
            .iter()
            .any(|i| matches!(i, Item::Full(r, _) if r.as_csr() == Some(0x342)));
        match group.iter_mut().find(csr) {
            Some(Item::Full(_, value)) if !trap => {
                *value ^= 8;
                true
            }
            _ => false,
        }
    }),
    ("instruction", |group| {
        let insn = group.iter_mut().find(|i| matches!(i, Item::Insn32(_)));
        match insn {
            Some(Item::Insn32(bits)) => {
                *bits ^= 1 << 20;
                true
            }
            _ => false,
        }
    }),
];

/// Every fault is found where it is, and once.
#[test]
fn faults_are_found() {
    let folder = Folder::new();
    let program = repository().join("programs/timer/timer-rv64gc.elf");
    let trace = traced(&folder, program.to_str().unwrap(), &[]);
    for (from, (kind, fault)) in FAULTS.into_iter().enumerate() {
        let mut groups = Groups::read(&trace);
        let at = groups.edit(2000 + 31 * from, fault) as u64;
        groups.write(&trace);
        let output = run(&["verify", "-q", &trace, "-f", "json"]);
        let report = lines(&output);
        assert_eq!(output.status.code(), Some(4), "{kind}");
        assert!(text(&output.stderr).starts_with("error[HT0602]: "));
        assert_eq!(report[0]["schema"], "hartrace-verify");
        let first = &report[1];
        assert_eq!(
            (&first["type"], &first["group"]),
            (&"mismatch".into(), &at.into()),
            "{first}"
        );
        let kinds = first["differences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| &d["kind"]);
        assert!(kinds.clone().any(|k| k == kind), "{first}");
        assert!(first["file"].is_string() && first["past"].as_array().unwrap().len() == 16);
        let summary = report.last().unwrap();
        assert_eq!(summary["verdict"], "mismatch");
        assert!(
            summary["mismatches"].as_u64().unwrap() <= 2,
            "{kind}: {summary}"
        );
        traced(&folder, program.to_str().unwrap(), &[]);
    }
}

#[test]
fn a_report_for_people() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let mut groups = Groups::read(&trace);
    groups.edit(1000, FAULTS[0].1);
    groups.edit(3000, FAULTS[6].1);
    groups.edit(4000, FAULTS[3].1);
    groups.write(&trace);
    let output = run(&["verify", "-q", &trace]);
    assert_eq!(output.status.code(), Some(4));
    assert_data_eq!(text(&output.stdout), file!["snapshots/verify-report.txt"]);
}

#[test]
fn only_a_part() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let mut groups = Groups::read(&trace);
    for at in [1000, 2000, 3000] {
        groups.edit(at, FAULTS[0].1);
    }
    groups.write(&trace);
    let verify = |more: &[&str]| {
        let output = run(&[&["verify", "-q", "-f", "json", &trace][..], more].concat());
        let report = lines(&output);
        let mismatches = report.iter().filter(|l| l["type"] == "mismatch");
        let at: Vec<u64> = mismatches.map(|m| m["insn"].as_u64().unwrap()).collect();
        (at, report.last().unwrap().clone())
    };
    let (all, summary) = verify(&[]);
    assert_eq!((all.len(), &summary["end"]), (3, &"whole".into()));
    let (first, summary) = verify(&["--max-mismatches", "1"]);
    assert_eq!(
        (&first[..], &summary["end"]),
        (&all[..1], &"max-mismatches".into())
    );
    let from = (all[0] + 1).to_string();
    assert_eq!(verify(&["--from", &from]).0, all[1..]);
    let (two, summary) = verify(&["--until", &all[2].to_string()]);
    assert_eq!((&two[..], &summary["end"]), (&all[..2], &"until".into()));
    let (none, summary) = verify(&["--until", "main"]);
    assert!(
        none.is_empty() && summary["verdict"] == "clean",
        "{summary}"
    );
    assert!(summary["instructions"].as_u64().unwrap() > 100);
    assert_eq!(verify(&["--from", "main"]).0, all);
    // All integer registers come from the trace.
    let registers: Vec<String> = (1..32).map(|n| format!("x{n}")).collect();
    let absent = registers.join(",");
    assert!(verify(&["--absent", &absent]).0.is_empty());
    fails(&["verify", &trace, "--volatile", "nothing"], 2, "HT0311");
    fails(&["verify", &trace, "--absent", "nothing"], 2, "HT0311");
    fails(&["verify", &trace, "--until", "nowhere"], 2, "HT0308");
    // The trace has 20002 instructions, two of which trap.
    let message = fails(&["verify", &trace, "--from", "20002"], 2, "HT0310");
    assert!(message.contains("has 20002 instructions"), "{message}");
    assert!(verify(&["--from", "20001"]).0.is_empty());
    for (from, until) in [("10", "10"), ("20K", "100"), ("main", "1")] {
        let output = run(&["verify", &trace, "--from", from, "--until", until]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--until"), "{message}");
    }
    // Cut off in front of the first time at a symbol.
    let mut groups = Groups::read(&trace);
    groups.groups.truncate(5);
    groups.write(&trace);
    fails(&["verify", &trace, "--from", "main"], 2, "HT0310");
}

#[test]
fn damage() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let whole = fs::read(&trace).unwrap();
    let mut bytes = whole.clone();
    bytes[17_845] = 0xee;
    fs::write(&trace, &bytes).unwrap();
    let output = run(&["verify", "-q", &trace]);
    assert_eq!(output.status.code(), Some(3));
    let message = text(&output.stderr);
    assert!(message.starts_with("error[TP0101]: "), "{message}");
    assert!(
        message.contains(" at byte 0x45b5, in group 1002"),
        "{message}"
    );
    assert!(text(&output.stdout).contains("at damage"));
    let output = run(&["verify", "-q", &trace, "--resync", "-f", "json"]);
    assert_eq!(output.status.code(), Some(3));
    let report = lines(&output);
    assert_eq!(
        (&report[1]["type"], &report[1]["fault"]),
        (&"problem".into(), &"TP0101".into())
    );
    let summary = report.last().unwrap();
    assert_eq!(
        (&summary["verdict"], &summary["end"]),
        (&"damaged".into(), &"whole".into())
    );
    assert!(
        summary["instructions"].as_u64().unwrap() > 19_000,
        "{summary}"
    );
    // Cut off.
    fs::write(&trace, &whole[..whole.len() - 1]).unwrap();
    let output = run(&["verify", "-q", &trace]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).starts_with("error[TP02"),
        "{}",
        text(&output.stderr)
    );
    // Not one group of it.
    fs::write(&trace, [0xee; 5000]).unwrap();
    let output = run(&["verify", "-q", &trace]);
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn containers() {
    use hartrace_flow::HartId;
    use hartrace_tandem::container::{Parameters, write_end, write_start, write_stored};
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &["--container", "--compress"]);
    succeeds(&["verify", "-q", &trace]);
    // Without a sidecar the container knows.
    fs::remove_file(folder.path("run.tandem.toml")).ok();
    succeeds(&["verify", "-q", &trace, "-e", RV64]);
    succeeds(&[
        "verify", "-q", &trace, "-e", RV64, "--from", "main", "--until", "19K",
    ]);
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = folder.file("damaged", &bytes);
    let output = run(&["verify", "-q", &damaged, "-e", RV64]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    assert!(
        text(&output.stderr).starts_with("error[TP04"),
        "{}",
        text(&output.stderr)
    );
    // Two harts, and the second one is wrong.
    let plain = traced(&folder, RV64, &[]);
    let good = fs::read(&plain).unwrap();
    let mut groups = Groups::read(&plain);
    groups.edit(1000, FAULTS[0].1);
    groups.write(&plain);
    let bad = fs::read(&plain).unwrap();
    let parameters = Parameters {
        config: groups.config,
        isa: Some("rv64imafdcb_zicsr_zifencei_zicntr_zihpm_zicond_zfh_zcb_zbc".to_owned()),
    };
    let mut bytes = Vec::new();
    write_start(&parameters, &mut bytes).unwrap();
    write_stored(HartId(0), &good, &mut bytes);
    write_stored(HartId(3), &bad, &mut bytes);
    write_end(&mut bytes);
    let both = folder.file("both", &bytes);
    let verify = |more: &[&str]| {
        let output = run(&[&["verify", "-q", &both, "-e", RV64][..], more].concat());
        (output.status.code(), text(&output.stderr).to_owned())
    };
    assert_eq!(verify(&["--hart", "0"]).0, Some(0));
    assert_eq!(verify(&["--hart", "3"]).0, Some(4));
    for more in [&[][..], &["--hart", "1"]] {
        let (code, message) = verify(more);
        assert_eq!(code, Some(2));
        assert!(message.starts_with("error[HT0305]: "), "{message}");
        assert!(message.contains("harts in the trace: 0, 3"), "{message}");
    }
}

#[test]
fn other_files() {
    let folder = Folder::new();
    let message = fails(
        &["verify", RV64, "-e", RV64, "--isa", "rv64gc"],
        5,
        "HT0116",
    );
    assert!(message.contains("ELF"), "{message}");
    let ntrace = folder.name("t");
    let to = format!("ntrace={ntrace}");
    run(&["run", "-q", RV64, "--max-insns", "1K", "--trace", &to]);
    fails(&["verify", &ntrace], 5, "HT0116");
    let empty = folder.file("empty", "");
    fails(
        &["verify", &empty, "-e", RV64, "--isa", "rv64gc"],
        5,
        "HT0105",
    );
    let trace = traced(&folder, RV64, &[]);
    fs::remove_file(folder.path("run.tandem.toml")).unwrap();
    fails(&["verify", &trace], 2, "HT0304");
    fails(
        &["verify", &trace, "-e", RV32, "--isa", "rv64gc"],
        2,
        "HT0303",
    );
    fails(
        &["verify", "tcp:127.0.0.1:1", "-e", RV64, "--isa", "rv64gc"],
        1,
        "HT0001",
    );
}

#[test]
fn from_standard_input() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let verify = |path: &str| {
        let mut command = hartrace();
        command.args(["verify", "-q", "-", "-e", RV64]);
        command.stdin(fs::File::open(path).unwrap());
        command.output().unwrap()
    };
    let output = verify(&trace);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).ends_with("clean\n"));
    let empty = folder.file("empty", "");
    assert_eq!(verify(&empty).status.code(), Some(5));
}

/// An interrupt whose cause is not told.
#[test]
fn what_cannot_be_checked() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let mut groups = Groups::read(&trace);
    groups.groups.truncate(30);
    groups.groups.push(vec![
        Item::BeginGroup,
        Item::Pc(0x8000_0000),
        Item::Full(Register::csr(0x341), 0x8000_0010),
        Item::Mode(3),
        Item::EndGroup,
    ]);
    groups.write(&trace);
    // An interrupt without a cause, where none is enabled.
    let args = ["verify", "--absent", "trap.mcause", &trace];
    let output = run(&args);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{report}");
    assert!(report.contains("no enabled interrupt"), "{report}");
    let output = run(&[&args[..], &["--volatile", "mie"]].concat());
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
    let verdict = "clean, but 1 group could not be checked (";
    assert!(report.contains(verdict), "{report}");
    let message = text(&output.stderr);
    assert!(
        message.contains("warning[HT0410]: 1 group of "),
        "{message}"
    );
}

/// Places that cannot be, and harts of a trace that has only one.
#[test]
fn places_and_harts_that_cannot_be() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    succeeds(&["verify", "-q", &trace, "--hart", "0"]);
    let sockets = ["tcp:abc", "tcp-listen:99999", "tcp:host:", "unix:"];
    let mut wrong: Vec<Vec<&str>> = sockets.map(|s| vec![s, "-e", RV64]).into();
    wrong.push(vec![&trace, "--hart", "1"]);
    for args in wrong {
        let output = run(&[&["verify"][..], &args].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains("Usage:"));
    }
}

#[test]
fn another_program() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    fs::remove_file(folder.path("run.tandem.toml")).unwrap();
    let other = repository().join("programs/timer/timer-rv64gc.elf");
    let other = other.to_str().unwrap();
    let output = run(&["verify", "-q", &trace, "-e", other]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(
        message.contains("check that this is the traced program"),
        "{message}"
    );
}

/// A connection that is reset: what came is told of.
#[cfg(target_os = "linux")]
#[test]
fn a_simulation_that_dies() {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::Stdio;
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let die = |bytes: &[u8]| {
        let (mut simulation, mut socket) = UnixStream::pair().unwrap();
        // Closing with this unread is a reset.
        socket.write_all(b"unread").unwrap();
        let mut command = hartrace();
        command.args(["verify", "-", "-e", RV64, "-f", "json"]);
        command.stdin(OwnedFd::from(socket));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        drop(command);
        simulation.write_all(bytes).unwrap();
        drop(simulation);
        child.wait_with_output().unwrap()
    };
    let bytes = fs::read(&trace).unwrap();
    let output = die(&bytes[..bytes.len() - 3]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("error[HT0003]: "), "{message}");
    let summary = lines(&output).last().unwrap().clone();
    assert_eq!(
        (&summary["verdict"], &summary["end"]),
        (&"interrupted".into(), &"lost".into())
    );
    assert!(summary["instructions"].as_u64().unwrap() > 19_990);
    let mut groups = Groups::read(&trace);
    groups.edit(1000, FAULTS[0].1);
    groups.write(&trace);
    let output = die(&fs::read(&trace).unwrap());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("warning[HT0003]: "), "{message}");
    assert_eq!(lines(&output).last().unwrap()["verdict"], "mismatch");
}

/// A mismatch is told while the simulation still runs, and Ctrl-C ends it all
/// with a summary.
#[cfg(target_os = "linux")]
#[test]
fn a_simulation_that_runs() {
    use crate::signals::{ignores_signals, wait_until};
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    if ignores_signals() {
        return;
    }
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let mut groups = Groups::read(&trace);
    groups.edit(1000, FAULTS[0].1);
    groups.write(&trace);
    let socket = folder.name("socket");
    let mut child = hartrace()
        .args(["verify", "-q", &format!("unix-listen:{socket}"), "-e", RV64])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = None;
    assert!(wait_until(|| {
        stream = UnixStream::connect(&socket).ok();
        stream.is_some()
    }));
    let mut stream = stream.unwrap();
    stream.write_all(&fs::read(&trace).unwrap()).unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.starts_with("mismatch 1: instruction "), "{line}");
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", "INT", &pid]).status();
    assert!(sent.unwrap().success());
    told.read_to_string(&mut line).unwrap();
    assert!(
        line.contains("by a signal\n") && line.ends_with("1 mismatch\n"),
        "{line}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert!(!folder.path("socket").exists());
}

/// Code that changes is in the trace, and the model changes it too.
#[test]
fn a_program_that_changes_its_code_verifies() {
    let folder = Folder::new();
    for width in [32, 64] {
        let name = format!("programs/selfmod/selfmod-rv{width}gc.elf");
        let program = repository().join(name);
        let trace = traced(&folder, program.to_str().unwrap(), &[]);
        let output = run(&["verify", "-q", &trace]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    }
}
