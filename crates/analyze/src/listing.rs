//! The disassembly of a program, as `objdump -d` prints it.

use crate::elf::{Elf, ElfError, GLOBAL_POINTER, Place, Section, Symbol, printable};
use crate::symbols::Symbols;
use hartrace_flow::elf_bias;
use hartrace_isa::{Dialect, Isa, Resolve, Style, Tracker, Xlen, decode, length};
use std::fmt;
use std::io::{self, Write};

/// How to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The instruction set of all code; without it mapping symbols and the
    /// file's attributes decide, and without those it is `rv32gc` or `rv64gc`.
    pub isa: Option<Isa>,
    /// Where the lowest loaded address goes, as
    /// [`Image::add_elf`](hartrace_flow::Image::add_elf) has it; without it
    /// the code stays where the file says. Addresses are those of objdump's
    /// `--adjust-vma`, but symbols move with the code, which objdump leaves
    /// behind.
    pub base: Option<u64>,
    /// As without `-M no-aliases`.
    pub aliases: bool,
    /// As with `-M numeric`.
    pub numeric: bool,
    /// Whose spelling.
    pub dialect: Dialect,
    /// As with `-z`: long runs of zeros are not left out.
    pub zeros: bool,
}

impl Default for Listing {
    fn default() -> Listing {
        Listing {
            isa: None,
            base: None,
            aliases: true,
            numeric: false,
            dialect: Dialect::default(),
            zeros: false,
        }
    }
}

/// Why there is no listing, or not all of one.
#[derive(Debug)]
pub enum ListingError {
    /// The file was refused.
    Elf(ElfError),
    /// The output was.
    Write(io::Error),
}

impl fmt::Display for ListingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListingError::Elf(error) => error.fmt(f),
            ListingError::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ListingError {}

impl From<io::Error> for ListingError {
    fn from(error: io::Error) -> ListingError {
        ListingError::Write(error)
    }
}

/// Writes the code of an ELF file (an executable, a shared object or a
/// relocatable file) as objdump does; `name` is the file's name on the first
/// line. Runs once over the code, without holding the text.
///
/// # Errors
///
/// A file that is no ELF file for RISC-V, and failures of `out`.
pub fn listing(
    file: &[u8],
    name: &str,
    options: &Listing,
    out: &mut impl Write,
) -> Result<(), ListingError> {
    let mut elf = Elf::parse(file).map_err(ListingError::Elf)?;
    if let Some(base) = options.base {
        // A relocatable file has no segments: its sections start at 0.
        elf.move_by(elf_bias(file, base).unwrap_or(base));
    }
    let isa = options.isa.unwrap_or_else(|| elf.isa());
    let format = if elf.wide {
        "elf64-littleriscv"
    } else {
        "elf32-littleriscv"
    };
    write_all(
        elf,
        isa,
        &format!("{name}:     file format {format}"),
        options,
        out,
    )?;
    Ok(())
}

/// Writes code without a file format around it, as `objdump -D -b binary` does
/// with `-m riscv:rv32` or `riscv:rv64`. Its first byte stands at
/// [`Listing::base`], and without a [`Listing::isa`] it is `rv64gc`.
///
/// # Errors
///
/// Failures of `out`.
pub fn raw_listing(
    code: &[u8],
    name: &str,
    options: &Listing,
    out: &mut impl Write,
) -> io::Result<()> {
    let isa = options.isa.unwrap_or(Isa::RV64GC);
    let base = isa.xlen().wrap(options.base.unwrap_or(0));
    let elf = Elf::raw(code, base, isa.xlen() == Xlen::Rv64);
    write_all(
        elf,
        isa,
        &format!("{name}:     file format binary"),
        options,
        out,
    )
}

fn write_all(
    elf: Elf<'_>,
    isa: Isa,
    title: &str,
    options: &Listing,
    out: &mut impl Write,
) -> io::Result<()> {
    let (symbols, elf) = Symbols::from_parsed(elf);
    let xlen = if elf.wide { Xlen::Rv64 } else { Xlen::Rv32 };
    let style = Style {
        isa,
        aliases: options.aliases,
        numeric: options.numeric,
        dialect: options.dialect,
        privileged: elf.attributes().privileged.unwrap_or_default(),
    };
    let pointer = symbols.all().iter().rfind(|s| s.name == GLOBAL_POINTER);
    let mut out = io::BufWriter::new(out);
    writeln!(out, "\n{}\n", printable(title.as_bytes()))?;
    let mut lister = Lister {
        elf: &elf,
        symbols: &symbols,
        options,
        style,
        isa,
        tracker: Tracker::new(xlen, pointer.map(|s| s.value)),
        chunk: 0,
        out,
    };
    for (index, section) in elf.sections.iter().enumerate() {
        if section.code && !section.data.is_empty() {
            lister.section(index, section)?;
        }
    }
    lister.out.flush()
}

struct Lister<'a, W> {
    elf: &'a Elf<'a>,
    symbols: &'a Symbols,
    options: &'a Listing,
    style: Style,
    /// The instruction set of the file; mapping symbols may change that of
    /// the style.
    isa: Isa,
    tracker: Tracker,
    /// Bytes per group on the last line; 0 before the first.
    chunk: usize,
    out: W,
}

/// Addresses as code in one section names them.
struct Names<'a> {
    elf: &'a Elf<'a>,
    symbols: &'a Symbols,
    index: usize,
    section: &'a Section<'a>,
}

impl Names<'_> {
    /// `<main+0x10>`; without a symbol the section stands in.
    fn label(&self, f: &mut impl fmt::Write, address: u64, symbol: Option<&Symbol>) -> fmt::Result {
        let base = match symbol {
            Some(symbol) => {
                write!(f, "<{}", symbol.shown())?;
                symbol.value
            }
            None => {
                write!(f, "<{}", self.section.name)?;
                self.section.address
            }
        };
        // What another file defines has no address to measure from.
        let foreign = symbol.is_some_and(|s| s.place == Place::Undefined);
        if foreign && self.symbols.linked() || base == address {
            f.write_str(">")
        } else if base > address {
            write!(f, "-{:#x}>", base - address)
        } else {
            write!(f, "+{:#x}>", address - base)
        }
    }
}

impl Resolve for Names<'_> {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        if self.symbols.is_empty() {
            return write!(f, "{address:#x}");
        }
        let size = self.section.data.len() as u64;
        let here = address.checked_sub(self.section.address);
        let inside = self.elf.relocations && here.is_some_and(|at| at < size);
        let symbol = self.symbols.near(address, self.index, inside);
        write!(f, "{address:x} ")?;
        self.label(f, address, symbol)
    }
}

/// What a mapping symbol says begins at its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// Code, perhaps of another instruction set.
    Code(Option<Isa>),
    Data,
}

/// The mapping symbols of a section, and how far the listing has come.
struct Mapping {
    marks: Vec<(u64, Begins)>,
    next: usize,
    now: Begins,
}

impl Mapping {
    fn of(symbols: &Symbols, section: usize) -> Mapping {
        let begins = |s: &Symbol| match s.name.strip_prefix("$x") {
            // A number may follow after a dot.
            Some(arch) => {
                let arch = arch.split('.').next().unwrap_or_default();
                Begins::Code(Isa::parse_lenient(arch).ok())
            }
            None => Begins::Data,
        };
        let marks = symbols.marks(section);
        Mapping {
            marks: marks.map(|s| (s.value, begins(s))).collect(),
            next: 0,
            now: Begins::Code(None),
        }
    }

    /// Bytes of one data item at `address`: four, or what is left before the
    /// next mark or, in `left` bytes, the end of the section.
    fn data_length(&self, address: u64, left: u64) -> usize {
        // A mark that is not above is past the end of the address space.
        let next = self.marks.get(self.next).filter(|m| m.0 > address);
        match next.map_or(left, |m| m.0 - address) {
            3 => 2,
            n => n.clamp(1, 4) as usize,
        }
    }
}

impl<'a, W: Write> Lister<'a, W> {
    fn section(&mut self, index: usize, section: &'a Section<'a>) -> io::Result<()> {
        writeln!(self.out, "\nDisassembly of section {}:", section.name)?;
        let names = Names {
            elf: self.elf,
            symbols: self.symbols,
            index,
            section,
        };
        let mut mapping = Mapping::of(self.symbols, index);
        let size = section.data.len() as u64;
        let mut symbol = self.symbols.near(section.address, index, true);
        let mut at = 0;
        while at < size {
            let address = section.address.wrapping_add(at);
            self.heading(&names, address, symbol)?;
            let next = match symbol {
                Some(s) if s.value > address => symbol,
                Some(s) => self.symbols.after(index, s.value),
                None => None,
            };
            let stop = next
                .map(|s| s.value.wrapping_sub(section.address))
                .filter(|&stop| stop > at && stop <= size)
                .unwrap_or(size);
            let plain =
                symbol.is_some_and(|s| s.value <= address && s.is_object() && !s.is_function());
            let mut span = Span {
                section,
                at: at as usize,
                stop: stop as usize,
                width: self.address_width(section),
            };
            if plain {
                self.dump(&mut span)?;
            } else {
                self.code(&names, &mut mapping, &mut span)?;
            }
            at = stop;
            symbol = next;
        }
        Ok(())
    }

    fn heading(
        &mut self,
        names: &Names<'_>,
        address: u64,
        symbol: Option<&Symbol>,
    ) -> io::Result<()> {
        let mut label = String::new();
        // Writing to a string does not fail.
        let _ = names.label(&mut label, address, symbol);
        let digits = if self.elf.wide { 16 } else { 8 };
        write!(self.out, "\n{address:0digits$x} {label}:\n")
    }

    /// Leading zeros of addresses are dropped in fours, as many as the end of
    /// the section can spare while keeping one.
    fn address_width(&self, section: &Section<'_>) -> usize {
        let digits = if self.elf.wide { 16 } else { 8 };
        let end = section.address.wrapping_add(section.data.len() as u64);
        let zeros = digits - (16 - end.leading_zeros() as usize / 4).min(digits);
        digits - (zeros.saturating_sub(1) & !3)
    }

    /// Leaves out eight zeros and more, and one or two at the end.
    fn skip_zeros(&mut self, span: &mut Span<'_>) -> io::Result<bool> {
        if self.options.zeros {
            return Ok(false);
        }
        let rest = span.rest();
        let zeros = rest.iter().take_while(|&&b| b == 0).count();
        let to_end = zeros == rest.len();
        if zeros < 8 && !(to_end && zeros < 3) {
            return Ok(false);
        }
        // What follows may be an instruction that starts with a zero.
        span.at += if to_end { zeros } else { zeros & !3 };
        self.out.write_all(b"\t...\n")?;
        Ok(true)
    }

    fn code(
        &mut self,
        names: &Names<'_>,
        mapping: &mut Mapping,
        span: &mut Span<'_>,
    ) -> io::Result<()> {
        let mut line = 4;
        while span.at < span.stop {
            if self.skip_zeros(span)? {
                continue;
            }
            let address = span.address();
            self.advance(mapping, address);
            let left = (span.section.data.len() - span.at) as u64;
            let mut data = mapping.now == Begins::Data;
            let mut length = match (data, span.rest()) {
                (true, _) => mapping.data_length(address, left),
                (false, [a, b, ..]) => length(u16::from_le_bytes([*a, *b])).into(),
                (false, _) => 2,
            };
            // An instruction that runs into the next symbol or out of the
            // section: 2.45 shows the bytes that are there.
            if span.rest().len() < length && self.options.dialect == Dialect::Binutils245 {
                (data, length) = (true, span.rest().len());
            }
            let Some(bytes) = span.rest().get(..length) else {
                self.out_of_bounds(span, if data { length } else { 0 }, line)?;
                continue;
            };
            self.chunk = match length {
                _ if data => length,
                n if n % 4 == 0 => 4,
                _ => 2,
            };
            line = match length {
                1 if data => 6,
                2 | 4 | 8 => 8,
                n if data => n,
                _ => 8,
            };
            self.bytes(span, length, line)?;
            if data {
                self.item(bytes)?;
            } else {
                self.instruction(names, address, bytes)?;
            }
            self.more_bytes(span, length, line)?;
            span.at += length;
        }
        Ok(())
    }

    /// Takes the mapping symbols up to an address.
    fn advance(&mut self, mapping: &mut Mapping, address: u64) {
        while let Some(&(at, begins)) = mapping.marks.get(mapping.next) {
            if at > address {
                break;
            }
            mapping.now = begins;
            mapping.next += 1;
            let Begins::Code(isa) = begins else { continue };
            if self.options.isa.is_some() {
                continue;
            }
            // 2.40 keeps the instruction set of the last symbol that named
            // one; later versions return to the file's.
            let kept = match self.options.dialect {
                Dialect::Binutils240 => self.style.isa,
                Dialect::Binutils245 => self.isa,
            };
            self.style.isa = isa.unwrap_or(kept);
        }
    }

    fn instruction(&mut self, names: &Names<'_>, address: u64, bytes: &[u8]) -> io::Result<()> {
        let first = bytes.iter().take(4).rev();
        let bits = first.fold(0u32, |v, &b| v << 8 | u32::from(b));
        let inst = decode(bits, self.style.isa);
        let note = self.tracker.note(&inst, address, self.style.aliases);
        let text = inst.text(address, &self.style).resolve(names);
        write!(self.out, "{}", text.note(note).raw(bytes))
    }

    /// Data among code.
    fn item(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes.len() {
            1 => write!(self.out, ".byte\t0x")?,
            2 => write!(self.out, ".short\t0x")?,
            4 => write!(self.out, ".word\t0x")?,
            8 => write!(self.out, ".dword\t0x")?,
            n => write!(self.out, ".{n}byte\t0x")?,
        }
        for byte in bytes.iter().rev() {
            write!(self.out, "{byte:02x}")?;
        }
        Ok(())
    }

    /// Where 2.40 cannot read all of an instruction it says so, and goes on
    /// five bytes later (the number of an I/O error).
    fn out_of_bounds(&mut self, span: &mut Span<'_>, chunk: usize, line: usize) -> io::Result<()> {
        const OCTETS: usize = 5;
        self.chunk = chunk;
        let address = span.address();
        self.bytes(span, OCTETS, line)?;
        writeln!(self.out, "Address {address:#x} is out of bounds.")?;
        self.more_bytes(span, OCTETS, line)?;
        span.at += OCTETS;
        Ok(())
    }

    /// The address and the bytes of one line, before its text.
    fn bytes(&mut self, span: &Span<'_>, octets: usize, line: usize) -> io::Result<()> {
        self.padded(span, octets.min(line), line)?;
        self.out.write_all(b"\t")
    }

    /// The address, the first `shown` bytes, and spaces up to the width of a line.
    fn padded(&mut self, span: &Span<'_>, shown: usize, line: usize) -> io::Result<()> {
        let (address, width) = (span.address(), span.width);
        write!(self.out, "{address:>width$x}:\t")?;
        self.groups(span, 0, shown)?;
        let chunk = self.chunk.max(1);
        for _ in (shown..line).step_by(chunk) {
            write!(self.out, "{:1$} ", "", 2 * chunk)?;
        }
        Ok(())
    }

    /// The lines below a long instruction, and the end of the last one.
    fn more_bytes(&mut self, span: &Span<'_>, octets: usize, line: usize) -> io::Result<()> {
        let mut from = line;
        while from < octets {
            let address = span.address().wrapping_add(from as u64);
            write!(self.out, "\n{address:>width$x}:\t", width = span.width)?;
            let to = octets.min(from + line);
            self.groups(span, from, to)?;
            from = to;
        }
        self.out.write_all(b"\n")
    }

    /// Bytes as little-endian groups; a group that does not fit is left out.
    fn groups(&mut self, span: &Span<'_>, from: usize, to: usize) -> io::Result<()> {
        let chunk = self.chunk.max(1);
        for start in (from..to).step_by(chunk) {
            let group = span.rest().get(start..start + chunk).unwrap_or_default();
            for byte in group.iter().rev() {
                write!(self.out, "{byte:02x}")?;
            }
            self.out.write_all(b" ")?;
        }
        Ok(())
    }

    /// The bytes of a data object, sixteen a line, with their characters. The
    /// grouping is that of the last instruction before it.
    fn dump(&mut self, span: &mut Span<'_>) -> io::Result<()> {
        const LINE: usize = 16;
        while span.at < span.stop {
            if self.skip_zeros(span)? {
                continue;
            }
            let bytes = span.rest();
            let bytes = bytes.get(..LINE).unwrap_or(bytes);
            self.padded(span, bytes.len(), LINE)?;
            self.out.write_all(b"    ")?;
            for &byte in bytes {
                let shown = if matches!(byte, b' '..=b'~') {
                    byte
                } else {
                    b'.'
                };
                self.out.write_all(&[shown])?;
            }
            self.out.write_all(b"\n")?;
            span.at += bytes.len();
        }
        Ok(())
    }
}

/// The part of a section that belongs to one symbol.
struct Span<'a> {
    section: &'a Section<'a>,
    at: usize,
    stop: usize,
    /// Characters of the address column.
    width: usize,
}

impl<'a> Span<'a> {
    fn rest(&self) -> &'a [u8] {
        self.section
            .data
            .get(self.at..self.stop)
            .unwrap_or_default()
    }

    fn address(&self) -> u64 {
        self.section.address.wrapping_add(self.at as u64)
    }
}

#[cfg(test)]
pub(crate) mod tests;
