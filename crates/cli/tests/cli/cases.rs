//! The dumps of the cases in `proof/cases`. `proof/src/cases.rs` compares
//! what they decode to.

use crate::*;
use hartrace_testkit::Case;

/// What `hartrace dump` prints of a case. Damage is part of some, so that any
/// exit code will do.
fn dump(case: &Case, format: &str) -> String {
    let folder = Folder::new();
    let trace = folder.file(&format!("case.{format}"), case.trace());
    let config = folder.file("case.toml", case.section("config"));
    let output = run(&["dump", "-q", &trace, "-c", &config]);
    text(&output.stdout).to_owned()
}

fn check(format: &str) {
    let cases = repository().join("proof/cases").join(format);
    let mut wrong = String::new();
    for mut case in Case::all(&cases) {
        let printed = dump(&case, format);
        assert!(!printed.is_empty(), "{}", case.path.display());
        if let Err(changes) = case.expect("dump", &printed) {
            wrong += &changes;
            wrong.push('\n');
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn ntrace() {
    check("ntrace");
}

#[test]
fn etrace() {
    check("etrace");
}

#[test]
fn tandem() {
    check("tandem");
}
