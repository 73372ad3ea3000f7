//! docs/tandem-clauses.md names tests that exist, and all of these.

#[path = "../../../flow/tests/shared/clauses.rs"]
mod clauses;

const MODULES: [&str; 7] = [
    "decoder", "examples", "faults", "items", "notes", "readings", "streams",
];

#[test]
fn every_test_named_exists() {
    clauses::every_test_named_exists("tandem", &MODULES, 100);
}

#[test]
fn every_test_is_named() {
    clauses::every_test_is_named("tandem", &MODULES);
}
