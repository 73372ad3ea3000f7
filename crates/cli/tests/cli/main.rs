//! The command line as its users meet it: the binary, run.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

#[allow(dead_code)] // shared with the tests of the page, which use more of it
#[path = "../../../report/tests/page/chromium.rs"]
mod chromium;

mod bad_elf;
mod bad_usage;
mod cases;
mod causes;
mod code;
mod code_history;
mod compare;
mod config;
mod crash;
mod ctf;
mod ctr;
mod ctr_inputs;
mod data;
mod disasm;
mod doubt;
mod encapsulation;
mod etrace;
mod explain;
mod extensions;
mod files;
mod flamegraph;
mod help;
mod info;
mod installed;
mod interrupts;
mod log;
mod page;
mod processes;
mod profiles;
mod readme;
mod report;
mod run;
mod signals;
mod state;
mod system;
mod tandem;
mod timeline;
mod tiny;
mod tinycore;
mod trace;
mod triggers;
mod verify;
mod view;
mod views;
mod waveform;
mod waves;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RV64: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../programs/sieve/sieve-rv64gc.elf"
);
const RV32: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../programs/sieve/sieve-rv32imac.elf"
);

fn hartrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hartrace"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.stdin(Stdio::null());
    command
}

/// `hartrace` in a folder of its own, where none of the programs that it starts is installed.
struct Alone(tempfile::TempDir);

impl Alone {
    fn new() -> Alone {
        let program = Path::new(env!("CARGO_BIN_EXE_hartrace"));
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        std::fs::hard_link(program, folder.path().join("hartrace")).unwrap();
        Alone(folder)
    }

    fn hartrace(&self) -> Command {
        let mut command = Command::new(self.0.path().join("hartrace"));
        command.env("PATH", self.0.path()).stdin(Stdio::null());
        command
    }
}

fn run<S: AsRef<OsStr>>(args: &[S]) -> Output {
    hartrace().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The command succeeds, without a word on stderr; its output.
#[track_caller]
fn succeeds<S: AsRef<OsStr>>(args: &[S]) -> String {
    let output = run(args);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    text(&output.stdout).to_owned()
}

/// The objects that a command prints, one per line.
#[track_caller]
fn json_lines(args: &[&str]) -> Vec<serde_json::Value> {
    let all = succeeds(args);
    all.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// The command fails with this exit code and exactly one error of this code,
/// and gives no output; the message.
#[track_caller]
fn fails<S: AsRef<OsStr>>(args: &[S], exit: i32, code: &str) -> String {
    let output = run(args);
    let message = text(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(exit), "{message}");
    assert!(
        message.starts_with(&format!("error[{code}]: ")),
        "{message}"
    );
    assert_eq!(message.matches("error[").count(), 1, "{message}");
    assert!(
        !message.contains("panicked") && !message.contains('\x1b'),
        "{message}"
    );
    assert_eq!(text(&output.stdout), "");
    message
}

/// A folder that is gone after the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with this content; its name.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// What is in it, sorted.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
