//! The examples, run: a program is recorded in every format, and each trace is
//! opened, decoded and explained.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../examples/explain.rs"]
mod explain;
#[path = "../examples/functions.rs"]
mod functions;
#[path = "../examples/record.rs"]
mod record;

use hartrace_capture::Recording;
use hartrace_capture::config::Config;
use std::path::PathBuf;

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../programs/timer/timer-rv64gc.elf")
}

#[test]
fn every_format_is_recorded_decoded_and_explained_alike() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for name in ["run.ntrace", "run.etrace", "run.tandem"] {
        let trace = folder.path().join(name);
        let (instructions, bytes) = record::record(&program(), &trace).unwrap();
        assert_eq!(bytes, std::fs::metadata(&trace).unwrap().len());
        let (functions, gaps) = functions::functions(&trace).unwrap();
        assert_eq!(gaps, 0, "{name}");
        let counted: u64 = functions.iter().map(|(_, insns)| insns).sum();
        assert_eq!(counted, instructions, "{name}");
        let mut json = Vec::new();
        let pieces = explain::explain(&trace, &mut json).unwrap();
        let lines = json.split(|&b| b == b'\n').filter(|line| !line.is_empty());
        // A header, and one object for each piece.
        assert_eq!(lines.count() as u64, pieces + 1, "{name}");
        all.push(functions);
    }
    assert!(all.windows(2).all(|pair| pair.first() == pair.last()));
    assert!(all.first().unwrap().iter().any(|(name, _)| name == "main"));
}

#[test]
fn what_is_not_a_recording_is_refused_by_name() {
    let elf = program();
    let Err(error) = Recording::open(&elf) else {
        panic!("an ELF file is not a trace");
    };
    assert!(
        error
            .to_string()
            .contains("timer-rv64gc.elf is not a trace"),
        "{error}"
    );
    let error = record::record(&elf, "run.bin".as_ref()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("which format should run.bin have?"),
        "{error}"
    );
    let Err(error) = Recording::open_with("missing.ntrace", Config::default()) else {
        panic!("there is no such file");
    };
    assert!(error.to_string().contains("missing.ntrace"), "{error}");
}
