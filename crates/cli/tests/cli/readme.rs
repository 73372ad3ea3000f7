//! What README.md shows is what happens.

use crate::{hartrace, repository, text};
use std::fs;

/// Blocks of ```` ```console ````: a command after `$ `, then its output.
#[test]
fn samples_are_real() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let mut checked = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for sample in block.split("$ ").filter(|s| !s.is_empty()) {
            let (command, expected) = sample.split_once('\n').unwrap();
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
            assert_eq!(text(&shown), expected, "{command}");
            checked += 1;
        }
    }
    assert!(checked > 0);
}

#[test]
fn links_lead_somewhere() {
    let root = repository();
    // The architecture page has its own author and may come later.
    let known = ["ARCHITECTURE.md"];
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for link in text.split("](").skip(1).filter_map(|l| l.split(')').next()) {
            let outside = link.contains("://") || link.starts_with('#');
            let exists = root.join(link).exists();
            assert!(outside || exists || known.contains(&link), "{page}: {link}");
        }
    }
}
