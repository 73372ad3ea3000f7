use super::*;
use hartrace_flow::{Ctype, ItypeWidth};
use hartrace_isa::ItypeTable;
use hartrace_logs::Iretire;
use std::path::Path;

const FULL: &str = r#"
[program]
isa = "rv64gc"
elf = ["prog.elf", "lib.so@0x40000000", { file = "/k.elf", base = "0xffffffff80000000" }]
raw = ["boot.bin@0x1000"]

[ingress]
itype_width = 3
table = "ntrace-1.0"
retirement = "block"
max_halfwords = 16
sijump = true
all_jumps = true
retires = "ecall-ebreak"
ctype = 2
tval_bits = 8
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("runs/a.toml"))
}

fn refused(text: &str) -> (String, String) {
    let error = parse(text).unwrap_err();
    let place = text.get(error.span.clone()).unwrap().to_owned();
    (error.to_string(), place)
}

#[test]
fn everything_is_read_with_its_place() {
    let config = parse(FULL).unwrap();
    let elf = config.program.elf.unwrap();
    assert_eq!(elf.origin.to_string(), "runs/a.toml:4");
    let elf = elf.value;
    assert_eq!(elf[0].file, Path::new("runs/prog.elf"));
    assert_eq!(elf[1].base, Some(0x4000_0000));
    assert_eq!(elf[2].file, Path::new("/k.elf"));
    assert_eq!(elf[2].base, Some(0xffff_ffff_8000_0000));
    assert_eq!(config.program.raw.unwrap().value[0].base, 0x1000);
    let ingress = config.ingress;
    assert_eq!(ingress.itype_width.unwrap().value, ItypeWidth::Three);
    assert_eq!(ingress.table.unwrap().value, ItypeTable::NTrace10);
    assert_eq!(ingress.retirement.unwrap().value, Iretire::Halfwords);
    assert_eq!(ingress.max_halfwords.unwrap().value, 16);
    assert!(ingress.sijump.unwrap().value && ingress.all_jumps.unwrap().value);
    let retires = ingress.retires.unwrap().value;
    assert_eq!(retires, hartrace_flow::Retires::EcallAndEbreak);
    assert_eq!(ingress.ctype.unwrap().value, Ctype::Precise);
    assert_eq!(ingress.tval_bits.unwrap().value, 8);
}

#[test]
fn layers_cover_each_other_value_by_value() {
    let file = parse("[ingress]\nctype = 1\nsijump = true\n").unwrap();
    let flags = Config {
        ingress: Ingress {
            ctype: Some(Setting::flag(Ctype::Discontinuity, "--ctype")),
            ..Ingress::default()
        },
        ..Config::default()
    };
    let all = flags.over(file).over(Config::defaults());
    assert_eq!(
        all.ingress.ctype,
        Some(Setting::flag(Ctype::Discontinuity, "--ctype"))
    );
    assert_eq!(
        all.ingress.sijump.unwrap().origin.to_string(),
        "runs/a.toml:3"
    );
    assert_eq!(all.ingress.itype_width.unwrap().origin, Origin::Default);
}

#[test]
fn what_is_written_reads_back() {
    let nasty =
        "[program]\nelf = [{ file = \"/a \\\"b\\\\\\n#.elf\" }]\n[trace]\nformat = \"pc\"\n";
    for text in [FULL, nasty] {
        let config = parse(text).unwrap();
        for origins in [false, true] {
            let written = config.to_toml(origins);
            let again = Config::parse(&written, Path::new("/b.toml")).expect(&written);
            // Origins differ, and relative names are now relative to /.
            let strip = |c: &Config| c.to_toml(false).replace("\"/", "\"");
            assert_eq!(strip(&again), strip(&config), "{written}");
        }
    }
    assert_eq!(Config::default().to_toml(true), "");
    let defaults = Config::defaults();
    let again = parse(&defaults.to_toml(true)).unwrap();
    assert_eq!(again.to_toml(false), defaults.to_toml(false));
}

#[test]
fn unknown_keys_and_sections_suggest_the_nearest_name() {
    let (message, place) = refused("[ingress]\nitype_width = 3\ntabel = \"etrace-2.0\"\n");
    assert_eq!(
        message,
        "unknown key `tabel` in [ingress]; did you mean `table`?"
    );
    assert_eq!(place, "tabel");
    let (message, place) = refused("[ingres]\nctype = 1\n");
    assert_eq!(message, "unknown section [ingres]; did you mean `ingress`?");
    assert_eq!(place, "ingres");
    let (message, _) = refused("[program]\nsomething = 1\n");
    assert_eq!(message, "unknown key `something` in [program]");
    let (message, _) = refused("[program]\nelf = [{ fil = \"a\" }]\n");
    assert_eq!(message, "an entry of `elf` needs `file`");
}

#[test]
fn values_out_of_range_or_of_the_wrong_type() {
    for (text, message, place) in [
        (
            "[ingress]\nitype_width = 5",
            "`itype_width` takes a number from 3 to 4",
            "5",
        ),
        (
            "[ingress]\nctype = -1",
            "`ctype` takes a number from 0 to 3",
            "-1",
        ),
        (
            "[ingress]\nmax_halfwords = 1",
            "`max_halfwords` takes a number from 2 to 65535",
            "1",
        ),
        ("[ingress]\nsijump = 1", "`sijump` takes true or false", "1"),
        (
            "[ingress]\nretirement = \"blocks\"",
            "`retirement` takes one of \"single\", \"block\"; did you mean \"block\"?",
            "\"blocks\"",
        ),
        (
            "[program]\nisa = \"rv64gx\"",
            "`isa` takes an ISA string such as \"rv64gc\": unknown extension `x`",
            "\"rv64gx\"",
        ),
        ("[program]\nelf = 3", "`elf` takes a list of files", "3"),
        (
            "[program]\nraw = [\"rom\"]",
            "`raw` takes FILE@BASE: a raw binary needs its address: FILE@BASE",
            "\"rom\"",
        ),
        (
            "[trace]\nversion = \"1\"",
            "[trace] needs `format`",
            "trace",
        ),
        ("isa = \"rv64gc\"", "`isa` is outside any section", "isa"),
        (
            "program = 3",
            "`program` is a section: write [program]",
            "program",
        ),
    ] {
        assert_eq!(
            refused(text),
            (message.to_owned(), place.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn the_first_mistake_in_the_file_is_told() {
    let (_, place) = refused("[program]\nzzz = 1\naaa = 2\n[ingress]\nctype = 9\n");
    assert_eq!(place, "zzz");
}

#[test]
fn what_is_not_toml() {
    for text in [
        "[program",
        "[program]\nisa = \n",
        "a b c",
        "\0",
        "[a]\n[a]\n",
        "x = \"\u{1}\"",
    ] {
        let error = parse(text).unwrap_err();
        assert!(
            matches!(error.problem, Problem::Syntax(_)),
            "{text:?}: {error}"
        );
        assert!(error.span.end <= text.len());
    }
    let error = Config::from_bytes(b"# caf\xe9\n".to_vec(), Path::new("a.toml")).unwrap_err();
    assert_eq!(error.to_string(), "a.toml:1:6: not UTF-8 text");
}

#[test]
fn lines_of_many_values_are_found_quickly() {
    let mut text = "[program]\nraw = [\n".to_owned();
    for base in 0..50_000 {
        text += &format!("{{ file = \"é\", base = {base} }},\n");
    }
    text += "]\nisa = \"rv64i\"\n[ingress]\n\nctype = 1";
    let start = std::time::Instant::now();
    let config = parse(&text).unwrap();
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert_eq!(
        config.program.raw.unwrap().origin.to_string(),
        "runs/a.toml:2"
    );
    assert_eq!(
        config.program.isa.unwrap().origin.to_string(),
        "runs/a.toml:50004"
    );
    assert_eq!(
        config.ingress.ctype.unwrap().origin.to_string(),
        "runs/a.toml:50007"
    );
}
