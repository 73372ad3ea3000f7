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

/// The registers of an encoder with the defaults of 2.0, 32-bit addresses and a cache of
/// 32 targets.
const REGISTERS: &str = "0x3181d000050000,0x3020c01f";

/// From registers to every form and back, through files.
#[test]
fn parameters_in_every_form() {
    let folder = Folder::new();
    let args = ["config", "convert", "--registers", REGISTERS, "--to"];
    let texts =
        ["toml", "scf", "ipxact", "registers"].map(|form| succeeds(&[&args[..], &[form]].concat()));
    let [toml, scf, xml, registers] = &texts;
    assert!(toml.contains("[etrace]\niaddress_width = 32\n"), "{toml}");
    assert!(toml.contains("\ncache_size = 5\n"), "{toml}");
    assert!(scf.contains("\ncache_size_p=5\n"), "{scf}");
    assert!(
        xml.contains("<ipxact:name>discovery_info_1</ipxact:name>"),
        "{xml}"
    );
    let values = "discovery_info_0 = 0x003181d000050000\ndiscovery_info_1 = 0x000000003020c01f\n";
    assert_eq!(registers, values);
    for text in &texts {
        let file = folder.file("in", text);
        for (form, expected) in [("scf", scf), ("ipxact", xml), ("registers", registers)] {
            let out = folder.name("out");
            succeeds(&["config", "convert", &file, "--to", form, "-o", &out]);
            assert_eq!(
                &fs::read_to_string(&out).unwrap(),
                expected,
                "{form} of {text}"
            );
        }
        // Wherever a configuration is read.
        let shown = succeeds(&["config", "show", "--isa", "rv32gc", "-c", &file]);
        let line = shown.lines().find(|l| l.starts_with("cache_size")).unwrap();
        assert!(
            line.starts_with("cache_size = 5 ") && line.contains(&file),
            "{line}"
        );
        let facts = succeeds(&["info", &file]);
        assert!(facts.contains("configuration"), "{facts}");
    }
}

/// A program is traced and decoded by what an encoder's files say.
#[test]
fn traced_by_parameters() {
    let folder = Folder::new();
    let scf = "[Required Attributes]\niaddress_width_p=64\niaddress_lsb_p=1 # compressed\n\
               ecause_width_p=6\ncontext_width_p=32\nnocontext_p=0\ncache_size_p=0x5\n";
    let scf = folder.file("hw.scf", scf);
    let ucf = folder.file(
        "e.ucf",
        "[codec]\njump-target-cache = true\nresync-max = 4\n",
    );
    let trace = folder.name("t.etrace");
    let to = format!("etrace={trace}");
    let args = ["run", "-q", RV64, "-c", &scf, "-c", &ucf, "--trace", &to];
    succeeds(&[&args[..], &["--check"]].concat());
    let beside = folder.name("t.etrace.toml");
    let pcs = succeeds(&["decode", &trace, "-e", RV64, "-f", "pc"]);
    fs::remove_file(beside).unwrap();
    let args = ["decode", &trace, "-e", RV64, "-f", "pc", "-c", &scf];
    assert_eq!(succeeds(&args), pcs);
    // Compressed instructions cannot be told apart without bit 1.
    let wide = folder.file("wide.scf", "iaddress_width_p=64\niaddress_lsb_p=2\n");
    let args = ["decode", &trace, "-e", RV64, "-f", "pc", "-c", &wide];
    let message = fails(&args, 1, "HT0206");
    assert!(message.contains("iaddress_lsb = 2"), "{message}");
    // The hart has no such signal.
    let none = folder.file("none.scf", "iaddress_width_p=64\nsijump_p=0\n");
    let mode = folder.file("mode.ucf", "si-jump = true\n");
    let args = ["run", RV64, "-c", &none, "-c", &mode, "--trace", &to];
    let message = fails(&args, 1, "HT0206");
    assert!(message.contains("sijump"), "{message}");
}

#[test]
fn parameters_that_are_wrong() {
    let folder = Folder::new();
    let convert = |content: &str, code| {
        let file = folder.file("x", content);
        fails(&["config", "convert", &file, "--to", "registers"], 1, code)
    };
    let message = convert("arch_p=0\nbpred_sice_p=1\n", "HT0202");
    assert!(
        message.contains("x:2:1") && message.contains("did you mean `bpred_size`?"),
        "{message}"
    );
    let message = convert("bpred_size_p=16\n", "HT0204");
    assert!(message.contains("x:1:14"), "{message}");
    convert("arch_p\n=1\n", "HT0201");
    convert("<a><b></a>", "HT0201");
    convert("<a/>", "HT0204");
    let message = convert("iaddress_lsb_p=0\n", "HT0206");
    assert!(message.contains("holds 1 to 4"), "{message}");
    convert("bpred_size_p=4\ncache_size_p=4\n", "HT0206");
    let args = ["config", "convert", "--to", "scf", "--registers"];
    let message = fails(
        &[&args[..], &["0,0x8000000000000000"]].concat(),
        1,
        "HT0204",
    );
    assert!(message.contains("discovery_info_1"), "{message}");
    // Time is left out, and that is reported.
    let file = folder.file("x", "notime_p=0\ntime_width_p=8\n");
    let output = crate::run(&["config", "convert", &file, "--to", "registers"]);
    let message = crate::text(&output.stderr);
    assert!(
        output.status.success() && message.contains("HT0413"),
        "{message}"
    );
    assert!(message.contains("`time_width`, `notime`"), "{message}");
}

/// Fields at other places than those of the specification.
#[test]
fn registers_by_their_description() {
    let folder = Folder::new();
    let field = |name: &str, offset: u32, width: u32| {
        format!(
            "<field><name>{name}</name><bitOffset>{offset}</bitOffset>\
             <bitWidth>{width}</bitWidth></field>"
        )
    };
    let xml = format!(
        "<component><register><name>discovery_info_0</name>{}{}</register></component>",
        field("cache_size", 0, 4),
        field("iaddress_width", 4, 6),
    );
    let file = folder.file("layout.xml", xml);
    let args = [
        "config",
        "convert",
        &file,
        "--registers",
        "0x1f7,0",
        "--to",
        "toml",
    ];
    let expected = "[etrace]\niaddress_width = 32\ncache_size = 7\n";
    assert_eq!(succeeds(&args), expected);
    fails(&["config", "convert", &file, "--to", "toml"], 1, "HT0204");
}

/// An encoder has only the filters that its parameters say.
#[test]
fn filters_of_the_encoder() {
    let folder = Folder::new();
    let to = format!("etrace={}", folder.name("t"));
    let ranges = "[filter]\naddress = [\"0x80000000..0x80000010\", \"0x80000020..0x80000030\"]\n";
    let modes = "[filter]\nmodes = [\"M\"]\n";
    let contexts = "[filter]\ncontext = [1]\n";
    let causes = "[[filter.any]]\ncauses = [2]\n";
    let tval = "[[filter.any]]\ncauses = [2]\ntval = 0\n";
    let impdef = "[[filter.any]]\nimpdef = 1\n";
    for (filter, parameter, enough) in [
        (ranges, "filters = 1", "filters = 2"),
        (ranges, "comparators = 1", "comparators = 2"),
        (modes, "filter_privilege = false", "filter_privilege = true"),
        (contexts, "filter_context = false", "filter_context = true"),
        (causes, "filter_excint = 0", "filter_excint = 1"),
        (tval, "filter_tval = false", "filter_tval = true"),
        (impdef, "filter_impdef = false", "filter_impdef = true"),
    ] {
        let with = |parameter: &str| {
            let text = format!("{filter}\n[etrace.parameters]\n{parameter}\n");
            folder.file("c.toml", text)
        };
        let args = ["run", "-q", RV64, "--trace", &to, "-c"];
        let file = with(parameter);
        let message = fails(&[&args[..], &[&file]].concat(), 1, "HT0206");
        let name = parameter.split(' ').next().unwrap();
        assert!(
            message.contains(&format!("{name} in [etrace.parameters]")),
            "{message}"
        );
        let file = with(enough);
        succeeds(&[&args[..], &[&file]].concat());
    }
}
