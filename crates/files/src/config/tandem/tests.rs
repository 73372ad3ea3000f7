use super::*;
use crate::config::Config as Settings;
use std::path::Path;

/// A value other than the default for every key.
const FULL: &str = "[tandem]
version = \"2018-11-20\"
xlen = 32
flen = 32
mlen = 32
eaddr = \"xlen\"
nibbles = \"high\"
pc = \"both\"
lenient_pc_identifier = true
store_data = \"operand\"
max_items = 100
absent = [\"pc\", \"fpr\", \"mip\", \"trap.mstatus\"]
style = \"bluespec\"
pc_style = \"full\"
incremental = true
addresses = \"translated\"
minstret = true
memory = \"responses\"
end_group = false
start = false
";

fn parse(text: &str) -> Settings {
    Settings::parse(text, Path::new("a.toml")).unwrap()
}

fn refused(text: &str) -> String {
    let error = Settings::parse(text, Path::new("a.toml")).unwrap_err();
    error.to_string()
}

/// Defaults come from the instruction set; RV32 has Sv32.
#[test]
fn nothing_said_is_what_the_instruction_set_says() {
    for (isa, flen, mlen) in [
        ("rv64gc", Flen::F64, Mlen::M64),
        ("rv64imafc", Flen::F32, Mlen::M64),
        ("rv64imac", Flen::None, Mlen::M64),
        ("rv32gc", Flen::F64, Mlen::M34),
        ("rv32imc", Flen::None, Mlen::M34),
    ] {
        let isa = Isa::parse(isa).unwrap();
        let config = parse("[tandem]\n").tandem.settings(isa).unwrap();
        assert_eq!(config, Config::new(isa, true));
        assert_eq!((config.flen, config.mlen), (flen, mlen), "{isa}");
    }
    let bare = parse("[tandem]\nmlen = 32\n").tandem;
    assert_eq!(bare.settings(Isa::RV32GC).unwrap().mlen, Mlen::M32);
    assert_eq!(
        bare.settings(Isa::RV64GC),
        Err(ConfigError::Mlen(Xlen::Rv64, Mlen::M32))
    );
}

#[test]
fn every_setting_reaches_the_encoder_and_comes_back() {
    let config = parse(FULL).tandem.settings(Isa::RV64GC).unwrap();
    let text = |config: &Config| {
        let settings = Settings {
            tandem: Tandem::of(config),
            ..Settings::default()
        };
        settings.to_toml(false)
    };
    let (full, plain) = (text(&config), text(&Config::default()));
    for line in full.lines().skip(1) {
        // There is one version only.
        let same = plain.contains(line);
        assert_eq!(same, line.starts_with("version"), "{line}");
    }
    // The switches stand for the style.
    assert_eq!(full, FULL.replace("style = \"bluespec\"\n", ""));
    let again = parse(&full).tandem.settings(Isa::RV64GC);
    assert_eq!(again, Ok(config));
}

#[test]
fn everything_is_read_and_written() {
    let config = parse(FULL);
    assert_eq!(FULL.lines().count(), Tandem::KEYS.len() + 1);
    for origins in [false, true] {
        let written = config.to_toml(origins);
        assert_eq!(parse(&written).to_toml(false), FULL, "{written}");
    }
    let origin = config.tandem.flen.unwrap().origin;
    assert_eq!(origin.to_string(), "a.toml:4");
}

#[test]
fn styles_and_single_switches() {
    let style = |text: &str| {
        let section = parse(&format!("[tandem]\n{text}\n")).tandem;
        section.settings(Isa::RV64GC).unwrap().style
    };
    assert_eq!(style("style = \"compact\""), Style::compact());
    let mixed = style("style = \"compact\"\nend_group = true");
    assert!(mixed.end_group && mixed.incremental);
    assert_eq!(style("pc = \"both\"").pc, PcStyle::Full);
    let both = parse("[tandem]\npc = \"both\"\npc_style = \"increment\"\n").tandem;
    assert_eq!(both.settings(Isa::RV64GC), Err(ConfigError::Increment));
}

#[test]
fn mistakes() {
    for (line, message) in [
        (
            "mlenn = 32",
            "unknown key `mlenn` in [tandem]; did you mean `mlen`?",
        ),
        (
            "version = \"2019\"",
            "`version` takes one of \"2018-11-20\"",
        ),
        ("mlen = 33", "`mlen` takes one of 32, 34, 64"),
        ("flen = 128", "`flen` takes one of 0, 32, 64"),
        (
            "max_items = 1",
            "`max_items` takes a number from 64 to 4294967295",
        ),
        ("absent = 3", "`absent` takes a list of elements"),
    ] {
        assert_eq!(refused(&format!("[tandem]\n{line}\n")), message);
    }
    let message = refused("[tandem]\nabsent = [\"mstatus\", \"mstatsu\"]\n");
    assert!(message.contains("\"mstatsu\""), "{message}");
}

/// The files in `configs/tandem`.
#[test]
fn ready_made_configurations_are_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/tandem");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let config = Settings::load(&path).unwrap();
        assert!(config.tandem.is_said(), "{path:?}");
        for isa in [Isa::RV32GC, Isa::RV64GC] {
            config.tandem.settings(isa).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?}");
        files += 1;
    }
    assert!(files >= 4);
}
