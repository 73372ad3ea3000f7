//! The text of source lines, from the files that line tables name.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A file is read up to this size: more is no source text.
const MAX_FILE: u64 = 16 << 20;

/// Where source files are: `OLD=NEW` replaces the start of a path, and a folder
/// alone is searched for the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDir {
    old: Option<String>,
    new: PathBuf,
}

impl SourceDir {
    /// From what was typed: `OLD=NEW` or a folder.
    ///
    /// ```
    /// use hartrace_files::source_text::SourceDir;
    /// use std::path::PathBuf;
    ///
    /// let found = SourceDir::parse("/build=src").candidates("/build/a/b.c");
    /// assert_eq!(found, ["src/a/b.c"].map(PathBuf::from));
    /// let found = SourceDir::parse("src").candidates("/build/a/b.c");
    /// assert_eq!(found, ["src/build/a/b.c", "src/a/b.c", "src/b.c"].map(PathBuf::from));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> SourceDir {
        match text.split_once('=') {
            Some((old, new)) => SourceDir {
                old: Some(old.to_owned()),
                new: PathBuf::from(new),
            },
            None => SourceDir {
                old: None,
                new: PathBuf::from(text),
            },
        }
    }

    /// Where a file may be, the best place first.
    #[must_use]
    pub fn candidates(&self, file: &str) -> Vec<PathBuf> {
        let Some(old) = &self.old else {
            let file = file.trim_start_matches('/');
            let starts = file.match_indices('/').map(|(at, _)| at + 1);
            let ends = [0].into_iter().chain(starts);
            return ends
                .filter_map(|at| Some(self.new.join(file.get(at..)?)))
                .collect();
        };
        let rest = file.strip_prefix(old.as_str());
        // `/src` is the start of `/src/a.c`, not of `/srcs/a.c`.
        let rest = rest.filter(|rest| rest.starts_with('/') || old.ends_with('/'));
        rest.map(|rest| self.new.join(rest.trim_start_matches('/')))
            .into_iter()
            .collect()
    }
}

/// Folders around a program that are searched: its own, and those that this one is in.
const AROUND: usize = 5;

/// Source lines by file and number. A file is read when a line of it is first asked
/// for.
#[derive(Debug, Default)]
pub struct SourceText {
    dirs: Vec<SourceDir>,
    programs: Vec<PathBuf>,
    files: RefCell<HashMap<String, Option<Vec<String>>>>,
}

impl SourceText {
    /// Searches these places, the first first, then the paths as they are, then the
    /// folders of these programs and those around them.
    #[must_use]
    pub fn new<'p>(
        dirs: Vec<SourceDir>,
        programs: impl IntoIterator<Item = &'p Path>,
    ) -> SourceText {
        SourceText {
            dirs,
            programs: programs.into_iter().map(Path::to_path_buf).collect(),
            files: RefCell::default(),
        }
    }

    /// A line of a file, counted from 1. Control characters become U+FFFD, and tabs
    /// stay.
    #[must_use]
    pub fn line(&self, file: &str, number: u32) -> Option<String> {
        let files = self.with(file);
        let lines = files.get(file)?.as_ref()?;
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        lines.get(index).cloned()
    }

    /// All lines of a file, as [`SourceText::line`] gives them.
    #[must_use]
    pub fn lines(&self, file: &str) -> Option<Vec<String>> {
        self.with(file).get(file)?.clone()
    }

    /// The files that were read, with this one.
    fn with(&self, file: &str) -> Ref<'_, HashMap<String, Option<Vec<String>>>> {
        if !self.files.borrow().contains_key(file) {
            let lines = self.read(file);
            self.files.borrow_mut().insert(file.to_owned(), lines);
        }
        self.files.borrow()
    }

    fn read(&self, file: &str) -> Option<Vec<String>> {
        let places = self.dirs.iter().flat_map(|dir| dir.candidates(file));
        let around = self.programs.iter().flat_map(|path| around(path, file));
        let mut places = places.chain([PathBuf::from(file)]).chain(around);
        let text = places.find_map(|path| read_text(&path))?;
        let clean = |line: &str| -> String {
            let safe = |c: char| match c {
                '\t' => c,
                c if c.is_control() => '\u{fffd}',
                c => c,
            };
            line.chars().map(safe).collect()
        };
        Some(text.lines().map(clean).collect())
    }
}

/// Where a file may be near a program. Beside it, the name alone is enough; further out
/// a folder must agree too, since many files have the same name.
fn around(program: &Path, file: &str) -> Vec<PathBuf> {
    let Ok(program) = std::path::absolute(program) else {
        return Vec::new();
    };
    let folders = program.ancestors().skip(1).take(AROUND);
    let places = folders.enumerate().flat_map(|(up, folder)| {
        let dir = SourceDir {
            old: None,
            new: folder.to_path_buf(),
        };
        let mut places = dir.candidates(file);
        if up > 0 {
            places.pop();
        }
        places
    });
    places.collect()
}

/// A regular file of bounded size.
fn read_text(path: &Path) -> Option<String> {
    let is_file = fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= MAX_FILE);
    if !is_file {
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_paths_are_replaced() {
        let dir = SourceDir::parse("/src=/home/me");
        assert_eq!(dir.candidates("/src/a.c"), [Path::new("/home/me/a.c")]);
        assert!(dir.candidates("/srcs/a.c").is_empty());
        assert!(dir.candidates("a.c").is_empty());
    }

    /// A project that was built elsewhere: `project/build/prog.elf` of
    /// `/ci/project/src/a.c`. What only has the same name is another file.
    #[test]
    fn files_are_found_around_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join("project").join(path);
        fs::create_dir_all(at("build")).unwrap();
        fs::create_dir_all(at("src")).unwrap();
        fs::write(at("src/a.c"), "near\n").unwrap();
        fs::write(at("b.c"), "another\n").unwrap();
        fs::write(at("build/c.c"), "beside\n").unwrap();
        let program = at("build/prog.elf");
        let text = SourceText::new(Vec::new(), [program.as_path()]);
        assert_eq!(text.line("/ci/project/src/a.c", 1).as_deref(), Some("near"));
        assert_eq!(text.line("/ci/project/b.c", 1).as_deref(), Some("another"));
        assert_eq!(text.line("/ci/other/b.c", 1), None);
        assert_eq!(text.line("/elsewhere/c.c", 1).as_deref(), Some("beside"));
        let without = SourceText::new(Vec::new(), []);
        assert_eq!(without.line("/ci/project/src/a.c", 1), None);
    }

    #[test]
    fn lines_of_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a.c"), "one\n\ttwo\x1b\n").unwrap();
        let dir = SourceDir::parse(&folder.path().display().to_string());
        let text = SourceText::new(vec![dir], []);
        assert_eq!(text.line("/somewhere/sub/a.c", 1).as_deref(), Some("one"));
        assert_eq!(text.line("sub/a.c", 2).as_deref(), Some("\ttwo\u{fffd}"));
        assert_eq!(text.line("sub/a.c", 3), None);
        assert_eq!(text.lines("sub/a.c").unwrap(), ["one", "\ttwo\u{fffd}"]);
        assert_eq!(text.line("sub/a.c", 0), None);
        assert_eq!(text.line("other.c", 1), None);
        // A folder is no file.
        assert_eq!(text.line("sub", 1), None);
    }
}
