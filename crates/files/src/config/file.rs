//! Configuration files: read in whatever form they are.

use super::discovery::Form;
use super::document::Config;
use super::read::{ConfigError, Problem};
use crate::input::{Input, InputError};
use std::fmt;
use std::path::{Path, PathBuf};

/// Configuration is written by people; anything longer is another file given
/// by mistake.
const MAX_SIZE: u64 = 4 << 20;

impl Config {
    /// Reads a configuration file or sidecar. File names in it become relative
    /// to its folder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not a configuration.
    pub fn load(path: &Path) -> Result<Config, LoadError> {
        let bytes = Input::open(path)?.read_all(MAX_SIZE)?;
        Config::from_bytes(bytes, path)
    }

    /// As [`Config::load`], of bytes that are already there.
    ///
    /// # Errors
    ///
    /// Bytes that are not a configuration.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Config, LoadError> {
        let text = Config::text(bytes, path)?;
        Config::parse(&text, path).map_err(|error| LoadError::Config {
            path: path.to_path_buf(),
            text,
            error,
        })
    }

    /// The text of a configuration file.
    fn read_text(path: &Path) -> Result<String, LoadError> {
        Config::text(Input::open(path)?.read_all(MAX_SIZE)?, path)
    }

    fn text(bytes: Vec<u8>, path: &Path) -> Result<String, LoadError> {
        String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            LoadError::Config {
                path: path.to_path_buf(),
                text: String::from_utf8_lossy(e.as_bytes()).into_owned(),
                error: ConfigError {
                    problem: Problem::NotText,
                    span: at..at,
                },
            }
        })
    }

    /// As [`Config::load`]; with registers, an IP-XACT file says where their fields
    /// are. Also tells whether it did.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is not a configuration.
    pub fn load_described(
        path: &Path,
        registers: Option<[u64; 2]>,
    ) -> Result<(Config, bool), LoadError> {
        let text = Config::read_text(path)?;
        let config = match registers {
            Some(registers) if Form::detect(&text) == Form::Ipxact => {
                Config::from_registers(registers, Some(&text)).map(|config| (config, true))
            }
            _ => Config::parse(&text, path).map(|config| (config, false)),
        };
        config.map_err(|error| LoadError::Config {
            path: path.to_path_buf(),
            text,
            error,
        })
    }

    /// Reads the text of the file `path`, which is only named, not opened: TOML or
    /// another [`Form`].
    ///
    /// # Errors
    ///
    /// The first mistake in the text.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        match Form::detect(text) {
            Form::Toml => Config::parse_toml(text, path),
            form => Config::parse_form(text, path, form),
        }
    }
}

/// Why a configuration file could not be used.
#[derive(Debug)]
pub enum LoadError {
    /// It could not be read.
    Input(InputError),
    /// It was read, but not understood.
    Config {
        /// The file.
        path: PathBuf,
        /// Its text; the spans of `error` count in it.
        text: String,
        /// What and where.
        error: ConfigError,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Input(error) => error.fmt(f),
            LoadError::Config { path, text, error } => {
                let (line, column) = line_column(text, error.span.start);
                write!(f, "{}:{line}:{column}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl From<InputError> for LoadError {
    fn from(error: InputError) -> LoadError {
        LoadError::Input(error)
    }
}

/// Line and column, both from 1, of a byte of the text.
#[must_use]
fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = before.get(start..).map_or(0, |s| s.chars().count()) + 1;
    (line, column)
}
