//! Disks: images whose writes go where the user has said.

mod overlay;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use overlay::Overlay;

/// Bytes of an image that are kept together in memory.
const PIECE: usize = 4096;

/// Pieces that are kept at most: 1 GiB.
const PIECES_MAX: usize = 1 << 18;

/// Bytes in a sector.
const SECTOR: u64 = 512;

/// What an image is kept in: a file, or bytes in memory.
pub trait Storage: Read + Write + Seek {}

impl<T: Read + Write + Seek> Storage for T {}

/// What becomes of writes to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// The guest cannot write.
    Refused,
    /// They last as long as the machine, or are in an overlay; the image is not changed.
    Forgotten,
    /// They change the image.
    Kept,
}

/// A disk.
///
/// ```
/// use hartrace_hart::host::{Disk, Writes};
/// use std::io::Cursor;
///
/// let disk = Disk::new(Box::new(Cursor::new(vec![0; 1000])), Writes::Forgotten)?;
/// assert_eq!(disk.sectors(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Disk {
    image: Box<dyn Storage>,
    /// Bytes of the image; after them the last sector is zero.
    len: u64,
    writes: Writes,
    /// Written pieces that are not in the image.
    changes: Changes,
}

/// Pieces of a disk, by number.
enum Changes {
    Memory(BTreeMap<u64, Box<Piece>>),
    Overlay(Overlay),
}

type Piece = [u8; PIECE];

impl Changes {
    fn is_empty(&self) -> bool {
        match self {
            Changes::Memory(pieces) => pieces.is_empty(),
            Changes::Overlay(overlay) => overlay.is_empty(),
        }
    }

    /// Reads a piece, if it is there.
    fn read(&mut self, number: u64, into: &mut Piece) -> io::Result<bool> {
        match self {
            Changes::Memory(pieces) => {
                let piece = pieces.get(&number);
                piece.inspect(|piece| *into = ***piece);
                Ok(piece.is_some())
            }
            Changes::Overlay(overlay) => overlay.read(number, into),
        }
    }

    fn write(&mut self, number: u64, piece: Piece) -> io::Result<()> {
        match self {
            Changes::Memory(pieces) => {
                if pieces.len() >= PIECES_MAX && !pieces.contains_key(&number) {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                pieces.insert(number, Box::new(piece));
                Ok(())
            }
            Changes::Overlay(overlay) => overlay.write(number, &piece),
        }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("len", &self.len)
            .field("writes", &self.writes)
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// A disk with this image.
    ///
    /// # Errors
    ///
    /// An image whose size cannot be found out.
    pub fn new(mut image: Box<dyn Storage>, writes: Writes) -> io::Result<Disk> {
        let len = image.seek(SeekFrom::End(0))?;
        Ok(Disk {
            image,
            len,
            writes,
            changes: Changes::Memory(BTreeMap::new()),
        })
    }

    /// A disk whose image is not changed: what is written goes to an overlay, where the
    /// next machine finds it. An empty one is a new one.
    ///
    /// # Errors
    ///
    /// An overlay that cannot be read, is damaged, or belongs to an image of another size.
    pub fn with_overlay(image: Box<dyn Storage>, overlay: Box<dyn Storage>) -> io::Result<Disk> {
        let mut disk = Disk::new(image, Writes::Forgotten)?;
        disk.changes = Changes::Overlay(Overlay::open(overlay, disk.len)?);
        Ok(disk)
    }

    /// Its size in sectors of 512 bytes; the last one may be incomplete in the image.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.len.div_ceil(SECTOR)
    }

    /// Whether the guest cannot write to it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.writes == Writes::Refused
    }

    /// Reads bytes; zeros after the end.
    pub(super) fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(0);
        let left = self.len.saturating_sub(offset);
        let there = (into.len() as u64).min(left) as usize;
        if let Some(part) = into.get_mut(..there).filter(|part| !part.is_empty()) {
            self.image.seek(SeekFrom::Start(offset))?;
            self.image.read_exact(part)?;
        }
        if self.changes.is_empty() {
            return Ok(());
        }
        let mut piece = [0; PIECE];
        for (number, at, part) in parts(offset, into.len()) {
            if self.changes.read(number, &mut piece)?
                && let Some(to) = into.get_mut(part.clone())
                && let Some(from) = piece.get(at..at + part.len())
            {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// Writes bytes. The caller has checked that they are on the disk.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self.writes {
            Writes::Refused => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            Writes::Kept => {
                self.image.seek(SeekFrom::Start(offset))?;
                self.image.write_all(data)?;
                // The last sector may have been incomplete.
                self.len = self.len.max(offset + data.len() as u64);
                Ok(())
            }
            Writes::Forgotten => {
                for (number, at, part) in parts(offset, data.len()) {
                    let mut piece = [0; PIECE];
                    if part.len() < PIECE {
                        self.read(number * PIECE as u64, &mut piece)?;
                    }
                    if let Some(to) = piece.get_mut(at..at + part.len())
                        && let Some(from) = data.get(part)
                    {
                        to.copy_from_slice(from);
                    }
                    self.changes.write(number, piece)?;
                }
                Ok(())
            }
        }
    }

    /// Makes writes last.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match (&mut self.changes, self.writes) {
            (Changes::Overlay(overlay), _) => overlay.flush(),
            (_, Writes::Kept) => self.image.flush(),
            (_, Writes::Refused | Writes::Forgotten) => Ok(()),
        }
    }
}

/// The pieces that some bytes are in: the number of each, where in it they are, and
/// which of the bytes they are.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let offset = offset + done as u64;
        let at = (offset % PIECE as u64) as usize;
        let count = (len - done).min(PIECE - at);
        let part = done..done + count;
        done += count;
        (count > 0).then_some((offset / PIECE as u64, at, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn image(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 512) as u8 + 1).collect()
    }

    fn read(disk: &mut Disk, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; len];
        disk.read(offset, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn writes_are_forgotten_with_the_machine() {
        let mut file = tempfile();
        file.write_all(&image(10_000)).unwrap();
        let mut disk = Disk::new(Box::new(file.try_clone().unwrap()), Writes::Forgotten).unwrap();
        assert_eq!(disk.sectors(), 20);
        disk.write(3584, &[0xaa; 1024]).unwrap();
        let bytes = read(&mut disk, 3072, 2048);
        assert_eq!(bytes[..512], [7; 512]);
        assert_eq!(bytes[512..1536], [0xaa; 1024]);
        assert_eq!(bytes[1536..], [10; 512]);
        // The last sector is not whole in the image.
        assert_eq!(read(&mut disk, 9728, 512)[..272], [20; 272]);
        assert_eq!(read(&mut disk, 9728, 512)[272..], [0; 240]);
        disk.write(9728, &[0xbb; 512]).unwrap();
        assert_eq!(read(&mut disk, 9728, 512), [0xbb; 512]);
        let mut after = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut after).unwrap();
        assert_eq!(after, image(10_000));
    }

    #[test]
    fn writes_are_kept_or_refused() {
        let mut kept = Disk::new(Box::new(Cursor::new(image(1000))), Writes::Kept).unwrap();
        kept.write(512, &[9; 512]).unwrap();
        assert_eq!(read(&mut kept, 512, 512), [9; 512]);
        assert!(kept.changes.is_empty());
        let mut refused = Disk::new(Box::new(Cursor::new(image(1024))), Writes::Refused).unwrap();
        assert!(refused.is_read_only() && !kept.is_read_only());
        assert!(refused.write(0, &[9; 512]).is_err());
        assert_eq!(read(&mut refused, 0, 512), [1; 512]);
    }

    /// A file without a name.
    fn tempfile() -> std::fs::File {
        let path = std::env::temp_dir().join(format!("hartrace-disk-{}", std::process::id()));
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    }
}
