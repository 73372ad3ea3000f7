//! The smallest ELF file that makes a disassembler work: code at address 0,
//! attributes, no symbols.

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
    let class = if wide { 2 } else { 1 };
    file.raw(&[
        0x7f, b'E', b'L', b'F', class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    file.half(2); // executable
    file.half(243); // RISC-V
    file.word(1);
    file.addr(0); // entry
    file.addr(0); // no segments
    file.addr(at_sections);
    file.word(0);
    file.half(header);
    file.half(0);
    file.half(0);
    file.half(if wide { 64 } else { 40 });
    file.half(4);
    file.half(3);
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
