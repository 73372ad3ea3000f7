use super::*;
use crate::config::Config as Settings;
use crate::config::{Origin, Setting};
use hartrace_isa::{Isa, ItypeTable};
use hartrace_ntrace::ConfigError;
use std::path::Path;

/// A value other than the default for every key.
const FULL: &str = "[ntrace]
version = \"rc7\"
mode = \"btm\"
src_bits = 4
src_id = 3
icnt_bits = 10
icnt_full = \"sync\"
hist_bits = 16
short_indirect = false
sync = \"cycles\"
sync_max = 3
sync_delayed = true
trap_types = \"one\"
context = true
hcontext = true
timestamps = true
timestamp_width = 40
timestamp_prescale = 2
timestamp_sync_only = true
extend_addr_msb = true
sequential_jump = true
implicit_return = \"partial\"
implicit_return_bits = 12
stack_depth = 8
stack_kind = \"reference-ring\"
markers_keep_stack = true
repeated_history = \"off\"
hrepeat_bits = \"unlimited\"
repeat_branch = true
bcnt_bits = 7
all_jumps = true
retires = \"ecall-ebreak\"
triggers = true
external = [\"none\", \"on\", \"off\", \"notify\", \"none\", \"none\", \"none\", \"on\"]
starts_disabled = true
first_sync = 1
last_event = 0
ending = \"reference\"
queue_bytes = 512
queue_drain = 100
queue_stall = true
other_tcodes = \"damage\"
ignore_tcodes = [7, 56]
max_expansion = 1000

[ntrace.registers]
trTeControl = 0x1000037
trTsControl = 0x28008001
";

fn parse(text: &str) -> Settings {
    Settings::parse(text, Path::new("a.toml")).unwrap()
}

fn refused(text: &str) -> String {
    let error = Settings::parse(text, Path::new("a.toml")).unwrap_err();
    error.to_string()
}

#[test]
fn nothing_said_is_the_default_encoder() {
    for xlen in [Xlen::Rv32, Xlen::Rv64] {
        for (text, version) in [("", Version::V1_0), ("version = \"rc7\"", Version::Rc7)] {
            let section = parse(&format!("[ntrace]\n{text}\n")).ntrace;
            assert_eq!(section.settings(xlen), Ok(Config::new(version, xlen)));
            assert_eq!(section.is_said(), !text.is_empty());
        }
    }
}

#[test]
fn every_setting_reaches_the_encoder_and_comes_back() {
    let keys = FULL.split("\n[ntrace.registers]").next().unwrap();
    let config = parse(keys).ntrace.settings(Xlen::Rv64).unwrap();
    let default = Config::new(Version::V1_0, Xlen::Rv64);
    // All but the ones that HTM alone has, and the width.
    let again = Ntrace::of(&config);
    let plain = Ntrace::of(&default);
    let text = |n: &Ntrace| {
        let n = n.clone();
        let config = Settings {
            ntrace: n,
            ..Settings::default()
        };
        config.to_toml(false)
    };
    let (full, plain) = (text(&again), text(&plain));
    for line in full.lines().skip(1) {
        let same = plain.contains(line);
        assert_eq!(same, line.starts_with("repeated_history"), "{line}");
    }
    assert_eq!(
        full.lines().count(),
        Ntrace::KEYS.len(),
        "all keys but registers"
    );
    assert_eq!(again.settings(Xlen::Rv64), Ok(config));
    assert_eq!(full, keys);
}

#[test]
fn everything_is_read_and_written() {
    let config = parse(FULL);
    for origins in [false, true] {
        let written = config.to_toml(origins);
        assert_eq!(parse(&written).to_toml(false), FULL, "{written}");
    }
    let registers = &config.ntrace.registers;
    let control = registers.trTeControl.as_ref().unwrap();
    assert_eq!(
        (control.value, control.origin.to_string()),
        (0x100_0037, "a.toml:47".to_owned())
    );
}

#[test]
fn layers() {
    let below = parse(FULL);
    let over = parse("[ntrace]\nmode = \"htm\"\n[ntrace.registers]\ntrTeControl = 1\n").over(below);
    let ntrace = &over.ntrace;
    assert_eq!(ntrace.mode.as_ref().unwrap().value, TraceMode::Htm);
    assert_eq!(ntrace.src_bits.as_ref().unwrap().value, 4);
    assert_eq!(ntrace.registers.trTeControl.as_ref().unwrap().value, 1);
    assert_eq!(
        ntrace.registers.trTsControl.as_ref().unwrap().value,
        0x2800_8001
    );
}

#[test]
fn mistakes() {
    for (line, message) in [
        (
            "mdoe = \"htm\"",
            "unknown key `mdoe` in [ntrace]; did you mean `mode`?",
        ),
        (
            "mode = \"hmt\"",
            "`mode` takes one of \"htm\", \"btm\"; did you mean \"htm\"?",
        ),
        ("src_bits = 13", "`src_bits` takes a number from 0 to 12"),
        (
            "icnt_bits = 1",
            "`icnt_bits` takes a number from 2 to 22, or \"unlimited\"",
        ),
        (
            "hrepeat_bits = \"many\"",
            "`hrepeat_bits` takes a number from 1 to 63, or \"unlimited\"",
        ),
        (
            "external = [\"none\", \"none\", \"none\", \"none\", \"none\", \"none\", \"none\", \"none\", \"on\"]",
            "`external` takes at most eight actions, one for each input",
        ),
        (
            "registers = 3",
            "`registers` takes a section: write [ntrace.registers]",
        ),
        (
            "registers = { trTeContro = 3 }",
            "unknown key `trTeContro` in [ntrace.registers]; did you mean `trTeControl`?",
        ),
    ] {
        assert_eq!(refused(&format!("[ntrace]\n{line}\n")), message);
    }
    assert_eq!(
        parse("[ntrace]\nicnt_bits = 0\n")
            .ntrace
            .icnt_bits
            .unwrap()
            .value,
        0
    );
}

#[test]
fn contradictions() {
    let section = parse("[ntrace]\nmode = \"btm\"\nrepeated_history = \"on\"\n").ntrace;
    let error = RegisterError::Config(ConfigError::HistoryInBtm);
    assert_eq!(section.settings(Xlen::Rv64), Err(error));
}

#[test]
fn the_port_follows_the_encoder() {
    let port = |text: &str| {
        let config = parse(text).over(Settings::defaults());
        let ntrace = config.ntrace.settings(Xlen::Rv64).unwrap();
        let isa = Isa::RV64GC;
        config.ingress.for_encoder(&ntrace.port(isa)).port(isa)
    };
    let plain = port("");
    assert_eq!(
        (plain.table, plain.retires),
        (ItypeTable::NTrace10, Retires::Neither)
    );
    let rc7 = port("[ntrace]\nversion = \"rc7\"\nall_jumps = true\n");
    assert_eq!(
        (rc7.table, rc7.retires),
        (ItypeTable::NTraceRc7, Retires::Ecall)
    );
    assert!(rc7.all_jumps);
    let said = port("[ntrace]\nversion = \"rc7\"\n[ingress]\ntable = \"nexrv\"\nsijump = false\n");
    assert_eq!((said.table, said.sijump), (ItypeTable::NexRv, false));
    assert!(matches!(Setting::default(1).origin, Origin::Default));
}

#[test]
fn registers_come_before_the_other_keys() {
    let mut wanted = Config::new(Version::V1_0, Xlen::Rv64);
    wanted.mode = TraceMode::Btm;
    wanted.context = true;
    let control = hartrace_ntrace::Registers::of(&wanted).control.0;
    let text = format!("[ntrace.registers]\ntrTeControl = {control:#x}\n");
    assert_eq!(parse(&text).ntrace.settings(Xlen::Rv64), Ok(wanted.clone()));
    wanted.mode = TraceMode::Htm;
    let text = format!("[ntrace]\nmode = \"htm\"\n{text}");
    assert_eq!(parse(&text).ntrace.settings(Xlen::Rv64), Ok(wanted));
    let etrace = parse("[ntrace.registers]\ntrTeControl = 0x33\n").ntrace;
    let error = etrace.settings(Xlen::Rv64).unwrap_err().to_string();
    assert!(error.starts_with("trTeControl: "), "{error}");
}

/// The files in `configs/ntrace`.
#[test]
fn ready_made_configurations_are_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/ntrace");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let config = Settings::load(&path).unwrap();
        assert!(config.ntrace.is_said(), "{path:?}");
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            config.ntrace.settings(xlen).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?}");
        files += 1;
    }
    assert!(files >= 8);
}
