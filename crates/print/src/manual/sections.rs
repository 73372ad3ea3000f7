//! The sections of docs/diagnostics.md, which is part of the library.

use strsim::osa_distance;

/// `docs/diagnostics.md`.
const TEXT: &str = include_str!("../../diagnostics.md");

/// How many codes are suggested for one that does not exist.
const SUGGESTIONS: usize = 4;

/// What the manual says about one code.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// `HT0001` and so on.
    pub code: &'static str,
    /// What the code means.
    pub title: &'static str,
    /// What follows the heading, in Markdown.
    pub body: &'static str,
}

/// Every section, in the order of the manual.
pub fn sections() -> impl Iterator<Item = Section> {
    // The chapters have headings of one `#`.
    TEXT.split("\n# ")
        .flat_map(|chapter| chapter.split("\n## ").skip(1))
        .filter_map(|section| {
            let (heading, body) = section.split_once('\n')?;
            let (code, title) = heading.split_once(": ")?;
            Some(Section { code, title, body })
        })
}

/// The section of a code, in upper or lower case.
///
/// # Errors
///
/// An unknown code, with those that are similar.
pub fn find(code: &str) -> Result<Section, String> {
    let mut found = sections().filter(|s| s.code.eq_ignore_ascii_case(code));
    found.next().ok_or_else(|| match similar(code).as_slice() {
        [] => "no diagnostic has this code; `hartrace explain` lists them".to_owned(),
        codes => format!(
            "no diagnostic has this code; did you mean {}?",
            codes.join(" or ")
        ),
    })
}

/// The codes that differ least from one that does not exist; none if they all
/// differ a lot.
fn similar(code: &str) -> Vec<&'static str> {
    let code = code.to_ascii_uppercase();
    // A long text is no code, and comparing it would take long.
    if code.len() > 16 {
        return Vec::new();
    }
    let distances = || sections().map(|s| (osa_distance(&code, s.code), s.code));
    let Some(least) = distances().map(|(d, _)| d).min().filter(|&d| d <= 2) else {
        return Vec::new();
    };
    let nearest = distances().filter(|&(d, _)| d == least).map(|(_, c)| c);
    nearest.take(SUGGESTIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_end_where_a_chapter_does() {
        assert!(sections().count() > 150);
        for section in sections() {
            assert_eq!(section.code.len(), 6, "{}", section.code);
            assert!(!section.title.is_empty() && section.body.contains("**Remedy.**"));
            let heading = section.body.lines().any(|line| line.starts_with("# "));
            assert!(!heading, "{}", section.code);
        }
    }

    #[test]
    fn a_mistyped_code_finds_its_neighbours() {
        assert_eq!(similar("HTO101"), ["HT0101"]);
        assert_eq!(similar("ht101"), ["HT0101"]);
        assert!(similar("nt0110").contains(&"NT0101"));
        assert!(similar("E0308-and-more-than-a-code").is_empty());
        assert!(similar("").is_empty());
    }
}
