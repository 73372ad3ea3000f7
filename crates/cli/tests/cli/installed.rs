//! Commands that are programs of their own.

use crate::{Alone, hartrace, text};

/// One line says how to install what is missing.
#[test]
fn a_program_that_is_not_installed() {
    let alone = Alone::new();
    for (name, folder_name) in [
        ("export", "export"),
        ("sql", "sql"),
        ("scheduler", "cluster"),
        ("executor", "cluster"),
    ] {
        let output = alone.hartrace().arg(name).output().unwrap();
        let message = text(&output.stderr);
        assert!(message.contains("error[HT0009]"), "{message}");
        let help = format!("run `cargo install --path engine/{folder_name}`");
        assert!(message.contains(&help), "{message}");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// Arguments, output and exit code are those of the program.
#[cfg(unix)]
#[test]
fn a_program_on_the_path_is_started() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    for (program, name, before) in [
        ("hartrace-sql", "sql", ""),
        ("hartrace-cluster", "executor", "executor "),
    ] {
        let program = folder.path().join(program);
        std::fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 5\n").unwrap();
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, permissions).unwrap();
        let mut command = hartrace();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let command = command.args([name, "SELECT 1", "--help", "-q", "--", "x"]);
        let output = command.env("PATH", path).output().unwrap();
        let expected = format!("{before}SELECT 1 --help -q -- x\n");
        assert_eq!(text(&output.stdout), expected);
        assert_eq!(output.status.code(), Some(5));
    }
}
