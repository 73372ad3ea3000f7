//! Assembly text: labels, instructions and data, one line each.
//!
//! A line is `label: mnemonic operands # comment`, each part optional. Operands
//! are separated by commas: registers by number or ABI name, numbers in decimal
//! or hex, `offset(register)`, CSRs by number or name. A target is a label, `.`
//! with an offset (`.+8`, `.-4`), or an address. Directives: `.byte`, `.half`,
//! `.word`, `.dword` (values), `.zero n`, `.align n` (to 2^n bytes, filled with
//! nops), `.org address`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use super::*;

/// Assembled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The bytes, from the base address on.
    pub bytes: Vec<u8>,
    labels: BTreeMap<String, u64>,
}

impl Program {
    /// Where a label stands.
    #[must_use]
    pub fn address(&self, label: &str) -> Option<u64> {
        self.labels.get(label).copied()
    }
}

/// A line that is no assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for AsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Error for AsmError {}

/// Assembles text for code that starts at `base`.
///
/// # Errors
///
/// The first line that cannot be assembled.
pub fn assemble(base: u64, text: &str) -> Result<Program, AsmError> {
    // Sizes depend on mnemonics alone, so that one pass finds the labels.
    let mut labels = BTreeMap::new();
    let mut pass = Pass {
        base,
        bytes: Vec::new(),
        labels: None,
    };
    pass.run(text, |label, pc| match labels.insert(label, pc) {
        Some(_) => Err("this label exists already".to_owned()),
        None => Ok(()),
    })?;
    let mut pass = Pass {
        base,
        bytes: Vec::new(),
        labels: Some(&labels),
    };
    pass.run(text, |_, _| Ok(()))?;
    Ok(Program {
        bytes: pass.bytes,
        labels,
    })
}

/// One time through the text; without labels, every target is here.
struct Pass<'l> {
    base: u64,
    bytes: Vec<u8>,
    labels: Option<&'l BTreeMap<String, u64>>,
}

impl Pass<'_> {
    fn pc(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn run(
        &mut self,
        text: &str,
        mut label: impl FnMut(String, u64) -> Result<(), String>,
    ) -> Result<(), AsmError> {
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let (name, rest) = match line.split_once(':') {
                Some((name, rest)) => (Some(name.trim()), rest.trim()),
                None => (None, line),
            };
            let done = match name {
                Some(name) => label(name.to_owned(), self.pc()),
                None => Ok(()),
            };
            done.and_then(|()| self.line(rest))
                .map_err(|what| AsmError { line: at + 1, what })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let words: Vec<&str> = match rest {
            "" => Vec::new(),
            _ => rest.split(',').map(str::trim).collect(),
        };
        match name.strip_prefix('.') {
            Some(directive) => self.directive(directive, &words),
            None => {
                for insn in self.instruction(&name.replace('.', "_"), &words)? {
                    self.bytes.extend(code(&[insn]));
                }
                Ok(())
            }
        }
    }

    fn directive(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        let size = match name {
            "byte" => 1,
            "half" => 2,
            "word" => 4,
            "dword" => 8,
            "zero" | "org" | "align" => 0,
            _ => return Err(format!("`.{name}` is no directive")),
        };
        if size > 0 {
            for word in words {
                let value = self.value(word)?.to_le_bytes();
                self.bytes.extend(value.iter().take(size));
            }
            return Ok(());
        }
        let [word] = words else {
            return Err(format!("`.{name}` takes one value"));
        };
        let value = number(word)? as u64;
        match name {
            "zero" => self.bytes.extend((0..value).map(|_| 0)),
            "org" => {
                let ahead = value.checked_sub(self.pc()).ok_or("`.org` goes back")?;
                self.bytes.extend((0..ahead).map(|_| 0));
            }
            _ => {
                while !self.pc().is_multiple_of(1 << value) {
                    let short = self.pc() % 4 == 2;
                    self.bytes.extend(code(&[if short { C_NOP } else { NOP }]));
                }
            }
        }
        Ok(())
    }

    /// A number or the address of a label.
    fn value(&self, word: &str) -> Result<i64, String> {
        number(word).or_else(|error| match self.labels {
            None => Ok(0),
            Some(labels) => labels.get(word).map(|&at| at as i64).ok_or(error),
        })
    }

    /// The distance to a target, which fits in so many bits.
    fn target(&self, word: &str, bits: u32) -> Result<i64, String> {
        if self.labels.is_none() {
            return Ok(0);
        }
        let offset = match word.strip_prefix('.') {
            Some("") => 0,
            Some(offset) => number(offset.strip_prefix('+').unwrap_or(offset))?,
            None => self.value(word)?.wrapping_sub(self.pc() as i64),
        };
        if fits(offset, bits) && offset % 2 == 0 {
            Ok(offset)
        } else {
            Err(format!("{offset} bytes are no distance to jump"))
        }
    }

    fn instruction(&self, name: &str, words: &[&str]) -> Result<Vec<u32>, String> {
        if let Some(insns) = self.pseudo(name, words)? {
            return Ok(insns);
        }
        let insn = match words {
            [] => find(&[PLAIN, PLAIN_SHORT], name),
            [a] => self.one(name, a)?,
            [a, b] => self.two(name, a, b)?,
            [a, b, c] => self.three(name, a, b, c)?,
            _ => None,
        };
        match insn {
            Some(insn) => Ok(vec![insn]),
            None => Err(format!("no `{name}` with {} operands", words.len())),
        }
    }

    fn one(&self, name: &str, a: &str) -> Result<Option<u32>, String> {
        Ok(Some(match name {
            "c_j" => c_j(false, self.target(a, 12)?),
            "c_jal" => c_j(true, self.target(a, 12)?),
            "c_jr" => c_jr(false, register(a)?),
            "c_jalr" => c_jr(true, register(a)?),
            "cm_jt" | "cm_jalt" => cm_table(number(a)? as u32),
            _ => return Ok(None),
        }))
    }

    fn two(&self, name: &str, a: &str, b: &str) -> Result<Option<u32>, String> {
        if let Some(insn) = find(&[TWO, TWO_FLOAT, SHORT_TWO], name) {
            return Ok(Some(insn(register(a)?, register(b)?)));
        }
        if let Some(insn) = find(&[CONVERTED], name) {
            return Ok(Some(insn(DYN, register(a)?, register(b)?)));
        }
        if let Some(insn) = find(&[RESERVING], name) {
            return Ok(Some(insn(register(a)?, place(b)?.1)));
        }
        if let Some(insn) = find(&[LOADS, LOADS_FLOAT, STORES, STORES_FLOAT], name) {
            let (offset, base) = place(b)?;
            return Ok(Some(insn(register(a)?, field(offset, 12)?, base)));
        }
        if let Some(insn) = find(&[SHORT_MEMORY], name) {
            let (offset, base) = place(b)?;
            return Ok(Some(insn(register(a)?, offset as u32, base)));
        }
        if let Some(insn) = find(&[UPPER], name) {
            return Ok(Some(insn(register(a)?, number(b)? as u32)));
        }
        if let Some(insn) = find(&[SHORT_IMMEDIATE], name) {
            return Ok(Some(insn(register(a)?, field(number(b)?, 7)? as u32)));
        }
        Ok(Some(match name {
            "jal" => jal(register(a)?, self.target(b, 21)?),
            "jalr" => {
                let (offset, base) = place(b)?;
                jalr(register(a)?, base, field(offset, 12)?)
            }
            "c_beqz" => c_branch(false, register(a)?, self.target(b, 9)?),
            "c_bnez" => c_branch(true, register(a)?, self.target(b, 9)?),
            "c_lui" => c_lui(register(a)?, number(b)? as u32),
            _ => return Ok(None),
        }))
    }

    fn three(&self, name: &str, a: &str, b: &str, c: &str) -> Result<Option<u32>, String> {
        if let Some(insn) = find(&[THREE, THREE_FLOAT], name) {
            return Ok(Some(insn(register(a)?, register(b)?, register(c)?)));
        }
        if let Some(insn) = find(&[ROUNDED], name) {
            return Ok(Some(insn(DYN, register(a)?, register(b)?, register(c)?)));
        }
        if let Some(insn) = find(&[ATOMICS], name) {
            return Ok(Some(insn(register(a)?, register(b)?, place(c)?.1)));
        }
        if let Some(insn) = find(&[IMMEDIATE], name) {
            let value = field(number(c)?, 12)?;
            return Ok(Some(insn(register(a)?, register(b)?, value)));
        }
        if let Some(insn) = find(&[BRANCHES], name) {
            let offset = self.target(c, 13)?;
            return Ok(Some(insn(register(a)?, register(b)?, offset)));
        }
        if let Some(insn) = find(&[CSRS], name) {
            let source = match name.ends_with('i') {
                true => number(c)? as u32 & 31,
                false => register(c)?,
            };
            return Ok(Some(insn(register(a)?, csr(b)?, source)));
        }
        Ok(None)
    }

    /// What assemblers offer beside the instructions.
    fn pseudo(&self, name: &str, words: &[&str]) -> Result<Option<Vec<u32>>, String> {
        let insn = match (name, words) {
            ("j", [to]) => jal(ZERO, self.target(to, 21)?),
            ("jal" | "call", [to]) => jal(RA, self.target(to, 21)?),
            ("jr", [rs]) => jalr(ZERO, register(rs)?, 0),
            ("jalr", [rs]) => jalr(RA, register(rs)?, 0),
            ("mv", [rd, rs]) => addi(register(rd)?, register(rs)?, 0),
            ("beqz", [rs, to]) => beq(register(rs)?, ZERO, self.target(to, 13)?),
            ("bnez", [rs, to]) => bne(register(rs)?, ZERO, self.target(to, 13)?),
            ("csrr", [rd, name]) => csrr(register(rd)?, csr(name)?),
            ("csrw", [name, rs]) => csrw(csr(name)?, register(rs)?),
            ("li", [rd, value]) => {
                let (rd, value) = (register(rd)?, number(value)?);
                if !fits(value, 12) {
                    return Ok(Some(li32(rd, value as u32).to_vec()));
                }
                addi(rd, ZERO, value as i32)
            }
            _ => return Ok(None),
        };
        Ok(Some(vec![insn]))
    }
}

fn find<T: Copy>(tables: &[&[(&str, T)]], name: &str) -> Option<T> {
    let mut rows = tables.iter().copied().flatten();
    rows.find(|row| row.0 == name).map(|row| row.1)
}

fn number(word: &str) -> Result<i64, String> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let value = value.map_err(|_| format!("`{word}` is neither a number nor a label"))? as i64;
    Ok(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// A number that fits in so many bits.
fn field(value: i64, bits: u32) -> Result<i32, String> {
    if fits(value, bits) {
        Ok(value as i32)
    } else {
        Err(format!("{value} does not fit in {bits} bits"))
    }
}

/// `offset(register)`, the offset 0 if it is left out.
fn place(word: &str) -> Result<(i64, u32), String> {
    let inside = word.strip_suffix(')').and_then(|w| w.split_once('('));
    let (offset, base) = inside.ok_or(format!("`{word}` is no place in memory"))?;
    let offset = if offset.is_empty() {
        0
    } else {
        number(offset)?
    };
    Ok((offset, register(base)?))
}

const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

const FLOAT_NAMES: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2",
    "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9",
    "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
];

fn register(word: &str) -> Result<u32, String> {
    let named = |names: [&str; 32]| names.iter().position(|name| *name == word);
    let digits = word.strip_prefix(['x', 'f']);
    let numbered = || digits?.parse::<usize>().ok().filter(|&n| n < 32);
    let found = named(NAMES)
        .or_else(|| named(FLOAT_NAMES))
        .or_else(numbered);
    match found {
        Some(number) => Ok(number as u32),
        None => Err(format!("`{word}` is no register")),
    }
}

fn csr(word: &str) -> Result<u16, String> {
    Ok(match word {
        "fflags" => 0x001,
        "frm" => 0x002,
        "fcsr" => 0x003,
        "sstatus" => 0x100,
        "sie" => 0x104,
        "stvec" => 0x105,
        "sscratch" => 0x140,
        "sepc" => 0x141,
        "scause" => 0x142,
        "stval" => 0x143,
        "satp" => 0x180,
        "mstatus" => 0x300,
        "misa" => 0x301,
        "medeleg" => 0x302,
        "mideleg" => 0x303,
        "mie" => 0x304,
        "mtvec" => 0x305,
        "mscratch" => 0x340,
        "mepc" => 0x341,
        "mcause" => 0x342,
        "mtval" => 0x343,
        "mip" => 0x344,
        "scontext" => 0x5a8,
        "hcontext" => 0x6a8,
        "cycle" => 0xc00,
        "time" => 0xc01,
        "instret" => 0xc02,
        "mhartid" => 0xf14,
        _ => number(word)? as u16,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<u32> {
        let program = assemble(0x1000, text).unwrap();
        let words = program.bytes.chunks(4);
        words
            .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
            .collect()
    }

    /// Encodings as LLVM's assembler has them.
    #[test]
    fn instructions_are_encoded_as_elsewhere() {
        let known = [
            ("add a0, a1, a2", 0x00c5_8533),
            ("addi sp, sp, -16", 0xff01_0113),
            ("lw x6, 8(a0)", 0x0085_2303),
            ("sd ra, 8(sp)", 0x0011_3423),
            ("beq a0, a1, .+8", 0x00b5_0463),
            ("bne a0, a1, .-4", 0xfeb5_1ee3),
            ("jal ra, 0x1010", 0x0100_00ef),
            ("jalr zero, 0(ra)", RET),
            ("lui a0, 0x12345", 0x1234_5537),
            ("csrrw a0, mscratch, a1", 0x3405_9573),
            ("csrrsi zero, mstatus, 8", 0x3004_6073),
            ("csrw mtvec, t0", 0x3052_9073),
            ("amoadd.w a0, a1, (a2)", 0x00b6_252f),
            ("lr.w a0, (a1)", 0x1005_a52f),
            ("fence.i", FENCE_I),
            ("fadd.s fa0, fa1, fa2", 0x00c5_f553),
            ("fcvt.w.s a0, fa1", 0xc005_f553),
            ("mul a0, a1, a2", 0x02c5_8533),
            ("sfence.vma", 0x1200_0073),
        ];
        for (text, bits) in known {
            assert_eq!(words(text), [bits], "{text}");
        }
        let short = [
            ("c.addi a0, 1", 0x0505),
            ("c.li a0, -1", 0x557d),
            ("c.mv a0, a1", 0x852e),
            ("c.add a0, a1", 0x952e),
            ("c.sub a0, a1", 0x8d0d),
            ("c.lw a0, 4(a1)", 0x41c8),
            ("c.sd a0, 8(a1)", 0xe588),
            ("c.j .", 0xa001),
            ("c.bnez a0, .-2", 0xfd7d),
            ("c.jr a5", 0x8782),
            ("c.jalr a5", 0x9782),
            ("c.ret", 0x8082),
            ("c.lui a0, 1", 0x6505),
            ("c.slli a0, 3", 0x050e),
            ("c.andi a0, 7", 0x891d),
        ];
        for (text, bits) in short {
            let bytes = assemble(0, text).unwrap().bytes;
            assert_eq!(bytes, u16::to_le_bytes(bits), "{text}");
        }
    }

    #[test]
    fn labels_and_directives() {
        let program = assemble(
            0x1000,
            "
            start: j there       # ahead
                   c.nop
                   .align 2
            there: bnez a0, start
                   li a1, 0x12345
            data:  .word data, 1
                   .half 2
                   .zero 2
                   .org 0x1030
            end:
            ",
        )
        .unwrap();
        assert_eq!(program.address("there"), Some(0x1008));
        assert_eq!(program.address("data"), Some(0x1014));
        assert_eq!(program.address("end"), Some(0x1030));
        assert_eq!(program.address("nowhere"), None);
        let mut expected = code(&[jal(0, 8), C_NOP, C_NOP, bne(10, 0, -8)]);
        expected.extend(code(&li32(11, 0x12345)));
        expected.extend([0x14, 0x10, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        expected.resize(0x30, 0);
        assert_eq!(program.bytes, expected);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, what) in [
            ("nop\nadd a0, a1", "no `add` with 2 operands"),
            ("nop\nj away", "`away` is neither a number nor a label"),
            ("nop\naddi a0, a0, 4096", "4096 does not fit in 12 bits"),
            ("nop\nlw a0, a1", "`a1` is no place in memory"),
            ("nop\n.what 1", "`.what` is no directive"),
            ("a: nop\na: nop", "this label exists already"),
            (
                "nop\nbeq a0, a1, 0x9000",
                "32764 bytes are no distance to jump",
            ),
        ] {
            let error = assemble(0x1000, text).unwrap_err();
            assert_eq!((error.line, &error.what[..]), (2, what), "{text}");
        }
    }
}
