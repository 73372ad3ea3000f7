//! Test cases as text: one file with code, settings, trace bytes and the
//! expected output. The format is described in `proof/cases/README.md`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::assemble;

/// The environment variable that makes [`Case::expect`] rewrite a file.
const UPDATE: &str = "HARTRACE_UPDATE";

/// Lines that start a section begin with this.
const MARK: &str = "== ";

/// The sections, in the order of a file.
const SECTIONS: [&str; 5] = ["config", "code", "trace", "dump", "flow"];

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its file.
    pub path: PathBuf,
    /// What it shows: the lines before the first section.
    intro: String,
    sections: Vec<Section>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    name: String,
    /// What follows the name.
    argument: String,
    body: String,
}

impl Case {
    /// The cases of a folder, by name.
    ///
    /// # Panics
    ///
    /// If the folder or a case cannot be read.
    #[must_use]
    pub fn all(folder: &Path) -> Vec<Case> {
        let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "case"));
        paths.sort();
        let load = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap();
            Case::parse(&path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        paths.into_iter().map(load).collect()
    }

    /// The case that a file holds.
    ///
    /// # Errors
    ///
    /// Sections that are not known, or none.
    pub fn parse(path: &Path, text: &str) -> Result<Case, String> {
        let mut case = Case {
            path: path.to_owned(),
            intro: String::new(),
            sections: Vec::new(),
        };
        for line in text.lines() {
            if let Some(header) = line.strip_prefix(MARK) {
                let (name, argument) = header.split_once(' ').unwrap_or((header, ""));
                if !SECTIONS.contains(&name) {
                    return Err(format!("no section is called `{name}`"));
                }
                case.sections.push(Section {
                    name: name.to_owned(),
                    argument: argument.to_owned(),
                    body: String::new(),
                });
                continue;
            }
            let body = case.sections.last_mut().map(|s| &mut s.body);
            let body = body.unwrap_or(&mut case.intro);
            body.push_str(line);
            body.push('\n');
        }
        match case.sections.is_empty() {
            true => Err("there are no sections".to_owned()),
            false => Ok(case),
        }
    }

    /// The file as it would be written: sections with an empty line between
    /// them.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.intro.trim_end().to_owned();
        for section in &self.sections {
            let header = format!("{MARK}{} {}", section.name, section.argument);
            let body = section.body.trim_end();
            text += &format!("\n\n{}\n{body}", header.trim_end());
        }
        text.push('\n');
        text
    }

    /// What a section holds, without empty lines at its end; nothing if it is
    /// not there.
    #[must_use]
    pub fn section(&self, name: &str) -> &str {
        let found = self.sections.iter().find(|s| s.name == name);
        found.map_or("", |s| s.body.trim_end_matches('\n'))
    }

    /// The code: address and bytes of each piece.
    ///
    /// # Panics
    ///
    /// If it cannot be assembled.
    #[must_use]
    pub fn code(&self) -> Vec<(u64, Vec<u8>)> {
        let pieces = self.sections.iter().filter(|s| s.name == "code");
        let assembled = |section: &Section| {
            let at = &section.argument;
            let digits = at.strip_prefix("0x").unwrap_or_else(|| self.fail(at));
            let base = u64::from_str_radix(digits, 16).unwrap_or_else(|_| self.fail(at));
            match assemble(base, &section.body) {
                Ok(program) => (base, program.bytes),
                Err(error) => self.fail(&format!("code {at}, {error}")),
            }
        };
        pieces.map(assembled).collect()
    }

    /// The bytes of the trace.
    ///
    /// # Panics
    ///
    /// If they are not hex digits in pairs.
    #[must_use]
    pub fn trace(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in self.section("trace").lines() {
            let digits = line.split('#').next().unwrap_or_default();
            for pair in digits.split_whitespace() {
                let byte = u8::from_str_radix(pair, 16)
                    .ok()
                    .filter(|_| pair.len() == 2);
                bytes.push(byte.unwrap_or_else(|| self.fail(&format!("`{pair}` is no byte"))));
            }
        }
        bytes
    }

    /// Compares what a section expects with what there is. With
    /// `HARTRACE_UPDATE=1` in the environment the file is rewritten instead.
    ///
    /// # Errors
    ///
    /// The differences, line by line.
    ///
    /// # Panics
    ///
    /// If the file cannot be rewritten.
    pub fn expect(&mut self, name: &str, actual: &str) -> Result<(), String> {
        let actual = actual.trim_end_matches('\n');
        let expected = self.section(name);
        if expected == actual {
            return Ok(());
        }
        if std::env::var_os(UPDATE).is_none_or(|value| value != "1") {
            let path = self.path.display();
            let changes = difference(expected, actual);
            return Err(format!("{path}: {name}\n{changes}"));
        }
        self.set(name, actual);
        fs::write(&self.path, self.text()).unwrap();
        Ok(())
    }

    fn set(&mut self, name: &str, body: &str) {
        let rank = |name: &str| SECTIONS.iter().position(|s| *s == name);
        let at = match self.sections.iter().position(|s| s.name == name) {
            Some(at) => at,
            None => {
                let before = |s: &Section| rank(&s.name) < rank(name);
                let at = self.sections.iter().take_while(|s| before(s)).count();
                let section = Section {
                    name: name.to_owned(),
                    argument: String::new(),
                    body: String::new(),
                };
                self.sections.insert(at, section);
                at
            }
        };
        body.clone_into(&mut self.sections[at].body);
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{}: {what}", self.path.display())
    }
}

/// The lines of both texts, with `-` before those that only the first has and
/// `+` before those that only the second has.
#[must_use]
pub fn difference(first: &str, second: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    // Length of the longest common part of what follows.
    let mut common = vec![vec![0u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = match a[i] == b[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, String::new());
    while i < a.len() || j < b.len() {
        let (mark, line) = if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
            (' ', a[i - 1])
        } else if j == b.len() || i < a.len() && common[i + 1][j] >= common[i][j + 1] {
            i += 1;
            ('-', a[i - 1])
        } else {
            j += 1;
            ('+', b[j - 1])
        };
        out.push_str(&format!("{mark} {line}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A loop.

== config
[program]
isa = \"rv64gc\"

== code 0x1000
start: c.nop
       j start

== code 0x2000
c.ret

== trace
01 ff # first
# nothing
02

== flow
run
";

    fn case() -> Case {
        Case::parse(Path::new("a.case"), TEXT).unwrap()
    }

    #[test]
    fn parts_are_read() {
        let case = case();
        assert_eq!(case.text(), TEXT);
        assert_eq!(case.section("config"), "[program]\nisa = \"rv64gc\"");
        assert_eq!(case.section("dump"), "");
        let code = case.code();
        assert_eq!((code[0].0, code[0].1.len()), (0x1000, 6));
        assert_eq!(code[1], (0x2000, vec![0x82, 0x80]));
        assert_eq!(case.trace(), [1, 0xff, 2]);
        let wrong = Case::parse(Path::new("a.case"), "== what\n").unwrap_err();
        assert_eq!(wrong, "no section is called `what`");
        assert!(Case::parse(Path::new("a.case"), "text\n").is_err());
    }

    #[test]
    fn expected_parts_are_compared_and_set() {
        let mut case = case();
        assert_eq!(case.expect("flow", "run\n"), Ok(()));
        case.set("dump", "00 a");
        case.set("flow", "gap");
        let text = TEXT.replace("== flow\nrun\n", "== dump\n00 a\n\n== flow\ngap\n");
        assert_eq!(case.text(), text);
    }

    #[test]
    fn differences_are_readable() {
        assert_eq!(
            difference("a\nb\nc", "a\nx\nc\nd"),
            "  a\n- b\n+ x\n  c\n+ d\n"
        );
        assert_eq!(difference("", "a"), "+ a\n");
    }
}
