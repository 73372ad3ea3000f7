//! A value of the configuration with its origin and name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a value came from.
#[derive(Debug, Eq)]
pub enum Origin {
    /// Not set: a default.
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

// Every key of every section has one. Written out instead of derived, so that each is
// compiled once and not into each of them.
impl Clone for Origin {
    #[inline(never)]
    fn clone(&self) -> Origin {
        match self {
            Origin::Default => Origin::Default,
            Origin::File { path, line } => Origin::File {
                path: Arc::clone(path),
                line: *line,
            },
            Origin::Flag(flag) => Origin::Flag(flag),
            Origin::Elf(path) => Origin::Elf(path.clone()),
        }
    }
}

impl PartialEq for Origin {
    #[inline(never)]
    fn eq(&self, other: &Origin) -> bool {
        match (self, other) {
            (Origin::Default, Origin::Default) => true,
            (Origin::Flag(a), Origin::Flag(b)) => a == b,
            (Origin::Elf(a), Origin::Elf(b)) => a == b,
            (Origin::File { path: a, line: m }, Origin::File { path: b, line: n }) => {
                m == n && a == b
            }
            _ => false,
        }
    }
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

    /// A default value.
    pub fn default(value: T) -> Setting<T> {
        let origin = Origin::Default;
        Setting { value, origin }
    }
}

/// A value by its name in a configuration.
pub(super) type Named<T> = &'static [(&'static str, T)];

/// The name of a value.
pub(super) fn name_of<T: PartialEq>(names: Named<T>, value: &T) -> &'static str {
    let named = names.iter().find(|n| n.1 == *value);
    named.map_or("", |n| n.0)
}
