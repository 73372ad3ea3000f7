use super::super::Config as Settings;
use super::*;
use std::path::Path;

fn parse(text: &str) -> Records {
    Settings::parse(text, Path::new("a.toml")).unwrap().ctr
}

fn refused(text: &str) -> String {
    Settings::parse(text, Path::new("a.toml"))
        .unwrap_err()
        .to_string()
}

#[test]
fn nothing_said_records_all_that_is_taken() {
    for xlen in [Xlen::Rv32, Xlen::Rv64] {
        let ctr = Records::default().recorder(xlen).unwrap();
        assert_eq!(*ctr.config(), Config::new(Version::V1_0, xlen));
        assert_eq!((ctr.depth(), ctr.control()), (32, Control::MODES));
        assert_eq!(Records::default().predictor(), PredictorKind::None);
    }
}

#[test]
fn everything_is_read_and_reads_back() {
    let text = r#"
[ctr]
version = "0.1.4"
depths = [16, 32, 64]
fields = ["RASEMU", "MTE", "STE", "ETEN", "indjumpinh"]
types = false
mispredicts = false
cycle_bits = "none"
ras_cycles = "invalid"
predictor = "gshare"
depth = 64
control = ["M", "RASEMU"]
"#;
    let records = parse(text);
    let config = records.implementation(Xlen::Rv32).unwrap();
    assert_eq!(config.version, Version::V0_1_4);
    assert!(config.depths.iter().eq([16, 32, 64]));
    assert!(config.fields.has(Control::INDJMPINH) && !config.fields.has(Control::RETINH));
    assert!(!config.types && !config.mispredicts && config.cycles.is_none());
    assert_eq!(config.ras_cycles, RasCycles::Invalid);
    let ctr = records.recorder(Xlen::Rv32).unwrap();
    assert_eq!(ctr.control(), Control::M.with(Control::RASEMU));
    assert_eq!(
        (records.predictor(), ctr.depth()),
        (PredictorKind::Gshare, 64)
    );

    let completed = records.completed(Xlen::Rv32).unwrap();
    let all = Settings {
        ctr: completed.clone(),
        ..Settings::default()
    };
    let again = parse(&all.to_toml(true));
    let text = |ctr| {
        let ctr: Records = ctr;
        let all = Settings {
            ctr,
            ..Settings::default()
        };
        all.to_toml(false)
    };
    assert_eq!(text(again), text(completed));
}

#[test]
fn types_by_name_are_filters() {
    let ctr = parse("[ctr]\nrecord = [\"direct-call\", \"indirect-call\", \"not-taken\"]\n");
    let fields = ctr.recorder(Xlen::Rv64).unwrap().control();
    assert!(fields.has(Control::MODES.with(Control::NTBREN)));
    assert!(!fields.has(Control::DIRCALLINH) && !fields.has(Control::INDCALLINH));
    let others = Control::INHIBITS.without(Control::DIRCALLINH.with(Control::INDCALLINH));
    assert!(fields.has(others));
    // They take the place of those in `control`.
    let both = parse("[ctr]\ncontrol = [\"U\", \"RETINH\"]\nrecord = \"return\"\n");
    let fields = both.recorder(Xlen::Rv64).unwrap().control();
    assert!(fields.has(Control::U) && !fields.has(Control::RETINH));
    assert!(fields.recorded().eq([hartrace_isa::Itype::Return]));
}

#[test]
fn mistakes() {
    for (line, message) in [
        ("depth = 8", "`depth` takes one of 16, 32, 64, 128, 256"),
        (
            "depths = [16, 17]",
            "`depths` takes one of 16, 32, 64, 128, 256",
        ),
        (
            "depths = true",
            "`depths` takes a list of depths such as [16, 32]",
        ),
        (
            "cycle_bits = 5",
            "`cycle_bits` takes a number from 0 to 4, or \"none\"",
        ),
        (
            "cycle_bits = \"nnoe\"",
            "`cycle_bits` takes a number from 0 to 4, or \"none\"",
        ),
        (
            "version = \"0.1.5\"",
            "`version` takes one of \"1.0\", \"0.1.4\"; did you mean \"0.1.4\"?",
        ),
        (
            "predictor = \"bimodl\"",
            "`predictor` takes one of \"none\", \"not-taken\", \"bimodal\", \"gshare\"; did you mean \"bimodal\"?",
        ),
    ] {
        assert_eq!(refused(&format!("[ctr]\n{line}\n")), message);
    }
    let message = refused("[ctr]\ncontrol = [\"M\", \"X\"]\n");
    assert!(
        message.starts_with("`control` takes fields, which are U, S, M, "),
        "{message}"
    );
    let message = refused("[ctr]\nrecord = [\"direct-cal\"]\n");
    assert!(message.contains("did you mean"), "{message}");
}

#[test]
fn contradictions() {
    let error = |text: &str| parse(text).recorder(Xlen::Rv64).unwrap_err();
    assert_eq!(
        error("[ctr]\ndepths = [16]\ndepth = 32\n"),
        CtrError::Depth(32)
    );
    assert_eq!(
        error("[ctr]\nfields = []\ncontrol = [\"M\", \"RASEMU\"]\n"),
        CtrError::Field("RASEMU")
    );
    // 1.0 has no such field.
    assert_eq!(
        error("[ctr]\ncontrol = [\"ETEN\"]\n"),
        CtrError::Field("ETEN")
    );
    assert_eq!(
        error("[ctr]\nversion = \"0.1.4\"\ndepths = [16, 64]\n"),
        CtrError::Implementation(ConfigError::ScatteredDepths)
    );
    assert_eq!(
        error("[ctr]\ndepths = []\n"),
        CtrError::Implementation(ConfigError::NoDepth)
    );
    // Where 32 cannot be, the nearest below, or the least.
    let depth = |text: &str| parse(text).recorder(Xlen::Rv64).unwrap().depth();
    assert_eq!(depth("[ctr]\ndepths = [16, 64]\n"), 16);
    assert_eq!(depth("[ctr]\ndepths = [64, 128]\n"), 64);
}

/// The files in `configs/ctr`.
#[test]
fn ready_made_configurations_are_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/ctr");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let config = Settings::load(&path).unwrap();
        assert!(config.ctr.is_said(), "{path:?}");
        for xlen in [Xlen::Rv32, Xlen::Rv64] {
            config.ctr.recorder(xlen).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?}");
        files += 1;
    }
    assert!(files >= 4);
}

#[test]
fn what_a_hart_has_of_its_own() {
    let records = parse("[ctr]\ndepth = 64\ncontrol = [\"M\"]\ntypes = false\n");
    assert!(records.beside_only().eq(["depth", "control"]));
    let there = records.implemented(Xlen::Rv64).unwrap();
    assert!(there.beside_only().next().is_none());
    assert!(!there.types.unwrap().value);
    assert!(Records::default().beside_only().next().is_none());
}

/// ETEN is a field of 0.1.4.
#[test]
fn only_fields_that_there_are() {
    let fields = |text| {
        let records = parse(text).completed(Xlen::Rv64).unwrap();
        records.fields.unwrap().value
    };
    assert!(!fields("[ctr]\n").has(Control::ETEN));
    assert!(fields("[ctr]\nversion = \"0.1.4\"\n").has(Control::ETEN));
}
