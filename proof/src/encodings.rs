//! Compares our disassembly with objdump's for single encodings: every
//! compressed one, and random 32-bit ones.

use crate::elf;
use crate::objdump::{Class, Tool, tools};
use hartrace_isa::{
    Dialect, Flow, Inst, Isa, Op, Resolve, Style, Tracker, Xlen, csr, decode, encodings,
};
use hartrace_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Without symbols objdump writes `0x` before an address.
struct Bare;

impl Resolve for Bare {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        write!(f, "{address:#x}")
    }
}

/// What differed, over one list of encodings.
#[derive(Default)]
struct Tally {
    compared: usize,
    sizes: usize,
    classes: usize,
    texts: usize,
    /// Differences that are meant to be.
    explained: usize,
    ops: BTreeSet<Op>,
    /// Differences by a short cause, with an example each.
    kinds: BTreeMap<String, (usize, String)>,
}

impl Tally {
    fn report(&self, what: &str) {
        println!(
            "{what}: {} compared, {} ops, {} sizes, {} classes, {} texts differ; \
             {} are reserved or newer",
            self.compared,
            self.ops.len(),
            self.sizes,
            self.classes,
            self.texts,
            self.explained
        );
        let mut kinds: Vec<_> = self.kinds.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, example)) in kinds.into_iter().take(40) {
            println!("  {count:>6} {kind}: {example}");
        }
    }

    fn verdict(&self) -> Result<(), String> {
        match (self.sizes, self.classes, self.texts) {
            (0, 0, 0) => Ok(()),
            (sizes, classes, texts) => Err(format!(
                "{sizes} sizes, {classes} classes and {texts} texts differ"
            )),
        }
    }
}

/// All 2^16 encodings with low bits other than 11, with aliases and without.
///
/// # Errors
///
/// A missing objdump, and any difference that is not explained.
pub fn compressed(args: &[String]) -> Result<(), String> {
    let only = match args {
        [flag, width] if flag == "--xlen" => Some(format!("rv{width}")),
        [] => None,
        _ => return Err("usage: compressed [--xlen 32|64]".into()),
    };
    let words: Vec<u32> = (0..=0xffff).filter(|b| b & 3 != 3).collect();
    let plain = [
        "rv32imafdc_zicsr",
        "rv64imafdc_zicsr",
        "rv32imac",
        "rv64imac",
    ];
    let newer = [
        "rv32imac_zicsr_zcb_zcmp_zcmt_zba_zbb",
        "rv64imac_zicsr_zcb_zcmp_zcmt_zba_zbb",
        "rv64imac_zcmop_zimop",
    ];
    let mut verdict = Ok(());
    for tool in tools()? {
        let extra: &[&str] = if tool.dialect == Dialect::Binutils245 {
            &newer
        } else {
            &[]
        };
        for arch in plain.iter().chain(extra) {
            if only.as_ref().is_some_and(|o| !arch.starts_with(o.as_str())) {
                continue;
            }
            for aliases in [true, false] {
                let tally = compare(&tool, &words, 2, arch, aliases)?;
                tally.report(&format!("{} {arch}{}", tool.version, mode(aliases)));
                verdict = verdict.and(tally.verdict());
            }
        }
    }
    verdict
}

const fn mode(aliases: bool) -> &'static str {
    if aliases { "" } else { " -M no-aliases" }
}

const COMMON: &str = "imafdq_zicsr_zifencei_zicbom_zicbop_zicboz_zihintpause_zawrs_zfh_\
    zba_zbb_zbc_zbs_zbkb_zbkc_zbkx_zknd_zkne_zknh_zksed_zksh_svinval_h";
const NEWER: &str = "_zicond_zacas_zabha_zfa_zfbfmin_zimop_zicfiss_zicfilp_zihintntl_smctr_smrnmi";

/// Random words, most of them with the opcode and the function fields of
/// something that exists.
///
/// # Errors
///
/// A missing objdump, and any difference that is not explained.
pub fn random32(args: &[String]) -> Result<(), String> {
    let number = |at: usize, default: u64| match args.get(at) {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number")),
        None => Ok(default),
    };
    let count = number(0, 300_000)? as usize;
    let mut random = Random::new(number(1, 1)?);
    let mut verdict = Ok(());
    for tool in tools()? {
        let mut seen = BTreeSet::new();
        for width in ["rv32", "rv64"] {
            let newer = if tool.dialect == Dialect::Binutils245 {
                NEWER
            } else {
                ""
            };
            let arch = format!("{width}{COMMON}{newer}");
            let isa = Isa::parse(&arch).map_err(|e| e.to_string())?;
            let mut words = function_fields();
            words.extend((0..count).map(|_| instruction(&mut random, isa)));
            for aliases in [true, false] {
                let tally = compare(&tool, &words, 4, &arch, aliases)?;
                tally.report(&format!("{} {width}{}", tool.version, mode(aliases)));
                verdict = verdict.and(tally.verdict());
                seen.extend(tally.ops);
            }
        }
        let scalar = Op::FULL.iter().filter(|op| !op.name().starts_with('v'));
        report_missing(&tool.version, scalar.copied(), &seen);
    }
    verdict
}

/// Which ops have not been seen.
fn report_missing(version: &str, ops: impl Iterator<Item = Op>, seen: &BTreeSet<Op>) {
    let ops: BTreeSet<Op> = ops.collect();
    let missing: Vec<&str> = ops.difference(seen).map(|op| op.name()).collect();
    let compared = ops.len() - missing.len();
    println!("{version}: {compared} of {} ops compared", ops.len());
    println!("  not: {}", missing.join(" "));
}

const VECTOR: &str = "imafdv_zicsr_zifencei_zvl128b_zfh_zvfh";
const NEWER_VECTOR: &str = "_zfbfmin_zvfbfmin_zvfbfwma_zvbb_zvbc_zvkng_zvksg";

/// The vector opcodes: every value of the upper twelve bits, of funct3 and of
/// rs1, with an rd drawn for each.
///
/// # Errors
///
/// A missing objdump, and any difference.
pub fn vector32(args: &[String]) -> Result<(), String> {
    let seed = match args {
        [] => 1,
        [seed] => seed.parse().map_err(|_| format!("`{seed}` is no number"))?,
        _ => return Err("usage: vector32 [SEED]".into()),
    };
    let mut random = Random::new(seed);
    let mut verdict = Ok(());
    for tool in tools()? {
        let mut seen = BTreeSet::new();
        let newer = match tool.dialect {
            Dialect::Binutils240 => "",
            Dialect::Binutils245 => NEWER_VECTOR,
        };
        for width in ["rv32", "rv64"] {
            let arch = format!("{width}{VECTOR}{newer}");
            for opcode in [0x57, 0x77, 0x07, 0x27] {
                let words: Vec<u32> = (0..1 << 20)
                    .map(|fields| vector_word(&mut random, opcode, fields))
                    .collect();
                for aliases in [true, false] {
                    let tally = compare(&tool, &words, 4, &arch, aliases)?;
                    let what = format!("{} {width} {opcode:#04x}", tool.version);
                    tally.report(&format!("{what}{}", mode(aliases)));
                    verdict = verdict.and(tally.verdict());
                    seen.extend(tally.ops);
                }
            }
        }
        let isa = Isa::parse(&format!("rv64{VECTOR}{newer}")).map_err(|e| e.to_string())?;
        let ops = encodings(isa).map(|e| e.op);
        let vector = ops.filter(|op| op.name().starts_with('v'));
        report_missing(&tool.version, vector, &seen);
    }
    verdict
}

/// A word with these twenty bits around rd. Aliases ask for equal registers, so
/// that rd is often that of vs2.
fn vector_word(random: &mut Random, opcode: u32, fields: u32) -> u32 {
    let (top, rs1, funct3) = (fields >> 8, fields >> 3 & 31, fields & 7);
    let rd = match random.one_in(2) {
        true => top & 31,
        false => random.draw() as u32 & 31,
    };
    top << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

/// Every value of funct3, funct7 and rs2 under the opcodes that use them all,
/// with some registers and with x0.
fn function_fields() -> Vec<u32> {
    let opcodes = [0x73, 0x13, 0x1b, 0x33, 0x3b, 0x53, 0x2f, 0x0f];
    let fields = (0..4096).flat_map(|top| (0..8).map(move |f3| top << 20 | f3 << 12));
    fields
        .flat_map(|word| opcodes.map(|op| word | op))
        .flat_map(|word| {
            [
                word,
                word | 10 << 7,
                word | 5 << 15,
                word | 10 << 7 | 11 << 15,
            ]
        })
        .collect()
}

/// A word with low bits 11 but not of a longer encoding, and not a vector
/// instruction. Registers and immediates are often small or zero, which
/// is where the aliases are.
fn instruction(random: &mut Random, isa: Isa) -> u32 {
    loop {
        let mut word = random.draw() as u32 | 3;
        match random.below(4) {
            0 => word &= !(31 << 7),
            1 => word &= !(31 << 15),
            2 => word &= !(31 << 20),
            _ => {}
        }
        if random.one_in(8) {
            word &= 0x000f_ffff;
        }
        if random.one_in(8) {
            word = word & !(31 << 20) | (word >> 15 & 31) << 20;
        }
        let vector = word & 0x7f == 0x57
            || matches!(word & 0x7f, 0x07 | 0x27) && !matches!(word >> 12 & 7, 1..=4);
        // Tries a few times for something that is an instruction.
        let known = decode(word, isa).op != Op::Unknown;
        if word & 0x1f != 0x1f && !vector && (known || random.one_in(16)) {
            return word;
        }
    }
}

/// Whether this is one of the differences that `hartrace_isa`'s text module
/// lists: encodings that are reserved, or newer than the tool.
fn is_explained(bits: u32, inst: &Inst, isa: Isa, theirs: &str, ours: &str) -> bool {
    if inst.op != Op::Unknown {
        // Names of CSRs, and mnret, that the tool does not know.
        let number = format!("{:#x}", inst.csr());
        let named = csr::name(inst.csr()).is_some_and(|n| ours.replacen(n, &number, 1) == theirs);
        return named || bits == 0x7020_0073 || bits == 0xcdc0_4073;
    }
    let rv32 = isa.xlen() == Xlen::Rv32;
    let long_shift = match bits & 3 {
        1 => bits & 0xf803 == 0x9001,
        2 => bits & 0xf003 == 0x1002,
        _ => bits & 0x0200_107f == 0x0200_1013,
    };
    let no_list = bits & 3 == 2 && bits & 0xf803 == 0xb802 && bits & 0xf0 < 0x40;
    let round = bits & 0xff00_707f == 0x3100_1013 && bits >> 20 & 15 > 10;
    let gone = ["hret", "sfence.vm"].contains(&theirs.split('\t').next().unwrap_or_default());
    rv32 && long_shift || bits == 0x6101 || no_list || round || gone
}

fn compare(
    tool: &Tool,
    words: &[u32],
    size: usize,
    arch: &str,
    aliases: bool,
) -> Result<Tally, String> {
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|w| w.to_le_bytes().into_iter().take(size))
        .collect();
    let options: &[&str] = if aliases {
        &["-z"]
    } else {
        &["-z", "-Mno-aliases"]
    };
    let lines = tool.lines(&elf::code(&bytes, arch), options)?;
    let isa = Isa::parse(arch).map_err(|e| e.to_string())?;
    let mut style = Style::new(isa);
    style.aliases = aliases;
    style.dialect = tool.dialect;
    let mut tracker = Tracker::new(isa.xlen(), None);
    let mut tally = Tally::default();
    let mut lines = lines.iter();
    for (i, &bits) in words.iter().enumerate() {
        let pc = (i * size) as u64;
        let Some(line) = lines.next() else {
            return Err(format!("objdump stopped before {pc:#x}"));
        };
        let inst = decode(bits, isa);
        let note = tracker.note(&inst, pc, aliases);
        let ours = inst.text(pc, &style).resolve(&Bare).note(note).to_string();
        tally.compared += 1;
        tally.ops.insert(inst.op);
        tally.sizes += usize::from(line.address != pc || line.size != usize::from(inst.len));
        let class = Class::of(Flow::of(bits, isa));
        let explained = ours != line.text && is_explained(bits, &inst, isa, &line.text, &ours);
        tally.explained += usize::from(explained);
        if Class::of_text(&line.text) != class && !explained {
            tally.classes += 1;
        }
        if ours != line.text && !explained {
            tally.texts += 1;
            let name = |text: &str| text.split('\t').next().unwrap_or_default().to_owned();
            let kind = format!("{} -> {}", name(&line.text), name(&ours));
            let example = format!("{bits:08x} `{}` ours `{ours}`", line.text);
            tally.kinds.entry(kind).or_insert((0, example)).0 += 1;
        }
    }
    Ok(tally)
}
