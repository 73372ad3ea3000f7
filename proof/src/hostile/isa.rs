//! Instructions, ISA strings and attributes.

use hartrace_isa::attributes::Attributes;
use hartrace_isa::csr::Priv;
use hartrace_isa::{Dialect, Flow, Isa, Op, Style, Tracker, decode as decode_inst, length};

use super::{Input, ensure};

/// Instruction sets that disagree about the same bits.
pub(super) const SETS: [&str; 12] = [
    "rv64gc",
    "rv32gc",
    "rv64i",
    "rv32e",
    "rv32imac_zicsr",
    "rv64imac_zcb_zcmp_zcmt",
    "rv32imac_zce",
    "rv64gc_zba_zbb_zbc_zbs_zbkb_zbkx_zknd_zkne_zknh_zksed_zksh",
    "rv64imafdqc_zfh_zfa_zfbfmin_zicond_zacas_zabha_zawrs",
    "rv32imac_zfinx_zdinx_zhinx",
    "rv64gc_zimop_zcmop_zicfiss_zicfilp",
    "rv64gcvh_svinval_smrnmi_zicbom_zicbop_zicboz_zihintntl",
];

/// One of [`SETS`].
pub(super) fn set(input: &mut Input<'_>) -> Isa {
    let text = input.pick(&SETS).unwrap_or_default();
    Isa::parse_lenient(text).unwrap_or(Isa::RV64GC)
}

/// The class of flow that an op has, as the names of both tell.
fn class(op: Op) -> &'static str {
    match op.name() {
        "beq" | "bne" | "blt" | "bge" | "bltu" | "bgeu" => "branch",
        "jal" => "jump",
        "jalr" => "indirect",
        "ecall" | "ebreak" => "trap",
        "mret" | "sret" | "uret" | "mnret" | "dret" => "return",
        "cm.jt" | "cm.jalt" => "table",
        "cm.popret" | "cm.popretz" => "popret",
        _ => "next",
    }
}

fn class_of(flow: Flow) -> &'static str {
    match flow {
        Flow::Seq | Flow::Const { .. } => "next",
        Flow::Branch { .. } => "branch",
        Flow::Jump { .. } => "jump",
        Flow::Table { .. } => "table",
        Flow::Indirect { .. } => "indirect",
        Flow::PopReturn => "popret",
        Flow::TrapReturn => "return",
        Flow::Trap => "trap",
    }
}

/// Decoding, classification and text are total, agree with each other and have
/// bounded length.
pub(super) fn decode(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let isa = set(&mut input);
    let choices = input.byte();
    let style = Style {
        isa,
        aliases: choices & 1 != 0,
        numeric: choices & 2 != 0,
        dialect: if choices & 4 != 0 {
            Dialect::Binutils245
        } else {
            Dialect::Binutils240
        },
        privileged: Priv::from_numbers(1, 10 + u32::from(choices >> 3 & 3)).unwrap_or_default(),
    };
    let mut pc = input.number(8);
    let mut tracker = Tracker::new(isa.xlen(), (choices & 32 != 0).then_some(pc));
    let mut text = String::new();
    for _ in 0..64 {
        if input.is_empty() {
            break;
        }
        let raw = input.rest();
        let bits = input.number(4) as u32;
        let inst = decode_inst(bits, isa);
        let blame = |what: &str| format!("{bits:#010x} {isa}: {what}");
        ensure(inst.len == length(bits as u16), || blame("its length"))?;
        let flow = Flow::of(bits, isa);
        ensure(class(inst.op) == class_of(flow), || {
            blame(&format!("{:?} but {flow:?}", inst.op))
        })?;
        if let Some(to) = flow.target(pc, isa.xlen()) {
            ensure(isa.xlen().wrap(to) == to, || blame("its target"))?;
        }
        let note = tracker.note(&inst, pc, style.aliases);
        text.clear();
        let shown = inst.text(pc, &style).note(note).raw(raw);
        std::fmt::write(&mut text, format_args!("{shown}")).map_err(|e| e.to_string())?;
        let fair = text.chars().all(|c| c == '\t' || !c.is_control());
        ensure(!text.is_empty() && text.len() < 160 && fair, || {
            blame(&format!("its text {text:?}"))
        })?;
        pc = isa.xlen().wrap(pc.wrapping_add(u64::from(inst.len)));
    }
    Ok(())
}

pub(super) fn decode_seeds() -> Vec<Vec<u8>> {
    let words = [
        0x0000_0013u32,
        0xfe05_1ce3,
        0x0000_8067,
        0x0000_0073,
        0x3020_0073,
        0x0005_2503,
        0x00c5_8533,
        0x1005_202f,
        0xc000_1073,
        0x0015_8553,
        0xa002_8082,
        0xbe22_9002,
        0x0000_007f,
        0x0000_703f,
        0x0000_801f,
    ];
    let seed = |set: usize| {
        let mut seed = vec![set as u8, set as u8 * 5];
        seed.extend_from_slice(&0x8000_0000u64.to_le_bytes());
        seed.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        seed
    };
    (0..SETS.len()).map(seed).collect()
}

/// Any text is an ISA string or is not; what is accepted strictly is accepted
/// leniently too, and what is in force can be written down and read back.
pub(super) fn string(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let lenient = Isa::parse_lenient(&text);
    match Isa::parse(&text) {
        Ok(isa) => {
            ensure(lenient == Ok(isa), || format!("{isa} but {lenient:?}"))?;
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
    let Ok(isa) = lenient else {
        return Ok(());
    };
    let spelled = isa.to_string();
    // A base of `i` or `e` has to come first.
    let again = Isa::parse_lenient(&spelled);
    ensure(again == Ok(isa), || {
        format!("{text:?} is {spelled}, which is {again:?}")
    })
}

pub(super) fn string_seeds() -> Vec<Vec<u8>> {
    let more = [
        "RV64IMAFDC",
        "rv32i2p1_m2p0_a2p1_c2p0_zicsr2p0_zifencei2p0_zmmul1p0",
        "rv64gczba1p0_xthead_zve32x",
        "rv64imafd_zcmp",
        "rv32e1p9_s_u",
        "rv64g_zvl128b1p0_sscofpmf",
    ];
    let all = SETS.iter().chain(&more);
    all.map(|s| s.as_bytes().to_vec()).collect()
}

/// What attributes say lies in them, and is read in one pass.
pub(super) fn attributes(bytes: &[u8]) -> Result<(), String> {
    let found = Attributes::read(bytes);
    let Some(arch) = found.arch else {
        return Ok(());
    };
    let inside = bytes.as_ptr_range();
    let range = arch.as_bytes().as_ptr_range();
    ensure(
        inside.start <= range.start && range.end <= inside.end,
        || "the arch string lies elsewhere".into(),
    )?;
    let _ = Isa::parse_lenient(arch);
    Ok(())
}

pub(super) fn attributes_seeds() -> Vec<Vec<u8>> {
    vec![
        b"A\x1f\0\0\0riscv\0\x01\x15\0\0\0\x04\x10\x05rv64i2p1\0\x08\x01\x0a\x0b".to_vec(),
        b"A\x16\0\0\0riscv\0\x01\x0c\0\0\0\x05rv32i\0".to_vec(),
        b"A\x0a\0\0\0other\0\x16\0\0\0riscv\0\x01\x0c\0\0\0\x05rv32i\0".to_vec(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compressed_encoding_is_of_one_class() {
        let system = [0u32, 1, 2, 0x102, 0x302, 0x702, 0x7b2, 0x105];
        for text in SETS {
            let isa = Isa::parse_lenient(text).unwrap();
            let short = (0..=u32::from(u16::MAX)).filter(|b| b & 3 != 3);
            for bits in short.chain(system.map(|s| s << 20 | 0x73)) {
                let (op, flow) = (decode_inst(bits, isa).op, Flow::of(bits, isa));
                assert_eq!(class(op), class_of(flow), "{bits:#x} {text} {op:?}");
            }
        }
    }
}
