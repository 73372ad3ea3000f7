//! docs/ctr-clauses.md names tests that exist, and all of these.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const MODULES: [&str; 12] = [
    "access",
    "clear",
    "controls",
    "cycles",
    "depths",
    "entries",
    "external",
    "filters",
    "freeze",
    "stack",
    "status",
    "transitions",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names of the tests in a file.
fn tests_in(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names = BTreeSet::new();
    let mut test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            test = true;
        } else if let (true, Some(rest)) = (test, line.strip_prefix("fn ")) {
            names.extend(rest.split('(').next().map(str::to_owned));
            test = false;
        }
    }
    names
}

/// The names between backticks that have a `::` in them.
fn named() -> Vec<(String, String)> {
    let text = fs::read_to_string(crates().join("../docs/ctr-clauses.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    quoted
        .filter_map(|name| name.rsplit_once("::"))
        .map(|(place, name)| (place.to_owned(), name.to_owned()))
        .collect()
}

#[test]
fn every_test_named_exists() {
    let named = named();
    assert!(named.len() > 100);
    for (place, name) in named {
        let path = if MODULES.contains(&place.as_str()) {
            crates().join(format!("ctr/tests/clauses/{place}.rs"))
        } else {
            crates().join(&place)
        };
        assert!(tests_in(&path).contains(&name), "no test {place}::{name}");
    }
}

#[test]
fn every_test_is_named() {
    let named: BTreeSet<_> = named().into_iter().collect();
    for module in MODULES {
        let path = crates().join(format!("ctr/tests/clauses/{module}.rs"));
        for name in tests_in(&path) {
            let key = (module.to_owned(), name);
            assert!(named.contains(&key), "{}::{} has no clause", key.0, key.1);
        }
    }
}
