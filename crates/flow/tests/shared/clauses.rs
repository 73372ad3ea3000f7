//! A clause table, `docs/KIND-clauses.md`, names tests that exist, and all of
//! those in `crates/KIND/tests/clauses`. Shared by the tests of the protocols.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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
fn named(kind: &str) -> Vec<(String, String)> {
    let table = crates().join(format!("../docs/{kind}-clauses.md"));
    let text = fs::read_to_string(table).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    quoted
        .filter_map(|name| name.rsplit_once("::"))
        .map(|(place, name)| (place.to_owned(), name.to_owned()))
        .collect()
}

fn module(kind: &str, name: &str) -> PathBuf {
    crates().join(format!("{kind}/tests/clauses/{name}.rs"))
}

/// The table names more than `least` tests, and each of them exists: in one of
/// these modules, or in the file it names.
pub(crate) fn every_test_named_exists(kind: &str, modules: &[&str], least: usize) {
    let named = named(kind);
    assert!(named.len() > least);
    for (place, name) in named {
        let path = if modules.contains(&place.as_str()) {
            module(kind, &place)
        } else {
            crates().join(&place)
        };
        assert!(tests_in(&path).contains(&name), "no test {place}::{name}");
    }
}

/// Every test of these modules is in the table.
pub(crate) fn every_test_is_named(kind: &str, modules: &[&str]) {
    let named: BTreeSet<_> = named(kind).into_iter().collect();
    for name in modules {
        for test in tests_in(&module(kind, name)) {
            let key = ((*name).to_owned(), test);
            assert!(named.contains(&key), "{}::{} has no clause", key.0, key.1);
        }
    }
}
