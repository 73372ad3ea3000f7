use std::path::{Path, PathBuf};

use super::*;

/// The programs of the repository, of both widths.
fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let folders = std::fs::read_dir(root).unwrap().map(|f| f.unwrap().path());
    let files = folders.filter(|f| f.is_dir()).flat_map(|folder| {
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    });
    let mut elves: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|e| e == "elf"))
        .collect();
    elves.sort();
    assert!(elves.len() > 20);
    elves
}

#[test]
fn programs_take_the_same_steps_in_rows_and_one_by_one() {
    for (seed, elf) in (0..).zip(programs()) {
        let bytes = std::fs::read(&elf).unwrap();
        let result = rows(&bytes, None, 30_000, seed);
        assert!(result.is_ok(), "{}: {result:?}", elf.display());
    }
}

#[test]
fn programs_change_what_they_tell() {
    for elf in programs() {
        let bytes = std::fs::read(&elf).unwrap();
        let result = told(&bytes, None, 4_000);
        assert!(result.is_ok(), "{}: {result:?}", elf.display());
    }
}

#[test]
fn random_programs_do_too() {
    for seed in 0..2 {
        for isa in instruction_sets() {
            let program = torture_program(seed, &isa, 400).unwrap();
            let result = told(&program, Some(&isa), 10_000);
            assert!(result.is_ok(), "seed {seed} of {isa}: {result:?}");
            let result = rows(&program, Some(&isa), 20_000, seed);
            assert!(result.is_ok(), "seed {seed} of {isa}: {result:?}");
        }
    }
}
