//! For tests: the programs of the repository, run on our hart, and traces of them.

#![allow(clippy::unwrap_used)] // a test ends where anything fails

use hartrace_capture::Recorder;
use hartrace_capture::config::Config;
use hartrace_flow::Observer;
use hartrace_hart::host::Host;
use hartrace_hart::{Config as Board, Machine, Platform, Program, Stop};
use std::path::{Path, PathBuf};

/// A program of the repository, such as `sort-rv64gc`.
///
/// # Panics
///
/// A name without a folder.
#[must_use]
pub fn elf(name: &str) -> PathBuf {
    let folder = name.split('-').next().unwrap();
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    programs.join(folder).join(format!("{name}.elf"))
}

/// Runs a program for so many instructions.
///
/// # Panics
///
/// A program that cannot be run.
pub fn run(name: &str, limit: u64, out: &mut impl Observer) {
    let bytes = std::fs::read(elf(name)).unwrap();
    let program = Program::from_elf(&bytes).unwrap();
    let mut board = Board::new(Platform::Virt, program.xlen);
    board.harts = if name.starts_with("harts") { 2 } else { 1 };
    let mut machine = Machine::new(board, Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    while machine.instructions() < limit {
        if let Stop::Exit(_) = machine.run(limit - machine.instructions(), out) {
            break;
        }
    }
    out.finish();
}

/// Writes a trace of a program to a file, with its sidecar. The ending of the file names the
/// format; `config` has other settings.
///
/// # Panics
///
/// Settings that contradict each other, and files that cannot be written.
pub fn record(path: &Path, name: &str, config: &str, limit: u64) {
    let config = Config::parse(config, Path::new("test.toml")).unwrap();
    let mut recorder = Recorder::create(path, elf(name), config).unwrap();
    run(name, limit, &mut recorder);
    recorder.close().unwrap();
}
