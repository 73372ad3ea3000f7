//! E-Trace: `run --trace`, `encode`, `dump`, `decode`, `stats`, `convert`.

use crate::tiny::{ECALL, MRET, SPIN, addi, auipc, elf, set_handler};
use crate::{Folder, RV32, RV64, fails, repository, run, succeeds, text};
use snapbox::{Assert, file};
use std::fs;
use std::path::PathBuf;

fn config(name: &str) -> String {
    let path = repository().join("configs/etrace").join(name);
    path.to_str().unwrap().to_owned()
}

/// A short run of `sieve`, traced and listed.
fn traced(folder: &Folder, more: &[&str]) -> (String, String) {
    let (trace, pcs) = (folder.name("run.etrace"), folder.name("run.pc"));
    let mut args = vec!["run", "-q", RV64, "--max-insns", "20K"];
    let (to_trace, to_pcs) = (format!("etrace={trace}"), format!("pc={pcs}"));
    args.extend(["--trace", &to_trace, "--log", &to_pcs]);
    args.extend(more);
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    (trace, pcs)
}

/// A loop, a call, an ecall and its handler; the name of the program.
pub(crate) fn small(folder: &Folder) -> String {
    let words = [
        auipc(5),
        addi(6, 5, 0x2c),
        set_handler(6),
        addi(5, 0, 3),
        addi(5, 5, -1),
        0xfe02_9ee3, // bnez x5, -4
        0x00c0_00ef, // jal ra, +12
        ECALL,
        SPIN,
        addi(10, 0, 1),
        0x0000_8067, // ret
        0x3410_25f3, // csrr x11, mepc
        addi(11, 11, 4),
        0x3415_9073, // csrw mepc, x11
        MRET,
    ];
    folder.file("small.elf", elf(&words))
}

/// The small program's trace, by these settings.
fn small_trace(folder: &Folder, config: &str) -> String {
    let program = small(folder);
    let trace = folder.name("small.etrace");
    let to = format!("etrace={trace}");
    succeeds(&[
        "run", "-q", &program, "-c", config, "--trace", &to, "--check",
    ]);
    trace
}

#[test]
fn texts() {
    let folder = Folder::new();
    let trace = small_trace(&folder, &config("default.toml"));
    let golden = Assert::new().action_env("SNAPSHOTS");
    let told = |args: &[&str]| {
        let args = [args, &[&trace]].concat();
        succeeds(&args).replace(&folder.name(""), "")
    };
    golden.eq(told(&["dump"]), file!["snapshots/etrace-dump.txt"]);
    golden.eq(
        told(&["dump", "--bytes"]),
        file!["snapshots/etrace-bytes.txt"],
    );
    golden.eq(
        told(&["dump", "-f", "json"]),
        file!["snapshots/etrace-packets.json"],
    );
    golden.eq(told(&["decode"]), file!["snapshots/etrace-decode.txt"]);
    golden.eq(
        told(&["decode", "-f", "json"]),
        file!["snapshots/etrace-events.json"],
    );
    golden.eq(told(&["stats"]), file!["snapshots/etrace-stats.txt"]);
    let table = told(&["dump", "-f", "csv"]);
    let first = table.lines().next().unwrap();
    assert!(first.starts_with("format,subformat,address,branch,"));
    assert_eq!(first.split(',').count(), 26);
    assert!(table.lines().count() > 5 && table.ends_with("\r\n"));
}

/// Every program, with every kind of settings: what is decoded is what was
/// done.
#[test]
fn every_program_comes_back() {
    let folder = Folder::new();
    let settings = ["default.toml", "linux.toml", "draft.toml", "rv32.toml"];
    for (i, program) in crate::trace::programs().iter().enumerate() {
        let program = program.to_str().unwrap();
        let trace = folder.name("t");
        let to = format!("etrace={trace}");
        let config = config(settings[i % settings.len()]);
        for config in [&config, &self::config("full-address.toml")] {
            let limit = ["--max-insns", "30K", "--trace", &to, "--check"];
            let output = run(&[&["run", program, "-c", config], &limit[..]].concat());
            let message = text(&output.stderr);
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 10)),
                "{program} {config}: {message}"
            );
            assert!(message.contains("decoded and equal: "), "{message}");
            let decoded = run(&["decode", &trace, "-f", "pc", "--strict"]);
            assert_eq!(decoded.status.code(), Some(0), "{}", text(&decoded.stderr));
        }
    }
}

#[test]
fn a_trace_knows_its_program_and_settings() {
    let folder = Folder::new();
    let (trace, pcs) = traced(&folder, &["-c", &config("full-address.toml")]);
    let names = ["run.etrace", "run.etrace.toml", "run.pc"];
    assert_eq!(folder.entries(), names);
    let sidecar = fs::read_to_string(folder.path("run.etrace.toml")).unwrap();
    assert!(sidecar.starts_with("[trace]\nformat = \"etrace\"\nversion = \"2.0\"\n"));
    assert!(sidecar.contains("sha256 = ") && sidecar.contains("full_address = true"));
    assert!(!sidecar.contains("[ntrace]"));
    let list = fs::read_to_string(pcs).unwrap();
    assert!(succeeds(&["decode", &trace, "-f", "pc"]) == list);
    let shown = succeeds(&["info", &trace]);
    assert!(shown.starts_with(&format!("{trace}: E-Trace\n")), "{shown}");
    assert!(shown.contains(": same\n"), "{shown}");
    let json = succeeds(&["info", "-f", "json", &trace]);
    let json: serde_json::Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!(json["type"], "etrace");
    assert!(json["trace"]["messages"].as_u64().unwrap() > 100);
    let other = repository().join("programs/sort/sort-rv64gc.elf");
    let other = other.to_str().unwrap();
    fails(&["decode", &trace, "-e", other], 1, "HT0205");
    // A sidecar says more than the bytes look like.
    let renamed = sidecar.replace("\"etrace\"", "\"ctr\"");
    folder.file("run.etrace.toml", renamed);
    fails(&["decode", &trace], 5, "HT0113");
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
        let (log, trace) = (folder.name(file), folder.name("t"));
        let args = [
            "encode", &log, "-e", RV64, "--to", "etrace", "--check", "-o", &trace,
        ];
        let output = run(&args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(message.contains("5000 instructions, "), "{message}");
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

/// The same file of settings for both widths: addresses are as wide as the
/// program's.
#[test]
fn widths_follow_the_program() {
    let folder = Folder::new();
    for (program, width, address) in [(RV32, 32, "0x80000000\n"), (RV64, 64, "0x80000000\n")] {
        let trace = folder.name("t");
        let to = format!("etrace={trace}");
        let settings = config("itype3-basic.toml");
        let args = ["run", "-q", program, "-c", &settings, "--trace", &to];
        succeeds(&[&args[..], &["--check"]].concat());
        let sidecar = fs::read_to_string(folder.path("t.toml")).unwrap();
        assert!(sidecar.contains(&format!("\niaddress_width = {width}\n")));
        let dump = succeeds(&["dump", &trace]);
        assert!(
            dump.lines().nth(1).unwrap().ends_with(address.trim()),
            "{dump}"
        );
    }
}

/// The reference encoder's ways are decoded, too; and a run can have traces of
/// both formats at once.
#[test]
fn as_the_reference_encodes() {
    let folder = Folder::new();
    for name in ["itype4-basic", "itype3-debug", "itype4-debug", "no-resync"] {
        for program in [RV32, RV64] {
            let config = config(&format!("{name}.toml"));
            let etrace = format!("etrace={}", folder.name("e"));
            let ntrace = format!("ntrace={}", folder.name("n"));
            let traces = ["--trace", &etrace, "--trace", &ntrace, "--check"];
            let output = run(&[&["run", program, "-c", &config], &traces[..]].concat());
            let talk = text(&output.stderr);
            assert_eq!(
                talk.matches("decoded and equal").count(),
                2,
                "{name}: {talk}"
            );
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_text() {
    let folder = Folder::new();
    let trace = folder.name("t");
    let to = format!("etrace={trace}");
    let often = "[etrace]\nfull_address = true\ncontext_width = 32\nresync_max = 2\n";
    let often = folder.file("c.toml", often);
    let program = repository().join("programs/recursion/recursion-rv64gc.elf");
    let program = program.to_str().unwrap();
    let args = ["run", "-q", program, "-c", &often, "--trace", &to];
    assert_eq!(run(&args).status.code(), Some(0));
    // Several times in a row, for a file that is worth the threads.
    let once = fs::read(&trace).unwrap();
    fs::write(&trace, once.repeat((1 << 18) / once.len() + 2)).unwrap();
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

#[test]
fn settings_are_guessed_aloud() {
    let folder = Folder::new();
    for settings in ["default.toml", "itype3-basic.toml", "itype3-debug.toml"] {
        let (trace, pcs) = traced(&folder, &["-c", &config(settings)]);
        fs::remove_file(folder.path("run.etrace.toml")).unwrap();
        let output = run(&["decode", &trace, "-e", RV64, "-f", "pc"]);
        let message = text(&output.stderr);
        assert!(message.starts_with("warning[HT0401]: "), "{message}");
        assert!(message.contains("settings of E-Trace"), "{message}");
        assert!(text(&output.stdout) == fs::read_to_string(pcs).unwrap());
        let shown = succeeds(&["info", "-q", &trace]);
        assert!(shown.starts_with(&format!("{trace}: E-Trace\n")), "{shown}");
        let output = run(&["dump", &trace]);
        assert_eq!(output.status.code(), Some(0));
    }
    let bare = folder.name("run.etrace");
    fails(&["decode", &bare], 2, "HT0304");
    // What somebody says is not guessed.
    let settings = config("itype3-debug.toml");
    succeeds(&["decode", &bare, "-e", RV64, "-c", &settings]);
    let other = "[ntrace]\nversion = \"1.0\"\n";
    let other = folder.file("n.toml", other);
    let output = run(&["decode", &bare, "-e", RV64, "-c", &other, "-q"]);
    assert_eq!(output.status.code(), Some(5), "it is no N-Trace");
}

/// The program tells the draft from the ratified text; without it both fit.
#[test]
fn more_than_one_guess_is_told() {
    let folder = Folder::new();
    let (trace, _) = traced(&folder, &["-c", &config("draft.toml")]);
    let dump = succeeds(&["dump", &trace]);
    fs::remove_file(folder.path("run.etrace.toml")).unwrap();
    let output = run(&["dump", &trace, "-e", RV64]);
    assert!(text(&output.stdout) == dump);
    assert!(!text(&output.stderr).contains("fit as well"));
    for command in ["dump", "stats", "info"] {
        let message = run(&[command, &trace]);
        let message = text(&message.stderr);
        assert!(message.contains("fit as well: the default widths of the 1.1.1-draft"));
        assert!(
            message.contains("64-bit addresses are assumed"),
            "{message}"
        );
    }
}

/// Our own table, whatever the widths were, and without saying them.
#[test]
fn the_widths_of_a_table_are_guessed() {
    let folder = Folder::new();
    let wide = "[etrace]\ncontext_width = 40\ntime_width = 20\n";
    let mut all = vec![folder.file("wide.toml", wide)];
    let ready = ["default.toml", "itype3-basic.toml", "draft.toml"];
    all.extend(ready.map(config));
    for settings in all {
        let (trace, pcs) = traced(&folder, &["-c", &settings]);
        let table = folder.name("t.te_inst");
        succeeds(&["dump", &trace, "-f", "csv", "-o", &table]);
        let output = run(&["decode", &table, "-e", RV64, "-f", "pc", "--strict"]);
        assert!(text(&output.stderr).starts_with("warning[HT0401]: "));
        assert_eq!(output.status.code(), Some(0), "{settings}");
        assert!(text(&output.stdout) == fs::read_to_string(pcs).unwrap());
        succeeds(&["info", "-q", &table]);
    }
}

/// Damage in the middle, and a start inside a packet.
#[test]
fn gaps_are_told() {
    let folder = Folder::new();
    let often = folder.file("o.toml", "[etrace]\nresync_max = 0\n");
    let (trace, pcs) = traced(&folder, &["-c", &often]);
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 9].fill(0xff);
    fs::write(&trace, &bytes).unwrap();
    let output = run(&["decode", &trace, "-f", "pc"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("warning[ET"), "{message}");
    assert!(message.contains("byte 0x"), "{message}");
    let list = fs::read_to_string(&pcs).unwrap();
    let decoded = text(&output.stdout);
    assert!(decoded.len() < list.len() && decoded.len() > list.len() / 2);
    assert!(list.ends_with(&decoded[decoded.len() - 170..]));
    let strict = run(&["decode", &trace, "--strict"]);
    assert_eq!(strict.status.code(), Some(3));
    assert!(text(&strict.stderr).contains("error[HT0111]: "));
    assert!(text(&strict.stdout).contains("\n-- gap at byte 0x"));
    // A file appears only without an error.
    let out = folder.name("out.txt");
    for command in ["decode", "stats"] {
        let strict = run(&[command, &trace, "--strict", "-o", &out]);
        assert_eq!(strict.status.code(), Some(3), "{command}");
        assert!(!folder.path("out.txt").exists(), "{command}");
        assert_eq!(run(&[command, &trace, "-o", &out]).status.code(), Some(0));
        fs::remove_file(&out).unwrap();
    }
    let json = run(&["decode", &trace, "-f", "json"]);
    assert!(text(&json.stdout).contains("{\"type\":\"gap\",\"hart\":0,\"code\":\"ET"));
    let stats = run(&["stats", &trace]);
    assert!(!text(&stats.stdout).contains("gaps       0\n"));
    let dump = succeeds(&["dump", &trace]);
    assert!(dump.contains("(bad) ET0101: "), "{dump}");
    let table = run(&["dump", &trace, "-f", "csv"]);
    assert!(text(&table.stderr).starts_with("warning[HT0111]: "));

    // Only what stands in front of the first full address.
    fs::write(&trace, &bytes[8..30]).unwrap();
    let nothing = run(&["decode", &trace, "-q", "-f", "pc"]);
    assert_eq!(nothing.status.code(), Some(5));
    assert!(text(&nothing.stderr).starts_with("error[HT0112]: "));
}

/// The table of the reference models leads back to the same packets.
#[test]
fn a_table_of_packets_is_a_trace() {
    let folder = Folder::new();
    let settings = config("itype3-basic.toml");
    let (trace, pcs) = traced(&folder, &["-c", &settings]);
    let table = folder.name("run.te_inst");
    succeeds(&["dump", &trace, "-f", "csv", "-o", &table]);
    let args = ["decode", &table, "-e", RV64, "-c", &settings, "-f", "pc"];
    let list = fs::read_to_string(pcs).unwrap();
    assert!(succeeds(&args) == list);
    let dump = succeeds(&["dump", &trace]);
    assert!(succeeds(&["dump", &table, "-c", &settings]) == dump);
    let guessed = run(&["decode", &table, "-e", RV64, "-f", "pc"]);
    assert!(text(&guessed.stderr).starts_with("warning[HT0401]: "));
    assert!(text(&guessed.stdout) == list);
    let shown = succeeds(&["info", "-q", &table]);
    assert!(
        shown.starts_with(&format!("{table}: E-Trace CSV\n")),
        "{shown}"
    );
    let rows = fs::read_to_string(&table).unwrap();
    let damaged = folder.file("d.te_inst", rows.replacen(",_,", ",x,", 1));
    let passed = run(&["dump", &damaged, "-c", &settings]);
    assert!(passed.status.success());
    let message = text(&passed.stderr);
    assert!(message.starts_with("warning[HT0106]: "), "{message}");
    assert!(message.contains("line 2, column "), "{message}");
    let strict = ["stats", "--strict", &damaged, "-c", &settings];
    fails(&strict, 3, "HT0106");
}

#[test]
fn what_a_trace_is_made_of() {
    let folder = Folder::new();
    let (trace, _) = traced(&folder, &[]);
    let stats = succeeds(&["stats", &trace, "-f", "json"]);
    let json: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(json["format"], "etrace");
    assert_eq!(json["decoded"]["instructions"], 20000);
    let kinds = json["kinds"].as_array().unwrap();
    let sum: u64 = kinds.iter().map(|k| k["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, fs::metadata(&trace).unwrap().len());
    assert!(json["packets"]["branches"].as_u64().unwrap() > 1000);
}

/// From one format to the other and back: the same instructions and traps.
#[test]
fn traces_are_converted() {
    let folder = Folder::new();
    let program = repository().join("programs/modes/modes-rv64gc.elf");
    let program = program.to_str().unwrap();
    let (first, pcs) = (folder.name("a.ntrace"), folder.name("a.pc"));
    let (to, log) = (format!("ntrace={first}"), format!("pc={pcs}"));
    let args = ["run", "-q", program, "--max-insns", "60K", "--trace", &to];
    run(&[&args[..], &["--log", &log]].concat());
    let list = fs::read_to_string(&pcs).unwrap();
    let (second, third) = (folder.name("b.etrace"), folder.name("c.ntrace"));
    for (from, to, kind) in [(&first, &second, "etrace"), (&second, &third, "ntrace")] {
        let output = run(&["convert", from, "--to", kind, "-o", to, "--check"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(message.contains("decoded and equal: "), "{message}");
        assert!(succeeds(&["decode", to, "-f", "pc", "--strict"]) == list);
    }
    let traps = |trace: &str| {
        let json = succeeds(&["stats", trace, "-f", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        json["decoded"]["traps"].as_u64().unwrap()
    };
    assert!(traps(&first) > 0);
    assert_eq!(traps(&first), traps(&second));
    assert_eq!(traps(&first), traps(&third));
    // The same format with other settings: the sidecar tells the old ones.
    let full = config("full-address.toml");
    let fourth = folder.name("d.etrace");
    let args = ["convert", "-q", &second, "-c", &full, "--to", "etrace"];
    succeeds(&[&args[..], &["-o", &fourth, "--check"]].concat());
    assert!(succeeds(&["decode", &fourth, "-f", "pc", "--strict"]) == list);
    assert!(fs::metadata(&fourth).unwrap().len() > fs::metadata(&second).unwrap().len());
}

#[test]
fn gaps_are_converted_to_losses() {
    let folder = Folder::new();
    let often = folder.file("o.toml", "[ntrace]\nsync_max = 0\n");
    let trace = folder.name("a.ntrace");
    let to = format!("ntrace={trace}");
    let limit = ["--max-insns", "20K", "--trace", &to];
    succeeds(&[&["run", "-q", RV64, "-c", &often], &limit[..]].concat());
    let mut bytes = fs::read(&trace).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] = 0x02;
    fs::write(&trace, &bytes).unwrap();
    let new = folder.name("b.etrace");
    let convert = ["convert", &trace, "--to", "etrace", "-o", &new];
    let strict = run(&[&convert[..], &["--strict"]].concat());
    assert_eq!(strict.status.code(), Some(3));
    assert!(!PathBuf::from(&new).exists());
    let output = run(&convert);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("warning[NT"));
    let old = run(&["decode", &trace, "-q", "-f", "pc"]);
    let decoded = run(&["decode", &new, "-f", "pc"]);
    assert!(text(&decoded.stderr).contains("warning[ET0401]: "));
    // What the encoder had not sent when it lost something is lost, too.
    let (old, new) = (old.stdout, decoded.stdout);
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let before = old.iter().zip(&new).take_while(same).count();
    let behind = old.iter().rev().zip(new.iter().rev());
    let behind = behind.take_while(same).count();
    assert!(before + behind >= new.len() && new.len() > old.len() * 9 / 10);
}

/// Settings by which no decoder could follow the program.
#[test]
fn settings_must_fit_the_program() {
    let folder = Folder::new();
    let to = format!("etrace={}", folder.name("t"));
    let with = |settings: &str, program, code| {
        let settings = folder.file("c.toml", settings);
        let args = ["run", "-q", program, "-c", &settings, "--trace", &to];
        let output = run(&[&args[..], &["--check"]].concat());
        let message = text(&output.stderr).to_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        message
    };
    let width = |width| format!("[etrace]\niaddress_width = {width}\n");
    for (settings, program, words) in [
        ("[etrace]\niaddress_lsb = 2\n", RV64, "iaddress_lsb = 2"),
        ("[ingress]\nall_jumps = true\n", RV64, "all_jumps = true"),
        (&width(32), RV64, "it has code at 0x80000000"),
        (&width(31), RV32, "it has code at 0x80000000"),
    ] {
        let message = with(settings, program, 1);
        assert!(message.contains("HT0206"), "{message}");
        assert!(message.contains(words), "{message}");
    }
    let message = with("[etrace]\nprivilege_width = 1\n", RV64, 1);
    assert!(message.contains("HT0204"), "{message}");
    assert_eq!(folder.entries(), ["c.toml"], "nothing is left behind");
    assert_eq!(with(&width(33), RV64, 0), "");
    assert_eq!(with(&width(32), RV32, 0), "");
    let settings = folder.file("c.toml", "[etrace]\necause_width = 3\n");
    let output = run(&["run", RV64, "-c", &settings, "--trace", &to]);
    let message = text(&output.stderr);
    assert!(message.contains("HT0408"), "{message}");
}

/// A port may show a part of a trap value; a difference is told in words.
#[test]
fn trap_values() {
    let folder = Folder::new();
    let to = format!("etrace={}", folder.name("t"));
    let modes = repository().join("programs/modes/modes-rv64gc.elf");
    let modes = modes.to_str().unwrap();
    let settings = config("itype3-basic.toml");
    let args = ["run", "-q", modes, "-c", &settings, "--trace", &to];
    succeeds(&[&args[..], &["--check"]].concat());
    let settings = folder.file("c.toml", "[etrace]\necause_width = 3\n");
    let args = ["run", "-q", modes, "-c", &settings, "--trace", &to];
    let output = run(&[&args[..], &["--check"]].concat());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("HT0601"), "{message}");
    assert!(
        message.contains("expected store page fault (15) at 0x"),
        "{message}"
    );
    assert!(!message.contains("modifies its own code"), "{message}");
}

/// Code assembled under `.option rvc` is in the flags of an ELF file, and not
/// in its attributes. The sidecar tells what was used.
#[test]
fn the_sidecar_has_the_instruction_set_in_force() {
    let folder = Folder::new();
    let mut bytes = fs::read(RV64).unwrap();
    while let Some(at) = bytes.windows(5).position(|w| w == b"_c2p0") {
        bytes[at..at + 5].copy_from_slice(b"_m2p0");
    }
    let program = folder.file("p.elf", bytes);
    let (rows, pcs) = (folder.name("a.csv"), folder.name("a.pc"));
    let (to_rows, to_pcs) = (format!("ingress={rows}"), format!("pc={pcs}"));
    let logs = ["--log", &to_rows, "--log", &to_pcs];
    succeeds(&[&["run", "-q", RV64, "--max-insns", "5K"], &logs[..]].concat());
    for format in ["etrace", "ntrace"] {
        let trace = folder.name(format);
        let args = ["encode", "-q", &rows, "-e", &program, "--check", "--to"];
        succeeds(&[&args[..], &[format, "-o", &trace]].concat());
        let sidecar = fs::read_to_string(format!("{trace}.toml")).unwrap();
        let isa = sidecar.lines().find(|l| l.starts_with("isa = ")).unwrap();
        assert!(isa.contains("_zca"), "{isa}");
        let decoded = succeeds(&["decode", "--strict", &trace, "-f", "pc"]);
        assert!(decoded == fs::read_to_string(&pcs).unwrap());
    }
}

/// Rows and pcs may start in Spike's boot code, which is in no program.
#[test]
fn boot_code_is_recognised() {
    let folder = Folder::new();
    let logs = [("pc", "a.pc"), ("ingress", "a.csv"), ("spike", "a.log")];
    let mut args = ["run", "-q", RV64, "--machine", "spike", "--max-insns", "2K"]
        .map(str::to_owned)
        .to_vec();
    for (kind, file) in logs {
        args.extend(["--log".to_owned(), format!("{kind}={}", folder.name(file))]);
    }
    assert_eq!(run(&args).status.code(), Some(0));
    let pcs = fs::read_to_string(folder.path("a.pc")).unwrap();
    assert!(pcs.starts_with("0000000000001000\n"), "{}", &pcs[..40]);
    for (_, file) in logs {
        let (log, trace) = (folder.name(file), folder.name("t"));
        let args = ["encode", "-q", &log, "-e", RV64, "--to", "etrace"];
        succeeds(&[&args[..], &["--strict", "--check", "-o", &trace]].concat());
        let sidecar = fs::read_to_string(folder.path("t.toml")).unwrap();
        assert!(sidecar.contains("machine = \"spike\""), "{file}: {sidecar}");
        assert!(succeeds(&["decode", "--strict", &trace, "-f", "pc"]) == pcs);
        let list = succeeds(&["log", "--strict", &log, "-e", RV64, "--to", "pc"]);
        assert!(list == pcs, "{file}");
    }
}

#[test]
fn mistakes() {
    let folder = Folder::new();
    let bad = "[etrace]\nversion = \"1.1.1-draft\"\ntime_width = 8\n";
    let bad = folder.file("c.toml", bad);
    let to = format!("etrace={}", folder.name("t"));
    let args = ["run", "-q", RV64, "-c", &bad, "--trace", &to];
    let message = fails(&args, 1, "HT0206");
    assert!(
        message.contains("invalid settings in [etrace]"),
        "{message}"
    );
    let both = "[etrace]\niaddress_width = 48\n";
    let both = folder.file("w.toml", both);
    let args = ["run", "-q", RV32, "-c", &both, "--trace", &to];
    fails(&args, 1, "HT0206");
    assert_eq!(
        folder.entries(),
        ["c.toml", "w.toml"],
        "nothing is left behind"
    );
    let (trace, _) = traced(&folder, &[]);
    let ntrace = folder.name("n");
    succeeds(&["convert", "-q", &trace, "--to", "ntrace", "-o", &ntrace]);
    for args in [
        &["dump", &ntrace, "-f", "csv"][..],
        &["dump", &trace, "-f", "csv", "--bytes"],
        &["convert", &trace, "--to", "pc"],
        &["convert", &trace],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    fails(
        &["convert", RV64, "--to", "etrace", "-e", RV64],
        5,
        "HT0113",
    );
}

/// A log of two harts has no room in a stream without sources.
#[test]
fn one_hart_at_a_time() {
    let folder = Folder::new();
    let log = folder.name("a.log");
    let (spike, pcs) = (
        format!("spike={log}"),
        format!("pc={}", folder.name("a.pc")),
    );
    let args = ["run", "-q", RV64, "--max-insns", "2K"];
    let logs = ["--log", &spike, "--log", &pcs];
    assert_eq!(run(&[&args[..], &logs].concat()).status.code(), Some(0));
    let one = fs::read_to_string(&log).unwrap();
    let both: String = one
        .lines()
        .flat_map(|l| [l.to_owned(), l.replace("core   0", "core   1")])
        .map(|l| l + "\n")
        .collect();
    let log = folder.file("b.log", both);
    let trace = folder.name("t");
    let encode = [
        "encode", &log, "-q", "-e", RV64, "--to", "etrace", "-o", &trace,
    ];
    fails(&encode, 2, "HT0305");
    let list = fs::read_to_string(folder.path("a.pc")).unwrap();
    succeeds(&[&encode[..], &["--hart", "1"]].concat());
    assert!(succeeds(&["decode", &trace, "-f", "pc"]) == list);
    // From a stream with two.
    let room = folder.file("c.toml", "[ntrace]\nsrc_bits = 3\n");
    let ntrace = folder.name("n");
    succeeds(&[
        "encode", &log, "-q", "-e", RV64, "--to", "ntrace", "-o", &ntrace, "-c", &room,
    ]);
    let convert = ["convert", "-q", &ntrace, "--to", "etrace", "-o", &trace];
    fails(&convert, 2, "HT0305");
    succeeds(&[&convert[..], &["--hart", "1"]].concat());
    assert!(succeeds(&["decode", &trace, "-f", "pc"]) == list);
}

#[test]
fn settings_are_shown() {
    let shown = succeeds(&["config", "show"]);
    assert!(shown.contains("\n[etrace]\nversion = \"2.0\" "), "{shown}");
    let draft = config("draft.toml");
    let run = succeeds(&[
        "config", "show", "run", RV64, "-c", &draft, "--trace", "etrace=x",
    ]);
    assert!(run.contains("version = \"1.1.1-draft\""), "{run}");
    assert!(run.contains("table = \"etrace-1.1.1\""), "{run}");
    assert!(!run.contains("[ntrace]"), "{run}");
}
