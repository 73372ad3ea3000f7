//! The parameters at the start of a container, as lines of text.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use hartrace_isa::{Isa, Xlen};

use crate::config::{Config, ConfigError, EaddrWidth, Flen, Mlen, Nibbles, PcForm, StoreData};

/// What a decoder must know of the encoder (3.3): the settings that reading depends
/// on, and what is absent. As text, lines of `name = value`. Settings that a
/// reader does not know are left to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The settings; [`Config::style`] is not among the parameters.
    pub config: Config,
    /// The instruction set, as in `rv64gc`.
    pub isa: Option<String>,
}

/// Values by name, first the usual one.
const EADDR: [(&str, EaddrWidth); 2] = [("mlen", EaddrWidth::Mlen), ("xlen", EaddrWidth::Xlen)];
const NIBBLES: [(&str, Nibbles); 2] = [("low", Nibbles::Low), ("high", Nibbles::High)];
const PC: [(&str, PcForm); 2] = [("new", PcForm::New), ("both", PcForm::Both)];
const STORE: [(&str, StoreData); 2] = [
    ("result", StoreData::Result),
    ("operand", StoreData::Operand),
];
const XLEN: [(&str, Xlen); 2] = [("32", Xlen::Rv32), ("64", Xlen::Rv64)];
const FLEN: [(&str, Flen); 3] = [("0", Flen::None), ("32", Flen::F32), ("64", Flen::F64)];
const MLEN: [(&str, Mlen); 3] = [("32", Mlen::M32), ("34", Mlen::M34), ("64", Mlen::M64)];
const SWITCH: [(&str, bool); 2] = [("false", false), ("true", true)];

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    let found = names.iter().find(|(_, v)| v == value);
    found.map_or("", |(name, _)| name)
}

fn value_of<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    let found = names.iter().find(|(n, _)| *n == name);
    found.map(|(_, value)| *value)
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        writeln!(f, "version = 2018-11-20")?;
        if let Some(isa) = &self.isa {
            writeln!(f, "isa = {isa}")?;
        }
        for (name, value) in [
            ("xlen", name_of(&XLEN, &config.xlen)),
            ("flen", name_of(&FLEN, &config.flen)),
            ("mlen", name_of(&MLEN, &config.mlen)),
            ("eaddr", name_of(&EADDR, &config.eaddr)),
            ("nibbles", name_of(&NIBBLES, &config.nibbles)),
            ("pc", name_of(&PC, &config.pc)),
            (
                "lenient_pc_identifier",
                name_of(&SWITCH, &config.lenient_pc_identifier),
            ),
            ("store_data", name_of(&STORE, &config.store_data)),
        ] {
            writeln!(f, "{name} = {value}")?;
        }
        writeln!(f, "max_items = {}", config.max_items)?;
        if !config.absent.is_empty() {
            writeln!(f, "absent = {}", config.absent)?;
        }
        Ok(())
    }
}

impl FromStr for Parameters {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Parameters, ParameterError> {
        let mut parameters = Parameters::default();
        let (mut xlen, mut mlen) = (None, None);
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = || ParameterError::Line(number, line.to_string());
            let (name, value) = line.split_once('=').ok_or_else(bad)?;
            let (name, value) = (name.trim(), value.trim());
            match name {
                "xlen" => xlen = Some(value_of(&XLEN, value).ok_or_else(bad)?),
                "mlen" => mlen = Some(value_of(&MLEN, value).ok_or_else(bad)?),
                _ => parameters.set(name, value).ok_or_else(bad)?,
            }
        }
        // Without these nothing can be read.
        let config = &mut parameters.config;
        config.xlen = xlen.ok_or(ParameterError::Missing("xlen"))?;
        config.mlen = mlen.ok_or(ParameterError::Missing("mlen"))?;
        let style = config.style;
        if config.pc == PcForm::Both {
            config.style.pc = crate::config::PcStyle::Full;
        }
        config.validate().map_err(ParameterError::Config)?;
        config.style = style;
        Ok(parameters)
    }
}

impl Parameters {
    /// One setting; `None` for a value that makes no sense.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let config = &mut self.config;
        match name {
            "version" if value != "2018-11-20" => return None,
            "isa" => {
                Isa::parse_lenient(value).ok()?;
                self.isa = Some(value.to_string());
            }
            "flen" => config.flen = value_of(&FLEN, value)?,
            "eaddr" => config.eaddr = value_of(&EADDR, value)?,
            "nibbles" => config.nibbles = value_of(&NIBBLES, value)?,
            "pc" => config.pc = value_of(&PC, value)?,
            "lenient_pc_identifier" => config.lenient_pc_identifier = value_of(&SWITCH, value)?,
            "store_data" => config.store_data = value_of(&STORE, value)?,
            "max_items" => config.max_items = value.parse().ok()?,
            "absent" => config.absent = value.parse().ok()?,
            _ => {}
        }
        Some(())
    }
}

/// Why parameters cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// A line that says nothing, and its number.
    Line(u64, String),
    /// A parameter that must be there.
    Missing(&'static str),
    /// Parameters that do not go together.
    Config(ConfigError),
    /// More bytes than there may be.
    TooLong(usize),
    /// They are no text.
    NotText,
}

impl ParameterError {
    /// The number of the line, 0 if it is none in particular.
    #[must_use]
    pub const fn line(&self) -> u64 {
        match self {
            ParameterError::Line(number, _) => *number,
            _ => 0,
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Line(number, line) => {
                write!(f, "line {number} of the parameters is invalid: {line:?}")
            }
            ParameterError::Missing(name) => write!(f, "the parameters do not give {name}"),
            ParameterError::Config(error) => error.fmt(f),
            ParameterError::TooLong(len) => write!(f, "the parameters have {len} bytes"),
            ParameterError::NotText => f.write_str("the parameters are not text"),
        }
    }
}

impl core::error::Error for ParameterError {}
