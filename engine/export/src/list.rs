//! Which traces are meant: files, folders and lists of files.

use hartrace_capture::input::Input;
use hartrace_capture::sidecar;
use hartrace_capture::trace::Format;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_tables::{Error, Given, TraceSource};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest list, in bytes.
const LIST: u64 = 64 << 20;

/// Folders within folders at most.
const DEPTH: usize = 64;

/// The traces that files, folders and a list name, in this order.
///
/// In a folder, and the folders in it, traces are the files with a sidecar and those whose
/// name ends with `.ntrace`, `.etrace` or `.tandem`; they are called by their path in that
/// folder. A list has a trace in each line, relative to the list, and may name its program
/// after a tab.
///
/// # Errors
///
/// What cannot be read; a folder without traces; two traces with the same name.
pub fn traces(
    inputs: &[PathBuf],
    list: Option<&Path>,
    given: &Given,
) -> Result<Vec<TraceSource>, Error> {
    let mut found = Vec::new();
    for input in inputs {
        match input.is_dir() {
            true => folder(input, given, &mut found)?,
            false => found.push(TraceSource::new(input, given)),
        }
    }
    if let Some(list) = list {
        listed(list, given, &mut found)?;
    }
    let mut names = HashSet::new();
    for trace in &found {
        if !names.insert(trace.name.as_str()) {
            let message = format!("the trace `{}` is given twice", trace.name);
            return Err(Diagnostic::new(Code::BadFileSpec, message).into());
        }
    }
    Ok(found)
}

fn folder(root: &Path, given: &Given, found: &mut Vec<TraceSource>) -> Result<(), Error> {
    let before = found.len();
    let mut files = Vec::new();
    walk(root, DEPTH, &mut files).map_err(|error| {
        let message = format!("cannot read the folder `{}`: {error}", root.display());
        Diagnostic::new(Code::CannotRead, message)
    })?;
    files.sort();
    for path in files.into_iter().filter(|path| is_trace(path)) {
        let name = path.strip_prefix(root).unwrap_or(&path);
        let name = name.display().to_string();
        found.push(TraceSource {
            name,
            ..TraceSource::new(&path, given)
        });
    }
    if found.len() == before {
        let message = format!("there is no trace in the folder `{}`", root.display());
        return Err(Diagnostic::new(Code::NotFound, message)
            .note("traces have a sidecar, or a name that ends with .ntrace, .etrace or .tandem")
            .into());
    }
    Ok(())
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true if depth > 0 => walk(&entry.path(), depth - 1, files)?,
            true => {}
            false => files.push(entry.path()),
        }
    }
    Ok(())
}

fn is_trace(path: &Path) -> bool {
    let is_sidecar = path.extension().is_some_and(|ending| ending == "toml");
    !is_sidecar && (Format::from_extension(path).is_some() || sidecar::path_for(path).is_file())
}

/// A file, relative to a folder; what is in an object store is relative to nothing.
fn place(folder: &Path, name: &str) -> PathBuf {
    match name.starts_with("s3://") {
        true => PathBuf::from(name),
        false => folder.join(name),
    }
}

fn listed(list: &Path, given: &Given, found: &mut Vec<TraceSource>) -> Result<(), Error> {
    let bytes = Input::open(list).and_then(|input| input.read_all(LIST));
    let bytes = bytes.map_err(Diagnostic::from)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let message = format!("the list `{}` is not UTF-8 text", list.display());
        Diagnostic::new(Code::CannotRead, message)
    })?;
    let folder = list.parent().unwrap_or(Path::new(""));
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, elf) = match line.split_once('\t') {
            Some((name, elf)) => (name, Some(elf)),
            None => (line, None),
        };
        let mut given = given.clone();
        given
            .elf
            .extend(elf.map(|elf| place(folder, elf).display().to_string()));
        found.push(TraceSource {
            name: name.to_owned(),
            ..TraceSource::new(&place(folder, name), &given)
        });
    }
    Ok(())
}
