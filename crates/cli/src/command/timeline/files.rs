//! Where timelines are written: files that are held, a file, a folder, several files.

use crate::args::{Timeline, TimelineFormat};
use crate::failure::Failure;
use crate::files::create;
use hartrace_analyze::{Exported, Held, Scratch};
use hartrace_capture::output::{Output, OutputError, OutputFolder, OutputProblem, scratch_beside};
use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of a timeline that are kept until it is known that nothing has to be left out.
const HELD: usize = 32 << 20;

/// Files of one timeline at most.
const MOST_FILES: usize = 999;

/// Makes files for what is put aside.
pub(super) type NewScratch = Box<dyn FnMut() -> io::Result<Box<dyn Scratch>>>;

/// Makes the files of a timeline.
pub(super) trait Files {
    /// A file; only those of a folder have names.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn Write>>;

    /// Files for what is put aside.
    fn scratch(&self) -> NewScratch;

    /// Tells whether too much was put aside, so that nothing more is written.
    fn is_over(&self) -> Box<dyn Fn() -> bool> {
        Box::new(|| false)
    }

    /// The size at which another file is begun.
    fn part_size(&self) -> Option<u64> {
        None
    }
}

/// Something that several own, one of which writes to it.
struct Shared<W>(Rc<RefCell<W>>);

impl<W: Write> Write for Shared<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// Files of moderate size, kept in memory; larger ones are only measured.
#[derive(Default)]
pub(super) struct HeldFiles {
    files: Vec<(String, Rc<RefCell<Held>>)>,
    /// Bytes that were put aside.
    aside: Rc<Cell<usize>>,
}

impl HeldFiles {
    /// The bytes of all of them.
    pub(super) fn count(&self) -> u64 {
        let counts = self.files.iter().map(|(_, held)| held.borrow().count());
        counts.sum()
    }

    /// Whether all is there.
    pub(super) fn fits(&self) -> bool {
        self.count() <= HELD as u64 && self.aside.get() <= HELD
    }

    /// What was made, or why not.
    pub(super) fn tried(&self, made: io::Result<Exported>) -> Result<Exported, Failure> {
        made.map_err(|error| {
            let problem = OutputProblem::Write(error);
            let path = PathBuf::from("-");
            OutputError { path, problem }.into()
        })
    }
}

impl Files for HeldFiles {
    fn open(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        let held = Rc::new(RefCell::new(Held::new(HELD)));
        self.files.push((name.to_owned(), Rc::clone(&held)));
        Ok(Box::new(Shared(held)))
    }

    fn scratch(&self) -> NewScratch {
        let aside = Rc::clone(&self.aside);
        Box::new(move || {
            Ok(Box::new(Limited {
                bytes: Cursor::default(),
                aside: Rc::clone(&aside),
            }))
        })
    }

    fn is_over(&self) -> Box<dyn Fn() -> bool> {
        let aside = Rc::clone(&self.aside);
        Box::new(move || aside.get() > HELD)
    }
}

/// A file in memory that loses what is too much for all of them.
struct Limited {
    bytes: Cursor<Vec<u8>>,
    aside: Rc<Cell<usize>>,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let aside = self.aside.get() + bytes.len();
        self.aside.set(aside);
        match aside <= HELD {
            true => self.bytes.write(bytes),
            false => {
                self.bytes = Cursor::default();
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Limited {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(bytes)
    }
}

impl Seek for Limited {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

/// A file or a folder.
pub(super) struct Destination {
    path: PathBuf,
    to: To,
}

enum To {
    File(Rc<RefCell<Watched>>),
    Folder(OutputFolder),
}

/// A file that is watched while it is written.
struct Watched {
    output: Output,
    count: u64,
    /// Is called when there are more bytes than these.
    watch: Option<(u64, Box<dyn FnMut()>)>,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.count += written as u64;
        if let Some((_, mut warn)) = self.watch.take_if(|(limit, _)| self.count > *limit) {
            warn();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Destination {
    /// Opens it before any work is done.
    pub(super) fn create(args: &Timeline) -> Result<Destination, Failure> {
        let path = &args.output.output;
        let to = match args.format {
            TimelineFormat::Ctf => {
                crate::talk::clean_up_on_signal();
                To::Folder(OutputFolder::create(path)?)
            }
            _ => To::File(Rc::new(RefCell::new(Watched {
                output: create(path, [args.trace.as_path()])?,
                count: 0,
                watch: None,
            }))),
        };
        let path = path.clone();
        Ok(Destination { path, to })
    }

    /// Calls `warn` when a file has more bytes than `limit`.
    pub(super) fn watch(&mut self, limit: u64, warn: impl FnMut() + 'static) {
        if let To::File(file) = &self.to {
            file.borrow_mut().watch = Some((limit, Box::new(warn)));
        }
    }

    /// Writes what was held.
    pub(super) fn copy(&mut self, held: &HeldFiles) -> Result<(), Failure> {
        for (name, held) in &held.files {
            let copied = self.open(name).and_then(|mut file| {
                file.write_all(held.borrow().bytes())?;
                file.flush()
            });
            copied.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> OutputError {
        let problem = OutputProblem::Write(error);
        let path = self.path.clone();
        OutputError { path, problem }
    }

    /// What was made, or why not.
    pub(super) fn tried(&self, made: io::Result<Exported>) -> Result<Exported, Failure> {
        Ok(made.map_err(|error| self.failed(error))?)
    }

    /// All is written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.to {
            To::Folder(folder) => folder.finish()?,
            To::File(file) => {
                if let Some(watched) = Rc::into_inner(file) {
                    watched.into_inner().output.finish()?;
                }
            }
        }
        Ok(())
    }
}

impl Files for Destination {
    fn open(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        match &self.to {
            To::File(file) => Ok(Box::new(Shared(Rc::clone(file)))),
            To::Folder(folder) => folder.file(name),
        }
    }

    fn scratch(&self) -> NewScratch {
        let path = self.path.clone();
        Box::new(move || Ok(Box::new(scratch_beside(&path)?)))
    }
}

/// Several files, numbered from 1.
pub(super) struct PartFiles {
    path: PathBuf,
    trace: PathBuf,
    size: u64,
    names: Vec<PathBuf>,
    /// The file that is open. Its writer is still there when it is ended.
    open: Rc<RefCell<Ending>>,
    /// Why none could be opened.
    failure: Option<Failure>,
}

/// A file until it is ended.
#[derive(Default)]
struct Ending(Option<Output>);

impl Write for Ending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let output = self.0.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Output::flush)
    }
}

impl PartFiles {
    /// Opens the first before any work is done.
    pub(super) fn create(args: &Timeline, size: u64) -> Result<PartFiles, Failure> {
        let mut files = PartFiles {
            path: args.output.output.clone(),
            trace: args.trace.clone(),
            size,
            names: Vec::new(),
            open: Rc::default(),
            failure: None,
        };
        files.next()?;
        Ok(files)
    }

    /// Goes on to the next file.
    fn next(&mut self) -> Result<(), Failure> {
        let path = numbered(&self.path, self.names.len() + 1);
        let output = create(&path, [self.trace.as_path()])?;
        self.names.push(path);
        self.open = Rc::new(RefCell::new(Ending(Some(output))));
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), Failure> {
        match self.open.borrow_mut().0.take() {
            Some(output) => Ok(output.finish()?),
            None => Ok(()),
        }
    }

    /// What was made, or why not.
    pub(super) fn tried(&mut self, made: io::Result<Exported>) -> Result<Exported, Failure> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => made.map_err(|error| {
                let problem = OutputProblem::Write(error);
                let path = self.names.last().unwrap_or(&self.path).clone();
                OutputError { path, problem }.into()
            }),
        }
    }

    /// All are written; their names.
    pub(super) fn finish(mut self) -> Result<Vec<PathBuf>, Failure> {
        self.end_file()?;
        Ok(self.names)
    }
}

impl Files for PartFiles {
    /// The next file.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        // The first is open already.
        if name != FIRST {
            if self.names.len() >= MOST_FILES {
                let text =
                    format!("--split is too small: there would be more than {MOST_FILES} files");
                return Err(io::Error::other(text));
            }
            let next = self.end_file().and_then(|()| self.next());
            if let Err(failure) = next {
                self.failure = Some(failure);
                return Err(io::ErrorKind::Other.into());
            }
        }
        Ok(Box::new(Shared(Rc::clone(&self.open))))
    }

    fn scratch(&self) -> NewScratch {
        Box::new(|| Err(io::ErrorKind::Unsupported.into()))
    }

    fn part_size(&self) -> Option<u64> {
        Some(self.size)
    }
}

/// The name of a file that is open from the start.
pub(super) const FIRST: &str = "first";

/// `run.pftrace` and 3: `run-003.pftrace`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_os_string();
    let mut name = stem;
    name.push(format!("-{number:03}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
