//! Waveforms as logs.

use crate::{Folder, fails, repository, run, succeeds, text};
use hartrace_testkit::{assemble, elf32_at};
use std::fmt::Write as _;
use std::fs;

/// A hart of 32 bits that executes `addi a0, a0, 1` at 0x80000000 and so on, in VCD; `value`
/// gives what it writes.
fn counting(cycles: u64, value: impl Fn(u64) -> u64) -> String {
    let mut vcd = String::from("$timescale 100ps $end\n$scope module tb $end\n");
    vcd += "$var wire 1 ! clk $end\n$var wire 1 v rvfi_valid $end\n";
    for (code, name, width) in [
        ("o", "order", 64),
        ("i", "insn", 32),
        ("p", "pc_rdata", 32),
        ("n", "pc_wdata", 32),
        ("r", "rd_addr", 5),
        ("w", "rd_wdata", 32),
        ("m", "mode", 2),
    ] {
        writeln!(vcd, "$var wire {width} {code} rvfi_{name} $end").unwrap();
    }
    vcd += "$upscope $end\n$enddefinitions $end\n";
    for n in 0..cycles {
        let pc = 0x8000_0000 + 4 * n;
        writeln!(
            vcd,
            "#{} 0! 1v b{n:b} o b{:b} i b{pc:b} p",
            100 * n,
            0x0015_0513
        )
        .unwrap();
        writeln!(vcd, "b{:b} n b1010 r b{:b} w b11 m", pc + 4, value(n)).unwrap();
        writeln!(vcd, "#{} 1!", 100 * n + 50).unwrap();
    }
    vcd
}

/// The instructions of [`counting`].
fn program(folder: &Folder) -> String {
    let code = 0x0015_0513u32.to_le_bytes().repeat(100);
    let file = folder.file("code.bin", code);
    format!("{file}@0x80000000")
}

#[test]
fn a_waveform_is_read_like_a_log() {
    let folder = Folder::new();
    let file = folder.file("run.vcd", counting(5, |n| n + 1));
    let pcs = succeeds(&["log", &file, "--to", "pc"]);
    assert_eq!(pcs, "80000000\n80000004\n80000008\n8000000c\n80000010\n");
    let spike = succeeds(&["log", &file, "--to", "spike"]);
    let line = "core   0: 3 0x80000008 (0x00150513) x10 0x00000003\n";
    assert!(spike.contains(line), "{spike}");
    let info = succeeds(&["info", &file]);
    for row in ["waveform", "clock edges 5", "retired     5 instructions"] {
        assert!(info.contains(row), "{info}");
    }
    // From a pipe, and by name.
    let again = succeeds(&["log", "--log-format", "rvfi-wave", &file, "--to", "pc"]);
    assert_eq!(again, pcs);
    let raw = program(&folder);
    let trace = folder.name("t");
    let isa = ["--raw", &raw, "--isa", "rv32gc"];
    let encode = ["encode", "-q", &file, "--to", "etrace", "-o", &trace];
    succeeds(&[&encode[..], &isa].concat());
    let decoded = succeeds(&[&["decode", "-q", &trace, "-f", "pc"], &isa[..]].concat());
    assert_eq!(decoded, pcs);
    let same = run(&[&["diff", "-q", &file, &trace], &isa[..]].concat());
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
}

/// A port that only the settings make known.
#[test]
fn a_port_with_other_names_is_converted() {
    let folder = Folder::new();
    let vcd = counting(3, |n| n + 1).replace("rvfi_", "trace_");
    let file = folder.file("run.vcd", vcd.replace("trace_rd_wdata", "trace_result"));
    let settings = "[wave]\nport = \"rvfi\"\nprefix = \"trace_\"\n\
                    [wave.signals]\nrd_wdata = \"tb.trace_result\"\n";
    let config = folder.file("wave.toml", settings);
    let spike = succeeds(&["log", &file, "-c", &config, "--to", "spike"]);
    let line = "core   0: 3 0x80000008 (0x00150513) x10 0x00000003\n";
    assert!(spike.contains(line), "{spike}");
}

/// A core in VHDL whose port is a record, in a file that GHDL wrote.
#[test]
fn a_waveform_of_ghdl_verifies() {
    let program = assemble(
        0x8000_0000,
        "       lui sp, 0x80001
                li ra, 3
                li gp, 0
        loop:   add gp, gp, ra
                sw gp, 0(sp)
                sb zero, 4(sp)
                lw tp, 0(sp)
                srai t0, tp, 3
                xor t1, gp, t0
                addi ra, ra, -1
                bnez ra, loop
                auipc t2, 0
                jalr s0, 12(t2)
                nop
        end:    j end",
    );
    let folder = Folder::new();
    let elf = folder.file("p.elf", elf32_at(0x8000_0000, &program.unwrap().bytes));
    let file = repository().join("crates/wave/tests/ghdl/core.ghw");
    let file = file.to_str().unwrap();
    let settings = ["-e", &elf, "--isa", "rv32i", "--memory", "0x80000000:64K"];
    let report = succeeds(&[&["verify", "-q", file][..], &settings].concat());
    assert!(report.contains("35 instructions, 0 exceptions"), "{report}");
    assert!(report.contains("integer register 20, store 6"), "{report}");
    assert!(report.contains("verdict       clean\n"), "{report}");
}

#[test]
fn unknown_values_are_reported_with_their_time() {
    let folder = Folder::new();
    let vcd = counting(5, |n| n + 1).replace("#200 0! 1v", "#200 0! xv");
    let file = folder.file("run.vcd", vcd);
    let output = run(&["log", &file, "--to", "pc"]);
    assert_eq!(output.status.code(), Some(0));
    let errors = text(&output.stderr);
    let note = "at 25 ns: bits that are neither 0 nor 1 (x or z) in `tb.rvfi_valid`";
    assert!(
        errors.contains(note) && errors.contains("HT0106"),
        "{errors}"
    );
    let strict = run(&["log", "--strict", &file, "--to", "pc"]);
    assert_eq!(strict.status.code(), Some(3));
}

#[test]
fn ports_that_are_not_clear_are_listed() {
    let folder = Folder::new();
    let one = counting(3, |n| n + 1);
    let (header, body) = one.split_once("$enddefinitions").unwrap();
    let start = header.find("$scope").unwrap();
    let (a, b) = (
        &header[start..],
        header[start..].replace("module tb", "module uv"),
    );
    let two = format!("{}{a}{b}$enddefinitions{body}", &header[..start]);
    // The same nets under two names are one port.
    let file = folder.file("two.vcd", &two);
    assert_eq!(succeeds(&["log", &file, "--to", "pc"]).lines().count(), 3);
    // Other nets are not.
    let other = b.replace(" v rvfi_valid", " vv rvfi_valid");
    let two = format!("{}{a}{other}$enddefinitions{body}", &header[..start]);
    let file = folder.file("two.vcd", two);
    let errors = fails(&["log", &file, "--to", "pc"], 5, "HT0131");
    assert!(
        errors.contains("RVFI: tb.rvfi_*") && errors.contains("RVFI: uv.rvfi_*"),
        "{errors}"
    );
    let config = folder.file("scope.toml", "[wave]\nscope = \"tb\"\n");
    let pcs = succeeds(&["log", &file, "-c", &config, "--to", "pc"]);
    assert_eq!(pcs.lines().count(), 3);
    let none = folder.file("none.vcd", "$timescale 1ns $end $enddefinitions $end #0\n");
    fails(&["log", &none, "--to", "pc"], 5, "HT0131");
    let cut = folder.file("cut.vcd", &one[..200]);
    fails(&["log", &cut, "--to", "pc"], 5, "HT0132");
}

/// Rows need no program: the trace is that of the run.
#[test]
fn rows_of_an_ingress_port_are_encoded_without_a_program() {
    let folder = Folder::new();
    let program = repository().join("programs/exceptions/exceptions-rv32gc.elf");
    let program = program.to_str().unwrap();
    for kind in ["etrace", "ntrace"] {
        let (rows, traced, encoded) = (
            folder.name("rows.csv"),
            folder.name("run.trace"),
            folder.name("rows.trace"),
        );
        let (log, trace) = (format!("ingress={rows}"), format!("{kind}={traced}"));
        run(&[
            "run",
            "-q",
            program,
            "--log",
            &log,
            "--trace",
            &trace,
            "--max-insns",
            "20K",
        ]);
        let args = [
            "encode", "-q", &rows, "--isa", "rv32gc", "--to", kind, "-o", &encoded,
        ];
        succeeds(&args);
        let same = fs::read(&traced).unwrap() == fs::read(&encoded).unwrap();
        assert!(same, "{kind}");
        succeeds(&["diff", "--messages", "-q", &traced, &encoded]);
    }
}
