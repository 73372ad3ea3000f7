//! Where instructions come from as compilers name it: functions, inlined ones among them,
//! and lines counted from the first line of each. From DWARF.

use crate::lines::dwarf;
use addr2line::gimli::constants as dw;
use addr2line::gimli::{
    self, AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian,
};
use hartrace_flow::elf_bias;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

type Slice<'f> = EndianSlice<'f, LittleEndian>;
type Dwarf<'f> = gimli::Dwarf<Slice<'f>>;
type Unit<'f> = gimli::Unit<Slice<'f>>;
type Entry<'f> = DebuggingInformationEntry<Slice<'f>>;

/// Ranges of code that are read at most: a file may name the same list again and again.
const MOST_RANGES: usize = 1 << 23;

/// References from one entry to another that are followed.
const MOST_HOPS: usize = 8;

/// A place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePoint<'s> {
    /// The symbol of the function, not demangled.
    pub function: &'s str,
    /// Where in it; `None` for code that comes from no line.
    pub place: Option<LinePlace>,
    /// How many copies the compiler made of the code, as in an unrolled loop: the line was
    /// executed that many times as often.
    pub copies: u32,
}

/// A line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    /// Lines after the one in which the function is declared, modulo 2^16.
    pub offset: u32,
    /// Tells code of one line apart; 0 for the first.
    pub discriminator: u32,
}

/// As LLVM spells it: `12`, or `12.3` with a discriminator.
impl fmt::Display for LinePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.offset)?;
        match self.discriminator {
            0 => Ok(()),
            discriminator => write!(f, ".{discriminator}"),
        }
    }
}

/// A function, or a function that was inlined into another.
#[derive(Debug)]
struct Scope {
    /// Its entry, or the one that has its name.
    entry: usize,
    /// Where it was inlined.
    call_line: u32,
    call_discriminator: u32,
    ranges: Vec<(u64, u64)>,
    inlined: Vec<usize>,
}

/// What is known of the entry of a function.
#[derive(Debug, Default)]
struct Declared {
    name: Option<String>,
    linkage_name: Option<String>,
    line: Option<u32>,
    /// Other entries that may know more.
    origins: [Option<usize>; 2],
}

/// The symbol of a function, and the line of its declaration.
#[derive(Debug)]
struct Named {
    symbol: String,
    line: u32,
}

/// The code of a line: from one address to another.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    end: u64,
    line: u32,
    discriminator: u32,
}

/// The functions and lines of an ELF file.
#[derive(Debug, Default)]
pub struct Scopes {
    scopes: Vec<Scope>,
    /// Functions that were not inlined, by address.
    functions: Vec<(u64, u64, usize)>,
    names: FxHashMap<usize, Named>,
    rows: Vec<Row>,
    bias: u64,
}

impl Scopes {
    /// Those of an ELF file, whose lowest loaded address goes to `base`, or stays where
    /// the file says; `None` if it has no debugging information that can be read.
    #[must_use]
    pub fn from_elf(file: &[u8], base: Option<u64>) -> Option<Scopes> {
        let dwarf = dwarf(file)?;
        let mut reader = Reader {
            scopes: Scopes {
                bias: base.map_or(0, |base| elf_bias(file, base).unwrap_or(base)),
                ..Scopes::default()
            },
            ..Reader::default()
        };
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            if let Ok(unit) = dwarf.unit(header) {
                reader.unit(&dwarf, &unit);
            }
        }
        Some(reader.finish())
    }

    /// The functions that an instruction belongs to, the outermost first, each with the
    /// place in it: that of the call for all but the last. Empty if it is not known.
    pub fn at<'s>(&'s self, address: u64, out: &mut Vec<SourcePoint<'s>>) {
        out.clear();
        let address = address.wrapping_sub(self.bias);
        let Some(mut scope) = self.function(address) else {
            return;
        };
        let row = self.row(address).map(|row| (row.line, row.discriminator));
        loop {
            let inner = scope.inlined.iter().filter_map(|at| self.scopes.get(*at));
            let inner = inner.into_iter().find(|inner| inner.has(address));
            let place = match inner {
                Some(inner) => Some((inner.call_line, inner.call_discriminator)),
                None => row,
            };
            let Some(named) = self.names.get(&scope.entry) else {
                out.clear();
                return;
            };
            out.push(SourcePoint {
                function: &named.symbol,
                place: place.map(|(line, discriminator)| LinePlace {
                    offset: line.wrapping_sub(named.line) & 0xffff,
                    discriminator: base_discriminator(discriminator),
                }),
                copies: place.map_or(1, |(_, discriminator)| copies(discriminator)),
            });
            match inner {
                Some(inner) => scope = inner,
                None => return,
            }
        }
    }

    /// The function that starts at an address.
    #[must_use]
    pub fn starts_at(&self, address: u64) -> Option<&str> {
        let address = address.wrapping_sub(self.bias);
        let (_, scope) = self
            .range(address)
            .filter(|((start, _), _)| *start == address)?;
        Some(&self.names.get(&scope.entry)?.symbol)
    }

    /// Whether two addresses are in one function.
    #[must_use]
    pub fn is_one_function(&self, one: u64, other: u64) -> bool {
        let of = |address: u64| self.function(address.wrapping_sub(self.bias));
        match (of(one), of(other)) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            _ => false,
        }
    }

    /// The code of the function that an address is in: ranges of addresses.
    #[must_use]
    pub fn code(&self, address: u64) -> Vec<(u64, u64)> {
        let address = address.wrapping_sub(self.bias);
        let ranges = self.function(address).map(|scope| scope.ranges.as_slice());
        let moved = |(start, end): &(u64, u64)| {
            let here = |at: u64| at.wrapping_add(self.bias);
            (here(*start), here(*end))
        };
        ranges.unwrap_or_default().iter().map(moved).collect()
    }

    fn range(&self, address: u64) -> Option<((u64, u64), &Scope)> {
        let after = self
            .functions
            .partition_point(|(start, ..)| *start <= address);
        let (start, end, at) = *self.functions.get(after.checked_sub(1)?)?;
        let scope = self.scopes.get(at).filter(|_| address < end)?;
        Some(((start, end), scope))
    }

    fn function(&self, address: u64) -> Option<&Scope> {
        self.range(address).map(|(_, scope)| scope)
    }

    fn row(&self, address: u64) -> Option<Row> {
        let after = self.rows.partition_point(|row| row.start <= address);
        let row = *self.rows.get(after.checked_sub(1)?)?;
        (address < row.end && row.line > 0).then_some(row)
    }
}

impl Scope {
    fn has(&self, address: u64) -> bool {
        let inside = |&(start, end): &(u64, u64)| start <= address && address < end;
        self.ranges.iter().any(inside)
    }
}

/// The first of the numbers that LLVM packs in a discriminator: it tells the blocks of a
/// line apart.
const fn base_discriminator(packed: u32) -> u32 {
    if packed & 1 != 0 {
        return 0;
    }
    let value = packed >> 1;
    match value & 0x20 {
        0 => value & 0x1f,
        _ => (value >> 1) & 0xfe0 | value & 0x1f,
    }
}

/// The second one: how many copies there are of the code.
const fn copies(packed: u32) -> u32 {
    let rest = match packed & 1 {
        1 => packed >> 1,
        _ if packed & 0x40 != 0 => packed >> 14,
        _ => packed >> 7,
    };
    match base_discriminator(rest) {
        0 => 1,
        copies => copies,
    }
}

#[derive(Default)]
struct Reader {
    scopes: Scopes,
    declared: FxHashMap<usize, Declared>,
    programs: FxHashSet<usize>,
    ranges: usize,
}

impl Reader {
    fn unit<'f>(&mut self, dwarf: &Dwarf<'f>, unit: &Unit<'f>) {
        let mut entries = unit.entries();
        // Functions that the entry is in, each with its depth.
        let mut outer: Vec<(isize, usize)> = Vec::new();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth();
            while outer.last().is_some_and(|(above, _)| *above >= depth) {
                outer.pop();
            }
            let is_inlined = match entry.tag() {
                dw::DW_TAG_subprogram => false,
                dw::DW_TAG_inlined_subroutine => true,
                _ => continue,
            };
            if let Some(offset) = global(unit, entry.offset().0) {
                let declared = declared(dwarf, unit, entry);
                self.declared.insert(offset, declared);
                let parent = outer.last().map(|(_, at)| *at);
                if let Some(at) = self.scope((dwarf, unit, entry), offset) {
                    outer.push((depth, at));
                    match parent.filter(|_| is_inlined) {
                        Some(parent) => {
                            let parent = self.scopes.scopes.get_mut(parent);
                            parent.into_iter().for_each(|p| p.inlined.push(at));
                        }
                        None if is_inlined => {}
                        None => self.function(at),
                    }
                }
            }
        }
        self.rows(unit);
    }

    /// A function that has code.
    fn scope<'f>(
        &mut self,
        (dwarf, unit, entry): (&Dwarf<'f>, &Unit<'f>, &Entry<'f>),
        offset: usize,
    ) -> Option<usize> {
        let mut found = dwarf.die_ranges(unit, entry).ok()?;
        let mut ranges = Vec::new();
        while let Ok(Some(range)) = found.next()
            && self.ranges < MOST_RANGES
        {
            self.ranges += 1;
            // Linkers leave code that they remove at 0.
            if range.begin > 0 && range.begin < range.end {
                ranges.push((range.begin, range.end));
            }
        }
        if ranges.is_empty() {
            return None;
        }
        let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
        let discriminator = number(dw::DW_AT_GNU_discriminator).unwrap_or(0);
        self.scopes.scopes.push(Scope {
            entry: offset,
            call_line: number(dw::DW_AT_call_line).unwrap_or(0) as u32,
            call_discriminator: discriminator as u32,
            ranges,
            inlined: Vec::new(),
        });
        Some(self.scopes.scopes.len() - 1)
    }

    fn function(&mut self, at: usize) {
        let scope = self.scopes.scopes.get(at);
        let ranges = scope.map_or(&[][..], |scope| &scope.ranges);
        let ranges = ranges.iter().map(|(start, end)| (*start, *end, at));
        self.scopes.functions.extend(ranges);
    }

    /// The lines of a unit. Several units may share them.
    fn rows(&mut self, unit: &Unit<'_>) {
        let Some(program) = unit.line_program.clone() else {
            return;
        };
        if !self.programs.insert(program.header().offset().0) {
            return;
        }
        let mut rows = program.rows();
        let mut before: Option<Row> = None;
        while let Ok(Some((_, row))) = rows.next_row() {
            let last = before.take();
            if let Some(last) = last.filter(|last| last.start > 0 && last.start < row.address()) {
                let end = row.address();
                self.scopes.rows.push(Row { end, ..last });
            }
            if !row.end_sequence() {
                before = Some(Row {
                    start: row.address(),
                    end: 0,
                    line: row.line().map_or(0, |line| line.get() as u32),
                    discriminator: row.discriminator() as u32,
                });
            }
        }
    }

    fn finish(self) -> Scopes {
        let mut scopes = self.scopes;
        scopes.functions.sort_unstable();
        scopes.rows.sort_by_key(|row| row.start);
        let entries: FxHashSet<usize> = scopes.scopes.iter().map(|scope| scope.entry).collect();
        for entry in entries {
            if let Some(named) = resolve(&self.declared, entry) {
                scopes.names.insert(entry, named);
            }
        }
        scopes
    }
}

/// The place of an entry among those of all units.
fn global(unit: &Unit<'_>, offset: usize) -> Option<usize> {
    let offset = gimli::UnitOffset(offset);
    Some(offset.to_debug_info_offset(&unit.header)?.0)
}

fn declared<'f>(dwarf: &Dwarf<'f>, unit: &Unit<'f>, entry: &Entry<'f>) -> Declared {
    let text = |name| {
        let text = dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    let origin = |name| match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => global(unit, offset.0),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    };
    let linkage_name = text(dw::DW_AT_linkage_name);
    let line = entry.attr_value(dw::DW_AT_decl_line);
    Declared {
        name: text(dw::DW_AT_name),
        linkage_name: linkage_name.or_else(|| text(dw::DW_AT_MIPS_linkage_name)),
        line: line.and_then(|value| Some(value.udata_value()? as u32)),
        origins: [
            origin(dw::DW_AT_abstract_origin),
            origin(dw::DW_AT_specification),
        ],
    }
}

/// The symbol and the line of an entry, or of those that it refers to.
fn resolve(declared: &FxHashMap<usize, Declared>, entry: usize) -> Option<Named> {
    let (mut name, mut linkage, mut line) = (None, None, None);
    let mut next = Some(entry);
    for _ in 0..MOST_HOPS {
        let Some(known) = next.and_then(|entry| declared.get(&entry)) else {
            break;
        };
        name = name.or(known.name.as_ref());
        linkage = linkage.or(known.linkage_name.as_ref());
        line = line.or(known.line);
        next = known.origins.into_iter().flatten().next();
    }
    Some(Named {
        symbol: linkage.or(name)?.clone(),
        // Functions of assemblers have none.
        line: line.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/recursion/");
        std::fs::read([folder, "recursion-rv64gc.elf"].concat()).unwrap()
    }

    fn points(scopes: &Scopes, address: u64) -> Vec<(String, Option<String>)> {
        let mut points = Vec::new();
        scopes.at(address, &mut points);
        let spell = |p: &SourcePoint<'_>| {
            (
                p.function.to_owned(),
                p.place.map(|place| place.to_string()),
            )
        };
        points.iter().map(spell).collect()
    }

    /// `ackermann` is at 0x80000652, and `enter`, which has three lines, is inlined in it.
    #[test]
    fn inlined_functions_and_their_lines() {
        let file = file();
        let scopes = Scopes::from_elf(&file, None).unwrap();
        assert_eq!(scopes.starts_at(0x8000_0652), Some("ackermann"));
        assert_eq!(scopes.starts_at(0x8000_0654), None);
        let code = scopes.code(0x8000_0660);
        let all: Vec<_> = (code[0].0..code[0].1)
            .step_by(2)
            .map(|pc| points(&scopes, pc))
            .collect();
        assert!(all.iter().all(|path| path[0].0 == "ackermann"));
        let inlined = all.iter().find(|path| path.len() == 2).unwrap();
        assert_eq!(inlined[1].0, "enter");
        assert!(scopes.is_one_function(code[0].0, code[0].1 - 2));
        assert!(!scopes.is_one_function(code[0].0, code[0].1 + 0x40));
        assert!(points(&scopes, 0x1000).is_empty());
        let moved = Scopes::from_elf(&file, Some(0x9000_0000)).unwrap();
        assert_eq!(points(&moved, 0x9000_0660), points(&scopes, 0x8000_0660));
        assert_eq!(moved.starts_at(0x9000_0652), Some("ackermann"));
        assert_eq!(moved.code(0x9000_0660)[0].0, code[0].0 + 0x1000_0000);
    }

    #[test]
    fn files_that_cannot_be_read() {
        assert!(Scopes::from_elf(b"", None).is_none());
        let whole = file();
        let ask = |bytes: &[u8]| {
            if let Some(scopes) = Scopes::from_elf(bytes, None) {
                let _ = points(&scopes, 0x8000_0660);
            }
        };
        for size in (0..whole.len()).step_by(997) {
            ask(&whole[..size]);
        }
        // Damaged anywhere.
        for at in (64..whole.len()).step_by(499) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            ask(&bytes);
        }
    }

    /// The parts of a discriminator, as LLVM packs them: 0 is one bit, small numbers have
    /// seven bits, others fourteen.
    #[test]
    fn discriminators() {
        assert_eq!((base_discriminator(0), copies(0)), (0, 1));
        assert_eq!((base_discriminator(1), copies(1)), (0, 1));
        assert_eq!((base_discriminator(3 << 1), copies(3 << 1)), (3, 1));
        // No discriminator, four copies.
        assert_eq!((base_discriminator(1 | 4 << 2), copies(1 | 4 << 2)), (0, 4));
        // 3, and four copies.
        let both = 3 << 1 | (4 << 1) << 7;
        assert_eq!((base_discriminator(both), copies(both)), (3, 4));
        // 0x123 does not fit in five bits.
        let large = (0x123 & 0x1f | 0x20 | (0x123 & 0xfe0) << 1) << 1;
        assert_eq!((base_discriminator(large), copies(large)), (0x123, 1));
    }
}
