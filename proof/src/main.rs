//! The long checks, one command each: `cargo run --release -p hartrace-proof -- COMMAND`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use hartrace_proof::etrace::ETrace;
use hartrace_proof::ntrace::NTrace;
use hartrace_proof::{tandem, trace};

mod logs;
mod walk;

/// A command: its name, what it proves, and the function that runs it.
type Command = (
    &'static str,
    &'static str,
    fn(&[String]) -> Result<(), String>,
);

const COMMANDS: &[Command] = &[
    (
        "walk",
        "speed of the walk alone over a big program",
        walk::run,
    ),
    (
        "logs",
        "speed of the log readers, and what they read",
        logs::run,
    ),
    (
        "waves",
        "[INSNS [LANES [DIR [PROGRAM]]]]: a run as RVFI in waveforms, read back: the same, and how fast",
        hartrace_proof::waves::command,
    ),
    (
        "generate",
        "makes a random program and walks over it",
        hartrace_proof::generate::command,
    ),
    (
        "identity",
        "random steps through port and walk and back, every setting",
        hartrace_proof::identity::command,
    ),
    (
        "hostile",
        "[SECONDS [SEED [NAME]]]: any bytes to everything that reads bytes",
        hartrace_proof::hostile::command,
    ),
    (
        "seeds",
        "DIR: writes the seeds of `hostile` as corpora for the fuzz targets",
        hartrace_proof::hostile::write_seeds,
    ),
    (
        "objdump",
        "ELF...: our listing of each file equals that of objdump -d",
        hartrace_proof::objdump::run,
    ),
    (
        "compressed",
        "[--xlen 32|64]: all 2^16 compressed encodings against objdump",
        hartrace_proof::encodings::compressed,
    ),
    (
        "random32",
        "[COUNT [SEED]]: random 32-bit encodings against objdump",
        hartrace_proof::encodings::random32,
    ),
    (
        "vector32",
        "[SEED]: the vector opcodes against objdump, about a million encodings of each",
        hartrace_proof::encodings::vector32,
    ),
    (
        "float",
        "[--count N] [--seed S] [--bench]: floating-point results to be checked",
        hartrace_proof::float::command,
    ),
    (
        "torture",
        "--seed N --isa NAME -o FILE: makes a random program for a simulator",
        hartrace_proof::torture::command,
    ),
    (
        "coverage",
        "ISA LOG...: which instructions commit logs contain, and which not",
        hartrace_proof::torture::coverage,
    ),
    (
        "lockstep",
        "--spike PATH --hart PATH ELF...: the commit logs of two simulators",
        hartrace_proof::lockstep::command,
    ),
    (
        "linux",
        "--bios FILE --kernel FILE --busybox FILE [--module FILE]...: boots, types, powers off",
        hartrace_proof::linux::command,
    ),
    (
        "block",
        "COMMAND [--config FILE] ...: the packets of another encoder, such as RTL, are ours",
        hartrace_proof::block::command,
    ),
    (
        "processes",
        "--bios FILE --kernel FILE --initrd FILE [--elf FILE]...: profiles by context are true",
        hartrace_proof::processes::command,
    ),
    (
        "model",
        "[--count N] [--seed N] [--length N]: the hart as a model tells all it does",
        hartrace_proof::model::command,
    ),
    (
        "ntrace-identity",
        "[INSNS] [SEED]: N-Trace encoded and decoded is what was done, every setting",
        trace::identity::command::<NTrace>,
    ),
    (
        "ntrace-straight",
        "[INSNS] [SETTINGS] [FIRST]: the same trace from straight-line code and from single steps",
        trace::straight::command::<NTrace>,
    ),
    (
        "ntrace-corruption",
        "[TRIALS]: what damage to a trace costs, in instructions",
        trace::corruption::command::<NTrace>,
    ),
    (
        "ntrace-speed",
        "[PROGRAM]: N-Trace, how small and how fast",
        trace::speed::command::<NTrace>,
    ),
    (
        "etrace-identity",
        "[INSNS] [SEED]: E-Trace encoded and decoded is what was done, every setting",
        trace::identity::command::<ETrace>,
    ),
    (
        "etrace-straight",
        "[INSNS] [SETTINGS] [FIRST]: the same trace from straight-line code and from single steps",
        trace::straight::command::<ETrace>,
    ),
    (
        "etrace-corruption",
        "[TRIALS]: what damage to a trace costs, in instructions",
        trace::corruption::command::<ETrace>,
    ),
    (
        "etrace-speed",
        "[PROGRAM]: E-Trace, how small and how fast",
        trace::speed::command::<ETrace>,
    ),
    (
        "etrace-data",
        "[ACCESSES] [SEED]: data trace encoded and decoded is every access, every setting, on several threads too",
        hartrace_proof::etrace::data::command,
    ),
    (
        "etrace-data-corruption",
        "[TRIALS] [PROGRAM]: what damage to data trace costs, in accesses",
        hartrace_proof::etrace::data::corruption::command,
    ),
    (
        "etrace-data-speed",
        "[INSNS] [PROGRAM...]: what data trace costs a run, and how fast it is decoded",
        hartrace_proof::etrace::data::speed::command,
    ),
    (
        "etrace-encapsulation",
        "[INSNS] [SEED]: E-Trace through every encapsulation and transport, several harts, with data",
        hartrace_proof::etrace::encapsulation::command,
    ),
    (
        "etrace-second",
        "[INSNS] [SEED]: E-Trace decoded by a second, plain decoder, every setting",
        hartrace_proof::etrace::second::command,
    ),
    #[cfg(feature = "peer")]
    (
        "etrace-peer",
        "[PROGRAM...]: decoding and encoding beside riscv-etrace, in one run",
        hartrace_proof::etrace::peer::command,
    ),
    (
        "views",
        "[INSNS [NAME]]: profiles and stacks of traces equal those of the run, every program and format",
        hartrace_proof::views::command,
    ),
    (
        "views-speed",
        "[FORMAT [PROGRAM...]]: what coverage and profiles cost beside plain decoding",
        hartrace_proof::views::speed::command,
    ),
    (
        "tandem-identity",
        "[INSNS] [SEED]: tandem traces decode to what was done and verify, every setting",
        tandem::identity::command,
    ),
    (
        "tandem-faults",
        "[TRIALS] [SEED]: faults of trace and core are found where they are, and only there",
        tandem::faults::command,
    ),
    (
        "tandem-corruption",
        "[TRIALS] [SEED]: what damage to a tandem trace costs, in groups",
        tandem::corruption::command,
    ),
    (
        "tandem-speed",
        "[PROGRAM...]: tandem traces, how small and how fast",
        tandem::speed::command,
    ),
    (
        "ctr-model",
        "[STEPS] [SEED]: control transfer records against a second, plain model",
        hartrace_proof::ctr::model,
    ),
    (
        "ctr-speed",
        "[ROUNDS]: what recording control transfers costs the hart",
        hartrace_proof::ctr::speed::command,
    ),
    (
        "speed",
        "[--spike PATH] [--rounds N] [ELF...]: the hart alone, watched, and beside Spike",
        hartrace_proof::speed::command,
    ),
    (
        "commands",
        "[--hartrace PATH] [--spike PATH] [--nexrv PATH] [--rvet PATH] [--insns N] [--rounds N] [ELF...]: whole commands beside the plain run, and other tools",
        hartrace_proof::commands::command,
    ),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first() else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some((_, _, run)) = COMMANDS.iter().find(|c| c.0 == name) else {
        eprintln!("hartrace-proof: no command `{name}`; `hartrace-proof help` lists them");
        return ExitCode::from(2);
    };
    match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("hartrace-proof {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let commands = COMMANDS.iter();
    let lines = commands.map(|(name, what, _)| format!("  {name:<22} {what}\n"));
    format!(
        "usage: hartrace-proof COMMAND [ARGS]\n\n{}",
        lines.collect::<String>()
    )
}
