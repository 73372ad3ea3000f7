use std::collections::HashMap;
use std::process::Command;

use hartrace_flow::{Image, SpaceId};
use hartrace_isa::{Flow, Xlen};

use super::*;
use crate::generate::Spec;

fn shapes() -> impl Iterator<Item = Program> {
    let named = Spec::NAMES
        .iter()
        .filter(|n| **n != "flat-out")
        .filter_map(|n| Spec::named(n));
    let some = (0..20).map(Spec::arbitrary);
    named
        .chain(some)
        .enumerate()
        .map(|(seed, spec)| Program::new(&spec, seed as u64))
}

#[test]
fn the_file_gives_the_image_back() {
    for program in shapes() {
        let image = Image::from_elf(&program.to_elf()).unwrap();
        assert_eq!(image.isa(), Some(program.isa()));
        for (pc, bits) in program.instructions() {
            let fetched = image.fetch(SpaceId::FIRST, pc).unwrap();
            assert_eq!(fetched.bits, bits, "{pc:#x}");
        }
        let segments: Vec<_> = image.segments(SpaceId::FIRST).map(|s| s.0).collect();
        let mut own: Vec<_> = program.segments().iter().map(|s| s.base).collect();
        own.sort_unstable();
        assert_eq!(segments, own);
    }
}

/// Address and bits of every instruction another disassembler sees, and its
/// text.
fn disassemble(program: &Program, name: &str) -> Option<HashMap<u64, (u64, String)>> {
    let dir = std::env::temp_dir();
    let file = dir.join(format!("hartrace-{}-{name}.elf", std::process::id()));
    std::fs::write(&file, program.to_elf()).unwrap();
    let output = Command::new("riscv64-unknown-elf-objdump")
        .args(["-d", "-z", "-M", "no-aliases"])
        .arg(&file)
        .output();
    let _ = std::fs::remove_file(&file);
    let output = output.ok()?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut list = HashMap::new();
    for line in text.lines() {
        let mut fields = line.trim().splitn(3, '\t');
        let Some(pc) = fields.next().and_then(|f| f.strip_suffix(':')) else {
            continue;
        };
        let Ok(pc) = u64::from_str_radix(pc, 16) else {
            continue;
        };
        let Ok(bits) = u64::from_str_radix(fields.next().unwrap_or("").trim(), 16) else {
            continue;
        };
        list.insert(pc, (bits, fields.next().unwrap_or("").to_owned()));
    }
    Some(list)
}

#[test]
fn another_disassembler_sees_the_same_instructions_and_targets() {
    for (nth, program) in shapes().enumerate() {
        let Some(list) = disassemble(&program, &nth.to_string()) else {
            println!("skipped: riscv64-unknown-elf-objdump is not installed");
            return;
        };
        let xlen = program.isa().xlen();
        let sign = |pc: u64| match xlen {
            // The tool shows RV32 addresses with 32 bits.
            Xlen::Rv32 => pc & 0xffff_ffff,
            Xlen::Rv64 => pc,
        };
        for (pc, bits) in program.instructions() {
            let length = hartrace_isa::length(bits as u16);
            if length > 4 {
                continue;
            }
            let (seen, text) = list.get(&pc).unwrap_or_else(|| panic!("{pc:#x}"));
            assert_eq!(*seen, u64::from(bits), "{pc:#x} {text}");
            if text.starts_with('.') {
                // An instruction newer than the tool.
                continue;
            }
            let flow = Flow::of(bits, program.isa());
            if !matches!(flow, Flow::Branch { .. } | Flow::Jump { .. }) {
                let other = ["b", "c.b", "j", "c.j", "mret", "sret", "cm.j"];
                let jumps = other.iter().any(|p| text.starts_with(p));
                assert_eq!(
                    jumps && !text.starts_with("c.bexti"),
                    !flow.is_sequential() && flow != Flow::Trap && flow != Flow::PopReturn,
                    "{pc:#x} {bits:#x} {text}"
                );
                continue;
            }
            let target = text.split(['\t', ',', ' ']).find_map(|word| {
                let word = word.strip_prefix("0x").unwrap_or(word);
                u64::from_str_radix(word, 16)
                    .ok()
                    .filter(|&t| sign(t) == flow.target(pc, xlen).unwrap())
            });
            assert!(target.is_some(), "{pc:#x} {text}");
        }
    }
}
