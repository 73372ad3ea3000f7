use alloc::string::ToString;

use super::*;

const RV64: &[u8] = include_bytes!("../../../../programs/sieve/sieve-rv64gc.elf");
const RV32: &[u8] = include_bytes!("../../../../programs/sieve/sieve-rv32imac.elf");

/// Everything a file has, counted.
fn all(file: &[u8]) -> Result<[usize; 4], ElfError> {
    let elf = Elf::parse(file)?;
    let sections = elf.sections().unwrap_or_default();
    let names: usize = sections.iter().map(|s| s.name.bytes().len()).sum();
    let numbers = 0..sections.len();
    let relocations: usize = numbers
        .map(|section| elf.relocations(section).count())
        .sum();
    let notes = usize::from(elf.build_id().is_some());
    let symbols = elf.symbols(false).len() + elf.symbols(true).len();
    Ok([names, relocations, notes, symbols])
}

#[test]
fn a_program() {
    for (file, xlen, abi) in [(RV64, Xlen::Rv64, "lp64d"), (RV32, Xlen::Rv32, "ilp32")] {
        let elf = Elf::parse(file).unwrap();
        assert_eq!((elf.xlen(), elf.entry), (xlen, 0x8000_0000));
        assert_eq!(elf.kind, ElfKind::Executable);
        assert_eq!(elf.abi.to_string(), abi);
        let loads = elf.loads().unwrap();
        assert_eq!(loads[0].address, 0x8000_0000);
        assert_eq!(
            loads[0].data.map(<[u8]>::len),
            Some(loads[0].file_size as usize)
        );
        let sections = elf.sections().unwrap();
        let (number, text) = section_by_name(&sections, b".text").unwrap();
        assert!(text.executable && text.loaded && text.name.bytes() == b".text");
        let symbols = elf.symbols(false);
        let main = symbols.iter().find(|s| s.name.is(b"main")).unwrap();
        assert_eq!(main.place, Place::Section(number));
        assert!(
            !symbols
                .iter()
                .any(|s| s.name.is(b"mai") || s.name.is(b"main\0"))
        );
        assert_eq!(all(file).unwrap()[1..3], [0, 1]);
    }
}

#[test]
fn what_is_wrong_with_a_header() {
    assert_eq!(Elf::parse(b"").err(), Some(ElfError::NotElf));
    assert_eq!(Elf::parse(b"\x7fELF").err(), Some(ElfError::Truncated));
    assert_eq!(Elf::parse(&RV64[..63]).err(), Some(ElfError::Truncated));
    let with = |changes: &[(usize, u8)]| {
        let mut file = RV64.to_vec();
        changes.iter().for_each(|&(at, byte)| file[at] = byte);
        Elf::parse(&file).err()
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[(4, 3)]), Some(ElfError::Class(3)));
    assert_eq!(with(&[(5, 2)]), Some(ElfError::BigEndian));
    assert_eq!(with(&[(18, 62)]), Some(ElfError::Machine(62)));
    for place in [5, 6] {
        let error = with(&[(place, 9)]).unwrap();
        let text = "the ELF header: has an unknown version or byte order";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_name_ends_within_its_table() {
    let table = names(b"\0one\0two\0rest");
    assert_eq!(table, b"\0one\0two\0");
    let name = |at| Name::new(table, at);
    assert_eq!(name(1).bytes(), b"one");
    assert_eq!(name(2).bytes(), b"ne");
    assert!(name(5).is(b"two") && !name(5).is(b"tw") && name(0).is(b""));
    assert_eq!((name(9).tail(), name(9).bytes()), (None, &b""[..]));
    assert!(!name(u32::MAX).is(b""));
}

/// Cut anywhere, or with any byte of its tables changed, a file is read or
/// refused.
#[test]
fn any_file_is_read_or_refused() {
    for whole in [RV64, RV32] {
        for length in (0..whole.len()).step_by(61) {
            let _ = all(&whole[..length]);
        }
        let mut bytes = whole.to_vec();
        let tables = whole.len() - 64 * 22;
        for at in (0..0x100).chain(tables..whole.len()) {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let old = core::mem::replace(&mut bytes[at], value);
                let _ = all(&bytes);
                bytes[at] = old;
            }
        }
    }
}
