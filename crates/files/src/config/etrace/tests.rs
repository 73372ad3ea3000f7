use super::*;
use crate::config::Config as Settings;
use hartrace_etrace::{DataConfig, Form};
use hartrace_flow::ItypeWidth;
use hartrace_isa::{Isa, ItypeTable};
use std::path::Path;

/// A value other than the default for every key.
const FULL: &str = "[etrace]
version = \"1.1.1-draft\"
iaddress_width = 48
iaddress_lsb = 2
privilege_width = 4
context_width = 16
time_width = 0
ecause_width = 5
f0s_width = 1
bpred_size = 9
cache_size = 5
call_counter_size = 8
return_stack_size = 3
encoder_mode_width = 2
ioptions = [\"sequential-jump\", \"reserved\", \"full-address\", \"implicit-exception\"]
doptions_width = 3
shortening = \"packet\"
padding = \"ignored\"
notify_bit = \"unused\"
interrupt_tval = true
resync_repeats = true
full_address = true
sijump = true
sijump_returns = true
implicit_return = true
iret_ext = false
return_rule = \"specification\"
implicit_exception = true
mtvec = 0x80000001
stvec = \"0xffffffff80000000\"
vstvec = 0x100
branch_prediction = true
max_branch_count = 77
jump_target_cache = true
resync = \"cycles\"
resync_max = 3
resync_rule = \"exceeded\"
triggers = true
starts_disabled = true
ending = \"reference\"
idle_irdepth = \"ones\"
updiscon = \"next-row\"
queue_bytes = 512
queue_drain = 100
queue_stall = true

[etrace.encapsulation]
form = \"riscv\"
src_bits = 5
src_id = 3
time_bytes = 2
type_bits = 2
flow = 1
sync_bytes = 100
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
        for (text, version) in [
            ("", Version::V2_0),
            ("version = \"1.1.1-draft\"", Version::V1_1_1),
            ("version = \"2.05\"", Version::V2_05),
        ] {
            let section = parse(&format!("[etrace]\n{text}\n")).etrace;
            assert_eq!(section.settings(xlen), Ok(Config::new(version, xlen)));
            assert_eq!(section.is_said(), !text.is_empty());
        }
    }
}

#[test]
fn every_setting_reaches_the_encoder_and_comes_back() {
    let config = parse(FULL).etrace.settings(Xlen::Rv64).unwrap();
    let text = |config: &Config| {
        let settings = Settings {
            etrace: Etrace::of(config),
            ..Settings::default()
        };
        settings.to_toml(false)
    };
    let (full, plain) = (text(&config), text(&Config::new(Version::V2_0, Xlen::Rv64)));
    for line in full.lines().skip(1) {
        // The draft has no time and no irets; format 0 excludes another shortening.
        let same = plain.contains(line);
        let fixed = ["time_width", "iret_ext", "shortening"];
        let title = line.is_empty() || line.starts_with('[');
        let fixed = title || fixed.iter().any(|key| line.starts_with(key));
        assert_eq!(same, fixed, "{line}");
    }
    let review = parse("[etrace]\nversion = \"2.05\"\n").etrace;
    assert!(review.settings(Xlen::Rv64).unwrap().iret_ext);
    // All keys but that of a known encoder, and the three that are sections, with the
    // title and an empty line; slots exclude the others.
    let keys = Etrace::KEYS.len() - 4 + EtraceEncapsulation::KEYS.len() - 1;
    assert_eq!(full.lines().count(), keys + 3);
    assert_eq!(full, FULL);
    let timed = parse("[etrace]\ntime_width = 40\n").etrace;
    assert_eq!(timed.settings(Xlen::Rv64).unwrap().time_width, 40);
}

#[test]
fn everything_is_read_and_written() {
    let config = parse(FULL);
    for origins in [false, true] {
        let written = config.to_toml(origins);
        assert_eq!(parse(&written).to_toml(false), FULL, "{written}");
    }
    let none = "[etrace]\nioptions = []\ndoptions_width = \"none\"\n";
    assert_eq!(parse(none).to_toml(false), none);
    let width = config.etrace.context_width.unwrap();
    assert_eq!(width.origin.to_string(), "a.toml:6");
}

/// The same of data trace.
const FULL_DATA: &str = "[etrace.data]
enabled = true
split = true
lrid_width = 7
atomics = false
csrs = false
data_width = 32
daddress_width = 48
size_width = 3
diff_width = 1
csr_subtype_width = 2
csr_diff_width = 1
failures = false
no_address = true
no_data = false
full_address = true
full_data = true
compression = \"xor\"
xor_addresses = true
mmacas = true
kinds = [\"load\", \"atomic-min\"]
sizes = [1, 8]
filtered = true
separate = true
";

#[test]
fn data_trace() {
    let config = parse(&format!("[etrace]\nversion = \"2.05\"\n{FULL_DATA}"));
    let settings = config.etrace.settings(Xlen::Rv64).unwrap();
    let data = settings.data.unwrap();
    assert_eq!((data.kinds, data.sizes), (1 | 1 << 14, 1 | 1 << 3));
    assert!(data.split && data.filtered && data.xor_addresses && data.mmacas);
    let again = Settings {
        etrace: Etrace {
            data: EtraceData::of(Some(&data)),
            ..Etrace::default()
        },
        ..Settings::default()
    };
    assert_eq!(again.to_toml(false), FULL_DATA);
    assert_eq!(parse(FULL_DATA).to_toml(false), FULL_DATA);
    // Any key enables it, and `enabled` alone.
    let data = |text: &str| {
        let config = parse(&format!("[etrace.data]\n{text}\n")).etrace;
        config.settings(Xlen::Rv32).unwrap().data
    };
    assert_eq!(data(""), None);
    assert_eq!(data("enabled = false\nsplit = true"), None);
    let default = DataConfig::new(Version::V2_0, Xlen::Rv32);
    assert_eq!(data("enabled = true"), Some(default));
    assert_eq!(data("csrs = true"), Some(default));
    // The draft has addresses as wide as those of instructions.
    let draft = "[etrace]\nversion = \"1.1.1-draft\"\niaddress_width = 40\n\
        [etrace.data]\nenabled = true\n";
    let draft = parse(draft).etrace.settings(Xlen::Rv64).unwrap();
    assert_eq!(draft.data.unwrap().daddress_width, 40);
    for (line, message) in [
        ("data_width = 48", "data_width must be 32 or 64"),
        ("diff_width = 1", "leaves room for one compression"),
        (
            "no_address = true\nno_data = true",
            "leave nothing to report",
        ),
    ] {
        let config = parse(&format!("[etrace.data]\n{line}\n")).etrace;
        let error = config.settings(Xlen::Rv64).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let error = refused("[etrace.data]\nsizes = [3]\n");
    assert!(error.contains("sizes in bytes"), "{error}");
}

#[test]
fn layers() {
    let over = parse("[etrace]\nresync = \"off\"\n").over(parse(FULL));
    let etrace = &over.etrace;
    assert_eq!(etrace.resync.as_ref().unwrap().value, ResyncUnit::Off);
    assert_eq!(etrace.resync_max.as_ref().unwrap().value, 3);
}

#[test]
fn mistakes() {
    for (line, message) in [
        (
            "iadress_width = 32",
            "unknown key `iadress_width` in [etrace]; did you mean `iaddress_width`?",
        ),
        (
            "version = \"2.1\"",
            "`version` takes one of \"2.0\", \"2.05\", \"1.1.1-draft\"; did you mean \"2.0\"?",
        ),
        (
            "ecause_width = 0",
            "`ecause_width` takes a number from 1 to 64",
        ),
        (
            "doptions_width = 17",
            "`doptions_width` takes a number from 0 to 16, or \"none\"",
        ),
        ("ioptions = 3", "`ioptions` takes a list of options"),
    ] {
        assert_eq!(refused(&format!("[etrace]\n{line}\n")), message);
    }
    let many = ["\"reserved\""; 17].join(", ");
    assert_eq!(
        refused(&format!("[etrace]\nioptions = [{many}]\n")),
        "`ioptions` takes at most 16 options"
    );
}

#[test]
fn contradictions() {
    let section = parse("[etrace]\nversion = \"1.1.1-draft\"\ntime_width = 8\n").etrace;
    assert_eq!(section.settings(Xlen::Rv64), Err(ConfigError::DraftTime));
    let wide = parse("[etrace]\niaddress_width = 48\n").etrace;
    assert!(wide.settings(Xlen::Rv64).is_ok());
    assert_eq!(wide.settings(Xlen::Rv32), Err(ConfigError::IaddressWidth));
}

#[test]
fn the_port_follows_the_encoder() {
    let port = |text: &str| {
        let config = parse(text).over(Settings::defaults());
        let etrace = config.etrace.settings(Xlen::Rv64).unwrap();
        let isa = Isa::RV64GC;
        config.ingress.for_encoder(&etrace.port(isa)).port(isa)
    };
    let plain = port("");
    assert_eq!((plain.table, plain.sijump), (ItypeTable::ETrace20, false));
    let draft = port("[etrace]\nversion = \"1.1.1-draft\"\nsijump = true\n");
    assert_eq!((draft.table, draft.sijump), (ItypeTable::ETrace111, true));
    let said = port("[ingress]\ntable = \"nexrv\"\nitype_width = 3\n");
    assert_eq!(said.table, ItypeTable::NexRv);
    assert_eq!(said.itype_width, ItypeWidth::Three);
}

/// The files in `configs/etrace`.
#[test]
fn ready_made_configurations_are_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/etrace");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let config = Settings::load(&path).unwrap();
        assert!(config.etrace.is_said(), "{path:?}");
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            let settings = config.etrace.settings(xlen).unwrap();
            assert_eq!(u32::from(settings.iaddress_width), xlen.bits());
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?}");
        files += 1;
    }
    assert!(files >= 10);
}

/// Each form, by its name, with its own defaults; what the form has not is refused.
#[test]
fn encapsulations() {
    let form = |text: &str| {
        let section = parse(&format!("[etrace.encapsulation]\n{text}\n")).etrace;
        section
            .settings(Xlen::Rv64)
            .map(|config| config.encapsulation)
    };
    for (name, kind) in [
        ("reference", Form::Reference),
        ("riscv", Form::Riscv),
        ("smi", Form::Smi),
        ("atb", Form::Atb),
        ("esp32", Form::Esp32),
        ("slots", Form::Slots),
    ] {
        let found = form(&format!("form = \"{name}\"")).unwrap();
        assert_eq!(found, Encapsulation::new(kind));
    }
    assert_eq!(
        form("form = \"smi\"\ntime_bytes = 4"),
        Err(ConfigError::TimeBytes)
    );
    assert_eq!(form("src_bits = 8"), Err(ConfigError::SourceBits));
    assert_eq!(
        refused("[etrace.encapsulation]\nform = \"risc\"\n"),
        "`form` takes one of \"reference\", \"riscv\", \"smi\", \"atb\", \"esp32\", \"slots\"; did \
         you mean \"riscv\"?"
    );
}

/// The profile sets all at once, and single settings change it.
#[test]
fn the_profile_of_the_pulp_tracer() {
    let section = parse("[etrace]\nprofile = \"pulp-rv-tracer\"\n").etrace;
    assert_eq!(section.settings(Xlen::Rv64), Ok(Config::pulp(Xlen::Rv64)));
    let spelled = "[etrace]
iaddress_lsb = 0
ecause_width = 64
ioptions = [\"jump-target-cache\", \"branch-prediction\", \"implicit-return\", \
            \"sequential-jump\", \"implicit-exception\", \"full-address\", \"delta-address\"]
doptions_width = \"none\"
shortening = \"address\"
padding = \"ignored\"
notify_bit = \"unused\"
interrupt_tval = true
resync_repeats = true
[etrace.encapsulation]
form = \"slots\"
";
    let same = parse(spelled).etrace.settings(Xlen::Rv64);
    assert_eq!(same, Ok(Config::pulp(Xlen::Rv64)));
    let other = "[etrace]\nprofile = \"pulp-rv-tracer\"\n[etrace.encapsulation]\nslot_bytes = 48\n";
    let other = parse(other).etrace.settings(Xlen::Rv64).unwrap();
    assert_eq!(other.encapsulation.slot_bytes, 48);
}
