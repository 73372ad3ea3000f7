//! The symbols of one program, looked up by address.

use crate::elf::{Dynamic, Elf, ElfError, Place, Symbol};
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::fmt;

/// The symbols of an ELF file by address. Among several at one address the
/// choice is objdump's: functions before data before the rest, then global
/// before local, the larger one, and at last the name.
///
/// ```
/// use hartrace_analyze::Symbols;
///
/// assert!(Symbols::from_elf(b"no ELF file").is_err());
/// assert_eq!(Symbols::default().lookup(0x1000), None);
/// ```
#[derive(Default)]
pub struct Symbols {
    /// Defined, named symbols in the order of [`order`].
    all: Vec<Symbol>,
    /// Indices of those that may be shown: all but mapping symbols and the
    /// assembler's own labels.
    shown: Vec<usize>,
    /// Indices of those that are functions.
    functions: Vec<usize>,
    by_section: HashMap<usize, Vec<usize>>,
    /// Mapping symbols, also by section.
    marks: HashMap<usize, Vec<usize>>,
    /// The dynamic table and the relocations against it.
    dynamic: Vec<Symbol>,
    relocs: Vec<Dynamic>,
    linked: bool,
}

const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const SECTION: u8 = 3;
const FILE: u8 = 4;
const COMMON: u8 = 5;

impl Symbol {
    fn is_debugging(&self) -> bool {
        matches!(self.kind, SECTION | FILE)
    }

    pub(crate) fn is_function(&self) -> bool {
        self.kind == FUNCTION
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, OBJECT | COMMON)
    }

    fn is_local(&self) -> bool {
        self.bind == 0 && self.is_defined()
    }

    fn is_global(&self) -> bool {
        (self.bind == 1 && self.is_defined()) || (self.synthetic && self.bind != 0)
    }

    fn is_defined(&self) -> bool {
        self.synthetic || !matches!(self.place, Place::Undefined | Place::Common)
    }

    /// `$x`, `$d`, `$xrv64gc...`: where code and data begin.
    pub(crate) fn is_mapping(&self) -> bool {
        self.name == "$x" || self.name == "$d" || self.name.starts_with("$xrv")
    }

    /// The name with its version.
    pub(crate) fn shown(&self) -> Shown<'_> {
        Shown(self)
    }
}

/// A name with its version.
pub(crate) struct Shown<'a>(&'a Symbol);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)?;
        f.write_str(&self.0.version)
    }
}

/// Names that say nothing about the code at their address.
fn rank_of_name(symbol: &Symbol) -> (bool, bool) {
    let name = &symbol.name;
    let compiler = name.contains("gnu_compiled") || name.contains("gcc2_compiled");
    let file =
        symbol.kind == FILE || name.len() > 2 && (name.ends_with(".o") || name.ends_with(".a"));
    (compiler, file)
}

/// A symbol and the rank of its name, which is looked for once: a million
/// symbols are compared twenty million times.
type Ranked = ((bool, bool), Symbol);

/// By address, and at one address the most telling first.
fn order((rank_a, a): &Ranked, (rank_b, b): &Ranked) -> Ordering {
    let key = |s: &Symbol| {
        (
            s.is_debugging(),
            s.kind == SECTION,
            !s.is_function(),
            !s.is_object(),
            s.is_local(),
            !s.is_global(),
            Reverse(if s.kind == SECTION || s.synthetic {
                0
            } else {
                s.size
            }),
            s.name.starts_with('.'),
        )
    };
    fn bytes(s: &Symbol) -> &[u8] {
        s.raw.as_deref().unwrap_or(s.name.as_bytes())
    }
    let first = (a.value, rank_a).cmp(&(b.value, rank_b));
    first
        .then_with(|| key(a).cmp(&key(b)))
        .then_with(|| bytes(a).cmp(bytes(b)))
}

impl Symbols {
    /// Reads the symbol table of an ELF file, or the dynamic one where the
    /// file has been stripped.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V. Broken tables are empty tables.
    pub fn from_elf(bytes: &[u8]) -> Result<Symbols, ElfError> {
        Ok(Symbols::from_parsed(Elf::parse(bytes)?).0)
    }

    /// The symbols, and the rest of the file without them.
    pub(crate) fn from_parsed(mut elf: Elf<'_>) -> (Symbols, Elf<'_>) {
        let kept = |s: &Symbol| {
            let significant = s.name.starts_with(".plt") || s.name.starts_with(".got");
            !s.name.is_empty() && (!s.is_debugging() || significant) && s.is_defined()
        };
        let all = std::mem::take(&mut elf.symbols).into_iter().filter(kept);
        let mut all: Vec<Ranked> = all.map(|s| (rank_of_name(&s), s)).collect();
        all.sort_by(order);
        let all: Vec<Symbol> = all.into_iter().map(|(_, s)| s).collect();
        let (mut shown, mut functions) = (Vec::new(), Vec::new());
        let mut by_section: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut marks: HashMap<usize, Vec<usize>> = HashMap::new();
        for (i, symbol) in all.iter().enumerate() {
            let lists = match symbol.is_mapping() {
                true => &mut marks,
                // The label of a paired relocation, not one of the program.
                false if symbol.name == ".L0 " => continue,
                false => {
                    shown.push(i);
                    functions.extend(symbol.is_function().then_some(i));
                    &mut by_section
                }
            };
            if let Place::Section(section) = symbol.place {
                lists.entry(section).or_default().push(i);
            }
        }
        let symbols = Symbols {
            all,
            shown,
            functions,
            by_section,
            marks,
            dynamic: std::mem::take(&mut elf.dynamic),
            relocs: std::mem::take(&mut elf.relocs),
            linked: elf.linked,
        };
        (symbols, elf)
    }

    /// The symbol at or before an address and the distance from it.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<(&str, u64)> {
        let symbol = self.at_or_before(&self.shown, address)?;
        Some((&symbol.name, address - symbol.value))
    }

    /// The function an address is in and the distance from its start. One
    /// without a size ends where the next begins.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(&str, u64)> {
        let symbol = self.at_or_before(&self.functions, address)?;
        let offset = address - symbol.value;
        (symbol.size == 0 || offset < symbol.size).then_some((&symbol.name, offset))
    }

    /// All symbols that may be shown, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        let symbols = self.shown.iter().filter_map(|&i| self.all.get(i));
        symbols.map(|s| (s.value, s.name.as_str()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every symbol, those not shown included.
    pub(crate) fn all(&self) -> &[Symbol] {
        &self.all
    }

    pub(crate) fn linked(&self) -> bool {
        self.linked
    }

    /// The shown symbols of a section, as indices into [`Symbols::all`].
    pub(crate) fn of_section(&self, section: usize) -> &[usize] {
        self.by_section.get(&section).map_or(&[], Vec::as_slice)
    }

    /// The mapping symbols of a section, by address.
    pub(crate) fn marks(&self, section: usize) -> impl Iterator<Item = &Symbol> {
        let list = self.marks.get(&section).map_or(&[][..], Vec::as_slice);
        list.iter().filter_map(|&i| self.all.get(i))
    }

    fn value(&self, index: usize) -> u64 {
        self.all.get(index).map_or(0, |s| s.value)
    }

    /// The first symbol of the last address not above `address`.
    fn at_or_before(&self, list: &[usize], address: u64) -> Option<&Symbol> {
        let end = list.partition_point(|&i| self.value(i) <= address);
        let last = self.value(*list.get(end.checked_sub(1)?)?);
        self.first_at(list, last)
    }

    fn first_at(&self, list: &[usize], address: u64) -> Option<&Symbol> {
        let start = list.partition_point(|&i| self.value(i) < address);
        let symbol = self.all.get(*list.get(start)?)?;
        (symbol.value == address).then_some(symbol)
    }

    /// The symbol objdump chooses for an address named by code in `section`.
    /// With `inside`, only symbols of that section count.
    pub(crate) fn near(&self, address: u64, section: usize, inside: bool) -> Option<&Symbol> {
        let here = self.of_section(section);
        let end = self.all.partition_point(|s| s.value <= address);
        let nearest = self.all.get(end.saturating_sub(1))?.value;
        if let Some(symbol) = self.first_at(here, nearest) {
            return Some(symbol);
        }
        let list = if inside { here } else { &self.shown };
        let symbol = match self.at_or_before(list, address) {
            Some(symbol) => self.first_at(here, symbol.value).unwrap_or(symbol),
            None => self.all.get(*list.first()?)?,
        };
        if inside || symbol.synthetic {
            return Some(symbol);
        }
        Some(self.relocated(address).unwrap_or(symbol))
    }

    /// The first shown symbol of a section above an address.
    pub(crate) fn after(&self, section: usize, address: u64) -> Option<&Symbol> {
        let list = self.of_section(section);
        let next = list.partition_point(|&i| self.value(i) <= address);
        self.all.get(*list.get(next)?)
    }

    /// The symbol a dynamic relocation will put at this address.
    fn relocated(&self, address: u64) -> Option<&Symbol> {
        let start = self.relocs.partition_point(|r| r.address < address);
        let here = self.relocs.get(start..)?.iter();
        here.take_while(|r| r.address == address)
            .filter_map(|r| self.dynamic.get(r.symbol?))
            .find(|s| s.place != Place::Absolute)
    }
}
