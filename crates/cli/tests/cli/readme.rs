//! What README.md shows is what happens.

use crate::{hartrace, repository, text};
use std::fs;

/// Blocks of ```` ```console ````: a command after `$ `, perhaps with
/// `| head -N`, then its output.
#[test]
fn samples_are_real() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let mut checked = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for sample in block.split("$ ").filter(|s| !s.is_empty()) {
            let (command, expected) = sample.split_once('\n').unwrap();
            let (command, lines) = match command.split_once(" | head -") {
                Some((command, lines)) => (command, lines.parse().unwrap()),
                None => (command, usize::MAX),
            };
            let mut words = command.split_whitespace();
            if words.next() != Some("hartrace") {
                continue;
            }
            let output = hartrace()
                .args(words)
                .current_dir(repository())
                .output()
                .unwrap();
            let shown = [&output.stdout[..], &output.stderr[..]].concat();
            let shown: String = text(&shown).split_inclusive('\n').take(lines).collect();
            assert_eq!(shown, expected, "{command}");
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn links_lead_somewhere() {
    let root = repository();
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for link in text.split("](").skip(1).filter_map(|l| l.split(')').next()) {
            let outside = link.contains("://") || link.starts_with('#');
            assert!(outside || root.join(link).exists(), "{page}: {link}");
        }
    }
}
