//! The speed of the commands as users run them: whole processes, from the first
//! byte read to the last byte written, as ratios to the plain run.
//!
//! The commands take turns, and the best time of each counts. User CPU time is
//! compared, since files and other work on the machine disturb it least.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::objdump;
use crate::speed::PROGRAMS;

/// Instructions of the plain run by default.
const INSNS: u64 = 100_000_000;

/// Commands that read or write a log or a tandem trace, which are large, are
/// measured over the plain run's instructions divided by this.
const FEWER: u64 = 10;

/// Rounds by default.
const ROUNDS: u32 = 3;

/// One command of `hartrace`.
struct Row {
    name: &'static str,
    /// Its arguments; `ELF`, `DIR/` and `INSNS` stand for the program, the folder
    /// of the files and the number of instructions.
    args: &'static str,
    /// How many of the instructions it handles: one in so many.
    part: u64,
}

/// Whether a command is measured over all instructions, or over fewer.
const ALL: u64 = 1;

/// Each command finds the files of those before it.
const ROWS: &[Row] = &[
    row("run", "run ELF --max-insns INSNS", ALL),
    row(
        "run --trace ntrace",
        "run ELF --max-insns INSNS --trace ntrace=DIR/all.ntrace",
        ALL,
    ),
    row(
        "run --trace etrace",
        "run ELF --max-insns INSNS --trace etrace=DIR/all.etrace",
        ALL,
    ),
    row(
        "run --trace both",
        "run ELF --max-insns INSNS --trace ntrace=DIR/1 --trace etrace=DIR/2",
        ALL,
    ),
    row(
        "run --log pc",
        "run ELF --max-insns INSNS --log pc=DIR/pc",
        FEWER,
    ),
    row(
        "run --log spike",
        "run ELF --max-insns INSNS --log spike=DIR/spike",
        FEWER,
    ),
    row(
        "run --trace tandem",
        "run ELF --max-insns INSNS --trace tandem=DIR/tandem",
        FEWER,
    ),
    row(
        "encode pc, ntrace",
        "encode DIR/pc -e ELF --to ntrace -o DIR/1",
        FEWER,
    ),
    row(
        "encode pc, etrace",
        "encode DIR/pc -e ELF --to etrace -o DIR/2",
        FEWER,
    ),
    row(
        "encode spike, ntrace",
        "encode DIR/spike -e ELF --to ntrace -o DIR/1",
        FEWER,
    ),
    row(
        "stats ntrace, 1 thread",
        "stats DIR/all.ntrace -e ELF --threads 1",
        ALL,
    ),
    row(
        "stats ntrace, 2 threads",
        "stats DIR/all.ntrace -e ELF --threads 2",
        ALL,
    ),
    row(
        "stats etrace, 1 thread",
        "stats DIR/all.etrace -e ELF --threads 1",
        ALL,
    ),
    row(
        "decode -f pc, 1 thread",
        "decode DIR/all.ntrace -e ELF -f pc --threads 1",
        ALL,
    ),
    row("profile etrace", "profile DIR/all.etrace -e ELF", ALL),
    row("verify tandem", "verify DIR/tandem -e ELF", FEWER),
];

/// Another tool that is measured beside ours, where it is given.
struct Peer {
    /// The option that gives its path.
    option: &'static str,
    /// What it does. Decoders of others are slower and get fewer instructions.
    row: Row,
    /// Makes the files that it reads.
    prepare: fn(&Bench, &Path, &Path) -> Result<(), String>,
}

const PEERS: &[Peer] = &[
    Peer {
        option: "--spike",
        row: row(
            "Spike, no trace",
            "--isa=rv64gc --instructions=INSNS ELF",
            ALL,
        ),
        prepare: |_, _, _| Ok(()),
    },
    // The reference decoder of N-Trace. It writes a pc list, as `decode -f pc` does.
    Peer {
        option: "--nexrv",
        row: row(
            "NexRv -deco",
            "-deco DIR/peer.ntrace -pcinfo DIR/peer.info -pcout DIR/peer.pc -none",
            FEWER,
        ),
        prepare: |bench, nexrv, elf| {
            let tools = objdump::tools()?;
            let tool = tools.first().ok_or("no objdump for RISC-V; set OBJDUMP")?;
            bench.write("peer.objd", &tool.listing(elf, &[])?)?;
            bench.call(
                nexrv,
                "-conv -objd DIR/peer.objd -pcinfo DIR/peer.info",
                elf,
            )?;
            let run = "run ELF --max-insns INSNS --trace ntrace=DIR/peer.ntrace";
            bench.call(&bench.hartrace, run, elf)
        },
    },
    // The tool around the crate riscv-etrace. It counts the instructions of functions,
    // as `profile` does.
    Peer {
        option: "--rvet",
        row: row(
            "rvet prof",
            "prof -p DIR/rvet.toml --hart-id-width 0 --trace-type-width 0 --code ELF \
             --profile DIR/peer.prof -- DIR/peer.etrace",
            FEWER,
        ),
        prepare: |bench, _, elf| {
            bench.write("rvet.toml", RVET.as_bytes())?;
            bench.write("riscv.toml", b"[etrace.encapsulation]\nform = \"riscv\"\n")?;
            let run = "run ELF --max-insns INSNS -c DIR/riscv.toml --trace etrace=DIR/peer.etrace";
            bench.call(&bench.hartrace, run, elf)
        },
    },
];

/// The parameters of our E-Trace encoder, for rvet.
const RVET: &str = "\
cache_size_p = 0
call_counter_size_p = 0
context_width_p = 1
ecause_width_p = 6
f0s_width_p = 0
iaddress_lsb_p = 1
iaddress_width_p = 64
nocontext_p = 1
notime_p = 1
privilege_width_p = 2
return_stack_size_p = 0
sijump_p = 0
time_width_p = 1
";

const fn row(name: &'static str, args: &'static str, part: u64) -> Row {
    Row { name, args, part }
}

/// Seconds of one process.
#[derive(Clone, Copy, Debug)]
struct Seconds {
    user: f64,
    wall: f64,
}

impl Seconds {
    const NONE: Seconds = Seconds {
        user: f64::INFINITY,
        wall: f64::INFINITY,
    };

    fn min(self, other: Seconds) -> Seconds {
        Seconds {
            user: self.user.min(other.user),
            wall: self.wall.min(other.wall),
        }
    }
}

/// User CPU seconds of all processes that this one has waited for; `None` where
/// the system does not say.
#[cfg(unix)]
fn children() -> Option<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    let time = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?.user_time();
    Some(time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
}

#[cfg(not(unix))]
fn children() -> Option<f64> {
    None
}

/// Runs a process to its end. Gives its time, and what it reported on standard
/// error.
fn time(program: &Path, args: &[String]) -> Result<(Seconds, String), String> {
    let shown = || format!("{} {}", program.display(), args.join(" "));
    let (before, start) = (children(), Instant::now());
    let output = Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("{}: {error}", shown()))?;
    let wall = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("{} failed: {text}", shown()));
    }
    let user = children().zip(before).map(|(after, before)| after - before);
    let seconds = Seconds {
        user: user.unwrap_or(wall),
        wall,
    };
    Ok((seconds, text))
}

/// The number of instructions in the summary of a run: `1 234 instructions, ...`.
fn instructions(summary: &str) -> Option<u64> {
    let (number, _) = summary.split_once(" instructions, ")?;
    let number = number.lines().last()?;
    number.replace(' ', "").parse().ok()
}

/// The folder of all files, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        let name = format!("hartrace-proof-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What is measured.
struct Bench {
    hartrace: PathBuf,
    /// Other tools, and where they are.
    peers: Vec<(&'static Peer, PathBuf)>,
    insns: u64,
    rounds: u32,
    folder: Folder,
}

impl Bench {
    fn arguments(&self, row: &Row, elf: &Path) -> Vec<String> {
        let folder = self.folder.0.display().to_string();
        let insns = (self.insns / row.part).to_string();
        let word = |word: &str| match word {
            "ELF" => elf.display().to_string(),
            "INSNS" => insns.clone(),
            other => other.replace("DIR", &folder),
        };
        row.args.split_whitespace().map(word).collect()
    }

    /// Writes a file that a peer needs.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.0.join(name);
        std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Runs something that is not measured, over the fewer instructions.
    fn call(&self, program: &Path, args: &'static str, elf: &Path) -> Result<(), String> {
        let args = self.arguments(&row("", args, FEWER), elf);
        time(program, &args).map(|_| ())
    }

    /// Measures and prints all commands over one program.
    fn program(&self, elf: &Path) -> Result<(), String> {
        for (peer, path) in &self.peers {
            (peer.prepare)(self, path, elf)?;
        }
        let ours = ROWS.iter().map(|row| (row, &self.hartrace));
        let peers = self.peers.iter().map(|(peer, path)| (&peer.row, path));
        let rows: Vec<_> = ours.chain(peers).collect();
        let mut best = vec![Seconds::NONE; rows.len()];
        for _ in 0..self.rounds.max(1) {
            for (index, ((row, program), best)) in rows.iter().zip(&mut best).enumerate() {
                let timed = time(program, &self.arguments(row, elf));
                // Peers may fail where we do not.
                let (seconds, text) = match timed {
                    Err(error) if index >= ROWS.len() => {
                        let first = error.lines().next().unwrap_or_default();
                        println!("  {}: {first}", row.name);
                        continue;
                    }
                    timed => timed?,
                };
                *best = best.min(seconds);
                if index == 0 {
                    self.is_long_enough(&text)?;
                }
            }
        }
        let name = elf.file_stem().map(|s| s.to_string_lossy().into_owned());
        println!("{}", name.unwrap_or_default());
        let plain = best.first().map_or(f64::NAN, |plain| plain.user);
        for ((row, _), best) in rows.iter().zip(best) {
            self.show(row, best, plain);
        }
        Ok(())
    }

    /// Whether the plain run had as many instructions as all figures assume.
    fn is_long_enough(&self, summary: &str) -> Result<(), String> {
        match instructions(summary) {
            Some(insns) if insns < self.insns => Err(format!(
                "the program ends early: give --insns {insns} or less"
            )),
            Some(_) => Ok(()),
            None => Err(format!("no number of instructions in: {summary}")),
        }
    }

    /// Prints one line; `plain` is the user time of the plain run.
    fn show(&self, row: &Row, best: Seconds, plain: f64) {
        if best.user == Seconds::NONE.user {
            return println!("  {:<24}  failed", row.name);
        }
        let insns = (self.insns / row.part) as f64;
        let ratio = best.user * row.part as f64 / plain;
        println!(
            "  {:<24} {:>7.2} {:>7.2} {:>8.1} {ratio:>7.2}",
            row.name,
            best.user,
            best.wall,
            insns / best.user / 1e6,
        );
    }
}

/// `commands [--hartrace PATH] [--spike PATH] [--nexrv PATH] [--rvet PATH] [--insns N]
/// [--rounds N] [ELF...]`.
///
/// # Errors
///
/// Arguments that make no sense, and commands that fail.
pub fn command(args: &[String]) -> Result<(), String> {
    let beside = std::env::current_exe().map(|exe| exe.with_file_name("hartrace"));
    let mut bench = Bench {
        hartrace: beside.map_err(|e| e.to_string())?,
        peers: Vec::new(),
        insns: INSNS,
        rounds: ROUNDS,
        folder: Folder::new()?,
    };
    let mut elves = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: &String| text.parse().map_err(|_| format!("no number: {text}"));
        match arg.as_str() {
            "--hartrace" => bench.hartrace = PathBuf::from(value()?),
            "--insns" => bench.insns = number(value()?)?,
            "--rounds" => bench.rounds = number(value()?)? as u32,
            option => match PEERS.iter().find(|peer| peer.option == option) {
                Some(peer) => bench.peers.push((peer, PathBuf::from(value()?))),
                None => elves.push(PathBuf::from(arg)),
            },
        }
    }
    if !bench.hartrace.is_file() {
        let path = bench.hartrace.display();
        return Err(format!(
            "{path} is missing: build it with `cargo build --release -p hartrace`, or give \
             --hartrace PATH"
        ));
    }
    if elves.is_empty() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
        elves.extend(PROGRAMS.iter().map(|name| programs.join(name)));
    }
    println!(
        "whole commands over {} instructions, or {} with logs and tandem traces; best of {}",
        bench.insns,
        bench.insns / FEWER,
        bench.rounds
    );
    println!("                            user s  wall s   M insn/s  x run");
    elves.iter().try_for_each(|elf| bench.program(elf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_a_run_has_its_instructions() {
        let text = "warning: x\n9 874 instructions, 15 528 cycles in 0.00 s (21 M/s)\nx: 5 y";
        assert_eq!(instructions(text), Some(9874));
        assert_eq!(instructions("nothing"), None);
    }

    /// Files and numbers are put in where they belong.
    #[test]
    fn arguments_of_a_row() {
        let folder = Folder::new().unwrap();
        let path = folder.0.clone();
        let bench = Bench {
            hartrace: PathBuf::new(),
            peers: Vec::new(),
            insns: 1000,
            rounds: 1,
            folder,
        };
        let row = row("x", "run ELF --max-insns INSNS --log pc=DIR/pc", FEWER);
        let args = bench.arguments(&row, Path::new("a.elf"));
        let log = format!("pc={}/pc", path.display());
        assert_eq!(args, ["run", "a.elf", "--max-insns", "100", "--log", &log]);
        drop(bench);
        assert!(!path.exists());
    }
}
