//! Small files made here; whole libraries are compared with objdump itself by
//! `hartrace-proof objdump`.

use super::*;

/// Name, value, size, type and binding, section.
pub(crate) type Sym = (&'static str, u64, u64, u8, u16);

const FUNC: u8 = 0x12;
const LOCAL_FUNC: u8 = 0x02;
const OBJECT: u8 = 0x11;
const NOTYPE: u8 = 0x00;
const ABS: u16 = 0xfff1;

/// A 64-bit executable with code at 0x10000 and these symbols.
pub(crate) fn elf(code: &[u8], symbols: &[Sym]) -> Vec<u8> {
    let names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let mut strings = vec![0];
    let mut table = vec![0u8; 24];
    for &(name, value, size, info, section) in symbols {
        table.extend((strings.len() as u32).to_le_bytes());
        table.extend([info, 0]);
        table.extend(section.to_le_bytes());
        table.extend(value.to_le_bytes());
        table.extend(size.to_le_bytes());
        strings.extend(name.as_bytes());
        strings.push(0);
    }
    let mut body = Vec::new();
    let mut at = Vec::new();
    for part in [code, &table, &strings, names] {
        body.resize(body.len().next_multiple_of(8), 0);
        at.push((64 + body.len() as u64, part.len() as u64));
        body.extend(part);
    }
    body.resize(body.len().next_multiple_of(8), 0);
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, v: u16| file.extend(v.to_le_bytes());
    half(&mut file, 2);
    half(&mut file, 243);
    file.extend(1u32.to_le_bytes());
    file.extend([0; 16]);
    file.extend((64 + body.len() as u64).to_le_bytes());
    file.extend([0; 4]);
    for v in [64, 0, 0, 64, 5, 4] {
        half(&mut file, v);
    }
    file.extend(&body);
    file.extend([0; 64]);
    // Name, type, flags, address, link, entry size.
    let sections = [
        (1u32, 1u32, 6u64, 0x10000u64, 0u32, 0u64),
        (7, 2, 0, 0, 3, 24),
        (15, 3, 0, 0, 0, 0),
        (23, 3, 0, 0, 0, 0),
    ];
    for ((name, kind, flags, address, link, entry), (offset, size)) in sections.iter().zip(at) {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for v in [*flags, *address, offset, size] {
            file.extend(v.to_le_bytes());
        }
        file.extend(link.to_le_bytes());
        file.extend(0u32.to_le_bytes());
        file.extend(8u64.to_le_bytes());
        file.extend(entry.to_le_bytes());
    }
    file
}

fn list(file: &[u8], options: &Listing) -> String {
    let mut out = Vec::new();
    listing(file, "a.elf", options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn sample() -> Vec<u8> {
    let mut code = Vec::new();
    code.extend(0x0000_1517u32.to_le_bytes()); // auipc a0,0x1
    code.extend(0x0105_3583u32.to_le_bytes()); // ld a1,16(a0)
    code.extend(0x0080_00efu32.to_le_bytes()); // jal .+8
    code.extend(0x8082u16.to_le_bytes());
    code.extend([1, 2]); // data
    code.extend(0x4501u16.to_le_bytes()); // helper: li a0,0
    code.extend([0; 10]);
    code.extend(0x8082u16.to_le_bytes());
    code.extend(*b"word\x01\x02"); // an object
    code.push(0x13); // half an instruction
    elf(
        &code,
        &[
            ("main", 0x10000, 14, FUNC, 1),
            ("zz_alias", 0x10000, 14, LOCAL_FUNC, 1),
            ("$x", 0x10000, 0, NOTYPE, 1),
            ("$d", 0x1000e, 0, NOTYPE, 1),
            ("$x", 0x10010, 0, NOTYPE, 1),
            ("helper", 0x10010, 4, FUNC, 1),
            ("table", 0x1001e, 6, OBJECT, 1),
            ("tail", 0x10024, 0, NOTYPE, 1),
            ("absolute", 0x11008, 0, NOTYPE, ABS),
        ],
    )
}

#[test]
fn a_small_program() {
    let expected = "
a.elf:     file format elf64-littleriscv


Disassembly of section .text:

0000000000010000 <main>:
   10000:\t00001517          \tauipc\ta0,0x1
   10004:\t01053583          \tld\ta1,16(a0) # 11010 <absolute+0x8>
   10008:\t008000ef          \tjal\t10010 <helper>
   1000c:\t8082                \tret
   1000e:\t0201                \t.short\t0x0201

0000000000010010 <helper>:
   10010:\t4501                \tli\ta0,0
\t...
   1001a:\t0000                \tunimp
   1001c:\t8082                \tret

000000000001001e <table>:
   1001e:\t6f77 6472 0201                              word..

0000000000010024 <tail>:
   10024:\t13    \tAddress 0x10024 is out of bounds.

   10028:\t\x20
";
    assert_eq!(list(&sample(), &Listing::default()), expected);
}

#[test]
fn options_are_honoured() {
    let plain = Listing {
        aliases: false,
        numeric: true,
        zeros: true,
        dialect: Dialect::Binutils245,
        isa: Isa::parse("rv64i").ok(),
        base: None,
    };
    let text = list(&sample(), &plain);
    assert!(text.contains("\tjal\tx1,10010 <helper>"));
    // Compressed instructions are not in force.
    assert!(text.contains("\t.insn\t2, 0x8082"));
    assert!(!text.contains("..."));
    assert!(text.contains("\t.byte\t0x13\n"));
}

/// The lowest loaded address goes to the base; everything keeps its distance
/// but what is absolute.
#[test]
fn a_base_moves_code_and_symbols() {
    let moved = Listing {
        base: Some(0x4000_0000),
        ..Listing::default()
    };
    // The sample has no segments: its addresses count from 0.
    let text = list(&sample(), &moved);
    for line in [
        "0000000040010000 <main>:",
        "    40010008:\t008000ef          \tjal\t40010010 <helper>",
        "    40010004:\t01053583          \tld\ta1,16(a0) # 40011010 <tail+0xfec>",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    const RV32: &[u8] = include_bytes!("../../../../programs/sieve/sieve-rv32imac.elf");
    let there = Listing {
        base: Some(0x9000_0000),
        ..Listing::default()
    };
    // What objdump's --adjust-vma shows but for the names, line by line: the
    // address and the bytes.
    let columns = |options: &Listing| -> Vec<(u64, String)> {
        let text = list(RV32, options);
        let line = |l: &str| {
            let (address, rest) = l.trim_start().split_once([':', ' '])?;
            let address = u64::from_str_radix(address, 16).ok()?;
            Some((address, rest.split('\t').nth(1).unwrap_or(rest).to_owned()))
        };
        text.lines().filter_map(line).collect()
    };
    let mut expected = columns(&Listing::default());
    expected.iter_mut().for_each(|l| l.0 += 0x1000_0000);
    assert!(columns(&there) == expected && expected.len() > 300);
    let top = Listing {
        base: Some(u64::MAX),
        ..Listing::default()
    };
    assert!(list(RV32, &top).contains("\nffffffff <_start>:"));
}

#[test]
fn raw_code() {
    let options = Listing {
        isa: Isa::parse("rv32imac").ok(),
        base: Some(0x1000),
        ..Listing::default()
    };
    let code = [
        0x97, 0x02, 0, 0, 0x93, 0x82, 0x42, 0x04, 0x01, 0xa0, 0x13, 0, 0, 0, 0,
    ];
    let raw = |code: &[u8], options: &Listing| {
        let mut out = Vec::new();
        raw_listing(code, "a\x1b.bin", options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let expected = "
a^[.bin:     file format binary


Disassembly of section .data:

00001000 <.data>:
    1000:\t00000297          \tauipc\tt0,0x0
    1004:\t04428293          \tadd\tt0,t0,68 # 0x1044
    1008:\ta001                \tj\t0x1008
    100a:\t00000013          \tnop
\t...
";
    assert_eq!(raw(&code, &options), expected);
    let wide = raw(&code, &Listing::default());
    assert!(
        wide.contains("\n0000000000000000 <.data>:\n   0:\t"),
        "{wide}"
    );
    assert!(raw(&[], &options).ends_with("file format binary\n\n"));
}

#[test]
fn symbols_at_one_address() {
    let symbols = Symbols::from_elf(&sample()).unwrap();
    assert_eq!(symbols.lookup(0x10000), Some(("main", 0)));
    assert_eq!(symbols.lookup(0x1000e), Some(("main", 14)));
    assert_eq!(symbols.lookup(0x10012), Some(("helper", 2)));
    assert_eq!(symbols.lookup(0xfff), None);
    assert_eq!(symbols.iter().count(), 6);
}

/// Local labels such as GCC's may hold control characters, which sort as they
/// are and are shown spelled out.
#[test]
fn control_characters_sort_before_they_are_spelled_out() {
    let labels = [
        (".L1218", 0x10000, 0, NOTYPE, 1),
        (".L1\u{2}4", 0x10000, 0, NOTYPE, 1),
    ];
    let text = list(&elf(&[0x01, 0xa0], &labels), &Listing::default());
    assert!(text.ends_with("\tj\t10000 <.L1^B4>\n"), "{text}");
}

#[test]
fn without_symbols_the_section_names_the_code() {
    let text = list(&elf(&[0x01, 0xa0], &[]), &Listing::default());
    assert!(text.contains("\n0000000000010000 <.text>:\n"));
    assert!(text.ends_with("\tj\t0x10000\n"));
}

#[test]
fn hostile_files_are_survived() {
    let file = sample();
    let mut out = Vec::new();
    for n in 0..file.len() {
        let _ = listing(&file[..n], "x", &Listing::default(), &mut out);
        out.clear();
    }
    for n in 0..file.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[n] = value;
            let _ = listing(&changed, "x", &Listing::default(), &mut out);
            let _ = Symbols::from_elf(&changed).map(|s| s.lookup(u64::MAX).is_some());
            out.clear();
        }
    }
    assert_eq!(Symbols::from_elf(b"\x7fELF").err(), Some(ElfError::NotElf));
}

/// A section that ends past the end of the address space.
#[test]
fn data_at_the_top_of_the_address_space_ends() {
    let mut file = elf(&[7; 32], &[("$d", u64::MAX - 15, 0, NOTYPE, 1)]);
    let headers = file.len() - 4 * 64;
    file[headers + 16..headers + 24].copy_from_slice(&(u64::MAX - 15).to_le_bytes());
    for dialect in [Dialect::Binutils240, Dialect::Binutils245] {
        let mut out = Vec::new();
        let options = Listing {
            dialect,
            ..Listing::default()
        };
        // Room for a text that ends.
        let mut room = [0; 4096];
        assert!(listing(&file, "a.out", &options, &mut &mut room[..]).is_ok());
        listing(&file, "a.out", &options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches(".word\t0x07070707").count(), 8, "{text}");
    }
}
