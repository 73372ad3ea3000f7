//! docs/ctr-clauses.md names tests that exist, and all of these.

#[path = "../../../flow/tests/shared/clauses.rs"]
mod clauses;

const MODULES: [&str; 13] = [
    "access",
    "clear",
    "controls",
    "cycles",
    "depths",
    "entries",
    "external",
    "filters",
    "freeze",
    "interface",
    "stack",
    "status",
    "transitions",
];

#[test]
fn every_test_named_exists() {
    clauses::every_test_named_exists("ctr", &MODULES, 100);
}

#[test]
fn every_test_is_named() {
    clauses::every_test_is_named("ctr", &MODULES);
}
