//! objdump as the reference for our disassembly.

use hartrace_analyze::{Listing, isa_of, listing};
use hartrace_isa::{Dialect, Flow, Isa};
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
    /// The instruction, where it has 16 or 32 bits.
    pub bits: Option<u32>,
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
    /// Address, colon, tab, bytes, tab, text; `None` for other lines.
    #[must_use]
    pub fn parse(line: &str) -> Option<Line> {
        let (address, rest) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim_start(), 16).ok()?;
        let (bytes, text) = rest.split_once('\t').unwrap_or((rest, ""));
        let digits = bytes.chars().filter(char::is_ascii_hexdigit).count();
        let bits = u32::from_str_radix(bytes.trim(), 16).ok();
        Some(Line {
            address,
            size: digits / 2,
            bits,
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

/// What differed in the listings of some files.
#[derive(Default)]
struct Tally {
    files: usize,
    equal_files: usize,
    lines: usize,
    instructions: usize,
    sizes: usize,
    classes: usize,
    texts: usize,
    /// Differing lines that are no instructions: headings, names.
    others: usize,
    shown: usize,
}

/// Differences printed per run, at most.
const EXAMPLES: usize = 20;

/// `objdump [-M no-aliases] [-M numeric] ELF...`: the listing of each file
/// against objdump's, and the class of each instruction against what its
/// mnemonic implies.
///
/// # Errors
///
/// A missing objdump, an unreadable file, and any difference in size or class.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut files = args;
    let mut options = Listing::default();
    let mut flags = Vec::new();
    while let [flag, mode, rest @ ..] = files {
        match (flag.as_str(), mode.as_str()) {
            ("-M", "no-aliases") => options.aliases = false,
            ("-M", "numeric") => options.numeric = true,
            _ => break,
        }
        flags.extend([flag.as_str(), mode.as_str()]);
        files = rest;
    }
    if files.is_empty() {
        return Err("usage: objdump [-M no-aliases] [-M numeric] ELF...".into());
    }
    let mut verdict = Ok(());
    for tool in tools()? {
        let mut tally = Tally::default();
        options.dialect = tool.dialect;
        for file in files {
            tally.file(&tool, file, &flags, &options)?;
        }
        println!(
            "{}: {} of {} files equal byte for byte; {} instructions, {} lines; \
             {} sizes, {} classes, {} texts, {} other lines differ",
            tool.version,
            tally.equal_files,
            tally.files,
            tally.instructions,
            tally.lines,
            tally.sizes,
            tally.classes,
            tally.texts,
            tally.others
        );
        if tally.sizes + tally.classes > 0 {
            verdict = Err("sizes or classes differ".to_owned());
        }
    }
    verdict
}

impl Tally {
    fn file(
        &mut self,
        tool: &Tool,
        file: &str,
        flags: &[&str],
        options: &Listing,
    ) -> Result<(), String> {
        let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
        let isa = isa_of(&bytes).map_err(|e| format!("{file}: {e}"))?;
        let theirs = tool.listing(Path::new(file), flags)?;
        let mut ours = Vec::new();
        listing(&bytes, file, options, &mut ours).map_err(|e| format!("{file}: {e}"))?;
        self.files += 1;
        self.equal_files += usize::from(ours == theirs);
        let (theirs, ours) = (
            String::from_utf8_lossy(&theirs),
            String::from_utf8_lossy(&ours),
        );
        let (mut left, mut right) = (theirs.lines().peekable(), ours.lines().peekable());
        while let (Some(&a), Some(&b)) = (left.peek(), right.peek()) {
            let (there, here) = (Line::parse(a), Line::parse(b));
            match (&there, &here) {
                // One side is behind after a difference in size.
                (Some(x), Some(y)) if x.address < y.address => {
                    self.size(file, a, b);
                    left.next();
                    continue;
                }
                (Some(x), Some(y)) if x.address > y.address => {
                    self.size(file, a, b);
                    right.next();
                    continue;
                }
                (Some(_), None) | (None, Some(_)) => self.size(file, a, b),
                (Some(x), Some(y)) => self.instruction(file, isa, (x, a), (y, b)),
                (None, None) if a != b => {
                    self.others += 1;
                    self.show(file, a, b);
                }
                (None, None) => {}
            }
            self.lines += 1;
            left.next();
            right.next();
        }
        self.others += left.count() + right.count();
        Ok(())
    }

    fn instruction(&mut self, file: &str, isa: Isa, left: (&Line, &str), right: (&Line, &str)) {
        let ((there, a), (here, b)) = (left, right);
        self.instructions += 1;
        if there.size != here.size {
            self.size(file, a, b);
        } else if a != b {
            self.texts += 1;
            self.show(file, a, b);
        }
        let data = [".word", ".short", ".byte"]
            .iter()
            .any(|d| there.text.starts_with(d));
        if let Some(bits) = there.bits.filter(|_| !data)
            && Class::of_text(&there.text) != Class::of(Flow::of(bits, isa))
        {
            self.classes += 1;
            self.show(file, a, b);
        }
    }

    fn size(&mut self, file: &str, a: &str, b: &str) {
        self.sizes += 1;
        self.show(file, a, b);
    }

    fn show(&mut self, file: &str, a: &str, b: &str) {
        self.shown += 1;
        if self.shown <= EXAMPLES {
            println!("{file}\n  objdump {a}\n  ours    {b}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;

    #[test]
    fn a_line_has_address_size_bits_and_text() {
        let line = Line::parse("   1000c:\t8082                \tret").unwrap();
        assert_eq!(
            (line.address, line.size, line.bits),
            (0x1000c, 2, Some(0x8082))
        );
        assert_eq!(Class::of_text(&line.text), Class::Indirect);
        assert!(Line::parse("Disassembly of section .text:").is_none());
        assert!(Line::parse("0000000000010000 <main>:").is_none());
    }

    #[test]
    fn made_files_are_read_back() {
        for arch in ["rv32imac_zicsr", "rv64gc"] {
            let file = elf::code(&[0x82, 0x80], arch);
            assert_eq!(isa_of(&file), Ok(Isa::parse(arch).unwrap()));
            let mut text = Vec::new();
            listing(&file, "x", &Listing::default(), &mut text).unwrap();
            assert!(text.ends_with(b"\tret\n"));
        }
    }
}
