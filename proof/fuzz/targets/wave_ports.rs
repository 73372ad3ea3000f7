#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hartrace_proof::hostile::target("wave_ports", bytes));
