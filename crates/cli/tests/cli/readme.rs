//! What README.md and the pages on formats show is what happens.

use crate::repository;
use std::fs;
use std::path::PathBuf;

/// Blocks of ```` ```console ````: a command for the shell after `$ `, then
/// its output. They run one after the other in one folder, which has the
/// programs of the repository.
#[cfg(unix)]
#[test]
fn samples_are_real() {
    let checked = samples("README.md");
    assert!(checked > 5);
    assert!(samples("docs/views.md") > 3);
    assert!(samples("docs/tandem.md") > 3);
    assert!(samples("docs/ctr.md") > 2);
    assert!(samples("docs/logs.md") > 5);
    assert!(samples("docs/run.md") > 0);
    assert!(samples("docs/compare.md") > 1);
}

/// The same for the chapters of the guide.
#[cfg(unix)]
#[test]
fn samples_of_the_guide_are_real() {
    for chapter in ["firmware", "verification", "system", "performance", "tools"] {
        assert!(
            samples(&format!("docs/guide/{chapter}.md")) > 2,
            "{chapter}"
        );
    }
}

#[cfg(unix)]
fn samples(page: &str) -> usize {
    use crate::{Folder, text};
    use std::path::Path;
    use std::process::Command;
    let folder = Folder::new();
    let programs = fs::canonicalize(repository().join("programs")).unwrap();
    std::os::unix::fs::symlink(programs, folder.path("programs")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_hartrace")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let readme = fs::read_to_string(repository().join(page)).unwrap();
    let mut checked = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for sample in block.split("$ ").filter(|s| !s.is_empty()) {
            let (command, expected) = sample.split_once('\n').unwrap();
            let output = Command::new("sh")
                .args(["-c", command])
                .current_dir(folder.path(""))
                .env("PATH", &path)
                .env_remove("CLICOLOR_FORCE")
                .output()
                .unwrap();
            let shown = [&output.stdout[..], &output.stderr[..]].concat();
            assert_eq!(untimed(text(&shown)), untimed(expected), "{command}");
            checked += 1;
        }
    }
    // The picture that is shown.
    let picture = folder.path("flamegraph.svg");
    if page == "README.md" {
        let committed = repository().join("docs/images/flamegraph.svg");
        if std::env::var("SNAPSHOTS").is_ok_and(|action| action == "overwrite") {
            fs::copy(&picture, &committed).unwrap();
        }
        let same = fs::read(&picture).unwrap() == fs::read(&committed).unwrap();
        assert!(
            same,
            "docs/images/flamegraph.svg: run with SNAPSHOTS=overwrite"
        );
    }
    checked
}

/// Without how long a run took.
#[cfg(unix)]
fn untimed(text: &str) -> String {
    let mut result = String::new();
    for line in text.split_inclusive('\n') {
        match (line.find(" cycles in "), line.find(" M/s); ")) {
            (Some(from), Some(to)) => result.extend([&line[..from], &line[to..]]),
            _ => result.push_str(line),
        }
    }
    result
}

#[test]
fn links_lead_somewhere() {
    let root = repository();
    let folders = ["docs", "docs/guide"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let docs = folders.into_iter().flatten();
    let docs = docs.map(|entry| entry.unwrap().path());
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page));
    let is_page = |page: &PathBuf| page.extension().is_some_and(|e| e == "md");
    for page in pages.into_iter().chain(docs).filter(is_page) {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|l| l.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                _ => page.with_file_name(file),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let found = headings(&text).any(|anchor| anchor == heading);
                assert!(found, "{}: {link}", page.display());
            }
        }
    }
}

/// The anchors of the headings of a page.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[test]
fn the_index_and_the_book_list_every_page() {
    let docs = repository().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    let book = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for folder in ["", "guide/"] {
        for entry in fs::read_dir(docs.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".md") || ["README.md", "SUMMARY.md"].contains(&name.as_str()) {
                continue;
            }
            let link = format!("]({folder}{name})");
            assert!(index.contains(&link), "docs/README.md lacks {name}");
            assert!(book.contains(&link), "docs/SUMMARY.md lacks {name}");
        }
    }
}

/// `docs/commands.md` is the help of every command.
#[test]
fn the_page_of_commands_is_their_help() {
    use crate::{Alone, text};
    use std::fmt::Write as _;
    let alone = Alone::new();
    let help = |command: &[&str]| {
        let output = alone
            .hartrace()
            .args(command)
            .arg("--help")
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        text(&output.stdout).to_owned()
    };
    let mut page =
        "# Commands\n\nThis is what `hartrace COMMAND --help` prints. `hartrace man -o DIR` \
                    writes the same as\nmanual pages, and `hartrace completions` completions for a \
                    shell.\n"
            .to_owned();
    let overview = help(&[]);
    let commands = overview.split_once("Commands:\n").unwrap().1;
    let commands = commands.split("\n\n").next().unwrap();
    for line in commands.lines() {
        let Some(name) = line
            .split_whitespace()
            .next()
            .filter(|name| *name != "help")
        else {
            continue;
        };
        write!(page, "\n## {name}\n\n```text\n{}```\n", help(&[name])).unwrap();
    }
    let committed = repository().join("docs/commands.md");
    if std::env::var("SNAPSHOTS").is_ok_and(|action| action == "overwrite") {
        fs::write(&committed, &page).unwrap();
    }
    let same = fs::read_to_string(&committed).unwrap() == page;
    assert!(same, "docs/commands.md: run with SNAPSHOTS=overwrite");
}
