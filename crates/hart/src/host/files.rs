//! Open files, and which files a program may open.

use super::{GuestMemory, Host, Note, PATH_MAX, PIECE};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

/// Which files of the host a program may use. It names them relative to the
/// folder given here; a name that is absolute, has `..` in it or goes through
/// a symbolic link is refused, and so is anything that is neither a regular
/// file nor a folder.
///
/// Names are checked before they are used. That holds against the program; it
/// does not hold against another process that rearranges the folder at the
/// same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Files {
    /// None at all.
    #[default]
    None,
    /// Those in this folder and below it, for reading.
    ReadOnly(PathBuf),
    /// Those in this folder and below it; new ones may be made and old ones
    /// changed, renamed and removed.
    ReadWrite(PathBuf),
}

/// Why something failed, as a Linux error number. They are the same whatever
/// the host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno(pub(super) u32);

impl Errno {
    pub(super) const NOENT: Errno = Errno(2);
    pub(super) const IO: Errno = Errno(5);
    pub(super) const BADF: Errno = Errno(9);
    pub(super) const NOMEM: Errno = Errno(12);
    pub(super) const ACCES: Errno = Errno(13);
    pub(super) const FAULT: Errno = Errno(14);
    pub(super) const ISDIR: Errno = Errno(21);
    pub(super) const INVAL: Errno = Errno(22);
    pub(super) const MFILE: Errno = Errno(24);
    pub(super) const SPIPE: Errno = Errno(29);
    pub(super) const ROFS: Errno = Errno(30);
    pub(super) const RANGE: Errno = Errno(34);
    pub(super) const NAMETOOLONG: Errno = Errno(36);
    pub(super) const NOSYS: Errno = Errno(38);

    /// What a system call returns for it.
    pub(super) fn returned(self) -> u64 {
        (-i64::from(self.0)) as u64
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound => Errno::NOENT,
            Kind::WouldBlock => Errno(11),
            Kind::PermissionDenied => Errno::ACCES,
            Kind::AlreadyExists => Errno(17),
            Kind::NotADirectory => Errno(20),
            Kind::IsADirectory => Errno::ISDIR,
            Kind::InvalidInput => Errno::INVAL,
            Kind::StorageFull => Errno(28),
            Kind::BrokenPipe => Errno(32),
            Kind::DirectoryNotEmpty => Errno(39),
            _ => Errno::IO,
        }
    }
}

pub(super) type Answer<T> = Result<T, Errno>;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mode {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) append: bool,
    pub(super) create: bool,
    pub(super) exclusive: bool,
    pub(super) truncate: bool,
}

/// What a descriptor stands for.
#[derive(Debug)]
pub(super) enum Handle {
    Stdin,
    Stdout,
    Stderr,
    /// With what it was opened for: the host's own refusal has no error kind
    /// for the program.
    File {
        file: File,
        read: bool,
        write: bool,
    },
    /// Bytes that exist nowhere else, and the position in them.
    Bytes(io::Cursor<&'static [u8]>),
}

/// What a descriptor or a path is, as far as a program can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stream,
    Folder,
    Regular { size: u64 },
}

/// The most that one call copies, as on Linux: an address space may show the
/// same memory over and over.
const COPY_MAX: u64 = 0x7fff_f000;

/// Descriptors in use at a time.
const OPEN_MAX: usize = 256;

/// The descriptors, and the access policy.
pub(super) struct Table {
    policy: Files,
    /// 0 to 2 are the streams, until the program closes them.
    slots: Vec<Option<Handle>>,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            policy: Files::None,
            slots: vec![
                Some(Handle::Stdin),
                Some(Handle::Stdout),
                Some(Handle::Stderr),
            ],
        }
    }

    /// Sets the policy; the folder is made absolute, links followed, so that
    /// a link to it is as good as the folder.
    pub(super) fn allow(&mut self, files: Files) -> io::Result<()> {
        self.policy = match files {
            Files::None => Files::None,
            Files::ReadOnly(folder) => Files::ReadOnly(fs::canonicalize(folder)?),
            Files::ReadWrite(folder) => Files::ReadWrite(fs::canonicalize(folder)?),
        };
        Ok(())
    }

    fn get(&mut self, descriptor: u64) -> Answer<&mut Handle> {
        usize::try_from(descriptor)
            .ok()
            .and_then(|at| self.slots.get_mut(at))
            .and_then(Option::as_mut)
            .ok_or(Errno::BADF)
    }

    /// Puts a handle into the lowest free slot from `lowest` on.
    pub(super) fn insert(&mut self, handle: Handle, lowest: usize) -> Answer<u64> {
        let at = (lowest..OPEN_MAX)
            .find(|&at| !matches!(self.slots.get(at), Some(Some(_))))
            .ok_or(Errno::MFILE)?;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Some(handle);
        }
        Ok(at as u64)
    }

    /// The path on the host that a name stands for.
    fn resolve(&self, name: &[u8], change: bool) -> Answer<PathBuf> {
        let folder = match &self.policy {
            Files::None => return Err(Errno::ACCES),
            Files::ReadOnly(_) if change => return Err(Errno::ROFS),
            Files::ReadOnly(folder) | Files::ReadWrite(folder) => folder,
        };
        let name = std::str::from_utf8(name).map_err(|_| Errno::NOENT)?;
        if name.is_empty() {
            return Err(Errno::NOENT);
        }
        // A colon starts the name of a stream of a file there.
        if name.contains('\0') || cfg!(windows) && name.contains(':') {
            return Err(Errno::ACCES);
        }
        let mut path = folder.clone();
        for component in Path::new(name).components() {
            match component {
                Component::Normal(part) => path.push(part),
                Component::CurDir => continue,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(Errno::ACCES);
                }
            }
            if fs::symlink_metadata(&path).is_ok_and(|m| m.is_symlink()) {
                return Err(Errno::ACCES);
            }
        }
        Ok(path)
    }
}

/// The metadata, as far as a program can see it; anything but a file
/// or a folder (a pipe, a device) is refused.
fn kind(metadata: &Metadata) -> Answer<Kind> {
    if metadata.is_file() {
        Ok(Kind::Regular {
            size: metadata.len(),
        })
    } else if metadata.is_dir() {
        Ok(Kind::Folder)
    } else {
        Err(Errno::ACCES)
    }
}

/// What may be opened: a regular file, or nothing there yet.
fn openable(path: &Path) -> Answer<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => match kind(&metadata)? {
            Kind::Regular { .. } => Ok(()),
            _ => Err(Errno::ISDIR),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
    }
}

impl Host {
    /// [`Table::resolve`], with a note when the policy refuses.
    fn path(&mut self, name: &[u8], change: bool) -> Answer<PathBuf> {
        let found = self.files.resolve(name, change);
        if matches!(found, Err(Errno::ACCES | Errno::ROFS)) {
            let name = String::from_utf8_lossy(name).into_owned();
            self.note(Note::FileRefused(name));
        }
        found
    }

    pub(super) fn open(&mut self, name: &[u8], mode: Mode, lowest: usize) -> Answer<u64> {
        let change = mode.write || mode.append || mode.create || mode.truncate;
        let path = self.path(name, change)?;
        openable(&path)?;
        let writes = mode.write || mode.append;
        // Linux makes a file that is then only read; the standard library
        // wants to write what it makes.
        if mode.create && !writes {
            OpenOptions::new()
                .write(true)
                .create(true)
                .create_new(mode.exclusive)
                .truncate(mode.truncate)
                .open(&path)?;
        }
        let file = OpenOptions::new()
            .read(mode.read)
            .write(mode.write)
            .append(mode.append)
            // It also refuses these without writing, and an emptied file to
            // append to.
            .create(mode.create && writes)
            .create_new(mode.create && mode.exclusive && writes)
            .truncate(mode.truncate && mode.write && !mode.append)
            .open(&path)?;
        if !file.metadata()?.is_file() {
            return Err(Errno::ACCES);
        }
        if mode.truncate && mode.append {
            file.set_len(0)?;
        }
        let (read, write) = (mode.read, writes);
        self.files
            .insert(Handle::File { file, read, write }, lowest)
    }

    pub(super) fn close(&mut self, descriptor: u64) -> Answer<()> {
        self.files.get(descriptor)?;
        if let Ok(at) = usize::try_from(descriptor)
            && let Some(slot) = self.files.slots.get_mut(at)
        {
            *slot = None;
        }
        Ok(())
    }

    /// Some bytes, as many as there are at once; 0 at the end.
    fn read(&mut self, descriptor: u64, buffer: &mut [u8]) -> Answer<usize> {
        match self.files.get(descriptor)? {
            Handle::Stdin => Ok(self.input(buffer)?),
            Handle::File {
                file, read: true, ..
            } => Ok(file.read(buffer)?),
            Handle::Bytes(bytes) => Ok(bytes.read(buffer)?),
            Handle::Stdout | Handle::Stderr | Handle::File { .. } => Err(Errno::BADF),
        }
    }

    fn write(&mut self, descriptor: u64, bytes: &[u8]) -> Answer<()> {
        match self.files.get(descriptor)? {
            Handle::Stdout => Ok(self.output(false, bytes)?),
            Handle::Stderr => Ok(self.output(true, bytes)?),
            Handle::File {
                file, write: true, ..
            } => Ok(file.write_all(bytes)?),
            Handle::Stdin | Handle::Bytes(_) | Handle::File { .. } => Err(Errno::BADF),
        }
    }

    /// Copies from a descriptor into memory: from a file until the length is
    /// reached or it ends, from a stream what one reading gives. Bytes copied.
    pub(super) fn read_into(
        &mut self,
        descriptor: u64,
        memory: &mut dyn GuestMemory,
        address: u64,
        length: u64,
    ) -> Answer<u64> {
        let length = length.min(COPY_MAX);
        let stream = self.kind(descriptor)? == Kind::Stream;
        let mut buffer = [0; PIECE];
        let mut done = 0;
        while done < length {
            let Some(at) = address.checked_add(done) else {
                break;
            };
            let piece = buffer.get_mut(..piece(at, length - done));
            let piece = piece.unwrap_or_default();
            let got = match self.read(descriptor, piece) {
                Ok(got) => got,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            };
            if !memory.write(at, piece.get(..got).unwrap_or_default()) {
                self.bad_address("a buffer to read into", at);
                return if done > 0 {
                    Ok(done)
                } else {
                    Err(Errno::FAULT)
                };
            }
            done += got as u64;
            if stream || got == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// Copies from memory to a descriptor, and gives the bytes copied: fewer
    /// than asked for when memory or the other end gives out half-way.
    pub(super) fn write_from(
        &mut self,
        descriptor: u64,
        memory: &mut dyn GuestMemory,
        address: u64,
        length: u64,
    ) -> Answer<u64> {
        // Also what an empty writing to a closed descriptor fails at.
        self.write(descriptor, &[])?;
        let length = length.min(COPY_MAX);
        let mut buffer = [0; PIECE];
        let mut done = 0;
        while done < length {
            let Some(at) = address.checked_add(done) else {
                break;
            };
            let piece = buffer.get_mut(..piece(at, length - done));
            let piece = piece.unwrap_or_default();
            let written = if memory.read(at, piece) {
                self.write(descriptor, piece)
            } else {
                self.bad_address("a buffer to write from", at);
                Err(Errno::FAULT)
            };
            match written {
                Ok(()) => done += piece.len() as u64,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    pub(super) fn seek(&mut self, descriptor: u64, to: SeekFrom) -> Answer<u64> {
        match self.files.get(descriptor)? {
            Handle::File { file, .. } => Ok(file.seek(to)?),
            Handle::Bytes(bytes) => Ok(bytes.seek(to)?),
            _ => Err(Errno::SPIPE),
        }
    }

    pub(super) fn kind(&mut self, descriptor: u64) -> Answer<Kind> {
        match self.files.get(descriptor)? {
            Handle::File { file, .. } => kind(&file.metadata()?),
            Handle::Bytes(bytes) => Ok(Kind::Regular {
                size: bytes.get_ref().len() as u64,
            }),
            _ => Ok(Kind::Stream),
        }
    }

    pub(super) fn kind_of_path(&mut self, name: &[u8]) -> Answer<Kind> {
        kind(&fs::symlink_metadata(self.path(name, false)?)?)
    }

    /// Whether the policy lets a path be changed.
    pub(super) fn may_change(&mut self, name: &[u8]) -> Answer<()> {
        self.path(name, true).map(|_| ())
    }

    pub(super) fn set_length(&mut self, descriptor: u64, length: u64) -> Answer<()> {
        match self.files.get(descriptor)? {
            Handle::File {
                file, write: true, ..
            } => Ok(file.set_len(length)?),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Answer<()> {
        let path = self.path(name, true)?;
        openable(&path)?;
        Ok(fs::remove_file(path)?)
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Answer<()> {
        let from = self.path(from, true)?;
        let to = self.path(to, true)?;
        Ok(fs::rename(from, to)?)
    }

    /// A path in memory: `length` bytes, or fewer when there is a NUL among
    /// them.
    pub(super) fn read_path(
        &mut self,
        memory: &mut dyn GuestMemory,
        address: u64,
        length: u64,
    ) -> Answer<Vec<u8>> {
        if length > PATH_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        let mut name = vec![0; length as usize];
        if !memory.read(address, &mut name) {
            self.bad_address("a path", address);
            return Err(Errno::FAULT);
        }
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        name.truncate(end);
        Ok(name)
    }
}

/// Bytes up to the next page or the end, so that a copy that runs out of
/// memory gets exactly as far as there is memory.
fn piece(address: u64, left: u64) -> usize {
    let page = PIECE as u64 - address % PIECE as u64;
    page.min(left) as usize
}
