//! The parameters of an encoder and the attributes by which a decoder discovers
//! them (chapter 9).

mod registers;
mod settings;

use core::fmt;
use core::ops::RangeInclusive;

pub use registers::{RegisterField, Registers};

use crate::{ConfigError, Version};

/// The table that lists the attribute of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParameterTable {
    /// Table 9.2: a decoder needs them.
    Required,
    /// Table 9.3: filtering.
    Filtering,
    /// Table 9.4: other recommended attributes.
    Other,
    /// The table of data trace attributes (2.0).
    Data,
    /// None: a field of the registers of 9.2 only.
    Registers,
}

/// A value as it is in a file: a flag is 0 or 1.
trait Cell: Copy {
    fn number(self) -> u8;
    fn of(number: u8) -> Self;
}

impl Cell for u8 {
    fn number(self) -> u8 {
        self
    }

    fn of(number: u8) -> u8 {
        number
    }
}

impl Cell for bool {
    fn number(self) -> u8 {
        self.into()
    }

    fn of(number: u8) -> bool {
        number != 0
    }
}

/// Declares the parameters. A line has the name of the parameter without `_p`, its
/// type, its table, its range, how much less its attribute is, and its default in
/// 1.1.1-draft and from 2.0 on.
macro_rules! parameters {
    ($(
        $(#[$doc:meta])*
        $field:ident / $variant:ident: $type:ty,
        $table:ident, $from:literal to $to:literal, less $less:literal,
        default $draft:literal, $later:literal;
    )+) => {
        /// A parameter of an encoder.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Parameter { $($(#[$doc])* $variant,)+ }

        /// All parameters of an encoder, those of table 9.1 and those of data trace,
        /// under their names without `_p`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Parameters { $($(#[$doc])* pub $field: $type,)+ }

        impl Parameter {
            /// Every parameter, in the order of the tables.
            pub const ALL: &[Parameter] = &[$(Parameter::$variant),+];

            /// Its name without `_p`, which is that of its attribute.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Parameter::$variant => stringify!($field),)+ }
            }

            /// Where its attribute is listed.
            #[must_use]
            pub const fn table(self) -> ParameterTable {
                match self { $(Parameter::$variant => ParameterTable::$table,)+ }
            }

            /// What it may be.
            #[must_use]
            pub const fn range(self) -> RangeInclusive<u8> {
                match self { $(Parameter::$variant => $from..=$to,)+ }
            }

            /// The value that a decoder assumes if it is not discoverable.
            #[must_use]
            pub const fn default(self, version: Version) -> u8 {
                match (self, version.is_draft()) {
                    $((Parameter::$variant, true) => $draft,
                    (Parameter::$variant, false) => $later,)+
                }
            }

            /// By how much its attribute is less: 1 for most widths and numbers.
            const fn less(self) -> u8 {
                match self { $(Parameter::$variant => $less,)+ }
            }
        }

        impl Parameters {
            /// The value of one of them; a flag is 0 or 1.
            #[must_use]
            pub fn get(&self, parameter: Parameter) -> u8 {
                match parameter { $(Parameter::$variant => self.$field.number(),)+ }
            }

            fn put(&mut self, parameter: Parameter, value: u8) {
                match parameter { $(Parameter::$variant => self.$field = Cell::of(value),)+ }
            }

            /// The defaults of a version: an encoder of which nothing can be
            /// discovered.
            #[must_use]
            pub fn new(version: Version) -> Parameters {
                Parameters {
                    $($field: Cell::of(Parameter::$variant.default(version)),)+
                }
            }
        }
    };
}

parameters! {
    /// Version of the architecture specification; 0 for the first.
    arch / Arch: u8, Required, 0 to 15, less 0, default 0, 0;
    /// The branch predictor has 2 to the power of this entries; 0 for none.
    bpred_size / BpredSize: u8, Required, 0 to 15, less 0, default 0, 0;
    /// The jump target cache has 2 to the power of this entries; 0 for none.
    cache_size / CacheSize: u8, Required, 0 to 15, less 0, default 0, 0;
    /// Bits of the call counter; 0 for none.
    call_counter_size / CallCounterSize: u8, Required, 0 to 15, less 0, default 0, 0;
    /// Width of the context bus.
    context_width / ContextWidth: u8, Required, 1 to 64, less 1, default 1, 1;
    /// Width of the time bus (2.0).
    time_width / TimeWidth: u8, Required, 1 to 64, less 1, default 1, 1;
    /// Width of the exception cause bus.
    ecause_width / EcauseWidth: u8, Required, 1 to 64, less 1, default 4, 4;
    /// Width of `subformat` in packets of format 0.
    f0s_width / F0sWidth: u8, Required, 0 to 2, less 0, default 0, 0;
    /// Lowest bit of an instruction address that is traced. The texts know 1 and 2;
    /// the reference models also have 0, which no attribute can say.
    iaddress_lsb / IaddressLsb: u8, Required, 0 to 2, less 1, default 1, 1;
    /// Width of the instruction address bus.
    iaddress_width / IaddressWidth: u8, Required, 8 to 64, less 1, default 32, 32;
    /// Packets have no context.
    nocontext / Nocontext: bool, Required, 0 to 1, less 0, default 0, 1;
    /// Packets have no time (2.0).
    notime / Notime: bool, Required, 0 to 1, less 0, default 1, 1;
    /// Width of the privilege bus.
    privilege_width / PrivilegeWidth: u8, Required, 1 to 4, less 1, default 3, 2;
    /// The return stack has 2 to the power of this entries; 0 for none.
    return_stack_size / ReturnStackSize: u8, Required, 0 to 15, less 0, default 0, 0;
    /// The hart identifies sequentially inferable jumps.
    sijump / Sijump: bool, Required, 0 to 1, less 0, default 0, 0;

    /// Number of comparators.
    comparators / Comparators: u8, Filtering, 1 to 8, less 1, default 1, 1;
    /// Number of filters.
    filters / Filters: u8, Filtering, 1 to 16, less 1, default 1, 1;
    /// Bits of the exception cause that are matched by multiple choice.
    ecause_choice / EcauseChoice: u8, Filtering, 0 to 7, less 0, default 5, 5;
    /// Filters can match the context.
    filter_context / FilterContext: bool, Filtering, 0 to 1, less 0, default 1, 1;
    /// Filters can match the time (2.0).
    filter_time / FilterTime: bool, Filtering, 0 to 1, less 0, default 1, 1;
    /// Filters can match causes and interrupts, with 2 to the power of this nested
    /// exceptions; 0 for none.
    filter_excint / FilterExcint: u8, Filtering, 0 to 15, less 0, default 1, 1;
    /// Filters can match the privilege mode.
    filter_privilege / FilterPrivilege: bool, Filtering, 0 to 1, less 0, default 1, 1;
    /// Filters can match the trap value, where `filter_excint` is not 0.
    filter_tval / FilterTval: bool, Filtering, 0 to 1, less 0, default 1, 1;

    /// Width of `ctype`.
    ctype_width / CtypeWidth: u8, Other, 1 to 32, less 1, default 2, 1;
    /// Width of `ilastsize`.
    ilastsize_width / IlastsizeWidth: u8, Other, 1 to 128, less 1, default 1, 1;
    /// Width of `itype`.
    itype_width / ItypeWidth: u8, Other, 3 to 128, less 1, default 5, 4;
    /// Width of `iretire`.
    iretire_width / IretireWidth: u8, Other, 1 to 128, less 1, default 3, 2;
    /// Largest number of instructions in a block.
    retires / Retires: u8, Other, 1 to 255, less 1, default 1, 1;
    /// How often `iretire`, `itype` and the like are replicated (2.0: `blocks`).
    taken_branches / TakenBranches: u8, Other, 1 to 255, less 1, default 1, 1;
    /// Width of `impdef`.
    impdef_width / ImpdefWidth: u8, Other, 1 to 255, less 1, default 1, 1;

    /// Width of `daddress`.
    daddress_width / DaddressWidth: u8, Data, 8 to 64, less 1, default 32, 32;
    /// Width of `dblock`.
    dblock_width / DblockWidth: u8, Data, 1 to 255, less 1, default 1, 1;
    /// Width of `data`.
    data_width / DataWidth: u8, Data, 8 to 64, less 1, default 32, 32;
    /// Width of `dsize`.
    dsize_width / DsizeWidth: u8, Data, 1 to 255, less 1, default 3, 3;
    /// Width of `dtype`.
    dtype_width / DtypeWidth: u8, Data, 1 to 255, less 1, default 1, 1;
    /// Width of `iaddr_lsbs`.
    iaddr_lsbs_width / IaddrLsbsWidth: u8, Data, 1 to 255, less 1, default 1, 1;
    /// Width of `lrid`.
    lrid_width / LridWidth: u8, Data, 1 to 8, less 1, default 1, 1;
    /// Width of `lresp`.
    lresp_width / LrespWidth: u8, Data, 1 to 255, less 1, default 1, 1;
    /// Width of `ldata`.
    ldata_width / LdataWidth: u8, Data, 1 to 255, less 1, default 32, 32;
    /// Width of `sdata`.
    sdata_width / SdataWidth: u8, Data, 1 to 255, less 1, default 32, 32;

    /// Version of the registers.
    version / Version: u8, Registers, 0 to 15, less 0, default 0, 0;
    /// Minor revision of the registers.
    minor_revision / MinorRevision: u8, Registers, 0 to 15, less 0, default 0, 0;
    /// Filters can match `impdef`.
    filter_impdef / FilterImpdef: bool, Registers, 0 to 1, less 0, default 0, 0;
}

/// Other names of parameters: of 2.0, and in the registers of 9.2.
const ALIASES: [(&str, Parameter); 2] = [
    ("blocks", Parameter::TakenBranches),
    ("context_type_width", Parameter::CtypeWidth),
];

impl Parameter {
    /// The parameter of this name, with or without `_p`, or that of the attribute or
    /// register field of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Parameter> {
        let name = name.strip_suffix("_p").unwrap_or(name);
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let named = || Parameter::ALL.iter().find(|p| p.name() == name).copied();
        alias.map(|(_, parameter)| *parameter).or_else(named)
    }

    /// The attribute of a value; `None` if no attribute has this value.
    #[must_use]
    pub const fn attribute(self, value: u8) -> Option<u8> {
        value.checked_sub(self.less())
    }

    /// The value of an attribute.
    ///
    /// # Errors
    ///
    /// A value that is out of range.
    pub const fn from_attribute(self, attribute: u64) -> Result<u8, ParameterError> {
        self.checked(attribute.saturating_add(self.less() as u64))
    }

    /// A value that it may have.
    ///
    /// # Errors
    ///
    /// A value that is out of range.
    pub const fn checked(self, value: u64) -> Result<u8, ParameterError> {
        let range = self.range();
        if value < *range.start() as u64 || value > *range.end() as u64 {
            return Err(ParameterError::Range {
                parameter: self,
                value,
            });
        }
        Ok(value as u8)
    }
}

/// The name with `_p`, as in table 9.1.
impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_p", self.name())
    }
}

impl Parameters {
    /// Sets one of them; a flag is 0 or 1.
    ///
    /// # Errors
    ///
    /// A value that is out of range.
    pub fn set(&mut self, parameter: Parameter, value: u64) -> Result<(), ParameterError> {
        self.put(parameter, parameter.checked(value)?);
        Ok(())
    }

    /// Whether an encoder can have these.
    ///
    /// # Errors
    ///
    /// The first that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ParameterError> {
        for &parameter in Parameter::ALL {
            parameter.checked(self.get(parameter).into())?;
        }
        if self.bpred_size > 0 && self.cache_size > 0 && self.f0s_width == 0 {
            return Err(ConfigError::F0sNeeded.into());
        }
        Ok(())
    }
}

/// Parameters that no encoder can have, or that have no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParameterError {
    /// A value that is out of range.
    Range {
        /// The parameter.
        parameter: Parameter,
        /// Its value.
        value: u64,
    },
    /// A value that the field of a register cannot have.
    Field {
        /// The parameter.
        parameter: Parameter,
        /// Its value.
        value: u8,
        /// The smallest and the largest value that the field can have.
        room: (u8, u8),
    },
    /// Bits of a register that no field has.
    Reserved {
        /// The register.
        register: u8,
        /// Those of the bits that are set.
        bits: u64,
    },
    /// Settings that follow from the parameters and do not make sense.
    Config(ConfigError),
}

impl From<ConfigError> for ParameterError {
    fn from(error: ConfigError) -> ParameterError {
        ParameterError::Config(error)
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ParameterError::Range { parameter, value } => {
                let range = parameter.range();
                let (from, to) = (range.start(), range.end());
                write!(f, "{parameter} must be {from} to {to}, not {value}")
            }
            ParameterError::Field {
                parameter,
                value,
                room: (from, to),
            } => write!(
                f,
                "{parameter} = {value} does not fit its register field, which holds {from} to {to}"
            ),
            ParameterError::Reserved { register, bits } => write!(
                f,
                "bits {bits:#x} of discovery_info_{register} are set, but belong to no field"
            ),
            ParameterError::Config(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ParameterError {}
