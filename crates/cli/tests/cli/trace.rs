//! Traces: `encode`, `dump`, `decode`, `stats`, `run --trace`.

use crate::{Folder, RV32, RV64, fails, repository, run, succeeds, text};
use std::fs;
use std::path::PathBuf;

/// Every program of the repository, but the one whose code changes: a trace of it cannot
/// be decoded with its ELF file alone.
pub(crate) fn programs() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(repository().join("programs")).unwrap() {
        let folder = folder.unwrap().path();
        let Ok(files) = fs::read_dir(&folder) else {
            continue;
        };
        if folder.ends_with("selfmod") {
            continue;
        }
        let files = files.map(|f| f.unwrap().path());
        found.extend(files.filter(|f| f.extension().is_some_and(|e| e == "elf")));
    }
    found.sort();
    assert!(found.len() > 10);
    found
}

fn config(name: &str) -> String {
    let path = repository().join("configs/ntrace").join(name);
    path.to_str().unwrap().to_owned()
}

/// A short run of `sieve`, traced and listed.
fn traced(folder: &Folder, more: &[&str]) -> (String, String) {
    let (trace, pcs) = (folder.name("run.ntrace"), folder.name("run.pc"));
    let mut args = vec!["run", "-q", RV64, "--max-insns", "20K"];
    let (to_trace, to_pcs) = (format!("ntrace={trace}"), format!("pc={pcs}"));
    args.extend(["--trace", &to_trace, "--log", &to_pcs]);
    args.extend(more);
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (trace, pcs)
}

/// Every program, with plain settings and with every compression: what is
/// decoded is what was done.
/// `--check` compares what passes the filter, and the size is that of what is
/// traced.
/// A program without symbols is the same program; other code is not.
/// The wrong program is one warning, not a row of gaps.
#[test]
fn a_trace_of_another_program_is_one_sentence() {
    let folder = Folder::new();
    let timer = repository().join("programs/timer/timer-rv64gc.elf");
    let timer = timer.to_str().unwrap();
    let settings = [
        ("ntrace", "mode = \"htm\""),
        ("etrace", "version = \"2.0\""),
    ];
    for (kind, setting) in settings {
        let trace = folder.name(kind);
        let to = format!("{kind}={trace}");
        assert_eq!(
            run(&["run", "-q", timer, "--trace", &to]).status.code(),
            Some(0)
        );
        fs::remove_file(format!("{trace}.toml")).unwrap();
        let config = folder.file("c.toml", format!("[{kind}]\n{setting}\n"));
        for command in ["decode", "stats"] {
            let args = [command, &trace, "-e", RV64, "-c", &config];
            let output = run(&args);
            let words = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{words}");
            assert!(words.starts_with("warning[HT0110]: "), "{words}");
            assert!(
                words.contains("probably a trace of another program"),
                "{words}"
            );
            assert_eq!(words.matches("warning[").count(), 1, "{words}");
            let output = run(&[&args[..], &["--strict"]].concat());
            assert_eq!(output.status.code(), Some(3));
            assert!(text(&output.stderr).starts_with("error[HT0110]: "));
        }
        let args = ["decode", &trace, "-e", timer, "-c", &config, "--strict"];
        succeeds(&args);
    }
}

#[test]
fn a_stripped_build_is_the_same_program() {
    let folder = Folder::new();
    let whole = fs::read(RV64).unwrap();
    let original = folder.file("a.elf", &whole);
    let traces = ["ntrace", "etrace", "tandem", "ctr"].map(|kind| {
        let name = folder.name(kind);
        let to = format!("{kind}={name}");
        succeeds(&["run", "-q", &original, "--trace", &to]);
        name
    });
    // The section headers and what they name, such as symbols, are gone.
    let headers = u64::from_le_bytes(whole[0x28..0x30].try_into().unwrap());
    let mut bare = whole[..headers as usize].to_vec();
    bare[0x28..0x30].fill(0);
    bare[0x3a..0x40].fill(0);
    let stripped = folder.file("stripped.elf", &bare);
    let [ntrace, etrace, tandem, ctr] = &traces;
    for trace in [ntrace, etrace] {
        let of = |elf: &str| succeeds(&["decode", "-q", trace, "-e", elf, "-f", "pc"]);
        assert!(of(&original) == of(&stripped));
    }
    assert_eq!(
        run(&["verify", "-q", tandem, "-e", &stripped])
            .status
            .code(),
        Some(0)
    );
    succeeds(&["ctr", "-q", ctr, "-e", &stripped]);
    // Sidecars of older versions have the hash of the file.
    let sidecar = fs::read_to_string(format!("{ntrace}.toml")).unwrap();
    let (before, rest) = sidecar.split_once("code_sha256 = \"").unwrap();
    let digest = succeeds(&["info", &original]);
    let digest = digest
        .lines()
        .find_map(|l| l.strip_prefix("  sha256      "))
        .unwrap();
    let old = format!("{before}sha256 = \"{digest}{}", &rest[64..]);
    fs::write(format!("{ntrace}.toml"), old).unwrap();
    succeeds(&["decode", "-q", ntrace, "-f", "pc"]);
    fails(
        &["decode", "-q", ntrace, "-e", &stripped, "-f", "pc"],
        1,
        "HT0205",
    );
    // Other code: where it differs.
    let mut other = whole.clone();
    // The first header of a segment that is loaded, and its offset.
    let header = (0x40..)
        .step_by(56)
        .find(|at| whole[*at] == 1 && whole[*at + 3] == 0);
    let at = header.unwrap() + 8;
    let code = u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    other[code + 4] ^= 0x80;
    let other = folder.file("other.elf", &other);
    let message = fails(&["decode", "-q", etrace, "-e", &other], 1, "HT0205");
    assert!(
        message.contains("first at 0x80000004 <_start+0x4>"),
        "{message}"
    );
}

#[test]
fn a_filtered_trace_is_checked_as_far_as_it_goes() {
    let folder = Folder::new();
    let timer = repository().join("programs/timer/timer-rv64gc.elf");
    let modes = repository().join("programs/modes/modes-rv64gc.elf");
    for (elf, filter) in [
        (
            &timer,
            "[filter]\naddress = [\"handle_timer\", \"printf..+4\"]",
        ),
        (&timer, "[filter]\naddress = [\"0x80000000..0x80000400\"]"),
        (&timer, "[[filter.any]]\ntrap = \"interrupt\""),
        (&modes, "[filter]\nmodes = [\"U\"]"),
    ] {
        let config = folder.file("filter.toml", filter);
        let names = [folder.name("t.ntrace"), folder.name("t.etrace")];
        let to = [
            format!("ntrace={}", names[0]),
            format!("etrace={}", names[1]),
        ];
        let elf = elf.to_str().unwrap();
        let args = [
            "run", elf, "-c", &config, "--trace", &to[0], "--trace", &to[1],
        ];
        let output = run(&[&args[..], &["--check"]].concat());
        let words = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{filter}: {words}");
        for (name, line) in names.iter().zip(words.lines().skip(1)) {
            // N of M instructions traced, and as many compared.
            let (traced, rest) = line.split_once(": ").unwrap().1.split_once(" of ").unwrap();
            assert!(rest.contains(" instructions traced, "), "{line}");
            assert!(
                rest.contains(&format!("equal: {traced} instructions")),
                "{line}"
            );
            let bytes = fs::metadata(name).unwrap().len() as f64;
            let bits = bytes * 8.0 / traced.parse::<f64>().unwrap();
            assert!(
                rest.contains(&format!(", {bits:.3} bits/instruction")),
                "{line}"
            );
            let pcs = succeeds(&["decode", "-q", name, "-f", "pc"]);
            assert_eq!(pcs.lines().count().to_string(), traced);
        }
    }
    let config = folder.file("filter.toml", "[filter]\naddress = [\"handle_tmer\"]");
    let to = format!("ntrace={}", folder.name("t.ntrace"));
    let args = [
        "run",
        timer.to_str().unwrap(),
        "-c",
        &config,
        "--trace",
        &to,
    ];
    let message = fails(&args, 2, "HT0309");
    assert!(message.contains("did you mean `handle_timer`"), "{message}");
}

#[test]
fn every_program_comes_back() {
    let folder = Folder::new();
    for program in programs() {
        let program = program.to_str().unwrap();
        for name in ["htm-full.toml", "btm.toml"] {
            let trace = format!("ntrace={}", folder.name("t"));
            let pcs = format!("pc={}", folder.name("pc"));
            let config = config(name);
            let output = run(&[
                "run",
                program,
                "--max-insns",
                "30K",
                "-c",
                &config,
                "--trace",
                &trace,
                "--check",
                "--log",
                &pcs,
            ]);
            let message = text(&output.stderr);
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 10)), "{program} {name}: {message}");
            assert!(
                message.contains("decoded and equal: "),
                "{program}: {message}"
            );
            let decoded = run(&["decode", &folder.name("t"), "-f", "pc"]);
            assert_eq!(decoded.status.code(), Some(0), "{}", text(&decoded.stderr));
            assert!(
                decoded.stdout == fs::read(folder.path("pc")).unwrap(),
                "{program} {name}"
            );
        }
    }
}

#[test]
fn a_trace_knows_its_program_and_settings() {
    let folder = Folder::new();
    let (trace, pcs) = traced(&folder, &["-c", &config("btm.toml")]);
    assert_eq!(
        folder.entries(),
        ["run.ntrace", "run.ntrace.toml", "run.pc"]
    );
    let sidecar = fs::read_to_string(folder.path("run.ntrace.toml")).unwrap();
    assert!(sidecar.starts_with("[trace]\nformat = \"ntrace\"\nversion = \"1.0\"\n"));
    assert!(sidecar.contains("sha256 = ") && sidecar.contains("mode = \"btm\""));
    assert_eq!(
        succeeds(&["decode", &trace, "-f", "pc"]),
        fs::read_to_string(pcs).unwrap()
    );
    let shown = succeeds(&["info", &trace]);
    assert!(shown.starts_with(&format!("{trace}: N-Trace\n")), "{shown}");
    assert!(
        shown.contains("branch trace") && shown.contains(": same\n"),
        "{shown}"
    );
    let json: serde_json::Value = serde_json::from_str(
        succeeds(&["info", "-f", "json", &trace])
            .lines()
            .nth(1)
            .unwrap(),
    )
    .unwrap();
    assert_eq!(json["type"], "ntrace");
    assert!(json["trace"]["messages"].as_u64().unwrap() > 100);
    let other = repository().join("programs/sort/sort-rv64gc.elf");
    fails(
        &["decode", &trace, "-e", other.to_str().unwrap()],
        1,
        "HT0205",
    );
    fails(&["decode", &trace, "-e", RV32], 2, "HT0303");
}

/// From a pc list, a Spike log and ingress rows: the same trace.
#[test]
fn logs_are_encoded() {
    let folder = Folder::new();
    let logs = [("pc", "a.pc"), ("spike", "a.log"), ("ingress", "a.csv")];
    let mut args: Vec<String> = ["run", "-q", RV64, "--max-insns", "5K"]
        .map(str::to_owned)
        .to_vec();
    for (kind, file) in logs {
        args.extend(["--log".to_owned(), format!("{kind}={}", folder.name(file))]);
    }
    assert_eq!(run(&args).status.code(), Some(0));
    let mut traces = Vec::new();
    for (_, file) in logs {
        let trace = folder.name("t");
        let output = run(&[
            "encode",
            &folder.name(file),
            "-e",
            RV64,
            "--to",
            "ntrace",
            "--check",
            "-o",
            &trace,
        ]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(
            message.contains("5000 instructions, ") && message.contains(" bits/instruction"),
            "{message}"
        );
        assert!(
            message.contains("decoded and equal: 5000 instructions"),
            "{message}"
        );
        traces.push(fs::read(&trace).unwrap());
        let pcs = succeeds(&["decode", &trace, "-f", "pc"]);
        assert!(pcs == fs::read_to_string(folder.path("a.pc")).unwrap());
    }
    assert!(traces.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn any_number_of_threads_and_streams_give_the_same_text() {
    let folder = Folder::new();
    let trace = folder.name("t");
    let to = format!("ntrace={trace}");
    let btm = config("btm.toml");
    let program = repository().join("programs/sort/sort-rv64gc.elf");
    let program = program.to_str().unwrap();
    let limit = "800K";
    let args = [
        "run",
        "-q",
        program,
        "--max-insns",
        limit,
        "-c",
        &btm,
        "--trace",
        &to,
    ];
    assert_eq!(run(&args).status.code(), Some(0));
    assert!(fs::metadata(&trace).unwrap().len() > 1 << 18);
    let stats = |threads| succeeds(&["stats", &trace, "--threads", threads]);
    assert_eq!(stats("1"), stats("3"));
    for format in ["pc", "text", "json"] {
        let one = run(&["decode", &trace, "-f", format, "--threads", "1"]).stdout;
        assert!(one.len() > 1 << 20);
        for threads in ["2", "5"] {
            let more = run(&["decode", &trace, "-f", format, "--threads", threads]).stdout;
            assert!(one == more, "{format}, {threads} threads");
        }
    }
}

/// Two harts in one stream, and each of them out of it again.
#[test]
fn several_harts_share_a_stream() {
    let folder = Folder::new();
    let log = folder.name("a.log");
    let (spike, pcs) = (
        format!("spike={log}"),
        format!("pc={}", folder.name("a.pc")),
    );
    let args = [
        "run",
        "-q",
        RV64,
        "--max-insns",
        "2K",
        "--log",
        &spike,
        "--log",
        &pcs,
    ];
    assert_eq!(run(&args).status.code(), Some(0));
    let one = fs::read_to_string(&log).unwrap();
    let both: String = one
        .lines()
        .flat_map(|l| [l.to_owned(), l.replace("core   0", "core   1")])
        .map(|l| l + "\n")
        .collect();
    let log = folder.file("b.log", both);
    let trace = folder.name("t");
    let encode = [
        "encode", &log, "-q", "-e", RV64, "--to", "ntrace", "-o", &trace,
    ];
    let message = fails(&encode, 2, "HT0305");
    assert!(message.contains("several harts: 0, 1"), "{message}");
    let room = folder.file("c.toml", "[ntrace]\nsrc_bits = 3\nsrc_id = 2\n");
    succeeds(&[&encode[..], &["-c", &room, "--check"]].concat());
    let list = fs::read_to_string(folder.path("a.pc")).unwrap();
    for hart in ["0", "1"] {
        assert!(succeeds(&["decode", &trace, "-f", "pc", "--hart", hart]) == list);
    }
    let listing = succeeds(&["decode", &trace]);
    assert!(
        listing
            .lines()
            .all(|l| l.starts_with("0   ") || l.starts_with("1   "))
    );
    let dump = succeeds(&["dump", &trace]);
    assert!(dump.contains("  2    ProgTraceSync") && dump.contains("  3    ProgTraceSync"));
    let stats = succeeds(&["stats", &trace]);
    assert!(
        stats.contains("\nsource 2 ") && stats.contains("\nsource 3 "),
        "{stats}"
    );
    let output = run(&["decode", &trace, "-f", "pc", "--hart", "5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error[HT0305]: "));
}

#[test]
fn messages_are_shown() {
    let folder = Folder::new();
    let mut bytes = vec![0xff, 0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff, 0xff];
    bytes.extend([56 << 2, 0x07, 0x02, 0x03, 0x6c, 0x0f, 0x0c]);
    let trace = folder.file("t", bytes);
    let settings = "[ntrace]\nversion = \"1.0\"\nignore_tcodes = [56]\n";
    let plain = folder.file("c.toml", settings);
    let lines = succeeds(&["dump", &trace, "-c", &plain]);
    let expected = "\
        00000000  (idle) 1\n\
        00000001  IndirectBranchHist BTYPE=0x0 ICNT=0x7d UADDR=0x7 HIST=0xffe\n\
        00000007  (idle) 1\n\
        00000008  Vendor(56) DATA=0x1\n\
        0000000a  (bad) NT0101: byte with the reserved MSEO=10: 02 03\n\
        0000000c  ResourceFull RCODE=0x3 RDATA=0x0  (bad) NT0206: ResourceFull with an unknown \
        RCODE: 6c 0f\n\
        0000000e  (bad) NT0105: the trace ends inside a message: 0c\n";
    assert_eq!(lines, expected);
    let table = succeeds(&["dump", &trace, "--bytes", "-c", &plain]);
    let expected = "\
        offset    byte  MDO     MSEO  decoded\n\
        00000000  0xFF  111111  11    Idle\n\
        00000001  0x70  011100  00    TCODE[6]=28 - IndirectBranchHist\n\
        00000002  0xD0  110100  00    BTYPE[2]=0x0\n\
        00000003  0x1D  000111  01    ICNT[10]=0x7D\n\
        00000004  0x1D  000111  01    UADDR[6]=0x7\n\
        00000005  0xF8  111110  00\n\
        00000006  0xFF  111111  11    HIST[12]=0xFFE\n\
        00000007  0xFF  111111  11    Idle\n";
    assert!(table.starts_with(expected), "{table}");
    assert_eq!(table.lines().count(), 16);
    let json = succeeds(&["dump", &trace, "-f", "json", "-c", &plain]);
    let values: Vec<serde_json::Value> = json
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(values[0]["schema"], "hartrace-messages");
    assert_eq!(values[2]["name"], "IndirectBranchHist");
    assert_eq!(values[2]["fields"]["HIST"], "0xffe");
    assert_eq!(values[2]["bytes"], "70d01d1df8ff");
    assert_eq!(values[5]["type"], "bad");
    assert_eq!(values[6]["fault"], "NT0206");
    fails(&["dump", &trace], 5, "HT0105");
}

#[test]
fn settings_are_guessed_aloud() {
    let folder = Folder::new();
    let (trace, pcs) = traced(&folder, &[]);
    fs::remove_file(folder.path("run.ntrace.toml")).unwrap();
    let output = run(&["decode", &trace, "-e", RV64, "-f", "pc"]);
    let message = text(&output.stderr);
    assert!(message.starts_with("warning[HT0401]: "), "{message}");
    assert!(message.contains("no SRC, branch history"), "{message}");
    assert!(text(&output.stdout) == fs::read_to_string(pcs).unwrap());
    let shown = succeeds(&["info", &trace]);
    assert!(shown.starts_with(&format!("{trace}: N-Trace\n")), "{shown}");
    fails(&["decode", &trace], 2, "HT0304");
    // Text is no trace, and neither is noise.
    fails(&["decode", RV64, "-e", RV64], 5, "HT0113");
    let noise = folder.file("noise", [0x80, 0x12, 0x9a, 0x02, 0xfe, 0x66].repeat(99));
    fails(&["decode", &noise, "-e", RV64], 5, "HT0105");
    let empty = folder.file("empty", "");
    fails(&["stats", &empty], 5, "HT0105");
}

/// Damage in the middle, and a start inside a message.
#[test]
fn gaps_are_told() {
    let folder = Folder::new();
    let often = folder.file("o.toml", "[ntrace]\nsync_max = 0\n");
    let (trace, pcs) = traced(&folder, &["-c", &often]);
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] = 0x02;
    fs::write(&trace, &bytes).unwrap();
    let output = run(&["decode", &trace, "-f", "pc"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("warning[NT"), "{message}");
    assert!(message.contains("byte 0x"), "{message}");
    let list = fs::read_to_string(&pcs).unwrap();
    let decoded = text(&output.stdout);
    assert!(decoded.len() < list.len() && decoded.len() > list.len() / 2);
    assert!(list.ends_with(&decoded[decoded.len() - 170..]));
    let strict = run(&["decode", &trace, "-f", "text", "--strict"]);
    assert_eq!(strict.status.code(), Some(3));
    assert!(text(&strict.stderr).contains("error[HT0111]: "));
    assert!(text(&strict.stdout).contains("\n-- gap at byte 0x"));
    let json = run(&["decode", &trace, "-f", "json"]);
    assert!(text(&json.stdout).contains("{\"type\":\"gap\",\"hart\":0,\"code\":\"NT"));
    let stats = run(&["stats", &trace]);
    assert!(!text(&stats.stdout).contains("gaps       0\n"));

    // Only what stands in front of the first full address.
    fs::write(&trace, &bytes[9..30]).unwrap();
    let nothing = run(&["decode", &trace, "-q", "-f", "pc"]);
    assert_eq!(nothing.status.code(), Some(5));
    assert!(text(&nothing.stderr).starts_with("error[HT0112]: "));
}

#[test]
fn what_a_trace_is_made_of() {
    let folder = Folder::new();
    let (trace, _) = traced(&folder, &[]);
    let stats = succeeds(&["stats", &trace]);
    assert!(stats.contains("\nProgTraceSync "), "{stats}");
    assert!(
        stats.contains("\ndecoded    20000 instructions\n"),
        "{stats}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&succeeds(&["stats", &trace, "-f", "json"])).unwrap();
    assert_eq!(json["decoded"]["instructions"], 20000);
    let kinds = json["kinds"].as_array().unwrap();
    let sum: u64 = kinds.iter().map(|k| k["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, fs::metadata(&trace).unwrap().len());
    // Without its program there is less to tell.
    let sidecar = fs::read_to_string(folder.path("run.ntrace.toml")).unwrap();
    let sidecar = sidecar.replace("sieve-rv64gc.elf", "gone.elf");
    folder.file("run.ntrace.toml", sidecar);
    let output = run(&["stats", &trace]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).starts_with("warning[HT0001]: "));
    assert!(!text(&output.stdout).contains("decoded"));
}

/// The reference encoder's ways are decoded by the reference's rules: its calls
/// and returns are not everybody's (`jr t0` in `sieve`).
#[test]
fn as_the_reference_encodes() {
    let folder = Folder::new();
    for n in 0..5 {
        let config = config(&format!("nexrv-all{n}.toml"));
        for program in ["sieve/sieve-rv64gc.elf", "recursion/recursion-rv32gc.elf"] {
            let program = repository().join("programs").join(program);
            let trace = format!("ntrace={}", folder.name("t"));
            let program = program.to_str().unwrap();
            let output = run(&["run", program, "-c", &config, "--trace", &trace, "--check"]);
            let talk = text(&output.stderr);
            assert!(talk.contains("decoded and equal"), "{program} {n}: {talk}");
        }
    }
}

/// With timestamps, how many bytes there are from time to time.
#[test]
fn bandwidth_over_time() {
    let folder = Folder::new();
    let (trace, _) = traced(&folder, &["-c", &config("linux.toml")]);
    let stats = succeeds(&["stats", &trace]);
    let lines: Vec<&str> = stats.lines().collect();
    let at = lines.iter().position(|l| l.starts_with("time       from "));
    let bars = lines[at.unwrap() + 1];
    assert!(bars.contains('█') && bars.ends_with('|'), "{stats}");
    let json = succeeds(&["stats", &trace, "-f", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let slices = json["bandwidth"]["bytes"].as_array().unwrap();
    let sum: u64 = slices.iter().map(|b| b.as_u64().unwrap()).sum();
    assert_eq!(Some(sum), json["bytes"].as_u64());
    let (plain, _) = traced(&folder, &[]);
    assert!(!succeeds(&["stats", &plain]).contains("time       from "));
}

#[test]
fn events_as_json() {
    let folder = Folder::new();
    let (trace, pcs) = traced(&folder, &[]);
    let json = succeeds(&["decode", &trace, "-f", "json"]);
    let values: Vec<serde_json::Value> = json
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(values[0]["schema"], "hartrace-events");
    let runs = values.iter().filter(|v| v["type"] == "run");
    let insns: u64 = runs.map(|v| v["insns"].as_u64().unwrap()).sum();
    let lines = fs::read_to_string(pcs).unwrap().lines().count() as u64;
    assert_eq!(insns, lines);
    assert_eq!(
        values.iter().find(|v| v["type"] == "run").unwrap()["symbol"],
        "_start"
    );
    // Each run names its last instruction and the symbol of its first, as the
    // text does.
    let listing = succeeds(&["decode", &trace]);
    let mut listed = listing.lines().filter(|l| !l.starts_with("--"));
    for run in values.iter().filter(|v| v["type"] == "run") {
        let insns = run["insns"].as_u64().unwrap() as usize;
        let lines: Vec<&str> = listed.by_ref().take(insns).collect();
        let symbol = run["symbol"].as_str().unwrap();
        let first = lines[0].split("  [").next().unwrap();
        assert!(first.ends_with(&format!("  {symbol}")), "{first}");
        let last = u64::from_str_radix(&run["last"].as_str().unwrap()[2..], 16).unwrap();
        assert!(lines[insns - 1].starts_with(&format!("{last:016x}  ")));
    }
    assert_eq!(listed.next(), None);
}

#[test]
fn text_has_names() {
    let folder = Folder::new();
    let (trace, _) = traced(&folder, &[]);
    let listing = succeeds(&["decode", &trace]);
    let first = listing.lines().find(|l| !l.starts_with("--")).unwrap();
    assert!(first.starts_with("0000000080000000  "), "{first}");
    assert!(first.ends_with("  _start"), "{first}");
    let instructions = listing.lines().filter(|l| !l.starts_with("--"));
    assert_eq!(instructions.count(), 20000);
    assert!(listing.contains(" <main"), "jumps have names");
}

#[test]
fn a_dumped_buffer_is_put_in_order() {
    let folder = Folder::new();
    let (trace, pcs) = traced(
        &folder,
        &["-c", &folder.file("o.toml", "[ntrace]\nsync_max = 1\n")],
    );
    let mut bytes = fs::read(&trace).unwrap();
    while bytes.len() % 4 != 0 {
        bytes.push(0xff);
    }
    let sidecar = fs::read_to_string(folder.path("run.ntrace.toml")).unwrap();
    // Written from 0x1000 on, wrapped, and a third of it overwritten.
    let size = bytes.len() / 3 * 2 / 4 * 4;
    let over = bytes.len() - size;
    let mut dump = bytes[size..].to_vec();
    dump.extend(&bytes[over..size]);
    let ram = format!(
        "{:#x}:{:#x}:{:#x}:wrap",
        0x1000,
        0x1000 + size - 4,
        0x1000 + over
    );
    let dump = folder.file("d", dump);
    folder.file("d.toml", sidecar);
    let decoded = run(&["decode", &dump, "-f", "pc", "--ram", &ram]);
    assert_eq!(decoded.status.code(), Some(0), "{}", text(&decoded.stderr));
    let decoded = text(&decoded.stdout);
    let list = fs::read_to_string(pcs).unwrap();
    assert!(decoded.len() > list.len() / 3 && list.ends_with(decoded));
    fails(
        &["decode", &dump, "--ram", "0x1000:0x1004:0x1000"],
        5,
        "HT0113",
    );
    let usage = run(&["dump", &dump, "--ram", "1:2"]);
    assert_eq!(usage.status.code(), Some(2));

    let mut words = bytes.clone();
    words.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    fs::write(&trace, words).unwrap();
    assert!(succeeds(&["decode", &trace, "-f", "pc", "--order", "swap32"]) == list);
}

#[test]
fn mistakes() {
    let folder = Folder::new();
    let bad = folder.file(
        "c.toml",
        "[ntrace]\nmode = \"btm\"\nrepeated_history = \"on\"\n",
    );
    let to = format!("ntrace={}", folder.name("t"));
    let message = fails(
        &["run", "-q", RV64, "-c", &bad, "--trace", &to],
        1,
        "HT0206",
    );
    assert!(message.contains("repeated history needs"), "{message}");
    for args in [
        &["run", RV64, "--check"][..],
        &["run", RV64, "--trace", "lbr=x"],
        &["run", RV64, "--trace", "ntrace"],
        &["decode", "x", "--with-trapped"],
        &["encode", "x", "--to", "other"],
        &["dump", "x", "--bytes", "-f", "json"],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    assert_eq!(folder.entries(), ["c.toml"], "nothing is left behind");
}

/// A program that writes over its own code cannot be decoded with what the
/// file has.
#[test]
fn a_difference_is_told() {
    use crate::tiny::{addi, auipc, elf};
    const NOP: u32 = 0x13;
    let folder = Folder::new();
    let words = [
        auipc(5),
        addi(6, 0, NOP as i32),
        0x0062_a823, // sw x6, 16(x5): over the first jump
        NOP,
        0x0080_006f, // j +8
        NOP,
        0x0000_006f, // j .
    ];
    let program = folder.file("a.elf", elf(&words));
    let output = run(&["run", &program, "--trace", "ntrace=/dev/null", "--check"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("error[HT0601]: "), "{message}");
    assert!(message.contains("0x80000010"), "{message}");
}

/// Bytes as samples of so many pins, behind one idle byte and one idle sample,
/// so that no byte lies where it was.
fn samples(bytes: &[u8], pins: u32, high_first: bool) -> Vec<u8> {
    let idle = [1, 1, 1, 1, 1, 1, 1, 1];
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).map(move |n| byte >> n & 1));
    let more = idle.into_iter().take(pins as usize);
    let mut bits: Vec<u8> = idle.into_iter().chain(more).chain(bits).collect();
    bits.resize(bits.len().next_multiple_of(8), 1);
    bits.chunks_exact(8)
        .map(|byte| {
            let mut out = 0;
            for (n, sample) in byte.chunks_exact(pins as usize).enumerate() {
                let n = n as u32 * pins;
                let at = if high_first { 8 - pins - n } else { n };
                for (bit, value) in sample.iter().enumerate() {
                    out |= value << (at + bit as u32);
                }
            }
            out
        })
        .collect()
}

#[test]
fn samples_of_pins_are_put_in_order() {
    let folder = Folder::new();
    let (trace, pcs) = traced(&folder, &[]);
    let list = fs::read_to_string(pcs).unwrap();
    let bytes = fs::read(&trace).unwrap();
    for pins in [1, 2, 4] {
        for high_first in [false, true] {
            fs::write(&trace, samples(&bytes, pins, high_first)).unwrap();
            let pins = pins.to_string();
            let mut args = vec!["decode", &trace, "-f", "pc", "--strict", "--pib", &pins];
            if high_first {
                args.push("--high-first");
            }
            assert!(succeeds(&args) == list, "{pins} {high_first}");
        }
    }
    for args in [["--pib", "3"], ["--order", "swap64"]] {
        let output = run(&["dump", &trace, args[0], args[1]]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    let mut halves = bytes.clone();
    halves.resize(bytes.len().next_multiple_of(2), 0xff);
    halves.chunks_exact_mut(2).for_each(<[u8]>::reverse);
    fs::write(&trace, halves).unwrap();
    assert!(succeeds(&["decode", &trace, "-f", "pc", "--order", "swap16"]) == list);
}

#[test]
fn a_filter_leaves_out_the_rest() {
    let folder = Folder::new();
    let filter = "[filter]\naddress = [\"0x80000000..0x80000020\", \"0x80000040..=0x8000004f\"]\n";
    let filter = folder.file("f.toml", filter);
    let (trace, pcs) = traced(&folder, &["-c", &filter]);
    let inside = |pc: &&str| {
        let pc = u64::from_str_radix(pc, 16).unwrap();
        (0x8000_0000..0x8000_0020).contains(&pc) || (0x8000_0040..0x8000_0050).contains(&pc)
    };
    let list = fs::read_to_string(pcs).unwrap();
    let list: Vec<&str> = list.lines().filter(inside).collect();
    let decoded = succeeds(&["decode", &trace, "-f", "pc", "--strict"]);
    assert!(decoded.lines().eq(list.iter().copied()));
    assert!(list.len() > 8 && list.len() < 10_000, "{}", list.len());
    let to = format!("ntrace={trace}");
    let args = ["run", "-q", RV64, "-c", &filter, "--trace", &to, "--check"];
    succeeds(&args);
    let many: Vec<String> = (0..9).map(|n| format!("\"{n}\"")).collect();
    let many = format!("[filter]\naddress = [{}]\n", many.join(", "));
    let many = folder.file("m.toml", many);
    let args = ["run", "-q", RV64, "-c", &many, "--trace", &to];
    let message = fails(&args, 1, "HT0206");
    assert!(message.contains("[filter]"), "{message}");
}

/// Spike's boot code is in no program, and known.
#[test]
fn a_run_on_spikes_machine_is_read() {
    let folder = Folder::new();
    for program in [RV32, RV64] {
        let (trace, pcs) = (folder.name("s"), folder.name("p"));
        let (to_trace, to_pcs) = (format!("ntrace={trace}"), format!("pc={pcs}"));
        succeeds(&[
            "run",
            "-q",
            program,
            "--machine",
            "spike",
            "--trace",
            &to_trace,
            "--log",
            &to_pcs,
            "--check",
        ]);
        let list = fs::read_to_string(&pcs).unwrap();
        assert!(list.starts_with(if program == RV64 {
            "0000000000001000"
        } else {
            "00001000"
        }));
        assert!(succeeds(&["decode", &trace, "-f", "pc", "--strict"]) == list);
        // Without a sidecar it must be said.
        let bare = folder.file("bare", fs::read(&trace).unwrap());
        let output = run(&["decode", &bare, "-e", program]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{message}");
        assert!(
            message.contains("machine = \"spike\" in [hart]"),
            "{message}"
        );
        let spike = folder.file("c.toml", "[hart]\nmachine = \"spike\"\n");
        let args = [
            "decode", &bare, "-q", "-e", program, "-c", &spike, "-f", "pc",
        ];
        assert!(succeeds(&args) == list);
    }
    let log = repository().join("programs/sieve/sieve-rv64gc.log");
    let (log, trace) = (log.to_str().unwrap(), folder.name("l"));
    succeeds(&[
        "encode", "-q", log, "-e", RV64, "--to", "ntrace", "-o", &trace, "--check",
    ]);
    assert!(succeeds(&["decode", &trace, "-f", "pc"]).starts_with("0000000000001000\n"));
}

/// A run may end behind an indirect jump; no message tells where that went.
#[test]
fn a_run_that_ends_with_a_jump_is_equal() {
    for n in [3205, 3601, 3604, 12801, 12805, 13606] {
        let n = n.to_string();
        let args = [
            "run",
            RV32,
            "--max-insns",
            &n,
            "--trace",
            "ntrace=/dev/null",
            "--check",
        ];
        let output = run(&args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{n}: {}",
            text(&output.stderr)
        );
    }
}
