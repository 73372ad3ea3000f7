//! Configuration files and `config show`.

use crate::{Folder, RV32, RV64, fails, succeeds};
use std::fs;

#[test]
fn the_effective_settings_say_where_they_come_from() {
    let folder = Folder::new();
    let first = folder.file("a.toml", "[ingress]\nctype = 1\nsijump = true\n");
    let second = folder.file("b.toml", "\n[ingress]\nctype = 2\n");
    let shown = succeeds(&["config", "show", "-c", &first, "-c", &second, "-e", RV32]);
    for (value, origin) in [
        ("ctype = 2", format!("{second}:3")),
        ("sijump = true", format!("{first}:3")),
        ("itype_width = 4", "default".to_owned()),
        ("isa = \"rv32imac", format!("attributes of {RV32}")),
        ("elf = ", "-e".to_owned()),
    ] {
        let line = shown.lines().find(|l| l.starts_with(value)).expect(value);
        assert!(line.ends_with(&format!("# {origin}")), "{line}");
    }
    let shown = succeeds(&["config", "show", "--isa", "rv64gc"]);
    assert!(shown.starts_with("[program]\nisa = \"rv64gc\""), "{shown}");
}

#[test]
fn what_is_shown_is_a_configuration() {
    let folder = Folder::new();
    let raw = folder.file("rom.bin", [0x13, 0, 0, 0]) + "@0xffffffff80000000";
    let shown = succeeds(&["config", "show", "-e", RV64, "--raw", &raw]);
    let file = folder.file("shown.toml", &shown);
    let again = succeeds(&["config", "show", "-c", &file]);
    let values = |text: &str| -> Vec<String> {
        text.lines()
            .map(|l| l.split(" # ").next().unwrap().trim().to_owned())
            .collect()
    };
    assert_eq!(values(&again), values(&shown));
    assert_eq!(
        succeeds(&["disasm", "-c", &file]),
        succeeds(&["disasm", RV64, "--raw", &raw])
    );
}

#[test]
fn names_in_a_configuration_are_relative_to_it() {
    let folder = Folder::new();
    fs::copy(RV64, folder.path("a.elf")).unwrap();
    let file = folder.file("a.toml", "[program]\nelf = [\"a.elf\"]\n");
    succeeds(&["disasm", "-c", &file]);
    for key in ["elf", "raw"] {
        let text = format!("[program]\nisa = \"rv64gc\"\n{key} = [\"none@0x10\"]\n");
        let file = folder.file("b.toml", text);
        let message = fails(&["disasm", "-c", &file], 1, "HT0001");
        assert!(message.contains("relative to that file"), "{message}");
        assert!(message.contains("b.toml:3"), "{message}");
        assert!(!message.contains("current directory"), "{message}");
    }
}

#[test]
fn mistakes_are_shown_with_their_place() {
    let folder = Folder::new();
    for (content, code, place, words) in [
        (
            "[ingress]\nitype_with = 3\n",
            "HT0202",
            "2:1",
            "did you mean `itype_width`?",
        ),
        (
            "[ingres]\nctype = 3\n",
            "HT0202",
            "1:2",
            "did you mean `ingress`?",
        ),
        ("isa = \"rv64gc\"\n", "HT0202", "1:1", "outside any section"),
        (
            "[ctr]\ndepht = 32\n",
            "HT0202",
            "2:1",
            "did you mean `depth`?",
        ),
        (
            "[ntrace]\nhits_bits = 3\n",
            "HT0202",
            "2:1",
            "did you mean `hist_bits`?",
        ),
        (
            "[ingress]\n  ctype = 4\n",
            "HT0204",
            "2:11",
            "a number from 0 to 3",
        ),
        (
            "[ingress]\ntable = \"etrace-2\"\n",
            "HT0204",
            "2:9",
            "did you mean \"etrace-2.0\"?",
        ),
        (
            "[program]\nisa = \"rv64gc_zbaa\"\n",
            "HT0204",
            "2:7",
            "did you mean \"rv64gc_zba\"?",
        ),
        ("[ingress\n", "HT0201", "1:9", "expected"),
        ("[ingress]\nctype = \n", "HT0201", "2:9", "expected"),
    ] {
        let file = folder.file("bad.toml", content);
        let message = fails(&["config", "show", "-c", &file], 1, code);
        assert!(
            message.contains(&format!("bad.toml:{place}\n")),
            "{message}"
        );
        assert!(message.contains(words), "{message}");
        fails(&["disasm", RV64, "-c", &file], 1, code);
    }
    let file = folder.file("bad.toml", b"# caf\xe9\n");
    fails(&["config", "show", "-c", &file], 1, "HT0201");
    let file = folder.file("big.toml", vec![b'#'; 5 << 20]);
    fails(&["config", "show", "-c", &file], 1, "HT0004");
}

#[test]
fn a_program_that_was_built_again_is_noticed() {
    let folder = Folder::new();
    fs::copy(RV64, folder.path("a.elf")).unwrap();
    let digest = "0".repeat(64);
    let text = format!("[program]\nelf = [{{ file = \"a.elf\", sha256 = \"{digest}\" }}]\n");
    let file = folder.file("a.toml", text);
    let message = fails(&["disasm", "-c", &file], 1, "HT0205");
    assert!(message.contains(&digest), "{message}");
}
