//! The header is current: it has the functions, the constants and the structs of the
//! source, and a C compiler lays the structs out as the library does.

use hartrace::*;
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADER: &str = include_str!("../include/hartrace.h");

/// What stands before `end` after each `start` in a text.
fn between<'t>(text: &'t str, start: &str, end: char) -> BTreeSet<&'t str> {
    let pieces = text.split(start).skip(1);
    pieces.filter_map(|piece| piece.split(end).next()).collect()
}

/// The lines of C that are no comments.
fn code() -> String {
    let lines = HEADER.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with('*'));
    lines.collect::<Vec<_>>().join("\n")
}

const ADVICE: &str = "run cbindgen as in cbindgen.toml";

#[test]
fn the_header_has_every_function() {
    let source = include_str!("../src/calls.rs");
    let functions = between(source, "extern \"C\" fn ", '(');
    assert!(functions.len() >= 16, "{functions:?}");
    let code = code();
    for function in &functions {
        assert!(
            code.contains(&format!("{function}(")),
            "{function}: {ADVICE}"
        );
    }
}

#[test]
fn the_header_has_every_constant_and_field() {
    let source = include_str!("../src/types.rs");
    let code = code();
    for constant in between(source, "pub const ", ':') {
        assert!(
            code.contains(&format!("#define {constant} ")),
            "{constant}: {ADVICE}"
        );
    }
    let fields = source
        .lines()
        .filter_map(|line| line.strip_prefix("    pub "))
        .filter_map(|line| line.split(':').next())
        .map(|field| field.trim_start_matches("r#"));
    for field in fields {
        let found = [" ", "*"]
            .iter()
            .any(|before| code.contains(&format!("{before}{field};")))
            || code.contains(&format!(" {field}["));
        assert!(found, "{field}: {ADVICE}");
    }
}

/// The folder with the static library that this test was built with.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_path_buf()
}

#[test]
fn a_c_program_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let archive = library().join("libhartrace.a");
    if Command::new("cc").arg("--version").output().is_err() || !archive.exists() {
        println!("skipped: there is no C compiler `cc`, or no static library");
        return;
    }
    let program = folder.path().join("main");
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(manifest.join("include"))
        .arg(manifest.join("tests/c/main.c"))
        .arg(archive)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let elf = manifest.join("../../programs/sieve/sieve-rv64gc.elf");
    let ran = Command::new(program).arg(elf).output().unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{output}");
    assert_eq!(output, expected());
}

/// The layout as the library has it, and what the program finds.
fn expected() -> String {
    let rows = [
        ("hartrace_check_options", size_of::<CheckOptions>()),
        (
            "hartrace_check_options.elf_size",
            offset_of!(CheckOptions, elf_size),
        ),
        ("hartrace_retired", size_of::<Retired>()),
        ("hartrace_retired.rd_wdata", offset_of!(Retired, rd_wdata)),
        (
            "hartrace_retired.write_count",
            offset_of!(Retired, write_count),
        ),
        ("hartrace_write", size_of::<Write>()),
        ("hartrace_difference", size_of::<Difference>()),
        (
            "hartrace_difference.expected",
            offset_of!(Difference, expected),
        ),
        ("hartrace_difference.count", offset_of!(Difference, count)),
        ("hartrace_counts", size_of::<Counts>()),
        ("hartrace_encode_options", size_of::<EncodeOptions>()),
        ("hartrace_block", size_of::<Block>()),
        ("hartrace_block.iaddr", offset_of!(Block, iaddr)),
        ("hartrace_block.power_down", offset_of!(Block, power_down)),
    ];
    let layout: String = rows
        .iter()
        .map(|(name, at)| format!("{name} {at}\n"))
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    format!("{layout}version {version}\nx5 80000008 8000000c\ntrace bytes\n")
}
