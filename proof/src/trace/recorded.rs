//! The programs of the repository, run on our hart.

use std::path::{Path, PathBuf};

use hartrace_analyze::Functions;
use hartrace_flow::{Effects, HartId, Image, Insn, Observer, SpaceId, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as Board, Machine, Platform, Program as Loaded, Stop};
use hartrace_isa::Isa;

/// A program of `programs/` and its code.
#[derive(Debug)]
pub struct Recorded {
    /// Its file's name.
    pub name: String,
    elf: Vec<u8>,
    /// The instruction set.
    pub isa: Isa,
    /// Its code, all that was ever executed included.
    pub image: Image,
}

/// Instructions that no image has.
struct Unknown<'a> {
    image: &'a Image,
    found: Vec<(u64, u32)>,
}

impl Observer for Unknown<'_> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        let Step::Insn(Insn { pc, bits, .. }) = *step else {
            return;
        };
        if self.image.fetch(SpaceId::FIRST, pc).is_none() && !self.found.contains(&(pc, bits)) {
            self.found.push((pc, bits));
        }
    }
}

impl Recorded {
    /// Reads a program. What it runs at addresses that are in no file (pages
    /// that it maps elsewhere) is found by running it.
    ///
    /// # Errors
    ///
    /// A file that is no program, or one that does not end well.
    pub fn read(path: &Path) -> Result<Recorded, String> {
        let blame = |what: String| format!("{}: {what}", path.display());
        let elf = std::fs::read(path).map_err(|e| blame(e.to_string()))?;
        let image = Image::from_elf(&elf).map_err(|e| blame(e.to_string()))?;
        let isa = image.isa().ok_or_else(|| blame("no code".into()))?;
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let mut program = Recorded {
            name: name.unwrap_or_default(),
            elf,
            isa,
            image,
        };
        if program.name.starts_with("modes") {
            let mut unknown = Unknown {
                image: &program.image,
                found: Vec::new(),
            };
            program
                .run(u64::MAX, &mut unknown, |_| false)
                .map_err(blame)?;
            for (pc, bits) in unknown.found {
                let bytes = bits.to_le_bytes();
                let len = usize::from(hartrace_isa::length(bits as u16).min(4));
                let bytes = bytes.get(..len).unwrap_or(&bytes);
                program.image.add_raw(SpaceId::FIRST, pc, bytes, isa);
            }
        }
        Ok(program)
    }

    /// Reads a program by its name.
    ///
    /// # Errors
    ///
    /// No such program, or one that does not end well.
    pub fn named(name: &str) -> Result<Recorded, String> {
        let all = programs()?;
        let is_it = |p: &&PathBuf| p.file_stem().is_some_and(|s| s == name);
        let path = all.iter().find(is_it);
        Recorded::read(path.ok_or_else(|| format!("no program {name}"))?)
    }

    /// The bytes of its file.
    #[cfg(feature = "peer")]
    #[must_use]
    pub fn elf(&self) -> &[u8] {
        &self.elf
    }

    /// Its functions.
    #[must_use]
    pub fn functions(&self) -> Functions {
        let mut functions = Functions::new();
        // It was read as a program before.
        let _ = functions.add_elf(&self.elf, None);
        functions
    }

    /// Runs up to so many instructions. Gives the number run.
    ///
    /// # Errors
    ///
    /// A program that does not end well.
    pub fn run<O: Observer>(
        &self,
        limit: u64,
        out: &mut O,
        failed: impl Fn(&O) -> bool,
    ) -> Result<u64, String> {
        let program = Loaded::from_elf(&self.elf).map_err(|e| e.to_string())?;
        let board = Board::new(Platform::Virt, program.xlen);
        let mut machine = Machine::new(board, Host::silent()).map_err(|e| e.to_string())?;
        machine.load(program, None).map_err(|e| e.to_string())?;
        while machine.instructions() < limit && !failed(out) {
            let slice = (limit - machine.instructions()).min(100_000);
            match machine.run(slice, out) {
                Stop::Exit(_) => break,
                Stop::Limit => {}
                other => return Err(format!("{}: {other:?}", self.name)),
            }
        }
        Ok(machine.instructions())
    }
}

/// The programs of the repository, but the one whose code changes.
///
/// # Errors
///
/// A folder that cannot be read.
pub fn programs() -> Result<Vec<PathBuf>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let list = |path: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(entries.flatten().map(|e| e.path()).collect())
    };
    let mut files = Vec::new();
    for folder in list(&root)?.iter().filter(|p| p.is_dir()) {
        if folder.ends_with("selfmod") {
            continue;
        }
        let elf = |p: &PathBuf| p.extension().is_some_and(|e| e == "elf");
        files.extend(list(folder)?.into_iter().filter(elf));
    }
    files.sort();
    Ok(files)
}
