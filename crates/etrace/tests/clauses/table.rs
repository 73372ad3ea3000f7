//! docs/etrace-clauses.md names tests that exist, and all of these.

#[path = "../../../flow/tests/shared/clauses.rs"]
mod clauses;

const MODULES: [&str; 13] = [
    "corner_cases",
    "data",
    "decoder",
    "discovery",
    "encapsulation",
    "encoder",
    "examples",
    "mmacas",
    "modes",
    "packets",
    "parameters",
    "random",
    "readings",
];

#[test]
fn every_test_named_exists() {
    clauses::every_test_named_exists("etrace", &MODULES, 150);
}

#[test]
fn every_test_is_named() {
    clauses::every_test_is_named("etrace", &MODULES);
}
