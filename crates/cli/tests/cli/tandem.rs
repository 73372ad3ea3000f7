//! Tandem traces: `run --trace`, `encode`, `dump`, `decode`, `stats`, `convert`,
//! `info`, and containers.

use crate::etrace::small;
use crate::{Folder, RV32, RV64, fails, repository, run, succeeds, text};
use snapbox::{Assert, file};
use std::fs;

const LOG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../programs/sieve/sieve-rv64gc.log"
);

fn config(name: &str) -> String {
    let path = repository().join("configs/tandem").join(name);
    path.to_str().unwrap().to_owned()
}

/// A short run, traced and listed; the names of both files.
fn traced(folder: &Folder, program: &str, more: &[&str]) -> (String, String) {
    let (trace, pcs) = (folder.name("run.tandem"), folder.name("run.pc"));
    let (to_trace, to_pcs) = (format!("tandem={trace}"), format!("pc={pcs}"));
    let args = ["run", "-q", program, "--max-insns", "5K"];
    let to = ["--trace", &to_trace, "--log", &to_pcs];
    let output = run(&[&args[..], &to[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (trace, pcs)
}

#[test]
fn texts() {
    let folder = Folder::new();
    let program = small(&folder);
    let trace = folder.name("small.tandem");
    let to = format!("tandem={trace}");
    let args = ["run", "-q", &program, "--trace", &to, "--check"];
    succeeds(&[&args[..], &["--max-insns", "24"]].concat());
    let golden = Assert::new().action_env("SNAPSHOTS");
    let told = |args: &[&str]| {
        let args = [args, &[&trace]].concat();
        succeeds(&args).replace(&folder.name(""), "")
    };
    golden.eq(told(&["dump"]), file!["snapshots/tandem-dump.txt"]);
    golden.eq(
        told(&["dump", "--bytes"]),
        file!["snapshots/tandem-bytes.txt"],
    );
    golden.eq(
        told(&["dump", "-f", "json"]),
        file!["snapshots/tandem-groups.json"],
    );
    golden.eq(told(&["decode"]), file!["snapshots/tandem-decode.txt"]);
    golden.eq(
        told(&["decode", "-f", "json"]),
        file!["snapshots/tandem-events.json"],
    );
    golden.eq(told(&["stats"]), file!["snapshots/tandem-stats.txt"]);
    let json = told(&["stats", "-f", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "tandem");
    assert!(json["items"].as_array().unwrap().len() > 3, "{json}");
    let output = run(&["dump", "-f", "csv", &trace]);
    assert_eq!(output.status.code(), Some(2));
}

/// A pc at the end of the address space goes on at its beginning.
#[test]
fn a_pc_that_wraps_is_dumped() {
    let folder = Folder::new();
    let trace = folder.name("wraps.tandem");
    let mut bytes = vec![1, 11, 7, 10];
    bytes.extend((u64::MAX - 1).to_le_bytes());
    bytes.push(2);
    for _ in 0..2 {
        bytes.extend([1, 3, 17, 0x13, 0, 0, 0, 2]);
    }
    fs::write(&trace, bytes).unwrap();
    let output = run(&["dump", "-c", &config("full.toml"), &trace]);
    let dump = text(&output.stdout);
    assert!(dump.contains("1 @0xfffffffffffffffe  "), "{dump}");
    assert!(dump.contains("2 @0x2  "), "{dump}");
}

/// Every program, with every ready setting: what is decoded is what was done.
#[test]
fn every_program_comes_back() {
    let folder = Folder::new();
    let ready = ["full.toml", "compact.toml", "bluespec.toml", "partial.toml"];
    for (i, program) in crate::trace::programs().iter().enumerate() {
        let program = program.to_str().unwrap();
        let trace = folder.name("t");
        let to = format!("tandem={trace}");
        let config = config(ready[i % ready.len()]);
        let limit = ["--max-insns", "10K", "--trace", &to, "--check"];
        let output = run(&[&["run", program, "-c", &config], &limit[..]].concat());
        let message = text(&output.stderr);
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 10)),
            "{program} {config}: {message}"
        );
        assert!(message.contains("decoded and equal: "), "{message}");
    }
}

#[test]
fn a_trace_knows_its_program_and_settings() {
    let folder = Folder::new();
    let (trace, pcs) = traced(&folder, RV64, &["-c", &config("compact.toml")]);
    let names = ["run.pc", "run.tandem", "run.tandem.toml"];
    assert_eq!(folder.entries(), names);
    let sidecar = fs::read_to_string(folder.path("run.tandem.toml")).unwrap();
    assert!(sidecar.starts_with("[trace]\nformat = \"tandem\"\nversion = \"2018-11-20\"\n"));
    assert!(sidecar.contains("sha256 = ") && sidecar.contains("incremental = true"));
    assert!(!sidecar.contains("[ntrace]"), "{sidecar}");
    let list = fs::read_to_string(pcs).unwrap();
    assert!(succeeds(&["decode", &trace, "-f", "pc"]) == list);
    let shown = succeeds(&["info", &trace]);
    assert!(
        shown.starts_with(&format!("{trace}: tandem trace\n")),
        "{shown}"
    );
    assert!(shown.contains(": same\n"), "{shown}");
    let json = succeeds(&["info", "-f", "json", &trace]);
    let json: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!(json["type"], "tandem");
    assert!(json["trace"]["messages"].as_u64().unwrap() > 5000);
}

/// Without a sidecar the bytes tell what they are, and the instructions are in
/// the trace.
#[test]
fn nothing_but_the_trace_is_needed() {
    let ready = ["full.toml", "compact.toml", "bluespec.toml"];
    for (program, ready) in [(RV64, ready[0]), (RV32, ready[1]), (RV32, ready[2])] {
        let folder = Folder::new();
        // A start, which the Bluespec cores do not have.
        let start = folder.file("start.toml", "[tandem]\nstart = true\n");
        let settings = config(ready);
        let (trace, pcs) = traced(&folder, program, &["-c", &settings, "-c", &start]);
        fs::remove_file(folder.path("run.tandem.toml")).unwrap();
        let list = fs::read_to_string(pcs).unwrap();
        let output = run(&["decode", &trace, "-f", "pc"]);
        let message = text(&output.stderr);
        assert!(message.starts_with("warning[HT0401]: "), "{message}");
        let wide = if program == RV64 {
            "XLEN 64"
        } else {
            "XLEN 32"
        };
        assert!(message.contains(wide), "{message}");
        let odd = message.contains("effective addresses of XLEN");
        assert_eq!(odd, ready == "bluespec.toml", "{message}");
        assert!(text(&output.stdout) == list, "{ready}");
        let other = folder.name("run.etrace");
        let args = ["convert", "-q", &trace, "--to", "etrace", "--check"];
        succeeds(&[&args[..], &["-o", &other]].concat());
    }
}

/// From tandem to the others and back; what they do not tell is absent.
#[test]
fn conversions() {
    let folder = Folder::new();
    let program = small(&folder);
    let trace = folder.name("a.tandem");
    let to = format!("tandem={trace}");
    succeeds(&["run", "-q", &program, "--trace", &to]);
    for kind in ["ntrace", "etrace"] {
        let (there, back) = (folder.name("there"), folder.name("back"));
        let args = ["convert", "-q", &trace, "--to", kind, "--check", "-o"];
        succeeds(&[&args[..], &[&there]].concat());
        let args = ["convert", "-q", &there, "--to", "tandem", "--check", "-o"];
        succeeds(&[&args[..], &[&back]].concat());
        let sidecar = fs::read_to_string(folder.path("back.toml")).unwrap();
        assert!(sidecar.contains("\"csr\", \"gpr\", \"fpr\""), "{sidecar}");
        let pcs = |trace: &str| succeeds(&["decode", trace, "-f", "pc"]);
        // E-Trace does not count the rounds of the last loop.
        let (old, new) = (pcs(&trace), pcs(&back));
        assert!(old.starts_with(&new) && !new.is_empty(), "{kind}");
    }
}

#[test]
fn spike_is_a_core_under_test() {
    let folder = Folder::new();
    let trace = folder.name("s.tandem");
    let to = ["--to", "tandem", "-o", &trace];
    let args = ["encode", "-q", LOG, "-e", RV64, "--check", "--load"];
    succeeds(&[&args[..], &to].concat());
    let sidecar = fs::read_to_string(folder.path("s.tandem.toml")).unwrap();
    assert!(sidecar.contains("machine = \"spike\""), "{sidecar}");
    let dump = succeeds(&["dump", &trace]);
    let loaded = dump.lines().filter(|l| l.contains("  init; store"));
    assert!(loaded.count() > 100, "{dump}");
    assert!(dump.contains("  init; pc=0x1000; priv=M\n"), "{dump}");
    assert!(dump.contains(" @0x1000  pc+; 00000297 auipc t0,0x0; t0=0x1000\n"));
    // No program is needed, but for --load.
    let args = ["encode", "-q", LOG, "--check"];
    succeeds(&[&args[..], &to].concat());
}

/// Traps as Spike tells them: epc, cause and value, but not the status.
#[test]
fn what_spike_does_not_tell_is_absent() {
    let folder = Folder::new();
    let program = small(&folder);
    let log = folder.name("a.log");
    let to_log = format!("spike-traps={log}");
    succeeds(&["run", "-q", &program, "--log", &to_log]);
    let trace = folder.name("a.tandem");
    let args = ["encode", "-q", &log, "-e", &program, "--to", "tandem"];
    succeeds(&[&args[..], &["--check", "-o", &trace]].concat());
    let sidecar = fs::read_to_string(folder.path("a.tandem.toml")).unwrap();
    assert!(sidecar.contains("\"trap.mstatus\""), "{sidecar}");
    let dump = succeeds(&["dump", &trace]);
    let trap = dump.lines().find(|l| l.contains("mcause=0xb")).unwrap();
    assert!(
        trap.contains("mepc=0x") && !trap.contains("mstatus"),
        "{trap}"
    );
}

#[test]
fn logs_without_effects_are_refused() {
    let folder = Folder::new();
    let (_, pcs) = traced(&folder, RV64, &[]);
    let out = folder.name("o");
    let to = ["-e", RV64, "--to", "tandem", "-o", &out];
    let message = fails(&[&["encode", &pcs], &to[..]].concat(), 1, "HT0114");
    assert!(message.contains("pc list"), "{message}");
    let whole = fs::read_to_string(LOG).unwrap();
    let is_commit = |line: &&str| line.starts_with("core   0: 3 ");
    let lines = |commits| {
        let lines = whole.lines().filter(|line| is_commit(line) == commits);
        lines.collect::<Vec<_>>().join("\n") + "\n"
    };
    let listing = folder.file("l.log", lines(false));
    let message = fails(&[&["encode", &listing], &to[..]].concat(), 1, "HT0114");
    assert!(message.contains("`spike -l` without"), "{message}");
    let commits = folder.file("c.log", lines(true));
    let output = run(&[&["encode", &commits], &to[..]].concat());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("without `-l`"), "{message}");
}

#[test]
fn containers() {
    let folder = Folder::new();
    let (plain, pcs) = traced(&folder, RV64, &["--load"]);
    let list = fs::read_to_string(&pcs).unwrap();
    let stream = fs::read(&plain).unwrap();
    for compress in [&[][..], &["--compress"]] {
        let packed = folder.name("packed");
        let to = format!("tandem={packed}");
        let args = ["run", "-q", RV64, "--max-insns", "5K", "--trace", &to];
        let output = run(&[&args[..], &["--load", "--check", "--container"], compress].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        // It says itself how it is read.
        fs::remove_file(folder.path("packed.toml")).unwrap();
        let size = fs::metadata(&packed).unwrap().len();
        assert_eq!(size < stream.len() as u64 / 2, !compress.is_empty());
        assert!(succeeds(&["decode", &packed, "-f", "pc"]) == list);
        let shown = succeeds(&["info", &packed]);
        assert!(shown.contains(": tandem trace in a container\n"), "{shown}");
        assert!(succeeds(&["stats", &packed]).contains("decoded    5000 instructions"));
        let dump = succeeds(&["dump", &packed]);
        assert!(dump.contains("  hart 0  0  init; store64 [0x80000000]"));
        // Out of it and into another.
        let back = folder.name("back");
        succeeds(&["convert", "-q", &packed, "--to", "tandem", "-o", &back]);
        assert!(fs::read(&back).unwrap() == stream);
        let again = folder.name("again");
        let args = ["convert", "-q", &back, "--to", "tandem", "--container"];
        succeeds(&[&args[..], compress, &["-o", &again]].concat());
        succeeds(&["convert", "-q", &again, "--to", "tandem", "-o", &back]);
        assert!(fs::read(&back).unwrap() == stream);
    }
}

/// A log of two harts: a container has room for both, and each gets a file of
/// its own again.
#[test]
fn harts_have_streams_of_their_own() {
    let folder = Folder::new();
    let whole = fs::read_to_string(LOG).unwrap();
    let other = whole.replace("core   0:", "core   1:");
    let both: Vec<&str> = whole.lines().chain(other.lines()).collect();
    let log = folder.file("both.log", both.join("\n") + "\n");
    let out = folder.name("both.tandem");
    let to = ["--to", "tandem", "-o", &out];
    fails(&[&["encode", &log], &to[..]].concat(), 2, "HT0305");
    let args = ["encode", "-q", &log, "--container", "--compress", "--check"];
    succeeds(&[&args[..], &to].concat());
    let events = succeeds(&["decode", &out, "-f", "json"]);
    assert!(events.contains("\"hart\":0") && events.contains("\"hart\":1"));
    let apart = folder.name("apart");
    succeeds(&["convert", "-q", &out, "--to", "tandem", "-o", &apart]);
    let streams = ["apart.0", "apart.1"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(streams[0] == streams[1] && !streams[0].is_empty());
    let one = folder.name("one");
    let args = ["convert", "-q", &out, "--to", "tandem", "--hart", "1"];
    succeeds(&[&args[..], &["-o", &one]].concat());
    assert!(fs::read(&one).unwrap() == streams[1]);
    let args = ["convert", &out, "--to", "tandem", "--hart", "2", "-o", &one];
    fails(&args, 2, "HT0305");
}

#[test]
fn damage_is_told_with_its_place() {
    let folder = Folder::new();
    let (trace, _) = traced(&folder, RV64, &[]);
    let mut bytes = fs::read(&trace).unwrap();
    bytes[1000..1004].fill(0xff);
    fs::write(&trace, &bytes).unwrap();
    let output = run(&["decode", &trace, "-f", "pc"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("warning[TP0"), "{message}");
    fails(
        &["stats", "-q", &trace, "--strict", "-o", &folder.name("s")],
        3,
        "HT0111",
    );
    let dump = succeeds(&["dump", &trace]);
    assert!(dump.contains("(bad) TP01"), "{dump}");
    // A container that is cut off, and one whose parameters are gone.
    let packed = folder.name("packed");
    let args = [
        "convert",
        "-q",
        &trace,
        "--to",
        "tandem",
        "--container",
        "-o",
    ];
    succeeds(&[&args[..], &[&packed]].concat());
    let whole = fs::read(&packed).unwrap();
    fs::write(&packed, &whole[..whole.len() - 28]).unwrap();
    let output = run(&["stats", &packed]);
    assert!(text(&output.stderr).contains("warning[TP0409]"));
    fs::write(&packed, &whole[..100]).unwrap();
    fails(&["decode", &packed], 5, "TP0403");
    fails(&["info", &packed], 5, "TP0403");
}

#[test]
fn settings_that_do_not_go_together() {
    let folder = Folder::new();
    let to = format!("tandem={}", folder.name("t"));
    let args = |config: &str| {
        let config = folder.file("c.toml", config);
        ["run", "-q", RV64, "--trace", &to, "-c", &config].map(str::to_owned)
    };
    let filter = args("[filter]\nmodes = [\"M\"]\n");
    fails(&filter, 1, "HT0206");
    fails(&args("[tandem]\nmlen = 34\n"), 1, "HT0206");
    fails(&args("[tandem]\nxlen = 32\n"), 1, "HT0206");
    for wrong in [
        &["run", RV64, "--load"][..],
        &["run", RV64, "--trace", &to, "--compress"],
        &["encode", LOG, "--to", "ntrace", "--container"],
        &["convert", LOG, "--to", "etrace", "--container"],
    ] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let shown = succeeds(&["config", "show", "--isa", "rv32imac"]);
    let tandem = shown.split("[tandem]").nth(1).unwrap();
    for line in ["xlen = 32", "flen = 0", "mlen = 34"] {
        assert!(tandem.contains(line), "{tandem}");
    }
}
