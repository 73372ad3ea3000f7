//! Inputs and outputs that are not there, not writable, or not files.

use crate::{Folder, RV64, fails, hartrace, run, succeeds, text};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

#[test]
fn missing_input() {
    for args in [
        &["disasm", "none.elf"][..],
        &["info", "none.elf"],
        &["config", "show", "-c", "none.toml"],
    ] {
        let message = fails(args, 1, "HT0001");
        assert!(message.contains("`none."), "{message}");
    }
}

#[test]
fn directory_as_input() {
    let folder = Folder::new();
    let name = folder.name("");
    fails(&["disasm", &name], 1, "HT0002");
    fails(&["info", &name], 1, "HT0002");
    fails(&["config", "show", "-c", &name], 1, "HT0002");
}

#[test]
fn output_into_a_missing_folder() {
    let folder = Folder::new();
    let out = folder.name("none/out.txt");
    let message = fails(&["disasm", RV64, "-o", &out], 1, "HT0005");
    assert!(message.contains("no directory"), "{message}");
    assert!(folder.entries().is_empty());
}

#[test]
fn output_that_is_a_directory() {
    let folder = Folder::new();
    fails(&["disasm", RV64, "-o", &folder.name("")], 1, "HT0005");
    assert!(folder.entries().is_empty());
}

#[test]
fn output_below_a_file() {
    let folder = Folder::new();
    let file = folder.file("file", "");
    fails(&["disasm", RV64, "-o", &format!("{file}/out")], 1, "HT0005");
    fails(&["man", &format!("{file}/man")], 1, "HT0005");
    assert!(fails(&["man", &file], 1, "HT0005").contains("is not a directory"));
    assert_eq!(folder.entries(), ["file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn output_into_a_read_only_folder() {
    // Not even root may create files here.
    let message = fails(&["disasm", RV64, "-o", "/proc/out.txt"], 1, "HT0005");
    assert!(message.contains("(os error "), "{message}");
    assert!(!message.contains("no directory") && !message.contains(".part"));
}

#[cfg(unix)]
#[test]
fn output_that_is_write_protected() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let out = folder.file("out.txt", "old");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&out).is_ok() {
        return; // Root may write anyway.
    }
    fails(&["disasm", RV64, "-o", &out], 1, "HT0005");
    assert_eq!(fs::read_to_string(&out).unwrap(), "old");
}

#[test]
fn the_output_is_opened_before_the_input_is_read() {
    fails(&["disasm", "none.elf", "-o", "none/out.txt"], 1, "HT0005");
}

#[test]
fn output_over_the_input() {
    let folder = Folder::new();
    let whole = fs::read(RV64).unwrap();
    let file = folder.file("a.elf", &whole);
    fails(&["disasm", &file, "-o", &file], 2, "HT0007");
    fails(&["info", &file, "-o", &file], 2, "HT0007");
    assert_eq!(fs::read(&file).unwrap(), whole);
}

#[test]
fn a_failed_command_keeps_the_old_output() {
    let folder = Folder::new();
    let input = folder.file("in.elf", "nonsense");
    let out = folder.file("out.txt", "old");
    fails(&["disasm", &input, "-o", &out], 5, "HT0101");
    fails(&["info", &input, "-o", &out], 5, "HT0105");
    assert_eq!(fs::read_to_string(&out).unwrap(), "old");
    assert_eq!(folder.entries(), ["in.elf", "out.txt"]);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_written_to() {
    succeeds(&["disasm", RV64, "-o", "/dev/null"]);
    fails(&["disasm", RV64, "-o", "/dev/full"], 1, "HT0006");
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = hartrace()
        .args(["info", RV64])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error[HT0006]: "));
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_written_to() {
    use std::os::unix::fs::FileTypeExt as _;
    let folder = Folder::new();
    let pipe = folder.name("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    succeeds(&["disasm", RV64, "-o", &pipe]);
    assert_eq!(reader.join().unwrap(), succeeds(&["disasm", RV64]));
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(folder.entries(), ["pipe"]);
}

#[test]
fn standard_input() {
    let mut child = hartrace()
        .args(["info", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&fs::read(RV64).unwrap())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("standard input: ELF file\n"));
    assert!(fails(&["disasm", "-"], 5, "HT0101").contains("standard input is empty"));
}

/// As `hartrace ... | head -1`: the reader takes one line and goes.
#[test]
fn a_closed_pipe_is_no_error() {
    let names: Vec<String> = (0..3000).map(|_| RV64.to_owned()).collect();
    let mut child = hartrace()
        .arg("info")
        .args(&names)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(64, child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let mut talk = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut talk)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(talk, "");
    assert!(line.ends_with(": ELF file\n"));
}

#[test]
fn a_pipe_closed_from_the_start() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["completions", "bash"],
        &["disasm", RV64],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = hartrace()
            .args(args)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(text(&output.stderr), "", "{args:?}");
    }
}

/// A file of another kind than the one that is wanted is the same failure for
/// every command.
#[test]
fn a_wrong_kind_of_file_has_one_exit_code() {
    let folder = Folder::new();
    let text_file = folder.file("a.txt", "hello\nworld\n");
    let pcs = folder.file("a.pc", "0000000080000000\n0000000080000004\n");
    let trace = folder.name("t");
    let to = format!("etrace={trace}");
    assert_eq!(
        run(&["run", "-q", RV64, "--trace", &to]).status.code(),
        Some(0)
    );
    for file in [&text_file, &pcs, &trace, RV64] {
        for args in [
            &["run", file][..],
            &["disasm", file],
            &["info", file],
            &["log", file, "-e", RV64, "--to", "pc"],
            &["encode", file, "-e", RV64, "--to", "ntrace"],
            &["dump", file],
            &["decode", file, "-e", RV64],
            &["stats", file, "-e", RV64],
            &["convert", file, "-e", RV64, "--to", "ntrace"],
            &["verify", file, "-e", RV64],
            &["state", file],
            &["ctr", file, "-e", RV64],
        ] {
            let code = run(args).status.code();
            assert!(matches!(code, Some(0 | 5)), "{args:?}: {code:?}");
        }
    }
}

/// Names are bytes, not text.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf8() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::new();
    let path = |name: &[u8]| folder.0.path().join(OsStr::from_bytes(name));
    let elf = path(b"p\xff.elf");
    fs::copy(RV64, &elf).unwrap();
    let of = |kind: &str, name: &[u8]| {
        let mut spec = OsString::from(kind);
        spec.push(path(name));
        spec
    };
    let files = of("ro:", b"d\xff");
    fs::create_dir(path(b"d\xff")).unwrap();
    let arguments: Vec<OsString> = vec![
        "run".into(),
        "-q".into(),
        elf.clone().into(),
        "--log".into(),
        of("pc=", b"l\xff.pc"),
        "--trace".into(),
        of("ntrace=", b"t\xff"),
        "--files".into(),
        files,
    ];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let list = fs::read(path(b"l\xff.pc")).unwrap();
    let arguments: Vec<OsString> = vec![
        "decode".into(),
        "-q".into(),
        path(b"t\xff").into(),
        "-e".into(),
        elf.into(),
        "-f".into(),
        "pc".into(),
    ];
    let output = run(&arguments);
    assert!(
        output.stdout == list,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A sidecar cannot name such a program, and names no other.
    let sidecar = fs::read_to_string(path(b"t\xff.toml")).unwrap();
    assert!(!sidecar.contains("elf"), "{sidecar}");
    // A base may follow any name.
    let mut raw = OsString::from(path(b"p\xff.elf"));
    raw.push("@0x1000");
    let flags = ["disasm", "--isa", "rv64gc", "--raw"].map(OsString::from);
    let output = run(&[&flags[..], &[raw]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// `-v` says which settings, sidecar and program are used, and how long it took.
#[test]
fn details_if_asked_for() {
    let folder = Folder::new();
    let trace = folder.name("t");
    let to = format!("ntrace={trace}");
    let output = run(&["run", "-v", RV64, "--trace", &to]);
    let words = text(&output.stderr);
    for part in [
        "program: ",
        "machine: memory 0x80000000",
        "] program ended",
        " s] done",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let output = run(&["decode", "-v", &trace, "-f", "pc", "--threads", "1"]);
    let words = text(&output.stderr);
    for part in [
        "sidecar: ",
        "setting: [ntrace] mode = \"htm\", from ",
        "program: ",
        "trace: N-Trace 1.0, settings known",
        "threads: up to 1",
        " s] done",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(text(&run(&["decode", &trace]).stderr), "");
}

/// Runs a command whose output nobody reads.
fn unread(args: &[&str]) -> std::process::Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = hartrace();
    command.args(args).stdout(writer).stderr(Stdio::piped());
    command.output().unwrap()
}

/// `verify`, `--check` and `--strict` ask for a verdict, which does not depend on
/// who reads the output.
#[test]
fn the_verdict_stands_when_the_reader_has_gone() {
    let folder = Folder::new();
    let (tandem, ntrace) = (folder.name("t.tandem"), folder.name("t.ntrace"));
    let to = [format!("tandem={tandem}"), format!("ntrace={ntrace}")];
    let args = ["run", "-q", RV64, "--trace", &to[0], "--trace", &to[1]];
    assert_eq!(run(&args).status.code(), Some(0));
    for args in [
        &["verify", "-q", &tandem][..],
        &["decode", "-q", "--strict", &ntrace],
        &["decode", "-q", &ntrace],
    ] {
        assert_eq!(unread(args).status.code(), Some(0), "{args:?}");
    }
    let flip = |name: &str, at: usize| {
        let mut bytes = fs::read(name).unwrap();
        bytes[at] ^= 4;
        fs::write(name, bytes).unwrap();
    };
    flip(&tandem, 20_000);
    flip(&ntrace, 1_000);
    let pcs = folder.file("bad.pc", "0000000080000000\n0000000080000004\nnonsense\n");
    for (args, exit, code) in [
        (&["verify", "-q", &tandem][..], 4, "HT0602"),
        (&["verify", "-q", "-f", "json", &tandem], 4, "HT0602"),
        (&["decode", "-q", "--strict", &ntrace], 3, "HT0111"),
        (&["stats", "-q", "--strict", &ntrace], 3, "HT0111"),
        (
            &["convert", "-q", "--strict", &ntrace, "--to", "etrace"],
            3,
            "HT0111",
        ),
        (
            &["ctr", "-q", "--strict", "--every", "100", &ntrace],
            3,
            "HT0111",
        ),
        (
            &["log", "-q", "--strict", "-e", RV64, "--to", "json", &pcs],
            3,
            "HT0106",
        ),
        (&["info", "-q", RV64, "/dev/null"], 5, "HT0105"),
    ] {
        let output = unread(args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {message}");
        assert!(message.contains(code), "{args:?}: {message}");
    }
    // Without --strict the rest is not read.
    let output = unread(&["decode", "-q", &ntrace]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn names_cannot_draw_on_the_terminal() {
    let output = run(&["info", "\x1b[2Jnone"]);
    assert!(!text(&output.stderr).contains('\x1b'));
}
