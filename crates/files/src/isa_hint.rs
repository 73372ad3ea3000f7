//! Suggestions for misspelled ISA strings, and the extensions of an ISA string
//! that are not decoded.

use hartrace_isa::{Isa, IsaError};
use strsim::osa_distance;

/// No extension has a longer name.
const LONGEST: usize = 64;

/// The string with one typing mistake mended: a letter too much, missing,
/// wrong, or two in the wrong order. Nothing if that does not make it right.
#[must_use]
pub fn nearest(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    match Isa::parse(&lower) {
        // One letter is too short to guess from.
        Err(IsaError::Unknown(name)) if (2..=LONGEST).contains(&name.len()) => {
            let mut names = Isa::names().filter(|known| known.len() > 1);
            let known = names.find(|known| osa_distance(name, known) == 1)?;
            let mended = lower.replacen(name, known, 1);
            Isa::parse(&mended).is_ok().then_some(mended)
        }
        Err(IsaError::Base(_)) => base(&lower),
        _ => None,
    }
}

/// The string with its first letters made those of a base.
fn base(text: &str) -> Option<String> {
    let splits = (3..=5).filter_map(|length| text.split_at_checked(length));
    splits
        .flat_map(|split| ["rv64", "rv32"].map(|base| (split, base)))
        .filter(|((head, _), base)| osa_distance(head, base) == 1)
        .map(|((_, rest), base)| format!("{base}{rest}"))
        .find(|mended| Isa::parse(mended).is_ok())
}

/// The vendor extensions in an ISA string and the ones whose names are not known:
/// their instructions have no text.
#[must_use]
pub fn undecoded(isa: &str) -> Vec<String> {
    let isa = isa.to_ascii_lowercase();
    let letters = isa.strip_prefix("rv32").or(isa.strip_prefix("rv64"));
    let parts = letters.unwrap_or_default().split('_');
    // Names of several letters may follow the single ones directly.
    let names = parts.filter_map(|part| part.get(part.find(['z', 's', 'x'])?..));
    names
        // The modes of old simulators, not extensions.
        .filter(|name| !["s", "su"].contains(name))
        .filter(|name| {
            let is = |known: &str| known == *name || known == without_version(name);
            name.starts_with('x') || !Isa::names().any(is)
        })
        .map(|name| without_version(name).to_owned())
        .collect()
}

/// `zvbb` of `zvbb1p0`.
fn without_version(name: &str) -> &str {
    let digits = |text: &'_ str| text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let minor = name.get(..digits(name)).unwrap_or(name);
    match minor.strip_suffix('p') {
        Some(major) if major.ends_with(|c: char| c.is_ascii_digit()) => {
            major.get(..digits(major)).unwrap_or(name)
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mistake_is_mended() {
        for (text, meant) in [
            ("rv64gc_zbaa", "rv64gc_zba"),
            ("rv64gc_zfhmni", "rv64gc_zfhmin"),
            ("rv64gc_zifence", "rv64gc_zifencei"),
            ("vr64gc", "rv64gc"),
            ("rv46gc", "rv64gc"),
            ("r64gc", "rv64gc"),
            ("rv4gc", "rv64gc"),
            ("rv3imc", "rv32imc"),
            ("rv3ec", "rv32ec"),
            ("rv65gc", "rv64gc"),
            ("rrv32imc", "rv32imc"),
            ("RV46GC_Zba", "rv64gc_zba"),
            ("rv64gc_zicnod", "rv64gc_zicond"),
            ("rv64gc_smctrr", "rv64gc_smctr"),
            ("rv64gc_ssiaa1p0_zba", "rv64gc_ssaia1p0_zba"),
            ("rv64gcv_zvl129b", "rv64gcv_zvl128b"),
            ("rv64gc_sv4", "rv64gc_sv48"),
        ] {
            assert_eq!(nearest(text).as_deref(), Some(meant), "{text}");
        }
        assert!(nearest("rv64gc_zihpn").is_some());
    }

    #[test]
    fn no_guess_is_better_than_a_wild_one() {
        for text in [
            "",
            "x86",
            "rv64gc",
            "rv64gcj",
            "rv64gc_zqqqq",
            "rv64",
            "rv64gc_zcmp",
            "é",
        ] {
            assert_eq!(nearest(text), None, "{text}");
        }
    }
    #[test]
    fn long_strings_are_not_guessed_at_length() {
        let start = std::time::Instant::now();
        let long = "y".repeat(1 << 20);
        for text in [
            long.clone(),
            format!("rv64gc_z{long}"),
            format!("rv64gc_zb{}", "y".repeat(LONGEST)),
            format!("vr64gc_z{long}"),
        ] {
            assert_eq!(nearest(&text), None);
        }
        // A long string may have a short mistake.
        let many = "_zba".repeat(1000);
        let mended = format!("rv64gc{many}_zicond");
        assert_eq!(nearest(&format!("rv64gc{many}_zicnod")), Some(mended));
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }

    #[test]
    fn vendor_and_unknown_extensions() {
        for (isa, names) in [
            ("rv64gc", &[][..]),
            ("rv64imac_zicsr_zvl128b1p0_svinval_sm1p13_sv39", &[]),
            (
                "rv64i2p1_m2p0_v1p0_zve32x1p0_zvl32b1p0_zvkng1p0_zvkt1p0",
                &[],
            ),
            ("rv64imafdcsu", &[]),
            ("rv32imzve32x1p0_xtheadba1p0", &["xtheadba"]),
            ("RV64GC_Zvbb_Xcv2", &["xcv2"]),
            ("rv64gc_zfuture0p7_zba1p0", &["zfuture"]),
        ] {
            assert_eq!(undecoded(isa), names, "{isa}");
        }
    }
}
