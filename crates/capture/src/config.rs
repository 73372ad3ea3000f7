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
//! table = "etrace-2.0"         # etrace-1.1.1, etrace-2.0, ntrace-rc7, ntrace-1.0
//! retirement = "block"         # single or block
//! max_halfwords = 32           # per block
//! sijump = true
//! all_jumps = false
//! ecall_retires = false
//! ctype = 2                    # 0 to 3
//! ```

mod read;
mod write;

pub use read::{ConfigError, LoadError, Problem};

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

    fn default(value: T) -> Setting<T> {
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

/// `[ingress]`: the trace ingress port (E-Trace chapter 4) that steps are
/// turned into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingress {
    /// Bits of `itype`: 3 or 4.
    pub itype_width: Option<Setting<u8>>,
    /// Which text's table of instruction types.
    pub table: Option<Setting<Table>>,
    /// Instructions one by one or in blocks.
    pub retirement: Option<Setting<Retirement>>,
    /// The longest block, in halfwords; 2 to 65535. Of use with
    /// [`Retirement::Block`].
    pub max_halfwords: Option<Setting<u16>>,
    /// Whether sequentially inferable jumps are told.
    pub sijump: Option<Setting<bool>>,
    /// Whether direct jumps appear as taken branches (N-Trace,
    /// trTeInstEnAllJumps).
    pub all_jumps: Option<Setting<bool>>,
    /// Whether `ecall` and `ebreak` count as retired; the ratified texts say
    /// they do not.
    pub ecall_retires: Option<Setting<bool>>,
    /// How a change of context is reported, as `ctype` codes it: 0 not at all,
    /// 1 imprecisely, 2 precisely, 3 as a discontinuity.
    pub ctype: Option<Setting<u8>>,
}

/// `[trace]`: what the file beside a sidecar is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The format's name.
    pub format: Setting<String>,
    /// The version of the format's specification.
    pub version: Option<Setting<String>>,
}

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$vdoc])* $variant,)+ }

        impl $type {
            /// The names a configuration may use.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in a configuration.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }

            /// The value of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$type> {
                match name { $($name => Some($type::$variant),)+ _ => None }
            }
        }
    };
}

named! {
    /// Which text's table of instruction types is meant.
    Table {
        /// E-Trace 1.1.1-draft.
        Etrace111 "etrace-1.1.1",
        /// E-Trace 2.0.
        Etrace20 "etrace-2.0",
        /// N-Trace 1.0.0-rc7.
        NtraceRc7 "ntrace-rc7",
        /// N-Trace 1.0.
        Ntrace10 "ntrace-1.0",
    }
}

named! {
    /// How instructions reach the port.
    Retirement {
        /// One instruction per block.
        Single "single",
        /// Blocks up to the next special instruction.
        Block "block",
    }
}

impl Config {
    /// What holds when nobody says anything: a single-retirement port of the
    /// ratified E-Trace text with four-bit `itype` and every optional signal.
    #[must_use]
    pub fn defaults() -> Config {
        Config {
            ingress: Ingress {
                itype_width: Some(Setting::default(4)),
                table: Some(Setting::default(Table::Etrace20)),
                retirement: Some(Setting::default(Retirement::Single)),
                max_halfwords: Some(Setting::default(32)),
                sijump: Some(Setting::default(true)),
                all_jumps: Some(Setting::default(false)),
                ecall_retires: Some(Setting::default(false)),
                ctype: Some(Setting::default(2)),
            },
            ..Config::default()
        }
    }

    /// This layer on top of `below`: what it does not say comes from there.
    #[must_use]
    pub fn over(self, below: Config) -> Config {
        let (p, q) = (self.program, below.program);
        let (i, j) = (self.ingress, below.ingress);
        Config {
            program: Program {
                isa: p.isa.or(q.isa),
                elf: p.elf.or(q.elf),
                raw: p.raw.or(q.raw),
            },
            ingress: Ingress {
                itype_width: i.itype_width.or(j.itype_width),
                table: i.table.or(j.table),
                retirement: i.retirement.or(j.retirement),
                max_halfwords: i.max_halfwords.or(j.max_halfwords),
                sijump: i.sijump.or(j.sijump),
                all_jumps: i.all_jumps.or(j.all_jumps),
                ecall_retires: i.ecall_retires.or(j.ecall_retires),
                ctype: i.ctype.or(j.ctype),
            },
            trace: self.trace.or(below.trace),
        }
    }
}

#[cfg(test)]
mod tests;
