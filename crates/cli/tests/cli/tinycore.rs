//! The core in `examples/tinycore`, verified by what its simulation has written. The tests
//! of `ffi` check it while it is simulated. Skipped where Icarus Verilog is not installed.

use crate::{Folder, repository, run, text};
use std::process::Command;

fn example(file: &str) -> String {
    let path = repository().join("examples/tinycore").join(file);
    path.to_str().unwrap().to_owned()
}

/// Simulates the core with a macro, and has the testbench write a file; `None` without a
/// simulator.
fn simulated(folder: &Folder, fault: &str, kind: &str) -> Option<String> {
    simulated_with(folder, fault, kind, &[])
}

/// The same with more flags of the compiler.
#[allow(clippy::print_stdout)] // what is skipped is said
fn simulated_with(folder: &Folder, fault: &str, kind: &str, more: &[&str]) -> Option<String> {
    let made = folder.name(&format!("{fault}.vvp"));
    let built = Command::new("iverilog")
        .args(["-g2012", "-o", &made, &format!("-D{fault}")])
        .args(more)
        .args(["tinycore.v", "testbench.v", "pairs.v"].map(example))
        .output();
    let Ok(built) = built else {
        println!("skipped: iverilog is not installed");
        return None;
    };
    assert!(built.status.success(), "{}", text(&built.stderr));
    let file = folder.name(&format!("{fault}.{kind}"));
    let ran = Command::new("vvp")
        .arg(made)
        .arg(format!("+program={}", example("program.hex")))
        .arg(format!("+{kind}={file}"))
        .output()
        .unwrap();
    assert!(
        text(&ran.stdout).contains("primes"),
        "{}",
        text(&ran.stdout)
    );
    Some(file)
}

#[test]
fn its_log_verifies_and_faults_are_found_at_their_instructions() {
    let folder = Folder::new();
    let (elf, config) = (example("program.elf"), example("tinycore.toml"));
    for (fault, place, what) in [
        ("NO_BUG", "verdict       clean", "8624 instructions"),
        ("BUG_ADDER", "at 0x8000021c <main+0x64>", "add a3,t4,a7"),
        ("BUG_WRITE_ENABLE", "at 0x80000228 <main+0x70>", "store"),
        (
            "BUG_LATE_INTERRUPT",
            "at 0x800000a4 <windows+0x8>",
            "disabled",
        ),
    ] {
        let Some(log) = simulated(&folder, fault, "log") else {
            return;
        };
        let most = ["--max-mismatches", "1"];
        let output = run(&[
            &["verify", "-q", &log, "-e", &elf, "-c", &config],
            &most[..],
        ]
        .concat());
        let report = text(&output.stdout);
        let code = if fault == "NO_BUG" { 0 } else { 4 };
        assert_eq!(
            output.status.code(),
            Some(code),
            "{report}{}",
            text(&output.stderr)
        );
        assert!(
            report.contains(place) && report.contains(what),
            "{fault}: {report}"
        );
    }
}

#[test]
fn its_ingress_port_is_encoded_and_decodes_to_its_instructions() {
    let folder = Folder::new();
    let (Some(rows), Some(log)) = (
        simulated(&folder, "NO_BUG", "rows"),
        simulated(&folder, "NO_BUG", "log"),
    ) else {
        return;
    };
    let elf = example("program.elf");
    for kind in ["etrace", "ntrace"] {
        let trace = folder.name(kind);
        let args = [
            "encode", "-q", &rows, "-e", &elf, "--to", kind, "-o", &trace,
        ];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let decoded = run(&["decode", "-q", &trace, "-e", &elf, "-f", "pc"]);
        let logged = run(&["log", "-q", &log, "--to", "pc"]);
        assert_eq!(text(&decoded.stdout), text(&logged.stdout), "{kind}");
    }
}

/// The waveform has RVFI and the ingress port. What the core shows of its last instruction is
/// there after the last rising edge.
#[test]
fn its_waveform_verifies_and_is_encoded_as_its_rows_are() {
    let folder = Folder::new();
    let (elf, config) = (example("program.elf"), example("tinycore.toml"));
    for (fault, place, time) in [
        ("NO_BUG", "verdict       clean", "8624 instructions"),
        ("BUG_ADDER", "at 0x8000021c <main+0x64>", "time 660 ns"),
        (
            "BUG_LATE_INTERRUPT",
            "at 0x800000a4 <windows+0x8>",
            "no enabled interrupt",
        ),
    ] {
        let Some(waves) = simulated(&folder, fault, "waves") else {
            return;
        };
        let edge = folder.file("edge.toml", "[wave]\nedge = \"falling\"\n");
        let output = run(&[
            "verify",
            "-q",
            &waves,
            "-e",
            &elf,
            "-c",
            &config,
            "-c",
            &edge,
            "--max-mismatches",
            "1",
        ]);
        let report = text(&output.stdout);
        assert!(
            report.contains(place) && report.contains(time),
            "{fault}: {report}{}",
            text(&output.stderr)
        );
        if fault == "NO_BUG" {
            let rows = simulated(&folder, "NO_BUG", "rows").unwrap();
            for kind in ["etrace", "ntrace"] {
                let files = [folder.name("rows.trace"), folder.name("waves.trace")];
                for (input, file) in [&rows, &waves].into_iter().zip(&files) {
                    let args = [
                        "encode", "-q", input, "-c", &edge, "--isa", "rv32i", "--to", kind,
                    ];
                    let output = run(&[&args[..], &["-o", file]].concat());
                    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
                }
                let [rows, waves] = files.map(|file| std::fs::read(file).unwrap());
                assert!(rows == waves && !rows.is_empty(), "{kind}");
            }
        }
    }
}

/// A waveform of a simulator with a port of two lanes, of which one, the other or both
/// retire.
#[test]
fn a_port_with_two_lanes_verifies() {
    let folder = Folder::new();
    let (elf, config) = (example("program.elf"), example("tinycore.toml"));
    let port = "[wave]\nscope = \"testbench.pairs\"\nprefix = \"rvfi_\"\n";
    let port = folder.file("port.toml", port);
    for (fault, place, what) in [
        ("NO_BUG", "verdict       clean", "8621 instructions"),
        ("BUG_ADDER", "at 0x8000021c <main+0x64>", "add a3,t4,a7"),
        ("BUG_WRITE_ENABLE", "at 0x80000228 <main+0x70>", "store"),
        (
            "BUG_LATE_INTERRUPT",
            "at 0x800000a4 <windows+0x8>",
            "no enabled interrupt",
        ),
    ] {
        let Some(waves) = simulated_with(&folder, fault, "waves", &["-DPAIRS"]) else {
            return;
        };
        let files = ["-e", &elf, "-c", &config, "-c", &port];
        let args = ["verify", "-q", &waves, "--max-mismatches", "1"];
        let output = run(&[&args[..], &files].concat());
        let report = text(&output.stdout);
        assert!(
            report.contains(place) && report.contains(what),
            "{fault}: {report}{}",
            text(&output.stderr)
        );
    }
}
