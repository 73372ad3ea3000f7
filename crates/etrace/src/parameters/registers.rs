//! The two 64-bit registers of 9.2 that hold attributes.

use super::{Parameter, ParameterError, Parameters};
use crate::Version;

/// `discovery_info_0` and `discovery_info_1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers(pub [u64; 2]);

/// A field of the registers. It holds an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterField {
    /// The parameter of the attribute.
    pub parameter: Parameter,
    /// 0 or 1.
    pub register: u8,
    /// Its lowest bit.
    pub offset: u8,
    /// Its number of bits.
    pub width: u8,
}

/// The fields in the order of the registers, which have no gaps between them.
const FIELDS: [(&[(Parameter, u8)], u8); 2] = {
    use Parameter::*;
    [
        (
            &[
                (Version, 4),
                (MinorRevision, 4),
                (Arch, 4),
                (BpredSize, 4),
                (CacheSize, 4),
                (CallCounterSize, 3),
                (Comparators, 3),
                (CtypeWidth, 5),
                (ContextWidth, 5),
                (EcauseChoice, 3),
                (EcauseWidth, 4),
                (Filters, 4),
                (FilterContext, 1),
                (FilterExcint, 4),
                (FilterPrivilege, 1),
                (FilterTval, 1),
                (FilterImpdef, 1),
                (F0sWidth, 2),
                (IaddressLsb, 2),
            ],
            0,
        ),
        (
            &[
                (IaddressWidth, 7),
                (IlastsizeWidth, 7),
                (ItypeWidth, 7),
                (IretireWidth, 7),
                (Nocontext, 1),
                (PrivilegeWidth, 2),
                (Retires, 3),
                (ReturnStackSize, 4),
                (Sijump, 1),
                (TakenBranches, 4),
                (ImpdefWidth, 5),
            ],
            1,
        ),
    ]
};

impl RegisterField {
    /// Every field, as the example of 9.2 lists them.
    pub fn all() -> impl Iterator<Item = RegisterField> {
        FIELDS.into_iter().flat_map(|(fields, register)| {
            fields.iter().scan(0, move |at, &(parameter, width)| {
                let offset = *at;
                *at += width;
                Some(RegisterField {
                    parameter,
                    register,
                    offset,
                    width,
                })
            })
        })
    }

    /// Its name in the registers.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.parameter {
            Parameter::CtypeWidth => "context_type_width",
            other => other.name(),
        }
    }

    /// Its bits of its register.
    const fn mask(&self) -> u64 {
        let ones = match self.width {
            0 => 0,
            width @ 1..64 => (1 << width) - 1,
            _ => u64::MAX,
        };
        match self.offset {
            offset @ 0..64 => ones << offset,
            _ => 0,
        }
    }

    /// The parameter's value in these registers.
    ///
    /// # Errors
    ///
    /// A value that is out of range.
    pub fn read(&self, registers: Registers) -> Result<u8, ParameterError> {
        let [low, high] = registers.0;
        let word = if self.register == 0 { low } else { high };
        let bits = word & self.mask();
        let attribute = bits.checked_shr(self.offset.into()).unwrap_or(0);
        self.parameter.from_attribute(attribute)
    }

    /// Puts a value of the parameter into the registers, whose bits are 0 there.
    ///
    /// # Errors
    ///
    /// A value that the field cannot have.
    pub fn write(&self, registers: &mut Registers, value: u8) -> Result<(), ParameterError> {
        let [low, high] = &mut registers.0;
        let word = if self.register == 0 { low } else { high };
        let largest = self.mask().checked_shr(self.offset.into()).unwrap_or(0);
        match self.parameter.attribute(value).map(u64::from) {
            Some(attribute) if attribute <= largest => {
                *word |= attribute << self.offset;
                Ok(())
            }
            _ => {
                let less = self.parameter.less();
                let largest = u8::try_from(largest).unwrap_or(u8::MAX);
                Err(ParameterError::Field {
                    parameter: self.parameter,
                    value,
                    room: (less, largest.saturating_add(less)),
                })
            }
        }
    }
}

impl Registers {
    /// The attributes of these parameters.
    ///
    /// # Errors
    ///
    /// A value that its field cannot have.
    pub fn pack(parameters: &Parameters) -> Result<Registers, ParameterError> {
        let mut registers = Registers::default();
        for field in RegisterField::all() {
            field.write(&mut registers, parameters.get(field.parameter))?;
        }
        Ok(registers)
    }

    /// The parameters; those without a field have the default of the version.
    ///
    /// # Errors
    ///
    /// A value that is out of range, and bits that belong to no field.
    pub fn unpack(self, version: Version) -> Result<Parameters, ParameterError> {
        self.check_reserved(RegisterField::all())?;
        let mut parameters = Parameters::new(version);
        for field in RegisterField::all() {
            parameters.put(field.parameter, field.read(self)?);
        }
        Ok(parameters)
    }

    /// Checks that no bits are set besides those of these fields.
    ///
    /// # Errors
    ///
    /// Bits that belong to none of them.
    pub fn check_reserved(
        self,
        fields: impl Iterator<Item = RegisterField>,
    ) -> Result<(), ParameterError> {
        let mut left = self.0;
        for field in fields {
            let [low, high] = &mut left;
            *(if field.register == 0 { low } else { high }) &= !field.mask();
        }
        match left {
            [0, 0] => Ok(()),
            [0, bits] => Err(ParameterError::Reserved { register: 1, bits }),
            [bits, _] => Err(ParameterError::Reserved { register: 0, bits }),
        }
    }

    /// The parameters that have no field, but another value than the default.
    pub fn omitted(parameters: &Parameters, version: Version) -> impl Iterator<Item = Parameter> {
        let has_field = |p: &Parameter| RegisterField::all().any(|field| field.parameter == *p);
        let all = Parameter::ALL
            .iter()
            .copied()
            .filter(move |p| !has_field(p));
        all.filter(move |&p| parameters.get(p) != p.default(version))
    }
}
