//! Elements of state by name: what a trace does not record, or a verifier does
//! not compare.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::register::{REGISTERS, Register};

const WORDS: usize = REGISTERS.div_ceil(64);

/// A set of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers([u64; WORDS]);

impl Registers {
    /// None at all.
    pub const NONE: Registers = Registers([0; WORDS]);

    /// Adds a register.
    #[inline]
    pub fn insert(&mut self, register: Register) {
        let number = usize::from(register.number());
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// Takes a register out.
    #[inline]
    pub fn remove(&mut self, register: Register) {
        let number = usize::from(register.number());
        if let Some(word) = self.0.get_mut(number / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Whether a register is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, register: Register) -> bool {
        let number = usize::from(register.number());
        self.0
            .get(number / 64)
            .is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The registers in order.
    pub fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        self.0.iter().zip(0u16..).flat_map(|(&word, at)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Register::new(at * 64 + bit as u16)
            })
        })
    }

    fn holds_all(&self, (first, last): (u16, u16)) -> bool {
        (first..=last).all(|n| Register::new(n).is_some_and(|r| self.contains(r)))
    }
}

impl Default for Registers {
    fn default() -> Self {
        Registers::NONE
    }
}

/// Registers with a name together, by their numbers.
const CLASSES: [(&str, u16, u16); 3] = [
    ("csr", 0x0000, 0x0fff),
    ("gpr", 0x1000, 0x101f),
    ("fpr", 0x1020, 0x103f),
];

/// Pieces of state (3.2, "elements"). As text it is a list of names with
/// commas: registers (`a0`, `x10`, `fa0`, `mstatus`, `0x7c0`), all of a kind
/// (`gpr`, `fpr`, `csr`), `pc`, `priv`, `insn`, `store`, and with `trap.` in
/// front CSRs that only trap groups leave out (`trap.mstatus`, `trap.csr`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// Registers.
    pub registers: Registers,
    /// CSRs that are left out where a trap writes them.
    pub in_traps: Registers,
    /// The program counter.
    pub pc: bool,
    /// The privilege mode.
    pub mode: bool,
    /// The instruction.
    pub insn: bool,
    /// What stores write.
    pub stores: bool,
}

impl Elements {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Elements::default()
    }

    /// Adds what a name stands for.
    ///
    /// # Errors
    ///
    /// A name that stands for nothing.
    pub fn add(&mut self, name: &str) -> Result<(), UnknownElement> {
        let (set, name_in) = match name.strip_prefix("trap.") {
            Some(rest) => (&mut self.in_traps, rest),
            None => (&mut self.registers, name),
        };
        if let Some((_, first, last)) = CLASSES.iter().find(|(class, ..)| *class == name_in) {
            (*first..=*last)
                .filter_map(Register::new)
                .for_each(|register| set.insert(register));
        } else if let Some(register) = Register::from_name(name_in) {
            set.insert(register);
        } else {
            match name {
                "pc" => self.pc = true,
                "priv" => self.mode = true,
                "insn" => self.insn = true,
                "store" => self.stores = true,
                _ => return Err(UnknownElement(name.to_string())),
            }
        }
        Ok(())
    }

    /// The names, the shortest list there is.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (flag, name) in [
            (self.pc, "pc"),
            (self.mode, "priv"),
            (self.insn, "insn"),
            (self.stores, "store"),
        ] {
            if flag {
                names.push(name.to_string());
            }
        }
        for (set, prefix) in [(&self.registers, ""), (&self.in_traps, "trap.")] {
            let whole: Vec<_> = CLASSES
                .iter()
                .filter(|(_, first, last)| set.holds_all((*first, *last)))
                .collect();
            for (class, ..) in &whole {
                names.push([prefix, class].concat());
            }
            let inside = |register: &Register| {
                let number = register.number();
                whole.iter().any(|(_, a, b)| (*a..=*b).contains(&number))
            };
            for register in set.iter().filter(|register| !inside(register)) {
                let shown = register.to_string();
                let name = shown.strip_prefix("csr ").unwrap_or(&shown);
                names.push([prefix, name].concat());
            }
        }
        names
    }
}

impl FromStr for Elements {
    type Err = UnknownElement;

    fn from_str(text: &str) -> Result<Elements, UnknownElement> {
        let mut elements = Elements::default();
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            elements.add(name)?;
        }
        Ok(elements)
    }
}

impl fmt::Display for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

/// A name that stands for no element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownElement(pub String);

impl fmt::Display for UnknownElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not an element: use the name of a register, gpr, fpr, csr, pc, priv, insn, \
             store, or trap.NAME",
            self.0
        )
    }
}

impl core::error::Error for UnknownElement {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for text in [
            "",
            "pc,priv,insn,store",
            "mstatus,a0,fa0",
            "gpr",
            "fpr,csr",
            "csr,a0",
            "trap.mstatus,trap.0x7c0",
            "trap.csr",
        ] {
            let elements: Elements = text.parse().unwrap();
            let again: Elements = elements.to_string().parse().unwrap();
            assert_eq!(elements, again, "{text}");
        }
        let all: Elements = "csr,gpr,fpr".parse().unwrap();
        assert_eq!(all.names(), ["csr", "gpr", "fpr"]);
        assert_eq!(all.registers.iter().count(), REGISTERS);
    }

    #[test]
    fn unknown_names_are_refused() {
        for text in ["x32", "trap.pc", "mstatus,nothing"] {
            assert!(text.parse::<Elements>().is_err(), "{text}");
        }
    }
}
