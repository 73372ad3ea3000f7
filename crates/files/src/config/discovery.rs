//! The parameters of an E-Trace encoder (chapter 9) in forms other than TOML: the
//! `.scf` and `.ucf` files of the reference flow, the discovery registers, and their
//! description as IP-XACT.
//!
//! Whatever the form, what is read is a layer of the one configuration: a parameter is
//! the key of `[etrace]`, `[etrace.data]` or `[ingress]` that it determines, or a key of
//! `[etrace.parameters]` if it determines none.

mod ipxact;
mod pairs;
#[cfg(test)]
mod tests;

use super::document::Config;
use super::etrace::Etrace;
use super::read::{ConfigError, Problem, SECTIONS};
use super::value::{Origin, Setting};
use hartrace_etrace::{
    Parameter, ParameterError, ParameterTable, Parameters, RegisterField, Registers, Version,
};
use hartrace_flow::ItypeWidth;
use hartrace_isa::Xlen;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The form of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The configuration of hartrace.
    Toml,
    /// Parameters as lines `name_p = value` (`.scf` of the reference flow).
    Scf,
    /// Modes as lines `name = value` (`.ucf` of the reference flow).
    Ucf,
    /// A description of the discovery registers with their values, as XML.
    Ipxact,
    /// The values of the two discovery registers.
    Registers,
}

impl Form {
    /// The form of a text.
    #[must_use]
    pub fn detect(text: &str) -> Form {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('<') {
            return Form::Ipxact;
        }
        for line in text.lines().map(str::trim) {
            match line.split_once('=') {
                _ if line.is_empty() || line.starts_with(['#', ';']) => {}
                Some((key, _)) => return pairs::form_of_key(key.trim()).unwrap_or(Form::Toml),
                // A heading, which the reference flow does not look at.
                None if line.starts_with('[') && !is_section(line) => {}
                None => break,
            }
        }
        Form::Toml
    }
}

/// Whether a line starts a section of our configuration.
fn is_section(line: &str) -> bool {
    let name = line.trim_start_matches('[').trim_end_matches(']');
    let name = name.split('.').next().unwrap_or(name).trim();
    SECTIONS.contains(&name)
}

/// A text of one of the forms and the file it is from.
struct Source<'a> {
    text: &'a str,
    path: Arc<Path>,
}

impl Source<'_> {
    /// Where a byte of the text is.
    fn origin(&self, at: usize) -> Origin {
        let before = self.text.get(..at).unwrap_or(self.text);
        let path = Arc::clone(&self.path);
        let line = before.matches('\n').count() + 1;
        Origin::File { path, line }
    }
}

fn fail<T>(problem: Problem, span: Range<usize>) -> Result<T, ConfigError> {
    Err(ConfigError { problem, span })
}

/// A value that its parameter cannot have.
fn refused(error: ParameterError) -> Problem {
    match error {
        ParameterError::Range { parameter, .. } => {
            let range = parameter.range();
            Problem::Value {
                name: parameter.name(),
                expected: format!("a number from {} to {}", range.start(), range.end()),
            }
        }
        error => Problem::Invalid(error.to_string()),
    }
}

/// The parameters that a text gives.
#[derive(Default)]
struct Given(Vec<(Parameter, u8, Origin)>);

/// The width of a bus, and whether packets have no field of it.
struct Bus {
    bits: u8,
    absent: bool,
    origin: Origin,
}

impl Given {
    fn get(&self, parameter: Parameter) -> Option<&(Parameter, u8, Origin)> {
        self.0.iter().find(|(given, ..)| *given == parameter)
    }

    /// Adds one that was not given before.
    fn add(&mut self, parameter: Parameter, value: u8, origin: Origin) -> Result<(), Problem> {
        if self.get(parameter).is_some() {
            let name = parameter.name();
            return Err(Problem::Invalid(format!("`{name}` is given twice")));
        }
        self.0.push((parameter, value, origin));
        Ok(())
    }

    /// Adds the attributes in registers.
    fn add_registers(
        &mut self,
        registers: Registers,
        fields: &[RegisterField],
        origins: [Origin; 2],
    ) -> Result<(), Problem> {
        let reserved = registers.check_reserved(fields.iter().copied());
        reserved.map_err(refused)?;
        let [first, second] = origins;
        for field in fields {
            let origin = if field.register == 0 { &first } else { &second };
            let value = field.read(registers).map_err(refused)?;
            self.add(field.parameter, value, origin.clone())?;
        }
        Ok(())
    }

    /// Adds the required attributes that are missing where others are given: an
    /// encoder must have their defaults (9.1). Where these depend on the version, they
    /// are those of the encoder's settings anyway.
    fn complete(&mut self) {
        let required = |p: Parameter| p.table() == ParameterTable::Required;
        if !self.0.iter().any(|(given, ..)| required(*given)) {
            return;
        }
        for &parameter in Parameter::ALL {
            let bus = matches!(parameter, Parameter::ContextWidth | Parameter::TimeWidth);
            if bus || !required(parameter) || self.get(parameter).is_some() {
                continue;
            }
            if let Some(value) = shared_default(parameter) {
                self.0.push((parameter, value, Origin::Default));
            }
        }
    }

    /// Puts them into the keys that hold them.
    fn apply(self, config: &mut Config) -> Result<(), Problem> {
        let etrace = &mut config.etrace;
        let bus = self.bus(Parameter::ContextWidth, Parameter::Nocontext)?;
        let unused = &mut etrace.parameters.context_bus;
        place_bus(bus, &mut etrace.context_width, unused);
        let bus = self.bus(Parameter::TimeWidth, Parameter::Notime)?;
        let unused = &mut etrace.parameters.time_bus;
        place_bus(bus, &mut etrace.time_width, unused);
        for (parameter, value, origin) in self.0 {
            let itype = match value {
                _ if parameter != Parameter::ItypeWidth => None,
                3 => Some(ItypeWidth::Three),
                4 => Some(ItypeWidth::Four),
                _ => None,
            };
            match itype {
                Some(value) => config.ingress.itype_width = Some(Setting { value, origin }),
                None => put(config, parameter, value, origin),
            }
        }
        Ok(())
    }

    /// A bus with a parameter that excludes it from packets.
    fn bus(&self, width: Parameter, absent: Parameter) -> Result<Option<Bus>, Problem> {
        let (bits, flag) = (self.get(width), self.get(absent));
        let Some((.., origin)) = bits.or(flag) else {
            return Ok(None);
        };
        let flag = flag.map(|(_, value, _)| *value);
        let Some(flag) = flag.or_else(|| shared_default(absent)) else {
            let (width, absent) = (width.name(), absent.name());
            return Err(Problem::Invalid(format!(
                "`{width}` needs `{absent}`, whose default is not the same in all versions"
            )));
        };
        Ok(Some(Bus {
            bits: bits.map_or(1, |(_, bits, _)| *bits),
            absent: flag != 0,
            origin: origin.clone(),
        }))
    }
}

/// The default of a parameter if it is that of all versions.
fn shared_default(parameter: Parameter) -> Option<u8> {
    let default = parameter.default(Version::V2_0);
    (default == parameter.default(Version::V1_1_1)).then_some(default)
}

/// The width of a field, or that there is none; then the width of its bus.
fn place_bus(bus: Option<Bus>, field: &mut Option<Setting<u8>>, unused: &mut Option<Setting<u8>>) {
    let Some(bus) = bus else { return };
    let setting = |value| {
        let origin = bus.origin.clone();
        Some(Setting { value, origin })
    };
    *field = setting(if bus.absent { 0 } else { bus.bits });
    if bus.absent && bus.bits > 1 {
        *unused = setting(bus.bits);
    }
}

/// A value of a setting that stands for a parameter; a flag is 0 or 1.
trait Cell: Copy {
    fn of(number: u8) -> Self;
    fn number(self) -> u8;
}

impl Cell for u8 {
    fn of(number: u8) -> u8 {
        number
    }

    fn number(self) -> u8 {
        self
    }
}

impl Cell for bool {
    fn of(number: u8) -> bool {
        number != 0
    }

    fn number(self) -> u8 {
        self.into()
    }
}

/// The keys of parameters that have one each.
macro_rules! places {
    ($($variant:ident: $($key:ident).+;)+) => {
        fn put(config: &mut Config, parameter: Parameter, value: u8, origin: Origin) {
            match parameter {
                $(Parameter::$variant => {
                    let value = Cell::of(value);
                    config.$($key).+ = Some(Setting { value, origin });
                })+
                // Each with the bus it is about.
                Parameter::ContextWidth
                | Parameter::Nocontext
                | Parameter::TimeWidth
                | Parameter::Notime => {}
            }
        }

        fn said(config: &Config, parameter: Parameter) -> Option<u8> {
            match parameter {
                $(Parameter::$variant => {
                    config.$($key).+.as_ref().map(|setting| Cell::number(setting.value))
                })+
                _ => None,
            }
        }
    };
}

places! {
    Arch: etrace.parameters.arch;
    BpredSize: etrace.bpred_size;
    CacheSize: etrace.cache_size;
    CallCounterSize: etrace.call_counter_size;
    EcauseWidth: etrace.ecause_width;
    F0sWidth: etrace.f0s_width;
    IaddressLsb: etrace.iaddress_lsb;
    IaddressWidth: etrace.iaddress_width;
    PrivilegeWidth: etrace.privilege_width;
    ReturnStackSize: etrace.return_stack_size;
    Sijump: ingress.sijump;
    Comparators: etrace.parameters.comparators;
    Filters: etrace.parameters.filters;
    EcauseChoice: etrace.parameters.ecause_choice;
    FilterContext: etrace.parameters.filter_context;
    FilterTime: etrace.parameters.filter_time;
    FilterExcint: etrace.parameters.filter_excint;
    FilterPrivilege: etrace.parameters.filter_privilege;
    FilterTval: etrace.parameters.filter_tval;
    CtypeWidth: etrace.parameters.ctype_width;
    IlastsizeWidth: etrace.parameters.ilastsize_width;
    ItypeWidth: etrace.parameters.itype_bus;
    IretireWidth: etrace.parameters.iretire_width;
    Retires: etrace.parameters.retires;
    TakenBranches: etrace.parameters.taken_branches;
    ImpdefWidth: etrace.parameters.impdef_width;
    DaddressWidth: etrace.data.daddress_width;
    DblockWidth: etrace.parameters.dblock_width;
    DataWidth: etrace.data.data_width;
    DsizeWidth: etrace.parameters.dsize_width;
    DtypeWidth: etrace.parameters.dtype_width;
    IaddrLsbsWidth: etrace.parameters.iaddr_lsbs_width;
    LridWidth: etrace.data.lrid_width;
    LrespWidth: etrace.parameters.lresp_width;
    LdataWidth: etrace.parameters.ldata_width;
    SdataWidth: etrace.parameters.sdata_width;
    Version: etrace.parameters.version;
    MinorRevision: etrace.parameters.minor_revision;
    FilterImpdef: etrace.parameters.filter_impdef;
}

impl Config {
    /// Reads a text that is not TOML.
    pub(super) fn parse_form(text: &str, path: &Path, form: Form) -> Result<Config, ConfigError> {
        let path = Arc::from(path);
        let source = Source { text, path };
        match form {
            Form::Ipxact => ipxact::Description::read(text)?.values(&source),
            _ => pairs::read(&source),
        }
    }

    /// The settings in the two discovery registers. The fields are those of 9.2, or
    /// those of an IP-XACT description.
    ///
    /// # Errors
    ///
    /// A description that cannot be read, bits that belong to no field, and values
    /// that their parameters do not have.
    pub fn from_registers(
        registers: [u64; 2],
        description: Option<&str>,
    ) -> Result<Config, ConfigError> {
        let fields = match description {
            Some(text) => ipxact::Description::read(text)?.fields(),
            None => RegisterField::all().collect(),
        };
        let mut given = Given::default();
        let origin = Origin::Flag("--registers");
        let mut config = Config::default();
        let added = given.add_registers(Registers(registers), &fields, [origin.clone(), origin]);
        let applied = added.and_then(|()| given.apply(&mut config));
        applied.map_err(|problem| ConfigError {
            problem,
            span: 0..0,
        })?;
        Ok(config)
    }

    /// The parameters of the E-Trace encoder for a hart of this width.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together.
    pub fn parameters(&self, xlen: Xlen) -> Result<Parameters, ParameterError> {
        // Modes are no parameters, and need not be possible with them.
        let etrace = Etrace {
            implicit_return: None,
            branch_prediction: None,
            jump_target_cache: None,
            ..self.etrace.clone()
        };
        let settings = etrace.settings(xlen)?;
        let mut parameters = Parameters::of(&settings);
        if let Some(width) = &self.ingress.itype_width {
            parameters.itype_width = match width.value {
                ItypeWidth::Three => 3,
                ItypeWidth::Four => 4,
            };
        }
        for &parameter in Parameter::ALL {
            if let Some(value) = said(self, parameter) {
                parameters.set(parameter, value.into())?;
            }
        }
        let buses = &self.etrace.parameters;
        if let (true, Some(bits)) = (parameters.nocontext, &buses.context_bus) {
            parameters.context_width = bits.value;
        }
        if let (true, Some(bits)) = (parameters.notime, &buses.time_bus) {
            parameters.time_width = bits.value;
        }
        Ok(parameters)
    }

    /// The settings of the E-Trace encoder in one of the forms; TOML has all the
    /// others, too. Also gives what the form has no place for.
    ///
    /// # Errors
    ///
    /// Settings that do not make sense together, or that the form cannot hold.
    pub fn to_form(&self, form: Form, xlen: Xlen) -> Result<(String, Vec<String>), ParameterError> {
        let none = Vec::new();
        Ok(match form {
            Form::Toml => (self.to_toml(false), none),
            Form::Scf => {
                let parameters = self.parameters(xlen)?;
                let data = self.etrace.data.is_enabled();
                (pairs::write_scf(&parameters, self.version(), data), none)
            }
            Form::Ucf => pairs::write_ucf(&self.etrace.settings(xlen)?),
            Form::Ipxact | Form::Registers => {
                let parameters = self.parameters(xlen)?;
                let registers = Registers::pack(&parameters)?;
                let omitted = Registers::omitted(&parameters, self.version());
                let omitted = omitted.map(|parameter| parameter.name().to_owned());
                let text = match form {
                    Form::Ipxact => ipxact::write(registers),
                    _ => pairs::write_registers(registers),
                };
                (text, omitted.collect())
            }
        })
    }

    fn version(&self) -> Version {
        let version = self.etrace.version.as_ref();
        version.map_or(Version::default(), |setting| setting.value)
    }
}
