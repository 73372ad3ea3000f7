//! Ctrl-C in the middle.

#![cfg(unix)]

use crate::{Folder, hartrace, text};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn an_interrupted_command_leaves_nothing() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let mut child = hartrace()
            .args(["disasm", "-", "-o", &folder.name("out.txt")])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It waits for its input, the output already opened.
        let begin = Instant::now();
        while folder.entries().is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        let kill = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.unwrap().success());
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert_eq!(output.status.code(), Some(1), "{signal}");
        assert!(
            text(&output.stderr).starts_with("error[HT0008]: "),
            "{signal}"
        );
        assert!(folder.entries().is_empty(), "{signal}");
    }
}
