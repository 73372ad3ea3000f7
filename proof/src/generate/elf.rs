//! Programs as ELF files, for other tools to read.

use super::{Program, Segment};
use crate::elf::{Contents, File, Section, Symbol};

/// Code that lies without a break, in however many segments.
struct Text {
    base: u64,
    size: u64,
    /// From the first byte of the first segment.
    from: u64,
}

impl Program {
    /// The program as an executable: its segments, its symbols with the
    /// mapping symbols that tell code from data, and its instruction set.
    #[must_use]
    pub fn to_elf(&self) -> Vec<u8> {
        let mut file = File::new(self.isa(), self.entry(), self.segments(), 5);
        let texts = self.texts();
        for &Text { base, size, from } in &texts {
            file.push(Section::text(base, Contents::Loaded { from, size }));
        }
        file.push(Section::attributes(&self.isa().to_string()));
        let (symbols, locals) = self.symbol_table(&texts);
        file.push_symbols(&symbols, locals);
        file.to_bytes()
    }

    /// The segments as they lie one after the other.
    fn texts(&self) -> Vec<Text> {
        let mut texts: Vec<Text> = Vec::new();
        let mut from = 0;
        for Segment { base, bytes } in self.segments() {
            let size = bytes.len() as u64;
            match texts.last_mut() {
                Some(text) if text.base.wrapping_add(text.size) == *base => text.size += size,
                _ => texts.push(Text {
                    base: *base,
                    size,
                    from,
                }),
            }
            from += size;
        }
        texts
    }

    /// Symbols and the number of local ones, which come first.
    fn symbol_table(&self, texts: &[Text]) -> (Vec<Symbol<'_>>, u32) {
        let section = |addr: u64| {
            let inside = |t: &Text| addr.wrapping_sub(t.base) < t.size;
            texts.iter().position(inside).map_or(0, |at| at as u16 + 1)
        };
        let marks = self.mapping(texts);
        let mut symbols: Vec<Symbol<'_>> = marks
            .iter()
            .map(|&(addr, code)| Symbol {
                name: if code { "$x" } else { "$d" },
                addr,
                info: 0,
                section: section(addr),
            })
            .collect();
        symbols.extend(self.symbols().iter().map(|(name, addr)| Symbol {
            name,
            addr: *addr,
            // A global function, or a global object for the jump table.
            info: if Some(*addr) == self.jvt() {
                0x11
            } else {
                0x12
            },
            section: section(*addr),
        }));
        (symbols, marks.len() as u32)
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

#[cfg(test)]
mod tests;
