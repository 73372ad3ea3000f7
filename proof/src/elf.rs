//! Writes ELF files: code at address 0 with attributes for a disassembler,
//! segments and symbols for a simulator.

use std::collections::BTreeMap;

use hartrace_isa::{Ext, Isa, Xlen};

const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_RISCV_ATTRIBUTES: u32 = 0x7000_0003;
const EM_RISCV: u16 = 243;
const EF_RISCV_RVC: u32 = 1;
const EF_RISCV_FLOAT_ABI_DOUBLE: u32 = 4;

/// Bytes that are loaded at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First address.
    pub base: u64,
    /// What is there.
    pub bytes: Vec<u8>,
}

/// Where the contents of a section are.
pub(crate) enum Contents {
    /// In the segments, that far from the first byte of the first.
    Loaded { from: u64, size: u64 },
    /// After them.
    Bytes(Vec<u8>),
}

/// A section, as far as anybody here sets it.
pub(crate) struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    addr: u64,
    link: u32,
    info: u32,
    entry: u64,
    contents: Contents,
}

impl Section {
    fn new(name: &'static str, kind: u32, contents: Contents) -> Section {
        Section {
            name,
            kind,
            flags: 0,
            addr: 0,
            link: 0,
            info: 0,
            entry: 0,
            contents,
        }
    }

    /// Code.
    pub(crate) fn text(addr: u64, contents: Contents) -> Section {
        Section {
            flags: 6,
            addr,
            ..Section::new(".text", SHT_PROGBITS, contents)
        }
    }

    /// One attribute, the ISA string (tag 5).
    pub(crate) fn attributes(arch: &str) -> Section {
        let file_size = 1 + 4 + 1 + arch.len() as u32 + 1;
        let mut bytes = vec![b'A'];
        bytes.extend_from_slice(&(4 + 6 + file_size).to_le_bytes());
        bytes.extend_from_slice(b"riscv\0\x01");
        bytes.extend_from_slice(&file_size.to_le_bytes());
        bytes.push(5);
        bytes.extend_from_slice(arch.as_bytes());
        bytes.push(0);
        let contents = Contents::Bytes(bytes);
        Section::new(".riscv.attributes", SHT_RISCV_ATTRIBUTES, contents)
    }

    fn strings(name: &'static str, bytes: Vec<u8>) -> Section {
        Section::new(name, SHT_STRTAB, Contents::Bytes(bytes))
    }
}

/// A symbol.
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) addr: u64,
    /// Type and binding.
    pub(crate) info: u8,
    pub(crate) section: u16,
}

/// A file to be.
pub(crate) struct File<'a> {
    isa: Isa,
    entry: u64,
    segments: &'a [Segment],
    /// Of the segments: 1 to execute, 2 to write, 4 to read.
    rights: u32,
    sections: Vec<Section>,
}

impl<'a> File<'a> {
    pub(crate) fn new(isa: Isa, entry: u64, segments: &'a [Segment], rights: u32) -> File<'a> {
        File {
            isa,
            entry,
            segments,
            rights,
            sections: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    fn wide(&self) -> bool {
        self.isa.xlen() == Xlen::Rv64
    }

    /// `.symtab` and `.strtab`, with so many local symbols, which come first.
    /// A name that comes again is stored once.
    pub(crate) fn push_symbols(&mut self, symbols: &[Symbol<'_>], locals: u32) {
        let wide = self.wide();
        let size = if wide { 24 } else { 16 };
        let mut out = Out {
            bytes: vec![0; size],
            wide,
        };
        let mut names = vec![0];
        let mut known = BTreeMap::new();
        for symbol in symbols {
            let name = known.entry(symbol.name);
            out.word(*name.or_insert_with(|| add_name(&mut names, symbol.name)));
            if !wide {
                out.addr(symbol.addr);
                out.addr(0);
            }
            out.bytes.extend_from_slice(&[symbol.info, 0]);
            out.half(symbol.section);
            if wide {
                out.addr(symbol.addr);
                out.addr(0);
            }
        }
        // Section 0 is nothing, this one is the next, its names the one after.
        let link = self.sections.len() as u32 + 2;
        self.sections.push(Section {
            link,
            info: 1 + locals,
            entry: size as u64,
            ..Section::new(".symtab", SHT_SYMTAB, Contents::Bytes(out.bytes))
        });
        self.sections.push(Section::strings(".strtab", names));
    }

    /// The file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let wide = self.wide();
        let (header, entry) = if wide { (64, 56) } else { (52, 32) };
        let loaded = header + entry * self.segments.len() as u64;
        let mut body = Vec::new();
        for segment in self.segments {
            body.extend_from_slice(&segment.bytes);
        }
        let mut names = vec![0];
        let mut rows = Vec::new();
        let mut place = |section: &Section, names: &mut Vec<u8>| {
            let name = add_name(names, section.name);
            let (offset, size) = match &section.contents {
                Contents::Loaded { from, size } => (loaded + from, *size),
                Contents::Bytes(bytes) => {
                    pad(&mut body, loaded);
                    let offset = loaded + body.len() as u64;
                    body.extend_from_slice(bytes);
                    (offset, bytes.len() as u64)
                }
            };
            rows.push((name, offset, size));
        };
        for section in &self.sections {
            place(section, &mut names);
        }
        let mut finished = names.clone();
        add_name(&mut finished, ".shstrtab");
        let strings = Section::strings(".shstrtab", finished);
        place(&strings, &mut names);
        pad(&mut body, loaded);
        let mut out = Out {
            bytes: Vec::new(),
            wide,
        };
        self.write_header(&mut out, loaded + body.len() as u64);
        self.write_segments(&mut out, loaded);
        out.bytes.extend_from_slice(&body);
        let none = Section::new("", 0, Contents::Loaded { from: 0, size: 0 });
        out.section(&none, (0, 0, 0));
        for (section, row) in self.sections.iter().chain([&strings]).zip(rows) {
            out.section(section, row);
        }
        out.bytes
    }

    fn write_header(&self, out: &mut Out, sections_at: u64) {
        let wide = out.wide;
        out.bytes.extend_from_slice(b"\x7fELF");
        out.bytes.extend_from_slice(&[1 + u8::from(wide), 1, 1]);
        out.bytes.resize(16, 0);
        out.half(2);
        out.half(EM_RISCV);
        out.word(1);
        out.addr(self.entry);
        let (header, entry) = if wide { (64, 56) } else { (52, 32) };
        let none = self.segments.is_empty();
        out.addr(if none { 0 } else { u64::from(header) });
        out.addr(sections_at);
        let compressed = u32::from(self.isa.has(Ext::Zca)) * EF_RISCV_RVC;
        let double = u32::from(self.isa.has(Ext::D)) * EF_RISCV_FLOAT_ABI_DOUBLE;
        out.word(compressed | double);
        out.half(header);
        out.half(if none { 0 } else { entry });
        out.half(self.segments.len() as u16);
        out.half(if wide { 64 } else { 40 });
        let sections = self.sections.len() as u16 + 2;
        out.half(sections);
        out.half(sections - 1);
    }

    fn write_segments(&self, out: &mut Out, mut offset: u64) {
        for Segment { base, bytes } in self.segments {
            let size = bytes.len() as u64;
            out.word(1);
            if out.wide {
                out.word(self.rights);
            }
            for value in [offset, *base, *base, size, size] {
                out.addr(value);
            }
            if !out.wide {
                out.word(self.rights);
            }
            out.addr(1);
            offset += size;
        }
    }
}

/// Fills up so that what comes next is aligned in the file.
fn pad(body: &mut Vec<u8>, before: u64) {
    while !(before + body.len() as u64).is_multiple_of(8) {
        body.push(0);
    }
}

/// Appends a name to a string table; where it is then.
fn add_name(names: &mut Vec<u8>, name: &str) -> u32 {
    let at = names.len() as u32;
    names.extend_from_slice(name.as_bytes());
    names.push(0);
    at
}

/// Little-endian bytes whose words are as wide as the file's class.
struct Out {
    bytes: Vec<u8>,
    wide: bool,
}

impl Out {
    fn half(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// An address, an offset or a size.
    fn addr(&mut self, value: u64) {
        if self.wide {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        } else {
            self.word(value as u32);
        }
    }

    fn section(&mut self, section: &Section, (name, offset, size): (u32, u64, u64)) {
        self.word(name);
        self.word(section.kind);
        for value in [section.flags, section.addr, offset, size] {
            self.addr(value);
        }
        self.word(section.link);
        self.word(section.info);
        self.addr(1);
        self.addr(section.entry);
    }
}

/// An ELF file with these bytes as `.text`, for `rv32...` or `rv64...`, with
/// the ISA string as its attribute.
#[must_use]
pub fn code(text: &[u8], arch: &str) -> Vec<u8> {
    // The flags say nothing: the attribute does.
    let bare = if arch.starts_with("rv64") {
        "rv64i"
    } else {
        "rv32i"
    };
    let isa = Isa::parse(bare).unwrap_or(Isa::RV64GC);
    let mut file = File::new(isa, 0, &[], 0);
    file.push(Section::text(0, Contents::Bytes(text.to_vec())));
    file.push(Section::attributes(arch));
    file.to_bytes()
}

/// What a simulator loads: an instruction set, the address of the first
/// instruction, memory whose first part is code, and names of addresses.
#[must_use]
pub fn executable(isa: Isa, entry: u64, segments: &[Segment], names: &[(&str, u64)]) -> Vec<u8> {
    let mut file = File::new(isa, entry, segments, 7);
    if let Some(Segment { base, bytes }) = segments.first() {
        let size = bytes.len() as u64;
        file.push(Section::text(*base, Contents::Loaded { from: 0, size }));
    }
    file.push(Section::attributes(&isa.to_string()));
    // Global, no type, absolute.
    let symbols: Vec<Symbol<'_>> = names
        .iter()
        .map(|&(name, addr)| Symbol {
            name,
            addr,
            info: 0x10,
            section: 0xfff1,
        })
        .collect();
    file.push_symbols(&symbols, 0);
    file.to_bytes()
}
