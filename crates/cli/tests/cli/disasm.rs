//! `hartrace disasm`. Whether the text is that of objdump is checked where it
//! is made.

use crate::{Folder, RV32, RV64, hartrace, run, succeeds, text};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

#[test]
fn the_listing_of_a_program() {
    let listing = succeeds(&["disasm", RV64]);
    let title = format!("\n{RV64}:     file format elf64-littleriscv\n\n");
    assert!(listing.starts_with(&title), "{listing}");
    for line in [
        "0000000080000000 <_start>:",
        "    80000000:\t00010117          \tauipc\tsp,0x10",
        "    80000030:\t2dc000ef          \tjal\t8000030c <main>",
    ] {
        assert!(listing.lines().any(|l| l == line), "{line}");
    }
}

#[test]
fn spelling() {
    let plain = succeeds(&["disasm", RV64, "--no-aliases"]);
    assert!(plain.contains("\tc.jr\tra\n") && !plain.contains("\tret\n"));
    let numeric = succeeds(&["disasm", RV64, "--numeric"]);
    assert!(numeric.contains("\tauipc\tx2,0x10\n"));
    let both = succeeds(&["disasm", RV64, "--numeric", "--no-aliases"]);
    assert!(both.contains("\tc.jr\tx1\n"));
}

/// What somebody says counts, what the file says for itself does not need to.
#[test]
fn the_instruction_set() {
    let own = succeeds(&["disasm", RV64]);
    assert_eq!(succeeds(&["disasm", RV64, "--isa", "rv64gc"]), own);
    let less = succeeds(&["disasm", RV64, "--isa", "rv64g"]);
    assert!(own.contains("\tret\n") && !less.contains("\tret\n"));
    let folder = Folder::new();
    let config = folder.file("a.toml", "[program]\nisa = \"rv64g\"\n");
    assert_eq!(succeeds(&["disasm", RV64, "-c", &config]), less);
}

#[test]
fn instructions_that_are_not_decoded() {
    let folder = Folder::new();
    // Of no extension.
    let raw = folder.file("code.bin", [0x0b, 0xf5, 0x05, 0x00]) + "@0";
    let args = ["disasm", "--raw", &raw, "--isa", "rv64gc_xfoo1p0_xbar"];
    let output = run(&args);
    let message = text(&output.stderr);
    assert!(message.starts_with("warning[HT0404]: "), "{message}");
    assert!(message.contains("not decoded: xbar, xfoo\n"), "{message}");
    assert_eq!(output.status.code(), Some(0));
    let listing = text(&output.stdout);
    assert!(listing.contains("\t.4byte\t0x5f50b\n"), "{listing}");
    let args = [&args[..], &["-q", "--objdump", "2.45"]].concat();
    let newer = succeeds(&args);
    assert!(newer.contains("\t.insn\t4, 0x0005f50b\n"), "{newer}");
}

#[test]
fn vectors() {
    let folder = Folder::new();
    let words = [0x0d05_f557u32, 0x0205_e407, 0x0025_0513, 0xb222_20f7];
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let raw = folder.file("code.bin", bytes) + "@0";
    let texts = [
        "vsetvli\ta0,a1,e32,m1,ta,ma",
        "vle32.v\tv8,(a1)",
        "addi\ta0,a0,2",
        "vghsh.vv\tv1,v2,v4",
    ];
    let isa = ["--isa", "rv64gcv_zvl256b_zvkng_zvkt"];
    let newer = [&["disasm", "--raw", &raw, "--objdump", "2.45"], &isa[..]].concat();
    let output = run(&newer);
    assert_eq!(text(&output.stderr), "");
    let listing = text(&output.stdout);
    for text in texts {
        assert!(listing.contains(&format!("\t{text}\n")), "{listing}");
    }
    let older = succeeds(&[&["disasm", "--raw", &raw], &isa[..]].concat());
    assert_eq!(older.replace("\tadd\t", "\taddi\t"), listing);
}

#[test]
fn bases_and_raw_binaries() {
    let folder = Folder::new();
    let moved = succeeds(&["disasm", "-q", &format!("{RV32}@0x1000")]);
    assert!(
        moved.contains("\n00001000 <_start>:\n    1000:\t00010117 "),
        "{moved}"
    );
    assert!(moved.contains("\tjal\t12d2 <main>\n"), "{moved}");
    let raw = folder.file("code.bin", [0x01, 0xa0, 0x13, 0, 0, 0]);
    let listing = succeeds(&[
        "disasm",
        "--raw",
        &format!("{raw}@0x80000000"),
        "--isa",
        "rv32ic",
    ]);
    let expected = format!(
        "\n{raw}:     file format binary\n\n\nDisassembly of section .data:\n\n\
         80000000 <.data>:\n80000000:\ta001                \tj\t0x80000000\n\
         80000002:\t00000013          \tnop\n"
    );
    assert_eq!(listing, expected);
    // One after the other, as objdump does.
    let both = succeeds(&[
        "disasm",
        RV32,
        "--raw",
        &format!("{raw}@0x80000000"),
        "--isa",
        "rv32ic",
    ]);
    assert!(both.ends_with(&expected) && both.len() > 2 * expected.len());
}

#[test]
fn a_pipe_closed_on_the_way() {
    let folder = Folder::new();
    let raw = folder.file("code.bin", [0x01, 0xa0].repeat(1 << 19));
    let list = folder.file("run.pc", "0000000080000000\n".repeat(200_000));
    let raw = format!("{raw}@0");
    for args in [
        &["disasm", "--raw", &raw, "--isa", "rv64gc"][..],
        &["log", &list, "-e", RV64, "--to", "pc"],
        &["log", &list, "-e", RV64, "--to", "ingress"],
        &["log", &list, "-e", RV64, "--to", "json"],
    ] {
        let mut child = hartrace()
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
        reader.read_line(&mut line).unwrap();
        drop(reader);
        let mut talk = String::new();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut talk).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}: {talk}");
        assert_eq!(talk, "", "{args:?}");
    }
}

/// Sizes that are only claimed cost nothing.
#[test]
fn huge_sections_without_contents() {
    let folder = Folder::new();
    let whole = fs::read(RV64).unwrap();
    let table = usize::try_from(u64::from_le_bytes(whole[40..48].try_into().unwrap())).unwrap();
    let text_header = table + 64;
    for size in [u64::MAX, 1 << 63, 1 << 40] {
        let mut bytes = whole.clone();
        bytes[text_header + 4..text_header + 8].copy_from_slice(&8u32.to_le_bytes()); // NOBITS
        bytes[text_header + 32..text_header + 40].copy_from_slice(&size.to_le_bytes());
        let elf = folder.file("a.elf", &bytes);
        let output = run(&["disasm", &elf]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).lines().count() < 5);
    }
    // At the end of the address space addresses wrap round.
    let mut bytes = whole.clone();
    bytes[text_header + 16..text_header + 24].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
    let elf = folder.file("a.elf", &bytes);
    let listing = succeeds(&["disasm", &elf]);
    assert!(
        listing.contains("\nfffffffffffffff8:\t00010117 "),
        "{listing}"
    );
}
