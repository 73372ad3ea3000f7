//! `hartrace compare`.

use crate::tiny::{self, SPIN, addi, auipc, elf, jump};
use crate::{Folder, RV32, RV64, fails, run, succeeds, text};
use serde_json::Value;
use std::fs;

const RECURSION: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../programs/recursion/recursion-rv64gc.elf"
);

/// The rows of a comparison, without the header.
#[track_caller]
fn rows(args: &[&str]) -> Vec<Value> {
    let all = objects(args);
    all.into_iter().skip(1).collect()
}

#[track_caller]
fn objects(args: &[&str]) -> Vec<Value> {
    let args = [&["compare", "-q", "-f", "json"], args].concat();
    let json = succeeds(&args);
    json.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_option_set_verifies_on_every_program() {
    let programs = crate::trace::programs();
    assert!(programs.len() > 30);
    for program in programs {
        let program = program.to_str().unwrap();
        let args = ["compare", program, "-f", "csv", "--max-insns", "10000"];
        let output = run(&args);
        let stderr = text(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 10)),
            "{program}: {stderr}"
        );
        let csv = text(&output.stdout);
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert!(rows.len() >= 12, "{csv}");
        assert!(
            rows.iter().all(|row| row.ends_with(",yes")),
            "{program}: {csv}"
        );
    }
}

/// The settings of a row make the same trace elsewhere.
#[test]
fn bytes_are_those_of_run_with_the_same_settings() {
    for program in [RV64, RV32] {
        let folder = Folder::new();
        let below = folder.file("below.toml", "[ntrace]\nhist_bits = 20\nmode = \"btm\"\n");
        for config in [None, Some(below.as_str())] {
            let config: Vec<&str> = config.map_or(Vec::new(), |file| vec!["-c", file]);
            for row in rows(&[&[program], config.as_slice()].concat()) {
                let settings = folder.file("row.toml", row["settings"].as_str().unwrap());
                let trace = folder.name("trace");
                let format = row["format"].as_str().unwrap();
                let to = format!("{format}={trace}");
                let mut args = vec!["run", "-q", program, "--trace", &to];
                args.extend(&config);
                args.extend(["-c", &settings]);
                succeeds(&args);
                let bytes = fs::metadata(&trace).unwrap().len();
                assert_eq!(row["bytes"], bytes, "{row}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let model = ["--target-bandwidth", "0.25bits", "--buffer", "128,4K"];
    let with = |threads| {
        let args = ["compare", RV64, "--threads", threads];
        succeeds(&[&args[..], &model].concat())
    };
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!(one, with("5"));
    assert_eq!(one, with("100"));
}

/// What `run` writes with these settings and further ones of the same section.
fn traced(row: &Value, more: &str) -> Vec<u8> {
    let folder = Folder::new();
    let settings = row["settings"].as_str().unwrap().to_owned() + more;
    let settings = folder.file("row.toml", settings);
    let trace = folder.name("trace");
    let to = format!("{}={trace}", row["format"].as_str().unwrap());
    run(&["run", "-q", RECURSION, "--trace", &to, "-c", &settings]);
    fs::read(&trace).unwrap()
}

/// The model is that of the encoders' own queues: what it says is enough is enough, and
/// one byte less is not.
#[test]
fn the_queue_of_an_encoder_confirms_the_model() {
    let model = ["--target-bandwidth", "1.5bits", "--buffer", "300"];
    let (mut deep, mut overflowing) = (0, 0);
    for row in rows(&[&[RECURSION], &model[..]].concat()) {
        let whole = traced(&row, "");
        let is_whole = |depth: u64, drain: u64| {
            let queue = format!("queue_bytes = {depth}\nqueue_drain = {drain}\n");
            traced(&row, &queue) == whole
        };
        let depth = row["lossless_buffer"].as_u64().unwrap();
        if depth > 100 {
            assert!(is_whole(depth, 192), "{row}");
            assert!(!is_whole(depth - 1, 192), "{row}");
            deep += 1;
        }
        let buffer = &row["buffers"][0];
        assert_eq!(buffer["bytes"], 300);
        // Bytes in 1024 cycles.
        let drain = buffer["lossless_bandwidth"].as_f64().unwrap() * 128.0;
        assert!(is_whole(300, drain as u64), "{row}");
        assert!(!is_whole(300, drain as u64 - 1), "{row}");
        // It overflows at the given bandwidth where it has to be deeper.
        let overflows = buffer["overflows"].as_u64().unwrap();
        assert_eq!(overflows > 0, depth > 300, "{row}");
        overflowing += u64::from(overflows > 0);
    }
    assert!(deep > 3 && overflowing > 1);
}

#[test]
fn logs_compare_as_the_runs_they_are_of() {
    let folder = Folder::new();
    let (spike, pcs, rows_csv) = (folder.name("s"), folder.name("p"), folder.name("i.csv"));
    succeeds(&[
        "run",
        "-q",
        RV64,
        "--log",
        &format!("spike-traps={spike}"),
        "--log",
        &format!("pc={pcs}"),
        "--log",
        &format!("ingress={rows_csv}"),
    ]);
    let bytes = |rows: Vec<Value>| -> Vec<u64> {
        let bytes = rows.iter().map(|row| row["bytes"].as_u64().unwrap());
        bytes.collect()
    };
    let direct = bytes(rows(&[RV64]));
    for log in [&spike, &pcs, &rows_csv] {
        let of_log = objects(&[log, "-e", RV64]);
        assert_eq!(of_log[0]["timed"], log == &rows_csv);
        assert_eq!(of_log[0]["instructions"], 56274);
        let of_log = bytes(of_log[1..].to_vec());
        for (direct, of_log) in direct.iter().zip(&of_log) {
            // A log does not say that the hart was halted by the host.
            assert!(direct.abs_diff(*of_log) < 40, "{direct} {of_log}");
        }
    }
    // Without modes one is assumed, and that is said.
    let output = run(&["compare", &pcs, "-e", RV64]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    assert!(
        said.contains("does not record modes; mode M is assumed"),
        "{said}"
    );
    assert!(text(&output.stdout).contains("56 274 instructions, one cycle each"));
    let output = run(&["compare", &pcs, "-e", RV64, "--mode", "u"]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_trace_that_differs_is_reported() {
    let folder = Folder::new();
    let log = folder.name("log");
    succeeds(&["run", "-q", RV64, "--log", &format!("spike-traps={log}")]);
    // `auipc sp, 0x10` at the start becomes `j .+8`.
    let mut bytes = fs::read(RV64).unwrap();
    let at = bytes.windows(4).position(|w| w == [0x17, 0x01, 0x01, 0x00]);
    let at = at.unwrap();
    bytes[at..at + 4].copy_from_slice(&0x0080_006fu32.to_le_bytes());
    let other = folder.file("other.elf", bytes);
    let output = run(&["compare", "-q", &log, "-e", &other]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(
        said.contains("decoded traces differ from the run"),
        "{said}"
    );
    assert!(
        said.contains("ntrace htm: hart 0 after 0 instructions"),
        "{said}"
    );
    let table = text(&output.stdout);
    assert!(table.contains("  NO\n"), "{table}");
}

#[test]
fn a_program_that_fails_is_compared_and_reported() {
    let folder = Folder::new();
    // Jumps to address 0, where nothing is.
    let program = folder.file("bad.elf", elf(&[addi(5, 0, 0), jump(5)]));
    let output = run(&["compare", &program]);
    assert_eq!(output.status.code(), Some(10));
    assert!(text(&output.stderr).starts_with("error[HT"));
    assert!(text(&output.stdout).contains("etrace  base"));
}

#[test]
fn a_program_without_time_or_branches_is_no_problem() {
    let folder = Folder::new();
    let program = folder.file("tiny.elf", elf(&[auipc(5), SPIN]));
    let all = rows(&[&program, "--target-bandwidth", "16pins"]);
    assert!(all.iter().all(|row| row["verified"] == true));
    let nothing = rows(&[&program, "--max-insns", "0"]);
    assert!(nothing.iter().all(|row| row["verified"] == true));
}

#[test]
fn what_is_neither_a_program_nor_a_log_is_refused() {
    let folder = Folder::new();
    let words = folder.file("words", "these are words\n");
    fails(&["compare", &words], 5, "HT0105");
    fails(&["compare", &words, "-e", RV64], 5, "HT0105");
    let missing = folder.name("missing.elf");
    fails(&["compare", &missing], 1, "HT0001");
    let pcs = folder.file("pcs", "0000000080000000\n0000000080000004\n");
    let said = fails(&["compare", &pcs], 2, "HT0304");
    assert!(said.contains("no program is given"), "{said}");
    let data = folder.file("data.elf", tiny::elf_at(0x8000_0000, &[]));
    assert_ne!(run(&["compare", &data]).status.code(), Some(0));
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let pcs = folder.file("pcs", "0000000080000000\n0000000080000004\n");
    let wrong: &[(&[&str], &str)] = &[
        (&[RV64, "-e", RV64], "are for logs"),
        (&[RV64, "--mode", "u"], "are for logs"),
        (&[&pcs, "-e", RV64, "--max-insns", "5"], "are for programs"),
        (&[RV64, "--target-bandwidth", "4"], "4pins@0.2"),
        (&[RV64, "--target-bandwidth", "0bits"], "0.007813"),
        (&[RV64, "--buffer", "75"], "76 bytes"),
        (&[RV64, "--buffer", "1,x"], "--buffer"),
        (&[RV64, "-f", "xml"], "possible values"),
    ];
    for (args, expected) in wrong {
        let output = run(&[&["compare"], *args].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn every_form_has_the_same_rows() {
    let model = ["--target-bandwidth", "1bit", "--buffer", "128,1K"];
    let form = |name| succeeds(&[&["compare", RV64, "-f", name], &model[..]].concat());
    let json = rows(&[&[RV64], &model[..]].concat());
    let csv = form("csv");
    let (heads, lines) = csv.split_once('\n').unwrap();
    let heads: Vec<&str> = heads.split(',').collect();
    assert_eq!(
        heads[..8],
        [
            "format",
            "options",
            "messages",
            "bytes",
            "bits_per_instruction",
            "mean",
            "peak",
            "verified"
        ]
    );
    assert_eq!(heads.len(), 8 + 2 + 2 * 3);
    assert_eq!(lines.lines().count(), json.len());
    for (line, row) in lines.lines().zip(&json) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), heads.len());
        assert_eq!(cells[0], row["format"]);
        assert_eq!(cells[1], row["options"]);
        assert_eq!(cells[3], row["bytes"].to_string());
        assert_eq!(cells[9], row["lossless_buffer"].to_string());
        assert_eq!(cells[10], row["buffers"][0]["overflows"].to_string());
    }
    let (plain, md) = (form("text"), form("md"));
    for row in &json {
        let format = row["format"].as_str().unwrap();
        let options = row["options"].as_str().unwrap();
        // Once for its size and once for its output.
        let named = |line: &&str| line.split("  ").take(2).eq([format, options]);
        assert_eq!(plain.lines().filter(named).count(), 2, "{options}");
        let start = format!("| {format} | {options} |");
        assert_eq!(md.matches(&start).count(), 2, "{start}");
    }
    assert!(plain.contains("smallest buffer at 1 bit per cycle: "));
    assert!(plain.contains("slowest output with a buffer of 1024 bytes: "));
    assert!(
        !plain.contains('\x1b') && !plain.contains('█'),
        "not a terminal"
    );
}

#[test]
fn the_output_is_a_file_or_nothing() {
    let folder = Folder::new();
    let table = folder.name("table.md");
    assert_eq!(succeeds(&["compare", RV64, "-f", "md", "-o", &table]), "");
    let written = fs::read_to_string(&table).unwrap();
    assert!(written.contains("| etrace | base |"), "{written}");
    // The program is not replaced by its table.
    let copy = folder.file("copy.elf", fs::read(RV64).unwrap());
    fails(&["compare", &copy, "-o", &copy], 2, "HT0007");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(RV64).unwrap());
}
