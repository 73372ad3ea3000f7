//! Opens inputs: files, standard input, pipes, sockets.

mod live;
mod socket;

pub use live::{Arrival, Live};
pub use socket::Address;

use crate::digest::{Digest, Hasher};
use hartrace_wave::WaveFormat;
use hartrace_wave::fst::Front;
use socket::Removed;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// How much is read at a time.
const CHUNK: usize = 1 << 20;

/// Something to read from, opened.
pub struct Input {
    path: PathBuf,
    size: Option<u64>,
    /// Read ahead by [`Input::peek`], not yet given out.
    head: Vec<u8>,
    reader: Box<dyn Read + Send>,
    /// The same file again, where it is a regular one.
    file: Option<File>,
    /// Where it waits for a connection.
    place: Option<String>,
    /// The file of a socket.
    removed: Option<Removed>,
    /// E-Trace of several sources, put together by a transport.
    merged: bool,
}

/// Everything an input has, see [`Input::contents`].
pub enum Contents {
    /// The file in memory, as the system pages it in.
    Mapped(memmap2::Mmap),
    /// What was read.
    Read(Vec<u8>),
}

/// Shows how much there is.
impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Contents::Mapped(map) => map,
            Contents::Read(bytes) => bytes,
        }
    }
}

/// Why something could not be read.
#[derive(Debug)]
pub struct InputError {
    /// What was asked for; `-` is standard input.
    pub path: PathBuf,
    /// What happened.
    pub problem: InputProblem,
}

/// What can happen to an input.
#[derive(Debug)]
pub enum InputProblem {
    /// It could not be opened.
    Open(io::Error),
    /// It is a directory.
    Directory,
    /// Reading failed after this many bytes.
    Read {
        /// Bytes read before.
        offset: u64,
        /// What the system says.
        error: io::Error,
    },
    /// It has more bytes than are read at once.
    TooLarge {
        /// The most that is taken, in bytes.
        limit: u64,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name(&self.path);
        match &self.problem {
            InputProblem::Open(error) => write!(f, "cannot open {name}: {error}"),
            InputProblem::Directory => write!(f, "{name} is a directory"),
            InputProblem::Read { offset, error } => {
                write!(f, "cannot read {name} at byte {offset}: {error}")
            }
            InputProblem::TooLarge { limit } => {
                write!(f, "{name} has more than {} MiB", limit >> 20)
            }
        }
    }
}

impl std::error::Error for InputError {}

/// How an input is called in messages.
#[must_use]
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        return "standard input".to_owned();
    }
    format!("`{}`", path.display())
}

/// A file in the order in which it is read: an FST waveform, whose names are at its end,
/// with its names first.
fn in_order(mut file: File) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(16).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(match WaveFormat::detect(&start) {
        Some(WaveFormat::Fst) => Box::new(Front::new(file)?),
        _ => Box::new(file),
    })
}

/// Whether the name means standard input.
#[must_use]
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Why [`Input::chunks`] ended before the end.
pub enum Halt {
    /// Nobody wants more.
    Ended,
    /// A failing read.
    Failed(InputError),
}

impl From<InputError> for Halt {
    fn from(error: InputError) -> Halt {
        Halt::Failed(error)
    }
}

impl Input {
    /// Bytes that are already there, made of what `path` holds.
    #[must_use]
    pub fn of(path: &Path, bytes: Vec<u8>) -> Input {
        Input {
            path: path.to_path_buf(),
            size: Some(bytes.len() as u64),
            head: Vec::new(),
            reader: Box::new(io::Cursor::new(bytes)),
            file: None,
            place: None,
            removed: None,
            merged: false,
        }
    }

    /// The same where a transport has put the packets of several sources together
    /// ([`hartrace_etrace::Encapsulation::MERGED`]).
    pub fn merged(mut self) -> Input {
        self.merged = true;
        self
    }

    /// Whether it is.
    pub const fn is_merged(&self) -> bool {
        self.merged
    }

    /// Bytes that are made while they are read, of what `path` holds.
    #[must_use]
    pub fn from_reader(path: &Path, reader: Box<dyn Read + Send>) -> Input {
        Input {
            path: path.to_path_buf(),
            size: None,
            head: Vec::new(),
            reader,
            file: None,
            place: None,
            removed: None,
            merged: false,
        }
    }

    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    ///
    /// What does not exist, may not be read, or is a directory.
    pub fn open(path: &Path) -> Result<Input, InputError> {
        let fail = |problem| InputError {
            path: path.to_path_buf(),
            problem,
        };
        let mut input = Input {
            path: path.to_path_buf(),
            size: None,
            head: Vec::new(),
            reader: Box::new(io::stdin()),
            file: None,
            place: None,
            removed: None,
            merged: false,
        };
        if is_stdin(path) {
            return Ok(input);
        }
        let file = File::open(path).map_err(|e| fail(InputProblem::Open(e)))?;
        let metadata = file.metadata().map_err(|e| fail(InputProblem::Open(e)))?;
        if metadata.is_dir() {
            return Err(fail(InputProblem::Directory));
        }
        input.size = metadata.is_file().then_some(metadata.len());
        input.file = file.try_clone().ok().filter(|_| metadata.is_file());
        input.reader = match metadata.is_file() {
            true => in_order(file).map_err(|e| fail(InputProblem::Open(e)))?,
            false => Box::new(file),
        };
        Ok(input)
    }

    /// The name it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Bytes in all; known for regular files only.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The first bytes, up to `count`; fewer only if there are no more. They
    /// are still given out by the other methods.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn peek(&mut self, count: usize) -> Result<&[u8], InputError> {
        let missing = count.saturating_sub(self.head.len());
        let offset = self.head.len() as u64;
        let mut source = self.reader.by_ref().take(missing as u64);
        if let Err(error) = source.read_to_end(&mut self.head) {
            return Err(self.failed(offset, error));
        }
        Ok(self.head.get(..count).unwrap_or(&self.head))
    }

    /// Gives everything to `take`, piece by piece, in memory that does not
    /// grow with the input.
    ///
    /// # Errors
    ///
    /// A failing read, and whatever `take` returns.
    pub fn chunks<E: From<InputError>>(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let head = std::mem::take(&mut self.head);
        let mut offset = head.len() as u64;
        if !head.is_empty() {
            take(&head)?;
        }
        drop(head);
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.reader.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    take(buffer.get(..count).unwrap_or(&buffer))?;
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(offset, error).into()),
            }
        }
    }

    /// Gives everything to `take` as [`Input::chunks`] does. Gives the number of
    /// bytes and their hash.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn hashed(self, mut take: impl FnMut(&[u8])) -> Result<(u64, Digest), InputError> {
        let (mut hasher, mut bytes) = (Hasher::new(), 0);
        self.chunks(|chunk| {
            hasher.update(chunk);
            bytes += chunk.len() as u64;
            take(chunk);
            Ok::<(), InputError>(())
        })?;
        Ok((bytes, hasher.finish()))
    }

    /// Everything at once.
    ///
    /// # Errors
    ///
    /// A failing read, and more than `limit` bytes.
    pub fn read_all(mut self, limit: u64) -> Result<Vec<u8>, InputError> {
        let too_large = self.size.is_some_and(|size| size > limit);
        let mut bytes = std::mem::take(&mut self.head);
        if !too_large {
            let offset = bytes.len() as u64;
            let left = limit.saturating_sub(offset).saturating_add(1);
            let mut source = self.reader.by_ref().take(left);
            if let Err(error) = source.read_to_end(&mut bytes) {
                return Err(self.failed(offset, error));
            }
        }
        if too_large || bytes.len() as u64 > limit {
            return Err(InputError {
                path: self.path,
                problem: InputProblem::TooLarge { limit },
            });
        }
        Ok(bytes)
    }

    /// Everything at once, for several threads to read. A regular file is
    /// mapped, so that it takes no memory of its own however large it is;
    /// anything else is read.
    ///
    /// # Errors
    ///
    /// A failing read, and more than `limit` bytes that have to be read.
    pub fn contents(self, limit: u64) -> Result<Contents, InputError> {
        if let Some(file) = &self.file {
            // SAFETY: the map is only read. Whoever changes the file under us
            // changes what we read, and a file that is cut short ends the
            // process with a signal; neither is worse than for any tool that
            // maps its input, and nothing else depends on the bytes staying
            // the same.
            #[allow(unsafe_code)]
            let map = unsafe { memmap2::Mmap::map(file) };
            if let Ok(map) = map {
                return Ok(Contents::Mapped(map));
            }
        }
        self.read_all(limit).map(Contents::Read)
    }

    fn failed(&self, offset: u64, error: io::Error) -> InputError {
        InputError {
            path: self.path.clone(),
            problem: InputProblem::Read { offset, error },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn sample(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in");
        fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn peeked_bytes_are_still_there() {
        let bytes: Vec<u8> = (0..3 << 20).map(|i: u32| i.to_le_bytes()[1]).collect();
        let (_folder, path) = sample(&bytes);
        let mut input = Input::open(&path).unwrap();
        assert_eq!(input.size(), Some(bytes.len() as u64));
        assert_eq!(input.peek(100).unwrap(), &bytes[..100]);
        assert_eq!(input.peek(10).unwrap(), &bytes[..10]);
        let mut seen = Vec::new();
        let take = |chunk: &[u8]| -> Result<(), InputError> {
            assert!(chunk.len() <= CHUNK);
            seen.extend_from_slice(chunk);
            Ok(())
        };
        input.chunks(take).unwrap();
        assert!(seen == bytes);

        let mut input = Input::open(&path).unwrap();
        input.peek(1000).unwrap();
        assert!(input.read_all(bytes.len() as u64).unwrap() == bytes);
    }

    #[test]
    fn short_and_empty_files() {
        let (_folder, path) = sample(b"abc");
        assert_eq!(Input::open(&path).unwrap().peek(64).unwrap(), b"abc");
        let (_folder, path) = sample(b"");
        let mut input = Input::open(&path).unwrap();
        assert_eq!(input.peek(64).unwrap(), b"");
        assert_eq!(input.read_all(0).unwrap(), b"");
    }

    #[test]
    fn refusals() {
        let (folder, path) = sample(&[0; 2 << 20]);
        let error = Input::open(&path).unwrap().read_all(1 << 20).unwrap_err();
        assert!(matches!(error.problem, InputProblem::TooLarge { .. }));
        let error = Input::open(folder.path()).err().unwrap();
        assert!(matches!(error.problem, InputProblem::Directory));
        let error = Input::open(&folder.path().join("none")).err().unwrap();
        assert!(matches!(error.problem, InputProblem::Open(_)));
    }
}
