//! Small ELF files, made by hand.

use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::Write as _;

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOTE: u32 = 7;

/// An ELF file for RV64 with these sections: name, type, flags, link, content.
fn elf(sections: &[(&str, u32, u64, u32, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut all = vec![("", 0, 0, 0, Vec::new())];
    all.extend(sections.iter().cloned());
    all.push((".shstrtab", STRTAB, 0, 0, Vec::new()));
    let places: Vec<usize> = all
        .iter()
        .map(|(name, ..)| {
            let at = names.len();
            names.extend(name.bytes().chain([0]));
            at
        })
        .collect();
    let count = all.len();
    all[count - 1].4 = names;
    let mut file = vec![0; 64];
    let mut headers = Vec::new();
    for ((_, kind, flags, link, data), name) in all.iter().zip(places) {
        let entry = if *kind == SYMTAB { 24 } else { 0 };
        let offset = file.len() as u64;
        file.extend(data);
        headers.extend((name as u32).to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for word in [*flags, 0, offset, data.len() as u64] {
            headers.extend(word.to_le_bytes());
        }
        headers.extend(link.to_le_bytes());
        headers.extend(0u32.to_le_bytes());
        for word in [1, entry] {
            headers.extend(u64::to_le_bytes(word));
        }
    }
    let table = file.len() as u64;
    file.extend(headers);
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16] = 2;
    file[18] = 243;
    file[20] = 1;
    file[40..48].copy_from_slice(&table.to_le_bytes());
    file[52] = 64;
    file[58] = 64;
    file[60] = count as u8;
    file[62] = count as u8 - 1;
    file
}

type SectionOf<'a> = (&'a str, u32, u64, u32, Vec<u8>);

fn build_id(id: &[u8]) -> SectionOf<'static> {
    let mut note = Vec::new();
    for word in [4, id.len() as u32, 3] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"GNU\0");
    note.extend(id);
    (".note.gnu.build-id", NOTE, 2, 0, note)
}

fn link_to(name: &str, content: &[u8]) -> SectionOf<'static> {
    let mut data = [name.as_bytes(), &[0]].concat();
    data.resize(data.len().next_multiple_of(4), 0);
    let mut crc = Crc::new();
    crc.update(content);
    data.extend(crc.sum().to_le_bytes());
    (".gnu_debuglink", PROGBITS, 0, 0, data)
}

/// A file with a symbol and something that is called DWARF, and this before.
fn full(before: Option<SectionOf<'static>>) -> Vec<u8> {
    let mut symbols = vec![0; 24];
    symbols.extend([1, 0, 0, 0, 0x12, 0, 0xf1, 0xff]);
    symbols.extend([0; 16]);
    let mut sections: Vec<SectionOf<'_>> = before.into_iter().collect();
    let strings = sections.len() as u32 + 1;
    sections.push((".strtab", STRTAB, 0, 0, b"\0main\0".to_vec()));
    sections.push((".symtab", SYMTAB, 0, strings, symbols));
    sections.push((".debug_info", PROGBITS, 0, 0, b"dwarf".to_vec()));
    elf(&sections)
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn folder(&self, name: &str) -> Vec<PathBuf> {
        vec![self.0.path().join(name)]
    }
}

const ID: [u8; 4] = [0xab, 0xcd, 0xef, 0x01];

#[test]
fn debug_files_by_build_id() {
    for layout in ["", "usr/lib/debug/", "lib/debug/"] {
        let place = Place::new();
        let stripped = elf(&[build_id(&ID)]);
        let program = place.file("bin/program", &stripped);
        assert!(find(&program, &stripped, &place.folder("d")).is_none());
        let name = format!("d/{layout}.build-id/ab/cdef01.debug");
        // One with another build id is not it.
        place.file(&name, &full(Some(build_id(&[0xab, 0xcd, 0xef, 2]))));
        assert!(find(&program, &stripped, &place.folder("d")).is_none());
        let right = place.file(&name, &full(Some(build_id(&ID))));
        let found = find(&program, &stripped, &place.folder("d")).unwrap();
        assert_eq!(found.path, right);
        assert!(found.symbols && found.lines);
        assert!(find(&program, &stripped, &[]).is_none());
    }
}

#[test]
fn debug_files_by_link() {
    let debug = full(None);
    let stripped = elf(&[link_to("program.debug", &debug)]);
    let beside = ["bin/program.debug", "bin/.debug/program.debug"];
    for name in beside.iter().chain(&["d/program.debug"]) {
        let place = Place::new();
        let program = place.file("bin/program", &stripped);
        let folders = place.folder("d");
        // One with another checksum is not it.
        place.file(name, &full(Some(build_id(&ID))));
        assert!(find(&program, &stripped, &folders).is_none());
        let right = place.file(name, &debug);
        let found = find(&program, &stripped, &folders).unwrap();
        assert_eq!(found.path, right);
        // Without folders, only what is beside the program is found.
        assert_eq!(
            find(&program, &stripped, &[]).is_some(),
            beside.contains(name)
        );
    }
    // At the place of the program below a folder.
    let place = Place::new();
    let program = place.file("bin/program", &stripped);
    let inside = program.parent().unwrap().canonicalize().unwrap();
    let inside = inside.strip_prefix("/").unwrap().join("program.debug");
    let right = place.file(&format!("d/{}", inside.display()), &debug);
    let found = find(&program, &stripped, &place.folder("d")).unwrap();
    assert_eq!(found.path, right);
}

#[test]
fn links_out_of_a_folder_are_not_followed() {
    for name in ["../program.debug", "/etc/passwd", "a/b", "", ".", ".."] {
        let (_, _, _, _, data) = link_to(name, b"");
        assert_eq!(debug_link(&data), None, "{name}");
    }
    assert_eq!(debug_link(b"a"), None);
    assert_eq!(debug_link(b"a\0\0\0\x01\x02"), None);
    let (_, _, _, _, data) = link_to("abc", b"");
    assert_eq!(debug_link(&data), Some((PathBuf::from("abc"), 0)));
}

#[test]
fn a_program_that_has_everything_wants_nothing() {
    let place = Place::new();
    let whole = full(Some(build_id(&ID)));
    let program = place.file("bin/program", &whole);
    place.file("d/.build-id/ab/cdef01.debug", &whole);
    assert!(find(&program, &whole, &place.folder("d")).is_none());
    assert!(find(&program, b"no ELF", &place.folder("d")).is_none());
}

fn packed(kind: u32, size: u64, content: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    data.extend(u64::from(kind).to_le_bytes());
    for word in [size, 1] {
        data.extend(word.to_le_bytes());
    }
    let mut zlib = ZlibEncoder::new(data, Compression::default());
    zlib.write_all(content).unwrap();
    zlib.finish().unwrap()
}

#[test]
fn compressed_sections_are_unpacked() {
    let content = b"dwarf ".repeat(100);
    let with = |data: Vec<u8>| elf(&[(".debug_info", PROGBITS, 0x800, 0, data)]);
    let place = Place::new();
    let file = with(packed(1, 600, &content));
    let program = place.file("program", &file);
    let found = find(&program, &file, &[]).unwrap();
    assert!(found.lines && !found.symbols);
    let elf = Elf::parse(&found.bytes).unwrap();
    let sections = elf.sections().unwrap();
    let (_, section) = section_by_name(&sections, b".debug_info").unwrap();
    assert_eq!(section.data, Some(content.as_slice()));
    // Not more than the header promises, and nothing that cannot be.
    let short = unpack(&with(packed(1, 6, &content))).unwrap();
    assert!(short.len() < 1000);
    assert_eq!(unpack(&with(packed(1, u64::MAX, &content))), None);
    assert_eq!(unpack(&with(vec![1, 0, 0])), None);
    for at in 24..file.len() {
        // Any bytes do.
        let mut damaged = file.clone();
        damaged[at] ^= 0xff;
        let _ = find(&program, &damaged, &[]);
    }
}
