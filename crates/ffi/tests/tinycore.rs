//! The core in `examples/tinycore`, checked by the library while it is simulated, with
//! Icarus Verilog (VPI) and with Verilator (DPI-C). Planted faults are found at their
//! instructions. What is not installed is skipped, with a line that says so. The tests of
//! `cli` verify its log.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)] // what is skipped is said

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A fault with the place where it is found: the address, and what the report has about it.
const FAULTS: [(&str, &str, &str); 3] = [
    ("BUG_ADDER", "at 0x8000021c <main+0x64>", "add a3,t4,a7"),
    (
        "BUG_WRITE_ENABLE",
        "at 0x80000228 <main+0x70>",
        "store address",
    ),
    (
        "BUG_LATE_INTERRUPT",
        "at 0x800000a4 <windows+0x8>",
        "interrupt",
    ),
];

const AGREES: &str = "hartrace: 8623 instructions agree";
const PRINTED: &str = "primes 78, exceptions 5, interrupts 20";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(file: &str) -> PathBuf {
    root().join("examples/tinycore").join(file)
}

/// Whether a tool is installed; prints what is skipped otherwise.
fn installed(tool: &str) -> bool {
    let found = Command::new(tool).arg("--help").output().is_ok();
    if !found {
        println!("skipped: {tool} is not installed");
    }
    found
}

/// The static library that this test was built with.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libhartrace.a")
}

fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let errors = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}\n{text}{errors}");
    text
}

/// What a simulation prints, whether it ends well or not.
fn simulate(command: &mut Command) -> String {
    let Output { stdout, stderr, .. } = command.output().unwrap();
    String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
}

fn arguments(program: &Path) -> [String; 3] {
    [
        format!("+program={}", program.display()),
        format!("+hartrace_config={}", example("tinycore.toml").display()),
        format!("+hartrace_elf={}", example("program.elf").display()),
    ]
}

/// The simulation of Icarus with these macros.
fn icarus(folder: &Path, macros: &[&str]) -> PathBuf {
    let made = folder.join(format!("{}.vvp", macros.join("-")));
    let macros = macros.iter().map(|name| format!("-D{name}"));
    run(Command::new("iverilog")
        .args(["-g2012", "-o"])
        .arg(&made)
        .args(macros)
        .args(["tinycore.v", "testbench.v", "pairs.v"].map(example))
        .arg(root().join("sv/hartrace_rvfi.sv")));
    made
}

/// Builds the VPI module; `None` where a compiler or its headers are missing.
fn vpi(folder: &Path) -> Option<()> {
    let headers = Path::new("/usr/include/iverilog");
    if !headers.join("vpi_user.h").exists() || !library().exists() {
        println!("skipped: there is no vpi_user.h, or no static library");
        return None;
    }
    run(Command::new("cc")
        .args([
            "-std=c99", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
        ])
        .arg("-I")
        .arg(root().join("crates/ffi/include"))
        .arg("-I")
        .arg(headers)
        .args(["hartrace_vpi.c", "hartrace_dpi.c"].map(|file| root().join("sv").join(file)))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(folder.join("hartrace.vpi")));
    Some(())
}

/// What a simulation of Icarus prints that calls the VPI module.
fn simulate_icarus(folder: &Path, made: &Path) -> String {
    simulate(
        Command::new("vvp")
            .arg("-M")
            .arg(folder)
            .args(["-m", "hartrace"])
            .arg(made)
            .args(arguments(&example("program.hex"))),
    )
}

#[test]
fn icarus_checks_tinycore_while_it_runs() {
    if !installed("iverilog") || !installed("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some(()) = vpi(folder) else { return };
    let check = |macros: &[&str]| simulate_icarus(folder, &icarus(folder, macros));
    let text = check(&["HARTRACE"]);
    assert!(text.contains(AGREES) && text.contains(PRINTED), "{text}");
    for (fault, place, what) in FAULTS {
        let text = check(&["HARTRACE", fault]);
        assert!(text.contains("mismatch 1: instruction "), "{fault}: {text}");
        assert!(
            text.contains(place) && text.contains(what),
            "{fault}: {text}"
        );
        assert!(
            text.contains("FATAL") && !text.contains(AGREES),
            "{fault}: {text}"
        );
    }
}

/// The same with a port that shows two instructions in a cycle.
#[test]
fn icarus_checks_a_port_with_two_lanes() {
    if !installed("iverilog") || !installed("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some(()) = vpi(folder) else { return };
    let check = |macros: &[&str]| simulate_icarus(folder, &icarus(folder, macros));
    let text = check(&["HARTRACE", "PAIRS"]);
    // The last two are not on the port yet when the simulation ends.
    assert!(text.contains("hartrace: 8621 instructions agree"), "{text}");
    for (fault, place, what) in FAULTS {
        let text = check(&["HARTRACE", "PAIRS", fault]);
        assert!(
            text.contains(place) && text.contains(what),
            "{fault}: {text}"
        );
        assert!(text.contains("hartrace: lane "), "{fault}: {text}");
    }
}

/// The simulation of Verilator with these macros and sources.
fn verilator(folder: &Path, macros: &[&str], sources: &[PathBuf]) -> PathBuf {
    let include = root().join("crates/ffi/include").canonicalize().unwrap();
    run(Command::new("verilator")
        .args(["--binary", "--timing", "-Wno-fatal", "--top", "testbench"])
        .args(["-MAKEFLAGS", "OPT_FAST=-O0 OPT_GLOBAL=-O0"])
        .args(macros.iter().map(|name| format!("-D{name}")))
        .arg("--Mdir")
        .arg(folder)
        .args(["tinycore.v", "testbench.v"].map(example))
        .args(sources)
        .arg(root().join("sv/hartrace_dpi.c").canonicalize().unwrap())
        .args(["-CFLAGS", &format!("-I{}", include.display())])
        .arg("-LDFLAGS")
        .arg(format!("{} -lpthread -ldl -lm", library().display())));
    folder.join("Vtestbench")
}

#[test]
fn verilator_checks_tinycore_while_it_runs() {
    if !installed("verilator") || !library().exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let simulation = verilator(folder, &["HARTRACE"], &[root().join("sv/hartrace_rvfi.sv")]);
    let check = |program: &Path| simulate(Command::new(&simulation).args(arguments(program)));
    let text = check(&example("program.hex"));
    assert!(text.contains(AGREES) && text.contains(PRINTED), "{text}");
    // Another program than the hart has: its first instruction writes another register.
    let other = std::fs::read_to_string(example("program.hex")).unwrap();
    let other = other.replacen("00000197", "00000217", 1);
    let program = folder.join("other.hex");
    std::fs::write(&program, other).unwrap();
    let text = check(&program);
    assert!(text.contains("mismatch 1: instruction 0,"), "{text}");
    assert!(text.contains("auipc tp"), "{text}");
}

/// By RVVI-TRACE, in Verilator: Icarus has neither interfaces with arrays nor DPI-C. The port
/// shows no stores: a lost one is found where it is loaded.
#[test]
fn verilator_checks_tinycore_by_rvvi() {
    if !installed("verilator") || !library().exists() {
        return;
    }
    let sources = [example("rvvi.sv"), root().join("sv/hartrace_rvvi.sv")];
    for (fault, place, what) in [
        (
            "NO_BUG",
            PRINTED,
            "hartrace: hart 0: 8623 instructions agree",
        ),
        ("BUG_WRITE_ENABLE", "mismatch 1: instruction ", "lbu "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let simulation = verilator(folder.path(), &["RVVI", fault], &sources);
        let text = simulate(Command::new(&simulation).args(arguments(&example("program.hex"))));
        assert!(
            text.contains(place) && text.contains(what),
            "{fault}: {text}"
        );
        let stopped = text.contains("hartrace: hart 0, lane 0, order ");
        assert_eq!(stopped, fault != "NO_BUG", "{fault}: {text}");
    }
}
