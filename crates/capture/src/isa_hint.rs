//! Which ISA string was probably meant by one that was refused.

use hartrace_isa::{Isa, IsaError};

/// The string with one typing mistake mended: a letter too much, missing,
/// wrong, or two in the wrong order. Nothing if that does not make it right.
#[must_use]
pub fn nearest(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    match Isa::parse(&lower) {
        Ok(_) => None,
        // One letter is too short to guess from.
        Err(IsaError::Unknown(name)) if name.len() > 1 => {
            let known = neighbours(name).find(|other| is_extension(other))?;
            let mended = lower.replacen(name, &known, 1);
            Isa::parse(&mended).is_ok().then_some(mended)
        }
        Err(IsaError::Base(_)) => neighbours(&lower).find(|other| Isa::parse(other).is_ok()),
        Err(_) => None,
    }
}

/// Whether this is the name of an extension, not only of something accepted
/// without being known.
fn is_extension(name: &str) -> bool {
    let with = format!("rv64i_{name}");
    let isa = Isa::parse(&with).ok();
    isa.is_some_and(|isa| isa.extensions().any(|e| e.name() == name))
}

/// Every text one mistake away, likelier mistakes first.
fn neighbours(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    let letters = || ('a'..='z').chain('0'..='9');
    let length = chars.len();
    let edit = {
        let chars = chars.clone();
        move |at: usize, remove: usize, insert: &[char]| -> String {
            let before = chars.iter().take(at);
            let after = chars.iter().skip(at + remove);
            before.chain(insert).chain(after).collect()
        }
    };
    let pairs: Vec<[char; 2]> = chars.windows(2).filter_map(|w| w.try_into().ok()).collect();
    let mut all = Vec::new();
    all.extend(
        pairs
            .iter()
            .enumerate()
            .map(|(at, [a, b])| edit(at, 2, &[*b, *a])),
    );
    all.extend((0..length).map(|at| edit(at, 1, &[])));
    all.extend(
        (0..=length)
            .flat_map(|at| letters().map(move |c| (at, c)))
            .map(|(at, c)| edit(at, 0, &[c])),
    );
    all.extend(
        (0..length)
            .flat_map(|at| letters().map(move |c| (at, c)))
            .map(|(at, c)| edit(at, 1, &[c])),
    );
    all.into_iter()
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
}
