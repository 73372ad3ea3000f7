use super::*;

#[test]
fn versions_case_and_order_do_not_matter() {
    let plain = Isa::parse("rv64imafdc_zicsr_zifencei").unwrap();
    let attribute =
        Isa::parse("rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0_zifencei2p0_zmmul1p0").unwrap();
    assert_eq!(plain, attribute);
    assert_eq!(plain, Isa::parse("RV64GC").unwrap());
    assert_eq!(plain, Isa::RV64GC);
    assert_eq!(Isa::parse("rv32gc").unwrap(), Isa::RV32GC);
    assert_eq!(Isa::parse("rv64i2m2a2f2d2c2zicsr_zifencei").unwrap(), plain);
    assert_eq!(
        Isa::parse("rv64i2p0_m2p0_a2p0_f2p0_d2p0_c2p0").unwrap(),
        plain
    );
    assert!(!Isa::parse("rv64i2p1_m2p0").unwrap().has(Ext::Zicsr));
}

#[test]
fn compressed_floating_point_follows_the_base() {
    assert!(Isa::RV32GC.has(Ext::Zcf) && Isa::RV32GC.has(Ext::Zcd));
    assert!(!Isa::RV64GC.has(Ext::Zcf) && Isa::RV64GC.has(Ext::Zcd));
    assert!(!Isa::parse("rv64g").unwrap().has(Ext::Zca));
    assert!(Isa::parse("rv32imc_zce").unwrap().has(Ext::Zcmt));
}

#[test]
fn records_need_indirect_access() {
    // Smcsrind is that of all levels, Sscsrind that of the supervisor.
    for (name, machine, supervisor) in [
        ("smcsrind", true, true),
        ("sscsrind", false, true),
        ("smctr", true, true),
        ("ssctr", false, true),
        ("smstateen", false, false),
    ] {
        let isa = Isa::parse(&std::format!("rv64i_{name}")).unwrap();
        let has = (isa.has(Ext::Smcsrind), isa.has(Ext::Sscsrind));
        assert_eq!(has, (machine, supervisor), "{name}");
    }
}

#[test]
fn refusals_name_the_culprit() {
    assert_eq!(Isa::parse("x86"), Err(IsaError::Base("x86")));
    assert_eq!(Isa::parse("rv64"), Err(IsaError::BaseLetter("rv64")));
    assert_eq!(Isa::parse("rv64gcj"), Err(IsaError::Unknown("j")));
    assert_eq!(Isa::parse("rv64gc_zfoo1p0"), Err(IsaError::Unknown("zfoo")));
    assert_eq!(
        Isa::parse("rv64gc_zcmp"),
        Err(IsaError::Conflict(Ext::Zcd, Ext::Zcmp))
    );
    let lenient = Isa::parse_lenient("rv64gc_zcmp_zfoo").unwrap();
    assert!(lenient.has(Ext::Zcmp) && !lenient.has(Ext::Zcd));
    assert!(Isa::parse("rv64é").is_err());
}

#[test]
fn display_parses_back() {
    for text in [
        "rv32imac",
        "rv64gcv",
        "rv32e",
        "rv64gc_zba_zbb_zbs_smctr",
        "rv32imc_zce",
    ] {
        let isa = Isa::parse(text).unwrap();
        let mut shown = [0u8; 512];
        let mut cursor = Cursor(&mut shown, 0);
        fmt::write(&mut cursor, format_args!("{isa}")).unwrap();
        let used = cursor.1;
        let shown = core::str::from_utf8(&shown[..used]).unwrap();
        assert_eq!(Isa::parse(shown).unwrap(), isa, "{shown}");
    }
}

struct Cursor<'a>(&'a mut [u8], usize);
impl fmt::Write for Cursor<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0[self.1..self.1 + s.len()].copy_from_slice(s.as_bytes());
        self.1 += s.len();
        Ok(())
    }
}

#[test]
fn typing_mistakes_are_refused() {
    for name in [
        "zicnod",
        "smctrr",
        "zic46b",
        "ziccamo",
        "zama61b",
        "za64r",
        "za32rs",
        "zvl",
        "zvlb",
        "zvl16b",
        "zvl129b",
        "zvl131072b",
        "zve128x",
        "zvkx",
        "zvfhh",
        "smm",
        "ssaiaa",
        "ssx",
        "svnapo",
        "sv38",
        "sv",
        "sm1p99",
        "shx",
        "sdtrg",
        "supmm",
    ] {
        let text = std::format!("rv64gc_{name}");
        assert_eq!(Isa::parse(&text), Err(IsaError::Unknown(name)), "{name}");
        assert_eq!(Isa::parse_lenient(&text), Ok(Isa::RV64GC), "{name}");
    }
}

#[test]
fn names_without_instructions_change_nothing() {
    for &name in silent::NAMES {
        assert!(Ext::ALL.iter().all(|e| e.name() != name), "{name}");
        let upper = name.to_ascii_uppercase();
        for text in [
            std::format!("rv64gc_{name}"),
            std::format!("rv64gc{name}"),
            std::format!("RV64GC_{upper}_ZICSR"),
        ] {
            assert_eq!(Isa::parse(&text), Ok(Isa::RV64GC), "{text}");
        }
        if !name.ends_with(|c: char| c.is_ascii_digit()) {
            for version in ["1p0", "1"] {
                let text = std::format!("rv64gc_{name}{version}_zicsr2p0");
                assert_eq!(Isa::parse(&text), Ok(Isa::RV64GC), "{text}");
            }
        }
    }
    let names: std::collections::BTreeSet<_> = Isa::names().collect();
    assert_eq!(names.len(), Isa::names().count());
}

#[test]
fn every_name_is_accepted() {
    for name in Isa::names().filter(|n| !["i", "e"].contains(n)) {
        let text = std::format!("rv32i_{name}");
        assert!(Isa::parse(&text).is_ok(), "{name}");
    }
}

#[test]
fn vendors_name_their_extensions() {
    for name in ["xtheadba", "xventanacondops1p0", "XCValu", "xsfvcp", "xx"] {
        let text = std::format!("rv64gc_{name}");
        assert_eq!(Isa::parse(&text), Ok(Isa::RV64GC), "{name}");
    }
    // The modes of old simulators are no names.
    assert_eq!(Isa::parse("rv64imafdcsu_zicsr_zifencei"), Ok(Isa::RV64GC));
}

#[test]
fn vectors_imply_what_they_need() {
    let implies = |name: &str, all: &[Ext], none: &[Ext]| {
        let isa = Isa::parse(&std::format!("rv64i_{name}")).unwrap();
        assert!(all.iter().all(|e| isa.has(*e)), "{name}: {isa}");
        assert!(!none.iter().any(|e| isa.has(*e)), "{name}: {isa}");
    };
    use Ext::*;
    implies(
        "v",
        &[D, F, Zve64d, Zve64f, Zve64x, Zve32f, Zve32x, Zicsr],
        &[Zvkb, Zvfhmin],
    );
    implies("zve32x", &[Zicsr], &[F, Zve64x, Zve32f]);
    implies("zve64f", &[F, Zve64x, Zve32f], &[D, Zve64d]);
    implies("zvfh", &[Zvfhmin, Zfhmin, Zve32f, F], &[Zfh, Zve64x]);
    implies("zvfbfwma", &[Zvfbfmin, Zfbfmin, Zve32f], &[Zvfhmin]);
    implies("zvbb", &[Zvkb, Zve32x], &[Zvbc, Zve32f]);
    implies("zvbc", &[Zve64x], &[Zvbb]);
    implies(
        "zvkn",
        &[Zvkned, Zvknhb, Zvkb, Zve64x],
        &[Zvbb, Zvbc, Zvkg, Zvknha],
    );
    implies("zvknc", &[Zvkn, Zvbc], &[Zvkg]);
    implies("zvkng", &[Zvkn, Zvkg], &[Zvbc]);
    implies("zvks", &[Zvksed, Zvksh, Zvkb], &[Zvkned, Zvkg]);
    implies("zvksc", &[Zvks, Zvbc], &[Zvkg]);
    implies("zvksg", &[Zvks, Zvkg], &[Zvbc]);
    // As tool chains write it into ELF files.
    let arch = "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_v1p0_zicsr2p0_zifencei2p0_zmmul1p0_zaamo1p0_\
        zalrsc1p0_zca1p0_zcd1p0_zvbb1p0_zve32f1p0_zve32x1p0_zve64d1p0_zve64f1p0_zve64x1p0_\
        zvkb1p0_zvl128b1p0_zvl32b1p0_zvl64b1p0";
    assert_eq!(Isa::parse(arch), Isa::parse("rv64gcv_zvbb"));
}
