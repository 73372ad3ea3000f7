//! Ctrl-C in the middle.

#![cfg(target_os = "linux")]

use crate::{Folder, hartrace};
use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Generous: a loaded machine is no failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether this process, and so its children, ignores any of the signals that
/// end a command: under nohup, or in the background of a script.
pub(crate) fn ignores_signals() -> bool {
    const HUP_INT_TERM: u64 = 1 << 0 | 1 << 1 | 1 << 14;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
    mask & HUP_INT_TERM != 0
}

pub(crate) fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// A command that waits for its input, the output already opened.
fn waiting(folder: &Folder) -> Child {
    let child = hartrace()
        .args(["disasm", "-", "-o", &folder.name("out.txt")])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(wait_until(|| !folder.entries().is_empty()));
    child
}

/// In the background of a script SIGINT is ignored, and stays so; SIGTERM cleans
/// up all the same.
#[test]
fn one_ignored_signal_does_not_shield_from_the_other() {
    if ignores_signals() {
        return;
    }
    let folder = Folder::new();
    let out = folder.name("out.txt");
    let mut child = Command::new("sh")
        .args(["-c", "trap '' INT; exec \"$@\"", "sh"])
        .arg(hartrace().get_program())
        .args(["disasm", "-", "-o", &out])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(wait_until(|| !folder.entries().is_empty()));
    let pid = child.id().to_string();
    let send = |signal| Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(send("INT").unwrap().success());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None);
    assert!(send("TERM").unwrap().success());
    let mut code = None;
    let ended = wait_until(|| {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    if !ended {
        child.kill().unwrap();
    }
    assert_eq!(code.and_then(|c| c.code()), Some(1));
    assert!(folder.entries().is_empty());
}

#[test]
fn an_interrupted_command_leaves_nothing() {
    if ignores_signals() {
        return;
    }
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let mut child = waiting(&folder);
        let pid = child.id().to_string();
        let kill = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.unwrap().success());
        let mut code = None;
        let ended = wait_until(|| {
            code = child.try_wait().unwrap();
            code.is_some()
        });
        if !ended {
            child.kill().unwrap();
        }
        assert_eq!(code.and_then(|c| c.code()), Some(1), "{signal}");
        let mut talk = String::new();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut talk).unwrap();
        assert!(talk.starts_with("error[HT0008]: "), "{signal}: {talk}");
        assert!(folder.entries().is_empty(), "{signal}");
    }
}
