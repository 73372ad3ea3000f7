//! ELF files as small as they may be: for a disassembler code at address 0
//! with attributes; for a simulator segments and symbols.

use hartrace_isa::{Ext, Isa, Xlen};

/// Bytes at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first one.
    pub base: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What a simulator loads.
#[derive(Clone, Copy, Debug)]
pub struct Executable<'a> {
    /// The instruction set, for the width and the flags.
    pub isa: Isa,
    /// Address of the first instruction.
    pub entry: u64,
    /// What is in memory.
    pub segments: &'a [Segment],
    /// Names of addresses.
    pub symbols: &'a [(&'a str, u64)],
}

impl Executable<'_> {
    /// The file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let wide = self.isa.xlen() == Xlen::Rv64;
        let (header, entry) = if wide { (64, 56) } else { (52, 32) };
        let mut at = (header + entry * self.segments.len()).next_multiple_of(8);
        let mut body = vec![0; at - header - entry * self.segments.len()];
        let mut places = Vec::new();
        for segment in self.segments {
            places.push(at);
            body.extend_from_slice(&segment.bytes);
            at += segment.bytes.len();
        }
        let names = b"\0.symtab\0.strtab\0.shstrtab\0";
        let (symbols, strings) = self.symbol_table(wide);
        let parts: [&[u8]; 3] = [&symbols, &strings, names];
        let mut offsets = Vec::new();
        for part in parts {
            let pad = at.next_multiple_of(8) - at;
            body.resize(body.len() + pad, 0);
            offsets.push((at + pad, part.len()));
            body.extend_from_slice(part);
            at += pad + part.len();
        }
        let mut file = Out {
            bytes: Vec::new(),
            wide,
        };
        let compressed = usize::from(self.isa.has(Ext::Zca));
        let double = usize::from(self.isa.has(Ext::D)) * 4;
        let counts = Counts {
            segments: self.segments.len(),
            sections: 4,
            flags: compressed | double,
        };
        file.header(self.entry as usize, at, counts);
        for (segment, place) in self.segments.iter().zip(places) {
            file.segment(segment.base as usize, segment.bytes.len(), place);
        }
        file.raw(&body);
        file.section(0, 0, 0, 0, 0);
        for ((name, kind), (offset, size)) in [(1, 2), (9, 3), (17, 3)].into_iter().zip(offsets) {
            file.section(name, kind, 0, offset, size);
        }
        // What a symbol table says of itself: its names, one local symbol,
        // the size of an entry.
        let (row, entry) = if wide { (64, 24usize) } else { (40, 16) };
        let from = file.bytes.len() - 3 * row;
        let word = if wide { 8 } else { 4 };
        let link = from + 8 + 4 * word;
        let size = link + 8 + word;
        for (at, value) in [(link, 2usize), (link + 4, 1), (size, entry)] {
            if let Some(place) = file.bytes.get_mut(at) {
                *place = value as u8;
            }
        }
        file.bytes
    }

    fn symbol_table(&self, wide: bool) -> (Vec<u8>, Vec<u8>) {
        let mut out = Out {
            bytes: vec![0; if wide { 24 } else { 16 }],
            wide,
        };
        let mut names = vec![0];
        for (name, value) in self.symbols {
            // Global, no type, absolute.
            out.word(names.len());
            if !wide {
                out.addr(*value as usize);
                out.addr(0);
            }
            out.raw(&[0x10, 0]);
            out.half(0xfff1);
            if wide {
                out.addr(*value as usize);
                out.addr(0);
            }
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        (out.bytes, names)
    }
}

/// An ELF file with these bytes as `.text`, for `rv32...` or `rv64...`, with
/// the ISA string as its attribute.
#[must_use]
pub fn code(text: &[u8], arch: &str) -> Vec<u8> {
    let wide = arch.starts_with("rv64");
    let attributes = attributes(arch);
    let names = b"\0.text\0.riscv.attributes\0.shstrtab\0";
    let header = if wide { 64 } else { 52 };
    let at_text = header;
    let at_attributes = at_text + text.len();
    let at_names = at_attributes + attributes.len();
    let at_sections = (at_names + names.len()).next_multiple_of(8);

    let mut file = Out {
        bytes: Vec::new(),
        wide,
    };
    let counts = Counts {
        segments: 0,
        sections: 4,
        flags: 0,
    };
    file.header(0, at_sections, counts);
    file.raw(text);
    file.raw(&attributes);
    file.raw(names);
    file.bytes.resize(at_sections, 0);
    file.section(0, 0, 0, 0, 0);
    file.section(1, 1, 6, at_text, text.len());
    file.section(7, 0x7000_0003, 0, at_attributes, attributes.len());
    file.section(25, 3, 0, at_names, names.len());
    file.bytes
}

/// What the header counts.
struct Counts {
    segments: usize,
    /// The last one has the names.
    sections: usize,
    flags: usize,
}

struct Out {
    bytes: Vec<u8>,
    wide: bool,
}

impl Out {
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn half(&mut self, value: usize) {
        self.raw(&(value as u16).to_le_bytes());
    }

    fn word(&mut self, value: usize) {
        self.raw(&(value as u32).to_le_bytes());
    }

    fn addr(&mut self, value: usize) {
        if self.wide {
            self.raw(&(value as u64).to_le_bytes());
        } else {
            self.word(value);
        }
    }

    /// The file header; segments follow it, sections are at `sections`.
    fn header(&mut self, entry: usize, sections: usize, counts: Counts) {
        let (header, segment) = if self.wide { (64, 56) } else { (52, 32) };
        self.raw(b"\x7fELF");
        self.raw(&[1 + u8::from(self.wide), 1, 1]);
        self.bytes.resize(16, 0);
        self.half(2); // executable
        self.half(243); // RISC-V
        self.word(1);
        self.addr(entry);
        self.addr(if counts.segments == 0 { 0 } else { header });
        self.addr(sections);
        self.word(counts.flags);
        self.half(header);
        self.half(if counts.segments == 0 { 0 } else { segment });
        self.half(counts.segments);
        self.half(if self.wide { 64 } else { 40 });
        self.half(counts.sections);
        self.half(counts.sections - 1);
    }

    /// Memory that may be read, written and executed.
    fn segment(&mut self, base: usize, size: usize, offset: usize) {
        self.word(1);
        if self.wide {
            self.word(7);
        }
        for value in [offset, base, base, size, size] {
            self.addr(value);
        }
        if !self.wide {
            self.word(7);
        }
        self.addr(1);
    }

    fn section(&mut self, name: usize, kind: usize, flags: usize, at: usize, size: usize) {
        self.word(name);
        self.word(kind);
        self.addr(flags);
        self.addr(0);
        self.addr(at);
        self.addr(size);
        self.word(0);
        self.word(0);
        self.addr(1);
        self.addr(0);
    }
}

fn attributes(arch: &str) -> Vec<u8> {
    let mut list = vec![5];
    list.extend_from_slice(arch.as_bytes());
    list.push(0);
    let mut file = vec![1];
    file.extend_from_slice(&(5 + list.len() as u32).to_le_bytes());
    file.extend_from_slice(&list);
    let mut section = vec![b'A'];
    section.extend_from_slice(&(10 + file.len() as u32).to_le_bytes());
    section.extend_from_slice(b"riscv\0");
    section.extend_from_slice(&file);
    section
}
