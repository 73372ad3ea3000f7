//! `hartrace explain`.

use crate::{run, succeeds, text};

#[test]
fn a_code_is_explained_without_markdown() {
    let page = succeeds(&["explain", "HT0101"]);
    assert!(page.starts_with("HT0101: Not an ELF file\n\nExit code 5.\n\nCause: "));
    assert!(page.contains("\n\nRemedy: "), "{page}");
    assert!(!page.contains("**") && !page.contains("## "), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80));
    assert_eq!(succeeds(&["explain", "ht0101"]), page);
}

#[test]
fn codes_of_gaps_are_explained_as_well() {
    for code in ["NT0101", "ET0101", "TP0101", "CT0101"] {
        assert!(succeeds(&["explain", code]).starts_with(&format!("{code}: ")));
    }
}

#[test]
fn without_a_code_all_of_them_are_listed() {
    let list = succeeds(&["explain"]);
    assert!(list.starts_with("HT0001  An input cannot be opened\n"));
    assert!(list.lines().count() > 150);
    for line in list.lines() {
        assert!(line.len() > 8 && &line[6..8] == "  ", "{line}");
    }
}

#[test]
fn an_unknown_code_is_refused_with_its_neighbours() {
    for (code, words) in [
        ("HTO101", "did you mean HT0101?"),
        ("NT110", "did you mean"),
        ("main.c", "`hartrace explain` lists them"),
    ] {
        let output = run(&["explain", code]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(words), "{message}");
        assert_eq!(text(&output.stdout), "");
    }
}

/// The line that points to this command is for people at a terminal.
#[test]
fn errors_in_a_pipe_do_not_mention_it() {
    let message = crate::fails(&["disasm", "no-such-file"], 1, "HT0001");
    assert!(!message.contains("explain"), "{message}");
}
