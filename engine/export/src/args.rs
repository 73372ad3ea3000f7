//! Flags that the programs of this workspace share.

use clap::Args;
use hartrace_tables::Given;
use std::path::PathBuf;

/// The program of traces, where their sidecars do not name it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Program")]
pub struct Program {
    /// Program of the traces as an ELF file, with a load base if position-independent;
    /// repeatable
    #[arg(short, long, value_name = "FILE[@BASE]")]
    pub elf: Vec<String>,
    /// Code as a raw binary, with its address; repeatable
    #[arg(long, value_name = "FILE@BASE")]
    pub raw: Vec<String>,
    /// Code history, for code that changes; repeatable
    #[arg(long, value_name = "FILE")]
    pub code: Vec<PathBuf>,
    /// Folder with the debugging information of stripped programs; repeatable
    #[arg(long, value_name = "DIR")]
    pub debug_dir: Vec<PathBuf>,
    /// Instruction set, such as rv64gc
    #[arg(long, value_name = "ISA")]
    pub isa: Option<String>,
    /// Format of the log, if it is not recognised by itself: spike, sail, ibex or another
    /// of docs/logs.md
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// Configuration file; repeatable, later ones take precedence
    #[arg(short, long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
}

impl Program {
    /// What was given.
    #[must_use]
    pub fn given(&self) -> Given {
        Given {
            elf: self.elf.clone(),
            raw: self.raw.clone(),
            code: self.code.clone(),
            debug: self.debug_dir.clone(),
            config: self.config.clone(),
            isa: self.isa.clone(),
            log_format: self.log_format.clone(),
        }
    }
}
