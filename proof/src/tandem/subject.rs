//! Programs to be traced and verified, and the expected reports of a verifier.

use std::ops::ControlFlow;

use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as Board, Machine, Platform, Program, Stop};
use hartrace_isa::Isa;
use hartrace_tandem::verify::{Difference, Mismatch, Options, Reporter};
use hartrace_tandem::{Config, Encoder, Problem, Verifier};

use crate::torture::{self, FULL_ISA};
use crate::trace::programs;

/// What the devices of the machine are read through: nobody can know their
/// values but the trace.
const DEVICES: [&str; 2] = ["0x2000000:0x10000", "0x10000000:0x100"];

/// A program and the machine it runs on.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What to call it.
    pub name: String,
    elf: Vec<u8>,
    /// The instruction set, where it is not the usual one.
    isa: Option<String>,
}

/// The instruction sets of torture programs: both widths, with long, short and
/// no floating-point registers.
const ISAS: [fn() -> String; 6] = [
    || FULL_ISA.to_owned(),
    || FULL_ISA.replace("rv64", "rv32"),
    || "rv64imafc_zicsr_zifencei_zicntr_zihpm".to_owned(),
    || "rv32imafc_zicsr_zifencei_zicntr_zihpm".to_owned(),
    || "rv64imac_zicsr_zifencei_zicntr_zihpm_zba_zbb".to_owned(),
    || "rv32imac_zicsr_zifencei_zicntr_zihpm".to_owned(),
];

impl Subject {
    /// A random program; the seed chooses the instruction set, too.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn torture(seed: u64, length: u32) -> Result<Subject, String> {
        let isa = ISAS
            .get(seed as usize % ISAS.len())
            .map_or_else(String::new, |isa| isa());
        let elf = torture::make(&torture::Spec {
            seed,
            isa: isa.clone(),
            length,
            topics: 0,
        })?;
        Ok(Subject {
            name: format!("torture-{seed}"),
            elf,
            isa: Some(isa),
        })
    }

    /// Whether the program calls a debugger (semihosting): what that does is nobody's
    /// instruction, so a trace has to report it.
    #[must_use]
    pub fn calls_debugger(&self) -> bool {
        // slli x0, x0, 0x1f; ebreak; srai x0, x0, 7
        let words = [0x01f0_1013_u32, 0x0010_0073, 0x4070_5013];
        let call: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.elf.windows(call.len()).any(|bytes| bytes == call)
    }

    /// The programs of the repository.
    ///
    /// # Errors
    ///
    /// Files that cannot be read.
    pub fn programs() -> Result<Vec<Subject>, String> {
        let read = |path: &std::path::PathBuf| {
            let elf = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
            Ok(Subject {
                name: name.unwrap_or_default(),
                elf,
                isa: None,
            })
        };
        programs()?.iter().map(read).collect()
    }

    /// A program of the repository, or `torture-SEED`.
    ///
    /// # Errors
    ///
    /// No such program.
    pub fn named(name: &str) -> Result<Subject, String> {
        if let Some(seed) = name.strip_prefix("torture-").and_then(|s| s.parse().ok()) {
            return Subject::torture(seed, LENGTH);
        }
        let mut all = Subject::programs()?.into_iter();
        all.find(|s| s.name == name)
            .ok_or(format!("no program {name}"))
    }

    fn program(&self) -> Result<Program, String> {
        Program::from_elf(&self.elf).map_err(|e| format!("{}: {e}", self.name))
    }

    /// A machine with the program in it.
    ///
    /// # Errors
    ///
    /// A file that is no program.
    pub fn machine(&self) -> Result<Machine, String> {
        let program = self.program()?;
        let mut board = Board::new(Platform::Virt, program.xlen);
        if let Some(isa) = &self.isa {
            board.isa.clone_from(isa);
        }
        let blame = |what: String| format!("{}: {what}", self.name);
        let mut machine = Machine::new(board, Host::silent()).map_err(|e| blame(e.to_string()))?;
        machine
            .load(program, None)
            .map_err(|e| blame(e.to_string()))?;
        Ok(machine)
    }

    /// The instruction set.
    ///
    /// # Errors
    ///
    /// As [`Subject::machine`].
    pub fn isa(&self) -> Result<Isa, String> {
        let machine = self.machine()?;
        machine.config().validate().map_err(|e| e.to_string())
    }

    /// What a verifier must know about the machine.
    ///
    /// # Errors
    ///
    /// As [`Subject::machine`].
    pub fn options(&self) -> Result<Options, String> {
        let program = self.program()?;
        let mut options = Options {
            tohost: program.tohost,
            fromhost: program.fromhost,
            ..Options::default()
        };
        for device in DEVICES {
            options.volatile.add(device).map_err(|e| e.to_string())?;
        }
        Ok(options)
    }

    /// Runs up to so many instructions.
    ///
    /// # Errors
    ///
    /// A program that does not end well.
    pub fn run(&self, limit: u64, see: &mut dyn FnMut(&Step, &Effects)) -> Result<(), String> {
        let mut machine = self.machine()?;
        match machine.run(limit, &mut Watch(see)) {
            Stop::Exit(_) | Stop::Limit => Ok(()),
            other => Err(format!("{}: {other:x?}", self.name)),
        }
    }

    /// The trace of up to so many instructions.
    ///
    /// # Errors
    ///
    /// A program that does not end well, settings that make no sense.
    pub fn trace(&self, config: &Config, limit: u64) -> Result<Vec<u8>, String> {
        let mut encoder = Encoder::new(config.clone()).map_err(|e| e.to_string())?;
        let mut bytes = Vec::new();
        self.run(limit, &mut |step, effects| {
            encoder.step(step, effects, &mut bytes);
        })?;
        encoder.finish(&mut bytes);
        Ok(bytes)
    }

    /// What a verifier says of a trace.
    ///
    /// # Errors
    ///
    /// As [`Subject::machine`].
    pub fn verify(&self, config: &Config, bytes: &[u8], most: usize) -> Result<Heard, String> {
        let mut verifier = Verifier::new(config.clone(), self.options()?, self.machine()?);
        let mut heard = Heard::new(most);
        if verifier.feed(bytes, &mut heard).is_continue() {
            let _ = verifier.finish(&mut heard);
        }
        heard.taken_back = verifier.counters().taken_back;
        Ok(heard)
    }
}

/// Atoms of a torture program.
pub(super) const LENGTH: u32 = 1500;

/// Shows steps to a function. The hart is compiled anew for each kind of
/// observer, so that one serves all.
pub struct Watch<'a>(pub &'a mut dyn FnMut(&Step, &Effects));

impl Observer for Watch<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        (self.0)(step, effects);
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

/// A mismatch that outlives its group.
#[derive(Clone, Debug)]
pub struct Told {
    /// Number of the group.
    pub group: u64,
    /// What differs.
    pub differences: Vec<Difference>,
}

/// Keeps what a verifier says.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Mismatches.
    pub mismatches: Vec<Told>,
    /// Problems.
    pub problems: Vec<Problem>,
    /// Bytes after each problem in the bytes until a group was found.
    pub skipped: Vec<u64>,
    /// Differences that were taken back.
    pub taken_back: u64,
    most: usize,
}

impl Heard {
    /// Has heard nothing, and stops a verifier after so many mismatches.
    #[must_use]
    pub const fn new(most: usize) -> Heard {
        Heard {
            mismatches: Vec::new(),
            problems: Vec::new(),
            skipped: Vec::new(),
            taken_back: 0,
            most,
        }
    }
}

impl Reporter for Heard {
    fn mismatch(&mut self, mismatch: &Mismatch<'_>) -> ControlFlow<()> {
        self.mismatches.push(Told {
            group: mismatch.group.number,
            differences: mismatch.differences.iter().copied().collect(),
        });
        match self.mismatches.len() < self.most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
        self.problems.push(*problem);
        ControlFlow::Continue(())
    }

    fn resumed(&mut self, skipped: u64) {
        self.skipped.push(skipped);
    }
}
