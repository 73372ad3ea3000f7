//! Control transfer records: `run --trace ctr`, `ctr`, `info`.

use crate::etrace::small;
use crate::{Folder, fails, hartrace, repository, run, succeeds, text};
use serde_json::Value;
use snapbox::{Assert, file};
use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

fn program(name: &str) -> String {
    let path = repository().join("programs").join(name);
    path.to_str().unwrap().to_owned()
}

fn config(name: &str) -> String {
    let path = repository().join("configs/ctr").join(name);
    path.to_str().unwrap().to_owned()
}

/// Records of a run; the name of the dump.
fn recorded(folder: &Folder, program: &str, every: &str, more: &[&str]) -> String {
    let dump = folder.name("run.ctr");
    let to = format!("ctr={dump}");
    let args = ["run", "-q", program, "--trace", &to, "--ctr-every", every];
    let output = run(&[&args[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    dump
}

/// What a command writes, whatever it warns of.
#[track_caller]
fn written(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn texts() {
    let folder = Folder::new();
    let program = small(&folder);
    let dump = recorded(&folder, &program, "12", &["--max-insns", "30"]);
    let golden = Assert::new().action_env("SNAPSHOTS");
    let told = |args: &[&str]| {
        let args = [&["ctr", &dump], args].concat();
        written(&args).replace(&folder.name(""), "")
    };
    golden.eq(told(&[]), file!["snapshots/ctr-table.txt"]);
    golden.eq(told(&["-f", "brstack"]), file!["snapshots/ctr-brstack.txt"]);
    golden.eq(
        told(&["-f", "brstack8"]),
        file!["snapshots/ctr-brstack8.txt"],
    );
    golden.eq(told(&["-f", "profgen"]), file!["snapshots/ctr-profgen.txt"]);
    golden.eq(told(&["-f", "autofdo"]), file!["snapshots/ctr-autofdo.txt"]);
    golden.eq(told(&["-f", "blocks"]), file!["snapshots/ctr-blocks.txt"]);
    golden.eq(
        told(&["-f", "branches"]),
        file!["snapshots/ctr-branches.txt"],
    );
    golden.eq(told(&["-f", "json"]), file!["snapshots/ctr-json.json"]);
}

/// The last snapshot is that of the end, and every so many instructions there
/// is one.
#[test]
fn snapshots_of_a_run() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = recorded(&folder, &elf, "100K", &[]);
    let json = succeeds(&["ctr", &dump, "-f", "json"]);
    let mut lines = json
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap());
    assert_eq!(lines.next().unwrap()["schema"], "hartrace-ctr");
    let insns: Vec<String> = lines
        .map(|s| s["instructions"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(insns, ["0x186a0", "0x30d40", "0x4871f"]);
    let one = succeeds(&["ctr", &dump, "--sample", "1"]);
    assert!(
        one.starts_with("snapshot 1: hart 0, instruction 200000, cycle "),
        "{one}"
    );
    assert!(
        one.contains("\nCTR 1.0, depth 32, U S M: 32 records\n"),
        "{one}"
    );
    assert!(one.contains(" recursion.c:"), "{one}");
    // Without --ctr-every there is the one at the end.
    let to = format!("ctr={dump}");
    succeeds(&["run", "-q", &elf, "--trace", &to, "--max-insns", "1000"]);
    let all = succeeds(&["ctr", &dump]);
    assert_eq!(all.matches("snapshot ").count(), 1);
    assert!(all.contains("instruction 1000"), "{all}");
}

#[test]
fn snapshots_by_cycles() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    for isa in ["rv64gc", "rv64gc_smctr_ssctr"] {
        let dump = recorded(&folder, &elf, "50Kcycles", &["--isa", isa]);
        let json = succeeds(&["ctr", &dump, "-f", "json"]);
        let cycles: Vec<u64> = json
            .lines()
            .skip(1)
            .map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                let hex = line["cycles"].as_str().unwrap();
                u64::from_str_radix(hex.strip_prefix("0x").unwrap(), 16).unwrap()
            })
            .collect();
        // In front of the first instruction behind each 50 000 cycles.
        assert_eq!(cycles.len(), 9, "{isa}");
        for (n, cycles) in (1..9).zip(cycles) {
            assert!(
                (n * 50_000..n * 50_000 + 100).contains(&cycles),
                "{isa}: {cycles}"
            );
        }
    }
}

/// A hart that has records of its own gives those, and says so.
#[test]
fn whose_records_these_are() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = folder.name("run.ctr");
    let to = format!("ctr={dump}");
    let words = |isa: &str| {
        let args = [
            "run",
            &elf,
            "--trace",
            &to,
            "--isa",
            isa,
            "--max-insns",
            "1000",
        ];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0));
        text(&output.stderr).to_owned()
    };
    let beside = words("rv64gc");
    assert!(
        beside.contains(
            "1 snapshot, 32 records; records of the recorder set in [ctr]: CTR 1.0, depth 32, U \
             S M"
        ),
        "{beside}"
    );
    let own = words("rv64gc_smctr_ssctr");
    assert!(
        own.contains(
            "1 snapshot, 0 records; the hart's own records: CTR 1.0, depth 16, -; \
        the program did not enable recording"
        ),
        "{own}"
    );
}

#[test]
fn dumps_have_sidecars() {
    let folder = Folder::new();
    let elf = program("sort/sort-rv32gc.elf");
    let dump = recorded(&folder, &elf, "10K", &["--max-insns", "50K"]);
    let sidecar = fs::read_to_string(format!("{dump}.toml")).unwrap();
    assert!(
        sidecar.starts_with("[trace]\nformat = \"ctr\"\nversion = \"1.0\"\n"),
        "{sidecar}"
    );
    let facts = succeeds(&["info", &dump]);
    for row in [
        ": control transfer records\n",
        "  version     1.0\n",
        "  control     U S M\n",
        "  depth       32\n",
        "  hart ids    0\n",
        "  snapshots   5\n",
        "  records     160\n",
        "  format      ctr\n",
    ] {
        assert!(facts.contains(row), "{row}{facts}");
    }
    let json = succeeds(&["info", "-f", "json", &dump]);
    let json: Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&json["type"], &json["records"]["snapshots"]),
        (&"ctr".into(), &5.into())
    );
    // The program must be the one that ran.
    let other = program("callbacks/callbacks-rv32gc.elf");
    fails(&["ctr", &dump, "-e", &other], 1, "HT0205");
    // Other commands say who reads it.
    let message = fails(&["decode", &dump, "-e", &elf], 5, "HT0113");
    assert!(message.contains("ctr"), "{message}");
}

#[test]
fn json_and_dumps_are_the_same() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = recorded(&folder, &elf, "20K", &[]);
    let (json, again) = (folder.name("a.json"), folder.name("b.ctr"));
    succeeds(&["ctr", &dump, "-f", "json", "-o", &json]);
    succeeds(&["ctr", &json, "-f", "dump", "-o", &again]);
    assert_eq!(fs::read(&dump).unwrap(), fs::read(&again).unwrap());
    let told = |file: &str| succeeds(&["ctr", file, "-e", &elf, "-f", "autofdo"]);
    assert_eq!(told(&dump), told(&json));
    assert!(succeeds(&["info", &json]).contains("control transfer records as JSON"));
    // From a pipe too.
    let mut child = hartrace();
    child.args(["ctr", "-", "-e", &elf, "-f", "autofdo"]);
    child.stdin(Stdio::from(fs::File::open(&dump).unwrap()));
    let output = child.output().unwrap();
    assert_eq!(text(&output.stdout), told(&dump));
    // Two files count twice.
    let twice = succeeds(&["ctr", &dump, &json, "-f", "branches"]);
    let once = succeeds(&["ctr", &dump, "-f", "branches"]);
    let all = |text: &str| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(all(&twice), 2 * all(&once));
}

/// Whatever the source, the records are those of the run.
#[test]
fn records_of_traces_and_logs() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let names = [
        "t.ntrace", "t.etrace", "t.tandem", "t.pc", "t.spike", "t.csv",
    ];
    let files: Vec<String> = names.iter().map(|name| folder.name(name)).collect();
    let mut more = Vec::new();
    for (i, kind) in ["ntrace", "etrace", "tandem", "pc", "spike", "ingress"]
        .iter()
        .enumerate()
    {
        more.push(if i < 3 { "--trace" } else { "--log" }.to_owned());
        more.push(format!("{kind}={}", files[i]));
    }
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let dump = recorded(&folder, &elf, "1000", &more);
    let expected = succeeds(&["ctr", &dump, "-f", "autofdo"]);
    assert!(expected.len() > 1000);
    for file in &files {
        let args = ["ctr", file, "-e", &elf, "--every", "1000", "-f", "autofdo"];
        assert_eq!(succeeds(&args), expected, "{file}");
    }
    // Only rows with a time tell any here.
    let cycles = ["--every", "1000cycles", "-f", "brstack"];
    for file in &files {
        let args = [&["ctr", file, "-e", &elf], &cycles[..]].concat();
        match file.ends_with("csv") {
            true => assert!(succeeds(&args).contains("/P/-/-/21 ")),
            false => {
                let message = fails(&args, 1, "HT0118");
                assert!(message.contains("has no timestamps"), "{message}");
            }
        }
    }
    // Lists of pcs tell no modes: everything counts.
    let only = folder.file("only.toml", "[ctr]\ncontrol = [\"U\"]\n");
    let output = run(&["ctr", &files[3], "-e", &elf, "-c", &only]);
    assert!(
        text(&output.stderr).contains("warning[HT0402]"),
        "{}",
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("32 records"));
    // The Spike log does: nothing was done in user mode.
    let none = succeeds(&["ctr", &files[4], "-e", &elf, "-c", &only]);
    assert!(none.contains("U: 0 records"), "{none}");
    // A list of pcs needs the program.
    fails(&["ctr", &files[3]], 2, "HT0304");
}

/// Stacks of recursive functions, by hand: the program says how deep it went.
#[test]
fn call_stacks() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let stacks = config("call-stacks.toml");
    let dump = recorded(&folder, &elf, "100", &["-c", &stacks]);
    let folded = written(&["ctr", &dump, "-f", "folded"]);
    let mut samples = 0;
    let mut deepest = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        samples += count.parse::<u64>().unwrap();
        assert!(stack == "_start" || stack.starts_with("_start;"), "{line}");
        for function in ["ackermann", "queens", "hanoi"] {
            let depth = stack.split(';').filter(|frame| *frame == function).count();
            let most = deepest.entry(function).or_insert(0);
            *most = depth.max(*most);
        }
    }
    // 296 735 instructions, and the one at the end.
    assert_eq!(samples, 2968);
    // Queens go as deep as the board and one more; the discs are nine.
    assert_eq!(deepest["queens"], 9);
    assert!(
        deepest["ackermann"] > 55 && deepest["ackermann"] <= 63,
        "{deepest:?}"
    );
    // A small array loses the outermost calls, and says so.
    let shallow = folder.file(
        "shallow.toml",
        "[ctr]\ndepth = 16\ncontrol = [\"M\", \"RASEMU\"]\n",
    );
    let dump = recorded(&folder, &elf, "1000", &["-c", &shallow]);
    let output = run(&["ctr", &dump, "-f", "folded"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stderr).starts_with("warning[HT0411]"),
        "{}",
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("[cut];ackermann;"));
}

/// A program that records its own calls for a while: before and behind, there
/// are none.
#[test]
fn call_stacks_of_the_hart_itself() {
    let folder = Folder::new();
    let elf = program("ctr/ctr-stack-rv64gc.elf");
    let dump = recorded(&folder, &elf, "7", &["--isa", "rv64gc_smctr_ssctr"]);
    let output = run(&["ctr", &dump, "-f", "folded"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(';'));
    let table = succeeds(&["ctr", &dump]);
    assert!(table.contains("a co-routine swap, which replaced the newest call"));
    let json = folder.name("off.json");
    let off = "{\"type\":\"header\",\"schema\":\"hartrace-ctr\",\"version\":1}\n\
               {\"type\":\"snapshot\",\"specification\":\"1.0\",\"xlen\":64,\"control\":0,\"status\":1,\"depth\":16,\
               \"entries\":[{\"ctrsource\":17,\"ctrtarget\":32,\"ctrdata\":9}]}\n";
    fs::write(&json, off).unwrap();
    let message = fails(&["ctr", &json, "-f", "folded"], 1, "HT0118");
    assert!(
        message.contains("no snapshot holds a call stack"),
        "{message}"
    );
}

/// What longjmp leaves behind is explained.
#[test]
fn jumps_out_of_many_frames() {
    let folder = Folder::new();
    let elf = program("longjmp/longjmp-rv64gc.elf");
    let dump = recorded(&folder, &elf, "2000", &["-c", &config("call-stacks.toml")]);
    let table = succeeds(&["ctr", &dump, "--sample", "20"]);
    let note = "the next call came from main, reached without a call: by a tail call, longjmp \
        or a stack switch";
    assert!(table.contains(note), "{table}");
    let output = run(&["ctr", &dump, "-f", "folded"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(message.matches("warning[").count(), 1, "{message}");
    let words = "a call does not come from the last callee";
    assert!(message.contains(words), "{message}");
}

/// Returns from calls before recording began: WRPTR is below its start.
#[test]
fn returns_without_calls_are_told() {
    let folder = Folder::new();
    let json = "{\"type\":\"header\",\"schema\":\"hartrace-ctr\",\"version\":1}\n\
                {\"type\":\"snapshot\",\"specification\":\"1.0\",\"xlen\":64,\"depth\":16,\"pc\":32,\"status\":15,\"control\":\"0x87\",\
                \"entries\":[{\"ctrsource\":17,\"ctrtarget\":32,\"ctrdata\":9}]}\n";
    let output = run(&["ctr", &folder.file("a.json", json), "-f", "folded"]);
    assert_eq!(text(&output.stdout), "[cut];0x10;0x20 1\n");
    let message = text(&output.stderr);
    assert!(
        message.contains("calls from before the recording returned"),
        "{message}"
    );
}

#[test]
fn without_records_there_is_no_report() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let user = folder.file("user.toml", "[ctr]\ncontrol = [\"U\"]\n");
    let dump = recorded(&folder, &elf, "100K", &["-c", &user]);
    for format in ["folded", "profgen", "autofdo", "blocks"] {
        let output = run(&["ctr", &dump, "-f", format]);
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(text(&output.stdout), "", "{format}");
        let message = text(&output.stderr);
        let words = "warning[HT0411]: no records: all 3 snapshots are empty\n";
        assert!(message.starts_with(words), "{message}");
    }
}

/// Each instruction has a snapshot: most records are in many of them.
#[test]
fn snapshots_that_overlap_are_told() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let list = folder.name("a.pc");
    let to = format!("pc={list}");
    let more = ["--max-insns", "5000", "--log", &to];
    for (every, overlap) in [("20", true), ("10007", false)] {
        let more = if overlap { &more[..] } else { &more[2..] };
        let dump = recorded(&folder, &elf, every, more);
        for format in ["branches", "blocks", "profgen", "autofdo", "brstack"] {
            let told = |args: &[&str]| {
                let output = run(&[args, &["-f", format]].concat());
                assert_eq!(output.status.code(), Some(0));
                text(&output.stderr).contains("snapshots repeat records of the previous one")
            };
            let overlap = overlap && format != "brstack";
            assert_eq!(told(&["ctr", &dump]), overlap, "{every} {format}");
            // Without cycles.
            let list = ["ctr", &list, "-e", &elf, "--every", every];
            assert_eq!(told(&list), overlap, "{every} {format}");
        }
    }
}

pub(crate) type Counts = BTreeMap<(u64, u64), u64>;

/// The ranges and branches that llvm-profgen counts in a text, as its reader
/// does. What is outside of the program, which is at 0x80000000, counts nothing. A line
/// with a number is how often the next one counts.
pub(crate) fn profgen_counts(text: &str) -> (Counts, Counts) {
    let (mut ranges, mut branches) = (Counts::new(), Counts::new());
    let lines = text.lines().filter(|line| !line.starts_with("PERF_RECORD"));
    let mut times = 1;
    for line in lines {
        if let Ok(count) = line.parse::<u64>() {
            times = count;
            continue;
        }
        let mut later = 0;
        for entry in line.split_whitespace().skip(1) {
            let mut fields = entry.split('/');
            let mut next = || {
                let hex = fields.next().unwrap().strip_prefix("0x").unwrap();
                let address = u64::from_str_radix(hex, 16).unwrap();
                let inside = (0x8000_0000..0x8001_0000).contains(&address);
                if inside { address } else { 0 }
            };
            let (source, target) = (next(), next());
            if source != 0 && target != 0 {
                *branches.entry((source, target)).or_default() += times;
            }
            if target != 0 && later != 0 {
                *ranges.entry((target, later)).or_default() += times;
            }
            later = source;
        }
        times = 1;
    }
    (ranges, branches)
}

/// The ranges and branches of a text for AutoFDO, each moved up.
pub(crate) fn autofdo_counts(text: &str, up: u64) -> (Counts, Counts) {
    let (mut ranges, mut branches) = (Counts::new(), Counts::new());
    for line in text.lines() {
        let (list, sign) = match line.contains("->") {
            true => (&mut branches, "->"),
            false => (&mut ranges, "-"),
        };
        let Some((from, rest)) = line.split_once(sign) else {
            continue;
        };
        let (to, count) = rest.split_once(':').unwrap();
        let address = |hex| u64::from_str_radix(hex, 16).unwrap() + up;
        let key = (address(from), address(to));
        list.insert(key, count.parse().unwrap());
    }
    (ranges, branches)
}

/// Both profiles count the same, with traps too, and traps are no calls.
#[test]
fn profgen_and_autofdo_count_the_same() {
    let folder = Folder::new();
    for name in ["recursion", "timer", "modes"] {
        let elf = program(&format!("{name}/{name}-rv64gc.elf"));
        let dump = recorded(&folder, &elf, "100", &[]);
        let text = written(&["ctr", &dump, "-f", "profgen"]);
        let (ranges, branches) = profgen_counts(&text);
        // The only segment is at the same distance from the file everywhere.
        let fdo = written(&["ctr", &dump, "-f", "autofdo"]);
        let first = |ranges: &Counts| ranges.first_key_value().unwrap().0.0;
        let up = first(&ranges) - first(&autofdo_counts(&fdo, 0).0);
        let (fdo_ranges, fdo_branches) = autofdo_counts(&fdo, up);
        assert!(ranges.len() > 20 && branches.len() > 20, "{name}");
        assert_eq!(ranges, fdo_ranges, "{name}");
        assert_eq!(branches, fdo_branches, "{name}");
        // Traps are in the records, and neither here nor there.
        let table = written(&["ctr", &dump, "-f", "branches"]);
        let traps = table.contains("  interrupt\n") || table.contains("  exception\n");
        assert_eq!(traps, name != "recursion", "{table}");
    }
}

/// Where only some modes are recorded, and with another program, there are ways
/// that cannot be: no report counts them, and each says so.
#[test]
fn ways_that_cannot_be_are_told_by_every_report() {
    let folder = Folder::new();
    let elf = program("modes/modes-rv64gc.elf");
    let right = program("recursion/recursion-rv64gc.elf");
    let json = folder.name("a.json");
    let other = recorded(&folder, &right, "1000", &[]);
    succeeds(&["ctr", &other, "-f", "json", "-o", &json]);
    let user = folder.file("user.toml", "[ctr]\ncontrol = [\"U\"]\n");
    let dump = recorded(&folder, &elf, "100", &["-c", &user]);
    let mut told = Vec::new();
    for format in ["blocks", "autofdo", "profgen"] {
        for (file, program) in [(&dump, &elf), (&json, &elf)] {
            let output = run(&["ctr", file, "-e", program, "-f", format]);
            assert_eq!(output.status.code(), Some(0));
            let message = text(&output.stderr).to_owned();
            assert!(message.starts_with("warning[HT0411]"), "{format} {message}");
            assert!(
                message.contains("only some modes were recorded"),
                "{message}"
            );
            told.push(message);
        }
    }
    // The same ways: neither has branches that were not taken.
    assert_eq!((&told[0], &told[1]), (&told[2], &told[3]));
    assert_eq!((&told[0], &told[1]), (&told[4], &told[5]));
}

/// Names are those of the program that each file is of. What counts by address
/// takes files of one program.
#[test]
fn files_of_several_programs() {
    let folder = Folder::new();
    let (one, two) = (Folder::new(), Folder::new());
    let first = program("recursion/recursion-rv64gc.elf");
    let second = program("sort/sort-rv64gc.elf");
    let a = recorded(&one, &first, "50K", &["--max-insns", "50K"]);
    let b = recorded(&two, &second, "50K", &["--max-insns", "50K"]);
    for format in ["table", "brstack", "brstack8", "brstacksym"] {
        let each = [&a, &b].map(|file| succeeds(&["ctr", file, "-f", format]));
        let both = succeeds(&["ctr", &a, &b, "-f", format]);
        let second = each[1].replace("snapshot 0:", "snapshot 1:");
        let line = if format == "table" { "\n" } else { "" };
        assert_eq!(both, format!("{}{line}{second}", each[0]), "{format}");
    }
    // The first of them has a program, or a later one.
    let json = folder.name("a.json");
    succeeds(&["ctr", &a, "-f", "json", "-o", &json]);
    for format in ["profgen", "autofdo", "blocks", "branches"] {
        let output = run(&["ctr", &a, &b, "-f", format]);
        assert_eq!(output.status.code(), Some(1), "{format}");
        assert_eq!(text(&output.stdout), "", "{format}");
        let message = text(&output.stderr);
        assert!(message.starts_with("error[HT0118]"), "{message}");
        assert!(
            message.contains("come from different programs"),
            "{message}"
        );
        succeeds(&["ctr", &a, &a, "-f", format]);
    }
    fails(&["ctr", &json, &a, &b, "-f", "blocks"], 1, "HT0118");
    // The wrong program for the second file: nothing is written of the first.
    for format in ["table", "profgen"] {
        let output = run(&["ctr", &a, &b, "-e", &first, "-f", format]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("HT0205"));
    }
}

/// Reports that need everything that was taken refuse less.
#[test]
fn reports_refuse_what_they_cannot_use() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = recorded(&folder, &elf, "10K", &["-c", &config("call-stacks.toml")]);
    for format in ["autofdo", "profgen", "blocks"] {
        let message = fails(&["ctr", &dump, "-f", format], 1, "HT0118");
        assert!(message.contains("fields that filter: RASEMU"), "{message}");
    }
    let dump = recorded(&folder, &elf, "10K", &["-c", &config("calls-only.toml")]);
    let message = fails(&["ctr", &dump, "-f", "blocks"], 1, "HT0118");
    assert!(
        message.contains("TKBRINH") && !message.contains("DIRCALLINH"),
        "{message}"
    );
    let message = fails(&["ctr", &dump, "-f", "folded"], 1, "HT0118");
    assert!(message.contains("holds no call stack"), "{message}");
    let branches = written(&["ctr", &dump, "-f", "branches", "--top", "3"]);
    assert!(
        branches.contains("direct call") && !branches.contains("return"),
        "{branches}"
    );
    // Without the program AutoFDO does not know where code is.
    let json = folder.name("a.json");
    let plain = recorded(&folder, &elf, "10K", &[]);
    succeeds(&["ctr", &plain, "-f", "json", "-o", &json]);
    fails(&["ctr", &json, "-f", "autofdo"], 2, "HT0304");
}

#[test]
fn predictions() {
    let folder = Folder::new();
    let elf = program("sort/sort-rv64gc.elf");
    let dump = recorded(&folder, &elf, "10K", &["-c", &config("branches.toml")]);
    let text = succeeds(&["ctr", &dump, "-f", "branches", "--top", "1"]);
    let first = text.lines().next().unwrap();
    let words: Vec<&str> = first.split(' ').collect();
    let (all, wrong): (u64, u64) = (words[0].parse().unwrap(), words[2].parse().unwrap());
    // Data in no order: some are guessed wrongly, and most are not.
    assert!(wrong > all / 100 && wrong < all / 3, "{first}");
    assert!(
        text.contains("  taken\n") && text.contains("  not taken\n"),
        "{text}"
    );
}

#[test]
fn hostile_dumps() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = recorded(&folder, &elf, "50K", &[]);
    let bytes = fs::read(&dump).unwrap();
    // Cut off: the rest is told, and with --strict it is an error.
    let cut = folder.file("cut.ctr", &bytes[..bytes.len() - 1]);
    let output = run(&["ctr", &cut, "-f", "brstack"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout).lines().count()),
        (Some(0), 5)
    );
    assert!(
        text(&output.stderr).starts_with("warning[CT0104]"),
        "{}",
        text(&output.stderr)
    );
    let strict = run(&["ctr", &cut, "-f", "brstack", "--strict"]);
    assert_eq!(strict.status.code(), Some(3));
    let facts = succeeds(&["info", &cut]);
    assert!(
        facts.contains("damaged     1 place\n") && facts.contains("CT0104: byte "),
        "{facts}"
    );
    fails(
        &["info", "--strict", &cut, "-o", &folder.name("x")],
        3,
        "CT0104",
    );
    // A snapshot that makes no sense is left out.
    let mut bad = bytes.clone();
    bad[12 + 4] = 9;
    let bad = folder.file("bad.ctr", bad);
    let output = run(&["ctr", &bad, "-f", "brstack"]);
    assert_eq!(text(&output.stdout).lines().count(), 5);
    assert!(text(&output.stderr).starts_with("warning[CT0201]"));
    // Nothing at all.
    let none = folder.file("none.ctr", &bytes[..10]);
    fails(&["ctr", &none], 5, "CT0104");
    let later = [&bytes[..8], &[2, 0, 0, 0]].concat();
    fails(&["ctr", &folder.file("later.ctr", later)], 5, "CT0102");
    let json = "{\"type\":\"header\",\"schema\":\"hartrace-ctr\",\"version\":1}\n{\"type\":\"snapshot\",\"pc\":true}\n";
    let message = fails(&["ctr", &folder.file("a.json", json)], 5, "CT0207");
    assert!(
        message.contains("line 2: object is not a snapshot: invalid type: boolean"),
        "{message}"
    );
}

#[test]
fn wrong_usage() {
    let folder = Folder::new();
    let elf = program("recursion/recursion-rv64gc.elf");
    let dump = recorded(&folder, &elf, "50K", &[]);
    let usage = |args: &[&str], words: &str| {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(words),
            "{}",
            text(&output.stderr)
        );
    };
    usage(
        &["run", &elf, "--ctr-every", "10"],
        "--every requires --trace ctr=FILE",
    );
    usage(
        &["run", &elf, "--trace", "ctr=a", "--check"],
        "--check requires",
    );
    usage(&["run", &elf, "--trace", "ctr"], "write --trace ctr=FILE");
    usage(
        &["run", &elf, "--trace", "lbr=a"],
        "the kinds are ntrace, etrace, tandem, ctr",
    );
    usage(
        &["run", &elf, "--trace", "ctr=a", "--ctr-every", "0"],
        "write a number of at least 1",
    );
    usage(
        &["ctr", &dump, "--every", "10"],
        "--every is for traces and logs",
    );
    usage(&["ctr", &dump, "--top", "10"], "--top requires");
    usage(&["ctr"], "<FILE>...");
    fails(&["ctr", &dump, "--sample", "6"], 2, "HT0310");
    fails(&["ctr", &dump, "--hart", "1"], 2, "HT0305");
    fails(&["ctr", &elf], 5, "HT0113");
    fails(&["ctr", &dump, "-o", &dump], 2, "HT0007");
    let contradiction = folder.file("c.toml", "[ctr]\ndepths = [16]\ndepth = 32\n");
    let args = ["run", &elf, "-c", &contradiction, "--trace", "ctr=-"];
    let message = fails(&args, 1, "HT0206");
    assert!(
        message.contains("depth 32 is not among the `depths`"),
        "{message}"
    );
}

#[test]
fn settings_are_shown() {
    let shown = succeeds(&["config", "show", "-c", &config("call-stacks.toml")]);
    for line in [
        "[ctr]",
        "depth = 256 ",
        "control = [\"U\", \"S\", \"M\", \"RASEMU\"] ",
        "cycle_bits = 4 ",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let elf = program("recursion/recursion-rv64gc.elf");
    let shown = succeeds(&["config", "show", "run", &elf, "--trace", "ctr=x"]);
    assert!(shown.contains("\n[ctr]\nversion = \"1.0\" "), "{shown}");
}
