//! objdump as the judge of our disassembly.

use hartrace_isa::{Dialect, Flow};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installed objdump.
pub struct Tool {
    path: PathBuf,
    /// `2.40` and the like.
    pub version: String,
    /// Which of our dialects it speaks.
    pub dialect: Dialect,
}

/// One instruction of a listing.
pub struct Line {
    /// Its address.
    pub address: u64,
    /// Its bytes on this line.
    pub size: usize,
    /// Mnemonic and operands.
    pub text: String,
}

/// The objdumps to compare with: those of `OBJDUMP` (paths with `:` between
/// them), or the first one on the path.
///
/// # Errors
///
/// None is there.
pub fn tools() -> Result<Vec<Tool>, String> {
    let named = std::env::var("OBJDUMP").unwrap_or_default();
    let known = ["riscv64-unknown-elf-objdump", "riscv64-linux-gnu-objdump"];
    let mut tools: Vec<Tool> = named
        .split(':')
        .filter(|p| !p.is_empty())
        .filter_map(Tool::open)
        .collect();
    if tools.is_empty() {
        tools.extend(known.iter().find_map(|name| Tool::open(name)));
    }
    if tools.is_empty() {
        return Err("no objdump for RISC-V; set OBJDUMP".into());
    }
    Ok(tools)
}

impl Tool {
    fn open(path: &str) -> Option<Tool> {
        let output = Command::new(path).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next()?.rsplit(' ').next()?.to_owned();
        let minor = version.split('.').nth(1)?.parse::<u32>().ok()?;
        let dialect = match minor {
            ..=40 => Dialect::Binutils240,
            _ => Dialect::Binutils245,
        };
        Some(Tool {
            path: path.into(),
            version,
            dialect,
        })
    }

    /// The output of `objdump -d` with more options.
    ///
    /// # Errors
    ///
    /// The tool cannot run.
    pub fn listing(&self, file: &Path, options: &[&str]) -> Result<Vec<u8>, String> {
        let output = Command::new(&self.path)
            .arg("-d")
            .args(options)
            .arg(file)
            .output()
            .map_err(|e| format!("{}: {e}", self.path.display()))?;
        Ok(output.stdout)
    }

    /// The instructions of an ELF file given as bytes.
    ///
    /// # Errors
    ///
    /// The tool cannot run or the file not be written.
    pub fn lines(&self, elf: &[u8], options: &[&str]) -> Result<Vec<Line>, String> {
        let name = format!("hartrace-{}-{}.elf", std::process::id(), self.version);
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, elf).map_err(|e| e.to_string())?;
        let listing = self.listing(&path, options);
        std::fs::remove_file(&path).map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&listing?).into_owned();
        Ok(text.lines().filter_map(Line::parse).collect())
    }
}

impl Line {
    /// `   10074:	00a5          	add	a1,a1,9`; `None` for other lines.
    #[must_use]
    pub fn parse(line: &str) -> Option<Line> {
        let (address, rest) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim_start(), 16).ok()?;
        let (bytes, text) = rest.split_once('\t').unwrap_or((rest, ""));
        let digits = bytes.chars().filter(char::is_ascii_hexdigit).count();
        Some(Line {
            address,
            size: digits / 2,
            text: text.to_owned(),
        })
    }
}

/// What a listing tells about control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The next instruction follows.
    Seq,
    /// Conditional branch.
    Branch,
    /// Jump to a place the instruction names.
    Jump,
    /// Jump through a register or the stack.
    Indirect,
    /// Return from a trap.
    TrapReturn,
    /// ecall and ebreak.
    Trap,
}

impl Class {
    /// Our own classification.
    #[must_use]
    pub fn of(flow: Flow) -> Class {
        match flow {
            Flow::Seq | Flow::Const { .. } => Class::Seq,
            Flow::Branch { .. } => Class::Branch,
            Flow::Jump { .. } | Flow::Table { .. } => Class::Jump,
            Flow::Indirect { .. } | Flow::PopReturn => Class::Indirect,
            Flow::TrapReturn => Class::TrapReturn,
            Flow::Trap => Class::Trap,
        }
    }

    /// The classification a mnemonic implies.
    #[must_use]
    pub fn of_text(text: &str) -> Class {
        let name = text.split(['\t', ' ']).next().unwrap_or_default();
        match name.strip_prefix("c.").unwrap_or(name) {
            "beq" | "bne" | "blt" | "bge" | "bltu" | "bgeu" | "beqz" | "bnez" | "blez" | "bgez"
            | "bltz" | "bgtz" | "ble" | "bgt" | "bleu" | "bgtu" => Class::Branch,
            "j" | "jal" | "cm.jt" | "cm.jalt" => Class::Jump,
            "jr" | "jalr" | "ret" | "cm.popret" | "cm.popretz" => Class::Indirect,
            "mret" | "sret" | "uret" | "mnret" | "dret" => Class::TrapReturn,
            "ecall" | "ebreak" => Class::Trap,
            _ => Class::Seq,
        }
    }
}

/// `objdump ELF...`
///
/// # Errors
///
/// A missing objdump, and any difference in size or class.
pub fn run(_files: &[String]) -> Result<(), String> {
    Err("not yet".into())
}
