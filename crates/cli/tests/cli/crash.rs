//! `hartrace report` of programs that died.

use crate::report::{numbers, recorded, report};
use crate::tiny::{BASE, SPIN, addi, auipc, clear, elf_with, jump, set_handler};
use crate::{Folder, fails};
use hartrace_testkit::asm;
use serde_json::Value;

/// `walk` calls `poke`, whose first instruction writes where nothing is; `handler` stays
/// for ever.
fn crash(folder: &Folder) -> String {
    let words = [
        auipc(5),
        addi(5, 5, 0x28),
        set_handler(5),
        asm::jal(1, 8),
        SPIN,
        addi(6, 0, 0x10),
        asm::jal(1, 8),
        SPIN,
        clear(6),
        jump(1),
        addi(7, 7, 1),
        SPIN,
    ];
    let functions = [("start", 0), ("walk", 5), ("poke", 8), ("handler_trap", 10)];
    folder.file("crash.elf", elf_with(&words, &functions))
}

/// What faults without end: there is no handler.
fn nested(folder: &Folder) -> String {
    let words = [
        set_handler(0),
        asm::jal(1, 8),
        SPIN,
        addi(6, 0, 0x10),
        clear(6),
        SPIN,
    ];
    folder.file("nested.elf", elf_with(&words, &[("start", 0), ("poke", 3)]))
}

fn name(run: &Value, function: &Value) -> String {
    let Ok(function) = usize::try_from(function.as_i64().unwrap()) else {
        return String::new();
    };
    let string = run["functions"]["name"][function].as_u64().unwrap();
    run["strings"][string as usize].as_str().unwrap().to_owned()
}

fn names(run: &Value, functions: &Value) -> Vec<String> {
    let functions = functions.as_array().unwrap().iter();
    functions.map(|function| name(run, function)).collect()
}

fn last(column: &Value) -> &Value {
    column.as_array().unwrap().last().unwrap()
}

/// The first instruction of a call faults: the function is the one that was called, the
/// instruction is listed though it did not retire, and the end is in the handler.
#[test]
fn a_fault_at_the_first_instruction_of_a_call() {
    let poke = format!("{:#x}", BASE + 0x20);
    let cases = [
        ("ntrace", "exception", ""),
        ("etrace", "store access fault", ", value 0x10"),
        ("tandem", "store access fault", ", value 0x10"),
    ];
    for (kind, cause, value) in cases {
        let folder = Folder::new();
        let file = recorded(&folder, &crash(&folder), kind, &["--max-insns", "40"]);
        let page = report(&[&file]);
        let run = &page["runs"][0];
        assert_eq!(names(run, &run["traps"]["function"]), ["poke"], "{kind}");
        assert_eq!(names(run, &run["traps"]["handler"]), ["handler_trap"]);
        let before = &run["before_traps"][0];
        let rows = &before["rows"];
        assert_eq!(last(&rows["address"]), poke.as_str(), "{kind}");
        assert_eq!(name(run, last(&rows["function"])), "poke");
        assert!(last(&rows["text"]).as_str().unwrap().starts_with("sw "));
        let note = format!("did not retire: {cause}{value}");
        assert_eq!(last(&rows["note"]), note.as_str());
        let kinds = numbers(&rows["kind"]);
        assert_eq!(kinds.iter().filter(|kind| **kind > 0).count(), 1, "{kind}");
        assert_eq!(kinds.last(), Some(&2));
        assert_eq!(
            names(run, &before["callers"]["function"]),
            ["walk", "start"]
        );
        let end = &run["endings"][0];
        let how = end["how"].as_str().unwrap();
        let expected = match kind {
            "ntrace" => {
                format!("inside the handler of an exception at {poke} in poke, that did not return")
            }
            _ => format!(
                "inside the handler of an exception (store access fault) at {poke} in poke, that did not return"
            ),
        };
        assert!(how.starts_with(&expected), "{kind}: {how}");
        assert_eq!(end["trap"], 0);
    }
}

/// Traps at one position are told apart, and the instructions before them are listed once.
#[test]
fn traps_at_one_position() {
    let folder = Folder::new();
    let file = folder.name("nested.ntrace");
    let to = format!("ntrace={file}");
    fails(
        &["run", "-q", &nested(&folder), "--trace", &to],
        10,
        "HT0502",
    );
    let page = report(&[&file]);
    let run = &page["runs"][0];
    let traps = &run["traps"];
    let positions = numbers(&traps["at"]);
    assert!(positions.len() >= 2, "{traps}");
    assert!(positions.iter().all(|at| *at == positions[0]), "{traps}");
    assert_eq!(numbers(&traps["depth"])[..2], [2, 3]);
    assert_eq!(names(run, &traps["function"])[0], "poke");
    let before = run["before_traps"].as_array().unwrap();
    let places: Vec<u64> = before.iter().map(|b| b["trap"].as_u64().unwrap()).collect();
    assert!(places.is_sorted() && places.len() >= 2, "{places:?}");
    assert_eq!(before[0]["again"], false);
    assert_eq!(before[0]["rows"]["at"].as_array().unwrap().len(), 4);
    for again in &before[1..] {
        assert_eq!(again["again"], true);
        assert_eq!(again["rows"]["address"], serde_json::json!(["0x0"]));
    }
    assert_eq!(places.last().copied(), Some(positions.len() as u64 - 1));
}

/// A call of address 0, where there is no code: the exception is there, and not in the
/// caller, which is named as such.
#[test]
fn a_call_of_nothing() {
    // `jalr ra, 0(zero)`.
    let call = 0x0000_00e7;
    let words = [
        auipc(5),
        addi(5, 5, 0x20),
        set_handler(5),
        asm::jal(1, 8),
        SPIN,
        addi(6, 0, 1),
        call,
        SPIN,
        addi(7, 7, 1),
        SPIN,
    ];
    let functions = [("start", 0), ("leap", 5), ("handler_trap", 8)];
    for kind in ["ntrace", "etrace", "tandem"] {
        let folder = Folder::new();
        let elf = folder.file("leap.elf", elf_with(&words, &functions));
        let file = recorded(&folder, &elf, kind, &["--max-insns", "40"]);
        let page = report(&[&file]);
        let run = &page["runs"][0];
        assert_eq!(run["traps"]["epc"][0], "0x0", "{kind}");
        let interrupted = name(run, &run["traps"]["function"][0]);
        assert!(
            ["", "0x0"].contains(&interrupted.as_str()),
            "{kind}: {interrupted}"
        );
        let how = run["endings"][0]["how"].as_str().unwrap();
        let caller = format!(" at 0x0 (called at {:#x} in leap)", BASE + 0x18);
        assert!(how.contains(&caller), "{kind}: {how}");
    }
}
