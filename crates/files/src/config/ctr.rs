//! `[ctr]`: the implementation of control transfer records and its control
//! register settings.

use super::read::{Reader, Value, integer};
use super::section::{said, set, value};
use super::value::Named;
use super::write::quote;
use hartrace_ctr::{
    Config, ConfigError, Control, Ctr, Depths, KINDS, PredictorKind, RasCycles, Version,
};
use hartrace_isa::Xlen;
use std::fmt;

const VERSIONS: Named<Version> = &[("1.0", Version::V1_0), ("0.1.4", Version::V0_1_4)];
const PREDICTORS: Named<PredictorKind> = &[
    ("none", PredictorKind::None),
    ("not-taken", PredictorKind::NotTaken),
    ("bimodal", PredictorKind::Bimodal),
    ("gshare", PredictorKind::Gshare),
];
const RAS_CYCLES: Named<RasCycles> = &[
    ("accumulate", RasCycles::Accumulate),
    ("invalid", RasCycles::Invalid),
];

/// The default depth.
const DEPTH: u16 = 32;

section! {
    /// `[ctr]`. What is `None` is not said.
    Records = "[ctr]" {
        /// The register map.
        version: Version = (named VERSIONS);
        /// Depths that can be chosen.
        depths: Depths = (depths);
        /// Fields of the control registers that exist, beside those that must.
        fields: Control = (control);
        /// Whether records have a type.
        types: bool = (boolean);
        /// Whether records have mispredictions.
        mispredicts: bool = (boolean);
        /// Bits of the exponent of a cycle count, if cycles are counted.
        cycle_bits: Option<u8> = (cycle_bits);
        /// What cycle counts mean in RAS emulation.
        ras_cycles: RasCycles = (named RAS_CYCLES);
        /// Who says what was mispredicted.
        predictor: PredictorKind = (named PREDICTORS);
        /// The depth of records that are kept beside the hart.
        depth: u16 = (depth);
        /// What their control register is set to.
        control: Control = (control);
        /// Types that they record, in place of filters in `control`.
        record: Control = (kinds);
    }
}

/// Settings of `[ctr]` that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtrError {
    /// An implementation that the specification does not allow.
    Implementation(ConfigError),
    /// A depth that is not among the depths there are.
    Depth(u16),
    /// A field is set that there is not.
    Field(&'static str),
}

impl fmt::Display for CtrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CtrError::Implementation(error) => error.fmt(f),
            CtrError::Depth(depth) => write!(f, "depth {depth} is not among the `depths`"),
            CtrError::Field(name) => {
                write!(f, "`control` or `record` sets {name}, which does not exist")
            }
        }
    }
}

impl std::error::Error for CtrError {}

impl Reader {
    fn depth(&mut self, name: &'static str, value: &Value<'_>) -> Option<u16> {
        let depth = integer(value).and_then(|depth| u16::try_from(depth).ok());
        let depth = depth.filter(|depth| Depths::ALL.contains(*depth));
        depth.or_else(|| self.refuse(name, value, "one of 16, 32, 64, 128, 256"))
    }

    fn depths(&mut self, name: &'static str, value: &Value<'_>) -> Option<Depths> {
        let depths = self.list(name, value, "depths such as [16, 32]", Reader::depth)?;
        let one = |all: Depths, depth: u16| all.with(depth).unwrap_or(all);
        Some(depths.into_iter().fold(Depths::NONE, one))
    }

    /// A list of fields by their names in either version.
    fn control(&mut self, name: &'static str, value: &Value<'_>) -> Option<Control> {
        let fields = self.list(
            name,
            value,
            "fields such as [\"M\", \"RASEMU\"]",
            |r, n, v| {
                let text = v.get_ref().as_str().unwrap_or_default();
                Control::field(text).or_else(|| {
                    let names: Vec<&str> = Control::NAMES.iter().map(|(name, _)| *name).collect();
                    r.refuse(n, v, &format!("fields, which are {}", names.join(", ")))
                })
            },
        )?;
        Some(fields.into_iter().fold(Control::NONE, Control::with))
    }

    /// A list of types; they become filters.
    fn kinds(&mut self, name: &'static str, value: &Value<'_>) -> Option<Control> {
        let kinds = self.list(name, value, "types such as [\"direct-call\"]", |r, n, v| {
            r.one_of(n, v, &KINDS)
        })?;
        Some(Control::recording(kinds))
    }

    fn cycle_bits(&mut self, name: &'static str, value: &Value<'_>) -> Option<Option<u8>> {
        if value.get_ref().as_str() == Some("none") {
            return Some(None);
        }
        let bits = integer(value).filter(|bits| *bits <= 4);
        match bits {
            Some(bits) => Some(Some(bits as u8)),
            None => self.refuse(name, value, "a number from 0 to 4, or \"none\""),
        }
    }
}

fn depth(depth: &u16) -> String {
    depth.to_string()
}

fn depths(depths: &Depths) -> String {
    let all: Vec<String> = depths.iter().map(|depth| depth.to_string()).collect();
    format!("[{}]", all.join(", "))
}

fn control(control: &Control) -> String {
    let names: Vec<String> = control.names(Version::V1_0).map(quote).collect();
    format!("[{}]", names.join(", "))
}

fn kinds(filters: &Control) -> String {
    let name = |kind| KINDS.iter().find(|known| known.1 == kind);
    let names = filters.recorded().filter_map(name);
    let names: Vec<String> = names.map(|(name, _)| quote(name)).collect();
    format!("[{}]", names.join(", "))
}

fn cycle_bits(bits: &Option<u8>) -> String {
    bits.map_or_else(|| quote("none"), |bits| bits.to_string())
}

impl Records {
    /// What there is, defaults included.
    ///
    /// # Errors
    ///
    /// What the specification does not allow.
    pub fn implementation(&self, xlen: Xlen) -> Result<Config, CtrError> {
        let mut config = Config::new(value(&self.version, Version::default()), xlen);
        set(&mut config.depths, &self.depths);
        set(&mut config.fields, &self.fields);
        set(&mut config.types, &self.types);
        set(&mut config.mispredicts, &self.mispredicts);
        set(&mut config.cycles, &self.cycle_bits);
        set(&mut config.ras_cycles, &self.ras_cycles);
        config.validate().map_err(CtrError::Implementation)?;
        Ok(config)
    }

    /// Who says what was mispredicted.
    #[must_use]
    pub fn predictor(&self) -> PredictorKind {
        value(&self.predictor, PredictorKind::default())
    }

    /// The control register of records beside the hart.
    fn set_fields(&self) -> Control {
        let control = value(&self.control, Control::MODES);
        match &self.record {
            None => control,
            Some(filters) => {
                let old = Control::INHIBITS.with(Control::NTBREN);
                control.without(old).with(filters.value)
            }
        }
    }

    /// Records that are kept beside a hart, ready to record.
    ///
    /// # Errors
    ///
    /// What the specification does not allow, or settings that contradict each
    /// other.
    pub fn recorder(&self, xlen: Xlen) -> Result<Ctr, CtrError> {
        let config = self.implementation(xlen)?;
        let depth = match &self.depth {
            Some(depth) => depth.value,
            // The nearest available depth, if that one is left out.
            None => config
                .depths
                .iter()
                .rfind(|d| *d <= DEPTH)
                .unwrap_or(config.depths.least()),
        };
        if !config.depths.contains(depth) {
            return Err(CtrError::Depth(depth));
        }
        let wish = self.set_fields();
        let mut ctr = Ctr::new(config).map_err(CtrError::Implementation)?;
        ctr = ctr.with_predictor(self.predictor().build());
        ctr.set_depth(depth);
        ctr.set_control(wish, 0);
        match wish.without(ctr.control()).names(config.version).next() {
            Some(missing) => Err(CtrError::Field(missing)),
            None => Ok(ctr),
        }
    }

    /// Settings that are said and are of records beside the hart alone: those of
    /// a hart that has its own are set by the program.
    pub fn beside_only(&self) -> impl Iterator<Item = &'static str> {
        let said = [
            ("depth", self.depth.is_some()),
            ("control", self.control.is_some()),
            ("record", self.record.is_some()),
        ];
        said.into_iter()
            .filter(|(_, said)| *said)
            .map(|(key, _)| key)
    }

    /// What there is, with every such setting said, and nothing of what it is
    /// set to.
    ///
    /// # Errors
    ///
    /// As [`Records::implementation`].
    pub fn implemented(self, xlen: Xlen) -> Result<Records, CtrError> {
        let config = self.implementation(xlen)?;
        let predictor = self.predictor();
        let there = match config.version {
            Version::V0_1_4 => config.fields,
            Version::V1_0 => config.fields.without(Control::ETEN),
        };
        Ok(Records {
            version: said(self.version, config.version),
            depths: said(self.depths, config.depths),
            fields: said(self.fields, there),
            types: said(self.types, config.types),
            mispredicts: said(self.mispredicts, config.mispredicts),
            cycle_bits: said(self.cycle_bits, config.cycles),
            ras_cycles: said(self.ras_cycles, config.ras_cycles),
            predictor: said(self.predictor, predictor),
            depth: None,
            control: None,
            record: None,
        })
    }

    /// The same with every setting said.
    ///
    /// # Errors
    ///
    /// As [`Records::recorder`].
    pub fn completed(self, xlen: Xlen) -> Result<Records, CtrError> {
        let ctr = self.recorder(xlen)?;
        let set = self.clone();
        Ok(Records {
            depth: said(set.depth, ctr.depth()),
            control: said(set.control, Control::MODES),
            record: set.record,
            ..self.implemented(xlen)?
        })
    }
}

#[cfg(test)]
mod tests;
