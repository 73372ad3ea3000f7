use super::*;
use hartrace_isa::{Isa, decode, encodings};

fn spec(seed: u64, isa: &str) -> Spec {
    Spec {
        seed,
        isa: isa.to_owned(),
        length: 300,
        topics: 0,
    }
}

#[test]
fn a_seed_is_a_program() {
    let one = make(&spec(7, FULL_ISA)).unwrap();
    assert_eq!(one, make(&spec(7, FULL_ISA)).unwrap());
    assert_ne!(one, make(&spec(8, FULL_ISA)).unwrap());
    assert!(make(&spec(0, "rv64nonsense")).is_err());
}

/// Without compressed instructions nothing is ever two bytes long, or the
/// handlers would skip into the middle of a word.
#[test]
fn words_stay_whole() {
    for seed in 0..20 {
        let file = make(&spec(seed, "rv32im_zicsr")).unwrap();
        // The first segment starts after the headers.
        let at = usize::try_from(u32::from_le_bytes(file[56..60].try_into().unwrap())).unwrap();
        let size = usize::try_from(u32::from_le_bytes(file[68..72].try_into().unwrap())).unwrap();
        for word in file[at..at + size].chunks(4) {
            let bits = u32::from_le_bytes(word.try_into().unwrap());
            assert_eq!(bits & 3, 3, "seed {seed}: {bits:#x}");
        }
    }
}

/// The part of an instruction set that programs contain by their text: all
/// but what has to be written by hand is in a few programs.
#[test]
fn a_few_programs_contain_everything() {
    let isa = Isa::parse(FULL_ISA).unwrap();
    let mut missing: Vec<_> = encodings(isa).map(|e| (e.op, e.short)).collect();
    for seed in 0..12 {
        let mut long = spec(seed, FULL_ISA);
        long.length = 3000;
        let file = make(&long).unwrap();
        for at in (0x1000..file.len() - 4).step_by(2) {
            let bits = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
            let inst = decode(bits, isa);
            missing.retain(|m| *m != (inst.op, inst.short));
        }
    }
    assert_eq!(missing, []);
}
