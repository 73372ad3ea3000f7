//! The functions of several programs, by address range.

mod shared;

use crate::context_names::ContextNames;
use crate::demangle::demangle;
use crate::elf::{Elf, ElfError, Place, Symbol};
use crate::program_code::ProgramCode;
use crate::symbols::Symbols;
use hartrace_flow::order;
use hartrace_flow::{Context, Image, Run, SpaceId, elf_bias};
use shared::Shared;
use std::collections::HashMap;

/// A function of a [`Functions`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub(crate) u32);

impl FunctionId {
    /// Its index in the table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, demangled; its address where the program has no name.
    pub name: String,
    /// Its symbol in the program, where that is another: a mangled name.
    symbol: Option<Box<str>>,
    /// First address.
    pub start: u64,
    /// Address after its last instruction; `start` where that is not known.
    pub end: u64,
}

impl Function {
    /// Its symbol in the program, not demangled.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.symbol.as_deref().unwrap_or(&self.name)
    }
}

/// Part of a function: code may be in several places.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    id: FunctionId,
}

/// The functions of any number of ELF files, each where it is loaded.
///
/// A function is a symbol of type `STT_FUNC`. One without a size ends where the
/// next begins. Code outside of these belongs to the label before it, global
/// labels before local ones: hand-written code often has no types. The part of a
/// function that a compiler moved away (`f.cold`) belongs to the function.
///
/// Code without any symbol has functions too: those that are called
/// ([`Functions::unnamed`]).
///
/// ```
/// use hartrace_analyze::Functions;
///
/// let mut functions = Functions::new();
/// assert_eq!(functions.of(0x1000), None);
/// let id = functions.unnamed(0x1000);
/// assert_eq!(functions.get(id).name, "0x1000");
/// assert_eq!(functions.unnamed(0x1000), id);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Functions {
    list: Vec<Function>,
    /// In order, without overlaps.
    ranges: Vec<Range>,
    unnamed: HashMap<u64, FunctionId>,
    /// Names of the contexts that functions run in.
    contexts: ContextNames,
    shared: Shared,
}

/// A symbol that names code.
struct Candidate<'a> {
    start: u64,
    end: u64,
    name: &'a str,
}

impl Functions {
    /// No functions.
    #[must_use]
    pub fn new() -> Functions {
        Functions::default()
    }

    /// Adds those of an ELF file; its lowest loaded address goes to `base`, or
    /// stays where the file says.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_elf(&mut self, file: &[u8], base: Option<u64>) -> Result<(), ElfError> {
        let bias = base.map_or(0, |base| elf_bias(file, base).unwrap_or(base));
        self.add_symbols(file, bias)
    }

    /// Adds those of an ELF file, or of a file that has only its symbols; `bias` is added to
    /// all addresses.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_symbols(&mut self, file: &[u8], bias: u64) -> Result<(), ElfError> {
        let ranges = self.add_functions(file, bias)?;
        self.ranges.extend(ranges);
        order::sort_by_key(&mut self.ranges, |range| range.start);
        Ok(())
    }

    /// Adds those of a program: of a file with its symbols and of one with its code, which may
    /// be the same. `bias` is added to all addresses. Several programs can have the same
    /// addresses, if they are those of different processes: see `Functions::look`.
    ///
    /// # Errors
    ///
    /// What is no ELF file for RISC-V.
    pub fn add_program(&mut self, symbols: &[u8], code: &[u8], bias: u64) -> Result<(), ElfError> {
        let code = ProgramCode::of(code, bias);
        if !self.shared.first.iter().any(|first| first.overlaps(&code)) {
            self.shared.first.push(code);
            return self.add_symbols(symbols, bias);
        }
        let mut ranges = self.add_functions(symbols, bias)?;
        order::sort_by_key(&mut ranges, |range| range.start);
        self.shared.add(ranges, code);
        Ok(())
    }

    /// Adds the functions of a file to the list; where they are.
    fn add_functions(&mut self, file: &[u8], bias: u64) -> Result<Vec<Range>, ElfError> {
        let (symbols, elf) = Symbols::from_parsed(Elf::parse(file)?);
        let mut ranges: Vec<(u64, u64, String)> = Vec::new();
        let sections = elf.sections.iter().enumerate();
        for (index, section) in sections.filter(|(_, s)| s.executable) {
            let end = section.address.saturating_add(section.size);
            let found = of_section(&symbols, index, (section.address, end));
            ranges.extend(
                found
                    .into_iter()
                    .map(|c| (c.start, c.end, c.name.to_owned())),
            );
        }
        let mut places = Vec::new();
        let mut by_name: HashMap<String, FunctionId> = HashMap::new();
        // A function before the part of it that was moved away.
        order::sort_by_key(&mut ranges, |(start, _, name)| {
            (name.contains(COLD), *start)
        });
        for (start, end, name) in ranges {
            let (start, end) = (start.wrapping_add(bias), end.wrapping_add(bias));
            let whole = name.split(COLD).next().unwrap_or(&name);
            let id = match by_name.get(whole).filter(|_| whole.len() < name.len()) {
                Some(&id) => id,
                None => {
                    let plain = demangle(&name);
                    let symbol = (plain != name).then(|| name.as_str().into());
                    self.push(Function {
                        name: plain,
                        symbol,
                        start,
                        end,
                    })
                }
            };
            by_name.entry(name).or_insert(id);
            places.push(Range { start, end, id });
        }
        Ok(places)
    }

    /// Whether programs share addresses, so that `Functions::look` is needed.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !self.shared.others.is_empty()
    }

    /// Decides which of several programs at the same addresses a run is of: the one that has
    /// the code that ran, or where several have it, the one that the context had before.
    /// Addresses are looked up in that program from then on.
    pub(crate) fn look(
        &mut self,
        context: Option<Context>,
        (image, space): (&Image, SpaceId),
        run: &Run,
    ) {
        self.shared.enter(context);
        self.shared.look(image, space, run);
    }

    /// Addresses are looked up in the program of this context.
    pub(crate) fn enter(&mut self, context: Option<Context>) {
        self.shared.enter(context);
    }

    /// A number for the program that is looked at, less than 16.
    #[inline]
    pub(crate) fn program(&self) -> u8 {
        self.shared.number
    }

    /// The functions among which an address is.
    fn ranges_at(&self, address: u64) -> &[Range] {
        self.shared.ranges(address).unwrap_or(&self.ranges)
    }

    /// Names the contexts that functions run in.
    pub fn name_contexts(&mut self, names: ContextNames) {
        self.contexts = names;
    }

    /// The names of the contexts that functions run in.
    #[must_use]
    pub fn contexts(&self) -> &ContextNames {
        &self.contexts
    }

    fn push(&mut self, function: Function) -> FunctionId {
        self.list.push(function);
        FunctionId((self.list.len() - 1) as u32)
    }

    /// The function an address is in.
    #[must_use]
    pub fn of(&self, address: u64) -> Option<FunctionId> {
        let ranges = self.ranges_at(address);
        let after = ranges.partition_point(|r| r.start <= address);
        let range = ranges.get(after.checked_sub(1)?)?;
        (address < range.end).then_some(range.id)
    }

    /// Whether two addresses, and all between them, are in the same function, or in
    /// none.
    pub(crate) fn is_one_function(&self, first: u64, last: u64) -> bool {
        let ranges = self.ranges_at(first);
        let place = |address| ranges.partition_point(|r| r.start <= address);
        let (one, other) = (place(first), place(last));
        one == other && self.of(first) == self.of(last)
    }

    /// The function that starts at an address without a symbol.
    pub fn unnamed(&mut self, address: u64) -> FunctionId {
        if let Some(&id) = self.unnamed.get(&address) {
            return id;
        }
        let id = self.push(Function {
            name: format!("{address:#x}"),
            symbol: None,
            start: address,
            end: address,
        });
        self.unnamed.insert(address, id);
        id
    }

    /// A function by its id, which is of this table.
    ///
    /// # Panics
    ///
    /// The id is of another table.
    #[must_use]
    #[allow(clippy::indexing_slicing)] // ids are made here
    pub fn get(&self, id: FunctionId) -> &Function {
        &self.list[id.index()]
    }

    /// A function by its id, if there is one.
    pub(crate) fn find(&self, id: FunctionId) -> Option<&Function> {
        self.list.get(id.index())
    }

    /// Every function with its id: those with symbols by file and address, then
    /// the others.
    pub fn iter(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        let numbered = self.list.iter().enumerate();
        numbered.map(|(at, function)| (FunctionId(at as u32), function))
    }

    /// The code of all functions with symbols: start, end and function, by address.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, FunctionId)> {
        self.ranges.iter().map(|r| (r.start, r.end, r.id))
    }

    /// Functions at these places, for tests.
    #[cfg(test)]
    pub(crate) fn testing(list: &[(u64, u64, &str)]) -> Functions {
        let mut functions = Functions::new();
        for &(start, end, name) in list {
            let name = name.to_owned();
            let id = functions.push(Function {
                name,
                symbol: None,
                start,
                end,
            });
            functions.ranges.push(Range { start, end, id });
        }
        order::sort_by_key(&mut functions.ranges, |range| range.start);
        functions
    }

    /// How many functions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Labels that name no code: an assembler's own, and that of all entries of a procedure
/// linkage table, each of which is called by itself.
const NOT_CODE: [&str; 2] = [".L0 ", "_PROCEDURE_LINKAGE_TABLE_"];

/// What compilers add to the name of the part of a function that seldom runs.
const COLD: &str = ".cold";

/// The functions of a section, by address and without overlaps.
fn of_section(symbols: &Symbols, section: usize, bounds: (u64, u64)) -> Vec<Candidate<'_>> {
    let is_own = |s: &Symbol| s.is_mapping() || NOT_CODE.contains(&s.name.as_ref());
    let here = |s: &&Symbol| s.place == Place::Section(section) && !is_own(s);
    let all: Vec<&Symbol> = symbols.all().iter().filter(here).collect();
    let typed = all.iter().filter(|s| s.is_function() || s.synthetic);
    let mut found = disjoint(typed.copied(), bounds);
    let is_label = |s: &&&Symbol| !s.is_function() && !s.is_object() && !s.synthetic;
    let holes = holes(&found, bounds);
    for (start, end) in holes {
        let inside = |s: &&&Symbol| s.value >= start && s.value < end;
        let labels = || all.iter().filter(is_label).filter(inside).copied();
        let global = |s: &&Symbol| s.bind != 0;
        match labels().any(|s| global(&s)) {
            true => found.extend(disjoint(labels().filter(global), (start, end))),
            false => found.extend(disjoint(labels(), (start, end))),
        }
    }
    order::sort_by_key(&mut found, |c| c.start);
    found
}

/// The parts of `bounds` that no candidate covers.
fn holes(found: &[Candidate<'_>], (start, end): (u64, u64)) -> Vec<(u64, u64)> {
    let mut holes = Vec::new();
    let mut at = start;
    for candidate in found {
        if candidate.start > at {
            holes.push((at, candidate.start));
        }
        at = at.max(candidate.end);
    }
    if at < end {
        holes.push((at, end));
    }
    holes
}

/// Ranges of symbols that come by address, the best of an address first. Where
/// two overlap, the one that starts later has the code.
fn disjoint<'a>(
    symbols: impl Iterator<Item = &'a Symbol>,
    (low, high): (u64, u64),
) -> Vec<Candidate<'a>> {
    let mut list: Vec<Candidate<'a>> = Vec::new();
    for symbol in symbols.filter(|s| s.value >= low && s.value < high) {
        let open = symbol.size == 0;
        if let Some(last) = list.last_mut() {
            if last.start == symbol.value {
                continue;
            }
            last.end = last.end.min(symbol.value);
        }
        let end = match open {
            true => high,
            false => symbol.value.saturating_add(symbol.size).min(high),
        };
        list.push(Candidate {
            start: symbol.value,
            end,
            name: &symbol.name,
        });
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::tests::elf;

    fn functions(path: &str, base: Option<u64>) -> Functions {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/");
        let file = std::fs::read([folder, path].concat()).unwrap();
        let mut functions = Functions::new();
        functions.add_elf(&file, base).unwrap();
        functions
    }

    #[test]
    fn functions_of_a_program() {
        let functions = functions("sieve/sieve-rv64gc.elf", None);
        let name = |address| {
            functions
                .of(address)
                .map(|id| functions.get(id).name.as_str())
        };
        assert_eq!(name(0x8000_0000), Some("_start"));
        assert_eq!(name(0x8000_004a), Some("_start"));
        assert_eq!(name(0x8000_004c), Some("handler"));
        // Two bytes of padding belong to none.
        assert_eq!(name(0x8000_0078), None);
        assert_eq!(name(0x8000_007a), Some("insertion_sort"));
        assert_eq!(name(0x8000_030c), Some("main"));
        // Data, and what is nowhere.
        assert_eq!((name(0x8000_0510), name(0)), (None, None));
        let mut at = 0;
        for (start, end, _) in functions.ranges() {
            assert!(at <= start && start < end);
            at = end;
        }
    }

    #[test]
    fn a_moved_program() {
        let functions = functions("sieve/sieve-rv32imac.elf", Some(0x4000_0000));
        let id = functions.of(0x4000_0000).unwrap();
        assert_eq!(functions.get(id).name, "_start");
        assert_eq!(functions.of(0x8000_0000), None);
    }

    /// Code before and after a function: global labels name it, or where there are none,
    /// local ones.
    #[test]
    fn labels_name_code_without_functions() {
        const FUNC: u8 = 0x12;
        const LOCAL: u8 = 0x00;
        const GLOBAL: u8 = 0x10;
        let file = elf(
            &[1, 0].repeat(0x20),
            &[
                ("one", 0x10000, 0, LOCAL, 1),
                ("two", 0x10008, 0, LOCAL, 1),
                ("f", 0x10010, 8, FUNC, 1),
                ("three", 0x10018, 0, LOCAL, 1),
                ("four", 0x10020, 0, GLOBAL, 1),
                ("five", 0x10030, 0, LOCAL, 1),
            ],
        );
        let mut functions = Functions::new();
        functions.add_elf(&file, None).unwrap();
        let found: Vec<_> = functions
            .ranges()
            .map(|(start, end, id)| (start, end, functions.get(id).name.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (0x10000, 0x10008, "one"),
                (0x10008, 0x10010, "two"),
                (0x10010, 0x10018, "f"),
                (0x10020, 0x10040, "four"),
            ]
        );
        assert_eq!(functions.of(0x10018), None);
    }

    /// Two programs at the same addresses, in two contexts.
    #[test]
    fn programs_are_known_by_their_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/");
        let read = |name: &str| std::fs::read([folder, name].concat()).unwrap();
        let (one, two) = (read("sieve/sieve-rv64gc.elf"), read("sort/sort-rv64gc.elf"));
        let mut image = Image::new();
        image.add_elf(SpaceId::FIRST, &one, None, None).unwrap();
        let other = image.add_space();
        image.add_elf(other, &two, None, None).unwrap();
        let mut functions = Functions::new();
        functions.add_program(&one, &one, 0).unwrap();
        assert!(!functions.is_shared());
        functions.add_program(&two, &two, 0).unwrap();
        assert!(functions.is_shared());
        let alone = |file: &[u8]| {
            let mut functions = Functions::new();
            functions.add_elf(file, None).unwrap();
            functions
        };
        let (first, second) = (alone(&one), alone(&two));
        let run = |start: u64| Run {
            start,
            end: start + 16,
            next: start + 16,
            insns: 4,
            exit: hartrace_flow::Exit::Stop,
            last: 4,
        };
        let name = |functions: &Functions, at: u64| {
            functions.of(at).map(|id| functions.get(id).name.clone())
        };
        // Where the programs differ, each is recognised, and its functions are found from
        // there on; contexts that run in turn keep theirs.
        let starts: Vec<u64> = second.ranges().map(|(start, ..)| start).collect();
        assert!(starts.len() > 5);
        let mut names = 0;
        for start in starts {
            for (context, space, own) in [(1, SpaceId::FIRST, &first), (2, other, &second)] {
                let context = Some(Context(context));
                functions.look(context, (&image, space), &run(start));
                assert_eq!(name(&functions, start), name(own, start), "{start:#x}");
                names += u32::from(name(&first, start) != name(&second, start));
            }
        }
        assert!(names > 5);
        functions.enter(Some(Context(1)));
        assert_eq!(functions.program(), 0);
        functions.enter(Some(Context(2)));
        assert_eq!(functions.program(), 1);
        // What is no code of either decides nothing.
        functions.look(Some(Context(3)), (&image, other), &run(0x1000));
        assert_eq!(functions.program(), 0);
    }

    #[test]
    fn code_between_functions() {
        let symbols = |value| Candidate {
            start: value,
            end: value + 0x10,
            name: "f",
        };
        let found = [symbols(0x10), symbols(0x20)];
        assert_eq!(holes(&found, (0, 0x40)), [(0, 0x10), (0x30, 0x40)]);
        assert_eq!(holes(&[], (4, 8)), [(4, 8)]);
    }
}
