//! `hartrace state`: registers and memory of a tandem trace, and who wrote them.

use crate::etrace::small;
use crate::{Folder, RV32, RV64, fails, run, succeeds, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// A run of the sieve, traced.
fn traced(folder: &Folder, program: &str, more: &[&str]) -> String {
    traced_for(folder, "5K", program, more)
}

fn traced_for(folder: &Folder, limit: &str, program: &str, more: &[&str]) -> String {
    let trace = folder.name("run.tandem");
    let to = format!("tandem={trace}");
    let args = ["run", "-q", program, "--max-insns", limit, "--trace", &to];
    let output = run(&[&args[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    trace
}

fn json(args: &[&str]) -> Value {
    let args = [args, &["-f", "json"]].concat();
    serde_json::from_str(&succeeds(&args)).unwrap()
}

/// The registers in front of every instruction are those that the log of the
/// same run adds up to.
#[test]
fn states_follow_the_log() {
    for program in [RV64, RV32] {
        let folder = Folder::new();
        let log = folder.name("run.json");
        let to = format!("json={log}");
        let trace = traced(&folder, program, &["--log", &to]);
        let mut registers: BTreeMap<String, Value> = BTreeMap::new();
        let mut n = 0;
        for line in fs::read_to_string(&log).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["type"] == "insn" {
                if n % 800 == 700 {
                    let at = n.to_string();
                    let mut args = vec!["state", &trace, "--at", &at];
                    registers
                        .keys()
                        .for_each(|name| args.extend(["--reg", name]));
                    let state = json(&args);
                    assert_eq!(state["pc"], line["pc"]);
                    assert_eq!(state["bits"], line["bits"]);
                    for (name, value) in &registers {
                        assert_eq!(&state["registers"][name], value, "{name} at {n}");
                    }
                }
                n += 1;
            }
            for write in line["regs"].as_array().into_iter().flatten() {
                let name = write["name"].as_str().unwrap().to_owned();
                registers.insert(name, write["value"].clone());
            }
        }
        assert_eq!(n, 5000);
    }
}

#[test]
fn texts() {
    let folder = Folder::new();
    let program = small(&folder);
    let trace = folder.name("small.tandem");
    let to = format!("tandem={trace}");
    let args = ["run", "-q", &program, "--trace", &to];
    succeeds(&[&args[..], &["--max-insns", "24"]].concat());
    let golden = snapbox::Assert::new().action_env("SNAPSHOTS");
    let mut all = String::new();
    for args in [
        &["--at", "10"][..],
        &[
            "--reg", "t1", "--reg", "pc", "--reg", "mcause", "--reg", "priv",
        ],
        &["--at", "3", "--mem", "0x80000000:20"],
        &[
            "--last-write",
            "sp",
            "--last-write",
            "s0",
            "--last-write",
            "pc",
        ],
    ] {
        all += &format!("$ hartrace state small.tandem {}\n", args.join(" "));
        all += &succeeds(&[&["state", &trace], args].concat());
    }
    golden.eq(all, snapbox::file!["snapshots/tandem-state.txt"]);
}

/// Memory by symbol; what the trace has not told comes from the program.
#[test]
fn memory_and_symbols() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let state = json(&["state", &trace, "--at", "0", "--mem", "main+4:2"]);
    let memory = &state["memory"][0];
    assert_eq!(memory["symbol"], "main+0x4");
    assert_eq!(memory["source"], "pp");
    // The last store of the run, found by the log of groups.
    let dump = succeeds(&["dump", &trace]);
    let line = dump.lines().rev().find(|l| l.contains("store")).unwrap();
    let addr = line.split("eaddr=").nth(1).unwrap();
    let addr = addr.split(';').next().unwrap().trim();
    let found = json(&["state", &trace, "--last-write", addr]);
    let write = &found["writes"][0];
    assert_eq!(write["found"], "write", "{line}");
    let number = line.split_whitespace().nth(1).unwrap();
    assert_eq!(write["group"].to_string(), number);
    let state = json(&["state", &trace, "--mem", &format!("{addr}:1")]);
    assert_eq!(state["memory"][0]["source"], "t");
    let before = write["instruction"].to_string();
    let earlier = json(&["state", &trace, "--last-write", addr, "--before", &before]);
    assert_ne!(earlier["writes"][0]["group"], write["group"]);
    // Without the program there are no symbols.
    fs::remove_file(format!("{trace}.toml")).unwrap();
    let args = ["state", "-q", &trace, "--isa", "rv64gc", "--mem", "main"];
    fails(&args, 2, "HT0309");
}

/// What a store found is what the state before it holds, also where only the
/// program says so.
#[test]
fn the_old_value_of_a_store_is_the_state_before_it() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let dump = succeeds(&["dump", &trace]);
    let stores = dump.lines().filter(|line| line.contains("store"));
    let mut from_program = 0;
    for line in stores.take(40) {
        let address = line.split("eaddr=").nth(1).unwrap();
        let address = address.split(';').next().unwrap().trim();
        let found = json(&["state", &trace, "--last-write", address, "--before", "1000"]);
        let write = &found["writes"][0];
        if write["found"] != "write" {
            continue;
        }
        let size = write["size"].as_u64().unwrap();
        let at = write["instruction"].to_string();
        let place = format!("{}:{size}", write["address"].as_str().unwrap());
        let state = json(&["state", &trace, "--at", &at, "--mem", &place]);
        let memory = &state["memory"][0];
        let known = !memory["source"].as_str().unwrap().contains('-');
        assert_eq!(write["old"].is_string(), known, "{line}: {memory} {write}");
        from_program += u32::from(write["old_from_program"] == true);
    }
    assert!(from_program > 0);
}

/// As `verify --from` has it.
#[test]
fn the_state_at_a_symbol() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let state = json(&["state", &trace, "--at", "main", "--reg", "pc"]);
    assert_eq!(state["symbol"], "main", "{state}");
    let at = state["instruction"].to_string();
    let same = json(&["state", &trace, "--at", &at, "--reg", "pc"]);
    assert_eq!(state, same);
    let first = json(&["state", &trace, "--last-write", "sp", "--before", "main"]);
    let same = json(&["state", &trace, "--last-write", "sp", "--before", &at]);
    assert_eq!(first, same);
    let message = fails(&["state", &trace, "--at", "nowhere"], 2, "HT0309");
    assert!(
        message.contains("`nowhere` is not a number or a symbol"),
        "{message}"
    );
    fails(&["state", &trace, "--at", "tohost"], 2, "HT0310");
}

/// An index answers the same; one that does not fit is told and not used.
#[test]
fn indexes() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let asked = ["state", &trace, "--at", "4000"];
    let plain = succeeds(&asked);
    let output = run(&["state", &trace, "--index"]);
    assert!(text(&output.stderr).contains("5000 instructions"));
    assert_eq!(text(&output.stdout), "");
    let index = format!("{trace}.index");
    assert!(fs::metadata(&index).unwrap().len() > 40);
    assert_eq!(succeeds(&asked), plain);
    let whole = fs::read(&index).unwrap();
    for bytes in [&whole[..whole.len() - 1], b"", b"something else"] {
        fs::write(&index, bytes).unwrap();
        let output = run(&asked);
        let message = text(&output.stderr);
        assert!(message.starts_with("warning[HT0409]"), "{message}");
        assert_eq!(text(&output.stdout), plain);
    }
    // Another trace under the same name.
    fs::write(&index, &whole).unwrap();
    let shorter = traced_for(&folder, "4500", RV64, &[]);
    let output = run(&["state", &shorter, "--at", "4000"]);
    assert!(text(&output.stderr).contains("warning[HT0409]"));
    assert_eq!(text(&output.stdout).replace("of 4500", "of 5000"), plain);
    let output = run(&["state", "-", "--index"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn wrong_questions() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let message = fails(&["state", &trace, "--at", "5001"], 2, "HT0310");
    assert!(message.contains("5000 instructions"), "{message}");
    succeeds(&["state", &trace, "--at", "5000"]);
    let write = ["state", &trace, "--last-write", "a0", "--before", "1M"];
    fails(&write, 2, "HT0310");
    fails(&["state", &trace, "--reg", "x32"], 2, "HT0309");
    for place in ["", ":4", "0x10:0", "0x10:2M", "nothing", "+4"] {
        let place = format!("--mem={place}");
        fails(&["state", &trace, &place], 2, "HT0309");
    }
    for wrong in [
        &["--at", "x"][..],
        &["--before", "5"],
        &["--at", "1", "--last-write", "a0"],
    ] {
        let output = run(&[&["state", &trace], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let ntrace = folder.name("n");
    let to = format!("ntrace={ntrace}");
    succeeds(&["run", "-q", RV64, "--max-insns", "1K", "--trace", &to]);
    fails(&["state", &ntrace], 5, "HT0113");
}

/// Behind damage, what was told before is not known; a container is unpacked.
#[test]
fn damage_and_containers() {
    let folder = Folder::new();
    let trace = traced(&folder, RV64, &[]);
    let packed = folder.name("packed");
    let args = ["convert", "-q", &trace, "--to", "tandem", "--container"];
    succeeds(&[&args[..], &["--compress", "-o", &packed]].concat());
    let state = |trace: &str| json(&["state", trace, "--at", "3000"]);
    let plain = state(&trace);
    let again = state(&packed);
    assert_eq!(plain["registers"], again["registers"]);
    assert_eq!(plain["pc"], again["pc"]);
    fails(&["state", &packed, "--hart", "7"], 2, "HT0305");

    let mut bytes = fs::read(&trace).unwrap();
    let at = bytes.len() / 2;
    bytes[at..at + 40].fill(0xff);
    fs::write(&trace, bytes).unwrap();
    let output = run(&["state", &trace, "--last-write", "gp"]);
    let message = text(&output.stderr);
    assert!(message.contains("warning[HT0111]"), "{message}");
    assert!(text(&output.stdout).starts_with("gp: unknown"));
}
