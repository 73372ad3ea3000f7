//! The one configuration schema: read from TOML, merged, written back.
//!
//! Every value knows where it came from, so that the effective settings can
//! be shown with their origins. Layers are merged with [`Config::over`]: the
//! defaults, what a sidecar says, what configuration files say, what the
//! command line says.
//!
//! ```toml
//! [program]
//! isa = "rv64gc"
//! elf = ["prog.elf", "lib.so@0x40000000"]
//! raw = ["boot.bin@0x1000"]
//!
//! [ingress]
//! itype_width = 4              # 3 or 4
//! table = "etrace-2.0"         # etrace-1.1.1, etrace-2.0, etrace-reference,
//!                              # ntrace-rc7, ntrace-1.0, nexrv
//! retirement = "block"         # single or block
//! max_halfwords = 32           # per block
//! sijump = true
//! all_jumps = false
//! retires = "none"
//! ctype = 2                    # 0 to 3
//! tval_bits = 64               # 0 to 64
//!
//! [filter]                     # which instructions are traced
//! address = ["0x80000000..0x80001000"]
//! modes = ["M", "S", "U"]      # and VU, VS, D
//! context = [5, "7..=9"]
//!
//! [[filter.any]]               # and what fits one of these
//! from = 0x80002000            # or address; modes, context, tval
//! until = 0x80002040
//! causes = [2, 8]              # in the handlers of these traps
//! trap = "exception"           # or interrupt
//! impdef = 0x10                # as far as impdef_mask says
//!
//! [hart]
//! machine = "virt"             # virt or spike
//! memory = ["0x80000000:256M"]
//! max_insns = "10M"
//!
//! [hart.cost]                  # cycles per class of instruction
//! load = 2
//!
//! [ntrace]                     # the N-Trace encoder
//! version = "1.0"              # 1.0 or rc7
//! mode = "htm"                 # htm or btm
//!
//! [etrace]                     # the E-Trace encoder
//! version = "2.0"              # 2.0 or 1.1.1-draft
//! full_address = false
//!
//! [tandem]                     # the tandem-verification trace
//! style = "full"               # full, compact or bluespec
//! absent = ["trap.mstatus"]    # what it does not tell
//!
//! [ctr]                        # control transfer records
//! version = "1.0"              # 1.0 or 0.1.4
//! depth = 32                   # 16, 32, 64, 128 or 256
//! control = ["M", "S", "U"]    # fields of the control register that are set
//! ```

#[macro_use]
mod section;

mod ctr;
mod etrace;
mod filter;
mod hart;
mod ingress;
mod ntrace;
mod read;
mod read_filter;
mod read_hart;
mod tandem;
mod write;

pub use ctr::{CtrError, Records};
pub use etrace::Etrace;
pub use filter::{Filter, Span};
pub use hart::{COSTS, Hart, Machine};
pub use ingress::Ingress;
pub use ntrace::{Ntrace, Registers};
pub use read::{ConfigError, LoadError, Problem};
pub use tandem::{Tandem, TandemStyle, TandemVersion};

use crate::program::{ElfFile, RawFile};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A configuration file or sidecar.
    File {
        /// The file.
        path: Arc<Path>,
        /// The line of the value, from 1.
        line: usize,
    },
    /// The command line; holds the flag as it is spelled.
    Flag(&'static str),
    /// The attributes of this ELF file.
    Elf(PathBuf),
}

/// `default`, `run.toml:3`, `--isa`, `attributes of prog.elf`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Elf(path) => write!(f, "attributes of {}", path.display()),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value from the command line.
    pub fn flag(value: T, flag: &'static str) -> Setting<T> {
        let origin = Origin::Flag(flag);
        Setting { value, origin }
    }

    /// A value that nobody said.
    pub fn default(value: T) -> Setting<T> {
        let origin = Origin::Default;
        Setting { value, origin }
    }
}

/// One layer of settings, or all layers merged. What is `None` is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `[program]`.
    pub program: Program,
    /// `[ingress]`.
    pub ingress: Ingress,
    /// `[hart]`.
    pub hart: Hart,
    /// `[ntrace]`.
    pub ntrace: Ntrace,
    /// `[etrace]`.
    pub etrace: Etrace,
    /// `[tandem]`.
    pub tandem: Tandem,
    /// `[ctr]`.
    pub ctr: Records,
    /// `[filter]`.
    pub filter: Filter,
    /// `[trace]`: only sidecars have it.
    pub trace: Option<Trace>,
}

/// `[program]`: the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The instruction set, as [`hartrace_isa::Isa::parse`] reads it.
    pub isa: Option<Setting<String>>,
    /// ELF files.
    pub elf: Option<Setting<Vec<ElfFile>>>,
    /// Raw binaries.
    pub raw: Option<Setting<Vec<RawFile>>>,
}

/// `[trace]`: what the file beside a sidecar is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The format's name.
    pub format: Setting<String>,
    /// The version of the format's specification.
    pub version: Option<Setting<String>>,
}

impl Config {
    /// What holds when nobody says anything: a single-retirement port of the
    /// ratified E-Trace text with four-bit `itype` and every optional signal.
    #[must_use]
    pub fn defaults() -> Config {
        Config {
            ingress: Ingress::defaults(),
            ..Config::default()
        }
    }

    /// This layer on top of `below`: what it does not say comes from there.
    #[must_use]
    pub fn over(self, below: Config) -> Config {
        let (p, q) = (self.program, below.program);
        Config {
            program: Program {
                isa: p.isa.or(q.isa),
                elf: p.elf.or(q.elf),
                raw: p.raw.or(q.raw),
            },
            ingress: self.ingress.over(below.ingress),
            hart: self.hart.over(below.hart),
            ntrace: self.ntrace.over(below.ntrace),
            etrace: self.etrace.over(below.etrace),
            tandem: self.tandem.over(below.tandem),
            ctr: self.ctr.over(below.ctr),
            filter: self.filter.over(below.filter),
            trace: self.trace.or(below.trace),
        }
    }

    /// Takes the settings of trace formats from another.
    pub fn replace_formats(&mut self, other: &Config) {
        self.ntrace = other.ntrace.clone();
        self.etrace = other.etrace.clone();
        self.tandem = other.tandem.clone();
    }
}

#[cfg(test)]
mod tests;
