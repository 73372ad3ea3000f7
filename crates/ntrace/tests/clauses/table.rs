//! docs/ntrace-clauses.md names tests that exist, and all of these.

#[path = "../../../flow/tests/shared/clauses.rs"]
mod clauses;

const MODULES: [&str; 4] = ["messages", "encoder", "decoder", "corner_cases"];

#[test]
fn every_test_named_exists() {
    clauses::every_test_named_exists("ntrace", &MODULES, 100);
}

#[test]
fn every_test_is_named() {
    clauses::every_test_is_named("ntrace", &MODULES);
}
