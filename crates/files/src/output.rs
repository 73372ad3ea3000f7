//! Atomic output: a file appears under its name complete, or not at all.
//!
//! A file is written under a temporary name in the same directory and renamed
//! at the end. A target that exists and is not a regular file (a device, a
//! pipe) is written directly.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{NamedTempFile, TempDir, TempPath};

const BUFFER: usize = 1 << 16;

/// Names of unfinished files, for [`abandon_all`].
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Something to write to, opened. Call [`Output::finish`] at the end: without
/// it nothing appears under the final name.
pub struct Output {
    path: PathBuf,
    sink: Sink,
    reader: Reader,
}

/// The reader at the other end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// A write fails once it has gone.
    Needed,
    /// See [`Output::outlive_reader`].
    Optional,
    /// It has gone, and nothing is written any more.
    Gone,
}

enum Sink {
    Stdout(BufWriter<io::Stdout>),
    Pager(BufWriter<Pager>),
    Direct(BufWriter<File>),
    Atomic(BufWriter<Pending>),
}

/// A program that shows text on the terminal.
struct Pager {
    child: Child,
}

impl Pager {
    fn start(command: &str) -> io::Result<Pager> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Short text is printed, colours are kept, and the text stays.
            shell.env("LESS", "FRX");
        }
        Ok(Pager {
            child: shell.spawn()?,
        })
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.child.stdin {
            Some(stdin) => stdin.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It is read as long as the user likes.
        let _ = self.child.wait();
    }
}

/// A file under its temporary name, removed unless it is finished.
struct Pending {
    file: File,
    path: Option<TempPath>,
    /// The final name, links followed.
    target: PathBuf,
}

/// Why something could not be written.
#[derive(Debug)]
pub struct OutputError {
    /// What was asked for; `-` is standard output.
    pub path: PathBuf,
    /// What happened.
    pub problem: OutputProblem,
}

/// What can happen to an output.
#[derive(Debug)]
pub enum OutputProblem {
    /// The name is a directory.
    Directory,
    /// The folder of the name does not exist.
    NoFolder(PathBuf),
    /// A folder that should be written has something in it.
    NotEmpty,
    /// It could not be created or opened for writing.
    Open(io::Error),
    /// Writing failed.
    Write(io::Error),
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name(&self.path);
        match &self.problem {
            OutputProblem::Directory => write!(f, "cannot write {name}: it is a directory"),
            OutputProblem::NotEmpty => {
                write!(f, "cannot write {name}: the directory is not empty")
            }
            OutputProblem::NoFolder(folder) => {
                write!(
                    f,
                    "cannot write {name}: there is no directory `{}`",
                    folder.display()
                )
            }
            OutputProblem::Open(error) | OutputProblem::Write(error) => {
                write!(f, "cannot write {name}: {error}")
            }
        }
    }
}

impl std::error::Error for OutputError {}

impl OutputError {
    /// Whether the reader at the other end of a pipe has gone, which is no
    /// failure.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        matches!(&self.problem, OutputProblem::Write(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// How an output is called in messages.
#[must_use]
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" {
        return "standard output".to_owned();
    }
    format!("`{}`", path.display())
}

impl Output {
    /// Opens the output before any work is done; `-` is standard output.
    ///
    /// # Errors
    ///
    /// What could not be written later: a directory, a folder that is missing
    /// or read-only, a file that is write-protected.
    pub fn create(path: &Path) -> Result<Output, OutputError> {
        let opened = if path.as_os_str() == "-" {
            Ok(Sink::Stdout(BufWriter::with_capacity(BUFFER, io::stdout())))
        } else {
            open(path)
        };
        let path = path.to_path_buf();
        match opened {
            Ok(sink) => Ok(Output {
                path,
                sink,
                reader: Reader::Needed,
            }),
            Err(problem) => Err(OutputError { path, problem }),
        }
    }

    /// An output that a pager shows: a command for the shell, such as `less`. `None` if
    /// it cannot be started. It ends before this output is dropped.
    #[must_use]
    pub fn to_pager(command: &str) -> Option<Output> {
        let pager = Pager::start(command).ok()?;
        Some(Output {
            path: PathBuf::from("-"),
            sink: Sink::Pager(BufWriter::with_capacity(BUFFER, pager)),
            reader: Reader::Needed,
        })
    }

    /// Once the reader of a pipe has gone, output is discarded and no write
    /// fails, if `yes`: for a command whose exit code says more than whether
    /// the output was written.
    #[must_use]
    pub fn outlive_reader(mut self, yes: bool) -> Output {
        if yes {
            self.reader = Reader::Optional;
        }
        self
    }

    /// Whether output is discarded because its reader has gone.
    #[must_use]
    pub(crate) fn is_discarded(&self) -> bool {
        self.reader == Reader::Gone
    }

    /// Passes `done` on, or notes that the reader has gone and gives `instead`.
    fn tolerate<T>(&mut self, done: io::Result<T>, instead: T) -> io::Result<T> {
        match done {
            Err(error)
                if error.kind() == io::ErrorKind::BrokenPipe && self.reader != Reader::Needed =>
            {
                self.reader = Reader::Gone;
                Ok(instead)
            }
            done => done,
        }
    }

    /// Whether it becomes a file with a name, not a stream or a device.
    #[must_use]
    pub fn is_file(&self) -> bool {
        matches!(self.sink, Sink::Atomic(_))
    }

    /// Runs `write` and finishes; the usual way to use an output.
    ///
    /// # Errors
    ///
    /// A failing write; then nothing appears under the name.
    pub fn write_with(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        match write(&mut self) {
            Ok(()) => self.finish(),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Writes out what is buffered and gives the file its name.
    ///
    /// # Errors
    ///
    /// A failing write or rename; then nothing appears under the name.
    pub fn finish(mut self) -> Result<(), OutputError> {
        if self.is_discarded() {
            return Ok(());
        }
        let done = match &mut self.sink {
            Sink::Stdout(out) => out.flush(),
            Sink::Pager(out) => out.flush(),
            Sink::Direct(out) => out.flush(),
            Sink::Atomic(out) => out.flush().and_then(|()| out.get_mut().finish()),
        };
        let done = self.tolerate(done, ());
        done.map_err(|error| self.failed(error))
    }

    /// A failed write to this output, with its name.
    #[must_use]
    pub fn failed(&self, error: io::Error) -> OutputError {
        OutputError {
            path: self.path.clone(),
            problem: OutputProblem::Write(error),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_discarded() {
            return Ok(bytes.len());
        }
        let done = match &mut self.sink {
            Sink::Stdout(out) => out.write(bytes),
            Sink::Pager(out) => out.write(bytes),
            Sink::Direct(out) => out.write(bytes),
            Sink::Atomic(out) => out.write(bytes),
        };
        self.tolerate(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_discarded() {
            return Ok(());
        }
        let done = match &mut self.sink {
            Sink::Stdout(out) => out.flush(),
            Sink::Pager(out) => out.flush(),
            Sink::Direct(out) => out.flush(),
            Sink::Atomic(out) => out.flush(),
        };
        self.tolerate(done, ())
    }
}

/// A folder that appears under its name when all files in it are complete, or not at all.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    folder: Option<TempDir>,
}

impl OutputFolder {
    /// Makes the folder under a temporary name. What has the final name must be an empty
    /// folder, or nothing.
    ///
    /// # Errors
    ///
    /// As for [`Output::create`].
    pub fn create(path: &Path) -> Result<OutputFolder, OutputError> {
        let of = |problem| OutputError {
            path: path.to_path_buf(),
            problem,
        };
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(of(OutputProblem::NotEmpty)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(of(OutputProblem::Open(error))),
        }
        let parent = folder_of(path);
        let mut pending = pending();
        let folder = temporary(|builder| {
            // As any new folder, less the umask.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
            builder.tempdir_in(&parent)
        });
        let folder = folder.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !parent.is_dir() => of(OutputProblem::NoFolder(parent)),
            _ => of(OutputProblem::Open(error)),
        })?;
        pending.push(folder.path().to_path_buf());
        Ok(OutputFolder {
            path: path.to_path_buf(),
            folder: Some(folder),
        })
    }

    /// A file in it.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn file(&self, name: &str) -> io::Result<Box<dyn Write>> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let file = File::create_new(folder.path().join(name))?;
        Ok(Box::new(BufWriter::with_capacity(BUFFER, file)))
    }

    /// Gives the folder its name; all files are written.
    ///
    /// # Errors
    ///
    /// The folder cannot be renamed; then nothing appears under the name.
    pub fn finish(mut self) -> Result<(), OutputError> {
        let mut pending = pending();
        let Some(folder) = self.folder.take() else {
            return Ok(());
        };
        forget(&mut pending, folder.path());
        // An empty folder makes way on every system.
        let _ = fs::remove_dir(&self.path);
        let renamed = fs::rename(folder.path(), &self.path);
        if renamed.is_ok() {
            // There is nothing left to remove.
            let _ = folder.keep();
        }
        renamed.map_err(|error| self.failed(error))
    }

    /// A failed write to a file of it.
    #[must_use]
    pub fn failed(&self, error: io::Error) -> OutputError {
        OutputError {
            path: self.path.clone(),
            problem: OutputProblem::Write(error),
        }
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.take() {
            forget(&mut pending(), folder.path());
        }
    }
}

/// A file without a name for what is put aside, on the disk of an output.
///
/// # Errors
///
/// The file cannot be made.
pub fn scratch_beside(path: &Path) -> io::Result<File> {
    match path.as_os_str() == "-" {
        true => tempfile::tempfile(),
        false => tempfile::tempfile_in(folder_of(path)),
    }
}

/// The folder that a name is in.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Removes every unfinished file. For a process that is about to end: from
/// here on no output can be opened or finished.
pub fn abandon_all() {
    let pending = pending();
    for path in pending.iter() {
        // Gone already, or nothing that could be done about it.
        let _ = match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        };
    }
    std::mem::forget(pending);
}

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path) -> Result<Sink, OutputProblem> {
    let present = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(OutputProblem::Open(e)),
    };
    let Some(metadata) = present else {
        return Pending::beside(path.to_path_buf(), None);
    };
    if metadata.is_dir() {
        return Err(OutputProblem::Directory);
    }
    // Opened also where the file will be replaced: renaming over a
    // write-protected file would succeed.
    let file = OpenOptions::new().write(true).open(path);
    let file = file.map_err(OutputProblem::Open)?;
    if !metadata.is_file() {
        return Ok(Sink::Direct(BufWriter::with_capacity(BUFFER, file)));
    }
    // A link stays a link: the file it leads to is replaced.
    let target = fs::canonicalize(path).map_err(OutputProblem::Open)?;
    Pending::beside(target, Some(&metadata))
}

impl Pending {
    fn beside(target: PathBuf, old: Option<&fs::Metadata>) -> Result<Sink, OutputProblem> {
        let folder = folder_of(&target);
        if target.file_name().is_none() {
            return Err(OutputProblem::Directory);
        }
        let mut pending = pending();
        let temporary = temporary_in(&folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !folder.is_dir() => OutputProblem::NoFolder(folder),
            _ => OutputProblem::Open(error),
        })?;
        pending.push(temporary.path().to_path_buf());
        let (file, path) = temporary.into_parts();
        let this = Pending {
            file,
            path: Some(path),
            target,
        };
        drop(pending);
        if let Some(old) = old {
            let kept = this.file.set_permissions(old.permissions());
            kept.map_err(OutputProblem::Open)?;
        }
        Ok(Sink::Atomic(BufWriter::with_capacity(BUFFER, this)))
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut pending = pending();
        let Some(path) = self.path.take() else {
            return Ok(());
        };
        forget(&mut pending, &path);
        path.persist(&self.target).map_err(|e| e.error)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            forget(&mut pending(), &path);
        }
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn forget(pending: &mut Vec<PathBuf>, path: &Path) {
    pending.retain(|other| other != path);
}

fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    temporary(|builder| {
        // As any new file, less the umask; the crate's own default is private.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        builder.tempfile_in(folder)
    })
}

/// Makes something with a temporary name.
fn temporary<T>(
    make: impl FnOnce(&mut tempfile::Builder<'_, '_>) -> io::Result<T>,
) -> io::Result<T> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hartrace-").suffix(".part");
    make(&mut builder).map_err(|error| {
        // The temporary name would only puzzle.
        let text = error.to_string();
        let system = text.split(" at path ").next().unwrap_or_default();
        io::Error::new(error.kind(), system)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files() {
        let Err(error) = Output::create(Path::new("/proc/x")) else {
            panic!("written to /proc");
        };
        let text = error.to_string();
        assert!(text.contains("(os error "), "{text}");
        assert!(
            !text.contains("no directory") && !text.contains(".part"),
            "{text}"
        );
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn appears_at_the_end_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut out = Output::create(&path).unwrap();
        out.write_all(&[b'x'; 200_000]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(out);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(entries(folder.path()), ["out"]);

        let mut out = Output::create(&path).unwrap();
        out.write_all(b"new").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(entries(folder.path()), ["out"]);
    }

    #[test]
    fn a_failed_writer_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let out = Output::create(&folder.path().join("out")).unwrap();
        let error = out.write_with(|w| {
            w.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert!(error.unwrap_err().to_string().contains("no more"));
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn refused_before_work_starts() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |path: &Path| Output::create(path).err().unwrap().problem;
        assert!(matches!(problem(folder.path()), OutputProblem::Directory));
        let missing = folder.path().join("none/out");
        assert!(matches!(problem(&missing), OutputProblem::NoFolder(_)));
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(problem(&file.join("out")), OutputProblem::Open(_)));
        assert!(matches!(problem(Path::new("")), OutputProblem::Directory));
        assert!(matches!(problem(Path::new("/")), OutputProblem::Directory));
        assert_eq!(entries(folder.path()), ["file"]);
    }

    #[test]
    fn a_folder_appears_at_the_end_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let out = OutputFolder::create(&path).unwrap();
        out.file("a").unwrap().write_all(b"half").unwrap();
        assert!(out.file("a").is_err());
        assert!(!path.exists());
        drop(out);
        assert!(entries(folder.path()).is_empty());

        // An empty one makes way.
        fs::create_dir(&path).unwrap();
        let out = OutputFolder::create(&path).unwrap();
        let mut file = out.file("a").unwrap();
        file.write_all(b"all").unwrap();
        file.flush().unwrap();
        out.finish().unwrap();
        assert_eq!(entries(folder.path()), ["out"]);
        assert_eq!(fs::read(path.join("a")).unwrap(), b"all");

        let problem = |path: &Path| OutputFolder::create(path).err().unwrap().problem;
        assert!(matches!(problem(&path), OutputProblem::NotEmpty));
        assert!(matches!(problem(&path.join("a")), OutputProblem::Open(_)));
        let missing = folder.path().join("none/out");
        assert!(matches!(problem(&missing), OutputProblem::NoFolder(_)));
        assert_eq!(entries(folder.path()), ["out"]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_links_and_devices_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        let link = folder.path().join("link");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        let out = Output::create(&link).unwrap();
        out.write_with(|w| w.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );

        let null = Output::create(Path::new("/dev/null")).unwrap();
        null.write_with(|w| w.write_all(b"new")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
