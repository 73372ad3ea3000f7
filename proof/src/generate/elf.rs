//! Programs as ELF files, for other tools to read.

use hartrace_isa::{Ext, Xlen};

use super::{Program, Segment};

const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_RISCV_ATTRIBUTES: u32 = 0x7000_0003;
const EM_RISCV: u16 = 243;
const EF_RISCV_RVC: u32 = 1;
const EF_RISCV_FLOAT_ABI_DOUBLE: u32 = 4;

const SECTION_NAMES: &[u8] = b"\0.text\0.riscv.attributes\0.symtab\0.strtab\0.shstrtab\0";

/// Little-endian bytes whose words are as wide as the file's class.
struct Writer {
    bytes: Vec<u8>,
    wide: bool,
}

impl Writer {
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
}

#[derive(Default)]
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    addr: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
}

/// Code that lies without a break, in however many segments.
struct Text {
    base: u64,
    size: u64,
    offset: u64,
}

impl Program {
    /// The program as an executable: its segments, its symbols with the
    /// mapping symbols that tell code from data, and its instruction set.
    #[must_use]
    pub fn to_elf(&self) -> Vec<u8> {
        let wide = self.spec().xlen == Xlen::Rv64;
        let (header, entry) = if wide { (64, 56) } else { (52, 32) };
        let headers = header + entry * self.segments().len() as u64;
        let mut body = Vec::new();
        let texts = self.texts(headers, &mut body);
        let mut sections = vec![Section::default()];
        for text in &texts {
            sections.push(Section {
                name: ".text",
                kind: SHT_PROGBITS,
                flags: 6,
                addr: text.base,
                offset: text.offset,
                size: text.size,
                ..Section::default()
            });
        }
        let mut add = |bytes: &[u8], mut section: Section| {
            while !body.len().is_multiple_of(8) {
                body.push(0);
            }
            section.offset = headers + body.len() as u64;
            section.size = bytes.len() as u64;
            body.extend_from_slice(bytes);
            sections.push(section);
        };
        let (symbols, names, locals) = self.symbol_table(&texts, wide);
        let symbols_at = texts.len() as u32 + 2;
        add(
            &self.attributes(),
            Section {
                name: ".riscv.attributes",
                kind: SHT_RISCV_ATTRIBUTES,
                ..Section::default()
            },
        );
        add(
            &symbols,
            Section {
                name: ".symtab",
                kind: SHT_SYMTAB,
                link: symbols_at + 1,
                info: locals,
                entry: if wide { 24 } else { 16 },
                ..Section::default()
            },
        );
        add(&names, strings(".strtab"));
        add(SECTION_NAMES, strings(".shstrtab"));
        self.assemble(wide, headers, &body, &sections)
    }

    /// Lays the segments out behind the headers.
    fn texts(&self, headers: u64, body: &mut Vec<u8>) -> Vec<Text> {
        let mut texts: Vec<Text> = Vec::new();
        for Segment { base, bytes } in self.segments() {
            let size = bytes.len() as u64;
            match texts.last_mut() {
                Some(text) if text.base.wrapping_add(text.size) == *base => text.size += size,
                _ => texts.push(Text {
                    base: *base,
                    size,
                    offset: headers + body.len() as u64,
                }),
            }
            body.extend_from_slice(bytes);
        }
        texts
    }

    fn assemble(&self, wide: bool, headers: u64, body: &[u8], sections: &[Section]) -> Vec<u8> {
        let mut w = Writer {
            bytes: Vec::new(),
            wide,
        };
        self.write_header(&mut w, headers + body.len() as u64, sections.len() as u16);
        let mut offset = headers;
        for Segment { base, bytes } in self.segments() {
            let size = bytes.len() as u64;
            w.word(1);
            if wide {
                w.word(5);
            }
            for value in [offset, *base, *base, size, size] {
                w.addr(value);
            }
            if !wide {
                w.word(5);
            }
            w.addr(1);
            offset += size;
        }
        w.bytes.extend_from_slice(body);
        for section in sections {
            let name = find(SECTION_NAMES, section.name);
            w.word(name);
            w.word(section.kind);
            for value in [section.flags, section.addr, section.offset, section.size] {
                w.addr(value);
            }
            w.word(section.link);
            w.word(section.info);
            w.addr(1);
            w.addr(section.entry);
        }
        w.bytes
    }

    fn write_header(&self, w: &mut Writer, sections_at: u64, sections: u16) {
        let wide = w.wide;
        w.bytes.extend_from_slice(b"\x7fELF");
        w.bytes.extend_from_slice(&[1 + u8::from(wide), 1, 1]);
        w.bytes.resize(16, 0);
        w.half(2);
        w.half(EM_RISCV);
        w.word(1);
        w.addr(self.entry());
        w.addr(if wide { 64 } else { 52 });
        w.addr(sections_at);
        let compressed = u32::from(self.isa().has(Ext::Zca)) * EF_RISCV_RVC;
        let double = u32::from(self.isa().has(Ext::D)) * EF_RISCV_FLOAT_ABI_DOUBLE;
        w.word(compressed | double);
        let sizes: [u16; 2] = if wide { [64, 56] } else { [52, 32] };
        for size in sizes {
            w.half(size);
        }
        w.half(self.segments().len() as u16);
        w.half(if wide { 64 } else { 40 });
        w.half(sections);
        w.half(sections - 1);
    }

    /// `.riscv.attributes` with one attribute, the ISA string (tag 5).
    fn attributes(&self) -> Vec<u8> {
        let arch = self.isa().to_string();
        let file_size = 1 + 4 + 1 + arch.len() as u32 + 1;
        let mut bytes = vec![b'A'];
        bytes.extend_from_slice(&(4 + 6 + file_size).to_le_bytes());
        bytes.extend_from_slice(b"riscv\0\x01");
        bytes.extend_from_slice(&file_size.to_le_bytes());
        bytes.push(5);
        bytes.extend_from_slice(arch.as_bytes());
        bytes.push(0);
        bytes
    }

    /// Symbols, their names, and the number of local ones, which come first.
    fn symbol_table(&self, texts: &[Text], wide: bool) -> (Vec<u8>, Vec<u8>, u32) {
        let mut w = Writer {
            bytes: vec![0; if wide { 24 } else { 16 }],
            wide,
        };
        let mut names = vec![0];
        names.extend_from_slice(b"$x\0$d\0");
        let marks = self.mapping(texts);
        for &(addr, code) in &marks {
            symbol(&mut w, if code { 1 } else { 4 }, addr, 0, texts);
        }
        for (name, addr) in self.symbols() {
            let at = names.len() as u32;
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            // A global function, or a global object for the jump table.
            let info = if Some(*addr) == self.jvt() {
                0x11
            } else {
                0x12
            };
            symbol(&mut w, at, *addr, info, texts);
        }
        (w.bytes, names, 1 + marks.len() as u32)
    }

    /// Where code (true) and data start in turns.
    fn mapping(&self, texts: &[Text]) -> Vec<(u64, bool)> {
        let mut marks = Vec::new();
        let mut end = None;
        for op in &self.ops {
            if end != Some(op.pc) {
                let starts = texts.iter().map(|t| t.base);
                let start = starts.filter(|&b| b <= op.pc).max();
                // Data between the last code, or the start of the part, and here.
                let data = end.filter(|&e| e < op.pc && start.is_none_or(|s| s < e));
                if let Some(data) = data.or(start.filter(|&s| s < op.pc)) {
                    marks.push((data, false));
                }
                marks.push((op.pc, true));
            }
            end = Some(op.pc.wrapping_add(u64::from(op.len)));
        }
        marks
    }
}

fn strings(name: &'static str) -> Section {
    Section {
        name,
        kind: SHT_STRTAB,
        ..Section::default()
    }
}

fn symbol(w: &mut Writer, name: u32, addr: u64, info: u8, texts: &[Text]) {
    let inside = |t: &Text| addr.wrapping_sub(t.base) < t.size;
    let section = texts.iter().position(inside).map_or(0, |at| at as u16 + 1);
    w.word(name);
    if w.wide {
        w.bytes.extend_from_slice(&[info, 0]);
        w.half(section);
        w.addr(addr);
        w.addr(0);
    } else {
        w.addr(addr);
        w.addr(0);
        w.bytes.extend_from_slice(&[info, 0]);
        w.half(section);
    }
}

/// Position of a name in a string table; 0, the empty name, if it is not there.
fn find(table: &[u8], name: &str) -> u32 {
    let mut wanted = vec![0];
    wanted.extend_from_slice(name.as_bytes());
    wanted.push(0);
    let at = table.windows(wanted.len()).position(|w| w == wanted);
    at.map_or(0, |at| at as u32 + 1)
}

#[cfg(test)]
mod tests;
